#include "tape_inside.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>

/* Too big for the stack; a process runs one tape at a time. */
static struct tape the_tape;

/* ---- reading, comparing ------------------------------------------------- */

unsigned tape_byte(struct tape *t)
{
	return t->at < t->n ? t->bytes[t->at++] : 0;
}

unsigned tape_word(struct tape *t)
{
	unsigned high = tape_byte(t);

	return high << 8 | tape_byte(t);
}

bool tape_fail(struct tape *t, const char *format, ...)
{
	int n = snprintf(t->diff->text, sizeof t->diff->text, "%s: ", t->op);
	va_list args;

	t->diff->step = t->step;
	va_start(args, format);
	vsnprintf(t->diff->text + n, sizeof t->diff->text - (size_t)n, format, args);
	va_end(args);
	return false;
}

bool tape_differ(struct tape *t, const char *what, int64_t got, int64_t want)
{
	const char *g = got < 0 && got > INT_MIN ? wq_status_name((int)got) : "";
	const char *w = want < 0 && want > INT_MIN ? wq_status_name((int)want) : "";

	return tape_fail(t, "%s: the queue says %lld %s, the model %lld %s", what, (long long)got,
	                 g, (long long)want, w);
}

int tape_some_key(struct tape *t)
{
	unsigned b = tape_byte(t);

	if (b < 0xe0)
		return (int)(b % KEYS_SMALL);
	return KEYS_SMALL + (int)(tape_word(t) % (MODEL_KEYS - KEYS_SMALL));
}

int tape_plain_key(unsigned i)
{
	return KEYS_SMALL + (int)(i % (MODEL_KEYS - KEYS_SMALL));
}

bool tape_same_item(struct tape *t, struct side *s, const wq_item *it, int key)
{
	size_t len;
	const void *bytes = keys_bytes(key, &len);

	if (it->len != len || memcmp(it->key, bytes, len) != 0)
		return tape_fail(t, "got key %d (%zu bytes), the model key %d (%zu bytes)",
		                 keys_find(it->key, it->len), it->len, key, len);
	SAME("the byte after the key", ((const char *)it->key)[len], 0);
	SAME("attempts", it->attempts, 1 + model_requeues(&s->m, key));
	SAME("added_ns", it->added_ns, s->m.keys[key].added_ns);
	if (!tape_same_load(t, "item", it->priority, it->value, it->value_len,
	                    &s->m.keys[key].held))
		return false;
	SAME("reserved", it->reserved[0] | it->reserved[1], 0);
	for (size_t i = 0; i < t->nkept; i++)
		if (t->kept[i].home == s && t->kept[i].item.token == it->token)
			return tape_fail(t, "token %llu was used before",
			                 (unsigned long long)it->token);
	return true;
}

void tape_note_answer(struct side *s, int rc)
{
	if (rc != WQ_EAGAIN)
		return;
	s->quiet = true;
	s->quiet_since = s->m.pushes;
}

/* ---- life --------------------------------------------------------------- */

static void hear(void *ctx, enum wq_metric metric, int64_t delta)
{
	struct side *s = ctx;

	if (metric == WQ_METRIC_DEPTH)
		s->depth += delta;
	if (metric == WQ_METRIC_ADDS)
		s->adds += delta;
	s->below = s->below || s->depth < 0;
}

/* In place of a bound: the queue has priorities, groups or values, and more bytes follow. */
enum { RICH = 1 };

