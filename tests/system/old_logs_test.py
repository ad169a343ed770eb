#!/usr/bin/env python3
"""Logs of released versions (tests/data/logs) are verified, shown and gone on with; one of a version to
come is refused before anything runs."""
import hashlib
import json
import os
import shutil
import sys

from daemon import ROOT, DaemonBox
from support import Box, expect, main, of_type, records

LOGS = ROOT + "/tests/data/logs"
VERSIONS = sorted(v for v in os.listdir(LOGS) if os.path.isdir(f"{LOGS}/{v}"))
STATES = {"complete": "complete", "stopped": "open", "crashed": "open", "submitted": "open"}
# They ended for good; today's program stops resumably there.
ENDED = {"no-rule": ("rule_no_match", 4), "at-max": ("max_movements", 5), "failed": ("failed", 1)}


def copied(box, version):
    """The logs, where they may be written to; by what they are."""
    os.makedirs(box.logs, exist_ok=True)
    shutil.copytree(f"{LOGS}/{version}/blobs", box.logs + "/blobs")
    paths = {}
    for name in STATES:
        source = f"{LOGS}/{version}/{name}.ndjson"
        paths[name] = f"{box.logs}/{records(source)[0]['session']}.ndjson"
        shutil.copy(source, paths[name])
    return paths


def they_are_read():
    for version in VERSIONS:
        for name, state in STATES.items():
            with Box() as box:
                path = f"{LOGS}/{version}/{name}.ndjson"
                done = box.segue("verify", "--json", path)
                said = json.loads(done.stdout)
                expect(done.returncode == 0 and said["state"] == state, version, name, said)
                expect(said["records"] == len(records(path)), version, name, said)
                for words in ((), ("--full",), ("--json",), ("build",), ("write",), ("grade",)):
                    done = box.segue("show", path, *words)
                    expect(done.returncode == 0 and done.stdout, version, name, words, done.stderr)
    return ", ".join(VERSIONS)


def an_end_stays_one():
    for name, (outcome, status) in ENDED.items():
        with Box() as box:
            path = box.file("log.ndjson", open(f"{LOGS}/0.1.0/{name}.ndjson", "rb").read())
            before = records(path)
            expect(before[-1]["type"] == "session_end" and before[-1]["outcome"] == outcome, before[-1])
            done = box.segue("verify", "--json", path)
            expect(done.returncode == 0 and json.loads(done.stdout)["state"] == "complete", done.stdout)
            expect(box.segue("resume", path).returncode == status, name)
            box.segue("resume", path, "--rule", "1", status=2, err=f"has ended for good: {outcome}".encode())
            expect(b"continues" not in box.segue("show", path).stdout, name)
            expect(records(path) == before, name, "was changed")
    return ", ".join(ENDED)


def they_go_on():
    for version in VERSIONS:
        with Box() as box:
            paths = copied(box, version)
            for name, path in paths.items():
                before = records(path)
                box.segue("resume", path, "-s", f"{LOGS}/{version}/scenario.yaml", "-q", status=0)
                log = records(path)
                expect(log[:len(before)] == before and log[-1]["type"] == "session_end", name)
                expect(log[-1]["outcome"] == "complete", version, name, log[-1])
                expect(len(of_type(log, "judgment")) == 3, version, name)
            box.segue("verify", box.logs, status=0, out=b"\n4 logs: 4 complete\n")


def a_daemon_goes_on():
    for version in VERSIONS:
        with DaemonBox() as box:
            path = copied(box, version)["submitted"]
            sid = os.path.basename(path)[:36]
            box.serve()
            box.until(lambda: len(of_type(records(path), "session_resume")) == 1, "it stays")
            box.until(lambda: of_type(records(path), "call_start")[-1]["attempt"] == 2, "no call")
            box.segue("cancel", sid, status=0)
            box.end()
            expect(box.segue("verify", path).returncode == 0, "it does not verify")


def one_of_a_version_to_come(box):
    """A record that this program does not know is refused, and nothing runs."""
    path = copied(box, VERSIONS[-1])["crashed"]
    before, lines = "0" * 64, []
    for r in records(path):
        del r["hash"]
        r["v"] = 2
        body = json.dumps(r, separators=(",", ":"), ensure_ascii=False)[:-1]
        before = hashlib.sha256((before + body).encode()).hexdigest()
        lines.append(body + ',"hash":"' + before + '"}\n')
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(lines)
    expect("record 1: its version is newer" in box.segue("verify", path).stdout.decode(), "verify says why")
    box.segue("verify", path, status=1, out=b"bad")
    box.segue("resume", path, "-s", f"{LOGS}/{VERSIONS[-1]}/scenario.yaml", status=1)
    with open(path, encoding="utf-8") as f:
        expect(f.readlines() == lines, "the log was written to")


CASES = [they_are_read, they_go_on, an_end_stays_one, a_daemon_goes_on, one_of_a_version_to_come]

if __name__ == "__main__":
    sys.exit(main(CASES))
