#!/usr/bin/env python3
"""Movements with children, in the real program: what runs is settled before a stop, a resume asks
only who failed, and no fault point of a group loses or repeats what was paid.

usage: group_test.py BUILD_DIR [CASE...]
"""
import json
import sys

sys.dont_write_bytecode = True

from concurrent.futures import ThreadPoolExecutor  # noqa: E402

from support import Box, Failed, expect, main, need_build, of_type, records, verified  # noqa: E402

AT_ONCE = 4
MOST = 1000

GROUP = """
name: group
provider: script
judge: {stages: [phase1_tag]}
movements:
  - name: review
    parallel:
      - {name: a, instruction: Look at a., rules: [{condition: approved}, {condition: needs fix}]}
      - {name: b, instruction: Look at b., rules: [{condition: approved}, {condition: needs fix}]}
      - {name: c, instruction: Look at c., rules: [{condition: approved}, {condition: needs fix}]}
    rules:
      - {condition: all("approved"), next: COMPLETE}
      - {condition: any("needs fix"), next: fix}
  - name: fix
    edit: true
    instruction: "Mend this: {previous_response}"
    rules: [{condition: done, next: review}]
"""


def files(box, replies):
    return [box.file("group.yaml", GROUP), "--scenario",
            box.file("group.json", json.dumps({"replies": replies})), "--cwd", box.cwd, "--logs",
            box.logs, "--task", "look at it"]


def says(name, number, **more):
    return {"movement": f"review.{name}", "text": f"done\n[{name.upper()}:{number}]", **more}


TWO_ROUNDS = [says("a", 1), says("b", 2), says("c", 1),
              {"movement": "fix", "text": "mended\n[FIX:1]"},
              says("a", 1), says("b", 1), says("c", 1)]


def verdicts_of(log):
    """Movement, rule and method of each judgment, by movement, in the order of its runs."""
    found = {}
    for record in of_type(log, "judgment"):
        found.setdefault(record["movement"], []).append((record["rule"], record["match_method"]))
    return found


WANTED = {"review.a": [(1, "tag_fallback")] * 2, "review.c": [(1, "tag_fallback")] * 2,
          "review.b": [(2, "tag_fallback"), (1, "tag_fallback")], "fix": [(1, "auto_select")],
          "review": [(2, "aggregate"), (1, "aggregate")]}


def from_start_to_end():
    with Box() as box:
        done = box.segue("run", *files(box, TWO_ROUNDS))
        expect(done.returncode == 0, done.stdout, done.stderr)
        log = records(box.begun()[0])
        expect(verdicts_of(log) == WANTED, verdicts_of(log))
        verified(box, box.begun()[0])
        out = done.stdout.decode()
        expect("  2   review.a" in out and "aggregate" in out, out)
        shown = box.segue("show", box.begun()[0], "review.b#2").stdout.decode()
        expect("run 2" in shown and "[B:1]" in shown, shown)
        drawn = box.segue("graph", "--session", box.begun()[0]).stdout.decode()
        expect("review  (3 at once; starts here)  2 runs" in drawn, drawn)
        expect('any("needs fix") -> fix  once: aggregate' in drawn, drawn)
        fix = next(r for r in of_type(log, "call_start") if r["turn"] == 5)
        prompt = json.dumps(fix["prompt"])
        expect(prompt.index("## a") < prompt.index("## b") < prompt.index("## c"), prompt)


def what_runs_is_settled_first():
    """One fails at once, another answers much later: its answer is kept, and a resume makes one
    call."""
    replies = [{"movement": "review.a", "error": {"class": "auth"}, "delay_ms": 10},
               says("b", 1, delay_ms=300), says("c", 1), says("a", 1)]
    with Box() as box:
        done = box.segue("run", *files(box, replies))
        expect(done.returncode == 4, done.returncode, done.stderr)
        path = box.begun()[0]
        log = records(path)
        kinds = [r["type"] for r in log]
        expect(kinds[-1] == "session_stop" and kinds.count("call_end") == 3, kinds)
        expect(log[-1]["reason"] == "rule_no_match", log[-1])
        ends = [r for r in of_type(log, "turn_end") if r.get("outcome") == "error"]
        expect(len(ends) == 1 and ends[0]["class"] == "auth", ends)
        done = box.segue("resume", path)
        expect(done.returncode == 0, done.stdout, done.stderr)
        expect(len(of_type(records(path), "call_start")) == 4, "calls")
        verified(box, path)


def children_are_checked_before_a_start():
    """A provider of a child that cannot run is said at its place; plan counts its calls."""
    with Box() as box:
        path = box.file("child.yaml", GROUP.replace(
            "name: b, ", "name: b, provider: [claude, codex], "))
        done = box.segue("run", path, "-t", "x", "-l", box.logs, env={"PATH": "/nowhere"})
        line = 1 + open(path).read().split("\n").index(
            next(x for x in open(path).read().split("\n") if "name: b" in x))
        expect(done.returncode == 2, done.returncode, done.stderr)
        expect(f"child.yaml:{line}:".encode() in done.stderr, done.stderr)
        expect(not box.begun(), "it began")
        words = files(box, TWO_ROUNDS)
        plan = json.loads(box.segue("plan", *words[:3], "--task", "x", "--json").stdout)
        found = {m["name"]: (m["reachable"], m["calls"]) for m in plan["movements"]}
        expect(found["review"] == (True, 3) and found["review.b"] == (True, 1), found)


def disturbed(spec, allowed):
    with Box() as box:
        words = files(box, TWO_ROUNDS)
        done = box.segue("run", *words, env={"SEGUE_FAULT": spec})
        expect(done.returncode in (0, *allowed), spec, "status", done.returncode, done.stderr)
        if done.returncode != 0:
            begun = box.begun()
            again = box.segue("resume", begun[0]) if begun else box.segue("run", *words)
            expect(again.returncode == 0, spec, again.stdout, again.stderr)
        log = records(box.begun()[0])
        expect(verdicts_of(log) == WANTED, spec, verdicts_of(log))
        verified(box, box.begun()[0])
        repeats = [r for r in of_type(log, "call_start") if r["attempt"] > 1]
        expect(len(repeats) <= 3, spec, "repeats", len(repeats))  # one a child that was open
        return done.returncode != 0


def sweep(kind, allowed):
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for first in range(1, MOST, AT_ONCE):
            met = list(pool.map(lambda n: disturbed(f"{kind}:{n}", allowed),
                                range(first, first + AT_ONCE)))
            if not all(met):
                return first - 1 + met.index(False)
    raise Failed("no run passes untouched")


def exits_at_every_point():
    met = sweep("exit", (99,))
    expect(met > 20, "only", met, "fault points")
    return f"{met} points"


def failed_writes():
    return f"{sweep('fail:write', (1,))} writes"


if __name__ == "__main__":
    need_build()
    sys.exit(main([from_start_to_end, what_runs_is_settled_first,
                   children_are_checked_before_a_start, exits_at_every_point, failed_writes]))
