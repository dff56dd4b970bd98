/*
 * What a queue under test is given: an allocator that keeps books, orders other
 * than the default one, and limiters.
 */
#ifndef WQ_TEST_PARTS_H
#define WQ_TEST_PARTS_H

#include "model.h"

/* What the queue has asked for and not given back. */
struct books {
	size_t bytes;
	size_t blocks;
};

wq_allocator books_allocator(struct books *b);

/* A list of nodes. MODEL_LIFO and MODEL_BUSIEST say the same as model.c does. */
struct line {
	wq_node *head, *tail;
	int freed; /* calls of the free hook */
};

wq_order line_order(struct line *l, enum model_order order);

/*
 * One byte is a limiter: the one that the queue is given, and in *model what says
 * the same alone. plain: only what is exact, and the queue's own.
 *
 *   bits 0-2 the kind   3 bounded   4-5 max_attempts   6 as a limiter of the user's own
 */
wq_limiter *limits_make(unsigned b, bool plain, struct model_limits *model);

#endif
