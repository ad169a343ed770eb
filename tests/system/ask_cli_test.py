#!/usr/bin/env python3
"""segue ask: one question, many, and items as they arrive; what is told when there is no value."""
import json
import os
import signal
import sys
from pathlib import Path

from support import end_of, expect, main, of_type, records, verified

GOOD = '{"sentiment": "positive", "confidence": 0.9, "keywords": ["love"]}'
BAD = '{"sentiment": "happy", "confidence": 1.5, "keywords": ["love"]}'


def ask(box, replies, *words, stdin=None, env=None, schema="sentiment"):
    scenario = box.file("scenario.json", json.dumps({"replies": replies}))
    return box.segue("ask", "--schema", schema, "--provider", "script", "--scenario", scenario,
                     *words, stdin=stdin, env=env)


def told(done):
    return (done.stdout + done.stderr).decode(errors="replace")


def a_value_on_stdout(box):
    done = ask(box, [{"text": f"Sure!\n```json\n{GOOD}\n```"}], "I love it")
    expect(done.returncode == 0 and done.stderr == b"", told(done))
    expect(json.loads(done.stdout) == json.loads(GOOD), told(done))
    done = ask(box, [{"contains": "from stdin", "text": GOOD}], stdin=b"from stdin\n")
    expect(done.returncode == 0, told(done))


def a_wrong_answer_is_corrected(box):
    replies = [{"purpose": "execute", "text": BAD},
               {"purpose": "reask", "contains": "1.5 is greater than the maximum 1", "text": GOOD}]
    done = ask(box, replies, "I love it", "--logs", box.logs, "--json")
    expect(done.returncode == 0, told(done))
    result = json.loads(done.stdout)
    expect(result["attempts"] == 2 and not result["first_pass"], result)
    expect([c["outcome"] for c in result["checks"]] == ["schema", "valid"], result)
    expect(result["checks"][0]["raw"] == BAD and result["raw"] == GOOD, result)
    expect(result["failures"] == {"schema": 1}, result)
    path = box.log_paths()[0]
    verified(box, path)
    log = records(path)
    expect([r["outcome"] for r in of_type(log, "check")] == ["schema", "valid"], log)
    expect(of_type(log, "structured")[0]["value"] == json.loads(GOOD), log)
    box.segue("show", path, "ask", out=(b"check 1  schema", b"check 2  valid"))
    again = box.segue("resume", path, status=0)
    expect(json.loads(again.stdout) == json.loads(GOOD) and not again.stderr, told(again))


def two_values_are_told(box):
    done = ask(box, [{"text": GOOD.replace("0.9", "0.2") + " or rather " + GOOD}], "x", "--json")
    result = json.loads(done.stdout)
    expect(result["value"] == json.loads(GOOD) and result["ambiguous"] is True, result)
    expect(b"another value that fits" in done.stderr, told(done))
    done = ask(box, [{"text": GOOD + " as I said: " + GOOD}], "x", "--json")
    expect("ambiguous" not in json.loads(done.stdout) and not done.stderr, told(done))


def what_is_cut_is_no_value(box):
    schema = box.file("s.json", json.dumps({"type": "object", "properties": {
        "a": {"type": "string"}, "n": {"type": "array", "items": {"type": "integer"}}}, "required": ["a"]}))
    for text in ('{"a": "half a sen', '{"a": "x", "n": [1, 2', '{"a": "x", "n": 1'):
        done = ask(box, [{"text": text, "times": 0}], "x", "--repair", "--json", schema=schema)
        result = json.loads(done.stdout)
        expect(done.returncode == 1 and result["errors"][0]["keyword"] == "truncated", result)
    done = ask(box, [{"text": '{"a": "x"'}], "x", "--repair", schema=schema)
    expect(json.loads(done.stdout) == {"a": "x"}, told(done))


def entities_stand_in_order(box):
    wrong = {"entities": [{"text": "Ann", "type": "person", "start": 9, "end": 2}]}
    right = {"entities": [{"text": "Ann", "type": "person", "start": 2, "end": 5}]}
    replies = [{"purpose": "execute", "text": json.dumps(wrong)},
               {"purpose": "reask", "contains": "start < end", "text": json.dumps(right)}]
    done = ask(box, replies, "Hi Ann", schema="entities")
    expect(json.loads(done.stdout) == right, told(done))


