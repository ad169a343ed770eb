#!/usr/bin/env python3
"""Random agents times random commands on real repositories: whatever an agent does to branches, HEAD, index, stash,
submodules and folders, no command of segue makes a commit or a line unreachable that a call left behind, and none
claims a commit to be where it is not.

A scenario is data: what each movement does (lines of shell), and the commands afterwards; "$ ..." is done by the
person in the main tree. After each call a note is taken of what git has at that moment; it is what must last.

  git_property_test.py BUILD                  # 300 seeds that the commit chooses; 10,000 with SEGUE_TEST_ALL
  SEEDS=17,40-60 git_property_test.py BUILD   # these only
Of a kind of failure the first two are made small (SHRINK=n), and printed as data, which belongs in SMALL then.
"""
import collections
import concurrent.futures
import json
import os
import random
import re
import shutil
import subprocess
import sys
import traceback
from pathlib import Path

from support import Box, Failed, expect, main, of_type, records, sample
from worktree_test import git, repository

COUNT = 10000 if sample.ALL else 300
TOKEN = re.compile(rb"\bt\d+x\d+\b") # whole: a folder's random name may have a part of this form
STARTED = "main"  # what the main tree is on when a session begins

# ---- what agents and people do ---------------------------------------------------------------------------

COMMIT = "echo tNx$$ >> fN; git add -A; git commit -qm cN"
WRITE = ["echo tNx$$ >> fN", "echo tNx$$ >> a", "echo tNx$$ >> dir/b", "echo tNx$$ >> new", "echo tNx$$ >> fN; git add -A"]
DEEDS = [(6, line) for line in (*WRITE, COMMIT, COMMIT)] + [(3, line) for line in (
    "git checkout -qb mine/N", "git checkout -qb mine/N; " + COMMIT, "git branch -m mine/N", "git checkout -q --detach",
    "git checkout -q --detach; " + COMMIT, "git commit -qam cN", "git commit -q --amend -am aN", "git rebase -q other",
    "git merge -qm mN other", "git stash -qu", "echo tNx$$ >> a; git stash -q; git stash pop -q")] + [(2, line) for line in (
        "git reset -q --hard HEAD~1", "git reset -q --soft HEAD~1", "git reset -q --hard main", "git checkout -q other",
        "git checkout -q other; " + COMMIT, "git checkout -q -", "git checkout -q --detach main; " + COMMIT,
        "git checkout -qB mine/N other; " + COMMIT, "git tag vN", "git revert --no-edit HEAD", "git rm -q --cached a",
        "git update-ref -d $(git symbolic-ref HEAD)", "git branch -qf mine/N; git reset -q --hard HEAD~1",
        "git checkout -q --detach; git branch -qD $(git branch --list --format='%(refname:short)' 'segue/*' | tail -1)",
        "echo tNx$$ >> 'a b'; mkdir -p 'd é'; echo tNx$$ >> 'd é/x'; git add -A; git commit -qm cN")] + [(1, line) for line in (
            "touch $(git rev-parse --git-dir)/index.lock", "cd $M; git worktree remove -f $W", "cd $M; rm -rf $W",
            "git -C $M checkout -qb stolenN", "git -C $M checkout -q --detach", "echo tNx$$ >> $M/a", "cd $M; " + COMMIT,
            "git worktree lock $W", "git worktree add -q ../extraN -b extra/N; cd ../extraN; " + COMMIT,
            "cd $M; rm -rf $W; git worktree prune", "git worktree move $W $W.moved", "git init -q in; cd in; " + COMMIT)]
IN_PART = ["cd part; echo tNx$$ >> s", "cd part; " + COMMIT, "cd part; " + COMMIT + "; cd ..; git commit -qam partN",
           "cd part; git checkout -qb mine/N; " + COMMIT, "git submodule -q deinit -f part"]
BY_HAND = ["$ echo tNx$$ >> a", "$ echo tNx$$ >> mineN", "$ echo tNx$$ >> a; git commit -qam uN", "$ git checkout -q other",
           "$ " + COMMIT, "$ git checkout -qb personN; " + COMMIT, "$ git stash -qu", "$ touch .git/index.lock"]
