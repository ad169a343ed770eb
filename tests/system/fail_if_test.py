#!/usr/bin/env python3
"""--fail-if and --junit of audit, agree, replay, test, verify and rejudge: what a build asks of the figures decides
its exit status, what is not known is not passed, and a name that is no figure is bad usage."""
import json
import sys
import xml.etree.ElementTree as xml

from audit_logs import write
from support import Box, expect, main

RULES = """
name: rev
initial_movement: look
movements:
  - name: look
    instruction: "Look at it and say."
    rules:
      - condition: approved
        next: COMPLETE
      - condition: needs fix
        next: ABORT
"""


def ends(box, status, *words, said=None):
    done = box.segue(*words)
    expect(done.returncode == status, words, done.returncode, done.stderr[-400:])
    expect(said is None or said in done.stderr.decode(), words, said, done.stderr)


def cases(path):
    suite = xml.parse(path).getroot()
    found = {c.get("name"): c.find("failure") for c in suite.iter("testcase")}
    expect(int(suite.get("tests")) == len(found), suite.attrib, len(found))
    expect(int(suite.get("failures")) == sum(f is not None for f in found.values()), suite.attrib)
    return {name: None if f is None else f.get("message") for name, f in found.items()}


def counts(box: Box):
    folder, path = box.dir + "/many", box.dir + "/j.xml"
    write(folder, 30, 8, seed=4)
    unsure = json.loads(box.segue("audit", folder, "--json").stdout)["totals"]
    share = unsure["unsure"] / unsure["judgments"]
    ends(box, 1, "audit", folder, "--fail-if", f"unsure > {share - 0.01:.3f}", said="all judgments: unsure > ")
    ends(box, 0, "audit", folder, "--fail-if", f"unsure > {share + 0.01:.3f}")
    ends(box, 1, "audit", folder, "--fail-if", "counts.sessions.counted == 30 && judgments > 10")
    ends(box, 2, "audit", folder, "--fail-if", "unsre > 0.2", "--junit", path, said="unsre is no figure: there are judgments, ")
    ends(box, 2, "audit", folder, "--fail-if", "unsure >", said="--fail-if, byte ")
    groups = json.loads(box.segue("audit", folder, "--by", "movement", "--json").stdout)["groups"]
    ends(box, 1, "audit", folder, "--by", "movement", "--fail-if", "unsure >= 0", "--junit", path)
    expect(cases(path) == {g["movement"]: "unsure >= 0" for g in groups}, cases(path))
    ends(box, 0, "audit", folder, "--by", "movement", "--fail-if", "unsure > 1", "--junit", path)
    expect(set(cases(path).values()) == {None}, cases(path))
    ends(box, 1, "audit", folder, "--errors", "--fail-if", "answers > 0")
    ends(box, 2, "audit", folder, "--fail-if", "unsure > 1", "--junit", box.dir + "/no/such.xml", said="cannot write ")


def verdicts(box: Box):
    flow, path = box.file("rev.yaml", RULES), box.dir + "/j.xml"
    for rule in (1, 1, 2):
        scenario = box.file("s.json", json.dumps({"replies": [
            {"purpose": "execute", "text": "looked"}, {"purpose": "judge", "text": json.dumps({"reason": "r", "step": rule})}]}))
        box.segue("run", flow, "--scenario", scenario, "--provider", "script", "--logs", box.logs, "--cwd", box.cwd, "--task", "t")
    ends(box, 0, "verify", box.logs, "--fail-if", "bad > 0", "--junit", path)
    expect(len(cases(path)) == 4 and set(cases(path).values()) == {None}, cases(path))  # the logs, and the expression
    ends(box, 1, "verify", box.logs, "--fail-if", "complete < 4", said="all logs: complete < 4")
    ends(box, 0, "replay", box.logs, "--fail-if", "changed > 0", "--junit", path)
    expect(len(cases(path)) == 4 and set(cases(path).values()) == {None}, cases(path))
    ends(box, 1, "replay", box.logs, "--fail-if", "judgments < 4")
    again = box.file("again.json", json.dumps({"replies": [{"text": '{"reason": "r", "step": 1}', "times": 0}]}))
    words = ("rejudge", box.logs, "--provider", "script", "--scenario", again, "--yes", "--as", "x")
    ends(box, 1, *words, "--fail-if", "changed > 0", "--junit", path, said="all judgments: changed > 0")
    got = cases(path)
    expect(len(got) == 4 and sum(m is not None for m in got.values()) == 2, got)
    expect(any(m == "rule 2 was recorded, now it is rule 1" for m in got.values()), got)
    ends(box, 0, *words, "--fail-if", "changed > 1")
    ends(box, 1, "agree", box.logs, "--fail-if", "agreement < 0.9", "--junit", path)
    expect(cases(path) == {"rev/look: rejudge x and verdict": "agreement < 0.9"}, cases(path))
    ends(box, 0, "agree", box.logs, "--fail-if", "agreement < 0.5")
    ends(box, 1, "agree", box.logs, "--fail-if", "kappa < 0.5", said="cannot be told")  # one never varied


def tried_cases(box: Box):
    told = box.file("cases.ndjson", "".join(json.dumps(c) + "\n" for c in (
        {"id": "a", "text": "fine", "rules": ["yes", "no"], "expected": 1},
        {"id": "b", "text": "bad", "rules": ["yes", "no"], "expected": 2})))
    scenario = box.file("t.json", json.dumps({"replies": [{"text": '{"reason": "r", "step": 1}', "times": 0}]}))
    words = ("test", told, "--provider", "script", "--scenario", scenario)
    ends(box, 1, *words)
    ends(box, 0, *words, "--fail-if", "wrong > 1")
    ends(box, 1, *words, "--fail-if", "pass < cases", said="script: pass < cases")


if __name__ == "__main__":
    sys.exit(main([counts, verdicts, tried_cases]))
