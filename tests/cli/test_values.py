"""Values of keys: where they come from, how they merge, who gets them, and what is refused."""
import resource
import signal

from rig import Case, main
from served import Served, frame

MAX = 65536
SHOW = ("sh", "-c", 'echo "$1|$2|${WQ_VALUE-unset}"', "sh", "{}", "{value}")


class Lines(Case):
    def run_lines(self, text, *args, command=SHOW, status=0):
        p = self.wq("run", "-j1", *args, "--", *command, input=text)
        self.assertEqual(p.returncode, status, p.stderr)
        self.err = p.stderr.decode(errors="replace")
        return p.stdout.decode(errors="surrogateescape").splitlines()

    def test_line(self):
        """The first separator counts; an empty value is one, and no separator is none."""
        self.assertEqual(self.run_lines("a\tone two\nb\nc\t\nd\tx\ty\n", "--value-after=\\t"),
                         ["a|one two|one two", "b||unset", "c||", "d|x\ty|x\ty"])

    def test_separators(self):
        for option, c in (("=", "="), ("\\x3d", "="), ("\\t", "\t"), (":", ":"), ("\\\\", "\\"), ("\\r", "\r")):
            with self.subTest(option=option):
                self.assertEqual(self.run_lines(f"a{c}1", f"--value-after={option}"), ["a|1|1"])
        self.assertEqual(self.run_lines("a\nx\ny\0", "-0", "--value-after=\\n", command=("printf", "%s.%s!", "{}", "{value}")),
                         ["a.x", "y!"])

    def test_without_the_option(self):
        self.assertEqual(self.run_lines("a\tb\n"), ["a\tb||unset"])

    def test_it_is_not_the_key(self):
        """A command without the key gets it as its last argument, whether or not it has the value."""
        self.assertEqual(self.run_lines("a=1\n", "--value-after==", command=("echo", "-{value}{value}-")), ["-11- a"])
        self.assertEqual(self.run_lines("a=1\n", "--value-after==", command=("echo", "{valu}", "{/.}{value}", "{value")),
                         ["{valu} a1 {value"])

    def test_it_is_not_replaced_again(self):
        self.assertEqual(self.run_lines("{value}={}\n", "--value-after==", command=("echo", "{}", "{value}")), ["{value} {}"])

    def test_many_keys_of_one_command(self):
        """A word with the value is repeated for each key; the environment has none of them."""
        command = ("sh", "-c", 'echo "$@" ${WQ_VALUE-unset} ${WQ_PRIORITY-unset} $WQ_KEYS', "sh", "{}", "v{value}", "-")
        self.assertEqual(self.run_lines("a=1\nb\nc=3\n", "-n9", "--value-after==", command=command),
                         ["a b c v1 v v3 - unset unset 3"])

    def test_too_long_for_one_command(self):
        """Values count: a command gets fewer keys."""
        def few():
            resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, 1 << 20))  # a quarter of it is for arguments
        text = "".join(f"{i}={'v' * 60000}\n" for i in range(9))
        p = self.wq("run", "-j1", "-n9", "--value-after==", "--", "sh", "-c", 'shift $#; echo $WQ_KEYS', "sh", "{}", "{value}",
                    input=text, preexec_fn=few)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(sum(int(n) for n in p.stdout.split()), 9)
        self.assertLess(max(int(n) for n in p.stdout.split()), 9)
        # The next one is not made smaller than that.
        self.assertLess(len(p.stdout.split()), 6)

    def test_retries_keep_it(self):
        self.assertEqual(self.run_lines("a=x\n", "--value-after==", "--backoff=1ms", "--retries=2", status=123,
                                        command=("sh", "-c", "echo {#} $WQ_VALUE; exit 1", "{}")), ["1 x", "2 x", "3 x"])

    def test_dry_run(self):
        self.assertEqual(self.run_lines("a=x y\n", "--value-after==", "--dry-run", command=("mv", "{}", "{value}")),
                         ["mv a 'x y'"])

    def test_longest(self):
        for option, end in (("-d\\n", "\n"), ("-0", "\0")):
            for last in ("", end):
                text = end.join(["k" * MAX + "=" + "v" * MAX, "long=" + "v" * (MAX + 1), "K" * (MAX + 1) + "=v",
                                 "K" * (2 * MAX + 5), "longer=" + "v" * (1 << 20), "=v", "=", "end=" + "w" * MAX]) + last
                lines = self.run_lines(text, option, "--value-after==", "--summary", status=1,
                                       command=("sh", "-c", "echo ${#WQ_KEY} ${#WQ_VALUE}", "{}"))
                self.assertEqual(lines, ["65536 65536", "3 65536"])
                self.assertEqual(self.err.count("a value is longer than 65536 bytes, and its key is left out: long"), 2)
                self.assertEqual(self.err.count("a key is longer than 65536 bytes and is left out: KKK"), 2)
                self.assertEqual(self.err.count("a line has a value, but no key"), 2)
                self.assertIn("8 given = 0 merged + 6 refused", self.err)

    def test_nul(self):
        self.assertEqual(self.run_lines(b"a=x\0y\nb=z\n", "--value-after==", status=1), ["b|z|z"])
        self.assertIn("NUL", self.err)

    def test_wrong(self):
        for args, message in ((["--value-after="], "one character"), (["--value-after=ab"], "one character"),
                              (["--value-after=\\n"], "ends keys"), (["-0", "--value-after=\\0"], "ends keys"),
                              (["--value-after=\\0"], "NUL"), (["--merge="], "last, first"), (["--merge=lasts"], "last, first"),
                              (["--merge=append:\\0"], "a text"), (["--merge=append:\\q"], "a text"),
                              (["--merge=append:x\\"], "a text")):
            p = self.wq("run", *args, "--", "touch", "made", input="a\n")
            self.assertEqual(p.returncode, 2, args)
            self.assertIn(message, p.stderr.decode(), args)
            self.assertEqual(self.dir.joinpath("made").exists(), False)


