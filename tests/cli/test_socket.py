"""The socket of a run: keys by it, who may use it, and what it stands."""
import errno
import json
import os
import resource
import select
import signal
import socket
import stat
import subprocess
import unittest

import rig
from rig import main
from served import Served, frame

KEY_MAX = 65536


class Keys(Served):
    """Lines that are written to the socket."""

    def test_each_line_is_a_key(self):
        self.serve("--log", "log")
        self.send(b"a\nb c\n\n'\xff\n")
        self.send(b"last without an end")
        self.until_status(done=4)
        logged = [json.loads(line)["key"] for line in self.lines("log")]
        self.assertEqual(sorted(logged), sorted(["a", "b c", "'\ufffd", "last without an end"]))

    def test_byte_by_byte(self):
        self.serve("-j1", "--log", "log")
        with self.connect() as s:
            for c in b"one\ntwo\n":
                s.send(bytes([c]))
            self.until_status(done=2)
        self.assertEqual([json.loads(line)["key"] for line in self.lines("log")], ["one", "two"])

    def test_null(self):
        self.serve("-0", "--log", "log")
        self.send(b"a\nb\0c\0")
        self.until_status(done=2)
        self.assertEqual(sorted(json.loads(line)["key"] for line in self.lines("log")), ["a\nb", "c"])

    def test_longest(self):
        self.serve("--dry-run")
        self.send(b"x" * KEY_MAX + b"\n" + b"y" * KEY_MAX)
        self.until_status(done=2)

    def refused(self, data, message, quiet=False):
        self.serve("--summary", *(["--quiet"] if quiet else []))
        s = self.connect()
        try:
            s.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = self.rest(s).decode()
        self.assertRegex(answer, r"\Awq: .*" + message)
        self.assertEqual(answer.count("\n"), 1)
        self.send(b"good\n")
        self.until_status(done=1)
        self.assertEqual(self.status()["refused"], 1)
        self.ask("drain")
        self.assertEqual(self.ended(), 1)
        self.assertEqual("socket: a key" in self.said(), not quiet)

    def test_too_long(self):
        self.refused(b"x" * (KEY_MAX + 1) + b"\n", "longer than 65536")

    def test_endless(self):
        self.refused(b"x" * (8 << 20), "longer than 65536")

    def test_nul(self):
        self.refused(b"a\0b\n", "NUL")

    def test_nul_quiet(self):
        self.refused(b"a\0b\n", "NUL", quiet=True)

    def test_full(self):
        """While the queue is full nothing is read, orders are served, and nothing is lost."""
        self.serve("--max-queue", "5", "-j1")
        self.ask("pause")
        s = self.connect()
        s.setblocking(False)
        sent = 0
        data = b"".join(b"%07d\n" % i for i in range(200000))
        try:
            while sent < len(data):
                sent += s.send(data[sent:])
        except BlockingIOError:
            pass
        self.assertLess(sent, len(data))
        others = [self.connect() for _ in range(10)]
        for i, o in enumerate(others):
            o.sendall(b"other%d\n" % i)
        adder = self.begin("add", *(f"added{i}" for i in range(20)))
        self.until_status(unfinished=5, full=True)
        self.assertEqual(len(self.ls()), 5)
        self.assertIsNone(adder.poll())
        # Less than is on its way: a test need not start so many commands.
        whole = sent // 8
        s.close()
        self.ask("cancel", *self.keys())
        self.until_status(unfinished=5, cancelled=5)
        self.ask("stop")
        self.assertEqual(self.ended(), 75)
        rc, said = self.finish(adder)
        self.assertEqual(rc, 1)
        self.assertRegex(said, r"\Awq: the run ends: it takes no more keys\n"
                               r"wq: (\d+) of 20 given; the first not taken: added\1\n\Z")
        self.assertGreater(whole, 5)

    def test_full_and_then_not(self):
        self.serve("--max-queue", "3", "-j2", "--dry-run")
        self.ask("pause")
        adder = self.begin("add", *(f"added{i}" for i in range(3000)))
        conns = [self.connect() for _ in range(20)]
        for i, c in enumerate(conns):
            c.sendall(b"".join(b"%d-%d\n" % (i, n) for n in range(200)))
        self.until_status(unfinished=3)
        self.ask("resume")
        self.assertEqual(self.finish(adder), (0, ""))
        for c in conns:
            c.close()
        self.until_status(done=7000)

    def test_held_up_at_the_end(self):
        """An order that waits for room is answered when the run ends, and the next one is taken."""
        self.fifo("gate")
        self.serve("-j1", "--max-queue", "1", command=("sh", "-c", "read x <gate"))
        c = self.connect()
        c.sendall(b"\0" + frame("add", "0", "a", "b", "c", "d"))
        self.until_status(running=1, full=True)
        self.ask("drain", "--no-wait")
        self.assertRegex(c.recv(1000), b"!1 the run ends")
        c.sendall(frame("cancel", "", "b"))
        self.assertEqual(c.recv(1000), b"1:.,")
        self.let("gate")
        self.assertEqual(self.ended(), 0)

    def test_the_end(self):
        """Who is there when the run ends is told; what he wrote is left over."""
        self.serve("--leftover", "left", "--max-queue", "2", "--summary")
        self.ask("pause")
        s = self.connect()
        s.sendall(b"".join(b"%05d\n" % i for i in range(3000)) + b"half a k")
        self.until_status(unfinished=2)
        self.send(b"no end")
        late = self.connect()
        self.ask("stop", "--no-wait")
        self.assertEqual(self.ended(), 75)
        self.assertRegex(self.rest(s), rb"\Awq: the run ends")
        self.assertEqual(sorted(self.lines("left")), [f"{i:05}" for i in range(3000)] + ["no end"])
        self.assertEqual(self.rest(late), b"")

    def test_in_line_at_the_end(self):
        """Who was not let in yet has written all the same."""
        self.serve("--leftover", "left")
        self.halt()
        for i in range(300):
            self.send(b"%d\n" % i)
        self.run_.send_signal(signal.SIGTERM)
        self.run_.send_signal(signal.SIGCONT)
        self.assertEqual(self.ended(), 75)
        self.assertEqual(sorted(map(int, self.lines("left"))), list(range(300)))

    def test_while_it_ends(self):
        self.fifo("gate")
        self.serve("--leftover", "left", command=("sh", "-c", "read x <gate"))
        before = self.connect()
        before.sendall(b"a\n")
        self.until_status(running=1)
        self.ask("drain", "--no-wait")
        self.assertRegex(before.recv(100), b"the run ends")
        after = self.connect()
        after.sendall(b"b\n")
        self.assertRegex(after.recv(100), b"the run ends")
        self.ask("add", "c", status=1)
        self.assertIn("the run ends", self.complaint)
        # One who does not stay to be told.
        self.halt()
        self.send(b"gone\n")
        self.run_.send_signal(signal.SIGCONT)
        self.status()
        self.let("gate")
        self.assertEqual(self.ended(), 75)
        self.assertEqual(sorted(self.lines("left")), ["b", "gone"])


