#!/usr/bin/env python3
"""A person takes a session further: a verdict of their own, more turns, other providers."""
import http.server
import json
import os
import re
import pwd
import shutil
import signal
import sys
import threading

from daemon import DaemonBox
from support import Box, expect, flow, main, of_type, records, verified, verdicts

ME = {"uid": os.getuid(), "name": pwd.getpwuid(os.getuid()).pw_name}

# Each turn runs once; `next` of the last rule is what only a person chooses.
NO_RULE = """
name: no-rule
movements:
  - name: build
    command: [sh, -c, 'echo built >> built; exit 3']
    rules:
      - {condition: when(exit == 0), next: COMPLETE}
      - {condition: when(exit == 4), next: tell}
  - name: tell
    command: [sh, -c, 'echo told']
    rules: [{condition: when(exit == 0), next: COMPLETE}]
"""
AT_MAX = """
name: at-max
max_movements: 2
movements:
  - name: count
    command: [sh, -c, 'echo x >> x; test $(wc -l < x) -ge 4']
    rules:
      - {condition: when(exit == 0), next: COMPLETE}
      - {condition: when(exit != 0), next: count}
"""
FAILS = """
name: fails
provider: script
movements:
  - name: build
    instruction: build it
    rules:
      - {condition: when(last_exit == 1), next: ABORT}
      - {condition: when(iteration == 9), next: COMPLETE}
"""
JUDGED = """
name: judged
provider: script
movements:
  - name: work
    instruction: do the work
    judge: {stages: [structured_output]}
    rules:
      - {condition: good, next: COMPLETE}
      - {condition: bad, next: ABORT}
"""
NONE_HOLDS = {"stage": "structured_output", "structured": {"reason": "neither", "step": 0}}
GOOD = {"stage": "structured_output", "structured": {"reason": "so", "step": 1}}
WORKED = {"purpose": "execute", "text": "worked"}


def run(box, text, *more, status):
    done = box.segue("run", box.file("flow.yaml", text), "--cwd", box.cwd, "--logs", box.logs, *more)
    expect(done.returncode == status, "run gave", done.returncode, done.stdout, done.stderr)
    return box.log_paths()[-1], done.stdout.decode()


def resume(box, path, *more, status):
    done = box.segue("resume", path, *more)
    expect(done.returncode == status, "resume", *more, "gave", done.returncode, done.stdout, done.stderr)
    return done.stdout.decode() + done.stderr.decode()


def refused(box, path, *more, word):
    before = records(path)
    said = resume(box, path, *more, status=2)
    expect(word in said, more, said)
    expect(records(path) == before, more, "changed the log")


def stopped_as(box, path, reason):
    stop = records(path)[-1]
    expect(stop["type"] == "session_stop" and stop["reason"] == reason and stop["resumable"], stop)
    listed = json.loads(box.segue("ls", "-l", box.logs, "-s", reason, "--json").stdout.splitlines()[0])
    expect(listed["status"] == reason, listed)
    done = box.segue("verify", "--json", path)
    expect(json.loads(done.stdout)["state"] == "open", done.stdout)
    return stop


def a_verdict_of_a_person(box):
    path, said = run(box, NO_RULE, status=4)
    expect("NO RULE MATCHED" in said and "segue resume" in said and "--rule" in said, said)
    stopped_as(box, path, "rule_no_match")
    shown = box.segue("show", path).stdout.decode()
    expect("rule_no_match: segue resume continues (or with your verdict: --rule N)" in shown, shown)
    refused(box, path, "--rule", "3", word='movement "build" has no rule 3: use 1 to 2')
    refused(box, path, "--rule", "0", word="rule must be")
    refused(box, path, "--why", "x", word="why needs rule")
    said = resume(box, path, "--rule", "2", "--why", "exit 3 is 4 here", status=0)
    expect("a person" in said and "COMPLETE" in said, said)
    log = records(path)
    verified(box, path)
    expect(verdicts(log) == [(1, "build", None, None), (1, "build", 2, "human"),
                             (2, "tell", 1, "when")], verdicts(log))
    again = of_type(log, "session_resume")[0]
    expect(again["by"] == ME and again["reason"] == "user", again)
    expect(again["verdict"] == {"turn": 1, "rule": 2, "why": "exit 3 is 4 here"}, again)
    expect("config" not in again and "changed" not in again, again)
    stage = of_type(log, "judgment")[1]["stages"]
    expect(len(stage) == 1 and stage[0]["stage"] == "human" and stage[0]["by"] == ME, stage)
    expect(log[-1]["methods"] == {"human": 1, "when": 1}, log[-1])
    with open(box.cwd + "/built", encoding="ascii") as f:
        expect(f.read() == "built\n", "the command ran again")
    shown = box.segue("show", path, "build").stdout.decode()
    expect("exit 3 is 4 here" in shown and f"by: {ME['name']}" in shown, shown)
    refused(box, path, "--rule", "1", word="has ended for good: complete")
    expect(resume(box, path, status=0).count("tell") == 0, "it ran again")


