package peers;

import java.util.List;
import java.util.function.Predicate;

/** Rows that one run measures together. */
record Group(List<Row> rows, Predicate<Peer> can, boolean warms, Work work) {
	/** A value for each row. */
	interface Work {
		double[] run(Peer p) throws Exception;
	}

	static Group of(Predicate<Peer> can, Work work, Row... rows) {
		return new Group(List.of(rows), can, true, work);
	}

	static Group of(String name, String unit, Predicate<Peer> can, Work work) {
		return of(can, work, new Row(name, unit));
	}
}
