"""Failures, and how fast: retries, times between them, dead keys, rates, time-outs."""
import re
import time

import rig
from rig import Case, main
from served import Served

# Fails until the attempt that the key names.
UNTIL = ("sh", "-c", 'echo "$1 {#}"; [ {#} -ge "$1" ]', "sh", "{}")


class Failing(Case):
    def until_log(self, n):
        """Waits until so many attempts are over."""
        return self.until(lambda: len(self.log()) >= n and self.log(), f"attempt {n}")


class Retries(Failing):
    def attempts(self, *args, status, key="999"):
        p = self.wq("run", "--backoff=1ms", *args, "--", *UNTIL, input=key + "\n")
        self.assertEqual(p.returncode, status, p.stderr)
        return [line.split()[1] for line in p.stdout.decode().splitlines()], p.stderr.decode()

    def test_how_often(self):
        for args, n in (((), 4), (("--retries=0",), 1), (("--retries", "1"), 2), (("--retries=7",), 8)):
            seen, said = self.attempts(*args, status=123)
            self.assertEqual(seen, [str(i + 1) for i in range(n)])
            self.assertEqual(said, f"wq: 999: exited with 1 in attempt {n}, and is dead\n")

    def test_forever(self):
        seen, said = self.attempts("--retries=forever", "--backoff=1ms..1ms", status=0, key="30")
        self.assertEqual((seen, said), ([str(i + 1) for i in range(30)], ""))

    def test_the_last_one_may_succeed(self):
        self.assertEqual(self.attempts(status=0, key="4"), (["1", "2", "3", "4"], ""))

    def test_one_that_fails_does_not_hold_up_others(self):
        p = self.start("run", "-j1", "--backoff=1h", "--", "sh", "-c", '[ "$1" = good ] && echo ok', "sh", "{}")
        self.give(p, "bad", "good")
        self.assertEqual(p.stdout.readline(), b"ok\n")

    def test_exit_100_is_for_good(self):
        p = self.wq("run", "--dead=dead", "--log=log", "--backoff=1h", "--", "sh", "-c", "exit 100", input="a\n")
        self.assertEqual((p.returncode, p.stderr), (123, b"wq: a: exited with 100 in attempt 1, and is dead\n"))
        self.assertEqual(self.lines("dead"), ["a"])
        self.assertEqual([(a["outcome"], a["exit"], a["attempt"]) for a in self.log()], [("dead", 100, 1)])

    def test_neighbours_of_100_are_tried_again(self):
        for status in (99, 101, 255, 126, 127, 75):
            p = self.wq("run", "--backoff=1ms", "--retries=1", "-v", "--", "sh", "-c", f"exit {status}", input="a\n")
            self.assertEqual(p.returncode, 123)
            self.assertEqual(p.stderr.decode(), f"wq: a: exited with {status} in attempt 1\n"
                             f"wq: a: exited with {status} in attempt 2, and is dead\n")

    def test_a_signal_is_a_failure(self):
        p = self.wq("run", "--backoff=1ms", "--retries=1", "--log=log", "--", "sh", "-c", "kill -9 $$", input="a\n")
        self.assertEqual((p.returncode, p.stderr),
                         (123, b"wq: a: was ended by signal 9 (Killed) in attempt 2, and is dead\n"))
        self.assertEqual([(a["exit"], a["signal"], a["outcome"]) for a in self.log()],
                         [(None, 9, "retry"), (None, 9, "dead")])

    def test_success_forgets_failures(self):
        p = self.start("run", "--backoff=1ms", "--log=log", "--", *UNTIL)
        self.give(p, "2")
        self.until_log(2)
        self.give(p, "2")
        p.stdin.close()
        self.assertEqual((p.stdout.read(), p.wait()), (b"2 1\n2 2\n2 1\n2 2\n", 0))


