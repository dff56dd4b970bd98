/*
 * The slab and its runs: objects do not overlap, are aligned and keep their names;
 * memory goes back; who takes and gives a few objects asks for none. All of it with an
 * allocator of the user's, whose calls are counted, and with the default one, whose
 * system calls are counted instead (--wrap).
 */
#include "../support/support.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/slab.h"
#include "queue/memory.h"

enum {
	SMALL = WQ__RUN_SMALL_BYTES,
	LARGE = WQ__RUN_LARGE_BYTES,
	/* Idle runs and spares of an empty slab, and its tables while it is small. */
	SMALL_KEPT = (16 + WQ__SLAB_SPARES) * SMALL,
	KEPT = SMALL_KEPT + 4 * LARGE + (64 << 10),
};

static uint64_t seed;

/* ---- the system calls of the default allocator ------------------------------- */

void *__real_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *p, size_t size);
int __wrap_munmap(void *p, size_t size);
int __real_madvise(void *p, size_t size, int advice);
int __wrap_madvise(void *p, size_t size, int advice);
int __real_posix_memalign(void **p, size_t align, size_t size);
int __wrap_posix_memalign(void **p, size_t align, size_t size);

enum { MAPS = 1024 };

static struct {
	int64_t calls; /* of all four */
	bool refuse;   /* memory */
	struct {
		char *at;
		size_t size;
	} maps[MAPS];
	size_t nmaps;
} kernel;

void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	void *p;

	kernel.calls++;
	if (kernel.refuse) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	p = __real_mmap(at, size, prot, flags, fd, offset);
	assert_true(p != MAP_FAILED && kernel.nmaps < MAPS);
	kernel.maps[kernel.nmaps].at = p;
	kernel.maps[kernel.nmaps++].size = size;
	return p;
}

int __wrap_munmap(void *p, size_t size)
{
	size_t i = 0;

	kernel.calls++;
	while (i < kernel.nmaps && kernel.maps[i].at != p)
		i++;
	assert_true(i < kernel.nmaps && kernel.maps[i].size == size);
	kernel.maps[i] = kernel.maps[--kernel.nmaps];
	return __real_munmap(p, size);
}

/* Never a huge page; and no large piece at once. */
int __wrap_madvise(void *p, size_t size, int advice)
{
	kernel.calls++;
	assert_true(advice == MADV_NOHUGEPAGE || advice == MADV_DONTNEED);
	assert_true(advice == MADV_NOHUGEPAGE || size <= LARGE);
	return __real_madvise(p, size, advice);
}

int __wrap_posix_memalign(void **p, size_t align, size_t size)
{
	kernel.calls++;
	return kernel.refuse ? ENOMEM : __real_posix_memalign(p, align, size);
}

/* Pages that are mapped and in memory, in bytes. */
static size_t resident(void)
{
	static unsigned char there[64 << 10];
	size_t pages = 0;

	for (size_t i = 0; i < kernel.nmaps; i++) {
		size_t n = (kernel.maps[i].size + 4095) / 4096;

		assert_true(n <= sizeof there);
		IS(mincore(kernel.maps[i].at, kernel.maps[i].size, there), 0);
		for (size_t j = 0; j < n; j++)
			pages += there[j] & 1;
	}
	return pages * 4096;
}

/* ---- a slab, with either allocator -------------------------------------------- */

struct bench {
	bool mapped; /* the default allocator */
	struct memory mem;
	wq_allocator a;
	wq__slab s;
};

static void bench_open(struct bench *b, bool mapped)
{
	memset(&kernel, 0, sizeof kernel);
	b->mapped = mapped;
	memory_init(&b->mem);
	b->a = mapped ? wq__default_allocator : memory_allocator(&b->mem);
	wq__slab_init(&b->s, &b->a);
}

static void bench_close(struct bench *b)
{
	wq__slab_release(&b->s);
	memory_balanced(&b->mem);
	IS((int64_t)kernel.nmaps, 0);
}

/* Memory asked for or given back so far. */
static int64_t bench_calls(const struct bench *b)
{
	/* Each piece is asked for and given back: what lives is asked for only. */
	return b->mapped ? kernel.calls : 2 * b->mem.calls - b->mem.live;
}

static size_t bench_bytes(const struct bench *b)
{
	return b->mapped ? resident() : (size_t)b->mem.bytes;
}

struct object {
	unsigned char *p;
	size_t size;
	uint32_t id;
	unsigned char fill;
};

