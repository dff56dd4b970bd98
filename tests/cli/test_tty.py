"""Commands that want the terminal, and commands that somebody stops."""
import os
import re
import signal
import termios
import time

import rig
from rig import Case, main
from test_terminal import Terminal

ASK = "exec 3<>/dev/tty; printf 'password: ' >&3; read x <&3; echo got $0 $x"


class Prompt(Terminal):
    """The run is in the foreground: a command that asks is answered."""

    def line(self, text):
        """Waits until a line of the screen ends with that; nothing is echoed, not even the end of an answer."""
        def seen():
            open_ = self.look()
            there = any(line.endswith(text) for line in self.screen.lines)
            self.assertTrue(there or open_, f"{text!r} is not in {self.screen.lines}")
            return there
        self.until(seen, f"{text!r} on the screen")

    def foreground(self):
        return os.tcgetpgrp(self.master)

    def test_a_password(self):
        p = self.open("run", "--log", "log", "--", "sh", "-c", ASK)
        self.give(p, "a")
        p.stdin.close()
        self.see("password: $")
        self.press(b"secret\n")
        self.assertEqual(self.finish(p), 0)
        self.line("got a secret")

    def test_one_after_another(self):
        """However many ask at once; each has the terminal until it ends."""
        p = self.open("run", "-j3", "--no-progress", "--", "sh", "-c", ASK)
        self.give(p, "a", "b", "c")
        p.stdin.close()
        for i in range(3):
            self.until(lambda: self.look() and self.foreground() != p.pid, "a command in the foreground")
            self.press(b"secret%d\n" % i)
            self.until(lambda i=i: not self.look() or
                       any(line.endswith(f" secret{i}") for line in self.screen.lines), "its answer")
        self.assertEqual(self.finish(p), 0)
        got = [line for line in self.screen.lines if "got" in line]
        self.assertEqual(len(got), 3, self.screen.lines)

    def test_modes(self):
        """No echo: to set that from the background stops, too (SIGTTOU)."""
        p = self.open("run", "--", "sh", "-c", "exec 3<>/dev/tty; stty -echo <&3; printf 'password: ' >&3; read x <&3;"
                      "stty echo <&3; echo got $x")
        self.give(p, "a")
        p.stdin.close()
        self.see("^password: $")
        self.press(b"secret\n")
        self.assertEqual(self.finish(p), 0)
        self.assertIn("got secret", self.screen.lines[-2])

    def test_output_of_the_background(self):
        """With `stty tostop` to write is enough; the run itself goes on writing."""
        p = self.open("run", "-j1", "--", "sh", "-c", "echo $0 >/dev/tty; echo out $0")
        mode = termios.tcgetattr(self.master)
        mode[3] |= termios.TOSTOP
        termios.tcsetattr(self.master, termios.TCSANOW, mode)
        self.give(p, "a", "b")
        p.stdin.close()
        self.assertEqual(self.finish(p), 0)
        self.assertEqual([line for line in self.screen.lines if line], ["a", "out a", "b", "out b"])

    def test_the_terminal_comes_back(self):
        self.fifo("go")
        p = self.open("run", "-j1", "--", "sh", "-c", "[ $0 = b ] && { touch up; read x <go; exit; };" + ASK)
        self.give(p, "a", "b")
        self.see("password: $")
        self.until(lambda: self.foreground() != p.pid, "the command in the foreground")
        self.press(b"secret\n")
        self.until_file("up")
        self.assertEqual(self.foreground(), p.pid)
        self.see("1 running")
        self.press(b"\x03")
        self.line("wq: stopping: running commands finish; once more terminates them")
        self.let("go")
        p.stdin.close()
        self.assertEqual(self.finish(p), 0)

    def test_no_progress_over_a_question(self):
        p = self.open("run", "--", "sh", "-c", ASK)
        self.give(p, "a")
        self.see("password: $")
        self.until(lambda: self.foreground() != p.pid, "the command in the foreground")
        self.look()
        before = self.screen.bytes
        # Keys come and go, and more time passes than lies between two drawings.
        self.give(p, *["a"] * 1000)
        end = time.monotonic() + 0.3
        self.until(lambda: time.monotonic() > end)
        self.look()
        self.assertEqual(self.screen.bytes, before)
        self.press(b"x\n")
        p.stdin.close()
        self.line("got a x")
        self.until(lambda: self.foreground() != p.pid, "the command in the foreground")
        self.press(b"y\n")
        self.assertEqual(self.finish(p), 0)

    def control(self, key):
        """Pressed at the question: it ends the command, and the run as it would without one."""
        p = self.open("run", "-j1", "--leftover", "left", "--log", "log", "--", "sh", "-c",
                      "exec 3<>/dev/tty; stty -echo <&3; touch up; read x <&3")
        self.give(p, "a", "b")
        self.until_file("up")
        self.until(lambda: self.foreground() != p.pid, "the command in the foreground")
        self.press(key)
        self.assertEqual(self.finish(p), 75)
        self.assertEqual(self.lines("left"), ["a", "b"])
        self.assertIn('"outcome":"stopped"', self.lines("log")[0])

    def test_control_c(self):
        self.control(b"\x03")

    def test_control_backslash(self):
        self.control(b"\x1c")

    def test_modes_are_put_back(self):
        """A command that was killed with the echo off does not leave it so."""
        p = self.open("run", "-j1", "--retries=0", "--", "sh", "-c",
                      "exec 3<>/dev/tty; stty -icanon <&3; touch up; read x <&3")
        before = termios.tcgetattr(self.master)
        self.give(p, "a")
        self.until_file("up")
        self.until(lambda: self.foreground() != p.pid, "the command in the foreground")
        self.assertNotEqual(termios.tcgetattr(self.master), before)
        os.killpg(self.foreground(), signal.SIGKILL)
        self.until(lambda: self.foreground() == p.pid, "the run in the foreground")
        self.line("wq: a: was ended by signal 9 (Killed) in attempt 1, and is dead")
        self.assertEqual(termios.tcgetattr(self.master), before)
        p.stdin.close()
        self.assertEqual(self.finish(p), 123)

    def test_control_z(self):
        """Stops the run, too; fg continues both."""
        self.script("session", f"exec bash -c 'set -m; {rig.program} run --no-progress -- sh -c \"$1\" <keys;"
                    "echo suspended; read x; fg; echo $?' bash \"$1\"")
        (self.dir / "keys").write_text("a\n")
        program, rig.program = rig.program, str(self.dir / "session")
        try:
            p = self.open("echo $$ >pid; " + ASK, stdin=None)
        finally:
            rig.program = program
        self.see("password: $")
        self.until(lambda: self.lines("pid") == [str(self.foreground())], "the command in the foreground")
        self.press(b"\x1a")
        self.until(lambda: self.look() and "suspended" in self.screen.lines, "the stop")
        self.assertEqual(self.foreground(), p.pid)
        self.press(b"go\n")
        self.until(lambda: self.look() and self.foreground() != p.pid, "another in the foreground")
        self.press(b"secret\n")
        self.line("got a secret")
        self.finish(p)
        self.assertEqual(self.screen.lines[-2], "0")

    def test_keys_are_typed(self):
        """On the same terminal: they are not taken for the answer, nor it for one of them."""
        p = self.open("run", "-j1", "--", "sh", "-c", ASK, stdin=None)
        self.line("wq: reading keys from the terminal; Ctrl-D ends")
        self.press(b"a\n")
        self.see("password: $")
        self.until(lambda: self.foreground() != p.pid, "the command in the foreground")
        self.press(b"secret\n")
        self.line("got a secret")
        self.until(lambda: self.foreground() == p.pid, "the run in the foreground")
        self.press(b"\x04")
        self.assertEqual(self.finish(p), 0)


