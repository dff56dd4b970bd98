/* The commands that talk to a `wq run --socket`: all but run and help. */
#ifndef CLI_CLIENT_CLIENT_H
#define CLI_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/client/ask.h"

/* What such a command was told. */
struct client {
	const char *command;
	const char *socket; /* NULL: WQ_SOCKET */
	bool json, kill, no_wait, null, verbose, wait;
	const char *state;
	int64_t after_ns, interval_ns;
	int64_t timeout_ns; /* as ask_open() takes it */
	uint64_t limit;
	int32_t priority;
	const char *value; /* NULL: none */
	char **args;
	int nargs;
	int nplain; /* of those, that stood before any -- */
	struct ask ask;
};

/* argv[0] is the command's name. The program's exit status. */
int client_main(int argc, char **argv);

/* Waits for the keys that were named, or for all: an exit status, after a message. */
int client_wait(struct client *c, bool all);

/* ---- give.c, top.c ---- */

int client_add(struct client *c);
int top(struct client *c);

#endif
