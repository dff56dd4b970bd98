/*
 * Every pair of public calls on every schedule with few preemptions, with holds
 * of the lock that do 1, 2 or 3 steps of long work; and triples with calls that
 * stop or free the queue. See pairs.h.
 *
 *     test_sim_pairs                            all of it, with one preemption
 *     test_sim_pairs --part 1/2                 every second group of calls
 *     test_sim_pairs --state mix --calls drain-leave,shutdown --hold 1
 *     ... --schedule aab --trace                one schedule, step by step
 *     test_sim_pairs --list                     states and calls
 *
 * --lanes: of queues with a lane, in which Gets poll before they sleep.
 * --preemptions N explores all schedules with N of them; WQ_LONG=1: two for most
 * pairs, with lanes for every sixteenth. --bug NAME switches a seeded bug on, --failures N goes on until N groups have failed,
 * --expect-failure wants so many to fail.
 */
#include "pairs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "all.h"
#include "base/bug.h"
#include "explore.h"

enum {
	HOLDS = 3,
	QUICK_STOPS = 2,
	QUICK_SHARE = 4,
	GROUPS_SHARE = 4,
	GROUPS_POOL_SHARE = 16,
	LANES_SHARE = 14,
	LANES_TWICE = 16,
	MAX_FAILURES = 20,
	MAX_RUNS = 200000
};

/* With lanes each group runs with one length of holds, in turn, and unless there is time, every
 * fourteenth runs, from all states.
 * QUICK: unless there is time, each group runs with one length of holds, in turn, and of
 * those that do not stop the queue, every fourth runs. */
enum has {
	WAITING = 1,
	HELD = 2,
	LINE = 4,
	DUE = 8,
	POOL = 16,
	NAMED = 32,
	QUICK = 64,
	MOVED = 128,
	GROUPS = 256,    /* the held keys fill a group; those in line are blocked */
	RATE = 512,      /* and have used its tokens */
	LAST_LINE = 1024 /* one key is in line */
};

/* How a run begins. `early` is a call that waits already. */
static const struct state {
	const char *name;
	unsigned has;
	const char *early;
} states[] = {
    {"waiting", WAITING, NULL},
    {"mix", WAITING | HELD | LINE, NULL},
    {"due", WAITING | HELD | LINE | DUE, NULL},
    {"overdue", WAITING | DUE | MOVED | QUICK, NULL},
    {"get-waits", WAITING | HELD | QUICK, "get"},
    {"drain-waits", HELD | LINE | QUICK, "drain-leave"},
    {"patient", WAITING | HELD | QUICK, "drain-wait"},
    {"pool", WAITING | HELD | LINE | POOL | QUICK, NULL},
    {"named", WAITING | HELD | LINE | NAMED | QUICK, NULL},
    {"groups", WAITING | HELD | LINE | GROUPS, NULL},
    {"groups-get", HELD | LINE | GROUPS | QUICK, "get"},
    {"groups-last", HELD | LAST_LINE | GROUPS | QUICK, "get"},
    {"groups-drain", HELD | LINE | GROUPS | QUICK, "drain-leave"},
    {"groups-pool", HELD | LAST_LINE | POOL | GROUPS | QUICK, NULL},
    {"rates", WAITING | HELD | LINE | GROUPS | RATE | QUICK, NULL},
    {"rates-get", HELD | LINE | GROUPS | RATE | QUICK, "get"},
    {"free", WAITING | LINE | QUICK, NULL},
    {"groups-free", WAITING | LINE | GROUPS | QUICK, NULL},
};
enum { NSTATES = sizeof states / sizeof *states };

static const char *const key_names[PAIRS_KEYS] = {"new1",  "new2",  "reminded", "limited", "wait1",
                                                  "wait2", "wait3", "never1",   "held1",   "held2",
                                                  "held3", "line1", "line2",    "line3"};

struct pairs run;

/* What is run. */
static struct {
	const struct state *state;
	const struct op *op[MAX_CALLS];
	int n;
} group;

const char *pairs_key(int key)
{
	return key_names[key];
}

