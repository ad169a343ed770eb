#!/usr/bin/env python3
"""What becomes of a session's branch: diff, merge with conflicts of three kinds, discard, the list of
worktrees, rm."""
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from support import Box, expect, main, records, verified
from worktree_test import git, repository, run, worktrees


def write(box, name, text):
    Path(f"{box.cwd}/{name}").write_text(text)


def commit(box, *files, message="theirs"):
    git(box, "add", "-A", *files)
    git(box, "commit", "-qm", message)


def begun(box, command="echo more >> a", **more):
    """A repository with one session; its branch."""
    repository(box)
    run(box, command, **more)
    return "segue/" + records(box.begun()[-1])[0]["session"]


def asked(box, *words, status=0):
    return box.segue(*words, "--logs", box.logs, status=status)


def diffs(box):
    branch = begun(box, "echo more >> a; echo x > 'n w'", flags=["--commit", "off"])
    done = asked(box, "diff", "last")
    expect(b"+more" in done.stdout and b"+++ b/n w" in done.stdout, done)
    expect(git(box, "ls-files", at=list(worktrees(box))[0]) == "a", "its index is as it was")
    path = list(worktrees(box))[0]
    git(box, "add", "-A", at=path)
    git(box, "commit", "-qm", "mine", at=path)
    expect(b"n w" in asked(box, "diff", "last", "--stat").stdout, "stat")
    value = json.loads(asked(box, "diff", "last", "--json").stdout)
    expect(value["files"] == [{"path": "a", "added": 1, "removed": 0},
                              {"path": "n w", "added": 1, "removed": 0}], value)
    git(box, "worktree", "remove", path)
    expect(b"+more" in asked(box, "diff", "last").stdout, "of the branch alone")
    expect(b"no commit of a movement" in asked(box, "diff", "last", "test", status=2).stderr, "x")
    run(box, "echo again >> a", flags=["--commit", "movement"], name="second.yaml")
    expect(b"+again" in asked(box, "diff", "last", "test").stdout, "of a movement")
    run(box, "echo here >> a", flags=["-W", "here", "--commit", "end"], name="third.yaml")
    expect(b"+here" in asked(box, "diff", "last").stdout, "of commits here")
    del branch


def merges(box):
    branch = begun(box)
    write(box, "b", "theirs\n")
    expect(b"is in main" in asked(box, "merge", "last").stdout, "untracked files are no matter")
    expect(git(box, "show", "main:a") == "one\nmore", "main")
    expect(open(box.cwd + "/a").read() == "one\nmore\n", "its folder")
    expect(git(box, "rev-list", "--merges", "--count", "main") == "1", "a merge")
    expect(b"is already merged" in asked(box, "merge", "last").stdout, "twice")
    run(box, "echo second > c", name="second.yaml")
    git(box, "branch", "other")
    done = json.loads(asked(box, "merge", "last", "--squash", "--into", "other", "--json").stdout)
    expect(git(box, "log", "-1", "--format=%H %P", "other").split() ==
           [done["commit"], git(box, "rev-parse", "main")], done)
    expect(not os.path.exists(box.cwd + "/c"), "main is another branch")
    write(box, "a", "mine\n")
    done = asked(box, "merge", "last", status=2)
    expect(b"uncommitted changes" in done.stderr, done.stderr)
    expect(b"there is no branch nothing" in asked(box, "merge", "last", "--into", "nothing",
                                                  status=2).stderr, "no branch")
    del branch


def conflicts(command, theirs, files):
    """A conflict leaves everything as it was and says which files."""
    with Box() as box:
        branch = begun(box, command)
        theirs(box)
        before = [git(box, "rev-parse", "HEAD"), git(box, "status", "--porcelain"), git(box, "ls-files", "-s")]
        done = asked(box, "merge", "last", status=1)
        said = [line.strip() for line in done.stderr.decode().splitlines()[2:]]
        expect(said == files, said, done.stderr)
        done = asked(box, "merge", "last", "--json", status=1)
        expect(json.loads(done.stdout)["conflicts"] == files, done.stdout)
        after = [git(box, "rev-parse", "HEAD"), git(box, "status", "--porcelain"), git(box, "ls-files", "-s")]
        expect(before == after, before, after)
        expect(not os.path.exists(box.cwd + "/.git/MERGE_HEAD"), "a merge is under way")
        expect(git(box, "rev-parse", branch), branch)


