/* Appending records to a file. */
#include "cli/files/append.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include <wq/clock.h>

#include "cli/base/say.h"
#include "cli/files/target.h"

enum { LOCK_TRIES = 100 };

static uint64_t records(const struct append *a, size_t from, size_t to)
{
	uint64_t n = 0;

	for (; from < to; from++)
		n += a->pending.bytes[from] == a->delimiter;
	return n;
}

/* ---- the file ------------------------------------------------------------ */

/* The last record of the file has no end, after a crash: the next one is not glued to it. */
static void close_torn(struct append *a)
{
	char last;
	off_t size = lseek(a->watch.fd, 0, SEEK_END);

	if (size > 0 && pread(a->watch.fd, &last, 1, size - 1) == 1 && last != a->delimiter &&
	    write(a->watch.fd, &a->delimiter, 1) < 0)
		return; /* there is no space: the next record is not written either */
}

/* Nobody waits for the other end of a pipe: signals must be heard. A file does not mind. */
static bool open_file(struct append *a)
{
	const int flags = O_CREAT | O_APPEND | O_NONBLOCK;
	struct target target;
	struct stat st;

	if (!target_find(&target, AT_FDCWD, a->path))
		return false;
	if (target_stat(&target, &st) && !S_ISREG(st.st_mode)) {
		/* To read from a pipe as well would keep it open without anyone else. */
		a->watch.fd = target_open(&target, O_WRONLY | flags);
	} else {
		a->watch.fd = target_open(&target, O_RDWR | flags);
		/* One may be allowed to write to it, and not to read. */
		if (a->watch.fd < 0 && errno == EACCES)
			a->watch.fd = target_open(&target, O_WRONLY | flags);
	}

	int error = errno;

	target_release(&target);
	errno = error;
	if (a->watch.fd < 0)
		return false;
	a->regular = fstat(a->watch.fd, &st) == 0 && S_ISREG(st.st_mode);
	if (a->regular)
		close_torn(a);
	return true;
}

/* Keys that are written to a file that was deleted would be gone with it. */
static bool is_open(struct append *a)
{
	struct stat st;

	if (a->watch.fd >= 0 && a->regular && fstat(a->watch.fd, &st) == 0 && st.st_nlink == 0) {
		close(a->watch.fd);
		a->watch.fd = -1;
	}
	return a->watch.fd >= 0 || open_file(a);
}

/*
 * Other runs that append to it must not do so between a write that was cut short and the removal
 * of what it wrote. They hold the lock for microseconds; whoever holds it for longer is ignored.
 */
static void lock(const struct append *a)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (flock(a->watch.fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
			return;
		sched_yield();
	}
}

/* A part of the last record is there, and nothing behind it: it is removed, and written later. */
static void cut_torn(struct append *a)
{
	off_t torn = (off_t)(a->at - a->whole), end = lseek(a->watch.fd, 0, SEEK_CUR);
	struct stat st;

	if (torn == 0)
		return;
	/* Of a file that can only grow (chattr +a) the rest of the record is written later. */
	if (fstat(a->watch.fd, &st) == 0 && st.st_size == end &&
	    ftruncate(a->watch.fd, end - torn) < 0)
		return;
	a->at = a->whole;
}

/* ---- writing ------------------------------------------------------------- */

static void wrote(struct append *a, size_t n)
{
	const char *bytes = a->pending.bytes, *end;

	a->at += n;
	end = memrchr(bytes + a->whole, a->delimiter, a->at - a->whole);
	if (!end)
		return;
	a->written += records(a, a->whole, (size_t)(end - bytes) + 1);
	a->whole = (size_t)(end - bytes) + 1;
}

/* 0, or why the rest is not written; EAGAIN: a pipe is full. */
static int write_pending(struct append *a)
{
	while (a->at < a->pending.n) {
		ssize_t n = write(a->watch.fd, a->pending.bytes + a->at, a->pending.n - a->at);

		if (n >= 0)
			wrote(a, (size_t)n);
		else if (errno != EINTR)
			return errno;
	}
	return 0;
}