COMMANDS = [(3, "diff ID"), (1, "worktrees"), (5, "merge ID"), (2, "merge ID --squash"), (2, "merge ID --into other"),
            (2, "integrate BRANCH"), (2, "fork ID --from LAST"), (2, "pr ID"), (5, "discard ID --yes"),
            (2, "discard ID --yes --force"), (3, "rm ID"), (2, "rm ID --force"), (2, "resume ID")]


def drawn(dice, pairs, count):
    return dice.choices([line for _, line in pairs], [weight for weight, _ in pairs], k=count)


def scenario(seed):
    dice, number = random.Random(seed), iter(range(1, 1000))
    part = dice.random() < 0.12
    deeds = DEEDS + [(12, line) for line in IN_PART] if part else DEEDS

    def movement():
        return [line.replace("N", str(next(number))) for line in drawn(dice, deeds, dice.choice((1, 2, 2, 3, 4)))]
    made = {"mode": "here" if dice.random() < 0.1 else "worktree", "commit": dice.choice(("end", "end", "movement", "off")),
            "part": part, "movements": [movement() for _ in range(dice.choice((1, 1, 2, 3)))], "children": []}
    if made["mode"] == "worktree" and dice.random() < 0.15:
        # They share one stash: what one of two at once pops may be what the other has just put there.
        made["children"] = [[line for line in movement() if "stash pop" not in line] for _ in range(2)]
    commands = drawn(dice, COMMANDS + [(2, line) for line in BY_HAND], dice.choice((2, 3, 4)))
    if made["mode"] == "here":  # its folder is the person's, and is not removed
        made["movements"] = [[line for line in lines if "rm -rf" not in line] or WRITE[:1] for lines in made["movements"]]
    made["commands"] = [line.replace("N", str(next(number))) if line[0] == "$" else line for line in commands]
    return made


# ---- one scenario on a repository ------------------------------------------------------------------------

NOTE = """cd "$M" || exit
{ echo "at $W"
echo "when $1"
git rev-list --all --reflog | sed 's/^/has /'
git worktree list --porcelain
git for-each-ref --format='ref %(objectname) %(refname)'
sed 's/^/stash /' .git/logs/refs/stash
for p in .git/modules/part .git/worktrees/*/modules/part; do
  git -C $p rev-parse HEAD | sed 's/^/part /'; done
grep -rhoE --exclude-dir=.git '\\bt[0-9]+x[0-9]+\\b' "$M" "$XDG_STATE_HOME/segue/worktrees"; } > "$X/note.$$" 2> /dev/null
mv "$X/note.$$" "$X/noted.$(date +%s%N).$$"
"""
GH = "#!/bin/sh\ncase \"$*\" in *create*) echo https://example.org/o/r/pull/1;; *list*) echo '[]';; esac\n"
Session = collections.namedtuple("Session", "id path branch base children")


def template(box):
    """What all scenarios begin with: a main tree, a branch beside it, a remote, a submodule."""
    repository(box)
    os.mkdir(box.cwd + "/dir")
    Path(box.cwd + "/dir/b").write_text("b\n")
    Path(box.cwd + "/.gitignore").write_text("*.tmp\n")
    git(box, "add", "-A")
    git(box, "commit", "-qm", "second")
    git(box, "checkout", "-qb", "other", "HEAD~1")
    Path(box.cwd + "/o").write_text("other\n")
    git(box, "add", "-A")
    git(box, "commit", "-qm", "other")
    git(box, "checkout", "-q", "main")
    git(box, "clone", "-q", "--bare", ".", box.dir + "/remote.git")
    git(box, "remote", "add", "origin", box.dir + "/remote.git")
    shutil.copytree(box.cwd, box.dir + "/plain", symlinks=True)
    git(box, "config", "--global", "protocol.file.allow", "always")
    os.mkdir(box.dir + "/inner")
    repository(box, at=box.dir + "/inner")
    git(box, "submodule", "--quiet", "add", box.dir + "/inner", "part")
    git(box, "commit", "-qm", "with a part")


