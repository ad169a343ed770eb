#!/usr/bin/env python3
"""segue rejudge: recorded turns judged once more, offline with scripted judges: the same prompts, other
judges, panels, orders; bounds, resuming after an end at every step, and what agree says of them."""
import json
import os
import re
import shutil
import signal
import sys
from contextlib import closing

from fake_api import FakeApi, dialect_of, stream
from support import SANITIZED, WAIT_S, Box, expect, flow, main, of_type, prompt_text, records

SCHEMA = os.path.dirname(os.path.abspath(__file__)) + "/../../schemas/session-log.json"

FLOW = flow("rejudge_cli_flow")


def judged(rule, **more):
    return {"purpose": "judge", "text": json.dumps({"reason": "r", "step": rule}), **more}


def scenario(box, name, *replies):
    return box.file(name, json.dumps({"replies": list(replies)}))


def made(box, n=3, text="I looked; all is fine"):
    """n sessions: their ids, and the bytes of their logs."""
    flow = box.file("two.yaml", FLOW)
    work = {"purpose": "execute", "text": text}
    for i in range(n):
        s = scenario(box, "work.json", work, judged(2 if i % 3 else 3, usage={"input": 90, "output": 9}, cost=0.01))
        done = box.segue("run", flow, "--scenario", s, "--logs", box.logs, "--cwd", box.cwd)
        expect(done.returncode == (0 if i % 3 else 3), done.stderr)
    paths = box.log_paths()
    return [os.path.basename(p)[:-7] for p in paths], {p: open(p, "rb").read() for p in paths}


def rejudge(box, *words, status=0, env=None):
    done = box.segue("rejudge", box.logs, *words, "--json", env=env, status=status)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return lines[:-1], lines[-1] if lines else None


def results(box):
    folder = box.logs + "/rejudged"
    names = sorted(n for n in os.listdir(folder) if n.endswith(".ndjson"))
    return {f"{folder}/{n}": records(f"{folder}/{n}") for n in names}


def prompts(log):
    """The judges' questions, without the random fence."""
    asked = [r for r in of_type(log, "call_start") if r["purpose"] == "judge"]
    return [re.sub(r"\b[0-9a-f]{16}\b", "FENCE", prompt_text(log, r)) for r in asked]


def fits_the_schema(box, paths):
    for path in paths:
        for line in open(path, "rb"):
            box.segue("check", SCHEMA, "-", stdin=line, status=0)


def same_question(box):
    """Without other words the judge of then is asked the very question of then."""
    ids, before = made(box, 2)
    script = scenario(box, "again.json", judged(3))
    told, total = rejudge(box, "--scenario", script, "--yes")
    expect(sorted(t["recorded"] for t in told) == [2, 3] and [t["rule"] for t in told] == [3, 3], told)
    expect(total["judgments"] == 2 and total["same"] == 1 and total["other"] == 1, total)
    logs = results(box)
    for path, log in logs.items():
        again = log[0]["config"]["rejudges"]
        parent = records(f"{box.logs}/{again['session']}.ndjson")
        expect(prompts(log) == prompts(parent), prompts(log), prompts(parent))
        expect("ended with exit status 3" in prompts(log)[0], prompts(log)[0])
        last = [r for r in parent if r["type"] == "judgment" and r["turn"] == again["turn"]][0]
        expect(log[1]["parent"]["hash"] == parent[last["seq"] - 2]["hash"], "it names what it was made of")
        expect(of_type(log, "judgment")[0]["turn"] == again["turn"] == 2)
    fits_the_schema(box, logs)
    expect(before == {p: open(p, "rb").read() for p in box.log_paths()}, "a log was changed")
    expect(box.segue("verify", box.logs + "/rejudged").returncode == 0)
    told, total = rejudge(box, "--scenario", script)  # nothing is left: nobody has to agree
    expect(told == [] and total["same"] + total["other"] == 2 and total["calls"] == 0, told, total)


