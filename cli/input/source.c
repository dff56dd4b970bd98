/* Reading of keys. */
#include "cli/input/source.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/input/split.h"

enum { BLOCK = 65536 };

struct source {
	struct watch watch;
	struct run *run;
	struct split split;
	bool ready; /* something is there to be read, or nobody can tell */
	bool file;  /* and that is always so */
	bool ends;  /* a file that has an end, so that all of it can be read */
	bool ended;
	bool stated;       /* a file that --leftover has written, with more than keys */
	bool begun;        /* its head was passed over */
	struct text value; /* of the last record */
	size_t at, n;      /* of bytes: [at, n) has not been looked at */
	char bytes[BLOCK];
};

static void on_ready(struct watch *w, uint32_t events)
{
	(void)events;
	((struct source *)(void *)w)->ready = true;
}

/* Only a file can be: whoever names keys on a pipe does not decide how they are read. */
static bool is_stated(int fd, char delimiter)
{
	char bytes[RECORD_HEAD_MAX];
	ssize_t n = pread(fd, bytes, sizeof bytes, lseek(fd, 0, SEEK_CUR));
	const char *end = n > 0 ? memchr(bytes, delimiter, (size_t)n) : NULL;

	return end && record_is_head(bytes, (size_t)(end - bytes), delimiter);
}

bool source_open(struct run *r)
{
	const char *file = r->opt->file;
	bool own = file && strcmp(file, "-") != 0;
	const char *name = own ? file : "standard input";
	/* To wait for the other end of a named pipe is the loop's work: signals are heard there. */
	int fd = own ? open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : STDIN_FILENO;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		say("%s: %s", name, strerror(errno));
		return false;
	}
	if (S_ISDIR(st.st_mode)) {
		say("%s is a directory: expected a file with keys", name);
		if (own)
			close(fd);
		return false;
	}

	struct source *s = grow(NULL, sizeof *s);

	*s = (struct source){
	    .watch = {.fd = fd, .ready = on_ready},
	    .run = r,
	    .split = {.delimiter = r->opt->delimiter},
	    .ends = S_ISREG(st.st_mode) || S_ISBLK(st.st_mode),
	    .stated = S_ISREG(st.st_mode) && is_stated(fd, r->opt->delimiter),
	};
	if (s->stated)
		s->split.extra = RECORD_MAX;
	else if (r->opt->has_values)
		s->split.extra = WQ_VALUE_MAX + 1;
	r->source = s;
	return true;
}

/* What becomes of a record that is no key. */
static void refuse(struct run *r, enum split_found found, const char *key, size_t len)
{
	r->count.given++;
	r->count.refused++;
	r->trouble = true;
	if (found == SPLIT_LONG)
		say("a key is longer than %d bytes and is left out: %.80s...", WQ_KEY_MAX,
		    shown(key, len < 60 ? len : 60));
	else if (found == SPLIT_BAD)
		say("a key has a NUL byte, which no command can be given, and is left out "
		    "(-0: NUL ends a key): %s",
		    shown(key, len));
	else if (found == SPLIT_VALUE)
		say("a value is longer than %d bytes, and its key is left out: %s", WQ_VALUE_MAX,
		    shown(key, len));
	else if (found == SPLIT_EMPTY)
		say("a line has a value, but no key, and is left out");
	else
		say("a line begins with @, but not with @DUE<tab>FAILURES<tab>, and is left out: "
		    "%s",
		    shown(key, len));
}

/* False: it is no key, which was said, or the head of a leftover file. */
static bool understand(struct run *r, enum split_found found, const char *bytes, size_t n,
                       struct record *rec)
{
	struct source *s = r->source;

	if (s->stated && !s->begun) {
		s->begun = true;
		return false;
	}
	*rec = (struct record){.key = bytes, .len = n};
	rec->plain = true;
	if (found == SPLIT_KEY && s->stated) {
		if (!record_read(rec, bytes, n, s->split.delimiter, &s->value))
			found = SPLIT_NOTHING;
		else if (rec->len > WQ_KEY_MAX && !(rec->plain && r->opt->has_values))
			found = SPLIT_LONG;
	}
	/* Of a line that is too long, its beginning tells whether key or value is. */
	if ((found == SPLIT_KEY || found == SPLIT_LONG) && rec->plain && r->opt->has_values)
		found = split_value(rec->key, &rec->len, r->opt->value_after, &rec->value,
		                    &rec->value_len);
	if (found != SPLIT_KEY)
		refuse(r, found, rec->key, rec->len);
	return found == SPLIT_KEY;
}