static bool make(struct tape *t, struct side *s)
{
	static const size_t bounds[] = {0, 0, 0, 0, RICH, 3, KEYS_SMALL, 700};
	unsigned b = tape_byte(t);
	enum model_order order = (enum model_order)((b & 3) % MODEL_ORDERS);
	wq_clock clock = wq_manual_clock_clock(t->mc);
	wq_allocator allocator = books_allocator(&s->books);
	wq_order line = line_order(&s->line, order);
	/* Bit 7 asks for a limiter other than a plain one. */
	unsigned limits = b & 0x80 ? tape_byte(t) : 0;
	size_t bound = bounds[b >> 2 & 7];
	struct model_limits alone;
	/* What is asked in vain has to be taken back: the queue is full, or values do not merge. */
	bool plain = bound > 0;

	/* A key that an order without remove has yet to pop is not idle. */
	if (order == MODEL_LIFO)
		limits &= ~8u;
	/* A number without an order of its own, or a bit without a limiter: latest times. */
	s->within = (b & 3) == MODEL_ORDERS || limits & 0x80;
	s->named = b & 0x20;
	s->depth = s->adds = 0;
	s->below = false;
	s->dying = (struct dying){.t = t, .s = s, .ok = true};

	wq_metrics_provider provider = {.add = hear, .ctx = s};
	wq_options options = {
	    .name = s->named ? "tape" : NULL,
	    .provider = s->named ? &provider : NULL,
	    .allocator = &allocator,
	    .clock = &clock,
	    .order = order == MODEL_FIFO ? NULL : &line,
	    .seed = 1 + b,
	    .spin_ns = b & 0x40 ? WQ_SPIN_NEVER : 0,
	    .max_keys = bound == RICH ? 0 : bound,
	    .within = s->within,
	    .dead_letter = tape_dead_letter,
	    .dead_ctx = &s->dying,
	};

	s->rich = (struct model_rich){0};
	s->ticks = false;
	if (bound == RICH)
		tape_enrich(t, s, &options);
	options.limiter = limits_make(limits, plain, &alone);
	options.max_attempts = alone.max_attempts;
	SAME("new", wq_new(&s->q, &options), WQ_OK);
	model_init(&s->m, options.order ? order : MODEL_FIFO, options.max_keys);
	model_limit(&s->m, &alone);
	model_enrich(&s->m, &s->rich);
	s->m.now_ns = s->m.moment_ns = t->now_ns;
	s->fd = -1;
	s->quiet = false;
	return true;
}

static bool end(struct tape *t, struct side *s)
{
	bool own_order = s->m.order != MODEL_FIFO;

	/* What the keys took must have come back, but for a start on the next ones. */
	for (int key = 0; s->m.asked && key < MODEL_KEYS; key++)
		if (!tape_forget(t, s, key))
			return false;
	size_t most = IDLE_MAX + (s->rich.group_of ? GROUPS_MAX : 0);

	if (s->m.nkeys == 0 && s->books.bytes > most && !s->m.limits.keeps)
		return tape_fail(t, "an idle queue holds %zu bytes", s->books.bytes);
	SAME("free", wq_free(s->q), model_live(&s->m));
	SAME("memory that was not given back", s->books.bytes, 0);
	SAME("blocks that were not given back", s->books.blocks, 0);
	SAME("calls of the order's free", s->line.freed, own_order);
	model_release(&s->m);
	if (s->fd >= 0)
		SAME("the fd after free", fcntl(s->fd, F_GETFD), -1);
	/* Items of a queue that is gone mean nothing, to any other one either. */
	size_t n = 0;

	for (size_t i = 0; i < t->nkept; i++)
		if (t->kept[i].home != s)
			t->kept[n++] = t->kept[i];
	t->nkept = n;
	t->kept_at = n % KEPT_MAX;
	return true;
}

bool op_free(struct tape *t, struct side *s)
{
	unsigned b = tape_byte(t);

	if (s->m.nrunning > 0) {
		SAME("free of a busy queue", wq_free(s->q), WQ_EBUSY);
		if (b % 4 != 3)
			return true;
	} else if (!s->m.shut && b % 4 == 0) {
		return true;
	}
	for (size_t i = t->nheld; i-- > 0;) {
		struct held h = t->held[i];

		if (h.home != s)
			continue;
		SAME("done", wq_done(s->q, &h.item), model_done(&s->m, h.key, h.hold));
		t->held[i] = t->held[--t->nheld];
	}
	return end(t, s) && make(t, s);
}

