/*
 * A command could not be executed, and no key is to blame: its keys are back in line, nothing was
 * counted, and the run tries again.
 *
 *   what is missing                                   | is waited for
 *   --------------------------------------------------+-----------------------------------------
 *   processes, memory, descriptors, room for results  | as long as it takes
 *   the command: a deploy replaces it                 | for --command-wait, then the run stops
 *   the command, which was never executed in this run | not at all, unless it is gone or written
 *
 * Tries come from 10 ms to 1 s apart, and whenever a command has ended.
 */
#ifndef CLI_COMMAND_STALL_H
#define CLI_COMMAND_STALL_H

#include <stdbool.h>
#include <stdint.h>

enum stall_kind { STALL_NONE, STALL_SHORTAGE, STALL_RESULTS, STALL_COMMAND };

struct stall {
	enum stall_kind kind;
	int64_t since_ns;
	int64_t delay_ns; /* between the last try and the next */
	int64_t next_ns;  /* when that is */
	int64_t tell_ns;  /* when it is said again; 0: nothing was said */
};

struct run;

/* Processes, memory or descriptors: there may be more of them later. */
bool stall_is_shortage(int error);
/* A command was not executed, by this error. May stop the run. */
void stall_begin(struct run *r, enum stall_kind kind, int error);
/* One was executed. */
void stall_end(struct run *r);
/* Is the next try to come? */
bool stall_holds(const struct run *r);

#endif
