"""What a new user stumbles over: counts of adds that were cut short, - as a file, options behind keys, pipes as logs."""
import fcntl
import os
import pty
import select
import signal
import subprocess

import rig
from rig import Case, main
from served import Served


class Midway(Served):
    """The run ends while `wq add` waits for room."""

    def fill(self, *args, **kwargs):
        """A run that has as many keys as it may; how many, and the add that waits."""
        self.fifo("go")
        self.serve("-j1", "--max-queue=10", command=("sh", "-c", "read x <go; exit 0"))
        p = self.begin("add", *args)
        if "keys" in kwargs:
            p.stdin.write("".join(f"{k}\n" for k in kwargs["keys"]).encode())
            p.stdin.close()
            p.stdin = None
        return self.until_status(full=True, running=1)["given"], p

    def end_run(self):
        self.ask("stop", "--no-wait")
        self.let("go")
        self.assertEqual(self.ended(), 75)

    def test_input(self):
        n, p = self.fill("-v", "-", keys=range(50))
        self.end_run()
        self.assertEqual(n, 11)
        self.assertEqual(self.finish(p), (1, "wq: the run ends: it takes no more keys\n"
                                             f"wq: {n} of 50 given; the first not taken: {n}\n"))

    def test_arguments(self):
        n, p = self.fill(*(f"k{i}" for i in range(20)))
        self.end_run()
        self.assertEqual(self.finish(p), (1, "wq: the run ends: it takes no more keys\n"
                                             f"wq: {n} of 20 given; the first not taken: k{n}\n"))

    def test_many_orders(self):
        """Keys so long that an order has two of them: the counts are sums."""
        keys = [f"{i:02}" + "x" * 30000 for i in range(15)]
        n, p = self.fill(*keys)
        self.end_run()
        rc, said = self.finish(p)
        self.assertEqual((rc, n), (1, 11))
        self.assertIn(f"wq: {n} of 15 given; the first not taken: {n}xxx", said)

    def test_one(self):
        """There is nothing to count."""
        self.fifo("go")
        self.serve("-j1", command=("sh", "-c", ": >up; read x <go; exit 0"))
        self.ask("add", "a")
        self.until_file("up")
        self.ask("stop", "--no-wait")
        self.ask("add", "b", status=1)
        self.assertEqual(self.complaint, "wq: the run ends: it takes no more keys\n")
        self.let("go")
        self.assertEqual(self.ended(), 0)

    def test_a_key_that_is_refused(self):
        self.serve("-d", ":")
        self.ask("add", "a", "b:c", "d", status=1)
        self.assertIn("wq: 1 of 3 given; the first not taken: b:c\n", self.complaint)

    def test_killed(self):
        """What the run said before is certain; how far it came then nobody knows."""
        _, p = self.fill("-", keys=range(50))
        self.run_.kill()
        self.run_.wait()
        # Its command is not in our way.
        fd = os.open(self.dir / "go", os.O_RDWR | os.O_NONBLOCK)
        self.addCleanup(os.close, fd)
        os.write(fd, b"go\n")
        status, said = self.finish(p)
        self.assertEqual(status, 1)
        self.assertRegex(said, r"\Awq: the run has ended\n"
                               r"wq: (\d+) of 50 given for certain; the first that is uncertain: \1\n\Z")


