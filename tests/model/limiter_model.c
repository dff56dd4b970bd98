#include "limiter_model.h"

#include <math.h>
#include <string.h>

#define NEVER WQ_NEVER

const char *lm_key(int key, size_t *len)
{
	static const char bytes[] = "a\0abcdefgh";

	*len = (size_t)key;
	return bytes;
}

/* Keys are all beginnings of the same bytes, so a part is the key of its length. */
int lm_part(const struct lm_node *n, int key)
{
	size_t len;
	const char *bytes = lm_key(key, &len);
	uint32_t seen = 0;

	for (size_t i = 0; i < len; i++) {
		seen += bytes[i] == n->separator;
		if (seen == n->n)
			return (int)i;
	}
	return key;
}

/* ---- one's own ----------------------------------------------------------------- */

static uint32_t *counted(struct lm_node *n, size_t len)
{
	n->lm->wrong |= len >= LM_KEYS;
	return &n->counts[len % LM_KEYS];
}

static int64_t own_when(void *ctx, const void *key, size_t len, int64_t now_ns)
{
	struct lm_node *n = ctx;
	size_t want;
	const char *bytes = lm_key(n->lm->key, &want);

	if (len != want || (len > 0 && memcmp(key, bytes, len) != 0) || now_ns != n->lm->now_ns)
		n->lm->wrong = true;
	n->whens++;
	++*counted(n, len);
	return n->answer;
}

static void own_forget(void *ctx, const void *key, size_t len)
{
	(void)key;
	*counted(ctx, len) = 0;
}

static uint32_t custom_failures(void *ctx, const void *key, size_t len)
{
	(void)key;
	return *counted(ctx, len);
}

static void own_free(void *ctx)
{
	((struct lm_node *)ctx)->frees++;
}

static wq_limiter *own(struct lm_node *n)
{
	wq_limiter_functions f = {
	    .when = own_when,
	    .forget = own_forget,
	    .failures = custom_failures,
	    .free = own_free,
	    .ctx = n,
	};

	return wq_limiter_custom(&f);
}

/* ---- making -------------------------------------------------------------------- */

struct lm_node *lm_node(struct lm *lm, enum lm_kind kind)
{
	struct lm_node *n;

	if (lm->nnodes == LM_NODES)
		return NULL;
	n = &lm->node[lm->nnodes++];
	n->kind = kind;
	n->lm = lm;
	return n;
}

static wq_limiter *make(struct lm_node *n)
{
	wq_limiter *parts[LM_PARTS];

	for (int i = 0; i < n->nparts; i++)
		parts[i] = make(n->part[i]);
	switch (n->kind) {
	case LM_EXPONENTIAL:
		return wq_limiter_exponential(n->a, n->b);
	case LM_FULL:
		return wq_limiter_jittered(n->a, n->b, WQ_JITTER_FULL, 1);
	case LM_EQUAL:
		return wq_limiter_jittered(n->a, n->b, WQ_JITTER_EQUAL, 2);
	case LM_DECORRELATED:
		return wq_limiter_jittered(n->a, n->b, WQ_JITTER_DECORRELATED, 3);
	case LM_FAST_SLOW:
		return wq_limiter_fast_slow(n->a, n->b, n->n);
	case LM_BUCKET:
		return wq_limiter_bucket(n->rate, n->burst);
	case LM_BUCKET_PER_KEY:
		return wq_limiter_bucket_per_key(n->rate, n->burst);
	case LM_MAX_OF:
		return wq_limiter_max_of(parts, (size_t)n->nparts);
	case LM_MAX_WAIT:
		return wq_limiter_max_wait(parts[0], n->a);
	case LM_BOUNDED:
		return wq_limiter_bounded(parts[0], n->a);
	case LM_BUCKET_PER_PART:
		return wq_limiter_bucket_per_part(n->rate, n->burst, n->separator, n->n);
	case LM_OWN:
		return own(n);
	default:
		return NULL;
	}
}

static int own_status(const struct lm_node *n)
{
	switch (n->kind) {
	case LM_EXPONENTIAL:
	case LM_FULL:
	case LM_EQUAL:
	case LM_DECORRELATED:
		return n->a <= 0 || n->b < n->a ? WQ_EINVAL : WQ_OK;
	case LM_FAST_SLOW:
		return n->a < 0 || n->b < 0 ? WQ_EINVAL : WQ_OK;
	case LM_BUCKET:
	case LM_BUCKET_PER_KEY:
		return isnan(n->rate) || n->rate < 0 || n->burst < 0 ? WQ_EINVAL : WQ_OK;
	case LM_BUCKET_PER_PART:
		return isnan(n->rate) || n->rate < 0 || n->burst < 0 || n->n == 0 ? WQ_EINVAL
		                                                                  : WQ_OK;
	case LM_MAX_OF:
		return n->nparts == 0 ? WQ_EINVAL : WQ_OK;
	case LM_MAX_WAIT:
		return n->a < 0 ? WQ_EINVAL : WQ_OK;
	case LM_BOUNDED:
		return n->a <= 0 ? WQ_EINVAL : WQ_OK;
	case LM_NULL:
		return WQ_ENOMEM;
	default:
		return WQ_OK;
	}
}

