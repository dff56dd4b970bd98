"""What the tests of the server share: the program test_http_serve, and clients.

    python3 paths.py <test_http_serve> [<name of a test>...]
"""
import http.client
import json
import socket
import subprocess
import sys
import time
import unittest
from urllib.parse import quote_from_bytes

PATIENCE = 60  # seconds until something counts as never


def quote(word):
    word = word if isinstance(word, bytes) else str(word).encode()
    return quote_from_bytes(word, safe="")


class Refused(Exception):
    """A command was answered with an error: its status and errno."""


class Program:
    """The program, told what to do; its exit code is part of each test: sanitizers speak there."""

    def __init__(self):
        self.process = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = 0

    def tell(self, *words):
        line = " ".join(quote(w) for w in words) + "\n"
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()
        answer = self.process.stdout.readline().decode().split()
        if not answer or answer[0] != "ok":
            raise Refused(*answer[1:])
        return [int(n) for n in answer[1:]]

    def start(self, address="-", port=0, most=0, timeout=0, hosts="-"):
        self.port = self.tell("start", address, port, most, timeout, hosts)[0]
        return self.port

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        return code


class Case(unittest.TestCase):
    """One program for each test."""

    longMessage = True

    def setUp(self):
        self.program = Program()
        self.tell = self.program.tell
        self.addCleanup(lambda: self.assertEqual(self.program.end(), 0))

    def connect(self, address="127.0.0.1"):
        s = socket.create_connection((address, self.program.port), PATIENCE)
        self.addCleanup(s.close)
        return s

    def ask(self, path, method="GET", headers=None, host="127.0.0.1"):
        """The answer: status, headers and body."""
        c = http.client.HTTPConnection(host, self.program.port, timeout=PATIENCE)
        try:
            c.request(method, path, headers=headers or {})
            r = c.getresponse()
            return r.status, r.headers, r.read()
        finally:
            c.close()

    def json(self, path, status=200):
        code, headers, body = self.ask(path)
        self.assertEqual(code, status, body)
        self.assertEqual(headers["Content-Type"], "application/json")
        return json.loads(body.decode())

    def until(self, look):
        """Looks again until it answers something true: pictures may be a second old."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found = look()
            if found:
                return found
            time.sleep(0.02)
        self.fail("it never came about")


def raw(s, data):
    """Sends it and reads until the server closes."""
    try:
        s.sendall(data)
        return read_all(s)
    except ConnectionError:
        return b""


def read_all(s):
    got = b""
    try:
        while piece := s.recv(65536):
            got += piece
    except ConnectionError:
        pass
    return got


def main():
    """Runs the tests of the calling program; the last line counts them."""
    result = unittest.main(module="__main__", argv=[sys.argv[0]] + sys.argv[2:], exit=False).result
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed")
    sys.exit(1 if failed or not result.testsRun else 0)
