/* See tools.h. */
#include "base/tools.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SEES_ATOMICS
#endif
#elif defined(__SANITIZE_THREAD__)
#define SEES_ATOMICS
#endif

/* In the program, or in the runtime's own library, if the program was built with it. */
/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
extern void __asan_init(void) __attribute__((weak));
extern void __hwasan_init(void) __attribute__((weak));
extern void __tsan_init(void) __attribute__((weak));
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

enum { UNKNOWN = 0x100 };

static unsigned known = UNKNOWN;

/* Valgrind preloads a library of each tool's, and takes that from the environment of children. */
static bool is_loaded(const char *preloaded, const char *tool)
{
	return preloaded && strstr(preloaded, tool);
}

static unsigned find_out(void)
{
	const char *preloaded = getenv("LD_PRELOAD");
	unsigned found = 0;

#ifdef WQ_NO_TOOLS /* for tests of the library as it is without them */
	return 0;
#endif
	if (__asan_init || __hwasan_init || is_loaded(preloaded, "vgpreload_memcheck"))
		found |= WQ__TOOL_MEMORY;
#ifndef SEES_ATOMICS /* a library that is instrumented itself hides nothing */
	if (__tsan_init)
		found |= WQ__TOOL_THREADS;
#endif
	if (is_loaded(preloaded, "vgpreload_helgrind") || is_loaded(preloaded, "vgpreload_drd"))
		found |= WQ__TOOL_THREADS;
	return found;
}

/* While there is one thread, and the environment is as it was given. */
static __attribute__((constructor)) void look(void)
{
	known = find_out();
}

unsigned wq__tools(void)
{
	return known == UNKNOWN ? find_out() : known;
}
