/* [H1] The priority queue: order, stability, names that are stale or of another heap, memory. */
#include "../support/support.h"

#include <wq/heap.h>

static uint64_t seed;

/* Values are numbers. */
static void *value_of(intptr_t i)
{
	return (void *)i;
}

static wq_heap *open_heap(struct memory *mem)
{
	wq_heap *h = NULL;

	memory_init(mem);
	wq_allocator a = memory_allocator(mem);

	IS(wq_heap_new(&h, &a), WQ_OK);
	assert_non_null(h);
	return h;
}

static void close_heap(wq_heap *h, struct memory *mem, int64_t left)
{
	IS(wq_heap_free(h), left);
	memory_balanced(mem);
}

static void add(wq_heap *h, int64_t priority, intptr_t value, wq_heap_elem *e)
{
	IS(wq_heap_add(h, priority, value_of(value), e), WQ_OK);
}

static void pop_is(wq_heap *h, int64_t priority, intptr_t value)
{
	int64_t size = wq_heap_size(h), p = -77;
	void *v = NULL;

	IS(wq_heap_peek(h, &p, &v), WQ_OK);
	IS(p, priority);
	IS((intptr_t)v, value);
	IS(wq_heap_size(h), size);
	p = -77;
	v = NULL;
	IS(wq_heap_pop(h, &p, &v), WQ_OK);
	IS(p, priority);
	IS((intptr_t)v, value);
	IS(wq_heap_size(h), size - 1);
}

static void empty_is_empty(wq_heap *h)
{
	int64_t p = 5;
	void *v = &p;

	IS(wq_heap_size(h), 0);
	IS(wq_heap_peek(h, &p, &v), WQ_EAGAIN);
	IS(wq_heap_pop(h, &p, &v), WQ_EAGAIN);
	IS(p, 5); /* written only on success */
	assert_ptr_equal(v, &p);
}

/* ---- order ----------------------------------------------------------------- */

static void smallest_first_and_size_counts(void **state)
{
	struct memory mem;
	wq_heap *h = open_heap(&mem);

	(void)state;
	empty_is_empty(h);
	add(h, 30, 1, NULL);
	add(h, 10, 2, NULL);
	add(h, 20, 3, NULL);
	add(h, INT64_MIN, 4, NULL);
	add(h, INT64_MAX, 5, NULL);
	add(h, -1, 6, NULL);
	IS(wq_heap_size(h), 6);
	pop_is(h, INT64_MIN, 4);
	pop_is(h, -1, 6);
	pop_is(h, 10, 2);
	pop_is(h, 20, 3);
	pop_is(h, 30, 1);
	pop_is(h, INT64_MAX, 5);
	empty_is_empty(h);
	close_heap(h, &mem, 0);
}

static void outputs_are_optional_and_null_is_a_value(void **state)
{
	struct memory mem;
	wq_heap *h = open_heap(&mem);
	wq_heap_elem e;
	void *v = &mem;

	(void)state;
	add(h, 1, 0, NULL);
	add(h, 2, 0, NULL);
	add(h, 3, 0, &e);
	IS(wq_heap_peek(h, NULL, NULL), WQ_OK);
	IS(wq_heap_pop(h, NULL, NULL), WQ_OK);
	IS(wq_heap_pop(h, NULL, &v), WQ_OK);
	assert_null(v);
	IS(wq_heap_remove(h, e, NULL), WQ_OK);
	empty_is_empty(h);
	close_heap(h, &mem, 0);
}

static void equal_priorities_keep_their_order(void **state)
{
	enum { N = 1000 };
	struct memory mem;
	wq_heap *h = open_heap(&mem);

	(void)state;
	for (int i = 0; i < N; i++)
		add(h, i % 3, i, NULL);
	for (int p = 0; p < 3; p++)
		for (int i = p; i < N; i += 3)
			pop_is(h, p, i);
	/* pops in between make no difference */
	for (int i = 0; i < N; i++) {
		add(h, 7, 2 * i, NULL);
		add(h, 7, 2 * i + 1, NULL);
		pop_is(h, 7, i);
	}
	for (int i = N; i < 2 * N; i++)
		pop_is(h, 7, i);
	close_heap(h, &mem, 0);
}

