"""What outlives what: commands and the run, and what a command leaves behind."""
import os
import re
import shlex
import signal
import uuid
from pathlib import Path

import rig
from rig import Case, main


# Half a second of the program is half a minute: a busy machine may need some of it.
SLOWLY = "clock:60:/nowhere"


class Outlive(Case):
    def setUp(self):
        super().setUp()
        self.mark = uuid.UUID(int=self.random.getrandbits(128)).hex
        self.env["OUTLIVE_MARK"] = self.mark
        self.addCleanup(self.end_all)

    def there(self):
        """All processes of this test that run, whoever their parent is."""
        mark = f"OUTLIVE_MARK={self.mark}".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (path / "environ").read_bytes().split(b"\0"):
                    found.append(int(path.name))
            except OSError:
                pass
        return found

    def until_there(self, n):
        """One that is executing, or about to, is not seen, or seen twice."""
        self.until(lambda: len(self.there()) == n, f"{n} processes")

    def end_all(self):
        for pid in self.there():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


class Killed(Outlive):
    """The run is killed by SIGKILL: its commands must not work on beside those of the next run."""

    def test_commands_end_with_it(self):
        p = self.start("run", "-j3", "--", "sh", "-c", "touch up{}; exec sleep 1000")
        self.give(p, "1", "2", "3")
        for i in "123":
            self.until_file("up" + i)
        p.kill()
        p.wait()
        self.until(lambda: not self.there(), "the end of the commands")

    def test_one_that_ignores_signals(self):
        p = self.start("run", "--", "sh", "-c", "trap '' TERM HUP INT; touch up; while :; do read x <hang; done")
        self.fifo("hang")
        self.give(p, "a")
        self.until_file("up")
        p.kill()
        p.wait()
        self.until(lambda: not self.there(), "the end of the command")

    def test_at_any_moment(self):
        for _ in range(20):
            p = self.start("run", "-j40", "--", "sleep", "1000")
            self.give(p, *map(str, range(40)))
            wanted = self.random.randrange(40)
            self.until(lambda: len(self.there()) > wanted, "some commands")
            p.kill()
            p.wait()
            self.until(lambda: not self.there(), "the end of the commands")

    def test_before_the_command_could_ask_for_its_end(self):
        p = self.start("run", "--", "touch", "ran", env=self.shim("orphan"))
        self.give(p, "a")
        self.assertEqual(p.wait(rig.PATIENCE), -signal.SIGKILL)
        self.until(lambda: not self.there(), "the end of the command")
        self.assertFalse((self.dir / "ran").exists())

    def test_an_ordinary_end_kills_nobody(self):
        """What left the group is not the run's any more."""
        p = self.wq("run", "--", "sh", "-c",
                    "setsid sh -c 'touch up; exec sleep 1000' >/dev/null 2>&1 & while [ ! -e up ]; do :; done",
                    input="a\n")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.until_there(1)


class Detached(Outlive):
    """What wq(1) says about processes that are to outlive their command."""

    def manual(self):
        """The command line that wq(1) shows for it."""
        text = (Path(__file__).parents[2] / "man/wq.1").read_text()
        line, = re.findall(r"^wq run -- (sh -c 'setsid .*)$", text, re.M)
        return shlex.split(line)

    def test_as_the_manual_says(self):
        self.script("server", 'exec sleep 1000')
        for jobs in ("-j1", "-j4"):
            p = self.wq("run", jobs, "--", *self.manual(), input="\n".join(map(str, range(10))), env=self.shim(SLOWLY))
            self.assertEqual((p.returncode, p.stdout, p.stderr), (0, b"", b""))
            self.until_there(10)
            self.end_all()
            self.until(lambda: not self.there(), "their end")

    def test_setsid_forks(self):
        p = self.wq("run", "--", "setsid", "-f", "sleep", "1000", input="1000\n1001\n", env=self.shim(SLOWLY))
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        self.until_there(2)

    def test_who_stays_is_terminated(self):
        p = self.wq("run", "--kill-after=1h", "--", "sh", "-c", "sleep 1000 & sleep 1000 & echo $!", input="a\n")
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        self.assertEqual(self.there(), [])

    def test_who_stays_has_no_time_if_the_run_stops(self):
        """The second signal ends what lingers, too."""
        p = self.start("run", "--grace=1h", "--", "sh", "-c",
                       "sh -c 'trap \"echo ended >ended; exit\" TERM; touch up; while :; do sleep .01; done' &"
                       "while [ ! -e up ]; do :; done; sleep 1000")
        self.give(p, "a")
        self.until_file("up")
        for said in (b"stopping", b"terminating"):
            p.terminate()
            self.assertIn(said, p.stderr.readline())
        self.assertEqual(p.wait(rig.PATIENCE), 75)
        self.assertEqual((self.lines("ended"), self.there()), (["ended"], []))

    def test_who_is_left_behind_has_no_time_if_the_run_stops(self):
        """The command has ended, and half a second for the rest of its group has begun, which the clock never ends."""
        p = self.start("run", "--grace=1h", "--", "sh", "-c",
                       "sh -c 'trap \"echo ended >ended; exit\" TERM; touch up; while :; do sleep .01; done' &"
                       "while [ ! -e up ]; do :; done; echo $$ >pid.new; mv pid.new pid",
                       env=self.shim("clock:1000000:/nowhere"))
        self.give(p, "a")
        self.until_file("pid")
        pid = int((self.dir / "pid").read_text())
        self.until(lambda: not Path(f"/proc/{pid}").exists(), "the end of the command")
        for said in (b"stopping", b"terminating"):
            p.terminate()
            self.assertIn(said, p.stderr.readline())
        self.assertEqual(p.wait(rig.PATIENCE), 0)
        self.assertEqual((self.lines("ended"), self.there()), (["ended"], []))


if __name__ == "__main__":
    main()
