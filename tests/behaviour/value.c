/*
 * Values: which copy has which, how they merge, what each end of a hold does with them, errors of
 * merges, lengths, and that their memory comes back.
 */
#include "rich_rig.h"

static void open_valued(struct fixture *f, wq_merge_fn merge, void *ctx)
{
	fixture_open(f, &(wq_options){.values = 1, .merge = merge, .merge_ctx = ctx});
}

/* ---- ready-made merges ------------------------------------------------------------ */

struct merging {
	wq_merge_fn merge;
	const char *ctx, *old, *add, *out;
};

static void ready_made(void **state)
{
	static const struct merging m[] = {
	    {wq_merge_last, NULL, "old", "add", "add"},
	    {wq_merge_last, NULL, "old", "", ""},
	    {wq_merge_first, NULL, "old", "add", "old"},
	    {wq_merge_first, NULL, "", "add", ""},
	    {wq_merge_append, NULL, "old", "add", "old\nadd"},
	    {wq_merge_append, ", ", "old", "add", "old, add"},
	    {wq_merge_append, "", "old", "add", "oldadd"},
	    {wq_merge_append, ",", "", "", ","},
	    {wq_merge_or, NULL, "\x01\x02", "\x04\x01", "\x05\x03"},
	    {wq_merge_or, NULL, "\x01\x02\x30", "\x04", "\x05\x02\x30"},
	    {wq_merge_or, NULL, "\x01", "\x04\x22", "\x05\x22"},
	    {wq_merge_or, NULL, "", "ab", "ab"},
	    {wq_merge_or, NULL, "", "", ""},
	};
	static char out[WQ_VALUE_MAX];

	(void)state;
	for (size_t i = 0; i < LENGTH(m); i++) {
		memset(out, 'x', sizeof out);
		IS(m[i].merge((void *)(uintptr_t)m[i].ctx, m[i].old, strlen(m[i].old), m[i].add,
		              strlen(m[i].add), out),
		   (int64_t)strlen(m[i].out));
		assert_memory_equal(out, m[i].out, strlen(m[i].out));
		IS(out[strlen(m[i].out)], 'x');
	}
}

static void ready_made_ends(void **state)
{
	static char a[WQ_VALUE_MAX], out[WQ_VALUE_MAX], separator[WQ_VALUE_MAX + 10];

	(void)state;
	memset(a, 'a', sizeof a);
	memset(separator, ',', sizeof separator - 1);
	IS(wq_merge_append(",", a, WQ_VALUE_MAX - 2, "b", 1, out), WQ_VALUE_MAX);
	IS(out[WQ_VALUE_MAX - 1], 'b');
	IS(wq_merge_append(",", a, WQ_VALUE_MAX - 1, "b", 1, out), WQ_ETOOLONG);
	IS(wq_merge_append("", a, WQ_VALUE_MAX, "", 0, out), WQ_VALUE_MAX);
	IS(wq_merge_append("", a, WQ_VALUE_MAX, "b", 1, out), WQ_ETOOLONG);
	IS(wq_merge_append(separator, "", 0, "", 0, out), WQ_ETOOLONG);
	IS(wq_merge_or(NULL, a, WQ_VALUE_MAX, a, WQ_VALUE_MAX, out), WQ_VALUE_MAX);
	IS(wq_merge_last(NULL, a, 5, a, WQ_VALUE_MAX, out), WQ_VALUE_MAX);
	IS(wq_merge_first(NULL, a, WQ_VALUE_MAX, a, 5, out), WQ_VALUE_MAX);
}

/* ---- [CARRY] the tables ---------------------------------------------------------------- */

enum start { ABSENT, WAITING, QUEUED, RUNNING, DIRTY, HELD_WAITING, STARTS };

enum call { ADD, PLAIN, AFTER, LIMITED, DUE, DONE, DROP, TAIL, HEAD, RETRY, AGAIN, LATER, CALLS };

#define NO "-" /* the cell is empty, or nothing comes back */

/*
 * With wq_merge_append and ",". The copy that is there has "c", the hold "h", the call gives "n".
 * What the key has when it is handed out next; NULL: no value.
 */
