#!/usr/bin/env python3
"""A tree of 10,000 files around a call: what its two looks (before, after) cost, in a repository and
without one, with one file changed by the call; beside the same call in an empty folder.

usage: tree_bench.py BUILD_DIR [FILES] [RUNS]
"""
import json
import os
import subprocess
import time

from bench import argument, children_cpu_s, git, in_turns, row
from support import SEGUE, Box, expect, records

FILES, RUNS = argument(1, 10000), argument(2, 9)
FLOW = {"name": "look", "movements": [
    {"name": "one", "command": ["sh", "-c", "echo more >>f0"],
     "rules": [{"condition": "when(exit == 0)", "next": "COMPLETE"}]}]}


def fill(folder):
    for i in range(FILES):
        below = f"{folder}/d{i % 100}" if i else folder
        os.makedirs(below, exist_ok=True)
        with open(f"{below}/f{i}", "w", encoding="ascii") as f:
            f.write(f"line {i}\n" * 20)


def once_ms(box, workflow, folder, changes):
    begin, used = time.perf_counter(), children_cpu_s()
    done = subprocess.run([SEGUE, "run", workflow, "-q", "-l", box.logs, "--cwd", folder], env=box.env,
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    took, used = (time.perf_counter() - begin) * 1e3, (children_cpu_s() - used) * 1e3
    expect(done.returncode == 0, done.stderr)
    end = next(r for r in records(box.log_paths()[-1]) if r["type"] == "call_end")
    expect([f["path"] for f in end["files"]] == changes, end.get("files"), end.get("note"))
    return took, used


def main():
    with Box() as box:
        workflow = box.file("look.yaml", json.dumps(FLOW))
        folders = {name: f"{box.dir}/{name}" for name in ("empty", "plain", "repository")}
        for name, folder in folders.items():
            os.mkdir(folder)
            if name != "empty":
                fill(folder)
            else:
                open(folder + "/f0", "x", encoding="ascii").close()
        git(folders["repository"], "init", "-q")
        git(folders["repository"], "add", ".")
        git(folders["repository"], "commit", "-qm", "all")
        took = in_turns(RUNS, {name: lambda folder=folder: once_ms(box, workflow, folder, ["f0"])
                               for name, folder in folders.items()})
        bare, bare_cpu = map(min, zip(*took["empty"]))
        row("a call in a folder of one file", bare, "ms")
        for name in ("plain", "repository"):
            best, best_cpu = map(min, zip(*took[name]))
            both = best - bare
            what = "in a repository" if name == "repository" else "without one"
            row(f"{FILES} files {what}: both looks, above that", both, "ms")
            row("  one comparison", both / 2, "ms", "<= 50")
            row("  its processor time", (best_cpu - bare_cpu) / 2, "ms")


main()
