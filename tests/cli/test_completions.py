"""Completions: bash's by its own functions; zsh and fish where they are installed. All offer what `wq help` names."""
import os
import pty
import re
import select
import shutil
import subprocess
import time
from pathlib import Path
from unittest import skipUnless

import named
import rig
from rig import Case, main

FOLDER = Path(__file__).resolve().parents[2] / "cli" / "completions"


class Completions(Case):
    def help_options(self, command):
        return named.options(self, command)

    # ---- bash --------------------------------------------------------------

    def bash(self, *words, setup=""):
        """What bash offers for the last word. It makes three words of --option=value."""
        script = f"""
            {setup}
            source {FOLDER}/wq.bash || exit 9
            compopt() {{ :; }} # works within a completion alone
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
            _wq
            printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        p = subprocess.run(["bash", "--norc", "-c", script, "bash", "wq", *words], capture_output=True, text=True,
                           cwd=self.dir, env=self.env, timeout=rig.PATIENCE)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        return p.stdout.split("\n")[:-1]

    def test_bash_commands(self):
        self.assertEqual(set(self.bash("")), {"run", "help", "--version", "--help", *named.ORDERS})
        self.assertEqual(self.bash("dr"), ["drain"])
        self.assertEqual(set(self.bash("help", "")), {"run", *named.ORDERS})

    def test_bash_options(self):
        for command in ("run", *named.ORDERS):
            offered = {o.rstrip("=") for o in self.bash(command, "-")}
            self.assertEqual(offered, self.help_options(command), command)

    def test_bash_values(self):
        for words, values in (
                (("run", "--on-term", "=", ""), "finish drain"),
                (("run", "--on-term", "="), "finish drain"),
                (("run", "--on-term", ""), "finish drain"),
                (("run", "--on-term", "d"), "drain"),
                (("run", "--jitter", "=", ""), "none full equal decorrelated"),
                (("run", "--jitter", "=", "e"), "equal"),
                (("run", "--retries", "=", "f"), "forever"),
                (("ls", "--state", "=", ""), "queued running waiting dead"),
                (("ls", "-s", "x", "--state", "w"), "waiting"),
                (("set", "w"), "workers="),
                (("run", "-j", ""), "")):
            self.assertEqual(self.bash(*words), values.split() or [""], words)

    def test_bash_files(self):
        (self.dir / "keys.txt").touch()
        (self.dir / "keys.d").mkdir()
        for option in ("-a", "--log", "--dead", "--leftover", "--metrics-file", "--socket"):
            self.assertEqual(sorted(self.bash("run", option, "ke")), ["keys.d", "keys.txt"], option)
        self.assertEqual(sorted(self.bash("run", "--log", "=", "ke")), ["keys.d", "keys.txt"])
        self.assertEqual(self.bash("run", "--results", "ke"), ["keys.d"])
        self.assertEqual(sorted(self.bash("add", "-s", "ke")), ["keys.d", "keys.txt"])

    def test_bash_command_of_run(self):
        (self.dir / "keys.txt").touch()
        for before in (["--"], ["-j", "4", "--"], ["--log", "=", "x", "--"], ["-q", "-j4", "--tag", "--"]):
            self.assertIn("echo", self.bash("run", *before, "ech"), before)
            self.assertEqual(self.bash("run", *before, "cat", "ke"), ["keys.txt"], before)
            # Its options are not ours.
            self.assertEqual(self.bash("run", *before, "cat", "--on"), [""], before)
        self.assertIn("echo", self.bash("run", "-j", "4", "ech"))
        self.assertEqual(self.bash("run", "-j", "4", "cat", "ke"), ["keys.txt"])
        # bash-completion knows the command's own.
        self.assertEqual(self.bash("run", "--tag", "--", "x", "y", setup='_command_offset() { COMPREPLY=("at $1"); }'),
                         ["at 4"])

    def test_bash_keys(self):
        script = self.script("wq", r"case $* in *state=dead*) exit;; esac; printf 'main\0my key\0next\0'" + "\n")
        for command in ("retry", "cancel", "forget", "wait"):
            self.env["PATH"] = f"{Path(script).parent}:{self.env['PATH']}"
            self.assertEqual(self.bash(command, "m"), ["main", r"my\ key"], command)

    # ---- zsh, fish ---------------------------------------------------------

    @skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_syntax(self):
        p = subprocess.run(["zsh", "-n", FOLDER / "_wq"], capture_output=True, timeout=rig.PATIENCE)
        self.assertEqual((p.returncode, p.stderr), (0, b""))

    @skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh(self):
        """In a terminal, with the tab key: zsh completes nowhere else."""
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(self.dir)
            os.execvpe("zsh", ["zsh", "-f", "-i"], self.env | {"TERM": "dumb", "HOME": str(self.dir), "PS1": "> "})
        self.addCleanup(os.waitpid, pid, 0)
        self.addCleanup(os.close, fd)  # which ends it
        self.type(fd, f"unsetopt auto_menu; fpath=({FOLDER} $fpath); autoload -U compinit; compinit -u -D; "
                      "echo re''ady\n", "ready")
        (self.dir / "keys.txt").touch()
        for line, wanted in (("wq ", "finish all keys and end"), ("wq dr", "wq drain"), ("wq --v", "wq --version"),
                             ("wq help forg", "wq help forget"),
                             ("wq run --kill", "wq run --kill-after="), ("wq run --on-term=d", "--on-term=drain"),
                             ("wq run --jitter=de", "--jitter=decorrelated"), ("wq run -j 4 -a ke", "-a keys.txt"),
                             ("wq run -j 4 -- unali", "-- unalias"), ("wq ls --state=w", "--state=waiting"),
                             ("wq cancel --k", "cancel --kill"), ("wq set w", "set workers=")):
            self.type(fd, line + "\t", wanted)
            self.type(fd, "\x15", "")

    def type(self, fd, text, wanted):
        """Types, and reads until that is seen."""
        os.write(fd, text.encode())
        seen, end = "", time.monotonic() + rig.PATIENCE
        while wanted not in seen:
            self.assertLess(time.monotonic(), end, f"{wanted!r} is not in {seen!r}")
            if select.select([fd], [], [], 0.1)[0]:
                seen += os.read(fd, 4096).decode(errors="replace").replace("\b", "")

    def test_zsh_options(self):
        text = (FOLDER / "_wq").read_text()
        run = text[text.index("_wq_run()"):text.index("_wq()")]
        offered = set(re.findall(r"(?<=[\s'{,)])(--?[a-z0-9-]+)(?==?-?\[|=?[+,}]|\+)", run))
        self.assertEqual(offered, self.help_options("run"))

    @skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish(self):
        self.env["HOME"] = str(self.dir)
        p = subprocess.run(["fish", "-n", FOLDER / "wq.fish"], capture_output=True, env=self.env, timeout=rig.PATIENCE)
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        lines = {"wq dr": "drain", "wq run --on-term=d": "--on-term=drain", "wq ls --state r": "running",
                 "wq run --kill-": "--kill-after", "wq cancel --k": "--kill", "wq help dr": "drain"}
        for line, wanted in lines.items():
            p = subprocess.run(["fish", "--no-config", "-c", f'source {FOLDER}/wq.fish; complete -C "{line}"'],
                               capture_output=True, text=True, env=self.env, cwd=self.dir, timeout=rig.PATIENCE)
            self.assertEqual([w.split("\t")[0] for w in p.stdout.splitlines()], [wanted], p.stderr)

    def test_fish_options(self):
        text = (FOLDER / "wq.fish").read_text()
        offered = set()
        for line in text.split("\n"):
            if line.startswith("complete -c wq -n __wq_options "):
                offered |= {"-" + o for o in re.findall(r" -s (\w)", line)}
                offered |= {"--" + o for o in re.findall(r" -l ([\w-]+)", line)}
        self.assertEqual(offered, self.help_options("run"))


if __name__ == "__main__":
    main()
