"""The live page in Debian's Chromium, driven through its own driver.

    test_page.py [--serve <program>] [--screenshot <file>] [<test>...]

Live works on a real queue behind a real server, tests/page/serve.c; without --serve it is skipped.
Exact works on fake.py, where figures have to be exact or hostile. Exit code 77: no browser here.
--screenshot keeps a picture of the page, two minutes into its life, instead of testing it.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import fake

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "../../src/http/page.html")
HOSTILE = '<img src=x onerror="window.hacked=1">'
SOON = 30  # s: how long to wait for what has to happen

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    webdriver = None

options = argparse.Namespace(serve=None, screenshot=None)
browser = None


def start_browser():
    o = Options()
    o.binary_location = shutil.which("chromium")
    # As root there is no sandbox; the browser sees nothing but loopback.
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run",
                 "--disable-background-networking", "--no-proxy-server", "--hide-scrollbars", "--window-size=1100,900"):
        o.add_argument(word)
    o.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=o)


class Server:
    """tests/page/serve.c, on a port of its own choice or on a given one."""

    def __init__(self, port=0, *keys):
        self.process = subprocess.Popen([options.serve, str(port), *keys], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the server did not start: exit code {self.process.wait()}")
        self.port = int(line)

    def stop(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(timeout=SOON)


class PageTest(unittest.TestCase):
    lossy = False  # may the console speak of requests that failed?

    def setUp(self):
        self.size(1100, 900)
        self.scheme("light")

    def tearDown(self):
        browser.get("about:blank")

    def open(self, server, where=""):
        browser.get("about:blank")
        browser.get_log("browser")
        browser.get(f"http://127.0.0.1:{server.port}/{where}")

    def no_errors(self):
        """Nothing was said on the console since the page was opened."""
        said = [e["message"] for e in browser.get_log("browser")]
        if self.lossy:
            said = [m for m in said if "net::ERR_" not in m and "404" not in m and "503" not in m]
        self.assertEqual(said, [])

    def js(self, code, *args):
        return browser.execute_script(code, *args)

    def wait(self, what, check):
        """Until check() answers something true, which is returned."""
        return WebDriverWait(browser, SOON, poll_frequency=0.1).until(lambda _: check(), what)

    def size(self, width, height):
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})

    def scheme(self, name):
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                {"features": [{"name": "prefers-color-scheme", "value": name}]})

    def names(self):
        return self.js("return [...document.querySelectorAll('.queue h2')].map((e) => e.textContent)")

    def text(self, queue, selector):
        """The text of what the selector finds in the queue of this name; None: nothing."""
        return self.js("""const q = [...document.querySelectorAll('.queue')]
            .find((e) => e.querySelector('h2').textContent === arguments[0]);
            const e = q && q.querySelector(arguments[1]);
            return e ? e.textContent : null""", queue, selector)

    def keys(self, queue, which):
        """The rows of a list: a list of texts each; none if the queue is not shown yet."""
        return self.js("""const q = [...document.querySelectorAll('.queue')]
            .find((e) => e.querySelector('h2').textContent === arguments[0]);
            return !q ? [] : [...q.querySelectorAll(`table.${arguments[1]} tbody tr:not(.none)`)]
                .map((r) => [...r.children].map((c) => c.textContent))""", queue, which)

    def total(self, queue, name):
        return int(self.text(queue, f"[data-total={name}]"))

    def status(self):
        return self.js("return document.getElementById('word').textContent")


@unittest.skipUnless("--serve" in sys.argv, "libwq-http is not built")
class Live(PageTest):
    def setUp(self):
        super().setUp()
        self.server = Server(0, HOSTILE)
        self.open(self.server)
        self.wait("the queues are shown", lambda: self.names() == ["mail", "pods"])

    def tearDown(self):
        super().tearDown()
        if self.server:
            self.assertEqual(self.server.stop(), 0)

    def test_shows_a_working_queue(self):
        self.wait("it is live", lambda: self.status() == "live")
        for which in ("running", "waiting", "failing"):
            self.wait(f"keys that are {which}", lambda: self.keys("pods", which))
        self.wait("rates", lambda: (self.text("pods", "[data-figure=adds]") or "").endswith("/s"))
        self.wait("percentiles", lambda: self.text("pods", "[data-value=work_p99]").startswith("≤ "))
        self.wait("charts", lambda: self.js(
            "return [...document.querySelectorAll('svg.chart path')].filter((p) => /M.*L.*L/.test(p.getAttribute('d') || '')).length") >= 20)
        self.wait("dropped", lambda: self.total("mail", "dead") > 0)
        self.wait("in the headline", lambda: re.fullmatch("[0-9]+ dead", self.text("mail", "summary .mark")))
        due = [row[1] for row in self.keys("pods", "waiting")]
        self.assertTrue(all(d in ("now", "gone") or d.startswith("in ") for d in due), due)
        self.no_errors()

    def test_numbers_move(self):
        def figures():
            return self.total("pods", "adds"), self.total("pods", "finished"), self.total("mail", "adds")

        first = self.wait("figures", lambda: figures() if min(figures()) > 0 else None)
        self.wait("all of them grow", lambda: all(a > b for a, b in zip(figures(), first)))
        chart = "return document.querySelectorAll('svg.chart path')[15].getAttribute('d')"
        before = self.js(chart)
        self.wait("the chart goes on", lambda: self.js(chart) != before)
        self.no_errors()

    def test_filters(self):
        self.wait("keys", lambda: any("web" in row[0] for row in self.keys("pods", "waiting")))
        box = browser.find_element(By.ID, "filter")
        box.send_keys("broken-3")
        self.wait("only those", lambda: [r[0] for r in self.keys("pods", "failing")] == ["broken-3"])
        self.wait("listed in whatever state", lambda: [r[0] for r in self.keys("pods", "match")] == ["broken-3"])
        self.wait("the others too", lambda: not any("web" in row[0] for row in self.keys("pods", "waiting")))
        self.assertIn("match=broken-3", browser.current_url)
        browser.refresh()
        self.wait("it is kept", lambda: self.names() and [r[0] for r in self.keys("pods", "failing")] == ["broken-3"])
        box = browser.find_element(By.ID, "filter")
        box.send_keys(Keys.CONTROL, "a")
        box.send_keys(Keys.DELETE)
        self.wait("all are back", lambda: len(self.keys("pods", "failing")) > 1)
        self.no_errors()

    def test_keys_are_text(self):
        self.wait("it is there", lambda: HOSTILE in [r[0] for r in self.keys("pods", "failing")])
        browser.find_element(By.ID, "filter").send_keys(HOSTILE)
        self.wait("it is found", lambda: [r[0] for r in self.keys("pods", "match")] == [HOSTILE])
        self.assertEqual(self.js("return document.querySelectorAll('img, body script ~ script').length"), 0)
        self.assertIsNone(self.js("return window.hacked"))
        self.no_errors()

    def test_lost_and_recovered(self):
        self.lossy = True
        self.js("window.same = 1")
        self.wait("keys", lambda: self.keys("pods", "failing"))
        port, server = self.server.port, self.server
        self.server = None
        self.assertEqual(server.stop(), 0)
        self.wait("it says so", lambda: "lost" in self.status())
        self.assertIn("lost", self.js("return document.title"))
        self.wait("since when", lambda: "ago" in browser.find_element(By.ID, "since").text)
        self.js("scrollTo(0, 500)")
        self.assertTrue(self.js("const r = document.getElementById('word').getBoundingClientRect(); return r.top >= 0 && r.bottom < innerHeight"))
        self.server = Server(port)
        self.wait("it is back", lambda: self.status() == "live")
        first = self.total("pods", "adds")
        self.wait("numbers move", lambda: self.total("pods", "adds") > first)
        self.wait("keys too", lambda: self.keys("pods", "failing"))
        self.assertEqual(self.js("return window.same"), 1)
        self.no_errors()


class Exact(PageTest):
    def setUp(self):
        super().setUp()
        self.server = fake.Fake(PAGE)
        self.step = 0

    def tearDown(self):
        super().tearDown()
        self.server.close()

    def steady(self):
        """A second of the queue's time passes at each look: 50 adds, 20 finished, 10 retries."""
        self.step += 1
        n = self.step
        return [fake.picture("pods", now_ns=n * 10**9, queued=1234567, dirty=3, waiting=12, running=4, adds=50 * n, retries=10 * n,
                             work=fake.histogram(b4=10 * n, b6=10 * n, sum_ns=20 * 3_456_000 * n),
                             queue=fake.histogram(b2=98 * n, b12=2 * n, sum_ns=10**9 * n))]

    def serve(self, queues, where=""):
        self.server.queues = queues
        self.open(self.server, where)

    def test_figures(self):
        self.server.keys["pods"] = []
        self.serve(self.steady)
        self.wait("rates", lambda: self.text("pods", "[data-value=adds_rate]") == "50/s")
        self.wait("percentiles", lambda: self.text("pods", "[data-value=queue_p50]") == "≤ 1 µs")
        shown = {name: self.text("pods", f"[data-value={name}]") for name in (
            "queued running waiting finished_rate retries_rate queue_mean queue_p99 work_mean work_p50 work_p99").split()}
        # Means are exact; of percentiles the bucket is known, and no more is said.
        self.assertEqual(shown, {
            "queued": "1.23 M", "running": "4", "waiting": "12", "finished_rate": "20/s", "retries_rate": "10/s",
            "queue_mean": "10.0 ms", "queue_p99": "> 16 min 40 s", "work_mean": "3.46 ms", "work_p50": "≤ 100 µs", "work_p99": "≤ 10 ms"})
        self.assertEqual(self.text("pods", "[data-figure=depth]"), "1.23 M")
        self.assertEqual(self.text("pods", "[data-figure=finished]"), "20/s")
        self.assertEqual(self.text("pods", "[data-total=finished]"), str(20 * self.step))
        self.assertIn("the last 2 min", self.text("pods", ".note"))
        self.no_errors()

    def test_what_keys_bring_along(self):
        """Priority, group and value behind the key, as text; the levels and the busiest groups of the queue."""
        self.server.keys["pods"] = [fake.key("a/1", ["running"], priority=-5, group="a", group_len=1, value=HOSTILE, value_len=64),
                                    fake.key("b", ["running"])]
        self.serve(lambda: [fake.picture("pods", queued=7, running=2, blocked=3, groups=2, merge_failed=0, queued_lower=2,
                                         level=[{"priority": 9, "queued": 1}, {"priority": 0, "queued": 4}],
                                         busiest=[{"name": HOSTILE, "len": 200, "queued": 6, "running": 1}]),
                            fake.picture("plain")], "#open=pods&open=plain")
        self.server.keys["plain"] = []
        self.wait("the keys", lambda: [r[0] for r in self.keys("pods", "running")] ==
                  [f"a/1 priority -5, group a, value {HOSTILE}…", "b"])
        self.assertEqual(self.text("pods", ".levels"), "Queued by priority: 9: 1, 0: 4, lower: 2.")
        self.assertEqual(self.text("pods", ".groups"),
                         f"2 groups, 3 of the queued keys blocked. The busiest: {HOSTILE}… (1 running, 6 queued).")
        shown = self.js("return [...document.querySelectorAll('.levels, .groups')].map((e) => e.checkVisibility())")
        self.assertEqual(shown, [True, True, False, False])
        self.assertIsNone(self.js("return window.hacked"))
        self.no_errors()

    def test_headline(self):
        """The age of the head of the queue, and what needs a person, open or not."""
        self.server.keys.update(calm=[], stuck=[], ordered=[])
        troubles = dict(dead=10000, slow_handlers=1, refused=7, stale=3, left=4)
        self.serve(lambda: [fake.picture("calm", merged=5, marked=5, retries=5, remembered=5), fake.picture("ordered", queued=3),
                            fake.picture("stuck", queued=3, oldest_queued={"key": "a", "len": 1, "age_ns": 98 * 10**9}, **troubles)],
                   "#open=calm&open=ordered")
        self.wait("queues", lambda: self.names() == ["calm", "ordered", "stuck"])
        self.assertEqual([self.text(n, "[data-figure=oldest]") for n in self.names()], ["–", "–", "1 min 38 s"])
        marks = self.js("return [...document.querySelectorAll('summary .mark')].map((e) => e.checkVisibility() ? e.textContent : null)")
        self.assertEqual(marks, [None, None, "10.0 k dead, 1 slow_handlers, 7 refused, 3 stale, 4 left"])
        self.assertEqual(self.text("calm", ".oldest"), "No key is queued.")
        self.assertIn("custom order", self.text("ordered", ".oldest"))
        self.assertEqual(self.js("return document.title"), f"wq 127.0.0.1:{self.server.port}")
        self.no_errors()

    def test_lines_below_the_edge(self):
        """The highest value is not cut off at the top of its chart."""
        self.server.keys["pods"] = []
        self.serve(self.steady)
        self.wait("lines", lambda: self.js(
            "return [...document.querySelectorAll('svg.chart path')].filter((p) => /L/.test(p.getAttribute('d'))).length") == 12)
        tops = self.js("""return [...document.querySelectorAll('svg.chart')].map((c) => Math.min(...[...c.querySelectorAll('path')]
            .flatMap((p) => p.getAttribute('d').match(/ [0-9.]+/g).map(Number))) / c.viewBox.baseVal.height)""")
        self.assertTrue(all(0.05 <= top <= 0.1 for top in tops), tops)
        self.no_errors()

    def test_restarted_queue(self):
        """Its counters begin anew: no rate is made of that, and the old line is gone."""
        self.server.keys["pods"] = []
        self.serve(self.steady)
        self.wait("rates", lambda: self.text("pods", "[data-value=adds_rate]") == "50/s")
        self.server.queues = lambda: [fake.picture("pods", adds=1)]
        self.wait("a new one", lambda: self.text("pods", "[data-total=adds]") == "1" and self.text("pods", "[data-value=adds_rate]") == "0.0/s")
        rates = self.js("return queues.get('pods').samples.map((s) => s.adds_rate)")
        self.assertEqual([r for r in rates if r], [])
        self.no_errors()

    def test_countdown(self):
        now = time.monotonic_ns()
        self.server.keys["pods"] = [
            fake.key("soon", ["waiting"], due_ns=now + 50 * 10**9), fake.key("over", ["waiting"], due_ns=now - 1),
            fake.key("later", ["waiting"], due_ns=now + 2 * 3600 * 10**9 + 59 * 10**9),
            fake.key("never", ["waiting"])]
        self.serve(lambda: [fake.picture("pods", waiting=4, next_due_ns=now - 1)])
        rows = self.wait("keys", lambda: dict(r[:2] for r in self.keys("pods", "waiting")))
        self.assertEqual([rows["over"], rows["later"], rows["never"]], ["now", "in 2 h 00 min", "never"])
        self.assertRegex(rows["soon"], r"^in [1-4][0-9]\.[0-9] s$")

        # It counts on between two answers.
        asked, seen = len([a for a in self.server.asked if "waiting" in a]), set()

        def ticks():
            seen.add(self.keys("pods", "waiting")[1][1])
            return len(seen) > 3
        self.wait("it ticks", ticks)
        self.assertLess(len([a for a in self.server.asked if "waiting" in a]) - asked, 3)
        self.no_errors()

    def test_gone_keys(self):
        """A listing is older than the picture: what that knows to be gone does not tick on."""
        now, s = time.monotonic_ns(), 10**9
        self.server.keys["pods"] = [
            fake.key("stuck", ["running"], running_ns=100 * s), fake.key("ended", ["running"], running_ns=50 * s),
            fake.key("short", ["running"], running_ns=35 * 10**6), fake.key("first", ["waiting"], due_ns=now + 50 * s),
            fake.key("second", ["waiting"], due_ns=now + 60 * s), fake.key("never", ["waiting"])]
        self.gone = False

        def queues():
            at = time.monotonic_ns()
            age = at - now + (10 if self.gone else 100) * s
            return [fake.picture("pods", now_ns=at, running=3, waiting=3, next_due_ns=now + (60 if self.gone else 50) * s,
                                 longest_running={"key": "stuck", "len": 5, "age_ns": age})]
        self.serve(queues)

        def keys():
            rows = {r[0]: r[1] for which in ("running", "waiting") for r in self.keys("pods", which)}
            return rows if len(rows) == 6 else None
        rows = self.wait("keys", keys)
        self.assertRegex(rows["stuck"], r"^1 min 4[0-9] s$")
        self.assertRegex(rows["ended"], r"^5[0-9]\.[0-9] s$")
        self.assertEqual(rows["short"], "35.0 ms")  # too young to be worth ticking
        self.assertRegex(rows["first"], r"^in [0-9.]+ s$")

        # The lists stay as they are.
        self.server.mute = self.lossy = self.gone = True
        gone = "return [...document.querySelectorAll('tr.gone')].map((r) => [...r.children].slice(0, 2).map((c) => c.textContent))"
        self.wait("they are", lambda: self.js(gone) == [["stuck", "ended"], ["ended", "ended"], ["first", "gone"]])
        self.assertEqual([r[:2] for r in self.keys("pods", "running")][2], ["short", "35.0 ms"])
        self.assertEqual([r[1] for r in self.keys("pods", "waiting")][2], "never")
        self.no_errors()

    def test_none_left(self):
        self.server.keys["pods"] = [fake.key("a", ["running"]), fake.key("b", ["waiting"], due_ns=2**62)]
        self.serve(lambda: [fake.picture("pods")])
        self.wait("both are gone", lambda: [self.keys("pods", w) and self.keys("pods", w)[0][1] for w in ("running", "waiting")] == ["ended", "gone"])
        self.no_errors()

    def test_filtered_columns(self):
        """The list of matches stands above the others, which keep their places."""
        self.server.keys["pods"] = [fake.key("a", ["running"])]
        places = """return ['running', 'waiting', 'failing'].map((w) => {
            const r = document.querySelector(`table.${w}`).parentNode.getBoundingClientRect(); return [r.left, r.width]})"""
        for width in (1100, 1600, 700):
            self.size(width, 900)
            self.serve(lambda: [fake.picture("pods")])
            self.wait("lists", lambda: self.names() and self.keys("pods", "running"))
            before = self.js(places)
            browser.find_element(By.ID, "filter").send_keys("a")
            self.wait("matches", lambda: self.keys("pods", "match"))
            self.assertEqual(self.js(places), before)
        self.no_errors()

    def test_hostile_names(self):
        names = ["<b>bold</b>", "a/b?c#d%41&e", "line\nfeed", "späť 😀", HOSTILE]
        shown = ["<b>bold</b>", "a/b?c#d%41&e", "line␊feed", "späť 😀", HOSTILE]
        hostile = ["\u202eright to left", "nul\0", "x" * 5000, "</script><script>window.hacked=2</script>"]
        for name in names:
            self.server.keys[name] = [fake.key(k, ["running"], running_ns=1) for k in hostile]
        self.serve(lambda: [fake.picture(name, oldest_queued={"key": hostile[0] if name == names[0] else HOSTILE, "len": 9, "age_ns": 5})
                            for name in names])
        self.wait("names", lambda: self.names() == shown)
        self.wait("keys", lambda: len(self.keys(shown[1], "running")) == len(hostile))
        self.assertEqual([r[0] for r in self.keys(shown[1], "running")],
                         [hostile[0], "nul␀", "x" * 127 + "…", hostile[3]])
        # What is written from right to left does not turn the words around it.
        self.assertEqual(self.text(shown[0], ".oldest"), f"The oldest queued key: {hostile[0]}, for 5 ns")
        self.assertEqual(self.text(shown[0], ".oldest bdi"), hostile[0])
        self.assertEqual(self.text(shown[1], ".oldest bdi"), HOSTILE)
        self.assertEqual(self.js("return document.querySelectorAll('img, b:not(.figure b), body script').length"), 1)
        self.assertIsNone(self.js("return window.hacked"))
        self.assertTrue(self.js("return document.documentElement.scrollWidth <= innerWidth"))
        self.no_errors()

    def test_markup_is_refused(self):
        """Whoever changes the page to write markup is stopped by its own policy."""
        self.serve([])
        self.wait("it is live", lambda: self.status() == "live")
        self.assertIn("TrustedHTML", self.js(
            "try { document.body.insertAdjacentHTML('beforeend', '<b>x</b>'); return 'written' } catch (e) { return e.message }"))

    def test_unknown_queue(self):
        self.lossy = True
        self.serve([fake.picture("gone")])
        self.wait("it says so", lambda: (self.text("gone", "table.running") or "").endswith("cannot be listed"))
        self.assertEqual(self.status(), "live")
        self.no_errors()

    def test_list_without_answer(self):
        """What is shown stays until there is something newer."""
        self.lossy = True
        self.server.keys["pods"] = [fake.key("a", ["running"], failures=1)]
        self.serve(lambda: [fake.picture("pods")])
        self.wait("keys", lambda: self.keys("pods", "failing"))
        self.server.mute = True
        before = len(self.server.asked)
        self.wait("two rounds", lambda: len([a for a in self.server.asked[before:] if "state=failing" in a]) >= 2)
        self.assertEqual(self.keys("pods", "failing"), [["a", "1", "running"]])
        self.no_errors()

    def test_refused_list(self):
        """503: it is said so, and what there was before stays."""
        self.lossy = self.server.refuse = True
        self.server.keys["pods"] = [fake.key("a", ["running"], failures=1)]
        self.serve(lambda: [fake.picture("pods")])
        self.wait("it says so", lambda: "not listed yet" in (self.text("pods", "table.failing tbody") or ""))
        self.server.refuse = False
        self.wait("keys", lambda: self.keys("pods", "failing"))
        self.server.refuse = True
        before = len(self.server.asked)
        self.wait("two rounds", lambda: len([a for a in self.server.asked[before:] if "state=failing" in a]) >= 2)
        self.assertEqual(self.keys("pods", "failing"), [["a", "1", "running"]])
        self.assertEqual(self.status(), "live")
        self.no_errors()

    def asked_for(self, match):
        return [a for a in self.server.asked if a.endswith(f"&match={match}")]

    def test_late_answer(self):
        """An answer for what was looked for before is not shown as one for what is looked for now."""
        late, later = threading.Event(), threading.Event()
        self.server.keys["pods"] = [fake.key(k, ["running"]) for k in ("apple", "avocado")]
        self.server.before_keys = lambda query: {"a": late, "ap": later}.get(query.get("match"), threading.Event()).wait(SOON if "match" in query else 0)
        self.serve(lambda: [fake.picture("pods", running=2)])
        self.wait("keys", lambda: self.names() and len(self.keys("pods", "running")) == 2)
        box = browser.find_element(By.ID, "filter")
        box.send_keys("a")
        self.wait("asked", lambda: self.asked_for("a"))
        box.send_keys("p")
        self.wait("more", lambda: self.js("return match") == "ap")
        late.set()
        self.wait("asked again", lambda: self.asked_for("ap"))
        self.assertEqual((self.keys("pods", "running"), self.keys("pods", "match")), ([], []))
        later.set()
        self.wait("the one", lambda: [r[0] for r in self.keys("pods", "running")] == ["apple"])
        self.no_errors()

    def test_old_listing(self):
        """Ages and countdowns go on from when the server walked, however long ago that was."""
        s, now = 10**9, time.monotonic_ns()
        self.server.lag_ns = 100 * s
        self.server.keys["pods"] = [fake.key("held", ["running"], running_ns=5 * s), fake.key("soon", ["waiting"], due_ns=now + 50 * s)]
        self.serve(lambda: [fake.picture("pods", running=1, waiting=1, next_due_ns=now,
                                         longest_running={"key": "x", "len": 1, "age_ns": 10000 * s})])
        self.wait("keys", lambda: self.names() and self.keys("pods", "running") and self.keys("pods", "waiting"))
        self.assertRegex(self.keys("pods", "running")[0][1], r"^1 min 4[4-9] s$")
        self.assertRegex(self.keys("pods", "waiting")[0][1], r"^in [1-4]?[0-9]\.[0-9] s$")
        self.no_errors()

    def test_silence(self):
        """No line is drawn across it."""
        self.serve([])
        self.wait("it is live", lambda: self.status() == "live")
        line = self.js("""const c = makeChart(CHARTS[0]);
            drawChart(c, arguments[0].map((at) => ({at, queued: 1, running: 2, waiting: 3})), 14000);
            return c.lines[0].getAttribute('d').replace(/[0-9. ]+/g, '')""", [0, 1000, 2000, 7001, 8000, 13000, 14000])
        self.assertEqual(line, "MLLMLLL")

    def test_window(self):
        """Percentiles are of the last ten seconds, not of all that is known."""
        self.serve([])
        self.wait("it is live", lambda: self.status() == "live")
        times = list(range(0, 15000, 2000))
        pictures = [fake.picture("q", now_ns=t * 10**6, queue=fake.histogram(b9=100 if t else 0, b3=t // 1000, sum_ns=t)) for t in times]
        p99 = self.js("""const out = [];
            arguments[0].forEach((p, i) => out.push(makeSample(p, out, arguments[1][i])));
            return out.map((s) => s.queue_p99 ?? null)""", pictures, times)
        self.assertEqual(p99, [None] + 5 * [10**10] + 2 * [10**4])

    def test_lists_at_once_when_back(self):
        """Whoever sees the server come back need not wait for the lists' own time."""
        self.lossy = True
        self.server.keys["pods"] = []
        self.serve(lambda: [fake.picture("pods")])

        def lists():
            return len([a for a in self.server.asked if "/keys" in a])
        self.wait("lists", lists)
        # Their time does not come any more.
        self.js("""const real = window.setTimeout;
            window.setTimeout = (f, ms) => ms === KEYS_MS ? 0 : real(f, ms);
            for (let i = real(() => 0, 0); i > 0; i--)
                clearTimeout(i);
            queueLoop.now()""")
        self.server.queues = lambda: 1 // 0
        self.wait("it is lost", lambda: "lost" in self.status())
        before = lists()
        self.server.queues = lambda: [fake.picture("pods")]
        self.wait("it is back", lambda: self.status() == "live")
        self.wait("lists", lambda: lists() > before)
        self.no_errors()

    def test_half_a_character(self):
        """The address may say more than can be asked for; what is cut off is whole."""
        self.server.keys["pods"] = [fake.key("a" * 79, ["running"]), fake.key("b", ["running"])]
        self.serve(lambda: [fake.picture("pods", running=2)], "#match=" + "a" * 79 + "%F0%9F%98%80")
        self.wait("it is found", lambda: self.names() and [r[0] for r in self.keys("pods", "match")] == ["a" * 79])
        self.js("filter.value = 'b\\ud83d'; filter.dispatchEvent(new Event('input'))")
        self.wait("by hand, too", lambda: [r[0] for r in self.keys("pods", "match")] == ["b"])
        self.no_errors()

    def test_hanging_server(self):
        """One that takes requests and does not answer is lost, too."""
        go_on = threading.Event()
        self.serve([])
        self.wait("it is live", lambda: self.status() == "live")
        self.server.queues = lambda: [] if go_on.wait(SOON) else None
        self.wait("it says so", lambda: "lost" in self.status())
        go_on.set()
        self.wait("it is back", lambda: self.status() == "live")
        self.no_errors()

    def test_many_queues(self):
        names = ["q%02d" % i for i in range(50)]
        for name in names:
            self.server.keys[name] = [fake.key("key of " + name, ["running"])]
        self.serve(lambda: [fake.picture(name) for name in names])
        self.wait("all", lambda: self.names() == names)
        opened = "return [...document.querySelectorAll('details[open] h2')].map((e) => e.textContent)"
        self.assertEqual(self.js(opened), ["q00"])

        # By keyboard; the address keeps it, and a list is asked for only of what is open.
        second = browser.find_elements(By.CSS_SELECTOR, "summary")[1]
        second.send_keys(Keys.ENTER)
        self.wait("its keys", lambda: self.keys("q01", "running"))
        self.wait("in the address", lambda: browser.current_url.endswith("#open=q00&open=q01"))
        browser.refresh()
        self.wait("the same", lambda: self.js(opened) == ["q00", "q01"])
        self.assertEqual({a.split("/")[3] for a in self.server.asked if "/keys" in a}, {"q00", "q01"})
        for summary in browser.find_elements(By.CSS_SELECTOR, "details[open] summary"):
            summary.click()
        self.wait("none", lambda: self.js(opened) == [] and browser.current_url.endswith("#open="))
        self.no_errors()

    def test_queues_come_and_go(self):
        self.server.keys.update(a=[], b=[], c=[])
        self.serve([])
        self.wait("none", lambda: "No queue" in browser.find_element(By.ID, "queues").text)
        self.server.queues = lambda: [fake.picture(n) for n in "ac"]
        self.wait("two", lambda: self.names() == ["a", "c"])
        self.server.queues = lambda: [fake.picture(n) for n in "abc"]
        self.wait("one between them", lambda: self.names() == ["a", "b", "c"])
        self.server.queues = lambda: [fake.picture(n) for n in "b"]
        self.wait("two less", lambda: self.names() == ["b"])
        self.assertNotIn("No queue", browser.find_element(By.ID, "queues").text)
        self.no_errors()

    def crowded(self):
        """A page with long words in all places."""
        long = "namespace-with-a-long-name/" + "w" * 120
        self.server.keys[long] = self.server.keys["pods"] = [
            fake.key(long + str(i), ["running", "dirty", "waiting"], running_ns=10**15, due_ns=10**18, failures=10**7) for i in range(12)]
        self.serve(lambda: [fake.picture(n, queued=10**9, waiting=10**9, running=10**9, adds=10**12, dead=10**12,
                                         queue=fake.histogram(b12=time.monotonic_ns())) for n in ("pods", long)], "#match=w")
        self.wait("keys", lambda: self.names() and len(self.keys("pods", "match")) == 10)

    def test_phone(self):
        self.crowded()
        self.assertEqual(self.text("pods", "table.running caption"), "Longest running (10 of 12)")
        for width in (390, 320):
            self.size(width, 800)
            self.wait(f"{width} wide", lambda: self.js("return innerWidth") == width)
            self.assertEqual(self.js("""return [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
                .map((e) => e.outerHTML.slice(0, 80))"""), [])
            self.assertLessEqual(self.js("return document.documentElement.scrollWidth"), width)
            # One column: charts stand below each other.
            self.assertEqual(len(set(self.js(
                "return [...document.querySelectorAll('figure')].map((e) => e.getBoundingClientRect().left)"))), 1)
        self.no_errors()

    # The contrast of every text with what is behind it (WCAG 2), the lowest first.
    CONTRAST = """
        const rgb = (c) => c.match(/[0-9.]+/g).map(Number);
        const lum = (c) => rgb(c).slice(0, 3).map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
            .reduce((a, v, i) => a + v * [0.2126, 0.7152, 0.0722][i], 0);
        const behind = (e) => !e ? 'rgb(255,255,255)' : (rgb(getComputedStyle(e).backgroundColor)[3] ?? 1) > 0
            ? getComputedStyle(e).backgroundColor : behind(e.parentElement);
        return [...document.querySelectorAll('body *')].filter((e) => e.checkVisibility() &&
                [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim() !== '') && !e.closest('script, noscript'))
            .map((e) => [lum(getComputedStyle(e).color), lum(behind(e))])
            .map(([a, b]) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)).sort((a, b) => a - b)"""

    def test_light_and_dark(self):
        self.crowded()
        background = "return getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number)"
        for scheme in ("light", "dark"):
            self.scheme(scheme)
            self.wait(scheme, lambda: (max(self.js(background)) < 64) == (scheme == "dark"))
            contrast = self.js(self.CONTRAST)
            self.assertGreater(len(contrast), 100)
            self.assertGreater(contrast[0], 4.5)
        self.no_errors()

    def test_labels(self):
        """What a screen reader says."""
        self.crowded()
        box = browser.find_element(By.ID, "filter")
        self.assertEqual((box.aria_role, box.accessible_name), ("searchbox", "Filter keys"))
        self.assertEqual(self.js("return document.querySelector('#word').getAttribute('role')"), "status")
        charts = browser.find_elements(By.CSS_SELECTOR, "svg.chart")
        self.assertTrue(charts and all(c.accessible_name for c in charts))
        self.assertEqual(self.js("return [...document.querySelectorAll('table')].filter((t) => !t.caption).length"), 0)
        totals = self.js("return [...document.querySelectorAll('.totals div')].map((e) => e.title.length)")
        self.assertTrue(totals and all(n > 10 for n in totals), totals)
        self.no_errors()


def screenshot(path):
    server = Server()
    try:
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                {"width": 1100, "height": 800, "deviceScaleFactor": 1, "mobile": False})
        browser.get(f"http://127.0.0.1:{server.port}/#open=pods")
        WebDriverWait(browser, 300).until(lambda b: b.execute_script(
            "const q = queues.get('pods'); return q && q.samples.length > 114"), "two minutes of samples")
        browser.save_screenshot(path)
    finally:
        server.stop()


def main():
    global browser
    parser = argparse.ArgumentParser()
    parser.add_argument("--serve")
    parser.add_argument("--screenshot")
    parser.add_argument("tests", nargs="*")
    parser.parse_args(namespace=options)
    missing = [name for name in ("chromium", "chromedriver") if not shutil.which(name)] + (["selenium"] if not webdriver else [])
    if missing:
        print(f"skipped: no {', '.join(missing)} (Debian: chromium chromium-driver python3-selenium)")
        return 77
    with tempfile.TemporaryDirectory(prefix="wq-page-") as home:
        os.environ["HOME"] = home  # the browser leaves its things there
        browser = start_browser()
        try:
            if options.screenshot:
                screenshot(options.screenshot)
                return 0
            result = unittest.main(argv=[sys.argv[0], "-v", *options.tests], exit=False).result
        finally:
            browser.quit()
    failed, skipped = len(result.failures) + len(result.errors), len(result.skipped)
    print(f"{result.testsRun - failed - skipped} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
