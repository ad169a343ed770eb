#!/usr/bin/env python3
"""A provider that is away, and another that takes over; few places; through crashes and signals."""
import json
import os
import signal
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Timer

from support import WAIT_S, Box, end_of, expect, flow, main, of_type, records, sound, verified

FLOW = flow("fallback_flow")
REPLIES = [
    {"movement": "work", "purpose": "execute", "text": "worked"},
    {"movement": "work", "stage": "structured_output", "structured": {"reason": "so", "step": 1}},
    {"movement": "check", "purpose": "execute", "text": "looked"},
    {"movement": "check", "stage": "phase3_tag", "text": "[CHECK:1]"},
]
WANTED = [(1, "work", 1, "structured_output"), (2, "check", 1, "phase3_tag")]



def words_of(box):
    return [box.file("flow.yaml", FLOW), "--task", "t", "--cwd", box.cwd, "--logs", box.logs,
            "--scenario", box.file("replies.json", json.dumps({"replies": REPLIES}))]


CLIENT = """#!/usr/bin/env python3
import json, os, sys
if "--version" in sys.argv:
    sys.exit(print("2.1.332 (Claude Code)"))
sys.stdin.read()
two = os.environ.get("CLAUDE_CONFIG_DIR", "").endswith("/two")
said = "Done, as asked. [WORK:1]" if two else "You've hit your session limit \u00b7 resets 3pm (UTC)"
print(json.dumps({"type": "system", "subtype": "init", "session_id": "a"}))
print(json.dumps({"type": "result", "subtype": "success", "is_error": not two, "result": said,
                  "session_id": "a", "usage": {"input_tokens": 1, "output_tokens": 1}}))
sys.exit(0 if two else 1)
"""


def a_second_account_takes_over(box):
    """A profile of the same client with its own login, as docs/backends/two-accounts.md says; doctor looks at both logins."""
    box.config(f"providers:\n  claude: {{program: [{sys.executable}, {box.file('client.py', CLIENT)}]}}\n"
               f"  claude-two: {{program: [{sys.executable}, {box.dir}/client.py]}}\n"
               "fallback: {claude: [claude-two]}\n")
    os.makedirs(box.env["XDG_CONFIG_HOME"] + "/segue/providers")
    with open(box.env["XDG_CONFIG_HOME"] + "/segue/providers/claude-two.yaml", "w") as f:
        f.write(f"extends: claude\nenv: {{set: {{CLAUDE_CONFIG_DIR: {box.dir}/two}}}}\n")
    box.env = {k: v for k, v in box.env.items() if not k.startswith(("ANTHROPIC", "CLAUDE"))}
    first, second = f"{box.dir}/one/.claude/.credentials.json", f"{box.dir}/two/.credentials.json"
    box.env["HOME"] = f"{box.dir}/one"
    for there, wanted in (((first,), (True, False)), ((second,), (False, True)), ((first, second), (True, True))):
        for path in (first, second):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if path in there:
                open(path, "w").close()
            elif os.path.exists(path):
                os.unlink(path)
        told = [b"no sign of a key or a login" not in box.segue("doctor", name).stdout for name in ("claude", "claude-two")]
        expect(tuple(told) == wanted, there, told)
    flow = box.file("two.yaml", "name: two\nprovider: claude\njudge: {stages: [phase1_tag]}\nmovements:\n"
                                "  - {name: work, rules: [{condition: done, next: COMPLETE}]}\n")
    done = box.segue("run", flow, "--task", "t", "--cwd", box.cwd, "--logs", box.logs)
    expect(done.returncode == 0 and b"claude-two" in done.stdout + done.stderr, done)
    starts = of_type(records(box.log_paths()[0]), "call_start")
    expect([s["provider"] for s in starts] == ["claude", "claude-two"], starts)


def without_a_key(box):
    """A provider that fails at once."""
    box.config('providers:\n  away: {type: openai-chat, base_url: "http://127.0.0.1:9/v1", '
                'model: big, key_env: SEGUE_TEST_NO_KEY}\n')
    return words_of(box)


def asked(log):
    return [(r["turn"], r["provider"]) for r in of_type(log, "call_start")]


def nobody_listens():
    with socket.socket() as taken, Box() as box:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused, and nobody else gets it
        box.config('providers:\n  away: {type: openai-chat, model: big, '
                    f'base_url: "http://127.0.0.1:{taken.getsockname()[1]}/v1"}}\n'
                    'fallback: {away: [script]}\n')
        flow = FLOW.replace("provider: [away, script]\nm", "provider: away\nm").replace(
            "judge: {provider: [away, script],", "judge: {provider: script,")
        words = words_of(box)
        box.file("flow.yaml", flow)
        box.segue("run", *words, status=0)
        path = box.log_paths()[0]
        log = records(path)
        sound(log, WANTED, repeats=0)
        verified(box, path)
        first = [r for r in of_type(log, "call_end") if r["call"] == 1]
        expect([r.get("error", {}).get("class") for r in first] == ["network"] * 4 + [None], first)
        expect(all("retry_in_ms" in r for r in first[:3]), "attempts at the same one first:", first)
        expect(first[3]["fallback"] == "script" and "retry_in_ms" not in first[3], first[3])
        starts = [r for r in of_type(log, "call_start") if r["call"] == 1]
        expect(starts[0]["model"] == "big" and "model" not in starts[4], starts)
        expect("prompt" in starts[0] and starts[4]["prompt_of"] == starts[0]["seq"], starts)


