"""How commands are executed: their words, their surroundings, and what if they cannot be."""
import json
import os
import resource
import signal
import subprocess

import rig
from rig import Case, main


class Words(Case):
    def words(self, *command, input="k e y\n", **kwargs):
        p = self.wq("run", "-j1", "--", "printf", "<%s>", *command, input=input, **kwargs)
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        return p.stdout.decode()

    def test_the_key_everywhere(self):
        self.assertEqual(self.words("{}", "a{}b{}c", "{{}}", "{} {}"),
                         "<k e y><ak e ybk e yc><{k e y}><k e y k e y>")

    def test_the_key_is_appended_if_absent(self):
        self.assertEqual(self.words("a", ""), "<a><><k e y>")
        self.assertEqual(self.words("{#}", "{%}"), "<1><1><k e y>")
        self.assertEqual(self.words("{ }", "{", "}", "{x}", "{#", "{%", "{", "{{"),
                         "<{ }><{><}><{x}><{#><{%><{><{{><k e y>")

    def test_the_key_is_not_appended_if_it_names_the_command(self):
        self.script("do-it", 'echo "$0 $#"')
        p = self.wq("run", "--", "./do-{}", "a", input="it\n")
        self.assertEqual((p.returncode, p.stdout), (0, b"./do-it 1\n"))

    def test_a_key_is_not_expanded_again(self):
        self.assertEqual(self.words("{}{#}", input="{}{#}{%}\n"), "<{}{#}{%}1>")

    def test_no_shell(self):
        key = "$(touch bad) `touch bad`; touch bad > bad & * ~ \\"
        self.assertEqual(self.words("{}", "*", input=key + "\n"), f"<{key}><*>")
        self.assertEqual(os.listdir(self.dir), [])

    def test_attempt_and_worker(self):
        p = self.wq("run", "-j1", "--backoff", "1ms", "--", "sh", "-c",
                    'echo "$1 $2 $WQ_ATTEMPT $WQ_WORKER"; [ $1 = 3 ]', "sh", "{#}", "x{%}y{#}", input="a\n")
        self.assertEqual((p.returncode, p.stdout), (0, b"1 x1y1 1 1\n2 x1y2 2 1\n3 x1y3 3 1\n"))

    def test_workers_have_numbers(self):
        for i in "123":
            self.fifo("go" + i)
        p = self.start("run", "-j3", "--", "sh", "-c", "touch up{%}; read x <go{%}; echo {%}", "sh", "{}")
        self.give(p, "a", "b", "c")
        p.stdin.close()
        for i in "123":
            self.until_file("up" + i)
        for i in "123":
            self.let("go" + i)
        self.assertEqual(sorted(p.stdout.read().split()), [b"1", b"2", b"3"])
        self.assertEqual(p.wait(), 0)


