#!/usr/bin/env python3
"""Short sessions through the daemon: 1,000 workflows of three movements, 16 at once, submitted by 8
clients; beside a bare loop that makes the same files, records and syncs with 16 threads.

usage: submit_bench.py BUILD_DIR [SESSIONS] [ROUNDS]
Prints steps (turns) a second and processor time a session; a goal where there is one. The clients
are processes of their own: on few cores their time is in the rates, not in the daemon's time.
"""
import contextlib
import json
import multiprocessing
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))

from daemon import DaemonBox  # noqa: E402
from support import BUILD, expect  # noqa: E402

FLOOR = BUILD + "/helpers/submit_floor"
CLIENTS, AT_ONCE, TURNS = 8, 16, 3
SESSIONS = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 3

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


def row(what, value, unit, goal=""):
    print(f"{what:52} {value:8.2f} {unit:10}{f' goal {goal}' if goal else ''}", flush=True)


def cpu_ms(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        words = f.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def client(path, body, count, ready=None):
    """As little as a client can do: the bytes of a request, and its answer up to its end."""
    line = socket.socket(socket.AF_UNIX)
    line.connect(path)
    if ready is not None:
        ready.wait()
    request = b"POST /v1/sessions HTTP/1.1\r\nHost: segue\r\nContent-Type: application/json\r\n" \
              b"Content-Length: %d\r\n\r\n" % len(body) + body
    for _ in range(count):
        line.sendall(request)
        said = b""
        while b"\r\n\r\n" not in said:
            said += line.recv(65536) or b"\r\n\r\n"
        head, _, rest = said.partition(b"\r\n\r\n")
        expect(head.startswith(b"HTTP/1.1 201 "), said)
        left = int(re.search(rb"(?i)content-length: (\d+)", head)[1]) - len(rest)
        while left > 0:
            left -= len(line.recv(left))
    line.close()


def through_the_daemon(boxes):
    box = boxes.enter_context(DaemonBox())
    box.serve("-n", str(AT_ONCE))
    scenario = {"text": json.dumps(REPLIES)}
    body = json.dumps({"workflow": {"text": WORKFLOW, "name": "three"}, "task": "the work", "cwd": box.cwd,
                       "scenario": scenario}).encode()
    client(box.socket, body, 1)
    box.until(lambda: box.get("/v1/health")["sessions"]["running"] == 0, "the first one does not end")
    ready = multiprocessing.Barrier(CLIENTS + 1)
    clients = [multiprocessing.Process(target=client, args=(box.socket, body, SESSIONS // CLIENTS, ready))
               for _ in range(CLIENTS)]
    for one in clients:
        one.start()
    ready.wait()  # making processes is no part of it
    before, begin = cpu_ms(box.process.pid), time.monotonic()
    for one in clients:
        one.join()
        expect(one.exitcode == 0, "a client failed")

    def idle():
        health = box.get("/v1/health")["sessions"]
        return health["running"] == health["queued"] == 0
    box.until(idle, "they do not end")
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
    steps, bare, cpu, bare_cpu = (statistics.median(column) for column in zip(*found))
    row("turns through the daemon", steps, "a second")
    row("of the bare loop, the same files and syncs", bare, "a second")
    row("the daemon's part of that", statistics.median(s / b for s, b, _, _ in found), "", ">= 0.50")
    row("processor time of the daemon", cpu, "ms/session")
    row("of the bare loop", bare_cpu, "ms/session")
    row("above that loop's", statistics.median(c - b for _, _, c, b in found), "ms/session", "<= 0.30")


if __name__ == "__main__":
    main()
