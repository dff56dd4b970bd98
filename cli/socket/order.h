/* What a run does when it is told to. */
#ifndef CLI_SOCKET_ORDER_H
#define CLI_SOCKET_ORDER_H

#include "cli/socket/conn.h"

/* Fields with a NUL between them, the first is the order's name. */
void order(struct conn *c, const char *fields, size_t n);
/* More of the keys of an order to add; the frame is c->in[in_at]. */
void order_add_more(struct conn *c);
/* It goes no further: says how far it has come, before the answer that says why. */
void order_add_ends(struct conn *c);

#endif