def judged_anew(box):
    replies = box.file("r.json", json.dumps({"replies": [WORKED, NONE_HOLDS, GOOD]}))
    path, _ = run(box, JUDGED, "-s", replies, status=4)
    stopped_as(box, path, "rule_no_match")
    resume(box, path, status=0)
    log = records(path)
    verified(box, path)
    expect([v[2:] for v in verdicts(log)] == [(None, None), (1, "structured_output")], verdicts(log))
    expect(sum(r["purpose"] == "execute" for r in of_type(log, "call_start")) == 1, "worked twice")
    expect(of_type(log, "session_resume")[0]["by"] == ME, "nobody")


def more_turns(box):
    path, said = run(box, AT_MAX, status=5)
    expect("MAX MOVEMENTS" in said and "--max-movements N" in said, said)
    stop = stopped_as(box, path, "max_movements")
    expect(stop["message"] == 'max_movements is 2; "count" would have been next', stop)
    shown = box.segue("show", path).stdout.decode()
    expect("max_movements: segue resume --max-movements N continues" in shown, shown)
    shown = box.segue("show", path, "--follow").stdout.decode()
    expect(re.search(r"continue with: segue resume \S+ --max-movements N\n", shown), shown)
    refused(box, path, word="give --max-movements")
    refused(box, path, "--max-movements", "2", word="give --max-movements")
    refused(box, path, "--max-movements", "none", word="whole number")
    refused(box, path, "--max-movements", "0", word="max_movements must be")
    refused(box, path, "--rule", "1", word="no turn waits for a rule")
    resume(box, path, "--max-movements", "3", status=5)
    expect(of_type(records(path), "session_resume")[0]["changed"] == {"max_movements": 3}, path)
    refused(box, path, word="give --max-movements")
    resume(box, path, "--max-movements", "infinite", status=0)
    log = records(path)
    verified(box, path)
    expect(log[-1]["turns"] == 4 and log[-1]["outcome"] == "complete", log[-1])
    expect([r["config"]["max_movements"] for r in of_type(log, "session_resume")] == [3, "infinite"], path)


def failed(box):
    path, _ = run(box, FAILS, "-s", box.file("r.json", json.dumps({"replies": [WORKED]})), status=1)
    stopped_as(box, path, "failed")
    resume(box, path, status=1)  # the expression is what it was
    resume(box, path, "-r", "2", status=0)
    verified(box, path)
    expect([v[3] for v in verdicts(records(path))] == [None, None, "human"], verdicts(records(path)))


def final_ones(box):
    path, _ = run(box, NO_RULE.replace("exit == 0), next: COMPLETE}\n      - {condition: when(exit == 4), next: tell",
                                       "exit == 0), next: COMPLETE}\n      - {condition: when(exit == 3), next: ABORT"),
                  status=3)
    for flags in (["--rule", "1"], ["--max-movements", "9"], ["--provider", "script"]):
        refused(box, path, *flags, word="has ended for good: abort")
    expect("ABORT" in resume(box, path, status=3), "it is another end")



class NoEntry(http.server.BaseHTTPRequestHandler):
    """A model API that takes no key."""
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words):
        pass


CLOSED = http.server.ThreadingHTTPServer(("127.0.0.1", 0), NoEntry)
threading.Thread(target=CLOSED.serve_forever, daemon=True).start()
AWAY = ("providers:\n  away: {type: openai-chat, model: big, "
        f'base_url: "http://127.0.0.1:{CLOSED.server_port}/v1"}}\n')
