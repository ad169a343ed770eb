#!/usr/bin/env python3
"""Files and verdicts of takt: 40 judged cases, with what each of the two chose, and files in the
shape of its own, which load as they are and run to their end.

usage: takt_test.py BUILD_DIR [CASE...]
tests/data/judge/takt-40.ndjson: a case a line; `takt_0_39` is what takt 0.39.0 did with it (its
rules count from 0), `segue` what segue does. SEGUE_UPDATE=1 writes the latter anew.
"""
import json
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor

from support import Box, expect, main, of_type, records, verified

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data")
CASES = DATA + "/judge/takt-40.ndjson"
STAGES = ("structured_output", "phase3_tag", "ai_judge")
# docs/compatibility.md tells of these.
DIFFERENT = {"phase-1 tag 2 against s3 index 3", "s1 {step:2} without reason, s2 tag 3",
             "s1 extra key, s2 tag 3", "s1 JSON as text, no native value",
             "s2 two tags, last wins", "s3 [JUDGE:1] [JUDGE:2]",
             "one visible + interactive_only",
             "only interactive_only rule", "hidden rule in the middle, s3 index 2",
             "hidden rule in the middle, s3 index 3", "same label twice, s1 step 2",
             "same label twice, only that label, s1 step 2", "label and ai(), phase-1 tag 1",
             "step name review.v2, tag of reviewXv2"}


def workflow_of(case):
    ends = [{"name": n, "instruction": "Do what is left.",
             "rules": [{"condition": "done", "next": "COMPLETE"}]} for n in "abc"]
    first = {"name": case["movement"], "instruction": "Look at it.", "rules": case["rules"]}
    return json.dumps({"name": "case", "provider": "script", "judge": {"fallback": "own_tag"},
                       "movements": [first, *ends]})


def answer_of(given):
    if "error" in given:
        return {"error": {"class": "protocol", "message": "boom"}}
    return {"structured": given["so"], "text": ""} if "so" in given else {"text": given["text"]}


def replies_of(case):
    name = case["movement"]
    work = {"error": {"class": "auth", "message": "boom"}} if case["answer_error"] else {
        "text": case["answer"]}
    return [{"movement": name, "stage": stage, "times": 0, **answer_of(case[stage])}
            for stage in STAGES if case.get(stage)] + [
        {"movement": name, "purpose": "execute", "times": 0, **work}] + [
        {"movement": n, "times": 0, "text": "done"} for n in "abc"]


def chosen(case):
    """What segue did: the rule and the stage, or how it stopped."""
    with Box() as box:
        done = box.segue("run", box.file("case.yaml", workflow_of(case)), "--scenario",
                         box.file("case.json", json.dumps({"replies": replies_of(case)})),
                         "--logs", box.logs, "--task", "x")
        if not box.begun():
            expect(done.returncode == 2, case["name"], done.returncode, done.stderr)
            return {"refused": True}
        log = records(box.begun()[0])
        verified(box, box.begun()[0])
        first = [r for r in of_type(log, "judgment") if r["movement"] == case["movement"]]
        if first and first[0]["rule"]:
            return {"rule": first[0]["rule"], "method": first[0]["method"]}
        return {"stop": log[-1]["reason"]}


def agrees(case):
    """Is it takt's verdict too? No verdict in both is the same."""
    takt, ours = case["takt_0_39"], case["segue"]
    if "rule" not in ours:
        return takt.startswith("[]") or takt.startswith("[(None")
    return takt.startswith(f"[({ours['rule'] - 1}, '{ours['method']}')")


def forty_judged_cases():
    with open(CASES, encoding="utf-8") as f:
        cases = [json.loads(line) for line in f]
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(chosen, cases))
    if os.environ.get("SEGUE_UPDATE") == "1":
        with open(CASES, "w", encoding="utf-8") as f:
            for case, now in zip(cases, found):
                case["segue"] = now
                f.write(json.dumps(case, ensure_ascii=False) + "\n")
    wrong = [(c["name"], c["segue"], now) for c, now in zip(cases, found) if c["segue"] != now]
    expect(len(cases) == 40 and not wrong, wrong)
    other = {c["name"] for c in cases if not agrees(c)}
    expect(other == DIFFERENT, "other than docs/compatibility.md:", other ^ DIFFERENT)
    return f"{40 - len(other)} alike, {len(other)} told of"


def runs(name, wanted, notes):
    """A file of tests/data/takt in a project's .takt folder, with its facets beside it."""
    with Box() as box:
        shutil.copytree(DATA + "/takt", box.cwd + "/.takt")
        path = f"{box.cwd}/.takt/workflows/{name}.yaml"
        said = box.segue("lint", path, status=0)
        warned = [line for line in said.stderr.decode().splitlines() if ": warning: " in line]
        expect(len(warned) == len(notes) and all(n in " ".join(warned) for n in notes), warned)
        box.segue("run", path, "--scenario", f"{box.cwd}/.takt/{name}.json", "--cwd",
                  box.cwd, "--logs", box.logs, "--task", "Add a queue.", status=0)
        log = records(box.begun()[0])
        verified(box, box.begun()[0])
        turns = [(r["movement"], r["rule"]) for r in of_type(log, "judgment")]
        expect(sorted(turns) == sorted(wanted), turns)
        return log


def plan_and_review_at_once():
    runs("plan-review", [("plan", 1), ("implement", 1), ("reviews", 2), ("reviews.arch", 1),
                         ("reviews.qa", 2), ("fix", 1), ("reviews", 1), ("reviews.arch", 1),
                         ("reviews.qa", 1)],
         ["piece_config is ignored", "allowed_tools is ignored"])