int pairs_key_of(const wq_item *it)
{
	for (int k = 0; k < PAIRS_KEYS; k++) {
		if (strcmp(it->key, key_names[k]) == 0)
			return k;
	}
	sim_fail("a key from nowhere, %zu bytes long", it->len);
}

/* Two groups: "w" has the keys that wait and the second new one, "e" all others. */
static int group_of(void *ctx, const void *key, size_t len, wq_key *name)
{
	const char *at = memchr(key, 'w', len);

	(void)ctx;
	if (!at || strncmp(key, "new1", len) == 0)
		at = memchr(key, 'e', len);
	*name = (wq_key){at, 1};
	return WQ_OK;
}

/* ---- tasks ---------------------------------------------------------------------- */

static bool may_go(void *arg)
{
	const struct call *c = arg;

	if (!run.go)
		return false;
	/* Nobody may call a queue that is being freed: all others are inside, or have been. */
	for (int i = 0; c->op->flags & FREES && i < run.ncalls; i++) {
		if (&run.call[i] != c && !run.call[i].returned &&
		    !sim_section_of(run.call[i].task, 1))
			return false;
	}
	return true;
}

/* Has it, by its return, cut off what waits? No drain is there that waits, or this ends it. */
static bool cuts(const struct call *c)
{
	for (int i = 0; i < run.ncalls; i++) {
		if (run.call[i].op->flags & WAITS)
			return c->op->flags & RELEASES;
	}
	return c->op->flags & STOPS;
}

static void make_call(struct call *c)
{
	c->task = sim_self();
	c->begun = true;
	for (int i = 0; i < run.ncalls; i++)
		c->shut_before |= run.call[i].returned && run.call[i].op->flags & STOPS;
	sim_call_begin();
	sim_trace("%s", c->op->name);
	if (c->op->flags & STOPS && !run.stopped)
		run.stopped = 2 * sim_section() + 1;
	c->rc = c->op->make(c);
	c->first = sim_call_first();
	c->last = sim_call_last();
	c->returned = true;
	if (!run.cut && cuts(c))
		run.cut = c->last;
	sim_trace("%s -> %lld", c->op->name, (long long)c->rc);
	pairs_answered(c);
}

static void caller(void *arg)
{
	sim_until(may_go, arg);
	make_call(arg);
}

static void early_caller(void *arg)
{
	make_call(arg);
}

static bool finishing(void *arg)
{
	(void)arg;
	return run.finishing;
}

static wq_verdict handler(void *ctx, const wq_item *it)
{
	int key = pairs_key_of(it);

	(void)ctx;
	pairs_got(it);
	run.pooled[key] = true;
	run.handlers++;
	sim_until(finishing, NULL);
	run.handlers--;
	run.pooled[key] = false;
	pairs_ends(key);
	sim_call_begin(); /* the worker's next turn */
	return WQ_DONE;
}

/* ---- the end of a run ------------------------------------------------------------- */

static void end_hold(int key)
{
	wq_item it = run.item[key];

	pairs_ends(key);
	sim_call_begin();

	int rc = wq_done(run.q, &it);

	if (rc < 0)
		sim_fail("done of %s: %s", key_names[key], wq_status_name(rc));
	pairs_hold_ended(key, rc, sim_call_last());
}

static void end_holds(void)
{
	for (int k = 0; k < PAIRS_KEYS; k++) {
		if (run.holding[k] && !run.pooled[k])
			end_hold(k);
	}
}

/* Are keys in line that only wait for their group to have a token? */
static bool paced(void)
{
	wq_snapshot s;

	SIM_CHECK(wq_snapshot_take(run.q, &s) == WQ_OK);
	return s.blocked > 0 && s.running == 0;
}

/* Takes what is ready; with a drain that waits, also what comes due. */
static void work_off(bool patient)
{
	wq_item it;

	for (;;) {
		sim_call_begin();
		if (wq_try_get(run.q, &it) == WQ_OK) {
			pairs_got(&it);
			end_hold(pairs_key_of(&it));
			continue;
		}

		int64_t next = wq_next_deadline(run.q);

		if (!(patient || paced()) || next == WQ_NEVER)
			return;
		if (next > sim_now())
			sim_advance(next - sim_now());
	}
}