def other_ways(box):
    made(box, 3)
    tag = scenario(box, "tag.json", {"stage": "phase3_tag", "text": "[LOOK:3]", "cost": 0.5})
    told, total = rejudge(box, "--scenario", tag, "--stages", "phase3_tag", "--yes", "--as", "tags")
    expect(all(t["method"] == "phase3_tag" and t["rule"] == 3 for t in told) and len(told) == 3, told)
    expect(abs(total["cost_usd"] - 1.5) < 1e-9 and total["calls"] == 3, total)
    panel = scenario(box, "panel.json", judged(2), judged(3), judged(2))
    told, _ = rejudge(box, "--scenario", panel, "--stages", "structured_output", "--panel",
                      "script,script,script", "--yes")
    expect([t["rule"] for t in told] == [2, 2, 2], told)
    box_prompts = box.dir + "/prompts/en"
    os.makedirs(box_prompts)
    with open(box_prompts + "/judge_ai.md", "w") as f:
        f.write("Shortly: {report}\n{criteria}")
    ai = scenario(box, "ai.json", {"stage": "ai_judge", "contains": "Shortly: I looked",
                                   "text": '{"reason": "r", "matched_index": 2}'})
    told, _ = rejudge(box, "--scenario", ai, "--stages", "ai_judge", "--prompts", box.dir + "/prompts", "--yes",
                      "--as", "short")
    expect([t["rule"] for t in told] == [2, 2, 2], told)
    down = scenario(box, "down.json", {"error": {"class": "auth", "message": "no key"}, "times": 0})
    told, total = rejudge(box, "--scenario", down, "--as", "down", "--yes", status=1)
    expect(total["unreadable"] == 3 and not any(t["readable"] for t in told) and told[0]["why"], told, total)


def orders(box):
    """A judge that takes what stands first flips with the order; one that reads does not."""
    made(box, 2)
    first = scenario(box, "first.json", {"contains": "2. good\n3. bad", "text": '{"reason": "r", "step": 2}'},
                     {"contains": "3. bad\n2. good", "text": '{"reason": "r", "step": 3}'})
    told, total = rejudge(box, "--scenario", first, "--repeat", "2", "--permute", "--yes", "--as", "lazy")
    expect(len(told) == 4 and total["repeated"] == 2 and total["flipped"] == 2, told, total)
    fits_the_schema(box, list(results(box))[:2])
    steady = scenario(box, "steady.json", judged(2))
    _, total = rejudge(box, "--scenario", steady, "--repeat", "3", "--permute", "--yes", "--as", "steady",
                       "--provider", "script")
    expect(total["repeated"] == 2 and total["flipped"] == 0, total)
    expect(total["family"]["own"] == {"verdicts": 6, "first_rule": 0}, total)


def bounds(box):
    made(box, 6)
    script = scenario(box, "again.json", judged(2, cost=0.5))
    box.segue("rejudge", box.logs, "--scenario", script, status=2, err=(b"--max-cost", b"6 or more calls"))
    done = box.segue("rejudge", box.logs, "--scenario", script, "--dry-run")
    expect(done.returncode == 0 and b"$0.0600 then (6 more needed no judge)" in done.stdout, done.stdout)
    expect(not os.path.exists(box.logs + "/rejudged"), "nothing was asked for yet")
    told, total = rejudge(box, "--scenario", script, "--max-calls", "2", "-c", "1", status=1)
    expect(len(told) == 2 and total["open"] == 4 and total["bounded"], told, total)
    told, total = rejudge(box, "--scenario", script, "--max-cost", "0.9", "-c", "1", status=1)
    expect(len(told) == 2 and total["open"] == 2 and abs(total["cost_usd"] - 1) < 1e-9, told, total)
    told, total = rejudge(box, "--scenario", script, "--yes")
    expect(len(told) == 2 and total["open"] == 0 and not total["bounded"] and len(results(box)) == 6, total)
    told, total = rejudge(box, "--scenario", script, "--max-calls", "3", "-c", "4", "--as", "at once", status=1)
    expect(total["calls"] == 3 and total["open"] == 3 and total["bounded"], "more than allowed", total)
    other = scenario(box, "other.json", judged(3))
    box.segue("rejudge", box.logs, "--scenario", other, "--yes", status=2, err=b"--as")


