#!/usr/bin/env python3
"""`secrets:` of a movement: its command or agent gets the variables that it names, nobody else does, and
their values are in no log.
"""
import json
import os
import sys
from pathlib import Path

from daemon import DaemonBox
from support import expect, main, of_type, records, verified

VALUE = "deploy-0123456789-value"
OTHER = "other-0123456789-value"
SEEN = "echo token=${DEPLOY_TOKEN:-none} other=${OTHER_TOKEN:-none}"
FLOW = """name: w
movements:
  - name: before
    command: [sh, -c, '%(seen)s']
    rules: [{condition: when(exit == 0), next: deploy}]
  - name: deploy
    secrets: [DEPLOY_TOKEN]
    command: [sh, -c, '%(seen)s; echo $DEPLOY_TOKEN > left']
    rules: [{condition: when(exit == 0), next: agent}]
  - name: agent
    provider: text
    secrets: [OTHER_TOKEN]
    instruction: Say what you see.
    judge: {stages: [phase3_tag]}
    rules: [{condition: it is done, next: after}, {condition: it is not done, next: ABORT}]
  - name: after
    command: [sh, -c, '%(seen)s; cat left']
    rules: [{condition: when(exit == 0), next: COMPLETE}]
""" % {"seen": SEEN}


def agent(box):
    """Says what it has, and is the judge too."""
    path = box.file("agent", f"#!/bin/sh\ncat >/dev/null\necho '<think>'\n{SEEN}\necho '</think>'\necho '[AGENT:1]'\n")
    os.chmod(path, 0o755)
    return path


def config(box, **keys):
    box.config(keys)


def run(box, flow=FLOW, **env):
    return box.segue("run", box.file("w.yaml", flow), "--task", "t", "--cwd", box.cwd, "--logs", box.logs,
                     env={"DEPLOY_TOKEN": VALUE, "OTHER_TOKEN": OTHER, **env})


def case_who_gets_them(box):
    config(box, secrets=["DEPLOY_TOKEN", "OTHER_TOKEN"], providers={"text": {"program": agent(box)}})
    done = run(box)
    expect(done.returncode == 0, done.stdout, done.stderr)
    log = records(box.log_paths()[0])
    said = [(r["purpose"] if "purpose" in r else starts["purpose"], r["text"].removeprefix("<think>\n").split("\n")[0])
            for r in of_type(log, "call_end")
            for starts in [next(s for s in of_type(log, "call_start") if s["call"] == r["call"])]]
    token, other = "«secret:DEPLOY_TOKEN»", "«secret:OTHER_TOKEN»"
    expect(said == [("execute", "token=none other=none"), ("execute", f"token={token} other=none"), ("execute", f"token=none other={other}"),
                    ("judge", "token=none other=none"), ("execute", "token=none other=none")], said)
    expect(of_type(log, "call_end")[-1]["text"].split() == ["token=none", "other=none", token], "what another movement wrote to a file is hidden too")
    text = Path(box.log_paths()[0]).read_text()
    expect(VALUE not in text and OTHER not in text, "no value is in the log")
    expect(of_type(log, "session_start")[0]["config"]["secrets"] == ["DEPLOY_TOKEN", "OTHER_TOKEN"], "names are")
    verified(box, box.log_paths()[0])


def case_resumed(box):
    """What a session was given when it began counts after a crash, too."""
    config(box, secrets=["DEPLOY_TOKEN", "OTHER_TOKEN"], providers={"text": {"program": agent(box)}})
    done = run(box, SEGUE_FAULT="exit:20")
    expect(done.returncode == 99, done.returncode, done.stderr)
    box.segue("resume", "last", "--logs", box.logs, env={"DEPLOY_TOKEN": VALUE, "OTHER_TOKEN": OTHER}, status=0)
    text = Path(box.log_paths()[0]).read_text()
    expect("token=«secret:DEPLOY_TOKEN»" in text and VALUE not in text and OTHER not in text, text[-2000:])


def case_refused(box):
    """A workflow gets only what the user's own configuration lets movements name, and what is set."""
    config(box, secrets=["DEPLOY_TOKEN"], providers={"text": {"program": agent(box)}})
    done = run(box)
    expect(done.returncode == 2 and b"secrets names OTHER_TOKEN: write secrets: [OTHER_TOKEN] in your config.yaml" in done.stderr, done.stderr)
    expect(b"w.yaml:12:" in done.stderr and not box.log_paths(), done.stderr)
    config(box, secrets=["DEPLOY_TOKEN", "OTHER_TOKEN", "OWN_WORD"], providers={"text": {"program": agent(box)}})
    done = run(box, FLOW.replace("Say what you see.", "Say " + VALUE), OWN_WORD=VALUE, DEPLOY_TOKEN="a-short-other-one")
    expect(done.returncode == 2 and b"holds the value of OWN_WORD" in done.stderr and VALUE.encode() not in done.stderr, done.stderr)
    done = run(box, OTHER_TOKEN="")
    expect(done.returncode == 2 and b"secrets names OTHER_TOKEN, which is not set" in done.stderr, done.stderr)
    for wrong, words in (("secrets: DEPLOY_TOKEN", b"must be a list of 1 to 32 names"), ("secrets: [a b]", b"names only"), ("secrets: [DEPLOY_TOKEN=1]", b"names only"),
                         ("secret: [DEPLOY_TOKEN]", b"did you mean secrets?")):
        done = run(box, FLOW.replace("secrets: [DEPLOY_TOKEN]", wrong))
        expect(done.returncode == 2 and words in done.stderr, wrong, done.stderr)
    for wrong, words in (("DEPLOY_TOKEN", b"secrets must be a list"), (["A=b"], b"names only"), ([1], b"names only")):
        config(box, secrets=wrong)
        done = run(box)
        expect(done.returncode == 2 and words in done.stderr and b"config.yaml:1:" in done.stderr, wrong, done.stderr)


def case_daemon(box: DaemonBox):
    """A daemon gives them as a run does, from its own environment; a crash in between changes nothing."""
    config(box, secrets=["DEPLOY_TOKEN", "OTHER_TOKEN"], providers={"text": {"program": agent(box)}})
    box.serve(env={"DEPLOY_TOKEN": VALUE, "OTHER_TOKEN": OTHER})
    body = {"workflow": box.file("w.yaml", FLOW), "cwd": box.cwd, "task": "t"}
    sid = box.submit(body["workflow"], task="t")
    box.wait_status(sid, "complete")
    text = Path(box.log(sid)).read_text()
    expect("token=«secret:DEPLOY_TOKEN» other=none" in text and VALUE not in text and OTHER not in text, text[-2000:])
    box.file("w.yaml", FLOW.replace("[OTHER_TOKEN]", "[HOME]"))
    status, reply = box.ask("POST", "/v1/sessions", body)
    expect(status == 422 and "secrets names HOME" in json.dumps(reply), status, reply)
    box.end()


sys.exit(main([case for name, case in list(globals().items()) if name.startswith("case_")]))
