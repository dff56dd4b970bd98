/* One table: who looks for placeholders and who replaces them cannot differ. */
#include "cli/command/words.h"

#include <string.h>

struct piece {
	const char *bytes;
	size_t n;
};

/* ---- parts of a key ------------------------------------------------------ */

/* Where what follows the last slash begins. */
static size_t base_at(struct piece p)
{
	const char *slash = memrchr(p.bytes, '/', p.n);

	return slash ? (size_t)(slash - p.bytes) + 1 : 0;
}

static struct piece whole(struct piece p)
{
	return p;
}

static struct piece base(struct piece p)
{
	size_t at = base_at(p);

	return (struct piece){p.bytes + at, p.n - at};
}

/* From the last dot on, if no slash follows it; also if it is the first byte. */
static struct piece without_extension(struct piece p)
{
	const char *dot = memrchr(p.bytes, '.', p.n);

	if (dot && (size_t)(dot - p.bytes) >= base_at(p))
		p.n = (size_t)(dot - p.bytes);
	return p;
}

static struct piece base_without_extension(struct piece p)
{
	return without_extension(base(p));
}

/* Slashes at the end go, but not the first byte. */
static struct piece strip(struct piece p)
{
	while (p.n > 1 && p.bytes[p.n - 1] == '/')
		p.n--;
	return p;
}

static struct piece directory(struct piece p)
{
	p = strip(p);
	p.n = base_at(p);
	return p.n > 0 ? strip(p) : (struct piece){".", 1};
}

/* ---- the table ----------------------------------------------------------- */

static void attempt(struct text *t, const struct job *j)
{
	text_print(t, "%u", j->held[0].item.attempts);
}

static void worker(struct text *t, const struct job *j)
{
	text_print(t, "%u", j->worker);
}

/* Of the key, of the job, or, if both are NULL, the value. */
static const struct placeholder {
	const char *text;
	struct piece (*part)(struct piece key);
	void (*number)(struct text *t, const struct job *j);
} placeholders[] = {
    {"{}", whole, NULL},    {"{.}", without_extension, NULL},
    {"{/}", base, NULL},    {"{//}", directory, NULL},
    {"{#}", NULL, attempt}, {"{/.}", base_without_extension, NULL},
    {"{%}", NULL, worker},  {"{value}", NULL, NULL},
};

/* The next one in a word; NULL: there are no more. */
static const struct placeholder *next(const char *word, const char **at)
{
	for (*at = word; (*at = strchr(*at, '{')) != NULL; ++*at)
		for (size_t i = 0; i < sizeof placeholders / sizeof placeholders[0]; i++)
			if (strncmp(*at, placeholders[i].text, strlen(placeholders[i].text)) == 0)
				return &placeholders[i];
	return NULL;
}

bool words_vary(const char *word)
{
	const char *at;

	return next(word, &at) != NULL;
}

static bool has_key(const char *word)
{
	const struct placeholder *p;

	for (const char *at; (p = next(word, &at)) != NULL; word = at + strlen(p->text))
		if (p->part)
			return true;
	return false;
}

/* Is it another one for each key? */
static bool is_of_key(const char *word)
{
	const struct placeholder *p;

	for (const char *at; (p = next(word, &at)) != NULL; word = at + strlen(p->text))
		if (!p->number)
			return true;
	return false;
}

bool words_have_key(char *const *words)
{
	while (*words && !has_key(*words))
		words++;
	return *words != NULL;
}

static void expand(struct text *t, const char *word, const struct job *j, const struct held *h)
{
	const struct placeholder *p;

	for (const char *at; (p = next(word, &at)) != NULL; word = at + strlen(p->text)) {
		text_add(t, word, (size_t)(at - word));
		if (p->part) {
			struct piece part = p->part((struct piece){h->key, h->len});

			text_add(t, part.bytes, part.n);
		} else if (p->number) {
			p->number(t, j);
		} else {
			text_add(t, h->item.value, h->item.value_len);
		}
	}
	text_add(t, word, strlen(word) + 1);
}

size_t words_expand(struct text *t, char *const *words, const struct job *j)
{
	bool append = !words_have_key(words);
	size_t n = 0;

	for (; *words; words++) {
		uint32_t times = is_of_key(*words) ? j->nheld : 1;

		for (uint32_t i = 0; i < times; i++, n++)
			expand(t, *words, j, &j->held[i]);
	}
	for (uint32_t i = 0; append && i < j->nheld; i++, n++)
		text_add(t, j->held[i].key, j->held[i].len + 1);
	return n;
}
