#!/usr/bin/env python3
"""Where a session's work is after what agents do to branches: every command finds it, none says that it
did what it did not, and nothing becomes unreachable."""
import json
import os
import random
import subprocess
import sys
from pathlib import Path

from support import Box, expect, main, of_type, records, sample, verified
from web_odd_test import chained
from worktree_test import git, repository, run, worktrees

C = "c() { for f in $*; do echo $f > $f; git add $f; git commit -qm $f; done; }; "
# what is done in the worktree, the files that are its work, the old commits that get a ref
FOLLOWED = [
    ("git checkout -qb mine; c w1 w2", ["w1", "w2"], []),
    ("git checkout -qb mine; echo x > w1", ["w1"], []),
    ("c w1; git branch -m feature/renamed; c w2", ["w1", "w2"], []),
    ("c w1; git checkout -q --detach; c w2", ["w1", "w2"], []),
    ("c w1; git commit -q --amend -m again", ["w1"], ["w1"]),
    ("c w1 w2; git reset -q --soft HEAD~2; git commit -qm both", ["w1", "w2"], ["w2"]),
    ("c w1 w2; git rebase -q theirs", ["w1", "w2"], ["w2"]),
]


def begun(box, command="true", **more):
    repository(box)
    git(box, "branch", "theirs", git(box, "commit-tree", "-p", "main", "-m", "theirs", "main^{tree}"))
    done = run(box, C + command, **more)
    session = records(box.begun()[-1])[0]["session"]
    return session, box.env["XDG_STATE_HOME"] + "/segue/worktrees/" + session, done


def asked(box, *words, status=0):
    return box.segue(*words, "--logs", box.logs, status=status)


def in_tree(box, path, command):
    subprocess.run(["sh", "-ec", C + command], cwd=path, env=box.env, check=True)


def refs(box, session):
    """subject -> ref"""
    lines = git(box, "for-each-ref", "--format=%(refname) %(subject)", "refs/segue/" + session).splitlines()
    return {subject: ref for ref, subject in (line.split(" ", 1) for line in lines)}


def nothing_is_lost(box):
    said = git(box, "fsck", "--unreachable", "--no-reflogs")
    expect("unreachable commit" not in said, said)


def it_is_followed():
    """By an agent within the session, and by a person after it."""
    for command, files, old in FOLLOWED:
        for by_agent in (True, False):
            with Box() as box:
                session, path, _ = begun(box, command if by_agent else "true")
                if not by_agent:
                    in_tree(box, path, command)
                if git(box, "status", "--porcelain", at=path):
                    expect(b"uncommitted work" in asked(box, "merge", "last", status=2).stderr, command)
                    in_tree(box, path, "git add -A; git commit -qm by-hand")
                done = asked(box, "merge", "last")
                expect(b" is in main" in done.stdout, command, done)
                for name in files:
                    expect(os.path.exists(f"{box.cwd}/{name}"), command, name)
                head = git(box, "rev-parse", "HEAD", at=path)
                git(box, "merge-base", "--is-ancestor", head, "main")
                expect(git(box, "rev-parse", "segue/" + session) == head, command, "its branch")
                expect(sorted(refs(box, session)) == old, command, refs(box, session))
                if not by_agent:
                    said = (done.stdout + done.stderr).decode()
                    expect(all(ref in said for ref in refs(box, session).values()), command, done)
                asked(box, "discard", "last", "--yes")
                nothing_is_lost(box)
                verified(box, *box.begun())


def what_is_left_behind_needs_a_person():
    """Both commits are named, nothing is merged, and the told command brings it back."""
    for command, back in (("c w1 w2; git reset -q --hard HEAD~2", " reset --hard "),
                          ("c w1; git checkout -q theirs", " checkout segue/"),
                          ("git checkout -q --detach; c w1; git checkout -q theirs", " reset --hard ")):
        with Box() as box:
            session, path, _ = begun(box)
            in_tree(box, path, "git commit -q --allow-empty -m own; " + command)
            log = git(box, "log", "-g", "--format=%h %s", "--abbrev=10", at=path).splitlines()
            lost = next(line.split()[0] for line in log if line.endswith((" w1", " w2")))
            head, before = git(box, "rev-parse", "HEAD", at=path), git(box, "rev-parse", "main")
            for words in (["merge", "last"], ["pr", "last"]):
                said = asked(box, *words, status=2).stderr.decode()
                expect(head[:10] in said and lost in said and back in said, command, said)
            expect(git(box, "rev-parse", "main") == before, "nothing is merged")
            deed = said[said.index("git -C "):said.index(" goes back")]
            subprocess.run(deed, shell=True, env=box.env, check=True, capture_output=True)
            asked(box, "merge", "last")
            expect(os.path.exists(box.cwd + "/w1"), command, "after: " + deed)