LOOP = """
name: loop
initial_movement: work
max_movements: 100
provider: script
judge: {stages: [structured_output]}
movements:
  - name: work
    instruction: work on it
    rules: [{condition: done, next: COMPLETE}, {condition: not done, next: work}]
"""


def a_long_log(box):
    """Its turns are read as they are judged: 100 texts of a megabyte need no 100 megabytes, and no log is read on
    after a limit."""
    text = "a line of words that are not few\n" * 30000
    work = scenario(box, "work.json", {"purpose": "execute", "text": text, "times": 0}, judged(2, times=99), judged(1))
    box.segue("run", box.file("loop.yaml", LOOP), "--scenario", work, "--logs", box.logs, "--cwd", box.cwd, status=0)
    script = scenario(box, "again.json", judged(2, times=0))
    for words, verdicts in ((["--max-calls", "2"], 2), (["--yes", "--concurrency", "1"], 100)):
        process = box.start("rejudge", box.logs, "--scenario", script, *words, "--json")
        out = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        total = json.loads(out.splitlines()[-1])
        expect(total["same"] + total["other"] == verdicts, total)
        expect(SANITIZED or used.ru_maxrss < 64 << 10, f"{used.ru_maxrss} KiB of memory")
    expect(total["same"] == 99 and total["other"] == 1, total)
    turns = sorted(log[0]["config"]["rejudges"]["turn"] for log in results(box).values())
    expect(turns == list(range(1, 101)), "a turn was judged twice, or not", turns)


ONE = """
name: one
initial_movement: work
judge: {provider: script, stages: [phase3_tag]}
movements:
  - name: work
    instruction: work on it
    rules: [{condition: done, next: COMPLETE}, {condition: not done, next: ABORT}]
"""
WORKERS = [("anthropic", "claude-opus-4-5"), ("anthropic", "claude-sonnet-4-5"), ("openrouter", "anthropic/claude-opus-4.5"),
           ("openai", "gpt-6.1-sol"), ("openai-chat", "o5-mini"), ("openrouter", "meta-llama/Llama-4"),
           ("openrouter", "openai/gpt-6.1")]


def families():
    """How often two judges choose the first rule of their own family's work, as the server counts it itself: a family
    has programs, APIs and resellers."""
    given = []

    def answer(scenario, request):
        body = request["body"] if isinstance(request["body"], dict) else json.loads(request["body"])
        asked = json.dumps(body)
        made = [m for m in WORKERS if f"made by {m[1]} " in asked]
        if "The tags:" in asked:
            judge = "claude" if "claude" in body["model"] else "gpt"
            (worker,) = made
            rule = 1 + sum(map(ord, judge + worker[0] + worker[1])) % 2
            given.append((judge, worker, rule))
            return stream(dialect_of(request["path"]), f"[WORK:{rule}]")
        return stream(dialect_of(request["path"]), f"I am done; made by {body['model']} here")

    with closing(FakeApi(answer)) as server:
        with Box() as box:
            bases = {"anthropic": "", "openai": "/v1", "openai-chat": "/v1", "openrouter": "/v1"}
            box.config({"providers": {p: {"base_url": server.url("x") + end} for p, end in bases.items()}})
            keys = {"ANTHROPIC_API_KEY": "sk-test-1", "OPENAI_API_KEY": "sk-test-2", "OPENROUTER_API_KEY": "sk-test-3"}
            flow = box.file("one.yaml", ONE)
            for provider, model in WORKERS:
                script = scenario(box, "work.json", {"purpose": "judge", "text": "[WORK:1]"})
                box.segue("run", flow, "--scenario", script, "--provider", f"work={provider}", "--model", model,
                          "--logs", box.logs, "--cwd", box.cwd, env=keys, status=0)
            for judge, kind in ((("anthropic", "claude-opus-4-5"), "claude"), (("openrouter", "openai/gpt-6.1"), "gpt")):
                del given[:]
                told, total = rejudge(box, "--provider", judge[0], "--model", judge[1], "--yes", env=keys)
                expect(len(told) == len(given) == len(WORKERS), judge, total, given)
                relatives = {"claude": WORKERS[:3], "gpt": [WORKERS[3], WORKERS[4], WORKERS[6]]}[kind]
                for whose in ("own", "other"):
                    mine = [g for g in given if (g[1] in relatives) == (whose == "own")]
                    expect(all(g[0] == kind for g in mine), mine)
                    expect(total["family"][whose] == {"verdicts": len(mine), "first_rule": sum(g[2] == 1 for g in mine)},
                           kind, whose, total["family"], mine)
            same = scenario(box, "again.json", {"purpose": "judge", "text": "[WORK:1]", "times": 0})
            _, total = rejudge(box, "--scenario", same, "--yes")  # the judge of then, a script, is of no worker's family
            expect(total["family"]["own"]["verdicts"] == 0 and total["family"]["other"]["verdicts"] == len(WORKERS), total)


