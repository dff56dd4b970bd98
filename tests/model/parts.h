/*
 * What a queue under test is given: an allocator that keeps books, and orders
 * other than the default one.
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

#endif
