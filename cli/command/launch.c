/*
 * posix_spawn() can neither ask for a signal at our end nor set a limit, so this does what it does,
 * by hand. vfork() does not copy page tables; the child borrows our memory until it executes or
 * exits, and we sleep for as long. So the child makes system calls only, no signal handler runs in
 * it (all signals are blocked, and we have none), and it writes one word: why it failed. That word
 * is in shared memory, because where vfork() is emulated by fork() (valgrind, some sanitizers) the
 * child has a copy of everything else.
 */
#include "cli/command/launch.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int *failure;

bool launch_open(void)
{
	void *page =
	    mmap(NULL, sizeof *failure, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return false;
	failure = page;
	return true;
}

/* 0, or why not. Descriptors of ours are above the first three, and close on execution. */
static int redirect(const struct launch *l)
{
	for (int i = 0; i < 3; i++)
		if (dup2(l->fd[i], i) < 0)
			return errno;
	return 0;
}

/* Signals that we ignore and it shall not; one that is pending comes when the mask is set. */
static void give_signals(const struct launch *l)
{
	struct sigaction fresh = {.sa_handler = SIG_DFL};

	for (int i = 1; i < NSIG; i++)
		if (sigismember(l->defaults, i) == 1)
			sigaction(i, &fresh, NULL);
	sigprocmask(SIG_SETMASK, l->mask, NULL);
}

/* In the child. Returns if it cannot be executed: why. */
static int become(const struct launch *l, pid_t parent)
{
	int rc;

	if (setpgid(0, 0) < 0)
		return errno;
	/* It must not outlive us: the next run would work on its key beside it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* We may have been killed before that. */
	if (getppid() != parent)
		_exit(1);
	rc = redirect(l);
	if (rc != 0)
		return rc;
	if (l->nofile && setrlimit(RLIMIT_NOFILE, l->nofile) < 0)
		return errno;
	give_signals(l);
	execve(l->path, l->argv, l->envp);
	return errno;
}

int launch(const struct launch *l, pid_t *pid)
{
	pid_t parent = getpid(), child;
	sigset_t all, before;
	int rc;

	*failure = 0;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	child = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): see above */
	if (child == 0) {
		*failure = become(l, parent); /* NOLINT(clang-analyzer-unix.Vfork): see above */
		_exit(127);
	}
	rc = child < 0 ? errno : *failure;
	if (child > 0 && rc != 0)
		waitpid(child, NULL, 0);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		*pid = child;
	return rc;
}
