/*
 * A real piece of work: watch a tree of files that change faster than they can
 * be looked at.
 *
 * Three writers append lines to the files of a temporary tree, some files far
 * more often than others, and announce each change by adding the file's path.
 * Four workers read the file that they are given, count its lines and hash
 * its bytes. No worker needs to know how often a file was announced: a path
 * that is queued merges; a path that a worker holds is queued again once.
 *
 * At the end everything must add up, and the exit code says whether it did:
 * every announcement is accounted for, no file was with two workers at once,
 * and the last look at each file saw its last change.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <wq.h>

enum {
	DIRS = 8,
	FILES_PER_DIR = 30,
	FILES = DIRS * FILES_PER_DIR,
	WRITERS = 3,
	WORKERS = 4,
	LINE = 64,          /* bytes of a line, its end included */
	FIRST_LINES = 2048, /* 128 KiB in each file to begin with */
	BURST = 40,         /* changes between two pauses of a writer */
	PATH_LEN = 256,
};

#define WRITE_FOR (3 * WQ_SECOND)
#define PAUSE_NS (4 * WQ_MILLISECOND) /* 3 writers × 40 changes every 4 ms: up to 30,000 a second */

/* A file, found by its path. I: set at start   M: mu   A: atomic   K: whoever holds the key */
struct file {
	char path[PATH_LEN];        /* I */
	pthread_mutex_t mu;         /* between writers: one change at a time */
	uint64_t lines;             /* M: as written */
	_Atomic uint64_t announced; /* A: lines whose wq_add() has returned */
	atomic_int at_work;         /* A: workers that look at it now */
	uint64_t seen_lines;        /* K: as the last look found it */
	uint64_t seen_hash;         /* K */
};

static struct file files[FILES];
static char root[PATH_LEN / 2];
static wq_queue *q;
static atomic_bool stop_writing;
static volatile sig_atomic_t interrupted;

/* What happened. The outcome of every call lands in exactly one of these. */
static struct {
	atomic_llong queued, merged, marked, refused; /* answers of wq_add() */
	atomic_llong runs, back, errors;              /* gets; dones that queued the key again */
	atomic_llong together;                        /* a file with two workers: never */
	atomic_llong forgotten;                       /* changed during a look, not back: never */
	atomic_llong bytes;
} count;

static int fail(const char *what)
{
	perror(what);
	return -1;
}

/* ---- the tree ------------------------------------------------------------ */

static int append(struct file *f, uint64_t n)
{
	char buf[LINE * 64];
	int fd = open(f->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	int rc = 0;

	if (fd < 0)
		return fail(f->path);
	while (n > 0 && rc == 0) {
		uint64_t chunk = n < 64 ? n : 64;

		for (uint64_t i = 0; i < chunk; i++) {
			char *line = buf + i * LINE;

			memset(line, '.', LINE);
			line[snprintf(line, LINE, "change %" PRIu64 " ", f->lines + i + 1)] = '.';
			line[LINE - 1] = '\n';
		}
		if (write(fd, buf, chunk * LINE) != (ssize_t)(chunk * LINE))
			rc = fail(f->path);
		f->lines += chunk;
		n -= chunk;
	}
	close(fd);
	return rc;
}

/* Lines and FNV-1a hash of a file as it is now. */
static int look(const char *path, uint64_t *lines, uint64_t *hash)
{
	unsigned char buf[32768];
	uint64_t h = UINT64_C(14695981039346656037), nl = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return fail(path);
	while ((n = read(fd, buf, sizeof buf)) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			nl += buf[i] == '\n';
			h = (h ^ buf[i]) * UINT64_C(1099511628211);
		}
		atomic_fetch_add_explicit(&count.bytes, n, memory_order_relaxed);
	}
	close(fd);
	if (n < 0)
		return fail(path);
	*lines = nl;
	*hash = h;
	return 0;
}

static void dir_path(char *out, size_t size, int dir)
{
	snprintf(out, size, "%s/dir-%d", root, dir);
}

