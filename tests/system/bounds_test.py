#!/usr/bin/env python3
"""What comes from outside stays within what a log can hold: depth, size, bytes, secrets, clocks.

usage: bounds_test.py BUILD_DIR [CASE...]
Every log that is written here must verify, whatever a program or a model said.
"""
import json
import sys
from pathlib import Path

from support import Box, expect, main, of_type, records, verified

LABELS = """
    rules:
      - {condition: all is well, next: COMPLETE}
      - {condition: something is wrong, next: ABORT}
"""


def run(box, workflow, *words, status=0, stdin=None, env=None):
    box.segue("run", box.file("w.yaml", workflow), "--logs", box.logs, "--cwd", box.cwd,
              *words, stdin=stdin, env=env, status=status)
    path = box.log_paths()[-1]
    verified(box, path)
    return records(path), path


def command(script):
    return ("name: x\nmovements:\n  - name: a\n    command: [sh, -c, " + json.dumps(script) + "]\n"
            "    rules: [{condition: when(exit == 0), next: COMPLETE}]\n")


def a_value_too_deep_for_a_log():
    for depth in (63, 64, 65, 1000, 2047, 100000):
        with Box() as box:
            script = (f"i=0; while [ $i -lt {depth} ]; do printf '{{\"a\":'; i=$((i+1)); done; "
                      f"printf 1; i=0; while [ $i -lt {depth} ]; do printf '}}'; i=$((i+1)); done")
            if depth > 5000:
                script = (f"head -c {depth * 5} /dev/zero | tr '\\0' x | sed 's/xxxxx/{{\"a\":/g'; "
                          f"printf 1; head -c {depth} /dev/zero | tr '\\0' '}}'")
            log, _ = run(box, command(script))
            end = of_type(log, "call_end")[0]
            expect(("structured" in end) == (depth <= 64), "depth", depth, list(end))


def a_value_too_long_for_a_log():
    for spare in (1, 0, -1):
        with Box() as box:
            text = "x" * (1024 * 1024 - len('{"a":""}') - spare)
            scenario = box.file("s.json", json.dumps({"replies": [
                {"text": "done", "structured": {"a": text}}]}))
            log, _ = run(box, "name: x\nprovider: script\nmovements:\n  - name: a\n"
                         "    instruction: do it\n    rules: [{condition: when(true), next: COMPLETE}]\n",
                         "--scenario", scenario)
            end = of_type(log, "call_end")[0]
            expect(("structured" in end) == (spare >= 0), "spare", spare, list(end))
            expect(("over 1048576 bytes" in end.get("note", "")) == (spare < 0), end.get("note"))


def a_reason_without_end(box):
    reply = json.dumps({"reason": "because " * 300000, "step": 1})
    scenario = box.file("s.json", json.dumps({"replies": [
        {"purpose": "execute", "text": "done"}, {"stage": "structured_output", "text": reply}]}))
    log, _ = run(box, "name: x\nprovider: script\nmovements:\n  - name: a\n    instruction: do it"
                 + LABELS, "--scenario", scenario)
    judgment = of_type(log, "judgment")[0]
    expect(judgment["rule"] == 1, judgment["rule"])
    expect(len(judgment["stages"][0]["reason"]) <= 512, "the reason is whole in the judgment")
    expect("text_blob" in of_type(log, "call_end")[1], "the answer is no blob")


def a_text_judged_that_is_no_utf8(box):
    for text in (b"x \xff\n[STEP:1]\n", b"\x01" * 300000 + b"\n[STEP:1]\n"):
        box.segue("judge", "--rule", "p", "--rule", "q", "--stages", "phase1_tag",
                  "--logs", box.logs, stdin=text, status=0)
    verified(box, *box.log_paths())


def a_prompt_too_long_is_never_cut(box):
    task = box.file("task", "t" * (8 * 1024 * 1024))
    scenario = box.file("s.yaml", "replies: [{text: done, times: 0}]\n")
    log, _ = run(box, "name: x\nprovider: script\nmovements:\n  - name: a\n"
                 "    instruction: '{task}{task}{task}{task} the end'" + LABELS,
                 "--task-file", task, "--scenario", scenario, status=1)
    expect(log[-1]["reason"] == "prompt_too_long", log[-1])
    expect(not of_type(log, "call_start"), "it was sent")


def a_secret_at_a_limit(box):
    secret = "sk-" + "SECRET" * 6
    box.file("home/.keep", "")
    box.config("env: [MYTOKEN]\n")
    script = ("head -c 262130 /dev/zero | tr '\\0' x >&2; printf %s \"$MYTOKEN\" >&2; "
              "printf 'here %s\\n' \"$MYTOKEN\"")
    log, path = run(box, command(script), env={"MYTOKEN": secret})
    folder = path.rsplit("/", 1)[0]
    blob = of_type(log, "call_end")[0]["stderr_blob"]
    kept = Path(f"{folder}/blobs/{blob}").read_bytes()
    kept += Path(path).read_bytes()
    expect(b"sk-SEC" not in kept, "a piece of the secret is in the log")
    expect("\u00absecret:MYTOKEN\u00bb" in of_type(log, "call_end")[0]["text"], "not redacted")


