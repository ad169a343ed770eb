#!/usr/bin/env python3
"""segue audit --kept: for whatever keys and filters, what was read before and what is new give the very
text that reading all of it gives, while logs come, go on, end and go, and whatever becomes of the file
in which it is kept."""
import contextlib
import fcntl
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import copied_logs
from audit_logs import write
from support import SEGUE, expect, main

KEYS = ["method", "match_method", "movement", "workflow", "provider", "model", "worker", "worker_model", "schema",
        "outcome", "rule", "mark", "day", "stage", "reason", "to"]
FILTERS = [["--method", "when"], ["--method", "tag_fallback,ai_judge"], ["--since", "2020-01-01"],
           ["--since", "2026-09-22"], ["--ambiguous"], ["--min-stages", "2"], ["--workflow", "flow"],
           ["--workflow", "none"], ["--outcome", "complete,stopped"], ["--outcome", "open"], ["--movement", "work,fix"],
           ["--provider", "claude"], ["--model", "m1"], ["--worker", "codex"]]
FORMS = [["--json"], ["--csv"], []]
dice = random.Random(11)


def words_of_some():
    """Up to four keys and two filters, in one of the three forms."""
    keys = dice.sample(KEYS, dice.randrange(5))
    filters = {f[0]: f[1:] for f in dice.sample(FILTERS, dice.choice((0, 1, 1, 2)))}
    words = [w for name, values in filters.items() for w in (name, *values)]
    return words + (["--by", ",".join(keys)] if keys else []) + dice.choice(FORMS)


def told(done):
    """How many logs were known, and how many were read."""
    words = done.stderr.decode().split("\n")[0].split()
    expect(words[1:6] == ["logs", "counted", "from", "earlier", "results,"], done.stderr)
    return int(words[0]), int(words[6])


def same(box, folder, known=None, rounds=5):
    for words in [["--json"]] + [words_of_some() for _ in range(rounds)]:
        kept, whole = box.segue("audit", folder, "--kept", *words), box.segue("audit", folder, *words)
        expect(kept.returncode == whole.returncode == 0 and kept.stdout == whole.stdout, words, kept.stderr, whole.stderr)
        expect(known is None or told(kept)[0] == known, words, kept.stderr, known)
        rest = kept.stderr.split(b"\n", 1)[1]
        expect(rest == whole.stderr, words, rest, whole.stderr)
        known = None


def logs(part):
    return sum(name.endswith(".ndjson") for name in os.listdir(part))


