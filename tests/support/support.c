#include "support.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- checks -------------------------------------------------------------- */

static const char *status_text(int64_t status)
{
	return status >= -100 && status < 0 ? wq_status_name((int)status) : "";
}

void support_is(int64_t actual, int64_t expected, const char *what, const char *file, int line)
{
	if (actual == expected)
		return;
	print_error("%s:%d: %s\n    answered %" PRId64 " %s, not %" PRId64 " %s\n", file, line,
	            what, actual, status_text(actual), expected, status_text(expected));
	_fail(file, line);
}

void get_is(wq_queue *q, wq_item *item, const char *key)
{
	memset(item, 0xee, sizeof *item);
	IS(wq_try_get(q, item), WQ_OK);
	assert_non_null(item->key);
	assert_int_equal(item->len, strlen(key));
	/* the NUL is compared too */
	assert_memory_equal(item->key, key, item->len + 1);
	assert_int_equal(item->priority, 0);
	assert_null(item->value);
	assert_int_equal(item->value_len, 0);
	assert_int_equal(item->reserved[0], 0);
	assert_int_equal(item->reserved[1], 0);
}

void take_is(wq_queue *q, const char *key, int done)
{
	wq_item item;

	get_is(q, &item, key);
	IS(wq_done(q, &item), done);
}

void line_is(wq_queue *q, const char *letters)
{
	IS(wq_len(q), (int64_t)strlen(letters));
	for (; *letters; letters++)
		take_is(q, (char[]){*letters, '\0'}, WQ_OK);
	IS(wq_len(q), 0);
}

int state_of(wq_queue *q, const char *key)
{
	return wq_state(q, key, strlen(key));
}

static bool is_fault(int sig)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};

	for (size_t i = 0; i < LENGTH(faults); i++)
		if (sig == faults[i])
			return true;
	return false;
}

void mask_is_the_library_s(const sigset_t *mask)
{
	for (int sig = 1; sig <= SIGRTMAX; sig++) {
		/* nobody can block these two; those between 31 and SIGRTMIN are libc's own */
		if (sig == SIGKILL || sig == SIGSTOP || (sig > 31 && sig < SIGRTMIN))
			continue;
		support_is(sigismember(mask, sig), is_fault(sig) ? 0 : 1, strsignal(sig), __FILE__,
		           __LINE__);
	}
}

void masks_are_equal(const sigset_t *a, const sigset_t *b)
{
	for (int sig = 1; sig <= SIGRTMAX; sig++)
		support_is(sigismember(a, sig), sigismember(b, sig), strsignal(sig), __FILE__,
		           __LINE__);
}

struct tally {
	int64_t queued;
	int64_t running;
	int64_t other;
};

static int tally_key(void *ctx, const wq_key_info *info)
{
	struct tally *t = ctx;

	if (info->state == WQ_STATE_QUEUED)
		t->queued++;
	else if (info->state == WQ_STATE_RUNNING ||
	         info->state == (WQ_STATE_RUNNING | WQ_STATE_DIRTY))
		t->running++;
	else
		t->other++;
	return 0;
}

int64_t count_keys(wq_queue *q)
{
	struct tally t = {0, 0, 0};
	int64_t n = wq_walk(q, tally_key, &t);

	IS(n, t.queued + t.running + t.other);
	return n;
}

void check_whole(wq_queue *q, int64_t queued, int64_t running)
{
	static const char probe[] = "\1probe\0probe";
	struct tally t = {0, 0, 0};

	IS(wq_len(q), queued);
	IS(wq_walk(q, tally_key, &t), queued + running);
	IS(t.queued, queued);
	IS(t.running, running);
	if (wq_shutting_down(q))
		return;

	IS(wq_add(q, probe, sizeof probe), WQ_QUEUED);
	IS(wq_add(q, probe, sizeof probe), WQ_MERGED);
	IS(wq_len(q), queued + 1);

	size_t n = (size_t)queued + 1;
	wq_item *items = malloc((n + 1) * sizeof *items);
	size_t probe_at = n;

	assert_non_null(items);
	for (size_t i = 0; i < n; i++) {
		IS(wq_try_get(q, &items[i]), WQ_OK);
		if (items[i].len == sizeof probe && memcmp(items[i].key, probe, sizeof probe) == 0)
			probe_at = i;
	}
	IS(wq_try_get(q, &items[n]), wq_shutting_down(q) ? WQ_ESHUTDOWN : WQ_EAGAIN);
	assert_true(probe_at < n);
	for (size_t i = 0; i < n; i++)
		IS(i == probe_at ? wq_done(q, &items[i]) : wq_requeue(q, &items[i], WQ_TAIL),
		   i == probe_at ? WQ_OK : WQ_QUEUED);
	IS(wq_done(q, &items[probe_at]), WQ_ESTALE);
	IS(wq_len(q), queued);
	IS(wq_state(q, probe, sizeof probe), 0);
	free(items);
}

