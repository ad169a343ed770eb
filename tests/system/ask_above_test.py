#!/usr/bin/env python3
"""A group whose plan is larger than ask_above asks before it begins, and is never half begun."""
import json
import os
import sys

from daemon import DaemonBox
from support import Box, expect, main, of_type, records, verified

EACH = """
name: fan
provider: script
judge: {stages: [ai_judge]}
%s
movements:
  - name: parts
    for_each: [%s]
    concurrency: 3
    parallel:
      - name: it
        pass_previous_response: false
        instruction: "Do {item}."
        rules: [{condition: done}, {condition: failed}]
    rules:
      - {condition: all("done"), next: COMPLETE}
      - {condition: any("failed"), next: ABORT}
"""
LISTED = """
name: listed
provider: script
judge: {stages: [phase1_tag]}
ask_above: {calls: 3}
movements:
  - name: plan
    instruction: "List the parts."
    structured_output: {on_failure: error, schema: {type: object, required: [parts], properties: {parts: {type: array, items: {type: string}}}}}
    rules: [{condition: when(true), next: parts}]
  - name: parts
    for_each: plan.parts
    parallel:
      - name: it
        pass_previous_response: false
        instruction: "Do {item}."
        rules: [{condition: when(true)}]
    rules: [{condition: when(true), next: COMPLETE}]
"""
GROUP = """
name: group
provider: script
judge: {stages: [phase1_tag]}
ask_above: {calls: 1}
movements:
  - name: both
    parallel:
      - {name: a, instruction: Do the one., rules: [{condition: when(true)}]}
      - {name: b, instruction: Do the two., rules: [{condition: when(true)}]}
      - {name: c, command: ['true'], rules: [{condition: when(true)}]}
    rules: [{condition: when(true), next: COMPLETE}]
"""


def replies(cost=None):
    work = {"purpose": "execute", "text": "It is done.", "times": 0, "usage": {"input": 100, "output": 10}}
    judge = {"stage": "ai_judge", "times": 0, "text": '{"matched_index": 1, "reason": "it is"}',
             "usage": {"input": 50, "output": 5}}
    if cost is not None:
        work["cost"], judge["cost"] = cost * 3 / 2, cost / 2
    return json.dumps({"replies": [work, judge]})


def words(box, text, scenario=None):
    return [box.file("flow.yaml", text), "-t", "x", "-s", box.file("r.json", scenario or replies()), "--cwd", box.cwd,
            "--logs", box.logs]


def started(path):
    return len(of_type(records(path), "call_start"))


def asked(path):
    stop, question = records(path)[-1], of_type(records(path), "question")
    expect(stop["type"] == "session_stop" and stop["reason"] == "question", stop)
    return question[-1]["question"]


def test_nothing_begins_before_the_yes(box):
    flow = words(box, EACH % ("ask_above: {calls: 5}", "a, b, c"))
    box.segue("run", *flow, status=7)
    path = box.log_paths()[-1]
    question = asked(path)
    expect(question["plan"] == {"children": 3, "calls": 6} and question["kind"] == "approve", question)
    expect("3 items, 6 calls" in question["text"] and "not known" in question["text"], question)
    expect(started(path) == 0 and len(of_type(records(path), "turn_start")) == 1, "a child began")
    item = json.loads(box.segue("inbox", "--json", "--logs", box.logs).stdout)
    expect(item["plan"]["calls"] == 6 and item["cause"] == "approval", item)
    box.segue("resume", path, status=7)
    expect(started(path) == 0, "a resume is no yes")
    box.segue("approve", path)
    box.segue("resume", path, status=0)
    expect(started(path) == 6, started(path))
    verified(box, path)


def test_no_is_the_end(box):
    box.segue("run", *words(box, EACH % ("ask_above: {calls: 5}", "a, b, c")), status=7)
    path = box.log_paths()[-1]
    box.segue("reject", path, "--reason", "too dear")
    box.segue("resume", path, status=3)
    expect(started(path) == 0 and of_type(records(path), "turn_end")[-1]["outcome"] == "rejected", "it began")
    verified(box, path)


def test_yes_and_small_plans_ask_nobody(box):
    box.segue("run", *words(box, EACH % ("ask_above: {calls: 5}", "a, b, c")), "--yes", status=0)
    expect(records(box.log_paths()[-1])[0]["config"]["ask_above"] is False, "the log does not say so")
    box.segue("run", *words(box, EACH % ("ask_above: {calls: 6}", "a, b, c")), status=0)
    box.segue("run", *words(box, EACH % ("", "a, b, c")), status=0)
    box.config("ask_above: {calls: 1}\n")
    box.segue("run", *words(box, EACH % ("", "a, b, c")), status=7)
    box.segue("run", *words(box, EACH % ("ask_above: {calls: 9}", "a, b, c")), status=7)


