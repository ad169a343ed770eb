#!/usr/bin/env python3
"""What a turn changed in the working tree: in call_end, in the turn's line, in rules, in the judge's
prompt; with git and without, after a crash too, and how long a large tree takes.
"""
import json
import os
import subprocess
import sys
import time

from support import SANITIZED, SEGUE, Box, expect, fill, main, of_type, records, sample

GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
END = "      - {condition: when(changed == 0), next: ABORT}\n      - {condition: when(true), next: COMPLETE}\n"


def flow(command, rules=END, more=""):
    return f"name: w\nprovider: script\nmovements:\n  - name: work\n    command: [sh, -c, {json.dumps(command)}]\n    rules:\n{rules}{more}"


def run(box, text, code=0, *words):
    done = box.segue("run", box.file("w.yaml", text), "--task", "t", "--logs", box.logs, *words, status=code)
    expect(box.segue("verify", "last", "--logs", box.logs).returncode == 0, "verify")
    return records(max(box.log_paths(), key=os.path.getmtime)), done.stdout.decode()


def files(log):
    return [r.get("files") for r in of_type(log, "call_end")]


def git(box, *words):
    subprocess.run([*GIT, *words], cwd=box.cwd, check=True, stdout=subprocess.DEVNULL, env=box.env)


def case_without_git(box):
    """Sizes and times tell; contents of a small tree are compared."""
    box.file("work/a", "1\n2\n")
    log, out = run(box, flow("echo 3 >> a; mkdir d; echo x > d/n; touch a"))
    expect(files(log) == [[{"path": "a", "added": 1, "removed": 0}, {"path": "d/n", "added": 1, "removed": 0}]], files(log))
    expect("a +1 -0 and 1 more" in out, out)
    log, _ = run(box, flow("touch a d/n"), 3)
    expect(files(log) == [[]], files(log))


def case_with_git(box):
    """In a repository ignored files do not count, and its index and hooks are left alone."""
    for name, text in (("a", "1\n"), (".gitignore", "*.o\n")):
        box.file("work/" + name, text)
    git(box, "init", "-q", ".")
    git(box, "add", "-A")
    git(box, "commit", "-qm", "x")
    index = open(box.cwd + "/.git/index", "rb").read()
    log, _ = run(box, flow("echo o > x.o; echo 2 >> a; echo n > n"))
    expect(files(log) == [[{"path": "a", "added": 1, "removed": 0}, {"path": "n", "added": 1, "removed": 0}]], files(log))
    log, _ = run(box, flow("echo o >> x.o"), 3)
    expect(files(log) == [[]] and open(box.cwd + "/.git/index", "rb").read() == index, files(log))
    left = [n for n in os.listdir(box.dir + "/tmp") if n.startswith("segue-")]
    expect(left == [], "left in TMPDIR:", left)


def case_submodule(box):
    """What changes in a submodule is known to rules and judges, and can be protected."""
    other = box.dir + "/other"
    os.mkdir(other)
    box.file("other/f", "1\n")
    for words in (["init", "-q", "."], ["add", "-A"], ["commit", "-qm", "f"]):
        subprocess.run([*GIT, *words], cwd=other, check=True, env=box.env)
    git(box, "init", "-q", ".")
    git(box, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other, "part")
    git(box, "commit", "-qm", "x")
    log, out = run(box, flow("echo 2 >> part/f"))
    expect(files(log) == [[{"path": "part/f", "added": 1, "removed": 0}]], files(log))
    expect("part/f +1 -0" in out, out)
    log, _ = run(box, flow("true"), 3)
    expect(files(log) == [[]], files(log))
    log, _ = run(box, "protect: [part/**]\n" + flow("echo 3 >> part/f"), 7)
    expect(log[-1]["reason"] == "protected", log[-1])


def case_own_logs(box):
    """What segue writes below the working directory is no change."""
    box.segue("run", box.file("w.yaml", flow(":")), "--task", "t", "--logs", box.cwd + "/logs", status=3)


