"""What is made of the figures of wq and its peers: ratios, bars, curves, tables.

A ratio says how many times better wq is, in either direction: 2 is half the time,
half the memory or twice the throughput. `data` is what the JSON has: see run.results().
"""
import math
from dataclasses import dataclass


JUDGE = "client-go"
POINTERS = "glib"  # hands pointers over, without keys
PRIORITIES = "controller-runtime"  # the peer whose queue has them


@dataclass(frozen=True)
class Row:
    """What is measured, and its bar: all that is asked of it has to be true."""

    name: str
    means: str  # what is measured, in words
    theirs: tuple  # the peer's row that it stands beside, the first one that the peer has
    ratio: float = None  # the least ratio to client-go
    goal: float = None  # the most, or of throughput the least, in the row's unit
    ahead_of: tuple = ()  # peers whose figure it beats
    ahead_of_all: bool = False
    words: str = ""  # the bar, as it was asked for
    judge: str = JUDGE  # whom the ratio is to

    @property
    def timer(self):
        return self.ahead_of_all


def row(name, ratio=None, means="", theirs=None, goal=None, ahead_of=(), words=None, judge=JUDGE):
    """goal: (value, unit)."""
    if words is None:
        said = [f"≥ {ratio:g} ×" + ("" if judge == JUDGE else f" {judge}")] if ratio else []
        if goal:
            said.append(("≥ " if more_is_better(goal[1]) else "≤ ") + format_goal(*goal))
        said += [f"ahead of {peer}" for peer in ahead_of]
        words = ", ".join(said)
    return Row(name, means, tuple(theirs or (name,)), ratio, goal[0] if goal else None, tuple(ahead_of), words=words, judge=judge)


def timer_row(name, means):
    return Row(name, means, (name,), ahead_of_all=True, words="ahead")


def more_is_better(unit):
    return "/" in unit


def format_goal(value, unit):
    if unit == "ns" and value >= 1000:
        return f"{value / 1000:g} µs"
    return f"{value * 1e-6:g} M/s" if more_is_better(unit) else f"{value:g} {unit}"


def rate(millions):
    return (millions * 1e6, "keys/s")


ROWS = (
    row("cycle_empty", 4.1, "add, get, done on an empty queue, one thread"),
    row("cycle_shared", 3.5, "the same, after another thread has used the queue", ["cycle_empty"]),
    row("cycle_metrics", 7, "add, get, done, with metrics"),
    row("cycle_1k", None, "add, get, done behind 1,000 keys", goal=(30, "ns")),
    row("cycle_100k", None, "add, get, done behind 100,000 keys", goal=(50, "ns")),
    row("cycle_1m", 5, "add, get, done behind 1M keys"),
    row("cycle_any_10m", None, "the longest step on the way to 10M keys", goal=(5000, "ns")),
    row("hold_100m", None, "the longest call on the way to 100M keys", goal=(100000, "ns")),
    row("dup_hot", 2.5, "add a key that is queued"),
    row("dup_1m", 1.2, "add a random one of 1M queued keys"),
    row("bulk_add", 3, "1M adds"),
    row("bulk_add_many", 5, "1M adds, in batches", ["bulk_add"]),
    row("bulk_get_done", 3.5, "get and done of 1M keys"),
    row("bulk_get_done_many", 7, "get and done of 1M keys, in batches", ["bulk_get_done"]),
    row("cycle_priority", 10, "add, get, done with 3 priorities", judge=PRIORITIES),
    row("bulk_add_priority", 10, "1M adds with 3 priorities", judge=PRIORITIES),
    row("bulk_get_done_priority", 10, "get and done of 1M keys with 3 priorities", judge=PRIORITIES),
    row("pc_priority_1_1", 10, "1 + 1, with 3 priorities", judge=PRIORITIES),
    row("pc_1_1", None, "1 producer, 1 worker", goal=rate(14), ahead_of=[POINTERS]),
    row("pc_next_1_1", None, "1 + 1, done and get in one step", ["pc_1_1"], goal=rate(15), ahead_of=[POINTERS]),
    row("pc_many_1_1", None, "1 + 1, in batches", ["pc_1_1"], goal=rate(15), ahead_of=[POINTERS]),
    row("pc_4_4", 4.5, "4 + 4", ahead_of=[POINTERS]),
    row("pc_next_4_4", None, "4 + 4, done and get in one step", ["pc_4_4"], ahead_of=[POINTERS]),
    row("short_1_1", 4, "1 + 1, at most 1,024 keys queued"),
    row("short_2_2", 3, "2 + 2, likewise"),
    row("short_4_4", 4, "4 + 4, likewise"),
    row("hot_1_1", 1.8, "1 + 1, few keys, added again and again"),
    row("hot_4_4", 4, "4 + 4, likewise"),
    row("pingpong", 1.4, "a key from one thread to another and back"),
    row("work_1us", 1.6, "4 + 4, 1 µs of work per key"),
    row("second_start", 1, "a second key to a second worker"),
    row("wake_idle_p50", 1, "wake a worker, then sleep"),
    row("wake_idle_p99", 1, "the same, 99th percentile"),
    row("wake_busy_p50", 4, "wake a worker, then go on"),
    row("wake_busy_p99"),
    row("bytes_per_key", None, "resident memory per key, of 20 bytes each", goal=(70, "bytes")),
    row("bytes_kept_after"),
    row("bytes_kept_few", None, "memory kept with 136 of 5M keys left", goal=(3, "%")),
    row("add_after", 3.5, "1M delayed adds"),
    row("fire_burst", 9, "1M keys due at one instant"),
    row("late_p50", 7, "how late a delayed key is"),
    row("late_p99"),
    row("late_pool_p50", 15, "the same, in a pool", ["late_pool_p50", "late_p50"]),
    row("late_pool_p99", None, "", ["late_pool_p99", "late_p99"]),
    row("limited_cycle", 7, "rate-limited add, count, forget"),
    timer_row("wheel_insert", "start 1M timers"),
    timer_row("wheel_cancel", "stop 1M timers"),
    timer_row("wheel_expire", "1M timers fire"),
)
ON_REQUEST = ("hold_100m",)  # needs 9 GiB: only if it is named
BY_NAME = {r.name: r for r in ROWS}