def right_items_of_lists_stay(box):
    """With --keep-valid; of a correction only what errors named is taken: by place, or in order if it is all there is."""
    fact = {"type": "object", "properties": {"n": {"type": "integer"}, "in": {"type": "array", "items": {"type": "integer"}}},
            "required": ["n"], "additionalProperties": False}
    facts = {"type": "array", "items": fact, "minItems": 1}
    of = {"type": "object", "properties": {"a/b~": facts, "t": {"type": "string"}}, "required": ["a/b~", "t"]}
    n = lambda *all: [x if isinstance(x, dict) else {"n": x} for x in all]
    cases = [
        (facts, [n(1, "x", 3), n(9, 2, 9)], n(1, 2, 3)),
        (facts, [n(1, "x", 3, "y"), n(2, 4)], n(1, 2, 3, 4)),
        (facts, [n(1, "x", 3, "y"), n(2, "z"), n(4)], n(1, 2, 3, 4)),
        (facts, [n(1, "x", 3), n(1, 2)], n(1, 2)),  # another list altogether
        (facts, [[], n(5)], n(5)),  # the list itself was wrong
        (of, [{"a/b~": n(1, "x"), "t": 4}, {"a/b~": n(9, 2), "t": "T"}], {"a/b~": n(1, 2), "t": "T"}),
        (of, [{"a/b~": n(1, 2), "t": 4}, {"a/b~": n(7, 8), "t": "T"}], {"a/b~": n(1, 2), "t": "T"}),
        (facts, [n({"n": 1, "in": [1, "x", 3]}, 2), n({"n": 1, "in": [2]})], n({"n": 1, "in": [1, 2, 3]}, 2)),
        (facts, ["no list", n(1, "x"), n(8, 2)], n(1, 2)),
    ]
    for schema, answers, value in cases:
        replies = [{"text": a if isinstance(a, str) else json.dumps(a)} for a in answers]
        done = ask(box, replies, "x", "--keep-valid", "--logs", box.logs, schema=box.file("s.json", json.dumps(schema)))
        expect(done.returncode == 0 and json.loads(done.stdout) == value, answers, told(done))
        verified(box, box.log_paths()[-1])
        again = box.segue("resume", box.log_paths()[-1], status=0)
        expect(json.loads(again.stdout) == value, told(again))
    replies = [{"text": json.dumps(n(1, "x", 3, "y"))}, {"text": json.dumps(n(2, "z"))},
               {"contains": json.dumps(n(1, 2, 3, "z"), separators=(",", ":")), "text": json.dumps(n(4))}]
    done = ask(box, replies, "x", "--keep-valid", schema=box.file("s.json", json.dumps(facts)))
    expect(json.loads(done.stdout) == n(1, 2, 3, 4), "the second correction shows what is kept", told(done))
    done = ask(box, replies[:1] + [{"text": json.dumps(n(2, 4))}], "x", schema=box.file("s.json", json.dumps(facts)))
    expect(json.loads(done.stdout) == n(2, 4), "without it an answer is taken as it is", told(done))


def formats_are_asserted_when_asked(box):
    schema = box.file("day.json", json.dumps({"type": "object", "properties": {
        "day": {"type": "string", "format": "date"}}, "required": ["day"]}))
    replies = [{"purpose": "execute", "text": '{"day": "30 February"}'},
               {"purpose": "reask", "contains": "is not a valid date (YYYY-MM-DD",
                "text": '{"day": "2024-02-28"}'}]
    done = ask(box, replies, "When?", schema=schema)
    expect(json.loads(done.stdout) == {"day": "30 February"}, told(done))
    done = ask(box, replies, "When?", "--assert-format", "--logs", box.logs, schema=schema)
    expect(json.loads(done.stdout) == {"day": "2024-02-28"}, told(done))
    path = box.log_paths()[0]
    verified(box, path)
    movement = records(path)[0]["workflow"]["movements"][0]
    expect(movement["structured_output"]["assert_format"] is True, movement)


