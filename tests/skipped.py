#!/usr/bin/env python3
"""What the last run of ctest skipped, and for want of what: a line for each reason, with its tests.

usage: tests/skipped.py BUILD_DIR

A test says so by a line that begins with "skipped: ", or has it behind a case's name. Programs that
are not installed stand first. ctest's log has the output of each test in full."""
import re
import sys


def reasons(log):
    """Each reason with the tests that gave it, in the order of the log."""
    found, test = {}, "?"
    for line in log:
        begins = re.match(r"\d+/\d+ Testing: (\S+)$", line)
        told = re.match(r"(?:.*: |\s*)?skipped: (.*)", line)
        if begins:
            test = begins[1]
        elif told:
            why = re.sub(r"\s+\(\d+\.\d s\)$", "", told[1]).strip()
            tests = found.setdefault(why, [])
            tests += [test] if test not in tests else []
    return found


def main():
    try:
        with open(sys.argv[1] + "/Testing/Temporary/LastTest.log", encoding="utf-8", errors="replace") as f:
            found = reasons(f)
    except FileNotFoundError:
        return 0
    if found:
        print("Skipped, in whole or in part:")
    for why in sorted(found, key=lambda why: (not why.endswith(" is not installed"), why)):
        print(f"  {why}: {', '.join(found[why])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
