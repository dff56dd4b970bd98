package peers;

import static peers.Main.check;
import static peers.Main.size;

import io.kubernetes.client.extended.workqueue.WorkQueue;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLongArray;

/** Rows of producers and consumers: those of bench/threads.c. */
final class Flow {
	private static final int HOT_KEYS = 1000;
	private static final int HOT_DRAWS = 1 << 16;
	private static final int HOT_SIDES = 4;
	private static final int BACKLOG = 1024;
	private static final int CLAIM = 128;
	private static final int LINE = 16; // longs: two cache lines

	/** How many it has added, or got. */
	private interface Side {
		long run(int side) throws InterruptedException;
	}

	private interface Shape {
		void give(Flow f) throws InterruptedException;
	}

	static List<Group> groups() {
		var all = new ArrayList<>(List.of(
				group("pc_1_1", "keys/s", 1, Flow::plain),
				group("pc_4_4", "keys/s", 4, Flow::plain),
				group("short_1_1", "keys/s", 1, Flow::shortLine),
				group("short_2_2", "keys/s", 2, Flow::shortLine),
				group("short_4_4", "keys/s", 4, Flow::shortLine),
				group("hot_1_1", "ops/s", 1, Flow::hot),
				group("hot_4_4", "ops/s", 4, Flow::hot),
				group("work_1us", "keys/s", 4, Flow::work),
				Group.course("ns", Peer::hasQueue, Flow::pingpong, "pingpong")));
		for (int sides : new int[] {1, 2, 4, 8})
			all.add(group("threads@" + sides, "keys/s", sides, Flow::plain));
		return all;
	}

	private static Group group(String name, String unit, int sides, Shape shape) {
		return Group.course(unit, Peer::hasQueue, p -> {
			var f = new Flow(p, sides);
			shape.give(f);
			return new double[] {f.run()};
		}, name);
	}

	private final WorkQueue<String> q;
	private final String[] keys = Keys.pool(size.pool());
	private final int sides; // on either side
	private int nkeys = size.pool();
	private int[] draws;
	private int steps;
	private Side produce = this::addAll;
	private Side consume = this::getAll;

	private volatile boolean stop;
	private final AtomicInteger adding;
	private final AtomicLongArray claims = new AtomicLongArray(2 * LINE); // only the middle one is used
	private final AtomicLongArray seen; // a line for each consumer
	private final long[] added;
	private final long[] got;
	private final long[] ends;

	private Flow(Peer p, int sides) {
		this.sides = sides;
		q = p.plain().get();
		adding = new AtomicInteger(sides);
		seen = new AtomicLongArray((sides + 1) * LINE);
		added = new long[sides];
		got = new long[sides];
		ends = new long[2 * sides];
	}

	private static void plain(Flow f) {}

	private static void shortLine(Flow f) {
		f.nkeys = size.shortKeys();
		f.produce = f::addShort;
		f.consume = f::getShort;
	}

	private static void hot(Flow f) {
		f.draws = Keys.zipf(HOT_DRAWS, HOT_KEYS, 1.1);
		f.produce = f::addHot;
	}

	private static void work(Flow f) throws InterruptedException {
		f.nkeys = size.keys() / 10;
		f.steps = Timing.countSteps();
		f.consume = f::getWork;
	}

	private int from(int side) {
		return (int) ((long) nkeys * side / sides);
	}

	private long addAll(int side) {
		int to = from(side + 1);
		for (int i = from(side); i < to; i++)
			q.add(keys[i]);
		return to - from(side);
	}

	/** The right to add a few keys, as in bench/threads.c. */
	private void claim(int n) {
		for (;;) {
			long now = claims.get(LINE);
			long done = 0;
			for (int i = 0; i < sides; i++)
				done += seen.get((i + 1) * LINE);
			if (now + n < done + BACKLOG) {
				if (claims.compareAndSet(LINE, now, now + n))
					return;
				continue;
			}
			Thread.onSpinWait();
			Thread.yield();
		}
	}

