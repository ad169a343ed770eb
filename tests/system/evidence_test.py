#!/usr/bin/env python3
"""What `segue evidence` says of honest and of dishonest work (tests/data/evidence), of repositories that are odd or
damaged, and what it leaves behind: nothing, whatever the check does and whenever it is killed."""
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as tree
from pathlib import Path

from support import WAIT_S, Box, expect, main, needs
from worktree_test import git, repository

DATA = Path(__file__).parent.parent / "data" / "evidence"
CHECK = 'sh tests/all.sh'


def bundle(path):
    """The head and the files of a case: see the README there."""
    head, files, name = [], {}, None
    for line in path.read_text().splitlines(keepends=True):
        found = re.fullmatch(r"-- (\S+)( \+x)? --\n", line)
        if found:
            name = found[1]
            files[name] = ""
        elif name is None:
            head.append(line)
        else:
            files[name] += line
    return json.loads("".join(head)), files


def put(box, files, at=None):
    for name, text in files.items():
        path = Path(at or box.cwd) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())


def commit(box, at=None):
    git(box, "add", "-A", at=at)
    git(box, "commit", "-qm", "more", "--allow-empty", at=at)


def begin(box, files):
    """A repository with these files as its only commit, and `base` as its tag."""
    repository(box, commits=False)
    put(box, files)
    commit(box)
    git(box, "tag", "base")


def evidence(box, range_="base..", check=CHECK, *options, status=None, **how):
    done = box.segue("evidence", range_, "--check", check, "--json", *options, status=status, **how)
    expect(os.listdir(box.env["TMPDIR"]) in ([], [f"segue-{os.getuid()}.tmp"]) and
           not [name for _, names, files in os.walk(box.env["TMPDIR"]) for name in names + files
                if "evidence" in name], "left behind", list(os.walk(box.env["TMPDIR"])))
    return json.loads(done.stdout)


def state(box):
    """All of the repository that somebody could have changed."""
    return [git(box, "rev-parse", "HEAD"), git(box, "status", "--porcelain"), git(box, "for-each-ref"),
            git(box, "stash", "list"), git(box, "worktree", "list"), git(box, "ls-files", "--stage", "-v")]


def played(path):
    head, files = bundle(path)
    with Box() as box:
        if "needs" in head:
            needs(head["needs"])
        base = {name[5:]: text for name, text in files.items() if name.startswith("base/")}
        begin(box, base)
        subprocess.run(["sh", "-eu", "-c", files["work"]], cwd=box.cwd, env=box.env, check=True)
        before = state(box)
        box.env["RUNS"] = box.dir + "/runs"
        found = evidence(box, "base..", f'echo run >>"$RUNS"; {head["check"]}', *head.get("options", []))
        expect(found["evidence"] == head["word"], path.name, found)
        runs = len(Path(box.env["RUNS"]).read_text().split()) if os.path.exists(box.env["RUNS"]) else 0
        expect(runs <= head.get("runs", 5), path.name, "ran", runs, "times", found)
        expect(state(box) == before, path.name, "the repository is as it was", before, state(box))
        commit(box)
        again = evidence(box, "base..HEAD", head["check"], *head.get("options", []), status=head["exit"])
        expect(again["evidence"] == head["word"], path.name, "once it is committed", again)


def pieces_of_work():
    cases = sorted(DATA.glob("*.txt"))
    expect(len(cases) > 15, cases)
    for path in cases:
        played(path)


GREET = {"greet.sh": 'echo "Hello $1"\n', "tests/all.sh": '[ "$(sh greet.sh "")" = "Hello you" ]\n'}
FIXED = 'echo "Hello ${1:-you}"\n'


