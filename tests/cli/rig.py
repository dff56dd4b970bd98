"""What the tests of the program share: the program, a folder, and ways to wait without sleeping.

    python3 NAME.py PROGRAM [--seed N] [--long] [TEST...]

A test waits for what it wants to see (a line, a file, an end), never for a time. PATIENCE is how long
that may take before it counts as a failure; it is never waited out by a test that passes.
"""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PATIENCE = 60.0 * float(os.environ.get("WQ_TIMEOUT_SCALE", "1"))

program = None
seed = None
long = False


def is_sanitized():
    return b"__asan_init" in Path(program).read_bytes()


def is_there(pid):
    """Does the process run? One that is dead, but not waited for, does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):  # it may go between opening and reading
        return False


def deaf():
    """For preexec_fn: SIGTERM is ignored, by the run and by its commands."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def leftover(data, end=b"\n"):
    """What a leftover file says, in its order: (key, due, failures)."""
    lines = data.split(end)
    assert lines.pop() == b"", "the last record has no end"
    if not lines or lines[0] != b"#wq-leftover-1":
        return [(line, 0, 0) for line in lines]
    records = [line.split(b"\t", 2) for line in lines[1:]]
    return [(key, float(due[1:]), int(failures)) for due, failures, key in records]


class Case(unittest.TestCase):
    """A test with a folder of its own, which is the current one of all it runs."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="wq-test-")
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)
        self.random = random.Random(f"{seed} {self.id()}")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("WQ_")}
        self.env["TMPDIR"] = folder.name
        # A sanitizer's own exit status would be 1, which is one of the program's.
        self.env["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":exitcode=99"
        # What hangs is told with the line where it hangs, and its processes are ended.
        if not long:
            signal.signal(signal.SIGALRM, self.hangs)
            signal.setitimer(signal.ITIMER_REAL, 2 * PATIENCE)
            self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)

    def hangs(self, *_):
        raise TimeoutError("the test hangs")

    def wq(self, *args, input="", env=None, **kwargs):
        """Runs the program to its end: a CompletedProcess with bytes."""
        if isinstance(input, str):
            input = input.encode()
        return subprocess.run([program, *args], input=input, capture_output=True, cwd=self.dir,
                              env=self.env | (env or {}), timeout=PATIENCE, **kwargs)

    def start(self, *args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
              env=None, **kwargs):
        """Starts the program; it is ended with the test."""
        p = subprocess.Popen([program, *args], stdin=stdin, stdout=stdout, stderr=stderr, cwd=self.dir,
                             env=self.env | (env or {}), **kwargs)
        self.addCleanup(self.end, p)
        return p

    def end(self, p):
        if p.poll() is None:
            # Once more and once more: its commands are killed, too. Signals that come at once are one.
            end = time.monotonic() + PATIENCE
            while p.poll() is None and time.monotonic() < end:
                p.send_signal(signal.SIGTERM)
                time.sleep(0.005)
            if p.poll() is None:
                p.kill()
                p.wait()
        for f in (p.stdin, p.stdout, p.stderr):
            if f:
                try:
                    f.close()
                except BrokenPipeError:
                    pass

    def give(self, p, *keys):
        """Writes keys, a line each, to a program that was started."""
        p.stdin.write(b"".join((k.encode() if isinstance(k, str) else k) + b"\n" for k in keys))
        p.stdin.flush()

    def until(self, condition, what="it"):
        """Looks until the condition is true; its value."""
        end = time.monotonic() + PATIENCE
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > end:
                self.fail(f"{what} did not happen")
            os.sched_yield()
            time.sleep(0.002)  # between two looks; no test relies on how long it is

    def until_file(self, name):
        return self.until(lambda: (self.dir / name).exists(), f"the file {name}")

    def fifo(self, name):
        """A pipe with a name, by which a command and a test meet: `read x <NAME` in the command."""
        os.mkfifo(self.dir / name)
        return str(self.dir / name)

    def let(self, name):
        """Lets the command go on that reads from that fifo, and no later one."""
        path = self.dir / name
        fd = os.open(path, os.O_WRONLY)
        # The next command waits at a new fifo. At this one it could find the end of what is written.
        os.mkfifo(f"{path}.next")
        os.rename(f"{path}.next", path)
        os.write(fd, b"go\n")
        os.close(fd)

    def script(self, name, text):
        """An executable shell script; its path."""
        path = self.dir / name
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return str(path)

    def shim(self, what):
        """The environment with which the program meets what tests/cli/shim.c says; skips without that."""
        path = os.environ.get("WQ_TEST_SHIM") or str(Path(program).parent.parent / "tests/cli/libtest_cli_shim.so")
        if not os.path.exists(path):
            self.skipTest(f"{path} is not built")
        return {"LD_PRELOAD": path, "WQ_SHIM": what,
                "ASAN_OPTIONS": self.env["ASAN_OPTIONS"] + ":verify_asan_link_order=0"}

    def tiny(self, size="64k"):
        """A disk that is soon full."""
        path = self.dir / "tiny"
        path.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path]
        if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            self.skipTest("a file system cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", path], check=True)
        return path

    def fill(self, folder):
        with open(folder / "fill", "wb", buffering=0) as f:
            try:
                while True:
                    f.write(b"x" * 512)
            except OSError:
                pass

    def left(self, name="left"):
        """The keys of a leftover file."""
        path = self.dir / name
        return [k.decode(errors="surrogateescape") for k, _, _ in leftover(path.read_bytes())] if path.exists() else []

    def log(self, name="log"):
        """The attempts so far. A long line may be seen before all of it is written: it is not there yet."""
        path = self.dir / name
        text = path.read_bytes() if path.exists() else b""
        return [json.loads(line) for line in text[:text.rfind(b"\n") + 1].splitlines()]

    def lines(self, name):
        path = self.dir / name
        return path.read_text(errors="surrogateescape").splitlines() if path.exists() else []


def reset_signals():
    """The program leaves ignored signals ignored, and the background of a script ignores SIGINT and SIGQUIT."""
    for number in signal.valid_signals():
        if signal.getsignal(number) == signal.SIG_IGN and number not in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def main():
    """Runs the tests of the file that calls it, and says how many passed."""
    global program, seed, long
    reset_signals()
    args = sys.argv[1:]
    program = os.path.abspath(args.pop(0))
    seed = int.from_bytes(os.urandom(4), "little")
    if "--long" in args:
        args.remove("--long")
        long = True
    if "--seed" in args:
        at = args.index("--seed")
        seed = int(args[at + 1])
        del args[at:at + 2]
    print(f"seed {seed}", flush=True)
    result = unittest.main(module="__main__", argv=[sys.argv[0], *args], exit=False, verbosity=2).result
    bad = len(result.failures) + len(result.errors)
    good = result.testsRun - bad - len(result.skipped)
    print(f"{good} passed, {bad} failed")
    if good == 0 and bad == 0:
        sys.exit(77)
    sys.exit(1 if bad else 0)
