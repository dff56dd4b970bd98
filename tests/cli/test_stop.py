"""Signals, what is left over, exit statuses, and keys that keep coming."""
import errno
import json
import os
import re
import signal
import subprocess
import sys
import time

import rig
from rig import Case, main

TERM, INT, HUP, USR1, USR2 = signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2
QUIT = signal.SIGQUIT


class Stopping(Case):
    # Tells that it runs, and waits to be let go.
    HELD = 'touch "up$1"; read x <"go$1"; echo "$1"'

    def held(self, *args, keys="abc", command=HELD, taken=True, **kwargs):
        """A run whose commands wait, each at a pipe of its own, with keys that it has taken."""
        for k in keys:
            if not (self.dir / f"go{k}").exists():
                self.fifo(f"go{k}")
        p = self.start("run", "--leftover=left", "--log=log", "--summary", *args, "--", "sh", "-c", command, "sh",
                       "{}", **kwargs)
        if taken:
            self.give(p, *keys)
            self.taken(p)
        return p

    def taken(self, p):
        """A key that is refused tells that those before it were read."""
        p.stdin.write(b"\0\n")
        p.stdin.flush()
        self.assertIn(b"NUL", p.stderr.readline())

    def signal(self, p, n, said):
        p.send_signal(n)
        line = p.stderr.readline().decode()
        self.assertIn(said, line)

    def over(self, p, status, left, done=None):
        err = p.stderr.read().decode()
        self.assertEqual(p.wait(), status, err)
        self.assertEqual(sorted(self.left()), sorted(left))
        if done is not None:
            self.assertEqual(sorted(p.stdout.read().decode().split()), sorted(done))
        if left:
            self.assertIn(f"stopped with {len(left)} key{'s' if len(left) > 1 else ''} unfinished: left\n", err)
        numbers = list(map(int, re.search(
            r"(\d+) given = (\d+) merged \+ (\d+) refused \+ (\d+) to do\n"
            r"wq: (\d+) to do = (\d+) done \+ (\d+) dead \+ (\d+) cancelled \+ (\d+) unfinished(?: \(and (\d+) not read\))?\n",
            err).groups("0")))
        given, merged, refused, work, same, *ends, unread = numbers
        self.assertEqual((given, work), (merged + refused + work, same))
        self.assertEqual(work, sum(ends))
        self.assertEqual(ends[-1] + unread, len(left))
        return err

    def log(self):
        return [json.loads(line) for line in self.lines("log")]


