#!/usr/bin/env python3
"""segue check at the shell: verdicts, messages, statuses, --registry, --batch, the official suite."""
import sys

import json
import os
import pty
import resource
import subprocess

from support import SANITIZED, SEGUE, WAIT_S, Box, expect, main

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SUITES = [os.environ.get("SEGUE_SHARED", ROOT + "/../shared") + "/data/json-schema-test-suite",
          "/usr/share/json-schema-test-suite"]
FEELING = {"type": "object",
           "properties": {"confidence": {"type": "number", "minimum": 0, "maximum": 1},
                          "sentiment": {"enum": ["positive", "negative", "neutral"]},
                          "mail": {"type": "string", "format": "email"}},
           "required": ["confidence"]}


def check(box, *words, stdin=b"", status=0, **kw):
    data = stdin if isinstance(stdin, bytes) else stdin.encode()
    done = box.segue("check", *words, stdin=data, **kw, status=status)
    return done.stdout.decode(), done.stderr.decode()


def batch(box, lines, *words, status=0):
    text = "".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines)
    out, _ = check(box, "--batch", *words, stdin=text, status=status)
    return [json.loads(line) for line in out.split("\n") if line]


# ---- files -------------------------------------------------------------------------------------------

def verdicts_and_statuses(box):
    schema = box.file("schema.json", json.dumps(FEELING))
    good = box.file("good.json", '{"confidence": 0.5}')
    bad = box.file("bad.json", '{"confidence": 1.5, "sentiment": "happy"}')
    out, err = check(box, schema, good)
    expect(out == f"ok {good}\n" and err == "", out, err)
    out, err = check(box, schema, good, bad, good, status=1)
    expect(out == f"ok {good}\n"
           f"{bad}: $.confidence: 1.5 is greater than the maximum 1\n"
           f'{bad}: $.sentiment: "happy" is not one of "positive", "negative", "neutral"\n'
           f"ok {good}\n", out)
    check(box, schema, bad, box.dir + "/nothing", good, status=2)
    check(box, schema, box.dir, status=2)
    expect(check(box, schema, stdin='{"confidence":1}')[0] == "ok -\n", "standard input")
    expect(check(box, schema, "-", good, stdin="[]", status=1)[0].startswith("-: $: "), "-")
    check(box, schema, "-", "-", status=2)
    check(box, status=2)
    check(box, schema, good, "--wrong", status=2)


def patterns_share_the_limit_of_the_check(box):
    """A key that takes all its steps ends the check; 20,000 of them cost no more."""
    schema = box.file("p.json", '{"patternProperties": {"^(a+)+$": {"type": "integer"}}}')
    value = json.dumps({"a" * 40 + f"b{n}": n for n in range(20000)})
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    out, err = check(box, schema, "-", stdin=value, status=None)
    took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    expect("too m" in out + err, out, err)
    expect(SANITIZED or took < 1.5, took)


def as_json(box):
    schema = box.file("schema.json", json.dumps(FEELING))
    bad = box.file("bad.json", '{"confidence": 1.5}')
    cut = box.file("cut.json", '{"confidence":\n')
    out, _ = check(box, "--json", schema, bad, cut, status=1)
    first, second = map(json.loads, out.splitlines())
    expect(first == {"file": bad, "valid": False, "errors": [
        {"path": "$.confidence", "pointer": "/confidence", "keyword": "maximum",
         "message": "1.5 is greater than the maximum 1"}]}, first)
    expect(second["valid"] is False and second["error"]["code"] == "not_json" and
           second["error"]["line"] == 2, second)
    out, err = check(box, "--json", box.file("s.json", '{"type":5}'), bad, status=2)
    seen = json.loads(out)
    expect(seen["valid"] is None and seen["error"]["code"] == "invalid_schema" and
           seen["error"]["errors"][0]["pointer"] == "/type" and err, seen)


def bad_schemas_have_a_place(box):
    for name, text, words in [
            ("a.json", '{"properties":{"x":{"type":"objekt"}}}', "a.json: $.properties.x.type: "),
            ("b.json", '{"type":\n  objekt}', "b.json:2:3"),
            ("c.yaml", "type: object\ntype: array\n", "c.yaml:2:1"),
            ("d.json", '{"$ref":"http://example.com/none"}', "$.$ref: "),
            ("e.json", '{"pattern":"(?<"}', "$.pattern: "),
            ("f.json", "[]", "f.json: $: "),
            ("g.json", "", "g.json:1:1")]:
        out, err = check(box, box.file(name, text), stdin="{}", status=2)
        expect(words in err and out == "", name, err)
    check(box, box.dir + "/nothing", status=2)


