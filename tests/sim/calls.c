/* The calls of the library that keep a history, see world.h. */
#include "history.h"

#include <string.h>

#include "queue/queue.h"

static void call_begin(const char *what, int key)
{
	sim_call_begin();
	if (sim_tracing)
		sim_trace("%s(%d)", what, key);
}

static void call_end(const char *what, int rc)
{
	sim_getting(false);
	if (sim_tracing)
		sim_trace("%s -> %s %d", what, rc <= 0 ? wq_status_name(rc) : "", rc);
	world_beside();
}

/* When the i-th key of a call on many was seen to. */
static uint32_t when(int i)
{
	uint32_t effect = sim_effect(i);

	return effect ? effect : sim_call_last();
}

static void hold_begins(const wq_item *it, uint32_t section)
{
	int key = key_of(it);

	if (w.held[key])
		sim_fail("key %d is with two workers", key);
	if (!w.other_clock && it->added_ns > sim_call_last_ns())
		sim_fail("key %d says that it was added after it was taken", key);
	w.held[key] = true;
	w.nheld++;
	w.holds[key]++;
	if (w.limit > 0 && ++w.nheld_of[group_of_key(key)] > (int)w.limit)
		sim_fail("%d keys of the group of key %d are held", w.nheld_of[group_of_key(key)],
		         key);

	struct note *n = note(GOT, section, key, WQ_OK, it->token);

	n->priority = it->priority;
	n->from_ns = sim_call_last_ns();
	n->to_ns = sim_now();
	if (it->value_len >= TEXT_MAX)
		sim_fail("a value of %zu bytes", it->value_len);
	if (it->value)
		memcpy(n->text, it->value, it->value_len + 1);
	sim_trace("holds key %d", key);
}

static void hold_ends(int key)
{
	if (!w.held[key])
		sim_fail("the test ends a hold that it does not have");
	w.held[key] = false;
	w.nheld--;
	w.nheld_of[group_of_key(key)] -= w.limit > 0;
	w.handled++;
}

static void check_empty_handed(int rc, int64_t deadline_ns)
{
	if (rc == WQ_ETIMEDOUT && world_now() < deadline_ns)
		sim_fail("time-out at %lld, before the deadline %lld", (long long)world_now(),
		         (long long)deadline_ns);
	if (rc == WQ_ETIMEDOUT && deadline_ns == WQ_NEVER)
		sim_fail("time-out of a call without a deadline");
	if (rc == WQ_EINTERRUPTED && --w.credit < 0)
		sim_fail("interrupted by nobody");
	if (rc == WQ_EAGAIN && deadline_ns != WQ_NOWAIT)
		sim_fail("a get that waits answered WQ_EAGAIN");
	if (rc != WQ_ETIMEDOUT && rc != WQ_EINTERRUPTED && rc != WQ_EAGAIN && rc != WQ_ESHUTDOWN)
		sim_fail("a get answered %s", wq_status_name(rc));
	if (sim_call_last())
		note(GOT_NOTHING, sim_call_last(), 0, rc, 0);
}

int do_add(int key)
{
	size_t len;
	const char *bytes = key_bytes(key, &len);

	call_begin("add", key);

	int rc = wq_add(w.q, bytes, len);

	note(ADD, sim_call_last(), key, rc, 0);
	call_end("add", rc);
	return rc;
}

int do_add_rich(int key, int priority, const char *text)
{
	size_t len, text_len = strlen(text);
	const char *bytes = key_bytes(key, &len);
	wq_add_options o = {.priority = priority,
	                    .value = text_len > 0 ? text : NULL,
	                    .value_len = text_len};

	call_begin("add", key);

	int rc = wq_add_with(w.q, bytes, len, &o);
	struct note *n = note(ADD, sim_call_last(), key, rc, 0);

	n->priority = priority;
	memcpy(n->text, text, text_len + 1);
	call_end("add", rc);
	return rc;
}

int do_add_many(const int *keys, int n)
{
	wq_key k[MAX_BATCH];
	int outcomes[MAX_BATCH], accepted = 0;

	for (int i = 0; i < n; i++)
		k[i].key = key_bytes(keys[i], &k[i].len);
	call_begin("add_many", n);

	int rc = wq_add_many(w.q, k, (size_t)n, outcomes);

	for (int i = 0; i < n; i++) {
		note(ADD, when(i), keys[i], outcomes[i], 0);
		accepted += outcomes[i] > 0;
	}
	if (rc != accepted)
		sim_fail("add_many answered %d, but accepted %d keys", rc, accepted);
	call_end("add_many", rc);
	return rc;
}

