#!/usr/bin/env python3
"""segue show --as view: what it prints is what schemas/view.json says, of sessions of every kind, of
old, torn and damaged logs; and the schema names all that there is."""
import glob
import json
import os
import signal
import sys
from datetime import datetime

from support import BUILD, Box, every_way, expect, flow, main, of_type, preload, records

HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMA = HERE + "/../../schemas/view.json"


def view(box, path, status=0):
    done = box.segue("show", path, "--as", "view", status=status)
    box.segue("check", SCHEMA, "-", stdin=done.stdout, status=0)
    return json.loads(done.stdout)


def conforms(box):
    box.segue("run", *every_way(box), status=0)
    path = box.log_paths()[0]
    whole = view(box, path)
    expect(whole["chain"]["state"] == "sound" and whole["turns"] and whole["movements"], whole)
    lines = open(path, "rb").read().splitlines(keepends=True)
    for n in (1, 2, 5, len(lines) // 2):  # as far as it came
        view(box, box.file("part.ndjson", b"".join(lines[:n])))
    torn = view(box, box.file("torn.ndjson", b"".join(lines[:-1]) + lines[-1][:9]))
    expect(torn["chain"] == {"state": "torn", "records": len(lines) - 1, "torn_bytes": 9}, torn["chain"])
    at = len(lines) // 2
    changed = lines[:at] + [lines[at].replace(b'"ts":"2', b'"ts":"3')] + lines[at + 1:]
    bad = view(box, box.file("bad.ndjson", b"".join(changed)), status=1)
    expect(bad["chain"]["state"] == "bad" and any(t.get("unproven") for t in bad["turns"]), bad["chain"])


def old_logs_too():
    paths = sorted(glob.glob(HERE + "/../data/logs/**/*.ndjson", recursive=True))
    expect(len(paths) > 3, paths)
    with Box() as box:
        for path in paths:
            view(box, path)


def a_fork_and_its_parent(box):
    box.segue("run", *every_way(box), status=0)
    parent = box.log_paths()[0]
    movement = view(box, parent)["turns"][1]["movement"]
    done = box.segue("fork", parent, "--from", movement, "--logs", box.logs, "--cwd", box.cwd)
    forks = [p for p in box.log_paths() if p != parent]
    expect(len(forks) == 1, done.returncode, done.stderr)
    expect(view(box, forks[0])["forked_from"] == os.path.basename(parent)[:-7])


STOPS = flow("view_cli_stops")


def stops(box, rounds=2, good=1):
    """A session that went round its cycle, and asks; the path of its log."""
    said = {"usage": {"input": 300, "output": 100}, "cost": 0.25}
    replies = [{"movement": m, "text": f"[{m.upper()}:{rule}]", **said}
               for m, rule in [("review", 2), ("fix", 1)] * rounds + [("review", 1)] * good]
    done = box.segue("run", box.file("stops.yaml", STOPS), "--scenario",
                     box.file("stops.json", json.dumps({"replies": replies})), "--cwd", box.cwd,
                     "--logs", box.logs, "--task", "t")
    expect(done.returncode in (1, 7), done.returncode, done.stdout, done.stderr)
    return box.log_paths()[0]


def a_clock_that_was_set_back(box):
    """What it took is not known then: it is left out, in words and in the view."""
    flow = box.file("w.yaml", "name: w\nmax_movements: 1\nmovements:\n  - {name: a, command: ['true'], rules: [{condition: done, next: b}]}\n"
                    "  - {name: b, command: ['true'], rules: [{condition: done, next: COMPLETE}]}\n")
    ahead = preload(BUILD + "/helpers/shifted_clock.so", {"SHIFTED_CLOCK_S": "7200"})
    expect(box.segue("run", flow, "--task", "t", "--logs", box.logs, "--cwd", box.cwd, env=ahead).returncode == 5)
    path = box.log_paths()[0]
    expect(box.segue("resume", path, "--max-movements", "9").returncode == 0)
    status = next(line for line in box.segue("show", path).stdout.decode().splitlines() if line.startswith("status"))
    expect(status.split(maxsplit=1)[1] == "complete", status)
    view(box, path)


def what_would_stop_it(box):
    """Limits with what is used of them, and since when a turn waits for a person."""
    path = stops(box)
    shown = view(box, path)
    got = {(b["kind"], b.get("of"), b.get("unit")): (b.get("used"), b.get("limit")) for b in shown["bounds"]}
    until = next(b for b in shown["bounds"] if b["kind"] == "deadline")["until"]
    expect(got == {("movements", None, None): (6, 20), ("budget", None, "tokens"): (2000, 100000),
                   ("budget", None, "cost"): (1.25, 2.5), ("budget", None, "calls"): (5, 50),
                   ("budget", "which", "movements"): (1, 3), ("loop", "review, fix", None): (2, 3),
                   ("same_movement", "which", None): (1, 4), ("deadline", "which", None): (None, None)}, got)
    question = of_type(records(path), "question")[0]
    doing = shown["turns"][-1]["doing"]
    expect(doing == {"kind": "person", "since": question["ts"], "until": question["until"]}, doing)
    expect(until == question["until"], until, question)
    done = box.segue("resume", path, "--add-budget", "tokens=5000", "--max-movements", "60",
                     "--logs", box.logs)
    got = {(b["kind"], b.get("unit")): b.get("limit") for b in view(box, path)["bounds"]}
    expect(got["movements", None] == 60 and got["budget", "tokens"] == 105000, got, done.stderr)
    box.segue("answer", path, "one", "--logs", box.logs)
    box.segue("resume", path, "--logs", box.logs)
    shown = view(box, path)
    expect(shown["status"] == "complete" and shown["bounds"] == [], shown["status"], shown["bounds"])
    spans = [s["kind"] for s in shown["turns"][-1]["spans"]]
    expect(spans == ["person"], "the wait for a person is not on the axis:", spans)


def rounds_of_a_loop(box):
    path = stops(box, rounds=2, good=0)
    loop = next(b for b in view(box, path)["bounds"] if b["kind"] == "loop")
    expect((loop["used"], loop["limit"]) == (2, 3), loop)


FIX = flow("view_cli_fix")


def a_command_that_fails_alike():
    """The count is the engine's: a file that was changed meanwhile begins it anew, and so does a resume."""
    for writes, wanted in (([{}] * 3, 3), ([{}, {}, {"write": {"a": "1"}}], 1)):
        with Box() as box:
            replies = [{"text": "mended", **more} for more in writes] + [{"text": "mended", "times": 0}]
            box.segue("run", box.file("fix.yaml", FIX), "--scenario",
                      box.file("fix.json", json.dumps({"replies": replies})), "--cwd", box.cwd,
                      "--logs", box.logs, "--task", "t")
            path = box.log_paths()[0]
            got = [(b["of"], b["used"], b["limit"]) for b in view(box, path)["bounds"] if b["kind"] == "same_failure"]
            expect(got == [("test", wanted, 4)], writes, got)
            if wanted == 3:
                box.segue("answer", path, "one", "--logs", box.logs)
                box.segue("resume", path, "--logs", box.logs)
                expect(records(path)[-1]["reason"] == "looping", records(path)[-1])
                got = [b["used"] for b in view(box, path)["bounds"] if b["kind"] == "same_failure"]
                expect(got == [4], got)


CALL = """
name: call
provider: script
budget: {call: {tokens: 5000, cost: 0.5}, on_exceed: finish}
guards: {same_tool: 5, on_same_tool: stop}
movements:
  - name: work
    timeout: 30m
    budget: {call: {tokens: 1000}}
    instruction: Do the work.
    rules: [{condition: when(true), next: COMPLETE}]
"""


def what_would_end_a_call(box):
    """While it runs: its budget with all its attempts, its time, the tool that it uses again and again."""
    tool = {"name": "Bash", "argument": "make"}
    replies = [{"error": {"class": "auth"}, "usage": {"input": 300, "output": 100}, "cost": 0.25},
               {"text": "done", "times": 0, "tools": [{"name": "Bash", "argument": "ls"}, tool, tool, tool],
                "delay_ms": 600000}]
    flow, scenario = box.file("call.yaml", CALL), box.file("call.json", json.dumps({"replies": replies}))
    done = box.segue("run", flow, "--scenario", scenario, "--cwd", box.cwd, "--logs", box.logs, "--task", "t")
    path = box.log_paths()[0]
    expect(done.returncode == 7, done.stdout, done.stderr)
    process = box.start("resume", path, "--logs", box.logs)
    while (shown := view(box, path)) and not any(b.get("used") == 3 for b in shown["bounds"]):
        expect(process.poll() is None, "it ended", process.returncode)
    start = of_type(records(path), "call_start")[-1]
    got = {(b["kind"], b.get("of"), b.get("unit")): (b.get("used"), b.get("limit"))
           for b in shown["bounds"] if b["kind"] != "timeout"}
    expect(got == {("movements", None, None): (1, 10), ("same_tool", "work", None): (3, 5),
                   ("call", "work", "tokens"): (400, 1000), ("call", "work", "cost"): (0.25, 0.5)}, got)
    until = [(b["of"], b["until"]) for b in shown["bounds"] if b["kind"] == "timeout"]
    expect(len(until) == 1 and until[0][0] == "work", until)
    took = datetime.fromisoformat(until[0][1]) - datetime.fromisoformat(start["ts"])
    expect(took.total_seconds() == 1800, took)
    process.send_signal(signal.SIGINT)
    process.wait()
    kinds = [b["kind"] for b in view(box, path)["bounds"]]
    expect("timeout" not in kinds and "same_tool" not in kinds, "nobody runs it:", kinds)


TWICE = """
name: twice
provider: script
judge: {stages: [structured_output]}
movements:
  - name: plan
    instruction: plan it
    rules: [{condition: planned, next: COMPLETE}, {condition: stuck, next: ABORT}]
"""


def a_turn_that_was_judged_twice(box):
    """A movement's sums are those of `spent`, however often a turn was judged."""
    flow = box.file("twice.yaml", TWICE)
    none, planned = '{"step": 0, "reason": "x"}', '{"step": 1, "reason": "x"}'
    for words, text, status in ((("run", flow, "--task", "x"), none, 4), (("resume", "last"), none, 4),
                                (("resume", "last"), planned, 0)):
        reply = {"text": text, "times": 0, "usage": {"input": 100, "output": 10}}
        replies = box.file("replies.json", json.dumps({"replies": [reply]}))
        box.segue(*words, "-s", replies, "-q", "--logs", box.logs, status=status)
    doc = view(box, box.log_paths()[0])
    (turn,), (movement,) = doc["turns"], doc["movements"]
    spent = doc["spent"]["movements"]["plan"]
    for member in ("calls", "input", "output"):
        expect(spent[member] == movement[member] == turn[member], member, spent, movement, turn)
    expect(movement["duration_ms"] == turn["duration_ms"], movement, turn)
    expect(movement["rules"][0]["taken"] == 1 and movement["runs"] == 1, movement)


def nothing_unsaid(box):
    """The schema is closed: a member that it does not name, or that is missing, is refused."""
    expect(box.segue("run", *every_way(box)).returncode == 0)
    good = view(box, box.log_paths()[0])

    def refused(change):
        doc = json.loads(json.dumps(good))
        change(doc)
        done = box.segue("check", SCHEMA, "-", stdin=json.dumps(doc).encode())
        expect(done.returncode != 0, "taken:", json.dumps(doc)[:200])

    for place in (lambda d: d, lambda d: d["turns"][0], lambda d: d["movements"][0], lambda d: d["chain"],
                  lambda d: next(t for t in d["turns"] if t["stages"])["stages"][0]):
        refused(lambda d, place=place: place(d).update(more=1))
        for name in list(place(good)):
            if name not in ("vote", "parent", "unproven", "unpriced", "torn_bytes", "error", "forked_from",
                            "failed", "failed_calls", "basis", "evidence"):
                refused(lambda d, place=place, name=name: place(d).pop(name))


if __name__ == "__main__":
    sys.exit(main([conforms, old_logs_too, a_fork_and_its_parent, a_clock_that_was_set_back, what_would_stop_it,
                   rounds_of_a_loop, a_command_that_fails_alike, what_would_end_a_call, a_turn_that_was_judged_twice, nothing_unsaid]))
