#!/usr/bin/env python3
"""What becomes of a session's branch: diff, merge with conflicts of three kinds, discard, the list of
worktrees, rm."""
import json
import os
import shutil
import subprocess
import sys
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
    expect(b"was interrupted" in integrated(box, "y", status=2).stderr, "in the main tree")
    os.remove(box.cwd + "/.git/SEGUE_MERGE")
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


def strays_are_not_merged():
    """merge and pr name where the work is, and the command that brings it to the branch; what they
    say afterwards is so."""
    for command, place, files in STRAYS:
        with Box() as box:
            repository(box)
            done = run(box, command)
            session = records(box.begun()[-1])[0]["session"]
            own, path = "segue/" + session, box.env["XDG_STATE_HOME"] + "/segue/worktrees/" + session
            at = git(box, "rev-parse", "HEAD", at=path)
            expect(f" {at[:10]} on {place}\n" in done.stdout.decode(), command, done.stdout)
            before = git(box, "rev-parse", "main")
            for words in (["merge", "last"], ["merge", "last", "--squash"], ["pr", "last"], ["merge", "last", "--json"]):
                done = asked(box, *words, status=2)
                said = (done.stdout + done.stderr).decode()
                expect(own in said and f"stands on {place} ({at[:10]})" in said and "merged" not in said,
                       command, words, done)
            expect(git(box, "rev-parse", "main") == before, "nothing is merged")
            said = asked(box, "merge", "last", status=2).stderr.decode()
            subprocess.run(said[said.index("git -C "):], shell=True, env=box.env, check=True, capture_output=True)
            expect(b" is in main" in asked(box, "merge", "last").stdout, command)
            for name in files:
                expect(os.path.exists(f"{box.cwd}/{name}"), command, name)
            expect(b" is already merged" in asked(box, "merge", "last").stdout, command)
            git(box, "merge-base", "--is-ancestor", at, "main")
            verified(box, *box.begun())


def no_strays():
    """What merges as it is: HEAD is behind, or at what the target has; or the folder is gone."""
    for command in (f"{ONE}; git checkout -q --detach HEAD~1", f"{ONE}; git checkout -q -b mine",
                    f"{ONE}; git checkout -q --detach main; git reset -q"):
        with Box() as box:
            begun(box, command)
            asked(box, "merge", "last")
            expect(os.path.exists(box.cwd + "/w1"), command)
    with Box() as box:
        begun(box, f"git checkout -q -b mine; {ONE}")
        path = box.env["XDG_STATE_HOME"] + "/segue/worktrees/" + records(box.begun()[-1])[0]["session"]
        shutil.rmtree(path)
        expect(b"stands on mine" in asked(box, "merge", "last", status=2).stderr, "its folder is gone")
        git(box, "merge", "-q", "mine")
        expect(b"is already merged" in asked(box, "merge", "last").stdout, "by hand")
        git(box, "worktree", "prune")
        git(box, "branch", "-D", "mine")
        expect(b"is already merged" in asked(box, "merge", "last").stdout, "nothing is known of it")


def two_that_have_grown_apart(box):
    own = begun(box, f"{ONE}; git checkout -q -b mine main; {TWO}")
    said = asked(box, "merge", "last", status=2).stderr.decode()
    expect("stands on mine" in said, said)
    done = subprocess.run(said[said.index("git -C "):], shell=True, env=box.env, capture_output=True)
    expect(done.returncode != 0 and b"non-fast-forward" in done.stderr, "neither's commits are lost", done)
    git(box, "merge", "-q", own, at=list(worktrees(box))[0])
    subprocess.run(said[said.index("git -C "):said.index(" push ")] + " push . mine:" + own, shell=True,
                   env=box.env, check=True, capture_output=True)
    asked(box, "merge", "last")
    expect(os.path.exists(box.cwd + "/w1") and os.path.exists(box.cwd + "/w2"), "both")


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
                   integrates_nothing_of_this, strays_are_not_merged, no_strays, two_that_have_grown_apart,
                   commits_that_only_head_holds, what_a_branch_holds_may_go, discards, lists, removes, blobs_go_with_the_last_log]))
