/* A tree by key and a list by age, over the same entries. */
#include "cli/queue/dead.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/compare.h"
#include "cli/base/text.h"

static int compare(const void *a, const void *b)
{
	const struct dead_key *x = a, *y = b;

	return compare_keys(x->key, x->len, y->key, y->len);
}

static struct dead_key *find(const struct dead *d, const void *key, size_t len)
{
	struct dead_key probe = {.len = len, .key = key};
	struct dead_key **at = d->tree ? tfind(&probe, &d->tree, compare) : NULL;

	return at ? *at : NULL;
}

static void take_out(struct dead *d, struct dead_key *k)
{
	tdelete(k, &d->tree, compare);
	*(k->older ? &k->older->newer : &d->oldest) = k->newer;
	*(k->newer ? &k->newer->older : &d->newest) = k->older;
	d->n--;
	d->bytes -= k->len + k->value_len;
	free(k);
}

void dead_put(struct dead *d, const wq_item *item, int64_t now_ns)
{
	size_t bytes = item->len + item->value_len;
	struct dead_key *k = grow(NULL, sizeof *k + bytes);

	dead_remove(d, item->key, item->len);
	while (d->n > 0 && (d->n == DEAD_KEYS || d->bytes + bytes > DEAD_BYTES))
		take_out(d, d->oldest);
	*k = (struct dead_key){
	    .older = d->newest,
	    .at_ns = now_ns,
	    .failures = item->attempts,
	    .priority = item->priority,
	    .value = item->value ? k->bytes + item->len : NULL,
	    .value_len = item->value_len,
	    .len = item->len,
	    .key = k->bytes,
	};
	memcpy(k->bytes, item->key, item->len);
	if (item->value)
		memcpy(k->bytes + item->len, item->value, item->value_len);
	if (!tsearch(k, &d->tree, compare)) {
		free(k);
		return;
	}
	*(d->newest ? &d->newest->newer : &d->oldest) = k;
	d->newest = k;
	d->n++;
	d->bytes += bytes;
}

const struct dead_key *dead_find(const struct dead *d, const void *key, size_t len)
{
	return find(d, key, len);
}

bool dead_remove(struct dead *d, const void *key, size_t len)
{
	struct dead_key *k = find(d, key, len);

	if (k)
		take_out(d, k);
	return k != NULL;
}

void dead_release(struct dead *d)
{
	while (d->n > 0)
		take_out(d, d->oldest);
}