def at_once_when_that_helps(box):
    box.segue("run", *without_a_key(box), status=0)
    log = records(box.log_paths()[0])
    sound(log, WANTED, repeats=0)
    expect(asked(log) == [(1, "away"), (1, "script"), (1, "script"), (2, "script"), (2, "script")], asked(log))
    shown = box.segue("show", box.log_paths()[0])
    expect(b"script takes over" in shown.stdout or b"script took over" in shown.stdout, shown.stdout)


def crashed(n):
    with Box() as box:
        words = without_a_key(box)
        done = box.segue("run", *words, env={"SEGUE_FAULT": f"exit:{n}"})
        expect(done.returncode in (0, 99), n, done.returncode, done.stderr)
        if done.returncode == 99:
            begun = box.begun()
            again = box.segue("resume", begun[0]) if begun else box.segue("run", *words)
            expect(again.returncode == 0, f"SEGUE_FAULT=exit:{n}", again.stdout, again.stderr)
        path = box.begun()[0]
        sound(records(path), WANTED, repeats=1)
        verified(box, path)
        return done.returncode == 99


def at_every_crash():
    with ThreadPoolExecutor(2) as pool:
        for first in range(1, 400, 8):
            met = list(pool.map(crashed, range(first, first + 8)))
            if not all(met):
                points = first - 1 + met.index(False)
                expect(points > 20, "only", points, "fault points: is SEGUE_FAULTS compiled in?")
                return f"{points} points"
    raise AssertionError("no run passes untouched")


def batch(box, replies, n, *more):
    lines = "".join(json.dumps({"id": i, "prompt": f"question {i}"}) + "\n" for i in range(n))
    return ["ask", "--schema", "sentiment", "--provider", "script", "--jobs", str(n),
            "--scenario", box.file("replies.json", json.dumps({"replies": replies})),
            "--logs", box.logs, "--batch", box.file("batch.ndjson", lines), *more]


def few_places(box):
    """Six at once, two places: everybody gets an answer, and never more than two are asked."""
    box.config("providers: {script: {concurrency: 2}}\n")
    good = '{"sentiment": "positive", "confidence": 0.9, "keywords": ["love"]}'
    done = box.segue(*batch(box, [{"text": good, "times": 0, "delay_ms": 500}], 6), status=0)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    expect([a["outcome"] for a in answers] == ["value"] * 6, answers)
    waits = 0
    for path in box.log_paths():
        log = records(path)
        verified(box, path)
        told = [r["answer"] for r in of_type(log, "admission")]
        expect(told in ([], ["wait", "admitted"]), told)
        waits += len(told) // 2
    expect(waits == 4, waits, "of six waited for one of two places")


def a_wait_for_a_provider_can_be_left(box):
    """The backend asked for an hour: whoever waits for it leaves at a signal."""
    replies = [{"times": 0, "error": {"class": "rate_limit", "message": "later",
                                      "retry_after_ms": 3600000}}]
    box.config("providers: {script: {concurrency: 1}}\n")
    process = box.start(*batch(box, replies, 3))
    until = time.monotonic() + WAIT_S
    while not [p for p in box.log_paths() if b'"reason":"cooldown"' in open(p, "rb").read()]:
        expect(time.monotonic() < until and process.poll() is None, "nobody waits for the cooldown")
        time.sleep(0.01)  # a look at a time; the deadline is above
    process.send_signal(signal.SIGINT)
    status, _, err = end_of(process)
    expect(status == 130, status, err)
    for path in box.log_paths():
        log = records(path)
        expect(log[-1]["type"] == "session_stop" and log[-1]["resumable"], log[-1])


def a_wait_is_told_after_a_resume_too(box):
    scenario = {"replies": [{"times": 0, "error": {"class": "rate_limit", "message": "later",
                                                   "retry_after_ms": 3600000}}]}
    flow = "name: w\nmovements: [{name: a, instruction: do it, rules: [{condition: d, next: COMPLETE}]}]\n"
    words = ["run", box.file("w.yaml", flow), "--task", "t", "--provider", "script", "--cwd", box.cwd,
             "--logs", box.logs, "--scenario", box.file("r.json", json.dumps(scenario))]
    for more in (words, ["resume", "last", "--logs", box.logs]):
        process = box.start(*more)
        limit = Timer(30, process.kill)
        limit.start()
        line = process.stdout.readline()
        limit.cancel()
        expect(line.startswith(b"  waiting 3") and b" s: rate_limit" in line, more[0], line)
        process.send_signal(signal.SIGINT)
        expect(end_of(process)[0] == 130, more[0])
    log = records(box.log_paths()[0])
    expect(len(of_type(log, "call_start")) == 1, "it was asked before its time")


sys.exit(main([nobody_listens, at_once_when_that_helps, at_every_crash, few_places,
               a_wait_for_a_provider_can_be_left, a_wait_is_told_after_a_resume_too,
               a_second_account_takes_over]))