static const struct cell {
	enum call call;
	const char *then[STARTS];
} cells[] = {
    /* absent, waiting, queued, running, dirty, held with a waiting copy */
    {ADD, {"n", "c,n", "c,n", "n", "c,n", "c,n"}},
    {PLAIN, {NULL, "c", "c", NULL, "c", "c"}},
    {AFTER, {"n", "c,n", "c,n", "n", "c,n", "c,n"}},
    {LIMITED, {"n", "c,n", "c,n", "n", "c,n", "c,n"}},
    {DUE, {NO, "c", NO, NO, NO, "c"}},
    {DONE, {NO, NO, NO, NO, "c", "c"}},
    {DROP, {NO, NO, NO, NO, "c", "c"}},
    /* [AGAIN] the hold's comes first */
    {TAIL, {NO, NO, NO, "h", "h,c", "h,c"}},
    {HEAD, {NO, NO, NO, "h", "h,c", "h,c"}},
    {RETRY, {NO, NO, NO, "h", "h,c", "h,c"}},
    {AGAIN, {NO, NO, NO, "h", "h,c", "h,c"}},
    {LATER, {NO, NO, NO, "h", "h,c", "h,c"}},
};

static bool bring_about(struct fixture *f, enum start start, wq_item *it)
{
	bool held = start >= RUNNING;

	if (held) {
		IS(add_value(f->q, "k", "h"), WQ_QUEUED);
		hold_is(f->q, it, "k", 0, "h");
	}
	if (start == QUEUED || start == DIRTY)
		assert_true(add_value(f->q, "k", "c") > 0);
	if (start == WAITING || start == HELD_WAITING)
		IS(add_full(f->q, "k", 0, "c", 50 * MS), WQ_DELAYED);
	return held;
}

static int make_call(struct fixture *f, enum call call, wq_item *it)
{
	wq_add_options limited = {.limited = 1, .value = "n", .value_len = 1};

	switch (call) {
	case ADD:
		return add_value(f->q, "k", "n");
	case PLAIN:
		return wq_add_str(f->q, "k");
	case AFTER:
		return add_full(f->q, "k", 0, "n", 40 * MS);
	case LIMITED:
		return wq_add_with(f->q, "k", 1, &limited);
	case DUE:
		return wq_manual_clock_advance(f->mc, 50 * MS);
	case DONE:
		return wq_done(f->q, it);
	case DROP:
		return wq_settle(f->q, it, WQ_DROP);
	case TAIL:
		return wq_requeue(f->q, it, WQ_TAIL);
	case HEAD:
		return wq_requeue(f->q, it, WQ_HEAD);
	case RETRY:
		return wq_retry(f->q, it);
	case AGAIN:
		return wq_settle(f->q, it, wq_again_after(0));
	case LATER:
		return wq_settle(f->q, it, wq_again_after(10 * MS));
	case CALLS:
		break;
	}
	return WQ_EINVAL;
}

static void check_cell(const struct cell *c, enum start start)
{
	const char *then = c->then[start];
	struct fixture f;
	wq_item it;
	bool held;

	open_valued(&f, wq_merge_append, ",");
	held = bring_about(&f, start, &it);
	/* A walk shows the value of the copy, else of the hold. */
	assert_string_equal(look(f.q, "k").value, start == RUNNING  ? "h"
	                                          : start == ABSENT ? ""
	                                                            : "c");
	assert_true(make_call(&f, c->call, &it) >= 0);
	if (held && c->call < DONE) {
		/* The item shows its own all the while. */
		assert_string_equal(it.value, "h");
		IS((int64_t)it.value_len, 1);
		assert_string_equal(look(f.q, "k").value, then ? then : "(none)");
		assert_true(wq_done(f.q, &it) >= 0);
	}
	wq_manual_clock_advance(f.mc, WQ_SECOND);
	if (then == NULL || strcmp(then, NO) != 0) {
		assert_string_equal(look(f.q, "k").value, then ? then : "(none)");
		hold_is(f.q, &it, "k", 0, then);
		IS(wq_done(f.q, &it), WQ_OK);
	}
	nothing_is_ready(f.q);
	/* [AGAIN] Done ends it. */
	IS(wq_add_str(f.q, "k"), WQ_QUEUED);
	hold_is(f.q, &it, "k", 0, NULL);
	IS(wq_done(f.q, &it), WQ_OK);
	fixture_close(&f, 0);
}

