"""run.py and what it makes of figures; the programs that it runs here are shell scripts."""
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree as xml

import charts
import rounds
import run
import tables

SVG = "{http://www.w3.org/2000/svg}"
ABOUT = {
    "date": "2026-01-02",
    "machine": "A <CPU>, 2 CPUs",
    "rounds": 5,
    "curve_rounds": 3,
    "quick": False,
    "versions": ["wq 0.1.0", "client-go v1"],
    "skipped": {"java": "no java command"},
}


def best(**programs):
    return {name.replace("_", "-"): rows for name, rows in programs.items()}


def data_of(figures):
    return {**ABOUT, "rows": tables.compare(figures), "curves": tables.curves(figures)}


class Ratios(unittest.TestCase):
    def test_less_is_better(self):
        self.assertEqual(tables.ratio(50, 350, "ns"), 7)
        self.assertTrue(tables.better(1, 2, "bytes"))

    def test_more_is_better(self):
        self.assertEqual(tables.ratio(8e6, 2e6, "keys/s"), 4)
        self.assertTrue(tables.better(2, 1, "ops/s"))

    def test_nothing_has_no_ratio(self):
        self.assertIsNone(tables.ratio(0, 3, "%"))
        self.assertIsNone(tables.ratio(3, 0, "%"))

    def test_bar_is_met_at_the_bar(self):
        for theirs, expected in ((250, True), (249, False)):
            told = tables.compare(best(wq={"cycle_1m": (50, "ns")}, client_go={"cycle_1m": (theirs, "ns")}))
            self.assertIs(told[0]["met"], expected, theirs)

    def test_a_goal_is_a_figure_of_its_own(self):
        """With or without a peer."""
        for name, unit, at, beyond in (("cycle_1k", "ns", 30, 30.1), ("bytes_per_key", "bytes", 70, 71), ("bytes_kept_few", "%", 3, 4)):
            for ours, expected in ((at, True), (at / 2, True), (beyond, False)):
                told = tables.compare(best(wq={name: (ours, unit)}, client_go={name: (1, unit)}))
                self.assertIs(told[0]["met"], expected, (name, ours))
                self.assertIs(tables.compare({"wq": {name: (ours, unit)}})[0]["met"], expected, (name, ours))

    def test_a_goal_and_a_peer(self):
        """Throughput, ahead of the queue of pointers: both are asked."""
        for ours, glib, expected in ((14e6, 13e6, True), (13.9e6, 13e6, False), (14e6, 14e6, False), (14e6, None, None), (13e6, None, False)):
            rows = {"wq": {"pc_1_1": (ours, "keys/s")}, "client-go": {"pc_1_1": (1, "keys/s")}}
            if glib:
                rows["glib"] = {"pc_1_1": (glib, "keys/s")}
            self.assertIs(tables.compare(rows)[0]["met"], expected, (ours, glib))

    def test_a_ratio_and_a_peer(self):
        for ours, expected in ((9.1e6, True), (9e6, False), (8e6, False)):
            rows = {"wq": {"pc_4_4": (ours, "keys/s")}, "client-go": {"pc_4_4": (2e6, "keys/s")}, "glib": {"pc_4_4": (9e6, "keys/s")}}
            self.assertIs(tables.compare(rows)[0]["met"], expected, ours)

    def test_bars_in_words(self):
        said = {name: tables.BY_NAME[name].words for name in ("cycle_empty", "cycle_1k", "hold_100m", "bytes_kept_few", "pc_1_1", "pc_4_4", "wheel_expire", "late_p99")}
        self.assertEqual(
            list(said.values()),
            ["≥ 4.1 ×", "≤ 30 ns", "≤ 100 µs", "≤ 3 %", "≥ 14 M/s, ahead of glib", "≥ 4.5 ×, ahead of glib", "ahead", ""],
        )

    def test_a_goal_has_its_place_beside_a_peer(self):
        """Where the ratio would be if the figure were at the goal."""
        told = tables.compare(best(wq={"bytes_per_key": (140, "bytes")}, client_go={"bytes_per_key": (210, "bytes")}))[0]
        self.assertEqual((told["ratio"]["client-go"], tables.bar_beside(told, "client-go")), (1.5, 3))
        told = tables.compare(best(wq={"pc_1_1": (7e6, "keys/s")}, client_go={"pc_1_1": (1e6, "keys/s")}))[0]
        self.assertEqual((tables.bar_beside(told, "client-go"), tables.bar_beside(told, "glib")), (14, 1))

    def test_bars_of_today_judge_figures_of_before(self):
        old = [{"name": "cycle_empty", "wq": 10, "unit": "ns", "peers": {"client-go": 50}, "ratio": {"client-go": 5}, "bar": "≥ 7 ×", "met": False}]
        self.assertEqual([(told["bar"], told["met"]) for told in tables.judged(old)], [("≥ 4.1 ×", True)])
        self.assertEqual(old[0]["bar"], "≥ 7 ×")

    def test_a_quick_run_judges_nothing(self):
        told = tables.compare(best(wq={"cycle_empty": (50, "ns")}, client_go={"cycle_empty": (350, "ns")}), judge=False)
        self.assertEqual((told[0]["ratio"], told[0]["met"]), ({"client-go": 7}, None))

    def test_only_client_go_judges_the_queue(self):
        told = tables.compare(best(wq={"cycle_empty": (50, "ns")}, controller_runtime={"cycle_empty": (1, "ns")}))
        self.assertIsNone(told[0]["met"])

    def test_every_peer_judges_the_timers(self):
        ours = {"wheel_insert": (10, "ns")}
        for uv, expected in ((11, True), (10, False), (9, False)):
            told = tables.compare({"wq": ours, "libev": {"wheel_insert": (30, "ns")}, "libuv": {"wheel_insert": (uv, "ns")}})
            self.assertIs(told[0]["met"], expected, uv)

    def test_a_figure_of_nothing_meets_no_bar(self):
        ours = {"wheel_insert": (10, "ns")}
        told = tables.compare({"wq": ours, "libev": {"wheel_insert": (30, "ns")}, "libuv": {"wheel_insert": (0, "ns")}})
        self.assertIs(told[0]["met"], False)

    def test_units_must_agree(self):
        with self.assertRaises(ValueError):
            tables.compare(best(wq={"cycle_empty": (50, "ns")}, client_go={"cycle_empty": (1, "ms")}))