ELSEWHERE = JUDGED.replace("provider: script", "provider: away")


def other_providers():
    """A call that could not be made is made by another, and so is the judging."""
    cases = [(["--provider", "script"], {"provider": "script"}),
             (["--provider", "work=script"], {"providers": {"work": "script"}})]
    for flags, changed in cases:
        with Box() as box:
            box.config(AWAY)
            replies = box.file("r.json", json.dumps({"replies": [WORKED, GOOD]}))
            path, _ = run(box, ELSEWHERE, status=7)
            expect(records(path)[-1]["reason"] == "provider_error", records(path)[-1])
            refused(box, path, "--provider", "script", word="--scenario")
            refused(box, path, "--provider", "scrip", "-s", replies, word='there is no provider "scrip"')
            refused(box, path, "--provider", "wrk=script", "-s", replies, word='no movement "wrk"')
            resume(box, path, *flags, "-s", replies, status=0)
            log = records(path)
            verified(box, path)
            again = of_type(log, "session_resume")[0]
            expect({k: v for k, v in again["changed"].items() if k != "scenario"} == changed, again)
            expect(again["config"]["scenario"]["path"] == replies, again["config"])
            expect([r["provider"] for r in of_type(log, "call_start")] == ["away", "script", "script"], path)


def another_judge(box):
    box.config(AWAY)
    flow = JUDGED.replace("judge: {", "judge: {provider: away, ")
    replies = box.file("r.json", json.dumps({"replies": [WORKED, GOOD]}))
    path, _ = run(box, flow, "-s", replies, status=7)
    expect(records(path)[-1]["reason"] == "judge_unavailable", records(path)[-1])
    resume(box, path, "--judge-provider", "script", status=0)
    verified(box, path)
    judges = [r["provider"] for r in of_type(records(path), "call_start") if r["purpose"] == "judge"]
    expect(judges[-1] == "script", judges)


def the_configuration_of_now(box):
    """A fallback that the user wrote meanwhile takes over, and the log says what is new."""
    box.config(AWAY)
    replies = box.file("r.json", json.dumps({"replies": [WORKED, GOOD]}))
    path, _ = run(box, ELSEWHERE, "-s", replies, status=7)
    box.config(AWAY + "fallback: {away: [script]}\n")
    resume(box, path, status=0)
    log = records(path)
    verified(box, path)
    again = of_type(log, "session_resume")[0]
    expect(again["config"]["fallback"] == {"away": ["script"]} and "changed" not in again, again)


# ---- the daemon -------------------------------------------------------------------------------------

def through_the_daemon(box: DaemonBox):
    box.serve()
    ask = lambda sid, body: box.ask("POST", f"/v1/sessions/{sid}/resume", body)
    sid = box.submit(box.file("no.yaml", NO_RULE))
    box.wait_status(sid, "rule_no_match")
    status, value = ask(sid, {"rule": 5})
    expect(status == 422 and "no rule 5" in value["detail"], status, value)
    status, value = ask(sid, {"rul": 5})
    expect(status == 422 and 'did you mean "rule"' in value["detail"], status, value)
    status, value = ask(sid, {"rule": 2, "why": "so"})
    expect(status == 202, status, value)
    box.wait_status(sid, "complete")
    log = records(box.log(sid))
    expect(of_type(log, "session_resume")[0]["by"] == ME, log)
    expect([v[3] for v in verdicts(log)] == [None, "human", "when"], verdicts(log))
    verified(box, box.log(sid))
    sid = box.submit(box.file("max.yaml", AT_MAX))
    box.wait_status(sid, "max_movements")
    status, value = ask(sid, None)
    expect(status == 422 and "max-movements" in value["detail"], status, value)
    done = box.segue("resume", "--daemon", sid, "--max-movements", "9")
    expect(done.returncode == 0, done.stderr)
    box.wait_status(sid, "complete")
    verified(box, box.log(sid))
    status, value = ask(sid, {"max_movements": 30})
    expect(status == 409, status, value)
    box.check_all()


