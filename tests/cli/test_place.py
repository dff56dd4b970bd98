"""Where a run's socket is, and for whom: names, modes, groups, rights."""
import json
import os
import resource
import stat
import subprocess
import unittest

import rig
from rig import Case, main
from served import Served

ROOT = unittest.skipUnless(os.geteuid() == 0, "only root can be another user")
OTHER, GROUP, MEMBER = 65534, 54321, 54322  # a user, the group that may feed, another of his groups


class Named(Case):
    def setUp(self):
        super().setUp()
        self.runtime = self.dir / "runtime"
        self.runtime.mkdir(mode=0o700)
        self.env["XDG_RUNTIME_DIR"] = str(self.runtime)

    def serve(self, name, *args, command=("true",)):
        p = self.start("run", "--socket", name, *args, "--", *command, stdin=subprocess.DEVNULL)
        self.until(lambda: self.wq("status", "-s", name).returncode == 0 or p.poll() is not None)
        return p

    def fails(self, *args, message, status=2, env=None):
        p = self.wq(*args, env=env)
        self.assertEqual(p.returncode, status, (args, p.stderr))
        self.assertIn(message, p.stderr.decode())

    def test_name(self):
        """The folder is made, for its user alone, and all clients find it."""
        before = os.umask(0)
        try:
            p = self.serve("build")
        finally:
            os.umask(before)
        self.assertIn(f"listens on {self.runtime}/wq/build\n".encode(), p.stderr.readline())
        self.assertEqual(stat.S_IMODE(os.stat(self.runtime / "wq").st_mode), 0o700)
        self.assertEqual(stat.S_IMODE(os.stat(self.runtime / "wq" / "build").st_mode), 0o600)
        self.assertEqual(self.wq("add", "-s", "build", "k").returncode, 0)
        self.assertEqual(self.wq("wait", "k", env={"WQ_SOCKET": "build"}).returncode, 0)
        self.assertEqual(self.wq("drain", "--socket=build").returncode, 0)
        self.assertEqual(p.wait(rig.PATIENCE), 0)
        self.assertEqual(os.listdir(self.runtime / "wq"), [])

    def test_default(self):
        """Nothing names it: `wq` is meant."""
        self.fails("status", status=1,
                   message=f"no run listens on {self.runtime}/wq/wq; name another by --socket=NAME or PATH, or by WQ_SOCKET")
        self.serve("other")
        self.fails("status", status=1, message="no run listens on")
        self.serve("wq")
        self.assertEqual(self.wq("add", "k").returncode, 0)
        self.assertEqual(self.wq("status", env={"WQ_SOCKET": ""}).returncode, 0)
        # What was meant to name one, and is empty, is no default.
        self.fails("status", "-s", "", message="no run is named: use --socket=NAME or PATH, or WQ_SOCKET")

    def test_two_names(self):
        one, two = self.serve("one", "--name=1"), self.serve("two", "--name=2")
        names = [json.loads(self.wq("status", "-s", n, "--json").stdout)["name"] for n in ("one", "two")]
        self.assertEqual(names, ["1", "2"])
        self.fails("run", "--socket=one", "--", "true", message="another run listens on it", status=1)
        # A stale one is taken over.
        one.kill()
        one.wait()
        again = self.serve("one")
        self.assertIsNone(again.poll())
        two.terminate()

    def test_bad_names(self):
        for name in (".", "..", ".x", "-x", "a b", "a\n", "é", "x" * 65, "a:b", "$x", "\x1b"):
            for args in (("run", f"--socket={name}", "--", "true"), ("status", f"--socket={name}")):
                self.fails(*args, message="the name of a socket is up to 64 letters, digits and _.@+-")
        self.assertEqual(os.listdir(self.runtime), [])

    def test_too_long_a_folder(self):
        deep = self.runtime / ("x" * 100)
        deep.mkdir(mode=0o700)
        self.fails("run", "--socket=a", "--", "true", message="at most 107 bytes", status=1,
                   env={"XDG_RUNTIME_DIR": str(deep)})
        self.fails("status", "-s", "a", message="at most 107 bytes", status=1, env={"XDG_RUNTIME_DIR": str(deep)})

    def test_no_folder(self):
        for env in ({"XDG_RUNTIME_DIR": str(self.dir / "nowhere")}, {"XDG_RUNTIME_DIR": "/dev/null"}):
            for args in (("run", "--socket=a", "--", "true"), ("status", "-s", "a")):
                self.fails(*args, message="no folder for named sockets", env=env)
            self.fails("status", message="no run is named: use --socket=NAME or PATH, or WQ_SOCKET", env=env)
        # Where others may write it would not be safe.
        os.chmod(self.runtime, 0o777)
        self.fails("run", "--socket=a", "--", "true", message="is not a folder that only this user can write to")

    def test_without_the_variable(self):
        """/run/user/UID, if it is there and ours; else it is said what to do."""
        del self.env["XDG_RUNTIME_DIR"]
        theirs = f"/run/user/{os.geteuid()}"
        p = self.wq("status", "-s", "no-such-run")
        if os.path.isdir(theirs) and os.stat(theirs).st_uid == os.geteuid():
            self.assertIn(f"no run listens on {theirs}/wq/no-such-run", p.stderr.decode())
        else:
            self.assertEqual(p.returncode, 2)
            self.assertIn(f"{theirs} is not a folder that only this user can write to; set XDG_RUNTIME_DIR, or give a "
                          "path with a slash: ./no-such-run", p.stderr.decode())

    def test_a_folder_of_another(self):
        (self.runtime / "wq").mkdir(mode=0o700)
        os.chmod(self.runtime / "wq", 0o777)
        self.fails("run", "--socket=a", "--", "true", message="is not a folder that only this user can write to", status=1)

    def test_usage(self):
        for mode in ("", "0", "0400", "660x", "1660", "0777", "u+w", "00660", "-1"):
            self.fails("run", "--socket=./s", f"--socket-mode={mode}", "--", "true", message="--socket-mode")
        for group in ("", "no such group", "-1", "4294967295"):
            self.fails("run", "--socket=./s", f"--socket-group={group}", "--", "true",
                       message="the name or the number of a group")
        self.fails("run", "--socket-mode=0660", "--", "true", message="go with --socket")
        self.fails("run", "--socket-group=0", "--", "true", message="go with --socket")
        self.fails("run", "--socket=a", "--socket-mode=0660", "--", "true", message="for others give a path")
        self.assertEqual(os.listdir(self.runtime), [])
        self.assertFalse((self.dir / "s").exists())