def case_rules(box):
    """Rules ask for the number and for the paths; nothing known is an error, never 0."""
    rules = "      - {condition: 'when(contains(files.path, \"b\") && changed == 2)', next: COMPLETE}\n"
    run(box, flow("echo 1 > a; echo 2 > b", rules))
    done = box.segue("lint", box.file("w.yaml", flow(":", rules.replace("changed", "chnged"))))
    expect(b"did you mean changed?" in done.stderr + done.stdout, done.stdout, done.stderr)


def case_judge():
    """The judge is told what was changed, or that nothing was."""
    text = """name: w
provider: script
movements:
  - name: work
    edit: true
    instruction: Do it.
    judge: {stages: [structured_output]}
    rules:
      - {condition: it is done, next: COMPLETE}
      - {condition: it is not done, next: ABORT}
"""
    with Box() as box:
        for write, said in ((", write: {src/a.c: \"x\\n\"}", "Files changed in this turn: src/a.c +1 -0."),
                            ("", "No file was changed in this turn.")):
            scenario = box.file("s.yaml", "replies:\n  - {purpose: execute, text: I changed everything%s}\n"
                                "  - {purpose: judge, structured: {reason: r, step: 1}}\n" % write)
            run(box, text, 0, "--scenario", scenario)
            shown = box.segue("show", "last", "--turn", "1", "--prompts", "--logs", box.logs)
            prompt = "".join(p for r in of_type(records(max(box.log_paths(), key=os.path.getmtime)), "call_start")
                             if r["purpose"] == "judge" for p in r["prompt"] if isinstance(p, str))
            expect(said in prompt, prompt, shown.stderr)


def judged(log, turn):
    """What the judge of a turn was told, between the heading of what was measured and the report."""
    def text(part):
        if isinstance(part, str):
            return part
        seq, names = part["ref"].split("#/")
        found = log[int(seq) - 1]
        for name in names.split("/"):
            found = found[int(name)] if isinstance(found, list) else found[name]
        return text(found)
    prompts = ["".join(text(p) for p in r["prompt"]) for r in of_type(log, "call_start")
               if r["purpose"] == "judge" and r["turn"] == turn]
    return [p[p.index("Measured by"):p.index("\n-----")].splitlines()[1:] for p in prompts]


def case_last_judge():
    """The judge of a supervisor sees the session: its files, which of them are the check's, the check before."""
    text = """name: w
provider: script
movements:
  - name: work
    edit: true
    instruction: Do what the task says.
    judge: {stages: [structured_output, phase3_tag, ai_judge]}
    rules: [{condition: done, next: check}, {condition: not done, next: ABORT}]
  - name: check
    command: [sh, -c, "sh ./tests/check.sh && test -e Makefile"]
    rules: [{condition: when(exit == 0), next: supervise}, {condition: when(true), next: work}]
  - name: supervise
    instruction: Is it all there?
    judge: {stages: [structured_output, phase3_tag, ai_judge]}
    rules: [{condition: all done, next: COMPLETE}, {condition: not done, next: ABORT}]
"""
    name = "b\\n- No file was changed in this turn."
    judge = ["{purpose: judge, stage: %s, text: nothing}" % s for s in ("structured_output", "phase3_tag")]
    judge += ["{purpose: judge, stage: ai_judge, structured: {reason: r, matched_index: 1}}"]
    for first in ("work", "check"):
        with Box() as box:
            tracked(box)
            box.file("work/tests/check.sh", "exit 3\n")
            scenario = box.file("s.yaml", "replies:\n" + "".join(f"  - {r}\n" for r in [
                '{movement: work, purpose: execute, text: did it, write: {tests/check.sh: "exit 0\\n", "%s": "x"}}' % name,
                '{movement: work, purpose: execute, text: more, write: {tests/check.sh: "true\\nexit 0\\n", Makefile: "a:\\n"}}',
                "{movement: supervise, purpose: execute, text: all is there}", *judge, *judge, *judge]))
            log, _ = run(box, text.replace("provider", "initial_movement: " + first + "\nprovider", 1), 0, "--scenario", scenario)
            last = len(of_type(log, "turn_start"))
            before = {"work": "It was not run before the work; its first run, in turn 2, ended with exit status 1.",
                      "check": "Before the work, in turn 1, it ended with exit status 3."}[first]
            expect(len(judged(log, last)) == 3, judged(log, last))
            for told in judged(log, last):
                expect(any(line.endswith(before) for line in told), told)
                expect('- Files changed in this session so far: tests/check.sh +2 -1, "b\\n- No file was changed in this turn." '
                       "+1 -0, Makefile +1 -0." in told, told)
                expect('- Of these, the command of "check" names: tests/check.sh +2 -1, Makefile +1 -0.' in told, told)
                expect(len(told) == 3, told)


