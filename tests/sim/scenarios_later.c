/*
 * Keys that wait for their time, beside Gets, cancels, reschedules and every
 * way to stop.
 *
 * Each key belongs to one owner, who alone adds, moves and cancels it, so what
 * is promised of a key at any time is known but for calls that are under way:
 * a promise that may be kept from its time on, and one that must be. The judge
 * looks at each key that is got (never early, never without a promise, one
 * worker a key), when everybody waits (somebody sleeps no longer than until the
 * next key comes due), and in the end (nothing that was accepted is lost, what
 * is left over is reported and counted).
 */
#include <string.h>

#include "../support/cancel.h"
#include "world.h"

enum { OWNERS = 2, OWN_KEYS = 3, KEYS = OWNERS * OWN_KEYS };

struct promise {
	int64_t due_ns;
	bool may, must;
};

static struct {
	wq_queue *q;
	struct key {
		struct promise own, reminder, add, pending; /* pending: of a call under way */
		uint32_t section;                           /* of the owner's last call */
		unsigned gets;
		bool held;
		bool rescheduled; /* maybe to a time that has passed: then it stands at the tail */
		int64_t done_ns;
	} key[KEYS];
	bool inside[SIM_MAX_TASKS]; /* in a Get */
	int64_t last_ns;            /* one worker: what it got last was added then */
	bool one_worker;
	int owners;
	bool stopping;
	bool patient;         /* the stop waits for what waits */
	bool released;        /* by a shutdown, which leaves the rest over */
	bool cut;             /* a shutdown has returned: nothing comes due any more */
	uint64_t least, most; /* copies that are left over */
} l;

/* ---- the judge -------------------------------------------------------------------- */

static bool may_fire(const struct promise *p, int64_t now_ns)
{
	return p->may && p->due_ns <= now_ns;
}

static void served(struct promise *p, int64_t from_ns, int64_t until_ns, bool surely)
{
	if (p->due_ns <= until_ns)
		p->must = false;
	/* A stop that queues what waits may do so after this Get. */
	if (p->due_ns <= from_ns && surely && !l.stopping)
		p->may = false;
}

static void got(const wq_item *it)
{
	int number = key_of(it);
	struct key *k = &l.key[number];
	int64_t from = sim_call_last_ns(), now = sim_now();
	bool after = sim_call_last() > k->section;

	sim_trace("got key %d in section %u", number, sim_call_last());
	if (k->held)
		sim_fail("key %d is with two workers", number);
	k->held = true;
	k->gets++;
	if (after && !may_fire(&k->own, now) && !may_fire(&k->reminder, now) &&
	    !may_fire(&k->add, now) && !may_fire(&k->pending, now))
		sim_fail("key %d is got at %lld: too early, or nobody has asked for it", number,
		         (long long)now);
	if (it->added_ns > now)
		sim_fail("key %d is got before its time %lld", number, (long long)it->added_ns);
	served(&k->own, from, now, after);
	served(&k->reminder, from, now, after);
	served(&k->add, from, now, after);
	/* By due time; one that came due while it was held stands behind. */
	if (!l.one_worker || l.stopping || k->rescheduled || it->added_ns <= k->done_ns)
		return;
	if (it->added_ns < l.last_ns)
		sim_fail("key %d of %lld is got after one of %lld", number, (long long)it->added_ns,
		         (long long)l.last_ns);
	l.last_ns = it->added_ns;
}

/* Everybody waits: does somebody wake in time? */
static void quiet_later(void)
{
	int asleep = 0;
	int64_t first_ns = WQ_NEVER, next_ns = WQ_NEVER;

	for (int i = 0; i < sim_tasks(); i++) {
		if (!l.inside[i] || !sim_sleeping(i))
			continue;
		asleep++;
		if (sim_sleeps_until(i) < first_ns)
			first_ns = sim_sleeps_until(i);
	}
	for (int i = 0; i < KEYS; i++) {
		const struct key *k = &l.key[i];

		if (k->own.must && !k->held && k->own.due_ns < next_ns)
			next_ns = k->own.due_ns;
		if (k->reminder.must && !k->held && k->reminder.due_ns < next_ns)
			next_ns = k->reminder.due_ns;
		if (k->add.must && !k->held && k->add.due_ns < next_ns)
			next_ns = k->add.due_ns;
	}
	if (asleep && next_ns != WQ_NEVER && next_ns <= sim_now())
		sim_fail("a key is due since %lld, and %d workers sleep", (long long)next_ns,
		         asleep);
	if (asleep && first_ns > next_ns)
		sim_fail("%d workers sleep, none of them only until %lld, when a key is due",
		         asleep, (long long)next_ns);
}

