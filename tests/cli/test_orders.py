"""The commands that talk to a run: each order, and each of its errors."""
import errno
import json
import os
import signal

import rig
from rig import main
from served import Served

KEY_MAX = 65536


class Add(Served):
    def test_keys(self):
        self.serve("--log", "log")
        self.assertEqual(self.ask("add", "a", "b c", "a"), "")
        self.assertEqual(self.complaint, "")
        self.ask("add", "--", "-x", "--")
        self.ask("add", "c", "--", "-v")
        self.ask("wait")
        keys = {json.loads(line)["key"] for line in self.lines("log")}
        self.assertEqual(keys, {"a", "b c", "-x", "--", "c", "-v"})

    def test_verbose(self):
        self.serve()
        self.ask("pause")
        self.ask("add", "-v", "a", "b", "a")
        self.assertEqual(self.complaint, "wq: 3 given, 1 merged\n")

    def test_what_merges_while_paused(self):
        """As ever: each key is run once after resume, however it was given."""
        self.serve("--log", "log")
        self.ask("pause")
        self.ask("add", "line", "both")
        self.ask("add", "--after=1h", "line", "late", "later")
        self.ask("add", "--after=2h", "later")
        self.ask("add", "late", "both")
        self.assertEqual(sorted(self.keys("--state=queued")), ["both", "late", "line"])
        self.assertEqual(self.keys("--state=waiting"), ["later"])
        self.assertGreater(self.ls("--state=waiting")[0]["due_s"], 3700)
        self.assertEqual(self.status()["merged"], 4)
        self.ask("resume")
        self.until(lambda: len(self.lines("log")) == 3, "the three that are in line")

    def test_input(self):
        self.serve()
        self.ask("pause")
        self.ask("add", "-", input="a\n\nb\nlast")
        self.assertEqual(self.keys(), ["a", "b", "last"])

    def test_input_null(self):
        self.serve("-0")
        self.ask("pause")
        self.ask("add", "-0", "-", input="a\nb\0c")
        self.assertEqual(self.keys(), ["a\nb", "c"])

    def test_input_goes_at_once(self):
        self.serve()
        p = self.begin("add", "-")
        self.give(p, "a")
        self.until_status(done=1)
        self.give(p, "b")
        self.until_status(done=2)
        self.assertEqual(self.finish(p), (0, ""))

    def test_input_interrupted(self):
        once = self.dir / "once"
        once.touch()
        self.serve()
        self.ask("pause")
        self.ask("add", "-", input="a\nb\n", env=self.shim(f"read:{errno.EINTR}:{once}"))
        self.assertFalse(once.exists())
        self.assertEqual((self.keys(), self.complaint), (["a", "b"], ""))

    def test_many(self):
        self.serve("--max-queue", "1000000")
        self.ask("pause")
        keys = [f"{i:06}" + "x" * self.random.randrange(40) for i in range(20000)]
        self.ask("add", "-v", "-", input="\n".join(keys))
        self.assertEqual(self.complaint, "wq: 20000 given, 0 merged\n")
        self.assertEqual(self.keys("--limit=0"), sorted(keys))

    def test_longest(self):
        self.serve()
        self.ask("pause")
        self.ask("add", "-", input="x" * KEY_MAX + "\n" + "y" * (KEY_MAX + 1) + "\nz\n", status=1)
        self.assertIn("longer than", self.complaint)
        self.assertEqual(self.keys(), ["x" * KEY_MAX, "z"])
        self.ask("cancel", "x" * KEY_MAX)
        self.assertEqual(self.keys(), ["z"])
        more = [f"{i:05}" for i in range(900)]
        self.ask("add", "-", input="\n".join(["x" * KEY_MAX, *more]))
        self.assertEqual(self.keys(), [*more, "x" * KEY_MAX, "z"])

    def test_input_nul(self):
        self.serve()
        self.ask("pause")
        self.ask("add", "-", input="a\0b\nc\n", status=1)
        self.assertIn("NUL", self.complaint)
        self.assertEqual(self.keys(), ["c"])

    def test_what_ends_a_key(self):
        """Such a key could not be given again from a file of what is left."""
        self.serve()
        self.ask("add", "a\nb", status=1)
        self.assertIn("-0", self.complaint)
        self.assertEqual(self.status()["given"], 0)

    def test_after(self):
        self.serve()
        self.ask("add", "--after", "1h", "late")
        self.ask("add", "soon")
        self.ask("wait", "soon")
        (e,) = self.ls()
        self.assertEqual((e["key"], e["state"]), ("late", "waiting"))
        self.assertTrue(3000 < e["due_s"] <= 3600)
        self.ask("add", "--after", "1ms", "late")
        self.ask("wait", "late")
        self.assertEqual(self.status()["done"], 2)

    def test_usage(self):
        self.serve()
        for args, message in ((["add"], "which keys"), (["add", ""], "empty"), (["add", "--after", "x", "k"], "a time"),
                              (["add", "--json", "k"], "no such option"), (["add", "--after"], "needs a value"),
                              (["ls", "k"], "no arguments"), (["ls", "--state", "x"], "queued"),
                              (["ls", "--limit", "-1"], "a number"), (["ls", "--json", "-0"], "exclude"),
                              (["retry"], "which keys"), (["set"], "what"), (["top", "--interval", "0"], "1ms"),
                              (["wait", "--timeout", "x"], "a time"), (["pause", "x"], "no arguments")):
            self.ask(*args, status=2)
            self.assertIn(message, self.complaint, args)
            self.assertIn(f"wq help {args[0]}", self.complaint)
        self.assertIn("usage: wq add", self.ask("add", "--help"))


