"""The first minute with the program."""
from rig import Case, main


class First(Case):
    def test_each_key_once(self):
        p = self.wq("run", "-j1", "--", "echo", "hi", "{}", input="a\nb\na\nc\n")
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, b"hi a\nhi b\nhi c\n", b""))


if __name__ == "__main__":
    main()
