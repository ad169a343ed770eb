#!/usr/bin/env python3
"""What a sandbox adds to a call as segue makes it: /bin/true as a movement, from the turn's first
record to its last, with guard by Landlock beside the same without; in a home folder that is nearly
empty, and in one of 1,000 entries.

usage: held_bench.py BUILD_DIR [ROUNDS]
spawn_bench compares the start of the program alone. Here home, logs and working directory lie
side by side below the folder of temporary files, as in many a test.
"""
import datetime
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))

from support import SEGUE, expect, records  # noqa: E402

ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 15
TURNS = 60

WORKFLOW = """
name: held
max_movements: %d
movements:
  - name: work
    command: [/bin/true]
    sandbox: %s
    rules: [{condition: when(exit == 0), next: work}]
"""


def at(record):
    return datetime.datetime.fromisoformat(record["ts"].replace("Z", "+00:00")).timestamp()


def turn_ms(box, level):
    """Of one run; its first turn makes the rules, and is left out."""
    workflow, logs = f"{box}/{level}.yaml", f"{box}/logs"
    with open(workflow, "w", encoding="ascii") as f:
        f.write(WORKFLOW % (TURNS, level))
    done = subprocess.run([SEGUE, "run", workflow, "--logs", logs, "--cwd", box + "/home/work", "--task", "x"],
                          capture_output=True, env={**os.environ, "HOME": box + "/home"}, check=False)
    expect(done.returncode == 5, done)
    log = records(*(f"{logs}/{name}" for name in os.listdir(logs) if name.endswith(".ndjson")))
    shutil.rmtree(logs)
    ends = [at(r) for r in log if r["type"] == "turn_end"]
    held = [r.get("sandbox", {}).get("level", "off") for r in log if r["type"] == "call_start"]
    expect(set(held) == {level}, held)
    return (ends[-1] - ends[0]) / (len(ends) - 1) * 1e3


def compare(box, what):
    off, guard = [], []
    for i in range(ROUNDS):  # they take turns in going first
        for level, times in (("off", off), ("guard", guard))[:: 1 if i % 2 else -1]:
            times.append(turn_ms(box, level))
    ratio = statistics.median(g / o for g, o in zip(guard, off))
    print(f"{what}: off {statistics.median(off):.2f} ms a turn, guard {statistics.median(guard):.2f} ms, "
          f"ratio {ratio:.3f} (wanted <= 1.15)", flush=True)


def main():
    doctor = subprocess.run([SEGUE, "doctor", "--quick"], capture_output=True, text=True, check=False).stdout
    if "landlock" not in doctor:
        print("skipped: this kernel has no Landlock")
        return
    with tempfile.TemporaryDirectory(prefix="held-") as box:
        for name in ("work", ".ssh", ".config", ".cache"):
            os.makedirs(f"{box}/home/{name}")
        compare(box, "a small home folder")
        for i in range(500):
            os.mkdir(f"{box}/home/folder-{i}")
            with open(f"{box}/home/file-{i}", "w", encoding="ascii"):
                pass
        compare(box, "a home folder of 1,000 entries")


if __name__ == "__main__":
    main()
