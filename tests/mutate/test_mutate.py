"""scripts/mutate does what it says: what it changes and what it leaves alone, and a run on a toy project."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import mutants  # noqa: E402
import suites  # noqa: E402
import survivors  # noqa: E402

SAMPLE = r'''/* if (a < 1) is a comment */
#define TWICE(x) ((x) + 1 < 2)
enum { SIZE = 4 };
struct s { int n; };

static int work(struct s *s, int a, int b)
{
	const char *text = "a < b && 1"; // a + 1
	int sum = a - b, size = SIZE;
	struct s copy;

	assert(a > 0 && b > 0);
	wq__prefetch_to_write(s + 2);
	if (a < b && text[0])
		s->n = a + 3;
	else if (!s)
		return -1;
	for (int i = 0; i < a; i++)
		sum += i % 2 ? i : 1;
	if (WQ__BUG(NONE) || a == b)
		sum = 0;
	switch (a) {
	case 7:
		release(s, a);
		break;
	}
	copy = *s;
	swap(a, b);
	return sum & size;
}
'''


def lines_with(found, operator):
    return {m.before for m in found if m.operator == operator}


class Operators(unittest.TestCase):
    def setUp(self):
        self.found = mutants.mutants_of("src/base/x.c", SAMPLE)

    def changes(self):
        return {(m.operator, m.before, m.after) for m in self.found}

    def test_each_operator_is_seen(self):
        self.assertEqual({m.operator for m in self.found}, set(mutants.OPERATORS))

    def test_changes(self):
        for change in [
                ("compare", "if (a < b && text[0])", "if (a <= b && text[0])"),
                ("negate", "if (a < b && text[0])", "if (!(a < b && text[0]))"),
                ("negate", "else if (!s)", "else if (s)"),
                ("logic", "if (a < b && text[0])", "if (a < b || text[0])"),
                ("logic", "return sum & size;", "return sum | size;"),
                ("arithmetic", "s->n = a + 3;", "s->n = a - 3;"),
                ("arithmetic", "for (int i = 0; i < a; i++)", "for (int i = 0; i < a; i--)"),
                ("constant", "s->n = a + 3;", "s->n = a + 4;"),
                ("constant", "s->n = a + 3;", "s->n = a + 2;"),
                ("swap", "int sum = a - b, size = SIZE;", "int sum = b - a, size = SIZE;"),
                ("swap", "sum += i % 2 ? i : 1;", "sum += i % 2 ? 1 : i;"),
                ("swap", "swap(a, b);", "swap(b, a);"),
                ("return", "return sum & size;", "return 0;"),
                ("drop", "s->n = a + 3;", "{}"),
                ("drop", "break;", "{}"),
                ("cleanup", "release(s, a);", "{}"),
        ]:
            self.assertIn(change, self.changes())

    def test_what_is_left_alone(self):
        for m in self.found:
            for part in ("comment", "#define", "enum", "assert", "prefetch", "WQ__BUG", "case", "struct s copy"):
                self.assertNotIn(part, m.before)
            self.assertIn('"a < b && 1"; // a + 1' if "text =" in m.before else "", m.after)
            self.assertEqual(m.function, "work")

    def test_lines_stay_and_ids_do_not_depend_on_them(self):
        moved = mutants.mutants_of("src/base/x.c", "\n\n" + SAMPLE)
        self.assertEqual([m.id for m in moved], [m.id for m in self.found])
        self.assertEqual(len({m.id for m in self.found}), len(self.found))
        for m in self.found:
            changed = m.apply(SAMPLE).splitlines()
            self.assertEqual(len(changed), len(SAMPLE.splitlines()))
            differ = [i for i, line in enumerate(SAMPLE.splitlines(), 1) if line != changed[i - 1]]
            self.assertEqual(differ, [m.line])


class Project(unittest.TestCase):
    """Of wq's own files."""
    root = HERE.parent.parent

    def test_every_file_has_tests(self):
        for path in [*self.root.glob("src/**/*.[ch]"), *self.root.glob("cli/**/*.[ch]")]:
            name = str(path.relative_to(self.root))
            self.assertTrue(suites.tiers_of(name), name)
            mutants.mutants_of(name, path.read_text())

    def test_survivors_are_explained(self):
        survivors.read(HERE / "survivors.txt")


