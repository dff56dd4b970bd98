"""Priorities and groups: which key is next, how many of a group run at once, and how often they start."""
import os
import signal
import time

import rig
from rig import Case, main
from served import Served

APPEND = ("sh", "-c", 'echo "$1" >>seen', "sh", "{}")


class Priorities(Served):
    def order(self, *args):
        """The keys, in the order in which a run starts them."""
        self.ask("resume")
        self.ask("wait")
        return self.lines("seen")

    def test_order(self):
        """The highest first; inside a priority, first in, first out. An add without one has priority 0."""
        self.serve("-j1", command=APPEND)
        self.ask("pause")
        for priority, keys in ((None, "a b"), ("-1", "low"), ("10", "h1 h2"), ("32767", "top"), ("-32768", "last"), ("0", "c")):
            self.ask("add", *([f"--priority={priority}"] if priority else []), *keys.split())
        self.assertEqual(self.order(), "top h1 h2 a b c low last".split())

    def test_input_of_add(self):
        self.serve("-j1", command=APPEND)
        self.ask("pause")
        self.ask("add", "-", input="a\nb\n")
        self.ask("add", "--priority=1", "-", input="c\nd\n")
        self.assertEqual(self.order(), ["c", "d", "a", "b"])

    def test_raised(self):
        """A higher one moves a queued key up, a lower one has no effect."""
        self.serve("-j1", command=APPEND)
        self.ask("pause")
        self.ask("add", "--priority=5", "a", "b")
        self.ask("add", "c", "d")
        self.ask("add", "--priority=9", "d")
        self.ask("add", "--priority=-9", "a")
        self.ask("add", "b")
        self.assertEqual({e["key"]: e["priority"] for e in self.ls()}, {"a": 5, "b": 5, "c": 0, "d": 9})
        self.assertEqual(self.order(), ["d", "a", "b", "c"])

    def test_waiting(self):
        self.serve("-j1", command=APPEND)
        self.ask("pause")
        self.ask("add", "a")
        self.ask("add", "--priority=3", "--after=1ms", "b")
        self.until_status(queued=2)
        self.assertEqual(self.order(), ["b", "a"])

    def test_retries_keep_it(self):
        self.serve("-j1", "--backoff=1ms", "--retries=1", command=("sh", "-c", "echo $WQ_PRIORITY >>seen; exit 1", "{}"))
        self.ask("add", "--priority=-3", "--wait", "a", status=123)
        self.assertEqual(self.lines("seen"), ["-3", "-3"])

    def aged(self, *args):
        self.serve("-j1", *args, command=APPEND)
        self.ask("pause")
        self.ask("add", "old")
        self.until(lambda: self.ls()[0]["since_s"] > 0.1, "some age")
        self.ask("add", "--priority=50", "new")
        order = self.order()
        self.ask("stop")
        self.ended()
        (self.dir / "seen").unlink()
        return order

    def test_aging(self):
        """A key that has been queued for a hundred spans is a hundred higher."""
        self.assertEqual(self.aged(), ["new", "old"])
        self.assertEqual(self.aged("--aging=0"), ["new", "old"])
        self.assertEqual(self.aged("--aging=1h"), ["new", "old"])
        self.assertEqual(self.aged("--aging=1ms"), ["old", "new"])

    def test_paused_keys_need_no_cpu(self):
        """With aging, too, a run that has nothing to start sleeps."""
        self.serve("-j1", "--aging=1ms", command=APPEND)
        self.ask("pause")
        self.ask("add", "a")
        began, before = time.monotonic(), cpu_s(self.run_.pid)
        self.until(lambda: self.ls()[0]["since_s"] > 0.3, "some age")
        self.assertLess(cpu_s(self.run_.pid) - before, (time.monotonic() - began) / 2)


