/*
 * The table of wq/queue.h, cell by cell: what each call does to a key in each
 * state. One test a cell, named "call, state"; the expectations below are the
 * table itself.
 */
#include "../support/cancel.h"
#include "../support/support.h"

enum {
	ABSENT = 0,
	Q = WQ_STATE_QUEUED,
	R = WQ_STATE_RUNNING,
	W = WQ_STATE_WAITING,
	RD = R | WQ_STATE_DIRTY,
	RW = R | W,
	L = WQ_STATE_LEFT,
	T = WQ_STATE_RETRYING,
};

/*
 * AFTER, LIMITED, RETRY and MOVE (wq_reschedule()) ask for an earlier time than
 * the copy that waits has.
 */
enum call {
	ADD,
	AFTER,
	LIMITED,
	DUE,
	CANCEL,
	MOVE,
	DONE,
	RETRY,
	TAIL,
	HEAD,
	NEXT,
	EXTEND,
	LOST,
	GET,
	FORGET,
	SHUTDOWN
};

static const int64_t wait_ns = WQ_SECOND, earlier_ns = WQ_SECOND / 2;

/*
 * `old`: the call is made with an item whose hold is over, which every state
 * must survive; otherwise with the hold that makes the key running.
 */
struct cell {
	const char *name;
	enum call call;
	int before;
	bool old;
	int answer;
	int after;
	int touches;
};

