#!/usr/bin/env python3
"""Children in worktrees of their own and the movement that merges them: killed at many records, and
in the middle of a merge, each child's work is there once afterwards."""
import json
import os
import sys
from pathlib import Path

from support import Box, expect, main, of_type, records, sample, verified
from worktree_test import git, repository, worktrees

FLOW = """
name: parts
workspace: worktree
movements:
  - name: parts
    for_each: [one, two, three]
    concurrency: 3
    parallel:
      - name: part
        workspace: worktree
        command: [sh, -c, "cat > $SEGUE_CALL.txt"]
        instruction: "{item}"
        rules: [{condition: when(exit == 0)}, {condition: when(true)}]
    rules: [{condition: when(true), next: join}]
  - name: join
    integrate: parts
    rules: [{condition: when(exit == 0), next: COMPLETE}, {condition: when(true), next: ABORT}]
"""


def run_words(box):
    return ["run", box.file("parts.yaml", FLOW), "--cwd", box.cwd, "--logs", box.logs, "--json"]


def is_whole(box, *what):
    log = records(box.begun()[0])
    own = "segue/" + log[0]["session"]
    names = git(box, "ls-tree", "--name-only", own).split()
    texts = sorted(git(box, "show", f"{own}:{name}") for name in names if name.endswith(".txt"))
    expect(texts == ["one", "three", "two"], *what, names, texts)
    expect(git(box, "rev-list", "--merges", "--count", own) == "3", *what, "a merge for each part")
    expect(git(box, "status", "--porcelain") == "", *what, "main tree")
    trees = worktrees(box)
    expect(len(trees) == 4 and len(set(trees.values())) == 4, *what, trees)
    expect(sorted(git(box, "branch", "--format=%(refname:short)").split()) ==
           sorted(["main", *trees.values()]), *what, "branches")
    verified(box, box.begun()[0])


def killed_after(number):
    """kill -9 once it has told so many records; False: it ended before."""
    with Box() as box:
        repository(box)
        process = box.start(*run_words(box))
        killed = False
        for n, _ in enumerate(process.stdout, 1):
            if n == number:
                process.kill()
                killed = True
        process.wait()
        expect(killed or process.returncode == 0, number, process.stderr.read())
        if killed:
            box.segue("resume", box.begun()[0], status=0)
        is_whole(box, "record", number)
        return killed


def diffs_of_items(box):
    repository(box)
    box.segue(*run_words(box), status=0)
    log = box.begun()[0]

    def diff(*words, status=0):
        done = box.segue("diff", log, *words, status=status)
        return done.stderr if status else done.stdout
    said = diff("part")
    places = [said.find(word) for word in (b"== part, item 1: segue/", b"+one", b"== part, item 2", b"+two",
                                           b"== part, item 3", b"+three")]
    expect(-1 not in places and places == sorted(places), said)
    for name in ("parts", "parts.part"):
        expect(diff(name).count(b"== ") == 3, name)
    said = diff("part", "--item", "2")
    expect(b"+two" in said and b"+one" not in said and b"==" not in said, said)
    value = json.loads(diff("part", "--json"))
    expect([item["item"] for item in value["items"]] == [1, 2, 3] and
           [item["files"][0]["added"] for item in value["items"]] == [1, 1, 1], value)
    expect(b"item 4 of movement part has no worktree" in diff("part", "--item", "4", status=2), "4")
    for words in (["part", "--item", "0"], ["part", "--item", "x"], ["--item", "1"]):
        expect(b"--item must be the number of an item" in diff(*words, status=2), words)


def killed_at_many_records():
    for number in sample.draw("records", range(2, 1000, 4), 3):
        if not killed_after(number):
            break
    expect(number > 20, "only", number, "records")
    return f"up to {number}"


