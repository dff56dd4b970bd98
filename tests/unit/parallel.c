/* Of the parallel loop: the child of a fork, which may come to be while another thread steals. */
#include "../support/support.h"

#include <unistd.h>

#include "../../src/pool/parallel.c"

static int piece(void *ctx, size_t i)
{
	(void)ctx;
	(void)i;
	return 0;
}

/* All lanes are empty, and a theft has begun that nobody ends: its thread is not in this process. */
static void test_a_child_waits_for_no_theft(void **state)
{
	struct loop p = {.pieces = 1, .chunk = 1, .fn = piece, .nlanes = 1};
	struct lane l = {.loop = &p};

	(void)state;
	p.lane = &l;
	atomic_init(&l.range, range_of(1, 1));
	atomic_store(&p.begun, 1);
	forked(&p.fork);
	alarm(10);
	run(&l);
	alarm(0);
	IS(l.worked, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_child_waits_for_no_theft),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
