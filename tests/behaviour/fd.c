/* The descriptor for event loops. */
#include "../support/support.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

static int readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1 && (p.revents & POLLIN);
}

static void fd_is_one_and_close_on_exec(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	int fd = wq_fd(q);

	assert_true(fd >= 0);
	IS(wq_fd(q), fd);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	IS(readable(fd), 0);
}

/* [FD] Readable when a key is ready, until a Get without waiting finds nothing; ... */
static void fd_readable_when_a_key_is_ready(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	int fd = wq_fd(q);
	wq_item it;

	IS(wq_try_get(q, &it), WQ_EAGAIN);
	IS(readable(fd), 0);
	wq_add_str(q, "a");
	IS(readable(fd), 1);
	IS(readable(fd), 1); /* level, not edge */
	wq_add_str(q, "b");
	get_is(q, &it, "a");
	IS(readable(fd), 1); /* b is ready */
	IS(wq_done(q, &it), WQ_OK);
	take_is(q, "b", WQ_OK);
	IS(wq_try_get(q, &it), WQ_EAGAIN);
	IS(readable(fd), 0); /* cleared by the Get that found nothing */
	wq_add_str(q, "c");
	IS(readable(fd), 1);
	take_is(q, "c", WQ_OK);
}

static void fd_made_late_is_readable_at_once(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;

	wq_add_str(q, "a");
	IS(readable(wq_fd(q)), 1);
}

static void fd_made_after_shutdown_is_readable_at_once(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;

	wq_shutdown(q);
	IS(readable(wq_fd(q)), 1);
}

/* Every way in which a key becomes ready. */
static void fd_readable_by_every_way(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	int fd = wq_fd(q);
	wq_key key = {"a", 1};
	wq_item it, it2;

	IS(wq_add_many(q, &key, 1, NULL), 1);
	IS(readable(fd), 1);
	get_is(q, &it, "a");
	IS(wq_get_many_until(q, &it2, 1, WQ_NOWAIT), WQ_EAGAIN); /* clears it as well */
	IS(readable(fd), 0);
	wq_add_str(q, "a");
	IS(readable(fd), 0); /* held: not ready */
	IS(wq_done(q, &it), WQ_QUEUED);
	IS(readable(fd), 1);

	get_is(q, &it, "a");
	IS(wq_try_get(q, &it2), WQ_EAGAIN);
	IS(readable(fd), 0);
	IS(wq_requeue(q, &it, WQ_HEAD), WQ_QUEUED);
	IS(readable(fd), 1);

	get_is(q, &it, "a");
	IS(wq_try_get(q, &it2), WQ_EAGAIN);
	wq_add_str(q, "a");
	IS(wq_done_many(q, &it, 1, NULL), 1);
	IS(readable(fd), 1);

	/* next, without waiting, that finds nothing */
	get_is(q, &it, "a");
	IS(wq_next_until(q, &it, WQ_NOWAIT), WQ_EAGAIN);
	IS(readable(fd), 0);
	IS(wq_add_str(q, "z"), WQ_QUEUED);
	IS(readable(fd), 1);
	get_is(q, &it, "z");
	IS(wq_next_many_until(q, &it, 1, 1, WQ_NOWAIT), WQ_EAGAIN);
	IS(readable(fd), 0);
}

/* [FD] ... and for good once the queue is shut down. */
static void fd_readable_after_shutdown(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	int fd = wq_fd(q);
	wq_item it;

	wq_add_str(q, "a");
	get_is(q, &it, "a");
	IS(wq_try_get(q, &it), WQ_EAGAIN);
	IS(readable(fd), 0);
	wq_shutdown(q);
	IS(readable(fd), 1);
	IS(wq_try_get(q, &it), WQ_ESHUTDOWN);
	IS(readable(fd), 1); /* still shut down */
	IS(wq_done(q, &it), WQ_OK);
	IS(readable(fd), 1);
}

static void fd_readable_after_drain(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	int fd = wq_fd(q);

	IS(wq_drain_for(q, 0, NULL, NULL), WQ_OK);
	IS(readable(fd), 1);
}

/* The program of the header's example, without a thread. */
/* A drain that waits for delayed keys, and gives up waiting itself: the queue stays in that state. */
static void begin_patient_drain(wq_queue *q)
{
	wq_drain_options o = {.mode = WQ_DRAIN_WAIT};

	IS(wq_drain_until(q, 0, &o, NULL), WQ_ETIMEDOUT);
}

