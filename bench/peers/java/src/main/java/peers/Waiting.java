package peers;

import io.kubernetes.client.extended.workqueue.DefaultRateLimitingQueue;
import java.time.Duration;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * The Java client's delaying and rate-limiting queue, such that no key is lost. A
 * thread of its own keeps the times, and at most 1,000 keys may be on their way to
 * it: what is added then it drops, and says nothing. Here it waits for room, as
 * client-go does. Only one thread adds.
 */
final class Waiting extends DefaultRateLimitingQueue<String> {
	private static final long ROOM_NS = 50_000;

	private final ExecutorService keeper;

	Waiting() {
		this(Executors.newSingleThreadExecutor());
	}

	private Waiting(ExecutorService keeper) {
		super(keeper);
		this.keeper = keeper;
	}

	/** On a clock in milliseconds that the caller moves. */
	static Waiting on(AtomicLong clock) {
		var q = new Waiting();
		q.injectTimeSource(clock::get);
		return q;
	}

	private void waitForRoom() {
		while (waitingForAddQueue.remainingCapacity() == 0)
			LockSupport.parkNanos(ROOM_NS);
	}

	@Override
	public void addAfter(String key, Duration delay) {
		waitForRoom();
		super.addAfter(key, delay);
	}

	@Override
	public void addRateLimited(String key) {
		waitForRoom();
		super.addRateLimited(key);
	}

	/** Until none is on its way. */
	void settle() {
		while (!waitingForAddQueue.isEmpty())
			LockSupport.parkNanos(ROOM_NS);
	}

	/** With its thread, which would sleep on for up to 10 s. */
	void close() throws InterruptedException {
		shutDown();
		keeper.shutdownNow();
		Main.check(keeper.awaitTermination(1, TimeUnit.MINUTES), "a queue's thread does not end");
	}
}
