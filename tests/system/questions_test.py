#!/usr/bin/env python3
"""The daemon as a judge: POST /v1/judge, /v1/ask, /v1/lint and /v1/plan."""
import json
import os
import socket
import sys
from concurrent.futures import ThreadPoolExecutor

from daemon import Connection, DaemonBox
from support import WAIT_S, expect, main, of_type, records, verified

GOOD = '{"sentiment": "positive", "confidence": 0.9, "keywords": ["love"]}'
RULES = ["approved", "needs fix"]
NO_TAG = {"text": "All is well.", "rules": RULES, "name": "review", "provider": "script"}


def scenario(*replies):
    return {"text": json.dumps({"replies": list(replies)})}


def a_text_is_judged(box: DaemonBox):
    box.serve()
    body = {"text": "Two fail.\n\n[REVIEW:2]\n", "rules": RULES, "name": "review", "stages": ["phase1_tag"]}
    status, value = box.ask("POST", "/v1/judge", body)
    expect(status == 200, status, value)
    found = value["judgment"]
    expect((found["rule"], found["condition"], found["method"]) == (2, "needs fix", "phase1_tag"), found)
    verified(box, box.log(value["session"]))
    # the same record as the command prints
    done = box.segue("judge", "--name", "review", "-r", RULES[0], "-r", RULES[1], "--stages", "phase1_tag",
                     "--json", stdin=body["text"].encode())
    same = json.loads(done.stdout)
    for key in ("rule", "condition", "next", "tag", "method", "match_method", "stages"):
        expect(same[key] == found[key], key, same[key], found[key])
    status, value = box.ask("POST", "/v1/judge", {**body, "text": "nothing"})
    expect(status == 200 and value["judgment"]["rule"] is None, status, value)
    expect(value["judgment"]["failure"] == "rule_no_match", value)
    judge = {"stage": "structured_output", "structured": {"reason": "so", "step": 1}}
    status, value = box.ask("POST", "/v1/judge", {**NO_TAG, "scenario": scenario(judge)})
    expect(status == 200 and value["judgment"]["rule"] == 1, status, value)
    log = records(box.log(value["session"]))
    asked = [r for r in of_type(log, "call_start") if r["purpose"] == "judge"]
    told = "".join(p for p in asked[0]["prompt"] if isinstance(p, str))
    expect("exit status" not in told.lower(), "the judge is told of a command that was not run", told)
    for more, word in (({"provider": "script"}, 'give "scenario"'),):
        said = json.dumps(box.ask("POST", "/v1/judge", {**NO_TAG, **more})[1])
        expect(word.replace('"', '\\"') in said and "--" not in said, more, said)
    down = {"purpose": "judge", "error": {"class": "auth", "message": "no key"}, "times": 0}
    status, value = box.ask("POST", "/v1/judge", {**NO_TAG, "scenario": scenario(down)})
    expect(status == 502 and value["reason"] == "judge_unavailable" and "session" in value, status, value)
    for wrong, word in (({}, "text must be given"), ({**body, "rules": []}, "rules must be"),
                        ({**body, "rules": [1]}, "rules must be"), ({**body, "rule": "x"}, 'mean "rules"'),
                        ({**body, "stages": ["phase1_tga"]}, "phase1_tga"),
                        ({"text": "x", "rules": RULES}, 'nothing can judge: give "provider", or only'),
                        ({**body, "provider": "nobody", "stages": ["ai_judge"]}, "nobody")):
        status, value = box.ask("POST", "/v1/judge", wrong)
        expect(status == 422 and word in json.dumps(value).replace('\\"', '"'), wrong, status, value)
    big = {**body, "text": "word " * 400000 + "\n[REVIEW:1]"}
    status, value = box.ask("POST", "/v1/judge", big)
    expect(status == 200 and value["judgment"]["rule"] == 1, status, value if status != 200 else "")
    box.check_all()