static int tree_make(void)
{
	const char *tmp = getenv("TMPDIR");
	int n = snprintf(root, sizeof root, "%s/wq-demo-XXXXXX", tmp && *tmp ? tmp : "/tmp");

	if (n < 0 || (size_t)n >= sizeof root) {
		fprintf(stderr, "TMPDIR is too long\n");
		root[0] = 0;
		return -1;
	}
	if (!mkdtemp(root)) {
		fail(root);
		root[0] = 0;
		return -1;
	}
	for (int d = 0; d < DIRS; d++) {
		char path[PATH_LEN - 32];

		dir_path(path, sizeof path, d);
		if (mkdir(path, 0700) != 0)
			return fail(path);
		for (int i = 0; i < FILES_PER_DIR; i++) {
			struct file *f = &files[d * FILES_PER_DIR + i];

			snprintf(f->path, sizeof f->path, "%s/file-%02d", path, i);
			pthread_mutex_init(&f->mu, NULL);
			if (append(f, FIRST_LINES) != 0)
				return -1;
		}
	}
	return 0;
}

static void tree_remove(void)
{
	if (!root[0])
		return;
	for (int i = 0; i < FILES; i++)
		if (files[i].path[0])
			unlink(files[i].path);
	for (int d = 0; d < DIRS; d++) {
		char path[PATH_LEN];

		dir_path(path, sizeof path, d);
		rmdir(path);
	}
	rmdir(root);
}

static int compare_path(const void *path, const void *f)
{
	return strcmp(path, ((const struct file *)f)->path);
}

/* The file of a path; they are made in the order of their names. NULL: none of ours. */
static struct file *file_of(const char *path)
{
	return bsearch(path, files, FILES, sizeof files[0], compare_path);
}

/* ---- writers and workers ------------------------------------------------- */

