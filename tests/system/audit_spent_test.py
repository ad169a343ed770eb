#!/usr/bin/env python3
"""segue audit counts each call once: over sessions that were really played (every stage, groups, panels,
values, retries, reasks, resumed, forked and left undone), what it counts is what the sessions' own last
`spent` says, wherever a figure of it is shown."""
import contextlib
import csv
import glob
import io
import json
import os
import random
import re
import sys

from daemon import DaemonBox
from fake_api import FakeApi
from support import Box, chance, expect, flow, main, of_type, records, sample, verified

SEED = chance()
PLAYED = 32 if sample.ALL else 12
MODELS = ("structured_output", "phase3_tag", "ai_judge")
FIGURES = ("calls", "duration_ms", "input", "output", "unpriced")
KEYS = ["method", "match_method", "movement", "workflow", "folder", "user", "provider", "model", "worker", "worker_model", "schema",
        "outcome", "rule", "day", "stage", "reason", "to", "workflow,movement,day", "stage,provider,reason"]

# A judge's reply to structured_output that holds a tag alone is read by phase3_tag as well.
ONE = """
name: one
provider: script
movements:
  - name: rev
    instruction: Look at it.
    rules: [{condition: good, next: COMPLETE}, {condition: bad, next: ABORT}]
"""
ROUNDS = flow("audit_spent_rounds")
PANEL = ROUNDS.replace("name: rounds", "name: panel").replace(
    "max_movements: 12", "max_movements: 8\njudge: {panel: [script, script, script], agree: 2}")
GROUP = flow("audit_spent_group")


def usage(rng):
    """What a reply reports: nothing, tokens alone, or tokens and money."""
    if rng.random() < 0.2:
        return {}
    told = {"usage": {"input": rng.randrange(1, 90000), "output": rng.randrange(1, 3000)}}
    return {**told, **({"cost": rng.randrange(1, 10**6) / 10**7} if rng.random() < 0.8 else {})}


def judged(rng, name):
    """A judge's words: JSON, a tag instead, both, neither, or another rule than there is."""
    rule = rng.choice([1, 1, 2])
    return rng.choice([json.dumps({"reason": "r", "step": rule}), json.dumps({"reason": "r", "matched_index": rule}),
                       f"[{name.upper()}:{rule}]", f"[{name.upper()}:{rule}]", f"I think so.\n[{name.upper()}:{rule}]",
                       "I cannot say.", "", '{"reason": "r", "step": 9}', '{"reason": "r", "step": 0}',
                       f"[{name.upper()}:7]", '{"reason": "r", "step"'])


def reply(rng, movement, **more):
    name = movement.rpartition(".")[2]
    if rng.random() < 0.08:
        return {"movement": movement, **more,
                "error": {"class": rng.choice(["overloaded", "network", "timeout"]), "message": "no", "retry_after_ms": 1}}
    text = f"did {name}" + (f"\n[{name.upper()}:{rng.choice([1, 2])}]" if rng.random() < 0.3 else "")
    if movement == "grade":
        text = rng.choice(['{"a": 1}', '{"a": 7}', "no", '{"a": 2,}'])
    if "stage" in more or more.get("purpose") == "judge":
        text = judged(rng, name)
    return {"movement": movement, "text": text, "delay_ms": rng.choice([0, 0, 1, 3]), **usage(rng), **more}


def replies(rng, flow):
    found = []
    for movement in re.findall(r"name: ([a-z]+)", flow)[1:]:
        group = {"sec": "look.", "api": "look.", "it": "parts."}.get(movement, "")
        for _ in range(40):
            for more in ({"purpose": "execute"}, {"purpose": "reask"}, {"stage": "structured_output"},
                         {"stage": "structured_output"}, {"stage": "phase3_tag"}, {"stage": "ai_judge"}):
                found.append(reply(rng, group + movement, **more))
    return found


def files(box, name, flow, replies_of):
    return [box.file(f"{name}.yaml", flow), "--scenario",
            box.file(f"{name}.json", json.dumps({"replies": replies_of})), "--cwd", box.cwd, "--logs", box.logs, "--task", "t"]


def play(box, rng, name, flow):
    """Plays a session to whatever end it comes to; the words that go on with it."""
    words = files(box, name, flow, replies(rng, flow))
    box.segue("run", *words)
    return words[1:3]


