#!/usr/bin/env python3
"""segue audit: every figure against SQLite over the same records, on logs made up by audit_logs.py.
SEGUE_AUDIT_SESSIONS sets how many (a session has some 17 judgments; 6000 make 100,000)."""
import csv
import io
import json
import os
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path

from audit_logs import START_MS, Log, Maker, session_id, write
from support import BUILD, SANITIZED, WAIT_S, Box, expect, main, sample

SESSIONS = int(os.environ.get("SEGUE_AUDIT_SESSIONS") or (1200 if sample.ALL else 500))
SCHEMA = os.path.dirname(os.path.abspath(__file__)) + "/../../schemas/audit.json"
made = {}


def bed():
    """The folder of logs and its database: made once for all cases."""
    if not made:
        made["box"] = Box()
        made["db"] = sqlite3.connect(":memory:")
        made["dir"] = made["box"].dir + "/many"
        made["paths"] = write(made["dir"], SESSIONS, 20, seed=7, db=made["db"], shares=True)
        made["db"].executescript("""
          create table costs as select s.log, s.turn, s.at, s.stage, s.outcome, s.reason, s.calls,
            count(c.log) as n, coalesce(sum(c.duration_ms), 0) as ms,
            coalesce(sum(c.input), 0) as input, coalesce(sum(c.output), 0) as output,
            coalesce(sum(c.cost_nano), 0) as nano, coalesce(sum(c.unpriced), 0) as unpriced
            from stages s left join calls c on c.log = s.log and c.turn = s.turn and c.at = s.at
            group by s.log, s.turn, s.at;
          create index costs_turn on costs(log, turn);
          create index calls_turn on calls(log, turn, at);
        """)
    return made["box"], made["db"], made["dir"]


def run(box, *words):
    done = box.segue("audit", *words)
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    return done


def audit(box, *words, status=0):
    done = run(box, *words, "--json")
    expect(done.returncode == status, done.returncode, done.stderr, done.stdout[-500:])
    return json.loads(done.stdout)


def one(db, sql, *args):
    return db.execute(sql, args).fetchone()[0]


def close(got, true, what):
    """Percentiles: exact up to 64 numbers, then within 1/128."""
    expect(abs(got - true) <= max(true / 128, 1e-9), what, "is", got, "and not", true)