def it_may_be_given_up():
    """discard, rm and rm --older-than give a ref to what is left behind; so does a branch by hand."""
    for words in (["discard", "last", "--yes"], ["rm", "last"], ["rm", "--older-than", "0s"]):
        with Box() as box:
            session, path, _ = begun(box, "c w0")
            in_tree(box, path, "c w1; git commit -q --amend -m w2; git reset -q --hard HEAD~1; "
                               "git checkout -q --detach; c w3; git checkout -q HEAD~1; git stash -q || true")
            done = asked(box, *words)
            kept = refs(box, session)
            expect(set(kept) >= {"w1", "w2", "w3"}, kept)
            expect(all(ref.encode() in done.stderr for ref in kept.values()), done)
            expect(worktrees(box) == {} and not os.path.exists(path), "the worktree is gone")
            nothing_is_lost(box)
    with Box() as box:
        session, path, _ = begun(box)
        in_tree(box, path, "c w1 w2; git branch aside; git reset -q --hard HEAD~1")
        done = asked(box, "merge", "last")
        expect(b"aside (" in done.stderr, done)
        expect(not os.path.exists(box.cwd + "/w2") and os.path.exists(box.cwd + "/w1"), "what HEAD has")
        expect(b"this branch stays, which has work of it: aside" in asked(box, "discard", "last", "--yes").stderr, "named")
        nothing_is_lost(box)


def a_lock_of_a_killed_git_is_in_nobodys_way():
    """One of the session's own refs, that nobody holds; else it is told with its age."""
    for words in (["merge", "last"], ["discard", "last", "--yes"], ["rm", "last"]):
        with Box() as box:
            session, path, _ = begun(box, "c w0")
            in_tree(box, path, "c w1; git checkout -q --detach; c w2; git commit -q --amend -m w3")
            for ref in (f"refs/heads/segue/{session}", f"refs/segue/{session}/1", f"refs/segue/{session}/2"):
                os.makedirs(os.path.dirname(f"{box.cwd}/.git/{ref}"), exist_ok=True)
                Path(f"{box.cwd}/.git/{ref}.lock").touch()
            if words[0] == "merge":
                with open(f"{box.cwd}/.git/refs/heads/segue/{session}.lock", "rb"):
                    expect(f"process {os.getpid()} holds it" in asked(box, *words, status=2).stderr.decode(), "held")
            asked(box, *words)
            nothing_is_lost(box)


def refs_are_listed_and_removed(box):
    session, path, _ = begun(box, "c w1 w2")
    expect(b"no refs of segue in" in asked(box, "worktrees", "--refs", "--cwd", box.cwd).stderr, "none yet")
    in_tree(box, path, "git checkout -q --detach HEAD~1; GIT_COMMITTER_DATE='2001-01-01 00:00:00 +0000' git commit -q "
                       "--allow-empty -m 'of old'")
    asked(box, "discard", "last", "--yes")
    listed = asked(box, "worktrees", "--refs", "--cwd", box.cwd).stdout.decode().splitlines()
    expect(len(listed) == 2 and all(f"refs/segue/{session}/" in line and "  0m  " in line for line in listed), listed)
    expect(any(line.endswith("  of old") for line in listed), listed)
    rows = [json.loads(line) for line in asked(box, "worktrees", "--refs", "--json", "-C", box.cwd).stdout.splitlines()]
    expect({git(box, "log", "-1", "--format=%s", row["commit"]) for row in rows} == {row["subject"] for row in rows}, rows)
    expect(not any(row["removed"] for row in rows) and len(rows) == 2, rows)
    # their age is that of the ref, not of the commit
    words = ["worktrees", "--refs", "--cwd", box.cwd, "--remove", "--older-than"]
    expect(asked(box, *words, "1h").stdout == b"" and len(refs(box, session)) == 2, "too young")
    expect(b"--remove needs --older-than" in asked(box, *words[:-1], status=2).stderr, "all of them?")
    done = asked(box, *words, "0s")
    expect(done.stdout.count(b"removed: refs/segue/") == 2 and refs(box, session) == {}, done)


