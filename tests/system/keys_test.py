#!/usr/bin/env python3
"""Keys where they do not belong: in the task, a workflow or a facet they are refused before anything
is logged; what a program writes of one, however it is encoded, is not logged either."""
import json
import os
import sys

from daemon import DaemonBox
from support import Box, expect, main, of_type, records

KEY = "kx-Zz0+9/aB_c-dE1234567890fghijklmnopqrstuvwxyzABCDEFGHIJKLMN"
FORM = "sk-ant-api03-AbCd1234EfGh5678IjKl"  # nobody's, but a vendor's form
AGENT = "name: x\nmovements:\n  - name: plan\n    provider: script\n    persona: planner\n" \
        "    instruction: \"{text}\"\n    rules:\n      - {{condition: done, next: COMPLETE}}\n"


def flow(box, argv=("echo", "done")):
    return box.file("w.yaml", "name: x\nmovements:\n  - name: plan\n    command: " + json.dumps(list(argv)) +
                    "\n    rules:\n      - {condition: when(exit == 0), next: COMPLETE}\n")


def run(box, *words, key=KEY):
    done = box.segue("run", *words, "--logs", box.logs, "--cwd", box.cwd,
                     env={"SOME_API_KEY": key, "KEY_FILE": "/usr/share/keys"})
    return done, (done.stdout + done.stderr).decode()


def in_the_task():
    for task in ("use " + KEY, KEY, KEY.encode().hex(), "and " + FORM + ", please"):
        with Box() as box:
            w = flow(box)
            done, said = run(box, w, "--task", task)
            name = "what looks like a key" if FORM in task else "the value of SOME_API_KEY"
            expect(done.returncode == 2, task, done.returncode, said)
            expect("the task holds " + name in said and "--allow-secret" in said, said)
            expect(task not in said and box.log_paths() == [], "it was told or logged", said)
            done, said = run(box, w, "--task", task, "--allow-secret")
            expect(done.returncode == 0, said)


def what_is_none():
    """Prose about keys, a path that a variable with KEY in its name holds, short values."""
    for task in ("set sk-... or ghp_YOUR_TOKEN_HERE_PLEASE first", "read /usr/share/keys",
                 "sk-learn-contrib-something-long-and-boring", "mend issue 12"):
        with Box() as box:
            done, said = run(box, flow(box), "--task", task, key="mend")
            expect(done.returncode == 0, task, said)


def in_a_workflow_and_a_facet(box):
    os.mkdir(box.dir + "/personas")
    box.file("personas/planner.md", "You plan.\n")
    w = box.file("a.yaml", AGENT.format(text="call it with " + KEY))
    s = box.file("s.yaml", "replies: [{text: 'done [PLAN:1]'}]\n")
    done, said = run(box, w, "--task", "t", "--scenario", s)
    expect(done.returncode == 2, said)
    expect("movements[plan].instruction holds the value of SOME_API_KEY" in said, said)
    w = box.file("a.yaml", AGENT.format(text="Do it now."))
    box.file("personas/planner.md", "You plan. The key is " + KEY + "\n")
    done, said = run(box, w, "--task", "t", "--scenario", s)
    expect(done.returncode == 2 and "movements[plan].persona holds" in said, said)
    expect(box.log_paths() == [] and KEY not in said, said)


def given_to_the_daemon(box: DaemonBox):
    """The client knows its own environment; the daemon looks at what it is given."""
    w = flow(box)
    box.serve()
    done = box.segue("submit", w, "--task", "use " + KEY, env={"SOME_API_KEY": KEY})
    said = (done.stdout + done.stderr).decode()
    expect(done.returncode == 2 and "the task holds the value of SOME_API_KEY" in said, said)
    body = {"workflow": w, "cwd": box.cwd, "task": "use " + FORM, "trust": "--trust"}
    status, reply = box.ask("POST", "/v1/sessions", body)
    expect(status == 422 and "what looks like a key" in json.dumps(reply), status, reply)
    status, reply = box.ask("POST", "/v1/sessions", {**body, "allow_secret": 1})
    expect(status == 422, status, reply)
    status, reply = box.ask("POST", "/v1/sessions", {**body, "allow_secret": True})
    expect(status == 201, status, reply)
    box.wait_status(reply["id"], "complete")
    box.end()


def what_a_program_writes_of_it():
    """Wrapped base64, hex by xxd -p and od: as coreutils write them."""
    for script in ("printf %s \"$SOME_API_KEY\" | base64", "printf 'user:%s' \"$SOME_API_KEY\" | base64",
                   "printf %s \"$SOME_API_KEY\" | od -An -tx1", "printf %s \"$SOME_API_KEY\" | od -tx1",
                   "printf %s \"$SOME_API_KEY\" | od -An -v -tx1 | tr -d ' \\n' | fold -w 60"):
        with Box() as box:
            box.config("env: [SOME_API_KEY]\n")
            done, said = run(box, flow(box, ["sh", "-c", script]))
            expect(done.returncode == 0, said)
            end = of_type(records(box.log_paths()[-1]), "call_end")[0]
            expect("«secret:SOME_API_KEY»" in end["text"], script, end["text"])
            left = end["text"].replace("«secret:SOME_API_KEY»", "")
            expect(len(left) < 24, script, "left of it:", end["text"])


if __name__ == "__main__":
    sys.exit(main([in_the_task, what_is_none, in_a_workflow_and_a_facet, given_to_the_daemon,
                   what_a_program_writes_of_it]))
