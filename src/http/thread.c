/* See thread.h. */
#define _GNU_SOURCE
#include "http/thread.h"

#include <signal.h>
#include <stddef.h>
#include <wq/status.h>

int wq__http_thread(pthread_t *out, void *(*run)(void *arg), void *arg, const char *name)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
	sigset_t all, before;
	int rc;

	/* A thread inherits the mask of its creator. Faults of its own it has to take itself. */
	sigfillset(&all);
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
		sigdelset(&all, faults[i]);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(out, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		(void)pthread_setname_np(*out, name);
	return rc == 0 ? WQ_OK : WQ_ENOMEM;
}
