#!/usr/bin/env python3
"""segue ls by time, workflow, method and provider, from the folder and from a daemon; a log that was
changed is named; what doctor tells first."""
import json
import os
import sys
from pathlib import Path

from daemon import DaemonBox
from support import expect, main

CHECK = "name: tidy\nmovements:\n  - name: check\n    command: [echo, done]\n    rules:\n" \
        "      - {condition: when(exit == 0), next: COMPLETE}\n"
ASK = "name: ask\nmovements:\n  - name: plan\n    provider: script\n    instruction: Do it well.\n" \
      "    judge: {stages: [phase1_tag]}\n    rules:\n      - {condition: done, next: COMPLETE}\n" \
      "      - {condition: not done, next: ABORT}\n"
REPLY = 'replies: [{text: "I did.\\n\\n[PLAN:1]"}]\n'


def made(box):
    """One session of each workflow: the ids."""
    box.segue("run", box.file("tidy.yaml", CHECK), "--logs", box.logs)
    box.segue("run", box.file("ask.yaml", ASK), "--scenario", box.file("s.yaml", REPLY),
              "--logs", box.logs, status=0)
    return [os.path.basename(path)[:-7] for path in box.log_paths()]


def listed(box, *words, logs=True):
    done = box.segue("ls", "--json", *(("--logs", box.logs) if logs else ()), *words, status=0)
    return [json.loads(line)["id"] for line in done.stdout.splitlines()]


def look(box, tidy, ask, logs):
    for words, wanted in ((["--workflow", "tidy"], [tidy]), (["--workflow", "none"], []),
                          (["--provider", "script"], [ask]), (["--provider", "command"], [tidy]),
                          (["--method", "phase1_tag"], [ask]), (["--method", "when"], [tidy]),
                          (["--method", "when", "--provider", "script"], []),
                          (["--since", "1h"], [ask, tidy]), (["--since", "2020-01-31"], [ask, tidy]),
                          (["--since", "2999-01-31"], []), (["--workflow", "tidy", "-n", "1"], [tidy]),
                          (["-s", "complete", "--workflow", "ask"], [ask])):
        got = listed(box, *words, logs=logs)
        expect(got == wanted, words, got, "wanted", wanted)


def from_the_folder(box):
    tidy, ask = made(box)
    look(box, tidy, ask, True)
    for words in (["--since", "yesterday"], ["--since", ""], ["--method", "guess"]):
        box.segue("ls", "--logs", box.logs, *words, status=2, err=words[0].encode())


def from_a_daemon(box: DaemonBox):
    tidy, ask = made(box)
    box.serve()
    look(box, tidy, ask, False)
    box.end()


def a_changed_log_is_named(box):
    tidy, _ = made(box)
    path = f"{box.logs}/{tidy}.ndjson"
    with open(path, "r+b") as f:
        f.write(b"[")  # in place of the first brace
    done = box.segue("ls", "--logs", box.logs)
    row = next(line for line in done.stdout.decode().splitlines() if line.startswith(tidy[:18]))
    expect(" bad " in row, done.stdout)
    expect(listed(box, "-s", "bad") == [tidy], "by status")
    done = box.segue("rm", "-l", box.logs, tidy)
    expect(done.returncode == 2 and b"give --force" in done.stderr and os.path.exists(path), done)
    done = box.segue("rm", "-l", box.logs, "--older-than", "2000-01-01")
    expect(done.returncode == 0 and done.stdout == b"0 removed\n", done)
    done = box.segue("rm", "-l", box.logs, "--force", tidy)
    expect(done.returncode == 0 and not os.path.exists(path), done)


def killed_starts(box):
    """Logs of starts that were killed: before anything was written, and in the first record."""
    os.makedirs(box.logs, exist_ok=True)
    ids = [f"0199000{n}-0000-7000-8000-000000000000" for n in range(2)]
    for sid, text in zip(ids, (b"", b'{"v":1,"seq":1,"ts":"20')):
        with open(f"{box.logs}/{sid}.ndjson", "xb") as f:
            f.write(text)
    return ids


def look_at_killed_starts(box, ids, *where):
    rows = [json.loads(line) for line in box.segue("ls", "--json", *where).stdout.splitlines()]
    rows = {r["id"]: r for r in rows if r["id"] in ids}
    expect(sorted(rows) == ids, "they are listed", rows)
    for row in rows.values():
        expect(row["status"] == "empty" and row["started"].startswith("2025-08-31"), row)
    empty = box.segue("ls", "--json", "-s", "empty", *where).stdout.splitlines()
    expect(len(empty) == 2, "by status", empty)
    for words in (["-s", "bad"], ["--since", "2025-10-01"], ["--workflow", "w"], ["--method", "when"],
                  ["--provider", "p"]):
        seen = box.segue("ls", "--json", *words, *where).stdout.decode()
        expect(not any(sid in seen for sid in ids), words, seen)


