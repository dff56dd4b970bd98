/*
 * A queue in an epoll loop, without threads. Lines from standard input (a pipe or a terminal:
 * epoll takes no files) are keys; the queue's descriptor is readable when one of them is ready.
 *
 *     printf 'a\nb\na\nflaky c\nlater d\n' | epoll
 *
 * What arrives in one read is added before any of it is worked on, so equal lines merge.
 * "flaky" ones fail twice, and "later" ones have to wait a moment: keys that wait for their next
 * attempt or for their time make the descriptor readable when it has come. The loop needs
 * no timers for them.
 */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <wq.h>

struct reader {
	char line[4096]; /* the beginning of a line whose end has not been read yet */
	size_t len;
};

static int add_line(wq_queue *q, struct reader *r)
{
	size_t len = r->len;

	r->len = 0;
	if (len == 0)
		return WQ_OK; /* an empty line is no key here */
	if (len > 6 && memcmp(r->line, "later ", 6) == 0)
		return wq_add_after(q, r->line, len, WQ_MILLISECOND);
	return wq_add(q, r->line, len);
}

/* Adds what can be read now. 1: there may be more; 0: end of input; < 0: a status. */
static int take_input(wq_queue *q, struct reader *r)
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

static wq_verdict work_on(const wq_item *it)
{
	if (strncmp(it->key, "flaky ", 6) == 0 && it->attempts < 3) {
		printf("%s: failed\n", (const char *)it->key);
		return WQ_RETRY;
	}
	printf("%s: done, attempt %u\n", (const char *)it->key, it->attempts);
	return WQ_DONE;
}

/* Everything that is ready. WQ_EAGAIN: nothing is at the moment; WQ_ESHUTDOWN: that was all. */
static int work(wq_queue *q)
{
	wq_item it;
	int rc;

	while ((rc = wq_try_get(q, &it)) == WQ_OK)
		wq_settle(q, &it, work_on(&it));
	return rc;
}

/*
 * The end of the input: no more keys, but those that are there are waited for. A drain whose
 * deadline has come begins and does not block; the loop does what is left of it.
 */
static void begin_drain(wq_queue *q)
{
	int rc = wq_drain_until(q, 0, &(wq_drain_options){.mode = WQ_DRAIN_WAIT}, NULL);

	if (rc < 0 && rc != WQ_ETIMEDOUT)
		fprintf(stderr, "epoll: %s\n", wq_strerror(rc));
}

static int watch(int epoll, int fd)
{
	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd,
	                 &(struct epoll_event){.events = EPOLLIN, .data.fd = fd});
}

int main(void)
{
	struct reader r = {.len = 0};
	struct epoll_event event;
	int epoll = epoll_create1(EPOLL_CLOEXEC), rc = WQ_EAGAIN;
	wq_queue *q;

	if (wq_new(&q, NULL) < 0 || watch(epoll, wq_fd(q)) < 0 || watch(epoll, STDIN_FILENO) < 0) {
		perror("epoll");
		return 1;
	}
	while (rc == WQ_EAGAIN && epoll_wait(epoll, &event, 1, -1) > 0) {
		if (event.data.fd == STDIN_FILENO) {
			int more = take_input(q, &r);

			if (more < 0)
				fprintf(stderr, "epoll: %s\n", wq_strerror(more));
			if (more <= 0) {
				epoll_ctl(epoll, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
				begin_drain(q);
			}
		}
		rc = work(q);
	}
	close(epoll);
	return wq_free(q) != 0 || rc != WQ_ESHUTDOWN;
}
