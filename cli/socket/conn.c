/* The bytes of a connection: in, cut into keys or orders; and out, as the other side reads. */
#include "cli/socket/conn.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/files/record.h"
#include "cli/socket/await.h"
#include "cli/socket/frame.h"
#include "cli/socket/order.h"

enum { BLOCK = 65536, SPILL = 1 << 18, MESSAGE = 1024 };

static void on_ready(struct watch *w, uint32_t events);

struct conn *conn_new(struct run *r, int fd)
{
	struct control *ct = r->control;
	struct conn *c = grow(NULL, sizeof *c);

	*c = (struct conn){
	    .watch = {.fd = fd, .ready = on_ready},
	    .run = r,
	    .active_ns = r->now_ns,
	    .next = ct->all,
	    .file = -1,
	    .split = {.delimiter = r->opt->delimiter,
	              .extra = r->opt->has_values ? WQ_VALUE_MAX + 1 : 0},
	};
	if (ct->all)
		ct->all->prev = c;
	ct->all = c;
	ct->n++;
	return c;
}

static void let_go(struct conn *c)
{
	struct control *ct = c->run->control;
	struct conn **at = &ct->held;

	if (!c->held)
		return;
	while (*at != c)
		at = &(*at)->next_held;
	*at = c->next_held;
	if (ct->held_end == &c->next_held)
		ct->held_end = at;
	c->held = false;
}

void conn_close(struct conn *c)
{
	struct control *ct = c->run->control;

	let_go(c);
	await_release(c);
	loop_forget(&c->run->loop, &c->watch);
	close(c->watch.fd);
	if (c->file >= 0)
		close(c->file);
	if (c->prev)
		c->prev->next = c->next;
	else
		ct->all = c->next;
	if (c->next)
		c->next->prev = c->prev;
	ct->n--;
	ct->nguests -= c->guest;
	text_release(&c->in);
	text_release(&c->out);
	text_release(&c->split.part);
	text_release(&c->value);
	free(c);
}

void conn_hold(struct conn *c)
{
	struct control *ct = c->run->control;

	if (c->held)
		return;
	c->held = true;
	/* One after the other: else each of them would keep what it has read. */
	if (ct->resumed == c) {
		c->next_held = ct->held;
		ct->held = c;
		if (!c->next_held)
			ct->held_end = &c->next_held;
		return;
	}
	c->next_held = NULL;
	*ct->held_end = c;
	ct->held_end = &c->next_held;
}

/* ---- out ----------------------------------------------------------------- */

static bool is_written(const struct conn *c)
{
	return c->file < 0 && c->out_at == c->out.n;
}

