/*
 * Sleeping and waking of Gets. The protocol stands at the top of memory.h.
 *
 * Before it sleeps, a Get polls for a while, if there is more than one CPU and
 * nobody else polls: a sleeping core takes 5 to 50 µs to wake, a polling one
 * a fraction of a microsecond. How long it polls depends on how long the last
 * wait took, sleep included: if the longest poll would have met its key, the
 * next one is the longest; if not, the next one is half as long as the last,
 * and after five in a row there is none. (A thread that has polled for 2 µs
 * before it sleeps takes 1 µs longer to wake.)
 *
 * What counts is the wait, not whether the poll that was made met its key. Else
 * two threads that exchange keys could not leave a bad state: one sleep makes the
 * other's wait longer by a wake-up, its poll misses, it sleeps too, and the polls
 * of both shrink to nothing although the longest would always have paid.
 *
 * A key that is added on the CPU on which the Get waits is met by no poll: whoever
 * adds it runs only when the poll is over. And no poll brings a deadline closer.
 *
 * Width. Waking one Get at a time is fastest while handlers are short: the
 * woken one finds the keys that came meanwhile and nobody else need wake. With
 * long handlers it would let the second key wait for the first handler. So one
 * hold in 64 is timed; if they take more than 20 µs in the mean, every ready
 * key wakes a Get. Liveness does not depend on it: each Get that takes a key
 * picks the next.
 */
#include "queue/memory.h"
#include "time/clock.h"

enum {
	LONG_HOLD_NS = 20000,
	SHORTEST_POLL_US = 2,
	/*
	 * The longest poll, 50 µs, and a wake-up of about 25 µs, by which a wait that
	 * ends in a sleep is longer than the poll would have been.
	 */
	SHORT_WAIT_NS = 75000,
};

enum woken { PICKED, TIMED_OUT, INTERRUPTED };

/* Written under the front lock; a Get that takes the back lock alone looks at it, too. */
static void set_first(struct wq__memory *m, struct wq__waiter *w)
{
	atomic_store_explicit(&m->gets, w, memory_order_relaxed);
}

static struct wq__waiter *first(const struct wq__memory *m)
{
	return atomic_load_explicit(&m->gets, memory_order_relaxed);
}

static void link_waiter(struct wq__memory *m, struct wq__waiter *w)
{
	w->prev = NULL;
	w->next = first(m);
	if (w->next)
		w->next->prev = w;
	set_first(m, w);
}

static void unlink_waiter(struct wq__memory *m, struct wq__waiter *w)
{
	if (w->prev)
		w->prev->next = w->next;
	else
		set_first(m, w->next);
	if (w->next)
		w->next->prev = w->prev;
	if (m->leader == w)
		m->leader = NULL;
}

/* Take it off the list and mark it; true: it sleeps in the kernel. */
static bool release(struct wq__memory *m, struct wq__waiter *w)
{
	unlink_waiter(m, w);
	m->inflight++;
	if (WQ__BUG(MARK_AFTER_UNLOCK))
		return true;
	return wq__parker_set(&w->parker);
}

/*
 * Does some key become ready by itself? In a queue that is closing, what waits does not come due
 * any more; a group that has no token gets one.
 */
static bool comes_due(const struct wq__memory *m)
{
	return wq__next_wake(m) != WQ_NEVER;
}

struct wq__waiter *wq__pick_slow(struct wq__memory *m)
{
	struct wq__waiter *w = first(m);
	uint32_t ready = wq__about_ready(m), width = m->width;
	uint32_t keys = ready < width ? ready : width;
	/*
	 * Somebody has to sleep until the next due time. A Get that counts itself while it polls
	 * makes the queue whole before it is none any more.
	 */
	uint32_t inflight = atomic_load_explicit(&m->inflight, memory_order_relaxed);
	bool leaderless = comes_due(m) && !m->leader && inflight == 0 && !WQ__BUG(LEADER_LOST);

	if (inflight >= keys && !leaderless)
		return NULL;
	return release(m, w) ? w : NULL;
}

/* The next due time has become earlier: the leader has to look again. */
struct wq__waiter *(wq__rouse_leader)(struct wq__memory *m)
{
	struct wq__waiter *w = m->leader;

	if (!w || wq__next_wake(m) >= m->leader_until_ns || WQ__BUG(EARLIER_NO_WAKE))
		return NULL;
	return release(m, w) ? w : NULL;
}

/* Under the lock, because the list is walked: this is shutdown, or a clock that jumped. */
void(wq__wake_all_gets)(struct wq__memory *m)
{
	wq__call_poller(m);
	while (first(m)) {
		struct wq__waiter *w = first(m);

		if (release(m, w))
			wq__wake(w);
		if (WQ__BUG(SHUTDOWN_WAKES_ONE))
			return;
	}
}

