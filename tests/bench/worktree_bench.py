#!/usr/bin/env python3
"""How long a session's worktree takes to be ready, beside `git worktree add` alone, in a repository
with many files: both from the same commit, in turns.

usage: worktree_bench.py BUILD_DIR [FILES]    (default 10000)
"""
import itertools
import json
import os
from statistics import median

from bench import argument, at, elapsed_s, git, in_turns, row
from support import Box, expect, of_type, records

RUNS, GOAL = 7, 1.3
FLOW = {"name": "w", "workspace": "worktree", "commit": "off", "movements": [
    {"name": "test", "command": ["true"], "rules": [{"condition": "when(true)", "next": "COMPLETE"}]}]}


def fill(box, files):
    for i in range(files):
        folder = f"{box.cwd}/d{i // 100}"
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/f{i}", "w") as f:
            f.write(f"{i}\n" * 50)
    git(box.cwd, "init", "-q", "-b", "main", ".", env=box.env)
    git(box.cwd, "add", "-A", env=box.env)
    git(box.cwd, "commit", "-qm", "all", env=box.env)


def bare(box, numbers=itertools.count()):
    name = f"bare{next(numbers)}"
    path = f"{box.dir}/{name}"
    took = elapsed_s(lambda: git(box.cwd, "worktree", "add", "--quiet", "-b", name, path, "HEAD", env=box.env))
    git(box.cwd, "worktree", "remove", "--force", path, env=box.env)
    return took


def session(box, flow):
    """From the record that asks for it to the one that says where it is."""
    before = set(box.begun())
    done = box.segue("run", flow, "--cwd", box.cwd, "--logs", box.logs)
    expect(done.returncode == 0, done.stderr)
    asked, made = of_type(records((set(box.begun()) - before).pop()), "workspace")[:2]
    git(box.cwd, "worktree", "remove", "--force", made["data"]["path"], env=box.env)
    return at(made) - at(asked)


def main():
    files = argument(1, 10000)
    with Box() as box:
        fill(box, files)
        flow = box.file("flow.json", json.dumps(FLOW))
        sides = {"alone": lambda: bare(box), "own": lambda: session(box, flow)}
        in_turns(1, sides)  # warm
        alone, own = map(median, in_turns(RUNS, sides).values())
        row(f"git worktree add alone, {files} files", alone * 1000, "ms")
        row("a session's worktree", own * 1000, "ms")
        row("against git alone", own / alone, "times", str(GOAL))


if __name__ == "__main__":
    main()
