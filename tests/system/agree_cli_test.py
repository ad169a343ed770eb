#!/usr/bin/env python3
"""segue label and segue agree: labels stand beside the logs, and every matrix, share and kappa is
worked out a second time from the records."""
import json
import math
import os
import sys
from pathlib import Path

from audit_logs import write
from support import expect, flow, main

Z = 1.959963984540054


def kappa(cells):
    """cells: {(first, second): count}. Cohen 1960; Fleiss, Cohen, Everitt 1969."""
    n = sum(cells.values())
    names = sorted({x for pair in cells for x in pair})
    p = {c: v / n for c, v in cells.items()}
    row = {i: sum(p.get((i, k), 0) for k in names) for i in names}
    col = {k: sum(p.get((i, k), 0) for i in names) for k in names}
    same, chance = sum(p.get((i, i), 0) for i in names), sum(row[i] * col[i] for i in names)
    if max(*row.values(), *col.values()) >= 1 - 1e-12:  # a rater who never varies makes it 0 by arithmetic
        return same, None
    k = (same - chance) / (1 - chance)
    a = sum(p.get((i, i), 0) * (1 - (row[i] + col[i]) * (1 - k)) ** 2 for i in names)
    b = (1 - k) ** 2 * sum(v * (col[i] + row[j]) ** 2 for (i, j), v in p.items() if i != j)
    error = math.sqrt(max(0, a + b - (k - chance * (1 - k)) ** 2) / n) / (1 - chance)
    return same, (k, max(-1, k - Z * error), min(1, k + Z * error))


def agree(box, *words):
    return [json.loads(line) for line in box.segue("agree", *words, "--json", status=0).stdout.splitlines()]


def label(box, *words, status=0):
    done = box.segue("label", *words, status=status)
    return (done.stdout + done.stderr).decode()


def truth(folder, labels):
    """Pairs of ratings of each turn, from the records: {(workflow, movement, a, b): {(x, y): n}}."""
    pairs = {}
    for name in os.listdir(folder):
        if not name.endswith(".ndjson"):
            continue
        log = [json.loads(line) for line in open(f"{folder}/{name}")]
        for j in (r for r in log if r["type"] == "judgment"):
            ratings = {"verdict": j["rule"] or 0}
            for s in j["stages"]:
                machine = s["stage"] in ("when", "auto_select")
                read = s["outcome"] == "matched" or s.get("none")
                if read and not machine and s["stage"] != j["method"]:
                    ratings["stage " + s["stage"]] = s.get("rule", 0)
            for (session, turn, by), rule in labels.items():
                if (session, turn) == (name[:-7], j["turn"]):
                    ratings["label " + by] = rule
            raters = sorted(ratings)
            for i, a in enumerate(raters):
                for b in raters[i + 1:]:
                    if a.startswith("stage ") and b == "verdict":  # it did not decide, so it can but disagree
                        continue
                    cells = pairs.setdefault((log[0]["workflow"]["name"], j["movement"], a, b), {})
                    key = (ratings[a], ratings[b])
                    cells[key] = cells.get(key, 0) + 1
    return pairs