class Play:
    """A scenario that is being played; what must not be lost is in commits, parts and tokens."""

    def __init__(self, box, made, origin):
        self.box, self.made = box, made
        self.commits, self.parts, self.tokens, self.notes = {}, {}, set(), []
        self.said, self.session, self.gone, self.dropped = "", None, False, set()
        self.persons = set()  # commits of the person, also on a branch that an agent made
        os.rmdir(box.cwd)
        for source, target in (("work" if made["part"] else "plain", "work"), ("remote.git", "remote.git"), ("home/.gitconfig", "home")):
            subprocess.run(["cp", "-a", f"{origin}/{source}", f"{box.dir}/{target}"], check=True)
        config = Path(box.cwd + "/.git/config")
        config.write_text(config.read_text().replace(origin, box.dir))
        if made["part"]:
            subprocess.run(["cp", "-a", origin + "/inner", box.dir], check=True)
        os.mkdir(box.dir + "/bin")
        box.file("bin/gh", GH)
        os.chmod(box.dir + "/bin/gh", 0o755)
        box.file("note", NOTE)
        box.env.update(PATH=box.dir + "/bin:/usr/bin:/bin", M=box.cwd, X=box.dir)
        box.config("sandbox: off\n" + ("workspace: {submodules: true}\n" if made["part"] else ""))
        self.trees = box.env["XDG_STATE_HOME"] + "/segue/worktrees"
        self.logs = box.env["XDG_STATE_HOME"] + "/segue/logs"

    def git(self, *words, at=None):
        return git(self.box, *words, at=at, ok=False)

    def check(self, true, *what):
        expect(true, *what, "\n      said:", self.said.strip().replace("\n", "\n        "))

    # -- the workflow

    def deeds(self, name, lines):
        text = "".join(f"( {line} ) > /dev/null 2>&1 < /dev/null\n" for line in lines)
        names = "".join(f" {name}='{self.box.env[name]}'" for name in ("M", "X", "XDG_STATE_HOME"))  # no call gets them from segue
        note = f"sh {self.box.dir}/note"
        text = f"export W=\"$PWD\"{names}\n{note} start\n{text}{note} end\n"
        return json.dumps(["sh", self.box.file(name + ".sh", text)])

    def flow(self):
        made, names = self.made, [f"m{i}" for i in range(len(self.made["movements"]))]
        names += ["group", "join"] if made["children"] else []
        text = f"name: w\nworkspace: {made['mode']}\ncommit: {made['commit']}\ninitial_movement: {names[0]}\nmovements:\n"
        for i, name in enumerate(names):
            text += f"  - name: {name}\n"
            if name == "group":
                text += "    parallel:\n"
                for j, lines in enumerate(made["children"]):
                    text += f"      - {{name: c{j}, workspace: worktree, edit: true, command: {self.deeds(f'c{j}', lines)}, rules: [{{condition: when(true)}}]}}\n"
            elif name == "join":
                text += "    integrate: group\n"
            else:
                text += f"    edit: true\n    command: {self.deeds(name, made['movements'][i])}\n"
            text += f"    rules: [{{condition: when(true), next: {(names + ['COMPLETE'])[i + 1]}}}]\n"
        return self.box.file("flow.yaml", text), names[-1]

    # -- what is there

    def read_notes(self):
        """What calls left since the last time. Kept: each with the worktree that it was taken in."""
        for path in sorted(n for n in os.listdir(self.box.dir) if n.startswith("noted.")):
            text, note = Path(f"{self.box.dir}/{path}").read_bytes(), {"heads": {}, "refs": {}, "main": None, "has": set()}
            os.remove(f"{self.box.dir}/{path}")
            for line in text.decode().splitlines():
                word, _, rest = line.partition(" ")
                if word in ("at", "when", "worktree"):
                    note[word] = rest
                elif word == "has":
                    note["has"].add(rest)
                elif word == "HEAD" and rest.strip("0"):
                    note["heads"][note["worktree"]] = rest
                    self.commits.setdefault(rest, "HEAD of " + os.path.basename(note["worktree"])[-12:])
                elif word in ("branch", "detached") and note["worktree"] == self.box.cwd:
                    note["main"] = rest.removeprefix("refs/heads/")
                elif word == "ref":
                    commit, name = rest.split(" ", 1)
                    note["refs"][name] = commit
                    self.commits.setdefault(commit, name)
                elif word == "stash":
                    self.commits.setdefault(rest.split()[1], "stash")
                elif word == "part":
                    self.parts.setdefault(rest, "part")
            self.tokens |= set(TOKEN.findall(text))
            note["has"] |= set(TOKEN.findall(text))
            self.notes.append(note)

    def by_segue(self, gone):
        """Which of them were lost while no agent and no person was at work: after a call's end, before the next one's start."""
        found = set()
        for x in gone:
            seen = max((i for i, note in enumerate(self.notes) if x in note["has"]), default=-1) + 1
            began = collections.Counter({"start": 1, "end": -1}[n["when"]] for n in self.notes[:seen])
            if sum(k * count for k, count in began.items()) <= 0 and (seen == len(self.notes) or self.notes[seen]["when"] == "start"):
                pair = [n["at"] for n in self.notes[max(seen - 1, 0):seen + 1]]
                if len(pair) < 2 or pair[0] == pair[1] or not all(re.search(r"-\d+$", at) for at in pair):  # siblings overlap
                    found.add(x)
        return found

    def refs(self):
        """name -> commit, and HEAD of each worktree under its path, and what the main tree is on."""
        found = {}
        for line in self.git("for-each-ref", "--format=%(objectname) %(refname)").splitlines():
            commit, name = line.split(" ", 1)
            found[name] = commit
        path = None
        for line in self.git("worktree", "list", "--porcelain").splitlines():
            word, _, rest = line.partition(" ")
            if word == "worktree":
                path = rest
            elif word == "HEAD" and rest.strip("0"):
                found[path] = rest
            elif word == "branch" and path == self.box.cwd:
                found["on"] = rest.removeprefix("refs/heads/")
        return found

    def lines_in_trees(self):
        found = set()
        for top in (self.box.cwd, self.trees):
            for folder, below, names in os.walk(top):
                below[:] = [n for n in below if n != ".git"]
                for name in names:
                    try:
                        found |= set(TOKEN.findall(Path(f"{folder}/{name}").read_bytes()))
                    except OSError:
                        pass  # a link to nothing
        return found

    def nothing_is_lost(self, words):
        stash = Path(self.box.cwd + "/.git/logs/refs/stash")
        stashed = [line.split()[1] for line in stash.read_text().splitlines()] if stash.exists() else []
        there = set(self.git("rev-list", "--all", *stashed).split())
        dropped = set()
        if words[0] == "$":
            self.commits = {c: where for c, where in self.commits.items() if c in there}
        if words.split()[0] in ("run", "fork", "resume"):  # an agent itself dropped it
            dropped = {c for c in self.commits if c not in there} & set(self.git("rev-list", "--reflog").split())
        there |= dropped
        there |= self.dropped & set(self.git("rev-list", "--reflog").split()) if self.dropped else set()
        self.dropped |= dropped
        lost = self.by_segue(c for c in self.commits if c not in there)
        gone = {c: where for c, where in self.commits.items() if c in lost}
        self.commits = {c: where for c, where in self.commits.items() if c in there}
        self.check(not gone, "LOST commit by", words, "which was", ", ".join(sorted(set(gone.values()))))
        gone = self.by_segue(self.tokens - self.lines_in_trees())
        if gone:
            gone -= set(TOKEN.findall(self.git("log", "--all", "--format=", "-p", "-m", *stashed, *self.dropped).encode()))
        if gone and self.made["part"]:
            for store in self.stores():
                gone -= set(TOKEN.findall(self.git("log", "--all", "--format=", "-p", "-m", at=store).encode()))
        if "--force" not in words and words[0] != "$":
            self.check(not gone, "LOST line by", words, sorted(gone))
        else:
            self.tokens -= gone
        if self.parts:
            there = set()
            for store in self.stores():
                there |= set(self.git("rev-list", "--all", at=store).split())
            self.check(set(self.parts) <= there, "LOST commit of a submodule by", words)

    def stores(self):
        folder = Path(self.box.cwd + "/.git")
        return [str(p) for p in (folder / "modules/part", *folder.glob("worktrees/*/modules/part")) if p.exists()]

    # -- sessions

    def find_session(self, log):
        made = [r for r in of_type(log, "workspace") if r["event"] == "made"]
        own = next((r["data"] for r in made if "turn" not in r), None)
        children = [(r["data"]["path"], r["data"]["branch"]) for r in made if "turn" in r]
        if own is None:
            return Session(log[0]["session"], self.box.cwd, None, self.base, children)
        return Session(log[0]["session"], own["path"], own["branch"], own["base"], children)

    def log(self):
        return records(sorted(Path(self.logs).glob("*.ndjson"))[-1])

    def missing(self, heads, *targets):
        """Commits of the heads that no target has and that were not told: by name of a branch, or by commit."""
        heads = [h for h in heads if h]
        if not heads:
            return []
        found = self.git("rev-list", *heads, "--not", self.session.base, *self.start_commits, *targets).split()
        found = [commit for commit in found if commit not in self.persons]
        for commit in list(found):
            if commit not in found:
                continue
            names = self.git("for-each-ref", "--format=%(refname:short)", "--contains", commit, "refs/heads").split("\n")
            if commit[:7] in self.said or any(n and n != self.session.branch and n in self.said for n in names):
                told = set(self.git("rev-list", commit).split()) # who names a tip has named what leads to it
                found = [c for c in found if c not in told]
        return found

    # -- commands

    def command(self, line):
        if line[0] == "$":
            there = set(self.git("rev-list", "--all").split())
            subprocess.run(["sh", "-c", "W=$M sh $X/note start\n" + line[2:] + "\nW=$M sh $X/note end"], cwd=self.box.cwd, env=self.box.env,
                           capture_output=True, check=False)
            self.persons |= set(self.git("rev-list", "--all").split()) - there
            return
        s, before = self.session, self.refs()
        words = [{"ID": s.id, "BRANCH": s.branch or "other", "LAST": self.last}.get(w, w) for w in line.split()]
        status_before, there = self.git("status", "--porcelain"), set(self.git("rev-list", "--all").split())
        stands = os.path.isdir(s.path)
        done = self.box.segue(*words, timeout=60)
        text, self.said = done.stdout.decode("utf-8", "replace"), f"({done.returncode}) {(done.stdout + done.stderr).decode('utf-8', 'replace')}"
        self.check(done.returncode in (0, 1, 2, 3, 7), line, "exit status")
        self.check(done.returncode == 0 or done.stderr.strip() or text.strip(), line, "fails without a word")
        after = self.refs()
        getattr(self, words[0])(words, before, after, done.returncode == 0)
        if words[0] in ("merge", "integrate"):  # of the person, also into a branch that an agent made
            self.persons |= set(self.git("rev-list", "--all").split()) - there
        if done.returncode and words[0] in ("merge", "discard", "pr", "rm"):
            changed = {n for n in before if before[n] != after.get(n) and n not in (f"refs/heads/{s.branch}", s.path)}
            self.check(not changed, line, "failed and changed", changed)
            self.check(os.path.isdir(s.path) == stands, line, "failed and removed the worktree")
            self.check(self.git("status", "--porcelain") == status_before, line, "failed and changed the main tree")

    def merge(self, words, before, after, well):
        if not well:
            return
        s = self.session
        into = words[words.index("--into") + 1] if "--into" in words else self.on
        target, head, tip = f"refs/heads/{into}", before.get(s.path), before.get(f"refs/heads/{s.branch}")
        moved = [n for n in after if n.startswith("refs/heads/") and n not in (target, f"refs/heads/{s.branch}") and before.get(n) != after[n]]
        self.check(not moved, words, "merges into another branch than", into, "-", moved)
        if "--squash" in words:
            lines = set(TOKEN.findall(self.git("grep", "-ohE", r"t[0-9]+x[0-9]+", head or tip or s.base).encode()))
            has = set(TOKEN.findall(self.git("grep", "-ohE", r"t[0-9]+x[0-9]+", target).encode()))
            self.check(lines <= has or (head or tip or "-")[:7] in self.said, words, "says merged, but the target lacks", sorted(lines - has))
        else:
            others = [c for n, c in before.items()  # what was done in a worktree of the agent's own stays there, like a person's
                      if n in self.agents_refs and n not in self.start and n.startswith("refs/heads/") and "/extra/" not in n]
            missing = self.missing([head, tip, *others], target)
            self.check(not missing, words, "says merged, but commits are not in the target and not named:", missing)
        self.uncommitted_is_said(words)

    def uncommitted_is_said(self, words):
        left = self.git("status", "--porcelain", at=self.session.path) if os.path.isdir(self.session.path) else ""
        self.check(not left or self.session.path == self.box.cwd or "commit" in self.said.replace("committed ", ""),
                   words, "says nothing of uncommitted work:", left)

    def integrate(self, words, before, after, well):
        s = self.session
        if well and s.branch:
            missing = self.missing([before.get(s.path), before.get(f"refs/heads/{s.branch}")], after[self.box.cwd])
            self.check(not missing, words, "says merged, but HEAD lacks", missing)

    def fork(self, words, before, after, _well):
        self.read_notes()
        log = self.log() if not self.gone else [{"session": self.session.id}]
        if log[0]["session"] == self.session.id or not self.session.branch:
            return
        new = self.find_session(log)
        if new.path != self.box.cwd:
            missing = self.missing([before.get(self.session.path)], new.base)
            self.check(not missing, words, "begins without", missing)
        self.session = new
        self.on = self.git("branch", "--show-current") or self.on  # where the new one began
        self.remember(after)

    def pr(self, words, before, _after, well):
        s = self.session
        if well and s.branch:
            pushed = self.git("rev-parse", "--verify", "-q", f"refs/heads/{s.branch}", at=self.box.dir + "/remote.git")
            missing = self.git("rev-list", before.get(s.path, s.base), "--not", pushed or s.base, s.base).split()
            self.check(pushed and not missing, words, "pushed without", missing)
            self.uncommitted_is_said(words)

    def diff(self, words, before, _after, well):
        s = self.session
        head = before.get(s.path)
        if not well or not head or not s.branch or not os.path.isdir(s.path): # once it is gone, the branch is shown
            return
        lines = set(TOKEN.findall(self.git("diff", s.base, at=s.path).encode()))
        self.check(lines <= set(TOKEN.findall(self.said.encode())), words, "does not show", sorted(lines))

    def discard(self, words, _before, after, well):
        s = self.session
        if well and s.branch:
            self.check(not os.path.isdir(s.path), words, "leaves the worktree")
            said = "its branch stays: " in self.said  # it is checked out elsewhere
            self.check(f"refs/heads/{s.branch}" not in after or said, words, "leaves the branch without a word")

    def rm(self, words, _before, _after, well):
        there = os.path.exists(f"{self.logs}/{self.session.id}.ndjson")
        self.check(there != well or self.gone, words, "log is there:", there)
        self.gone = not there

    def resume(self, _words, _before, after, _well):
        self.read_notes()
        self.remember(after)

    def worktrees(self, words, *_):
        self.check(not os.path.isdir(self.session.path) or self.session.path == self.box.cwd or self.session.path in self.said,
                   words, "does not list it")

    def remember(self, refs):
        """The commits that segue itself made of what agents left are as dear."""
        for name, commit in refs.items():
            if name != "on":
                self.commits.setdefault(commit, name if name.startswith("refs/") else "HEAD of " + os.path.basename(name)[-12:])

    # -- the run

    def run(self):
        self.start = self.refs()
        self.base, self.on = self.start[self.box.cwd], self.start["on"]
        self.start_commits = sorted({c for n, c in self.start.items() if n.startswith("refs/")})
        flow, self.last = self.flow()
        done = self.box.segue("run", flow, "--task", "x", timeout=60)
        self.said = f"({done.returncode}) {(done.stdout + done.stderr).decode('utf-8', 'replace')}"
        self.check(done.returncode in (0, 1, 2, 3, 7), "run: exit status")
        self.read_notes()
        self.agents_refs = {name for note in self.notes for name in note["refs"]}
        log = self.log()
        self.session = s = self.find_session(log)
        self.nothing_is_lost("run")
        after = self.refs()
        self.remember(after)
        self.said += json.dumps([r for r in log if r["type"] in ("workspace", "session_stop")])  # what it says in full
        self.said += json.dumps([r["head"] for r in of_type(log, "call_end") if "head" in r])
        own = [n for n in self.notes if n["at"] == s.path]
        if done.returncode == 0 and s.branch:
            ends = [after.get(s.path), after.get(f"refs/heads/{s.branch}")]
            missing = self.missing([n["heads"].get(s.path) for n in own], *[e for e in ends if e])
            self.check(not missing, "run ends COMPLETE and says nothing of commits that were left behind:", missing)
            stolen = {n["main"] for n in own} - {self.on}
            self.check(not stolen, "run ends COMPLETE, and the main tree was moved to", stolen)
        joined = [r for r in of_type(log, "call_end") if r.get("exit") is not None][-1:] if s.children else []
        if joined and joined[0]["exit"] == 0 and done.returncode == 0 and len(self.notes) == 2 * (len(self.made["movements"]) + len(s.children)):
            missing = self.missing([after.get(path) for path, _ in s.children], after[s.path])
            self.check(not missing, "integrate ends with 0, but a child's commits are not in it:", missing)

    def play(self):
        self.run()
        for line in self.made["commands"]:
            self.said = ""
            self.command(line)
            self.read_notes()
            self.nothing_is_lost(line)


