"""Wrong use is told with what to do, and nothing is done; right use is what the help says."""
import itertools
import os
import re
import subprocess
import time
from pathlib import Path

from rig import Case, main

SOURCE = Path(__file__).resolve().parents[2] / "cli" / "options.c"


class Wrong(Case):
    def wrong(self, message, *args, more="wq: see 'wq help run'\n"):
        p = self.wq(*args, input="a\n")
        self.assertEqual((p.returncode, p.stdout), (2, b""), args)
        self.assertEqual(p.stderr.decode(), f"wq: {message}\n{more}")
        self.assertEqual(os.listdir(self.dir), [])

    def run_wrong(self, message, *args):
        """With files that must not be made, and a command that must not be run."""
        self.wrong(message, "run", "--log=log", "--dead=dead", "--leftover=left", *args, "--", "touch", "made")

    def test_no_command(self):
        general = "wq: see 'wq help'\n"
        self.wrong("no command is given: run, add, status, top, ls ...", more=general)
        self.wrong("runn: unknown command", "runn", more=general)
        self.wrong("--runn: options stand behind the command: wq run -j4 ..., wq status --socket=PATH", "--runn",
                   more=general)
        self.wrong("\\x1b[1m: unknown command", "\x1b[1m", more=general)
        self.wrong("nothing: unknown command", "help", "nothing", more=general)

    def test_nothing_to_run(self):
        message = "no command is given: it comes after the options, as in wq run -j4 -- COMMAND {}"
        self.wrong(message, "run")
        self.wrong(message, "run", "--")
        self.wrong(message, "run", "-j4", "--log=log")
        self.wrong("the command is empty", "run", "--", "")

    def test_no_such_option(self):
        for word in ("--nonsense", "--nonsense=1", "-x", "-qx"):
            self.run_wrong(f"{word}: unknown option", word)
        for word in ("--re=1", "--d"):
            self.run_wrong(f"{word}: several options begin so", word)

    def test_a_value_too_many(self):
        for name in ("dry-run", "line-buffer", "no-progress", "null", "quiet", "summary", "tag", "verbose", "help"):
            self.run_wrong(f"--{name}=x: this option takes no value", f"--{name}=x")

    def test_a_value_too_few(self):
        for word in ("-j", "-a", "-d", "-qj", "--jobs", "--backoff", "--log", "--rate", "--dead", "--leftover",
                     "--debounce", "--max-wait", "--burst", "--grace", "--http", "--kill-after", "--max-queue",
                     "--metrics-file", "--name", "--on-term", "--results", "--retries", "--socket", "--socket-group",
                     "--socket-mode", "--timeout"):
            self.wrong(f"{word} needs a value", "run", word)

    def test_numbers(self):
        for value in ("", "0", "-1", "+1", "1.5", "x", "3x", " 3", "0x10", "99999999999999999999"):
            for name in ("jobs", "burst", "max-queue"):
                self.run_wrong(f"--{name} {value}: expected a number from 1", f"--{name}={value}")
        self.run_wrong("--jobs 0: expected a number from 1", "-j0")

    def test_retries(self):
        for value in ("", "-1", "x", "1.5", "Forever", "99999999999999999999"):
            self.run_wrong(f"--retries {value}: expected a number, or forever", f"--retries={value}")

    def test_times(self):
        for value in ("", "x", "-1s", "1 s", "1S", "1sec", "1s2", "1.2.3s", ".", "1e3", "inf", "nan", "0x1s", "s",
                      "99999999d", "1..2", "9" * 40):
            for name in ("debounce", "grace", "kill-after", "max-wait", "timeout"):
                self.run_wrong(f"--{name} {value}: expected a time like 100ms, 1.5s or 5m", f"--{name}={value}")

    def test_backoff(self):
        for value in ("", "x", "1s..", "..5m", "5m..1s", "1s..2s..3s", "1s-5m"):
            self.run_wrong(f"--backoff {value}: expected a time or a range like 1s..5m", f"--backoff={value}")
        for value in ("0", "0..1s", "0ms..0s"):
            self.run_wrong("--backoff: expected a time above 0", f"--backoff={value}")

    def test_rates(self):
        for value in ("", "x", "0", "0/s", "-1/s", "/s", "5/d", "5/", "5/ss", "5 /s", "1e10/s", "9999999999/s"):
            self.run_wrong(f"--rate {value}: expected a rate like 50/s, 10/m or 3/h", f"--rate={value}")

    def test_delimiters(self):
        for value in ("", "ab", "\\q", "\\x", "\\x1", "\\x1g", "\\x1ff", "\\nn", "é"):
            self.run_wrong(f"--delimiter {value}: expected one character, or \\n, \\t, \\0, \\x1f", "-d", value)

    def test_words(self):
        for value in ("", "some", "Full", "fulll"):
            self.run_wrong(f"--jitter {value}: expected none, full, equal or decorrelated", f"--jitter={value}")
        for value in ("", "stop", "finis"):
            self.run_wrong(f"--on-term {value}: expected finish or drain", f"--on-term={value}")
        name = "expected a name of 1 to 255 bytes of UTF-8"
        self.run_wrong(f"--name : {name}", "--name=")
        self.run_wrong(f"--name {'x' * 200}...: {name}", "--name=" + "x" * 256)
        self.assertEqual(self.wq("run", "--name=" + "x" * 255, "--", "true").returncode, 0)
        self.run_wrong(f"--name a\\xff: {name}", b"--name=a\xff")
        # It is shown as it is.
        for c in (*range(1, 32), 127):
            for value, told in ((f"{chr(c)}b", f"\\x{c:02x}b"), (f"a{chr(c)}", f"a\\x{c:02x}")):
                self.run_wrong(f"--name {told}: {name}", f"--name={value}")

    def test_files(self):
        for name in ("arg-file", "dead", "leftover", "log", "metrics-file", "results"):
            self.run_wrong(f"--{name} : expected the name of a file", f"--{name}=")

    def test_one_file_for_two(self):
        names = ("dead", "leftover", "log", "metrics-file", "arg-file")
        for i, one in enumerate(names):
            for other in names[i + 1:]:
                if (one, other) != ("leftover", "arg-file"):
                    self.wrong("f is given twice: each option wants a file of its own", "run", f"--{one}=f",
                               f"--{other}=f", "--", "touch", "made")

    def test_one_file_by_two_names(self):
        """What is read would be what is written: it would never end."""
        (self.dir / "f").write_text("a\n")
        os.symlink("f", self.dir / "symlink")
        os.link(self.dir / "f", self.dir / "link")
        there = sorted(os.listdir(self.dir))
        names = ("dead", "leftover", "log", "metrics-file", "arg-file")
        for other in ("./f", str(self.dir / "f"), "symlink", "link"):
            for one, two in itertools.permutations(names, 2):
                if {one, two} == {"leftover", "arg-file"}:
                    continue
                p = self.wq("run", f"--{one}=f", f"--{two}={other}", "--", "touch", "made")
                self.assertEqual((p.returncode, p.stdout), (2, b""), (one, two, other))
                self.assertRegex(p.stderr.decode(), rf"\Awq: (f|{other}) is given twice: each option wants a file of its own\n")
        self.assertEqual((sorted(os.listdir(self.dir)), self.lines("f")), (there, ["a"]))

    def test_addresses(self):
        for value in ("", "x", ":", ":80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "65536", "-1", "localhost:65536",
                      "[::1]", "[::1]:", "80:", "1.5", "http://localhost"):
            self.run_wrong(f"--http {value}: expected a port, or an address and a port like 127.0.0.1:8080",
                           f"--http={value}")

    def test_what_does_not_go_together(self):
        self.run_wrong("--burst goes with --rate", "--burst=3")
        self.run_wrong("--max-wait goes with --debounce", "--max-wait=3s")
        files = "--results puts output into files: neither --tag nor --line-buffer goes with it"
        self.run_wrong(files, "--results=res", "--tag")
        self.run_wrong(files, "--results=res", "--line-buffer")
        self.run_wrong("--quiet and --verbose exclude each other", "-q", "-v")


