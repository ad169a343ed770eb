#!/usr/bin/env python3
"""for_each in the real program: every item's verdict once, parts in the list's order and never more
open than may be, however often it is killed; what failed runs again alone."""
import json
import os
import random
import signal
import subprocess
import sys
import time

from support import SEGUE, Box, at_once, chance, expect, main, of_type, records, verified

ITEMS, AT_ONCE, KILLS = 200, 8, 20
MANY = 10000

EACH = """
name: each
provider: script
judge: {{stages: [phase1_tag]}}
movements:
  - name: work
    for_each: {items}
    concurrency: {at_once}
    parallel:
      - name: part
        pass_previous_response: false
        bare_prompt: true
        instruction: "Item {{index}} is {{item.name}}; say whether it is sound, and why. End with {{sign}}."
        rules: [{{condition: done}}, {{condition: stuck}}]
    rules:
      - {{condition: all("done"), next: COMPLETE}}
      - {{condition: any("stuck"), next: ABORT}}
"""
NAMES = ["plain", "two words", "-rf", "..", "a\nb", "ünïcode ✓", "{item}", "[PART:2]", '"', ""]


def files(box, count, at_once, replies):
    items = [{"name": NAMES[i % len(NAMES)], "number": i + 1} for i in range(count)]
    return [box.file("each.yaml", EACH.format(items=json.dumps(items), at_once=at_once)),
            "--scenario", box.file("each.json", json.dumps({"replies": replies})), "--cwd",
            box.cwd, "--logs", box.logs, "--task", "look at them"]


def done(**more):
    return {"movement": "work.part", "text": "It is sound.\n[PART:1]", **more}


def most_open(log):
    opened, most = set(), 0
    for record in log:
        if record["type"] == "turn_start" and "item" in record:
            opened.add(record["turn"])
        if record["type"] == "turn_end":
            opened.discard(record["turn"])
        most = max(most, len(opened))
    return most


def verdicts(log):
    item_of = {r["turn"]: r["item"] for r in of_type(log, "turn_start") if "item" in r}
    return [item_of[r["turn"]] for r in of_type(log, "judgment") if r["turn"] in item_of]


def judged_once(box, count, at_once):
    log = records(box.begun()[0])
    found = verdicts(log)
    expect(sorted(found) == list(range(1, count + 1)), len(found), "verdicts")
    starts = [r["item"] for r in of_type(log, "turn_start") if "item" in r]
    expect(starts == sorted(starts), "items begin in another order")
    expect(most_open(log) <= at_once, most_open(log), "were open at once")
    verified(box, box.begun()[0])
    return log


def killed_at(box, words, size):
    """Kills the program once its log has so many bytes; whether it was still alive."""
    process = subprocess.Popen([SEGUE, *words], env=box.env, cwd=box.cwd,  # nobody reads a pipe
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    box.started.append(process)
    while process.poll() is None:
        time.sleep(0.002)  # a look at a time; it ends by itself
        begun = box.begun()
        if begun and os.path.getsize(begun[0]) >= size:
            process.send_signal(signal.SIGKILL)
            process.wait()
    return process.returncode == -signal.SIGKILL


def killed_at_many_points():
    """One session, killed again and again where its log has grown a little more."""
    seed = chance()
    rng = random.Random(seed)
    with Box() as box:
        words = ["run", *files(box, ITEMS, AT_ONCE, [done(delay_ms=5)] * (ITEMS + 400))]
        kills = 0
        while kills < KILLS:
            begun = box.begun()
            size = os.path.getsize(begun[0]) if begun else 0
            kills += 1
            if not killed_at(box, words, size + rng.randrange(4000, 26000)):
                break
            words = ["resume", box.begun()[0]]
        if kills == KILLS:
            box.segue("resume", box.begun()[0], status=0)
        log = judged_once(box, ITEMS, AT_ONCE)
        repeats = [r for r in of_type(log, "call_start") if r["attempt"] > 1]
        expect(len(repeats) <= AT_ONCE * kills, len(repeats), "repeats")
        return f"{kills} kills, {len(repeats)} calls repeated, seed {seed}"


def what_failed_runs_again_alone():
    replies = [done()] * 3 + [{"movement": "work.part", "error": {"class": "auth"}}] + [done()] * 30
    with Box() as box:
        box.segue("run", *files(box, 12, 1, replies), status=4)
        before = len(of_type(records(box.begun()[0]), "call_start"))
        box.segue("resume", box.begun()[0], status=0)
        log = judged_once_again(box)
        expect(len(of_type(log, "call_start")) == before + 1, "calls")


def judged_once_again(box):
    log = records(box.begun()[0])
    expect(sorted(verdicts(log)) == list(range(1, 13)), verdicts(log))
    verified(box, box.begun()[0])
    return log


def ten_thousand_items(box):
    """Killed on the way, they go on where they were."""
    words = files(box, MANY, AT_ONCE, [done()] * (MANY + AT_ONCE))
    killed = killed_at(box, ["run", *words], 4000000)
    if killed:
        box.segue("resume", box.begun()[0], status=0)
    log = judged_once(box, MANY, AT_ONCE)
    calls = len(of_type(log, "call_start"))
    expect(calls <= MANY + AT_ONCE, calls, "calls")
    return f"killed: {killed}; {calls} calls"


if __name__ == "__main__":
    sys.exit(main([killed_at_many_points, what_failed_runs_again_alone, ten_thousand_items]))
