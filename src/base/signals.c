/* See signals.h. */
#define _POSIX_C_SOURCE 200809L
#include "base/signals.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

_Static_assert(sizeof(sigset_t) == sizeof(wq__signals), "one is the other");

void wq__signals_now(wq__signals *s)
{
	sigset_t set;

	sigemptyset(&set); /* the kernel writes less of it than there is */
	pthread_sigmask(SIG_BLOCK, NULL, &set);
	memcpy(s, &set, sizeof *s);
}

void wq__signals_all(wq__signals *s)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
	sigset_t all;

	sigfillset(&all);
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
		sigdelset(&all, faults[i]);
	memcpy(s, &all, sizeof *s);
}

void wq__signals_block(const wq__signals *s, wq__signals *before)
{
	sigset_t set, was;

	sigemptyset(&was);
	memcpy(&set, s, sizeof set);
	pthread_sigmask(SIG_BLOCK, &set, &was);
	memcpy(before, &was, sizeof *before);
}

void wq__signals_set(const wq__signals *s)
{
	sigset_t set;

	memcpy(&set, s, sizeof set);
	pthread_sigmask(SIG_SETMASK, &set, NULL);
}
