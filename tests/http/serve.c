/*
 * A program with queues and a server, told what to do line by line, so that the tests can be real
 * clients. Words are percent-encoded; each line is answered by one that begins with "ok" or "no".
 *
 *   start ADDRESS PORT MAX TIMEOUT HOSTS
 *                                   | starts the server ("-": not given; commas in HOSTS); answers the port
 *   stop                            | ends it
 *   queue NAME                      | a queue on the manual clock, which begins at 1000 s
 *   live NAME                       | a queue on the real clock, of which cost is counted
 *   free NAME                       | ends what is held, frees it
 *   rich NAME                       | the same, with priorities, values, and groups up to the first /
 *   bring NAME KEY PRIORITY VALUE   | an add to it
 *   add NAME KEY, after NAME NS KEY, fill NAME COUNT
 *   get NAME, retry NAME            | the next key is held, or fails
 *   advance NS                      | of the manual clock
 *   work NAME COUNT                 | a worker takes COUNT keys in turn, for ever
 *   fail N                          | allocation N from now on fails (0: the next); answers how many did so far
 *   slow 1, slow 0                  | walks do not end, or do again; answers how many are under way
 *   full 1, full 0                  | accept4() finds no descriptor, or does again; answers how often it was called
 *   cost                            | wq_snapshot_take() and wq_walk() of the server: under the lock and in all (ns), calls
 */
#define _GNU_SOURCE
#include "support/support.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/socket.h>
#include <wq/http.h>

#include "http/query.h"

enum { QUEUES = 64, HELD = 64, WORDS = 6, HOSTS = 8, LINE_BYTES = 1 << 17 };

struct served {
	wq_queue *q;
	wq_pool *pool;
	wq_item held[HELD];
	size_t nheld;
	char name[256];
};

static struct served queues[QUEUES];
static wq_registry *registry;
static wq_http *server;
static wq_manual_clock *clock_of_tests;

/* ---- what requests cost the queues --------------------------------------------- */

/*
 * Linked with --wrap: the library's own calls come here. The queue looks at its clock as soon as
 * it has its lock; from then until the call returns or shows a key it is taken to be held, by the
 * clock, whether or not the thread runs.
 */
static _Atomic int64_t held_ns, cost_ns, cost_calls;
static _Thread_local bool counting;
static _Thread_local int64_t locked_ns; /* 0: not held */

int __real_wq_snapshot_take(wq_queue *q, wq_snapshot *out);
int __wrap_wq_snapshot_take(wq_queue *q, wq_snapshot *out);
int64_t __real_wq_walk(wq_queue *q, wq_walk_fn fn, void *ctx);
int64_t __wrap_wq_walk(wq_queue *q, wq_walk_fn fn, void *ctx);

static int64_t live_now(void *ctx)
{
	int64_t now = wq_clock_monotonic();

	(void)ctx;
	if (counting && locked_ns == 0)
		locked_ns = now;
	return now;
}

static void let_go(void)
{
	if (locked_ns != 0)
		held_ns += wq_clock_monotonic() - locked_ns;
	locked_ns = 0;
}

static void count(int64_t began_ns)
{
	let_go();
	counting = false;
	cost_ns += wq_clock_monotonic() - began_ns;
	cost_calls++;
}

int __wrap_wq_snapshot_take(wq_queue *q, wq_snapshot *out)
{
	int64_t began = wq_clock_monotonic();
	int rc;

	counting = true;
	rc = __real_wq_snapshot_take(q, out);
	count(began);
	return rc;
}

struct walk {
	wq_walk_fn fn;
	void *ctx;
};

static _Atomic bool slow;
static _Atomic int64_t walks; /* under way */

/* A slow walk shows one key again and again, until it is told to stop. */
static int see(void *ctx, const wq_key_info *info)
{
	struct walk *w = ctx;
	int rc;

	let_go();
	rc = w->fn(w->ctx, info);
	while (slow && rc == 0) {
		poll(NULL, 0, 1);
		rc = w->fn(w->ctx, info);
	}
	return rc;
}

int64_t __wrap_wq_walk(wq_queue *q, wq_walk_fn fn, void *ctx)
{
	int64_t began = wq_clock_monotonic(), n;

	walks++;
	counting = true;
	n = __real_wq_walk(q, see, &(struct walk){fn, ctx});
	count(began);
	walks--;
	return n;
}

/* ---- descriptors that are not to be had ------------------------------------------ */