class Beside(unittest.TestCase):
    def test_batches_stand_beside_the_plain_row(self):
        theirs = {"pc_1_1": (2e6, "keys/s")}
        told = tables.compare(best(wq={"pc_many_1_1": (20e6, "keys/s")}, client_go=theirs, glib=theirs))
        self.assertEqual((told[0]["name"], told[0]["ratio"], told[0]["met"]), ("pc_many_1_1", {"client-go": 10, "glib": 10}, True))

    def test_pool_stands_beside_a_pool_if_there_is_one(self):
        ours = {"late_pool_p50": (10, "ns")}
        told = tables.compare(best(wq=ours, client_go={"late_p50": (100, "ns"), "late_pool_p50": (200, "ns")}))
        self.assertEqual(told[0]["peers"], {"client-go": 200})
        told = tables.compare(best(wq=ours, client_go={"late_p50": (100, "ns")}))
        self.assertEqual(told[0]["peers"], {"client-go": 100})

    def test_best_case_is_not_what_is_judged(self):
        rows = {"bytes_per_key": (100, "bytes"), "bytes_per_key_freed": (50, "bytes")}
        told = tables.compare(best(wq={"bytes_per_key": (60, "bytes")}, client_go=rows))
        self.assertEqual((told[0]["best_case"], told[0]["met"]), ({"client-go": 50}, True))

    def test_loops_of_wq_bench_are_peers(self):
        self.assertEqual(tables.owner_of("libev_insert"), ("libev", "wheel_insert"))
        self.assertEqual(tables.owner_of("wheel_insert"), ("wq", "wheel_insert"))