class Merge(Served):
    def merged(self, *args):
        """What three adds make of two values; the third has none."""
        self.serve(*args)
        self.ask("pause")
        self.ask("add", "--value=ab", "k")
        self.ask("add", "--value=A", "k")
        self.ask("add", "k")
        (e,) = self.ls()
        self.ask("stop")
        self.ended()
        return e["value"]

    def test_how(self):
        for args, value in (([], "A"), (["--merge=last"], "A"), (["--merge=first"], "ab"), (["--merge=append"], "ab\nA"),
                            (["--merge=append:"], "abA"), (["--merge=append:, "], "ab, A"),
                            (["--merge=append:\\t\\x2c\\\\"], "ab\t,\\A"), (["--merge=or"], "ab"),
                            (["--merge=append:x", "--merge=append"], "ab\nA")):
            with self.subTest(args=args):
                self.assertEqual(self.merged(*args), value)

    def test_while_it_runs(self):
        """What comes meanwhile is for the next attempt; after a failure with what there was."""
        self.fifo("gate")
        self.serve("-j1", "--merge=append:,", "--backoff=1ms",
                   command=("sh", "-c", 'echo $WQ_VALUE >>seen; read x <gate; [ "$x" = go ] && [ {#} = 2 ] || [ -e good ]', "{}"))
        self.ask("add", "--value=1", "k")
        self.until_status(running=1)
        self.ask("add", "--value=2", "k")
        self.ask("add", "--value=3", "k")
        self.let("gate")
        self.until(lambda: self.lines("seen") == ["1", "1,2,3"], "the second attempt")
        self.ask("add", "--value=4", "k")
        (self.dir / "good").touch()
        self.let("gate")
        self.until(lambda: self.lines("seen") == ["1", "1,2,3", "4"], "the one after it")
        self.let("gate")
        self.ask("wait")

    def test_too_long_together(self):
        """The add is refused, and nothing changes."""
        self.serve("--merge=append", "--value-after=\t")
        self.ask("pause")
        self.ask("add", "--value=" + "x" * 40000, "k")
        self.ask("add", "--value=" + "y" * 40000, "k", "other", status=1)
        self.assertIn("k: its values are longer than 65536 bytes together", self.complaint)
        (e,) = self.ls()
        self.assertEqual((e["key"], e["value"]), ("k", "x" * 40000))
        self.assertEqual(self.status()["refused"], 1)
        self.send(b"k\t" + b"z" * 40000 + b"\n")
        self.until_status(refused=2)
        self.adds_up()


