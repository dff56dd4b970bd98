"""The mutants of a file: one small change each, of a kind that people make.

    operator    | example
    ------------+--------------------------------------------
    compare     | a < b       -> a <= b        a == b -> a != b
    negate      | if (a)      -> if (!(a))     !a     -> a
    logic       | a && b      -> a || b        a & b  -> a | b
    arithmetic  | a + b       -> a - b         a += b -> a -= b
    constant    | 1           -> 2             1      -> 0
    swap        | a - b       -> b - a         a ? b : c -> a ? c : b        f(a, b) -> f(b, a)
    return      | return a;   -> return 0;     return true; -> return false;
    drop        | f(a);       -> {}            a = b; -> {}            break; -> {}
    cleanup     | the same of a statement that frees, closes, unlinks, wakes or ends something

A mutant's id is made of its file, function, operator and text, not of its line: it survives changes elsewhere.
"""
import hashlib
import re
from dataclasses import dataclass

from csource import OPEN, is_cast, read

OPERATORS = ("compare", "negate", "logic", "arithmetic", "constant", "swap", "return", "drop", "cleanup")
CHANGES = {
    "compare": {"<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"], "==": ["!="], "!=": ["=="]},
    "logic": {"&&": ["||"], "||": ["&&"], "&": ["|"], "|": ["&"], "&=": ["|="], "|=": ["&="]},
    "arithmetic": {"+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["/"], "+=": ["-="], "-=": ["+="],
                   "++": ["--"], "--": ["++"], "<<": [">>"], ">>": ["<<"]},
}
CLEANUP = re.compile(r"free|close|release|unlink|unlock|destroy|munmap|remove|forget|leave|join|clear|reset|"
                     r"wake|rouse|signal|end\b|_end|stop|goto")
KEYWORDS = {"return", "case", "sizeof", "else", "goto", "if", "while", "for", "switch", "do"}
# Checks of our own, seeded bugs, and hints to the CPU, which no test can see.
FORBIDDEN = re.compile(r"\b(assert|static_assert|_Static_assert|wq__prefetch\w*)\s*\(|WQ__BUG\(")


@dataclass(frozen=True)
class Mutant:
    id: str
    path: str
    line: int
    function: str
    operator: str
    before: str  # the line as it is, without indentation
    after: str   # and as it becomes
    start: int   # source[start:end] becomes text
    end: int
    text: str

    def apply(self, source):
        return source[:self.start] + self.text + source[self.end:]


