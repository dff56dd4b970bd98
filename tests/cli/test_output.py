"""What is shown and kept: output of commands, results, the log, messages, the summary."""
import hashlib
import json
import os
import re
import socket
import subprocess
import unicodedata
import urllib.request

import rig
from rig import Case, main

BIG = 256 << 10  # from here on output is kept in a file


class Grouped(Case):
    # Writes a line, waits until all eight have, and writes another.
    MEET = """
mkdir -p up
echo "$1 1"; echo "$1 1" >&2
touch "up/$1"
until [ $(ls up | wc -l) -ge 8 ]; do sleep .01; done
echo "$1 2"; echo "$1 2" >&2
"""

    def test_no_interleaving(self):
        keys = [f"k{i}" for i in range(8)]
        self.script("meet", self.MEET)
        p = self.wq("run", "-j8", "--", "./meet", input="\n".join(keys))
        self.assertEqual(p.returncode, 0)
        for out in (p.stdout, p.stderr):
            lines = out.decode().splitlines()
            self.assertEqual(sorted(lines), sorted(f"{k} {i}" for k in keys for i in (1, 2)))
            for one, two in zip(lines[::2], lines[1::2]):
                self.assertEqual((one[:2], one[3], two[3]), (two[:2], "1", "2"))

    def test_shown_when_the_command_has_ended(self):
        self.fifo("go")
        p = self.start("run", "-j2", "--", "sh", "-c",
                       'echo "$1"; touch "up$1"; [ "$1" = b ] || read x <go', "sh", "{}")
        self.give(p, "a")
        self.until_file("upa")
        self.give(p, "b")
        self.assertEqual(p.stdout.readline(), b"b\n")
        self.let("go")
        self.assertEqual(p.stdout.readline(), b"a\n")

    def test_each_to_its_own(self):
        p = self.wq("run", "-j1", "--", "sh", "-c", "echo out; echo err >&2; echo out2", input="a\nb\n")
        self.assertEqual((p.stdout, p.stderr), (b"out\nout2\n" * 2, b"err\n" * 2))

    def test_bytes_are_as_they_were(self):
        # Without a tag nothing is added, not even the end of a line.
        every = bytes(range(256))
        (self.dir / "bytes").write_bytes(every)
        p = self.wq("run", "-j1", "--", "sh", "-c", "cat bytes", input="a\nb\n")
        self.assertEqual(p.stdout, every * 2)

    def test_output_of_failures_is_shown_too(self):
        p = self.wq("run", "--retries=1", "--backoff=1ms", "-q", "--", "sh", "-c", "echo {#}; exit 1", input="a\n")
        self.assertEqual((p.returncode, p.stdout, p.stderr), (123, b"1\n2\n", b""))

    def test_big(self):
        self.script("big", 'yes "$1" | head -c "$2"')
        for size in (BIG - 1, BIG, BIG + 1, 3 << 20):
            p = self.wq("run", "-j2", "--", "./big", "{}", str(size), input="a\nb\n")
            self.assertEqual((p.returncode, len(p.stdout), p.stderr), (0, 2 * size, b""))
            halves = {hashlib.sha1(p.stdout[:size]).digest(), hashlib.sha1(p.stdout[size:]).digest()}
            self.assertEqual(halves, {hashlib.sha1((k * size)[:size]).digest() for k in (b"a\n", b"b\n")})

    def test_big_on_standard_error_and_into_a_file(self):
        with open(self.dir / "out", "wb") as out:
            p = self.start("run", "--", "sh", "-c", "yes | head -c 700000; yes n | head -c 600000 >&2", stdout=out)
            err = p.communicate(b"a\n")[1]
        self.assertTrue(err == b"n\n" * 300000)
        self.assertTrue((self.dir / "out").read_bytes() == b"y\n" * 350000)

    def spilled(self, p):
        """Files without a name that the program holds."""
        found = []
        for fd in os.listdir(f"/proc/{p.pid}/fd"):
            try:
                link = os.readlink(f"/proc/{p.pid}/fd/{fd}")
            except FileNotFoundError:
                continue
            if link.startswith(str(self.dir)) and link.endswith("(deleted)"):
                found.append(link)
        return found

    def test_big_is_not_kept_in_memory(self):
        self.fifo("go")
        p = self.start("run", "--", "sh", "-c", "yes | head -c 1000000; touch up; read x <go")
        self.give(p, "a")
        p.stdin.close()
        self.until_file("up")
        self.until(lambda: self.spilled(p), "a file for the output")
        self.assertEqual(sorted(os.listdir(self.dir)), ["go", "up"])
        self.let("go")
        self.assertEqual((len(p.stdout.read()), p.wait()), (1000000, 0))

    def test_no_place_for_it(self):
        p = self.wq("run", "--", "sh", "-c", "yes | head -c 1000000", input="a\n", env={"TMPDIR": "/no/where"})
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"wq: a: part of its output is lost: No such file or directory\n", p.stderr)


