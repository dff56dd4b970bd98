#include "limiter_tape.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "limiter_model.h"

enum {
	DEPTH_MAX = 4,
	STEPS_MAX = 2000,
	GRANTS_MAX = 400,
};

struct grant {
	int64_t at_ns;
	int key;
};

struct tape {
	const uint8_t *bytes;
	size_t n, at, step;
	const char *op;
	struct tape_diff *diff;
	struct lm lm;
	int64_t now_ns;
	int last; /* the key of the last when; -1: its token has been given back */
	/* if the whole is one bucket */
	const struct lm_node *bucket;
	struct grant grants[GRANTS_MAX];
	int ngrants;
	bool granted; /* the last when added one */
};

static struct tape the_tape;

/* ---- comparing ----------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static bool fail(struct tape *t, const char *format, ...)
{
	va_list args;
	int n;

	t->diff->step = t->step;
	n = snprintf(t->diff->text, sizeof t->diff->text, "%s: ", t->op);
	va_start(args, format);
	vsnprintf(t->diff->text + n, sizeof t->diff->text - (size_t)n, format, args);
	va_end(args);
	return false;
}

static bool in(struct tape *t, const char *what, int64_t got, struct lm_range want)
{
	if (got >= want.low && got <= want.high)
		return true;
	return fail(t, "%s is %" PRId64 ", should be %" PRId64 " to %" PRId64, what, got, want.low,
	            want.high);
}

static bool same(struct tape *t, const char *what, int64_t got, int64_t want)
{
	return in(t, what, got, (struct lm_range){want, want});
}

/* ---- reading ------------------------------------------------------------------- */

static unsigned byte(struct tape *t)
{
	return t->at < t->n ? t->bytes[t->at++] : 0;
}

/* Of any magnitude, and now and then a bad one. */
static int64_t number(struct tape *t)
{
	unsigned how = byte(t), v = byte(t), shift = how % 64;

	if (how >= 192 && how < 196)
		return how % 2 ? -(int64_t)v : INT64_MIN + (int64_t)v;
	if (shift > 55)
		return INT64_MAX - (int64_t)v;
	/* around a power of two, and between them */
	return how < 128 ? (int64_t)((uint64_t)v << shift)
	                 : (INT64_C(1) << shift) + (int64_t)(v % 3) - 1;
}

static double rate(struct tape *t)
{
	static const double rates[] = {1,    10,    0,      INFINITY, 1e-12, 1e-9,    1e-3, 0.1,
	                               0.5,  3,     33.3,   1e3,      1e6,   1e9,     3e9,  1e12,
	                               1e18, 1e300, 5e-324, 1. / 600, 7e-10, 1.1e-10, -1,   NAN};

	return rates[byte(t) % (sizeof rates / sizeof rates[0])];
}

static int burst(struct tape *t)
{
	static const int bursts[] = {1, 2, 3, 5, 10, 100, 0, INT_MAX, 4, 1, 2, 3, 8, 16, 33, -1};

	return bursts[byte(t) % (sizeof bursts / sizeof bursts[0])];
}

static struct lm_node *tree(struct tape *t, int depth)
{
	unsigned b = byte(t), kind = b % 32;
	struct lm_node *n;

	/* Some twice, so that trees are not mostly errors; nothing is below the last level. */
	if (kind >= LM_KINDS)
		kind = (kind - LM_KINDS) % LM_NULL;
	if (depth == 0 && kind >= LM_MAX_OF && kind <= LM_BOUNDED)
		kind = b / 32 % LM_MAX_OF;
	n = lm_node(&t->lm, (enum lm_kind)kind);
	if (!n)
		return NULL;
	if (kind <= LM_FAST_SLOW || kind == LM_MAX_WAIT || kind == LM_BOUNDED)
		n->a = number(t);
	if (kind <= LM_FAST_SLOW)
		n->b = number(t);
	if (kind < LM_FAST_SLOW && n->b < n->a && b < 224) { /* few are bad */
		int64_t a = n->a;

		n->a = n->b;
		n->b = a;
	}
	if (kind == LM_FAST_SLOW)
		n->n = byte(t) % 16;
	if (kind == LM_BUCKET || kind == LM_BUCKET_PER_KEY || kind == LM_BUCKET_PER_PART) {
		n->rate = rate(t);
		n->burst = burst(t);
	}
	if (kind == LM_BUCKET_PER_PART) {
		unsigned how = byte(t);

		n->separator = "a\0cbx"[how % 5];
		n->n = how >= 250 ? 0 : 1 + how / 5 % 3;
	}
	if (kind == LM_OWN)
		n->answer = number(t);
	if (kind == LM_MAX_OF)
		n->nparts = b == LM_MAX_OF ? 0 : 1 + (int)(b / 32) % LM_PARTS;
	if (kind == LM_MAX_WAIT || kind == LM_BOUNDED)
		n->nparts = 1;
	for (int i = 0; i < n->nparts; i++)
		if (!(n->part[i] = tree(t, depth - 1)))
			return NULL;
	return n;
}

