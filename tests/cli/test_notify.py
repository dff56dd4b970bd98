"""What a service manager is told: a real datagram socket stands for it."""
import os
import signal
import socket
import time

import rig
from rig import Case, main


class Notify(Case):
    def manager(self, name="notify"):
        """The manager's socket, and the environment that names it."""
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(s.close)
        address = "\0" + name[1:] if name.startswith("@") else str(self.dir / name)
        s.bind(address)
        s.settimeout(rig.PATIENCE)
        self.env["NOTIFY_SOCKET"] = name if name.startswith("@") else address
        return s

    def message(self, s):
        """The next message: its lines, as a dictionary."""
        return dict(line.split("=", 1) for line in s.recv(4096).decode().split("\n"))

    def wait_for(self, s, **fields):
        """Messages up to the first that has these fields."""
        seen = []
        end = time.monotonic() + rig.PATIENCE
        while True:
            self.assertLess(time.monotonic(), end, f"{fields} did not come, but {seen[-5:]}")
            seen.append(self.message(s))
            if all(seen[-1].get(k) == v for k, v in fields.items()):
                return seen

    def rest(self, s):
        """What has been sent, once the program has ended."""
        s.setblocking(False)
        seen = []
        while True:
            try:
                seen.append(self.message(s))
            except BlockingIOError:
                return seen

    def fields(self, messages, name):
        return [m[name] for m in messages if name in m]

    # ---- start -------------------------------------------------------------

    def test_ready_first(self):
        s = self.manager()
        p = self.start("run", "--", "true")
        self.assertEqual(self.message(s), {
            "READY": "1", "STATUS": "0 done, 0 running, 0 queued, 0 waiting, 0 dead"})
        p.communicate()
        self.assertEqual(p.returncode, 0)
        self.assertEqual(self.fields(self.rest(s), "READY"), [])

    def test_abstract_name(self):
        s = self.manager(f"@wq-test-{os.getpid()}-{rig.seed}")
        p = self.start("run", "--", "true")
        self.wait_for(s, READY="1")
        p.communicate()
        self.assertEqual(p.returncode, 0)

    def test_longest_path(self):
        room = 107 - len(str(self.dir)) - 1
        s = self.manager("n" * room)
        self.wq("run", "--", "true")
        self.wait_for(s, READY="1")

    def test_not_ready_if_it_cannot_start(self):
        s = self.manager()
        for args in (["--", "/nowhere"], ["-a", "nowhere", "--", "true"], ["--log", "no/where", "--", "true"]):
            self.assertNotEqual(self.wq("run", *args).returncode, 0)
        self.assertEqual(self.rest(s), [])

    def test_no_manager(self):
        for name in ("", None):
            env = {} if name is None else {"NOTIFY_SOCKET": name}
            p = self.wq("run", "--", "true", input="a\n", env=env)
            self.assertEqual((p.returncode, p.stderr), (0, b""))

    def test_bad_names(self):
        for name in ("relative", "@", "/", "vsock:2:3", "/" + "n" * 107):
            p = self.wq("run", "--", "echo", "{}", input="a\n", env={"NOTIFY_SOCKET": name})
            self.assertEqual((p.returncode, p.stdout), (0, b"a\n"), name)
            self.assertRegex(p.stderr, b"NOTIFY_SOCKET=.*: expected", name)

    def test_nobody_listens(self):
        s = self.manager()
        s.close()
        p = self.wq("run", "--", "echo", "{}", input="a\n")
        self.assertEqual((p.returncode, p.stdout), (0, b"a\n"))
        self.assertEqual(p.stderr.count(b"NOTIFY_SOCKET"), 1)

    def test_commands_are_not_told(self):
        self.manager()
        p = self.wq("run", "--", "sh", "-c", "env", input="a\n",
                    env={"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1", "OTHER": "stays"})
        names = [line.split("=")[0] for line in p.stdout.decode().splitlines()]
        self.assertIn("OTHER", names)
        for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"):
            self.assertNotIn(name, names)

    # ---- while it works ----------------------------------------------------

    def test_status_counts(self):
        s = self.manager()
        self.fifo("go")
        p = self.start("run", "-j1", "--retries=0", "--", "sh", "-c",
                       'case $0 in held) touch up; read x <go;; bad) exit 1;; esac', "{}")
        self.wait_for(s, READY="1")
        self.give(p, "held", "b", "c", "bad")
        self.until_file("up")
        self.wait_for(s, STATUS="0 done, 1 running, 3 queued, 0 waiting, 0 dead")
        self.let("go")
        self.wait_for(s, STATUS="3 done, 0 running, 0 queued, 0 waiting, 1 dead")

    def test_status_once_a_second(self):
        s = self.manager()
        keys = "".join(f"{i}\n" for i in range(300))
        begin = time.monotonic()
        p = self.wq("run", "-j4", "--", "true", input=keys)
        seconds = time.monotonic() - begin
        self.assertEqual(p.returncode, 0)
        statuses = self.fields(self.rest(s), "STATUS")
        # One for each second that has begun; a program that tells each turn sends hundreds.
        self.assertLessEqual(len(statuses), 1 + seconds)
        self.assertEqual(len(statuses), len(set(statuses)))

    def test_watchdog(self):
        s = self.manager()
        p = self.start("run", "--", "true", env={"WATCHDOG_USEC": "20000"})
        self.wait_for(s, READY="1")
        # Nothing happens, but it lives.
        for _ in range(5):
            self.wait_for(s, WATCHDOG="1")
        p.communicate()
        self.assertEqual(p.returncode, 0)

    def test_watchdog_at_half_the_time(self):
        s = self.manager()
        begin = time.monotonic()
        p = self.start("run", "--", "true", env={"WATCHDOG_USEC": "300000"})
        for _ in range(4):
            self.wait_for(s, WATCHDOG="1")
        # One at once and three after 150 ms each: late is allowed on a busy machine, early is not.
        self.assertGreaterEqual(time.monotonic() - begin, 0.45)
        p.communicate()

    def test_watchdog_of_another(self):
        s = self.manager()
        # Each turn of the loop would be late.
        for env in ({"WATCHDOG_USEC": "2", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "x"}, {"WATCHDOG_USEC": "0"},
                    {"WATCHDOG_PID": "1"}):
            p = self.wq("run", "-j1", "--", "true", input="a\nb\nc\n", env=env)
            self.assertEqual(p.returncode, 0)
            self.assertEqual(self.fields(self.rest(s), "WATCHDOG"), [], env)

    def test_watchdog_of_this_process(self):
        s = self.manager()
        p = self.start("-c", f'WATCHDOG_PID=$$ exec "{rig.program}" run -- true', executable="/bin/sh",
                       env={"WATCHDOG_USEC": "20000"})
        self.wait_for(s, WATCHDOG="1")
        self.wait_for(s, WATCHDOG="1")
        p.communicate()
        self.assertEqual(p.returncode, 0)

    # ---- the end -----------------------------------------------------------

    def held(self, *options):
        """A run whose command `held` runs until the fifo says so, with two keys behind it."""
        s = self.manager()
        self.fifo("go")
        p = self.start("run", "-j1", *options, "--", "sh", "-c", "case $0 in held) touch up; read x <go;; esac",
                       "{}")
        self.give(p, "held", "b", "c")
        self.until_file("up")
        return s, p

    def test_stopping(self):
        s, p = self.held()
        p.send_signal(signal.SIGTERM)
        seen = self.wait_for(s, STOPPING="1")
        self.assertEqual(seen[-1]["EXTEND_TIMEOUT_USEC"], "15000000")
        self.assertEqual(seen[-1]["STATUS"], "stopping: 0 done, 1 running, 2 queued, 0 waiting, 0 dead")
        self.assertEqual(self.fields(seen[:-1], "EXTEND_TIMEOUT_USEC"), [])
        self.let("go")
        p.communicate()
        self.assertEqual(p.returncode, 75)
        self.assertEqual(self.fields(self.rest(s), "STOPPING"), [])

    def test_stopping_with_nothing_to_do(self):
        s = self.manager()
        p = self.start("run", "--", "true")
        self.wait_for(s, READY="1")
        p.send_signal(signal.SIGTERM)
        self.wait_for(s, STOPPING="1")
        self.assertEqual(p.wait(rig.PATIENCE), 0)

    def test_draining_asks_for_more_time(self):
        s, p = self.held("--on-term=drain")
        begin = time.monotonic()
        p.send_signal(signal.SIGTERM)
        seen = self.wait_for(s, STOPPING="1")
        self.assertTrue(seen[-1]["STATUS"].startswith("draining: "), seen[-1])
        # The next one comes by itself; this is the one test that takes seconds.
        self.wait_for(s, EXTEND_TIMEOUT_USEC="15000000")
        self.assertGreaterEqual(time.monotonic() - begin, 5)
        self.let("go")
        p.communicate()
        self.assertEqual(p.returncode, 0)
        self.assertEqual(self.fields(self.rest(s), "STOPPING"), [])

    def test_end_of_input_is_no_stop(self):
        s, p = self.held()
        p.stdin.close()
        seen = self.wait_for(s, STATUS="finishing: 0 done, 1 running, 2 queued, 0 waiting, 0 dead")
        self.let("go")
        self.assertEqual(p.wait(rig.PATIENCE), 0)
        seen += self.rest(s)
        self.assertEqual(self.fields(seen, "STOPPING") + self.fields(seen, "EXTEND_TIMEOUT_USEC"), [])

    def test_drain_is_a_stop(self):
        s, p = self.held("--socket=./queue", "-a", "-")
        q = self.wq("drain", "--no-wait", "-s", "./queue")
        self.assertEqual((q.returncode, q.stderr), (0, b""))
        seen = self.wait_for(s, STOPPING="1")
        self.assertEqual(seen[-1]["EXTEND_TIMEOUT_USEC"], "15000000")
        self.assertTrue(seen[-1]["STATUS"].startswith("finishing: "), seen[-1])
        self.let("go")
        p.communicate()
        self.assertEqual(p.returncode, 0)

    # ---- a manager that does not read --------------------------------------

    def fill(self, s):
        """Sends to the socket until it takes no more."""
        other = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(other.close)
        other.setblocking(False)
        with self.assertRaises(BlockingIOError):
            while True:
                other.sendto(b"FILL=1", self.env["NOTIFY_SOCKET"])

    def test_never_blocks(self):
        s = self.manager()
        self.fill(s)
        p = self.wq("run", "--", "echo", "{}", input="a\n", env={"WATCHDOG_USEC": "2"})
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, b"a\n", b""))

    def test_ready_is_not_lost(self):
        s = self.manager()
        self.fill(s)
        p = self.start("run", "--", "touch", "{}")
        self.give(p, "up")
        self.until_file("up")
        seen = self.wait_for(s, READY="1")
        self.assertIn({"FILL": "1"}, seen)
        p.communicate()
        self.assertEqual(p.returncode, 0)


if __name__ == "__main__":
    main()