/* ---- adds ---------------------------------------------------------------- */

int after(wq_queue *q, const char *key, int64_t after_ns, enum wq_policy policy)
{
	wq_add_options o = {.after_ns = after_ns, .policy = policy};

	return wq_add_with(q, key, strlen(key), &o);
}

int remind(wq_queue *q, const char *key, int64_t after_ns)
{
	return after(q, key, after_ns, WQ_REMIND);
}

/* ---- memory -------------------------------------------------------------- */

static void *memory_alloc(void *ctx, size_t size, size_t align)
{
	struct memory *m = ctx;
	int64_t call = atomic_fetch_add(&m->calls, 1);

	if (size == 0 || align == 0 || (align & (align - 1)) != 0 || align > 64)
		atomic_store(&m->misuse, 1);
	if ((m->largest > 0 && size > m->largest) ||
	    (m->fail_at >= 0 && (call == m->fail_at || (m->fail_on && call > m->fail_at)))) {
		atomic_fetch_add(&m->failed, 1);
		return NULL;
	}

	void *p = NULL;

	if (posix_memalign(&p, align < sizeof(void *) ? sizeof(void *) : align, size) != 0)
		return NULL;
	memset(p, 0xa5, size);
	atomic_fetch_add(&m->live, 1);

	int64_t bytes = atomic_fetch_add(&m->bytes, (int64_t)size) + (int64_t)size;
	int64_t peak = atomic_load(&m->peak);

	while (bytes > peak && !atomic_compare_exchange_weak(&m->peak, &peak, bytes))
		;
	return p;
}

static void memory_free(void *ctx, void *p, size_t size)
{
	struct memory *m = ctx;

	if (p == NULL) {
		atomic_store(&m->misuse, 1);
		return;
	}
	/* Whoever reads it afterwards, or gave too large a size, is seen by the address sanitizer. */
	memset(p, 0x5a, size);
	atomic_fetch_sub(&m->live, 1);
	atomic_fetch_sub(&m->bytes, (int64_t)size);
	free(p);
}

void memory_init(struct memory *m)
{
	memset(m, 0, sizeof *m);
	m->fail_at = -1;
}

wq_allocator memory_allocator(struct memory *m)
{
	return (wq_allocator){.alloc = memory_alloc, .free = memory_free, .ctx = m};
}

void memory_balanced(struct memory *m)
{
	IS(atomic_load(&m->live), 0);
	IS(atomic_load(&m->bytes), 0);
	IS(atomic_load(&m->misuse), 0);
}

void memory_fail_each(bool (*run)(int64_t n, bool and_later), int64_t least)
{
	for (int and_later = 0; and_later < 2; and_later++) {
		int64_t n = 0;

		while (run(n, and_later))
			n++;
		print_message("%" PRId64 " allocations failed\n", n);
		assert_true(n >= least);
	}
}

/* ---- a queue to test ------------------------------------------------------ */

void fixture_open(struct fixture *f, const wq_options *options)
{
	wq_options o = {0};

	if (options != NULL)
		o = *options;
	memory_init(&f->mem);
	IS(wq_manual_clock_new(&f->mc, START_NS), WQ_OK);

	wq_clock clock = wq_manual_clock_clock(f->mc);
	wq_allocator allocator = memory_allocator(&f->mem);

	o.clock = &clock;
	o.allocator = &allocator;
	f->q = NULL;
	IS(wq_new(&f->q, &o), WQ_OK);
	assert_non_null(f->q);
}

void fixture_close(struct fixture *f, int queued)
{
	if (queued < 0)
		assert_true(wq_free(f->q) >= 0);
	else
		IS(wq_free(f->q), queued);
	memory_balanced(&f->mem);
	IS(wq_manual_clock_free(f->mc), WQ_OK);
}

int fixture_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	assert_non_null(f);
	fixture_open(f, NULL);
	*state = f;
	return 0;
}

int fixture_teardown(void **state)
{
	struct fixture *f = *state;

	fixture_close(f, -1);
	free(f);
	return 0;
}

/* ---- a clock of one's own --------------------------------------------------- */

static int64_t own_now(void *ctx)
{
	return atomic_load(&((struct own_clock *)ctx)->now_ns);
}

static int own_watch(void *ctx, void (*changed)(void *arg), void *arg, int on)
{
	struct own_clock *own = ctx;

	(void)changed;
	(void)arg;
	own->ons += on == 1;
	own->offs += on == 0;
	return own->answer;
}