def a_value_is_asked_for(box: DaemonBox):
    box.serve()
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}},
              "additionalProperties": False}
    body = {"prompt": "how many?", "schema": schema, "provider": "script"}
    status, value = box.ask("POST", "/v1/ask", {**body, "scenario": scenario(
        {"text": "n is many"}, {"purpose": "reask", "text": 'so: {"n": 7}'})})
    expect(status == 200 and value["value"] == {"n": 7} and value["attempts"] == 2, status, value)
    expect(value["outcome"] == "value" and len(value["checks"]) == 2, value)
    verified(box, box.log(value["session"]))
    status, value = box.ask("POST", "/v1/ask", {**body, "scenario": scenario(
        {"text": "no", "times": 0}, {"purpose": "reask", "text": "no", "times": 0})})
    expect(status == 200 and value["value"] is None and value["outcome"] == "failed", status, value)
    status, value = box.ask("POST", "/v1/ask", {**body, "schema": "sentiment", "scenario": scenario(
        {"text": GOOD})})
    expect(status == 200 and value["value"] is not None, status, value)
    down = {"error": {"class": "auth", "message": "no key"}, "times": 0}
    status, value = box.ask("POST", "/v1/ask", {**body, "scenario": scenario(down)})
    expect(status == 502 and value["reason"] == "provider_error", status, value)
    for wrong, word in (({**body, "schema": {"type": "objct"}}, "one or more of"), ({"prompt": "x"}, "schema must"),
                        ({"schema": schema}, "prompt must"), ({**body, "promt": 1}, "prompt"),
                        ({**body, "max_reasks": 1000}, "max_reasks")):
        status, value = box.ask("POST", "/v1/ask", wrong)
        expect(status == 422 and word in json.dumps(value), wrong, status, value)
    box.check_all()


FLOW = """
name: flow
provider: script
movements:
  - name: work
    instruction: do {task}
    rules: [{condition: done, next: COMPLETE}]
"""


def a_workflow_is_looked_at(box: DaemonBox):
    box.serve()
    good = box.file("good.yaml", FLOW)
    status, value = box.ask("POST", "/v1/lint", {"workflow": good, "cwd": box.cwd})
    expect(status == 200 and value["ok"] and value["movements"] == 1 and value["errors"] == [], status, value)
    bad = box.file("bad.yaml", FLOW.replace("next: COMPLETE", "next: COMPLET").replace("rules:", "ruls:"))
    status, value = box.ask("POST", "/v1/lint", {"workflow": bad, "cwd": box.cwd})
    expect(status == 200 and not value["ok"] and value["movements"] is None, status, value)
    expect(any(e["line"] == 7 and "ruls" in e["message"] for e in value["errors"]), value)
    status, value = box.ask("POST", "/v1/lint", {"workflow": {"text": FLOW}, "cwd": "/nowhere"})
    expect(status == 422, status, value)
    status, value = box.ask("POST", "/v1/plan", {"workflow": good, "cwd": box.cwd, "task": "it",
                                                 "scenario": scenario({"text": "x"})})
    expect(status == 200 and value["movements"][0]["name"] == "work", status, value)
    status, value = box.ask("POST", "/v1/plan", {"workflow": bad, "cwd": box.cwd, "task": "it"})
    expect(status == 422 and value["errors"], status, value)
    expect(not box.log_paths(), "something was started")
    box.check_all()


def they_wait_as_sessions_do(box: DaemonBox):
    """More at once than may run: all are answered, and no more run than are allowed."""
    box.serve("-n", "2")
    reply = {"stage": "structured_output", "structured": {"reason": "so", "step": 1}, "delay_ms": 50}
    body = json.dumps({**NO_TAG, "scenario": scenario(reply)}).encode()
    most = []

    def one(_):
        connection = Connection(box.socket)
        connection.request("POST", "/v1/judge", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        value = json.loads(answer.read())
        most.append(box.get("/v1/health")["sessions"]["running"])
        return answer.status, value
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(one, range(24)))
    expect(all(s == 200 and v["judgment"]["rule"] == 1 for s, v in answers), answers)
    expect(max(most) <= 2, "running at once:", max(most))
    verified(box, *[box.log(v["session"]) for _, v in answers])