static void pause_ns(int64_t ns)
{
	struct timespec ts = {.tv_sec = ns / WQ_SECOND, .tv_nsec = ns % WQ_SECOND};

	nanosleep(&ts, NULL);
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void announce(struct file *f)
{
	switch (wq_add_str(q, f->path)) {
	case WQ_QUEUED:
		count.queued++;
		break;
	case WQ_MERGED:
		count.merged++;
		break;
	case WQ_MARKED:
		count.marked++;
		break;
	default:
		count.refused++;
	}
}

static void *writer(void *arg)
{
	uint64_t random = UINT64_C(0x9e3779b97f4a7c15) * ((uint64_t)(uintptr_t)arg + 1);

	while (!stop_writing) {
		for (int i = 0; i < BURST; i++) {
			/* The product of two picks favours the first files: some are hot. */
			uint64_t a = next_random(&random) % FILES, b = next_random(&random) % FILES;
			struct file *f = &files[a * b / FILES];

			pthread_mutex_lock(&f->mu);
			if (append(f, 1) != 0)
				count.errors++;
			announce(f); /* after the change: whoever gets the path sees it */
			f->announced = f->lines;
			pthread_mutex_unlock(&f->mu);
		}
		pause_ns(PAUSE_NS);
	}
	return NULL;
}

/* Look at a file, hand it back. */
static void work_on(struct file *f, const wq_item *it)
{
	if (atomic_fetch_add(&f->at_work, 1) != 0)
		count.together++;
	if (look(f->path, &f->seen_lines, &f->seen_hash) != 0)
		count.errors++;
	atomic_fetch_sub(&f->at_work, 1);

	/* Announced by now and not seen: announced while we looked, so the key must come back. */
	bool must_come_back = f->announced > f->seen_lines;

	switch (wq_done(q, it)) {
	case WQ_OK:
		if (must_come_back)
			count.forgotten++;
		break;
	case WQ_QUEUED:
		count.back++;
		break;
	default:
		count.errors++;
	}
}

static void *worker(void *arg)
{
	wq_item it;
	int rc;

	(void)arg;
	while ((rc = wq_get(q, &it)) == WQ_OK) {
		struct file *f = file_of(it.key);

		count.runs++;
		if (f)
			work_on(f, &it);
		else
			count.errors++;
	}
	if (rc != WQ_ESHUTDOWN)
		count.errors++;
	return NULL;
}

/* ---- what is shown ------------------------------------------------------- */

static void show_progress(int64_t since_ns, bool terminal)
{
	long long queued = count.queued, merged = count.merged, marked = count.marked;

	printf("%s%4.1f s  %7lld changes  %6lld looks  %7lld merged  %6lld marked  %4" PRId64
	       " queued%s",
	       terminal ? "\r\033[K" : "", (double)since_ns / 1e9, queued + merged + marked,
	       (long long)count.runs, merged, marked, wq_len(q), terminal ? "" : "\n");
	fflush(stdout);
}

static bool check(bool ok, const char *what)
{
	printf("  %-3s %s\n", ok ? "ok" : "NO", what);
	return ok;
}

static bool summarise(int drained, const wq_report *left, double drain_ms, int late, int freed)
{
	long long queued = count.queued, merged = count.merged, marked = count.marked;
	double gigabytes = (double)count.bytes / 1e9;
	long long changes = 0;
	int unseen = 0;

	for (int i = 0; i < FILES; i++) {
		struct file *f = &files[i];
		uint64_t lines, hash;

		changes += (long long)f->lines - FIRST_LINES;
		if (look(f->path, &lines, &hash) != 0 || lines != f->lines ||
		    lines != f->seen_lines || hash != f->seen_hash)
			unseen++;
	}
	printf("\n"
	       "  changes announced   %9lld   by %d writers, to %d files\n"
	       "    queued            %9lld   the file was not known to the queue\n"
	       "    merged            %9lld   it was queued already\n"
	       "    marked            %9lld   a worker held it: queued again\n"
	       "  looks               %9lld   by %d workers, %.1f GB read and hashed\n"
	       "  drained in          %9.1f ms\n\n",
	       queued + merged + marked, WRITERS, FILES, queued, merged, marked,
	       (long long)count.runs, WORKERS, gigabytes, drain_ms);

	bool ok = true;

	ok &= check(changes > 0 && changes == queued + merged + marked && count.refused == 0,
	            "every change on disk was announced and answered: queued + merged + marked");
	ok &= check(count.runs == queued + count.back && count.back == marked,
	            "looks = queued + marked: nothing lost, nothing twice");
	ok &= check(count.together == 0, "no file was ever with two workers at once");
	ok &= check(count.forgotten == 0, "a file that changed during a look always came back");
	ok &= check(unseen == 0, "the last look at each file saw its last change");
	ok &= check(drained == WQ_OK && left->queued == 0 && left->running == 0 && left->dirty == 0,
	            "the drain finished before its deadline and left nothing");
	ok &= check(late == WQ_ESHUTDOWN, "an add after the drain was refused, and said so");
	ok &= check(freed == 0 && count.errors == 0, "no other call failed");
	return ok;
}

/* ---- all of it ----------------------------------------------------------- */

/* Ctrl-C ends the writing early; what follows is the same. */
static void on_interrupt(int sig)
{
	(void)sig;
	interrupted = 1;
}

static int run(void)
{
	pthread_t writers[WRITERS], workers[WORKERS];
	bool terminal = isatty(STDOUT_FILENO) != 0;
	int rc = wq_new(&q, NULL);

	if (rc < 0) {
		fprintf(stderr, "wq_new: %s\n", wq_strerror(rc));
		return 1;
	}
	printf("wq %s: %d writers change %d files below %s, %d workers look at them\n\n",
	       wq_version_string(), WRITERS, FILES, root, WORKERS);

	/* Every file is looked at once before anything happens. */
	for (int i = 0; i < FILES; i++)
		if (look(files[i].path, &files[i].seen_lines, &files[i].seen_hash) != 0)
			return 1;
	count.bytes = 0;

	for (intptr_t i = 0; i < WORKERS; i++)
		if (pthread_create(&workers[i], NULL, worker, NULL) != 0)
			return fail("pthread_create") != 0;
	for (intptr_t i = 0; i < WRITERS; i++)
		if (pthread_create(&writers[i], NULL, writer, (void *)i) != 0)
			return fail("pthread_create") != 0;

	int64_t start = wq_now(q), shown = start;

	for (int64_t now = start; now - start < WRITE_FOR && !interrupted; now = wq_now(q)) {
		if (now - shown >= (terminal ? WQ_SECOND / 10 : WQ_SECOND / 2)) {
			show_progress(now - start, terminal);
			shown = now;
		}
		pause_ns(WQ_SECOND / 50);
	}
	stop_writing = true;
	for (int i = 0; i < WRITERS; i++)
		pthread_join(writers[i], NULL);
	show_progress(wq_now(q) - start, terminal);

	wq_report left;
	int64_t drain_start = wq_now(q);
	int drained = wq_drain_for(q, 10 * WQ_SECOND, NULL, &left);
	double drain_ms = (double)(wq_now(q) - drain_start) / 1e6;
	int late = wq_add_str(q, files[0].path);

	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);
	if (terminal)
		printf("\n");
	return !summarise(drained, &left, drain_ms, late, wq_free(q));
}

int main(void)
{
	signal(SIGINT, on_interrupt);

	int rc = tree_make() != 0 || run() != 0;

	tree_remove();
	printf("\n%s\n", rc ? "Something does not add up." : "It all adds up.");
	return rc;
}