	private long addShort(int side) {
		int to = from(side + 1);
		for (int i = from(side); i < to;) {
			int n = Math.min(to - i, CLAIM);
			claim(n);
			for (int end = i + n; i < end; i++)
				q.add(keys[i]);
		}
		return to - from(side);
	}

	private long addHot(int side) {
		int at = side * (HOT_DRAWS / HOT_SIDES);
		long n = 0;
		for (; !stop; n++) {
			q.add(keys[draws[at]]);
			at = (at + 1) % HOT_DRAWS;
		}
		return n;
	}

	private long getAll(int side) throws InterruptedException {
		long n = 0;
		for (String key; (key = q.get()) != null; n++)
			q.done(key);
		return n;
	}

	private long getShort(int side) throws InterruptedException {
		long n = 0;
		for (String key; (key = q.get()) != null;) {
			q.done(key);
			seen.setRelease((side + 1) * LINE, ++n);
		}
		return n;
	}

	private long getWork(int side) throws InterruptedException {
		long n = 0;
		long x = 0;
		for (String key; (key = q.get()) != null; n++) {
			x += Timing.steps(steps);
			q.done(key);
		}
		Timing.sink = x;
		return n;
	}

	private void start(List<Thread> threads, CountDownLatch ready, CountDownLatch begin, int side, boolean producer) {
		var thread = new Thread(() -> {
			try {
				ready.countDown();
				begin.await();
				if (producer)
					added[side] = produce.run(side);
				else
					got[side] = consume.run(side);
			} catch (InterruptedException e) {
				throw new IllegalStateException(e);
			}
			// The last producer shuts the queue: consumers end when it is empty.
			if (producer && adding.decrementAndGet() == 0)
				q.shutDown();
			ends[producer ? side : sides + side] = Timing.now();
		});
		thread.start();
		threads.add(thread);
	}

	private double run() throws InterruptedException {
		var ready = new CountDownLatch(2 * sides);
		var begin = new CountDownLatch(1);
		var threads = new ArrayList<Thread>();
		for (int side = 0; side < sides; side++) {
			start(threads, ready, begin, side, false);
			start(threads, ready, begin, side, true);
		}
		ready.await();
		long first = Timing.now();
		begin.countDown();
		if (draws != null) {
			Timing.rest(size.hotNs());
			stop = true;
		}
		for (Thread thread : threads)
			thread.join();

		long nadded = 0;
		long ngot = 0;
		long last = first;
		for (int side = 0; side < sides; side++) {
			nadded += added[side];
			ngot += got[side];
		}
		for (long end : ends)
			last = Math.max(last, end);
		double seconds = (last - first) * 1e-9;
		if (draws != null) {
			check(ngot > 0 && ngot <= nadded, "hot keys: more came out than went in");
			return (nadded + 2 * ngot) / seconds;
		}
		check(nadded == nkeys && ngot == nadded, "keys were lost");
		return ngot / seconds;
	}

	/** Two queues, one key to and fro. */
	private static double[] pingpong(Peer p) throws InterruptedException {
		WorkQueue<String> a = p.plain().get();
		WorkQueue<String> b = p.plain().get();
		int trips = size.roundTrips();
		var other = new Thread(() -> play(b, a, trips, false));
		other.start();
		long start = Timing.now();
		play(a, b, trips, true);
		long took = Timing.now() - start;
		other.join();
		return new double[] {(double) took / trips};
	}

	private static void play(WorkQueue<String> from, WorkQueue<String> to, int trips, boolean serves) {
		String key = Keys.format(1);
		if (serves)
			to.add(key);
		try {
			for (int i = 0; i < trips; i++) {
				from.done(from.get());
				// The one who began also keeps the key in the end.
				if (!serves || i + 1 < trips)
					to.add(key);
			}
		} catch (InterruptedException e) {
			throw new IllegalStateException(e);
		}
	}
}
