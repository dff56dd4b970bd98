/*
 * Two copies of the library in one process: one is linked statically, the other one, whose path
 * is the argument, is loaded. Threads of both use one delay queue, and sleep on its lock. A wake-up
 * that is lost between the copies ends in SIGALRM.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wq.h>

enum { THREADS = 4, ROUNDS = 100000 };

struct copy {
	int (*offer)(wq_delayqueue *dq, void *value, int64_t expiry_ns);
	int (*poll)(wq_delayqueue *dq, void **value);
};

static wq_delayqueue *dq;
static struct copy linked = {wq_delayqueue_offer, wq_delayqueue_poll}, loaded;

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

int main(int argc, char **argv)
{
	void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	pthread_t thread[THREADS];
	int ok = 1;

	if (!library || !find(library, "wq_delayqueue_offer", &loaded.offer) ||
	    !find(library, "wq_delayqueue_poll", &loaded.poll) || loaded.poll == linked.poll) {
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
	return !(ok && wq_delayqueue_free(dq) == 0);
}