def cpu_s(pid):
    """What the process has used so far."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Groups(Served):
    def test_names(self):
        """What stands before the separator, or the whole key."""
        keys = ["https://a.org/x/y", "https://a.org", "http://b/", "c", "", "/d"]
        for option, groups in (("/", ["https:", "https:", "http:", "c", ""]),
                               ("/:3", ["https://a.org", "https://a.org", "http://b", "c", "/d"]),
                               ("/:1", ["https:", "https:", "http:", "c", ""]),
                               (":", ["https", "https", "http", "c", "/d"]),
                               ("::1", ["https", "https", "http", "c", "/d"]),
                               ("\\x2e:1", ["https://a", "https://a", "http://b/", "c", "/d"]),
                               ("\\t", ["https://a.org/x/y", "https://a.org", "http://b/", "c", "/d"])):
            p = self.wq("run", "-j1", "-k", f"--group-by={option}", "--", "sh", "-c", 'echo "$WQ_GROUP"', "{}", input="\n".join(keys))
            self.assertEqual((p.returncode, p.stdout.decode().split("\n")), (0, [*groups, ""]), option)

    def test_turns(self):
        """Many keys of one group do not delay those of another."""
        (self.dir / "keys").write_text("".join(f"a/{i}\n" for i in range(50)) + "b/1\nc/1\nb/2\n")
        p = self.wq("run", "-j1", "-akeys", "--group-by=/", "--", "echo")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(p.stdout.decode().split()[:7], ["a/0", "b/1", "c/1", "a/1", "b/2", "a/2", "a/3"])

    def test_jobs(self):
        """So many of each group run at once, and the next starts when one of them has ended."""
        for name in ("a/1", "a/2", "a/3", "b/1", "b/2", "b/3"):
            (self.dir / name).parent.mkdir(exist_ok=True)
            self.fifo(name)
        self.serve("-j9", "--group-by=/", "--group-jobs=2", command=("sh", "-c", "read x <{}"))
        self.ask("add", "a/1", "a/2", "a/3", "b/1", "b/2", "b/3")
        self.until_status(running=4, queued=2, blocked=2)
        self.assertEqual(self.keys("--state=running"), ["a/1", "a/2", "b/1", "b/2"])
        self.let("a/2")
        self.until_status(running=4, done=1, blocked=1)
        self.assertEqual(self.keys("--state=running"), ["a/1", "a/3", "b/1", "b/2"])
        for name in ("a/1", "a/3", "b/1", "b/2", "b/3"):
            self.let(name)
        self.ask("wait")
        self.adds_up()

    def test_all_are_finished(self):
        """The end of the input, and a drain, wait for blocked keys."""
        text = "".join(f"{i % 3}/{i}\n" for i in range(60))
        p = self.wq("run", "-j9", "--group-by=/", "--group-jobs=1", "--group-rate=1000/s", "--", "echo", input=text)
        self.assertEqual((p.returncode, sorted(p.stdout.decode().split())), (0, sorted(text.split())))
        p = self.start("run", "-j2", "--on-term=drain", "--group-by=/", "--group-jobs=1", "--", "sh", "-c",
                       "mkdir sent 2>/dev/null && kill $PPID; echo {}")
        self.give(p, *text.split())
        out, _ = p.communicate(timeout=rig.PATIENCE)
        self.assertEqual((p.returncode, sorted(out.decode().split())), (0, sorted(text.split())))

    def test_rate(self):
        """A start at a time; meanwhile the run sleeps. Late is allowed, early is not."""
        began = time.monotonic()
        p = self.start("run", "-j9", "--group-by=/", "--group-rate=2/s", "--", "echo")
        self.give(p, "a/1", "b/1", "a/2", "b/2", "a/3", "c")
        p.stdin.close()
        out = p.stdout.read().decode().split()
        _, status, used = os.wait4(p.pid, 0)
        took = time.monotonic() - began
        p.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual((p.returncode, sorted(out)), (0, ["a/1", "a/2", "a/3", "b/1", "b/2", "c"]))
        self.assertEqual(out[-1], "a/3")
        self.assertGreaterEqual(took, 1)
        self.assertLess(used.ru_utime + used.ru_stime, took / 2)

    def test_rates_by_unit(self):
        """The second key of a group is an hour, or a minute, away."""
        for rate in ("1/h", "1/m", "0.01/s", "0.01"):
            self.serve("--group-by=/", f"--group-rate={rate}")
            self.ask("add", "a/1", "a/2", "b/1")
            self.until_status(done=2, queued=1, blocked=1)
            self.assertEqual(self.keys(), ["a/2"])
            self.run_.send_signal(signal.SIGTERM)
            self.assertEqual(self.ended(), 75)

    def test_with_a_rate_for_all(self):
        """A start that no group can have is not used up."""
        self.serve("--group-by=/", "--group-rate=1/h", "--rate=1000/s")
        self.ask("add", "a/1", "a/2")
        self.until_status(done=1, blocked=1)
        self.ask("add", "b/1", "c/1")
        self.until_status(done=3, blocked=1)

    def test_priorities(self):
        """They come before turns, and limits before them."""
        self.fifo("gate")
        self.serve("-j1", "--group-by=/", "--group-rate=1/h", command=APPEND)
        self.ask("pause")
        self.ask("add", "a/1", "b/1")
        self.ask("add", "--priority=9", "a/2", "a/3")
        self.ask("resume")
        self.until_status(done=2, blocked=2)
        self.assertEqual(self.lines("seen"), ["a/2", "b/1"])

    def test_left_over(self):
        self.serve("--group-by=/", "--group-rate=1/h", "--leftover=left")
        self.ask("add", "a/1", "a/2", "b/1", "a/3")
        self.until_status(done=2, blocked=2)
        self.run_.send_signal(signal.SIGTERM)
        self.assertEqual(self.ended(), 75)
        self.assertEqual((self.dir / "left").read_bytes(), b"a/2\na/3\n")

    def test_cancelled(self):
        self.serve("--group-by=/", "--group-rate=1/h")
        self.ask("add", "a/1", "a/2", "a/3")
        self.until_status(done=1, blocked=2)
        self.ask("cancel", "a/2")
        self.assertEqual((self.status()["blocked"], self.keys()), (1, ["a/3"]))
        self.adds_up()

    def test_failures(self):
        """A retry is a start like others; one that waits blocks nobody."""
        self.serve("-j1", "--group-by=/", "--group-jobs=1", "--backoff=1h",
                   command=("sh", "-c", "echo {} >>seen; [ {} != a/1 ]"))
        self.ask("add", "a/1", "a/2")
        self.until_status(done=1, waiting=1)
        self.assertEqual(self.lines("seen"), ["a/1", "a/2"])


class Wrong(Case):
    def test_usage(self):
        for args, message in ((["--group-by="], "a character"), (["--group-by=ab"], "a character"), (["--group-by=/:"], "a character"),
                              (["--group-by=/:0"], "a character"), (["--group-by=/:x"], "a character"), (["--group-by=:3"], "a character"),
                              (["--group-by=/:4294967296"], "a character"), (["--group-by=/:-1"], "a character"),
                              (["--group-by=\\q"], "a character"), (["--group-by=\\\\xxxxxxxxxxx:1"], "a character"),
                              (["--group-jobs=1"], "--group-by"), (["--group-rate=1/s"], "--group-by"),
                              (["--group-by=/", "--group-jobs=0"], "a number from 1"),
                              (["--group-by=/", "--group-jobs=x"], "a number from 1"), (["--group-by=/", "--group-rate=0"], "a rate"),
                              (["--group-by=/", "--group-rate=x"], "a rate"), (["--group-by=/", "--group-rate=1/d"], "a rate"),
                              (["--group-by=/", "-n2"], "--max-args"), (["--aging=x"], "a time"), (["--aging=13h"], "12h"),
                              (["--aging=-1s"], "a time")):
            p = self.wq("run", *args, "--", "touch", "made", input="a\n")
            self.assertEqual(p.returncode, 2, args)
            self.assertIn(message, p.stderr.decode(), args)
            self.assertFalse((self.dir / "made").exists())
        self.assertEqual(self.wq("run", "--aging=12h", "--group-by=/:4294967295", "--", "true", input="a\n").returncode, 0)

    def test_dry_run(self):
        """Nothing waits."""
        p = self.wq("run", "--dry-run", "--group-by=/", "--group-jobs=1", "--group-rate=1/h", "--", "echo", input="a/1\na/2\n")
        self.assertEqual((p.returncode, p.stdout), (0, b"echo a/1\necho a/2\n"))


if __name__ == "__main__":
    main()
