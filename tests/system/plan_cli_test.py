#!/usr/bin/env python3
"""segue plan: what would run, counted at its worst, and what the sessions before used."""
import json
import subprocess
import sys
from pathlib import Path

from support import expect, flow, main

FLOW = flow("plan_cli_flow")
REPLIES = json.dumps({"replies": [{"text": "done", "usage": {"input": 10, "output": 5}},
                                  {"text": "[WRITE:1]", "usage": {"input": 3, "output": 2}}]})


def plan(box, workflow, *words, status=0):
    done = box.segue("plan", workflow, "--json", "--quick", "--logs", box.logs, "--cwd", box.cwd, *words, status=status)
    lines = done.stdout.decode().splitlines(keepends=True)  # errors stand before it, one a line
    return json.loads("".join(line for line in lines if not line.startswith('{"error"')))


def prices(box, price):
    box.config(f"prices: {{m: {price}}}\n")


def what_would_run(box):
    w, s = box.file("w.yaml", FLOW), box.file("s.json", REPLIES)
    told = plan(box, w, "-s", s)
    write, check, lost = told["movements"]
    expect([m["reachable"] for m in told["movements"]] == [True, True, False], told)
    expect(write["work"][0]["provider"] == "script" and write["permission"] == "edit", write)
    expect(write["judge"][0]["provider"] == "script", write)
    expect(write["next"] == ["check", "write"] and check["next"] == ["COMPLETE", "write"], told)
    expect(check["command"] == ["echo", "done"] and "work" not in check, check)
    # one to write, one for the tag, three to judge; a check asks nobody: five writes are worst
    expect(write["calls"] == 5 and check["calls"] == 0, write, check)
    expect(told["calls"] == 25, told["calls"])
    expect(told["history"] is None, told)
    text = box.segue("plan", w, "-s", s, "--cwd", box.cwd).stdout.decode()
    expect("at most 5 turns, at most 25 calls to providers" in text, text)
    expect("judged by script: phase3_tag, ai_judge" in text, text)
    alone = "name: a\nmax_movements: 1\nmovements:\n  - name: a\n    command: [echo, x]\n" \
            "    rules: [{condition: when(true), next: COMPLETE}]\n"
    text = box.segue("plan", box.file("a.yaml", alone)).stdout.decode()
    expect("at most 1 turn, no calls to providers\n" in text, text)


def an_endless_one_has_no_bound(box):
    s = box.file("s.json", REPLIES)
    told = plan(box, box.file("w.yaml", FLOW.replace("5\n", "infinite\n", 1)), "-s", s)
    expect(told["calls"] is None and told["max_movements"] is None, told)
    straight = FLOW.replace("5\n", "infinite\n", 1).replace("next: write", "next: ABORT")
    expect(plan(box, box.file("v.yaml", straight), "-s", s)["calls"] == 5, "one way through it")
    many = FLOW.replace("max_movements: 5", "max_movements: 1000000")
    expect(plan(box, box.file("u.yaml", many), "-s", s)["calls"] == 5000000, "many turns")


def the_cost_is_bounded_where_it_can_be(box):
    prices(box, "{input: 1, output: 10}")
    text = FLOW.replace("provider: script", "provider: anthropic\nmodel: m")
    text = text.replace("max_reasks: 2}", "max_reasks: 2, options: {max_tokens: 100}}")
    box.env["ANTHROPIC_API_KEY"] = "k" * 20
    told = plan(box, box.file("w.yaml", text))
    # 5 times: 1,000 tokens to write and 4 times 100 to judge, at $10 a million
    expect(abs(told["cost"]["answers_usd"] - 0.07) < 1e-9, told["cost"])
    told = plan(box, box.file("v.yaml", text.replace(", options: {max_tokens: 100}", "")))
    expect(told["cost"]["answers_usd"] is None, told["cost"])
    expect(told["cost"]["unknown"] == ["no max_tokens in the options of write"], told["cost"])
    # what is not known is said once, with the names of all
    again = """name: w
provider: codex
movements:
  - {name: a, instruction: Do it., rules: [{condition: when(true), next: b}]}
  - {name: b, instruction: Do it., rules: [{condition: when(true), next: c}]}
  - {name: c, provider: qwen, instruction: Do it., rules: [{condition: when(true), next: COMPLETE}]}
"""
    box.config({"providers": {name: {"program": "/bin/true"} for name in ("codex", "qwen", "claude")}})
    told = plan(box, box.file("x.yaml", again))
    expect(told["cost"]["unknown"] == ["no price is known for the model of codex, qwen", "nothing bounds an answer of codex, qwen"],
           told["cost"])
    # a shipped price, and a client that tells its cost, are no unseen ones
    money = again.replace("provider: codex", "budget: {cost: 1}\nprovider: claude").replace("provider: qwen", "provider: codex, model: gpt-6.2-sol")
    expect(plan(box, box.file("y.yaml", money))["budget"]["unseen"] == [], plan(box, box.file("y.yaml", money))["budget"])