def compare(got, true):
    expect({(p["workflow"], p["movement"], p["first"], p["second"]) for p in got} == set(true),
           len(got), len(true))
    for p in got:
        cells = true[(p["workflow"], p["movement"], p["first"], p["second"])]
        expect({(m["first"], m["second"]): m["weight"] for m in p["matrix"]} == cells, p, cells)
        same, k = kappa(cells)
        n = sum(cells.values())
        expect(p["turns"] == n and abs(p["agreement"][0] - same) < 1e-12, p, same)
        middle, half = same + Z * Z / n / 2, Z * math.sqrt(same * (1 - same) / n + Z * Z / n / n / 4)
        expect(abs(p["agreement"][1] - max(0, (middle - half) / (1 + Z * Z / n))) < 1e-9, p)
        expect((p["kappa"] is None) == (k is None), p, k)
        expect(p.get("undefined") == ("one rater never varied" if k is None else None), p)
        for g, t in zip(p["kappa"] or (), k or ()):
            expect(abs(g - t) < 1e-9, p, k)
        expect(("too few" in (p["advice"] or "")) == (n < 10), p)
        person = [w for w in (p["first"], p["second"]) if w.startswith("label ") or w == "human"]
        expect((p.get("reference") or None) == (person[0] if len(person) == 1 else None), p)
        for r in p.get("rules", ()):
            theirs, i = (0, 1) if person[0] == p["first"] else (1, 0), r["rule"]
            called = sum(c for key, c in cells.items() if key[theirs[0]] == i)
            judged = sum(c for key, c in cells.items() if key[theirs[1]] == i)
            expect((r["called"], r["judged"], r["found"]) == (called, judged, cells.get((i, i), 0)), r, cells)
            for share, of in ((r["sensitivity"], called), (r["precision"], judged)):
                expect((share is None) == (of == 0), r)
                if share:
                    expect(abs(share[0] - r["found"] / of) < 1e-9 and share[1] <= share[0] <= share[2], r)


def stages_and_verdicts(box):
    folder = box.dir + "/many"
    write(folder, 150, 15, seed=11)
    compare(agree(box, folder), truth(folder, {}))
    only = agree(box, folder, "--workflow", "flow", "--movement", "plan")
    expect(only and all((p["workflow"], p["movement"]) == ("flow", "plan") for p in only))


def no_such_movement(box):
    folder = box.dir + "/some"
    write(folder, 40, 8, seed=5)
    judged = []
    for name in sorted(os.listdir(folder)):
        log = [json.loads(line) for line in open(f"{folder}/{name}")]
        judged += [(name[:-7], j) for j in log if j["type"] == "judgment"]
    before = {name: open(f"{folder}/{name}", "rb").read() for name in os.listdir(folder)}
    # the workflows of these logs have no movements, so nobody can say which rules there are
    text = label(box, judged[0][0], judged[0][1]["movement"], "1", "--by", "ann", "--logs", folder, status=2)
    expect("has no movement" in text, text)
    expect(not os.path.exists(folder + "/labels"))
    expect(before == {name: open(f"{folder}/{name}", "rb").read() for name in os.listdir(folder)})


RULES = """
name: two
initial_movement: look
provider: script
judge: {stages: [structured_output]}
movements:
  - name: look
    instruction: look at it
    rules:
      - {condition: good, next: COMPLETE}
      - {condition: bad, next: ABORT}
"""


