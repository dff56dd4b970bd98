/*
 * Changing stacks. Written by hand for the common machines, because
 * swapcontext() makes a system call each time; ucontext elsewhere.
 */
#ifndef WQ_SIM_SWITCH_H
#define WQ_SIM_SWITCH_H

#include <stddef.h>

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(SIM_UCONTEXT)
typedef struct sim_context {
	void *sp;
} sim_context;
#else
#include <ucontext.h>
typedef ucontext_t sim_context;
#define SIM_USES_UCONTEXT 1
#endif

/* A context that begins in entry(), which never returns, on the given stack. */
void sim_context_init(sim_context *c, void *stack, size_t size, void (*entry)(void));

/* Save where we are in *from and go on in *to. */
void sim_context_switch(sim_context *from, sim_context *to);

#endif
