#!/usr/bin/env python3
"""segue import takt: files of takt's newer shapes become files of segue's own, with a line for each key, the same
bytes each time, over nothing that is there, and never out of their folder.

tests/data/import/newer is a .takt folder, newer.segue what it becomes; SEGUE_UPDATE=1 writes the latter anew."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support import Box, expect, main, needs, of_type, records, skip, verified

DATA = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + "/data/import"
RUNS = DATA + "/../judge/takt-runs.ndjson"
DIFFERENT = {"the judge names the tag in a sentence"}


def tree(folder):
    return {str(p.relative_to(folder)): p.read_text() for p in sorted(Path(folder).rglob("*")) if p.is_file()}


def imported(box, *words, status=0):
    return json.loads(box.segue("import", "takt", *words, "--json", status=status).stdout)


def lines(said, result):
    return {(line["in"], line["key"]) for report in said["lines"].values() for line in report if line["result"] == result}


def newer(box):
    shutil.copytree(DATA + "/newer", box.cwd + "/.takt")
    return box


def newer_shapes_become_these_files(box):
    said = imported(newer(box))
    found = tree(box.cwd + "/.segue")
    if os.environ.get("SEGUE_UPDATE") == "1":
        shutil.rmtree(DATA + "/newer.segue", ignore_errors=True)
        shutil.copytree(box.cwd + "/.segue", DATA + "/newer.segue")
    wanted = tree(DATA + "/newer.segue")
    expect(found == wanted, {k: found.get(k) for k in found.keys() | wanted.keys() if found.get(k) != wanted.get(k)})
    expect(all(w["loads"] for w in said["workflows"]) and len(said["workflows"]) == 6, said["workflows"])
    expect(lines(said, "impossible") == {("", "hologram"), ("work", "telepathy"), ("work", "vibe"), ("work", "companion"),
                                         ("build", "completion_retry")}, lines(said, "impossible"))
    keys = sum(len(report) for report in said["lines"].values())
    expect(said["same"] + said["changed"] + said["impossible"] == keys and said["same"] > 100, said)


def twice_is_once_and_nothing_is_written_over(box):
    expect(imported(newer(box), "--dry-run")["written"] == [] and not os.path.exists(box.cwd + "/.segue"), "dry")
    os.makedirs(box.cwd + "/.segue/facets/personas")
    box.file("work/.segue/facets/personas/chief.md", "my own chief\n")
    box.file("work/.segue/facets/personas/chief-2.md", "my second\n")
    first = imported(box)
    expect("facets/personas/chief-3.md" in first["written"] and first["kept"] == [], first)
    before = tree(box.cwd + "/.segue")
    expect(before["facets/personas/chief.md"] == "my own chief\n" and "persona: chief-3" in before["workflows/gate.yaml"], before)
    again = imported(box)
    expect(again["written"] == [] and len(again["kept"]) == len(first["written"]), again)
    expect(tree(box.cwd + "/.segue") == before, "the same bytes")
    expect([w["to"] for w in again["workflows"]] == [w["to"] for w in first["workflows"]], again)


def what_was_imported_runs(box):
    imported(newer(box))
    step = lambda name, rule, text="It is done.": [
        {"movement": name, "purpose": "execute", "text": text},
        {"movement": name, "purpose": "judge", "structured": {"reason": "it says so", "step": rule}}]
    round_of = [*step("build/build", 1), *step("build/look.arch", 2), *step("build/look.security", 1)]
    replies = [*step("build/plan", 1), *round_of, *round_of,
               {"movement": "_loop_judge_build/build_build/look", "purpose": "judge", "structured": {"reason": "it does", "step": 1}},
               {"movement": "_loop_judge_build/build_build/look", "text": "It gets on."},
               *step("build/build", 1), *step("build/look.arch", 1), *step("build/look.security", 1),
               *step("build/check/gate", 1), *step("report", 1),
               {"purpose": "report", "text": "# Found", "times": 0}]
    scenario = box.file("s.json", json.dumps({"replies": replies}))
    box.file("work/README.md", "http")
    box.segue("run", "ship", "-p", "script", "-s", scenario, "--logs", box.logs, "-t", "Do it", status=0)
    log = records(box.begun()[0])
    verified(box, box.begun()[0])
    went = [r["movement"] for r in of_type(log, "turn_start") if not r.get("parent")]
    judge = "_loop_judge_build/build_build/look"
    expect([m for m in went if "." not in m] == ["build/plan", "build/build", "build/look", "build/build", "build/look", judge,
                    "build/build", "build/look", "build/check/gate", "report"], went)
    # the leader's parts: planned as a value, done one by one, and summed up
    replies = [{"movement": "ask-around", "structured": {"parts": [{"title": "a", "instruction": "x"}, {"title": "b", "instruction": "y"}]}},
               *step("ask-around-parts.part", 1), *step("ask-around-parts.part", 2), *step("ask-around-end", 1),
               {"movement": "sum", "structured": {"count": 2}}, {"purpose": "report", "text": "# Found", "times": 0}]
    scenario = box.file("s.json", json.dumps({"replies": replies}))
    box.segue("run", "team", "-p", "script", "-s", scenario, "--logs", box.logs, "-t", "Do it", status=0)


def takt(box, files):
    shutil.rmtree(box.cwd + "/.takt", ignore_errors=True)
    shutil.rmtree(box.cwd + "/.segue", ignore_errors=True)
    for name, text in files.items():
        os.makedirs(os.path.dirname(f"{box.cwd}/.takt/{name}"), exist_ok=True)
        box.file(f"work/.takt/{name}", text)


ONE = "name: w\nsteps:\n  - {name: a, %s, rules: [{condition: done, next: COMPLETE}]}\n"
BAD = [  # files, where it is told, what is told
    ({"workflows/w.yaml": ONE % "call: w"}, "a", "calls lead back to it"),
    ({"workflows/w.yaml": ONE % "call: v", "workflows/v.yaml": ONE % "call: w"}, "a", "calls lead back to it"),
    ({"workflows/w.yaml": ONE % "uses: s", "steps/s.yaml": "uses: t", "steps/t.yaml": "uses: s"}, "", "leads back"),
    ({"workflows/w.yaml": ONE % "instruction: look", "facets/instructions/look.md": "{{include:partials/x}}",
      "facets/partials/x.md": "{{include:instructions/look}}"}, "a", "leads back to itself"),
    ({"workflows/w.yaml": ONE % "persona: ../../secret.md"}, "a", "leads out"),
    ({"workflows/w.yaml": ONE % "call: ../../secret"}, "", "leads out"),
    ({"workflows/w.yaml": ONE % "uses: ../../../secret"}, "", "leads out"),
    ({"workflows/w.yaml": "x: " + "y" * 10_000_000}, "", "larger"),
    ({"workflows/w.yaml": "name: [w\n"}, "", ""),
    ({"workflows/w.yaml": "- a\n- b\n"}, "", "no map"),
    ({"workflows/w.yaml": ONE % "policy: {$param: none}"}, "", "no value"),
    ({"workflows/w.yaml": ONE % "call: v, args: {p: [x]}", "workflows/v.yaml":
      "subworkflow: {params: {p: {default: [y]}}}\n" + ONE % "call: v, args: {p: [{$param: p}, {$param: p}]}"}, "a",
     "calls lead back to it"),
    ({"workflows/w.yaml": "name: w\nsteps: [{name: a, persona: nobody, rules: [{condition: 'all(\"a\"', next: COMPLETE}]}]\n"},
     "a", "no all("),
    ({"workflows/w.yaml": ONE % "mode: system, effects: [{type: merge_pr}]"}, "a", "let a command movement do it"),
]


def bad_files_are_told_and_the_rest_is_imported(box):
    box.file("secret.md", "secret")
    box.file("secret.yaml", "persona: secret")
    for files, where, text in BAD:
        takt(box, {**files, "workflows/good.yaml": ONE % "instruction: Do it."})
        said = json.loads(box.segue("import", "takt", "--json").stdout)
        told = [line for report in said["lines"].values() for line in report if line["result"] == "impossible"]
        expect(any(line["in"] == where and text in line["why"] and line["line"] > 0 for line in told), files.keys(), text, told)
        expect({w["from"]: w["loads"] for w in said["workflows"]}[".takt/workflows/good.yaml"], said["workflows"])
        if len(said["workflows"]) < 2:  # the file could not be read at all
            box.segue("import", "takt", "--dry-run", status=1)
        expect("secret" not in " ".join(tree(box.cwd + "/.segue").values()).replace("/secret", ""), "left the folder")


def links_lead_nowhere(box):
    os.mkdir(box.dir + "/other")
    box.file("other/s.yaml", "persona: secret\n")
    takt(box, {"workflows/w.yaml": ONE % "uses: s"})
    os.symlink(box.dir + "/other", box.cwd + "/.takt/steps")
    said = json.loads(box.segue("import", "takt", "--json").stdout)
    os.symlink(box.dir + "/other/s.yaml", box.cwd + "/.takt/workflows/s.yaml")
    for link in ("/.segue", "/.segue/workflows"):
        shutil.rmtree(box.cwd + "/.segue", ignore_errors=True)
        os.makedirs(os.path.dirname(box.cwd + link), exist_ok=True)
        os.symlink(box.dir + "/other", box.cwd + link)
        box.segue("import", "takt", status=1, err="segue writes through no link")
        os.unlink(box.cwd + link)
    expect(os.listdir(box.dir + "/other") == ["s.yaml"], said)


def wrong_words(box):
    box.segue("import", "takt", status=2, err="there is no workflow")
    box.segue("import", "other", status=2, err="write takt")
    box.segue("import", "takt", "nowhere", status=2, err="cannot read")
    takt(box, {"config.yaml": "language: ja\n", "pieces/w.yaml": ONE.replace("steps", "movements") % "persona: coder"})
    said = imported(box, ".takt/pieces/w.yaml")
    text = Path(box.cwd + "/.segue/workflows/w.yaml").read_text()
    expect("language: ja" in text and "persona: coder" in text and len(said["workflows"]) == 1, text)
    shown = box.segue("import", "takt", status=0).stdout.decode()
    expect("   3  changed     a: persona: takt is not installed here" in shown and "0 files written, 2 kept" in shown, shown)


STAGES = ("structured_output", "phase3_tag", "ai_judge")


def laid_out(folder, files):
    """A .takt folder of these files, with a persona for each step."""
    for name, content in files.items():
        os.makedirs(os.path.dirname(f"{folder}/.takt/{name}"), exist_ok=True)
        Path(f"{folder}/.takt/{name}").write_text(content if isinstance(content, str) else json.dumps(content))
        for step in content["steps"] if isinstance(content, dict) else []:
            for one in [step, *step.get("parallel", [])]:
                os.makedirs(f"{folder}/.takt/facets/personas", exist_ok=True)
                Path(f"{folder}/.takt/facets/personas/{one['name']}.md").write_text(f"You are {one['name']}.")
    Path(f"{folder}/.takt/facets/personas/chief.md").write_text("You look after the loop.")


def judged(verdict):
    """What each stage of judging says; a number: the first one names that rule."""
    if verdict == 0 or (isinstance(verdict, dict) and "empty" in verdict):
        return []
    if isinstance(verdict, int):
        return [{"structured": {"step": verdict, "reason": "it says so"}}]
    if "tag" in verdict:
        return [{"text": "nothing"}, {"text": verdict["tag"] + " {mark}"}]
    last = {"structured": {"matched_index": verdict["index"], "reason": "so"}} if "index" in verdict else {"text": "nothing"}
    return [{"text": "nothing"}, {"text": "nothing"}, last]


def way_in_segue(case):
    with Box() as box:
        laid_out(box.cwd, case["files"])
        said = imported(box)
        expect(said["impossible"] == 0 and all(w["loads"] for w in said["workflows"]), case["name"], said)
        replies = []
        for name, verdict, *reports in case["script"]:
            text = "" if isinstance(verdict, dict) and "empty" in verdict else f"{name} is done"
            replies.append({"movement": name, "purpose": "execute", "text": text, "times": 0 if text == "" else 1})
            replies += [{"movement": name, "purpose": "report", "text": report} for report in reports]
            replies += [{"movement": name, "stage": stage, **reply} for stage, reply in zip(STAGES, judged(verdict))]
        scenario = box.file("s.json", json.dumps({"replies": replies}))
        box.segue("run", "w", "-p", "script", "-s", scenario, "--logs", box.logs, "-t", "Do it")
        verified(box, box.begun()[0])
        log = records(box.begun()[0])
        end = {"session_end": log[-1].get("outcome", "").upper(), "session_stop": "stop"}[log[-1]["type"]]
        return [r["movement"] for r in of_type(log, "turn_start")] + [end]


def way_in_takt(case, takt_program, folder):
    """The steps that takt's mock goes through, and how it ends."""
    laid_out(folder, case["files"])
    subprocess.run(["git", "init", "-q", folder], check=True)
    entries = []
    for name, verdict, *reports in case["script"]:
        persona = "chief" if name.startswith("_loop") else name.split("/")[-1].split(".")[-1]
        text = "" if isinstance(verdict, dict) and "empty" in verdict else f"{name} is done"
        entries += [{"persona": persona, "content": said} for said in (text, *reports)]
        entries += [{**({"persona": "conductor"} if stage < 2 else {}), "content": reply.get("text", ""),
                     **({"structured_output": reply["structured"]} if "structured" in reply else {})}
                    for stage, reply in enumerate(judged(verdict))]  # the last judge has no name
    Path(folder + "/s.json").write_text(json.dumps(entries))
    subprocess.run([takt_program, "--pipeline", "--skip-git", "-w", "w", "-t", "Do it", "--provider", "mock", "-q"], cwd=folder,
                   capture_output=True, env={**os.environ, "HOME": folder, "TAKT_MOCK_SCENARIO": folder + "/s.json"})
    log = [json.loads(line) for path in Path(folder + "/.takt/runs").glob("*/logs/*.jsonl") for line in path.open()]
    way = []
    for r in log:
        stack = [s["step"] for s in r.get("stack", [])]
        entered = r["type"] == "step_start" and r.get("stack", [{}])[-1].get("kind") != "workflow_call"
        child = r["type"] == "phase_start" and r["phase"] == 1 and r["step"] != stack[-1] and not r["step"].startswith("_loop")
        if entered:
            way.append("/".join([*stack[:-1], r["step"]]))
        elif child:
            way.append("/".join(stack) + "." + r["step"])
    last = ([r for r in log if r["type"] in ("workflow_complete", "workflow_abort")] or [{"type": "", "reason": "refused"}])[-1]
    aborted = "ABORT" if "step transition" in last.get("reason", "") else "stop"
    return way + ["COMPLETE" if last["type"] == "workflow_complete" else aborted]


