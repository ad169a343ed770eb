#!/usr/bin/env python3
"""Sessions that ask persons: questions, approvals and answers, with a daemon and without one."""
import json
import os
import pty
import pwd
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from daemon import DaemonBox
from support import SANITIZED, Box as PlainBox, flow
from support import SEGUE, WAIT_S, expect, main, of_type, records, verdicts, verified

ME = {"uid": os.getuid(), "name": pwd.getpwuid(os.getuid()).pw_name}

WHICH = flow("people_which")
FREE = """
name: free
movements:
  - name: name
    ask:
      question: What is it called?
      %s
    rules: [{condition: when(structured.name.timed_out), next: ABORT}, {condition: when(true), next: COMPLETE}]
"""
SCHEMA = """
name: schema
movements:
  - name: size
    ask:
      question: How large?
      schema: {type: object, properties: {width: {type: integer}}, required: [width]}
    rules:
      - {condition: when(structured.size.width > 10), next: COMPLETE}
      - {condition: when(true), next: ABORT}
"""
TWO = flow("people_two")


APPROVE = """
name: approve
provider: script
movements:
  - name: build
    command: [sh, -c, 'echo built > built']
    approve: %s
    rules: [{condition: when(exit == 0), next: agent}]
  - name: agent
    instruction: "Say {previous_response}"
    permission: edit
    approve: {question: "Is {task} fine?", on_reject: build}
    rules: [{condition: when(true), next: COMPLETE}]
"""
INPUT = """
name: input
provider: script
movements:
  - name: plan
    instruction: plan it
    judge: {stages: [phase1_tag]}
    rules:
      - {condition: the plan is there, next: COMPLETE}
      - {condition: something is unclear, requires_user_input: true}
"""
CHILDREN = flow("people_children")
ESCALATED = flow("people_escalated")


class Box(PlainBox):
    def __init__(self):
        super().__init__()
        self.env["SEGUE_LOGS"] = self.logs


def start(box, text, *words, status=7, name="w.yaml", task="x"):
    box.segue("run", box.file(name, text), "--task", task, "-q", *words, status=status)
    return box.log_paths()[-1]


def told(box, *words, status=0):
    done = box.segue(*words, status=status)
    return (done.stdout + done.stderr).decode()


def inbox(box, *words):
    return [json.loads(line) for line in box.segue("inbox", "--json", *words, status=0).stdout.splitlines()]


def a_choice_without_a_daemon(box: Box):
    log = start(box, WHICH, task="shop")
    stop = records(log)[-1]
    expect(stop["reason"] == "question" and len(stop["questions"]) == 1, stop)
    waiting = inbox(box)
    expect(len(waiting) == 1, waiting)
    asked = waiting[0]
    expect(asked["movement"] == "which" and asked["text"] == "Which database for shop?" and
           asked["choices"] == ["postgres", "sqlite"] and asked["kind"] == "ask" and
           asked["blocks"] == ["show", "COMPLETE"] and asked["id"] in log, asked)
    expect("one of its choices" in told(box, "answer", log, "mysql", status=2), "a wrong choice")
    expect("1 to 2" in told(box, "answer", log, "--choice", "3", status=2), "a third choice")
    expect("segue answer" in told(box, "approve", log, status=2), "no approval")
    told(box, "answer", log, "--choice", "1", "--name", "Alice")
    again = told(box, "answer", log, "sqlite", status=1)
    expect(f"answered already, by one who says Alice (uid {ME['uid']})" in again and "postgres" in again, again)
    expect(inbox(box) == [], "it still waits")
    told(box, "resume", log)
    done = records(log)
    answer = of_type(done, "answer")
    expect(len(answer) == 1 and answer[0]["by"] == {**ME, "name": "Alice", "user": ME["name"]} and
           answer[0]["text"] == "postgres" and answer[0]["choice"] == 1, answer)
    expect([v[1:] for v in verdicts(done)] == [("which", 1, "human"), ("show", 1, "when")],
           verdicts(done))
    shown = [r for r in of_type(done, "call_end")][-1]["text"]
    expect(shown == "got postgres and postgres", shown)
    expect(done[-1]["outcome"] == "complete", done[-1])
    expect("answered already" in told(box, "answer", log, "sqlite", status=1), "after the end")
    verified(box, log)


