/* Text that grows, and the ways in which a key is shown. Without memory the program ends. */
#ifndef CLI_BASE_TEXT_H
#define CLI_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	char *bytes; /* NULL: nothing yet */
	size_t n;
	size_t room;
};

/* realloc() that ends the program instead of failing. */
void *grow(void *old, size_t size);
/* Ends the program: there is no memory. */
_Noreturn void no_memory(void);

void text_add(struct text *t, const void *bytes, size_t n);
void text_str(struct text *t, const char *s);
void text_print(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_release(struct text *t);

/* As a JSON string, with its quotes; bytes that are no UTF-8 become U+FFFD. */
void text_json(struct text *t, const void *bytes, size_t n);
/* For people: control characters and what is no UTF-8 as \x1b. At most `max` bytes, then "...". */
void text_visible(struct text *t, const void *bytes, size_t n, size_t max);
/* As a word for a shell, with nothing in it that a terminal would obey. */
void text_quoted(struct text *t, const char *word);
/* 1.5s, 2m03s: short, for people. */
void text_span(struct text *t, int64_t ns);

#endif
