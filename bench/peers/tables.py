"""What is made of the figures of wq and its peers: ratios, bars, tables, charts.

A ratio says how many times better wq is, in either direction: 2 is half the time,
half the memory or twice the throughput.
"""
import math
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Row:
    """theirs: the peer's row that it stands beside, the first one that the peer has."""

    name: str
    theirs: tuple
    bar: float = None  # the least ratio to client-go, or to all peers of the timer rows
    words: str = ""  # the bar, as it was asked for
    timer: bool = False


def row(name, bar=None, theirs=None, words=None, timer=False):
    if words is None:
        words = f"≥ {bar:g} ×" if bar else ""
    return Row(name, tuple(theirs or (name,)), bar, words, timer)


ROWS = (
    row("cycle_empty", 7),
    row("cycle_metrics", 10),
    row("cycle_1m", 5),
    row("dup_hot", 2.5),
    row("dup_1m"),
    row("bulk_add", 3),
    row("bulk_add_many", 5, ["bulk_add"]),
    row("bulk_get_done", 3.5),
    row("bulk_get_done_many", 7, ["bulk_get_done"]),
    row("pc_1_1", 4),
    row("pc_next_1_1", 6, ["pc_1_1"]),
    row("pc_many_1_1", 10, ["pc_1_1"]),
    row("pc_4_4", 4.5),
    row("pc_next_4_4", None, ["pc_4_4"]),
    row("short_1_1", 3),
    row("short_2_2", 3),
    row("short_4_4", 3),
    row("hot_1_1", 2),
    row("hot_4_4", 2),
    row("pingpong", 1.5),
    row("work_1us", 1.8),
    row("second_start"),
    row("wake_idle_p50", 1 / 1.3, words="no worse than 1.3 ×"),
    row("wake_idle_p99"),
    row("wake_busy_p50", 4),
    row("wake_busy_p99"),
    row("bytes_per_key", 1 / 0.6, words="≤ 0.6 ×"),
    row("bytes_kept_after"),
    row("add_after", 3.5),
    row("fire_burst", 9),
    row("late_p50", 7),
    row("late_p99"),
    row("late_pool_p50", 15, ["late_pool_p50", "late_p50"]),
    row("late_pool_p99", None, ["late_pool_p99", "late_p99"]),
    row("limited_cycle", 9),
    row("wheel_insert", 1, words="ahead", timer=True),
    row("wheel_cancel", 1, words="ahead", timer=True),
    row("wheel_expire", 1, words="ahead", timer=True),
)
BY_NAME = {r.name: r for r in ROWS}
JUDGE = "client-go"
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
    judges = [x for x in judges if x is not None]
    if r.bar is None or not judges:
        return None
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


def format_value(value, unit):
    if unit == "ns":
        return f"{value:.1f} ns" if value < 10000 else f"{value / 1000:.1f} µs"
    if more_is_better(unit):
        return f"{value * 1e-6:.2f} M/s"
    return f"{value:.1f} {unit}"


def format_ratio(value):
    if value is None:
        return "–"
    return f"{value:.2f} ×" if value < 10 else f"{value:.1f} ×"


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


def about_lines(about):
    lines = [f"{about['machine']}; {about['date']}; best of {about['rounds']} rounds; {', '.join(about['versions'])}"]
    lines += [f"{name} was skipped: {why}" for name, why in sorted(about["skipped"].items())]
    if about.get("quick"):
        lines.append("A quick run: too small to be judged.")
    return lines


def text_table(rows, about):
    table = cells(rows)
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in table]
    judged = [told["met"] for told in rows if told.get("met") is not None]
    lines.append(f"{len(rows)} rows: {sum(judged)} bars met, {len(judged) - sum(judged)} MISSED")
    return "\n".join(lines + about_lines(about))


def markdown_table(rows, about):
    table = cells(rows)
    lines = ["| " + " | ".join(line) + " |" for line in table]
    lines.insert(1, "| --- |" + " ---: |" * (len(table[0]) - 3) + " --- | --- |")
    return "\n".join(lines) + "\n\n" + "  \n".join(about_lines(about)) + "\n"


COLOURS = ("#2a6f97", "#e07a1f", "#5b8c5a", "#9a4c95", "#b23a48", "#6c757d")
BAR, GAP, LEFT, WIDTH = 11, 8, 150, 560


def chart(rows, about, title):
    """How many times better wq is, on a logarithmic scale: bars to the right of the line at 1."""
    peers = peers_of(rows)
    shown = [x for told in rows for x in told["ratio"].values() if x]
    low = min([0.5, *shown])
    high = max([2, *shown])
    span = math.log(high / low)

    def x_of(value):
        return LEFT + WIDTH * math.log(value / low) / span

    def text(x, y, words, more=""):
        return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(words)}</text>'

    body = [text(8, 20, title, 'font-size="14" font-weight="bold"')]
    for i, peer in enumerate(peers):
        body.append(f'<rect x="{LEFT + i * 140}" y="30" width="10" height="10" fill="{COLOURS[i % len(COLOURS)]}"/>')
        body.append(text(LEFT + i * 140 + 15, 39, peer))
    y = 56
    for told in rows:
        drawn = [(i, told["ratio"][p]) for i, p in enumerate(peers) if told["ratio"].get(p)]
        if not drawn:
            continue
        body.append(text(8, y + BAR - 2, told["name"]))
        for i, value in drawn:
            left, right = sorted((x_of(1), x_of(value)))
            body.append(
                f'<rect x="{left:.1f}" y="{y}" width="{max(right - left, 1):.1f}" height="{BAR - 2}" '
                f'fill="{COLOURS[i % len(COLOURS)]}"/>'
            )
            body.append(text(right + 4, y + BAR - 3, format_ratio(value), 'font-size="9"'))
            y += BAR
        y += GAP
    body.append(f'<line x1="{x_of(1):.1f}" y1="48" x2="{x_of(1):.1f}" y2="{y}" stroke="#333"/>')
    for line in about_lines(about):
        for piece in wrapped(line, 125):
            y += 13
            body.append(text(8, y, piece, 'font-size="9" fill="#555"'))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 80}" height="{y + 12}" '
        f'font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="#fff"/>\n'
        + "\n".join(body)
        + "\n</svg>\n"
    )


def wrapped(line, width):
    out = [""]
    for word in line.split(" "):
        if out[-1] and len(out[-1]) + 1 + len(word) > width:
            out.append("")
        out[-1] += (" " if out[-1] else "") + word
    return out


def documents(rows, about):
    """File name -> text, for docs/bench/."""
    timers = [told for told in rows if BY_NAME[told["name"]].timer]
    queues = [told for told in rows if not BY_NAME[told["name"]].timer]
    return {
        "table.md": markdown_table(rows, about),
        "queue.svg": chart(queues, about, "How many times better wq's queue is (logarithmic)"),
        "timers.svg": chart(timers, about, "How many times better wq's timers are (logarithmic)"),
    }
