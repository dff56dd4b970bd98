"""A server that answers like libwq-http, with figures that a test sets: for what has to be exact.

    fake = Fake("src/http/page.html")
    fake.queues = [picture("pods", queued=3)]
    fake.keys["pods"] = [key("a", ["running"], running_ns=5)]
    ...
    fake.close()

Started alone it serves the page with figures that move, for whoever works on it:

    python3 tests/page/fake.py 8080
"""
import http.server
import json
import math
import random
import sys
import threading
import time
import urllib.parse

COUNTS = ("queued running dirty waiting left remembered adds retries merged refused marked dropped dead stale slow_handlers").split()


def histogram(sum_ns=0, **buckets):
    """histogram(b3=5, sum_ns=9): five in bucket 3, from 1 to 10 µs; together they took so long."""
    count = [0] * 13
    for name, n in buckets.items():
        count[int(name[1:])] = n
    return {"count": count, "sum_ns": sum_ns}


def picture(name, now_ns=None, **figures):
    out = {"name": name, "now_ns": time.monotonic_ns() if now_ns is None else now_ns}
    out.update(dict.fromkeys(COUNTS, 0), unfinished_ns=0, next_due_ns=None, oldest_queued=None, longest_running=None)
    out.update(queue=histogram(), work=histogram(), late=histogram())
    out.update(figures)
    return out


def key(text, state, **figures):
    data = text.encode()
    shown = data[:127].decode(errors="ignore" if len(data) > 127 else "replace")
    return {"key": shown, "len": len(data), "state": state, "age_ns": None if state == ["waiting"] else 0, "due_ns": None,
            "running_ns": 0 if "running" in state else None, "failures": 0, **figures}


class Fake:
    def __init__(self, page, port=0):
        self.page = page
        self.queues = []
        self.keys = {}
        self.asked = []
        self.mute = False  # lists of keys get no answer
        self.refuse = False  # or 503
        self.before_keys = lambda query: None  # called before one is answered
        self.lag_ns = 0  # how old lists of keys are
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_GET(self):
                fake.answer(self)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *args: None  # a browser that goes away is no error
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def body(self, path, query):
        if path == "/":
            with open(self.page, encoding="utf-8") as f:
                return f.read()
        if path == "/api/queues":
            return json.dumps({"queues": self.queues() if callable(self.queues) else self.queues})
        name = urllib.parse.unquote(path.removeprefix("/api/queues/").removesuffix("/keys"))
        if name not in self.keys:
            return None
        self.before_keys(query)
        keys = self.keys[name]
        found = self.select(keys, query)
        return json.dumps({"name": name, "now_ns": time.monotonic_ns() - self.lag_ns, "looked": len(keys), "found": len(found),
                           "keys": found[: int(query.get("limit", 100))]})

    @staticmethod
    def select(keys, query):
        state, match = query.get("state"), query.get("match", "")
        by = {"running": lambda k: -k["running_ns"], "waiting": lambda k: k["due_ns"] or math.inf, "failing": lambda k: -k["failures"]}
        keys = [k for k in keys if match in k["key"]]
        if state == "failing":
            keys = [k for k in keys if k["failures"] > 0]
        elif state:
            keys = [k for k in keys if state in k["state"]]
        return sorted(keys, key=by.get(state, lambda k: 0))

    def answer(self, request):
        url = urllib.parse.urlsplit(request.path)
        self.asked.append(request.path)
        if self.mute and url.path.endswith("/keys"):
            request.close_connection = True
            return
        refuse = self.refuse and url.path.endswith("/keys")
        body = None if refuse else self.body(url.path, dict(urllib.parse.parse_qsl(url.query)))
        data = (body if body is not None else '{"error":"no such queue"}').encode()
        request.send_response(503 if refuse else 200 if body is not None else 404)
        request.send_header("Content-Type", "text/html; charset=utf-8" if url.path == "/" else "application/json")
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)


def moving(started):
    """Figures of two queues that go up and down."""
    t = time.monotonic() - started
    n = int(1000 * t)
    wave = 1 + math.sin(t / 7)
    spread = {"sum_ns": 200_000 * n} | {f"b{i}": int(n * share) for i, share in ((3, 0.1), (4, 0.6), (5, 0.25), (6, 0.05))}
    return [
        picture("mail", queued=2, adds=int(3 * t), work=histogram(b6=int(3 * t), sum_ns=int(12e6 * t)),
                queue=histogram(b5=int(3 * t), sum_ns=int(2e6 * t))),
        picture("pods", queued=int(300 * wave + random.random() * 30), running=8, waiting=int(50 * wave), adds=n,
                retries=n // 9, dead=1, oldest_queued={"key": "default/web-1", "len": 13, "age_ns": int(3e8 * wave)},
                longest_running={"key": "default/web-7", "len": 13, "age_ns": int(t * 1e9) + 7 * 10**9}, work=histogram(**spread), queue=histogram(**spread)),
    ]


def main():
    fake = Fake("src/http/page.html", int(sys.argv[1]))
    started, now = time.monotonic(), time.monotonic_ns()
    fake.queues = lambda: moving(started)
    fake.keys["mail"] = []
    fake.keys["pods"] = [key("default/web-%d" % i, ["running"], running_ns=i * 10**9, failures=i) for i in range(8)] + [
        key("kube-system/dns-%d" % i, ["waiting"], due_ns=now + i * 20 * 10**9, failures=20 - i) for i in range(20)
    ] + [key("<img src=x onerror=alert(1)>", ["waiting"], due_ns=now + 10**13, failures=99)]
    print(f"http://127.0.0.1:{fake.port}/")
    threading.Event().wait()


if __name__ == "__main__":
    main()
