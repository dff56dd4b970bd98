"""A private copy of the project, its build, and its tests: where mutants live and die.

Everything is below build/mutate/<job>/; the user's files are only read. A test runs in a PID namespace of its own: a
mutant that signals the wrong process finds none but its own, and what it leaves behind ends with the test.
"""
import hashlib
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

FLAGS = ("-O1 -g0 -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fsanitize=undefined "
         "-fsanitize-undefined-trap-on-error -Werror=incompatible-pointer-types -Werror=int-conversion")
# What the compiler would not let pass in a commit. That something is not used any more tells of nothing wrong.
REFUSALS = ["-Werror", *("-Wno-error=" + w for w in ("unused-parameter", "unused-variable", "unused-but-set-variable",
                                                      "unused-function", "unused-label", "empty-body"))]
PATIENCE = "0.4"      # of the program's tests, as WQ_TIMEOUT_SCALE: what hangs is dead
MEMORY = 12 << 30     # of a process's addresses
FILE_SIZE = 1 << 30


class Interrupted(Exception):
    """The user wants it to end."""


class Processes:
    """What runs now, so that it can be ended."""

    def __init__(self):
        self.lock, self.running, self.ended = threading.Lock(), set(), False

    def run(self, command, timeout=None, **kwargs):
        """(exit status or None if its time was up, output)"""
        with self.lock:
            if self.ended:
                raise Interrupted
            p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 start_new_session=True, **kwargs)
            self.running.add(p)
        try:
            output = p.communicate(timeout=timeout)[0]
            status = p.returncode
        except subprocess.TimeoutExpired:
            self.kill(p)
            output, status = p.communicate()[0], None
        finally:
            with self.lock:
                self.running.discard(p)
        if self.ended:
            raise Interrupted
        return status, output.decode(errors="replace")

    @staticmethod
    def kill(p):
        try:
            os.killpg(p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def end(self):
        with self.lock:
            self.ended = True
            for p in self.running:
                self.kill(p)


processes = Processes()


def namespace():
    """The command that gives another a PID namespace of its own; [] if that is not allowed here."""
    ways = [["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]]
    if os.geteuid() != 0:
        ways = [["unshare", "--user", "--map-current-user", *ways[0][1:]]]
    for way in ways:
        if shutil.which(way[0]) and processes.run([*way, "true"])[0] == 0:
            return way
    return []


def limit_resources():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_SIZE, FILE_SIZE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def project_files(root):
    """Their names. Without git (an unpacked archive): all but what was built."""
    try:
        output = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                check=True, capture_output=True).stdout
        names = output.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):
        names = [str(p.relative_to(root)) for p in Path(root).rglob("*")]
    return sorted(f for f in set(names) if f and not f.startswith(("build/", ".git/")) and (Path(root) / f).is_file())


def digest(root):
    """Of all that the project's files contain, but for those of this folder."""
    h = hashlib.sha256()
    for name in project_files(root):
        if not name.startswith("tests/mutate/"):
            h.update(name.encode() + b"\0" + (Path(root) / name).read_bytes())
    return h.hexdigest()


class Test:
    def __init__(self, name, command, properties, folder):
        self.name, self.command, self.dir = name, command, folder
        self.skipped = int(properties.get("SKIP_RETURN_CODE", -1))
        self.env = dict(e.split("=", 1) for e in properties.get("ENVIRONMENT", "").split(";") if e)
        self.python = any(c.endswith(".py") for c in self.command)

    def targets(self):
        """What has to be built for it."""
        if not self.python:
            return [Path(self.command[0]).name]
        if self.name.startswith("http_"):
            return ["test_http_serve"]
        return ["wq_cli", "test_cli_worker", "test_cli_shim", "wq_http"]


QUOTED = r'"((?:[^"\\]|\\.)*)"'
ADD_TEST = re.compile(r"add_test\(\[=*\[(.*?)\]=*\] (.*)\)")
PROPERTIES = re.compile(r"set_tests_properties\(\[=*\[(.*?)\]=*\] PROPERTIES (.*)\)")


def tests_of(build):
    """What CTest would run. Read from its files, because ctest itself tells no command before it is built."""
    tests = {}
    for path in build.rglob("CTestTestfile.cmake"):
        text = path.read_text()
        properties = {m[1]: dict(re.findall(r"(\w+) +" + QUOTED, m[2])) for m in PROPERTIES.finditer(text)}
        for m in ADD_TEST.finditer(text):
            command = re.findall(QUOTED, m[2])
            test = Test(m[1], command, properties.get(m[1], {}), path.parent)
            if test.python or command[0].startswith(str(build)):
                tests[m[1]] = test
    return tests


class Tree:
    def __init__(self, root, folder, nested):
        self.root, self.folder, self.nested = Path(root), Path(folder), nested
        self.source, self.build, self.tmp = (self.folder / d for d in ("tree", "build", "tmp"))
        self.tests, self.commands, self.objects = {}, {}, {}

    def copy(self):
        """Makes the copy what the project is now; what has not changed keeps its time."""
        names = set(project_files(self.root))
        for old in [p for p in self.source.rglob("*") if p.is_file() or p.is_symlink()]:
            if str(old.relative_to(self.source)) not in names:
                old.unlink()
        for name in names:
            old, new = self.source / name, self.root / name
            if not old.exists() or old.read_bytes() != new.read_bytes():
                old.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(new, old)
            elif (old.stat().st_mode ^ new.stat().st_mode) & 0o111:
                shutil.copymode(new, old)

    def configure(self):
        self.copy()
        self.tmp.mkdir(parents=True, exist_ok=True)
        command = ["cmake", "-G", "Ninja", "-S", self.source, "-B", self.build, "-DCMAKE_BUILD_TYPE=Debug",
                   f"-DCMAKE_C_FLAGS_DEBUG={FLAGS}", "-DWQ_BUILD_BENCH=OFF", "-DWQ_BUILD_EXAMPLES=OFF"]
        if shutil.which("ccache"):
            command.append("-DCMAKE_C_COMPILER_LAUNCHER=ccache")
        if shutil.which("ld.gold"):
            command.append("-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=gold")
        status, output = processes.run(command)
        if status != 0:
            raise RuntimeError(f"cmake failed:\n{output}")
        self.tests = tests_of(self.build)
        for c in json.loads((self.build / "compile_commands.json").read_text()):
            name = os.path.relpath(c["file"], self.source)
            # The objects of the libraries and of the program, not those of tests.
            if "_internal" not in c["command"] and "_sim" not in c["command"]:
                self.commands.setdefault(name, c)

    def make(self, targets):
        return processes.run(["ninja", "-C", self.build, "-j", "2", *sorted(set(targets))])

    def object_of(self, path):
        """The object of a file as users get it, or None if the compiler refuses it, warnings included."""
        c = self.commands.get(path)
        if not c:
            return b""
        command, out = shlex.split(c["command"]), self.folder / "probe.o"
        command[command.index("-o") + 1] = str(out)
        if command[0].endswith("ccache"):
            command = command[1:]
        status, _ = processes.run([*command, "-O2", "-DNDEBUG", "-fno-sanitize=all", *REFUSALS], cwd=c["directory"])
        return out.read_bytes() if status == 0 else None

    def original_object(self, path):
        if path not in self.objects:
            self.objects[path] = self.object_of(path)
            if self.objects[path] is None:
                raise RuntimeError(f"{path} does not compile without a mutant")
        return self.objects[path]

    def run(self, test, limit):
        """"passed", "failed", "hangs" or "skipped"; how long it took; what it wrote."""
        shutil.rmtree(self.tmp, ignore_errors=True)
        self.tmp.mkdir()
        # Freed and fresh memory is no zeros; a test of the program stops at its first failure.
        env = os.environ | test.env | {"TMPDIR": str(self.tmp), "MALLOC_PERTURB_": "165", "MALLOC_CHECK_": "3"}
        if test.python:
            env["WQ_TIMEOUT_SCALE"] = PATIENCE
        env.pop("WQ_LONG", None)
        command = [*test.command, *(["--failfast"] if test.python else [])]
        if self.nested:
            # The first process of a namespace inherits orphans, and ignores signals: a shell, which reaps them.
            command = [*self.nested, "sh", "-c", '"$@"; exit $?', "sh", *command]
        began = time.monotonic()
        status, output = processes.run(command, timeout=limit, cwd=test.dir, env=env, preexec_fn=limit_resources)
        took = time.monotonic() - began
        word = ("hangs" if status is None else "passed" if status == 0 else
                "skipped" if status == test.skipped else "failed")
        return word, took, output
