/* The command line of `wq run`. */
#include "cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wq/pool.h>
#include <wq/value.h>

#include "base/utf8.h"
#include "cli/base/parse.h"
#include "cli/base/say.h"
#include "cli/command/words.h"
#include "cli/socket/place.h"

enum {
	AGING = 256,
	BACKOFF,
	BURST,
	COMMAND_WAIT,
	DEAD,
	DEBOUNCE,
	DRY_RUN,
	GRACE,
	GROUP_BY,
	GROUP_JOBS,
	GROUP_RATE,
	HALT,
	HTTP,
	JITTER,
	KILL_AFTER,
	LEFTOVER,
	LINE_BUFFER,
	LOG,
	MAX_QUEUE,
	MAX_WAIT,
	MERGE,
	METRICS_FILE,
	NAME,
	NO_PROGRESS,
	ON_TERM,
	RATE,
	RESULTS,
	RETRIES,
	SOCKET,
	SOCKET_GROUP,
	SOCKET_MODE,
	SUMMARY,
	TAG,
	TIMEOUT,
	VALUE_AFTER,
};

static const struct option longs[] = {
    {"aging", required_argument, NULL, AGING},
    {"arg-file", required_argument, NULL, 'a'},
    {"backoff", required_argument, NULL, BACKOFF},
    {"burst", required_argument, NULL, BURST},
    {"command-wait", required_argument, NULL, COMMAND_WAIT},
    {"dead", required_argument, NULL, DEAD},
    {"debounce", required_argument, NULL, DEBOUNCE},
    {"delimiter", required_argument, NULL, 'd'},
    {"dry-run", no_argument, NULL, DRY_RUN},
    {"grace", required_argument, NULL, GRACE},
    {"group-by", required_argument, NULL, GROUP_BY},
    {"group-jobs", required_argument, NULL, GROUP_JOBS},
    {"group-rate", required_argument, NULL, GROUP_RATE},
    {"halt", required_argument, NULL, HALT},
    {"help", no_argument, NULL, 'h'},
    {"http", required_argument, NULL, HTTP},
    {"jitter", optional_argument, NULL, JITTER},
    {"jobs", required_argument, NULL, 'j'},
    {"keep-order", no_argument, NULL, 'k'},
    {"kill-after", required_argument, NULL, KILL_AFTER},
    {"leftover", required_argument, NULL, LEFTOVER},
    {"line-buffer", no_argument, NULL, LINE_BUFFER},
    {"log", required_argument, NULL, LOG},
    {"max-args", required_argument, NULL, 'n'},
    {"max-queue", required_argument, NULL, MAX_QUEUE},
    {"max-wait", required_argument, NULL, MAX_WAIT},
    {"merge", required_argument, NULL, MERGE},
    {"metrics-file", required_argument, NULL, METRICS_FILE},
    {"name", required_argument, NULL, NAME},
    {"no-progress", no_argument, NULL, NO_PROGRESS},
    {"null", no_argument, NULL, '0'},
    {"on-term", required_argument, NULL, ON_TERM},
    {"quiet", no_argument, NULL, 'q'},
    {"rate", required_argument, NULL, RATE},
    {"results", required_argument, NULL, RESULTS},
    {"retries", required_argument, NULL, RETRIES},
    {"socket", required_argument, NULL, SOCKET},
    {"socket-group", required_argument, NULL, SOCKET_GROUP},
    {"socket-mode", required_argument, NULL, SOCKET_MODE},
    {"summary", no_argument, NULL, SUMMARY},
    {"tag", no_argument, NULL, TAG},
    {"timeout", required_argument, NULL, TIMEOUT},
    {"value-after", required_argument, NULL, VALUE_AFTER},
    {"verbose", no_argument, NULL, 'v'},
    {NULL, 0, NULL, 0},
};

static uint32_t cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof set, &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
}

static int bad(const char *option, const char *value, const char *wanted)
{
	return usage("run", "--%s %s: expected %s", option, shown(value, strlen(value)), wanted);
}

static int span(const char *option, const char *value, int64_t *ns)
{
	return parse_span(value, ns) ? 0 : bad(option, value, "a time like 100ms, 1.5s or 5m");
}