def be(uid, gid, *groups):
    """For preexec_fn: another user, with these groups."""
    def change():
        os.setgroups(groups)
        os.setgid(gid)
        os.setuid(uid)
    return change


@ROOT
class Others(Served):
    member = staticmethod(be(OTHER, MEMBER, GROUP))
    primary = staticmethod(be(OTHER, GROUP))
    stranger = staticmethod(be(OTHER, MEMBER))

    def opened(self, *args, command=("sh", "-c", "case $1 in bad*) exit 100;; esac", "sh"), **kwargs):
        os.chmod(self.dir, 0o755)
        self.serve(*args, command=command, **kwargs)

    def by(self, who, *args, status=0):
        p = self.wq(args[0], "-s", "./s", *args[1:], preexec_fn=who)
        self.assertEqual(p.returncode, status, (args, p.stderr))
        return p.stderr.decode()

    def test_group(self):
        self.opened(f"--socket-group={GROUP}")
        st = os.stat(self.dir / "s")
        self.assertEqual((stat.S_IMODE(st.st_mode), st.st_gid, st.st_uid), (0o660, GROUP, 0))
        for who in (self.member, self.primary):
            self.by(who, "add", "k")
            self.by(who, "wait", "k")
            self.by(who, "add", "--wait", "bad", status=123)
            self.by(who, "status")
        self.assertIn("Permission denied", self.by(self.stranger, "add", "k", status=1))
        os.chmod(self.dir / "s", 0o666)
        self.assertIn("another user's: it takes nothing from user 65534", self.by(self.stranger, "add", "k", status=1))
        self.assertEqual(self.status()["given"], 4)

    def test_feeding_is_not_controlling(self):
        """Least privilege: who may give keys can neither end the run nor see or change what others gave."""
        self.opened("--socket-mode=0666")
        self.ask("pause")
        self.ask("add", "--after=1h", "mine")
        for args in (["ls"], ["top"], ["retry", "mine"], ["cancel", "mine"], ["cancel", "--kill", "mine"],
                     ["forget", "mine"], ["pause"], ["resume"], ["set", "workers=9"], ["drain"], ["stop"],
                     ["stop", "--no-wait"]):
            said = self.by(self.stranger, *args, status=1)
            self.assertIn("only the run's own user and root may do that; user 65534 may give keys, wait for them, and "
                          "ask for the status", said, args)
        s = self.status()
        self.assertEqual((s["phase"], s["paused"], s["waiting"], s["workers"] != 9), ("open", True, 1, True))
        # Root and its own user may everything.
        self.ask("cancel", "mine")

    def test_lines(self):
        self.opened("--socket-mode=0666")
        p = subprocess.run(["python3", "-c", "import socket\n"
                            "s = socket.socket(socket.AF_UNIX); s.connect('s'); s.sendall(b'key\\n')"], cwd=self.dir,
                           preexec_fn=self.stranger, timeout=rig.PATIENCE)
        self.assertEqual(p.returncode, 0)
        self.until_status(done=1)

    def test_mode_without_a_group(self):
        """0620 and the like mean what they mean to the kernel: a group is not the others."""
        self.opened("--socket-mode=0606", f"--socket-group={GROUP}")
        self.by(self.stranger, "add", "k")
        self.assertIn("Permission denied", self.by(self.member, "add", "k", status=1))
        os.chmod(self.dir / "s", 0o666)
        self.assertIn("another user's", self.by(self.member, "add", "k", status=1))

    def test_they_come_and_go(self):
        limit = 64 + 8 + 16
        self.opened("-j1", "--socket-mode=0666",
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
        for i in range(12):
            self.by(self.stranger, "add", f"{i}")
        self.until_status(done=12)

    def test_a_service_user(self):
        """The run is the service's; its group feeds it, and root controls it."""
        os.chmod(self.dir, 0o777)
        self.serve("--socket-mode=0660", f"--socket-group={GROUP}", preexec_fn=be(1, 1, GROUP))
        self.by(self.member, "add", "k")
        self.assertEqual(os.stat(self.dir / "s").st_gid, GROUP)
        self.ask("drain")
        self.assertEqual(self.ended(), 0)

    def test_the_group_of_root(self):
        """Its number is 0, and it is a group like others."""
        for group in ("0", "root"):
            self.opened(f"--socket-group={group}", preexec_fn=be(0, MEMBER))
            st = os.stat(self.dir / "s")
            self.assertEqual((stat.S_IMODE(st.st_mode), st.st_gid), (0o660, 0))
            self.by(be(OTHER, MEMBER, 0), "add", "k")
            self.ask("drain")
            self.assertEqual(self.ended(), 0)

    def test_not_a_member(self):
        os.chmod(self.dir, 0o777)
        p = self.wq("run", "--socket=./s", f"--socket-group={GROUP}", "--", "true", preexec_fn=self.stranger)
        self.assertEqual(p.returncode, 1)
        self.assertIn(f"./s cannot be given to group {GROUP}: Operation not permitted".encode(), p.stderr)
        self.assertFalse((self.dir / "s").exists())

    def test_group_before_anyone_connects(self):
        """In many starts one of the group that the file is born with never gets in."""
        os.chmod(self.dir, 0o755)
        spy = subprocess.Popen(["python3", "-c", """if 1:
            import os, socket, sys
            print("ready", flush=True)
            while True:
                s = socket.socket(socket.AF_UNIX)
                try:
                    s.connect("s")
                except ConnectionRefusedError:
                    pass
                except (FileNotFoundError, PermissionError):
                    continue
                else:
                    print("connected", os.stat("s").st_gid, oct(os.stat("s").st_mode), flush=True)
                finally:
                    s.close()
                """], cwd=self.dir, preexec_fn=be(OTHER, 0), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(spy.wait)
        self.addCleanup(spy.kill)
        self.assertEqual(spy.stdout.readline(), b"ready\n")
        for _ in range(20):
            p = self.start("run", "--socket=./s", f"--socket-group={GROUP}", "--", "true", stdin=subprocess.DEVNULL)
            self.until(lambda p=p: b"listens on" in p.stderr.readline())
            st = os.stat(self.dir / "s")
            self.assertEqual((st.st_gid, stat.S_IMODE(st.st_mode)), (GROUP, 0o660))
            p.terminate()
            p.wait(rig.PATIENCE)
        spy.kill()
        self.assertEqual(spy.stdout.read(), b"")

    def test_others_do_not_take_all_the_room(self):
        """Half of the connections, and no more."""
        limit = 64 + 8 + 40
        late = self.dir / "late"
        late.touch()
        # None of them is idle for a second before it is late.
        self.opened("-j1", "--socket-mode=0666", env=self.shim(f"clock:1000000:{late}"),
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
        crowd = subprocess.Popen(["python3", "-c", """if 1:
            import socket, sys
            conns = []
            for i in range(30):
                c = socket.socket(socket.AF_UNIX)
                c.connect("s")
                conns.append(c)
            print(conns[29].recv(1000).decode(), end="", flush=True)
            sys.stdin.read()
            """], cwd=self.dir, preexec_fn=self.stranger, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(crowd.communicate)
        self.assertIn(b"no room for so many connections of other users", crowd.stdout.readline())
        self.assertLessEqual(self.status()["connections"], 21)
        # Nor does one of them take it from the others: who is idle makes way.
        for i in range(1, 4):
            os.truncate(late, 2 * i)
            self.until(lambda: self.wq("status", "-s", "./s", preexec_fn=be(OTHER + 1, MEMBER)).returncode == 0,
                       "room for another guest")
        self.assertLessEqual(self.status()["connections"], 21)


if __name__ == "__main__":
    main()
