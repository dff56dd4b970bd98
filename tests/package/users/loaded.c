/* loaded LIBRARY: a program that loads libwq when it runs, uses a queue, and unloads it; three times. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <wq.h>

/* A pointer to a function out of one to data, as POSIX wants it. */
static int find(void *library, const char *name, void *function)
{
	void *at = dlsym(library, name);

	memcpy(function, &at, sizeof at);
	return at != NULL;
}

static int use(const char *path)
{
	int (*new)(wq_queue **, const wq_options *), (*add)(wq_queue *, const char *);
	int (*get)(wq_queue *, wq_item *), (*done)(wq_queue *, const wq_item *),
	    (*release)(wq_queue *);
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	wq_queue *q;
	wq_item it;
	int ok;

	if (!library || !find(library, "wq_new", &new) || !find(library, "wq_add_str", &add) ||
	    !find(library, "wq_try_get", &get) || !find(library, "wq_done", &done) ||
	    !find(library, "wq_free", &release)) {
		fprintf(stderr, "loaded: %s\n", dlerror());
		return 0;
	}
	ok = new (&q, NULL) == WQ_OK &&add(q, "a") == WQ_QUEUED &&get(q, &it) ==
	     WQ_OK &&done(q, &it) == WQ_OK &&release(q) == WQ_OK;
	return dlclose(library) == 0 && ok;
}

int main(int argc, char **argv)
{
	int ok = argc == 2;

	for (int i = 0; i < 3 && ok; i++)
		ok = use(argv[1]);
	return !ok;
}