static int jitter(const char *value, enum wq_jitter *out)
{
	static const char *const names[] = {"none", "full", "equal", "decorrelated"};

	if (!value)
		value = "full";
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (strcmp(value, names[i]) == 0) {
			*out = (enum wq_jitter)i;
			return 0;
		}
	}
	return bad("jitter", value, "none, full, equal or decorrelated");
}

static int retries(const char *value, uint32_t *max_attempts)
{
	uint64_t n;

	if (strcmp(value, "forever") == 0) {
		*max_attempts = 0;
		return 0;
	}
	if (!parse_count(value, 0, WQ_FAILURES_MAX - 1, &n))
		return bad("retries", value, "a number, or forever");
	*max_attempts = (uint32_t)n + 1;
	return 0;
}

/* never, soon, now, 10%, soon,fail=3, now,fail=10% */
static bool parse_halt(const char *value, struct halt *h)
{
	const char *what = value;
	size_t len = strlen(value);
	char number[24];
	uint64_t n;

	*h = (struct halt){.dead = 1};
	if (strcmp(value, "never") == 0) {
		h->dead = 0;
		return true;
	}
	if (strcmp(value, "soon") == 0)
		return true;
	h->now = strncmp(value, "now", 3) == 0;
	if (strcmp(value, "now") == 0)
		return true;
	if (strncmp(value, "now,fail=", 9) == 0)
		what = value + 9;
	else if (strncmp(value, "soon,fail=", 10) == 0)
		what = value + 10;
	else if (len == 0 || value[len - 1] != '%')
		return false;
	len = strlen(what);
	if (len == 0 || what[len - 1] != '%')
		return parse_count(what, 1, INT64_MAX, &h->dead);
	if (len > sizeof number)
		return false;
	memcpy(number, what, len - 1);
	number[len - 1] = '\0';
	h->dead = 0;
	if (!parse_count(number, 1, 100, &n))
		return false;
	h->percent = (uint32_t)n;
	return true;
}

static int on_term(const char *value, bool *drain)
{
	*drain = strcmp(value, "drain") == 0;
	return *drain || strcmp(value, "finish") == 0 ? 0
	                                              : bad("on-term", value, "finish or drain");
}

/* An option with a number, which is stored by the caller. */
static int count(const char *option, const char *value, uint64_t max, uint64_t *n)
{
	return parse_count(value, 1, max, n) ? 0 : bad(option, value, "a number from 1");
}

static int path(const char *option, const char *value, const char **to)
{
	*to = value;
	return *value != '\0' ? 0 : bad(option, value, "the name of a file");
}

/* To be written: - would be the output to some, and a file to others. */
static int target(const char *option, const char *value, const char **to)
{
	if (strcmp(value, "-") == 0)
		return usage("run", "--%s -: ./- if a file is meant, /dev/stdout for the output",
		             option);
	return path(option, value, to);
}

static bool is_name(const char *s)
{
	size_t len = strlen(s), n = 1;

	if (len == 0 || len > 255)
		return false;
	for (; len > 0 && n > 0; s += n, len -= n)
		n = (unsigned char)*s < 0x20 || *s == 0x7f
		        ? 0
		        : wq__utf8((const unsigned char *)s, len);
	return n > 0;
}

/* Only reading and writing, and never without the run's own user. */
static int socket_mode(const char *value, unsigned *mode)
{
	size_t n = strspn(value, "01234567");

	*mode = n > 0 && n <= 4 && value[n] == '\0' ? (unsigned)strtoul(value, NULL, 8) : 0;
	return (*mode & 0600) == 0600 && (*mode & ~0666u) == 0
	           ? 0
	           : bad("socket-mode", value, "0600, 0660, 0666 or another mode from 0600");
}

static int socket_group(const char *value, int64_t *gid)
{
	const struct group *g = getgrnam(value);
	uint64_t n;

	if (!g && !parse_count(value, 0, UINT32_MAX - 1, &n))
		return bad("socket-group", value, "the name or the number of a group");
	*gid = g ? (int64_t)g->gr_gid : (int64_t)n;
	return 0;
}