static void the_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(cells); i++)
		for (enum start s = ABSENT; s < STARTS; s++)
			if (cells[i].call < DUE || !cells[i].then[s] ||
			    strcmp(cells[i].then[s], NO) != 0)
				check_cell(&cells[i], s);
}

/* [CARRY] [VALUE] The default is the last one; first and or. */
static void each_merge(void **state)
{
	static const struct {
		wq_merge_fn merge;
		const char *added, *retried;
	} m[] = {
	    {NULL, "B", "B"},
	    {wq_merge_last, "B", "B"},
	    {wq_merge_first, "A", "A"},
	    {wq_merge_or, "C", "C"},
	};
	struct fixture f;
	wq_item it;

	(void)state;
	for (size_t i = 0; i < LENGTH(m); i++) {
		open_valued(&f, m[i].merge, NULL);
		IS(add_value(f.q, "k", "A"), WQ_QUEUED);
		IS(add_value(f.q, "k", "B"), WQ_MERGED);
		value_out_is(f.q, "k", m[i].added);
		IS(add_value(f.q, "k", "A"), WQ_QUEUED);
		hold_is(f.q, &it, "k", 0, "A");
		IS(add_value(f.q, "k", "B"), WQ_MARKED);
		IS(wq_retry(f.q, &it), WQ_QUEUED);
		value_out_is(f.q, "k", m[i].retried);
		/* without one the value stays */
		IS(add_value(f.q, "k", "A"), WQ_QUEUED);
		hold_is(f.q, &it, "k", 0, "A");
		IS(wq_add_str(f.q, "k"), WQ_MARKED);
		IS(wq_requeue(f.q, &it, WQ_TAIL), WQ_QUEUED);
		value_out_is(f.q, "k", "A");
		/* none, then one */
		IS(wq_add_str(f.q, "k"), WQ_QUEUED);
		hold_is(f.q, &it, "k", 0, NULL);
		IS(add_value(f.q, "k", "B"), WQ_MARKED);
		IS(wq_requeue(f.q, &it, WQ_TAIL), WQ_QUEUED);
		value_out_is(f.q, "k", "B");
		fixture_close(&f, 0);
	}
}

/* [CARRY] What is added during a hold collects for the next one. */
static void values_collect(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	open_valued(&f, wq_merge_append, "+");
	add_value(f.q, "k", "1");
	add_value(f.q, "k", "2");
	hold_is(f.q, &it, "k", 0, "1+2");
	add_value(f.q, "k", "3");
	add_full(f.q, "k", 0, "4", MS);
	add_value(f.q, "k", "5");
	assert_string_equal(it.value, "1+2");
	IS(wq_done(f.q, &it), WQ_QUEUED);
	add_value(f.q, "k", "6");
	value_out_is(f.q, "k", "3+4+5+6");
	fixture_close(&f, 0);
}

/* Each policy merges, whatever becomes of the time. */
static void policies_merge(void **state)
{
	struct fixture f;

	(void)state;
	for (enum wq_policy p = WQ_MIN; p <= WQ_KEEP; p++)
		for (int64_t ms = 10; ms <= 90; ms += 80) {
			wq_add_options o = {.after_ns = ms * MS,
			                    .policy = p,
			                    .value = "n",
			                    .value_len = 1};

			open_valued(&f, wq_merge_append, ",");
			add_full(f.q, "k", 0, "c", 50 * MS);
			assert_true(wq_add_with(f.q, "k", 1, &o) >= 0);
			wq_manual_clock_advance(f.mc, WQ_SECOND);
			value_out_is(f.q, "k", "c,n");
			fixture_close(&f, 0);
		}
}

/* ---- reminders --------------------------------------------------------------------------- */

/* [CARRY] A reminder has a value of its own, which merges with the key's when it is due. */
static void reminders(void **state)
{
	static const struct {
		enum start beside;
		const char *then;
	} r[] = {{ABSENT, "r"},  {WAITING, "c,r"}, {QUEUED, "c,r"},
	         {RUNNING, "r"}, {DIRTY, "c,r"},   {HELD_WAITING, "c,r"}};

	(void)state;
	for (size_t i = 0; i < LENGTH(r); i++)
		for (int without = 0; without < 2; without++) {
			struct fixture f;
			wq_item it;
			bool held;
			const char *then = r[i].then;

			if (without)
				then = strchr(then, 'c') ? "c" : NULL;
			open_valued(&f, wq_merge_append, ",");
			held = bring_about(&f, r[i].beside, &it);
			IS(add_remind(f.q, "k", 0, without ? NULL : "r", 20 * MS), WQ_DELAYED);
			wq_manual_clock_advance(f.mc, 20 * MS);
			if (held)
				IS(wq_done(f.q, &it), WQ_QUEUED);
			hold_is(f.q, &it, "k", 0, then);
			IS(wq_done(f.q, &it), WQ_OK);
			nothing_is_ready(f.q);
			fixture_close(&f, 0);
		}
}