class Survivors(unittest.TestCase):
    def test_entries(self):
        found = mutants.mutants_of("src/base/x.c", SAMPLE)
        explained = survivors.parse("# a comment\n@ src/base/x.c work\n- s->n =  a + 3;\n+ s->n = a - 3;\nit is\nso\n"
                                    "@ src/base/x.c gone\n- *\nnever\n")
        reasons = {m.after: explained.reason(m) for m in found}
        self.assertEqual(reasons["s->n = a - 3;"], "it is so")
        self.assertIsNone(reasons["s->n = a + 4;"])
        self.assertEqual([e.function for e in explained.stale(found)], ["gone"])

    def test_mistakes(self):
        for text in ("- a\n+ b\nwhy\n", "@ file\n", "@ f g\n- a\n+ b\n", "@ f g\n- a\nwhy\n", "@ f g\nwhy\n"):
            with self.assertRaises(ValueError):
                survivors.parse(text)


TOY = {
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.25)
project(toy C)
enable_testing()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
add_library(toy STATIC src/base/toy.c)
add_executable(test_unit_toy test.c)
target_link_libraries(test_unit_toy toy)
add_test(NAME unit_toy COMMAND test_unit_toy)
""",
    "src/base/toy.c": """int larger(int a, int b);
int loop(int n);
int untested(int a);
int larger(int a, int b)
{
	return a > b ? a : b;
}
int loop(int n)
{
	int i = 0;
	while (i < n)
		i++;
	return i;
}
int untested(int a)
{
	int b;
	b = a;
	b = a;
	return b + 7;
}
""",
    "test.c": """int larger(int a, int b);
int loop(int n);
int main(void)
{
	return !(larger(1, 2) == 2 && larger(3, 1) == 3 && larger(-2, -1) == -1 && loop(5) == 5);
}
""",
    "tests/mutate/survivors.txt": """@ src/base/toy.c untested
- return b + 7;
+ return b - 7;
Nobody calls it.
""",
}


class Run(unittest.TestCase):
    """Of the script itself."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="wq-mutate-")
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)
        for name, text in TOY.items():
            path = self.dir / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def mutate(self, *options):
        p = subprocess.run([sys.executable, HERE.parent.parent / "scripts" / "mutate", "--root", self.dir, *options],
                           capture_output=True, text=True, check=False)
        self.assertEqual({n: (self.dir / n).read_text() for n in TOY}, TOY)  # the user's tree
        return p

    def test_whole(self):
        p = self.mutate("--files", "src/*", "--jobs", "2")
        self.assertEqual(p.returncode, 1, p.stdout + p.stderr)
        self.assertIn("loop  arithmetic  killed by unit_toy", p.stdout)
        self.assertRegex(p.stdout, r"survived, explained .*\n +- return b \+ 7;\n +\+ return b - 7;\n +Nobody calls it")
        # Nobody looks at what it answers. Without one of its assignments it is the same.
        self.assertRegex(p.stdout, r"survivor: .* untested  constant\n +- return b \+ 7;\n +\+ return b \+ 8;")
        self.assertRegex(p.stdout, r"not counted: \d+ that do not compile, [1-9]\d* that make the same object file")
        self.assertRegex(p.stdout, r"\d+ mutants: \d+ killed, \d+ survived \(1 explained\)\n$")

    def test_one_and_list(self):
        listed = self.mutate("--list").stdout
        ident = next(line.split()[0] for line in listed.splitlines() if "larger  return" in line)
        p = self.mutate("--one", ident)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertIn("1 mutants: 1 killed, 0 survived (0 explained)", p.stdout)
        self.assertEqual(self.mutate("--one", "nothing").returncode, 1)

    def test_sample(self):
        """Of a seed; what is added elsewhere stands between the others, and moves none of them."""
        def listed(seed):
            return [line for line in self.mutate("--list", "--seed", seed).stdout.splitlines() if "toy.c" in line]
        one, two = listed("1"), listed("2")
        self.assertEqual(sorted(one), sorted(two))
        self.assertNotEqual(one, two)
        (self.dir / "src/base/another.c").write_text("int twice(int a)\n{\n\treturn 2 * a;\n}\n")
        self.assertIn("another.c", self.mutate("--list").stdout)
        self.assertEqual((listed("1"), listed("2")), (one, two))

    def test_red_without_a_mutant(self):
        (self.dir / "test.c").write_text("int main(void) { return 1; }\n")
        p = subprocess.run([sys.executable, HERE.parent.parent / "scripts" / "mutate", "--root", self.dir],
                           capture_output=True, text=True, check=False)
        self.assertEqual(p.returncode, 2)
        self.assertIn("left out: unit_toy failed without a mutant", p.stdout)
        self.assertIn("no test passes that could judge src/base/toy.c", p.stderr)


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)
