#!/usr/bin/env python3
"""Runs wq_bench and the peers in turn, and says how they compare.

    run.py --wq PATH [--rounds N] [--rows A,B] [--peers A,B] [--json FILE] [--docs DIR] [--quick]

In every round each program runs once, one after the other, so that whatever the
machine does it does to all of them. A row's value is the best round. See README.md
for the contract of a peer; tables.py for what is made of the figures.
"""
import argparse
import datetime
import json
import os
import platform
import subprocess
import sys

import tables

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LEAST_ROUNDS = 5
SKIPPED = 77
TIME_LIMIT_S = 1800


class Program:
    """Something to run, and the rows that it can do."""

    def __init__(self, name, command, listed, versions):
        self.name = name
        self.command = command
        self.listed = listed
        self.versions = versions
        self.best = {}  # peer -> row -> (value, unit)
        self.failed = None


def progress(text):
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K" + text)
        sys.stderr.flush()


def lines_of(command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIME_LIMIT_S).stdout.split("\n")[:-1]


def open_program(name, command):
    return Program(name, command, lines_of(command + ["--list"]), lines_of(command + ["--version"]))


def build_peers(out, skipped):
    """The programs of all folders that have a `build`."""
    found = []
    for folder in sorted(os.listdir(HERE)):
        build = os.path.join(HERE, folder, "build")
        if not os.access(build, os.X_OK) or not os.path.isfile(build):
            continue
        progress(f"building {folder} ...")
        os.makedirs(out, exist_ok=True)
        done = subprocess.run([build, out], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        progress("")
        if done.returncode != 0:
            said = done.stderr.strip().split("\n")[-1]
            if done.returncode != SKIPPED:
                sys.stderr.write(done.stderr)
            skipped[folder] = said if done.returncode == SKIPPED else "its build failed: " + said
            continue
        for line in done.stdout.split("\n")[:-1]:
            name, *command = line.split(" ")
            found.append(open_program(name, command))
    return found


def keep_best(program, row, value, unit):
    """libev's and libuv's rows come out of wq_bench, under names of their own."""
    peer, name = tables.owner_of(row) if program.name == "wq" else (program.name, row)
    known = program.best.setdefault(peer, {})
    if name not in known or tables.better(value, known[name][0], unit):
        known[name] = (value, unit)


def parse_line(line):
    """A row's (name, value, unit), or None: a remark."""
    if not line.startswith("{"):
        return None
    told = json.loads(line)
    return told["row"], float(told["value"]), told["unit"]


def run_once(program, rows, quick, where):
    if program.name == "wq":
        command = program.command + ["--reps", "1", "--lines", "--rows", ",".join(rows)]
        command += ["--quick"] if quick else []
    else:
        command = program.command + (["--quick"] if quick else []) + rows
    progress(f"{where}: {program.name}, {len(rows)} rows")
    seen = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        for line in child.stdout:
            told = parse_line(line)
            if told:
                seen += 1
                keep_best(program, *told)
                progress(f"{where}: {program.name}, {seen} of {len(rows)} rows")
    progress("")
    if child.returncode != 0 or seen < len(rows):
        program.failed = f"ended with {child.returncode} after {seen} of {len(rows)} rows"


def run_rounds(programs, wanted, rounds, quick):
    for i in range(rounds):
        for program in programs:
            rows = [row for row in program.listed if wanted(program.name, row)]
            if rows and not program.failed:
                run_once(program, rows, quick, f"round {i + 1} of {rounds}")
                if program.failed:
                    print(f"{program.name}: {program.failed}; it is left out from now on", file=sys.stderr)


def machine():
    model = "unknown CPU"
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    system = platform.uname()
    return f"{model}, {len(os.sched_getaffinity(0))} CPUs, {system.system} {system.release} {system.machine}"


def write(path, text):
    """Beside its place, and moved there."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(temporary, path)


def arguments():
    parser = argparse.ArgumentParser(description="wq beside its peers", allow_abbrev=False)
    parser.add_argument("--wq", required=True, help="the program wq_bench")
    parser.add_argument("--rounds", type=int, default=LEAST_ROUNDS)
    parser.add_argument("--rows", help="only these, by wq's names: A,B,..")
    parser.add_argument("--peers", help="only these: A,B,..")
    parser.add_argument("--json", default=os.path.join(ROOT, "build", "peers.json"))
    parser.add_argument("--docs", default=os.path.join(ROOT, "docs", "bench"), help="for the table and the charts")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "peers"), help="where peers are built")
    parser.add_argument("--quick", action="store_true", help="little of everything: no figure means anything")
    o = parser.parse_args()
    if o.rounds < 1:
        parser.error("at least one round")
    for row in o.rows.split(",") if o.rows else []:
        if row not in tables.BY_NAME:
            parser.error(f"no row is called {row}")
    return o


def wanted_rows(o):
    names = o.rows.split(",") if o.rows else list(tables.BY_NAME)
    theirs = {peer_row for name in names for peer_row in tables.BY_NAME[name].theirs}
    theirs |= {tables.BEST_CASES[name] for name in names if name in tables.BEST_CASES}

    def wanted(program, row):
        if program != "wq":
            return row in theirs
        peer, name = tables.owner_of(row)
        return name in (names if peer == "wq" else theirs)

    return wanted


def main():
    o = arguments()
    skipped = {}
    programs = [open_program("wq", [o.wq])]
    for program in build_peers(o.build, skipped):
        if not o.peers or program.name in o.peers.split(","):
            programs.append(program)
    run_rounds(programs, wanted_rows(o), o.rounds, o.quick)

    best = {}
    for program in programs:
        if program.failed:  # what it printed before is no figure either
            skipped[program.name] = program.failed
        else:
            best.update(program.best)
    if programs[0].failed:
        sys.exit(f"wq_bench {programs[0].failed}")
    about = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "machine": machine(),
        "rounds": o.rounds,
        "quick": o.quick,
        "versions": [line for program in programs for line in program.versions],
        "skipped": skipped,
    }
    rows = tables.compare(best, judge=not o.quick)
    write(o.json, json.dumps({**about, "rows": rows}, indent=1, ensure_ascii=False) + "\n")
    print(tables.text_table(rows, about))
    if o.quick or o.rows or o.peers or o.rounds < LEAST_ROUNDS:
        print(f"{o.docs} is left as it is: that takes all rows, all peers and {LEAST_ROUNDS} rounds")
        return
    for name, text in tables.documents(rows, about).items():
        write(os.path.join(o.docs, name), text)
    print(f"written: {o.docs}")


if __name__ == "__main__":
    main()
