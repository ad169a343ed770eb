"""What one call costs apart from its provider: the start of a program and its end (spawn), its sandbox
(held), looks at the folder it works in (tree); what the library's rooms cost (library)."""
import json
import os
import shutil
import subprocess
from statistics import median

from bench import PROBE, at, fill, in_turns, ran, row, times_as
from support import BUILD, SEGUE, Box, expect, of_type, records


def library():
    print(ran(PROBE, "library")[2].decode(), end="")


def spawned(who, at_once, each=50, megabytes=0):
    """How many a second, and in order the milliseconds of each start."""
    rate, *starts = map(float, ran(PROBE, "spawn", who, str(at_once), str(each), str(megabytes),
                                   env={**os.environ, "SEGUE_SHIM": BUILD + "/segue-shim"})[2].split())
    return rate, sorted(starts)


def spawn(rounds=25):
    """Spawn and collect through os/process beside the least that anybody must do with the same shim, and
    how long a start stops the loop."""
    for at_once in (1, 8):
        ours, bare = in_turns(rounds, {who: lambda who=who: spawned(who, at_once)[0] for who in ("own", "bare")})
        row(f"spawn and collect, {at_once} in flight", median(ours), "a second")
        row("  of the bare probe's", times_as(ours, bare), "", ">= 0.90")
    for megabytes in (0, 500):
        _, starts = spawned("own", 1, 500, megabytes)
        row(f"the loop stopped by a start, {megabytes} MB resident", median(starts), "ms", "<= 1.5")
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


def compare(box, rounds, mechanism, what):
    box.file("home/config/segue/config.yaml", json.dumps({"sandbox": {"mechanism": mechanism}}))
    guard, off = in_turns(rounds, {level: lambda level=level: turn_ms(box, level) for level in ("guard", "off")})
    row(f"{what}: a turn without a sandbox", median(off), "ms")
    if mechanism == "landlock":
        row("  with guard by landlock, against that", times_as(guard, off), "times", "<= 1.15")
    else:
        row("  with guard by bwrap, more than that", median(g - o for g, o in zip(guard, off)), "ms", "<= 15")


def held(rounds=15):
    """/bin/true as a movement, from the turn's first record to its last, with guard beside the same
    without, in a home folder that is nearly empty and in one of 1,000 entries. Home, logs and working
    directory lie side by side below the folder of temporary files, as in many a test."""
    if b"landlock" not in subprocess.run([SEGUE, "doctor", "--quick"], capture_output=True, check=False).stdout:
        print("skipped: this kernel has no Landlock")
        return
    with Box() as box:
        for name in ("work", ".ssh", ".cache", "config/segue"):
            os.makedirs(f"{box.dir}/home/{name}")
        compare(box, rounds, "landlock", "a small home folder")
        for i in range(500):
            os.mkdir(f"{box.dir}/home/folder-{i}")
            box.file(f"home/file-{i}", "")
        compare(box, rounds, "landlock", "a home folder of 1,000 entries")
        if shutil.which("bwrap"):
            compare(box, rounds, "bwrap", "the same")


def tree(files=10000, rounds=9):
    """What the two looks at a tree (before and after a call) cost, in a repository and without one, with
    one file changed by the call; beside the same call in a folder of one file."""
    with Box() as box:
        rule = {"condition": "when(exit == 0)", "next": "COMPLETE"}
        workflow = box.file("look.json", json.dumps({"name": "look", "movements": [
            {"name": "one", "command": ["sh", "-c", "echo more >>f0"], "rules": [rule]}]}))

        def look_ms(folder):
            took, used, _ = ran(SEGUE, "run", workflow, "-q", "-l", box.logs, "--cwd", folder, env=box.env)
            end = of_type(records(box.log_paths()[-1]), "call_end")[0]
            expect([f["path"] for f in end["files"]] == ["f0"], end.get("files"), end.get("note"))
            return took * 1e3, used * 1e3
        folders = [box.dir + "/" + name for name in ("one", "plain", "repository")]
        for folder in folders:
            fill(folder, 1 if folder is folders[0] else files, committed=folder is folders[2])
        found = in_turns(rounds, {folder: lambda folder=folder: look_ms(folder) for folder in folders})
        (bare, bare_cpu), *others = (map(min, zip(*took)) for took in found)
        row("a call in a folder of one file", bare, "ms")
        for where, (best, cpu) in zip(("without a repository", "in a repository"), others):
            row(f"{files} files {where}: one comparison", (best - bare) / 2, "ms", "<= 50")
            row("  its processor time", (cpu - bare_cpu) / 2, "ms")
