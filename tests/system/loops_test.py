#!/usr/bin/env python3
"""Loops that are watched: the judge is asked at the exact threshold, only when the cycle would be
entered once more, and is asked once whatever happens."""
import json
import sys
from concurrent.futures import ThreadPoolExecutor

from support import Box, Failed, expect, flow, main, of_type, records, verified

AT_ONCE = 4
MOST = 1000
JUDGE = "_loop_judge_review_fix"

FLOW = flow("loops_flow")


def says(movement, rule):
    return {"movement": movement, "text": f"{movement} said {rule}\n[{movement.upper()}:{rule}]"}


def round_of(n=1, fix=1):
    return [says("review", 2), says("fix", fix)] * n


def words_of(box, replies, flow=FLOW):
    return [box.file("flow.yaml", flow), "--scenario",
            box.file("flow.json", json.dumps({"replies": replies})), "--cwd", box.cwd, "--logs",
            box.logs, "--task", "t"]


def ran(box, replies, code=0, flow=FLOW):
    box.segue("run", *words_of(box, replies, flow), status=code)
    path = box.begun()[0]
    verified(box, path)
    return [r["movement"] for r in of_type(records(path), "turn_start")]


def speaks_before_the_fourth_entry(box):
    turns = ran(box, [*round_of(3), says(JUDGE, 1), says("review", 1)])
    expect(turns == ["review", "fix"] * 3 + [JUDGE, "review"], turns)
    log = records(box.begun()[0])
    asked = "".join(p for r in of_type(log, "call_start") if r["turn"] == 7 for p in r["prompt"]
                    if isinstance(p, str))
    expect("review -> fix: 3 times. review said 2" in asked, asked)


def answer_of_the_loop_goes_on():
    """What the judge says is no previous response."""
    flow = FLOW.replace("Look at it.", "Look at {previous_response}")
    with Box() as box:
        ran(box, [*round_of(3), says(JUDGE, 1), says("review", 1)], flow=flow)
        last = of_type(records(box.begun()[0]), "call_start")[-1]
        expect("fix said 1" in json.dumps(last["prompt"]) or {"ref"} & set(
            k for p in last["prompt"] if isinstance(p, dict) for k in p), last["prompt"])
        expect("_loop_judge_review_fix said" not in json.dumps(last["prompt"]), last["prompt"])


def its_rule_leads_away(box):
    turns = ran(box, [*round_of(3), says(JUDGE, 2), says("ask", 1)], 3)
    expect(turns[-2:] == [JUDGE, "ask"], turns)


def counts_begin_anew(box):
    turns = ran(box, [*round_of(3), says(JUDGE, 1), *round_of(3), says(JUDGE, 1),
                      says("review", 1)])
    expect(turns.count(JUDGE) == 2 and turns.index(JUDGE) == 6, turns)


def a_rule_that_leaves_asks_nobody():
    """The third round ends elsewhere; and a movement between breaks the count."""
    with Box() as box:
        turns = ran(box, [*round_of(2), says("review", 2), says("fix", 3), says("other", 1),
                          *round_of(2), says("review", 1)])
        expect(JUDGE not in turns, turns)
    with Box() as box:
        turns = ran(box, [*round_of(2), says("review", 3), says("other", 1), *round_of(3),
                          says(JUDGE, 1), says("review", 1)])
        expect(turns.index(JUDGE) == 12, turns)


def what_is_ignored_breaks_nothing(box):
    turns = ran(box, [*round_of(1, 2), *round_of(1), *round_of(1, 2), says(JUDGE, 1),
                      says("review", 1)])
    expect(turns == ["review", "fix", "lint", "review", "fix", "review", "fix", "lint", JUDGE,
                     "review"], turns)


def a_fork_counts_on(box):
    words = words_of(box, [*round_of(3), says(JUDGE, 1), says("review", 1)])
    box.segue("run", *words)
    first = box.begun()[0]
    box.segue("fork", first, "--from", "review#3", "--scenario", words[2], status=0)
    second = next(p for p in box.begun() if p != first)
    turns = [r["movement"] for r in of_type(records(second), "turn_start")]
    expect(turns == ["review", "fix", JUDGE, "review"], turns)
    verified(box, second)


def mistakes_are_told(box):
    bad = FLOW.replace("cycle: [review, fix]", "cycle: [review, fixx, review]").replace(
        "next: ask}]", "next: asc}]")
    done = box.segue("lint", box.file("bad.yaml", bad), err=b"there is no movement fixx: did you mean fix?")
    expect(b"review is listed twice" in done.stderr, done.stderr)
    expect(b"there is no movement asc: did you mean ask?" in done.stderr, done.stderr)
    done = box.segue("lint", box.file("good.yaml", FLOW))
    expect(b"no rule leads to the movement ask" not in done.stderr, done.stderr)


WANTED = ["review", "fix"] * 3 + [JUDGE, "review"]


def disturbed(spec):
    with Box() as box:
        words = words_of(box, [*round_of(3), says(JUDGE, 1), says("review", 1)])
        done = box.segue("run", *words, env={"SEGUE_FAULT": spec})
        expect(done.returncode in (0, 99), spec, done.returncode, done.stderr)
        if done.returncode != 0:
            begun = box.begun()
            again = box.segue("resume", begun[0]) if begun else box.segue("run", *words)
            expect(again.returncode == 0, spec, again.stdout, again.stderr)
        turns = [r["movement"] for r in of_type(records(box.begun()[0]), "turn_start")]
        expect(turns == WANTED, spec, turns)
        verified(box, box.begun()[0])
        return done.returncode != 0


def exits_at_every_point():
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for first in range(1, MOST, AT_ONCE):
            met = list(pool.map(lambda n: disturbed(f"exit:{n}"), range(first, first + AT_ONCE)))
            if not all(met):
                return f"{first - 1 + met.index(False)} points"
    raise Failed("no run passes untouched")


if __name__ == "__main__":
    sys.exit(main([speaks_before_the_fourth_entry, answer_of_the_loop_goes_on, its_rule_leads_away,
                   counts_begin_anew, a_rule_that_leaves_asks_nobody,
                   what_is_ignored_breaks_nothing, a_fork_counts_on, mistakes_are_told,
                   exits_at_every_point]))
