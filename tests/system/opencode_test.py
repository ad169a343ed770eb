#!/usr/bin/env python3
"""opencode over its server (transport: native), played by a small one: what comes of a call, what its
log says, and that nothing of it is left, however the server behaves."""
import json
import os
import signal
import sys
import time
from pathlib import Path

from support import WAIT_S, Box, at_once, expect, main, needs, of_type, read_until, records

FAKE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_opencode.py")
WORKFLOW = """name: one
movements:
  - name: work
    edit: true
    instruction: Do it.
    rules:
      - {condition: it is done, next: COMPLETE}
      - {condition: it is not done, next: ABORT}
    judge: {stages: [STAGE]}
"""


def setup(box, fake, **settings):
    os.makedirs(box.dir + "/state", exist_ok=True)
    opencode = {"program": [sys.executable, FAKE], "transport": "native", "model": "a/b",
                "set": {"FAKE": fake, "FAKE_STATE": box.dir + "/state"}, **settings}
    box.config({"providers": {"opencode": opencode}, "sandbox": {"write": [box.dir + "/state"]}})


def words(box, stage="phase1_tag", workflow=WORKFLOW):
    return ["run", box.file("one.yaml", workflow.replace("STAGE", stage)), "--provider", "opencode",
            "--task", "x", "--logs", box.logs, "--cwd", box.cwd]


def left_of(box):
    left = []
    for pid in os.listdir("/proc"):
        if pid.isdigit() and int(pid) != os.getpid():
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if box.dir.encode() in f.read():
                        left.append(int(pid))
            except OSError:
                pass
    return left


def nothing_is_left(box, within_s=20):
    until = time.monotonic() + within_s
    while left_of(box) and time.monotonic() < until:
        time.sleep(0.02)
    expect(not left_of(box), "processes are left", left_of(box))
    tmp = box.dir + "/home/tmp"
    if os.path.isdir(tmp):
        expect(not os.listdir(tmp), os.listdir(tmp))


def asked(box):
    return [json.loads(line) for line in Path(box.dir + "/state/asked.jsonl").read_bytes().splitlines()]


def run(fake, check, stage="phase1_tag", workflow=WORKFLOW, **settings):
    with Box() as box:
        setup(box, fake, **settings)
        done = box.segue(*words(box, stage, workflow))
        log = records(box.log_paths()[-1])
        check(box, done, log)
        nothing_is_left(box, 0.5)


def first_error(fake, **settings):
    """The first attempt's error; the next ones are not waited for."""
    with Box() as box:
        setup(box, fake, **settings)
        process = box.start(*words(box), "--json")
        end = read_until(process, lambda r: r["type"] == "call_end")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=WAIT_S)
        nothing_is_left(box)
        return end.get("error") or {"class": "ok"}


def events(log, kind):
    return [r["data"] for r in of_type(log, "call_event") if r["event"] == kind]


def an_answer():
    def check(box, done, log):
        expect(done.returncode == 0, done.returncode, done.stderr)
        end = of_type(log, "call_end")[0]
        expect(end["text"].rpartition(" ")[0].endswith("[WORK:1]") and "the prompt" not in end["text"], end)
        expect(end["usage"] == {"input": 11, "output": 7, "cached": 0}, end)
        expect(end["provider_session"].startswith("ses_"), end)
        start, *requests = asked(box)
        expect(start["cwd"] == os.path.realpath(box.cwd), start)
        expect(start["secret"] == 48 and '"*":"ask"' in start["permission"], start)
        paths = [r["path"] for r in requests]
        expect(paths[:2] == ["/event", "/session"] and len(paths) == 3, paths)
        body = requests[2]["body"]
        expect(body["model"] == {"providerID": "a", "modelID": "b"}, body)
        expect("Do it." in body["parts"][0]["text"], body)

    run("plain", check)


def a_tool():
    def check(box, done, log):
        tools = events(log, "tool")
        expect([t["state"] for t in tools] == ["start", "end"], tools)

    run("tool", check)


