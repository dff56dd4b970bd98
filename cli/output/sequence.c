/* A list of places, and a tree of those that are not over, by key. */
#include "cli/output/sequence.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/compare.h"

struct place {
	struct place *next;
	struct place *again; /* what was given while this one was held; not in the tree */
	uint64_t number;     /* they grow along the list */
	bool over;
	struct kept kept;
	size_t len;
	const char *key; /* behind it, or the caller's while it is looked for */
	char bytes[];
};

struct sequence {
	struct place *first, **last;
	void *tree;
	uint64_t given;
	size_t nkept;
};

static int compare(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return compare_keys(x->key, x->len, y->key, y->len);
}

static struct place *find(const struct sequence *s, const void *key, size_t len)
{
	struct place probe = {.len = len, .key = key};
	struct place **at = tfind(&probe, &s->tree, compare);

	return at ? *at : NULL;
}

static void enter(struct sequence *s, struct place *p)
{
	if (!tsearch(p, &s->tree, compare))
		no_memory();
}

static void show(struct run *r, struct place *p)
{
	stream_append(&r->out, &p->kept.out);
	stream_append(&r->err, &p->kept.err);
}

/* From the first place on: what is over goes, and the next one has its turn. */
static void advance(struct run *r)
{
	struct sequence *s = r->sequence;
	struct place *p;

	while ((p = s->first) != NULL && p->over) {
		show(r, p);
		s->first = p->next;
		s->nkept--;
		free(p);
	}
	if (s->first)
		show(r, s->first);
	else
		s->last = &s->first;
}

static void over(struct run *r, struct place *p)
{
	p->over = true;
	r->sequence->nkept++;
	advance(r);
}

void sequence_add(struct run *r, const void *key, size_t len)
{
	struct sequence *s = r->sequence;
	struct place *p, *held;

	if (!r->opt->keep_order)
		return;
	if (!s) {
		s = r->sequence = grow(NULL, sizeof *s);
		*s = (struct sequence){.last = &s->first};
	}
	p = grow(NULL, sizeof *p + len);
	*p = (struct place){.number = s->given++, .len = len};
	p->key = memcpy(p->bytes, key, len);
	*s->last = p;
	s->last = &p->next;
	held = find(s, key, len);
	if (held)
		held->again = p;
	else
		enter(s, p);
}

void sequence_join(struct run *r, const void *key, size_t len)
{
	struct place *p = r->sequence ? find(r->sequence, key, len) : NULL;
	struct place *again = p ? p->again : NULL;

	if (!again)
		return;
	p->again = NULL;
	over(r, again);
}

void sequence_end(struct run *r, const void *key, size_t len, bool pending)
{
	struct sequence *s = r->sequence;
	struct place *p = s ? find(s, key, len) : NULL;

	if (!p)
		return;
	if (pending && p->again) {
		sequence_join(r, key, len);
		return;
	}
	tdelete(p, &s->tree, compare);
	if (p->again)
		enter(s, p->again);
	over(r, p);
}

struct kept *sequence_keeps(struct run *r, const struct job *j)
{
	struct sequence *s = r->sequence;
	struct place *first = NULL;

	/* Several keys have one output: that of the first of them. */
	for (uint32_t i = 0; s && i < j->nheld; i++) {
		struct place *p = find(s, j->held[i].key, j->held[i].len);

		if (p && (!first || p->number < first->number))
			first = p;
	}
	return first && first != s->first ? &first->kept : NULL;
}

size_t sequence_kept(const struct run *r)
{
	return r->sequence ? r->sequence->nkept : 0;
}

void sequence_show_all(struct run *r)
{
	for (struct place *p = r->sequence ? r->sequence->first : NULL; p; p = p->next)
		show(r, p);
}

static void leave(void *place)
{
	(void)place;
}

void sequence_release(struct run *r)
{
	struct sequence *s = r->sequence;

	if (!s)
		return;
	tdestroy(s->tree, leave);
	while (s->first) {
		struct place *p = s->first;

		s->first = p->next;
		while (p->kept.out.first)
			chunks_pop(&p->kept.out);
		while (p->kept.err.first)
			chunks_pop(&p->kept.err);
		free(p);
	}
	free(s);
	r->sequence = NULL;
}
