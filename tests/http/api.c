/* The three calls of wq/http.h: what they refuse, and what they leave behind. */
#include "support/support.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wq/http.h>

static int setup(void **state)
{
	wq_registry *r;

	IS(wq_registry_new(&r), WQ_OK);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	IS(wq_registry_free(*state), WQ_OK);
	return 0;
}

static int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void test_refused(void **state)
{
	static const char reserved[] = "a reserved word of wq_http_options is not zero";
	wq_registry *r = *state;
	wq_http *h = (wq_http *)&r;
	wq_http_options o = {.registry = r};

	IS(wq_http_start(NULL, &o), WQ_EINVAL);
	assert_string_equal(wq_last_error(), "out is NULL");
	IS(wq_http_start(&h, NULL), WQ_EINVAL);
	assert_string_equal(wq_last_error(), "the options are NULL");
	IS(wq_http_start(&h, &(wq_http_options){0}), WQ_EINVAL);
	assert_string_equal(wq_last_error(), "there is no registry");
	o.hosts = (const char *const[]){"a", "", NULL};
	IS(wq_http_start(&h, &o), WQ_EINVAL);
	assert_string_equal(wq_last_error(), "a name in hosts is empty");
	o.hosts = NULL;
	o.reserved0 = 1;
	IS(wq_http_start(&h, &o), WQ_EINVAL);
	assert_string_equal(wq_last_error(), reserved);
	o.reserved0 = 0;
	for (size_t i = 0; i < LENGTH(o.reserved); i++) {
		wq_fail(WQ_EIO, NULL);
		o.reserved[i] = 1;
		IS(wq_http_start(&h, &o), WQ_EINVAL);
		assert_string_equal(wq_last_error(), reserved);
		o.reserved[i] = 0;
	}
	IS(wq_http_port(NULL), WQ_EINVAL);
	IS(wq_http_stop(NULL), WQ_OK);
	assert_ptr_equal(h, &r); /* untouched */
}

static void test_not_an_address(void **state)
{
	static const char *const wrong[] = {"",          "localhost",    "1.2.3",
	                                    "1.2.3.4.5", "127.0.0.1:80", "256.0.0.1",
	                                    ":",         "[::1]",        "::1%lo",
	                                    "/tmp/x"};
	wq_http *h;

	for (size_t i = 0; i < LENGTH(wrong); i++) {
		char text[WQ_ERROR_MAX];

		IS(wq_http_start(&h, &(wq_http_options){.registry = *state, .address = wrong[i]}),
		   WQ_EINVAL);
		snprintf(text, sizeof text, "\"%s\" is no IPv4 or IPv6 address", wrong[i]);
		assert_string_equal(wq_last_error(), text);
	}
}

/* It is looked at by whoever asks: it stays until the last server is stopped. */
static void test_holds_its_registry(void **state)
{
	wq_http *h[2];

	for (size_t i = 0; i < LENGTH(h); i++)
		IS(wq_http_start(&h[i], &(wq_http_options){.registry = *state}), WQ_OK);
	for (size_t i = 0; i < LENGTH(h); i++) {
		IS(wq_registry_free(*state), WQ_EBUSY);
		IS(wq_http_stop(h[i]), WQ_OK);
	}
	IS(wq_registry_release(*state), WQ_ESTALE);
}

static void test_taken(void **state)
{
	char text[WQ_ERROR_MAX];
	wq_http *first, *second;
	int files;

	IS(wq_http_start(&first, &(wq_http_options){.registry = *state}), WQ_OK);
	files = open_files();
	snprintf(text, sizeof text, "cannot listen on 127.0.0.1, port %d: Address already in use",
	         wq_http_port(first));
	for (int i = 0; i < 10; i++) {
		errno = 0;
		IS(wq_http_start(&second,
		                 &(wq_http_options){.registry = *state,
		                                    .port = (uint16_t)wq_http_port(first)}),
		   WQ_EIO);
		IS(errno, EADDRINUSE);
		assert_string_equal(wq_last_error(), text);
	}
	IS(open_files(), files);
	IS(wq_http_stop(first), WQ_OK);
}

