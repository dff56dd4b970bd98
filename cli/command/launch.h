/* One process is started: vfork(), a few system calls, execve(). */
#ifndef CLI_COMMAND_LAUNCH_H
#define CLI_COMMAND_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

struct launch {
	const char *path;
	char *const *argv, *const *envp;
	int fd[3];                   /* its standard input, output and error */
	const sigset_t *mask;        /* blocked in it */
	const sigset_t *defaults;    /* signals that are not ignored in it */
	const struct rlimit *nofile; /* its limit of descriptors; NULL: ours */
};

/* What launch() needs. False: no memory; errno says why. */
bool launch_open(void);
/*
 * Executes it in a process group of its own, which is killed (its leader is) when the calling
 * thread ends. 0 and its process, or an errno: nothing was executed, and no process is left.
 */
int launch(const struct launch *l, pid_t *pid);

#endif