static int try_pipe(struct append *a)
{
	int error;

	/* The pipe keeps what was written to it for the next reader: it ends there. */
	if (a->torn && write(a->watch.fd, &a->delimiter, 1) < 0)
		return errno;
	a->torn = false;
	error = write_pending(a);
	if (error == 0 || error == EAGAIN)
		return error;
	/* That one has not seen the beginning, and gets the whole record. */
	a->torn = a->at > a->whole;
	a->at = a->whole;
	return error;
}

static int try_file(struct append *a)
{
	int error;

	if (!is_open(a))
		return errno;
	if (!a->regular)
		return try_pipe(a);
	lock(a);
	error = write_pending(a);
	if (error != 0)
		cut_torn(a);
	flock(a->watch.fd, LOCK_UN);
	return error;
}

static void tell(struct append *a, int error)
{
	if (error != 0 && a->error == 0)
		say("%s: %s; %s are kept in memory until it can be written", a->path,
		    target_error(error), a->what);
	else if (error == 0 && a->error != 0)
		say("%s is written again; %" PRIu64 " %s are missing", a->path, a->lost, a->what);
}

static void forget_written(struct append *a)
{
	if (a->whole == 0)
		return;
	memmove(a->pending.bytes, a->pending.bytes + a->whole, a->pending.n - a->whole);
	a->pending.n -= a->whole;
	a->at -= a->whole;
	a->whole = 0;
}

/* Everything that waits is written, or it is known why not. */
static void flush(struct append *a)
{
	int error = try_file(a);
	bool slow = error == EAGAIN && !a->regular;

	forget_written(a);
	tell(a, slow ? 0 : error);
	a->error = slow ? 0 : error;
	if (a->watch.fd >= 0 && !a->regular)
		loop_watch(a->loop, &a->watch, slow ? EPOLLOUT : 0);
}

static void on_ready(struct watch *w, uint32_t events)
{
	(void)events;
	flush((struct append *)(void *)w);
}

/* ---- calls --------------------------------------------------------------- */

bool append_open(struct append *a, struct loop *l, const char *path, const char *what,
                 char delimiter)
{
	*a = (struct append){
	    .watch = {.fd = -1, .ready = on_ready},
	    .loop = l,
	    .path = path,
	    .what = what,
	    .delimiter = delimiter,
	};
	if (!path || open_file(a))
		return true;
	say("%s: %s", path, target_error(errno));
	return false;
}

bool append_put(struct append *a, int64_t now_ns, const void *record, size_t n)
{
	if (!a->path)
		return true;
	/* Before it joins them: there may be space again. */
	if (a->error != 0)
		append_turn(a, now_ns);
	if (a->error != 0 && a->pending.n + n > APPEND_KEPT) {
		a->lost++;
		return false;
	}
	text_add(&a->pending, record, n);
	/* While a reader is behind, it is the loop that goes on. */
	if (a->error == 0 && a->watch.events == 0)
		flush(a);
	if (a->error != 0)
		a->again_ns = now_ns + WQ_SECOND;
	return true;
}

void append_turn(struct append *a, int64_t now_ns)
{
	if (a->error == 0 || now_ns < a->again_ns)
		return;
	flush(a);
	a->again_ns = now_ns + WQ_SECOND;
}

int64_t append_next_ns(const struct append *a)
{
	return a->path && a->error != 0 ? a->again_ns : WQ_NEVER;
}

bool append_waits(const struct append *a)
{
	return a->path && a->error == 0 && a->pending.n > 0;
}

bool append_full(const struct append *a)
{
	return append_waits(a) && a->pending.n >= APPEND_KEPT;
}

uint64_t append_end(struct append *a)
{
	if (!a->path)
		return 0;
	if (a->pending.n > 0)
		flush(a);
	return records(a, 0, a->pending.n);
}

void append_close(struct append *a)
{
	if (a->path && a->watch.fd >= 0) {
		loop_forget(a->loop, &a->watch);
		close(a->watch.fd);
	}
	text_release(&a->pending);
	a->path = NULL;
}