int do_get(wq_item *it, int64_t deadline_ns)
{
	int rc;

	call_begin("get", deadline_ns == WQ_NOWAIT ? -1 : 0);
	sim_getting(deadline_ns != WQ_NOWAIT);
	if (deadline_ns == WQ_NOWAIT)
		rc = wq_try_get(w.q, it);
	else if (deadline_ns == WQ_NEVER)
		rc = wq_get(w.q, it);
	else
		rc = wq_get_until(w.q, it, deadline_ns);
	if (rc == WQ_OK)
		hold_begins(it, sim_call_last());
	else
		check_empty_handed(rc, deadline_ns);
	call_end("get", rc);
	return rc;
}

/* The first `done` effects of the call were other keys' dones. */
static void got_many(const wq_item *items, int done, int rc, int max, int64_t deadline_ns)
{
	if (rc > max || rc == 0)
		sim_fail("got %d items, at most %d were asked for", rc, max);
	for (int i = 0; i < rc; i++)
		hold_begins(&items[i], when(done + i));
	if (rc < 0)
		check_empty_handed(rc, deadline_ns);
}

int do_get_many(wq_item *items, int max, int64_t deadline_ns)
{
	call_begin("get_many", max);
	sim_getting(deadline_ns != WQ_NOWAIT);

	int rc = wq_get_many_until(w.q, items, (size_t)max, deadline_ns);

	got_many(items, 0, rc, max, deadline_ns);
	call_end("get_many", rc);
	return rc;
}

int do_done(const wq_item *it)
{
	int key = key_of(it);

	hold_ends(key);
	call_begin("done", key);

	int rc = wq_done(w.q, it);

	note(DONE_, sim_call_last(), key, rc, it->token);
	call_end("done", rc);
	return rc;
}

int do_done_stale(const wq_item *it)
{
	call_begin("done again", 0);

	int rc = wq_done(w.q, it);

	if (rc != WQ_ESTALE)
		sim_fail("done of a stale item answered %s", wq_status_name(rc));
	call_end("done again", rc);
	return rc;
}

int do_done_many(const wq_item *items, int n)
{
	int outcomes[MAX_BATCH], key[MAX_BATCH];

	for (int i = 0; i < n; i++) {
		key[i] = key_of(&items[i]);
		hold_ends(key[i]);
	}
	call_begin("done_many", n);

	int rc = wq_done_many(w.q, items, (size_t)n, outcomes);

	for (int i = 0; i < n; i++)
		note(DONE_, when(i), key[i], outcomes[i], items[i].token);
	if (rc != n)
		sim_fail("done_many answered %d for %d held items", rc, n);
	call_end("done_many", rc);
	return rc;
}

int do_next(wq_item *it, int64_t deadline_ns)
{
	int key = key_of(it);
	uint64_t token = it->token;

	hold_ends(key);
	call_begin("next", key);
	sim_getting(deadline_ns != WQ_NOWAIT);

	int rc = deadline_ns == WQ_NEVER ? wq_next(w.q, it) : wq_next_until(w.q, it, deadline_ns);

	note(DONE_, sim_call_first(), key, UNTOLD, token);
	if (rc == WQ_OK)
		hold_begins(it, sim_call_last());
	else
		check_empty_handed(rc, deadline_ns);
	call_end("next", rc);
	return rc;
}

int do_next_many(wq_item *items, int n, int max, int64_t deadline_ns)
{
	int key[MAX_BATCH];
	uint64_t token[MAX_BATCH];

	for (int i = 0; i < n; i++) {
		key[i] = key_of(&items[i]);
		token[i] = items[i].token;
		hold_ends(key[i]);
	}
	call_begin("next_many", n);
	sim_getting(deadline_ns != WQ_NOWAIT);

	int rc = wq_next_many_until(w.q, items, (size_t)n, (size_t)max, deadline_ns);

	for (int i = 0; i < n; i++)
		note(DONE_, sim_effect(i) ? sim_effect(i) : sim_call_whole(), key[i], UNTOLD,
		     token[i]);
	got_many(items, n, rc, max, deadline_ns);
	call_end("next_many", rc);
	return rc;
}

