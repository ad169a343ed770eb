#!/usr/bin/env python3
"""The control API: every route, its errors, its events; and the commands that speak it.

usage: daemon_api_test.py BUILD_DIR [CASE...]
Each answer is held against schemas/api.json.
"""
import json
import os
import signal
import subprocess
import sys
import time

from support import SEGUE, at_once, expect, interrupt, main, of_type, records, verified
from daemon import API, LONG, SIMPLE, DaemonBox, Events, simple


def routes_are_described(box: DaemonBox):
    done = box.segue("serve", "--help")
    told = [line.split()[:2] for line in done.stdout.decode().splitlines()
            if line.strip().startswith(("GET ", "POST "))]
    described = [[method.upper(), path] for path, item in API["paths"].items()
                 for method in item if method in ("get", "post", "put", "delete", "patch")]
    expect(sorted(told) == sorted(described), "told", told, "described", described)
    names = [item[m]["operationId"] for item in API["paths"].values() for m in item
             if m in ("get", "post")]
    expect(len(set(names)) == len(names), names)


def a_session_from_start_to_end(box: DaemonBox):
    box.serve()
    workflow, scenario = simple(box, 20)
    sid = box.submit(workflow, scenario, task="hello", options={"seed": 1},
                     provider="script", model="m")
    expect(box.headers["Location"] == "/v1/sessions/" + sid, dict(box.headers))
    expect(os.path.exists(box.log(sid)), "the answer came before the log")
    done = box.wait_status(sid, "complete")
    expect(done["turns"] == 2 and done["workflow"] == "simple" and done["movement"] == "do", done)
    expect(done["origin"] == "daemon" and done["log"] == box.log(sid), done)
    log = records(box.log(sid))
    start = log[0]
    expect(start["config"]["submitted"] is True and start["task"] == "hello", start)
    expect(start["config"]["model"] == "m" and start["config"]["options"] == {"seed": 1}, start)
    expect(done["seq"] == len(log), done)
    expect(len(of_type(log, "session_resume")) == 0, "it was not started once")
    verified(box, box.log(sid))
    health = box.get("/v1/health")
    expect(health["pid"] == box.process.pid and health["logs"] == box.logs, health)
    expect(box.get("/v1/openapi.json") == API, "the description is another one")
    expect(box.check_all() >= 4, "nothing was checked")
    box.end()


def inline_workflow_and_facets():
    text = """
name: inline
provider: script
movements:
  - name: one
    persona: poet
    policy: [short, kind]
    instruction: "write about {?task}{task}{/task}"
    rules: [{condition: done, next: COMPLETE}]
"""
    facets = {"personas": {"poet": "You are a poet."},
              "policies": {"short": "Be short.", "kind": "Be kind."}}
    replies = {"text": json.dumps({"replies": [{"text": "a poem", "times": 0}]})}
    with DaemonBox() as box:
        box.serve()
        sid = box.submit({"text": text, "facets": facets}, replies, task="rain")
        box.wait_status(sid, "complete")
        movement = records(box.log(sid))[0]["workflow"]["movements"][0]
        expect(movement["persona"] == "You are a poet.", movement)
        expect("Be short." in movement["policy"] and "Be kind." in movement["policy"], movement)
        for facet, what in (("poet", "no persona named poet"), ("./poet.md", "is a path")):
            status, value = box.ask("POST", "/v1/sessions", {
                "workflow": {"text": text.replace("poet", facet), "name": "mine"},
                "cwd": box.cwd, "scenario": replies})
            expect(status == 422 and any(what in e["message"] for e in value["errors"]), value)
            expect(value["errors"][0]["file"] == "mine" and value["errors"][0]["line"] == 6, value)
        box.check_all()
        box.end()


