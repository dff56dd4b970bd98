"""Debian's wrk on loopback while a queue works: no request fails, and requests hold the queue's lock for
less than a hundredth of the time, by the clock, however busy the machine is.
"""
import re
import shutil
import subprocess
import sys
import time

from rig import PATIENCE, Case, main

KEYS = 10000
PATHS = ("/metrics", "/api/queues", "/api/queues/busy/keys", "/api/queues/busy/keys?state=queued&limit=1000&match=9")


class Load(Case):
    def setUp(self):
        super().setUp()
        self.program.start()
        self.tell("live", "busy")
        self.tell("work", "busy", KEYS)
        for path in PATHS:
            self.until(lambda: self.ask(path)[0] == 200)

    def wrk(self, path, connections, seconds):
        return subprocess.Popen(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", f"http://127.0.0.1:{self.program.port}{path}"],
                                stdout=subprocess.PIPE, text=True)

    def load(self, paths, connections, seconds):
        before, began, adds = self.tell("cost"), time.monotonic(), self.adds()
        running = [self.wrk(path, connections, seconds) for path in paths]
        said = [p.communicate(timeout=PATIENCE + seconds)[0] for p in running]
        after, took = self.tell("cost"), time.monotonic() - began
        held, inside, looks = (b - a for a, b in zip(before, after))
        share = held / took / 1e9
        requests = 0
        for path, process, text in zip(paths, running, said):
            self.assertEqual(process.returncode, 0, text)
            self.assertNotIn("Non-2xx", text, path)
            self.assertNotIn("Socket errors", text, path)
            here = int(re.search(r"(\d+) requests in", text)[1])
            self.assertGreater(here, 100, path)
            requests += here
        worked = self.adds() - adds
        print(f"{' '.join(paths)}: {requests / took:.0f} requests/s, {looks / took:.1f} looks/s, "
              f"lock held for {100 * share:.3f} % of the time, calls took {inside / took / 1e7:.3f} %, {worked / took:.0f} adds/s", flush=True)
        self.assertGreater(worked, 0)
        self.assertLess(share, 0.01, paths)

    def test_each(self):
        for path in PATHS:
            self.load([path], 32, 3)

    def test_all_at_once(self):
        self.load(PATHS, 12, 8)

    def adds(self):
        return int(re.search(rb'workqueue_adds_total{name="busy"} (\d+)', self.ask("/metrics")[2])[1])


if __name__ == "__main__":
    if not shutil.which("wrk"):
        print("wrk is not installed")
        sys.exit(77)
    main()
