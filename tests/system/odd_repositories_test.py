#!/usr/bin/env python3
"""Odd repositories against the commands that work with git: a session with children in worktrees of
their own and their integration, diff, worktrees, fork, merge, discard and rm either work, or say what
to do before anything is changed."""
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from support import expect, flow, main, of_type, records, sample

FLOW = flow("odd_repositories_flow")
LONE = FLOW[:FLOW.index("  - name: parts")] + FLOW[FLOW.index("  - name: work"):]


def git(box, *words, at=None, ok=True, **more):
    done = subprocess.run(["git", *words], cwd=at or box.cwd, env=box.env, capture_output=True, **more)
    expect(done.returncode == 0 or not ok, "git", *words, done.stderr)
    return os.fsdecode(done.stdout).strip("\n")


def identity(box, at=None):
    git(box, "config", "user.name", "Some One", at=at)
    git(box, "config", "user.email", "one@example.org", at=at)


def repository(box, *names, at=None, commits=True):
    os.makedirs(at or box.cwd, exist_ok=True)
    git(box, "init", "-q", "-b", "main", ".", at=at)
    identity(box, at)
    for name in ("a", *names):
        path = os.path.join(os.fsencode(at or box.cwd), os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"one\n")
    if commits:
        git(box, "add", "-A", at=at)
        git(box, "commit", "-qm", "first", at=at)


def segue(box, *words, status=0):
    return box.segue(*words, "--logs", box.logs, status=status)


def run(box, command="echo more >> a", at=None, flow=FLOW, status=0, words=()):
    return segue(box, "run", box.file("flow.yaml", flow.replace('"COMMAND"', json.dumps(command))), "--cwd",
                 at or box.cwd, "--task", "mend it", *words, status=status)


def newest(box):
    return sorted(box.begun(), key=os.path.getmtime)[-1]


def own(log):
    """The session's worktree, by its record."""
    return next(r["data"] for r in of_type(log, "workspace") if r["event"] == "made" and "turn" not in r)


def state(box, at=None):
    """What nobody but the user changes."""
    return [git(box, *words, at=at, ok=False) for words in (
        ["status", "--porcelain", "-z"], ["symbolic-ref", "-q", "HEAD"], ["rev-parse", "HEAD"],
        ["ls-files", "-s", "-z"], ["for-each-ref", "refs/heads/main"])]


def changed(box, base, branch, at=None):
    return set(git(box, "diff", "--name-only", "--no-renames", "-z", base, branch, at=at).split("\0")) - {""}


def every_command(box, at=None, command="echo more >> a", files=("a",), into=None, target="main", bare=False):
    """All of them, one after the other, where all must work. files: which the command changes."""
    before, trees = state(box, at), git(box, "worktree", "list", at=at)
    run(box, command, at)
    first, log = newest(box), records(newest(box))
    made, want = own(log), {"left", "right", *files}
    expect(state(box, at) == before, "the user's tree", before, state(box, at))
    expect(changed(box, made["base"], made["branch"], at) == want, changed(box, made["base"], made["branch"], at))
    expect(git(box, "status", "--porcelain", at=made["path"]) == "", "its own tree")
    told = json.loads(segue(box, "diff", first, "--json").stdout)
    expect(len(told["files"]) == len(want), told["files"], want)
    segue(box, "diff", first)
    segue(box, "diff", first, "left")
    listed = [json.loads(line)["path"] for line in segue(box, "worktrees", "--json").stdout.splitlines()]
    expect(len(listed) == 3 and made["path"] in listed, listed)
    segue(box, "fork", first, "--from", "work")
    second = newest(box)
    again = own(records(second))
    expect(git(box, "rev-parse", made["branch"], at=at) == again["base"], "a fork begins there", again)
    expect(state(box, at) == before, "the user's tree after a fork", before, state(box, at))
    if into is None and not bare:
        segue(box, "merge", first)
    else:
        done = segue(box, "merge", first, status=2)
        expect(b"--into BRANCH" in done.stderr, done.stderr)
        expect(state(box, at) == before, "the user's tree after a refusal", before, state(box, at))
        segue(box, "merge", first, "--into", into or target)
    expect(changed(box, made["branch"], target, at) == set(), "all is in the target")
    if into is None and not bare:
        expect(git(box, "status", "--porcelain", at=at) == "", git(box, "status", "--porcelain", at=at))
    segue(box, "discard", first, "--yes")
    expect(not os.path.exists(made["path"]) and made["branch"] not in git(box, "branch", at=at), "discarded")
    segue(box, "rm", first)
    segue(box, "rm", second, "--force")
    expect(not os.path.exists(again["path"]) and not {first, second} & set(box.begun()), "removed")
    left = [line for line in git(box, "worktree", "list", at=at).splitlines() if line.split()[0] not in trees]
    expect(left == [], left)
    expect(git(box, "rev-list", "--all", "--objects", "--quiet", at=at) == "", "objects are missing")


