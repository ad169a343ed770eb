#!/usr/bin/env python3
"""A person's program is told what happens: by the daemon at least once, by a run, and by the recipes
that docs/people-and-budgets.md prints, against fakes."""
import http.server
import json
import os
import re
import signal
import sys
import threading
import time

from daemon import DaemonBox, simple
from support import WAIT_S, Box, expect, main, needs, records, verified

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ASKS = """
name: flow
movements:
  - name: which
    ask: {question: "Which one?\\nSay it.", choices: [left, right]}
    rules: [{condition: left, next: COMPLETE}, {condition: right, next: ABORT}]
"""
SPENDS = """
name: spends
provider: script
budget: {tokens: 1000}
max_movements: 9
movements:
  - name: work
    instruction: Do the work.
    rules: [{condition: when(movement_iteration == 6), next: COMPLETE}, {condition: when(true), next: work}]
"""
SILENT = """
name: silent
movements:
  - name: sleep
    command: [sh, -c, 'while ! test -e go; do sleep 0.05; done']
    rules: [{condition: when(exit == 0), next: COMPLETE}]
"""



def hook(box, script="cat >> $TOLD", more=""):
    """A program that keeps what it is told, one notice a line."""
    box.config("notify:\n  command: [sh, -c, %s]\n%s" %
           (json.dumps(script.replace("$TOLD", box.dir + "/told")), more))


def told(box):
    try:
        with open(box.dir + "/told", encoding="utf-8") as f:
            return [json.loads(line) for line in f.read().splitlines()]
    except FileNotFoundError:
        return []


def events(box):
    return [n["event"] for n in told(box)]


def ids(box):
    """Each once: what was being told when a daemon was killed may come twice."""
    return {n["id"] for n in told(box)}


def fits(box):
    for notice in told(box):
        done = box.segue("check", ROOT + "/schemas/notice.json", "-",
                         stdin=json.dumps(notice).encode())
        expect(done.returncode == 0, notice, done.stdout, done.stderr)


def run(box, text, *words, status):
    done = box.segue("run", box.file("w.yaml", text), "--task", "x", "-q", "--logs", box.logs, *words)
    expect(done.returncode == status, done.returncode, done.stderr)
    return box.log_paths()[-1], done.stderr.decode()


def a_run_tells(box):
    hook(box)
    log, _ = run(box, ASKS, status=7)
    notice = told(box)[0]
    sid = records(log)[0]["session"]
    expect(events(box) == ["question"] and notice["session"] == sid, told(box))
    expect(notice["title"] == "segue: flow asks: which" and notice["text"].splitlines() == [
        "Which one?", "Say it.", "  1 left", "  2 right", f"segue answer {sid} which"], notice)
    expect(notice["question"]["choices"] == ["left", "right"] and
           notice["id"] == f"{sid}:{notice['question']['question']}", notice)
    done = box.segue("answer", log, "left", "--resume")
    expect(done.returncode == 0, done.stderr)
    expect(events(box) == ["question", "end"], told(box))
    end = told(box)[1]
    expect(end["title"] == "segue: flow is complete" and end["outcome"] == "complete" and
           end["text"] == f"segue show {sid}", end)
    fits(box)
    verified(box, log)


def budgets_are_told(box):
    hook(box)
    scenario = box.file("s.json", json.dumps({"replies": [
        {"text": "did it", "times": 0, "usage": {"input": 300, "output": 100}}]}))
    log, _ = run(box, SPENDS, "-s", scenario, status=7)
    soft, hard = told(box)
    expect(soft["event"] == hard["event"] == "budget" and soft["budget"]["used"] == 800 and
           soft["id"].endswith(":budget") and "800 of 1000 tokens" in soft["text"], soft)
    expect(hard["reason"] == "budget" and hard["budget"]["used"] == 1200 and
           hard["spent"]["calls"] == 3 and "3 calls" in hard["text"], hard)
    fits(box)
    verified(box, log)


def a_long_wait_is_told(box):
    hook(box)
    scenario = box.file("s.json", json.dumps({"replies": [
        {"error": {"class": "rate_limit", "message": "come back later", "retry_after_ms": 90000}}]}))
    process = box.start("run", box.file("w.yaml", SPENDS), "-q", "--logs", box.logs, "-s", scenario)
    until(lambda: told(box), process)
    process.send_signal(signal.SIGINT)
    process.communicate()
    notice, = told(box)  # that a person stopped it is no news
    expect(notice["event"] == "limit" and notice["reason"] == "rate_limit" and
           notice["id"].endswith(":wait") and notice["until"] in notice["text"], notice)
    fits(box)


