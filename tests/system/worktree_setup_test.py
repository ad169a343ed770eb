#!/usr/bin/env python3
"""How a worktree is set up before its first call: commands in the agents' sandbox, told with their
output; a failure that is an error with its output and is mended by a resume; results that are kept
by the files that decide them, and for nobody else."""
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from support import expect, main, of_type, read_until, records, verified

FLOW = """
name: edits
provider: script
workspace: worktree
judge: {stages: [phase1_tag]}
SETUP
movements:
  - name: test
    command: [sh, -c, "cat made/out >> seen"]
    rules: [{condition: when(exit == 0), next: NEXT}, {condition: when(true), next: ABORT}]
"""
CHILDREN = """
  - name: parts
    parallel:
      - {name: left, workspace: worktree, command: [sh, -c, "cat made/out > left"], rules: [{condition: when(exit == 0)}]}
      - {name: right, workspace: worktree, command: [sh, -c, "cat made/out > right"], rules: [{condition: when(exit == 0)}]}
    rules: [{condition: 'all("when(exit == 0)")', next: COMPLETE}, {condition: when(true), next: ABORT}]
"""
MAKES = "echo ran >> $SEGUE_MAIN.count; mkdir -p made; cp lock made/out; ln -s out made/link; echo is made"


def git(box, *words, at=None):
    done = subprocess.run(["git", *words], cwd=at or box.cwd, env=box.env, capture_output=True)
    expect(done.returncode == 0, "git", *words, done.stderr)
    return done.stdout.decode().strip()


def repository(box, **files):
    git(box, "init", "-q", "-b", "main", ".")
    git(box, "config", "user.name", "Some One")
    git(box, "config", "user.email", "one@example.org")
    for name, text in {".gitignore": "made\n", "lock": "1\n", **files}.items():
        Path(f"{box.cwd}/{name}").write_text(text)
    git(box, "add", "-A")
    git(box, "commit", "-qm", "first")


def run(box, setup=None, status=0, children=False, command="run", words=()):
    text = FLOW.replace("SETUP", "setup: " + json.dumps(setup) if setup else "")
    text = text.replace("NEXT", "parts" if children else "COMPLETE") + (CHILDREN if children else "")
    done = box.segue(command, box.file("flow.yaml", text), "--cwd", box.cwd, "--task", "mend it", "--logs", box.logs,
                     *words, status=status)
    return done, records(sorted(box.begun(), key=os.path.getmtime)[-1])


def made(log, n=0):
    return [r["data"] for r in of_type(log, "workspace") if r["event"] == "made"][n]


def count(box):
    path = Path(box.cwd + ".count")
    return len(path.read_text().splitlines()) if path.exists() else 0


def unconfined(box, more=""):
    """What the tests count with lies outside of the worktree."""
    box.config("sandbox: off\n" + more)


def commands_run_once_in_each_worktree(box):
    repository(box)
    unconfined(box, "workspace: {setup: ['echo from the user; exit 3']}\n")
    done, log = run(box, [MAKES, "test $PWD = $SEGUE_WORKTREE && test -f $SEGUE_MAIN/lock && echo `pwd` >&2"],
                    children=True)
    expect(count(box) == 3, "the session's and each child's", count(box))
    asked = of_type(log, "workspace")[0]["data"]
    expect(asked["setup"]["run"][0] == MAKES, "said before it is run", asked)
    told = made(log)["setup"]
    expect(told["exit"] == 0 and not told["cached"] and "\nis made\n$ test" in told["output"], told)
    expect(told["output"].endswith(made(log)["path"]), told)
    expect("set up" in done.stdout.decode(), done.stdout)
    for n in (1, 2):
        expect(made(log, n)["path"] in made(log, n)["setup"]["output"], made(log, n))
    branch = made(log)["branch"]
    expect(git(box, "show", branch + ":seen") == "1", "the first call found it")
    expect(git(box, "ls-tree", "--name-only", branch).split() == [".gitignore", "lock", "seen"], "what is ignored")
    verified(box, *box.begun())


def a_failure_is_an_error_with_its_output(box):
    repository(box)
    unconfined(box)
    broken = "echo ran >> $SEGUE_MAIN.count; echo `seq 2000` no such package >&2; test -e $SEGUE_MAIN.ok"
    done, log = run(box, [broken, MAKES], status=1)
    words = done.stderr.decode() + done.stdout.decode()
    expect("ended with 1:" in words and "no such package" in words, words)
    stop = of_type(log, "session_stop")[0]
    expect(stop["reason"] == "workspace" and stop["message"].endswith("no such package"), stop)
    expect(len(stop["message"]) < 3000, len(stop["message"]))
    expect(not of_type(log, "call_start"), "nothing has run in it")
    expect(git(box, "branch").split() == ["*", "main"] and "\n" not in git(box, "worktree", "list"), "left behind")
    Path(box.cwd + ".ok").write_text("")
    box.segue("resume", box.begun()[0], status=0)
    expect(count(box) == 3, "it ran again, and the next one once", count(box))
    expect(made(records(box.begun()[0]))["setup"]["exit"] == 0, "set up")
    verified(box, *box.begun())


