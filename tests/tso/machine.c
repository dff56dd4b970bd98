/* See machine.h. */
#define _GNU_SOURCE
#include "tso/machine.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "sim/switch.h"

enum {
	MAX_THREADS = 4,
	MAX_STORES = 16,
	MAX_CELLS = 64,
	MAX_ACTIONS = 32,
	MAX_STEPS = 1000,
	STACK_SIZE = 64 * 1024,
	CLOCK_STEP_NS = 600000,
	SEEN_BITS = 24,
	NOBODY = -1,
};

struct store {
	unsigned char *p;
	unsigned size;
	uint64_t value;
	bool release;
};

enum state { READY, ASLEEP, DONE };

struct thread {
	sim_context context;
	char *stack;
	enum state state;
	struct store store[MAX_STORES]; /* the oldest first */
	int nstores;
	const void *sleeps_on;
	bool timed, woken;
	int clock_reads; /* in a row */
	uint64_t knows;  /* all that its operations have answered */
	int steps;
};

/* What the machine does next: a step of a thread, or one of its stores gets out. */
struct action {
	int8_t thread;
	int8_t store; /* -1: a step */
};

enum tso_model tso_model;
enum tso_kernel tso_kernel;

static struct thread threads[MAX_THREADS];
static int nthreads;
static int cur = NOBODY;
static sim_context main_context;
static jmp_buf main_jump;
static struct tso_result *result;
static const struct tso_plan *plan;
static int64_t now_ns;
static bool printing;

/* Memory that was changed, and what it was at first. */
static struct cell {
	unsigned char *p;
	unsigned size;
	uint64_t first;
} cells[MAX_CELLS];
static int ncells;

static struct {
	const unsigned char *p;
	size_t size;
} freed[4];
static int nfreed;

static struct {
	const void *p;
	const char *name;
} names[MAX_CELLS];
static int nnames;

/* The present run, and how many of its actions are given. */
static struct choice {
	struct action action[MAX_ACTIONS];
	uint8_t n, taken;
} path[MAX_STEPS];
static int length, at;
static const char *given; /* tso_again() */
static uint64_t rng;      /* 0: no chance */
static uint64_t *seen;    /* states; NULL: not to be noticed */
static uint64_t nseen;
static bool known; /* the run has come to a state that was seen before */

/* ---- telling ---------------------------------------------------------------------- */

static _Noreturn void leave(void)
{
	if (cur == NOBODY)
		_longjmp(main_jump, 1);
	sim_context_switch(&threads[cur].context, &main_context);
	abort();
}

_Noreturn void tso_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(result->what, sizeof result->what, fmt, ap);
	va_end(ap);
	leave();
}

void __assert_fail(const char *expr, const char *file, unsigned line, const char *function);

void __assert_fail(const char *expr, const char *file, unsigned line, const char *function)
{
	tso_fail("assertion %s (%s:%u, %s)", expr, file, line, function);
}

void tso_name(const void *p, const char *name)
{
	if (nnames < MAX_CELLS) {
		names[nnames].p = p;
		names[nnames++].name = name;
	}
}

static const char *name_of(const void *p)
{
	static char buf[32];

	for (int i = 0; i < nnames; i++) {
		if (names[i].p == p)
			return names[i].name;
	}
	snprintf(buf, sizeof buf, "%p", p);
	return buf;
}

static void say(const char *what, const void *p, uint64_t value)
{
	if (printing)
		printf("%*s%d: %s %s %lld\n", 24 * (cur < 0 ? 0 : cur), "", cur, what,
		       p ? name_of(p) : "", (long long)value);
}