@dataclass(frozen=True)
class Curve:
    """Its points are rows of their own, NAME@X."""

    name: str
    title: str
    of_x: str  # what X counts
    x: tuple


KEYS = (1000, 10000, 100000, 1000000, 10000000)
CURVES = (
    Curve("cycle", "Add, get, done against queued keys", "queued keys", KEYS),
    Curve("add_after", "A delayed add against waiting keys", "keys", KEYS),
    Curve("threads", "Throughput against threads", "producers, and as many workers", (1, 2, 4, 8)),
    Curve("waiters", "Waking one of many workers", "waiting workers", (1, 2, 4, 8, 16, 32, 64)),
    Curve("wheel_insert", "Starting a timer against timers in the end", "timers", KEYS),
)
POINTS = {f"{c.name}@{x}": x for c in CURVES for x in c.x}
QUICK_MOST = 100000  # the largest X of a quick run
# Beside the plain figure, the peer's best case.
BEST_CASES = {"bytes_per_key": "bytes_per_key_freed", "bytes_kept_after": "bytes_kept_after_freed"}


def owner_of(name):
    """wq_bench's own rows, and those of the loops that it measures itself."""
    for peer in ("libev", "libuv"):
        if name.startswith(peer + "_"):
            return peer, "wheel_" + name[len(peer) + 1 :]
    return "wq", name


def better(a, b, unit):
    return a > b if more_is_better(unit) else a < b


def ratio(ours, theirs, unit):
    """None: there is none, one of them is nothing."""
    if ours <= 0 or theirs <= 0:
        return None
    return ours / theirs if more_is_better(unit) else theirs / ours


def met(told):
    """False: something that is asked is missed. None: no bar, or all is met but a peer has no figure to tell."""
    r, ratios = BY_NAME[told["name"]], told["ratio"]
    asked = [(ratios.get(peer), lambda x: x > 1, peer in ratios) for peer in (ratios if r.ahead_of_all else r.ahead_of)]
    if r.ratio is not None:
        asked.append((ratios.get(r.judge), lambda x: x >= r.ratio, r.judge in ratios))
    answers = [(x is not None and reaches(x)) if known else None for x, reaches, known in asked]
    if r.goal is not None:
        answers.append(told["wq"] == r.goal or better(told["wq"], r.goal, told["unit"]))
    if False in answers:  # a ratio of None is a figure of nothing: no ground to say that it is met
        return False
    return None if None in answers or not answers else True


