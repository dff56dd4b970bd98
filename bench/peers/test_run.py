"""The arithmetic and the tables of run.py, without running anything."""
import sys
import unittest
import xml.etree.ElementTree as xml

import run
import tables

ABOUT = {
    "date": "2026-01-02",
    "machine": "A <CPU>, 2 CPUs",
    "rounds": 5,
    "versions": ["wq 0.1.0", "client-go v1"],
    "skipped": {"java": "no java command"},
}


def best(**programs):
    return {name.replace("_", "-"): rows for name, rows in programs.items()}


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
        for theirs, expected in ((350, True), (349, False)):
            told = tables.compare(best(wq={"cycle_empty": (50, "ns")}, client_go={"cycle_empty": (theirs, "ns")}))
            self.assertIs(told[0]["met"], expected, theirs)

    def test_bars_below_one(self):
        for theirs, expected in ((10, True), (9, False)):
            told = tables.compare(best(wq={"wake_idle_p50": (13, "ns")}, client_go={"wake_idle_p50": (theirs, "ns")}))
            self.assertIs(told[0]["met"], expected, theirs)
        for ours, expected in ((60, True), (61, False)):
            told = tables.compare(best(wq={"bytes_per_key": (ours, "bytes")}, client_go={"bytes_per_key": (100, "bytes")}))
            self.assertIs(told[0]["met"], expected, ours)

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

    def test_units_must_agree(self):
        with self.assertRaises(ValueError):
            tables.compare(best(wq={"cycle_empty": (50, "ns")}, client_go={"cycle_empty": (1, "ms")}))


class Beside(unittest.TestCase):
    def test_batches_stand_beside_the_plain_row(self):
        told = tables.compare(best(wq={"pc_many_1_1": (20e6, "keys/s")}, client_go={"pc_1_1": (2e6, "keys/s")}))
        self.assertEqual((told[0]["name"], told[0]["ratio"], told[0]["met"]), ("pc_many_1_1", {"client-go": 10}, True))

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


class Rounds(unittest.TestCase):
    def test_the_best_round_counts(self):
        p = run.Program("client-go", [], [], [])
        for value in (3, 1, 2):
            run.keep_best(p, "cycle_empty", value, "ns")
            run.keep_best(p, "pc_1_1", value, "keys/s")
        self.assertEqual(p.best, {"client-go": {"cycle_empty": (1, "ns"), "pc_1_1": (3, "keys/s")}})

    def test_remarks_are_no_rows(self):
        self.assertIsNone(run.parse_line("libev was not there"))
        self.assertEqual(run.parse_line('{"row":"cycle_empty","value":168.2,"unit":"ns"}'), ("cycle_empty", 168.2, "ns"))


class Tables(unittest.TestCase):
    def setUp(self):
        self.rows = tables.compare(
            best(
                wq={"cycle_empty": (50, "ns"), "pc_1_1": (8e6, "keys/s"), "bytes_kept_after": (0, "%"), "wheel_insert": (5, "ns")},
                client_go={"cycle_empty": (300, "ns"), "pc_1_1": (1e6, "keys/s"), "bytes_kept_after": (90, "%")},
                libev={"wheel_insert": (25, "ns")},
            )
        )

    def test_values(self):
        self.assertEqual(tables.format_value(99.94, "ns"), "99.9 ns")
        self.assertEqual(tables.format_value(12345, "ns"), "12.3 µs")
        self.assertEqual(tables.format_value(7.5e6, "keys/s"), "7.50 M/s")

    def test_text(self):
        text = tables.text_table(self.rows, ABOUT)
        self.assertIn("4 rows: 2 bars met, 1 MISSED", text)
        self.assertIn("java was skipped: no java command", text)
        line = next(line for line in text.split("\n") if line.startswith("cycle_empty"))
        self.assertEqual(line.split(), "cycle_empty 50.0 ns 300.0 ns (6.00 ×) ≥ 7 × MISSED".split())
        self.assertIn("90.0 % (–)", text)

    def test_markdown_has_as_many_cells_everywhere(self):
        table = [line for line in tables.markdown_table(self.rows, ABOUT).split("\n") if line.startswith("|")]
        self.assertEqual(len(table), 2 + len(self.rows))
        self.assertEqual({line.count("|") for line in table}, {table[0].count("|")})

    def test_charts_are_xml_with_a_bar_for_each_ratio(self):
        files = tables.documents(self.rows, ABOUT)
        self.assertEqual(sorted(files), ["queue.svg", "table.md", "timers.svg"])
        root = xml.fromstring(files["queue.svg"])
        words = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
        self.assertEqual([w for w in words if w.endswith(" ×")], ["6.00 ×", "8.00 ×"])
        for wanted in ("A <CPU>, 2 CPUs", "2026-01-02", "client-go v1"):
            self.assertIn(wanted, " ".join(words))
        bars = [e for e in root.iter("{http://www.w3.org/2000/svg}rect") if e.get("height") == "9"]
        self.assertLess(float(bars[0].get("width")), float(bars[1].get("width")))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