/* 192.0.2.0/24 is for documentation: nobody has it. */
static void test_not_ours(void **state)
{
	wq_http *h;

	errno = 0;
	IS(wq_http_start(&h, &(wq_http_options){.registry = *state, .address = "192.0.2.1"}),
	   WQ_EIO);
	IS(errno, EADDRNOTAVAIL);
	assert_string_equal(wq_last_error(),
	                    "cannot listen on 192.0.2.1, port 0: Cannot assign requested address");
}

static int connect_to(const wq_http *h)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
	                         .sin_port = htons((uint16_t)wq_http_port(h))};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	return fd;
}

/* Several servers of one registry; each stop closes what it has. */
static void test_start_and_stop(void **state)
{
	wq_http *h[3];
	int before = open_files();

	for (int round = 0; round < 20; round++) {
		int fd[LENGTH(h)];

		for (size_t i = 0; i < LENGTH(h); i++) {
			IS(wq_http_start(&h[i], &(wq_http_options){.registry = *state}), WQ_OK);
			assert_in_range(wq_http_port(h[i]), 1, 65535);
			fd[i] = connect_to(h[i]);
		}
		for (size_t i = 0; i < LENGTH(h); i++) {
			char byte;

			IS(wq_http_stop(h[i]), WQ_OK);
			assert_true(read(fd[i], &byte, 1) <= 0);
			close(fd[i]);
		}
	}
	IS(open_files(), before);
}

static int first_free(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

/* No descriptor is to be had, then one, then two ...: a start that fails gives back what it took. */
static void test_no_descriptors(void **state)
{
	struct rlimit old, few;
	wq_http *h;
	int files = open_files(), failed = 0;
	int rc = WQ_EIO;

	IS(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	for (few.rlim_cur = (rlim_t)first_free(); rc != WQ_OK; few.rlim_cur++) {
		IS(setrlimit(RLIMIT_NOFILE, &few), 0);
		rc = wq_http_start(&h, &(wq_http_options){.registry = *state});
		IS(setrlimit(RLIMIT_NOFILE, &old), 0);
		if (rc != WQ_OK) {
			IS(rc, WQ_EIO);
			assert_non_null(strstr(wq_last_error(), ": Too many open files"));
			IS(open_files(), files);
			failed++;
		}
	}
	/* The socket, the event, libmicrohttpd's own. */
	assert_in_range(failed, 3, 10);
	IS(wq_http_stop(h), WQ_OK);
}

/* Whether the server answers: it does so also to what is no request. */
static bool answers(int port)
{
	static const char request[] = "GET /healthz HTTP/1.0\r\n\r\n";
	struct sockaddr_in to = {.sin_family = AF_INET,
	                         .sin_port = htons((uint16_t)port),
	                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval patience = {.tv_sec = 5};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char byte;
	bool did;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	did = connect(fd, (const struct sockaddr *)&to, sizeof to) == 0 &&
	      write(fd, request, sizeof request - 1) > 0 && read(fd, &byte, 1) == 1;
	close(fd);
	return did;
}

/* The child of a fork that stops what its parent has started does not stop it for the parent. */
static void test_stopped_by_a_child(void **state)
{
	wq_http *h;
	int status = -1;
	pid_t pid;

	IS(wq_http_start(&h, &(wq_http_options){.registry = *state}), WQ_OK);
	assert_true(answers(wq_http_port(h)));
	pid = fork();
	if (pid == 0) {
		alarm(20);
		_exit(wq_http_stop(h) == WQ_OK ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(answers(wq_http_port(h)));
	IS(wq_http_stop(h), WQ_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_not_an_address, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_holds_its_registry, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_taken, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_not_ours, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_start_and_stop, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_stopped_by_a_child, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_no_descriptors, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