def until(truth, process):
    end = time.monotonic() + WAIT_S
    while not truth():
        expect(time.monotonic() < end and process.poll() is None, "it did not come")
        time.sleep(0.01)  # a look at a time


def only_what_is_wanted_and_once_by_a_run(box):
    hook(box, "cat >> $TOLD; echo no network >&2; exit 7", "  on: [stop, end]\n")
    log, said = run(box, ASKS, status=7)
    expect(told(box) == [], told(box))
    done = box.segue("answer", log, "right", "--resume")
    expect(done.returncode == 3 and b"notify: sh ended with status 7: no network: given up" in
           done.stderr, done.stderr)
    expect(events(box) == ["end"], told(box))
    expect("notify" not in said, said)


def its_environment(box):
    script = 'cat > /dev/null; env | sort > $TOLD; pwd >> $TOLD'
    hook(box, script, "  env: [WANTED]\n  on: [question]\n")
    box.env.update(WANTED="w", OTHER="o")
    text = ASKS.replace("Which one?\\nSay it.", "\\e[31mred\\u202E")
    run(box, text, status=7)
    with open(box.dir + "/told", "rb") as f:
        given = f.read()
    expect(b"\nWANTED=w\n" in given and b"OTHER" not in given, given)
    expect(b"SEGUE_NOTICE_EVENT=question\n" in given and b"\x1b" not in given and
           "\u202e".encode() not in given and b"red" in given, given)
    expect(given.endswith(box.dir.encode() + b"/home\n"), given)


def mistakes_are_told_with_their_place(box):
    for text, where, word in (
            ("notify: mail", "1:9", "a list of words"),
            ("notify: []", "1:9", "a list of words"),
            ("notify: [[a]]", "1:10", "a list of words"),
            ("notify: {on: [end]}", "1:9", "needs its command"),
            ("notify: {command: [a], on: [ends]}", "1:29", "did you mean end?"),
            ("notify: {command: [a], on: []}", "1:28", "on must be a list"),
            ("notify: {command: [a], env: [A=b]}", "1:30", "names only"),
            ("notify: {command: [a], stall: 5 minutes}", "1:31", "must be a duration"),
            ("notify: {comand: [a]}", "1:10", 'did you mean "command"'),
            ("notfy: [a]", "1:1", 'did you mean "notify"')):
        box.config(text + "\n")
        done = box.segue("run", box.file("w.yaml", ASKS), "--logs", box.logs)
        expect(done.returncode == 2 and f"config.yaml:{where}: " in done.stderr.decode() and
               word in done.stderr.decode(), text, done.stderr)
    box.config("notify: [no-such-program-at-all]\n")
    _, said = run(box, ASKS, status=7)
    expect("no-such-program-at-all cannot be run" in said, said)


def the_daemon_tells(box: DaemonBox):
    hook(box, more="  stall: 200ms\n")
    box.serve()
    sid = box.submit(box.file("w.yaml", ASKS), task="x")
    box.until(lambda: "question" in events(box), "nobody was asked", told(box))
    expect(events(box)[0] == "start" and told(box)[0]["waiting"] == 0, told(box))
    box.ask("POST", f"/v1/sessions/{sid}/answer", {"text": "left"})
    box.until(lambda: "end" in events(box), "no end", told(box))
    quiet = box.submit(box.file("silent.yaml", SILENT), task="x")
    box.until(lambda: "stall" in events(box), "no stall", told(box))
    stall = told(box)[-1]
    expect(stall["session"] == quiet and stall["movement"] == "sleep" and stall["silent_ms"] >= 200 and
           f"segue cancel {quiet}" in stall["text"], stall)
    box.file("work/go", "")
    box.until(lambda: events(box).count("end") == 2, "no second end", told(box))
    expect(events(box).count("stall") == 1, "a stall is told once", told(box))
    status, said = box.ask("POST", "/v1/judge", {"text": "x", "rules": ["a"], "provider": "script"})
    expect(status in (200, 502), status, said)
    box.end()
    expect(len({n["id"] for n in told(box)}) == len(told(box)) == 5, told(box))
    fits(box)


def tried_again_until_it_is_told(box: DaemonBox):
    hook(box, "test -e %s/up && cat >> $TOLD" % box.dir, "  on: [question, end]\n")
    box.serve()
    box.submit(box.file("w.yaml", ASKS), task="x")
    box.wait_said("ended with status 1: tried again")
    box.file("up", "")
    box.until(lambda: events(box) == ["question"], "not tried again", told(box))
    box.end()


