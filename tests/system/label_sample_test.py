#!/usr/bin/env python3
"""segue label --sample: drawn by strata, asked one by one, gone on with after an end; segue agree
weighs what was drawn so that its shares are those of all judgments."""
import json
import os
import pty
import signal
import sys

from support import SEGUE, expect, main, records

FLOW = """
name: two
initial_movement: look
provider: script
judge: {stages: [structured_output, phase3_tag]}
movements:
  - name: look
    instruction: look at it
    rules:
      - {condition: good, next: COMPLETE}
      - {condition: bad, next: ABORT}
"""
SURE = [{"purpose": "execute", "text": "looked"}, {"stage": "structured_output", "text": '{"reason": "r", "step": 1}'}]
TAGS = [{"purpose": "execute", "text": "looked"}, {"stage": "structured_output", "text": "hm"},
        {"stage": "phase3_tag", "text": "[LOOK:2]"}]


def made(box, sure, tags):
    flow = box.file("two.yaml", FLOW)
    for n, replies in ((sure, SURE), (tags, TAGS)):
        script = box.file("s.json", json.dumps({"replies": replies}))
        for _ in range(n):
            done = box.segue("run", flow, "--scenario", script, "--logs", box.logs, "--cwd", box.cwd)
            expect(done.returncode in (0, 3), done.stderr)


def sample(box, answers, *words, status=0):
    done = box.segue("label", box.logs, "--sample", *words, stdin="".join(a + "\n" for a in answers).encode())
    expect(done.returncode == status, words, done.returncode, done.stdout, done.stderr)
    return (done.stdout + done.stderr).decode()


def labels(box):
    path = box.logs + "/labels/labels.log"
    return records(path) if os.path.exists(path) else []


def weighed(box):
    """22 judgments by structured output, 8 by tags; 5 of each are labelled."""
    made(box, 22, 8)
    before = {p: open(p, "rb").read() for p in box.log_paths()}
    text = sample(box, ["1", "x", "7", "2", "q"], "10", "--by", "method", "--as", "ann", "--blind")
    expect("that is not the number of a rule" in text and
           "2 of 10 labelled: run it again to go on" in text, text)
    shown = text.split("rule (0 to 2")[0]
    expect("1  good" in shown and "the verdict was" not in shown, shown)
    text = sample(box, ["s", "2", "1", "1", "2", "1", "1", "2"], "10", "--by", "method", "--as", "ann", "--blind")
    expect("9 of 10 labelled" in text, text)  # one was left out, and comes again:
    text = sample(box, ["0"], "10", "--by", "method", "--as", "ann", "--blind")
    expect("10 of 10 labelled: segue agree" in text, text)
    got = labels(box)
    expect(len({(r["session"], r["turn"]) for r in got}) == 10 and all(r["blind"] for r in got), got)
    method = {}
    for path in box.log_paths():
        j = [r for r in records(path) if r["type"] == "judgment"][0]
        method[os.path.basename(path)[:-7]] = (j["method"], j["rule"])
    per = {m: [r for r in got if method[r["session"]][0] == m] for m in ("structured_output", "phase3_tag")}
    expect([len(v) for v in per.values()] == [5, 5], per)
    expect(all(r["population"] == (22 if m == "structured_output" else 8) and r["stratum"] == "method=" + m
               for m, v in per.items() for r in v), got)
    size = {"structured_output": 22, "phase3_tag": 8}
    right = {m: sum(r["rule"] == method[r["session"]][1] for r in v) for m, v in per.items()}
    share = sum(size[m] * right[m] / 5 for m in per) / 30
    pairs = [json.loads(line) for line in box.segue("agree", box.logs, "--json").stdout.splitlines()]
    pair = [p for p in pairs if (p["first"], p["second"]) == ("label ann", "verdict")][0]
    expect(pair["turns"] == 10 and pair["strata"] == 2 and abs(pair["agreement"][0] - share) < 1e-12, pair, share)
    expect(abs(sum(m["weight"] for m in pair["matrix"]) - 30) < 1e-9, pair)
    # a label that nobody drew does not bend the estimate
    free = [s for s in method if s not in {r["session"] for r in got}][0]
    expect(box.segue("label", free, "look", "2", "--as", "ann", "--logs", box.logs).returncode == 0)
    done = box.segue("agree", box.logs, "--json", err=b"1 labels outside the samples")
    again = [p for p in map(json.loads, done.stdout.splitlines()) if p["first"] == "label ann"][0]
    expect(again["turns"] == 10, again)
    expect(before == {p: open(p, "rb").read() for p in box.log_paths()}, "a log was changed")


