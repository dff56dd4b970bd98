"""Reads C just far enough to mutate it: tokens, function bodies, statements.

Comments, strings and preprocessor lines are no tokens of a statement, so nothing in them is ever changed.
"""
import re
from dataclasses import dataclass, field

TOKEN = re.compile(r"""
    (?P<space>\s+|\\\n)
  | (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
  | (?P<number>(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)[uUlLfF]*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<mark>\.\.\.|<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
""", re.X | re.S)
DIRECTIVE = re.compile(r"[ \t]*#(?:\\\n|/\*.*?\*/|[^\n])*", re.S)
TYPES = {"void", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "bool", "_Bool", "const",
         "static", "volatile", "struct", "union", "enum", "register", "extern", "va_list", "typedef", "_Atomic"}
OPEN, CLOSE = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}


@dataclass
class Token:
    kind: str
    text: str
    start: int  # in the source

    @property
    def end(self):
        return self.start + len(self.text)


@dataclass
class Statement:
    """A simple statement: tokens [first, last], the last being its semicolon."""
    first: int
    last: int
    function: str
    kind: str  # call, assign, return, jump, declare, other


@dataclass
class Condition:
    """What stands in the parentheses of if, while, for, switch: tokens [first, last)."""
    first: int
    last: int
    function: str
    keyword: str


@dataclass
class Source:
    path: str
    text: str
    tokens: list = field(default_factory=list)
    pairs: dict = field(default_factory=dict)  # an opening bracket's index to its closing one's, and back
    statements: list = field(default_factory=list)
    conditions: list = field(default_factory=list)

    def line_of(self, offset):
        return self.text.count("\n", 0, offset) + 1

    def line_at(self, offset):
        """The whole line around an offset."""
        begin = self.text.rfind("\n", 0, offset) + 1
        end = self.text.find("\n", offset)
        return self.text[begin:end if end >= 0 else len(self.text)]


def tokens_of(text):
    at, fresh, tokens = 0, True, []
    while at < len(text):
        directive = DIRECTIVE.match(text, at) if fresh else None
        if directive:
            at = directive.end()
            continue
        m = TOKEN.match(text, at)
        if m.lastgroup not in ("space", "comment"):
            tokens.append(Token(m.lastgroup, m.group(), at))
        fresh = m.group().endswith("\n") or (fresh and m.lastgroup in ("space", "comment"))
        at = m.end()
    return tokens


def pair_brackets(tokens):
    pairs, stack = {}, []
    for i, t in enumerate(tokens):
        if t.kind == "mark" and t.text in OPEN:
            stack.append(i)
        elif t.kind == "mark" and t.text in CLOSE:
            begin = stack.pop()
            pairs[begin], pairs[i] = i, begin
    return pairs


def is_cast(source, close):
    """Is the `)` at this index the end of a cast?"""
    begin = source.pairs[close]
    inside = source.tokens[begin + 1:close]
    if not inside or any(t.text not in "*" and t.kind != "name" for t in inside):
        return False
    return inside[-1].text == "*" or any(t.text in TYPES or t.text.endswith("_t") for t in inside) or (
        len(inside) == 1 and inside[0].text.startswith(("wq_", "wq__")) and
        source.tokens[close + 1].text == "{")


def is_declaration(tokens, first, last):
    """`type name`, `type *name`, or it begins with a word that only types begin with."""
    if tokens[first].text in TYPES or tokens[first].text.endswith("_t"):
        return True
    i = first
    if tokens[i].kind != "name":
        return False
    i += 1
    while i < last and tokens[i].text == "*":
        i += 1
    return tokens[i].kind == "name" and tokens[i + 1].text in ("=", ";", ",", "[")


class Parser:
    def __init__(self, source):
        self.s, self.t, self.function = source, source.tokens, None

    def functions(self):
        i = 0
        while i < len(self.t):
            t = self.t[i]
            if t.text == "{" and self.t[i - 1].text == ")":
                name = self.t[self.s.pairs[i - 1] - 1]
                self.function = name.text
                self.block(i)
            i = self.s.pairs[i] + 1 if t.kind == "mark" and t.text in OPEN else i + 1

    def block(self, i):
        end = self.s.pairs[i]
        i += 1
        while i < end:
            i = self.statement(i)
        return end + 1

    def header(self, i, keyword):
        """From the `(` at i on; the index behind its `)`."""
        close = self.s.pairs[i]
        self.s.conditions.append(Condition(i + 1, close, self.function, keyword))
        return close + 1

    def statement(self, i):
        text = self.t[i].text
        if text == "{":
            return self.block(i)
        if text in ("if", "while", "for", "switch"):
            i = self.statement(self.header(i + 1, text))
            if text == "if" and self.t[i].text == "else":
                i = self.statement(i + 1)
            return i
        if text == "do":
            i = self.statement(i + 1)
            return self.header(i + 1, "do") + 1
        if text in ("case", "default"):
            while self.t[i].text != ":":
                i += 1
            return i + 1
        if self.t[i].kind == "name" and self.t[i + 1].text == ":":
            return i + 2
        return self.simple(i)

    def simple(self, first):
        i = first
        while self.t[i].text != ";":
            i = self.s.pairs[i] + 1 if self.t[i].kind == "mark" and self.t[i].text in OPEN else i + 1
        self.s.statements.append(Statement(first, i, self.function, self.kind(first, i)))
        return i + 1

    def kind(self, first, last):
        text = self.t[first].text
        if text == "return":
            return "return"
        if text in ("break", "continue", "goto"):
            return "jump"
        if is_declaration(self.t, first, last):
            return "declare"
        i = first
        while i < last:
            if self.t[i].text in ("=", "++", "--") or re.fullmatch(r"([-+*/%&|^]|<<|>>)=", self.t[i].text):
                return "assign"
            i = self.s.pairs[i] + 1 if self.t[i].kind == "mark" and self.t[i].text in OPEN else i + 1
        return "call" if self.t[last - 1].text == ")" and text != "(" else "other"


def read(path, text):
    source = Source(path, text, tokens_of(text))
    source.pairs = pair_brackets(source.tokens)
    Parser(source).functions()
    return source
