#!/usr/bin/env python3
"""One session at a time in a store on PostgreSQL: made, run, looked at, resumed, cancelled; and what
is said where the store, its tables or the rights are not as they should be."""
import json
import os
import signal
import subprocess
import sys
import time

from support import (WAIT_S, WANTED, Box, end_of, every_way, expect, main, need_build, of_type, read_until,
                     records, sound, verdicts)
import postgres

SERVER = None


class SharedBox(Box):
    """A box with a database that has the tables."""

    def __init__(self, init=True):
        super().__init__()
        self.store = SERVER.database()
        self.env["SEGUE_STORE"] = self.store
        if init:
            expect(self.segue("store", "init").returncode == 0, "init")

    def words(self, delay_ms=0):
        words = every_way(self, delay_ms)
        at = words.index("--logs")
        return words[:at] + words[at + 2:]

    def json(self, *words):
        done = self.segue(*words, "--json")
        return done, [json.loads(line) for line in done.stdout.splitlines()]

    def sql(self, text):
        return SERVER.sql(text, self.store.rsplit("/", 1)[1])


def made_and_made_again():
    with SharedBox(init=False) as box:
        plan = box.segue("store", "init", "--dry-run")
        expect(plan.returncode == 0 and b"CREATE TABLE segue.session" in plan.stdout, plan)
        expect(box.segue("store", "status").returncode == 2, "the plan made something")
        first = box.segue("store", "init")
        again = box.segue("store", "init")
        expect(first.returncode == 0 and b"created the tables of version 13" in first.stdout, first)
        expect(again.returncode == 0 and b"already" in again.stdout, again)
        done, (status,) = box.json("store", "status")
        expect(status["version"] == 13 and status["sessions"] == {}, status)


def tables_of_version_1_are_brought_up_to_date():
    """The tables as version 1 made them, with a function of that time and a worker."""
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(source + "/src/store/postgres/schema.sql", encoding="utf-8") as f:
        old = f.read()
    with SharedBox(init=False) as box:
        box.sql(old)
        box.sql("CREATE FUNCTION segue.renew(p_worker uuid, p_ttl_ms bigint) RETURNS TABLE "
                "(o_ok boolean, o_old text) LANGUAGE sql AS $$ SELECT true, '' $$")
        box.sql("INSERT INTO segue.worker (id, name, lease_until) VALUES (gen_random_uuid(), "
                "'old', now())")
        status = box.segue("store", "status")
        expect(status.returncode == 2 and b"store init" in status.stderr, status)
        done = box.segue("store", "init")
        expect(done.returncode == 0 and b"from version 1 to" in done.stdout, done)
        ran = box.segue("run", *box.words())
        expect(ran.returncode == 0, ran)
        expect(box.segue("verify", "last").returncode == 0, "verify")


def named_in_the_configuration(box: SharedBox):
    box.config(f"store: '{box.store}'\n")
    del box.env["SEGUE_STORE"]
    expect(box.segue("run", *box.words(), "-q").returncode == 0, "run")
    _, rows = box.json("ls")
    expect(len(rows) == 1 and rows[0]["log"].startswith("postgres://"), rows)
    expect(box.json("ls", "--logs", box.dir + "/none")[1] == [], "a folder that is named goes before")
    expect(box.segue("ls", "--json", env={"SEGUE_STORE": "", "SEGUE_LOGS": box.logs}).stdout == b"", "none wanted")
    expect(box.segue("verify", "last").returncode == 0, "verify")
    expect(box.json("store", "status")[1][0]["sessions"] == {"ended": 1}, "status")


def messages_name_host_port_and_database(box: SharedBox):
    box.store += ("&" if "?" in box.store else "?") + "connect_timeout=7"
    done = box.segue("ls", "--store", box.store)
    expect(done.returncode == 0 and b"no sessions in " in done.stderr, done)
    expect(b"postgres@" not in done.stderr and b"connect_timeout" not in done.stderr, done.stderr)


def two_make_it_at_once():
    with SharedBox(init=False) as box:
        both = [box.start("store", "init") for _ in range(2)]
        told = [end_of(p) for p in both]
        expect([t[0] for t in told] == [0, 0], told)
        expect(sorted(b"created" in t[1] for t in told) == [False, True], told)


def a_session_from_its_start_to_its_end(box: SharedBox):
    done = box.segue("run", *box.words())
    expect(done.returncode == 0 and b"COMPLETE" in done.stdout, done)
    expect(not os.path.exists(box.logs), "a log folder was made")
    done, rows = box.json("ls")
    expect(len(rows) == 1 and rows[0]["status"] == "complete", rows)
    sid = rows[0]["id"]
    for word in ("last", sid, sid[:13]):
        shown = box.segue("show", word)
        expect(shown.returncode == 0 and sid.encode() in shown.stdout, word, shown)
    seen = box.segue("verify", "last")
    expect(seen.returncode == 0 and b"complete, sealed" in seen.stdout, seen)
    audit = box.segue("audit")
    expect(b"11 judgments in 1 session" in audit.stdout, audit)
    found = box.segue("store", "check")
    expect(found.returncode == 0 and b"1 session, 0 with a problem" in found.stdout, found)
    blobs = box.sql("SELECT count(*) FROM segue.blob")
    expect(int(blobs) > 0, "no blob")
    again = box.segue("resume", "last")
    expect(again.returncode == 0, "the end of a finished one", again)


