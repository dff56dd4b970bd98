"""-n: several keys for one command."""
import json
import shutil
import subprocess
from unittest import skipUnless

import rig
from rig import main
from served import Served


class Batch(Served):
    def batch(self, *args, keys, command, status=0, **kwargs):
        """What it wrote. The keys are there before the first command starts, and one runs after another."""
        (self.dir / "keys").write_bytes("".join(k + "\n" for k in keys).encode())
        (self.dir / "log").unlink(missing_ok=True)
        p = self.wq("run", "-j1", "-akeys", "--backoff=1ms", "--log=log", *args, "--", *command, **kwargs)
        self.assertEqual(p.returncode, status, p.stderr)
        self.message = p.stderr.decode()
        return p.stdout.decode()

    def attempts(self):
        """(key, attempt, outcome, how many keys the command had)"""
        return [(a["key"], a["attempt"], a["outcome"], a.get("keys", 1)) for a in map(json.loads, self.lines("log"))]

    def together(self, *keys):
        """Gives keys to the run that is served, all before the next command starts."""
        self.ask("pause")
        self.ask("add", "-", input="".join(k + "\n" for k in keys))
        self.ask("resume")

    # ---- words -------------------------------------------------------------

    @skipUnless(shutil.which("xargs"), "xargs is not installed")
    def test_as_xargs(self):
        keys = [str(i) for i in range(10)]
        for n in (1, 2, 3, 5, 9, 10, 11, 1000):
            wanted = subprocess.run(["xargs", f"-n{n}", "echo", "x"], input="\n".join(keys).encode(), check=True,
                                    capture_output=True, timeout=rig.PATIENCE).stdout.decode()
            for option in ([f"-n{n}"], ["-n", str(n)], [f"--max-args={n}"]):
                self.assertEqual(self.batch(*option, keys=keys, command=["echo", "x"]), wanted)

    def test_words_are_repeated(self):
        for words, wanted in ((["{}"], "<d/a.x><d/b.y>"),
                              (["-f", "{}", "-g", "{/}", "end"], "<-f><d/a.x><d/b.y><-g><a.x><b.y><end>"),
                              (["--file={}", "{.}{/.}", "{#}{%}"], "<--file=d/a.x><--file=d/b.y><d/aa><d/bb><11>"),
                              (["x", "{#}"], "<x><1><d/a.x><d/b.y>")):
            self.assertEqual(self.batch("-n2", keys=["d/a.x", "d/b.y"], command=["printf", "<%s>", *words]), wanted)

    def test_dry_run(self):
        self.assertEqual(self.batch("-n2", "--dry-run", keys=["a", "b c", "d"], command=["echo", "-{}", "y"]),
                         "echo -a '-b c' y\necho -d y\n")

    def test_environment(self):
        env = {"WQ_KEY": "old", "WQ_KEYS": "7"}
        out = self.batch("-n2", keys=["a", "b", "c"], env=env,
                         command=["sh", "-c", "echo $#; env | grep ^WQ_ | sort", "sh", "{}"])
        self.assertEqual(out.split(), ["2", "WQ_ATTEMPT=1", "WQ_KEYS=2", "WQ_WORKER=1",
                                       "1", "WQ_ATTEMPT=1", "WQ_KEYS=1", "WQ_WORKER=1"])
        out = self.batch("-n1", keys=["a"], env=env, command=["sh", "-c", "env | grep ^WQ_KEY", "sh"])
        self.assertEqual(out, "WQ_KEY=a\n")

    # ---- failures ----------------------------------------------------------

    def test_done_together(self):
        self.batch("-n3", "--summary", keys="a b c d".split(), command=["true"])
        self.assertEqual(self.attempts(), [("a", 1, "done", 3), ("b", 1, "done", 3), ("c", 1, "done", 3),
                                           ("d", 1, "done", 1)])
        self.assertIn("4 to do = 4 done + 0 dead", self.message)
        self.assertIn("4 attempts, 0 failed", self.message)

    BAD = ["sh", "-c", 'case " $* " in *" bad "*) exit $CODE;; esac', "sh", "{}"]

    def test_a_bad_key_does_not_take_others_with_it(self):
        """Exit status 100 of several says nothing about each: it is for good if one alone has it."""
        for code, attempts in (("1", 3), ("100", 2)):
            (self.dir / "dead").unlink(missing_ok=True)
            self.batch("-n4", "--retries=2", "--dead=dead", keys="a bad b c d".split(), command=self.BAD, status=123,
                       env={"CODE": code})
            log = self.attempts()
            self.assertEqual(log[:4], [(k, 1, "retry", 4) for k in "a bad b c".split()])
            self.assertEqual(log[4], ("d", 1, "done", 1))
            self.assertEqual(sorted(log[5:]), sorted([("a", 2, "done", 1), ("b", 2, "done", 1), ("c", 2, "done", 1),
                                                      ("bad", attempts, "dead", 1)] +
                                                     [("bad", 2, "retry", 1)] * (attempts - 2)))
            self.assertEqual(self.lines("dead"), ["bad"])

    def test_failed_keys_and_new_ones_do_not_mix(self):
        """In line again, with others before and behind them, they are alone."""
        self.serve("-j1", "-n10", "--backoff=1h", "--log=log", command=["sh", "-c", '[ {#} = 2 ] || [ "$1" != a ]', "sh", "{}"])
        self.together("a", "b")
        self.until(lambda: self.status()["waiting"] == 2)
        self.ask("pause")
        self.ask("add", "x", "y")
        self.ask("retry", "a", "b")
        self.ask("add", "z")
        self.ask("resume")
        self.ask("wait")
        self.assertEqual(self.attempts()[2:], [("x", 1, "done", 2), ("y", 1, "done", 2), ("a", 2, "done", 1),
                                               ("b", 2, "done", 1), ("z", 1, "done", 1)])

    def test_without_retries_all_die(self):
        self.batch("-n3", "--retries=0", "--dead=dead", keys="a bad b c".split(), command=self.BAD, status=123,
                   env={"CODE": "1"})
        self.assertEqual(self.lines("dead"), ["a", "bad", "b"])
        self.assertEqual(self.attempts()[3:], [("c", 1, "done", 1)])

    def test_halt(self):
        self.batch("-n2", "--retries=0", "--halt=soon,fail=2", "--leftover=left", keys="a bad b c".split(),
                   command=self.BAD, status=123, env={"CODE": "1"})
        self.assertEqual(self.lines("left"), ["b", "c"])

    def test_a_time_out_is_that_of_the_command(self):
        self.batch("-n2", "--retries=forever", "--timeout=200ms", keys=["a", "b"],
                   command=["sh", "-c", "[ {#} != 1 ] || sleep 99", "sh", "{}"])
        self.assertEqual(self.attempts()[:2], [("a", 1, "retry", 2), ("b", 1, "retry", 2)])

    # ---- what fits ---------------------------------------------------------

    def test_longer_than_the_system_takes(self):
        """60 keys of 60,000 bytes are more than a command can be given; no key is lost or comes twice."""
        self.serve("-j1", "-n60", "--log=log",
                   command=["sh", "-c", 'for k; do printf "%.2s " "$k" >>ran; done; echo >>ran', "sh", "{}"])
        keys = [f"{i:02}" + "x" * 60000 for i in range(60)]
        self.together(*keys)
        self.ask("drain")
        lines = [line.split() for line in self.lines("ran")]
        self.assertEqual([k for line in lines for k in line], [k[:2] for k in keys])
        self.assertGreater(min(len(line) for line in lines[:-1]), 9, lines)
        self.assertEqual({outcome for _, _, outcome, _ in self.attempts()}, {"done"})

    def test_a_word_that_is_too_long(self):
        """The key dies, and alone; those behind it are not taken one by one for that."""
        self.serve("-j1", "-n4", "--dead=dead", "--log=log", command=["true", "{}{}{}"])
        keys = ["a", "b", "c" * 60000, *(k * 20000 for k in "defg")]
        self.together(*keys)
        self.ask("drain")
        self.assertEqual(self.run_.wait(), 123)
        self.assertEqual(self.lines("dead"), [keys[2]])
        self.assertIn("the command cannot be started: Argument list too long", self.said())
        self.assertEqual([(k[0], outcome, n) for k, _, outcome, n in self.attempts()],
                         [("a", "done", 2), ("b", "done", 2), ("c", "dead", 1), *((k, "done", 4) for k in "defg")])

    def test_it_does_not_wait_for_more(self):
        p = self.start("run", "-n9", "--", "touch")
        self.give(p, "a", "b")
        self.until_file("a")
        self.until_file("b")
        p.stdin.close()
        self.assertEqual(p.wait(), 0)

    def test_a_rate_is_of_commands(self):
        self.assertEqual(self.batch("-n3", "--rate=1/h", keys=["a", "b", "c"], command=["echo"]), "a b c\n")

    # ---- while it runs -----------------------------------------------------

    def held(self, *args):
        """A command that has a, b and c runs until `go`; it fails if the file `fail` is there."""
        self.fifo("go")
        self.serve("-j1", "-n3", "--log=log", "--backoff=1ms", *args,
                   command=["sh", "-c", 'echo "$@" >>ran; if [ $# = 3 ]; then read x <go; [ ! -e fail ]; fi', "sh", "{}"])
        self.together("a", "b", "c")
        self.until(lambda: self.lines("ran") == ["a b c"])

    def test_it_is_shown(self):
        self.held()
        self.assertEqual(self.status()["running"], 3)
        self.assertEqual(sorted(k["key"] for k in self.ls("--state=running")), ["a", "b", "c"])
        self.assertEqual(sorted(k["key"] for k in self.ls()), ["a", "b", "c"])
        self.assertEqual(len(self.ls("--state=running", "--limit=2")), 2)
        self.let("go")
        self.ask("drain")
        self.assertEqual(self.run_.wait(), 0)

    def test_a_key_that_is_given_meanwhile_comes_again(self):
        self.held()
        self.ask("add", "b", "b", "d")
        self.assertEqual({k["key"]: k["dirty"] for k in self.ls("--state=running")}, {"a": False, "b": True, "c": False})
        self.let("go")
        self.ask("drain")
        self.assertEqual(self.lines("ran"), ["a b c", "d b"])

    def test_keys_that_run_do_not_fill_the_queue(self):
        self.held("--max-queue=3")
        self.ask("add", "d", "e", "f")
        self.assertTrue(self.status()["full"])
        # The next command gets two and does not wait: a fifo cannot tell it from the first one.
        self.ask("cancel", "f")
        self.let("go")
        self.ask("drain")
        self.assertEqual(self.lines("ran"), ["a b c", "d e"])

    def test_cancel(self):
        """Of one: the others are as they were; after a failure it does not come again."""
        self.held()
        self.ask("cancel", "b")
        (self.dir / "fail").touch()
        self.let("go")
        self.ask("drain")
        self.assertEqual(sorted(self.lines("ran")), ["a", "a b c", "c"])
        self.assertEqual(sorted(self.attempts()), [("a", 1, "retry", 3), ("a", 2, "done", 1), ("b", 1, "cancelled", 3),
                                                   ("c", 1, "retry", 3), ("c", 2, "done", 1)])

    def test_cancel_and_kill(self):
        """The others are started again, first in line and in their order; that is no failure of theirs."""
        self.held("--retries=0")
        self.ask("add", "d")
        self.ask("cancel", "--kill", "b")
        self.until(lambda: self.lines("ran") == ["a b c", "a c d"])
        self.let("go")
        self.ask("drain")
        self.assertEqual(self.run_.wait(), 0)
        self.assertEqual(sorted(self.attempts()), [("a", 1, "done", 3), ("a", 1, "stopped", 3), ("b", 1, "cancelled", 3),
                                                   ("c", 1, "done", 3), ("c", 1, "stopped", 3), ("d", 1, "done", 3)])

    def test_stopped(self):
        self.held("--leftover=left")
        self.ask("add", "d")
        self.ask("stop", "--no-wait")
        self.run_.terminate()
        self.assertEqual(self.run_.wait(), 75)
        self.assertEqual(self.lines("left"), ["a", "b", "c", "d"])

    def test_nothing_is_lost(self):
        """Commands fail at random: each key is done or dead, and no command has a key that another has."""
        self.script("cmd", """
            for k; do mkdir "lock.$k" || touch twice; done
            for k; do rmdir "lock.$k"; done
            for k; do case $k in *3) exit 1;; *7) [ {} = 2 ] || exit 1;; esac; done
            for k; do echo "$k" >>worked; done
        """.replace("{}", "$WQ_ATTEMPT"))
        keys = [str(i) for i in range(200)]
        p = self.start("run", "-j3", "-n7", "-q", "--summary", "--retries=1", "--backoff=1ms", "--dead=dead", "--", "./cmd")
        todo = list(keys)
        while todo:
            n = self.random.randint(1, 30)
            self.give(p, *todo[:n])
            del todo[:n]
        p.stdin.close()
        self.assertEqual(p.wait(), 123)
        self.assertIn(b"200 to do = 180 done + 20 dead + 0 cancelled + 0 unfinished", p.stderr.read())
        self.assertFalse((self.dir / "twice").exists())
        self.assertEqual(sorted(self.lines("worked") + self.lines("dead"), key=int), keys)

    # ---- wrong use ---------------------------------------------------------

    def test_wrong_use(self):
        for args, message in ((["-n0"], "--max-args 0: expected a number from 1"),
                              (["-nx"], "--max-args x: expected a number from 1"),
                              (["-n-1"], "--max-args -1: expected a number from 1"),
                              (["--max-args="], "--max-args : expected a number from 1"),
                              (["-n2", "--tag"], "neither --results nor --tag goes with it"),
                              (["-n2", "--results=res"], "neither --results nor --tag goes with it")):
            p = self.wq("run", *args, "--", "touch", "made", input="a\n")
            self.assertEqual((p.returncode, p.stdout), (2, b""), args)
            self.assertIn(message, p.stderr.decode())
        for word in ("{}", "./{/}", "x{%}"):
            p = self.wq("run", "-n2", "--", word, input="a\n")
            self.assertEqual(p.returncode, 2)
            self.assertIn(f"wq: --max-args: {word}: the command's name cannot depend on its keys\n", p.stderr.decode())
        self.assertEqual([f.name for f in self.dir.iterdir()], [])


if __name__ == "__main__":
    main()