class Words(Served):
    def test_options_behind_keys(self):
        self.serve("-j1")
        self.ask("pause")
        self.ask("add", "k", "--after", "1h", "l")
        self.assertEqual(self.keys("--state=waiting"), ["k", "l"])
        self.ask("add", "m", "--bogus", status=2)
        self.assertIn("wq: --bogus: wq add has no such option\n", self.complaint)
        self.ask("add", "m", "--after", status=2)
        self.assertIn("wq: --after needs a value\n", self.complaint)
        self.ask("cancel", "l", "--kill")
        self.assertEqual(self.keys(), ["k"])

    def test_kill_behind_a_key(self):
        self.fifo("go")
        self.serve(command=("sh", "-c", ": >up; read x <go"))
        self.ask("add", "k")
        self.until_file("up")
        self.ask("cancel", "k", "--kill")
        self.ask("wait")
        self.assertEqual(self.status()["cancelled"], 1)

    def test_dashes(self):
        self.serve()
        self.ask("pause")
        self.ask("add", "a", "--", "-", "--after", "--")
        self.assertEqual(self.keys(), ["-", "--", "--after", "a"])
        self.ask("cancel", "a", "--", "--after", "--")
        self.ask("add", "--", "-", input="b\n")
        self.assertEqual(self.keys(), ["-"])
        self.ask("cancel", "-")
        self.ask("add", "-", "--", input="b\n")
        self.assertEqual(self.keys(), ["b"])
        for words in (("a", "-"), ("-", "a"), ("-", "--", "a"), ("-", "-")):
            self.ask("add", *words, input="c\n", status=2)
            self.assertIn("wq: - is standard input, and stands alone", self.complaint)
        self.assertEqual(self.keys(), ["b"])

    def test_implied_key(self):
        self.serve(command=("sleep", "0"))
        self.assertEqual(self.status()["command"], "sleep 0 '{}'")

    def test_named_key(self):
        self.serve(command=("echo", "{}", "x"))
        self.assertEqual(self.status()["command"], "echo '{}' x")


class Files(Case):
    def test_dash(self):
        for option in ("log", "dead", "leftover", "metrics-file"):
            p = self.wq("run", f"--{option}", "-", "--", "true", input="a\n")
            self.assertEqual(p.returncode, 2)
            self.assertIn(f"wq: --{option} -: ./- if a file is meant, /dev/stdout for the output\n", p.stderr.decode())
            self.assertEqual(os.listdir(self.dir), [])

    def test_dash_as_a_file(self):
        p = self.wq("run", "--log", "./-", "--", "true", input="a\n")
        self.assertEqual((p.returncode, len(self.lines("-"))), (0, 1))

    def test_standard_output(self):
        p = self.wq("run", "--log", "/dev/stdout", "--", "true", input="a\n")
        self.assertEqual((p.returncode, p.stdout.count(b'"outcome":"done"')), (0, 1))

    def test_pipe_that_nobody_reads(self):
        self.fifo("pipe")
        for option in ("log", "dead"):
            p = self.wq("run", f"--{option}", "pipe", "--", "true", input="a\n")
            self.assertEqual((p.returncode, p.stderr), (1, b"wq: pipe: the pipe has no reader\n"))

    def reader(self):
        """Of a small pipe, who does not read."""
        fd = os.open(self.fifo("pipe"), os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, fd)
        return fd, fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, 4096)

    def logged(self, *options):
        """A run that writes 200 lines to the pipe; what the pipe is read by."""
        fd, _ = self.reader()
        p = self.start("run", "--log", "pipe", *options, "--", "true", stderr=subprocess.DEVNULL)
        self.give(p, *(str(i) for i in range(200)))
        p.stdin.close()
        return p, fd

    def test_log_that_is_read_late(self):
        """Nothing of it is lost."""
        p, fd = self.logged()
        data = b""
        while data.count(b"\n") < 200:
            self.assertTrue(select.select([fd], [], [], rig.PATIENCE)[0])
            data += os.read(fd, 4096)
        self.assertEqual((p.wait(), data.count(b'"outcome":"done"')), (0, 200))

    def test_log_that_is_not_read(self):
        """It keeps no stop waiting."""
        p, fd = self.logged("--grace=1ms")
        self.assertTrue(select.select([fd], [], [], rig.PATIENCE)[0])
        p.send_signal(signal.SIGTERM)
        self.assertIn(p.wait(), (1, 75))

    def test_dead_that_are_not_read(self):
        """They keep no stop waiting, and each is in the pipe or printed."""
        fd, room = self.reader()
        keys = [f"{i:03}" + "x" * 97 for i in range(100)]
        p = self.start("run", "-q", "--dead", "pipe", "--log=log", "--grace=1ms", "--", "sh", "-c", "exit 100")
        self.give(p, *keys)
        self.until(lambda: len(self.lines("log")) == len(keys), "the last death")
        p.send_signal(signal.SIGTERM)
        text = p.communicate(timeout=rig.PATIENCE)[1].decode()
        self.assertEqual(p.returncode, 123)
        head, *printed = text[text.index("wq: pipe"):].splitlines()
        self.assertRegex(head, r"wq: pipe: it is full, and not read fast enough: \d+ of 100 dead keys saved")
        *data, part = os.read(fd, 2 * room).decode().split("\n")
        self.assertEqual(sorted(data + printed), keys)
        self.assertTrue(printed[0].startswith(part))

    def test_dead_that_are_read_late(self):
        """None is lost, be they more than would be kept of a file that takes none."""
        fd, _ = self.reader()
        keys = [f"{i:02}" + "x" * 60000 for i in range(30)]
        p = self.start("run", "-q", "--dead", "pipe", "--log=log", "--", "sh", "-c", "exit 100",
                       stderr=subprocess.DEVNULL)
        self.give(p, *keys)
        self.until(lambda: len(self.lines("log")) == len(keys), "the last death")
        p.stdin.close()
        os.set_blocking(fd, True)
        with open(os.dup(fd), encoding="ascii") as pipe:
            self.assertEqual(sorted(pipe.read().split()), keys)
        self.assertEqual(p.wait(), 123)

    def test_part_of_a_dead_key(self):
        """Another reader gets the whole of it, after what was left in the pipe."""
        fd, room = self.reader()
        key = "x" * 2 * room
        p = self.start("run", "-q", "--dead", "pipe", "--", "sh", "-c", "exit 100")
        self.give(p, key)
        self.assertTrue(select.select([fd], [], [], rig.PATIENCE)[0])
        self.assertEqual(set(os.read(fd, 100)), {ord("x")})
        with open(os.devnull, "rb") as null:
            os.dup2(null.fileno(), fd)
        self.assertIn(b"wq: pipe: Broken pipe; dead keys are kept in memory", p.stderr.readline())
        with open(self.dir / "pipe", encoding="ascii") as again:
            self.assertLess(len(again.readline()), len(key))
            self.assertEqual(again.readline(), key + "\n")


