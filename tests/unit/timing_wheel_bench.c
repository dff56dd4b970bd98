#include "timing_wheel_bench.h"

void bench_open(struct bench *b, int64_t now_ns, uint32_t tick_shift, uint32_t slot_bits)
{
	memset(b, 0, sizeof *b);
	memory_init(&b->mem);
	b->allocator = memory_allocator(&b->mem);
	wq__slab_init(&b->slab, &b->allocator);
	wq__tw_init(&b->tw, &b->slab, &b->allocator, now_ns, tick_shift, slot_bits);
}

void bench_close(struct bench *b)
{
	wq__tw_release(&b->tw);
	wq__slab_release(&b->slab);
	memory_balanced(&b->mem);
	free(b->line);
	free(b->dead);
}

static void line_insert(struct bench *b, struct want w)
{
	if (b->end == b->cap) {
		b->cap = b->cap ? 2 * b->cap : 64;
		b->line = realloc(b->line, b->cap * sizeof *b->line);
		assert_non_null(b->line);
	}

	size_t low = b->first, high = b->end;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (b->line[mid].due_ns <= w.due_ns)
			low = mid + 1;
		else
			high = mid;
	}
	memmove(b->line + low + 1, b->line + low, (b->end - low) * sizeof *b->line);
	b->line[low] = w;
	b->end++;
	if (low < b->scan)
		b->scan = low;
}

size_t waiting(const struct bench *b)
{
	return b->end - b->first;
}

/* A number for a new reference. */
static uint64_t new_what(struct bench *b)
{
	if (++b->whats >= b->dead_cap) {
		size_t cap = b->dead_cap ? 2 * b->dead_cap : 1024;

		b->dead = realloc(b->dead, cap * sizeof *b->dead);
		assert_non_null(b->dead);
		memset(b->dead + b->dead_cap, 0, (cap - b->dead_cap) * sizeof *b->dead);
		b->dead_cap = cap;
	}
	return b->whats;
}

bool try_insert(struct bench *b, int64_t now_ns, int64_t due_ns)
{
	struct want w = {due_ns, new_what(b)};

	if (wq__tw_insert(&b->tw, now_ns, (wq__ref){.due_ns = due_ns, .what = w.what}) < 0)
		return false;
	line_insert(b, w);
	b->live++;
	return true;
}

void insert(struct bench *b, int64_t now_ns, int64_t due_ns)
{
	assert_true(try_insert(b, now_ns, due_ns));
}

static size_t keep(const void *owner, wq__ref *ref, size_t n)
{
	const struct bench *b = owner;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (!b->dead[ref[i].what])
			ref[kept++] = ref[i];
	return kept;
}

void kill_ref(struct bench *b, uint64_t what)
{
	assert_false(b->dead[what]);
	b->dead[what] = true;
	b->deaths++;
	b->live--;
	wq__tw_died(&b->tw, keep, b);
	if (b->tw.n > 2 * b->live && b->tw.n - 2 * b->live > b->most_over)
		b->most_over = b->tw.n - 2 * b->live;
}

/* The head of the line. Dead ones stand in it, and may have been swept. */
void was_popped(struct bench *b, wq__ref ref, int64_t now_ns)
{
	assert_true(ref.due_ns <= now_ns);
	while (b->first < b->end && b->dead[b->line[b->first].what] &&
	       b->line[b->first].what != ref.what)
		b->first++;
	assert_true(b->first < b->end);
	IS(ref.due_ns, b->line[b->first].due_ns);
	IS((int64_t)ref.what, (int64_t)b->line[b->first].what);
	b->first++;
	if (b->dead[ref.what])
		wq__tw_buried(&b->tw);
	else
		b->live--;
}

int64_t first_live(struct bench *b)
{
	if (b->scan < b->first)
		b->scan = b->first;
	while (b->scan < b->end && b->dead[b->line[b->scan].what])
		b->scan++;
	return b->scan < b->end ? b->line[b->scan].due_ns : INT64_MAX;
}

enum wq__tw_pop pop(struct bench *b, int64_t now_ns, size_t budget)
{
	size_t left = budget, n = b->tw.n;
	wq__ref ref = {0};
	enum wq__tw_pop got = wq__tw_pop(&b->tw, now_ns, &left, &ref);

	assert_true(left <= budget);
	switch (got) {
	case WQ__TW_POPPED:
		assert_true(left < budget);
		IS((int64_t)b->tw.n, (int64_t)n - 1);
		was_popped(b, ref, now_ns);
		break;
	case WQ__TW_AGAIN:
		IS((int64_t)left, 0);
		IS((int64_t)b->tw.n, (int64_t)n);
		break;
	case WQ__TW_NONE:
		IS((int64_t)b->tw.n, (int64_t)n);
		assert_true(b->live == 0 || first_live(b) > now_ns);
		break;
	}
	return got;
}

void pop_all(struct bench *b, int64_t now_ns, size_t budget)
{
	while (pop(b, now_ns, budget) != WQ__TW_NONE)
		;
}

void check_next(struct bench *b)
{
	int64_t next = wq__tw_next(&b->tw), first = first_live(b);

	assert_true(next <= first);
	if (b->deaths == 0)
		IS(next, first);
}

void check_first(struct bench *b)
{
	int64_t before = wq__tw_next(&b->tw), first = first_live(b);
	bool exact = !b->tw.opening && b->tw.ndead < WQ__TW_DEAD;
	int64_t found = wq__tw_first(&b->tw, keep, b);

	assert_true(found >= before && found <= first);
	if (exact)
		IS(found, first);
	check_next(b);
}

void bench_finish(struct bench *b)
{
	pop_all(b, INT64_MAX, SIZE_MAX);
	IS((int64_t)b->live, 0);
	IS((int64_t)b->tw.n, 0);
	IS((int64_t)b->tw.ndead, 0);
	IS(wq__tw_next(&b->tw), INT64_MAX);
	bench_close(b);
}