def a_text_from_a_file_and_going_on_at_once(box: Box):
    log = start(box, FREE % "")
    text = box.file("a.txt", "a name\nof two lines\n")
    expect("empty" in told(box, "answer", log, "  ", status=2), "an empty answer")
    told(box, "answer", log, "name", "--file", text, "--resume")
    answer = of_type(records(log), "answer")[0]
    expect(answer["text"] == "a name\nof two lines" and answer["answer"] == "text", answer)
    expect(records(log)[-1]["outcome"] == "complete", records(log)[-1])
    verified(box, log)


def a_value_fits_its_schema(box: Box):
    log = start(box, SCHEMA)
    expect("width" in told(box, "answer", log, '{"width": "wide"}', status=2), "a wrong value")
    told(box, "answer", log, '{"width": 12}', "--resume")
    answer = of_type(records(log), "answer")[0]
    expect(answer["value"] == {"width": 12} and answer["answer"] == "value", answer)
    expect(records(log)[-1]["outcome"] == "complete", records(log)[-1])
    verified(box, log)


def what_would_be_run_is_approved_or_not():
    with Box() as box:
        scenario = box.file("s.yaml", "replies: [{text: said}]")
        log = start(box, APPROVE % "true", "--scenario", scenario)
        asked = inbox(box)[0]
        expect(asked["kind"] == "approve" and asked["runs"] ==
               {"command": ["sh", "-c", "echo built > built"]}, asked)
        expect("approve or reject" in told(box, "answer", log, "yes", status=2), "not by answer")
        expect(not os.path.exists(box.cwd + "/built"), "it ran")
        told(box, "approve", log, "--reason", "go")
        told(box, "resume", log, "-q", status=7)
        expect(os.path.exists(box.cwd + "/built"), "it did not run")
        asked = inbox(box)[0]
        expect(asked["text"] == "Is x fine?" and asked["runs"]["permission"] == "edit" and
               asked["runs"]["provider"] == "script", asked)
        told(box, "reject", log, "--reason", "not yet")
        told(box, "resume", log, "-q", status=7)
        end = of_type(records(log), "turn_end")[-1]
        expect(end["outcome"] == "rejected" and end["next"] == "build" and
               end["message"] == "rejected: not yet", end)
        told(box, "approve", log)
        told(box, "resume", log, "-q", status=7)
        told(box, "approve", log, "--resume", "--json")
        expect(records(log)[-1]["outcome"] == "complete", records(log)[-1])
        expect(len(of_type(records(log), "call_end")) == 3, "calls")
        verified(box, log)
    with Box() as box:
        scenario = box.file("s.yaml", "replies: [{text: said}]")
        log = start(box, APPROVE % "{deadline: 100ms}", "--scenario", scenario)
        while not of_type(records(log), "answer"):
            box.segue("resume", log, "-q")
        expect(records(log)[-1]["outcome"] == "abort", records(log)[-1])
        verified(box, log)


def plan_and_graph_tell_of_persons():
    text = WHICH.replace("instruction: \"got", "approve: true\n    instruction: \"got")
    with Box() as box:
        workflow = box.file("w.yaml", text)
        plan = told(box, "plan", "-q", workflow)
        expect("asks a person: Which database for {task}?  > show, COMPLETE" in plan and
               "cat, after approval by a person  > COMPLETE" in plan, plan)
        movements = json.loads(told(box, "plan", "-q", "--json", workflow))["movements"]
        expect(movements[0]["asks"] == "Which database for {task}?" and "approve" not in movements[0] and
               movements[1]["approve"] is True, movements)
        graph = told(box, "graph", workflow)
        expect("which  (asks a person; starts here)" in graph and
               "show  (command cat, approved first)" in graph, graph)


CHANGES = """
name: changes
movements:
  - name: work
    command: [sh, -c, 'seq 3 > three; for i in $(seq 60); do echo > many-$i; done']
    rules: [{condition: when(exit == 0), next: ship}]
  - name: ship
    command: [echo, shipped]
    approve: true
    rules: [{condition: when(true), next: COMPLETE}]
"""


def an_approval_shows_what_was_changed(box: Box):
    subprocess.run(["git", "init", "-q"], cwd=box.cwd, env=box.env, check=True)
    log = start(box, CHANGES)
    asked = inbox(box)[0]
    expect(len(asked["files"]) == 51 and asked["files"][-1] == {"more": 11}, asked["files"])
    expect(len(of_type(records(log), "question")[0]["question"]["files"]) == 61, "the log has all")
    shown = told(box, "inbox")
    expect("would run: echo shipped\n    changed so far:\n      many-1  +1 -0\n" in shown and
           "      and 11 more\n" in shown, shown)
    told(box, "approve", log, "--resume")
    verified(box, log)