def a_fork_begins_where_the_work_is(box):
    session, path, _ = begun(box, "c w1; git checkout -q --detach")
    in_tree(box, path, "git checkout -q --detach; c w2")
    head = git(box, "rev-parse", "HEAD", at=path)
    asked(box, "fork", "last", "--from", "test", "--cwd", box.cwd, "--scenario", box.dir + "/replies.json")
    made = [r["data"] for r in of_type(records(box.begun()[-1]), "workspace") if r["event"] == "made"]
    expect(made and made[0]["base"] == head and os.path.exists(made[0]["path"] + "/w2"), made)
    expect(session not in made[0]["branch"], made)


HERE = """
name: here
commit: movement
movements:
  - name: work
    command: [sh, -c, "echo more >> a; echo new > fresh; rm -f gone; echo x > .env"]
    edit: true
    rules: [{condition: when(true), next: ship}]
  - name: ship
    command: ["true"]
    approve: true
    rules: [{condition: when(true), next: COMPLETE}]
"""


def every_diff_has_one_base(box):
    """Whatever was committed: inbox, diff and its JSON show the same lines, new files among them."""
    for commit in ("movement", "off"):
        with Box() as box:
            repository(box)
            for name, text in (("gone", "old\n"), (".gitignore", ".env\n")):
                Path(f"{box.cwd}/{name}").write_text(text)
            git(box, "add", "-A")
            git(box, "commit", "-qm", "second")
            base = git(box, "rev-parse", "HEAD")
            Path(box.cwd + "/mine").write_text("not the session's\n")
            box.segue("run", box.file("here.yaml", HERE), "--cwd", box.cwd, "--commit", commit, "--logs", box.logs, status=7)
            item = json.loads(asked(box, "inbox", "--diff", "--json").stdout.splitlines()[0])
            diff = asked(box, "diff", "last").stdout.decode()
            told = json.loads(asked(box, "diff", "last", "--json").stdout)
            expect(item["diff"] == diff == told["diff"] and told["from"] == base, commit, item, diff, told)
            for line in ("+more", "+new", "-old", "deleted file mode"):
                expect(line in diff, commit, line, diff)
            expect("mine" not in diff and ".env" not in diff, diff)
            expect([(f["path"], f["added"], f["removed"]) for f in told["files"]] ==
                   [("a", 1, 0), ("fresh", 1, 0), ("gone", 0, 1)], told["files"])


def names_that_are_no_branch(box):
    repository(box)
    for name in ("@", "HEAD", "refs/heads/main", "x.lock", "a.lock/b", "a\tb"):
        done = run(box, ok=False, flags=["-W", "worktree", "--branch", name])
        expect(done.returncode == 2 and b"must be the name of a branch" in done.stderr, name, done)
    expect(git(box, "for-each-ref", "--format=%(refname)") == "refs/heads/main", "branches")


def without_a_commit(box):
    repository(box, commits=False)
    box.segue("run", box.file("here.yaml", HERE), "--cwd", box.cwd, "--commit", "off", "--logs", box.logs, status=7)
    expect(b"there is no commit yet in" in asked(box, "diff", "last", status=2).stderr, "diff")