static int aging(const char *value, int64_t *ns)
{
	return parse_span(value, ns) && *ns <= WQ_AGING_MAX
	           ? 0
	           : bad("aging", value, "a time like 10s or 5m, at most 12h");
}

/* last, first, or, append, append:SEPARATOR */
static int merge(char *value, struct options *o)
{
	static const char append[] = "append:";

	o->merge_with = NULL;
	if (strcmp(value, "last") == 0)
		o->merge = wq_merge_last;
	else if (strcmp(value, "first") == 0)
		o->merge = wq_merge_first;
	else if (strcmp(value, "or") == 0)
		o->merge = wq_merge_or;
	else if (strcmp(value, "append") == 0)
		o->merge = wq_merge_append;
	else if (strncmp(value, append, sizeof append - 1) == 0) {
		static char *text;

		text = grow(text, strlen(value) + 1);
		o->merge = wq_merge_append;
		o->merge_with = text;
		if (parse_text(value + sizeof append - 1, text))
			return 0;
		return bad("merge", value,
		           "append: and a text, in which \\n, \\t, \\x1f may stand");
	} else
		return bad("merge", value, "last, first, or, append or append:SEPARATOR");
	return 0;
}

static int take(struct options *o, int c, char *arg)
{
	uint64_t n = 0;
	int rc = 0;

	switch (c) {
	case 'a':
		rc = path("arg-file", arg, &o->file);
		break;
	case '0':
		o->delimiter = '\0';
		break;
	case 'd':
		if (!parse_char(arg, &o->delimiter))
			rc = bad("delimiter", arg, "one character, or \\n, \\t, \\0, \\x1f");
		break;
	case 'j':
		rc = count("jobs", arg, WQ_WORKERS_MAX, &n);
		o->jobs = (uint32_t)n;
		break;
	case 'k':
		o->keep_order = true;
		break;
	case 'n':
		rc = count("max-args", arg, INT_MAX, &n);
		o->max_args = (uint32_t)n;
		break;
	case 'q':
		o->quiet = true;
		break;
	case 'v':
		o->verbose = true;
		break;
	case AGING:
		rc = aging(arg, &o->aging_ns);
		break;
	case BACKOFF:
		if (!parse_range(arg, &o->backoff_ns, &o->backoff_max_ns))
			rc = bad("backoff", arg, "a time or a range like 1s..5m");
		break;
	case BURST:
		rc = count("burst", arg, INT_MAX, &n);
		o->burst = (int)n;
		break;
	case COMMAND_WAIT:
		rc = span("command-wait", arg, &o->command_wait_ns);
		break;
	case DEAD:
		rc = target("dead", arg, &o->dead);
		break;
	case DEBOUNCE:
		rc = span("debounce", arg, &o->debounce_ns);
		break;
	case DRY_RUN:
		o->dry_run = true;
		break;
	case GRACE:
		rc = span("grace", arg, &o->grace_ns);
		break;
	case GROUP_BY:
		if (!parse_separator(arg, &o->group_by.byte, &o->group_by.n))
			rc = bad("group-by", arg, "a character, or one and its number like /:3");
		break;
	case GROUP_JOBS:
		rc = count("group-jobs", arg, WQ_WORKERS_MAX, &n);
		o->group_jobs = (uint32_t)n;
		break;
	case GROUP_RATE:
		if (!parse_rate(arg, &o->group_rate))
			rc = bad("group-rate", arg, "a rate like 50/s, 10/m or 3/h");
		break;
	case HALT:
		if (!parse_halt(arg, &o->halt))
			rc = bad(
			    "halt", arg,
			    "never, soon, now or a number of keys like now,fail=3, soon,fail=10%");
		break;
	case HTTP:
		o->http = arg;
		if (!parse_address(arg, NULL, NULL))
			rc = bad("http", arg,
			         "a port, or an address and a port like 127.0.0.1:8080");
		break;
	case JITTER:
		rc = jitter(arg, &o->jitter);
		break;
	case KILL_AFTER:
		rc = span("kill-after", arg, &o->kill_after_ns);
		break;
	case LEFTOVER:
		rc = target("leftover", arg, &o->leftover);
		break;
	case LINE_BUFFER:
		o->line_buffer = true;
		break;
	case LOG:
		rc = target("log", arg, &o->log);
		break;
	case MAX_QUEUE:
		rc = count("max-queue", arg, INT_MAX, &n);
		o->max_queue = (size_t)n;
		break;
	case MAX_WAIT:
		rc = span("max-wait", arg, &o->max_wait_ns);
		break;
	case MERGE:
		rc = merge(arg, o);
		break;
	case METRICS_FILE:
		rc = target("metrics-file", arg, &o->metrics_file);
		break;
	case NAME:
		o->name = arg;
		if (!is_name(arg))
			rc = bad("name", arg, "a name of 1 to 255 bytes of UTF-8");
		break;
	case NO_PROGRESS:
		o->progress = false;
		break;
	case ON_TERM:
		rc = on_term(arg, &o->drain_on_term);
		break;
	case RATE:
		if (!parse_rate(arg, &o->rate))
			rc = bad("rate", arg, "a rate like 50/s, 10/m or 3/h");
		break;
	case RESULTS:
		rc = path("results", arg, &o->results);
		break;
	case RETRIES:
		rc = retries(arg, &o->max_attempts);
		break;
	case SOCKET:
		o->socket = arg;
		break;
	case SOCKET_GROUP:
		rc = socket_group(arg, &o->socket_gid);
		break;
	case SOCKET_MODE:
		rc = socket_mode(arg, &o->socket_mode);
		break;
	case SUMMARY:
		o->summary = true;
		break;
	case TAG:
		o->tag = true;
		break;
	case TIMEOUT:
		rc = span("timeout", arg, &o->timeout_ns);
		break;
	case VALUE_AFTER:
		o->has_values = true;
		if (!parse_char(arg, &o->value_after))
			rc = bad("value-after", arg, "one character, or \\n, \\t, \\x1f");
		break;
	default:
		break;
	}
	return rc;
}