class Path(Served):
    def fails(self, *args, message, status=1):
        p = self.wq(*args)
        self.assertEqual(p.returncode, status, p.stderr)
        self.assertIn(message, p.stderr.decode())

    def test_mode(self):
        before = os.umask(0)
        try:
            self.serve(command=("sh", "-c", "umask >mask"))
        finally:
            os.umask(before)
        self.assertEqual(stat.S_IMODE(os.stat(self.dir / "s").st_mode), 0o600)
        self.ask("add", "k")
        self.ask("wait")
        # What the commands make is as the user wants it.
        self.assertEqual(self.lines("mask"), ["0000"])

    def test_gone_at_the_end(self):
        self.serve()
        self.run_.send_signal(signal.SIGTERM)
        self.assertEqual(self.ended(), 0)
        self.assertFalse((self.dir / "s").exists())

    def test_only_ours_is_unlinked(self):
        self.serve()
        os.unlink(self.dir / "s")
        (self.dir / "s").write_text("mine")
        self.run_.send_signal(signal.SIGTERM)
        self.assertEqual(self.ended(), 0)
        self.assertEqual(self.lines("s"), ["mine"])

    def test_stale(self):
        self.serve()
        self.run_.kill()
        self.ended()
        self.assertTrue((self.dir / "s").exists())
        self.serve()
        self.ask("add", "k")
        self.ask("drain")

    def test_taken(self):
        self.serve()
        self.fails("run", "--socket", "./s", "--", "true", message="another run listens")
        self.ask("status")

    def test_two_starters(self):
        """on a stale socket: one of them wins, whatever the order."""
        for _ in range(20):
            s = socket.socket(socket.AF_UNIX)
            (self.dir / "s").unlink(missing_ok=True)
            s.bind(str(self.dir / "s"))
            s.close()
            runs = [self.start("run", "--socket", "./s", "--", "true", stdin=subprocess.DEVNULL) for _ in range(4)]
            self.until(lambda: sum(p.poll() is not None for p in runs) == 3)
            (won,) = [p for p in runs if p.poll() is None]
            for p in runs:
                if p is not won:
                    self.assertEqual(p.returncode, 1)
                    self.assertIn(b"another run listens", p.stderr.read())
            self.until(lambda: self.wq("status", "-s", "./s").returncode == 0)
            self.assertEqual(self.status()["pid"], won.pid)
            won.terminate()
            self.assertEqual(won.wait(rig.PATIENCE), 0)

    def test_not_a_socket(self):
        (self.dir / "file").write_text("keep")
        os.symlink("nowhere", self.dir / "link")
        for name in ("./file", "./link", "./."):
            self.fails("run", "--socket", name, "--", "true", message="is not a socket")
        self.assertEqual(self.lines("file"), ["keep"])
        self.assertTrue(os.path.islink(self.dir / "link"))

    def test_bad_paths(self):
        self.fails("run", "--socket", "./" + "x" * 106, "--", "true", message="at most 107 bytes")
        self.fails("run", "--socket", "", "--", "true", message="empty")
        self.fails("run", "--socket", "none/s", "--", "true", message="No such file")
        self.fails("status", "--socket", "./" + "x" * 106, message="at most 107 bytes")

    def test_longest_path(self):
        name = "./" + "x" * 105
        p = self.start("run", "--socket", name, "--", "true", stdin=subprocess.DEVNULL)
        self.until(lambda: self.wq("status", "-s", name).returncode == 0)
        p.terminate()
        self.assertEqual(p.wait(rig.PATIENCE), 0)
        self.assertFalse((self.dir / name).exists())

    def test_nobody_listens(self):
        self.fails("status", "-s", "./s", message="no run listens on ./s")
        self.serve()
        self.run_.kill()
        self.ended()
        self.fails("add", "--socket=./s", "k", message="no run listens on ./s")

    def test_which_run(self):
        self.fails("status", message="WQ_SOCKET", status=2)
        self.serve()
        p = self.wq("status", env={"WQ_SOCKET": "./s"})
        self.assertEqual(p.returncode, 0)
        p = self.wq("status", "--socket", "./s", env={"WQ_SOCKET": "elsewhere"})
        self.assertEqual(p.returncode, 0)

    def test_locked_folder(self):
        """Who holds the lock for long does not hold up a run for ever, and it says why it fails."""
        holder = subprocess.Popen(["flock", str(self.dir), "sh", "-c", "echo; read x"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        holder.stdout.readline()
        try:
            self.fails("run", "--socket", "./s", "--", "true", message="cannot be locked")
        finally:
            holder.communicate()


@unittest.skipUnless(os.geteuid() == 0, "only root can be another user")
class Others(Served):
    """Other users are refused."""

    def nobody(self):
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)

    def test_refused(self):
        self.serve()
        os.chmod(self.dir, 0o755)
        p = self.wq("status", "-s", "./s", preexec_fn=self.nobody)
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"Permission denied", p.stderr)
        # The mode is one lock, who asks is another.
        os.chmod(self.dir / "s", 0o666)
        for args in (["status"], ["add", "k"], ["stop"], ["top"], ["wait"]):
            p = self.wq(args[0], "-s", "./s", *args[1:], preexec_fn=self.nobody)
            self.assertEqual(p.returncode, 1, args)
            self.assertEqual(p.stderr, b"wq: this run is another user's: it takes nothing from user 65534\n")
        p = subprocess.run(["python3", "-c", "import socket, sys\n"
                            "s = socket.socket(socket.AF_UNIX); s.connect('s')\n"
                            "try: s.sendall(b'key\\n')\n"
                            "except OSError: pass\n"
                            "sys.stdout.write(s.recv(1000).decode())"], cwd=self.dir, preexec_fn=self.nobody,
                           capture_output=True, timeout=rig.PATIENCE)
        self.assertIn(b"wq: this run is another user's", p.stdout, p.stderr)
        s = self.status()
        self.assertEqual((s["given"], s["phase"]), (0, "open"))
        self.assertIn("user 65534 was refused", self.said())

    def test_nobody_knows_who_asks(self):
        """It is refused, and not taken for root."""
        gate = self.dir / "gate"
        self.serve(env=self.shim(f"getsockopt:{errno.ENOBUFS}:{gate}"))
        gate.touch()
        self.ask("add", "k", status=1)
        self.assertEqual(self.complaint, "wq: this run is another user's: it takes nothing from user -1\n")
        self.assertIn("wq: socket: user -1 was refused\n", self.said())
        gate.unlink()
        self.assertEqual(self.status()["given"], 0)

    def test_root_may(self):
        """in the run of another."""
        os.chmod(self.dir, 0o777)
        self.serve(preexec_fn=self.nobody)
        self.ask("add", "k")
        self.ask("drain")
        self.assertEqual(self.ended(), 0)


