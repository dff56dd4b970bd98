/*
 * What strangers can make the server keep has bounds: listings, their bytes, debts. Time is a
 * variable here.
 */
#include "support/support.h"

#include <inttypes.h>
#include <malloc.h>
#include <poll.h>

#include "http/listings.h"

enum { ASKED = 200, MANY_KEYS = 1000 };

static wq_registry *registry;
static struct wq__listings ls;
static int64_t now_ns;

static bool starving; /* nothing is left for what a walk has brought */
static _Thread_local bool starved;

void *__wrap_calloc(size_t n, size_t size);
void *__real_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	return starved ? NULL : __real_calloc(n, size);
}

static int setup(void **state)
{
	(void)state;
	now_ns = START_NS;
	IS(wq_registry_new(&registry), WQ_OK);
	IS(wq__listings_init(&ls, registry), WQ_OK);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	wq__listings_release(&ls);
	IS(wq_registry_free(registry), WQ_OK);
	return 0;
}

static wq_queue *named(const char *name)
{
	wq_queue *q = NULL;

	IS(wq_new(&q, &(wq_options){.name = name, .registry = registry}), WQ_OK);
	return q;
}

static void answer_free(struct wq__answer *a)
{
	if (a->once && a->r)
		MHD_destroy_response(a->r);
}

/* Asks until there is an answer. Its code. */
static unsigned ask(const char *name, const char *match, unsigned limit)
{
	struct wq__query q = {.limit = limit, .match_len = strlen(match)};
	int64_t asked_ns = now_ns;
	struct wq__answer a;

	memcpy(q.match, match, q.match_len);
	for (;;) {
		struct pollfd done = {.fd = ls.walker.done_fd, .events = POLLIN};

		a = wq__listings_ask(&ls, name, &q, asked_ns, now_ns, true);
		if (!a.wait)
			break;
		IS(poll(&done, 1, -1), 1);
		starved = starving;
		assert_true(wq__listings_collect(&ls, ++now_ns));
		starved = false;
	}
	answer_free(&a);
	return a.code;
}

static int debts(void)
{
	int n = 0;

	for (const struct wq__debt *d = ls.ration.first; d; d = d->next)
		n++;
	return n;
}

static void test_so_many(void **state)
{
	wq_queue *q = named("q");

	(void)state;
	assert_int_equal(ls.n, 0);
	for (int i = 0; i < ASKED; i++) {
		char match[16];

		snprintf(match, sizeof match, "%d", i);
		IS(ask("q", match, 1), MHD_HTTP_OK);
		now_ns += WQ_HOUR;
		assert_in_range(ls.n, 1, 64);
	}
	assert_int_equal(ls.n, 64);
	/* The last is the one that stays. */
	now_ns -= WQ_HOUR;

	struct wq__answer a =
	    wq__listings_ask(&ls, "q",
	                     &(struct wq__query){.limit = 1, .match = "199", .match_len = 3},
	                     now_ns, now_ns, false);

	IS(a.code, MHD_HTTP_OK);
	IS(a.once, false);
	wq_free(q);
}

/* Long keys of bytes that are written as six each, a megabyte and more for a list. */
static void add_many(wq_queue *q)
{
	for (int i = 0; i < MANY_KEYS; i++) {
		char key[200];

		memset(key, '\1', sizeof key);
		memcpy(key, &i, sizeof i);
		IS(wq_add(q, key, sizeof key), WQ_QUEUED);
	}
}

static void test_so_large(void **state)
{
	wq_queue *q = named("q");
	size_t most = 0;

	(void)state;
	add_many(q);
	for (int i = 0; i < 30; i++) {
		char match[] = {'\1', '\1', '\1', '\0', '\0'};

		match[i % 3 + 1] = '\0';
		IS(ask("q", match, (unsigned)(MANY_KEYS - i)), MHD_HTTP_OK);
		now_ns += WQ_HOUR;
		most = ls.bytes > most ? ls.bytes : most;
	}
	assert_in_range(most, 8 << 20, 16 << 20);
	assert_in_range(ls.n, 1, 10);
	wq_free(q);
}