def labelled(box):
    """Labels on real sessions: two people, a correction, differences, and a log that is not touched."""
    flow = box.file("two.yaml", RULES)
    given, ids = {}, []
    for n in range(34):
        rule = 1 if n % 3 else 2
        scenario = box.file("s.json", json.dumps({"replies": [
            {"purpose": "execute", "text": "looked"},
            {"purpose": "judge", "text": json.dumps({"reason": "r", "step": rule})}]}))
        done = box.segue("run", flow, "--scenario", scenario, "--logs", box.logs, "--cwd", box.cwd)
        expect(done.returncode == (0 if rule == 1 else 3), done.stderr)
    names = sorted(n for n in os.listdir(box.logs) if n.endswith(".ndjson"))
    data = {n: open(f"{box.logs}/{n}", "rb").read() for n in names}
    for i, name in enumerate(names):
        ids.append(name[:-7])
        said = (1 if i % 3 else 2) if i != 5 else 2
        label(box, ids[i], "look", str(said), "--by", "ann", "--logs", box.logs)
        given[(ids[i], 1, "ann")] = said
    text = label(box, ids[7], "look", "0", "--by", "ann", "--turn", "1", "--logs", box.logs)
    expect("rule 0 says ann; the verdict was rule 1" in text, text)
    given[(ids[7], 1, "ann")] = 0  # the later one counts
    label(box, ids[7], "look#2", "1", "--by", "ann", "--logs", box.logs, status=2)
    label(box, ids[7], "nobody#1", "1", "--by", "ann", "--logs", box.logs, status=2)
    for i, run in ((1, "look"), (2, "look#1"), (5, "look")):  # a run as segue show names it
        label(box, ids[i], run, "1", "--by", "bob", "--logs", box.logs)
        given[(ids[i], 1, "bob")] = 1
    pairs = agree(box, box.logs)
    compare(pairs, truth(box.logs, given))
    ann = [p for p in pairs if p["second"] == "verdict" and p["first"] == "label ann"][0]
    expect(ann["turns"] == 34 and "stand for label ann" in ann["advice"], ann)
    listed = box.segue("agree", box.logs, "--list").stdout.decode()
    expect(f"{ids[5]}  turn 1, look: label ann says 2, verdict 1" in listed, listed)
    expect(f"{ids[5]}  turn 1, look: label ann says 2, label bob 1" in listed, listed)
    expect(data == {n: open(f"{box.logs}/{n}", "rb").read() for n in names}, "a log was changed")
    expect(box.segue("verify", box.logs).returncode == 0)
    for wrong, said in [((ids[0], "look", "3"), "from 1 to 2"), ((ids[0], "look", "x"), "from 1 to 2"),
                        ((ids[0], "peer", "1"), "no movement \"peer\" ran in this session; what ran: look"), (("ffff", "look", "1"), "ffff"),
                        ((ids[0], "look", "1", "--turn", "9"), "not a judged turn")]:
        expect(said in label(box, *wrong, "--by", "x", "--logs", box.logs, status=2), wrong)
    with open(box.logs + "/labels/labels.log", "r+b") as f:  # somebody changes one
        text = f.read()
        f.seek(0)
        f.write(text.replace(b'"rule":2', b'"rule":1', 1))
    done = box.segue("agree", box.logs)
    expect(done.returncode != 0 and b"labels.log" in done.stderr, done.returncode, done.stderr)


def judge(box, flow, name, *rules, movement="look", status=0):
    """Plays one session in which the judge names these rules, one after the other; its id."""
    before = set(box.log_paths())
    scenario = box.file(name + ".json", json.dumps({"replies": [{"purpose": "execute", "text": "looked", "times": 0}] + [
        {"purpose": "judge", "text": json.dumps({"reason": "r", "step": rule})} for rule in rules]}))
    box.segue("run", flow, "--scenario", scenario, "--logs", box.logs, "--cwd", box.cwd, "--task", "t", status=status)
    (path,) = set(box.log_paths()) - before
    return os.path.basename(path)[:-7]


def one_who_never_varies(box):
    """Sixty turns of which the judge fails two and a person none: kappa says nothing, and so does segue."""
    flow = box.file("two.yaml", RULES)
    for n in range(60):
        sid = judge(box, flow, "s", 2 if n in (7, 31) else 1, status=3 if n in (7, 31) else 0)
        label(box, sid, "look", "1", "--as", "ann", "--logs", box.logs)
        if n == 0:
            text = box.segue("agree", box.logs).stdout.decode()
            expect("1 turn, the same in 100.0 %" in text and "kappa undefined: one rater never varied, AC1 1.00\n" in text, text)
            label(box, sid, "look", "2", "--as", "cid", "--logs", box.logs)
    text = box.segue("agree", box.logs, "--rater", "label ann").stdout.decode()
    expect("60 turns, the same in 96.7 % (88.6 to 99.1), kappa undefined: one rater never varied, AC1 0.97\n" in text, text)
    expect("\n      rule 1: found 58 of 60 (96.7 %, 88.6 to 99.1), right when named 58 of 58 (100.0 %, 93.8 to 100.0)\n"
           "      rule 2: found not known, right when named 0 of 2 (0.0 %, 0.0 to 65.8)\n      1 against 2: 2\n" in text, text)
    for word in ("cannot stand", "as good as", "always agree", "0.00"):
        expect(word not in text, word, text)
    pairs = {(p["first"], p["second"]): p for p in agree(box, box.logs)}
    ann = pairs["label ann", "verdict"]
    expect((ann["kappa"], ann["undefined"]) == (None, "one rater never varied"), ann)
    expect(ann["advice"] == "undecided whether verdict may stand for label ann: 8 more labels of turns that verdict calls 2, "
           "16 more labels of turns that label ann calls 2", ann)
    cid = pairs["label cid", "verdict"]  # one turn on which they differ
    expect((cid["turns"], cid["kappa"], cid["undefined"]) == (1, None, "one rater never varied"), cid)


