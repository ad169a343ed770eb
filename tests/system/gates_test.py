#!/usr/bin/env python3
"""Gates behind a movement, and paths that no movement may change."""
import json
import os
import sys

from support import expect, flow, main, of_type, records, verified, verdicts

FLOW = flow("gates_flow")
PROTECTED = """
name: protected
provider: script
protect: [tests/**, '*.lock']
movements:
  - name: build
    instruction: Build it.
    rules: [{condition: when(true), next: test}]
  - name: test
    command: [sh, -c, 'echo ran >> ran']
    rules: [{condition: when(exit == 0), next: COMPLETE}]
"""


def run(box, text, replies, *more, status=0):
    done = box.segue("run", box.file("flow.yaml", text), "--cwd", box.cwd, "--logs", box.logs, "-s",
                     box.file("replies.json", json.dumps({"replies": replies})), *more, status=status)
    return box.log_paths()[-1], done.stdout.decode()


def path_of(log):
    return [v[1] for v in verdicts(log)]


def a_failure_goes_back_with_its_output(box):
    path, _ = run(box, FLOW, [
        {"movement": "build", "text": "built 1"},
        {"movement": "build", "contains": "no rule to make", "text": "built 2", "write": {"made": "yes\n"}},
        {"movement": "review", "contains": "built 2", "text": "fine"}])
    log = records(path)
    expect(path_of(log) == ["build", "build.gate1 > review", "build", "build.gate1 > review",
                             "build.check > review", "review"], path_of(log))
    workflow = log[0]["workflow"]
    expect("gates" not in json.dumps(workflow["movements"]), workflow)
    gate = [m for m in workflow["movements"] if m["name"] == "build.gate1 > review"][0]
    expect(gate["gate"] is True and gate["timeout"] == "5m", gate)
    expect("build.gate1" in [m["name"] for m in workflow["movements"]], workflow)
    verified(box, path)


def one_that_takes_too_long_goes_back_too(box):
    text = FLOW.replace("echo no rule to make >&2; test -e made'], timeout: 5m", "echo working; test -e made || sleep 60'], timeout: 300ms")
    path, _ = run(box, text, [
        {"movement": "build", "text": "built 1"},
        {"movement": "build", "contains": "working\nsh: still running after 300 ms, so it was ended", "text": "built 2", "write": {"made": "yes\n"}},
        {"movement": "review", "text": "fine"}])
    ends = [r for r in of_type(records(path), "call_end") if "exit" in r]
    expect([r["exit"] for r in ends] == [124, 0, 0] and "error" not in ends[0], ends)
    verified(box, path)


def its_runs_are_bounded(box):
    path, _ = run(box, FLOW, [{"text": "built", "times": 0}], status=4)
    expect(path_of(records(path)).count("build.gate1 > review") == 3, path_of(records(path)))
    box.segue("resume", path, "--rule", "1", "--why", "I looked", out="build.check")
    verified(box, path)


def a_gate_without_its_program_stops_before_money_is_spent(box):
    text = FLOW.replace("[cat, made]", "[no-such-program-here]")
    done = box.segue("run", box.file("flow.yaml", text), "--logs", box.logs, "-s",
                     box.file("r.json", json.dumps({"replies": [{"text": "x"}]})))
    expect(done.returncode == 2 and b"no-such-program-here" in done.stderr, done.stderr)
    expect(not box.log_paths(), "a session began")


def mistakes_are_told(box):
    child = FLOW.replace("  - name: review", "  - name: all\n    parallel:\n      - name: one\n        instruction: Look at it.\n"
                         "        gates: [{command: [ls]}]\n        rules: [{condition: when(true)}]\n"
                         "    rules: [{condition: when(true), next: review}]\n  - name: review", 1)
    for text, word in ((FLOW.replace("timeout: 5m", "timeout: 5 minutes"), "must be a duration"),
                       (FLOW.replace("timeout: 5m", "timout: 5m"), "did you mean timeout"),
                       (FLOW.replace("gate_runs: 3", "gate_runs: 0"), "from 1 to 1000"),
                       (PROTECTED.replace("[tests/**, '*.lock']", "tests"), "protect must be a list"),
                       (child, "gates")):
        box.segue("run", box.file("flow.yaml", text), "--logs", box.logs, status=2, err=word)


def what_is_protected_stops_the_session(box):
    touches = {"text": "built", "write": {"a": "1\n", "tests/run.sh": "exit 0\n", "deep/x.lock": "2\n"}}
    path, said = run(box, PROTECTED, [touches], status=7)
    stop = records(path)[-1]
    expect(stop["reason"] == "protected" and stop["message"] ==
           '"build" changed what is protected: tests/run.sh +1 -0, deep/x.lock +1 -0; '
           "put it back, or resume to let it be", stop)
    expect(not os.path.exists(box.cwd + "/ran"), "the next movement ran")
    done = box.segue("resume", path)
    expect(done.returncode == 0 and os.path.exists(box.cwd + "/ran"), done.stdout)
    expect(len(of_type(records(path), "call_start")) == 2, "the work was done again")
    verified(box, path)
    os.unlink(box.cwd + "/ran")
    path, said = run(box, PROTECTED, [touches | {"write": {"tests/run.sh": "exit 1\n"}}], status=7)
    refused = box.segue("reject", path)
    expect(refused.returncode == 1 and not os.path.exists(box.cwd + "/ran"), refused)
    done = box.segue("approve", path)
    expect(done.returncode == 0 and os.path.exists(box.cwd + "/ran"), done)
    verified(box, path)
    path, _ = run(box, PROTECTED, [{"text": "built", "write": {"a": "2\n", "src/tests.c": "1\n"}}])
    verified(box, path)


def a_command_is_seen_too(box):
    os.makedirs(box.cwd + "/tests")
    text = PROTECTED.replace("echo ran >> ran", "echo exit 0 > tests/run.sh")
    path, _ = run(box, text, [{"text": "built"}], status=7)
    expect("tests/run.sh" in records(path)[-1]["message"], records(path)[-1])


ERRORS = flow("gates_errors")


def an_error_leads_on(box):
    told = "hang (timeout): still running after 1000 ms"
    path, said = run(box, ERRORS, [{"movement": "fix", "contains": told, "text": "mended"},
                                   {"stage": "structured_output", "contains": told,
                                    "text": '{"reason": "it says so", "step": 1}'}])
    end = of_type(records(path), "turn_end")[0]
    expect((end["outcome"], end["class"], end["next"]) == ("error", "timeout", "fix"), end)
    expect("> fix" in said and "still running after 1000 ms" in said, said)
    verified(box, path)
    shown = json.loads(box.segue("show", path, "--as", "view").stdout)["movements"]
    expect(next(m for m in shown if m["name"] == "hang")["on_error"] == [{"class": "timeout", "next": "fix", "taken": 1}], shown)
    page = box.segue("report", path, "--format", "html").stdout.decode()
    expect("after an error <bdi>fix</bdi> 1\u00d7" in page and page.count("<g class=taken>") == 2, page[-9000:])
    flow = box.dir + "/flow.yaml"
    said = box.segue("lint", flow)
    expect(b"no rule leads to the movement never" in said.stderr and b"movement fix" not in said.stderr, said)
    expect(b"> ABORT, fix" in box.segue("plan", flow).stdout, "the plan")


sys.exit(main([a_failure_goes_back_with_its_output, one_that_takes_too_long_goes_back_too, its_runs_are_bounded,
               a_gate_without_its_program_stops_before_money_is_spent, mistakes_are_told,
               what_is_protected_stops_the_session, a_command_is_seen_too, an_error_leads_on]))