/* ---- any window ----------------------------------------------------------------- */

/* The bucket that alone decides, or NULL. */
static const struct lm_node *alone(const struct lm_node *n)
{
	while (n->kind == LM_MAX_OF && n->nparts == 1)
		n = n->part[0];
	return (n->kind == LM_BUCKET || n->kind == LM_BUCKET_PER_KEY ||
	        n->kind == LM_BUCKET_PER_PART) &&
	               n->rate > 0 && !isinf(n->rate)
	           ? n
	           : NULL;
}

static int by_time(const void *a, const void *b)
{
	int64_t x = ((const struct grant *)a)->at_ns, y = ((const struct grant *)b)->at_ns;

	return x < y ? -1 : x > y;
}

/* From each grant to each later one, both included; delays are whole nanoseconds. */
static bool check_windows(struct tape *t)
{
	const struct lm_node *n = t->bucket;

	t->op = "window";
	qsort(t->grants, (size_t)t->ngrants, sizeof t->grants[0], by_time);
	for (int i = 0; i < t->ngrants; i++) {
		int count = 0;

		for (int j = i; j < t->ngrants; j++) {
			int64_t span = t->grants[j].at_ns - t->grants[i].at_ns;

			if (n->kind == LM_BUCKET_PER_KEY && t->grants[j].key != t->grants[i].key)
				continue;
			if (n->kind == LM_BUCKET_PER_PART &&
			    lm_part(n, t->grants[j].key) != lm_part(n, t->grants[i].key))
				continue;
			/* Far away, tokens are not counted to the nanosecond. */
			if (++count >
			    n->burst + n->rate * ((double)span * (1 + 1e-9) + 2) * 1e-9 + 1e-6)
				return fail(t, "%d tokens in %" PRId64 " ns", count, span);
		}
	}
	return true;
}

/* ---- the operations ------------------------------------------------------------- */

static bool do_when(struct tape *t, int key)
{
	struct lm_range want = lm_when(&t->lm, key, t->now_ns);
	size_t len;
	const char *bytes = lm_key(key, &len);
	int64_t d = wq_limiter_when(t->lm.limiter, bytes, len, t->now_ns);

	t->last = key;
	t->granted = false;
	if (d < 0 || d > lm_cap(t->lm.root))
		return fail(t, "%" PRId64 " is not between 0 and %" PRId64, d, lm_cap(t->lm.root));
	if (t->lm.wrong)
		return fail(t, "one's own was asked for something else");
	if (t->bucket && t->ngrants < GRANTS_MAX && d < WQ_NEVER - t->now_ns) {
		t->grants[t->ngrants++] = (struct grant){t->now_ns + d, key};
		t->granted = true;
	}
	return in(t, "delay", d, want);
}

static bool op_when(struct tape *t, int key)
{
	return do_when(t, key);
}

static bool op_when_often(struct tape *t, int key)
{
	for (unsigned n = byte(t) % 64; n > 0; n--)
		if (!do_when(t, key))
			return false;
	return true;
}

static bool op_step(struct tape *t, int key)
{
	int64_t d = number(t);

	(void)key;
	t->now_ns = wq_time_add(t->now_ns, d > 0 ? d : 0);
	return true;
}

/* By about so many tokens, or the idle time. */
static bool op_step_near(struct tape *t, int key)
{
	unsigned b = byte(t);
	int64_t by = 1;

	(void)key;
	for (int i = 0; i < t->lm.nnodes; i++) {
		const struct lm_node *n = &t->lm.node[i];

		if (n->rate > 1e-9 && n->rate < 1e9)
			by = (int64_t)(1e9 / n->rate) / 4 * (b % 64);
		if (n->kind == LM_BOUNDED && b >= 128)
			by = wq_time_add(n->a / (1 + b % 4), b % 3 - 1);
	}
	t->now_ns = wq_time_add(t->now_ns, by > 0 ? by : 0);
	return true;
}

/*
 * Not if a key may be forgotten: when that happens, and so what is left, then
 * depends on the order in which the limiter looks at them.
 */
static bool op_back(struct tape *t, int key)
{
	int64_t d = number(t);

	(void)key;
	if (t->lm.per_key || t->lm.parted || t->lm.idle_ns != WQ_NEVER || d < 0)
		return true;
	t->now_ns = d < t->now_ns ? t->now_ns - d : 0;
	return true;
}

static bool op_forget(struct tape *t, int key)
{
	size_t len;
	const char *bytes = lm_key(key, &len);

	lm_forget(&t->lm, key);
	return same(t, "answer", wq_limiter_forget(t->lm.limiter, bytes, len), WQ_OK);
}