def a_daemon_leaves_them_alone(box: DaemonBox):
    box.serve()
    sids = {}
    for name, text, status in (("no", NO_RULE, "rule_no_match"), ("max", AT_MAX, "max_movements"),
                               ("bad", FAILS, "failed")):
        sids[status] = box.submit(box.file(name + ".yaml", text), {"text": json.dumps({"replies": [WORKED]})})
        box.wait_status(sids[status], status)
    before = {s: records(box.log(i)) for s, i in sids.items()}
    box.end()
    box.serve()
    good = box.submit(box.file("again.yaml", NO_RULE.replace("exit 3", "exit 0")))
    box.wait_status(good, "complete")
    for status, sid in sids.items():
        expect(box.session(sid)["status"] == status, box.session(sid))
        expect(records(box.log(sid)) == before[status], "it went on by itself", status)
    status, value = box.ask("POST", f"/v1/sessions/{sids['failed']}/cancel")
    expect(status == 200 and value["status"] == "cancelled", status, value)
    box.check_all()


def an_accepted_verdict_is_kept(box: DaemonBox):
    """The daemon is killed as soon as it has answered: the next one carries the verdict out."""
    box.serve()
    sids = [box.submit(box.file("no.yaml", NO_RULE)) for _ in range(8)]
    for sid in sids:
        box.wait_status(sid, "rule_no_match")
    for sid in sids:
        status, value = box.ask("POST", f"/v1/sessions/{sid}/resume", {"rule": 2})
        expect(status == 202, status, value)
    box.process.kill()
    box.process.wait()
    box.serve()
    for sid in sids:
        box.wait_status(sid, "complete")
        log = records(box.log(sid))
        expect([v[3] for v in verdicts(log)] == [None, "human", "when"], verdicts(log))
    verified(box, *[box.log(s) for s in sids])


# ---- forks ------------------------------------------------------------------------------------------

# build, then write and review in turn; review says what is to be done by its second answer.
LOOP = flow("steer_loop")
BIG = "long words " * 9000
REPLIES = {"replies": [
    {"movement": "plan", "structured": {"n": 7}}, {"movement": "write", "text": "first " + BIG},
    {"movement": "review", "text": "[REVIEW:2]"}, {"movement": "write", "text": "second"},
    {"movement": "review", "text": "[REVIEW:1]"}, {"movement": "review", "text": "[REVIEW:1]"}]}


def run_loop(box):
    replies = box.file("r.json", json.dumps(REPLIES))
    path, _ = run(box, LOOP, "-s", replies, "--task", "the task", status=0)
    expect([v[1] for v in verdicts(records(path))] == ["build", "plan", "write", "review", "write", "review"],
           verdicts(records(path)))
    return path


def tree(box):
    """The logs as they are, and what stands beside them."""
    found = {}
    for name in sorted(os.listdir(box.logs)):
        if name.endswith(".ndjson"):
            with open(f"{box.logs}/{name}", "rb") as f:
                found[name] = f.read()
    return found


def fork(box, path, *more, status=0):
    before = set(box.log_paths())
    done = box.segue("fork", path, *more)
    expect(done.returncode == status, "fork", *more, "gave", done.returncode, done.stdout, done.stderr)
    new = sorted(set(box.log_paths()) - before)
    return (new[0] if new else None), (done.stdout + done.stderr).decode()


def prompts(box, path, movement):
    """What agents were asked in a movement, references put in."""
    log = records(path)

    def part(p):
        if isinstance(p, str):
            return p
        seq, _, place = p["ref"].partition("#/")
        value = log[int(seq) - 1]
        blob = value.get(place + "_blob")
        if blob:
            with open(f"{box.logs}/blobs/{blob}", encoding="utf-8") as f:
                return f.read()
        for key in place.split("/"):
            value = value[int(key)] if isinstance(value, list) else value[key]
        return value
    turns = [r["turn"] for r in of_type(log, "turn_start") if r["movement"] == movement]
    return ["".join(map(part, r["prompt"])).replace(r.get("mark", "-"), "MARK") for r in of_type(log, "call_start")
            if r["turn"] in turns and r["purpose"] == "execute"]