class Dead(Failing):
    def test_appended_at_once_and_given_again(self):
        (self.dir / "dead").write_bytes(b"old\0")
        odd = [b"a\nb", b" c ", b"-d", b"\xff\x01", b"'\""]
        p = self.start("run", "-0", "-j1", "--retries=0", "--dead=dead", "--", "false")
        p.stdin.write(b"\0".join(odd) + b"\0")
        p.stdin.flush()
        wanted = b"old\0" + b"\0".join(odd) + b"\0"
        self.until(lambda: (self.dir / "dead").read_bytes() == wanted, "the dead keys")
        p.stdin.close()
        self.assertEqual(p.wait(), 123)
        p = self.wq("run", "-0", "-j1", "-a", "dead", "--", "printf", "%s\\0")
        self.assertEqual((p.returncode, p.stdout), (0, wanted))

    def test_lines_and_other_delimiters(self):
        for args, end in (((), "\n"), (("-d,",), ",")):
            p = self.wq("run", "-j1", *args, "--retries=0", "--dead=dead", "--", "false", input=f"a{end}b c")
            self.assertEqual(p.returncode, 123)
            self.assertEqual((self.dir / "dead").read_text(), f"a{end}b c{end}")
            (self.dir / "dead").unlink()

    def test_only_the_dead(self):
        p = self.wq("run", "-j2", "--retries=1", "--backoff=1ms", "--dead=dead", "--summary", "--", *UNTIL,
                    input="1\n2\n3\n4\n")
        self.assertEqual(p.returncode, 123)
        self.assertEqual(sorted(self.lines("dead")), ["3", "4"])
        self.assertIn(b"4 to do = 2 done + 2 dead + 0 cancelled + 0 unfinished", p.stderr)
        self.assertIn(b"7 attempts, 5 failed", p.stderr)

    def test_made_even_if_nobody_dies(self):
        self.assertEqual(self.wq("run", "--dead=dead", "--", "true", input="a\n").returncode, 0)
        self.assertEqual((self.dir / "dead").read_bytes(), b"")

    def test_cannot_be_opened(self):
        p = self.wq("run", "--dead=no/dead", "--", "touch", "x", input="a\n")
        self.assertEqual((p.returncode, p.stderr), (1, b"wq: no/dead: No such file or directory\n"))
        self.assertFalse((self.dir / "x").exists())