def labels_are_compared_there(box: SharedBox):
    """agree takes verdicts and labels from the store. Judging again needs logs in a folder, and says how to get them."""
    expect(box.segue("run", *box.words()).returncode == 0)
    copies = box.dir + "/copies"
    done = box.segue("store", "export", copies)
    expect(done.returncode == 0, done)
    (name,) = [n for n in os.listdir(copies) if n.endswith(".ndjson")]
    (judged, *_) = [r for r in records(f"{copies}/{name}") if r["type"] == "judgment" and r.get("provider")]
    done = box.segue("label", "last", judged["movement"] + "#1", str(judged["rule"]), "--as", "ann")
    expect(done.returncode == 0, done)
    done, (told,) = box.json("agree")
    expect(done.returncode == 0 and "ann" in json.dumps(told), done.stdout, done.stderr)
    expect(b"ann" in box.segue("agree").stdout)
    again = ("--provider", "script", "--scenario", box.dir + "/every-way.json", "--dry-run")
    for words in ((), ("last",), (box.store,)):
        done = box.segue("rejudge", *words, *again)
        expect(done.returncode == 2 and b"segue store export ID... DIR, then segue rejudge DIR" in done.stderr, words, done)
    done = box.segue("rejudge", copies, *again)
    expect(done.returncode == 0 and b" judgments: " in done.stdout + done.stderr, done)


def the_same_records_as_in_files(box: SharedBox):
    words = box.words()
    lines = box.segue("run", *words, "--json").stdout.splitlines()
    expect(box.sql("SELECT string_agg(encode(line, 'escape'), '' ORDER BY seq) FROM segue.line")
           is not None, "lines")
    log = [json.loads(line) for line in lines]
    sound(log, WANTED)
    kept = box.sql("SELECT convert_from(line, 'UTF8') FROM segue.line ORDER BY seq").split("\n")
    expect([json.loads(k) for k in kept] == log, "other records than were printed")


def stopped_and_gone_on_with(box: SharedBox):
    run = box.start("run", *box.words(delay_ms=30), "--json")
    seen = []
    read_until(run, lambda r: r["type"] == "turn_end" and r["turn"] == 4, seen)
    run.send_signal(signal.SIGINT)
    status, rest, _ = end_of(run)
    expect(status == 130, "status", status)
    seen += [json.loads(line) for line in rest.splitlines()]
    expect(box.json("store", "status")[1][0]["workers"] == [], "a worker is left")
    done = box.segue("resume", "last", "--json")
    log = [json.loads(line) for line in done.stdout.splitlines()]
    expect(done.returncode == 0, done)
    kept = box.sql("SELECT convert_from(line, 'UTF8') FROM segue.line ORDER BY seq").split("\n")
    sound([json.loads(k) for k in kept], WANTED)
    expect(json.loads(kept[-1]) == log[-1], "its end")
    expect(box.segue("verify", "last").returncode == 0, "verify")


def one_owner_at_a_time(box: SharedBox):
    run = box.start("run", *box.words(delay_ms=100), "--json")
    read_until(run, lambda r: r["type"] == "turn_start")
    _, rows = box.json("ls")
    expect(rows[0]["status"] == "running" and rows[0]["worker"], rows)
    expect(0 <= rows[0]["lease_age_s"] < 60 and "waits" not in rows[0], rows)
    other = box.segue("resume", "last", "-q")
    expect(other.returncode == 1 and b"has session" in other.stderr, other)
    expect(box.segue("rm", "last").returncode != 0, "removed under its owner")
    run.send_signal(signal.SIGTERM)
    end_of(run)


def killed_and_gone_on_with_once_its_lease_is_over(box: SharedBox):
    run = box.start("run", *box.words(delay_ms=50), "--json")
    read_until(run, lambda r: r["type"] == "turn_end" and r["turn"] == 2)
    run.kill()
    end_of(run)
    held = box.segue("resume", "last", "-q")
    expect(held.returncode == 1 and b"has session" in held.stderr, "the lease runs still", held)
    box.sql("UPDATE segue.worker SET lease_until = clock_timestamp() - interval '1 second'")
    done = box.segue("resume", "last", "-q")
    expect(done.returncode == 0, done)
    kept = box.sql("SELECT convert_from(line, 'UTF8') FROM segue.line ORDER BY seq").split("\n")
    log = [json.loads(k) for k in kept]
    sound(log, WANTED)
    expect(len(of_type(log, "session_resume")) == 1, "resumes")