class Add(Served):
    def test_value(self):
        self.serve("--log=log", "-j1", command=("sh", "-c", 'printf "%s|%s\\n" "$WQ_VALUE" "$1" >>seen', "sh", "{value}{}"))
        self.ask("add", "--value=a b\\n", "--wait", "k")
        self.ask("add", "--value=", "--wait", "k")
        self.ask("add", "--wait", "k")
        self.ask("add", "--wait", "-", "--value=v", input="x\ny\n")
        self.assertEqual(self.lines("seen"), ["a b\\n|a b\\nk", "|k", "|k", "v|vx", "v|vy"])

    def test_longest(self):
        self.serve(command=("sh", "-c", "echo ${#WQ_VALUE} >seen"))
        self.ask("pause")
        self.ask("add", "--value=" + "v" * MAX, "k" * MAX, "l")
        self.assertEqual([(len(e["key"]), e["value"]) for e in self.ls()], [(MAX, "v" * MAX), (1, "v" * MAX)])
        self.ask("resume")
        self.ask("wait")
        self.assertEqual(self.lines("seen"), ["65536"])

    def test_wrong(self):
        self.serve()
        for args, message in ((["--value=" + "v" * (MAX + 1)], "longer than 65536 bytes"), (["--priority=32768"], "-32768 to 32767"),
                              (["--priority=-32769"], "-32768 to 32767"), (["--priority="], "a number"), (["--priority=x"], "a number"),
                              (["--priority=1.5"], "a number"), (["--priority=+1"], "a number"), (["--priority=--1"], "a number"),
                              (["--priority=99999999999999999999"], "a number"), (["--priority=1 "], "a number")):
            self.ask("add", *args, "k", status=2)
            self.assertIn(message, self.complaint, args)
        for command in ("ls", "status", "wait"):
            for option in ("--priority=1", "--value=v"):
                self.ask(command, option, status=2)
                self.assertIn("no such option", self.complaint)
        self.assertEqual(self.status()["given"], 0)

    def test_wrong_orders(self):
        """By a client of its own: they are answered, and change nothing."""
        self.serve()
        self.ask("pause")
        for fields in (["with"], ["with", ""], ["with", "x"], ["with", "32768"], ["with", "-32769"], ["with", "1", b"v" * (MAX + 1)]):
            with self.connect() as s:
                s.sendall(b"\0" + frame(*fields) + frame("add", "0", "k"))
                s.shutdown(1)
                answer = self.rest(s)
            self.assertRegex(answer, rb"\A\d+:!2 ", fields)
            self.assertRegex(answer, rb"3:\.1 |4:\.1 [01],\Z")
            (e,) = self.ls()
            self.assertEqual((e["priority"], "value" in e), (0, False), fields)

    def test_lines_of_the_socket(self):
        self.serve("--value-after=\\t")
        self.ask("pause")
        self.send(b"a\tone\nb\nc\t\tx\nlast\ty")
        self.until_status(given=4)
        self.assertEqual({e["key"]: e.get("value") for e in self.ls()}, {"a": "one", "b": None, "c": "\tx", "last": "y"})
        for line, message in ((b"\tv\n", b"a value has no key"), (b"k\t" + b"v" * (MAX + 1) + b"\n", b"a value is longer than 65536"),
                              (b"k\t" + b"v" * (1 << 20), b"a value is longer than 65536"),
                              (b"k" * (MAX + 1) + b"\tv\n", b"a key is longer than 65536")):
            s = self.connect()
            try:
                s.sendall(line)
            except (BrokenPipeError, ConnectionResetError):
                pass
            self.assertIn(message, self.rest(s))
        self.assertEqual(self.status()["refused"], 4)

    def test_unknown_order(self):
        """As a run that does not know values would answer."""
        self.serve()
        with self.connect() as s:
            s.sendall(b"\0" + frame("withs", "1"))
            s.shutdown(1)
            self.assertIn(b"older wq", self.rest(s))


