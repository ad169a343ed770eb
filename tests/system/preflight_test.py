#!/usr/bin/env python3
"""What keeps a workflow from running is said before it starts: all of it at once, with places, by
`run` and by the daemon, and nothing is started for it."""
import json
import os
import sys

from daemon import DaemonBox
from support import expect, main

MANY = """name: many
provider: claude
movements:
  - name: build
    command: [no-such-pytest, -q]
    rules: [{condition: when(true), next: plan}]
  - name: plan
    instruction: "Do {task}."
    rules:
      - {condition: fine, next: gate}
      - {condition: bad, next: ABORT}
  - name: gate
    command: [./gate.sh]
    judge: {provider: anthropic}
    rules:
      - {condition: fine, next: review}
      - {condition: bad, next: ABORT}
  - name: review
    provider: [codex, script]
    rules: [{condition: fine, next: COMPLETE}]
  - name: unreached
    provider: opencode
    command_line: x
    rules: [{condition: fine, next: COMPLETE}]
""".replace("    command_line: x\n", "")

WANTED = [
    (2, 11, "provider claude: the program claude is not installed"),
    (5, 14, "the program no-such-pytest is not in PATH: install it, or write its path"),
    (8, 18, "{task} stands here, and no task was given: give one with --task"),
    (14, 23, "provider anthropic has no key: set ANTHROPIC_API_KEY"),
    (14, 23, "provider anthropic needs a model: write model: NAME"),
    (19, 15, "too few of these can answer: provider codex: the program codex is not installed"),
    (19, 15, "the script provider has no replies: give --scenario FILE"),
]


def run(box, workflow, *words, **more):
    return box.segue("run", workflow, "--logs", box.logs, "--cwd", box.cwd, *words, **more)


def errors_of(done):
    return [json.loads(line)["error"] for line in done.stdout.splitlines()]


def matches(errors):
    for line, column, words in WANTED:
        expect(any(e["line"] == line and e["column"] == column and words in e["message"]
                   for e in errors), "missing:", line, column, words, errors)
    places = [(e["line"], e["column"]) for e in errors]
    expect(places == sorted(set(places)), "each place once, in their order", places)
    expect(all("opencode" not in e["message"] for e in errors), "nothing leads there", errors)


def all_at_once_with_places(box):
    w = box.file("many.yaml", MANY)
    done = run(box, w, "--json")
    expect(done.returncode == 2, done)
    matches(errors_of(done))
    said = done.stderr.decode()
    expect("13:14: warning: there is no ./gate.sh here" in said, said)
    expect(box.log_paths() == [], "a session began")
    expect(b"warning" not in run(box, w, "--quiet").stderr, "--quiet")


def the_daemon_says_the_same(box: DaemonBox):
    box.serve()
    w = box.file("many.yaml", MANY)
    status, value = box.ask("POST", "/v1/sessions", {"workflow": w, "cwd": box.cwd})
    expect(status == 422, status, value)
    matches(value["errors"])
    box.segue("submit", w, "--socket", box.socket, status=2, err=b"many.yaml:5:14: the program no-such-pytest")
    expect(box.log_paths() == [], "a session began")
    # what was missing is found when it is there, soon
    tool = box.dir + "/home/no-such-pytest"
    text = MANY[:MANY.index("  - name: plan")].replace("next: plan", "next: COMPLETE")
    with open(tool, "w") as f:
        f.write("#!/bin/sh\n")
    os.chmod(tool, 0o755)
    w = box.file("one.yaml", text.replace("no-such-pytest", tool))
    box.submit(w)
    box.end()


FALLS = """name: falls
movements:
  - name: a
    provider: [codex, script]
    instruction: go on
    rules: [{condition: fine, next: COMPLETE}]
"""


def one_of_a_list_is_enough(box):
    scenario = box.file("s.yaml", "replies:\n  - text: fine\n")
    done = run(box, box.file("w.yaml", FALLS), "--scenario", scenario)
    said = done.stderr.decode()
    expect(done.returncode == 0, done)
    expect("4:15: warning: provider codex: the program codex is not installed" in said, said)