def cancelled_from_elsewhere(box: SharedBox):
    run = box.start("run", *box.words(delay_ms=200), "--json")
    read_until(run, lambda r: r["type"] == "turn_start")
    done = box.segue("cancel", "last")
    expect(done.returncode == 0 and done.stdout.startswith(b"cancelled"), done)
    status, _, _ = end_of(run)
    expect(status == 6, "status", status)
    again = box.segue("cancel", "last")
    expect(again.returncode == 1 and b"has ended" in again.stderr, again)


def a_stopped_one_is_cancelled_here(box: SharedBox):
    run = box.start("run", *box.words(delay_ms=50), "--json")
    read_until(run, lambda r: r["type"] == "turn_start")
    run.send_signal(signal.SIGINT)
    end_of(run)
    done = box.segue("cancel", "last", "--json")
    expect(done.returncode == 0 and json.loads(done.stdout)["status"] == "cancelled", done)
    expect(box.json("ls")[1][0]["status"] == "cancelled", "ls")


def the_lease_ends_under_it(box: SharedBox):
    """A worker that is told that its lease is over ends what it runs, and appends nothing more."""
    run = box.start("run", *box.words(delay_ms=500), "--json")
    read_until(run, lambda r: r["type"] == "call_start")
    box.sql("UPDATE segue.worker SET lease_until = clock_timestamp() - interval '1 second'; "
            "SELECT segue.sweep_sessions(); UPDATE segue.session SET fence = fence + 1")
    status, _, err = end_of(run)
    expect(status == 1 and b"another worker has continued" in err, status, err)
    done = box.segue("resume", "last", "-q")
    expect(done.returncode == 0, done)
    expect(box.segue("verify", "last").returncode == 0, "verify")


def the_server_is_gone_for_a_while(box: SharedBox):
    run = box.start("run", *box.words(delay_ms=30), "--json")
    read_until(run, lambda r: r["type"] == "turn_end" and r["turn"] == 2)
    SERVER.stop("immediate")
    SERVER.start()
    status, _, err = end_of(run)
    slow = status == 1 and b"this worker's lease" in err  # on a loaded machine
    expect(status == 0 or slow, status, err)
    if slow:
        expect(box.segue("resume", "last", "-q").returncode == 0, "resume")
    kept = box.sql("SELECT convert_from(line, 'UTF8') FROM segue.line ORDER BY seq").split("\n")
    sound([json.loads(k) for k in kept], WANTED, repeats=1 if slow else 0)
    expect(box.segue("verify", "last").returncode == 0, "verify")


def a_changed_line_is_named(box: SharedBox):
    box.segue("run", *box.words(), "-q")
    box.sql("UPDATE segue.line SET line = overlay(line placing 'X'::bytea from 40) WHERE seq = 7")
    done = box.segue("verify", "last")
    expect(done.returncode == 1 and b"record 7" in done.stdout + done.stderr, done)
    found = box.segue("store", "check")
    expect(found.returncode == 1 and b"record 7 is damaged" in found.stdout, found)
    again = box.segue("resume", "last", "-q")
    expect(again.returncode == 1 and b"record 7" in again.stderr, again)


def a_row_that_says_more_than_its_log(box: SharedBox):
    box.segue("run", *box.words(), "-q")
    box.sql("DELETE FROM segue.line WHERE seq = (SELECT max(seq) FROM segue.line)")
    found = box.segue("store", "check")
    expect(found.returncode == 1 and b"its row says" in found.stdout, found)
    done = box.segue("resume", "last", "-q")
    expect(done.returncode == 1, "it went on", done)
    mended = box.segue("store", "check", "--mend")
    expect(mended.returncode == 0 and b"mended" in mended.stdout, mended)
    expect(box.segue("store", "check").returncode == 0, "after mending")


def a_log_that_is_gone_is_not_mended_away(box: SharedBox):
    """Without a line nothing says what the session was: its row stays, and is named."""
    box.segue("run", *box.words(), "-q")
    sid = box.sql("SELECT id FROM segue.session")
    box.sql("UPDATE segue.session SET bytes = bytes + 1")
    found = box.segue("store", "check")
    expect(found.returncode == 1 and b" bytes, its log has " in found.stdout, found)
    box.sql("DELETE FROM segue.line")
    for words in (("store", "check"), ("store", "check", "--mend"), ("store", "check")):
        found = box.segue(*words)
        expect(found.returncode == 1 and sid.encode() in found.stdout and b"its log is missing" in found.stdout and b"mended" not in found.stdout, found)


