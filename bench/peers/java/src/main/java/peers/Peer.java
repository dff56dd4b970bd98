package peers;

import io.kubernetes.client.extended.workqueue.DefaultWorkQueue;
import io.kubernetes.client.extended.workqueue.WorkQueue;
import io.netty.util.HashedWheelTimer;
import java.util.List;
import java.util.function.Supplier;
import org.apache.kafka.server.util.timer.SystemTimer;

/** What a peer has; what is null it has not, and the rows that need it are left out. */
record Peer(String name, Class<?> of, Supplier<WorkQueue<String>> plain, Supplier<Timers> timers) {
	static final List<Peer> ALL = List.of(
			new Peer("java-client", DefaultWorkQueue.class, DefaultWorkQueue::new, null),
			new Peer("kafka", SystemTimer.class, null, KafkaTimers::new),
			new Peer("netty", HashedWheelTimer.class, null, NettyTimers::new));

	static Peer find(String name) {
		return ALL.stream().filter(p -> p.name.equals(name)).findFirst().orElse(null);
	}

	boolean hasQueue() {
		return plain != null;
	}

	boolean hasTimers() {
		return timers != null;
	}
}
