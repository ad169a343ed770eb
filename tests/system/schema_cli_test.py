#!/usr/bin/env python3
"""segue schema at the shell: renderings, statuses, messages, standard input, presets."""
import sys

import glob
import json
import os

from support import expect, main

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PERSON = {"type": "object", "description": "Somebody",
          "properties": {"name": {"type": "string", "minLength": 1, "title": "Name"},
                         "mail": {"type": ["string", "null"], "format": "email"},
                         "tags": {"type": "array", "items": {"enum": ["a", "b"]}}},
          "required": ["name"], "additionalProperties": False}


def schema(box, *words, stdin=b"", status=0, **kw):
    data = stdin if isinstance(stdin, bytes) else stdin.encode()
    done = box.segue("schema", *words, stdin=data, **kw, status=status)
    return done.stdout.decode(), done.stderr.decode()


def renderings(box):
    file = box.file("person.json", json.dumps(PERSON))
    out, err = schema(box, file, "--as", "prompt")
    expect("- name: string [at least 1 character] (required) - Name\n" in out and err == "", out)
    expect("Use null only where it is allowed: mail." in out, out)
    out, _ = schema(box, file, "--as", "prompt", "--language", "ja")
    expect("- name: 文字列 [1 文字以上] (必須) - Name\n" in out, out)
    out, _ = schema(box, file, "--as=types")
    expect("  mail?: string | null // format: email\n" in out, out)
    out, _ = schema(box, file, "--as", "json")
    expect(json.loads(out) == PERSON and out.count("\n") == 1, out)
    out, _ = schema(box, file, "--as", "json", "--annotations", "drop")
    expect("Somebody" not in out and "title" not in out and "minLength" in out, out)
    out, _ = schema(box, file, "--as", "example")
    expect(json.loads(out) == {"name": "<string>", "mail": "<email>", "tags": ["a"]}, out)
    out, _ = schema(box, file, "--as", "example", "--formats")
    expect(json.loads(out)["mail"] == "name1@example.com", out)


def members_have_one_order(box):
    """In every rendering: as parts describe them, and then what is only required."""
    parts = [{"properties": {"zeta": {"type": "string"}}}, {"properties": {"alpha": {"type": "string"}}}]
    for document in ({"type": "object", "allOf": parts, "required": ["omega", "alpha", "zeta"]},
                     {"type": "object", **parts[0], "allOf": parts[1:], "required": ["alpha", "zeta", "omega"]}):
        file = box.file("order.json", json.dumps(document))
        for form in ("prompt", "types", "example", "gbnf", "openai", "anthropic", "gemini", "ollama"):
            out, _ = schema(box, file, "--as", form)
            at = [out.find(name) for name in ("zeta", "alpha", "omega")]
            expect(at == sorted(at) and at[0] >= 0, form, out)


def overview(box):
    file = box.file("person.json", json.dumps(PERSON))
    out, err = schema(box, file)
    expect(out.startswith("prompt\n\nReturn one JSON object") and "\nexample\n\n{\n" in out, out)
    expect("\nwarnings\n\n" in out and err == "", out, err)
    out, _ = schema(box, "-", stdin='{"type":"object","properties":{"a":{"enum":["x","y"]}}}')
    expect(out.endswith("\nwarnings\n\nnone\n"), out)
    out, _ = schema(box, "-", stdin='{"title": "x"}')
    expect("any JSON is valid" in out, out)
    out, _ = schema(box, "-", stdin='{"type":"object","properties":{"a":false},"required":["a"]}')
    expect("no example (no_example): /properties/a: " in out, out)


def files(box):
    expect(schema(box, "-", "--as", "types", stdin="type: integer\nmaximum: 3\n")[0] ==
           "integer // <= 3\n", "YAML")
    bad = box.file("bad.json", '{"type":\n  oops}')
    out, err = schema(box, bad, status=2)
    expect(out == "" and f"{bad}:2:3: " in err, err)
    out, err = schema(box, "-", stdin='{"properties":{"a":{"type":"strin"}}}', status=2)
    expect(out == "" and "-: $.properties.a.type: " in err, err)
    out, err = schema(box, box.dir + "/nothing", status=2)
    expect("nothing" in err, err)
    schema(box, status=2)
    schema(box, bad, bad, status=2)
    folder = os.path.join(box.dir, "docs")
    os.mkdir(folder)
    box.file("docs/age.json", '{"type":"integer","minimum":18}')
    text = '{"properties":{"age":{"$ref":"https://e.example/age.json"}}}'
    out, err = schema(box, "-", stdin=text, status=2)
    expect("leads nowhere" in err, err)
    out, _ = schema(box, "-", "--registry", f"https://e.example/={folder}", "--as", "prompt",
                    stdin=text)
    expect("- age: integer [>= 18] (optional)" in out, out)
    out, _ = schema(box, "-", "--draft", "07", "--as", "types",
                    stdin='{"items":[{"type":"null"}],"additionalItems":false}')
    expect(out == "[null] // no other items\n", out)


