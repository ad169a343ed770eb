#!/usr/bin/env python3
"""Forged and honest verdicts: segue judge and run must take from a text what a careful reader would.

usage: forged_test.py BUILD_DIR [CASE...]

The corpus is tests/data/judge/corpus-own.ndjson (README.md there); a second one is looked for in
$SEGUE_SHARED, then in ../shared beside the sources, and skipped when it is not there.
"""
import sys
from pathlib import Path

import json
import os
from concurrent.futures import ThreadPoolExecutor

from support import Box, expect, main

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.environ.get("SEGUE_SHARED", ROOT + "/../shared")


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
    done = box.segue("judge", "--name", case["movement"], "--json", "--stages",
                     ",".join(case["stages"]), "-C", box.cwd, *words,
                     stdin=case["text"].encode("utf-8", "surrogatepass"))
    expect(done.returncode != 2, case["id"], done.stderr)
    record = json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else {}
    return {} if record.get("type") == "session_stop" else record


def judged(case):
    """The rule of the case's judgment, or None."""
    with Box() as box:
        box.file("s.json", json.dumps({"replies": case.get("replies", [])}))
        for name, content in case.get("files", {}).items():
            Path(f"{box.cwd}/{name}").write_text(content)
        record = judgment_of_run(box, case) if "workflow" in case else judgment_of_text(box, case)
        expect("ambiguous" not in record, case["id"], "a judgment is not ambiguous: a stage is")
        return record.get("rule")


def corpus(path):
    cases = [json.loads(line) for line in Path(path).read_bytes().splitlines()]
    with ThreadPoolExecutor(2) as pool:
        rules = list(pool.map(judged, cases))
    wrong = []
    for case, rule in zip(cases, rules):
        wanted = case["expected"] if isinstance(case["expected"], int) else None
        if rule != wanted:
            wrong.append(f"{case['id']} {case['kind']}: rule {rule}, wanted {case['expected']}: "
                         f"{case['why']}")
    expect(len(cases) > 100 and not wrong, f"{len(wrong)} of {len(cases)} wrong:",
           "\n    ".join(["", *wrong]))
    return f"{len(cases)} texts"


def the_own_corpus():
    return corpus(ROOT + "/tests/data/judge/corpus-own.ndjson")


def the_public_corpus():
    path = SHARED + "/data/forged-public.ndjson"
    if not os.path.exists(path):
        return "skipped: no forged-public.ndjson here"
    return corpus(path)


if __name__ == "__main__":
    sys.exit(main([the_own_corpus, the_public_corpus]))
