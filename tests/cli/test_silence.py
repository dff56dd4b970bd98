"""Runs that do not answer, or answer ill: no client waits without end, and each says what is known."""
import re
import resource
import socket
import unittest

import rig
from rig import main
from served import Served

COMMANDS = (["status"], ["ls"], ["top"], ["add", "k"], ["add", "--wait", "k"], ["retry", "k"], ["cancel", "k"],
            ["forget", "k"], ["pause"], ["resume"], ["set", "workers=2"], ["wait"], ["wait", "k"], ["drain"],
            ["drain", "--no-wait"], ["stop"], ["stop", "--no-wait"])
SILENT = r"the run at \S*s does not answer after {}: it is stopped or overloaded"


class Silence(Served):
    def halted(self, *args):
        self.serve(*args)
        self.halt()
        self.addCleanup(self.go_on)

    def go_on(self):
        if self.run_.poll() is None:
            self.run_.send_signal(18)

    def test_every_command(self):
        self.halted()
        for args in COMMANDS:
            self.ask(args[0], "--timeout=100ms", *args[1:], status=75)
            self.assertRegex(self.complaint.split("\n")[0], r"\Awq: " + SILENT.format("100ms") + r"\Z", args)

    def by_default(self, *args):
        return self.start(args[0], "-s", "./s", *args[1:])

    def timed_out(self, wanted, *args, before=(), **kwargs):
        """A run answers, but what is asked for does not happen in time: it has more of it if the answer was late."""
        for seconds in (1, 4, 16, 64):
            self.serve(*kwargs.get("run", ()), command=kwargs.get("command", ("true",)))
            for order in before:
                self.ask(*order)
            self.ask(args[0], f"--timeout={seconds}s", *args[1:], status=75, input=kwargs.get("input", ""))
            span = "1m04s" if seconds == 64 else f"{seconds}s" if seconds > 9 else f"{seconds}.0s"
            if re.fullmatch(wanted.format(span), self.complaint):
                return
            self.run_.kill()
            self.ended()
        self.assertRegex(self.complaint, wanted)

    def test_by_default(self):
        """10 s without a sign of life; but who waits for room or for a key waits as long as it takes."""
        self.serve("--max-queue", "1")
        self.ask("pause")
        self.ask("add", "there")
        patient = [self.by_default(*args) for args in (["add", "a", "b"], ["add", "--wait", "c"], ["wait", "there"],
                                                       ["wait"])]
        self.until_status(waiters=2, connections=5)
        (self.dir / "s").rename(self.dir / "first")
        self.addCleanup(self.end, self.run_)
        self.halted()
        endless = self.begin("status", "--timeout=0")
        clients = [(args, self.by_default(*args)) for args in COMMANDS]
        for args, p in clients:
            status, said = self.finish(p)
            self.assertEqual(status, 75, args)
            self.assertRegex(said.split("\n")[0], SILENT.format("3.0s" if args == ["top"] else "10s"), args)
        self.assertEqual([p.poll() for p in patient], [None] * 4)
        self.go_on()
        self.assertEqual(self.finish(endless), (0, ""))

    def test_no_limit(self):
        self.halted()
        p = self.begin("status", "--timeout=0")
        self.ask("status", "--timeout=100ms", status=75)
        self.assertIsNone(p.poll())
        self.go_on()
        self.assertEqual(self.finish(p), (0, ""))

    def test_one_message_for_many_keys(self):
        """What was not answered is not asked again: the answers would be another's."""
        self.halted()
        self.ask("forget", "--timeout=100ms", "a", "b", "c", status=75)
        self.assertEqual(self.complaint.count("\n"), 1)

    def test_backlog(self):
        """Not even connecting goes on for ever."""
        self.halted()
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if hard < 8192:
            raise unittest.SkipTest("there are not enough descriptors to fill a backlog")
        resource.setrlimit(resource.RLIMIT_NOFILE, (8192, hard))
        conns = []
        self.addCleanup(lambda: [c.close() for c in conns])
        while len(conns) < 8000:
            c = socket.socket(socket.AF_UNIX)
            conns.append(c)
            c.setblocking(False)
            try:
                c.connect(str(self.dir / "s"))
            except BlockingIOError:
                break
        self.ask("status", "--timeout=100ms", status=75)
        self.assertRegex(self.complaint, SILENT.format("100ms"))
        self.ask("add", "--timeout=100ms", "k", status=75)

    def test_full(self):
        """What was given for certain, and what is not certain."""
        self.timed_out("wq: timed out after {}\nwq: 3 of 5 given for certain; the first that is uncertain: d\n",
                       "add", "a", "b", "c", "d", "e", run=("--max-queue", "3"), before=(["pause"],))
        self.assertEqual(self.keys()[:3], ["a", "b", "c"])

    def test_full_in_the_second_order(self):
        """Keys fill several orders: those of the first count, too."""
        keys = [f"{i:04}" + "x" * 60 for i in range(2000)]
        self.timed_out(f"(?s).*1500 of 2000 given for certain; the first that is uncertain: {keys[1500]}\n", "add", "-",
                       input="\n".join(keys) + "\n", run=("--max-queue", "1500"), before=(["pause"],))

    def test_halted_add(self):
        self.halted()
        self.ask("add", "--timeout=100ms", "only", status=75)
        self.assertIn("0 of 1 given for certain; the first that is uncertain: only\n", self.complaint)
        # It had been sent: a run that goes on takes it.
        self.go_on()
        self.until_status(done=1)

    def test_killed_while_it_adds(self):
        self.serve("--max-queue", "1")
        self.ask("pause")
        p = self.begin("add", "a", "b")
        self.until_status(full=True)
        self.run_.kill()
        status, said = self.finish(p)
        self.assertEqual(status, 1)
        self.assertRegex(said, r"\Awq: the run has ended\n"
                               r"wq: [01] of 2 given for certain; the first that is uncertain: [ab]\n\Z")

    def test_time_for_an_outcome(self):
        for args in (["add", "--wait", "k"], ["stop"]):
            self.timed_out("wq: timed out after {}\n", *args, command=("sh", "-c", "exec sleep 600"),
                           before=(["add", "k"],))
            self.run_.kill()
            self.ended()