def without_a_value(box):
    done = ask(box, [{"text": "no \x1b[31midea\x07", "times": 0}], "x")
    expect(done.returncode == 1 and done.stdout == b"", told(done))
    for piece in (b"no valid value after 2 attempts", b"same errors", b"holds no JSON value",
                  b"no \\e[31midea"):
        expect(piece in done.stderr, piece, "is not in", told(done))
    expect(b"\x1b" not in done.stderr and b"\x07" not in done.stderr, "an escape went through")
    done = ask(box, [{"text": BAD, "times": 0}], "x", "--max-reasks", "0", "--json")
    result = json.loads(done.stdout)
    expect(done.returncode == 1 and result["value"] is None, told(done))
    expect(result["reason"] == "exhausted" and len(result["errors"]) == 2, result)
    done = ask(box, [{"error": {"class": "refused", "message": "no"}}], "x",
               "--on-failure", "sentinel")
    expect(done.returncode == 0, told(done))
    expect(json.loads(done.stdout)["sentinel"]["reason"] == "refused", told(done))
    done = ask(box, [{"error": {"class": "auth", "message": "who is it?"}}], "x")
    expect(done.returncode == 1 and b"auth: " in done.stderr, told(done))


def what_else_must_hold(box):
    low = GOOD.replace("0.9", "0.2")
    check = ["sh", "-c", "grep -q love || { echo 'love is missing' >&2; exit 1; }"]
    path = box.file("invariants.yaml", json.dumps([{"command": check}]))
    replies = [{"purpose": "execute", "text": low},
               {"purpose": "reask", "contains": "confidence > 0.5",
                "text": GOOD.replace("love", "like")},
               {"purpose": "reask", "contains": "love is missing", "text": GOOD}]
    done = ask(box, replies, "x", "-i", "confidence > 0.5", "-I", path, "--json")
    expect(done.returncode == 0, told(done))
    expect(json.loads(done.stdout)["failures"] == {"invariant": 2}, told(done))


def usage_is_checked(box):
    for words, piece in [
            (["x"], b"give --schema"),
            (["--schema", "nope", "x"], b"address, entities"),
            (["--schema", "/", "x"], b"/ is a folder"),
            (["--schema", "sentiment", "-I", "/", "x"], b"/ is a folder"),
            (["--schema", '{"a": 1}', "x"], b"JSON Schema that says something"),
            (["--schema", '{"type": "strin"}', "x"], b"strin"),
            (["--schema", "sentiment", "x"], b"--provider"),
            (["--schema", "sentiment", "--provider", "script", "x"], b"--scenario"),
            (["--schema", "sentiment", "-i", "a +", "x"], b"invariants"),
            (["--schema", "sentiment", "--max-reasks", "9", "x"], b"from 0 to 5"),
            (["--schema", "sentiment", "--on-failure", "escalate", "x"], b"error or sentinel"),
            (["--schema", "sentiment", "--schema-as", "yaml", "x"], b"prompt, types or json"),
            (["--schema", "sentiment", "--stream", "x", "--provider", "command"], b"command"),
            (["--schema", "sentiment", "--batch", "-", "--stream"], b"--stream"),
            (["--schema", "sentiment", "--jobs", "3", "x"], b"--batch")]:
        box.segue("ask", *words, status=2, err=piece)
    done = ask(box, [], "--stream", "x")
    expect(done.returncode == 2 and b"array" in done.stderr, told(done))
    done = ask(box, [], " \n")
    expect(done.returncode == 2 and b"no prompt" in done.stderr, told(done))
    done = ask(box, [], stdin=b"\xff\xfe")
    expect(done.returncode == 2 and b"UTF-8" in done.stderr, told(done))
    done = ask(box, [{"text": GOOD}], "x", "--max-reasks", "4")
    expect(done.returncode == 0 and b"warning" in done.stderr, told(done))


def every_option_fits_the_log(box):
    for words in (["--example"], ["--repair"], ["--max-reasks", "0"],
                  ["--language", "ja", "--schema-as", "types"],
                  ["--reask-provider", "script", "--reask-model", "m"],
                  ["--token-budget", "9", "--time-budget-ms", "60000"],
                  ["-i", "confidence <= 1", "--on-failure", "sentinel"],
                  ["-O", "max_tokens=5", "-m", "x"]):
        before = set(box.log_paths())
        done = ask(box, [{"text": BAD}, {"text": GOOD}], "x", "--logs", box.logs, *words)
        expect(done.returncode in (0, 1), words, told(done))
        verified(box, *(set(box.log_paths()) - before))


