/* `wq add`: keys in batches, each an order; the run answers when it has taken them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/say.h"
#include "cli/client/client.h"
#include "cli/input/split.h"
#include "cli/socket/frame.h"

enum { BLOCK = 65536 };

struct batch {
	struct client *c;
	uint64_t n; /* in the order that is being made */
	uint64_t wanted, given, merged;
	int status;
	bool over;         /* no more is taken; what has been read is counted yet */
	struct text first; /* that was not taken */
};

static void begin(struct batch *b)
{
	char after[24];

	snprintf(after, sizeof after, "%" PRId64, b->c->after_ns);
	ask_begin(&b->c->ask, b->c->wait ? "track" : "add");
	ask_str(&b->c->ask, after);
	b->n = 0;
}

/* Two numbers; something else is behind them. */
static void count(const char *piece, uint64_t *given, uint64_t *merged)
{
	char *rest;

	*given = strtoull(piece, &rest, 10);
	*merged = strtoull(rest, NULL, 10);
}

/* Of the order that was sent: its key number i. */
static const char *key_of(const struct ask *a, uint64_t i)
{
	const char *at = a->order.bytes, *end = at + a->order.n;

	/* Before the keys are the order's name and a time. */
	for (i += 2; i > 0 && at < end; i--)
		at += strnlen(at, (size_t)(end - at)) + 1;
	if (at > end)
		at = end;
	return shown(at, strnlen(at, (size_t)(end - at)));
}

static void flush(struct batch *b)
{
	struct ask *a = &b->c->ask;
	const char *piece;
	uint64_t given = 0, merged = 0;
	size_t n;

	if (b->n == 0 || b->over)
		return;
	a->waits = true;
	ask_send(a);
	/* A run that has to wait for room, or goes no further, says how far it has come. */
	while (ask_next(a, &piece, &n))
		count(piece, &given, &merged);
	if (a->status == EXIT_OK)
		count(piece, &given, &merged);
	b->given += given;
	b->merged += merged;
	if (a->status == EXIT_OK) {
		begin(b);
		return;
	}
	say("%s", a->message.bytes);
	b->status = a->status;
	b->over = true;
	text_str(&b->first, key_of(a, given));
}

static void give(struct batch *b, const char *key, size_t len)
{
	if (len > WQ_KEY_MAX) {
		say("a key is longer than %d bytes and is left out: %s", WQ_KEY_MAX,
		    shown(key, 60));
		b->status = EXIT_TROUBLE;
		return;
	}
	b->wanted++;
	if (b->c->ask.order.n + len + 1 > FRAME_MAX)
		flush(b);
	if (b->over)
		return;
	ask_field(&b->c->ask, key, len);
	b->n++;
}

static void give_found(struct batch *b, enum split_found found, const char *key, size_t len)
{
	if (found != SPLIT_BAD) {
		give(b, key, len);
		return;
	}
	say("a key has a NUL byte, which no command can be given, and is left out "
	    "(-0: NUL ends a key): %s",
	    shown(key, len));
	b->status = EXIT_TROUBLE;
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

	while (!b->over && (n = read(STDIN_FILENO, block, sizeof block)) != 0) {
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
			give_found(b, found, key, len);
		flush(b);
	}
	if (!b->over && (found = split_end(&split, &key, &len)) != SPLIT_NOTHING)
		give_found(b, found, key, len);
	flush(b);
	text_release(&split.part);
}

/* Who gave many wants to know where to go on. */
static void tell(const struct batch *b)
{
	const struct ask *a = &b->c->ask;

	if (b->over && (a->gone || a->timed_out))
		say("%" PRIu64 " of %" PRIu64
		    " given for certain; the first that is uncertain: %.*s",
		    b->given, b->wanted, (int)b->first.n, b->first.bytes);
	else if (b->over && (b->wanted > 1 || b->c->verbose))
		say("%" PRIu64 " of %" PRIu64 " given; the first not taken: %.*s", b->given,
		    b->wanted, (int)b->first.n, b->first.bytes);
	else if (b->c->verbose)
		say("%" PRIu64 " given, %" PRIu64 " merged", b->given, b->merged);
}

/* What comes with all keys. An older run does not know the order, and says so. */
static int begin_with(struct client *c)
{
	char priority[16];

	if (c->priority == 0 && !c->value)
		return EXIT_OK;
	snprintf(priority, sizeof priority, "%" PRId32, c->priority);
	ask_begin(&c->ask, "with");
	ask_str(&c->ask, priority);
	if (c->value)
		ask_str(&c->ask, c->value);
	return ask_say(&c->ask);
}

int client_add(struct client *c)
{
	struct batch b = {.c = c, .status = begin_with(c)};

	if (b.status != EXIT_OK)
		return b.status;
	begin(&b);
	if (c->nplain == 1 && strcmp(c->args[0], "-") == 0) {
		give_input(&b);
	} else {
		for (int i = 0; i < c->nargs; i++)
			give(&b, c->args[i], strlen(c->args[i]));
		flush(&b);
	}
	tell(&b);
	text_release(&b.first);
	if (c->wait && !b.over) {
		int status = client_wait(c, false);

		if (status != EXIT_OK)
			return status;
	}
	return b.status;
}
