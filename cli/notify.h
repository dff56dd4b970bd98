/* What the service manager is told (systemd's Type=notify), if it asked for it. */
#ifndef CLI_NOTIFY_H
#define CLI_NOTIFY_H

#include "cli/run.h"

void notify_open(struct run *r);
void notify_ready(struct run *r);
/* In every turn of the loop: a sign of life, and more time while it stops. */
void notify_turn(struct run *r);
int64_t notify_next_ns(const struct run *r);
void notify_close(struct run *r);

#endif