/* The last hold is what an event loop waits for then. */
static void fd_readable_when_a_patient_drain_has_ended(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	int fd = wq_fd(q);
	wq_item it, other;

	wq_add_str(q, "a");
	get_is(q, &it, "a");
	begin_patient_drain(q);
	IS(wq_try_get(q, &other), WQ_EAGAIN);
	IS(readable(fd), 0);
	IS(wq_done(q, &it), WQ_OK);
	IS(readable(fd), 1);
	IS(wq_try_get(q, &other), WQ_ESHUTDOWN);
}

static void fd_readable_when_a_patient_drain_is_ended(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	int fd = wq_fd(q);
	wq_item it;

	IS(wq_add_after(q, "a", 1, 3600 * WQ_SECOND), WQ_DELAYED);
	begin_patient_drain(q);
	IS(wq_try_get(q, &it), WQ_EAGAIN);
	IS(readable(fd), 0);
	wq_shutdown(q);
	IS(readable(fd), 1);
	IS(wq_try_get(q, &it), WQ_ESHUTDOWN);
}

static void fd_drives_an_event_loop(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	struct pollfd p = {.fd = wq_fd(q), .events = POLLIN};
	int worked = 0, rc = WQ_OK;

	for (uint32_t i = 0; i < 100; i++)
		wq_add(q, &i, sizeof i);
	while (rc != WQ_ESHUTDOWN) {
		wq_item it;

		IS(poll(&p, 1, -1), 1);
		while ((rc = wq_try_get(q, &it)) == WQ_OK) {
			uint32_t more = (uint32_t)(100 + worked);

			if (worked++ < 200)
				wq_add(q, &more, sizeof more);
			IS(wq_done(q, &it), WQ_OK);
		}
		if (worked == 300)
			wq_shutdown(q);
	}
	IS(worked, 300);
}

static int64_t poll_main(void *arg)
{
	struct pollfd p = {.fd = *(int *)arg, .events = POLLIN};

	return poll(&p, 1, -1);
}

static void fd_wakes_who_polls(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	int fd = wq_fd(q);
	struct actor a;

	actor_start(&a, poll_main, &fd);
	actor_blocks(&a);
	wq_add_str(q, "a");
	IS(actor_join(&a), 1);
	take_is(q, "a", WQ_OK);
	wq_item it;

	IS(wq_try_get(q, &it), WQ_EAGAIN);
	actor_start(&a, poll_main, &fd);
	actor_blocks(&a);
	wq_shutdown(q);
	IS(actor_join(&a), 1);
}

/* A waiting Get and the descriptor side by side: the Get gets the key. */
static void fd_beside_a_blocked_get(void **state)
{
	wq_queue *q = ((struct fixture *)*state)->q;
	int fd = wq_fd(q);
	struct getter g;
	wq_item it;

	getter_block(&g, q, WQ_NEVER);
	wq_add_str(q, "a");
	IS(getter_join(&g), WQ_OK);
	IS(wq_try_get(q, &it), WQ_EAGAIN); /* readable for nothing is allowed; this clears it */
	IS(readable(fd), 0);
	IS(wq_done(q, &g.item), WQ_OK);
}

static void fd_is_closed_by_free(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f, NULL);

	int fd = wq_fd(f.q);

	assert_true(fd >= 0);
	fixture_close(&f, 0);
	IS(fcntl(fd, F_GETFD), -1);
	IS(errno, EBADF);
}

