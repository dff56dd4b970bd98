#!/usr/bin/env python3
"""That instructions.py reads callgrind's dumps rightly, and turns red when it should."""

import unittest

import instructions

DUMP = """\
desc: Trigger: Client Request: cycle

positions: line
events: Ir
summary: 1111

ob=/usr/lib/libc.so.6
fn=main
0 500
cob=/build/libwq.so.0.1.0
cfn=wq_add
calls=8 0
0 411

ob=/build/libwq.so.0.1.0
fn=wq_add
0 100
cob=/usr/lib/libc.so.6
cfn=memcpy
calls=8 0
0 300
0 10
fn=wq_done
0 1

ob=/build/libwq-http.so.0.1.0
fn=page
0 200
"""


class Reading(unittest.TestCase):
    def test_only_the_library_itself_counts(self):
        self.assertEqual(instructions.read_dump(DUMP), ("cycle", 111))

    def test_a_dump_without_a_name(self):
        self.assertEqual(instructions.read_dump("ob=/x/libwq.so\nfn=f\n0 5\n"), (None, 5))

    def test_a_file_is_read_as_it_was_written(self):
        figures = {"cycle": 10.25, "next": 7.0}
        text = instructions.write_figures("Debian gcc 12.2.0 x", "-O2 -fPIC", figures)
        self.assertEqual(instructions.read_figures(text),
                         ("Debian gcc 12.2.0 x", "-O2 -fPIC", figures))

    def test_compilers(self):
        name = instructions.compiler_name
        self.assertEqual(name("gcc (Debian 12.2.0-14+deb12u1) 12.2.0", "x86_64-linux-gnu"),
                         "Debian gcc 12.2.0 x86_64-linux-gnu")
        self.assertNotEqual(name("gcc (Debian 12.2.0-14) 12.2.0", "x86_64-linux-gnu"),
                            name("gcc (Debian 12.2.0-14) 12.2.0", "aarch64-linux-gnu"))
        self.assertNotEqual(name("gcc (Debian 12.2.0-14) 12.2.0", "m"),
                            name("gcc (Ubuntu 12.2.0-3ubuntu1) 12.2.0", "m"))
        self.assertNotEqual(name("gcc (Debian 12.2.0-14) 12.2.0", "m"),
                            name("gcc (Debian 12.3.0-1) 12.3.0", "m"))

    def test_flags(self):
        command = ["/usr/bin/gcc", "-I/src", "-O2", "-DNDEBUG", "-Wall", "-Werror", "-std=c11",
                   "-MD", "-MT", "x.o", "-o", "x.o", "-c", "x.c"]
        self.assertEqual(instructions.flags_of(command), "-O2 -DNDEBUG -std=c11")


class Judging(unittest.TestCase):
    def wrong(self, before, now):
        return instructions.compare(before, now)[1]

    def test_growth(self):
        self.assertEqual(self.wrong({"a": 100.0, "b": 50.0}, {"a": 104.0, "b": 52.5}), [])
        self.assertEqual(len(self.wrong({"a": 100.0, "b": 50.0}, {"a": 106.0, "b": 50.0})), 1)
        self.assertEqual(len(self.wrong({"a": 100.0}, {"a": 105.01})), 1)

    def test_a_gain_is_no_failure_but_is_said(self):
        table, wrong = instructions.compare({"a": 100.0}, {"a": 90.0})
        self.assertEqual(wrong, [])
        self.assertIn("renew the figures to keep it so: a", table)

    def test_paths_that_come_and_go(self):
        self.assertEqual(len(self.wrong({"a": 1.0}, {"a": 1.0, "b": 1.0})), 1)
        self.assertEqual(len(self.wrong({"a": 1.0, "b": 1.0}, {"a": 1.0})), 1)


if __name__ == "__main__":
    unittest.main()
