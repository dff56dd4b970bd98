/* Text that grows, and JSON strings in it. After an allocation has failed nothing more is kept. */
#ifndef WQ_HTTP_TEXT_H
#define WQ_HTTP_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct wq__text {
	char *bytes; /* malloc() */
	size_t n;
	size_t room;
	bool failed;
};

/* A wq_write_fn; ctx is the text. WQ_OK or WQ_ENOMEM. */
int wq__text_write(void *ctx, const char *bytes, size_t n);
void wq__text_add(struct wq__text *t, const char *s);
/* Numbers and the like: no more than 100 bytes. */
void wq__text_print(struct wq__text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* With quotes; bytes that are no UTF-8 become U+FFFD. */
void wq__text_string(struct wq__text *t, const void *bytes, size_t n);
void wq__text_release(struct wq__text *t);

#endif