def the_schema_is_told_as_asked(box):
    for words, piece in (([], "- confidence: number [>= 0, <= 1] (required)"),
                         (["--schema-as", "types"], "confidence: number // >= 0, <= 1"),
                         (["--schema-as", "json"], '"confidence":{"'),
                         (["--language", "ja"], "次の構造の JSON のオブジェクトを")):
        before = set(box.log_paths())
        done = ask(box, [{"text": BAD}, {"text": GOOD}], "x", "--logs", box.logs, *words)
        expect(done.returncode == 0, words, told(done))
        log, = set(box.log_paths()) - before
        call = [r for r in map(json.loads, open(log)) if r["type"] == "call_start"][-1]
        said = "".join(p for p in call["prompt"] if isinstance(p, str))
        expect(piece in said, piece, said)


def batches_keep_their_order(box):
    lines, replies = [], []
    for i in range(40):
        lines.append({"id": i, "prompt": f"text number {i}."})
        answer = json.dumps({"sentiment": "neutral", "confidence": i / 100, "keywords": []})
        replies.append({"contains": f"text number {i}.", "purpose": "execute",
                        "text": BAD if i % 10 == 3 else answer, "delay_ms": 7 * (i % 5)})
        replies.append({"contains": f"text number {i}.", "purpose": "reask", "text": answer})
    lines.append({"id": "own", "prompt": "count", "schema": {"type": "integer"}})
    replies.append({"contains": "count", "text": "7"})
    stdin = "\n".join(json.dumps(line) for line in lines[:20]) + "\nnot json\n{\"id\": 1}\n" + \
        "\n".join(json.dumps(line) for line in lines[20:])
    done = ask(box, replies, "--batch", "-", "--jobs", "5", "--logs", box.logs,
               stdin=stdin.encode())
    expect(done.returncode == 0, told(done))
    out = [json.loads(line) for line in done.stdout.decode().splitlines()]
    expect(len(out) == 43, len(out), told(done))
    ids = [o["id"] for o in out]
    expect(ids == [*range(20), None, 1, *range(20, 40), "own"], ids)
    for o in out:
        if isinstance(o["id"], int) and o["outcome"] == "value":
            expect(o["value"]["confidence"] == o["id"] / 100, o)
            expect(o["attempts"] == (2 if o["id"] % 10 == 3 else 1), o)
    expect(out[20]["outcome"] == "bad_line" and out[20]["errors"][0]["line"] == 21, out[20])
    expect(out[21]["outcome"] == "bad_line", out[21])
    expect(out[-1]["value"] == 7 and out[-1]["raw"] == "7", out[-1])
    for piece in (b"41 asked: first pass 90.2 %, after one correction 100.0 %", b"schema 4",
                  b"2 lines could not be asked",
                  b"too few answers for advice: going by these 41, 3.9 to 22.5 % fail at first"):
        expect(piece in done.stderr, piece, told(done))
    expect(len(box.log_paths()) == 41, len(box.log_paths()))
    verified(box, *box.log_paths()[:5])
    done = ask(box, replies, "--batch", "-", "--json",
               stdin=json.dumps(lines[0]).encode() + b"\n")
    last = json.loads(done.stdout.decode().splitlines()[-1])
    expect(last["summary"]["percent"]["first_pass"] == 100, last)
    expect("by these 1, 0.0 to 79.3 %" in last["summary"]["advice"], last)