class Surroundings(Case):
    def test_environment(self):
        env = {"WQ_KEY": "old", "WQ_VALUE": "old", "WQ_PRIORITY": "9", "WQ_GROUP": "old", "WQ_ATTEMPT": "9",
               "WQ_WORKER": "9", "MINE": "a b", "NOTIFY_SOCKET": "/no/where", "WATCHDOG_USEC": "99999999", "WATCHDOG_PID": "1"}
        p = self.wq("run", "-j1", "-0", "--", "sh", "-c", "cat /proc/$$/environ", input=b"k\n=\xff\0", env=env)
        self.assertEqual(p.returncode, 0, p.stderr)
        seen = p.stdout.split(b"\0")[:-1]
        self.assertEqual([v for v in seen if v.startswith((b"WQ_", b"NOTIFY", b"WATCHDOG", b"MINE"))],
                         [b"WQ_KEY=k\n=\xff", b"WQ_PRIORITY=0", b"WQ_ATTEMPT=1", b"WQ_WORKER=1", b"MINE=a b"])
        self.assertEqual(len(seen), len(self.env) + 5)

    def test_the_longest_key_in_the_environment(self):
        p = self.wq("run", "--", "sh", "-c", 'printf %s "$WQ_KEY" | wc -c; : {}', input="x" * 65536)
        self.assertEqual((p.returncode, p.stdout.strip()), (0, b"65536"))

    def test_standard_input_is_empty(self):
        p = self.wq("run", "-j1", "--", "sh", "-c", "cat; readlink /proc/self/fd/0", input="a\nb\nc\n")
        self.assertEqual((p.returncode, p.stdout), (0, b"/dev/null\n" * 3))

    def test_current_folder(self):
        self.script("here", "pwd -P")
        for command in ("./here", str(self.dir / "here")):
            p = self.wq("run", "--", command, input="a\n")
            self.assertEqual((p.returncode, p.stdout.decode()), (0, os.path.realpath(self.dir) + "\n"))

    def test_own_process_group(self):
        p = self.start("run", "-j1", "--", "sh", "-c", "cut -d' ' -f1,4,5 /proc/$$/stat")
        self.give(p, "a", "b")
        p.stdin.close()
        for _ in range(2):
            pid, parent, group = map(int, p.stdout.readline().split())
            self.assertEqual(parent, p.pid)
            self.assertEqual(group, pid)
        self.assertEqual(p.wait(), 0)

    def signals(self, prefix, **kwargs):
        p = subprocess.run([*prefix, "grep", "^Sig[BIC]", "/proc/self/status"], input=b"/dev/null\n",
                           capture_output=True, cwd=self.dir, env=self.env, check=True, **kwargs)
        # 32 and 33 belong to the C library, which ignores them in what it spawns.
        return [int(line.split(b":")[-1], 16) & 0x7fffffff for line in p.stdout.splitlines()]

    def test_signals_are_as_they_were(self):
        wq = [rig.program, "run", "--"]
        # Blocked, ignored, caught; grep has the key as a second file, hence the names.
        self.assertEqual(self.signals(wq), self.signals([]))

        def ignore():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGINT, signal.SIG_IGN)

        self.assertEqual(self.signals(wq, preexec_fn=ignore), self.signals([], preexec_fn=ignore))

        def block():
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})

        self.assertEqual(self.signals(wq, preexec_fn=block), self.signals([], preexec_fn=block))

    def test_a_pipe_that_breaks_ends_the_command(self):
        """SIGPIPE is not ignored there, though the program itself ignores it; but if it was before, it stays so."""
        def ignore():
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)

        command = ["run", "--retries=0", "--", "sh", "-c", "kill -PIPE $$; exit 0"]
        p = self.wq(*command, input="a\n")
        self.assertEqual(p.returncode, 123, p.stderr)
        p = self.wq(*command, input="a\n", restore_signals=False, preexec_fn=ignore)
        self.assertEqual(p.returncode, 0, p.stderr)

    def test_no_descriptors_but_three(self):
        (self.dir / "keys").write_text("a\nb\nc\n")
        options = ["-j3", "-a", "keys", "--log=log", "--dead=dead", "--leftover=left", "--metrics-file=metrics",
                   "--backoff=1ms"]
        # The fourth is ls's own.
        command = ["sh", "-c", "[ $WQ_ATTEMPT = 2 ] && ls -x /proc/self/fd"]
        for more in ([], ["--line-buffer", "--tag"], ["--rate=1000/s"]):
            p = self.wq("run", *options, *more, "--", *command, close_fds=True)
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertEqual([line.split()[-4:] for line in p.stdout.splitlines()], [[b"0", b"1", b"2", b"3"]] * 3)
        p = self.wq("run", *options, "--results=res", "--", *command)
        self.assertEqual(p.returncode, 0, p.stderr)
        for key in "abc":
            self.assertEqual((self.dir / "res" / key / "stdout").read_text().split(), ["0", "1", "2", "3"])

    def test_the_limit_of_descriptors_is_as_it_was(self):
        """The program may raise its own; -j100 makes it do so."""
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (100, 5000))

        p = self.wq("run", "-j100", "--", "sh", "-c", "ulimit -Sn; ulimit -Hn", input="a\n", preexec_fn=limit)
        self.assertEqual((p.returncode, p.stdout), (0, b"100\n5000\n"), p.stderr)
        p = self.start("run", "-j100", "--socket=./s", "--", "true", preexec_fn=limit)
        self.assertIn(b"listens", p.stderr.readline())
        self.assertEqual(resource.prlimit(p.pid, resource.RLIMIT_NOFILE), (64 + 800 + 2048, 5000))