class Once(Stopping):
    def test_running_commands_finish(self):
        for n in (TERM, INT, HUP):
            p = self.held("-j2", keys="abcd")
            self.until_file("upa")
            self.until_file("upb")
            self.signal(p, n, "stopping: running commands finish; once more terminates them")
            self.let("goa")
            self.let("gob")
            self.over(p, 75, "cd", done="ab")
            self.assertFalse((self.dir / "upc").exists())
            for k in "ab":
                (self.dir / f"up{k}").unlink()

    def test_finish_by_name(self):
        p = self.held("-j1", "--on-term=finish", keys="ab")
        self.until_file("upa")
        self.signal(p, TERM, "running commands finish")
        self.let("goa")
        self.over(p, 75, "b", done="a")

    def test_nothing_left_is_well(self):
        p = self.held("-j1", keys="a")
        self.until_file("upa")
        self.signal(p, TERM, "stopping")
        self.let("goa")
        # 1: a key was refused.
        self.over(p, 1, "", done="a")
        self.assertEqual((self.dir / "left").read_bytes(), b"")

    def test_nothing_running(self):
        p = self.start("run", "--leftover=left", "--", "echo", "{}")
        self.give(p, "a")
        self.assertEqual(p.stdout.readline(), b"a\n")
        self.until(lambda: not self.children(p), "the command's end")
        p.terminate()
        self.assertEqual((p.wait(), p.stdout.read()), (0, b""))

    def children(self, p):
        with open(f"/proc/{p.pid}/task/{p.pid}/children", encoding="ascii") as f:
            return f.read().split()

    def test_who_fails_then_is_left(self):
        p = self.held("-j1", "--backoff=1ms", keys="ab", command='touch "up$1"; read x <"go$1"; exit 1')
        self.until_file("upa")
        self.signal(p, TERM, "stopping")
        self.let("goa")
        self.over(p, 75, "ab")
        self.assertEqual([(a["key"], a["outcome"]) for a in self.log()], [("a", "retry")])

    def test_who_waits_is_left(self):
        p = self.held("--backoff=1h", keys="ab", command="exit 1")
        self.until(lambda: len(self.lines("log")) == 2)
        p.terminate()
        self.over(p, 75, "ab")

    def test_who_came_again_is_left_once(self):
        p = self.held("-j1", keys="a")
        self.until_file("upa")
        self.give(p, "a", "a")
        self.taken(p)
        self.signal(p, TERM, "stopping")
        self.let("goa")
        self.over(p, 75, "a", done="a")

    def test_quiet(self):
        p = self.held("-j1", "-q", keys="ab")
        self.until_file("upa")
        p.terminate()
        self.let("goa")
        self.assertNotIn("stopp", self.wait_quietly(p))

    def wait_quietly(self, p):
        err = p.stderr.read().decode()
        # It may have been let go before the signal came.
        self.assertEqual(p.poll() or p.wait(), 75, err)
        return err

    def test_signals_that_were_ignored_stay_so(self):
        def ignore():
            signal.signal(HUP, signal.SIG_IGN)
            signal.signal(INT, signal.SIG_IGN)

        p = self.held("-j1", keys="ab", preexec_fn=ignore)
        self.until_file("upa")
        p.send_signal(HUP)
        p.send_signal(INT)
        p.stdin.close()
        self.let("goa")
        self.let("gob")
        self.over(p, 1, "", done="ab")

    def test_without_a_file_it_is_told(self):
        self.fifo("goa")
        p = self.start("run", "-j1", "--", "sh", "-c", self.HELD, "sh", "{}")
        self.give(p, "a", "b")
        self.taken(p)
        self.until_file("upa")
        self.signal(p, TERM, "stopping")
        self.let("goa")
        self.assertEqual(p.stderr.read(), b"wq: stopped with 1 key unfinished (--leftover FILE would keep them)\n")
        self.assertEqual(p.wait(), 75)


class Drain(Stopping):
    def test_all_that_was_taken(self):
        p = self.held("-j1", "--on-term=drain", keys="abc")
        self.until_file("upa")
        self.signal(p, TERM, "stopping: no more input, what there is gets done; once more terminates the commands")
        self.give(p, "never")
        for k in "abc":
            self.let(f"go{k}")
        self.over(p, 75, ["never"], done="abc")

    def test_what_waits_comes_at_once(self):
        p = self.held("-j1", "--on-term=drain", "--backoff=1h", keys="abc", command='[ {#} = 2 ] && echo "$1"')
        self.until(lambda: len(self.lines("log")) == 3)
        p.terminate()
        self.over(p, 1, "", done="abc")

    def test_what_is_debounced_comes_at_once(self):
        p = self.held("-j1", "--on-term=drain", "--debounce=1h", keys="abc", command='echo "$1"')
        p.terminate()
        self.over(p, 1, "", done="abc")

    def test_who_runs_and_is_debounced_comes_once_more(self):
        p = self.held("-j1", "--on-term=drain", "--debounce=100ms", keys="a")
        self.until_file("upa")
        self.give(p, "a")
        self.taken(p)
        self.signal(p, TERM, "what there is gets done")
        self.let("goa")
        self.assertEqual(p.stdout.readline(), b"a\n")
        self.let("goa")
        self.over(p, 1, "", done="a")

    def test_who_fails_is_left(self):
        p = self.held("-j1", "--on-term=drain", "--backoff=1h", keys="ab", command='[ "$1" = b ]')
        self.until(lambda: len(self.lines("log")) == 2)
        p.terminate()
        self.over(p, 75, "a")
        self.assertEqual([a["attempt"] for a in self.log() if a["key"] == "a"], [1, 2])

    def test_the_second_signal_ends_it(self):
        p = self.held("-j1", "--on-term=drain", keys="abc")
        self.until_file("upa")
        self.signal(p, TERM, "what there is gets done")
        self.signal(p, TERM, "terminating the commands")
        self.over(p, 75, "abc", done="")
        self.assertEqual([(a["key"], a["outcome"], a["signal"]) for a in self.log()], [("a", "stopped", 15)])

    def test_at_a_rate(self):
        p = self.held("-j1", "--on-term=drain", "--rate=50/s", keys="abc", command='echo "$1"')
        p.terminate()
        self.over(p, 1, "", done="abc")