def plain(box):
    repository(box)
    every_command(box)


def a_detached_head(box):
    repository(box)
    git(box, "checkout", "-q", "--detach")
    every_command(box, into="main")


def a_shallow_clone(box):
    repository(box, at=box.dir + "/whole")
    for n in range(3):
        git(box, "commit", "--allow-empty", "-qm", f"more {n}", at=box.dir + "/whole")
    git(box, "clone", "-q", "--depth", "2", "file://" + box.dir + "/whole", box.cwd)
    identity(box)
    every_command(box)
    expect(git(box, "rev-parse", "--is-shallow-repository") == "true", "shallow")


def sparse(cone):
    def case(box):
        repository(box, "in/a", "in/b", "out/a", "out/deep/b")
        git(box, "sparse-checkout", "set", *(["--cone", "in"] if cone else ["--no-cone", "/a", "/in/", "/left", "/right"]))
        expect(not os.path.exists(box.cwd + "/out"), "sparse")
        every_command(box, command="test ! -e out/deep && echo more >> in/a && mkdir -p out && echo new > out/new",
                      files=("in/a", "out/new"))
        expect(git(box, "ls-tree", "-r", "--name-only", "main", "out").split() == ["out/a", "out/deep/b", "out/new"],
               "what is left out is kept")
        expect(not os.path.exists(box.cwd + "/out"), "still sparse")
    case.__name__ = "a_sparse_tree_" + ("in_cones" if cone else "by_patterns")
    return case


def other_places_and_formats(box):
    repository(box)
    git(box, "branch", "unborn")
    for name, words in (("apart", ["--separate-git-dir", box.dir + "/apart.git"]), ("sha256", ["--object-format=sha256"])):
        at = f"{box.dir}/{name}"
        os.mkdir(at)
        git(box, "init", "-q", "-b", "main", *words, at)
        repository(box, at=at)
        every_command(box, at=at)


def a_branch_in_the_way(box):
    """A branch `segue` leaves no place for segue/ID."""
    repository(box)
    git(box, "branch", "segue")
    before = state(box)
    done = run(box, flow=LONE, status=2)
    expect(b"none can begin with segue/" in done.stderr and b"--branch" in done.stderr, done.stderr)
    expect(state(box) == before and box.begun() == [], "before any harm")
    run(box, flow=LONE, words=["--branch", "work-{id}"])
    segue(box, "merge", newest(box))


def a_bare_parent(box):
    repository(box, at=box.dir + "/whole")
    bare = box.dir + "/bare.git"
    git(box, "clone", "-q", "--bare", box.dir + "/whole", bare)
    identity(box, bare)
    run(box, at=bare)
    first, made = newest(box), own(records(newest(box)))
    for words in (["diff", first], ["diff", first, "--stat"], ["worktrees"], ["fork", first, "--from", "work"],
                  ["merge", first, "--into", "main"], ["discard", first, "--yes"], ["rm", first]):
        segue(box, *words)
    expect(set(git(box, "ls-tree", "--name-only", "main", at=bare).split()) == {"a", "left", "right"}, "merged")
    expect(not os.path.exists(made["path"]), "discarded")


