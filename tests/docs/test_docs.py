#!/usr/bin/env python3
"""The documents say what is there: code is taken from examples or compiles, links lead somewhere, names exist.

    tests/docs/test_docs.py [-v]
"""
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/bench/*.md"), ROOT / "tests/README.md"])
HISTORY = {"CHANGELOG.md"}  # names what was, too
PATTERNS = {"wq_verb", "wq_noun_verb", "wq__noun_verb"}  # stand for names
CODE = re.compile(r"(?:<!-- (?P<file>\S+) -->\n)?```c\n(?P<code>.*?)```\n", re.S)


def text_of(path):
    return path.read_text(encoding="utf-8")


class Documents(unittest.TestCase):
    def test_code_is_taken_from_an_example_or_compiles(self):
        seen = 0
        for path in DOCUMENTS:
            for m in CODE.finditer(text_of(path)):
                seen += 1
                with self.subTest(document=path.name, code=m["code"][:60]):
                    if m["file"]:
                        self.assertIn(m["code"], text_of(ROOT / m["file"]))
                    else:
                        self.compile(m["code"])
        self.assertGreater(seen, 10)

    def compile(self, code):
        """A program, or statements of a function."""
        if "int main(" not in code:
            code = f"#include <stdio.h>\n#include <wq.h>\nvoid part(void);\nvoid part(void)\n{{\n{code}}}\n"
        with tempfile.NamedTemporaryFile("w", suffix=".c") as f:
            f.write(code)
            f.flush()
            words = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include", "-fsyntax-only", f.name]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_readme_is_two_screens(self):
        lines = text_of(ROOT / "README.md").rstrip("\n").split("\n")
        self.assertLessEqual(len(lines), 110)
        self.assertEqual([line for line in lines if len(line.expandtabs(8)) > 100], [])

    def test_links_lead_somewhere(self):
        for path in DOCUMENTS:
            for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text_of(path)):
                if not re.match(r"[a-z]+:", target):
                    self.assertTrue((path.parent / target).exists(), f"{path.name}: {target}")

    def test_functions_exist(self):
        headers = "".join(text_of(p) for p in (ROOT / "include").rglob("*.h"))
        declared = set(re.findall(r"\bwq_\w+\b", headers)) | set(re.findall(r"\bWQ_\w+\b", headers))
        for path in DOCUMENTS:
            if path.name in HISTORY:
                continue
            text = text_of(path)
            for name in re.findall(r"`(wq_[a-z_]+)(?:\([^`]*)?`", text) + re.findall(r"\b(WQ_(?:E[A-Z]+|[A-Z]+))\b`", text):
                if name not in declared | PATTERNS and not self.elsewhere(name):
                    self.fail(f"{path.name}: {name} is in no header")

    @staticmethod
    def elsewhere(name):
        """Programs, options of the build, variables of the program: named in some other file of the project."""
        words = ["grep", "-rqsw", "--include=CMakeLists.txt", "--include=CMakePresets.json", "--include=*.cmake", "--include=*.c", "--include=*.h"]
        folders = [str(ROOT / p) for p in ("CMakeLists.txt", "bench", "tests", "src", "cli", "scripts")]
        return subprocess.run([*words, name, *folders], check=False).returncode == 0

    def test_install_lists_every_option(self):
        """The table of docs/install.md, and CMakeLists.txt."""
        lists = text_of(ROOT / "CMakeLists.txt")
        options = set(re.findall(r"^option\((WQ_\w+)", lists, re.M)) | set(re.findall(r"^set\((WQ_\w+) .*CACHE", lists, re.M))
        self.assertEqual(set(re.findall(r"(?m)^\| `(WQ_\w+)` \|", text_of(ROOT / "docs/install.md"))), options)

    def test_terms(self):
        """Words that the glossary has another one for."""
        wrong = re.compile(r"\bin line\b|\bof one's own\b|\blets? go of\b|\bin whatever state\b", re.I)
        for path in [*(ROOT / "include").rglob("*.h"), *(p for p in DOCUMENTS if p.name not in HISTORY)]:
            for number, line in enumerate(text_of(path).split("\n"), 1):
                with self.subTest(at=f"{path.relative_to(ROOT)}:{number}"):
                    self.assertNotRegex(line, wrong)


# What the examples in headers use and do not declare.
AROUND = """
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <wq.h>
#include <wq/http.h>

struct mine { int n; };
extern wq_queue *q;
extern wq_registry *r;
extern wq_item it;
extern wq_engine my_engine;
extern struct mine mine, arena, heap;
extern const char *path;
extern void *job, *file;
int reconcile(const void *key, size_t len), bring_up_to_date(const void *key, size_t len), fetch(const void *key);
void run(void *job), wait_until(int64_t ns), work_on(size_t i), push(void *ctx, wq_node *n, enum wq_where where);
int64_t clock_now(void);
wq_node *pop(void *ctx);
int write(void *ctx, const char *text, size_t n);
void died(void *ctx, const wq_item *it), beat(void *ctx, const wq_timer_event *ev), fire(void *ctx, const wq_timer_event *ev);
"""
WORK = {"eventloop": "wq_verdict work(const wq_item *it);"}


def header_examples(text):
    """Indented blocks of comments that are code."""
    for comment in re.findall(r"/\*\n(?: \*.*\n)+? \*/", text):
        for block in re.findall(r"(?:^ \*     .*\n(?:^ \*\n(?=^ \*     ))*)+", comment, re.M):
            lines = [line[7:] for line in block.splitlines()]
            if any(re.search(r"[;{]\s*(//.*)?$", line) for line in lines) and not lines[0].startswith((" ", '{"')):
                yield "\n".join(lines)


class Headers(unittest.TestCase):
    def test_examples_compile_and_ignore_no_result(self):
        seen = set()
        for path in sorted((ROOT / "include").rglob("*.h")):
            for code in header_examples(text_of(path)):
                seen.add(path.stem)
                with self.subTest(header=path.name, code=code[:60]):
                    self.compile(code, WORK.get(path.stem, "void work(const void *key, size_t len);"))
        self.assertGreater(len(seen), 20, seen)

    def compile(self, code, work):
        """In a function: a function of the example is one of GNU C inside it, `...` is whatever else there is."""
        code = re.sub(r"(?m)^static ", "", code)
        code = re.sub(r"(?m)^(\s*)\.\.\.( .*)?$", r"\1;", code)
        whole = f"{AROUND}{work}\nint part(const void *key, size_t len);\nint part(const void *key, size_t len)\n{{\n{code}\nreturn 0;\n}}\n"
        with tempfile.NamedTemporaryFile("w", suffix=".c") as f:
            f.write(whole)
            f.flush()
            words = ["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-unused-variable",
                     "-Wno-unused-but-set-variable", "-Wno-unused-function", "-Wno-maybe-uninitialized"]
            done = subprocess.run([*words, f"-I{ROOT}/include", "-c", "-o", "/dev/null", f.name], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, f"{done.stderr}\n{code}")


unittest.main()
