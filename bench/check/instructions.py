#!/usr/bin/env python3
"""Compares what the hot paths cost, in instructions, with the figures that are committed.

    instructions.py BUILD FIGURES            compare; exit code 1: a path costs over 5 % more
    instructions.py BUILD FIGURES --renew    write FIGURES anew

BUILD is a folder in which wq_hot was built (bench/hot.c). Callgrind runs it once. Counted is
what the library's own functions execute, without those that they call in the C library, the loader
and the program: so the figures depend on the compiler, but not on the rest of the machine.

Exit code 77: there is no valgrind, or the compiler is not the one that FIGURES was made with.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

GROWTH = 0.05
SKIPPED = 77
LIBRARY = "libwq.so"
HEAD = """\
# What the hot paths of bench/hot.c cost: instructions of libwq.so itself, for one operation.
# Written by scripts/bench --check --renew; CONTRIBUTING.md says when.
"""


class Failed(Exception):
    """Something does not fit; the message says what."""


class Skipped(Exception):
    """There is nothing to compare here; the message says why."""


# ---- the build -----------------------------------------------------------------------------


def compile_command(build):
    """How one of the library's files is compiled there: a list of arguments."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        for entry in json.load(f):
            if entry["file"].endswith("/src/queue/add.c"):
                return shlex.split(entry["command"])
    raise Failed(f"{build}: the library is not built there")


def compiler_name(version_line, machine):
    """Whose compiler, which version, for what. What a distribution counts behind the version is
    left out: such updates mend, they do not compile differently."""
    found = re.match(r"(\S+)(?: \((.*)\))? (\d[\d.]*)", version_line)
    if not found:
        return f"{version_line} {machine}"
    name, vendor, version = found.groups()
    vendor = (vendor or "").split(" ")[0]
    return " ".join(part for part in (vendor, os.path.basename(name), version, machine) if part)


def compiler_of(command):
    """The name of the compiler that a command calls."""

    def ask(option):
        text = subprocess.run([command[0], option], check=True, capture_output=True, text=True)
        return text.stdout.splitlines()[0]

    return compiler_name(ask("--version"), ask("-dumpmachine"))


def flags_of(command):
    """What of a command decides about the code: not warnings, folders and files."""
    flags, skip = [], 0
    for word in command[1:]:
        if skip:
            skip -= 1
        elif word in ("-o", "-c", "-MF", "-MT", "-isystem"):
            skip = 1
        elif word.startswith("-") and not word.startswith(("-I", "-W", "-M")):
            flags.append(word)
    return " ".join(flags)


# ---- counting --------------------------------------------------------------------------------


def read_dump(text):
    """The name that a dump of callgrind was given, or None, and the instructions in the library."""
    name, inside, callee, count = None, False, False, 0
    for line in text.splitlines():
        if line.startswith("desc: Trigger: Client Request: "):
            name = line.rsplit(": ", 1)[1]
        elif line.startswith("ob="):
            inside = os.path.basename(line[3:]).startswith(LIBRARY)
        elif line.startswith("calls="):
            callee = True  # the next line is what the callee cost
        elif line[:1].isdigit():
            if inside and not callee:
                count += int(line.split()[1])
            callee = False
    return name, count


def count(build):
    """Instructions for each operation, by path, in the order of the run."""
    program = os.path.abspath(os.path.join(build, "wq_hot"))
    if not shutil.which("valgrind"):
        raise Skipped("there is no valgrind")
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            ["valgrind", "--command-line-only=yes", "--tool=callgrind", "--collect-atstart=no",
             "--compress-strings=no", "--compress-pos=no", "--dump-line=no",
             "--callgrind-out-file=dump", program],
            cwd=folder, env={**os.environ, "LD_BIND_NOW": "1"}, capture_output=True, text=True,
            check=False)
        if run.returncode != 0:
            raise Failed(f"wq_hot under valgrind ended with {run.returncode}:\n"
                         f"{run.stdout}{run.stderr}")
        counts = {}
        for file in os.listdir(folder):
            with open(os.path.join(folder, file), encoding="utf-8", errors="replace") as f:
                name, instructions = read_dump(f.read())
            if name:
                counts[name] = instructions
    figures = {}
    for line in run.stdout.splitlines():
        name, ops = line.split()
        if not counts.get(name):
            raise Failed(f"{name}: nothing was counted in {LIBRARY}; was wq_hot built without "
                         "valgrind/callgrind.h?")
        figures[name] = round(counts[name] / int(ops), 2)
    if not figures:
        raise Failed("wq_hot ran no path")
    return figures


# ---- comparing -------------------------------------------------------------------------------


def read_figures(text):
    """The compiler, the flags and the figures of a file."""
    lines = [line.split(None, 1) for line in text.splitlines()
             if line.strip() and not line.startswith("#")]
    fields = {name: value.strip() for name, value in lines}
    compiler, flags = fields.pop("compiler"), fields.pop("flags")
    return compiler, flags, {name: float(value) for name, value in fields.items()}


def write_figures(compiler, flags, figures):
    """The text of such a file."""
    rows = "".join(f"{name:<14} {value:8.2f}\n" for name, value in figures.items())
    return f"{HEAD}\ncompiler {compiler}\nflags {flags}\n\n{rows}"


def compare(before, now):
    """A table, and what is wrong with it: a list of sentences."""
    rows, wrong, shrunk = [], [], []
    for name in list(before) + [n for n in now if n not in before]:
        if name not in now:
            wrong.append(f"{name} is not counted any more: renew the figures")
            continue
        if name not in before:
            wrong.append(f"{name} is new: renew the figures")
            continue
        change = now[name] / before[name] - 1
        mark = ""
        if now[name] > before[name] * (1 + GROWTH):
            mark = "  <-- too much"
            wrong.append(f"{name} costs {100 * change:.2f} % more, "
                         f"{100 * GROWTH:.0f} % are allowed")
        elif now[name] < before[name] * (1 - GROWTH):
            shrunk.append(name)
        rows.append(f"{name:<14} {before[name]:8.2f} {now[name]:8.2f} {100 * change:+7.2f} %{mark}")
    table = [f"{'instructions':<14} {'before':>8} {'now':>8}   change"] + rows
    if shrunk:
        table.append("cheaper by more than 5 %; renew the figures to keep it so: "
                     + ", ".join(shrunk))
    return "\n".join(table), wrong


def check(build, file, renew):
    """All of it; what is wrong."""
    command = compile_command(build)
    compiler, flags = compiler_of(command), flags_of(command)
    if renew:
        text = write_figures(compiler, flags, count(build))
        with open(file, "w", encoding="utf-8") as f:
            f.write(text)
        print(f"{file} is written anew: look at its diff before you commit it")
        return []
    with open(file, encoding="utf-8") as f:
        their_compiler, their_flags, before = read_figures(f.read())
    if compiler != their_compiler:
        raise Skipped(f"the figures are those of {their_compiler}, this is {compiler}")
    if flags != their_flags:
        return [f"the figures were made with the flags {their_flags}, now they are {flags}: "
                "renew the figures"]
    table, wrong = compare(before, count(build))
    print(table)
    return wrong


def main():
    """Exit code 0: all is well."""
    parser = argparse.ArgumentParser(description="compares instruction counts")
    parser.add_argument("build")
    parser.add_argument("figures")
    parser.add_argument("--renew", action="store_true")
    args = parser.parse_args()
    try:
        wrong = check(args.build, args.figures, args.renew)
    except Skipped as e:
        print(f"skipped: {e}")
        return SKIPPED
    except Failed as e:
        wrong = [str(e)]
    for sentence in wrong:
        print(f"failed: {sentence}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
