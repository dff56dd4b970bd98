/* See ration.h. */
#include "http/ration.h"

#include <stdlib.h>
#include <string.h>
#include <wq/clock.h>

enum { RATION = 250 };

static const int64_t ahead_ns = WQ_SECOND / 2;

/* Where it hangs; NULL: it has none. On the way those that are paid off are forgotten. */
static struct wq__debt **find(struct wq__ration *r, const char *name, int64_t now)
{
	struct wq__debt **found = NULL;

	for (struct wq__debt **at = &r->first; *at;) {
		struct wq__debt *d = *at;

		if (d->paid_ns <= now) {
			*at = d->next;
			free(d);
			continue;
		}
		if (strcmp(d->name, name) == 0)
			found = at;
		at = &d->next;
	}
	return found;
}

int64_t wq__ration_wait(struct wq__ration *r, const char *name, int64_t now_ns)
{
	struct wq__debt **at = find(r, name, now_ns);
	int64_t wait = at ? (*at)->paid_ns - now_ns - ahead_ns : 0;

	return wait > 0 ? wait : 0;
}

struct wq__debt *wq__ration_take(struct wq__ration *r, const char *name, int64_t now_ns)
{
	struct wq__debt **at = find(r, name, now_ns);
	struct wq__debt *d;

	if (at) {
		d = *at;
		*at = d->next;
		return d;
	}
	d = calloc(1, sizeof *d);
	if (!d)
		return NULL;
	memcpy(d->name, name, strlen(name) + 1);
	d->paid_ns = now_ns;
	return d;
}

void wq__ration_charge(struct wq__ration *r, struct wq__debt *d, int64_t held_ns)
{
	d->paid_ns += RATION * held_ns;
	d->next = r->first;
	r->first = d;
}

void wq__ration_release(struct wq__ration *r)
{
	while (r->first) {
		struct wq__debt *d = r->first;

		r->first = d->next;
		free(d);
	}
}