wq_clock own_clock(struct own_clock *own, bool watched)
{
	return (wq_clock){.now = own_now, .watch = watched ? own_watch : NULL, .ctx = own};
}

/* ---- threads -------------------------------------------------------------- */

static void *actor_main(void *arg)
{
	struct actor *a = arg;

	atomic_store(&a->tid, (int)syscall(SYS_gettid));
	a->result = a->fn(a->arg);
	atomic_store(&a->finished, true);
	return NULL;
}

void actor_start(struct actor *a, actor_fn fn, void *arg)
{
	a->fn = fn;
	a->arg = arg;
	a->result = 0;
	atomic_init(&a->tid, 0);
	atomic_init(&a->finished, false);
	assert_int_equal(pthread_create(&a->thread, NULL, actor_main, a), 0);
}

/*
 * The thread's state ('S': asleep) and how often it has been off its CPU, by
 * /proc; 0 if that cannot be read.
 */
static char thread_state(int tid, unsigned long *switches)
{
	char path[64], text[4096];

	snprintf(path, sizeof path, "/proc/self/task/%d/status", tid);

	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;

	ssize_t n = read(fd, text, sizeof text - 1);

	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';

	const char *state = strstr(text, "\nState:");
	const char *count = strstr(text, "\nvoluntary_ctxt_switches:");

	if (state == NULL || count == NULL)
		return 0;
	*switches = strtoul(count + sizeof "\nvoluntary_ctxt_switches:" - 1, NULL, 10);
	return state[sizeof "\nState:\t" - 1];
}

void actor_blocks(struct actor *a)
{
	enum { LOOKS = 5, UNREADABLE = 2000 };
	unsigned long before = 0, now = 0;
	int looks = 0, unreadable = 0;

	/*
	 * Asleep and never awake in between: a moment's sleep on a lock, or in
	 * the runtime of a sanitizer, is not what is waited for. Without /proc
	 * the tests still hold, but the thread may not have got so far.
	 */
	while (looks < LOOKS && unreadable < UNREADABLE) {
		int tid = atomic_load(&a->tid);

		if (atomic_load(&a->finished))
			fail_msg("the call returned %" PRId64 " %s instead of blocking", a->result,
			         status_text(a->result));
		sched_yield();
		if (tid == 0)
			continue;

		char state = thread_state(tid, &now);

		if (state == 0)
			unreadable++;
		if (state == 'S' && looks > 0 && now == before)
			looks++;
		else
			looks = state == 'S';
		before = now;
	}
}

bool actor_finished(struct actor *a)
{
	return atomic_load(&a->finished);
}

int64_t actor_join(struct actor *a)
{
	assert_int_equal(pthread_join(a->thread, NULL), 0);
	return a->result;
}

static int64_t getter_main(void *arg)
{
	struct getter *g = arg;

	if (g->deadline_ns == WQ_NEVER)
		return wq_get(g->q, &g->item);
	return wq_get_until(g->q, &g->item, g->deadline_ns);
}

void getter_start(struct getter *g, wq_queue *q, int64_t deadline_ns)
{
	memset(g, 0, sizeof *g);
	g->q = q;
	g->deadline_ns = deadline_ns;
	actor_start(&g->actor, getter_main, g);
}

void getter_block(struct getter *g, wq_queue *q, int64_t deadline_ns)
{
	getter_start(g, q, deadline_ns);
	actor_blocks(&g->actor);
}

int getter_join(struct getter *g)
{
	return (int)actor_join(&g->actor);
}

static int64_t drainer_main(void *arg)
{
	struct drainer *d = arg;

	return wq_drain_until(d->q, d->deadline_ns, NULL, &d->report);
}

void drainer_start(struct drainer *d, wq_queue *q, int64_t deadline_ns)
{
	memset(d, 0xee, sizeof *d);
	d->q = q;
	d->deadline_ns = deadline_ns;
	actor_start(&d->actor, drainer_main, d);
}

void drainer_block(struct drainer *d, wq_queue *q, int64_t deadline_ns)
{
	drainer_start(d, q, deadline_ns);
	actor_blocks(&d->actor);
}

int drainer_join(struct drainer *d)
{
	return (int)actor_join(&d->actor);
}

/* ---- chance --------------------------------------------------------------- */

uint64_t seed_from(int argc, char **argv)
{
	uint64_t seed = (uint64_t)wq_clock_monotonic();

	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[i + 1], NULL, 0);
	printf("seed %" PRIu64 " (repeat with --seed)\n", seed);
	return seed;
}

/* splitmix64 */
uint64_t rng_next(uint64_t *rng)
{
	uint64_t z = *rng += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

uint64_t rng_below(uint64_t *rng, uint64_t n)
{
	return rng_next(rng) % n;
}
