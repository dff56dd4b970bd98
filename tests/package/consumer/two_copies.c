/*
 * Two copies of the library in one process: one is linked statically, the other one, whose path
 * is the argument, is loaded. Threads of both use one delay queue, and sleep on its lock. A wake-up
 * that is lost between the copies ends in SIGALRM. What one makes the other may free, and both
 * notice forks afterwards.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wq.h>

enum { THREADS = 4, ROUNDS = 100000 };

struct copy {
	int (*offer)(wq_delayqueue *dq, void *value, int64_t expiry_ns);
	int (*poll)(wq_delayqueue *dq, void **value);
	int (*make)(wq_queue **out, const wq_options *options);
	int (*add)(wq_queue *q, const void *key, size_t len);
	int (*free)(wq_queue *q);
};

static wq_delayqueue *dq;
static struct copy linked = {wq_delayqueue_offer, wq_delayqueue_poll, wq_new, wq_add, wq_free},
		   loaded;

static void *use(void *arg)
{
	const struct copy *c = arg;
	void *value;

	for (int i = 0; i < ROUNDS; i++) {
		if (c->offer(dq, &dq, 0) != WQ_OK)
			return NULL;
		while (c->poll(dq, &value) != WQ_OK)
			;
	}
	return arg;
}

/* dlsym() gives a pointer to an object; C wants one to a function. */
static int find(void *library, const char *name, void *function)
{
	void *at = dlsym(library, name);

	memcpy(function, &at, sizeof at);
	return at != NULL;
}

/* A queue of each copy; then one that `maker` makes and `other` frees, and two more. */
static int free_for(const struct copy *maker, const struct copy *other)
{
	wq_queue *first, *gone, *last;
	int status = 1;
	pid_t child;

	if (other->make(&first, NULL) != WQ_OK || maker->make(&gone, NULL) != WQ_OK ||
	    other->free(gone) != WQ_OK || maker->make(&last, NULL) != WQ_OK)
		return 0;
	child = fork();
	if (child == 0)
		_exit(other->add(first, "k", 1) != WQ_EFORKED ||
		      maker->add(last, "k", 1) != WQ_EFORKED);
	waitpid(child, &status, 0);
	return status == 0 && other->free(last) == WQ_OK && maker->free(first) == WQ_OK;
}

int main(int argc, char **argv)
{
	void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	pthread_t thread[THREADS];
	int ok = 1;

	if (!library || !find(library, "wq_delayqueue_offer", &loaded.offer) ||
	    !find(library, "wq_delayqueue_poll", &loaded.poll) ||
	    !find(library, "wq_new", &loaded.make) || !find(library, "wq_add", &loaded.add) ||
	    !find(library, "wq_free", &loaded.free) || loaded.poll == linked.poll) {
		fprintf(stderr, "there is no second copy\n");
		return 1;
	}
	alarm(120);
	if (wq_delayqueue_new(&dq, NULL) != WQ_OK)
		return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, use, i % 2 ? &linked : &loaded);
	for (int i = 0; i < THREADS; i++) {
		void *result;

		pthread_join(thread[i], &result);
		ok &= result != NULL;
	}
	ok &= free_for(&loaded, &linked) && free_for(&linked, &loaded);
	return !(ok && wq_delayqueue_free(dq) == 0);
}
