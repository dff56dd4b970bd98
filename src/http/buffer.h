/* Text that grows, and JSON strings in it. After an allocation has failed nothing more is kept. */
#ifndef WQ_HTTP_BUFFER_H
#define WQ_HTTP_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct wq__buffer {
	char *bytes; /* malloc() */
	size_t n;
	size_t room;
	bool failed;
};

/* A wq_write_fn; ctx is the text. WQ_OK or WQ_ENOMEM. */
int wq__buffer_write(void *ctx, const char *bytes, size_t n);
void wq__buffer_add(struct wq__buffer *t, const char *s);
/* Numbers and the like: no more than 100 bytes. */
void wq__buffer_print(struct wq__buffer *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* With quotes; bytes that are no UTF-8 become U+FFFD. */
void wq__buffer_string(struct wq__buffer *t, const void *bytes, size_t n);
void wq__buffer_release(struct wq__buffer *t);

#endif
