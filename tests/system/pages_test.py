#!/usr/bin/env python3
"""Commands of the documentation run as they are printed, in a page's order, and print what it shows:
line by line, without times, sizes and ids, which differ from one run to the next.

usage: pages_test.py BUILD_DIR
"""
import os
import re
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True

from support import BUILD, Box, expect, main, need_build  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Where the page goes on with alternatives, of which each would need a session of its own.
LAST = re.compile("^## (?:Take it further yourself|自分の手で先へ進める)$", re.M)
SHELL = ("mkdir ", "cat >", "PATH=")


def blocks(path):
    """The indented blocks up to LAST, without their indent."""
    with open(path, encoding="utf-8") as f:
        text = LAST.split(f.read())[0]
    found = re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.M)
    return [re.sub(r"^    ", "", block, flags=re.M).strip("\n") for block in found]


def plain(line):
    """What is the same in each run; None: the page leaves something out here."""
    if "..." in line and "segue" not in line and "Sure!" not in line or line.strip().startswith("(the "):
        return None
    line = re.sub(r"\S*[0-9a-f]{8}-?[0-9a-f-]*\S*(\.ndjson)?", "ID", line)
    line = re.sub(r"\d+ attempts?, \d+ ms|\d+ calls?, \d+ ms|\b[\d.]+ (ms|s)\b|[\d.]+ (bytes|KiB)|in \d+ parts", "N", line)
    line = re.sub(r"(call|turn|record) \d+|\d+ records", "N", line)
    return re.sub(r"\s+", " ", line).strip()


def holds(command, shown, printed):
    lines = [plain(line) or "" for line in printed.splitlines()]
    at = 0
    for line in shown:
        wanted = plain(line)
        if not wanted:
            continue
        # A line may be cut to what matters: its time, or the rest of a long one, is left out.
        found = next((i for i in range(at, len(lines)) if lines[i].startswith(wanted)), None)
        expect(found is not None, "the tour shows, and it does not print so:", line, "of", command, "in", printed)
        at = found + 1


class Shell:
    """Runs one command after the other where the one before left off."""

    def __init__(self, box):
        self.box, self.cwd = box, box.cwd

    def run(self, script):
        script = f"{script}\necho \"$PWD\" >'{self.box.dir}/pwd'\n"
        done = subprocess.run(["bash", "-c", script], cwd=self.cwd, env=self.box.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=120)
        with open(self.box.dir + "/pwd", encoding="utf-8") as f:
            self.cwd = f.read().strip()
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
                  "--scenario workflows/demo/scenario.yaml --cwd build/project --logs logs --task 'The queue loses items.'")
        for block in blocks(page):
            if block.startswith("PATH="):
                box.env["PATH"] = f"{box.cwd}/build/release:{box.env['PATH']}"
            elif block.startswith(SHELL):
                said = shell.run("set -e\n" + block)
                expect(said == "", block, said)
            for command, shown in commands_of(block):
                stopped = any(line.startswith("STOPPED") for line in shown)
                printed = shell.interrupted(command, "  1 ") if stopped else shell.run(command)
                holds(command, shown, printed)
                count += 1
        expect(count >= least, page, "has", count, "commands")
        return f"{count} commands"


def the_tour():
    return it_prints_what_it_shows(ROOT + "/docs/tour.md", 9)


def the_judgment_of_readme():
    it_prints_what_it_shows(ROOT + "/README.ja.md", 1)
    return it_prints_what_it_shows(ROOT + "/README.md", 1)


def json_tools():
    with Box() as box:
        os.makedirs(box.dir + "/bin")
        os.symlink(BUILD + "/segue", box.dir + "/bin/segue")
        box.env["PATH"] = f"{box.dir}/bin:{box.env['PATH']}"
        shell, count = Shell(box), 0
        for block in blocks(ROOT + "/docs/json-tools.md"):
            for command, shown in commands_of(block):
                holds(command, shown, shell.run(command))
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
        with open(path, encoding="utf-8") as f:
            text = f.read().replace("\\\n", " ")
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
        with open(f"{box.dir}/bin/{name}", "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(f"{box.dir}/bin/{name}", 0o755)
    box.env["PATH"] = f"{box.dir}/bin:{box.env['PATH']}"


def audit():
    """Each command of the page, over sessions of a workflow named release; judges are a program."""
    with Box() as box:
        on_the_path(box, scout=JUDGE)
        for name in ("ollama", "claude", "codex", "gemini"):
            folder = box.dir + "/home/config/segue/providers"
            os.makedirs(folder, exist_ok=True)
            with open(f"{folder}/{name}.yaml", "w", encoding="utf-8") as f:
                f.write(PROFILE.format(program="scout"))
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
                    with open(f"{box.cwd}/{command[4:]}", "w", encoding="utf-8") as f:
                        f.write("\n".join(shown) + "\n")
                if "rejudge last" in command:
                    command += " --scenario " + again  # the judge of these sessions is the script
                for printed, real in zip(re.findall(r"\b01a[0-9a-f]{5}\b", command), ids):
                    command = command.replace(printed, real)
                said = shell.run(f"set -e\n{command}\necho done").splitlines()
                expect(said and said[-1] == "done", command, said)
                holds(command, shown, "\n".join(said))
                count += 1
        expect(count >= 18, "the page has", count, "commands")
        for name in ("days.csv", "run.html", "morning.html", "out.xml"):
            expect(os.path.getsize(f"{box.cwd}/{name}") > 100, name)
        return f"{count} commands"


def the_japanese_tour():
    return it_prints_what_it_shows(ROOT + "/docs/tour.ja.md", 9)


FIX = """name: fix
movements:
  - name: fix
    command: [sh, -c, "echo mended >> parser.c"]
    edit: true
    rules: [{condition: when(exit == 0), next: parts}]
  - name: parts
    for_each: [a, b]
    parallel:
      - name: part
        workspace: worktree
        command: [sh, -c, "echo part >> part.txt"]
        edit: true
        rules: [{condition: when(exit == 0)}]
    rules: [{condition: when(true), next: test}]
  - name: test
    command: [sh, -c, "grep -q mended parser.c && echo tested > tested.txt"]
    edit: true
    rules: [{condition: when(exit == 0), next: COMPLETE}, {condition: when(true), next: fix}]
"""


def workspaces():
    """The commands on a worktree, in the page's order; those of issues and pull requests have tests with gh."""
    with Box() as box:
        on_the_path(box)
        box.env.update(GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@b", GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b")
        for name, text in (("fix.yaml", FIX), ("parser.c", "int parse(void);\n")):
            with open(f"{box.cwd}/{name}", "w", encoding="utf-8") as f:
                f.write(text)
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
    need_build()
    sys.exit(main([the_tour, the_judgment_of_readme, json_tools, the_japanese_tour, every_option_that_a_page_names_is_there, audit, workspaces]))