class GivenAgain(Failing):
    """A key that comes again while it fails."""

    def begin(self, command, *args):
        self.fifo("go")
        return self.start("run", "-j1", "--log=log", "--summary", *args, "--", "sh", "-c", command, "sh", "{}")

    def outcome(self, p, status, *wanted):
        p.stdin.close()
        err = p.stderr.read().decode()
        self.assertEqual(p.wait(), status, err)
        self.assertEqual([(a["attempt"], a["outcome"]) for a in self.log()], list(wanted))
        given, merged, refused, work = map(int, re.search(
            r"(\d+) given = (\d+) merged \+ (\d+) refused \+ (\d+) to do", err).groups())
        self.assertEqual(given, merged + refused + work)
        return err

    def test_while_it_waits_it_runs_at_once(self):
        p = self.begin("[ {#} = 3 ]", "--backoff=1h")
        for i in range(1, 4):
            self.give(p, "a")
            self.until_log(i)
        err = self.outcome(p, 0, (1, "retry"), (2, "retry"), (3, "done"))
        self.assertIn("3 given = 2 merged + 0 refused + 1 to do", err)

    def test_with_debounce_it_waits_for_that_alone(self):
        p = self.begin("[ {#} = 2 ]", "--backoff=1h", "--debounce=1ms")
        self.give(p, "a")
        self.until_log(1)
        self.give(p, "a")
        self.outcome(p, 0, (1, "retry"), (2, "done"))

    def test_failures_are_still_counted(self):
        p = self.begin("false", "--backoff=1h", "--retries=2")
        for i in range(1, 4):
            self.give(p, "a")
            self.until_log(i)
        self.outcome(p, 123, (1, "retry"), (2, "retry"), (3, "dead"))

    def while_running(self, command, *args, more=("a",)):
        """The key comes again while its first attempt runs, and is known to have been taken."""
        p = self.begin(f"[ -e up ] || {{ touch up; read x <go; }}; {command}", *args)
        self.give(p, "a")
        self.until_file("up")
        self.give(p, *more)
        # One that is given afterwards and refused tells that those before it were read.
        p.stdin.write(b"\0\n")
        p.stdin.flush()
        self.assertIn(b"NUL", p.stderr.readline())
        self.let("go")
        return p

    def test_while_it_runs_and_fails(self):
        p = self.while_running("[ {#} = 2 ]", "--backoff=1h")
        err = self.outcome(p, 1, (1, "retry"), (2, "done"))
        self.assertIn("1 to do = 1 done + 0 dead", err)

    def test_while_it_runs_well(self):
        p = self.while_running("true", more=("a", "a", "a"))
        err = self.outcome(p, 1, (1, "done"), (1, "done"))
        self.assertIn("5 given = 2 merged + 1 refused + 2 to do", err)
        self.assertEqual([a["merged"] for a in self.log()], [0, 2])

    def test_while_it_fails_for_good(self):
        p = self.while_running("[ -e second ] || { touch second; exit 100; }", "--dead=dead")
        err = self.outcome(p, 123, (1, "dead"), (1, "done"))
        self.assertIn("2 to do = 1 done + 1 dead", err)
        self.assertEqual(self.lines("dead"), ["a"])

    def test_in_its_last_attempt(self):
        p = self.while_running("[ -e second ] || { touch second; exit 1; }", "--retries=0", "--dead=dead")
        err = self.outcome(p, 123, (1, "dead"), (1, "done"))
        self.assertIn("2 to do = 1 done + 1 dead", err)

    def test_while_it_runs_with_debounce(self):
        p = self.while_running("true", "--debounce=1ms", more=("a", "a"))
        err = self.outcome(p, 1, (1, "done"), (1, "done"))
        self.assertIn("2 to do = 2 done", err)
        (self.dir / "log").unlink()

    def test_while_it_runs_and_fails_with_debounce(self):
        p = self.while_running("[ {#} = 2 ]", "--debounce=1ms", "--backoff=1h", more=("a", "a"))
        err = self.outcome(p, 1, (1, "retry"), (2, "done"))
        self.assertIn("1 to do = 1 done", err)


class Backoff(Served):
    """How long a key waits for its next attempt: `wq ls` shows it. In hours, so that the test's own time is nothing."""
    HOURS = 3600
    OWN = 10  # hours, and more than a test may take

    def hours(self, *args, attempts=1, keys=("a",)):
        """After each attempt, how long the keys have to wait yet: a list for each attempt."""
        self.serve("--retries=forever", *args, command=("false",))
        self.ask("add", *keys)
        seen = []
        for n in range(1, attempts + 1):
            self.until_status(failed=n * len(keys), waiting=len(keys))
            seen.append([k["due_s"] / self.HOURS for k in self.ls()])
            if n < attempts:
                self.ask("retry", *keys)
        self.run_.kill()
        self.ended()
        return seen

    def check(self, waits, least, most):
        self.assertGreater(min(waits), least - self.OWN)
        self.assertLessEqual(max(waits), most)

    def test_twice_as_long_each_time_up_to_the_end(self):
        wanted = [100, 200, 400] + [500] * 6
        for seen, hours in zip(self.hours("--backoff=100h..500h", attempts=len(wanted)), wanted):
            self.check(seen, hours, hours)

    def test_a_single_time_is_both_ends(self):
        for seen in self.hours("--backoff=100h", attempts=4):
            self.check(seen, 100, 100)

    def test_jitter(self):
        # Forty keys of which none waits for less than 90 of 200 hours: once in 24,000 million runs.
        keys = [str(i) for i in range(40)]
        for jitter, least, below in (("=none", 200, None), ("=equal", 100, 190), ("=full", 0, 90), ("", 0, 90)):
            with self.subTest(jitter=jitter):
                waits, = self.hours("--backoff=200h", f"--jitter{jitter}", keys=keys)
                self.check(waits, least, 200)
                if below:
                    self.assertLess(min(waits), below)

    def test_decorrelated_jitter(self):
        keys = [str(i) for i in range(10)]
        first, *others = self.hours("--backoff=100h..5000h", "--jitter=decorrelated", attempts=3, keys=keys)
        self.check(first, 100, 300)
        for waits in others:
            self.check(waits, 100, 5000)

    def takes(self, seconds, *args):
        """It is waited for as long as that: a run takes no less."""
        began = time.monotonic()
        self.assertEqual(self.wq("run", *args, "--", "false", input="a\n").returncode, 123)
        self.assertGreaterEqual(time.monotonic() - began, seconds)

    def test_the_time_passes(self):
        self.takes(0.02 + 0.04 + 0.08 + 0.08, "--backoff=20ms..80ms", "--retries=4")

    def test_a_second_unless_told(self):
        self.takes(1, "--retries=1")