static void take(struct run *r, enum split_found found, const char *bytes, size_t n)
{
	struct record rec;
	int rc;

	if (!understand(r, found, bytes, n, &rec))
		return;
	rc = intake_restore(r, &rec);
	if (rc < 0) {
		say("%s: %s", shown(rec.key, rec.len), intake_error(rc));
		r->trouble = true;
	}
}

static void end(struct run *r, struct source *s)
{
	const char *key;
	size_t len;
	enum split_found found = split_end(&s->split, &key, &len);

	if (found != SPLIT_NOTHING)
		take(r, found, key, len);
	s->ended = true;
	loop_forget(&r->loop, &s->watch);
	phases_ending(r);
}

/* False: there is nothing to read now. */
static bool fill(struct run *r, struct source *s)
{
	ssize_t n;

	if (!s->ready)
		return false;
	/* What was announced is taken by another, perhaps. */
	if (tty_lent_fd(r, s->watch.fd)) {
		s->ready = false;
		return false;
	}
	n = read(s->watch.fd, s->bytes, BLOCK);
	s->ready = s->file;
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return false;
	if (n < 0) {
		say("reading keys: %s", strerror(errno));
		r->trouble = true;
	}
	if (n <= 0) {
		end(r, s);
		return false;
	}
	s->at = 0;
	s->n = (size_t)n;
	return true;
}

void source_pump(struct run *r)
{
	struct source *s = r->source;
	int blocks = 0;

	if (!s || s->ended || r->phase != OPEN)
		return;
	while (!intake_full(r)) {
		const char *key;
		size_t len;
		enum split_found found = split_next(&s->split, s->bytes, s->n, &s->at, &key, &len);

		if (found != SPLIT_NOTHING)
			take(r, found, key, len);
		else if (blocks++ > 0 || !fill(r, s))
			break; /* one block a turn: others want to be served, too */
	}
}

void source_watch(struct run *r)
{
	struct source *s = r->source;

	if (!s || s->ended || s->file || r->phase != OPEN)
		return;
	/* Who is full, or has a block yet, does not want to be told of more. */
	if (!loop_watch(&r->loop, &s->watch,
	                intake_full(r) || s->at < s->n || s->ready || tty_lent_fd(r, s->watch.fd)
	                    ? 0
	                    : EPOLLIN))
		s->file = s->ready = true;
}

bool source_eager(const struct run *r)
{
	const struct source *s = r->source;

	return s && !s->ended && r->phase == OPEN && !intake_full(r) && (s->ready || s->at < s->n);
}

/* Whoever wrote to it has closed it, and nothing is in it. */
static bool is_at_end(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int there;

	return poll(&p, 1, 0) > 0 && ioctl(fd, FIONREAD, &there) == 0 && there == 0;
}

bool source_stated(const struct run *r)
{
	return r->source && r->source->stated && !r->source->ended;
}

void source_rest(struct run *r, void (*fn)(struct run *r, const struct record *rec))
{
	struct source *s = r->source;
	struct record rec;
	const char *key;
	size_t len;
	int there = 0;
	bool whole = false;

	if (!s || s->ended)
		return;
	/* Of a pipe, what is in it now: it may never end. */
	if (!s->ends && ioctl(s->watch.fd, FIONREAD, &there) < 0)
		there = 0;
	for (;;) {
		enum split_found found;

		while ((found = split_next(&s->split, s->bytes, s->n, &s->at, &key, &len)) !=
		       SPLIT_NOTHING) {
			if (understand(r, found, key, len, &rec))
				fn(r, &rec);
		}
		if (!s->ends && there <= 0) {
			whole = is_at_end(s->watch.fd);
			break;
		}

		ssize_t n = read(s->watch.fd, s->bytes,
		                 s->ends || there > BLOCK ? (size_t)BLOCK : (size_t)there);

		whole = n == 0;
		if (n <= 0)
			break;
		there -= (int)n;
		s->at = 0;
		s->n = (size_t)n;
	}
	/* Before the end of the input the last key may be a part of one, which nobody has given. */
	enum split_found last = split_end(&s->split, &key, &len);

	if (last != SPLIT_NOTHING) {
		if (whole && understand(r, last, key, len, &rec))
			fn(r, &rec);
		else if (!whole)
			say("stopped in the middle of a key, which is left out: %s...",
			    shown(key, len));
	}
	s->ended = true;
}

void source_close(struct run *r)
{
	if (!r->source)
		return;
	loop_forget(&r->loop, &r->source->watch);
	text_release(&r->source->split.part);
	text_release(&r->source->value);
	free(r->source);
	r->source = NULL;
}
