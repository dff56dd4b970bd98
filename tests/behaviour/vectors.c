/*
 * What client-go really answered, line by line: tests/vectors/ holds sequences
 * that were recorded on its queue with a stepped clock. Those of queue-plain
 * come out the same whether every add says WQ_MIN or WQ_REMIND; those of
 * queue-remind, in which copies overlap, with WQ_REMIND.
 *
 *     begin SEED limiter SPEC … end   one sequence, on a fresh queue, from time 0
 *     OP (key) (number) -> (key) N    what was called; N is the length afterwards
 *
 * The folder of the files is the program's argument.
 */
#include "../support/support.h"

#include <inttypes.h>

enum { KEYS = 32 };

static const char *folder;

static const char *word(const char **at)
{
	static char buffer[32];
	size_t len;

	*at += strspn(*at, " {}\n");
	len = strcspn(*at, " \n");
	assert_true(len < sizeof buffer);
	memcpy(buffer, *at, len);
	buffer[len] = '\0';
	*at += len;
	return buffer;
}

static int64_t number(const char **at)
{
	return strtoll(word(at), NULL, 10);
}

/* Depth first, as SPEC is written. A name that is not known fails the test. */
static wq_limiter *parse(const char **at) /* NOLINT(misc-no-recursion) */
{
	const char *name = word(at);
	int64_t a, b;

	if (strcmp(name, "exponential") == 0) {
		a = number(at);
		b = number(at);
		return wq_limiter_exponential(a, b);
	}
	if (strcmp(name, "fastslow") == 0) {
		a = number(at);
		b = number(at);
		return wq_limiter_fast_slow(a, b, (uint32_t)number(at));
	}
	if (strcmp(name, "maxof") == 0) {
		wq_limiter *parts[2];

		parts[0] = parse(at);
		parts[1] = parse(at);
		return wq_limiter_max_of(parts, 2);
	}
	assert_string_equal(name, "maxwait");
	a = number(at);
	return wq_limiter_max_wait(parse(at), a);
}

/* ---- one line --------------------------------------------------------------- */

struct replay {
	enum wq_policy policy;
	bool ranked; /* lines have priorities */
	bool unused; /* the queue has priorities, groups and values, which nobody uses */
	wq_manual_clock *mc;
	wq_queue *q;
	wq_item held[KEYS];
	bool holds[KEYS];
	int64_t lines, sequences;
};

static void begin(struct replay *r, const char *spec)
{
	static wq_separator all = {.byte = 'k', .n = 1};
	wq_options o = {.limiter = parse(&spec), .priorities = r->ranked || r->unused};
	wq_clock clock;

	IS(wq_manual_clock_new(&r->mc, 0), WQ_OK);
	clock = wq_manual_clock_clock(r->mc);
	o.clock = &clock;
	if (r->unused) {
		o.values = 1;
		o.group = wq_group_before;
		o.group_ctx = &all;
	}
	IS(wq_new(&r->q, &o), WQ_OK);
	memset(r->holds, 0, sizeof r->holds);
	r->sequences++;
}

static void end(struct replay *r)
{
	for (int i = 0; i < KEYS; i++)
		if (r->holds[i])
			assert_true(wq_done(r->q, &r->held[i]) >= 0);
	assert_true(wq_free(r->q) >= 0);
	IS(wq_manual_clock_free(r->mc), WQ_OK);
	r->q = NULL;
}

static int number_of(const char *key)
{
	int n = key[0] == 'k' ? atoi(key + 1) : -1;

	assert_true(n >= 0 && n < KEYS);
	return n;
}

/* After a shutdown every add is refused; client-go just does nothing. */
static void added(struct replay *r, int rc)
{
	if (rc != WQ_ESHUTDOWN)
		assert_true(rc > 0);
	IS(wq_shutting_down(r->q), rc == WQ_ESHUTDOWN);
}

static void add(struct replay *r, const char *key, int64_t after_ns, int64_t priority)
{
	wq_add_options o = {.after_ns = after_ns,
	                    .policy = r->policy,
	                    .priority = (int32_t)priority};

	added(r, wq_add_with(r->q, key, strlen(key), &o));
}

static void add_limited(struct replay *r, const char *key, int64_t priority)
{
	wq_add_options o = {.limited = 1, .policy = r->policy, .priority = (int32_t)priority};

	if (r->policy == WQ_MIN && priority == 0)
		added(r, wq_add_limited(r->q, key, strlen(key)));
	else
		added(r, wq_add_with(r->q, key, strlen(key), &o));
}

/* By the item as by the key. */
static int64_t requeues(struct replay *r, const char *key)
{
	int64_t n = wq_failures(r->q, key, strlen(key));

	if (r->holds[number_of(key)])
		IS(wq_failures_item(r->q, &r->held[number_of(key)]), n);
	return n;
}

