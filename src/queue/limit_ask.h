/*
 * Questions to the limiter, for which the answer is stored or undone. Inline,
 * because every limited add asks one.
 */
#ifndef WQ_QUEUE_LIMIT_ASK_H
#define WQ_QUEUE_LIMIT_ASK_H

#include "queue/memory.h"

struct wq__ask {
	struct wq__entry *entry; /* that it is about; NULL: none bears anything yet */
	struct wq__subject s;
	int64_t delay_ns; /* the answer */
	int64_t before[WQ__LIMIT_ROOM_MAX / 8];
};

static inline void *wq__limit_room_of(const struct wq__memory *m, struct wq__entry *e)
{
	return (char *)e + wq__entry_room_offset(wq__entry_len(e)) + m->limit_at;
}

/* The key, as the limiter sees it. */
static inline struct wq__subject wq__subject_of(const struct wq__memory *m, struct wq__entry *e,
                                                int64_t now)
{
	return (struct wq__subject){
	    .key = e->key,
	    .len = wq__entry_len(e),
	    .now_ns = now,
	    .failures = wq__entry_failures(e),
	    .room = wq__limit_room_of(m, e), /* behind the entry, if nothing is kept */
	};
}

/* Ask about what e bears; NULL: about a key of which nothing is remembered. */
static inline void wq__ask_begin(struct wq__memory *m, struct wq__ask *ask, struct wq__entry *e,
                                 const void *key, size_t len, int64_t now)
{
	ask->entry = e;
	if (e)
		ask->s = wq__subject_of(m, e, now);
	else
		ask->s = (struct wq__subject){.key = key,
		                              .len = len,
		                              .now_ns = now,
		                              .room = ask->before};
	if (wq__unlikely(m->limit_room > 0)) {
		if (e)
			memcpy(ask->before, ask->s.room, m->limit_room);
		else
			memset(ask->before, 0, m->limit_room);
	}
	ask->delay_ns = wq__limiter_when(m->limiter, &ask->s);
}

/* The entry that bears it now. */
static inline void wq__ask_store(struct wq__memory *m, const struct wq__ask *ask,
                                 struct wq__entry *e)
{
	wq__entry_set_failures(e, ask->s.failures);
	/* If there was an entry, its room was changed in place, and was inherited with it. */
	if (wq__unlikely(m->limit_room > 0) && !ask->entry)
		memcpy(wq__limit_room_of(m, e), ask->s.room, m->limit_room);
}

/* What was to be added was refused. */
static inline void wq__ask_undo(struct wq__memory *m, const struct wq__ask *ask)
{
	wq__limiter_give_back(m->limiter, &ask->s);
	if (m->limit_room > 0 && ask->entry)
		memcpy(ask->s.room, ask->before, m->limit_room);
}

/* The outcome of what was asked for: did the key need what was reserved? */
static inline void wq__ask_end(struct wq__memory *m, const struct wq__ask *ask, int outcome)
{
	if ((outcome == WQ_MERGED || outcome == WQ_KEPT) && m->limiter->gives_back)
		wq__limiter_give_back(m->limiter, &ask->s);
}

#endif
