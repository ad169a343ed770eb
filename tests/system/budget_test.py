#!/usr/bin/env python3
"""Budgets: no call starts once a sum has reached its limit, and a person adds to it."""
import json
import signal
import sys

from daemon import DaemonBox
from support import expect, flow, main, of_type, records, verified

FOUR = {"text": "did it", "times": 0, "usage": {"input": 300, "output": 100}, "cost": 0.25}

LOOP = """
name: loop
provider: script
max_movements: 8
%s
movements:
  - name: work
    instruction: Do the work.
    %s
    rules:
      - {condition: when(movement_iteration == 6), next: COMPLETE}
      - {condition: when(true), next: work}
"""


def run(box, text, replies, *more, status=7):
    done = box.segue("run", box.file("flow.yaml", text), "--cwd", box.cwd, "--logs", box.logs, "-s",
                     box.file("replies.json", json.dumps({"replies": replies})), *more)
    expect(done.returncode == status, "run gave", done.returncode, done.stdout, done.stderr)
    return box.log_paths()[-1], done.stdout.decode()


def resume(box, path, *more, status=7):
    done = box.segue("resume", path, *more)
    expect(done.returncode == status, "resume", *more, "gave", done.returncode, done.stdout, done.stderr)
    return done.stdout.decode() + done.stderr.decode()


def refused(box, path, *more, word):
    before = records(path)
    said = resume(box, path, *more, status=2)
    expect(word in said, more, said)
    expect(records(path) == before, more, "changed the log")


def stopped(path, **wanted):
    stop = records(path)[-1]
    expect(stop["type"] == "session_stop" and stop["reason"] == "budget", stop)
    for key, value in wanted.items():
        expect(stop["budget"].get(key) == value, key, stop["budget"])
    return stop


def starts(path, **wanted):
    return [r for r in of_type(records(path), "call_start")
            if all(r.get(key) == value for key, value in wanted.items())]


def the_third_starts_and_the_fourth_does_not(box):
    path, said = run(box, LOOP % ("budget: {tokens: 1000}", ""), [FOUR])
    expect(len(starts(path)) == 3, "calls", len(starts(path)))
    stop = stopped(path, of="session", unit="tokens", used=1200, limit=1000)
    expect("1200 of 1000 tokens (200 over); work 1200" in stop["message"], stop["message"])
    expect("--add-budget tokens=N" in said and "budget: 800 of 1000 tokens are used" in said, said)
    shown = box.segue("show", path).stdout.decode()
    expect("--add-budget tokens=N" in shown, shown)
    soft = [r for r in of_type(records(path), "call_end") if "budget" in r]
    expect(len(soft) == 1 and soft[0]["budget"] == [
        {"of": "session", "unit": "tokens", "used": 800, "limit": 1000, "level": "soft"}], soft)
    refused(box, path, word="give --add-budget tokens=N with more than 200")
    refused(box, path, "--add-budget", "tokens=200", word="more than 200")
    refused(box, path, "--add-budget", "tokens", word="write UNIT=N")
    refused(box, path, "--add-budget", "token=9", word='knows no "token"')
    refused(box, path, "--add-budget", "tokens=-1", word="a number above 0")
    refused(box, path, "--add-budget", "time=5m", word="no budget of time")
    refused(box, path, "--add-budget", "work.tokens=5", word="no budget of work.tokens")
    resume(box, path, "--add-budget", "tokens=1000")
    changed = of_type(records(path), "session_resume")[0]["changed"]
    expect(changed == {"add_budget": {"tokens": 1000}}, changed)
    expect("add_budget" not in of_type(records(path), "session_resume")[0].get("config", {}), path)
    expect(len(starts(path)) == 5, "after the resume", len(starts(path)))
    stopped(path, used=2000, limit=2000)
    resume(box, path, "--add-budget", "tokens=1000", status=0)
    expect(len(starts(path)) == 6, "in the end", len(starts(path)))
    verified(box, path)