class Frames(Served):
    """Whatever is written to it, the run goes on, and what is no order is answered."""

    def say(self, data, shut=True):
        s = self.connect()
        try:
            s.sendall(b"\0" + data)
            if shut:
                s.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return self.rest(s)

    def test_malformed(self):
        self.serve()
        for data in (b"x", b":,", b"1:ab", b"99999999999999999999:", b"-1:,", b"132097:", b"5;hello,", b"\0", b"\n",
                     b"GET / HTTP/1.1\r\n\r\n", b"0x3:abc,", b"6:status;"):
            self.assertRegex(self.say(data, shut=False), rb"\A\d+:!1 not a command", data)
        self.assertEqual(self.status()["connections"], 1)

    def test_endless_zeros(self):
        """A number that never ends is no number, and nobody stays who sent one."""
        self.serve()
        for data in (b"00", b"00:,", b"06:status,", b"0" * 80000, b"0" * 80000 + b"6:status,"):
            self.assertRegex(self.say(data, shut=False), rb"\A\d+:!1 not a command", data[:20])
        for _ in range(30):
            with self.connect() as s:
                try:
                    s.sendall(b"\0" + b"0" * 80000)
                except (BrokenPipeError, ConnectionResetError):
                    pass
        self.until_status(connections=1)

    def test_cut(self):
        self.serve()
        for data in (b"", b"6", b"6:", b"6:stat", b"6:status"):
            self.assertEqual(self.say(data), b"", data)
        self.assertEqual(self.status()["connections"], 1)

    def test_unknown(self):
        self.serve()
        for order in (b"", b"nonsense", b"\xff\x1b", b"x" * 132096, b"statuss", b"\0\0\0"):
            self.assertRegex(self.say(frame(order)), rb"!2 .*unknown command", order[:20])

    def test_bad_fields(self):
        self.serve()
        for order in ((b"add",), (b"add", b"0"), (b"add", b"-1", b"k"), (b"retry",), (b"retry", b""),
                      (b"retry", b"x" * (KEY_MAX + 1)), (b"cancel",), (b"cancel", b""), (b"forget",), (b"ls",),
                      (b"ls", b"", b""), (b"ls", b"nowhere", b"1"), (b"set", b""), (b"set", b"=")):
            self.assertRegex(self.say(frame(*order)), rb"\A\d+:!2 ", order)
        self.assertRegex(self.say(frame(b"add", b"0", b"x" * (KEY_MAX + 1))), rb"\A\d+:!1 ")
        self.assertEqual(self.status()["unfinished"], 0)

    def test_one_after_another(self):
        self.serve()
        answer = self.say(frame("pause") + frame("add", "0", "a", "b", "a") + frame("add", "0", "c") +
                          frame("wrong") + frame("cancel", "", "b") + frame("resume"))
        self.assertEqual(answer[:3 + 1], b"1:.,")
        self.assertIn(b"4:.3 1,", answer)
        self.assertIn(b"4:.1 0,", answer)
        self.assertTrue(answer.endswith(b"1:.,1:.,"))
        self.until_status(done=2)

    def test_in_pieces(self):
        self.serve()
        s = self.connect()
        for c in b"\0" + frame("add", "0", "k") + frame("wait", "all"):
            s.send(bytes([c]))
        s.shutdown(socket.SHUT_WR)
        self.assertRegex(self.rest(s), rb"\A4:\.1 0,(1::,)?1:\.,\Z")

    def test_noise(self):
        """Random orders and noise."""
        self.serve("--quiet")
        words = [b"add", b"0", b"k", b"cancel", b"kill", b"retry", b"ls", b"5", b"await", b"wait", b"set", b"rate=9",
                 b"status", b"failing", b"", b"forget", b"queued", b"resume", b"\xff", b"workers=2"]
        for _ in range(300):
            data = b"".join(frame(*self.random.choices(words, k=self.random.randrange(1, 5)))
                            for _ in range(self.random.randrange(1, 6)))
            if self.random.random() < 0.5:
                data = bytearray(data)
                data[self.random.randrange(len(data))] = self.random.randrange(256)
                data = bytes(data)
            self.say(data)
        self.ask("wait")
        self.until_status(connections=1)
        self.adds_up()


