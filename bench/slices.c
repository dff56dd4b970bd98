/*
 * How work of one thread is timed on a machine that is not ours alone.
 *
 * A busy neighbour (the other thread of the core, another guest) halves the
 * speed for some milliseconds, again and again. Whatever takes 50 ms is
 * therefore nearly always spoilt, and its best repetition is a matter of luck;
 * slices of about 1 ms reach the undisturbed speed in every run. So a
 * repetition consists of many slices that do the same amount of the same work,
 * and its value is what the fastest of them need.
 *
 * A row and its primitive take turns, slice by slice: both see the same phases.
 * Each slice begins with a part that is not timed and warms the caches again.
 *
 * Where all of the work is one course (1M keys into a fresh queue) no two
 * slices do the same. But with fixed seeds a slice position does the same work
 * in every repetition: the same keys meet the same table, the same pages split,
 * the same memory is asked for. What the work of one position costs is
 * therefore the least that it ever took, and the row's value is the sum over
 * all positions, none of which is left out.
 */
#include "bench.h"

#include <stdlib.h>

/*
 * Not the very fastest: the slices of a row do nearly the same, but a few of
 * them find less to do (no page to split, no block to return), and those must
 * not be taken for the row.
 */
static const double low_part = 0.05;

size_t bench_slice_ops(const struct bench_work *w)
{
	size_t n = bench_sizes.quick ? w->slice_ops / 10 : w->slice_ops;

	return n ? n : 1;
}

double bench_slice(const struct bench_work *w)
{
	size_t n = bench_slice_ops(w);

	/* Whatever ran before this slice has used the caches: that is not its work. */
	w->run(w->state, n / 2);

	int64_t start = bench_now();

	w->run(w->state, n);
	return (double)(bench_now() - start) / (double)n;
}

double bench_low(double *slices, size_t n)
{
	return bench_percentile(slices, n, low_part);
}

void bench_in_turn(const struct bench_work *row, const struct bench_work *primitive,
                   struct bench_sample *sample)
{
	size_t n = bench_sizes.slices;
	double *rows = bench_alloc(n, sizeof *rows), *primitives = bench_alloc(n, sizeof *rows);

	for (size_t i = 0; i < n; i++) {
		primitives[i] = bench_slice(primitive);
		rows[i] = bench_slice(row);
	}
	sample->value = bench_low(rows, n);
	sample->limit = bench_low(primitives, n);
	free(rows);
	free(primitives);
}

double bench_alone(const struct bench_work *w)
{
	struct bench_sample sample;

	bench_in_turn(w, w, &sample);
	return sample.value < sample.limit ? sample.value : sample.limit;
}

size_t bench_point(const void *x)
{
	size_t n = *(const size_t *)x, most = 100000;

	return bench_sizes.quick && n > most ? most : n;
}

size_t bench_again(size_t n)
{
	size_t times = bench_sizes.keys / n;

	return times > BENCH_AGAIN_MAX ? BENCH_AGAIN_MAX : times < 1 ? 1 : times;
}

void bench_course_begin(struct bench_course *c)
{
	c->sum = 0;
	c->slice = 0;
	c->start_ns = bench_now();
}

void bench_course_lap(struct bench_course *c)
{
	int64_t now = bench_now();
	double took = (double)(now - c->start_ns);

	if (c->best[c->slice] == 0 || took < c->best[c->slice])
		c->best[c->slice] = took;
	c->sum += took;
	c->slice++;
	c->start_ns = now;
}

void bench_course_resume(struct bench_course *c)
{
	c->start_ns = bench_now();
}

double bench_course_best(const struct bench_course *c)
{
	double sum = 0;

	for (size_t s = 0; s < BENCH_SLICES; s++)
		sum += c->best[s];
	return sum;
}

size_t bench_course_at(size_t n, size_t slice)
{
	return n * slice / BENCH_SLICES;
}