def a_worktree_of_a_bare_repository(box):
    repository(box, at=box.dir + "/whole")
    git(box, "clone", "-q", "--bare", box.dir + "/whole", box.dir + "/bare.git")
    identity(box, box.dir + "/bare.git")
    os.rmdir(box.cwd)
    git(box, "worktree", "add", "-q", box.cwd, "main", at=box.dir + "/bare.git")
    every_command(box)


def a_worktree_of_a_worktree(box):
    repository(box, at=box.dir + "/whole")
    os.rmdir(box.cwd)
    git(box, "worktree", "add", "-q", "-b", "mine", box.cwd, at=box.dir + "/whole")
    before = state(box, box.dir + "/whole")
    every_command(box, target="mine")
    expect(state(box, box.dir + "/whole") == before, "the main tree", before)


def names_of_all_kinds(box):
    odd = [b"with space", b"new\nline", b"bytes \xff\xfe", b"caf\xe9/x", "é".encode(), b"tab\t\"quoted\"", b"-n", b":(top)x"]
    repository(box, *(os.fsdecode(name) for name in odd))
    command = "for f in with* new* bytes* caf*/* ta* ./-n :*; do echo more >> \"$f\"; done; echo x > 'another\nline'"
    every_command(box, command=command,
                  files=[os.fsdecode(name) for name in odd if name != "é".encode()] + ["another\nline"])


def folders_of_all_kinds(box):
    """Where a log cannot name a folder, that is told first."""
    odd = os.fsdecode(os.fsencode(box.dir) + b"/bytes \xff")
    repository(box, at=odd)
    run(box, at=odd, status=2)
    box.env["XDG_STATE_HOME"], home = odd, box.env["XDG_STATE_HOME"]
    repository(box)
    before = state(box)
    done = run(box, flow=LONE, status=1)
    expect(b"not UTF-8" in done.stdout and b"workspace: {folder: DIR}" in done.stdout, done.stdout)
    expect(state(box) == before and git(box, "branch").split() == ["*", "main"], "before any harm")
    for name in ("with space", "new\nline"):
        box.env["XDG_STATE_HOME"] = f"{box.dir}/{name} of state"
        repository(box, at=f"{box.dir}/{name}")
        every_command(box, at=f"{box.dir}/{name}")
    box.env["XDG_STATE_HOME"] = home


def case_only_renames(box):
    repository(box, "Name", "Folder/x")
    every_command(box, command="git mv Name name; git mv Folder folder; echo more >> name",
                  files=("Name", "name", "Folder/x", "folder/x"))
    expect(os.path.exists(box.cwd + "/name") and os.path.exists(box.cwd + "/folder/x"), os.listdir(box.cwd))
    expect(not os.path.exists(box.cwd + "/Name"), os.listdir(box.cwd))


def very_many_files(box):
    count = 100000 if sample.ALL else 10000
    repository(box)
    blob = git(box, "hash-object", "-w", "/dev/null")  # of no bytes: some disks take long to forget blocks
    git(box, "update-index", "--index-info", input="".join(
        f"100644 {blob}\td{n // 1000}/f{n}\n" for n in range(count)).encode())
    git(box, "commit", "-qm", "many")
    git(box, "reset", "-q", "--hard")
    begin = time.monotonic()
    before = state(box)
    run(box, "echo more >> d7/f7000; rm -r d9", flow=LONE)
    first, made = newest(box), own(records(newest(box)))
    expect(len(changed(box, "main", made["branch"])) == 1001, len(changed(box, "main", made["branch"])))
    expect(state(box) == before, "the user's tree")
    for words in (["diff", first, "--stat"], ["worktrees"], ["merge", first], ["discard", first, "--yes"], ["rm", first]):
        segue(box, *words)
    expect(git(box, "status", "--porcelain") == "" and not os.path.exists(box.cwd + "/d9"), "merged")
    return f"{time.monotonic() - begin:.1f} s"