def resuming_gives_what_ask_gives(box):
    for words, replies in (([], [{"text": GOOD}]), ([], [{"text": BAD, "times": 0}]),
                           (["--on-failure", "sentinel"], [{"text": "no", "times": 0}])):
        first = ask(box, replies, "x", "--logs", box.logs, *words)
        path = box.log_paths()[-1]
        again = box.segue("resume", path)
        expect(again.returncode == first.returncode and again.stdout == first.stdout,
               told(first), "then", told(again))
        if first.returncode == 1:  # it stopped without a value: that was another round
            expect(b"segue resume: no valid value" in again.stderr, told(again))
            expect(len(of_type(records(path), "structured")) == 2, path)
        else:
            expect(again.stderr == first.stderr.replace(b"segue ask:", b"segue resume:"),
                   told(first), "then", told(again))
        quiet = box.segue("resume", "-q", path)
        expect(quiet.returncode == first.returncode and quiet.stdout == b"", told(quiet))
        lines = box.segue("resume", "--json", path).stdout.splitlines()
        expect(all("type" in json.loads(line) for line in lines), lines)
    # one that stopped before it had a value
    first = ask(box, [{"error": {"class": "auth", "message": "no key"}}], "x", "--logs", box.logs)
    expect(first.returncode == 1, told(first))
    path = box.log_paths()[-1]
    more = box.file("more.json", json.dumps({"replies": [
        {"error": {"class": "auth", "message": "no key"}}, {"text": GOOD}]}))
    again = box.segue("resume", path, "--scenario", more)
    expect(again.returncode == 0 and json.loads(again.stdout) == json.loads(GOOD), told(again))
    # a workflow of somebody's own that has the same names is none
    text = ("name: ask\nprovider: script\nmovements:\n  - name: ask\n    bare_prompt: true\n"
            "    instruction: do it\n    structured_output: {schema: sentiment, on_failure: error}\n"
            "    rules: [{condition: a, next: COMPLETE}]\n")
    box.segue("run", box.file("ask.yaml", text), "--logs", box.logs, "--cwd", box.cwd,
              "--scenario", box.file("s.json", json.dumps({"replies": [{"text": GOOD}]})), status=0)
    box.segue("resume", box.log_paths()[-1], out=b"COMPLETE")


def a_line_names_a_ready_schema(box):
    lines = [{"id": 1, "prompt": "a", "schema": "sentiment"}, {"id": 2, "prompt": "b"},
             {"id": 3, "prompt": "c", "schema": "sentimnt"},
             {"id": 4, "prompt": "d", "schema": "./x.json"}, {"id": 5, "prompt": "e", "schema": 5}]
    replies = [{"contains": "a", "text": GOOD, "times": 0}, {"text": "7", "times": 0}]
    done = ask(box, replies, "--batch", "-", "--max-reasks", "0",
               stdin="\n".join(json.dumps(line) for line in lines).encode(),
               schema='{"type": "integer"}')
    out = [json.loads(line) for line in done.stdout.decode().splitlines()]
    expect(done.returncode == 0 and len(out) == 5, told(done))
    expect(out[0]["value"] == json.loads(GOOD) and out[1]["value"] == 7, out[:2])
    for i, name in ((2, "sentimnt"), (3, "./x.json")):
        message = out[i]["errors"][0]["message"]
        expect(f'no built-in schema "{name}": use address' in message, out[i])
    expect(out[4]["outcome"] == "bad_line", out[4])


def errors_belong_to_the_answer_beside_them(box):
    rules = box.file("rules.json", json.dumps(["confidence <= 0.5", {"ai": "Is it fair?"}]))
    low = GOOD.replace("0.9", "0.4")
    replies = [{"purpose": "execute", "text": GOOD}, {"purpose": "reask", "text": low},
               {"purpose": "check", "text": "Well."}]
    done = ask(box, replies, "x", "--invariants", rules)
    expect(done.returncode == 1 and b"check_unavailable" in done.stderr, told(done))
    expect(low.encode() in done.stderr and b"0.9 is" not in done.stderr, told(done))


def enough_answers_give_advice(box):
    lines = "".join(json.dumps({"id": i, "prompt": f"text {i}."}) + "\n" for i in range(8))
    done = ask(box, [{"times": 0, "text": BAD}], "--batch", "-", stdin=lines.encode())
    for piece in (b"8 asked: first pass 0.0 %", b"over 10 % fail at first: improve the prompt"):
        expect(piece in done.stderr, piece, told(done))


def trouble_of_the_backend_is_not_in_the_rates(box):
    lines = "".join(json.dumps({"id": i, "prompt": f"text {i}."}) + "\n" for i in range(4))
    replies = [{"contains": "text 0.", "text": GOOD},
               {"times": 0, "error": {"class": "auth", "message": "no such key"}}]
    done = ask(box, replies, "--batch", "-", stdin=lines.encode())
    expect(done.returncode == 0, told(done))
    for piece in (b"4 asked: first pass 100.0 %", b"no value 0.0 %", b"by these 1, 0.0 to 79.3 %",
                  b"3 without an end, not in these rates: auth 3"):
        expect(piece in done.stderr, piece, told(done))
    done = ask(box, replies[1:], "--batch", "-", stdin=lines.encode())
    expect(done.stderr == b"4 asked\n4 without an end: auth 4\n", told(done))
    done = ask(box, replies[1:], "--batch", "-", "--json", stdin=lines.encode())
    summary = json.loads(done.stdout.decode().splitlines()[-1])["summary"]
    expect(summary["not_answered"] == 4 and summary["not_answered_by"] == {"auth": 4}, summary)
    expect("advice" not in summary, summary)