static _Atomic bool full;
static _Atomic int64_t accepts;

int __real_accept4(int fd, struct sockaddr *a, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *a, socklen_t *len, int flags);

int __wrap_accept4(int fd, struct sockaddr *a, socklen_t *len, int flags)
{
	accepts++;
	if (!full)
		return __real_accept4(fd, a, len, flags);
	errno = EMFILE;
	return -1;
}

/* ---- memory that fails ---------------------------------------------------------- */

/* Of the library's objects: libmicrohttpd has its own. */
static _Atomic int64_t fail_in = -1, failed;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);

static bool fails(void)
{
	if (fail_in < 0 || fail_in-- > 0)
		return false;
	failed++;
	return true;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

/* ---- commands ------------------------------------------------------------------- */

struct word {
	char *bytes; /* a NUL follows */
	size_t len;
};

static struct served *served_of(const struct word *name)
{
	for (size_t i = 0; i < QUEUES; i++)
		if (queues[i].q && strcmp(queues[i].name, name->bytes) == 0)
			return &queues[i];
	return NULL;
}

static int64_t start(struct word *w)
{
	wq_http_options o = {.registry = registry,
	                     .address = strcmp(w[1].bytes, "-") == 0 ? NULL : w[1].bytes,
	                     .port = (uint16_t)atoi(w[2].bytes),
	                     .max_connections = (uint32_t)atoi(w[3].bytes),
	                     .timeout_s = (uint32_t)atoi(w[4].bytes)};
	const char *hosts[HOSTS + 1] = {0};
	int rc;

	if (strcmp(w[5].bytes, "-") != 0) {
		size_t n = 0;

		for (char *p = w[5].bytes; p && n < HOSTS; n++)
			hosts[n] = strsep(&p, ",");
		o.hosts = hosts;
	}
	rc = wq_http_start(&server, &o);

	return rc == WQ_OK ? wq_http_port(server) : rc;
}

static int64_t stop(struct word *w)
{
	wq_http *h = server;

	(void)w;
	server = NULL;
	return wq_http_stop(h);
}

static int64_t make(struct word *w, wq_options o)
{
	size_t i = 0;

	o.name = w[1].bytes;
	o.registry = registry;
	while (queues[i].q)
		i++;
	queues[i] = (struct served){0};
	snprintf(queues[i].name, sizeof queues[i].name, "%s", w[1].bytes);
	return wq_new(&queues[i].q, &o);
}

static int64_t queue(struct word *w)
{
	wq_clock c = wq_manual_clock_clock(clock_of_tests);

	return make(w, (wq_options){.clock = &c});
}

static int64_t rich(struct word *w)
{
	static wq_separator slash = {.byte = '/', .n = 1};
	wq_clock c = wq_manual_clock_clock(clock_of_tests);

	return make(w, (wq_options){.clock = &c,
	                            .priorities = 1,
	                            .values = 1,
	                            .group = wq_group_before,
	                            .group_ctx = &slash,
	                            .group_limit = 1});
}

static int64_t bring(struct word *w)
{
	return wq_add_with(served_of(&w[1])->q, w[2].bytes, w[2].len,
	                   &(wq_add_options){.priority = atoi(w[3].bytes),
	                                     .value = w[4].bytes,
	                                     .value_len = w[4].len});
}

static int64_t live(struct word *w)
{
	return make(w, (wq_options){.clock = &(wq_clock){.now = live_now}});
}

static int64_t free_it(struct word *w)
{
	struct served *s = served_of(&w[1]);
	wq_queue *q = s->q;

	wq_shutdown(q);
	if (s->pool)
		wq_pool_free(s->pool);
	for (size_t i = 0; i < s->nheld; i++)
		wq_done(q, &s->held[i]);
	s->q = NULL;
	return wq_free(q) >= 0 ? WQ_OK : WQ_EBUSY;
}

static int64_t add(struct word *w)
{
	return wq_add(served_of(&w[1])->q, w[2].bytes, w[2].len);
}

static int64_t add_after(struct word *w)
{
	return wq_add_after(served_of(&w[1])->q, w[3].bytes, w[3].len, atoll(w[2].bytes));
}

static int64_t fill(struct word *w)
{
	wq_queue *q = served_of(&w[1])->q;
	int rc = WQ_OK;

	for (long i = 0, n = atol(w[2].bytes); i < n && rc >= 0; i++) {
		char key[32];

		rc = wq_add(q, key, (size_t)snprintf(key, sizeof key, "key-%07ld", i));
	}
	return rc;
}

static int64_t get(struct word *w)
{
	struct served *s = served_of(&w[1]);
	int rc = wq_try_get(s->q, &s->held[s->nheld]);

	s->nheld += rc == WQ_OK;
	return rc;
}

static int64_t retry(struct word *w)
{
	wq_queue *q = served_of(&w[1])->q;
	wq_item it;
	int rc = wq_try_get(q, &it);

	return rc == WQ_OK ? wq_retry(q, &it) : rc;
}

static int64_t shut(struct word *w)
{
	return wq_shutdown(served_of(&w[1])->q);
}

static int64_t advance(struct word *w)
{
	return wq_manual_clock_advance(clock_of_tests, atoll(w[1].bytes));
}

/* Adds its own key, so that it comes back: until the queue is shut. */
static wq_verdict turn(void *ctx, const wq_item *it)
{
	struct served *s = ctx;

	wq_add(s->q, it->key, it->len);
	return WQ_DONE;
}

static int64_t work(struct word *w)
{
	struct served *s = served_of(&w[1]);
	int rc = (int)fill(w);

	if (rc < 0)
		return rc;
	return wq_pool_start(&s->pool, s->q,
	                     &(wq_pool_options){.workers = 1, .handler = turn, .ctx = s});
}

static int64_t fail_after(struct word *w)
{
	fail_in = atoll(w[1].bytes);
	return failed;
}

static int64_t set_slow(struct word *w)
{
	slow = w[1].bytes[0] == '1';
	return walks;
}

static int64_t set_full(struct word *w)
{
	full = w[1].bytes[0] == '1';
	return accepts;
}

static int64_t cost(struct word *w)
{
	(void)w;
	printf("ok %" PRId64 " %" PRId64 " %" PRId64 "\n", held_ns, cost_ns, cost_calls);
	return INT64_MIN;
}

static const struct {
	const char *name;
	int64_t (*run)(struct word *w); /* INT64_MIN: has answered */
	size_t words;
} commands[] = {{"start", start, 6},     {"stop", stop, 1},       {"queue", queue, 2},
                {"live", live, 2},       {"free", free_it, 2},    {"add", add, 3},
                {"after", add_after, 4}, {"fill", fill, 3},       {"get", get, 2},
                {"retry", retry, 2},     {"advance", advance, 2}, {"work", work, 3},
                {"fail", fail_after, 2}, {"cost", cost, 1},       {"slow", set_slow, 2},
                {"full", set_full, 2},   {"shut", shut, 2},       {"rich", rich, 2},
                {"bring", bring, 5}};

static size_t split(char *line, struct word w[WORDS])
{
	size_t n = 0;

	for (char *p = strtok(line, " \n"); p && n < WORDS; p = strtok(NULL, " \n"), n++) {
		w[n].bytes = p;
		/* It only gets shorter. */
		w[n].len = (size_t)wq__unescape(p, strlen(p), p, strlen(p));
		p[w[n].len] = '\0';
	}
	return n;
}

static void run(char *line)
{
	struct word w[WORDS];
	size_t n = split(line, w);
	int64_t rc = WQ_EINVAL;

	errno = 0;
	for (size_t i = 0; i < LENGTH(commands) && n > 0; i++)
		if (strcmp(commands[i].name, w[0].bytes) == 0 && commands[i].words == n)
			rc = commands[i].run(w);
	if (rc == INT64_MIN)
		return;
	if (rc >= 0)
		printf("ok %" PRId64 "\n", rc);
	else
		printf("no %s %d\n", wq_status_name((int)rc), errno);
}

int main(void)
{
	static char line[LINE_BYTES];

	if (wq_registry_new(&registry) != WQ_OK ||
	    wq_manual_clock_new(&clock_of_tests, START_NS) != WQ_OK)
		return 1;
	while (fgets(line, sizeof line, stdin)) {
		run(line);
		fflush(stdout);
	}
	if (server)
		wq_http_stop(server);
	for (size_t i = 0; i < QUEUES; i++)
		if (queues[i].q)
			free_it((struct word[]){{0}, {queues[i].name, 0}});
	if (wq_registry_free(registry) != WQ_OK)
		return 2;
	wq_manual_clock_free(clock_of_tests);
	return 0;
}
