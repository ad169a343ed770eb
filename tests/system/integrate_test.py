#!/usr/bin/env python3
"""Children in worktrees of their own and the movement that merges them: killed at many records, and
in the middle of a merge, each child's work is there once afterwards."""
import json
import os
import shutil
import subprocess
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
    for path, text in ((f"{own['path']}/{name}", git(box, "show", f"{tip}:{name}")[:2]), (own["path"] + "/a", "changed\n"),
                       (folder + "/index.lock", ""), (folder + "/SEGUE_MERGE", f"merging {tip}\n")):
        Path(path).write_text(text)
    Path(own["path"] + "/mine").write_text("kept\n")
    words = ["integrate", "--cwd", own["path"], *[m["branch"] for m in made if m is not own]]
    box.segue(*words, env={"SEGUE_SESSION": log[0]["session"]}, status=0)
    expect(git(box, "status", "--porcelain", at=own["path"]) == "?? mine", "its tree")
    is_whole(box)
    expect(not os.path.exists(folder + "/SEGUE_MERGE"), "it is over")


def a_file_that_stood_in_the_way_stays(box):
    """git refuses such a merge before it changes anything, and what is put back afterwards is only the merge's."""
    repository(box)
    expect(box.segue(*run_words(box)).returncode == 0, "run")
    log = records(box.begun()[0])
    made = [r["data"] for r in of_type(log, "workspace") if r["event"] == "made"]
    own = next(m for m in made if m["branch"] == "segue/" + log[0]["session"])
    git(box, "reset", "-q", "--hard", "main", at=own["path"])
    branches = [m["branch"] for m in made if m is not own]
    name = next(n for n in git(box, "ls-tree", "--name-only", branches[0]).split() if n.endswith(".txt"))
    for env in ({"SEGUE_SESSION": log[0]["session"]}, None):
        for _ in range(2):
            Path(own["path"] + "/" + name).write_text("somebody's\n")
            box.segue("integrate", "--cwd", own["path"], *branches, env=env, status=2, err=b"untracked working tree files would be overwritten")
            expect(Path(own["path"] + "/" + name).read_text() == "somebody's\n", "it was removed", env)
            expect(git(box, "status", "--porcelain", at=own["path"]) == "?? " + name, "the tree", env)
    os.remove(own["path"] + "/" + name)
    box.segue("integrate", "--cwd", own["path"], *branches, status=0)


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
    """Their work is merged, whatever branch they made of it; also with names that have no id in them."""
    for deed, template in (
            ("git checkout -q -b mine/$n; git add -A; git commit -qm mine", ""),
            ("git checkout -q -b mine/$n", "branch: work/{workflow}\n"),
            ("git checkout -q --detach; git add -A; git commit -qm x; echo $n >> $SEGUE_CALL.txt", ""),
            ("git add -A; git commit -qm x; git branch -m mine/$n", "")):
        with Box() as box:
            repository(box)
            flow = box.file("parts.yaml", template + FLOW.replace("cat > $SEGUE_CALL.txt", STRAY + deed).replace(
                "concurrency: 3", "concurrency: 1")) # git lets one at a time rename a branch
            done = box.segue("run", flow, "--cwd", box.cwd, "--logs", box.logs, "--json", status=0)
            log = [json.loads(line) for line in done.stdout.splitlines()]
            made = [r["data"] for r in of_type(log, "workspace") if r["event"] == "made"]
            for item in made[1:]:
                at = git(box, "rev-parse", "HEAD", at=item["path"])
                git(box, "merge-base", "--is-ancestor", at, made[0]["branch"])
                expect(git(box, "rev-parse", item["branch"]) == at, deed, item)


def children_that_stray_after_their_end():
    """integrate looks where their worktrees stand: takes over what descends, and names what does not."""
    for deed, said in (("git checkout -q -b mine; echo x > x; git add x; git commit -qm x", None),
                       ("git checkout -q --detach; echo x > x; git add x; git commit -qm x", None),
                       ("git checkout -q -b mine main; echo x > x; git add x; git commit -qm x", b"stands on mine")):
        with Box() as box:
            repository(box)
            done = box.segue(*run_words(box), status=0)
            log = [json.loads(line) for line in done.stdout.splitlines()]
            made = [r["data"] for r in of_type(log, "workspace") if r["event"] == "made"]
            before = git(box, "rev-parse", made[0]["branch"])
            subprocess.run(["sh", "-ec", deed], cwd=made[1]["path"], env=box.env, check=True)
            words = ["integrate", "--cwd", made[0]["path"], made[1]["branch"]]
            done = box.segue(*words, status=2 if said else 0, env={"SEGUE_SESSION": log[0]["session"]})
            if said:
                tips = [git(box, "rev-parse", name)[:10].encode() for name in ("mine", made[1]["branch"])]
                expect(all(text in done.stderr for text in (said, *tips)), deed, done)
                expect(git(box, "rev-parse", made[0]["branch"]) == before, "nothing is merged")
            else:
                expect(b"has the work of its worktree" in done.stdout, deed, done)
                expect(os.path.exists(made[0]["path"] + "/x"), deed)