class Twice(Stopping):
    DEAF = "trap '' TERM; touch \"up$1\"; while :; do sleep .01; done"

    def twice(self, *args, command, signals=(TERM, TERM)):
        p = self.held("-j1", "--retries=0", "--dead=dead", *args, keys="ab", command=command)
        self.until_file("upa")
        for n, said in zip(signals, ("stopping", "terminating the commands; once more kills them")):
            self.signal(p, n, said)
        return p

    def ended(self, p, signal):
        self.over(p, 75, "ab")
        # Ended by us: no failure, though it was the last attempt.
        self.assertEqual([(a["key"], a["outcome"], a["exit"], a["signal"]) for a in self.log()],
                         [("a", "stopped", None, signal)])
        self.assertEqual(self.lines("dead"), [])

    def test_terminated(self):
        self.ended(self.twice("--grace=1h", command='touch "up$1"; exec sleep 600'), 15)

    def test_by_any_two_signals(self):
        self.ended(self.twice("--grace=1h", command='touch "up$1"; exec sleep 600', signals=(INT, HUP)), 15)

    def test_with_its_group(self):
        p = self.twice("--grace=1h", command='sleep 600 & echo $! >pid; touch "up$1"; wait')
        self.ended(p, 15)
        self.assertFalse(os.path.exists(f"/proc/{self.lines('pid')[0]}"))

    def test_who_is_stopped_hears_it(self):
        p = self.held("-j1", "--grace=1h", keys="ab", command='touch "up$1"; kill -STOP $$')
        self.assertIn(b"wq: a: the command was stopped by signal 19", p.stderr.readline())
        for said in ("stopping", "terminating"):
            self.signal(p, TERM, said)
        self.over(p, 75, "ab")

    def test_killed_after_grace(self):
        self.ended(self.twice("--grace=20ms", command=self.DEAF), 9)

    def test_no_grace(self):
        self.ended(self.twice("--grace=0", command=self.DEAF), 9)

    def test_the_third_kills(self):
        p = self.twice("--grace=1h", command=self.DEAF)
        p.terminate()
        self.ended(p, 9)

    def test_quit_kills(self):
        """The first signal or the second: no command outlives the run, and what is left is kept."""
        for n in range(3):
            p = self.held("-j1", "--retries=0", "--dead=dead", "--grace=1h", keys="ab",
                          command='echo $$ >pid; ' + self.DEAF)
            self.until_file("upa")
            for said in ("stopping", "terminating")[:n]:
                self.signal(p, TERM, said)
            p.send_signal(QUIT)
            self.ended(p, 9)
            self.assertFalse(os.path.exists(f"/proc/{self.lines('pid')[0]}"))
            self.assertEqual(sorted(os.listdir(self.dir)), ["dead", "goa", "gob", "left", "log", "pid", "upa"])
            for name in ("upa", "log"):
                (self.dir / name).unlink()

    def test_who_ends_well_is_done(self):
        p = self.twice("--grace=1h", command="trap 'echo \"$1\"; exit 0' TERM; touch \"up$1\"; while :; do sleep .01; done")
        self.over(p, 75, "b", done="a")
        self.assertEqual([(a["key"], a["outcome"]) for a in self.log()], [("a", "done")])

    def test_who_ends_badly_is_left(self):
        p = self.twice("--grace=1h", command="trap 'exit 100' TERM; touch \"up$1\"; while :; do sleep .01; done")
        self.over(p, 75, "ab")
        self.assertEqual([(a["key"], a["outcome"], a["exit"]) for a in self.log()], [("a", "stopped", 100)])

    def test_the_key_came_again(self):
        p = self.held("-j1", "--grace=1h", keys="a", command='touch "up$1"; exec sleep 600')
        self.until_file("upa")
        self.give(p, "a", "a")
        self.taken(p)
        for said in ("stopping", "terminating"):
            self.signal(p, TERM, said)
        self.over(p, 75, "a")

    def test_the_key_came_again_and_waits(self):
        p = self.held("-j1", "--grace=1h", "--debounce=100ms", keys="a", command='touch "up$1"; exec sleep 600')
        self.until_file("upa")
        self.give(p, "a", "a")
        self.taken(p)
        for said in ("stopping", "terminating"):
            self.signal(p, TERM, said)
        self.over(p, 75, "a")

    def test_all_of_them(self):
        p = self.held("-j3", "--grace=1h", keys="abcd", command='touch "up$1"; exec sleep 600')
        for k in "abc":
            self.until_file(f"up{k}")
        for said in ("stopping", "terminating"):
            self.signal(p, TERM, said)
        self.over(p, 75, "abcd")
        self.assertEqual(len(self.log()), 3)


