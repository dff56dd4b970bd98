package peers;

import static peers.Main.check;
import static peers.Main.size;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;

/** Rows of keys that wait: add_after of bench/delay.c, bench/burst.c and bench/limit.c. */
final class Delay {
	private static final int LIMITED_KEYS = 1024;

	static List<Group> groups() {
		var all = new ArrayList<>(List.of(
				Group.course("ns", Peer::hasQueue, p -> addAfter(size.keys()), "add_after"),
				Group.course("ms", Peer::hasQueue, p -> fireBurst(), "fire_burst"),
				Group.slices("limited_cycle", Peer::hasQueue, p -> limitedCycle())));
		// Of 10M many would come due while others are still being added: other work.
		for (int n : IntStream.of(Curves.sizes()).filter(n -> n <= 1_000_000).toArray())
			all.add(Group.course("ns", Peer::hasQueue, p -> addAfter(size.point(n)), "add_after@" + n));
		return all;
	}

	/** What is still on its way to the thread that keeps the times, at most 1,000 keys, is not waited for. */
	private static double[] addAfter(int n) throws InterruptedException {
		String[] keys = Keys.pool(n);
		long[] spans = Keys.spans(n, TimeUnit.SECONDS.toNanos(1), TimeUnit.MINUTES.toNanos(1));
		double[] took = new double[size.again(n)];
		for (int again = 0; again < took.length; again++) {
			long start = Timing.now();
			var q = new Waiting();
			for (int i = 0; i < n; i++)
				q.addAfter(keys[i], Duration.ofNanos(spans[i]));
			took[again] = (double) (Timing.now() - start) / n;
			q.close();
		}
		return new double[] {Timing.low(took)};
	}

	/**
	 * All keys wait for one instant; from then on until all are got and done. Its thread
	 * sleeps by the real clock, whatever it is told; one more addAfter, of a key that waits
	 * already, makes it look.
	 */
	private static double[] fireBurst() throws InterruptedException {
		int n = size.keys();
		String[] keys = Keys.pool(n);
		var clock = new AtomicLong(1_000_000);
		var q = Waiting.on(clock);
		for (int i = 0; i < n; i++)
			q.addAfter(keys[i], Duration.ofMinutes(1));
		q.settle();
		long start = Timing.now();
		clock.addAndGet(TimeUnit.MINUTES.toMillis(1));
		q.addAfter(keys[0], Duration.ofMillis(1));
		for (int i = 0; i < n; i++)
			q.done(q.get());
		long took = Timing.now() - start;
		check(q.length() == 0, "burst: keys are left");
		q.close();
		return new double[] {took * 1e-6};
	}

	private static double[] limitedCycle() throws InterruptedException {
		String[] keys = Keys.pool(LIMITED_KEYS);
		var q = new Waiting();
		int[] at = {0};
		Timing.Slice cycles = n -> {
			for (int i = 0; i < n; i++) {
				String key = keys[at[0]];
				q.addRateLimited(key);
				if (q.numRequeues(key) != 1)
					check(false, "limited_cycle: not counted");
				q.forget(key);
				at[0] = (at[0] + 1) % LIMITED_KEYS;
			}
		};
		// Most keys come to wait for long: the bucket has long been empty.
		cycles.run(LIMITED_KEYS);
		double ns = Timing.inSlices(10_000, cycles);
		q.close();
		return new double[] {ns};
	}

	private Delay() {}
}
