"""`wq top` on a terminal."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios

from rig import main
from served import Served

ON, OFF = b"\x1b[?1049h\x1b[?25l", b"\x1b[?25h\x1b[?1049l"


class Screen:
    """A terminal, and what can be seen on it."""

    def __init__(self, case, *args, rows=24, columns=80, env=None, patient=True):
        self.case = case
        self.master, self.slave = pty.openpty()
        case.addCleanup(os.close, self.master)
        case.addCleanup(os.close, self.slave)
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.raw = b""
        words = case.words("top", *args) if patient else ["top", "-s", "./s", *args]
        self.p = case.start(*words, stdin=self.slave, stdout=self.slave, env=env,
                            preexec_fn=self.own)

    def own(self):
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def resize(self, rows, columns):
        self.rows, self.columns = rows, columns
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self):
        if select.select([self.master], [], [], 0.01)[0]:
            self.raw += os.read(self.master, 65536)

    def pictures(self):
        """All that were drawn in full."""
        return re.findall(rb"\x1b\[H(.*?\x1b\[J\x1b\[\d+;1H[^\x1b]*)", self.raw, re.S)

    def last(self):
        found = self.pictures()
        return found[-1].decode() if found else ""

    def lines(self):
        """Of the last picture, without escapes."""
        text = self.last().split("\x1b[J")[0]
        return [re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line) for line in re.split("\r+\n", text)]

    def foot(self):
        return re.search(r"\x1b\[J\x1b\[(\d+);1H([^\x1b]*)", self.last()).groups()

    def until(self, pattern):
        def look():
            self.read()
            return re.search(pattern, "\n".join(self.lines()))
        try:
            return self.case.until(look, pattern)
        except AssertionError:
            raise AssertionError(f"{pattern!r} is not in {self.lines()} {self.raw[-500:]}") from None

    def type(self, keys):
        os.write(self.master, keys)

    def until_off(self):
        """What was written comes out of a terminal a moment later."""
        self.case.until(lambda: self.read() or self.raw.endswith(OFF), "the end of the picture")

    def end(self):
        """The exit status; the terminal is as it was."""
        def ended():
            self.read()
            return self.p.poll() is not None
        self.case.until(ended, "its end")
        self.until_off()
        self.case.assertEqual(self.raw.count(ON), self.raw.count(OFF))
        self.case.assertEqual(termios.tcgetattr(self.slave), self.before)
        return self.p.returncode


class Top(Served):
    def stage(self):
        """One works, one is in line, one failed and waits, one is dead."""
        self.fifo("gate")
        self.serve("-j1", "--backoff", "1h", "--name", "stage",
                   command=("sh", "-c", "case $1 in bad) exit 3;; dead) exit 100;; esac; read x <gate", "sh"))
        self.ask("add", "bad", "dead")
        self.until_status(failed=2)
        self.ask("add", "works\x1b[2J")
        self.until_status(running=1)
        self.ask("add", "in line")

    def test_picture(self):
        self.stage()
        s = Screen(self)
        s.until("stage  open, for .*1 worker")
        text = "\n".join(s.lines())
        self.assertRegex(text, r"1 running  1 queued  1 waiting \(the next in 5\dm\d\ds\)")
        self.assertRegex(text, r"0 done  2 failed  1 dead  0 cancelled  0 merged  of 4 given")
        self.assertRegex(text, r"running +\S+ +0  works\\x1b\[2J")
        self.assertRegex(text, r"waiting +\S+ +1  bad")
        self.assertRegex(text, r"dead +\S+ +1  dead")
        self.assertNotIn(b"works\x1b", s.raw)
        self.assertTrue(s.raw.startswith(ON))
        s.type(b"q")
        self.assertEqual(s.end(), 0)

    def test_failures_are_the_keys_own(self):
        """Not of one that failed before it, and was done at last."""
        self.serve("-j1", "--backoff=1ms",
                   command=("sh", "-c", "case $1 in third) [ {#} = 3 ];; *) exit 100;; esac", "sh"))
        self.ask("add", "third")
        self.until_status(done=1, failed=2)
        self.ask("add", "dead")
        self.until_status(dead=1)
        self.assertRegex(self.ask("top"), r"dead +\S+ +1  dead\n")

    def test_live(self):
        self.serve()
        s = Screen(self, "--interval", "1ms")
        s.until("0 done")
        self.until(lambda: s.read() or len(s.pictures()) > 100)
        self.ask("add", "a", "b")
        s.until("2 done")
        s.type(b"xyz ")
        self.ask("add", "c")
        s.until("3 done")
        s.type(b"q")
        self.assertEqual(s.end(), 0)

    def test_interval(self):
        """A key is answered before the next picture is due."""
        self.serve()
        s = Screen(self, "--interval", "1h")
        s.until("0 done")
        s.type(b"q")
        self.assertEqual(s.end(), 0)
        self.assertEqual(len(s.pictures()), 1)

    def test_pause(self):
        self.serve()
        s = Screen(self, "--interval", "1h")
        s.until("open, for")
        s.type(b"p")
        s.until("open, paused")
        self.assertTrue(self.status()["paused"])
        self.until(lambda: s.read() or s.foot() == ("24", "q: quit  p: resume"))
        s.type(b"p")
        s.until("open, for")
        self.assertFalse(self.status()["paused"])
        s.type(b"q")
        self.assertEqual(s.end(), 0)

    def test_signals(self):
        self.serve()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            s = Screen(self, "--interval", "1h")
            s.until("0 done")
            s.p.send_signal(number)
            self.assertEqual(s.end(), 0)

    def test_ctrl_c(self):
        self.serve()
        s = Screen(self, "--interval", "1h")
        s.until("0 done")
        s.type(b"\x03")
        self.assertEqual(s.end(), 0)

    def test_suspended(self):
        """The terminal is the shell's meanwhile."""
        self.serve()
        s = Screen(self, "--interval", "1h")
        s.until("0 done")
        s.p.send_signal(signal.SIGTSTP)
        self.until(lambda: self.is_stopped(s), "a stop")
        s.until_off()
        self.assertEqual(termios.tcgetattr(s.slave), s.before)
        before = len(s.pictures())
        s.p.send_signal(signal.SIGCONT)
        self.until(lambda: s.read() or len(s.pictures()) > before)
        s.type(b"q")
        self.assertEqual(s.end(), 0)

    def is_stopped(self, s):
        with open(f"/proc/{s.p.pid}/stat", encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "T"

    def test_window(self):
        """Nothing is wider or longer than the window, whatever its size; a new size is taken at once."""
        self.serve("-j50", "--backoff", "1h", command=("sh", "-c", "case $1 in f*) exit 1;; esac; exec sleep 1000", "sh"))
        self.ask("add", *(f"f{i}" + "ü" * 70 for i in range(30)))
        self.until_status(failed=30)
        self.ask("add", *(f"long key {i} " + "x" * 300 for i in range(50)))
        self.until_status(running=50)
        s = Screen(self, "--interval", "1h", rows=24, columns=80)
        s.until("running")
        for rows, columns in ((24, 80), (10, 30), (60, 200), (3, 10), (1, 1), (24, 80)):
            s.resize(rows, columns)
            self.until(lambda: s.read() or s.foot()[0] == str(rows), "a picture of that size")
            lines = s.lines()
            self.assertLessEqual(len(lines) - 1, max(rows - 1, 0), (rows, columns))
            self.assertLess(max(len(line) for line in lines), columns)
            self.assertEqual(s.foot()[0], str(rows))
            self.assertLess(len(s.foot()[1]), columns)
            if rows >= 24:
                self.assertRegex("\n".join(lines), r"long key")
                self.assertRegex("\n".join(lines), r"waiting +\S+ +1  f\d")
        s.type(b"q")
        self.assertEqual(s.end(), 0)

    def test_colors(self):
        self.stage()
        for env, colored in (({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True)):
            s = Screen(self, env=env)
            s.until("stage")
            self.assertEqual(re.search(r"\x1b\[[0-9;]*m", s.last()) is not None, colored, env)
            s.type(b"q")
            self.assertEqual(s.end(), 0)

    def test_the_run_ends(self):
        self.serve()
        s = Screen(self, "--interval", "10ms")
        s.until("0 done")
        self.ask("stop")
        self.assertEqual(s.end(), 0)
        self.assertEqual(s.p.stderr.read(), b"wq: the run has ended\n")

    def unanswered(self, s):
        self.assertEqual(s.end(), 75)
        self.assertEqual(s.p.stderr.read(), b"wq: the run at ./s does not answer after 3.0s: it is stopped or overloaded\n")

    def test_the_run_does_not_answer(self):
        """It is not waited for without end, for neither keys nor signals are heard meanwhile."""
        self.serve()
        self.addCleanup(self.run_.send_signal, signal.SIGCONT)
        asks, waits = (Screen(self, "--interval", i, patient=False) for i in ("1ms", "1h"))
        for s in (asks, waits):
            s.until("0 done")
        self.halt()
        late = Screen(self, patient=False)
        waits.type(b"pq")
        for s in (asks, waits, late):
            self.unanswered(s)

    def test_no_terminal(self):
        """One picture, and that is all."""
        self.stage()
        text = self.ask("top")
        self.assertRegex(text, r"\Astage  open")
        self.assertRegex(text, r"running +\S+ +0  works\\x1b\[2J\n")
        self.assertNotIn("\x1b", text)


if __name__ == "__main__":
    main()
