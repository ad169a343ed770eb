#!/usr/bin/env python3
"""Two sessions that edit one folder: the second one waits, says for whom, and goes on once the first
has ended, stopped or been killed; who only reads waits for nobody; who stops with changes or a question keeps it."""
import json
import os
import subprocess
import sys

from daemon import DaemonBox
from support import end_of, expect, main, of_type, read_until, records, verified

EDITS = """
name: edits
provider: script
judge: {stages: [phase1_tag]}
movements:
  - {name: look, instruction: Look at it., rules: [{condition: done, next: fix}]}
  - {name: fix, permission: PERMISSION, instruction: Mend this., rules: [{condition: done, next: test}]}
  - name: test
    command: [sh, -c, "while [ ! -e GO ]; do sleep 0.05; done"]
    rules: [{condition: when(exit == 0), next: COMPLETE}, {condition: no, next: ABORT}]
"""
REPLIES = {"replies": [{"movement": "look", "text": "[LOOK:1]"},
                       {"movement": "fix", "text": "[FIX:1]"}]}


def words(box, go, permission="edit", **more):
    name = f"w-{os.path.basename(go)}-{permission}"
    text = EDITS.replace("PERMISSION", permission).replace("GO", go)
    words = [box.file(name + ".yaml", text), "--scenario",
             box.file("replies.json", json.dumps(REPLIES)), "--cwd", more.get("cwd", box.cwd)]
    return words + list(more.get("flags", ()))


def run(box, go, **more):
    return box.start("run", *words(box, box.dir + "/" + go, **more), "--logs", box.logs, "--json")


def tests_now(record):
    return record["type"] == "turn_start" and record["movement"] == "test"


def waits(record):
    return record["type"] == "admission" and record["answer"] == "wait"


def go(box, name):
    box.file(name, "")


def ends_complete(process):
    status, out, err = end_of(process)
    expect(status == 0, status, out, err)


def a_second_one_waits(box):
    first, seen = run(box, "a"), []
    expect(read_until(first, tests_now, seen), "the first one never tests")
    second = run(box, "b")
    told = read_until(second, waits)
    expect(told and told["reason"] == "folder", told)
    expect(told["message"] == f"session {seen[0]['session']} edits {box.cwd}", told)
    listed = box.segue("ls", "--logs", box.logs, "--json").stdout.splitlines()
    rows = {row["id"]: row for row in map(json.loads, listed)}
    row = rows[next(i for i in rows if i != seen[0]["session"])]
    expect(row["status"] == "waiting" and row["message"] == told["message"], row)
    go(box, "b")
    go(box, "a")
    ends_complete(first)
    ends_complete(second)
    log = [r for r in map(records, box.begun()) if of_type(r, "admission")]
    expect(len(log) == 1, "one of them waits")
    expect([r["answer"] for r in of_type(log[0], "admission")] == ["wait", "admitted"], log[0])
    verified(box, *box.begun())


def a_folder_in_it_too(box):
    os.mkdir(box.cwd + "/in it")
    os.mkdir(box.cwd + "2")
    first = run(box, "a")
    expect(read_until(first, tests_now), "the first one never tests")
    second = run(box, "a", cwd=box.cwd + "/in it")
    expect(read_until(second, waits), "a folder in it is free")
    other = run(box, "other", cwd=box.cwd + "2")
    expect(read_until(other, tests_now), "a folder beside it is not")
    go(box, "a")
    go(box, "other")
    for process in (first, second, other):
        ends_complete(process)


def readers_and_who_knows_do_not_wait(box):
    first = run(box, "a")
    expect(read_until(first, tests_now), "the first one never tests")
    go(box, "b")
    for more in ({"permission": "readonly"}, {"flags": ["--no-lock"]}):
        seen = []
        process = run(box, "b", **more)
        read_until(process, lambda r: r["type"] == "session_end", seen)
        expect(not of_type(seen, "admission"), seen)
        ends_complete(process)
    go(box, "a")
    ends_complete(first)


