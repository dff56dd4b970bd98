"""A run that listens on a socket, for the tests that talk to it."""
import json
import os
import signal
import socket
import subprocess

import rig
from rig import Case


class Served(Case):
    """`self.serve(...)` starts a run on the socket `s`; `self.ask(...)` is a command that talks to it."""

    def serve(self, *args, command=("true",), env=None, stdout=subprocess.DEVNULL, **kwargs):
        self.err = open(self.dir / "err", "wb")
        self.addCleanup(self.err.close)
        self.addCleanup(lambda: self.assertNotIn("Sanitizer", self.said()))
        self.run_ = self.start("run", "--socket", "./s", *args, "--", *command, stdin=subprocess.DEVNULL,
                               stdout=stdout, stderr=self.err, env=env, **kwargs)
        self.until(self.is_served, "a socket that listens")
        return self.run_

    def is_served(self):
        self.assertIsNone(self.run_.poll(), self.said())
        try:
            self.connect().close()
            return True
        except (FileNotFoundError, ConnectionRefusedError):
            return False

    def said(self):
        """What the run wrote to standard error."""
        return (self.dir / "err").read_text(errors="replace")

    def words(self, *args):
        """Of a command that talks to the run. On a busy machine that may answer late: the test has its own patience."""
        patient = [] if any(a.startswith("--timeout") for a in args) else ["--timeout=0"]
        return [args[0], "-s", "./s", *patient, *args[1:]]

    def ask(self, *args, status=0, **kwargs):
        """Its standard output; it ends with that status."""
        p = self.wq(*self.words(*args), **kwargs)
        self.assertEqual(p.returncode, status, (args, p.stdout[:2000], p.stderr[:2000]))
        self.complaint = p.stderr.decode(errors="replace")
        if status == 0 and args[0] not in ("ls", "add"):
            self.assertEqual(self.complaint, "")
        return p.stdout.decode(errors="surrogateescape")

    def begin(self, *args):
        """A command that goes on meanwhile."""
        return self.start(*self.words(*args))

    def finish(self, p):
        """Its exit status and what it said."""
        _, err = p.communicate(timeout=rig.PATIENCE)
        return p.returncode, err.decode()

    def status(self):
        return json.loads(self.ask("status", "--json"))

    def ls(self, *args):
        return [json.loads(line) for line in self.ask("ls", "--json", *args).splitlines()]

    def keys(self, *args):
        return sorted(e["key"] for e in self.ls(*args))

    def until_status(self, **wanted):
        return self.until(lambda: (s := self.status()) and all(s[k] == v for k, v in wanted.items()) and s,
                          f"{wanted}")

    def ended(self):
        """The exit status of the run, when it has ended."""
        return self.run_.wait(rig.PATIENCE)

    def halt(self):
        """Stops the run as a debugger would; SIGCONT lets it go on."""
        def is_halted():
            with open(f"/proc/{self.run_.pid}/stat", encoding="ascii") as f:
                return f.read().rsplit(")", 1)[1].split()[0] == "T"
        self.run_.send_signal(signal.SIGSTOP)
        self.until(is_halted, "a halt")

    def adds_up(self):
        s = self.status()
        self.assertEqual(s["given"], s["merged"] + s["refused"] + s["done"] + s["dead"] + s["cancelled"] +
                         s["unfinished"])
        self.assertEqual(s["unfinished"], len(self.ls("--limit=0")) +
                         len([e for e in self.ls("--limit=0") if e["dirty"]]))
        return s

    # ---- a plain socket ----

    def connect(self):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(s.close)
        s.settimeout(rig.PATIENCE)
        s.connect(str(self.dir / "s") if len(str(self.dir)) < 90 else os.path.relpath(self.dir / "s"))
        return s

    def send(self, data):
        """Writes that to the socket, and closes it."""
        with self.connect() as s:
            s.sendall(data)

    def rest(self, s):
        """All that comes from the other side, until it closes."""
        data = b""
        while True:
            try:
                more = s.recv(65536)
            except ConnectionResetError:
                return data
            if not more:
                return data
            data += more

    def memory(self):
        """Of the run: what is in memory now, in bytes."""
        with open(f"/proc/{self.run_.pid}/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def frame(*fields):
    payload = b"\0".join(f if isinstance(f, bytes) else f.encode() for f in fields)
    return b"%d:%s," % (len(payload), payload)