static void object_new(struct bench *b, struct object *o, size_t size, unsigned char fill)
{
	o->size = size;
	o->fill = fill;
	o->id = 0;
	o->p = wq__slab_alloc(&b->s, size, &o->id);
	assert_non_null(o->p);
	assert_int_equal((uintptr_t)o->p % 8, 0);
	assert_int_not_equal(o->id, 0);
	assert_ptr_equal(wq__slab_at(&b->s, o->id), o->p);
	memset(o->p, fill, size);
}

/* Nobody else has written to it. */
static void object_free(struct bench *b, struct object *o)
{
	assert_ptr_equal(wq__slab_at(&b->s, o->id), o->p);
	for (size_t i = 0; i < o->size; i++)
		if (o->p[i] != o->fill)
			fail_msg("byte %zu of an object of %zu bytes was overwritten", i, o->size);
	wq__slab_free(&b->s, o->id);
	o->p = NULL;
}

/* A test runs twice. */
#define BOTH(name)                                                                                 \
	static void name(void **state)                                                             \
	{                                                                                          \
		(void)state;                                                                       \
		for (int mapped = 0; mapped < 2; mapped++) {                                       \
			struct bench b;                                                            \
                                                                                                   \
			bench_open(&b, mapped);                                                    \
			name##_with(&b);                                                           \
			bench_close(&b);                                                           \
		}                                                                                  \
	}

/* A random tape of many sizes at once; a few sizes are frequent, as in a queue. */
static void objects_do_not_overlap_with(struct bench *b)
{
	enum { OBJECTS = 3000, STEPS = 40000 };
	static struct object objects[OBJECTS];
	uint64_t rng = seed;

	memset(objects, 0, sizeof objects);
	for (int step = 0; step < STEPS; step++) {
		/* a tide: all of them are in use now and then, and few */
		size_t range = 1 + (size_t)(step / 7) % OBJECTS;
		struct object *o = &objects[rng_below(&rng, range)];
		size_t size = 40 + rng_below(&rng, 60);

		if (rng_below(&rng, 20) == 0)
			size = 1 + rng_below(&rng, 6000);
		if (rng_below(&rng, 200) == 0)
			size = 1 + rng_below(&rng, WQ__SLAB_MAX);
		if (o->p)
			object_free(b, o);
		else
			object_new(b, o, size, (unsigned char)rng_next(&rng));
	}
	for (int i = 0; i < OBJECTS; i++)
		if (objects[i].p)
			object_free(b, &objects[i]);
	assert_true(bench_bytes(b) <= KEPT);
}
BOTH(objects_do_not_overlap)

static void every_size_with(struct bench *b)
{
	enum { EACH = 9 };
	struct object objects[EACH];

	for (size_t size = 1; size <= WQ__SLAB_MAX; size += size < 1100 ? 1 : 333) {
		for (int i = 0; i < EACH; i++)
			object_new(b, &objects[i], size, (unsigned char)(i + 1));
		for (int i = 0; i < EACH; i++)
			object_free(b, &objects[(i * 4) % EACH]);
	}
	/* and the edges of the classes */
	for (size_t power = 1024; power <= 65536; power *= 2)
		for (size_t size = power - 1; size <= power + 1; size++) {
			for (int i = 0; i < EACH; i++)
				object_new(b, &objects[i], size, (unsigned char)(i + 1));
			for (int i = EACH; i-- > 0;)
				object_free(b, &objects[i]);
		}
	object_new(b, &objects[0], WQ__SLAB_MAX, 1);
	object_free(b, &objects[0]);
	/* no class holds on to memory */
	assert_true(bench_bytes(b) <= KEPT);
}
BOTH(every_size)

/*
 * Whatever is exactly full, objects that come and go take no memory: the class's runs, the
 * runs of a group, what may be idle. The second of the cycles that are the same asks for nothing.
 */
