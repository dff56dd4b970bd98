package peers;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** The keys of bench/keys.c, byte for byte, its orders, its times and its random numbers. */
final class Keys {
	static final int LEN = 20;
	private static final long SEED = 88172645463325252L;

	private static String[] pool = {};

	/** xorshift64*; the state is advanced in place. */
	private static long random(long[] state) {
		long x = state[0];
		x ^= x >>> 12;
		x ^= x << 25;
		x ^= x >>> 27;
		state[0] = x;
		return x * 0x2545F4914F6CDD1DL;
	}

	private static void putDigits(byte[] out, int from, int to, long value) {
		for (int i = to - 1; i >= from; i--) {
			out[i] = (byte) ('0' + value % 10);
			value /= 10;
		}
	}

	/** A key of its own, as a program would make it. */
	static String format(long i) {
		byte[] b = "ns-123/pod-456789012".getBytes(StandardCharsets.ISO_8859_1);
		putDigits(b, 3, 6, i % 1000);
		putDigits(b, 11, LEN, i % 1000000000 * 387420489 % 1000000000);
		return new String(b, StandardCharsets.ISO_8859_1);
	}

	/**
	 * At least the first n keys, which all rows share. They are old when a row begins, and
	 * each has been asked for its hash: a string computes it once.
	 */
	static String[] pool(int n) {
		int from = pool.length;
		if (from < n) {
			pool = Arrays.copyOf(pool, n);
			for (int i = from; i < n; i++)
				pool[i] = format(i);
			Timing.sink += Arrays.hashCode(pool);
			System.gc();
		}
		return pool;
	}

	static int[] order(int n) {
		int[] order = new int[n];
		long[] state = {SEED};
		for (int i = 0; i < n; i++) {
			int j = (int) Long.remainderUnsigned(random(state), i + 1);
			order[i] = order[j];
			order[j] = i;
		}
		return order;
	}

	/** The first n keys in random order: the same strings, which are equal at first sight. */
	static String[] shuffled(int n) {
		String[] pool = pool(n);
		return Arrays.stream(order(n)).mapToObj(i -> pool[i]).toArray(String[]::new);
	}

	/** n times from low to below high. */
	static long[] spans(int n, long low, long high) {
		long[] spans = new long[n];
		long[] state = {SEED};
		for (int i = 0; i < n; i++)
			spans[i] = low + Long.remainderUnsigned(random(state), high - low);
		return spans;
	}

	/** n numbers below span, the i-th most frequent with weight 1 / (i + 1)^s. */
	static int[] zipf(int n, int span, double s) {
		double[] sums = new double[span];
		double sum = 0;
		for (int i = 0; i < span; i++) {
			sum += Math.pow(i + 1, -s);
			sums[i] = sum;
		}
		int[] draws = new int[n];
		long[] state = {2463534242L};
		for (int i = 0; i < n; i++) {
			double at = (random(state) >>> 11) * 0x1p-53 * sum;
			int low = 0;
			int high = span - 1;
			while (low < high) {
				int mid = (low + high) / 2;
				if (sums[mid] > at)
					high = mid;
				else
					low = mid + 1;
			}
			draws[i] = low;
		}
		return draws;
	}

	private Keys() {}
}
