/* Stopping a queue in which keys wait: D6 and Q9 of the rules. */
#include "../support/cancel.h"
#include "../support/support.h"

#include <poll.h>
#include <time.h>

enum {
	Q = WQ_STATE_QUEUED,
	R = WQ_STATE_RUNNING,
	W = WQ_STATE_WAITING,
	L = WQ_STATE_LEFT,
	T = WQ_STATE_RETRYING,
};

static int drain(wq_queue *q, int64_t deadline_ns, enum wq_drain_mode waiting, wq_report *report)
{
	wq_drain_options o = {.mode = waiting};

	memset(report, 0xee, sizeof *report);
	return wq_drain_until(q, deadline_ns, &o, report);
}

static void report_is(const wq_report *r, int queued, int running, int retries, int delayed)
{
	IS((int64_t)r->queued, queued);
	IS((int64_t)r->running, running);
	IS((int64_t)r->retries, retries);
	IS((int64_t)r->delayed, delayed);
	IS((int64_t)r->dead, 0);
	for (size_t i = 0; i < LENGTH(r->reserved); i++)
		IS((int64_t)r->reserved[i], 0);
}

/* A thread that drains and says what is to become of the keys that wait. */
struct patient {
	struct actor actor;
	wq_queue *q;
	enum wq_drain_mode waiting;
	int64_t deadline_ns;
	wq_report report;
};

static int64_t patient_main(void *arg)
{
	struct patient *p = arg;

	return drain(p->q, p->deadline_ns, p->waiting, &p->report);
}

static void patient_block_until(struct patient *p, wq_queue *q, enum wq_drain_mode waiting,
                                int64_t deadline_ns)
{
	*p = (struct patient){.q = q, .waiting = waiting, .deadline_ns = deadline_ns};
	actor_start(&p->actor, patient_main, p);
	actor_blocks(&p->actor);
}

static void patient_block(struct patient *p, wq_queue *q, enum wq_drain_mode waiting)
{
	patient_block_until(p, q, waiting, WQ_NEVER);
}

/* What a drain listed, by the first letter of the key. */
struct listing {
	unsigned state[26];
	int64_t due_ns[26];
	int n;
};

static int list_key(void *ctx, const wq_key_info *info)
{
	struct listing *l = ctx;
	int i = *(const char *)info->key - 'a';

	l->n++;
	if (i >= 0 && i < 26) {
		l->state[i] = info->state;
		l->due_ns[i] = info->due_ns;
	}
	return 0;
}

/* a waits, b never comes due, c is held with a copy, d queued with a reminder, e due, f a reminder. */
static void set_up(struct fixture *f, wq_item *held)
{
	wq_queue *q = f->q;

	wq_add_str(q, "c");
	get_is(q, held, "c");
	wq_add_after(q, "e", 1, 5);
	wq_add_after(q, "a", 1, 40);
	wq_add_after(q, "b", 1, WQ_NEVER);
	wq_add_after(q, "c", 1, 30);
	wq_add_str(q, "d");
	IS(remind(q, "d", 20), WQ_DELAYED);
	IS(remind(q, "f", 35), WQ_DELAYED);
	wq_manual_clock_advance(f->mc, 5);
}

/* What set_up() leaves to a drain that was over at once; `waits`: how its waiting keys are shown. */
static void set_up_is_listed(const struct listing *l, unsigned waits)
{
	static const int64_t due[] = {40, WQ_NEVER, 30, 20, 0, 35};
	const unsigned states[] = {waits, waits, R | waits, Q | waits, Q, waits};

	IS(l->n, LENGTH(states));
	for (size_t i = 0; i < LENGTH(states); i++) {
		IS(l->state[i], states[i]);
		IS(l->due_ns[i], due[i] > 0 ? wq_time_add(START_NS, due[i]) : 0);
	}
}