class Curves(unittest.TestCase):
    def test_points_are_series_with_gaps(self):
        ours = {"cycle@1000": (10, "ns"), "cycle@10000": (20, "ns"), "cycle_empty": (5, "ns")}
        told = tables.curves(best(wq=ours, client_go={"cycle@1000": (40, "ns")}, timingwheel={"wheel_cancel": (1, "ns")}))
        self.assertEqual(
            told,
            [
                {
                    "name": "cycle",
                    "unit": "ns",
                    "x": [1000, 10000, 100000, 1000000, 10000000],
                    "series": {"wq": [10, 20, None, None, None], "client-go": [40, None, None, None, None]},
                }
            ],
        )

    def test_points_are_no_rows(self):
        self.assertEqual(tables.compare(best(wq={"cycle@1000": (10, "ns")})), [])

    def test_units_must_agree(self):
        with self.assertRaises(ValueError):
            tables.curves(best(wq={"cycle@1000": (50, "ns")}, client_go={"cycle@10000": (1, "ms")}))

    def test_points_of_the_loops_in_wq_bench(self):
        self.assertEqual(tables.owner_of("libuv_insert@1000"), ("libuv", "wheel_insert@1000"))

    def test_tables(self):
        ours = {f"threads@{x}": (x * 1e6, "keys/s") for x in (1, 2, 4, 8)}
        data = data_of(best(wq=ours, client_go={"threads@2": (0.5e6, "keys/s")}))
        self.assertIn("| client-go |  | 0.50 M/s (4.00 ×) |  |  |", tables.markdown_curves(data).split("\n"))
        self.assertIn("threads@", tables.text_tables(data))
        self.assertIn("(curves: 3)", tables.text_tables(data))

    def test_what_is_asked_for(self):
        for argv, nrows, npoints in (
            ([], len(tables.ROWS) - 1, 26),
            (["--rounds", "1"], len(tables.ROWS) - 1, 0),
            (["--rounds", "1", "--curves"], len(tables.ROWS) - 1, 26),
            (["--quick", "--curves"], len(tables.ROWS) - 1, 26 - 6),
            (["--rows", "cycle_empty"], 1, 0),
            (["--rows", "hold_100m"], 1, 0),  # only if it is named
            (["--rows", "cycle@*,pc_1_1"], 1, 5),
        ):
            rows, points = run.chosen(run.arguments(["--wq", "x", *argv]))
            self.assertEqual((len(rows), len(points)), (nrows, npoints), argv)


class Rounds(unittest.TestCase):
    def test_the_best_round_counts(self):
        p = rounds.Program("client-go", [], [], [])
        for value in (3, 1, 2):
            rounds.keep_best(p, "cycle_empty", value, "ns")
            rounds.keep_best(p, "pc_1_1", value, "keys/s")
        self.assertEqual(p.best, {"client-go": {"cycle_empty": (1, "ns"), "pc_1_1": (3, "keys/s")}})

    def test_remarks_are_no_rows(self):
        self.assertIsNone(rounds.parse_line("libev was not there"))
        self.assertEqual(rounds.parse_line('{"row":"cycle_empty","value":168.2,"unit":"ns"}'), ("cycle_empty", 168.2, "ns"))

    def test_each_round_begins_with_another_program(self):
        programs = [rounds.Program(name, [], ["a", "b@1"], []) for name in ("wq", "p", "q")]
        turns = rounds.plan(
            programs, {"rows": (3, lambda _, row: row == "a"), "curves": (1, lambda name, row: row == "b@1" and name != "p")}
        )
        self.assertEqual(
            [(t.kind, t.round, t.program.name, t.rows) for t in turns],
            [("rows", i, name, ("a",)) for i, names in ((1, "wq p q"), (2, "p q wq"), (3, "q wq p")) for name in names.split()]
            + [("curves", 1, name, ("b@1",)) for name in ("wq", "q")],
        )

    def test_a_program_that_takes_too_long_is_ended(self):
        p = rounds.Program("p", ["sh", "-c", "tail -f /dev/null"], [], [])
        with unittest.mock.patch("rounds.TURN_LIMIT_S", 0.01):
            self.assertEqual(rounds.measure(rounds.Turn("rows", 1, 1, p, ("a",)), False, ""), [])
        self.assertEqual(p.failed, {"rows": "took more than 0.01 s"})

    def test_estimate(self):
        p, q = (rounds.Program(name, [], [], []) for name in "pq")
        left = [rounds.Turn("rows", 2, 2, p, ("a",) * 4), rounds.Turn("rows", 2, 2, q, ("a",) * 10)]
        self.assertIsNone(rounds.estimate(left, {}))
        # p takes what it took; a row of q, which has not run, as long as one of p.
        self.assertEqual(rounds.estimate(left, {("rows", "p"): (8, 4)}), 8 + 20)
        self.assertEqual(rounds.estimate(left, {("rows", "p"): (8, 4), ("rows", "q"): (5, 10)}), 13)
        self.assertEqual([rounds.in_words(s) for s in (89, 600, 7200)], ["89 s", "10 min", "2.0 h"])