class Finder:
    def __init__(self, source):
        self.s, self.t = source, source.tokens
        self.found = []

    def add(self, operator, function, start, end, text):
        old = self.s.text[start:end]
        # Lines stay where they are.
        text += "\n" * (old.count("\n") - text.count("\n"))
        if old != text:
            self.found.append((operator, function, start, end, text))

    def operands(self, i):
        """The simple operands on both sides of the operator at i, as token ranges, or None."""
        t = self.t
        a = i - 1
        while True:
            if t[a].kind == "mark" and t[a].text in ("]", ")"):
                if t[a].text == ")" and is_cast(self.s, a):
                    return None
                a = self.s.pairs[a]
                if t[a - 1].kind == "name" and t[a - 1].text not in KEYWORDS:
                    a -= 1
                elif t[a].text == "[":
                    return None
            elif t[a].kind not in ("name", "number"):
                return None
            if t[a - 1].text not in ("->", "."):
                break
            a -= 2
        b = i + 1
        if t[b].kind not in ("name", "number") and t[b].text != "(":
            return None
        if t[b].text == "(":
            b = self.s.pairs[b]
            if is_cast(self.s, b):
                return None
        while b + 1 < len(t):
            if t[b + 1].text in ("->", "."):
                b += 2
            elif t[b + 1].text in ("[", "("):
                b = self.s.pairs[b + 1]
            else:
                break
        return a, b

    def is_binary(self, i):
        p = self.t[i - 1]
        if p.kind in ("number", "string"):
            return True
        if p.kind == "name":
            return p.text not in KEYWORDS
        return p.text == "]" or (p.text == ")" and not is_cast(self.s, i - 1))

    def expression(self, first, last, function):
        """Mutates the tokens [first, last)."""
        for i in range(first, last):
            t = self.t[i]
            if t.kind == "number":
                self.constant(i, function)
            elif t.kind == "mark":
                self.operator(i, first, last, function)
            elif t.kind == "name" and t.text in ("true", "false"):
                self.add("constant", function, t.start, t.end, "false" if t.text == "true" else "true")

    def constant(self, i, function):
        t = self.t[i]
        m = re.fullmatch(r"(\d+)([uUlL]*)", t.text)
        if not m or (len(m[1]) > 1 and m[1][0] == "0"):
            return
        n = int(m[1])
        self.add("constant", function, t.start, t.end, f"{n + 1}{m[2]}")
        if n > 0:
            self.add("constant", function, t.start, t.end, f"{n - 1}{m[2]}")

    def operator(self, i, first, last, function):
        t = self.t[i]
        for name, changes in CHANGES.items():
            if t.text not in changes or (t.text in "+-*&" and not self.is_binary(i)):
                continue
            for text in changes[t.text]:
                self.add(name, function, t.start, t.end, text)
        if t.text == "!":
            self.add("negate", function, t.start, t.end, "")
        if t.text in ("-", "/", "%", "<<", ">>") and self.is_binary(i):
            sides = self.operands(i)
            if sides and sides[0] >= first and sides[1] < last:
                a, b = sides
                left = self.s.text[self.t[a].start:self.t[i - 1].end]
                right = self.s.text[self.t[i + 1].start:self.t[b].end]
                middle = self.s.text[self.t[i - 1].end:self.t[i + 1].start]
                self.add("swap", function, self.t[a].start, self.t[b].end, right + middle + left)
        if t.text == "?":
            self.branches(i, last, function)
        if t.text == "(" and self.t[i - 1].kind == "name" and self.t[i - 1].text not in KEYWORDS:
            self.arguments(i, function)

    def branches(self, i, last, function):
        """a ? b : c, of which c ends before the next comma, colon or bracket of its own level."""
        middle, depth, end = None, 0, i + 1
        while end < last:
            text = self.t[end].text
            if self.t[end].kind == "mark" and text in OPEN:
                end = self.s.pairs[end]
            elif text == "?":
                depth += 1
            elif text == ":":
                if depth == 0 and middle is None:
                    middle = end
                elif depth == 0:
                    break
                else:
                    depth -= 1
            elif text in (",", ";", ")", "]", "}"):
                break
            end += 1
        if middle is None or middle == i + 1:
            return
        b = self.s.text[self.t[i + 1].start:self.t[middle - 1].end]
        c = self.s.text[self.t[middle + 1].start:self.t[end - 1].end]
        if "?" not in c:
            between = self.s.text[self.t[middle - 1].end:self.t[middle + 1].start]
            self.add("swap", function, self.t[i + 1].start, self.t[end - 1].end, c + between + b)

    def arguments(self, i, function):
        """f(a, b): each two neighbours that are single names or numbers."""
        close, parts, begin, j = self.s.pairs[i], [], i + 1, i + 1
        while j <= close:
            text = self.t[j].text
            if j == close or text == ",":
                parts.append((begin, j - 1))
                begin = j + 1
            elif self.t[j].kind == "mark" and text in OPEN:
                j = self.s.pairs[j]
            j += 1
        for (a, a_end), (b, b_end) in zip(parts, parts[1:]):
            if a == a_end and b == b_end and all(self.t[x].kind in ("name", "number") for x in (a, b)):
                self.add("swap", function, self.t[a].start, self.t[b].end,
                         self.t[b].text + ", " + self.t[a].text)

    def statement(self, st):
        t, s = self.t, self.s
        start, end = t[st.first].start, t[st.last].end
        if st.kind == "declare":
            # Only what is computed: from the first `=` of its own level on.
            i = st.first
            while i < st.last and t[i].text != "=":
                i = s.pairs[i] + 1 if t[i].kind == "mark" and t[i].text in OPEN and t[i].text != "{" else i + 1
            self.expression(i + 1, st.last, st.function)
            return
        if st.kind == "return":
            self.give_back(st)
            self.expression(st.first + 1, st.last, st.function)
            return
        if st.kind in ("call", "assign", "jump"):
            text = s.text[start:end]
            operator = "cleanup" if CLEANUP.search(text.split("=")[0]) else "drop"
            self.add(operator, st.function, start, end, "{}")
        self.expression(st.first, st.last, st.function)

    def give_back(self, st):
        t = self.t
        if st.last == st.first + 1:
            self.add("drop", st.function, t[st.first].start, t[st.last].end, "{}")
            return
        begin, end = t[st.first + 1].start, t[st.last - 1].end
        text = self.s.text[begin:end]
        if text in ("true", "false", "0", "NULL"):
            return  # a constant
        self.add("return", st.function, begin, end,
                 "WQ_EINVAL" if text == "WQ_OK" else "WQ_OK" if text.startswith("WQ_E") else "0")

    def condition(self, c):
        t = self.t
        first, last = c.first, c.last
        if c.keyword == "for":
            # Only what is computed in the head of the loop, not what is declared there.
            while first < last and t[first].text != "=":
                first += 1
        if c.keyword == "if":
            begin, end = t[first].start, t[last - 1].end
            self.add("negate", c.function, begin, end, f"!({self.s.text[begin:end]})")
        self.expression(first, last, c.function)


def mutants_of(path, text):
    """All of a file, in the order of the text."""
    source = read(path, text)
    finder = Finder(source)
    for st in source.statements:
        finder.statement(st)
    for c in source.conditions:
        finder.condition(c)
    mutants, seen = [], {}
    for operator, function, start, end, new in sorted(finder.found, key=lambda f: (f[2], f[3], f[4])):
        begin = text.rfind("\n", 0, start) + 1
        stop = text.find("\n", end - 1)
        before = text[begin:stop]
        after = text[begin:start] + new + text[end:stop]
        if FORBIDDEN.search(before):
            continue
        before, after = " ".join(before.split()), " ".join(after.split())
        key = "|".join((path, function, operator, before, after))
        seen[key] = seen.get(key, 0) + 1
        ident = hashlib.sha256(f"{key}|{seen[key]}".encode()).hexdigest()[:8]
        mutants.append(Mutant(ident, path, source.line_of(start), function, operator, before, after, start, end, new))
    return mutants