static const struct cell cells[] = {
    {"add, absent", ADD, ABSENT, false, WQ_QUEUED, Q, 0},
    {"add, queued", ADD, Q, false, WQ_MERGED, Q, 1},
    {"add, running", ADD, R, false, WQ_MARKED, RD, 0},
    {"add, running and dirty", ADD, RD, false, WQ_MERGED, RD, 0},
    {"add, waiting", ADD, W, false, WQ_QUEUED, Q, 0},
    {"add, running and waiting", ADD, RW, false, WQ_MARKED, RD, 0},

    {"add_after, absent", AFTER, ABSENT, false, WQ_DELAYED, W, 0},
    {"add_after, waiting", AFTER, W, false, WQ_MOVED, W, 0},
    {"add_after, queued", AFTER, Q, false, WQ_MERGED, Q, 1},
    {"add_after, running", AFTER, R, false, WQ_DELAYED, RW, 0},
    {"add_after, running and dirty", AFTER, RD, false, WQ_MERGED, RD, 0},
    {"add_after, running and waiting", AFTER, RW, false, WQ_MOVED, RW, 0},

    {"add_limited, absent", LIMITED, ABSENT, false, WQ_DELAYED, W | T, 0},
    {"add_limited, waiting", LIMITED, W, false, WQ_MOVED, W | T, 0},
    {"add_limited, queued", LIMITED, Q, false, WQ_MERGED, Q, 1},
    {"add_limited, running", LIMITED, R, false, WQ_DELAYED, RW | T, 0},
    {"add_limited, running and dirty", LIMITED, RD, false, WQ_MERGED, RD, 0},
    {"add_limited, running and waiting", LIMITED, RW, false, WQ_MOVED, RW | T, 0},

    {"comes due, absent", DUE, ABSENT, false, WQ_OK, ABSENT, 0},
    {"comes due, waiting", DUE, W, false, WQ_OK, Q, 0},
    {"comes due, queued", DUE, Q, false, WQ_OK, Q, 0},
    {"comes due, running", DUE, R, false, WQ_OK, R, 0},
    {"comes due, running and dirty", DUE, RD, false, WQ_OK, RD, 0},
    {"comes due, running and waiting", DUE, RW, false, WQ_OK, RD, 0},

    {"cancel, absent", CANCEL, ABSENT, true, WQ_ENOTFOUND, ABSENT, 0},
    {"cancel, waiting", CANCEL, W, false, W, ABSENT, 0},
    {"cancel, queued", CANCEL, Q, false, Q, ABSENT, 0},
    {"cancel, running", CANCEL, R, false, R, R, 0},
    {"cancel, running and dirty", CANCEL, RD, false, RD, R, 0},
    {"cancel, running and waiting", CANCEL, RW, false, RW, R, 0},

    {"reschedule, absent", MOVE, ABSENT, true, WQ_ENOTFOUND, ABSENT, 0},
    {"reschedule, waiting", MOVE, W, false, WQ_MOVED, W, 0},
    {"reschedule, queued", MOVE, Q, true, WQ_ENOTFOUND, Q, 0},
    {"reschedule, running", MOVE, R, true, WQ_ENOTFOUND, R, 0},
    {"reschedule, running and dirty", MOVE, RD, true, WQ_ENOTFOUND, RD, 0},
    {"reschedule, running and waiting", MOVE, RW, false, WQ_MOVED, RW, 0},

    {"done, absent", DONE, ABSENT, true, WQ_ESTALE, ABSENT, 0},
    {"done, queued", DONE, Q, true, WQ_ESTALE, Q, 0},
    {"done, running", DONE, R, false, WQ_OK, ABSENT, 0},
    {"done, running and dirty", DONE, RD, false, WQ_QUEUED, Q, 0},
    {"done, waiting", DONE, W, true, WQ_ESTALE, W, 0},
    {"done, running and waiting", DONE, RW, false, WQ_DELAYED, W, 0},
    {"done of an old hold, running", DONE, R, true, WQ_ESTALE, R, 0},
    {"done of an old hold, running and waiting", DONE, RW, true, WQ_ESTALE, RW, 0},
    {"done of an old hold, running and dirty", DONE, RD, true, WQ_ESTALE, RD, 0},

    {"retry, absent", RETRY, ABSENT, true, WQ_ESTALE, ABSENT, 0},
    {"retry, waiting", RETRY, W, true, WQ_ESTALE, W, 0},
    {"retry, queued", RETRY, Q, true, WQ_ESTALE, Q, 0},
    {"retry, running", RETRY, R, false, WQ_DELAYED, W | T, 0},
    {"retry, running and dirty", RETRY, RD, false, WQ_QUEUED, Q, 0},
    {"retry, running and waiting", RETRY, RW, false, WQ_DELAYED, W | T, 0},
    {"retry of an old hold, running", RETRY, R, true, WQ_ESTALE, R, 0},
    {"retry of an old hold, running and waiting", RETRY, RW, true, WQ_ESTALE, RW, 0},
    {"retry of an old hold, running and dirty", RETRY, RD, true, WQ_ESTALE, RD, 0},

    {"requeue to the tail, absent", TAIL, ABSENT, true, WQ_ESTALE, ABSENT, 0},
    {"requeue to the tail, queued", TAIL, Q, true, WQ_ESTALE, Q, 0},
    {"requeue to the tail, running", TAIL, R, false, WQ_QUEUED, Q, 0},
    {"requeue to the tail, running and dirty", TAIL, RD, false, WQ_QUEUED, Q, 0},
    {"requeue to the tail, waiting", TAIL, W, true, WQ_ESTALE, W, 0},
    {"requeue to the tail, running and waiting", TAIL, RW, false, WQ_QUEUED, Q, 0},
    {"requeue to the tail of an old hold, running", TAIL, R, true, WQ_ESTALE, R, 0},
    {"requeue to the tail of an old hold, running and waiting", TAIL, RW, true, WQ_ESTALE, RW, 0},
    {"requeue to the tail of an old hold, running and dirty", TAIL, RD, true, WQ_ESTALE, RD, 0},

    {"requeue to the head, absent", HEAD, ABSENT, true, WQ_ESTALE, ABSENT, 0},
    {"requeue to the head, queued", HEAD, Q, true, WQ_ESTALE, Q, 0},
    {"requeue to the head, running", HEAD, R, false, WQ_QUEUED, Q, 0},
    {"requeue to the head, running and dirty", HEAD, RD, false, WQ_QUEUED, Q, 0},
    {"requeue to the head, waiting", HEAD, W, true, WQ_ESTALE, W, 0},
    {"requeue to the head, running and waiting", HEAD, RW, false, WQ_QUEUED, Q, 0},
    {"requeue to the head of an old hold, running", HEAD, R, true, WQ_ESTALE, R, 0},
    {"requeue to the head of an old hold, running and waiting", HEAD, RW, true, WQ_ESTALE, RW, 0},
    {"requeue to the head of an old hold, running and dirty", HEAD, RD, true, WQ_ESTALE, RD, 0},

    /* next finds "last" in line, behind which a dirty key goes */
    {"next, absent", NEXT, ABSENT, true, WQ_ESTALE, ABSENT, 0},
    {"next, queued", NEXT, Q, true, WQ_ESTALE, Q, 0},
    {"next, running", NEXT, R, false, WQ_OK, ABSENT, 0},
    {"next, running and dirty", NEXT, RD, false, WQ_OK, Q, 0},
    {"next, waiting", NEXT, W, true, WQ_ESTALE, W, 0},
    {"next, running and waiting", NEXT, RW, false, WQ_OK, W, 0},
    {"next of an old hold, running", NEXT, R, true, WQ_ESTALE, R, 0},
    {"next of an old hold, running and waiting", NEXT, RW, true, WQ_ESTALE, RW, 0},
    {"next of an old hold, running and dirty", NEXT, RD, true, WQ_ESTALE, RD, 0},

    {"extend, absent", EXTEND, ABSENT, true, WQ_ESTALE, ABSENT, 0},
    {"extend, queued", EXTEND, Q, true, WQ_ESTALE, Q, 0},
    {"extend, running", EXTEND, R, false, WQ_OK, R, 0},
    {"extend, running and dirty", EXTEND, RD, false, WQ_OK, RD, 0},
    {"extend, waiting", EXTEND, W, true, WQ_ESTALE, W, 0},
    {"extend, running and waiting", EXTEND, RW, false, WQ_OK, RW, 0},
    {"extend of an old hold, running", EXTEND, R, true, WQ_ESTALE, R, 0},
    {"extend of an old hold, running and waiting", EXTEND, RW, true, WQ_ESTALE, RW, 0},

    {"lost, absent", LOST, ABSENT, true, WQ_ESTALE, ABSENT, 0},
    {"lost, queued", LOST, Q, true, WQ_ESTALE, Q, 0},
    {"lost, running", LOST, R, false, 0, R, 0},
    {"lost, running and dirty", LOST, RD, false, 0, RD, 0},
    {"lost, waiting", LOST, W, true, WQ_ESTALE, W, 0},
    {"lost, running and waiting", LOST, RW, false, 0, RW, 0},
    {"lost of an old hold, running", LOST, R, true, WQ_ESTALE, R, 0},
    {"lost of an old hold, running and waiting", LOST, RW, true, WQ_ESTALE, RW, 0},

    /* get takes the head: the key if it is in line, "last" otherwise */
    {"get, absent", GET, ABSENT, false, WQ_OK, ABSENT, 0},
    {"get, queued", GET, Q, false, WQ_OK, R, 0},
    {"get, running", GET, R, false, WQ_OK, R, 0},
    {"get, running and dirty", GET, RD, false, WQ_OK, RD, 0},
    {"get, waiting", GET, W, false, WQ_OK, W, 0},
    {"get, running and waiting", GET, RW, false, WQ_OK, RW, 0},

    {"forget, absent", FORGET, ABSENT, false, WQ_OK, ABSENT, 0},
    {"forget, waiting", FORGET, W, false, WQ_OK, W, 0},
    {"forget, queued", FORGET, Q, false, WQ_OK, Q, 0},
    {"forget, running", FORGET, R, false, WQ_OK, R, 0},
    {"forget, running and dirty", FORGET, RD, false, WQ_OK, RD, 0},
    {"forget, running and waiting", FORGET, RW, false, WQ_OK, RW, 0},

    {"shutdown, absent", SHUTDOWN, ABSENT, false, WQ_OK, ABSENT, 0},
    {"shutdown, queued", SHUTDOWN, Q, false, WQ_OK, Q, 0},
    {"shutdown, running", SHUTDOWN, R, false, WQ_OK, R, 0},
    {"shutdown, running and dirty", SHUTDOWN, RD, false, WQ_OK, RD, 0},
    {"shutdown, waiting", SHUTDOWN, W, false, WQ_OK, L, 0},
    {"shutdown, running and waiting", SHUTDOWN, RW, false, WQ_OK, R | L, 0},
};

