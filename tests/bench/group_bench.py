#!/usr/bin/env python3
"""What groups cost: turns a second through the daemon with children and without, memory of an open
item, syncs of children that answer together.

usage: group_bench.py BUILD_DIR
"""
import json
import multiprocessing
import os
import statistics
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))

from daemon import Connection, DaemonBox  # noqa: E402
from support import Box, expect  # noqa: E402

SESSIONS, CLIENTS, AT_ONCE, ROUNDS, WIDTH = 400, 4, 16, 3, 8
RULES = [{"condition": "done"}, {"condition": "stuck"}]


def row(what, value, unit, goal=""):
    print(f"{what:52} {value:8.2f} {unit:10}{f' goal {goal}' if goal else ''}", flush=True)


def flow(movements):
    return json.dumps({"name": "m", "provider": "script", "judge": {"stages": ["phase1_tag"]},
                       "max_movements": 20, "movements": movements})


def one_by_one():
    """As many turns as a group and its children are, one behind the other."""
    names = [f"c{i}" for i in range(WIDTH + 1)] + ["COMPLETE"]
    movements = [{"name": name, "instruction": "Look at {task} with care.",
                  "rules": [{**RULES[0], "next": follows}, {**RULES[1], "next": "ABORT"}]}
                 for name, follows in zip(names, names[1:])]
    return flow(movements), [{"text": f"Seen.\n[{n.upper()}:1]", "movement": n, "times": 0}
                             for n in names]


def at_once():
    children = [{"name": f"c{i}", "instruction": "Look at {task} with care.", "rules": RULES}
                for i in range(WIDTH)]
    group = {"name": "g", "parallel": children,
             "rules": [{"condition": 'all("done")', "next": "COMPLETE"},
                       {"condition": 'any("stuck")', "next": "ABORT"}]}
    return flow([group]), [{"text": f"Seen.\n[C{i}:1]", "movement": f"g.c{i}", "times": 0}
                           for i in range(WIDTH)]


def client(path, body, count):
    connection = Connection(path)
    for _ in range(count):
        connection.request("POST", "/v1/sessions", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        said = answer.read()
        expect(answer.status == 201, answer.status, said)


def rate(workflow, replies):
    """Turns a second of sessions of one workflow, some at once."""
    with DaemonBox() as box:
        box.serve("-n", str(AT_ONCE))
        body = json.dumps({"workflow": {"text": workflow, "name": "m"}, "task": "the work",
                           "cwd": box.cwd,
                           "scenario": {"text": json.dumps({"replies": replies})}}).encode()

        def idle():
            health = box.get("/v1/health")["sessions"]
            return health["running"] == health["queued"] == 0
        client(box.socket, body, 1)
        box.until(idle, "the first one does not end")
        begin = time.monotonic()
        clients = [multiprocessing.Process(target=client, args=(box.socket, body, SESSIONS // CLIENTS))
                   for _ in range(CLIENTS)]
        for one in clients:
            one.start()
        for one in clients:
            one.join()
            expect(one.exitcode == 0, "a client failed")
        box.until(idle, "they do not end")
        return SESSIONS // CLIENTS * CLIENTS * (WIDTH + 1) / (time.monotonic() - begin)


def anonymous_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("RssAnon"))


def with_open(open_items):
    """Memory of a run with so many items at work, each with the same short texts."""
    part = {"name": "part", "pass_previous_response": False, "instruction": "Look at {item}.",
            "rules": RULES}
    group = {"name": "g", "for_each": list(range(64)), "concurrency": open_items,
             "parallel": [part], "rules": [{"condition": 'all("done")', "next": "COMPLETE"},
                                           {"condition": 'any("stuck")', "next": "ABORT"}]}
    with Box() as box:
        answers = {"replies": [{"text": "[PART:1]", "delay_ms": 60000, "times": 0}]}
        process = box.start("run", box.file("w.yaml", flow([group])), "--scenario",
                            box.file("w.json", json.dumps(answers)), "--logs", box.logs, "-t", "x")
        begun = time.monotonic()
        while True:
            expect(time.monotonic() - begun < 60, "its children do not begin")
            logs = box.begun()
            if logs and open(logs[0], "rb").read().count(b'"type":"call_start"') == open_items:
                break
            time.sleep(0.01)
        kib = anonymous_kib(process.pid)
        process.kill()
        process.wait()
        return kib


def main():
    rates = [(rate(*one_by_one()), rate(*at_once())) for _ in range(ROUNDS)]
    row("turns through the daemon, one by one", statistics.median(r for r, _ in rates), "a second")
    row(f"in groups of {WIDTH}", statistics.median(r for _, r in rates), "a second")
    row("that part", statistics.median(g / r for r, g in rates), "", ">= 0.80")
    kib = [(with_open(64) - with_open(1)) / 63 for _ in range(ROUNDS)]
    row("memory of an open item", statistics.median(kib), "KiB", "<= 32")


main()