/* Would the longest poll have met what this wait was for? */
static bool poll_would_pay(const wq__parker *p, bool in_time, int64_t waited_ns)
{
	return in_time && waited_ns < SHORT_WAIT_NS && !wq__parker_same_cpu(p);
}

static void adapt_spin(struct wq__memory *m, bool would_pay)
{
	uint32_t n = m->spin_pauses / 2;

	if (n < SHORTEST_POLL_US * m->pauses_per_us)
		n = 0;
	m->spin_pauses = would_pay ? m->spin_max : n < m->spin_min ? m->spin_min : n;
}

void wq__spin_paid(struct wq__memory *m)
{
	adapt_spin(m, true);
}

static bool spin(struct wq__memory *m, struct wq__waiter *w, uint32_t pauses)
{
	struct wq__waiter *me = w;
	bool set = wq__parker_poll(&w->parker, pauses);

	/* Whoever finds another one there leaves it: it is a hint, not a lock. */
	atomic_compare_exchange_strong_explicit(&m->spinner, &me, NULL, memory_order_relaxed,
	                                        memory_order_relaxed);
	return set;
}

/* How long to poll: not past the deadline. */
uint32_t wq__spin_budget(const struct wq__memory *m, int64_t deadline_ns)
{
	enum { LONGEST_US = 2000 };
	int64_t left_us;

	if (m->spin_pauses == 0 || wq__one_cpu())
		return 0;
	if (deadline_ns == WQ_NEVER)
		return m->spin_pauses;
	left_us = (deadline_ns - wq__now(m)) / 1000;
	if (left_us > LONGEST_US)
		return m->spin_pauses;

	int64_t most = left_us > 0 ? left_us * m->pauses_per_us : 0;

	return most < m->spin_pauses ? (uint32_t)most : m->spin_pauses;
}

/* Wait to be picked, or for the deadline. The lock is held before and after. */
static enum woken sleep_get(struct wq__memory *m, int64_t deadline_ns, const wq_gate *gate)
{
	struct wq__waiter w = {.gate = gate}, *nobody = NULL;
	int64_t until = deadline_ns, waited_ns = 0;
	uint32_t pauses;
	bool spun, paid, judged, in_time, kept = wq__let_time_go(m);

	wq__parker_init(&w.parker);
	link_waiter(m, &w);
	if (comes_due(m) && !m->leader) {
		/* cppcheck-suppress autoVariables ; it is taken off before this call returns */
		m->leader = &w;
		m->leader_until_ns = wq__next_wake(m);
		if (until > m->leader_until_ns)
			until = m->leader_until_ns;
	}
	pauses = wq__laned(m) ? 0 : wq__spin_budget(m, until);
	until = wq__clock_deadline(&m->clock, until);
	m->inside++;
	spun = pauses > 0 &&
	       atomic_compare_exchange_strong_explicit(&m->spinner, &nobody, &w,
	                                               memory_order_relaxed, memory_order_relaxed);
	wq__whole_unlock(m);
	paid = spun && spin(m, &w, pauses);
	/* Not while another one polls: keys that come are for that one first. */
	judged = m->spin_max > 0 && (spun || pauses == 0);
	if (judged && !paid)
		waited_ns = (int64_t)pauses * 1000 / m->pauses_per_us - wq__clock_now();
	in_time = paid || wq__parker_sleep(&w.parker, until);
	if (judged && !paid)
		waited_ns += wq__clock_now();
	wq__whole_lock(m);
	m->inside--;
	if (kept)
		wq__keep_time(m);
	if (judged)
		adapt_spin(m, poll_would_pay(&w.parker, in_time, waited_ns));
	if (w.interrupted)
		return INTERRUPTED;
	/* It may be picked after its time was up: then it is awake all the same. */
	if (!wq__parker_is_set(&w.parker)) {
		unlink_waiter(m, &w);
		return TIMED_OUT;
	}
	if (!(WQ__BUG(INFLIGHT_LEAK) && !in_time))
		m->inflight--;
	return in_time || !WQ__BUG(TIMEOUT_EATS_WAKE) ? PICKED : TIMED_OUT;
}

/*
 * Does a shutdown end this Get? A pool's waits on for what the last holds may
 * bring back, because nobody else might take it.
 */
