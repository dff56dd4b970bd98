/*
 * Every allocation fails once, in what queues with a name, registries and scrapes need. A
 * queue that could not be made is in no registry; a refused add is counted as that and
 * nothing else; a scrape that fails has written nothing and leaves nothing behind.
 */
#include "../support/support.h"

#include <errno.h>

enum { KEYS = 2000 };

/* ---- the default allocator's calls (--wrap) -------------------------------------- */

static struct {
	int64_t calls, failed, live;
	int64_t fail_at; /* < 0: never */
	bool fail_on;
} sys = {.fail_at = -1};

int __real_posix_memalign(void **p, size_t align, size_t size);
int __wrap_posix_memalign(void **p, size_t align, size_t size);
void __real_free(void *p);
void __wrap_free(void *p);

int __wrap_posix_memalign(void **p, size_t align, size_t size)
{
	int64_t call = sys.calls++;
	int rc = ENOMEM;

	if (sys.fail_at >= 0 && (call == sys.fail_at || (sys.fail_on && call > sys.fail_at)))
		sys.failed++;
	else
		rc = __real_posix_memalign(p, align, size);
	sys.live += rc == 0;
	return rc;
}

void __wrap_free(void *p)
{
	sys.live -= p != NULL;
	__real_free(p);
}

/* ---- a queue with a name ---------------------------------------------------------- */

static void add_depth(void *ctx, enum wq_metric metric, int64_t delta)
{
	if (metric == WQ_METRIC_DEPTH)
		*(int64_t *)ctx += delta;
}

/* Adds keys, every third one with a delay, until all are in; how often one was refused. */
static int64_t add_all(wq_queue *q, struct memory *mem)
{
	int64_t refused = 0;

	for (int key = 0; key < KEYS; key++) {
		int rc;

		while ((rc = key % 3 ? wq_add(q, &key, sizeof key)
		                     : wq_add_after(q, &key, sizeof key, 1)) == WQ_ENOMEM) {
			mem->fail_at = -1;
			refused++;
		}
		IS(rc, key % 3 ? WQ_QUEUED : WQ_DELAYED);
	}
	return refused;
}

static wq_manual_clock *mc;

static bool named_queue(int64_t n, bool and_later)
{
	struct memory mem;
	wq_registry *r;
	int64_t depth = 0;
	wq_metrics_provider provider = {.add = add_depth, .ctx = &depth};
	wq_clock clock = wq_manual_clock_clock(mc);
	wq_queue *q = NULL;
	int rc;

	memory_init(&mem);
	wq_allocator a = memory_allocator(&mem);

	IS(wq_registry_new(&r), WQ_OK);
	mem.fail_at = n;
	mem.fail_on = and_later;
	rc = wq_new(&q, &(wq_options){.name = "q",
	                              .registry = r,
	                              .provider = &provider,
	                              .allocator = &a,
	                              .clock = &clock});
	if (rc == WQ_ENOMEM) {
		assert_null(q);
		IS(wq_registry_size(r), 0);
		memory_balanced(&mem);
	} else {
		wq_snapshot s;
		int64_t refused;

		IS(rc, WQ_OK);
		IS(wq_registry_size(r), 1);
		refused = add_all(q, &mem);
		IS(wq_snapshot_take(q, &s), WQ_OK);
		IS((int64_t)s.refused, refused);
		IS((int64_t)s.adds, KEYS - (KEYS + 2) / 3);
		IS((int64_t)s.retries, (KEYS + 2) / 3);
		IS((int64_t)s.queued, depth);
		IS((int64_t)(s.queued + s.waiting), KEYS);
		IS(wq_free(q), KEYS);
		memory_balanced(&mem);
	}
	IS(wq_registry_free(r), WQ_OK);
	return mem.failed > 0;
}

static void queues_with_a_name(void **state)
{
	(void)state;
	IS(wq_manual_clock_new(&mc, START_NS), WQ_OK);
	memory_fail_each(named_queue, 6);
	IS(wq_manual_clock_free(mc), WQ_OK);
}

/* ---- registries and scrapes -------------------------------------------------------- */

static int count_bytes(void *ctx, const char *text, size_t n)
{
	(void)text;
	*(size_t *)ctx += n;
	return 0;
}

static void registries(void **state)
{
	wq_registry *r = (wq_registry *)1;

	(void)state;
	sys.fail_at = sys.calls;
	IS(wq_registry_new(&r), WQ_ENOMEM);
	assert_ptr_equal(r, (wq_registry *)1);
	sys.fail_at = -1;
	IS(wq_registry_new(&r), WQ_OK);
	IS(wq_registry_free(r), WQ_OK);
}

static void scrapes(void **state)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	wq_queue *q[LENGTH(names)];
	int64_t n = 0, failures = 0;
	wq_registry *r;

	(void)state;
	IS(wq_registry_new(&r), WQ_OK);
	for (size_t i = 0; i < LENGTH(names); i++)
		IS(wq_new(&q[i], &(wq_options){.name = names[i], .registry = r}), WQ_OK);
	for (bool hit = true; hit; n++) {
		int64_t live = sys.live, failed = sys.failed;
		size_t bytes = 0;
		int rc;

		sys.fail_at = sys.calls + n;
		rc = wq_metrics_write(r, WQ_OPENMETRICS, count_bytes, &bytes);
		sys.fail_at = -1;
		hit = sys.failed > failed;
		failures += hit;
		IS(rc, hit ? WQ_ENOMEM : WQ_OK);
		IS(bytes > 0, !hit);
		IS(sys.live, live);
	}
	assert_true(failures > 0);
	for (size_t i = 0; i < LENGTH(names); i++)
		IS(wq_free(q[i]), 0);
	IS(wq_registry_free(r), WQ_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(queues_with_a_name),
	    cmocka_unit_test(registries),
	    cmocka_unit_test(scrapes),
	};

	return cmocka_run_group_tests_name("out of memory: metrics", tests, NULL, NULL);
}
