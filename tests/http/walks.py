"""Walks over the keys of a queue that take for ever: who asks for a listing waits for a second at most, and nobody else waits."""
import select
import time

from rig import PATIENCE, Case, main, read_all

KEYS = b"GET /api/queues/q/keys HTTP/1.1\r\nHost: localhost\r\n\r\n"
OTHERS = ("/healthz", "/metrics", "/api/queues", "/")


class Walks(Case):
    def fill(self, n, **options):
        self.program.start(**options)
        self.tell("queue", "q")
        self.tell("fill", "q", n)

    def walks(self):
        return self.tell("slow", 1)[0]

    def slow(self):
        """Somebody asks for a listing, and the walk for it goes on."""
        self.tell("slow", 1)
        s = self.connect()
        s.sendall(KEYS)
        self.until(self.walks)
        return s

    def listing(self, n):
        """Once walks end again it is there, and the same for all."""
        self.tell("slow", 0)
        self.until(lambda: self.ask("/api/queues/q/keys")[0] == 200)
        self.assertEqual(self.json("/api/queues/q/keys")["looked"], n)

    def test_nobody_waits(self):
        self.fill(1000000)
        asked = self.slow()
        for path in OTHERS:
            self.assertEqual(self.ask(path)[0], 200, path)
        self.assertEqual(self.ask("/api/queues/none/keys")[0], 404)

        # Nor do those who make and free queues, and what they made is shown.
        self.tell("queue", "other")
        self.until(lambda: b'{name="other"}' in self.ask("/metrics")[2])
        self.until(lambda: len(self.json("/api/queues")["queues"]) == 2)
        self.tell("free", "other")
        self.until(lambda: len(self.json("/api/queues")["queues"]) == 1)
        self.assertEqual(self.walks(), 1, "the walk did not go on meanwhile")

        got = self.until(lambda: asked.recv(65536))
        self.assertTrue(got.startswith(b"HTTP/1.1 503 "), got)
        self.assertRegex(got, rb"\r\nRetry-After: 1\r\n")
        self.assertIn(b'{"error":"another listing is in progress"}', got)
        self.assertEqual(self.walks(), 1)
        self.listing(1000000)

    def test_who_waits_is_answered(self):
        """As soon as the walk has ended, not when patience has."""
        self.fill(1000)

        def quick():
            asked, began = self.slow(), time.monotonic()
            self.tell("slow", 0)
            got = asked.recv(65536)
            took = time.monotonic() - began
            self.assertRegex(got, b"^HTTP/1.1 (200|503) ")
            return got.startswith(b"HTTP/1.1 200 ") and took < 0.5
        self.until(quick)

    def test_the_last_one_meanwhile(self):
        self.fill(1)
        self.until(lambda: self.ask("/api/queues/q/keys")[0] == 200)
        first, began = self.json("/api/queues/q/keys"), time.monotonic()
        self.tell("add", "q", "new")
        self.until(lambda: time.monotonic() > began + 1.1)
        self.slow()
        self.assertEqual(self.json("/api/queues/q/keys"), first)
        self.assertEqual(self.walks(), 1)
        self.tell("slow", 0)
        self.until(lambda: self.json("/api/queues/q/keys")["looked"] == 2)

    def test_another_queue(self):
        """One walk at a time: that of another queue waits for its turn."""
        self.fill(1)
        self.tell("queue", "p")
        self.slow()
        self.assertEqual(self.ask("/api/queues/p/keys")[0], 503)
        self.assertEqual(self.walks(), 1)
        self.tell("slow", 0)
        self.until(lambda: self.ask("/api/queues/p/keys")[0] == 200)
        self.listing(1)

    def test_places_for_others(self):
        """However many wait for a walk, they leave half of the places to others."""
        self.fill(1, most=4)

        def at_once():
            waiting = [self.slow(), self.slow()]
            began = time.monotonic()
            code = self.ask("/api/queues/q/keys?match=x")[0]
            took = time.monotonic() - began
            self.assertEqual(code, 503)
            self.assertEqual(self.ask("/healthz")[0], 200)
            for s in waiting:
                s.close()
            return took < 0.5
        self.until(at_once)
        self.listing(1)

    def test_one_place(self):
        self.fill(1, most=1)
        self.until(lambda: self.ask("/api/queues/q/keys")[0] == 200)

    def test_gone_meanwhile(self):
        """Who hangs up while they wait are forgotten; their places are free again."""
        self.fill(1, most=8)
        for _ in range(5):
            for s in [self.slow() for _ in range(8)]:
                s.close()
            self.assertEqual(self.ask("/healthz")[0], 200)
        self.listing(1)

    def test_pipelined(self):
        """Requests behind one that waits come in their order."""
        self.fill(1)
        s = self.slow()
        s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        self.tell("slow", 0)
        codes = [piece[:3] for piece in read_all(s).split(b"HTTP/1.1 ")[1:]]
        self.assertIn(codes, ([b"200", b"200", b"404"], [b"503", b"200", b"404"]))

    def test_stop(self):
        """A walk is cut short, and who waits for it is hung up on."""
        for _ in range(10):
            self.program.start()
            self.tell("queue", "q")
            self.tell("fill", "q", 10)
            waiting = [self.slow() for _ in range(3)]
            self.tell("stop")
            self.assertEqual(self.walks(), 0)
            for s in waiting:
                self.assertTrue(select.select([s], [], [], PATIENCE)[0])
            self.tell("free", "q")

    def test_a_queue_that_went(self):
        """What is left of it is not shown, not even while its name has to wait for the next walk."""
        self.fill(400000)
        self.until(lambda: self.ask("/api/queues/q/keys")[0] == 200)
        self.tell("free", "q")
        self.assertEqual(self.ask("/api/queues/q/keys")[0], 404)
        self.tell("queue", "q")
        code, _, body = self.ask("/api/queues/q/keys")
        self.assertTrue(code == 503 or b'"looked":0' in body, (code, body))


if __name__ == "__main__":
    main()
