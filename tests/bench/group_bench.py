#!/usr/bin/env python3
"""What groups cost: turns a second through the daemon with children and without, memory of an open
item, syncs of children that answer together.

usage: group_bench.py BUILD_DIR [SESSIONS] [ROUNDS]
"""
import json
import time
from statistics import median

from bench import argument, in_turns, memory_kib, row, run_clients, submit_many, times_as, until_idle
from daemon import DaemonBox
from support import Box, expect

CLIENTS, AT_ONCE, WIDTH = 4, 16, 8
SESSIONS, ROUNDS = argument(1, 400), argument(2, 3)
RULES = [{"condition": "done"}, {"condition": "stuck"}]


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


def rate(workflow, replies):
    """Turns a second of sessions of one workflow, some at once."""
    with DaemonBox() as box:
        box.serve("-n", str(AT_ONCE))
        body = json.dumps({"workflow": {"text": workflow, "name": "m"}, "task": "the work",
                           "cwd": box.cwd,
                           "scenario": {"text": json.dumps({"replies": replies})}}).encode()
        submit_many(box.socket, body, 1)
        until_idle(box)
        join = run_clients(CLIENTS, submit_many, box.socket, body, SESSIONS // CLIENTS)
        begin = time.monotonic()
        join()
        until_idle(box)
        return SESSIONS // CLIENTS * CLIENTS * (WIDTH + 1) / (time.monotonic() - begin)


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
        kib = memory_kib(process.pid, "RssAnon")
        process.kill()
        process.wait()
        return kib


def main():
    bare, groups = in_turns(ROUNDS, {"bare": lambda: rate(*one_by_one()), "groups": lambda: rate(*at_once())}).values()
    row("turns through the daemon, one by one", median(bare), "a second")
    row(f"in groups of {WIDTH}", median(groups), "a second")
    row("that part", times_as(groups, bare), "", ">= 0.80")
    kib = [(with_open(64) - with_open(1)) / 63 for _ in range(ROUNDS)]
    row("memory of an open item", median(kib), "KiB", "<= 32")


main()