def what_a_killed_daemon_did_not_tell(box: DaemonBox):
    hook(box, "test -e %s/up && cat >> $TOLD" % box.dir, "  on: [question, end]\n")
    box.serve()
    workflow, scenario = simple(box)
    done = box.submit(workflow, scenario, task="x")
    asks = box.submit(box.file("w.yaml", ASKS), task="x")
    box.wait_status(done, "complete")
    box.wait_status(asks, "needs_input")
    box.process.kill()
    box.process.wait()
    box.file("up", "")
    box.serve()
    box.until(lambda: len(ids(box)) == 2, "not told", told(box))
    expect({n["session"]: n["event"] for n in told(box)} == {done: "end", asks: "question"},
           told(box))
    box.end()
    box.serve()  # and what was told is told
    box.ask("POST", f"/v1/sessions/{asks}/answer", {"text": "left"})
    box.until(lambda: len(ids(box)) == 3, "not told", told(box))
    box.end()
    expect(events(box)[-1] == "end" and told(box)[-1]["session"] == asks, told(box))


def a_new_configuration_is_used(box: DaemonBox):
    box.serve()
    sid = box.submit(box.file("w.yaml", ASKS), task="x")
    box.wait_status(sid, "needs_input", "stopped")
    hook(box)
    box.process.send_signal(signal.SIGHUP)
    box.wait_said("read again")
    box.ask("POST", f"/v1/sessions/{sid}/answer", {"text": "left"})
    box.until(lambda: events(box) == ["end"], "not told", told(box))
    box.end()


def a_program_that_hangs_holds_nobody(box: DaemonBox):
    hook(box, "exec sleep 60", "  on: [end]\n  timeout: 300ms\n")
    box.serve()
    workflow, scenario = simple(box)
    for _ in range(3):
        box.wait_status(box.submit(workflow, scenario, task="x"), "complete")
    box.wait_said("was ended (wall_limit)")
    box.end()


# ---- the recipes of the page ----

def recipe(word):
    with open(ROOT + "/docs/people-and-budgets.md", encoding="utf-8") as f:
        found = [b for b in re.findall(r"^```yaml\n(.*?)^```$", f.read(), re.M | re.S) if word in b]
    expect(len(found) == 1, word, "is in", len(found), "blocks")
    return found[0]


class Fake(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, self.headers, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args):
        pass


def served(act):
    server = http.server.HTTPServer(("127.0.0.1", 0), Fake)
    server.got = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        act(f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()
    return server.got


def mail(box):
    os.mkdir(box.dir + "/bin")
    path = box.file("bin/sendmail", f"#!/bin/sh\ntest \"$*\" = -t && cat > {box.dir}/mail\n")
    os.chmod(path, 0o755)
    box.env["PATH"] = box.dir + "/bin:" + box.env["PATH"]
    box.config(recipe("sendmail -t"))
    log, said = run(box, ASKS, status=7)
    with open(box.dir + "/mail", encoding="utf-8") as f:
        head, _, body = f.read().partition("\n\n")
    expect(head.splitlines()[:2] == ["To: me@example.org", "Subject: segue: flow asks: which"], head)
    expect(body.startswith("Which one?\nSay it.\n") and "segue answer" in body, body, said)
    verified(box, log)


def ntfy():
    needs("jq", "curl", path="/usr/bin:/bin")
    with Box() as box:
        def act(address):
            box.config(recipe("ntfy.sh").replace("https://ntfy.sh", address))
            run(box, ASKS, status=7)
        (path, _, body), = served(act)
        value = json.loads(body)
        expect(path == "/" and value["topic"] == "my-secret-topic" and "asks: which" in value["title"] and
               value["message"].startswith("Which one?\n"), path, value)
    return None


def slack():
    needs("jq", "curl", path="/usr/bin:/bin")
    with Box() as box:
        def act(address):
            box.config(recipe("SLACK_WEBHOOK]\n  command:"))
            box.env["SLACK_WEBHOOK"] = address + "/services/T0/B0/x"
            run(box, ASKS, status=7)
        (path, headers, body), = served(act)
        value = json.loads(body)
        expect(path == "/services/T0/B0/x" and headers["Content-Type"] == "application/json" and
               list(value) == ["text"] and "asks: which\nWhich one?" in value["text"], path, value)
    return None


if __name__ == "__main__":
    sys.exit(main([a_run_tells, budgets_are_told, a_long_wait_is_told, only_what_is_wanted_and_once_by_a_run, its_environment,
                   mistakes_are_told_with_their_place, the_daemon_tells, tried_again_until_it_is_told,
                   what_a_killed_daemon_did_not_tell, a_new_configuration_is_used,
                   a_program_that_hangs_holds_nobody, mail, ntfy, slack]))
