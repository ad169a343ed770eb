"""Sessions and their logs beside the least that anybody must do for them: one alone (session), many
short ones at once (submit), groups (group)."""
import contextlib
import itertools
import json
import os
import random
import re
from statistics import median

from bench import (AT_ONCE, JUDGED, PROBE, THREE, THREE_REPLIES, compare, flow, load, movement, peak_mib, ran, row,
                   run_words)
from daemon import DaemonBox
from group_test import syncs, syncs_of
from support import SEGUE, Box, at, expect, memory_kib, of_type, prompt_text, records

TEMPORARY = os.environ.get("TMPDIR", "/var/tmp")  # on a disk, unless one wants it elsewhere


def judged_replies(turns, different=True):
    """Answers of 6 KB, reasons of 150 bytes; if they are not all different, the same each time."""
    chance = random.Random(1)

    def words(size):
        return " ".join(chance.choice(("the queue", "of a test", "holds")) for _ in range(size // 8))
    times = [1] * (turns - 1) if different else [turns - 1]
    return [reply for count, step in [*((n, 1) for n in times), (1, 2)] for reply in
            ({"purpose": "execute", "text": words(6000), "times": count},
             {"purpose": "judge", "text": json.dumps({"reason": words(150), "step": step}), "times": count})]


def bare_loop(log, folder, count=1, threads=1):
    """Seconds and processor milliseconds of a loop that makes the same files, records and syncs: a log is
    synced when its session has begun, starts a call, or ends."""
    with open(log, "rb") as f:
        ends = re.finditer(rb'"type":"(?:session_start|call_start|session_end)".*\n', f.read())
    return map(float, ran(PROBE, "write", log, folder, str(count), str(threads),
                          *(str(found.end()) for found in ends))[2].split())


def through_the_daemon(boxes, sessions, turns, workflow, replies, threads=AT_ONCE):
    """Turns a second of a daemon and of the bare loop, and the processor milliseconds of a session of both."""
    box = boxes.enter_context(DaemonBox(TEMPORARY))
    box.serve("-n", str(AT_ONCE), env={"UV_THREADPOOL_SIZE": str(threads)})
    took, spent = load(box, workflow, replies, sessions)
    logs = box.log_paths()
    expect(len(logs) == sessions + 1 and records(logs[-1])[-1]["outcome"] == "complete", len(logs))
    floor_s, floor_ms = bare_loop(logs[-1], box.dir + "/floor", sessions, threads)
    box.end()
    return sessions * turns / took, sessions * turns / floor_s, spent / sessions, floor_ms / sessions


def beside_bare_loops(rounds, goal, part, *words, **more):
    """Prints the rates; the processor time of a session, and of one in the bare loop, of each round."""
    # Nothing is removed between two rounds: some file systems (ext4 without a journal) pass over
    # what was removed just now when they look for a place, a millisecond a file.
    with contextlib.ExitStack() as boxes:
        ours, bare, *cpu = zip(*(through_the_daemon(boxes, *words, **more) for _ in range(rounds)))
    row(f"{words[0]} sessions of {words[1]} turns in a daemon: turns", median(ours), "a second", goal)
    row("  of the bare loop, the same files and syncs", median(bare), "a second")
    row("  the daemon's part of that", median(a / b for a, b in zip(ours, bare)), "", part)
    return cpu


def session(rounds=15, turns=300):
    with Box(TEMPORARY) as box:
        words, numbers = run_words(box, JUDGED, judged_replies(turns)), itertools.count()

        def durable():
            ran(SEGUE, *words, env=box.env, cwd=box.cwd)
            log = records(box.log_paths()[-1])
            return at(log[-1]) - at(log[0])
        durable()
        sample = box.log_paths()[-1]
        compare(rounds, "<= 1.3", "a bare loop with the same bytes and syncs", "s",
                lambda: next(bare_loop(sample, f"{box.dir}/bare{next(numbers)}")), f"{turns} judged turns", durable)
        log = records(sample)
        calls = of_type(log, "call_start")
        row(f"syncs of {len(calls)} calls", syncs(box, *words), "", f"<= {len(calls) + 2}")
        texts = [prompt_text(log, call) for call in calls] + [r["text"] for r in of_type(log, "call_end")]
        row("log, against texts as sent and received",
            os.path.getsize(sample) / sum(len(text.encode()) for text in texts), "times", "<= 1.3")
        row("peak memory", peak_mib(SEGUE, *words, env=box.env, cwd=box.cwd), "MiB", "<= 16")
    beside_bare_loops(5, "", ">= 0.80", AT_ONCE, turns, JUDGED, judged_replies(turns, False), threads=4)


def submit(sessions=1000, rounds=3):
    """Workflows of three movements, submitted by 8 clients. These are processes of their own: on few
    cores their time is in the rates, not in the daemon's time. The goal is five times what the
    fastest peer did beside it that makes each step durable (Restate, 1,020 a second)."""
    cpu, bare = beside_bare_loops(rounds, ">= 5100", ">= 0.50", sessions, 3, THREE, THREE_REPLIES)
    row("processor time of the daemon", median(cpu), "ms/session")
    row("  above the bare loop's", median(c - b for c, b in zip(cpu, bare)), "ms/session", "<= 0.30")


# ---- groups ------------------------------------------------------------------------------------------

RULES = [{"condition": "done"}, {"condition": "stuck"}]


def group_of(children, **more):
    return flow({"name": "g", "parallel": [{"rules": RULES, **child} for child in children], **more, "rules": [
        {"condition": 'all("done")', "next": "COMPLETE"}, {"condition": 'any("stuck")', "next": "ABORT"}]})


def rate(sessions, workflow, names):
    """Turns a second of sessions of nine turns."""
    replies = [{"text": f"[{name.rpartition('.')[2].upper()}:1]", "movement": name, "times": 0} for name in names]
    with DaemonBox() as box:
        box.serve("-n", str(AT_ONCE))
        return sessions * 9 / load(box, workflow, replies, sessions, 4)[0]


def with_open(items):
    """Memory of a run with so many items at work, each with the same short texts."""
    part = {"name": "part", "pass_previous_response": False, "instruction": "Look at {item}."}
    workflow = group_of([part], for_each=list(range(64)), concurrency=items)
    with DaemonBox() as box:
        process = box.start(*run_words(box, workflow, [{"text": "[PART:1]", "delay_ms": 60000, "times": 0}]))
        box.until(lambda: box.begun() and len(of_type(records(box.begun()[0]), "call_start")) == items,
                  "its children do not begin")
        return memory_kib(process.pid, "RssAnon")


def group(sessions=400, rounds=3):
    """Groups of 8 children (nine turns, with the group's own), beside nine movements one after the other."""
    names, look = [f"c{i}" for i in range(9)], "Look at {task} with care."
    line = flow(*(movement(name, look, ("done", follows)) for name, follows in zip(names, names[1:] + ["COMPLETE"])))
    wide = group_of([{"name": name, "instruction": look} for name in names[:8]])
    compare(rounds, ">= 0.80", "turns through the daemon, one by one", "a second", lambda: rate(sessions, line, names),
            "in groups of 8", lambda: rate(sessions, wide, ["g." + name for name in names[:8]]))
    row("memory of an open item", median((with_open(64) - with_open(1)) / 63 for _ in range(rounds)), "KiB", "<= 32")
    one, many = syncs_of(1), syncs_of(64)
    row(f"syncs of 64 children that end together (of one: {one})", many, "", f"<= {one + 1}")