class Background(Case):
    def test_these_tests_are_started_in_it(self):
        """As by `scripts/test &` in a script: signals are ignored, and tests that send them pass all the same."""
        def ignore():
            for number in (signal.SIGINT, QUIT, signal.SIGHUP, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)

        p = subprocess.run([sys.executable, "-B", __file__, rig.program, "Twice.test_quit_kills",
                            "Twice.test_by_any_two_signals"], capture_output=True, text=True, preexec_fn=ignore, check=False)
        self.assertEqual(p.returncode, 0, p.stderr)


class Workers(Stopping):
    def test_one_more_one_fewer(self):
        p = self.held("-j1", keys="abcdef", command='touch "up$1"; read x <"go$1"; echo "$1 $WQ_WORKER"')
        self.until_file("upa")
        self.signal(p, USR1, "wq: 2 workers")
        self.until_file("upb")
        self.signal(p, USR1, "wq: 3 workers")
        self.until_file("upc")
        self.signal(p, USR2, "wq: 2 workers")
        self.signal(p, USR2, "wq: 1 worker\n")
        # None of those that run is ended, and none is begun until one is left, and that ends.
        for k, worker in zip("abc", "123"):
            self.assertFalse((self.dir / "upd").exists())
            self.let(f"go{k}")
            self.assertEqual(p.stdout.readline().decode(), f"{k} {worker}\n")
        self.until_file("upd")
        self.assertFalse((self.dir / "upe").exists())
        self.signal(p, USR1, "wq: 2 workers")
        self.until_file("upe")
        p.stdin.close()
        for k in "def":
            self.let(f"go{k}")
        self.over(p, 1, "")
        self.assertEqual(sorted(p.stdout.read().split(b"\n")[:-1])[0], b"d 1")

    def test_never_none(self):
        p = self.held("-j1", keys="a")
        self.until_file("upa")
        p.send_signal(USR2)
        self.signal(p, USR1, "wq: 2 workers")
        p.stdin.close()
        self.let("goa")
        self.over(p, 1, "", done="a")

    def test_how_many_at_once(self):
        for n in (1, 3):
            p = self.held(f"-j{n}", keys="abcde")
            for k in "abcde"[:n]:
                self.until_file(f"up{k}")
            # Told that there are more, it begins more; so this many were all that it had begun.
            self.assertEqual(len([f for f in os.listdir(self.dir) if f.startswith("up")]), n)
            self.signal(p, USR1, f"wq: {n + 1} workers")
            self.until_file("up" + "abcde"[n])
            p.stdin.close()
            for k in "abcde":
                self.let(f"go{k}")
            self.over(p, 1, "", done="abcde")
            for k in "abcde":
                (self.dir / f"up{k}").unlink()


