"""What is made of the figures of wq and its peers: ratios, bars, curves, tables.

A ratio says how many times better wq is, in either direction: 2 is half the time,
half the memory or twice the throughput. `data` is what the JSON has: see run.results().
"""
import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """theirs: the peer's row that it stands beside, the first one that the peer has."""

    name: str
    means: str  # for the README; rows without a bar are not in it
    theirs: tuple
    bar: float = None  # the least ratio to client-go, or to all peers of the timer rows
    words: str = ""  # the bar, as it was asked for
    timer: bool = False


def row(name, bar=None, means="", theirs=None, words=None, timer=False):
    if words is None:
        words = f"≥ {bar:g} ×" if bar else ""
    return Row(name, means, tuple(theirs or (name,)), bar, words, timer)


ROWS = (
    row("cycle_empty", 7, "add, get, done on an empty queue of one thread"),
    row("cycle_shared", 7, "the same, after another thread has used it", ["cycle_empty"]),
    row("cycle_metrics", 10, "add, get, done, with metrics"),
    row("cycle_1m", 5, "add, get, done behind 1M keys"),
    row("dup_hot", 2.5, "add what is in line already"),
    row("dup_1m", means="add a random one of 1M in line"),
    row("bulk_add", 3, "1M adds"),
    row("bulk_add_many", 5, "1M adds, in batches", ["bulk_add"]),
    row("bulk_get_done", 3.5, "get and done of 1M keys"),
    row("bulk_get_done_many", 7, "get and done of 1M keys, in batches", ["bulk_get_done"]),
    row("pc_1_1", 4, "1 producer + 1 worker"),
    row("pc_next_1_1", 6, "1 + 1, done and get in one step", ["pc_1_1"]),
    row("pc_many_1_1", 10, "1 + 1, in batches", ["pc_1_1"]),
    row("pc_4_4", 4.5, "4 + 4"),
    row("pc_next_4_4", None, "", ["pc_4_4"]),
    row("short_1_1", 3, "1 + 1, at most 1,024 keys in line"),
    row("short_2_2", 3, "2 + 2, likewise"),
    row("short_4_4", 3, "4 + 4, likewise"),
    row("hot_1_1", 2, "1 + 1, few keys, added again and again"),
    row("hot_4_4", 2, "4 + 4, likewise"),
    row("pingpong", 1.5, "two queues, to and fro"),
    row("work_1us", 1.8, "4 + 4, 1 µs of work a key"),
    row("second_start", means="a second key to a second worker"),
    row("wake_idle_p50", 1 / 1.3, "wake a worker, then sleep", words="≥ 0.77 ×"),
    row("wake_idle_p99", means="the same, 99th percentile"),
    row("wake_busy_p50", 4, "wake a worker, then go on"),
    row("wake_busy_p99"),
    row("bytes_per_key", 1 / 0.6, "resident memory a key", words="≥ 1.67 ×"),
    row("bytes_kept_after"),
    row("add_after", 3.5, "1M delayed adds"),
    row("fire_burst", 9, "1M keys due at one instant"),
    row("late_p50", 7, "how late a delayed key is"),
    row("late_p99"),
    row("late_pool_p50", 15, "how late it is in a pool", ["late_pool_p50", "late_p50"]),
    row("late_pool_p99", None, "", ["late_pool_p99", "late_p99"]),
    row("limited_cycle", 9, "rate-limited add, count, forget"),
    row("wheel_insert", 1, "start 1M timers", words="ahead", timer=True),
    row("wheel_cancel", 1, "stop 1M timers", words="ahead", timer=True),
    row("wheel_expire", 1, "1M timers fire", words="ahead", timer=True),
)
BY_NAME = {r.name: r for r in ROWS}
JUDGE = "client-go"


@dataclass(frozen=True)
class Curve:
    """Its points are rows of their own, NAME@X."""

    name: str
    title: str
    of_x: str  # what X counts
    x: tuple


KEYS = (1000, 10000, 100000, 1000000, 10000000)
CURVES = (
    Curve("cycle", "Add, get, done against keys in line", "keys in line", KEYS),
    Curve("add_after", "A delayed add against keys that wait in the end", "keys", KEYS),
    Curve("threads", "Throughput against threads", "producers, and as many workers", (1, 2, 4, 8)),
    Curve("waiters", "Waking one of many workers", "workers that wait", (1, 2, 4, 8, 16, 32, 64)),
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


def more_is_better(unit):
    return "/" in unit


def better(a, b, unit):
    return a > b if more_is_better(unit) else a < b


def ratio(ours, theirs, unit):
    """None: there is none, one of them is nothing."""
    if ours <= 0 or theirs <= 0:
        return None
    return ours / theirs if more_is_better(unit) else theirs / ours


def met(r, ratios):
    """None: there is no bar, or nobody to hold it against."""
    judges = list(ratios.values()) if r.timer else [ratios[JUDGE]] if JUDGE in ratios else []
    if r.bar is None or not judges:
        return None
    if None in judges:  # a figure of nothing: no ground to say that it is met
        return False
    return all(x > r.bar for x in judges) if r.timer else all(x >= r.bar for x in judges)


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
        if r.words:
            told["bar"] = r.words
            told["met"] = met(r, ratios) if judge else None
        if cases:
            told["best_case"] = cases
        out.append(told)
    return out


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
    judged = [told["met"] for told in rows if told.get("met") is not None]
    if judged:
        lines.append(f"{len(rows)} rows: {sum(judged)} bars met, {len(judged) - sum(judged)} MISSED")
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
    return markdown(table, len(table[0]) - 3) + "\n" + markdown_about(data)


def markdown_curves(data):
    out = []
    for curve in data["curves"]:
        title = next(c.title for c in CURVES if c.name == curve["name"])
        out.append(f"## {title}\n\n![{title}](curve-{curve['name']}.svg)\n\n")
        out.append(markdown(curve_cells(curve), len(curve["x"])) + "\n")
    return "# How cost grows\n\n" + "".join(out) + markdown_about(data)


# ---- the README ---------------------------------------------------------------

MARKS = ("<!-- bench-peers -->\n", "<!-- /bench-peers -->\n")


def readme_table(data):
    """client-go and the bars; of the timers, the best peer. Percentiles and the like are left out."""
    queue, timers = [["", "wq", JUDGE, "times better", "bar", ""]], [["", "wq", "the best peer", "times better"]]
    for told in data["rows"]:
        r = BY_NAME[told["name"]]
        ours, unit, of = format_value(told["wq"], told["unit"]), told["unit"], told["ratio"]
        if r.timer and told["peers"]:
            peer = min(told["peers"], key=lambda p: math.inf if of[p] is None else of[p])
            timers.append([r.means, ours, f"{format_value(told['peers'][peer], unit)} ({peer})", format_ratio(of[peer])])
        elif r.means and JUDGE in told["peers"]:
            theirs = format_value(told["peers"][JUDGE], unit)
            queue.append([r.means, ours, theirs, format_ratio(of[JUDGE]), r.words, verdict(told)])
    versions = [line for line in data["versions"] if line.split(" ")[0] in ("wq's", "wq", JUDGE)]
    judged = [told["met"] for told in data["rows"] if told.get("met") is not None]
    about = f"{sum(judged)} of {len(judged)} bars are met. {data['machine']}; {data['date']}; best of {data['rounds']} rounds; {', '.join(versions)}."
    return (
        markdown(queue, 3)
        + "\n"
        + markdown(timers, 3)
        + f"\n{about} By `scripts/bench-peers`; all rows, all peers and how cost grows: [docs/bench](docs/bench/README.md).\n"
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