/* ---- memory ------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9E3779B97F4A7C15u;
	return h ^ h >> 29;
}

static void check_freed(const void *p)
{
	const unsigned char *b = p;

	for (int i = 0; i < nfreed; i++) {
		if (b >= freed[i].p && b < freed[i].p + freed[i].size)
			tso_fail("%s is touched after it was freed", name_of(p));
	}
}

static uint64_t peek(const void *p, unsigned size)
{
	uint64_t v = 0;

	memcpy(&v, p, size);
	return v;
}

static void poke(void *p, unsigned size, uint64_t v)
{
	int i = 0;

	check_freed(p);
	while (i < ncells && cells[i].p != p)
		i++;
	if (i == ncells) {
		if (ncells == MAX_CELLS)
			tso_fail("too many places in memory");
		cells[ncells++] = (struct cell){p, size, peek(p, size)};
	}
	memcpy(p, &v, size);
}

static bool overlaps(const struct store *a, const struct store *b)
{
	return a->p < b->p + b->size && b->p < a->p + a->size;
}

/* May this store get out before those that are older? */
static bool may_leave(const struct thread *t, int i)
{
	if (i == 0)
		return true;
	if (tso_model == TSO_TSO || t->store[i].release)
		return false;
	for (int j = 0; j < i; j++) {
		if (overlaps(&t->store[i], &t->store[j]))
			return false;
	}
	return true;
}

static void let_out(int thread, int i)
{
	struct thread *t = &threads[thread];
	struct store s = t->store[i];

	t->nstores--;
	memmove(&t->store[i], &t->store[i + 1], (size_t)(t->nstores - i) * sizeof s);
	if (printing)
		printf("%*s%d: ... %s = %lld is seen by all\n", 24 * thread, "", thread,
		       name_of(s.p), (long long)s.value);
	poke(s.p, s.size, s.value);
}

static void empty(int thread)
{
	while (threads[thread].nstores > 0)
		let_out(thread, 0);
}

static void empty_all(void)
{
	for (int i = 0; i < nthreads; i++)
		empty(i);
}

void tso_free(const void *p, size_t size)
{
	/* Whoever gets this memory next sees what the one who freed it did before. */
	if (cur != NOBODY)
		empty(cur);
	freed[nfreed].p = p;
	freed[nfreed++].size = size;
}

/* ---- choosing ------------------------------------------------------------------------ */

static int list_actions(struct action *a)
{
	int n = 0;

	for (int i = 0; i < nthreads; i++) {
		if (threads[i].state == READY || (threads[i].state == ASLEEP && threads[i].woken))
			a[n++] = (struct action){(int8_t)i, -1};
	}
	for (int i = 0; i < nthreads; i++) {
		for (int s = 0; s < threads[i].nstores; s++) {
			if (n < MAX_ACTIONS && may_leave(&threads[i], s))
				a[n++] = (struct action){(int8_t)i, (int8_t)s};
		}
	}
	return n;
}

/* Nothing can happen but that time passes; false: nobody waits for that. */
static bool pass_time(void)
{
	bool any = false;

	for (int i = 0; i < nthreads; i++) {
		if (threads[i].state == ASLEEP && threads[i].timed)
			any = threads[i].woken = true;
	}
	return any;
}

static uint64_t state_hash(void)
{
	uint64_t h = (uint64_t)now_ns;

	for (int i = 0; i < ncells; i++) {
		uint64_t v = peek(cells[i].p, cells[i].size);

		if (v != cells[i].first)
			h += mix(mix(1, (uintptr_t)cells[i].p), v);
	}
	for (int i = 0; i < nthreads; i++) {
		const struct thread *t = &threads[i];

		h = mix(h, t->knows);
		h = mix(h, (uint64_t)t->state * 4 + t->woken * 2 + t->timed);
		for (int s = 0; s < t->nstores; s++)
			h = mix(mix(h, (uintptr_t)t->store[s].p), t->store[s].value);
		h = mix(h, (uint64_t)t->nstores);
	}
	return h ? h : 1;
}

