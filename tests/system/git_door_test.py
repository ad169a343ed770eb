#!/usr/bin/env python3
"""Every key that git knows is planted in a repository's configuration with a value that would run a
program or lead elsewhere, beside each hook; so is what an agent can change of `.git`. No command of
segue runs any of it, and each does what it does without them."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from support import expect, main, of_type, records

FLOW = """
name: edits
provider: script
judge: {stages: [phase1_tag]}
movements:
  - {name: fix, edit: true, instruction: Mend this now., rules: [{condition: done, next: test}]}
  - name: test
    command: [sh, -c, "COMMAND"]
    rules: [{condition: when(exit == 0), next: COMPLETE}, {condition: no, next: ABORT}]
"""
HOOKS = """applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg
commit-msg post-commit pre-rebase post-checkout post-merge pre-push pre-receive update proc-receive
post-receive post-update reference-transaction push-to-checkout pre-auto-gc post-rewrite
post-index-change sendemail-validate fsmonitor-watchman""".split()
# What has no deed to plant: of another value than these git ends at once, with segue's or without.
FORMAT = ("extensions.", "core.repositoryformatversion")
# Data that segue takes over, and checks for itself.
DATA = ("user.", "core.filemode", "core.ignorecase", "core.symlinks", "core.autocrlf", "core.eol",
        "core.safecrlf", "core.sparsecheckout", "core.precomposeunicode", "core.sharedrepository",
        "core.trustctime", "core.checkstat", "core.logallrefupdates", "index.sparse")
NAMES = {"driver": "odd", "name": "origin", "tool": "odd", "cmd": "diff", "format": "ssh",
         "url": "https://example.org/x", "condition": "gitdir:**", "id": "odd"}


def git(box, *words, at=None, ok=True):
    done = subprocess.run(["git", *words], cwd=at or box.cwd, env=box.env, capture_output=True)
    expect(done.returncode == 0 or not ok, "git", *words, done.stderr)
    return done.stdout.decode().strip()


def repository(box, at):
    os.makedirs(at, exist_ok=True)
    git(box, "init", "-q", "-b", "main", ".", at=at)
    for key, value in (("user.name", "Some One"), ("user.email", "one@example.org")):
        git(box, "config", key, value, at=at)
    Path(at + "/a").write_text("one\n")
    Path(at + "/.gitattributes").write_text("* filter=odd diff=odd merge=odd\n")
    git(box, "add", "-A", at=at)
    git(box, "commit", "-qm", "first", at=at)


def keys(box):
    found = []
    for key in git(box, "help", "--config").splitlines():
        while "<" in key and ">" in key:
            name = key[key.index("<") + 1:key.index(">")]
            key = key.replace(f"<{name}>", NAMES.get(name, "x"))
        key = key[:-1] + "x" if key.endswith("*") else key
        key = key[:-1] + "x" if key.endswith(">") else key
        if re.fullmatch(r"[a-zA-Z0-9]+\.(.*\.)?[a-zA-Z][a-zA-Z0-9-]*", key) and \
                not key.lower().startswith(FORMAT + DATA):
            found.append(key)
    return found + ["include.path", "remote.origin.promisor", "url.ROOT/evil.git.pushInsteadOf",
                    "url.ROOT/evil.git.insteadOf", "filter.odd.process", "core.worktree"]


def plant(box, git_dir, marker):
    """Without git, which would obey the first half."""
    lines, said = [], box.file("marker", f"#!/bin/sh\necho \"$0 $*\" >> {marker}\ncat\n")
    os.chmod(said, 0o755)
    Path(box.dir + "/included").write_text(f"[core]\n\tfsmonitor = {said}\n\tsshCommand = {said}\n")
    secret = box.dir + "/secret"
    os.makedirs(secret, exist_ok=True)
    Path(secret + "/id").write_text("KEY\n")
    for key in keys(box):
        key = key.replace("ROOT", box.dir)
        section, name = key.split(".", 1)[0], key.rsplit(".", 1)[1]
        middle = key[len(section) + 1:-len(name) - 1]
        low = key.lower()
        value = said
        if low.endswith(("include.path", "includeif.gitdir:**.path")):
            value = box.dir + "/included"
        elif low == "core.worktree":
            value = secret
        elif low in ("core.hookspath",):
            value = git_dir + "/hooks"
        elif low.endswith((".required", ".promisor", ".gpgsign", "core.bare", ".verifysignatures",
                           "submodule.recurse", ".autosetuprebase")):
            value = "true"
        elif low.startswith("url."):
            value = "https://example.org/"
        elif low in ("remote.origin.url", "remote.origin.pushurl"):
            value = "ext::" + said
        elif low.startswith("alias.") or low.endswith((".helper", ".update")):
            value = "!" + said
        lines.append(f"[{section}{json.dumps(middle).join((' ', '')) if middle else ''}]\n"
                     f"\t{name} = {json.dumps(value)}\n")
    text = "".join(lines)
    Path(git_dir + "/config").write_text(
        "[core]\n\trepositoryformatversion = 1\n\tfilemode = true\n[extensions]\n"
        "\tworktreeConfig = true\n\tpartialClone = origin\n[user]\n\tname = Some One\n"
        "\temail = one@example.org\n" + text)
    Path(git_dir + "/config.worktree").write_text(f"[core]\n\tworktree = {secret}\n" + text)
    os.makedirs(git_dir + "/hooks", exist_ok=True)
    for hook in HOOKS:
        os.path.lexists(f"{git_dir}/hooks/{hook}") or os.symlink(said, f"{git_dir}/hooks/{hook}")
    expect(len(lines) > 600, "keys", len(lines))


def run(box, command, *flags, name="flow.yaml", cwd=None, status=0):
    flow = FLOW.replace('"COMMAND"', json.dumps(command))
    replies = {"replies": [{"movement": "fix", "text": "[FIX:1]"}]}
    return box.segue("run", box.file(name, flow), "--scenario",
                     box.file("replies.json", json.dumps(replies)), "--cwd", cwd or box.cwd,
                     "--task", "mend it", "--logs", box.logs, *flags, status=status)


def show(box, what):
    """What the repository has, asked without its configuration."""
    env = dict(box.env, GIT_DIR=box.cwd + "/.git", GIT_COMMON_DIR=box.dir + "/plain")
    if not os.path.exists(box.dir + "/plain"):
        git(box, "init", "-q", "--bare", box.dir + "/plain", at="/")
        subprocess.run(["rm", "-rf", box.dir + "/plain/objects"], check=True)
        os.symlink(box.cwd + "/.git/objects", box.dir + "/plain/objects")
    done = subprocess.run(["git", "show", what], cwd="/", env=env, capture_output=True)
    return done.stdout.decode()


def every_key_is_planted(box):
    marker = box.dir + "/ran"
    repository(box, box.cwd)
    plant(box, box.cwd + "/.git", marker)

    def session():
        return records(box.begun()[-1])[0]["session"]

    def held(what):
        expect(not os.path.exists(marker), what, "ran:",
               os.path.exists(marker) and open(marker).read())

    run(box, "echo two >> a; echo new > b", "-W", "worktree")
    first = session()
    held("run")
    expect(show(box, f"segue/{first}:a") == "one\ntwo\n", "what was committed")
    expect(show(box, f"segue/{first}:id") == "" and show(box, f"segue/{first}:b") == "new\n", "only that")
    for words in (["diff", first], ["diff", first, "--stat"], ["worktrees"], ["show", first]):
        done = box.segue(*words, *(["--logs", box.logs]), status=0)
        held(words[0])
        expect(words[0] != "diff" or b"a" in done.stdout, words, done.stdout)
    box.segue("merge", first, "--yes", "--logs", box.logs, status=0)
    held("merge")
    expect(Path(box.cwd + "/a").read_text() == "one\ntwo\n", "the merge is in the tree")
    expect(os.listdir(box.dir + "/secret") == ["id"], "nothing is written elsewhere")
    run(box, "echo three >> a", "-W", "worktree", name="second.yaml")
    second = session()
    branch = f"segue/{second}"
    box.segue("integrate", branch, "--cwd", box.cwd, status=0)
    held("integrate")
    expect(Path(box.cwd + "/a").read_text() == "one\ntwo\nthree\n", "the branch is in the tree")
    box.segue("discard", first, "--yes", "--logs", box.logs, status=0)
    held("discard")
    box.segue("rm", second, "--logs", box.logs, status=0)
    held("rm")
    run(box, "echo four >> a", "--commit", "end", name="third.yaml")
    held("commit")
    expect(show(box, "HEAD:a") == "one\ntwo\nthree\nfour\n", show(box, "HEAD:a"))


def every_key_of_a_submodule(box):
    """Its repository has a configuration of its own, which git would read by itself."""
    marker, inner = box.dir + "/ran", box.dir + "/inner"
    repository(box, box.cwd)
    repository(box, inner)
    git(box, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner, "part")
    git(box, "commit", "-qm", "with a part")
    part = box.cwd + "/part"
    git(box, "config", "user.name", "x", at=part)
    git(box, "config", "user.email", "x@example.org", at=part)
    plant(box, box.cwd + "/.git/modules/part", marker)
    os.unlink(box.cwd + "/.git/modules/part/config.worktree")
    run(box, "echo two >> a; echo two >> part/a", "--commit", "end")
    expect(not os.path.exists(marker), "it ran:", os.path.exists(marker) and open(marker).read())
    expect(git(box, "show", "HEAD:a") == "one\ntwo", "what was committed")


def nothing_is_written_through_links(box):
    repository(box, box.cwd)
    victim = box.dir + "/victim"
    Path(victim).write_text("mine\n")
    logs = box.cwd + "/.git/logs"
    for place in (box.cwd + "/.git/COMMIT_EDITMSG", logs + "/HEAD", logs + "/refs/heads/main"):
        os.path.lexists(place) and os.rename(place, place + ".kept")
        os.symlink(victim, place)
        run(box, "echo more >> a", "--commit", "end", name=os.path.basename(place) + ".yaml", status=1)
        box.segue("resume", box.begun()[-1], "--release", status=0)
        expect(Path(victim).read_text() == "mine\n", place, Path(victim).read_text())
        said = of_type(records(box.begun()[-1]), "session_stop")[0]
        expect("is a link" in json.dumps(said), said)
        os.unlink(place)
    other = box.dir + "/other"
    repository(box, other)
    was = git(box, "rev-parse", "HEAD", at=other)
    # An agent turns its worktree's own file to another repository.
    run(box, f"echo more >> a; echo 'gitdir: {other}/.git' > .git", "-W", "worktree",
        name="turned.yaml", status=1)
    expect(git(box, "rev-parse", "HEAD", at=other) == was, "another repository was written to")
    expect("does not know that tree" in json.dumps(records(box.begun()[-1])[-1]), "it is said")


if __name__ == "__main__":
    sys.exit(main([every_key_is_planted, every_key_of_a_submodule, nothing_is_written_through_links]))
