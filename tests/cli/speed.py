"""What a key costs beside the command itself, with /bin/true, two at a time.

    python3 speed.py PROGRAM [--table]

The same keys go through wq, xargs and GNU parallel, in turn, several times; the best time of each counts.
wq may take 1.5 times as long as xargs. It is meant to be 10 times as fast as parallel, the command's own time
included: it is told if it is not, and below 5 times it is a failure, for much of that time is the kernel's.
A bare loop that starts the command as often tells how much. It bounds nothing: on a busy machine it may well
be the slowest of them. --table: only say it.
"""
import os
import shutil
import subprocess
import sys
import time

ROUNDS = 5
KEYS = 1000
XARGS_BAR, LEAST, MEANT = 1.5, 5, 10
BARE, WQ, XARGS, PARALLEL = "command alone", "wq run -j2", "xargs -P2 -n1", "parallel -j2"


def bare():
    for i in range(KEYS):
        if i >= 2:
            os.wait()
        os.posix_spawn("/bin/true", ["true", str(i)], os.environ)
    os.wait()
    os.wait()


def through(command):
    subprocess.run(command, input="".join(f"{i}\n" for i in range(KEYS)).encode(), check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main():
    program, *rest = sys.argv[1:]
    ways = {BARE: bare}
    for name, command in ((WQ, [program, "run", "-j2", "--", "/bin/true"]),
                          (XARGS, ["xargs", "-P2", "-n1", "/bin/true"]),
                          (PARALLEL, ["parallel", "--will-cite", "-j2", "/bin/true"])):
        if shutil.which(command[0]):
            ways[name] = lambda command=command: through(command)
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for name, way in ways.items():
            begin = time.perf_counter()
            way()
            best[name] = min(best[name], (time.perf_counter() - begin) / KEYS)

    print(f"one key through /bin/true, two at a time (best of {ROUNDS} x {KEYS} keys)")
    for name, span in best.items():
        print(f"  {name:<14} {span * 1e6:7.0f} us, of which the command is not {(span - best[BARE]) * 1e6:7.0f}")
    if rest == ["--table"]:
        return 0
    if len(ways) < 4:
        print("xargs and parallel are needed")
        return 77
    ratio = best[PARALLEL] / best[WQ]
    print(f"in total: wq / xargs {best[WQ] / best[XARGS]:.2f} (at most {XARGS_BAR}), parallel / wq {ratio:.1f} "
          f"(at least {LEAST}, meant: {MEANT})")
    if best[WQ] > best[BARE]:
        print("without the command: parallel / wq "
              f"{(best[PARALLEL] - best[BARE]) / (best[WQ] - best[BARE]):.1f}")
    else:
        print("without the command: unknown, the command alone took as long as wq")
    if ratio < MEANT:
        print(f"MISSED: wq is {ratio:.1f} times as fast as parallel, not {MEANT}")
    bad = (best[WQ] > XARGS_BAR * best[XARGS]) + (ratio < LEAST)
    print(f"{2 - bad} passed, {bad} failed")
    return 1 if bad else 0


sys.exit(main())
