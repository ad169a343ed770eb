#!/usr/bin/env python3
"""A hostile worker: it has the login of all workers, reads what they may read, and calls each function that they may
call with every argument wrong, or right but for the word. It takes sessions by the rules, and does nothing else."""
import hashlib
import json
import random
import sys

from shared_daemon_test import Fleet
from support import expect, main, need_build, sample
import postgres
import shared_daemon_test

WORD, ITS_OWN = "11111111-2222-4333-8444-555555555555", "66666666-2222-4333-8444-555555555555"
HELD, EMPTY, WAITS = (f"0199000a-0000-7000-8000-{n:012}" for n in range(3))
MANY, AT_ONCE = 600, 20  # calls of each function, and in a transaction


def chained(body, before="0" * 64):
    """A line as logs and chains have them."""
    text = json.dumps(body, separators=(",", ":"))[:-1]
    return text + ',"hash":"' + hashlib.sha256((before + text).encode()).hexdigest() + '"}'


def bytea(text):
    return "decode('" + text.encode().hex() + "', 'hex')"


class Attacked(Fleet):
    """A store with a session that a worker holds, one that it has just made, and one that has ended."""

    def __init__(self):
        super().__init__("30s")
        flow = self.file("w.yaml", "name: w\nprovider: script\nmovements:\n  - name: work\n    command: ['true']\n"
                         "    rules: [{condition: when(exit == 0), next: COMPLETE}]\n")
        done = self.segue("run", flow, "-t", "x" * 70000)  # a blob
        expect(done.returncode == 0, done)
        self.ended = self.sql("SELECT id FROM segue.session")
        self.lines, before = [], "0" * 64
        for n in (1, 2, 3):
            self.lines.append(chained({"v": 1, "seq": n, "type": "session_stop" if n == 3 else "call_event"}, before))
            before = self.lines[-1][-66:-2]
        self.head = before
        self.sql(f"SELECT segue.enter('{WORD}', 'victim', '{{}}', '', 3600000)")
        for sid in (HELD, EMPTY, WAITS):
            self.sql(f"SELECT segue.make('{WORD}', '{sid}', '{{nobody}}', NULL, false)")
        said = self.append(WORD, self.lines)
        expect(said.startswith("ok|3|" + self.head), said)
        self.victim = self.sql("SELECT id FROM segue.worker WHERE name = 'victim'")
        self.sql("DO $$ BEGIN CREATE ROLE wil LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$; GRANT segue_worker TO wil")
        self.sql(f"SELECT segue.enter('{ITS_OWN}', 'wil', '{{}}', '', 3600000)", "wil")
        self.sql("INSERT INTO segue.provider (name, seats) VALUES ('p', 3); "
                 f"SELECT segue.seat_take('{WORD}', 1, 'p')")

    def sql(self, text, user="postgres"):
        return shared_daemon_test.SERVER.sql(text, self.store.rsplit("/", 1)[1], user)

    def append(self, word, lines, seq=0, user="postgres", fence=1):
        listed = ", ".join(bytea(line) for line in lines)
        return self.sql(f"SELECT o_result, o_seq, o_hash FROM segue.append('{word}', '{HELD}', {fence}, {seq}, 'idle', false, "
                        f"ARRAY[{listed}]::bytea[])", user)

    def state(self):
        """All that a hostile worker must not change."""
        named = f"id IN ('{HELD}', '{EMPTY}', '{WAITS}')"
        return [self.sql(text) for text in (
            f"SELECT id, state, rest, owner, fence, seq, bytes, hash, needs, moved, deaths, died FROM segue.session WHERE {named} ORDER BY id",
            f"SELECT id, rest, seq, bytes, hash, needs, moved FROM segue.session WHERE id = '{self.ended}'",
            f"SELECT * FROM segue.line WHERE session IN ('{HELD}', '{EMPTY}', '{WAITS}', '{self.ended}') ORDER BY session, seq",
            "SELECT * FROM segue.worker WHERE name = 'victim'", "SELECT * FROM segue.chain WHERE name = 'heads' ORDER BY n",
            "SELECT sha256, bytes FROM segue.blob WHERE bytes > 1000", "SELECT sha256, part, md5(data) FROM segue.blob_part "
            "WHERE sha256 IN (SELECT sha256 FROM segue.blob WHERE bytes > 1000) ORDER BY 1, 2",
            "SELECT worker, n, provider FROM segue.seat WHERE n = 1")]

    def wrong(self, kind):
        """Values of a type: what names something that is there, and what nobody expects."""
        sha = self.sql("SELECT encode(sha256, 'hex') FROM segue.blob WHERE bytes > 1000 LIMIT 1")
        entry = {"v": 1, "n": 2, "type": "removed", "session": HELD, "seq": 3, "head": self.head}
        forged = [self.lines[0], self.lines[2], chained({"v": 1, "seq": 4}, self.head), "", "x" * 500, chained(entry),
                  chained(entry, self.sql("SELECT convert_from(line, 'UTF8')::jsonb->>'hash' FROM segue.chain "
                                          "WHERE name = 'heads' ORDER BY n DESC LIMIT 1"))]
        number = ["0", "1", "2", "3", "4", "-1", "4611686018427387904", "NULL"]
        return {"uuid": [f"'{v}'" for v in (HELD, EMPTY, WAITS, self.ended, self.victim, ITS_OWN)] + ["gen_random_uuid()", "NULL"],
                "text": [f"'{v}'" for v in ("", "ended", "idle", "ready", "held", "cancel", "resume", "heads", "labels", "p", sha,
                                            HELD, "x" * 3000)] + ["NULL"],
                "bigint": number, "integer": [n for n in number if len(n) < 9], "boolean": ["true", "false", "NULL"],
                "bytea": [bytea(v) for v in forged] + ["NULL"], "jsonb": ["'{}'", "NULL"]}[kind]

    def draw(self, r, kind, wrong):
        if not kind.endswith("[]"):
            return f"{r.choice(wrong[kind])}::{kind}"
        if r.random() < 0.1:
            return "NULL"
        return "ARRAY[" + ", ".join(r.choice(wrong[kind[:-2]]) for _ in range(r.choice((0, 1, 1, 1, 2, 3)))) + f"]::{kind}"


