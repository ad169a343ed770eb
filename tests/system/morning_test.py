#!/usr/bin/env python3
"""segue report without a file: what sessions came to, by repository, in one screen, one page and one notice."""
import json
import os
import sys
from pathlib import Path

from support import Box, expect, main, records
from worktree_test import git, repository, words

ASKS = """
name: asks
movements:
  - name: which
    ask: {question: "Which one?", choices: [red, blue]}
    rules: [{condition: red, next: COMPLETE}, {condition: blue, next: COMPLETE}]
"""
LOOP = """
name: loop
provider: script
max_movements: 2
movements:
  - name: work
    instruction: Do the work.
    rules: [{condition: when(true), next: work}]
"""


def report(box, *more, status=0):
    return box.segue("report", box.logs, *more, status=status).stdout.decode()


def told(box, *more):
    return json.loads(report(box, "--json", *more))


def by_folder(value):
    return {os.path.basename(r["folder"]): r for r in value["repositories"]}


def played(box):
    """Two repositories: merged, squashed and not merged work, a question, a session that stopped."""
    other = box.dir + "/other"
    os.mkdir(other)
    repository(box)
    repository(box, at=other)
    ids = {}

    def note(name):
        ids[name] = records(box.begun()[-1])[0]["session"]

    for name, command in (("merged", "echo 1 >> a"), ("squashed", "echo 2 > b"), ("not", "echo 3 > c")):
        box.segue("run", *words(box, command, name=name + ".yaml"), status=0)
        note(name)
    box.segue("merge", ids["merged"], "--logs", box.logs, status=0)
    box.segue("merge", ids["squashed"], "--squash", "--logs", box.logs, status=0)
    box.segue("run", box.file("asks.yaml", ASKS), "--cwd", other, "-t", "choose", "--logs", box.logs, status=7)
    note("asks")
    reply = {"text": "did", "times": 0, "usage": {"input": 30, "output": 10}, "cost": 0.3}
    box.segue("run", box.file("loop.yaml", LOOP), "--cwd", other, "-t", "go on", "--logs", box.logs, "-s",
              box.file("loop.json", json.dumps({"replies": [reply]})), status=5)
    note("loop")
    return ids


def by_repository(box):
    ids = played(box)
    value = told(box)
    found = by_folder(value)
    expect(set(found) == {"work", "other"} and value["sessions"] == 5, value)
    work = {s["id"]: s for s in found["work"]["sessions"]}
    expect({name: work[ids[name]].get("merged") for name in ("merged", "squashed", "not")} ==
           {"merged": True, "squashed": True, "not": False}, work)
    expect(all(s["class"] == "done" and s["branch"] == "segue/" + s["id"] and s["task"] == "mend it"
               for s in work.values()), work)
    expect([s["basis"] for s in work.values()] == ["claimed"] * 3 or all("basis" in s for s in work.values()), work)
    other = {s["id"]: s for s in found["other"]["sessions"]}
    asks, loop = other[ids["asks"]], other[ids["loop"]]
    expect(asks["class"] == "needs" and asks["command"].startswith(f"segue answer {ids['asks']} which"), asks)
    expect(loop["class"] == "stopped" and "--max-movements" in loop["command"] and loop["text"], loop)
    expect(found["other"]["spent"]["cost_usd"] == 0.6 and value["spent"]["cost_usd"] == 0.6, value["spent"])
    text = report(box)
    for words_ in ("not merged", f"segue branch merge {ids['not']}", "needs you", "Which one?", asks["command"],
                   "stopped", loop["command"], "$0.6000", box.dir + "/other"):
        expect(words_ in text, words_, text)
    expect("\x1b" not in text, "colours in a pipe")
    git(box, "branch", "-D", "segue/" + ids["merged"], ok=False)


def since(box):
    """What began earlier is there if it waits for a person, or if something happened since."""
    ids = played(box)
    none = told(box, "--since", "2999-01-01")
    expect(none["sessions"] == 2 and {s["id"] for r in none["repositories"] for s in r["sessions"]} ==
           {ids["asks"], ids["loop"]}, none)
    expect(told(box, "--since", "1h")["sessions"] == 5, "an hour")
    expect(told(box, "-s", "complete")["sessions"] == 3 and told(box, "--workflow", "asks")["sessions"] == 1, "filters")