def three_vote():
    runs("magi", [("magi", 1), ("magi.melchior", 1), ("magi.balthasar", 2), ("magi.casper", 1)],
         ["piece_config is ignored", "allowed_tools is ignored"])


def two_reviewers_and_a_fix():
    runs("review-fix", [("review", 2), ("review.code", 1), ("review.security", 2), ("fix", 1),
                        ("review", 1), ("review.code", 1), ("review.security", 1),
                        ("supervise", 1)],
         ["piece_config is ignored", "allowed_tools is ignored", "is read as"])


def two_that_write_run_one_after_the_other():
    log = runs("both-write", [("write", 1), ("write.api", 1), ("write.docs", 1)],
               ["max_iterations is read as max_movements", "2 children of write may change the same files: they run one after the other"])
    workflow = of_type(log, "session_start")[0]["workflow"]
    expect(workflow["max_movements"] == 6 and workflow["movements"][0]["concurrency"] == 1, workflow)
    calls = [(r["type"], r["call"]) for r in log if r["type"] in ("call_start", "call_end")]
    expect(all(calls[i][0] == "call_start" and calls[i + 1] == ("call_end", calls[i][1]) for i in range(0, len(calls), 2)), calls)
    with Box() as box:  # in segue's own words it stays an error
        own = open(f"{DATA}/takt/workflows/both-write.yaml").read().replace("max_iterations", "max_movements").replace(
            "        permission_mode: edit\n", "").replace("../facets/personas/coder.md", "A coder.")
        box.segue("lint", box.file("own.yaml", own), status=2, err=b"may change the same files at once")


FILE = """name: theirs
movements:
  - name: plan
    persona: architecture-reviewer
    policy: coding
    instruction: plan
    %s
    rules: [{condition: planned, next: COMPLETE}]
"""


def facets_of(box, name, text):
    """Where each facet of the file comes from, by its kind."""
    os.makedirs(os.path.dirname(f"{box.cwd}/{name}"), exist_ok=True)
    box.file("work/" + name, text)
    said = box.segue("lint", name, status=0).stdout.decode().splitlines()
    return {line.split()[0]: line.split(None, 1)[1] for line in said if line.startswith("    ")}


def names_that_takt_ships_are_found(box):
    """For files of its dialect: those of an installed takt, and segue's own, in the file's language."""
    ours = facets_of(box, "own.yaml", FILE % "allowed_tools: [Read]")
    for kind, name in (("persona", "en/personas/architecture-reviewer.md"), ("policy", "en/policies/coding.md"),
                       ("instruction", "en/instructions/plan.md")):
        expect(ours[kind].endswith(f"/{name}  (segue's)"), kind, ours)
    ja = facets_of(box, "ja.yaml", FILE % "allowed_tools: [Read]" + "language: ja\n")
    expect("/ja/policies/coding.md" in ja["policy"], ja)
    for place in ("work/node_modules/takt", "lib/node_modules/takt"):
        for language in ("en", "ja"):
            os.makedirs(f"{box.dir}/{place}/builtins/{language}/facets/policies")
            box.file(f"{place}/builtins/{language}/facets/policies/coding.md", "theirs " + place + language)
    os.makedirs(box.dir + "/lib/node_modules/takt/bin")
    os.makedirs(box.dir + "/bin")
    program = box.file("lib/node_modules/takt/bin/takt", "#!/bin/sh\nexit 1\n")
    os.chmod(program, 0o755)
    os.symlink(program, box.dir + "/bin/takt")
    box.env["PATH"] = f"{box.dir}/bin:{box.env['PATH']}"
    theirs = FILE % "allowed_tools: [Read]"
    for text, name in ((theirs, "a.yaml"), (FILE % "edit: false", ".takt/pieces/b.yaml")):
        said = facets_of(box, name, text)
        expect("/work/node_modules/takt/builtins/en/" in said["policy"] and "(takt's)" in said["policy"], said)
        expect("(segue's)" in said["persona"], "what takt does not have here", said)
    box.file("work/own.yaml", FILE % "edit: false")
    box.segue("lint", "own.yaml", status=2, err="there is no persona named architecture-reviewer")
    shutil.rmtree(box.cwd + "/node_modules")
    said = facets_of(box, "a.yaml", theirs + "language: ja\n")
    expect("/lib/node_modules/takt/builtins/ja/" in said["policy"], said)
    rows = json.loads(box.segue("facets", "--json", status=0).stdout)
    seen = {(r["kind"], r["name"], r["from"], "shadowed_by" in r) for r in rows}
    expect({("policy", "coding", "takt", False), ("policy", "coding", "segue", True)} <= seen, seen)


def further_folders_of_facets(box):
    """Those that config.yaml names come after the user's and before takt's and segue's own."""
    os.makedirs(box.dir + "/team/policies")
    box.file("team/policies/coding.md", "the team's")
    os.makedirs(box.dir + "/home/config/segue", exist_ok=True)
    box.file("home/config/segue/config.yaml", f"facets: [{box.dir}/team, ~/nowhere]\n")
    own = FILE % "edit: false"
    own = own.replace("architecture-reviewer", "You look.").replace("instruction: plan", "instruction: Plan it.")
    expect("/team/policies/coding.md" in facets_of(box, "own.yaml", own)["policy"], "team")
    for wrong, said in (("[team]", "absolute path"), ("team", "a list"), ("[1]", "absolute path")):
        box.file("home/config/segue/config.yaml", f"facets: {wrong}\n")
        box.segue("lint", "own.yaml", status=2, err=said)


if __name__ == "__main__":
    sys.exit(main([names_that_takt_ships_are_found, further_folders_of_facets, forty_judged_cases, plan_and_review_at_once, three_vote,
                   two_reviewers_and_a_fix, two_that_write_run_one_after_the_other]))