def refusals(box: DaemonBox):
    box.serve()
    workflow, scenario = simple(box)
    broken = box.file("broken.yaml", "name: x\nmovements:\n  - name: a\n    rules:\n"
                                     "      - {condition: ok, next: b}\n")
    good = {"workflow": workflow, "cwd": box.cwd, "scenario": scenario}

    def inline(**more):
        return {**good, "workflow": {"text": SIMPLE, **more}}
    rows = [
        (b"{", 400, "not JSON"),
        (b"", 400, "not JSON"),
        (b'{"cwd": "/", "cwd": "/"}', 400, "duplicate"),
        (b"[" * 100 + b"]" * 100, 400, "nested"),
        ([], 422, "must be an object"),
        ({"workflow": workflow}, 422, "cwd must be given"),
        ({**good, "cwd": "work"}, 422, "absolute"),
        ({**good, "cwd": box.dir + "/none"}, 422, "not a folder"),
        ({**good, "workflow": "simple.yaml"}, 422, "absolute path"),
        ({**good, "workflow": box.dir + "/none.yaml"}, 422, "the workflow has errors"),
        ({**good, "workflow": broken}, 422, "the workflow has errors"),
        ({**good, "workflow": 7}, 422, "workflow must be"),
        ({**good, "task": 7}, 422, "task must be"),
        ({**good, "provider": "nobody"}, 422, "no provider"),
        ({**good, "provider": "command"}, 422, "cannot be chosen"),
        ({**good, "providers": {"none": "script"}}, 422, "no such movement"),
        ({**good, "options": {"temperature": 9}}, 422, "temperature"),
        ({**good, "options": []}, 422, "options must be"),
        ({**good, "scenario": box.dir + "/none"}, 422, "none"),
        ({"workflow": workflow, "cwd": box.cwd}, 422, "scenario"),
        ({**good, "taks": "x"}, 422, 'did you mean "task"'),
        ({**good, "model": "a\0b"}, 422, "without NUL"),
        (inline(facet={}), 422, '"workflow.facet": did you mean "workflow.facets"'),
        (inline(facets=[]), 422, "workflow.facets must be"),
        (inline(facets={"persona": {}}), 422, 'did you mean "workflow.facets.personas"'),
        (inline(facets={"personas": []}), 422, "workflow.facets.personas must be"),
        (inline(facets={"personas": {"a": 7}}), 422, "workflow.facets.personas.a must be"),
        ({**good, "scenario": {"text": "replies: []", "txt": ""}}, 422, "scenario.txt"),
    ]
    for body, wanted, what in rows:
        status, value = box.ask("POST", "/v1/sessions", body, {"Content-Type": "application/json"})
        expect(status == wanted and what in value["detail"], body, "gave", status, value)
    status, value = box.ask("POST", "/v1/sessions", good, {"Content-Type": "text/plain"})
    expect(status == 415, status, value)
    for method, path, wanted in (("GET", "/", 404), ("GET", "/v1/sessions/", 404),
                                 ("DELETE", "/v1/sessions", 405), ("POST", "/v1/health", 405),
                                 ("GET", "/v1/sessions/../x", 404), ("GET", "/v1/none", 404),
                                 ("GET", "/v1/sessions/0badf00d", 404),
                                 ("GET", "/v1/sessions/%2e%2e", 404),
                                 ("GET", "/v1/sessions/01990000-0000-7000-8000-000000000000/events",
                                  404),
                                 ("POST", "/v1/sessions/01990000-0000-7000-8000-000000000000/cancel",
                                  404),
                                 ("GET", "/v1/sessions?status=odd", 400),
                                 ("GET", "/v1/sessions?before=odd", 400),
                                 ("GET", "/v1/sessions?limit=0", 400)):
        status, value = box.ask(method, path)
        expect(status == wanted, method, path, "gave", status, value)
    for path, what in (("/v1/sessions?stauts=queued", 'did you mean "status"'),
                       ("/v1/sessions?limit=1&x", 'unknown parameter "x"'),
                       ("/v1/health?after=1", 'unknown parameter "after"')):
        status, value = box.ask("GET", path)
        expect(status == 400 and what in value["detail"], path, status, value)
    for method, path, allowed in (("PUT", "/v1/sessions", "POST, GET, HEAD"),
                                  ("POST", "/v1/health", "GET, HEAD"),
                                  ("GET", "/v1/sessions/last/cancel", "POST")):
        status, value = box.ask(method, path)
        expect(status == 405 and box.headers["Allow"] == allowed, path, box.headers["Allow"])
        expect(value["detail"] == f"{path} takes {allowed} only", value)
    expect(box.log_paths() == [], "something was submitted")
    expect(box.get("/v1/sessions")["sessions"] == [], "something is listed")
    expect(box.ask("HEAD", "/v1/health")[0] == 200, "HEAD")
    os.rename(box.logs, box.logs + "-away")  # what the client named is fine
    for method, path, body in (("GET", "/v1/sessions", None), ("POST", "/v1/sessions", good)):
        status, value = box.ask(method, path, body)
        expect(status == 500 and box.logs in value["detail"], method, status, value)
    os.rename(box.logs + "-away", box.logs)
    box.check_all()
    box.end()