/* Of those, a, b, f and the copies of c and d are left over in the end. */
static void set_up_is_left(struct fixture *f)
{
	wq_snapshot s;
	wq_item it;

	wq_manual_clock_advance(f->mc, WQ_HOUR); /* none of them comes due */
	IS(wq_len(f->q), 0);
	IS(wq_try_get(f->q, &it), WQ_ESHUTDOWN);
	IS(count_keys(f->q), 5);
	for (const char *k = "abcdf"; *k; k++)
		IS(wq_state(f->q, k, 1), L);
	IS(wq_next_deadline(f->q), WQ_NEVER);
	IS(wq_snapshot_take(f->q, &s), WQ_OK);
	IS((int64_t)s.left, 5);
	IS((int64_t)s.waiting, 0);
	IS(s.next_due_ns, WQ_NEVER);
	for (const char *k = "abcdf"; *k; k++)
		IS(wq_reschedule(f->q, k, 1, START_NS), WQ_ESHUTDOWN);
}

/* ---- leave ---------------------------------------------------------------------- */

static void D6_leave_counts_and_lists_what_is_left(void **state)
{
	struct fixture f;
	struct listing l = {.n = 0}, again = {.n = 0};
	wq_drain_options o = {.left = list_key, .ctx = &l};
	wq_report r;
	wq_item held;

	(void)state;
	fixture_open(&f, NULL);
	set_up(&f, &held);
	IS(wq_drain_until(f.q, 0, &o, &r), WQ_ETIMEDOUT);
	report_is(&r, 2, 1, 0, 5);
	set_up_is_listed(&l, L);
	IS(wq_next_deadline(f.q), WQ_NEVER);
	IS(count_keys(f.q), 6);
	IS(wq_done(f.q, &held), WQ_LEFT); /* its copy */
	line_is(f.q, "de");               /* d was added first; e was due in time */
	set_up_is_left(&f);
	o.ctx = &again;
	IS(wq_drain_until(f.q, 0, &o, &r), WQ_LEFT); /* they are told of each time */
	report_is(&r, 0, 0, 0, 5);
	IS(again.n, 5);
	for (const char *k = "abcdf"; *k; k++)
		IS(again.state[*k - 'a'], L);
	IS(again.due_ns['b' - 'a'], WQ_NEVER);
	IS(again.due_ns['c' - 'a'], START_NS + 30);
	fixture_close(&f, 5); /* wq_free() counts them */
}

static void D6_shutdown_leaves_and_a_drain_tells(void **state)
{
	struct fixture f;
	struct listing l = {.n = 0};
	wq_drain_options o = {.left = list_key, .ctx = &l, .mode = WQ_DRAIN_WAIT};
	wq_report r;
	wq_item held;

	(void)state;
	fixture_open(&f, NULL);
	set_up(&f, &held);
	IS(wq_shutdown(f.q), WQ_OK);
	IS(count_keys(f.q), 6);
	IS(wq_drain_until(f.q, 0, &o, &r), WQ_ETIMEDOUT); /* too late to say so */
	report_is(&r, 2, 1, 0, 5);
	set_up_is_listed(&l, L);
	IS(wq_shutdown(f.q), WQ_OK);
	IS(wq_done(f.q, &held), WQ_LEFT);
	line_is(f.q, "de");
	IS(drain(f.q, 0, WQ_DRAIN_LEAVE, &r), WQ_LEFT);
	report_is(&r, 0, 0, 0, 5);
	set_up_is_left(&f);
	fixture_close(&f, 5);
}

/* A drain blocked for the last hold returns when that ends, and says that keys are left. */
static void D6_leave_waits_for_holds_and_not_for_what_waits(void **state)
{
	struct fixture *f = *state;
	struct drainer d;
	wq_item it;

	wq_add_str(f->q, "a");
	get_is(f->q, &it, "a");
	wq_add_after(f->q, "b", 1, 10);
	drainer_block(&d, f->q, WQ_NEVER);
	wq_manual_clock_advance(f->mc, 10); /* too late: the cut was before */
	IS(state_of(f->q, "b"), L);
	IS(wq_len(f->q), 0);
	actor_blocks(&d.actor);
	IS(wq_done(f->q, &it), WQ_OK);
	IS(drainer_join(&d), WQ_LEFT);
	report_is(&d.report, 0, 0, 0, 1);
}

static int64_t thread_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * WQ_SECOND + t.tv_nsec;
}