def conflict_of_contents():
    def theirs(box):
        write(box, "a", "one\ntheirs\n")
        commit(box)
    conflicts("echo ours >> a", theirs, ["a"])


def conflict_with_a_removal():
    def theirs(box):
        git(box, "rm", "-q", "a")
        git(box, "commit", "-qm", "gone")
    conflicts("echo ours >> a", theirs, ["a"])


def conflict_of_two_new_files():
    def theirs(box):
        write(box, "n w", "theirs\n")
        write(box, "été", "theirs\n")
        commit(box)
    conflicts("echo ours > 'n w'; echo ours > été", theirs, ["n w", "été"])


def resolves(box):
    """The workflow goes on where both sides are merged, and what it makes of that is merged."""
    branch_of = begun(box, "echo ours >> a; touch made")
    write(box, "a", "one\ntheirs\n")
    commit(box)
    before = git(box, "rev-parse", "main")

    def replies(tag):
        return box.file("resolve.json", json.dumps({"replies": [
            {"movement": "fix", "text": "the first session's"},
            {"movement": "fix", "contains": "- a\n", "text": f"[FIX:{tag}]",
             "write": {"a": "one\ntheirs\nours\n"}}]}))
    done = asked(box, "merge", "last", "--resolve", "tset", "-s", replies(1), status=2)
    expect(b"did you mean" in done.stderr or b"has no movement" in done.stderr, done.stderr)
    expect(git(box, "rev-parse", "main") == before, "nothing was changed")
    done = asked(box, "merge", "last", "--resolve", "fix", "-s", replies(1))
    expect(b"is in main" in done.stdout, done.stdout, done.stderr)
    log = records(box.begun()[-1])
    expect(log[0]["config"]["workspace"] == {"base": git(box, "rev-parse", branch_of), "merge": before},
           log[0]["config"])
    expect(git(box, "show", "main:a") == "one\ntheirs\nours\nours", "a")
    own = "segue/" + log[0]["session"]
    expect(git(box, "log", "-1", "--format=%P", own).split() == [git(box, "rev-parse", branch_of), before],
           "its commit is the merge")
    expect(git(box, "status", "--porcelain", "--untracked-files=no") == "", "main tree")
    expect(b"is already merged" in asked(box, "merge", branch_of[6:]).stdout, "the first one too")
    verified(box, *box.begun())


def a_resolution_that_changes_nothing_is_a_merge_too(box):
    begun(box, "true > a; echo ours > a")
    write(box, "a", "theirs\n")
    commit(box)
    replies = box.file("resolve.json", json.dumps({"replies": [
        {"movement": "fix", "text": "the first session's"},
        {"movement": "fix", "text": "[FIX:1]", "write": {"a": "ours\n"}}]}))
    asked(box, "merge", "last", "--resolve", "fix", "-s", replies, "-q")
    expect(git(box, "show", "main:a") == "ours", "ours")
    expect(b"is already merged" in asked(box, "merge", "last").stdout, "twice")


def a_fork_goes_on_from_the_branch(box):
    parent = begun(box, "echo more >> a")
    done = asked(box, "fork", "last", "--from", "test")
    made = next(r["data"] for r in records(box.begun()[-1]) if r.get("event") == "made")
    expect(made["base"] == git(box, "rev-parse", parent) and made["branch"] != parent, made, done)
    expect(git(box, "show", made["branch"] + ":a") == "one\nmore\nmore", "both sessions' work")
    expect(git(box, "status", "--porcelain") == "", "main tree")
    run(box, name="named.yaml", flags=["--branch", "mine"])
    asked(box, "fork", "last", "--from", "test")