class Look(Served):
    def stage(self):
        """One key in each state, and one that comes again."""
        self.fifo("gate")
        self.serve("-j1", "--backoff", "1h", "--name", "stage", "--retries", "9",
                   command=("sh", "-c", "[ $1 != bad ] || exit 3; read x <gate", "sh"))
        self.ask("add", "bad")
        self.until_status(failed=1)
        self.ask("add", "works")
        self.until_status(running=1)
        self.ask("add", "works", "in line")

    def test_ls_without_room_for_it(self):
        """A long answer goes through a file of the run. If there is none, nothing of the answer is printed."""
        self.fifo("gate")
        self.serve("-j1", command=("sh", "-c", "read x <gate"), env={"TMPDIR": str(self.dir / "nowhere")})
        self.ask("add", "-", input="".join(f"{i:0100}\n" for i in range(6000)))
        for form in ((), ("--json",), ("-0",)):
            self.assertEqual(self.ask("ls", "--limit", "0", *form, status=1), "")
        self.assertIn("no room for so long an answer in $TMPDIR: No such file or directory", self.complaint)
        self.assertEqual(len(self.ask("ls", "--limit", "10").splitlines()), 10)

    def test_ls(self):
        self.stage()
        self.assertEqual([(e["key"], e["state"], e["failures"], e["dirty"]) for e in self.ls()],
                         [("works", "running", 0, True), ("in line", "queued", 0, False),
                          ("bad", "waiting", 1, False)])
        lines = self.ask("ls").splitlines()
        self.assertRegex(lines[0], r"^running +\S+ +0\+ works$")
        self.assertRegex(lines[1], r"^queued +\S+ +0  in line$")
        self.assertRegex(lines[2], r"^waiting +in \S+ +1  bad$")
        for state, key in (("running", "works"), ("queued", "in line"), ("waiting", "bad")):
            self.assertEqual(self.keys("--state", state), [key])
        self.adds_up()

    def test_status(self):
        self.stage()
        s = self.status()
        self.assertEqual((s["name"], s["phase"], s["paused"], s["workers"], s["pid"]),
                         ("stage", "open", False, 1, self.run_.pid))
        self.assertEqual((s["given"], s["attempts"], s["failed"], s["unfinished"]), (4, 2, 1, 4))
        self.assertEqual((s["running"], s["queued"], s["waiting"], s["rate"]), (1, 1, 1, 0))
        self.assertTrue(3000 < s["next_due_s"] <= 3600)
        text = self.ask("status")
        self.assertRegex(text, r"1 running, 1 queued, 1 waiting \(the next in 5\dm\d\ds\)\n")
        self.assertIn("4 given = 0 merged + 0 refused + 0 done + 0 dead + 0 cancelled + 4 unfinished", text)

    def test_limit(self):
        self.serve()
        self.ask("pause")
        self.ask("add", "-", input="".join(f"{i}\n" for i in range(1500)))
        self.assertEqual(len(self.ls()), 1000)
        self.assertIn("--limit=0", self.complaint)
        self.assertEqual(len(self.ls("--limit=7")), 7)
        self.assertEqual(len(self.ls("--limit=1500")), 1500)
        self.assertEqual(self.complaint, "")
        self.assertEqual(len(self.ls("--limit=0")), 1500)

    def test_any_bytes(self):
        self.serve("-0")
        self.ask("pause")
        keys = [b"\x1b[31m\n", b"\xff\xfe", "grün".encode(), b"x" * KEY_MAX]
        self.ask("add", "-0", "-", input=b"\0".join(keys))
        out = self.wq("ls", "-s", "./s", "-0").stdout
        self.assertEqual(sorted(out.split(b"\0")[:-1]), sorted(keys))
        text = self.ask("ls")
        self.assertIn("\\x1b[31m\\x0a", text)
        self.assertIn("\\xff\\xfe", text)
        self.assertNotIn("\x1b", text)

    def test_closed_output(self):
        self.serve()
        read, write = os.pipe()
        os.close(read)
        p = self.start("status", "-s", "./s", stdout=write)
        os.close(write)
        self.assertEqual(p.wait(rig.PATIENCE), 1)


