#!/usr/bin/env python3
"""How much of each room the tests run, held against the floors in tests/coverage.txt.

usage: tests/coverage.py [BUILD_DIR] [--write]     build/cov after ./dev test's run there

Lines and branches in per cent; branches of asserts do not count, since a test cannot take them. A room
below its floor is an offence (exit 1). --write makes what is there the floors (rounded down, never under
those of the rooms that decide).
"""
import collections
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = ROOT + "/tests/coverage.txt"
DECIDING = {"judge": 90, "core": 90}  # of branches
KEYS = ("line_covered", "line_total", "branch_covered", "branch_total")


def measure(build):
    done = subprocess.run(
        ["gcovr", "--root", ROOT, "--filter", ROOT + "/src/", "--object-directory", build, build,
         "--exclude-branches-by-pattern", r".*\bassert\(.*", "--gcov-ignore-parse-errors", "-j", "2",
         "--json-summary", "-"], capture_output=True, text=True, cwd=ROOT)
    if done.returncode != 0:
        sys.exit(done.stderr)
    rooms = collections.defaultdict(collections.Counter)
    for file in json.loads(done.stdout)["files"]:
        room = file["filename"].split("src/", 1)[1].split("/")[0]
        rooms[room].update({k: file[k] for k in KEYS})
    return {room: (100 * c["line_covered"] / max(c["line_total"], 1),
                   100 * c["branch_covered"] / max(c["branch_total"], 1)) for room, c in rooms.items()}


def main():
    words = [a for a in sys.argv[1:] if not a.startswith("-")]
    found = measure(os.path.abspath(words[0] if words else ROOT + "/build/cov"))
    floors = {}
    if os.path.exists(TABLE):
        with open(TABLE, encoding="utf-8") as f:
            for line in f:
                if line.strip() and not line.startswith("#"):
                    room, lines, branches = line.split()
                    floors[room] = (int(lines), int(branches))
    if "--write" in sys.argv:
        with open(TABLE, "w", encoding="utf-8") as f:
            f.write("# The least that the tests run of each room: lines and branches in per cent.\n"
                    "# tests/coverage.py --write after a change that raises them; a floor falls only with a reason.\n")
            for room in sorted(found):
                lines, branches = (int(x - 0.7) for x in found[room])  # timing moves some
                f.write(f"{room:12} {lines:3} {max(branches, DECIDING.get(room, 0)):3}\n")
        return 0
    bad = 0
    print("room         lines      branches   (per cent, floor)")
    for room in sorted(found):
        floor = floors.get(room, (0, DECIDING.get(room, 0)))
        low = any(int(x) < f for x, f in zip(found[room], floor))
        bad += low
        print(f"{room:12} {found[room][0]:5.1f} {floor[0]:3}  {found[room][1]:5.1f} {floor[1]:3}"
              f"{'  BELOW ITS FLOOR' if low else ''}")
    for room in sorted(set(floors) - set(found)):
        print(f"{room:12} is not there: tests/coverage.txt")
        bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