def money_against_caps(box):
    box.config("budget: {day: {cost: 5}, store: {day: {calls: 100}}, folders: {%s/other: {day: {cost: 2}}}}\n" % box.dir)
    os.mkdir(box.dir + "/other")
    box.segue("run", box.file("loop.yaml", LOOP), "--cwd", box.dir + "/other", "-t", "x", "--logs", box.logs, "-s",
              box.file("loop.json", json.dumps({"replies": [{"text": "did", "times": 0, "cost": 0.3,
                                                             "usage": {"input": 3, "output": 1}}]})), status=5)
    value = told(box)
    expect([(b["of"], b["unit"], b["used"], b["limit"]) for b in value["budgets"]] ==
           [("day", "cost", 0.6, 5), ("store", "calls", 2, 100), ("folder", "cost", 0.6, 2)], value["budgets"])
    text = report(box)
    expect(f"today's budget of {box.dir}/other: $0.6000 of $2.0000 are used" in text and
           "today's budget of the store: 2 of 100 calls are used" in text, text)


def one_page_and_one_notice(box):
    ids = played(box)
    done = box.segue("report", box.logs, "--notify")
    expect(done.returncode == 2 and b"config.yaml" in done.stderr, done)
    box.config("notify: [sh, -c, 'cat >> %s/told; printf \"%%s\" \"$SEGUE_NOTICE_TITLE\" > %s/title']\n" % (box.dir, box.dir))
    page = box.dir + "/r.html"
    box.segue("report", box.logs, "--notify", "-o", page, status=0)
    said = [json.loads(line) for line in Path(box.dir + "/told").read_text().splitlines()]
    expect(len(said) == 1 and said[0]["event"] == "report" and ids["asks"] in said[0]["text"], said)
    expect(Path(box.dir + "/title").read_text() == "segue: 3 done, 1 need you, 1 stopped", "title")
    text = Path(page).read_text()
    expect("not merged" in text and f"segue answer {ids['asks']} which" in text and box.dir + "/other" in text, "page")
    box.config("notify: {command: [cat], on: [question]}\n")
    box.segue("report", box.logs, "--notify", status=2)


def hostile_words(box):
    """A task and a question are a model's or anybody's words: no escape reaches the terminal."""
    flow = ASKS.replace("Which one?", "Which \\e[2Jone?\\u202e")
    box.segue("run", box.file("asks.yaml", flow), "-t", "x\x1b]52;c;aGk=\x07 <b>y</b>", "--cwd", box.cwd, "--logs", box.logs,
              status=7)
    text = report(box)
    expect("\x1b" not in text and "\x07" not in text and "\u202e" not in text, repr(text))
    report(box, "-o", box.dir + "/r.html")
    expect("<b>y" not in Path(box.dir + "/r.html").read_text(), "markup")


def mistakes_and_nothing(box):
    os.mkdir(box.logs)
    expect(report(box) == "0 sessions\n" and told(box)["repositories"] == [], report(box))
    expect(b"write text, html or md" in box.segue("report", box.logs, "--format", "txt", status=2).stderr, "form")
    box.segue("run", box.file("asks.yaml", ASKS), "-t", "x", "--cwd", box.cwd, "--logs", box.logs, status=7)
    expect(b"are for folders" in box.segue("report", box.log_paths()[0], "--json", status=2).stderr, "a session")
    expect(b"<html" in box.segue("report", box.log_paths()[0], status=0).stdout, "a session is a page as before")
    expect(report(box, "--format", "html").startswith("<!DOCTYPE"), "html")


def case(body):
    def test():
        with Box() as box:
            body(box)
    test.__name__ = body.__name__
    return test


if __name__ == "__main__":
    sys.exit(main([case(b) for b in (by_repository, since, money_against_caps, one_page_and_one_notice, hostile_words,
                                     mistakes_and_nothing)]))