def a_row_that_says_other_than_its_log(box: SharedBox):
    """Where it belongs, how it stands and what it asks for: found and mended, and the session goes on as its log says."""
    stops = box.file("stops.yaml", "name: s\nprovider: script\nmax_movements: 1\nmovements:\n"
                     "  - name: a\n    command: ['true']\n    rules: [{condition: when(true), next: b}]\n"
                     "  - name: b\n    command: ['true']\n    rules: [{condition: when(true), next: COMPLETE}]\n")
    box.segue("run", *box.words(), "-q")
    box.segue("run", stops, "--task", "x", "--cwd", box.cwd, "-q")
    box.segue("submit", stops, "--task", "x", "--cwd", box.cwd)
    box.segue("submit", stops, "--task", "x", "--cwd", box.cwd, "--on", "gpu,big")
    ended, stopped, waits, sent = sorted(s["id"] for s in box.json("ls")[1])
    rows = "SELECT state, rest, needs FROM segue.session ORDER BY id"
    right = box.sql(rows)
    expect([row.split("|")[:2] for row in right.splitlines()]
           == [["ended"] * 2, ["idle"] * 2, ["ready"] * 2, ["ready"] * 2], right)
    for sid, wrong, says in ((ended, "state = 'ready', rest = 'ready'", b"its row is filed as ready, its log says ended"),
                             (ended, "state = 'idle'", b"is idle, its log says ended"),
                             (stopped, "state = 'ready', rest = 'ready'", b"filed as ready, its log says idle"),
                             (stopped, "state = 'ended'", b"is ended, its log says idle"),
                             (waits, "rest = 'ended'", b"filed as ended, its log says ready"),
                             (waits, "state = 'idle'", b"is idle, its log says ready"),
                             (waits, "needs = '{gpu}'", b'with ["gpu"], its log for others'),
                             (stopped, "needs = '{host=elsewhere}'", b'with ["host=elsewhere"], its log for others'),
                             (sent, "needs = '{gpu}'", b'with ["gpu"], its log for others'),
                             (sent, "needs = '{}'", b"with [], its log for others")):
        box.sql(f"UPDATE segue.session SET {wrong} WHERE id = '{sid}'")
        found = box.segue("store", "check")
        expect(found.returncode == 1 and says in found.stdout and sid.encode() in found.stdout, wrong, found)
        mended = box.segue("store", "check", "--mend")
        expect(mended.returncode == 0 and mended.stdout.count(b": mended") == 1, wrong, mended)
        expect(box.sql(rows) == right, wrong, box.sql(rows))
    # A request that waits is no difference.
    box.sql(f"UPDATE segue.session SET state = 'ready', asked = 'resume' WHERE id = '{stopped}'")
    expect(box.segue("store", "check").returncode == 0, "a request")


def a_row_of_a_log_that_names_no_machine(box: SharedBox):
    """One that was begun with files asks for the machine that imported it, which only its row knows."""
    flow = box.file("stops.yaml", "name: s\nprovider: script\nmax_movements: 1\nmovements:\n"
                    "  - name: a\n    command: ['true']\n    rules: [{condition: when(true), next: b}]\n"
                    "  - name: b\n    command: ['true']\n    rules: [{condition: when(true), next: COMPLETE}]\n")
    box.segue("run", flow, "--task", "x", "--cwd", box.cwd, "-q", "--logs", box.dir + "/logs")
    (log,) = [name for name in os.listdir(box.dir + "/logs") if name.endswith(".ndjson")]
    done = box.segue("store", "import", "--move", f"{box.dir}/logs/{log}")
    expect(done.returncode == 0 and "host=" in box.sql("SELECT needs FROM segue.session"), done)
    box.sql("UPDATE segue.session SET needs = '{gpu}'")
    left = box.segue("store", "check", "--mend")
    expect(left.returncode == 1 and b"its log for the machine where it was submitted" in left.stdout
           and b"mended" not in left.stdout, left)


def an_import_keeps_what_a_session_asks_for():
    with SharedBox() as box, SharedBox() as other:
        flow = box.file("w.yaml", "name: w\nmovements:\n  - name: a\n    ask: {question: why?}\n"
                        "    rules: [{condition: when(true), next: COMPLETE}]\n")
        expect(box.segue("submit", flow, "--task", "x", "--cwd", box.cwd, "--on", "gpu,big").returncode == 0, "submit")
        done = box.segue("store", "export", "--move", box.dir + "/out")
        expect(done.returncode == 0, done)
        done = other.segue("store", "import", "--move", box.dir + "/out")
        expect(done.returncode == 0, done)
        expect(other.sql("SELECT needs, state FROM segue.session") == "{gpu,big}|ready", other.sql("SELECT needs, state FROM segue.session"))
        for one in (box, other):
            found = one.segue("store", "check")
            expect(found.returncode == 0, found)


