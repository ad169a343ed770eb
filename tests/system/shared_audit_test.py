#!/usr/bin/env python3
"""segue audit --kept on a shared store: what was read before and what is new give the very text that
reading all of it gives, for whoever asks; readers keep nothing."""
import json
import os
import random
import sys

from audit_kept_test import told, words_of_some
from audit_logs import write
from support import expect, main, need_build
import postgres
import shared_store_test
from shared_store_test import SharedBox

SERVER = None
LOGS = 40


def lines_of(path):
    with open(path, "rb") as f:
        return f.read().splitlines(keepends=True)


def put(box, sid, lines):
    """A log as far as it came, as a worker would have left it."""
    at, rows = 0, []
    for seq, line in enumerate(lines, 1):
        rows.append(f"('{sid}', {seq}, {at}, decode('{line[:-1].hex()}', 'hex'))")
        at += len(line)
    last = json.loads(lines[-1])
    state = "ended" if last["type"] == "session_end" else "idle"
    box.sql(f"DELETE FROM segue.line WHERE session = '{sid}'; "
            f"INSERT INTO segue.session (id, state, rest, seq, bytes, hash) VALUES ('{sid}', '{state}', '{state}', {len(lines)}, {at}, "
            f"decode('{last['hash']}', 'hex')) ON CONFLICT (id) DO UPDATE SET state = EXCLUDED.state, rest = EXCLUDED.rest, "
            "seq = EXCLUDED.seq, bytes = EXCLUDED.bytes, hash = EXCLUDED.hash; "
            "INSERT INTO segue.line VALUES " + ", ".join(rows))


def bed(box):
    """A store of some logs, and all lines of each; every fourth has not come to its end."""
    write(box.dir + "/all", LOGS, 6, seed=9)
    logs = {name[:-7]: lines_of(f"{box.dir}/all/{name}") for name in sorted(os.listdir(box.dir + "/all")) if name.endswith(".ndjson")}
    for n, (sid, lines) in enumerate(logs.items()):
        put(box, sid, lines[:-2] if n % 4 == 0 else lines)
    return logs


def same(box, known, rounds=2, **more):
    for words in [["--json"]] + [words_of_some() for _ in range(rounds)]:
        kept, whole = box.segue("audit", "--kept", *words, **more), box.segue("audit", *words, **more)
        expect(kept.returncode == whole.returncode == 0 and kept.stdout == whole.stdout, words, kept, whole)
        expect(known is None or told(kept) == (known, LOGS - known), words, kept.stderr, known)
        expect(kept.stderr.split(b"\n", 1)[1] == whole.stderr, words, kept.stderr, whole.stderr)
        known = None


def grows(box: SharedBox):
    logs = bed(box)
    same(box, 0)
    same(box, LOGS, 24)
    for sid, lines in list(logs.items())[:12:4]:
        put(box, sid, lines)
    same(box, LOGS - 3, 0)
    same(box, LOGS)
    # Whether a session is open or running depends on who has it now.
    sid = list(logs)[16]
    box.sql("INSERT INTO segue.worker (id, name, lease_until) VALUES ('00000000-0000-4000-8000-000000000001', 'w', now() + interval "
            f"'1 hour'); UPDATE segue.session SET state = 'held', owner = '00000000-0000-4000-8000-000000000001' WHERE id = '{sid}'")
    expect(b'"running"' in box.segue("audit", "--kept", "--json").stdout, "it is open")
    same(box, LOGS, 6)
    box.sql(f"UPDATE segue.session SET state = 'idle', owner = NULL WHERE id = '{sid}'")
    expect(box.segue("rm", list(logs)[1]).returncode == 0)
    expect(box.sql("SELECT count(*) FROM segue.counted").strip() == str(LOGS - 1), "a removed session's counts stay")


def readers(box: SharedBox):
    """They use what others kept, and keep nothing; nor does a server that takes no writes."""
    bed(box)
    name = box.store.rsplit("/", 1)[1]
    box.sql("DO $$ BEGIN CREATE ROLE looks LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$; GRANT segue_reader TO looks")
    own, box.env["SEGUE_STORE"] = box.env["SEGUE_STORE"], SERVER.url(name, user="looks")
    same(box, 0)
    expect(box.sql("SELECT count(*) FROM segue.counted").strip() == "0", "a reader kept something")
    box.env["SEGUE_STORE"] = own
    box.sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    same(box, 0, 0)
    SERVER.sql(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    same(box, 0, 0)
    box.env["SEGUE_STORE"] = SERVER.url(name, user="looks")
    same(box, LOGS)


def damaged(box: SharedBox):
    """A value that is not what was written counts nothing, not even in part: its log is read again."""
    bed(box)
    same(box, 0, 0)
    dice = random.Random(7)
    for bad in ("substring(judgments FOR length(judgments) / 2)", "judgments || '\\x00'::bytea", "'\\x'::bytea", "'\\x05'::bytea",
                "decode(repeat('ff', 40), 'hex')", f"decode('{dice.randbytes(500).hex()}', 'hex')"):
        box.sql(f"UPDATE segue.counted SET judgments = {bad} WHERE session IN (SELECT session FROM segue.counted ORDER BY session LIMIT 9)")
        same(box, LOGS - 9, 0)
        same(box, LOGS, 0)
    box.sql("UPDATE segue.counted SET format = 99")
    same(box, 0, 0)
    same(box, LOGS, 0)


if __name__ == "__main__":
    need_build()
    postgres.need()
    with postgres.Server() as SERVER:
        shared_store_test.SERVER = SERVER
        status = main([grows, readers, damaged])
    sys.exit(status)
