/*
 * The terminal, and commands that are stopped. Commands are in process groups of their own, so the
 * kernel stops one that reads from the terminal (SIGTTIN) or sets its modes (SIGTTOU):
 *
 *   the run is                 | the command
 *   ---------------------------+--------------------------------------------------------------
 *   in the foreground          | has the terminal until it ends, as by `fg` of a shell; one at a
 *                              | time, others wait for it
 *   in the background          | fails, which is said
 *
 * While it is lent, Ctrl-C and Ctrl-\ end the command and count as if the run had got them; Ctrl-Z
 * stops the run, too; no progress is drawn, and no keys are read from the terminal.
 */
#ifndef CLI_COMMAND_TTY_H
#define CLI_COMMAND_TTY_H

#include <signal.h>
#include <stdbool.h>
#include <termios.h>

struct run;
struct job;

struct tty {
	int fd;               /* /dev/tty; -1: not opened yet, or there is none */
	struct job *holder;   /* NULL: we have it, or nobody asked for it */
	struct termios modes; /* as they were when it was lent */
	bool has_modes;
	sigset_t mask; /* ours before */
};

/* A command was stopped by a signal. */
void tty_stopped(struct run *r, struct job *j, int signal);
/* A command has ended; its status is known. */
void tty_ended(struct run *r, struct job *j);
bool tty_lent(const struct run *r);
/* Is it the terminal, and lent? Then to read from it would take what is meant for the command. */
bool tty_lent_fd(const struct run *r, int fd);
void tty_close(struct run *r);

#endif