class Tables(unittest.TestCase):
    def setUp(self):
        self.data = data_of(
            best(
                wq={"cycle_empty": (50, "ns"), "pc_1_1": (16e6, "keys/s"), "bytes_kept_after": (0, "%"), "wheel_insert": (5, "ns"), "cycle_1k": (20, "ns")},
                client_go={"cycle_empty": (200, "ns"), "pc_1_1": (1e6, "keys/s"), "bytes_kept_after": (90, "%")},
                glib={"pc_1_1": (12e6, "keys/s")},
                libev={"wheel_insert": (25, "ns")},
                netty={"wheel_insert": (15, "ns")},
            )
        )

    def test_values(self):
        self.assertEqual(tables.format_value(99.94, "ns"), "99.9 ns")
        self.assertEqual(tables.format_value(12345, "ns"), "12.3 µs")
        self.assertEqual(tables.format_value(7.5e6, "keys/s"), "7.50 M/s")
        self.assertEqual([tables.format_count(n) for n in (64, 1000, 100000, 10000000)], ["64", "1k", "100k", "10M"])

    def test_ratios_are_rounded_down(self):
        for value, words in ((6.999, "6.99 ×"), (2.3, "2.30 ×"), (15.09, "15.0 ×"), (123.9, "123 ×"), (0.0468, "0.046 ×"), (None, "–")):
            self.assertEqual(tables.format_ratio(value), words)

    def test_text(self):
        text = tables.text_tables(self.data)
        self.assertIn("5 rows: 3 bars met, 1 MISSED", text)
        self.assertIn("java was skipped: no java command", text)
        line = next(line for line in text.split("\n") if line.startswith("cycle_empty"))
        self.assertEqual(line.split(), "cycle_empty 50.0 ns 200.0 ns (4.00 ×) ≥ 4.1 × MISSED".split())
        self.assertIn("90.0 % (–)", text)

    def test_markdown_has_as_many_cells_everywhere(self):
        table = [line for line in tables.markdown_table(self.data).split("\n") if line.startswith("|")]
        self.assertEqual(len(table), 2 + len(self.data["rows"]))
        self.assertEqual({line.count("|") for line in table}, {table[0].count("|")})

    def test_readme_has_a_few_rows(self):
        lines = tables.readme_table(self.data).split("\n")
        self.assertIn("| add, get, done on an empty queue, one thread | 50.0 ns | 200.0 ns | 4.00 × |", lines)
        self.assertIn("| 1 producer, 1 worker | 16.00 M/s | 1.00 M/s | 16.0 × |", lines)
        self.assertEqual(len([line for line in lines if line.startswith("|")]), 2 + 2)
        self.assertEqual([name for name in tables.README_ROWS if name not in tables.BY_NAME], [])

    def test_the_whole_table_says_what_is_measured(self):
        lines = tables.markdown_table(self.data).split("\n")
        self.assertTrue(any(line.startswith("| cycle_1k ") and line.endswith("| add, get, done behind 1,000 keys |") for line in lines))
        self.assertTrue(all(r.means for r in tables.ROWS if r.words))

    def test_readme_changes_between_the_marks_alone(self):
        text = "before\n<!-- bench-peers -->\nold\n<!-- /bench-peers -->\nafter\n"
        once = tables.with_readme_table(text, self.data)
        self.assertEqual(once, text.replace("old\n", tables.readme_table(self.data)))
        self.assertEqual(tables.with_readme_table(once, self.data), once)
        for broken in ("nothing", "<!-- /bench-peers -->\n<!-- bench-peers -->\n", "<!-- bench-peers -->\n"):
            with self.assertRaises(ValueError):
                tables.with_readme_table(broken, self.data)


