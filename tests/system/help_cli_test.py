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
    """All commands, each in a group; some are a noun and a verb."""
    lines = box.segue("help", "--all").stdout.decode().splitlines()
    expect("More" not in lines, "a command that is in no group", lines)
    return [line[2:19].split() for line in lines if line.startswith("  ") and line[2] != " "]


def the_first_page_is_one_screen(box):
    """What a newcomer needs, in the order of the work."""
    lines = box.segue("help").stdout.decode().splitlines()
    names = [line.split()[0] for line in lines if line.startswith("  ")]
    expect(len(lines) <= 25 and max(map(len, lines)) <= 80, len(lines), lines)
    expect(names == "until init run resume submit serve cancel ls show web inbox answer branch verify "
           "audit doctor".split(), names)
    expect(box.segue(status=0).stdout.decode().splitlines() == lines, "segue alone shows it, too")


def a_noun_leads_to_its_commands(box):
    """The words from before go on working; help, completion and a wrong verb name the new ones."""
    for noun, verb, former in (("branch", "list", "worktrees"), ("branch", "merge", "merge"),
                               ("eval", "agree", "agree"), ("json", "check", "check")):
        expect(verb in box.segue(noun, status=2).stdout.decode(), noun)
        expect(box.segue(noun, "--help", status=0).stdout == box.segue("help", noun, status=0).stdout, noun)
        wanted = box.segue(former, "--help", status=0).stdout
        expect(wanted.startswith(f"segue {noun} {verb} ".encode()), wanted)
        for words in ([noun, verb, "--help"], ["help", noun, verb], ["help", former]):
            expect(wanted in box.segue(*words, status=0).stdout, words)
        offered = box.segue("completion", "--for", "--", noun, "").stdout.decode().splitlines()
        expect(verb in [line.split("\t")[0] for line in offered], offered)
        first = box.segue("completion", "--for", "--", former[:2]).stdout.decode().splitlines()
        expect(former not in [line.split("\t")[0] for line in first], first)
        expect(box.segue("completion", "--for", "--", noun, verb, "--").stdout
               == box.segue("completion", "--for", "--", former, "--").stdout, noun, verb)
    box.segue("branch", "\x1b[31m", status=2, err="segue branch --help")
    box.segue("json", "check", "--no-such-option", status=2, err="there is no option")


def it_fits_the_terminal(box):
    """Only examples and tables are wider than a narrow one: they begin with a space, and are not broken."""
    box.env["COLUMNS"] = "100"
    names = commands(box)
    expect(len(names) > 40, names)
    for words in [[], ["--all"], *names, ["key", "judge"], ["key", "structured_output"]]:
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
    for words in commands(box):
        name = " ".join(words)
        plain = box.segue("help", *words).stdout.decode().split("\n\nIt is a key of a workflow")[0]
        for flag in ("--help", "-h"):
            done = box.segue(*words, flag)
            expect(done.returncode == 0 and done.stdout.decode().rstrip() == plain.rstrip(), name, flag, done)
        done = box.segue(*words, "--no-such-option", status=2, err=b"there is no option --no-such-option")
        expect("try: segue help " in done.stderr.decode(), name, done)


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
    sys.exit(main([the_first_page_leads_on, the_first_page_is_one_screen, a_noun_leads_to_its_commands, it_fits_the_terminal, every_command_has_its_help, every_key_is_explained, commands_and_slips, an_error_names_its_page,
                   a_version_tells_what_it_can_do]))