static void remove_takes_out_any_of_them(void **state)
{
	enum { N = 40 };
	wq_heap_elem e[N];
	struct memory mem;
	void *v;

	(void)state;
	for (int gone = 0; gone < N; gone++) {
		wq_heap *h = open_heap(&mem);

		for (int i = 0; i < N; i++)
			add(h, i * 7 % N, i, &e[i]);
		IS(wq_heap_remove(h, e[gone], &v), WQ_OK);
		IS((intptr_t)v, gone);
		IS(wq_heap_size(h), N - 1);
		for (int p = 0; p < N; p++)
			for (int i = 0; i < N; i++)
				if (i * 7 % N == p && i != gone)
					pop_is(h, p, i);
		empty_is_empty(h);
		close_heap(h, &mem, 0);
	}
}

static void update_moves_up_down_and_behind_its_equals(void **state)
{
	struct memory mem;
	wq_heap *h = open_heap(&mem);
	wq_heap_elem e[5];

	(void)state;
	for (int i = 0; i < 5; i++)
		add(h, 10, i, &e[i]);
	IS(wq_heap_update(h, e[3], 5), WQ_OK);
	IS(wq_heap_update(h, e[0], 20), WQ_OK);
	IS(wq_heap_update(h, e[1], 10), WQ_OK); /* the same: it counts as the last now */
	IS(wq_heap_size(h), 5);
	pop_is(h, 5, 3);
	pop_is(h, 10, 2);
	pop_is(h, 10, 4);
	pop_is(h, 10, 1);
	IS(wq_heap_update(h, e[0], INT64_MIN), WQ_OK); /* the only one */
	pop_is(h, INT64_MIN, 0);
	empty_is_empty(h);
	close_heap(h, &mem, 0);
}

/* ---- names ------------------------------------------------------------------- */

/* Neither call does anything to a heap of 1, 2 and 3. */
static void refused(wq_heap *h, wq_heap_elem e, int status)
{
	void *v = &e;

	IS(wq_heap_remove(h, e, &v), status);
	assert_ptr_equal(v, &e);
	IS(wq_heap_remove(h, e, NULL), status);
	IS(wq_heap_update(h, e, -100), status);
	IS(wq_heap_size(h), 3);
}

static void stale_names_are_detected(void **state)
{
	struct memory mem;
	wq_heap *h = open_heap(&mem);
	wq_heap_elem popped, removed, e;

	(void)state;
	add(h, 0, 9, &popped);
	add(h, 5, 8, &removed);
	IS(wq_heap_remove(h, removed, NULL), WQ_OK);
	pop_is(h, 0, 9);
	/* their places are taken by others */
	add(h, 1, 1, NULL);
	add(h, 2, 2, NULL);
	add(h, 3, 3, &e);
	refused(h, popped, WQ_ESTALE);
	refused(h, removed, WQ_ESTALE);
	/* places that never were */
	wq_heap_elem wild = e;

	wild.index = 1000;
	refused(h, wild, WQ_ESTALE);
	wild.index = UINT32_MAX;
	refused(h, wild, WQ_ESTALE);
	wild = e;
	wild.generation += 2;
	refused(h, wild, WQ_ESTALE);
	pop_is(h, 1, 1);
	pop_is(h, 2, 2);
	pop_is(h, 3, 3);
	IS(wq_heap_remove(h, e, NULL), WQ_ESTALE);
	empty_is_empty(h);
	close_heap(h, &mem, 0);
}

