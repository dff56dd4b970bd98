/* Command lines of the commands that talk to a run, and what is done for each. */
#include "cli/client/client.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wq/clock.h>

#include "cli/base/parse.h"
#include "cli/base/say.h"
#include "cli/client/show.h"
#include "cli/files/replace.h"
#include "cli/help.h"
#include "cli/socket/frame.h"

enum { BLOCK = 65536, LIMIT = 1000 };

/* False, after a message: nobody reads it. */
static bool out(const struct text *t)
{
	if (write_all(STDOUT_FILENO, t->bytes, t->n))
		return true;
	say("standard output: %s", strerror(errno));
	return false;
}

/* ---- looking ------------------------------------------------------------- */

static int status(struct client *c)
{
	struct state s;
	struct text t = {0};
	int rc = show_get_state(&c->ask, &s);

	if (rc != EXIT_OK) {
		say("%s", c->ask.message.bytes);
		return rc;
	}
	if (c->json)
		show_state_json(&t, &s);
	else
		show_state(&t, &s);
	rc = out(&t) ? EXIT_OK : EXIT_TROUBLE;
	text_release(&t);
	return rc;
}

static int print_entries(const struct client *c, const struct entries *e)
{
	struct text t = {0};
	int rc = EXIT_OK;

	for (size_t i = 0; i < e->n && rc == EXIT_OK; i++) {
		if (c->null)
			text_add(&t, e->at[i].key, e->at[i].len + 1);
		else if (c->json)
			show_entry_json(&t, &e->at[i]);
		else
			show_entry(&t, &e->at[i]);
		if (t.n >= BLOCK || i + 1 == e->n) {
			rc = out(&t) ? EXIT_OK : EXIT_TROUBLE;
			t.n = 0;
		}
	}
	text_release(&t);
	return rc;
}

static int ls(struct client *c)
{
	struct entries e;
	char limit[24];
	int rc;

	snprintf(limit, sizeof limit, "%" PRIu64, c->limit);
	ask_begin(&c->ask, "ls");
	ask_str(&c->ask, c->state);
	ask_str(&c->ask, limit);
	rc = show_get_entries(&c->ask, &e);
	if (rc != EXIT_OK)
		say("%s", c->ask.message.bytes);
	else
		rc = print_entries(c, &e);
	if (rc == EXIT_OK && e.more)
		say("there are more keys than these %" PRIu64 " (--limit=0 shows all)", c->limit);
	show_free(&e);
	return rc;
}

/* ---- orders -------------------------------------------------------------- */

/* One order for each key: one that fails does not keep the others from it. */
static int each_key(struct client *c)
{
	int status = EXIT_OK;

	for (int i = 0; i < c->nargs && !c->ask.gone && !c->ask.timed_out; i++) {
		ask_begin(&c->ask, c->command);
		if (strcmp(c->command, "cancel") == 0)
			ask_str(&c->ask, c->kill ? "kill" : "");
		ask_str(&c->ask, c->args[i]);
		if (ask_say(&c->ask) != EXIT_OK)
			status = c->ask.status;
	}
	return status;
}

static int plain(struct client *c)
{
	ask_begin(&c->ask, c->command);
	for (int i = 0; i < c->nargs; i++)
		ask_str(&c->ask, c->args[i]);
	if (c->ask.order.n > FRAME_MAX)
		return usage(c->command, "too many keys for one command");
	return ask_say(&c->ask);
}

static int until_end(struct client *c)
{
	ask_begin(&c->ask, c->command);
	if (c->no_wait)
		ask_str(&c->ask, "go");
	c->ask.waits = true;
	return ask_say(&c->ask);
}

int client_wait(struct client *c, bool all)
{
	struct ask *a = &c->ask;
	int status;

	ask_begin(a, "wait");
	if (all)
		ask_str(a, "all");
	a->waits = true;
	status = ask(a);
	/* If it went without a word it has ended all the same. */
	if (a->gone)
		status = EXIT_LEFT;
	if (status != EXIT_OK)
		say("%s", a->message.bytes);
	return status;
}