def words_and_formats():
    with Box() as box:
        begin(box, GREET)
        put(box, {"greet.sh": FIXED})
        done = box.segue("evidence", "base..", "--check", CHECK, status=0)
        expect(re.match(rb"shown: .*\n  changed: greet.sh \+1 -1\n  the check before the work +exit 1, no counts\n"
                        rb"  the check on the work +exit 0, no counts\n$", done.stdout), done.stdout)
        put(box, {"tests/all.sh": "exit 0\n", "a|b <c>\n": "x"})
        junit = box.dir + "/out.xml"
        done = box.segue("evidence", "base..", "--check", CHECK, "--md", "--junit", junit, status=3)
        expect(done.stdout.startswith(b"**not_shown**: ") and b"\n| the check as it was, on the work | exit 0" in
               done.stdout, done.stdout)
        suite = tree.parse(junit).getroot()
        expect(suite.get("failures") == "1" and suite.find("testcase/failure").get("type") == "not_shown", suite.attrib)
        put(box, {"greet.sh": 'echo "\x1b[2JHi"\n', "tests/all.sh": 'sh greet.sh; exit 0\n'})
        done = box.segue("evidence", "base..", "--check", "sh tests/all.sh; sh greet.sh; sh tests/all.sh", status=1)
        expect(b"\x1b" not in done.stdout and b"passes only with its own files" in done.stdout, done.stdout)
        found = evidence(box)
        expect({"path": "tests/all.sh", "why": "usual_name"} in found["check_files"], found)
        expect([f.get("check") for f in found["files"] if f["path"] == "tests/all.sh"] == ["usual_name"], found)
        box.segue("evidence", "nothing..", "--check", CHECK, status=2, err="there is no commit nothing")
        box.segue("evidence", "base..HEAD", status=2, err="--check COMMAND is missing")
        box.segue("evidence", "base..", "--check", CHECK, "--tests", "junit", status=2, err="names no report")
        box.segue("evidence", "base..", "--check", CHECK, "--timeout", "soon", status=2, err="--timeout")


def ranges():
    """BASE...HEAD begins where the two part; a commit is not the files as they are."""
    with Box() as box:
        begin(box, GREET)
        git(box, "checkout", "-qb", "fix")
        put(box, {"greet.sh": FIXED})
        commit(box)
        git(box, "checkout", "-q", "main")
        put(box, {"tests/all.sh": "exit 0\n"})
        commit(box)
        expect(evidence(box, "main...fix")["evidence"] == "shown", "since they parted")
        expect({f["path"] for f in evidence(box, "main..fix")["files"]} == {"greet.sh", "tests/all.sh"}, "main has moved")
        put(box, {"greet.sh": "exit 1\n"})
        expect(evidence(box, "base..fix")["evidence"] == "shown", "files that are not committed do not count")


def a_session():
    """Its work begins with the commit at its start, in its worktree or in the folder."""
    flow = """
name: edits
provider: script
workspace: {word}
judge: {{stages: [phase1_tag]}}
movements:
  - name: work
    command: [sh, -c, "cp ../fixed greet.sh 2>/dev/null || cp {dir}/fixed greet.sh"]
    rules: [{{condition: when(exit == 0), next: COMPLETE}}, {{condition: no, next: ABORT}}]
"""
    for word in ("worktree", "here"):
        with Box() as box:
            begin(box, GREET)
            box.file("fixed", FIXED)
            box.segue("run", box.file("flow.yaml", flow.format(word=word, dir=box.dir)), "--cwd", box.cwd, "--task", "x",
                      "--logs", box.logs, status=0)
            found = evidence(box, "last", CHECK, "--logs", box.logs)
            expect(found["evidence"] == "shown", word, found)


def counts_decide():
    """Fewer tests, or none, are no pass; a report is measured, and one from before does not count."""
    report = '<testsuite tests="2"><testcase name="a"/><testcase name="b">%s</testcase></testsuite>'
    with Box() as box:
        begin(box, {"code.c": "old\n", "good.xml": report % "", "bad.xml": report % "<failure/>",
                    "run.sh": "grep -q new code.c && cp good.xml out.xml || cp bad.xml out.xml\n"
                              "! grep -q failure out.xml\n"})
        put(box, {"code.c": "new\n"})
        found = evidence(box, "base..", "sh run.sh", "--tests", "junit:out.xml", status=0)
        expect(found["runs"]["now"]["passed"] == 2 and found["runs"]["before"]["failed"] == 1, found)
        put(box, {"run.sh": "true\n", "out.xml": report % ""})
        found = evidence(box, "base..", "sh run.sh", "--tests", "junit:out.xml", status=1)
        expect(found["counts"] == "gone" and found["runs"]["now"]["counts"] == "none", "nobody wrote that", found)


def flaky():
    """A second run of the old check settles it, and is said."""
    with Box() as box:
        begin(box, GREET)
        put(box, {"greet.sh": FIXED})
        box.env["ONCE"] = box.dir + "/once"
        found = evidence(box, "base..", f'{CHECK} && mkdir "$ONCE" 2>/dev/null && exit 1; {CHECK}', status=0)
        expect(found["evidence"] == "shown" and found["runs"]["now"]["flaky"], found)
        done = box.segue("evidence", "base..", "--check", f'{CHECK} && mkdir "$ONCE.2" 2>/dev/null && exit 1; {CHECK}')
        expect(b"flaky" in done.stdout, done.stdout)


