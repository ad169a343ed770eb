"""What one call costs apart from its provider: the start of a program and its end (spawn), its sandbox
(held), looks at the folder it works in (tree); what the library's rooms cost (library)."""
import itertools
import json
import os
import re
import shutil
import subprocess
from statistics import median

from bench import PROBE, at, fill, in_turns, ran, row, times_as
from support import BUILD, SEGUE, Box, expect, of_type, records
from worktree_test import git, repository

# As a byte-pair tokenizer cuts, roughly: src/render/describe_tokens.c.
TOKEN = re.compile(r"[A-Za-z]{1,8}|[0-9]{1,3}|\n *|  +|[^\sA-Za-z0-9]{1,4}")


def library():
    """Checking and extracting beside jansson; a grammar of 50 KB of schema; the estimated tokens of what
    a model is told about each ready schema."""
    print(ran(PROBE, "library")[2].decode(), end="")
    used = median(ran(SEGUE, "schema", "provider-profile", "--as", "gbnf")[1] for _ in range(9))
    row("a command that makes a grammar of a 50 KB schema", used * 1e3, "ms of CPU", "<= 20")
    for name in ("address", "entities", "meeting", "product", "sentiment"):
        told = {form: ran(SEGUE, "schema", name, "--as", form)[2].decode()
                for form in ("prompt", "types", "json", "example", "gbnf")}
        print(f"{name}: estimated tokens:", *(f"{form} {len(TOKEN.findall(told[form]))}" for form in told))


SHIM = {**os.environ, "SEGUE_SHIM": BUILD + "/segue-shim"}


def spawned(at_once, count, megabytes=0):
    """How os/process spawns and collects: how many a second, and in order the milliseconds of each start."""
    said = json.loads(ran(BUILD + "/helpers/process_driver", "/bin/true", str(megabytes), str(count), str(at_once),
                          "plain", env=SHIM)[2])
    expect(said["ended"] == count and said["unexpected"] == 0, said)
    return count / said["seconds"], sorted(said["start_ms"])


def spawn(rounds=25):
    """Spawn and collect through os/process beside the least that anybody must do with the same shim, and
    how long a start stops the loop."""
    for at_once in (1, 8):
        count = at_once * 50
        ours, bare = in_turns(rounds, {
            "own": lambda: spawned(at_once, count)[0],
            "bare": lambda: float(ran(PROBE, "spawn", str(at_once), str(count), env=SHIM)[2])})
        row(f"spawn and collect, {at_once} in flight", median(ours), "a second")
        row("  of the bare probe's", times_as(ours, bare), "", ">= 0.90")
    _, starts = spawned(1, 500, megabytes=500)
    row("the loop stopped by a start, 500 MB resident", median(starts), "ms", "<= 1.5")
    row("  p99", starts[int(len(starts) * .99)], "ms", "<= 5")


def turn_ms(box, level, turns=60):
    """The time of a turn of one run; its first turn makes the rules, and is left out."""
    workflow = box.file("held.json", json.dumps({"name": "held", "max_movements": turns, "movements": [
        {"name": "work", "command": ["/bin/true"], "sandbox": level,
         "rules": [{"condition": "when(exit == 0)", "next": "work"}]}]}))
    done = box.segue("run", workflow, "--logs", box.logs, "--cwd", box.dir + "/home/work", "--task", "x")
    expect(done.returncode == 5, done)
    log = records(box.log_paths()[-1])
    shutil.rmtree(box.logs)
    ends = [at(r) for r in of_type(log, "turn_end")]
    levels = {r.get("sandbox", {}).get("level", "off") for r in of_type(log, "call_start")}
    expect(levels == {level}, levels)
    return (ends[-1] - ends[0]) / (len(ends) - 1) * 1e3