static int is_left(void *ctx, const wq_key_info *info)
{
	uint32_t i;

	memcpy(&i, info->key, sizeof i);
	IS(info->state, L);
	IS(info->due_ns, i % 3 ? START_NS + 1000 + i * WQ_SECOND : WQ_NEVER);
	++*(int64_t *)ctx;
	return 0;
}

/* However many wait: a stop does not touch them, but for how they are shown. */
static void D6_leave_of_many(void **state)
{
	enum { MANY = 50000 };

	(void)state;
	for (int by_drain = 0; by_drain < 2; by_drain++) {
		struct fixture f;
		struct memory before;
		wq_report r;
		wq_snapshot s;
		int64_t began, added, shut, n = 0;

		fixture_open(&f, NULL);
		began = thread_time();
		for (uint32_t i = 0; i < MANY; i++)
			wq_add_after(f.q, &i, sizeof i, i % 3 ? 1000 + i * WQ_SECOND : WQ_NEVER);
		added = thread_time();
		before = f.mem;
		if (by_drain)
			IS(drain(f.q, 0, WQ_DRAIN_LEAVE, &r), WQ_LEFT);
		else
			IS(wq_shutdown(f.q), WQ_OK);
		shut = thread_time();
		assert_true((shut - added) * 10 < added - began);
		IS(f.mem.calls, before.calls);
		IS(f.mem.live, before.live);
		IS(drain(f.q, 0, WQ_DRAIN_LEAVE, &r), WQ_LEFT);
		report_is(&r, 0, 0, 0, MANY);
		IS(wq_walk(f.q, is_left, &n), MANY);
		IS(n, MANY);
		IS(wq_next_deadline(f.q), WQ_NEVER);
		IS(wq_snapshot_take(f.q, &s), WQ_OK);
		IS((int64_t)s.left, MANY);
		IS((int64_t)s.waiting, 0);
		fixture_close(&f, MANY);
	}
}

/* Failed keys and limited adds on the one hand, delays and reminders on the other. */
static void D6_retries_and_delays_are_counted_apart(void **state)
{
	static const enum wq_drain_mode modes[] = {WQ_DRAIN_LEAVE, WQ_DRAIN_RUN, WQ_DRAIN_WAIT};

	(void)state;
	for (size_t i = 0; i < LENGTH(modes); i++) {
		struct fixture f;
		struct listing l = {.n = 0};
		wq_drain_options o = {.left = list_key, .ctx = &l, .mode = modes[i]};
		wq_add_options reminder = {.limited = 1, .policy = WQ_REMIND};
		unsigned waits = modes[i] == WQ_DRAIN_WAIT ? W : L;
		bool runs = modes[i] == WQ_DRAIN_RUN;
		wq_snapshot s;
		wq_report r;
		wq_item it;

		fixture_open(&f, &(wq_options){.limiter = wq_limiter_exponential(10, 1000)});
		for (const char *k = "ab"; *k; k++)
			wq_add(f.q, k, 1);
		get_is(f.q, &it, "a");
		IS(wq_retry(f.q, &it), WQ_DELAYED);
		get_is(f.q, &it, "b");
		IS(wq_settle(f.q, &it, wq_again_after(5)), WQ_DELAYED);
		IS(wq_add_limited(f.q, "c", 1), WQ_DELAYED);
		IS(wq_add_after(f.q, "d", 1, 5), WQ_DELAYED);
		IS(remind(f.q, "e", 5), WQ_DELAYED);
		/* a delay that merges with a retry is one; and a retry with a delay */
		IS(wq_add_limited(f.q, "f", 1), WQ_DELAYED);
		IS(wq_add_after(f.q, "f", 1, 5), WQ_MOVED);
		IS(wq_add_after(f.q, "g", 1, 5), WQ_DELAYED);
		IS(wq_add_limited(f.q, "g", 1), WQ_KEPT);
		/* a key and its reminder are two copies of one key */
		IS(wq_add_after(f.q, "h", 1, 5), WQ_DELAYED);
		IS(remind(f.q, "h", 6), WQ_DELAYED);
		IS(wq_add_limited(f.q, "i", 1), WQ_DELAYED);
		IS(remind(f.q, "i", 6), WQ_DELAYED);
		IS(wq_snapshot_take(f.q, &s), WQ_OK);
		IS((int64_t)s.waiting, 11);
		IS((int64_t)s.left, 0);
		/* a limited reminder is a retry */
		IS(wq_add_with(f.q, "j", 1, &reminder), WQ_DELAYED);
		IS(wq_add_str(f.q, "j"), WQ_QUEUED);

		IS(wq_drain_until(f.q, 0, &o, &r), WQ_ETIMEDOUT);
		report_is(&r, runs ? 10 : 1, 0, runs ? 0 : 6, runs ? 0 : 6);
		IS(l.n, 10);
		for (const char *k = "abcdefghij"; *k; k++) {
			unsigned kind = strchr("acfgij", *k) ? T : 0;
			unsigned expected = runs ? Q : waits | kind | (*k == 'j' ? Q : 0);

			IS(l.state[*k - 'a'], expected);
			IS(wq_state(f.q, k, 1), expected);
		}
		IS(wq_snapshot_take(f.q, &s), WQ_OK);
		IS((int64_t)s.waiting, waits == W ? 12 : 0);
		IS((int64_t)s.left, waits == W || runs ? 0 : 12);
		fixture_close(&f, 10); /* a key and its reminder are one */
	}
}