def lists_and_pages(box: DaemonBox):
    box.serve("-n", "2")
    workflow, scenario = simple(box, 60000)
    quick, answers = simple(box, 0, name="quick")
    done = [box.submit(quick, answers) for _ in range(3)]
    for sid in done:
        box.wait_status(sid, "complete")
    run = box.segue("run", quick, "-s", answers, "-l", box.logs, "-C", box.cwd, "-q")
    expect(run.returncode == 0, run.stderr)
    slow = [box.submit(workflow, scenario) for _ in range(5)]
    box.until(lambda: box.get("/v1/health")["sessions"]["running"] == 2, "two do not run")
    everything = box.get("/v1/sessions")["sessions"]
    ids = [s["id"] for s in everything]
    expect(ids == sorted(ids, reverse=True) and len(ids) == 9, ids)
    expect([s["id"] for s in everything if s["origin"] == "run"][0] not in done + slow, ids)
    queued = box.get("/v1/sessions?status=queued")["sessions"]
    expect([(s["id"], s["position"]) for s in reversed(queued)] ==
           list(zip(slow[2:], (1, 2, 3))), queued)
    both = box.get("/v1/sessions?status=running,complete")["sessions"]
    expect(len(both) == 6, both)
    seen, path = [], "/v1/sessions?limit=2"
    while True:
        page = box.get(path)
        seen += [s["id"] for s in page["sessions"]]
        if page["next"] is None:
            break
        path = "/v1/sessions?limit=2&before=" + page["next"]
    expect(seen == ids, "the pages gave", seen)
    shown = box.segue("ls").stdout.decode()
    expect(shown.count("queued") == 3 and shown.count(" run  claimed\n") + shown.count(" run  judged\n") == 1, shown)
    expect(len(box.segue("ls", "-n", "4", "--json").stdout.splitlines()) == 4, "-n")
    only = box.segue("ls", "--status", "complete", "--json").stdout.splitlines()
    expect(len(only) == 4, only)
    for sid in slow:
        expect(box.segue("cancel", sid).returncode == 0, "cancel", sid)
    box.check_all()
    box.end()
    shown = box.segue("ls", "--json").stdout.splitlines()  # without a daemon, from the logs
    expect([json.loads(s)["id"] for s in shown] == ids, shown)
    expect({json.loads(s)["status"] for s in shown} == {"complete", "cancelled"}, shown)


