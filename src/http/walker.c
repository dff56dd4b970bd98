/* See walker.h. The semaphore hands a walk to the thread, the eventfd hands it back. */
#define _GNU_SOURCE
#include "http/walker.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "http/keys.h"
#include "http/thread.h"

static void *run(void *arg)
{
	struct wq__walker *w = arg;
	struct wq__walk *k = &w->walk;
	uint64_t one = 1;

	for (;;) {
		while (sem_wait(&w->go) != 0)
			;
		if (atomic_load_explicit(&w->ending, memory_order_relaxed))
			return NULL;
		k->rc =
		    wq__keys_take(w->registry, k->name, &k->q, &w->ending, k->text, &k->held_ns);
		/* It holds 0: it cannot be full. */
		while (write(w->done_fd, &one, sizeof one) < 0 && errno == EINTR)
			;
	}
}

int wq__walker_init(struct wq__walker *w, wq_registry *r)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int rc;

	if (fd < 0)
		return WQ_EIO;
	*w = (struct wq__walker){.registry = r, .done_fd = fd};
	sem_init(&w->go, 0, 0);
	rc = wq__http_thread(&w->thread, run, w, "wq-http-walk");
	if (rc == WQ_OK)
		return WQ_OK;
	sem_destroy(&w->go);
	close(fd);
	w->registry = NULL;
	return rc;
}

void wq__walker_release(struct wq__walker *w)
{
	if (!w->registry)
		return;
	atomic_store_explicit(&w->ending, true, memory_order_relaxed);
	sem_post(&w->go);
	pthread_join(w->thread, NULL);
	sem_destroy(&w->go);
	close(w->done_fd);
	for (int i = 0; i < WQ__LISTS; i++)
		wq__buffer_release(&w->walk.text[i]);
}

void wq__walker_begin(struct wq__walker *w, const char *name, const struct wq__query *q)
{
	struct wq__walk *k = &w->walk;

	memcpy(k->name, name, strlen(name) + 1);
	k->q = *q;
	k->held_ns = 0;
	sem_post(&w->go);
}

struct wq__walk *wq__walker_collect(struct wq__walker *w)
{
	uint64_t n;

	return read(w->done_fd, &n, sizeof n) == (ssize_t)sizeof n ? &w->walk : NULL;
}