/* A copy that comes due, or that an add takes over, is no retry any more when it waits again. */
static void D6_a_retry_that_is_over_is_none(void **state)
{
	(void)state;
	for (int way = 0; way < 4; way++) {
		struct fixture f;
		wq_report r;
		wq_item it;

		fixture_open(&f, &(wq_options){.limiter = wq_limiter_exponential(10, 1000)});
		IS(wq_add_limited(f.q, "a", 1), WQ_DELAYED);
		IS(state_of(f.q, "a"), W | T);
		if (way == 0)
			wq_manual_clock_advance(f.mc, 10);
		else if (way == 1)
			IS(wq_add_str(f.q, "a"), WQ_QUEUED);
		else if (way == 2)
			IS(cancel_key(f.q, "a", 1), W);
		else
			IS(wq_reschedule(f.q, "a", 1, 0), WQ_MOVED);
		if (way != 2) {
			get_is(f.q, &it, "a");
			IS(state_of(f.q, "a"), R);
			IS(wq_done(f.q, &it), WQ_OK);
		}
		IS(wq_add_after(f.q, "a", 1, 10), WQ_DELAYED);
		IS(state_of(f.q, "a"), W);
		IS(drain(f.q, 0, WQ_DRAIN_LEAVE, &r), WQ_LEFT);
		report_is(&r, 0, 0, 0, 1);
		fixture_close(&f, 1);
	}
}

/* ---- run ------------------------------------------------------------------------ */

static void D6_run_queues_all_in_the_order_of_their_times(void **state)
{
	struct fixture *f = *state;
	wq_report r;
	wq_item held;

	set_up(f, &held);
	wq_add_after(f->q, "g", 1, 30); /* as f, but called later */
	IS(drain(f->q, 0, WQ_DRAIN_RUN, &r), WQ_ETIMEDOUT);
	report_is(&r, 5, 1, 0, 1); /* b is never due */
	IS(state_of(f->q, "b"), L);
	IS((int64_t)r.dirty, 1);
	IS(wq_done(f->q, &held), WQ_QUEUED);
	line_is(f->q, "defgac"); /* d's reminder merged with it */
	IS(drain(f->q, 0, WQ_DRAIN_RUN, &r), WQ_LEFT);
	report_is(&r, 0, 0, 0, 1);
	wq_manual_clock_advance(f->mc, WQ_HOUR);
	IS(wq_len(f->q), 0);
	IS(count_keys(f->q), 1);
	IS(cancel_key(f->q, "b", 1), W);
	IS(drain(f->q, 0, WQ_DRAIN_RUN, &r), WQ_OK);
	check_whole(f->q, 0, 0);
}

