/* Durations, rates and the like, as people write them. Each answers false for anything else. */
#ifndef CLI_BASE_PARSE_H
#define CLI_BASE_PARSE_H

#include <stdbool.h>
#include <stdint.h>

/* 100ms, 1.5s, 5m, 2h, 1d, also us and ns; a bare number is seconds. */
bool parse_span(const char *s, int64_t *ns);
/* 1s..5m; a single one is both ends. */
bool parse_range(const char *s, int64_t *from_ns, int64_t *to_ns);
/* 50/s, 3/m, 10/h; a bare number is for each second. More than 0. */
bool parse_rate(const char *s, double *per_second);
/* A whole number from min to max. */
bool parse_count(const char *s, uint64_t min, uint64_t max, uint64_t *n);
/* Of a key: WQ_PRIORITY_MIN to WQ_PRIORITY_MAX. */
bool parse_priority(const char *s, int32_t *priority);
/* One character, or \n \t \0 \\ \x1f. */
bool parse_char(const char *s, char *c);
/* Text with such characters in it; without NUL, and no longer than s. */
bool parse_text(const char *s, char *text);
/* A character, or one and its number: /, /:3, \t:2. Without one the number is 1. */
bool parse_separator(const char *s, char *c, uint32_t *n);
/* PORT, HOST:PORT or [HOST]:PORT. The host is for free(), NULL: none; host and port may be NULL. */
bool parse_address(const char *s, char **host, uint16_t *port);

#endif
