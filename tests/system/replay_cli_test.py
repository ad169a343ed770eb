#!/usr/bin/env python3
"""segue replay: recorded replies through today's code, on logs as they were written and on logs
whose replies say something else than the verdict beside them."""
import glob
import hashlib
import json
import os
import sys

from support import Box, every_way, expect, main, of_type, records

OLD = os.path.dirname(os.path.abspath(__file__)) + "/../data/logs"
made = {}


def chained(path, lines, change):
    """Writes records with right hashes, each as `change` makes it (or leaves it)."""
    before = "0" * 64
    with open(path, "wb") as f:
        for record in lines:
            record = dict(change(json.loads(json.dumps(record))))
            record.pop("hash")
            body = json.dumps(record, ensure_ascii=False, separators=(",", ":"))[:-1].encode()
            before = hashlib.sha256(before.encode() + body).hexdigest()
            f.write(body + b',"hash":"' + before.encode() + b'"}\n')


def run(box, *words, status=0):
    return box.segue("replay", *words, status=status).stdout.decode()


def told(text):
    lines = [json.loads(line) for line in text.splitlines()]
    return lines[:-1], lines[-1]


def bed():
    if not made:
        box = made["box"] = Box()
        box.segue("run", *every_way(box), status=0)
        made["log"] = records(box.log_paths()[0])
    return made["box"], made["log"]


def call_of(log, movement, stage):
    """The last call of a stage in a movement."""
    turns = {r["turn"] for r in of_type(log, "turn_start") if r["movement"] == movement}
    return [(r["turn"], r["call"]) for r in of_type(log, "call_start")
            if r["turn"] in turns and r.get("stage") == stage][-1]


def beside_blobs(box):
    """A folder with the blobs that the log refers to."""
    folder = box.dir + "/changed"
    if not os.path.exists(folder):
        os.mkdir(folder)
        os.symlink(box.logs + "/blobs", folder + "/blobs")
    return folder


def changed(box, log, movement, stage, text):
    """The log with another text for that reply; the verdicts stay as they are."""
    turn, call = call_of(log, movement, stage)

    def change(record):
        if record["type"] == "call_end" and (record["turn"], record["call"]) == (turn, call):
            record.pop("structured", None)
            record["text"] = text
        return record

    beside_blobs(box)
    path = f"{box.dir}/changed/{log[0]['session']}.ndjson"
    chained(path, log, change)
    return path, turn


def same():
    """What was just judged, in every way, comes out the same."""
    box, log = bed()
    turns, sum_ = told(run(box, box.logs, "--check", "--json"))
    judged = of_type(log, "judgment")
    expect(sum_["judgments"] == len(judged) == sum_["replay"]["same"], sum_)
    for t, j in zip(turns, judged):
        expect((t["turn"], t["movement"]) == (j["turn"], j["movement"]), t)
        expect(t["today"] == t["recorded"] == {"rule": j["rule"], "method": j["method"]}, t)
    expect(f"{len(judged)} as recorded" in run(box, box.logs))


def another_rule():
    box, log = bed()
    path, turn = changed(box, log, "mend", "structured_output", '{"reason": "no", "step": 1}')
    turns, sum_ = told(run(box, path, "--json", "--check", status=1))
    expect(sum_["replay"]["rule"] == 1 and sum_["replay"]["same"] == sum_["judgments"] - 1, sum_)
    odd = [t for t in turns if t["replay"] == "rule"][0]
    expect(odd["turn"] == turn and odd["recorded"]["rule"] == 2 and odd["today"]["rule"] == 1, odd)
    text = run(box, path)  # without --check it only tells
    expect(f"turn {turn}, mend: recorded rule 2 by structured_output; today rule 1" in text, text)


def no_rule():
    box, log = bed()
    path, _ = changed(box, log, "weigh", "ai_judge", '{"reason": "-", "matched_index": 0}')
    turns, _ = told(run(box, path, "--json", "--check", status=1))
    odd = [t for t in turns if t["replay"] != "same"][0]
    expect(odd["replay"] == "rule" and odd["today"] == {"rule": None, "method": None} and odd["why"], odd)


def would_ask():
    box, log = bed()
    path, turn = changed(box, log, "write", "structured_output", "I cannot say.")
    turns, sum_ = told(run(box, path, "--json", "--check", status=1))
    odd = [t for t in turns if t["replay"] == "asks"]
    expect(len(odd) == 1 and odd[0]["turn"] == turn, odd)
    expect(odd[0]["today"] == {"rule": None, "method": "phase3_tag"} and sum_["replay"]["asks"] == 1, odd)


def another_method():
    """A tag stage that was no match now decides, with the same rule: told, and no failure."""
    box, log = bed()
    path, turn = changed(box, log, "weigh", "phase3_tag", "[WEIGH:2]")
    turns, sum_ = told(run(box, path, "--json", "--check"))
    odd = [t for t in turns if t["replay"] != "same"]
    expect(len(odd) == 1 and odd[0]["replay"] == "method" and odd[0]["turn"] == turn, odd)
    expect(odd[0]["today"] == {"rule": 2, "method": "phase3_tag"}, odd)


def old_logs(box):
    """Logs of every version that was released."""
    for folder in sorted(glob.glob(OLD + "/*/")):
        logs = sorted(glob.glob(folder + "*.ndjson"))
        _, sum_ = told(run(box, *logs, "--json", "--check"))
        expect(sum_["sessions"] == len(logs) and sum_["judgments"] > 0, sum_)


def not_sound():
    box, log = bed()
    data = open(box.log_paths()[0], "rb").read()
    path = box.file("bad.ndjson", data.replace(b'"plan it"', b'"plan it!"', 1).replace(b"the plan", b"a plan", 1))
    done = box.segue("replay", path, "--json")
    expect(done.returncode == 1 and json.loads(done.stdout.splitlines()[-1])["unsound"] == 1, done.stdout)
    expect(b" in 1 session (1 not sound): " in box.segue("replay", path).stdout)
    torn = beside_blobs(box) + "/torn.ndjson"
    with open(torn, "wb") as f:
        f.write(data[:-20])
    run(box, torn, "--check")
    expect(box.segue("replay", box.dir + "/none.ndjson").returncode == 2)
    expect(box.segue("replay").returncode == 2)


def panel(box):
    """Votes are replayed each by itself."""
    flow = box.file("panel.yaml", """
name: panel
initial_movement: look
provider: script
judge: {panel: [script, script, script], agree: 2, stages: [structured_output]}
movements:
  - name: look
    instruction: look at it
    rules:
      - {condition: good, next: COMPLETE}
      - {condition: bad, next: ABORT}
""")
    scenario = box.file("panel.json", json.dumps({"replies": [
        {"purpose": "execute", "text": "looked"},
        {"purpose": "judge", "text": '{"reason": "a", "step": 1}'},
        {"purpose": "judge", "text": '{"reason": "b", "step": 2}'},
        {"purpose": "judge", "text": '{"reason": "c", "step": 1}'}]}))
    box.segue("run", flow, "--scenario", scenario, "--logs", box.logs, "--cwd", box.cwd, status=0)
    turns, sum_ = told(run(box, box.logs, "--json", "--check"))
    expect(sum_["replay"]["same"] == 1 and turns[0]["today"]["rule"] == 1, turns)


if __name__ == "__main__":
    sys.exit(main([same, another_rule, no_rule, would_ask, another_method, old_logs, not_sound, panel]))