def what_the_last_ones_used(box):
    prices(box, "{input: 25000, output: 0}")
    w = box.file("w.yaml", FLOW.replace("provider: script", "provider: script\nmodel: m"))
    s = box.file("s.json", REPLIES)
    for _ in range(3):
        box.segue("run", w, "-s", s, "--logs", box.logs, "--cwd", box.cwd, status=0)
    told = plan(box, w, "-s", s)["history"]
    expect(told["runs"] == 3 and told["tokens"] == {"p50": 20.0, "p90": 20.0}, told)
    expect(abs(told["cost_usd"]["p50"] - 0.325) < 1e-9 and told["duration_ms"]["p90"] >= 0, told)
    other = box.file("other.yaml", FLOW.replace("name: priced", "name: another"))
    expect(plan(box, other, "-s", s)["history"] is None, "another workflow's sessions")


def permissions_as_they_can_be_held(box):
    text = FLOW.replace("edit: true", "provider: codex\n    permission: edit\n    run: [pytest]")
    told = plan(box, box.file("w.yaml", text), status=2)
    [who] = told["movements"][0]["work"]
    expect(who["provider"] == "codex" and "any program" in who["permission_gap"], who)
    box.segue("plan", box.dir + "/w.yaml", "--quick", "--cwd", box.cwd, out=("edit, runs pytest", "codex, edit: "))


def what_keeps_it_from_running(box):
    done = box.segue("plan", box.file("w.yaml", FLOW), "--json", "--quick", "--cwd", box.cwd)
    lines = done.stdout.decode()
    expect(done.returncode == 2 and "give --scenario FILE" in lines, done)


def what_is_the_checks_own(box):
    """A change of these files is looked at; the list says why each is one, and how many there are."""
    for folder in ("data", "src", "lib"):
        Path(box.cwd, folder).mkdir()
    for name, text in (("work/check.sh", "exec sh lib/run.sh data/cases.txt\n"), ("work/data/cases.txt", "1 2\n"),
                       ("work/src/main.c", "int x;\n"), ("work/test_a.py", ""), ("work/extra.cfg", ""),
                       ("work/lib/run.sh", "")):
        box.file(name, text)
    for words in (("init", "-q"), ("add", "-A"), ("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x")):
        subprocess.run(["git", "-C", box.cwd, *words], check=True, env=box.env)
    w = box.file("e.yaml", "name: e\nmax_movements: 3\nmovements:\n  - {name: work, edit: true, instruction: Do it well., rules: "
                 "[{condition: done, next: check}]}\n  - {name: check, command: [sh, check.sh], evidence: true, check_files: "
                 "{add: [extra.cfg]}, rules: [{condition: when(exit == 0), next: COMPLETE}, {condition: when(true), "
                 "next: ABORT}]}\n")
    words = ("plan", w, "--cwd", box.cwd, "-t", "x", "-p", "script", "-s", box.file("s.json", '{"replies": []}'))
    files = json.loads(box.segue(*words, "--json", status=0).stdout)["movements"][1]["check_files"]
    expect(files["count"] == 4 and {f["path"]: f["why"] for f in files["files"]} == {
        "check.sh": "command", "data/cases.txt": "data", "test_a.py": "usual_name", "extra.cfg": "added"}, files)
    box.segue(*words, status=0, out=("files of the check: 4", "read by the command: check.sh", "added: extra.cfg"))
    expect(b"files of the check" not in box.segue(*words, "--quick", status=0).stdout, "no tree is read with --quick")


if __name__ == "__main__":
    sys.exit(main([what_would_run, an_endless_one_has_no_bound, the_cost_is_bounded_where_it_can_be,
                   what_the_last_ones_used, what_is_the_checks_own, permissions_as_they_can_be_held,
                   what_keeps_it_from_running]))
