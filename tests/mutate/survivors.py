"""Reads survivors.txt: which mutants are known to survive, and why. The format is described there."""
from dataclasses import dataclass, field


@dataclass
class Entry:
    path: str
    function: str
    before: str = ""
    after: str = ""
    reason: str = ""

    def fits(self, m):
        return (m.path, m.function) == (self.path, self.function) and (
            self.before == "*" or (m.before, m.after) == (self.before, self.after))

    def __str__(self):
        return f"{self.path} {self.function}: {self.before}" + (f" -> {self.after}" if self.after else "")


@dataclass
class Explained:
    entries: list = field(default_factory=list)

    def reason(self, m):
        return next((e.reason for e in self.entries if e.fits(m)), None)

    def stale(self, mutants):
        return [e for e in self.entries if not any(e.fits(m) for m in mutants)]


def parse(text):
    entries, entry = [], None
    for number, line in enumerate(text.splitlines(), 1):
        line = " ".join(line.split())
        if not line or line.startswith("#"):
            continue
        if line.startswith("@ "):
            words = line.split()
            if len(words) != 3:
                raise ValueError(f"line {number}: `@ FILE FUNCTION` is wanted")
            entry = Entry(words[1], words[2])
            entries.append(entry)
        elif entry is None:
            raise ValueError(f"line {number}: an entry begins with `@ FILE FUNCTION`")
        elif line.startswith("- "):
            entry.before = line[2:]
        elif line.startswith("+ "):
            entry.after = line[2:]
        else:
            entry.reason = (entry.reason + " " + line).strip()
    for entry in entries:
        if not entry.before or not entry.reason or (entry.before != "*") != bool(entry.after):
            raise ValueError(f"{entry}: a line before, one after, and a reason are wanted")
    return Explained(entries)


def read(path):
    return parse(path.read_text())
