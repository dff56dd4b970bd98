"""--halt: keys that failed for good end the run."""
import json

from rig import main
from served import Served


class Halt(Served):
    def outcomes(self):
        return [(a["key"], a["outcome"]) for a in map(json.loads, self.lines("log"))]

    def sequence(self, halt, *keys, options=()):
        """One after another, keys that end with x fail: the keys that were started."""
        for name in ("log", "left", "keys"):
            (self.dir / name).unlink(missing_ok=True)
        (self.dir / "keys").write_text("".join(k + "\n" for k in keys))
        p = self.wq("run", "-j1", "-akeys", "--retries=0", f"--halt={halt}", "--log=log", "--leftover=left", *options,
                    "--", "sh", "-c", 'case "$1" in *x) exit 1;; esac', "sh", "{}")
        self.message = p.stderr.decode()
        started = [k for k, _ in self.outcomes()]
        # Each was started or is left, in its place.
        self.assertEqual(started + self.lines("left"), list(keys))
        self.assertEqual(p.returncode, 123 if any(k.endswith("x") for k in started) else 0)
        return len(started)

    def test_the_first(self):
        for halt in ("soon", "now", "soon,fail=1", "now,fail=1"):
            self.assertEqual(self.sequence(halt, "a", "bx", "c", "dx", "e"), 2, halt)
            self.assertIn("wq: halting: 1 of 2 keys failed for good\n", self.message)
            self.assertIn("wq: stopped with 3 keys unfinished: left\n", self.message)

    def test_several(self):
        keys = "ax b cx d ex f gx".split()
        self.assertEqual(self.sequence("soon,fail=2", *keys), 3)
        self.assertEqual(self.sequence("now,fail=3", *keys), 5)
        self.assertEqual(self.sequence("soon,fail=4", *keys), 7)
        self.assertEqual(self.sequence("soon,fail=5", *keys), 7)
        self.assertNotIn("halting", self.message)

    def test_never(self):
        self.assertEqual(self.sequence("never", "ax", "bx", "c"), 3)

    def test_percent_of_those_that_are_over(self):
        good, bad = [str(i) for i in range(7)], ["ax", "bx", "cx"]
        for halt in ("30%", "soon,fail=30%", "now,fail=30%"):
            self.assertEqual(self.sequence(halt, *good, *bad, "d"), 10, halt)
        # 3 of 10 are not 31 %, but 4 of 11 are.
        self.assertEqual(self.sequence("31%", *good, *bad, "dx", "e"), 11)
        # Looked at when a key dies, not when others are done: 3 of 4.
        self.assertEqual(self.sequence("75%", "ax", "bx", "c", "dx", "e"), 4)
        self.assertEqual(self.sequence("100%", "ax", "b", "cx", "dx", "ex"), 5)

    def test_percent_of_three_at_least(self):
        self.assertEqual(self.sequence("1%", "ax", "bx", "c", "d", "ex", "f"), 5)
        self.assertEqual(self.sequence("100%", "ax", "bx", "cx", "dx"), 3)

    def test_quiet(self):
        self.assertEqual(self.sequence("soon", "ax", "b", options=("-q",)), 1)
        self.assertEqual(self.message, "")

    def test_a_drain_on_term_is_no_matter(self):
        self.assertEqual(self.sequence("soon", "ax", "b", options=("--on-term=drain",)), 1)

    def test_attempts_that_are_tried_again_do_not_count(self):
        p = self.wq("run", "--halt=now", "--retries=2", "--backoff=1ms", "--", "sh", "-c", "[ {#} = 3 ]", "sh", "{}",
                    input="a\nb\nc\n")
        self.assertEqual((p.returncode, p.stderr), (0, b""))

    def test_dead_in_whatever_way(self):
        """Exit status 100, a time-out, a command that is not there."""
        (self.dir / "keys").write_text("a\nb\n")
        for command, options in ((("sh", "-c", "exit 100"), ("--retries=3",)),
                                 (("sleep", "1000"), ("--retries=0", "--timeout=1ms")),
                                 (("./no/{}",), ("--retries=3",))):
            p = self.wq("run", "-j1", "-akeys", "--halt=soon", "--leftover=left", *options, "--", *command)
            self.assertEqual((p.returncode, self.lines("left")), (123, ["b"]), p.stderr)

    def fails(self, halt):
        self.fifo("go")
        self.fifo("die")
        p = self.start("run", "-j2", f"--halt={halt}", "--retries=0", "--log=log", "--leftover=left", "--", "sh", "-c",
                       'touch "up.$1"; [ "$1" = good ] && { read x <go; echo "$1"; exit; }; read x <die; exit 1',
                       "sh", "{}")
        self.give(p, "good", "bad", "third")
        self.until_file("up.good")
        self.until_file("up.bad")
        self.let("die")
        return p

    def test_soon(self):
        p = self.fails("soon")
        self.assertEqual(p.stderr.readline(), b"wq: bad: exited with 1 in attempt 1, and is dead\n")
        self.assertEqual(p.stderr.readline(), b"wq: halting: 1 of 1 key failed for good; running commands finish\n")
        self.let("go")
        # Its standard input is open still.
        self.assertEqual((p.wait(), p.stdout.read()), (123, b"good\n"))
        self.assertEqual(self.outcomes(), [("bad", "dead"), ("good", "done")])
        self.assertEqual(self.lines("left"), ["third"])

    def test_now(self):
        p = self.fails("now")
        self.assertEqual((p.wait(), p.stdout.read()), (123, b""))
        self.assertIn(b"wq: halting: 1 of 1 key failed for good; terminating the commands\n", p.stderr.read())
        self.assertEqual(self.outcomes(), [("bad", "dead"), ("good", "stopped")])
        self.assertEqual(sorted(self.lines("left")), ["good", "third"])

    def test_now_kills_what_does_not_end(self):
        self.fifo("die")
        p = self.start("run", "-j2", "--halt=now", "--retries=0", "--grace=1ms", "--log=log", "--", "sh", "-c",
                       'trap "" TERM; touch "up.$1"; [ "$1" = good ] && while :; do sleep 1; done; read x <die; exit 1',
                       "sh", "{}")
        self.give(p, "good", "bad")
        self.until_file("up.good")
        self.until_file("up.bad")
        self.let("die")
        self.assertEqual(p.wait(), 123)
        self.assertEqual(self.outcomes(), [("bad", "dead"), ("good", "stopped")])

    def test_nothing_is_left(self):
        self.assertEqual(self.sequence("now", "a", "bx"), 2)
        self.assertEqual(self.lines("left"), [])

    def test_after_a_stop_the_signal_tells_the_status(self):
        self.fifo("die")
        p = self.start("run", "-j1", "--halt=now", "--retries=0", "--leftover=left", "--", "sh", "-c",
                       "touch up; read x <die; exit 1", "sh", "{}")
        self.give(p, "a", "b")
        self.until_file("up")
        p.terminate()
        self.assertIn(b"stopping: running commands finish", p.stderr.readline())
        self.let("die")
        self.assertEqual((p.wait(), self.lines("left")), (75, ["b"]))
        self.assertNotIn(b"halting", p.stderr.read())

    def test_it_ends_a_run_with_a_socket(self):
        self.serve("-j1", "--halt=soon", "--retries=0", command=("false",))
        self.ask("pause")
        self.ask("add", "a", "b")
        waiting = self.begin("wait", "b")
        self.until(lambda: self.status()["waiters"] == 1)
        self.ask("resume")
        self.assertEqual(self.finish(waiting), (75, "wq: the run ended first\n"))
        self.assertEqual(self.run_.wait(), 123)

    def test_wrong_values(self):
        for value in ("", "1", "2", "-1", "soon,", "now,fail", "now,fail=", "soon,fail=0", "soon,fail=x", "soon,fail=1.5",
                      "later", "now,success=1", "fail=1", "0%", "101%", "%", "-5%", "1.5%", "soon,fail=%",
                      "soon,fail=0%", "soon,fail=101%", "soon,fail=10%%", "now,10%", "9" * 30 + "%", "nowhere", "5%,fail=1"):
            p = self.wq("run", "--halt", value, "--", "touch", "made", input="a\n")
            self.assertEqual((p.returncode, p.stdout), (2, b""), value)
            self.assertIn(f"wq: --halt {value}: expected never, soon, now or ", p.stderr.decode())
            self.assertFalse((self.dir / "made").exists())


if __name__ == "__main__":
    main()
