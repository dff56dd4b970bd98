package peers;

import java.util.stream.IntStream;

/** The points of the rows NAME@N, where N is a number of keys or timers. */
final class Curves {
	private static final int[] SIZES = {1_000, 10_000, 100_000, 1_000_000, 10_000_000};

	/** What the largest queues of all may come to need, with the keys and room for the collector. */
	private static final long BYTES_EACH = 300;

	/** Those for which the default heap, a quarter of the machine's memory, has room. */
	static int[] sizes() {
		long room = Runtime.getRuntime().maxMemory();
		return IntStream.of(SIZES).filter(n -> n * BYTES_EACH <= room).toArray();
	}

	private Curves() {}
}