def one_that_was_killed_holds_nothing(box):
    first = run(box, "a")
    expect(read_until(first, tests_now), "the first one never tests")
    second = run(box, "b")
    expect(read_until(second, waits), "the second one does not wait")
    first.kill()
    go(box, "b")
    ends_complete(second)
    go(box, "a")
    box.segue("resume", box.begun()[0], status=0)
    expect(os.listdir(box.env["XDG_STATE_HOME"] + "/segue/locks") == ["all"], "rights are left")


def a_resume_waits_too(box):
    first = run(box, "a")
    expect(read_until(first, tests_now), "the first one never tests")
    first.kill()
    first.wait()
    second, seen = run(box, "b"), []
    expect(read_until(second, tests_now), "the second one waits for the dead")
    again = box.start("resume", "--json", box.begun()[0])
    expect(read_until(again, waits, seen), "it tests what another one edits", seen)
    go(box, "a")
    go(box, "b")
    ends_complete(second)
    ends_complete(again)


LEAVES = """
name: leaves
movements:
  - name: fix
    command: [sh, -c, "DEED; exit 3"]
    edit: true
    rules: [{condition: when(exit == 0), next: COMPLETE}]
"""


def stops(box, deed, **more):
    """Runs one in which no rule matches, and returns its log and what it says."""
    before = set(box.begun())
    done = box.segue("run", box.file("leaves.yaml", LEAVES.replace("DEED", deed)), "--cwd", box.cwd,
                     "--logs", box.logs, **more, status=4)
    return (set(box.begun()) - before).pop(), done.stderr


def is_refused(box, path, *flags):
    done = box.segue("run", *words(box, box.dir + "/b", flags=flags), "--logs", box.logs, "-q")
    command = f"segue resume {os.path.basename(path)[:36]} --release".encode()
    expect(done.returncode == 7 and command in done.stderr, done)


def who_left_changes_keeps_it(box):
    """The next run ends at once, with the command that lets go; one that waits all the same gets it."""
    path, said = stops(box, "echo x > left")
    expect(b"--release releases it" in said, said)
    is_refused(box, path)
    is_refused(box, path, "--wait-for-folder", "50ms")
    second = run(box, "b", flags=["--wait-for-folder", "1h"])
    told = read_until(second, waits)
    expect(told and "has stopped and keeps " + box.cwd in told["message"], told)
    go(box, "b")
    box.segue("resume", path, "--release", status=0)
    ends_complete(second)
    box.segue("resume", path, "--release", status=2, err=b"holds no folder")
    done = box.segue("run", *words(box, box.dir + "/b", flags=["--wait-for-folder", "soon"]))
    expect(done.returncode == 2 and b"--wait-for-folder" in done.stderr, done)


def who_left_nothing_keeps_nothing(box):
    _, said = stops(box, "true")
    expect(b"--release" not in said, said)
    go(box, "b")
    ends_complete(run(box, "b"))


def git(box, *words):
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x", *words], cwd=box.cwd,
                   env={**os.environ, **box.env}, check=True, capture_output=True)


def what_was_committed_is_kept_no_more(box):
    git(box, "init", "-q", ".")
    path, _ = stops(box, "echo x > left")
    is_refused(box, path)
    git(box, "add", "-A")
    git(box, "commit", "-qm", "left")
    go(box, "b")
    ends_complete(run(box, "b"))


def what_is_committed_while_others_wait(box: DaemonBox):
    """A daemon notices it by itself, and not while anything is left in the folder."""
    git(box, "init", "-q", ".")
    stops(box, "echo x > left")
    box.serve()
    go(box, "b")
    sid = box.segue("submit", *words(box, box.dir + "/b"), status=0).stdout.decode().strip()
    box.wait_status(sid, "waiting")
    git(box, "add", "-A")
    expect(box.get("/v1/sessions/" + sid)["status"] == "waiting", "what is added is not committed")
    git(box, "commit", "-qm", "left")
    box.wait_status(sid, "complete")
    verified(box, *box.begun())
    box.end()


