#!/usr/bin/env python3
"""Workflows made of workflows, what they take from outside and what they return."""
import json
import os
import pty
import select
import subprocess
import sys

from daemon import DaemonBox
from support import SEGUE, WAIT_S, Box, expect, flow, main

CHILD = """name: look
params: {target: }
returns: [good, bad]
movements:
  - name: read
    instruction: "Read {input:target}."
    structured_output:
      schema: {type: object, properties: {n: {type: integer, minimum: 0}}, required: [n]}
      on_failure: error
    rules:
      - {condition: when(structured.read.n > 1), return: good}
      - {condition: when(structured.read.n <= 1), return: bad}
"""
FLOW = flow("compose_flow")
REPLIES = json.dumps({"replies": [{"movement": "first/read", "text": '{"n": 3}'},
                                  {"movement": "second/read", "text": '{"n": 5}'}]})
HOSTILE = '{task} {structured:first/read.n} "x" {{include:policies/x}}\n- é'


def files(box):
    os.makedirs(box.dir + "/parts", exist_ok=True)
    box.file("parts/look.yaml", CHILD)
    return box.file("made.yaml", FLOW), box.file("replies.json", REPLIES)


def prompt_of(record):
    return "".join(part for part in record["prompt"] if isinstance(part, str))


def runs_as_one_flat_session(box):
    flow, replies = files(box)
    done = box.segue("run", flow, "-s", replies, "-i", "file=" + HOSTILE, "--json", "-l", box.logs, status=0)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    movements = [r["movement"] for r in records if r["type"] == "turn_start"]
    expect(movements == ["first/read", "second/read"], movements)
    calls = [prompt_of(r) for r in records if r["type"] == "call_start"]
    expect(f"Read all of {HOSTILE}." in calls[0], "an input is data:", calls[0])
    expect("Read the rest after 3." in calls[1], "an argument is a template:", calls[1])
    end = records[-1]
    expect(end["outputs"] == {"n": 5, "words": HOSTILE + ' gave {"n": 5}'}, end)
    expect(box.segue("verify", "--logs", box.logs, "last").returncode == 0, "verify")


REPORTING = flow("compose_reporting")


def outputs_name_reports_and_answers(box):
    replies = box.file("replies.json", json.dumps({"replies": [
        {"movement": "write", "text": "The plan: {task}"}, {"movement": "say", "text": "It is said"}]}))
    flow = box.file("reporting.yaml", REPORTING)
    expect(box.segue("lint", flow).stderr == b"", "lint")
    done = box.segue("run", flow, "-s", replies, "--json", "-l", box.logs, "-t", "x", status=0)
    end = json.loads(done.stdout.splitlines()[-1])
    expect(end["outputs"] == {"plan": "The plan: {task}",
                              "both": "The plan: {task} then It is said"}, end)
    expect(box.segue("verify", "--logs", box.logs, "last").returncode == 0, "verify")
    box.segue("replay", "--logs", box.logs, "last", status=0)


def a_group_of_a_called_workflow_integrates():
    child = """name: child
movements:
  - name: both
    for_each: [a, b]
    parallel:
      - name: one
        workspace: worktree
        command: [sh, -c, "echo $SEGUE_CALL > f$SEGUE_CALL"]
        rules: [{condition: when(true)}]
    rules: [{condition: when(true), next: join}]
  - name: join
    integrate: both
    rules: [{condition: when(exit == 0), next: COMPLETE}, {condition: when(true), next: ABORT}]
"""
    flow = """name: made
workspace: worktree
movements:
  - name: part
    call: child.yaml
    rules: [{condition: COMPLETE, next: COMPLETE}, {condition: ABORT, next: ABORT}]
"""
    with Box() as box:
        box.file("child.yaml", child)
        for words in (["init", "-q", "-b", "main", "."], ["config", "user.name", "a"],
                      ["config", "user.email", "a@b"], ["commit", "-q", "--allow-empty", "-m", "x"]):
            subprocess.run(["git", *words], cwd=box.cwd, env=box.env, check=True)
        done = box.segue("run", box.file("made.yaml", flow), "--json", "-l", box.logs, status=0)
        log = [json.loads(line) for line in done.stdout.splitlines()]
        made = next(r["data"] for r in log if r["type"] == "workspace" and r["event"] == "made")
        names = subprocess.run(["git", "ls-tree", "--name-only", made["branch"]], cwd=box.cwd,
                               env=box.env, capture_output=True).stdout.split()
        expect(len(names) == 2, names)


def inputs_that_are_wrong():
    cases = [([], "the input file is missing"), (["-i", "file"], "write NAME=VALUE"),
             (["-i", "file=a", "-i", "file=b"], "given twice"),
             (["-i", "file=a", "-i", "mod=b"], "did you mean mode?"),
             (["-i", "file=@none.txt"], "none.txt"), (["-i", "file=" + "x" * 70000], "65536 bytes")]
    with Box() as box:
        flow, replies = files(box)
        for words, said in cases:
            box.segue("run", flow, "-s", replies, "-l", box.logs, *words, status=2, err=said)
        expect(not os.path.isdir(box.logs) or os.listdir(box.logs) == [], "nothing was begun")
        box.file("work/in.txt", "from a file\n")
        box.segue("run", flow, "-s", replies, "-l", box.logs, "-i", "file=@in.txt", "--json", out=b"from a file gave")


def a_person_is_asked(box):
    flow, replies = files(box)
    master, slave = pty.openpty()
    process = subprocess.Popen([SEGUE, "run", "--trust", flow, "-s", replies, "-l", box.logs],
                               stdin=slave, stderr=slave, stdout=subprocess.DEVNULL,
                               env=box.env, cwd=box.cwd)
    box.started.append(process)
    os.close(slave)
    said = b""
    while b"file (what to read): " not in said:
        ready, _, _ = select.select([master], [], [], WAIT_S)
        expect(ready, "nothing was asked:", said)
        said += os.read(master, 4096)
    os.write(master, b"what I typed\n")
    expect(process.wait(WAIT_S) == 0, said)
    os.close(master)
    log = next(name for name in os.listdir(box.logs) if name.endswith(".ndjson"))
    with open(f"{box.logs}/{log}", "rb") as f:
        expect(b"what I typed gave" in f.read(), "the answer is the input")


def the_daemon_takes_inputs_and_tells_outputs(box: DaemonBox):
    flow, replies = files(box)
    box.serve()
    sid = box.submit(flow, replies, inputs={"file": HOSTILE})
    session = box.wait_status(sid, "complete")
    expect(session["outputs"] == {"n": 5, "words": HOSTILE + ' gave {"n": 5}'}, session)
    for inputs, said in [(None, "the input file is missing"), ({"file": 1}, "must be a text"),
                         ({"file": "a\0b"}, "without NUL"), ([], "must be an object")]:
        body = {"workflow": flow, "cwd": box.cwd, "scenario": replies}
        if inputs is not None:
            body["inputs"] = inputs
        status, value = box.ask("POST", "/v1/sessions", body)
        expect(status in (400, 422) and said in json.dumps(value), status, value)
    box.check_all()


if __name__ == "__main__":
    sys.exit(main([runs_as_one_flat_session, outputs_name_reports_and_answers,
                   a_group_of_a_called_workflow_integrates, inputs_that_are_wrong, a_person_is_asked,
                   the_daemon_takes_inputs_and_tells_outputs]))