def what_a_dead_worker_left_at_the_server(box: SharedBox):
    """The sweep ends its connection that keeps rows locked. An idle one holds nothing, and behind a pooler others use it."""
    database = box.store.rsplit("/", 1)[1]
    worker = "00000000-0000-4000-8000-000000000001"
    box.sql(f"INSERT INTO segue.worker (id, name, lease_until) VALUES ('{worker}', 'gone:1', now() - interval '1 minute')")
    left = [subprocess.Popen([SERVER.bin + "/psql", "-h", SERVER.dir, "-U", "postgres", "-d", database, "-AtqX"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, "PGAPPNAME": f"segue {worker}"})
            for _ in range(2)]
    try:
        for psql, begins in zip(left, (b"", b"BEGIN; ")):
            psql.stdin.write(begins + b"SELECT pg_backend_pid();\n")
            psql.stdin.flush()
        idle, busy = [psql.stdout.readline().decode().strip() for psql in left]
        there = f"SELECT pid FROM pg_stat_activity WHERE application_name = 'segue {worker}' ORDER BY state"
        end = time.monotonic() + WAIT_S
        while set(box.sql(there).splitlines()) != {idle} and time.monotonic() < end:
            box.sql("SELECT segue.sweep()")
            expect(idle in box.sql(there).splitlines(), "the idle one was ended")
        expect(box.sql(there) == idle, "the other one lives", idle, busy, box.sql(there))
    finally:
        for psql in left:
            psql.kill()
            psql.communicate()


def old_ones_are_pruned(box: SharedBox):
    long = "word " * 20000
    scenario = box.file("s.yaml", json.dumps({"replies": [{"text": long + "\n\n[WORK:1]", "times": 0}]}))
    flow = box.file("w.yaml", "name: w\nprovider: script\nmax_movements: 600\nmovements:\n  - name: work\n    instruction: do the work\n"
                    "    rules:\n      - {condition: done, next: COMPLETE}\n")
    for _ in range(3):
        done = box.segue("run", flow, "--scenario", scenario, "--task", "x", "--cwd", box.cwd, "-q")
        expect(done.returncode == 0, done)
    stopped = box.segue("run", box.file("a.yaml", "name: a\nmovements:\n  - name: a\n    ask: {question: why?}\n"
                                        "    rules: [{condition: when(true), next: COMPLETE}]\n"), "--task", "x", "--cwd", box.cwd)
    expect(b"NEEDS INPUT" in stopped.stdout, stopped)
    ids = [s["id"] for s in box.json("ls")[1]]
    expect(len(ids) == 4, ids)
    done = box.segue("store", "prune", "--older-than", "1d")
    expect(done.returncode == 0 and done.stdout == b"0 removed\n", done)
    # Old blobs that nobody names go; those that somebody names stay, however old they are.
    box.sql("UPDATE segue.blob SET put_at = now() - interval '2 days'; "
            "INSERT INTO segue.blob VALUES (decode(repeat('ab', 32), 'hex'), 3, now() - interval '2 days'), "
            "(decode(repeat('cd', 32), 'hex'), 3, now())")
    # Who was killed while it removed left lines.
    box.sql("INSERT INTO segue.line SELECT gen_random_uuid(), n, n, '{}' FROM generate_series(1, 20) n; "
            "INSERT INTO segue.line SELECT '00000000-0000-7000-8000-000000000001', n, n, '{}' FROM generate_series(1, 2500) n")
    named = box.sql("SELECT count(*) FROM segue.blob")
    done = box.segue("store", "prune", "--older-than", "1d")
    expect(done.returncode == 0, done)
    left = box.sql("SELECT count(*) FROM segue.line l WHERE NOT EXISTS (SELECT FROM segue.session s WHERE s.id = l.session)")
    expect(left == "0", left)
    expect(int(box.sql("SELECT count(*) FROM segue.blob")) == int(named) - 1, named)
    told = box.segue("store", "prune", "--older-than", "0s", "--dry-run")
    expect(told.stdout.count(b"\n") == 4 and b"3 would be removed" in told.stdout and len(box.json("ls")[1]) == 4, told)
    done = box.segue("store", "prune", "--older-than", "0s", "--json")
    expect(json.loads(done.stdout) == {"removed": 3, "dry_run": False}, done)
    expect([s["status"] for s in box.json("ls")[1]] == ["needs_input"], box.json("ls")[1])
    whole = box.segue("verify", box.store)
    expect(whole.returncode == 0, whole)
    expect(box.segue("store", "prune", "--older-than", "0s", "--stopped").stdout == b"1 removed\n", "stopped")
    expect(box.sql("SELECT count(*) FROM segue.line") == "0", "lines stay")
    for words in ([], ["--older-than", "x"], ["--older-than"]):
        done = box.segue("store", "prune", *words)
        expect(done.returncode == 2 and done.stderr, words, done)