class Tagged(Case):
    def test_each_line(self):
        p = self.wq("run", "-j1", "--tag", "--", "sh", "-c", "echo 1; echo; echo 2; echo e >&2", input="a b\nc\n")
        self.assertEqual(p.stdout, b"a b\t1\na b\t\na b\t2\nc\t1\nc\t\nc\t2\n")
        self.assertEqual(p.stderr, b"a b\te\nc\te\n")

    def test_a_last_line_without_an_end_gets_one(self):
        p = self.wq("run", "-j1", "--tag", "--", "printf", "x\\ny%.0s", input="a\nb\n")
        self.assertEqual(p.stdout, b"a\tx\na\ty\nb\tx\nb\ty\n")

    def test_keys_that_are_no_text(self):
        p = self.wq("run", "-j1", "-0", "--tag", "--", "sh", "-c", "echo x", input=b"a\nb\0\x1b[1m\0\xff\0\xc3\xa9\0")
        self.assertEqual(p.stdout, b"a\\x0ab\tx\n\\x1b[1m\tx\n\\xff\tx\n\xc3\xa9\tx\n")

    def test_nothing_written_nothing_shown(self):
        self.assertEqual(self.wq("run", "--tag", "--", "true", input="a\n").stdout, b"")

    def test_big(self):
        p = self.wq("run", "-j2", "--tag", "--", "sh", "-c", "yes | head -c 800000", input="a\nb\n")
        self.assertEqual(sorted(set(p.stdout.splitlines())), [b"a\ty", b"b\ty"])
        self.assertEqual(p.stdout.count(b"\n"), 800000)


class ByLines(Case):
    def test_a_line_before_the_command_ends(self):
        for args, tag in (((), b""), (("--tag",), b"a\t")):
            if not (self.dir / "go").exists():
                self.fifo("go")
            p = self.start("run", "--line-buffer", *args, "--", "sh", "-c",
                           "echo one; echo err >&2; printf part; read x <go; echo ed; printf last", "sh", "{}")
            self.give(p, "a")
            p.stdin.close()
            self.assertEqual(p.stdout.readline(), tag + b"one\n")
            self.assertEqual(p.stderr.readline(), tag + b"err\n")
            self.let("go")
            self.assertEqual(p.stdout.read(), tag + b"parted\n" + tag + b"last\n")
            self.assertEqual(p.wait(), 0)

    def test_whole_lines_of_many(self):
        # Each line is one character, many times: a mixed one is seen.
        p = self.wq("run", "-j4", "--line-buffer", "--", "sh", "-c",
                    'for i in 1 2 3 4 5 6 7 8 9; do printf "%05000d\\n" 0 | tr 0 "$1"; done', "sh", "{}",
                    input="a\nb\nc\nd\n")
        lines = p.stdout.decode().splitlines()
        self.assertEqual(sorted(lines), sorted(k * 5000 for k in "abcd" for _ in range(9)))

    def test_a_very_long_line(self):
        for args, tag in (((), b""), (("--tag",), b"a\t")):
            p = self.wq("run", "--line-buffer", *args, "--", "sh", "-c", "head -c 500000 /dev/zero | tr '\\0' x",
                        input="a\n")
            self.assertTrue(p.stdout == tag + b"x" * 500000 + b"\n")

    def test_much(self):
        p = self.wq("run", "-j2", "--line-buffer", "--", "sh", "-c", 'yes "$1" | head -c 3000000', "sh", "{}",
                    input="a\nb\n")
        lines = p.stdout.splitlines()
        self.assertEqual((lines.count(b"a"), lines.count(b"b"), len(lines)), (1500000, 1500000, 3000000))