/* Notices the state; false: it has been seen before. */
static bool is_new(uint64_t h)
{
	uint64_t mask = (UINT64_C(1) << SEEN_BITS) - 1;
	uint64_t i = h & mask;

	while (seen[i] && seen[i] != h)
		i = (i + 1) & mask;
	if (seen[i])
		return false;
	if (nseen < mask / 4 * 3) {
		seen[i] = h;
		nseen++;
	}
	return true;
}

static uint32_t chance(uint32_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)(((rng * 0x2545F4914F6CDD1Du >> 32) * n) >> 32);
}

/* Which of the actions is next; -1: the run need not go on. */
static int choose(const struct action *a, int n)
{
	struct choice *c = &path[at];

	if (given) {
		int i = *given ? *given++ - 'a' : 0;

		return i < n ? i : 0;
	}
	if (at == MAX_STEPS - 1)
		tso_fail("the run does not end");
	if (at >= length) {
		/* Only what comes after the choices that were given can be new. */
		if (seen && !is_new(state_hash()))
			return -1;
		memcpy(c->action, a, (size_t)n * sizeof *a);
		c->n = (uint8_t)n;
		c->taken = rng ? (uint8_t)chance((uint32_t)n) : 0;
		length = at + 1;
	}
	at++;
	return c->taken;
}

static void schedule(void)
{
	for (;;) {
		struct action a[MAX_ACTIONS];
		int n = list_actions(a);

		if (n == 0) {
			bool over = true;

			for (int i = 0; i < nthreads; i++)
				over &= threads[i].state == DONE;
			if (over)
				return;
			if (!pass_time())
				tso_fail("somebody sleeps and nobody is left to wake him");
			continue;
		}

		int i = choose(a, n);

		if (i < 0) {
			known = true;
			return;
		}
		if (a[i].store >= 0) {
			let_out(a[i].thread, a[i].store);
			continue;
		}
		cur = a[i].thread;
		sim_context_switch(&main_context, &threads[cur].context);
		cur = NOBODY;
		if (*result->what)
			return;
	}
}

static void point(void)
{
	if (cur != NOBODY)
		sim_context_switch(&threads[cur].context, &main_context);
}

/* The operation has answered this. */
static void learn(int what, const void *p, uint64_t value)
{
	struct thread *t = &threads[cur];

	if (cur == NOBODY)
		return;
	t->knows = mix(mix(mix(t->knows, (uint64_t)what), (uintptr_t)p), value);
	if (what != 'c')
		t->clock_reads = 0;
}

static void entry(void)
{
	int me = cur;

	learn('e', NULL, 0);
	plan->thread(me);
	threads[me].state = DONE;
	for (;;)
		point();
}

int tso_self(void)
{
	return cur;
}

/* ---- running --------------------------------------------------------------------------- */