def an_approval_shows_the_lines_that_were_changed(box: Box):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for name, text in (("one\x1b[31m", "x\n"), ("same", "x\n"), ("zlong", "")):
        Path(f"{box.cwd}/{name}").write_text(text, encoding="utf-8")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], cwd=box.cwd, env=box.env, check=True)
    # A diff driver and a pager of the repository's, which must not run.
    for key, value in (("diff.external", "touch ran; false"), ("core.pager", "touch ran; cat")):
        subprocess.run([*git, "config", key, value], cwd=box.cwd, env=box.env, check=True)
    start(box, CHANGES.replace("seq 3 > three; for i in $(seq 60); do echo > many-$i; done",
                               "for f in one*; do echo y $(echo G1szMW0K | base64 -d) >> \"$f\"; done; seq 20000 > zlong"))
    plain, (asked,) = inbox(box)[0], inbox(box, "--diff")
    expect("diff" not in plain, "nobody asked for it")
    expect("+y" in asked["diff"] and "\x1b" not in asked["diff"] and "same" not in asked["diff"], asked["diff"][:400])
    expect(asked["diff_cut"] is True and len(asked["diff"].encode()) <= 65536 * 2, len(asked["diff"]))
    shown = told(box, "inbox", "--diff")
    expect("+y" in shown and "more than can be shown" in shown and "\x1b" not in shown, shown[-400:])
    expect(not os.path.exists(box.cwd + "/ran"), "a program of the repository's ran")


def a_rule_that_requires_an_answer(box: Box):
    scenario = box.file("s.yaml", """replies:
  - {text: "Which colour?\\nI cannot go on.\\n\\n[PLAN:2]"}
  - {contains: "> Which colour?", text: "Blue it is.\\n\\n[PLAN:1]"}
""")
    log = start(box, INPUT, "--scenario", scenario)
    asked = inbox(box)[0]
    expect(asked["kind"] == "input" and "Which colour?" in asked["text"], asked)
    told(box, "answer", log, "--resume", "blue")
    prompt = json.dumps(of_type(records(log), "call_start")[-1]["prompt"])
    expect("> Which colour?" in prompt and "blue" in prompt and "What a person" in prompt, prompt)
    expect(records(log)[-1]["outcome"] == "complete", records(log)[-1])
    verified(box, log)


def children_are_asked_apart(box: Box):
    scenario = box.file("s.yaml", """replies:
  - {movement: both.a, text: "a?\\nThat is open.\\n\\n[A:2]"}
  - {movement: both.b, text: "b?\\nThat is open.\\n\\n[B:2]"}
  - {movement: both.b, contains: "for b", text: "b.\\n\\n[B:1]"}
  - {movement: both.a, contains: "for a", text: "a.\\n\\n[A:1]"}
""")
    log = start(box, CHILDREN, "--scenario", scenario)
    expect(sorted(q["movement"] for q in inbox(box)) == ["both.a", "both.b", "both.c"], inbox(box))
    told(box, "answer", log, "b", "for b", "--resume", status=7)
    expect(sorted(q["movement"] for q in inbox(box)) == ["both.a", "both.c"], inbox(box))
    told(box, "answer", log, "a", "for a")
    told(box, "reject", log, "c", "--reason", "no c", "--resume", status=3)
    log = records(log)
    prompts = {r["movement"] if "movement" in r else r["turn"]: json.dumps(r["prompt"])
               for r in of_type(log, "call_start")}
    expect(not any("for a" in p and "for b" in p for p in prompts.values()), prompts)
    expect(len(of_type(log, "call_start")) == 4, "calls")
    verified(box, box.log_paths()[0])


SPLIT = """
name: split
provider: script
movements:
  - name: look
    instruction: look at it
    judge: {stages: [structured_output], panel: [script, script], agree: 2, else: ask}
    rules:
      - {condition: when(false), next: ABORT}
      - {condition: it is good, next: COMPLETE}
      - {condition: it is bad, next: ABORT}
"""