def a_part_of_a_worktree_goes_too(box):
    """An agent, or a git that was killed, has removed its .git; a folder that a log only names stays."""
    session, path, _ = begun(box, "c w1")
    os.remove(path + "/.git")
    asked(box, "discard", "last", "--yes", "--force")
    expect(not os.path.exists(path) and worktrees(box) == {}, "its worktree")
    run(box, "true", name="flow.yaml")
    other, log = box.dir + "/other", box.begun()[-1]
    git(box, "worktree", "add", "-q", other)

    def steer(record):
        if record["type"] == "workspace" and "path" in record["data"]:
            record["data"]["path"] = other
    chained(records(log), log + ".new", steer)
    os.replace(log + ".new", log)
    done = asked(box, "discard", "last", "--yes", "--force", status=2)
    expect(os.path.exists(other + "/a") and other.encode() in done.stderr, "somebody else's", done)


DEEDS = ["echo $RANDOM > f$N; git add -A; git commit -qm c$N", "echo $RANDOM > f$N; git add -A; git commit -qm c$N",
         "echo dirty >> a", "git checkout -q -b b$N", "git checkout -q --detach", "git branch -m r$N",
         "git checkout -q $(git branch --format='%(refname:short)' | grep -v ^main | shuf -n1)", "git reset -q --hard HEAD~1",
         "git reset -q --soft HEAD~1", "git stash -qu", "git stash pop -q", "git merge -q -m m$N theirs",
         "git commit -q --amend -m a$N", "git rebase -q theirs || git rebase --abort", "git cherry-pick theirs",
         "git branch -D $(git branch --format='%(refname:short)' | grep -v -e ^main -e theirs | shuf -n1)",
         "git tag t$N", "git checkout -q main~0", "git rebase -q --force-rebase HEAD~1", "rm -rf $PWD",
         "git worktree remove --force $PWD"]
ENDS = [["discard", "last", "--yes", "--force"], ["rm", "last", "--force"], ["rm", "last"], ["discard", "last", "--yes"]]


def random_agents(box):
    """Whatever they do, what segue does afterwards loses none of their commits, nor claims any."""
    repository(box)
    git(box, "branch", "theirs", git(box, "commit-tree", "-p", "main", "-m", "theirs", "main^{tree}"))
    for seed in sample.draw("random agents", range(300), 25):
        draw = random.Random(seed)
        run(box, "true", name="flow.yaml")
        session = records(box.begun()[-1])[0]["session"]
        path = box.env["XDG_STATE_HOME"] + "/segue/worktrees/" + session
        did = [draw.choice(DEEDS[:-2]) for _ in range(draw.randrange(1, 12))] + draw.sample(DEEDS[-2:], draw.random() < 0.2)
        for n, deed in enumerate(did):
            subprocess.run(["bash", "-c", f"RANDOM={seed}; N={seed}-{n}; {deed}"], cwd=path if os.path.isdir(path) else "/",
                           env=box.env, capture_output=True)
        name = "HEAD" if os.path.isdir(path) else f"worktrees/{session}/HEAD"
        at = path if os.path.isdir(path) else box.cwd
        known = set(git(box, "log", "-g", "--format=%H", name, "--", at=at, ok=False).split())
        known |= set(git(box, "rev-list", "--all").split())
        git(box, "reset", "-q", "--hard")
        done = box.segue("merge", "last", "--logs", box.logs)
        if b" is in main" in done.stdout or b"already merged" in done.stdout:
            tips = [tip for tip in (git(box, "rev-parse", "-q", "--verify", ref, at=at, ok=False)
                                    for ref in (name, "refs/heads/segue/" + session)) if tip]
            expect(git(box, "rev-list", *tips, "--not", "main") == "", seed, did, done)
        done = box.segue(*draw.choice(ENDS), "--logs", box.logs)
        if done.returncode != 0:
            expect(b"uncommitted work" in done.stderr, seed, did, done)
            done = box.segue("discard", "last", "--yes", "--force", "--logs", box.logs, status=0)
        expect(not os.path.exists(path), seed, did, done)
        lost = known - set(git(box, "rev-list", "--all").split())
        expect(not lost, seed, did, done, lost)


if __name__ == "__main__":
    sys.exit(main([it_is_followed, what_is_left_behind_needs_a_person, it_may_be_given_up, a_lock_of_a_killed_git_is_in_nobodys_way, refs_are_listed_and_removed,
                   a_fork_begins_where_the_work_is, every_diff_has_one_base, names_that_are_no_branch,
                   without_a_commit, a_part_of_a_worktree_goes_too, random_agents]))
