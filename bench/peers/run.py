#!/usr/bin/env python3
"""Runs wq_bench and the peers in turn, and says how they compare.

    run.py --wq PATH [--rounds N] [--rows A,B] [--peers A,B] [--curves] [--resume] [--quick]
           [--json FILE] [--docs DIR] [--readme FILE]
    run.py --render

In every round each program runs once, one after the other, so that whatever the
machine does it does to all of them. A row's value is the best round. A full run is all
rows, the curves and all peers; it writes docs/bench/ and the table of the README, which
say what docs/bench/peers.json says. See README.md for the contract of a peer; rounds.py
for how they are run; tables.py and charts.py for what is made of the figures.
"""
import argparse
import fnmatch
import json
import os
import platform
import shutil
import signal
import subprocess
import sys

import charts
import rounds
import tables

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DOCS = os.path.join(ROOT, "docs", "bench")
README = os.path.join(ROOT, "README.md")
LEAST_ROUNDS = 5
CURVE_ROUNDS = 3
INTERRUPTED = 130


def machine():
    model = "unknown CPU"
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    system = platform.uname()
    return f"{model}, {len(os.sched_getaffinity(0))} CPUs, {system.system} {system.release} {system.machine}"


# ---- what is asked for ------------------------------------------------------


def arguments(argv):
    parser = argparse.ArgumentParser(description="wq beside its peers", allow_abbrev=False)
    parser.add_argument("--wq", help="the program wq_bench")
    parser.add_argument("--rounds", type=int, default=LEAST_ROUNDS)
    parser.add_argument("--rows", help="only these, by wq's names: A,B,.. (cycle@* is a curve)")
    parser.add_argument("--peers", help="only these: A,B,..")
    parser.add_argument("--curves", action="store_true", help="the curves, too; a full run has them anyway")
    parser.add_argument("--resume", action="store_true", help="go on where a run was interrupted")
    parser.add_argument("--quick", action="store_true", help="little of everything: no figure means anything")
    parser.add_argument("--render", action="store_true", help="only write the documents anew, from docs/bench/peers.json")
    parser.add_argument("--json", default=os.path.join(ROOT, "build", "peers.json"))
    parser.add_argument("--docs", help="for the tables and the charts (default: docs/bench)")
    parser.add_argument("--readme", help="whose table is written (default: README.md, unless --docs is given)")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "peers"), help="where peers are built")
    parser.add_argument("--folders", default=HERE, help="where the peers are")
    o = parser.parse_args(argv)
    if not o.wq and not o.render:
        parser.error("--wq is missing")
    if o.rounds < 1:
        parser.error("at least one round")
    known = [*tables.BY_NAME, *tables.POINTS]
    for pattern in o.rows.split(",") if o.rows else []:
        if not fnmatch.filter(known, pattern):
            parser.error(f"no row is called {pattern}")
    peers = [name for names in rounds.peers_in(o.folders).values() for name in names]
    for name in o.peers.split(",") if o.peers else []:
        if name not in peers:
            parser.error(f"no peer is called {name}; there are {', '.join(peers)}")
    o.build = os.path.abspath(o.build)  # the peers' builds change folders
    o.curve_rounds = min(o.rounds, CURVE_ROUNDS)
    o.full = not (o.quick or o.rows or o.peers or o.rounds < LEAST_ROUNDS)
    if not o.readme and not o.docs:
        o.readme = README
    o.docs = o.docs or DOCS
    return o


def chosen(o):
    """(rows, points), by wq's names."""
    patterns = o.rows.split(",") if o.rows else []
    rows = [name for name in tables.BY_NAME if any(fnmatch.fnmatchcase(name, p) for p in patterns)]
    if not patterns:
        rows = [name for name in tables.BY_NAME if name not in tables.ON_REQUEST]
    points = [name for name in tables.POINTS if any(fnmatch.fnmatchcase(name, p) for p in patterns)]
    if o.curves or o.full:
        points = list(tables.POINTS)
    if o.quick:
        points = [name for name in points if tables.POINTS[name] <= tables.QUICK_MOST]
    return rows, points


def wanted_rows(names):
    theirs = {peer_row for name in names for peer_row in tables.BY_NAME[name].theirs}
    theirs |= {tables.BEST_CASES[name] for name in names if name in tables.BEST_CASES}

    def wanted(program, row):
        if program != "wq":
            return row in theirs
        peer, name = tables.owner_of(row)
        return name in (names if peer == "wq" else theirs)

    return wanted