def waiting_for_a_provider(box: DaemonBox):
    """Who waits for a place, for a pause to end or for the next attempt says so, and since when."""
    box.config("providers: {script: {concurrency: 1}}\n")
    workflow, scenario = simple(box, 60000)

    def fails(ms):
        return {"text": json.dumps({"replies": [{"times": 0, "error": {
            "class": "rate_limit", "message": "later", "retry_after_ms": ms}}]})}
    box.serve()
    first = box.submit(workflow, scenario)
    box.until(lambda: box.session(first)["seq"] >= 3, "no call")
    second = box.submit(workflow, scenario)
    value = box.wait_status(second, "waiting")
    expect(value["waiting"]["for"] == "concurrency" and value["waiting"]["until"] is None and
           value["waiting"]["provider"] == "script", value)
    expect(value["waiting"]["since"] == of_type(records(box.log(second)), "admission")[0]["ts"],
           value)
    expect("script" in value["message"], value)
    expect(box.session(first)["status"] == "running", box.session(first))
    listed = box.get("/v1/sessions?status=waiting")["sessions"]
    expect([s["id"] for s in listed] == [second], listed)
    shown = box.segue("ls", "--status", "waiting", "--json").stdout.splitlines()
    expect([json.loads(s)["id"] for s in shown] == [second], shown)
    shown = box.segue("ls", "--logs", box.logs, "--status", "waiting", "--json").stdout
    expect([json.loads(s)["id"] for s in shown.splitlines()] == [second], shown)
    expect(b"waits: concurrency" in box.segue("show", second).stdout, "show")
    stream = iter(Events(box, second))  # it is watched as what runs
    expect(next(stream)[0] == "record", "no record")
    for sid in (second, first):
        expect(box.segue("cancel", sid).returncode == 0, "cancel", sid)
    # its own next attempt, and the pause for everybody else
    failing = box.submit(workflow, fails(3600000))
    value = box.wait_status(failing, "waiting")
    expect(value["waiting"]["for"] == "rate_limit" and value["waiting"]["until"], value)
    late = box.submit(workflow, scenario)
    value = box.wait_status(late, "waiting")
    expect(value["waiting"]["for"] == "cooldown" and
           value["waiting"]["until"] > value["waiting"]["since"], value)
    box.check_all()
    box.end(signal.SIGKILL)
    box.serve()
    box.wait_status(late, "waiting", "running")
    box.check_all()
    box.end(times=2)


def cancelling(box: DaemonBox):
    box.serve("-n", "1")
    workflow, scenario = simple(box, 60000)
    command = box.file("command.yaml", f"""
name: command
movements:
  - name: sleep
    command: [sh, -c, 'echo $$ >> {box.pids}; sleep 600 & sleep 600']
    rules: [{{condition: when(exit == 0), next: COMPLETE}}, {{condition: when(exit != 0), next: ABORT}}]
""")
    running = box.submit(command)
    waiting = box.submit(workflow, scenario)
    box.until(lambda: os.path.exists(box.pids), "the command does not run")
    expect(box.session(waiting)["status"] == "queued", box.session(waiting))
    for sid in (waiting, running):
        status, value = box.ask("POST", f"/v1/sessions/{sid}/cancel")
        expect(status == 200 and value["status"] == "cancelled", status, value)
        end = records(box.log(sid))[-1]
        expect(end["type"] == "session_end" and end["outcome"] == "cancelled", end)
        verified(box, box.log(sid))
        status, value = box.ask("POST", f"/v1/sessions/{sid}/cancel")
        expect(status == 200, "twice gave", status, value)
    expect(len(records(box.log(waiting))) == 2, "it had begun")
    box.until(lambda: box.get("/v1/health")["sessions"]["running"] == 0, "it still runs")
    with open(box.pids, encoding="ascii") as f:
        pid = int(f.read())
    expect(not os.path.exists(f"/proc/{pid}"), "the command lives")
    over, answers = simple(box, 0, name="over")
    sid = box.submit(over, answers)
    box.wait_status(sid, "complete")
    status, value = box.ask("POST", f"/v1/sessions/{sid}/cancel")
    expect(status == 409, status, value)
    # one that stopped by an error can still be cancelled
    dry = box.submit(over, {"text": '{"replies": [{"text": "x", "purpose": "judge"}]}'})
    stopped = box.wait_status(dry, "stopped")
    expect("no reply left" in stopped["message"], stopped)
    status, value = box.ask("POST", f"/v1/sessions/{dry}/cancel")
    expect(status == 200, status, value)
    expect([r["type"] for r in records(box.log(dry))[-3:]] ==
           ["session_stop", "session_resume", "session_end"], records(box.log(dry))[-3:])
    verified(box, box.log(dry))
    # one that another program runs cannot
    process = box.start("run", workflow, "-s", scenario, "-l", box.logs, "-C", box.cwd)
    box.until(lambda: len(box.begun()) == 5, "it does not run")
    other = box.get("/v1/sessions?status=running")["sessions"][0]
    expect(other["origin"] == "run", other)
    status, value = box.ask("POST", f"/v1/sessions/{other['id']}/cancel")
    expect(status == 409 and "another program" in value["detail"], status, value)
    process.terminate()
    process.communicate()
    done = box.segue("cancel", "last", sid, "nothing/here")
    expect(done.returncode != 0, done)
    box.check_all()
    box.end()


