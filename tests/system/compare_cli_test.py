#!/usr/bin/env python3
"""segue compare: two sessions turn by turn, against what their records say."""
import hashlib
import json
import os
import sys

from audit_logs import write
from support import expect, flow, main, of_type, records

FLOW = flow("compare_cli_flow")


def session(box, *turns, status=0):
    """turns: (the agent's text, the judge's reply, or two of them); the path of the log."""
    replies = []
    for text, *judged in turns:
        replies.append({"purpose": "execute", "text": text, "write": {"f.txt": text + "\n"}}
                       if text.startswith("w") else {"purpose": "execute", "text": text})
        replies += [{"purpose": "judge", "text": j} for j in judged]
    scenario = box.file("s.json", json.dumps({"replies": replies}))
    before = set(box.log_paths()) if os.path.isdir(box.logs) else set()
    cwd = f"{box.dir}/cwd{len(before)}"
    os.mkdir(cwd)
    done = box.segue("run", box.file("walk.yaml", FLOW), "--scenario", scenario, "--logs", box.logs, "--cwd", cwd)
    expect(done.returncode == status, done.stdout, done.stderr)
    return (set(box.log_paths()) - before).pop()


def step(n):
    return json.dumps({"reason": "r", "step": n})


def compare(box, a, b):
    return json.loads(box.segue("compare", a, b, "--json", status=0).stdout)


def text(box, a, b):
    return box.segue("compare", a, b).stdout.decode()


def same_way(box):
    a = session(box, ("p", step(1)), ("w1", step(1)), ("r", step(1)))
    b = session(box, ("p", step(1)), ("w1", "?", "[WORK:1]"), ("r!", step(1)))
    got = compare(box, a, b)
    expect(got["parting"] is None and got["same_workflow"], got)
    expect([t["differs"] for t in got["turns"]] == [[], ["method"], ["text"]], got["turns"])
    expect("the same way" in text(box, a, b))
    expect(all(t["differs"] == [] for t in compare(box, a, a)["turns"]))


def they_part(box):
    """A goes straight on; B is sent back once: two turns of B have nobody beside them."""
    a = session(box, ("p", step(1)), ("w1", step(1)), ("r", step(1)))
    b = session(box, ("p", step(1)), ("w2\nmore", step(1)), ("r", step(2)), ("w3", step(1)), ("r", step(1)))
    got = compare(box, a, b)
    pairs = [(t["a"] and t["a"]["turn"], t["b"] and t["b"]["turn"]) for t in got["turns"]]
    expect(len(pairs) == 5 and [p for p in pairs if p[0]] and sorted(p[1] for p in pairs) == [1, 2, 3, 4, 5], pairs)
    expect(sum(p[0] is None for p in pairs) == 2, pairs)
    parting = got["turns"][got["parting"]]
    expect(parting["a"]["turn"] == parting["b"]["turn"] == 3 and "verdict" in parting["differs"], parting)
    expect({"text", "files"} <= set(got["turns"][1]["differs"]), got["turns"][1])
    for side, path in (("a", a), ("b", b)):
        log = records(path)
        ends = of_type(log, "call_end")
        expect(got[side]["turns"] == len(of_type(log, "turn_start")))
        expect(got[side]["duration_ms"] == sum(e["duration_ms"] for e in ends), got[side])
        expect(got[side]["session"] == log[0]["session"] and got[side]["outcome"] == "complete")
        for j in of_type(log, "judgment"):
            turn = [t[side] for t in got["turns"] if t[side] and t[side]["turn"] == j["turn"]][0]
            expect((turn["rule"], turn["next"], turn["method"]) == (j["rule"], j["next"], j["method"]), turn, j)
    out = text(box, a, b)
    expect("they diverge here:" in out and "rule 2 > work, judge's value" in out, out)