/* The first error, parts before the whole; *room is what a key needs. */
static int status(const struct lm_node *n, int *room)
{
	int rc = WQ_OK, sum = 0;

	for (int i = 0; i < n->nparts; i++) {
		int of_part, part = status(n->part[i], &of_part);

		sum += of_part;
		rc = rc < 0 ? rc : part;
	}
	if (rc == WQ_OK)
		rc = own_status(n);
	sum += n->kind == LM_BUCKET_PER_KEY ? 16 : n->kind == LM_DECORRELATED ? 8 : 0;
	*room = sum;
	return rc == WQ_OK && sum > 128 ? WQ_EINVAL : rc;
}

void lm_make(struct lm *lm, struct lm_node *root)
{
	int room;

	lm->root = root;
	lm->idle_ns = NEVER;
	for (int i = 0; i < lm->nnodes; i++) {
		const struct lm_node *n = &lm->node[i];

		lm->counts |= n->kind <= LM_FAST_SLOW;
		lm->per_key |= n->kind == LM_BUCKET_PER_KEY;
		lm->parted += n->kind == LM_BUCKET_PER_PART;
		if (n->kind == LM_BOUNDED && n->a < lm->idle_ns)
			lm->idle_ns = n->a;
	}
	lm->status = status(root, &room);
	lm->limiter = make(root);
}

/* ---- when ---------------------------------------------------------------------- */

static struct lm_range between(int64_t low, int64_t high)
{
	return (struct lm_range){low, high};
}

/* One doubling after the other. */
static int64_t doubled(const struct lm_node *n, uint32_t failures)
{
	int64_t d = n->a;

	while (failures-- > 0 && d < n->b)
		d = d > n->b / 2 ? n->b : 2 * d;
	return d;
}

static int64_t whole(long double ns)
{
	if (ns <= 0)
		return 0;
	return ns >= 0x1p63L ? NEVER : (int64_t)ns;
}

static struct lm_range reserve(struct lm_node *n, struct lm_tokens *t, int64_t now_ns)
{
	long double gap = 1e9L / n->rate, at, off;
	int64_t back = 0;

	n->reserved = false;
	if (isinf(n->rate))
		return between(0, 0);
	if (n->burst == 0 || (n->rate <= 0 && t->taken == n->burst))
		return between(NEVER, NEVER);
	n->reserved = true;
	t->taken++;
	if (now_ns < t->seen_ns) { /* time that goes back stands still */
		back = t->seen_ns - now_ns;
	} else {
		t->full_in_ns -= (long double)(now_ns - t->seen_ns);
		t->seen_ns = now_ns;
	}
	if (n->rate <= 0)
		return between(back, back);
	if (t->full_in_ns < 0)
		t->full_in_ns = 0;
	t->full_in_ns += gap;
	at = t->full_in_ns - n->burst * gap;
	if (at < 0)
		at = 0;
	/* Tokens are doubles, and each call rounds. */
	off = 2 + at * 0x1p-50L +
	      (long double)n->lm->calls * (n->burst + (long double)n->lm->calls) * 0x1p-50L * gap;
	at += (long double)back;
	/* Never begins somewhere above 9.19e18. */
	return between(whole(at - off), at + off >= 9.19e18L ? NEVER : whole(at + off));
}

static struct lm_range decorrelated(struct lm_node *n, int key)
{
	int64_t last = n->last[key] > 0 ? n->last[key] : n->a;

	n->last[key] = last > n->b / 3 ? n->b : 3 * last;
	return between(n->a, n->last[key]);
}

static struct lm_range ask(struct lm_node *n, int key, int64_t now_ns)
{
	uint32_t failures = n->lm->failures[key];
	struct lm_range r = {0, 0}, of_part;
	int64_t d;

