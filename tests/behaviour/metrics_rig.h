/*
 * A queue with a name on the manual clock, and a provider that adds up what it is told:
 * at rest that is what the snapshot says.
 */
#ifndef WQ_TESTS_METRICS_RIG_H
#define WQ_TESTS_METRICS_RIG_H

#include "../support/support.h"

struct told {
	int64_t depth, adds, retries;
	int64_t queue_n, queue_ns, work_n, work_ns;
	int odd;      /* calls that make no sense: a wrong number, a depth below 0 */
	bool freeing; /* keys that are left are given up in one call */
};

struct meter_rig {
	struct fixture f;
	struct told told;
};

/* options may be NULL; name and provider are the rig's. */
void meter_open(struct meter_rig *r, const wq_options *options);
/* Keys may be left in line; in the end the depth is 0. */
void meter_close(struct meter_rig *r);

wq_metrics_provider told_provider(struct told *told);
/* The provider was told what the snapshot says. */
void told_agrees(const struct told *told, wq_queue *q);

wq_snapshot look(wq_queue *q);
uint64_t total(wq_histogram h);

/* How far the counters went up, and the depth and what is left over up or down. */
struct step {
	int64_t depth, adds, retries, merged, refused, marked, left, dead, stale, slow_handlers;
	int64_t dropped;
};

/* Between two snapshots this happened, and nothing else. */
void step_is(const wq_snapshot *from, const wq_snapshot *to, const struct step *expected,
             const char *what, const char *file, int line);

/* STEP(r, call, answer, .adds = 1, .depth = 1): the call answers that and counts just so. */
#define STEP(r, call, expected, ...)                                                               \
	do {                                                                                       \
		wq_snapshot from_ = look((r)->f.q), to_;                                           \
                                                                                                   \
		IS(call, expected);                                                                \
		to_ = look((r)->f.q);                                                              \
		step_is(&from_, &to_, &(struct step){__VA_ARGS__}, #call, __FILE__, __LINE__);     \
		told_agrees(&(r)->told, (r)->f.q);                                                 \
	} while (0)

/* What wq_metrics_write() and wq_snapshot_json() write, in one string. */
struct text {
	char *bytes;
	size_t n;
	int calls;
	int stop_at; /* the call that answers `answer`; 0: none does */
	int answer;
};

int text_write(void *ctx, const char *bytes, size_t n);
void text_free(struct text *t);

#endif
