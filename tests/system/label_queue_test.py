#!/usr/bin/env python3
"""segue label --queue and segue agree --wrong: what a second judge doubts is drawn more often, nobody
sees a verdict, an answer can be given anew, and few labels say how often a verdict is wrong."""
import json
import os
import pty
import sys

from support import SEGUE, expect, main, records

FLOW = """
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


def judged(rule):
    return [{"stage": "structured_output", "text": json.dumps({"reason": "r", "step": rule})}]


def made(box, verdicts):
    """A session for each verdict; their ids, in order."""
    flow, ids = box.file("two.yaml", FLOW), []
    for n, rule in enumerate(verdicts):
        script = box.file("s.json", json.dumps({"replies": [{"purpose": "execute", "text": f"looked {n} there"}, *judged(rule)]}))
        before = set(box.log_paths())
        done = box.segue("run", flow, "--scenario", script, "--logs", box.logs, "--cwd", box.cwd)
        expect(done.returncode in (0, 3), done.stderr)
        ids += [os.path.basename(p)[:-7] for p in set(box.log_paths()) - before]
    return ids


def second(box, ids, doubts, name="b"):
    """Judges again; this judge calls 2 what is in `doubts`, by number, and else 1."""
    replies = [{**judged(2)[0], "contains": f"looked {n} there"} for n in doubts] + judged(1)
    script = box.file(name + ".json", json.dumps({"replies": replies}))
    box.segue("rejudge", *ids, "--logs", box.logs, "--scenario", script, "--yes", "--as", name, status=0)


def labels(box):
    path = box.logs + "/labels/labels.log"
    return records(path) if os.path.exists(path) else []


def queue(box, truth, *words, who="ann", stop=None):
    """Answers by what each screen shows; all that was printed."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(box.cwd)
        os.execve(SEGUE, [SEGUE, "label", box.logs, "--queue", *words, "--as", who], {**box.env, "TERM": "xterm"})
    seen, at, answered = b"", 0, 0
    while True:
        try:
            piece = os.read(fd, 4096)
        except OSError:
            break
        if not piece:
            break
        seen += piece
        if b"q quits)?" in seen[at:]:
            screen = seen[at:].decode()
            at = len(seen)
            n = int(screen.rsplit("looked ", 1)[1].split()[0])
            os.write(fd, b"q" if answered == stop else str(truth[n]).encode())
            answered += 1
    os.waitpid(pid, 0)
    os.close(fd)
    return seen.decode()


def wrong(box, *words):
    return [json.loads(line) for line in box.segue("agree", box.logs, "--wrong", *words, "--json", status=0).stdout.splitlines()]


def doubted(box):
    """Of 40 approvals the second judge doubts 8, of which 6 are wrong, and one that it does not doubt."""
    ids = made(box, [1] * 40 + [2] * 4)
    second(box, ids[:40], range(8))
    truth = [2] * 6 + [1] * 33 + [2] + [2] * 4
    text = queue(box, truth, "--sample", "20", "--rule", "1")
    expect("20 of 20 labelled" in text and "verdict" not in text, text)
    got = labels(box)
    size = {"another": 8, "the same": 32}
    drawn = {says: [r for r in got if r["stratum"].endswith("b says " + says)] for says in size}
    expect(sum(map(len, drawn.values())) == 20 and all(r["blind"] for r in got), got)
    expect(all(r["population"] == size[says] for says, list_ in drawn.items() for r in list_), got)
    expect(len(drawn["another"]) > 20 * 8 / 40, "what is doubted is drawn more often", {k: len(v) for k, v in drawn.items()})
    expect({r["stratum"].split(",")[0] for r in got} == {"rule=1"}, got)
    share = sum(size[s] * sum(r["rule"] != 1 for r in v) / len(v) for s, v in drawn.items()) / 40
    rate = [r for r in wrong(box) if r["group"]["rule"] == "1"][0]
    expect(rate["person"] == "ann" and rate["second"] == "b" and rate["judgments"] == 40 and rate["labels"] == 20, rate)
    expect(abs(rate["wrong"][0] - share) < 1e-9 and rate["wrong"][1] < share < rate["wrong"][2], rate, share)
    expect("label next: verdicts of rule 1 of which b says" in rate["next"], rate)
    # of all verdicts; those of rule 2 have no label, and may be anything
    rate = wrong(box, "--by", "movement")[0]
    expect(rate["judgments"] == 44 and [r["rule"] for r in rate["rules"]] == [1, 2], rate)
    expect(abs(rate["rules"][0]["named"] - 40 / 44) < 1e-9 and rate["next"].startswith("label next: verdicts of rule 2"), rate)
    queue(box, truth, "--sample", "44")
    rates = {r["group"]["rule"]: r for r in wrong(box)}
    expect(abs(rates["1"]["wrong"][0] - 7 / 40) < 1e-9 and rates["2"]["wrong"][0] == 0, rates)
    rate = wrong(box, "--by", "movement")[0]
    expect(abs(rate["wrong"][0] - 7 / 44) < 1e-9 and abs(rate["rules"][1]["right"][0] - 11 / 44) < 1e-9, rate)
    expect(rate["next"] == "all are labelled", rate)
    for key in ("model", "worker", "basis", "method"):
        expect(sum(r["judgments"] for r in wrong(box, "--by", key)) == 44, key)
    box.segue("agree", box.logs, "--wrong", "--fail-if", "wrong_high > 0.9", status=0)
    box.segue("agree", box.logs, "--wrong", "--rule", "1", "--fail-if", "wrong > 0.1", status=1, err=b"movement=look, rule=1, ann")
    shown = box.segue("agree", box.logs, "--wrong", "--rule", "1", status=0).stdout.decode()
    expect("movement=look, rule=1: 40 judged, 40 labelled by ann\n    wrong 17.5 % (" in shown, shown)


