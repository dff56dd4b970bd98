/* Writing JSON, a piece at a time. After an error nothing more is written. */
#ifndef WQ_METRICS_JSON_H
#define WQ_METRICS_JSON_H

#include <stddef.h>
#include <wq/snapshot.h>

struct wq__json {
	wq_write_fn write;
	void *ctx;
	int rc;
	size_t n;
	char text[2048];
};

/* No more than half of text. */
void wq__json_print(struct wq__json *j, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void wq__json_string(struct wq__json *j, const void *bytes, size_t len);
void wq__json_snapshot(struct wq__json *j, const wq_snapshot *s, const char *name);

/* WQ_OK, or what write answered first. */
int wq__json_end(struct wq__json *j);

#endif
