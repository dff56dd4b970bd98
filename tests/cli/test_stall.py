"""What is missing is not a key's failure: an attempt that did not execute is neither counted nor logged."""
import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import unittest

import rig
from rig import Case, main

AGAIN = b"; trying again until one can\n"


class Stall(Case):
    def log(self):
        return [json.loads(line) for line in self.lines("log")]

    def all_at_first(self, p, n):
        """It ends well, and each key was done by its first attempt."""
        p.stdin.close()
        error = p.stderr.read().decode()
        self.assertEqual(p.wait(rig.PATIENCE), 0, error)
        self.assertIn("wq: commands are started again, after ", error)
        self.assertIn(f"{n} to do = {n} done + 0 dead", error)
        self.assertIn(f"wq: {n} attempts, 0 failed", error)
        self.assertEqual(sorted((a["key"], a["attempt"], a["outcome"]) for a in self.log()),
                         sorted((str(i), 1, "done") for i in range(n)))

    def options(self):
        return ["--retries=3", "--backoff=1ms", "--summary", "--log=log", "--metrics-file=metrics"]


class Shortage(Stall):
    @unittest.skipIf(os.getuid() != 0, "needs another user")
    def test_no_processes(self):
        """Not even one, until another process of the user ends."""
        if rig.is_sanitized():
            self.skipTest("the search for leaks is a process")
        uid = 57321 + os.getpid() % 1000
        self.dir.chmod(0o777)

        def become():
            resource.setrlimit(resource.RLIMIT_NPROC, (2, 2))
            os.setgid(uid)
            os.setuid(uid)

        other = subprocess.Popen(["cat"], stdin=subprocess.PIPE, preexec_fn=become)
        self.addCleanup(other.communicate)
        p = self.start("run", "-j4", *self.options(), "--", "/bin/true", preexec_fn=become)
        self.give(p, *map(str, range(50)))
        self.assertEqual(p.stderr.readline(),
                         b"wq: no command can be started: Resource temporarily unavailable" + AGAIN)
        self.assertEqual(self.log(), [])
        other.communicate()
        self.all_at_first(p, 50)
        self.assertIn('workqueue_retries_total{name="wq"} 0', self.lines("metrics"))

    def missing(self, call, error):
        gate = self.dir / "gate"
        gate.touch()
        p = self.start("run", "-j3", *self.options(), "--", "true", env=self.shim(f"{call}:{error}:{gate}"))
        self.give(p, *map(str, range(9)))
        self.assertEqual(p.stderr.readline().decode(),
                         f"wq: no command can be started: {os.strerror(error)}" + AGAIN.decode())
        gate.unlink()
        self.all_at_first(p, 9)
        (self.dir / "log").unlink()

    def test_each(self):
        for call, error in (("vfork", errno.EAGAIN), ("vfork", errno.ENOMEM), ("pipe2", errno.EMFILE),
                            ("pipe2", errno.ENFILE), ("pipe2", errno.ENOMEM)):
            with self.subTest(call=call, error=errno.errorcode[error]):
                self.missing(call, error)

    def test_no_watch(self):
        """A pipe that cannot be watched would never be read."""
        (self.dir / "keys").write_text("0\n1\n")
        gate = self.dir / "gate"
        p = self.start("run", "-j1", *self.options(), "-a", "keys", "--", "sh", "-c",
                       "[ $0 = 1 ] || : >gate", env=self.shim(f"epoll_ctl:{errno.ENOSPC}:{gate}"))
        self.assertEqual(p.stderr.readline(), b"wq: no command can be started: No space left on device" + AGAIN)
        gate.unlink()
        self.all_at_first(p, 2)

    def test_it_is_said_again(self):
        """After 15 s, then in spans that grow fourfold, and once an hour at last."""
        gate, late = self.dir / "gate", self.dir / "late"
        gate.touch()
        late.touch()
        p = self.start("run", "-j1", *self.options(), "--", "true",
                       env=self.shim(f"vfork:{errno.EAGAIN}:{gate} clock:1000000:{late}"))
        self.give(p, "0")
        keys = 1
        self.assertIn(AGAIN, p.stderr.readline())

        def go_to(seconds):
            """The next key wakes the run, which sees how late it is and tries again."""
            nonlocal keys
            os.truncate(late, seconds)
            tries = gate.stat().st_size
            self.give(p, str(keys))
            keys += 1
            self.until(lambda: gate.stat().st_size > tries, "another try")

        def silent_until(seconds):
            go_to(seconds - 2)
            go_to(seconds)

        def said_at(seconds, text):
            go_to(seconds)
            self.assertRegex(p.stderr.readline().decode(), rf"\Awq: for {text} no command could be started: "
                                                           r"Resource temporarily unavailable\n\Z")

        silent_until(10)
        said_at(16, "16s")
        silent_until(45)
        said_at(100, "1m40s")
        silent_until(390)
        said_at(6000, "1h40m")
        silent_until(9580)
        said_at(9610, "2h40m")
        gate.unlink()
        os.truncate(late, 9620)
        self.all_at_first(p, keys)

    def test_it_stops_meanwhile(self):
        gate = self.dir / "gate"
        gate.touch()
        for more in ([], ["--on-term=drain"]):
            p = self.start("run", *self.options(), "--leftover=left", *more, "--", "true",
                           env=self.shim(f"vfork:{errno.EAGAIN}:{gate}"))
            self.give(p, "a", "b")
            self.assertIn(AGAIN, p.stderr.readline())
            p.terminate()
            if more:
                self.assertIn(b"what there is gets done", p.stderr.readline())
                p.terminate()
            self.assertEqual(p.wait(rig.PATIENCE), 75)
            self.assertEqual((sorted(self.lines("left")), self.log()), (["a", "b"], []))

    def test_keys_merge_and_are_cancelled_meanwhile(self):
        gate = self.dir / "gate"
        gate.touch()
        p = self.start("run", "-a-", "--socket=./s", *self.options(), "--", "true",
                       env=self.shim(f"vfork:{errno.EAGAIN}:{gate}"))
        self.assertIn(b"listens", p.stderr.readline())
        self.give(p, "a", "b", "a", "a")
        self.assertIn(AGAIN, p.stderr.readline())
        self.until(lambda: self.wq("ls", "-s./s").stdout.count(b"queued") == 2, "both keys")
        self.assertEqual(self.wq("cancel", "-s./s", "b").returncode, 0)
        gate.unlink()
        self.assertEqual(self.wq("wait", "-s./s").returncode, 0)
        self.assertEqual([(a["key"], a["attempt"], a["merged"]) for a in self.log()], [("a", 1, 2)])
        self.assertEqual(self.wq("drain", "-s./s").returncode, 0)
        self.assertEqual(p.wait(rig.PATIENCE), 0)

    def test_a_rate_is_not_used_up(self):
        """Tries are no starts: the second key has the second token of the burst."""
        gate = self.dir / "gate"
        gate.touch()
        p = self.start("run", "-j1", "--rate=1/h", "--burst=2", *self.options(), "--", "true",
                       env=self.shim(f"vfork:{errno.EAGAIN}:{gate}"))
        self.give(p, "0", "1")
        self.assertIn(AGAIN, p.stderr.readline())
        gate.unlink()
        self.all_at_first(p, 2)


