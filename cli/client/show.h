/* What a run tells of itself, for people and for programs. */
#ifndef CLI_CLIENT_SHOW_H
#define CLI_CLIENT_SHOW_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/client/ask.h"

enum { LEVELS = 16, BUSIEST = 8, GROUP_BYTES = 640 };

/* The fields of a run's state. */
struct state {
	char name[256], command[1024], phase[16];
	bool paused, full;
	double rate, per_second;
	int64_t uptime_ns, next_due_ns; /* -1: nothing waits */
	uint64_t pid, workers, burst, max_queue;
	uint64_t running, queued, waiting;
	uint64_t given, merged, refused, done, dead, cancelled, unfinished;
	uint64_t attempts, failed, connections, waiters, dead_kept;
	uint64_t blocked, groups, merge_failed, queued_lower;
	struct level {
		int32_t priority;
		uint64_t queued;
	} level[LEVELS]; /* the highest first */
	size_t nlevels;
	struct busy {
		uint64_t queued, running;
		char name[GROUP_BYTES]; /* as it can be shown */
	} busiest[BUSIEST];
	size_t nbusiest;
};

/* A key of a listing. */
struct entry {
	char state[16];
	int64_t ns;
	uint64_t failures;
	bool dirty;
	char *key; /* NULL after show_free() */
	size_t len;
	int32_t priority;
	bool grouped;
	size_t group_len; /* of the key's beginning */
	char *value;      /* NULL: none */
	size_t value_len;
};

struct entries {
	struct entry *at;
	size_t n, room;
	bool more; /* there are, which were not asked for */
};

/* An exit status; what went wrong is in a->message. */
int show_get_state(struct ask *a, struct state *s);
/* The answer to the order that was begun. */
int show_get_entries(struct ask *a, struct entries *e);
void show_free(struct entries *e);

void show_state(struct text *t, const struct state *s);
void show_state_json(struct text *t, const struct state *s);
void show_entry(struct text *t, const struct entry *e);
void show_entry_json(struct text *t, const struct entry *e);
/* What a key brings along, behind it: "  [priority 5, value x]"; or nothing. */
void show_brought(struct text *t, const struct entry *e);
/* "queued by priority: 5: 3, 0: 10" and "groups: ..."; nothing if none were given. */
void show_levels(struct text *t, const struct state *s);
void show_groups(struct text *t, const struct state *s);
/* "4 workers, 50/s (burst 10)" */
void show_limits(struct text *t, const struct state *s);

#endif
