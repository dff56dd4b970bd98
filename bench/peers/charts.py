"""The charts of docs/bench: SVG, on white, so that they can be read on any page.

    queue.svg        how many times better than client-go, with the bars
    others.svg       the same for the other peers of the queue, side by side
    timers.svg       the timer rows, for all their peers
    curve-NAME.svg   how cost grows, a line for each program

Scales are logarithmic: twice as good is as far to the right as half as good to the left.
"""
import math
from html import escape

import tables

BLUE, PALE, ORANGE, BEHIND = "#2a6f97", "#9dbccd", "#d1661b", "#efbf94"
BLACK, GREY, LINE = "#222", "#555", "#ddd"
# wq first; then as far apart as ten lines can be, for colour-blind eyes, too.
COLOURS = ("#d1661b", "#2a6f97", "#3a8f5c", "#9a4c95", "#c9a227", "#6c757d", "#56b4e9", "#b23a48", "#7a5230", "#e58fb1")
CHARACTER = 6.1  # width of one, at size 11


def text(x, y, words, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}"{" " + more if more else ""}>{escape(words)}</text>'


def rect(x, y, width, height, fill):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{height:.1f}" fill="{fill}"/>'


def line(x1, y1, x2, y2, colour, width=1):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def wrapped(words, width):
    out = [""]
    for word in words.split(" "):
        if out[-1] and len(out[-1]) + 1 + len(word) > width:
            out.append("")
        out[-1] += (" " if out[-1] else "") + word
    return out


def picture(title, body, width, y, data):
    """With its title above, and below, from y on, where the figures come from."""
    body = [text(12, 22, title, 'font-size="15" font-weight="bold"'), *body]
    for told in tables.about_lines(data):
        for piece in wrapped(told, int((width - 24) / 5.3)):
            y += 14
            body.append(text(12, y, piece, f'font-size="10" fill="{GREY}"'))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{y + 14:.0f}" '
        f'viewBox="0 0 {width:.0f} {y + 14:.0f}" role="img" font-family="sans-serif" font-size="11" fill="{BLACK}">\n'
        f"<title>{escape(title)}</title>\n"
        '<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def ticks(low, high, dense):
    """Round numbers from low to high."""
    steps = (1, 2, 5) if dense else (1,)
    all_of_them = [step * 10.0**e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1) for step in steps]
    return [t for t in all_of_them if low * 0.999 <= t <= high * 1.001]


# ---- bars -------------------------------------------------------------------

ROW, BAR, LABEL = 18, 11, 52  # heights; the room for a number beside its bar


class Cell:
    """A ratio, the bar that it is held to or None, and whether it is met."""

    def __init__(self, value, bar, met):
        self.value, self.bar, self.met = value, bar, met

    def colour(self):
        if self.bar is None:
            return BEHIND if self.value < 1 else PALE
        return {True: BLUE, False: ORANGE}.get(self.met, PALE)


def legend(y, has_bars):
    told = ((BLUE, "bar met"), (ORANGE, "bar missed"), (PALE, "no bar"), (BEHIND, "no bar, wq is behind")) if has_bars else ((PALE, "wq is ahead"), (BEHIND, "wq is behind"))
    body, x = [], 12
    for colour, words in told:
        body += [rect(x, y - 9, 10, 10, colour), text(x + 15, y, words)]
        x += 30 + CHARACTER * len(words)
    if has_bars:
        body += [line(x + 4, y - 11, x + 4, y + 3, BLACK, 2), text(x + 12, y, "the bar")]
    return body


