/*
 * Looking without touching: counts, one key, all keys.
 *
 * A walk goes through the table in the order of the slots and remembers only
 * where the next batch begins, so the table may change as it likes between two
 * batches: a key keeps its slot's value as long as it lives.
 */
#include <string.h>

#include "queue/memory.h"

enum {
	LOOK_MAX = 1000, /* hashes that a batch passes by, at most */
	FEW = 8,         /* keys of a small batch */
};

int64_t wq__mem_len(void *state)
{
	struct wq__memory *m = state;

	wq__whole_lock(m);
	wq__promote_all(m);

	int64_t n = wq__queued(m);

	wq__whole_unlock(m);
	return n;
}

/* The bits of a copy that waits; none: of one that does not, or is not there. */
static unsigned wait_bits(const struct wq__memory *m, const struct wq__entry *e)
{
	if (!e || !(e->bits & WQ_STATE_WAITING))
		return 0;
	return (wq__leaves(m) ? WQ_STATE_LEFT : WQ_STATE_WAITING) |
	       (e->failures_high & WQ__RETRYING ? WQ_STATE_RETRYING : 0u);
}

/* What others call the state of a key: its own and that of the reminder beside it, or NULL. */
static unsigned public_state(const struct wq__memory *m, const struct wq__entry *e,
                             const struct wq__entry *reminder)
{
	unsigned bits = e ? e->bits & WQ__PUBLIC & ~(unsigned)WQ_STATE_WAITING : 0;

	return bits | wait_bits(m, e) | wait_bits(m, reminder);
}

int wq__mem_state(void *state, const void *key, size_t len)
{
	struct wq__memory *m = state;
	uint32_t hash = wq__hash_of(m, key, len);

	wq__whole_lock(m);
	wq__promote_all(m);

	uint32_t id = wq__find(m, hash, key, len);
	uint32_t reminder = wq__find_copy(m, hash, key, len, WQ__REMINDER);
	unsigned bits = public_state(m, id ? wq__entry_at(m, id) : NULL,
	                             reminder ? wq__entry_at(m, reminder) : NULL);

	wq__whole_unlock(m);
	return (int)bits;
}

/* The bytes of key, value and group follow each other in bytes[]. */
struct shown {
	wq_key_info info; /* its pointers: NULL, or not */
	size_t offset;    /* of the key */
};

struct batch {
	struct shown *key;
	char *bytes;
	size_t max;  /* keys */
	size_t room; /* bytes */
	size_t n;
	size_t used;
	bool stuck; /* the next key has no room in an empty one */
};

/* The memory of a batch: room for at least one key. */
struct large {
	struct shown key[WQ__HOLD_MAX];
	char bytes[2 * (WQ_KEY_MAX + 1) + WQ_VALUE_MAX + 1];
};

/* For who has no memory left: on the stack, for keys that are not very long. */
struct small {
	struct shown key[FEW];
	char bytes[4096];
};

static int64_t age_of(const struct wq__entry *e, int64_t now)
{
	int64_t since = e->bits & WQ_STATE_RUNNING ? e->u.hold.since_ns : e->added_ns;

	return now > since ? now - since : 0;
}

static const struct wq__entry *reminder_of(const struct wq__memory *m, const struct wq__entry *e)
{
	if (!(e->bits & WQ__BESIDE))
		return NULL;
	return wq__entry_at(m, wq__find_copy(m, e->hash, e->key, wq__entry_len(e), WQ__REMINDER));
}

/* When the waiting copy comes due, the key's own or the reminder beside it; 0: none. */
static int64_t due_of(const struct wq__entry *e, const struct wq__entry *reminder)
{
	if (e->bits & WQ_STATE_WAITING)
		return e->added_ns;
	return reminder ? reminder->added_ns : 0;
}

/* The bytes and a NUL, behind what is there. */
static void copy_bytes(struct batch *b, const void *bytes, size_t len)
{
	if (len > 0)
		memcpy(b->bytes + b->used, bytes, len);
	b->bytes[b->used + len] = '\0';
	b->used += len + 1;
}