	switch (n->kind) {
	case LM_EXPONENTIAL:
	case LM_FULL:
	case LM_EQUAL:
		d = doubled(n, failures);
		return between(n->kind == LM_EXPONENTIAL ? d : n->kind == LM_FULL ? 0 : d / 2, d);
	case LM_DECORRELATED:
		return decorrelated(n, key);
	case LM_FAST_SLOW:
		d = failures < n->n ? n->a : n->b;
		return between(d, d);
	case LM_BUCKET:
		return reserve(n, &n->tokens[0], now_ns);
	case LM_BUCKET_PER_KEY:
		return reserve(n, &n->tokens[key], now_ns);
	case LM_BUCKET_PER_PART:
		return reserve(n, &n->tokens[lm_part(n, key)], now_ns);
	case LM_OWN:
		n->count[key]++;
		d = n->answer < 0 ? 0 : n->answer;
		return between(d, d);
	default:
		break;
	}
	for (int i = 0; i < n->nparts; i++) {
		of_part = ask(n->part[i], key, now_ns);
		r.low = of_part.low > r.low ? of_part.low : r.low;
		r.high = of_part.high > r.high ? of_part.high : r.high;
	}
	if (n->kind == LM_MAX_WAIT) {
		r.low = n->a < r.low ? n->a : r.low;
		r.high = n->a < r.high ? n->a : r.high;
	}
	return r;
}

static void clear(struct lm *lm, int key)
{
	lm->failures[key] = 0;
	lm->used_ns[key] = lm->latest_ns;
	for (int i = 0; i < lm->nnodes; i++) {
		lm->node[i].last[key] = 0;
		lm->node[i].count[key] = 0;
	}
}

/* Idle for too long: all is as if the key had never been. */
static void expire(struct lm *lm, int key)
{
	if (!lm->known[key] || lm->latest_ns - lm->used_ns[key] <= lm->idle_ns)
		return;
	clear(lm, key);
	for (int i = 0; i < lm->nnodes; i++)
		if (lm->node[i].kind == LM_BUCKET_PER_KEY)
			lm->node[i].tokens[key] = (struct lm_tokens){0};
	lm->known[key] = false;
}

struct lm_range lm_when(struct lm *lm, int key, int64_t now_ns)
{
	struct lm_range r;

	if (now_ns > lm->latest_ns)
		lm->latest_ns = now_ns;
	expire(lm, key);
	lm->calls++;
	lm->key = key;
	lm->now_ns = now_ns;
	r = ask(lm->root, key, now_ns);
	lm->failures[key] += lm->counts;
	lm->known[key] = true;
	lm->used_ns[key] = lm->latest_ns;
	return r;
}

/* ---- the rest ------------------------------------------------------------------ */

void lm_forget(struct lm *lm, int key)
{
	expire(lm, key);
	clear(lm, key);
}

int64_t lm_failures(struct lm *lm, int key)
{
	uint32_t most;

	expire(lm, key);
	most = lm->failures[key];
	for (int i = 0; i < lm->nnodes; i++)
		if (lm->node[i].count[key] > most)
			most = lm->node[i].count[key];
	return most;
}

void lm_give_back(struct lm *lm, int key)
{
	for (int i = 0; i < lm->nnodes; i++) {
		struct lm_node *n = &lm->node[i];
		struct lm_tokens *t = &n->tokens[0];

		if (!n->reserved)
			continue;
		if (n->kind == LM_BUCKET_PER_KEY)
			t = &n->tokens[key];
		else if (n->kind == LM_BUCKET_PER_PART)
			t = &n->tokens[lm_part(n, key)];
		n->reserved = false;
		t->taken--;
		if (n->rate > 0)
			t->full_in_ns -= 1e9L / n->rate;
	}
}

struct lm_range lm_size(const struct lm *lm)
{
	struct lm_range r = {0, 0};

	for (int key = 0; key < LM_KEYS; key++) {
		bool idle = lm->latest_ns - lm->used_ns[key] > lm->idle_ns;

		r.low += lm->failures[key] > 0 && !idle;
		r.high += lm->failures[key] > 0 ||
		          (lm->known[key] && (lm->per_key || lm->idle_ns != NEVER));
	}
	for (int i = 0; i < lm->nnodes; i++)
		for (int part = 0; part < LM_KEYS && lm->node[i].kind == LM_BUCKET_PER_PART; part++)
			r.high += lm->node[i].tokens[part].taken > 0;
	return r;
}

int64_t lm_cap(const struct lm_node *n)
{
	int64_t cap = 0;

	switch (n->kind) {
	case LM_FAST_SLOW:
		return n->a > n->b ? n->a : n->b;
	case LM_EXPONENTIAL:
	case LM_FULL:
	case LM_EQUAL:
	case LM_DECORRELATED:
		return n->b;
	case LM_MAX_OF:
	case LM_MAX_WAIT:
	case LM_BOUNDED:
		for (int i = 0; i < n->nparts; i++)
			if (lm_cap(n->part[i]) > cap)
				cap = lm_cap(n->part[i]);
		return n->kind == LM_MAX_WAIT && n->a < cap ? n->a : cap;
	default:
		return NEVER;
	}
}
