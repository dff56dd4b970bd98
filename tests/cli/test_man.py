"""wq(1) says what the program does: its options, statuses and fields are compared, its examples run."""
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from unittest import skipUnless

import named
import rig
from rig import Case, main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "man" / "wq.1").read_text()


def section(title, text=PAGE, macro="Sh"):
    """Of a page, from that heading to the next."""
    return re.search(rf"^\.{macro} {title}.*?\n(.*?)(?=^\.S[hs] |\Z)", text, re.S | re.M).group(1)


def options_of(text):
    """Those that a piece of the page describes."""
    out = set()
    for line in re.findall(r"^\.It (.*Fl .*)$", text, re.M):
        out |= {f"-{o}" for o in re.findall(r"\bFl (-?[a-z0-9][a-z-]*)", line)}
    return out


def plain(text):
    """What a literal block shows."""
    return text.replace("\\e", "\\").replace("\\&", "")


EXAMPLES = [plain(e) for e in re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", section("EXAMPLES"), re.S | re.M)]


class Page(Case):
    def test_options_of_run(self):
        text = "".join(re.findall(r"^\.Ss Options of wq run.*?(?=^\.S[hs] )", PAGE, re.S | re.M))
        self.assertEqual(options_of(text), named.options(self, "run"))

    def test_options_of_orders(self):
        text = section("Control commands", macro="Ss")
        wanted = set()
        for command in named.ORDERS:
            self.assertRegex(text, rf"\bCm {command}\b")
            wanted |= named.options(self, command)
        self.assertEqual({f"-{o}" for o in re.findall(r"\bFl (-?[a-z0-9][a-z-]*)", text)} | {"-h", "--help"},
                         wanted | {"-0"})
        commands = re.findall(r"^\.Cm (.*)$", section("SYNOPSIS"), re.M)
        self.assertEqual({c for line in commands for c in line.split(" | ")}, {"run", "help", *named.ORDERS})

    def test_exit_statuses(self):
        header = (ROOT / "cli" / "base" / "say.h").read_text()
        self.assertEqual(re.findall(r"^\.It (\d+)$", section("EXIT STATUS"), re.M),
                         sorted(re.findall(r"EXIT_\w+ = (\d+)", header), key=int))

    def test_fields_of_the_log(self):
        self.wq("run", "--log=log", "--retries=0", "--timeout=1ms", "--", "cat", "{}", input="fifo\n")
        self.fifo("fifo")
        p = self.wq("run", "--log=log", "--retries=0", "--timeout=1ms", "--", "cat", "{}", input="fifo\n")
        self.assertEqual(p.returncode, 123)
        (self.dir / "two").write_text("a\nb\n")
        self.assertEqual(self.wq("run", "--log=log", "-n2", "-atwo", "--", "true").returncode, 0)
        fields = set()
        for line in self.lines("log"):
            fields |= set(json.loads(line))
        text = PAGE[PAGE.index(".It the file of Fl -log"):]
        self.assertEqual(set(re.findall(r"^\.It Li (\w+)$", text[:text.index("\n.It Pa")], re.M)), fields)

    def test_outcomes_of_the_log(self):
        source = (ROOT / "cli" / "queue" / "settle.c").read_text()
        text = PAGE[PAGE.index(".It Li outcome"):PAGE.index(".It Li exit")]
        self.assertEqual(set(re.findall(r"^\.Li (\w+)", text, re.M)), set(re.findall(r'return "(\w+)";', source)))

    def test_environment(self):
        text = section("ENVIRONMENT")
        for name in set(re.findall(r'getenv\("(\w+)"\)', "".join(p.read_text() for p in (ROOT / "cli").rglob("*.c")))):
            self.assertIn(name, text)
        p = self.wq("run", "--", "sh", "-c", "env", input="a\n")
        for name in re.findall(rb"^(WQ_\w+)=", p.stdout, re.M):
            self.assertIn(f".It Ev {name.decode()}\n", text)
        p = self.wq("run", "-n2", "--", "sh", "-c", "env", input="a\n")
        for name in re.findall(rb"^(WQ_\w+)=", p.stdout, re.M):
            self.assertIn(f".It Ev {name.decode()}\n", text)

    @skipUnless(shutil.which("mandoc"), "mandoc is not installed")
    def test_lint(self):
        p = subprocess.run(["mandoc", "-Tlint", "-Wwarning", ROOT / "man" / "wq.1"], capture_output=True, text=True,
                           timeout=rig.PATIENCE)
        self.assertEqual((p.returncode, p.stdout), (0, ""))

    @skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not installed")
    def test_unit(self):
        text = (ROOT / "examples" / "wq@.service").read_text()
        unit = self.dir / "wq@test.service"
        unit.write_text(text.replace("ExecStart=wq ", f"ExecStart={rig.program} "))
        p = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True,
                           env=self.env, timeout=rig.PATIENCE)
        # What else is said is about other units of this machine.
        self.assertNotIn("wq@test", p.stderr)
        # Its options are the program's.
        line = re.search(r"^ExecStart=wq run (.*) \$WQ_OPTIONS -- ", text, re.M).group(1)
        self.assertLessEqual(named.found(line), named.options(self, "run"))


