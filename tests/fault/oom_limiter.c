/*
 * Every allocation of a limiter fails once: those of the constructors, and those
 * of what it remembers. A constructor that fails carries WQ_ENOMEM and has freed
 * what it was given [GIVEN]; a call that is refused has counted nothing, taken no
 * token, and succeeds afterwards.
 *
 * Limiters have no allocator of their own choice, so what the default one asks
 * the system for is wrapped.
 */
#include "../support/support.h"

#include "base/table.h"

#include <errno.h>
#include <sys/mman.h>

enum { KEYS = 3000, ROUNDS = 2 };

#define IDLE (1000 * WQ_SECOND)

/* ---- the system, seen from here (--wrap) ---------------------------------------- */

static struct {
	int64_t calls, failed;
	int64_t fail_at; /* < 0: never */
	bool fail_on;
	int64_t live, mapped; /* pieces, bytes */
} sys = {.fail_at = -1};

int __real_posix_memalign(void **p, size_t align, size_t size);
int __wrap_posix_memalign(void **p, size_t align, size_t size);
void __real_free(void *p);
void __wrap_free(void *p);
void *__real_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t size);
int __wrap_munmap(void *at, size_t size);

static bool refuse(void)
{
	int64_t call = sys.calls++;
	bool no = sys.fail_at >= 0 && (call == sys.fail_at || (sys.fail_on && call > sys.fail_at));

	sys.failed += no;
	return no;
}

int __wrap_posix_memalign(void **p, size_t align, size_t size)
{
	int rc = refuse() ? ENOMEM : __real_posix_memalign(p, align, size);

	sys.live += rc == 0;
	return rc;
}

void __wrap_free(void *p)
{
	sys.live -= p != NULL;
	__real_free(p);
}

void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	void *p = MAP_FAILED;

	if (!refuse())
		p = __real_mmap(at, size, prot, flags, fd, offset);
	if (p != MAP_FAILED)
		sys.mapped += (int64_t)size;
	return p;
}

int __wrap_munmap(void *at, size_t size)
{
	sys.mapped -= (int64_t)size;
	return __real_munmap(at, size);
}

static void reset(int64_t n, bool on)
{
	memset(&sys, 0, sizeof sys);
	sys.fail_at = n;
	sys.fail_on = on;
}

static void nothing_is_left(void)
{
	IS(sys.live, 0);
	IS(sys.mapped, 0);
}

/* ---- a limiter of one's own ------------------------------------------------------ */

struct own {
	int whens, forgets, frees;
};

static int64_t own_when(void *ctx, const void *key, size_t len, int64_t now_ns)
{
	(void)key;
	(void)len;
	(void)now_ns;
	((struct own *)ctx)->whens++;
	return 0;
}

static void own_forget(void *ctx, const void *key, size_t len)
{
	(void)key;
	(void)len;
	((struct own *)ctx)->forgets++;
}

static uint32_t custom_failures(void *ctx, const void *key, size_t len)
{
	(void)ctx;
	(void)key;
	(void)len;
	return 0;
}

static void own_free(void *ctx)
{
	((struct own *)ctx)->frees++;
}

static wq_limiter *own_limiter(struct own *o)
{
	wq_limiter_functions f = {.when = own_when,
	                          .forget = own_forget,
	                          .failures = custom_failures,
	                          .free = own_free,
	                          .ctx = o};

	return wq_limiter_custom(&f);
}

/* ---- constructors ----------------------------------------------------------------- */

/* Of every kind; the shared bucket has one token for each call that is to succeed. */
static wq_limiter *make_all(struct own *o)
{
	wq_limiter *inner[] = {
	    wq_limiter_exponential(1, 1 << 20),
	    wq_limiter_jittered(1, 1, WQ_JITTER_DECORRELATED, 1),
	    wq_limiter_fast_slow(0, 2, 1),
	};
	wq_limiter *parts[] = {
	    wq_limiter_max_of(inner, LENGTH(inner)),
	    own_limiter(o),
	    wq_limiter_bucket_per_key(0, ROUNDS),
	    wq_limiter_max_wait(wq_limiter_bucket(0, KEYS * ROUNDS), WQ_NEVER),
	};

	return wq_limiter_bounded(wq_limiter_max_of(parts, LENGTH(parts)), IDLE);
}

/* Whatever failed, nothing is left, and one's own was freed once. */
static wq_limiter *make_again(struct own *o)
{
	wq_limiter *l = make_all(o);

	if (wq_limiter_status(l) == WQ_OK) {
		IS(o->frees, 0);
		IS(sys.failed, 0);
		return l;
	}
	IS(wq_limiter_status(l), WQ_ENOMEM);
	IS(o->frees, 1);
	nothing_is_left();
	o->frees = 0;
	sys.fail_at = -1;
	l = make_all(o);
	IS(wq_limiter_status(l), WQ_OK);
	return l;
}

static bool construct(int64_t n, bool and_later)
{
	wq_limiter *(*const make[])(void) = {wq_limiter_controller, wq_limiter_item_based};
	struct own o = {0};
	bool hit;

	reset(n, and_later);
	IS(wq_limiter_free(make_again(&o)), WQ_OK);
	IS(o.frees, 1);
	nothing_is_left();
	hit = sys.failed > 0;
	for (size_t i = 0; i < LENGTH(make); i++) {
		wq_limiter *l;

		reset(n, and_later);
		l = make[i]();
		IS(wq_limiter_status(l), sys.failed > 0 ? WQ_ENOMEM : WQ_OK);
		IS(wq_limiter_free(l), WQ_OK);
		nothing_is_left();
	}
	return hit;
}