class Orders(Served):
    def test_retry(self):
        self.serve("--backoff", "1h", "--retries", "1", command=("sh", "-c", "exit 1"))
        self.ask("add", "k")
        self.until_status(waiting=1)
        self.ask("retry", "k")
        self.until_status(dead=1)
        self.ask("retry", "other", status=1)
        self.assertIn("other: not waiting: it is not there", self.complaint)

    def test_retry_some(self):
        self.serve()
        self.ask("pause")
        self.ask("add", "--after", "1h", "a", "b")
        self.ask("add", "q")
        self.ask("retry", "a", "q", "b", status=1)
        self.assertEqual(self.complaint, "wq: q: not waiting: it is queued\n")
        self.assertEqual(self.keys("--state=queued"), ["a", "b", "q"])

    def test_cancel(self):
        self.serve()
        self.ask("pause")
        self.ask("add", "a", "b")
        self.ask("add", "--after", "1h", "c")
        self.ask("cancel", "a", "x", "c", status=1)
        self.assertEqual(self.complaint, "wq: x: it is not there\n")
        self.assertEqual(self.keys(), ["b"])
        self.assertEqual(self.adds_up()["cancelled"], 2)

    def test_cancel_running(self):
        """It finishes, but does not come again: not because it was given again, nor because it failed."""
        self.fifo("gate")
        self.serve("--backoff", "1ms", command=("sh", "-c", "read x <gate; exit 1"))
        self.ask("add", "k")
        self.until_status(running=1)
        self.ask("add", "k")
        self.ask("cancel", "k")
        self.assertEqual(self.adds_up()["cancelled"], 1)
        self.let("gate")
        self.until_status(unfinished=0, cancelled=2)
        self.assertEqual(self.status()["attempts"], 1)

    def test_cancel_kill(self):
        self.serve("--backoff", "1ms", "--log", "log", "--kill-after", "1ms",
                   command=("sh", "-c", "trap '' TERM; touch began; while :; do sleep 1000; done"))
        self.ask("add", "k")
        self.until_file("began")
        self.ask("cancel", "--kill", "k")
        self.ask("wait", "k")
        s = self.adds_up()
        self.assertEqual((s["cancelled"], s["failed"], s["unfinished"], s["attempts"]), (1, 0, 0, 1))
        self.assertEqual(json.loads(self.lines("log")[0])["outcome"], "cancelled")

    def test_cancel_kill_and_again(self):
        """What is given after it counts."""
        self.fifo("gate")
        self.serve("--kill-after", "1h",
                   command=("sh", "-c", "[ -e once ] && exit 0; touch once; trap 'read x <gate; exit 1' TERM; "
                                        "touch began; while :; do sleep 0.01; done"))
        self.ask("add", "k")
        self.until_file("began")
        self.ask("cancel", "--kill", "k")
        self.ask("add", "k")
        self.let("gate")
        self.ask("wait", "k")
        s = self.adds_up()
        self.assertEqual((s["cancelled"], s["done"], s["attempts"]), (1, 1, 2))

    def test_cancelled_is_not_left(self):
        self.serve("--leftover", "left", command=("sh", "-c", "touch began; exec sleep 1000"))
        self.ask("add", "k")
        self.until_file("began")
        self.ask("cancel", "k")
        self.run_.send_signal(signal.SIGTERM)
        self.until(lambda: "once more" in self.said())
        self.run_.send_signal(signal.SIGTERM)
        self.assertEqual(self.ended(), 0)
        self.assertEqual(self.lines("left"), [])

    def test_forget(self):
        self.serve("--backoff", "1h", "--retries", "1", command=("sh", "-c", "exit 1"))
        self.ask("add", "k")
        self.until_status(failed=1)
        self.ask("forget", "k", "never seen")
        self.ask("retry", "k")
        self.until_status(failed=2)
        self.assertEqual(self.status()["dead"], 0)
        self.assertEqual(self.ls()[0]["failures"], 1)

    def test_pause(self):
        self.serve()
        self.ask("pause")
        self.ask("add", "k")
        s = self.status()
        self.assertEqual((s["paused"], s["queued"], s["attempts"]), (True, 1, 0))
        self.assertIn("paused", self.ask("status"))
        self.ask("resume")
        self.until_status(done=1, paused=False)

    def test_set(self):
        self.fifo("gate")
        self.serve("-j1", command=("sh", "-c", "read x <gate"))
        self.ask("add", "a", "b", "c")
        self.until_status(running=1)
        self.ask("set", "workers=3", "rate=7200/h", "burst=50")
        self.until_status(running=3, workers=3, rate=2, burst=50)
        self.ask("set", "rate=100")
        self.until_status(rate=100, burst=50)
        for args, message in ((["workers=2", "rate=0"], "rate"), (["workers=0"], "1 to 4096"),
                              (["workers=2", "x=1"], "expected"), (["workers"], "expected"),
                              (["workers=2", "burst=0"], "from 1"), (["workers=2", "rate=" + "9" * 200], "rate")):
            self.ask("set", *args, status=2)
            self.assertIn(message, self.complaint)
        self.until_status(workers=3, rate=100, burst=50)
        self.ask("set", "rate=none")
        self.until_status(rate=0)
        self.ask("set", "burst=7", status=2)
        self.assertIn("there is none", self.complaint)

    def test_rate_holds(self):
        """A rate that is set is kept: of three keys one is started, and the next not for an hour."""
        self.serve("-j3")
        self.ask("set", "rate=1/h")
        self.ask("add", "a", "b", "c")
        self.until_status(done=1)
        self.assertEqual(self.status()["queued"], 2)
        self.ask("set", "rate=none")
        self.until_status(done=3)


