"""Debian's wrk on loopback while a queue works: no request fails, and requests take less than a
hundredth of the queue's time."""
import json
import re
import shutil
import subprocess
import sys
import time

from rig import Case, main

SECONDS = 4
KEYS = 10000


class Load(Case):
    def test_load(self):
        port = self.program.start()
        self.tell("live", "busy")
        self.tell("work", "busy", KEYS)
        for path in ("/metrics", "/api/queues", "/api/queues/busy/keys", "/api/queues/busy/keys?state=queued&limit=1000&match=9"):
            self.until(lambda: self.ask(path)[0] == 200)
            cost, calls = self.tell("cost")
            began, worked = time.monotonic(), self.adds()
            said = subprocess.run(["wrk", "-t1", "-c32", f"-d{SECONDS}s", f"http://127.0.0.1:{port}{path}"],
                                  capture_output=True, text=True, check=True).stdout
            took = time.monotonic() - began
            after, after_calls = self.tell("cost")
            share = (after - cost) / took / 1e9
            requests = int(re.search(r"(\d+) requests in", said)[1])
            print(f"{path}: {requests / took:.0f} requests/s, {(after_calls - calls) / took:.1f} looks/s, "
                  f"{100 * share:.3f} % of the time, {(self.adds() - worked) / took:.0f} adds/s", flush=True)
            self.assertGreater(requests, 100, said)
            self.assertNotIn("Non-2xx", said)
            self.assertNotIn("Socket errors", said)
            self.assertLess(share, 0.01, path)
            self.assertGreater(self.adds(), worked)

    def adds(self):
        return self.until(lambda: json.loads(self.ask("/api/queues")[2])["queues"][0]["adds"])


if __name__ == "__main__":
    if not shutil.which("wrk"):
        print("wrk is not installed")
        sys.exit(77)
    main()
