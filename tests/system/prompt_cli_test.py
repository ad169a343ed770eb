#!/usr/bin/env python3
"""`segue prompt` shows what `segue run` sends, and says when a question is never asked."""
import json
import re
import sys

from support import Box, expect, main, of_type, prompt_text, records

STAGES = ["structured_output", "phase3_tag", "ai_judge"]
ZEROS = "0" * 16


def workflow(box, language="en", rules=("done", "more"), judge=None):
    doc = {"name": "w", "language": language, "provider": "script", "max_movements": 7,
           "movements": [{"name": "plan", "persona": "A reader of {braces}.",
                          "instruction": "Plan {task}, turn {iteration} of {max_movements}.",
                          "rules": [{"condition": c, "next": "COMPLETE"} for c in rules]}]}
    if judge:
        doc["judge"] = judge
    return box.file("w.json", json.dumps(doc))


def without_facts(prompt):
    """A prompt with its nonce as zeros, without what only a run can measure: that no file was changed."""
    prompt = re.sub(r"\b[0-9a-f]{16}\b", ZEROS, prompt)
    return re.sub(r"(?m)^.*\n- (No file was changed|このターンで|このセッションでは)[^\n]*\n\n?", "", prompt)


def shows_what_is_sent():
    for language in ("en", "ja"):
        with Box() as box:
            path = workflow(box, language, judge={"max_reasks": 0})
            task, answer = "the {task} of {iteration}", "I did it, {previous_response}"
            replies = [{"purpose": "execute", "text": answer}, {"stage": STAGES[0], "text": "?"},
                       {"stage": STAGES[1], "text": "?"}, {"stage": STAGES[2], "text": "[JUDGE:1]"}]
            scenario = box.file("s.json", json.dumps({"replies": replies}))
            box.segue("run", path, "--scenario", scenario, "--task", task, "--logs", box.logs, status=0)
            log = records(box.begun()[0])
            calls = of_type(log, "call_start")
            expect(len(calls) == 4, len(calls), "calls")
            for call in calls:
                words = ["--stage", call["stage"]] if "stage" in call else []
                done = box.segue("prompt", path, "plan", "--task", task, "--answer", answer, *words)
                expect(done.returncode == 0 and done.stderr == b"", done)
                fenced = without_facts(prompt_text(log, call))
                if "mark" in call:  # each turn's own; the command shows a sample
                    expect(fenced.count(call["mark"]) == 2, call["mark"])
                    fenced = fenced.replace(call["mark"], "k7wd")
                expect(done.stdout.decode() == fenced, words, done.stdout.decode(), "sent:", fenced)


def shows_each_vote_of_a_panel(box):
    path = workflow(box, rules=["done", "more", "again"],
                    judge={"panel": ["script"] * 3, "agree": 3, "stages": ["structured_output"]})
    replies = [{"purpose": "execute", "text": "report"}] + [{"stage": STAGES[0], "text": '{"reason":"r","step":1}'}] * 3
    scenario = box.file("s.json", json.dumps({"replies": replies}))
    done = box.segue("run", path, "--scenario", scenario, "--task", "t", "--logs", box.logs)
    log = records(box.begun()[0])
    calls = [c for c in of_type(log, "call_start") if "vote" in c]
    expect(done.returncode == 0 and len(calls) == 3, done, len(calls))
    for call in calls:
        words = ["--stage", STAGES[0], "--vote", str(call["vote"])]
        done = box.segue("prompt", path, "plan", "--task", "t", "--answer", "report", *words)
        fenced = without_facts(prompt_text(log, call))
        expect(done.returncode == 0 and done.stdout.decode() == fenced, done.stdout.decode(), "sent:", fenced)
        expect(b"vote 2, script: rules in the order 2, 3, 1\n" in done.stderr, done.stderr)
    votes = json.loads(box.segue("prompt", path, "plan", "--stage", STAGES[0], "--json").stdout)["votes"]
    expect([v["rules"] for v in votes] == [[1, 2, 3], [2, 3, 1], [3, 1, 2]], votes)
    for words, file in ((["--vote", "4"], path), (["--vote", "1"], workflow(box))):
        box.segue("prompt", file, "plan", "--stage", STAGES[0], *words, status=2, err=b"--vote")


def says_what_is_never_asked(box):
    for rules, judge, word in ((["done"], None, b"only one label"),
                               (["when(true)"], None, b"no label"),
                               (["done", "done && when(true)"], None, b"only one label"),
                               (["a", "b"], {"stages": ["phase1_tag", "ai_judge"]},
                                b"judge.stages leaves out structured_output"),
                               (["a", "b"], None, None)):
        path = workflow(box, rules=rules, judge=judge)
        done = box.segue("prompt", path, "plan", "--stage", "structured_output")
        expect(done.returncode == 0 and done.stdout, done)
        noted = b"never asked" in done.stderr and word is not None and word in done.stderr
        expect(noted == (word is not None), rules, done.stderr)


if __name__ == "__main__":
    sys.exit(main([shows_what_is_sent, shows_each_vote_of_a_panel, says_what_is_never_asked]))
