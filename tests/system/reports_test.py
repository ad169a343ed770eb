#!/usr/bin/env python3
"""Reports in the real program: calls beside the work, files of the log's bytes, what prompts and
judges see of them, and that no fault point loses one, asks twice for one or leaves a piece."""
import hashlib
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from support import WAIT_S, Box, Failed, expect, flow, main, of_type, prompt_text, records, verified

AT_ONCE = 4
MOST = 1000

FLOW = flow("reports_flow")

REPLIES = [
    {"movement": "plan", "purpose": "execute", "text": "I made the first plan."},
    {"movement": "plan", "purpose": "report", "text": "\n# Plan one\n\nDo it.\n\n"},
    {"movement": "plan", "purpose": "report", "text": "# Scope one"},
    {"movement": "plan", "purpose": "report", "text": "Notes one"},
    {"movement": "plan", "purpose": "judge", "structured": {"reason": "it is", "step": 1}},
    {"movement": "review.a", "purpose": "execute", "text": "looked.\n[A:2]"},
    {"movement": "review.a", "purpose": "report", "text": "A one"},
    {"movement": "review.b", "purpose": "execute", "text": "B one.\n[B:1]"},
    {"movement": "plan", "purpose": "execute", "text": "I made the second plan."},
    {"movement": "plan", "purpose": "report", "text": "# Plan two {report:a.md}"},
    {"movement": "plan", "purpose": "report", "text": "# Scope two"},
    {"movement": "plan", "purpose": "report", "text": "Notes two"},
    {"movement": "plan", "purpose": "judge", "structured": {"reason": "it is", "step": 1}},
    {"movement": "review.a", "purpose": "execute", "text": "looked.\n[A:1]"},
    {"movement": "review.a", "purpose": "report", "text": "A two"},
    {"movement": "review.b", "purpose": "execute", "text": "B two.\n[B:1]"},
    {"movement": "end", "text": "done"},
]

WANTED = {"plan.md": "# Plan two {report:a.md}\n", "scope.md": "# Scope two\n",
          "notes.md": "Notes two\n", "a.md": "A two\n", "b.md": "B two.\n"}


def words_of(box, replies=None):
    return [box.file("flow.yaml", FLOW), "--scenario",
            box.file("flow.json", json.dumps({"replies": replies or REPLIES})), "--cwd", box.cwd,
            "--logs", box.logs, "--task", "the thing"]


def folder_of(box):
    return f"{box.logs}/reports/{os.path.basename(box.begun()[0])[:-len('.ndjson')]}"


def files_of(box):
    folder = folder_of(box)
    return {name: open(f"{folder}/{name}").read() for name in sorted(os.listdir(folder))}


def calls_of(log, movement, purpose):
    turns = {r["turn"]: r["movement"] for r in of_type(log, "turn_start")}
    return [r for r in of_type(log, "call_start")
            if turns[r["turn"]] == movement and r["purpose"] == purpose]


def sound(box):
    log = records(box.begun()[0])
    expect(log[-1]["type"] == "session_end" and log[-1]["outcome"] == "complete", log[-1])
    expect(files_of(box) == WANTED, files_of(box))
    newest = {r["file"]: r["sha256"] for r in of_type(log, "report")}
    for name, text in WANTED.items():
        expect(newest[name] == hashlib.sha256(text.encode()).hexdigest(), name)
    kept = [(r["turn"], r["file"]) for r in of_type(log, "report")]
    expect(len(kept) == len(set(kept)) == 10, kept)
    expect(len(of_type(log, "judgment")) == 9, "judgments")
    verified(box, box.begun()[0])
    return log


def from_start_to_end(box):
    """Files are the log's bytes; prompts show texts; what they hold is no template."""
    box.segue("run", *words_of(box), status=0)
    log = sound(box)
    asked = prompt_text(log, calls_of(log, "plan", "report")[1])
    expect("# Scope of the thing\nIt follows # Plan one\n\nDo it." in asked, asked)
    expect("I made the first plan." in asked and "Say what is left out." in asked, asked)
    work = prompt_text(log, calls_of(log, "plan", "execute")[0])
    expect(f"Reports are in {folder_of(box)}." in work, work)
    end = prompt_text(log, calls_of(log, "end", "execute")[0])
    expect("I made the second plan. | looked.\n | A two | B two. | "
           "# Plan two {report:a.md}" in end, end)


def siblings_do_not_see_each_other(box):
    box.segue("run", *words_of(box))
    log = records(box.begun()[0])
    first, second = (prompt_text(log, call) for call in calls_of(log, "review.b", "execute"))
    expect("# Scope one and (there is none yet)" in first, first)
    expect("# Scope two and A one" in second, second)  # of the round before, not of a sibling