static void no_cliff_with(struct bench *b)
{
	enum { OBJECTS = 20000, MOVING = 3 };
	static const size_t sizes[] = {8,    54,   72,   256,  1000,  1500,  2560,
	                               4096, 4200, 8100, 9000, 16000, 36000, WQ__SLAB_MAX};
	uint32_t *held = calloc(OBJECTS, sizeof *held), moving[MOVING];

	assert_non_null(held);
	for (size_t i = 0; i < LENGTH(sizes); i++) {
		size_t runs = sizes[i] <= 4096 ? 140 : 20, n = 0;
		size_t most = runs * (sizes[i] <= 4096 ? SMALL : LARGE) / sizes[i];

		if (most > OBJECTS)
			most = OBJECTS;
		for (; n < most; n++) {
			int64_t calls = 0;

			for (int round = 0; round < 3; round++) {
				if (round == 1)
					calls = bench_calls(b);
				for (int j = 0; j < MOVING; j++)
					assert_non_null(
					    wq__slab_alloc(&b->s, sizes[i], &moving[j]));
				for (int j = 0; j < MOVING; j++)
					wq__slab_free(&b->s, moving[j]);
			}
			if (bench_calls(b) != calls)
				fail_msg("with %zu objects of %zu bytes, %d more took memory", n,
				         sizes[i], MOVING);
			assert_non_null(wq__slab_alloc(&b->s, sizes[i], &held[n]));
		}
		while (n-- > 0)
			wq__slab_free(&b->s, held[n]);
	}
	free(held);
}
BOTH(no_cliff)

/* More than a run of them, over and over: so much is kept idle, of either kind. */
static void a_small_burst_takes_no_memory_with(struct bench *b)
{
	static const size_t sizes[] = {54, 1000, 4096, 9000, 36000};
	static uint32_t ids[16 * SMALL / 54];

	for (size_t i = 0; i < LENGTH(sizes); i++) {
		size_t most = (sizes[i] <= 4096 ? 15 * SMALL : 3 * LARGE) / (sizes[i] + 16);
		int64_t calls = 0;

		for (int round = 0; round < 5; round++) {
			if (round == 1)
				calls = bench_calls(b);
			for (size_t n = 0; n < most; n++)
				assert_non_null(wq__slab_alloc(&b->s, sizes[i], &ids[n]));
			for (size_t n = 0; n < most; n++)
				wq__slab_free(&b->s, ids[n]);
		}
		IS(bench_calls(b), calls);
	}
}
BOTH(a_small_burst_takes_no_memory)

static void shuffle(struct object *objects, size_t n)
{
	uint64_t rng = seed;

	while (n > 1) {
		size_t j = rng_below(&rng, n--);
		struct object o = objects[n];

		objects[n] = objects[j];
		objects[j] = o;
	}
}

/* Freed in three orders. No free does long work: two runs and a group go back at most. */
static void a_burst_goes_back_with(struct bench *b)
{
	enum { N = 200000, SIZE = 64 };
	struct object *objects = calloc(N, sizeof *objects);

	assert_non_null(objects);
	for (int order = 0; order < 3; order++) {
		for (int i = 0; i < N; i++)
			object_new(b, &objects[i], SIZE, (unsigned char)i);
		assert_true(bench_bytes(b) <= (size_t)N * SIZE * 103 / 100);
		if (order == 2)
			shuffle(objects, N);
		for (int i = 0; i < N; i++) {
			int64_t calls = bench_calls(b);

			object_free(b, &objects[order == 1 ? N - 1 - i : i]);
			assert_true(bench_calls(b) - calls <= 4);
		}
		assert_true(bench_bytes(b) <= KEPT);
		/* and neither descriptors nor address space; in any order the idle are anywhere */
		if (order < 2)
			assert_true(b->mapped ? kernel.nmaps <= 3 : b->mem.live <= 32);
	}
	free(objects);
}
BOTH(a_burst_goes_back)

/* Each of them holds its run and nothing else, though there is one in every group. */
static void a_few_that_stay_hold_little_with(struct bench *b)
{
	enum { N = 400000, SIZE = 72, FEW = 11 };
	struct object *objects = calloc(N, sizeof *objects);
	size_t peak;

	assert_non_null(objects);
	for (int i = 0; i < N; i++)
		object_new(b, &objects[i], SIZE, (unsigned char)i);
	peak = bench_bytes(b);
	assert_true(peak + (b->mapped ? 16 * SMALL : 0) >= (size_t)N * SIZE);
	for (int i = 0; i < N; i++)
		if (i % (N / FEW) != 5)
			object_free(b, &objects[i]);
	print_message("%s: %zu of %zu bytes stay\n", b->mapped ? "mapped" : "allocated",
	              bench_bytes(b), peak);
	/* descriptors and tables are in proportion to the peak */
	assert_true(bench_bytes(b) <= (size_t)(FEW + 2) * SMALL + SMALL_KEPT + peak / 100);
	for (int i = 0; i < N; i++)
		if (objects[i].p)
			object_free(b, &objects[i]);
	free(objects);
}
BOTH(a_few_that_stay_hold_little)

