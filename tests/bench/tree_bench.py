#!/usr/bin/env python3
"""A tree of 10,000 files around a call: what its two looks (before, after) cost, in a repository and
without one, with one file changed by the call; beside the same call in an empty folder.

usage: tree_bench.py BUILD_DIR [FILES] [RUNS]
"""
import json
import os
import resource
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))

from support import SEGUE, Box, expect, records  # noqa: E402

FILES = int(sys.argv[2]) if len(sys.argv) > 2 else 10000
RUNS = int(sys.argv[3]) if len(sys.argv) > 3 else 9
FLOW = {"name": "look", "movements": [
    {"name": "one", "command": ["sh", "-c", "echo more >>f0"],
     "rules": [{"condition": "when(exit == 0)", "next": "COMPLETE"}]}]}


def row(what, value, unit, goal=""):
    print(f"{what:60} {value:8.1f} {unit:6}{f' goal {goal}' if goal else ''}", flush=True)


def fill(folder):
    for i in range(FILES):
        below = f"{folder}/d{i % 100}" if i else folder
        os.makedirs(below, exist_ok=True)
        with open(f"{below}/f{i}", "w", encoding="ascii") as f:
            f.write(f"line {i}\n" * 20)


def git(folder, *words):
    subprocess.run(["git", "-C", folder, "-c", "user.name=x", "-c", "user.email=x@example.org", *words],
                   check=True, stdout=subprocess.DEVNULL)


def cpu_ms():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1e3


def once_ms(box, workflow, folder, changes):
    begin, used = time.perf_counter(), cpu_ms()
    done = subprocess.run([SEGUE, "run", workflow, "-q", "-l", box.logs, "--cwd", folder], env=box.env,
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    took, used = (time.perf_counter() - begin) * 1e3, cpu_ms() - used
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
        took = {name: [] for name in folders}
        for _ in range(RUNS):
            for name, folder in folders.items():
                took[name].append(once_ms(box, workflow, folder, ["f0"]))
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
