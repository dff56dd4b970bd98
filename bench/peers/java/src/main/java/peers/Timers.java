package peers;

import java.util.concurrent.TimeUnit;

/** A peer's timers. One begins, inserts, cancels or does not, ends; expire is by itself. */
interface Timers {
	long SOON_NS = TimeUnit.MILLISECONDS.toNanos(10);

	/** A fresh wheel, and what a program may have ready before it inserts. */
	void begin(long[] delays);

	void insert();

	/** The order in which they will be cancelled. */
	void shuffle(int[] order);

	void cancel();

	void end();

	/** Timers that are due at one time or another of 10 ms: what it takes until all have run. */
	long expire(long[] delays) throws InterruptedException;
}