static void reminders_that_stay(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	open_valued(&f, wq_merge_append, ",");
	add_value(f.q, "k", "c");
	IS(add_remind(f.q, "k", 0, "r", 20 * MS), WQ_DELAYED);
	IS(add_remind(f.q, "k", 0, "s", 30 * MS), WQ_KEPT);
	hold_is(f.q, &it, "k", 0, "c");
	IS(wq_retry(f.q, &it), WQ_DELAYED);
	IS(wq_cancel(f.q, "k", 1, NULL), WQ_CANCELLED); /* both */
	wq_manual_clock_advance(f.mc, WQ_SECOND);
	nothing_is_ready(f.q);
	IS(add_remind(f.q, "k", 0, "r", 20 * MS), WQ_DELAYED); /* of a key that is remembered */
	assert_string_equal(look(f.q, "k").value, "r");
	wq_manual_clock_advance(f.mc, WQ_SECOND);
	value_out_is(f.q, "k", "r");
	fixture_close(&f, 0);
}

/* A reminder is due, and the key is taken before anybody has looked. */
static void reminders_taken_with_their_key(void **state)
{
	struct fixture f;
	wq_item items[2];

	(void)state;
	open_valued(&f, wq_merge_append, ",");
	add_value(f.q, "k", "c");
	IS(add_remind(f.q, "k", 0, "r", MS), WQ_DELAYED);
	wq_manual_clock_advance(f.mc, MS);
	IS(wq_get_many_until(f.q, items, 2, WQ_NOWAIT), 1);
	assert_string_equal(items[0].value, "c,r");
	IS(wq_done(f.q, &items[0]), WQ_OK);
	fixture_close(&f, 0);
}

/* ---- errors -------------------------------------------------------------------------------- */

struct merger {
	int64_t answer;
	int calls;
};

static int64_t odd_merge(void *ctx, const void *old, size_t old_len, const void *add,
                         size_t add_len, void *out)
{
	struct merger *m = ctx;

	m->calls++;
	assert_int_equal(((const char *)old)[old_len], '\0');
	assert_int_equal(((const char *)add)[add_len], '\0');
	memset(out, 'm',
	       m->answer >= 0 && m->answer < WQ_VALUE_MAX ? (size_t)m->answer : WQ_VALUE_MAX);
	return m->answer;
}

/* [CARRY] A merge that fails refuses the add: nothing has changed, in any state. */
static void merges_that_fail(void **state)
{
	static const struct {
		int64_t answer;
		int status;
	} e[] = {{WQ_ETOOLONG, WQ_ETOOLONG},      {WQ_EINTERRUPTED, WQ_EINTERRUPTED},
	         {WQ_VALUE_MAX + 1, WQ_ETOOLONG}, {INT64_MAX, WQ_ETOOLONG},
	         {INT64_MIN, WQ_EINVAL},          {-1, WQ_EINVAL}};

	(void)state;
	for (size_t i = 0; i < LENGTH(e); i++)
		for (enum start s = WAITING; s < STARTS; s++) {
			struct merger m = {.answer = e[i].answer};
			struct fixture f;
			struct shown before;
			wq_add_options limited = {.limited = 1,
			                          .value = "n",
			                          .value_len = 1,
			                          .priority = 9};
			wq_item it;
			bool held;

			if (s == RUNNING)
				continue; /* it has no copy to merge with */
			fixture_open(&f, &(wq_options){.values = 1,
			                               .priorities = 1,
			                               .name = "fail",
			                               .merge = odd_merge,
			                               .merge_ctx = &m});
			held = bring_about(&f, s, &it);
			before = look(f.q, "k");
			IS(add_full(f.q, "k", 9, "n", 0), e[i].status);
			IS(add_full(f.q, "k", 9, "n", 10 * MS), e[i].status);
			IS(wq_add_with(f.q, "k", 1, &limited), e[i].status);
			IS(m.calls, 3);
			IS(wq_failures(f.q, "k", 1), 0);
			IS((int64_t)snapshot(f.q).refused, 3);
			IS((int64_t)snapshot(f.q).merge_failed, 0);
			IS(look(f.q, "k").state, before.state);
			IS(look(f.q, "k").priority, 0);
			IS(look(f.q, "k").due_ns, before.due_ns);
			assert_string_equal(look(f.q, "k").value, "c");
			/* An add without a value merges nothing. */
			assert_true(wq_add_str(f.q, "k") > 0);
			IS(m.calls, 3);
			if (held)
				assert_true(wq_done(f.q, &it) >= 0);
			value_out_is(f.q, "k", "c");
			fixture_close(&f, 0);
		}
}