def branch(box, name, deed):
    """A branch beside main with one commit."""
    git(box, "checkout", "-qb", name)
    deed()
    commit(box, message=name)
    git(box, "checkout", "-q", "main")


def integrated(box, *branches, stdin=None, status=0):
    return box.segue("integrate", *branches, stdin=stdin, status=status)


def integrates(box):
    """All that merge, then the one in conflict, whose files are told until they are resolved."""
    repository(box)
    branch(box, "b 1".replace(" ", "-"), lambda: write(box, "b", "b\n"))
    branch(box, "other", lambda: write(box, "a", "one\nother\n"))
    branch(box, "third", lambda: write(box, "a", "one\nthird\n"))
    branch(box, "last", lambda: write(box, "c", "c\n"))
    done = integrated(box, stdin=b"b-1\nother\nthird\nlast\n", status=1)
    expect(b"merged: other\nnot merged: third\nthese files are in conflict:\n  a\n" in done.stdout,
           done.stdout)
    expect(b"<<<<<<<" in open(box.cwd + "/a", "rb").read(), "no marks")
    done = integrated(box, "third", "last", status=1)
    expect(b"these files are in conflict:\n  a\n" in done.stdout, "told once more", done)
    write(box, "a", "one\nother\nthird\n")
    done = integrated(box, stdin=b"b-1\nother\nthird\nlast\n")
    expect(b"resolved" in done.stdout and b"merged: last" in done.stdout, done.stdout)
    expect(git(box, "rev-list", "--merges", "--count", "main") == "4", "a merge each")
    expect(git(box, "status", "--porcelain") == "", "all is committed")
    before = git(box, "rev-parse", "HEAD")
    integrated(box, "b-1", "other", "third", "last")
    expect(git(box, "rev-parse", "HEAD") == before, "twice is once")
    expect(b"there is nothing to merge" in integrated(box, stdin=b"").stdout, "none")


def integrates_conflicts_of_other_kinds():
    def removal(box):
        git(box, "rm", "-q", "a")

    def two_new(box):
        write(box, "n w", "theirs\n")
    for theirs, ours, name in ((removal, lambda box: write(box, "a", "ours\n"), "a"),
                               (two_new, lambda box: write(box, "n w", "ours\n"), "n w")):
        with Box() as box:
            repository(box)
            branch(box, "x", lambda: theirs(box))
            ours(box)
            commit(box)
            done = integrated(box, "x", status=1)
            expect(f"  {name}\n".encode() in done.stdout, done.stdout)
            write(box, name, "both\n")
            integrated(box, "x")
            expect(git(box, "show", "HEAD:" + name) == "both", name)


def integrates_nothing_of_this(box):
    repository(box)
    branch(box, "x", lambda: write(box, "b", "b\n"))
    for hostile in ("none", "--output=x", "-x", "../x", "x..x", "a b"):
        expect(b"there is no branch" in integrated(box, "--", hostile, status=2).stderr, hostile)
    write(box, "a", "mine\n")
    expect(b"uncommitted" in integrated(box, "x", status=2).stderr, "dirty")
    git(box, "checkout", "-q", "a")
    # A merge of somebody else's is not touched; nor one of segue's that was cut off here.
    branch(box, "y", lambda: write(box, "a", "y\n"))
    write(box, "a", "z\n")
    commit(box)
    git(box, "merge", "y", ok=False)
    expect(b"a merge is in progress" in integrated(box, "y", status=2).stderr, "his own")
    git(box, "merge", "--abort")
    Path(box.cwd + "/.git/SEGUE_MERGE").write_text("merging " + git(box, "rev-parse", "y") + "\n")
    write(box, "a", "mine\n")
    expect(b"a is neither as it was nor" in integrated(box, "y", status=2).stderr, "in the main tree")
    git(box, "checkout", "-q", "a")
    expect(b"these files are in conflict" in integrated(box, "y", status=1).stdout, "and again")
    git(box, "merge", "--abort")
    box.segue("integrate", "x", "--cwd", box.dir, status=2, err=b"not a git repository")
    box.segue("integrate", "x", "--cwd", box.dir + "/nowhere", status=2)