def usage(box):
    file = box.file("person.json", json.dumps(PERSON))
    for words, wanted in [(["--as", "exmple"], "did you mean example?"),
                          (["--as", "xyzzy"], "write one of prompt, types, json, example"),
                          (["--language", "de"], "en or ja"),
                          (["--annotations", "some"], "keep or drop"),
                          (["--draft", "4"], "2020-12"), (["--registry", "x"], "PREFIX=DIR")]:
        out, err = schema(box, file, *words, status=2)
        expect(out == "" and wanted in err, words, err)
    out, err = schema(box, "-", "--as", "example", stdin="false", status=1)
    expect(out == "" and "no example" in err, err)
    expect("--report" in schema(box, "--help")[0], "help")


def reports(box):
    file = box.file("person.json", json.dumps(PERSON))
    for name in ["prompt", "types", "json", "example"]:
        expect(schema(box, file, "--as", name, "--report") == ("", ""), name, "holds all")
    text = '{"type":"object","properties":{"a":false},"required":["a"]}'
    out, _ = schema(box, "-", "--report", "--as", "example", stdin=text)
    lines = [json.loads(line) for line in out.splitlines()]
    expect(len(lines) == 1 and lines[0]["as"] == "example" and
           lines[0]["pointer"] == "/properties/a" and lines[0]["why"], out)


def grammar_and_dialects(box):
    text = '{"type":"object","properties":{"a":{"type":"array","uniqueItems":true}}}'
    out, err = schema(box, "-", "--as", "gbnf", stdin=text)
    expect(out.startswith("root ::= ") and "1 keyword is not expressed" in err, out, err)
    out, err = schema(box, "-", "--as", "gbnf", "--report", stdin=text)
    line = json.loads(out)
    expect(line["pointer"] == "/properties/a/uniqueItems" and line["as"] == "gbnf" and
           line["keyword"] == "uniqueItems" and line["why"] and err == "", out, err)
    plain, _ = schema(box, "-", "--as", "gbnf", stdin='{"type":"integer"}')
    think, _ = schema(box, "-", "--as", "gbnf", "--think", stdin='{"type":"integer"}')
    expect("think" in think and "think" not in plain, think)
    out, err = schema(box, "-", "--as", "gbnf", stdin="false", status=1)
    expect(out == "" and "no grammar (unsatisfiable)" in err, err)
    file = box.file("person.json", json.dumps(PERSON))
    for name in ["openai", "anthropic", "gemini", "ollama", "llamacpp", "codex", "claude"]:
        out, _ = schema(box, file, "--as", name)
        expect(json.loads(out)["type"] == "object", name, out)
        for line in schema(box, file, "--as", name, "--report")[0].splitlines():
            note = json.loads(line)
            expect(note["as"] == name and note["pointer"].startswith("/") and
                   note["effect"] in ("rewritten", "described", "dropped", "narrowed"), note)
    expect(sorted(json.loads(schema(box, file, "--as", "openai")[0])["required"]) ==
           ["mail", "name", "tags"], "all are required")


def presets(box):
    for path in sorted(glob.glob(ROOT + "/schemas/presets/*.json")):
        name = os.path.basename(path)[:-5]
        with open(path, encoding="utf-8") as f:
            preset = json.load(f)
        expect(json.loads(schema(box, name, "--as", "json")[0]) == preset, name)
        example = box.file("example.json", schema(box, name, "--as", "example")[0])
        done = box.segue("check", path, example)
        # words stand for a text that must match a pattern, and the report has each of them
        words = schema(box, name, "--as", "example", "--report")[0].splitlines()
        wrong = [line for line in done.stdout.decode().splitlines() if not line.startswith("ok ")]
        expect(len(wrong) == len(words) and all("<text that matches " in line for line in wrong), name, wrong)
    # a file of that name wins
    box.file("work/sentiment", '{"type":"boolean"}')
    out, _ = schema(box, "sentiment", "--as", "types")
    expect(out == "boolean\n", out)


def own_schemas(box):
    for path in sorted(glob.glob(ROOT + "/schemas/*.json")):
        for name in ["prompt", "types", "json", "example"]:
            out, err = schema(box, path, "--as", name)
            expect(out and (not err or name == "example" and "--report lists" in err), path, name, err)
    for word, says in (("judgement", "did you mean judgment?"), ("xyzzy", "no schema of that name comes with segue")):
        box.segue("schema", word, status=2, err=says.encode())


if __name__ == "__main__":
    sys.exit(main([renderings, members_have_one_order, overview, files, usage, reports, grammar_and_dialects, presets, own_schemas]))