def without_a_second_judge(box):
    ids = made(box, [1] * 12)
    queue(box, [2] + [1] * 11)
    rate = wrong(box)[0]
    # Clopper and Pearson, 1 of 12
    expect(rate["second"] is None and [round(x, 4) for x in rate["wrong"]] == [0.0833, 0.0021, 0.3848], rate)
    second(box, ids[:3], (0, 1, 2), "small")
    second(box, ids, (), "large")
    expect(wrong(box)[0]["second"] == "large" and wrong(box, "--second", "small")[0]["second"] == "small")
    box.segue("agree", box.logs, "--wrong", "--second", "nobody", status=2, err=b"under that name")


def two_people(box):
    """Both are asked the same; neither sees the other's answers, and each keeps what was said."""
    made(box, [1] * 10)
    queue(box, [1] * 10, who="ann")
    text = queue(box, [1] * 9 + [2], who="bob")
    expect("10 of 10 labelled" in text and "ann" not in text, text)
    asked = {who: [(r["session"], r["turn"]) for r in labels(box) if r["by"] == who] for who in ("ann", "bob")}
    expect(asked["ann"] == asked["bob"] and len(set(asked["ann"])) == 10, asked)
    rates = {r["person"]: r["wrong"][0] for r in wrong(box)}
    expect(rates == {"ann": 0, "bob": 0.1}, rates)
    pairs = [json.loads(line) for line in box.segue("agree", box.logs, "--json").stdout.splitlines()]
    expect(any((p["first"], p["second"]) == ("label ann", "label bob") for p in pairs), pairs)


def back_and_on(box):
    """u goes back; another answer counts instead, and the first one is kept; q and on again."""
    made(box, [1] * 4)
    done = box.segue("label", box.logs, "--queue", "--as", "ann", stdin=b"1\ns\nu\nu\n2\n1\nq\n", status=0)
    text = done.stdout.decode()
    expect("2 of 4 labelled: run it again to go on" in text and "the verdict was" not in text, text)
    got = labels(box)
    expect([r["rule"] for r in got] == [1, 2, 1] and got[0]["session"] == got[1]["session"] != got[2]["session"], got)
    rate = wrong(box)[0]
    expect(rate["labels"] == 2 and rate["wrong"][0] == 0.5, rate)
    done = box.segue("label", box.logs, "--queue", "--as", "ann", stdin=b"u\n1\n1\n", status=0)
    expect(b"4 of 4 labelled: segue agree" in done.stdout, done.stdout)
    done = box.segue("label", box.logs, "--queue", "--as", "bob", "--verdict", stdin=b"1\nq\n", status=0)
    expect(b"the verdict was rule 1" in done.stdout and not labels(box)[-1].get("blind"), done.stdout)


def mistakes(box):
    made(box, [1, 2])
    for words, said in [(("label", "--queue", "--by", "method"), b"its own strata"), (("label", "--second", "b"), b"needs --sample or --queue"),
                        (("label", "--sample", "2", "--second", "b"), b"need --queue"), (("label", "--queue", "--turn", "1"), b"no --turn"),
                        (("label", "--queue", "--rule", "x"), b"write numbers from 1 to 63"), (("agree", "--by", "rule"), b"need --wrong"),
                        (("agree", "--wrong", "--by", "stage"), b"belong to stages"), (("agree", "--wrong", "--by", "nix"), b"up to 4 of")]:
        box.segue(*words, "--logs", box.logs, *(("--as", "ann") if words[0] == "label" else ()), status=2, err=said)
    box.segue("label", box.logs, "--queue", "--second", "b", "--as", "ann", status=2, err=b"under that name")
    done = box.segue("agree", box.logs, "--wrong", "--movement", "nix", status=0)
    expect(done.stdout == b"no judge's verdict matches\n", done.stdout)
    rates = wrong(box)
    expect(all(r["wrong"] is None and r["labels"] == 0 for r in rates) and len(rates) == 2, rates)
    box.segue("agree", box.logs, "--wrong", "--fail-if", "wrong > 0.5", status=1, err=b"cannot be told")


if __name__ == "__main__":
    sys.exit(main([doubted, without_a_second_judge, two_people, back_and_on, mistakes]))