def wrong_addresses(box):
    for url, says in (
            ("postgres://me:secret@localhost/db", b"a password in the address"),
            ("postgres://localhost/db?password=secret", b"a password in the address"),
            ("postgres://me:se?secret@localhost/db", b"a password in the address"),
            ("postgres://me:se#secret@localhost/db", b"a password in the address"),
            ("postgres://me:se/secret@localhost/db", b"a password in the address"),
            ("postgres://me:5/secret@localhost:5432/db", b"a password in the address"),
            ("postgres://localhost/db?%70assword=secret", b"a password in the address"),
            ("postgres://localhost/db?sslpass%77ord=secret", b"a password in the address"),
            ("postgres://localhost/d#b", b"%23"),
            ("postgres://localhost", b"names no database"),
            ("postgres://db.example.org/db?sslmode=prefer", b"sslmode=verify-full"),
            ("postgres://db.example.org/db?sslmode=allow", b"sslmode=verify-full"),
            ("postgres://localhost/db?nonsense=1", b"not a store's address"),
            ("mysql://localhost/db", b"not a store's address"),
            ("/some/folder", b"is not a store's address")):
        for words in (("ls",), ("store", "status")):
            done = box.segue(*words, "--store", url)
            expect(done.returncode == 2 and says in done.stderr, url, words, done)
            expect(b"secret" not in done.stdout + done.stderr, url, "the password is told")
    done = box.segue("store", "status")
    expect(done.returncode == 2 and b"--store" in done.stderr, done)


def wrong_places():
    with SharedBox(init=False) as box:
        no_tables = box.segue("ls")
        expect(no_tables.returncode == 2 and b"segue store init" in no_tables.stderr, no_tables)
        box.segue("store", "init")
        box.sql("UPDATE segue.meta SET version = 99")
        newer = box.segue("ls")
        expect(newer.returncode == 2 and b"newer segue" in newer.stderr, newer)
        expect(b"newer segue" in box.segue("store", "init").stderr, "init")
        box.sql("UPDATE segue.meta SET version = 0")
        older = box.segue("ls")
        expect(older.returncode == 2 and b"segue store init" in older.stderr, older)
        none = box.segue("ls", "--store", SERVER.url("there_is_none"))
        expect(none.returncode == 2 and b"does not exist" in none.stderr, none)
        user = box.segue("ls", "--store", SERVER.url("postgres", user="nobody_such"))
        expect(user.returncode == 2 and b"does not exist" in user.stderr, user)


def roles(box: SharedBox):
    """Each statement that a role forbids is tried and refused."""
    database = box.store.rsplit("/", 1)[1]
    box.sql("DO $$ BEGIN CREATE ROLE wil LOGIN; CREATE ROLE rea LOGIN; CREATE ROLE non LOGIN; "
            "EXCEPTION WHEN duplicate_object THEN NULL; END $$; "
            "GRANT segue_worker TO wil; GRANT segue_reader TO rea")
    url = {u: SERVER.url(database, user=u) for u in ("wil", "rea", "non")}
    done = box.segue("run", *box.words(), "-q", env={"SEGUE_STORE": url["wil"]})
    expect(done.returncode == 0, "a worker can run", done)
    seen = box.segue("verify", "last", env={"SEGUE_STORE": url["rea"]})
    expect(seen.returncode == 0, "a reader can read", seen)
    done = box.segue("run", *box.words(), "-q", env={"SEGUE_STORE": url["rea"]})
    expect(done.returncode != 0 and b"GRANT segue_worker" in done.stderr, done)
    done = box.segue("ls", env={"SEGUE_STORE": url["non"]})
    expect(done.returncode != 0 and b"GRANT segue_worker" in done.stderr, done)
    refused = ["UPDATE segue.line SET line = ''", "DELETE FROM segue.line",
               "INSERT INTO segue.line VALUES (gen_random_uuid(), 1, 0, '')",
               "UPDATE segue.session SET fence = 0", "DELETE FROM segue.session",
               "DELETE FROM segue.chain", "UPDATE segue.worker SET lease_until = now()",
               "UPDATE segue.provider SET seats = 9", "DELETE FROM segue.seat",
               "DELETE FROM segue.blob", "TRUNCATE segue.line", "DROP TABLE segue.line",
               "SELECT segue.remove(gen_random_uuid())", "SELECT segue.remove_lines(gen_random_uuid())",
               "SELECT segue.left_over()", "SELECT segue.blob_drop(repeat('ab', 32))",
               "CREATE FUNCTION segue.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'"]
    for statement in refused:
        for user in ("wil", "rea"):
            try:
                SERVER.sql(statement, database, user=user)
            except RuntimeError as error:
                expect("permission denied" in str(error) or "must be owner" in str(error), error)
            else:
                expect(False, user, "may", statement)
    for statement in ("SELECT segue.sweep()", "SELECT segue.ask(gen_random_uuid(), 'cancel', '')",
                      "SELECT segue.enter(gen_random_uuid(), 'x', '{}', '', 1000)"):
        try:
            SERVER.sql(statement, database, user="rea")
        except RuntimeError as error:
            expect("permission denied" in str(error), error)
        else:
            expect(False, "a reader may", statement)


def a_server_that_forgets():
    with postgres.Server(fsync=False) as other:
        with Box() as box:
            done = box.segue("store", "init", "--store", other.url("postgres"))
            expect(done.returncode == 2 and b"fsync = off" in done.stderr, done)


