#!/usr/bin/env python3
"""What somebody sees who reads logs and keeps files of their own: names that are not read, logs that
are over, records that point nowhere.

usage: auditor_test.py BUILD_DIR [CASE...]
"""
import json
import os
import sys

sys.dont_write_bytecode = True

from support import Box, expect, main, need_build  # noqa: E402

WORKFLOW = """
name: w
provider: script
movements:
  - name: plan
    instruction: do it
    rules: [{condition: done, next: COMPLETE}]
"""
SCENARIO = json.dumps({"replies": [{"text": "done", "times": 0}]})


def own_file(box, name, text):
    path = f"{box.env['XDG_CONFIG_HOME']}/segue/{name}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    return path


def run(box, *words):
    return box.segue("run", box.file("w.yaml", WORKFLOW), "--logs", box.logs, "--cwd", box.cwd,
                     "--scenario", box.file("s.json", SCENARIO), *words)


def an_override_that_replaces_nothing_is_told():
    with Box() as box:
        path = own_file(box, "prompts/en/judge_structred.md", "x")
        warning = f"warning: {path} replaces no prompt: did you mean judge_structured.md?"
        workflow = box.file("w.yaml", WORKFLOW)
        lint = box.segue("lint", workflow, workflow)
        expect(lint.returncode == 0 and lint.stderr.decode().count(warning) == 1, lint)
        quiet = box.segue("lint", "-q", workflow)
        expect(quiet.returncode == 0 and not quiet.stderr, quiet)
        done = run(box)
        expect(done.returncode == 0 and done.stderr.decode().count(warning) == 1, done)
        doctor = box.segue("doctor", "--quick")
        expect(doctor.returncode == 1 and "judge_structured.md?" in doctor.stdout.decode(), doctor)


def a_profile_with_an_impossible_name_is_no_others():
    with Box() as box:
        path = own_file(box, "providers/my agent.yaml", "summary: x\nprogram: x\n")
        why = '"my agent.yaml" cannot be the name of a profile\'s file: use letters'
        done = run(box)
        expect(done.returncode == 0 and why in done.stderr.decode(), done)
        expect(path in done.stderr.decode(), done.stderr)
        lint = box.segue("lint", box.file("w.yaml", WORKFLOW))
        expect(lint.returncode == 0 and why in lint.stderr.decode(), lint)
        listed = box.segue("providers", "--quick", "--json")
        rows = {p["name"]: p for p in json.loads(listed.stdout)["providers"]}
        expect(rows["my agent.yaml"]["usable"] is False, rows["my agent.yaml"])
        expect(why in rows["my agent.yaml"]["problem"], rows["my agent.yaml"])
        doctor = box.segue("doctor", "--quick")
        expect(doctor.returncode == 1 and why in doctor.stdout.decode(), doctor)


if __name__ == "__main__":
    need_build()
    sys.exit(main([an_override_that_replaces_nothing_is_told,
                   a_profile_with_an_impossible_name_is_no_others]))