def same_sample(box):
    """The same words draw the same turns, another seed others; two people get the same."""
    made(box, 12, 0)
    drawn = []
    for who, words in (("ann", ()), ("bob", ()), ("cat", ("--seed", "2"))):
        sample(box, ["1"] * 6, "6", "--as", who, *words)
        drawn.append([r["session"] for r in labels(box) if r["by"] == who])
    expect(drawn[0] == drawn[1] != drawn[2] and len(set(drawn[0])) == 6, drawn)
    text = sample(box, ["1"] * 20, "20", "--as", "ann")
    expect("12 of 12 labelled" in text, text[-100:])
    expect({r["population"] for r in labels(box)} == {12}, "all of one stratum")


def keys(box):
    """At a terminal a key is enough, and Ctrl-C ends it with the terminal as it was."""
    made(box, 3, 0)
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(box.cwd)
        os.execve(SEGUE, [SEGUE, "label", box.logs, "--sample", "3", "--as", "ann"], {**box.env, "TERM": "xterm"})
    seen = b""

    def until(text, n):
        nonlocal seen
        while seen.count(text) < n:
            seen += os.read(fd, 4096)

    until(b"q quits)?", 1)
    os.write(fd, b"9")
    until(b"not the number of a rule", 1)
    until(b"q quits)?", 2)
    os.write(fd, b"1")
    until(b"q quits)?", 3)
    screen = seen.rsplit(b"\x1b[2J", 1)[1]  # what is still to be seen
    expect(b"before: " in screen and b"; the verdict was rule" in screen.split(b"2 of 3")[0], screen)
    os.write(fd, b"\x03")
    until(b"1 of 3 labelled", 1)
    expect(b"the verdict was rule 1" in seen, seen)
    status = os.waitpid(pid, 0)[1]  # closed before, it would be hung up on
    os.close(fd)
    expect(status == 0, status, seen)
    expect([r["rule"] for r in labels(box)] == [1], labels(box))


def killed(box):
    """What was answered is on the disk when the next question is there."""
    made(box, 3, 0)
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(box.cwd)
        os.execve(SEGUE, [SEGUE, "label", box.logs, "--sample", "3", "--as", "ann"], {**box.env, "TERM": "xterm"})
    seen = b""
    for n in (1, 2, 3):
        while seen.count(b"q quits)?") < n:
            seen += os.read(fd, 4096)
        os.write(fd, b"1" if n < 3 else b"")
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(fd)
    expect(len(labels(box)) == 2, labels(box))
    text = sample(box, ["2"], "3", "--as", "ann")
    expect("3 of 3 labelled" in text and sorted(r["rule"] for r in labels(box)) == [1, 1, 2], text)


def a_turn_that_cannot_be_read(box):
    """It is named and left out; the others are asked."""
    flow = box.file("two.yaml", FLOW)
    for text in ("looked", "looked " * 20000):  # the long one is a blob
        script = box.file("s.json", json.dumps({"replies": [{**SURE[0], "text": text}, SURE[1]]}))
        box.segue("run", flow, "--scenario", script, "--logs", box.logs, "--cwd", box.cwd)
    for name in os.listdir(box.logs + "/blobs"):
        os.unlink(f"{box.logs}/blobs/{name}")
    text = sample(box, ["1"], "2", "--as", "ann")
    expect("1 of 2 labelled" in text and "is left out: cannot open the blob" in text, text)


def mistakes(box):
    made(box, 2, 1)
    for words, said in [(("0",), "1 to 1000"), (("x",), "1 to 1000"), (("1", "--by", "method"), "2 strata need"),
                        (("3", "--by", "stage"), "belong to their stages"), (("3", "--by", "nix"), "up to 4 of"),
                        (("3", "--turn", "1"), "no --turn"), (("3", "--min-stages", "x"), "from 1")]:
        expect(said in sample(box, ["1"], *words, "--as", "ann", status=2), words)
    box.segue("label", box.logs, "--sample", "2", status=2, err=b"--as NAME")
    for words, said in [(("--blind", "last", "look", "1"), b"needs --sample"), (("last", "look"), b"--sample N"),
                        ((), b"--sample N")]:
        box.segue("label", *words, status=2, err=said)
    expect("0 of 0 labelled" in sample(box, [], "3", "--movement", "nix", "--as", "ann"))
    expect(labels(box) == [], "nothing was answered")


if __name__ == "__main__":
    sys.exit(main([weighed, same_sample, keys, killed, a_turn_that_cannot_be_read, mistakes]))