def resuming(box: DaemonBox):
    """One that stopped goes on where a client says so, and only then."""
    box.serve("-n", "1")
    workflow, scenario = simple(box, 20)
    replies = box.file("few.json", json.dumps({"replies": [{"text": "x", "purpose": "judge"}]}))

    def resume(sid, wanted, what=""):
        status, value = box.ask("POST", f"/v1/sessions/{sid}/resume")
        expect(status == wanted and (wanted == 202 or what in value["detail"]), status, value)
        return value
    # stopped by an error: each time it is tried once more
    dry = box.submit(workflow, replies)
    seen = box.wait_status(dry, "stopped")["seq"]
    value = resume(dry, 202)
    expect(value["status"] in ("queued", "running") and value["id"] == dry, value)
    box.until(lambda: box.session(dry)["status"] == "stopped" and
              box.session(dry)["seq"] > seen, "it was not tried again")
    again = [r["reason"] for r in of_type(records(box.log(dry)), "session_resume")]
    expect(again == ["user"], again)
    # a stream that begins while it waits sees the end
    slow, answers = simple(box, 60000, name="slow")
    blocker = box.submit(slow, answers)
    box.wait_status(blocker, "running")
    seen = box.session(dry)["seq"]
    expect(resume(dry, 202)["position"] == 1, "it does not wait")
    resume(dry, 409, "queued")
    resume(blocker, 409, "running")
    stream = Events(box, dry, seen)
    expect(box.segue("cancel", blocker).returncode == 0, "cancel")
    kinds = [e[2]["type"] for e in stream if e[0] == "record"]
    expect(kinds[0] == "session_resume" and kinds[-1] == "session_stop", kinds)
    # stopped by a user who had taken it over
    taken = box.submit(workflow, answers)
    box.wait_status(taken, "running")
    box.end(times=2)
    for _ in range(9):
        before = len(records(box.log(taken)))
        process = box.start("resume", box.log(taken))
        box.until(lambda: len(records(box.log(taken))) > before, "it is not resumed")
        interrupt(process)
        if records(box.log(taken))[-1]["type"] == "session_stop":  # else it came too early
            break
    box.serve("-n", "1")
    box.until(lambda: box.session(dry)["status"] == "stopped" and
              box.get("/v1/health")["sessions"]["running"] == 0, "something runs")
    expect(box.session(taken)["status"] == "stopped", box.session(taken))
    done = box.segue("resume", "--daemon", taken[:30])
    expect(done.returncode == 0 and done.stdout.decode().strip() == taken, done)
    box.until(lambda: records(box.log(taken))[-1]["type"] != "session_stop", "it does not go on")
    box.wait_status(taken, "running")
    box.end(signal.SIGKILL)
    box.serve("-n", "1")  # it is the daemon's again
    box.wait_status(taken, "running")
    expect(box.segue("cancel", taken).returncode == 0, "cancel")
    # what cannot be resumed says why
    resume(taken, 409, "it has ended already: cancelled")
    resume("01990000-0000-7000-8000-000000000000", 404, "no session")
    box.end()
    process = box.start("run", slow, "-s", answers, "-l", box.logs, "-C", box.cwd)
    box.until(lambda: len(box.begun()) == 4, "it does not run")
    other = os.path.basename(box.begun()[-1])[:36]
    box.serve()
    resume(other, 409, "another program")
    interrupt(process)
    resume(other, 409, "segue run")
    # a damaged log does not go on; what is wrong with it is told from then on
    odd = box.submit(workflow, replies)
    box.wait_status(odd, "stopped")
    box.until(lambda: box.get("/v1/health")["sessions"]["running"] == 0, "something runs")
    with open(box.log(odd), "r+b") as f:
        f.seek(2)
        f.write(b"w")
    resume(odd, 202)
    box.until(lambda: "hash" in (box.session(odd)["message"] or ""), "it is not told")
    os.unlink(box.log(odd))
    for words, what in ((("--daemon", "odd/id"), b"not a session's id"),
                        (("--daemon", taken), b"has ended"),
                        (("--daemon", taken, "--logs", box.logs), b"leave out --logs"),
                        (("--socket", box.socket, taken), b"needs --daemon")):
        done = box.segue("resume", *words)
        expect(done.returncode != 0 and what in done.stderr and not done.stdout, words, done)
    verified(box, *box.begun())
    expect(box.check_all() > 10, "nothing was checked")
    box.end()


