/*
 * The promises of wq/delayqueue.h: what comes when, and in which order. Who
 * waits for it is in delayqueue_wait.c.
 */
#include "delayqueue_rig.h"

static uint64_t seed;

static void the_earliest_comes_first(void **state)
{
	struct delay *f = *state;

	offer(f, "c", 30);
	offer(f, "a", 10);
	offer(f, "d", 40);
	offer(f, "b", 20);
	wq_manual_clock_advance(f->mc, 100);
	poll_is(f, "a");
	poll_is(f, "b");
	offer(f, "e", 35); /* expired already; it has its place all the same */
	poll_is(f, "c");
	poll_is(f, "e");
	poll_is(f, "d");
	poll_nothing(f, WQ_EAGAIN);
}

static void equal_ones_come_as_they_were_offered(void **state)
{
	static char letters[200][12];
	struct delay *f = *state;

	for (int i = 0; i < 200; i++) {
		snprintf(letters[i], sizeof letters[i], "%d", i);
		offer(f, letters[i], i % 3);
	}
	wq_manual_clock_advance(f->mc, 3);
	for (int time = 0; time < 3; time++)
		for (int i = time; i < 200; i += 3)
			poll_is(f, letters[i]);
	poll_nothing(f, WQ_EAGAIN);
}

/* Random offers, polls and steps against a sorted array. */
static void random_tape(void **state)
{
	enum { OPS = 20000, MOST = 300 };
	static struct {
		int64_t expiry_ns;
		int number;
	} line[MOST];
	static int numbers[OPS];
	struct delay *f = *state;
	uint64_t rng = seed;
	int n = 0;

	for (int op = 0; op < OPS; op++) {
		int64_t now = wq_manual_clock_now(f->mc);
		void *value = NULL;

		switch (rng_below(&rng, 5)) {
		case 0:
		case 1:
			if (n == MOST)
				break;

			int64_t expiry = now - 20 + (int64_t)rng_below(&rng, 100);
			int at = n++;

			numbers[op] = op;
			IS(wq_delayqueue_offer(f->dq, &numbers[op], expiry), WQ_OK);
			for (; at > 0 && line[at - 1].expiry_ns > expiry; at--)
				line[at] = line[at - 1];
			line[at].expiry_ns = expiry;
			line[at].number = op;
			break;
		case 2:
		case 3:
			if (n > 0 && line[0].expiry_ns <= now) {
				IS(wq_delayqueue_take_until(f->dq, &value, 0), WQ_OK);
				IS(*(int *)value, line[0].number);
				memmove(line, line + 1, (size_t)--n * sizeof *line);
			} else {
				IS(wq_delayqueue_take_until(f->dq, &value, 0), WQ_ETIMEDOUT);
				assert_null(value);
			}
			break;
		default:
			wq_manual_clock_advance(f->mc, (int64_t)rng_below(&rng, 20));
		}
		IS(wq_delayqueue_size(f->dq), n);
		IS(wq_delayqueue_next(f->dq), n ? line[0].expiry_ns : WQ_NEVER);
	}
}

/* ---- times ------------------------------------------------------------------ */

static void a_value_is_there_at_its_nanosecond(void **state)
{
	struct delay *f = *state;

	offer(f, "a", 1000);
	poll_nothing(f, WQ_EAGAIN);
	wq_manual_clock_advance(f->mc, 999);
	poll_nothing(f, WQ_EAGAIN);
	IS(wq_delayqueue_size(f->dq), 1);
	wq_manual_clock_advance(f->mc, 1);
	poll_is(f, "a");
	poll_nothing(f, WQ_EAGAIN);
}

static void a_time_that_has_passed_is_due_at_once(void **state)
{
	struct delay *f = *state;
	void *value;

	IS(wq_delayqueue_offer(f->dq, V("zero"), 0), WQ_OK);
	IS(wq_delayqueue_offer(f->dq, V("now"), START_NS), WQ_OK);
	IS(wq_delayqueue_offer(f->dq, V("before"), START_NS - 1), WQ_OK);
	IS(wq_delayqueue_take(f->dq, &value), WQ_OK);
	value_is(value, "zero");
	IS(wq_delayqueue_take_until(f->dq, &value, 0), WQ_OK);
	value_is(value, "before");
	poll_is(f, "now");
}

static void size_and_next(void **state)
{
	struct delay *f = *state;

	IS(wq_delayqueue_size(f->dq), 0);
	IS(wq_delayqueue_next(f->dq), WQ_NEVER);
	offer(f, "b", 20);
	IS(wq_delayqueue_next(f->dq), START_NS + 20);
	offer(f, "a", 10);
	offer(f, "c", 30);
	IS(wq_delayqueue_next(f->dq), START_NS + 10);
	IS(wq_delayqueue_size(f->dq), 3);
	wq_manual_clock_advance(f->mc, 15);
	IS(wq_delayqueue_now(f->dq), START_NS + 15);
	IS(wq_delayqueue_size(f->dq), 3); /* expired ones count */
	IS(wq_delayqueue_next(f->dq), START_NS + 10);
	poll_is(f, "a");
	IS(wq_delayqueue_size(f->dq), 2);
	IS(wq_delayqueue_next(f->dq), START_NS + 20);
}

static void never_is_never_due(void **state)
{
	struct delay *f = *state;

	IS(wq_delayqueue_offer(f->dq, V("never"), WQ_NEVER), WQ_OK);
	IS(wq_delayqueue_next(f->dq), WQ_NEVER);
	IS(wq_delayqueue_size(f->dq), 1);
	offer(f, "a", WQ_HOUR);
	IS(wq_delayqueue_offer(f->dq, V("last"), WQ_NEVER - 1), WQ_OK);
	IS(wq_delayqueue_next(f->dq), START_NS + WQ_HOUR);
	wq_manual_clock_set(f->mc, WQ_NEVER);
	poll_is(f, "a");
	poll_is(f, "last");
	poll_nothing(f, WQ_EAGAIN);
	IS(wq_delayqueue_size(f->dq), 1);
	IS(wq_delayqueue_free(f->dq), 1);
	f->dq = NULL;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    WITH_DELAY(the_earliest_comes_first),
	    WITH_DELAY(equal_ones_come_as_they_were_offered),
	    WITH_DELAY(random_tape),
	    WITH_DELAY(a_value_is_there_at_its_nanosecond),
	    WITH_DELAY(a_time_that_has_passed_is_due_at_once),
	    WITH_DELAY(size_and_next),
	    WITH_DELAY(never_is_never_due),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("delayqueue", tests, NULL, NULL);
}
