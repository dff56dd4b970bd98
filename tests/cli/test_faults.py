"""What goes wrong around the program: readers that go or stop, full disks, commands that misbehave, and a
machine that has no more of something. Each has a defined end, and no key is lost.
"""
import json
import os
import re
import resource
import signal
import subprocess
import unittest
from pathlib import Path

import rig
from rig import Case, main

MIB = 1 << 20


class Faults(Case):
    def said(self, p, word):
        """Waits for a message with that word; what was said with it and before it is taken."""
        os.set_blocking(p.stderr.fileno(), False)
        text = b""

        def seen():
            nonlocal text
            text += p.stderr.read() or b""
            return word in text
        self.until(seen, f"the message with {word}")
        os.set_blocking(p.stderr.fileno(), True)


class Output(Faults):
    def test_a_reader_that_goes(self):
        p = self.start("run", "-j2", "--leftover", "left", "--log", "log", "--", "echo",
                       stdin=subprocess.PIPE)
        keys = [str(i) for i in range(2000)]
        self.give(p, *keys)
        self.assertIn(p.stdout.readline().decode().strip(), keys)
        p.stdout.close()
        self.assertEqual(p.wait(rig.PATIENCE), 75)
        error = p.stderr.read().decode()
        self.assertIn("wq: standard output: Broken pipe; stopping\n", error)
        done = [a["key"] for a in self.log() if a["outcome"] == "done"]
        self.assertEqual(sorted(done + self.left()), sorted(keys))

    def test_full(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            p = self.start("run", "-j1", "--leftover", "left", "--", "echo", stdout=full)
            self.give(p, "a", "b", "c")
            self.assertEqual(p.wait(rig.PATIENCE), 75)
        self.assertIn(b"standard output: No space left on device; stopping", p.stderr.read())
        self.assertEqual(self.left(), ["b", "c"])

    def test_full_at_the_very_end(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            p = subprocess.run([rig.program, "run", "--", "echo"], input=b"a\n", stdout=full,
                               stderr=subprocess.PIPE, cwd=self.dir, timeout=rig.PATIENCE, check=False)
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"No space left", p.stderr)

    def test_closed_from_the_start(self):
        p = self.wq("run", "--log", "log", "--", "echo", input="a\n", preexec_fn=lambda: os.close(1))
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"standard output: Bad file descriptor", p.stderr)
        self.assertEqual([a["key"] for a in self.log()], ["a"])
        # Who writes nothing does not miss it.
        p = self.wq("run", "--log", "log", "--", "true", input="a\n", preexec_fn=lambda: os.close(1))
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        self.assertEqual(len(self.log()), 2)

    def test_no_standard_error(self):
        p = self.wq("run", "--summary", "--log", "log", "--", "sh", "-c", "echo out; echo err >&2",
                    input="a\n", preexec_fn=lambda: os.close(2))
        self.assertEqual((p.returncode, p.stdout), (1, b"out\n"))
        self.assertEqual([a["outcome"] for a in self.log()], ["done"])

    def test_none_at_all(self):
        def close_all():
            for fd in range(3):
                os.close(fd)

        (self.dir / "keys").write_text("a\nb\n")
        p = subprocess.run([rig.program, "run", "-a", "keys", "--log", "log", "--", "true"], cwd=self.dir,
                           preexec_fn=close_all, timeout=rig.PATIENCE, check=False)
        self.assertEqual(p.returncode, 0)
        self.assertEqual(sorted(a["key"] for a in self.log()), ["a", "b"])

    def test_no_standard_input(self):
        p = self.wq("run", "--", "echo", preexec_fn=lambda: os.close(0))
        self.assertEqual((p.returncode, p.stdout), (1, b""))
        self.assertIn(b"reading keys: Bad file descriptor", p.stderr)

    def test_a_stopped_reader_and_a_signal(self):
        """Output that nobody reads is waited for until --grace is over, and not with the second signal."""
        for grace, signals, both in (("50ms", 1, False), ("1h", 2, False), ("50ms", 1, True)):
            with self.subTest(grace=grace, both=both):
                for name in ("left", "log"):
                    (self.dir / name).unlink(missing_ok=True)
                p = self.start("run", "-j1", "--leftover", "left", "--log", "log", "--grace", grace, "--",
                               "sh", "-c", f"head -c {MIB} /dev/zero",
                               stderr=subprocess.STDOUT if both else subprocess.PIPE)
                self.give(p, "a", "b")
                self.until(lambda: self.lines("log"), "the first end")
                p.send_signal(signal.SIGTERM)
                # It comes before the output has gone.
                self.until_file("left")
                if signals == 2:
                    p.send_signal(signal.SIGTERM)
                self.assertEqual(p.wait(rig.PATIENCE), 75)
                self.assertEqual(self.left(), ["b"])
                if not both:
                    self.assertIn(b"standard output has no reader", p.stderr.read())

    def test_a_slow_reader_gets_all(self):
        p = self.start("run", "-j2", "--", "sh", "-c", f"head -c {MIB} /dev/zero")
        self.give(p, "a", "b", "c", "d")
        p.stdin.close()
        n = 0
        while data := os.read(p.stdout.fileno(), 1000):
            n += len(data)
        self.assertEqual((n, p.wait(rig.PATIENCE)), (4 * MIB, 0))

    def flood(self, size, *options):
        """Two commands that write so much, a reader that comes late, and the memory of the program."""
        p = self.start("run", "-j2", *options, "--", "sh", "-c", f"head -c {size} /dev/zero | tr '\\0' '\\n'")
        self.give(p, "a", "b")
        n = 0
        while n < 2 * size:
            n += len(os.read(p.stdout.fileno(), MIB))
        status = Path(f"/proc/{p.pid}/status").read_text()
        p.stdin.close()
        self.assertEqual(p.wait(rig.PATIENCE), 0)
        peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
        print(f"  {2 * size // MIB} MiB through {peak // MIB} MiB", flush=True)
        if not rig.is_sanitized():
            self.assertLess(peak, 64 * MIB)

    def test_a_flood_by_lines(self):
        self.flood(512 * MIB, "--line-buffer")

    def test_a_flood_that_is_kept(self):
        """It goes to a file; a gigabyte of it only where time is no matter."""
        self.flood((512 if rig.long else 64) * MIB)

    def test_a_command_that_closes_its_output(self):
        self.fifo("go")
        p = self.start("run", "--log", "log", "--", "sh", "-c",
                       "echo first; exec >&- 2>&-; : >up; read x <go; exit 100")
        self.give(p, "a")
        p.stdin.close()
        self.until_file("up")
        self.assertEqual(self.log(), [])
        self.let("go")
        self.assertEqual((p.stdout.read(), p.wait(rig.PATIENCE)), (b"first\n", 123))
        self.assertEqual([a["exit"] for a in self.log()], [100])