static bool at_stage(void *arg)
{
	return run.stage >= (int)(intptr_t)arg;
}

static bool all_returned(void *arg)
{
	(void)arg;
	for (int i = 0; i < run.ncalls; i++) {
		if (!run.call[i].returned)
			return false;
	}
	return true;
}

/* All calls have returned, or one of them has got a key since, which others may wait for. */
static bool returned_or_holds(void *arg)
{
	for (int k = 0; k < PAIRS_KEYS; k++) {
		if (run.holding[k] && !run.pooled[k])
			return true;
	}
	return all_returned(arg);
}

static void finisher(void *arg)
{
	wq_report r;
	bool patient = false;

	(void)arg;
	sim_until(at_stage, (void *)1);
	run.finishing = true;
	if (!run.q)
		return;
	for (int i = 0; i < run.ncalls; i++)
		patient |= (run.call[i].op->flags & WAITS) != 0;
	end_holds();
	sim_until(at_stage, (void *)2);
	work_off(patient);
	sim_until(at_stage, (void *)3);
	if (!run.stopped)
		run.stopped = 2 * sim_section() + 1;
	sim_call_begin();
	SIM_CHECK(wq_shutdown(run.q) == WQ_OK);
	run.cut = run.cut ? run.cut : sim_call_last();
	do {
		end_holds();
		work_off(false);
		sim_until(returned_or_holds, NULL);
	} while (!all_returned(NULL));
	end_holds();
	work_off(false);
	if (run.pool)
		SIM_CHECK(wq_pool_free(run.pool) == WQ_OK);

	int drained = wq_drain_until(run.q, sim_now(), NULL, &r);

	SIM_CHECK(drained == (r.retries + r.delayed > 0 ? WQ_LEFT : WQ_OK));

	int left = pairs_judge_end(&r);
	wq_queue *q = run.q;

	run.q = NULL; /* nobody looks at it any more */

	int rc = wq_free(q);

	if (rc != left)
		sim_fail("wq_free answered %d, but %d keys were left over", rc, left);
	if (run.registry)
		SIM_CHECK(wq_registry_free(run.registry) == WQ_OK);
}

/* Everybody waits. Time goes first, if somebody waits for a time. */
static void quiet(void)
{
	if (!run.go) {
		run.go = true;
		return;
	}
	pairs_judge_waits();
	for (int i = 0; i < sim_tasks(); i++) {
		if (sim_sleeping(i) && sim_sleeps_until(i) != INT64_MAX)
			return;
	}
	run.stage++;
}

/* ---- the beginning ------------------------------------------------------------------ */

static void give(int key, int64_t after_ns)
{
	size_t len = strlen(key_names[key]);
	int rc = after_ns ? wq_add_after(run.q, key_names[key], len, after_ns)
	                  : wq_add(run.q, key_names[key], len);

	SIM_CHECK(rc > 0);
	*(after_ns ? &run.waited[key] : &run.wanted[key]) = 1;
}

static void fill(unsigned has)
{
	if (has & HELD) {
		for (int k = HELD1; k <= HELD3; k++) {
			give(k, 0);
			SIM_CHECK(wq_try_get(run.q, &run.item[k]) == WQ_OK);
			run.holding[k] = true;
			run.wanted[k] = 0;
		}
		give(HELD2, 0);
		give(HELD3, 15000);
	}
	if (has & WAITING) {
		give(WAIT1, 10000);
		give(WAIT2, 20000);
		give(WAIT3, 30000);
		give(NEVER1, WQ_NEVER);
	}
	/* It leaves a dead reference, the first that is due. */
	if (has & MOVED)
		SIM_CHECK(wq_reschedule(run.q, key_names[WAIT1], strlen(key_names[WAIT1]),
		                        sim_now() + 40000) == WQ_MOVED);
	for (int k = LINE1; has & LINE && k <= LINE3; k++)
		give(k, 0);
	if (has & LAST_LINE)
		give(LINE1, 0);
	if (has & DUE)
		sim_advance(50000);
}