PARALLEL = flow("agree_cli_parallel")


def children_and_items(box):
    """What segue show prints names what is labelled: a child, an item, and a run of either."""
    sid = judge(box, box.file("many.yaml", PARALLEL), "many", *[1] * 10)
    log = [json.loads(line) for line in open(f"{box.logs}/{sid}.ndjson")]
    starts = [r for r in log if r["type"] == "turn_start"]
    shown = box.segue("show", sid, "--logs", box.logs).stdout.decode()
    names = {" ".join(line.split()[1:3 if line.split()[2].isdigit() else 2]) for line in shown.splitlines()
             if line.split() and line.split()[0].isdigit() and not line.endswith(":")}
    expect({"review.sec", "parts.it 2", "parts"} <= names, names, shown)
    for name in sorted(names):
        movement, _, item = name.partition(" ")
        runs = [r["turn"] for r in starts if r["movement"] == movement and (not item or r["item"] == int(item))]
        for word, turn in ((name, runs[-1]), *((f"{name}#{n}", turn) for n, turn in enumerate(runs, 1))):
            text = label(box, sid, word, "1", "--as", "ann", "--logs", box.logs)
            expect(text.startswith(f"turn {turn}, {movement}: rule 1 says ann"), word, text)
            told = box.segue("show", sid, word, "--logs", box.logs).stdout.decode()
            expect(f"turn {turn}  {movement}" in told, word, told[:200])
    expect("rule 3 says" in label(box, sid, "review.sec", "3", "--as", "ann", "--logs", box.logs))
    for word, rule, said in (("review.api", "3", "from 1 to 2"), ("review.sec#3", "1", "ran 2 times"), ("sec", "1", "review.sec"),
                             ("parts.it 4", "1", "what ran: review, review.sec"), ("parts.it 2#0", "1", "what ran"),
                             ("parts.it#7", "1", "ran 6 times"), ("", "1", "what ran"), ("#1", "1", "what ran")):
        text = label(box, sid, word, rule, "--as", "ann", "--logs", box.logs, status=2)
        expect(said in text, word, text)
    text = label(box, sid, "review.sec", "1", "--turn", "3", "--as", "ann", "--logs", box.logs, status=2)
    expect("turn 3 is not a judged turn of" in text, text)
    expect(label(box, sid, "review.sec", "2", "--turn", "2", "--as", "ann", "--logs", box.logs).startswith("turn 2, review.sec:"))
    by = {p["movement"]: p["turns"] for p in agree(box, box.logs)}
    expect(by["review.sec"] == 2 and by["parts.it"] == 6, by)


def left_out(box):
    (path,) = write(box.dir + "/odd", 1, 3)
    data = Path(path).read_bytes()
    Path(path).write_bytes(data.replace(b"I did it", b"I bid it"))
    box.segue("agree", box.dir + "/odd", status=0, err=b"1 log is not intact and left out")


def nobody(box):
    expect(b"nothing to compare" in box.segue("agree").stdout)
    expect(box.segue("agree", box.dir + "/none.ndjson").returncode == 2)


if __name__ == "__main__":
    sys.exit(main([stages_and_verdicts, no_such_movement, labelled, one_who_never_varies, children_and_items, left_out, nobody]))