class Disk(Faults):
    def test_no_room_for_the_log(self):
        p = self.wq("run", "-j1", "--log", "/dev/full", "--", "echo", input="a\nb\nc\n")
        self.assertEqual((p.returncode, p.stdout), (1, b"a\nb\nc\n"))
        self.assertEqual(p.stderr, b"wq: /dev/full: no space left; lines are kept in memory until it can be written\n"
                         b"wq: /dev/full: no space left: 3 of 3 lines are missing\n")

    def test_the_log_fills_the_disk(self):
        log = self.tiny() / "log"
        keys = [f"{i:0200}" for i in range(1000)]
        p = self.wq("run", "--log", str(log), "--", "echo", input="\n".join(keys))
        self.assertEqual(p.returncode, 1)
        self.assertEqual(sorted(p.stdout.decode().split()), keys)
        missing = int(re.search(rb"log: no space left: (\d+) of 1000 lines are missing\n", p.stderr)[1])
        lines = log.read_text().split("\n")
        self.assertEqual(lines.pop(), "")
        self.assertGreater(len(lines), 100)
        self.assertEqual(len(lines) + missing, 1000)
        for line in lines:
            json.loads(line)

    def test_a_file_that_must_not_grow(self):
        """ulimit -f: an error like others, for all that is written; commands are ended by it as ever."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        keys = [f"{i:0200}" for i in range(50)]
        with open(self.dir / "out", "wb") as out:
            p = subprocess.run([rig.program, "run", "--log", "log", "--leftover", "left", "--", "echo"],
                               input="\n".join(keys).encode(), stdout=out, stderr=subprocess.PIPE,
                               cwd=self.dir, preexec_fn=limit, timeout=rig.PATIENCE, check=False)
        self.assertEqual(p.returncode, 75, p.stderr)
        self.assertRegex(p.stderr, rb"log: File too large: \d+ of \d+ lines are missing")
        self.assertIn(b"standard output: File too large", p.stderr)
        p = self.wq("run", "--retries", "0", "--log", "log2", "--", "sh", "-c",
                    "exec head -c 9999 /dev/zero >file", input="a\n", preexec_fn=limit)
        self.assertEqual(p.returncode, 123)
        self.assertEqual(json.loads(self.lines("log2")[0])["signal"], signal.SIGXFSZ)

    def test_no_room_for_results(self):
        folder = self.tiny() / "results"
        folder.mkdir()
        self.fill(folder.parent)
        p = self.wq("run", "-j1", "--results", str(folder), "--", "true", input="a\nb\n")
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertEqual(p.stderr.count(b"its attempt.json cannot be written: no space left"), 2)

    def test_no_room_for_folders_of_results(self):
        """The command is not run where its output would be lost: it waits for room."""
        folder = self.tiny("64k,nr_inodes=3") / "results"
        folder.mkdir()
        (folder.parent / "fill").touch()
        p = self.start("run", "-j1", "--results", str(folder), "--retries", "0", "--log", "log", "--", "true")
        self.give(p, "a")
        self.said(p, b"No space left on device; no command is started until results can be kept there")
        self.assertEqual(self.log(), [])
        subprocess.run(["mount", "-o", "remount,nr_inodes=100", folder.parent], check=True)
        p.stdin.close()
        self.assertEqual(p.wait(rig.PATIENCE), 0)
        self.assertEqual([a["outcome"] for a in self.log()], ["done"])

    def test_no_room_for_the_dead(self):
        p = self.wq("run", "--dead", "/dev/full", "--", "sh", "-c", "exit 100", input="a key\n")
        self.assertEqual(p.returncode, 123)
        self.assertIn(b"/dev/full: no space left: 0 of 1 dead keys saved, 1 printed below\na key\n", p.stderr)

    def stop_with(self, leftover, keys):
        self.fifo("go")
        p = self.start("run", "-j1", "--leftover", leftover, "--", "sh", "-c", ": >up; read x <go")
        self.give(p, *keys)
        self.until_file("up")
        p.send_signal(signal.SIGTERM)
        self.said(p, b"once more")
        self.let("go")
        self.assertEqual(p.wait(rig.PATIENCE), 75)
        return p.stderr.read().decode()

    def test_what_is_left_goes_nowhere(self):
        self.assertIn("/dev/full: no space left: 0 of 1 keys saved, 1 printed below\nb\n",
                      self.stop_with("/dev/full", ["a", "b"]))

    def spilled(self, env=None, **kwargs):
        p = self.wq("run", "-j1", "--", "sh", "-c", f"head -c {MIB} /dev/zero; echo $0", input="a\nb\n",
                    env=env, **kwargs)
        self.assertEqual(p.returncode, 1)
        self.assertEqual(p.stderr.count(b"part of its output is lost"), 2, p.stderr)
        self.assertLess(len(p.stdout), 2 * MIB)
        return p.stderr

    def test_no_room_for_output(self):
        self.assertIn(b"a: part of its output is lost: No space left on device",
                      self.spilled(env={"TMPDIR": str(self.tiny())}))

    def test_no_folder_for_output(self):
        self.assertIn(b"a: part of its output is lost: No such file or directory",
                      self.spilled(env={"TMPDIR": str(self.dir / "nowhere")}))

    def test_a_named_pipe_without_a_writer(self):
        """It is waited for, but signals are heard; and then it works."""
        self.fifo("keys")
        p = self.start("run", "-v", "-a", "keys", "--log", "log", "--", "echo")
        self.until(lambda: self.dir.joinpath("log").exists(), "the start")
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(rig.PATIENCE), 0)
        p = self.start("run", "-a", "keys", "--", "echo")
        with open(self.dir / "keys", "w", encoding="ascii") as f:
            f.write("a\nb")
        self.assertEqual((sorted(p.stdout.read().split()), p.wait(rig.PATIENCE)), ([b"a", b"b"], 0))


class Commands(Faults):
    def test_one_that_ignores_the_end(self):
        # From the start: with a trap of its own it could be ended before it has that.
        p = self.wq("run", "--timeout", "20ms", "--kill-after", "20ms", "--retries", "0", "--log", "log", "--",
                    "sh", "-c", "exec sleep 1000", input="a\n", preexec_fn=rig.deaf)
        self.assertEqual(p.returncode, 123)
        self.assertIn(b"a: timed out in attempt 1, and is dead", p.stderr)
        log, = self.log()
        self.assertEqual((log["signal"], log["timed_out"]), (signal.SIGKILL, True))

    def test_one_that_ignores_the_second_signal(self):
        p = self.start("run", "--retries", "0", "--grace", "20ms", "--leftover", "left", "--", "sh", "-c",
                       "trap '' TERM; : >up; exec sleep 1000")
        self.give(p, "a")
        self.until_file("up")
        p.send_signal(signal.SIGTERM)
        self.said(p, b"once more")
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(rig.PATIENCE), 75)
        self.assertEqual(self.left(), ["a"])

    def test_the_third_signal_does_not_wait(self):
        p = self.start("run", "--grace", "1h", "--leftover", "left", "--", "sh", "-c",
                       "trap '' TERM; : >up; exec sleep 1000")
        self.give(p, "a")
        self.until_file("up")
        for word in (b"once more", b"once more", b"left"):
            p.send_signal(signal.SIGINT)
            self.said(p, word)
        self.assertEqual(p.wait(rig.PATIENCE), 75)

    def test_grandchildren_end_with_the_command(self):
        p = self.wq("run", "--", "sh", "-c", "sleep 1000 & echo $!", input="a\n")
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        self.assertFalse(rig.is_there(int(p.stdout)))

    def test_grandchildren_that_ignore_it_are_killed(self):
        p = self.wq("run", "--kill-after", "20ms", "--", "sh", "-c", "(trap '' TERM; : >up; exec sleep 1000) & echo $!;"
                    "while [ ! -e up ]; do :; done", input="a\n")
        self.assertEqual((p.returncode, p.stderr), (0, b"wq: a: what the command left behind is killed\n"))
        self.assertFalse(rig.is_there(int(p.stdout)))

    def test_a_run_that_is_held_up(self):
        """What is late is late: who is left has the whole time between SIGTERM and SIGKILL, and to go after that."""
        late = self.dir / "late"
        late.touch()
        p = self.start("run", "--kill-after=1h", "--", "sh", "-c",
                       "(trap ': >termed' TERM; : >up; while :; do sleep .01; done) 2>/dev/null & "
                       "while [ ! -e up ]; do :; done; echo $$ >pid.new; mv pid.new pid",
                       env=self.shim(f"clock:0:{late}"))
        self.give(p, "a")
        p.stdin.close()
        self.until_file("pid")
        self.until(lambda: not os.path.exists(f"/proc/{self.lines('pid')[0]}"), "the end of the command")
        os.truncate(late, 2 * 3600)
        self.until_file("termed")
        os.truncate(late, 4 * 3600)
        self.assertEqual(p.wait(rig.PATIENCE), 0)
        self.assertEqual(p.stderr.read(), b"wq: a: what the command left behind is killed\n")

    def test_the_key_is_held_until_they_are_gone(self):
        """Given again meanwhile, it does not run beside what its first command left."""
        p = self.start("run", "-j2", "--kill-after", "100ms", "--", "sh", "-c",
                       "[ -e pid ] && { kill -0 $(cat pid) 2>&1 && echo beside; echo second; exit; };"
                       "sh -c 'trap \"\" TERM; echo $$ >pid.new; mv pid.new pid; exec sleep 1000' &"
                       "while [ ! -e pid ]; do :; done; echo first")
        self.give(p, "a")
        self.until_file("pid")
        self.give(p, "a")
        p.stdin.close()
        self.assertEqual(p.wait(rig.PATIENCE), 0)
        out = p.stdout.read().decode()
        self.assertTrue(out.startswith("first\n"), out)
        self.assertTrue(out.endswith("second\n"), out)
        self.assertNotIn("beside", out)
        self.assertIn(b"what the command left behind is killed", p.stderr.read())

    def test_who_leaves_the_group_survives(self):
        """Even with our pipe in its hands: its end is not waited for."""
        p = self.wq("run", "--", "sh", "-c",
                    "setsid sh -c 'echo $$ >pid.new; mv pid.new pid; exec sleep 1000' &"
                    "while [ ! -e pid ]; do :; done; echo started", input="a\n")
        pid = int(self.lines("pid")[0])
        try:
            self.assertEqual((p.returncode, p.stdout, p.stderr), (0, b"started\n", b""))
            self.assertTrue(rig.is_there(pid))
        finally:
            os.kill(pid, signal.SIGKILL)

    def test_one_that_stops_itself(self):
        p = self.wq("run", "--timeout", "20ms", "--kill-after", "1h", "--retries", "0", "--log", "log", "--", "sh",
                    "-c", "kill -STOP $$", input="a\n")
        self.assertEqual(p.returncode, 123)
        log, = self.log()
        self.assertEqual((log["signal"], log["timed_out"]), (signal.SIGTERM, True))

    def test_one_that_is_ended_by_a_signal(self):
        p = self.wq("run", "--retries", "1", "--backoff", "1ms", "-v", "--log", "log", "--", "sh", "-c", "kill -SEGV $$",
                    input="a\n")
        self.assertEqual(p.returncode, 123)
        self.assertIn(b"a: was ended by signal 11 (Segmentation fault) in attempt 1\n", p.stderr)
        self.assertEqual([(a["signal"], a["exit"]) for a in self.log()], [(11, None), (11, None)])

    def test_signals_are_as_they_were(self):
        """What we block and ignore is not so for the commands."""
        command = ["sh", "-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status"]

        def masks(text):
            # posix_spawn() has the C library's own signals, 32 and 33, ignored.
            return [int(line.split()[1], 16) & ~(3 << 31) for line in text.decode().splitlines()]

        expected = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
        p = self.wq("run", "--", *command, input="a\n")
        self.assertEqual(masks(p.stdout), masks(expected))


class Machine(Faults):
    def test_no_descriptors(self):
        """Fewer commands at once, but all keys are done at their first attempt."""
        keys = [str(i) for i in range(200)]
        p = self.wq("run", "-j50", "--summary", "--", "echo", input="\n".join(keys),
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)))
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn(b"wq: 200 attempts, 0 failed", p.stderr)
        self.assertEqual(p.stderr.count(b"commands can run at once: Too many open files"), 1)
        self.assertEqual(sorted(p.stdout.decode().split()), sorted(keys))

    @unittest.skipIf(os.getuid() != 0, "needs another user")
    def test_no_processes(self):
        """The same with a limit of processes, as a user of whom there are none."""
        uid = 54321 + os.getpid() % 1000

        def become():
            resource.setrlimit(resource.RLIMIT_NPROC, (6, 6))
            os.setgid(uid)
            os.setuid(uid)

        p = self.start("run", "-j30", "--summary", "--", "/bin/true", preexec_fn=become)
        self.give(p, *[str(i) for i in range(200)])
        out, error = p.communicate(timeout=rig.PATIENCE)
        self.assertEqual((p.returncode, out), (0, b""), error)
        self.assertIn(b"200 done + 0 dead", error)
        self.assertIn(b"commands can run at once: Resource temporarily unavailable", error)

    def test_no_memory(self):
        if rig.is_sanitized():
            self.skipTest("the sanitizer needs all addresses there are")
        keys = b"".join(b"%d" % i + b"x" * 60000 + b"\n" for i in range(2000))
        p = self.wq("run", "-j1", "--summary", "--", "sh", "-c", ":", input=keys,
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (40 * MIB, 40 * MIB)))
        text = p.stderr.decode()
        self.assertEqual(p.returncode, 1, text[-1000:])
        self.assertIn(": out of memory\n", text)
        # Keys for which there is no room are refused, and named; the others are done.
        refused, todo = map(int, re.search(r"2000 given = 0 merged \+ (\d+) refused \+ (\d+) to do", text).groups())
        self.assertGreater(refused, 0)
        self.assertEqual(text.count(": out of memory\n"), refused)
        self.assertIn(f"{todo} to do = {todo} done", text)


if __name__ == "__main__":
    main()