class Wait(Served):
    def gated(self, *args):
        # A gate for each attempt: a fifo whose writer has not gone yet lets the next one through.
        self.serve("-j4", *args, command=("sh", "-c", "echo >>$1.count; read x <$1.$(wc -l <$1.count); exit $x", "sh"))

    def let_with(self, gate, status):
        with open(self.dir / gate, "w", encoding="ascii") as f:
            f.write(f"{status}\n")

    def begun(self, *args):
        """Waits, and is known to wait."""
        before = self.status()["waiters"]
        p = self.begin("wait", *args)
        self.until_status(waiters=before + 1)
        return p

    def test_keys(self):
        for k in "ab":
            self.fifo(f"{k}.1")
        self.gated()
        self.ask("add", "a", "b")
        both = self.begun("a", "b")
        one = self.begun("a")
        self.let_with("a.1", 0)
        self.assertEqual(self.finish(one), (0, ""))
        self.assertIsNone(both.poll())
        self.let_with("b.1", 0)
        self.assertEqual(self.finish(both), (0, ""))
        self.ask("wait", "a", "b", "never seen")

    def test_a_run_without_keys_sleeps(self):
        def sleeps():
            with open(f"/proc/{self.run_.pid}/stat", encoding="ascii") as f:
                return f.read().rpartition(")")[2].split()[0] == "S"
        self.serve()
        self.ask("add", "--wait", "a")
        self.until(sleeps, "the sleep")

    def test_until_the_last_attempt(self):
        """A key that comes again, or waits for its next attempt, is there."""
        for i in (1, 2, 3):
            self.fifo(f"a.{i}")
        self.gated("--backoff", "1ms")
        self.ask("add", "a")
        p = self.begun("a")
        self.until_status(running=1)
        self.ask("add", "a")
        self.let_with("a.1", 0)
        self.until_status(done=1, running=1)
        self.assertIsNone(p.poll())
        self.let_with("a.2", 1)
        self.until_status(failed=1, running=1)
        self.assertIsNone(p.poll())
        self.let_with("a.3", 0)
        self.assertEqual(self.finish(p), (0, ""))
        self.assertEqual(self.status()["done"], 2)

    def test_dead(self):
        for k in "ab":
            self.fifo(f"{k}.1")
        self.gated()
        self.ask("add", "a", "b")
        both, everything, good = self.begun("a", "b"), self.begun(), self.begun("b")
        self.let_with("a.1", 100)
        self.until_status(dead=1)
        self.assertIsNone(both.poll())
        self.let_with("b.1", 0)
        self.assertEqual(self.finish(both), (123, "wq: a: it failed for good\n"))
        self.assertEqual(self.finish(everything), (123, "wq: a: it failed for good\n"))
        self.assertEqual(self.finish(good), (0, ""))
        self.ask("wait")

    def test_cancelled(self):
        self.serve()
        self.ask("add", "--after", "1h", "k")
        p, q = self.begun("k"), self.begun()
        self.ask("cancel", "k")
        self.assertEqual(self.finish(p), (0, ""))
        self.assertEqual(self.finish(q), (0, ""))

    def test_timeout(self):
        self.serve()
        self.ask("add", "--after", "1h", "k")
        # test_silence.py tells what is said if the run has answered.
        self.ask("wait", "--timeout", "100ms", "k", status=75)
        self.assertRegex(self.complaint, r"\Awq: .* after 100ms\b")
        self.ask("wait", "--timeout", "1ms", status=75)
        self.assertRegex(self.complaint, r"\Awq: .* after 1ms\b")
        self.ask("wait", "--timeout", "1m", "other")

    def test_run_ends_first(self):
        self.serve()
        self.ask("add", "--after", "1h", "k")
        p, q = self.begun("k"), self.begun()
        self.ask("stop")
        self.assertEqual(self.finish(p), (75, "wq: the run ended first\n"))
        self.assertEqual(self.finish(q), (75, "wq: the run ended first\n"))

    def test_run_is_killed(self):
        self.serve()
        self.ask("add", "--after", "1h", "k")
        p = self.begun("k")
        self.run_.kill()
        self.assertEqual(self.finish(p), (75, "wq: the run has ended\n"))

    def test_who_goes_away(self):
        """is forgotten."""
        self.serve()
        self.ask("add", "--after", "1h", "k")
        p = self.begun("k")
        p.kill()
        self.until_status(connections=1)
        self.ask("cancel", "k")
        self.assertEqual(self.status()["unfinished"], 0)

    def test_many_keys(self):
        self.serve()
        self.ask("pause")
        keys = [f"{i:04}" + "x" * 100 for i in range(3000)]
        self.ask("add", *keys)
        p = self.begun(*keys)
        self.ask("cancel", *keys[:-1])
        self.assertIsNone(p.poll())
        self.ask("cancel", keys[-1])
        self.assertEqual(self.finish(p), (0, ""))