def memory():
    """A folder in memory for what is made thousands of times and never read again, where there is one."""
    there = os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 1 << 28
    return "/dev/shm" if there else None


def fails(made, origin):
    """None, or what is wrong with it."""
    with Box(base=memory()) as box:
        try:
            Play(box, made, origin).play()
        except (Failed, subprocess.TimeoutExpired) as error:
            return str(error)
        except Exception as error:  # no statement of segue's
            return "TEST " + repr(error) + traceback.format_exc()
    return None


def smaller(made):
    """The scenario without one of its parts, in each way."""
    for i in range(len(made["commands"])):
        yield {**made, "commands": made["commands"][:i] + made["commands"][i + 1:]}
    if made["children"]:
        yield {**made, "children": []}
    for i, lines in enumerate(made["movements"]):
        if len(made["movements"]) > 1:
            yield {**made, "movements": made["movements"][:i] + made["movements"][i + 1:]}
        for j in range(len(lines)):
            if len(lines) > 1:
                yield {**made, "movements": made["movements"][:i] + [lines[:j] + lines[j + 1:]] + made["movements"][i + 1:]}
    if made["part"]:
        yield {**made, "part": False}
    if made["commit"] != "end":
        yield {**made, "commit": "end"}


def kind_of(error):
    return re.sub(r"[0-9a-f-]{12,}", "ID", error.split("\n")[0])[:60]