static void D6_run_wakes_gets(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct getter g[3];
	struct patient p;

	wq_add_after(q, "a", 1, WQ_HOUR);
	wq_add_after(q, "b", 1, WQ_HOUR);
	for (size_t i = 0; i < LENGTH(g); i++)
		getter_block(&g[i], q, WQ_NEVER);
	patient_block(&p, q, WQ_DRAIN_RUN);

	int got = 0;

	for (size_t i = 0; i < LENGTH(g); i++) {
		int rc = getter_join(&g[i]);

		if (rc != WQ_OK) {
			IS(rc, WQ_ESHUTDOWN);
			continue;
		}
		got++;
		IS(wq_done(q, &g[i].item), WQ_OK);
	}
	/* a Get that woke before the keys were in line has left: they are still there */
	for (; got < 2; got++) {
		wq_item it;

		IS(wq_try_get(q, &it), WQ_OK);
		IS(wq_done(q, &it), WQ_OK);
	}
	IS(actor_join(&p.actor), WQ_OK);
	report_is(&p.report, 0, 0, 0, 0);
}

static void D6_run_of_many_keeps_the_order(void **state)
{
	struct fixture *f = *state;
	wq_report r;
	wq_item it;

	for (uint32_t i = 0; i < 5000; i++) {
		uint32_t key = (i * 7919) % 5000;

		wq_add_after(f->q, &key, sizeof key, WQ_SECOND + key * WQ_MILLISECOND);
	}
	IS(drain(f->q, 0, WQ_DRAIN_RUN, &r), WQ_ETIMEDOUT);
	report_is(&r, 5000, 0, 0, 0);
	for (uint32_t i = 0; i < 5000; i++) {
		uint32_t key;

		IS(wq_try_get(f->q, &it), WQ_OK);
		memcpy(&key, it.key, sizeof key);
		IS(key, i);
		IS(wq_done(f->q, &it), WQ_OK);
	}
	check_whole(f->q, 0, 0);
}

/* ---- wait ----------------------------------------------------------------------- */

static void D6_wait_hands_out_each_when_it_is_due(void **state)
{
	struct fixture *f = *state;
	wq_queue *q = f->q;
	struct patient p;
	struct getter g;
	wq_item held, it;

	set_up(f, &held); /* due yet: d 20, c 30, f 35, a 40; b never */
	patient_block(&p, q, WQ_DRAIN_WAIT);
	IS(wq_shutting_down(q), 1);
	IS(wq_add_str(q, "x"), WQ_ESHUTDOWN);
	IS(wq_add_after(q, "a", 1, 1), WQ_ESHUTDOWN);
	line_is(q, "de");
	IS(wq_try_get(q, &it), WQ_EAGAIN); /* not WQ_ESHUTDOWN: more will come */
	getter_block(&g, q, WQ_NEVER);
	wq_manual_clock_set(f->mc, START_NS + 19);
	actor_blocks(&g.actor);
	wq_manual_clock_set(f->mc, START_NS + 20);
	IS(getter_join(&g), WQ_OK);
	IS(*(const char *)g.item.key, 'd');
	IS(wq_done(q, &g.item), WQ_OK);
	IS(wq_done(q, &held), WQ_DELAYED);
	getter_block(&g, q, START_NS + 25); /* a deadline of its own counts as ever */
	wq_manual_clock_set(f->mc, START_NS + 25);
	IS(getter_join(&g), WQ_ETIMEDOUT);
	wq_manual_clock_set(f->mc, START_NS + 39);
	line_is(q, "cf");
	actor_blocks(&p.actor);
	getter_block(&g, q, WQ_NEVER);
	wq_manual_clock_set(f->mc, START_NS + 40);
	IS(getter_join(&g), WQ_OK);
	IS(*(const char *)g.item.key, 'a');
	actor_blocks(&p.actor);

	struct getter last;

	getter_block(&last, q, WQ_NEVER); /* a is held: it might come back */
	IS(wq_done(q, &g.item), WQ_OK);
	IS(actor_join(&p.actor), WQ_LEFT);
	report_is(&p.report, 0, 0, 0, 1); /* b is not waited for */
	IS(getter_join(&last), WQ_ESHUTDOWN);
	IS(wq_try_get(q, &it), WQ_ESHUTDOWN);
}

