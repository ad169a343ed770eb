#!/usr/bin/env python3
"""Short sessions through the daemon: 1,000 workflows of three movements, 16 at once, submitted by 8
clients; beside a bare loop that makes the same files, records and syncs with 16 threads.

usage: submit_bench.py BUILD_DIR [SESSIONS] [ROUNDS]
Prints steps (turns) a second and processor time a session; a goal where there is one. The clients
are processes of their own: on few cores their time is in the rates, not in the daemon's time.
"""
import contextlib
import json
import shutil
import subprocess
import time
from statistics import median

from bench import argument, cpu_ms, row, run_clients, submit_many, times_as, until_idle
from daemon import DaemonBox
from support import BUILD, expect

FLOOR = BUILD + "/helpers/submit_floor"
CLIENTS, AT_ONCE, TURNS = 8, 16, 3
SESSIONS, ROUNDS = argument(1, 1000), argument(2, 3)

WORKFLOW = """
name: three
provider: script
judge: {stages: [phase1_tag]}
movements:
  - name: plan
    instruction: plan {task}
    rules: [{condition: planned, next: write}, {condition: stuck, next: ABORT}]
  - name: write
    instruction: "write {task} after {previous_response}"
    rules: [{condition: written, next: review}, {condition: stuck, next: ABORT}]
  - name: review
    instruction: "review {previous_response}"
    rules: [{condition: good, next: COMPLETE}, {condition: bad, next: write}]
"""
REPLIES = {"replies": [{"text": "I did it.\n\n[%s:1]" % m.upper(), "movement": m, "times": 0}
                       for m in ("plan", "write", "review")]}


def through_the_daemon(boxes):
    box = boxes.enter_context(DaemonBox())
    box.serve("-n", str(AT_ONCE))
    scenario = {"text": json.dumps(REPLIES)}
    body = json.dumps({"workflow": {"text": WORKFLOW, "name": "three"}, "task": "the work", "cwd": box.cwd,
                       "scenario": scenario}).encode()
    submit_many(box.socket, body, 1)
    until_idle(box)
    join = run_clients(CLIENTS, submit_many, box.socket, body, SESSIONS // CLIENTS)
    before, begin = cpu_ms(box.process.pid), time.monotonic()
    join()
    until_idle(box)
    took = time.monotonic() - begin
    spent = cpu_ms(box.process.pid) - before
    logs = box.log_paths()
    expect(len(logs) == SESSIONS // CLIENTS * CLIENTS + 1, len(logs))
    sample = box.dir + "/sample.ndjson"
    shutil.copy(logs[-1], sample)
    with open(sample, "rb") as f:
        expect(b'"outcome":"complete"' in f.read().splitlines()[-1], sample)
    made = (SESSIONS // CLIENTS) * CLIENTS
    floor = subprocess.run([FLOOR, sample, box.dir + "/floor", str(made), str(AT_ONCE)],
                           capture_output=True, check=True)
    box.end()
    floor_s, floor_cpu_ms = map(float, floor.stdout.split())
    return made * TURNS / took, made * TURNS / floor_s, spent / made, floor_cpu_ms / made


def main():
    # Nothing is removed between two rounds: some file systems (ext4 without a journal) pass over
    # what was removed just now when they look for a place, a millisecond a file.
    with contextlib.ExitStack() as boxes:
        found = [through_the_daemon(boxes) for _ in range(ROUNDS)]
    steps, bare, cpu, bare_cpu = zip(*found)
    row("turns through the daemon", median(steps), "a second")
    row("of the bare loop, the same files and syncs", median(bare), "a second")
    row("the daemon's part of that", times_as(steps, bare), "", ">= 0.50")
    row("processor time of the daemon", median(cpu), "ms/session")
    row("of the bare loop", median(bare_cpu), "ms/session")
    row("above that loop's", median(c - b for c, b in zip(cpu, bare_cpu)), "ms/session", "<= 0.30")


if __name__ == "__main__":
    main()