/* What a merge makes may be empty, and as long as a value may be. */
static void merges_of_any_length(void **state)
{
	static const int64_t lengths[] = {0, 1, 4096, WQ_VALUE_MAX};
	struct merger m = {.calls = 0};
	struct fixture f;
	wq_item it;

	(void)state;
	open_valued(&f, odd_merge, &m);
	for (size_t i = 0; i < LENGTH(lengths); i++) {
		m.answer = lengths[i];
		add_value(f.q, "k", "a");
		IS(add_value(f.q, "k", "b"), WQ_MERGED);
		IS(wq_try_get(f.q, &it), WQ_OK);
		IS((int64_t)it.value_len, lengths[i]);
		assert_non_null(it.value);
		IS(((const char *)it.value)[it.value_len], '\0');
		for (size_t at = 0; at < it.value_len; at++)
			assert_int_equal(((const char *)it.value)[at], 'm');
		IS(wq_done(f.q, &it), WQ_OK);
	}
	fixture_close(&f, 0);
}

/* [AGAIN] The merge fails when a hold ends: what came since stays, and it is counted. */
static void merges_that_fail_at_the_end(void **state)
{
	for (enum call c = TAIL; c < CALLS; c++)
		for (enum start s = DIRTY; s <= HELD_WAITING; s++) {
			struct merger m = {.answer = WQ_ETOOLONG};
			struct fixture f;
			wq_item it;

			open_valued(&f, odd_merge, &m);
			bring_about(&f, s, &it);
			assert_true(make_call(&f, c, &it) >= 0);
			IS(m.calls, 1);
			IS((int64_t)snapshot(f.q).merge_failed, 1);
			wq_manual_clock_advance(f.mc, WQ_SECOND);
			value_out_is(f.q, "k", "c");
			fixture_close(&f, 0);
		}
	(void)state;
}

/* A reminder whose value does not merge is due all the same, with its priority. */
static void reminders_that_fail(void **state)
{
	struct merger m = {.answer = WQ_ETOOLONG};
	struct fixture f;
	wq_item it;

	(void)state;
	for (int held = 0; held < 2; held++) {
		fixture_open(&f, &(wq_options){.values = 1,
		                               .priorities = 1,
		                               .merge = odd_merge,
		                               .merge_ctx = &m});
		if (held) {
			add_value(f.q, "k", "h");
			hold_is(f.q, &it, "k", 0, "h");
		}
		add_value(f.q, "k", "c");
		IS(add_remind(f.q, "k", 7, "r", MS), WQ_DELAYED);
		wq_manual_clock_advance(f.mc, MS);
		IS((int64_t)snapshot(f.q).merge_failed, 1);
		IS(look(f.q, "k").priority, 7);
		if (held)
			IS(wq_done(f.q, &it), WQ_QUEUED);
		hold_is(f.q, &it, "k", 7, "c");
		IS(wq_done(f.q, &it), WQ_OK);
		fixture_close(&f, 0);
	}
}

/* ---- lengths -------------------------------------------------------------------------------- */

