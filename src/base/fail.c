#define _POSIX_C_SOURCE 200809L /* strerror_r */
#include "base/fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char text[WQ_ERROR_MAX];

void wq__fail_text(const char *format, ...)
{
	int saved = errno;       /* which may say more */
	char made[WQ_ERROR_MAX]; /* an argument may be the text that is there */
	va_list args;

	va_start(args, format);
	vsnprintf(made, sizeof made, format, args);
	va_end(args);
	memcpy(text, made, strlen(made) + 1);
	errno = saved;
}

int wq__fail_allocator(const wq_allocator *a)
{
	return wq__fail(WQ_EINVAL, a->alloc && a->free
	                               ? "a reserved word of the allocator is not zero"
	                               : "the allocator has no function alloc or free");
}

int wq__fail_clock(const wq_clock *c)
{
	return wq__fail(WQ_EINVAL, c->now ? "a reserved word of the clock is not zero"
	                                  : "the clock has no function now");
}

int wq__fail_system(int status, const char *what)
{
	char reason[128];

	if (strerror_r(errno, reason, sizeof reason) != 0)
		snprintf(reason, sizeof reason, "error %d", errno);
	return wq__fail(status, "%s: %s", what, reason);
}

int wq_fail(int status, const char *reason)
{
	return wq__fail(status, "%s", reason ? reason : wq_strerror(status));
}

const char *wq_last_error(void)
{
	return text;
}