def each_function_with_every_argument_wrong():
    r = random.Random(sample.seed())
    with Attacked() as store:
        functions = store.sql("SELECT p.oid::regproc, array_to_string(p.proargtypes::regtype[], ' ') FROM pg_proc p WHERE "
                              "p.pronamespace = 'segue'::regnamespace AND has_function_privilege('wil', p.oid, 'EXECUTE')")
        functions = [line.split("|") for line in functions.splitlines()]
        names = {name.split(".")[1] for name, _ in functions}
        expect({"append", "append_all", "release", "forget", "move_in", "leave", "chain_put"} <= names, names)
        for inner in ("gave_up", "remove", "remove_lines", "left_over", "blob_drop", "note_over"):
            expect(inner not in names, inner)
        before = store.state()
        wrong = {k: store.wrong(k) for k in ("uuid", "text", "bigint", "integer", "boolean", "bytea", "jsonb")}
        for name, kinds in functions:
            for _ in range(MANY // AT_ONCE):
                calls = [f"PERFORM {name}({', '.join(store.draw(r, kind, wrong) for kind in kinds.split())}); "
                         for _ in range(AT_ONCE)]
                store.sql("DO $do$ BEGIN " + "".join(f"BEGIN {call} EXCEPTION WHEN OTHERS THEN NULL; END; " for call in calls)
                          + "END $do$", "wil")
            now = store.state()
            expect(now == before, f"SEGUE_TEST_SEED={sample.seed()}", name, [(a, b) for a, b in zip(before, now) if a != b])
        for sha, size in (("", 1 << 62), ("ab", 1), ("00" * 32, -1), ("00" * 32, 1 << 62), ("00" * 33, 1)):
            try:
                expect(store.sql(f"SELECT segue.blob_begin('{sha}', {size})", "wil") is None, sha, size, "was taken")
            except RuntimeError as error:
                expect("this is no blob" in str(error), error)
        store.sql("UPDATE segue.worker SET lease_until = now() WHERE name = 'wil'; SELECT segue.sweep()")
        expect(store.sql(f"SELECT state FROM segue.session WHERE id = '{store.ended}'") == "ended", "it has ended")
        said = store.append(WORD, [chained({"v": 1, "seq": 4}, store.head)], 3)
        expect(said.startswith("ok|4|"), "its owner goes on", said)


def all_right_but_for_the_word(store: Attacked):
    """What removed or rewrote any log: all else is what the owner would say."""
    tables = store.sql("SELECT table_name FROM information_schema.tables WHERE table_schema = 'segue'").split()
    for table in tables:
        expect(WORD not in store.sql(f"SELECT * FROM segue.{table}"), "the word stands in", table)
    before, line = store.state(), bytea(chained({"v": 1, "seq": 4}, store.head))
    for word in (ITS_OWN, store.victim, HELD):
        expect(store.append(word, [chained({"v": 1, "seq": 4}, store.head)], 3, "wil").startswith("fenced"), word)
        for call in (f"append_all('{word}', '{{{HELD}}}', '{{1}}', '{{3}}', '{{idle}}', '{{t}}', '{{1}}', ARRAY[{line}])",
                     f"release('{word}', '{HELD}', 1, 0, 'x', true)", f"forget('{word}', '{EMPTY}')",
                     f"set_aside('{word}', '{HELD}', 1, 'x')", f"arrive('{word}', '{HELD}', 1, 'idle')",
                     f"move_in('{word}', '{HELD}', '{{}}', (SELECT bytes FROM segue.session WHERE id = '{HELD}'), true)",
                     f"move_in('{word}', '{store.ended}', '{{}}', (SELECT bytes FROM segue.session WHERE id = '{store.ended}'), true)",
                     f"hold('{word}', '{HELD}')", f"leave('{word}')", f"renew('{word}', 1)", f"heard('{word}', '{HELD}', 1, 'x')",
                     f"seat_leave('{word}', 1)"):
            try:
                store.sql(f"SELECT segue.{call}", "wil")
            except RuntimeError as error:
                expect("violates" not in str(error), error)
            expect(store.state() == before, word, call)
        if word == ITS_OWN:  # it left
            store.sql(f"SELECT segue.enter('{ITS_OWN}', 'wil', '{{}}', '', 3600000)", "wil")
    # What it has taken by the rules it appends to; never over a line that is there, nor after the end.
    took = store.sql(f"SELECT o_fence, o_seq FROM segue.hold('{ITS_OWN}', '{store.ended}')", "wil").split("|")
    said = store.sql(f"SELECT o_result FROM segue.append('{ITS_OWN}', '{store.ended}', {took[0]}, {took[1]}, 'idle', false, "
                     f"ARRAY[{line}])", "wil")
    expect(said != "ok" and store.state() == before, said)


def its_own_lines_are_counted(store: Attacked):
    """What the row says follows from the lines, also of several batches in one statement."""
    lines = [chained({"v": 1, "seq": 4 + n, "x": "y" * n}, store.head) for n in range(3)]
    other = chained({"v": 1, "seq": 1})
    listed = ", ".join(bytea(line) for line in [other, *lines])
    call = "SELECT o_n FROM segue.append_all('%s', '{%s}', '{1,1}', '{0,3}', '{idle,idle}', '{f,f}', '{%%s}', ARRAY[%s]) " \
           "ORDER BY 1" % (WORD, f"{EMPTY},{HELD}", listed)
    for apart in ("1,2,1,2", "2,1,2,2", "1,3,3,3", "1,1,1,1", "0,2,2,2"):
        expect(store.sql(call % apart) == "", apart)
    expect(store.sql(call % "1,2,2,2").split() == ["1", "2"], "both")
    rows = store.sql(f"SELECT s.seq, s.bytes, encode(s.hash, 'hex'), (SELECT string_agg(l.at::text, ' ' ORDER BY l.seq) FROM segue.line l "
                     f"WHERE l.session = s.id) FROM segue.session s WHERE id IN ('{HELD}', '{EMPTY}') ORDER BY id").splitlines()
    for row, log in zip(rows, (store.lines + lines, [other])):
        ats = [sum(len(line) + 1 for line in log[:n]) for n in range(len(log) + 1)]
        expect(row == f"{len(log)}|{ats[-1]}|{log[-1][-66:-2]}|{' '.join(str(at) for at in ats[:-1])}", row)
    made = "0199000a-0000-7000-8000-000000000009"
    said = store.sql(f"SELECT o_n FROM segue.begin_all('{WORD}', '{{{HELD},{made}}}', ARRAY['{{}}','{{}}'], '{{idle,ready}}', "
                     f"'{{1,2,2}}', ARRAY[{bytea(other)}, {bytea(lines[0])}, {bytea(lines[1])}])")
    expect(said == "2" and store.sql(f"SELECT seq, fence, rest FROM segue.session WHERE id = '{made}'") == "2|1|ready", said)
    expect(store.sql(f"SELECT at FROM segue.line WHERE session = '{made}' ORDER BY seq").split() == ["0", str(len(lines[0]) + 1)],
           "its lines")


def a_log_that_never_stopped_is_missed():
    """The ledger has the head of what a worker has taken: a session that vanishes while it is at work, or is cut off."""
    for how in ("gone", "cut"):
        with Fleet("1s") as store:
            store.serve()
            sid = store.submit(store.workflow(600))[0]
            held = "SELECT count(*) FROM segue.chain WHERE position('\"type\":\"held\"'::bytea IN line) > 0"
            store.until(lambda s=store: s.sql(held) == "2", "its heads are in the ledger")
            expect(store.segue("verify", store.store).returncode == 0, store.segue("verify", store.store))
            if how == "gone":
                store.sql(f"DELETE FROM segue.session WHERE id = '{sid}'; DELETE FROM segue.line WHERE session = '{sid}'")
            else:
                store.sql(f"UPDATE segue.session SET seq = 1, bytes = (SELECT at FROM segue.line WHERE session = '{sid}' AND seq = 2), "
                          f"hash = decode((SELECT segue.hash_of(line) FROM segue.line WHERE session = '{sid}' AND seq = 1), 'hex') "
                          f"WHERE id = '{sid}'; DELETE FROM segue.line WHERE session = '{sid}' AND seq > 1")
            seen = store.segue("verify", store.store)
            expect(seen.returncode == 1 and b"missing" in seen.stdout + seen.stderr, how, seen)


if __name__ == "__main__":
    need_build()
    postgres.need()
    with postgres.Server() as shared_daemon_test.SERVER:
        sys.exit(main([each_function_with_every_argument_wrong, all_right_but_for_the_word, its_own_lines_are_counted,
                       a_log_that_never_stopped_is_missed]))
