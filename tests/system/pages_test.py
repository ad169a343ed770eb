#!/usr/bin/env python3
"""Commands of the documentation run as they are printed, in a page's order, and print what it shows:
line by line and nothing between, but for times, ids and costs, which differ from one run to the next.

usage: pages_test.py BUILD_DIR [CASE...]

With SEGUE_UPDATE=1 it writes into the pages what the commands print now: look at the diff. What a page leaves
out (a line "...", a line that ends in " ...") stays left out.
"""
import difflib
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from support import BUILD, WAIT_S, Box, expect, flow, main

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Where the page goes on with alternatives, of which each would need a session of its own.
LAST = re.compile("^## (?:Decide yourself|自分の手で先へ進める)$", re.M)
# It stands on a page in place of lines.
LEFT_OUT = re.compile(r"\s*(?:\.\.\.|\(the whole question stands here\))$")
SHELL = ("mkdir ", "cat >", "PATH=")


def blocks(path):
    """The indented blocks up to LAST, without their indent."""
    text = LAST.split(Path(path).read_text(encoding="utf-8"))[0]
    found = re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.M)
    return [re.sub(r"^    ", "", block, flags=re.M).strip("\n") for block in found]


def plain(line):
    """What is the same in each run."""
    line = re.sub(r"\S*\b01[0-9a-f]{6}\S*", "ID", line)
    line = re.sub(r"\b(?:[0-9a-f]{64}|[0-9a-f]{16})\b", "RANDOM", line)
    line = re.sub(r" *(?<![\w.])[\d.]+ (?:ms|s|min)\b", " TIME", line)
    return re.sub(r"(ID|TIME|COST) +", r"\1 ", re.sub(r"\$\d+\.\d+", "COST", line)).rstrip()


class Shown:
    """What a page shows of a command's output: runs of lines that follow each other, and what is left out between."""

    def __init__(self, lines, printed):
        while lines and not lines[-1].strip():
            lines = lines[:-1]
        self.printed = printed.rstrip("\n").split("\n")
        self.real = [plain(line) for line in self.printed]
        self.runs, self.between = [[]], []
        for line in lines:
            if LEFT_OUT.match(line):
                self.runs.append([])
                self.between.append(line)
            else:
                self.runs[-1].append(line)

    def is_at(self, run, at):
        real = self.real[at:at + len(run)]
        return len(real) == len(run) and all(
            r.startswith(plain(line[:-4])) if line.endswith(" ...") else r == plain(line) for line, r in zip(run, real))

    def places(self):
        """Where each run begins in what was printed; None: one is not there."""
        found, at, end = [], 0, len(self.real)
        for n, run in enumerate(self.runs):
            first, last = n == 0, n == len(self.runs) - 1
            tried = [0] if first and run else [end - len(run)] if last and run else range(at, end + 1)
            here = next((i for i in tried if i >= at and self.is_at(run, i) and (not first or not last or i + len(run) == end)), None)
            if here is None:
                return None
            found.append(here)
            at = here + len(run)
        return found

    def written_anew(self):
        """The lines that a page should show: as before where they hold, and as much left out."""
        old = [line for run in self.runs for line in run]
        known = []
        for line in old:
            cut = [r for r in self.real if line.endswith(" ...") and r.startswith(plain(line[:-4]))]
            known.append(cut[0] if cut else plain(line))
        at = {}
        for m in difflib.SequenceMatcher(None, known, self.real, autojunk=False).get_matching_blocks():
            at.update({m.a + i: m.b + i for i in range(m.size)})
        lines, begin, end = [], 0, 0
        for n, run in enumerate(self.runs):
            if n:
                lines.append(self.between[n - 1])
            places = [(i, at[begin + i]) for i in range(len(run)) if begin + i in at]
            expect(places or not run or len(self.runs) == 1, "nothing like it is printed any more: write it by hand:", run, self.printed)
            if run:
                first = 0 if n == 0 else max(end, places[0][1] - places[0][0])
                end = len(self.real) if n == len(self.runs) - 1 else places[-1][1] + len(run) - places[-1][0]
                kept = {there: run[i] for i, there in places}
                lines += [kept.get(i, shortened(self.printed[i])) for i in range(first, end)]
            begin += len(run)
        return lines