class End(Served):
    def gated(self, *args):
        for key in "ab":
            self.fifo(key)
        self.serve("-j1", "--leftover", "left", *args, command=("sh", "-c", "read x <$1", "sh"))
        self.ask("add", "a", "b")
        self.until_status(running=1)

    def test_drain(self):
        self.gated()
        p = self.begin("drain")
        self.until_status(phase="ending")
        self.let("a")
        self.until_status(done=1, running=1)
        self.let("b")
        self.assertEqual(self.finish(p), (0, ""))
        self.assertEqual(self.ended(), 0)
        self.assertFalse((self.dir / "s").exists())

    def test_drain_waits_for_retries(self):
        self.serve("--backoff", "1ms", command=("sh", "-c", "[ -e x ] || { touch x; exit 1; }"))
        self.ask("add", "k")
        self.ask("drain")
        self.assertEqual(self.ended(), 0)

    def test_drain_resumes(self):
        self.serve()
        self.ask("pause")
        self.ask("add", "k")
        self.ask("drain")
        self.assertEqual(self.ended(), 0)

    def test_stop(self):
        self.gated()
        p = self.begin("stop")
        self.until_status(phase="stopping")
        self.assertIsNone(p.poll())
        self.let("a")
        self.assertEqual(self.finish(p), (0, ""))
        self.assertEqual(self.lines("left"), ["b"])
        self.assertEqual(self.ended(), 75)

    def test_no_wait(self):
        self.gated()
        self.ask("stop", "--no-wait")
        self.assertIsNone(self.run_.poll())
        self.let("a")
        self.assertEqual(self.ended(), 75)

    def test_a_signal_after_it_is_the_second(self):
        for args, phase in (((), "stopping"), (("--on-term=drain",), "draining")):
            self.serve("-j1", "--grace", "1h", "--leftover", "left", *args, command=("sh", "-c", "exec sleep 600"))
            self.ask("add", "a", "b")
            self.until_status(running=1)
            self.ask("stop", "--no-wait")
            self.until_status(phase=phase)
            self.run_.terminate()
            self.assertEqual(self.ended(), 75)
            self.assertIn("wq: terminating the commands; once more kills them\n", self.said())
            self.assertNotIn("stopping:", self.said())
            self.assertEqual(self.lines("left"), ["a", "b"])

    def test_drained_once(self):
        """The second order to stop does not make due what has failed since the first."""
        self.fifo("go")
        self.serve("-j1", "--on-term=drain", "--backoff=1h", "--leftover=left", "--log=log",
                   command=("sh", "-c", "[ $0 = a ] && exit 1; touch up$0; read x <go"))
        self.ask("add", "first", "a", "last")
        self.until_file("upfirst")
        self.ask("stop", "--no-wait")
        self.let("go")
        self.until_file("uplast")
        for _ in range(2):
            s = self.status()
            self.assertEqual((s["phase"], s["waiting"], s["queued"], s["running"]), ("draining", 1, 0, 1))
            self.ask("stop", "--no-wait")
        self.let("go")
        self.assertEqual(self.ended(), 75)
        self.assertEqual(self.left(), ["a"])
        self.assertEqual([a["attempt"] for a in self.log() if a["key"] == "a"], [1])

    def test_input_too(self):
        """-a - beside a socket: the end of the input is not the end of the run."""
        p = self.start("run", "--socket", "./s", "-a", "-", "--log", "log", "--", "true")
        self.run_ = p
        self.err = None
        self.give(p, "from input")
        p.stdin.close()
        p.stdin = None
        self.until(lambda: self.wq("status", "-s", "./s").returncode == 0)
        self.ask("add", "from socket")
        self.ask("wait")
        self.ask("drain")
        self.assertEqual(self.ended(), 0)
        self.assertEqual(sorted(json.loads(line)["key"] for line in self.lines("log")),
                         ["from input", "from socket"])


if __name__ == "__main__":
    main()
