/*
 * Who is connected, and since when something is expected of them. libmicrohttpd's own time limit
 * begins anew with every byte; here a request has to arrive, and an answer to be taken, as a whole.
 */
#ifndef WQ_HTTP_VISITORS_H
#define WQ_HTTP_VISITORS_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

struct wq__visitor {
	int fd;      /* -1: nobody */
	bool taking; /* an answer */
	int64_t since_ns;
	int64_t asked_ns;                 /* when it began to wait for a walk; 0: it does not */
	struct MHD_Connection *suspended; /* until one has ended; NULL: not */
};

/* The server's thread alone uses it. */
struct wq__visitors {
	struct wq__visitor *at;
	uint32_t max;
	uint32_t n;
	int64_t timeout_ns;
};

/* WQ_OK or WQ_ENOMEM. */
int wq__visitors_init(struct wq__visitors *vs, uint32_t max, uint32_t timeout_s);
void wq__visitors_release(struct wq__visitors *vs);

/* An MHD_NotifyConnectionCallback; cls is the visitors. */
void wq__visitors_notify(void *cls, struct MHD_Connection *c, void **context,
                         enum MHD_ConnectionNotificationCode code);
/* The next step is expected from now on: to take an answer, or to ask. */
void wq__visitors_step(struct MHD_Connection *c, bool taking);
/* Who may wait for a walk: not for long, and no more than half of all. NULL: they may not. */
struct wq__visitor *wq__visitors_patient(const struct wq__visitors *vs, struct MHD_Connection *c,
                                         int64_t now_ns, int64_t *asked_ns);
/* Its request is not answered now, but asked once more when a walk has ended, or after a second. */
void wq__visitors_wait(struct wq__visitor *v, struct MHD_Connection *c, int64_t asked_ns);
/* A walk has ended. */
void wq__visitors_resume(struct wq__visitors *vs);
/* Hangs up on those who take too long; who has waited for long enough is asked once more. */
void wq__visitors_sweep(struct wq__visitors *vs);

int64_t wq__http_now(void);

#endif
