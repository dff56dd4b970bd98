#include "cli/control.h"
bool control_open(struct run *r)
{
	(void)r;
	return true;
}
void control_turn(struct run *r)
{
	(void)r;
}
void control_settled(struct run *r, const void *key, size_t len, bool dead)
{
	(void)r;
	(void)key;
	(void)len;
	(void)dead;
}
void control_close(struct run *r)
{
	(void)r;
}