def shrunk(made, error, origin):
    """The smallest that still fails in the same words."""
    kind, again = kind_of(error), True
    while again:
        again = False
        for less in smaller(made):
            found = fails(less, origin)
            if found and kind_of(found) == kind:
                made, error, again = less, found, True
                break
    return made, error


# Scenarios that failed once, made small: what an agent does in each movement, and the commands afterwards.
DETACHED = "git checkout -q --detach; " + COMMIT
SMALL = [(deeds, commands) for deeds, commands in (
    ([[WRITE[0]]], ["discard ID --yes"]), ([[DETACHED]], ["rm ID --force"]), ([[DETACHED]], ["discard ID --yes --force"]),
    ([["git checkout -q other; " + COMMIT]], ["integrate BRANCH"]), ([["git checkout -qBmine other; " + COMMIT]], ["integrate BRANCH"]),
    ([["git checkout -qb mine; " + COMMIT], [COMMIT]], ["fork ID --from LAST"]), ([[COMMIT]], ["$ git checkout -q other", "merge ID"]),
    ([[COMMIT], ["git reset -q --hard main", "git checkout -qb mine; " + COMMIT]], ["integrate BRANCH"]),
    ([["git worktree move $W $W.moved", DETACHED], ["git checkout -q --detach main; " + COMMIT, "cd $M; rm -rf $W"]], []),
    ([[COMMIT], ["git branch -qf mine; git reset -q --hard HEAD~1"]], []), ([["git worktree move $W $W.moved", "git -C $M checkout -qb stolen"]], []),
    ([["git update-ref -d $(git symbolic-ref HEAD)", COMMIT, "git update-ref -d $(git symbolic-ref HEAD)"]], ["discard ID --yes --force"]),
    ([["git checkout -qb mine/1; " + COMMIT, "cd $M; git worktree remove -f $W"]], ["merge ID"]),
    ([[COMMIT], ["git reset -q --hard HEAD~1", "cd $M; git worktree remove -f $W"]], ["rm ID --force"]),
    ([[DETACHED, "git branch -qD $(git branch --list --format='%(refname:short)' 'segue/*')"], [WRITE[0]]], ["discard ID --yes --force"]))]