/* From empty to the longest, with any bytes; an empty value is a value. */
static void any_length(void **state)
{
	static const size_t lengths[] = {0,   1,    7,    8,     255,         256,
	                                 257, 1000, 4096, 65535, WQ_VALUE_MAX};
	static char bytes[WQ_VALUE_MAX + 1];
	struct fixture f;
	wq_item it;

	(void)state;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (char)(i * 7);
	open_valued(&f, NULL, NULL);
	for (size_t i = 0; i < LENGTH(lengths); i++) {
		wq_add_options o = {.value = bytes, .value_len = lengths[i]};

		IS(wq_add_with(f.q, "k", 1, &o), WQ_QUEUED);
		IS(wq_add_str(f.q, "k"), WQ_MERGED);
		IS(wq_try_get(f.q, &it), WQ_OK);
		assert_non_null(it.value);
		assert_int_equal(it.value_len, lengths[i]);
		if (lengths[i] > 0)
			assert_memory_equal(it.value, bytes, lengths[i]);
		IS(((const char *)it.value)[lengths[i]], '\0');
		IS(wq_retry(f.q, &it), WQ_DELAYED);
		wq_manual_clock_advance(f.mc, 1000 * WQ_SECOND);
		IS(wq_try_get(f.q, &it), WQ_OK);
		assert_int_equal(it.value_len, lengths[i]);
		IS(wq_settle(f.q, &it, WQ_DONE), WQ_OK);
	}
	IS(wq_add_with(f.q, "k", 1,
	               &(wq_add_options){.value = bytes, .value_len = WQ_VALUE_MAX + 1}),
	   WQ_ETOOLONG);
	IS(count_keys(f.q), 0);
	fixture_close(&f, 0);
}

/* The longest key, group and value in one walk, also where there is no memory for it. */
static int see_long(void *ctx, const wq_key_info *info)
{
	int *seen = ctx;

	IS((int64_t)info->len, WQ_KEY_MAX);
	IS((int64_t)info->value_len, WQ_VALUE_MAX);
	IS((int64_t)info->group.len, WQ_KEY_MAX);
	IS(((const char *)info->value)[WQ_VALUE_MAX], '\0');
	assert_memory_equal(info->key, info->group.key, WQ_KEY_MAX);
	++*seen;
	return 0;
}

