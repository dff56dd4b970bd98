#define _POSIX_C_SOURCE 200809L
/*
 * Keys of items that were handed back, under a tool that watches memory. Built with a sanitizer or
 * run by valgrind, on the shared library as users have it, which is built for neither.
 *
 *     memory correct      everything that is allowed
 *     memory <mistake>    reads a key once too late, or too far: the tool has to say so
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wq.h>

static volatile char seen; /* so that no read is left out */

static void check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "memory: %s\n", what);
	_exit(3);
}
#define CHECK(x) check(x, #x)

static void read_key(const wq_item *it)
{
	CHECK(strlen(it->key) == it->len);
	for (size_t i = 0; i <= it->len; i++)
		seen = ((const char *)it->key)[i];
}

static wq_item get(wq_queue *q, const char *key)
{
	wq_item it;

	if (key)
		CHECK(wq_add_str(q, key) > 0);
	CHECK(wq_get_for(q, &it, WQ_SECOND) == WQ_OK);
	read_key(&it);
	return it;
}

static wq_queue *new_queue(void)
{
	wq_queue *q;

	CHECK(wq_new(&q, NULL) == WQ_OK);
	return q;
}

/* ---- what is allowed ------------------------------------------------------ */

static void letter(void *ctx, const wq_item *it)
{
	read_key(it);
	++*(int *)ctx;
}

static wq_verdict handle(void *ctx, const wq_item *it)
{
	(void)ctx;
	read_key(it);
	return it->attempts < 3 ? wq_retry_after(WQ_MICROSECOND) : WQ_DONE;
}

static int all_that_is_allowed(void)
{
	static const struct {
		const char *name;
		uint32_t within;
	} kinds[] = {{NULL, 0}, {"named", 0}, {NULL, 1}, {"both", 1}};
	char name[32];

	for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
		int letters = 0;
		wq_queue *q;
		wq_pool *p;
		wq_item it, many[8];
		wq_options o = {.name = kinds[k].name,
		                .within = kinds[k].within,
		                .max_attempts = 5,
		                .dead_letter = letter,
		                .dead_ctx = &letters,
		                .limiter = wq_limiter_exponential(1, 2)};

		CHECK(wq_new(&q, &o) == WQ_OK);
		CHECK(wq_add(q, "", 0) == WQ_QUEUED);
		it = get(q, NULL);
		CHECK(wq_add(q, it.key, it.len) == WQ_MARKED);
		CHECK(wq_done(q, &it) == WQ_QUEUED);
		it = get(q, NULL);
		CHECK(wq_done(q, &it) == WQ_OK);
		it = get(q, "one");
		CHECK(wq_requeue(q, &it, WQ_HEAD) == WQ_QUEUED);
		it = get(q, NULL);
		CHECK(wq_add_str(q, "two") == WQ_QUEUED);
		CHECK(wq_next(q, &it) == WQ_OK);
		read_key(&it);
		CHECK(wq_add_after(q, it.key, it.len, WQ_MICROSECOND) == WQ_DELAYED);
		CHECK(wq_done(q, &it) >= 0);
		it = get(q, NULL);
		CHECK(wq_settle(q, &it, WQ_FATAL) == WQ_DEAD);
		CHECK(letters == 1);
		it = get(q, "cancelled");
		CHECK(wq_cancel(q, it.key, it.len, NULL) == WQ_CANCELLED);
		read_key(&it);
		CHECK(wq_done(q, &it) == WQ_OK);
		CHECK(wq_done(q, &it) == WQ_ESTALE);
		for (int i = 0; i < 8; i++) {
			snprintf(name, sizeof name, "many/%d", i);
			CHECK(wq_add_str(q, name) == WQ_QUEUED);
		}
		CHECK(wq_get_many_until(q, many, 8, WQ_NOWAIT) == 8);
		for (int i = 0; i < 8; i++)
			read_key(&many[i]);
		CHECK(wq_done_many(q, many, 8, NULL) == 8);
		CHECK(wq_pool_start(&p, q,
		                    &(wq_pool_options){.workers = 3,
		                                       .handler = handle,
		                                       .slow_ns = WQ_SECOND}) == WQ_OK);
		for (int i = 0; i < 200; i++) {
			snprintf(name, sizeof name, "key/%d", i % 50);
			CHECK(wq_add_str(q, name) > 0);
		}
		CHECK(wq_drain_for(q, 20 * WQ_SECOND, &(wq_drain_options){.mode = WQ_DRAIN_WAIT},
		                   NULL) == WQ_OK);
		CHECK(wq_pool_free(p) == WQ_OK);
		CHECK(wq_free(q) == 0);
	}
	return 0;
}

/* ---- mistakes ------------------------------------------------------------- */

static int after_done(void)
{
	wq_queue *q = new_queue();
	wq_item it = get(q, "a key of 21 bytes ...");

	CHECK(wq_done(q, &it) == WQ_OK);
	seen = *(const char *)it.key;
	return 0;
}

static int after_next(void)
{
	wq_queue *q = new_queue();
	wq_item it = get(q, "first");
	const char *key = it.key;

	CHECK(wq_add_str(q, "second") == WQ_QUEUED);
	CHECK(wq_next(q, &it) == WQ_OK);
	seen = key[1];
	return 0;
}

/* It is in the queue still, at the same place. */
static int after_requeue(void)
{
	wq_queue *q = new_queue();
	wq_item it = get(q, "requeued");

	CHECK(wq_requeue(q, &it, WQ_TAIL) == WQ_QUEUED);
	seen = *(const char *)it.key;
	return 0;
}

static int after_retry(void)
{
	wq_queue *q = new_queue();
	wq_item it = get(q, "retried");

	CHECK(wq_retry(q, &it) == WQ_DELAYED);
	seen = *(const char *)it.key;
	return 0;
}

static const char *_Atomic kept;

static wq_verdict keep(void *ctx, const wq_item *it)
{
	(void)ctx;
	kept = it->key;
	return WQ_DONE;
}

static int after_the_handler(void)
{
	wq_queue *q = new_queue();
	wq_pool *p;

	CHECK(wq_add_str(q, "kept") == WQ_QUEUED);
	CHECK(wq_pool_start(&p, q, &(wq_pool_options){.workers = 2, .handler = keep}) == WQ_OK);
	CHECK(wq_wait_idle_for(q, 10 * WQ_SECOND) == WQ_OK);
	seen = *kept;
	return 0;
}

static int past_the_end(void)
{
	wq_queue *q = new_queue();
	wq_item it = get(q, "short");

	seen = ((const char *)it.key)[it.len + 1];
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} modes[] = {
	    {"correct", all_that_is_allowed},
	    {"done", after_done},
	    {"next", after_next},
	    {"requeue", after_requeue},
	    {"retry", after_retry},
	    {"handler", after_the_handler},
	    {"past", past_the_end},
	};

	for (size_t i = 0; argc == 2 && i < sizeof modes / sizeof modes[0]; i++)
		if (strcmp(argv[1], modes[i].name) == 0)
			return modes[i].run();
	return 2;
}
