"""Programs, the order in which they run, and what they print.

A turn is one program once, in one round. Each round begins with another program, so
that none always comes after the same one. What a turn printed can be kept in a file
whose name tells what was measured: the program, the library, the rows. A later run
then takes it from there instead of measuring again, if nothing of that has changed.
"""
import contextlib
import datetime
import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

import tables

SKIPPED = 77
BUILD_LIMIT_S = 1800
TURN_LIMIT_S = 3600
END_LIMIT_S = 5  # for a program that was asked to end


class Program:
    """Something to run, and the rows that it can do."""

    def __init__(self, name, command, listed, versions):
        self.name = name
        self.command = command
        self.listed = listed
        self.versions = versions
        self.best = {}  # peer -> row -> (value, unit)
        self.failed = {}  # kind of turn -> why


@dataclass(frozen=True)
class Turn:
    kind: str  # "rows" or "curves"
    round: int  # from 1
    rounds: int
    program: Program
    rows: tuple


def progress(text):
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K" + text)
        sys.stderr.flush()


def say(text):
    progress("")
    print(text, file=sys.stderr, flush=True)


def write(path, text):
    """Beside its place, and moved there."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(temporary, path)


# ---- programs ---------------------------------------------------------------


def lines_of(command):
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=BUILD_LIMIT_S)
    return done.stdout.split("\n")[:-1]


def open_program(name, command):
    return Program(name, command, lines_of(command + ["--list"]), lines_of(command + ["--version"]))


def peers_in(folders):
    """folder -> the peers that its file `peers` names, of all folders that have a `build`."""
    found = {}
    for folder in sorted(os.listdir(folders)):
        build = os.path.join(folders, folder, "build")
        if os.path.isfile(build) and os.access(build, os.X_OK):
            with open(os.path.join(folders, folder, "peers"), encoding="utf-8") as f:
                found[folder] = f.read().split()
    return found


def build_peers(folders, out, skipped, wanted=None):
    """The programs of all folders, or of those that have one of the wanted peers."""
    found = []
    for folder, names in peers_in(folders).items():
        build = os.path.join(folders, folder, "build")
        if wanted is not None and not set(wanted) & set(names):
            continue
        say(f"building {folder} ...")
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
            try:
                found.append(open_program(name, command))
            except (OSError, subprocess.SubprocessError) as e:
                skipped[name] = f"it does not say what it can do: {e}"
    return found


def plan(programs, kinds):
    """kinds: kind -> (rounds, wanted(program, row)). The turns, in their order."""
    turns = []
    for kind, (rounds, wanted) in kinds.items():
        for i in range(rounds):
            first = i % len(programs)
            for program in programs[first:] + programs[:first]:
                rows = tuple(row for row in program.listed if wanted(program.name, row))
                if rows:
                    turns.append(Turn(kind, i + 1, rounds, program, rows))
    return turns


# ---- what is printed --------------------------------------------------------


def keep_best(program, row, value, unit):
    """libev's and libuv's rows come out of wq_bench, under names of their own."""
    peer, name = tables.owner_of(row) if program.name == "wq" else (program.name, row)
    known = program.best.setdefault(peer, {})
    if name not in known or tables.better(value, known[name][0], unit):
        known[name] = (value, unit)


def parse_line(line):
    """A row's (name, value, unit), or None: a remark. ValueError: neither."""
    if not line.startswith("{"):
        return None
    try:
        told = json.loads(line)
        return told["row"], float(told["value"]), told["unit"]
    except (KeyError, TypeError) as e:
        raise ValueError(f"not a row: {e}") from e


# ---- a turn -----------------------------------------------------------------


def command_of(turn, quick):
    fast = ["--quick"] if quick else []
    if turn.program.name == "wq":
        return turn.program.command + ["--reps", "1", "--lines", "--rows", ",".join(turn.rows)] + fast
    return turn.program.command + fast + list(turn.rows)