/* The keys are named first, all of them: none can fail unseen while others are waited for. */
static int wait_keys(struct client *c)
{
	struct ask *a = &c->ask;

	for (int i = 0; i < c->nargs;) {
		ask_begin(a, "await");
		do {
			ask_str(a, c->args[i++]);
		} while (i < c->nargs && a->order.n + strlen(c->args[i]) + 1 <= FRAME_MAX);
		if (ask_say(a) != EXIT_OK)
			return a->status;
	}
	return client_wait(c, c->nargs == 0);
}

/* ---- command lines ------------------------------------------------------- */

enum {
	AFTER = 256,
	INTERVAL,
	JSON,
	KILL,
	LIMIT_OPTION,
	NO_WAIT,
	PRIORITY,
	STATE,
	TIMEOUT,
	VALUE,
	WAIT
};

static const struct option longs[] = {
    {"after", required_argument, NULL, AFTER},
    {"help", no_argument, NULL, 'h'},
    {"interval", required_argument, NULL, INTERVAL},
    {"json", no_argument, NULL, JSON},
    {"kill", no_argument, NULL, KILL},
    {"limit", required_argument, NULL, LIMIT_OPTION},
    {"no-wait", no_argument, NULL, NO_WAIT},
    {"null", no_argument, NULL, '0'},
    {"priority", required_argument, NULL, PRIORITY},
    {"socket", required_argument, NULL, 's'},
    {"state", required_argument, NULL, STATE},
    {"timeout", required_argument, NULL, TIMEOUT},
    {"value", required_argument, NULL, VALUE},
    {"verbose", no_argument, NULL, 'v'},
    {"wait", no_argument, NULL, WAIT},
    {NULL, 0, NULL, 0},
};

static const struct {
	const char *name;
	int options[6]; /* beside -s, -h and --timeout */
	int min, max;   /* arguments; max -1: any number */
	const char *wanted;
	bool keys;
	int (*fn)(struct client *c);
} commands[] = {
    {"add",
     {AFTER, '0', PRIORITY, 'v', VALUE, WAIT},
     1,
     -1,
     "which keys? KEY..., or - for standard input",
     true,
     client_add},
    {"status", {JSON}, 0, 0, "", false, status},
    {"top", {INTERVAL}, 0, 0, "", false, top},
    {"ls", {STATE, LIMIT_OPTION, JSON, '0'}, 0, 0, "", false, ls},
    {"retry", {0}, 1, -1, "which keys?", true, each_key},
    {"cancel", {KILL}, 1, -1, "which keys?", true, each_key},
    {"forget", {0}, 1, -1, "which keys?", true, each_key},
    {"pause", {0}, 0, 0, "", false, plain},
    {"resume", {0}, 0, 0, "", false, plain},
    {"set", {0}, 1, -1, "what? workers=N, rate=N/s or burst=N", false, plain},
    {"wait", {0}, 0, -1, "", true, wait_keys},
    {"drain", {NO_WAIT}, 0, 0, "", false, until_end},
    {"stop", {NO_WAIT}, 0, 0, "", false, until_end},
};

static bool is_option(size_t command, int option)
{
	for (size_t i = 0; i < sizeof commands[0].options / sizeof(int); i++)
		if (commands[command].options[i] == option)
			return true;
	return option == 's' || option == 'h' || option == TIMEOUT;
}

static int bad(const struct client *c, const char *option, const char *value, const char *wanted)
{
	return usage(c->command, "--%s %s: expected %s", option, shown(value, strlen(value)),
	             wanted);
}

