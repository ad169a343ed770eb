#!/usr/bin/env python3
"""segue audit --sql: it says what another count of the same logs says, each example of docs/sql.md has an answer,
the answer comes as a table, CSV and JSON, and no question does anything but read, for long, or without end."""
import concurrent.futures
import contextlib
import csv
import io
import json
import os
import re
import sqlite3
import sys

import copied_logs
from audit_logs import session_id, write
from support import Box, expect, main

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = open(ROOT + "/docs/sql.md", encoding="utf-8").read()
EXAMPLES = re.findall(r"^        ((?:SELECT|WITH) .*)$", PAGE, re.M)
HOSTILE = ["ATTACH '/tmp/other.sqlite' AS o", "PRAGMA user_version=3", "SELECT * FROM pragma_table_list", "DROP VIEW turns",
           "DELETE FROM log_rows", "UPDATE log_rows SET sum = 0", "INSERT INTO label_rows(number) VALUES (1)", "BEGIN",
           "SELECT load_extension('x')", "SELECT fts3_tokenizer('simple')", "VACUUM INTO '/tmp/copy'", "REINDEX",
           "CREATE TEMP TABLE t(a)", "CREATE TABLE t(a)", "SELECT 1; DROP VIEW turns", "SAVEPOINT s", "DETACH main",
           "SELECT writefile('/tmp/x', 'y')", "", "-- nothing", "SELECT zeroblob(1000000000)", "SELECT nothing FROM sessions",
           "ANALYZE", "EXPLAIN DELETE FROM log_rows", "WITH a AS (SELECT 1) DELETE FROM log_rows"]


def ask(box, folder, question, status=0):
    done = box.segue("audit", folder, "--sql", question, "--json", status=status)
    return json.loads(done.stdout) if done.stdout else None


def rows(box, folder, question):
    return [tuple(row) for row in ask(box, folder, question)["rows"]]


def filled(box, sessions=80):
    """Made-up logs with the same in a database of the test's own, and two that people have labelled."""
    folder, db = box.dir + "/many", sqlite3.connect(":memory:")
    write(folder, sessions, 6, seed=5, db=db)
    return folder, db


def counts(box: Box):
    folder, db = filled(box)
    same = [("select workflow, count(*) from sessions group by 1", "select workflow, count(*) from logs group by 1"),
            ("select id from sessions order by 1", "select session from logs order by 1"),
            ("select cause, count(*) from sessions where cause is not null group by 1",
             "select cause, count(*) from logs where outcome not in ('complete', 'open') and cause is not null group by 1"),
            ("select method, match_method, count(*) from judgments group by 1, 2",
             "select method, match_method, count(*) from judgments group by 1, 2"),
            ("select movement, rule, ambiguous, count(*) from judgments group by 1, 2, 3",
             "select movement, rule, ambiguous, count(*) from judgments group by 1, 2, 3"),
            ("select stage, outcome, reason, count(*) from stages group by 1, 2, 3",
             "select stage, outcome, reason, count(*) from stages group by 1, 2, 3"),
            ("select mark, worker, count(*) from judgments group by 1, 2",
             "select mark, worker, count(*) from judgments group by 1, 2"),
            ("select count(*) from turns", "select count(*) from judgments")]
    uses = "sum(duration_ms), sum(input), sum(output), sum(unpriced)"
    same.append((f"select sum(count), {uses} from calls", f"select count(*), {uses} from calls"))
    same.append((f"select sum(calls), {uses} from stages", f"select count(*), {uses} from calls where at >= 0"))
    same.append(("select sum(calls), sum(call_ms), sum(input), sum(output), sum(unpriced) from sessions",
                 f"select count(*), {uses} from calls"))
    same.append(("select session, turn, input, output from turns order by 1, 2",
                 "select session, turn, input, output from calls join logs using(log) where at < 0 order by 1, 2"))
    for ours, theirs in same:
        told, wanted = rows(box, folder, ours), db.execute(theirs).fetchall()
        expect(len(wanted) > 0 and sorted(map(repr, told)) == sorted(map(repr, wanted)), ours, told[:5], wanted[:5])
    cost = db.execute("select sum(cost_nano) / 1e9 from calls").fetchone()[0]
    for table in ("sessions", "calls"):
        expect(abs(rows(box, folder, f"select sum(cost_usd) from {table}")[0][0] - cost) < 1e-6, table, cost)
    for n in (3, 40):
        expect(rows(box, folder, f"select records, length(head) from sessions where id = '{session_id(n)}'")[0][1] == 16, n)


def spent(box: Box):
    """A played session has in the index what its own last record says it spent."""
    box.segue("run", box.file("t.yaml", copied_logs.TIDY), "-t", "x", "-l", box.logs, status=0)
    last = json.loads(open(box.log_paths()[-1], encoding="utf-8").read().splitlines()[-1])
    told = ask(box, box.logs, "select status, calls, input + output from sessions")["rows"]
    spent = last["spent"]
    expect(told == [["complete", spent["calls"], spent.get("input", 0) + spent.get("output", 0)]], told, last)


