/* Everything that is wrong is answered with an error, says why where options are wrong, and changes nothing. */
#include <stdio.h>
#include <string.h>
#include <wq.h>

static int failed;

static void is(int got, int want, const char *what)
{
	if (got == want)
		return;
	fprintf(stderr, "misuse: %s: %d, not %d\n", what, got, want);
	failed = 1;
}

/* The reason is this text. */
static void says(const char *want)
{
	if (strcmp(wq_last_error(), want) == 0)
		return;
	fprintf(stderr, "misuse: \"%s\", not \"%s\"\n", wq_last_error(), want);
	failed = 1;
}

#define IS(call, want) is((int)(call), want, #call)

int main(void)
{
	wq_queue *q, *other;
	wq_pool *p;
	wq_item it = {0}, none = {0};

	IS(wq_new(NULL, NULL), WQ_EINVAL);
	says("out is NULL");
	IS(wq_new(&q, &(wq_options){.reserved = {1}}), WQ_EINVAL);
	says("a reserved word of wq_options is not zero");
	IS(wq_new(&q, &(wq_options){.spin_ns = WQ_SECOND}), WQ_EINVAL);
	says("spin_ns is 1000000000, more than WQ_MILLISECOND");
	IS(wq_new(&q, NULL), WQ_OK);
	IS(wq_new(&other, NULL), WQ_OK);
	IS(wq_add(NULL, "a", 1), WQ_EINVAL);
	IS(wq_add(q, NULL, 1), WQ_EINVAL);
	IS(wq_add(q, "a", WQ_KEY_MAX + 1), WQ_ETOOLONG);
	IS(wq_add_str(q, NULL), WQ_EINVAL);
	IS(wq_get(q, NULL), WQ_EINVAL);
	IS(wq_try_get(q, &it), WQ_EAGAIN);
	IS(wq_done(q, &none), WQ_ESTALE);
	IS(wq_add_str(q, "a"), WQ_QUEUED);
	IS(wq_try_get(q, &it), WQ_OK);
	IS(wq_done(other, &it), WQ_EOTHERQUEUE);
	IS(wq_free(q), WQ_EBUSY);
	IS(wq_settle(q, &it, (wq_verdict){.kind = 99}), WQ_EINVAL);
	IS(wq_done(q, &it), WQ_OK);
	IS(wq_done(q, &it), WQ_ESTALE);
	IS(wq_pool_start(&p, q, &(wq_pool_options){.workers = 1}), WQ_EINVAL);
	IS(wq_pool_start(&p, q, NULL), WQ_EINVAL);
	IS(wq_drain_for(q, 0, &(wq_drain_options){.mode = (enum wq_drain_mode)9}, NULL), WQ_EINVAL);
	IS(wq_shutting_down(q), 0);
	IS(wq_len(q), 0);
	IS(wq_free(NULL), WQ_OK);
	IS(wq_free(other), WQ_OK);
	IS(wq_free(q), WQ_OK);
	return failed;
}
