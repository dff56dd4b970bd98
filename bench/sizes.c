/* How much is done: by wq_bench, and by the peers that share its rows. */
#include "bench.h"

struct bench_sizes bench_sizes = {
    .keys = 1000000,
    .slices = 100,
    .short_keys = 600000,
    .round_trips = 20000,
    .wakes = 500,
    .hot_ns = 75000000,
    .rest_ns = 1000000,
    .random_lines = (size_t)1 << 23,
    .trip_chunks = 500,
};

const struct bench_sizes bench_quick_sizes = {
    .quick = true,
    .keys = 10000,
    .slices = 10,
    .short_keys = 10000,
    .round_trips = 2000,
    .wakes = 40,
    .hot_ns = 20000000,
    .rest_ns = 500000,
    .random_lines = (size_t)1 << 18,
    .trip_chunks = 51,
};
