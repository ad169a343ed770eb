#!/usr/bin/env python3
"""The index of a folder of many logs: lists say with it what they say without it, from the folder and
from a daemon, also after logs went on, came and went, and when it was damaged."""
import contextlib
import json
import os
import sqlite3
import sys

import copied_logs
from daemon import DaemonBox
from support import expect, main

COUNT = 300
FILTERS = ((), ("-s", "stopped"), ("-s", "complete,abort"), ("-s", "running,queued"), ("-s", "bad"),
           ("--since", "12h"), ("--since", "2999-01-31"), ("--workflow", "flow2"), ("--workflow", "fl%w&=2"),
           ("--method", "when"), ("--method", "phase1_tag"), ("--provider", "command"),
           ("--provider", "script", "-s", "abort"), ("--workflow", "tidy", "--method", "when"))


def listed(box, words, where):
    done = box.segue("ls", "--json", "-n", "10000", *where, *words, status=0)
    return [json.loads(line)["id"] for line in done.stdout.splitlines()]


def index_of(box):
    return box.logs + "/index.sqlite"


def rows(box):
    """How many sessions and logs with judgments the index has; 0, 0 if it cannot be read."""
    try:
        db = sqlite3.connect(f"file:{index_of(box)}?mode=ro", uri=True)
        with contextlib.closing(db):
            return tuple(db.execute(f"select count(*) from {table}").fetchone()[0] for table in ("list_rows", "log_rows"))
    except sqlite3.Error:
        return 0, 0


def indexed(box):
    """A daemon has looked at the folder, and has gone."""
    box.serve()
    box.until(lambda: min(rows(box)) > 0, "there is no index")
    box.end()


def same_with_and_without(box, filters=FILTERS):
    for words in filters:
        folder = ("-l", box.logs)
        with_it = listed(box, words, folder)
        os.rename(index_of(box), box.dir + "/away")
        without = listed(box, words, folder)
        os.rename(box.dir + "/away", index_of(box))
        expect(with_it == without, words, len(with_it), "rows with the index,", len(without), "without")
    return len(listed(box, (), ("-l", box.logs)))


def lists_are_the_same(box: DaemonBox):
    expect(copied_logs.fill(box, COUNT), "there is no room")
    indexed(box)
    expect(same_with_and_without(box) == COUNT, "not all logs")
    # one is stopped and goes on to its end, one is new, one is gone, one is another
    stopped = listed(box, ("-s", "stopped"), ("-l", box.logs))
    expect(stopped, "none is stopped")
    reply = box.file("s.yaml", json.dumps({"replies": [{"text": "I did.\n\n[WORK:1]"}]}))
    box.segue("resume", f"{box.logs}/{stopped[0]}.ndjson", "-s", reply, "--quiet", status=0)
    expect(stopped[0] in listed(box, ("-s", "complete"), ("-l", box.logs)), "an old row counted")
    box.segue("run", box.file("t.yaml", copied_logs.TIDY), "-t", "x", "-l", box.logs, status=0)
    gone, bad = (listed(box, ("-s", "abort"), ("-l", box.logs))[i] for i in (0, 1))
    os.unlink(f"{box.logs}/{gone}.ndjson")
    with open(f"{box.logs}/{bad}.ndjson", "r+b") as f:
        f.write(b"[")
    expect(same_with_and_without(box) == COUNT, "not all logs")
    expect(bad in listed(box, ("-s", "bad"), ("-l", box.logs)), "a changed log is not seen")
    # the daemon says the same, and keeps it up to date
    wanted = [listed(box, words, ("-l", box.logs)) for words in FILTERS]
    box.serve()
    for words, ids in zip(FILTERS, wanted):
        got = listed(box, words, ())
        expect(got == ids, words, len(got), "rows of the daemon,", len(ids), "of the folder")
    box.end()


def a_damaged_one_is_made_anew(box: DaemonBox):
    expect(copied_logs.fill(box, COUNT), "there is no room")
    for data in (None, b"", b"SQLite format 3\0" + bytes(500), os.urandom(40000)):
        if data is not None:
            with open(index_of(box), "wb") as f:
                f.write(data)
        indexed(box)
        expect(same_with_and_without(box, FILTERS[1:3]) == COUNT, "not all logs")
    left = [name for name in os.listdir(box.logs) if name.startswith("index.sqlite-")]
    expect(not left, "pieces are left:", left)


def a_folder_that_cannot_be_written(box: DaemonBox):
    """No index, and nothing else is wrong."""
    expect(copied_logs.fill(box, COUNT), "there is no room")
    os.mkdir(index_of(box))
    box.serve()
    expect(len(listed(box, ("-s", "stopped"), ())) > 0, "no list")
    box.end()


CASES = [lists_are_the_same, a_damaged_one_is_made_anew, a_folder_that_cannot_be_written]

if __name__ == "__main__":
    sys.exit(main(CASES))