def told_at_once(box):
    """Who reads along has each verdict before the next question is answered."""
    made(box, 2)
    slow = scenario(box, "slow.json", judged(2), judged(2, delay_ms=600000))
    process = box.start("rejudge", box.logs, "--scenario", slow, "--yes", "--json", "-c", "1")
    first = json.loads(process.stdout.readline())
    expect(first["rule"] == 2 and process.poll() is None, first)
    process.kill()
    process.wait()


def mistakes(box):
    made(box, 1)
    for words, said in [(("--repeat", "0"), "from 1 to"), (("--panel", "script"), "two to"),
                        (("--panel", "script,nobody"), "nobody"), (("--agree", "2"), "needs --panel"),
                        (("--stages", "look"), "not a stage"), (("--stages", "ai_judge,ai_judge"), "twice"),
                        (("--provider", "nobody"), "nobody"), (("--provider", "look=script"), "one judge"),
                        (("--max-cost", "-1"), "dollars"), (("--max-cost", "1x"), "dollars"),
                        (("--max-calls", "0"), "from 1"), (("--as", ""), "1 to 100"),
                        (("--prompts", "/nowhere"), "not a folder"), (("--permute",), "--repeat"),
                        (("--prompts", box.cwd), "no template"), (("--language", "xx"), "en or ja"),
                        (("--since", "soon"), "how long ago"), (("--min-stages", "x"), "from 1"),
                        (("--concurrency", "1000"), "from 1 to 64"), ((box.dir + "/none.ndjson",), "none")]:
        box.segue("rejudge", box.logs, *words, "--yes", status=2, err=said)
    box.segue("rejudge", box.logs, "--provider", "ollama", "--yes", status=2, err=b"needs a model")
    box.segue("rejudge", box.logs, "--movement", "nix", "--yes", status=0, out=b"no judgment")
    with open(box.log_paths()[0], "r+b") as f:  # somebody changes the log
        text = f.read().replace(b"all is fine", b"all is fone")
        f.seek(0)
        f.write(text)
    box.segue("rejudge", box.logs, "--yes", "--dry-run", status=0, out=b"1 log is not intact")


def nothing_is_left(box, name):
    """Every session of this name has its end, and what a judge was paid for was not asked for again."""
    logs = [log for log in results(box).values() if log and log[0]["config"]["rejudges"]["name"] == name]
    answers = {}
    for log in logs:
        expect(log[-1]["type"] == "session_end", name, log[-1])
        expect(log[-1]["outcome"] in ("complete", "cancelled"), log[-1])
        turn = log[0]["config"]["rejudges"]["session"]
        asked = {r["call"] for r in of_type(log, "call_start") if r["purpose"] == "judge"}
        answers[turn] = answers.get(turn, 0) + sum(r["call"] in asked for r in of_type(log, "call_end"))
    expect(set(answers.values()) == {1}, name, answers)


