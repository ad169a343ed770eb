#!/usr/bin/env python3
"""How long a session's worktree takes to be ready, beside `git worktree add` alone, in a repository
with many files: both from the same commit, one after the other, in this order by turns.

usage: worktree_bench.py BUILD_DIR [FILES]    (default 10000)
"""
import datetime
import json
import os
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))

from support import Box, expect, of_type, records  # noqa: E402

RUNS, GOAL = 7, 1.3
FLOW = {"name": "w", "workspace": "worktree", "commit": "off", "movements": [
    {"name": "test", "command": ["true"], "rules": [{"condition": "when(true)", "next": "COMPLETE"}]}]}


def row(what, value, unit, goal=""):
    print(f"{what:52} {value:8.2f} {unit:10}{f' goal {goal}' if goal else ''}", flush=True)


def git(box, *words):
    done = subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=box.cwd,
                          env=box.env, capture_output=True)
    expect(done.returncode == 0, words, done.stderr)


def fill(box, files):
    for i in range(files):
        folder = f"{box.cwd}/d{i // 100}"
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/f{i}", "w") as f:
            f.write(f"{i}\n" * 50)
    git(box, "init", "-q", "-b", "main", ".")
    git(box, "add", "-A")
    git(box, "commit", "-qm", "all")


def bare(box, i):
    path = f"{box.dir}/bare{i}"
    begin = time.monotonic()
    git(box, "worktree", "add", "--quiet", "-b", f"bare{i}", path, "HEAD")
    took = time.monotonic() - begin
    git(box, "worktree", "remove", "--force", path)
    return took


def at(record):
    return datetime.datetime.fromisoformat(record["ts"].replace("Z", "+00:00")).timestamp()


def session(box, flow):
    """From the record that asks for it to the one that says where it is."""
    before = set(box.begun())
    done = box.segue("run", flow, "--cwd", box.cwd, "--logs", box.logs)
    expect(done.returncode == 0, done.stderr)
    asked, made = of_type(records((set(box.begun()) - before).pop()), "workspace")[:2]
    git(box, "worktree", "remove", "--force", made["data"]["path"])
    return at(made) - at(asked)


def main():
    files = int(sys.argv[2]) if len(sys.argv) > 2 else 10000
    with Box() as box:
        fill(box, files)
        flow = box.file("flow.json", json.dumps(FLOW))
        bare(box, 0)
        session(box, flow)
        alone, own = [], []
        for i in range(1, RUNS + 1):
            alone.append(bare(box, i))
            own.append(session(box, flow))
        floor, median = statistics.median(alone), statistics.median(own)
        row(f"git worktree add alone, {files} files", floor * 1000, "ms")
        row("a session's worktree", median * 1000, "ms")
        row("against git alone", median / floor, "times", str(GOAL))


if __name__ == "__main__":
    main()
