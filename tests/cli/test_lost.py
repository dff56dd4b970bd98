"""Nothing is lost: whatever fails, and whenever it is told to stop, each key is done, dead or left.

A round gives keys, many of them more than once, to commands that fail by chance, and asks the program
to stop after a random number of keys were done. Then what is left and what is dead is given again, until
all is done. The commands (worker.c) see to it that no key is worked on twice at once.
"""
import os
import random
import re
import signal
import sys
from pathlib import Path

import rig
from rig import Case, main

KEYS = 20000
rig.PATIENCE *= 120 if "--long" in sys.argv else 5  # one run is thousands of commands, or 100,000
WORKER = Path(os.environ["WQ_TEST_WORKER"])

# Each round has one of these; the first ones have their turn in every run.
WAYS = [
    (["--max-queue", "500"], "pipe"),  # much of it is not read when it stops
    (["--max-queue", "500"], "file"),
    ([], "pipe"),
    (["--debounce", "1ms"], "file"),
    (["--on-term", "drain"], "pipe"),
    (["-n", "7"], "file"),
    (["-k", "--max-queue", "500"], "pipe"),
    (["--retries", "0"], "file"),
    (["-k", "-n", "3", "--retries", "0"], "pipe"),
    (["--line-buffer"], "pipe"),
    (["--debounce", "1ms", "--max-queue", "500"], "pipe"),
]

SUMMARY = re.compile(
    r"wq: (\d+) given = (\d+) merged \+ (\d+) refused \+ (\d+) to do\n"
    r"wq: (\d+) to do = (\d+) done \+ (\d+) dead \+ (\d+) cancelled \+ (\d+) unfinished(?: \(and (\d+) not read\))?\n"
    r"wq: (\d+) attempts, (\d+) failed")
NAMES = ["given", "merged", "refused", "work", "to_do", "done", "dead", "cancelled", "left", "unread",
         "attempts", "failed"]


def summary(text):
    """The numbers of --summary."""
    return dict(zip(NAMES, (int(n or 0) for n in SUMMARY.search(text).groups())))


class Feed:
    """The input: a file, or a pipe that is written to as the program reads."""

    def __init__(self, keys, delimiter, folder, kind):
        self.keys = keys
        self.bytes = b"".join(k + delimiter for k in keys)
        self.ends = []  # where each key does
        at = 0
        for k in keys:
            at += len(k) + 1
            self.ends.append(at)
        self.at = 0
        self.out = None
        if kind == "file":
            path = folder / "keys"
            path.write_bytes(self.bytes)
            self.stdin = open(path, "rb")
            self.at = len(self.bytes)
        else:
            read, self.out = os.pipe()
            os.set_blocking(self.out, False)
            self.stdin = os.fdopen(read, "rb")

    def go_on(self, keep_open):
        if self.out is None:
            return
        try:
            self.at += os.write(self.out, self.bytes[self.at:self.at + 8192])
        except BlockingIOError:
            pass
        if self.at == len(self.bytes) and not keep_open:
            self.close()

    def close(self):
        if self.out is not None:
            os.close(self.out)
        self.out = None

    def given(self):
        """The keys of which the program has, or can read, the last byte."""
        return [k for k, end in zip(self.keys, self.ends) if end <= self.at]


