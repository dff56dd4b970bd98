/* The event loop: descriptors to watch, and one wait for all of them. One thread. */
#ifndef CLI_BASE_LOOP_H
#define CLI_BASE_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

enum { LOOP_BATCH = 64 };

struct watch {
	int fd;          /* -1: none */
	uint32_t events; /* EPOLLIN, EPOLLOUT; 0: not watched */
	void (*ready)(struct watch *w, uint32_t events);
};

struct loop {
	int epoll;
	int n; /* of batch, while its callbacks run */
	struct epoll_event batch[LOOP_BATCH];
};

bool loop_open(struct loop *l);

/*
 * Watch for these events from now on; 0: for none. False: the descriptor cannot be watched,
 * because it is a file, say, which never makes anyone wait.
 */
bool loop_watch(struct loop *l, struct watch *w, uint32_t events);

/* Not any more; a callback that is due is not made. Before the descriptor is closed. */
void loop_forget(struct loop *l, struct watch *w);

/* Wait until something happens, at most for so long, and make the callbacks. */
void loop_wait(struct loop *l, int64_t span_ns);

#endif
