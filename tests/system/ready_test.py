#!/usr/bin/env python3
"""The ready workflows, found by their names, in a repository with a real fault; the script provider
plays agents and judges, the checks are really run."""
import itertools
import json
import os
import subprocess
import sys

from support import Box, expect, main

WRONG = "#!/bin/sh\n# the larger of two numbers\nif [ \"$1\" -lt \"$2\" ]; then echo \"$1\"; else echo \"$2\"; fi\n"
RIGHT = WRONG.replace("-lt", "-gt")
CHECK = """#!/bin/sh
for c in '1 2 2' '9 3 9' '4 4 4'; do
  set -- $c
  [ "$(sh max.sh $1 $2)" = "$3" ] || { echo "max $1 $2 is not $3"; exit 1; }
done
echo all right
"""


def git(box, *words):
    subprocess.run(["git", "-C", box.cwd, "-c", "user.name=t", "-c", "user.email=t@localhost", *words],
                   check=True, capture_output=True, env=box.env)


def repository(box, text=WRONG):
    box.file("work/max.sh", text)
    box.file("work/check.sh", CHECK)
    git(box, "init", "-q", "-b", "main")
    git(box, "add", "-A")
    git(box, "commit", "-qm", "first")


def says(movement, text, rule=None, **more):
    """An answer of an agent, and what its judge says of it."""
    replies = [{"movement": movement, "purpose": "execute", "text": text, **more}]
    if rule is not None:
        replies.append({"movement": movement, "purpose": "judge",
                        "text": json.dumps({"reason": "It says so.", "step": rule})})
    return replies


def run(box, name, replies, *words, status=0):
    scenario = box.file("replies.json", json.dumps({"replies": [r for some in replies for r in some]}))
    done = box.segue("run", name, "-p", "script", "-s", scenario, "--cwd", box.cwd, "-l", box.logs,
                     "--json", *words, status=status)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    expect(box.segue("verify", "--logs", box.logs, "last").returncode == 0, "verify")
    return records


def turns(records):
    names = {r["turn"]: r["movement"] for r in records if r["type"] == "turn_start"}
    return [names[r["turn"]] for r in records if r["type"] == "judgment"]


def check_says(box):
    return subprocess.run(["sh", "check.sh"], cwd=box.cwd, capture_output=True, env=box.env).returncode


def default_mends_a_fault():
    fine, not_fine = "nothing must change", "something must change"
    with Box() as box:
        repository(box)
        records = run(box, "default", [
            says("plan", "1. mend max.sh", 1),
            says("implement", "I looked and changed nothing.", 1),
            says("mend", "It was the comparison.", 1, write={"max.sh": RIGHT}),
            says("review.correctness", fine, 1), says("review.upkeep", not_fine, 2),
            says("mend", "The comment was wrong.", 1, contains="must change",
                 write={"max.sh": RIGHT.replace("larger", "greater")}),
            says("review.correctness", fine, 1), says("review.upkeep", fine, 1),
            says("supervise", "Every point is met.", 1),
        ], "-i", "check=sh check.sh", "-t", "max.sh must print the larger number")
        # Siblings begin in any order.
        seen = [n for dotted, run_of in itertools.groupby(turns(records), lambda n: "." in n)
                for n in (sorted(run_of) if dotted else run_of)]
        expect(seen == ["plan", "implement", "check", "mend", "check", "review.correctness",
                                  "review.upkeep", "review", "mend", "check", "review.correctness",
                                  "review.upkeep", "review", "supervise"]
               , turns(records))
        expect(records[-1]["outputs"] == {"summary": "Every point is met."}, records[-1])
        expect(check_says(box) == 0, "the fault is mended")


def done_by_word_alone_is_not_done(box):
    repository(box)
    run(box, "quick", [says("implement", "All tests pass.", 1)] +
               [says("mend", "Mended, all tests pass.", 1)] * 5,
               "-i", "check=sh check.sh", "-t", "mend max.sh", status=3)
    expect(check_says(box) != 0, "nobody mended it")


def quick_ends_when_the_check_passes(box):
    repository(box)
    records = run(box, "quick", [says("implement", "Done.", 1, write={"max.sh": RIGHT})],
                     "-i", "check=sh check.sh", "-t", "mend max.sh")
    expect(turns(records) == ["implement", "check"], turns(records))


def review_changes_nothing():
    value = {"verdict": "change", "findings": [{"file": "max.sh", "line": 3, "severity": "must",
                                                "what": "It prints the smaller one."}]}
    with Box() as box:
        repository(box, RIGHT)
        records = run(box, "review", [])
        expect(turns(records) == ["diff"], "there is nothing to review:", turns(records))
        box.file("work/max.sh", WRONG)
        both = [says("look.correctness", "max.sh:3 is wrong", 2), says("look.upkeep", "fine", 1)]
        records = run(box, "review", both + [says("report", json.dumps(value))])
        expect(records[-1]["outputs"] == {"verdict": "change", "findings": value["findings"]},
               records[-1])
        prompt = next("".join(p for p in r["prompt"] if isinstance(p, str)) for r in records
                      if r["type"] == "call_start" and r["provider"] == "script")
        expect("is HEAD, shown above" in prompt, prompt)
        git(box, "checkout", "-q", "--", ".")
        for hostile in ("--output=stolen", "no-such-branch", "-R"):
            run(box, "review", [], "-i", "range=" + hostile, status=3)
        expect(not os.path.exists(box.cwd + "/stolen"), "git took an option out of an input")