static void the_longest_of_all(void **state)
{
	static char key[WQ_KEY_MAX], value[WQ_VALUE_MAX];
	wq_options o = {.values = 1, .group = wq_group_before, .group_ctx = &before_slash};
	struct fixture f;
	int seen = 0;

	(void)state;
	fixture_open(&f, &o);
	for (int i = 0; i < 5; i++) {
		key[0] = (char)('a' + i);
		IS(wq_add_with(f.q, key, sizeof key,
		               &(wq_add_options){.value = value, .value_len = sizeof value}),
		   WQ_QUEUED);
	}
	IS(wq_walk(f.q, see_long, &seen), 5);
	IS(seen, 5);
	f.mem.fail_at = 0;
	f.mem.fail_on = true;
	IS(wq_walk(f.q, see_long, &seen), WQ_ENOMEM);
	IS(wq_snapshot_take(f.q, &(wq_snapshot){0}), WQ_OK);
	f.mem.fail_at = -1;
	fixture_close(&f, 5);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void letter(void *ctx, const wq_item *item)
{
	snprintf(ctx, 16, "%s", item->value ? (const char *)item->value : "(none)");
}

/* The dead letter sees the value; then it is gone. */
static void dead_letters(void **state)
{
	char seen[16] = "";
	struct fixture f;
	wq_item it;

	(void)state;
	fixture_open(&f, &(wq_options){.values = 1,
	                               .max_attempts = 1,
	                               .dead_letter = letter,
	                               .dead_ctx = seen});
	for (int fatal = 0; fatal < 2; fatal++) {
		seen[0] = '\0';
		add_value(f.q, "k", "why");
		hold_is(f.q, &it, "k", 0, "why");
		add_value(f.q, "k", "next");
		IS(fatal ? wq_settle(f.q, &it, WQ_FATAL) : wq_retry(f.q, &it), WQ_DEAD);
		assert_string_equal(seen, "why");
		value_out_is(f.q, "k", "next");
		nothing_is_ready(f.q);
	}
	fixture_close(&f, 0);
}

/* A cancel takes the copy's value, and a cancelled hold's retry its own. */
static void cancelled(void **state)
{
	struct fixture f;
	wq_item it;

	(void)state;
	open_valued(&f, wq_merge_append, ",");
	for (enum start s = WAITING; s < STARTS; s++) {
		bool held = bring_about(&f, s, &it);

		IS(wq_cancel(f.q, "k", 1, NULL), WQ_CANCELLED);
		if (held) {
			assert_string_equal(look(f.q, "k").value, "h");
			IS(wq_retry(f.q, &it), WQ_CANCELLED);
		}
		IS(count_keys(f.q), 0);
		IS(wq_add_str(f.q, "k"), WQ_QUEUED);
		hold_is(f.q, &it, "k", 0, NULL);
		IS(wq_done(f.q, &it), WQ_OK);
	}
	/* cancelled, then added again: that alone counts */
	bring_about(&f, DIRTY, &it);
	IS(wq_cancel(f.q, "k", 1, NULL), WQ_CANCELLED);
	add_value(f.q, "k", "new");
	IS(wq_done(f.q, &it), WQ_QUEUED);
	value_out_is(f.q, "k", "new");
	fixture_close(&f, 0);
}

static int list(void *ctx, const wq_key_info *info)
{
	snprintf(ctx, 16, "%s", info->value ? (const char *)info->value : "(none)");
	return 0;
}

/* [AGAIN] In a shutdown as ever; drains list what is left over with its value. */
static void shut_down(void **state)
{
	struct fixture f;
	wq_item it;
	char left[16] = "";
	wq_drain_options o = {.left = list, .ctx = left};

	(void)state;
	for (int how = 0; how < 5; how++) {
		open_valued(&f, wq_merge_append, ",");
		bring_about(&f, how < 3 ? DIRTY : RUNNING, &it);
		IS(wq_shutdown(f.q), WQ_OK);
		switch (how) {
		case 0:
			IS(wq_retry(f.q, &it), WQ_QUEUED);
			break;
		case 1:
			IS(wq_settle(f.q, &it, wq_again_after(MS)), WQ_QUEUED);
			break;
		case 2:
			IS(wq_requeue(f.q, &it, WQ_TAIL), WQ_QUEUED);
			break;
		case 3:
			IS(wq_retry(f.q, &it), WQ_LEFT);
			break;
		default:
			IS(wq_settle(f.q, &it, wq_again_after(MS)), WQ_LEFT);
			break;
		}
		if (how < 3) {
			value_out_is(f.q, "k", "h,c");
			fixture_close(&f, 0);
			continue;
		}
		IS(wq_drain_until(f.q, 0, &o, NULL), WQ_LEFT);
		assert_string_equal(left, "h");
		fixture_close(&f, 1);
	}
	/* a drain that waits, and a copy that will come due */
	open_valued(&f, wq_merge_append, ",");
	bring_about(&f, HELD_WAITING, &it);
	IS(wq_drain_until(f.q, 0, &(wq_drain_options){.mode = WQ_DRAIN_WAIT}, NULL), WQ_ETIMEDOUT);
	IS(wq_settle(f.q, &it, wq_again_after(MS)), WQ_DELAYED);
	wq_manual_clock_advance(f.mc, 50 * MS);
	value_out_is(f.q, "k", "h,c");
	fixture_close(&f, 0);
}

/* [BOUND] A value that is refused with its key leaves nothing behind. */
static void full_queues(void **state)
{
	struct fixture f;
	int64_t bytes;

	(void)state;
	fixture_open(&f, &(wq_options){.values = 1, .max_keys = 1, .merge = wq_merge_append});
	add_value(f.q, "a", "v");
	bytes = f.mem.bytes;
	for (int i = 0; i < 10000; i++)
		IS(add_value(f.q, "b", "0123456789012345678901234567890123456789"), WQ_EFULL);
	assert_true(f.mem.bytes < bytes + 100000);
	IS(add_value(f.q, "a", "w"), WQ_MERGED);
	value_out_is(f.q, "a", "v\nw");
	fixture_close(&f, 0);
}

/* Calls on many, next and settle_next. */
static void calls_on_many(void **state)
{
	struct fixture f;
	wq_item items[4];
	int settled;

	(void)state;
	open_valued(&f, wq_merge_append, ",");
	add_value(f.q, "a", "1");
	wq_add_str(f.q, "b");
	add_value(f.q, "c", "3");
	IS(wq_add_many(f.q, (wq_key[]){{"a", 1}, {"d", 1}}, 2, NULL), 2);
	IS(wq_get_many_until(f.q, items, 2, WQ_NOWAIT), 2);
	assert_string_equal(items[0].value, "1");
	assert_null(items[1].value);
	IS(wq_next_many_until(f.q, items, 2, 1, WQ_NOWAIT) == WQ_EINVAL, 1);
	IS(wq_done(f.q, &items[1]), WQ_OK);
	IS(wq_settle_next_until(f.q, &items[0], wq_again_after(0), WQ_NOWAIT, &settled), WQ_OK);
	IS(settled, WQ_QUEUED);
	assert_string_equal(items[0].value, "3");
	IS(wq_next_until(f.q, &items[0], WQ_NOWAIT), WQ_OK);
	assert_string_equal(items[0].key, "d");
	assert_null(items[0].value);
	IS((int64_t)items[0].value_len, 0);
	IS(wq_done(f.q, &items[0]), WQ_OK);
	value_out_is(f.q, "a", "1");
	fixture_close(&f, 0);
}

/* Memory of values comes back while the queue lives, whichever way they went. */
static void memory_comes_back(void **state)
{
	static char value[3000];
	struct fixture f;
	int64_t first = 0;
	char key[16];
	wq_item it;

	(void)state;
	memset(value, 'v', sizeof value);
	open_valued(&f, wq_merge_append, ",");
	for (int round = 0; round < 30; round++) {
		for (int i = 0; i < 300; i++) {
			wq_add_options o = {.value = value, .value_len = (size_t)(10 * i)};

			snprintf(key, sizeof key, "%d", i);
			IS(wq_add_with(f.q, key, strlen(key), &o), WQ_QUEUED);
			IS(wq_add_with(f.q, key, strlen(key), &o), WQ_MERGED);
		}
		for (int i = 0; i < 300; i++) {
			IS(wq_try_get(f.q, &it), WQ_OK);
			wq_add_with(f.q, it.key, it.len,
			            &(wq_add_options){.value = "x", .value_len = 1});
			switch (i % 4) {
			case 0:
				IS(wq_done(f.q, &it), WQ_QUEUED);
				break;
			case 1:
				IS(wq_retry(f.q, &it), WQ_QUEUED);
				break;
			case 2:
				IS(wq_cancel(f.q, it.key, it.len, NULL), WQ_CANCELLED);
				IS(wq_done(f.q, &it), WQ_OK);
				break;
			default:
				IS(wq_requeue(f.q, &it, WQ_TAIL), WQ_QUEUED);
				break;
			}
		}
		while (wq_try_get(f.q, &it) == WQ_OK)
			IS(wq_settle(f.q, &it, WQ_DONE), WQ_OK);
		if (round == 1)
			first = f.mem.bytes;
		if (round > 1)
			assert_true(f.mem.bytes <= first);
	}
	fixture_close(&f, 0);
}

/* What a queue without values shows. */
static void without_values(void **state)
{
	struct fixture *f = *state;

	wq_add_str(f->q, "k");
	IS(add_value(f->q, "k", "v"), WQ_EINVAL);
	IS(add_value(f->q, "k", ""), WQ_EINVAL);
	assert_string_equal(look(f->q, "k").value, "(none)");
	assert_string_equal(look(f->q, "k").group, "(none)");
	take_is(f->q, "k", WQ_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(ready_made),
	    cmocka_unit_test(ready_made_ends),
	    cmocka_unit_test(the_table),
	    cmocka_unit_test(each_merge),
	    cmocka_unit_test(values_collect),
	    cmocka_unit_test(policies_merge),
	    cmocka_unit_test(reminders),
	    cmocka_unit_test(reminders_that_stay),
	    cmocka_unit_test(reminders_taken_with_their_key),
	    cmocka_unit_test(merges_that_fail),
	    cmocka_unit_test(merges_of_any_length),
	    cmocka_unit_test(merges_that_fail_at_the_end),
	    cmocka_unit_test(reminders_that_fail),
	    cmocka_unit_test(any_length),
	    cmocka_unit_test(the_longest_of_all),
	    cmocka_unit_test(dead_letters),
	    cmocka_unit_test(cancelled),
	    cmocka_unit_test(shut_down),
	    cmocka_unit_test(full_queues),
	    cmocka_unit_test(calls_on_many),
	    cmocka_unit_test(memory_comes_back),
	    WITH_FIXTURE(without_values),
	};

	return cmocka_run_group_tests_name("value", tests, NULL, NULL);
}