/* ---- the owners' calls -------------------------------------------------------------- */

static void promise(struct promise *p, int64_t due_ns, bool alone)
{
	/* If others got the key meanwhile, this promise may be kept already. */
	*p = (struct promise){due_ns, true, alone || due_ns > sim_now()};
}

static void call(struct key *k, int64_t due_ns)
{
	sim_call_begin();
	k->pending = (struct promise){due_ns, true, false};
}

static void returned(struct key *k)
{
	k->pending.may = false;
	if (sim_call_last())
		k->section = sim_call_last();
}

/* The key was added at once. */
static void added(struct key *k, int rc, int64_t began_ns, bool alone)
{
	if (rc != WQ_MERGED)
		k->own = (struct promise){0}; /* absorbed */
	if (rc == WQ_MERGED)
		k->add = (struct promise){began_ns, true, k->add.must};
	else
		promise(&k->add, began_ns, alone);
}

static void add_now(int number)
{
	struct key *k = &l.key[number];
	unsigned gets = k->gets;
	int64_t began = sim_now();
	size_t len;
	const char *bytes = key_bytes(number, &len);

	call(k, began);

	int rc = wq_add(l.q, bytes, len);

	sim_trace("add key %d -> %s", number, wq_status_name(rc));
	if (rc != WQ_QUEUED && rc != WQ_MARKED && rc != WQ_MERGED)
		sim_fail("add answered %s", wq_status_name(rc));
	added(k, rc, began, gets == k->gets);
	returned(k);
}

static void add_later(int number, int64_t due_ns, enum wq_policy policy)
{
	struct key *k = &l.key[number];
	struct promise *copy = policy == WQ_REMIND ? &k->reminder : &k->own;
	unsigned gets = k->gets;
	int64_t began = sim_now();
	size_t len;
	const char *bytes = key_bytes(number, &len);

	call(k, due_ns);

	int rc = wq_add_with(l.q, bytes, len, &(wq_add_options){.at_ns = due_ns, .policy = policy});

	sim_trace("add key %d at %lld by policy %d -> %s", number, (long long)due_ns, (int)policy,
	          wq_status_name(rc));
	switch (rc) {
	case WQ_DELAYED:
		/* An older copy has come due, and is in line like an add. */
		if (may_fire(copy, sim_now()))
			k->add = (struct promise){copy->due_ns, true, copy->must || k->add.must};
		promise(copy, due_ns, gets == k->gets);
		break;
	case WQ_MOVED:
		promise(copy, due_ns, gets == k->gets);
		break;
	case WQ_KEPT:
		if (copy->may && policy == WQ_MIN && due_ns < copy->due_ns)
			sim_fail("key %d keeps %lld, but %lld is earlier", number,
			         (long long)copy->due_ns, (long long)due_ns);
		break;
	case WQ_MERGED:
		break;
	case WQ_QUEUED:
	case WQ_MARKED:
		if (due_ns > sim_now())
			sim_fail("key %d is ready before its time", number);
		added(k, rc, began, gets == k->gets);
		break;
	default:
		sim_fail("add_with answered %s", wq_status_name(rc));
	}
	returned(k);
}

static void reschedule(int number, int64_t due_ns)
{
	struct key *k = &l.key[number];
	unsigned gets = k->gets;
	size_t len;
	const char *bytes = key_bytes(number, &len);

	k->rescheduled = true;
	call(k, due_ns);

	int rc = wq_reschedule(l.q, bytes, len, due_ns);

	sim_trace("reschedule key %d to %lld -> %s", number, (long long)due_ns, wq_status_name(rc));
	if (rc == WQ_MOVED)
		promise(&k->own, due_ns, gets == k->gets);
	else if (rc != WQ_ENOTFOUND && !(rc == WQ_ESHUTDOWN && l.released))
		sim_fail("reschedule answered %s", wq_status_name(rc));
	returned(k);
}

