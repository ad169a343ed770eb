#!/usr/bin/env python3
"""segue show --as view: what it prints is what schemas/view.json says, of sessions of every kind, of
old, torn and damaged logs; and the schema names all that there is."""
import glob
import json
import os
import sys

from support import Box, every_way, expect, main, need_build

need_build()
HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMA = HERE + "/../../schemas/view.json"


def view(box, path, status=0):
    done = box.segue("show", path, "--as", "view")
    expect(done.returncode == status, path, done.returncode, done.stderr)
    checked = box.segue("check", SCHEMA, "-", stdin=done.stdout)
    expect(checked.returncode == 0, path, checked.stdout, checked.stderr)
    return json.loads(done.stdout)


def conforms():
    with Box() as box:
        done = box.segue("run", *every_way(box))
        expect(done.returncode == 0, done.stderr)
        path = box.log_paths()[0]
        whole = view(box, path)
        expect(whole["chain"]["state"] == "sound" and whole["turns"] and whole["movements"], whole)
        lines = open(path, "rb").read().splitlines(keepends=True)
        for n in (1, 2, 5, len(lines) // 2):  # as far as it came
            view(box, box.file("part.ndjson", b"".join(lines[:n])))
        torn = view(box, box.file("torn.ndjson", b"".join(lines[:-1]) + lines[-1][:9]))
        expect(torn["chain"] == {"state": "torn", "records": len(lines) - 1, "torn_bytes": 9}, torn["chain"])
        at = len(lines) // 2
        changed = lines[:at] + [lines[at].replace(b'"ts":"2', b'"ts":"3')] + lines[at + 1:]
        bad = view(box, box.file("bad.ndjson", b"".join(changed)), status=1)
        expect(bad["chain"]["state"] == "bad" and any(t.get("unproven") for t in bad["turns"]), bad["chain"])


def old_logs_too():
    paths = sorted(glob.glob(HERE + "/../data/logs/**/*.ndjson", recursive=True))
    expect(len(paths) > 3, paths)
    with Box() as box:
        for path in paths:
            view(box, path)


def a_fork_and_its_parent():
    with Box() as box:
        done = box.segue("run", *every_way(box))
        expect(done.returncode == 0, done.stderr)
        parent = box.log_paths()[0]
        movement = view(box, parent)["turns"][1]["movement"]
        done = box.segue("fork", parent, "--from", movement, "--logs", box.logs, "--cwd", box.cwd)
        forks = [p for p in box.log_paths() if p != parent]
        expect(len(forks) == 1, done.returncode, done.stderr)
        expect(view(box, forks[0])["forked_from"] == os.path.basename(parent)[:-7])


def nothing_unsaid():
    """The schema is closed: a member that it does not name, or that is missing, is refused."""
    with Box() as box:
        expect(box.segue("run", *every_way(box)).returncode == 0)
        good = view(box, box.log_paths()[0])

        def refused(change):
            doc = json.loads(json.dumps(good))
            change(doc)
            done = box.segue("check", SCHEMA, "-", stdin=json.dumps(doc).encode())
            expect(done.returncode != 0, "taken:", json.dumps(doc)[:200])

        for place in (lambda d: d, lambda d: d["turns"][0], lambda d: d["movements"][0], lambda d: d["chain"],
                      lambda d: next(t for t in d["turns"] if t["stages"])["stages"][0]):
            refused(lambda d, place=place: place(d).update(more=1))
            for name in list(place(good)):
                if name not in ("vote", "parent", "unproven", "unpriced", "torn_bytes", "error", "forked_from",
                                "failed", "failed_calls"):
                    refused(lambda d, place=place, name=name: place(d).pop(name))


if __name__ == "__main__":
    sys.exit(main([conforms, old_logs_too, a_fork_and_its_parent, nothing_unsaid]))
