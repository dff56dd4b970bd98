/*
 * What an add brings beside its key, in a queue with priorities, groups or values (WQ__RICH): its
 * priority, the id of its group, and its value.
 *
 *   begin    there is memory for all of it, and it stands in m->bring
 *   prepare  an entry of the key is there: merge the values; nothing has changed yet
 *   apply    the entry, or a new one, takes what was brought
 *   end      what was not taken goes
 *
 * Between begin and end the ordinary functions of add.c and delay.c make the add. All of it happens
 * in one hold of the lock. Other changes of a key (retry, requeue, again) bring nothing: the hold's
 * own priority and value come back by wq__keep_hold().
 */
#ifndef WQ_QUEUE_BRING_H
#define WQ_QUEUE_BRING_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <wq/types.h>

#include "base/compiler.h"

struct wq__memory;
struct wq__entry;

enum {
	WQ__INLINE = -1,      /* in place of an id: the value stands behind the key's own room */
	WQ__INLINE_MAX = 256, /* the longest one */
};

struct wq__value {
	uint32_t len;
	char bytes[]; /* a NUL follows */
};

/* Beside each key. */
struct wq__carried {
	uint32_t value; /* id, or INLINE: of the copy that is queued, waiting or dirty; 0: none */
	uint32_t held;  /* of the hold */
};

static inline void wq__value_set(struct wq__value *v, const void *bytes, size_t len)
{
	v->len = (uint32_t)len;
	if (len > 0)
		memcpy(v->bytes, bytes, len);
	v->bytes[len] = '\0';
}

struct wq__bring {
	uint32_t value;  /* id; 0: none, or it was taken */
	uint32_t merged; /* what the entry's value will be; `value`, the entry's own, or a third */
	uint32_t group;  /* id; 0: no groups */
	int16_t priority;
	bool had;  /* the entry has a copy that is queued, waiting or dirty */
	bool made; /* `merged` is a third one */
};

/* The id of a copy; 0: no memory. */
uint32_t wq__value_new(struct wq__memory *m, const void *bytes, size_t len);

/* group: its name; NULL without groups. WQ_OK or WQ_ENOMEM. */
int wq__bring_begin(struct wq__memory *m, struct wq__bring *b, const wq_add_options *o,
                    const wq_key *group);
/* WQ_OK, or the merge's error, or WQ_ENOMEM. */
int wq__bring_prepare(struct wq__memory *m, struct wq__entry *e);
void wq__bring_apply(struct wq__memory *m, struct wq__entry *e, uint32_t id);
void wq__bring_new(struct wq__memory *m, struct wq__entry *e);
void wq__bring_end(struct wq__memory *m, struct wq__bring *b);

/* A reminder is due and merges with its key, which is there. It is gone then. */
void wq__bring_reminder(struct wq__memory *m, struct wq__entry *reminder, struct wq__entry *key,
                        uint32_t id);

/* The same for a key that was popped just now: it is too late to be raised. */
void wq__bring_popped(struct wq__memory *m, struct wq__entry *reminder, struct wq__entry *key);

/* The hold ends, and the key comes back as it was: with its priority and value. */
void wq__keep_hold(struct wq__memory *m, struct wq__entry *e);
/* The hold ends; what it still has of a value goes. */
void wq__drop_held(struct wq__memory *m, struct wq__entry *e);
/* The copy that was dirty or waiting is cancelled. */
void wq__drop_copy(struct wq__memory *m, struct wq__entry *e);
/* The entry is about to go. */
void wq__rich_gone(struct wq__memory *m, struct wq__entry *e);

/* What a walk shows: priority, value and group. */
void wq__show_rich(const struct wq__memory *m, struct wq__entry *e, wq_key_info *info);

#endif