def yaml_is_read(box):
    schema = "type: object\nproperties:\n  n: {type: integer}\n"
    for name in ("schema.yaml", "schema.yml", "schema"):
        path = box.file(name, schema)
        good, bad = box.file("good.yaml", "n: 3\n"), box.file("bad.yaml", "n: no\n")
        out, _ = check(box, path, good, bad, status=1)
        expect(f"ok {good}\n{bad}: $.n: " in out, out)
        check(box, path, stdin="n: 3\n", status=1)  # standard input is JSON


def all_of_json_is_read(box):
    integer = box.file("i.json", '{"type":"integer"}')
    string = box.file("s.json", '{"type":"string","maxLength":1}')
    deep = box.file("d.json", '{"type":"array","items":{"$ref":"#"}}')
    check(box, integer, stdin="123456789012345678901234567890")
    check(box, string, stdin=r'"\ud800"')
    check(box, string, stdin=r'"\u0000"')
    check(box, string, stdin="\ufeff\"x\" \r\n")
    check(box, deep, stdin="[" * 1000 + "]" * 1000)
    for text, words in [("[" * 3000 + "]" * 3000, "nested too deep"), ("1e400", "too large"),
                        ("{} {}", "-:1:4: "), ("", "empty"), ('{"a":1,\n "b" 2}', "-:2:6: "),
                        (b'"\xff"', "UTF-8"), ("'x'", "-:1:1: "), ("[1", "ends inside")]:
        out, _ = check(box, deep, stdin=text, status=1)
        expect(words in out and out.startswith("-:"), text[:40], out)


def formats_drafts_and_odd_schemas(box):
    schema = box.file("schema.json", json.dumps(FEELING))
    text = '{"confidence": 1, "mail": "nobody"}'
    check(box, schema, stdin=text)
    for flag in ("--assert-format", "--formats"):
        out, _ = check(box, flag, schema, stdin=text, status=1)
        expect("$.mail: " in out and "such as name@example.org" in out, out)
    out, _ = check(box, schema, stdin='{"confidence": 2, "mail": 1, "a": []}', status=1)
    places = [line.split(": ")[1] for line in out.splitlines()]
    expect(places == sorted(places), "errors stand in the order of their places", out)
    check(box, box.file("true.json", "true"), stdin="1")
    out, _ = check(box, box.file("false.json", "false"), stdin="1", status=1)
    expect(out == "-: $: no value is allowed\n", out)
    tuples = box.file("tuple.json", '{"items":[{"type":"string"}]}')
    check(box, "--draft", "07", tuples, stdin="[1]", status=1)
    check(box, "--draft", "2019-09", tuples, stdin='["x"]')
    _, err = check(box, tuples, stdin="[1]", status=2)  # no list of schemas in 2020-12
    expect("prefixItems" in err and "draft-07" in err, err)
    check(box, "--draft", "3", tuples, stdin="[1]", status=2)


def on_a_terminal_only_the_schema(box):
    schema = box.file("schema.json", json.dumps(FEELING))
    top, side = pty.openpty()
    p = subprocess.run([SEGUE, "check", schema], stdin=side, capture_output=True, env=box.env,
                       timeout=WAIT_S)
    expect(p.returncode == 0 and p.stdout.decode() == f"ok {schema}\n", p)
    os.close(top)
    os.close(side)


def errors_cannot_steer_a_terminal(box):
    schema = box.file("schema.json", '{"additionalProperties":false}')
    out, _ = check(box, schema, stdin='{"\u202e\u009b\\u001b[31m":1}', status=1)
    expect(not any(c in out for c in "\u202e\u009b\x1b"), ascii(out))
    many = json.dumps({str(i): 1 for i in range(100)})
    out, _ = check(box, schema, stdin=many, status=1)
    expect(out.count("\n") == 65 and "and 36 more errors" in out, out[-200:])


# ---- registry ----------------------------------------------------------------------------------------

