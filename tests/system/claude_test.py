#!/usr/bin/env python3
"""Claude Code by a stand-in that keeps its books as the real versions do: what a conversation costs
is booked once, and a call is not over before what it has put into the background."""
import concurrent.futures
import json
import os
import sys
from pathlib import Path

from support import Box, expect, main, of_type, prompt_text, records, verified

# Plays the next list of steps of plan.json for each call. Its books are one file a conversation. A new
# version tells the conversation's sums, an old one those of the process; a forked conversation begins
# with its parent's books. What a killed process used is lost.
CLIENT = r"""#!/usr/bin/env python3
import json, os, subprocess, sys, time
here, args = os.path.dirname(os.path.abspath(__file__)), sys.argv[1:]
plan = json.load(open(here + "/plan.json"))
def of(flag):
    return args[args.index(flag) + 1] if flag in args else None
native = "--input-format" in args
if native:
    for line in iter(sys.stdin.readline, ""):
        if json.loads(line)["type"] == "user":
            break
else:
    sys.stdin.read()
old = of("--resume")
if of("--session-id") and os.path.exists(here + "/books/" + of("--session-id")):
    sys.exit("Error: Session ID %s is already in use." % of("--session-id"))
count = len(os.listdir(here + "/calls"))
open(here + "/env", "w").write(os.environ.get("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", ""))
open(here + "/calls/%d-%d" % (count, os.getpid()), "w").write(" ".join(args))
if of("--session-id"):
    open(here + "/books/" + of("--session-id"), "w").write("[0, 0, 0]")
me = "fork-%d" % os.getpid() if "--fork-session" in args else old or of("--session-id")
books = [0, 0, 0]
if plan["new"] and old:
    books = json.load(open(here + "/books/" + old))
def out(event):
    print(json.dumps(dict(event, session_id=me)), flush=True)
def task(subtype, **more):
    out(dict({"type": "system", "subtype": subtype}, **more))
told = [0, 0]
task("init")
for step in plan["calls"][min(count, len(plan["calls"]) - 1)]:
    kind, what = step[0], step[1:]
    if kind == "use":  # tokens of a request: [input, output, "below"]
        books = [books[0] + what[0], books[1] + what[1], books[2] + what[0] * 1e-5 + what[1] * 5e-5]
        with open(here + "/billed", "a") as f:
            f.write("%r\n" % (what[0] * 1e-5 + what[1] * 5e-5))
        if len(what) < 3:
            told = [told[0] + what[0], told[1] + what[1]]
    elif kind == "result":
        event = {"type": "result", "subtype": "success", "is_error": False, "result": what[0],
                 "usage": {"input_tokens": told[0], "output_tokens": told[1]}, "total_cost_usd": books[2]}
        if plan.get("models", True):
            event["modelUsage"] = {"m": {"inputTokens": books[0], "outputTokens": books[1], "costUSD": books[2]}}
        event.update(what[1] if len(what) > 1 else {})
        told = [0, 0]
        open(here + "/books/" + me, "w").write(json.dumps(books))
        out(event)
    elif kind == "ask":
        out({"type": "control_request", "request_id": "r", "request": {"subtype": "can_use_tool",
             "tool_name": "Write", "input": {"file_path": os.getcwd() + "/x"}}})
        said = sys.stdin.readline()
        open(here + "/asked", "w").write(said or "nobody")
    elif kind == "event":
        task(what[0], **what[1])
    elif kind == "flood":
        for i in range(10000):
            task("task_started", task_id="t%d" % i, is_backgrounded=True, description="d" * 5000)
    elif kind == "sleep":
        time.sleep(what[0])
    elif kind == "work":  # a child of its own is busy, and says nothing
        subprocess.run(["timeout", str(what[0]), "sh", "-c", "while :; do :; done"])
    elif kind == "once":  # killed at this place, if it is the first time
        if not os.path.exists(here + "/once"):
            open(here + "/once", "w").close()
            open(here + "/here", "w").close()
            time.sleep(600)
    elif kind == "hang":
        time.sleep(600)
"""
ONE = """name: one
provider: claude
movements:
  - name: work
    instruction: Do it.
    %s
    rules:
      - {condition: "when(movement_iteration < %d)", next: work}
      - {condition: "when(true)", next: COMPLETE}
"""
JUDGED = """name: judged
movements:
  - name: work
    provider: claude
    instruction: Do it.
    rules:
      - {condition: it is done, next: COMPLETE}
      - {condition: it is not done, next: ABORT}
    judge: {provider: script, stages: [structured_output]}
"""
SCENARIO = "replies:\n  - {purpose: judge, structured: {reason: r, step: 1}}\n"
BACK = {"task_id": "b1", "description": "explore", "is_backgrounded": True}