/* An order that is a line of at most 8 nodes and counts touches. */
struct line {
	wq_node *node[8];
	int n;
	int touches;
};

static void line_push(void *ctx, wq_node *node, enum wq_where where)
{
	struct line *l = ctx;

	if (where == WQ_HEAD) {
		memmove(l->node + 1, l->node, (size_t)l->n * sizeof l->node[0]);
		l->node[0] = node;
	} else {
		l->node[l->n] = node;
	}
	l->n++;
}

static wq_node *line_pop(void *ctx)
{
	struct line *l = ctx;
	wq_node *node = l->node[0];

	l->n--;
	memmove(l->node, l->node + 1, (size_t)l->n * sizeof l->node[0]);
	return node;
}

static void line_touch(void *ctx, wq_node *node)
{
	(void)node;
	((struct line *)ctx)->touches++;
}

static int make_call(struct fixture *f, enum call call, wq_item *it)
{
	wq_queue *q = f->q;

	switch (call) {
	case ADD:
		return wq_add_str(q, "key");
	case AFTER:
		return wq_add_after(q, "key", 3, earlier_ns);
	case LIMITED:
		return wq_add_limited(q, "key", 3);
	case DUE:
		return wq_manual_clock_advance(f->mc, wait_ns);
	case CANCEL:
		return cancel_key(q, "key", 3);
	case MOVE:
		return wq_reschedule(q, "key", 3, START_NS + earlier_ns);
	case DONE:
		return wq_done(q, it);
	case RETRY:
		return wq_retry(q, it);
	case TAIL:
		return wq_requeue(q, it, WQ_TAIL);
	case HEAD:
		return wq_requeue(q, it, WQ_HEAD);
	case NEXT:
		return wq_next(q, it);
	case EXTEND:
		return wq_extend(q, it, WQ_SECOND);
	case LOST:
		return wq_lost(q, it);
	case GET:
		return wq_get(q, it);
	case FORGET:
		return wq_forget(q, "key", 3);
	case SHUTDOWN:
		return wq_shutdown(q);
	}
	return WQ_EINVAL;
}

