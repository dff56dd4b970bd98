/* What the tests of limiters share: short calls, and a limiter of one's own that is watched. */
#ifndef WQ_TESTS_LIMITER_RIG_H
#define WQ_TESTS_LIMITER_RIG_H

#include "../support/support.h"

#define MS WQ_MILLISECOND
#define SEC WQ_SECOND

int64_t when(wq_limiter *l, const char *key, int64_t now_ns);
int64_t requeues(wq_limiter *l, const char *key);
int forget(wq_limiter *l, const char *key);
int give_back(wq_limiter *l, const char *key);

/* The next delays of the key, asked at time 0, are these. */
void delays_are(wq_limiter *l, const char *key, const int64_t *delays, size_t n);
#define DELAYS_ARE(l, key, ...)                                                                    \
	delays_are(l, key, (const int64_t[]){__VA_ARGS__},                                         \
	           sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t))

/* Are they the same, but for what buckets lose by computing in floating point? */
bool near(int64_t a, int64_t b);

/* What a limiter of one's own was asked. Keys are single letters. */
struct own {
	int64_t answer; /* of when */
	int whens, forgets, gives, frees;
	uint32_t count[128]; /* of when since forget, by key */
	char last;           /* key */
	int64_t now_ns;
};

wq_limiter_functions own_functions(struct own *o);
wq_limiter *own_limiter(struct own *o);

#endif
