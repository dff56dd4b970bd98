/* The slab: objects do not overlap, are aligned, keep their names, and blocks go back. */
#include "../support/support.h"

#include "base/slab.h"

static uint64_t seed;

struct object {
	unsigned char *p;
	size_t size;
	uint32_t id;
	unsigned char fill;
};

static void object_new(wq__slab *s, struct object *o, size_t size, unsigned char fill)
{
	o->size = size;
	o->fill = fill;
	o->id = 0;
	o->p = wq__slab_alloc(s, size, &o->id);
	assert_non_null(o->p);
	assert_int_equal((uintptr_t)o->p % 8, 0);
	assert_int_not_equal(o->id, 0);
	assert_ptr_equal(wq__slab_at(s, o->id), o->p);
	memset(o->p, fill, size);
}

/* Nobody else has written to it. */
static void object_free(wq__slab *s, struct object *o)
{
	assert_ptr_equal(wq__slab_at(s, o->id), o->p);
	for (size_t i = 0; i < o->size; i++)
		if (o->p[i] != o->fill)
			fail_msg("byte %zu of an object of %zu bytes was overwritten", i, o->size);
	wq__slab_free(s, o->id);
	o->p = NULL;
}

static void open_slab(wq__slab *s, struct memory *mem, wq_allocator *a)
{
	memory_init(mem);
	*a = memory_allocator(mem);
	wq__slab_init(s, a);
}

/* A random tape of many sizes at once; a few sizes are frequent, as in a queue. */
static void objects_do_not_overlap(void **state)
{
	enum { OBJECTS = 3000, STEPS = 40000 };
	static struct object objects[OBJECTS];
	struct memory mem;
	wq_allocator a;
	wq__slab s;
	uint64_t rng = seed;

	(void)state;
	memset(objects, 0, sizeof objects);
	open_slab(&s, &mem, &a);
	for (int step = 0; step < STEPS; step++) {
		struct object *o = &objects[rng_below(&rng, OBJECTS)];
		size_t size = 40 + rng_below(&rng, 60);

		if (rng_below(&rng, 20) == 0)
			size = 1 + rng_below(&rng, 2000);
		if (rng_below(&rng, 200) == 0)
			size = 1 + rng_below(&rng, WQ__SLAB_MAX);
		if (o->p)
			object_free(&s, o);
		else
			object_new(&s, o, size, (unsigned char)rng_next(&rng));
	}
	for (int i = 0; i < OBJECTS; i++)
		if (objects[i].p)
			object_free(&s, &objects[i]);
	/* nothing is in use: a few small blocks and the list of blocks may stay */
	assert_true(mem.live <= WQ__SLAB_SPARES + 1);
	assert_true(mem.bytes <= WQ__SLAB_SPARES * (64 << 10) + (1 << 16));
	wq__slab_release(&s);
	memory_balanced(&mem);
}

static void every_size(void **state)
{
	enum { EACH = 9 };
	struct object objects[EACH];
	struct memory mem;
	wq_allocator a;
	wq__slab s;

	(void)state;
	open_slab(&s, &mem, &a);
	for (size_t size = 1; size <= WQ__SLAB_MAX; size += size < 1100 ? 1 : 333) {
		for (int i = 0; i < EACH; i++)
			object_new(&s, &objects[i], size, (unsigned char)(i + 1));
		for (int i = 0; i < EACH; i++)
			object_free(&s, &objects[(i * 4) % EACH]);
	}
	/* and the edges of the classes */
	for (size_t power = 1024; power <= 65536; power *= 2)
		for (size_t size = power - 1; size <= power + 1; size++) {
			for (int i = 0; i < EACH; i++)
				object_new(&s, &objects[i], size, (unsigned char)(i + 1));
			for (int i = EACH; i-- > 0;)
				object_free(&s, &objects[i]);
		}
	object_new(&s, &objects[0], WQ__SLAB_MAX, 1);
	object_free(&s, &objects[0]);
	assert_true(mem.live <= WQ__SLAB_SPARES + 1);
	wq__slab_release(&s);
	memory_balanced(&mem);
}