static bool is_over(struct wq__memory *m, const wq_gate *gate)
{
	if (!(m->flags & WQ__SHUT))
		return false;
	if (m->flags & WQ__PATIENT)
		return wq__drained(m);
	/* Blocked keys are queued: somebody has to take them. */
	if (m->nblocked > 0 && !WQ__BUG(GROUP_SHUT_LEFT))
		return false;
	if (!gate || wq__idle(m) || WQ__BUG(GATE_HOLD_LOST))
		return true;
	m->flags |= WQ__GATED;
	return false;
}

/*
 * Nothing is ready: wait until something is. The lock is held before and
 * after, and let go of meanwhile.
 */
int wq__await_ready(struct wq__memory *m, int64_t deadline_ns, const wq_gate *gate, uint32_t seen)
{
	bool unchecked = false;

	for (;;) {
		bool ready = wq__ready(m);

		if (gate && gate->changes != seen)
			return WQ_EINTERRUPTED;
		if (ready && !unchecked)
			return WQ_OK;
		if (is_over(m, gate))
			return WQ_ESHUTDOWN;
		if (deadline_ns == WQ_NOWAIT) {
			wq__fd_clear(m);
			return WQ_EAGAIN;
		}
		if (deadline_ns != WQ_NEVER && wq__now(m) >= deadline_ns)
			return WQ_ETIMEDOUT;
		if (!gate && m->interrupts > 0) {
			m->interrupts--;
			return WQ_EINTERRUPTED;
		}

		enum woken how = sleep_get(m, deadline_ns, gate);

		if (how == INTERRUPTED)
			return WQ_EINTERRUPTED;
		if (how == TIMED_OUT && WQ__BUG(TIMEOUT_EATS_WAKE))
			return WQ_ETIMEDOUT;
		unchecked = how == PICKED && WQ__BUG(WAIT_UNCHECKED);
	}
}

/*
 * Takes it off the list; it looks again, and is not counted in inflight. If it was
 * the leader, it picks another one before it returns, as every Get does.
 */
static void interrupt(struct wq__memory *m, struct wq__waiter *w)
{
	unlink_waiter(m, w);
	w->interrupted = true;
	if (wq__parker_set(&w->parker))
		wq__parker_wake(&w->parker);
}

int wq__mem_interrupt(void *state, int n)
{
	struct wq__memory *m = state;

	wq__whole_lock(m);

	int kept = (int)m->interrupts;

	if (n == 0)
		m->interrupts = 0;
	for (struct wq__waiter *w = first(m), *next; n > 0 && w; w = next) {
		next = w->next;
		if (!w->gate) {
			interrupt(m, w);
			n--;
		}
	}
	if (!WQ__BUG(INTERRUPT_LOST))
		m->interrupts = n > INT_MAX - kept ? INT_MAX : m->interrupts + (uint32_t)n;
	wq__call_poller(m);
	wq__whole_unlock(m);
	return kept;
}

uint32_t wq__mem_gate_change(void *state, wq_gate *gate)
{
	struct wq__memory *m = state;

	wq__whole_lock(m);

	uint32_t changes = ++gate->changes;

	wq__call_poller(m);

	for (struct wq__waiter *w = first(m), *next; w; w = next) {
		next = w->next;
		if (w->gate == gate)
			interrupt(m, w);
	}
	wq__whole_unlock(m);
	return changes;
}

static void learn(struct wq__memory *m, int64_t took)
{
	/* A few samples decide, so that a change of load shows soon. */
	m->hold_mean_ns += (took - m->hold_mean_ns) / 4;
	m->width = m->hold_mean_ns > LONG_HOLD_NS ? UINT32_MAX : 1;
}

/* The latest hold is timed from now on. */
void wq__sample_begin(struct wq__memory *m, uint64_t token)
{
	int64_t now = wq__clock_now();

	/* One that was timed and has not ended: with many long handlers none would ever end. */
	if (m->sample != 0 && now - m->sample_start_ns > LONG_HOLD_NS)
		learn(m, now - m->sample_start_ns);
	m->sample = token;
	m->sample_start_ns = now;
}

void wq__sample_end(struct wq__memory *m)
{
	m->sample = 0;
	learn(m, wq__clock_now() - m->sample_start_ns);
}

/*
 * Let go of the lock in the midst of long work, for whoever waits for it. All long work
 * does it here, or in wq__walk_locked() and wq__mem_add_many(). The caller counts as inside.
 */
void wq__breathe(struct wq__memory *m)
{
	struct wq__wakes wakes;
	bool kept = wq__let_time_go(m);

	m->inside++;
	wq__pick_many(m, &wakes);

	struct wq__whole_passed passed = wq__whole_pass(m);

	wq__wake_many(&wakes);
	wq__whole_retake(m, passed);
	m->inside--;
	if (kept)
		wq__keep_time(m);
}
