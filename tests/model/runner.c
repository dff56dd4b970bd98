#define _GNU_SOURCE
#include "runner.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	OPS = 300,
	HANG_S = 30, /* a tape takes milliseconds */
	TRIAL_HANG_S = 5,
	SHRINK_RUNS = 3000,
	SHRINK_S = 60,
};

/* Where the child is: written by it, read by the parent after its death. */
struct progress {
	long tape;
	struct tape_diff diff;
};

static struct progress *progress;
static const struct runner *runner;

uint64_t runner_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* ---- running --------------------------------------------------------------- */

static void run_or_exit(const uint8_t *bytes, size_t n, unsigned limit_s)
{
	alarm(limit_s);
	if (runner->run(bytes, n, &progress->diff) != 0)
		_exit(1);
}

/* Runs body() in a child; true if it went well. *how tells what happened. */
static bool child(void (*body)(void *), void *ctx, const char **how)
{
	int status;

	progress->diff = (struct tape_diff){0};
	fflush(NULL);
	pid_t pid = fork();

	if (pid < 0) {
		perror("fork");
		exit(2);
	}
	if (pid == 0) {
		body(ctx);
		exit(0);
	}
	if (waitpid(pid, &status, 0) != pid)
		exit(2);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	if (progress->diff.text[0])
		*how = progress->diff.text;
	else if (WIFSIGNALED(status))
		*how = WTERMSIG(status) == SIGALRM ? "hangs" : strsignal(WTERMSIG(status));
	else
		*how = "a sanitizer or an assertion ended the program";
	return false;
}

struct bytes {
	uint8_t *at;
	size_t n;
};

static void one_tape(void *ctx)
{
	struct bytes *b = ctx;

	run_or_exit(b->at, b->n, TRIAL_HANG_S);
}

/* What a crash prints is wanted once, for the shortest tape. */
static void one_tape_quietly(void *ctx)
{
	if (!freopen("/dev/null", "w", stderr))
		_exit(2);
	one_tape(ctx);
}

struct patience {
	int runs;
	time_t until;
};

static bool patient(struct patience *p)
{
	return p->runs-- > 0 && time(NULL) < p->until;
}

/* Leave out halves, quarters, ... single bytes while it still fails. */
static void leave_out(struct bytes *b, struct bytes *trial, struct patience *p)
{
	const char *how;

	for (size_t piece = b->n > 1 ? b->n / 2 : 1; piece > 0; piece /= 2)
		for (size_t at = 0; at < b->n && patient(p);) {
			size_t gone = piece < b->n - at ? piece : b->n - at;

			memcpy(trial->at, b->at, at);
			memcpy(trial->at + at, b->at + at + gone, b->n - at - gone);
			trial->n = b->n - gone;
			if (child(one_tape_quietly, trial, &how)) {
				at += piece;
				continue;
			}
			memcpy(b->at, trial->at, trial->n);
			b->n = trial->n;
		}
}

/* Arguments of 0 are the simplest: many then read fewer bytes, which can be left out. */
static void make_zero(struct bytes *b, struct patience *p)
{
	const char *how;

	for (size_t at = 0; at < b->n && patient(p); at++) {
		uint8_t was = b->at[at];

		b->at[at] = 0;
		if (was != 0 && child(one_tape_quietly, b, &how))
			b->at[at] = was;
	}
}

/* Delta debugging, until nothing more helps. */
static void shorten(struct bytes *b)
{
	struct bytes trial = {malloc(b->n), 0};
	struct patience p = {SHRINK_RUNS, time(NULL) + SHRINK_S};
	size_t before;

	if (!trial.at)
		abort();
	do {
		before = b->n;
		leave_out(b, &trial, &p);
		make_zero(b, &p);
	} while (b->n < before && patient(&p));
	free(trial.at);
}

static int report(struct bytes *b, const char *how)
{
	printf("FAILED: step %zu: %s\n", progress->diff.step, how);
	size_t before = b->n;

	shorten(b);
	if (child(one_tape, b, &how))
		how = "no longer fails when run again";
	printf("shortened from %zu to %zu bytes: step %zu: %s\n", before, b->n, progress->diff.step,
	       how);
	tape_print(stdout, b->at, b->n);
	free(b->at);
	return 1;
}

/* ---- the program ----------------------------------------------------------- */

struct job {
	uint64_t seed;
	long tapes;
	size_t nops;
};

static void many_tapes(void *ctx)
{
	struct job *j = ctx;

	for (progress->tape = 0; progress->tape < j->tapes; progress->tape++) {
		uint8_t *bytes;
		size_t n = runner->make(j->seed, progress->tape, j->nops, &bytes);

		run_or_exit(bytes, n, HANG_S);
		free(bytes);
	}
}

static int run_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct bytes b = {malloc(1 << 20), 0};
	const char *how;

	if (!f || !b.at) {
		perror(path);
		return 2;
	}
	b.n = fread(b.at, 1, 1 << 20, f);
	fclose(f);
	if (!child(one_tape, &b, &how))
		return report(&b, how);
	free(b.at);
	puts("ok");
	return 0;
}

int runner_main(int argc, char **argv, const struct runner *r)
{
	const char *is_long = getenv("WQ_LONG"), *how;
	struct job j = {
	    .seed = (uint64_t)time(NULL),
	    .tapes = is_long && strcmp(is_long, "1") == 0 ? 5 * RUNNER_TAPES : RUNNER_TAPES,
	    .nops = OPS,
	};

	runner = r;
	progress =
	    mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (progress == MAP_FAILED)
		return 2;
	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--seed") == 0)
			j.seed = strtoull(argv[i + 1], NULL, 0);
		else if (strcmp(argv[i], "--tapes") == 0)
			j.tapes = strtol(argv[i + 1], NULL, 0);
		else if (strcmp(argv[i], "--ops") == 0)
			j.nops = strtoul(argv[i + 1], NULL, 0);
		else if (strcmp(argv[i], "--tape") == 0)
			return run_file(argv[i + 1]);
	}
	if (j.nops == 0 || j.tapes < 0)
		return 2;
	printf("seed %llu, %ld tapes of up to %zu operations\n", (unsigned long long)j.seed,
	       j.tapes, j.nops);
	if (child(many_tapes, &j, &how)) {
		printf("ok\n");
		return 0;
	}
	printf("tape %ld of seed %llu ", progress->tape, (unsigned long long)j.seed);

	struct bytes b;

	b.n = runner->make(j.seed, progress->tape, j.nops, &b.at);
	return report(&b, how);
}