def shortened(line):
    line = re.sub(r"\S*/(01[0-9a-f]{6})-[0-9a-f-]{27}\.ndjson", r"~/.local/state/segue/logs/\1....ndjson", line)
    return re.sub(r"\b(01[0-9a-f]{6})-[0-9a-f-]{27}", r"\1-...", line).rstrip()


def holds(page, command, lines, printed):
    shown = Shown(lines, printed)
    if not lines or shown.places() is not None:
        return
    if os.environ.get("SEGUE_UPDATE") == "1":
        return rewrite(page, command, lines, shown.written_anew())
    expect(False, f"{os.path.relpath(page, ROOT)} shows what this does not print: {command}\n" + "\n".join(difflib.unified_diff(
        lines, printed.split("\n"), "shown", "printed", n=2, lineterm="")) + "\n(SEGUE_UPDATE=1 writes the page anew)")


def rewrite(page, command, old, new):
    def block(lines):
        return "".join(f"    {line}".rstrip() + "\n" for line in [*("$ " + command).split("\n"), *lines])
    while old and not old[-1].strip():
        old = old[:-1]
    text = Path(page).read_text(encoding="utf-8")
    expect(block(old) in text, page, "cannot be written anew at", command)
    Path(page).write_text(text.replace(block(old), block(new), 1), encoding="utf-8")


def what_is_left_out_and_what_is_not():
    """The comparison itself: a stale number, a line that is missing, one that is new; and a page written anew."""
    printed = "turn 1  3.4 s\n\nasked: 9 bytes\n| one and two\n| three\nend 01a1fc08-93d0-7c52-8000-000000000000\n"
    for lines, holds_so in ((["turn 1  12 ms", "", "asked: 9 bytes", "| one ...", "...", "end 01a1fc08-..."], True),
                            (["...", "| three", "end 01a1fc08-..."], True), (["turn 1  3.4 s", "", "..."], True), (["..."], True),
                            (["turn 2  3.4 s", "..."], False), (["turn 1  3.4 s", "asked: 9 bytes", "..."], False),
                            (["...", "asked: 8 bytes", "..."], False), (["...", "| three"], False), (["turn 1  3.4 s"], False),
                            (["...", "| three", "...", "asked: 9 bytes", "..."], False)):
        expect((Shown(lines, printed).places() is not None) == holds_so, lines)
    for lines, wanted in ((["turn 1  12 ms", "", "asked: 8 bytes", "| one ...", "...", "end 01a1fc08-...", ""],
                           ["turn 1  12 ms", "", "asked: 9 bytes", "| one ...", "...", "end 01a1fc08-..."]),
                          (["...", "| one and two", "end 01a1fc08-..."], ["...", "| one and two", "| three", "end 01a1fc08-..."]),
                          (["nothing of it"], printed.replace("01a1fc08-93d0-7c52-8000-000000000000", "01a1fc08-...").splitlines()),
                          (["turn 1  12 ms", "asked: 9 bytes", "| ten", "..."], ["turn 1  12 ms", "", "asked: 9 bytes", "| one and two", "..."])):
        anew = Shown(lines, printed).written_anew()
        expect(anew == wanted and Shown(anew, printed).places() is not None, anew)


