/*
 * Everything about one live key, in one piece of memory: 34 bytes and the key,
 * so that a key of up to 21 bytes takes 56.
 *
 * A key is in line, or held, or neither, never both; so what belongs to the
 * line and what belongs to the hold share their place.
 *
 * A key without state is kept as long as the limiter remembers something of
 * it: then it stands in the list of remembered keys (remember.c). Behind the
 * key are the order's room and the limiter's; a stint, if the queue has a name
 * (meter.h); and the latest time of a copy that waits, if the queue was made so.
 */
#ifndef WQ_QUEUE_ENTRY_H
#define WQ_QUEUE_ENTRY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <wq/order.h>
#include <wq/queue.h>
#if defined(__SSE2__) && !defined(WQ_PORTABLE)
#include <emmintrin.h>
#endif

#include "base/compiler.h"
#include "base/hash.h"
#include "queue/levels.h"

struct wq__entry {
	union {
		struct wq__link line; /* QUEUED, in an order of the queue's own */
		wq_node node;         /* QUEUED, an order of the user's */
		struct {
			uint64_t token;
			int64_t since_ns; /* when the add was made that this hold serves */
		} hold;                   /* RUNNING */
	} u;
	/* QUEUED: when it was added; DIRTY: when it was added again; WAITING: when it comes due. */
	int64_t added_ns;
	uint32_t hash;
	uint16_t len_low;      /* the length's low 16 bits */
	_Atomic uint8_t bits;  /* A: WQ_STATE_ bits; LEN_HIGH: the length's 17th bit */
	uint8_t failures_high; /* failures that were not forgotten: 22 bits; flags */
	uint16_t failures_low;
	char key[]; /* a NUL follows; then, at a multiple of 8, the order's room */
};

/* Bits beside the public ones. */
enum wq__entry_bits {
	/*
	 * RUNNING: cancelled while held. QUEUED: cancelled, and only the user's order still
	 * knows it.
	 */
	WQ__CANCELLED = 0x10,
	WQ__REMINDER =
	    0x20, /* the copy that WQ_REMIND made: WAITING, and apart from the key itself */
	WQ__BESIDE = 0x40, /* key and reminder are both there */
	WQ__PUBLIC = 0x0f,
};

enum {
	WQ__ENTRY_HEADER = offsetof(struct wq__entry, key),
	WQ__LEN_HIGH = 0x80,
	/* In failures_high, beside the count. */
	WQ__LAST_TRY = 0x80, /* the drain that runs waiting keys has retried it */
	WQ__RETRYING = 0x40, /* WAITING: for a retry; counted in nretrying */
	WQ__FAILURES_HIGH = 0x3f,
};

static inline uint32_t wq__entry_len(const struct wq__entry *e)
{
	return (uint32_t)(e->bits & WQ__LEN_HIGH) << 9 | e->len_low;
}

static inline unsigned wq__entry_state(const struct wq__entry *e)
{
	return e->bits & (WQ__LEN_HIGH - 1u);
}

/* The queue is whole, or the entry is new. */
static inline void wq__entry_set_bits(struct wq__entry *e, unsigned bits)
{
	atomic_store_explicit(&e->bits, (uint8_t)bits, memory_order_relaxed);
}

static inline void wq__entry_add_bits(struct wq__entry *e, unsigned bits)
{
	wq__entry_set_bits(e, e->bits | bits);
}

static inline void wq__entry_clear_bits(struct wq__entry *e, unsigned bits)
{
	wq__entry_set_bits(e, e->bits & ~bits);
}

static inline void wq__entry_set_state(struct wq__entry *e, unsigned state)
{
	wq__entry_set_bits(e, (e->bits & WQ__LEN_HIGH) | state);
}

static inline uint32_t wq__entry_failures(const struct wq__entry *e)
{
	return (uint32_t)(e->failures_high & WQ__FAILURES_HIGH) << 16 | e->failures_low;
}

static inline void wq__entry_set_failures(struct wq__entry *e, uint32_t n)
{
	e->failures_high = (uint8_t)((e->failures_high & ~(unsigned)WQ__FAILURES_HIGH) | n >> 16);
	e->failures_low = (uint16_t)n;
}