def events_are_the_log(box: DaemonBox):
    box.serve()
    workflow, scenario = simple(box, 150)
    sid = box.submit(workflow, scenario)
    live = list(Events(box, sid))
    lines = open(box.log(sid), encoding="utf-8").read().splitlines()
    got = [(number, data) for event, number, data in live if event == "record"]
    expect([int(n) for n, _ in got] == list(range(1, len(lines) + 1)), got)
    expect([d for _, d in got] == [json.loads(line) for line in lines], "other records")
    deltas = [(number, data) for event, number, data in live if event == "delta"]
    expect([d["text"] for _, d in deltas] == ["do", "ne"], deltas)
    expect(all(n is None for n, _ in deltas), deltas)
    where = [i for i, (event, _, _) in enumerate(live) if event == "delta"]
    after = live[where[-1] + 1]
    expect(after[0] == "record" and after[2]["type"] == "call_end", after)
    again = [e for e in Events(box, sid) if e[0]]
    expect([e[2] for e in again] == [d for _, d in got], "from the log it is another one")
    for last in (1, 5, len(lines) - 1):
        part = [int(e[1]) for e in Events(box, sid, last) if e[0]]
        expect(part == list(range(last + 1, len(lines) + 1)), last, part)
    expect(Events(box, sid, len(lines)).status == 204, "nothing more will come")
    status, _ = box.ask("HEAD", f"/v1/sessions/{sid}/events")
    expect(status == 200 and box.headers["Content-Type"] == "text/event-stream", status)
    box.get("/v1/health")  # on the same connection: nothing of a body came
    # a stream that breaks off goes on behind what was seen
    sid = box.submit(workflow, scenario)
    seen = []
    while True:
        stream = Events(box, sid, seen[-1] if seen else None)
        if stream.status == 204:
            break
        for n, event in enumerate(e for e in stream if e[0] == "record"):
            seen.append(int(event[1]))
            if n == 2:
                break
        stream.close()
    expect(seen == list(range(1, len(records(box.log(sid))) + 1)), seen)
    # a session of another program
    process = box.start("run", workflow, "-s", scenario, "-l", box.logs, "-C", box.cwd)
    box.until(lambda: len(box.begun()) == 3, "it does not run")
    other = os.path.basename(box.begun()[-1])[:36]
    kinds = [e[2]["type"] for e in Events(box, other) if e[0] == "record"]
    process.communicate()
    expect(kinds == [r["type"] for r in records(box.log(other))], kinds)
    box.check_all()
    box.end()


def big_records_come_whole(box: DaemonBox):
    box.serve()
    workflow, scenario = simple(box, 0, text="ä line of an answer\n" * 3000)
    sid = box.submit(workflow, scenario, task="t" * 60000)
    events = [e[2] for e in Events(box, sid) if e[0] == "record"]
    expect(events == records(box.log(sid)), "other records")
    status, value = box.ask("POST", "/v1/sessions", {
        "workflow": workflow, "scenario": scenario, "cwd": box.cwd, "task": "x" * (9 << 20)})
    expect(status == 422 and "8388608" in value["detail"], status, value)
    task = "long\0\n" * 200000
    sid = box.submit(workflow, scenario, task=task)
    box.wait_status(sid, "complete")
    start = records(box.log(sid))[0]
    with open(f"{box.logs}/blobs/{start['task_blob']}", encoding="utf-8") as f:
        expect(f.read() == task, "the task is another one")
    box.end()


