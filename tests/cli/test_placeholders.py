"""Parts of a key in the words of a command: what GNU parallel answers for {.} {/} {//} {/.}."""
import shutil
import subprocess
from unittest import skipUnless

import rig
from rig import Case, main

# Recorded from GNU parallel 20221122: the key, {.}, {/}, {//}, {/.}.
TABLE = [
    ("a", "a", "a", ".", "a"),
    ("a.b", "a", "a.b", ".", "a"),
    ("a.b.c", "a.b", "a.b.c", ".", "a.b"),
    ("dir/a.b", "dir/a", "a.b", "dir", "a"),
    ("dir.d/a", "dir.d/a", "a", "dir.d", "a"),
    ("dir.d/a.b", "dir.d/a", "a.b", "dir.d", "a"),
    ("a/", "a/", "", ".", ""),
    ("a.b/", "a.b/", "", ".", ""),
    ("a//", "a//", "", ".", ""),
    ("/", "/", "", "/", ""),
    ("//", "//", "", "/", ""),
    ("///", "///", "", "/", ""),
    ("/a", "/a", "a", "/", "a"),
    ("/a.b", "/a", "a.b", "/", "a"),
    ("/a/", "/a/", "", "/", ""),
    ("//a", "//a", "a", "/", "a"),
    ("//a//b//", "//a//b//", "", "//a", ""),
    ("a//b.c", "a//b", "b.c", "a", "b"),
    (".", "", ".", ".", ""),
    ("..", ".", "..", ".", "."),
    ("...", "..", "...", ".", ".."),
    (".x", "", ".x", ".", ""),
    ("d/.x", "d/", ".x", "d", ""),
    (".x.y", ".x", ".x.y", ".", ".x"),
    ("a.", "a", "a.", ".", "a"),
    ("a..", "a.", "a..", ".", "a."),
    ("d/a.", "d/a", "a.", "d", "a"),
    ("a./b", "a./b", "b", "a.", "b"),
    ("./a.b", "./a", "a.b", ".", "a"),
    ("../a", "../a", "a", "..", "a"),
    ("a/.", "a/", ".", "a", ""),
    ("a/..", "a/.", "..", "a", "."),
    ("a/./b", "a/./b", "b", "a/.", "b"),
    ("a b.c d", "a b", "a b.c d", ".", "a b"),
    (" ", " ", " ", ".", " "),
    ("a/b/c/d.tar.gz", "a/b/c/d.tar", "d.tar.gz", "a/b/c", "d.tar"),
    ("-n.x", "-n", "-n.x", ".", "-n"),
    ("{}.x", "{}", "{}.x", ".", "{}"),
    ("{.}/{/}", "{.}/{/}", "}", "{.}/{", "}"),
    ("$x.y", "$x", "$x.y", ".", "$x"),
    ('a\'b"c.d', 'a\'b"c', 'a\'b"c.d', ".", 'a\'b"c'),
    ("*.c", "*", "*.c", ".", "*"),
    ("café/é.x", "café/é", "é.x", "café", "é"),
    ("\\.\\", "\\", "\\.\\", ".", "\\"),
    ("a\tb.c", "a\tb", "a\tb.c", ".", "a\tb"),
    ("a=b.c/d", "a=b.c/d", "d", "a=b.c", "d"),
    ("~/x.y", "~/x", "x.y", "~", "x"),
    ("http://h.x/p.q?r=s.t", "http://h.x/p.q?r=s", "p.q?r=s.t", "http://h.x", "p.q?r=s"),
]


def is_gnu_parallel():
    """Another program has the same name: that of moreutils."""
    path = shutil.which("parallel")
    return path and b"GNU parallel" in subprocess.run([path, "--version"], capture_output=True, check=False).stdout


class Parts(Case):
    PARTS = ("{}", "{.}", "{/}", "{//}", "{/.}")

    def rows(self, keys):
        p = self.wq("run", "-0", "-j1", "--", "printf", "%s\\0", *self.PARTS, input=b"\0".join(keys))
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        words = p.stdout.split(b"\0")[:-1]
        return [tuple(words[i:i + 5]) for i in range(0, len(words), 5)]

    def test_table(self):
        table = [tuple(word.encode() for word in row) for row in TABLE]
        self.assertEqual(self.rows([row[0] for row in table]), table)

    @skipUnless(is_gnu_parallel(), "GNU parallel is not installed")
    def test_against_parallel(self):
        """No line feeds: to parallel's {/} they end a part of the key, here they are bytes like others."""
        keys = [row[0].encode() for row in TABLE]
        for _ in range(200):
            keys.append(bytes(self.random.choice(b"..//ab -\\'\xff") for _ in range(self.random.randint(1, 9))))
        keys = list(dict.fromkeys(keys))
        p = subprocess.run(["parallel", "--will-cite", "-0", "-j1", "-k", "printf", "'%s\\0'", *self.PARTS],
                           input=b"\0".join(keys), capture_output=True, cwd=self.dir, check=True, timeout=rig.PATIENCE,
                           env=self.env | {"HOME": str(self.dir), "SHELL": "/bin/sh", "LC_ALL": "C"})
        words = p.stdout.split(b"\0")[:-1]
        self.assertEqual(self.rows(keys), [tuple(words[i:i + 5]) for i in range(0, len(words), 5)])

    def test_line_feeds_are_bytes(self):
        self.assertEqual(self.rows([b"a\nb/c\nd.e\nf"]), [(b"a\nb/c\nd.e\nf", b"a\nb/c\nd", b"c\nd.e\nf", b"a\nb", b"c\nd")])

    def test_within_a_word(self):
        p = self.wq("run", "--", "printf", "<%s>", "x{//}y{/.}z{.}", "{{/}}", "{/", "{.", "{//.}", "{..}", "{/}{#}",
                    input="d/a.b\n")
        self.assertEqual(p.stdout, b"<xdyazd/a><{a.b}><{/><{.><{//.}><{..}><a.b1>")

    def test_a_part_stands_for_the_key(self):
        """The key is appended if no word has it, or a part of it."""
        for part, value in (("{.}", "d/a"), ("{/}", "a.b"), ("{//}", "d"), ("{/.}", "a")):
            p = self.wq("run", "--", "printf", "<%s>", part, input="d/a.b\n")
            self.assertEqual(p.stdout.decode(), f"<{value}>")

    def test_a_part_may_name_the_command(self):
        """The command is looked for when the key is known."""
        (self.dir / "bin").mkdir()
        self.script("bin/hello", 'echo "hello $*"')
        for word in ("./bin/{/.}", "{//}/hello", "{.}"):
            p = self.wq("run", "--", word, input="bin/hello.x\n")
            self.assertEqual((p.returncode, p.stdout), (0, b"hello \n"), word)
        p = self.wq("run", "--dead=dead", "--", "{.}", input=".x\nbin/hello.x\n")
        self.assertEqual((p.returncode, p.stdout, self.lines("dead")), (123, b"hello \n", [".x"]))


if __name__ == "__main__":
    main()
