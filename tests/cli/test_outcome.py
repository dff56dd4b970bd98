"""What became of a key: `wq add --wait`, `wq wait`, and the dead keys that a run remembers."""
import json
import os
import threading
import unittest

import rig
from rig import main
from served import Served, frame

KEY_MAX = 65536
GATED = ("sh", "-c", "echo >>$1.count; read x <$1.$(wc -l <$1.count); exit $x", "sh")
BY_NAME = ("sh", "-c", "case $1 in bad*) exit 100;; esac", "sh")


class Gated(Served):
    """A gate for each attempt at a key, `KEY.N`: what is written to it is the exit status."""

    def gated(self, *args, gates=("k.1", "k.2", "k.3")):
        for g in gates:
            self.fifo(g)
        self.serve("-j4", *args, command=GATED)

    def let_with(self, gate, status):
        with open(self.dir / gate, "w", encoding="ascii") as f:
            f.write(f"{status}\n")

    def tracked(self, *keys):
        """`add --wait`, and it is known to wait."""
        before = self.status()["waiters"]
        p = self.begin("add", "--wait", *keys)
        self.until_status(waiters=before + 1)
        return p


class AddWait(Gated):
    def test_outcomes(self):
        self.serve(command=BY_NAME)
        self.ask("add", "--wait", "good", "also good")
        self.ask("add", "--wait", "bad", status=123)
        self.assertEqual(self.complaint, "wq: bad: it failed for good\n")
        self.ask("add", "--wait", "good", "bad 1", "bad 2", status=123)
        self.assertRegex(self.complaint, r"\Awq: 2 keys failed for good, the first is bad [12]\n\Z")
        self.ask("add", "--wait", "-", input="a\nb\n")
        self.ask("add", "--wait", "-", input="a\nbad\n", status=123)
        self.ask("add", "--wait", "-", input="")
        self.assertEqual(self.status()["waiters"], 0)

    def test_every_time(self):
        """However fast it dies, by the two commands or by the one."""
        self.serve(command=BY_NAME)
        for i in range(40):
            self.ask("add", f"bad {i}")
            self.ask("wait", f"bad {i}", status=123)
            self.ask("add", "--wait", f"bad {i}", status=123)

    def test_merged(self):
        """It waits for the unit of work that it merged with."""
        self.serve(command=BY_NAME)
        self.ask("pause")
        self.ask("add", "bad", "good")
        bad, good = self.tracked("bad"), self.tracked("good")
        self.assertEqual(self.status()["merged"], 2)
        self.ask("resume")
        self.assertEqual(self.finish(bad), (123, "wq: bad: it failed for good\n"))
        self.assertEqual(self.finish(good), (0, ""))

    def marked(self, first, second):
        self.gated()
        self.ask("add", "k")
        self.until_status(running=1)
        p = self.tracked("k")
        self.let_with("k.1", first)
        self.until_status(attempts=2)
        self.assertIsNone(p.poll())
        self.let_with("k.2", second)
        return self.finish(p)

    def test_marked(self):
        """What runs is not what was given: the attempt behind it is."""
        self.assertEqual(self.marked(0, 100), (123, "wq: k: it failed for good\n"))

    def test_marked_behind_a_dead_one(self):
        self.assertEqual(self.marked(100, 0), (0, ""))
        self.assertEqual(self.status()["dead_kept"], 0)

    def test_joined(self):
        """The attempt that runs fails, and its retry is one with what was given meanwhile."""
        self.gated("--backoff", "1ms", "--retries", "1")
        self.ask("add", "k")
        self.until_status(running=1)
        p = self.tracked("k")
        self.let_with("k.1", 1)
        self.until_status(attempts=2)
        self.assertIsNone(p.poll())
        self.let_with("k.2", 0)
        self.assertEqual(self.finish(p), (0, ""))
        self.assertEqual(self.status()["waiters"], 0)

    def test_joined_and_dead(self):
        self.gated("--backoff", "1ms", "--retries", "1")
        self.ask("add", "k")
        self.until_status(running=1)
        p = self.tracked("k")
        self.let_with("k.1", 1)
        self.until_status(attempts=2)
        self.let_with("k.2", 1)
        self.assertEqual(self.finish(p), (123, "wq: k: it failed for good\n"))

    def test_exactly_this_one(self):
        """What others give meanwhile is not waited for, and not told."""
        self.gated()
        p = self.tracked("k")
        self.until_status(running=1)
        self.ask("add", "k")
        w = self.begin("wait", "k")
        self.until_status(waiters=2)
        self.let_with("k.1", 0)
        self.assertEqual(self.finish(p), (0, ""))
        self.until_status(running=1, done=1, waiters=1)
        self.let_with("k.2", 100)
        self.assertEqual(self.finish(w)[0], 123)

    def test_twice(self):
        """Two units of one key by one connection: both are waited for."""
        self.gated()
        c = self.connect()
        c.sendall(b"\0" + frame("track", "0", "k"))
        self.assertEqual(c.recv(100), b"4:.1 0,")
        self.until_status(running=1)
        c.sendall(frame("track", "0", "k", "k"))
        self.assertEqual(c.recv(100), b"4:.2 1,")
        self.let_with("k.1", 100)
        self.until_status(attempts=2)
        self.assertEqual(self.status()["waiters"], 1)
        self.let_with("k.2", 0)
        self.until_status(waiters=0)
        c.sendall(frame("wait"))
        self.assertRegex(c.recv(100), rb"\A\d+:!123 k: it failed for good,\Z")
        c.sendall(frame("wait"))
        self.assertEqual(c.recv(100), b"1:.,")

    def test_retries_are_waited_for(self):
        self.gated("--backoff", "1ms", "--retries", "1")
        p = self.tracked("k")
        self.let_with("k.1", 1)
        self.until_status(failed=1, running=1)
        self.assertIsNone(p.poll())
        self.let_with("k.2", 1)
        self.assertEqual(self.finish(p), (123, "wq: k: it failed for good\n"))

    def test_cancelled(self):
        self.serve()
        self.ask("pause")
        one, two, wait = self.tracked("a"), self.tracked("a", "b", "c"), self.begin("wait")
        self.until_status(waiters=3)
        self.ask("cancel", "a", "c")
        self.assertEqual(self.finish(one), (125, "wq: a: it was cancelled\n"))
        self.ask("resume")
        self.assertEqual(self.finish(two), (125, "wq: 2 keys were cancelled, the first is a\n"))
        # Who waits until they are gone hears of deaths alone.
        self.assertEqual(self.finish(wait), (0, ""))

    def test_cancelled_while_it_runs(self):
        """Its command goes on: what that comes to counts; what was given behind it is gone."""
        for status, outcome in ((0, (0, "")), (1, (125, "wq: k: it was cancelled\n"))):
            self.gated("--backoff", "1ms", gates=("k.1", "k.2") if status == 0 else ())
            (self.dir / "k.count").unlink(missing_ok=True)
            runs = self.tracked("k")
            self.until_status(running=1)
            behind = self.tracked("k")
            self.ask("cancel", "k")
            self.assertEqual(self.finish(behind), (125, "wq: k: it was cancelled\n"))
            self.assertIsNone(runs.poll())
            self.let_with("k.1", status)
            self.assertEqual(self.finish(runs), outcome)
            self.ask("drain")
            self.ended()

    def test_given_after_a_cancel(self):
        self.gated()
        self.ask("add", "k")
        self.until_status(running=1)
        self.ask("cancel", "k")
        p = self.tracked("k")
        self.let_with("k.1", 1)
        self.until_status(attempts=2)
        self.let_with("k.2", 0)
        self.assertEqual(self.finish(p), (0, ""))

    def test_the_run_ends_first(self):
        self.gated()
        p = self.tracked("k")
        self.until_status(running=1)
        behind, later = self.tracked("k"), self.tracked("--after=1h", "l")
        self.ask("stop", "--no-wait")
        self.let_with("k.1", 0)
        self.assertEqual(self.finish(p), (0, ""))
        self.assertEqual(self.finish(behind), (75, "wq: the run ended first\n"))
        self.assertEqual(self.finish(later), (75, "wq: the run ended first\n"))

    def test_the_run_is_killed(self):
        self.gated()
        p = self.tracked("k")
        self.run_.kill()
        self.assertEqual(self.finish(p), (75, "wq: the run has ended\n"))

    def test_not_taken(self):
        self.serve()
        self.ask("add", "--wait", "a\nb", status=1)
        self.assertIn("-0", self.complaint)
        self.ask("add", "--wait", "a", "b\nc", "d", status=1)
        self.assertIn("1 of 3 given; the first not taken: b\\x0ac", self.complaint)

    def test_more_than_can_be_waited_for_at_once(self):
        """The next ones are taken as others are over."""
        self.serve("--dry-run")
        keys = [f"{i:03}" + "x" * (KEY_MAX - 3) for i in range(100)]
        self.ask("add", "--wait", "-v", "-", input="\n".join(keys))
        self.assertEqual(self.complaint, "wq: 100 given, 0 merged\n")
        # Nothing is over while it is paused: what is waited for stays bounded.
        self.ask("pause")
        p = self.begin("add", "--wait", "-")
        data = "\n".join(keys).encode()
        threading.Thread(target=lambda: (p.stdin.write(data), p.stdin.close()), daemon=True).start()
        s = self.until(lambda: (s := self.status()) and s["unfinished"] >= 62 and s)
        self.assertLessEqual(s["unfinished"], 64)
        self.ask("resume")
        self.assertEqual(p.wait(rig.PATIENCE), 0)
        self.assertEqual(self.status()["done"], 200)

    def test_races(self):
        """Many who give the same keys at once, and each hears what became of his."""
        self.serve("-j4", command=BY_NAME)
        wrong = []

        def ask(number):
            c = self.connect()
            c.sendall(b"\0")
            for i in range(60):
                key = ("bad%d" if (i + number) % 2 else "good%d") % (i % 3)
                c.sendall(frame("track", "0", key) + frame("wait"))
                data = b""
                while not data.endswith((b"1:.,", b"failed for good,")):
                    data += c.recv(1000)
                if (b"!123" in data) != key.startswith("bad"):
                    wrong.append((key, data))
            c.close()

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(rig.PATIENCE)
        self.assertEqual(wrong, [])
        s = self.adds_up()
        self.assertEqual((s["waiters"], s["unfinished"]), (0, 0))