def prepare(box, plan, settings=""):
    for name in ("calls", "books"):
        os.makedirs(f"{box.dir}/{name}", exist_ok=True)
    box.file("plan.json", json.dumps(plan))
    os.chmod(box.file("claude", CLIENT), 0o755)
    box.config("sandbox: off\nproviders: {claude: {program: %s/claude%s}}\n" % (box.dir, settings))


def play(box, flow, plan, settings="", more=(), status=0):
    prepare(box, plan, settings)
    box.segue("run", box.file("w.yaml", flow), "--task", "t", "--logs", box.logs, *more, status=status)
    return records(box.log_paths()[-1])


def billed(box):
    with open(box.dir + "/billed") as f:
        return sum(float(line) for line in f)


def booked(log):
    return sum(r["usage"].get("cost_usd", 0) for r in of_type(log, "call_end") if "usage" in r)


def same(box, log, *what):
    spent = of_type(log, "session_end")[0]["spent"]
    expect(abs(booked(log) - billed(box)) < 1e-6 and abs(spent["cost_usd"] - billed(box)) < 1e-6, booked(log),
           spent["cost_usd"], billed(box), *what)
    expect(box.segue("verify", "last", "--logs", box.logs).returncode == 0, "verify")


CALLS = [[["use", 1000, 50], ["result", "a"]], [["use", 900, 60], ["use", 10, 5], ["result", "b"]],
         [["use", 10, 1], ["result", "c"]], [["use", 5000, 400], ["result", "d"]], [["use", 40, 4], ["result", "e"]],
         [["use", 41, 4], ["result", "f"]]]
BELOW = [[["use", 1000, 50], ["result", "a"]], [["use", 900, 60], ["use", 300, 5, "below"], ["result", "b"]],
         [["use", 10, 1], ["use", 200, 1, "below"], ["result", "c"]]]


def case_a_conversation_is_billed_once():
    """Six calls of one conversation, by versions that tell its sums and by older ones, in both ways of
    driving the client, with models told and without, and with agents below."""
    for transport in ("exec", "native"):
        for new in (True, False):
            for plan in ({"calls": CALLS}, {"calls": CALLS, "models": False}, {"calls": BELOW}):
                with Box() as box:
                    log = play(box, ONE % ("edit: true", 6 if plan["calls"] is CALLS else 3), dict(plan, new=new),
                               ", transport: " + transport)
                    same(box, log, transport, new, plan)
                    audit = json.loads(box.segue("audit", box.logs, "--json").stdout)
                    work = [v for v in str(audit).split("'cost_usd': ")[1:]]
                    expect(any(abs(float(w.split(",")[0].split("}")[0]) - billed(box)) < 1e-6 for w in work), audit)


def case_a_budget_counts_what_is_billed(box):
    prepare(box, {"new": True, "calls": [[["use", 1000, 0], ["result", "a"]]]})
    flow = (ONE % ("edit: true", 6)).replace("provider: claude", "provider: claude\nbudget: {cost: 0.065}")
    log = play(box, flow, {"new": True, "calls": [[["use", 1000, 0], ["result", "a"]]]})
    same(box, log)
    expect(len(of_type(log, "call_end")) == 6, "calls")