def a_fork_begins_where_it_was(box):
    parent = run_loop(box)
    before = tree(box)
    log = records(parent)
    start = next(r for r in log if r["type"] == "turn_start" and r["movement"] == "review")
    path, said = fork(box, parent, "--from", "review#1")
    expect("files and agents' conversations are as they are now" in said, said)
    new = records(path)
    verified(box, path, parent)
    expect(new[0]["carries"] is True and new[0]["task"] == "the task", new[0])
    carried = new[1]
    expect(carried["type"] == "carried" and carried["movement"] == "review", carried)
    expect(carried["parent"] == {"session": log[0]["session"], "seq": start["seq"] - 1,
                                 "hash": log[start["seq"] - 2]["hash"]}, carried["parent"])
    expect(carried["state"]["turns"] == 3 and carried["state"]["values"]["plan"] == {"n": 7}, carried)
    expect(carried["state"]["runs"] == {"build": 1, "plan": 1, "write": 1}, carried["state"])
    expect(carried["text_bytes"] == len("first " + BIG), carried["text_bytes"])
    first = of_type(new, "turn_start")[0]
    expect((first["turn"], first["iteration"], first["movement_iteration"]) == (4, 4, 1), first)
    # the same as in the parent: replies by position, values, the last answer, last_exit
    expect(verdicts(new) == verdicts(log)[3:], verdicts(new))
    expect(prompts(box, path, "review") == prompts(box, parent, "review"), "other prompts")
    expect(prompts(box, path, "write") == prompts(box, parent, "write")[1:], "other prompts")
    expect(new[-1]["outcome"] == "complete" and new[-1]["turns"] == 6, new[-1])
    expect(sum(r["movement"] == "build" for r in of_type(new, "turn_start")) == 0, "built again")
    now = tree(box)
    expect(all(now[k] == v for k, v in before.items()), "the parent was touched")
    shown = box.segue("show", path).stdout.decode()
    expect(f"{log[0]['session']}, after its record {start['seq'] - 1}" in shown, shown)
    # whole without it
    os.unlink(parent)
    for words in (("show", path), ("show", path, "review"), ("verify", path), ("resume", path, "-q")):
        done = box.segue(*words)
        expect(done.returncode == 0, words, done.stderr)
    again, _ = fork(box, path, "--from", "write")  # a fork of a fork
    expect(of_type(records(again), "turn_start")[0]["movement_iteration"] == 2, again)
    verified(box, again)


def a_fork_can_be_other(box):
    parent = run_loop(box)
    text = box.file("better.md", "write {structured:plan.n} better")
    path, _ = fork(box, parent, "--from", "write#2", "-i", text)
    new = records(path)
    verified(box, path)
    expect("write 7 better" in prompts(box, path, "write")[0], prompts(box, path, "write"))
    expect("workflow_path" not in new[0], new[0]["workflow_path"] if "workflow_path" in new[0] else "")
    expect(new[0]["workflow_sha256"] != records(parent)[0]["workflow_sha256"], "the same workflow")
    path, _ = fork(box, parent, "--from", "write", "--max-movements", "5", status=5)
    expect(records(path)[0]["config"]["max_movements"] == 5, path)
    verified(box, path)
    path, _ = fork(box, parent, "--from", "plan")
    expect(records(path)[1]["state"]["runs"] == {"build": 1} and "text" in records(path)[1], path)
    for flags, word in ((("--from", "rewiev"), 'no movement "rewiev"'), (("--from", "review#9"), "no run 9"),
                        (("--from", "review#x"), "numbered from 1"), ((), "--from MOVEMENT"),
                        (("--from", "write", "--provider", "scrpt"), 'no provider "scrpt"'),
                        (("--from", "write", "--provider", "x=script"), 'no movement "x"'),
                        (("--from", "write", "-i", box.file("bad.md", "{structured:nope.x}")), "nope")):
        none, said = fork(box, parent, *flags, status=2)
        expect(none is None and word in said, flags, said)


def a_fork_before_anything_ended(box):
    """Of a session that stopped at its limit, from what would have been next."""
    path, _ = run(box, AT_MAX.replace("max_movements: 2", "max_movements: 1"), status=5)
    new, _ = fork(box, path, "--from", "count#1", status=5)
    expect(records(new)[1]["state"]["turns"] == 0 and "text" not in records(new)[1], records(new)[1])
    for run_, word in (("count#2", "give --max-movements"), ("count#3", "no run 3")):
        new, said = fork(box, path, "--from", run_, status=2)
        expect(new is None and word in said, said)
    new, _ = fork(box, path, "--from", "count#2", "--max-movements", "infinite")
    expect(records(new)[-1]["turns"] > 1, new)