def wanted_points(names):
    return lambda program, row: (tables.owner_of(row)[1] if program == "wq" else row) in names


# ---- what comes of it -------------------------------------------------------


def commit():
    """Of the library that is measured, as far as it is known."""
    if not shutil.which("git"):
        return []
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return [f"wq's commit {done.stdout.strip()}"] if done.returncode == 0 else []


def results(o, programs, skipped, dates):
    """As the JSON has it."""
    best = {}
    for program in programs:
        skipped.update(
            {program.name + ("" if kind == "rows" else "'s curves"): why for kind, why in program.failed.items()}
        )
        for peer, rows in program.best.items():  # what it printed before it failed is no figure either
            best[peer] = {name: row for name, row in rows.items() if ("curves" if "@" in name else "rows") not in program.failed}
    return {
        "date": " to ".join(sorted({min(dates), max(dates)})) if dates else "",
        "machine": machine(),
        "rounds": o.rounds,
        "curve_rounds": o.curve_rounds,
        "quick": o.quick,
        "versions": commit() + [line for program in programs for line in program.versions],
        "skipped": skipped,
        "rows": tables.compare(best, judge=not o.quick),
        "curves": tables.curves(best),
    }


def documents(data):
    """File name -> text, for docs/bench/."""
    return {
        "peers.json": json.dumps(data, indent=1, ensure_ascii=False) + "\n",
        "table.md": tables.markdown_table(data),
        "curves.md": tables.markdown_curves(data),
        **charts.all_charts(data),
    }


def write_documents(o, data):
    for name, text in documents(data).items():
        rounds.write(os.path.join(o.docs, name), text)
    print(f"written: {o.docs}")
    if o.readme:
        with open(o.readme, encoding="utf-8") as f:
            text = f.read()
        rounds.write(o.readme, tables.with_readme_table(text, data))
        print(f"written: {o.readme}")


def render(o):
    with open(os.path.join(o.docs, "peers.json"), encoding="utf-8") as f:
        data = json.load(f)
    data["rows"] = tables.judged(data["rows"], judge=not data["quick"])
    write_documents(o, data)


def tell_interrupted(o, data, kept):
    rounds.say("")
    if data["rows"] or data["curves"]:
        print(tables.text_tables(data))
        print("These figures are of a part of the run.")
    goes_on = "; --resume goes on from here" if kept.folder else ""
    print(f"Interrupted: {o.json} and {o.docs} are left as they are{goes_on}.")


def run(o):
    skipped, dates = {}, set()
    programs = [rounds.open_program("wq", [o.wq])]
    for program in rounds.build_peers(o.folders, o.build, skipped, o.peers.split(",") if o.peers else None):
        if not o.peers or program.name in o.peers.split(","):
            programs.append(program)
    rows, points = chosen(o)
    turns = rounds.plan(
        programs, {"rows": (o.rounds, wanted_rows(rows)), "curves": (o.curve_rounds, wanted_points(points))}
    )
    kept = rounds.Kept(os.path.join(o.build, "rounds") if o.resume or o.full else None, programs, o.quick)
    if not o.resume:
        kept.clear()
    try:
        rounds.run_all(turns, kept, o.quick, dates)
    except KeyboardInterrupt:
        tell_interrupted(o, results(o, programs, skipped, dates), kept)
        sys.exit(INTERRUPTED)
    for kind, why in programs[0].failed.items():
        sys.exit(f"wq_bench: {kind}: {why}")
    data = results(o, programs, skipped, dates)
    rounds.write(o.json, documents(data)["peers.json"])
    print(tables.text_tables(data))
    if o.full and not any(tables.JUDGE in told["peers"] for told in data["rows"]):
        print(f"{o.docs} is left as it is: there are no figures of {tables.JUDGE}")
    elif o.full:
        write_documents(o, data)
    else:
        print(f"{o.docs} is left as it is: that takes all rows, all peers and {LEAST_ROUNDS} rounds")


def interrupt(*_):
    raise KeyboardInterrupt


def main():
    o = arguments(sys.argv[1:])
    signal.signal(signal.SIGTERM, interrupt)
    try:
        render(o) if o.render else run(o)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