/* The keys in the order in which they are got, each done; NULL: no more. */
static void order_is(wq_queue *q, const char *first, const char *second)
{
	if (first != NULL)
		take_is(q, first, WQ_OK);
	if (second != NULL)
		take_is(q, second, WQ_OK);
	IS(wq_len(q), 0);
}

/* Where the key stands beside "last", which was added after it. */
static void check_line(wq_queue *q, const struct cell *c, wq_item *got)
{
	bool took_last = (c->call == NEXT && !c->old) || (c->call == GET && c->before != Q);
	bool to_tail = c->before != Q && c->call != HEAD;

	if (took_last || (c->call == GET && c->before == Q)) {
		IS((int64_t)got->len, took_last ? 4 : 3);
		assert_memory_equal(got->key, took_last ? "last" : "key", got->len + 1);
		IS(wq_done(q, got), WQ_OK);
		if (!took_last)
			order_is(q, "last", NULL);
		else
			order_is(q, c->after == Q ? "key" : NULL, NULL);
	} else if (c->after != Q) {
		order_is(q, "last", NULL);
	} else {
		order_is(q, to_tail ? "last" : "key", to_tail ? "key" : "last");
	}
}

/* What done answers for a hold in this state. */
static int done_of(int bits)
{
	return bits == RD ? WQ_QUEUED : bits & W ? WQ_DELAYED : WQ_OK;
}

/* The key waits, nobody holds it: it comes due when it should, not a nanosecond before. */
static void check_due(struct fixture *f, const struct cell *c)
{
	bool moved = c->call == AFTER || c->call == LIMITED || c->call == MOVE || c->call == RETRY;
	int64_t left_ns = moved && c->answer > 0 ? earlier_ns : wait_ns;

	wq_manual_clock_advance(f->mc, left_ns - 1);
	IS(state_of(f->q, "key"), c->after & (W | T));
	IS(wq_len(f->q), 0);
	wq_manual_clock_advance(f->mc, 1);
	order_is(f->q, "key", NULL);
}

