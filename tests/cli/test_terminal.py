"""The program on a terminal: the line of progress, and Ctrl-C."""
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import tty

import rig
from rig import Case, main


class Screen:
    """As much of a terminal as the program uses; `lines` is what one would see."""

    def __init__(self):
        self.lines = [""]
        self.column = 0
        self.bytes = b""
        self.drawn = []  # what the last line was, each time its end was cleared
        self.rest = ""

    def feed(self, data):
        self.bytes += data
        text = self.rest + data.decode()
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                m = re.compile(r"\x1b\[([0-9;]*)([mK])").match(text, at)
                if not m:
                    if len(text) - at > 10:
                        raise AssertionError(f"an escape that is not known: {text[at:at + 10]!r}")
                    break
                if m.group(2) == "K":
                    self.lines[-1] = self.lines[-1][:self.column]
                    self.drawn.append(self.lines[-1])
                at = m.end()
                continue
            if text[at] == "\n":
                self.lines.append("")
                self.column = 0
            elif text[at] == "\r":
                self.column = 0
            else:
                line = self.lines[-1]
                self.lines[-1] = line[:self.column] + text[at] + line[self.column + 1:]
                self.column += 1
            at += 1
        self.rest = text[at:]


class Terminal(Case):
    def open(self, *args, columns=100, stdin=subprocess.PIPE, stdout=None, env=None):
        """The program, as a shell would start it in the foreground of a terminal."""
        self.master, slave = pty.openpty()
        self.addCleanup(os.close, self.master)
        self.resize(columns)
        # Ctrl-C stays what it is, but nothing is echoed.
        mode = termios.tcgetattr(slave)
        mode[tty.LFLAG] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, mode)
        os.set_blocking(self.master, False)
        self.screen = Screen()

        def lead():
            fcntl.ioctl(2, termios.TIOCSCTTY, 0)

        p = self.start(*args, stdin=slave if stdin is None else stdin, stdout=slave if stdout is None else stdout,
                       stderr=slave,
                       env={"TERM": "xterm"} | (env or {}), start_new_session=True, preexec_fn=lead)
        os.close(slave)
        return p

    def resize(self, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))

    def look(self):
        """Takes what was written; False: nobody will write any more."""
        try:
            while True:
                data = os.read(self.master, 65536)
                if not data:
                    return False
                self.screen.feed(data)
        except BlockingIOError:
            return True
        except OSError:
            return False

    def see(self, pattern):
        """Waits until the last line has it."""
        def seen():
            open_ = self.look()
            m = re.search(pattern, self.screen.lines[-1])
            self.assertTrue(m or open_, f"{pattern!r} is not in {self.screen.lines}")
            return m
        return self.until(seen, f"{pattern!r} on the screen")

    def finish(self, p):
        """The exit status, when all that was written has been read."""
        self.until(lambda: not self.look(), "the end")
        return p.wait(rig.PATIENCE)

    def press(self, key):
        os.write(self.master, key)