static void names_of_another_heap_are_detected(void **state)
{
	struct memory mem, mem2;
	wq_heap *h = open_heap(&mem), *other = open_heap(&mem2);
	wq_heap_elem e, gone;

	(void)state;
	for (int i = 1; i <= 3; i++)
		add(h, i, i, NULL);
	add(other, 1, 10, &e);
	add(other, 2, 20, &gone);
	IS(wq_heap_remove(other, gone, NULL), WQ_OK);
	refused(h, e, WQ_EOTHERQUEUE);
	refused(h, gone, WQ_EOTHERQUEUE); /* that comes first */
	refused(h, (wq_heap_elem){0}, WQ_EOTHERQUEUE);
	IS(wq_heap_size(other), 1);
	IS(wq_heap_update(other, e, 4), WQ_OK);
	pop_is(other, 4, 10);
	for (int i = 1; i <= 3; i++)
		pop_is(h, i, i);
	close_heap(h, &mem, 0);
	close_heap(other, &mem2, 0);
}

/* A place that is used again and again: each name fits one life of it. */
static void every_life_of_a_place_has_its_own_name(void **state)
{
	enum { LIVES = 3000 };
	static wq_heap_elem names[LIVES];
	struct memory mem;
	wq_heap *h = open_heap(&mem);

	(void)state;
	for (int i = 0; i < LIVES; i++) {
		add(h, i, i, &names[i]);
		for (int old = 0; old < i; old += 1 + i / 20)
			IS(wq_heap_remove(h, names[old], NULL), WQ_ESTALE);
		wq_heap_elem copy = names[i];

		IS(wq_heap_remove(h, copy, NULL), WQ_OK);
		IS(wq_heap_remove(h, names[i], NULL), WQ_ESTALE);
	}
	empty_is_empty(h);
	close_heap(h, &mem, 0);
}

static void bad_arguments(void **state)
{
	struct memory mem;
	wq_allocator a, no_alloc, no_free;
	wq_heap *h = NULL;
	wq_heap_elem e = {0};

	(void)state;
	memory_init(&mem);
	no_alloc = no_free = a = memory_allocator(&mem);
	no_alloc.alloc = NULL;
	no_free.free = NULL;
	IS(wq_heap_new(NULL, NULL), WQ_EINVAL);
	IS(wq_heap_new(&h, &no_alloc), WQ_EINVAL);
	IS(wq_heap_new(&h, &no_free), WQ_EINVAL);
	assert_null(h);
	IS(wq_heap_free(NULL), 0);
	IS(wq_heap_add(NULL, 0, NULL, &e), WQ_EINVAL);
	IS(wq_heap_peek(NULL, NULL, NULL), WQ_EINVAL);
	IS(wq_heap_pop(NULL, NULL, NULL), WQ_EINVAL);
	IS(wq_heap_remove(NULL, e, NULL), WQ_EINVAL);
	IS(wq_heap_update(NULL, e, 0), WQ_EINVAL);
	IS(wq_heap_size(NULL), WQ_EINVAL);
	/* with the default allocator */
	IS(wq_heap_new(&h, NULL), WQ_OK);
	add(h, 1, 1, &e);
	add(h, 1, 2, NULL);
	IS(wq_heap_free(h), 2);
}

/* ---- memory ------------------------------------------------------------------ */

static void each_allocation_fails_once(void **state)
{
	enum { N = 500 };
	int64_t refusals = 0;
	bool hit = true;

	(void)state;
	for (int64_t n = 0; hit; n++) {
		struct memory mem;
		wq_heap *h = NULL;
		wq_heap_elem e = {0};

		memory_init(&mem);
		wq_allocator a = memory_allocator(&mem);

		mem.fail_at = n;
		if (wq_heap_new(&h, &a) != WQ_OK) {
			assert_null(h);
			IS(mem.live, 0);
			IS(wq_heap_new(&h, &a), WQ_OK);
			refusals++;
		}
		for (int i = 0; i < N; i++) {
			int64_t priority = (i * 37) % N;
			int rc = wq_heap_add(h, priority, value_of(i), &e);

			if (rc == WQ_OK)
				continue;
			IS(rc, WQ_ENOMEM);
			IS(wq_heap_size(h), i);
			add(h, priority, i, &e);
			refusals++;
		}
		hit = mem.failed > 0;
		/* what takes nothing in needs no memory */
		mem.fail_at = 0;
		mem.fail_on = true;
		IS(wq_heap_update(h, e, -1), WQ_OK);
		IS(wq_heap_remove(h, e, NULL), WQ_OK);
		for (int p = 0; p < N; p++)
			if (p != ((N - 1) * 37) % N)
				IS(wq_heap_pop(h, NULL, NULL), WQ_OK);
		close_heap(h, &mem, 0);
	}
	assert_true(refusals > 8);
}