def no_commit_yet(box):
    repository(box, commits=False)
    before = state(box)
    done = run(box, status=1)
    expect(b"has none yet: commit something first" in done.stdout, done.stdout)
    first = newest(box)
    expect(state(box) == before and git(box, "branch") == "" and os.path.exists(box.cwd + "/a"), "before any harm")
    for words in (["diff", first], ["merge", first], ["fork", first, "--from", "parts"]):
        done = segue(box, *words, status=None)
        expect(done.returncode in (1, 2) and b"bad revision" not in done.stderr, words, done.stderr)
    segue(box, "worktrees")
    run(box, flow=LONE, words=["-W", "here"])
    done = segue(box, "diff", newest(box), status=None)
    expect(b"bad revision" not in done.stderr, done.stderr)
    expect(b"no commit yet" in done.stderr + done.stdout, done.stdout, done.stderr)
    segue(box, "rm", newest(box))
    git(box, "add", "-A")
    git(box, "commit", "-qm", "first")
    segue(box, "resume", first)
    segue(box, "merge", first)
    expect(os.path.exists(box.cwd + "/left"), "merged")


def age(path, s=7200):
    os.utime(path, (time.time() - s,) * 2)


def a_lock_left_behind(box):
    """It is told with its age, that nobody holds it and that it may be removed; and it is not removed."""
    repository(box)
    run(box, flow=LONE)
    first, lock = newest(box), Path(box.cwd + "/.git/index.lock")
    lock.write_text("")
    age(lock)
    before = state(box)
    run(box, flow=LONE)
    segue(box, "rm", newest(box), "--force")
    done = segue(box, "merge", first, status=2)
    told = done.stderr.decode()
    expect("index.lock" in told and "2 h" in told and "nobody holds it" in told and "remove" in told, told)
    expect(state(box) == before and lock.exists(), "before any harm")
    lock.unlink()
    segue(box, "merge", first)
    command = "g=$(git rev-parse --git-dir); echo x >> a; : > $g/index.lock; touch -d '3 hours ago' $g/index.lock"
    done = run(box, command, flow=LONE, status=1)
    told = done.stdout.decode()
    expect("index.lock" in told and "3 h" in told and "nobody holds it" in told and "segue resume" in told, told)
    segue(box, "resume", newest(box))
    segue(box, "merge", newest(box))
    segue(box, "discard", newest(box), "--yes")


def a_branch_that_another_worktree_has(box):
    repository(box)
    git(box, "branch", "mine")
    git(box, "worktree", "add", "-q", box.dir + "/other", "mine")
    before = state(box)
    done = run(box, flow=LONE, words=["--branch", "mine"], status=2)
    expect(b"mine exists already" in done.stderr and box.begun() == [], done.stderr)
    run(box, flow=LONE)
    first, made = newest(box), own(records(newest(box)))
    segue(box, "merge", first, "--into", "mine")
    expect(Path(box.dir + "/other/a").read_text() == "one\nmore\n" and state(box) == before, "its folder follows")
    Path(box.dir + "/other/a").write_text("theirs\n")
    run(box, "echo again >> a", flow=LONE, words=["--base", "mine"])
    done = segue(box, "merge", newest(box), "--into", "mine", status=2)
    expect(b"has uncommitted changes" in done.stderr, done.stderr)
    expect(Path(box.dir + "/other/a").read_text() == "theirs\n", "what is not committed")
    git(box, "worktree", "remove", "--force", made["path"])
    git(box, "worktree", "add", "-q", box.dir + "/looks", made["branch"])
    done = segue(box, "discard", first, "--yes", status=None)
    expect(git(box, "rev-parse", "HEAD", at=box.dir + "/looks") and os.path.exists(box.dir + "/looks/a"),
           "somebody else's worktree", done.stderr)


if __name__ == "__main__":
    sys.exit(main([plain, a_detached_head, a_shallow_clone, sparse(True), sparse(False), other_places_and_formats,
                   a_branch_in_the_way, a_bare_parent,
                   a_worktree_of_a_bare_repository, a_worktree_of_a_worktree, names_of_all_kinds, folders_of_all_kinds, case_only_renames,
                   very_many_files, no_commit_yet, a_lock_left_behind, a_branch_that_another_worktree_has]))