class Results(Case):
    def results(self):
        return sorted(os.listdir(self.dir / "res"))

    def read(self, key, name):
        return (self.dir / "res" / key / name).read_bytes()

    def test_files_instead_of_output(self):
        p = self.wq("run", "-j2", "--results=res", "--", "sh", "-c", 'echo "out $1"; echo "err $1" >&2', "sh", "{}",
                    input="a\nb\n")
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, b"", b""))
        for key in "ab":
            self.assertEqual(sorted(os.listdir(self.dir / "res" / key)), ["attempt.json", "stderr", "stdout"])
            self.assertEqual(self.read(key, "stdout").decode(), f"out {key}\n")
            self.assertEqual(self.read(key, "stderr").decode(), f"err {key}\n")
            about = json.loads(self.read(key, "attempt.json"))
            self.assertEqual((about["key"], about["attempt"], about["exit"], about["outcome"]), (key, 1, 0, "done"))

    def test_odd_names(self):
        names = {b"a/b": "a%2Fb", b"../x": "%2E.%2Fx", b".": "%2E", b"..": "%2E.", b"/": "%2F", b"a b": "a%20b",
                 b"a%2Fb": "a%252Fb", b".hid": "%2Ehid", b"a.txt": "a.txt", b"\xff\n": "%FF%0A", b"-x": "-x",
                 b"~": "%7E", b"A_,@+=9": "A_,@+=9", b"caf\xc3\xa9": "caf%C3%A9"}
        p = self.wq("run", "-0", "--results=res", "--", "printf", "%s", input=b"\0".join(names))
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(self.results(), sorted(names.values()))
        for key, name in names.items():
            self.assertEqual(self.read(name, "stdout"), key)

    def test_long_names(self):
        keys = ["x" * 255, "x" * 256, "x" * 256 + "y", "x" * 65536, "/" * 85, "/" * 86]
        p = self.wq("run", "--results=res", "--", "printf", "%s", input="\n".join(keys))
        self.assertEqual(p.returncode, 0, p.stderr)
        names = self.results()
        self.assertEqual(len(names), len(keys))
        self.assertLessEqual(max(map(len, names)), 255)
        self.assertIn("x" * 255, names)
        self.assertIn("%2F" * 85, names)
        self.assertEqual(sorted(self.read(n, "stdout").decode() for n in names), sorted(keys))
        self.assertEqual(sum(bool(re.search("~[0-9a-f]{16}$", n)) for n in names), 4)

    def test_the_last_attempt_counts(self):
        for _ in range(2):
            p = self.wq("run", "--results=res", "--backoff=1ms", "--", "sh", "-c",
                        "[ {#} = 2 ] && echo ok || { echo a long line; echo bad >&2; exit 3; }", input="a\n")
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertEqual((self.read("a", "stdout"), self.read("a", "stderr")), (b"ok\n", b""))
            self.assertEqual(json.loads(self.read("a", "attempt.json"))["attempt"], 2)

    def test_there_before_the_command_ends(self):
        self.fifo("go")
        p = self.start("run", "--results=res", "--", "sh", "-c", "echo x; read x <go")
        self.give(p, "a")
        self.until(lambda: (self.dir / "res/a/stdout").exists() and self.read("a", "stdout") == b"x\n")
        self.let("go")

    def test_no_place_for_one_key(self):
        (self.dir / "res").mkdir()
        (self.dir / "res" / "a").write_text("")
        p = self.wq("run", "-j1", "--results=res", "--retries=1", "--backoff=1ms", "--dead=dead", "--", "echo",
                    input="a\nb\n")
        self.assertEqual(p.returncode, 123)
        self.assertEqual(self.lines("dead"), ["a"])
        self.assertEqual(p.stderr, b"wq: a: its results cannot be kept: Not a directory\n" * 2)
        self.assertEqual(self.read("b", "stdout"), b"b\n")

    def test_no_folder(self):
        (self.dir / "file").write_text("")
        for name, why in (("file", "Not a directory"), ("no/where", "No such file or directory")):
            p = self.wq("run", f"--results={name}", "--", "touch", input="x\n")
            self.assertEqual((p.returncode, p.stderr.decode()), (1, f"wq: {name}: {why}\n"))
            self.assertEqual(os.listdir(self.dir), ["file"])


