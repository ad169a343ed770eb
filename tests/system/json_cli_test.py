#!/usr/bin/env python3
"""--json of commands that look at things: what a script reads of them, errors included; the formats
that are compiled in; workflows that are called by their name."""
import json
import os
import sys

from daemon import ROOT, DaemonBox
from support import Box, expect, main

GOOD = "name: x\nmovements:\n  - name: plan\n    command: [echo, done]\n    rules:\n" \
       "      - {condition: when(exit == 0), next: COMPLETE}\n"
BAD = GOOD.replace("COMPLETE", "revew")


def lines(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def lint(box):
    good, bad = box.file("good.yaml", GOOD), box.file("bad.yaml", BAD)
    done = box.segue("lint", "--json", good, bad, box.dir + "/none.yaml")
    first, second, third = lines(done)
    expect(done.returncode == 2 and done.stderr == b"", done.returncode, done.stderr)
    expect(first == {"file": good, "ok": True, "movements": 1, "facets": [], "errors": [],
                     "warnings": first["warnings"]}, first)
    error = second["errors"][0]
    expect(not second["ok"] and error["file"] == bad and error["line"] == 6 and
           "there is no movement revew" in error["message"], second)
    expect(not third["ok"] and "none.yaml" in third["errors"][0]["message"], third)


def lint_for_others(box):
    good, bad = box.file("good.yaml", GOOD), box.file("a,b 100%.yaml", BAD)
    done = box.segue("lint", "--format", "github", "-q", good, bad, box.dir + "/none.yaml")
    told = done.stdout.decode().splitlines()
    expect(done.returncode == 2 and len(told) == 2, told)
    place = bad.replace("%", "%25").replace(",", "%2C")
    expect(told[0].startswith(f"::error file={place},line=6,col=") and
           ",title=segue lint::" in told[0] and "there is no movement revew" in told[0], told[0])
    expect(told[1].startswith(f"::error file={box.dir}/none.yaml,line=1,col=1,"), told[1])
    done = box.segue("lint", "--format", "sarif", good, bad)
    document = json.loads(done.stdout)
    results = document["runs"][0]["results"]
    errors = [r for r in results if r["level"] == "error"]
    expect(done.returncode == 2 and document["version"] == "2.1.0" and len(errors) == 1, results)
    where = errors[0]["locations"][0]["physicalLocation"]
    expect(where["artifactLocation"]["uri"] == "file://" + bad.replace("%", "%25").replace(
        ",", "%2C").replace(" ", "%20") and where["region"]["startLine"] == 6, where)
    rules = [r["id"] for r in document["runs"][0]["tool"]["driver"]["rules"]]
    expect(all(r["ruleId"] in rules for r in results), rules)
    expect(len(json.loads(box.segue("lint", "--format", "sarif", "-q", good).stdout)["runs"][0]["results"]) == 0,
           "nothing is found")
    for words in (["--format", "xml"], ["--format", "sarif", "--json"]):
        box.segue("lint", *words, good, status=2, err=b"--format is one of")


def prompt(box):
    flow = box.file("w.yaml", GOOD.replace("command: [echo, done]", "instruction: Do {task}.")
                    .replace("when(exit == 0)", "it is done"))
    plain = box.segue("prompt", flow, "plan", "--task", "it").stdout.decode()
    [told] = lines(box.segue("prompt", flow, "plan", "--task", "it", "--json"))
    expect(told == {"movement": "plan", "stage": None, "prompt": plain, "facets": []}, told)
    done = box.segue("prompt", flow, "plna", "--json")
    expect(done.returncode == 2 and "did you mean" in lines(done)[0]["error"]["message"], done)


def schemas(box):
    """What is compiled in comes out byte for byte."""
    for name in ("workflow", "session-log", "judgment", "evaluation", "provider-profile", "api"):
        with open(f"{ROOT}/schemas/{name}.json", "rb") as f:
            expect(box.segue("schema", name).stdout == f.read(), name)
    expect("no file" in box.segue("schema", "workfow").stderr.decode().lower() or
           box.segue("schema", "workfow").returncode == 2, "a name that is none")
    [told] = lines(box.segue("schema", "sentiment", "--json"))
    expect([r["as"] for r in told["renderings"]] == ["prompt", "example"], told)
    plain = box.segue("schema", "sentiment", "--as", "gbnf").stdout.decode()
    [told] = lines(box.segue("schema", "sentiment", "--as", "gbnf", "--json"))
    expect(told["renderings"][0]["text"] == plain and
           isinstance(told["renderings"][0]["not_held"], list), told)
    done = box.segue("schema", "-", "--as", "example", "--json", stdin=b"false")
    expect(done.returncode == 1 and lines(done)[0]["renderings"][0]["text"] is None, done)


def errors_of_run(box):
    bad, good = box.file("bad.yaml", BAD), box.file("good.yaml", GOOD)
    done = box.segue("run", bad, "--json", "--logs", box.logs)
    [told] = lines(done)
    expect(done.returncode == 2 and told["error"]["line"] == 6 and told["error"]["file"] == bad,
           told)
    expect(b"there is no movement revew" in done.stderr, done.stderr)
    done = box.segue("run", good, "--json", "--provider", "claud", "--logs", box.logs)
    expect("claud" in lines(done)[0]["error"]["message"] and done.returncode == 2, done)
    done = box.segue("run", good, "--provider", "claud", "--logs", box.logs)
    expect(done.stdout == b"", "without --json nothing is told there", done.stdout)


def cancel(box: DaemonBox):
    box.serve()
    flow = box.file("w.yaml", GOOD.replace("[echo, done]", "[sleep, '100']"))
    sid = box.submit(flow)
    box.wait_status(sid, "running")
    told = lines(box.segue("cancel", sid, "0000", "--json"))
    expect(told[0]["id"] == sid and "error" in told[1], told)
    box.end()


def by_name(box):
    """The project's before the user's before segue's own; a file of that name is none of them."""
    flow = GOOD.replace("echo, done", "echo, {0}")
    box.segue("run", "tidy-up", "--logs", box.logs, status=2)
    os.makedirs(box.dir + "/home/config/segue/workflows")
    os.makedirs(box.cwd + "/.segue/workflows")
    for place, words in (("home/config/segue/workflows", "the-users"),
                         ("work/.segue/workflows", "the-projects")):
        box.file(place + "/tidy-up.yaml", flow.replace("{0}", words))
        box.segue("run", "tidy-up", "--logs", box.logs, status=0, out=words)
    expect(box.segue("lint", "tidy-up").returncode == 0, "lint finds it too")
    box.file("work/tidy-up", flow.replace("{0}", "the-file"))
    box.segue("run", "tidy-up", "--logs", box.logs, out="the-projects")
    box.segue("run", "./tidy-up", "--logs", box.logs, out="the-file")
    expect(box.segue("lint", "demo").returncode == 0, "segue's own")


def a_name_is_never_a_file_of_the_folder():
    """Whoever wrote the folder could otherwise put a file there in place of segue's workflow."""
    evil = GOOD.replace("echo, done", "touch, GOT")
    with Box() as box:
        for name in ("quick", "review", "mine"):
            box.file("work/" + name, evil)
        for words in (["run", "quick", "-i", "check=true", "-t", "x"], ["plan", "quick", "-i", "check=true", "-t", "x"],
                      ["lint", "quick"], ["facets", "review"], ["prompt", "quick"], ["graph", "quick"]):
            done = box.segue(*words, *(["--logs", box.logs] if words[0] == "run" else []))
            expect(b"GOT" not in done.stdout and not os.path.exists(box.cwd + "/GOT"), words, done)
        expect(b"instructions/implement.md" in box.segue("lint", "quick").stdout, box.segue("lint", "quick"))
        for command in ("run", "plan", "lint", "facets", "submit", "prompt", "graph"):
            done = box.segue(command, "mine", *(["work"] if command == "prompt" else []))
            expect(done.returncode == 2 and b"there is no workflow named mine: segue help run says where they are; a file is ./mine"
                   in done.stderr, command, done)
        expect(b"ok  ./mine" in box.segue("lint", "./mine").stdout, "a path is one")


def what_a_project_hides_is_said(box):
    own, project = box.dir + "/home/config/segue/workflows", box.cwd + "/.segue/workflows"
    os.makedirs(own)
    os.makedirs(project)
    silent = box.segue("lint", "quick").stderr
    expect(b"hides" not in silent, silent)
    box.file("home/config/segue/workflows/quick.yaml", GOOD)
    for words, what in ((f"quick is {own}/quick.yaml here, which hides segue's own: ", "/workflows/quick.yaml\n"),
                        (f"quick is {project}/quick.yaml here, which hides yours: ", f"{own}/quick.yaml\n")):
        for command in ("run", "plan", "lint", "submit"):
            said = box.segue(command, "quick", *([] if command == "lint" else ["-t", "x"])).stderr.decode()
            expect(said.count(" hides ") == 1 and f"{'segue' if command == 'submit' else f'segue {command}: warning'}: {words}" in said, command, said)
            expect([line for line in said.splitlines(True) if words in line and line.endswith(what)], what, said)
        expect(words in box.segue("lint", "--json", "quick").stdout.decode(), "a program is told, too")
        box.file("work/.segue/workflows/quick.yaml", GOOD)
    expect(b"hides" not in box.segue("lint", project + "/quick.yaml").stderr, "a path hides nothing")


if __name__ == "__main__":
    sys.exit(main([lint, lint_for_others, prompt, schemas, errors_of_run, cancel, by_name,
                   a_name_is_never_a_file_of_the_folder, what_a_project_hides_is_said]))