/*
 * One object that comes and goes asks for nothing, and so do those of many classes in turn. The
 * run that became empty last stays with its class.
 */
static void a_single_object_to_and_fro_with(struct bench *b)
{
	enum { CLASSES = 12 };
	struct object o;
	int64_t calls = 0;

	for (int i = 0; i < 10000; i++) {
		if (i == CLASSES)
			calls = bench_calls(b);
		object_new(b, &o, 56 + 8 * (size_t)(i % CLASSES), 1);
		object_free(b, &o);
		assert_non_null(b->s.room[o.size / 8]);
	}
	IS(bench_calls(b), calls);
}
BOTH(a_single_object_to_and_fro)

/* Every size that the tape asks for fails at first, at each allocation that it makes. */
static void out_of_memory_changes_nothing(void **state)
{
	enum { N = 40000 };
	static struct object objects[N];
	struct bench b;
	uint64_t rng = seed;

	(void)state;
	bench_open(&b, false);
	for (int n = 0; n < N; n++) {
		size_t size = n % 100 ? 100 : 1 + rng_below(&rng, WQ__SLAB_MAX);
		uint32_t id = 77;

		for (int64_t later = 0;; later++) {
			int64_t bytes = b.mem.bytes, failed = b.mem.failed;
			void *p;

			b.mem.fail_at = b.mem.calls + later;
			p = wq__slab_alloc(&b.s, size, &id);
			b.mem.fail_at = -1;
			if (p) {
				objects[n] = (struct object){p, size, id, (unsigned char)n};
				memset(p, n & 0xff, size);
				break;
			}
			IS(b.mem.failed, failed + 1);
			IS(id, 77);
			/* a larger table may have come of it, and stays */
			assert_true(b.mem.bytes <= bytes + (64 << 10));
		}
	}
	assert_true(b.mem.failed > 100);
	for (int n = 0; n < N; n++)
		object_free(&b, &objects[n]);
	bench_close(&b);
}

/* The kernel refuses: the same. */
static void no_memory_to_map(void **state)
{
	struct bench b;
	uint32_t id;
	size_t n = 0;

	(void)state;
	bench_open(&b, true);
	for (int round = 0; round < 400; round++) {
		kernel.refuse = true;
		while (wq__slab_alloc(&b.s, 4096, &id))
			n++;
		kernel.refuse = false;
		assert_non_null(wq__slab_alloc(&b.s, 4096, &id));
		n++;
	}
	assert_true(n >= 400 * 4);
	bench_close(&b);
}

/*
 * So many groups that the tables by number double again and again, the large ones step by
 * step. Objects are found at every moment, also those whose groups went and came again
 * meanwhile. They are not touched: it is address space only.
 */
struct place {
	void *p;
	uint32_t id;
};

static void place_take(struct bench *b, struct place *o)
{
	o->p = wq__slab_alloc(&b->s, 64 << 10, &o->id);
	assert_non_null(o->p);
}

static void places_are_found(struct bench *b, const struct place *o, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert_ptr_equal(wq__slab_at(&b->s, o[i].id), o[i].p);
		assert_true((char *)o[i].p >= wq__run_of(&b->s.runs, o[i].id)->base);
		assert_true((char *)o[i].p < wq__run_of(&b->s.runs, o[i].id)->base + LARGE);
	}
}

static void tables_grow_in_steps(void **state)
{
	enum { EACH = 32, GROUPS = 300, OBJECTS = GROUPS * EACH };
	static struct place o[OBJECTS];
	struct bench b;
	int64_t most = 0;

	(void)state;
	bench_open(&b, true);
	for (size_t n = 0; n < OBJECTS; n++) {
		int64_t calls = kernel.calls;

		place_take(&b, &o[n]);
		if (kernel.calls - calls > most)
			most = kernel.calls - calls;
		if (kernel.calls != calls) /* a new group */
			places_are_found(&b, o, n + 1);
		/* so little is left to be copied when it has to be whole */
		if (b.s.runs.cap > 64 && b.s.runs.ngroups == b.s.runs.cap - 1)
			assert_true(b.s.runs.ncopied + 4 >= b.s.runs.cap);
		if (n % (50 * EACH) != 49 * EACH)
			continue;
		for (size_t i = 0; i < n / 2; i++)
			wq__slab_free(&b.s, o[i].id);
		/* other memory has come between */
		void *other = wq__map(3 << 20);

		for (size_t i = 0; i < n / 2; i++)
			place_take(&b, &o[i]);
		places_are_found(&b, o, n + 1);
		wq__unmap(other, 3 << 20);
	}
	assert_true(b.s.runs.ngroups > 256 && b.s.runs.later);
	assert_true(most <= 8);
	for (size_t n = 0; n < OBJECTS; n++)
		wq__slab_free(&b.s, o[n].id);
	bench_close(&b);
}

