"""The files that the program writes, on disks that are full, beside other runs, and in directories that
others write to: no key is lost in silence, none is torn, and nobody else's file is touched.

A limit on the size of files (RLIMIT_FSIZE) stands for a full disk: the kernel cuts a write short where
the file must not grow any more, and the limit of a running process can be raised, which is space again.
"""
import errno
import fcntl
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import termios

import rig
from rig import Case, main

UNLIMITED = resource.getrlimit(resource.RLIMIT_FSIZE)[1]  # as far as we are
NOBODY = 65534


def limit(size):
    """For preexec_fn: no file grows beyond that."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, UNLIMITED))


def become():
    """For preexec_fn: another user."""
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


class Full(Case):
    def stopped(self, keys, path="left", **kwargs):
        """A run that is stopped with all keys but the first left; what it said."""
        (self.dir / "keys").write_text("".join(f"{k}\n" for k in keys))
        p = self.wq("run", "-j1", "-q", "-a", "keys", "--leftover", str(path), "--", "sh", "-c", "kill $PPID",
                    **kwargs)
        self.assertEqual(p.returncode, 75, p.stderr[-500:])
        return self.warned(p.stderr.decode(), path)

    def warned(self, text, path):
        """Without the warning that there is too little space, if it was given."""
        return text.replace(f"wq: {path}: no space left for the keys that are there: if the run is stopped, those "
                            "that cannot be saved are printed\n", "", 1)

    def check_partly_saved(self, text, path, keys, why):
        head, *printed = text.splitlines()
        saved = self.left(path)
        self.assertEqual(head, f"wq: {path}: {why}: {len(saved)} of {len(keys)} keys saved, "
                               f"{len(keys) - len(saved)} printed below")
        self.assertGreater(len(saved), 10)
        self.assertEqual(saved + printed, keys)

    def test_what_is_left_and_does_not_fit(self):
        keys = [f"{i:0{10 + i % 90}}" for i in range(3000)]
        text = self.stopped(keys, preexec_fn=limit(9999))
        self.check_partly_saved(text, "left", keys[1:], "File too large")
        self.assertEqual(sorted(os.listdir(self.dir)), ["keys", "left"])

    def test_on_a_full_disk(self):
        path = self.tiny() / "left"
        keys = [f"{i:0{10 + i % 90}}" for i in range(3000)]
        self.check_partly_saved(self.stopped(keys, path), str(path), keys[1:], "no space left")
        self.assertEqual(os.listdir(path.parent), ["left"])

    def test_the_file_that_is_replaced_makes_room(self):
        path = self.tiny("96k") / "left"
        path.write_bytes(b"x" * (64 << 10))
        keys = [f"{i:010}" for i in range(6000)]
        self.assertEqual(self.stopped(keys, path), "")
        self.assertEqual(self.left(path), keys[1:])

    def test_last_line(self):
        p = self.wq("run", "-j1", "--leftover=left", "--", "sh", "-c", "kill $PPID",
                    input="".join(f"{i:0100}\n" for i in range(100)), preexec_fn=limit(5000))
        self.assertRegex(p.stderr.decode().splitlines()[-1],
                         r"wq: stopped with 99 keys unfinished: 49 in left, 50 printed above")

    def test_nothing_can_be_saved(self):
        """The directory is gone: what was written, but has no name, is printed."""
        (self.dir / "d").mkdir()
        keys = [f"{i:0100}" for i in range(2000)]
        (self.dir / "keys").write_text("\n".join(keys))
        p = self.wq("run", "-j1", "-q", "-a", "keys", "--leftover=d/left", "--", "sh", "-c",
                    "rm -r d; kill $PPID")
        self.assertEqual(p.returncode, 75)
        head, *printed = p.stderr.decode().splitlines()
        self.assertEqual(head, "wq: d/left: No such file or directory: 0 of 1999 keys saved, 1999 printed below")
        self.assertEqual(printed, keys[1:])

    def test_printed_with_its_delimiter(self):
        self.assertEqual(self.wq("run", "-0", "-j1", "-q", "--leftover=/dev/full", "--", "sh", "-c", "kill $PPID",
                                 input=b"a\0b\nc\0d\xff").stderr,
                         b"wq: /dev/full: no space left: 0 of 2 keys saved, 2 printed below\nb\nc\0d\xff\0")

    def test_the_head_is_no_key(self):
        """Not even the head of the file can be written: it is printed, but is not one of the keys."""
        p = self.wq("run", "-j1", "--leftover=/dev/full", "--backoff=1h", "--", "sh", "-c",
                    "kill $PPID; exit 1", input="a\nb\n")
        said = p.stderr.decode().splitlines()
        at = said.index("wq: /dev/full: no space left: 0 of 2 keys saved, 2 printed below")
        self.assertEqual((p.returncode, said[at + 1:at + 3]), (75, ["#wq-leftover-1", "@0\t0\tb"]))
        self.assertRegex(said[at + 3], r"^@\d+\.\d+\t1\ta$")

    def test_the_printed_rest_has_a_head(self):
        """What is printed can be given to a run as it is, also if the file has a head of its own."""
        keys = [f"{i:0100}" for i in range(100)]
        p = self.wq("run", "-j1", "-q", "--leftover=left", "--backoff=1h", "--", "sh", "-c", "kill $PPID; exit 1",
                    input="\n".join(keys), preexec_fn=limit(5000))
        _, *printed = p.stderr.decode().splitlines()
        saved = (self.dir / "left").read_text().splitlines()
        self.assertEqual((saved[0], printed[0]), ("#wq-leftover-1", "#wq-leftover-1"))
        self.assertEqual(sorted(line.split("\t")[2] for line in saved[1:] + printed[1:]), keys)

    def begin_holding(self, path, keys):
        self.fifo("go")
        p = self.start("run", "-j1", "-q", "--leftover", str(path), "--", "sh", "-c", ": >up; read x <go")
        self.give(p, *keys)
        self.until_file("up")
        return p

    def test_space_is_reserved(self):
        """What was accepted while there was space fits, though the disk is full by then."""
        path = self.tiny("2m") / "left"
        keys = [f"{i:0200}" for i in range(3000)]
        p = self.begin_holding(path, keys)
        self.until(lambda: os.stat(f"{path}.wq-part").st_blocks * 512 >= 3000 * 201, "the reservation")
        self.fill(path.parent)
        p.terminate()
        self.let("go")
        self.assertEqual((p.wait(rig.PATIENCE), p.stderr.read()), (75, b""))
        self.assertEqual(self.left(path), keys[1:])
        # And no more than that is kept.
        self.assertLess(path.stat().st_blocks * 512, 3000 * 201 + 65536)

    def test_no_space_to_reserve(self):
        path = self.tiny() / "left"
        keys = [f"{i:0200}" for i in range(1000)]
        p = self.begin_holding(path, keys)
        self.assertEqual(p.stderr.readline().decode(),
                         f"wq: {path}: no space left for the keys that are there: if the run is stopped, those "
                         "that cannot be saved are printed\n")
        p.terminate()
        self.let("go")
        text = p.communicate(timeout=rig.PATIENCE)[1].decode()
        self.assertEqual(p.returncode, 75)
        self.check_partly_saved(text, str(path), keys[1:], "no space left")

    def test_a_stalled_pipe(self):
        """It takes what it has room for; the rest is printed after --grace."""
        self.fifo("pipe")
        reader = os.open(self.dir / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        keys = [f"{i:0100}" for i in range(3000)]
        (self.dir / "keys").write_text("\n".join(keys))
        # What it prints has no more time than that: a file takes it at once.
        with open(self.dir / "err", "wb") as err:
            p = self.start("run", "-j1", "-q", "-a", "keys", "--grace=20ms", "--leftover=pipe", "--", "sh", "-c",
                           "kill $PPID", stderr=err)
        self.assertEqual(p.wait(rig.PATIENCE), 75)
        head, *printed = self.lines("err")
        read = os.read(reader, 1 << 20).decode().splitlines()
        self.assertRegex(head, r"wq: pipe: it is full, and not read fast enough: \d+ of 2999 keys saved")
        saved = int(re.search(r"(\d+) of", head)[1])
        self.assertEqual(read[:saved] + printed, keys[1:])


    def test_a_slow_reader(self):
        """A pipe that is full is waited for, for as long as --grace."""
        self.fifo("pipe")
        reader = os.open(self.dir / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        keys = [f"{i:0100}" for i in range(3000)]
        (self.dir / "keys").write_text("\n".join(keys))
        p = self.start("run", "-j1", "-q", "-a", "keys", "--grace=1h", "--leftover=pipe", "--", "sh", "-c", "kill $PPID")
        self.until(lambda: fcntl.ioctl(reader, termios.FIONREAD, b"0000") == (65536).to_bytes(4, sys.byteorder), "a full pipe")
        os.set_blocking(reader, True)
        text = b""
        while piece := os.read(reader, 10000):
            text += piece
        self.assertEqual((p.wait(rig.PATIENCE), p.stderr.read()), (75, b""))
        self.assertEqual([k.decode() for k, _, _ in rig.leftover(text)], keys[1:])


class Appended(Case):
    """--dead and --log."""

    def run_dying(self, size, *args, **kwargs):
        """A run whose keys die, beside files that may not grow beyond that."""
        return self.start("run", "-j1", "-q", *args, "--", "sh", "-c", "exit 100", preexec_fn=limit(size), **kwargs)

    def relieve(self, p):
        resource.prlimit(p.pid, resource.RLIMIT_FSIZE, (UNLIMITED, UNLIMITED))

    def read(self, name):
        return (self.dir / name).read_bytes()

    def whole(self, name):
        """Not while the program writes: it may cut something off again."""
        with open(self.dir / name, "rb") as f:
            fcntl.flock(f, fcntl.LOCK_SH)
            return f.read()

    def test_dead_keys_come_when_there_is_space(self):
        keys = [f"{i:099}" for i in range(10)]
        (self.dir / "dead").write_bytes(b"old\n")
        p = self.run_dying(350, "--dead=dead")
        self.give(p, *keys[:8])
        self.assertEqual(p.stderr.readline(),
                         b"wq: dead: File too large; dead keys are kept in memory until it can be written\n")
        # Three fit, and nothing of the fourth is there.
        self.assertEqual(self.whole("dead"), b"old\n" + "".join(f"{k}\n" for k in keys[:3]).encode())
        self.relieve(p)
        self.until(lambda: self.read("dead").count(b"\n") == 9, "the keys that waited")
        self.assertEqual(p.stderr.readline(), b"wq: dead is written again; 0 dead keys are missing\n")
        self.give(p, *keys[8:])
        p.stdin.close()
        self.assertEqual((p.wait(rig.PATIENCE), p.stderr.read()), (123, b""))
        self.assertEqual(self.read("dead"), b"old\n" + "".join(f"{k}\n" for k in keys).encode())

    def test_dead_keys_that_never_fit(self):
        keys = [f"{i:099}" for i in range(10)]
        p = self.wq("run", "-j1", "-q", "--dead=dead", "--", "sh", "-c", "exit 100", input="\n".join(keys),
                    preexec_fn=limit(350))
        self.assertEqual(p.returncode, 123)
        self.assertEqual(p.stderr.decode().splitlines()[1:],
                         ["wq: dead: File too large: 3 of 10 dead keys saved, 7 printed below", *keys[3:]])
        self.assertEqual(self.lines("dead"), keys[:3])

    def test_dead_keys_on_a_full_disk(self):
        folder = self.tiny()
        keys = [f"{i:0199}" for i in range(100)]
        p = self.start("run", "-j1", "-q", "--dead", str(folder / "dead"), "--", "sh", "-c", "exit 100")
        self.give(p, *keys[:1])
        self.until(lambda: self.lines("tiny/dead") == keys[:1])
        self.fill(folder)
        self.give(p, *keys[1:])
        self.assertIn(b"no space left; dead keys are kept in memory", p.stderr.readline())
        (folder / "fill").unlink()
        self.until(lambda: self.lines("tiny/dead") == keys, "all keys, whole and in their order")
        p.stdin.close()
        self.assertEqual(p.wait(rig.PATIENCE), 123)

    def test_too_many_to_be_kept(self):
        """Beyond a megabyte keys are printed at once, each in full."""
        keys = [f"{i:060000}" for i in range(25)]
        p = self.wq("run", "-j1", "-q", "--dead=dead", "--", "sh", "-c", "exit 100", input="\n".join(keys),
                    preexec_fn=limit(100))
        self.assertEqual(p.returncode, 123)
        text = p.stderr.decode().splitlines()
        self.assertEqual(text.count("wq: dead: File too large: this key could not be saved, and is printed below"),
                         25 - (1 << 20) // 60001)
        self.assertEqual(sorted(line for line in text if line.isdigit()), keys)
        self.assertEqual(self.read("dead"), b"")

    def test_a_key_that_was_printed_and_is_done_at_last(self):
        """No key is dead in the end; that one could not be saved is trouble all the same."""
        keys = [f"{i:060000}" for i in range(1 + (1 << 20) // 60001)]
        p = self.start("run", "-j1", "-q", "--socket=./s", "-a-", "--dead=dead", "--", "sh", "-c", "[ -e ok ] || exit 100",
                       preexec_fn=limit(100))
        self.give(p, *keys)
        self.until(lambda: p.stderr.readline().endswith(b"this key could not be saved, and is printed below\n"))
        self.relieve(p)
        (self.dir / "ok").touch()
        for key in keys:
            self.assertEqual(self.wq("retry", "-s./s", key).returncode, 0)
        self.assertEqual(self.wq("drain", "-s./s").returncode, 0)
        p.stderr.read()
        self.assertEqual(p.wait(rig.PATIENCE), 1)
        self.assertEqual(self.lines("dead"), keys[:-1])

    def test_the_log_goes_on(self):
        p = self.run_dying(2000, "--log=log")
        self.give(p, *(str(i) for i in range(40)))
        self.assertEqual(p.stderr.readline(),
                         b"wq: log: File too large; lines are kept in memory until it can be written\n")
        log = self.whole("log")
        for line in log.decode().split("\n")[:-1]:
            json.loads(line)
        self.assertTrue(log.endswith(b"}\n"))
        self.relieve(p)
        self.until(lambda: len(self.lines("log")) == 40, "the lines that waited")
        p.stdin.close()
        self.assertEqual(p.wait(rig.PATIENCE), 123)
        self.assertEqual([json.loads(line)["key"] for line in self.lines("log")], [str(i) for i in range(40)])

    def test_a_last_line_without_an_end(self):
        for name, args in (("dead", ["--dead=dead"]), ("log", ["--log=log"])):
            (self.dir / name).write_bytes(b"half")
            self.assertEqual(self.wq("run", *args, "--", "sh", "-c", "exit 100", input="a\n").returncode, 123)
            self.assertTrue(self.read(name).startswith(b"half\n"), self.read(name))
            self.assertEqual(self.read(name).count(b"\n"), 2)

    def test_a_file_that_only_grows(self):
        """It cannot be cut: the rest of the key is written when there is space."""
        folder = self.tiny("1m")
        (folder / "dead").write_bytes(b"old\n")
        if (not shutil.which("chattr") or
                subprocess.run(["chattr", "+a", folder / "dead"], capture_output=True, check=False).returncode != 0):
            self.skipTest("this file system has no files that only grow")
        self.addCleanup(subprocess.run, ["chattr", "-a", folder / "dead"], check=False)
        keys = [f"{i:099}" for i in range(10)]
        p = self.run_dying(350, "--dead", str(folder / "dead"))
        self.give(p, *keys)
        self.assertIn(b"kept in memory", p.stderr.readline())
        self.relieve(p)
        self.until(lambda: self.lines("tiny/dead") == ["old", *keys], "all keys, whole")

    def test_two_runs_and_one_file(self):
        """What one of them cuts off is never the other's."""
        keys = [[f"{run}{i:0{20 + i % 50}}" for i in range(200)] for run in "ab"]
        runs = [self.run_dying(5000, "--dead=dead") for _ in keys]
        for p, mine in zip(runs, keys):
            self.give(p, *mine)
        for p in runs:
            self.assertIn(b"kept in memory", p.stderr.readline())
        for p in runs:
            self.relieve(p)
        for p in runs:
            p.stdin.close()
            self.assertEqual(p.wait(rig.PATIENCE), 123)
        self.assertEqual(sorted(self.lines("dead")), sorted(keys[0] + keys[1]))

    def test_nobody_writes_behind_a_torn_key(self):
        """Until it is removed the file is locked."""
        gate = self.fifo("gate")
        p = self.start("run", "-j1", "-q", "--dead=dead", "--", "sh", "-c", "exit 100",
                       env=self.shim(f"torn:{errno.ENOSPC}:{gate}"))
        self.give(p, "mine")
        with open(self.dir / "dead", "ab") as other:
            def locked():
                try:
                    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return True
                except BlockingIOError:
                    return False

            with open(gate, "wb"):
                self.assertEqual(self.read("dead"), b"mi")
                self.assertFalse(locked())
            self.until(locked, "the end of the lock")
            self.assertIn(self.read("dead"), (b"", b"mine\n"))
            other.write(b"other\n")
        p.stdin.close()
        self.assertIn(b"no space left; dead keys are kept in memory", p.stderr.readline())
        self.assertEqual(p.wait(rig.PATIENCE), 123)
        self.assertEqual(sorted(self.lines("dead")), ["mine", "other"])

    def test_what_others_wrote_behind_a_torn_key(self):
        """They know of no lock: it is not removed with it, and the key is written once more."""
        gate = self.fifo("gate")
        p = self.start("run", "-j1", "-q", "--dead=dead", "--", "sh", "-c", "exit 100",
                       env=self.shim(f"torn:{errno.ENOSPC}:{gate}"))
        self.give(p, "mine")
        p.stdin.close()
        with open(gate, "wb"), open(self.dir / "dead", "ab") as other:
            other.write(b"\nother\n")
        self.assertEqual(p.wait(rig.PATIENCE), 123)
        self.assertEqual(self.read("dead"), b"mi\nother\nmine\n")

    def test_a_lock_that_is_held_for_long(self):
        """A key is not kept waiting by it."""
        with open(self.dir / "dead", "wb") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            p = self.wq("run", "--dead=dead", "--", "sh", "-c", "exit 100", input="a\n")
        self.assertEqual((p.returncode, self.read("dead")), (123, b"a\n"))

    def test_a_file_that_is_deleted(self):
        for name in ("dead", "log"):
            p = self.start("run", "-j1", "-q", f"--{name}={name}", "--", "sh", "-c", "exit 100")
            self.give(p, "a")
            self.until(lambda: self.lines(name), "the first line")
            (self.dir / name).unlink()
            self.give(p, "b")
            self.until(lambda: self.lines(name), "the file, made anew")
            p.stdin.close()
            self.assertEqual((p.wait(rig.PATIENCE), p.stderr.read()), (123, b""))
            self.assertIn("b", self.lines(name)[0])

    def test_a_directory_that_is_deleted(self):
        (self.dir / "d").mkdir()
        p = self.wq("run", "-j1", "-q", "--dead=d/dead", "--log=d/log", "--", "sh", "-c", "rm -rf d; exit 100",
                    input="a\nb\n")
        self.assertEqual(p.returncode, 123)
        self.assertIn("wq: d/dead: No such file or directory: 0 of 2 dead keys saved, 2 printed below\na\nb\n",
                      p.stderr.decode())
        self.assertIn("wq: d/log: No such file or directory: 2 of 2 lines are missing\n", p.stderr.decode())

    def test_a_reader_that_comes_again(self):
        self.fifo("pipe")
        with open(os.open(self.dir / "pipe", os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
            p = self.start("run", "-j1", "-q", "--dead=pipe", "--", "sh", "-c", "exit 100")
            self.give(p, "a")
            self.until(lambda: reader.read() == b"a\n", "the first key")
        self.give(p, "b", "c")
        self.assertIn(b"wq: pipe: Broken pipe; dead keys are kept in memory", p.stderr.readline())
        with open(self.dir / "pipe", "rb") as reader:
            self.assertEqual(reader.readline() + reader.readline(), b"b\nc\n")
            p.stdin.close()
            self.assertEqual(p.wait(rig.PATIENCE), 123)

    def test_dead_keys_for_a_slow_reader(self):
        """None is lost, however far it is behind."""
        self.fifo("pipe")
        reader = os.open(self.dir / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        keys = [f"{i:060000}" for i in range(10)]
        p = self.start("run", "-j1", "-q", "--dead=pipe", "--log=log", "--", "sh", "-c", "exit 100")
        self.give(p, *keys)
        p.stdin.close()
        self.until(lambda: len(self.lines("log")) == 10, "the last death")
        os.set_blocking(reader, True)
        with open(reader, encoding="ascii", closefd=False) as f:
            self.assertEqual(f.read().splitlines(), keys)
        self.assertEqual((p.wait(rig.PATIENCE), p.stderr.read()), (123, b""))

    def test_pipes_without_a_reader(self):
        self.fifo("pipe")
        for option in ("dead", "log", "leftover", "metrics-file"):
            p = self.wq("run", f"--{option}=pipe", "--", "touch", "x", input="a\n")
            self.assertEqual((p.returncode, p.stderr), (1, b"wq: pipe: the pipe has no reader\n"), option)
        self.assertEqual(os.listdir(self.dir), ["pipe"])

    def test_results_are_files_that_wait(self):
        """A command that writes to a pipe there must not meet EAGAIN."""
        p = self.wq("run", "--results=res", "--", "sh", "-c", "cat /proc/self/fdinfo/1 /proc/self/fdinfo/2", input="a\n")
        self.assertEqual(p.returncode, 0, p.stderr)
        flags = [int(line.split()[1], 8) for line in self.lines("res/a/stdout") if line.startswith("flags:")]
        self.assertEqual([f & os.O_NONBLOCK for f in flags], [0, 0])

    def test_results_into_a_pipe_without_a_reader(self):
        (self.dir / "res" / "a").mkdir(parents=True)
        self.fifo("res/a/stdout")
        p = self.wq("run", "--results=res", "--retries=0", "--", "touch", "x", input="a\n")
        self.assertEqual((p.returncode, p.stderr),
                         (123, b"wq: a: its results cannot be kept: No such device or address\n"))


class Parts(Case):
    """FILE.wq-part, in which a file is written before it is put in its place."""

    def held(self, *args):
        p = self.start("run", "-j1", "-q", *args, "--", "sh", "-c", ": >up; exec sleep 1000")
        self.give(p, "a", "b")
        self.until_file("up")
        return p

    def test_what_a_killed_run_left_behind(self):
        (self.dir / "left").write_text("before\n")
        p = self.held("--leftover=left", "--metrics-file=metrics")
        p.kill()
        p.wait()
        # Whatever is in it.
        (self.dir / "left.wq-part").write_bytes(b"half of a k")
        self.assertEqual(self.lines("left"), ["before"])
        p = self.wq("run", "-j1", "--leftover=left", "--metrics-file=metrics", "--", "sh", "-c", "kill $PPID",
                    input="a\nb\n")
        self.assertEqual(p.returncode, 75)
        self.assertEqual(self.left(), ["b"])
        self.assertEqual([n for n in os.listdir(self.dir) if "part" in n], [])

    def test_two_runs(self):
        """The second one would write over what the first one has left."""
        p = self.held("--leftover=left", "--metrics-file=metrics")
        for name in ("left", "link"):
            if name == "link":
                os.symlink("left", self.dir / "link")
            q = self.wq("run", f"--leftover={name}", "--", "touch", "x", input="c\n")
            self.assertEqual((q.returncode, q.stderr.decode()), (1, f"wq: {name}: another run writes this file\n"))
        self.assertFalse((self.dir / "x").exists())
        # Metrics are of whoever ends last.
        self.assertEqual(self.wq("run", "--metrics-file=metrics", "--", "true", input="c\n").returncode, 0)
        p.terminate()
        self.until(lambda: p.poll() is not None or p.send_signal(signal.SIGTERM), "the end")
        self.assertEqual(p.returncode, 75)
        self.assertEqual(sorted(self.left()), ["a", "b"])
        self.assertEqual(self.wq("run", "--leftover=left", "--", "true", input="c\n").returncode, 0)

    def test_two_names_of_one_file_do_not_wait_for_each_other(self):
        q = self.wq("run", "--leftover=left", "--metrics-file=./left", "--", "true", input="a\n")
        self.assertEqual((q.returncode, q.stderr.decode()), (1, "wq: ./left: another run writes this file\n"))

    def test_nobody_elses(self):
        """It is one file, ours, or it is left alone."""
        part = self.dir / "left.wq-part"
        (self.dir / "victim").write_text("precious\n")
        for plant, why in ((lambda: os.symlink("victim", part), os.strerror(errno.ELOOP)),
                           (lambda: os.link(self.dir / "victim", part),
                            "refused: a link or a file of another user is in its place"),
                           (lambda: os.mkfifo(part), "refused: a link or a file of another user is in its place"),
                           (part.mkdir, os.strerror(errno.EISDIR))):
            plant()
            p = self.wq("run", "--leftover=left", "--", "touch", "x", input="a\n")
            self.assertEqual((p.returncode, p.stderr.decode()), (1, f"wq: left: {why}\n"))
            self.assertEqual(self.lines("victim"), ["precious"])
            if part.is_dir() and not part.is_symlink():
                part.rmdir()
            else:
                part.unlink()

    def test_one_that_goes_meanwhile(self):
        p = self.wq("run", "-j1", "-q", "--leftover=left", "--", "sh", "-c",
                    "rm left.wq-part; echo other >left.wq-part; kill $PPID", input="a\nb\nc\n")
        self.assertEqual((p.returncode, p.stderr.decode().splitlines()),
                         (75, ["wq: left: No such file or directory: 0 of 2 keys saved, 2 printed below", "b", "c"]))
        self.assertEqual(self.lines("left.wq-part"), ["other"])

    def test_slashes_and_links(self):
        (self.dir / "d").mkdir()
        os.symlink("d", self.dir / "l")
        os.symlink("../l/../d/real", self.dir / "d" / "link")
        os.symlink("loop", self.dir / "loop")
        p = self.wq("run", "-j1", "--leftover=l//link", "--", "sh", "-c", "kill $PPID", input="a\nb\n")
        self.assertEqual((p.returncode, self.left("d/real")), (75, ["b"]))
        self.assertTrue((self.dir / "d" / "link").is_symlink())
        for path, why in (("left/", errno.EISDIR), ("loop", errno.ELOOP), ("d/real/x", errno.ENOTDIR),
                          ("no/x", errno.ENOENT), ("d", errno.EISDIR), ("x" * 256, errno.ENAMETOOLONG)):
            for option in ("leftover", "dead", "log", "metrics-file"):
                p = self.wq("run", f"--{option}={path}", "--", "true", input="a\n")
                self.assertEqual((p.returncode, p.stderr.decode()), (1, f"wq: {path}: {os.strerror(why)}\n"), option)

    def test_standard_output(self):
        p = self.wq("run", "-j1", "-q", "--leftover=/dev/stdout", "--dead=/dev/fd/1", "--", "sh", "-c",
                    "[ $1 = a ] && exit 100; kill $PPID", "sh", input="a\nb\nc\n")
        self.assertEqual((p.returncode, p.stdout), (75, b"a\nc\n"))
        with open(self.dir / "out", "wb") as out:
            out.write(b"before\n")
            out.flush()
            subprocess.run([rig.program, "run", "-j1", "-q", "--leftover=/dev/stdout", "--", "sh", "-c", "kill $PPID"],
                           input=b"a\nb\n", stdout=out, cwd=self.dir, timeout=rig.PATIENCE, check=False)
        self.assertEqual(self.lines("out"), ["before", "b"])


class Others(Case):
    """A directory that everyone may write to, with what another user has put there."""

    OPTIONS = ("leftover", "metrics-file", "dead", "log")
    REFUSED = "refused: a link or a file of another user is in its place"

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("needs root, to have files of another user")
        self.shared = self.dir / "shared"
        self.shared.mkdir()
        self.shared.chmod(0o1777)
        self.victim = self.dir / "victim"
        self.victim.write_text("precious\n")

    def plant(self, path, target, user=NOBODY):
        """A link that belongs to another user."""
        os.symlink(target, path)
        os.lchown(path, user, user)

    def try_all(self, path, options=OPTIONS):
        for option in options:
            yield option, self.wq("run", "-j1", f"--{option}={path}", "--", "sh", "-c", "echo; exit 100", input="a\n")

    def check_refused(self, path, options=OPTIONS):
        for option, p in self.try_all(path, options):
            self.assertEqual((p.returncode, p.stderr.decode()), (1, f"wq: {path}: {self.REFUSED}\n"), option)
        self.assertEqual(self.victim.read_text(), "precious\n")

    def test_links(self):
        self.plant(self.shared / "link", self.victim)
        self.check_refused("shared/link")
        # By way of a link of our own, and to what is not there.
        os.symlink("shared/link", self.dir / "own")
        self.check_refused("own")
        self.plant(self.shared / "nowhere", self.dir / "new")
        self.check_refused("shared/nowhere")
        self.assertFalse((self.dir / "new").exists())

    def test_links_to_directories(self):
        (self.dir / "home").mkdir()
        self.plant(self.shared / "link", self.dir / "home")
        self.check_refused("shared/link", ["results"])
        self.check_refused("shared/link/sub", ["results"])
        self.check_refused("shared/link/file")
        self.assertEqual(os.listdir(self.dir / "home"), [])

    def test_files(self):
        """One that another user can write to would be the next run's input."""
        path = self.shared / "file"
        path.write_text("theirs\n")
        os.chown(path, NOBODY, NOBODY)
        path.chmod(0o666)
        self.check_refused("shared/file")
        self.assertEqual(path.read_text(), "theirs\n")
        (self.shared / "dir").mkdir()
        os.chown(self.shared / "dir", NOBODY, NOBODY)
        self.check_refused("shared/dir", ["results"])

    def test_the_part(self):
        self.plant(self.shared / "left.wq-part", self.victim)
        p = self.wq("run", "--leftover=shared/left", "--", "true", input="a\n")
        self.assertEqual(p.returncode, 1)
        (self.shared / "left.wq-part").unlink()
        (self.shared / "left.wq-part").write_text("")
        os.chown(self.shared / "left.wq-part", NOBODY, NOBODY)
        self.check_refused("shared/left", ["leftover", "metrics-file"])

    def test_results_of_a_key(self):
        self.plant(self.shared / "a", self.dir)
        p = self.wq("run", "--results=shared", "--retries=0", "--", "echo", input="a\n")
        self.assertEqual((p.returncode, p.stderr), (123, b"wq: a: its results cannot be kept: Permission denied\n"))
        self.assertFalse((self.dir / "stdout").exists())
        (self.shared / "b").mkdir()
        (self.shared / "b").chmod(0o1777)
        self.plant(self.shared / "b" / "stdout", self.victim)
        p = self.wq("run", "--results=shared", "--retries=0", "--", "echo", input="b\n")
        self.assertEqual(p.returncode, 123)
        self.assertEqual(self.victim.read_text(), "precious\n")

    def test_planted_meanwhile(self):
        """It is replaced, not followed; and who may write to it stays as it was."""
        self.env["VICTIM"] = str(self.victim)
        for plant in ('ln -s "$VICTIM" shared/left; chown -h nobody shared/left',
                      'echo theirs >shared/left; chmod 666 shared/left; chown nobody shared/left'):
            p = self.wq("run", "-j1", "--leftover=shared/left", "--", "sh", "-c", plant + "; kill $PPID", input="a\nb\n")
            self.assertEqual(p.returncode, 75, p.stderr)
            self.assertEqual(self.victim.read_text(), "precious\n")
            self.assertFalse((self.shared / "left").is_symlink())
            self.assertEqual(self.left("shared/left"), ["b"])
            self.assertEqual((self.shared / "left").stat().st_mode & 0o022, 0)
            self.assertEqual((self.shared / "left").stat().st_uid, 0)
            (self.shared / "left").unlink()

    def test_a_link_swapped_all_the_time(self):
        """Whenever it is looked at: what it leads to is never written to."""
        self.dir.chmod(0o755)
        (self.dir / "home").mkdir()
        swap = subprocess.Popen(["sh", "-c", "while [ -e victim ]; do ln -s ../victim shared/x; rm -f shared/x; "
                                             "ln -s ../home shared/x; rm -f shared/x; true >shared/x; rm -f shared/x; "
                                             "done"], cwd=self.dir, stderr=subprocess.DEVNULL, preexec_fn=become)
        self.addCleanup(swap.wait)
        self.addCleanup(swap.kill)
        for _ in range(100 if rig.long else 20):
            for option, _ in self.try_all("shared/x", self.OPTIONS + ("results",)):
                self.assertEqual((self.victim.read_text(), os.listdir(self.dir / "home")), ("precious\n", []), option)
                # Another user cannot remove what is ours.
                subprocess.run(["rm", "-rf", self.shared / "x"], check=False)

    def test_a_link_between_two_looks(self):
        """It was planted after its place was found to be free. Some kernels do not follow one of another user."""
        for option in ("dead", "log"):
            os.symlink(self.victim, self.shared / "link")
            p = self.wq("run", f"--{option}=shared/file", "--", "sh", "-c", "exit 100", input="a\n",
                        env=self.shim(f"plant:0:{self.shared}/link"))
            self.assertTrue((self.shared / "file").is_symlink())
            self.assertEqual((p.returncode, p.stderr), (1, b"wq: shared/file: Too many levels of symbolic links\n"))
            self.assertEqual(self.victim.read_text(), "precious\n")
            (self.shared / "file").unlink()

    def test_own_links_work(self):
        for user, owner in ((0, 0), (0, NOBODY), (NOBODY, NOBODY)):
            os.chown(self.shared, owner, owner)
            (self.dir / "real").write_text("")
            self.plant(self.shared / "link", self.dir / "real", user)
            for option, p in self.try_all("shared/link"):
                self.assertEqual(p.returncode, 123, (option, user, owner, p.stderr))
                self.assertTrue((self.shared / "link").is_symlink())
            self.assertEqual(self.lines("real")[-1][:7], '{"time"')
            (self.shared / "link").unlink()
            (self.dir / "res").mkdir(exist_ok=True)
            self.plant(self.shared / "link", self.dir / "res", user)
            for option, p in self.try_all("shared/link", ["results"]):
                self.assertEqual(p.returncode, 123, (option, user, owner, p.stderr))
            self.assertTrue((self.dir / "res" / "a" / "stdout").exists())
            (self.shared / "link").unlink()

    def test_other_directories(self):
        """As ever: where not everyone can write, or no stickiness promises anything."""
        for mode in (0o755, 0o777, 0o1775):
            self.shared.chmod(mode)
            (self.dir / "real").write_text("")
            self.plant(self.shared / "link", self.dir / "real")
            for option, p in self.try_all("shared/link"):
                self.assertEqual(p.returncode, 123, (option, mode, p.stderr))
            (self.shared / "link").unlink()

    def test_as_another_user(self):
        """Not only root: a user refuses the links of another, and follows its own."""
        if subprocess.run([rig.program, "--version"], capture_output=True, preexec_fn=become, check=False,
                          cwd="/").returncode != 0:
            self.skipTest("another user cannot execute the program here")
        self.dir.chmod(0o755)
        home = self.dir / "home"
        home.mkdir()
        os.chown(home, NOBODY, NOBODY)
        for user, status in ((NOBODY, 123), (NOBODY - 1, 1), (0, 123)):
            self.plant(self.shared / "link", home / "file", user)
            for option in self.OPTIONS:
                p = self.wq("run", f"--{option}=shared/link", "--", "sh", "-c", "exit 100", input="a\n",
                            preexec_fn=become)
                self.assertEqual(p.returncode, status, (user, option, p.stderr))
            (self.shared / "link").unlink()


if __name__ == "__main__":
    main()