def judges_who_do_not_agree_ask():
    with Box() as box:
        scenario = box.file("s.yaml", """replies:
  - {text: "I looked."}
  - {stage: structured_output, structured: {step: 2, reason: fine}}
  - {stage: structured_output, structured: {step: 3, reason: poor}}
""")
        log = start(box, SPLIT, "--scenario", scenario)
        asked = inbox(box)[0]
        expect(asked["kind"] == "judge" and asked["choices"] == ["it is good", "it is bad"] and
               "do not agree" in asked["text"] and "I looked." in asked["text"], asked)
        expect("one of its choices" in told(box, "answer", log, "it is fine", status=2), "no rule")
        told(box, "answer", log, "--choice", "2", "--name", "Eve", "--resume", status=3)
        done = records(log)
        judgment = of_type(done, "judgment")[0]
        expect(judgment["rule"] == 3 and judgment["method"] == "human", judgment)
        expect([(s["stage"], s["outcome"]) for s in judgment["stages"][1:]] == [
            ("structured_output", "matched"), ("structured_output", "matched"),
            ("structured_output", "ambiguous"), ("human", "matched")], judgment["stages"])
        expect(judgment["stages"][-1]["by"] == {**ME, "name": "Eve", "user": ME["name"]}, judgment["stages"][-1])
        expect(len(of_type(done, "call_start")) == 3, "another call")
        verified(box, log)
        box.segue("show", log, "--judgment", "1")
    with Box() as box:  # a person may also say so with the resume
        scenario = box.file("s.yaml", """replies:
  - {text: "I looked."}
  - {stage: structured_output, structured: {step: 2, reason: fine}}
  - {stage: structured_output, structured: {step: 3, reason: poor}}
""")
        log = start(box, SPLIT, "--scenario", scenario)
        told(box, "resume", log, "--rule", "2")
        expect(records(log)[-1]["outcome"] == "complete" and inbox(box) == [], records(log)[-1])
        verified(box, log)


def what_was_answered_is_waited_for(box: Box):
    """Between an answer and the daemon's next step a log still says that it stopped: whoever follows
    it must not take that for its end."""
    log = start(box, "name: ask\nmovements:\n  - name: which\n    ask: {question: 'Which one?'}\n"
                "    rules: [{condition: when(true), next: COMPLETE}]\n")
    expect("no process is running" not in box.segue("show", log, "--follow").stderr.decode(), "it waits for a person")
    told(box, "answer", log, "the blue one")
    box.segue("show", log, "--follow", err="no process is running this session")
    told(box, "resume", log)
    expect("COMPLETE" in told(box, "show", log, "--follow"), "it is over")


def a_fork_knows_what_was_answered(box: Box):
    scenario = box.file("s.yaml", """replies:
  - {text: "Which colour?\\nI cannot go on.\\n\\n[PLAN:2]"}
  - {contains: "> Which colour?", times: 0, text: "Blue it is.\\n\\n[PLAN:2]"}
""")
    log = start(box, INPUT, "--scenario", scenario)
    told(box, "answer", log, "--resume", "blue", status=7)
    told(box, "answer", log, "--resume", "dark blue", status=7)
    told(box, "fork", log, "--from", "plan#2", "-q", status=7)
    forked = records([p for p in box.log_paths() if p != log][0])
    carried = of_type(forked, "carried")[0]["state"]["inputs"]
    expect("> Which colour?" in carried["plan"] and "blue" in carried["plan"] and
           "dark" not in carried["plan"], carried)
    prompt = json.dumps(of_type(forked, "call_start")[0]["prompt"])
    expect("> Which colour?" in prompt and "dark" not in prompt, prompt)
    verified(box, *box.log_paths())


def an_escalated_value_is_answered(box: Box):
    scenario = box.file("s.yaml", "replies: [{text: dunno}]")
    log = start(box, ESCALATED, "--scenario", scenario)
    asked = inbox(box)[0]
    expect(asked["kind"] == "value" and "mood" in asked["text"], asked)
    expect(records(log)[-1]["reason"] == "escalated", records(log)[-1])
    told(box, "answer", log, '{"mood": "grey"}', status=2)
    told(box, "answer", log, '{"mood": "good"}', "--resume")
    expect(records(log)[-1]["outcome"] == "complete", records(log)[-1])
    expect(len(of_type(records(log), "call_start")) == 1, "another call")
    verified(box, log)


class Terminal:
    """A person at a terminal: what is shown, and what is typed."""

    def __init__(self, box, *words):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(box.cwd)
            os.execve(SEGUE, [SEGUE, *words], {**box.env, "TERM": "dumb"})
        self.shown = self.all = b""

    def until(self, text):
        end = time.monotonic() + WAIT_S
        while text.encode() not in self.shown:
            ready = select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]
            expect(ready, text, "is not shown, but", self.shown)
            try:
                more = os.read(self.fd, 65536)
            except OSError:
                more = b""
            expect(more, text, "is not shown, but", self.shown)
            self.shown += more
            self.all += more

    def type(self, text):
        self.shown = b""
        os.write(self.fd, text.encode())

    def end(self):
        try:
            while more := os.read(self.fd, 65536):
                self.all += more
        except OSError:
            pass
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return status


