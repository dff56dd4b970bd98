/*
 * The version of the header and of the library, and how symbols are exported.
 *
 *     if (wq_version() / 100 != WQ_VERSION_NUMBER / 100)
 *         fprintf(stderr, "built for wq %d.%d, linked with %s\n", WQ_VERSION_MAJOR,
 *                 WQ_VERSION_MINOR, wq_version_string());
 */
#ifndef WQ_VERSION_H
#define WQ_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

/* A program that compiles wq into itself may define WQ_API as nothing. */
#ifndef WQ_API
#define WQ_API __attribute__((visibility("default")))
#endif

/* The compiler warns if the result of such a function is ignored: work would be lost. */
#ifndef WQ_MUST_CHECK
#define WQ_MUST_CHECK __attribute__((warn_unused_result))
#endif

/*
 * A function that will be removed. It stays for at least one minor release after the one that
 * deprecates it; the text says what to call instead. A program may define this as nothing.
 */
#ifndef WQ_DEPRECATED
#define WQ_DEPRECATED(text) __attribute__((deprecated(text)))
#endif

#define WQ_VERSION_MAJOR 0
#define WQ_VERSION_MINOR 2
#define WQ_VERSION_PATCH 0

/* One number to compare: 0.2.0 is 200, 1.2.3 is 10203. */
#define WQ_VERSION_NUMBER (WQ_VERSION_MAJOR * 10000 + WQ_VERSION_MINOR * 100 + WQ_VERSION_PATCH)

/*
 * Get the version of the library that is linked. Compare wq_version() with WQ_VERSION_NUMBER to
 * see whether header and library match.
 *
 * Returns a number as WQ_VERSION_NUMBER; wq_version_string() a static string, such as "0.2.0".
 *
 * Threads: any. Blocks: no. Allocates: no.
 */
WQ_API int wq_version(void);
WQ_API const char *wq_version_string(void);

#ifdef __cplusplus
}
#endif
#endif
