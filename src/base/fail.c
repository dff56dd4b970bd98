#include "base/fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char text[WQ_ERROR_MAX];

int wq__fail(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return status;
}

int wq_fail(int status, const char *reason)
{
	return wq__fail(status, "%s", reason ? reason : wq_strerror(status));
}

const char *wq_last_error(void)
{
	return text;
}
