#!/usr/bin/env python3
"""Commits that an agent makes in submodules of its worktree: they are in the main repository before
anything that names them is merged or removed, and what cannot be brought there is not removed."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from support import Box, expect, main, of_type, records

FLOW = """
name: edits
provider: script
workspace: worktree
judge: {stages: [phase1_tag]}
movements:
  - name: work
    command: [sh, -ec, "COMMAND"]
    rules: [{condition: when(exit == 0), next: COMPLETE}, {condition: no, next: ABORT}]
"""
DEEP = "cd sub/nest; echo deep >> d; git commit -qam deep; cd ..; echo more >> i; git commit -qam more; "


def git(box, *words, at=None, ok=True):
    done = subprocess.run(["git", *words], cwd=at or box.cwd, env=box.env, capture_output=True, check=False)
    expect(done.returncode == 0 or not ok, "git", *words, done.stderr)
    return done.stdout.decode().strip()


def repository(box, at, name):
    os.makedirs(at, exist_ok=True)
    git(box, "init", "-q", "-b", "main", ".", at=at)
    Path(f"{at}/{name}").write_text(name + "\n")
    git(box, "add", "-A", at=at)
    git(box, "commit", "-qm", "first", at=at)


def repositories(box, checked_out=True):
    """The main one with `sub`, which has `sub/nest`."""
    for key, value in (("user.name", "Some One"), ("user.email", "one@example.org"),
                       ("protocol.file.allow", "always")):
        git(box, "config", "--global", key, value)
    up = box.dir + "/up"
    repository(box, up + "/nest", "d")
    repository(box, up + "/sub", "i")
    git(box, "submodule", "--quiet", "add", up + "/nest", "nest", at=up + "/sub")
    git(box, "commit", "-qm", "nest", at=up + "/sub")
    made = box.cwd if checked_out else up + "/main"
    repository(box, made, "a")
    git(box, "submodule", "--quiet", "add", up + "/sub", "sub", at=made)
    git(box, "submodule", "--quiet", "update", "--init", "--recursive", at=made)
    git(box, "commit", "-qm", "sub", at=made)
    if not checked_out:
        git(box, "clone", "-q", made, box.cwd)
    box.config("workspace: {submodules: true}\n")


def run(box, command, status=0, flags=()):
    box.segue("run", box.file("flow.yaml", FLOW.replace('"COMMAND"', json.dumps(command))), "--cwd", box.cwd,
              "--task", "mend it", "--logs", box.logs, *flags, status=status)
    return of_type(records(box.begun()[-1]), "workspace")[1]["data"]


def after(box, *words, **how):
    return box.segue(words[0], *words[1:], "--logs", box.logs, **how)


def has(box, store, text, at=None):
    """Whether a commit of that subject is held by a ref there, and all of it is there."""
    path = f"{at or box.cwd}/.git/modules/{store}"
    git(box, "--git-dir", path, "fsck", "--connectivity-only")
    return text in git(box, "--git-dir", path, "log", "--format=%s", "--all").splitlines()


def merged_then_updated(box):
    repositories(box)
    made = run(box, DEEP)
    expect(has(box, "sub", "more") and has(box, "sub/modules/nest", "deep"), "a merge by hand would lead nowhere")
    git(box, "update-ref", "-d", f"refs/segue/{os.path.basename(made['path'])}/1", at=box.cwd + "/.git/modules/sub")
    git(box, "--git-dir", box.cwd + "/.git/modules/sub", "gc", "--quiet", "--prune=now")
    expect(not has(box, "sub", "more"), "it is still there")
    after(box, "merge", "last", status=0)
    git(box, "submodule", "update", "--recursive")
    expect(Path(box.cwd + "/sub/i").read_text() == "i\nmore\n", "sub is not updated")
    expect(Path(box.cwd + "/sub/nest/d").read_text() == "d\ndeep\n", "nest is not updated")
    again = after(box, "merge", "last", status=0)
    expect(again.stderr.count(b"submodule sub keeps") == 1, "kept twice", again.stderr)
    after(box, "discard", "last", "--yes", "--force", status=0)
    refs = git(box, "--git-dir", box.cwd + "/.git/modules/sub", "for-each-ref", "refs/segue")
    expect(len(refs.splitlines()) == 1, refs)


def removed(box):
    """By discard and by age; on a branch, detached, and gone back to before."""
    repositories(box)
    command = "cd sub; git checkout -q -b mine; echo $SEGUE_SESSION >> i; git commit -qam one; git checkout -q --detach; "\
              "echo 2 >> i; git commit -qam two; git checkout -q mine; git reset -q --hard HEAD~1; "\
              "echo 3 >> i; git commit -qam three"
    for words in (("discard", "last", "--yes"), ("rm", "--older-than", "0h")):
        run(box, command)
        told = after(box, *words, status=0)
        expect(told.stderr.count(b"submodule sub keeps") == 2, told.stderr)
        expect(all(has(box, "sub", text) for text in ("one", "two", "three")), "lost by", words)
        git(box, "--git-dir", box.cwd + "/.git/modules/sub", "gc", "--quiet", "--prune=now")
        expect(has(box, "sub", "two"), "gc took it")
        expect(len(git(box, "worktree", "list").splitlines()) == 1, "the worktree is still there")


def what_cannot_be_copied(box):
    repositories(box)
    pack = box.cwd + "/.git/modules/sub/objects/pack"
    made = run(box, f"rm -rf {pack}; : > {pack}; " + DEEP)
    for words in (("discard", "last", "--yes"), ("merge", "last"), ("rm", "last"), ("rm", "--older-than", "0h")):
        done = after(box, *words)
        expect(done.returncode != 0 and b"submodule sub " in done.stderr, words, done)
        expect(os.path.isdir(made["path"]) and box.begun(), "removed by", words)
    after(box, "discard", "last", "--yes", "--force", status=0, err="submodule sub ")
    expect(not os.path.exists(made["path"]), "--force does not remove it")


def never_checked_out(box):
    repositories(box, checked_out=False)
    run(box, "true")
    after(box, "discard", "last", "--yes", status=0)
    expect(not os.path.exists(box.cwd + "/.git/modules"), "a store with nothing new was made")
    run(box, DEEP)
    after(box, "merge", "last", status=0)
    expect(has(box, "sub", "more") and has(box, "sub/modules/nest", "deep"), "lost")
    git(box, "submodule", "update", "--init")
    expect(Path(box.cwd + "/sub/i").read_text() == "i\nmore\n", "sub is not updated")
    Path(box.dir + "/up/sub/i").write_text("later\n")
    git(box, "commit", "-qam", "later", at=box.dir + "/up/sub")
    git(box, "fetch", "-q", at=box.cwd + "/sub")
    expect(git(box, "log", "-1", "--format=%s", "origin/main", at=box.cwd + "/sub") == "later", "it has no remote")


def a_shallow_one_never_checked_out(box):
    repositories(box, checked_out=False)
    Path(box.dir + "/up/sub/i").write_text("later\n")
    git(box, "commit", "-qam", "later", at=box.dir + "/up/sub")
    git(box, "-C", "sub", "pull", "-q", at=box.dir + "/up/main")
    for words in (("sub.url", f"file://{box.dir}/up/sub"), ("sub.shallow", "true")):
        git(box, "config", "--file", ".gitmodules", "submodule." + words[0], words[1], at=box.dir + "/up/main")
    git(box, "commit", "-qam", "later", at=box.dir + "/up/main")
    git(box, "pull", "-q")
    run(box, "cd sub; test -s $(git rev-parse --git-dir)/shallow; echo more >> i; git commit -qam more")
    after(box, "merge", "last", status=0)
    expect(has(box, "sub", "more"), "lost")
    git(box, "submodule", "update", "--init")
    expect(Path(box.cwd + "/sub/i").read_text() == "later\nmore\n", "sub is not updated")


def their_refs_are_listed_and_removed(box):
    repositories(box)
    run(box, DEEP)
    after(box, "discard", "last", "--yes", status=0)
    words = ["worktrees", "--refs", "--cwd", box.cwd]
    listed = [line.split(":")[0] for line in box.segue(*words, status=0).stdout.decode().splitlines()]
    expect(listed[-2:] == ["sub", "sub/nest"], listed)
    rows = [json.loads(line) for line in box.segue(*words, "--remove", "--older-than", "0s", "--json", status=0).stdout.splitlines()]
    expect([row.get("submodule") for row in rows][-2:] == ["sub", "sub/nest"] and all(row["removed"] for row in rows), rows)
    other = box.dir + "/other"
    repository(box, other, "private")
    git(box, "update-ref", "refs/segue/x/1", "HEAD", at=other)
    os.symlink(other + "/.git", box.cwd + "/.git/modules/linked")
    os.rename(box.cwd + "/.git/modules/sub/refs", box.dir + "/refs")
    os.symlink(other + "/.git/refs", box.cwd + "/.git/modules/sub/refs")
    box.segue(*words, "--remove", "--older-than", "0s", status=0, err="no refs of segue in")
    expect(git(box, "for-each-ref", "refs/segue", at=other) != "", "another repository's")


def made_by_the_agent(box):
    """A repository in the worktree itself, which segue's own commit names."""
    repositories(box)
    run(box, "git init -q -b main own; cd own; echo o > o; git add o; git commit -qm mine")
    after(box, "discard", "last", "--yes", status=0)
    expect(has(box, "own", "mine"), "lost")