def unknown():
    """Too slow, or no program, or objects that are gone: nothing can be said, and it is not a pass."""
    with Box() as box:
        begin(box, GREET)
        put(box, {"greet.sh": FIXED})
        found = evidence(box, "base..", "tail -f /dev/null", "--timeout", "300ms", status=4)
        expect(found["evidence"] == "unknown" and found["runs"]["now"]["end"] == "too_slow", found)
        base = git(box, "rev-parse", "base")
        blob = git(box, "rev-parse", "base:greet.sh")
        os.unlink(f"{box.cwd}/.git/objects/{blob[:2]}/{blob[2:]}")
        found = evidence(box, f"{base}..", status=4)
        expect(found["evidence"] == "unknown" and found["problem"], found)
        shutil.rmtree(box.cwd + "/.git")
        repository(box, commits=False)
        commit(box)
        found = evidence(box, f"{base}..", status=4)
        expect("there is no commit" in found["problem"], found)
        shutil.rmtree(box.cwd + "/.git")
        box.segue("evidence", "base..", "--check", CHECK, status=2, err="in no working tree of git")


def replaced_objects():
    """A blob that was exchanged in the repository gives another tree than the recorded one."""
    with Box() as box:
        begin(box, GREET)
        put(box, {"greet.sh": FIXED})
        commit(box)
        good = git(box, "rev-parse", "base:tests/all.sh")
        put(box, {"true.sh": "exit 0\n"})
        bad = git(box, "hash-object", "-w", "true.sh")
        os.unlink(box.cwd + "/true.sh")
        path = [f"{box.cwd}/.git/objects/{name[:2]}/{name[2:]}" for name in (good, bad)]
        os.chmod(path[0], 0o644)
        shutil.copyfile(path[1], path[0])
        found = evidence(box, "base..HEAD", status=4)
        expect(found["evidence"] == "unknown", found)


def odd_trees():
    """Names, modes and contents of all kinds, ignored files that git knows, line ends: all as they are; and nothing of
    what the repository sets up is run."""
    check = """
[ "$(cat tests/known)" = k ] && [ -x tests/tool ] && [ "$(readlink tests/link)" = ../code ] && [ ! -e ignored ] &&
[ "$(od -An -tx1 tests/crlf | tr -d ' \\n')" = 610d0a ] && [ -z "$(git status --porcelain)" ] &&
git ls-files | grep -q odd && [ "$(pwd)" != "$HERE" ] && grep -q new code
"""
    with Box() as box:
        marker = box.dir + "/marker"
        box.env["HERE"] = box.cwd
        repository(box, commits=False)
        put(box, {"code": "old\n", "tests/known": "k", ".gitignore": "known\nignored\n", "tests/tool": "#!/bin/sh\n",
                  "tests/crlf": "a\r\n", "tests/odd \n\t\"name": "x", ".gitattributes": "* text=auto filter=evil ident\n",
                  "tests/id": "$Id$\n"})
        put(box, {os.fsdecode(b"tests/\xff\xfe"): "y"})
        os.chmod(box.cwd + "/tests/tool", 0o755)
        os.symlink("../code", box.cwd + "/tests/link")
        git(box, "add", "-A")
        git(box, "add", "-f", "tests/known")
        git(box, "commit", "-qm", "all")
        git(box, "tag", "base")
        for key in ("filter.evil.clean", "filter.evil.smudge", "core.fsmonitor", "core.hooksPath"):
            git(box, "config", key, f"touch {marker}; cat")
        put(box, {"code": "new\n", "ignored": "i", "tests/new file": "n"})
        found = evidence(box, "base..", check)
        expect(found["runs"]["now"]["exit"] == 0 and found["runs"]["before"]["exit"] == 1, found)
        expect({f["path"] for f in found["files"]} >= {"code", "tests/new file"}, found)
        expect("ignored" not in {f["path"] for f in found["files"]}, found)
        expect(not os.path.exists(marker), "a program of the repository's ran")


def from_a_folder():
    """The check runs where one stands; a link has what git ignores."""
    with Box() as box:
        begin(box, {".gitignore": "deps\n", "sub/greet.sh": 'echo "$(cat ../deps/word) $1"\n',
                    "sub/tests/all.sh": '[ "$(sh greet.sh "")" = "Hello you" ]\n'})
        put(box, {"deps/word": "Hello", "sub/greet.sh": 'echo "$(cat ../deps/word) ${1:-you}"\n'})
        top, box.cwd = box.cwd, box.cwd + "/sub"
        done = box.segue("evidence", "base..", "--check", CHECK, status=1)
        expect(b"--link" in done.stdout, done.stdout)
        found = evidence(box, "base..", CHECK, "--link", "deps/", status=0)
        expect(found["evidence"] == "shown", found)
        box.cwd = top