/* Is it one file by two names? Devices may be shared. */
static bool is_same(const char *a, const char *b)
{
	struct stat x, y;

	if (stat(a, &x) < 0 || stat(b, &y) < 0)
		return strcmp(a, b) == 0;
	return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* What one of them writes another would read or replace. */
static const char *shared_file(const struct options *o)
{
	const char *files[] = {o->log, o->dead, o->metrics_file, o->leftover, o->file};
	size_t n = sizeof files / sizeof files[0];

	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n; k++) {
			/* What is left may well become the input of the next run. */
			bool both = files[i] == o->leftover && files[k] == o->file;

			if (files[i] && files[k] && !both && is_same(files[i], files[k]))
				return files[i];
		}
	return NULL;
}

/* Names become paths; who else may connect. */
static int check_socket(struct options *o)
{
	static struct text path;

	if (!o->socket && (o->socket_mode != 0 || o->socket_gid >= 0))
		return usage("run", "--socket-mode and --socket-group go with --socket");
	if (o->socket_mode == 0)
		o->socket_mode = o->socket_gid >= 0 ? 0660 : 0600;
	if (!o->socket)
		return 0;
	o->socket_named = place_is_name(o->socket);
	if (o->socket_named && o->socket_mode != 0600)
		return usage("run",
		             "--socket %s: a socket with a name is in a folder for its user alone; "
		             "for others give a path, with a slash",
		             shown(o->socket, strlen(o->socket)));
	if (!place_path(o->socket, &path))
		return EXIT_USAGE;
	o->socket = path.bytes;
	return 0;
}

static int check_groups(const struct options *o)
{
	if (o->group_by.n == 0 && (o->group_jobs > 0 || o->group_rate > 0))
		return usage("run", "--group-jobs and --group-rate go with --group-by");
	if (o->group_by.n > 0 && o->max_args > 1)
		return usage("run", "--max-args: the keys of one command are of several groups: "
		                    "--group-by does not go with it");
	return 0;
}

static int check_values(const struct options *o)
{
	if (o->has_values && o->value_after == o->delimiter)
		return usage("run", "--value-after: this character ends keys (--delimiter)");
	if (o->has_values && o->value_after == '\0')
		return usage("run", "--value-after \\0: a key cannot contain NUL");
	return 0;
}