static void check_cell(void **state)
{
	const struct cell *c = *state;
	struct line line = {.n = 0};
	struct fixture f;
	wq_order order = {.push = line_push, .pop = line_pop, .touch = line_touch, .ctx = &line};
	wq_item old, held = {0};

	/* Every other cell on the built-in order, whose counts and links are the queue's own. */
	fixture_open(&f, &(wq_options){
			     .order = c->touches > 0 || (c - cells) % 2 ? &order : NULL,
			     .limiter = wq_limiter_exponential(earlier_ns, WQ_HOUR),
			 });
	wq_add_str(f.q, "key");
	get_is(f.q, &old, "key");
	IS(wq_done(f.q, &old), WQ_OK);
	if (c->before == W)
		wq_add_after(f.q, "key", 3, wait_ns);
	else if (c->before != ABSENT)
		wq_add_str(f.q, "key");
	if (c->before & R)
		get_is(f.q, &held, "key");
	if (c->before == RD)
		wq_add_str(f.q, "key");
	if (c->before == RW)
		wq_add_after(f.q, "key", 3, wait_ns);
	IS(state_of(f.q, "key"), c->before);
	wq_add_str(f.q, "last");

	wq_item it = c->old ? old : held;

	IS(make_call(&f, c->call, &it), c->answer);
	IS(state_of(f.q, "key"), c->after);
	IS(line.touches, c->touches);
	/* a failure counts in every state, if the call was accepted */
	IS(wq_failures(f.q, "key", 3), (c->call == LIMITED || c->call == RETRY) && c->answer >= 0);
	if (c->answer < 0)
		assert_memory_equal(&it, &old, sizeof it);

	bool took_last = (c->call == NEXT && !c->old) || (c->call == GET && c->before != Q);

	IS(wq_len(f.q), (c->after == Q) + !took_last);
	IS(count_keys(f.q), (c->after != ABSENT) + 1);
	IS(wq_shutting_down(f.q), c->call == SHUTDOWN);
	if (c->call == SHUTDOWN) { /* kept means: can be got; and the re-add of a held key too */
		IS(wq_add_str(f.q, "key"), WQ_ESHUTDOWN);
		if (c->before & R)
			IS(wq_done(f.q, &held), c->before == RD   ? WQ_QUEUED
			                        : c->before == RW ? WQ_LEFT
			                                          : WQ_OK);
		if (c->before == Q)
			order_is(f.q, "key", "last");
		else
			order_is(f.q, "last", c->before == RD ? "key" : NULL);
		/* left over means: it never comes due, and is there to the end */
		wq_manual_clock_advance(f.mc, WQ_HOUR);
		IS(wq_try_get(f.q, &it), WQ_ESHUTDOWN);
		IS(state_of(f.q, "key"), c->after & L);
	} else {
		check_line(f.q, c, &it);
		if (c->after & R && c->call != GET)
			IS(wq_done(f.q, &held), done_of(c->after));
		if (c->call == GET && c->before & R)
			IS(wq_done(f.q, &held), done_of(c->before));
		if (c->after == RD)
			order_is(f.q, "key", NULL);
		if (c->after & W)
			check_due(&f, c);
		/* no copy of the key is left that would come due later */
		wq_manual_clock_advance(f.mc, WQ_HOUR);
		check_whole(f.q, 0, 0);
	}
	fixture_close(&f, c->after & L ? 1 : 0);
}

int main(void)
{
	struct CMUnitTest tests[LENGTH(cells)];

	for (size_t i = 0; i < LENGTH(cells); i++)
		tests[i] = (struct CMUnitTest){
		    .name = cells[i].name,
		    .test_func = check_cell,
		    .initial_state = (void *)(uintptr_t)&cells[i],
		};
	return _cmocka_run_group_tests("states", tests, LENGTH(tests), NULL, NULL);
}
