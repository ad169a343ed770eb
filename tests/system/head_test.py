#!/usr/bin/env python3
"""Where HEAD is after each call: on record, in the turn's line and in a judge's question. Work that
strays is adopted by the session's branch; commits that are left behind, and the user's own tree
when a call changed it, stop the session until a person resumes it."""
import json
import subprocess
import sys

from support import Box, expect, main, of_type, prompt_text, records

FLOW = """
name: heads
WORKSPACE
provider: script
judge: {provider: script, stages: [ai_judge]}
movements:
  - name: work
    command: [sh, -c, "COMMAND"]
    rules: [{condition: when(exit == 0), next: look}, {condition: when(true), next: ABORT}]
  - name: look
    command: [sh, -c, "LOOK"]
    rules: [{condition: all is well, next: COMPLETE}, {condition: it is not, next: ABORT}]
"""
JUDGE = {"replies": [{"movement": "look", "purpose": "judge", "text": '{"reason": "so it is", "matched_index": 1}'}]}


def git(box, *words, at=None):
    done = subprocess.run(["git", *words], cwd=at or box.cwd, env=box.env, capture_output=True)
    expect(done.returncode == 0, "git", *words, done.stderr)
    return done.stdout.decode().strip()


class Run:
    """A repository with one commit, and a session in it whose first movement runs the command."""

    def __init__(self, box, command, workspace="worktree", status=0, look="git rev-parse HEAD"):
        self.box = box
        git(box, "init", "-q", "-b", "main", ".")
        git(box, "config", "user.name", "Some One")
        git(box, "config", "user.email", "one@example.org")
        box.file("work/a", "one\n")
        git(box, "add", "-A")
        git(box, "commit", "-qm", "first")
        text = FLOW.replace("WORKSPACE", f"workspace: {workspace}").replace('"COMMAND"', json.dumps(command)).replace('"LOOK"', json.dumps(look))
        self.done = box.segue("run", box.file("flow.yaml", text), "--scenario", box.file("replies.json", json.dumps(JUDGE)),
                              "--cwd", box.cwd, "--logs", box.logs, "--json")
        expect(self.done.returncode == status, self.done.returncode, self.done.stderr.decode()[-1500:])
        self.log = records(box.log_paths()[0])
        self.id = self.log[0]["session"]
        self.branch = "segue/" + self.id

    def head(self):
        return of_type(self.log, "call_end")[0]["head"]

    def events(self):
        return [r["event"] for r in of_type(self.log, "workspace")]

    def tip(self):
        return git(self.box, "rev-parse", "refs/heads/" + self.branch)

    def lines(self):
        return self.box.segue("show", "last", "--logs", self.box.logs).stdout.decode()


COMMIT = "echo b > b; git add b; git commit -qm two"


def its_own_branch_is_only_recorded(box):
    run = Run(box, COMMIT)
    expect(run.head()["branch"] == run.branch and run.head()["commit"] == run.tip(), run.head())
    expect("work" not in run.head() and "main" not in run.head() and "adopt" not in run.events(), run.head())
    expect("HEAD is" not in run.lines(), run.lines())


def strays_are_adopted(box):
    run = Run(box, "git checkout -q -b mine; " + COMMIT)
    expect(run.head()["branch"] == "mine" and run.head()["work"] == "ahead", run.head())
    expect(run.events() == ["make", "made", "adopt", "adopted", "commit", "committed"], run.events())
    expect(run.tip() == git(box, "rev-parse", "mine"), "the branch does not follow")
    expect("HEAD is at mine (" in run.lines(), run.lines())
    made = of_type(run.log, "workspace")[1]["data"]["main"]
    expect(made == {"branch": "main", "commit": git(box, "rev-parse", "main")}, made)
    box.segue("verify", "last", "--logs", box.logs, status=0)


def a_detached_head_is_adopted(box):
    run = Run(box, "git checkout -q --detach; " + COMMIT)
    expect(run.head()["branch"] is None and run.head()["work"] == "ahead", run.head())
    expect(git(box, "cat-file", "-p", run.branch + ":b") == "b", "its work is not on the branch")


def a_renamed_branch_is_adopted(box):
    run = Run(box, "git branch -m feature/renamed; " + COMMIT)
    expect(run.tip() == git(box, "rev-parse", "feature/renamed"), "the branch is not made again")


def rewritten_commits_are_adopted_and_the_old_ones_kept(box):
    run = Run(box, COMMIT + "; git commit -q --amend -m three")
    expect(run.head()["work"] == "rewritten", run.head())
    expect(git(box, "log", "-1", "--format=%s", run.branch) == "three", "not adopted")
    kept = git(box, "for-each-ref", "--format=%(subject)", "refs/segue/" + run.id)
    expect(kept == "two", "the old commit has no ref", kept)