static const struct op *op_named(const char *name, size_t len)
{
	for (int i = 0; i < pairs_nops; i++) {
		if (strlen(pairs_ops[i].name) == len && memcmp(pairs_ops[i].name, name, len) == 0)
			return &pairs_ops[i];
	}
	return NULL;
}

static void setup(void)
{
	unsigned has = group.state->has;
	wq_options o = {.allocator = world_allocator(),
	                .seed = 1,
	                .spin_ns = sim_lanes ? 5000 : WQ_SPIN_NEVER};

	memset(&run, 0, sizeof run);
	if (has & GROUPS) {
		o.group = group_of;
		o.group_limit = 3;
		o.priorities = o.values = 1;
	}
	if (has & RATE) {
		o.group_rate = 1e5;
		o.group_burst = 3;
	}
	if (has & NAMED) {
		SIM_CHECK(wq_registry_new(&run.registry) == WQ_OK);
		o.registry = run.registry;
		o.name = "pairs";
	}
	SIM_CHECK(wq_new(&run.q, &o) == WQ_OK);
	sim_quiet_begin();
	fill(has);
	sim_quiet_end();
	if (has & POOL)
		SIM_CHECK(wq_pool_start(&run.pool, run.q,
		                        &(wq_pool_options){.workers = 1, .handler = handler}) ==
		          WQ_OK);
	if (group.state->early) {
		run.call[0].op = op_named(group.state->early, strlen(group.state->early));
		sim_spawn(group.state->early, early_caller, &run.call[run.ncalls++]);
	}
	for (int i = 0; i < group.n; i++) {
		struct call *c = &run.call[run.ncalls++];

		c->op = group.op[i];
		c->task = sim_tasks();
		sim_spawn(c->op->name, caller, c);
	}
	sim_spawn("finisher", finisher, NULL);
}

static const struct scenario scenario = {.name = "pairs", .setup = setup, .quiet = quiet};

/* ---- which groups are run ------------------------------------------------------------ */

static struct {
	const struct state *state;
	const char *calls, *schedule;
	int preemptions, hold, failures;
	bool long_run, expect_failure;
	unsigned part, parts;
} opt = {.preemptions = -1, .failures = MAX_FAILURES, .part = 1, .parts = 1};

static struct {
	uint64_t groups, runs, cut;
	int failures;
} sum;

/* Does the call make sense in this state? */
static bool fits(const struct op *op, const struct state *s)
{
	if (op->flags & WANTS_POOL && !(s->has & POOL))
		return false;
	if (op->flags & WANTS_REGISTRY && !(s->has & NAMED))
		return false;
	if (op->flags & WANTS_HELD && !(s->has & HELD))
		return false;
	return (op->flags & FREES) == 0;
}

/* Does one of the calls stop the queue? */
static bool stops(void)
{
	for (int i = 0; i < group.n; i++) {
		if (group.op[i]->flags & (STOPS | FREES))
			return true;
	}
	return false;
}

/*
 * How many preemptions, unless we were told: two if there is time, where that pays most; with lanes,
 * which have many more points to switch at, for a share of the groups.
 */
static int preemptions(void)
{
	bool pays = group.n == 2 && (stops() || !(group.state->has & QUICK));

	if (opt.preemptions >= 0)
		return opt.preemptions;
	return opt.long_run && pays && (!sim_lanes || sum.groups % LANES_TWICE == 0) ? 2 : 1;
}