static void D6_wait_for_nothing_returns_at_once(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_snapshot s;
	wq_report r;
	wq_item it;

	wq_add_after(q, "a", 1, WQ_NEVER);
	IS(remind(q, "b", WQ_NEVER), WQ_DELAYED);
	IS(drain(q, WQ_NEVER, WQ_DRAIN_WAIT, &r), WQ_LEFT);
	report_is(&r, 0, 0, 0, 2);
	IS(wq_try_get(q, &it), WQ_ESHUTDOWN);
	IS(state_of(q, "a"), L); /* as the drain has said */
	IS(state_of(q, "b"), L);
	IS(wq_snapshot_take(q, &s), WQ_OK);
	IS((int64_t)s.left, 2);
	IS((int64_t)s.waiting, 0);
	IS(wq_shutdown(q), WQ_OK);
	IS(drain(q, 0, WQ_DRAIN_WAIT, &r), WQ_LEFT);
	report_is(&r, 0, 0, 0, 2);
	IS(state_of(q, "a"), L);
	IS(state_of(q, "b"), L);
}

static void D6_wait_times_out_and_lists_what_waits(void **state)
{
	struct fixture *f = *state;
	struct listing l = {.n = 0};
	wq_drain_options o = {.left = list_key, .ctx = &l, .mode = WQ_DRAIN_WAIT};
	wq_report r;
	wq_item held;

	set_up(f, &held);
	IS(wq_drain_until(f->q, 0, &o, &r), WQ_ETIMEDOUT);
	report_is(&r, 2, 1, 0, 5);
	set_up_is_listed(&l, W);
	/* what was left can still be got, when it is due */
	IS(wq_done(f->q, &held), WQ_DELAYED);
	line_is(f->q, "de");
	wq_manual_clock_advance(f->mc, WQ_HOUR);
	line_is(f->q, "dcfa");
	IS(drain(f->q, 0, WQ_DRAIN_LEAVE, &r), WQ_LEFT);
	report_is(&r, 0, 0, 0, 1);
}

/* D5: what is due when its time is up is queued, not waiting. */
static void D6_wait_times_out_and_counts_what_is_due(void **state)
{
	struct fixture *f = *state;
	struct patient p;

	wq_add_after(f->q, "a", 1, 10);
	wq_add_after(f->q, "b", 1, 30);
	patient_block_until(&p, f->q, WQ_DRAIN_WAIT, START_NS + 20);
	wq_manual_clock_advance(f->mc, 20);
	IS(actor_join(&p.actor), WQ_ETIMEDOUT);
	report_is(&p.report, 1, 0, 0, 1);
}

/* Whatever takes the last waiting key away ends the drain, and the Gets that wait for it. */
static void D6_wait_ends_with_the_last_waiting_key(void **state)
{
	(void)state;
	for (int way = 0; way < 5; way++) {
		struct fixture f;
		struct patient p;
		struct getter g;

		fixture_open(&f, NULL);
		if (way == 1 || way == 3)
			IS(remind(f.q, "k", 50), WQ_DELAYED);
		else
			IS(wq_add_after(f.q, "k", 1, 50), WQ_DELAYED);
		getter_block(&g, f.q, WQ_NEVER);
		patient_block(&p, f.q, WQ_DRAIN_WAIT);
		actor_blocks(&g.actor);
		if (way < 2)
			IS(cancel_key(f.q, "k", 1), W);
		else if (way < 4)
			IS(wq_reschedule(f.q, "k", 1, WQ_NEVER), WQ_MOVED);
		else
			IS(wq_shutdown(f.q), WQ_OK);
		IS(actor_join(&p.actor), way < 2 ? WQ_OK : way < 4 ? WQ_LEFT : WQ_EINTERRUPTED);
		IS(getter_join(&g), WQ_ESHUTDOWN);
		report_is(&p.report, 0, 0, 0, way >= 2);
		IS(state_of(f.q, "k"), way < 2 ? 0 : L);
		fixture_close(&f, way >= 2);
	}
}

static void D6_wait_follows_a_reschedule(void **state)
{
	struct fixture *f = *state;
	struct patient p;
	struct getter g;

	wq_add_after(f->q, "k", 1, WQ_HOUR);
	getter_block(&g, f->q, WQ_NEVER);
	patient_block(&p, f->q, WQ_DRAIN_WAIT);
	IS(wq_reschedule(f->q, "k", 1, START_NS + 10), WQ_MOVED); /* it is no add */
	wq_manual_clock_advance(f->mc, 10);
	IS(getter_join(&g), WQ_OK);
	actor_blocks(&p.actor);
	IS(wq_done(f->q, &g.item), WQ_OK);
	IS(actor_join(&p.actor), WQ_OK);
	report_is(&p.report, 0, 0, 0, 0);
}