def what_a_soft_reset_leaves_in_the_files_is_no_loss(box):
    run = Run(box, COMMIT + "; git reset -q --soft HEAD~1")
    expect(git(box, "cat-file", "-p", run.branch + ":b") == "b", "the work is not committed")


def a_folder_that_is_gone_is_made_again_where_its_head_was(box):
    run = Run(box, "git checkout -q -b mine; " + COMMIT + '; rm -rf "$PWD"')
    expect(git(box, "cat-file", "-p", run.branch + ":b") == "b", "its work is not on the branch")
    path = of_type(run.log, "workspace")[1]["data"]["path"]
    expect(git(box, "rev-parse", "HEAD", at=path) == run.tip(), "it is not made again")


def commits_left_behind_stop_the_session(box):
    run = Run(box, COMMIT + "; git reset -q --hard HEAD~1", status=7)
    stop = of_type(run.log, "session_stop")[0]
    head = run.head()
    expect(stop["reason"] == "head_moved" and head["work"] == "left_behind", stop, head)
    for commit in (head["lacks"], head["commit"]):
        expect(commit[:10] in stop["message"], stop["message"])
    inbox = box.segue("inbox", "--logs", box.logs).stdout.decode()
    expect("HEAD was moved" in inbox and "segue resume" in inbox, inbox)
    box.segue("resume", "last", "--logs", box.logs, "-q", status=0)
    expect(records(box.log_paths()[0])[-1]["outcome"] == "complete", run.id)


def another_calls_reset_leaves_them_behind_too(box):
    run = Run(box, COMMIT, "here", status=7, look="git reset -q --hard HEAD~1")
    first, second = (r["head"] for r in of_type(run.log, "call_end"))
    expect(second["work"] == "left_behind" and second["lacks"] == first["commit"], first, second)
    with Box() as own:
        run = Run(own, COMMIT, "here", look="git commit -q --amend -m again")
        expect(of_type(run.log, "call_end")[1]["head"]["work"] == "rewritten", of_type(run.log, "call_end")[1])


def here_the_agents_branch_is_followed(box):
    run = Run(box, "git checkout -q -b mine; " + COMMIT, "here")
    expect(run.head()["branch"] == "mine" and run.head()["was"]["branch"] == "main", run.head())
    expect("HEAD is at mine (" in run.lines() and "was at main (" in run.lines(), run.lines())


def the_users_own_tree_stops_it(box):
    cases = {f"git -C {box.cwd} checkout -q -b stolen": "from main (",
             f"git -C {box.cwd} commit -q --allow-empty -m theirs": "to main (",
             f"echo x > {box.cwd}/new; git -C {box.cwd} add new": "wrote to the index"}
    for number, (deed, words) in enumerate(cases.items()):
        with Box() as own:
            run = Run(own, deed.replace(str(box.cwd), str(own.cwd)), status=7)
            stop = of_type(run.log, "session_stop")[0]
            expect(stop["reason"] == "head_moved" and words in stop["message"], number, stop)


def what_its_user_does_there_meanwhile_does_not(box):
    """GIT_TRACE2_EVENT is how a call's own git programs are known: others have none."""
    run = Run(box, f"git -C {box.cwd} status >&2; env -u GIT_TRACE2_EVENT git -C {box.cwd} commit -q --allow-empty -m theirs; "
                   f"env -u GIT_TRACE2_EVENT git -C {box.cwd} checkout -q -b person")
    head = run.head()
    expect(head["main"]["branch"] == "person", head)
    if "main_by_call" in head:
        expect(False, "a look by git status counts as a deed", head)


def a_judge_is_told(box):
    run = Run(box, "true")
    calls = [r for r in of_type(run.log, "call_start") if r["purpose"] == "judge"]
    expect(len(calls) == 1 and "In git: " not in prompt_text(run.log, calls[0]), calls)
    with Box() as own:
        run = Run(own, "true", look="git checkout -q -b mine")
        call = next(r for r in of_type(run.log, "call_start") if r["purpose"] == "judge")
        expect("In git: HEAD is at mine (" in prompt_text(run.log, call), prompt_text(run.log, call))


if __name__ == "__main__":
    sys.exit(main([its_own_branch_is_only_recorded, strays_are_adopted, a_detached_head_is_adopted, a_renamed_branch_is_adopted,
                   rewritten_commits_are_adopted_and_the_old_ones_kept, what_a_soft_reset_leaves_in_the_files_is_no_loss,
                   a_folder_that_is_gone_is_made_again_where_its_head_was, commits_left_behind_stop_the_session, another_calls_reset_leaves_them_behind_too, here_the_agents_branch_is_followed,
                   the_users_own_tree_stops_it, what_its_user_does_there_meanwhile_does_not, a_judge_is_told]))