static void run_group(void)
{
	struct explored x;

	bool quick = !opt.long_run && !opt.calls && (group.state->has & QUICK || sim_lanes);

	if (sum.groups++ % opt.parts != opt.part - 1)
		return;
	if (quick && (sim_lanes || !stops()) &&
	    sum.groups / opt.parts % (sim_lanes ? LANES_SHARE : QUICK_SHARE) != 0)
		return;
	/* They have no lanes, and there are many of them, most of all with a pool. */
	unsigned share = group.state->has & POOL ? GROUPS_POOL_SHARE : GROUPS_SHARE;

	if (group.state->has & GROUPS && !opt.calls &&
	    (sim_lanes || (quick && group.n == 2 && sum.groups / opt.parts % share != 0)))
		return;
	for (int hold = 1; hold <= HOLDS; hold++) {
		if (opt.hold && hold != opt.hold)
			continue;
		if ((quick || (sim_lanes && !opt.calls)) && !opt.hold &&
		    (int)(sum.groups / opt.parts) % HOLDS != hold - 1)
			continue;
		wq__hold_limit = (size_t)hold;

		bool ok = explore(&scenario, preemptions(), MAX_RUNS, &x);

		sum.runs += x.runs;
		sum.cut += x.cut;
		if (ok)
			continue;
		printf(
		    "FAILED after %llu runs: %s\n       again: test_sim_pairs --state %s --calls ",
		    (unsigned long long)x.runs, x.bad.what, group.state->name);
		for (int i = 0; i < group.n; i++)
			printf("%s%s", i ? "," : "", group.op[i]->name);
		printf("%s --hold %d --trace --schedule '%s'\n", sim_lanes ? " --lanes" : "", hold,
		       x.schedule);
		fflush(stdout);
		if (++sum.failures >= opt.failures) {
			puts(opt.expect_failure ? "found" : "too many failures");
			exit(!opt.expect_failure);
		}
		break;
	}
}

static void run_pairs(const struct state *s)
{
	group.state = s;
	group.n = 2;
	for (int a = 0; a < pairs_nops; a++) {
		for (int b = a; b < pairs_nops; b++) {
			group.op[0] = &pairs_ops[a];
			group.op[1] = &pairs_ops[b];
			if (fits(group.op[0], s) && fits(group.op[1], s))
				run_group();
		}
	}
}

/* Two calls that stop the queue, of the first few if it is to be quick, and any third one. */
static void run_triples(const struct state *s)
{
	int n = 0, hold = opt.hold;

	while (pairs_ops[n].flags & STOPS && (opt.long_run || n < QUICK_STOPS))
		n++;
	if (!opt.long_run)
		opt.hold = 1;
	group.state = s;
	group.n = 3;
	for (int a = 0; a < n; a++) {
		for (int b = a; b < n; b++) {
			for (int c = b; c < pairs_nops; c++) {
				group.op[0] = &pairs_ops[a];
				group.op[1] = &pairs_ops[b];
				group.op[2] = &pairs_ops[c];
				if (fits(group.op[2], s))
					run_group();
			}
		}
	}
	opt.hold = hold;
}

/* Any call, one that stops the queue, and one that frees it as soon as both are inside. */
static void run_frees(const struct state *s)
{
	group.state = s;
	for (int a = 0; a < pairs_nops; a++) {
		if (!fits(&pairs_ops[a], s))
			continue;
		group.op[0] = &pairs_ops[a];
		group.op[1] = op_named("free", 4);
		group.n = 2;
		run_group();
		for (int b = 0; b < pairs_nops; b++) {
			group.op[1] = &pairs_ops[b];
			group.op[2] = op_named("free", 4);
			group.n = 3;
			if (pairs_ops[b].flags & STOPS && fits(group.op[1], s))
				run_group();
		}
	}
}

/* Two Gets wait, one of them for the last key, when the queue is shut and the key goes. */
static void run_last(const struct state *s)
{
	static const char *const ends[] = {"done", "cancel-queued", "requeue", "retry", "next"};
	int hold = opt.hold;

	if (!opt.long_run)
		opt.hold = 1;
	group.state = s;
	group.n = 3;
	group.op[0] = op_named("get", 3);
	group.op[1] = op_named("shutdown", 8);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		group.op[2] = op_named(ends[i], strlen(ends[i]));
		run_group();
	}
	opt.hold = hold;
}

static const struct state *state_named(const char *name)
{
	for (int i = 0; i < NSTATES; i++) {
		if (strcmp(states[i].name, name) == 0)
			return &states[i];
	}
	return NULL;
}

/* ---- the command line ------------------------------------------------------------------ */

static _Noreturn void usage(const char *why)
{
	fprintf(stderr, "%s; see the top of tests/sim/pairs.c\n", why);
	exit(2);
}

static void list(void)
{
	for (int i = 0; i < NSTATES; i++)
		printf("state %s\n", states[i].name);
	for (int i = 0; i < pairs_nops; i++)
		printf("call  %s\n", pairs_ops[i].name);
	exit(0);
}

