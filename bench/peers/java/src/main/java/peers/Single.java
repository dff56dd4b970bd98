package peers;

import static peers.Main.check;
import static peers.Main.size;

import io.kubernetes.client.extended.workqueue.WorkQueue;
import java.util.ArrayList;
import java.util.List;

/** Rows of one thread: those of bench/single.c and bench/bulk.c. */
final class Single {
	private static final int CYCLE_KEYS = 1024;

	static List<Group> groups() {
		var all = new ArrayList<>(List.of(
				Group.slices("cycle_empty", Peer::hasQueue, p -> cycle(p, 0, CYCLE_KEYS, 20_000)),
				Group.slices("cycle_1m", Peer::hasQueue, p -> cycle(p, size.keys(), size.pool(), 5_000)),
				Group.slices("dup_hot", Peer::hasQueue, p -> duplicates(p, 1, 50_000)),
				Group.slices("dup_1m", Peer::hasQueue, p -> duplicates(p, size.keys(), 8_000)),
				Group.course("ns", Peer::hasQueue, Single::bulk, "bulk_add", "bulk_get_done")));
		for (int n : Curves.sizes())
			all.add(Group.slices("cycle@" + n, Peer::hasQueue, p -> cycleAt(p, size.point(n))));
		return all;
	}

	/** add a key, get the head, done; others keys are in line all the time. */
	private static double[] cycle(Peer p, int others, int span, int ops) throws InterruptedException {
		String[] keys = Keys.pool(span);
		WorkQueue<String> q = p.plain().get();
		for (int i = 0; i < others; i++)
			q.add(keys[i]);
		int[] at = {others};
		double ns = Timing.inSlices(ops, n -> {
			int next = at[0];
			for (int i = 0; i < n; i++) {
				q.add(keys[next]);
				String key = q.get();
				if (key == null)
					check(false, "cycle: shut down");
				q.done(key);
				if (++next == span)
					next = 0;
			}
			at[0] = next;
		});
		check(q.length() == others, "cycle: keys were lost");
		q.shutDown();
		return new double[] {ns};
	}

	private static double[] cycleAt(Peer p, int n) throws InterruptedException {
		return cycle(p, n, n + Math.min(n, size.keys()), 5_000);
	}

	private static double[] duplicates(Peer p, int nkeys, int ops) throws InterruptedException {
		String[] pool = Keys.pool(nkeys);
		String[] keys = Keys.shuffled(nkeys);
		WorkQueue<String> q = p.plain().get();
		for (int i = 0; i < nkeys; i++)
			q.add(pool[i]);
		int[] at = {0};
		double ns = Timing.inSlices(ops, n -> {
			int next = at[0];
			for (int i = 0; i < n; i++) {
				q.add(keys[next]);
				if (++next == nkeys)
					next = 0;
			}
			at[0] = next;
		});
		check(q.length() == nkeys, "dup: an add did not merge");
		q.shutDown();
		return new double[] {ns};
	}

	/** Keys into a fresh queue, and out again. */
	private static double[] bulk(Peer p) throws InterruptedException {
		String[] keys = Keys.pool(size.pool());
		int n = size.keys();
		long start = Timing.now();
		WorkQueue<String> q = p.plain().get();
		for (int i = 0; i < n; i++)
			q.add(keys[i]);
		long added = Timing.now();
		for (int i = 0; i < n; i++)
			q.done(q.get());
		long done = Timing.now();
		check(q.length() == 0, "bulk: keys are left");
		q.shutDown();
		return new double[] {(double) (added - start) / n, (double) (done - added) / n};
	}

	private Single() {}
}
