package peers;

import static peers.Main.check;

import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import io.netty.util.TimerTask;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Netty's HashedWheelTimer as it is by default: ticks of 100 ms, 512 slots. What is
 * inserted or cancelled is written down, and its thread carries that out with a later
 * tick, at most 100,000 timers each. It cannot be asked when it has, so that is not
 * waited for.
 */
final class NettyTimers implements Timers {
	private static final long TICK_NS = TimeUnit.MILLISECONDS.toNanos(100);
	private static final int PER_TICK = 100_000;

	private HashedWheelTimer timer;
	private long[] delays;
	private Timeout[] timeouts;
	private Timeout[] shuffled;
	private boolean bad;
	private int fired; // only its own thread writes these
	private long firstNs;
	private long lastNs;

	@Override
	public void begin(long[] spans) {
		delays = spans;
		timeouts = new Timeout[spans.length];
		timer = new HashedWheelTimer();
		timer.start();
	}

	@Override
	public void insert() {
		TimerTask nothing = timeout -> {};
		for (int i = 0; i < timeouts.length; i++)
			timeouts[i] = timer.newTimeout(nothing, delays[i], TimeUnit.NANOSECONDS);
	}

	@Override
	public void shuffle(int[] order) {
		shuffled = Arrays.stream(order).mapToObj(i -> timeouts[i]).toArray(Timeout[]::new);
	}

	@Override
	public void cancel() {
		for (Timeout timeout : shuffled)
			bad |= !timeout.cancel();
	}

	@Override
	public void end() {
		check(!bad, "netty: a timer was not to be cancelled");
		for (Timeout timeout : timeouts)
			timeout.cancel(); // or stop() makes a set of all that are left
		timer.stop();
	}

	/**
	 * All are due within one tick, and in their slot before it comes: the thread then runs
	 * them one after the other. From the first to the last of them.
	 */
	@Override
	public long expire(long[] spans) throws InterruptedException {
		long moves = spans.length / PER_TICK + 2; // the ticks that take them to their slots
		for (long ahead = 2 * moves; ; ahead *= 2) {
			check(ahead < 1000, "netty: the timers cannot be inserted in time");
			timer = new HashedWheelTimer();
			timer.start();
			long due = Timing.now() + ahead * TICK_NS + TICK_NS / 3;
			boolean inTime = insertFor(due, spans, moves);
			timer.stop();
			if (inTime)
				return lastNs - firstNs;
		}
	}

	private boolean insertFor(long due, long[] spans, long moves) throws InterruptedException {
		var finished = new CountDownLatch(1);
		fired = 0;
		TimerTask count = timeout -> {
			if (++fired == 1)
				firstNs = Timing.now();
			if (fired == spans.length) {
				lastNs = Timing.now();
				finished.countDown();
			}
		};
		for (long span : spans)
			timer.newTimeout(count, due + span - Timing.now(), TimeUnit.NANOSECONDS);
		if (Timing.now() > due - moves * TICK_NS)
			return false;
		finished.await();
		return true;
	}
}
