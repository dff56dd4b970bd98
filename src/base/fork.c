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

void wq__fork_join(struct wq__fork_link *link, void (*forked)(struct wq__fork_link *link))
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
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

/* In a function of its own, so that a backtrace tells what happened. */
void wq__fork_came_back(void)
{
	abort();
}