def bed(box, rng):
    """Sessions of each kind: some are resumed, as they stopped or by a person's verdict, some forked."""
    for i in range(PLAYED):
        before = set(box.log_paths())
        more = play(box, rng, f"f{i}", [ONE, ROUNDS, PANEL, GROUP][i % 4])
        (path,) = set(box.log_paths()) - before
        for _ in range(rng.randrange(4)):
            last = records(path)[-1]
            if last["type"] != "session_stop":
                break
            rule = ["--rule", "1"] if last["reason"] == "rule_no_match" and rng.random() < 0.6 else []
            box.segue("resume", path, *more, "--max-movements", "25", *rule)
        entered = [r["movement"] for r in of_type(records(path), "turn_start") if "parent_turn" not in r]
        if len(entered) > 1 and i % 3 == 1:
            box.segue("fork", path, "--from", entered[-1], *more, "--logs", box.logs, "--cwd", box.cwd)
    return box.log_paths()


def spent(path):
    return next(r for r in reversed(records(path)) if "spent" in r)["spent"]


def cli(box, *words):
    done = box.segue("audit", *words, "--json", status=0)
    return json.loads(done.stdout), done.stderr.decode()


def total(*uses):
    return {k: sum(u.get(k, 0) for u in uses) for k in FIGURES} | {
        "nano": sum(round(u.get("cost_usd", 0) * 1e9) for u in uses)}


def counted(path):
    """Judging and work of a log by its calls, and what no judge would have used without doubt."""
    stage, uses = {}, {True: [], False: []}
    by_call = {}
    for r in records(path):
        if r["type"] == "call_start":
            stage[r["turn"], r["call"]] = "stage" in r
        if r["type"] == "call_end":
            tokens = r.get("usage")
            use = {"calls": 1, "duration_ms": r["duration_ms"], **(tokens or {}),
                   "unpriced": int(tokens is not None and "cost_usd" not in tokens)}
            uses[stage[r["turn"], r["call"]]].append(use)
            by_call.setdefault((r["turn"], r["call"]), []).append(use)
    doubt = []
    for j in of_type(records(path), "judgment"):
        words = [s for s in j["stages"] if s["stage"] not in ("when", "aggregate", "auto_select")]
        if not any(s["outcome"] != "matched" for s in words if "vote" not in s):
            continue
        calls = [s["calls"] for s in words]
        sure = {c[0] for s, c in zip(words, calls) if s["stage"] == words[0]["stage"] and c}
        doubt += [u for n in {n for c in calls for n in c} - sure for u in by_call.pop((j["turn"], n), [])]
    return total(*uses[True]), total(*uses[False]), total(*doubt)


def plus(*sums):
    return {k: sum(s[k] for s in sums) for k in sums[0]}


def same(got, want, *what):
    expect(got == want, "seed", SEED, *what, got, want)


def each_session():
    """A session's judging and work are its `spent`, and so for each of its movements."""
    rng = random.Random(SEED)
    with DaemonBox() as box:
        paths = bed(box, rng)
        verified(box, *paths)
        logs = [records(p) for p in paths]
        shares = sum("from the structured_output reply" in json.dumps(of_type(log, "judgment")) for log in logs)
        forks = sum(bool(of_type(log, "carried")) for log in logs)
        resumed = sum(bool(of_type(log, "session_resume")) for log in logs)
        expect(not sample.ALL or (shares and forks and resumed), "seed", SEED, "plays too little:", shares, forks, resumed)
        for path in paths:
            totals = cli(box, path)[0]["totals"]
            judging, work, doubt = counted(path)
            same(total(totals["use"]), judging, path, "judging")
            same(total(totals["work"]), work, path, "work")
            same(total(totals["unsure_use"]), doubt, path, "doubt")
            same(plus(judging, work), total(spent(path)), path, "spent")
            movements = {g["movement"]: total(g["use"], g["work"]) for g in cli(box, path, "--by", "movement")[0]["groups"]}
            same(movements, {k: total(v) for k, v in spent(path)["movements"].items() if v["calls"]} | {
                k: v for k, v in movements.items() if not v["calls"]}, path, "movements")
            said = box.segue("audit", path).stdout.decode()
            if "all judging" in said:
                n = int(re.search(r"all judging ([\d,]+) call", said)[1].replace(",", ""))
                same(n, judging["calls"], path, said)
            shown(box, path)
        whole(box, paths)
        elsewhere(box, paths)
        return f"{len(paths)} sessions: {shares} with a shared reply, {forks} forked, {resumed} resumed; seed {SEED}"