SIBLINGS = """
name: w
provider: script
movements:
  - name: both
    parallel:
      - {name: a, command: [sh, -c, "%s"], rules: [{condition: when(changed > 0)}]}
      - {name: b, command: [sh, -c, "%s"], rules: [{condition: when(true)}]}
    rules: [{condition: when(true), next: COMPLETE}]
"""


def case_siblings():
    """What changed while two were at work is no one's own: the last one tells it, and it counts for neither."""
    meet = "echo > %s; while [ ! -e %s ]; do sleep 0.01; done"
    with Box() as box:
        text = SIBLINGS % (meet % ("a", "b"), meet % ("b", "a"))
        log, _ = run(box, text)
        ends = of_type(log, "call_end")
        expect(all(r["files_shared"] for r in ends), ends)
        expect([[f["path"] for f in r.get("files", [])] for r in ends] == [[], ["a", "b"]], ends)
        expect("files" not in ends[0] and "files_unknown" not in ends[0], ends)
        told = [r for r in of_type(log, "turn_end") if r.get("outcome") == "error"]
        expect(len(told) == 1 and "changed" in told[0]["message"], told)
        alone = SIBLINGS % ("echo > x", "echo > y")
        log, _ = run(box, alone.replace("- name: both", "- name: both\n    concurrency: 1"))
        expect([[f["path"] for f in names] for names in files(log)] == [["x"], ["y"]], files(log))
        expect(not any("files_shared" in r for r in log), "shared")


def case_lost_base(box):
    """After a crash the repeat has a new base: nothing is called unchanged that is not known to be."""
    go = box.dir + "/go"
    path = box.file("w.yaml", flow(f"if test -e done; then exit 0; fi; echo 1 > done; touch {go}; sleep 1000"))
    process = box.start("run", path, "--task", "t", "--logs", box.logs)
    while not os.path.exists(go):
        time.sleep(0.01)
    process.kill()
    process.wait()
    done = box.segue("resume", "last", "--logs", box.logs)
    log = records(box.log_paths()[0])
    expect(files(log) == [[]], files(log))
    expect(done.returncode == 1 and "changed" in log[-1]["message"], done.returncode, done.stdout, done.stderr)


GUARD = "protect: [tests/**]\n"


def stopped(box, text, *words):
    """Runs it, expects a stop as protected, and returns why."""
    log, _ = run(box, GUARD + text, 7, *words)
    expect(log[-1]["type"] == "session_stop" and log[-1]["reason"] == "protected", log[-1])
    return log[-1]["message"]


def tracked(box):
    """A repository with a test."""
    os.mkdir(box.cwd + "/tests")
    box.file("work/tests/t.c", "t\n")
    git(box, "init", "-q", ".")
    git(box, "add", "-A")
    git(box, "commit", "-qm", "x")


def counted_git(box):
    """Has every git of the box's programs write a line of its words to git.calls; "gone" kills it."""
    os.mkdir(box.dir + "/bin")
    box.file("bin/git", f"#!/bin/sh\necho \"$*\" >> {box.dir}/git.calls\ntest -e {box.dir}/gone && kill -9 $$\nexec /usr/bin/git \"$@\"\n")
    os.chmod(box.dir + "/bin/git", 0o755)
    box.env["PATH"] = box.dir + "/bin:" + box.env["PATH"]


def looks(box):
    """How often git listed a tree since the last time that this was asked."""
    with open(box.dir + "/git.calls", "r+") as calls:
        count = sum("ls-files" in line for line in calls)
        calls.truncate(0)
    return count