MINE = "git checkout -q -b mine"
ONE = "echo one > w1; git add -A; git commit -qm one"
TWO = "echo two > w2; git add -A; git commit -qm two"
# What an agent does in its worktree, where that then stands, and the files that are to come into main.
STRAYS = [
    (f"{MINE}; {ONE}", "mine", ["w1"]),
    (f"{MINE}; echo one > w1", "mine", ["w1"]),
    (f"{ONE}; {MINE}; {TWO}", "mine", ["w1", "w2"]),
    (f"git checkout -q --detach; {ONE}; {TWO}", "a detached HEAD", ["w1", "w2"]),
    (f"{ONE}; git checkout -q --detach; echo two > w2", "a detached HEAD", ["w1", "w2"]),
    (f"{ONE}; git branch -m other/name", "other/name", ["w1"]),
    ("git branch -m other/name; echo one > w1", "other/name", ["w1"]),
    (f"{MINE}; {ONE}; git branch -D $(git branch --list --format='%(refname:short)' 'segue/*')", "mine", ["w1"]),
]


def strayed(box, deed):
    """A session's worktree in which somebody has done something since its end: its branch and path."""
    branch_of = begun(box)
    path = list_of(box)[0]
    subprocess.run(["sh", "-ec", deed], cwd=path, env=box.env, check=True, capture_output=True)
    return branch_of, path


def strays_are_taken_over():
    """The session's branch follows its worktree, which is said; what is said to be merged is there."""
    for number, (command, place, files) in enumerate(STRAYS):
        with Box() as box:
            own, path = strayed(box, command + "; git add -A; git commit -qm more || true")
            at = git(box, "rev-parse", "HEAD", at=path)
            words = (["merge", "last"], ["merge", "last", "--squash"], ["merge", "last", "--json"])[number % 3]
            done = asked(box, *words)
            said = (done.stdout + done.stderr).decode()
            expect(f"{own} has the work of its worktree ({place}, {at[:10]})" in said, command, words, done)
            if "--json" in words:
                expect(json.loads(done.stdout)["commit"] == git(box, "rev-parse", "main"), done)
            expect(git(box, "rev-parse", own) == at, command, "its branch")
            for name in files:
                expect(os.path.exists(f"{box.cwd}/{name}"), command, name)
            again = asked(box, "merge", "last", *(["--squash"] if "--squash" in words else []))
            expect(b" is already merged" in again.stdout, command, again)
            if "--squash" not in words:
                git(box, "merge-base", "--is-ancestor", at, "main")
            verified(box, *box.begun())


def no_strays():
    """What merges as it is: HEAD is behind, or at what the target has; or the folder is gone."""
    for command in (f"{ONE}; git checkout -q --detach HEAD~1", f"{ONE}; git checkout -q -b mine",
                    f"{ONE}; git checkout -q --detach main; git reset -q"):
        with Box() as box:
            strayed(box, command)
            asked(box, "merge", "last")
            expect(os.path.exists(box.cwd + "/w1"), command)
    with Box() as box:
        _, path = strayed(box, f"git checkout -q -b mine; {ONE}")
        shutil.rmtree(path)
        expect(b"(mine, " in asked(box, "merge", "last").stdout, "its folder is gone")
        git(box, "worktree", "prune")
        git(box, "branch", "-D", "mine")
        expect(b"is already merged" in asked(box, "merge", "last").stdout, "nothing is known of it")


