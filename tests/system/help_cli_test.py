#!/usr/bin/env python3
"""segue help: a first page, commands, and keys of a workflow."""
import json
import os
import sys

from support import Box, expect, main

SCHEMA = os.path.dirname(os.path.abspath(__file__)) + "/../../schemas/workflow.json"


def the_first_page_leads_on(box):
    done = box.segue("help")
    lines = done.stdout.decode().splitlines()
    expect(done.returncode == 0, done)
    expect(any("KEY of a workflow" in line for line in lines), "it says how to go on", done)


def commands(box):
    """Those of the first page: all of them, each in a group."""
    lines = box.segue("help").stdout.decode().splitlines()
    expect("More" not in lines, "a command that is in no group", lines)
    return [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "]


def it_fits_the_terminal(box):
    """Only examples and tables are wider than a narrow one: they begin with a space, and are not broken."""
    box.env["COLUMNS"] = "100"
    names = commands(box)
    expect(len(names) > 40, names)
    for words in [[], *([name] for name in names), ["key", "judge"], ["key", "structured_output"]]:
        shown = {}
        for columns in (100, 50):
            box.env["COLUMNS"] = str(columns)
            shown[columns] = box.segue("help", *words, status=0).stdout.decode().splitlines()
        expect(all(len(line) <= 100 for line in shown[100]), words, max(shown[100], key=len))
        for line in shown[50]:
            as_is = line.startswith(" ") and line in shown[100] or len(line.split()) == 1
            expect(len(line) <= 50 or as_is, words, line)
        said = {c: " ".join(" ".join(lines).split()) for c, lines in shown.items()}
        expect(said[50] == said[100], words, "says something else on a narrow terminal")


def every_command_has_its_help(box):
    for name in commands(box):
        plain = box.segue("help", name).stdout.decode().split("\n\nIt is a key of a workflow")[0]
        for flag in ("--help", "-h"):
            done = box.segue(name, flag)
            expect(done.returncode == 0 and done.stdout.decode().rstrip() == plain.rstrip(), name, flag, done)
        done = box.segue(name, "--no-such-option", status=2, err=b"there is no option --no-such-option")
        expect(f"try: segue help {name}" in done.stderr.decode(), name, done)


def every_key_is_explained():
    with open(SCHEMA) as f:
        schema = json.load(f)
    sets = [schema, *(s for s in schema["$defs"].values() if "properties" in s)]
    with Box() as box:
        for name in sorted({key for s in sets for key in s["properties"]}):
            done = box.segue("help", "key", name)
            expect(done.returncode == 0 and done.stderr == b"", name, done)
            text = " ".join(done.stdout.decode().split())
            for described in (s["properties"][name] for s in sets if name in s["properties"]):
                if not described.get("deprecated") and "Another name" not in described["description"]:
                    expect(" ".join(described["description"].split()) in text, name, text)


def commands_and_slips(box):
    expect(b"segue run" in box.segue("help", "run").stdout, "a command goes first")
    expect(b"segue help key judge" in box.segue("help", "judge").stdout, "and names the key")
    for words, said in ((["rulez"], "did you mean rules?"), (["key", "\x1b[31m"], "no key"),
                        (["key", ""], "no key"), (["nothing-like-it"], "no command and no key")):
        done = box.segue("help", *words, status=2, err=said)
        expect(b"\x1b" not in done.stderr, "nothing steers the terminal")


def an_error_names_its_page(box):
    bad = box.file("bad.yaml", "name: x\nmovements:\n  - name: a\n    instrction: do\n    rules:\n"
              "      - {condition: ok, next: nowhere}\n      - {condition: no, next: nobody}\n")
    for words in (["lint", bad], ["run", bad, "--task", "x"]):
        said = box.segue(*words).stderr.decode().splitlines()
        expect(said[-1] == "try: segue help key instruction, segue help key next", words, said)
    for page in ("instruction", "next"):
        expect(box.segue("help", "key", page).returncode == 0, page)
    none = box.file("none.yaml", "- a\n")
    expect("try:" not in box.segue("lint", none).stderr.decode(), "no key is at fault")


def a_version_tells_what_it_can_do(box):
    told = json.loads(box.segue("version", "--all", "--json").stdout)
    lines = box.segue("version", "--all").stdout.decode().splitlines()
    short = box.segue("version").stdout.decode().splitlines()[-1]
    late = told["loaded_when_needed"]
    expect(set(late) == {"libcurl", "libmicrohttpd", "libpq", "libexpat"}, told)
    for name, what in late.items():
        version = what["version"]
        expect(version is None or version[0].isdigit(), name, told)
        expect("%s %s, for %s" % (name, version or "is missing", what["for"]) in lines, name, lines)
        expect(name in short, short)
    expect("loaded_when_needed" not in json.loads(box.segue("version", "--json").stdout), "only then")


if __name__ == "__main__":
    sys.exit(main([the_first_page_leads_on, it_fits_the_terminal, every_command_has_its_help, every_key_is_explained, commands_and_slips, an_error_names_its_page,
                   a_version_tells_what_it_can_do]))
