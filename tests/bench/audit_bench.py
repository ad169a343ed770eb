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
import subprocess
import tempfile

from bench import argument, bounded, children_cpu_s, elapsed_s, in_turns
from audit_logs import write
from support import BUILD, SEGUE


def quiet(*words, **more):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, **more)


def cost_s(*words, **more):
    before = children_cpu_s()
    quiet(*words, **more)
    return children_cpu_s() - before


def run_log(folder, turns, lines, logs="logs"):
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
    subprocess.run([SEGUE, "run", folder + "/flow.json", "--scenario", folder + "/replies.json", "--logs",
                    logs, "--quiet"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
    return (set(glob.glob(logs + "/*.ndjson")) - before).pop()


def beside_openssl(what, logs, given):
    theirs, ours = map(min, in_turns(9, {
        "openssl": lambda: elapsed_s(lambda: quiet("openssl", "dgst", "-sha256", *logs)),
        "segue": lambda: elapsed_s(lambda: quiet(SEGUE, "verify", given))}).values())
    records = sum(open(log, "rb").read().count(b"\n") for log in logs)
    size = sum(os.path.getsize(log) for log in logs)
    print(f"verify {what:18}{size / 1e6:6.1f} MB, {size // records:6} bytes a record: openssl {theirs:.3f} s, "
          f"segue {ours:.3f} s, {100 * theirs / ours:.0f} % of its speed (goal 60)")


def verify_beside_openssl(folder):
    for what, turns, lines in (("60 KB answers", 1400, 1100), ("10 KB answers", 3000, 180), ("2 KB answers", 4000, 36),
                               ("answers of a line", 5000, 1)):
        log = run_log(folder, turns, lines)
        beside_openssl(what, [log], log)
        os.remove(log)
    # In a folder of their own: the ledger of the other one misses the logs that were removed.
    logs = [run_log(folder, 60, 180, "many") for _ in range(50)]
    beside_openssl("50 logs in a folder", logs, folder + "/many")


def main():
    sessions, turns = argument(1, 3000), argument(2, 3)
    with tempfile.TemporaryDirectory() as folder:
        paths = write(folder, sessions, turns)
        size = sum(os.path.getsize(p) for p in paths)
        floor, audit = map(min, in_turns(5, {
            "floor": lambda: cost_s(BUILD + "/tests/audit_floor", folder),
            "audit": lambda: cost_s(SEGUE, "audit", folder, preexec_fn=bounded)}).values())
        print(f"{sessions} logs, {size / 1e6:.1f} MB")
        print(f"read, hash, scan  {floor:.3f} s")
        print(f"segue audit       {audit:.3f} s  {audit / floor:.2f} times (goal 2)")
    with tempfile.TemporaryDirectory() as folder:
        verify_beside_openssl(folder)


main()
