#!/usr/bin/env python3
"""What becomes of a session's branch: diff, merge with conflicts of three kinds, discard, the list of
worktrees, rm.

usage: merge_test.py BUILD_DIR [CASE...]
"""
import json
import os
import sys

sys.dont_write_bytecode = True

from support import Box, expect, main, need_build, records  # noqa: E402
from worktree_test import configure, git, repository, run, worktrees  # noqa: E402


def write(box, name, text):
    with open(f"{box.cwd}/{name}", "w") as f:
        f.write(text)


def commit(box, *files, message="theirs"):
    git(box, "add", "-A", *files)
    git(box, "commit", "-qm", message)


def begun(box, command="echo more >> a", **more):
    """A repository with one session; its branch."""
    repository(box)
    run(box, command, **more)
    return "segue/" + records(box.begun()[-1])[0]["session"]


def asked(box, *words, status=0):
    done = box.segue(*words, "--logs", box.logs)
    expect(done.returncode == status, words, done.returncode, done.stdout, done.stderr)
    return done


def diffs():
    with Box() as box:
        branch = begun(box, "echo more >> a; echo x > 'n w'", flags=["--commit", "off"])
        done = asked(box, "diff", "last")
        expect(b"+more" in done.stdout and b"1 new file that is not" in done.stderr, done)
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


def merges():
    with Box() as box:
        branch = begun(box)
        write(box, "b", "theirs\n")
        expect(b"is in main" in asked(box, "merge", "last").stdout, "untracked files are no matter")
        expect(git(box, "show", "main:a") == "one\nmore", "main")
        expect(open(box.cwd + "/a").read() == "one\nmore\n", "its folder")
        expect(git(box, "rev-list", "--merges", "--count", "main") == "1", "a merge")
        expect(b"is in already" in asked(box, "merge", "last").stdout, "twice")
        run(box, "echo second > c", name="second.yaml")
        git(box, "branch", "other")
        done = json.loads(asked(box, "merge", "last", "--squash", "--into", "other", "--json").stdout)
        expect(git(box, "log", "-1", "--format=%H %P", "other").split() ==
               [done["commit"], git(box, "rev-parse", "main")], done)
        expect(not os.path.exists(box.cwd + "/c"), "main is another branch")
        write(box, "a", "mine\n")
        done = asked(box, "merge", "last", status=2)
        expect(b"changes that are not committed" in done.stderr, done.stderr)
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
        said = [line.strip() for line in done.stderr.decode().splitlines()[1:]]
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


def discards():
    with Box() as box:
        branch = begun(box)
        path = list(worktrees(box))[0]
        expect(b"give --yes" in asked(box, "discard", "last", status=2).stderr, "asks")
        with open(path + "/new", "w") as f:
            f.write("x")
        done = asked(box, "discard", "last", "--yes", status=2)
        expect(b"not committed" in done.stderr and os.path.exists(path), done.stderr)
        asked(box, "discard", "last", "--yes", "--force")
        expect(worktrees(box) == {} and not os.path.exists(path), "worktree")
        expect(git(box, "branch", "--format=%(refname:short)") == "main", "branch", branch)
        asked(box, "discard", "last", "--yes")
        run(box, flags=["-W", "here"])
        expect(b"has no branch of its own" in asked(box, "discard", "last", "-y", status=2).stderr, "x")


def lists():
    with Box() as box:
        expect(b"no worktrees in" in asked(box, "worktrees").stderr, "none")
        branch = begun(box)
        path = list(worktrees(box))[0]
        row = json.loads(asked(box, "worktrees", "--json").stdout)
        expect((row["path"], row["branch"], row["dirty"], row["status"]) ==
               (path, branch, False, "complete") and row["bytes"] > 0, row)
        with open(path + "/new", "w") as f:
            f.write("x")
        out = asked(box, "worktrees").stdout.decode()
        expect("complete" in out and "not committed" in out, out)
        configure(box, f"workspace: {{folder: {box.dir}/elsewhere}}\n")
        expect(b"no worktrees in" in asked(box, "worktrees").stderr, "elsewhere")


def removes():
    with Box() as box:
        branch = begun(box)
        path = list(worktrees(box))[0]
        session = box.begun()[0]
        with open(path + "/new", "w") as f:
            f.write("x")
        done = asked(box, "rm", "last", status=2)
        expect(b"not committed" in done.stderr and os.path.exists(session), done.stderr)
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
        expect(b"name sessions, or say" in asked(box, "rm", status=2).stderr, "nothing named")


if __name__ == "__main__":
    need_build()
    sys.exit(main([diffs, merges, conflict_of_contents, conflict_with_a_removal,
                   conflict_of_two_new_files, discards, lists, removes]))
