package peers;

import static peers.Main.check;

import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.timer.SystemTimer;
import org.apache.kafka.server.util.timer.TimerTask;

/**
 * Kafka's SystemTimer as it is by default: ticks of 1 ms, wheels of 20 slots. It has
 * no thread that advances it, so none runs beside insert and cancel. A task knows its
 * delay when it is made, and all are made beforehand. It knows milliseconds only.
 */
final class KafkaTimers implements Timers {
	private SystemTimer timer;
	private TimerTask[] tasks;
	private TimerTask[] shuffled;
	private int fired; // only its own thread writes it
	private volatile long endNs;

	private static final class Nothing extends TimerTask {
		Nothing(long delayMs) {
			super(delayMs);
		}

		@Override
		public void run() {}
	}

	private final class Count extends TimerTask {
		Count(long delayMs) {
			super(delayMs);
		}

		@Override
		public void run() {
			if (++fired == tasks.length)
				endNs = Timing.now();
		}
	}

	@Override
	public void begin(long[] delays) {
		tasks = Arrays.stream(delays).mapToObj(ns -> new Nothing(TimeUnit.NANOSECONDS.toMillis(ns) + 1))
				.toArray(TimerTask[]::new);
		timer = new SystemTimer("bench");
	}

	@Override
	public void insert() {
		for (TimerTask task : tasks)
			timer.add(task);
	}

	@Override
	public void shuffle(int[] order) {
		check(timer.size() == tasks.length, "kafka: timers are missing");
		shuffled = Arrays.stream(order).mapToObj(i -> tasks[i]).toArray(TimerTask[]::new);
	}

	@Override
	public void cancel() {
		for (TimerTask task : shuffled)
			task.cancel();
	}

	@Override
	public void end() {
		check(shuffled == null || timer.size() == 0, "kafka: timers are left");
		timer.close();
	}

	/**
	 * The times count from the wheel's own beginning, and it is not advanced before all
	 * timers are in it and due: none has to come down from a higher wheel.
	 */
	@Override
	public long expire(long[] delays) throws InterruptedException {
		tasks = new TimerTask[delays.length];
		fired = 0;
		endNs = 0;
		timer = new SystemTimer("bench");
		long base = Time.SYSTEM.hiResClockMs() + 1;
		for (int i = 0; i < tasks.length; i++) {
			long due = base + TimeUnit.NANOSECONDS.toMillis(delays[i]);
			tasks[i] = new Count(due - Time.SYSTEM.hiResClockMs());
			timer.add(tasks[i]);
		}
		check(timer.size() == tasks.length, "kafka: a timer has run too early");
		Timing.rest(2 * SOON_NS);
		long start = Timing.now();
		while (endNs == 0)
			timer.advanceClock(1);
		timer.close();
		return endNs - start;
	}
}