def case_two_conversations_and_forks():
    """Two movements by turns; items that continue copies of the movement's conversation."""
    by_turns = """name: two
provider: claude
movements:
  - name: one
    instruction: Do it.
    rules: [{condition: "when(true)", next: two}]
  - name: two
    instruction: Do it.
    rules:
      - {condition: "when(movement_iteration < 3)", next: one}
      - {condition: "when(true)", next: COMPLETE}
"""
    forks = """name: forks
provider: claude
movements:
  - name: first
    instruction: Do it.
    session_key: k
    rules: [{condition: "when(true)", next: both}]
  - name: both
    parallel:
      - {name: a, instruction: Do it., session_key: k, rules: [{condition: "when(true)"}]}
      - {name: b, instruction: Do it., session_key: k, rules: [{condition: "when(true)"}]}
    rules: [{condition: "when(true)", next: COMPLETE}]
"""
    for flow in (by_turns, forks):
        for new in (True, False):
            with Box() as box:
                log = play(box, flow, {"new": new, "calls": CALLS})
                same(box, log, flow, new)
                if flow is forks:
                    calls = "".join(open(f"{box.dir}/calls/{n}").read() for n in os.listdir(box.dir + "/calls"))
                    expect(calls.count("--fork-session") == 2, calls)


def case_what_was_told_survives_a_kill():
    """segue is killed in a later call, before that call told anything and after; and within the first."""
    for at in (0, 1):
        for told in (False, True):
            with Box() as box:
                calls = [list(c) for c in CALLS[:3]]
                calls[at] = ([["use", 100, 10], ["result", "x"]] if told else []) + [["once"], *calls[at]]
                calls.insert(at + 1, calls[at])
                prepare(box, {"new": True, "calls": calls}, ", transport: native")
                run = box.start("run", box.file("w.yaml", ONE % ("edit: true", 3)), "--task", "t", 
                                "--logs", box.logs)
                while not os.path.exists(box.dir + "/here"):
                    expect(run.poll() is None, "ended")
                if told:
                    while not any(r["type"] == "call_event" and r["event"] == "usage" and r["data"]["input"] == 100
                                  for r in records(box.log_paths()[-1])):
                        expect(run.poll() is None, "ended")
                run.kill()
                run.wait()
                box.segue("resume", "last", "--logs", box.logs, status=0)
                log = records(box.log_paths()[-1])
                spent = of_type(log, "session_end")[0]["spent"]
                expect(abs(spent["cost_usd"] - billed(box)) < 1e-6, at, told, spent["cost_usd"], billed(box))


def judged(box, calls, settings="", transport="exec", status=0):
    log = play(box, JUDGED, {"new": True, "calls": calls}, ", transport: " + transport + settings,
               ("--scenario", box.file("s.yaml", SCENARIO)), status)
    work = [r for r in of_type(log, "call_end") if "provider_session" in r][0]
    asked = [r for r in of_type(log, "call_start") if r["purpose"] == "judge"]
    return work, prompt_text(log, asked[0]) if asked else "", log


def case_a_background_task_is_awaited():
    """The last result counts; tokens of all results are added, the cost is of the last."""
    second = [["event", "init", {}], ["use", 30, 3], ["result", "all is done"]]
    over = [["event", "task_updated", {"task_id": "b1", "patch": {"status": "completed"}}],
            ["event", "task_notification", {"task_id": "b1", "status": "completed"}],
            ["event", "background_tasks_changed", {"tasks": []}]]
    first = [["event", "background_tasks_changed", {"tasks": [BACK]}], ["event", "task_started", BACK], ["use", 100, 10],
             ["result", "I wait"], ["sleep", 4]]
    ways = {"all events": first + over + second, "a set only": first[:1] + first[2:] + over[2:] + second,
            "no set": first[1:] + over[:2] + second, "one that says no background": [
                ["event", "task_started", {"task_id": "b1"}], *first[2:], *over[:1], *second],
            "another starts another": first + over + [["event", "init", {}], ["event", "task_started", {**BACK, "task_id": "b2"}],
                                                      ["result", "I wait again"], ["sleep", 4],
                                                      ["event", "task_notification", {"task_id": "b2", "status": "failed"}]] + second,
            "a slow turn": first + over + [second[0], ["sleep", 4], *second[1:]],
            "two at once": first[:3] + over + [["event", "init", {}], ["result", "I wait"], *second[1:]]}


    def one(way):
        name, transport = way
        with Box() as box:
            work, asked, _ = judged(box, [ways[name]], transport=transport)
            expect(work["text"] == "all is done" and "unfinished" not in work, name, work)
            expect(work["usage"]["input"] == 130 and work["usage"]["output"] == 13, name, work["usage"])
            expect(abs(work["usage"]["cost_usd"] - billed(box)) < 1e-9, name, work["usage"])
            expect("all is done" in asked and "background work" not in asked, asked)

    with concurrent.futures.ThreadPoolExecutor(7) as pool:
        list(pool.map(one, [(name, transport) for name in ways for transport in ("exec", "native")]))