def case_few_looks(box):
    """A group looks when it begins and when its last child ends, and what a turn left is what the next finds."""
    tracked(box)
    counted_git(box)
    children = "".join(f"      - {{name: c{n}, command: [sh, -c, \"{'echo x > n' if n == 7 else ':'}\"], rules: [{{condition: when(true)}}]}}\n"
                       for n in range(32))
    group = ("name: w\nprovider: script\nmovements:\n  - name: both\n    parallel:\n" + children +
             "    rules: [{condition: when(true), next: COMPLETE}]\n")
    log, _ = run(box, group)
    ends = of_type(log, "call_end")
    expect(looks(box) <= 4 and len(ends) == 32, "looks", ends)  # two; more if the machine stands still for seconds
    expect([f["path"] for f in ends[-1]["files"]] == ["n"] and all(r["files_shared"] for r in ends), ends)
    turns = flow("echo x >> n", "      - {condition: when(movement_iteration < 9), next: work}\n" + END)
    log, _ = run(box, turns)
    expect(files(log) == [[{"path": "n", "added": 1, "removed": 0}]] * 9, files(log))
    expect(looks(box) < 15, "looks")  # 10 where each turn follows at once
    expect(not any("files_between" in r for r in log), log)


def case_between(box):
    """What something else changes between two turns is not the next turn's: it is told apart, and makes checks stale."""
    text = """name: w
provider: script
movements:
  - {name: check, command: [sh, -c, "echo 1 >> a"], rules: [{condition: when(true), next: think}]}
  - name: think
    instruction: Think it over.
    structured_output: {on_failure: error, schema: {type: object}, invariants: [{command: [sh, -c, "echo 2 >> b; echo 2 >> a"]}]}
    rules: [{condition: when(true), next: last}]
  - {name: last, command: [sh, -c, "echo 3 >> c"], rules: [{condition: when(changed == 1 && checks.check.stale), next: COMPLETE}, {condition: when(true), next: ABORT}]}
"""
    tracked(box)
    scenario = box.file("s.yaml", 'replies:\n  - {text: "{}"}\n')
    log, _ = run(box, text, 0, "--scenario", scenario)
    end = of_type(log, "call_end")[-1]
    expect([f["path"] for f in end["files"]] == ["c"], end)
    expect(end["files_between"] == [{"path": "a", "added": 1, "removed": 0}, {"path": "b", "added": 1, "removed": 0}], end)
    shown = box.segue("show", "last", "last", "--logs", box.logs).stdout.decode()
    expect("before it, something else changed b +1 -0" in shown, shown)


def case_protected_but_ignored(box):
    """A new rule of what is ignored hides nothing that is protected; what was ignored as a whole stays so."""
    box.file("work/.gitignore", "__pycache__\n*.env\n")
    tracked(box)
    run(box, GUARD + flow("mkdir tests/__pycache__; echo c > tests/__pycache__/c; echo x > a.env", END), 3)
    for hidden, rule in (("conftest.py", "tests/conftest.py"), ("conftest.py", "*.py"), ("new/a.py", "/tests/new"),
                         ("new/a.py", "new/"), ("x.env", "nothing")):
        for place in (".gitignore", ".git/info/exclude", "tests/.gitignore"):
            why = stopped(box, flow(f"mkdir -p tests/new; echo '{rule}' >> {place}; echo x > tests/{hidden}"))
            expect("tests/" + hidden in why or (place == "tests/.gitignore" and place in why), hidden, rule, place, why)
            git(box, "checkout", "-q", ".gitignore")
            subprocess.run("rm -rf tests/new tests/*.py tests/x.env tests/.gitignore .git/info/exclude", shell=True, cwd=box.cwd, check=True)


def case_not_known():
    """Where it cannot be known what changed, protect and changed stop with the reason, and nothing else does."""
    rules = "      - {condition: 'when(changed > 0)', next: COMPLETE}\n      - {condition: when(true), next: ABORT}\n"
    with Box() as box:
        tracked(box)
        counted_git(box)
        log, _ = run(box, flow("touch ../gone; echo weak > tests/t.c", rules), 1)
        expect(log[-1]["reason"] == "failed" and "git could not list" in log[-1]["message"], log[-1])
        os.remove(box.dir + "/gone")
        run(box, flow("touch ../gone", rules.replace("changed > 0", "exit == 0")))
        os.remove(box.dir + "/gone")
        two = flow("touch ../gone", rules.replace("COMPLETE", "more").replace("changed > 0", "true"),
                   "  - name: more\n    command: [rm, ../gone]\n    rules:\n" + rules)
        log, _ = run(box, two, 1)
        expect("git could not list" in log[-1]["message"], log[-1])


