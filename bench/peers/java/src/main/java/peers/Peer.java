package peers;

import io.kubernetes.client.extended.workqueue.DefaultWorkQueue;
import io.kubernetes.client.extended.workqueue.WorkQueue;
import java.util.List;
import java.util.function.Supplier;

/** What a peer has; what is null it has not, and the rows that need it are left out. */
record Peer(String name, Class<?> of, Supplier<WorkQueue<String>> plain) {
	static final List<Peer> ALL = List.of(
			new Peer("java-client", DefaultWorkQueue.class, DefaultWorkQueue::new));

	static Peer find(String name) {
		return ALL.stream().filter(p -> p.name.equals(name)).findFirst().orElse(null);
	}

	boolean hasQueue() {
		return plain != null;
	}
}
