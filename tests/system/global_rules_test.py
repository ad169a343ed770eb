#!/usr/bin/env python3
"""Rules of the whole workflow: in front of each movement's own, by when() or by label."""
import json
import sys

from support import expect, flow, main, of_type, records, verified

FLOW = flow("global_rules_flow")


def ran(box, status, replies, code, flow=FLOW):
    with open(box.cwd + "/status", "w") as f:
        f.write(status)
    path = box.file("flow.yaml", flow)
    box.segue("run", path, "--scenario", box.file("s.json", json.dumps({"replies": replies})),
              "--cwd", box.cwd, "--logs", box.logs, "--task", "t", status=code)
    log = box.begun()[0]
    verified(box, log)
    return [(r["movement"], r["condition"], r["rule"]) for r in of_type(records(log), "judgment")]


def says(movement, rule):
    name = movement.split(".")[-1].upper()
    return {"movement": movement, "text": f"so it is\n[{name}:{rule}]"}


def a_machine_rule_comes_first(box):
    """It beats the movement's own; where there is no exit to look at, it is false."""
    verdicts = ran(box, "75", [says("cancelled", 2)], 3)
    expect(verdicts[0] == ("check", "when(exit == 75)", 1), verdicts)
    expect([v[0] for v in verdicts] == ["check", "cancelled"], verdicts)


def a_label_is_asked_for_everywhere(box):
    verdicts = ran(box, "0", [says("work", 2), says("help", 2)], 3)
    expect(verdicts[1] == ("work", "says BLOCKED", 2), verdicts)
    expect(verdicts[2][:2] == ("help", "told"), verdicts)  # it does not lead to itself


def own_rules_follow(box):
    """A group without labels of its own is not asked; its children have no rules but their own."""
    verdicts = ran(box, "0", [says("work", 3), says("both.a", 1), says("both.b", 1)], 0)
    expect([v[:2] for v in verdicts if v[0] in ("check", "work", "both")] == [
        ("check", "when(exit == 0)"), ("work", "done"), ("both", 'all("good")')], verdicts)
    expect({v[2] for v in verdicts if v[0].startswith("both.")} == {1}, verdicts)


def mistakes_are_told(box):
    bad = box.file("bad.yaml", FLOW.replace("next: help}", "next: hepl}"))
    box.segue("lint", bad, err=b"bad.yaml:6:37: there is no movement hepl: did you mean help?")
    bad = box.file("bad.yaml", FLOW.replace("says BLOCKED, next: help", "says BLOCKED"))
    expect(b"a rule has no next" in box.segue("lint", bad).stderr, "next")
    done = box.segue("lint", box.file("good.yaml", FLOW))
    expect(done.returncode == 0 and b"no rule leads" not in done.stderr, done.stderr)


if __name__ == "__main__":
    sys.exit(main([a_machine_rule_comes_first, a_label_is_asked_for_everywhere, own_rules_follow,
                   mistakes_are_told]))