class Shown(Served):
    def test_ls(self):
        self.serve("--group-by=/")
        self.ask("pause")
        self.ask("add", "--priority=-7", "--value=x\ny\x1b" + "z" * 100, "g/k")
        self.ask("add", "plain")
        lines = self.ask("ls").splitlines()
        self.assertTrue(lines[0].endswith(" g/k  [priority -7, group g, value x\\x0ay\\x1b" + "z" * 50 + "...]"), lines)
        self.assertTrue(lines[1].endswith(" plain  [group plain]"), lines)
        self.assertEqual([(e["priority"], e["group"], e.get("value")) for e in self.ls()],
                         [(-7, "g", "x\ny\x1b" + "z" * 100), (0, "plain", None)])
        self.assertEqual(self.ask("ls", "-0"), "g/k\0plain\0")

    def test_a_run_without_them(self):
        self.serve()
        self.ask("pause")
        self.ask("add", "k")
        self.assertRegex(self.ask("ls"), r"\Aqueued +\d+ms +0  k\n\Z")
        self.assertEqual(set(self.ls()[0]), {"key", "state", "since_s", "failures", "dirty", "priority"})
        self.assertNotIn("priority", self.ask("status") + self.ask("top"))
        self.assertNotIn("group", self.ask("status") + self.ask("top"))
        self.assertNotIn("blocked", self.ask("status") + self.ask("top"))

    def test_running(self):
        self.fifo("gate")
        self.serve("-j1", command=("sh", "-c", "read x <gate", "{}"))
        self.ask("add", "--priority=3", "--value=one", "k")
        self.until_status(running=1)
        self.ask("add", "--priority=5", "--value=two", "k")
        (e,) = self.ls("--state=running")
        self.assertEqual((e["priority"], e["value"], e["dirty"]), (3, "one", True))
        (e,) = self.ls()
        self.assertEqual((e["priority"], e["value"], e["dirty"]), (5, "two", True))
        self.assertIn("k  [priority 3, value one]", self.ask("top"))
        self.ask("cancel", "--kill", "k")

    def test_dead(self):
        """It keeps both, also when it is tried again."""
        self.serve("--value-after==", "-j1", command=("sh", "-c", "echo $WQ_PRIORITY $WQ_VALUE >>seen; exit 100", "{}"))
        self.ask("add", "--priority=3", "--value=one", "--wait", "k", status=123)
        (e,) = self.ls("--state=dead")
        self.assertEqual((e["priority"], e["value"]), (3, "one"))
        self.ask("retry", "k")
        self.until(lambda: self.lines("seen") == ["3 one", "3 one"], "the second attempt")

    def test_status(self):
        self.fifo("gate")
        self.serve("-j9", "--group-by=/", "--group-jobs=1", command=("sh", "-c", "read x <gate", "{}"))
        self.ask("add", "a/1", "b\x1b/1")
        self.until_status(running=2)
        self.ask("add", "--priority=2", "a/2", "a/3")
        self.ask("add", "a/4")
        s = self.status()
        self.assertEqual((s["queued"], s["blocked"], s["groups"], s["merge_failed"], s["queued_lower"]), (3, 3, 2, 0, 0))
        self.assertEqual(s["level"], [{"priority": 2, "queued": 2}, {"priority": 0, "queued": 1}])
        self.assertEqual(s["busiest"], [{"name": "a", "queued": 3, "running": 1}, {"name": "b\\x1b", "queued": 0, "running": 1}])
        for text in (self.ask("status"), self.ask("top")):
            self.assertIn("queued (3 blocked)", text)
            self.assertIn("queued by priority: 2: 2, 0: 1\n", text)
            self.assertIn("2 groups; the busiest: a (1 running, 3 queued), b\\x1b (1 running, 0 queued)\n", text)

    def test_metrics(self):
        for add, wanted in (([], 'workqueue_depth{name="wq"} 0\n'), (["--priority=1"], 'workqueue_depth{name="wq",priority="0"} 0\n')):
            self.serve("--metrics-file=m")
            self.ask("add", "--wait", *add, "k")
            self.ask("stop")
            self.ended()
            self.assertIn(wanted, (self.dir / "m").read_text())