def two_that_have_grown_apart(box):
    own, path = strayed(box, f"{ONE}; git checkout -q -b mine main; {TWO}")
    before = git(box, "rev-parse", "main")
    both = [git(box, "rev-parse", name)[:10].encode() for name in ("mine", own)]
    for words in (["merge", "last"], ["merge", "last", "--squash"], ["merge", "last", "--json"]):
        said = asked(box, *words, status=2).stderr
        expect(b"stands on mine" in said and both[0] in said and both[1] in said, words, said)
    done = box.segue("integrate", own, "--cwd", box.cwd, status=2)
    expect(b"stands on mine" in done.stderr and both[1] in done.stderr, done)
    expect(git(box, "rev-parse", "main") == before, "nothing is merged")
    git(box, "merge", "-q", own, at=path)
    asked(box, "merge", "last")
    expect(os.path.exists(box.cwd + "/w1") and os.path.exists(box.cwd + "/w2"), "both")


def another_branch_than_at_the_start():
    """Merged into without --into is what was checked out when the session began, or nothing."""
    for deed, into in ((["checkout", "-qb", "stolen"], "main"), (["checkout", "-q", "--detach"], "main"),
                       (["checkout", "-qb", "stolen"], "stolen")):
        with Box() as box:
            own = begun(box)
            git(box, *deed)
            before = git(box, "for-each-ref")
            for words in ([], ["--squash"]):
                said = asked(box, "merge", "last", *words, status=2).stderr.decode()
                expect("--into main" in said and ("stolen" not in deed or "--into stolen" in said), said)
            expect(git(box, "for-each-ref") == before, "nothing is changed")
            asked(box, "merge", "last", "--into", into)
            expect(git(box, "show", into + ":a") == "one\nmore", into)
            expect(git(box, "merge-base", "--is-ancestor", own, into) == "", into)
    with Box() as box:
        repository(box)
        git(box, "checkout", "-q", "--detach")
        run(box)
        expect(b"give --into BRANCH" in asked(box, "merge", "last", status=2).stderr, "none")
        git(box, "checkout", "-q", "main")
        expect(b"--into main merges" in asked(box, "merge", "last", status=2).stderr, "another")


def checks_of_merges(box):
    """A branch is moved only if the check passes; where it does not, all is as it was; others go on."""
    repository(box)
    Path(box.cwd + "/tool").write_text("exit $1\n")
    git(box, "branch", "other")
    box.config("workspace: {copy: [tool]}\n")
    for name in ("good", "bad", "fine"):
        run(box, f"echo {name} > {name}", name=name + ".yaml")
    logs = box.begun()
    write(box, "mine", "not git's\n")
    before, status = git(box, "rev-parse", "main"), git(box, "status", "--porcelain")
    check = "pwd; test -d .git || sh tool 0 && seq 100; if test -e bad; then sh tool 5; fi"
    done = asked(box, "merge", logs[1], "--check", check, status=3)
    said = done.stderr.decode()
    expect("is put back" in said and "ended with 5" in said and "  100\n" in said and "  80\n" not in said, done)
    expect((before, status) == (git(box, "rev-parse", "main"), git(box, "status", "--porcelain")), "as before")
    done = asked(box, "merge", *logs, "--check", check, "--json", status=3)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    expect([t["put_back"] for t in told] == [False, True, False] and [t["checked"]["exit"] for t in told] == [0, 5, 0],
           told)
    expect(told[1]["commit"] == told[0]["commit"], "it stays at the one before")
    expect(git(box, "ls-tree", "--name-only", "main").split() == ["a", "fine", "good"], "main")
    expect(git(box, "status", "--porcelain") == status and not os.path.exists(box.cwd + "/bad"), "its tree")
    asked(box, "merge", logs[1], "--into", "other", "--check", "false", status=3)
    expect(git(box, "rev-parse", "other") == before, "other")
    asked(box, "merge", logs[1], "--into", "other", "--check", "test -e bad")
    expect(git(box, "ls-tree", "--name-only", "other").split() == ["a", "bad"], "other")
    expect(len(list_of(box)) == 3, "the check's worktrees are gone", list_of(box))