def no_verdict(box):
    """Turns that nobody has judged have no verdict that could be the same."""
    whole = session(box, ("p", step(1)), ("w1", step(1)), ("r", step(1)))
    lines = open(whole, "rb").read().splitlines(keepends=True)
    first = [i for i, r in enumerate(records(whole)) if r["type"] == "turn_start"]
    started = box.file("started.ndjson", b"".join(lines[:first[0]]))
    open_ = box.file("open.ndjson", b"".join(lines[:first[0] + 3]))
    later = box.file("later.ndjson", b"".join(lines[:first[1] + 3]))
    for a in (started, open_):
        out = text(box, a, a)
        expect("no turn has a verdict, so there is none to compare" in out and "same" not in out, out)
    out = text(box, later, later)
    expect("every turn that was judged has the same verdict" in out, out)
    expect("every turn has the same verdict" in text(box, whole, whole))
    got = compare(box, later, whole)
    expect(got["parting"] == 1 and got["turns"][1]["differs"][0] == "verdict", got)


def no_rule_is_a_verdict(box):
    """A turn that no rule fits differs from one that is not judged yet."""
    path = session(box, ("p", step(0), "[PLAN:0]"), status=4)
    lines = open(path, "rb").read().splitlines(keepends=True)
    judged = [i for i, r in enumerate(records(path)) if r["type"] == "judgment"][0]
    out = text(box, path, box.file("open.ndjson", b"".join(lines[:judged])))
    expect("they diverge here:" in out and "no rule" in out and "not judged" in out, out)


def many_turns(box):
    """Sums of tokens and cost against the records; every turn of both stands once, in order."""
    a, b = write(box.dir + "/two", 2, 60, seed=4)
    got = compare(box, a, b)
    for side, path in (("a", a), ("b", b)):
        log = [json.loads(line) for line in open(path)]
        usage = [r.get("usage", {}) for r in log if r["type"] == "call_end"]
        expect(got[side]["tokens"] == sum(u.get("input", 0) + u.get("output", 0) for u in usage))
        expect(abs(got[side]["cost_usd"] - sum(u.get("cost_usd", 0) for u in usage)) < 1e-9)
        turns = [t[side]["turn"] for t in got["turns"] if t[side]]
        expect(turns == [r["turn"] for r in log if r["type"] == "turn_start"], turns)
    for t in got["turns"]:
        expect((t["a"] is None or t["b"] is None) == (t["differs"] == ["only_one"]), t)


def not_there(box):
    a = session(box, ("p", step(1)), ("w1", step(1)), ("r", step(1)))
    expect(box.segue("compare", a, box.dir + "/none.ndjson").returncode == 2)
    expect(box.segue("compare", a).returncode == 2)
    bad = box.file("bad.ndjson", open(a, "rb").read().replace(b"planned", b"Planned", 1))
    done = box.segue("compare", a, bad)
    expect(done.returncode != 0 and b"record 1" in done.stderr, done.returncode, done.stderr)


def newer(box):
    """A log of a version that is not known yet is not read as if it were."""
    path = session(box, ("p", step(1)), ("w", step(1)), ("r", step(1)))
    before, out = "0" * 64, b""
    for record in records(path):
        del record["hash"]
        body = json.dumps({**record, "v": 2}, ensure_ascii=False, separators=(",", ":")).encode()[:-1]
        before = hashlib.sha256(before.encode() + body).hexdigest()
        out += body + b',"hash":"' + before.encode() + b'"}\n'
    box.segue("compare", box.file("v2.ndjson", out), path, status=1, err=b"record 1: its version is newer")


def stopped(box):
    """A session that stopped without a rule is told as segue ls tells it."""
    scenario = box.file("s.json", json.dumps({"replies": [
        {"purpose": "execute", "text": "p"}, {"purpose": "judge", "text": step(0), "times": 0}]}))
    done = box.segue("run", box.file("walk.yaml", FLOW), "--scenario", scenario, "--logs", box.logs, "--cwd", box.cwd)
    expect(done.returncode == 4, done)
    (path,) = box.log_paths()
    expect(compare(box, path, path)["a"]["outcome"] == "rule_no_match")
    expect("walk, rule_no_match, 1 turn" in text(box, path, path), text(box, path, path))