def new_logs(box: Box):
    """What came, went on or went since is in the next answer, and what people said."""
    folder, _ = filled(box, 20)
    expect(rows(box, folder, "select count(*) from sessions") == [(20,)], "at first")
    os.remove(f"{folder}/{session_id(7)}.ndjson")
    box.segue("run", box.file("t.yaml", copied_logs.TIDY), "-t", "x", "-l", folder, status=0)
    mine = rows(box, folder, "select id, workflow from sessions order by started_ms desc limit 1")[0]
    expect(rows(box, folder, "select count(*) from sessions") == [(20,)] and mine[1] == "tidy", mine)
    turn = rows(box, folder, f"select turn, rule from judgments where session = '{mine[0]}' and movement = 'check'")[0]
    for rule, by in ((1, "ann"), (0, "ann"), (1, "bob")):
        box.segue("label", mine[0], "check", str(rule), "--as", by, "-l", folder, status=0)
    expect(rows(box, folder, "select turn, rule, person, latest from labels order by number") ==
           [(turn[0], 1, "ann", 0), (turn[0], None, "ann", 1), (turn[0], 1, "bob", 1)], "labels")
    expect(rows(box, folder, "select judged, labelled, person from disagreements") == [(turn[1], None, "ann")], "disagree")
    with open(f"{folder}/{session_id(2)}.ndjson", "ab") as f:
        f.write(b'{"v":1,"se')
    os.remove(folder + "/index.sqlite")
    expect(rows(box, folder, "select count(*) from labels") == [(3,)], "after the file was removed")
    done = box.segue("audit", folder, "--sql", "select count(*) from sessions", "--csv", status=0)
    expect(done.stdout == b"count(*)\n19\n" and b"1 torn" in done.stderr, done)


def examples(box: Box):
    folder, _ = filled(box)
    box.segue("run", box.file("t.yaml", copied_logs.TIDY), "-t", "x", "-l", folder, status=0)
    mine = rows(box, folder, "select id from sessions order by started_ms desc limit 1")[0][0]
    box.segue("label", mine, "check", "0", "--as", "ann", "-l", folder, status=0)
    expect(len(EXAMPLES) == 20, len(EXAMPLES))
    for question in EXAMPLES:
        told = ask(box, folder, question)
        expect(told["rows"] and all(len(row) == len(told["columns"]) for row in told["rows"]), question, told)
    with contextlib.closing(sqlite3.connect(f"file:{folder}/index.sqlite?mode=ro", uri=True)) as db:  # any tool may
        for question in EXAMPLES:
            told = json.loads(json.dumps(db.execute(question).fetchall()))
            expect(sorted(map(repr, told)) == sorted(map(repr, ask(box, folder, question)["rows"])), question)
        expect(db.execute("select version from segue_schema").fetchone() == (1,), "version")


def columns(box: Box):
    """The page names each column that there is."""
    folder, _ = filled(box, 3)
    for table in ("sessions", "turns", "calls", "judgments", "stages", "labels", "rates_by_day", "fallbacks", "spending",
                  "disagreements"):
        line = re.search(rf"^\| `{table}` \|.*$", PAGE, re.M)[0]
        for name in ask(box, folder, f"select * from {table} limit 0")["columns"]:
            expect(f"`{name}`" in line or name in line.split("|")[2], table, name)


def forms(box: Box):
    folder, _ = filled(box, 5)
    odd = "select x'00ff' as a, 1e999 as b, -1.5 as c, 'q\"' || char(27) || '[31m,' || char(10) as d, null as e, '=1+1' as f"
    expect(ask(box, folder, odd) == {"columns": list("abcdef"), "rows": [["00ff", None, -1.5, 'q"\x1b[31m,\n', None, "=1+1"]]},
           ask(box, folder, odd))
    done = box.segue("audit", folder, "--sql", odd, "--csv", status=0)
    told = list(csv.reader(io.StringIO(done.stdout.decode())))
    expect(told[1][0] == "00ff" and told[1][2] == "-1.5" and told[1][5] == "'=1+1", told)
    done = box.segue("audit", folder, "--sql", odd, status=0)
    expect(b"\x1b" not in done.stdout and done.stdout.count(b"\n") == 2, done.stdout)
    expect(ask(box, folder, "select 9007199254740993 where 0") == {"columns": ["9007199254740993"], "rows": []}, "empty")
    expect(ask(box, folder, "select 9007199254740993")["rows"] == [[9007199254740993]], "64 bits")


def hostile(box: Box):
    folder, _ = filled(box, 5)
    before = rows(box, folder, "select count(*) from log_rows"), sorted(os.listdir(folder))
    for question in HOSTILE:
        done = box.segue("audit", folder, "--sql", question)
        refused = done.returncode == 2 and done.stderr and not done.stdout
        expect(refused or question.startswith("EXPLAIN"), question, done)
    after = rows(box, folder, "select count(*) from log_rows"), sorted(os.listdir(folder))
    expect(before == after, before, after)
    endless = "with recursive n(x) as (select 1 union all select x + 1 from n) select x from n"
    done = box.segue("audit", folder, "--sql", endless)
    expect(done.returncode == 1 and b"LIMIT" in done.stderr and not done.stdout, done.stderr)
    big = "with recursive n(x) as (select 1 union all select x + 1 from n) select hex(randomblob(4000000)), x from n order by 1"
    done = box.segue("audit", folder, "--sql", big)
    expect(done.returncode == 1 and b"MiB of memory" in done.stderr and not done.stdout, done.stderr)
    for words in (["--by", "day"], ["--csv", "--json"], ["--errors"], ["--since", "7d"], [folder]):
        done = box.segue("audit", folder, "--sql", "select 1", *words)
        expect(done.returncode == 2 and done.stderr, words, done)


def at_once(box: Box):
    """Several ask at once, while there is no index yet: each has all of it."""
    folder, _ = filled(box, 60)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        told = list(pool.map(lambda _: rows(box, folder, "select count(*), sum(calls) from sessions"), range(4)))
    expect(len(set(map(tuple, told))) == 1 and told[0][0][0] == 60, told)


CASES = [counts, spent, new_logs, examples, columns, forms, hostile, at_once]

if __name__ == "__main__":
    sys.exit(main(CASES))
