/*
 * A queue in an event loop, without threads: lines from standard input are
 * keys, and poll() says when one of them is ready.
 *
 *     printf 'a\nb\na\n' | eventloop
 *
 * What arrives in one read is added before any of it is worked on, so equal
 * lines merge.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wq.h>

struct reader {
	char line[4096]; /* the beginning of a line whose end has not been read yet */
	size_t len;
	long lines;
};

static int add_line(wq *q, struct reader *r)
{
	if (r->len == 0)
		return WQ_OK; /* an empty line is no key here */
	r->lines++;

	int rc = wq_add(q, r->line, r->len);

	r->len = 0;
	return rc;
}

/* Adds what can be read now. 1: there may be more; 0: end of input; < 0: a status. */
static int take_input(wq *q, struct reader *r)
{
	char buf[4096];
	ssize_t n = read(STDIN_FILENO, buf, sizeof buf);
	int rc = WQ_OK;

	for (ssize_t i = 0; i < n && rc >= 0; i++) {
		if (buf[i] == '\n')
			rc = add_line(q, r);
		else if (r->len < sizeof r->line)
			r->line[r->len++] = buf[i];
		else
			rc = WQ_ETOOLONG;
	}
	if (rc >= 0 && n <= 0)
		rc = add_line(q, r); /* the last line may lack its end */
	return rc < 0 ? rc : n > 0;
}

int main(void)
{
	struct reader r = {.len = 0};
	long keys = 0;
	wq *q;
	int rc = wq_new(&q, NULL);

	if (rc < 0) {
		fprintf(stderr, "eventloop: %s\n", wq_strerror(rc));
		return 1;
	}

	struct pollfd fds[2] = {
	    {.fd = wq_fd(q), .events = POLLIN},
	    {.fd = STDIN_FILENO, .events = POLLIN},
	};
	wq_item it;

	/* The descriptor is readable when a key is ready, and when the queue is shut down. */
	for (rc = WQ_EAGAIN; rc == WQ_EAGAIN && poll(fds, 2, -1) > 0;) {
		if (fds[1].revents) {
			int more = take_input(q, &r);

			if (more < 0)
				fprintf(stderr, "eventloop: %s\n", wq_strerror(more));
			if (more <= 0) {
				fds[1].fd = -1; /* poll() passes over it */
				wq_shutdown(q);
			}
		}
		if (!fds[0].revents)
			continue;
		while ((rc = wq_try_get(q, &it)) == WQ_OK) {
			printf("%s\n", (const char *)it.key);
			keys++;
			wq_done(q, &it);
		}
	}
	printf("%ld keys for %ld lines\n", keys, r.lines);
	return wq_free(q) != 0 || rc != WQ_ESHUTDOWN;
}