def whole(box, paths):
    """The same of all of them, by each key, as CSV, from kept counts and from the daemon's reader."""
    sums = [counted(p) for p in paths]
    judging, work, doubt = (plus(*column) for column in zip(*sums))
    same(plus(judging, work), plus(*(total(spent(p)) for p in paths)), "all")
    for key in KEYS:
        for words in ([], ["--kept"], ["--kept"]) if "," not in key and key != "schema" else ([],):
            got, said = cli(box, box.logs, "--by", key, *words)
            same(total(got["totals"]["use"]), judging, key, words)
            same(total(*(g["use"] for g in got["groups"])), judging, key, words, "groups")
            same(total(*(g["unsure_use"] for g in got["groups"])), doubt, key, words, "groups")
            if all("work" in g for g in got["groups"]):
                same(total(*(g["work"] for g in got["groups"])), work, key, words, "groups' work")
        text = box.segue("audit", box.logs, "--by", key, "--csv").stdout.decode()
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        for name, of in (("", judging), ("unsure_", doubt)):
            told = {k: sum(int(r[name + k]) for r in rows) for k in ("calls", "duration_ms", "input", "output")}
            told["nano"] = sum(round(float(r[name + "cost_usd"]) * 1e9) for r in rows)
            same(told, {k: v for k, v in of.items() if k != "unpriced"}, key, "csv")
    same(total(*(j["use"] for j in got["totals"]["judges"])), judging, "judges")


def of_judgments(path):
    """The judging of the turns that a judge decided: others stopped while they were judged, or a person decided."""
    log = records(path)
    turns = {j["turn"] for j in of_type(log, "judgment") if any(s["stage"] in MODELS for s in j["stages"])}
    starts = {(r["turn"], r["call"]) for r in of_type(log, "call_start") if "stage" in r and r["turn"] in turns}
    return total(*({"calls": 1, **r.get("usage", {})} for r in of_type(log, "call_end") if (r["turn"], r["call"]) in starts))


def shown(box, path):
    """The session as it is shown: by turns and by movements, and in the list."""
    view = json.loads(box.segue("show", path, "--as", "view", status=0).stdout)
    want = total(spent(path))
    same(total(view["spent"]), want, path, "show")
    parts = {k: v for k, v in want.items() if k != "duration_ms"}  # theirs is the time of the turns
    for name in ("movements", "turns"):
        rows = [r for r in view[name] if not r.get("group") and not r.get("inherited")]
        got = total(*({"unpriced": 0, **r, "cost_usd": r["cost_usd"] or 0} for r in rows))
        same({k: got[k] for k in parts}, parts, path, "show", name)


def elsewhere(box, paths):
    """The same of all in the list, in a report, and where it is judged again; from the daemon as well."""
    want = plus(*(total(spent(p)) for p in paths))
    rows = [json.loads(x) for x in box.segue("ls", "--json", "--logs", box.logs, status=0).stdout.splitlines()]
    same(plus(*(total(r["spent"]) for r in rows)), want, "ls")
    page = box.segue("report", box.logs, "-o", "-", status=0).stdout.decode()
    said = re.search(r"Sessions that ended or stopped used ([\d,]+) tokens, \$([\d.,]+)", page)
    same((int(said[1].replace(",", "")), float(said[2].replace(",", "").rstrip("."))),
         (want["input"] + want["output"], float(f"{want['nano'] / 1e9:.4f}")), "report")
    dry = box.segue("rejudge", box.logs, "--dry-run", status=0).stdout.decode()
    judging, judged = plus(*(counted(p)[0] for p in paths)), plus(*(of_judgments(p) for p in paths))
    said = re.search(r"their judging took ([\d,]+) calls?, \$([\d.,]+) then", dry)
    same((int(said[1].replace(",", "")), float(said[2])), (judged["calls"], float(f"{judged['nano'] / 1e9:.4f}")), dry)
    morning = json.loads(box.segue("report", box.logs, "--json", status=0).stdout)
    same(total(morning["spent"]), want, "report --json")
    same(plus(*(total(r["spent"]) for r in morning["repositories"])), want, "repositories")
    for key in ("folder", "user,status", "workflow"):
        rows = [json.loads(x) for x in box.segue("ls", "--by", key, "--json", "--logs", box.logs, status=0).stdout.splitlines()]
        same(plus(*(total(r["spent"]) for r in rows)), want, "ls --by", key)
    rows = [json.loads(x) for x in box.segue("ls", "--by", "provider", "--json", "--logs", box.logs).stdout.splitlines()]
    of = plus(*(total(r["spent"]["providers"][p]) for r in map(lambda q: {"spent": spent(q)}, paths)
                for p in r["spent"]["providers"]))
    same(plus(*(total(r["spent"]) for r in rows)), of, "ls --by provider")
    box.serve()
    got = box.get("/v1/audit")["totals"]
    same(total(got["use"]), judging, "/v1/audit")
    same(total(got["work"]), plus(*(counted(p)[1] for p in paths)), "/v1/audit work")
    rows = box.get("/v1/sessions?limit=200")["sessions"]
    same(plus(*(total(r["spent"]) for r in rows if r.get("spent"))), want, "/v1/sessions")
    box.end()