class Right(Case):
    def right(self, *args, out=b"a\n"):
        p = self.wq("run", *args, "--", "echo", input="a\n")
        self.assertEqual((p.returncode, p.stdout), (0, out), (args, p.stderr))

    def test_units_of_times(self):
        for value in ("0", "0s", "1ns", "1us", "1ms", "0.001s", ".001s", "0.001", "1.5ms", "0.00001m", "0.000001h",
                      "0.0000001d"):
            self.right(f"--debounce={value}")
        for value in ("3", "3s", "5m", "2h", "1d", "36500d", "1000000000us", "90000000000000ns"):
            self.right(f"--timeout={value}")

    def test_times_are_what_they_say(self):
        # A range wants its ends in order: two times are the same if both orders are.
        for one, other, more in (("1000ns", "1us", "1001ns"), ("1000us", "1ms", "1000001ns"), ("1000ms", "1s", "1001ms"),
                                 ("60s", "1m", "60.001s"), ("60m", "1h", "60.01m"), ("24h", "1d", "24.01h"),
                                 ("1.5s", "1500ms", "1501ms"), ("2", "2s", "2.001"), (".5", "0.500s", "501ms")):
            self.right("--dry-run", f"--backoff={one}..{other}", out=b"echo a\n")
            self.right("--dry-run", f"--backoff={other}..{one}", out=b"echo a\n")
            self.assertEqual(self.wq("run", f"--backoff={more}..{other}", "--", "echo").returncode, 2, more)
        began = time.monotonic()
        self.right("--debounce=40ms")
        self.assertGreaterEqual(time.monotonic() - began, 0.04)

    def test_one_device_for_two(self):
        self.right("--dead=/dev/null", "--log=/dev/null", "--leftover=/dev/null", "--metrics-file=/dev/null")

    def test_a_name(self):
        for name in ("x", "é" * 127, "a b"):
            self.right(f"--name={name}", "--metrics-file=m")

    def test_units_of_rates(self):
        for value in ("50", "50/s", "0.5/s", "1000/m", "1/h", "1000000000/s", "0.001/h"):
            self.right(f"--rate={value}")

    def test_ranges(self):
        for value in ("1s", "1s..5m", "1ms..1ms", "0.5..1", "1..2"):
            self.right(f"--backoff={value}")

    def test_abbreviations(self):
        self.right("--summ", "--retr", "1", "--backo=1s", "-j", "2", "-j2", "--jobs", "2", "--jo=2")

    def test_the_last_one_counts(self):
        self.right("--timeout=1ns", "--timeout=1h", "--retries=7", "--retries=0", "-j1", "-j3")

    def test_with_and_without_dashes(self):
        for args in (("run", "echo"), ("run", "--", "echo"), ("run", "-q", "echo")):
            p = self.wq(*args, input="a\n")
            self.assertEqual((p.returncode, p.stdout), (0, b"a\n"))

    def test_options_end_with_the_command(self):
        p = self.wq("run", "echo", "-j", "--tag", "--", "-q", input="a\n")
        self.assertEqual((p.returncode, p.stdout), (0, b"-j --tag -- -q a\n"))


