/* The public calls on a limiter that belongs to nobody: its lock, and its own memory of keys. */
#include <wq/queue.h>

#include "base/alloc.h"
#include "limit/memo.h"

static int check(const wq_limiter *l, const void *key, size_t len)
{
	int rc = wq_limiter_status(l);

	if (rc < 0)
		return rc;
	if (l->given)
		return WQ_EBUSY;
	if (!key && len > 0)
		return WQ_EINVAL;
	return len > WQ_KEY_MAX ? WQ_ETOOLONG : WQ_OK;
}

/* One that only asks the user's, or a bucket for all, remembers nothing itself. */
static bool remembers(const wq_limiter *l)
{
	return l->counts || l->idle_ns != WQ_NEVER || wq__limiter_room(l) > 0;
}

static int64_t when_noted(wq_limiter *l, const void *key, size_t len, int64_t now_ns)
{
	struct wq__note *n;

	if (!l->memo) {
		wq__limiter_lay_out(l);
		l->memo = wq__memo_new(&l->allocator);
	}
	if (!l->memo)
		return WQ_ENOMEM;
	wq__memo_trim(l->memo, l, now_ns);
	n = wq__memo_open(l->memo, l, key, len, now_ns);
	if (!n)
		return WQ_ENOMEM;

	struct wq__subject s = wq__note_subject(n, now_ns);
	int64_t delay = wq__limiter_when(l, &s);

	wq__memo_close(l->memo, n, l, &s);
	return delay;
}

int64_t wq_limiter_when(wq_limiter *l, const void *key, size_t len, int64_t now_ns)
{
	int64_t rc = check(l, key, len);

	if (rc < 0)
		return rc;
	if (now_ns < 0)
		return WQ_EINVAL;
	wq__lock_acquire(&l->lock);
	if (remembers(l)) {
		rc = when_noted(l, key, len, now_ns);
	} else {
		struct wq__subject s = {.key = key, .len = len, .now_ns = now_ns};

		rc = wq__limiter_when(l, &s);
	}
	wq__lock_release(&l->lock);
	return rc;
}

/*
 * What is remembered of the key, or a blank. The room of a blank is not the
 * key's, but whoever may be asked to clear or fill it finds some.
 */
static struct wq__subject look(wq_limiter *l, const void *key, size_t len, struct wq__note **n,
                               int64_t room[WQ__LIMIT_ROOM_MAX / 8])
{
	*n = l->memo ? wq__memo_find(l->memo, l, key, len) : NULL;
	if (*n)
		return wq__note_subject(*n, wq__memo_now(l->memo));
	return (struct wq__subject){.key = key, .len = len, .room = room};
}

static int change(wq_limiter *l, const void *key, size_t len, bool forget)
{
	int64_t room[WQ__LIMIT_ROOM_MAX / 8] = {0};
	int rc = check(l, key, len);
	struct wq__note *n;

	if (rc < 0)
		return rc;
	wq__lock_acquire(&l->lock);

	struct wq__subject s = look(l, key, len, &n, room);

	if (forget)
		wq__limiter_forget(l, &s);
	else
		wq__limiter_give_back(l, &s);
	if (n)
		wq__memo_close(l->memo, n, l, &s);
	wq__lock_release(&l->lock);
	return WQ_OK;
}

int wq_limiter_forget(wq_limiter *l, const void *key, size_t len)
{
	return change(l, key, len, true);
}

int wq_limiter_give_back(wq_limiter *l, const void *key, size_t len)
{
	return change(l, key, len, false);
}

int64_t wq_limiter_failures(wq_limiter *l, const void *key, size_t len)
{
	int64_t room[WQ__LIMIT_ROOM_MAX / 8] = {0};
	int64_t rc = check(l, key, len);
	struct wq__note *n;

	if (rc < 0)
		return rc;
	wq__lock_acquire(&l->lock);

	struct wq__subject s = look(l, key, len, &n, room);

	rc = wq__limiter_failures(l, &s);
	wq__lock_release(&l->lock);
	return rc;
}

int64_t wq_limiter_size(wq_limiter *l)
{
	int64_t rc = check(l, NULL, 0);

	if (rc < 0)
		return rc;
	wq__lock_acquire(&l->lock);
	rc = (int64_t)(wq__limiter_size(l) + (l->memo ? wq__memo_size(l->memo) : 0));
	wq__lock_release(&l->lock);
	return rc;
}