def structured_answers():
    def good(box, done, log):
        expect(done.returncode == 0, done.returncode, done.stderr)
        end = of_type(log, "call_end")[-1]
        expect(end["enforced"] == "tool", end)
        expect(of_type(log, "judgment")[0]["rule"] == 1, of_type(log, "judgment"))
        judge = [r for r in asked(box) if "format" in r.get("body", {})][0]["body"]
        expect(judge["format"]["type"] == "json_schema", judge)
        expect("properties" in judge["format"]["schema"], judge)

    def wrong(box, done, log):
        expect(not [v for v in of_type(log, "judgment") if v.get("rule")], "it was a verdict")

    run("structured", good, stage="structured_output")
    run("bad", wrong, stage="structured_output")


def errors_have_classes():
    wanted = {"error:401": "auth", "error:429": "rate_limit", "error:500": "overloaded",
              "length": "length", "prose": "protocol", "nomodel": "not_found",
              "retry": "rate_limit", "cut": "network", "cut-events": "network", "die": "crashed",
              "garbage": "protocol", "badjson": "protocol", "fail": "crashed",
              "refuse": "protocol"}
    for fake, kind in wanted.items():
        error = first_error(fake)
        expect(error["class"] == kind, fake, error)
    with Box() as box:  # one that is not there is found before anything starts
        setup(box, "plain", program=["/nonexistent/opencode"])
        box.segue(*words(box), status=2, err=b"/nonexistent/opencode is not installed")
        expect(box.log_paths() == [], "a session began")
    error = first_error("plain", model="nameless")
    expect(error["class"] == "bad_request", error)


def silence_is_ended():
    for fake in ("hang", "nostart", "silent"):
        error = first_error(fake, stall_ms=1500)
        expect(error["class"] == "timeout", fake, error)
    error = first_error("waits", stall_ms=1500)  # it said what for
    expect(error["class"] == "rate_limit" and "Rate limit" in error["message"], error)


def one_more_try_is_its_own():
    def check(box, done, log):
        expect(done.returncode == 0, done.returncode, done.stderr)
        retries = events(log, "retry")
        expect(len(retries) == 1 and retries[0]["attempt"] == 1, retries)

    run("retry-once", check)


def questions_are_answered_by_policy():
    def denied(box, done, log):
        asked_for = events(log, "permission")
        expect(asked_for and asked_for[0]["answer"] == "denied", asked_for)
        expect(asked_for[0]["tool"] == "bash", asked_for)
        expect('"reject"' in of_type(log, "call_end")[0]["text"], "it did not hear of it")

    def allowed(box, done, log):
        expect(events(log, "permission")[0]["answer"] == "allowed", log)
        expect('"once"' in of_type(log, "call_end")[0]["text"], "it did not hear of it")

    def nobody(box, done, log):
        expect(events(log, "permission")[0]["tool"] == "question", log)
        expect("rejected" in of_type(log, "call_end")[0]["text"], "it did not hear of it")

    run("permission", denied)
    run("permission", allowed, tools=["bash"])
    run("question", nobody)


def a_conversation_goes_on():
    workflow = WORKFLOW.replace("next: COMPLETE", "next: more") + """  - name: more
    session: continue
    session_key: both
    instruction: And again.
    rules:
      - {condition: it is done, next: COMPLETE}
      - {condition: it is not done, next: ABORT}
    judge: {stages: [STAGE]}
"""
    workflow = workflow.replace("    edit: true\n", "    session: continue\n    session_key: both\n")

    def known(box, done, log):
        starts = [r for r in of_type(log, "call_start") if r["purpose"] == "execute"]
        ids = [r["provider_session"] for r in of_type(log, "call_end")]
        expect(len(starts) == 2 and starts[1]["session"]["resumed"] is True, starts)
        expect(ids[0] == ids[1] == starts[1]["session"]["id"], ids, starts)
        expect(any(r.get("path") == "/session/" + ids[0] for r in asked(box)), asked(box))

    def gone(box, done, log):
        starts = [r for r in of_type(log, "call_start") if r["purpose"] == "execute"]
        expect([s["session"]["resumed"] for s in starts[1:]] == [True, False], starts)
        error = of_type(log, "call_end")[1]["error"]
        expect(error["class"] == "not_found", error)

    run("plain", known, workflow=workflow)
    run("forgets", gone, workflow=workflow)


