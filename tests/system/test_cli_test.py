#!/usr/bin/env python3
"""segue test: cases against providers: right, wrong, unreadable and flaky apart, with raw replies."""
import json
import os
import sys
import xml.etree.ElementTree

from support import expect, main


def step(n):
    return json.dumps({"reason": "r", "step": n})


def bed(box):
    """Four cases; the scripted judge answers by what the text is."""
    cases = [{"id": "right", "text": "all is WELL", "rules": ["good", "bad"], "expected": 1},
             {"id": "wrong", "text": "it is WORSE", "rules": ["good", "bad"], "expected": 1},
             {"id": "none", "text": "NOTHING fits", "rules": [{"condition": "good"}, {"condition": "bad"}],
              "expected": None},
             {"id": "odd <&\"\x01\ufffe>", "text": "MUMBLE", "rules": ["good", "bad"], "expected": 2}]
    path = box.file("cases.ndjson", "".join(json.dumps(c) + "\n" for c in cases))
    scenario = box.file("s.json", json.dumps({"replies": [
        {"contains": "WELL", "text": step(1), "times": 9}, {"contains": "WORSE", "text": step(2), "times": 9},
        {"contains": "NOTHING", "text": step(0), "times": 9},
        {"contains": "MUMBLE", "text": "hm <hm> & \x07 ]]> \uffff\U0001ffff so", "times": 9}]}))
    return path, ["--scenario", scenario, "--stages", "structured_output"]


def test(box, *words, status):
    return box.segue("test", *words, status=status).stdout.decode()


def matrix(box):
    path, words = bed(box)
    junit = box.dir + "/out.xml"
    out = test(box, path, *words, "--provider", "script", "--provider", "script", "--json", "--junit", junit,
               status=1)
    lines = [json.loads(line) for line in out.splitlines()]
    cells, sums = lines[:-2], lines[-2:]
    expect(len(cells) == 8 and all(a | {"id": 0} == b | {"id": 0} for a, b in zip(cells[::2], cells[1::2])), cells)
    by = {c["id"][:3]: c for c in cells}
    expect({k: (c["result"], c["expected"], c["got"]) for k, c in by.items()} == {
        "rig": ("pass", 1, [1]), "wro": ("wrong", 1, [2]), "non": ("pass", 0, [0]),
        "odd": ("unreadable", 2, [None])}, by)
    expect(by["wro"]["reply"] == step(2) and "hm <hm>" in by["odd"]["reply"], by)
    expect(by["odd"]["why"], by["odd"])
    for s in sums:
        expect((s["cases"], s["pass"], s["wrong"], s["unreadable"], s["flaky"]) == (4, 2, 1, 1, 0), s)
    tree = xml.etree.ElementTree.parse(junit).getroot()
    failures = [f.get("type") for f in tree.iter("failure")]
    expect(len(list(tree.iter("testcase"))) == 8 and sorted(failures) == ["unreadable"] * 2 + ["wrong"] * 2, failures)
    text = test(box, path, *words, "--provider", "script", status=1)
    expect("sum: script: 2 of 4 pass, 1 wrong, 1 unreadable, 0 flaky" in text, text)
    expect("\x07" not in text and "\x01" not in text, repr(text))


def all_pass(box):
    _, words = bed(box)
    path = box.file("one.ndjson", json.dumps({"text": "WELL", "rules": ["good", "bad"], "expected": 1}) + "\n\n" +
                    json.dumps({"report": "WORSE", "text": "not this", "rules": ["good", "bad"]}) + "\n")
    out = test(box, path, *words, "--provider", "script", status=0)
    expect("2 of 2 pass" in out and "line 1" in out and "line 3" in out, out)


def flaky(box):
    """The same case judged three times, the second time otherwise."""
    path = box.file("c.ndjson", json.dumps({"id": "x", "text": "T", "rules": ["good", "bad"], "expected": 1}))
    count = box.dir + "/kept/count"
    judge = box.file("judge.sh", f"#!/bin/sh\ncat >/dev/null\necho x >> {count}\n"
                     f"[ $(wc -l < {count}) = 2 ] && echo '{step(2)}' || echo '{step(1)}'\n")
    os.makedirs(box.dir + "/home/config/segue/providers")
    os.chmod(judge, 0o755)
    with open(box.dir + "/home/config/segue/providers/dice.yaml", "w") as f:
        f.write(f"summary: a judge that wavers\nprogram: {judge}\nargv: []\noutput: text\nstate: [{box.dir}/kept/]\n")
    out = test(box, path, "--provider", "dice", "--repeat", "3", "--stages", "structured_output", "--json", status=1)
    cell = json.loads(out.splitlines()[0])
    expect(cell["result"] == "flaky" and cell["got"] == [1, 2, 1] and cell["reply"].strip() == step(2), cell)
    os.unlink(count)  # without "expected", too, the reply that differs is shown
    path = box.file("c.ndjson", json.dumps({"id": "x", "text": "T", "rules": ["good", "bad"]}))
    out = test(box, path, "--provider", "dice", "--repeat", "3", "--stages", "structured_output", "--json", status=1)
    cell = json.loads(out.splitlines()[0])
    expect(cell["result"] == "flaky" and cell["reply"].strip() == step(2), cell)


