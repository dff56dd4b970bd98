/*
 * What client-go's limiters and golang.org/x/time/rate really answered, line by
 * line: limiters.txt exactly, bucket.txt within a microsecond.
 *
 *     begin SEED limiter SPEC … end       when K -> D, requeues K -> N, forget K
 *     begin SEED bucket RATE BURST … end  at T -> D
 *
 * SPEC is exponential BASE MAX, fastslow FAST SLOW N, maxof { … } { … } or
 * maxwait MAX { … }. The folder of the files is the program's argument.
 */
#include "limiter_rig.h"

#include <inttypes.h>

static const char *folder;

/* ---- reading ----------------------------------------------------------------- */

/* The next word, without braces; valid until the next call. */
static const char *word(const char **at)
{
	static char buffer[32];
	size_t len;

	*at += strspn(*at, " {}\n");
	len = strcspn(*at, " \n");
	assert_true(len > 0 && len < sizeof buffer);
	memcpy(buffer, *at, len);
	buffer[len] = '\0';
	*at += len;
	return buffer;
}

static int64_t number(const char **at)
{
	const char *digits = word(at);
	char *end;
	int64_t n = strtoll(digits, &end, 10);

	if (*end != '\0')
		fail_msg("not a number: %s", digits);
	return n;
}

/* Depth first, as it is written. */
static wq_limiter *parse(const char **at) /* NOLINT(misc-no-recursion) */
{
	char name[32];
	int64_t a, b;

	snprintf(name, sizeof name, "%s", word(at));
	if (strcmp(name, "maxof") == 0) {
		wq_limiter *parts[2];

		parts[0] = parse(at);
		parts[1] = parse(at);
		return wq_limiter_max_of(parts, 2);
	}
	a = number(at);
	if (strcmp(name, "maxwait") == 0)
		return wq_limiter_max_wait(parse(at), a);
	b = number(at);
	if (strcmp(name, "exponential") == 0)
		return wq_limiter_exponential(a, b);
	assert_string_equal(name, "fastslow");
	return wq_limiter_fast_slow(a, b, (uint32_t)number(at));
}

static wq_limiter *parse_bucket(const char **at)
{
	double rate = strtod(word(at), NULL);

	return wq_limiter_bucket(rate, (int)number(at));
}

/* ---- one line ------------------------------------------------------------------ */

/* What comes out; *recorded is what the line says. */
static int64_t call(wq_limiter *l, const char *line, int64_t *recorded)
{
	const char *arrow = strstr(line, "-> "), *at = line;
	char op[16], key[16];

	snprintf(op, sizeof op, "%s", word(&at));
	snprintf(key, sizeof key, "%s", word(&at));
	if (strcmp(op, "forget") == 0) {
		*recorded = WQ_OK;
		return forget(l, key);
	}
	assert_non_null(arrow);
	arrow += 3;
	*recorded = number(&arrow);
	if (strcmp(op, "when") == 0)
		return when(l, key, 0);
	if (strcmp(op, "requeues") == 0)
		return requeues(l, key);
	assert_string_equal(op, "at");
	return when(l, "", strtoll(key, NULL, 10));
}

/* All lines of the file, which has so many sequences and lines; answers may be off by this. */
static void replay(const char *file, int sequences, int lines, int64_t off)
{
	char path[4096], line[256], first[256] = "";
	wq_limiter *l = NULL;
	int begun = 0, read = 0;
	FILE *in;

	snprintf(path, sizeof path, "%s/%s", folder, file);
	in = fopen(path, "r");
	if (in == NULL)
		fail_msg("cannot open %s", path);
	while (fgets(line, sizeof line, in) != NULL) {
		const char *spec = strstr(line, " limiter "), *bucket = strstr(line, " bucket ");
		int64_t got, recorded;

		read++;
		if (spec || bucket) {
			assert_null(l);
			snprintf(first, sizeof first, "%s", line);
			spec = spec ? spec + strlen(" limiter ") : NULL;
			bucket = bucket ? bucket + strlen(" bucket ") : NULL;
			l = spec ? parse(&spec) : parse_bucket(&bucket);
			IS(wq_limiter_status(l), WQ_OK);
			begun++;
			continue;
		}
		assert_non_null(l);
		if (strncmp(line, "end", 3) == 0) {
			IS(wq_limiter_free(l), WQ_OK);
			l = NULL;
			continue;
		}
		got = call(l, line, &recorded);
		if (got < recorded - off || got > recorded + off)
			fail_msg("%s:%d: %" PRId64 " is not as recorded: %sin %s", file, read, got,
			         line, first);
	}
	fclose(in);
	assert_null(l);
	print_message("%s: %d sequences, %d lines\n", file, begun, read);
	IS(begun, sequences);
	IS(read, lines);
}

static void limiters_exactly(void **state)
{
	(void)state;
	replay("limiters.txt", 120, 5040, 0);
}

static void buckets_within_a_microsecond(void **state)
{
	(void)state;
	replay("bucket.txt", 80, 6560, WQ_MICROSECOND);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(limiters_exactly),
	    cmocka_unit_test(buckets_within_a_microsecond),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	folder = argv[1];
	return cmocka_run_group_tests_name("limiter_vectors", tests, NULL, NULL);
}