CHILDREN = [[[DETACHED], ["git stash -qu"]], [["git merge -qm m other"], ["git checkout -q other", "git reset -q --hard HEAD~1"]]]


def those_that_failed_once():
    plain = {"mode": "worktree", "commit": "end", "part": False, "children": []}
    cases = [{**plain, "movements": deeds, "commands": commands} for deeds, commands in SMALL]
    cases += [{**plain, "movements": [["git rebase -q other"]], "children": children, "commands": [command]}
              for children in CHILDREN for command in ("rm ID --force", "discard ID --yes --force")]
    cases += [{**plain, "part": True, "movements": [[deed]], "commands": ["merge ID"]} for deed in IN_PART[:3]]
    cases += [{**plain, "movements": [["echo t1x$$ >> new; git add -A; git commit -qm c1"], ["git checkout -q other; echo t2x$$ >> new"]],
               "children": [[COMMIT], ["true"]], "commands": ["resume ID"]},
              {**plain, "movements": [[COMMIT]], "children": [["git checkout -qB mine other; " + COMMIT], [COMMIT]], "commands": ["merge ID --into other"]},
              # A fork's merge names what a child of the session before it has left.
              {**plain, "movements": [[COMMIT]], "children": [["git update-ref -d $(git symbolic-ref HEAD)", COMMIT, DETACHED], ["true"]],
               "commands": ["fork ID --from LAST", "merge ID --into other"]}]
    with Box() as box:
        template(box)
        for made in cases:
            made = json.loads(json.dumps(made).replace("tNx", "t1x"))
            error = fails(made, box.dir)
            expect(error is None, json.dumps(made), error)


def seeds():
    """The property: two at a time."""
    wanted = [range(*(int(n) + i for i, n in enumerate((part.split("-") * 2)[:2])))
              for part in os.environ.get("SEEDS", "").split(",") if part]
    first = sample.seed() * 1000
    wanted = [seed for part in wanted for seed in part] or range(first, first + COUNT)
    wrong, kinds = [], collections.Counter()
    with Box() as box:
        template(box)

        def one(seed):
            made = scenario(seed)
            error = fails(made, box.dir)
            if error:
                kinds[kind_of(error)] += 1
                if kinds[kind_of(error)] <= int(os.environ.get("SHRINK", "2")):
                    made, error = shrunk(made, error, box.dir)
                print(f"seed {seed}: {json.dumps(made)}\n   {error}", flush=True)
                wrong.append(seed)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(one, wanted))
    expect(not wrong, f"{len(wrong)} of {len(wanted)} seeds; SEEDS={','.join(map(str, wrong))} repeats them")
    return f"{len(wanted)} seeds"


if __name__ == "__main__":
    sys.exit(main([those_that_failed_once, seeds]))
