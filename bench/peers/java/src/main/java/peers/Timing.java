package peers;

import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;

/**
 * How bench/slices.c times the work of one thread: many slices of about 1 ms, each
 * after a part that warms the caches, and the value is the 5th percentile. A
 * collection that runs in between is therefore not in it, nor is a slice in which a
 * table grows: in the peers' favour.
 */
final class Timing {
	interface Slice {
		void run(int n) throws InterruptedException;
	}

	/** What is computed goes here, so that it is computed. */
	static volatile long sink;

	static long now() {
		return System.nanoTime();
	}

	static void rest(long ns) {
		long until = now() + ns;
		for (long left = ns; left > 0; left = until - now())
			LockSupport.parkNanos(left);
	}

	static void spin(long ns) {
		for (long start = now(); now() - start < ns;)
			;
	}

	/** The value below which the part p of the samples lies; sorts them. As bench_percentile() has it. */
	static double percentile(double[] samples, double p) {
		Arrays.sort(samples);
		return samples[Math.min((int) (samples.length * p), samples.length - 1)];
	}

	static double low(double[] slices) {
		return percentile(slices, 0.05);
	}

	static double inSlices(int ops, Slice slice) throws InterruptedException {
		int n = Math.max(ops / Main.size.sliceParts(), 1);
		double[] took = new double[Main.size.slices()];
		for (int i = 0; i < took.length; i++) {
			slice.run(n / 2);
			long start = now();
			slice.run(n);
			took[i] = (double) (now() - start) / n;
		}
		return low(took);
	}

	/** A chain of n multiplications, as in bench/workers.c. */
	static long steps(int n) {
		long x = n;
		for (int i = 0; i < n; i++)
			x = x * 6364136223846793005L + 1;
		return x;
	}

	/** How many of them take 1 µs. */
	static int countSteps() throws InterruptedException {
		return (int) (1000 / inSlices(500_000, n -> sink += steps(n)));
	}

	private Timing() {}
}
