#include "model.h"

#include <limits.h>
#include <string.h>

void model_init(struct model *m, enum model_order order, size_t max_keys)
{
	memset(m, 0, sizeof *m);
	m->order = order;
	m->max_keys = max_keys;
}

static void push(struct model *m, int key, enum wq_where where)
{
	size_t at = where == WQ_HEAD || m->order == MODEL_LIFO ? 0 : m->nqueued;

	memmove(&m->line[at + 1], &m->line[at], (m->nqueued - at) * sizeof m->line[0]);
	m->line[at] = key;
	m->nqueued++;
	m->pushes++;
	m->keys[key].state = WQ_STATE_QUEUED;
}

static int pop(struct model *m)
{
	size_t at = 0;

	for (size_t i = 1; m->order == MODEL_BUSIEST && i < m->nqueued; i++)
		if (m->keys[m->line[i]].touches > m->keys[m->line[at]].touches)
			at = i;

	int key = m->line[at];

	m->nqueued--;
	memmove(&m->line[at], &m->line[at + 1], (m->nqueued - at) * sizeof m->line[0]);
	return key;
}

int model_add(struct model *m, int key, int64_t now_ns)
{
	struct model_key *k = &m->keys[key];

	if (m->shut)
		return WQ_ESHUTDOWN;
	if (k->state == WQ_STATE_QUEUED) {
		k->touches++;
		return WQ_MERGED;
	}
	if (k->state & WQ_STATE_DIRTY)
		return WQ_MERGED;
	if (k->state & WQ_STATE_RUNNING) {
		k->state |= WQ_STATE_DIRTY;
		k->readded_ns = now_ns;
		m->ndirty++;
		return WQ_MARKED;
	}
	if (m->max_keys > 0 && m->nqueued + m->nrunning >= m->max_keys)
		return WQ_EFULL;
	*k = (struct model_key){.added_ns = now_ns, .lives = k->lives + 1};
	push(m, key, WQ_TAIL);
	return WQ_QUEUED;
}

bool model_blocks(const struct model *m)
{
	return m->nqueued == 0 && !m->shut && m->kept == 0;
}

int model_get(struct model *m, enum model_wait wait, int *key)
{
	if (m->nqueued > 0) {
		*key = pop(m);
		m->keys[*key].state = WQ_STATE_RUNNING;
		m->keys[*key].hold = ++m->gets;
		m->nrunning++;
		return WQ_OK;
	}
	if (m->shut)
		return WQ_ESHUTDOWN;
	if (wait == MODEL_NOWAIT)
		return WQ_EAGAIN;
	if (wait == MODEL_PASSED)
		return WQ_ETIMEDOUT;
	m->kept--; /* the caller has asked model_blocks() */
	return WQ_EINTERRUPTED;
}

int model_held(const struct model *m, int key, uint64_t hold)
{
	return m->keys[key].hold == hold ? WQ_OK : WQ_ESTALE;
}

static bool leave(struct model *m, int key)
{
	bool dirty = m->keys[key].state & WQ_STATE_DIRTY;

	m->nrunning--;
	m->ndirty -= dirty;
	m->keys[key].hold = 0;
	m->keys[key].state = 0;
	return dirty;
}

int model_done(struct model *m, int key, uint64_t hold)
{
	if (model_held(m, key, hold) != WQ_OK)
		return WQ_ESTALE;
	if (!leave(m, key))
		return WQ_OK;
	m->keys[key].added_ns = m->keys[key].readded_ns;
	push(m, key, WQ_TAIL);
	return WQ_QUEUED;
}

int model_requeue(struct model *m, int key, uint64_t hold, enum wq_where where)
{
	if (model_held(m, key, hold) != WQ_OK)
		return WQ_ESTALE;
	leave(m, key);
	push(m, key, where);
	return WQ_QUEUED;
}

int model_interrupt(struct model *m, int n)
{
	int before = m->kept;

	m->kept = n == 0 ? 0 : n > INT_MAX - before ? INT_MAX : before + n;
	return before;
}

bool model_idle(const struct model *m)
{
	return m->nqueued == 0 && m->nrunning == 0;
}
