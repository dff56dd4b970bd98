/* The version of the header and of the library, and how symbols are exported. */
#ifndef WQ_VERSION_H
#define WQ_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

/* A program that compiles wq into itself may define WQ_API as nothing. */
#ifndef WQ_API
#define WQ_API __attribute__((visibility("default")))
#endif

/* To ignore the result of such a function is to lose work: the compiler warns. */
#ifndef WQ_MUST_CHECK
#define WQ_MUST_CHECK __attribute__((warn_unused_result))
#endif

/*
 * A function that will go. It stays for at least one minor release after the one that deprecates it;
 * the text says what to call instead. A program may define it as nothing.
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
 * The version of the library that is linked, as WQ_VERSION_NUMBER. Compare it
 * with the macro to see whether header and library belong together.
 *
 * Threads: any. Blocks: no. Allocates: no.
 */
WQ_API int wq_version(void);

/* The same as text, "0.2.0". The string is static. Threads: any. */
WQ_API const char *wq_version_string(void);

#ifdef __cplusplus
}
#endif
#endif
