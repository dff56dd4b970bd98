"""Clients that mean no good: malformed, huge, slow, too many, and those that stay when the server goes."""
import http.client
import os
import random
import select
import signal
import socket
import threading
import time

from rig import PATIENCE, Case, Refused, main, raw, read_all

GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
CLOSE = b"Connection: close\r\n\r\n"


class Malformed(Case):
    def setUp(self):
        super().setUp()
        self.program.start(timeout=5)

    def status(self, data):
        """The status of what the server says before it closes; None: it says nothing."""
        got = raw(self.connect(), data)
        return int(got.split()[1]) if got else None

    def test_request_lines(self):
        for line in (b"\r\n\r\n\r\n", b"GET\r\n\r\n", b"GET /healthz\r\n\r\n", b"nonsense\r\n\r\n", b"\0\0\0\0\r\n\r\n", b"GET  \r\n\r\n",
                     b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"GET /healthz HTTP/9.9\r\n\r\n",
                     b"GET /healthz HTTP/1.1\r\n\r\n", b"GET http://[:::/ HTTP/1.1\r\nHost: localhost\r\n" + CLOSE,
                     b"GET /" + bytes(range(128, 256)) + b" HTTP/1.1\r\nHost: localhost\r\n" + CLOSE,
                     b"GET /healthz HTTP/1.1\r\nHost x\r\nno colon\r\n\r\n"):
            s = self.connect()
            s.sendall(line)
            s.shutdown(socket.SHUT_WR)
            got = read_all(s)
            if got:
                self.assertGreaterEqual(int(got.split()[1]), 400, line)
            self.assertEqual(self.ask("/healthz")[0], 200, "others are served")

    def test_http_1_0(self):
        self.assertEqual(self.status(b"GET /healthz HTTP/1.0\r\n\r\n"), 200)

    def test_pipelined(self):
        got = raw(self.connect(), (GET + b"\r\n") * 20 + GET + CLOSE)
        self.assertEqual(got.count(b"HTTP/1.1 200 OK"), 21)

    def test_huge(self):
        for data in (b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n" + CLOSE,
                     GET + b"X-Long: " + b"y" * 100000 + b"\r\n" + CLOSE,
                     GET + b"".join(b"X-%d: z\r\n" % i for i in range(10000)) + CLOSE,
                     GET.rstrip() + b" " * 100000,
                     b"GET /api/queues/q/keys?" + b"&".join(b"a%d=" % i for i in range(10000)) + b" HTTP/1.1\r\nHost: localhost\r\n" + CLOSE):
            self.assertIn(self.status(data), (None, 400, 413, 414, 431), data[:40])
        self.assertEqual(self.ask("/healthz")[0], 200)

    def test_bodies(self):
        self.assertIn(self.status(GET + b"Content-Length: 10\r\n\r\n0123456789" + GET + CLOSE), (None, 400))
        self.assertIn(self.status(GET + b"Transfer-Encoding: chunked\r\n\r\nffffffff\r\n" + b"x" * 1000 + b"\r\n"), (None, 400))
        self.assertEqual(self.status(b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999999\r\n\r\n"), 405)

    def test_random(self):
        """Requests with bytes changed, cut and repeated by chance; WQ_SEED repeats a run."""
        seed = int(os.environ.get("WQ_SEED") or random.randrange(2**32))
        print(f"seed {seed}", flush=True)
        rng = random.Random(seed)
        self.tell("queue", "q")
        self.tell("fill", "q", 10)
        whole = [GET + b"Accept: application/openmetrics-text;q=0.5, text/plain; q=0.3\r\n" + CLOSE,
                 b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: application/openmetrics-text;q=0.5;q=1\r\n" + CLOSE,
                 b"GET /api/queues/%71/keys?state=queued&limit=10&match=%6b%65y HTTP/1.1\r\nHost: localhost\r\n" + CLOSE]
        for _ in range(300):
            data = bytearray(rng.choice(whole))
            for _ in range(rng.randrange(6)):
                at = rng.randrange(len(data) - 1)
                what = rng.randrange(4)
                if what == 0:
                    data[at] = rng.choice(b"\0\r\n %&=?;,/+:q0159\x80\xff")
                elif what == 1:
                    del data[at:at + rng.randrange(1, 8)]
                elif what == 2:
                    data[at:at] = data[at:at + rng.randrange(1, 30)] * rng.randrange(1, 20)
                else:
                    data[at:at + 1] = b"%%%02x" % rng.randrange(256)
                if len(data) < 2:
                    break
            s = self.connect()
            s.settimeout(0.05)  # some wait for more, until they are hung up on
            got = b""
            try:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
                got = s.recv(65536)
            except OSError:
                pass
            s.close()
            if got:
                self.assertRegex(got, rb"^HTTP/1\.[01] [2345]\d\d ", f"seed {seed}: {bytes(data)!r}")
        self.assertEqual(self.ask("/healthz")[0], 200)

    def test_half_gone(self):
        """Clients that ask and hang up, at once."""
        for i in range(200):
            s = self.connect()
            s.sendall((GET + CLOSE)[: i % 60 + 1] if i % 2 else GET + CLOSE)
            s.close()
        self.assertEqual(self.ask("/healthz")[0], 200)


class Slow(Case):
    def gone(self, sockets, each=None):
        """Waits until the server has closed all of them; meanwhile calls each() a few times a second."""
        left, end = set(sockets), time.monotonic() + PATIENCE
        while left and time.monotonic() < end:
            for s in select.select(list(left), [], [], 0.1)[0]:
                try:
                    closed = not s.recv(65536)
                except ConnectionError:
                    closed = True
                if closed:
                    left.discard(s)
            if each:
                each(left)
        self.assertEqual(len(left), 0, "the server keeps slow connections")

    def test_slow_loris(self):
        """A hundred that send a byte now and then are dropped in time, and others are served meanwhile."""
        self.program.start(most=150, timeout=2)
        began = time.monotonic()
        sockets = [self.connect() for _ in range(100)]
        for s in sockets:
            s.sendall(GET)
        served = []

        def trickle(left):
            for s in left:
                try:
                    s.sendall(b"X")
                except OSError:
                    pass
            asked = time.monotonic()
            self.assertEqual(self.ask("/healthz")[0], 200)
            served.append(time.monotonic() - asked)

        self.gone(sockets, trickle)
        took = time.monotonic() - began
        self.assertGreater(took, 1.9)
        self.assertLess(min(served), 0.5, "nobody waited for the slow ones")
        self.assertLess(took, PATIENCE / 2)

    def test_idle(self):
        self.program.start(timeout=1)
        fresh, used = self.connect(), self.connect()
        used.sendall(GET + b"\r\n")
        self.gone([fresh, used])

    def test_busy_for_long(self):
        """Who keeps asking stays, however long; the limit is for each request."""
        self.program.start(timeout=2)
        c = http.client.HTTPConnection("127.0.0.1", self.program.port, timeout=PATIENCE)
        c.connect()
        kept, end = c.sock, time.monotonic() + 4.5
        while time.monotonic() < end:
            c.request("GET", "/healthz")
            self.assertEqual(c.getresponse().read(), b"ok\n")
            select.select([], [], [], 0.05)
        self.assertIs(c.sock, kept, "the connection was not kept")
        c.close()

    def test_slow_readers(self):
        """Who asks for much and does not read is dropped too."""
        self.program.start(timeout=1)
        self.tell("queue", "q")
        self.tell("fill", "q", 1000)
        sockets = []
        for _ in range(3):
            s = socket.socket()
            self.addCleanup(s.close)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect(("127.0.0.1", self.program.port))
            s.sendall(b"GET /api/queues/q/keys?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
            sockets.append(s)
        self.until(lambda: not self.established(sockets))
        self.assertEqual(self.ask("/healthz")[0], 200)

    def established(self, sockets):
        """Those whose end at the server is still open: TCP_INFO's first byte is the state, 1 is established."""
        return [s for s in sockets if s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == b"\x01"]

    def test_limit(self):
        """No more than so many are served at once; the next waits, and slow ones make room within a second or so."""
        self.program.start(most=4, timeout=30)
        sockets = [self.connect() for _ in range(4)]
        for s in sockets:
            s.sendall(GET)
        began = time.monotonic()
        self.assertEqual(self.ask("/healthz")[0], 200)
        took = time.monotonic() - began
        self.assertGreater(took, 0.5, "a fifth was served at once")
        self.assertLess(took, 20, "the slow ones stayed")

    def test_one_at_a_time(self):
        self.program.start(most=1)
        for _ in range(50):
            self.assertEqual(self.ask("/healthz")[0], 200)


class Process(Case):
    """What the server does to the program that it is part of."""

    def proc(self, *words):
        with open("/".join(("/proc", str(self.program.process.pid), *words))) as f:
            return f.read()

    def fields(self, *words):
        return dict(line.split(":", 1) for line in self.proc(*words).splitlines())

    def threads(self):
        found = {}
        for i in os.listdir(f"/proc/{self.program.process.pid}/task"):
            try:
                found[self.proc("task", i, "comm").strip()] = self.fields("task", i, "status")
            except (FileNotFoundError, ProcessLookupError):
                pass  # it has ended meanwhile
        return found

    def test_threads(self):
        """They have names, and leave signals to the program, but for faults of their own."""
        self.program.start()
        faults = {getattr(signal, "SIG" + s) for s in "SEGV BUS FPE ILL TRAP SYS ABRT".split()}
        never = {signal.SIGKILL, signal.SIGSTOP}  # nobody can block those
        expected = set(range(1, signal.SIGSYS + 1)) - faults - never

        def blocked(name):
            mask = int(self.threads().get(name, {"SigBlk": "0"})["SigBlk"], 16)
            return {s for s in range(1, signal.SIGSYS + 1) if mask >> (s - 1) & 1}
        # The C library blocks all of them until a new thread runs.
        for name in ("wq-http", "wq-http-walk"):
            self.until(lambda: blocked(name) == expected)
        self.tell("stop")
        # Who was joined is still to be seen for a moment.
        self.until(lambda: not [n for n in self.threads() if n.startswith("wq-http")])

    def test_descriptors(self):
        """No program that is started meanwhile gets them, and none is left behind."""
        # Once for nothing: a program that has only begun may have files open for its own start.
        self.program.start()
        self.tell("stop")
        before = self.files()
        self.program.start()
        self.assertEqual(self.ask("/api/queues")[0], 200)
        open_ones = [self.connect() for _ in range(5)]
        for s in open_ones:
            s.sendall(GET + b"\r\n")
            self.assertTrue(s.recv(1))
        files = self.files() - before
        self.assertGreaterEqual(len(files), 5 + 3)
        for fd in files:
            self.assertTrue(int(self.fields("fdinfo", fd)["flags"], 8) & os.O_CLOEXEC, fd)
        self.tell("stop")
        self.assertEqual(self.files(), before)

    def files(self):
        return set(os.listdir(f"/proc/{self.program.process.pid}/fd"))

    def test_no_descriptors(self):
        """Who cannot be let in waits outside, and is not looked for all the time."""
        self.program.start()
        before = self.tell("full", 1)[0]
        s = self.connect()
        s.sendall(GET + CLOSE)
        self.until(lambda: self.tell("full", 1)[0] > before)
        before, began = self.tell("full", 1)[0], time.monotonic()
        self.until(lambda: time.monotonic() > began + 1)
        calls, took = self.tell("full", 1)[0] - before, time.monotonic() - began
        self.assertLessEqual(calls, 4 * took + 2)
        self.assertGreater(calls, 0)
        self.tell("full", 0)
        self.assertTrue(read_all(s).startswith(b"HTTP/1.1 200 "))


class Stop(Case):
    def test_stop_while_open(self):
        self.program.start()
        self.tell("queue", "q")
        self.tell("fill", "q", 1000)
        for _ in range(20):
            idle, half, reading = (self.connect() for _ in range(3))
            half.sendall(GET)
            reading.sendall(b"GET /api/queues/q/keys?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
            self.assertEqual(self.ask("/healthz")[0], 200)
            port = self.program.port
            self.tell("stop")
            for s in (idle, half, reading):
                read_all(s)
            with self.assertRaises(ConnectionRefusedError):
                self.connect()
            self.program.start(port=port)

    def test_free_while_asked(self):
        """Queues come and go under the eyes of those who ask."""
        self.program.start()
        for i in range(100):
            self.tell("queue", "q")
            self.tell("add", "q", str(i))
            for path in ("/metrics", "/api/queues", f"/api/queues/q/keys?match={i}"):
                self.assertIn(self.ask(path)[0], (200, 503), path)
            self.tell("free", "q")


    def test_while_it_works(self):
        """Many at once ask about a queue that works, and that goes in the end."""
        self.program.start()
        self.tell("live", "busy")
        self.tell("work", "busy", 1000)
        self.until(lambda: self.ask("/api/queues/busy/keys")[0] == 200)
        seen = []

        def client():
            for i in range(60):
                for path in ("/metrics", "/api/queues", "/api/queues/busy/keys", f"/api/queues/busy/keys?match={i}"):
                    seen.append(self.ask(path)[0])

        threads = [threading.Thread(target=client) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(PATIENCE)
        self.assertEqual(len(seen), 4 * 60 * 4)
        self.assertLessEqual(set(seen), {200, 503})
        self.assertGreater(seen.count(200), 3 * 60 * 4 - 1, "only new listings may be refused")
        self.tell("free", "busy")


class Memory(Case):
    def test_each_allocation_fails(self):
        """503, or the connection is dropped; the next request is answered as ever."""
        for i in range(3):
            self.tell("queue", f"q{i}")
            self.tell("add", f"q{i}", f"key{i}")
        for path in ("/metrics", "/api/queues", "/api/queues/q1/keys", "/api/queues/none/keys", "/nothing"):
            expected, refused, n = {200, 404}, 0, 0
            while True:
                before = self.tell("fail", -1)[0]
                self.program.start()
                self.tell("fail", n)
                try:
                    code = self.ask(path)[0]
                except (http.client.HTTPException, ConnectionError):
                    code = None
                failed = self.tell("fail", -1)[0] > before
                self.assertIn(code, (503, None) if failed else expected, (path, n))
                # The walk that failed may have to be paid for first.
                self.assertIn(self.until(lambda: (c := self.ask(path)[0]) != 503 and c), expected, (path, n))
                self.tell("stop")
                if not failed:
                    break
                refused, n = refused + 1, n + 1
            self.assertGreater(refused, 0, path)

    def test_start(self):
        n = 0
        while True:
            before = self.tell("fail", n)[0]
            try:
                self.program.start()
                break
            except Refused as why:
                self.assertEqual(why.args[0], "WQ_ENOMEM")
            self.assertEqual(self.tell("fail", -1)[0], before + 1)
            n += 1
        self.tell("fail", -1)
        self.assertGreaterEqual(n, 2)
        self.assertEqual(self.ask("/healthz")[0], 200)


if __name__ == "__main__":
    main()