class Leftover(Stopping):
    def test_given_again_it_is_complete(self):
        odd = [b"a\nb", b" x ", b"-n", b"\xff\xfe", b"'", b"y" * 65536] + [b"%d" % i for i in range(3000)]
        self.random.shuffle(odd)
        first = odd[0]
        (self.dir / "keys").write_bytes(b"\0".join(odd))
        self.fifo("go")
        p = self.start("run", "-0", "-j1", "-a", "keys", "--max-queue=100", "--leftover=left", "--", "sh", "-c",
                       "read x <go", stdin=None)
        with open(self.dir / "go", "w", encoding="ascii") as go:
            p.terminate()
            self.assertIn(b"stopping", p.stderr.readline())
            go.write("go\n")
        self.assertEqual(p.wait(), 75)
        left = (self.dir / "left").read_bytes()
        self.assertTrue(left.endswith(b"\0"))
        self.assertEqual(sorted(left.split(b"\0")[:-1]), sorted(set(odd) - {first}))
        p = self.wq("run", "-0", "-a", "left", "--dry-run", "--summary", "--", "echo")
        self.assertIn(b"%d to do = %d done" % (len(odd) - 1, len(odd) - 1), p.stderr)

    def test_onto_the_input_itself(self):
        for via in ("keys", "link"):
            (self.dir / "keys").write_text("a\nb\nc\n")
            (self.dir / "keys").chmod(0o640)
            if via == "link" and not (self.dir / "link").exists():
                os.symlink("keys", self.dir / "link")
            n = 0
            while True:
                # Each run does one key and stops.
                p = self.wq("run", "-j1", "-a", via, f"--leftover={via}", "--", "sh", "-c", "kill $PPID")
                n += 1
                if p.returncode == 0:
                    break
                self.assertEqual(p.returncode, 75, p.stderr)
                self.assertEqual(len(self.lines("keys")), 3 - n)
            self.assertEqual((n, self.lines("keys")), (3, []))
            self.assertEqual((self.dir / "keys").stat().st_mode & 0o777, 0o640)
        self.assertTrue((self.dir / "link").is_symlink())
        self.assertEqual(sorted(os.listdir(self.dir)), ["keys", "link"])

    def test_as_it_was_until_the_end(self):
        (self.dir / "left").write_text("before\n")
        p = self.held("-j1", keys="ab")
        self.until_file("upa")
        self.assertEqual(self.lines("left"), ["before"])
        self.signal(p, TERM, "stopping")
        self.let("goa")
        self.over(p, 75, "b")

    def test_empty_if_all_is_done(self):
        (self.dir / "left").write_text("before\n")
        self.assertEqual(self.wq("run", "--leftover=left", "--", "true", input="a\n").returncode, 0)
        self.assertEqual((self.dir / "left").read_bytes(), b"")

    def test_a_pipe(self):
        self.fifo("pipe")
        reader = os.open(self.dir / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        p = self.wq("run", "-j1", "--leftover=pipe", "--", "sh", "-c", "kill $PPID", input="a\nb\nc\n")
        self.assertEqual((p.returncode, sorted(os.read(reader, 100).split())), (75, [b"b", b"c"]))

    def test_what_is_in_the_pipe_of_keys(self):
        p = self.held("-j1", "--max-queue=1", keys="a", taken=False)
        self.give(p, "a", *[f"k{i}" for i in range(4000)])
        self.until_file("upa")
        self.signal(p, TERM, "stopping")
        self.let("goa")
        self.over(p, 75, [f"k{i}" for i in range(4000)])

    def test_the_last_key_without_an_end(self):
        # The writer has gone: it is a key. The writer is there: it is half of one.
        for gone in (True, False):
            p = self.held("-j1", "--max-queue=1", keys="a", taken=False)
            p.stdin.write(b"a\nb\nc\nhal")
            p.stdin.flush()
            if gone:
                p.stdin.close()
            self.until_file("upa")
            self.signal(p, TERM, "stopping")
            self.let("goa")
            if not gone:
                self.assertEqual(p.stderr.readline(), b"wq: stopped in the middle of a key, which is left out: hal...\n")
            self.over(p, 75, ["b", "c", "hal"] if gone else ["b", "c"])
            (self.dir / "upa").unlink()

    def test_refused_keys_are_not_left(self):
        (self.dir / "keys").write_bytes(b"a\nb\nx\0y\n" + b"z" * 70000 + b"\nc\n")
        p = self.wq("run", "-j1", "-akeys", "--max-queue=1", "--leftover=left", "--summary", "--", "sh", "-c",
                    "kill $PPID")
        self.assertEqual((p.returncode, sorted(self.lines("left"))), (75, ["b", "c"]))
        self.assertIn(b"2 refused", p.stderr)

    def test_cannot_be_put_in_its_place(self):
        p = self.wq("run", "-j1", "--leftover=left", "--", "sh", "-c", "mkdir left; kill $PPID", input="a\nb\nc\n")
        self.assertEqual(p.returncode, 75)
        self.assertEqual(p.stderr.decode().splitlines()[1:], [
            "wq: left: Is a directory: 0 of 2 keys saved, 2 printed below", "b", "c",
            "wq: stopped with 2 keys unfinished: 0 in left, 2 printed above"])
        self.assertEqual(os.listdir(self.dir), ["left"])

    def test_cannot_be_written_to_the_disk(self):
        """Then the file stays the old one."""
        gate = self.dir / "gate"
        gate.touch()
        (self.dir / "left").write_text("old\n")
        p = self.wq("run", "-j1", "--leftover=left", "--", "sh", "-c", "kill $PPID", input="a\nb\nc\n",
                    env=self.shim(f"fsync:{errno.EIO}:{gate}"))
        self.assertEqual(p.returncode, 75)
        self.assertEqual(p.stderr.decode().splitlines()[1:], [
            "wq: left: Input/output error: 0 of 2 keys saved, 2 printed below", "b", "c",
            "wq: stopped with 2 keys unfinished: 0 in left, 2 printed above"])
        self.assertEqual(self.lines("left"), ["old"])
        self.assertEqual(sorted(os.listdir(self.dir)), ["gate", "left"])

    def test_cannot_be_opened(self):
        p = self.wq("run", "--leftover=no/left", "--", "touch", "x", input="a\n")
        self.assertEqual((p.returncode, p.stderr), (1, b"wq: no/left: No such file or directory\n"))
        self.assertEqual(os.listdir(self.dir), [])

    def test_oldest_first(self):
        """As they came, then what waits as it comes due, then what was not read."""
        old = [f"old{i}" for i in range(3000)]
        late = [f"late{i}" for i in range(30)]
        unread = [f"unread{i}" for i in range(3000)]
        for keys in (old, late, unread):
            self.random.shuffle(keys)
        self.fifo("goa")
        p = self.start("run", "--socket=./s", "-a-", "-j1", f"--max-queue={len(old) + len(late)}", "--leftover=left",
                       "--", "sh", "-c", self.HELD, "sh")
        self.until(lambda: self.wq("add", "-s", "./s", "a").returncode == 0)
        self.until_file("upa")
        for i in self.random.sample(range(len(late)), len(late)):
            self.assertEqual(self.wq("add", "-s", "./s", f"--after={i + 1}h", late[i]).returncode, 0)
        # All that may be read, and more.
        self.give(p, *old, *unread)
        self.until(lambda: json.loads(self.wq("status", "-s", "./s", "--json").stdout)["full"], "a full queue")
        self.assertIn(b"listens on ./s", p.stderr.readline())
        self.signal(p, TERM, "stopping")
        self.let("goa")
        self.assertEqual(p.wait(), 75)
        left = self.left()
        self.assertEqual(left, old + late + unread)

    def test_who_was_ended_comes_first(self):
        p = self.held("-j1", "--grace=1h", keys="cabd", command='touch "up$1"; exec sleep 600')
        self.until_file("upc")
        for said in ("stopping", "terminating"):
            self.signal(p, TERM, said)
        self.over(p, 75, "cabd")
        self.assertEqual(self.lines("left"), list("cabd"))


class Status(Case):
    """126, 127 before 75 before 123 before 1 before 0."""

    def status(self, command, *args, input="a\nb\n"):
        self.script("cmd", command)
        return self.wq("run", "-j1", "--retries=0", "-q", "--command-wait=0", *args, "--", "./cmd", input=input).returncode

    def test_well(self):
        self.assertEqual(self.status("true"), 0)
        self.assertEqual(self.status("true", input=""), 0)

    def test_trouble(self):
        self.assertEqual(self.status("true", input=b"a\0\nb\n"), 1)

    def test_failed_before_trouble(self):
        self.assertEqual(self.status("exit 1", input=b"a\0\nb\n"), 123)

    def test_left_before_failed(self):
        self.assertEqual(self.status('[ "$1" = a ] && exit 1; kill $PPID', input=b"x\0\na\nb\nc\n"), 75)

    def test_not_found_before_left(self):
        self.assertEqual(self.status('[ "$1" = a ] && exit 1; rm cmd', input=b"x\0\na\nb\nc\n"), 127)

    def test_not_executable_before_left(self):
        self.assertEqual(self.status('[ "$1" = a ] && exit 1; chmod 644 cmd', input=b"x\0\na\nb\nc\n"), 126)

    def test_stopped_without_anything_left(self):
        self.assertEqual(self.status("kill $PPID", input="a\n"), 0)
        self.assertEqual(self.status("kill $PPID; exit 1", input="a\n"), 123)

    def test_usage(self):
        self.assertEqual(self.wq("run").returncode, 2)


class Debounce(Stopping):
    def test_once_it_has_been_quiet(self):
        (self.dir / "keys").write_text("a\n")
        began = time.monotonic()
        p = self.wq("run", "-akeys", "--debounce=100ms", "--", "echo")
        self.assertGreaterEqual(time.monotonic() - began, 0.1)
        self.assertEqual((p.returncode, p.stdout), (0, b"a\n"))

    def test_each_time_it_waits_anew(self):
        p = self.start("run", "--debounce=200ms", "--summary", "--", "date", "+%s.%N:{}")
        for _ in range(5):
            last = time.time()  # or a little later
            self.give(p, "a")
            self.until(lambda: time.time() > last + 0.02)  # events that come apart
        p.stdin.close()
        out, err = p.stdout.read().decode(), p.stderr.read().decode()
        # A test that was held up may see it run in between; the last run is after the last event.
        self.assertGreaterEqual(float(out.splitlines()[-1].split(":")[0]) - last, 0.19)
        self.assertRegex(err, r"5 given = [0-4] merged")

    def test_merged(self):
        p = self.wq("run", "--debounce=1ms", "--log=log", "--", "echo", input="a\nb\na\na\n")
        self.assertEqual((p.returncode, sorted(p.stdout.split())), (0, [b"a", b"b"]))
        self.assertEqual(sorted((a["key"], a["merged"]) for a in self.log()), [("a", 2), ("b", 0)])

    def test_merged_while_it_fails(self):
        """It would come again for two reasons, and comes once."""
        for backoff in ("1ms", "1h"):
            p = self.held("-j1", f"--backoff={backoff}", keys="a",
                          command='[ {#} = 2 ] && exit 0; touch "up$1"; read x <"go$1"; exit 1')
            self.until_file("upa")
            self.give(p, "a", "a")
            self.taken(p)
            p.stdin.close()
            self.let("goa")
            self.assertIn("5 given = 2 merged + 2 refused + 1 to do", self.over(p, 1, ""))
            self.assertEqual([(a["outcome"], a["merged"]) for a in self.log()], [("retry", 0), ("done", 2)])
            for name in ("upa", "log"):
                (self.dir / name).unlink()

    def test_max_wait_bounds_it(self):
        # Alone it would wait for an hour.
        began = time.monotonic()
        p = self.wq("run", "--debounce=1h", "--max-wait=100ms", "--", "echo", input="a\nb\na\n")
        self.assertGreaterEqual(time.monotonic() - began, 0.1)
        self.assertEqual((p.returncode, sorted(p.stdout.split())), (0, [b"a", b"b"]))

    def test_max_wait_of_what_keeps_coming(self):
        p = self.start("run", "--debounce=1h", "--max-wait=100ms", "--log=log", "--", "true")
        for n in (1, 2, 3):
            began = time.monotonic()
            # An event with each look, which come apart.
            self.until(lambda: self.give(p, "a") or len(self.lines("log")) >= n, "an attempt")
            if n == 1:
                self.assertGreaterEqual(time.monotonic() - began, 0.1)
        self.assertEqual([a["outcome"] for a in self.log()][:3], ["done"] * 3)

    def test_max_wait_makes_nobody_wait(self):
        p = self.wq("run", "--debounce=1ms", "--max-wait=1h", "--", "echo", input="a\n")
        self.assertEqual((p.returncode, p.stdout), (0, b"a\n"))

    def test_left_when_it_stops(self):
        p = self.held("--debounce=1h", keys="ab")
        p.terminate()
        self.over(p, 75, "ab", done="")


if __name__ == "__main__":
    main()