def a_fork_in_the_daemon(box: DaemonBox):
    box.serve()
    replies = box.file("r.json", json.dumps(REPLIES))
    parent = box.submit(box.file("loop.yaml", LOOP), replies, task="the task")
    box.wait_status(parent, "complete")
    status, value = box.ask("POST", f"/v1/sessions/{parent}/fork", {"from": "review#1"})
    expect(status == 201, status, value)
    box.wait_status(value["id"], "complete")
    expect(verdicts(records(box.log(value["id"]))) == verdicts(records(box.log(parent)))[3:], value)
    status, value = box.ask("POST", f"/v1/sessions/{parent}/fork",
                            {"from": "write#1", "instruction": "write other {task}", "max_movements": 8})
    expect(status == 201, status, value)
    box.wait_status(value["id"], "complete")
    expect("write other the task" in prompts(box, box.log(value["id"]), "write")[0], value)
    for body, said in (({}, "from must say"), ({"from": "reviw"}, "no movement"), ({"frm": "x"}, "from"),
                       ({"from": "write", "rule": 1}, "unknown member"),
                       ({"from": "write", "cwd": "/nowhere"}, "not a folder")):
        status, value = box.ask("POST", f"/v1/sessions/{parent}/fork", body)
        expect(status == 422 and said in value["detail"], body, status, value)
    status, value = box.ask("POST", "/v1/sessions/01a1fc08-0000-7000-8000-000000000000/fork", {"from": "x"})
    expect(status == 404, status, value)
    done = box.segue("fork", parent, "--daemon", "--from", "review")
    expect(done.returncode == 0, done.stderr)
    sid = done.stdout.decode().strip()
    box.wait_status(sid, "complete")
    verified(box, *box.begun())
    box.check_all()


def killed_at_each_step(box):
    """Every prefix of a fork's log goes on to the same end, or is cancelled: it was never told of."""
    parent = run_loop(box)
    whole, _ = fork(box, parent, "--from", "review#1")
    log, name = records(whole), os.path.basename(whole)
    with open(whole, "rb") as f:
        lines = f.read().splitlines(keepends=True)
    wanted = verdicts(log)
    os.mkdir(box.logs + "/cut")
    os.symlink(box.logs + "/blobs", box.logs + "/cut/blobs")
    for n in range(1, len(lines)):
        for torn in (b"", lines[n][:len(lines[n]) // 2]):
            with open(f"{box.logs}/cut/{name}", "wb") as f:
                f.write(b"".join(lines[:n]) + torn)
            done = box.segue("resume", f"{box.logs}/cut/{name}", "-q")
            got = records(f"{box.logs}/cut/{name}")
            if n == 1:
                expect(done.returncode == 6 and got[-1]["outcome"] == "cancelled", done, got[-1])
                expect(len(of_type(got, "turn_start")) == 0, "it ran from the start")
            else:
                expect(done.returncode == 0 and verdicts(got) == wanted, n, done, verdicts(got))
            verified(box, f"{box.logs}/cut/{name}")
            shutil.rmtree(box.logs + "/cut/ledger", ignore_errors=True)


def a_daemon_killed_while_forks_wait(box: DaemonBox):
    box.serve()
    replies = box.file("r.json", json.dumps(REPLIES))
    parent = box.submit(box.file("loop.yaml", LOOP), replies, task="the task")
    box.wait_status(parent, "complete")
    sids = []
    for _ in range(40):
        status, value = box.ask("POST", f"/v1/sessions/{parent}/fork", {"from": "review#1"})
        expect(status == 201, status, value)
        sids.append(value["id"])
    box.end(signal.SIGKILL)
    box.serve()
    for sid in sids:
        box.wait_status(sid, "complete")
        expect(verdicts(records(box.log(sid))) == verdicts(records(box.log(parent)))[3:], sid)
    verified(box, *box.begun())


sys.exit(main([a_verdict_of_a_person, judged_anew, more_turns, failed, final_ones, other_providers,
               another_judge, the_configuration_of_now, through_the_daemon, a_daemon_leaves_them_alone,
               an_accepted_verdict_is_kept, a_fork_begins_where_it_was, a_fork_can_be_other,
               a_fork_before_anything_ended, a_fork_in_the_daemon, killed_at_each_step,
               a_daemon_killed_while_forks_wait]))