/* What each option alone cannot see. */
static int check(struct options *o, int ncommand)
{
	if (ncommand == 0)
		return usage("run", "no command is given: it comes after the options, as in "
		                    "wq run -j4 -- COMMAND {}");
	if (o->command[0][0] == '\0')
		return usage("run", "the command is empty");
	if (o->backoff_ns == 0)
		return usage("run", "--backoff: expected a time above 0");
	if (o->burst > 0 && o->rate == 0)
		return usage("run", "--burst goes with --rate");
	if (o->max_wait_ns > 0 && o->debounce_ns == 0)
		return usage("run", "--max-wait goes with --debounce");
	if (o->results && (o->tag || o->line_buffer))
		return usage("run",
		             "--results puts output into files: neither --tag nor --line-buffer "
		             "goes with it");
	if (o->keep_order && (o->results || o->line_buffer))
		return usage("run", "--keep-order shows outputs one after another: neither "
		                    "--results nor --line-buffer goes with it");
	if (o->max_args > 1 && (o->results || o->tag))
		return usage("run", "--max-args: several keys have one output: neither --results "
		                    "nor --tag goes with it");
	if (o->max_args > 1 && words_vary(o->command[0]))
		return usage("run", "--max-args: %s: the command's name cannot depend on its keys",
		             shown(o->command[0], strlen(o->command[0])));
	if (check_groups(o) != 0 || check_values(o) != 0)
		return EXIT_USAGE;
	if (shared_file(o))
		return usage("run", "%s is given twice: each option wants a file of its own",
		             shown(shared_file(o), strlen(shared_file(o))));
	if (o->quiet && o->verbose)
		return usage("run", "--quiet and --verbose exclude each other");
	if (o->burst == 0)
		o->burst = 1;
	/* Nothing is run, so nothing is written: --leftover may be the very file of keys. */
	if (o->dry_run) {
		o->leftover = o->dead = o->log = o->results = o->metrics_file = NULL;
		o->rate = o->group_rate = 0;
		o->debounce_ns = o->max_wait_ns = 0;
	}
	/* A socket is an input of its own: standard input is read only if it is asked for. */
	o->no_input = o->socket && !o->file;
	return check_socket(o);
}

/* getopt_long() leaves the option's letter if it knows it. */
static int unknown(const char *word)
{
	const char *name = shown(word, strlen(word));
	int begin_so = 0;

	if (strncmp(word, "--", 2) == 0 && optopt != 0)
		return usage("run", "%s: this option takes no value", name);
	if (strncmp(word, "--", 2) != 0)
		return usage("run", "%s: unknown option", name);
	for (const struct option *l = longs; l->name; l++)
		begin_so += strncmp(l->name, word + 2, strcspn(word + 2, "=")) == 0;
	return usage("run", begin_so > 1 ? "%s: several options begin so" : "%s: unknown option",
	             name);
}

int options_parse(struct options *o, int argc, char **argv)
{
	*o = (struct options){
	    .delimiter = '\n',
	    .max_queue = 100000,
	    .jobs = cpus(),
	    .max_args = 1,
	    .kill_after_ns = 5 * WQ_SECOND,
	    .command_wait_ns = 30 * WQ_SECOND,
	    .max_attempts = 4,
	    .backoff_ns = WQ_SECOND,
	    .backoff_max_ns = 300 * WQ_SECOND,
	    .progress = true,
	    .name = "wq",
	    .socket_gid = -1,
	    .grace_ns = 10 * WQ_SECOND,
	};
	opterr = 0;
	for (;;) {
		int at = optind;
		int c = getopt_long(argc, argv, "+:0a:d:hj:kn:qv", longs, NULL);
		int rc;

		if (c < 0)
			break;
		if (c == 'h')
			return -1;
		if (c == ':')
			return usage("run", "%s needs a value", argv[at]);
		if (c == '?')
			return unknown(argv[at]);
		if ((rc = take(o, c, optarg)) != 0)
			return rc;
	}
	o->command = argv + optind;
	return check(o, argc - optind);
}
