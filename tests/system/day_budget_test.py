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



def start(box, status, *more, cwd=None):
    done = box.segue("run", box.file("flow.yaml", LOOP), "--cwd", cwd or box.cwd, "--logs", box.logs, "-s",
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


def test_of_a_folder(box):
    """All sessions that were begun there or below count, whoever works on what; others do not."""
    below = os.path.join(box.cwd, "deep")
    os.makedirs(below)
    box.config("budget: {folders: {%s/: {day: {calls: 4}}, /no/such: {day: {calls: 1}}}}\n" % box.cwd)
    path, _ = start(box, 0, cwd=below)
    path, said = start(box, 7)
    stop = stop_of(path, of="folder", unit="calls", used=4, limit=4, folder=box.cwd + "/")
    expect("of the folder " + box.cwd in stop["message"] and "budget.folders." in stop["message"] and
           "day.calls in config.yaml" in stop["message"], stop)
    inbox = box.segue("inbox", "--json", "--logs", box.logs).stdout.decode()
    expect("--add-budget" not in inbox, inbox)
    start(box, 0, cwd=box.dir)
    plan = json.loads(box.segue("plan", box.dir + "/flow.yaml", "-t", "x", "-s", box.dir + "/replies.json", "--json",
                                "--logs", box.logs).stdout)
    expect([(d["of"], d["used"], d["limit"]) for d in plan["day"]] == [("folder", 4, 4), ("folder", 0, 1)], plan["day"])
    verified(box, path)


def test_of_a_store(box):
    box.config("budget: {store: {day: {cost: 0.6}}}\n")
    start(box, 0)
    path, said = start(box, 7)
    stop = stop_of(path, of="store", unit="cost", used=0.75, limit=0.6)
    expect("of all sessions of the store" in stop["message"] and "budget.store.day.cost" in stop["message"], stop)
    other = box.segue("run", box.dir + "/flow.yaml", "--cwd", box.cwd, "--logs", box.dir + "/others", "-s",
                      box.dir + "/replies.json")
    expect(other.returncode == 0, other)


def test_many_at_once_pass_a_number_of_calls_by_none(box):
    """Each call is taken under a lock: eight programs at once begin exactly as many as may begin."""
    box.config("budget: {folders: {%s: {day: {calls: 10}}}}\n" % box.cwd)
    flow, replies = box.file("flow.yaml", LOOP), box.file("replies.json", json.dumps({"replies": [REPLY]}))
    all = [box.start("run", flow, "--cwd", box.cwd, "--no-lock", "--logs", box.logs, "-s", replies) for _ in range(8)]
    ended = sorted(p.wait() for p in all)
    starts = sum(len(of_type(records(path), "call_start")) for path in box.log_paths())
    expect(starts == 10 and ended.count(7) >= 5, starts, ended)


def test_what_was_killed_counts_once(box):
    """A call that was killed is repeated as the next attempt, which is the same call."""
    box.config("budget: {store: {day: {calls: 3}}}\n")
    box.segue("run", box.file("flow.yaml", LOOP), "--cwd", box.cwd, "--logs", box.logs, "-s",
              box.file("replies.json", json.dumps({"replies": [REPLY]})), env={"SEGUE_FAULT": "exit:14"}, status=99)
    path = box.log_paths()[-1]
    begun = len(of_type(records(path), "call_start"))
    expect(0 < begun < 4, begun)
    box.segue("resume", path, status=0)
    expect(max(r["call"] for r in of_type(records(path), "call_start")) == 3, "calls")
    path, _ = start(box, 7)
    stop_of(path, of="store", unit="calls", used=3, limit=3)


def test_errors_say_where(box):
    for text, where, word in (
            ("budget: 5\n", "1:9", "must be a map"),
            ("budget:\n  day: {token: 5}\n", "2:9", 'did you mean "tokens"'),
            ("budget:\n  day: {tokens: 0}\n", "2:17", "whole number"),
            ("budget:\n  day: {cost: -1}\n", "2:15", "dollars"),
            ("budget:\n  day: {time: soon}\n", "2:15", "duration"),
            ("budget:\n  day: {}\n", "2:8", "map"),
            ("budget:\n  week: {cost: 1}\n", "2:3", "day, providers, store and folders"),
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
                   case(test_torn_and_foreign_lines_count_for_nothing), case(test_errors_say_where), case(test_of_a_folder),
                   case(test_of_a_store), case(test_many_at_once_pass_a_number_of_calls_by_none),
                   case(test_what_was_killed_counts_once),
                   case(test_a_daemon_counts_on, DaemonBox)]))
