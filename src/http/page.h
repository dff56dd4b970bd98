/* page.html, made into bytes when it is built. */
#ifndef WQ_HTTP_PAGE_H
#define WQ_HTTP_PAGE_H

#include <stddef.h>

extern const unsigned char wq__http_page[];
extern const size_t wq__http_page_len;

#endif
