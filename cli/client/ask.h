/*
 * The other end of a run's socket: orders go out, answers come in.
 *
 * Nothing waits for ever for a run that does not answer: there is a time for all of it, or, if
 * none was given, one for each sign of life. A run that cannot finish an answer soon says so by a
 * piece of it; who waits by nature, for room or for a key, is patient from then on.
 */
#ifndef CLI_CLIENT_ASK_H
#define CLI_CLIENT_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/base/text.h"

struct ask {
	int fd;
	struct text order; /* that is being made */
	struct text in;
	size_t at; /* before that it has been handed out */
	char *path;
	bool by_default;     /* nothing named it */
	int64_t timeout_ns;  /* for all of it; 0: none */
	int64_t deadline_ns; /* when that is over, CLOCK_MONOTONIC; 0: never */
	int64_t patience_ns; /* with silence; 0: for ever */
	int64_t sign_ns;     /* the last sign of life */
	bool waits;          /* by nature: the run takes its time once it has answered something */
	bool heard;          /* it has answered something to this order */
	bool timed_out;
	bool gone;           /* nobody answers any more */
	int status;          /* of the last answer that was no good */
	struct text message; /* with a NUL */
};

/*
 * given: a path or a name, place.h; NULL: as WQ_SOCKET says, or the default name. timeout_ns: for
 * everything until ask_close(); 0: none; -1: none, but 10 s without a sign of life are too long.
 * 0, or an exit status after a message.
 */
int ask_open(struct ask *a, const char *given, int64_t timeout_ns);
void ask_close(struct ask *a);

/* An order is made field by field, and sent. */
void ask_begin(struct ask *a, const char *name);
void ask_field(struct ask *a, const void *bytes, size_t n);
void ask_str(struct ask *a, const char *s);
bool ask_send(struct ask *a);

/*
 * The next piece of the answer: true. Its end: false, and a->status is EXIT_OK or what went
 * wrong, which a->message tells. *piece is valid until the next call; it is that of the end, too.
 * After gone or timed_out nothing more can be asked.
 */
bool ask_next(struct ask *a, const char **piece, size_t *n);
/* Sends the order and reads its answer to the end: the status. */
int ask(struct ask *a);
/* The same; what went wrong is said. */
int ask_say(struct ask *a);

int64_t ask_now(void);

#endif