class Shell:
    """Runs one command after the other where the one before left off."""

    def __init__(self, box):
        self.box, self.cwd = box, box.cwd

    def run(self, script):
        script = f"{script}\necho \"$PWD\" >'{self.box.dir}/pwd'\n"
        done = subprocess.run(["bash", "-c", script], cwd=self.cwd, env=self.box.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=WAIT_S)
        self.cwd = Path(self.box.dir + "/pwd").read_text(encoding="utf-8").strip()
        return done.stdout

    def interrupted(self, command, begin):
        """It gets SIGINT once a line begins so."""
        process = subprocess.Popen(["bash", "-c", "exec " + command], cwd=self.cwd, env=self.box.env, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        printed = ""
        for line in process.stdout:
            printed += line
            if line.startswith(begin):
                process.send_signal(signal.SIGINT)
        expect(process.wait() == 130, "its status is that of an interrupt:", process.returncode, printed)
        return printed


def commands_of(block):
    """(command, what it prints) of a block with prompts."""
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        command, _, shown = part.partition("\n")
        if command.endswith("<<'END'"):
            text, _, shown = shown.partition("\nEND")
            command += "\n" + text + "\nEND"
        yield command, shown.splitlines()


def it_prints_what_it_shows(page, least):
    with Box() as box:
        shutil.copytree(ROOT + "/workflows", box.cwd + "/workflows")
        os.makedirs(box.cwd + "/build")
        os.symlink(BUILD, box.cwd + "/build/release")
        shell, count = Shell(box), 0
        shell.run("PATH=\"$PWD/build/release:$PATH\"\ncp -R workflows/demo/project build/project\nsegue run workflows/demo.yaml "
                  "--scenario workflows/demo/scenario.yaml --cwd build/project --logs logs --task 'The queue loses items when it is full. It must refuse what it cannot hold.'")
        for block in blocks(page):
            if block.startswith("PATH="):
                box.env["PATH"] = f"{box.cwd}/build/release:{box.env['PATH']}"
            elif block.startswith(SHELL):
                said = shell.run("set -e\n" + block)
                expect(said == "", block, said)
            for command, shown in commands_of(block):
                stopped = any(line.startswith("STOPPED") for line in shown)
                printed = shell.interrupted(command, "  1 ") if stopped else shell.run(command)
                holds(page, command, shown, printed)
                count += 1
        expect(count >= least, page, "has", count, "commands")
        return f"{count} commands"


def the_tour():
    return it_prints_what_it_shows(ROOT + "/docs/tour.md", 9)


def the_judgment_of_readme():
    it_prints_what_it_shows(ROOT + "/README.ja.md", 1)
    return it_prints_what_it_shows(ROOT + "/README.md", 1)


def json_tools(box):
    os.makedirs(box.dir + "/bin")
    os.symlink(BUILD + "/segue", box.dir + "/bin/segue")
    box.env["PATH"] = f"{box.dir}/bin:{box.env['PATH']}"
    shell, count = Shell(box), 0
    for block in blocks(ROOT + "/docs/json-tools.md"):
        for command, shown in commands_of(block):
            holds(ROOT + "/docs/json-tools.md", command, shown, shell.run(command))
            count += 1
    expect(count >= 10, "the page has", count, "commands")
    return f"{count} commands"


def documents():
    found = [f"{ROOT}/README.md", f"{ROOT}/README.ja.md"]
    for folder in ("docs", "docs/backends"):
        found += sorted(f"{ROOT}/{folder}/{name}" for name in os.listdir(f"{ROOT}/{folder}") if name.endswith(".md"))
    return found


def every_option_that_a_page_names_is_there():
    """Each `segue COMMAND --option` of every page stands in that command's help."""
    helps, count = {}, 0

    def told(words):
        if words not in helps:
            with Box() as box:
                done = box.segue("help", *words.split())
            helps[words] = done.stdout.decode() if done.returncode == 0 else ""
        return helps[words]

    for path in documents():
        text = Path(path).read_text(encoding="utf-8").replace("\\\n", " ")
        for command, below, rest in re.findall(r"(?:`|^    (?:\$ )?)segue ([a-z]+)( [a-z]+)?([^`\n]*)", text, re.M):
            known = told(command)
            expect(known, path, "names a command that is not there:", command)
            known += told(command + below) if below else ""
            for option in re.findall(r"(?<![\w-])(?:--[a-z][a-z-]+|-[A-Za-z])\b", below + re.split(r" [|>&#]| && ", rest)[0]):
                expect(re.search(r"(?<![\w-])" + option + r"\b", known), path, "names", option, "of segue", command)
                count += 1
    expect(count > 100, "few options were found:", count)
    return f"{count} options"


PROFILE = """summary: a judge that says the first rule, or the second where tests fail
program: {program}
argv: []
output: text
"""
JUDGE = """#!/bin/sh
prompt=$(cat)
case $prompt in *matched_index*) key=matched_index ;; *) key=step ;; esac
case $prompt in *'tests fail'*) rule=2 ;; *) rule=1 ;; esac
printf '{"reason": "It says so.", "%s": %s}' "$key" "$rule"
"""
RELEASE = """name: release
provider: script
judge: {stages: [structured_output, ai_judge]}
movements:
  - name: implement
    instruction: Implement it.
    rules: [{condition: it is done, next: review}, {condition: work is left, next: implement}]
  - name: review
    instruction: Review it.
    rules: [{condition: approved, next: COMPLETE}, {condition: needs fix, next: ABORT}]
"""
REPLIES = """replies:
  - {purpose: execute, text: It is built.}
  - {purpose: judge, text: Sure! It is done}
  - {purpose: judge, text: '{"reason": "r", "matched_index": 1}'}
  - {purpose: execute, text: I looked at all of it.}
  - {purpose: judge, text: '{"reason": "r", "step": RULE}'}
"""


def on_the_path(box, **programs):
    os.makedirs(box.dir + "/bin", exist_ok=True)
    os.symlink(BUILD + "/segue", box.dir + "/bin/segue")
    for name, text in programs.items():
        Path(f"{box.dir}/bin/{name}").write_text(text, encoding="utf-8")
        os.chmod(f"{box.dir}/bin/{name}", 0o755)
    box.env["PATH"] = f"{box.dir}/bin:{box.env['PATH']}"


def audit(box):
    """Each command of the page, over sessions of a workflow named release; judges are a program."""
    on_the_path(box, scout=JUDGE)
    for name in ("ollama", "claude", "codex", "gemini"):
        folder = box.dir + "/home/config/segue/providers"
        os.makedirs(folder, exist_ok=True)
        Path(f"{folder}/{name}.yaml").write_text(PROFILE.format(program="scout"), encoding="utf-8")
    flow = box.file("release.yaml", RELEASE)
    for rule in "112":
        done = box.segue("run", flow, "--scenario", box.file("r.yaml", REPLIES.replace("RULE", rule)), "--cwd", box.cwd)
        expect(done.returncode in (0, 3), done.stdout.decode(), done.stderr.decode())
    shutil.copytree(f"{ROOT}/src/prompts", box.cwd + "/tried")
    listed = subprocess.run(["segue", "ls", "--json"], env=box.env, cwd=box.cwd, capture_output=True, check=True)
    ids = re.findall(r'"id": ?"([0-9a-f-]+)"', listed.stdout.decode())
    os.symlink(box.dir + "/home/state/segue/logs", box.cwd + "/logs")
    again = box.file("again.yaml", "replies:\n" + "".join("  - {purpose: judge, text: '{\"matched_index\": 1, \"reason\": \"r\"}'}\n" * 8))
    shell, count = Shell(box), 0
    for block in blocks(ROOT + "/docs/audit.md"):
        for command, shown in commands_of(block):
            if command.startswith("cat "):
                Path(f"{box.cwd}/{command[4:]}").write_text("\n".join(shown) + "\n", encoding="utf-8")
            if "rejudge last" in command:
                command += " --scenario " + again  # the judge of these sessions is the script
            for printed, real in zip(re.findall(r"\b01a[0-9a-f]{5}\b", command), ids):
                command = command.replace(printed, real)
            if "--fail-if" in command:
                command += " || test $? = 1"  # these figures fail it
            said = shell.run(f"set -e\n{command}\necho done").splitlines()
            expect(said and said[-1] == "done", command, said)
            holds(ROOT + "/docs/audit.md", command, shown, "\n".join(said[:-1]))
            count += 1
    expect(count >= 18, "the page has", count, "commands")
    for name in ("days.csv", "run.html", "morning.html", "out.xml"):
        expect(os.path.getsize(f"{box.cwd}/{name}") > 100, name)
    return f"{count} commands"


def the_japanese_tour():
    return it_prints_what_it_shows(ROOT + "/docs/tour.ja.md", 9)


FIX = flow("pages_fix")


def workspaces(box):
    """The commands on a worktree, in the page's order; those of issues and pull requests have tests with gh."""
    on_the_path(box)
    box.env.update(GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@b", GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b")
    for name, text in (("fix.yaml", FIX), ("parser.c", "int parse(void);\n")):
        Path(f"{box.cwd}/{name}").write_text(text, encoding="utf-8")
    shell, count = Shell(box), 0
    shell.run("git init -q -b main . && git add -A && git commit -qm start")
    for block in blocks(ROOT + "/docs/workspaces.md"):
        for command, _ in commands_of(block):
            if re.search(r"--issue|--pr|segue pr", command):
                continue
            command = command.replace("segue discard last ", "segue discard last --yes ")
            said = shell.run(f"set -e\n{command}\necho done").splitlines()
            expect(said and said[-1] == "done", command, said)
            shell.run("git add -A && git commit -qm work")  # what edits the tree itself is committed by hand
            count += 1
    expect(count >= 8, "the page has", count, "commands")
    return f"{count} commands"


if __name__ == "__main__":
    sys.exit(main([what_is_left_out_and_what_is_not, the_tour, the_judgment_of_readme, json_tools, the_japanese_tour, every_option_that_a_page_names_is_there, audit, workspaces]))