def case_flood():
    """More files than are looked at hide no change of what is protected; changed and files stop with the reason."""
    flood = "mkdir -p j; cd j; seq -f f%g 100001 | xargs touch; cd ..; echo weak > tests/t.c"
    with Box() as box:
        tracked(box)
        run(box, GUARD + flow("mkdir -p j; cd j; seq -f f%g 100001 | xargs touch",
                              "      - {condition: when(changed > 90000), next: COMPLETE}\n"))
        why = stopped(box, flow(flood))
        expect(why.startswith('"work" changed what is protected: tests/t.c +1 -1;'), why)
        git(box, "checkout", "-q", "tests/t.c")
        why = stopped(box, flow("echo x > tests/new.c"))
        expect(why.startswith('"work" changed what is protected: tests/new.c +1 -0;'), why)
        log, _ = run(box, GUARD + flow("true", "      - {condition: when(exit == 0), next: COMPLETE}\n"))
        end = of_type(log, "call_end")[0]
        expect(end["protected_seen"] and end["files_unknown"] == "over 100000 files differ" and end["files"] == [], end)
        rules = "      - {condition: 'when(%s)', next: COMPLETE}\n      - {condition: when(true), next: ABORT}\n"
        for asked in sample.draw("rules in a flood", ("changed > 0", 'contains(files.path, "tests/t.c")', "files.length == 0"), 3):
            log, _ = run(box, flow("true", rules % asked), 1)
            expect(log[-1]["reason"] == "failed" and "it is not known which files changed: over 100000 files differ"
                   in log[-1]["message"], log[-1])
            box.segue("resume", "last", "--logs", box.logs, status=1)
        log, _ = run(box, flow("true", rules % "exit == 0 || changed > 0"))
        text = flow("true", rules % "exit == 0", "global_rules: [{condition: when(changed > 50), next: ABORT}]\n")
        log, _ = run(box, text, 1)
        expect("over 100000 files differ" in log[-1]["message"], log[-1])


def case_many_files(box):
    """Of more files than are named the protected ones are, and those that a check runs; files is not whole then."""
    tracked(box)
    many = "mkdir -p j; cd j; seq -f a%g 1500 | xargs touch; cd ..; echo x >> tests/t.c; echo x > z.sh"
    why = stopped(box, flow(many))
    expect(why.startswith('"work" changed what is protected: tests/t.c +1 -0'), why)
    git(box, "clean", "-qfdx")
    check = "  - {name: check, command: [sh, z.sh], rules: [{condition: when(true), next: COMPLETE}]}\n"
    rules = "      - {condition: 'when(changed == 1502 && files.length > 0)', next: check}\n      - {condition: when(true), next: ABORT}\n"
    log, _ = run(box, flow(many, rules, check), 1)
    expect("too many to name" in log[-1]["message"] and "z.sh" in [f["path"] for f in files(log)[0]], log[-1])


def case_cut_off_and_protected(box):
    """What an attempt did before a crash is not taken for nothing, nor let be by a resume before it was told."""
    tracked(box)
    go = box.dir + "/go"
    text = GUARD + flow(f"if test -e {go}; then exit 0; fi; echo weak > tests/t.c; touch {go}; sleep 1000",
                        "      - {condition: when(true), next: ABORT}\n")
    process = box.start("run", box.file("w.yaml", text), "--task", "t", "--logs", box.logs)
    while not os.path.exists(go):
        time.sleep(0.01)
    process.kill()
    process.wait()
    for _ in range(2):
        done = box.segue("resume", "last", "--logs", box.logs)
        log = records(box.log_paths()[0])
        if done.returncode != 7:
            break
        expect(log[-1]["reason"] == "protected" and "cut off" in log[-1]["message"], log[-1])
    expect(done.returncode == 3 and [r["type"] for r in log].count("session_stop") == 1, done.stdout)


