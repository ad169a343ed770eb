#!/usr/bin/env python3
"""Logs of released versions (tests/data/logs) are verified, shown and gone on with; one of a version to
come is refused before anything runs."""
import hashlib
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import ROOT, DaemonBox  # noqa: E402
from support import Box, expect, main, need_build, of_type, records  # noqa: E402

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
            done = box.segue("resume", path, "--rule", "1")
            expect(done.returncode == 2 and f"has ended for good: {outcome}".encode() in done.stderr, done)
            expect(b"continues" not in box.segue("show", path).stdout, name)
            expect(records(path) == before, name, "was changed")
    return ", ".join(ENDED)


def they_go_on():
    for version in VERSIONS:
        with Box() as box:
            paths = copied(box, version)
            for name, path in paths.items():
                before = records(path)
                done = box.segue("resume", path, "-s", f"{LOGS}/{version}/scenario.yaml", "-q")
                expect(done.returncode == 0, version, name, done.stderr)
                log = records(path)
                expect(log[:len(before)] == before and log[-1]["type"] == "session_end", name)
                expect(log[-1]["outcome"] == "complete", version, name, log[-1])
                expect(len(of_type(log, "judgment")) == 3, version, name)
            done = box.segue("verify", box.logs)
            expect(done.returncode == 0 and b"\n4 logs: 4 complete\n" in done.stdout, done.stdout)


def a_daemon_goes_on():
    for version in VERSIONS:
        with DaemonBox() as box:
            path = copied(box, version)["submitted"]
            sid = os.path.basename(path)[:36]
            box.serve()
            box.until(lambda: len(of_type(records(path), "session_resume")) == 1, "it stays")
            box.until(lambda: of_type(records(path), "call_start")[-1]["attempt"] == 2, "no call")
            done = box.segue("cancel", sid)
            expect(done.returncode == 0, done.stderr)
            box.end()
            expect(box.segue("verify", path).returncode == 0, "it does not verify")


def one_of_a_version_to_come():
    """A record that this program does not know is refused, and nothing runs."""
    with Box() as box:
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
        done = box.segue("verify", path)
        expect(done.returncode == 1 and b"bad" in done.stdout, done.stdout)
        done = box.segue("resume", path, "-s", f"{LOGS}/{VERSIONS[-1]}/scenario.yaml")
        expect(done.returncode == 1, done)
        with open(path, encoding="utf-8") as f:
            expect(f.readlines() == lines, "the log was written to")


CASES = [they_are_read, they_go_on, an_end_stays_one, a_daemon_goes_on, one_of_a_version_to_come]

if __name__ == "__main__":
    need_build()
    sys.exit(main(CASES))