def always(said):
    """A fork goes on behind the replies that its parent took: these have no end."""
    return json.dumps({"replies": [{"purpose": "execute", "text": said, "times": 0},
                                   {"purpose": "judge", "text": step(1), "times": 0}]})


def a_fork(box):
    """A real fork: what it took over is its parent's and comes first, then they part."""
    a = session(box, ("p", step(1)), ("w1", step(1)), ("r", step(2)), ("w2", step(1)), ("r", step(1)))
    scenario = box.file("f.json", always("r anew"))
    box.segue("fork", a, "--from", "review#1", "--scenario", scenario, "--logs", box.logs,
              "--cwd", f"{box.dir}/cwd0", status=0)
    b = [p for p in box.log_paths() if p != a][0]
    got = compare(box, a, b)
    expect(got["shared"] == {"parent": "a", "turns": 2, "proven": True}, got["shared"])
    pairs = [(t.get("shared", False), t["a"] and t["a"]["turn"], t["b"] and t["b"]["turn"]) for t in got["turns"]]
    expect(pairs == [(True, 1, None), (True, 2, None), (False, 3, 3), (False, 4, None), (False, 5, None)], pairs)
    expect(got["parting"] == 2 and got["turns"][2]["differs"] == ["verdict", "text"], got["turns"][2])
    shown = text(box, a, b)
    expect("B was forked from A after its record" in shown and "first 2 turns" in shown, shown)
    expect("=    1    1  plan" in shown and "they diverge here:\n*    3    3  review" in shown, shown)
    back = compare(box, b, a)
    expect(back["shared"]["parent"] == "b" and back["turns"][0]["b"]["turn"] == 1 and not back["turns"][0]["a"], back)
    box.segue("fork", a, "--from", "work#2", "--scenario", box.file("g.json", always("w3")), "--logs", box.logs,
        "--cwd", f"{box.dir}/cwd0", status=0)
    c = [p for p in box.log_paths() if p not in (a, b)][0]
    expect(compare(box, a, c)["shared"]["turns"] == 3 and compare(box, b, c)["shared"] is None)
    expect("both were forked from" in text(box, b, c), text(box, b, c))


def a_parent_that_is_another(box):
    """A log under the parent's id that is not what was forked shares nothing."""
    a = session(box, ("p", step(1)), ("w1", step(1)), ("r", step(1)))
    box.segue("fork", a, "--from", "review", "--scenario", box.file("f.json", always("r")), "--logs", box.logs,
        "--cwd", f"{box.dir}/cwd0", status=0)
    b = [p for p in box.log_paths() if p != a][0]
    before, lines = "0" * 64, b""
    for record in records(a):  # the same, a little later, with right hashes
        record.pop("hash")
        record["ts"] = record["ts"][:-2] + ("0Z" if record["ts"][-2] != "0" else "1Z")
        body = json.dumps(record, ensure_ascii=False, separators=(",", ":"))[:-1].encode()
        before = hashlib.sha256(before.encode() + body).hexdigest()
        lines += body + b',"hash":"' + before.encode() + b'"}\n'
    other = box.dir + "/other"
    os.mkdir(other)
    path = f"{other}/{os.path.basename(a)}"
    open(path, "wb").write(lines)
    got = compare(box, path, b)
    expect(got["shared"] == {"parent": "a", "turns": 0, "proven": False}, got["shared"])
    expect("that record has changed since" in text(box, path, b), text(box, path, b))


if __name__ == "__main__":
    sys.exit(main([same_way, they_part, no_verdict, no_rule_is_a_verdict, many_turns, not_there, newer, stopped, a_fork, a_parent_that_is_another]))