CHOICE_THEN_APPROVAL = """name: two
movements:
  - name: which
    ask: {question: Which one?, choices: [red, blue]}
    rules: [{condition: when(true), next: go}]
  - name: go
    command: [touch, went]
    approve: true
    rules: [{condition: when(true), next: COMPLETE}]
"""


def each_is_asked_once_at_the_terminal():
    with Box() as box:
        at = Terminal(box, "run", box.file("two.yaml", CHOICE_THEN_APPROVAL))
        at.until("answer [1-2]")
        at.type("2\n")
        at.until("approve?")
        at.type("y\n")
        expect(at.end() == 0 and os.path.exists(box.cwd + "/went"), at.all)
        expect(at.all.count(b" asks:") == 2 and b"meanwhile" not in at.all, at.all)
    with Box() as box:  # what was typed before an approval was asked for does not give it
        at = Terminal(box, "run", box.file("two.yaml", CHOICE_THEN_APPROVAL))
        at.until("answer [1-2]")
        at.type("2\ny\n")
        at.until("approve?")
        os.kill(at.pid, signal.SIGINT)
        expect(at.end() == 130 and not os.path.exists(box.cwd + "/went"), at.all)


def another_folders_session_is_asked_about():
    """It says what it acts on; on a terminal it asks where the session is another project's."""
    with Box() as box:
        log, own = start(box, WHICH), box.cwd
        acts = f"answer  which: x  in {os.path.realpath(own)}"
        box.cwd = box.dir + "/elsewhere"
        os.mkdir(box.cwd)
        at = Terminal(box, "answer", log, "sqlite")
        at.until("another folder's: go on? [y/N]")
        at.type("n\n")
        expect(at.end() == 2 and acts.encode() in at.all and b"nothing was done" in at.all, at.all)
        expect(not of_type(records(log), "answer"), "it was answered")
        said = told(box, "answer", log, "sqlite")  # nobody is there to be asked
        expect(acts in said and "[y/N]" not in said, said)
        for words, cwd in ((["--yes"], box.cwd), ([], own)):
            box.cwd = own
            log, box.cwd = start(box, WHICH), cwd
            at = Terminal(box, "answer", log, "sqlite", *words)
            expect(at.end() == 0 and b"[y/N]" not in at.all, at.all)


def a_person_at_the_terminal_is_asked():
    with Box() as box:
        workflow = box.file("w.yaml", WHICH)
        at = Terminal(box, "run", workflow, "--task", "shop")
        at.until("answer [1-2]")
        at.type("mysql\n")
        at.until("one of its choices")
        at.type("1\n")
        expect(at.end() == 0, "how it ended")
        log = records(box.log_paths()[0])
        expect(of_type(log, "answer")[0]["by"] == ME and not of_type(log, "session_stop") and
               log[0]["config"]["interactive"] is True, log)
        verified(box, box.log_paths()[0])
    with Box() as box:
        workflow = box.file("w.yaml", WHICH)
        at = Terminal(box, "run", workflow, "--task", "shop")
        at.until("answer [1-2]")
        at.type("\x04")
        expect(at.end() == 7, "how it ended")
        log = box.log_paths()[0]
        expect(records(log)[-1]["reason"] == "question" and len(inbox(box)) == 1, records(log)[-1])
        at = Terminal(box, "resume", log)
        at.until("answer [1-2]")
        at.type("sqlite\n")
        expect(at.end() == 0, "how it ended")
        verified(box, log)
    with Box() as box:
        scenario = box.file("s.yaml", "replies: [{text: said}]")
        at = Terminal(box, "run", box.file("w.yaml", APPROVE % "true"), "--task", "x", "--scenario",
                      scenario)
        at.until("approve?")
        at.type("perhaps\n")
        at.until("approve?")
        at.type("yes do it\n")
        at.until("Is x fine?")
        at.until("approve?")
        at.type("n no\n")
        at.until("approve?")  # build again
        os.kill(at.pid, signal.SIGINT)
        expect(at.end() == 130, "how it ended")
        answers = [(a["answer"], a["text"]) for a in of_type(records(box.log_paths()[0]), "answer")]
        expect(answers == [("approve", "do it"), ("reject", "no")], answers)
        expect(len(inbox(box)) == 1, "the question is lost")
        verified(box, box.log_paths()[0])