def one_that_was_cut_off_in_a_merge(box):
    """As a kill in git's own work leaves it: locks, a file half added, no merge on record."""
    repository(box)
    expect(box.segue(*run_words(box)).returncode == 0, "run")
    log = records(box.begun()[0])
    made = [r["data"] for r in of_type(log, "workspace") if r["event"] == "made"]
    own = next(m for m in made if m["branch"] == "segue/" + log[0]["session"])
    part = next(m for m in made if m is not own)
    tip = git(box, "rev-parse", part["branch"])
    git(box, "reset", "-q", "--hard", "main", at=own["path"])
    folder = git(box, "rev-parse", "--absolute-git-dir", at=own["path"])
    name = next(n for n in git(box, "ls-tree", "--name-only", tip).split() if n.endswith(".txt"))
    for path, text in ((f"{own['path']}/{name}", "hal"), (own["path"] + "/a", "changed\n"),
                       (folder + "/index.lock", ""), (folder + "/SEGUE_MERGE", f"merging {tip}\n")):
        Path(path).write_text(text)
    Path(own["path"] + "/mine").write_text("kept\n")
    words = ["integrate", "--cwd", own["path"], *[m["branch"] for m in made if m is not own]]
    box.segue(*words, status=2, err=b"was interrupted")
    box.segue(*words, env={"SEGUE_SESSION": log[0]["session"]}, status=0)
    expect(git(box, "status", "--porcelain", at=own["path"]) == "?? mine", "its tree")
    is_whole(box)
    expect(not os.path.exists(folder + "/SEGUE_MERGE"), "it is over")


def a_verdict_does_not_keep_a_branch_out():
    flow = FLOW.replace("cat > $SEGUE_CALL.txt", "cat > $SEGUE_CALL.txt; grep -qv two *.txt")
    with Box() as box:
        repository(box)
        box.file("parts.yaml", flow)
        done = box.segue("run", box.dir + "/parts.yaml", "--cwd", box.cwd, "--logs", box.logs, "--json", status=0)
        log = [json.loads(line) for line in done.stdout.splitlines()]
        texts = "".join(r.get("text", "") for r in of_type(log, "call_end"))
        expect(texts.count("merged: segue/") == 3, "whatever its verdict, its work is committed", texts)


STRAY = "cat > $SEGUE_CALL.txt; n=$(cat $SEGUE_CALL.txt); "


def children_that_left_their_branches():
    """Their work is not taken for merged: integrate names child, branch and where its worktree stands,
    ends with an exit that is no conflict's, and merges once that is mended."""
    for deed, place, template in (
            ("git checkout -q -b mine/$n; git add -A; git commit -qm mine", "mine/one", ""),
            ("git checkout -q -b mine/$n", "mine/one", "branch: work/{workflow}\n"),
            ("git checkout -q --detach; git add -A; git commit -qm x; echo $n >> $SEGUE_CALL.txt", "a detached HEAD", ""),
            ("git add -A; git commit -qm x; git branch -m mine/$n", "mine/one", "")):
        with Box() as box:
            repository(box)
            flow = box.file("parts.yaml", template + FLOW.replace("cat > $SEGUE_CALL.txt", STRAY + deed).replace(
                "concurrency: 3", "concurrency: 1")) # git lets one at a time rename a branch
            done = box.segue("run", flow, "--cwd", box.cwd, "--logs", box.logs, "--json")
            log = [json.loads(line) for line in done.stdout.splitlines()]
            text = "".join(r.get("text", "") + r.get("stderr", "") for r in of_type(log, "call_end"))
            made = [r["data"] for r in of_type(log, "workspace") if r["event"] == "made"]
            child = next(m for m in made if m["branch"].endswith("-2"))
            at = git(box, "rev-parse", "HEAD", at=child["path"])
            expect(done.returncode == 3 and log[-1]["type"] == "session_end", deed, done)
            expect(of_type(log, "call_end")[-1]["exit"] == 2, deed, log[-8:])
            said = f"{child['branch']} " + ("is gone" if "-m mine/" in deed else "lacks commits")
            expect(said in json.dumps(log) and f"stands on {place} ({at[:10]})" in json.dumps(log), deed, text)
            expect("merged: " not in text, deed, text)
            for item in made[1:]:
                git(box, "branch", "-f", item["branch"], git(box, "rev-parse", "HEAD", at=item["path"]))
            branches = [m["branch"] for m in made[1:]]
            words = ["fork", log[0]["session"], "--from", "join", "--logs", box.logs, "--json"]
            if template: # a fork cannot have that name
                words = ["integrate", "--cwd", made[0]["path"], *branches]
            done = box.segue(*words, env={"SEGUE_SESSION": log[0]["session"]} if template else None)
            expect(done.returncode == 0 and done.stdout.count(b"merged: ") >= 3, deed, done)


