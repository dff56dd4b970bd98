"""-k: output in the order in which keys were given."""
import os
import select
import signal
from pathlib import Path

from rig import main
from served import Served


class KeepOrder(Served):
    # Ends when its own fifo lets it go; fails if a file says so.
    SLOW = ["sh", "-c", 'read x <"go.$1"; echo "out $1"; echo "err $1" >&2; [ ! -e "fail.$1" ]', "sh", "{}"]

    def ended(self, n):
        self.until(lambda: len(self.lines("log")) >= n, f"the end of {n} commands")

    def slow(self, *keys, options=()):
        for k in set(keys):
            self.fifo(f"go.{k}")
        p = self.start("run", "-k", "-q", "-j8", "--log=log", "--backoff=1ms", *options, "--", *self.SLOW)
        self.give(p, *keys)
        return p

    def is_silent(self, *files):
        """What was to be written has been: the log of the same command is written later."""
        return select.select(files, [], [], 0)[0] == []

    def test_the_order_of_the_input(self):
        p = self.slow("a", "b", "c", "d")
        for n, k in enumerate("dcb", 1):
            self.let(f"go.{k}")
            self.ended(n)
        self.assertTrue(self.is_silent(p.stdout, p.stderr))
        self.let("go.a")
        for k in "abcd":
            self.assertEqual(p.stdout.readline().decode(), f"out {k}\n")
            self.assertEqual(p.stderr.readline().decode(), f"err {k}\n")
        p.stdin.close()
        self.assertEqual(p.wait(), 0)

    def test_it_does_not_wait_longer(self):
        """As soon as all before it are over, though others run."""
        p = self.slow("a", "b", "c", "d")
        self.let("go.b")
        self.ended(1)
        self.let("go.a")
        self.assertEqual([p.stdout.readline() for _ in "ab"], [b"out a\n", b"out b\n"])
        self.let("go.c")
        self.assertEqual(p.stdout.readline(), b"out c\n")
        self.let("go.d")
        self.assertEqual(p.stdout.readline(), b"out d\n")
        p.stdin.close()
        self.assertEqual(p.wait(), 0)

    def test_retries(self):
        """All attempts have the place of the key; those of the first are shown at once."""
        (self.dir / "fail.a").touch()
        (self.dir / "fail.b").touch()
        p = self.slow("a", "b", "c", options=("--retries=1",))
        self.let("go.b")
        self.ended(1)
        self.let("go.c")
        self.ended(2)
        self.assertTrue(self.is_silent(p.stdout))
        self.let("go.a")
        self.assertEqual(p.stdout.readline(), b"out a\n")
        (self.dir / "fail.b").unlink()
        self.let("go.b")
        self.ended(4)
        self.assertTrue(self.is_silent(p.stdout))
        self.let("go.a")
        self.assertEqual([p.stdout.readline() for _ in range(4)], [b"out a\n", b"out b\n", b"out b\n", b"out c\n"])
        p.stdin.close()
        self.assertEqual(p.wait(), 123)

    def test_its_turn_comes_between_attempts(self):
        """What it wrote before is shown then; it waits for its next attempt."""
        (self.dir / "fail.b").touch()
        p = self.slow("a", "b", options=("--backoff=1h",))
        self.let("go.b")
        self.ended(1)
        self.let("go.a")
        self.assertEqual([p.stdout.readline() for _ in "ab"], [b"out a\n", b"out b\n"])
        p.terminate()
        self.assertEqual(p.wait(), 75)

    def test_at_random(self):
        """Commands of many lengths, some fail and some have keys that are given again."""
        keys = [f"{i} {self.random.randint(0, 3000)} {self.random.choice((0, 0, 1, 2, 9))}" for i in range(150)]
        p = self.wq("run", "-k", "-q", "-j5", "--retries=2", "--backoff=1ms", "--", "sh", "-c",
                    'set -- $1; i=0; while [ $i -lt $2 ]; do i=$((i+1)); done; echo $1; [ {#} -gt $3 ]', "sh", "{}",
                    input="".join(k + "\n" for k in keys))
        wanted = [i for k in keys for i in [k.split()[0]] * min(3, 1 + int(k.split()[2]))]
        self.assertEqual(p.stdout.decode().split(), wanted)
        self.assertEqual(p.returncode, 123)

    # ---- given again -------------------------------------------------------

    def served(self, *keys):
        for k in keys:
            self.fifo(f"go.{k}")
        with open(self.dir / "shown", "wb") as out:
            self.serve("-k", "-q", "-j8", "--log=log", "--backoff=1ms", stdout=out,
                       command=["sh", "-c", 'read x <"go.$1"; echo "$1{#}"; [ ! -e "fail.$1" ]', "sh", "{}"])
        for k in keys:
            self.ask("add", k)

    def shows(self, *shown):
        self.until(lambda: self.lines("shown") == list(shown), shown)

    def ends(self, *shown):
        self.ask("drain")
        self.assertEqual(self.lines("shown"), list(shown))

    def test_given_while_it_runs(self):
        """It has a place of its own, behind those that were given before."""
        self.served("a", "b")
        self.ask("add", "a")
        self.let("go.a")
        self.ended(1)
        self.assertEqual(self.lines("shown"), ["a1"])
        self.let("go.a")
        self.ended(2)
        self.assertEqual(self.lines("shown"), ["a1"])
        self.let("go.b")
        self.ends("a1", "b1", "a1")

    def test_given_while_it_runs_and_fails(self):
        """Both are one then, at the first place."""
        self.served("a", "b", "c")
        (self.dir / "fail.a").touch()
        self.ask("add", "a", "a")
        self.fifo("go.d")
        self.ask("add", "d")
        self.let("go.b")
        self.let("go.c")
        self.ended(2)
        self.let("go.a")
        self.ended(3)
        (self.dir / "fail.a").unlink()
        self.assertEqual(self.lines("shown"), ["a1"])
        self.let("go.a")
        self.shows("a1", "a2", "b1", "c1")
        # Nothing is before it any more.
        self.let("go.d")
        self.shows("a1", "a2", "b1", "c1", "d1")
        self.ends("a1", "a2", "b1", "c1", "d1")

    def test_cancelled(self):
        """In line, while it runs and comes again, and with its command."""
        self.served("a", "b", "c")
        self.ask("pause")
        self.fifo("go.d")
        self.ask("add", "x", "d", "b", "y")
        for k in "cb":
            self.let(f"go.{k}")
        self.ended(2)
        self.ask("cancel", "x", "y")
        self.ask("cancel", "--kill", "a")
        self.shows("b1", "c1")
        self.ask("cancel", "b")
        self.ask("resume")
        self.let("go.d")
        self.ends("b1", "c1", "d1")

    def test_cancelled_while_it_comes_again(self):
        self.served("a", "b")
        self.ask("add", "a")
        self.fifo("go.c")
        self.ask("add", "c")
        self.ask("cancel", "a")
        for n, k in enumerate("cba", 1):
            self.let(f"go.{k}")
            self.ended(n)
        self.ends("a1", "b1", "c1")

    def test_a_dead_key_that_is_tried_again(self):
        """It is given anew, and has a new place."""
        for k in "ab":
            self.fifo(f"go.{k}")
        with open(self.dir / "shown", "wb") as out:
            self.serve("-k", "-q", "-j2", "--log=log", "--retries=0", stdout=out,
                       command=["sh", "-c", 'read x <"go.$1"; echo "$1"; [ ! -e "fail.$1" ]', "sh", "{}"])
        (self.dir / "fail.a").touch()
        self.ask("add", "a", "b")
        self.let("go.a")
        self.until(lambda: self.status()["dead"] == 1)
        (self.dir / "fail.a").unlink()
        self.ask("retry", "a")
        self.let("go.a")
        self.ended(2)
        self.assertEqual(self.lines("shown"), ["a"])
        self.let("go.b")
        self.ends("a", "b", "a")

    def test_merged(self):
        (self.dir / "keys").write_text("a\nb\na\nc\nb\n")
        p = self.wq("run", "-k", "-j4", "-akeys", "--", "echo")
        self.assertEqual(p.stdout, b"a\nb\nc\n")

    def test_several_keys_a_command(self):
        """They have the place of the first."""
        (self.dir / "keys").write_text("".join(f"{i}\n" for i in range(40)))
        self.fifo("go.0")
        p = self.start("run", "-k", "-n3", "-j4", "-akeys", "--log=log", "--", "sh", "-c",
                       '[ "$1" != 0 ] || read x <go.0; echo "$@"', "sh", "{}")
        self.ended(37)
        self.assertTrue(self.is_silent(p.stdout))
        self.let("go.0")
        self.assertEqual(p.stdout.read().split(), [str(i).encode() for i in range(40)])
        self.assertEqual(p.wait(), 0)

    def test_the_first_of_several_keys(self):
        """It need not be the first argument: a key that comes again has been given before."""
        for k in "amb":
            self.fifo(f"go.{k}")
        with open(self.dir / "shown", "wb") as out:
            self.serve("-k", "-n2", "-j2", stdout=out, command=["sh", "-c", 'read x <"go.$1"; echo "$*"', "sh", "{}"])
        self.ask("add", "a")
        self.until(lambda: self.status()["running"] == 1)
        self.ask("add", "a", "m")
        self.until(lambda: self.status()["running"] == 2)
        self.ask("add", "b")
        self.let("go.a")
        self.let("go.b")
        self.shows("a", "b a")
        self.let("go.m")
        self.ends("a", "b a", "m")

    # ---- much of it --------------------------------------------------------

    def blocked(self, *args, command, env=None):
        """The first key is held up; the others run."""
        self.fifo("go.0")
        return self.start("run", "-k", "-j4", "--log=log", *args, "--", "sh", "-c",
                          f'[ "$1" != 0 ] || {{ read x <go.0; exit; }}; {command}', "sh", "{}", env=env)

    def peak(self, p):
        """Its memory so far, in KiB."""
        text = Path(f"/proc/{p.pid}/status").read_text(encoding="ascii")
        return int(next(line.split()[1] for line in text.splitlines() if line.startswith("VmHWM")))

    def on_disk(self, p):
        """The bytes of its files that have no name."""
        folder = Path(f"/proc/{p.pid}/fd")
        return sum((folder / fd).stat().st_size for fd in os.listdir(folder)
                   if os.readlink(folder / fd).endswith(" (deleted)"))

    def test_memory_and_descriptors_are_bounded(self):
        """136 MB are kept: some in many small outputs, some in files of their own. All of it is given back."""
        p = self.blocked(command='case $1 in *7) n=1000;; *) n=40;; esac; yes "$1" | head -c ${n}000')
        self.until_file("log")  # it is set up
        before = self.peak(p)
        keys = [str(i) for i in range(1000)]
        self.give(p, *keys)
        self.ended(999)
        self.assertGreater(self.on_disk(p), 80 << 20)
        self.assertLess(self.peak(p), before + 24000)  # a sanitizer has some of its own
        self.assertLess(len(os.listdir(f"/proc/{p.pid}/fd")), 60)
        self.assertTrue(self.is_silent(p.stdout))
        self.let("go.0")
        for k in keys[1:]:
            n = 1000000 if k.endswith("7") else 40000
            piece = p.stdout.read(n)
            self.assertEqual(piece, ((k + "\n").encode() * n)[:n], k)
        self.until(lambda: self.on_disk(p) == 0, "the end of all files")
        p.stdin.close()
        self.assertEqual((p.stdout.read(), p.wait()), (b"", 0))
        self.assertEqual(sorted(os.listdir(self.dir)), ["go.0", "log"])

    def test_no_more_keys_are_taken_than_fit(self):
        """Output that is kept counts; what is in line goes on, and so the first is reached."""
        self.fifo("go.0")
        with open(self.dir / "shown", "wb") as out:
            self.serve("-k", "-j4", "--max-queue=10", stdout=out,
                       command=["sh", "-c", '[ "$1" != 0 ] || read x <go.0; echo "$1"', "sh", "{}"])
        (self.dir / "keys").write_text("".join(f"{i}\n" for i in range(50)))
        with open(self.dir / "keys", "rb") as keys:
            giving = self.start("add", "-s", "./s", "-", stdin=keys)
        status = self.until(lambda: (s := self.status())["full"] and s["running"] == 1 and s["queued"] == 0 and s)
        # Those of the other three that ran when it was full are beyond it.
        self.assertIn(status["done"], range(10, 14))
        self.let("go.0")
        self.assertEqual(self.finish(giving), (0, ""))
        self.ends(*map(str, range(50)))

    def test_a_slow_reader(self):
        p = self.blocked(command='yes "$1" | head -c 100000')
        self.give(p, *map(str, range(100)))
        p.stdin.close()
        self.ended(99)
        self.let("go.0")
        out = []
        while piece := os.read(p.stdout.fileno(), 1000):
            out.append(piece)
        self.assertEqual(b"".join(out), b"".join((b"%d\n" % i * 100000)[:100000] for i in range(1, 100)))
        self.assertEqual(p.wait(), 0)

    def test_no_place_for_it(self):
        p = self.blocked(command="head -c 200000 /dev/zero", env={"TMPDIR": "/no/where"})
        self.give(p, *map(str, range(20)))
        p.stdin.close()
        self.ended(19)
        self.let("go.0")
        out = p.stdout.read()
        self.assertEqual(p.wait(), 1)
        # What was in memory is there.
        self.assertEqual(len(out) // 200000, 5)
        self.assertEqual(p.stderr.read().count(b": part of its output is lost: No such file or directory\n"), 14)

    # ---- the end -----------------------------------------------------------

    def test_a_stop_shows_all(self):
        p = self.slow("a", "b", "c", "d", options=("--leftover=left",))
        self.let("go.d")
        self.ended(1)
        self.let("go.b")
        self.ended(2)
        p.send_signal(signal.SIGQUIT)
        self.assertEqual(p.stdout.read(), b"out b\nout d\n")
        self.assertEqual(p.wait(), 75)
        self.assertEqual(sorted(self.lines("left")), ["a", "c"])

    def test_dry_run(self):
        p = self.wq("run", "-k", "--dry-run", "--", "echo", input="b\na\n")
        self.assertEqual((p.returncode, p.stdout), (0, b"echo b\necho a\n"))

    def test_wrong_use(self):
        for more in ("--line-buffer", "--results=res"):
            for option in ("-k", "--keep-order"):
                p = self.wq("run", option, more, "--", "touch", "made", input="a\n")
                self.assertEqual((p.returncode, p.stdout), (2, b""))
                self.assertIn("--keep-order shows outputs one after another: neither --results nor --line-buffer goes "
                              "with it\n", p.stderr.decode())
        self.assertEqual(os.listdir(self.dir), [])


if __name__ == "__main__":
    main()