static int bug_named(const char *name)
{
#define NAME(bug, text) #bug,
	static const char *const names[] = {"NONE", WQ__BUG_LIST(NAME)};
#undef NAME

	for (int i = 0; i < WQ__BUG_COUNT; i++) {
		if (strcmp(names[i], name) == 0)
			return i;
	}
	usage("no such bug");
}

static void parse(int argc, char **argv)
{
	const char *more = getenv("WQ_LONG");

	opt.long_run = more && strcmp(more, "0") != 0 && *more;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--trace") == 0) {
			sim_tracing = true;
			continue;
		}
		if (strcmp(argv[i], "--lanes") == 0) {
			sim_lanes = true;
			continue;
		}
		if (strcmp(argv[i], "--expect-failure") == 0) {
			opt.expect_failure = true;
			continue;
		}
		if (strcmp(argv[i], "--list") == 0)
			list();
		if (i + 1 == argc)
			usage("an option without its value, or none that is known");

		const char *name = argv[i], *value = argv[++i];

		if (strcmp(name, "--state") == 0) {
			opt.state = state_named(value);
			if (!opt.state)
				usage("no such state");
		} else if (strcmp(name, "--calls") == 0) {
			opt.calls = value;
		} else if (strcmp(name, "--schedule") == 0) {
			opt.schedule = value;
		} else if (strcmp(name, "--hold") == 0) {
			opt.hold = atoi(value);
		} else if (strcmp(name, "--preemptions") == 0) {
			opt.preemptions = atoi(value);
		} else if (strcmp(name, "--failures") == 0) {
			opt.failures = atoi(value);
		} else if (strcmp(name, "--bug") == 0) {
			wq__bug = bug_named(value);
		} else if (strcmp(name, "--part") == 0) {
			if (sscanf(value, "%u/%u", &opt.part, &opt.parts) != 2 || opt.part < 1 ||
			    opt.part > opt.parts)
				usage("--part wants 1/2 or the like");
		} else {
			usage("an option that is not known");
		}
	}
	if (opt.schedule && !(opt.calls && opt.hold))
		usage("--schedule wants --calls and --hold");
	if (opt.calls && !opt.state)
		usage("--calls wants --state");
}

static void read_calls(const char *at)
{
	group.state = opt.state;
	for (group.n = 0; *at && group.n < MAX_CALLS - 1; group.n++) {
		size_t len = strcspn(at, ",");

		group.op[group.n] = op_named(at, len);
		if (!group.op[group.n])
			usage("no such call");
		at += len + (at[len] == ',');
	}
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	explore_look = pairs_look;
	if (opt.calls)
		read_calls(opt.calls);
	if (opt.schedule) {
		struct sim_result r;

		wq__hold_limit = (size_t)opt.hold;

		bool ok = explore_one(&scenario, opt.schedule, &r);

		puts(ok ? "clean" : r.what);
		return !ok;
	}
	if (opt.calls) {
		run_group();
	} else {
		for (int i = 0; i < NSTATES; i++) {
			double start = milliseconds();
			uint64_t before = sum.runs;

			if (opt.state && opt.state != &states[i])
				continue;
			if (!(states[i].has & HELD) && strstr(states[i].name, "free"))
				run_frees(&states[i]);
			else
				run_pairs(&states[i]);
			if (strcmp(states[i].name, "mix") == 0)
				run_triples(&states[i]);
			if (strcmp(states[i].name, "groups-last") == 0)
				run_last(&states[i]);
			printf("%-12s %8llu schedules %7.0f ms\n", states[i].name,
			       (unsigned long long)(sum.runs - before), milliseconds() - start);
			fflush(stdout);
		}
	}
	printf("%llu groups of calls, part %u of %u, %llu schedules, "
	       "%llu groups cut off, %d failed, %.1f s\n",
	       (unsigned long long)sum.groups, opt.part, opt.parts, (unsigned long long)sum.runs,
	       (unsigned long long)sum.cut, sum.failures, milliseconds() / 1000);
	return opt.expect_failure || sum.failures != 0;
}