def each_unit(box):
    for budget, unit, calls, more in (("{cost: 0.5}", "cost", 2, "cost=0.3"), ("{calls: 4}", "calls", 4, "calls=1"),
                                      ("{movements: 3}", "movements", 3, "movements=1"),
                                      ("{time: 1ms}", "time", 1, "time=1h")):
        path, _ = run(box, LOOP % ("budget: " + budget, ""), [FOUR | {"delay_ms": 2}])
        stopped(path, of="session", unit=unit)
        expect(len(starts(path)) == calls, unit, len(starts(path)))
        refused(box, path, word=f"--add-budget {unit}=N")
        resume(box, path, "--add-budget", more, status=0 if unit == "time" else 7)
        expect(len(starts(path)) > calls, unit, "did not go on")
        path, _ = run(box, LOOP % ("", "budget: " + budget), [FOUR | {"delay_ms": 2}])
        stopped(path, of="movement", movement="work", unit=unit)
        refused(box, path, word=f"--add-budget work.{unit}=N")
        resume(box, path, "--add-budget", "work." + more, status=0 if unit == "time" else 7)
        verified(box, path)


GROUP = """
name: group
provider: script
%s
movements:
  - name: review
    %s
    concurrency: 1
    parallel:
      - name: one
        instruction: Look once.
        rules: [{condition: when(true)}]
      - name: two
        instruction: Look again.
        rules: [{condition: when(true)}]
    rules: [{condition: when(true), next: COMPLETE}]
"""


def crossed_by_a_child(box):
    for where in (("budget: {tokens: 400}", ""), ("", "budget: {tokens: 400}")):
        path, _ = run(box, GROUP % where, [FOUR])
        stopped(path, of="session" if where[0] else "movement", used=400)
        expect(len(starts(path)) == 1, starts(path))
        key = "tokens" if where[0] else "review.tokens"
        resume(box, path, "--add-budget", key + "=1", status=0)
        verified(box, path)


def siblings_that_run_are_finished(box):
    text = (GROUP % ("budget: {tokens: 400}", "")).replace("    concurrency: 1\n", "")
    path, _ = run(box, text, [FOUR], status=0)  # both had begun, and nothing comes after them
    expect(len(of_type(records(path), "call_end")) == 2, path)


JUDGED = flow("budget_judged")
SAYS_ONE = {"purpose": "judge", "structured": {"reason": "so", "step": 1}, "usage": {"input": 300, "output": 1}}


def crossed_by_a_judge(box):
    path, _ = run(box, JUDGED, [FOUR | {"purpose": "execute"}, SAYS_ONE])
    stop = stopped(path, used=701)
    expect("judging 301 of it" in stop["message"], stop["message"])
    expect(len(starts(path)) == 2, starts(path))
    path, _ = run(box, JUDGED.replace("700", "400"), [FOUR | {"purpose": "execute"}, SAYS_ONE])
    stopped(path, used=400)  # the judge itself is not asked
    expect([r["purpose"] for r in starts(path)] == ["execute"], starts(path))
    resume(box, path, "--add-budget", "tokens=302", status=0)
    verified(box, path)


MADE = """
name: made
provider: script
budget: {tokens: 800}
movements:
  - name: work
    instruction: Name a number.
    structured_output:
      max_reasks: 3
      schema: {type: object, properties: {n: {type: integer}}, required: [n]}
      on_failure: error
    rules: [{condition: when(true), next: COMPLETE}]
"""


def crossed_by_a_correction(box):
    path, _ = run(box, MADE, [FOUR | {"text": text, "times": 1} for text in ("none", '{"n": "x"}', '{"m": 1}')])
    stop = stopped(path, used=800)
    expect([r["purpose"] for r in starts(path)] == ["execute", "reask"], starts(path))
    expect("corrections 400 of it" in stop["message"], stop["message"])
    resume(box, path, "--add-budget", "tokens=1")
    expect([r["purpose"] for r in starts(path)] == ["execute", "reask", "reask"], starts(path))
    verified(box, path)


def a_repeat_counts(box):
    fails = {"error": {"class": "overloaded", "retry_after_ms": 1}, "times": 0,
             "usage": {"input": 400, "output": 0}}
    path, _ = run(box, LOOP % ("budget: {tokens: 400, calls: 1}", ""), [fails])
    stopped(path, unit="tokens", used=400)
    expect(len(starts(path)) == 1, starts(path))
    resume(box, path, "--add-budget", "tokens=1")  # the same call: it counts once
    expect([r["attempt"] for r in starts(path)] == [1, 2], starts(path))
    path, _ = run(box, LOOP % ("budget: {call: {tokens: 400}}", ""), [fails])
    stopped(path, of="call", movement="work", used=400)
    resume(box, path)  # a call's budget begins anew with a person's resume
    expect(len(starts(path)) == 2, starts(path))
    verified(box, path)