int do_requeue(const wq_item *it, enum wq_where where)
{
	int key = key_of(it);

	hold_ends(key);
	call_begin(where == WQ_HEAD ? "requeue to the head" : "requeue", key);

	int rc = wq_requeue(w.q, it, where);

	note(REQUEUE, sim_call_last(), key, rc, it->token)->where = where;
	call_end("requeue", rc);
	return rc;
}

int do_interrupt(int n)
{
	call_begin("interrupt", n);
	w.credit += n; /* before: somebody may return because of it before the call does */

	int rc = wq_interrupt(w.q, n);

	if (rc < 0)
		sim_fail("interrupt answered %s", wq_status_name(rc));
	if (n == 0)
		w.credit -= rc;
	call_end("interrupt", rc);
	return rc;
}

int do_shutdown(void)
{
	call_begin("shutdown", 0);

	int rc = wq_shutdown(w.q);

	if (rc != WQ_OK)
		sim_fail("shutdown answered %s", wq_status_name(rc));
	note(SHUT, sim_call_first(), 0, rc, 0);
	call_end("shutdown", rc);
	return rc;
}

int do_drain(int64_t deadline_ns, const wq_drain_options *options, wq_report *report)
{
	wq_report own;

	call_begin("drain", 0);

	/* If there are pools, they are resumed in a section of its own, the first. */
	bool pools = wq__has_pools(w.q);
	int rc = wq_drain_until(w.q, deadline_ns, options, &own);
	uint32_t shut = pools ? sim_call_second() : sim_call_first();

	if (rc != WQ_OK && rc != WQ_ETIMEDOUT && rc != WQ_EINTERRUPTED)
		sim_fail("drain answered %s", wq_status_name(rc));
	if (rc == WQ_ETIMEDOUT && (deadline_ns == WQ_NEVER || world_now() < deadline_ns))
		sim_fail("a drain timed out early");
	note(SHUT, shut, 0, rc, 0);
	/* Listing what is left takes sections of its own. */
	if (!options || rc == WQ_OK) {
		struct note *end = note(DRAIN_END, sim_call_last(), 0, rc, 0);

		end->from = shut;
		end->report = own;
	}
	if (report)
		*report = own;
	call_end("drain", rc);
	return rc;
}

static void check_wait(const char *what, int rc, int64_t deadline_ns)
{
	if (rc != WQ_OK && rc != WQ_ETIMEDOUT)
		sim_fail("%s answered %s", what, wq_status_name(rc));
	if (rc == WQ_ETIMEDOUT && (deadline_ns == WQ_NEVER || world_now() < deadline_ns))
		sim_fail("%s timed out early", what);
}

int do_wait_idle(int64_t deadline_ns)
{
	call_begin("wait_idle", 0);

	int rc = wq_wait_idle_until(w.q, deadline_ns);

	check_wait("wait_idle", rc, deadline_ns);
	note(IDLE, sim_call_last(), 0, rc, 0);
	call_end("wait_idle", rc);
	return rc;
}

int do_wait_key(int key, int64_t deadline_ns)
{
	size_t len;
	const char *bytes = key_bytes(key, &len);

	call_begin("wait_key", key);

	int rc = wq_wait_key_until(w.q, bytes, len, deadline_ns);

	check_wait("wait_key", rc, deadline_ns);

	uint64_t number = note_wait();

	note(KEY_BEGIN, sim_call_first(), key, rc, number);
	note(KEY_END, sim_call_last(), key, rc, number);
	call_end("wait_key", rc);
	return rc;
}

int64_t do_len(void)
{
	call_begin("len", 0);

	int64_t n = wq_len(w.q);

	if (sim_call_last())
		note(LEN, sim_call_last(), 0, 0, (uint64_t)n);
	call_end("len", (int)n);
	return n;
}

int do_state(int key)
{
	size_t len;
	const char *bytes = key_bytes(key, &len);

	call_begin("state", key);

	int rc = wq_state(w.q, bytes, len);

	note(STATE, sim_call_last(), key, rc, 0);
	call_end("state", rc);
	return rc;
}