def left_ones(box):
    """What was left unfinished is told, goes on by the same command only, and never runs its stand-in."""
    made(box, 2)
    script = scenario(box, "again.json", judged(2))
    words = ("--scenario", script, "--as", "x", "--yes")

    def left(least):
        """One session of which so many records are there, and no more."""
        step = 1
        while True:
            shutil.rmtree(box.logs + "/rejudged", ignore_errors=True)
            box.segue("rejudge", box.logs, *words, "-c", "1", env={"SEGUE_FAULT": f"exit:{step}"}, status=99)
            logs = results(box) if os.path.exists(box.logs + "/rejudged") else {}
            log = list(logs.values())[0] if logs else []
            if len(log) >= least and log[-1]["type"] != "session_end":
                return list(logs)[0]
            step += 1

    path = left(2)
    os.mkdir(box.dir + "/bin")
    program = box.file("bin/given", "#!/bin/sh\ntouch " + box.dir + "/ran\n")
    os.chmod(program, 0o755)
    path_of = {"PATH": os.path.dirname(program) + ":" + os.environ["PATH"]}
    done = box.segue("resume", path, env=path_of)
    expect(done.returncode != 0 and b"judge it again" in done.stderr, done.returncode, done.stderr)
    expect(not os.path.exists(box.dir + "/ran"), "a program of the name of the stand-in was run")
    box.segue("rejudge", box.logs, *words, "--dry-run", out=b"1 unfinished to continue")
    other = scenario(box, "other.json", judged(3))
    done = box.segue("rejudge", box.logs, "--scenario", other, "--as", "x", "--dry-run")
    expect(b"unfinished" not in done.stdout, "judged in another way", done.stdout)
    _, total = rejudge(box, *words)
    expect(records(path)[-1].get("outcome") == "cancelled" and total["open"] == 0, records(path)[-1], total)
    nothing_is_left(box, "x")
    path = left(7)
    expect(of_type(records(path), "call_end"), "its text is there")
    _, total = rejudge(box, *words)
    expect(records(path)[-1].get("outcome") == "complete" and total["same"] + total["other"] == 2, total)
    expect(box.segue("verify", path).returncode == 0, path)
    nothing_is_left(box, "x")


def ended_everywhere(box):
    """Ended at each step, then given again until it is done: each turn has its verdict once."""
    _, before = made(box, 2)
    script = scenario(box, "again.json", judged(2))
    step = 1
    while True:
        env = {"SEGUE_FAULT": f"exit:{step}"}
        name = f"at {step}"
        done = box.segue("rejudge", box.logs, "--scenario", script, "--as", name, "--yes", env=env)
        if done.returncode == 0:
            break
        expect(done.returncode == 99, step, done.returncode, done.stderr)
        _, total = rejudge(box, "--scenario", script, "--as", name, "--yes")
        expect(total["same"] + total["other"] == 2 and total["open"] == 0, step, total)
        nothing_is_left(box, name)
        step += 1
    expect(step > 10, "only", step, "fault points: is SEGUE_FAULTS compiled in?")
    done = [log for log in results(box).values() if of_type(log, "judgment")]
    expect(len({(log[0]["config"]["rejudges"]["name"], log[0]["config"]["rejudges"]["session"]) for log in done})
           == 2 * step, len(done), step)
    expect(before == {p: open(p, "rb").read() for p in box.log_paths()}, "a log was changed")
    text = box.segue("verify", box.logs + "/rejudged").stdout.decode()
    expect("DAMAGED" not in text and "tampered" not in text, text[-300:])


def agreed(box):
    made(box, 33)
    script = scenario(box, "again.json", judged(2))
    rejudge(box, "--scenario", script, "--yes", "--as", "small")
    pairs = [json.loads(line) for line in box.segue("agree", box.logs, "--json").stdout.splitlines()]
    expect(len(pairs) == 1, pairs)
    pair = pairs[0]
    expect((pair["first"], pair["second"], pair["turns"]) == ("rejudge small", "verdict", 33), pair)
    cells = {(m["first"], m["second"]): m["weight"] for m in pair["matrix"]}
    expect(cells == {(2, 2): 22, (2, 3): 11} and abs(pair["agreement"][0] - 22 / 33) < 1e-12, pair)


