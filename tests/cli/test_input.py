"""Where keys come from, and which bytes are a key."""
import errno
import os
import re
import signal

import rig
from rig import Case, main

LONGEST = 65536


def some_keys(random, n, longest):
    """Different keys of letters, so that --dry-run shows them as they are."""
    found = {}
    while len(found) < n:
        size = random.randint(1, longest)
        found["".join(random.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=size))] = None
    return list(found)


class Input(Case):
    def keys(self, *args, input, status=0):
        """The keys that the command got, in order, and what was said."""
        p = self.wq("run", "-j1", *args, "--", "printf", "%s\\0", "{}", input=input)
        self.assertEqual(p.returncode, status, p.stderr)
        return p.stdout.split(b"\0")[:-1], p.stderr

    def same(self, wanted, *args, input, status=0):
        self.assertEqual(self.keys(*args, input=input, status=status)[0], wanted)

    def summary(self, stderr):
        return stderr.decode().split("wq: ")[1].strip()

    # ---- reading

    def test_nothing_there_after_all(self):
        """Another reader of the same pipe was quicker, or a signal came: that is no end of the input."""
        for error in (errno.EAGAIN, errno.EINTR):
            once = self.dir / "once"
            once.touch()
            p = self.wq("run", "--", "echo", input="a\nb\n", env=self.shim(f"read:{error}:{once}"))
            self.assertEqual((p.returncode, sorted(p.stdout.split())), (0, [b"a", b"b"]), p.stderr)
            self.assertFalse(once.exists())

    def test_a_message_that_is_too_long(self):
        """It is cut, and still a line."""
        p = self.wq("run", "-a", "x" * 3000, "--", "true")
        line, rest = p.stderr.split(b"\n", 1)
        self.assertEqual(p.returncode, 1)
        self.assertRegex(line, rb"^wq: x+$")
        self.assertEqual((len(line), rest), (2046, b""))

    # ---- lines, -0, -d

    def test_lines(self):
        self.same([b"a", b"b"], input="a\nb\n")
        self.same([b"a", b"b"], input="a\nb")
        self.same([], input="")

    def test_empty_lines_are_passed_over(self):
        got, err = self.keys("--summary", input="\n\na\n\n\nb\n\n")
        self.assertEqual(got, [b"a", b"b"])
        self.assertEqual(self.summary(err), "2 given = 0 merged + 0 refused + 2 to do")
        self.same([b"a", b"b"], "-0", input="\0\0a\0\0b")

    def test_the_same_key_merges(self):
        got, err = self.keys("--summary", input="a\na\nb\na\n")
        self.assertEqual(got, [b"a", b"b"])
        self.assertEqual(self.summary(err), "4 given = 2 merged + 0 refused + 2 to do")

    def test_null(self):
        for option in ("-0", "--null"):
            self.same([b"a\nb", b"c ", b"\n"], option, input="a\nb\0c \0\n\0")
        self.same([b"a\nb"], "-0", input="a\nb")

    def test_delimiters(self):
        for given, c in ((",", ","), ("\\t", "\t"), ("\\x1f", "\x1f"), ("\\0", "\0"), ("\\n", "\n"),
                         ("\\r", "\r"), ("\\\\", "\\"), ("\\", "\\"), ("\n", "\n"), ("\\xff", None)):
            end = c.encode() if c else b"\xff"
            self.same([b"a b", b"n"], "-d", given, input=b"a b" + end + b"n" + end)
            self.same([b"a b", b"n"], f"--delimiter={given}", input=b"a b" + end + b"n")
        self.same([b"a\nb", b"c\n"], "-d,", input="a\nb,c\n")

    def test_the_last_delimiter_counts(self):
        self.same([b"a", b"b"], "-0", "-d,", input="a,b")
        self.same([b"a,b"], "-d,", "-0", input="a,b\0")

    # ---- files

    def test_file_instead_of_standard_input(self):
        (self.dir / "keys").write_text("f\ng\n")
        for option in (("-a", "keys"), ("-akeys",), ("--arg-file", "keys"), ("--arg-file=keys",)):
            self.same([b"f", b"g"], *option, input="not me\n")

    def test_dash_is_standard_input(self):
        self.same([b"me"], "-a", "-", input="me\n")

    def test_a_pipe_with_a_name(self):
        self.fifo("keys")
        p = self.start("run", "-a", "keys", "--", "echo", "{}")
        with open(self.dir / "keys", "w", encoding="ascii") as f:
            f.write("a\n")
            f.flush()
            self.assertEqual(p.stdout.readline(), b"a\n")
            f.write("b")
        self.assertEqual((p.stdout.readline(), p.wait()), (b"b\n", 0))

    def test_no_such_file(self):
        p = self.wq("run", "-a", "nowhere", "--log", "log", "--", "echo")
        self.assertEqual((p.returncode, p.stdout), (1, b""))
        self.assertEqual(p.stderr, b"wq: nowhere: No such file or directory\n")

    def test_a_directory_has_no_keys(self):
        p = self.wq("run", "-a", ".", "--", "echo")
        self.assertEqual((p.returncode, p.stdout), (1, b""))
        self.assertEqual(p.stderr, b"wq: . is a directory: expected a file with keys\n")
        for args in ((), ("-a", "-")):
            fd = os.open(self.dir, os.O_RDONLY)
            p = self.start("run", *args, "--", "echo", stdin=fd)
            os.close(fd)
            out, err = p.communicate()
            self.assertEqual((p.returncode, out), (1, b""))
            self.assertEqual(err, b"wq: standard input is a directory: expected a file with keys\n")

    # ---- which bytes

    def test_odd_keys_arrive_as_they_are(self):
        odd = [b"two words", b" leading", b"trailing ", b"\ttab", b"'", b'"', b"it's", b'"q"', b"\\", b"\\n",
               b"$HOME", b"`id`", b"$(id)", b"*", b"?", b"~", b";", b"&", b"|", b">x", b"#", b"!", b"%s", b"%",
               b"{}", b"{#}", b"{%}", b"{", b"a=b", b"\r", b"caf\xc3\xa9", b"\xff\xfe", b"\x1b[31m", b"."]
        self.same(odd, input=b"\n".join(odd))
        self.same(odd + [b"a\nb", b"\n"], "-0", input=b"\0".join(odd + [b"a\nb", b"\n"]))

    def test_leading_dash(self):
        dashes = [b"-n", b"--", b"-", b"--help", b"-0", b"--dry-run"]
        self.same(dashes, input=b"\n".join(dashes))

    def test_every_byte(self):
        every = bytes(range(1, 256))
        self.same([every], "-0", input=every)
        self.same([every[:9], every[10:]], input=every)
        random = [self.random.randbytes(self.random.randint(1, 400)).replace(b"\0", b"\1") + b"%d" % i
                  for i in range(40)]
        self.same(random, "-0", input=b"\0".join(random))

    def test_nul_in_a_line_is_refused(self):
        got, err = self.keys("--summary", input=b"a\0b\nc\n\0\n", status=1)
        self.assertEqual(got, [b"c"])
        self.assertIn(b"a key has a NUL byte", err)
        self.assertIn(b"-0: NUL ends a key): a\\x00b\n", err)
        self.assertIn(b"3 given = 0 merged + 2 refused + 1 to do", err)

    # ---- how long

    def size(self, *args, input, status=0):
        p = self.wq("run", "-j1", *args, "--", "sh", "-c", 'printf %s "$1" | wc -c', "sh", "{}", input=input)
        self.assertEqual(p.returncode, status, p.stderr)
        return [int(n) for n in p.stdout.split()], p.stderr

    def test_the_longest_key(self):
        longest = "x" * LONGEST
        for args, end in (((), "\n"), (("-0",), "\0"), (("-d,",), ",")):
            self.assertEqual(self.size(*args, input=longest)[0], [LONGEST])
            self.assertEqual(self.size(*args, input=longest + end + "y" + end)[0], [LONGEST, 1])
            self.assertEqual(self.size(*args, input="abc" + end + longest + end + "de")[0], [3, LONGEST, 2])

    def test_one_byte_more_is_refused(self):
        for args, end in (((), "\n"), (("-0",), "\0")):
            for more in (1, 2, LONGEST, 20 * LONGEST + 7):
                long = "x" * (LONGEST + more)
                for input in ("y" + end + long + end + "zz", long + end + "y" + end + "zz" + end,
                              "y" + end + "zz" + end + long):
                    got, err = self.size("--summary", *args, input=input, status=1)
                    self.assertEqual(got, [1, 2])
                    self.assertEqual(err.count(b"a key is longer than 65536 bytes and is left out: xxx"), 1)
                    self.assertIn(b"3 given = 0 merged + 1 refused + 2 to do", err)

    def test_keys_that_blocks_cut(self):
        keys = some_keys(self.random, 60, 9000) + some_keys(self.random, 20000, 40)
        self.random.shuffle(keys)
        keys = list(dict.fromkeys(keys))
        p = self.wq("run", "--dry-run", "--", "echo", input="\n".join(keys))
        self.assertEqual(p.returncode, 0)
        self.assertTrue(p.stdout.decode().splitlines() == ["echo " + k for k in keys])

    def test_huge_input(self):
        n = 200000
        for args in (("-0",), ("--max-queue=7", "-0")):
            p = self.wq("run", "--dry-run", "--summary", *args, "--", "echo",
                        input="\0".join(str(i) for i in range(n)))
            self.assertEqual(p.returncode, 0)
            self.assertTrue(p.stdout == b"".join(b"echo %d\n" % i for i in range(n)))
            self.assertIn(b"%d to do = %d done + 0 dead" % (n, n), p.stderr)

    # ---- as they come

    def test_keys_are_worked_on_before_the_input_ends(self):
        p = self.start("run", "-j1", "--", "echo", "{}")
        self.give(p, "a")
        self.assertEqual(p.stdout.readline(), b"a\n")
        self.give(p, "b", "c")
        self.assertEqual((p.stdout.readline(), p.stdout.readline()), (b"b\n", b"c\n"))

    def test_a_key_in_two_parts(self):
        p = self.start("run", "-j1", "--", "echo", "{}")
        p.stdin.write(b"x\nab")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline(), b"x\n")
        p.stdin.write(b"cd\nla")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline(), b"abcd\n")
        p.stdin.write(b"st")
        p.stdin.close()
        self.assertEqual((p.stdout.readline(), p.wait()), (b"last\n", 0))

    def test_max_queue_bounds_what_is_read(self):
        (self.dir / "keys").write_text("".join(f"{i}\n" for i in range(1000)))
        self.fifo("go")
        p = self.start("run", "-j1", "-a", "keys", "--max-queue", "5", "--summary", "--leftover", "left", "--",
                       "sh", "-c", "echo; read x <go", "sh", stdin=None)
        go = open(self.dir / "go", "w", encoding="ascii")  # the command runs
        p.terminate()
        self.assertIn(b"stopping", p.stderr.readline())
        go.write("go\n")
        go.close()
        err = p.communicate()[1].decode()
        # Five besides the one that runs, if the loop came that far before the signal.
        self.assertRegex(err, r"wq: [56] given = 0 merged \+ 0 refused")
        self.assertRegex(err, r"1 done \+ 0 dead \+ 0 cancelled \+ [45] unfinished \(and 99[45] not read\)")
        self.assertEqual(sorted(map(int, self.lines("left"))), list(range(1, 1000)))
        self.assertEqual(p.returncode, 75)

    def test_room_that_commands_make(self):
        """A queue that was full and is not any more is given what comes then."""
        p = self.start("run", "--dry-run", "--max-queue", "1", "--", "echo")
        for key in "abc":
            self.give(p, key)
            self.assertEqual(p.stdout.readline(), b"echo %s\n" % key.encode())
        p.stdin.close()
        self.assertEqual(p.wait(), 0)

    def test_a_free_worker_is_given_what_comes(self):
        p = self.start("run", "-j3", "--max-queue", "1", "--", "sh", "-c", 'touch "up$1"; read x <"go$1"', "sh")
        for key in "abc":
            self.fifo(f"go{key}")
            self.give(p, key)
            self.until_file(f"up{key}")  # those before it run yet
        p.stdin.close()
        for key in "abc":
            self.let(f"go{key}")
        self.assertEqual(p.wait(), 0)

    def hears(self, p, number):
        """It does not take the signal's default any more."""
        with open(f"/proc/{p.pid}/status", encoding="ascii") as f:
            return int(re.search(r"SigBlk:\s*(\S+)", f.read())[1], 16) & 1 << number - 1

    def test_a_device_without_an_end(self):
        """It is not read to its end when the run stops."""
        with open("/dev/zero", "rb") as zero:
            p = self.start("run", "-0", "--leftover=left", "--", "true", stdin=zero)
        self.until(lambda: self.hears(p, signal.SIGTERM), "a run that hears signals")
        p.terminate()
        self.assertEqual(p.wait(rig.PATIENCE), 0)


if __name__ == "__main__":
    main()