/* `want` is the key, or "-": shut down, and nothing is left. */
static bool get(struct replay *r, const char *want, int64_t priority)
{
	wq_item it;
	int rc = wq_try_get(r->q, &it);

	if (rc != WQ_OK)
		return rc == WQ_ESHUTDOWN && strcmp(want, "-") == 0;
	IS(it.attempts, 1 + wq_failures_item(r->q, &it));
	r->held[number_of(it.key)] = it;
	r->holds[number_of(it.key)] = true;
	return strcmp(it.key, want) == 0 && it.priority == priority;
}

static void done(struct replay *r, int key)
{
	assert_true(r->holds[key]);
	assert_true(wq_done(r->q, &r->held[key]) >= 0);
	r->holds[key] = false;
}

/* False: the queue answers something else. */
static bool call(struct replay *r, const char *line)
{
	const char *arrow = strstr(line, "-> "), *at = line;
	char op[16], key[16] = "";
	int64_t answer, after = 0;

	assert_non_null(arrow);
	at = line;
	snprintf(op, sizeof op, "%s", word(&at));
	if (strcmp(op, "get") == 0) {
		arrow += 3;
		snprintf(key, sizeof key, "%s", word(&arrow));
		return get(r, key, r->ranked ? number(&arrow) : 0) &&
		       wq_len(r->q) == number(&arrow);
	}
	answer = strtoll(arrow + 3, NULL, 10);
	if (strcmp(op, "step") == 0) {
		IS(wq_manual_clock_advance(r->mc, number(&at)), WQ_OK);
		return wq_len(r->q) == answer;
	}
	if (strcmp(op, "shutdown") == 0) {
		IS(wq_shutdown(r->q), WQ_OK);
		return wq_len(r->q) == answer;
	}
	snprintf(key, sizeof key, "%s", word(&at));
	if (strcmp(op, "requeues") == 0)
		return requeues(r, key) == answer;
	if (strcmp(op, "after") == 0)
		after = number(&at);
	if (strcmp(op, "add") == 0 || strcmp(op, "after") == 0)
		add(r, key, after, r->ranked ? number(&at) : 0);
	else if (strcmp(op, "limited") == 0)
		add_limited(r, key, r->ranked ? number(&at) : 0);
	else if (strcmp(op, "forget") == 0)
		IS(wq_forget(r->q, key, strlen(key)), WQ_OK);
	else if (strcmp(op, "done") == 0)
		done(r, number_of(key));
	else
		fail_msg("unknown line: %s", line);
	return wq_len(r->q) == answer;
}

/* The number of lines is known, so that a file that is cut short shows. */
static void replay(const char *file, struct replay how, int64_t nlines)
{
	struct replay *r = malloc(sizeof *r);
	char path[4096], line[256], first[256] = "";
	FILE *in;

	assert_non_null(r);
	*r = how;
	snprintf(path, sizeof path, "%s/%s", folder, file);
	in = fopen(path, "r");
	if (in == NULL)
		fail_msg("cannot open %s", path);
	while (fgets(line, sizeof line, in) != NULL) {
		const char *spec = strstr(line, " limiter ");

		r->lines++;
		if (spec != NULL) {
			snprintf(first, sizeof first, "%s", line);
			begin(r, spec + strlen(" limiter "));
		} else if (strncmp(line, "end", 3) == 0) {
			end(r);
		} else if (!call(r, line)) {
			fail_msg("%s:%" PRId64 ": not as recorded (length %" PRId64 "): %sin %s",
			         file, r->lines, wq_len(r->q), line, first);
		}
	}
	fclose(in);
	assert_null(r->q);
	assert_true(r->sequences > 0);
	IS(r->lines, nlines);
	print_message("%s: %" PRId64 " sequences, %" PRId64 " lines\n", file, r->sequences,
	              r->lines);
	free(r);
}

static void plain_with_min(void **state)
{
	(void)state;
	replay("queue-plain.txt", (struct replay){.policy = WQ_MIN}, 19819);
}

static void plain_with_remind(void **state)
{
	(void)state;
	replay("queue-plain.txt", (struct replay){.policy = WQ_REMIND}, 19819);
}

static void remind_with_remind(void **state)
{
	(void)state;
	replay("queue-remind.txt", (struct replay){.policy = WQ_REMIND}, 23724);
}

/* Priorities, groups and values are there, and nobody uses them. */
static void plain_unused(void **state)
{
	(void)state;
	replay("queue-plain.txt", (struct replay){.policy = WQ_MIN, .unused = true}, 19819);
}

static void remind_unused(void **state)
{
	(void)state;
	replay("queue-remind.txt", (struct replay){.policy = WQ_REMIND, .unused = true}, 23724);
}

/* What controller-runtime's priority queue answered. */
static void priority(void **state)
{
	(void)state;
	replay("priority.txt", (struct replay){.policy = WQ_MIN, .ranked = true}, 14746);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(plain_with_min),     cmocka_unit_test(plain_with_remind),
	    cmocka_unit_test(remind_with_remind), cmocka_unit_test(plain_unused),
	    cmocka_unit_test(remind_unused),      cmocka_unit_test(priority),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	folder = argv[1];
	return cmocka_run_group_tests_name("vectors", tests, NULL, NULL);
}