/* ---- the whole ---------------------------------------------------------- */

static bool same_all(struct tape *t, struct side *s)
{
	SAME("len", wq_len(s->q), s->m.nqueued);
	SAME("shutting_down", wq_shutting_down(s->q), s->m.shut);
	for (int key = 0; key < KEYS_SMALL; key++) {
		size_t len;
		const void *bytes = keys_bytes(key, &len);

		/* The walk looks at all that live; to hash the longest for each check takes long. */
		if (len <= 1024)
			SAME("state", wq_state(s->q, bytes, len), model_state(&s->m, key));
	}
	return tape_walk(t, s, 0);
}

static bool same_held(struct tape *t)
{
	for (size_t i = 0; i < t->nheld; i++) {
		const struct held *h = &t->held[i];
		size_t len;
		const void *bytes = keys_bytes(h->key, &len);

		if (memcmp(h->item.key, bytes, len) != 0 || ((const char *)h->item.key)[len] != 0)
			return tape_fail(t, "the bytes of held key %d have changed", h->key);
		if (!tape_same_load(t, "held", h->item.priority, h->item.value, h->item.value_len,
		                    &h->home->m.keys[h->key].held))
			return false;
		SAME("lost", wq_lost(h->home->q, &h->item), 0);
	}
	return true;
}

static const struct {
	const char *name;
	bool (*run)(struct tape *t, struct side *s);
} ops[] = {
#define OP(name) {#name, op_##name},
    OPS(OP)
#undef OP
};

enum { NOPS = sizeof ops / sizeof ops[0] };

_Static_assert((int)NOPS == (int)TAPE_OPS, "every number is an operation");

const char *tape_op_name(unsigned op)
{
	return ops[op % TAPE_OPS].name;
}

static bool step(struct tape *t)
{
	unsigned b = tape_byte(t), op = b % TAPE_OPS;
	struct side *s = &t->side[b >> TAPE_QUEUE_SHIFT == TAPE_QUEUE_1];

	t->step++;
	t->op = ops[op].name;
	if (!tape_tick(t) || !ops[op].run(t, s))
		return false;
	if (t->step % CHECK_EVERY != 0)
		return true;
	return same_all(t, &t->side[0]) && same_all(t, &t->side[1]) && same_held(t);
}

static bool run(struct tape *t)
{
	t->op = "new";
	if (wq_manual_clock_new(&t->mc, t->now_ns) != WQ_OK)
		return tape_fail(t, "no clock");
	if (!make(t, &t->side[0]) || !make(t, &t->side[1]))
		return false;
	while (t->at < t->n)
		if (!step(t))
			return false;
	t->op = "the end";
	for (int i = 0; i < 2; i++)
		if (!same_all(t, &t->side[i]))
			return false;
	if (!same_held(t))
		return false;
	for (size_t i = 0; i < t->nheld; i++) {
		struct held *h = &t->held[i];

		SAME("free of a busy queue", wq_free(h->home->q), WQ_EBUSY);
		SAME("done", wq_done(h->home->q, &h->item),
		     model_done(&h->home->m, h->key, h->hold));
	}
	for (int i = 0; i < 2; i++)
		if (!same_all(t, &t->side[i]) || !end(t, &t->side[i]))
			return false;
	SAME("free of the clock", wq_manual_clock_free(t->mc), WQ_OK);
	return true;
}

int tape_run(const uint8_t *bytes, size_t n, struct tape_diff *diff)
{
	struct tape *t = &the_tape;

	keys_init();
	t->bytes = bytes;
	t->n = n;
	t->at = t->step = t->nheld = t->nkept = t->kept_at = 0;
	t->times = 0;
	t->now_ns = 1000;
	t->diff = diff;
	return run(t) ? 0 : -1;
}

void tape_print(FILE *out, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%02x%s", bytes[i], i % 32 == 31 && i + 1 < n ? "\n" : "");
	fputc('\n', out);
}