def case_the_wait_has_an_end():
    """The last result is taken at the limit, at the stall limit and at the movement's own; what was
    stopped is recorded, shown and told to the judge."""
    begin = [["event", "task_started", BACK], ["use", 100, 10], ["result", "I wait"]]
    for name, settings, calls in (
            ("limit", ", background_ms: 1500", begin + [["hang"]]),
            ("a turn that does not end", ", background_ms: 1500", begin + [["event", "background_tasks_changed", {"tasks": []}],
                                                                           ["event", "init", {}], ["hang"]]),
            ("stall", ", stall_ms: 1500", begin + [["hang"]]),
            ("again and again", ", background_ms: 3000", begin + [["event", "init", {}], ["event", "task_started", BACK]] * 20 +
             [["hang"]]),
            ("stopped by the client", "", begin + [["event", "task_updated", {"task_id": "b1", "patch": {"status": "killed"}}],
                                                   ["event", "task_notification", {"task_id": "b1", "status": "stopped"}],
                                                   ["event", "background_tasks_changed", {"tasks": []}]]),
            ("set first", "", begin + [["event", "background_tasks_changed", {"tasks": []}],
                                       ["event", "task_notification", {"task_id": "b1", "status": "stopped"}]]),
            ("it left", "", begin)):
        for transport in ("exec", "native"):
            with Box() as box:
                work, asked, log = judged(box, [calls], settings, transport)
                expect(work["text"] == "I wait" and "error" not in work, name, work)
                if name == "a turn that does not end":
                    expect("a turn that did not end" in work["note"] and "unfinished" not in work, work)
                    continue
                expect(work["unfinished"] == ["explore"] and "explore" in work["note"], name, work)
                expect('"explore"' in asked and "stopped before its end" in asked, asked)
                expect(b"explore" in box.segue("show", "last", "--logs", box.logs, "work").stdout, "show")
    with Box() as box:
        flow = JUDGED.replace("instruction:", "timeout: 2s\n    instruction:")
        log = play(box, flow, {"new": True, "calls": [begin + [["hang"]]]}, "", ("--scenario", box.file("s.yaml", SCENARIO)))
        work = of_type(log, "call_end")[0]
        expect(work["text"] == "I wait" and work["unfinished"] == ["explore"], work)


def case_what_idles_is_not_awaited():
    """A server that waits for requests is ended soon, and named; what works without a word is awaited; a turn is no idling."""
    begin = [["event", "task_started", BACK], ["use", 100, 10], ["result", "I wait"]]
    over = [["event", "task_notification", {"task_id": "b1", "status": "completed"}],
            ["event", "background_tasks_changed", {"tasks": []}]]
    for transport in ("exec", "native"):
        with Box() as box:
            work, asked, log = judged(box, [begin + [["hang"]]], ", background_idle_ms: 1500", transport)
            expect(work["text"] == "I wait" and work["unfinished"] == work["outlived"] == ["explore"], work)
            expect(work["note"] == "a background task did nothing for 2 s, so it was ended: explore", work)
            expect('"explore"' in asked and 1500 < work["duration_ms"] < 20000, work, asked)
        for name, calls in (("works", begin + [["work", 5]] + over + [["event", "init", {}], ["result", "done"]]),
                            ("a turn", begin + over + [["event", "init", {}], ["sleep", 5], ["result", "done"]])):
            with Box() as box:
                work, _, _ = judged(box, [calls], ", background_idle_ms: 1500", transport)
                expect(work["text"] == "done" and "unfinished" not in work, name, work)