def registry_reads_below_its_folder_only(box):
    os.makedirs(box.dir + "/reg/deep/er")
    os.mkdir(box.dir + "/other")
    box.file("reg/int.json", '{"type":"integer"}')
    box.file("reg/deep/er/a b.yaml", "type: string\n")
    box.file("reg/deep/next.json", '{"$ref":"er/a%20b.yaml"}')
    box.file("reg/broken.json", '{"type":')
    box.file("other/int.json", '{"type":"null"}')
    box.file("secret.json", '{"type":"integer"}')
    os.symlink(box.dir + "/secret.json", box.dir + "/reg/link.json")
    os.symlink("int.json", box.dir + "/reg/inside.json")
    os.symlink("..", box.dir + "/reg/up")
    os.mkfifo(box.dir + "/reg/fifo.json")
    base = "https://example.com/schemas/"

    def ref(uri, *words, stdin="1", status=0):
        path = box.file("schema.json", json.dumps({"$ref": uri}))
        return check(box, *words, "--registry", f"{base}={box.dir}/reg", path, stdin=stdin,
                     status=status)

    ref(base + "int.json")
    ref(base + "int.json", stdin='"x"', status=1)
    ref(base + "int.json#", stdin='"x"', status=1)
    ref(base + "deep/next.json", stdin='"x"')
    ref(base + "deep/next.json", status=1)
    for name in ("link.json", "../secret.json", "%2e%2e/secret.json", "..%2fsecret.json",
                 "up/secret.json", "up/reg/int.json", "deep/../../secret.json", "fifo.json",
                 "nothing.json", "", "deep", "%00", "int.json%00", "/etc/passwd"):
        _, err = ref(base + name, status=2)
        expect("$.$ref: " in err, name, err)
    _, err = ref(base + "broken.json", status=2)
    expect("reg/broken.json:1:9" in err, err)
    ref("https://example.com/schemas2/int.json", status=2)
    # the longest prefix wins; one without a slash at its end stands for whole steps
    ref(base + "o/int.json", "--registry", f"{base}o={box.dir}/other", stdin="null")
    ref(base + "oint.json", "--registry", f"{base}o={box.dir}/other", status=2)
    for wrong in ("nothing", "=x", "http://x/=", "http://x/=" + box.dir + "/nowhere"):
        check(box, "--registry", wrong, box.dir + "/schema.json", stdin="1", status=2)


# ---- a batch -----------------------------------------------------------------------------------------

def batch_answers_in_order(box):
    seen = batch(box, [
        {"schema": FEELING, "data": {"confidence": 2}},
        {"schema": FEELING, "data": {"confidence": 1}, "id": [1]},
        "no json\n",
        "\n",
        "[]\n",
        {"schema": {"type": "x"}, "data": 1},
        {"schema": True, "data": None},
        {"schema": False, "data": 1},
        {"data": 1},
        {"schema": {}},
        {"schema": {"$ref": "http://example.com/none"}, "data": 1},
        {"schema": {"pattern": "^(a+)+$"}, "data": "a" * 5000 + "!"},
        {"schema": {"type": "array", "uniqueItems": True, "items": {"type": "object"}},
         "data": [1] * 70},
        '{"schema":{"type":"integer"},"data":123456789012345678901234567890}\n',
        '{"schema":{"maxLength":1},"data":"\\udc00"}',
    ])
    expect([r["valid"] for r in seen] == [False, True, None, None, None, True, False, None, None,
                                          None, None, False, True, True],
           [r["valid"] for r in seen])
    expect(seen[0] == {"valid": False, "errors": [
        {"path": "$.confidence", "pointer": "/confidence", "keyword": "maximum",
         "message": "2 is greater than the maximum 1"}]}, seen[0])
    expect(seen[1] == {"id": [1], "valid": True, "errors": []}, seen[1])
    codes = [r.get("error", {}).get("code") for r in seen]
    expect(codes == [None, None, "bad_line", "bad_line", "invalid_schema", None, None, "bad_line",
                     "bad_line", "invalid_schema", "too_complex", None, None, None], codes)
    expect("line 3" in seen[2]["error"]["message"], seen[2])
    expect(seen[4]["error"]["errors"][0]["pointer"] == "/type", seen[4])
    expect(batch(box, []) == [], "no lines, no answers")


