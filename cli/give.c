/* `wq add`: keys in batches, each an order; the run answers when it has taken them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/frame.h"
#include "cli/say.h"
#include "cli/split.h"

enum { BLOCK = 65536 };

struct batch {
	struct client *c;
	uint64_t n; /* in the order that is being made */
	uint64_t given, merged;
	int status;
};

static void begin(struct batch *b)
{
	char after[24];

	snprintf(after, sizeof after, "%" PRId64, b->c->after_ns);
	ask_begin(&b->c->ask, "add");
	ask_str(&b->c->ask, after);
	b->n = 0;
}

/* False: there is no point in going on. */
static bool flush(struct batch *b)
{
	struct ask *a = &b->c->ask;
	const char *piece;
	char *rest;
	size_t n;

	if (b->n == 0)
		return true;
	ask_send(a);
	while (ask_next(a, &piece, &n))
		;
	if (a->status != EXIT_OK) {
		say("%s", a->message.bytes);
		b->status = a->status;
		return false;
	}
	/* Two numbers; a comma is behind them. */
	b->given += strtoull(piece, &rest, 10);
	b->merged += strtoull(rest, NULL, 10);
	begin(b);
	return true;
}

static bool give(struct batch *b, const char *key, size_t len)
{
	if (len > WQ_KEY_MAX) {
		say("a key is longer than %d bytes and is left out: %s", WQ_KEY_MAX,
		    shown(key, 60));
		b->status = EXIT_TROUBLE;
		return true;
	}
	if (b->c->ask.order.n + len + 1 > FRAME_MAX && !flush(b))
		return false;
	ask_field(&b->c->ask, key, len);
	b->n++;
	return true;
}

static bool give_found(struct batch *b, enum split_found found, const char *key, size_t len)
{
	if (found != SPLIT_BAD)
		return give(b, key, len);
	say("a key has a NUL byte, which no command can be given, and is left out "
	    "(-0: NUL ends a key): %s",
	    shown(key, len));
	b->status = EXIT_TROUBLE;
	return true;
}

/* What there is goes at once: more may be long in coming. */
static void give_input(struct batch *b)
{
	static char block[BLOCK];
	struct split split = {.delimiter = b->c->null ? '\0' : '\n'};
	enum split_found found;
	const char *key;
	size_t len;
	ssize_t n;

	while ((n = read(STDIN_FILENO, block, sizeof block)) != 0) {
		size_t at = 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			say("standard input: %s", strerror(errno));
			b->status = EXIT_TROUBLE;
			break;
		}
		while ((found = split_next(&split, block, (size_t)n, &at, &key, &len)) !=
		       SPLIT_NOTHING)
			if (!give_found(b, found, key, len))
				goto out;
		if (!flush(b))
			goto out;
	}
	found = split_end(&split, &key, &len);
	if (found == SPLIT_NOTHING || give_found(b, found, key, len))
		flush(b);
out:
	text_release(&split.part);
}

int client_add(struct client *c)
{
	struct batch b = {.c = c};

	begin(&b);
	if (c->nargs == 1 && strcmp(c->args[0], "-") == 0) {
		give_input(&b);
	} else {
		bool well = true;

		for (int i = 0; i < c->nargs && well; i++)
			well = give(&b, c->args[i], strlen(c->args[i]));
		if (well)
			flush(&b);
	}
	if (c->verbose)
		say("%" PRIu64 " given, %" PRIu64 " merged", b.given, b.merged);
	return b.status;
}