def cases():
    with open(RUNS, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def keep(found):
    with open(RUNS, "w", encoding="utf-8") as f:
        f.writelines(json.dumps(case, ensure_ascii=False) + "\n" for case in found)


def whole_runs_go_the_same_way():
    """As takt 0.39.0 went them; what differs is told in docs/from-takt.md."""
    runs = cases()
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(way_in_segue, runs))
    if os.environ.get("SEGUE_UPDATE") == "1":
        keep([{**case, "segue": way} for case, way in zip(runs, found)])
    wrong = [(c["name"], c.get("segue"), way) for c, way in zip(runs, found) if c.get("segue") != way]
    expect(not wrong, wrong)
    other = {c["name"] for c in runs if c["segue"] != c["takt_0_39"]}
    expect(other == DIFFERENT and len(runs) - len(other) >= 20, [c for c in runs if c["name"] in other ^ DIFFERENT])
    return f"{len(runs) - len(other)} of {len(runs)} alike"


def takt_goes_them_so():
    """With takt 0.39.0 in PATH: what is written of it is what it does."""
    needs("takt", "node", "git")
    version = subprocess.run(["takt", "--version"], capture_output=True, text=True).stdout.strip()
    if version != "0.39.0":
        skip(f"takt is {version}, the runs are those of 0.39.0")
    runs = cases()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        for i in range(len(runs)):
            os.makedirs(f"{folder}/{i}")
        found = list(pool.map(lambda i: way_in_takt(runs[i], "takt", f"{folder}/{i}"), range(len(runs))))
    if os.environ.get("SEGUE_UPDATE") == "1":
        keep([{**case, "takt_0_39": way} for case, way in zip(runs, found)])
    wrong = [(c["name"], c.get("takt_0_39"), way) for c, way in zip(runs, found) if c.get("takt_0_39") != way]
    expect(not wrong, wrong)
    return f"{len(runs)} runs"


if __name__ == "__main__":
    sys.exit(main([newer_shapes_become_these_files, twice_is_once_and_nothing_is_written_over, what_was_imported_runs,
                   bad_files_are_told_and_the_rest_is_imported, links_lead_nowhere, wrong_words, takt_goes_them_so,
                   whole_runs_go_the_same_way]))
