/* A program that forks while a pool works: the child is told, the parent loses nothing. */
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wq.h>

static atomic_int handled;

static wq_verdict work(void *ctx, const wq_item *it)
{
	(void)ctx;
	(void)it;
	atomic_fetch_add(&handled, 1);
	return WQ_DONE;
}

int main(void)
{
	wq_queue *q;
	wq_pool *p;
	int status, rc;

	if (wq_new(&q, NULL) < 0 ||
	    wq_pool_start(&p, q, &(wq_pool_options){.workers = 2, .handler = work}) < 0)
		return 1;
	for (int i = 0; i < 1000; i++)
		if (wq_add(q, &i, sizeof i) < 0)
			return 1;

	pid_t child = fork();

	if (child == 0)
		_exit(wq_add_str(q, "lost") != WQ_EFORKED || wq_pool_free(p) != WQ_OK ||
		      wq_free(q) != WQ_OK);
	if (waitpid(child, &status, 0) != child || status != 0)
		return 1;
	rc = wq_pool_drain_for(p, 60 * WQ_SECOND, NULL, NULL);
	wq_pool_free(p);
	return wq_free(q) != 0 || rc != WQ_OK || atomic_load(&handled) != 1000;
}
