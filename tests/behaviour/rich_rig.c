#include "rich_rig.h"

wq_separator before_slash = {.byte = '/', .n = 1};

int add_full(wq_queue *q, const char *key, int priority, const char *value, int64_t after_ns)
{
	wq_add_options o = {.priority = priority,
	                    .after_ns = after_ns,
	                    .value = value,
	                    .value_len = value ? strlen(value) : 0};

	return wq_add_with(q, key, strlen(key), &o);
}

int add_at(wq_queue *q, const char *key, int priority)
{
	return add_full(q, key, priority, NULL, 0);
}

int add_value(wq_queue *q, const char *key, const char *value)
{
	return add_full(q, key, 0, value, 0);
}

int add_remind(wq_queue *q, const char *key, int priority, const char *value, int64_t after_ns)
{
	wq_add_options o = {.priority = priority,
	                    .after_ns = after_ns,
	                    .policy = WQ_REMIND,
	                    .value = value,
	                    .value_len = value ? strlen(value) : 0};

	return wq_add_with(q, key, strlen(key), &o);
}

void hold_is(wq_queue *q, wq_item *it, const char *key, int priority, const char *value)
{
	memset(it, 0xee, sizeof *it);
	IS(wq_try_get(q, it), WQ_OK);
	assert_string_equal(it->key, key);
	assert_int_equal(it->len, strlen(key));
	IS(it->priority, priority);
	if (value) {
		assert_non_null(it->value);
		assert_string_equal(it->value, value);
		assert_int_equal(it->value_len, strlen(value));
	} else {
		assert_null(it->value);
		assert_int_equal(it->value_len, 0);
	}
	IS((int64_t)(it->reserved[0] | it->reserved[1]), 0);
}

void out_is(wq_queue *q, const char *key, int priority)
{
	wq_item it;

	hold_is(q, &it, key, priority, NULL);
	IS(wq_done(q, &it), WQ_OK);
}

void value_out_is(wq_queue *q, const char *key, const char *value)
{
	wq_item it;

	hold_is(q, &it, key, 0, value);
	IS(wq_done(q, &it), WQ_OK);
}

/* Got one by one; each is done at once if `done`, else it stays in items. */
static size_t get_keys(wq_queue *q, wq_item *items, const char *keys, bool done)
{
	char text[1024], *rest = text, *key;
	size_t n = 0;

	snprintf(text, sizeof text, "%s", keys);
	while ((key = strsep(&rest, " ")) != NULL) {
		if (*key == '\0')
			continue;
		IS(wq_try_get(q, &items[n]), WQ_OK);
		assert_string_equal(items[n].key, key);
		if (done)
			IS(wq_done(q, &items[n]), WQ_OK);
		else
			n++;
	}
	nothing_is_ready(q);
	return n;
}

void keys_are(wq_queue *q, const char *keys)
{
	wq_item it;

	get_keys(q, &it, keys, true);
}

int64_t hold_keys(wq_queue *q, wq_item *items, const char *keys)
{
	return (int64_t)get_keys(q, items, keys, false);
}

void nothing_is_ready(wq_queue *q)
{
	wq_item it;
	int rc = wq_try_get(q, &it);

	if (rc == WQ_OK)
		print_error("\"%s\" is ready\n", (const char *)it.key);
	assert_true(rc == WQ_EAGAIN || rc == WQ_ESHUTDOWN);
}

struct look {
	const char *key;
	struct shown shown;
	int times;
};

static void copy_text(char *to, const void *from, size_t len)
{
	snprintf(to, 64, "%s", "(none)");
	if (from) {
		assert_int_equal(((const char *)from)[len], '\0');
		snprintf(to, 64, "%.*s", (int)len, (const char *)from);
	}
}

static int look_at(void *ctx, const wq_key_info *info)
{
	struct look *l = ctx;

	if (strcmp(info->key, l->key) != 0)
		return 0;
	l->times++;
	l->shown.state = info->state;
	l->shown.priority = info->priority;
	l->shown.due_ns = info->due_ns;
	copy_text(l->shown.value, info->value, info->value_len);
	copy_text(l->shown.group, info->group.key, info->group.len);
	return 0;
}

struct shown look(wq_queue *q, const char *key)
{
	struct look l = {.key = key};

	assert_true(wq_walk(q, look_at, &l) >= 0);
	assert_true(l.times <= 1);
	return l.shown;
}

wq_snapshot snapshot(wq_queue *q)
{
	wq_snapshot s;

	memset(&s, 0xee, sizeof s);
	IS(wq_snapshot_take(q, &s), WQ_OK);
	return s;
}