class Examples(Case):
    def setUp(self):
        super().setUp()
        tools = self.dir / ".tools"
        tools.mkdir()
        (tools / "wq").symlink_to(rig.program)
        self.env["PATH"] = f"{tools}:{self.env['PATH']}"

    tried = {
        "inotifywait": "headline",
        "find logs": "compress",
        "printf": "shell",
        "wq run -a urls": "fetch",
        "jq": "why",
        "mv failed": "again",
        "wq run -a pages": "polite",
        "wq run -a sizes": "sizes",
        "wq run -a todo": "todo",
        "wq run --socket": "socket",
        "export WQ_SOCKET": "socket",
        "python3": "socket",
    }

    def example(self, begin):
        (found,) = [e for e in EXAMPLES if e.startswith(begin)]
        return found

    def sh(self, begin):
        p = subprocess.run(["sh", "-c", self.example(begin)], capture_output=True, text=True, cwd=self.dir, env=self.env,
                           stdin=subprocess.DEVNULL, timeout=rig.PATIENCE)
        return p

    def test_each_is_tried(self):
        self.assertGreater(len(EXAMPLES), 7)
        for e in EXAMPLES:
            names = [name for begin, name in self.tried.items() if e.startswith(begin)]
            self.assertEqual(len(names), 1, e)
            self.assertTrue(hasattr(self, f"test_{names[0]}"), e)

    def test_headline(self):
        # Its events, as it would write them; that one ends is ours alone.
        self.script(".tools/inotifywait", "printf 'in/a\\nin/b c\\nin/a\\nin/a\\n'\n")
        self.script("convert", 'echo "$1" >>converted\n')
        p = self.sh("inotifywait")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(sorted(self.lines("converted")), ["in/a", "in/b c"])
        # The help, the page and the README begin with the same line.
        line = re.sub(r"\\?\s+", " ", self.example("inotifywait")).strip()
        self.assertIn(line, self.wq("help", "run").stdout.decode())
        self.assertTrue(line in (ROOT / "README.md").read_text())

    def test_polite(self):
        """Two at once of a host, and a second between their starts: the command tells the time."""
        self.script(".tools/curl", 'echo "$(date +%s%N) $WQ_GROUP $2" >>fetched\n')
        (self.dir / "pages").write_text("".join(f"https://{host}.example/{i}\n" for i in range(2) for host in "ab") +
                                        "https://a.example\n")
        began = time.time_ns()
        p = self.sh("wq run -a pages")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        fetched = [line.split() for line in self.lines("fetched")]
        self.assertEqual(sorted(url for _, _, url in fetched), sorted(self.lines("pages")))
        self.assertEqual({group for _, group, _ in fetched}, {"https://a.example", "https://b.example"})
        # The third start of a host is two seconds after the first; late is allowed.
        last = max(int(at) for at, group, _ in fetched if group == "https://a.example")
        self.assertGreaterEqual(last - began, 2 * 10 ** 9)
        line = self.example("wq run -a pages").strip()
        self.assertIn(line, (ROOT / "README.md").read_text())

    def test_sizes(self):
        self.script(".tools/convert", 'printf "%s|" "$@" >>converted; echo >>converted\n')
        (self.dir / "sizes").write_text("in/a b.png\t10x10\nin/c.png\t20%\n")
        p = self.sh("wq run -a sizes")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(sorted(self.lines("converted")),
                         ["in/a b.png|-resize|10x10|small/a b.png|", "in/c.png|-resize|20%|small/c.png|"])

    def test_compress(self):
        names = ["a.log", "b c.log", "-d.log", "e'f\n.log"]
        (self.dir / "logs").mkdir()
        for name in names:
            (self.dir / "logs" / name).write_text(name)
        p = self.sh("find logs")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(sorted(os.listdir(self.dir / "logs")), sorted(n + ".gz" for n in names))

    def test_shell(self):
        for n, name in enumerate(("a.c", "b $(touch bad).c")):
            (self.dir / name).write_text("x\n" * n)
        p = self.sh("printf")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual([self.lines(n + ".lines") for n in ("a.c", "b $(touch bad).c")], [["0"], ["1"]])
        self.assertFalse((self.dir / "bad").exists())

    def fetch(self):
        # 100 is for good, so that no time passes.
        self.script(".tools/curl", '[ "$1" = -fsSOL ] || exit 2; case $2 in *gone) exit 100;; esac; touch "${2##*/}"\n')
        (self.dir / "urls").write_text("http://x/1\nhttp://x/2\nhttp://x/gone\nhttp://x/1\n")
        return self.sh("wq run -a urls")

    def test_fetch(self):
        p = self.fetch()
        self.assertEqual(p.returncode, 123, p.stderr)
        self.assertEqual(self.lines("failed"), ["http://x/gone"])
        self.assertTrue((self.dir / "1").exists() and (self.dir / "2").exists())

    @skipUnless(shutil.which("jq"), "jq is not installed")
    def test_why(self):
        self.fetch()
        p = self.sh("jq")
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, "http://x/gone\t100\n", ""))

    @skipUnless(shutil.which("jq"), "jq is not installed")
    def test_why_without_a_status(self):
        lines = [{"key": "slow", "outcome": "dead", "exit": 0, "timed_out": True},
                 {"key": "shot", "outcome": "dead", "exit": None, "signal": 9}, {"key": "a", "outcome": "done", "exit": 0}]
        (self.dir / "log").write_text("".join(json.dumps(line) + "\n" for line in lines))
        p = self.sh("jq")
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, "slow\ttimed out\nshot\tsignal 9\n", ""))

    def test_again(self):
        self.fetch()
        p = self.sh("mv failed")
        self.assertEqual((p.returncode, self.lines("failed"), self.lines("again")),
                         (123, ["http://x/gone"], ["http://x/gone"]), p.stderr)

    def test_todo(self):
        # The first one ends the run: the program is the parent of the command.
        self.script("work", 'echo "$1" >>worked; [ "$1" != 1 ] || kill "$PPID"\n')
        (self.dir / "todo").write_text("1\n2\n3\n")
        self.env["PATH"] = f"{self.dir}/.one:{self.env['PATH']}"
        (self.dir / ".one").mkdir()
        self.script(".one/wq", f'command=$1; shift; exec "{rig.program}" "$command" -j1 "$@"\n')
        self.assertEqual(self.sh("wq run -a todo").returncode, 75)
        self.assertEqual(self.lines("worked"), ["1"])
        self.assertEqual(sorted(self.lines("todo")), ["2", "3"])
        self.assertEqual(self.sh("wq run -a todo").returncode, 0)
        self.assertEqual(sorted(self.lines("worked")), ["1", "2", "3"])
        self.assertEqual((self.dir / "todo").read_text(), "")

    def test_socket(self):
        self.script("build", 'echo "$1" >>built\n')
        p = subprocess.Popen(["sh", "-c", "exec " + self.example("wq run --socket")], stderr=subprocess.PIPE, text=True,
                             cwd=self.dir, env=self.env, stdin=subprocess.DEVNULL)
        self.addCleanup(self.end, p)
        self.until_file("queue")
        q = self.sh("python3")
        self.assertEqual((q.returncode, q.stderr), (0, ""))
        self.until_file("built")
        q = self.sh("export WQ_SOCKET")
        self.assertEqual((q.returncode, q.stderr), (0, ""))
        self.assertTrue(q.stdout)
        said = p.communicate(timeout=rig.PATIENCE)[1]
        self.assertEqual(p.returncode, 0, said)
        self.assertEqual(set(self.lines("built")), {"main", "next", "urgent"})
        self.assertIn("4 given", said)


if __name__ == "__main__":
    main()
