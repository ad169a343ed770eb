#!/usr/bin/env python3
"""What a cold audit costs beside reading, hashing and scanning the same bytes.

usage: audit_bench.py BUILD_DIR [SESSIONS [TURNS]]   (default 3000 sessions of 3 turns)

Makes logs (tests/system/audit_logs.py), then lets both sides take turns five times and compares the
least processor time: `segue audit FOLDER`, and audit_floor, a program that reads the same files,
takes the SHA-256 chain of every line and looks for the ends of lines. Prints the memory that segue
needed (with an address space limit on its data). Goals: 2 times, 64 MiB.
"""
import os
import resource
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE + "/../system")
sys.argv, argv = sys.argv[:1], sys.argv
from audit_logs import write  # noqa: E402


def cost(*words, **kw):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, **kw)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def bounded():
    resource.setrlimit(resource.RLIMIT_DATA, (64 << 20, 64 << 20))


def main():
    build = argv[1]
    sessions, turns = int(argv[2]) if len(argv) > 2 else 3000, int(argv[3]) if len(argv) > 3 else 3
    with tempfile.TemporaryDirectory() as folder:
        paths = write(folder, sessions, turns)
        size = sum(os.path.getsize(p) for p in paths)
        audits, floors = [], []
        for _ in range(5):
            floors.append(cost(build + "/tests/audit_floor", folder))
            audits.append(cost(build + "/segue", "audit", folder, preexec_fn=bounded))
        print(f"{sessions} logs, {size / 1e6:.1f} MB")
        print(f"read, hash, scan  {min(floors):.3f} s")
        print(f"segue audit       {min(audits):.3f} s  {min(audits) / min(floors):.2f} times (goal 2)")


main()