class Progress(Terminal):
    def test_numbers_move(self):
        for name in "abc":
            self.fifo(name)
        p = self.open("run", "-j2", "--retries", "0", "--", "sh", "-c", "read x <$0; exit $x")
        self.give(p, "a", "b", "c", "c")
        self.see(r"^0 done  2 running  1 queued  0 waiting  0 failed  1 merged  [0-9.]+/s$")
        with open(self.dir / "a", "w", encoding="ascii") as f:
            f.write("0\n")
        self.see(r"^1 done  2 running  0 queued")
        with open(self.dir / "b", "w", encoding="ascii") as f:
            f.write("1\n")
        self.see(r"^1 done  1 running  0 queued  0 waiting  1 failed  1 dead  1 merged")
        self.assertNotIn("ends in", self.screen.lines[-1])
        self.assertEqual(self.screen.lines[:-1], ["wq: b: exited with 1 in attempt 1, and is dead"])
        p.stdin.close()
        self.see(r"ends in \d")
        with open(self.dir / "c", "w", encoding="ascii") as f:
            f.write("0\n")
        self.assertEqual(self.finish(p), 123)
        # Nothing of it stays.
        self.assertEqual(self.screen.lines[1:], [""])

    def test_waiting(self):
        p = self.open("run", "--backoff", "1h", "--", "false")
        self.give(p, "a")
        self.see(r"^0 done  0 running  0 queued  1 waiting  1 failed")
        p.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(p), 75)
        self.assertEqual(self.screen.lines, ["wq: stopped with 1 key unfinished (--leftover FILE would keep them)", ""])

    def quiet_run(self, *args, **kwargs):
        self.fifo("go")
        p = self.open("run", *args, "--", "sh", "-c", ": >up; read x <go; exit 0", **kwargs)
        self.give(p, "a")
        p.stdin.close()
        self.until_file("up")
        self.let("go")
        self.assertEqual(self.finish(p), 0)
        self.assertEqual(self.screen.bytes, b"")

    def test_none_when_quiet(self):
        self.quiet_run("--quiet")

    def test_none_when_told_so(self):
        self.quiet_run("--no-progress")

    def test_none_on_a_dumb_terminal(self):
        self.quiet_run(env={"TERM": "dumb"})

    def test_none_for_a_dry_run(self):
        p = self.open("run", "--dry-run", "--", "echo")
        self.give(p, "a")
        p.stdin.close()
        self.assertEqual(self.finish(p), 0)
        self.assertEqual(self.screen.bytes, b"echo a\r\n")

    def test_none_elsewhere(self):
        """Standard error is what counts, not standard output."""
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        p = self.start("run", "--", "echo", stdout=slave)
        os.close(slave)
        self.give(p, "a")
        p.stdin.close()
        self.assertEqual((p.wait(rig.PATIENCE), p.stderr.read(), os.read(master, 100)), (0, b"", b"a\r\n"))

    def test_on_standard_error_alone(self):
        """Output into a pipe has none of it."""
        self.fifo("go")
        p = self.open("run", "--", "sh", "-c", "echo hi; read x <go; exit 0", stdout=subprocess.PIPE)
        self.give(p, "a")
        self.see("1 running")
        self.let("go")
        p.stdin.close()
        self.assertEqual(self.finish(p), 0)
        self.assertEqual(p.stdout.read(), b"hi\n")
        self.assertEqual(self.screen.lines, [""])

    def colors(self, env):
        p = self.open("run", "--backoff", "1h", "--", "false", env=env)
        self.give(p, "a")
        self.see("1 failed")
        p.send_signal(signal.SIGTERM)
        self.finish(p)
        return re.findall(rb"\x1b\[[1-9][0-9]*m", self.screen.bytes)

    def test_color(self):
        self.env.pop("NO_COLOR", None)
        self.assertIn(b"\x1b[33m", self.colors({}))
        self.assertIn(b"\x1b[33m", self.colors({"NO_COLOR": ""}))
        self.assertEqual(self.colors({"NO_COLOR": "1"}), [])

    def test_width(self):
        """A line that would be wrapped cannot be cleared: what does not fit is left out, and it follows the window."""
        p = self.open("run", "--backoff", "1h", "--", "false", columns=20)
        self.give(p, "a")
        self.see(r"^0 done  0 running$")
        self.assertEqual({len(line) for line in self.screen.drawn} - {0}, {17})
        self.resize(12)
        self.see(r"^0 done$")
        self.resize(200)
        self.see(r"1 failed .*/s$")
        p.send_signal(signal.SIGTERM)
        self.finish(p)
        self.assertEqual(self.screen.lines[-1], "")

    def test_output_does_not_mix_with_it(self):
        p = self.open("run", "-j4", "--tag", "--", "sh", "-c", "echo out; echo err >&2; sleep 0.01")
        keys = [f"k{i}" for i in range(60)]
        self.give(p, *keys[:30])
        self.see(r"done")
        self.give(p, *keys[30:])
        drawn = len(self.screen.drawn)
        self.until(lambda: self.look() and any("done" in line for line in self.screen.drawn[drawn:]), "another line")
        p.stdin.close()
        self.assertEqual(self.finish(p), 0)
        self.assertEqual(sorted(self.screen.lines),
                         sorted([""] + [f"{k}\t{w}" for k in keys for w in ("out", "err")]))

    def test_messages_do_not_mix_with_it(self):
        self.fifo("go")
        p = self.open("run", "--", "sh", "-c", "read x <go; exit 0")
        self.give(p, "a")
        self.see("1 running")
        p.send_signal(signal.SIGUSR1)
        self.until(lambda: self.look() and re.fullmatch(r"wq: \d+ workers", self.screen.lines[0]), "the message")
        self.see("1 running")
        self.let("go")
        p.stdin.close()
        self.assertEqual(self.finish(p), 0)
        self.assertEqual(len(self.screen.lines), 2)


class Keys(Terminal):
    def test_control_c(self):
        """The terminal signals the whole foreground: commands are not in it, and finish."""
        self.fifo("go")
        p = self.open("run", "-j1", "--leftover", "left", "--", "sh", "-c", "read x <go; echo finished $0")
        self.give(p, "a", "b")
        self.see("1 running")
        self.press(b"\x03")
        self.see("done  stopping")
        self.assertIn("wq: stopping: running commands finish; once more terminates them", self.screen.lines)
        self.let("go")
        self.assertEqual(self.finish(p), 75)
        self.assertIn("finished a", self.screen.lines)
        self.assertEqual(self.lines("left"), ["b"])

    def test_control_c_twice(self):
        p = self.open("run", "-j1", "--leftover", "left", "--", "sh", "-c", "exec sleep 1000")
        self.give(p, "a", "b")
        self.see("1 running")
        self.press(b"\x03")
        self.see("done  stopping")
        self.press(b"\x03")
        self.assertEqual(self.finish(p), 75)
        self.assertIn("wq: terminating the commands; once more kills them", self.screen.lines)
        self.assertEqual(sorted(self.lines("left")), ["a", "b"])
        self.assertEqual(self.screen.lines[-1], "")

    def test_a_terminal_that_is_not_read(self):
        """Frozen by Ctrl-S, say: nothing is shown, but signals work."""
        p = self.open("run", "-j1", "--grace", "50ms", "--leftover", "left", "--log", "log", "--", "sh", "-c",
                      "head -c 300000 /dev/zero | tr '\\0' x")
        self.give(p, "a", "b", "c", "d", "e", "f", "g")
        self.until(lambda: len(self.lines("log")) > 0, "the first end")
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(rig.PATIENCE), 75)
        self.assertEqual(len(self.lines("log")) + len(self.lines("left")), 7)

    def test_the_terminal_goes(self):
        """Its last end is closed: that hangs up, which is a signal to stop."""
        self.fifo("go")
        p = self.open("run", "-j1", "--leftover", "left", "--", "sh", "-c", ": >up; read x <go; echo $0 >>done")
        self.give(p, "a", "b")
        self.until_file("up")
        self.look()
        master, self.master = self.master, os.open(os.devnull, os.O_RDONLY)
        os.dup2(self.master, master)  # what is to be closed later stays so
        self.let("go")
        self.assertEqual(p.wait(rig.PATIENCE), 75)
        self.assertEqual((self.lines("done"), self.lines("left")), (["a"], ["b"]))


if __name__ == "__main__":
    main()