def a_quiet_one_says_whom_it_waits_for(box):
    first = run(box, "a")
    expect(read_until(first, tests_now), "the first one never tests")
    second = box.start("run", *words(box, box.dir + "/b"), "--logs", box.logs, "-q")
    said = second.stderr.readline()
    expect(b"waiting: session " in said and b" edits " in said, said)
    go(box, "a")
    go(box, "b")
    ends_complete(second)
    ends_complete(first)


def a_resume_that_knows_does_not_wait(box):
    first = run(box, "a")
    expect(read_until(first, tests_now), "the first one never tests")
    first.kill()
    first.wait()
    second = run(box, "b")
    expect(read_until(second, tests_now), "the second one waits for the dead")
    go(box, "a")
    box.segue("resume", "--no-lock", "--json", box.begun()[0], status=0)
    log = records(box.begun()[0])
    expect(of_type(log, "session_resume")[0]["changed"] == {"lock": False}, log)
    expect(not of_type(log, "admission"), log)
    go(box, "b")
    ends_complete(second)
    verified(box, *box.begun())


QUESTION = """
name: question
provider: script
movements:
  - name: fix
    command: [sh, -c, "true"]
    edit: true
    rules: [{condition: when(true), next: which}]
  - name: which
    ask: {question: Which one?, choices: [a, b]}
    rules: [{condition: a, next: COMPLETE}, {condition: b, next: COMPLETE}]
"""


def a_question_keeps_it_until_it_is_answered(box):
    asks = box.segue("run", box.file("question.yaml", QUESTION), "--cwd", box.cwd, "--logs", box.logs)
    expect(asks.returncode == 7 and b"--release releases it" in asks.stderr, asks)
    path = box.begun()[0]
    is_refused(box, path)
    second = run(box, "b", flags=["--wait-for-folder", "1h"])
    expect(read_until(second, waits), "it does not wait")
    box.segue("answer", path, "a", status=0)
    if records(path)[-1]["type"] != "session_end":
        box.segue("resume", path, status=0)
    go(box, "b")
    ends_complete(second)


def its_verdict_frees_it(box):
    path, _ = stops(box, "echo x > left")
    box.segue("resume", path, "--rule", "1", status=0)
    go(box, "b")
    ends_complete(run(box, "b"))


def a_daemon_runs_them_one_after_the_other(box: DaemonBox):
    box.serve()
    ids = []
    for name in ("a", "b"):
        done = box.segue("submit", *words(box, box.dir + "/" + name), status=0)
        ids.append(done.stdout.decode().strip())
    go(box, "a")
    go(box, "b")
    for name in ids:
        box.segue("show", name, "--follow", "--quiet", status=0)


def without_a_state_folder_it_says_so(box):
    env = {"XDG_STATE_HOME": "/proc/none"}
    go(box, "a")
    done = box.segue("run", *words(box, box.dir + "/a"), "--logs", box.logs, env=env, status=0)
    expect(b"cannot keep other sessions from editing here" in done.stderr, done.stderr)


if __name__ == "__main__":
    sys.exit(main([a_second_one_waits, a_folder_in_it_too, readers_and_who_knows_do_not_wait,
          one_that_was_killed_holds_nothing, a_resume_waits_too, who_left_changes_keeps_it,
          who_left_nothing_keeps_nothing, what_was_committed_is_kept_no_more, what_is_committed_while_others_wait,
          a_quiet_one_says_whom_it_waits_for,
          a_resume_that_knows_does_not_wait, a_question_keeps_it_until_it_is_answered,
          its_verdict_frees_it, a_daemon_runs_them_one_after_the_other,
          without_a_state_folder_it_says_so]))