def batch_of_texts(box):
    """What a model said, as segue audit --errors exports it: no JSON is no valid answer."""
    seen = batch(box, [{"schema": FEELING, "text": '{"confidence": 2}'}, {"schema": FEELING, "text": '{"confidence": 1}'},
                       {"schema": FEELING, "text": "I feel {fine}", "id": "x"}, {"schema": FEELING, "text": ""},
                       {"schema": FEELING, "text": "no", "data": {"confidence": 1}}, {"text": "{}"}])
    expect([r["valid"] for r in seen] == [False, True, False, False, True, None], seen)
    expect([e["keyword"] for e in seen[2]["errors"]] == ["parse"] and seen[2]["id"] == "x", seen[2])
    expect("not JSON" in seen[2]["errors"][0]["message"], seen[2])


def batch_with_a_schema_and_files(box):
    schema = box.file("schema.json", '{"type":"integer"}')
    one = box.file("one.ndjson", '{"data":1}\n{"data":"x"}\n{"schema":true,"data":"x"}\n')
    two = box.file("two.ndjson", '\ufeff{"data":2}')
    expect([r["valid"] for r in batch(box, [{"data": 1}, {"data": None}], schema)] ==
           [True, False], "standard input")
    expect([r["valid"] for r in batch(box, [], schema, one, two)] == [True, False, True, True],
           "files")
    expect([r["valid"] for r in batch(box, [], "-", one)] == [None, None, True], "no schema")
    expect([r["valid"] for r in batch(box, ['{"data":1,"schema":true}'], "-")] == [True], "-")
    _, err = check(box, "--batch", one, status=2)
    expect("segue check --batch - LINES" in err, err)
    check(box, "--batch", box.file("bad.json", '{"type":1}'), status=2)
    check(box, "--batch", "-", box.dir + "/nothing", status=2)


