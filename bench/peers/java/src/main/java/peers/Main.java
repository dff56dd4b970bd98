package peers;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.TimeUnit;

/**
 * The Java peers of the benchmark, behind the contract of bench/peers/README.md:
 *
 * <pre>java-peers PEER --list | --version | [--quick] ROW...</pre>
 *
 * A peer says how its queues or timers are made (Peer.java); the rows are written
 * once, for whatever can do them. Rows that one run measures together are a group, as
 * in wq_bench. Before a group counts it runs for a while with little to do, so that
 * its code is compiled, and the collector once, so that no row pays for the one
 * before it. Collector and heap are what the machine's Java has by default: the heap
 * grows as it is needed and shrinks with that collection. So a course is run three
 * times, as long as that takes less than 10 s, and the best counts: by then it is as
 * large as the row needs it.
 */
final class Main {
	static Sizes size = Sizes.FULL;

	private static final long WARM_NS = 1_000_000_000;
	private static final int COURSES = 3;
	private static final long COURSES_NS = 10_000_000_000L;

	/** Who waits for a key that is lost waits for ever. */
	private static final Timer WATCH = new Timer(true);

	private static List<Group> groups() {
		var all = new ArrayList<Group>();
		all.addAll(Single.groups());
		all.addAll(Flow.groups());
		all.addAll(Wake.groups());
		all.addAll(Memory.groups());
		all.addAll(Delay.groups());
		all.addAll(Late.groups());
		all.addAll(Wheel.groups());
		return all;
	}

	static void check(boolean ok, String what) {
		if (!ok) {
			System.err.println("java-peers: " + what);
			Runtime.getRuntime().halt(1);
		}
	}

	private static void printVersions(Peer p) {
		// The file that the classes come from bears it: netty-common-4.2.19.Final.jar.
		String jar = p.of().getProtectionDomain().getCodeSource().getLocation().getPath();
		String version = jar.replaceFirst(".*/[a-z-]*-([0-9].*)\\.jar$", "$1");
		System.out.printf("%s %s (Java %s)%n", p.name(), version, Runtime.version());
	}

	private static void printList(Peer p) {
		for (Group g : groups())
			if (g.can().test(p))
				g.rows().forEach(r -> System.out.println(r.name()));
	}

	private static void warm(Group g, Peer p) throws Exception {
		Sizes real = size;
		long until = Timing.now() + (real == Sizes.FULL ? WARM_NS : 0);
		size = Sizes.WARM;
		do
			g.work().run(p);
		while (Timing.now() < until);
		size = real;
	}

	private static TimerTask watch(Group g) {
		var late = new TimerTask() {
			@Override
			public void run() {
				check(false, g.rows().get(0).name() + " does not end: a key was lost");
			}
		};
		WATCH.schedule(late, TimeUnit.MINUTES.toMillis(size == Sizes.FULL ? 15 : 1));
		return late;
	}

	private static double[] measure(Group g, Peer p) throws Exception {
		if (g.kind() != Group.Kind.CHILD)
			warm(g, p);
		System.gc();
		long until = Timing.now() + COURSES_NS;
		double[] best = g.work().run(p);
		int courses = g.kind() == Group.Kind.COURSE && size == Sizes.FULL ? COURSES : 1;
		for (int again = 1; again < courses && Timing.now() < until; again++) {
			double[] values = g.work().run(p);
			for (int i = 0; i < best.length; i++)
				best[i] = g.rows().get(i).better(best[i], values[i]);
		}
		return best;
	}

	private static void runRows(Peer p, Set<String> wanted) throws Exception {
		for (Group g : groups()) {
			if (g.rows().stream().noneMatch(r -> wanted.contains(r.name())))
				continue;
			check(g.can().test(p), p.name() + " cannot do " + g.rows().get(0).name());
			TimerTask late = watch(g);
			double[] values = measure(g, p);
			late.cancel();
			for (int i = 0; i < values.length; i++) {
				Row r = g.rows().get(i);
				if (wanted.contains(r.name()))
					System.out.printf(Locale.ROOT, "{\"row\":\"%s\",\"value\":%.3f,\"unit\":\"%s\"}%n",
							r.name(), values[i], r.unit());
			}
		}
	}

	private static boolean known(String name) {
		return groups().stream().anyMatch(g -> g.rows().stream().anyMatch(r -> r.name().equals(name)));
	}

	public static void main(String[] args) throws Exception {
		// A thread that has failed leaves the others waiting.
		Thread.setDefaultUncaughtExceptionHandler((thread, e) -> {
			e.printStackTrace();
			check(false, "a thread has failed");
		});
		if (args.length < 2) {
			System.err.println("usage: java-peers PEER --list | --version | [--quick] ROW...");
			System.exit(2);
		}
		Peer p = Peer.find(args[0]);
		check(p != null, "no peer is called " + args[0]);
		var rest = new ArrayList<>(List.of(args).subList(1, args.length));
		if (rest.get(0).equals("--quick")) {
			size = Sizes.QUICK;
			rest.remove(0);
		}
		for (String name : rest) {
			switch (name) {
			case "--list" -> {
				printList(p);
				return;
			}
			case "--version" -> {
				printVersions(p);
				return;
			}
			case Memory.CHILD, Memory.CHILD_FREED -> {
				Memory.child(p, name.equals(Memory.CHILD_FREED));
				return;
			}
			default -> check(known(name), "no row is called " + name);
			}
		}
		runRows(p, Set.copyOf(rest));
		System.exit(0); // a queue's own threads may sleep for seconds before they see that it is over
	}

	private Main() {}
}