def judge_reads_reports_and_the_answer(box):
    box.segue("run", *words_of(box))
    asked = prompt_text(records(box.begun()[0]), calls_of(records(box.begun()[0]), "plan", "judge")[0])
    parts = [asked.index(x) for x in ("# plan.md\n\n# Plan one", "# scope.md\n\n# Scope one",
                                      "I made the first plan.")]
    expect(parts == sorted(parts), asked)
    expect("Notes one" not in asked, asked)


def changed_files_are_told(box):
    """verify and show say which file is not what the log has; the log is sound all the same."""
    box.segue("run", *words_of(box))
    path = box.begun()[0]
    expect(b"plan.md, scope.md, notes.md, " in box.segue("show", path).stdout, box.segue("show", path))
    with open(f"{folder_of(box)}/plan.md", "a") as f:
        f.write("me too\n")
    os.unlink(f"{folder_of(box)}/b.md")
    box.segue("verify", path, status=0, out=b"plan.md (changed), b.md (missing)")
    told = json.loads(box.segue("verify", "--json", path).stdout)["reports"]
    expect((told["changed"], told["missing"]) == (1, 1), told)
    shown = box.segue("show", path).stdout
    expect(b"plan.md (changed), scope.md" in shown and b"b.md (missing)" in shown, shown)


def no_report_stops_and_goes_on():
    """A model that gives none stops the session resumably: its work is not done twice."""
    replies = [REPLIES[0], {"movement": "plan", "purpose": "report", "error": {"class": "quota"}},
               *REPLIES[1:]]
    with Box() as box:
        box.segue("run", *words_of(box, replies), status=1)
        stop = records(box.begun()[0])[-1]
        expect(stop["type"] == "session_stop" and stop["class"] == "quota", stop)
        box.segue("resume", box.begun()[0], status=0)
        log = sound(box)
        expect(len(calls_of(log, "plan", "execute")) == 2, "the work was done twice")


def a_fork_takes_reports_over(box):
    words = words_of(box)
    box.segue("run", *words)
    first = box.begun()[0]
    box.segue("fork", first, "--from", "end", "--scenario", words[2], status=0)
    second = next(p for p in box.begun() if p != first)
    folder = f"{box.logs}/reports/{os.path.basename(second)[:-len('.ndjson')]}"
    expect({n: open(f"{folder}/{n}").read() for n in os.listdir(folder)} == WANTED, folder)
    end = prompt_text(records(second), calls_of(records(second), "end", "execute")[0])
    expect("A two | B two. | # Plan two" in end, end)
    verified(box, second)


def disturbed(spec, allowed):
    with Box() as box:
        words = words_of(box)
        done = box.segue("run", *words, env={"SEGUE_FAULT": spec})
        expect(done.returncode in (0, *allowed), spec, "status", done.returncode, done.stderr)
        if done.returncode != 0:
            begun = box.begun()
            again = box.segue("resume", begun[0]) if begun else box.segue("run", *words)
            expect(again.returncode == 0, spec, again.stdout, again.stderr)
            expect(b"was changed" not in again.stderr, spec, again.stderr)
        sound(box)
        return done.returncode != 0


def exits_at_every_point():
    """Also between a report's record and its file, and in the middle of the file."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for first in range(1, MOST, AT_ONCE):
            met = list(pool.map(lambda n: disturbed(f"exit:{n}", (99,)),
                                range(first, first + AT_ONCE)))
            if not all(met):
                count = first - 1 + met.index(False)
                expect(count > 60, "only", count, "fault points")
                return f"{count} points"
    raise Failed("no run passes untouched")


def a_persons_change_is_left():
    """After a crash a file that somebody changed is left as it is, and said."""
    replies = [REPLIES[0], REPLIES[1], {"movement": "plan", "purpose": "report", "delay_ms": 60000,
                                        "text": "never"}, *REPLIES[1:]]
    with Box() as box:
        process = box.start("run", *words_of(box, replies), "--json")
        for line in process.stdout:
            record = json.loads(line)
            if record["type"] == "call_start" and record.get("file") == "scope.md":
                break
        until = time.monotonic() + WAIT_S  # its effects follow the line that was read
        while not os.path.exists(f"{folder_of(box)}/plan.md") and time.monotonic() < until:
            time.sleep(0.01)
        process.kill()
        process.wait()
        with open(f"{folder_of(box)}/plan.md", "w") as f:
            f.write("mine\n")
        again = box.start("resume", box.begun()[0], "--json")
        for line in again.stdout:
            if json.loads(line)["type"] == "call_start":
                break
        again.kill()
        expect(b"the report plan.md was changed" in again.stderr.read(), "not said")
        expect(files_of(box)["plan.md"] == "mine\n", "it was overwritten")


if __name__ == "__main__":
    sys.exit(main([from_start_to_end, siblings_do_not_see_each_other,
                   judge_reads_reports_and_the_answer, changed_files_are_told,
                   no_report_stops_and_goes_on, a_fork_takes_reports_over,
                   a_persons_change_is_left, exits_at_every_point]))
