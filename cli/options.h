/* What `wq run` was told. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wq/group.h>
#include <wq/limiter.h>
#include <wq/types.h>

/* When failed keys end the run. */
struct halt {
	uint64_t dead;    /* so many, or, if it is not 0, ... */
	uint32_t percent; /* ... so many of those that are over; both 0: never */
	bool now;         /* running commands are terminated */
};

struct options {
	/* where keys come from */
	const char *file; /* NULL or "-": standard input */
	bool no_input;    /* a socket alone */
	char delimiter;
	bool has_values;  /* lines are KEY, this, VALUE: */
	char value_after; /* of the first in a line */
	size_t max_queue;
	/* what is run */
	char **command; /* ends with NULL */
	uint32_t jobs;
	uint32_t max_args; /* keys of one command; 1 at least */
	bool dry_run;
	int64_t timeout_ns; /* 0: none */
	int64_t kill_after_ns;
	int64_t command_wait_ns;
	/* when */
	uint32_t max_attempts; /* 0: for ever */
	int64_t backoff_ns, backoff_max_ns;
	enum wq_jitter jitter;
	struct halt halt;
	double rate; /* starts a second; 0: as they come */
	int burst;
	int64_t debounce_ns; /* 0: at once */
	int64_t max_wait_ns; /* 0: no bound */
	/* priorities, groups, values */
	int64_t aging_ns;       /* 0: none */
	wq_separator group_by;  /* n 0: no groups */
	uint32_t group_jobs;    /* 0: any number */
	double group_rate;      /* 0: as they come */
	wq_merge_fn merge;      /* NULL: the last value counts */
	const char *merge_with; /* of append: what stands between two; NULL: a line feed */
	/* what is shown and kept */
	bool tag, line_buffer, keep_order, quiet, verbose, summary, progress;
	const char *results, *log, *leftover, *dead;
	/* control */
	const char *socket;   /* its path */
	bool socket_named;    /* it was given by its name */
	unsigned socket_mode; /* who else may give keys: 0600, nobody */
	int64_t socket_gid;   /* -1: as it comes */
	const char *http, *metrics_file, *name;
	bool drain_on_term;
	int64_t grace_ns;
};

/* 0, or the program's exit status after a message. */
int options_parse(struct options *o, int argc, char **argv);

#endif
