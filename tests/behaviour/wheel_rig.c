#include "wheel_rig.h"

struct fired fired[FIRED_MAX];
size_t nfired;
wq_wheel *w;
struct memory mem;

const size_t wheel_sizes[7] = {0, 2, 4, 8, 16, 32, 64};

void wheel_open(int64_t now_ns, const wq_wheel_options *options)
{
	wq_wheel_options o = {0};

	if (options)
		o = *options;
	memory_init(&mem);
	wq_allocator a = memory_allocator(&mem);

	o.allocator = &a;
	w = NULL;
	nfired = 0;
	IS(wq_wheel_new(&w, now_ns, &o), WQ_OK);
	assert_non_null(w);
	IS(wq_wheel_size(w), 0);
	IS(wq_wheel_next_deadline(w), WQ_NEVER);
}

void wheel_close(int64_t left)
{
	IS(wq_wheel_free(w), left);
	memory_balanced(&mem);
}

void *tag(int t)
{
	return (void *)(intptr_t)t;
}

void note(void *ctx, const wq_timer_event *event)
{
	assert_true(nfired < FIRED_MAX);
	for (size_t i = 0; i < LENGTH(event->reserved); i++)
		assert_int_equal(event->reserved[i], 0);
	assert_true(event->due_ns <= event->now_ns); /* [H4] never early */
	fired[nfired].tag = (int)(intptr_t)ctx;
	fired[nfired++].event = *event;
}

wq_timer_id add(int64_t due_ns, int t)
{
	wq_timer_id id = 0;

	IS(wq_wheel_add(w, due_ns, note, tag(t), &id), WQ_OK);
	assert_int_not_equal(id, 0);
	return id;
}

void advance_fires(int64_t now_ns, const int *tags)
{
	size_t from = nfired, n = 0;

	while (tags[n] != 0)
		n++;
	IS(wq_wheel_advance(w, now_ns), (int64_t)n);
	IS((int64_t)(nfired - from), (int64_t)n);
	for (size_t i = 0; i < n; i++) {
		IS(fired[from + i].tag, tags[i]);
		IS(fired[from + i].event.now_ns, now_ns);
	}
}
