/*
 * Limiters from inside: a tree of parts that are pure functions of what is
 * remembered of a key, the time, and (buckets, chance) their own state. Who
 * keeps the memory is not their business: a queue keeps it in the key's entry,
 * a limiter alone in a table of its own (memo.c). The caller serialises.
 */
#ifndef WQ_LIMIT_LIMITER_H
#define WQ_LIMIT_LIMITER_H

#include <stdbool.h>
#include <wq/alloc.h>
#include <wq/limiter.h>

#include "base/sync.h"

enum {
	WQ__LIMIT_ROOM_MAX = 128, /* bytes that all parts together may keep for a key */
};

/* A key, as the parts see it. */
struct wq__subject {
	const void *key;
	size_t len;
	int64_t now_ns;
	uint32_t failures; /* at most WQ_FAILURES_MAX */
	void *room;        /* what the parts keep for this key, aligned to 8; all zero: nothing */
};

struct wq__limiter_kind {
	/* How long from s->now_ns on, >= 0. s->failures is as before this call. */
	int64_t (*when)(wq_limiter *l, const struct wq__subject *s);
	/* The rest is optional. */
	void (*give_back)(wq_limiter *l, const struct wq__subject *s);
	void (*forget)(wq_limiter *l, const struct wq__subject *s);
	/* Is its room worth nothing any more? */
	bool (*blank)(const wq_limiter *l, const struct wq__subject *s);
	/* How many buckets it keeps that are no key's own. */
	size_t (*size)(const wq_limiter *l);
	void (*release)(wq_limiter *l);
};

/* A token bucket's state. */
struct wq__tokens {
	double n;        /* there now; below 0: promised */
	int64_t last_ns; /* when that was */
};

struct wq__memo;

struct wq_limiter {
	const struct wq__limiter_kind *kind;
	int status;            /* I: < 0: it carries an error, and nothing else */
	bool given;            /* belongs to another */
	bool counts;           /* I: it or a part counts failures */
	bool asks;             /* I: it or a part is the user's, and has to be asked */
	bool forgets;          /* I: it or a part wants to be told to forget, beyond the count */
	bool gives_back;       /* I: it or a part wants to be told that its answer was needless */
	uint32_t room;         /* I: bytes of its own a key, a multiple of 8 */
	uint32_t room_at;      /* where in the key's room; set by wq__limiter_take() */
	int64_t idle_ns;       /* I: forget a key that is idle for longer; WQ_NEVER: never */
	wq__lock lock;         /* of a limiter alone, as is the next */
	struct wq__memo *memo; /* L: made when it is needed */
	wq_allocator allocator;
	union {
		struct {
			int64_t base_ns, max_ns;
			enum wq_jitter jitter;
			uint64_t random;
		} backoff;
		struct {
			int64_t fast_ns, slow_ns;
			uint32_t nfast;
		} fast_slow;
		struct {
			double rate, burst;       /* tokens a second, and at most */
			double per_ns;            /* rate, a nanosecond */
			double token_ns;          /* how long one takes */
			struct wq__tokens tokens; /* shared by all keys */
			bool reserved;            /* the last call took a token */
		} bucket;
		struct {
			wq_limiter *buckets; /* one for each key; its keys are parts of ours */
			uint32_t n;          /* a part ends before so many separators */
			char separator;
		} parted;
		int64_t max_wait_ns;
		wq_limiter_functions custom;
	} u;
	uint32_t nparts;
	wq_limiter *part[];
};

/* A new limiter without parts; or one that carries WQ_ENOMEM. */
wq_limiter *wq__limiter_new(const wq_allocator *a, const struct wq__limiter_kind *kind);

/* A limiter over n parts, which it takes; or one that carries why not. who: for the reason. */
wq_limiter *wq__limiter_over(const struct wq__limiter_kind *kind, const char *who,
                             wq_limiter *const *parts, size_t n);

/* A limiter that carries an error, whose reason is wq_last_error(). */
wq_limiter *wq__limiter_error(int status);

/* A queue takes it: WQ_OK, its status, or WQ_EBUSY if another has it. */
int wq__limiter_take(wq_limiter *l);

/* Frees it, whoever it belongs to: for the one it belongs to. */
void wq__limiter_release(wq_limiter *l);

/* Gives each part its place in a key's room; how many bytes a key needs. */
uint32_t wq__limiter_lay_out(wq_limiter *l);

/* How many bytes a key needs. */
uint32_t wq__limiter_room(const wq_limiter *l);

/* Of this allocator's memory. */
wq_limiter *wq__limiter_exponential(const wq_allocator *a, int64_t base_ns, int64_t max_ns);
wq_limiter *wq__limiter_bucket(const wq_allocator *a, double rate, int burst);

/* A bucket for each key; who: the constructor that its errors name. */
wq_limiter *wq__limiter_keyed(const char *who, double rate, int burst);
wq_limiter *wq__limiter_default(const wq_allocator *a);

/* ---- what a host asks; s->failures and s->room are its to store -------- */

/* The delay; counts the failure. */
int64_t wq__limiter_when(wq_limiter *l, struct wq__subject *s);

/* The last when was needless. */
void wq__limiter_give_back(wq_limiter *l, const struct wq__subject *s);

void wq__limiter_forget(wq_limiter *l, struct wq__subject *s);

uint32_t wq__limiter_failures(const wq_limiter *l, const struct wq__subject *s);

/* How many buckets it and its parts keep that are no key's own. */
size_t wq__limiter_size(const wq_limiter *l);

/* How long a key waits for a bucket that there is no memory for. No token is taken. */
int64_t wq__bucket_pause(wq_limiter *l);

/* Does it say how often a key has failed? */
bool wq__limiter_numbers(const wq_limiter *l);

/* Is there nothing to remember of the key? Then its room counts as all zero. */
bool wq__limiter_blank(const wq_limiter *l, const struct wq__subject *s);

/* What a part keeps for the key. */
static inline void *wq__limiter_room_of(const wq_limiter *l, const struct wq__subject *s)
{
	return (char *)s->room + l->room_at;
}

#endif
