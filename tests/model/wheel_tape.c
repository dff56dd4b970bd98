#include "wheel_tape.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <wq/wheel.h>

#include "parts.h"

enum {
	TIMERS_MAX = 4000,
	STALE_MAX = 64, /* ids of timers that are gone */
	ADDS_MAX = 64,  /* by one burst */
};

/* What a timer's callback does once, beside being compared. */
enum script {
	NOTHING,
	ADD,
	ADD_EVERY,
	CANCEL_ITSELF,
	CANCEL_OTHER,
	MOVE_ITSELF,
	MOVE_OTHER,
	MISUSE,
	STOP,
	SCRIPTS
};

struct timer {
	wq_timer_id id;
	int64_t due_ns;
	int64_t period_ns; /* 0: once */
	uint64_t seq;      /* among equal times the smallest is the first */
	enum script script;
	unsigned arg; /* of the script */
};

/* A wheel with an allocator that can be told to fail, and what should be in it. */
struct tape {
	const uint8_t *bytes;
	size_t n, at, step;
	const char *op;
	struct tape_diff *diff;
	bool failed; /* in a callback, where no answer can be given */

	wq_wheel *w;
	struct books books;
	wq_allocator books_allocator;
	int starve; /* so many allocations succeed before all fail; < 0: all succeed */
	bool starved;

	int64_t now_ns;
	uint64_t seq;
	bool stopped,
	    dead;      /* dead: a timer was cancelled or moved, so a deadline may be too early */
	int64_t fired; /* in this advance */
	struct timer timers[TIMERS_MAX];
	struct timer *live[TIMERS_MAX]; /* in the order in which they fire */
	struct timer *unused[TIMERS_MAX];
	size_t nlive, nunused;
	wq_timer_id stale[STALE_MAX];
	size_t nstale;
};

static struct tape the_tape;

/* ---- comparing ------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static bool fail(struct tape *t, const char *format, ...)
{
	va_list args;
	int n;

	if (t->failed) /* the first counts */
		return false;
	t->failed = true;
	t->diff->step = t->step;
	n = snprintf(t->diff->text, sizeof t->diff->text, "%s: ", t->op);
	va_start(args, format);
	vsnprintf(t->diff->text + n, sizeof t->diff->text - (size_t)n, format, args);
	va_end(args);
	return false;
}

#define SAME(what, got, want)                                                                      \
	do {                                                                                       \
		int64_t got_ = (int64_t)(got), want_ = (int64_t)(want);                            \
		if (got_ != want_)                                                                 \
			return fail(t, "%s is %" PRId64 ", should be %" PRId64, what, got_,        \
			            want_);                                                        \
	} while (0)

/* ---- reading ----------------------------------------------------------------- */

static unsigned byte(struct tape *t)
{
	return t->at < t->n ? t->bytes[t->at++] : 0;
}

/* A span of any magnitude: bits 0-5 of the first byte, and where in it. */
static int64_t span(struct tape *t)
{
	unsigned shift = byte(t) % 64, v = byte(t);

	return shift > 55 ? WQ_NEVER - (int64_t)v : (int64_t)((uint64_t)v << shift);
}

static struct timer *some_timer(struct tape *t, unsigned i)
{
	return t->nlive > 0 ? t->live[i % t->nlive] : NULL;
}

/* A due time: from now on, past, at the edge of a bucket, that of another timer, or an end of time. */
static int64_t some_time(struct tape *t)
{
	unsigned how = byte(t);
	int64_t d = span(t);
	const struct timer *other;
	uint64_t edge;

	switch (how % 8) {
	case 3:
		return d < t->now_ns ? t->now_ns - d : 0;
	case 4:
	case 5:
		edge = UINT64_C(1) << how / 8 * 2 % 63;
		edge = ((uint64_t)t->now_ns / edge + 1) * edge + how / 64 - 1;
		return edge > INT64_MAX ? WQ_NEVER : (int64_t)edge;
	case 6:
		other = some_timer(t, how / 8 + (unsigned)(d & 0xff));
		return other ? other->due_ns : t->now_ns;
	case 7:
		return how / 8 % 4 == 0   ? WQ_NEVER
		       : how / 8 % 4 == 1 ? WQ_NEVER - 1
		       : how / 8 % 4 == 2 ? t->now_ns
		                          : 0;
	default:
		return wq_time_add(t->now_ns, d);
	}
}

/* ---- the stupid wheel: a sorted array ------------------------------------------- */

static bool before(const struct timer *x, const struct timer *y)
{
	return x->due_ns != y->due_ns ? x->due_ns < y->due_ns : x->seq < y->seq;
}