class Log(Case):
    def log(self, *args, command, input="a\n", status=0):
        (self.dir / "log").unlink(missing_ok=True)
        p = self.wq("run", "--log=log", *args, "--", *command, input=input)
        self.assertEqual(p.returncode, status, p.stderr)
        return [json.loads(line) for line in self.lines("log")]

    def test_fields(self):
        one, = self.log("-j3", command=["sleep", "0.03"], input="0.01\n")
        self.assertEqual(list(one), ["time", "key", "attempt", "outcome", "exit", "queue_s", "run_s", "merged", "worker"])
        self.assertRegex(one["time"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertEqual([one[f] for f in ("key", "attempt", "outcome", "exit", "merged", "worker")],
                         ["0.01", 1, "done", 0, 0, 1])
        self.assertGreaterEqual(one["run_s"], 0.04)
        self.assertGreaterEqual(one["queue_s"], 0)

    def test_time_in_line(self):
        # Both are there before the first begins.
        (self.dir / "keys").write_text("a\nb\n")
        one, two = self.log("-j1", "-akeys", command=["sh", "-c", "sleep .05"])
        self.assertGreaterEqual(two["queue_s"], 0.05)
        self.assertGreaterEqual(one["run_s"], 0.05)

    def test_ends(self):
        for command, outcome, exit, signal in (("exit 0", "done", 0, None), ("exit 7", "dead", 7, None),
                                               ("kill -9 $$", "dead", None, 9), ("kill -SEGV $$", "dead", None, 11)):
            one, = self.log("--retries=0", command=["sh", "-c", command], status=123 if outcome == "dead" else 0)
            self.assertEqual((one["outcome"], one["exit"], one.get("signal")), (outcome, exit, signal))

    def test_keys_are_strings_of_json(self):
        keys = [b'"', b"\\", b"a\nb", b"\x01\x7f", b"\xff!", b"\xc3\xa9", b"</script>"]
        log = self.log("-0", "-j1", command=["true"], input=b"\0".join(keys))
        self.assertEqual([a["key"] for a in log], ['"', "\\", "a\nb", "\x01\x7f", "\ufffd!", "é", "</script>"])

    def test_merged(self):
        log = self.log("-j1", command=["true"], input="a\na\na\nb\n")
        self.assertEqual([(a["key"], a["merged"]) for a in log], [("a", 2), ("b", 0)])

    def test_workers(self):
        log = self.log("-j2", command=["sh", "-c", 'touch "$0"; until [ -e a -a -e b ]; do sleep .01; done'],
                       input="a\nb\n")
        self.assertEqual(sorted(a["worker"] for a in log), [1, 2])

    def test_appended(self):
        (self.dir / "mine").write_text("old\n")
        self.assertEqual(self.wq("run", "--log", "mine", "--", "true", input="a\n").returncode, 0)
        self.assertEqual([self.lines("mine")[0], len(self.lines("mine"))], ["old", 2])

    def test_cannot_be_opened(self):
        p = self.wq("run", "--log=no/log", "--", "touch", "x", input="a\n")
        self.assertEqual((p.returncode, p.stderr), (1, b"wq: no/log: No such file or directory\n"))
        self.assertEqual(os.listdir(self.dir), [])


class DryRun(Case):
    def test_a_shell_takes_it_as_it_is(self):
        odd = [b"plain", b"two words", b"it's", b'"', b"$HOME", b"`id`", b"\\", b"a\nb", b"*", b"~", b"#x", b"!",
               b"-n", b"a=b", b"\xff", b"'", b"''", b";", b"\t"]
        p = self.wq("run", "-0", "--dry-run", "--", "printf", "%s\\0", "", "{}", "x{}", "{#}{%}",
                    input=b"\0".join(odd))
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        again = subprocess.run(["bash"], input=p.stdout, capture_output=True, cwd=self.dir, check=True)
        wanted = b"".join(b"\0" + k + b"\0x" + k + b"\x0011\0" for k in odd)
        self.assertEqual(again.stdout, wanted)

    def test_nothing_that_a_terminal_would_obey(self):
        keys = {b"\x1b[2J", b"a\rb", b"\x7f", b"\xc2\x9b2J", b"'\x1b'7\\", b"\x1b7", b"\xc3\xa4\x07", b"\xff\xc3"}
        while len(keys) < 500:
            keys.add(bytes(self.random.choice(b"\x01\x1b\n\r'\\a7\"$\xc2\x9b\xc3\xa4\xff") for _ in range(4)))
        p = self.wq("run", "-0", "--dry-run", "--", "printf", "%s\\0", input=b"\0".join(keys))
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        lines = p.stdout.decode().splitlines()
        self.assertEqual(len(lines), 500)
        self.assertEqual([c for c in p.stdout.decode() if c != "\n" and unicodedata.category(c) == "Cc"], [])
        again = subprocess.run(["bash"], input=p.stdout, capture_output=True, cwd=self.dir, check=True)
        self.assertEqual(set(again.stdout.split(b"\0")[:-1]), keys)

    def test_a_command_that_looks_like_an_assignment(self):
        self.script("a=b", "echo run")
        env = {"PATH": f"{self.dir}:/usr/bin:/bin"}
        p = self.wq("run", "--dry-run", "--", "a=b", "--x=y", input="k\n", env=env)
        self.assertEqual(p.stdout, b"'a=b' --x=y k\n")
        again = subprocess.run(["sh"], input=p.stdout, capture_output=True, env=env, check=True)
        self.assertEqual(again.stdout, b"run\n")

    def test_nothing_is_run_or_written(self):
        (self.dir / "keys").write_text("a\nb\n")
        p = self.wq("run", "--dry-run", "-a", "keys", "--leftover=keys", "--log=log", "--dead=dead", "--results=res",
                    "--metrics-file=metrics", "--summary", "--", "touch", "{}", "made")
        self.assertEqual((p.returncode, p.stdout), (0, b"touch a made\ntouch b made\n"))
        self.assertIn(b"2 to do = 2 done", p.stderr)
        self.assertEqual((os.listdir(self.dir), self.lines("keys")), (["keys"], ["a", "b"]))

    def test_it_does_not_wait(self):
        p = self.wq("run", "--dry-run", "--rate=1/h", "--debounce=1h", "--max-wait=2h", "--", "echo",
                    input="a\nb\nc\n")
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, b"echo a\necho b\necho c\n", b""))
        # Nor for the due times of a leftover file; each key shows its own attempt.
        (self.dir / "left").write_text("#wq-leftover-1\n@99999999999.000\t2\ta\n@0\t0\tb\n")
        p = self.wq("run", "-j1", "--dry-run", "-a", "left", "--", "echo", "{}", "{#}")
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, b"echo a 3\necho b 1\n", b""))


