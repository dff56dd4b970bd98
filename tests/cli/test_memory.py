"""The program's memory depends on what is in line at once, not on how many keys pass through it."""
import os
import subprocess
import threading
from pathlib import Path

import rig
from rig import Case, main

SLACK = 1024  # KiB, of what is in line by chance
WORKER = Path(os.environ["WQ_TEST_WORKER"])


class Memory(Case):
    def peak(self, p):
        status = Path(f"/proc/{p.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0])

    def feed(self, p, keys):
        def write():
            p.stdin.write(b"".join(b"%d\n" % i for i in keys))
            p.stdin.flush()
        writer = threading.Thread(target=write)
        writer.start()
        return writer

    def pass_through(self, p, first, last):
        """Gives keys, and reads a line for each; how much memory it had at most until then."""
        writer = self.feed(p, range(first, last))
        lines = 0
        while lines < last - first:
            lines += os.read(p.stdout.fileno(), 1 << 20).count(b"\n")
        writer.join()
        return self.peak(p)

    def test_a_million_keys(self):
        p = self.start("run", "--dry-run", "--", "true")
        few = self.pass_through(p, 0, 100000)
        many = self.pass_through(p, 100000, 1000000)
        p.stdin.close()
        self.assertEqual(p.wait(rig.PATIENCE), 0)
        print(f"  {few} KiB after 100,000 keys, {many} KiB after 1,000,000", flush=True)
        self.assertLess(many, few * 1.2 + SLACK)

    def test_commands(self):
        """With failures, output, a log and all: each key costs something only while it is there."""
        seed = self.random.getrandbits(60)
        p = self.start("run", "-j8", "--max-queue", "500", "--backoff", "1ms..4ms", "--log", "log", "--quiet",
                       "--", str(WORKER), str(self.dir), str(seed), "{}", stdout=subprocess.DEVNULL)

        def settled():
            text = (self.dir / "log").read_bytes() if (self.dir / "log").exists() else b""
            return text.count(b'"outcome":"done"') + text.count(b'"outcome":"dead"')

        self.feed(p, range(2000)).join()
        self.until(lambda: settled() == 2000, "the end of some")
        few = self.peak(p)
        self.feed(p, range(2000, 20000)).join()
        self.until(lambda: settled() == 20000, "the end of many")
        # It is there as long as its input is open.
        many = self.peak(p)
        p.stdin.close()
        self.assertEqual(p.wait(rig.PATIENCE), 123)
        print(f"  {few} KiB after 2,000 commands, {many} KiB after 20,000", flush=True)
        self.assertLess(many, few * 1.2 + SLACK)


if __name__ == "__main__":
    rig.PATIENCE *= 5
    main()