def prose(box):
    """With all stages, too, a judge that cannot be read is not one that says that no rule holds."""
    bed(box)
    name = "a name of a case that is longer than most, and whose end tells it from others: 1"
    path = box.file("c.ndjson", json.dumps({"id": name, "text": "MUMBLE", "rules": ["a", "b"], "expected": 0}) + "\n" +
                    json.dumps({"id": "n", "text": "NOTHING", "rules": ["a", "b"], "expected": 0}))
    scenario = box.file("p.json", json.dumps({"replies": [
        {"contains": "NOTHING", "text": step(0), "times": 0}, {"text": "hm", "times": 0}]}))
    junit = box.dir + "/out.xml"
    out = test(box, path, "--scenario", scenario, "--provider", "script", "--junit", junit, status=1)
    expect("1 of 2 pass, 0 wrong, 1 unreadable" in out, out)
    lines = out.splitlines()
    expect(lines[0].split() == ["case", "script"] and lines[1].startswith(name), "a head, and whole names", out)
    suite = xml.etree.ElementTree.parse(junit).getroot()
    expect({k: suite.get(k) for k in ("tests", "failures", "errors", "skipped")} ==
           {"tests": "2", "failures": "1", "errors": "0", "skipped": "0"}, suite.attrib)


def wrong_cases(box):
    _, words = bed(box)
    for case, said in [("{}", "text"), ('{"text": "x"}', "rules"), ('{"text": "x", "rules": [3]}', "conditions"),
                       ('{"text": "x", "rules": ["a"], "expected": 2}', "expected"), ("nonsense", "line 1"),
                       ('{"text": "x", "rules": ["when(("]}', "line 1")]:
        box.segue("test", box.file("bad.ndjson", case), *words, "--provider", "script", status=2, err=said.encode())
    one = box.file("one.ndjson", '{"text": "WELL", "rules": ["good", "bad"]}')
    for unready, said in (("ollama", b"needs a model"), ("openai", b"key"), ("claude", b"claude")):
        done = box.segue("test", one, "--provider", unready)
        expect(done.returncode == 2 and said in done.stderr and done.stdout == b"", unready, done)
    for given in ({"path": True}, {"path": False}):  # nothing is paid for before all cases are known to be good
        for case, said in (('{"text": "x"}', b"line 4: "), ("{", b"line 4: "),
                           ('{"text": "x", "rules": ["when(("]}', b"line 4: ")):
            good = '{"text": "WELL", "rules": ["good", "bad"]}\n'
            text = good + "\n" + good + case + "\n" + good
            path = box.file("middle.ndjson", text)
            done = box.segue("test", path if given["path"] else "-", *words, "--provider", "script",
                             stdin=None if given["path"] else text.encode())
            expect(done.returncode == 2 and said in done.stderr and done.stdout == b"", case, done)
    for more in (["--provider", "scrip"], ["--provider", "script", "--repeat", "0"], ["--stages", "x"]):
        done = box.segue("test", box.file("c.ndjson", '{"text": "x", "rules": ["a", "b"]}'), *more, status=2)
    expect(b"write structured_output, phase3_tag, phase1_tag, ai_judge" in done.stderr, done)
    expect(box.segue("test", box.dir + "/none.ndjson", *words).returncode == 2)
    box.segue("test", box.file("empty.ndjson", "\n"), *words, "--provider", "script", status=2, err=b"holds no case")


EXPORTED = """
judge: {max_reasks: 0}
name: w
provider: script
movements:
  - name: grade
    instruction: grade it
    structured_output: {on_failure: error, schema: {type: object, properties: {a: {type: integer}}, required: [a]}}
    rules: [{condition: done, next: both}]
  - name: both
    parallel:
      - {name: left, instruction: look left, rules: [{condition: fine}, {condition: broken}]}
      - {name: right, instruction: look right, rules: [{condition: fine}, {condition: broken}]}
    rules: [{condition: 'all("fine")', next: COMPLETE}, {condition: 'any("broken")', next: ABORT}]
"""


def exported(box):
    """What an audit exports holds values, too, which are no judgments; a group's child has its rules."""
    replies = [{"movement": "grade", "purpose": "execute", "text": '{"a": "x"}'}, {"movement": "grade", "text": '{"a": 3}'},
               {"stage": "structured_output", "text": "hm", "times": 0},
               {"stage": "ai_judge", "text": '{"reason": "r", "matched_index": 1}', "times": 0},
               {"text": "I looked", "times": 0}]
    scenario = box.file("s.json", json.dumps({"replies": replies}))
    done = box.segue("run", box.file("w.yaml", EXPORTED), "--logs", box.logs, "--cwd", box.cwd, "--scenario", scenario)
    expect(done.returncode == 0, done)
    path = box.dir + "/cases.ndjson"
    box.segue("audit", "--errors", "--export", path, "--logs", box.logs, status=0, err=b"3 cases")
    words = [path, "--scenario", scenario, "--provider", "script"]
    out = test(box, *words, status=0)
    expect("2 of 2 pass" in out, out)
    expect("skipped: 1 answer that was to be a movement's value" in out, out)
    expect("--method structured_output,ai_judge" in out, out)
    junit = box.dir + "/out.xml"
    cells = [json.loads(line) for line in test(box, *words, "--json", "--junit", junit, status=0).splitlines()]
    expect(cells[-1]["cases"] == 2 and cells[-1]["skipped"] == 1, cells)
    expect(len(list(xml.etree.ElementTree.parse(junit).getroot().iter("skipped"))) == 1, "no skipped case in JUnit")
    done = box.segue("audit", "--errors", "--method", "structured_output,ai_judge", "--export", path, "--logs", box.logs)
    expect(done.returncode == 0 and b"2 cases" in done.stderr, done)
    expect("skipped" not in test(box, *words, status=0), "there is nothing to skip")
    with open(path, "w") as f:
        f.write('{"text": "x", "errors": []}\n')
    box.segue("test", *words, status=2, err=b"holds no judgment")


if __name__ == "__main__":
    sys.exit(main([matrix, all_pass, flaky, wrong_cases, exported, prose]))