def many_schemas_in_a_batch(box):
    lines = [{"schema": {"const": i % 90}, "data": i % 90 + i // 300} for i in range(400)]
    expect([r["valid"] for r in batch(box, lines)] == [i < 300 for i in range(400)], "verdicts")
    big = {"enum": ["x" * 1000 + str(i) for i in range(5000)]}  # 5 MB: two do not fit together
    lines = [{"schema": {**big, "title": str(i % 2)}, "data": "x" * 1000 + "7"}
             for i in range(6)]
    expect(all(r["valid"] for r in batch(box, lines)), "large schemas")


def batch_answers_each_line_at_once(box):
    p = subprocess.Popen([SEGUE, "check", "--batch"], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, env=box.env, cwd=box.cwd)
    for i in range(3):
        p.stdin.write(json.dumps({"schema": {"const": 1}, "data": i}).encode() + b"\n")
        p.stdin.flush()
        expect(json.loads(p.stdout.readline())["valid"] is (i == 1), "line", i)
    p.stdin.close()
    expect(p.wait() == 0, "status", p.returncode)
    p.stdout.close()


def a_schema_that_says_nothing(box):
    for schema, status in (({"invalid": "schema"}, 2), ({"tpye": "string"}, 2), ({}, 0), ({"title": "x"}, 0),
                           ({"$ref": "#"}, 2), ({"$defs": {}}, 0)):
        done = box.segue("check", box.file("s.json", json.dumps(schema)), status=status)
        out, err = done.stdout.decode(), done.stderr.decode()
        expect(status == 0 or "keyword" in out + err or "itself" in out + err, schema, out, err)


def the_official_suite():
    root = next((s for s in SUITES if os.path.isdir(s + "/tests/draft7")), None)
    if root is None:
        return "skipped: no JSON-Schema-Test-Suite here"
    said = []
    for folder, draft in (("draft2020-12", "2020-12"), ("draft2019-09", "2019-09"),
                          ("draft7", "07")):
        if not os.path.isdir(f"{root}/tests/{folder}"):
            continue
        lines, wanted, names = [], [], []
        for name in sorted(os.listdir(f"{root}/tests/{folder}")):
            if not name.endswith(".json"):
                continue
            with open(f"{root}/tests/{folder}/{name}", encoding="utf-8") as f:
                for group in json.load(f):
                    for test in group["tests"]:
                        lines.append({"schema": group["schema"], "data": test["data"]})
                        wanted.append(test["valid"])
                        names.append(f"{name}: {group['description']}: {test['description']}")
        with Box() as box:
            seen = batch(box, lines, "--draft", draft, "--registry",
                         f"http://localhost:1234/={root}/remotes")
        expect(len(seen) == len(wanted), folder, "answers:", len(seen), "tests:", len(wanted))
        wrong = [f"{n}: {r}" for n, w, r in zip(names, wanted, seen)
                 if r["valid"] is not w or bool(r["errors"]) is w]
        expect(not wrong, folder, len(wrong), "wrong:", *wrong[:5])
        said.append(f"{folder} {len(seen)}/{len(wanted)}")
    return ", ".join(said)


# ---- invariants --------------------------------------------------------------------------------------

ORDER = '{"items":[{"price":10},{"price":20}],"total":25,"start":"2024-02-01","end":"2024-01-31"}'
SUM = "sum(items[].price) == total"


def invariants_come_after_the_schema(box):
    schema = box.file("schema.json", '{"required":["name"],"properties":{"total":{"type":"number"}}}')
    order = box.file("order.json", ORDER)
    out, err = check(box, schema, order, "--invariant", SUM, "-i", "end > start", status=1)
    expect(out == f'{order}: $: the required property "name" is missing\n'
           f"{order}: $.total: invariant {SUM} does not hold: 30 is not 25\n"
           f'{order}: $.end: invariant end > start does not hold: "2024-01-31" is not after '
           '"2024-02-01"\n' and err == "", out, err)
    out, _ = check(box, box.file("any.json", "true"), "--json", "--invariant", SUM, stdin=ORDER,
                   status=1)
    expect(json.loads(out)["errors"] == [
        {"path": "$.total", "pointer": "/total", "keyword": "invariant",
         "message": f"invariant {SUM} does not hold: 30 is not 25"}], out)
    check(box, box.dir + "/any.json", order, "--invariant", "total < 26 && has(items)")
    out, _ = check(box, box.dir + "/any.json", "--invariant", "pric > 0 / zero",
                   stdin='{"price":1,"zero":0}', status=1)
    expect("$.zero: invariant pric > 0 / zero cannot be checked: division by zero" in out, out)
    for wrong, words in (("total = 1", "write == (at byte 6 of"), ("sum(items", "found the end"),
                         ("smu(items) > 1", "did you mean sum?"), ("", "is empty")):
        out, err = check(box, schema, order, "--invariant", wrong, status=2)
        expect(out == "" and "segue check: --invariant: " in err and words in err, wrong, err)


def invariants_from_a_file(box):
    anything = box.file("any.json", "true")
    order = box.file("order.json", ORDER)
    say = box.file("say.sh", "#!/bin/sh\ncat > \"$1\"\n"
                   "echo '{\"path\": \"$.items[1].price\", \"message\": \"too dear\"}'\n"
                   "echo '{\"pointer\": \"/start\", \"message\": \"too late\"}'\nexit 3\n")
    os.chmod(say, 0o755)
    rules = box.file("rules.yaml", "- total >= 25\n- expr: end != start\n  message: no time at all\n"
                     f"- command: [{say}, {box.dir}/seen]\n- command: ['true']\n")
    out, err = check(box, anything, order, "--invariants", rules, status=1)
    expect(out == f"{order}: $.items[1].price: too dear\n{order}: $.start: too late\n", out, err)
    with open(box.dir + "/seen", encoding="utf-8") as seen:
        expect(json.load(seen) == json.loads(ORDER), "the value on standard input")
    os.remove(box.dir + "/seen")
    out, _ = check(box, anything, order, "--invariants", rules, "--invariant", SUM, status=1)
    expect("30 is not 25" in out and not os.path.exists(box.dir + "/seen"),
           "commands come only when the expressions hold", out)
    out, _ = check(box, anything, order, "--invariants",
                   box.file("w.json", '[{"command":["sh","-c","echo the sum >&2; exit 9"],'
                                      '"message":"it must add up","path":"/total"}]'), status=1)
    expect(out == f"{order}: $.total: it must add up (exit status 9: the sum)\n", out)
    _, err = check(box, anything, order, "--invariants",
                   box.file("k.json", '[{"command":["sh","-c","kill -9 $$"]}]'), status=2)
    expect("was killed or did not run (exit status 137): nothing is known" in err, err)
    for text, words in (('[{"command":["/no/such/program"]}]', "cannot run /no/such/program"),
                        ('[{"ai":"is it fine?"}]', "asks a model"), ('{"expr":"a"}', "a list of"),
                        ('["a >"]', "$[0]: a value is missing"), ("[", "f.json:1")):
        _, err = check(box, anything, order, "--invariants", box.file("f.json", text), status=2)
        expect(words in err, text, err)
    check(box, anything, order, "--invariants", box.dir + "/nothing", status=2)
    out, _ = check(box, anything, order, "--json", "--invariants",
                   box.file("f.json", '[{"command":["/no/such/program"]}]'), status=2)
    expect(json.loads(out)["valid"] is None and json.loads(out)["error"]["code"] == "command", out)


def invariants_of_a_batch(box):
    rules = box.file("rules.json", '[{"command":["grep","-q","good"],"message":"not good"}]')
    seen = batch(box, [
        {"id": 1, "schema": {"type": "object"}, "data": {"a": 1}, "invariants": ["a == 2"]},
        {"data": {"a": "good"}, "invariants": ["a == 'good'"]},
        {"schema": {"required": ["b"]}, "data": {"a": 1}, "invariants": ["a > 1"]},
        {"data": 1, "invariants": [{"command": ["touch", box.dir + "/made"]}]},
        {"data": 1, "invariants": ["a ="]}, {"data": 1, "invariants": {}}, {"invariants": []}])
    expect(seen[0]["id"] == 1 and seen[0]["errors"][0]["keyword"] == "invariant", seen[0])
    expect(seen[1] == {"valid": True, "errors": []}, seen[1])
    expect([e["keyword"] for e in seen[2]["errors"]] == ["required", "invariant"], seen[2])
    for line in seen[3:6]:
        expect(line["valid"] is None and line["error"]["code"] == "bad_invariants", line)
    expect(not os.path.exists(box.dir + "/made"), "a line of a batch ran a command")
    expect(seen[6]["error"]["code"] == "bad_line", seen[6])
    seen = batch(box, [{"schema": True, "data": "good"}, {"schema": True, "data": "bad"}],
                 "--invariants", rules)
    expect(seen[0]["valid"] and not seen[1]["valid"] and
           seen[1]["errors"][0]["message"].startswith("not good"), seen)


def a_schema_alone_is_looked_at(box):
    schema = box.file("schema.json", '{"type":"object","properties":{"vendor":{"type":"string"},'
                      '"note":{"type":["string","null"]},"paid":{"type":"boolean"}},'
                      '"required":["vendor","note","paid"]}')
    with open("/dev/null", "rb") as null:
        done = subprocess.run([SEGUE, "check", schema], stdin=null, capture_output=True, env=box.env)
        text = done.stdout.decode()
        expect(done.returncode == 0 and text.startswith(f"ok {schema}\n") and
               f"{schema}: warning: $.properties.vendor: required and not nullable" in text and
               f"{schema}: warning: $: no enum, bound or invariant" in text and
               "note" not in text and "paid" not in text, text)
    with open("/dev/null", "rb") as null:
        done = subprocess.run([SEGUE, "check", "--json", schema, "--invariant", "has(note)"],
                              stdin=null, capture_output=True, env=box.env)
        seen = json.loads(done.stdout)
        expect([w["pointer"] for w in seen["warnings"]] == ["/properties/vendor"], seen)


# ---- around it ---------------------------------------------------------------------------------------

def older_drafts_and_openapi(box):
    """They are read as draft 07; a later draft's word for null stays what the draft says: nothing."""
    four = {"$schema": "http://json-schema.org/draft-04/schema#", "id": "http://example.org/four",
            "properties": {"n": {"minimum": 0, "exclusiveMinimum": True}, "id": {"type": "string"},
                           "r": {"$ref": "four#/definitions/even"}},
            "definitions": {"even": {"multipleOf": 2, "maximum": 10, "exclusiveMaximum": False}}}
    open_api = {"type": "object", "properties": {"a": {"type": "string", "nullable": True, "enum": ["x"]},
                                                 "n": {"minimum": 1, "exclusiveMinimum": True}}}
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "string", "nullable": True}
    for schema, value, status in ((four, {"n": 0}, 1), (four, {"n": 1, "id": "x", "r": 10}, 0), (four, {"r": 3}, 1),
                                  (four, {"id": 5}, 1), (open_api, {"a": None}, 0), (open_api, {"a": "y"}, 1),
                                  (open_api, {"n": 1}, 1), (open_api, {"n": 2}, 0), (draft, None, 1)):
        path = box.file("schema.json", json.dumps(schema))
        out, err = check(box, path, "-", stdin=json.dumps(value), status=status)
        expect(err == "", schema, value, out, err)
    later = {**four, "$schema": "http://json-schema.org/draft-07/schema#"}
    check(box, box.file("later.json", json.dumps(later)), "-", stdin="{}", status=2)


def references_to_files_beside(box):
    os.makedirs(box.cwd + "/sub/deep")
    box.file("work/sub/main.json", json.dumps({"properties": {"a": {"$ref": "part.json#/$defs/p"},
                                                              "b": {"$ref": "deep/other.json"}}}))
    box.file("work/sub/part.json", json.dumps({"$defs": {"p": {"type": "integer"}}}))
    box.file("work/sub/deep/other.json", json.dumps({"$ref": "third.json"}))
    box.file("work/sub/deep/third.json", json.dumps({"enum": [3]}))
    for value, status in (({"a": 1, "b": 3}, 0), ({"a": "x"}, 1), ({"b": 4}, 1)):
        check(box, "sub/main.json", "-", stdin=json.dumps(value), status=status)
        check(box, box.cwd + "/sub/main.json", "-", stdin=json.dumps(value), status=status)
    box.file("secret.json", json.dumps({"const": "secret"}))
    for out in ("../../secret.json", box.dir + "/secret.json", "none.json"):
        path = box.file("work/sub/out.json", json.dumps({"$ref": out}))
        said = check(box, path, "-", stdin="1", status=2)
        expect("leads nowhere" in "".join(said) and "secret\"" not in "".join(said), said)


def output_that_cannot_be_written():
    with Box() as box, open("/dev/full", "wb") as full:
        schema = box.file("schema.json", "true")
        for words, text in (((schema,), b"[1]"), (("--batch",), b'{"schema":true,"data":1}\n')):
            p = subprocess.run([SEGUE, "check", *words], input=text, stdout=full,
                               stderr=subprocess.PIPE, env=box.env)
            expect(p.returncode == 1 and b"cannot write" in p.stderr, p.returncode, p.stderr)


def ready_schemas_have_names(box):
    mood = {"sentiment": "positive", "confidence": 1, "keywords": []}
    check(box, "sentiment", stdin=json.dumps(mood))
    out, _ = check(box, "sentiment", stdin=json.dumps({**mood, "confidence": 2}), status=1)
    expect("$.confidence: 2 is greater than the maximum 1" in out, out)
    expect(batch(box, [{"data": mood}], "sentiment")[0]["valid"], "a line")
    done = box.segue("extract", "--schema", "sentiment", stdin=json.dumps([1, mood]).encode())
    expect(json.loads(done.stdout) == mood, done.stdout, done.stderr)


def usage_and_help(box):
    text = box.segue("help", "check").stdout.decode()
    for word in ("--assert-format", "--registry", "--batch", "--json", "--draft", "surrogates", "Exit:",
                 "--invariant ", "--invariants", "expressions"):
        expect(word in text, word, "is not in the help")
    text = box.segue("help", "expressions").stdout.decode()
    for word in ("sum(items[].price) == total", "instants", "null", "startsWith", "when("):
        expect(word in text, word, "is not in the help of expressions")
    done = box.segue("completion", "--for", "--", "check", "--").stdout.decode()
    expect("--assert-format" in done, "completion")


if __name__ == "__main__":
    sys.exit(main([older_drafts_and_openapi, references_to_files_beside, a_schema_that_says_nothing,
        verdicts_and_statuses, patterns_share_the_limit_of_the_check, as_json, bad_schemas_have_a_place, yaml_is_read, all_of_json_is_read,
        formats_drafts_and_odd_schemas, on_a_terminal_only_the_schema,
        errors_cannot_steer_a_terminal, registry_reads_below_its_folder_only, batch_answers_in_order, batch_of_texts,
        batch_with_a_schema_and_files, many_schemas_in_a_batch, batch_answers_each_line_at_once,
        invariants_come_after_the_schema, invariants_from_a_file, invariants_of_a_batch,
        a_schema_alone_is_looked_at, the_official_suite, output_that_cannot_be_written,
        ready_schemas_have_names, usage_and_help]))