/* Neither queued, held nor waiting: only remembered. */
static inline int wq__entry_absent(const struct wq__entry *e)
{
	return !(e->bits & WQ__PUBLIC);
}

/* Keys of common lengths are copied by words, which may overlap. */
static inline void wq__entry_set_key(struct wq__entry *e, const void *key, size_t len)
{
	const char *from = key;
	uint64_t head[2], tail[2];

	if (wq__likely(len >= 16 && len <= 32)) {
		memcpy(head, from, sizeof head);
		memcpy(tail, from + len - sizeof tail, sizeof tail);
		memcpy(e->key, head, sizeof head);
		memcpy(e->key + len - sizeof tail, tail, sizeof tail);
	} else if (len >= 8 && len < 16) {
		memcpy(head, from, sizeof head[0]);
		memcpy(tail, from + len - sizeof tail[0], sizeof tail[0]);
		memcpy(e->key, head, sizeof head[0]);
		memcpy(e->key + len - sizeof tail[0], tail, sizeof tail[0]);
	} else if (len > 0) {
		memcpy(e->key, key, len);
	}
	e->key[len] = '\0';
}

/* A new key without failures. */
static inline void wq__entry_init(struct wq__entry *e, uint32_t hash, const void *key, size_t len,
                                  unsigned state)
{
	e->hash = hash;
	e->len_low = (uint16_t)len;
	wq__entry_set_bits(e, (unsigned)(len >> 16) * WQ__LEN_HIGH | state);
	e->failures_high = 0;
	e->failures_low = 0;
	wq__entry_set_key(e, key, len);
}

/* Of 16 to 32 bytes each: two vectors or four words, which may overlap. */
static inline bool wq__same_key(const unsigned char *a, const unsigned char *b, size_t len)
{
	size_t last = len - 16;
#if defined(__SSE2__) && !defined(WQ_PORTABLE)
	__m128i low = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)a),
	                             _mm_loadu_si128((const __m128i *)(const void *)b));
	__m128i high = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)(a + last)),
	                              _mm_loadu_si128((const __m128i *)(const void *)(b + last)));

	return _mm_movemask_epi8(_mm_and_si128(low, high)) == 0xffff;
#else
	return ((wq__load64(a) ^ wq__load64(b)) | (wq__load64(a + 8) ^ wq__load64(b + 8)) |
	        (wq__load64(a + last) ^ wq__load64(b + last)) |
	        (wq__load64(a + last + 8) ^ wq__load64(b + last + 8))) == 0;
#endif
}

/* No byte behind the caller's key is read, nor one of the entry's if their lengths differ. */
static inline bool wq__entry_is(const struct wq__entry *e, const void *key, size_t len)
{
	const unsigned char *a = (const unsigned char *)e->key, *b = key;

	if (wq__entry_len(e) != len)
		return false;
	if (wq__likely(len - 16 <= 16))
		return wq__same_key(a, b, len);
	if (len - 8 < 8)
		return ((wq__load64(a) ^ wq__load64(b)) |
		        (wq__load64(a + len - 8) ^ wq__load64(b + len - 8))) == 0;
	return len == 0 || memcmp(a, b, len) == 0;
}

static inline int wq__entry_is_ghost(const struct wq__entry *e)
{
	return (e->bits & (WQ_STATE_QUEUED | WQ__CANCELLED)) == (WQ_STATE_QUEUED | WQ__CANCELLED);
}

/* A reminder, or a ghost: not what the key's own calls are about. */
static inline int wq__entry_apart(const struct wq__entry *e)
{
	return (e->bits & WQ__REMINDER) || wq__entry_is_ghost(e);
}

static inline size_t wq__entry_room_offset(size_t len)
{
	return (WQ__ENTRY_HEADER + len + 1 + 7) & ~(size_t)7;
}

/* How much memory a key takes. len is at most WQ_KEY_MAX, room at most WQ_ORDER_ROOM_MAX. */
static inline size_t wq__entry_size(size_t len, size_t room)
{
	return room ? wq__entry_room_offset(len) + room : WQ__ENTRY_HEADER + len + 1;
}

#endif