class Messages(Case):
    FAILING = ("sh", "-c", 'echo out; echo err >&2; case "$1" in 100) exit 100;; *) [ {#} -ge "$1" ];; esac', "sh", "{}")

    def said(self, *args, status=123):
        p = self.wq("run", "-j1", "--backoff=1ms", "--retries=1", *args, "--", *self.FAILING, input="1\n2\n3\n100\n")
        self.assertEqual(p.returncode, status)
        self.assertEqual(p.stdout, b"out\n" * 6)
        lines = p.stderr.decode().splitlines()
        self.assertEqual(lines.count("err"), 6)
        return [line for line in lines if line != "err"]

    def test_only_on_standard_error(self):
        self.assertEqual(sorted(self.said()), ["wq: 100: exited with 100 in attempt 1, and is dead",
                                               "wq: 3: exited with 1 in attempt 2, and is dead"])

    def test_quiet(self):
        for option in ("-q", "--quiet"):
            self.assertEqual(self.said(option), [])

    def test_verbose(self):
        for option in ("-v", "--verbose"):
            self.assertEqual(sorted(self.said(option)), [
                "wq: 100: exited with 100 in attempt 1, and is dead", "wq: 2: exited with 1 in attempt 1",
                "wq: 3: exited with 1 in attempt 1", "wq: 3: exited with 1 in attempt 2, and is dead"])

    def test_quiet_says_errors(self):
        p = self.wq("run", "-q", "--", "true", input=b"a\0\n")
        self.assertIn(b"NUL", p.stderr)

    def test_odd_keys_do_not_reach_the_terminal(self):
        p = self.wq("run", "-0", "--retries=0", "--", "false", input=b"\x1b]0;x\x07\n\xff" + b"y" * 500)
        self.assertTrue(p.stderr.startswith(b"wq: \\x1b]0;x\\x07\\x0a\\xffyyy"), p.stderr)
        self.assertRegex(p.stderr, rb"yyy\.\.\.: exited with 1")
        self.assertEqual(p.stderr.count(b"\n"), 1)

    def test_no_progress_but_on_a_terminal(self):
        for args in ((), ("--no-progress",)):
            self.assertEqual(self.wq("run", *args, "--", "true", input="a\n").stderr, b"")