def what_was_remembered_is_looked_at_again(box: DaemonBox):
    """A workflow that came before starts without being read anew; what is wrong now is told with places."""
    box.serve()
    text = FLOW.replace("do {task}", "do it").replace("    instruction: do it\n", "    command: [%s]\n" % "tool") \
        .replace("condition: done", "condition: when(exit == 0)")
    os.mkdir(box.dir + "/bin")
    tool = box.dir + "/bin/tool"
    box.end()
    box.env["PATH"] = box.dir + "/bin:" + box.env["PATH"]
    with open(tool, "w", encoding="ascii") as f:
        f.write("#!/bin/sh\nexit 0\n")
    os.chmod(tool, 0o755)
    box.serve()
    body = {"workflow": {"text": text, "name": "mine"}, "cwd": box.cwd, "scenario": scenario({"text": "x"})}
    for _ in range(4):
        status, value = box.ask("POST", "/v1/sessions", body)
        expect(status == 201, status, value)
        box.wait_status(value["id"], "complete")
    blobs = os.listdir(box.logs + "/blobs")
    expect(len(blobs) == 1, blobs)
    os.unlink(f"{box.logs}/blobs/{blobs[0]}")  # it is known, but not there any more
    status, value = box.ask("POST", "/v1/sessions", body)
    expect(status == 201 and os.listdir(box.logs + "/blobs") == blobs, status, value)
    os.unlink(tool)

    def refused():
        status, value = box.ask("POST", "/v1/sessions", body)
        refused.value = value
        return status == 422
    box.until(refused, "a program that is gone is not missed")
    error = refused.value["errors"][0]
    expect("tool" in error["message"] and error["file"] == "mine" and error["line"] > 1, error)
    # the same text with a key in the task, and with another provider
    agent = {"workflow": {"text": FLOW, "name": "mine"}, "cwd": box.cwd, "task": "x",
             "scenario": scenario({"text": "x", "times": 0})}
    for more, wanted in (({}, 201), ({}, 201), ({"task": "sk-ant-api03-" + "Ab1" * 31}, 422), ({"task": ""}, 422),
                         ({"provider": "nobody"}, 422), ({}, 201)):
        status, value = box.ask("POST", "/v1/sessions", {**agent, **more})
        expect(status == wanted, more, status, value)
    box.check_all()


def a_client_that_left_is_not_worked_for():
    def call(box, path, body):
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(WAIT_S)
        line.connect(box.socket)
        data = json.dumps(body).encode()
        line.sendall(b"POST %s HTTP/1.1\r\nHost: segue\r\nContent-Type: application/json\r\nContent-Length: %d"
                     b"\r\n\r\n" % (path.encode(), len(data)) + data)
        return line

    def session(box, status):
        found = [s for s in box.get("/v1/sessions")["sessions"] if s["status"] == status]
        return found[0] if found else None

    slow = {"text": GOOD, "delay_ms": 600000, "purpose": "execute"}
    ask = {"prompt": "I love it", "schema": "sentiment", "provider": "script"}
    with DaemonBox() as box:
        box.serve("-n", "1")
        first = call(box, "/v1/ask", {**ask, "scenario": scenario(slow)})
        box.until(lambda: session(box, "running"), "the question does not run")
        running = session(box, "running")["id"]
        second = call(box, "/v1/judge", {**NO_TAG, "scenario": scenario({**slow, "purpose": "judge"})})
        box.until(lambda: session(box, "queued"), "the judgment does not wait")
        waiting = session(box, "queued")["id"]
        second.close()
        box.until(lambda: session(box, "cancelled"), "it waits, and nobody for it")
        expect(session(box, "cancelled")["id"] == waiting, "the other one")
        expect(session(box, "running")["id"] == running, "its client is there")
        first.close()
        box.until(lambda: box.get("/v1/sessions/" + running)["status"] == "cancelled", "the call goes on")
        end = records(box.log(running))[-1]
        expect(end["type"] == "session_end" and end["message"] == "its client has left", end)
        box.end()


sys.exit(main([a_text_is_judged, a_value_is_asked_for, a_workflow_is_looked_at, they_wait_as_sessions_do,
               what_was_remembered_is_looked_at_again, a_client_that_left_is_not_worked_for]))