static int take(struct client *c, int option, char *value)
{
	static const char time[] = "a time like 100ms, 1.5s or 5m";

	switch (option) {
	case AFTER:
		return parse_span(value, &c->after_ns) ? 0 : bad(c, "after", value, time);
	case INTERVAL:
		return parse_span(value, &c->interval_ns) && c->interval_ns >= WQ_MILLISECOND
		           ? 0
		           : bad(c, "interval", value, "a time from 1ms");
	case TIMEOUT:
		return parse_span(value, &c->timeout_ns) ? 0 : bad(c, "timeout", value, time);
	case LIMIT_OPTION:
		return parse_count(value, 0, INT64_MAX, &c->limit)
		           ? 0
		           : bad(c, "limit", value, "a number, 0 for all");
	case STATE:
		c->state = value;
		if (strcmp(value, "queued") == 0 || strcmp(value, "running") == 0 ||
		    strcmp(value, "waiting") == 0 || strcmp(value, "dead") == 0)
			return 0;
		return bad(c, "state", value, "queued, running, waiting or dead");
	case PRIORITY:
		return parse_priority(value, &c->priority)
		           ? 0
		           : bad(c, "priority", value, "a number from -32768 to 32767");
	case VALUE:
		c->value = value;
		if (strlen(value) <= WQ_VALUE_MAX)
			return 0;
		return usage(c->command, "--value: longer than %d bytes: %s", WQ_VALUE_MAX,
		             shown(value, 60));
	case JSON:
		c->json = true;
		break;
	case KILL:
		c->kill = true;
		break;
	case NO_WAIT:
		c->no_wait = true;
		break;
	case WAIT:
		c->wait = true;
		break;
	case '0':
		c->null = true;
		break;
	case 'v':
		c->verbose = true;
		break;
	default:
		c->socket = value;
		break;
	}
	return 0;
}

static int check(struct client *c, size_t command)
{
	if (c->nargs < commands[command].min)
		return usage(c->command, "%s", commands[command].wanted);
	if (commands[command].max >= 0 && c->nargs > commands[command].max)
		return usage(c->command, "%s: wq %s takes no arguments",
		             shown(c->args[0], strlen(c->args[0])), c->command);
	for (int i = 0; commands[command].fn == client_add && i < c->nplain && c->nargs > 1; i++)
		if (strcmp(c->args[i], "-") == 0)
			return usage(c->command, "- is standard input, and stands alone; behind "
			                         "-- it is a key");
	if (c->json && c->null)
		return usage(c->command, "--json and --null exclude each other");
	for (int i = 0; commands[command].keys && i < c->nargs; i++) {
		size_t len = strlen(c->args[i]);

		if (len == 0)
			return usage(c->command, "a key is empty");
		if (len > WQ_KEY_MAX)
			return usage(c->command, "a key is longer than %d bytes: %s", WQ_KEY_MAX,
			             shown(c->args[i], 60));
	}
	return 0;
}

/* 0, -1 for help, or an exit status after a message. */
static int parse(struct client *c, size_t command, int argc, char **argv)
{
	opterr = 0;
	/* They move up into the place of what has been looked at. */
	c->args = argv + 1;
	for (;;) {
		int at = optind;
		/* "-": arguments come as options with the number 1, so that options may follow. */
		int option = getopt_long(argc, argv, "-:0hs:v", longs, NULL);
		int rc;

		if (option < 0)
			break;
		if (option == 1) {
			c->args[c->nargs++] = optarg;
			continue;
		}
		if (option == ':')
			return usage(c->command, "%s needs a value", argv[at]);
		if (option == '?' || !is_option(command, option))
			return usage(c->command, "%s: wq %s has no such option",
			             shown(argv[at], strlen(argv[at])), c->command);
		if (option == 'h')
			return -1;
		if ((rc = take(c, option, optarg)) != 0)
			return rc;
	}
	c->nplain = c->nargs;
	/* With a -- behind us; what is left are arguments, whatever they begin with. */
	while (optind < argc)
		c->args[c->nargs++] = argv[optind++];
	return check(c, command);
}

int client_main(int argc, char **argv)
{
	struct client c = {
	    .command = argv[0],
	    .state = "",
	    .interval_ns = WQ_SECOND,
	    .timeout_ns = -1,
	    .limit = LIMIT,
	};
	size_t command = 0;
	int rc;

	while (strcmp(commands[command].name, argv[0]) != 0)
		command++;
	rc = parse(&c, command, argc, argv);
	if (rc < 0)
		return help(c.command);
	if (rc > 0)
		return rc;
	signal(SIGPIPE, SIG_IGN);
	rc = ask_open(&c.ask, c.socket, c.timeout_ns);
	if (rc != EXIT_OK)
		return rc;
	rc = commands[command].fn(&c);
	ask_close(&c.ask);
	return rc;
}