def a_hidden_rule_shows_where_a_person_is():
    text = INPUT.replace("requires_user_input: true", "requires_user_input: true, interactive_only: true")
    with Box() as box:
        scenario = box.file("s.yaml", 'replies: [{text: "Which?\\nI wait.\\n\\n[PLAN:2]"}]')
        log = start(box, text, "--scenario", scenario, status=0)
        expect(verdicts(records(log))[0][3] == "auto_select", verdicts(records(log)))
        at = Terminal(box, "run", box.file("w.yaml", text), "--task", "x",
                      "--scenario", scenario)
        at.until("answer:")
        os.kill(at.pid, signal.SIGINT)
        expect(at.end() == 130, "how it ended")


STOPS = """
name: stops
provider: script
judge: {stages: [ai_judge]}
movements:
  - {name: fix, instruction: Mend this., rules: [{condition: done, next: COMPLETE}, {condition: no, next: ABORT}]}
"""


def the_inbox_has_all_that_waits():
    """Sessions that have stopped are listed by cause, with the reason; what was dismissed comes back."""
    none = {"text": json.dumps({"matched_index": 0, "reason": "It asks which database."})}
    login = {"error": {"class": "auth", "message": "the login has expired"}}
    with Box() as box:
        def stop(status, *replies):
            return start(box, STOPS, "-s", box.file("r.json", json.dumps({"replies": replies})), status=status)
        mute = stop(4, {"text": "SQLite?"}, none)
        first, second = stop(7, login), stop(7, login)
        found = {item["id"]: item for item in inbox(box)}
        expect(len(found) == 3 and all(item["kind"] == "stop" for item in found.values()), found)
        told_of = found[os.path.basename(mute)[:36]]
        expect(told_of["cause"] == "no rule matched" and "It asks which database." in told_of["text"] and
               told_of["command"].endswith("--rule N"), told_of)
        shown = told(box, "inbox")
        expect("1 x no rule matched" in shown and "2 x auth: script\n" in shown and
               "segue doctor script, then segue resume --all --reason auth" in shown, shown)
        before = os.path.getsize(first)
        told(box, "inbox", "dismiss", first, second, "--why", "known")
        expect(len(inbox(box)) == 1 and os.path.getsize(first) == before, inbox(box))
        told(box, "inbox", "dismiss", "none", status=2)
        told(box, "inbox", "dissmiss", first, status=2)
        told(box, "resume", first, "-q", "-s", box.file("r.json", json.dumps({"replies": [login, login]})), status=7)
        expect({item["cause"] for item in inbox(box)} == {"no rule matched", "auth: script"}, inbox(box))


def a_person_takes_part_by_the_inbox():
    text = INPUT.replace("requires_user_input: true", "requires_user_input: true, interactive_only: true")
    replies = """replies:
  - {text: "Which?\\nI wait.\\n\\n[PLAN:2]"}
  - {text: "so it is\\n\\n[PLAN:1]"}
"""
    with DaemonBox() as box:
        box.serve()
        scenario, workflow = box.file("s.yaml", replies), box.file("w.yaml", text)
        sid = told(box, "submit", workflow, "--task", "x", "--scenario", scenario,
                   "--interactive").strip()
        box.wait_status(sid, "needs_input")
        told(box, "answer", sid, "that one")
        box.wait_status(sid, "complete")
        status, said = box.ask("POST", "/v1/sessions", {"workflow": workflow, "cwd": box.cwd,
                                                       "task": "x", "interactive": 1})
        expect(status == 422 and "true or false" in said["detail"], status, said)
        verified(box, box.log(sid))
        box.check_all()


def hostile_texts_do_not_steer_the_terminal(box: Box):
    log = start(box, WHICH, task="\x1b[31mred\x07\x1b]0;t\x07")
    shown = box.segue("inbox").stdout
    expect(b"\x1b" not in shown and b"\x07" not in shown and b"red" in shown, shown)
    told(box, "answer", log, "--file", box.file("big", b"x" * 70000), status=2)
    expect("UTF-8" in told(box, "answer", log, "--file", box.file("bad", b"\xff\xfe"), status=2),
           "bytes that are no text")


def a_deadline_that_passes_while_nothing_runs(box: Box):
    log = start(box, FREE % "default: nameless\n      deadline: 300ms")
    question = of_type(records(log), "question")[0]
    expect(inbox(box)[0]["until"] == question["until"], inbox(box), question)
    while not late(box, log):
        time.sleep(0.02)
    told(box, "resume", log, status=3)
    answer = of_type(records(log), "answer")[0]
    expect(answer["reason"] == "deadline" and answer["text"] == "nameless" and
           "by" not in answer, answer)
    expect("by its deadline" in told(box, "answer", log, "late", status=1), "late")
    verified(box, log)


