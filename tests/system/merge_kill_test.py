#!/usr/bin/env python3
"""SIGKILL at random moments of merge, integrate and discard (40; 400 with ./dev test --all), in half of them
with the shims, so that git dies as well. Then the same command again, or segue resume, which may be killed
again: it ends as if nothing had been; no commit and no file of anybody's is lost, nothing is left behind.

usage: merge_kill_test.py BUILD_DIR [CASE...]
SEGUE_SEED=N repeats a sequence, SEGUE_KILLS=N changes the number of runs."""
import json
import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import integrate_test
from kill_test import kill_with_shims, reap
from merge_test import asked, branch, commit, list_of
from support import Box, Failed, chance, expect, main, of_type, records, sample
from worktree_test import git, repository, run

SEED = chance()
KILLS = int(os.environ.get("SEGUE_KILLS") or (400 if sample.ALL else 40))
AT_ONCE = 4
FILES = 200
MOST_KILLS = 4 # of one command
MAKE = f"i=0; while [ $i -lt {FILES} ]; do echo new > d/f$i; echo $i > d/new$i; i=$((i+1)); done; rm d/gone; ln -s a link"


def files(box, name):
    """What a branch changes: many files, so that git is busy."""
    for i in range(FILES):
        Path(f"{box.cwd}/d/{name}{i}").write_text(name)
        Path(f"{box.cwd}/d/f{i}").write_text("new\n")


def prepared(box):
    repository(box)
    os.mkdir(box.cwd + "/d")
    for name in [f"f{i}" for i in range(FILES)] + ["gone"]:
        Path(f"{box.cwd}/d/{name}").write_text("old\n")
    commit(box, message="many")


class Command:
    """One command in its box; the words to start it, and how it ends."""
    status = 0

    def __init__(self, box, rng):
        self.box, self.env, self.at = box, None, box.cwd
        prepared(box)
        self.words = self.prepare(rng)
        Path(box.cwd + "/mine").write_text("not git's\n")

    def finish(self):
        self.box.segue(*self.words, env=self.env, status=self.status)

    def start(self):
        return self.box.start(*self.words, env=self.env)

    def after(self):
        """Of all kinds."""
        box = self.box
        expect(Path(box.cwd + "/mine").read_text() == "not git's\n", "a file of the user's")
        expect(git(box, "status", "--porcelain") == "?? mine", git(box, "status", "--porcelain"))
        left = [str(p) for p in Path(box.cwd + "/.git").rglob("*") if p.name.endswith(".lock") or
                p.name in ("SEGUE_MERGE", "MERGE_HEAD", "MERGE_MSG")]
        expect(left == [], "left behind:", left)


class Merge(Command):
    def prepare(self, rng):
        run(self.box, MAKE)
        self.own = git(self.box, "for-each-ref", "--format=%(refname:short)", "refs/heads/segue")
        git(self.box, "branch", "other")
        self.into = rng.choice(["main", "main", "other"])
        self.squash = rng.random() < 0.3
        return ["merge", "last", "--logs", self.box.logs, "--into", self.into, *(["--squash"] if self.squash else []),
                *(["--check", "test -e d/new0"] if rng.random() < 0.4 else [])]

    def after(self):
        super().after()
        expect(git(self.box, "diff", "--name-only", self.own, self.into) == "", "content")
        merges = git(self.box, "rev-list", "--count", self.into, "^" + self.own)
        expect(merges == "1", "merges:", merges)
        expect(len(list_of(self.box)) == 1, "worktrees", list_of(self.box))


class MergeBad(Merge):
    status = 3

    def prepare(self, rng):
        words = super().prepare(rng)
        self.before = git(self.box, "rev-parse", "main", "other")
        return [*words[:6], "--check", "exit 9"]

    def after(self):
        Command.after(self)
        expect(git(self.box, "rev-parse", "main", "other") == self.before, "the branch")
        expect(len(list_of(self.box)) == 1, "worktrees", list_of(self.box))


class Integrate(Command):
    """By hand, in the user's own tree or, as a session does, in a worktree."""
    def prepare(self, rng):
        for name in ("x", "bad", "y"):
            branch(self.box, name, lambda: files(self.box, name))
        if rng.random() < 0.5:
            self.at, self.env = self.box.dir + "/tree", {"SEGUE_SESSION": "x"}
            git(self.box, "worktree", "add", "-q", "-b", "own", self.at)
        words = ["integrate", "x", "bad", "y", "--cwd", self.at]
        if rng.random() < 0.5:
            self.status = 3
            words += ["--check", "test ! -e d/bad0"]
        return words

    def after(self):
        super().after()
        wanted = ["x", "y"] if self.status else ["x", "bad", "y"]
        for name in ("x", "bad", "y"):
            expect((git(self.box, "rev-list", "--count", name, "^HEAD", at=self.at) == "0") == (name in wanted), name)
            expect(os.path.exists(f"{self.at}/d/{name}0") == (name in wanted), name)
        expect(git(self.box, "log", "--format=%s", "--merges", "--reverse", at=self.at).splitlines() ==
               ["Merge " + name for name in wanted], "merges")
        expect(git(self.box, "status", "--porcelain", "-uno", at=self.at) == "", "its tree")