class Help(Case):
    def text(self, *args):
        p = self.wq(*args)
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        return p.stdout.decode()

    def test_overview(self):
        text = self.text("help")
        for args in (("--help",), ("-h",)):
            self.assertEqual(self.text(*args), text)
        self.assertTrue(text.startswith("usage: wq COMMAND"))

    def test_of_run(self):
        text = self.text("help", "run")
        for args in (("run", "--help"), ("run", "-h"), ("run", "-q", "--help"), ("run", "-qh")):
            self.assertEqual(self.text(*args), text)
        self.assertTrue(text.startswith("usage: wq run [OPTION]... [--] COMMAND [ARG | {}]...\n"))

    def test_every_command(self):
        commands = re.findall(r"[a-z]+", "run add status top ls retry cancel forget pause resume set wait drain stop help")
        overview = self.text("help")
        for c in commands:
            self.assertTrue(self.text("help", c).startswith(f"usage: wq {c}"))
            self.assertRegex(overview, rf"\b{c}\b")

    def test_every_option(self):
        there = set(re.findall(r'^    \{"([a-z-]+)", ', SOURCE.read_text(), re.M)) - {"help"}
        told = set(re.findall(r"^  (?:-., |    )--([a-z-]+)", self.text("help", "run"), re.M))
        self.assertGreater(len(there), 25)
        self.assertEqual(there, told)

    def test_short_options(self):
        there = set(re.search(r'getopt_long\(argc, argv, "\+:([^"]+)"', SOURCE.read_text())[1]) - set(":h")
        told = set(re.findall(r"^  -(.), --", self.text("help", "run"), re.M))
        self.assertEqual(there, told)

    def test_every_exit_status(self):
        text = self.text("help", "run")
        for status in ("0", "123", "75", "126", "127", "2", "1"):
            self.assertRegex(text[text.index("Exit status"):], rf"\b{status}\b")

    def test_no_line_is_too_wide(self):
        for args in (("help",), ("help", "run"), ("help", "wait")):
            for line in self.text(*args).splitlines():
                self.assertLessEqual(len(line), 100)

    def test_version(self):
        self.assertRegex(self.text("--version"), r"^wq \d+\.\d+\.\d+\n$")

    def test_nowhere_to_write(self):
        for args in (("help",), ("help", "run"), ("help", "add"), ("--help",), ("-h",), ("run", "--help"),
                     ("add", "--help"), ("--version",)):
            with open("/dev/full", "wb") as full:
                p = self.start(*args, stdin=subprocess.DEVNULL, stdout=full)
            self.assertEqual(p.wait(), 1, args)
            if args != ("--version",):
                self.assertEqual(p.stderr.read(), b"wq: standard output: No space left on device\n", args)


if __name__ == "__main__":
    main()