def bars(title, lines, columns, cell, data, column_width, most):
    """
    A line for each of `lines`, a panel for each of `columns`, at most `most` of them side
    by side; cell(line, column) is a Cell or None. All panels have one scale.
    """
    bands = math.ceil(len(columns) / most)
    across = math.ceil(len(columns) / bands) if bands else 0
    known = {(r, c): cell(r, c) for r in lines for c in columns}
    shown = [v for one in known.values() if one for v in (one.value, one.bar) if v]
    low, high = min([0.5, *shown]) * 0.95, max([2, *shown]) * 1.05
    left = 24 + CHARACTER * max(map(len, lines), default=0)
    scale = column_width - LABEL - 8
    has_bars = any(one and one.bar is not None for one in known.values())
    body, y = legend(44, has_bars), 56

    def x_of(value):
        return scale * math.log(value / low) / math.log(high / low)

    for nth in range(bands):
        band = columns[nth * across : (nth + 1) * across]
        rows = [r for r in lines if any(known[r, c] for c in band)]
        bottom = y + 34 + ROW * len(rows)
        for i, c in enumerate(band):
            x = left + i * column_width
            if c:
                body.append(text(x, y + 12, c, 'font-weight="bold"'))
            for tick in ticks(low, high, scale > 300):
                strong = math.isclose(tick, 1)
                body.append(line(x + x_of(tick), y + 30, x + x_of(tick), bottom, BLACK if strong else LINE))
                body.append(text(x + x_of(tick), y + 26, f"{tick:g}", f'font-size="9" text-anchor="middle" fill="{GREY}"'))
        y += 34
        for r in rows:
            body.append(text(12, y + BAR, r))
            for i, c in enumerate(band):
                if known[r, c]:
                    body += drawn(known[r, c], left + i * column_width, y, x_of)
            y += ROW
        y += 12
    return picture(title, body, max(left + column_width * across + 12, 480), y, data)


def drawn(one, x, y, x_of):
    begin, end = sorted((x_of(1), x_of(one.value)))
    out = [rect(x + begin, y + 2, end - begin, BAR, one.colour())]
    after = end
    if one.bar is not None:
        out.append(line(x + x_of(one.bar), y, x + x_of(one.bar), y + BAR + 4, BLACK, 2))
        # A tick just behind the end of the bar would stand in the number.
        if end - 2 <= x_of(one.bar) < end + LABEL:
            after = x_of(one.bar)
    words = tables.format_ratio(one.value)
    out.append(text(x + after + 5, y + BAR, words, 'font-weight="bold"' if one.met is False else ""))
    return out


def queue_chart(data):
    rows = {told["name"]: told for told in data["rows"] if tables.JUDGE in told["ratio"]}

    def cell(name, _):
        told = rows[name]
        value = told["ratio"][tables.JUDGE]
        return Cell(value, tables.bar_beside(told, tables.JUDGE), told.get("met")) if value else None

    return bars(f"How many times better than {tables.JUDGE}", list(rows), [""], cell, data, 560, 1)


def others_chart(data):
    rows = {told["name"]: told for told in data["rows"] if not tables.BY_NAME[told["name"]].timer}
    peers = [p for p in tables.peers_of(rows.values()) if p != tables.JUDGE]

    def cell(name, peer):
        value = rows[name]["ratio"].get(peer)
        return Cell(value, None, None) if value else None

    lines = [name for name, told in rows.items() if any(told["ratio"].get(p) for p in peers)]
    return bars("How many times better than other queues", lines, peers, cell, data, 190, 4)


def timers_chart(data):
    rows = {told["name"]: told for told in data["rows"] if tables.BY_NAME[told["name"]].timer}

    def cell(peer, name):
        value = rows[name]["ratio"].get(peer)
        return Cell(value, None, None) if value else None

    return bars("How many times better than other timers", tables.peers_of(rows.values()), list(rows), cell, data, 240, 3)


# ---- lines ------------------------------------------------------------------

LEFT, TOP, WIDTH, HEIGHT = 76, 44, 520, 340


def of_y(value, unit):
    if unit == "ns":
        for size, name in ((1e6, "ms"), (1e3, "µs")):
            if value >= size:
                return f"{value / size:g} {name}"
        return f"{value:g} ns"
    for size, name in ((1e6, " M/s"), (1e3, " k/s")):
        if value >= size:
            return f"{value / size:g}{name}"
    return f"{value:g} /s"


