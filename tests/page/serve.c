/*
 * Two queues that work, and a server that shows them, for the test of the page and for whoever
 * wants to look at it.
 *
 *     serve [<port> [<key>...]]      prints its port; ends when standard input does
 *
 *   key       | what happens to it
 *   ----------+-------------------------------------------------------------
 *   web-N     | takes some milliseconds; one in three is looked at again within a minute
 *   slow-N    | takes seconds
 *   broken-N  | fails, every time, later and later; so do the keys that are given
 *   bounce-N  | fails three times, and is given up
 */
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wq.h>
#include <wq/http.h>

enum { TICK_MS = 20 };

static atomic_bool ending;

/* Numbers that look random, of one thread each. */
static uint32_t pick(uint32_t below)
{
	static _Thread_local uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 32) % below);
}

/* Stands for work. Cut short at the end. */
static void take_ms(uint32_t ms)
{
	for (uint32_t i = 0; i < ms && !ending; i++)
		nanosleep(&(struct timespec){.tv_nsec = WQ_MILLISECOND}, NULL);
}

static wq_verdict handle(void *ctx, const wq_item *it)
{
	const char *key = it->key;

	(void)ctx;
	if (strstr(key, "slow")) {
		take_ms(2000 + pick(6000));
		return WQ_DONE;
	}
	take_ms(1 + pick(12));
	if (strstr(key, "web"))
		return pick(3) > 0 ? WQ_DONE : wq_again_after((2 + pick(58)) * WQ_SECOND);
	return strstr(key, "mail") ? WQ_DONE : WQ_RETRY;
}

/* What a tick brings. */
static void add_some(wq_queue *pods, wq_queue *mail, uint32_t tick)
{
	char key[64];

	for (uint32_t n = pick(16); n > 0; n--) {
		snprintf(key, sizeof key, "default/web-%u", pick(400));
		wq_add_str(pods, key);
	}
	if (tick % 75 == 0) {
		snprintf(key, sizeof key, "batch/slow-%u", pick(9));
		wq_add_str(pods, key);
		snprintf(key, sizeof key, "bounce-%u@example.org", tick);
		wq_add_str(mail, key);
	}
	if (tick % 4 == 0) {
		snprintf(key, sizeof key, "mail-%u@example.org", pick(1000));
		wq_add_str(mail, key);
	}
}

static int start(wq_queue **q, wq_pool **pool, wq_registry *r, const char *name, uint32_t workers,
                 uint32_t attempts)
{
	wq_options options = {
	    .name = name,
	    .registry = r,
	    .max_attempts = attempts,
	    .limiter = wq_limiter_exponential(250 * WQ_MILLISECOND, WQ_MINUTE),
	};
	wq_pool_options work = {.workers = workers, .handler = handle, .name = name};
	int rc = wq_new(q, &options);

	return rc < 0 ? rc : wq_pool_start(pool, *q, &work);
}

static int stop(wq_queue *q, wq_pool *pool)
{
	int rc = wq_pool_drain_until(pool, wq_time_add(wq_now(q), 10 * WQ_SECOND), NULL, NULL);

	wq_pool_free(pool);
	/* Keys that fail for ever are left over. */
	return wq_free(q) < 0 ? -1 : rc == WQ_LEFT ? WQ_OK : rc;
}

int main(int argc, char **argv)
{
	struct pollfd input = {.fd = 0, .events = POLLIN};
	wq_http_options options = {.port = (uint16_t)(argc > 1 ? atoi(argv[1]) : 0)};
	wq_pool *pod_pool, *mail_pool;
	wq_queue *pods, *mail;
	wq_http *h;
	int rc;

	if (wq_registry_new(&options.registry) < 0 ||
	    start(&pods, &pod_pool, options.registry, "pods", 8, 0) < 0 ||
	    start(&mail, &mail_pool, options.registry, "mail", 1, 3) < 0)
		return 1;
	rc = wq_http_start(&h, &options);
	if (rc < 0) {
		fprintf(stderr, "serve: %s\n", wq_strerror(rc));
		return 1;
	}
	printf("%d\n", wq_http_port(h));
	fflush(stdout);

	for (int i = 2; i < argc; i++)
		wq_add_str(pods, argv[i]);
	for (int i = 0; i < 8; i++)
		wq_add_str(pods, (char[]){'b', 'r', 'o', 'k', 'e', 'n', '-', (char)('0' + i), 0});
	for (uint32_t tick = 0; poll(&input, 1, TICK_MS) == 0; tick++)
		add_some(pods, mail, tick);

	ending = true;
	rc = wq_http_stop(h);
	rc |= stop(pods, pod_pool) | stop(mail, mail_pool);
	return rc != 0 || wq_registry_free(options.registry) != 0;
}