/* A walk leaves a debt, which is forgotten when it is paid off; the names of strangers leave none. */
static void test_debts(void **state)
{
	wq_queue *q;

	(void)state;
	for (int i = 0; i < ASKED; i++) {
		char name[16];

		snprintf(name, sizeof name, "none%d", i);
		IS(ask(name, "", 1), MHD_HTTP_NOT_FOUND);
	}
	IS(debts(), 0);
	for (int i = 0; i < ASKED; i++) {
		char name[16];

		snprintf(name, sizeof name, "q%d", i);
		q = named(name);
		IS(ask(name, "", 1), MHD_HTTP_OK);
		IS(wq_free(q), 0);
		assert_in_range(debts(), 1, 2);
		now_ns += WQ_HOUR;
	}
	IS(ask("none", "", 1), MHD_HTTP_NOT_FOUND);
	IS(wq__ration_wait(&ls.ration, "none", now_ns), 0);
	IS(debts(), 0);
}

/* 250 times as long as the lock was held, half a second of it ahead. */
static void test_ration(void **state)
{
	struct wq__ration r = {0};
	struct wq__debt *d;

	(void)state;
	IS(wq__ration_wait(&r, "q", 1000), 0);
	d = wq__ration_take(&r, "q", 1000);
	assert_null(r.first);
	wq__ration_charge(&r, d, 2 * WQ_MILLISECOND);
	IS(wq__ration_wait(&r, "q", 1000), 0);
	d = wq__ration_take(&r, "q", 1000);
	wq__ration_charge(&r, d, 2 * WQ_MILLISECOND);
	IS(wq__ration_wait(&r, "p", 1000), 0);
	IS(wq__ration_wait(&r, "q", 1000), WQ_SECOND / 2);
	IS(wq__ration_wait(&r, "q", 999 + WQ_SECOND / 2), 1);
	IS(wq__ration_wait(&r, "q", 1000 + WQ_SECOND / 2), 0);
	wq__ration_charge(&r, wq__ration_take(&r, "p", 1000), WQ_SECOND);
	IS(wq__ration_wait(&r, "q", 1000 + WQ_SECOND), 0);
	assert_string_equal(r.first->name, "p");
	assert_null(r.first->next);
	wq__ration_release(&r);
}

static size_t allocated(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* What a walk has brought is freed if it cannot be kept. */
static void test_without_memory(void **state)
{
	wq_queue *q = named("q");
	size_t before = 0;

	(void)state;
	add_many(q);
	starving = true;
	for (int i = 0; i < 20; i++) {
		IS(ask("q", "", MANY_KEYS), MHD_HTTP_SERVICE_UNAVAILABLE);
		now_ns += WQ_HOUR;
		if (i == 0)
			before = allocated();
	}
	starving = false;
	assert_in_range(allocated(), 0, before + (4 << 20));
	assert_int_equal(ls.n, 0);
	IS(ask("q", "", MANY_KEYS), MHD_HTTP_OK);
	wq_free(q);
}

/* A listing that is dropped is freed, for want of room and because there is a newer one. */
static void test_no_leak(void **state)
{
	wq_queue *q = named("q");
	size_t before = 0;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		char match[16];

		snprintf(match, sizeof match, "%d", i % 2 ? 0 : i);
		IS(ask("q", match, 1), MHD_HTTP_OK);
		now_ns += WQ_HOUR;
		if (i == 1000)
			before = allocated();
	}
	/* Of each as little as 100 bytes would be more. */
	assert_in_range(allocated(), 0, before + 100000);
	wq_free(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_so_many, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_so_large, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_without_memory, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_no_leak, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_debts, setup, teardown),
	    cmocka_unit_test(test_ration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