def review_is_called_by_its_name():
    flow = """name: mine
provider: script
movements:
  - name: check
    call: review
    args: {range: HEAD}
    rules:
      - {condition: approved, next: COMPLETE}
      - {condition: must change, next: ABORT}
      - {condition: COMPLETE, next: ABORT}
"""
    with Box() as box:
        repository(box)
        box.file("work/max.sh", RIGHT)
        value = {"verdict": "approve", "findings": []}
        records = run(box, box.file("mine.yaml", flow), [
            says("check/look.correctness", "fine", 1), says("check/look.upkeep", "fine", 1),
            says("check/report", json.dumps(value))])
        expect(turns(records)[-1] == "check/report", turns(records))


def tdd_wants_a_red_test_first():
    test = CHECK.replace("'4 4 4'", "'4 4 4' '-1 -2 -1'").replace("sh max.sh $1", "sh max.sh -- $1")
    code = RIGHT.replace("if [", "[ \"$1\" != -- ] || shift\nif [")
    with Box() as box:
        repository(box, RIGHT)
        records = run(box, "tdd", [
            says("write test", "I wrote none.", 1),
            says("write test", "One more case.", 1, write={"check.sh": test}),
            says("write code", "It takes --.", 1, write={"max.sh": code}),
            says("tidy", "It is plain."),
        ], "-i", "check=sh check.sh", "-t", "max.sh takes --")
        expect(turns(records) == ["before", "write test", "red", "write test", "red", "write code",
                                  "green", "tidy", "last"], turns(records))
        run(box, "tdd", [], "-i", "check=false", "-t", "x", status=3)


def tdd_keeps_tests_and_code_apart():
    """The code's turn may not touch the check, nor the test's turn anything else; an error before any test is not red."""
    test = CHECK.replace("'4 4 4'", "'4 4 4' '-1 -2 -1'").replace("sh max.sh $1", "sh max.sh -- $1")
    for replies, status, last in (
            ([says("write test", "One more case.", 1, write={"check.sh": test}),
              says("write code", "It takes --.", 1, write={"max.sh": RIGHT, "check.sh": CHECK})], 7, "write code"),
            ([says("write test", "One more case.", 1, write={"check.sh": test, "max.sh": "exit 1\n"})], 7, "write test"),
            ([says("write test", "One more case.", 1, write={"check.sh": test}),
              says("write code", "It takes --.", 1, write={"tests/conftest.py": "x"})], 7, "write code")):
        with Box() as box:
            repository(box, RIGHT)
            records = run(box, "tdd", replies, "-i", "check=sh check.sh", "-t", "max.sh takes --", status=status)
            stop = records[-1]
            expect(stop["reason"] == "protected" and f'"{last}" changed' in stop["message"], stop)
    counted = "[ -f broken ] || echo '==== 2 passed in 0.1s ===='; [ ! -f broken ]\n"
    with Box() as box:
        repository(box, RIGHT)
        with open(box.cwd + "/check.sh", "w", encoding="utf-8") as file:
            file.write(counted)
        records = run(box, "tdd", [says("write test", "One more.", 1, write={"test_x.py": "(", "tests/a": str(n)}) for n in range(4)],
                      "-i", "check=sh check.sh && [ ! -f test_x.py ]", "-t", "x", status=3)
        expect("write code" not in turns(records), turns(records))


def fix_ci_starts_with_the_command(box):
    repository(box)
    records = run(box, "fix-ci", [
        says("find", "max.sh:3 compares the wrong way round.", 1),
        says("mend", "Turned round.", 1, write={"max.sh": RIGHT}),
    ], "-i", "command=sh check.sh")
    expect(turns(records) == ["run", "find", "mend", "run"], turns(records))
    records = run(box, "fix-ci", [], "-i", "command=sh check.sh")
    expect(turns(records) == ["run"], "a command that passes needs no agent:", turns(records))


def magi_counts_votes():
    names = ("vote.melchior", "vote.balthasar", "vote.casper")
    for rules, status in (((1, 1, 2), 0), ((2, 3, 2), 0), ((1, 2, 3), 0)):
        with Box() as box:
            records = run(box, "magi", [says(n, "My opinion.", r) for n, r in zip(names, rules)],
                             "-t", "Shall we?", status=status)
            last = [r for r in records if r["type"] == "judgment"][-1]
            want = {(1, 1, 2): 1, (2, 3, 2): 2, (1, 2, 3): 3}[rules]
            expect(last["rule"] == want, rules, last)