HTTP = """
name: http
max_movements: 6
movements:
  - {name: a, instruction: Do the first part., provider: anthropic, model: claude-sonnet-5, rules: [{condition: when(true), next: b}]}
  - {name: b, instruction: Do the second part., provider: openai, model: gpt-5, rules: [{condition: when(true), next: c}]}
  - name: c
    instruction: Do the third part.
    provider: anthropic
    model: claude-opus-5
    judge: {provider: openai, model: gpt-5-mini, fallback: own_tag}
    rules: [{condition: good, next: COMPLETE}, {condition: bad, next: a}]
"""


def recorded(box: DaemonBox):
    """Sessions over HTTP: what the API was asked and told, by its own count and the printed prices, is what each
    figure says; and so with the logs that earlier versions recorded."""
    prices = {}
    for line in box.segue("prices", status=0).stdout.decode().splitlines()[1:]:
        words = line.split(" above ")[0].split()
        prices[words[1]] = {k: float(v) for k, v in zip(words[2::2], words[3::2])}
    with contextlib.closing(FakeApi()) as api:
        box.env["FAKE_KEY"] = "k"
        box.config({"providers": {"anthropic": {"base_url": api.url("ok"), "key_env": "FAKE_KEY"},
                                  "openai": {"base_url": api.url("ok") + "/v1", "key_env": "FAKE_KEY"}}})
        for _ in range(3):
            box.segue("run", box.file("http.yaml", HTTP), "-t", "x", "--cwd", box.cwd, "--logs", box.logs)
        models = [r["body"]["model"] for r in api.requests]
    nano = sum(round((11 * prices[m]["input"] + 7 * prices[m]["output"]) * 1000) for m in models)
    told = {"input": 11 * len(models), "output": 7 * len(models), "unpriced": 0, "nano": nano}
    paths = box.log_paths()
    sums = plus(*(total(spent(p)) for p in paths))
    expect(len(models) > 9, models)
    same({k: sums[k] for k in told}, told, "spent")  # a call may have made several requests
    same(plus(*(plus(*counted(p)[:2]) for p in paths)), sums, "by calls")
    elsewhere(box, paths)
    old = sorted(glob.glob(os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + "/data/logs/*/*.ndjson"))
    for path in old:
        judging, work, _ = counted(path)
        if any("spent" in r for r in records(path)):
            same(plus(judging, work), total(spent(path)), path)
        totals = cli(box, path)[0]["totals"]
        same((total(totals["use"]), total(totals["work"])), (judging, work), path)
    return f"{len(models)} requests, ${nano / 1e9:.6f}, {len(old)} old logs"


def one_reply_two_stages(box: DaemonBox):
    """The judge is asked once: its tag instead of JSON is read by the next stage, and costs once."""
    told = {"usage": {"input": 100, "output": 10}, "cost": 0.5}
    done = box.segue("run", *files(box, "one", ONE, [
        {"purpose": "execute", "text": "done", "cost": 1}, {"stage": "structured_output", "text": "[REV:1]", **told}]))
    expect(done.returncode == 0, done.stderr)
    text = box.segue("audit", box.logs).stdout.decode()
    expect(re.search(r"\) cost 0 calls, 0 tokens, \$0\.0000, \d+ms; all judging 1 call, 110 tokens, \$0\.5000", text), text)
    expect("cannot be read" not in text and "Judges' answers: 1, 0.0 % well-formed" in text, text)
    dry = box.segue("rejudge", box.logs, "--dry-run").stdout.decode()
    expect("their judging took 1 call, $0.5000 then" in dry, dry)
    box.serve()
    got = box.get("/v1/audit")["totals"]
    stages = {s["stage"]: (s["stages"], s["use"]["calls"], s["use"]["cost_usd"]) for s in got["by_stage"]}
    expect(stages == {"structured_output": (1, 1, 0.5), "phase3_tag": (1, 0, 0)}, stages)
    expect((got["use"]["calls"], got["use"]["cost_usd"], got["unsure"]) == (1, 0.5, 1), got)
    page = box.segue("report", box.logs, "-o", "-").stdout.decode()
    expect("at a cost of 0 tokens and $0.00" in page, page[page.find("at a cost"):][:200])
    box.end()


if __name__ == "__main__":
    sys.exit(main([one_reply_two_stages, recorded, each_session]))