class Rate(Failing):
    def timed(self, *args, n):
        began = time.monotonic()
        p = self.wq("run", "-j4", *args, "--", "echo", input="".join(f"{i}\n" for i in range(n)))
        self.assertEqual((p.returncode, p.stdout.count(b"\n")), (0, n))
        return time.monotonic() - began

    def test_no_more_than_that(self):
        # The first is free; each other one takes its share of a second.
        self.assertGreaterEqual(self.timed("--rate=50/s", n=11), 10 / 50)
        self.assertGreaterEqual(self.timed("--rate=50", n=6), 5 / 50)
        self.assertGreaterEqual(self.timed("--rate=3000/m", n=6), 5 / 50)
        self.assertGreaterEqual(self.timed("--rate=180000/h", n=6), 5 / 50)
        self.assertGreaterEqual(self.timed("--rate=50/s", "--burst=4", n=11), 7 / 50)

    def test_a_burst_at_once(self):
        # At three an hour, all three or nothing for twenty minutes.
        self.timed("--rate=3/h", "--burst=3", n=3)

    def stopped_after(self, n, command, *args, keys):
        p = self.start("run", "-j4", "--log=log", "--leftover=left", *args, "--", *command)
        self.give(p, *keys)
        self.until_log(n)
        p.terminate()
        self.assertEqual(p.wait(), 75)
        self.assertEqual(len(self.log()), n)

    def test_and_then_no_more(self):
        self.stopped_after(3, ["true"], "--rate=1/h", "--burst=3", keys="abcde")
        self.assertEqual(sorted(self.lines("left")), ["d", "e"])

    def test_retries_are_starts_too(self):
        self.stopped_after(2, ["false"], "--rate=1/h", "--burst=2", "--backoff=1ms", keys="a")
        (key, _, failures), = rig.leftover((self.dir / "left").read_bytes())
        self.assertEqual((key, failures), (b"a", 2))