def case_what_was_waited_for_in_vain_is_not_again():
    """In each later call of the session; another task is."""
    begin = [["event", "task_started", BACK], ["use", 100, 10], ["result", "I wait"]]
    other = [["event", "task_started", {**BACK, "description": "test"}], ["result", "I wait"], ["hang"]]
    with Box() as box:
        log = play(box, ONE % ("edit: true", 3), {"new": True, "calls": [begin + [["hang"]], begin + [["hang"]], other]},
                   ", background_ms: 6000")
        ends = of_type(log, "call_end")
        expect([e.get("outlived") for e in ends] == [["explore"], None, ["test"]], ends)
        expect([e["unfinished"] for e in ends] == [["explore"], ["explore"], ["test"]], ends)
        expect(ends[1]["duration_ms"] < 6000 <= ends[0]["duration_ms"], ends)
        verified(box, box.log_paths()[0])


def case_background_work_is_bounded_and_forbidden():
    """By the workflow, before the user's configuration; a client with a switch is told to leave it alone."""
    begin = [["event", "task_started", BACK], ["use", 100, 10], ["result", "I wait"], ["hang"]]
    with Box() as box:
        work = of_type(play(box, ONE.replace("provider:", "wait_for_background: 2s\nprovider:") % ("", 1),
                            {"new": True, "calls": [begin]}), "call_end")[0]
        expect(work["outlived"] == ["explore"] and 2000 <= work["duration_ms"] < 20000, work)
        expect(Path(box.dir + "/env").read_text() == "", "it was told")
    with Box() as box:
        play(box, ONE % ("", 1), {"new": True, "calls": [[["result", "done"]]]}, ", background: forbid")
        expect(Path(box.dir + "/env").read_text() == "1", "it was not told")
        Path(box.env["XDG_CONFIG_HOME"] + "/segue/config.yaml").write_text("providers: {codex: {background: forbid}}\n")
        done = box.segue("run", box.dir + "/w.yaml", "--provider", "codex", "--logs", box.logs)
        expect(done.returncode != 0 and b"no switch" in done.stderr, done)


def case_permissions_are_answered_in_the_later_turn(box):
    calls = [["event", "task_started", BACK], ["result", "I wait"],
             ["event", "task_notification", {"task_id": "b1", "status": "completed"}], ["event", "init", {}], ["ask"],
             ["use", 3, 1], ["result", "all is done"]]
    work, _, _ = judged(box, [calls], transport="native")
    expect("control_response" in Path(box.dir + "/asked").read_text() and work["text"] == "all is done", work)


def case_odd_streams_are_bounded():
    """No task, no list, ten thousand tasks with long words, one id again and again, odd ids."""
    odd = [["event", "background_tasks_changed", {"tasks": {"a": 1}}], ["event", "background_tasks_changed", {"tasks": 7}],
           ["event", "task_started", {}], ["event", "task_started", {"task_id": "", "is_backgrounded": True}],
           ["event", "task_started", {"task_id": "x" * 100000}], ["event", "task_notification", {"task_id": 7}],
           ["event", "background_tasks_changed", {"tasks": [1, None, [], {"task_id": None}]}], ["event", "init", {}]]
    with Box() as box:
        work, _, _ = judged(box, [odd + [["use", 1, 1], ["result", "done"]]])
        expect(work["text"] == "done" and "unfinished" not in work and work["duration_ms"] < 2500, work)
    with Box() as box:
        work, asked, _ = judged(box, [[["flood"], ["event", "task_started", BACK], ["event", "task_started", BACK],
                                       ["use", 1, 1], ["result", "done"], ["hang"]]], ", background_ms: 500")
        expect(work["text"] == "done" and 0 < len(work["unfinished"]) <= 32, work)
        expect(max(len(t) for t in work["unfinished"]) <= 120 and len(asked) < 20000, work)


def case_without_such_events_nothing_changes(box):
    """A client that lives on after its result is ended after three seconds, and two inits do not help."""
    work, _, _ = judged(box, [[["use", 1, 1], ["result", "done"], ["event", "init", {}], ["hang"]]])
    expect(work["text"] == "done" and 2500 < work["duration_ms"] < 30000 and "unfinished" not in work, work)


if __name__ == "__main__":
    sys.exit(main([v for n, v in sorted(globals().items()) if n.startswith("case_")]))