def checks_of_branches():
    """One branch after the other in the same tree; the one that breaks it is put back."""
    for own in (False, True):
        with Box() as box:
            repository(box)
            for name in ("good", "bad", "fine"):
                branch(box, name, lambda: write(box, name, name + "\n"))
            at = box.cwd
            if own:
                at = box.dir + "/tree"
                git(box, "worktree", "add", "-q", "-b", "own", at)
            Path(at + "/mine").write_text("not git's\n")
            done = box.segue("integrate", "good", "bad", "fine", "--cwd", at, "--check",
                             "test -e good && echo said && test ! -e bad", status=3,
                             env={"SEGUE_SESSION": "x"} if own else None)
            expect(done.stdout == b"merged: good\nput back: bad, the check ended with 1:\n  said\nmerged: fine\n", done)
            expect(sorted(os.listdir(at)) == sorted([".git", "a", "fine", "good", "mine"]), os.listdir(at))
            expect(git(box, "log", "--format=%s", "--merges", at=at).splitlines() == ["Merge fine", "Merge good"], at)
            expect(git(box, "status", "--porcelain", at=at) == "?? mine", at)
            done = box.segue("integrate", "bad", "fine", "--cwd", at, "--check", "false", "--json", status=3)
            told = json.loads(done.stdout)
            expect(told["merged"] == ["fine"] and told["checked"] == [{"branch": "bad", "exit": 1}] and
                   told["put_back"] == [{"branch": "bad", "exit": 1, "output": ""}], told)


def locks_left_behind(box):
    """An index.lock that nobody holds is named with its age before anything is changed; a held one is not."""
    begun(box)
    lock, before = Path(box.cwd + "/.git/index.lock"), git(box, "rev-parse", "main")
    branch(box, "x", lambda: write(box, "b", "b\n"))
    lock.write_text("")
    os.utime(lock, (time.time() - 7200, time.time() - 7200))
    for words in (["merge", "last", "--logs", box.logs], ["integrate", "x"]):
        said = box.segue(*words, status=2).stderr.decode()
        expect("2 h ago" in said and f"rm '{lock}'" in said, said)
        with open(lock, "rb"):
            said = box.segue(*words, status=2).stderr.decode()
            expect("a git is at work" in said and "rm '" not in said, said)
    expect(git(box, "rev-parse", "main") == before, "nothing is changed")
    lock.unlink()
    asked(box, "merge", "last")


def odd_repositories():
    """Where branches are checked out: nowhere, in a bare repository, in another worktree, in one that is gone."""
    with Box() as box:
        repository(box)
        git(box, "clone", "-q", "--bare", ".", box.dir + "/b are.git")
        bare, tree = box.dir + "/b are.git", box.dir + "/wo\nr k"
        git(box, "worktree", "add", "-q", "-b", "side", tree, at=bare)
        run(box, cwd=tree)
        asked(box, "merge", "last")
        expect(Path(tree + "/a").read_text() == "one\nmore\n", "in a worktree of a bare one")
        asked(box, "merge", "last", "--into", "main")
        expect(git(box, "show", "main:a", at=bare) == "one\nmore", "the bare one's")
    with Box() as box:
        begun(box)
        git(box, "worktree", "add", "-q", "-b", "side", box.dir + "/side")
        asked(box, "merge", "last", "--into", "side")
        expect(Path(box.dir + "/side/a").read_text() == "one\nmore\n", "where it is checked out")
        git(box, "worktree", "add", "-q", "-b", "gone", box.dir + "/gone")
        shutil.rmtree(box.dir + "/gone")
        expect(b"git worktree prune" in asked(box, "merge", "last", "--into", "gone", status=2).stderr, "gone")


