"""Few descriptors, many connections: a run can be asked and stopped all the same."""
import resource
import signal
import time

from rig import main
from served import Served, frame

OWN, COMMAND, RESERVE = 64, 8, 16


class Crowd(Served):
    def narrow(self, *args, connections=40, workers=1, **kwargs):
        """With room for so many connections."""
        limit = OWN + COMMAND * workers + connections
        self.serve(f"-j{workers}", *args, **kwargs,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))

    def heard(self, c):
        c.setblocking(False)
        try:
            return c.recv(1000).decode()
        except BlockingIOError:
            return None

    def test_idle(self):
        """Idle ones, of whatever kind, make room for who comes; the longest idle first; they are told."""
        self.narrow()
        first = self.connect()
        first.sendall(b"\0" + frame("status"))
        first.recv(10000)
        conns = [self.connect() for _ in range(60)]
        for i, c in enumerate(conns[20:40]):
            c.sendall(b"key%d\n" % i)
        for c in conns[40:]:
            c.sendall(b"\0" + frame("forget", "x"))
        for _ in range(3):
            self.assertLessEqual(self.status()["connections"], 40)
        self.assertEqual(self.heard(first), "64:!75 the run has no room for so many connections: try again later,")
        self.until_status(done=20)
        self.assertEqual([c.recv(1000) for c in conns[40:]], [b"1:.,"] * 20)
        told = [self.heard(c) for c in conns[:20]]
        self.assertIn("wq: the run has no room for so many connections: try again later\n", told)
        self.assertEqual(self.said(), "wq: listens on ./s\n")

    def test_who_is_busy_stays(self):
        """One that gives a key now and then is not idle."""
        self.narrow("--dry-run")
        busy = self.connect()
        conns = []
        for i in range(120):
            busy.sendall(b"%d\n" % i)
            conns.append(self.connect())
            if i % 10 == 0:
                self.status()
        busy.close()
        self.until_status(done=120)

    def test_waiting(self):
        """If all of them wait, the last one that came goes."""
        self.narrow()
        self.ask("pause")
        self.ask("add", "k")
        conns = []
        for _ in range(40):
            c = self.connect()
            c.sendall(b"\0" + frame("await", "k") + frame("wait"))
            self.assertEqual(c.recv(4), b"1:.,")
            self.assertEqual(c.recv(4), b"1::,")
            conns.append(c)
        self.assertEqual(self.status()["waiters"], 39)
        self.assertIn(b"!75 the run has no room", conns.pop().recv(100))
        self.ask("resume")
        self.assertEqual([c.recv(100) for c in conns], [b"1:.,"] * 39)

    def test_who_gives_keys_does_not_wait(self):
        """It stays, though it came last: one of those that wait goes."""
        self.narrow()
        self.ask("pause")
        self.ask("add", "k")
        waits = []
        for _ in range(39):
            waits.append(self.connect())
            waits[-1].sendall(b"\0" + frame("await", "k") + frame("wait"))
            self.assertEqual([waits[-1].recv(4) for _ in range(2)], [b"1:.,", b"1::,"])
        gives, given = self.connect(), []

        def give():
            gives.sendall(b"%d\n" % len(given))
            given.append(1)
            return True

        give()
        p = self.begin("status", "--json")
        self.until(lambda: give() and p.poll() is not None)
        self.assertEqual(self.finish(p)[0], 0)
        self.assertIn(b"!75 the run has no room", waits.pop().recv(100))
        give()
        self.until_status(given=1 + len(given))

    def test_full(self):
        """Connections that wait for room in the queue: orders are answered, and what is not taken is told."""
        self.narrow("--max-queue", "1")
        self.ask("pause")
        self.ask("add", "k")
        for i in range(39):
            self.connect().sendall(b"held%d\n" % i)
        p = self.begin("add", "a", "b")
        status, said = self.until(lambda: self.status() and p.poll() is not None) and self.finish(p)
        self.assertEqual(status, 75)
        self.assertIn("0 of 2 given; the first not taken: a\n", said)
        late = self.connect()
        late.sendall(b"late\n")
        self.assertEqual(self.status()["unfinished"], 1)
        self.assertIn(b"the run has no room", self.rest(late))
        self.assertIn("a connection that had keys to give was closed: there were too many", self.said())
        self.ask("stop")
        self.assertEqual(self.ended(), 75)

    def test_nothing_is_lost(self):
        """What could be written before a connection was closed is taken, whenever that happens."""
        self.narrow("--dry-run", connections=17)
        conns, sent, closed = [], 0, 0
        while closed < 40:
            if len(conns) < 24:
                conns.append(self.connect())
            # Mostly the same few, so that others are idle for long, and write when they are to go.
            c = conns[min(self.random.randrange(len(conns)) for _ in range(3))]
            try:
                c.send(b"%d\n" % sent)
                sent += 1
            except (BrokenPipeError, ConnectionResetError):
                conns.remove(c)
                closed += 1
        for c in conns:
            c.close()
        self.until_status(given=sent)
        self.assertEqual(self.said(), "wq: listens on ./s\n")

    def test_half_a_key(self):
        """is no key if we cut it."""
        self.narrow()
        half = self.connect()
        half.sendall(b"half a k")
        self.status()
        self.status()
        conns = [self.connect() for _ in range(45)]
        self.status()
        self.assertEqual(self.rest(half), b"wq: the run has no room for so many connections: try again later\n")
        self.assertEqual(self.status()["given"], 0)
        self.assertIn("had keys to give", self.said())
        del conns

    def test_half_a_key_just_now(self):
        """It comes while its connection is being closed."""
        self.narrow()
        first, half = self.connect(), self.connect()
        conns = [self.connect() for _ in range(38)]
        # Those two have been idle for long enough now: the first had to go for this.
        self.status()
        self.assertIn("no room", self.rest(first).decode())
        conns.append(self.connect())
        conns[-1].sendall(b"\0" + frame("forget", "x"))
        self.assertEqual(conns[-1].recv(10), b"1:.,")
        self.halt()
        self.assertIsNone(self.heard(half))
        conns.append(self.connect())
        half.setblocking(True)
        half.sendall(b"half a k")
        self.run_.send_signal(signal.SIGCONT)
        self.assertEqual(self.rest(half), b"wq: the run has no room for so many connections: try again later\n")
        self.assertEqual(self.status()["given"], 0)

    def test_hardly_any(self):
        """Fewer than are kept for connections: there are some all the same."""
        self.serve("-j1", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (70, 70)))
        conns = [self.connect() for _ in range(20)]
        self.assertLessEqual(self.status()["connections"], RESERVE)
        self.ask("add", "--wait", "k")
        del conns

    def test_set(self):
        """No more workers than leave room to be asked."""
        self.narrow(connections=40)
        self.ask("set", "workers=300", "rate=5/s", status=1)
        limit = OWN + COMMAND + 40
        self.assertEqual(self.complaint, f"wq: workers=300: a limit of {limit} descriptors has room for 4; "
                                         "nothing has changed\n")
        s = self.status()
        self.assertEqual((s["workers"], s["rate"]), (1, 0))
        self.ask("set", "workers=4")
        for _ in range(6):
            self.run_.send_signal(signal.SIGUSR1)
            self.assertEqual(self.status()["workers"], 4)
        self.ask("set", "workers=5", status=1)
        # All of them at once, and as many connections as there may be.
        self.assertEqual(self.status()["workers"], 4)

    def test_asked_while_all_run(self):
        self.fifo("gate")
        self.narrow(connections=40, command=("sh", "-c", "read x <gate"))
        self.ask("set", "workers=4")
        self.ask("add", "a", "b", "c", "d", "e")
        self.until_status(running=4)
        conns = [self.connect() for _ in range(30)]
        self.assertEqual(self.status()["running"], 4)
        self.ask("cancel", "e")
        self.ask("stop", "--no-wait")
        del conns

    def test_jobs(self):
        limit = OWN + RESERVE + 10 * COMMAND
        self.serve("-j300", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
        self.assertEqual(self.status()["workers"], 10)
        self.assertIn(f"--jobs 300: a limit of {limit} descriptors has room for 10 commands beside the socket",
                      self.said())

    def test_raised_if_it_may_be(self):
        self.serve("-j1", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 4000)),
                   command=("sh", "-c", "ulimit -n >limit"))
        self.ask("set", "workers=300")
        self.assertEqual(self.status()["workers"], 300)
        # The commands' own limit stays as it was.
        self.ask("add", "--wait", "k")
        self.assertEqual(self.lines("limit"), ["100"])

    def test_a_lull(self):
        """Nobody is closed who is in nobody's way."""
        self.narrow()
        conns = [self.connect() for _ in range(39)]
        for c in conns:
            c.sendall(b"\0" + frame("forget", "x"))
            self.assertEqual(c.recv(10), b"1:.,")
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            self.assertEqual(self.status()["connections"], 40)


if __name__ == "__main__":
    main()
