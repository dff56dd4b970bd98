package peers;

import static peers.Main.check;
import static peers.Main.size;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Rows of lateness: those of bench/late.c. The queue knows milliseconds only and cuts
 * off what is more: to be never early, a time is rounded up to the next of its clock.
 */
final class Late {
	private static final int BLOCK = 100;
	private static final long PERIOD_NS = 100_000;
	private static final int KEYS = 1024;
	private static final int WORKERS = 2;
	private static final long MS = 1_000_000;

	static List<Group> groups() {
		return List.of(
				Group.samples(Peer::hasQueue, p -> late(), "late_p50", "late_p99"),
				Group.samples(Peer::hasQueue, p -> latePool(), "late_pool_p50", "late_pool_p99"));
	}

	private static Duration until(long due) {
		long ms = (due + MS - 1) / MS - Timing.now() / MS;
		return ms > 0 ? Duration.ofMillis(ms) : Duration.ZERO;
	}

	/** A key every 100 µs, from its time to its get's return. */
	private static double[] late() throws InterruptedException {
		String[] keys = Keys.pool(KEYS);
		var q = new Waiting();
		double[] took = new double[size.lateBlocks() * BLOCK];
		int at = 0;
		for (int block = 0; block < size.lateBlocks(); block++) {
			long start = Timing.now();
			for (int i = 1; i <= BLOCK; i++, at++) {
				long due = start + i * PERIOD_NS;
				q.addAfter(keys[at % KEYS], until(due));
				String key = q.get();
				took[at] = Timing.now() - due;
				check(took[at] >= 0, "late: early");
				q.done(key);
			}
		}
		q.close();
		return new double[] {Timing.percentile(took, 0.5), Timing.percentile(took, 0.99)};
	}

	/** The first digits of a key are its number. */
	private static int numberOf(String key) {
		return (key.charAt(3) - '0') * 100 + (key.charAt(4) - '0') * 10 + key.charAt(5) - '0';
	}

	/** Two workers; all keys of a block wait before the first of them is due. */
	private static double[] latePool() throws InterruptedException {
		String[] keys = Keys.pool(BLOCK);
		var q = new Waiting();
		var due = new AtomicLongArray(BLOCK);
		var late = new AtomicLongArray(BLOCK);
		var left = new AtomicReference<CountDownLatch>();
		var crew = new Thread[WORKERS];
		for (int i = 0; i < WORKERS; i++) {
			crew[i] = new Thread(() -> {
				try {
					for (String key; (key = q.get()) != null;) {
						int number = numberOf(key);
						late.set(number, Timing.now() - due.get(number));
						q.done(key);
						left.get().countDown();
					}
				} catch (InterruptedException e) {
					throw new IllegalStateException(e);
				}
			});
			crew[i].start();
		}
		double[] took = new double[size.lateBlocks() * BLOCK];
		for (int block = 0; block < size.lateBlocks(); block++) {
			left.set(new CountDownLatch(BLOCK));
			long start = Timing.now() + TimeUnit.MILLISECONDS.toNanos(1);
			for (int i = 0; i < BLOCK; i++)
				due.set(i, start + i * PERIOD_NS);
			for (int i = 0; i < BLOCK; i++)
				q.addAfter(keys[i], until(due.get(i)));
			left.get().await();
			for (int i = 0; i < BLOCK; i++) {
				took[block * BLOCK + i] = late.get(i);
				check(late.get(i) >= 0, "late_pool: early");
			}
		}
		q.close();
		for (Thread worker : crew)
			worker.join();
		return new double[] {Timing.percentile(took, 0.5), Timing.percentile(took, 0.99)};
	}

	private Late() {}
}
