"""Options that the program's own help names: what the man page and the completions have to name, too."""
import re

ORDERS = "add status top ls retry cancel forget pause resume set wait drain stop".split()


def found(text):
    return set(re.findall(r"(?<![\w-])(--[a-z][a-z-]+|-[a-z0-9])(?=[\s,=\[\])|:])", text))


def options(case, command):
    """Of `wq help COMMAND`, and those that every command has."""
    lines = case.wq("help", command).stdout.decode().splitlines()
    if command != "run":
        return found("\n".join(lines)) | {"-s", "--socket", "--timeout", "-h", "--help"}
    # They begin their lines: what else has a dash is an example.
    heads = [line[:28] for line in lines if re.match(r"  (-.,|   ) --[a-z]", line)]
    case.assertGreater(len(heads), 30)
    return found("\n".join(heads)) | {"-h", "--help"}
