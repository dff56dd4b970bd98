#include "cli/notify.h"
void notify_open(struct run *r)
{
	(void)r;
}
void notify_ready(struct run *r)
{
	(void)r;
}
void notify_turn(struct run *r)
{
	(void)r;
}
int64_t notify_next_ns(const struct run *r)
{
	(void)r;
	return WQ_NEVER;
}
void notify_close(struct run *r)
{
	(void)r;
}