/* So many that blocks become large ones, freed in three orders. */
static void a_burst_goes_back(void **state)
{
	enum { N = 200000, SIZE = 64 };
	struct object *objects = calloc(N, sizeof *objects);
	struct memory mem;
	wq_allocator a;
	wq__slab s;
	uint64_t rng = seed;

	(void)state;
	assert_non_null(objects);
	open_slab(&s, &mem, &a);
	for (int order = 0; order < 3; order++) {
		for (int i = 0; i < N; i++)
			object_new(&s, &objects[i], SIZE, (unsigned char)i);
		assert_true(mem.peak <= (int64_t)N * SIZE + (4 << 20));
		for (size_t i = N; i-- > 1 && order == 2;) { /* shuffle */
			size_t j = rng_below(&rng, i + 1);
			struct object o = objects[i];

			objects[i] = objects[j];
			objects[j] = o;
		}
		for (int i = 0; i < N; i++)
			object_free(&s, &objects[order == 1 ? N - 1 - i : i]);
		assert_true(mem.bytes <= WQ__SLAB_SPARES * (64 << 10) + (1 << 14));
	}
	free(objects);
	wq__slab_release(&s);
	memory_balanced(&mem);
}

/* One object that comes and goes asks the allocator for nothing. */
static void a_single_object_to_and_fro(void **state)
{
	struct memory mem;
	wq_allocator a;
	wq__slab s;
	struct object o;

	(void)state;
	open_slab(&s, &mem, &a);
	object_new(&s, &o, 50, 1);
	object_free(&s, &o);

	int64_t calls = mem.calls, live = mem.live;

	for (int i = 0; i < 10000; i++) {
		object_new(&s, &o, 50, 1);
		object_free(&s, &o);
	}
	IS(mem.calls, calls);
	IS(mem.live, live);
	wq__slab_release(&s);
	memory_balanced(&mem);
}

static void out_of_memory_changes_nothing(void **state)
{
	enum { N = 4000 };
	static struct object objects[N];
	struct memory mem;
	wq_allocator a;
	wq__slab s;
	int n = 0;

	(void)state;
	open_slab(&s, &mem, &a);
	for (int round = 0; n < N; round++) {
		uint32_t id = 77;

		mem.fail_at = mem.calls; /* the next one, and only then when it is needed */
		mem.fail_on = true;

		void *p = wq__slab_alloc(&s, 100, &id);

		mem.fail_at = -1;
		if (p == NULL) {
			object_new(&s, &objects[n], 100, (unsigned char)n);
		} else {
			objects[n] = (struct object){p, 100, id, (unsigned char)n};
			memset(p, n & 0xff, 100);
		}
		n++;
	}
	assert_true(mem.failed > 2);
	while (n > 0)
		object_free(&s, &objects[--n]);
	wq__slab_release(&s);
	memory_balanced(&mem);
}

static void *plain_alloc(void *ctx, size_t size, size_t align)
{
	void *p = NULL;

	(void)ctx;
	return posix_memalign(&p, align, size) == 0 ? p : NULL;
}

static void plain_free(void *ctx, void *p, size_t size)
{
	(void)ctx;
	(void)size;
	free(p);
}

/* Numbers of blocks are few: those of blocks that have gone back are used again. */
static void more_blocks_than_there_are_numbers(void **state)
{
	wq_allocator a = {.alloc = plain_alloc, .free = plain_free};
	wq__slab s;
	uint32_t kept, id;

	(void)state;
	wq__slab_init(&s, &a);
	assert_non_null(wq__slab_alloc(&s, 100, &kept));
	for (int i = 0; i < 3 * WQ__SLAB_BLOCKS_MAX / 2; i++) {
		/* a block of its own, too large to be kept */
		assert_non_null(wq__slab_alloc(&s, WQ__SLAB_MAX, &id));
		wq__slab_free(&s, id);
	}
	wq__slab_free(&s, kept);
	wq__slab_release(&s);
}

static void release_with_objects_in_use(void **state)
{
	struct memory mem;
	wq_allocator a;
	wq__slab s;
	struct object o;

	(void)state;
	open_slab(&s, &mem, &a);
	for (size_t size = 1; size <= WQ__SLAB_MAX; size += 701)
		object_new(&s, &o, size, 3);
	for (int i = 0; i < 30000; i++)
		object_new(&s, &o, 48, 3);
	wq__slab_release(&s);
	memory_balanced(&mem);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(objects_do_not_overlap),
	    cmocka_unit_test(every_size),
	    cmocka_unit_test(a_burst_goes_back),
	    cmocka_unit_test(a_single_object_to_and_fro),
	    cmocka_unit_test(out_of_memory_changes_nothing),
	    cmocka_unit_test(more_blocks_than_there_are_numbers),
	    cmocka_unit_test(release_with_objects_in_use),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("slab", tests, NULL, NULL);
}