/* `left` descriptors can still be opened. */
static void with_descriptors(struct fixture *f, rlim_t left)
{
	struct rlimit old, few;
	int next = open("/dev/null", O_RDONLY | O_CLOEXEC), used = next;

	assert_true(next >= 0);
	IS(close(next), 0);
	IS(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	few.rlim_cur = (rlim_t)next + left;
	IS(setrlimit(RLIMIT_NOFILE, &few), 0);

	int fd = wq_fd(f->q);

	IS(setrlimit(RLIMIT_NOFILE, &old), 0);
	IS(fd, WQ_EIO);
	check_whole(f->q, 0, 0);
	next = open("/dev/null", O_RDONLY | O_CLOEXEC); /* none is lost */
	IS(close(next), 0);
	IS(next, used);
}

static void fd_none_left(void **state)
{
	struct fixture *f = *state;

	with_descriptors(f, 0);
	with_descriptors(f, 1); /* enough for half of it */
	assert_true(wq_fd(f->q) >= 0);
	wq_add_str(f->q, "a");
	IS(readable(wq_fd(f->q)), 1);
}

/* How many events an edge has brought. */
static int edges(int outer, int timeout_ms)
{
	struct epoll_event ev;

	return epoll_wait(outer, &ev, 1, timeout_ms);
}

static void get_all(wq_queue *q, int last)
{
	wq_item it;
	int rc;

	while ((rc = wq_try_get(q, &it)) == WQ_OK)
		IS(wq_done(q, &it), WQ_OK);
	IS(rc, last);
}

/* [FD] With EPOLLET: whoever gets until nothing is ready misses nothing. On the real clock. */
static void fd_edge_triggered(void **state)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	int outer = epoll_create1(EPOLL_CLOEXEC);
	wq_queue *q;
	wq_item it;

	(void)state;
	assert_true(outer >= 0);
	IS(wq_new(&q, NULL), WQ_OK);
	IS(wq_add_str(q, "before"), WQ_QUEUED);
	IS(epoll_ctl(outer, EPOLL_CTL_ADD, wq_fd(q), &ev), 0);
	IS(edges(outer, 0), 1);
	get_all(q, WQ_EAGAIN);
	IS(edges(outer, 0), 0);
	for (int i = 0; i < 100; i++) {
		IS(wq_add_str(q, "a"), WQ_QUEUED);
		IS(wq_add_str(q, "b"), WQ_QUEUED);
		IS(edges(outer, 0), 1);
		IS(edges(outer, 0), 0); /* an edge, not a level */
		get_all(q, WQ_EAGAIN);
	}
	/* Another thread takes the key: the edge comes, the get finds nothing, the next edge comes. */
	IS(wq_add_str(q, "a"), WQ_QUEUED);
	IS(wq_get(q, &it), WQ_OK);
	IS(wq_done(q, &it), WQ_OK);
	IS(edges(outer, 0), 1);
	get_all(q, WQ_EAGAIN);
	/* What comes due, also at a time that has passed when the timer is set. */
	for (int i = 0; i < 20; i++) {
		/* Delayed, or queued: on a slow machine the time has passed before the call is over. */
		assert_true(wq_add_after(q, "a", 1, 100 * WQ_MICROSECOND) > 0);
		assert_true(wq_add_after(q, "b", 1, 101 * WQ_MICROSECOND) > 0);
		while (wq_state(q, "a", 1) || wq_state(q, "b", 1)) {
			IS(edges(outer, 10000), 1);
			get_all(q, WQ_EAGAIN);
		}
	}
	while (edges(outer, 0) == 1)
		get_all(q, WQ_EAGAIN);
	/* A shutdown, and one beside a key that is ready. */
	IS(wq_add_str(q, "a"), WQ_QUEUED);
	IS(wq_shutdown(q), WQ_OK);
	IS(edges(outer, 0), 1);
	get_all(q, WQ_ESHUTDOWN);
	IS(wq_free(q), 0);
	IS(wq_new(&q, NULL), WQ_OK);
	IS(epoll_ctl(outer, EPOLL_CTL_ADD, wq_fd(q), &ev), 0);
	IS(edges(outer, 0), 0);
	IS(wq_shutdown(q), WQ_OK);
	IS(edges(outer, 0), 1);
	IS(wq_free(q), 0);
	IS(close(outer), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_FIXTURE(fd_is_one_and_close_on_exec),
	    WITH_FIXTURE(fd_readable_when_a_key_is_ready),
	    WITH_FIXTURE(fd_made_late_is_readable_at_once),
	    WITH_FIXTURE(fd_made_after_shutdown_is_readable_at_once),
	    WITH_FIXTURE(fd_readable_by_every_way),
	    WITH_FIXTURE(fd_readable_after_shutdown),
	    WITH_FIXTURE(fd_readable_after_drain),
	    WITH_FIXTURE(fd_readable_when_a_patient_drain_has_ended),
	    WITH_FIXTURE(fd_readable_when_a_patient_drain_is_ended),
	    WITH_FIXTURE(fd_drives_an_event_loop),
	    WITH_FIXTURE(fd_wakes_who_polls),
	    WITH_FIXTURE(fd_beside_a_blocked_get),
	    cmocka_unit_test(fd_is_closed_by_free),
	    WITH_FIXTURE(fd_none_left),
	    cmocka_unit_test(fd_edge_triggered),
	};

	return cmocka_run_group_tests_name("fd", tests, NULL, NULL);
}