def late(box, log):
    """An answer is refused once the time is over; until then this one is none."""
    return b"deadline passed" in box.segue("answer", log, "name", " ").stderr


def two_questions_of_a_killed_daemon(box: DaemonBox):
    box.serve()
    workflow = box.file("two.yaml", TWO)
    sid = box.submit(workflow, task="x")
    box.wait_status(sid, "needs_input")
    box.process.kill()
    box.process.wait()
    open_now = inbox(box, "--logs", box.logs)
    expect([q["movement"] for q in open_now] == ["both.left", "both.right"], open_now)
    calls = len(of_type(records(box.log(sid)), "call_start"))
    box.serve()
    expect([q["movement"] for q in box.get("/v1/inbox")["inbox"]] == ["both.left", "both.right"],
           box.get("/v1/inbox"))
    status, said = box.ask("POST", f"/v1/sessions/{sid}/answer", {"text": "x"})
    expect(status == 422 and "both.left, both.right" in said["detail"], status, said)
    status, said = box.ask("POST", f"/v1/sessions/{sid}/answer",
                           {"text": "R", "movement": "right", "name": "bob"})
    expect(status == 202, status, said)
    box.until(lambda: [q["movement"] for q in box.get("/v1/inbox")["inbox"]] == ["both.left"] and
              box.session(sid)["status"] == "needs_input", "the other one does not wait alone")
    expect(len(of_type(records(box.log(sid)), "call_start")) == calls, "a call between")
    status, said = box.ask("POST", f"/v1/sessions/{sid}/answer",
                           {"text": "R2", "movement": "right"})
    expect(status == 409 and "by one who says bob" in said["detail"], status, said)
    status, said = box.ask("POST", f"/v1/sessions/{sid}/answer", {"text": "L"})
    expect(status == 202, status, said)
    box.wait_status(sid, "complete")
    log = records(box.log(sid))
    expect([(a["movement"], a["text"]) for a in of_type(log, "answer")] ==
           [("both.right", "R"), ("both.left", "L")], of_type(log, "answer"))
    expect(of_type(log, "call_end")[-1]["text"] == "L+R", of_type(log, "call_end")[-1])
    expect(Path(box.cwd + "/ran").read_text(encoding="ascii") == "ran\n", "the sibling ran again")
    box.check_all()
    verified(box, box.log(sid))


def answered_while_its_stop_is_written():
    """The answer that comes as the session stops for its other question is behind the stop: it goes on."""
    tries = 12
    with DaemonBox() as box:
        box.serve()
        workflow = box.file("two.yaml", TWO)
        for _ in range(tries):
            sid = box.submit(workflow, task="x")
            box.wait_status(sid, "needs_input")
            for movement in ("left", "right"):
                status, said = box.ask("POST", f"/v1/sessions/{sid}/answer", {"text": movement, "movement": movement})
                expect(status == 202, movement, status, said)
            box.wait_status(sid, "complete")
            log = records(box.log(sid))
            expect(of_type(log, "call_end")[-1]["text"] == "left+right", of_type(log, "call_end")[-1])
            verified(box, box.log(sid))
        behind = sum(a["type"] == "session_stop" and b["type"] == "answer"
                     for a, b in zip(log, log[1:]))
        box.check_all()
    return f"{behind} behind a stop in the last"


def killed_before_the_stop_is_written():
    """One asks, its sibling still works: the daemon is killed, the question stands."""
    text = TWO.replace("echo ran >> ran", "echo ran >> ran; sleep 30")
    with DaemonBox() as box:
        box.serve()
        sid = box.submit(box.file("two.yaml", text), task="x")
        box.until(lambda: os.path.exists(box.log(sid)) and
                  len(of_type(records(box.log(sid)), "question")) == 2 and
                  os.path.exists(box.cwd + "/ran"), "nothing is asked")
        expect(len(box.get("/v1/inbox")["inbox"]) == 2, box.get("/v1/inbox"))
        box.process.kill()
        box.process.wait()
        expect(len(inbox(box, "--logs", box.logs)) == 2, "a question is lost")
        told(box, "answer", box.log(sid), "left", "L", "--logs", box.logs)
        box.serve()
        box.until(lambda: len(box.get("/v1/inbox")["inbox"]) == 1, "the answer is lost")
        status, said = box.ask("POST", f"/v1/sessions/{sid}/answer",
                               {"text": "R", "movement": "both.right"})
        expect(status == 202, status, said)  # while the sibling works
        expect(box.get("/v1/inbox")["inbox"] == [], "it is still asked")
        status, said = box.ask("POST", f"/v1/sessions/{sid}/cancel")
        expect(status == 200, status, said)
        box.check_all()
        verified(box, box.log(sid))