def the_password_stays_out():
    def check(box, done, log):
        expect(done.returncode == 0, done.returncode, done.stderr)
        end = of_type(log, "call_end")[0]
        expect(end["text"].startswith("\u00absecret:"), end)
        expect("\u00absecret:" in json.dumps(end, ensure_ascii=False).split("stderr", 1)[-1], end)

    run("leak", check)


def its_output_is_no_answer():
    def check(box, done, log):
        expect(done.returncode == 0, done.returncode, done.stderr)

    run("quiet", check)


def what_stays_is_ended():
    def check(box, done, log):
        expect(done.returncode == 0, done.returncode, done.stderr)
        expect(of_type(log, "call_end")[0]["text"].rpartition(" ")[0].endswith("[WORK:1]"), "its answer is lost")

    run("stays", check)


def wait_until_it_works(box, path="/message"):
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        try:
            if any(r.get("path", "/start").endswith(path) for r in asked(box)):
                return
        except (OSError, ValueError):
            pass
        time.sleep(0.02)
    expect(False, "it does not begin to work")


def a_cancel_and_a_kill():
    for fake, sign, most_s in (("hang", signal.SIGINT, 3), ("deaf", signal.SIGINT, 12),
                               ("hang", signal.SIGKILL, 12), ("nostart", signal.SIGINT, 3)):
        with Box() as box:
            setup(box, fake)
            process = box.start(*words(box))
            wait_until_it_works(box, "/start" if fake == "nostart" else "/message")
            begun = time.monotonic()
            process.send_signal(sign)
            process.communicate(timeout=WAIT_S)
            nothing_is_left(box)
            at_once(begun, most_s, fake, sign)
            if sign == signal.SIGINT:
                expect(process.returncode == 130, process.returncode)
                was_asked = any(r.get("path", "").endswith("/abort") for r in asked(box))
                expect(was_asked == (fake != "nostart"), "was it asked to stop?", was_asked)


def what_is_told_of_it(box):
    for transport, how in (("native", "tool"), ("exec", "prompt"), ("acp", "prompt")):
        setup(box, "plain", transport=transport)
        listed = json.loads(box.segue("providers", "--json", "--quick").stdout)
        row = [p for p in listed["providers"] if p["name"] == "opencode"][0]
        expect(row["transport"] == transport and row["schema"] == how, row)


def with_less_than_the_network_it_is_refused_before_the_start():
    with Box() as box:
        setup(box, "plain")
        path = box.dir + "/home/config/segue/config.yaml"
        config = json.loads(Path(path).read_text())
        for network in ("none", "api"):
            config["sandbox"].update({"level": "guard", "network": network})
            with open(path, "w") as f:
                json.dump(config, f)
            box.cwd = os.path.join(box.dir, network)
            os.makedirs(box.cwd)
            run = box.segue(*words(box))
            told = run.stderr.decode()
            if "cannot be enforced here" in told:
                needs("bwrap")
                return "skipped: " + told.splitlines()[0]
            expect(run.returncode == 2, network, run.returncode, told)
            expect(f"network: {network} does not work with the server" in told and "transport: exec" in told, told)
            expect(not os.path.exists(box.dir + "/state/asked.jsonl"), "it was started")
    return None


def two_at_once(box):
    setup(box, "plain")
    one = words(box)  # writes the workflow: once
    runs = [box.start(*one) for _ in range(3)]
    for process in runs:
        _, err = process.communicate(timeout=WAIT_S)
        expect(process.returncode == 0, process.returncode, err)
    nothing_is_left(box)


if __name__ == "__main__":
    sys.exit(main([an_answer, a_tool, structured_answers, errors_have_classes, silence_is_ended,
                   one_more_try_is_its_own, questions_are_answered_by_policy,
                   a_conversation_goes_on, the_password_stays_out, its_output_is_no_answer,
                   what_stays_is_ended, a_cancel_and_a_kill, what_is_told_of_it,
                   with_less_than_the_network_it_is_refused_before_the_start, two_at_once]))
