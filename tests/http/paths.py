"""Each path of the server and each error, asked for by real clients."""
import http.client
import json
import shutil
import subprocess
import time

from rig import PATIENCE, Case, Refused, main, quote, raw

SECOND = 10**9


class Paths(Case):
    def setUp(self):
        super().setUp()
        self.program.start()

    def keys(self, queue, **query):
        path = "/api/queues/" + quote(queue) + "/keys"
        if query:
            path += "?" + "&".join(f"{k}={quote(v)}" for k, v in query.items())
        # A slow machine walks slowly, and the server rations its walks: 503, ask again.
        self.until(lambda: self.ask(path)[0] != 503)
        return self.json(path)

    def names(self, queue, **query):
        return [k["key"] for k in self.keys(queue, **query)["keys"]]

    def test_page(self):
        code, headers, body = self.ask("/")
        self.assertEqual((code, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertTrue(body.lower().startswith(b"<!doctype html>"))
        self.assertTrue(body.rstrip().endswith(b"</html>"))
        self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
        self.assertIn("connect-src 'self'", headers["Content-Security-Policy"])

    def test_health(self):
        code, headers, body = self.ask("/healthz")
        self.assertEqual((code, body), (200, b"ok\n"))
        self.assertEqual(headers["Content-Type"], "text/plain; charset=utf-8")

    def test_headers_of_every_answer(self):
        self.tell("queue", "a")
        for path in ("/", "/healthz", "/metrics", "/api/queues", "/api/queues/a/keys", "/nothing",
                     "/api/queues/a/keys?limit=0"):
            _, headers, _ = self.ask(path)
            self.assertEqual(headers["Cache-Control"], "no-store", path)
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff", path)
            self.assertIsNone(headers["Access-Control-Allow-Origin"], path)

    def test_metrics(self):
        self.tell("queue", "pods")
        self.tell("add", "pods", "a")
        code, headers, body = self.ask("/metrics")
        self.assertEqual((code, headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
        self.assertIn(b'workqueue_adds_total{name="pods"} 1\n', body)
        self.assertNotIn(b"# EOF", body)

    def test_accept(self):
        om, text = "application/openmetrics-text", "text/plain"
        prometheus = (om + ";version=1.0.0," + om + ";version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1")
        for accept, is_open in (
            (None, False), ("*/*", False), (text, False), (om, True), (prometheus, True),
            (om.upper() + "; version=1.0.0", True), (om + ";q=0", False), (om + ";q=0.000", False),
            (om + ";q=0.1, text/plain;q=0.25", False), (om + "; q=0.3,text/plain;q=0.25", True),
            (om + "2", False), ("text/html," + om + ";q=1.0", True), (";q=,;;q", False),
            # The nearest range counts, whatever stands beside it.
            (om + ";q=0.5, */*;q=0.9", False), (om + ";q=0.5, text/*", False), ("text/*;q=0.4, " + om + ";q=0.5", True),
            (om + ";q=0.5, */*, text/plain;q=0.1", True), ("*/*, application/*;q=0.1", False), ("application/*", True),
            ("text/*;q=0.1, */*;q=0.2", True), ("*/*;q=0.2, text/*;q=0.1", True), ("*/*," + om, True), ("*/*," + om + ";q=0", False),
            ("application/*;q=0.9, " + om + ";q=0.1, text/plain;q=0.5", False), ("application/*, text/*", False), ("*/plain", False),
            ("text/plain, " + om, True), ("text/html", False), ("text/plain;q=0", False), ("text/plain;q=0, */*", True),
            # Blanks and tabs, quotes, and commas in them.
            (om + ";\tq=0", False), (om + "\t ;\t q=0", False), ("\t" + om + ";q=0.5\t,\ttext/plain;q=0.4", True),
            (om + ';x="a,b;q=0";q=0.5, text/plain;q=0.4', True), (om + ';x="a,b";q=0.3, text/plain;q=0.4', False),
            ('text/html;x="\\", ' + om + ',", text/plain', False), (om + ';x="', False), ("a/b;x=\", " + om, False),
            # Versions and charsets that there are not.
            (om + ";version=0.0.1", False), (om + ";version=1.0.0", True), (om + ';version="1.0.0"', True), (om + ";VERSION=2.0.0, */*;q=0.1", False),
            (om + ";version=1.0.0;q=0.2," + om + ";q=0.9, text/plain;q=0.5", False), (om + ";charset=utf-8", True), (om + ";charset=latin1", False),
            (om + ";escaping=allow-utf-8;version=1.0.0", True), ("text/plain;version=1.0.0, " + om + ";q=0.1", True),
            # Weights that are none, and what follows one.
            (om + ";q=2", False), (om + ";q=0.1234", False), (om + ";q=.5", False), (om + ";q=1.001", False), (om + ";q=", False), (om + ";q", False),
            (om + ";q=1.", True), (om + ";q=0.001", True), (om + ";Q=0.5, text/plain;q=0.6", False), (om + ";q=0.5;q=1, text/plain;q=0.6", False),
            (om + ";q=0.5;version=0.0.1", True), (om + ";;;", True), (om + ";q=x, " + om + ";q=0.1", True), ("x" * 200 + "/" + "y" * 200 + "," + om, True),
        ):
            _, headers, body = self.ask("/metrics", headers={"Accept": accept} if accept else {})
            self.assertEqual(headers["Content-Type"].startswith(om), is_open, accept)
            self.assertEqual(body.endswith(b"# EOF\n"), is_open, accept)

    def test_several_accepts(self):
        """Headers of one name are one, as if commas were between them."""
        om = b"application/openmetrics-text"
        for lines, is_open in (((b"text/plain;q=0.5", om), True), ((om + b";q=0.5", b"text/plain"), False), ((b"text/html", b"", om), True)):
            head = b"".join(b"%s: %s\r\n" % (name, line) for name, line in zip((b"Accept", b"ACCEPT", b"accept"), lines))
            got = raw(self.connect(), b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + head + b"Connection: close\r\n\r\n")
            self.assertEqual(b"# EOF" in got, is_open, lines)

    def test_queues(self):
        self.assertEqual(self.json("/api/queues"), {"queues": []})
        for name in ("b", "a"):
            self.tell("queue", name)
        self.tell("add", "b", "x")
        found = self.until(lambda: self.json("/api/queues")["queues"])
        self.assertEqual([q["name"] for q in found], ["a", "b"])
        self.until(lambda: self.json("/api/queues")["queues"][1]["queued"] == 1)
        self.tell("free", "a")
        self.until(lambda: len(self.json("/api/queues")["queues"]) == 1)

    def test_pictures_are_shared(self):
        """Many requests at once cost one look; an old picture is taken anew."""
        self.tell("queue", "a")
        before, began = self.tell("cost")[2], time.monotonic()
        c = http.client.HTTPConnection("127.0.0.1", self.program.port, timeout=PATIENCE)
        asked = 0
        while asked < 1000:  # keep-alive
            c.request("GET", ("/metrics", "/api/queues", "/api/queues/a/keys")[asked % 3])
            r = c.getresponse()
            self.assertEqual(r.status, 200)
            r.read()
            asked += 1
            if asked == 1:
                socket = c.sock
            self.assertIs(c.sock, socket, "the connection was kept")
        c.close()
        took = time.monotonic() - began
        self.assertLessEqual(self.tell("cost")[2] - before, (10 + 10 + 1) * took + 3)
        self.tell("add", "a", "x")
        self.until(lambda: b'workqueue_depth{name="a"} 1\n' in self.ask("/metrics")[2])

    def test_keys(self):
        """Each list, in its order, with what is known of each key."""
        self.tell("queue", "q")
        for key in ("old", "older"):
            self.tell("add", "q", key)
            self.tell("get", "q")
            self.tell("advance", 1 * SECOND)
        self.tell("add", "q", "older")
        self.tell("add", "q", "first")
        self.tell("advance", 2 * SECOND)
        self.tell("add", "q", "second")
        self.tell("after", "q", 9 * SECOND, "late")
        self.tell("after", "q", 5 * SECOND, "soon")
        self.tell("after", "q", 2**63 - 1, "never")
        answer = self.keys("q")
        self.assertEqual((answer["name"], answer["now_ns"]), ("q", 1004 * SECOND))
        self.assertEqual((answer["looked"], answer["found"], len(answer["keys"])), (7, 7, 7))
        self.assertEqual(self.names("q", state="queued"), ["first", "second"])
        self.assertEqual(self.names("q", state="waiting"), ["soon", "late", "never"])
        self.assertEqual(self.names("q", state="left"), [])
        running = self.keys("q", state="running")["keys"]
        self.assertEqual([(k["key"], k["running_ns"], k["state"], k["due_ns"]) for k in running],
                         [("old", 4 * SECOND, ["running"], None), ("older", 3 * SECOND, ["running", "dirty"], None)])
        waiting = self.keys("q", state="waiting")["keys"]
        self.assertEqual([(k["due_ns"], k["state"]) for k in waiting],
                         [(1009 * SECOND, ["waiting"]), (1013 * SECOND, ["waiting"]), (None, ["waiting"])])
        self.assertEqual([(k["age_ns"], k["running_ns"]) for k in waiting], 3 * [(None, None)])
        self.assertEqual([(k["age_ns"], k["running_ns"]) for k in self.keys("q", state="queued")["keys"]], [(2 * SECOND, None), (0, None)])
        self.assertEqual(self.names("q", state="waiting", limit=1), ["soon"])
        self.assertEqual(self.keys("q", state="waiting", limit=1)["found"], 3)
        self.assertEqual(self.names("q", match="old"), ["old", "older"])
        self.assertEqual(self.names("q", match="ol", state="queued"), [])

    def test_rich_keys(self):
        """What keys bring along, cut; a key that brings nothing, in a queue that has nothing, is as ever."""
        self.tell("queue", "plain")
        self.tell("add", "plain", "a")
        (k,) = self.keys("plain")["keys"]
        self.assertEqual(set(k), {"key", "len", "state", "age_ns", "due_ns", "running_ns", "failures"})
        self.tell("rich", "q")
        self.tell("add", "q", "h/0")
        self.tell("bring", "q", "h/1", 5, "why")
        self.tell("bring", "q", "g" * 200 + "/2", -7, "\u20ac" * 100)
        self.tell("get", "q")
        found = {k["key"]: k for k in self.keys("q")["keys"]}
        self.assertEqual({n: found["h/1"][n] for n in ("priority", "group", "group_len", "value", "value_len")},
                         {"priority": 5, "group": "h", "group_len": 1, "value": "why", "value_len": 3})
        self.assertEqual((found["h/0"]["group"], "priority" in found["h/0"], "value" in found["h/0"]), ("h", False, False))
        long = found["g" * 127]
        self.assertEqual((long["priority"], long["group"], long["group_len"]), (-7, "g" * 63, 200))
        self.assertEqual((long["value"], long["value_len"]), ("\u20ac" * 21, 300))
        picture = self.until(lambda: next((q for q in self.json("/api/queues")["queues"] if q["name"] == "q" and q["running"]), None))
        self.assertEqual((picture["blocked"], picture["groups"]), (1, 2))
        self.assertEqual(picture["level"], [{"priority": 0, "queued": 1}, {"priority": -7, "queued": 1}])
        self.assertEqual([(g["name"], g["len"], g["queued"], g["running"]) for g in picture["busiest"]],
                         [("h", 1, 1, 1), ("g" * 127, 200, 1, 0)])
        self.assertIn(b'workqueue_depth{name="q",priority="-7"} 1\n', self.ask("/metrics")[2])

    def test_keys_left_over(self):
        """What waits in a queue that is shut down is left over; what failed is told from what was delayed."""
        self.tell("queue", "q")
        self.tell("after", "q", 9 * SECOND, "late")
        self.tell("add", "q", "failed")
        self.tell("retry", "q")
        self.tell("add", "q", "held")
        self.tell("get", "q")
        self.tell("after", "q", 2**63 - 1, "held")

        def shown(state):
            return [(k["key"], k["state"], k["due_ns"], k["age_ns"]) for k in self.keys("q", state=state)["keys"]]

        due = 1000 * SECOND + 5_000_000
        self.assertEqual(shown("waiting"), [("failed", ["waiting", "retrying"], due, None), ("late", ["waiting"], 1009 * SECOND, None),
                                            ("held", ["running", "waiting"], None, 0)])
        self.tell("shut", "q")
        left = [("failed", ["left", "retrying"], due, None), ("late", ["left"], 1009 * SECOND, None), ("held", ["running", "left"], None, 0)]
        self.until(lambda: shown("left") == left)
        self.assertEqual(shown("waiting"), [])

    def test_keys_anew(self):
        self.tell("queue", "q")
        self.assertEqual(self.names("q"), [])
        self.tell("add", "q", "new")
        self.until(lambda: self.names("q") == ["new"])

    def test_failing(self):
        self.tell("queue", "q")
        for key, times in (("once", 1), ("thrice", 3), ("twice", 2), ("fine", 0)):
            self.tell("add", "q", key)
            for _ in range(times):
                self.tell("retry", "q")
                self.tell("advance", 1 * SECOND)
            self.tell("get", "q")
        found = self.keys("q", state="failing")["keys"]
        self.assertEqual([(k["key"], k["failures"]) for k in found], [("thrice", 3), ("twice", 2), ("once", 1)])

    def test_the_best_of_many(self):
        """The heap keeps the oldest, whatever order a walk shows them in; equal ones go by key."""
        self.tell("queue", "q")
        for i in range(300):
            self.tell("add", "q", f"k{i * 7 % 300:03}")
            if i % 3 == 2:
                self.tell("advance", 1)
        expected = [k for _, k in sorted(((i // 3), f"k{i * 7 % 300:03}") for i in range(300))]
        for limit in (1, 2, 7, 100, 299, 300, 1000):
            self.assertEqual(self.names("q", state="queued", limit=limit), expected[:limit], limit)

    def test_hostile_names(self):
        """Quotes, line feeds, slashes, markup: all of it comes out as JSON."""
        names = [b'q"uo\\te', b"line\nfeed\ttab\x01\x7f", b"a/b/keys", b"<script>alert(1)</script>", b"%2f%zz", b"?a=b&c#d",
                 "grün 🐢".encode(), b" ", b"+", b"x" * 255]
        for name in names:
            self.tell("queue", name)
            self.tell("add", name, name)
        for name in names:
            shown = name.decode()
            answer = self.keys(name)
            self.assertEqual(answer["name"], shown)
            self.assertEqual([(k["key"], k["len"]) for k in answer["keys"]], [(shown[:127], len(name))])
            self.assertEqual(len(self.keys(name, match=name)["keys"]), 1)
        listed = [q["name"] for q in self.json("/api/queues")["queues"]]
        self.assertEqual(len(listed), len(names))

    def test_hostile_keys(self):
        self.tell("queue", "q")
        keys = [bytes([i]) for i in range(256)] + [b"a\0b", b"\xe2\x82", b"\xe2(\x82", b"bad\xff\xc0\xaf\xed\xa0\x80end", b"y" * 65536]
        for key in keys:
            self.tell("add", "q", key)
        found = self.keys("q", limit=1000)["keys"]
        self.assertEqual(len(found), len(keys))
        self.assertIn("\0", [k["key"] for k in found])
        self.assertIn("\ufffd(\ufffd", [k["key"] for k in found])
        self.assertIn("bad" + "\ufffd" * 6 + "end", [k["key"] for k in found])
        self.assertIn(("y" * 127, 65536), [(k["key"], k["len"]) for k in found])
        self.assertEqual(self.names("q", match=b"\0b"), ["a\0b"])
        # No character is cut in two: there are 126 bytes, 125 and 124 before it; and 127, where it is cut off whole.
        for before, char in ((126, "ü"), (125, "€"), (126, "€"), (124, "🐢"), (125, "🐢"), (126, "🐢"), (127, "🐢"), (125, "ü"), (124, "€"), (123, "🐢")):
            key = "z" * (before - 4) + f"{before}" + str(len(char.encode())) + char
            self.tell("add", "q", key + "end")
            fits = before + len(char.encode()) <= 127
            self.until(lambda: [key[: before + fits]] == self.names("q", match=key))
        # Bytes that are no characters are shown as such to the end.
        self.tell("add", "q", b"w" * 120 + b"\x80" * 20)
        self.until(lambda: self.names("q", match=b"ww") == ["w" * 120 + "\ufffd" * 7])
        # What is cut off is looked through as well.
        self.assertEqual(len(self.names("q", match=b"y" * 200)), 1)

    def test_bad_queries(self):
        self.tell("queue", "q")
        for query, word in (("state=sleeping", "state"), ("state=Queued", "state"), ("limit=0", "limit"), ("limit=1001", "limit"),
                            ("limit=-1", "limit"), ("limit=1e2", "limit"), ("limit=", "limit"), ("limit", "limit"),
                            ("limit=99999999999999999999", "limit"), ("match=%zz", "match"), ("match=%4", "match"),
                            ("match=" + "x" * 257, "match"), ("colour=red", "parameters"), ("limit=5&limit=0", "limit")):
            error = self.json("/api/queues/q/keys?" + query, 400)["error"]
            self.assertIn(word, error, query)
        self.assertIn("name", self.json("/api/queues/%g0/keys", 400)["error"])
        for query in ("", "?", "?state=", "?match=", "?limit=1", "?limit=1000", "?match=" + "x" * 256):
            self.until(lambda: self.ask("/api/queues/q/keys" + query)[0] != 503)
            self.assertEqual(self.json("/api/queues/q/keys" + query)["keys"], [], query)

    def test_not_found(self):
        self.tell("queue", "q")
        for path in ("/nothing", "/metrics/", "//", "/api", "/api/", "/api/queues/", "/api/queues/q", "/api/queues/q/", "/api/queues//keys",
                     "/api/queues/none/keys", "/api/queues/q%00/keys", "/api/queues/" + "x" * 256 + "/keys", "/metrics%00",
                     "/%6detrics", "/../metrics", "/favicon.ico"):
            self.assertIn("no such", self.json(path, 404)["error"], path)

    def test_a_queue_that_goes(self):
        self.tell("queue", "q")
        self.keys("q")
        self.tell("free", "q")
        self.until(lambda: self.ask("/api/queues/q/keys")[0] == 404)

    def test_methods(self):
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW", "get"):
            code, headers, body = self.ask("/metrics", method)
            self.assertEqual((code, headers["Allow"]), (405, "GET, HEAD"), method)
            self.assertIn("GET", json.loads(body)["error"])
        c = http.client.HTTPConnection("127.0.0.1", self.program.port, timeout=PATIENCE)
        c.request("POST", "/metrics", b"x" * 1000)
        self.assertEqual(c.getresponse().status, 405)
        c.close()

    def test_head(self):
        self.tell("queue", "q")
        for path in ("/", "/healthz", "/metrics", "/api/queues", "/api/queues/q/keys", "/nothing"):
            self.until(lambda: self.ask(path)[0] != 503)
            code, headers, body = self.ask(path, "HEAD")
            self.assertEqual(body, b"")
            self.assertEqual(code, 404 if path == "/nothing" else 200)
            self.assertGreater(int(headers["Content-Length"]), 0, path)

    def test_curl(self):
        if not shutil.which("curl"):
            self.skipTest("curl is not installed")
        said = subprocess.run(["curl", "-sS", "--fail", "--max-time", str(PATIENCE), f"http://127.0.0.1:{self.program.port}/healthz"],
                              capture_output=True, check=True)
        self.assertEqual(said.stdout, b"ok\n")


class Ration(Case):
    def test_walks_are_rationed(self):
        """Of different listings of a large queue some are refused, with a time to come again; what is there is shown, old as it is."""
        self.program.start()
        self.tell("queue", "q")
        self.tell("fill", "q", 400000)
        began = time.monotonic()
        first = self.json("/api/queues/q/keys?match=0&limit=1")
        self.assertEqual((first["looked"], first["keys"][0]["key"]), (400000, "key-0000000"))
        asked = 0

        def refused():
            nonlocal asked
            asked += 1
            code, headers, body = self.ask(f"/api/queues/q/keys?match={asked}")
            self.assertIn(code, (200, 503))
            return code == 503 and (headers, body)

        headers, body = self.until(refused)
        self.assertGreaterEqual(int(headers["Retry-After"]), 1)
        self.assertIn("error", json.loads(body))
        self.assertEqual(self.ask("/api/queues/none/keys")[0], 404)
        self.tell("advance", 1)
        self.until(lambda: time.monotonic() > began + 1.1)
        self.until(refused)
        self.assertEqual(self.json("/api/queues/q/keys?match=0&limit=1"), first)
        self.assertEqual(self.json("/api/queues/q/keys?match=0&limit=1&state=queued")["keys"], first["keys"])


class Hosts(Case):
    """A web site whose name leads here is not answered, whatever its browser asks for."""

    def status(self, host, path="/healthz"):
        return self.ask(path, headers={"Host": host})[0]

    def expect(self, ours, others):
        for host in ours:
            for name in (host, host + ":", f"{host}:{self.program.port}", host.upper()):
                self.assertEqual(self.status(name), 200, name)
        for host in others:
            for name in (host, f"{host}:{self.program.port}"):
                self.assertEqual(self.status(name), 421, name)

    OTHERS = ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "127.1", "128.0.0.1", "10.0.0.1", "xlocalhost", "", "[", "]",
              "[::1", "[::2]", "[evil.example]", "::1", "localhost:80:80", "localhost:x", "127.0.0.1 ", "localhost/", "[::1]x", "a" * 300)
    OURS = ("localhost", "127.0.0.1", "127.255.0.9", "[::1]")

    def test_loopback(self):
        self.program.start()
        # Blanks at the end are not part of a header.
        self.expect(self.OURS, [h for h in self.OTHERS if h == h.strip()])

    def test_every_path(self):
        self.program.start()
        self.tell("queue", "q")
        for path in ("/", "/metrics", "/api/queues", "/api/queues/q/keys", "/nothing"):
            code, headers, body = self.ask(path, headers={"Host": "evil.example"})
            self.assertEqual((code, headers["Access-Control-Allow-Origin"]), (421, None), path)
            self.assertIn("name", json.loads(body)["error"])

    def test_several(self):
        """One that is ours does not hide one that is not."""
        self.program.start()
        for pair in ((b"evil.example", b"localhost"), (b"localhost", b"evil.example")):
            got = raw(self.connect(), b"GET /healthz HTTP/1.1\r\nHost: %s\r\nHost: %s\r\nConnection: close\r\n\r\n" % pair)
            self.assertIn(int(got.split()[1]), (400, 421), pair)

    def test_names(self):
        self.program.start(hosts="wq.example,Queues.Example,fe80::1")
        self.expect(self.OURS + ("wq.example", "queues.example", "[fe80::1]"), ("evil.example", "example", "wq.example.evil.example", ""))

    def test_other_addresses(self):
        """Anybody may ask by any name, unless names are given."""
        self.program.start("0.0.0.0")
        self.expect(("evil.example", "localhost"), ())
        self.tell("stop")
        self.program.start("0.0.0.0", hosts="wq.example")
        self.expect(self.OURS + ("wq.example", "0.0.0.0"), ("evil.example", "10.0.0.1"))

    def test_an_empty_name(self):
        for hosts in (",", "wq.example,"):
            with self.assertRaises(Refused) as why:
                self.program.start(hosts=hosts)
            self.assertEqual(why.exception.args[0], "WQ_EINVAL")


class Addresses(Case):
    def test_loopback_alone(self):
        if not shutil.which("ss"):
            self.skipTest("ss is not installed")
        port = self.program.start()
        said = subprocess.run(["ss", "-Hltn", f"sport = :{port}"], capture_output=True, text=True, check=True).stdout
        self.assertEqual([line.split()[3] for line in said.splitlines()], [f"127.0.0.1:{port}"])

    def test_ipv6(self):
        try:
            self.program.start("::1")
        except Refused as why:
            self.skipTest(f"no IPv6 loopback here: {why}")
        self.assertEqual(self.ask("/healthz", host="::1")[0], 200)
        with self.assertRaises(ConnectionRefusedError):
            self.connect()

    def test_all_of_ipv6(self):
        """Not of IPv4 as well: who gives one address gets that."""
        try:
            self.program.start("::")
        except Refused as why:
            self.skipTest(f"no IPv6 here: {why}")
        self.assertEqual(self.ask("/healthz", host="::1")[0], 200)
        with self.assertRaises(ConnectionRefusedError):
            self.connect()

    def test_again_on_the_same_port(self):
        port = self.program.start()
        self.assertEqual(self.ask("/healthz")[0], 200)
        for _ in range(3):
            self.tell("stop")
            self.assertEqual(self.program.start(port=port), port)
            self.assertEqual(self.ask("/healthz")[0], 200)


if __name__ == "__main__":
    main()