def commits_that_only_head_holds():
    """discard and rm, of one or many, with and without --force, give them a ref, and say which."""
    stray = f"git checkout -q --detach; {TWO}"
    for words, gone in ((["discard", "last", "--yes"], False), (["discard", "last", "--yes"], True),
                        (["rm", "last", "--force"], False), (["rm", "last"], True),
                        (["rm", "--older-than", "0s"], False)):
        with Box() as box:
            begun(box, ONE)
            log, path = box.begun()[0], list_of(box)[0]
            subprocess.run(["sh", "-ec", stray], cwd=path, env=box.env, check=True)
            at = git(box, "rev-parse", "HEAD", at=path)
            if gone:
                shutil.rmtree(path)
            done = asked(box, *words)
            ref = f"refs/segue/{os.path.basename(log).split('.')[0]}/1"
            expect(f"{at[:10]} is on no other branch and stays as {ref}\n" in done.stderr.decode(), words, done)
            expect(list_of(box) == [] and git(box, "rev-parse", ref) == at, words)
            expect(b"commit" not in git(box, "fsck", "--unreachable", "--no-reflogs").encode(), words)


def list_of(box):
    return [line[9:] for line in git(box, "worktree", "list", "--porcelain").splitlines()[1:]
            if line.startswith("worktree ")]


def what_a_branch_holds_may_go():
    with Box() as box:
        begun(box, f"{MINE}; {ONE}")
        done = asked(box, "discard", "last", "--yes")
        expect(b"this branch stays, on which its worktree stands: mine" in done.stderr, done)
        expect(git(box, "branch", "--format=%(refname:short)").split() == ["main", "mine"], "branches")
        expect(git(box, "ls-tree", "--name-only", "mine").split() == ["a", "w1"], "mine")
    with Box() as box: # another worktree's folder is away for a while: its HEAD is not forgotten
        begun(box, f"git checkout -q --detach; {ONE}")
        first = list_of(box)[0]
        at = git(box, "rev-parse", "HEAD", at=first)
        os.rename(first, first + ".away")
        run(box, name="second.yaml")
        shutil.rmtree(next(path for path in list_of(box) if path != first))
        asked(box, "discard", "last", "--yes")
        os.rename(first + ".away", first)
        expect(git(box, "rev-parse", "HEAD", at=first) == at, "its HEAD")
    with Box() as box: # untracked files count, whatever git's status is set to
        begun(box)
        git(box, "config", "status.showUntrackedFiles", "no")
        Path(list_of(box)[0] + "/new").write_text("x")
        expect(b"uncommitted" in asked(box, "discard", "last", "--yes", status=2).stderr, "new files")


def discards(box):
    branch = begun(box)
    path = list(worktrees(box))[0]
    expect(b"give --yes" in asked(box, "discard", "last", status=2).stderr, "asks")
    Path(path + "/new").write_text("x")
    done = asked(box, "discard", "last", "--yes", status=2)
    expect(b"uncommitted" in done.stderr and os.path.exists(path), done.stderr)
    asked(box, "discard", "last", "--yes", "--force")
    expect(worktrees(box) == {} and not os.path.exists(path), "worktree")
    expect(git(box, "branch", "--format=%(refname:short)") == "main", "branch", branch)
    asked(box, "discard", "last", "--yes")
    run(box, flags=["-W", "here"])
    expect(b"has no branch of its own" in asked(box, "discard", "last", "-y", status=2).stderr, "x")


def lists(box):
    expect(b"no worktrees in" in asked(box, "worktrees").stderr, "none")
    branch = begun(box)
    path = list(worktrees(box))[0]
    row = json.loads(asked(box, "worktrees", "--json").stdout)
    expect((row["path"], row["branch"], row["dirty"], row["status"]) ==
           (path, branch, False, "complete") and row["bytes"] > 0, row)
    Path(path + "/new").write_text("x")
    out = asked(box, "worktrees").stdout.decode()
    expect("complete" in out and "not committed" in out, out)
    box.config(f"workspace: {{folder: {box.dir}/elsewhere}}\n")
    expect(b"no worktrees in" in asked(box, "worktrees").stderr, "elsewhere")