static void run_once(void)
{
	static char *stacks;

	if (!stacks)
		stacks = mmap(NULL, (size_t)MAX_THREADS * STACK_SIZE, PROT_READ | PROT_WRITE,
		              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	at = 0;
	known = false;
	cur = NOBODY;
	now_ns = 1000;
	ncells = nfreed = nnames = 0;
	nthreads = 0;
	if (_setjmp(main_jump))
		return;
	plan->setup();
	nthreads = plan->threads;
	for (int i = 0; i < nthreads; i++) {
		threads[i] = (struct thread){.stack = stacks + (size_t)i * STACK_SIZE};
		sim_context_init(&threads[i].context, threads[i].stack, STACK_SIZE, entry);
	}
	schedule();
	cur = NOBODY;
	if (*result->what || known)
		return;
	empty_all();
	if (plan->finish)
		plan->finish();
}

static void tell(void)
{
	size_t n = 0;

	for (int i = 0; i < at && n + 1 < sizeof result->run; i++)
		result->run[n++] = (char)('a' + path[i].taken);
	result->run[n] = '\0';
}

/* The next run in the order of the search. */
static bool advance(void)
{
	while (length > 0) {
		struct choice *c = &path[length - 1];

		if (c->taken + 1 < c->n) {
			c->taken++;
			return true;
		}
		length--;
	}
	return false;
}

static void begin(const struct tso_plan *what, struct tso_result *r)
{
	memset(r, 0, sizeof *r);
	result = r;
	plan = what;
	given = NULL;
	length = 0;
	nseen = 0;
	rng = 0;
}

bool tso_search(const struct tso_plan *what, uint64_t max, struct tso_result *r)
{
	static uint64_t *all;

	begin(what, r);
	if (!all)
		all = malloc(sizeof *all << SEEN_BITS);
	if (!all)
		abort();
	memset(all, 0, sizeof *all << SEEN_BITS);
	seen = all;
	do {
		if (r->runs == max)
			break;
		r->runs++;
		run_once();
		if (!*r->what && at < length)
			length = at;
	} while (!*r->what && advance());
	r->complete = length == 0;
	r->states = nseen;
	seen = NULL;
	if (*r->what)
		tell();
	return !*r->what;
}

bool tso_random(const struct tso_plan *what, uint64_t seed, uint64_t runs, struct tso_result *r)
{
	begin(what, r);
	for (uint64_t i = 0; i < runs && !*r->what; i++) {
		rng = (seed + i + 1) * 0x9E3779B97F4A7C15u;
		length = 0;
		r->runs++;
		run_once();
	}
	rng = 0;
	if (*r->what)
		tell();
	return !*r->what;
}

bool tso_again(const struct tso_plan *what, const char *run)
{
	static struct tso_result r;

	begin(what, &r);
	given = run;
	printing = true;
	run_once();
	printing = false;
	given = NULL;
	puts(*r.what ? r.what : "right");
	return !*r.what;
}

/* ---- operations -------------------------------------------------------------------------- */

void tso_init(void *p, unsigned size, uint64_t value)
{
	if (cur == NOBODY)
		memcpy(p, &value, size);
	else
		tso_store(p, size, value, memory_order_relaxed);
}

uint64_t tso_load(const void *p, unsigned size, int order)
{
	uint64_t v;

	(void)order;
	point();
	check_freed(p);
	v = peek(p, size);
	for (int i = 0; cur != NOBODY && i < threads[cur].nstores; i++) {
		const struct store *s = &threads[cur].store[i];

		if (s->p == p && s->size == size)
			v = s->value;
	}
	say("load", p, v);
	learn('l', p, v);
	return v;
}

void tso_store(void *p, unsigned size, uint64_t value, int order)
{
	if (cur == NOBODY) {
		memcpy(p, &value, size);
		return;
	}
	/* Nobody sees it yet: a step would only be one more order of the same. */
	if (order == (int)memory_order_seq_cst)
		point();
	check_freed(p);

	struct thread *t = &threads[cur];

	if (t->nstores == MAX_STORES)
		let_out(cur, 0);
	say("store", p, value);
	t->store[t->nstores++] = (struct store){p, size, value, order != (int)memory_order_relaxed};
	learn('s', p, value);
	if (order == (int)memory_order_seq_cst)
		empty(cur);
}

uint64_t tso_modify(void *p, unsigned size, enum tso_change how, uint64_t value)
{
	uint64_t old, v = value;

	point();
	if (cur != NOBODY)
		empty(cur);
	check_freed(p);
	old = peek(p, size);
	if (how == TSO_ADD)
		v = old + value;
	else if (how == TSO_OR)
		v = old | value;
	else if (how == TSO_AND)
		v = old & value;
	poke(p, size, v);
	say("modify", p, v);
	learn('m', p, old);
	return old;
}

bool tso_compare(void *p, unsigned size, void *expected, uint64_t value)
{
	uint64_t old, want = peek(expected, size);

	point();
	if (cur != NOBODY)
		empty(cur);
	check_freed(p);
	old = peek(p, size);
	say(old == want ? "exchange" : "no exchange", p, old == want ? value : old);
	learn('x', p, old);
	if (old != want) {
		memcpy(expected, &old, size);
		return false;
	}
	poke(p, size, value);
	return true;
}

void tso_fence(int order)
{
	point();
	if (cur != NOBODY && order == (int)memory_order_seq_cst)
		empty(cur);
	learn('f', NULL, 0);
}

uintptr_t tso_me(void)
{
	return 4096 + 64 * (uintptr_t)(cur + 1);
}

/* Time that is waited for long enough to be noticed is longer than any store stays behind. */
int tso_clock(struct timespec *out)
{
	if (cur != NOBODY) {
		point();
		if (threads[cur].clock_reads++ > 0) {
			now_ns += CLOCK_STEP_NS;
			empty_all();
		}
		learn('c', NULL, (uint64_t)now_ns);
	} else {
		now_ns += 10;
	}
	out->tv_sec = (time_t)(now_ns / 1000000000);
	out->tv_nsec = (long)(now_ns % 1000000000);
	return 0;
}

/* One CPU: nobody backs off, and threads that find the lock taken go to sleep at once. */
int tso_affinity(size_t size, void *set)
{
	memset(set, 0, size);
	*(unsigned char *)set = 1;
	return 0;
}

static long futex_wait(const void *p, uint32_t value, bool timed)
{
	struct thread *t = &threads[cur];

	point();
	empty(cur);
	check_freed(p);
	if ((uint32_t)peek(p, 4) != value) {
		say("does not sleep on", p, peek(p, 4));
		learn('w', p, 1);
		errno = EAGAIN;
		return -1;
	}
	say("sleeps on", p, value);
	t->sleeps_on = p;
	t->timed = timed;
	t->woken = false;
	t->state = ASLEEP;
	learn('w', p, 0);
	point();
	t->state = READY;

	bool by_time = t->sleeps_on != NULL;

	t->sleeps_on = NULL;
	learn('a', p, by_time);
	say("is awake", p, 0);
	errno = ETIMEDOUT;
	return by_time ? -1 : 0;
}

static long futex_wake(const void *p, int n)
{
	point();
	if (cur != NOBODY)
		empty(cur);
	for (int i = 0; i < nthreads && n > 0; i++) {
		if (threads[i].state == ASLEEP && threads[i].sleeps_on == p && !threads[i].woken) {
			threads[i].woken = true;
			threads[i].sleeps_on = NULL;
			n--;
		}
	}
	say("wakes those on", p, 0);
	learn('k', p, 0);
	return 0;
}

/* Every CPU passes a barrier at a time of its own, between the call and its end. */
static long membarrier(int command)
{
	if (tso_kernel == TSO_NO_BARRIERS ||
	    (tso_kernel == TSO_BARRIERS_REFUSED && command == MEMBARRIER_CMD_PRIVATE_EXPEDITED)) {
		errno = EPERM;
		return -1;
	}
	if (command != MEMBARRIER_CMD_PRIVATE_EXPEDITED || cur == NOBODY)
		return 0;
	empty(cur);
	for (int i = 0; i < nthreads; i++) {
		if (i == cur)
			continue;
		if (threads[i].state != DONE)
			point();
		say("barrier for", NULL, (uint64_t)i);
		empty(i);
		learn('b', NULL, (uint64_t)i);
	}
	return 0;
}

long tso_syscall(long number, ...)
{
	va_list ap;
	long rc;

	va_start(ap, number);
	if (number == SYS_membarrier) {
		rc = membarrier(va_arg(ap, int));
	} else {
		const void *p = va_arg(ap, const void *);
		int op = va_arg(ap, int);
		uint32_t value = va_arg(ap, uint32_t);

		if (number != SYS_futex)
			tso_fail("system call %ld", number);
		if (op == FUTEX_WAKE_PRIVATE)
			rc = futex_wake(p, (int)value);
		else
			rc = futex_wait(p, value, va_arg(ap, const void *) != NULL);
	}
	va_end(ap);
	return rc;
}