class Typed(Case):
    def type(self, *args, text=b"a\n\x04"):
        """What is on the terminal when the keys that were typed on it are done."""
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        p = self.start("run", *args, "--", "true", stdin=slave, stdout=slave, stderr=slave, env={"TERM": "xterm"})
        os.close(slave)
        os.write(master, text)
        shown = b""
        try:
            while data := os.read(master, 65536):
                shown += data
        except OSError:
            pass
        self.assertEqual(p.wait(rig.PATIENCE), 0)
        return shown.replace(b"\r\n", b"\n")

    def test_no_progress(self):
        for args in ((), ("-a", "-"), ("--no-progress",)):
            shown = self.type(*args)
            self.assertEqual(shown.count(b"wq: reading keys from the terminal; Ctrl-D ends\n"), 1)
            self.assertNotIn(b"done", shown)

    def test_quiet(self):
        self.assertNotIn(b"wq:", self.type("-q"))

    def test_another_input(self):
        (self.dir / "keys").write_text("a\n")
        shown = self.type("-a", "keys")
        self.assertNotIn(b"reading keys", shown)
        self.assertIn(b"done", shown)


class Listens(Served):
    def test_it_says_so(self):
        self.serve()
        # Who asks may be answered before it is said.
        self.until(self.said, "what it says")
        self.until(lambda: self.said().endswith("\n"), "the end of the line")
        self.assertEqual(self.said(), "wq: listens on ./s\n")

    def test_quiet(self):
        self.serve("-q")
        self.assertEqual(self.said(), "")


if __name__ == "__main__":
    main()
