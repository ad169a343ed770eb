"""What one call costs apart from its provider: the start of a program and its end (spawn), its sandbox
(held), looks at the folder it works in (tree, look), a worktree of its own (worktree); what the library's
rooms cost (library)."""
import itertools
import json
import os
import re
import shutil
import subprocess
from statistics import median

from bench import PROBE, command, compare, flow, in_turns, peak_mib, ran, row
from api_calls import SCHEMA
from support import BUILD, SEGUE, Box, at, expect, fill, of_type, records
from worktree_test import git, repository

SHIM = {**os.environ, "SEGUE_SHIM": BUILD + "/segue-shim"}
# As a byte-pair tokenizer cuts, roughly: src/render/describe_tokens.c.
TOKEN = re.compile(r"[A-Za-z]{1,8}|[0-9]{1,3}|\n *|  +|[^\sA-Za-z0-9]{1,4}")


def seconds(*words):
    """What the probe does takes, and what it takes without our library."""
    return map(float, ran(PROBE, *words)[2].split())


def library():
    """Checking and extracting beside jansson; a grammar of 50 KB of schema; the estimated tokens of what
    a model is told about each ready schema."""
    ours, by_hand = seconds("check", json.dumps(SCHEMA))
    row("a judgment checked, against a walk by hand", ours / by_hand, "times", "<= 2.5")
    tree = [{"id": 17, "name": 'item "17"', "tags": ["a", "b"], "score": 1.97, "note": "a longer } text " * 5}] * 6000
    prose = "Every test passes, and the build is clean on both. It’s ready.\n" * 250000
    with Box() as box:
        ours, _ = seconds("extract", box.file("prose", prose))
        row("extract from prose", len(prose.encode()) / 1e6 / ours, "MB/s", ">= 900")
        ours, jansson = seconds("extract", box.file("tree", json.dumps(tree)))
        row("extract a tree, as fast as json_loads", jansson / ours, "times", ">= 1.50")
    used = median(ran(SEGUE, "schema", "provider-profile", "--as", "gbnf")[1] for _ in range(9))
    row("a command that makes a grammar of a 50 KB schema", used * 1e3, "ms of CPU", "<= 20")
    for name in ("address", "entities", "meeting", "product", "sentiment"):
        told = {form: ran(SEGUE, "schema", name, "--as", form)[2].decode()
                for form in ("prompt", "types", "json", "example", "gbnf")}
        print(f"{name}: estimated tokens:", *(f"{form} {len(TOKEN.findall(told[form]))}" for form in told))


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
        compare(rounds, ">= 0.90", f"bare spawn and collect, {at_once} in flight", "a second",
                lambda: float(ran(PROBE, "spawn", str(at_once), str(count), env=SHIM)[2]),
                "through os/process", lambda: spawned(at_once, count)[0])
    _, starts = spawned(1, 500, megabytes=500)
    row("the loop stopped by a start, 500 MB resident", median(starts), "ms", "<= 1.5")
    row("  p99", starts[int(len(starts) * .99)], "ms", "<= 5")


def turn_ms(box, level, turns=300):
    """The time of a turn of one run; its first turn makes the rules, and is left out. The folder of logs stays:
    rules made just after a change beside them are not kept."""
    workflow = box.file("held.json", flow(command(["/bin/true"], "one", sandbox=level), max_movements=turns))
    box.segue("run", workflow, "--logs", box.logs, "--cwd", box.dir + "/home/work", "--task", "x", status=5)
    log = records(box.log_paths()[-1])
    ran("find", box.logs, "-mindepth", "1", "-delete")
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
        for name in ("work", ".ssh", ".cache", "config/segue", *(f"folder-{i}" for i in range(1000))):
            os.makedirs(f"{box.dir}/home/{name}")
        for mechanism in ("landlock", "bwrap") if shutil.which("bwrap") else ("landlock",):
            box.file("home/config/segue/config.yaml", json.dumps({"sandbox": {"mechanism": mechanism}}))
            off, guard = in_turns(rounds, lambda: turn_ms(box, "off"), lambda: turn_ms(box, "guard"))
            row(f"a turn with guard by {mechanism}, more than without",
                median(g - o for g, o in zip(guard, off)), "ms", "<= 15" if mechanism == "bwrap" else "")
            row("  against that without", median(g / o for g, o in zip(guard, off)), "times",
                "<= 1.15" if mechanism == "landlock" else "")


