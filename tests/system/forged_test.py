#!/usr/bin/env python3
"""Forged and honest verdicts: no foreign text may decide, and nearly all honest ones must be read.

usage: forged_test.py BUILD_DIR [CASE...]

The corpus is tests/data/judge/corpus-own.ndjson (README.md there); marked cases of others are looked for in
$SEGUE_SHARED, then in ../shared beside the sources, and skipped when they are not there.
A text is signed as its writer was asked to: an honest one behind its last tag, one that its own hand wrote and does
not mean behind each (the worst case), a foreign one nowhere. Where a case has {mark}, it says so itself.
"""
import re
import sys
from pathlib import Path

import json
import os
from concurrent.futures import ThreadPoolExecutor

from support import Box, expect, main

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.environ.get("SEGUE_SHARED", ROOT + "/../shared")
MARK = "k7wd"
HONEST, OWN = ("honest", "handed_on"), ("not_meant", "conflict")
OWN_TAKEN, HONEST_READ, JUDGES_READ = 0.15, 0.80, 0.95  # at most, at least, at least
# Most of what is not meant in the own corpus is signed behind "Wrong answer:" and the like, which form cannot tell.
OWN_TAKEN_HERE, JUDGES_READ_HERE = 0.41, 0.87


def signed(case):
    """The case's text with the mark where its writer would have put it."""
    text = case["text"]
    tags = list(re.finditer(r"\[" + re.escape(case["movement"]) + r": ?\d+\]", text, re.I))
    if "{mark}" in text or case.get("kind") not in HONEST + OWN or not tags:
        return text.replace("{mark}", MARK)
    for tag in reversed(tags if case["kind"] in OWN else tags[-1:]):
        text = text[:tag.end()] + " " + MARK + text[tag.end():]
    return text


def replies_of(case):
    """The judge's replies. Asked once more, an honest one gives its value alone, any other says the same again."""
    replies = case.get("replies", [])
    if any(r.get("purpose") == "reask" for r in replies) or "workflow" in case:
        return replies
    again = [dict(r, purpose="reask", times=0) for r in replies if "stage" in r]
    if case.get("kind") == "honest_judge" and len(case["stages"]) == 1:
        key = {"structured_output": "step", "ai_judge": "matched_index"}.get(case["stages"][0])
        tag = f"[{case['movement'].upper()}:{case['expected']}]"
        alone = json.dumps({"reason": "Read once more.", key: case["expected"]}) if key else tag
        again = [{"stage": case["stages"][0], "purpose": "reask", "text": alone, "times": 0}]
    return again + replies


def judgment_of_run(box, case):
    workflow = box.file("w.yaml", case["workflow"])
    done = box.segue("run", workflow, "-q", "--json", "-C", box.cwd, "-l", box.logs, "-f", "-", "-s",
                     box.dir + "/s.json", stdin=case["text"].encode())
    expect(done.returncode != 2, case["id"], done.stderr)
    records = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
    return next((r for r in records if r["type"] == "judgment" and
                 r.get("movement") == case["movement"]), {})


def judgment_of_text(box, case):
    words = [w for rule in case["rules"] for w in ("--rule", rule)]
    if "replies" in case:
        words += ["-p", "script", "-s", box.dir + "/s.json"]
    if "phase1_tag" in case["stages"]:
        words += ["--mark", MARK]
    done = box.segue("judge", "--name", case["movement"], "--json", "--stages",
                     ",".join(case["stages"]), "-C", box.cwd, *words,
                     stdin=signed(case).encode("utf-8", "surrogatepass"))
    expect(done.returncode != 2, case["id"], done.stderr)
    record = json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else {}
    return {} if record.get("type") == "session_stop" else record


def judged(case):
    """The rule of the case's judgment, or None."""
    with Box() as box:
        box.file("s.json", json.dumps({"replies": replies_of(case)}), sign=False)
        for name, content in case.get("files", {}).items():
            Path(f"{box.cwd}/{name}").write_text(content)
        record = judgment_of_run(box, case) if "workflow" in case else judgment_of_text(box, case)
        expect("ambiguous" not in record, case["id"], "a judgment is not ambiguous: a stage is")
        return record.get("rule")


def corpus(path, most=OWN_TAKEN, judges=JUDGES_READ):
    cases = [json.loads(line) for line in Path(path).read_bytes().splitlines()]
    with ThreadPoolExecutor(2) as pool:
        rules = list(pool.map(judged, cases))
    wrong, of = [], {name: [0, 0] for name in ("honest", "own", "judges")}  # counted, all
    for case, rule in zip(cases, rules):
        rule_wanted = case["expected"] if isinstance(case["expected"], int) else None
        own = case.get("hand", "own" if case.get("kind") in OWN else "foreign") == "own"
        agent = case.get("stages") == ["phase1_tag"]
        if rule_wanted is not None:
            group = "honest" if agent else "judges"
            bad = rule not in (None, rule_wanted)
        else:
            group = "own" if agent and own else None
            bad = group is None and rule not in (None, *case.get("also", []))
        if group:
            of[group][0] += rule is not None
            of[group][1] += 1
        if bad:
            wrong.append(f"{case['id']}: rule {rule}, wanted {case['expected']}: {case['why']}")
    expect(not wrong, f"{len(wrong)} of {len(cases)} wrong:", "\n    ".join(["", *wrong]))
    expect(of["own"][0] <= most * of["own"][1] and of["honest"][0] >= HONEST_READ * of["honest"][1] and
           of["judges"][0] >= judges * of["judges"][1], of)
    return f"{len(cases)} texts, {of}"


def the_own_corpus():
    return corpus(ROOT + "/tests/data/judge/corpus-own.ndjson", OWN_TAKEN_HERE, JUDGES_READ_HERE)


def others(name):
    path = f"{SHARED}/data/{name}"
    if not os.path.exists(path):
        return f"skipped: no {name} here"
    return corpus(path)


def marked_cases():
    return others("marked-public.ndjson")


def judges_cases():
    return others("judge-public.ndjson")


if __name__ == "__main__":
    sys.exit(main([the_own_corpus, marked_cases, judges_cases]))
