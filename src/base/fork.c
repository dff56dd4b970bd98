/* See fork.h. The lock is held across a fork, so the child finds a list that is whole. */
#include "base/fork.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

struct wq__fork_list {
	pthread_mutex_t lock;
	struct wq__fork_link *first; /* L */
};

static struct wq__fork_list list = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void before(void)
{
	pthread_mutex_lock(&list.lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&list.lock);
}

static void in_child(void)
{
	struct wq__fork_link *link = list.first;

	list.first = NULL;
	for (; link; link = link->next)
		link->forked(link);
	pthread_mutex_unlock(&list.lock);
}

/* Without memory for it forks are not noticed, as if there was no such list. */
static void watch(void)
{
	(void)pthread_atfork(before, in_parent, in_child);
}

/*
 * When the library is loaded, before the program has hooks of its own: those run before before()
 * and after in_child() then, and may make and free queues.
 */
static __attribute__((constructor)) void watch_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
}

#ifdef WQ_SIM
/* A run that fails is given up with all that it made: nothing of it may stay in a list. */
void wq__fork_join(struct wq__fork_link *link, void (*forked)(struct wq__fork_link *link))
{
	link->forked = forked;
}

void wq__fork_leave(struct wq__fork_link *link)
{
	(void)link;
}
#else
void wq__fork_join(struct wq__fork_link *link, void (*forked)(struct wq__fork_link *link))
{
	watch_once(); /* a constructor of somebody else's may be earlier */
	link->forked = forked;
	link->list = &list;
	link->prev = NULL;
	pthread_mutex_lock(&list.lock);
	link->next = list.first;
	if (list.first)
		list.first->prev = link;
	list.first = link;
	pthread_mutex_unlock(&list.lock);
}

void wq__fork_leave(struct wq__fork_link *link)
{
	struct wq__fork_list *in = link->list;

	pthread_mutex_lock(&in->lock);
	if (link->prev)
		link->prev->next = link->next;
	else
		in->first = link->next;
	if (link->next)
		link->next->prev = link->prev;
	pthread_mutex_unlock(&in->lock);
}
#endif

/* In a function of its own, so that a backtrace tells what happened. */
void wq__fork_came_back(void)
{
	abort();
}