def a_childs_failure_is_the_childs(box):
    repository(box)
    unconfined(box)
    log = run(box, [MAKES + "; case $SEGUE_WORKTREE in *-[0-9]) echo no room >&2; exit 4; esac"], children=True,
              status=None)[1]
    ends = [r for r in of_type(log, "turn_end") if r.get("outcome") == "error"]
    expect(len(ends) == 2 and all(r["message"].endswith("no room") for r in ends), ends)
    expect(log[-1]["outcome"] == "abort", "the group's rules decide", log[-1])
    own = made(log)
    expect(git(box, "worktree", "list").count("\n") == 1, git(box, "worktree", "list"))
    expect(git(box, "branch").split() == ["*", "main", "+", own["branch"]], "theirs are not left", git(box, "branch"))


def it_ends_in_time(box):
    repository(box)
    unconfined(box)
    done, log = run(box, {"run": ["echo before; sleep 300"], "timeout": "300ms"}, status=1)
    message = of_type(log, "session_stop")[0]["message"]
    expect("before" in message and "still running after 300 ms" in message, message)


def a_stop_ends_it(box):
    repository(box)
    unconfined(box)
    text = FLOW.replace("SETUP", 'setup: ["echo ran >> $SEGUE_MAIN.count; exec sleep 300"]').replace("NEXT", "COMPLETE")
    going = box.start("run", box.file("flow.yaml", text), "--cwd", box.cwd, "--task", "t", "--logs", box.logs, "--json")
    expect(read_until(going, lambda r: r["type"] == "workspace"), "nothing is asked for")
    while count(box) == 0:
        expect(going.poll() is None, "it ended")
        time.sleep(0.01)
    going.terminate()
    going.wait()
    log = records(box.begun()[0])
    expect(log[-1]["type"] == "session_stop" and len(of_type(log, "workspace")) == 1, log[-1])


def results_are_kept_by_the_key_files(box):
    setup = {"run": [MAKES], "key": ["lock", "**/none*"], "keep": ["made/"]}
    repository(box)
    unconfined(box)
    expect(made(run(box, setup)[1])["setup"]["cached"] is False and count(box) == 1, "the first")
    done, log = run(box, setup, children=True)
    expect(made(log)["setup"] == {"cached": True} and count(box) == 1, made(log), count(box))
    expect([made(log, n)["setup"]["cached"] for n in (1, 2)] == [True, True], log)
    copy = made(log)["path"] + "/made"
    expect(os.readlink(copy + "/link") == "out" and Path(copy + "/out").read_text() == "1\n", "as it was")
    Path(copy + "/out").write_text("the agent's\n")
    log = run(box, setup)[1]
    expect(Path(made(log)["path"] + "/made/out").read_text() == "1\n", "each has its own copy")
    Path(box.cwd + "/lock").write_text("2\n")
    git(box, "commit", "-qam", "second")
    log = run(box, setup)[1]
    expect(count(box) == 2 and Path(made(log)["path"] + "/made/out").read_text() == "2\n", "another key file")
    log = run(box, {**setup, "run": [MAKES, "true"]})[1]
    expect(count(box) == 3 and not made(log)["setup"]["cached"], "another command")


def what_is_kept_is_in_no_commit(box):
    repository(box, **{".gitignore": ""})
    unconfined(box)
    log = run(box, {"run": [MAKES], "key": ["lock"], "keep": ["made"]})[1]
    expect(git(box, "ls-tree", "--name-only", made(log)["branch"]).split() == [".gitignore", "lock", "seen"], "made")
    for words in (["merge", "last"], ["discard", "last", "--yes"]):
        box.segue(*words, "--logs", box.logs, status=0)


