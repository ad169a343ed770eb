#!/usr/bin/env python3
"""segue until: one line, no file; and the bounds that run and submit take beside a workflow's own."""
import json
import os
import stat
import subprocess
import sys

import support
from daemon import DaemonBox
from support import expect, main


def says(movement, text, rule, **more):
    """An answer of an agent, and what its judge says of it."""
    return [{"movement": movement, "purpose": "execute", "text": text, **more},
            {"movement": movement, "purpose": "judge", "text": json.dumps({"reason": "It says so.", "step": rule})}]


def scenario(box, *replies):
    return box.file("replies.json", json.dumps({"replies": [r for some in replies for r in some]}))


def until(box, *words, **more):
    return box.segue("until", *words, "--cwd", box.cwd, "-l", box.logs, **more)


def records(box):
    return support.records(box.log_paths()[-1])


def until_the_check_passes_and_the_judge_agrees(box):
    """A check that fails goes back with its output, and so does a judge who misses something."""
    told = scenario(box, says("work", "All done.", 1),
                    says("mend", "The file was missing.", 1, contains="no such file yet", write={"made.txt": "1"}),
                    says("agree", "The colour is missing.", 2, contains="Besides, this must hold: it is red"),
                    says("mend", "It is red.", 1, contains="The colour is missing", write={"made.txt": "red"}),
                    says("agree", "Every point is met.", 1))
    done = until(box, "test -s made.txt || { echo no such file yet; exit 1; }", "-t", "Make made.txt", "-p", "script",
                 "-s", told, "--condition", "it is red", status=0)
    names = [line.split()[1] for line in done.stdout.decode().splitlines() if line.startswith("  ")]
    expect(names == ["work", "check", "mend", "check", "agree", "mend", "check", "agree"], done.stdout)
    box.segue("verify", "-l", box.logs, "last", status=0)


def what_is_green_before_is_judged(box):
    """The check's run before the work says whether its pass will show something."""
    subprocess.run(["sh", "-c", "git init -q && git -c user.name=t -c user.email=t@localhost commit -qm first --allow-empty"],
                   cwd=box.cwd, env=box.env, check=True)
    told = scenario(box, says("work", "Done.", 1, write={"made.txt": "1"}), says("agree", "Met.", 1))
    for check, green in (("test -f made.txt", False), ("true", True)):
        done = until(box, check, "-t", "Make made.txt", "-p", "script", "-s", told, status=0).stdout.decode()
        expect(("green already: " in done) == green, check, done)
        expect(("judged" if green else "shown") in done.splitlines()[-1], check, done)
        os.remove(box.cwd + "/made.txt")


def its_workflow_can_be_grown_from(box):
    text = until(box, "--show-workflow", status=0).stdout.decode()
    told = scenario(box, says("work", "Done.", 1, write={"made.txt": "1"}), says("agree", "Met.", 1))
    box.segue("run", box.file("own.yaml", text), "-i", "check=test -f made.txt", "-t", "Make made.txt", "-p", "script",
              "-s", told, "--cwd", box.cwd, "-l", box.logs, status=0)


def what_is_missing_is_said_in_one_line(box):
    task = ("-t", "Make it", "-p", "script")
    for words, said in ((["Make the parser accept empty lines", "-t", "make test", "-p", "script"],
                         "are the two the wrong way round?"),
                        (["no-such-program-here --all", *task], "which is no program here"),
                        (["", *task], "CHECK is empty"), ([*task], "CHECK is missing"),
                        (["true", "-p", "script"], "say what to do"), (["true", "-t", "x"], "say who does the work"),
                        (["true", *task, "--judge", "nobody"], "there is no provider \"nobody\""),
                        (["true", *task, "--budget", "5"], "write UNIT=N"),
                        (["true", *task, "--budget", "cost=much"], "cost must be a number"),
                        (["true", *task, "--budget", "apples=3"], "no key apples"),
                        (["true", *task, "--max-movements", "0"], "max_movements must be a whole number")):
        done = until(box, *words, status=2, err=said)
        expect(done.stderr.count(b"\n") == 1, done.stderr)
    expect(not os.path.isdir(box.logs) or not os.listdir(box.logs), "no session was begun")