def tree(files=10000, rounds=9):
    """What one look at a tree costs: half of what a call takes more in a repository of many files, since it
    is looked at before and after the call, than in one of a single file."""
    with Box() as box:
        workflow = box.file("look.json", flow(command(["sh", "-c", "echo more >>f0"])))

        def call_ms(count):
            took = ran(SEGUE, "run", workflow, "-q", "-l", box.logs, "--cwd", f"{box.dir}/{count}", env=box.env)[0]
            end = of_type(records(box.log_paths()[-1]), "call_end")[0]
            expect([f["path"] for f in end["files"]] == ["f0"], end.get("files"), end.get("note"))
            return took * 1e3
        for count in (1, files):
            fill(f"{box.dir}/{count}", count)
            repository(box, at=f"{box.dir}/{count}")
        one, many = map(min, in_turns(rounds, lambda: call_ms(1), lambda: call_ms(files)))
        row(f"{files} files: one comparison", (many - one) / 2, "ms", "<= 50")


def look(files=10000, children=64, rounds=5):
    """What looks cost: a turn of an empty program beside `git status`; a group of many of them beside what
    it takes in an empty folder, in looks, which one child has two of; its memory beside one child's."""
    with Box() as box:
        turns = 12

        def group(count):
            parts = [{"name": f"c{n}", "command": ["/bin/true"], "rules": [{"condition": "when(true)"}]} for n in range(count)]
            return box.file(f"group{count}.json", flow({"name": "all", "parallel": parts, "rules": [
                {"condition": "when(true)", "next": "COMPLETE"}]}))
        again = box.file("turns.json", flow({"name": "one", "command": ["/bin/true"], "rules": [
            {"condition": f"when(movement_iteration < {turns})", "next": "one"}, {"condition": "when(true)", "next": "COMPLETE"}]}))

        def words(workflow, folder):
            return [SEGUE, "run", workflow, "-q", "-l", box.logs, "--cwd", folder]

        def turn_s(folder):
            ran(*words(again, folder), env=box.env)
            ends = [at(r) for r in of_type(records(box.log_paths()[-1]), "turn_end")]
            return median(b - a for a, b in zip(ends, ends[1:]))
        os.mkdir(box.dir + "/empty")
        for kind in ("git", "plain"):
            folder = f"{box.dir}/{kind}"
            fill(folder, files)
            if kind == "git":
                repository(box, at=folder)
                compare(rounds, "<= 2.2", f"git status -uall, {files} files", "s",
                        lambda: ran("git", "status", "--porcelain", "-uall", cwd=folder, env=box.env)[0],
                        "a turn of /bin/true there", lambda: turn_s(folder))
            one, many, bare_one, bare_many = map(min, in_turns(rounds, *(
                lambda n=n, at=at: ran(*words(group(n), at), env=box.env)[0]
                for at in (folder, box.dir + "/empty") for n in (1, children))))
            row(f"{kind}, {files} files: a group of one", one * 1e3, "ms")
            row(f"  of {children}, {many * 1e3:.0f} ms, without its {children} programs", 2 * (many - bare_many) / (one - bare_one), "looks",
                "<= 2.5")
            row("  its memory", peak_mib(*words(group(children), folder), env=box.env) /
                peak_mib(*words(group(1), folder), env=box.env), "times", "<= 1.2")


def worktree(files=10000, rounds=7):
    """How long a session's worktree takes, from the record that asks for it to the one that says where
    it is, beside `git worktree add` alone: both from the same commit."""
    numbers = itertools.count()
    with Box() as box:
        fill(box.cwd, files)
        repository(box)
        workflow = box.file("w.json", flow(command(["true"]), workspace="worktree", commit="off"))

        def bare():
            path = f"{box.dir}/bare{next(numbers)}"
            took = ran("git", "worktree", "add", "-b", os.path.basename(path), path, cwd=box.cwd, env=box.env)[0]
            git(box, "worktree", "remove", "--force", path)
            return took

        def own():
            ran(SEGUE, "run", workflow, "--cwd", box.cwd, "--logs", box.logs, env=box.env)
            asked, made = of_type(records(box.log_paths()[-1]), "workspace")[:2]
            git(box, "worktree", "remove", "--force", made["data"]["path"])
            return at(made) - at(asked)
        compare(rounds, "<= 1.3", f"git worktree add alone, {files} files", "s", bare, "a session's worktree", own)
