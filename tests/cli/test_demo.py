"""scripts/demo: it checks its own sums, on a terminal and without one."""
import os
import pty
import subprocess
from pathlib import Path

import rig
from rig import Case, main

DEMO = Path(__file__).resolve().parents[2] / "scripts" / "demo"


class Demo(Case):
    def setUp(self):
        super().setUp()
        self.env |= {"WQ": rig.program, "TERM": "xterm"}

    def test_without_a_terminal(self):
        p = subprocess.run([DEMO], capture_output=True, text=True, env=self.env, timeout=rig.PATIENCE)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertIn("It adds up.", p.stdout)
        self.assertNotIn("running", p.stderr)
        self.assertEqual(os.listdir(self.dir), [])

    def test_on_a_terminal(self):
        ours, theirs = pty.openpty()
        p = subprocess.Popen([DEMO], stdin=theirs, stdout=theirs, stderr=theirs, env=self.env, start_new_session=True)
        self.addCleanup(self.end, p)
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
        self.assertGreater(seen.count(b" running  "), 5, "no progress was shown")


if __name__ == "__main__":
    main()