def removes(box):
    branch = begun(box)
    path = list(worktrees(box))[0]
    session = box.begun()[0]
    Path(path + "/new").write_text("x")
    done = asked(box, "rm", "last", status=2)
    expect(b"uncommitted" in done.stderr and os.path.exists(session), done.stderr)
    os.remove(path + "/new")
    done = asked(box, "rm", "last")
    expect(b"its branch stays" in done.stderr and branch.encode() in done.stderr, done.stderr)
    expect(not os.path.exists(session) and worktrees(box) == {}, "log and worktree")
    expect(git(box, "rev-parse", branch), "the branch")
    run(box, name="second.yaml")
    asked(box, "merge", "last")
    asked(box, "rm", "--older-than", "1h")
    expect(len(box.begun()) == 1, "too young")
    done = asked(box, "rm", "--older-than", "0s")
    expect(done.stdout == b"1 removed\n" and box.begun() == [], done)
    expect(git(box, "branch", "--format=%(refname:short)").split() == ["main", branch],
           "a merged branch goes")
    run(box, "kill -9 $PPID", ok=False, name="third.yaml")
    expect(asked(box, "rm", "--older-than", "0s").stdout == b"0 removed\n", "one that can go on")
    expect(asked(box, "rm", "--older-than", "0s", "--stopped").stdout == b"1 removed\n", "stopped")
    expect(b"name sessions, or give" in asked(box, "rm", status=2).stderr, "nothing named")


ECHO = """
name: echo
movements:
  - {name: say, command: [sh, -c, "COMMAND"], rules: [{condition: when(true), next: COMPLETE}]}
"""


def blobs_go_with_the_last_log(box):
    """Two sessions with the same long output and one with another: each blob goes with the last log
    that names it, but for one that was used a moment ago."""
    def said(letter, task=()):
        flow = box.file("echo.yaml", ECHO.replace(
            "COMMAND", f"head -c 100000 /dev/zero | tr '\\\\0' {letter}"))
        box.segue("run", flow, "--logs", box.logs, *task, status=0)
        return box.begun()[-1]
    long = box.file("long.txt", "t" * 100000)
    first, second = said("a", ["--task-file", long]), said("a")
    other = said("b")
    blobs = box.logs + "/blobs"
    names = os.listdir(blobs)
    expect(len(names) == 3, names)
    for name in names:
        os.utime(f"{blobs}/{name}", (1, 1))
    asked(box, "rm", first)
    expect(len(os.listdir(blobs)) == 2, "its task goes, its output is another's too")
    expect(asked(box, "verify", second).returncode == 0, "verify")
    expect(b"" == asked(box, "rm", second, other).stderr and os.listdir(blobs) == [], "all gone")
    young = said("c")
    done = asked(box, "rm", young)
    expect((b"1 blob stays" in done.stderr) == (len(os.listdir(blobs)) == 1), done.stderr)
    left = os.listdir(blobs)
    said("d")
    said("e")
    for name in os.listdir(blobs):
        os.utime(f"{blobs}/{name}", (1, 1))
    asked(box, "rm", "--older-than", "0s")
    expect(os.listdir(blobs) == left, "those of many at once")


if __name__ == "__main__":
    sys.exit(main([diffs, merges, conflict_of_contents, conflict_with_a_removal,
                   conflict_of_two_new_files, resolves,
                   a_resolution_that_changes_nothing_is_a_merge_too, a_fork_goes_on_from_the_branch, integrates, integrates_conflicts_of_other_kinds,
                   integrates_nothing_of_this, strays_are_taken_over, no_strays, two_that_have_grown_apart,
                   another_branch_than_at_the_start, checks_of_merges, checks_of_branches, locks_left_behind,
                   odd_repositories,
                   commits_that_only_head_holds, what_a_branch_holds_may_go, discards, lists, removes, blobs_go_with_the_last_log]))