class Charts(unittest.TestCase):
    PEERS = [tables.JUDGE] + [f"a-peer-of-some-name-{i}" for i in range(1, 10)]

    def setUp(self):
        figures = {name: {} for name in ["wq", *self.PEERS]}
        for r in tables.ROWS:
            figures["wq"][r.name] = (100, "ns")
            for i, peer in enumerate(self.PEERS):
                figures[peer][r.theirs[0]] = (30 * 3**i, "ns")
        for i, rows in enumerate(figures.values()):
            rows.update({name: (10 * (i + 1) + x, "ns") for name, x in tables.POINTS.items()})
        del figures[tables.JUDGE]["cycle@100000"]
        self.data = data_of(figures)
        self.files = charts.all_charts(self.data)

    def words(self, name):
        return [e.text for e in xml.fromstring(self.files[name]).iter(SVG + "text")]

    def test_all_are_there_and_say_where_the_figures_come_from(self):
        self.assertEqual(
            sorted(self.files), sorted(["queue.svg", "others.svg", "timers.svg"] + [f"curve-{c.name}.svg" for c in tables.CURVES])
        )
        for name in self.files:
            for wanted in ("A <CPU>, 2 CPUs", "2026-01-02", "client-go v1", "java was skipped"):
                self.assertIn(wanted, " ".join(self.words(name)), name)

    def test_nothing_leaves_the_picture(self):
        for name, picture in self.files.items():
            root = xml.fromstring(picture)
            for e in root.iter(SVG + "text"):
                width = len(e.text) * charts.CHARACTER * (0.86 if e.get("font-size") == "10" else 1)
                right = {"middle": width / 2, "end": 0}.get(e.get("text-anchor"), width)
                self.assertLessEqual(float(e.get("x")) + right, float(root.get("width")), (name, e.text))
                self.assertLessEqual(float(e.get("y")), float(root.get("height")), (name, e.text))
                self.assertGreaterEqual(float(e.get("x")) - (width - right), 0, (name, e.text))

    def test_every_ratio_has_a_bar_and_a_number(self):
        queue = [r for r in tables.ROWS if not r.timer]
        for name, wanted in (("queue.svg", len(tables.ROWS)), ("others.svg", 9 * len(queue)), ("timers.svg", 10 * 3)):
            bars = [e for e in xml.fromstring(self.files[name]).iter(SVG + "rect") if e.get("height") == f"{charts.BAR:.1f}"]
            numbers = [w for w in self.words(name) if w.endswith(" ×")]
            self.assertEqual((len(bars), len(numbers)), (wanted, wanted), name)

    def test_bars_are_ticks_and_colours(self):
        data = data_of(
            best(
                wq={"cycle_empty": (50, "ns"), "hot_1_1": (8e6, "ops/s"), "wake_busy_p99": (1, "ns")},
                client_go={"cycle_empty": (150, "ns"), "hot_1_1": (1e6, "ops/s"), "wake_busy_p99": (3, "ns")},
            )
        )
        root = xml.fromstring(charts.queue_chart(data))
        bars = [e for e in root.iter(SVG + "rect") if e.get("height") == f"{charts.BAR:.1f}"]
        self.assertEqual([e.get("fill") for e in bars], [charts.ORANGE, charts.BLUE, charts.PALE])
        tick = [e for e in root.iter(SVG + "line") if e.get("stroke-width") == "2"]
        self.assertEqual(len(tick), 1 + 2)  # that of the legend, too
        ends = [float(e.get("x")) + float(e.get("width")) for e in bars]
        self.assertGreater(float(tick[1].get("x1")), ends[0])
        self.assertLess(float(tick[2].get("x1")), ends[1])

    def test_lines_have_a_dot_for_each_point_and_a_colour_of_their_own(self):
        dots = [e for e in xml.fromstring(self.files["curve-cycle.svg"]).iter(SVG + "circle")]
        self.assertEqual(len(dots), 11 * 5 - 1)
        dots = [e for e in xml.fromstring(self.files["curve-threads.svg"]).iter(SVG + "circle")]
        self.assertEqual(len({e.get("fill") for e in dots}), len(charts.COLOURS))
        heights = [float(e.get("cy")) for e in dots if e.get("r") == "4"]
        self.assertEqual(heights, sorted(heights, reverse=True))  # larger is higher
        for wanted in ("1", "2", "4", "8", "wq", *self.PEERS):
            self.assertIn(wanted, self.words("curve-threads.svg"))

    def test_names_keep_apart(self):
        self.assertEqual(charts.spread([10, 50, 90], 14, 0, 100), [10, 50, 90])
        self.assertEqual(charts.spread([50, 48, 52], 14, 0, 100), [62, 48, 76])
        self.assertEqual(charts.spread([99, 100], 14, 0, 100), [86, 100])


