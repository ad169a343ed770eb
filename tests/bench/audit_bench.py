#!/usr/bin/env python3
"""What a cold audit costs beside reading, hashing and scanning the same bytes.

usage: audit_bench.py BUILD_DIR [SESSIONS [TURNS]]   (default 3000 sessions of 3 turns)

Makes logs (tests/system/audit_logs.py), then lets both sides take turns five times and compares the
least processor time: `segue audit FOLDER`, and audit_floor, a program that reads the same files,
takes the SHA-256 chain of every line and looks for the ends of lines. Prints the memory that segue
needed (with an address space limit on its data). Goals: 2 times, 64 MiB.

Then `segue verify` beside `openssl dgst -sha256` of the same bytes, by the clock, the two taking turns: logs with
answers of 60 KB, of 10 KB, of 2 KB and of a line, and a folder of logs. Goal: at least 60 % of its speed.
"""
import glob
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

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


def elapsed(*words):
    begin = time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def run_log(build, folder, turns, lines, logs="logs"):
    """One log of `turns` turns whose answers have so many lines; its path."""
    logs = f"{folder}/{logs}"
    rule = [{"condition": "go on", "next": "a"}, {"condition": "over", "next": "COMPLETE"}]
    flow = {"name": "v", "provider": "script", "max_movements": turns, "judge": {"stages": ["phase1_tag"]},
            "movements": [{"name": "a", "instruction": "Go on with it and say so.", "bare_prompt": True,
                           "pass_previous_response": False, "rules": rule}]}
    text = 'The quick brown fox does "things" in line\nafter line.\n' * lines + "[A:1]"
    for name, data in (("flow", flow), ("replies", {"replies": [{"times": 0, "text": text}]})):
        with open(f"{folder}/{name}.json", "w") as f:
            json.dump(data, f)
    before = set(glob.glob(logs + "/*.ndjson"))
    subprocess.run([build + "/segue", "run", folder + "/flow.json", "--scenario", folder + "/replies.json", "--logs",
                    logs, "--quiet"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
    return (set(glob.glob(logs + "/*.ndjson")) - before).pop()


def beside_openssl(build, what, logs, given):
    ours, theirs = [], []
    for _ in range(9):
        theirs.append(elapsed("openssl", "dgst", "-sha256", *logs))
        ours.append(elapsed(build + "/segue", "verify", given))
    records = sum(open(log, "rb").read().count(b"\n") for log in logs)
    size = sum(os.path.getsize(log) for log in logs)
    print(f"verify {what:18}{size / 1e6:6.1f} MB, {size // records:6} bytes a record: openssl {min(theirs):.3f} s, "
          f"segue {min(ours):.3f} s, {100 * min(theirs) / min(ours):.0f} % of its speed (goal 60)")


def verify_beside_openssl(build, folder):
    for what, turns, lines in (("60 KB answers", 1400, 1100), ("10 KB answers", 3000, 180), ("2 KB answers", 4000, 36),
                               ("answers of a line", 5000, 1)):
        log = run_log(build, folder, turns, lines)
        beside_openssl(build, what, [log], log)
        os.remove(log)
    # In a folder of their own: the ledger of the other one misses the logs that were removed.
    logs = [run_log(build, folder, 60, 180, "many") for _ in range(50)]
    beside_openssl(build, "50 logs in a folder", logs, folder + "/many")


def main():
    build = os.path.abspath(argv[1])
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
    with tempfile.TemporaryDirectory() as folder:
        verify_beside_openssl(build, folder)


main()
