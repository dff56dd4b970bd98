/* What a client would rather have, by its Accept headers (RFC 9110, 12.5.1). */
#ifndef WQ_HTTP_ACCEPT_H
#define WQ_HTTP_ACCEPT_H

#include <stdbool.h>

/* How much a type is wanted, by the range that is nearest to it. */
enum wq__nearness { WQ__NO_RANGE, WQ__ANY_TYPE, WQ__ANY_SUBTYPE, WQ__THE_TYPE, WQ__THE_VERSION };

struct wq__wish {
	enum wq__nearness nearness;
	int weight; /* thousandths */
};

/* All zero: nothing was said. */
struct wq__accept {
	struct wq__wish open;
	struct wq__wish text;
};

/* One header; there may be several. What is malformed is passed over. */
void wq__accept_take(struct wq__accept *a, const char *header);

/* Rather OpenMetrics 1.0 than the text format? If both are as good: if it was asked for by name. */
bool wq__accept_openmetrics(const struct wq__accept *a);

#endif