class Kept(Served):
    """What a run leaves, the next one takes up."""
    HEAD = b"#wq-leftover-1\n"

    def stop(self, status=75):
        """Its command, if one runs, is terminated."""
        self.until(lambda: self.run_.poll() is not None or self.run_.send_signal(signal.SIGTERM), "the end")
        self.assertEqual(self.run_.returncode, status, self.said())

    def left_file(self, name="left"):
        return (self.dir / name).read_bytes()

    def held(self, *args):
        """A run that starts nothing."""
        self.serve("-j1", "--leftover=left", *args, command=("sh", "-c", "exec sleep 1000", "{}"))
        self.ask("pause")

    def taken(self):
        return sorted((e["key"], e["priority"], e.get("value")) for e in self.ls())

    def test_records(self):
        """A key without them is written as ever, and one with them says so."""
        self.held("--backoff=1h")
        self.ask("add", "--priority=-5", "low")
        self.ask("add", "--value=", "empty")
        self.ask("add", "--priority=32767", "--value=a\nb\tc%d_e\x7f \u20ac:", "both")
        self.ask("add", "plain")
        self.stop()
        self.assertEqual(self.left_file(), self.HEAD + "@0\t0:-5\tlow\n@0\t0:0:\tempty\n"
                         "@0\t0:32767:a%0Ab%09c%25d%5Fe%7F \u20ac:\tboth\n@0\t0\tplain\n".encode())
        wanted = [("both", 32767, "a\nb\tc%d_e\x7f \u20ac:"), ("empty", 0, ""), ("low", -5, None), ("plain", 0, None)]
        for _ in range(2):
            self.paused("-a", "left")
            self.assertEqual(self.taken(), wanted)
            self.stop()

    def paused(self, *args, n=4):
        """A run that reads a file, and starts one command at most."""
        self.serve("-j1", "--leftover=left", *args, command=("sh", "-c", "exec sleep 1000", "{}"))
        self.ask("pause")
        self.until_status(given=n)

    def test_without_them_it_is_a_list(self):
        self.held("--group-by=/")
        self.ask("add", "a", "b", "@0\t0:1\tc")
        self.stop()
        self.assertEqual(self.left_file(), b"a\nb\n@0\t0:1\tc\n")

    def test_a_priority_alone(self):
        self.held()
        self.ask("add", "--priority=1", "k")
        self.stop()
        self.assertEqual(self.left_file(), self.HEAD + b"@0\t0:1\tk\n")

    def test_a_key_with_the_separator(self):
        """It was one key, and is one in the next run."""
        self.held("--value-after==")
        self.ask("add", "a=b")
        self.stop()
        self.assertEqual(self.left_file(), self.HEAD + b"@0\t0\ta=b\n")
        self.paused("-a", "left", "--value-after==", n=1)
        self.assertEqual(self.taken(), [("a=b", 0, None)])
        self.stop()

    def test_any_delimiter(self):
        """Also one that stands in a value, or before the key."""
        value = "".join(chr(c) for c in range(1, 128)) + "\u00e4"
        for end in "\n\0,\t@_#.015:%-AFa=":
            with self.subTest(delimiter=end):
                option = f"-d\\x{ord(end):02x}"
                self.held(option)
                self.ask("add", "--priority=-10", f"--value={value}", "K")
                self.stop()
                self.assertEqual(self.left_file().count(end.encode()), 2)
                self.paused(option, "-a", "left", n=1)
                self.assertEqual(self.taken(), [("K", -10, value)])
                self.stop()

    def test_longest(self):
        self.held()
        value = "\n" * MAX
        self.ask("add", "--priority=-32768", f"--value={value}", "k" * MAX)
        self.stop()
        self.paused("-a", "left", n=1)
        self.assertEqual(self.taken(), [("k" * MAX, -32768, value)])
        self.stop()

    def test_waiting_and_failed(self):
        self.serve("--leftover=left", "--backoff=1h", command=("false",))
        self.ask("add", "--priority=4", "--value=v", "k")
        self.until_status(failed=1, waiting=1)
        self.stop()
        self.assertRegex(self.left_file(), rb"\A#wq-leftover-1\n@\d+\.\d{3}\t1:4:v\tk\n\Z")
        self.serve("-a", "left", "--leftover=left")
        self.until_status(given=1)
        (e,) = self.ls()
        self.assertEqual((e["state"], e["failures"], e["priority"], e["value"]), ("waiting", 1, 4, "v"))

    def test_of_a_command_that_was_ended(self):
        self.serve("--leftover=left", command=("sh", "-c", "exec sleep 1000", "{}"))
        self.ask("add", "--priority=4", "--value=v", "k")
        self.until_status(running=1)
        self.stop()
        self.assertEqual(self.left_file(), self.HEAD + b"@0\t0:4:v\tk\n")

    def test_what_was_not_read(self):
        """Lines of the input have their values; a key of a record that has the separator is one key."""
        text = b"".join(b"k%d=v%d\n" % (i, i) for i in range(9)) + b"plain\n"
        p = self.wq("run", "-j1", "--max-queue=1", "--value-after==", "--leftover=left", "--", "sh", "-c", "kill $PPID", input=text)
        self.assertEqual(p.returncode, 75)
        self.assertEqual(self.left_file(), self.HEAD + b"".join(b"@0\t0:0:v%d\tk%d\n" % (i, i) for i in range(1, 9)) +
                         b"@0\t0\tplain\n")
        (self.dir / "more").write_bytes(self.left_file() + b"by=hand\n@0\t0\tone=key\n")
        p = self.wq("run", "-j1", "-amore", "--value-after==", "--", *SHOW)
        self.assertEqual(p.stdout.decode().splitlines(), [f"k{i}|v{i}|v{i}" for i in range(1, 9)] +
                         ["plain||unset", "by|hand|hand", "one=key||unset"])
        p = self.wq("run", "-j1", "--max-queue=1", "-amore", "--value-after==", "--leftover=left", "--", "sh", "-c", "kill $PPID")
        self.assertEqual(self.left_file(), self.HEAD + b"".join(b"@0\t0:0:v%d\tk%d\n" % (i, i) for i in range(2, 9)) +
                         b"@0\t0\tplain\n@0\t0:0:hand\tby\n@0\t0\tone=key\n")

    def test_malformed(self):
        bad = [b"@0\t0:\tx", b"@0\t0:x\tx", b"@0\t0:1.5\tx", b"@0\t0:32768\tx", b"@0\t0:-32769\tx", b"@0\t0:--1\tx", b"@0\t0:0:v",
               b"@0\t0:0:%\tx", b"@0\t0:0:%4\tx", b"@0\t0:0:%zz\tx", b"@0\t0:0:%00\tx", b"@0\t0:0:v\t",
               b"@0\t0:0:" + b"v" * (MAX + 1) + b"\tx", b"@0\t0:99999999999999999999\tx", b"@0\t:1\tx"]
        (self.dir / "left").write_bytes(self.HEAD + b"\n".join(bad) + b"\n@0\t0:-32768:%41%5f\tgood\n")
        p = self.wq("run", "-aleft", "--summary", "--", *SHOW)
        self.assertEqual((p.returncode, p.stdout), (1, b"good|A_|A_\n"))
        self.assertEqual(p.stderr.count(b"a line begins with @, but not with"), len(bad))
        self.assertIn(f"{len(bad) + 1} given = 0 merged + {len(bad)} refused", p.stderr.decode())


if __name__ == "__main__":
    main()