class Dead(Gated):
    def test_wait(self):
        """A death is known until the key is given again."""
        self.gated()
        self.ask("add", "k")
        self.let_with("k.1", 100)
        self.until_status(dead=1)
        for _ in range(2):
            self.ask("wait", "k", status=123)
            self.assertEqual(self.complaint, "wq: k: it failed for good\n")
        self.ask("wait", "k", "other", status=123)
        self.ask("wait")
        self.ask("wait", "other")
        self.ask("add", "k")
        p = self.begin("wait", "k")
        self.until_status(waiters=1)
        self.let_with("k.2", 0)
        self.assertEqual(self.finish(p), (0, ""))
        self.ask("wait", "k")

    def test_ls(self):
        self.serve("--retries", "1", "--backoff", "1ms", command=("sh", "-c", "[ $1 != worse ] || exit 100; exit 1", "sh"))
        self.ask("add", "--wait", "bad", status=123)
        self.ask("add", "--wait", "worse", status=123)
        found = [(e["key"], e["state"], e["failures"]) for e in self.ls("--state=dead")]
        self.assertEqual(found, [("worse", "dead", 1), ("bad", "dead", 2)])
        self.assertEqual(self.ls(), [])
        self.assertEqual(self.keys("--state=dead", "--limit=1"), ["worse"])
        self.assertIn("--limit=0", self.complaint)
        self.assertRegex(self.ask("ls", "--state", "dead").splitlines()[0], r"^dead +\S+ +1  worse$")
        s = self.status()
        self.assertEqual((s["dead"], s["dead_kept"]), (2, 2))
        self.assertIn("2 dead keys are kept", self.ask("status"))

    def test_forget(self):
        self.serve(command=BY_NAME)
        self.ask("add", "--wait", "bad", status=123)
        self.ask("forget", "bad")
        self.assertEqual(self.ls("--state=dead"), [])
        self.ask("wait", "bad")
        self.ask("retry", "bad", status=1)
        s = self.adds_up()
        self.assertEqual((s["dead"], s["dead_kept"]), (1, 0))

    def test_retry(self):
        """Its death is taken back: the sums add up, and a run whose keys are all done ends with 0."""
        self.gated("--retries", "1", "--backoff", "1ms", "--summary")
        self.ask("add", "k")
        self.let_with("k.1", 1)
        self.let_with("k.2", 1)
        self.until_status(dead=1, dead_kept=1)
        p = self.begin("wait")
        self.assertEqual(self.finish(p), (0, ""))
        self.ask("retry", "k")
        s = self.adds_up()
        self.assertEqual((s["given"], s["dead"], s["dead_kept"], s["unfinished"]), (1, 0, 0, 1))
        self.ask("retry", "k", status=1)
        self.assertIn("not waiting: it is", self.complaint)
        # It has as many attempts as any key.
        self.let_with("k.3", 0)
        self.until_status(done=1)
        self.adds_up()
        self.ask("drain")
        self.assertEqual(self.ended(), 0)
        self.assertIn("1 to do = 1 done + 0 dead", self.said())

    def test_retry_at_the_end(self):
        self.gated(gates=("k.1", "l.1"))
        self.ask("add", "k", "l")
        self.let_with("k.1", 100)
        self.until_status(dead=1)
        self.ask("drain", "--no-wait")
        self.ask("retry", "k", status=1)
        self.assertIn("the run ends: it takes no more keys", self.complaint)
        self.assertEqual(self.status()["dead"], 1)

    def test_a_key_given_while_it_died_is_there(self):
        self.gated()
        self.ask("add", "k")
        self.until_status(running=1)
        self.ask("add", "k")
        self.let_with("k.1", 100)
        self.until_status(dead=1, running=1)
        self.assertEqual(self.status()["dead_kept"], 0)
        self.let_with("k.2", 100)
        self.until_status(dead=2, dead_kept=1)
        self.adds_up()

    def test_bounded(self):
        """4 MiB of keys: the oldest is forgotten first."""
        self.serve("-j1", command=("sh", "-c", "exit 100"))
        keys = [f"{i:03}" + "x" * (KEY_MAX - 3) for i in range(66)]
        self.ask("add", "-", input="\n".join(keys))
        self.until_status(dead=66)
        self.assertEqual(self.keys("--state=dead"), keys[2:])
        self.ask("wait", keys[1])
        self.ask("wait", keys[2], status=123)

    @unittest.skipUnless(os.environ.get("WQ_LONG") == "1", "10,000 commands: with WQ_LONG=1 only")
    def test_as_many_as_are_kept(self):
        self.serve("--quiet", "--retries=0", command=("false",))
        self.ask("add", "-", input="".join(f"{i}\n" for i in range(10010)))
        self.until_status(dead=10010)
        self.assertEqual(self.status()["dead_kept"], 10000)
        self.assertEqual(len(self.ls("--state=dead", "--limit=0")), 10000)

    def test_any_source(self):
        """A line that is written to the socket gives it again, too."""
        self.gated()
        self.ask("add", "k")
        self.let_with("k.1", 100)
        self.until_status(dead_kept=1)
        self.send(b"k\n")
        self.until_status(dead_kept=0, running=1)
        self.let_with("k.2", 100)
        self.until_status(dead_kept=1)

    def test_log_and_json(self):
        self.serve("--log", "log", command=BY_NAME)
        self.ask("add", "--wait", "bad", status=123)
        self.assertEqual([json.loads(line)["outcome"] for line in self.lines("log")], ["dead"])
        (e,) = self.ls("--state=dead")
        self.assertEqual(set(e), {"key", "state", "since_s", "failures", "dirty", "priority"})


if __name__ == "__main__":
    main()