def what_a_shell_understands_is_a_check(box):
    """Only a plain first word is looked for."""
    told = scenario(box, says("work", "Done.", 1, write={"made.txt": "1"}), says("agree", "Met.", 1))
    for check in ("cd . && test -f made.txt", "LC_ALL=C X=1 ls made.txt", "[ -f made.txt ]", "! false", "(true)",
                  "\"$(command -v true)\"", "if true; then true; fi", "./own.sh"):
        script = box.file("work/own.sh", "#!/bin/sh\ntest -f made.txt\n")
        os.chmod(script, os.stat(script).st_mode | stat.S_IXUSR)
        until(box, check, "-t", "Make made.txt", "-p", "script", "-s", told, status=0)


def another_vendor_judges_where_one_is_logged_in(box):
    """The end is judged by codex if claude worked and codex is logged in; --judge names another; one vendor's other
    transport is no other vendor."""
    os.mkdir(box.dir + "/bin")
    for name in ("claude", "codex"):
        path = box.file("bin/" + name, "#!/bin/sh\nexit 1\n")
        os.chmod(path, 0o755)
    env = {"PATH": os.path.dirname(path) + ":" + os.environ["PATH"], "ANTHROPIC_API_KEY": "k", "HOME": box.dir}
    for key, words, judge in (("", [], None), ("k", [], "codex"), ("k", ["--judge", "claude"], "claude")):
        done = until(box, "true", "-t", "x", "-p", "claude", *words, "--budget", "calls=1", "--json",
                     env={**env, **({"OPENAI_API_KEY": key, "CODEX_API_KEY": key} if key else {})})
        first = json.loads(done.stdout.splitlines()[0])
        expect(first.get("config", {}).get("providers", {}).get("agree") == judge, key, words, done)


LOOP = """name: loop
max_movements: 9
budget: {calls: 50}
movements:
  - name: go
    command: ["true"]
    rules:
      - {condition: when(true), next: go}
"""


def bounds_stand_in_place_of_the_workflows_own(box):
    workflow = box.file("loop.yaml", LOOP)
    box.segue("run", workflow, "-l", box.logs, "--cwd", box.cwd, "--max-movements", "3", status=5)
    turns = [r for r in records(box) if r["type"] == "turn_start"]
    expect(len(turns) == 3, len(turns))
    box.segue("run", workflow, "-l", box.logs, "--cwd", box.cwd, "--budget", "calls=2", status=7)
    stop = records(box)[-1]
    expect(stop["type"] == "session_stop" and stop["reason"] == "budget", stop)


def bounds_of_what_is_submitted():
    with DaemonBox() as box:
        workflow = box.file("loop.yaml", LOOP)
        box.serve()
        said = box.segue("submit", workflow, "-S", box.socket, "--cwd", box.cwd, "--max-movements", "2", "--budget",
                         "calls=40", "--judge", "script", "--json", status=0).stdout
        sid = json.loads(said)["id"]
        box.wait_status(sid, "max_movements")
        first = support.records(box.log_paths()[0])[0]
        expect(box.session(sid)["turns"] == 2, box.session(sid))
        expect(first["config"]["judge_provider"] == "script", first["config"])
        box.segue("submit", workflow, "-S", box.socket, "--cwd", box.cwd, "--judge", "nobody", status=2, err="nobody")


if __name__ == "__main__":
    sys.exit(main([until_the_check_passes_and_the_judge_agrees, what_is_green_before_is_judged, its_workflow_can_be_grown_from,
                  what_is_missing_is_said_in_one_line, what_a_shell_understands_is_a_check,
                  another_vendor_judges_where_one_is_logged_in, bounds_stand_in_place_of_the_workflows_own,
                  bounds_of_what_is_submitted]))
