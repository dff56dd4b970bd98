package peers;

/** How much is done: the figures of bench/main.c. */
record Sizes(
		int keys,
		int slices,
		int sliceParts, // what a slice's operations are divided by
		int shortKeys,
		int roundTrips,
		int wakes,
		long hotNs,
		long restNs,
		int lateBlocks,
		int mostPoints) { // the largest X of a row NAME@X
	static final Sizes FULL =
			new Sizes(1_000_000, 100, 1, 600_000, 20_000, 500, 75_000_000, 1_000_000, 100, Integer.MAX_VALUE);
	static final Sizes QUICK = new Sizes(10_000, 10, 10, 10_000, 2_000, 40, 20_000_000, 500_000, 2, 100_000);

	/** Enough to have it compiled. */
	static final Sizes WARM = new Sizes(20_000, 10, 1, 20_000, 2_000, 10, 20_000_000, 200_000, 1, 20_000);

	int pool() {
		return 2 * keys;
	}

	/** The X of a row NAME@X. */
	int point(int x) {
		return Math.min(x, mostPoints);
	}

	/** How often work on n things that begins anew each time is done; as bench_again() has it. */
	int again(int n) {
		return Math.max(1, Math.min(keys / n, 100));
	}
}