def batch_takes_each_line():
    lines = ["plain", "  two words", 'a "quote" \\ and $(id)', "", "täb\tund ünïcode", "{task}", "-n"]
    want = [line.replace("\t", " ") for line in lines if line]
    with Box() as box:
        box.file("work/items.txt", "\n".join(lines) + "\n")
        records = run(box, "batch", [[{"movement": "each.item", "purpose": "execute", "text": "done",
                                          "times": 0}, {"movement": "each.item", "purpose": "judge",
                                          "text": '{"reason": "so", "step": 1}', "times": 0}]],
                         "-i", "items=items.txt", "-t", "Look at it")
        prompts = ["".join(p for p in r["prompt"] if isinstance(p, str)) for r in records
                   if r["type"] == "call_start" and r.get("purpose") == "execute"
                   and r["provider"] == "script"]
        expect(len(prompts) == len(want), len(prompts), want)
        for i, (prompt, line) in enumerate(zip(prompts, want)):
            expect(f"{i + 1}: {line}\n" in prompt, line, prompt[-300:])
        run(box, "batch", [], "-i", "items=none.txt", "-t", "x", status=3)
        box.file("work/empty.txt", "\n\n")
        run(box, "batch", [], "-i", "items=empty.txt", "-t", "x", status=3)


PARTS = {"parts": [{"name": "larger", "work": "Mend max.sh.", "files": ["max.sh"]},
                   {"name": "smaller", "work": "Write min.sh.", "files": ["min.sh"]}]}


def split_does_parts_at_once(box):
    repository(box)
    records = run(box, "split", [
        says("plan", json.dumps(PARTS)),
        says("parts.part", "Mended.", 1, contains="Mend max.sh", write={"max.sh": RIGHT}),
        says("parts.part", "Written.", 1, contains="Write min.sh", write={"min.sh": WRONG}),
        says("supervise", "All is there.", 1),
    ], "-i", "check=sh check.sh && sh min.sh 1 2", "-t", "both ends")
    expect(turns(records)[-3:] == ["integrate", "check", "supervise"], turns(records))
    expect(records[-1]["outputs"] == {"summary": "All is there.", "parts": PARTS["parts"]}, records[-1])
    git(box, "diff", "--quiet", "HEAD")
    made = [r["data"] for r in records if r["type"] == "workspace" and r["event"] == "made"]
    expect(len(made) == 3 and len({m["branch"] for m in made}) == 3, made)
    show = subprocess.run(["git", "log", "--oneline", "--merges", "main.." + made[0]["branch"]],
                          cwd=box.cwd, env=box.env, capture_output=True)
    expect(len(show.stdout.splitlines()) == 2, "a merge for each part:", show)
    expect(not os.path.exists(box.cwd + "/min.sh"), "the main tree was edited")


def split_resolves_a_conflict():
    both = RIGHT.replace("larger", "largest")
    with Box() as box:
        repository(box)
        records = run(box, "split", [
            says("plan", json.dumps(PARTS)),
            says("parts.part", "Mended.", 1, contains="Mend max.sh", write={"max.sh": RIGHT}),
            says("parts.part", "Written.", 1, contains="Write min.sh",
                 write={"max.sh": WRONG.replace("-lt", "-le").replace("larger", "largest")}),
            says("resolve", "I looked away.", 1),
            says("resolve", "Both sides.", 1, contains="max.sh", write={"max.sh": both}),
            says("supervise", "All is there.", 1),
        ], "-i", "check=sh check.sh", "-t", "both ends")
        expect([t for t in turns(records) if "." not in t] ==
               ["plan", "parts", "integrate", "resolve", "integrate", "resolve", "integrate", "check",
                "supervise"], turns(records))
        branch = next(r["data"]["branch"] for r in records
                      if r["type"] == "workspace" and r["event"] == "made")
        show = subprocess.run(["git", "show", branch + ":max.sh"], cwd=box.cwd, env=box.env,
                              capture_output=True)
        expect(show.stdout.decode() == both, show)


def each_has_no_error_and_no_warning():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../workflows")
    with Box() as box:
        for name in sorted(os.listdir(folder)):
            if name.endswith(".yaml"):
                done = box.segue("lint", "-p", "claude", os.path.join(folder, name))
                expect(done.returncode == 0 and done.stderr == b"", name, done.stderr.decode())


if __name__ == "__main__":
    sys.exit(main([default_mends_a_fault, done_by_word_alone_is_not_done,
                   quick_ends_when_the_check_passes, review_changes_nothing,
                   review_is_called_by_its_name, tdd_wants_a_red_test_first, tdd_keeps_tests_and_code_apart,
                   fix_ci_starts_with_the_command, magi_counts_votes, batch_takes_each_line,
                   split_does_parts_at_once, split_resolves_a_conflict,
                   each_has_no_error_and_no_warning]))
