#!/usr/bin/env python3
"""The mistakes that new users make, each with the whole text that answers it: tests/data/mistakes.

A case is a file: what the mistake is, the files that it takes (config.yaml is the user's), and
commands, each with its exit status and all that it prints. What differs from run to run is
written as DIR, ID and T s. With SEGUE_WRITE=1 the answers are written anew: read what changed.
"""
import os
import re
import shlex
import sys

from support import Box, expect, main

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + "/data/mistakes"


def parse(path):
    """The head, files by name, commands with their wanted answers."""
    head, files, commands = [], {}, []
    into = head
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.startswith("--- file "):
                into = files[line[9:].strip()] = []
            elif line.startswith("--- segue "):
                into = []
                commands.append((line[10:].strip(), into))
            else:
                into.append(line)
    return head, files, commands


def plain(text, box):
    text = text.replace(box.dir, "DIR")
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "ID", text)
    text = re.sub(r"resume [0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}\b", "resume ID", text)
    return re.sub(r"\d+\.\d s\b", "T s", text)


def answer(box, words):
    done = box.segue(*shlex.split(words))
    out, err = done.stdout.decode(), done.stderr.decode()
    for remedy in re.findall(r"(?:^try: |, )segue (help[^,\n]*)", err, re.M):
        expect(box.segue(*shlex.split(remedy.split(", for")[0])).returncode == 0, words, "a remedy does not work:", remedy)
    for remedy in re.findall(r"continue with: segue (resume \S+)$", out + err, re.M):
        expect(box.segue(*shlex.split(remedy)).returncode != 2, words, "a remedy does not work:", remedy)
    text = f"exit {done.returncode}\n"
    for name, part in (("out", out), ("err", err)):
        text += "".join(f"{name}| {line}\n" for line in plain(part, box).splitlines())
    return text.replace("| \n", "|\n")


def put(box, name, lines):
    folder = box.dir + "/home/config/segue" if name == "config.yaml" else box.cwd
    path = f"{folder}/{name}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(lines)


def one(name):
    head, files, commands = parse(f"{FOLDER}/{name}.txt")
    text = "".join(head)
    for file, lines in files.items():
        text += f"--- file {file}\n" + "".join(lines)
    with Box() as box:
        box.env.update(COLUMNS="100", XDG_RUNTIME_DIR=box.dir)
        for file, lines in files.items():
            put(box, file, lines)
        wrong = []
        for words, wanted in commands:
            said = answer(box, words)
            text += f"--- segue {words}\n{said}"
            if said != "".join(wanted):
                wrong.append(f"segue {words}\n--- wanted\n{''.join(wanted)}--- said\n{said}")
    if os.environ.get("SEGUE_WRITE"):
        with open(f"{FOLDER}/{name}.txt", "w", encoding="utf-8") as f:
            f.write(text)
        return
    expect(not wrong, "\n".join(wrong))


def case(name):
    def run():
        one(name)
    run.__name__ = name
    return run


if __name__ == "__main__":
    names = sorted(n[:-4] for n in os.listdir(FOLDER) if n.endswith(".txt"))
    expect(len(names) >= 40, "cases are missing", len(names))
    sys.exit(main([case(n) for n in names]))