def a_killed_start_is_listed_and_removed(box):
    ids = killed_starts(box)
    look_at_killed_starts(box, ids, "-l", box.logs)
    done = box.segue("rm", "-l", box.logs, ids[0][:8])
    expect(done.returncode == 0 and listed(box) == ids[1:], done)
    done = box.segue("rm", "-l", box.logs, "--older-than", "1d")
    expect(done.returncode == 0 and done.stdout == b"1 removed\n" and listed(box) == [], done)
    expect(box.segue("verify", box.logs).returncode == 0, "the ledger takes it")


def a_daemon_lists_a_killed_start(box: DaemonBox):
    made(box)
    ids = killed_starts(box)
    box.serve()
    look_at_killed_starts(box, ids, "-S", box.socket)
    box.end()


def an_emptied_log_is_not_a_killed_start(box):
    tidy, ask = made(box)
    open(f"{box.logs}/{tidy}.ndjson", "wb").close()
    expect(listed(box, "-s", "bad") == [tidy] and listed(box, "-s", "empty") == [], "by the ledger")
    box.segue("rm", "-l", box.logs, tidy, status=2, err=b"give --force")


def a_log_changed_in_its_middle_is_named(box):
    tidy, ask = made(box)
    path = f"{box.logs}/{tidy}.ndjson"
    log = Path(path).read_bytes().splitlines(keepends=True)
    log[2] = log[2].replace(b'"ts":"2', b'"ts":"3')
    Path(path).write_bytes(b"".join(log))
    rows = {r["id"]: r for r in map(json.loads, box.segue("ls", "--json", "-l", box.logs).stdout.splitlines())}
    expect(rows[tidy]["status"] == "bad" and "segue verify" in rows[tidy]["message"], rows[tidy])
    expect(rows[ask]["status"] != "bad", rows[ask])
    expect(listed(box, "-s", "bad") == [tidy], "by status")
    expect(set(listed(box, "-s", "bad,complete")) <= {tidy, ask}, "with another one")


def where_it_looked_is_said(box):
    done = box.segue("ls")
    expect(done.stderr.decode() == f"no sessions in {box.dir}/home/state/segue/logs\n", done)
    flow = box.file("w.yaml", "name: w\nmovements:\n  - name: a\n    command: [echo, x]\n"
                    "    rules: [{condition: when(exit == 0), next: COMPLETE}]\n")
    expect(box.segue("run", flow, "-q", "-l", "logs").returncode == 0, "it runs")
    os.mkdir(box.dir + "/copies")
    box.file("copies/mine.ndjson", "{}\n")
    box.segue("verify", box.dir + "/copies", err=b"name logs with other names one by one")
    done = box.segue("ls", "-l", "logs", "--method", "human")
    expect(done.stderr.decode() == f"no session matches in {box.cwd}/logs\n", done)
    box.segue("ls", err=f"in another folder: segue ls --logs {box.cwd}/logs")
    expect(b"another folder" not in box.segue("ls", "-l", "logs").stderr, "it was looked there")


def doctor_tells_first_what_is_there(box):
    found = json.loads(box.segue("doctor", "--json", "--quick").stdout)["findings"]
    providers = [f["state"] for f in found if f["what"].startswith("provider ") and
                 "folder" not in f["what"]]
    expect(providers == sorted(providers, key=lambda s: s != "ok"), providers)
    [config] = [f for f in found if f["what"] == "configuration"]
    expect(box.dir + "/home/config/segue/config.yaml" in config["text"] and
           "does not exist" in config["text"], config)


def a_row_is_one_line(box):
    """On narrow terminals it has less; that it is one line goes before all else."""
    name = "a-workflow-with-a-long-name"
    box.segue("run", box.file("w.yaml", f"name: {name}\nmovements:\n  - name: a-movement-with-a-long-name\n"
                              "    command: ['true']\n    rules: [{condition: when(exit == 0), next: COMPLETE}]\n"))
    for columns in (56, 60, 66, 80, 95, 96, 100, 120):
        lines = box.segue("ls", env={"COLUMNS": str(columns)}).stdout.decode().splitlines()
        expect(len(lines) == 2 and all(len(line) <= columns for line in lines), columns, lines)
        expect("complete" in lines[1] and ("MOVEMENT" in lines[0]) == (columns >= 66), lines)


if __name__ == "__main__":
    sys.exit(main([from_the_folder, from_a_daemon, a_killed_start_is_listed_and_removed,
                   a_daemon_lists_a_killed_start, an_emptied_log_is_not_a_killed_start, a_changed_log_is_named, a_log_changed_in_its_middle_is_named,
                   where_it_looked_is_said, a_row_is_one_line,
                   doctor_tells_first_what_is_there]))