static void free_says_how_many_were_left(void **state)
{
	struct memory mem;

	(void)state;
	for (int n = 0; n < 40; n++) {
		wq_heap *h = open_heap(&mem);

		for (int i = 0; i < n; i++)
			add(h, i, i, NULL);
		close_heap(h, &mem, n);
	}
}

/* ---- against an array ---------------------------------------------------------- */

struct entry {
	int64_t priority;
	uint64_t seq;
	intptr_t value;
	wq_heap_elem elem;
};

static size_t first_of(const struct entry *in, size_t n)
{
	size_t first = 0;

	for (size_t i = 1; i < n; i++)
		if (in[i].priority < in[first].priority ||
		    (in[i].priority == in[first].priority && in[i].seq < in[first].seq))
			first = i;
	return first;
}

/* An element's value is the number of the add that made it. */
static void random_calls_against_an_array(void **state)
{
	enum { MAX = 300, CALLS = 60000 };
	static struct entry in[MAX];
	struct memory mem;
	wq_heap *h = open_heap(&mem);
	wq_heap_elem stale = {.heap = h, .index = 0, .generation = 99};
	uint64_t rng = seed, seq = 0;
	size_t n = 0;

	(void)state;
	for (int call = 0; call < CALLS; call++) {
		/* it grows and shrinks in waves; priorities repeat */
		uint64_t r = rng_below(&rng, 8), add_below = call / 3000 % 2 ? 2 : 5;
		int64_t priority = (int64_t)rng_below(&rng, 40) - 20;
		size_t i = n > 0 ? rng_below(&rng, n) : 0;
		void *v = NULL;

		if (r < add_below) {
			if (n == MAX)
				continue;
			add(h, priority, call, &in[n].elem);
			in[n].priority = priority;
			in[n].value = call;
			in[n++].seq = seq++;
			continue;
		}
		if (n == 0) {
			empty_is_empty(h);
			continue;
		}
		switch (r) {
		case 5:
			IS(wq_heap_update(h, in[i].elem, priority), WQ_OK);
			in[i].priority = priority;
			in[i].seq = seq++;
			continue;
		case 6:
			IS(wq_heap_remove(h, in[i].elem, &v), WQ_OK);
			IS((intptr_t)v, in[i].value);
			break;
		default:
			i = first_of(in, n);
			pop_is(h, in[i].priority, in[i].value);
		}
		/* It was that one, for it has left; and so has the one before. */
		IS(wq_heap_remove(h, in[i].elem, NULL), WQ_ESTALE);
		IS(wq_heap_update(h, stale, 0), WQ_ESTALE);
		stale = in[i].elem;
		in[i] = in[--n];
		IS(wq_heap_size(h), (int64_t)n);
	}
	close_heap(h, &mem, (int64_t)n);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(smallest_first_and_size_counts),
	    cmocka_unit_test(outputs_are_optional_and_null_is_a_value),
	    cmocka_unit_test(equal_priorities_keep_their_order),
	    cmocka_unit_test(remove_takes_out_any_of_them),
	    cmocka_unit_test(update_moves_up_down_and_behind_its_equals),
	    cmocka_unit_test(stale_names_are_detected),
	    cmocka_unit_test(names_of_another_heap_are_detected),
	    cmocka_unit_test(every_life_of_a_place_has_its_own_name),
	    cmocka_unit_test(bad_arguments),
	    cmocka_unit_test(each_allocation_fails_once),
	    cmocka_unit_test(free_says_how_many_were_left),
	    cmocka_unit_test(random_calls_against_an_array),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
