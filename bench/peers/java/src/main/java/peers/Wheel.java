package peers;

import static peers.Main.size;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Rows of timers: those of bench/wheel.c. */
final class Wheel {
	static List<Group> groups() {
		var all = new ArrayList<Group>();
		all.add(Group.course("ns", Peer::hasTimers, Wheel::rows, "wheel_insert", "wheel_cancel", "wheel_expire"));
		for (int n : Curves.sizes())
			all.add(Group.course("ns", Peer::hasTimers, p -> insert(p, n), "wheel_insert@" + n));
		return all;
	}

	private static long[] far(int n) {
		return Keys.spans(n, TimeUnit.SECONDS.toNanos(1), TimeUnit.MINUTES.toNanos(1));
	}

	private static double[] rows(Peer p) throws InterruptedException {
		int n = size.keys();
		int[] order = Keys.order(n);
		Timers timers = p.timers().get();
		timers.begin(far(n));
		long start = Timing.now();
		timers.insert();
		long inserted = Timing.now() - start;
		timers.shuffle(order);
		start = Timing.now();
		timers.cancel();
		long cancelled = Timing.now() - start;
		timers.end();
		long expired = timers.expire(Keys.spans(n, 1, Timers.SOON_NS));
		return new double[] {(double) inserted / n, (double) cancelled / n, (double) expired / n};
	}

	private static double[] insert(Peer p, int at) {
		int n = size.point(at);
		long[] delays = far(n);
		double[] took = new double[size.again(n)];
		for (int i = 0; i < took.length; i++) {
			Timers timers = p.timers().get();
			timers.begin(delays);
			long start = Timing.now();
			timers.insert();
			took[i] = (double) (Timing.now() - start) / n;
			timers.end();
		}
		return new double[] {Timing.low(took)};
	}

	private Wheel() {}
}