def unreadable_is_no_verdict(box):
    """A judge whose answers cannot be used has said nothing, and not that no rule holds."""
    made(box, 3)
    prose = scenario(box, "prose.json", {"text": "It looks nice to me.", "times": 0})
    told, total = rejudge(box, "--scenario", prose, "--yes", "--as", "prose", status=1)
    expect([(t["rule"], t["readable"]) for t in told] == [(None, False)] * 3 and told[0]["why"], told)
    expect((total["other"], total["unreadable"], total["open"]) == (0, 3, 0), total)
    told, total = rejudge(box, "--scenario", prose, "--yes", "--as", "prose", status=1)
    expect(told == [] and total["calls"] == 0 and total["unreadable"] == 3, "they are not asked again", total)
    none = scenario(box, "none.json", judged(0))
    told, total = rejudge(box, "--scenario", none, "--yes", "--as", "none")
    expect([(t["rule"], t["readable"]) for t in told] == [(None, True)] * 3 and total["other"] == 3, told, total)
    pairs = [json.loads(line) for line in box.segue("agree", box.logs, "--json").stdout.splitlines()]
    expect([(p["first"], p["second"]) for p in pairs] == [("rejudge none", "verdict")], pairs)


def an_unreadable_recording_is_no_verdict(box):
    prose = scenario(box, "prose.json", {"text": "It looks nice to me.", "times": 0})
    box.segue("run", box.file("two.yaml", FLOW), "--scenario", prose, "--logs", box.logs, "--cwd", box.cwd, status=4)
    rejudge(box, "--scenario", scenario(box, "two.json", judged(2)), "--yes", "--as", "two")
    done = box.segue("agree", box.logs, "--json")
    expect(done.stdout == b"" and b"1 turn has no verdict" in done.stderr, done)


def names_and_raters(box):
    """The same judge with the rules in other orders is another rater, without a name of its own."""
    made(box, 2)
    script = scenario(box, "again.json", judged(2))
    _, once = rejudge(box, "--scenario", script, "--provider", "script", "--yes")
    _, total = rejudge(box, "--scenario", script, "--provider", "script", "--repeat", "2", "--permute", "--yes")
    expect((once["name"], total["name"]) == ("script", "script, permuted"), once, total)

    def pairs(*words):
        done = box.segue("agree", box.logs, "--json", *words, status=0)
        return [(p["first"], p["second"]) for p in map(json.loads, done.stdout.splitlines())]
    expect(len(pairs()) == 6, pairs())
    expect(len(pairs("--rater", "verdict")) == 3, pairs("--rater", "verdict"))
    expect(pairs("--rater", "rejudge script") == [("rejudge script", "rejudge script, permuted"),
                                                  ("rejudge script", "rejudge script, permuted #2"),
                                                  ("rejudge script", "verdict")], pairs("--rater", "rejudge script"))
    box.segue("agree", box.logs, "--rater", "ann", status=0, out=b"no pair of these raters")
    for empty in (",", "ann,", ""):
        box.segue("agree", box.logs, "--rater", empty, status=2, err=b"--rater: an empty word is no name")


def a_long_wait_is_told(box):
    made(box, 2)
    limited = scenario(box, "limited.json", {"error": {"class": "rate_limit", "message": "come back later",
                                                       "retry_after_ms": 3600000}, "times": 0})
    process = box.start("rejudge", box.logs, "--scenario", limited, "--yes")
    line = b""
    while b"waiting" not in line:
        line = process.stderr.readline()
        expect(line, "it ended without a word")
    expect(b"waiting 3600 s: come back later" in line, line)
    process.send_signal(signal.SIGINT)
    out, rest = process.communicate(timeout=WAIT_S)
    expect(process.returncode == 130 and b"interrupted: run the same command again to continue" in out, process.returncode, out)
    expect(b"waiting" not in rest, "two waits that end together are told twice", rest)


if __name__ == "__main__":
    sys.exit(main([same_question, other_ways, orders, bounds, told_at_once, a_long_log, families, mistakes, agreed, ended_everywhere, left_ones,
                   unreadable_is_no_verdict, an_unreadable_recording_is_no_verdict, names_and_raters,
                   a_long_wait_is_told]))