/* The one that fires next, or NULL. */
static struct timer *first(const struct tape *t)
{
	return t->nlive > 0 && t->live[0]->due_ns != WQ_NEVER ? t->live[0] : NULL;
}

/* Where it stands, or belongs. */
static size_t place(const struct tape *t, const struct timer *x)
{
	size_t low = 0, high = t->nlive;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (before(t->live[mid], x))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void enter(struct tape *t, struct timer *x, int64_t due_ns)
{
	x->due_ns = due_ns;
	x->seq = t->seq++;

	size_t at = place(t, x);

	memmove(t->live + at + 1, t->live + at, (t->nlive++ - at) * sizeof x);
	t->live[at] = x;
}

static void take_out(struct tape *t, struct timer *x)
{
	size_t at = place(t, x);

	memmove(t->live + at, t->live + at + 1, (--t->nlive - at) * sizeof x);
}

static void leave(struct tape *t, struct timer *x)
{
	take_out(t, x);
	t->unused[t->nunused++] = x;
	t->stale[t->nstale++ % STALE_MAX] = x->id;
}

static void move(struct tape *t, struct timer *x, int64_t due_ns)
{
	take_out(t, x);
	enter(t, x, due_ns);
}

/* ---- the calls, on both ----------------------------------------------------------- */

/* False: the call was refused for want of memory, and should have been, or should not. */
static bool enough(struct tape *t, int rc)
{
	bool was = t->starved;

	t->starved = false;
	t->starve = -1;
	if (rc == WQ_ENOMEM && !was)
		return fail(t, "out of memory, and it is not");
	return rc != WQ_ENOMEM;
}

static void fire(void *ctx, const wq_timer_event *ev);

enum kind { AT, AFTER, EVERY };

/* A due time, a delay or a period, and what its callback does. */
static bool add(struct tape *t, enum kind kind, int64_t ns, enum script script, unsigned arg)
{
	if (t->nunused == 0)
		return true;

	struct timer *x = t->unused[t->nunused - 1];
	int64_t due = kind == AT || ns > 0 ? ns : 0;
	int rc;

	*x = (struct timer){.script = script, .arg = arg};
	if (kind == AT)
		rc = wq_wheel_add(t->w, ns, fire, x, &x->id);
	else if (kind == AFTER)
		rc = wq_wheel_after(t->w, ns, fire, x, &x->id);
	else
		rc = wq_wheel_every(t->w, x->period_ns = ns, fire, x, &x->id);
	if (!enough(t, rc))
		return !t->failed;
	SAME("add", rc, t->stopped ? WQ_ESHUTDOWN : WQ_OK);
	if (rc != WQ_OK)
		return true;
	if (x->id == 0)
		return fail(t, "an id is 0");
	for (size_t i = t->seq % 8; i < t->nstale && i < STALE_MAX; i += 8)
		if (t->stale[i] == x->id)
			return fail(t, "an id is used again");
	enter(t, x, kind == AT ? due : wq_time_add(t->now_ns, due));
	t->nunused--;
	return true;
}

static bool cancel(struct tape *t, struct timer *x)
{
	SAME("cancel", wq_wheel_cancel(t->w, x->id), WQ_OK);
	SAME("cancel again", wq_wheel_cancel(t->w, x->id), WQ_ESTALE);
	t->dead |= x->due_ns != WQ_NEVER;
	leave(t, x);
	return true;
}

static bool reschedule(struct tape *t, struct timer *x, int64_t due_ns)
{
	int rc = wq_wheel_reschedule(t->w, x->id, due_ns);

	if (!enough(t, rc))
		return !t->failed;
	SAME("reschedule", rc, WQ_OK);
	t->dead |= x->due_ns != WQ_NEVER;
	move(t, x, due_ns);
	return true;
}

static bool stop(struct tape *t)
{
	t->stopped = true;
	SAME("stop", wq_wheel_stop(t->w), WQ_OK);
	return true;
}

static bool misuse(struct tape *t)
{
	wq_timer_id id = 7;

	SAME("add of NULL", wq_wheel_add(t->w, 0, NULL, NULL, &id), WQ_EINVAL);
	SAME("add before time", wq_wheel_add(t->w, -1, fire, NULL, &id), WQ_EINVAL);
	SAME("every 0", wq_wheel_every(t->w, 0, fire, NULL, &id), WQ_EINVAL);
	SAME("after of NULL", wq_wheel_after(t->w, 0, NULL, NULL, &id), WQ_EINVAL);
	SAME("cancel of 0", wq_wheel_cancel(t->w, 0), WQ_ESTALE);
	SAME("advance before time", wq_wheel_advance(t->w, -1), WQ_EINVAL);
	SAME("id", id, 7);
	return true;
}

/* ---- firing -------------------------------------------------------------------------- */

/* The event is that of the first timer of the model, which fires too. */
static bool same_event(struct tape *t, struct timer *x, const wq_timer_event *ev)
{
	int64_t missed = 0;

	if (t->stopped)
		return fail(t, "a timer fires after stop");
	if (x != first(t))
		return fail(t, "a timer fires at %" PRId64 ", should be one at %" PRId64,
		            ev->due_ns, first(t) ? first(t)->due_ns : WQ_NEVER);
	if (x->id != ev->id)
		return fail(t, "id %" PRIx64 ", should be %" PRIx64, ev->id, x->id);
	SAME("due", ev->due_ns, x->due_ns);
	SAME("now", ev->now_ns, t->now_ns);
	if (x->due_ns > t->now_ns)
		return fail(t, "early");
	if (x->period_ns > 0)
		missed = (t->now_ns - x->due_ns) / x->period_ns;
	SAME("skipped", ev->skipped, missed);
	if (x->period_ns > 0)
		move(t, x, wq_time_add(x->due_ns + missed * x->period_ns, x->period_ns));
	else
		leave(t, x);
	return true;
}

static bool run_script(struct tape *t, struct timer *x, bool here)
{
	enum script script = x->script;
	int64_t d = (int64_t)(UINT64_C(1) << x->arg % 48) - 1;
	struct timer *other = some_timer(t, x->arg);

	x->script = NOTHING;
	switch (script) {
	case ADD:
		return add(t, AT, wq_time_add(t->now_ns, x->arg & 64 ? d : -d), NOTHING, 0);
	case ADD_EVERY:
		return add(t, EVERY, d > 0 ? d : 1, NOTHING, 0);
	case CANCEL_ITSELF:
		if (here)
			return cancel(t, x);
		SAME("cancel of itself", wq_wheel_cancel(t->w, x->id), WQ_ESTALE);
		return true;
	case CANCEL_OTHER:
		return !other || cancel(t, other);
	case MOVE_ITSELF:
		if (here)
			return reschedule(t, x, wq_time_add(t->now_ns, x->arg & 64 ? d : -d));
		SAME("reschedule of itself", wq_wheel_reschedule(t->w, x->id, 0), WQ_ESTALE);
		return true;
	case MOVE_OTHER:
		return !other || reschedule(t, other, wq_time_add(t->now_ns, x->arg & 64 ? d : -d));
	case MISUSE:
		SAME("advance in a callback", wq_wheel_advance(t->w, t->now_ns), WQ_EBUSY);
		SAME("free in a callback", wq_wheel_free(t->w), WQ_EBUSY);
		SAME("advance before time", wq_wheel_advance(t->w, -1), WQ_EINVAL);
		return true;
	case STOP:
		return x->arg % 8 != 0 || stop(t);
	default:
		return true;
	}
}

static void fire(void *ctx, const wq_timer_event *ev)
{
	struct tape *t = &the_tape;
	struct timer *x = ctx;

	t->fired++;
	if (t->failed || !same_event(t, x, ev))
		return;
	if (wq_wheel_size(t->w) != (int64_t)t->nlive)
		fail(t, "size in a callback is %" PRId64, wq_wheel_size(t->w));
	else
		run_script(t, x, x->period_ns > 0);
}

static bool advance(struct tape *t, int64_t now_ns)
{
	int64_t rc;

	t->now_ns = now_ns;
	t->fired = 0;
	rc = wq_wheel_advance(t->w, now_ns);
	if (t->failed)
		return false;
	SAME("advance", rc, t->fired);
	if (t->stopped)
		return true;

	const struct timer *x = first(t);

	if (x && x->due_ns <= now_ns)
		return fail(t, "a timer due at %" PRId64 " has not fired at %" PRId64, x->due_ns,
		            now_ns);
	if (wq_wheel_next_deadline(t->w) <= now_ns && now_ns != WQ_NEVER)
		return fail(t, "who follows the deadline stays at %" PRId64, now_ns);
	return true;
}

/* ---- the operations ------------------------------------------------------------------- */

/* Often nothing. */
static enum script some_script(unsigned b)
{
	return b < 128 ? NOTHING : b % SCRIPTS;
}

static bool op_add(struct tape *t)
{
	int64_t due = some_time(t);
	unsigned b = byte(t);

	return add(t, AT, due, some_script(b), b);
}

static bool op_after(struct tape *t)
{
	int64_t delay = span(t);
	unsigned b = byte(t);

	return add(t, AFTER, b % 8 == 0 ? -delay : delay, some_script(b), b);
}

static bool op_every(struct tape *t)
{
	int64_t period = span(t);
	unsigned b = byte(t);

	return add(t, EVERY, period > 0 ? period : 1, some_script(b), b);
}

static bool op_cancel(struct tape *t)
{
	struct timer *x = some_timer(t, byte(t) * 16);

	return !x || cancel(t, x);
}

static bool op_reschedule(struct tape *t)
{
	struct timer *x = some_timer(t, byte(t) * 16);
	int64_t due = some_time(t);

	return !x || reschedule(t, x, due);
}

static bool op_stale(struct tape *t)
{
	unsigned b = byte(t);

	if (t->nstale == 0)
		return true;
	wq_timer_id id = t->stale[b % (t->nstale < STALE_MAX ? t->nstale : STALE_MAX)];

	SAME("cancel of a stale id", wq_wheel_cancel(t->w, id), WQ_ESTALE);
	SAME("reschedule of a stale id", wq_wheel_reschedule(t->w, id, t->now_ns), WQ_ESTALE);
	return true;
}

static bool op_step(struct tape *t)
{
	return advance(t, wq_time_add(t->now_ns, byte(t)));
}

static bool op_jump(struct tape *t)
{
	return advance(t, wq_time_add(t->now_ns, span(t)));
}

static bool op_back(struct tape *t)
{
	int64_t d = span(t);

	return advance(t, d < t->now_ns ? t->now_ns - d : 0);
}

/* To just before the next timer, where nothing fires, or to it, or behind it. */
static bool op_to_next(struct tape *t)
{
	const struct timer *x = first(t);
	unsigned b = byte(t);

	if (!x || x->due_ns <= t->now_ns)
		return advance(t, t->now_ns);
	if (b % 4 == 0) {
		int64_t to = x->due_ns - 1;

		if (!advance(t, to))
			return false;
		SAME("firings before the time", t->fired, 0);
		return true;
	}
	return advance(t, wq_time_add(x->due_ns, b % 4 == 3 ? b : 0));
}

/* As an event loop does, for a few rounds. */
static bool op_follow(struct tape *t)
{
	for (unsigned i = byte(t) % 16; i > 0 && !t->stopped; i--) {
		int64_t next = wq_wheel_next_deadline(t->w);

		if (next == WQ_NEVER)
			break;
		if (!advance(t, next > t->now_ns ? next : t->now_ns))
			return false;
	}
	return true;
}

/* Many around one time: a bucket that is crowded. */
static bool op_burst(struct tape *t)
{
	int64_t at = some_time(t), wide = span(t);
	unsigned n = byte(t) % ADDS_MAX;

	for (unsigned i = 0; i < n; i++) {
		int64_t off =
		    wide > 0 ? (int64_t)((uint64_t)i * 0x9e3779b97f4a7c15u >> 1) % wide : 0;

		if (!add(t, AT, wq_time_add(at, off), NOTHING, 0))
			return false;
	}
	return true;
}

static bool op_cancel_many(struct tape *t)
{
	unsigned b = byte(t), each = 1 + b % 3;

	for (size_t i = t->nlive, n = 1 + b / 2; i-- > 0 && n > 0; n--)
		if (i % each == 0 && !cancel(t, t->live[i]))
			return false;
	return true;
}

static bool op_move_many(struct tape *t)
{
	unsigned b = byte(t);
	int64_t to = some_time(t);

	/* It stays sorted meanwhile, so some move twice and some not at all. */
	for (size_t i = t->nlive, n = 1 + b / 4; i-- > 0 && n > 0; n--)
		if (!reschedule(t, t->live[i], wq_time_add(to, b & 1 ? (int64_t)n : 0)))
			return false;
	return true;
}

/* Without memory: the call answers WQ_ENOMEM and changes nothing, or does not need any. */
static bool op_starved(struct tape *t)
{
	unsigned b = byte(t);
	bool ok;

	t->starve = b / 4 % 8;
	if (b % 4 == 0)
		ok = op_every(t);
	else if (b % 4 == 1)
		ok = op_reschedule(t);
	else
		ok = op_add(t);
	t->starve = -1;
	t->starved = false;
	return ok;
}

static bool op_misuse(struct tape *t)
{
	return misuse(t);
}

static bool make(struct tape *t);

static bool end(struct tape *t)
{
	SAME("free", wq_wheel_free(t->w), t->nlive);
	SAME("bytes after free", t->books.bytes, 0);
	SAME("blocks after free", t->books.blocks, 0);
	return true;
}

/* Stop it; once stopped, begin anew. */
static bool op_stop(struct tape *t)
{
	if (t->stopped)
		return end(t) && make(t);
	return byte(t) % 8 != 0 || stop(t);
}

#define OPS(X)                                                                                     \
	X(add)                                                                                     \
	X(after)                                                                                   \
	X(every)                                                                                   \
	X(cancel)                                                                                  \
	X(reschedule)                                                                              \
	X(stale)                                                                                   \
	X(step)                                                                                    \
	X(jump)                                                                                    \
	X(back)                                                                                    \
	X(to_next)                                                                                 \
	X(follow)                                                                                  \
	X(burst)                                                                                   \
	X(cancel_many)                                                                             \
	X(move_many)                                                                               \
	X(starved)                                                                                 \
	X(misuse)                                                                                  \
	X(stop)

static const struct {
	const char *name;
	bool (*run)(struct tape *t);
} ops[] = {
#define OP(name) {#name, op_##name},
    OPS(OP)
#undef OP
};

enum { NOPS = sizeof ops / sizeof ops[0] };

/* ---- the life of a wheel ------------------------------------------------------------------- */

static void *meter_alloc(void *ctx, size_t size, size_t align)
{
	struct tape *t = ctx;

	if (t->starve == 0) {
		t->starved = true;
		return NULL;
	}
	if (t->starve > 0)
		t->starve--;
	return t->books_allocator.alloc(&t->books, size, align);
}

static void meter_free(void *ctx, void *p, size_t size)
{
	struct tape *t = ctx;

	t->books_allocator.free(&t->books, p, size);
}

static bool make(struct tape *t)
{
	static const size_t sizes[8] = {0, 2, 4, 8, 16, 32, 64, 64};
	unsigned tick = byte(t), size = byte(t), start = byte(t);
	wq_allocator a = {.alloc = meter_alloc, .free = meter_free, .ctx = t};
	wq_wheel_options o = {.size = sizes[size % 8], .allocator = &a};

	o.tick_ns = tick == 0 ? 0 : (INT64_C(1) << tick % 41) - (tick > 128 && tick % 41 > 1);
	t->now_ns = start == 0 ? 0 : (INT64_C(1) << start % 63) - 1;
	t->books_allocator = books_allocator(&t->books);
	t->starve = -1;
	t->stopped = t->dead = false;
	t->nlive = t->nstale = 0;
	t->nunused = TIMERS_MAX;
	for (size_t i = 0; i < TIMERS_MAX; i++)
		t->unused[i] = &t->timers[i];
	SAME("new", wq_wheel_new(&t->w, t->now_ns, &o), WQ_OK);
	return true;
}

static bool same_all(struct tape *t)
{
	const struct timer *x = first(t);
	int64_t want = x ? x->due_ns : WQ_NEVER, next = wq_wheel_next_deadline(t->w);

	SAME("size", wq_wheel_size(t->w), t->nlive);
	if (next > want)
		return fail(t, "the next deadline is %" PRId64 ", a timer is due at %" PRId64, next,
		            want);
	if (!t->dead)
		SAME("next deadline", next, want);
	return true;
}

static bool run(struct tape *t)
{
	t->op = "new";
	if (!make(t))
		return false;
	while (t->at < t->n) {
		/* What is common comes more than once: the numbers above NOPS repeat the first. */
		static const unsigned char again[WHEEL_TAPE_OPS - NOPS] = {0, 0,  0,  2,  3,
		                                                           4, 6,  7,  11, 9,
		                                                           9, 10, 12, 0,  11};
		unsigned op = byte(t) % WHEEL_TAPE_OPS;

		op = op < NOPS ? op : again[op - NOPS];
		t->step++;
		t->op = ops[op].name;
		if (!ops[op].run(t) || !same_all(t))
			return false;
	}
	t->op = "the end";
	/* Everything that is left comes, in its order. */
	for (int years = 0; years < 3 && !t->stopped; years++)
		if (!advance(t, wq_time_add(t->now_ns, INT64_C(1) << (20 * (years + 1)))))
			return false;
	if (!t->stopped && !advance(t, WQ_NEVER))
		return false;
	return same_all(t) && end(t);
}

int wheel_tape_run(const uint8_t *bytes, size_t n, struct tape_diff *diff)
{
	struct tape *t = &the_tape;

	t->bytes = bytes;
	t->n = n;
	t->at = t->step = 0;
	t->failed = false;
	t->seq = 0;
	t->fired = 0;
	t->diff = diff;
	return run(t) ? 0 : -1;
}