def who_counts_nothing(box):
    silent = {"text": "did it", "times": 0}
    path, said = run(box, LOOP % ("budget: {tokens: 10, cost: 1}", ""), [silent], status=0)
    notes = [n for r in of_type(records(path), "call_end") for n in r.get("budget", [])]
    expect(notes == [{"provider": "script", "unit": unit, "level": "unknown"} for unit in ("tokens", "cost")], notes)
    expect(said.count("are not known") == 2, said)
    unpriced = {"text": "did it", "times": 0, "usage": {"input": 1, "output": 1}}
    path, _ = run(box, LOOP % ("budget: {tokens: 1000, cost: 1}", ""), [unpriced], status=0)
    notes = [n for r in of_type(records(path), "call_end") for n in r.get("budget", [])]
    expect(notes == [{"provider": "script", "unit": "cost", "level": "unknown"}], notes)
    verified(box, path)


def one_that_runs_is_ended(box):
    tells = FOUR | {"usage_so_far": {"input": 900, "output": 101}, "delay_ms": 600000}
    path, _ = run(box, LOOP % ("budget: {tokens: 1000, on_exceed: stop}", ""), [tells])
    end = of_type(records(path), "call_end")[0]
    expect(end["error"]["class"] == "budget" and "1001 of 1000" in end["error"]["message"], end)
    expect(end["usage"] == {"input": 900, "output": 101, "told": "partial"}, end["usage"])
    stopped(path, used=1001)
    resume(box, path, "--add-budget", "tokens=1000")
    expect([r["attempt"] for r in starts(path)] == [1, 2], starts(path))
    stopped(path, used=2002)
    verified(box, path)
    slow = {"text": "late", "delay_ms": 600000, "times": 0}
    path, _ = run(box, LOOP % ("budget: {time: 50ms, on_exceed: stop}", ""), [slow])
    expect(of_type(records(path), "call_end")[0]["error"]["class"] == "timeout", path)
    stopped(path, unit="time")
    within = FOUR | {"usage_so_far": {"input": 300, "output": 100}}
    path, _ = run(box, LOOP % ("budget: {tokens: 400, on_exceed: stop}", ""), [within])
    expect(all("error" not in r for r in of_type(records(path), "call_end")), path)


def a_crash_forgets_nothing(box):
    tells = FOUR | {"usage_so_far": {"input": 900, "output": 101}, "delay_ms": 600000}
    flow = box.file("flow.yaml", LOOP % ("budget: {tokens: 1000}", ""))
    replies = box.file("replies.json", json.dumps({"replies": [tells]}))
    process = box.start("run", flow, "--cwd", box.cwd, "--logs", box.logs, "-s", replies, "--json")
    for line in process.stdout:
        if json.loads(line)["type"] == "call_event":
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    path = box.log_paths()[0]
    resume(box, path)  # what it told counts: the call is not repeated
    stopped(path, used=1001)
    expect(len(starts(path)) == 1, starts(path))
    verified(box, path)


def the_daemon_leaves_it_to_a_person(box: DaemonBox):
    box.serve()
    sid = box.submit(box.file("flow.yaml", LOOP % ("budget: {tokens: 1000}", "")),
                     {"text": json.dumps({"replies": [FOUR]})})
    box.wait_status(sid, "needs_input")
    before = records(box.log(sid))
    box.end()
    box.serve()
    expect(records(box.log(sid)) == before, "it went on by itself")
    status, value = box.ask("POST", f"/v1/sessions/{sid}/resume", {"add_budget": {"token": 1}})
    expect(status == 422 and 'knows no "token"' in value["detail"], status, value)
    status, value = box.ask("POST", f"/v1/sessions/{sid}/resume", {"add_budget": {"tokens": 2000}})
    expect(status == 202, status, value)
    box.wait_status(sid, "complete")
    expect(len(of_type(records(box.log(sid)), "session_resume")) == 1, "it was added twice")
    box.check_all()


sys.exit(main([the_third_starts_and_the_fourth_does_not, each_unit, crossed_by_a_child,
               siblings_that_run_are_finished, crossed_by_a_judge, crossed_by_a_correction, a_repeat_counts,
               who_counts_nothing, one_that_runs_is_ended, a_crash_forgets_nothing,
               the_daemon_leaves_it_to_a_person]))