def end_all(child):
    """The program and whatever it has started: they are a process group of their own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(END_LIMIT_S)


def measure(turn, quick, told_left):
    """The lines of the turn's rows. What went wrong is in the program's `failed` afterwards."""
    where = f"{turn.kind}, round {turn.round} of {turn.rounds}: {turn.program.name}"
    lines = []
    late = threading.Event()
    wrong = None
    child = subprocess.Popen(command_of(turn, quick), stdout=subprocess.PIPE, text=True, start_new_session=True)

    def end_late():
        late.set()
        end_all(child)

    watch = threading.Timer(TURN_LIMIT_S, end_late)
    watch.daemon = True
    watch.start()
    try:
        for line in child.stdout:
            if parse_line(line):
                lines.append(line)
                progress(f"{where}, {len(lines)} of {len(turn.rows)} rows{told_left}")
        child.wait()
    except ValueError:
        end_all(child)
        wrong = "printed a line that is no row"
    except BaseException:
        end_all(child)
        raise
    finally:
        watch.cancel()
        child.stdout.close()
    if wrong:
        turn.program.failed[turn.kind] = wrong
    elif late.is_set():
        turn.program.failed[turn.kind] = f"took more than {TURN_LIMIT_S} s"
    elif child.returncode != 0 or len(lines) < len(turn.rows):
        turn.program.failed[turn.kind] = f"ended with {child.returncode} after {len(lines)} of {len(turn.rows)} rows"
    return lines


# ---- turns that are kept ----------------------------------------------------


def our_libraries(path):
    """The files of libwq that the program is linked with: its own file does not change when they do."""
    done = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    words = [line.split() for line in done.stdout.split("\n") if "libwq" in line]
    return [line[2] for line in words if len(line) > 2 and os.path.isfile(line[2])]


def fingerprint(program):
    """Of its version and of the files that it consists of, as far as its command names them."""
    out = hashlib.sha256("\n".join(program.versions).encode())
    files = [word for word in program.command if os.path.isfile(word)]
    for path in files + [library for word in files[:1] for library in our_libraries(word)]:
        with open(path, "rb") as f:
            out.update(hashlib.sha256(f.read()).digest())
    return out.hexdigest()


class Kept:
    """Where turns are kept. folder None: they are not."""

    def __init__(self, folder, programs, quick):
        self.folder = folder
        self.quick = quick
        self.prints = {p.name: fingerprint(p) for p in programs} if folder else {}

    def path(self, turn):
        of = [platform.uname(), self.prints["wq"], self.prints[turn.program.name], self.quick, turn.rows]
        name = hashlib.sha256(json.dumps(of).encode()).hexdigest()[:16]
        return os.path.join(self.folder, f"{turn.kind}-{turn.round}-{turn.program.name}-{name}")

    def clear(self):
        if self.folder and os.path.isdir(self.folder):
            for name in os.listdir(self.folder):
                os.unlink(os.path.join(self.folder, name))

    def save(self, turn, lines, seconds, date):
        if self.folder:
            head = json.dumps({"date": date, "seconds": round(seconds, 3)})
            write(self.path(turn), head + "\n" + "".join(lines))

    def has(self, turn):
        return self.folder is not None and os.path.exists(self.path(turn))

    def load(self, turn):
        """(lines, seconds, date) or None."""
        if not self.has(turn):
            return None
        with open(self.path(turn), encoding="utf-8") as f:
            head, *lines = f.readlines()
        about = json.loads(head)
        return lines, about["seconds"], about["date"]


# ---- all turns --------------------------------------------------------------


def estimate(left, took):
    """
    Seconds that the turns in `left` will need, or None. took: (kind, program) -> the
    seconds and the rows of such a turn. Of what has not run yet, a row takes as long as
    the others' do.
    """
    if not took:
        return None
    each = sum(seconds for seconds, _ in took.values()) / max(sum(rows for _, rows in took.values()), 1)
    return sum(took[key][0] if (key := (t.kind, t.program.name)) in took else each * len(t.rows) for t in left)


def in_words(seconds):
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def today():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")


def take_turn(turn, kept, quick, told_left):
    """(lines, seconds, date, was it kept from before)"""
    found = kept.load(turn)
    if found:
        return *found, True
    start = time.monotonic()
    lines = measure(turn, quick, told_left)
    seconds, date = time.monotonic() - start, today()
    if not turn.program.failed:
        kept.save(turn, lines, seconds, date)
    return lines, seconds, date, False


def run_all(turns, kept, quick, dates):
    """
    Runs them, or takes what is kept; the programs have their best figures afterwards.
    dates: gets the days on which they ran. Ends early if wq itself fails.
    """
    took = {}

    def left_after(at):
        seconds = estimate([t for t in turns[at:] if not t.program.failed and not kept.has(t)], took)
        return "" if seconds is None else f"; about {in_words(seconds)} left"

    for at, turn in enumerate(turns):
        program = turn.program
        if program.failed:
            continue
        lines, seconds, date, found = take_turn(turn, kept, quick, left_after(at))
        where = f"{turn.kind}, round {turn.round} of {turn.rounds}: {program.name}"
        if program.failed:
            say(f"{where} {program.failed[turn.kind]}; it is left out from now on")
            if program.name == "wq":
                return
            continue
        took[turn.kind, program.name] = (seconds, len(turn.rows))
        dates.add(date)
        for line in lines:
            keep_best(program, *parse_line(line))
        told = f"kept from {date}" if found else f"{in_words(seconds)}"
        say(f"{where}, {len(turn.rows)} rows: {told}{left_after(at + 1)}")
