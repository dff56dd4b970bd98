"""What a leftover file says beside the keys: when they are due, and how often they have failed."""
import re
import resource
import signal
import time

import rig
from rig import leftover, main
from served import Served

HEAD = b"#wq-leftover-1"


class State(Served):
    def records(self, name="left", end=b"\n"):
        return leftover((self.dir / name).read_bytes(), end)

    def restart(self, *args, n=None, name="left", command=("true",)):
        """A run that reads the file; once it has, if it is known how many keys are in it."""
        self.serve("-a", name, "--log=log", *args, command=command)
        if n is not None:
            self.until(lambda: self.status()["given"] == n, "the keys")

    def stop(self, status=75):
        self.run_.send_signal(signal.SIGTERM)
        self.assertEqual(self.run_.wait(rig.PATIENCE), status, self.said())

    def test_after(self):
        """A key that is due in half an hour is due then in the next run, too, and in the one after it."""
        self.serve("--leftover=left")
        before = time.time()
        self.ask("add", "--after=30m", "late")
        after = time.time()
        self.stop()
        (key, due, failures), = self.records()
        self.assertEqual((key, failures), (b"late", 0))
        self.assertTrue(before + 1800 <= due <= after + 1801, due)
        for _ in range(3):
            self.restart("--leftover=left", n=1)
            self.assertEqual([k["state"] for k in self.ls()], ["waiting"])
            self.stop()
        (_, again, _), = self.records()
        # Never earlier; each run rounds up, and is late if it is held up between a look at each of two clocks.
        self.assertTrue(due <= again < due + 600, (due, again))
        self.assertEqual(self.log(), [])

    def test_a_time_that_has_passed(self):
        (self.dir / "left").write_bytes(HEAD + b"\n@1000000000.5\t0\ta\n")
        p = self.wq("run", "-a", "left", "--", "echo")
        self.assertEqual((p.returncode, p.stdout), (0, b"a\n"))

    def test_failures(self):
        """Attempts are counted through, and the wait is as long as it would have been."""
        self.serve("--leftover=left", "--backoff=1h..1d", "--retries=2", "--log=log", command=("false",))
        self.ask("add", "a", "b")
        self.until(lambda: len(self.log()) == 2, "the first attempts")
        self.stop()
        self.assertEqual(sorted((key, failures) for key, _, failures in self.records()), [(b"a", 1), (b"b", 1)])
        self.restart("--leftover=left", "--backoff=1h..1d", "--retries=2", n=2, command=("false",))
        self.ask("retry", "a")
        self.until(lambda: len(self.log()) == 3, "the second attempt")
        self.stop()
        records = {key: (due, failures) for key, due, failures in self.records()}
        self.assertEqual({key: failures for key, (_, failures) in records.items()}, {b"a": 2, b"b": 1})
        self.assertAlmostEqual(records[b"a"][0] - time.time(), 7200, delta=600)
        self.assertAlmostEqual(records[b"b"][0] - time.time(), 3600, delta=600)
        # By hand: both are due now.
        data = b"".join(b"@0\t%d\t%s\n" % (failures, key) for key, (_, failures) in records.items())
        (self.dir / "left").write_bytes(HEAD + b"\n" + data)
        p = self.wq("run", "-a", "left", "--retries=2", "--backoff=1ms", "--log=log", "--dead=dead", "--", "false")
        self.assertEqual(p.returncode, 123)
        self.assertEqual(sorted((a["key"], a["attempt"], a["outcome"]) for a in self.log()[3:]),
                         [("a", 3, "dead"), ("b", 2, "retry"), ("b", 3, "dead")])

    def test_failures_of_a_key_in_line(self):
        """One that is due has its failures, and no time."""
        self.serve("-j1", "--leftover=left", "--backoff=1ms", "--log=log", command=(
            "sh", "-c", "[ $1 = a ] && exit 1; : >up; exec sleep 1000", "sh"))
        self.ask("add", "a", "b")
        self.until_file("up")
        self.until(lambda: self.status()["queued"] == 1, "the key that is due again")
        self.run_.send_signal(signal.SIGTERM)
        self.until(lambda: self.run_.poll() is not None or self.run_.send_signal(signal.SIGTERM), "the end")
        self.assertEqual(sorted(self.records()), [(b"a", 0, 1), (b"b", 0, 0)])

    def test_keys_of_any_bytes(self):
        """By any delimiter, also one that the file itself uses."""
        odd = [b"a\tb", b"\t", b"@", b"@0\t0\tx", b"@1.5\t3\ty", HEAD, b"_", b"-", b"0", b"\xff\xfe", b" x ", b"y" * 65536]
        for end in (b"\n", b"\0", b",", b"\t", b"@", b"_", b"#", b".", b"0", b"1", b"w", b"-"):
            with self.subTest(delimiter=end):
                keys = [k for k in odd if end not in k] + ([b"a\nb"] if end != b"\n" else [])
                keys = [k for k in keys if k]
                option = f"-d\\x{end[0]:02x}"
                for name in ("log", "left"):
                    (self.dir / name).unlink(missing_ok=True)
                (self.dir / "keys").write_bytes(b"".join(k + end for k in keys))
                self.restart(option, "--leftover=left", "--backoff=1h", name="keys", command=("false",))
                self.until(lambda: len(self.log()) == len(keys), "the attempts")
                self.until(lambda: self.status()["waiting"] == len(keys), "the failures")
                self.stop()
                first = (self.dir / "left").read_bytes()
                self.assertEqual(first.count(end), len(keys) + 1)
                self.restart(option, "--leftover=again", "--backoff=1h", n=len(keys))
                self.assertEqual({k["failures"] for k in self.ls()}, {1})
                self.stop()
                second = (self.dir / "again").read_bytes()
                self.assertEqual(second.count(end), len(keys) + 1)
                for data in (first, second):
                    records = [r for r in data.split(end)[1:] if r]
                    self.assertEqual(sorted(r.split(b"_" if end == b"\t" else b"\t", 2)[2] for r in records),
                                     sorted(keys))
                self.assertEqual(len(self.log()), len(keys))

    def test_without_more_to_say_it_is_a_list(self):
        p = self.wq("run", "-j1", "--leftover=left", "--", "sh", "-c", "kill $PPID", input="a\nb\n@1\t2\tc\n")
        self.assertEqual(p.returncode, 75)
        self.assertEqual((self.dir / "left").read_bytes(), b"b\n@1\t2\tc\n")

    def test_a_list_that_begins_like_the_head(self):
        """Such a key is one in the next run, too."""
        p = self.wq("run", "-j1", "--leftover=left", "--", "sh", "-c", "kill $PPID",
                    input=b"a\n" + HEAD + b"\n@1\t2\tc\n")
        self.assertEqual(p.returncode, 75)
        self.assertEqual(self.records(), [(HEAD, 0, 0), (b"@1\t2\tc", 0, 0)])
        p = self.wq("run", "-j1", "-a", "left", "--", "echo")
        self.assertEqual(p.stdout, HEAD + b"\n@1\t2\tc\n")

    def test_only_files_have_a_head(self):
        """Who names keys on a pipe does not decide how they are read."""
        text = HEAD + b"\n@99999999999\t2\tc\n"
        self.assertEqual(self.wq("run", "-j1", "--", "echo", input=text).stdout, text)
        (self.dir / "left").write_bytes(HEAD + b"\n@1\t2\tc\n")
        with open(self.dir / "left", "rb") as f:
            p = self.start("run", "--", "sh", "-c", "echo $0 {#}", stdin=f)
        self.assertEqual((p.stdout.read(), p.wait(rig.PATIENCE)), (b"c 3\n", 0))

    def test_by_hand(self):
        """Plain keys may be added to it, and what is wrong is refused, and said."""
        (self.dir / "left").write_bytes(HEAD + b"\nplain\n@0\t1\tonce\na\tb\n@\t0\tx\n@1\t0\n@1\t0\t\n@1.\t0\tx\n@1\t-1\tx\n"
                                        b"@0x1\t0\tx\n@1,5\t0\tx\n@1 \t0\tx\nlast")
        p = self.wq("run", "-j1", "-a", "left", "--summary", "--", "sh", "-c", "echo \"$1\" {#}", "sh")
        self.assertEqual((p.returncode, p.stdout), (1, b"plain 1\nonce 2\na\tb 1\nlast 1\n"))
        text = p.stderr.decode()
        self.assertEqual(text.count("a line begins with @, but not with @DUE<tab>FAILURES<tab>, and is left out: @"), 8)
        self.assertIn("12 given = 0 merged + 8 refused + 4 to do", text)

    def test_numbers_without_end(self):
        (self.dir / "left").write_bytes(HEAD + b"\n@0.%s\t%s\ta\n@%s\t0\tlate\n@%s.9\t0\tlater\n" % ((b"9" * 20,) * 4))
        self.restart("--leftover=left", n=3, command=("sh", "-c", "echo {#} >attempt"))
        self.until(lambda: self.lines("attempt") == [str(0x3fffff + 1)], "the attempt")
        self.assertEqual([k["state"] for k in self.ls()], ["waiting", "waiting"])
        self.stop()
        records = self.records()
        self.assertEqual(sorted(key for key, _, _ in records), [b"late", b"later"])
        self.assertGreater(min(due for _, due, _ in records), 9e9)

    def test_as_many_failures_as_there_can_be(self):
        most = 0x3fffff
        for failures in (most - 100, most - 3, most - 1, most, most + 1):
            (self.dir / "left").write_bytes(HEAD + b"\n@0\t%d\ta\n" % failures)
            p = self.wq("run", "-a", "left", "--", "sh", "-c", "echo {#}")
            self.assertEqual((p.returncode, int(p.stdout)), (0, min(failures, most) + 1))

    def test_what_was_not_read(self):
        """Keys that the run did not even take keep what the file said of them."""
        (self.dir / "left").write_bytes(HEAD + b"\n" + b"".join(b"@%d.250\t%d\tk%d\n" % (2 ** 33, i, i) for i in range(50)))
        for n in ("--max-queue=3", "--max-queue=100"):
            self.restart("--leftover=left", n, name="left")
            self.until(lambda: self.status()["waiting"] >= 3, "keys that were taken")
            self.stop()
            self.assertEqual(sorted((failures, key) for key, due, failures in self.records() if abs(due - 2 ** 33) < 1),
                             [(i, b"k%d" % i) for i in range(50)])

    def test_latest_times_that_were_not_read(self):
        """With a fraction, too, a number that is too large is a time that does not come."""
        keys = [b"late", b"later", b"latest"]
        (self.dir / "left").write_bytes(HEAD + b"\n" + b"".join(b"@%s.9\t0\t%s\n" % (b"9" * 20, k) for k in keys))
        self.restart("--leftover=left", "--max-queue=1")
        self.until(lambda: self.status()["waiting"] == 1, "the key that was taken")
        self.stop()
        records = self.records()
        self.assertEqual(sorted(key for key, _, _ in records), keys)
        self.assertGreater(min(due for _, due, _ in records), 9e9)

    def test_given_again_meanwhile(self):
        """An add ends the wait, as with any key that waits; the failures stay."""
        (self.dir / "left").write_bytes(HEAD + b"\n@9000000000\t2\ta\n")
        self.restart(n=1, command=("sh", "-c", "echo {#} >attempt"))
        self.ask("add", "a")
        self.until(lambda: self.lines("attempt") == ["3"], "the third attempt")

    def test_without_memory(self):
        """A run that has filled its memory refuses more keys, and still writes those that it took."""
        if rig.is_sanitized():
            self.skipTest("the sanitizer needs all addresses there are")
        room = 40 << 20
        self.serve("--leftover=left", "--max-queue=100000000",
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (room, room)))
        self.ask("pause")
        self.ask("add", "-", input=b"".join(b"%0100d\n" % i for i in range(1000000)), status=1)
        taken = int(re.search(r"(\d+) of \d+ given", self.complaint)[1])
        self.stop()
        self.assertEqual(sorted(int(key) for key, _, _ in self.records()), list(range(taken)))

    def test_without_memory_for_their_order(self):
        """There is some for their number, but not for their bytes: they are written, in any order."""
        if rig.is_sanitized():
            self.skipTest("the sanitizer needs all addresses there are")
        keys = [b"%d" % i + b"x" * 60000 for i in range(200)]
        self.serve("--leftover=left", "--max-queue=1000")
        self.ask("pause")
        self.ask("add", "-", input=b"\n".join(keys))
        with open(f"/proc/{self.run_.pid}/statm", encoding="ascii") as f:
            room = int(f.read().split()[0]) * resource.getpagesize() + (4 << 20)
        resource.prlimit(self.run_.pid, resource.RLIMIT_AS, (room, room))
        self.stop()
        left = [key for key, _, _ in self.records()]
        self.assertNotEqual(left, keys)
        self.assertEqual(sorted(left), sorted(keys))


if __name__ == "__main__":
    main()