static bool op_failures(struct tape *t, int key)
{
	size_t len;
	const char *bytes = lm_key(key, &len);

	return same(t, "number", wq_limiter_failures(t->lm.limiter, bytes, len),
	            lm_failures(&t->lm, key));
}

/* That of the last when; a second time it does nothing. */
static bool op_give_back(struct tape *t, int key)
{
	size_t len;
	const char *bytes;

	(void)key;
	if (t->last < 0)
		return true;
	bytes = lm_key(t->last, &len);
	lm_give_back(&t->lm, t->last);
	t->ngrants -= t->granted;
	t->granted = false;
	return same(t, "answer", wq_limiter_give_back(t->lm.limiter, bytes, len), WQ_OK);
}

static bool op_size(struct tape *t, int key)
{
	(void)key;
	return in(t, "size", wq_limiter_size(t->lm.limiter), lm_size(&t->lm));
}

static bool op_answer(struct tape *t, int key)
{
	int64_t answer = number(t);

	for (int i = 0; i < t->lm.nnodes; i++)
		if (i % LM_KEYS >= key)
			t->lm.node[i].answer = answer;
	return true;
}

static bool op_misuse(struct tape *t, int key)
{
	static const char bytes[1];
	wq_limiter *l = t->lm.limiter;

	(void)key;
	return same(t, "NULL", wq_limiter_when(l, NULL, 1, 0), WQ_EINVAL) &&
	       same(t, "before time", wq_limiter_when(l, bytes, 1, -1), WQ_EINVAL) &&
	       same(t, "long", wq_limiter_when(l, bytes, WQ_KEY_MAX + 1, 0), WQ_ETOOLONG) &&
	       same(t, "long", wq_limiter_forget(l, bytes, WQ_KEY_MAX + 1), WQ_ETOOLONG) &&
	       same(t, "NULL", wq_limiter_failures(l, NULL, 1), WQ_EINVAL) &&
	       same(t, "NULL", wq_limiter_give_back(l, NULL, 1), WQ_EINVAL);
}

static const struct {
	const char *name;
	bool (*run)(struct tape *t, int key);
} OPS[LIMITER_TAPE_OPS] = {
    {"when", op_when},
    {"when", op_when},
    {"when", op_when},
    {"when", op_when},
    {"when, often", op_when_often},
    {"step", op_step},
    {"step, near", op_step_near},
    {"step, near", op_step_near},
    {"back", op_back},
    {"forget", op_forget},
    {"failures", op_failures},
    {"failures", op_failures},
    {"give_back", op_give_back},
    {"size", op_size},
    {"answer of one's own", op_answer},
    {"misuse", op_misuse},
};

/* ---- the tape ------------------------------------------------------------------- */

static bool run_steps(struct tape *t)
{
	t->bucket = alone(t->lm.root);
	t->last = -1;
	for (t->step = 1; t->at < t->n && t->step < STEPS_MAX; t->step++) {
		unsigned b = byte(t);

		t->op = OPS[b % LIMITER_TAPE_OPS].name;
		if (!OPS[b % LIMITER_TAPE_OPS].run(t, (int)(b >> 4) % LM_KEYS))
			return false;
	}
	return !t->bucket || check_windows(t);
}

/* One that carries an error: it says so whatever is asked. */
static bool is_error(struct tape *t)
{
	wq_limiter *l = t->lm.limiter;

	return same(t, "when", wq_limiter_when(l, "", 0, 0), t->lm.status) &&
	       same(t, "size", wq_limiter_size(l), t->lm.status) &&
	       same(t, "free", wq_limiter_free(l), WQ_OK);
}

/* What was given is freed once, whatever became of it. */
static bool all_freed(struct tape *t)
{
	for (int i = 0; i < t->lm.nnodes; i++)
		if (t->lm.node[i].kind == LM_OWN && t->lm.node[i].frees != 1)
			return fail(t, "one's own was freed %d times", t->lm.node[i].frees);
	return true;
}

int limiter_tape_run(const uint8_t *bytes, size_t n, struct tape_diff *diff)
{
	struct tape *t = &the_tape;
	struct lm_node *root;

	*diff = (struct tape_diff){0};
	memset(t, 0, sizeof *t);
	t->bytes = bytes;
	t->n = n;
	t->diff = diff;
	t->op = "make";
	root = tree(t, DEPTH_MAX);
	if (!root) /* too large */
		return 0;
	lm_make(&t->lm, root);
	if (!same(t, "status", wq_limiter_status(t->lm.limiter), t->lm.status))
		return -1;
	if (t->lm.status < 0)
		return is_error(t) && all_freed(t) ? 0 : -1;
	if (!run_steps(t))
		return -1;
	t->op = "free";
	return same(t, "answer", wq_limiter_free(t->lm.limiter), WQ_OK) && all_freed(t) ? 0 : -1;
}