def only_what_the_user_has_decides_for_others(box):
    """A branch of an agent's may have other files behind the same key."""
    setup = {"run": ["echo ran >> $SEGUE_MAIN.count; mkdir -p made; cp code made/out"], "key": ["lock"],
             "keep": ["made"]}
    repository(box, code="good\n")
    unconfined(box)
    git(box, "checkout", "-qb", "agents")
    Path(box.cwd + "/code").write_text("bad\n")
    git(box, "commit", "-qam", "second")
    git(box, "checkout", "-q", "main")
    run(box, setup, words=["--base", "agents"])
    log = run(box, setup)[1]
    expect(count(box) == 2 and Path(made(log)["path"] + "/made/out").read_text() == "good\n", "kept of a branch")
    log = run(box, setup, words=["--base", "agents"])[1]
    expect(made(log)["setup"] == {"cached": True}, "what the user has is for all")


def links_lead_nowhere(box):
    """Neither a folder that is a link nor a result that is one is followed, by either copy."""
    repository(box)
    unconfined(box)
    os.mkdir(box.dir + "/outside")
    Path(box.dir + "/outside/key").write_text("secret\n")
    os.symlink(box.dir + "/outside", box.cwd + "/leads")
    git(box, "add", "-A")
    git(box, "commit", "-qm", "second")
    setup = {"run": [f"{MAKES}; ln -s {box.dir}/outside put"], "key": ["lock"], "keep": ["leads/key", "leads/new", "put"]}
    for _ in range(2):
        run(box, setup)
        for words in (["merge", "last"], ["discard", "last", "--yes"]):
            box.segue(*words, "--logs", box.logs, status=0)
    kept = subprocess.run(["grep", "-r", "secret", box.env["XDG_STATE_HOME"] + "/segue/setup"], capture_output=True)
    expect(kept.returncode == 1, kept.stdout, kept.stderr)
    expect(os.listdir(box.dir + "/outside") == ["key"], os.listdir(box.dir + "/outside"))


def few_are_kept(box):
    repository(box)
    unconfined(box)
    folder = Path(box.env["XDG_STATE_HOME"] + "/segue/setup")
    for n in range(12):
        os.makedirs(folder / f"{n:064}/0")
        os.utime(folder / f"{n:064}", (1e9 if n == 11 else time.time() - n,) * 2)
    run(box, {"run": [MAKES], "key": ["lock"], "keep": ["made"]})
    left = sorted(os.listdir(folder))
    expect(len(left) == 8 and f"{6:064}" in left and f"{7:064}" not in left and f"{11:064}" not in left, left)


def it_is_in_the_agents_sandbox(box):
    """It works in its tree and cannot change the user's."""
    repository(box)
    box.config("sandbox: guard\n")
    done, log = run(box, {"key": ["lock"], "keep": ["made"], "run": [
        "for f in $SEGUE_MAIN/lock ${SEGUE_WORKTREE%/worktrees/*}/setup/planted; do echo out > $f; done\n"
        "mkdir made; cp lock made/out"]}, status=None)
    if "cannot be enforced" in done.stderr.decode():
        return "no sandbox here"
    expect(done.returncode == 0, done.stdout, done.stderr)
    expect(git(box, "status", "--porcelain") == "", "the user's tree was changed")
    kept = os.listdir(box.env["XDG_STATE_HOME"] + "/segue/setup")
    expect(len(kept) == 1 and kept != ["planted"], "what is kept for others", kept)
    expect(made(log)["setup"]["output"].lower().count("cannot create") == 2, made(log))
    return None


def mistakes_are_told(box):
    repository(box)
    for setup, words in (({"run": []}, "setup"), ({"runs": ["x"]}, "run"), ({"run": ["x"], "keep": ["a"]}, "no key"),
                         ({"run": ["x"], "key": ["a"], "keep": ["../a"]}, "leaves"), ("npm ci", "setup")):
        box.config("")
        done = run_words(box, setup)
        expect(done.returncode == 2 and words in done.stderr.decode(), setup, done.stderr)
        box.config(f"workspace: {{setup: {json.dumps(setup)}}}\n")
        done = run_words(box, None)
        expect(done.returncode == 2 and "setup" in done.stderr.decode(), setup, done.stderr)


def run_words(box, setup):
    text = FLOW.replace("SETUP", "setup: " + json.dumps(setup) if setup else "").replace("NEXT", "COMPLETE")
    return box.segue("run", box.file("flow.yaml", text), "--cwd", box.cwd, "--task", "t", "--logs", box.logs)


if __name__ == "__main__":
    sys.exit(main([commands_run_once_in_each_worktree, a_failure_is_an_error_with_its_output,
                   a_childs_failure_is_the_childs, it_ends_in_time,
                   a_stop_ends_it, results_are_kept_by_the_key_files, what_is_kept_is_in_no_commit,
                   only_what_the_user_has_decides_for_others, links_lead_nowhere, few_are_kept,
                   it_is_in_the_agents_sandbox, mistakes_are_told]))
