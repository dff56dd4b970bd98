/* The version of the header and of the library, and how symbols are exported. */
#ifndef WQ_VERSION_H
#define WQ_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

#define WQ_API __attribute__((visibility("default")))

#define WQ_VERSION_MAJOR 0
#define WQ_VERSION_MINOR 1
#define WQ_VERSION_PATCH 0

/* One number to compare: 0.1.0 is 100, 1.2.3 is 10203. */
#define WQ_VERSION_NUMBER (WQ_VERSION_MAJOR * 10000 + WQ_VERSION_MINOR * 100 + WQ_VERSION_PATCH)

/*
 * The version of the library that is linked, as WQ_VERSION_NUMBER. Compare it
 * with the macro to see whether header and library belong together.
 *
 * Threads: any. Blocks: no. Allocates: no.
 */
WQ_API int wq_version(void);

/* The same as text, "0.1.0". The string is static. Threads: any. */
WQ_API const char *wq_version_string(void);

#ifdef __cplusplus
}
#endif
#endif