def the_daemon_takes_the_default(box: DaemonBox):
    box.serve()
    sid = box.submit(box.file("w.yaml", FREE % "default: nameless\n      deadline: 1s"), task="x")
    box.wait_status(sid, "needs_input")
    box.wait_status(sid, "abort")  # nobody asks it to
    sid = box.submit(box.file("w.yaml", FREE % "default: nameless\n      deadline: 400ms"), task="x")
    box.wait_status(sid, "needs_input", "abort")
    box.end()
    box.serve()  # and over a restart
    box.wait_status(sid, "abort")
    expect(of_type(records(box.log(sid)), "answer")[0]["reason"] == "deadline", "not by it")
    verified(box, box.log(sid))


def commands_find_the_daemon(box: DaemonBox):
    box.serve()
    sid = box.submit(box.file("w.yaml", WHICH), task="x")
    box.wait_status(sid, "needs_input")
    expect([q["id"] for q in inbox(box)] == [sid], inbox(box))
    told(box, "answer", sid, "sqlite")
    box.wait_status(sid, "complete")
    expect("answered already" in told(box, "answer", sid, "sqlite", status=1), "a second one")
    status, said = box.ask("POST", f"/v1/sessions/{sid}/answer", {"txt": "x"})
    expect(status == 422 and "did you mean" in said["detail"], status, said)
    status, said = box.ask("POST", f"/v1/sessions/{sid}/answer", {"text": "x", "choice": 1})
    expect(status == 422, status, said)
    status, said = box.ask("POST", "/v1/sessions/0000/answer", {"text": "x"})
    expect(status == 404, status, said)
    box.check_all()


def a_thousand_that_wait(box: DaemonBox):
    box.serve("--max-sessions", "8")
    workflow = box.file("w.yaml", WHICH)
    def wait(count):
        for _ in range(count):
            box.submit(workflow, task="x")
        box.until(lambda: box.get("/v1/health")["sessions"] ==
                  {**box.get("/v1/health")["sessions"], "running": 0, "queued": 0}, "they still run")

    # What is there once comes at any time: each thread of the pool has a heap of its own, the index of logs keeps
    # pages. What each session costs comes with each thousand.
    wait(300)
    fds, count, grown = box.fds(), 1000, []
    while not grown or not SANITIZED and min(grown) > count // 2 and len(grown) < 3:
        rss = box.rss_kib()
        wait(count)
        grown.append(box.rss_kib() - rss)
    box.until(lambda: box.fds() <= fds, "descriptors:", fds, box.fds())
    best = min(timed(box) for _ in range(5))
    expect(len(box.get("/v1/inbox")["inbox"]) == count * len(grown) + 300, "some are missing")
    if not SANITIZED:
        expect(min(grown) <= count // 2, "KiB for", count, ":", grown)
    return f"{grown} KiB, inbox {best * 1000:.0f} ms"


def timed(box):
    begin = time.monotonic()
    box.get("/v1/inbox")
    return time.monotonic() - begin


if __name__ == "__main__":
    sys.exit(main([a_choice_without_a_daemon, a_text_from_a_file_and_going_on_at_once,
                   a_value_fits_its_schema, what_would_be_run_is_approved_or_not,
                   a_rule_that_requires_an_answer, children_are_asked_apart,
                   an_escalated_value_is_answered, judges_who_do_not_agree_ask, plan_and_graph_tell_of_persons,
                   an_approval_shows_what_was_changed, an_approval_shows_the_lines_that_were_changed,
                   what_was_answered_is_waited_for, a_fork_knows_what_was_answered,
                   a_person_at_the_terminal_is_asked, another_folders_session_is_asked_about, each_is_asked_once_at_the_terminal,
                   a_hidden_rule_shows_where_a_person_is, the_inbox_has_all_that_waits, a_person_takes_part_by_the_inbox,
                   hostile_texts_do_not_steer_the_terminal,
                   a_deadline_that_passes_while_nothing_runs, two_questions_of_a_killed_daemon,
                   answered_while_its_stop_is_written, killed_before_the_stop_is_written, the_daemon_takes_the_default,
                   commands_find_the_daemon, a_thousand_that_wait]))