class Background(Terminal):
    def test_it_fails_and_that_is_said(self):
        self.script("session", f"exec bash -c 'set -m; {rig.program} run --retries=0 --log=log -- sh -c \"$1\" <keys &"
                    "wait $!; echo status $?' bash \"$1\"")
        (self.dir / "keys").write_text("a\nb\n")
        program, rig.program = rig.program, str(self.dir / "session")
        try:
            p = self.open("[ $0 = b ] || { trap 'exit 0' TERM; read x </dev/tty; }", stdin=None,
                          env={"TERM": "dumb"})
        finally:
            rig.program = program
        self.finish(p)
        text = "\n".join(self.screen.lines)
        self.assertIn("wq: a: the command wants the terminal, but wq is in the background: it is terminated\n"
                      "wq: a: could not have the terminal in attempt 1, and is dead\n", text)
        self.assertIn("status 123", text)

    def test_no_terminal(self):
        """The command cannot even open it, and says so itself."""
        p = self.wq("run", "--retries=0", "--", "sh", "-c", "read x </dev/tty", input="a\n", start_new_session=True)
        self.assertEqual(p.returncode, 123)
        self.assertRegex(p.stderr, b"/dev/tty")


class Stopped(Case):
    def test_it_is_said(self):
        p = self.start("run", "--", "sh", "-c", "echo $$ >pid; kill -STOP $$; echo went on")
        self.give(p, "a")
        said = p.stderr.readline().decode()
        pid, = re.fullmatch(r"wq: a: the command was stopped by signal 19 \(.*\); it goes on by kill -CONT -(\d+)\n",
                            said).groups()
        self.assertEqual(self.lines("pid"), [pid])
        os.killpg(int(pid), signal.SIGCONT)
        p.stdin.close()
        self.assertEqual((p.stdout.read(), p.stderr.read(), p.wait()), (b"went on\n", b"", 0))

    def test_several_keys(self):
        (self.dir / "keys").write_text("a\nb\nc\n")
        p = self.start("run", "-n3", "-a", "keys", "--", "sh", "-c", "kill -STOP $$; echo went on", "sh")
        said = p.stderr.readline().decode()
        self.assertRegex(said, r"^wq: a and 2 more: the command was stopped by signal 19 ")
        os.killpg(int(said.split("-CONT -")[1]), signal.SIGCONT)
        self.assertEqual((p.stdout.read(), p.stderr.read(), p.wait()), (b"went on\n", b"", 0))

    def test_once(self):
        p = self.start("run", "--", "sh", "-c", "kill -STOP $$; kill -TSTP $$; exit 0")
        self.give(p, "a")
        pid = int(p.stderr.readline().split(b"-CONT -")[1])
        p.stdin.close()

        def ended():
            try:
                os.killpg(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
            return p.poll() is not None

        self.until(ended, "its end")
        self.assertEqual((p.stderr.read(), p.returncode), (b"", 0))


if __name__ == "__main__":
    main()