static void take_back(int number)
{
	struct key *k = &l.key[number];
	unsigned gets = k->gets;
	bool held = k->held, wait = sim_chance(2);
	int64_t deadline = sim_chance(2) ? soon() : WQ_NEVER;
	size_t len;
	const char *bytes = key_bytes(number, &len);

	sim_call_begin();

	int rc = wait ? cancel_key_until(l.q, bytes, len, deadline) : cancel_key(l.q, bytes, len);

	sim_trace("cancel key %d -> %d", number, rc);
	if (rc < 0 && rc != WQ_ENOTFOUND && !(wait && rc == WQ_ETIMEDOUT))
		sim_fail("cancel answered %s", wq_status_name(rc));
	if (rc == WQ_ETIMEDOUT && sim_now() < deadline)
		sim_fail("cancel timed out early");
	if (wait && rc > 0 && held && k->held && gets == k->gets)
		sim_fail("a cancel that waits returned, and key %d is still held", number);
	/* A wait for the holder takes sections: what it gets after the first is not asked for. */
	k->own = k->reminder = k->add = (struct promise){0};
	k->section = sim_call_last();
}

/* ---- stopping ----------------------------------------------------------------------- */

/* How many copies wait for a time after ns. */
static uint64_t copies_after(int64_t ns)
{
	uint64_t n = 0;

	for (int i = 0; i < KEYS; i++) {
		n += l.key[i].own.may && l.key[i].own.due_ns > ns;
		n += l.key[i].reminder.may && l.key[i].reminder.due_ns > ns;
	}
	return n;
}

static void give_up_after(int64_t ns)
{
	for (int i = 0; i < KEYS; i++) {
		struct promise *p[] = {&l.key[i].own, &l.key[i].reminder};

		for (int j = 0; j < 2; j++)
			if (p[j]->due_ns > ns)
				p[j]->must = false;
	}
}

/* From now on everything may be got at once, in the order of the times. */
static void run_all(void)
{
	for (int i = 0; i < KEYS; i++) {
		struct promise *p[] = {&l.key[i].own, &l.key[i].reminder};

		for (int j = 0; j < 2; j++)
			if (p[j]->due_ns != WQ_NEVER && p[j]->due_ns > sim_now())
				p[j]->due_ns = sim_now();
	}
}

/* What is not due by then is left over. */
static void shut_down(void)
{
	give_up_after(sim_now());
	l.most = copies_after(sim_now());
	SIM_CHECK(wq_shutdown(l.q) == WQ_OK);
	l.cut = true;
	l.least = copies_after(sim_now());
}

/* Nothing is in line or held; what waits is said by the answer and counted. */
static void check_report(int rc, const wq_report *r)
{
	SIM_CHECK(r->queued == 0 && r->running == 0 && r->dirty == 0 && r->retries == 0);
	SIM_CHECK(rc == (r->delayed > 0 ? WQ_LEFT : WQ_OK));
}

/* Beside a drain that waits: takes away what it waits for, or ends it. */
static void regret(void *arg)
{
	(void)arg;
	for (int key = 0; key < KEYS; key++) {
		sim_pass(sim_random(4000));
		if (sim_chance(2))
			take_back(key);
		else if (key % OWN_KEYS != OWN_KEYS - 1 && l.key[key].own.due_ns != WQ_NEVER)
			/* One that waits for ever could be called back when all have gone. */
			reschedule(key, sim_chance(2) ? WQ_NEVER : soon());
	}
	if (sim_chance(2))
		return;
	l.released = true;
	shut_down();
}

static void wait_for_all(void)
{
	bool alone = sim_chance(2);
	uint64_t never = copies_after(WQ_NEVER - 1);
	wq_report r = {0};

	l.patient = true;
	if (!alone)
		sim_spawn("regret", regret, NULL);

	int rc = wq_drain_until(l.q, WQ_NEVER, &(wq_drain_options){.mode = WQ_DRAIN_WAIT}, &r);

	if (rc == WQ_EINTERRUPTED && l.released)
		return;
	check_report(rc, &r);
	if (alone)
		SIM_CHECK(r.delayed == never);
}

static void stop(void)
{
	wq_drain_options o = {.mode = (enum wq_drain_mode)sim_random(3)};
	int64_t began = sim_now();
	uint64_t never = copies_after(WQ_NEVER - 1);
	wq_report r = {0};

	l.stopping = true;
	if (sim_chance(4)) {
		shut_down();
		return;
	}
	if (o.mode == WQ_DRAIN_WAIT) {
		wait_for_all();
		return;
	}
	l.most = copies_after(began);
	if (o.mode == WQ_DRAIN_LEAVE)
		give_up_after(began);
	if (o.mode == WQ_DRAIN_RUN)
		run_all();
	give_up_after(WQ_NEVER - 1);
	check_report(wq_drain_until(l.q, WQ_NEVER, &o, &r), &r);
	if (o.mode == WQ_DRAIN_RUN)
		SIM_CHECK(r.delayed == never);
	else if (r.delayed > l.most || r.delayed < copies_after(sim_now()))
		sim_fail("%llu copies are left over; at least %llu waited, at most %llu",
		         (unsigned long long)r.delayed, (unsigned long long)copies_after(sim_now()),
		         (unsigned long long)l.most);
	l.least = l.most = r.delayed;
}