/* A lower limit than 32 GiB: what does not fit is refused, what is freed fits again. */
static void the_limit(void **state)
{
	enum { GROUPS = 5, N = 200000 };
	static uint32_t ids[N];
	struct bench b;
	size_t n = 0, all = 0;

	(void)state;
	bench_open(&b, false);
	b.s.runs.limit = GROUPS;
	for (int round = 0; round < 3; round++) {
		while (n < N && wq__slab_alloc(&b.s, 56, &ids[n]))
			n++;
		/* 4 whole groups, and the first one, which is small */
		assert_in_range(n, 4 * 2 * 1024 * 1024 / 57, N - 1);
		IS(b.s.runs.ngroups, GROUPS);
		if (round > 0)
			assert_int_equal(n, all);
		all = n;

		uint32_t id = 77;

		assert_null(wq__slab_alloc(&b.s, 56, &id));
		assert_null(wq__slab_alloc(&b.s, WQ__SLAB_MAX, &id));
		IS(id, 77);
		wq__slab_free(&b.s, ids[0]);
		assert_non_null(wq__slab_alloc(&b.s, 56, &ids[0]));
		/* all go, or half of them: numbers of groups are used again */
		while (n > (round == 0 ? 0 : all / 2))
			wq__slab_free(&b.s, ids[--n]);
	}
	bench_close(&b);
}

/* [ENOMEM] And the queue says so, keeps what it has, and goes on when there is room. */
static void a_queue_at_the_limit(void **state)
{
	struct fixture f;
	wq_item it;
	char key[24];
	int64_t n = 0;
	int rc;

	(void)state;
	fixture_open(&f, NULL);
	IS(wq_add_str(f.q, "whose"), WQ_QUEUED);
	get_is(f.q, &it, "whose");
	IS(wq_done(f.q, &it), WQ_OK);
	((struct wq__memory *)(uintptr_t)it.owner)->slab.runs.limit = 2;
	for (;; n++) {
		int len = snprintf(key, sizeof key, "pod-%09d", (int)n);

		rc = wq_add(f.q, key, (size_t)len);
		if (rc != WQ_QUEUED)
			break;
	}
	IS(rc, WQ_ENOMEM);
	assert_true(n > 30000);
	IS(state_of(f.q, key), 0);
	IS(wq_len(f.q), n);
	for (int i = 0; i < 1000; i++) {
		IS(wq_try_get(f.q, &it), WQ_OK);
		IS(wq_done(f.q, &it), WQ_OK);
	}
	IS(wq_add_str(f.q, key), WQ_QUEUED);
	check_whole(f.q, n - 1000 + 1, 0);
	fixture_close(&f, (int)(n - 1000 + 1));
}

static void release_with_objects_in_use_with(struct bench *b)
{
	struct object o;

	for (size_t size = 1; size <= WQ__SLAB_MAX; size += 701)
		object_new(b, &o, size, 3);
	for (int i = 0; i < 100000; i++)
		object_new(b, &o, 48, 3);
}
BOTH(release_with_objects_in_use)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(objects_do_not_overlap),
	    cmocka_unit_test(every_size),
	    cmocka_unit_test(no_cliff),
	    cmocka_unit_test(a_small_burst_takes_no_memory),
	    cmocka_unit_test(a_burst_goes_back),
	    cmocka_unit_test(a_few_that_stay_hold_little),
	    cmocka_unit_test(a_single_object_to_and_fro),
	    cmocka_unit_test(out_of_memory_changes_nothing),
	    cmocka_unit_test(no_memory_to_map),
	    cmocka_unit_test(tables_grow_in_steps),
	    cmocka_unit_test(the_limit),
	    cmocka_unit_test(a_queue_at_the_limit),
	    cmocka_unit_test(release_with_objects_in_use),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("slab", tests, NULL, NULL);
}
