package peers;

import java.util.List;
import java.util.function.Predicate;

/** Rows that one run measures together. */
record Group(List<Row> rows, Predicate<Peer> can, Kind kind, Work work) {
	enum Kind {
		SLICES, // timed in parts, the best of which count
		COURSE, // timed as a whole
		CHILD // runs in a process of its own, which warms up itself
	}

	/** A value for each row. */
	interface Work {
		double[] run(Peer p) throws Exception;
	}

	static Group slices(String name, Predicate<Peer> can, Work work) {
		return new Group(List.of(new Row(name, "ns")), can, Kind.SLICES, work);
	}

	static Group samples(Predicate<Peer> can, Work work, String... names) {
		return new Group(rows("ns", names), can, Kind.SLICES, work);
	}

	static Group course(String unit, Predicate<Peer> can, Work work, String... names) {
		return new Group(rows(unit, names), can, Kind.COURSE, work);
	}

	private static List<Row> rows(String unit, String... names) {
		return List.of(names).stream().map(name -> new Row(name, unit)).toList();
	}
}