def submodules():
    """Their files count, whether committed there or not."""
    with Box() as box:
        git(box, "config", "--global", "protocol.file.allow", "always")
        up = box.dir + "/up"
        os.mkdir(up)
        repository(box, at=up, commits=False)
        put(box, {"greet.sh": GREET["greet.sh"]}, at=up)
        commit(box, at=up)
        begin(box, {"tests/all.sh": '[ "$(sh sub/greet.sh "")" = "Hello you" ]\n'})
        git(box, "submodule", "add", "-q", up, "sub")
        commit(box)
        git(box, "tag", "-f", "base")
        put(box, {"sub/greet.sh": FIXED})
        found = evidence(box, status=0)
        expect(found["evidence"] == "shown" and [f["path"] for f in found["files"]] == ["sub/greet.sh"], found)
        for key, value in (("user.name", "a"), ("user.email", "a@example.org")):
            git(box, "config", key, value, at=box.cwd + "/sub")
        commit(box, at=box.cwd + "/sub")
        commit(box)
        expect(evidence(box, "base..HEAD", status=0)["evidence"] == "shown", "committed")
        git(box, "submodule", "deinit", "-q", "-f", "sub")
        expect(evidence(box, "base..HEAD", status=3)["evidence"] == "no_change", "it is not checked out")


def a_folder_in_the_place_of_a_file():
    """What was one file of the check is many now, and the other way round."""
    with Box() as box:
        begin(box, {**GREET, "spec": "one", "test/a": "1"})
        os.unlink(box.cwd + "/spec")
        shutil.rmtree(box.cwd + "/test")
        put(box, {"greet.sh": FIXED, "spec/a": "1", "spec/b": "2", "test": "one",
                  "tests/all.sh": GREET["tests/all.sh"].strip() + " && [ -d spec ] && [ -f test ]\n"})
        found = evidence(box, "base..", CHECK + " && { [ -d spec ] || [ -f spec ]; }", status=0)
        expect(found["evidence"] == "shown" and found["runs"]["old_check"]["exit"] == 0, found)


def new_repository():
    with Box() as box:
        repository(box, commits=False)
        put(box, GREET)
        box.segue("evidence", "HEAD..", "--check", CHECK, status=2, err="there is no commit HEAD")
        commit(box)
        expect(evidence(box, "HEAD..", status=3)["evidence"] == "no_change", "one commit")


def killed():
    """The check ends with segue, the repository is as it was, and the next one takes what is left away."""
    with Box() as box:
        begin(box, GREET)
        put(box, {"greet.sh": FIXED})
        before = state(box)
        os.mkfifo(box.dir + "/began")
        os.mkfifo(box.dir + "/never")
        box.env["BOX"] = box.dir
        process = box.start("evidence", "base..", "--check", 'echo $$ >"$BOX/began"; cat "$BOX/never"')
        with open(box.dir + "/began", encoding="ascii") as began:
            check = int(began.read())
        process.send_signal(signal.SIGKILL)
        process.wait()
        try:
            pidfd = os.pidfd_open(check)
            expect(select.select([pidfd], [], [], WAIT_S)[0], "the check goes on")
            os.close(pidfd)
        except ProcessLookupError:
            pass
        expect(state(box) == before, "the repository is as it was")
        expect(evidence(box, status=0)["evidence"] == "shown", "and the next one is right")


def temporary_files_in_the_repository():
    with Box() as box:
        begin(box, {**GREET, ".gitignore": "tmp\n"})
        put(box, {"greet.sh": FIXED})
        os.mkdir(box.cwd + "/tmp")
        before = state(box)
        done = box.segue("evidence", "base..", "--check", CHECK, env={"TMPDIR": box.cwd + "/tmp"}, status=0)
        expect(done.stdout.startswith(b"shown") and state(box) == before, done.stdout)


def two_at_once():
    with Box() as box:
        begin(box, GREET)
        put(box, {"greet.sh": FIXED})
        both = [box.start("evidence", "base..", "--check", CHECK, "--json") for _ in range(3)]
        for process in both:
            out, err = process.communicate()
            expect(process.returncode == 0 and json.loads(out)["evidence"] == "shown", out, err)


if __name__ == "__main__":
    sys.exit(main([pieces_of_work, words_and_formats, ranges, a_session, counts_decide, flaky, unknown, replaced_objects,
                   odd_trees, from_a_folder, submodules, a_folder_in_the_place_of_a_file, new_repository, killed, temporary_files_in_the_repository,
                   two_at_once]))
