#!/usr/bin/env python3
"""Budgets of a day: all sessions of a user together, over processes and restarts of a daemon."""
import json
import os
import sys
import time

from daemon import DaemonBox
from support import Box, expect, main, of_type, records, verified

REPLY = {"text": "did it", "times": 0, "usage": {"input": 300, "output": 100}, "cost": 0.25}

LOOP = """
name: loop
provider: script
max_movements: 8
movements:
  - name: work
    instruction: Do the work.
    rules:
      - {condition: when(movement_iteration == 3), next: COMPLETE}
      - {condition: when(true), next: work}
"""


def midday(box):
    """Such a time zone that midnight is hours away."""
    shift = time.gmtime().tm_hour - 12
    box.env["TZ"] = "XYZ%+d" % shift



def start(box, status, *more):
    done = box.segue("run", box.file("flow.yaml", LOOP), "--cwd", box.cwd, "--logs", box.logs, "-s",
                     box.file("replies.json", json.dumps({"replies": [REPLY]})), *more, status=status)
    return box.log_paths()[-1], done.stdout.decode() + done.stderr.decode()


def stop_of(path, **wanted):
    stop = records(path)[-1]
    expect(stop["type"] == "session_stop" and stop["reason"] == "budget", stop)
    for key, value in wanted.items():
        expect(stop["budget"].get(key) == value, key, stop["budget"])
    return stop


def test_two_sessions_share_a_day(box):
    """1,500 tokens: the first session takes 1,200 of them; the second one call, not a second one.
    Nobody starts a call any more, not a resume either; more in the file lets it go on."""
    box.config("budget: {day: {tokens: 1500}}\n")
    start(box, 0)
    path, said = start(box, 7)
    stop = stop_of(path, of="day", unit="tokens", used=1600, limit=1500)
    expect(len(of_type(records(path), "call_start")) == 1, "calls of the second session")
    expect("1600 of 1500 tokens (100 over)" in stop["message"] and "midnight" in stop["message"], stop)
    expect("raise budget" in said and "segue resume" in said and "--add-budget" not in said, said)
    expect("budget" in box.segue("ls", "--logs", box.logs).stdout.decode(), "ls")
    box.segue("resume", path, status=7)
    expect(len(of_type(records(path), "call_start")) == 1, "a resume started a call")
    stop_of(path, of="day")
    box.config("budget: {day: {tokens: 9999}}\n")
    box.segue("resume", path, status=0)
    verified(box, path)


def test_of_one_provider(box):
    box.config("budget: {providers: {script: {calls: 2}, claude: {calls: 1}}}\n")
    path, _ = start(box, 7)
    stop = stop_of(path, of="day", unit="calls", used=2, limit=2, provider="script")
    expect("of script" in stop["message"], stop)


def test_four_fifths_are_noted_once(box):
    box.config("budget: {day: {cost: 0.6}}\n")
    path, said = start(box, 0)
    notes = [n for r in records(path) for n in r.get("budget", []) if r["type"] == "call_start"]
    expect([n["level"] for n in notes] == ["soft"] and notes[0]["of"] == "day", notes)
    expect("today's budget: $0.5000 of $0.6000 are used" in said, said)


def test_plan_and_doctor(box):
    box.config("budget:\n  day: {tokens: 2000, cost: 20}\n  providers: {script: {tokens: 1200}}\n")
    start(box, 0)
    words = (box.file("flow.yaml", LOOP), "--logs", box.logs, "-s", box.dir + "/replies.json", "--task", "Do it.")
    plan = json.loads(box.segue("plan", *words, "--json").stdout)
    expect([d["used"] for d in plan["day"]] == [1200, 0.75, 1200], plan["day"])
    expect(plan["day"][2]["provider"] == "script", plan["day"])
    said = box.segue("plan", *words).stdout.decode()
    expect("today's budget: 1200 of 2000 tokens are used" in said, said)
    said = box.segue("doctor", "--quick").stdout.decode()
    expect("today's budget of script: 1200 of 1200 tokens are used" in said and "midnight" in said,
           said)


def test_torn_and_foreign_lines_count_for_nothing(box):
    box.config("budget: {day: {tokens: 1500}}\n")
    start(box, 0)
    folder = os.path.join(box.env["XDG_STATE_HOME"], "segue", "spent")
    old = os.path.join(folder, "2001-01-01")
    with open(os.path.join(folder, os.listdir(folder)[0]), "ab") as f:
        f.write(b"x" * 3000 + b"\n-5 1 1 1 script\n9 9\n99999999999999999999 0 0 0 script\n12")
    with open(old, "w") as f:
        f.write("5 0 0 0 script\n")
    path, _ = start(box, 7)
    stop_of(path, of="day", unit="tokens", limit=1500)
    expect(not os.path.exists(old), "a file of years ago stays")


def test_a_daemon_counts_on(box):
    """What was used before a restart counts after it; nobody takes it further by itself."""
    box.config("budget: {day: {tokens: 500}}\n")
    box.serve()
    sid = box.submit(box.file("flow.yaml", LOOP), {"text": json.dumps({"replies": [REPLY]})})
    box.wait_status(sid, "needs_input")
    stop_of(box.log(sid), of="day", used=800)
    box.end()
    box.serve()
    other = box.submit(box.file("flow.yaml", LOOP), {"text": json.dumps({"replies": [REPLY]})})
    box.wait_status(other, "needs_input")
    stop_of(box.log(other), of="day", used=800)
    expect(not of_type(records(box.log(other)), "call_start"), "it started a call")
    box.check_all()


def test_errors_say_where(box):
    for text, where, word in (
            ("budget: 5\n", "1:9", "must be a map"),
            ("budget:\n  day: {token: 5}\n", "2:9", 'did you mean "tokens"'),
            ("budget:\n  day: {tokens: 0}\n", "2:17", "whole number"),
            ("budget:\n  day: {cost: -1}\n", "2:15", "dollars"),
            ("budget:\n  day: {time: soon}\n", "2:15", "duration"),
            ("budget:\n  day: {}\n", "2:8", "map"),
            ("budget:\n  week: {cost: 1}\n", "2:3", "day and providers"),
            ("budget:\n  providers: {script: 5}\n", "2:23", "map")):
        box.config(text)
        done = box.segue("run", box.file("flow.yaml", LOOP), "--logs", box.logs)
        said = done.stderr.decode()
        expect(done.returncode == 2 and "config.yaml:" + where in said and word in said, text, said,
               done.returncode)
    box.config("budget: {providers: {clode: {cost: 1}}}\n")
    box.segue("run", box.file("flow.yaml", LOOP), "--logs", box.logs, err=(b"did you mean", b"budget"))


def case(body, kind=Box):
    def run():
        with kind() as box:
            midday(box)
            body(box)
    run.__name__ = body.__name__[len("test_"):]
    return run


if __name__ == "__main__":
    sys.exit(main([case(test_two_sessions_share_a_day), case(test_of_one_provider),
                   case(test_four_fifths_are_noted_once), case(test_plan_and_doctor),
                   case(test_torn_and_foreign_lines_count_for_nothing), case(test_errors_say_where),
                   case(test_a_daemon_counts_on, DaemonBox)]))