def test_costs_come_from_earlier_sessions(box):
    for cost in (0.01, 0.02, 0.04):
        box.segue("run", *words(box, EACH % ("", "a, b"), replies(cost)), status=0)
    box.config("ask_above: {cost: 1}\n")
    box.segue("run", *words(box, EACH % ("", "a, b, c"), replies(0.01)), status=0)  # 6 x 0.04 in one case of ten
    box.config("ask_above: {cost: 0.2}\n")
    box.segue("run", *words(box, EACH % ("", "a, b, c"), replies(0.01)), status=7)
    log = records(box.log_paths()[-1])
    known = log[0]["config"]["call_costs"]["parts.it"]
    expect(known["sessions"] == 4 and known["p90"] == 0.04 and known["p50"] == 0.01, known)
    plan = asked(box.log_paths()[-1])["plan"]
    expect(abs(plan["cost_usd"]["p50"] - 0.06) < 1e-9 and abs(plan["cost_usd"]["p90"] - 0.24) < 1e-9, plan)
    expect("$0.06 (p50) to $0.24 (p90)" in asked(box.log_paths()[-1])["text"], "text")


def test_costs_come_from_prices(box):
    """Earlier sessions told tokens only; the user's own prices say what these cost."""
    box.segue("run", *words(box, EACH % ("model: m", "a, b")), status=0)
    box.config("ask_above: {cost: 0.0001}\nprices: {m: {input: 1000, output: 1000}}\n")
    box.segue("run", *words(box, EACH % ("model: m", "a, b")), status=7)
    plan = asked(box.log_paths()[-1])["plan"]
    expect(abs(plan["cost_usd"]["p50"] - 2 * 165 * 0.001) < 1e-9, plan)


def test_a_list_that_a_value_decides(box):
    scenario = json.dumps({"replies": [
        {"movement": "plan", "times": 0, "text": json.dumps({"parts": ["a", "b", "c", "d"]})},
        {"movement": "parts.it", "times": 0, "text": "did it"}]})
    box.segue("run", *words(box, LISTED, scenario), status=7)
    path = box.log_paths()[-1]
    expect(asked(path)["plan"]["calls"] == 4 and started(path) == 1, asked(path))
    box.segue("approve", path)
    box.segue("resume", path, status=0)
    expect(started(path) == 5, started(path))


def test_a_group(box):
    box.segue("run", *words(box, GROUP), status=7)
    path = box.log_paths()[-1]
    expect(asked(path)["plan"] == {"children": 3, "calls": 2}, asked(path))
    expect("3 movements, 2 calls" in asked(path)["text"], asked(path))


def test_mistakes(box):
    for text, word in (("ask_above: 5\n", "must be a map"), ("ask_above: {}\n", "must be a map"),
                       ("ask_above: {calls: 0}\n", "a whole number"), ("ask_above: {call: 5}\n", "a whole number")):
        box.config(text)
        done = box.segue("run", *words(box, GROUP), status=2)
        expect(word in done.stderr.decode() and "config.yaml:1:" in done.stderr.decode(), text, done.stderr)
    box.config("{}\n")
    done = box.segue("lint", box.file("flow.yaml", EACH % ("ask_above: {cals: 5}", "a")))
    expect(done.returncode != 0 and "calls" in done.stdout.decode() + done.stderr.decode(), done)


def test_a_daemon_waits_for_the_answer(box):
    box.serve()
    flow = box.file("flow.yaml", EACH % ("ask_above: {calls: 5}", "a, b, c"))
    scenario = {"text": replies()}
    sid = box.submit(flow, scenario)
    box.wait_status(sid, "needs_input")
    expect(started(box.log(sid)) == 0, "a child began")
    status, said = box.ask("POST", f"/v1/sessions/{sid}/approve", {})
    expect(status in (200, 202), status, said)
    box.wait_status(sid, "complete")
    other = box.submit(flow, scenario, ask_above=False)
    box.wait_status(other, "complete")
    box.check_all()


def case(body, kind=Box):
    def run():
        with kind() as box:
            body(box)
    run.__name__ = body.__name__[len("test_"):]
    return run


if __name__ == "__main__":
    sys.exit(main([case(test_nothing_begins_before_the_yes), case(test_no_is_the_end),
                   case(test_yes_and_small_plans_ask_nobody), case(test_costs_come_from_earlier_sessions),
                   case(test_costs_come_from_prices), case(test_a_list_that_a_value_decides), case(test_a_group),
                   case(test_mistakes), case(test_a_daemon_waits_for_the_answer, DaemonBox)]))