/* A queue that is shut stays so: its Gets have left, and nobody would take the key. */
static void D6_a_drain_that_has_ended_is_over(void **state)
{
	struct fixture *f = *state;
	wq_report r;
	wq_item it;

	IS(wq_add_at(f->q, "k", 1, WQ_NEVER), WQ_DELAYED);
	IS(remind(f->q, "r", 50), WQ_DELAYED);
	IS(drain(f->q, 0, WQ_DRAIN_WAIT, &r), WQ_ETIMEDOUT);
	/* It waits for "r" yet. */
	IS(wq_reschedule(f->q, "k", 1, START_NS + 50), WQ_MOVED);
	IS(wq_reschedule(f->q, "k", 1, WQ_NEVER), WQ_MOVED);
	IS(wq_reschedule(f->q, "r", 1, WQ_NEVER), WQ_MOVED);
	IS(drain(f->q, 0, WQ_DRAIN_WAIT, &r), WQ_LEFT);
	report_is(&r, 0, 0, 0, 2);
	IS(wq_get_until(f->q, &it, WQ_NOWAIT), WQ_ESHUTDOWN);
	IS(wq_reschedule(f->q, "k", 1, START_NS), WQ_ESHUTDOWN);
	IS(wq_reschedule(f->q, "r", 1, WQ_NEVER), WQ_ESHUTDOWN);
	IS(wq_reschedule(f->q, "none", 4, START_NS), WQ_ENOTFOUND);
	IS(wq_len(f->q), 0);
	IS(drain(f->q, 0, WQ_DRAIN_WAIT, &r), WQ_LEFT);
	report_is(&r, 0, 0, 0, 2);
}

/* ---- several ---------------------------------------------------------------------- */

static void Q9_the_first_drain_decides(void **state)
{
	(void)state;
	for (enum wq_drain_mode first = WQ_DRAIN_LEAVE; first <= WQ_DRAIN_WAIT; first++)
		for (enum wq_drain_mode second = WQ_DRAIN_LEAVE; second <= WQ_DRAIN_WAIT;
		     second++) {
			struct fixture f;
			wq_report r[2];

			fixture_open(&f, NULL);
			wq_add_str(f.q, "a");
			wq_add_after(f.q, "b", 1, 10);
			IS(drain(f.q, 0, first, &r[0]), WQ_ETIMEDOUT);
			IS(drain(f.q, 0, second, &r[1]), WQ_ETIMEDOUT);
			for (int i = 0; i < 2; i++)
				report_is(&r[i], first == WQ_DRAIN_RUN ? 2 : 1, 0, 0,
				          first != WQ_DRAIN_RUN);
			wq_manual_clock_advance(f.mc, 10);
			line_is(f.q, first == WQ_DRAIN_LEAVE ? "a" : "ab");
			IS(drain(f.q, 0, second, &r[1]), first == WQ_DRAIN_LEAVE ? WQ_LEFT : WQ_OK);
			fixture_close(&f, first == WQ_DRAIN_LEAVE);
		}
}

static void Q9_many_patient_drains_all_return(void **state)
{
	struct fixture *f = *state;
	struct patient p[4];

	wq_add_after(f->q, "k", 1, 10);
	for (size_t i = 0; i < LENGTH(p); i++)
		patient_block(&p[i], f->q, i ? WQ_DRAIN_LEAVE : WQ_DRAIN_WAIT);
	wq_manual_clock_advance(f->mc, 10);
	line_is(f->q, "k");
	for (size_t i = 0; i < LENGTH(p); i++) {
		IS(actor_join(&p[i].actor), WQ_OK);
		report_is(&p[i].report, 0, 0, 0, 0);
	}
}