class CannotExecute(Case):
    def refused(self, status, message, command, **kwargs):
        """It is told before anything is done."""
        p = self.wq("run", "--log=log", "--leftover=left", "--dead=dead", "--", *command, input="a\n", **kwargs)
        self.assertEqual((p.returncode, p.stdout), (status, b""))
        self.assertEqual(p.stderr.decode(), f"wq: {message}\n")
        for name in ("log", "left", "dead"):
            self.assertFalse((self.dir / name).exists())

    def test_not_found(self):
        self.refused(127, "no-such-command: command not found", ["no-such-command"])
        self.refused(127, "./nowhere: command not found", ["./nowhere"])
        self.refused(127, "/etc/passwd/x: command not found", ["/etc/passwd/x"])
        self.refused(127, "ls -l: command not found (its words are given one by one, or run it by sh -c)",
                     ["ls -l"])
        self.refused(127, "echo: command not found", ["echo"], env={"PATH": "/nowhere"})

    def test_not_executable(self):
        (self.dir / "text").write_text("echo\n")
        (self.dir / "bin").mkdir()
        (self.dir / "bin" / "thing").write_text("echo\n")
        self.refused(126, "./text cannot be executed: Permission denied", ["./text"])
        self.refused(126, "./bin cannot be executed: Is a directory", ["./bin"])
        self.refused(126, "/ cannot be executed: Is a directory", ["/"])
        self.refused(126, "/dev/null cannot be executed: Permission denied", ["/dev/null"])
        self.refused(126, "thing cannot be executed: Permission denied", ["thing"],
                     env={"PATH": f"{self.dir}/bin:/nowhere"})

    def test_the_first_that_can_be_executed(self):
        for name, mode in (("1", 0o644), ("2", 0o755), ("3", 0o755)):
            (self.dir / name).mkdir()
            path = self.dir / name / "thing"
            path.write_text(f"#!/bin/sh\necho {name}\n")
            path.chmod(mode)
        p = self.wq("run", "--", "thing", input="a\n", env={"PATH": "/nowhere:1:2:3:/usr/bin:/bin"})
        self.assertEqual((p.returncode, p.stdout), (0, b"2\n"), p.stderr)
        self.script("local", "echo here")
        for path in ("", ":/bin", "/nowhere::/bin", "/bin:"):
            p = self.wq("run", "--", "local", input="a\n", env={"PATH": path})
            self.assertEqual((p.returncode, p.stdout), (0, b"here\n"), p.stderr)
        del self.env["PATH"]
        p = self.wq("run", "--", "echo", input="a\n")
        self.assertEqual((p.returncode, p.stdout), (0, b"a\n"), p.stderr)

    def test_bad_format(self):
        for text, status, why in (("echo no first line\n", 126, "Exec format error"),
                                  ("#!/no/such/shell\n", 127, "No such file or directory"),
                                  ("\x7fELF garbage", 126, "Exec format error")):
            path = self.dir / "odd"
            path.write_text(text)
            path.chmod(0o755)
            p = self.wq("run", "-j2", "--leftover=left", "--", "./odd", input="a\nb\nc\n")
            self.assertEqual((p.returncode, p.stdout), (status, b""), p.stderr)
            self.assertEqual(p.stderr.decode().splitlines()[0], f"wq: ./odd cannot be executed any more: {why}")
            self.assertEqual(p.stderr.count(b"cannot be executed"), 1)
            self.assertEqual(sorted(self.lines("left")), ["a", "b", "c"])

    def vanish(self, how, status, *options):
        self.script("cmd", f"echo $1; {how}")
        p = self.wq("run", "-j1", "--leftover=left", "--log=log", "--summary", "--command-wait=0", *options, "--",
                    "./cmd",
                    input="a\nb\nc\n")
        self.assertEqual((p.returncode, p.stdout), (status, b"a\n"), p.stderr)
        self.assertIn(b"wq: ./cmd cannot be executed any more: ", p.stderr)
        self.assertIn(b"wq: stopped with 2 keys unfinished: left\n", p.stderr)
        self.assertIn(b"3 to do = 1 done + 0 dead + 0 cancelled + 2 unfinished", p.stderr)
        self.assertEqual(sorted(self.lines("left")), ["b", "c"])
        log = [json.loads(line) for line in self.lines("log")]
        self.assertEqual([(a["key"], a["outcome"], a["exit"]) for a in log],
                         [("a", "done", 0)])
        (self.dir / "log").unlink()

    def test_vanishes_in_mid_run(self):
        self.vanish("rm cmd", 127)
        self.vanish("chmod 644 cmd", 126)
        self.vanish("rm cmd; mkdir cmd", 126)
        (self.dir / "cmd").rmdir()
        # More than a drain would be of no use.
        self.vanish("rm cmd", 127, "--on-term=drain")

    def test_vanishes_while_draining(self):
        self.fifo("go")
        self.script("cmd", "touch up; read x <go; rm cmd")
        p = self.start("run", "-j1", "--on-term=drain", "--leftover=left", "--command-wait=0", "--", "./cmd")
        self.give(p, "a", "b", "c")
        self.until_file("up")
        p.terminate()
        self.assertIn(b"what there is gets done", p.stderr.readline())
        self.let("go")
        self.assertEqual(p.stderr.readline(), b"wq: ./cmd cannot be executed any more: No such file or directory\n")
        self.assertEqual(p.stderr.readline(), b"wq: stopped with 2 keys unfinished: left\n")
        self.assertEqual(p.wait(), 127)
        self.assertEqual(sorted(self.lines("left")), ["b", "c"])

    def test_a_key_that_names_no_command(self):
        self.script("good", "echo good")
        (self.dir / "text").write_text("")
        p = self.wq("run", "-j1", "--dead=dead", "--summary", "--log=log", "--", "./{}",
                    input="bad\ngood\ntext\n.\n")
        self.assertEqual((p.returncode, p.stdout), (123, b"good\n"), p.stderr)
        self.assertEqual(self.lines("dead"), ["bad", "text", "."])
        for line in (b"wq: bad: the command cannot be started: No such file or directory\n",
                     b"wq: text: the command cannot be started: Permission denied\n",
                     b"wq: .: the command cannot be started: Permission denied\n",
                     b"4 to do = 1 done + 3 dead", b"4 attempts, 3 failed"):
            self.assertIn(line, p.stderr)
        log = [json.loads(line) for line in self.lines("log")]
        self.assertEqual([(a["key"], a["outcome"], a["exit"]) for a in log],
                         [("bad", "dead", 127), ("good", "done", 0), ("text", "dead", 126), (".", "dead", 126)])

    def test_a_key_that_names_a_command_in_path(self):
        self.script("good", "echo good")
        p = self.wq("run", "-j1", "--", "{}", input="good\n", env={"PATH": str(self.dir) + ":/bin:/usr/bin"})
        self.assertEqual((p.returncode, p.stdout), (0, b"good\n"))

    def test_words_that_are_too_long(self):
        # 128 KiB is the longest word that the system takes.
        p = self.wq("run", "-j1", "--dead=dead", "--log=log", "--", "echo", "{}{}{}", input="x" * 65536 + "\ny\n")
        self.assertEqual((p.returncode, p.stdout), (123, b"yyy\n"))
        self.assertIn(b"...: the command cannot be started: Argument list too long\n", p.stderr)
        self.assertEqual(self.lines("dead"), ["x" * 65536])
        self.assertEqual([json.loads(line)["exit"] for line in self.lines("log")], [126, 0])


if __name__ == "__main__":
    main()