def bed(box, n=120):
    """Some logs in a folder, the others beside it."""
    whole, part = box.dir + "/all", box.dir + "/some"
    write(whole, n, 6, seed=9)
    os.mkdir(part)
    names = sorted(name for name in os.listdir(whole) if name.endswith(".ndjson"))
    for name in names[:n // 2]:
        shutil.copy(f"{whole}/{name}", part)
    return whole, part, names


def grows(box):
    whole, part, names = bed(box)
    before = {name: open(f"{part}/{name}", "rb").read() for name in os.listdir(part)}
    same(box, part, 0)
    known = logs(part)
    expect(known > 20, known)
    for name in names[60:90]:
        shutil.copy(f"{whole}/{name}", part)
    same(box, part, known)
    for name in names[90:]:  # as far as they came, then whole
        text = open(f"{whole}/{name}", "rb").read().splitlines(keepends=True)
        Path(f"{part}/{name}").write_bytes(b"".join(text[:-2]))
    same(box, part)
    for name in names[90:]:
        shutil.copy(f"{whole}/{name}", part)
    same(box, part)
    same(box, part, logs(part), 24)
    expect(all(open(f"{part}/{n}", "rb").read() == text for n, text in before.items()), "a log was changed")


def unfinished(box):
    """A log that has not ended is kept as well: whether somebody owns it is asked each time, and what is
    appended to it makes it read again."""
    _, part, names = bed(box)
    same(box, part, 0, 2)
    path = next(p for p in (f"{part}/{n}" for n in names[:60])
                if json.loads(open(p, "rb").read().splitlines()[-1])["type"] not in ("session_end", "session_stop"))
    with open(path, "r+b") as f:
        fcntl.lockf(f, fcntl.LOCK_EX)
        running = box.segue("audit", part, "--kept", "--json", "--outcome", "running")
        expect(json.loads(running.stdout)["totals"]["sessions"]["counted"] == 1, running)
        same(box, part, logs(part), 3)
        text = f.read()
        f.seek(text.rindex(b"\n", 0, -1) + 1)
        f.truncate()  # its last record is not written yet
        same(box, part, logs(part) - 1, 2)
        f.write(text[f.tell():])
        f.flush()
        same(box, part, logs(part) - 1, 2)
    same(box, part, logs(part), 2)


def tables(box):
    """What SQLite says of the tables is what the audit says."""
    _, part, _ = bed(box)
    same(box, part, 0, 0)
    before = set(os.listdir(part))
    box.segue("run", box.file("t.yaml", copied_logs.TIDY), "-t", "x", "-l", part, status=0)
    labelled = next(name[:-7] for name in set(os.listdir(part)) - before if name.endswith(".ndjson"))
    for by in ("ann", "bob"):
        box.segue("label", labelled, "check", "1", "--as", by, "--logs", part, status=0)
    totals = json.loads(box.segue("audit", part, "--kept", "--json").stdout)["totals"]
    with contextlib.closing(sqlite3.connect(f"file:{part}/index.sqlite?mode=ro", uri=True)) as db:
        def groups(*words):
            return json.loads(box.segue("audit", part, "--json", *words).stdout)["groups"]

        for keys, table in ((("movement", "method"), "judgments"), (("workflow", "match_method"), "judgments"),
                            (("provider", "rule"), "judgments"), (("stage", "reason"), "stages"),
                            (("workflow", "stage"), "stages"), (("provider", "model"), "judgments")):
            found = {tuple(row[:-1]): row[-1] for row in
                     db.execute(f"select {','.join(keys)}, count(*) from {table} group by {','.join(keys)}")}
            told = {tuple(g[k] for k in keys): g.get("stages", g["judgments"]) for g in groups("--by", ",".join(keys))}
            expect({k: n for k, n in told.items() if n > 0} == found, keys, table, told, found)
        outcomes = dict(db.execute("select outcome, count(*) from stages where vote is null group by 1"))
        expect(outcomes == totals["outcomes"], outcomes, totals["outcomes"])
        use = totals["use"], totals["work"]
        ours = db.execute("select sum(count), sum(duration_ms), sum(input), sum(output), sum(unpriced) from calls").fetchone()
        expect(ours == tuple(sum(u[k] for u in use) for k in ("calls", "duration_ms", "input", "output", "unpriced")), ours, use)
        cost = db.execute("select sum(cost_usd) from calls").fetchone()[0]
        expect(abs(cost - sum(u["cost_usd"] for u in use)) < 1e-6, cost, use)
        turns = db.execute("select count(*), sum(calls) from turns").fetchone()
        expect(turns[0] >= totals["judgments"] and turns[1] == totals["work"]["calls"], turns, totals)
        expect(db.execute("select session, turn, rule, person from labels order by number").fetchall() ==
               [(labelled, 1, 1, by) for by in ("ann", "bob")], "labels")


def gone_and_damaged(box):
    _, part, names = bed(box)
    same(box, part, 0, 2)
    for name in names[5:15]:
        os.remove(f"{part}/{name}")
    same(box, part, logs(part), 2)
    path = part + "/index.sqlite"
    with sqlite3.connect(path) as db:
        expect(db.execute("select count(*) from log_rows").fetchone()[0] == logs(part), "gone logs stay")
    db.close()
    good = open(path, "rb").read()
    for bad in (good[:len(good) // 2], good[:-9] + b"x" * 9, b"", b"\0" * len(good), good[:100], os.urandom(9000),
                *(good[:at] + os.urandom(512) + good[at + 512:] for at in range(0, len(good) - 512, len(good) // 9))):
        Path(path).write_bytes(bad)
        same(box, part, None, 1)
        same(box, part, None, 0)
        same(box, part, logs(part), 0)
    with sqlite3.connect(path) as db:
        db.execute("pragma user_version=99999")
    db.close()
    same(box, part, 0, 1)
    same(box, part, logs(part), 1)
    os.remove(path)
    os.mkdir(path)  # it cannot be written
    same(box, part, 0, 1)
    same(box, part, 0, 1)


def others_write(box):
    """Who finds the file locked reads the logs, and waits for nobody; a killed writer leaves what was there."""
    whole, part, names = bed(box)
    same(box, part, 0, 1)
    db = sqlite3.connect(part + "/index.sqlite", isolation_level=None)
    known = logs(part)
    for name in names[60:70]:
        shutil.copy(f"{whole}/{name}", part)
    db.execute("begin immediate")
    db.execute("delete from log_rows")
    same(box, part, known, 2)  # as before: it cannot be written
    same(box, part, known, 0)
    db.execute("rollback")
    db.close()
    same(box, part, known, 0)
    same(box, part, logs(part), 2)
    for name in names[70:]:
        shutil.copy(f"{whole}/{name}", part)
    for _ in range(12):
        audits = [subprocess.Popen([SEGUE, "audit", part, "--kept", "--json"], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL) for _ in range(3)]
        audits[0].send_signal(signal.SIGKILL)
        texts = {one.communicate()[0] for one in audits[1:]}
        audits[0].communicate()
        expect(len(texts) == 1, texts)
    same(box, part, logs(part), 2)


def full_disk(box):
    """Nothing is kept, nothing else is wrong."""
    _, part, _ = bed(box, 60)
    whole = box.segue("audit", part, "--json").stdout
    for blocks in (0, 1, 16, 40):  # of 512 bytes, for each file
        with tempfile.TemporaryDirectory() as other:
            done = subprocess.run(["sh", "-c", f"trap '' XFSZ; ulimit -f {blocks}; exec \"$@\" | cat", "sh", SEGUE,
                                   "audit", part, "--kept", "--json"], capture_output=True, env=box.env, check=False)
            expect(done.stdout == whole, blocks, done, other)
    same(box, part, None, 2)


def bad_logs(box):
    """What is torn, tampered with or foreign is read each time and told each time."""
    _, part, names = bed(box)
    with open(f"{part}/{names[0]}", "r+b") as f:
        text = f.read()
        f.seek(0)
        f.write(text.replace(b'"turn":1', b'"turn":2', 1))
    with open(f"{part}/{names[1]}", "ab") as f:
        f.write(b'{"v":1,"se')
    Path(f"{part}/{names[2]}").write_bytes(b"hello\n")
    same(box, part)
    same(box, part)
    _, part2, names = bed_again(box)
    same(box, part2, 0, 2)


def bed_again(box):
    shutil.rmtree(box.dir + "/all")
    shutil.rmtree(box.dir + "/some")
    return bed(box, 20)


def reads_all(box):
    """What kept rows do not answer is answered by reading all logs, with a word."""
    _, part, names = bed(box, 30)
    same(box, part, 0, 0)
    log = f"{part}/{names[0]}"
    for words in (["--errors"], [part]):
        slow = box.segue("audit", part, "--kept", "--json", *words)
        plain = box.segue("audit", part, "--json", *words)
        expect(slow.returncode == plain.returncode == 0 and slow.stdout == plain.stdout, words, slow.stderr)
        expect(b"so all logs are read" in slow.stderr and not plain.stderr, words, slow.stderr, plain.stderr)
    slow, plain = box.segue("audit", log, "--kept", "--json"), box.segue("audit", log, "--json")
    expect(slow.returncode == 0 and slow.stdout == plain.stdout, slow.stderr)


def mistakes(box):
    _, part, _ = bed(box, 8)
    for words in (["--by", "nix"], ["--by", "nix,day"], ["--method", "nix"], ["--csv"], ["--since", "soon"]):
        done = box.segue("audit", part, "--kept", "--json", *words)
        expect(done.returncode == 2 and done.stderr, words, done.returncode, done.stderr)
        expect(not os.path.exists(part + "/index.sqlite"), words)
    none = box.segue("audit", "--kept", "--json")
    expect(none.returncode == 0 and json.loads(none.stdout)["totals"]["judgments"] == 0, none)


if __name__ == "__main__":
    sys.exit(main([grows, unfinished, tables, gone_and_damaged, others_write, full_disk, bad_logs, reads_all, mistakes]))