static void each_constructor_fails_once(void **state)
{
	(void)state;
	memory_fail_each(construct, 10);
}

/* ---- what is remembered ------------------------------------------------------------ */

static wq_key key_of(int i)
{
	static char bytes[4096];
	size_t len = i % 100 == 99 ? 3000 + (size_t)i % 500 : 6 + (size_t)i % 40;

	memset(bytes, 'a' + i % 26, len);
	snprintf(bytes, 6, "%05d", i);
	return (wq_key){bytes, len};
}

struct before {
	int64_t size, failures;
	int whens;
};

static struct before look(wq_limiter *l, const struct own *o, wq_key k)
{
	return (struct before){.size = wq_limiter_size(l),
	                       .failures = wq_limiter_failures(l, k.key, k.len),
	                       .whens = o->whens};
}

/* A call that was refused left everything as it was. */
static void refused(wq_limiter *l, const struct own *o, wq_key k, struct before was)
{
	struct before is = look(l, o, k);

	assert_true(sys.failed > 0);
	IS(is.size, was.size);
	IS(is.failures, was.failures);
	IS(is.whens, was.whens);
	sys.fail_at = -1;
}

static bool remember(int64_t n, bool and_later)
{
	struct own o = {0};
	wq_limiter *l;
	bool hit;

	reset(-1, and_later);
	l = make_all(&o);
	sys.calls = 0;
	sys.fail_at = n;
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < KEYS; i++) {
			wq_key k = key_of(i);
			struct before was = look(l, &o, k);
			int64_t d = wq_limiter_when(l, k.key, k.len, 0);

			if (d == WQ_ENOMEM) {
				refused(l, &o, k, was);
				d = wq_limiter_when(l, k.key, k.len, 0);
			}
			IS(d, round == 0 ? 1 : 2);
			IS(wq_limiter_size(l), round == 0 ? i + 1 : KEYS);
		}
	hit = sys.failed > 0;
	sys.fail_at = -1;
	/* No token was lost: just now there is none any more. */
	IS(wq_limiter_when(l, "x", 1, 0), WQ_NEVER);
	for (int i = 0; i < KEYS; i++) {
		wq_key k = key_of(i);

		IS(wq_limiter_failures(l, k.key, k.len), ROUNDS);
	}
	/* What needs no memory works without. */
	sys.fail_at = sys.calls;
	sys.fail_on = true;
	for (int i = 0; i < KEYS; i += 2) {
		wq_key k = key_of(i);

		IS(wq_limiter_forget(l, k.key, k.len), WQ_OK);
		IS(wq_limiter_failures(l, k.key, k.len), 0);
		IS(wq_limiter_when(l, k.key, k.len, 0), WQ_NEVER);
	}
	IS(wq_limiter_free(l), WQ_OK);
	IS(o.frees, 1);
	nothing_is_left();
	return hit;
}

static void each_call_fails_once(void **state)
{
	(void)state;
	memory_fail_each(remember, 12);
}

/* ---- what refused calls leave behind ------------------------------------------------- */

static bool table_is_full;

int __real_wq__table_push_in(wq__table *t, uint64_t slot);
int __wrap_wq__table_push_in(wq__table *t, uint64_t slot);

int __wrap_wq__table_push_in(wq__table *t, uint64_t slot)
{
	return table_is_full ? WQ_ENOMEM : __real_wq__table_push_in(t, slot);
}

/* Memory for the key, but none to find it by: the former is given back. */
static void refused_calls_take_no_memory(void **state)
{
	wq_limiter *l;
	int64_t mapped = 0, live = 0;

	(void)state;
	reset(-1, false);
	l = wq_limiter_exponential(1, 2);
	table_is_full = true;
	for (int i = 0; i < 40000; i++) {
		int64_t d = wq_limiter_when(l, &i, sizeof i, 0);

		/* Until its first page is full there is room for some. */
		if (i < 20000) {
			mapped = sys.mapped;
			live = sys.live;
		} else {
			IS(d, WQ_ENOMEM);
		}
	}
	table_is_full = false;
	IS(sys.mapped, mapped);
	IS(sys.live, live);
	IS(wq_limiter_free(l), WQ_OK);
	nothing_is_left();
}

/* ---- a queue that cannot be made ----------------------------------------------------- */

static void a_queue_without_memory_frees_it(void **state)
{
	int64_t n;

	(void)state;
	reset(-1, false);
	for (n = 0;; n++) {
		struct memory mem;
		wq_allocator a;
		struct own o = {0};
		wq_queue *q = NULL;
		int rc;

		memory_init(&mem);
		mem.fail_at = n;
		a = memory_allocator(&mem);
		rc = wq_new(&q, &(wq_options){.allocator = &a, .limiter = make_all(&o)});
		if (rc == WQ_OK) {
			IS(wq_free(q), 0);
			IS(o.frees, 1);
			break;
		}
		IS(rc, WQ_ENOMEM);
		assert_null(q);
		IS(o.frees, 1);
		memory_balanced(&mem);
	}
	assert_true(n > 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_constructor_fails_once),
	    cmocka_unit_test(each_call_fails_once),
	    cmocka_unit_test(refused_calls_take_no_memory),
	    cmocka_unit_test(a_queue_without_memory_frees_it),
	};

	return cmocka_run_group_tests_name("oom_limiter", tests, NULL, NULL);
}
