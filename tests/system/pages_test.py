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
LAST = "## Take it further yourself"
SHELL = ("mkdir ", "cat >", "PATH=")


def blocks(path):
    """The indented blocks up to LAST, without their indent."""
    with open(path, encoding="utf-8") as f:
        text = f.read().split(LAST)[0]
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


def it_prints_what_it_shows(page):
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
        expect(count >= 9, "the tour has", count, "commands")
        return f"{count} commands"


def the_tour():
    return it_prints_what_it_shows(ROOT + "/docs/tour.md")


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


if __name__ == "__main__":
    need_build()
    sys.exit(main([the_tour, json_tools]))
