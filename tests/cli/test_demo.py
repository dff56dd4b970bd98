"""scripts/demo: it checks its own sums, on a terminal and without one."""
import os
import pty
import signal
import subprocess
from pathlib import Path

import rig
from rig import Case, main

DEMO = Path(__file__).resolve().parents[2] / "scripts" / "demo"


class Demo(Case):
    def setUp(self):
        super().setUp()
        self.env |= {"WQ": rig.program, "TERM": "xterm"}

    def demo(self, **kwargs):
        """Starts it, as a group of its own: what a failed test leaves of it is ended."""
        p = subprocess.Popen([DEMO], env=self.env, start_new_session=True, **kwargs)
        self.addCleanup(self.end_group, p)
        return p

    def end_group(self, p):
        try:
            os.killpg(p.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
        self.end(p)

    def test_without_a_terminal(self):
        p = self.demo(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        out, err = p.communicate(timeout=rig.PATIENCE)
        self.assertEqual(p.returncode, 0, out + err)
        self.assertIn("It adds up.", out)
        self.assertNotIn("running", err)
        self.assertEqual(os.listdir(self.dir), [])

    def test_on_a_terminal(self):
        ours, theirs = pty.openpty()
        p = self.demo(stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(ours, 65536):
                seen += piece
        except OSError:  # nobody has the terminal any more
            pass
        os.close(ours)
        self.assertEqual(p.wait(rig.PATIENCE), 0, seen[-3000:])
        self.assertIn(b"It adds up.", seen)
        self.assertIn(b" running  ", seen, "no progress was shown")


if __name__ == "__main__":
    main()
