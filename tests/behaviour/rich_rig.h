/* What the programs about priorities, groups and values share. */
#ifndef WQ_TESTS_RICH_RIG_H
#define WQ_TESTS_RICH_RIG_H

#include "../support/support.h"

#include <wq/snapshot.h>

#define MS WQ_MILLISECOND

enum {
	Q = WQ_STATE_QUEUED,
	R = WQ_STATE_RUNNING,
	RD = R | WQ_STATE_DIRTY,
	W = WQ_STATE_WAITING,
	L = WQ_STATE_LEFT
};

/* An add of a C string: with a priority, with a value (NULL: none), after a delay (0: now). */
int add_full(wq_queue *q, const char *key, int priority, const char *value, int64_t after_ns);
int add_at(wq_queue *q, const char *key, int priority);
int add_value(wq_queue *q, const char *key, const char *value);
int add_remind(wq_queue *q, const char *key, int priority, const char *value, int64_t after_ns);

/* The next key, without waiting; it is held. value: NULL: it has none. */
void hold_is(wq_queue *q, wq_item *it, const char *key, int priority, const char *value);
/* The same, and it is done. */
void out_is(wq_queue *q, const char *key, int priority);
void value_out_is(wq_queue *q, const char *key, const char *value);
/* The keys that can be got are these, separated by blanks; each is got and done. */
void keys_are(wq_queue *q, const char *keys);
/* The same, and they stay held. */
int64_t hold_keys(wq_queue *q, wq_item *items, const char *keys);
void nothing_is_ready(wq_queue *q);

/* What a walk shows of the key. */
struct shown {
	unsigned state;
	int32_t priority;
	char value[64]; /* "(none)": NULL */
	char group[64]; /* "(none)": NULL */
	int64_t due_ns;
};
struct shown look(wq_queue *q, const char *key);

wq_snapshot snapshot(wq_queue *q);

/* Groups: what stands before the first '/'. */
extern wq_separator before_slash;

#endif