class Summary(Case):
    def summary(self, err):
        """The numbers; that they add up is looked at here."""
        a = re.search(r"wq: (\d+) given = (\d+) merged \+ (\d+) refused \+ (\d+) to do\n"
                      r"wq: (\d+) to do = (\d+) done \+ (\d+) dead \+ (\d+) cancelled \+ (\d+) unfinished\n"
                      r"wq: (\d+) attempts, (\d+) failed, in (\S+)\n$", err.decode())
        self.assertTrue(a, err)
        given, merged, refused, work, same, done, dead, cancelled, left, attempts, failed = map(int, a.groups()[:-1])
        self.assertEqual(given, merged + refused + work)
        self.assertEqual(work, same)
        self.assertEqual(work, done + dead + cancelled + left)
        self.assertGreaterEqual(attempts, done + dead)
        return given, merged, refused, done, dead, left, attempts, failed

    def test_nothing(self):
        p = self.wq("run", "--summary", "--", "true")
        self.assertEqual(self.summary(p.stderr), (0, 0, 0, 0, 0, 0, 0, 0))

    def test_all_kinds(self):
        # In one write, and one worker: what merges is known.
        p = self.wq("run", "-j1", "-q", "--summary", "--backoff=1ms", "--retries=1", "--", *Messages.FAILING,
                    input=b"1\n2\n3\n100\n2\n2\nx\0y\n1\n" + b"z" * 70000)
        self.assertEqual(p.returncode, 123)
        given, merged, refused, done, dead, left, attempts, failed = self.summary(p.stderr.replace(b"err\n", b""))
        self.assertEqual((given, refused, dead, left), (9, 2, 2, 0))
        # Some may have run before the last ones were read.
        self.assertEqual((merged + done, attempts - failed), (5, done))

    def test_at_random(self):
        for _ in range(3):
            keys = [str(self.random.choice((1, 1, 1, 2, 3, 100))) + " " * self.random.randint(0, 9) for _ in range(80)]
            p = self.start("run", "-j4", "-q", "--summary", "--backoff=1ms", "--retries=1", "--", "sh", "-c",
                           'set -- $1; case "$1" in 100) exit 100;; *) [ {#} -ge "$1" ];; esac', "sh", "{}")
            while keys:
                n = self.random.randint(1, 20)
                self.give(p, *keys[:n])
                del keys[:n]
            p.stdin.close()
            self.assertEqual(self.summary(p.stderr.read())[0], 80)
            self.assertIn(p.wait(), (0, 123))