/* False: not now, or never. */
static bool put(struct conn *c, const char *bytes, size_t n, size_t *at)
{
	ssize_t m = send(c->watch.fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (m < 0) {
		c->broken = errno != EAGAIN && errno != EINTR;
		return false;
	}
	*at += (size_t)m;
	c->active_ns = c->run->now_ns;
	return true;
}

static bool put_file(struct conn *c)
{
	static char block[BLOCK];
	ssize_t n = pread(c->file, block, sizeof block, (off_t)c->file_at);

	if (n <= 0) {
		c->broken = true;
		return false;
	}
	return put(c, block, (size_t)n, &c->file_at);
}

void conn_flush(struct conn *c)
{
	while (c->file >= 0 && !c->broken) {
		if (!put_file(c))
			return;
		if (c->file_at < c->file_n)
			continue;
		close(c->file);
		c->file = -1;
	}
	while (c->out_at < c->out.n && !c->broken)
		if (!put(c, c->out.bytes + c->out_at, c->out.n - c->out_at, &c->out_at) &&
		    !c->broken)
			return;
	text_release(&c->out);
	c->out_at = 0;
}

void conn_refuse(struct conn *c, const char *format, ...)
{
	char line[MESSAGE];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	text_print(&c->out, "wq: %s\n", line);
	c->closing = true;
}

/* A long answer goes to a file: nothing of it has been written yet. */
static void spill(struct conn *c)
{
	if (c->file < 0) {
		c->file = spool_temporary();
		c->file_at = c->file_n = 0;
	}
	if (c->file >= 0 && write_all(c->file, c->out.bytes, c->out.n)) {
		c->file_n += c->out.n;
		c->out.n = 0;
		return;
	}
	c->spill_error = errno;
	if (c->file >= 0)
		close(c->file);
	c->file = -1;
	c->out.n = 0;
}

void conn_piece(struct conn *c, const void *bytes, size_t n)
{
	if (c->spill_error)
		return;
	frame_put(&c->out, ANSWER_PIECE, bytes, n);
	if (c->out.n >= SPILL)
		spill(c);
}

void conn_heard(struct conn *c)
{
	conn_piece(c, "", 0);
}

void conn_well(struct conn *c, const char *text)
{
	int error = c->spill_error;

	c->busy = BUSY_NOT;
	c->spill_error = 0;
	if (error)
		conn_not(c, EXIT_TROUBLE,
		         "the run has no room for so long an answer in $TMPDIR: %s",
		         strerror(error));
	else
		frame_put(&c->out, ANSWER_WELL, text, strlen(text));
}

void conn_not(struct conn *c, int status, const char *format, ...)
{
	char line[MESSAGE];
	va_list args;
	int n = snprintf(line, sizeof line, "%d ", status);

	va_start(args, format);
	vsnprintf(line + n, sizeof line - (size_t)n, format, args);
	va_end(args);
	frame_put(&c->out, ANSWER_NOT, line, strlen(line));
	c->busy = BUSY_NOT;
}

void conn_wake(struct conn *c)
{
	loop_watch(&c->run->loop, &c->watch, EPOLLOUT);
}

/* ---- in ------------------------------------------------------------------ */

static void fill(struct conn *c)
{
	static char block[BLOCK];
	ssize_t n = recv(c->watch.fd, block, sizeof block, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* An error is an end like any other: what came before it counts. */
	if (n <= 0) {
		c->ended = true;
		return;
	}
	c->active_ns = c->run->now_ns;
	if (c->in_at > 0) {
		memmove(c->in.bytes, c->in.bytes + c->in_at, c->in.n - c->in_at);
		c->in.n -= c->in_at;
		c->in_at = 0;
	}
	text_add(&c->in, block, (size_t)n);
	if (c->kind != CONN_FRESH)
		return;
	c->kind = block[0] == '\0' ? CONN_ORDERS : CONN_KEYS;
	c->in_at = c->kind == CONN_ORDERS ? 1 : 0;
}

/* ---- keys ---------------------------------------------------------------- */

/* What is wrong with a line. */
static const char *wrong(enum split_found found)
{
	switch (found) {
	case SPLIT_LONG:
		return "a key is longer than 65536 bytes";
	case SPLIT_VALUE:
		return "a value is longer than 65536 bytes";
	case SPLIT_EMPTY:
		return "a value has no key";
	default:
		return "a key has a NUL byte, which no command can be given";
	}
}

static void refuse_key(struct conn *c, enum split_found found, const char *key, size_t len)
{
	struct run *r = c->run;
	size_t n = len > 60 && found != SPLIT_BAD ? 60 : len;

	r->count.given++;
	r->count.refused++;
	r->trouble = true;
	conn_refuse(c, "%s: %s", wrong(found), shown(key, n));
	if (!r->opt->quiet)
		say("socket: %s, and its connection is closed: %s", wrong(found),
		    shown(key, len > 60 ? 60 : len));
}

/* False: it is no key, and was refused. */
static bool understand(struct conn *c, enum split_found found, const char *line, size_t n,
                       struct record *rec)
{
	const struct options *o = c->run->opt;

	*rec = (struct record){.key = line, .len = n};
	if ((found == SPLIT_KEY || found == SPLIT_LONG) && o->has_values)
		found = split_value(line, &rec->len, o->value_after, &rec->value, &rec->value_len);
	if (found != SPLIT_KEY)
		refuse_key(c, found, line, found == SPLIT_EMPTY ? n : rec->len);
	return found == SPLIT_KEY;
}

static void take_key(struct conn *c, enum split_found found, const char *line, size_t n)
{
	struct record rec;
	int rc;

	if (!understand(c, found, line, n, &rec))
		return;
	rc = intake_restore(c->run, &rec);
	if (rc < 0) {
		conn_refuse(c, "%s: %s", shown(rec.key, rec.len), intake_error(rc));
		c->run->trouble = true;
	}
}

/* ---- making room --------------------------------------------------------- */

bool conn_is_idle(const struct conn *c)
{
	if (c->held || c->closing || c->busy != BUSY_NOT)
		return false;
	/* At the end of a run what they have written and we have not read is left over. */
	return c->kind != CONN_KEYS || c->run->phase == OPEN;
}

bool conn_is_waiting(const struct conn *c)
{
	if (c->closing)
		return false;
	if (c->kind == CONN_KEYS)
		return c->held && c->run->phase == OPEN;
	return c->busy != BUSY_NOT && c->busy != BUSY_END;
}

static void tell_evicted(struct conn *c)
{
	static const char why[] = "the run has no room for so many connections: try again later";
	struct run *r = c->run;

	if (c->kind == CONN_ORDERS) {
		if (c->busy == BUSY_ADD)
			order_add_ends(c);
		conn_not(c, EXIT_LEFT, "%s", why);
		c->closing = true;
		return;
	}
	conn_refuse(c, "%s", why);
	if (!c->held && c->split.part.n == 0)
		return;
	/* Keys that were written, and are not taken: that is not passed over in silence. */
	r->trouble = true;
	if (!r->opt->quiet)
		say("socket: a connection that had keys to give was closed: there were too many");
}

bool conn_evict(struct conn *c)
{
	int there = 0;

	/* Who writes from now on gets an error. What he wrote before is taken, if he was idle. */
	shutdown(c->watch.fd, SHUT_RD);
	if (conn_is_idle(c) && ioctl(c->watch.fd, FIONREAD, &there) == 0 && there > 0) {
		c->cut = true;
		c->active_ns = c->run->now_ns;
		return false;
	}
	tell_evicted(c);
	conn_flush(c);
	conn_close(c);
	return true;
}

/* ---- keys ---------------------------------------------------------------- */

/* What has been looked at is given back. */
static void used(struct conn *c)
{
	if (c->in_at < c->in.n)
		return;
	text_release(&c->in);
	c->in_at = 0;
}

static void take_keys(struct conn *c)
{
	const char *key;
	size_t len;

	if (c->run->phase != OPEN) {
		if (!c->told)
			text_str(&c->out, "wq: the run ends: it takes no more keys\n");
		c->told = true;
		return;
	}
	while (!c->closing && !intake_full(c->run)) {
		enum split_found found =
		    split_next(&c->split, c->in.bytes, c->in.n, &c->in_at, &key, &len);

		if (found == SPLIT_NOTHING && c->ended) {
			c->closing = true;
			if (c->cut)
				tell_evicted(c);
			else
				found = split_end(&c->split, &key, &len);
		}
		if (found == SPLIT_NOTHING)
			break;
		take_key(c, found, key, len);
	}
	used(c);
	if (!c->closing && intake_full(c->run))
		conn_hold(c);
}

void conn_rest(struct conn *c, void (*fn)(struct run *r, const struct record *rec))
{
	enum split_found found;
	struct record rec;
	const char *key;
	size_t len;
	int there = 0;

	if (c->kind == CONN_FRESH)
		fill(c);
	if (c->kind != CONN_KEYS || c->closing)
		return;
	/* What is there now: somebody may go on writing for ever. */
	if (ioctl(c->watch.fd, FIONREAD, &there) < 0)
		there = 0;
	for (;;) {
		size_t before;

		while ((found = split_next(&c->split, c->in.bytes, c->in.n, &c->in_at, &key,
		                           &len)) != SPLIT_NOTHING)
			if (understand(c, found, key, len, &rec))
				fn(c->run, &rec);
		used(c);
		before = c->in.n;
		if (c->ended || there < 0)
			break;
		fill(c);
		if (c->in.n == before)
			break;
		there -= (int)(c->in.n - before);
	}
	/* Without its end it is a key only if nothing more can come. */
	if (c->ended && split_end(&c->split, &key, &len) == SPLIT_KEY &&
	    understand(c, SPLIT_KEY, key, len, &rec))
		fn(c->run, &rec);
}

/* ---- orders -------------------------------------------------------------- */

static void take_orders(struct conn *c)
{
	/* One answer at a time: the next order is not looked at before it is written. */
	while (!c->closing && is_written(c)) {
		const char *payload;
		size_t len;
		ssize_t n;

		if (c->busy == BUSY_ADD) {
			order_add_more(c);
			if (c->busy == BUSY_ADD)
				return;
			conn_flush(c);
			continue;
		}
		if (c->busy != BUSY_NOT)
			return;
		c->in_at += c->frame;
		c->frame = 0;
		n = frame_find(c->in.bytes + c->in_at, c->in.n - c->in_at, &payload, &len);
		if (n < 0) {
			conn_not(c, EXIT_TROUBLE, "not a command: expected LEN:command");
			c->closing = true;
		}
		if (n <= 0)
			break;
		c->frame = (size_t)n;
		order(c, payload, len);
		conn_flush(c);
	}
	if (c->frame == 0)
		used(c);
}

/* ---- turns --------------------------------------------------------------- */

static bool may_read(const struct conn *c)
{
	if (c->ended || c->closing || c->held || c->broken)
		return false;
	switch (c->kind) {
	case CONN_KEYS:
		return c->run->phase == OPEN && c->in_at == c->in.n;
	case CONN_ORDERS:
		return c->busy == BUSY_NOT && is_written(c) && c->in.n - c->in_at < FRAME_ROOM;
	default:
		return true;
	}
}

/* Nothing more can come of it. */
static bool is_over(const struct conn *c)
{
	/* Who has written keys and gone has written them all the same. */
	if (c->broken)
		return c->kind != CONN_KEYS || c->closing;
	if (!is_written(c))
		return false;
	return c->closing || (c->ended && c->kind != CONN_KEYS && c->busy == BUSY_NOT);
}

static void look_out(struct conn *c)
{
	uint32_t events = may_read(c) ? EPOLLIN : 0;

	if (!is_written(c))
		events |= EPOLLOUT;
	/* Who waits for an answer is minded only if he goes away. */
	if (events == 0 && c->busy > BUSY_ADD)
		events = EPOLLERR;
	loop_watch(&c->run->loop, &c->watch, events);
}

void conn_go(struct conn *c)
{
	conn_flush(c);
	if (c->kind == CONN_KEYS)
		take_keys(c);
	else if (c->kind == CONN_ORDERS)
		take_orders(c);
	conn_flush(c);
	if (is_over(c))
		conn_close(c);
	else
		look_out(c);
}

static void on_ready(struct watch *w, uint32_t events)
{
	struct conn *c = (struct conn *)(void *)w;

	if (may_read(c))
		fill(c);
	else if (c->kind == CONN_ORDERS && events & (EPOLLHUP | EPOLLERR))
		c->broken = true;
	conn_go(c);
}