/* False: it does not fit. A reminder beside its key is shown with the key. */
static bool batch_push(const struct wq__memory *m, struct batch *b, struct wq__entry *e,
                       int64_t now)
{
	size_t len = wq__entry_len(e);
	const struct wq__entry *reminder;
	wq_key_info info = {.state = 0};

	if (wq__entry_is_ghost(e) || wq__entry_absent(e) ||
	    (e->bits & (WQ__REMINDER | WQ__BESIDE)) == (WQ__REMINDER | WQ__BESIDE))
		return true;
	if (b->n == wq__per_hold(b->max))
		return false;
	if (m->flags & WQ__RICH)
		wq__show_rich(m, e, &info);
	if (b->room - b->used < len + 1 + info.value_len + 1 + info.group.len + 1)
		return false;
	reminder = reminder_of(m, e);
	info.key = e->key;
	info.len = len;
	info.age_ns = (e->bits & WQ__PUBLIC) == WQ_STATE_WAITING ? 0 : age_of(e, now);
	info.due_ns = due_of(e, reminder);
	info.state = public_state(m, e, reminder);
	info.running_ns = wq__meter_running(m, e, now);
	info.failures = wq__requeues_of(m, e);
	b->key[b->n++] = (struct shown){.info = info, .offset = b->used};
	copy_bytes(b, e->key, len);
	if (info.value)
		copy_bytes(b, info.value, info.value_len);
	if (info.group.key)
		copy_bytes(b, info.group.key, info.group.len);
	return true;
}

/*
 * Copies keys from slot `from` on. Returns where the next batch begins, or 0 at
 * the end. A key and its reminder have one hash and two slots, and either may
 * come or go between two batches: so a batch ends between hashes, unless all
 * of it has the same.
 */
static uint64_t batch_fill(struct wq__memory *m, struct batch *b, uint64_t from, int64_t now)
{
	wq__iter it = wq__table_iter(&m->table, from);
	uint64_t slot, hash = UINT64_MAX;
	size_t before = 0; /* keys of smaller hashes */
	size_t looked = 0;

	b->n = b->used = 0;
	b->stuck = false;
	while ((slot = wq__iter_next(&it)) != 0) {
		if (slot >> 32 != hash) {
			/* Those that are only remembered are not shown, and may be very many. */
			if (++looked > wq__per_hold(LOOK_MAX))
				return slot >> 32 << 32;
			hash = slot >> 32;
			before = b->n;
		}
		if (batch_push(m, b, wq__entry_at(m, (uint32_t)slot), now))
			continue;
		if (before == 0) {
			b->stuck = b->n == 0;
			return slot;
		}
		b->n = before;
		return hash << 32;
	}
	return 0;
}

static bool batch_show(const struct batch *b, wq_walk_fn fn, void *ctx, int64_t *shown)
{
	for (size_t i = 0; i < b->n; i++) {
		wq_key_info info = b->key[i].info;
		const char *bytes = b->bytes + b->key[i].offset;

		info.key = bytes;
		bytes += info.len + 1;
		if (info.value) {
			info.value = bytes;
			bytes += info.value_len + 1;
		}
		if (info.group.key)
			info.group.key = bytes;
		++*shown;
		if (fn(ctx, &info) != 0)
			return false;
	}
	return true;
}

/*
 * The lock is held before and after, and let go of while fn runs. Without memory the keys are
 * shown all the same, in small batches: a drain may have to list them because memory is short.
 */
int64_t wq__walk_locked(struct wq__memory *m, wq_walk_fn fn, void *ctx)
{
	uint64_t from = 0;
	int64_t now = wq__now(m); /* of all batches: who sorts by age compares them */
	int64_t shown = 0;
	bool go_on;
	struct large *large = wq__alloc(&m->allocator, sizeof *large, 8);
	struct small small;
	struct batch b = {
	    .key = large ? large->key : small.key,
	    .bytes = large ? large->bytes : small.bytes,
	    .max = large ? WQ__HOLD_MAX : FEW,
	    .room = large ? sizeof large->bytes : sizeof small.bytes,
	};

	m->inside++;
	do {
		wq__promote_all(m);
		from = batch_fill(m, &b, from, now);
		if (b.stuck) {
			shown = WQ_ENOMEM;
			break;
		}

		struct wq__whole_passed passed = wq__whole_pass(m);

		go_on = batch_show(&b, fn, ctx, &shown) && from != 0;
		wq__whole_retake(m, passed);
	} while (go_on);
	m->inside--;
	wq__free(&m->allocator, large, sizeof *large);
	return shown;
}

int64_t wq__mem_walk(void *state, wq_walk_fn fn, void *ctx)
{
	struct wq__memory *m = state;

	wq__whole_lock(m);

	int64_t shown = wq__walk_locked(m, fn, ctx);

	wq__whole_unlock(m);
	return shown;
}
