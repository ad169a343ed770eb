#!/usr/bin/env python3
"""What somebody sees who reads logs and keeps files of their own: names that are not read, logs that
are over, records that point nowhere."""
import hashlib
import json
import os
import signal
import sys
from pathlib import Path

from support import end_of, expect, main, read_until

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
    Path(path).write_text(text)
    return path


def run(box, *words):
    return box.segue("run", box.file("w.yaml", WORKFLOW), "--logs", box.logs, "--cwd", box.cwd,
                     "--scenario", box.file("s.json", SCENARIO), *words)


def an_override_that_replaces_nothing_is_told(box):
    path = own_file(box, "prompts/en/judge_structred.md", "x")
    warning = f"warning: {path} replaces no prompt: did you mean judge_structured.md?"
    workflow = box.file("w.yaml", WORKFLOW)
    lint = box.segue("lint", workflow, workflow)
    expect(lint.returncode == 0 and lint.stderr.decode().count(warning) == 1, lint)
    quiet = box.segue("lint", "-q", workflow)
    expect(quiet.returncode == 0 and not quiet.stderr, quiet)
    done = run(box)
    expect(done.returncode == 0 and done.stderr.decode().count(warning) == 1, done)
    box.segue("doctor", "--quick", status=1, out="judge_structured.md?")


def a_profile_with_an_impossible_name_is_no_others(box):
    path = own_file(box, "providers/my agent.yaml", "summary: x\nprogram: x\n")
    why = '"my agent.yaml" cannot be the name of a profile\'s file: use letters'
    done = run(box)
    expect(done.returncode == 0 and why in done.stderr.decode(), done)
    expect(path in done.stderr.decode(), done.stderr)
    box.segue("lint", box.file("w.yaml", WORKFLOW), status=0, err=why)
    rows = {p["name"]: p for p in json.loads(box.segue("providers", "--quick", "--json").stdout)["providers"]}
    expect(rows["my agent.yaml"]["usable"] is False, rows["my agent.yaml"])
    expect(why in rows["my agent.yaml"]["problem"], rows["my agent.yaml"])
    box.segue("doctor", "--quick", status=1, out=why)


JUDGED = """
name: w
provider: script
movements:
  - name: review
    instruction: review it
    rules: [{condition: approved, next: COMPLETE}, {condition: needs fix, next: ABORT}]
"""


def forge(path, out, change):
    """The log with changed records, under hashes that are right."""
    lines, before = [], "0" * 64
    with open(path, "rb") as f:
        for line in f:
            record = json.loads(line)
            del record["hash"]
            change(record)
            body = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()[:-1]
            before = hashlib.sha256(before.encode() + body).hexdigest()
            lines.append(body + b',"hash":"' + before.encode() + b'"}\n')
    Path(out).write_bytes(b"".join(lines))
    return out


def a_reference_to_nothing_is_found(box):
    replies = json.dumps({"replies": [
        {"purpose": "execute", "text": "It is good."},
        {"stage": "structured_output", "text": '{"reason": "r", "step": 1}'}]})
    box.segue("run", box.file("w.yaml", JUDGED), "--logs", box.logs, "--cwd", box.cwd,
              "--scenario", box.file("s.json", replies), status=0)
    path = box.log_paths()[0]
    same = forge(path, box.dir + "/same", lambda record: None)
    expect(box.segue("verify", same).returncode == 0, "the forger does not write what segue writes")

    def dangle(record):
        if record["type"] == "call_start" and record.get("stage"):
            record["prompt"].append({"ref": "99#/text"})
    forged = forge(path, box.dir + "/forged.ndjson", dangle)
    done = box.segue("verify", forged, "--json")
    told = json.loads(done.stdout)
    expect(done.returncode == 1 and told["state"] == "bad" and told["bad_record"] == 5, told)
    expect("99#/text" in told["error"], told)
    shown = box.segue("show", forged, "review").stdout.decode()
    expect("some of which are missing (record 99 is not in the log)" in shown, shown)


def stages_are_counted_anew_when_judging_is(box):
    replies = [{"purpose": "execute", "text": "It is good."},
               {"error": {"class": "quota", "message": "no money"}},
               {"stage": "structured_output", "text": '{"reason": "r", "step": 1}'}]
    scenario = box.file("s.json", json.dumps({"replies": replies}))
    box.segue("run", box.file("w.yaml", JUDGED), "--logs", box.logs, "--cwd", box.cwd,
              "--scenario", scenario, status=1, out=b"judge_unavailable")
    path = box.log_paths()[0]
    box.segue("resume", path, status=0)
    shown = box.segue("show", path, "review").stdout.decode()
    titles = [line for line in shown.splitlines() if line.startswith("stage ")]
    expect([t.split()[1] for t in titles] == ["1", "2", "3", "4", "1"], titles)


def a_turn_that_was_cancelled_says_so(box):
    scenario = box.file("s.json", json.dumps({"replies": [
        {"purpose": "execute", "text": "late", "delay_ms": 600000}]}))
    process = box.start("run", box.file("w.yaml", JUDGED), "--logs", box.logs, "--cwd", box.cwd,
                        "--scenario", scenario, "--json")
    expect(read_until(process, lambda r: r["type"] == "call_start"), "no call began")
    path = box.begun()[0]
    shown = box.segue("show", path, "review").stdout.decode()
    expect("no answer yet" in shown, shown)
    process.send_signal(signal.SIGQUIT)
    expect(end_of(process)[0] == 6, "it was not cancelled")
    shown = box.segue("show", path, "review").stdout.decode()
    expect("no answer: the session ended" in shown and "\nended  cancelled  " in shown, shown)


def the_expression_that_failed_is_the_reason(box):
    text = ("name: w\nmovements:\n  - name: a\n    command: [sh, -c, exit 3]\n    rules:\n"
            "      - {condition: when(exit == 0), next: COMPLETE}\n"
            "      - {condition: when(structured.a.n == 1), next: ABORT}\n")
    done = box.segue("run", box.file("w.yaml", text), "--logs", box.logs, "--cwd", box.cwd, status=1)
    row = done.stdout.decode().splitlines()[0]
    expect("structured.a.n has no value" in row, row)
    shown = box.segue("show", box.log_paths()[0], "a").stdout.decode()
    expect("evaluated: exit == 0 is false" in shown and "error: rule 2, structured.a.n" in shown,
           shown)


if __name__ == "__main__":
    sys.exit(main([an_override_that_replaces_nothing_is_told,
                   a_profile_with_an_impossible_name_is_no_others,
                   a_reference_to_nothing_is_found, stages_are_counted_anew_when_judging_is,
                   a_turn_that_was_cancelled_says_so,
                   the_expression_that_failed_is_the_reason]))