def held(rounds=15):
    """/bin/true as a movement, from the turn's first record to its last, with guard beside the same
    without, in a home folder of 1,000 entries. Home, logs and working directory lie side by side below
    the folder of temporary files, as in many a test."""
    if b"landlock" not in subprocess.run([SEGUE, "doctor", "--quick"], capture_output=True, check=False).stdout:
        print("skipped: this kernel has no Landlock")
        return
    with Box() as box:
        for name in ("work", ".ssh", ".cache", "config/segue", *(f"folder-{i}" for i in range(500))):
            os.makedirs(f"{box.dir}/home/{name}")
        for i in range(500):
            box.file(f"home/file-{i}", "")
        for mechanism in ("landlock", "bwrap") if shutil.which("bwrap") else ("landlock",):
            box.file("home/config/segue/config.yaml", json.dumps({"sandbox": {"mechanism": mechanism}}))
            guard, off = in_turns(rounds, {"guard": lambda: turn_ms(box, "guard"), "off": lambda: turn_ms(box, "off")})
            row("a turn without a sandbox", median(off), "ms")
            if mechanism == "landlock":
                row("  with guard by landlock, against that", times_as(guard, off), "times", "<= 1.15")
            else:
                row("  with guard by bwrap, more than that", median(g - o for g, o in zip(guard, off)), "ms", "<= 15")


def tree(files=10000, rounds=9):
    """What one look at a tree costs: half of what a call takes more in a folder of many files, since it is
    looked at before and after the call, than in a folder of one file."""
    with Box() as box:
        rule = {"condition": "when(exit == 0)", "next": "COMPLETE"}
        workflow = box.file("look.json", json.dumps({"name": "look", "movements": [
            {"name": "one", "command": ["sh", "-c", "echo more >>f0"], "rules": [rule]}]}))

        def call_s(name):
            took = ran(SEGUE, "run", workflow, "-q", "-l", box.logs, "--cwd", f"{box.dir}/{name}", env=box.env)[0]
            end = of_type(records(box.log_paths()[-1]), "call_end")[0]
            expect([f["path"] for f in end["files"]] == ["f0"], end.get("files"), end.get("note"))
            return took
        sides = {"one": 1, "plain": files, "repository": files}
        for name, count in sides.items():
            fill(f"{box.dir}/{name}", count)
        repository(box, at=box.dir + "/repository")
        one, plain, tracked = map(min, in_turns(rounds, {name: lambda name=name: call_s(name) for name in sides}))
        row(f"{files} files without a repository: one comparison", (plain - one) / 2 * 1e3, "ms", "<= 50")
        row(f"{files} files in a repository: one comparison", (tracked - one) / 2 * 1e3, "ms", "<= 50")


def worktree(files=10000, rounds=7):
    """How long a session's worktree takes, from the record that asks for it to the one that says where
    it is, beside `git worktree add` alone: both from the same commit."""
    numbers = itertools.count()
    with Box() as box:
        fill(box.cwd, files)
        repository(box)
        workflow = box.file("w.json", json.dumps({"name": "w", "workspace": "worktree", "commit": "off", "movements": [
            {"name": "test", "command": ["true"], "rules": [{"condition": "when(true)", "next": "COMPLETE"}]}]}))

        def bare():
            path = f"{box.dir}/bare{next(numbers)}"
            took = ran("git", "worktree", "add", "--quiet", "-b", os.path.basename(path), path, "HEAD",
                       cwd=box.cwd, env=box.env)[0]
            git(box, "worktree", "remove", "--force", path)
            return took

        def own():
            ran(SEGUE, "run", workflow, "--cwd", box.cwd, "--logs", box.logs, env=box.env)
            asked, made = of_type(records(box.log_paths()[-1]), "workspace")[:2]
            git(box, "worktree", "remove", "--force", made["data"]["path"])
            return at(made) - at(asked)
        alone, ours = map(median, in_turns(rounds, {"alone": bare, "own": own}))
        row(f"git worktree add alone, {files} files", alone * 1000, "ms")
        row("  a session's worktree, against that", ours / alone, "times", "<= 1.3")
