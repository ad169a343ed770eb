#!/usr/bin/env python3
"""segue init and segue facets: what a newcomer is given, and what shadows what."""
import json
import os
import shutil
import sys
from pathlib import Path

from support import expect, main

SAID = '{"reason": "It says so.", "step": 1}'


def what_init_writes_runs(box):
    done = box.segue("init")
    expect(done.returncode == 0 and done.stderr == b"", done)
    commands = [line.split("segue ", 1)[1] for line in done.stdout.decode().split("next:\n")[1]
                .splitlines()]
    expect([c.split()[0] for c in commands] == ["lint", "plan", "run"], commands)
    replies = [{"movement": name, "purpose": purpose, "text": text}
               for name in ("work", "review")
               for purpose, text in (("execute", "Done."), ("judge", SAID))]
    scenario = box.file("replies.json", json.dumps({"replies": replies}))
    linted = box.segue("lint", "work", "-p", "claude")
    expect(linted.returncode == 0 and linted.stderr == b"", linted)
    for command in ("plan", "run"):
        box.segue(command, "work", "-p", "script", "-s", scenario, "--logs", box.logs,
                  "-i", "check=true", "-t", "Do it", status=0)
    with open(box.cwd + "/.segue/workflows/work.yaml") as f:
        first = f.readline()
    expect(first == "# yaml-language-server: $schema=../workflow.schema.json\n", first)
    with open(box.cwd + "/.segue/workflow.schema.json") as f:
        expect(json.load(f)["title"] == "segue workflow", "the schema beside it")


def nothing_is_written_over(box):
    expect(box.segue("init", "mine").returncode == 0, "init")
    path = box.cwd + "/.segue/facets/personas/worker.md"
    Path(path).write_text("my own")
    box.segue("init", "mine", "--json", status=2, err=b"exists already")
    done = json.loads(box.segue("init", "second", "--json").stdout)
    expect(done["written"] == [".segue/workflows/second.yaml"], done)
    expect(".segue/facets/personas/worker.md" in done["kept"], done)
    expect(Path(path).read_text() == "my own", "kept")


def hostile_names_and_folders(box):
    for name in ("../x", "/x", "a/b", "", ".", "..", "a b", "-x\n", "ü", "x" * 70):
        box.segue("init", "--", name, status=2)
    expect(not os.path.exists(box.cwd + "/.segue"), "nothing was made")
    os.mkdir(box.dir + "/other")
    os.mkdir(box.cwd + "/.segue")
    os.symlink(box.dir + "/other", box.cwd + "/.segue/workflows")
    done = box.segue("init")
    expect(done.returncode == 1 and os.listdir(box.dir + "/other") == [], done)
    for link in ("", "/facets", "/facets/personas"):
        shutil.rmtree(box.cwd + "/.segue", ignore_errors=True)
        os.makedirs(os.path.dirname(box.cwd + "/.segue" + link), exist_ok=True)
        os.symlink(box.dir + "/other", box.cwd + "/.segue" + link)
        box.segue("init", status=1, err="segue writes through no link")
        expect(os.listdir(box.dir + "/other") == [], link)
        os.unlink(box.cwd + "/.segue" + link)


def which_shadows_which(box):
    texts = {"work/.segue/facets/personas/coder.md": "the project's",
             "home/config/segue/facets/personas/coder.txt": "the user's",
             "home/.segue/facets/personas/coder": "home's",
             "home/config/segue/facets/policies/a.md": "a", "work/.segue/facets/fragments/f.yaml": "edit: true\n",
             "work/.segue/facets/personas/.hidden.md": "no", "work/personas/coder.md": "beside"}
    for name, text in texts.items():
        os.makedirs(os.path.dirname(f"{box.dir}/{name}"), exist_ok=True)
        box.file(name, text)
    os.makedirs(box.cwd + "/.segue/facets/personas/folder")
    rows = [r for r in json.loads(box.segue("facets", "--json").stdout) if r["from"] != "segue"]
    told = [(r["kind"], r["name"], r["from"], "shadowed_by" in r) for r in rows]
    expect(told == [("persona", "coder", "project", False), ("persona", "coder", "home", True),
                    ("persona", "coder", "user", True), ("policy", "a", "user", False),
                    ("fragment", "f", "project", False)], told)
    expect(rows[2]["shadowed_by"] == rows[0]["file"], rows)
    box.file("work/w.yaml", "name: w\n")
    rows = json.loads(box.segue("facets", "w.yaml", "--json").stdout)
    expect(rows[0]["from"] == "workflow" and rows[1]["shadowed_by"] == rows[0]["file"], rows)
    text = box.segue("facets").stdout.decode()
    expect("coder" in text and "shadowed by " in text, text)
    expect(box.segue("facets", "none").returncode == 2, "no such workflow")


if __name__ == "__main__":
    sys.exit(main([what_init_writes_runs, nothing_is_written_over, hostile_names_and_folders,
                   which_shadows_which]))
