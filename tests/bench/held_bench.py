#!/usr/bin/env python3
"""What a sandbox adds to a call as segue makes it: /bin/true as a movement, from the turn's first
record to its last, with guard by Landlock beside the same without; in a home folder that is nearly
empty, and in one of 1,000 entries.

usage: held_bench.py BUILD_DIR [ROUNDS]
spawn_bench compares the start of the program alone. Here home, logs and working directory lie
side by side below the folder of temporary files, as in many a test.
"""
import os
import shutil
import subprocess
import tempfile
from statistics import median

from bench import argument, at, in_turns, times_as
from support import SEGUE, expect, records

ROUNDS, TURNS = argument(1, 15), 60

WORKFLOW = """
name: held
max_movements: %d
movements:
  - name: work
    command: [/bin/true]
    sandbox: %s
    rules: [{condition: when(exit == 0), next: work}]
"""


def turn_ms(box, level):
    """The time of a turn of one run; its first turn makes the rules, and is left out."""
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
    off, guard = in_turns(ROUNDS, {"off": lambda: turn_ms(box, "off"),
                                   "guard": lambda: turn_ms(box, "guard")}).values()
    print(f"{what}: off {median(off):.2f} ms a turn, guard {median(guard):.2f} ms, "
          f"ratio {times_as(guard, off):.3f} (wanted <= 1.15)", flush=True)


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