class Results(Stall):
    def test_a_folder_that_goes(self):
        """It is made anew."""
        p = self.wq("run", "-j1", "--results=r", *self.options(), "--", "sh", "-c", "[ $0 != 0 ] || rm -r r",
                    input="0\n1\n")
        self.assertEqual(p.returncode, 1, p.stderr)  # the attempt.json of the first
        self.assertIn(b"wq: r: No such file or directory; no command is started until results can be kept there\n",
                      p.stderr)
        self.assertEqual([(a["key"], a["attempt"], a["outcome"]) for a in self.log()],
                         [("0", 1, "done"), ("1", 1, "done")])
        self.assertTrue((self.dir / "r" / "1" / "attempt.json").exists())

    def test_one_key_alone_cannot_have_them(self):
        """It fails; the others are done."""
        (self.dir / "r").mkdir()
        (self.dir / "r" / "1").touch()
        p = self.wq("run", "-j1", "--results=r", "--retries=1", "--backoff=1ms", "--dead=dead", "--", "true",
                    input="0\n1\n2\n")
        self.assertEqual(p.returncode, 123, p.stderr)
        self.assertEqual(p.stderr.count(b"wq: 1: its results cannot be kept: Not a directory\n"), 2)
        self.assertEqual(self.lines("dead"), ["1"])
        self.assertTrue((self.dir / "r" / "2" / "attempt.json").exists())