def bar_beside(told, peer):
    """The ratio to that peer at which the row would just meet what is asked of it; None: nothing is."""
    r = BY_NAME[told["name"]]
    bars = [r.ratio] if peer == r.judge and r.ratio is not None else []
    bars += [1] if peer in r.ahead_of or r.ahead_of_all else []
    if r.goal is not None and told["ratio"].get(peer):
        bars.append(told["ratio"][peer] * ratio(r.goal, told["wq"], told["unit"]))
    return max(bars, default=None)


def judged(rows, judge=True):
    """The same rows with their bars as they are now, and whether they are met."""
    out = []
    for told in rows:
        told = {key: value for key, value in told.items() if key not in ("bar", "met")}
        if BY_NAME[told["name"]].words:
            told["bar"] = BY_NAME[told["name"]].words
            told["met"] = met(told) if judge else None
        out.append(told)
    return out


def compare(best, judge=True):
    """best: program -> row -> (value, unit). A list as the JSON has it."""
    out = []
    for r in ROWS:
        if r.name not in best.get("wq", {}):
            continue
        ours, unit = best["wq"][r.name]
        peers, ratios, cases = {}, {}, {}
        for peer, rows in best.items():
            found = next((name for name in r.theirs if name in rows), None)
            if peer == "wq" or found is None:
                continue
            value, their_unit = rows[found]
            if their_unit != unit:
                raise ValueError(f"{r.name} is in {unit}, {peer} has {their_unit}")
            peers[peer] = value
            ratios[peer] = ratio(ours, value, unit)
            if BEST_CASES.get(r.name) in rows:
                cases[peer] = rows[BEST_CASES[r.name]][0]
        told = {"name": r.name, "wq": ours, "unit": unit, "peers": peers, "ratio": ratios}
        if cases:
            told["best_case"] = cases
        out.append(told)
    return judged(out, judge)


def curves(best):
    """A list as the JSON has it; what a program has no figure for is None."""
    out = []
    for c in CURVES:
        names = [f"{c.name}@{x}" for x in c.x]
        units = {rows[name][1] for rows in best.values() for name in names if name in rows}
        if len(units) > 1:
            raise ValueError(f"{c.name} is in {' and '.join(sorted(units))}")
        series = {peer: [rows[name][0] if name in rows else None for name in names] for peer, rows in best.items()}
        series = {peer: values for peer, values in series.items() if any(v is not None for v in values)}
        if series:
            out.append({"name": c.name, "unit": units.pop(), "x": list(c.x), "series": series})
    return out


def format_value(value, unit):
    if unit == "ns":
        return f"{value:.1f} ns" if value < 10000 else f"{value / 1000:.1f} µs"
    if more_is_better(unit):
        return f"{value * 1e-6:.2f} M/s"
    return f"{value:.1f} {unit}"


def format_ratio(value):
    """Rounded down: what is printed as its bar has met it."""
    if value is None:
        return "–"
    digits = 2 if value < 10 else 1 if value < 100 else 0
    if value < 0.1:
        digits = 1 - math.floor(math.log10(value))
    return f"{math.floor(value * 10**digits + 1e-6) / 10**digits:.{digits}f} ×"


def format_count(n):
    for size, unit in ((1000000, "M"), (1000, "k")):
        if n >= size and n % size == 0:
            return f"{n // size}{unit}"
    return str(n)


def verdict(told):
    return {True: "ok", False: "MISSED"}.get(told.get("met"), "")


def peers_of(rows):
    return list(dict.fromkeys(peer for told in rows for peer in told["peers"]))


def cells(rows):
    """The table: a header and a line for each row."""
    peers = peers_of(rows)
    out = [["row", "wq", *peers, "bar", ""]]
    for told in rows:
        line = [told["name"], format_value(told["wq"], told["unit"])]
        for peer in peers:
            value = told["peers"].get(peer)
            line.append("" if value is None else f"{format_value(value, told['unit'])} ({format_ratio(told['ratio'][peer])})")
        out.append(line + [told.get("bar", ""), verdict(told)])
        if told.get("best_case"):
            of = told["best_case"]
            line = [told["name"] + ", freed", ""]
            line += [
                f"{format_value(of[p], told['unit'])} ({format_ratio(ratio(told['wq'], of[p], told['unit']))})" if p in of else ""
                for p in peers
            ]
            out.append(line + ["", ""])
    return out