def copies_stay_out_of_merges():
    """With names that git ignores, and that it does not: in children, in a conflict that is resolved, and
    in the session's own commits. What the resolving movement makes anew is committed."""
    flow = FLOW.replace("cat > $SEGUE_CALL.txt", "cat > $SEGUE_CALL.txt; cat $SEGUE_CALL.txt >> a; "
                        "echo changed | tee -a .env > plain; git add -A").replace(
        "concurrency: 3", "concurrency: 1").replace("when(true), next: ABORT}]\n", """when(true), next: resolve}]
  - name: resolve
    command: [sh, -c, "sed -i '/^[<=>]/d' a; echo x > made"]
    rules: [{condition: when(true), next: join}]
""", 1)
    for commits in ("end", "movement"):
        with Box() as box:
            repository(box)
            for name, text in ((".gitignore", ".env\nmodules\n"), (".env", "secret\n"), ("plain", "secret\n")):
                Path(f"{box.cwd}/{name}").write_text(text)
            os.mkdir(box.cwd + "/modules")
            git(box, "add", ".gitignore")
            git(box, "commit", "-qm", "ignore")
            box.config("workspace: {copy: [.env, plain], link: [modules]}\n")
            done = box.segue("run", box.file("parts.yaml", flow), "--cwd", box.cwd, "--logs", box.logs,
                             "--commit", commits, "--json", status=0)
            log = [json.loads(line) for line in done.stdout.splitlines()]
            for made in [r["data"] for r in of_type(log, "workspace") if r["event"] == "made"]:
                names = git(box, "log", "--format=", "-m", "--name-only", "main.." + made["branch"]).split()
                expect(not {".env", "plain", "modules"} & set(names) and "a" in names, commits, names)
            own = "segue/" + log[0]["session"]
            expect(git(box, "show", own + ":a") == "one\none\ntwo\nthree", git(box, "show", own + ":a"))
            expect("made" in git(box, "ls-tree", "--name-only", own).split(), commits, "a new file")
            box.segue("merge", "last", "--logs", box.logs, out=b"is in main")
            done = box.segue("discard", "last", "--yes", "--logs", box.logs)
            expect(done.returncode == 0 and worktrees(box) == {}, done)


def a_fork_knows_the_branches():
    """Begun anew at the movement that merges, and by merge --resolve before it."""
    flow = FLOW.replace("when(true), next: ABORT}]\n", """when(true), next: resolve}]
  - name: resolve
    command: [sh, -c, "for f in *.txt; do sed -i '/^[<=>]/d' $f; done"]
    rules: [{condition: when(true), next: join}]
""", 1)
    with Box() as box:
        repository(box)
        box.file("parts.yaml", flow)
        box.segue("run", box.dir + "/parts.yaml", "--cwd", box.cwd, "--logs", box.logs, status=0)
        is_whole(box)
        first = records(box.begun()[0])
        own = "segue/" + first[0]["session"]
        box.segue("fork", "last", "--from", "join", "--logs", box.logs, status=0)
        log = records(box.begun()[-1])
        carried = of_type(log, "carried")[0]["state"]["branches"]
        expect(len(carried) == 3, carried)
        text = next(r["text"] for r in of_type(log, "call_end"))
        expect(text.count("merged: segue/") == 3, text)
        name = next(n for n in git(box, "ls-tree", "--name-only", own).split() if n.endswith(".txt"))
        Path(f"{box.cwd}/{name}").write_text("main's\n")
        git(box, "add", "-A")
        git(box, "commit", "-qm", "mine")
        box.segue("merge", first[0]["session"], "--resolve", "resolve", "--logs", box.logs, status=0, out=b"is in main")
        expect("main's" in git(box, "show", "main:" + name).splitlines(), git(box, "show", "main:" + name))
        verified(box, *box.begun())


if __name__ == "__main__":
    sys.exit(main([diffs_of_items, killed_at_many_records, one_that_was_cut_off_in_a_merge,
                   a_verdict_does_not_keep_a_branch_out,
                   children_that_left_their_branches, copies_stay_out_of_merges,
                   a_fork_knows_the_branches]))