class Metrics(Case):
    def test_every_death_is_counted(self):
        """By exit status 100, after the last attempt, and of keys that cannot be executed."""
        for command, keys in ((["sh", "-c", "exit $1", "sh", "{}", "{}{}"], ["100", "1", "0", "x" * 65536]),
                              (["./{}"], ["no", "nor-this", "good"])):
            self.script("good", "exit 0")
            p = self.wq("run", "--metrics-file=m", "--summary", "--retries=1", "--backoff=1ms", "--dead=dead", "--",
                        *command, input="\n".join(keys))
            self.assertEqual(p.returncode, 123)
            dead = int(re.search(rb"done \+ (\d+) dead", p.stderr)[1])
            self.assertEqual(dead, len(self.lines("dead")))
            self.assertEqual(dead, len(keys) - 1)
            self.assertIn(f'wq_dead_total{{name="wq"}} {dead}', self.lines("m"))
            self.assertIn('wq_dropped_total{name="wq"} 0', self.lines("m"))
            (self.dir / "dead").unlink()

    def test_file(self):
        p = self.wq("run", "--metrics-file=m", "--name=conv", "--backoff=1ms", "--", "sh", "-c", "[ {#} = 2 ]",
                    input="a\na\nb\n")
        self.assertEqual(p.returncode, 0)
        text = (self.dir / "m").read_text()
        self.assertRegex(text, r'(?m)^workqueue_adds_total\{name="conv"\} 4$')
        self.assertRegex(text, r'(?m)^workqueue_retries_total\{name="conv"\} 2$')

    def test_file_keeps_its_mode(self):
        (self.dir / "m").write_text("old")
        (self.dir / "m").chmod(0o600)
        self.assertEqual(self.wq("run", "--metrics-file=m", "--", "true").returncode, 0)
        self.assertEqual((self.dir / "m").stat().st_mode & 0o777, 0o600)
        self.assertEqual(os.listdir(self.dir), ["m"])
        self.assertIn("workqueue_depth", (self.dir / "m").read_text())

    def test_cannot_be_opened(self):
        p = self.wq("run", "--metrics-file=no/m", "--", "touch", "x", input="a\n")
        self.assertEqual((p.returncode, p.stderr), (1, b"wq: no/m: No such file or directory\n"))
        self.assertEqual(os.listdir(self.dir), [])

    def http(self, address, url):
        self.fifo("go")
        # The sanitizer's dlopen() does not know where the program looks.
        env = {"LD_LIBRARY_PATH": os.path.dirname(os.path.dirname(rig.program))}
        p = self.start("run", f"--http={address}", "--name=seen", "--", "sh", "-c", "touch up; read x <go", env=env)
        said = p.stderr.readline().decode()
        if "which is not there" in said:
            self.skipTest("built without libwq-http")
        self.give(p, "a")
        self.until_file("up")
        self.assertRegex(said, rf"\Awq: {url} shows this run\n\Z")
        url = said.split()[1]
        with urllib.request.urlopen(url + "metrics") as answer:
            self.assertRegex(answer.read().decode(), r'(?m)^wq_running\{name="seen"\} 1$')
        p.stdin.close()
        self.let("go")
        self.assertEqual(p.wait(), 0)

    def test_http(self):
        self.http("127.0.0.1:0", r"http://127\.0\.0\.1:\d+/")

    def test_http_of_a_longer_address(self):
        """What is told can be opened."""
        try:
            with socket.socket(socket.AF_INET6) as s:
                s.bind(("::1", 0))
        except OSError:
            self.skipTest("no IPv6 here")
        self.http("[::1]:0", r"http://\[::1\]:\d+/")


if __name__ == "__main__":
    main()