# What a program is, here: it prints 100 (a peer: 700) for each row that it is asked for, and
# writes down that it was. The folder's files say that it should fail or hang in its second turn.
FAKE = """#!/bin/sh
at=%(at)s
name=%(name)s
case "$*" in
--list) printf '%%s\\n' cycle_empty wheel_insert cycle@1000 cycle@1000000; exit ;;
--version) echo "$name $(cat $at/version.$name)"; exit ;;
*@*) kind=curves ;;
*) kind=rows ;;
esac
echo "$name $kind" >>$at/calls
for word in $(echo "$*" | tr ',' ' '); do
	case $word in
	--* | 1) ;;
	*) echo "{\\"row\\": \\"$word\\", \\"value\\": %(value)d, \\"unit\\": \\"ns\\"}" ;;
	esac
done
if [ -e $at/fail.$name.$kind ] && [ $(grep -c "$name $kind" $at/calls) = 2 ]; then exit 3; fi
if [ -e $at/hang.$name ] && [ $(grep -c "$name" $at/calls) = 2 ]; then
	rm $at/hang.$name
	cat $at/never &
	echo $$ $! >$at/hanging
	wait
fi
"""


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = folder.name
        for name, value in (("wq", 100), ("client-go", 700)):
            self.put(name, FAKE % {"at": self.at, "name": name, "value": value}, 0o755)
            self.put("version." + name, "1\n")
        self.put("peers/fake/peers", "client-go\n")
        self.put("peers/none/peers", "none\n")
        self.put("peers/fake/build", f"#!/bin/sh\necho client-go {self.at}/client-go\n", 0o755)
        self.put("peers/none/build", "#!/bin/sh\necho no such thing >&2\nexit 77\n", 0o755)
        self.put("README.md", "A\n<!-- bench-peers -->\nnone\n<!-- /bench-peers -->\nB\n")
        self.put("docs/table.md", "old\n")

    def put(self, name, text, mode=0o644):
        path = os.path.join(self.at, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)

    def get(self, name):
        with open(os.path.join(self.at, name), encoding="utf-8") as f:
            return f.read()

    def calls(self):
        """Since the last time."""
        path = os.path.join(self.at, "calls")
        told = self.get("calls").split("\n")[:-1] if os.path.exists(path) else []
        self.put("calls", "")
        return told

    def command(self, *more):
        options = {"--wq": "wq", "--folders": "peers", "--build": "b", "--json": "out.json", "--docs": "docs", "--readme": "README.md"}
        words = [word for option, name in options.items() for word in (option, os.path.join(self.at, name))]
        return [sys.executable, "-B", os.path.join(run.HERE, "run.py"), *words, *more]

    def run_it(self, *more, status=0):
        done = subprocess.run(self.command(*more), capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def test_a_full_run_writes_what_it_has_found(self):
        done = self.run_it()
        calls = self.calls()
        self.assertEqual(calls[:4], ["wq rows", "client-go rows", "client-go rows", "wq rows"])
        self.assertEqual([calls.count(c) for c in ("wq rows", "client-go rows", "wq curves", "client-go curves")], [5, 5, 3, 3])
        data = json.loads(self.get("docs/peers.json"))
        self.assertEqual(data, json.loads(self.get("out.json")))
        self.assertEqual([(r["name"], r["ratio"], r["met"]) for r in data["rows"]][0], ("cycle_empty", {"client-go": 7}, True))
        self.assertEqual(data["curves"][0]["series"]["client-go"], [700, None, None, 700, None])
        self.assertEqual(data["skipped"], {"none": "no such thing"})
        for name, text in run.documents(data).items():
            self.assertEqual(self.get("docs/" + name), text)
        self.assertEqual(self.get("README.md"), "A\n" + tables.MARKS[0] + tables.readme_table(data) + tables.MARKS[1] + "B\n")
        self.assertRegex(done.stderr, r"rows, round 2 of 5: client-go, 2 rows: \d+ s; about \d+ s left")

        self.put("docs/table.md", "old\n")
        self.run_it("--render")
        self.assertEqual(self.get("docs/table.md"), tables.markdown_table(data))
        self.assertEqual(self.calls(), [])

    def test_only_the_peers_that_are_asked_for_are_built(self):
        done = self.run_it("--peers", "client-go", "--rounds", "1")
        self.assertIn("building fake", done.stderr)
        self.assertNotIn("building none", done.stderr)
        done = self.run_it("--peers", "client-go,nobody", status=2)
        self.assertIn("no peer is called nobody; there are client-go, none", done.stderr)
        self.assertNotIn("building", done.stderr)

    def test_a_part_of_the_run_leaves_the_documents(self):
        for more in (["--quick"], ["--rows", "cycle_empty"], ["--peers", "client-go"], []):
            self.run_it("--rounds", "5" if more else "4", *more)
            self.assertEqual((self.get("docs/table.md"), os.listdir(os.path.join(self.at, "docs"))), ("old\n", ["table.md"]))
            self.assertIn("none\n", self.get("README.md"))
        self.assertFalse(os.path.exists(os.path.join(self.at, "b/rounds")))

    def test_a_peer_that_fails_is_left_out(self):
        self.put("fail.client-go.rows", "")
        done = self.run_it()
        data = json.loads(self.get("out.json"))
        # Without the one that is judged by, there is nothing to show.
        self.assertEqual(os.listdir(os.path.join(self.at, "docs")), ["table.md"])
        self.assertIn("none\n", self.get("README.md"))
        calls = self.calls()
        self.assertEqual((calls.count("client-go rows"), calls.count("client-go curves")), (2, 0))
        self.assertEqual([r["peers"] for r in data["rows"]], [{}, {}])
        self.assertEqual(list(data["curves"][0]["series"]), ["wq"])
        self.assertEqual(data["skipped"]["client-go"], "ended with 3 after 2 of 2 rows")
        self.assertIn("client-go was skipped: ended with 3", done.stdout)

    def test_a_peer_that_prints_rubbish_is_left_out(self):
        for rubbish in ("{", "{}", '{"row": "cycle_empty", "value": null, "unit": "ns"}'):
            self.put("client-go", FAKE % {"at": self.at, "name": "client-go", "value": 1} + f"echo '{rubbish}'\n", 0o755)
            self.run_it("--rows", "cycle_empty")
            data = json.loads(self.get("out.json"))
            self.assertEqual(data["skipped"]["client-go"], "printed a line that is no row", rubbish)
            self.assertEqual(data["rows"][0]["peers"], {})

    def test_rows_stay_if_curves_fail(self):
        self.put("fail.client-go.curves", "")
        self.run_it()
        data = json.loads(self.get("docs/peers.json"))
        self.assertEqual(data["rows"][0]["peers"], {"client-go": 700})
        self.assertEqual(list(data["curves"][0]["series"]), ["wq"])
        self.assertEqual(data["skipped"]["client-go's curves"], "ended with 3 after 2 of 2 rows")

    def test_no_report_if_wq_fails(self):
        self.put("fail.wq.curves", "")
        done = self.run_it(status=1)
        self.assertIn("wq_bench: curves: ended with 3", done.stderr)
        self.assertEqual(self.calls()[10:], ["wq curves", "client-go curves", "client-go curves", "wq curves"])
        self.assertEqual(os.listdir(os.path.join(self.at, "docs")), ["table.md"])
        self.assertFalse(os.path.exists(os.path.join(self.at, "out.json")))

    def end(self, pids):
        for fd in pids:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(fd, signal.SIGKILL)
            os.close(fd)

    def interrupt(self, number):
        """While client-go runs for the second time, which is the third turn."""
        self.put("hang.client-go", "")
        for name in ("hanging", "never"):
            path = os.path.join(self.at, name)
            if not os.path.exists(path):
                os.mkfifo(path)
        child = subprocess.Popen(
            self.command(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        pids = [os.pidfd_open(int(pid)) for pid in self.get("hanging").split()]
        self.addCleanup(self.end, pids)
        os.kill(child.pid, number)
        out, _ = child.communicate(timeout=60)
        self.assertEqual(child.returncode, run.INTERRUPTED)
        for fd in pids:  # of a process that has ended it is readable
            self.assertEqual(select.select([fd], [], [], 20)[0], [fd])
        return out

    def test_interrupted(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            out = self.interrupt(number)
            self.assertIn("cycle_empty   100.0 ns  700.0 ns (7.00 ×)", out)
            self.assertIn("These figures are of a part of the run.", out)
            self.assertIn("--resume goes on from here", out)
            self.assertEqual(os.listdir(os.path.join(self.at, "docs")), ["table.md"])
            self.assertIn("none\n", self.get("README.md"))
            self.assertFalse(os.path.exists(os.path.join(self.at, "out.json")))
            self.assertEqual(len(self.calls()), 3)

    def test_resume_takes_what_is_kept(self):
        self.interrupt(signal.SIGINT)
        self.assertEqual(len(self.calls()), 3)
        done = self.run_it("--resume")
        self.assertEqual(len(self.calls()), 16 - 2)
        self.assertRegex(done.stderr, r"rows, round 1 of 5: wq, 2 rows: kept from \d{4}-\d\d-\d\d")
        whole = self.get("docs/peers.json")
        self.assertEqual(json.loads(whole)["rows"][0]["ratio"], {"client-go": 7})
        self.run_it("--resume")
        self.assertEqual((self.calls(), self.get("docs/peers.json")), ([], whole))

    def test_resume_measures_again_what_has_changed(self):
        self.run_it()
        self.calls()
        self.put("version.client-go", "2\n")
        self.run_it("--resume")
        self.assertEqual(set(self.calls()), {"client-go rows", "client-go curves"})
        self.put("wq", self.get("wq") + "# another wq_bench\n", 0o755)
        self.run_it("--resume")
        self.assertEqual(len(self.calls()), 16)
        self.run_it("--resume", "--quick")
        self.assertEqual(len(self.calls()), 10)
        self.run_it()
        self.assertEqual(len(self.calls()), 16)
        self.run_it("--resume", "--rounds", "6")
        self.assertEqual(len(self.calls()), 2)


class Documents(unittest.TestCase):
    """Those of the repository say what docs/bench/peers.json says."""

    def test_readme_has_its_place(self):
        with open(run.README, encoding="utf-8") as f:
            tables.readme_part(f.read())

    def test_they_are_what_the_figures_say(self):
        path = os.path.join(run.DOCS, "peers.json")
        if not os.path.exists(path):
            self.skipTest("no full run has been written yet")
        with open(path, encoding="utf-8") as f:
            data = json.load(f)
        with open(run.README, encoding="utf-8") as f:
            text = f.read()
        self.assertEqual(text, tables.with_readme_table(text, data), "scripts/bench-peers --render writes it anew")
        for name, wanted in run.documents(data).items():
            with open(os.path.join(run.DOCS, name), encoding="utf-8") as f:
                self.assertEqual(f.read(), wanted, f"{name}: scripts/bench-peers --render writes it anew")


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