static void Q8_shutdown_after_a_patient_drain_leaves(void **state)
{
	struct fixture f;
	struct patient p;
	wq_report r;
	wq_item held;

	(void)state;
	fixture_open(&f, NULL);
	set_up(&f, &held);
	patient_block(&p, f.q, WQ_DRAIN_WAIT);
	IS(state_of(f.q, "a"), W);
	IS(wq_shutdown(f.q), WQ_OK);
	IS(actor_join(&p.actor), WQ_EINTERRUPTED);
	report_is(&p.report, 2, 1, 0, 5);
	IS(wq_done(f.q, &held), WQ_LEFT);
	line_is(f.q, "de");
	IS(drain(f.q, WQ_NEVER, WQ_DRAIN_WAIT, &r), WQ_LEFT);
	report_is(&r, 0, 0, 0, 5);
	set_up_is_left(&f);
	fixture_close(&f, 5);
}

/* [FD] An event loop learns of the end of a drain that waited. */
static void D6_fd_is_readable_when_a_patient_drain_has_ended(void **state)
{
	(void)state;
	for (int way = 0; way < 3; way++) {
		struct fixture f;
		struct pollfd p = {.events = POLLIN};
		wq_report r;
		wq_item it;

		fixture_open(&f, NULL);
		p.fd = wq_fd(f.q);
		wq_add_str(f.q, "a");
		get_is(f.q, &it, "a");
		wq_add_after(f.q, "k", 1, 10);
		if (way == 0)
			IS(cancel_key(f.q, "k", 1), W);
		IS(drain(f.q, 0, WQ_DRAIN_WAIT, &r), WQ_ETIMEDOUT);

		wq_item none;

		IS(wq_try_get(f.q, &none), WQ_EAGAIN);
		IS(wq_done(f.q, &it), WQ_OK);
		if (way == 1)
			IS(cancel_key(f.q, "k", 1), W);
		if (way == 2)
			IS(wq_shutdown(f.q), WQ_OK);
		IS(poll(&p, 1, 0), 1);
		IS(wq_try_get(f.q, &none), WQ_ESHUTDOWN);
		fixture_close(&f, way == 2);
	}
}

static void bad_arguments_do_not_shut(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	wq_report r;
	wq_drain_options o = {.reserved0 = 1};

	IS(drain(q, 0, (enum wq_drain_mode)3, &r), WQ_EINVAL);
	IS(wq_drain_until(q, 0, &o, &r), WQ_EINVAL);
	IS(wq_shutting_down(q), 0);
	check_whole(q, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(D6_leave_counts_and_lists_what_is_left),
	    cmocka_unit_test(D6_shutdown_leaves_and_a_drain_tells),
	    WITH_FIXTURE(D6_leave_waits_for_holds_and_not_for_what_waits),
	    cmocka_unit_test(D6_leave_of_many),
	    cmocka_unit_test(D6_retries_and_delays_are_counted_apart),
	    cmocka_unit_test(D6_a_retry_that_is_over_is_none),
	    WITH_FIXTURE(D6_run_queues_all_in_the_order_of_their_times),
	    WITH_FIXTURE(D6_run_wakes_gets),
	    WITH_FIXTURE(D6_run_of_many_keeps_the_order),
	    WITH_FIXTURE(D6_wait_hands_out_each_when_it_is_due),
	    WITH_FIXTURE(D6_wait_for_nothing_returns_at_once),
	    WITH_FIXTURE(D6_wait_times_out_and_lists_what_waits),
	    WITH_FIXTURE(D6_wait_times_out_and_counts_what_is_due),
	    WITH_FIXTURE(D6_wait_follows_a_reschedule),
	    WITH_FIXTURE(D6_a_drain_that_has_ended_is_over),
	    cmocka_unit_test(Q9_the_first_drain_decides),
	    WITH_FIXTURE(Q9_many_patient_drains_all_return),
	    cmocka_unit_test(Q8_shutdown_after_a_patient_drain_leaves),
	    cmocka_unit_test(D6_fd_is_readable_when_a_patient_drain_has_ended),
	    WITH_FIXTURE(bad_arguments_do_not_shut),
	    cmocka_unit_test(D6_wait_ends_with_the_last_waiting_key),
	};

	return cmocka_run_group_tests_name("drain_waiting", tests, NULL, NULL);
}
