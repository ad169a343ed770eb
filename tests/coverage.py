#!/usr/bin/env python3
"""How much of each room the tests run, held against the floors in tests/coverage.txt.

usage: tests/coverage.py [BUILD_DIR] [--write]     build/asan-ubsan after ./dev test's run there

Lines and branches in per cent; branches of asserts do not count, since a test cannot take them. A room
below its floor is an offence (exit 1). --write makes what is there the floors (rounded down, never under
those of the rooms that decide). A room with four numbers is run by cases that are not in the
repository (data of $SEGUE_SHARED or ../shared): the last two are its floors where they are missing, and
--write leaves what does not belong to this machine's case as it is.
"""
import collections
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = ROOT + "/tests/coverage.txt"
DECIDING = {"judge": 90, "core": 90}  # of branches
SHARED = os.environ.get("SEGUE_SHARED", ROOT + "/../shared") + "/data"
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


def read_floors():
    """room -> its floors with the shared data, and without."""
    floors = {}
    with open(TABLE, encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                room, *numbers = line.split()
                numbers = [int(n) for n in numbers]
                floors[room] = (tuple(numbers[:2]), tuple(numbers[2:] or numbers[:2]))
    return floors


def write_floors(found, floors, which):
    with open(TABLE, encoding="utf-8") as f:
        head = [line for line in f if line.startswith("#")]
    with open(TABLE, "w", encoding="utf-8") as f:
        f.writelines(head)
        for room in sorted(found):
            lines, branches = (int(x - 0.7) for x in found[room])  # timing moves some
            both = list(floors.get(room, ((0, 0), (0, 0))))
            alike = both[0] == both[1]
            both[which] = (lines, max(branches, DECIDING.get(room, 0)))
            if alike:
                both = [both[which]] * 2
            rest = "" if both[0] == both[1] else f" {both[1][0]:3} {both[1][1]:3}"
            f.write(f"{room:12} {both[0][0]:3} {both[0][1]:3}{rest}\n")


def main():
    words = [a for a in sys.argv[1:] if not a.startswith("-")]
    found = measure(os.path.abspath(words[0] if words else ROOT + "/build/asan-ubsan"))
    both, which = read_floors(), 0 if os.path.isdir(SHARED) else 1
    if "--write" in sys.argv:
        write_floors(found, both, which)
        return 0
    if which:
        print("skipped: the cases of", SHARED, "are not there")
    floors = {room: pair[which] for room, pair in both.items()}
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
