package peers;

import static peers.Main.check;
import static peers.Main.size;

import io.kubernetes.client.extended.workqueue.WorkQueue;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;

/**
 * Rows of bytes: those of bench/memory.c, in a child of their own.
 *
 * <pre>
 * bytes_per_key, bytes_kept_after  as the process stands at that moment, what the
 *                                  collector has not yet given back included
 * .._freed                         after System.gc(), which no program calls as it
 *                                  goes: what is left when all garbage is gone
 * </pre>
 */
final class Memory {
	static final String CHILD = "--memory-child";
	static final String CHILD_FREED = "--memory-child-freed";

	/** With fewer what the JVM does for itself is more than what the keys take. */
	private static final int LEAST_KEYS = 100_000;

	private static final int WARM_KEYS = 10_000;
	private static final int WARM_TIMES = 50;

	private static final long SETTLE_NS = 20_000_000;
	private static final int SETTLED = 15; // so many times nothing has changed

	private static int nkeys() {
		return Math.max(size.keys(), LEAST_KEYS);
	}

	static List<Group> groups() {
		var rows = List.of(new Row("bytes_per_key", "bytes"), new Row("bytes_kept_after", "%"),
				new Row("bytes_per_key_freed", "bytes"), new Row("bytes_kept_after_freed", "%"));
		return List.of(new Group(rows, Peer::hasQueue, Group.Kind.CHILD, p -> {
			double[] plain = memory(p, CHILD);
			double[] freed = memory(p, CHILD_FREED);
			return new double[] {plain[0], plain[1], freed[0], freed[1]};
		}));
	}

	private static long resident() throws IOException {
		for (String line : Files.readAllLines(Path.of("/proc/self/smaps_rollup")))
			if (line.startsWith("Rss:"))
				return Long.parseLong(line.replaceAll("[^0-9]", "")) * 1024;
		check(false, "no resident size");
		return 0;
	}

	/** The collector gives memory back a little at a time, after it has said that it is done. */
	private static long residentFreed() throws IOException {
		System.gc();
		long least = resident();
		for (int same = 0; same < SETTLED; same++) {
			Timing.rest(SETTLE_NS);
			if (resident() < least) {
				least = resident();
				same = 0;
			}
		}
		return least;
	}

	private static void addAll(WorkQueue<String> q, int n) {
		for (int i = 0; i < n; i++)
			q.add(Keys.format(i));
		check(q.length() == n, "memory: keys are missing");
	}

	private static void takeAll(WorkQueue<String> q, int n) throws InterruptedException {
		for (int i = 0; i < n; i++)
			q.done(q.get());
	}

	/** What the compiler needs for itself is there before, too, and what reading the size costs. */
	private static void warm(Peer p) throws IOException, InterruptedException {
		WorkQueue<String> q = p.plain().get();
		for (int i = 0; i < WARM_TIMES; i++) {
			addAll(q, WARM_KEYS);
			takeAll(q, WARM_KEYS);
		}
		residentFreed();
	}

	static void child(Peer p, boolean freed) throws IOException, InterruptedException {
		warm(p);
		long before = freed ? residentFreed() : resident();
		WorkQueue<String> q = p.plain().get();
		addAll(q, nkeys());
		long peak = freed ? residentFreed() : resident();
		takeAll(q, nkeys());
		long after = freed ? residentFreed() : resident();
		q.shutDown();
		System.out.println(before + " " + peak + " " + after);
	}

	private static double[] memory(Peer p, String option) throws IOException, InterruptedException {
		var command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
				"-cp", System.getProperty("java.class.path"), Main.class.getName(), p.name()));
		if (size == Sizes.QUICK)
			command.add("--quick");
		command.add(option);
		Process child = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
		String text = new String(child.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
		check(child.waitFor() == 0, "the memory rows' child failed");
		try (var in = new Scanner(text)) {
			double before = in.nextLong();
			double peak = in.nextLong();
			double after = in.nextLong();
			check(peak > before, "memory: the queue takes none");
			return new double[] {(peak - before) / nkeys(), 100 * Math.max(after - before, 0) / (peak - before)};
		}
	}

	private Memory() {}
}
