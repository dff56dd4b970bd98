package peers;

import static peers.Main.size;

import io.kubernetes.client.extended.workqueue.WorkQueue;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.LongConsumer;

/** Rows of sleeping workers: those of bench/wake.c, without the bare futex beside them. */
final class Wake {
	private static final int HANDLERS = 2;
	private static final long HANDLER_NS = 100_000;

	static List<Group> groups() {
		var all = new ArrayList<>(List.of(
				Group.samples(Peer::hasQueue, Wake::secondStart, "second_start"),
				Group.samples(Peer::hasQueue, p -> new Wake(p, 1, Timing::rest).run(), "wake_idle_p50", "wake_idle_p99"),
				Group.samples(Peer::hasQueue, p -> new Wake(p, 1, Timing::spin).run(), "wake_busy_p50", "wake_busy_p99")));
		for (int waiters : new int[] {1, 2, 4, 8, 16, 32, 64})
			all.add(Group.samples(Peer::hasQueue, p -> new double[] {new Wake(p, waiters, Timing::rest).run()[0]},
					"waiters@" + waiters));
		return all;
	}

	private final WorkQueue<String> q;
	private final int waiters;
	private final LongConsumer pass; // in between the caller sleeps or works
	private volatile long gotNs;
	private final AtomicInteger handled = new AtomicInteger();

	private Wake(Peer p, int waiters, LongConsumer pass) {
		q = p.plain().get();
		this.waiters = waiters;
		this.pass = pass;
	}

	private void handle() {
		try {
			for (String key; (key = q.get()) != null;) {
				gotNs = Timing.now();
				q.done(key);
				handled.incrementAndGet();
			}
		} catch (InterruptedException e) {
			throw new IllegalStateException(e);
		}
	}

	/** From the add to the worker's return from get. */
	private double[] run() throws InterruptedException {
		var threads = startAll(waiters, this::handle);
		pass.accept(waiters * size.restNs()); // all are asleep by then
		String key = Keys.format(1);
		double[] took = new double[size.wakes()];
		for (int i = 0; i < took.length; i++) {
			long start = Timing.now();
			q.add(key);
			do
				pass.accept(size.restNs());
			while (handled.get() != i + 1 || Timing.now() - gotNs < size.restNs() / 2);
			took[i] = gotNs - start;
		}
		q.shutDown();
		for (Thread thread : threads)
			thread.join();
		return new double[] {Timing.percentile(took, 0.5), Timing.percentile(took, 0.99)};
	}

	private static List<Thread> startAll(int n, Runnable work) {
		var threads = new ArrayList<Thread>();
		for (int i = 0; i < n; i++) {
			threads.add(new Thread(work));
			threads.get(i).start();
		}
		return threads;
	}

	/**
	 * Two keys for two sleeping workers whose handlers take 100 µs: from the first add to
	 * the start of the second handler.
	 */
	private static double[] secondStart(Peer p) throws InterruptedException {
		WorkQueue<String> q = p.plain().get();
		var started = new AtomicInteger();
		var ended = new AtomicInteger();
		var startNs = new AtomicLongArray(HANDLERS);
		var finished = new Semaphore(0);
		var threads = startAll(HANDLERS, () -> {
			try {
				for (String key; (key = q.get()) != null;) {
					long at = Timing.now();
					startNs.set(started.getAndIncrement() % HANDLERS, at);
					Timing.spin(HANDLER_NS);
					q.done(key);
					if (ended.incrementAndGet() % HANDLERS == 0)
						finished.release();
				}
			} catch (InterruptedException e) {
				throw new IllegalStateException(e);
			}
		});
		String first = Keys.format(0);
		String second = Keys.format(1);
		double[] took = new double[size.wakes() / 2];
		for (int i = 0; i < took.length; i++) {
			Timing.spin(size.restNs());
			long start = Timing.now();
			q.add(first);
			q.add(second);
			finished.acquire();
			took[i] = Math.max(startNs.get(0), startNs.get(1)) - start;
		}
		q.shutDown();
		for (Thread thread : threads)
			thread.join();
		return new double[] {Timing.percentile(took, 0.5)};
	}
}