class Command(Stall):
    """A deploy: the command is gone for a moment."""

    def replaced(self, how, put_back, why):
        self.script("cmd", f"[ $1 != 0 ] || {{ {how}; }}")
        p = self.start("run", "-j1", *self.options(), "--", "./cmd")
        self.give(p, "0", "1", "2")
        self.assertEqual(p.stderr.readline().decode(), f"wq: ./cmd cannot be executed: {why}; waiting for it for 30s "
                                                       "at most (--command-wait)\n")
        put_back()
        self.all_at_first(p, 3)
        (self.dir / "log").unlink()

    def test_replaced(self):
        new = self.dir / "new"
        shutil.copy(self.script("right", "exit 0"), new)

        def move():
            shutil.copy(new, self.dir / "cmd.new")
            os.replace(self.dir / "cmd.new", self.dir / "cmd")

        self.replaced("rm cmd", move, "No such file or directory")
        self.replaced("chmod 644 cmd", move, "Permission denied")
        self.replaced("rm cmd; mkdir cmd", lambda: ((self.dir / "cmd").rmdir(), move()), "Permission denied")
        self.replaced("printf '\\177ELF' >cmd", move, "Exec format error")
        self.replaced(": >cmd", move, "Exec format error")

    def test_written_while_it_is_started(self):
        """Even if it was never executed: somebody is about to end that."""
        shutil.copy(shutil.which("true"), self.dir / "cmd")
        with open(self.dir / "cmd", "r+b"):
            p = self.start("run", *self.options(), "--", "./cmd")
            self.give(p, "0")
            self.assertIn(b"./cmd cannot be executed: Text file busy; waiting", p.stderr.readline())
        self.all_at_first(p, 1)

    def test_gone_before_the_first_key(self):
        self.script("cmd", "exit 0")
        p = self.start("run", *self.options(), "--socket=./s", "-a-", "--", "./cmd")
        self.assertIn(b"listens", p.stderr.readline())
        (self.dir / "cmd").rename(self.dir / "away")
        self.give(p, "0")
        self.assertIn(b"./cmd cannot be executed: No such file or directory; waiting", p.stderr.readline())
        (self.dir / "away").rename(self.dir / "cmd")
        self.assertEqual(self.wq("wait", "-s./s").returncode, 0)
        self.assertEqual([(a["key"], a["attempt"]) for a in self.log()], [("0", 1)])

    def test_it_does_not_come_back(self):
        self.script("cmd", "rm cmd")
        p = self.wq("run", "-j1", "--command-wait=50ms", "--leftover=left", *self.options(), "--", "./cmd",
                    input="0\n1\n2\n")
        self.assertEqual(p.returncode, 127, p.stderr)
        said = p.stderr.decode().splitlines()
        self.assertIn("; waiting for it for 50ms at most", said[0])
        self.assertEqual(said[1], "wq: ./cmd cannot be executed any more: No such file or directory")
        self.assertIn("wq: 1 attempts, 0 failed", p.stderr.decode())
        self.assertEqual(sorted(self.lines("left")), ["1", "2"])
        self.assertEqual([a["key"] for a in self.log()], ["0"])

    def test_others_go_on_meanwhile(self):
        self.fifo("go")
        self.script("cmd", "[ $1 = 1 ] && exit; rm cmd; read x <go; touch done")
        p = self.start("run", "-j2", *self.options(), "--command-wait=1ms", "--leftover=left", "--", "./cmd")
        self.give(p, "0")
        self.until(lambda: not (self.dir / "cmd").exists(), "its end")
        self.give(p, "1")
        self.assertIn(b"waiting", p.stderr.readline())
        self.assertIn(b"cannot be executed any more", p.stderr.readline())
        self.let("go")
        self.assertEqual(p.wait(rig.PATIENCE), 127)
        self.assertTrue((self.dir / "done").exists())
        self.assertEqual(self.lines("left"), ["1"])

    def test_it_stops_meanwhile(self):
        self.script("cmd", "rm cmd")
        p = self.start("run", "-j1", *self.options(), "--leftover=left", "--", "./cmd")
        self.give(p, "0", "1")
        self.assertIn(b"waiting", p.stderr.readline())
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(rig.PATIENCE), 75)
        self.assertEqual(self.lines("left"), ["1"])


if __name__ == "__main__":
    main()