def the_end_of_a_flood_is_judged():
    """The judge, a tag, the next movement and `show` see the end of what a command printed."""
    flood = ("echo the first line; yes 'a line in the middle' | head -n 900000; "
             "exec 3>&1 >&2; echo begun; yes 'a warning' | head -n 40000; echo 'make: Error 1'; ")
    end = "echo '2 failed, 98 passed' >&3"
    with Box() as box:
        scenario = box.file("s.json", json.dumps({"replies": [
            {"stage": "structured_output", "contains": "this is its end",
             "text": '{"reason": "two failed", "step": 2}'}]}))
        log, path = run(
            box, "name: x\njudge: {provider: script}\nmovements:\n  - name: a\n    command: [sh, -c, "
            + json.dumps(flood + end) + "]\n    rules:\n      - {condition: all is well, next: COMPLETE}\n"
            "      - {condition: something is wrong, next: b}\n"
            "  - name: b\n    command: [sh, -c, 'cat > seen']\n    instruction: '{previous_response}'\n"
            "    rules: [{condition: when(exit == 0), next: COMPLETE}]\n", "--scenario", scenario)
        ended = of_type(log, "call_end")[0]
        asked = [r for r in of_type(log, "call_start") if r.get("purpose") == "judge"][0]
        expect("2 failed, 98 passed" in json.dumps(asked["prompt"]), asked["prompt"])
        expect(of_type(log, "judgment")[0]["rule"] == 2, of_type(log, "judgment")[0])
        expect(ended["text"].endswith("2 failed, 98 passed\n"), ended["text"][-100:])
        expect(ended["text"].startswith("the first line\n"), ended["text"][:100])
        expect(ended["stderr"].endswith("make: Error 1\n"), ended["stderr"][-100:])
        seen = Path(f"{box.cwd}/seen").read_bytes()
        line = seen[seen.index(b"[... "):].split(b"\n", 1)[0]
        expect(line == b"[... %d bytes were cut here ...]" % ended["dropped_bytes"], line)
        expect(len(seen) - len(line) - 1 + ended["dropped_bytes"] == 15 + 900000 * 21 + 20, len(seen))
        expect(seen.endswith(b"2 failed, 98 passed\n"), seen[-100:])
        shown = box.segue("show", path, "a").stdout.decode()
        for stream in ("dropped_bytes", "stderr_dropped_bytes"):
            expect(f"{ended[stream]} more were cut at the limit" in shown, stream, shown)
        expect("2 failed, 98 passed" in shown and "make: Error 1" in shown, shown)

    with Box() as box:
        log, _ = run(box, "name: x\nprovider: script\njudge: {provider: script, stages: [phase1_tag]}\nmovements:\n"
                     "  - name: a\n    command: [sh, -c, " + json.dumps(flood + "echo '[A:2]' >&3")
                     + "]" + LABELS, status=3)
        expect(of_type(log, "judgment")[0]["rule"] == 2, of_type(log, "judgment")[0])


def a_resume_sees_its_prompt(box):
    scenario = box.file("s.yaml", "replies:\n"
                        "  - {contains: hello, error: {class: auth}}\n"
                        "  - {contains: hello, text: \"Fine.\\n[A:1]\"}\n")
    log, path = run(box, "name: x\nprovider: script\njudge: {stages: [phase1_tag]}\nmovements:\n"
                    "  - name: a\n    instruction: say hello" + LABELS,
                    "--scenario", scenario, status=7)
    expect(log[-1]["type"] == "session_stop" and log[-1]["class"] == "auth", log[-1])
    box.segue("resume", path, status=0)
    verified(box, path)


def long_labels_in_other_scripts(box):
    label = "検査" * 200
    scenario = box.file("s.json", json.dumps({"replies": [
        {"purpose": "execute", "text": "done"},
        {"stage": "structured_output", "text": '{"reason": "r", "step": 1}'}]}))
    log, _ = run(box, "name: x\nprovider: script\nmovements:\n  - name: a\n    instruction: do it\n"
                 f"    rules:\n      - {{condition: '{label} && when(false)', next: COMPLETE}}\n"
                 "      - {condition: other, next: ABORT}\n", "--scenario", scenario, status=4)
    expect(of_type(log, "judgment")[0]["reason"], "no reason")


def a_judge_that_is_down_says_so_in_any_script(box):
    scenario = box.file("s.json", json.dumps({"replies": [
        {"purpose": "execute", "text": "done"},
        {"purpose": "judge", "times": 0,
         "error": {"class": "auth", "message": "鍵がありません" * 40}}]}))
    log, _ = run(box, "name: x\nprovider: script\nmovements:\n  - name: a\n    instruction: do it"
                 + LABELS, "--scenario", scenario, status=7)
    expect("鍵" in log[-1]["message"], log[-1])


if __name__ == "__main__":
    sys.exit(main([
        a_value_too_deep_for_a_log, a_value_too_long_for_a_log, a_reason_without_end, a_text_judged_that_is_no_utf8,
        a_prompt_too_long_is_never_cut, a_secret_at_a_limit, the_end_of_a_flood_is_judged, a_resume_sees_its_prompt,
        long_labels_in_other_scripts, a_judge_that_is_down_says_so_in_any_script]))