def case_siblings_protected():
    """Nobody knows which of two changed it; that it was changed is known."""
    meet = "echo > %s; while [ ! -e %s ]; do sleep 0.01; done"
    with Box() as box:
        tracked(box)
        text = GUARD + SIBLINGS % (meet % ("a", "b"), meet % ("b", "a") + "; echo weak > tests/t.c")
        log, _ = run(box, text, 7)
        expect(log[-1]["reason"] == "protected" and "beside it, changed what is protected: tests/t.c" in log[-1]["message"], log[-1])


def case_replaced(box):
    """A file whose place something else takes has changed."""
    tracked(box)
    for into in ("mkfifo tests/t.c", "mkdir tests/t.c", "mkdir tests/t.c; git init -q tests/t.c"):
        why = stopped(box, flow("rm -r tests/t.c; " + into))
        expect("tests/t.c" in why, into, why)
        git(box, "clean", "-qffd")
        subprocess.run(["rm", "-rf", box.cwd + "/tests/t.c"], check=True)
        git(box, "checkout", "-q", "tests/t.c")


def case_unreadable():
    """A folder that cannot be read may hide a change; with git, without, and in a submodule."""
    if os.geteuid() == 0:
        print("  skipped: root reads everything")
        return
    hide = "echo weak > %s/t.c; chmod 0 %s"
    for with_git in (False, True):
        with Box() as box:
            for folder in ("tests", "new"):
                os.mkdir(box.cwd + "/" + folder)
                box.file("work/" + folder + "/t.c", "t\n")
            if with_git:
                git(box, "init", "-q", ".")
                git(box, "add", "tests")
                git(box, "commit", "-qm", "x")
            for folder in ("tests", "new"):
                why = stopped(box, flow(hide % (folder, folder)))
                expect(folder in why, why)
                os.chmod(box.cwd + "/" + folder, 0o755)
                subprocess.run(["sh", "-c", f"echo t > {box.cwd}/{folder}/t.c"], check=True)


def case_git_fails(box):
    """Without git's answer nothing is known."""
    tracked(box)
    counted_git(box)
    why = stopped(box, flow("touch ../gone; echo weak > tests/t.c"))
    expect("git could not list" in why, why)


def case_large(box):
    """10,000 files, with git and without: printed, and bounded loosely for a machine at work."""
    fill(box.cwd, 10000)
    for with_git in (False, True):
        if with_git:
            git(box, "init", "-q", ".")
            git(box, "add", "-A")
        took = []
        for _ in range(3):
            began = time.monotonic()
            log, _ = run(box, flow("echo y >> d7/f7"))
            took.append(time.monotonic() - began)
            expect([f["path"] for f in files(log)[0]] == ["d7/f7"], files(log))
        print(f"  10,000 files {'with' if with_git else 'without'} git: run and verify took {min(took) * 1000:.0f} ms")
        expect(min(took) < 2, took)


def case_group_of_many(box):
    """64 children in 30,000 files that no git knows: two looks and one comparison, as for one child. Measured by processor time."""
    fill(box.cwd, 30000)
    os.mkdir(box.dir + "/empty")

    def used(count, cwd):
        children = "".join(f"      - {{name: c{n}, command: ['true'], rules: [{{condition: when(true)}}]}}\n" for n in range(count))
        text = "name: w\nmovements:\n  - name: all\n    parallel:\n" + children + "    rules: [{condition: when(true), next: COMPLETE}]\n"
        found = []
        for _ in range(2):
            process = subprocess.Popen([SEGUE, "run", box.file("w.yaml", text), "-q", "--trust", "-t", "x", "-l", box.logs, "-C", cwd],
                                       env=box.env, stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            expect(status == 0, status)
            found.append((usage.ru_utime + usage.ru_stime, usage.ru_maxrss))
        return min(found)
    (one, memory), (many, most) = used(1, box.cwd), used(64, box.cwd)
    spawns = used(64, box.dir + "/empty")[0]
    print(f"  {one:.2f} s of processor for one child, {many:.2f} for 64, of which {spawns:.2f} without files")
    expect(many - spawns < 2 * one and (SANITIZED or most < 1.2 * memory), one, many, spawns, memory, most)


sys.exit(main([case for name, case in list(globals().items()) if name.startswith("case_")]))