class Conflict(Command):
    status = 1

    def prepare(self, _):
        branch(self.box, "x", lambda: files(self.box, "x"))
        for i in range(3):
            Path(f"{self.box.cwd}/d/f{i}").write_text("other\n")
        commit(self.box, "d")
        return ["integrate", "x"]

    def after(self):
        for i in range(3):
            text = Path(f"{self.box.cwd}/d/f{i}").read_text()
            expect("<<<<<<< " in text and "new\n" in text and "other\n" in text, text)
            Path(f"{self.box.cwd}/d/f{i}").write_text("both\n")
        self.box.segue("integrate", "x", status=0)
        expect(git(self.box, "log", "--format=%s", "--merges").splitlines() == ["Merge x"], "merges")
        super().after()


class Discard(Command):
    def prepare(self, rng):
        deed = rng.choice(["", "; git add -A; git commit -qm x; git checkout -q --detach; git commit -q --allow-empty -m y"])
        run(self.box, MAKE + deed)
        self.own = git(self.box, "for-each-ref", "--format=%(refname:short)", "refs/heads/segue")
        if rng.random() < 0.5:
            asked(self.box, "merge", "last")
        return ["discard", "last", "--yes", "--force", "--logs", self.box.logs]

    def after(self):
        super().after()
        expect(list_of(self.box) == [] and not os.listdir(self.box.env["XDG_STATE_HOME"] + "/segue/worktrees"), "worktree")
        expect(self.own not in git(self.box, "branch", "--format=%(refname:short)").split(), "its branch")


class Resume(Command):
    """A session whose movement integrates, killed as a whole while that works; then resumed."""
    def prepare(self, _):
        flow = integrate_test.FLOW.replace("cat > $SEGUE_CALL.txt", "cat > $SEGUE_CALL.txt; mkdir -p e; i=0; while "
                                           "[ $i -lt 100 ]; do echo > e/$SEGUE_CALL.$i; i=$((i+1)); done")
        return ["run", self.box.file("parts.yaml", flow), "--logs", self.box.logs, "--json"]

    def start(self):
        if self.box.begun():
            return self.box.start("resume", self.box.begun()[0])
        process = self.box.start(*self.words)
        for line in process.stdout:
            record = json.loads(line)
            if record["type"] == "turn_start" and record["movement"] == "join":
                break
        return process

    def finish(self):
        begun = self.box.begun()
        self.box.segue(*(["resume", begun[0]] if begun else self.words), status=0)

    def after(self):
        self.box.segue("verify", self.box.begun()[0], status=0)
        own = "segue/" + records(self.box.begun()[0])[0]["session"]
        names = git(self.box, "ls-tree", "-r", "--name-only", own).split()
        expect(len([n for n in names if n.startswith("e/")]) == 300, names)
        expect(git(self.box, "rev-list", "--merges", "--count", own) == "3", "a merge for each part")
        made = [r["data"] for r in of_type(records(self.box.begun()[0]), "workspace") if r["event"] == "made"]
        expect(git(self.box, "status", "--porcelain", at=made[0]["path"]) == "", "its tree")
        super().after()


KINDS = [Merge, MergeBad, Integrate, Integrate, Conflict, Discard, Resume, Merge]


def commits_of(box):
    """All that any ref or any HEAD of a worktree reaches."""
    heads = git(box, "rev-list", "--all", "HEAD").split()
    for path in list_of(box):
        if os.path.isdir(path):
            heads += git(box, "rev-list", "HEAD", at=path).split()
    return set(heads)


def seconds_of(kind):
    with Box() as box:
        command = kind(box, random.Random(1))
        process = command.start()
        begin = time.monotonic()
        process.communicate()
        return time.monotonic() - begin


def dies(command, after_s, both):
    """Starts it and kills it at that moment; False: it was over before, as it is to end."""
    process = command.start()
    try:
        out, err = process.communicate(timeout=after_s)
        expect(process.returncode == command.status, "status", process.returncode, (out + err).decode(errors="replace"))
        return False
    except subprocess.TimeoutExpired:
        if both:
            kill_with_shims(process)
        else:
            process.kill()
        reap(process)
        return True


def one(number, durations):
    """Returns how often the command was killed."""
    rng = random.Random(SEED * 1000003 + number)
    kind, kills = KINDS[number % len(KINDS)], 0
    try:
        with Box() as box:
            command = kind(box, rng)
            before = commits_of(box)
            while kills == 0 or (kills < MOST_KILLS and rng.random() < 0.4):
                if not dies(command, rng.random() * durations[kind], rng.random() < 0.5):
                    break
                kills += 1
            command.finish()
            lost = before - commits_of(box)
            expect(not lost, "lost commits:", lost)
            command.after()
            git(box, "fsck", "--connectivity-only")
            return kills
    except Exception as error:
        raise Failed(f"SEGUE_SEED={SEED}, run {number} ({kind.__name__}), {kills} kills: {error}") from error


def kills():
    print(f"      SEGUE_SEED={SEED}", flush=True)
    durations = {kind: seconds_of(kind) for kind in dict.fromkeys(KINDS)}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(lambda n: one(n, durations), range(KILLS)))
    expect(sum(found) >= KILLS // 2, "most commands ended before their kill:", found)
    return f"{sum(found)} kills in {KILLS} commands"


if __name__ == "__main__":
    sys.exit(main([kills]))