def without_the_library(box):
    fake = box.dir + "/lib"
    os.mkdir(fake)
    with open(fake + "/libpq.so.5", "wb") as f:
        f.write(b"no library")
    done = box.segue("ls", "--store", "postgres:///db", env={"LD_LIBRARY_PATH": fake})
    expect(done.returncode == 2 and b"libpq" in done.stderr, done)


def another_encoding():
    """All texts come back, also those that the database has no characters for."""
    with SharedBox(init=False) as box:
        for name, encoding in (("latin", "LATIN1"), ("plain", "SQL_ASCII")):
            SERVER.sql(f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
            env = {"SEGUE_STORE": SERVER.url(name)}
            expect(box.segue("store", "init", env=env).returncode == 0, "init")
            words = box.words()
            words[-1] = "tu es für 日本 \u0001"
            done = box.segue("run", *words, "-q", env=env)
            expect(done.returncode == 0, done)
            expect(box.segue("verify", "last", env=env).returncode == 0, "verify")
            shown = box.segue("show", "last", env=env)
            expect("日本".encode() in shown.stdout, shown)
            for word in ("日本", "für"):
                done = box.segue("store", "limit", word, "3", env=env)
                expect(done.returncode == 0, done)
            told = json.loads(box.segue("store", "status", "--json", env=env).stdout)
            expect({p["name"] for p in told["providers"]} == {"日本", "für"}, told)
            flow, away = box.file("w.yaml", "name: w\nprovider: script\nmovements:\n  - name: work\n    command: ['true']\n"
                                  "    rules: [{condition: when(exit == 0), next: COMPLETE}]\n"), f"{box.dir}/{name}-für-日本"
            done = box.segue("submit", flow, "--task", "x", "--cwd", box.cwd, "--on", "für-日本", env=env)
            expect(done.returncode == 0, done)
            done = box.segue("store", "export", "--move", away, env=env)
            expect(done.returncode == 0, done)
            done = box.segue("ls", env=env)
            expect(f"moved to {os.uname().nodename}:{os.path.realpath(away)}".encode() in done.stdout, done)
            done = box.segue("store", "import", "--move", away, env=env)
            expect(done.returncode == 0 and b"1 copied" in done.stdout, done)
            waits = [json.loads(row).get("waits") for row in box.segue("ls", "--json", env=env).stdout.splitlines()]
            expect("there is no worker" in waits, waits)


def blobs_of_several_parts(box: SharedBox):
    """A task of 2.5 MiB and one byte: read back whole; without a part, and without all, that is said."""
    task = box.file("task", b"0123456789abcde\n" * (160 * 1024) + b"x")
    flow = box.file("w.yaml", "name: w\nprovider: script\nmovements:\n  - name: work\n    instruction: do {task}\n"
                    "    rules: [{condition: done, next: COMPLETE}]\n")
    said = box.file("s.json", json.dumps({"replies": [{"text": "[WORK:1]"}]}))
    done = box.segue("submit", flow, "--scenario", said, "--task-file", task, "--cwd", box.cwd)
    expect(done.returncode == 0, done)
    expect(box.sql("SELECT max(part) FROM segue.blob_part") == "2", "parts")
    done = box.segue("resume", "last", "-q")
    expect(done.returncode == 0, done)
    expect(box.segue("verify", "last").returncode == 0, "verify")
    box.sql("DELETE FROM segue.blob_part WHERE part = 1")
    seen = box.segue("verify", "last")
    expect(seen.returncode == 1 and b"is not what was written" in seen.stdout + seen.stderr, seen)
    box.sql("DELETE FROM segue.blob")
    seen = box.segue("verify", "last")
    expect(seen.returncode == 1 and b"there is no blob" in seen.stdout + seen.stderr, seen)


def the_queue_by_labels():
    """What a worker takes, in the order of the queue, whatever else waits: few kinds of needs, more than
    are looked at kind by kind, more labels than the index has, and rows that another just takes."""
    worker, many = "00000000-0000-4000-9000-000000000000", "{" + ",".join(f"l{n}" for n in range(9)) + "}"
    with SharedBox() as box:
        box.sql(f"SELECT segue.enter('{worker}', 'w', '{{host=a,gpu,l0,l1,l2,l3,l4,l5,l6,l7}}', 'w', 3600000)")

        def queue(*needs):
            box.sql("DELETE FROM segue.session")
            for n, need in enumerate(needs):
                box.sql("INSERT INTO segue.session (id, state, rest, needs, seq) VALUES "
                        f"('00000000-0000-7000-8000-{n:012}', 'ready', 'ready', '{need}', 1)")

        def claim(most=8, spared="{}"):
            rows = box.sql(f"SELECT o_id FROM segue.claim('{worker}', {most}, '{spared}', 65536)")
            box.sql("UPDATE segue.session SET state = 'ready', owner = NULL WHERE state = 'held'")
            return [int(row[-12:]) for row in rows.splitlines()]

        def looks():
            expect(claim() == [1, 2, 4, 6, 7], claim())
            expect(claim(2) == [1, 2] and claim(3, "{00000000-0000-7000-8000-000000000002}") == [1, 4, 6], "fewer")
            expect(box.sql(f"SELECT o_ready FROM segue.poll('{worker}')") == "t", "the poll")
        queue("{host=b}", "{gpu,host=a}", "{}", many, "{host=a}", "{host=b}", "{gpu,host=a}",
              many.replace("l8", "gpu"))
        looks()
        box.sql("INSERT INTO segue.session (id, state, rest, needs, seq) SELECT gen_random_uuid(), 'ready', 'ready', "
                "ARRAY['kind' || n], 1 FROM generate_series(1, 300) n")
        looks()
        box.sql("UPDATE segue.session SET ready_at = now() + interval '1 hour' WHERE needs <@ '{host=a,gpu}'")
        expect(claim() == [7], claim())
        box.sql("DELETE FROM segue.session WHERE needs @> '{gpu}'")
        expect(claim() == [] and box.sql(f"SELECT o_ready FROM segue.poll('{worker}')") == "f", "nothing fits")
        queue(*["{}"] * 5)
        locker = subprocess.Popen([SERVER.bin + "/psql", "-h", SERVER.dir, "-U", "postgres", "-AtqX", "-d",
                                   box.store.rsplit("/", 1)[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  cwd=SERVER.dir, **SERVER.drop)
        with locker:
            locker.stdin.write(b"BEGIN; SELECT 'locked' FROM segue.session WHERE id::text ~ '[013]$' FOR UPDATE;\n")
            locker.stdin.flush()
            expect([locker.stdout.readline() for _ in range(3)] == [b"locked\n"] * 3, "it locks")
            rows = box.sql(f"SELECT o_id FROM segue.claim('{worker}', 2, '{{}}', 65536)")
            locker.stdin.close()
        expect([int(row[-12:]) for row in rows.splitlines()] == [2, 4], rows)


def a_submit_is_one_connection(box: SharedBox):
    """Counted by the server, to which it says goodbye."""
    flow = box.file("w.yaml", "name: w\nprovider: script\nmovements:\n  - name: work\n    command: ['true']\n"
                    "    rules: [{condition: when(exit == 0), next: COMPLETE}]\n")
    name = box.store.rsplit("/", 1)[1]

    def sessions():
        end = time.monotonic() + WAIT_S
        while SERVER.sql(f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'") != "0":
            expect(time.monotonic() < end, "a connection stays")
        return int(SERVER.sql(f"SELECT sessions FROM pg_stat_database WHERE datname = '{name}'"))
    before = sessions()
    size = os.path.getsize(SERVER.dir + "/log")
    done = box.segue("submit", flow, "--task", "x", "--cwd", box.cwd)
    expect(done.returncode == 0, done)
    expect(sessions() == before + 1, before, sessions())
    with open(SERVER.dir + "/log", "rb") as f:
        f.seek(size)
        said = f.read()
    expect(b"connection to client lost" not in said, said)


def a_file_beside_the_store(box: SharedBox):
    words = every_way(box)
    done = box.segue("run", *words, "-q", env={"SEGUE_STORE": ""})
    expect(done.returncode == 0, done)
    (path,) = box.log_paths()
    seen = box.segue("verify", path)
    expect(seen.returncode == 0 and b"complete" in seen.stdout, seen)
    expect(verdicts(records(path)) == WANTED, "verdicts")


if __name__ == "__main__":
    need_build()
    postgres.need()
    with postgres.Server() as SERVER:
        status = main([made_and_made_again, named_in_the_configuration, messages_name_host_port_and_database,
                       tables_of_version_1_are_brought_up_to_date, two_make_it_at_once, a_session_from_its_start_to_its_end,
                       labels_are_compared_there,
                       the_same_records_as_in_files, stopped_and_gone_on_with, one_owner_at_a_time,
                       killed_and_gone_on_with_once_its_lease_is_over, cancelled_from_elsewhere,
                       a_stopped_one_is_cancelled_here, the_lease_ends_under_it,
                       the_server_is_gone_for_a_while, a_changed_line_is_named,
                       a_row_that_says_more_than_its_log, a_log_that_is_gone_is_not_mended_away, a_row_that_says_other_than_its_log, a_row_of_a_log_that_names_no_machine,
                       an_import_keeps_what_a_session_asks_for, what_a_dead_worker_left_at_the_server, wrong_addresses, wrong_places, roles,
                       a_server_that_forgets, without_the_library, another_encoding,
                       blobs_of_several_parts, the_queue_by_labels, a_submit_is_one_connection, a_file_beside_the_store, old_ones_are_pruned])
    sys.exit(status)