def rank(values, percent):
    values = sorted(values)
    return values[(len(values) * percent + 99) // 100 - 1] if values else 0


def same_use(got, row, what):
    calls, ms, tokens_in, tokens_out, nano, unpriced = row
    expect(got["calls"] == calls and got["duration_ms"] == ms and got["input"] == tokens_in and
           got["output"] == tokens_out and got.get("unpriced", 0) == unpriced and
           round(got["cost_usd"] * 1e9) == nano, what, got, row)


CALLS = "count(*), sum(duration_ms), sum(input), sum(output), sum(cost_nano), sum(unpriced)"
USE = "sum(n), sum(ms), sum(input), sum(output), sum(nano), sum(unpriced)"


def figures_of_all():
    box, db, folder = bed()
    got = audit(box, folder)["totals"]
    count = one(db, "select count(*) from judgments")
    expect(got["judgments"] == count and got["share"] == 1, got["judgments"], count)
    expect(got["decided"] == one(db, "select count(*) from judgments where rule is not null"))
    expect(got["rule_no_match"] == one(db, "select count(*) from judgments where failure='rule_no_match'"))
    expect(got["ambiguous"] == one(db, "select sum(ambiguous) from judgments"))
    unsure = one(db, "select count(*) from (select distinct log, turn from stages where outcome <> 'matched')")
    expect(got["unsure"] == unsure, got["unsure"], unsure)
    expect(got["match_methods"] == dict(db.execute(
        "select match_method, count(*) from judgments where match_method is not null group by 1")))
    expect(got["outcomes"] == dict(db.execute("select outcome, count(*) from stages group by 1")))
    same_use(got["use"], db.execute(f"select {USE} from costs").fetchone(), "use")
    same_use(got["unsure_use"], db.execute(
        f"select {CALLS} from (select *, row_number() over (partition by log, turn, at order by rowid) as n from calls) c"
        " where at >= 0 and (at > 0 or n > 1) and exists (select 1 from stages s where s.log = c.log and s.turn = c.turn"
        " and s.outcome <> 'matched')").fetchone(), "unsure")
    same_use(got["work"], db.execute(f"select {CALLS} from calls where at = -1").fetchone(), "work")
    sessions = got["sessions"]
    expect(sessions["counted"] == SESSIONS)
    expect(sessions["outcomes"] == dict(db.execute("select outcome, count(*) from logs group by 1")), sessions)
    expect(sessions["judge_unavailable"] == one(db, "select sum(unavailable) from logs"))
    causes = {f["cause"]: f["count"] for f in got["failures"]}
    expect(causes == dict(db.execute("select cause, count(*) from logs where cause is not null group by 1")), causes)
    for f in got["failures"]:
        expect(one(db, "select cause from logs where session = ?", f["example"]) == f["cause"], f)
    expect(got["logs"]["sound"] == SESSIONS and got["logs"]["read"] == SESSIONS and not got["logs"]["apart"])
    expect(got["logs"]["bytes"] == sum(os.path.getsize(p) for p in made["paths"]))


def times_of_stages():
    box, db, folder = bed()
    totals = audit(box, folder)["totals"]
    stages = {s["stage"]: s for s in totals["by_stage"]}
    expect(set(stages) == {s for s, in db.execute("select distinct stage from stages")})
    for name, s in stages.items():
        rows = db.execute("select ms, input + output, nano, unpriced from costs where stage = ?", (name,)).fetchall()
        expect(s["stages"] == len(rows), name)
        for p in (50, 90, 99):
            close(s["duration_ms"][f"p{p}"], rank([r[0] for r in rows], p), f"{name} ms p{p}")
            close(s["tokens"][f"p{p}"], rank([r[1] for r in rows], p), f"{name} tokens p{p}")
            close(s["cost_usd"][f"p{p}"], rank([r[2] for r in rows if not r[3]], p) / 1e9, f"{name} cost p{p}")
        same_use(s["use"], db.execute(f"select {USE} from costs where stage = ?", (name,)).fetchone(), name)
    sums = [r[0] for r in db.execute("select sum(ms) from costs group by log, turn")]
    for p in (50, 90, 99):
        close(totals["duration_ms"][f"p{p}"], rank(sums, p), f"judging ms p{p}")


def falls():
    box, db, folder = bed()
    got = {(f["stage"], f["to"], f["reason"]): f["count"] for f in audit(box, folder)["totals"]["fall_through"]}
    true = {r[:3]: r[3] for r in db.execute(
        "select s.stage, t.stage, s.reason, count(*) from stages s left join stages t"
        " on t.log = s.log and t.turn = s.turn and t.at = s.at + 1 where s.outcome <> 'matched' group by 1, 2, 3")}
    expect(got == true, [k for k in set(got) | set(true) if got.get(k) != true.get(k)][:5])


def forms():
    box, db, folder = bed()
    got = audit(box, folder)["totals"]
    values = got["values"]
    expect(values["asked"] == one(db, "select count(*) from vals"))
    expect(values["first_pass"] == one(db, "select sum(first_pass) from vals"))
    expect(values["repaired"] == one(db, "select sum(repaired) from vals"))
    expect(values["none"] == one(db, "select count(*) from vals where outcome <> 'value'"))
    expect(values["after"] == {str(k): n for k, n in db.execute(
        "select attempts - 1, count(*) from vals where outcome = 'value' and attempts > 1 group by 1")}, values)
    readings, read = got["readings"], "(outcome = 'matched' or reason = 'none')"
    expect(readings["answers"] == one(db, "select count(*) from stages where calls > 0 and outcome <> 'error'"))
    expect(readings["first_pass"] == one(db, f"select count(*) from stages where calls = 1 and {read}"))
    expect(readings["after"] == {str(k): n for k, n in db.execute(
        f"select calls - 1, count(*) from stages where calls > 1 and {read} group by 1")}, readings)


KEYS = {"method": "j.method", "match_method": "j.match_method", "movement": "j.movement",
        "workflow": "l.workflow", "provider": "j.provider", "model": "j.model", "worker": "j.worker",
        "worker_model": "j.worker_model", "outcome": "l.outcome", "rule": "j.rule", "mark": "j.mark",
        "day": "date(j.ts / 1000, 'unixepoch')"}
FROM = "from judgments j join logs l on l.log = j.log"


def by_keys():
    box, db, folder = bed()
    total = one(db, "select count(*) from judgments")
    for keys in [(k,) for k in KEYS] + [("movement", "method"), ("workflow", "movement", "provider", "model")]:
        columns = ", ".join(KEYS[k] for k in keys)
        true = {r[:-2]: r[-2:] for r in db.execute(
            f"select {columns}, count(*), sum(j.rule is not null) {FROM} group by {columns}")}
        groups = audit(box, folder, "--by", ",".join(keys))["groups"]
        got = {tuple(g[k] for k in keys): (g["judgments"], g["decided"]) for g in groups if g["judgments"]}
        expect(got == true, keys, list(got.items())[:3], list(true.items())[:3])
        for g in groups:
            expect(abs(g["share"] - g["judgments"] / total) < 1e-12, g)
        expect([g["judgments"] for g in groups] == sorted((g["judgments"] for g in groups), reverse=True), keys)
    got = {(g["stage"], g["reason"]): (g["judgments"], g["stages"])
           for g in audit(box, folder, "--by", "stage,reason")["groups"]}
    true = {r[:2]: r[2:] for r in db.execute(
        "select stage, reason, count(distinct log * 1000 + turn), count(*) from stages group by 1, 2")}
    expect(got == true)


def marks():
    """What became of the marks, and what was asked again, by client and model."""
    box, db, folder = bed()
    totals = audit(box, folder)["totals"]
    sums = ", ".join(f"sum(mark = '{m}')" for m in ("present", "elsewhere", "wrong", "missing"))
    got = {(g["worker"], g["worker_model"]): tuple(g["marks"].values()) for g in totals["workers"]}
    true = {r[:2]: r[2:] for r in db.execute(f"select worker, worker_model, {sums} from judgments group by 1, 2")}
    expect(got == true, got, true)
    got = {c["worker"]: (c["turns"], c["present"], c["wanted"]) for c in totals["clients"]}
    true = {r[0]: (r[1], r[2], 200) for r in db.execute(
        "select worker, count(mark), sum(mark = 'present') from judgments group by 1")}
    expect(got == true and len(got) == 3, got, true)
    again = totals["asked_again"]
    expect(again["questions"] == one(db, "select count(*) from stages where calls > 1"), again)
    expect(again["use"]["calls"] == one(db, "select sum(calls - 1) from stages where calls > 1"), again)
    each = [g["asked_again"] for g in totals["judges"] if "asked_again" in g]
    expect(sum(a["questions"] for a in each) == again["questions"], each)
    for what in ("calls", "input", "output", "duration_ms"):
        expect(sum(a["use"][what] for a in each) == again["use"][what], what, each, again)
    text = run(box, folder).stdout
    name, (turns, present, _) = next(iter(got.items()))
    expect(f"{name}: {turns} of the 200 turns that are wanted, {100 * present / turns:.1f} %" in text, text)
    rows = list(csv.DictReader(io.StringIO(run(box, folder, "--by", "worker", "--csv").stdout, newline="")))
    expect({r["worker"]: int(r["mark_present"]) for r in rows} == {w: c[1] for w, c in got.items()}, rows)
    expect(sum(int(r["asked_again_calls"]) for r in rows) == again["use"]["calls"], rows)
    done = box.segue("doctor", "--json", env={"SEGUE_LOGS": folder})
    told = [f["text"] for f in json.loads(done.stdout)["findings"] if f["what"] == "marks"]
    expect(len(told) == len(got) and any(t.startswith(f"{name}: {turns} of the 200") for t in told), told)


def filters():
    box, db, folder = bed()
    many = "(select count(*) from stages s where s.log = j.log and s.turn = j.turn)"
    middle = START_MS + SESSIONS // 2 * 60_000
    since = one(db, "select strftime('%Y-%m-%dT%H:%M:%S.000Z', ? / 1000, 'unixepoch')", middle)
    for words, where in [
            (("--method", "ai_judge"), "j.method = 'ai_judge'"),
            (("--method", "tag_fallback"), "j.match_method = 'tag_fallback'"),
            (("--method", "when,phase1_tag"), "j.method in ('when', 'phase1_tag')"),
            (("--workflow", "näht", "--movement", "review"), "l.workflow = 'näht' and j.movement = 'review'"),
            (("--provider", "script", "--model", "small"), "j.provider = 'script' and j.model = 'small'"),
            (("--worker", 'exec "x"'), "j.worker = 'exec \"x\"'"),
            (("--outcome", "rule_no_match,stopped"), "l.outcome in ('rule_no_match', 'stopped')"),
            (("--min-stages", "2"), f"{many} >= 2"), (("--min-stages", "4"), f"{many} >= 4"),
            (("--ambiguous",), "j.ambiguous"), (("--since", since), f"j.ts >= {middle // 1000 * 1000}"),
            (("--method", "ai_judge", "--ambiguous", "--workflow", "flow,release", "--min-stages", "3"),
             f"j.method = 'ai_judge' and j.ambiguous and l.workflow in ('flow', 'release') and {many} >= 3"),
            (("--workflow", "no such"), "false")]:
        got = audit(box, folder, *words)["totals"]["judgments"]
        true = one(db, f"select count(*) {FROM} where {where}")
        expect(got == true, words, got, true)


def as_csv():
    box, db, folder = bed()
    done = run(box, folder, "--by", "worker,worker_model", "--csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout, newline="")))
    groups = audit(box, folder, "--by", "worker,worker_model")["groups"]
    expect(len(rows) == len(groups) == 3, len(rows))
    for row, g in zip(rows, groups):
        expect((row["worker"], row["worker_model"]) == (g["worker"], g["worker_model"] or ""), row)
        expect(int(row["judgments"]) == g["judgments"] and int(row["duration_ms_p90"]) == g["duration_ms"]["p90"])
        expect(abs(float(row["unsure_cost_usd"]) - g["unsure_use"]["cost_usd"]) < 1e-8, row)


def screen():
    box, db, folder = bed()
    done = run(box, folder)
    text = done.stdout
    expect(done.returncode == 0 and not done.stderr, done.stderr)
    expect(f"{one(db, 'select count(*) from judgments'):,} judgments in {SESSIONS:,} sessions" in text, text[:200])
    expect(text.count("\n") <= 60, text.count("\n"))
    worst = db.execute(
        "select l.workflow || '/' || j.movement, avg(exists(select 1 from stages s where s.log = j.log and"
        f" s.turn = j.turn and s.outcome <> 'matched')) as share {FROM} group by 1 order by 2 desc").fetchall()
    first = text.split("Movements that most often fall through\n")[1].splitlines()[:5]
    for line, (name, share) in zip(first, worst):
        expect(name in line and f"{share * 100:.1f} %" in line, line, name, share)
    judges = db.execute(
        "select coalesce(s.provider || coalesce('/' || s.model, ''), ''), avg(coalesce(t.outcome, s.outcome) = 'unreadable')"
        " from stages s left join stages t on t.log = s.log and t.turn = s.turn and t.stage = 'phase3_tag' and t.calls = 0"
        " and s.stage = 'structured_output' where s.calls > 0 group by 1 order by 2 desc").fetchall()
    first = text.split("Judges that most often cannot be read\n")[1].splitlines()[:len(judges)]
    for line, (name, share) in zip(first, judges):
        expect(name in line and f"{share * 100:.1f} %" in line, line, name, share)
    shown = {line.split()[1]: int(line.split()[0]) for line in text.split("Not complete\n")[1].splitlines()}
    expect(shown == dict(db.execute("select cause, count(*) from logs where cause is not null group by 1")), shown)
    by = run(box, folder, "--by", "method").stdout.splitlines()
    expect(by[0].split()[0] == "method" and len(by) == 8, by)
    box.segue("audit", folder, "--by", "method,movement,method", status=2, err=b"method is written twice")


def hostile(box):
    """Logs that are none, or not what was written, are counted apart and change no figure."""
    folder = box.dir + "/odd"
    paths = write(folder, 12, 6, seed=3)
    clean = audit(box, folder)["totals"]
    maker = Maker(99)
    number = [1000]

    def put(data):
        number[0] += 1
        Path(f"{folder}/{session_id(number[0])}.ndjson").write_bytes(data)

    good = lambda: maker.session(number[0] + 5000, 3).bytes()
    states = {"tampered": 0, "foreign": 0, "newer": 0, "unreadable": 0, "empty": 0}

    def bad(state, data):
        states[state] += 1
        put(data)

    lines = good().splitlines(keepends=True)
    bad("tampered", b"".join(lines).replace(b'"rule":1', b'"rule":2', 1).replace(b"I did", b"I had", 1))
    bad("tampered", b"".join(lines[:3] + lines[4:]))
    bad("tampered", lines[0] + b"\n" + b"".join(lines[1:]))
    bad("tampered", lines[0] + b"\0" * 100 + b"\n" + b"".join(lines[1:]))
    log = Log(START_MS)  # right hashes over what is no JSON
    log.add("session_start", session=session_id(1), workflow={"name": "x"})
    import hashlib
    for body in (b'{"v":1,"seq":2,"ts":"x","type":"judgment","turn":1,"stages":[{"stage":"when"',
                 b'{"v":1,"seq":2,"ts":"x","type":"judgment" "turn"}'[:-1], b'[1'):
        digest = hashlib.sha256(log.hash.encode() + body).hexdigest().encode()
        bad("tampered", log.bytes() + body + b',"hash":"' + digest + b'"}\n')
    for byte in (b"\xff", b"\0", b"\xed\xa0\x80"):  # right hashes over what is no text
        body = b'{"v":1,"seq":2,"ts":"x","type":"judgment","turn":1,"reason":"' + byte + b'","stages":[]'
        digest = hashlib.sha256(log.hash.encode() + body).hexdigest().encode()
        bad("tampered", log.bytes() + body + b',"hash":"' + digest + b'"}\n')
    bad("foreign", b"hello\n")
    bad("foreign", b'{"v":1,"type":"turn_start"}\n')
    bad("foreign", os.urandom(5000).replace(b"\n", b"") + b"\n")
    bad("foreign", b"\n\n\n")
    bad("newer", b'{"v":2,"seq":1,"type":"session_start","hash":"no"}\n')
    bad("unreadable", lines[0] + b'{"v":1,"x":"' + b"a" * 100_000_000 + b'"}\n')
    bad("empty", b"")
    bad("empty", lines[0][:50])
    states["unreadable"] += 1
    number[0] += 1
    os.mkdir(f"{folder}/{session_id(number[0])}.ndjson")
    states["torn"] = 1
    torn = good()
    put(torn + b'{"v":1,"seq":')
    odd = Log(START_MS)  # sound, and full of what should not be there
    odd.add("session_start", session="\x1b[31m", workflow={"name": "\x1b]0;x\x07\u202e" + "n" * 500})
    odd.add("turn_start", turn=1, movement=["no"])
    odd.add("turn_start", turn=-1, movement="a,b\"c\r\n=1+1")
    odd.add("call_end", turn=1, call=1, duration_ms=10**18, usage={"input": -5, "output": 1e300, "cost_usd": "x"})
    odd.add("judgment", turn=1, movement="a,b\"c\r\n=1+1", rule=10**15, method="brain", match_method="brain",
            stages=[{"stage": "brain", "outcome": "felt", "calls": [1, 2, "x"]}, 7, []])
    odd.add("judgment", turn=2, movement="=\x1b[31m1", rule=1, method="ai_judge", match_method="ai_judge", stages=[])
    put(odd.bytes())
    got = audit(box, folder)["totals"]
    counts = {k: v for k, v in got["logs"].items() if k in (*states, "torn")}
    expect(counts == states, counts, states)
    named = {a["state"] for a in got["logs"]["apart"]}
    expect(named == set(states) - {"empty"}, named)
    with_two = clean["judgments"] + 2 + torn.count(b'"type":"judgment"')
    expect(got["judgments"] == with_two, got["judgments"], with_two)
    shown = run(box, folder)
    apart = [line for line in shown.stdout.splitlines()[2:] if line.startswith("  ")][:6]
    expect(shown.returncode == 0 and apart[5].startswith("  and ") and "--json" in apart[5], apart)
    expect(all(line.split()[0] in named and ".ndjson" in line for line in apart[:5]), apart)
    for words in (("--by", "day"), ("--csv",)):
        done = run(box, folder, *words)
        expect(f"{states['tampered']} tampered" in done.stderr, "left out without a word", words, done.stderr)
    done = run(box, folder, "--errors")
    expect(" tampered" in done.stderr and " foreign" in done.stderr, "left out without a word", done.stderr)
    newer = box.dir + "/newer"
    os.mkdir(newer)
    body = b'{"v":2,"seq":1,"ts":"2026-01-01T00:00:00.000Z","type":"session_start"'
    digest = hashlib.sha256(b"0" * 64 + body).hexdigest().encode()
    Path(f"{newer}/{session_id(1)}.ndjson").write_bytes(body + b',"hash":"' + digest + b'"}\n')
    for words in (("--by", "day"), ("--errors",)):
        expect("1 newer" in run(box, newer, *words).stderr, words)
    text = run(box, folder, "--by", "workflow,movement").stdout
    expect("\x1b" not in text and "\u202e" not in text, repr(text))
    rows = list(csv.DictReader(io.StringIO(run(box, folder, "--by", "movement", "--csv").stdout,
                                           newline="")))
    names = [r["movement"] for r in rows]
    expect("a,b\"c =1+1" in names and "'=\\e[31m1" in names, "a terminal or a spreadsheet could be steered", names)
    del paths


def copies(box):
    """A log under the name of another session is a copy: told once with the session's id, and not counted."""
    folder = box.dir + "/few"
    paths = write(folder, 4, 5, seed=11)
    alone = {words: run(box, folder, *words, "--json").stdout for words in ((), ("--errors",))}
    copy = f"{folder}/{session_id(900)}.ndjson"
    with open(paths[2], "rb") as f, open(copy, "wb") as to:
        to.write(f.read())
    for words in ((), ("--kept",), ("--kept",), ("--errors",)):
        got, one = (json.loads(text) for text in (run(box, folder, *words, "--json").stdout,
                                                  alone[words if "--errors" in words else ()]))
        for totals in (got["totals"], one["totals"]):
            logs = totals.pop("logs")
        expect(got == one, words, got["totals"], one["totals"])
    got = audit(box, folder)["totals"]["logs"]
    (told,) = got["apart"]
    expect(got["foreign"] == 1 and got["sound"] == 4 and told["log"].endswith(session_id(900) + ".ndjson"), got)
    expect(f"it begins session {session_id(2)}, but the file's name has another id" in told["why"], told)
    expect(run(box, folder).stdout.count(session_id(2)) == 1, run(box, folder).stdout)
    done = box.segue("rejudge", folder, "--dry-run")
    expect(done.returncode == 0 and b"1 log is not intact" in done.stdout + done.stderr, done)
    os.mkdir(box.dir + "/moved")  # where its own log is not, it is the only one
    os.link(copy, f"{box.dir}/moved/{session_id(901)}.ndjson")
    expect(audit(box, box.dir + "/moved")["totals"]["logs"]["sound"] == 1)
    os.rename(copy, box.dir + "/copy.ndjson")  # a name without an id is nobody else's
    expect(audit(box, box.dir + "/copy.ndjson")["totals"]["logs"]["sound"] == 1)


def a_persons_verdict(box):
    """It is a judgment of the work that found no rule before, without counting that work twice."""
    flow = box.file("w.yaml", "name: w\nmovements:\n  - name: look\n    provider: script\n    instruction: Look at it.\n"
                    "    judge: {stages: [phase3_tag]}\n    rules:\n"
                    "      - {condition: good, next: COMPLETE}\n      - {condition: bad, next: ABORT}\n")
    replies = box.file("s.json", '{"replies": [{"purpose": "execute", "text": "I did", "usage": {"input": 7, "output": 3}},'
                       '{"stage": "phase3_tag", "text": "[LOOK:0]"}]}')
    expect(box.segue("run", flow, "-t", "x", "-s", replies, "-l", box.logs).returncode == 4)
    expect(box.segue("resume", box.log_paths()[0], "--rule", "1").returncode == 0)
    groups = audit(box, box.logs, "--by", "worker,method")["groups"]
    got = {(g["worker"], g["method"]): (g["judgments"], g["work"]["calls"], g["work"]["input"]) for g in groups}
    expect(got == {("script", None): (1, 1, 7), ("script", "human"): (1, 0, 0)}, got)
    expect(audit(box, box.logs, "--worker", "script", "--method", "human")["totals"]["judgments"] == 1)


def bounded(box, *words):
    """Runs a command in 64 MiB of memory."""
    def limit():
        if not SANITIZED:
            resource.setrlimit(resource.RLIMIT_DATA, (64 << 20, 64 << 20))

    return subprocess.run([BUILD + "/segue", *words], env=box.env, capture_output=True, text=True, timeout=WAIT_S,
                          stdin=subprocess.DEVNULL, preexec_fn=limit)


def lines_that_are_too_long(box):
    """A line over the limit, as the first, in the middle or torn at the end, costs no command the memory for it."""
    write(box.logs, 3, 4, seed=5)
    long = b'{"v":1,"x":"' + b"a" * 100_000_000
    for n, at, end in ((900, 0, b'"}\n'), (901, 2, b'"}\n'), (902, 2, b"")):
        lines = Maker(7).session(n, 3).bytes().splitlines(keepends=True)
        Path(f"{box.logs}/{session_id(n)}.ndjson").write_bytes(b"".join(lines[:at]) + long + end)
    one = f"{box.logs}/{session_id(901)}.ndjson"
    for words_of, status, said in (
            (["ls", "-l", box.logs], 0, session_id(900)[:18]), (["verify", box.logs], 1, "it is longer than"),
            (["audit", box.logs], 0, "3 unreadable"), (["audit", "--kept", box.logs], 0, "3 unreadable"),
            (["replay", box.logs], 1, "judgments in 6 sessions"), (["report", box.logs, "-o", box.dir + "/o"], 1, ""),
            (["report", one, "--format", "md"], 1, "not what was written"), (["show", one], 1, "longer than"),
            (["agree", box.logs], 0, "3 logs are not intact"), (["compare", one, one], 1, "longer than")):
        done = bounded(box, *words_of)
        expect(done.returncode == status, words_of, done.returncode, done.stderr[-300:])
        expect(said in done.stdout + done.stderr, words_of, said, done.stdout[-800:], done.stderr[-500:])


def one_large_log(box):
    """More judgments than are kept of one log, more words than are kept at all, in bounded memory."""
    turns, log = 20_000, Log(START_MS)
    log.add("session_start", session=session_id(3), workflow={"name": "large"})
    for turn in range(1, turns + 1):
        log.add("turn_start", turn=turn, movement="m")
        log.add("judgment", turn=turn, movement=f"movement {turn * 7}", rule=1, method="when",
                match_method="when", stages=[{"stage": "when", "outcome": "matched", "calls": []},
                                             {"stage": f"s{turn}", "outcome": "no_match", "calls": []}])
    log.add("session_stop", reason="interrupted")
    log.add("session_resume", after="session_stop")
    log.add("session_end", outcome="complete")
    os.mkdir(box.logs)
    Path(f"{box.logs}/{session_id(3)}.ndjson").write_bytes(log.bytes())

    done = bounded(box, "audit", box.logs, "--by", "movement,stage,outcome", "--json")
    expect(done.returncode == 0, done.returncode, done.stderr[-300:])
    got = json.loads(done.stdout)
    expect(got["totals"]["judgments"] == turns, got["totals"]["judgments"])
    kept = sum(g["stages"] for g in got["groups"])
    expect(kept + got["totals"].get("left_out", 0) == 2 * turns, kept, got["totals"].get("left_out"))
    expect({g["outcome"] for g in got["groups"]} == {"complete"})


def many_failing_answers(box):
    """Beyond the limit of one log, answers are counted and said to be neither grouped nor exported."""
    log, maker = Log(START_MS), Maker(12)
    log.add("session_start", session=session_id(4), workflow={"name": "large"})
    maker.number = 0
    for turn in range(1, 5001):
        log.add("turn_start", turn=turn, movement="m")
        call = maker.call(log, 1, turn, 0, "judge", "script", None, "no JSON here", stage="structured_output")
        stage = {"stage": "structured_output", "outcome": "unreadable", "calls": [call],
                 "errors": ["no JSON in the reply"], "duration_ms": 1}
        log.add("stage", turn=turn, **stage)
        log.add("judgment", turn=turn, movement="m", rule=None, stages=[stage])
    os.mkdir(box.logs)
    Path(f"{box.logs}/{session_id(4)}.ndjson").write_bytes(log.bytes())
    done = run(box, box.logs, "--errors", "--export", box.dir + "/cases.ndjson")
    expect(done.returncode == 0 and "4096 cases in" in done.stderr, done.returncode, done.stderr)
    expect("\n904 more are neither grouped nor exported (up to 4096 of a log are" in done.stdout, done.stdout)


def words(box):
    write(box.dir + "/few", 3, 4)
    some = box.dir + "/few"
    for wrong, said in [(("--by", "metod"), "did you mean method"), (("--by", "a,b,c,d,e"), "--by a"),
                        (("--min-stages", "x"), "write a number"), (("--since", "soon"), "--since soon"),
                        (("--since", "2026-13-01"), "--since 2026-13-01"), (("--since", "2026-02-30"), "how long"),
                        (("--method", "ai_jugde"), "did you mean ai_judge"), (("--method", "x,when"), "no method"),
                        (("--outcome", "complet"), "did you mean complete"),
                        (("--outcome", "foo"), "write complete, abort, rule_no_match, max_movements, cancelled, "
                         "failed, stopped, needs_input, open or running"),
                        (("--outcome", ","), "an empty word is no outcome: write complete"),
                        (("--method", "when,"), "an empty word is no method: write"),
                        (("--workflow", ","), "workflow: an empty word is no name: write NAME or NAME,NAME"),
                        (("--movement", "plan,,grade"), "movement: an empty word"), (("--model", ""), "model: an empty"),
                        (("--worker", " "), "worker: an empty"), (("--provider", "script,"), "provider: an empty"),
                        (("--json", "--csv"), "cannot be combined"), ((some + "/none.ndjson",), "cannot open")]:
        done = run(box, some, *wrong)
        expect(done.returncode == 2 and said in done.stderr, wrong, done.returncode, done.stderr)
    none = audit(box)  # no log folder yet
    expect(none["groups"] == [] and none["totals"]["judgments"] == 0, none)
    expect("0 judgments in 0 sessions" in run(box).stdout)
    done = run(box, some, "--by", "movement", "--workflow", "of this name there is none")
    expect(done.returncode == 0 and done.stdout.splitlines()[1:] == ["no judgment matches"], done)
    one_log = audit(box, f"{some}/{session_id(1)}.ndjson")
    expect(one_log["totals"]["logs"]["read"] == 1)
    expect(audit(box, session_id(1), "--logs", some) == one_log)
    expect(audit(box, "--logs", some) == audit(box, some))


CORRECTED = "calls > 1 and outcome <> 'error'"


def errors():
    """What failed, by what is wrong with it: every number again, and each answer as a case."""
    box, db, folder = bed()
    path = box.dir + "/cases.ndjson"
    got = json.loads(run(box, folder, "--errors", "--export", path, "--json").stdout)
    failing = one(db, "select sum(attempts - (outcome = 'value')) from vals")
    true = {(None, "$.a", "type"): failing}
    for stage, outcome, reason, n in db.execute(
            "select stage, outcome, reason, count(*) from stages where calls > 0 and outcome in"
            " ('unreadable', 'invalid', 'out_of_range', 'ambiguous') group by 1, 2, 3"):
        true[(stage, "$.step" if reason in ("wrong_shape", "out_of_range") else "$", reason)] = n
    for stage, n in db.execute(  # those that were corrected
            f"select stage, sum(calls - 1) from stages where {CORRECTED} group by 1"):
        key = (stage, "$", "no_json")
        true[key] = true.get(key, 0) + n
    groups = {}
    for e in got["errors"]:
        expect(e["count"] == e["answers"] and e["shape"] in ("prose", "json"), e)
        key = (e["stage"], e["path"], e["keyword"])
        groups[key] = groups.get(key, 0) + e["count"]
    expect(groups == true, groups, true)
    expect(got["totals"]["answers"] == got["totals"]["errors"] == sum(true.values()), got["totals"])
    cases = [json.loads(line) for line in open(path)]
    expect(len(cases) == got["totals"]["answers"], len(cases))
    expect(os.stat(path).st_mode & 0o777 == 0o600)
    for case in cases[:: max(1, len(cases) // 50)]:
        session, turn, call = case["id"].split("/")
        records = [json.loads(line) for line in open(f"{folder}/{session}.ndjson")]
        end = [r for r in records if r["type"] == "call_end" and r["turn"] == int(turn) and r["call"] == int(call)]
        expect(case["text"] == end[-1]["text"], case)
        start = [r for r in records if r["type"] == "call_start" and r["call"] == int(call)][0]
        expect((case["provider"], case.get("model")) == (start["provider"], start.get("model")), case)
        expect(("report" in case) == ("stage" in case), case)
    done = box.segue("extract", "--batch", stdin=open(path, "rb").read())
    expect(done.stdout.count(b"\n") == len(cases) and b"bad_line" not in done.stdout, done.stderr[-300:])
    only = json.loads(run(box, folder, "--errors", "--model", "small", "--movement", "plan", "--json").stdout)
    plan = "stages s join judgments j on j.log = s.log and j.turn = s.turn where s.model = 'small' and j.movement = 'plan'"
    expect(only["totals"]["answers"] == one(
        db, f"select count(*) from {plan} and s.calls > 0 and s.outcome in"
        " ('unreadable', 'invalid', 'out_of_range', 'ambiguous')") + one(
            db, f"select sum(calls - 1) from {plan} and {CORRECTED}"), only["totals"])
    expect(f"{got['totals']['answers']} failing answers" in run(box, folder, "--errors").stdout)
    for wrong in (("--export", path), ("--errors", "--csv"), ("--errors", "--by", "method")):
        expect(run(box, folder, *wrong).returncode == 2, wrong)
    tampered = box.dir + "/tampered"
    os.mkdir(tampered)
    for p in made["paths"][:3]:
        with open(f"{tampered}/{os.path.basename(p)}", "wb") as f:
            f.write(open(p, "rb").read().replace(b"session_end", b"session_ebd").replace(b"\"attempt\":1", b"\"attempt\":2"))
    apart = json.loads(run(box, tampered, "--errors", "--json").stdout)["totals"]
    expect(apart["answers"] == 0 and apart["logs"]["tampered"] == 3, apart)


def each_answer_of_a_correction():
    """A judge who corrects itself has several answers: each is a case with its own errors, and the reason
    why the stage did not decide is the last one's."""
    flow = ("name: w\nprovider: script\njudge: {stages: [structured_output, ai_judge], max_reasks: 2}\nmovements:\n"
            "  - name: review\n    instruction: look at it\n"
            "    rules: [{condition: good, next: COMPLETE}, {condition: bad, next: ABORT}]\n")
    stage = {"stage": "structured_output"}
    said = ['{"stepp": 1}', '{"reason": "r", "step": "x"}', "in prose"]  # 3 errors, 1, 1
    with Box() as box:
        replies = [{"purpose": "execute", "text": "done"}, *({**stage, "text": t} for t in said),
                   {"stage": "ai_judge", "text": '{"reason": "r", "matched_index": 7}'},
                   {"stage": "ai_judge", "text": '{"reason": "r", "matched_index": 1}'}]
        box.segue("run", box.file("w.yaml", flow), "--logs", box.logs, "--cwd", box.cwd,
                  "--scenario", box.file("s.json", json.dumps({"replies": replies})), status=0)
        path = box.dir + "/cases.ndjson"
        got = json.loads(run(box, box.logs, "--errors", "--export", path, "--json").stdout)
        cases = [json.loads(line) for line in open(path)]
        seen = [(c["text"], [e["keyword"] for e in c["errors"]]) for c in cases]
        expect(seen == [(said[0], ["wrong_shape"] * 3), (said[1], ["wrong_shape"]), (said[2], ["no_json"]),
                        ('{"reason": "r", "matched_index": 7}', ["out_of_range"])], seen)
        expect([e["path"] for e in cases[1]["errors"]] == ["$.step"], cases[1])
        expect(got["totals"]["answers"] == 4 and got["totals"]["errors"] == 6, got["totals"])
        falls = audit(box, box.logs)["totals"]["fall_through"]
        expect([(f["stage"], f["reason"]) for f in falls] == [("structured_output", "no_json")], falls)
        # the first answer's reason is not the stage's
        replies[1:4] = [{**stage, "text": t} for t in ('{"reason": "cut', "in prose", "in prose")]
        os.unlink(box.log_paths()[0])
        box.segue("run", box.file("w.yaml", flow), "--logs", box.logs, "--cwd", box.cwd,
                  "--scenario", box.file("s.json", json.dumps({"replies": replies})))
        falls = audit(box, box.logs)["totals"]["fall_through"]
        expect([(f["stage"], f["reason"]) for f in falls] == [("structured_output", "no_json")], falls)
        # a correction that was never answered leaves the first answer as the one that failed
        os.unlink(box.log_paths()[0])
        replies[1:4] = [{**stage, "purpose": "judge", "text": said[0]},
                        {**stage, "purpose": "reask", "error": {"class": "auth", "message": "no key"}}]
        box.segue("run", box.file("w.yaml", flow), "--logs", box.logs, "--cwd", box.cwd,
                  "--scenario", box.file("s.json", json.dumps({"replies": replies})))
        run(box, box.logs, "--errors", "--export", path)
        cases = [json.loads(line) for line in open(path)]
        expect([(c["text"], len(c["errors"])) for c in cases] == [(said[0], 3)], cases)


def schema_once(box):
    """A log holds a schema once and then names its record: cases have it whole, and one name counts it."""
    flow = {"name": "v", "provider": "script", "max_movements": 9, "movements": [
        {"name": "grade", "instruction": "grade it", "judge": {"stages": ["structured_output", "ai_judge"], "max_reasks": 0},
         "structured_output": {"on_failure": "error", "schema": {
             "type": "object", "properties": {"a": {"type": "integer", "maximum": 3}}, "required": ["a"]}},
         "rules": [{"condition": "again", "next": "grade"}, {"condition": "over", "next": "COMPLETE"}]}]}
    replies = []
    for step in (1, 1, 2):
        replies += [{"purpose": "execute", "text": '{"a": 7}'}, {"purpose": "reask", "text": '{"a": 1}'},
                    {"stage": "structured_output", "text": '{"reason": "r", "step": 5}'},
                    {"stage": "ai_judge", "text": json.dumps({"reason": "r", "matched_index": step})}]
    box.segue("run", box.file("v.json", json.dumps(flow)), "--logs", box.logs, "--cwd", box.cwd,
              "--scenario", box.file("s.json", json.dumps({"replies": replies})), status=0)
    path = box.dir + "/cases.ndjson"
    box.segue("audit", box.logs, "--errors", "--export", path, status=0)
    cases = [json.loads(line) for line in open(path)]
    expect(len(cases) >= 3 and all("properties" in c["schema"] for c in cases), [c["schema"] for c in cases])
    done = box.segue("check", "--batch", stdin=open(path, "rb").read())
    checked = [json.loads(line) for line in done.stdout.splitlines()]
    expect([c["valid"] for c in checked] == [False] * len(cases), checked)
    groups = json.loads(run(box, box.logs, "--by", "schema", "--json").stdout)["groups"]
    expect([g["judgments"] for g in groups] == [3], groups)


def schema():
    """What is printed is what schemas/audit.json says."""
    box, _, folder = bed()
    for words_of in ((folder,), (folder, "--by", "stage,reason,to"), (folder, "--by", "rule,day,schema")):
        path = box.file("out.json", run(box, *words_of, "--json").stdout)
        box.segue("check", SCHEMA, path, status=0)
    path = box.file("out.json", run(box, folder, "--errors", "--json").stdout)
    box.segue("check", SCHEMA.replace("audit.json", "audit-errors.json"), path, status=0)


if __name__ == "__main__":
    sys.exit(main([figures_of_all, times_of_stages, falls, forms, by_keys, marks, filters, as_csv, screen, hostile, copies,
          a_persons_verdict, lines_that_are_too_long, one_large_log, many_failing_answers, words, errors, each_answer_of_a_correction, schema_once, schema]))