def heartbeats():
    if not LONG:
        return "skipped: SEGUE_LONG=1 waits for them"
    with DaemonBox() as box:
        box.serve()
        workflow, scenario = simple(box, 60000)
        sid = box.submit(workflow, scenario)
        stream, beats, begin = Events(box, sid), 0, time.monotonic()
        for event, _, _ in stream:
            beats += event is None
            if beats == 3:  # the first comes at once
                break
        took = time.monotonic() - begin
        expect(28 < took < 40, "two heartbeats took", took)
        before = box.fds()
        stream.close()
        begin = time.monotonic()
        box.until(lambda: box.fds() < before, "a client that is gone is not noticed")
        box.end(times=2)
        return f"gone client noticed after {time.monotonic() - begin:.0f} s"


def commands(box: DaemonBox):
    workflow, scenario = simple(box, 30)
    done = box.segue("submit", workflow)
    expect(done.returncode == 2 and b"no daemon answers" in done.stderr, done)
    expect(box.segue("ls").returncode == 0, "ls without anything")
    box.serve()
    words = [workflow, "--scenario", scenario, "-C", box.cwd, "--task", "x"]
    begin = time.monotonic()
    done = box.segue("submit", *words)
    expect(done.returncode == 0 and len(done.stdout) == 37, done)
    sid = done.stdout.decode().strip()
    followed = box.segue("show", sid, "--follow")
    expect(followed.returncode == 0 and b"COMPLETE" in followed.stdout, followed)
    done = box.segue("submit", *words, "--follow")
    expect(done.returncode == 0 and b"COMPLETE" in done.stdout and b"plan" in done.stdout, done)
    done = box.segue("submit", *words, "--wait")
    expect(done.returncode == 0 and len(done.stdout) == 37, done)
    abort = box.file("abort.yaml", "name: a\nmovements:\n  - name: s\n    command: ['false']\n"
                                   "    rules: [{condition: when(exit == 1), next: ABORT}]\n")
    expect(box.segue("submit", abort, "--wait", "-C", box.cwd).returncode == 3, "ABORT")
    value = json.loads(box.segue("submit", *words, "--json").stdout)
    expect(value["status"] in ("queued", "running", "complete"), value)
    bad = box.file("bad.yaml", "name: x\nmovements:\n  - name: a\n    rules:\n"
                               "      - {condition: ok, next: b}\n")
    done = box.segue("submit", bad, "-C", box.cwd)
    expect(done.returncode == 2 and b"bad.yaml:5:" in done.stderr and b"^" in done.stderr, done)
    expect(b"there is no movement b" in done.stderr, done)
    done = box.segue("submit", workflow, "-C", box.cwd)
    expect(done.returncode == 2 and b"--scenario" in done.stderr, done)
    done = box.segue("submit", *words, "--follow", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    expect(done.returncode == 0 and lines[0]["id"] == lines[1]["session"], lines[:2])
    expect(lines[-1]["type"] == "session_end", lines[-1])

    # an id is found through the daemon where the logs are not at hand
    env = dict(box.env)
    del env["SEGUE_LOGS"]

    def elsewhere(*given):
        return subprocess.run([SEGUE, *given], env=env, cwd=box.cwd, capture_output=True,
                              check=False)
    for given in ((sid,), (sid, "--socket", box.socket), ("last",)):
        done = elsewhere("show", *given)
        expect(done.returncode == 0 and b"COMPLETE" in done.stdout, given, done)
    done = elsewhere("show", sid, "--socket", box.dir + "/none")
    expect(done.returncode == 2 and b"no daemon answers" in done.stderr, done)

    # `last` is the one submitted last, also after a session of `segue run` elsewhere
    expect(elsewhere("run", *words).returncode == 0, "run")
    done = elsewhere("submit", *words, "--wait")
    sid = done.stdout.decode().strip()
    expect(sid.encode() in elsewhere("show", "last").stdout, "last is not", sid)

    for more in ([], ["--logs", box.logs]):
        done = box.segue("ls", "--status", "complete,odd", *more)
        expect(done.returncode == 2 and b'no status "odd"' in done.stderr, done)
    box.end()
    at_once(begin, 60, "it took long")


CASES = [routes_are_described, a_session_from_start_to_end, inline_workflow_and_facets, refusals,
         lists_and_pages, waiting_for_a_provider, cancelling, resuming, events_are_the_log, big_records_come_whole, heartbeats,
         commands]

if __name__ == "__main__":
    sys.exit(main(CASES))