def time_that_runs_out_is_no_trouble(box):
    replies = [{"purpose": "execute", "text": BAD},
               {"purpose": "reask", "text": GOOD, "delay_ms": 600000}]
    words = ("I love it", "--time-budget-ms", "300", "--logs", box.logs)
    done = ask(box, replies, *words)
    expect(done.returncode == 1 and b"the time limit was reached" in done.stderr, told(done))
    expect(b"1.5 is greater than the maximum 1" in done.stderr, told(done))
    done = ask(box, replies, *words, "--on-failure", "sentinel")
    sentinel = json.loads(done.stdout)["sentinel"]
    expect(done.returncode == 0 and sentinel["reason"] == "time", told(done))
    hang = box.file("hang.json", json.dumps([{"command": ["sleep", "600"]}]))
    done = ask(box, [{"text": GOOD}], *words, "--invariants", hang)
    expect(done.returncode == 1 and b"the time limit was reached" in done.stderr, told(done))
    verified(box, *box.log_paths())


def a_batch_reads_a_pipe_while_it_asks(box):
    scenario = box.file("s.json", json.dumps({"replies": [{"text": GOOD, "times": 0}]}))
    fifo = box.dir + "/in"
    os.mkfifo(fifo)
    process = box.start("ask", "--schema", "sentiment", "--provider", "script", "--scenario",
                        scenario, "--batch", fifo)
    with open(fifo, "wb", buffering=0) as pipe:
        for i in range(3):  # each answer comes before the next line is written
            pipe.write(json.dumps({"id": i, "prompt": "x"}).encode() + b"\n")
            expect(json.loads(process.stdout.readline())["id"] == i, "another line")
    status, _, err = end_of(process)
    expect(status == 0 and b"3 asked" in err, status, err)


def a_signal_stops_a_batch(box):
    replies = [{"contains": "first", "text": GOOD},
               {"contains": "x", "text": GOOD, "delay_ms": 600000, "times": 0}]
    scenario = box.file("s.json", json.dumps({"replies": replies}))
    path = box.file("in.ndjson", '{"id":0,"prompt":"first"}\n' +
                    "".join(f'{{"id":{i},"prompt":"x"}}\n' for i in range(1, 30)))
    process = box.start("ask", "--schema", "sentiment", "--provider", "script", "--scenario",
                        scenario, "--batch", path, "--logs", box.logs)
    expect(json.loads(process.stdout.readline())["outcome"] == "value", "no first answer")
    process.send_signal(signal.SIGINT)
    status, out, err = end_of(process)
    expect(status == 130, status, err)
    left = [json.loads(line) for line in out.splitlines()]
    expect(all(o["outcome"] == "stopped" for o in left), left)
    verified(box, *box.log_paths())


