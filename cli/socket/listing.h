/* What a run tells of itself: fields "name=value", and records of fields that end with NUL. */
#ifndef CLI_SOCKET_LISTING_H
#define CLI_SOCKET_LISTING_H

#include "cli/socket/conn.h"

/* A piece with all fields. */
void listing_status(struct conn *c);
/*
 * A piece for each key: state, nanoseconds (running: since it began, queued: since it was given,
 * waiting: until its time, dead: since it died), failures, "dirty" if it is held and comes once
 * more, key, priority, length of its group (a key begins with it; "": no groups), "=" if it has a
 * value, value. The end is "more" if there are more than that. state "": any but dead.
 */
void listing_keys(struct conn *c, const char *state, uint64_t limit);
/*
 * A piece for each key that failed of late: state, nanoseconds since then, failures, "", key, 0,
 * group, "", "".
 */
void listing_failures(struct conn *c);

/* An attempt is over. */
void listing_settled(struct run *r, const void *key, size_t len, bool dead);
void listing_forget(struct run *r, const void *key, size_t len);

#endif