/* ---- tasks -------------------------------------------------------------------------- */

static int64_t later(void)
{
	if (sim_chance(12))
		return WQ_NEVER;
	return sim_now() + 1 + sim_random(1u << (4 + sim_random(14)));
}

/* The last key of each owner is for reminders, the others are moved. */
static void owner(void *arg)
{
	int first = *(int *)arg * OWN_KEYS, last = first + OWN_KEYS - 1;

	for (uint32_t n = 3 + sim_random(6); n > 0; n--) {
		int key = first + (int)sim_random(OWN_KEYS - 1);

		switch (sim_random(9)) {
		case 0:
			add_now(sim_chance(2) ? key : last);
			break;
		case 1:
			take_back(sim_chance(2) ? key : last);
			break;
		case 2:
			reschedule(key, later());
			break;
		case 3:
			add_later(last, later(), WQ_REMIND);
			break;
		case 4:
			sim_pass(sim_random(1u << (4 + sim_random(14))));
			break;
		default:
			add_later(key, later(), (enum wq_policy)sim_random(WQ_REMIND));
		}
	}
	if (--l.owners == 0)
		stop();
}

static void worker(void *arg)
{
	bool timed = arg != NULL;

	for (;;) {
		wq_item it;
		int64_t deadline = timed ? soon() : WQ_NEVER;

		sim_call_begin();
		l.inside[sim_self()] = true;

		int rc = wq_get_until(l.q, &it, deadline);

		l.inside[sim_self()] = false;
		if (rc == WQ_ESHUTDOWN)
			return;
		if (rc == WQ_ETIMEDOUT) {
			SIM_CHECK(timed && sim_now() >= deadline);
			/* Not for ever: nobody else may be left to take its place. */
			timed = !sim_chance(4);
			continue;
		}
		SIM_CHECK(rc == WQ_OK);
		got(&it);

		struct key *k = &l.key[key_of(&it)];

		work(&it);
		k->held = false;

		bool cut = l.cut;

		rc = wq_done(l.q, &it);
		k->done_ns = sim_now();
		SIM_CHECK(rc == WQ_OK || rc == WQ_QUEUED || (rc == WQ_DELAYED && !cut) ||
		          (rc == WQ_LEFT && l.stopping));
	}
}

static void setup_later(void)
{
	static int numbers[] = {0, 1};
	int workers = 1 + (int)sim_random(3);

	memset(&l, 0, sizeof l);
	/* With a name, so that the times of adds are exact. */
	world_open(&(wq_options){.name = "later"});
	l.q = w.q;
	w.q = NULL;
	l.one_worker = workers == 1;
	l.owners = 1 + (int)sim_random(OWNERS);
	for (int i = 0; i < l.owners; i++)
		sim_spawn("owner", owner, &numbers[i]);
	for (int i = 0; i < workers; i++)
		sim_spawn("worker", worker, i > 0 && sim_chance(2) ? &l : NULL);
}

static void finish_later(void)
{
	for (int i = 0; i < KEYS; i++) {
		const struct key *k = &l.key[i];

		if ((k->own.must && k->own.due_ns != WQ_NEVER) ||
		    (k->reminder.must && k->reminder.due_ns != WQ_NEVER) || k->add.must)
			sim_fail("key %d was accepted and is lost", i);
	}

	/* One that waits leaves those over that never come due. */
	if (l.patient && !l.released)
		l.least = l.most = copies_after(WQ_NEVER - 1);

	/* A key has one copy here: its own, or a reminder. */
	int rc = wq_free(l.q);

	if (rc < (int)l.least || rc > (int)l.most)
		sim_fail("wq_free answered %d, expected %d to %d", rc, (int)l.least, (int)l.most);
}

const struct scenario scenarios_later[] = {
    {"later", "delayed adds beside gets, cancels, reschedules, and a stop", 120, setup_later,
     finish_later, quiet_later},
    {0},
};