class Timeout(Failing):
    def timed_out(self, command, *args, by, retries=1, **kwargs):
        p = self.wq("run", "--timeout=30ms", "--backoff=1ms", f"--retries={retries}", "--log=log", *args, "--",
                    "sh", "-c", command, input="a\n", **kwargs)
        log = self.log()
        (self.dir / "log").unlink()
        self.assertEqual(p.returncode, 123, p.stderr)
        self.assertEqual([(a["timed_out"], a["signal"]) for a in log], [(True, by)] * (retries + 1))
        for a in log:
            self.assertGreaterEqual(a["run_s"], 0.03)
        return p.stderr.decode()

    def trapped(self, status):
        """The outcome of the first attempt that has its trap in time, and exits with that."""
        p = self.start("run", "--timeout=100ms", "--retries=forever", "--backoff=1ms", "--log=log", "--",
                       "sh", "-c", f"trap 'exit {status}' TERM; while :; do sleep .01; done")
        self.give(p, "a")
        first = self.until(lambda: next((a for a in self.log() if a["exit"] == status), None), "such an end")
        self.assertTrue(first["timed_out"])
        return first["outcome"]

    def test_it_is_terminated_and_tried_again(self):
        said = self.timed_out("exec sleep 600", by=15)
        self.assertEqual(said, "wq: a: timed out in attempt 2, and is dead\n")

    def test_verbose(self):
        said = self.timed_out("exec sleep 600", "-v", by=15, retries=0)
        self.assertEqual(said, "wq: a: timed out in attempt 1, and is dead\n")

    def test_who_ends_well_afterwards_has_failed_yet(self):
        self.assertEqual(self.trapped(0), "retry")

    def test_all_of_its_group(self):
        self.timed_out("sleep 600 & sleep 600 | sleep 600", by=15)

    def test_who_is_stopped(self):
        self.timed_out("kill -STOP $$", by=15)

    def test_who_does_not_listen_is_killed(self):
        for after in ("10ms", "0"):
            self.timed_out("exec sleep 600", f"--kill-after={after}", by=9, preexec_fn=rig.deaf)

    def test_not_killed_before_that(self):
        self.fifo("go")
        # An attempt that has its trap in time tells so, and may take its time.
        p = self.start("run", "--timeout=100ms", "--kill-after=1h", "--retries=forever", "--backoff=1ms", "--log=log",
                       "--", "sh", "-c", "trap 'touch up; read x <go; exit 100' TERM; while :; do sleep .01; done")
        self.give(p, "a")
        p.stdin.close()
        self.until_file("up")
        self.let("go")
        self.assertEqual((p.wait(), self.log()[-1]["exit"], self.log()[-1]["timed_out"]), (123, 100, True))

    def test_in_time(self):
        p = self.wq("run", "--timeout=1m", "--log=log", "--", "true", input="a\n")
        self.assertEqual(p.returncode, 0)
        self.assertNotIn("timed_out", self.log()[0])

    def test_zero_is_none(self):
        p = self.wq("run", "--timeout=0", "--retries=0", "--", "sleep", "0.05", input="")
        self.assertEqual(p.returncode, 0)
        p = self.wq("run", "--timeout=0", "--retries=0", "--", "sh", "-c", "sleep .05", input="a\n")
        self.assertEqual(p.returncode, 0)

    def test_100_after_the_time_is_for_good(self):
        self.assertEqual(self.trapped(100), "dead")


class LeftBehind(Failing):
    # The shell ends when the one that it leaves behind is deaf.
    DEAF = "(trap '' TERM; touch up; exec sleep 600) & while [ ! -e up ]; do sleep .01; done"

    def test_ended_with_the_command(self):
        p = self.wq("run", "--", "sh", "-c", "sleep 600 & echo $!", input="a\n")
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        self.assertFalse(rig.is_there(int(p.stdout)))

    def test_killed_after_a_while(self):
        p = self.wq("run", "--kill-after=10ms", "--", "sh", "-c", self.DEAF, input="a\n")
        self.assertEqual((p.returncode, p.stderr), (0, b"wq: a: what the command left behind is killed\n"))

    def test_the_key_is_held_until_then(self):
        # The second attempt would find `one` if the first one's rest were there.
        p = self.wq("run", "-j2", "--kill-after=30ms", "--backoff=1ms", "-q", "--", "sh", "-c",
                    "[ ! -e one ] || { kill -0 $(cat one) && exit 100; exit 0; }; " + self.DEAF +
                    "; echo $! >one; exit 1", input="a\n")
        self.assertEqual(p.returncode, 0, p.stderr)

    def test_killed_after_grace_when_the_run_stops(self):
        p = self.start("run", "--kill-after=1h", "--grace=10ms", "--", "sh", "-c", self.DEAF + "; echo $$")
        self.give(p, "a")
        self.until_file("up")
        for said in (b"stopping", b"terminating"):
            p.terminate()
            self.assertIn(said, p.stderr.readline())
        self.assertIn(p.wait(), (0, 75))


if __name__ == "__main__":
    main()