class Load(Served):
    def test_thousand(self):
        """connections at once, of keys and of orders."""
        self.serve("--max-queue", "100000", "--dry-run")
        resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        conns = [self.connect() for _ in range(1000)]
        askers = [self.connect() for _ in range(500)]
        for i, c in enumerate(conns):
            c.sendall(b"first%d\nsecond" % i)
        for c in askers:
            c.sendall(b"\0" + frame("add", "0", "x%d" % c.fileno()))
        for c in askers:
            self.assertEqual(c.recv(100), b"4:.1 0,")
        self.until_status(done=1500, connections=1501)
        for i, c in enumerate(conns):
            c.sendall(b"%d\n" % i)
            c.close()
        for c in askers:
            c.close()
        self.until_status(done=2500, connections=1)

    def test_few_descriptors(self):
        """With none left for connections the run goes on, and lets them in one after another."""
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        limit = 64 + 8 + 40
        self.serve("-j1", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
        self.assertGreater(hard, limit)
        self.until_status(connections=1)
        self.halt()
        conns = [self.connect() for _ in range(200)]
        for i, c in enumerate(conns):
            c.sendall(b"%d\n" % i)
        before = len(os.listdir(f"/proc/{self.run_.pid}/fd"))
        self.run_.send_signal(signal.SIGCONT)
        self.until(lambda: len(os.listdir(f"/proc/{self.run_.pid}/fd")) >= 40)
        # Commands have some more for a moment.
        self.assertLess(len(os.listdir(f"/proc/{self.run_.pid}/fd")), before + 40 + 10)
        for c in conns:
            c.close()
        self.until_status(done=200, connections=1)
        self.assertEqual(self.said(), "wq: listens on ./s\n")

    def test_no_descriptors(self):
        """Not one: it does not spin, and goes on once there are some."""
        self.serve("-j1")
        before = resource.prlimit(self.run_.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.run_.pid, resource.RLIMIT_NOFILE, (3, before[1]))
        c = self.connect()
        c.sendall(b"\0" + frame("pause"))
        spent = self.spent()
        # It looks again ten times a second: a look costs well below a millisecond.
        self.assertEqual(select.select([c], [], [], 1.0)[0], [])
        self.assertLess(self.spent() - spent, 0.3)
        resource.prlimit(self.run_.pid, resource.RLIMIT_NOFILE, before)
        self.assertEqual(c.recv(100), b"1:.,")

    def spent(self):
        with open(f"/proc/{self.run_.pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    ENV = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"}

    def test_slow_readers(self):
        """Who asks for much and reads nothing costs no memory."""
        self.serve("--max-queue", "1000000", env=self.ENV)
        self.ask("pause")
        self.ask("add", "-", input="".join(f"{i:07}" + "x" * 90 + "\n" for i in range(50000)))
        before = self.memory()
        conns = []
        for _ in range(20):
            c = self.connect()
            c.sendall(b"\0" + frame("ls", "", "0") * 50)
            conns.append(c)
        self.ask("status")
        grown = self.memory() - before
        self.assertLess(grown, 24 << 20)
        # What they get in the end is whole.
        data = b""
        while data.count(b",1:.,") < 2 and not data.endswith(b",1:.,"):
            data += conns[0].recv(1 << 20)
        self.assertEqual(data.split(b",1:.,")[0].count(b"queued\0"), 50000)
        for c in conns:
            c.close()
        self.until_status(connections=1)

    def test_no_room_for_an_answer(self):
        self.serve("--max-queue", "1000000", env={"TMPDIR": "/nowhere"})
        self.ask("pause")
        self.ask("add", "-", input="".join(f"{i:07}" + "x" * 90 + "\n" for i in range(5000)))
        self.ask("ls", "--limit=0", status=1)
        self.assertIn("TMPDIR", self.complaint)
        self.assertEqual(len(self.ls("--limit=10")), 10)

    def test_million(self):
        """adds: memory stays as it is."""
        self.serve(env=self.ENV)
        self.ask("pause")
        some = "".join(f"{i % 1000:07}\n" for i in range(100000))
        self.ask("add", "-", input=some)
        before = self.memory()
        p = self.begin("add", "-v", "-")
        for _ in range(5):
            p.stdin.write(some.encode())
        s = self.connect()
        for _ in range(4):
            s.sendall(some.encode())
        s.close()
        self.assertEqual(self.finish(p), (0, "wq: 500000 given, 500000 merged\n"))
        self.until_status(given=1000000, merged=999000)
        self.assertLess(self.memory() - before, 3 << 20)


if __name__ == "__main__":
    main()