def curve_cells(curve):
    """A header and a line for each program."""
    of_x = next(c.of_x for c in CURVES if c.name == curve["name"])
    out = [[of_x, *(format_count(x) for x in curve["x"])]]
    ours = curve["series"].get("wq", [None] * len(curve["x"]))
    for peer, values in curve["series"].items():
        line = [peer]
        for mine, value in zip(ours, values):
            told = "" if value is None else format_value(value, curve["unit"])
            if peer != "wq" and value is not None and mine is not None:
                told += f" ({format_ratio(ratio(mine, value, curve['unit']))})"
            line.append(told)
        out.append(line)
    return out


def about_lines(data):
    rounds = f"best of {data['rounds']} rounds"
    if data["curves"]:
        rounds += f" (curves: {data['curve_rounds']})"
    lines = [f"{data['machine']}; {data['date']}; {rounds}; {', '.join(data['versions'])}"]
    lines += [f"{name} was skipped: {why}" for name, why in sorted(data["skipped"].items())]
    if data["quick"]:
        lines.append("A quick run: too small to be judged.")
    return lines


def aligned(table):
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in table]


def text_tables(data):
    rows = data["rows"]
    lines = aligned(cells(rows))
    known = [told["met"] for told in rows if told.get("met") is not None]
    if known:
        lines.append(f"{len(rows)} rows: {sum(known)} bars met, {len(known) - sum(known)} MISSED")
    for curve in data["curves"]:
        lines += ["", curve["name"] + "@", *aligned(curve_cells(curve))]
    return "\n".join(lines + about_lines(data))


def markdown(table, right):
    """right: how many columns, from the second on, hold figures."""
    lines = ["| " + " | ".join(line) + " |" for line in table]
    lines.insert(1, "| --- |" + " ---: |" * right + " --- |" * (len(table[0]) - 1 - right))
    return "\n".join(lines) + "\n"


def markdown_about(data):
    return "  \n".join(about_lines(data)) + "\n"


def markdown_table(data):
    table = cells(data["rows"])
    for line in table:
        known = BY_NAME.get(line[0])
        line.append("what is measured" if line[0] == "row" else known.means if known else "")
    return markdown(table, len(table[0]) - 4) + "\n" + markdown_about(data)


def markdown_curves(data):
    out = []
    for curve in data["curves"]:
        title = next(c.title for c in CURVES if c.name == curve["name"])
        out.append(f"## {title}\n\n![{title}](curve-{curve['name']}.svg)\n\n")
        out.append(markdown(curve_cells(curve), len(curve["x"])) + "\n")
    return "# How cost grows\n\n" + "".join(out) + markdown_about(data)


# ---- the README ---------------------------------------------------------------

MARKS = ("<!-- bench-peers -->\n", "<!-- /bench-peers -->\n")


# Five rows are enough there: speed of one thread, of two, latency, memory, delays.
README_ROWS = ("cycle_empty", "pc_1_1", "pingpong", "bytes_per_key", "fire_burst")


def readme_table(data):
    """wq beside client-go in a few rows, and where the others are."""
    table = [["", "wq", JUDGE, "times better"]]
    rows = {told["name"]: told for told in data["rows"]}
    for name in README_ROWS:
        told = rows.get(name)
        if told and JUDGE in told["peers"]:
            unit = told["unit"]
            figures = [format_value(told["wq"], unit), format_value(told["peers"][JUDGE], unit)]
            table.append([BY_NAME[name].means, *figures, format_ratio(told["ratio"][JUDGE])])
    versions = [line.split(" (")[0] for line in data["versions"] if line.split(" ")[0] in ("wq", JUDGE)]
    cpu = data["machine"].split(", Linux")[0]
    return (
        markdown(table, 3)
        + f"\n{cpu}; {data['date']}; {', '.join(versions)}.\n"
        + f"[All {len(data['rows'])} rows and {len(peers_of(data['rows']))} peers](docs/bench/README.md), with those where a peer is ahead.\n"
    )


def readme_part(text):
    """What stands between the marks: (from, to)."""
    begin, end = (text.find(mark) for mark in MARKS)
    if begin < 0 or end < begin:
        raise ValueError(f"there is no {MARKS[0].strip()} .. {MARKS[1].strip()}")
    return begin + len(MARKS[0]), end


def with_readme_table(text, data):
    begin, end = readme_part(text)
    return text[:begin] + readme_table(data) + text[end:]