def checks_of_a_movement():
    """integrate: {group, check}: words without a shell; what breaks it is put back, and the exit says so."""
    flow = FLOW.replace("integrate: parts", """integrate:
      group: parts
      check: [sh, -c, 'echo "it''s $1"; test -z "$(grep -l two *.txt)"', sh, "a 'b' $HOME"]""").replace(
          "{condition: when(true), next: ABORT}", "{condition: when(exit == 3), next: COMPLETE}")
    with Box() as box:
        repository(box)
        box.file("parts.yaml", flow)
        done = box.segue("run", box.dir + "/parts.yaml", "--cwd", box.cwd, "--logs", box.logs, "--json", status=0)
        log = [json.loads(line) for line in done.stdout.splitlines()]
        end = of_type(log, "call_end")[-1]
        expect(end["exit"] == 3 and end["text"].count("merged: ") == 2, end)
        expect("put back: " in end["text"] and "ended with 1:\n  it's a 'b' $HOME\n" in end["text"], end["text"])
        own = "segue/" + log[0]["session"]
        names = git(box, "ls-tree", "--name-only", own).split()
        expect(sorted(git(box, "show", f"{own}:{n}") for n in names if n.endswith(".txt")) == ["one", "three"], names)
        verified(box, box.begun()[0])


def a_git_that_is_ended_is_no_conflict():
    """Ended once, it is asked again; twice, exit is 2 with the reason; then the same command goes on."""
    for words in ("merge --no-ff", "refs/heads/x", "--is-ancestor", "--diff-filter=U", "--show-toplevel"):
        for times in (1, 2, 3):
            with Box() as box:
                box.config("sandbox: off\n")  # git itself is a script here, which writes
                repository(box)
                git(box, "checkout", "-qb", "x")
                Path(box.cwd + "/a").write_text("theirs\n")
                git(box, "commit", "-qam", "theirs")
                git(box, "checkout", "-q", "main")
                if words == "--diff-filter=U":
                    Path(box.cwd + "/a").write_text("ours\n")
                    git(box, "commit", "-qam", "ours")
                os.mkdir(box.dir + "/bin")
                Path(box.dir + "/left").write_text("." * times)
                Path(box.dir + "/bin/git").write_text(f"""#!/bin/sh
case "$*" in *"{words}"*) if [ -s {box.dir}/left ]; then
  left=$(cat {box.dir}/left); printf %s "${{left#.}}" > {box.dir}/left; kill -9 $PPID; exit 1; fi;; esac
exec {shutil.which('git')} "$@"
""")
                os.chmod(box.dir + "/bin/git", 0o755)
                env = {"PATH": box.dir + "/bin:" + box.env["PATH"]}
                done = box.segue("integrate", "x", env=env)
                conflict = words == "--diff-filter=U"
                ended = done.returncode == 2 and b"git was ended" in done.stderr
                expect(done.returncode == int(conflict) if times == 1 else ended, words, times, done)
                expect(b"there is no branch" not in done.stderr, words, done)
                Path(box.dir + "/left").write_text("")
                box.segue("integrate", "x", env=env, status=int(conflict))
                if not conflict:
                    git(box, "merge-base", "--is-ancestor", "x", "main")
                    expect(git(box, "status", "--porcelain") == "", words)


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
    sys.exit(main([diffs_of_items, killed_at_many_records, one_that_was_cut_off_in_a_merge, a_file_that_stood_in_the_way_stays,
                   a_verdict_does_not_keep_a_branch_out,
                   children_that_left_their_branches, children_that_stray_after_their_end,
                   checks_of_a_movement, a_git_that_is_ended_is_no_conflict, copies_stay_out_of_merges,
                   a_fork_knows_the_branches]))
