#include "pool_rig.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

static wq_verdict verdict_of(struct rig *r, const wq_item *it)
{
	static const struct {
		const char *word;
		wq_verdict verdict;
	} words[] = {{"done", {.kind = WQ_VERDICT_DONE}},
	             {"retry", {.kind = WQ_VERDICT_RETRY}},
	             {"again", {.kind = WQ_VERDICT_AGAIN, .delay_ns = AGAIN_NS}},
	             {"drop", {.kind = WQ_VERDICT_DROP}},
	             {"bad", {.kind = WQ_VERDICT_FATAL + 1}}};
	const char *key = it->key;

	if (strncmp(key, "gate+", 5) == 0) {
		key += 5;
		pthread_mutex_lock(&r->mutex);
		r->at_gate++;
		pthread_cond_broadcast(&r->cond);
		while (r->shut)
			pthread_cond_wait(&r->cond, &r->mutex);
		pthread_mutex_unlock(&r->mutex);
	}
	if (strncmp(key, "act", 3) == 0)
		return r->act(r, it);
	for (size_t i = 0; i < LENGTH(words); i++)
		if (strncmp(key, words[i].word, strlen(words[i].word)) == 0)
			return words[i].verdict;
	abort(); /* a key that says nothing */
}

wq_verdict rig_handler(void *ctx, const wq_item *it)
{
	struct rig *r = ctx;
	wq_verdict verdict;

	pthread_mutex_lock(&r->mutex);
	if (r->begun < RIG_LOG)
		r->attempts[r->begun] = it->attempts;
	r->begun++;
	pthread_cond_broadcast(&r->cond);
	pthread_mutex_unlock(&r->mutex);
	verdict = verdict_of(r, it);
	rig_note(r, &r->ended);
	return verdict;
}

static void note_thread(struct rig *r, uint32_t worker, int tid, int *count)
{
	pthread_mutex_lock(&r->mutex);
	if (worker < RIG_LOG)
		r->tid[worker] = tid;
	++*count;
	pthread_cond_broadcast(&r->cond);
	pthread_mutex_unlock(&r->mutex);
}

void rig_on_start(void *ctx, uint32_t worker)
{
	struct rig *r = ctx;

	note_thread(r, worker, (int)syscall(SYS_gettid), &r->started);
}

void rig_on_end(void *ctx, uint32_t worker)
{
	struct rig *r = ctx;

	note_thread(r, worker, 0, &r->gone);
}

wq_pool *rig_pool(struct rig *r, const wq_pool_options *pool)
{
	wq_pool_options o = pool ? *pool : (wq_pool_options){0};
	wq_pool *p = NULL;

	if (o.workers == 0)
		o.workers = 1;
	if (!o.handler)
		o.handler = rig_handler;
	if (!o.ctx)
		o.ctx = r;
	if (!o.on_start)
		o.on_start = rig_on_start;
	if (!o.on_end)
		o.on_end = rig_on_end;
	IS(wq_pool_start(&p, r->f.q, &o), WQ_OK);
	assert_non_null(p);
	return p;
}

void rig_open(struct rig *r, const wq_options *options, const wq_pool_options *pool)
{
	memset(r, 0, sizeof *r);
	pthread_mutex_init(&r->mutex, NULL);
	pthread_cond_init(&r->cond, NULL);
	fixture_open(&r->f, options);
	r->p = rig_pool(r, pool);
}

void rig_close(struct rig *r)
{
	rig_gate(r, false);
	if (r->p)
		IS(wq_pool_free(r->p), WQ_OK);
	IS(rig_read(r, &r->gone), rig_read(r, &r->started));
	fixture_close(&r->f, -1);
	pthread_mutex_destroy(&r->mutex);
	pthread_cond_destroy(&r->cond);
}

void rig_gate(struct rig *r, bool shut)
{
	pthread_mutex_lock(&r->mutex);
	r->shut = shut;
	pthread_cond_broadcast(&r->cond);
	pthread_mutex_unlock(&r->mutex);
}

void rig_note(struct rig *r, int *count)
{
	pthread_mutex_lock(&r->mutex);
	++*count;
	pthread_cond_broadcast(&r->cond);
	pthread_mutex_unlock(&r->mutex);
}

void rig_wait(struct rig *r, const int *count, int least)
{
	pthread_mutex_lock(&r->mutex);
	while (*count < least)
		pthread_cond_wait(&r->cond, &r->mutex);
	pthread_mutex_unlock(&r->mutex);
}

int rig_read(struct rig *r, const int *count)
{
	pthread_mutex_lock(&r->mutex);

	int n = *count;

	pthread_mutex_unlock(&r->mutex);
	return n;
}

void rig_add(struct rig *r, const char *key, int outcome)
{
	IS(wq_add_str(r->f.q, key), outcome);
}

void rig_idle(struct rig *r)
{
	IS(wq_wait_idle_until(r->f.q, WQ_NEVER), WQ_OK);
}

void thread_sleeps(int tid)
{
	struct actor a = {0};

	atomic_init(&a.tid, tid);
	atomic_init(&a.finished, false);
	actor_blocks(&a);
}

void rig_sleeps(struct rig *r)
{
	int tid[RIG_LOG];

	/* Each says its number first thing, and that it goes as the last. */
	while (rig_read(r, &r->started) - rig_read(r, &r->gone) != (int)counts_of(r->p).workers)
		sched_yield();
	pthread_mutex_lock(&r->mutex);
	memcpy(tid, r->tid, sizeof tid);
	pthread_mutex_unlock(&r->mutex);
	for (int i = 0; i < RIG_LOG; i++)
		if (tid[i])
			thread_sleeps(tid[i]);
}

void workers_become(wq_pool *p, uint32_t n)
{
	while (counts_of(p).workers != n)
		sched_yield();
}

wq_pool_counts counts_of(wq_pool *p)
{
	wq_pool_counts c;

	memset(&c, 0xee, sizeof c);
	IS(wq_pool_count(p, &c), WQ_OK);
	for (size_t i = 0; i < LENGTH(c.reserved); i++)
		IS((int64_t)c.reserved[i], 0);
	return c;
}

void counts_are(wq_pool *p, const wq_pool_counts *e, const char *file, int line)
{
	wq_pool_counts c = counts_of(p);

	support_is((int64_t)c.done, (int64_t)e->done, "done", file, line);
	support_is((int64_t)c.retried, (int64_t)e->retried, "retried", file, line);
	support_is((int64_t)c.again, (int64_t)e->again, "again", file, line);
	support_is((int64_t)c.dropped, (int64_t)e->dropped, "dropped", file, line);
	support_is((int64_t)c.dead, (int64_t)e->dead, "dead", file, line);
	support_is((int64_t)c.left, (int64_t)e->left, "left", file, line);
	support_is((int64_t)c.cancelled, (int64_t)e->cancelled, "cancelled", file, line);
	support_is((int64_t)c.stale, (int64_t)e->stale, "stale", file, line);
}