def spread(wanted, gap, low, high):
    """Places as near as possible to the wanted ones, in their order, at least `gap` apart."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    places = [0.0] * len(wanted)
    at = low - gap
    for i in order:
        at = places[i] = max(wanted[i], at + gap)
    at = max(high, low + gap * (len(wanted) - 1)) + gap
    for i in reversed(order):
        at = places[i] = min(places[i], at - gap)
    return places


def path(points, colour, width):
    d = " ".join(f"{'M' if i == 0 else 'L'}{x:.1f} {y:.1f}" for i, (x, y) in enumerate(points))
    return f'<path d="{d}" fill="none" stroke="{colour}" stroke-width="{width}"/>'


def curve_chart(curve, data, colours):
    told = next(c for c in tables.CURVES if c.name == curve["name"])
    values = [v for series in curve["series"].values() for v in series if v]
    low, high = min(values) / 1.25, max(values) * 1.25
    first, last = curve["x"][0], curve["x"][-1]

    def x_of(x):
        return LEFT + WIDTH * math.log(x / first) / math.log(last / first)

    def y_of(y):
        return TOP + HEIGHT * (1 - math.log(y / low) / math.log(high / low))

    body = []
    for tick in ticks(low, high, high / low < 10000):
        body.append(line(LEFT, y_of(tick), LEFT + WIDTH, y_of(tick), LINE))
        body.append(text(LEFT - 6, y_of(tick) + 4, of_y(tick, curve["unit"]), 'text-anchor="end"'))
    for x in curve["x"]:
        body.append(line(x_of(x), TOP, x_of(x), TOP + HEIGHT, LINE))
        body.append(text(x_of(x), TOP + HEIGHT + 16, tables.format_count(x), 'text-anchor="middle"'))
    better = "more is better" if tables.more_is_better(curve["unit"]) else "less is better"
    body.append(text(LEFT + WIDTH / 2, TOP + HEIGHT + 34, f"{told.of_x} ({better})", f'text-anchor="middle" fill="{GREY}"'))
    drawn_lines = []
    for peer, series in curve["series"].items():
        points = [(x_of(x), y_of(v)) for x, v in zip(curve["x"], series) if v]
        if points:
            drawn_lines.append((peer, points))
    places = spread([points[-1][1] for _, points in drawn_lines], 14, TOP, TOP + HEIGHT)
    # wq last: it lies above the others.
    for (peer, points), place in sorted(zip(drawn_lines, places), key=lambda one: one[0][0] == "wq"):
        colour, ours = colours[peer], peer == "wq"
        body.append(path(points, colour, 3 if ours else 1.6))
        body += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{4 if ours else 3}" fill="{colour}"/>' for x, y in points]
        end = points[-1]
        body.append(path([(end[0] + 5, end[1]), (LEFT + WIDTH + 16, place), (LEFT + WIDTH + 20, place)], colour, 0.8))
        weight = ' font-weight="bold"' if ours else ""
        body.append(text(LEFT + WIDTH + 24, place + 4, peer, f'fill="{colour}"{weight}'))
    names = 36 + 1.1 * CHARACTER * max(len(peer) for peer, _ in drawn_lines)
    return picture(told.title, body, LEFT + WIDTH + names, TOP + HEIGHT + 44, data)


def all_charts(data):
    """File name -> text."""
    peers = list(dict.fromkeys(peer for curve in data["curves"] for peer in curve["series"] if peer != "wq"))
    colours = {peer: COLOURS[1 + i % (len(COLOURS) - 1)] for i, peer in enumerate(peers)}
    colours["wq"] = COLOURS[0]
    out = {"queue.svg": queue_chart(data), "others.svg": others_chart(data), "timers.svg": timers_chart(data)}
    for curve in data["curves"]:
        out[f"curve-{curve['name']}.svg"] = curve_chart(curve, data, colours)
    return out