class Lost(Case):
    def key(self, n, delimiter):
        """Keys as people have them; the number in front is for the worker."""
        tail = self.random.choice(["", " a b", "-'\"$x", "\\", "\t", " \u00fc"])
        return f"{n}{tail}".encode() + (b"\n" if delimiter == b"\0" and n % 5 == 0 else b"")

    def records(self, name, delimiter):
        path = self.dir / name
        return path.read_bytes().split(delimiter)[:-1] if path.exists() else []

    def done(self):
        """How many were done; cheap, to be asked often."""
        try:
            return os.stat(self.dir / "done").st_size
        except FileNotFoundError:
            return 0

    def feed(self, keys, kind, delimiter, options, stop_at, signals):
        """One run of the program, stopped when so many bytes are in the list of what is done."""
        for name in ("done", "dead", "left", "log", "errors"):
            (self.dir / name).unlink(missing_ok=True)
        feed = Feed(keys, delimiter, self.dir, kind)
        errors = self.dir / "errors"
        with open(errors, "wb") as stderr, feed.stdin, open(os.devnull, "wb") as null:
            p = self.start("run", "-j8", "--backoff", "1ms..4ms", "--dead", "dead", "--leftover", "left",
                           "--log", "log", "--summary", *(["-0"] if delimiter == b"\0" else []), *options,
                           "--", str(WORKER), str(self.dir), str(self.random.getrandbits(60)), "{}",
                           stdin=feed.stdin, stdout=null, stderr=stderr)
            feed.stdin.close()
            sent = 0

            def turn():
                nonlocal sent
                if sent == 0:
                    feed.go_on(keep_open=signals > 0)
                if sent == 0 and signals > 0 and self.done() >= stop_at:
                    p.send_signal(signal.SIGTERM)
                    sent = 1
                # Two signals that wait at once are one.
                elif sent == 1 and signals > 1 and b"once more" in errors.read_bytes():
                    p.send_signal(signal.SIGINT)
                    sent = 2
                return p.poll() is not None

            try:
                self.until(turn, "the end of the run")
            except BrokenPipeError:
                p.wait()
                self.fail(f"it ended before its input did: {errors.read_text()}")
            feed.close()
        return p.returncode, feed.given()

    def judge(self, code, given, delimiter):
        """Does everything add up? The keys that are to be given again."""
        text = (self.dir / "errors").read_text()
        s = summary(text)
        done = self.records("done", b"\0")
        dead = self.records("dead", delimiter)
        left = [key for key, _, _ in rig.leftover((self.dir / "left").read_bytes(), delimiter)]
        log = self.lines("log")

        self.assertFalse((self.dir / "twice").exists(), "a key was worked on twice at once")
        self.assertEqual(s["given"] + s["unread"], len(given), text)
        self.assertEqual(s["given"], s["merged"] + s["refused"] + s["work"], text)
        self.assertEqual(s["to_do"], s["done"] + s["dead"] + s["cancelled"] + s["left"], text)
        self.assertEqual(s["work"], s["to_do"], text)
        self.assertEqual((s["refused"], s["cancelled"]), (0, 0), text)
        self.assertEqual(len(done), s["done"], text)
        self.assertEqual(len(dead), s["dead"], text)
        self.assertEqual(len(left), s["left"] + s["unread"], text)
        self.assertEqual(len(log), s["attempts"], text)
        self.assertEqual(set(done) | set(dead) | set(left), set(given))
        self.assertEqual(code, 75 if left else 123 if dead else 0, text)
        return left + dead

    def round(self, n, options, kind):
        delimiter = self.random.choice([b"\n", b"\0"])
        signals = self.random.choice([1, 1, 2])
        distinct = [self.key(i, delimiter) for i in range(n * 3 // 4)]
        keys = distinct + self.random.choices(distinct, k=n - len(distinct))
        self.random.shuffle(keys)
        stop_at = self.random.randrange(len(b"".join(distinct)))
        print(f" {kind} {delimiter} {' '.join(options)}: {signals} signals at {stop_at}", flush=True)

        everything = set()
        code, given = self.feed(keys, kind, delimiter, options, stop_at, signals)
        again = self.judge(code, given, delimiter)
        everything |= set(self.records("done", b"\0"))
        for _ in range(100):
            if not again:
                break
            code, given_again = self.feed(again, "file", delimiter, [], 0, 0)
            again = self.judge(code, given_again, delimiter)
            everything |= set(self.records("done", b"\0"))
        self.assertFalse(again, "there is no end")
        self.assertEqual(everything, set(given))

    def test_rounds(self):
        for i in range(20 if rig.long else int(os.environ.get("WQ_TEST_ROUNDS", "7"))):
            self.random = random.Random(f"{rig.seed} round {i}")
            print(f"  round {i}:", end="", flush=True)
            options, kind = WAYS[i] if i < len(WAYS) else self.random.choice(WAYS)
            self.round(KEYS, options, kind)

    def test_very_many(self):
        if not rig.long:
            self.skipTest("only with --long")
        self.round(100000, [], "file")


if __name__ == "__main__":
    main()
