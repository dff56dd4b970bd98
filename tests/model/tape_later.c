#include "../support/cancel.h"
#include "tape_inside.h"

#include <stdlib.h>
#include <string.h>

/*
 * Times are multiples of about a millisecond, so that equal ones meet and the
 * clock's steps reach them. A key that was moved or taken back may stand
 * before others of the same time, if it waited for that time before: such a
 * key gets a time of its own.
 */
enum { GRAIN_BITS = 20 };

static int64_t some_time(struct tape *t, const struct side *s, int key, bool moves)
{
	static const int shift[] = {GRAIN_BITS, GRAIN_BITS, 26, 30, 36, 42};
	unsigned b = tape_byte(t), far = tape_byte(t);
	int64_t due;

	if (b % 16 == 15)
		return WQ_NEVER;
	if (b % 16 == 14 && s->ticks)
		return t->now_ns;
	if (b % 16 == 14)
		return 1 + (int64_t)far * t->now_ns / 255;
	due = (t->now_ns >> GRAIN_BITS << GRAIN_BITS) +
	      ((int64_t)(1 + far % 32) << shift[b % (sizeof shift / sizeof *shift)]);
	if (moves || s->ticks || s->m.keys[key].stirred)
		due += 1 + t->times++ % ((1 << GRAIN_BITS) - 1);
	return due;
}

/* A bound, always a time of its own: a key may be moved away from it and back. */
static int64_t some_span(struct tape *t)
{
	static const int shift[] = {GRAIN_BITS, GRAIN_BITS, 26, 30};
	unsigned b = tape_byte(t);
	int64_t grain = t->now_ns >> GRAIN_BITS << GRAIN_BITS;

	if (b >= 248)
		return WQ_NEVER;
	return grain - t->now_ns + ((int64_t)(1 + b % 32) << shift[b / 32 % 4]) + 1 +
	       t->times++ % ((1 << GRAIN_BITS) - 1);
}

/* The call that says it: as a span or as a time, with options or without. */
static int add_call(struct tape *t, struct side *s, int key, int64_t due_ns, int64_t within_ns,
                    enum wq_policy policy, const struct model_load *with, unsigned how)
{
	wq_add_options o = {.policy = policy, .within_ns = within_ns};
	size_t len;
	const void *bytes = keys_bytes(key, &len);
	unsigned char *copy = malloc(len > 0 ? len : 1);
	int64_t after_ns = due_ns == WQ_NEVER ? WQ_NEVER : due_ns - t->now_ns;
	int rc;

	if (!copy)
		abort();
	memcpy(copy, bytes, len);
	if (how & 1)
		o.after_ns = after_ns;
	else
		o.at_ns = due_ns;
	if (policy == WQ_MIN && how & 2 && within_ns == 0 && !tape_brings(with))
		rc = how & 1 ? wq_add_after(s->q, copy, len, after_ns)
		             : wq_add_at(s->q, copy, len, due_ns);
	else
		rc = tape_add_with(s, copy, len, &o, with);
	free(copy);
	return rc;
}

static bool add_later(struct tape *t, struct side *s, int key, enum wq_policy policy, unsigned how)
{
	/* A policy that may move the copy that waits: no two moves to one time. */
	const struct model_key *k = &s->m.keys[key];
	bool waits = policy == WQ_REMIND ? k->reminder.due_ns > 0 : k->own.due_ns > 0;
	int64_t due = some_time(t, s, key, waits);
	int64_t within = s->within && policy != WQ_REMIND && how & 8 ? some_span(t) : 0;
	int64_t latest = within > 0 && within != WQ_NEVER ? t->now_ns + within : 0;

	/* The very time that it waits for is no move. */
	if (waits && how % 8 == 7)
		due = policy == WQ_REMIND ? k->reminder.due_ns : k->own.due_ns;

	struct model_load with = tape_some_load(t, s);
	int want = model_add_at(&s->m, key, due, latest, policy, &with);

	SAME("answer", add_call(t, s, key, due, within, policy, &with, how), want);
	return true;
}

bool op_later(struct tape *t, struct side *s)
{
	unsigned b = tape_byte(t);

	return add_later(t, s, tape_some_key(t), (enum wq_policy)(b % 5), b / 5);
}

/* Many keys from one time on, some of them at once. */
bool op_later_burst(struct tape *t, struct side *s)
{
	unsigned b = tape_byte(t), first = tape_word(t), every = 1 + tape_byte(t) % 8;
	bool few = s->m.order == MODEL_BUSIEST || model_ranked(&s->m);
	size_t n = b < 240 || few ? b : (b - 239) * 128;
	enum wq_policy policy = b % 2 ? WQ_MIN : WQ_REMIND;

	for (size_t i = 0; i < n; i++) {
		int key = tape_plain_key(first + (unsigned)i * 3);
		const struct model_key *k = &s->m.keys[key];
		int64_t due = ((t->now_ns >> GRAIN_BITS) + 1 + (int64_t)(i * 7 % n / every))
		              << GRAIN_BITS;

		if (s->ticks && !tape_tick(t))
			return false;
		if (s->ticks || k->stirred ||
		    (policy == WQ_REMIND ? k->reminder.due_ns : k->own.due_ns) > 0)
			due += 1 + t->times++ % ((1 << GRAIN_BITS) - 1);

		struct model_load with = tape_load(s, (unsigned)i * 37 + b);
		int want = model_add_at(&s->m, key, due, 0, policy, &with);

		SAME("answer", add_call(t, s, key, due, 0, policy, &with, (unsigned)i), want);
	}
	return true;
}

bool op_cancel(struct tape *t, struct side *s)
{
	unsigned b = tape_byte(t);
	int key = tape_some_key(t);
	size_t len;
	const void *bytes = keys_bytes(key, &len);
	int want = model_cancel(&s->m, key);

	if (b & 1) {
		SAME("answer", cancel_key(s->q, bytes, len), want);
		return true;
	}
	/* Who holds it would have to be waited for, and nobody can end that. */
	bool held = want > 0 && want & WQ_STATE_RUNNING;

	SAME("answer", cancel_key_until(s->q, bytes, len, held ? t->now_ns : WQ_NEVER),
	     held ? WQ_ETIMEDOUT : want);
	return true;
}

bool op_reschedule(struct tape *t, struct side *s)
{
	int key = tape_some_key(t);
	size_t len;
	const void *bytes = keys_bytes(key, &len);
	int64_t due = some_time(t, s, key, true);
	int want = model_reschedule(&s->m, key, due);

	SAME("answer", wq_reschedule(s->q, bytes, len, due), want);
	return true;
}

/*
 * Never too late; and exact, if nothing was moved and what is due is in line. A group without a
 * token may have none to start, and then only the time of its next token is not in the past.
 */
bool op_deadline(struct tape *t, struct side *s)
{
	int64_t want = model_deadline(&s->m), got = wq_next_deadline(s->q);

	if (got > want)
		return tape_differ(t, "too late", got, want);
	SAME("len", wq_len(s->q), s->m.nqueued);
	got = wq_next_deadline(s->q);
	if (s->group.rate > 0 && s->rich.group_of) {
		if (got <= t->now_ns)
			return tape_differ(t, "next deadline in the past", got, want);
		want = got < want ? got : want;
	}
	if (got > want || (!s->m.stirred && got != want))
		return tape_differ(t, "next deadline", got, want);
	return true;
}