ITEMS = {"type": "array", "minItems": 2, "items": {
    "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}


def items_arrive_one_by_one(box):
    chunks = ["Here:\n```json\n[\n", ' {"n": ', '1}', ', {"n', '": 2},', ' {"n": 3}', "]\n```"]
    schema = json.dumps(ITEMS)
    done = ask(box, [{"chunks": chunks}], "x", "--stream", schema=schema)
    expect(done.returncode == 0, told(done))
    expect(done.stdout == b'{"n":1}\n{"n":2}\n{"n":3}\n', told(done))
    done = ask(box, [{"text": "".join(chunks)}], "x", "--stream", "--json", schema=schema)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    expect([o["item"]["n"] for o in lines[:3]] == [1, 2, 3] and lines[3]["attempts"] == 1, lines)


def the_first_item_comes_before_the_answer_ends(box):
    chunks = ['[{"n": 1},', ' {"n": 2}]']
    scenario = box.file("s.json", json.dumps(
        {"replies": [{"chunks": chunks, "delay_ms": 600000}]}))
    process = box.start("ask", "--schema", json.dumps(ITEMS), "--provider", "script",
                        "--scenario", scenario, "--stream", "x")
    expect(process.stdout.readline() == b'{"n":1}\n', "no item")
    process.send_signal(signal.SIGINT)
    status, _, err = end_of(process)
    expect(status == 130, status, err)


def corrected_items_are_not_printed_twice(box):
    wrong = '[{"n": 1}, {"n": "2"}, {"n": 3}]'
    right = wrong.replace('"2"', "2")
    replies = [{"purpose": "execute", "chunks": [wrong]},
               {"purpose": "reask", "chunks": [right[:1], right[1:]]}]
    done = ask(box, replies, "x", "--stream", schema=json.dumps(ITEMS))
    expect(done.returncode == 0, told(done))
    expect(done.stdout == b'{"n":1}\n{"n":2}\n{"n":3}\n', told(done))
    replies[1] = {"purpose": "reask", "text": '[{"n": 9}, {"n": 2}]'}
    done = ask(box, replies, "x", "--stream", schema=json.dumps(ITEMS))
    expect(done.returncode == 1 and b"does not start with" in done.stderr, told(done))


def hostile_prompts_and_answers(box):
    """Whatever stands in a prompt or an answer: no template, no terminal escape, no crash."""
    prompt = "{task} {schema} {structured:ask.x} {?task}x{/task} ```json\n{}\n``` <think> \x01"
    done = ask(box, [{"contains": prompt, "purpose": "execute", "text": "{" * 5000},
                     {"contains": prompt, "purpose": "reask", "text": "[" * 200000 + "]"},
                     {"contains": prompt, "purpose": "reask", "text": GOOD}],
               prompt, "--logs", box.logs, "--json")
    expect(done.returncode == 0, told(done))
    expect(json.loads(done.stdout)["attempts"] == 3, told(done))
    verified(box, *box.log_paths())
    many = [("x" * 70000, "{" * 70000), ("y", GOOD.replace("love", "\\u0000")),
            ("z", '{"sentiment\\u0000": 1}'), ("w", "\x02\x01"), ("v", '"' + "é" * 40000),
            ("u", '{"a":' * 300 + "1" + "}" * 300), ("t", "1e999")]
    for text, answer in many:
        for logs in ([], ["--logs", box.logs]):
            done = ask(box, [{"text": answer, "times": 0}], *logs, "--json", stdin=text.encode())
            expect(done.returncode in (0, 1), answer[:40], told(done))
            json.loads(done.stdout)
    verified(box, *box.log_paths())
    done = ask(box, [{"text": GOOD.replace("love", "\\u001b[31m\\u202e")}], "x",
               env={"LANG": "C"})
    expect(done.returncode == 0 and b"\x1b" not in done.stdout, told(done))


def every_ready_schema_is_there(box):
    samples = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                           "../../schemas/presets/samples/")
    for name in ("address", "entities", "meeting", "product", "sentiment"):
        good = Path(samples + name + ".good.json").read_text()
        bad = Path(samples + name + ".bad.json").read_text()
        text = Path(samples + name + ".txt").read_text()
        done = ask(box, [{"purpose": "execute", "contains": text.strip(), "text": bad},
                         {"purpose": "reask", "text": good}], "--json", stdin=text.encode(),
                   schema=name)
        expect(done.returncode == 0, name, told(done))
        result = json.loads(done.stdout)
        expect(result["value"] == json.loads(good) and result["attempts"] == 2, name, result)


if __name__ == "__main__":
    sys.exit(main([a_value_on_stdout, a_wrong_answer_is_corrected, two_values_are_told, what_is_cut_is_no_value, right_items_of_lists_stay, entities_stand_in_order, formats_are_asserted_when_asked,
                   without_a_value,
                   what_else_must_hold, usage_is_checked, every_option_fits_the_log,
                   the_schema_is_told_as_asked,
                   batches_keep_their_order,
                   resuming_gives_what_ask_gives, a_line_names_a_ready_schema,
                   errors_belong_to_the_answer_beside_them,
                   enough_answers_give_advice, trouble_of_the_backend_is_not_in_the_rates,
                   time_that_runs_out_is_no_trouble,
                   a_batch_reads_a_pipe_while_it_asks, a_signal_stops_a_batch,
                   items_arrive_one_by_one, the_first_item_comes_before_the_answer_ends,
                   corrected_items_are_not_printed_twice, hostile_prompts_and_answers,
                   every_ready_schema_is_there]))