def a_blank_task_is_none(box: DaemonBox):
    box.serve()
    scenario = box.file("s.yaml", "replies:\n  - text: fine\n")
    w = box.file("w.yaml", FALLS.replace("[codex, script]", "script").replace("go on", '"go {task}"'))
    done = run(box, w, "--scenario", scenario, "--task", " \n")
    expect(done.returncode == 2 and b"no task was given" in done.stderr, done)
    body = {"workflow": w, "cwd": box.cwd, "scenario": scenario, "task": " \n"}
    status, value = box.ask("POST", "/v1/sessions", body)
    expect(status == 422 and "no task was given" in json.dumps(value), status, value)
    box.end()


def nothing_is_started_for_it(box):
    program = box.file("agent", f"#!/bin/sh\ntouch {box.dir}/ran\n")
    os.chmod(program, 0o755)
    box.config({"providers": {"codex": {"program": program}}})
    text = FALLS.replace("[codex, script]", "codex").replace("go on\n", "\"go {task}\"\n")
    done = run(box, box.file("w.yaml", text))
    expect(done.returncode == 2 and b"{task}" in done.stderr, done)
    expect(not os.path.exists(box.dir + "/ran"), "it was run")
    expect(b"no sign of a key or a login" in done.stderr, "a login is no certain thing", done)


def flags_are_looked_at(box):
    scenario = box.file("s.yaml", "replies:\n  - text: fine\n")
    w = box.file("w.yaml", FALLS)
    rows = [
        (["-p", "cluade"], '--provider cluade: there is no provider "cluade": did you mean claude?'),
        (["-p", "b=script"], "--provider b=script: the workflow has no such movement"),
        (["-p", "xyzzy-q"], 'there is no provider "xyzzy-q": use one of script, command,'),
        (["-p", "script", "-O", "temperature=9"], "option temperature must be a number from 0 to 2"),
    ]
    for words, wanted in rows:
        done = run(box, w, "-s", scenario, *words)
        expect(done.returncode == 2 and wanted in done.stderr.decode(), words, done)
    text = FALLS.replace("name: a", "name: implement")
    done = run(box, box.file("x.yaml", text), "-s", scenario, "-p", "implemnt=script")
    expect(b"no such movement: did you mean implement?" in done.stderr, done)


def a_key_in_the_environment_is_one(box):
    w = box.file("w.yaml", FALLS.replace("[codex, script]", "anthropic\n    model: m"))
    done = run(box, w)
    expect(done.returncode == 2 and b"has no key" in done.stderr, done)
    text = FALLS.replace("[codex, script]", "[anthropic, script]\n    model: m")
    done = run(box, box.file("v.yaml", text), env={"ANTHROPIC_API_KEY": "k" * 20})
    said = done.stderr.decode()
    expect("has no key" not in said and "no replies" in said, said)


PROGRAM = """name: program
movements:
  - name: a
    command: ["true"]
    rules: [{condition: when(true), next: COMPLETE}]
"""


def a_temporary_folder_is_needed_for_programs(box):
    gone = {"TMPDIR": box.dir + "/gone"}
    done = run(box, box.file("p.yaml", PROGRAM), "--json", env=gone)
    said = [e["message"] for e in errors_of(done)]
    expect(done.returncode == 2 and len(said) == 1 and "set TMPDIR to a folder" in said[0], done)
    expect(box.log_paths() == [], "a session began")
    scenario = box.file("s.yaml", "replies:\n  - text: fine\n")
    text = FALLS.replace("[codex, script]", "script")
    done = run(box, box.file("w.yaml", text), "--scenario", scenario, env=gone)
    expect(done.returncode == 0, "nothing is started there", done)


if __name__ == "__main__":
    sys.exit(main([all_at_once_with_places, the_daemon_says_the_same, one_of_a_list_is_enough, a_blank_task_is_none,
                   nothing_is_started_for_it, flags_are_looked_at,
                   a_key_in_the_environment_is_one, a_temporary_folder_is_needed_for_programs]))