def where_addresses_lead(box):
    """An agent's words in .gitmodules and in the repository's configuration, then a fork of its work."""
    repositories(box)
    evil = box.dir + "/evil"
    repository(box, evil, "e")
    run(box, f"git config --file .gitmodules submodule.sub.url {evil}; git -C sub config remote.origin.url {evil}; "
             f"git config submodule.sub.url {evil}; " + DEEP)
    after(box, "fork", "last", "--from", "work", status=0)
    made = of_type(records(box.begun()[-1]), "workspace")[1]["data"]
    expect(Path(made["path"] + "/sub/i").read_text() == "i\nmore\nmore\n", "the fork began without its work")
    expect(git(box, "log", "--format=%s", at=made["path"] + "/sub/nest") == "deep\ndeep\nfirst", "nest")


def addresses_of_strangers(box):
    """A base that is not the user's own brings no addresses; the user's HEAD does."""
    repositories(box)
    repository(box, box.dir + "/evil", "e")
    git(box, "checkout", "-q", "-b", "stranger")
    git(box, "submodule", "--quiet", "add", box.dir + "/evil", "bad")
    git(box, "commit", "-qm", "bad")
    git(box, "checkout", "-q", "main")
    git(box, "config", "--remove-section", "submodule.bad")
    shutil.rmtree(box.cwd + "/.git/modules/bad")
    run(box, "test ! -e bad/e; test -e sub/nest/d", flags=("--base", "stranger"))
    git(box, "checkout", "-q", "-f", "stranger")
    run(box, "test -e bad/e; test -e sub/nest/d")


def links_are_not_followed(box):
    repositories(box)
    other = box.dir + "/other"
    repository(box, other, "private")
    run(box, f"m=$(git rev-parse --absolute-git-dir)/modules; ln -s {other}/.git $m/linked; "
             f"echo {other}/.git/objects > $m/sub/objects/info/alternates")
    after(box, "discard", "last", "--yes", status=2, err="submodule sub ")
    expect(not os.path.exists(box.cwd + "/.git/modules/linked"), "a link was followed")


if __name__ == "__main__":
    sys.exit(main([merged_then_updated, removed, what_cannot_be_copied, never_checked_out, a_shallow_one_never_checked_out,
                   their_refs_are_listed_and_removed, made_by_the_agent,
                   where_addresses_lead, addresses_of_strangers, links_are_not_followed]))