class Hostile(Served):
    """A run may be another user's: what it answers is neither obeyed by a terminal nor taken for success."""

    def answered(self, frames, *args):
        """What a command says to such answers, and its exit status."""
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.dir / "s"))
            listener.listen()
            p = self.start(args[0], "-s", "./s", *args[1:])
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b"".join(b"%d:%s," % (len(f), f) for f in frames))
                out, error = p.communicate(timeout=rig.PATIENCE)
        (self.dir / "s").unlink()
        return p.returncode, out + error

    def test_escapes(self):
        evil = b"\x1b]0;evil\x07\x1b[31m"
        status = b":name=%s\ncommand=%s\nphase=%s\n" % (evil, evil, evil)
        entry = b":" + b"\0".join([evil, b"5", b"1", evil, evil]) + b"\0"
        for frames, *args in (([b"!1 " + evil], "add", "k"), ([b"!1 " + evil], "status"), ([b"!75 " + evil], "wait", "k"),
                              ([status, b"."], "status"), ([status, b"."], "status", "--json"),
                              ([entry, b"."], "ls"), ([entry, b"."], "ls", "--json")):
            code, text = self.answered(frames, *args)
            self.assertIn(b"evil", text, args)
            self.assertEqual([c for c in text if c < 32 and c != 10], [], (args, text))
            self.assertEqual(code, 0 if frames[-1] == b"." else int(frames[0][1:3]), args)

    def test_no_success(self):
        for answer in (b"!0 no", b"!", b"! ", b"?", b"!no", b"!256 no", b"!99999 no"):
            for command in ("cancel", "add"):
                code, text = self.answered([answer], command, "k")
                self.assertEqual((code, text[:4]), (1, b"wq: "), answer)
                self.assertNotEqual(text, b"wq: \n", answer)


if __name__ == "__main__":
    main()
