/*
 * The keys: namespace and name, 20 bytes, as a controller would have them;
 * their orders and their times. All are made before anything is timed.
 */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* xorshift64* */
uint64_t bench_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * UINT64_C(0x2545F4914F6CDD1D);
}

static void put_digits(char *out, int n, uint64_t value)
{
	for (int i = n - 1; i >= 0; i--) {
		out[i] = (char)('0' + value % 10);
		value /= 10;
	}
}

void bench_key_format(char out[KEY_LEN + 1], uint64_t i)
{
	/* The factor has no divisor in common with 10^9, so no two numbers meet. */
	uint64_t scattered = i % 1000000000 * 387420489 % 1000000000;

	memcpy(out, "ns-", 3);
	put_digits(out + 3, 3, i % 1000);
	memcpy(out + 6, "/pod-", 5);
	put_digits(out + 11, 9, scattered);
	out[KEY_LEN] = '\0';
}

struct bench_keys bench_keys_make(size_t n)
{
	struct bench_keys k = {.bytes = bench_alloc(n, KEY_STRIDE), .n = n};

	for (size_t i = 0; i < n; i++)
		bench_key_format(k.bytes + i * KEY_STRIDE, i);
	return k;
}

const struct bench_keys *bench_pool(void)
{
	static struct bench_keys pool;

	if (!pool.bytes)
		pool = bench_keys_make(2 * bench_sizes.keys);
	return &pool;
}

uint32_t *bench_order(size_t n)
{
	uint32_t *order = bench_alloc(n, sizeof *order);
	uint64_t state = BENCH_SEED;

	for (size_t i = 0; i < n; i++) {
		size_t j = (size_t)(bench_random(&state) % (i + 1));

		order[i] = order[j];
		order[j] = (uint32_t)i;
	}
	return order;
}

int64_t bench_span(uint64_t *state, int64_t low, int64_t high)
{
	return low + (int64_t)(bench_random(state) % (uint64_t)(high - low));
}

int64_t *bench_spans(size_t n, int64_t low, int64_t high)
{
	int64_t *spans = bench_alloc(n, sizeof *spans);
	uint64_t state = BENCH_SEED;

	for (size_t i = 0; i < n; i++)
		spans[i] = bench_span(&state, low, high);
	return spans;
}

struct bench_keys bench_shuffled(size_t n)
{
	const struct bench_keys *pool = bench_pool();
	uint32_t *order = bench_order(n);
	struct bench_keys k = {.bytes = bench_alloc(n, KEY_STRIDE), .n = n};

	for (size_t i = 0; i < n; i++)
		memcpy(k.bytes + i * KEY_STRIDE, bench_key(pool, order[i]), KEY_STRIDE);
	free(order);
	return k;
}

void bench_keys_release(struct bench_keys *k)
{
	free(k->bytes);
	k->bytes = NULL;
}

uint16_t *bench_zipf(size_t n, uint16_t range, double s)
{
	double *sums = bench_alloc(range, sizeof *sums);
	uint16_t *draws = bench_alloc(n, sizeof *draws);
	uint64_t state = 2463534242u;
	double sum = 0;

	for (size_t i = 0; i < range; i++) {
		sum += pow((double)(i + 1), -s);
		sums[i] = sum;
	}
	for (size_t i = 0; i < n; i++) {
		double at = (double)(bench_random(&state) >> 11) * 0x1p-53 * sum;
		size_t low = 0, high = (size_t)range - 1;

		while (low < high) {
			size_t mid = (low + high) / 2;

			if (sums[mid] > at)
				high = mid;
			else
				low = mid + 1;
		}
		draws[i] = (uint16_t)low;
	}
	free(sums);
	return draws;
}
