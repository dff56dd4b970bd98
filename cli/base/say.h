/* What the program itself has to say: on standard error alone, each message a line in one write. */
#ifndef CLI_BASE_SAY_H
#define CLI_BASE_SAY_H

#include <stddef.h>

/* The program's exit statuses. */
enum exit_status {
	EXIT_OK = 0,
	EXIT_TROUBLE = 1,     /* anything that has no number of its own */
	EXIT_USAGE = 2,       /* the command line; nothing was done */
	EXIT_LEFT = 75,       /* stopped with work left */
	EXIT_FAILED = 123,    /* some key failed for good */
	EXIT_CANCELLED = 125, /* a key that was waited for was cancelled */
	EXIT_NOT_EXEC = 126,  /* the command cannot be executed */
	EXIT_NOT_FOUND = 127, /* the command is not there */
};

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Takes the messages from now on; NULL: they are written to standard error, which may wait. */
extern void (*say_to)(const char *line, size_t n);

/* A message about usage, and where help is to be found; returns EXIT_USAGE. */
int usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A key as messages show it; valid until the call after the next. */
const char *shown(const void *key, size_t len);

#endif
