"""Session logs made up for audits: chained lines of random judgments, and the same records in SQLite,
so that every figure can be worked out a second time. Standard library only.

As a program: audit_logs.py FOLDER SESSIONS TURNS [SEED] writes them and prints their bytes.
"""
import hashlib
import json
import os
import random
import sqlite3
import sys

ZERO = "0" * 64
START_MS = 1_790_000_000_000  # in 2026
STAGES = ["structured_output", "phase3_tag", "phase1_tag", "ai_judge"]
MARKS = [None, "present", "missing", "present", "wrong", "elsewhere", "present"]  # of a turn's tag
METHOD = {"when": "when", "auto_select": "auto_select", "structured_output": "structured_output",
          "phase3_tag": "tag_fallback", "phase1_tag": "tag_fallback", "ai_judge": "ai_judge"}
# an outcome that did not decide: its errors, other members, and the word that an audit has for it
MISSES = [("unreadable", ["no JSON in the reply"], {}, "no_json"),
          ("unreadable", ["the reply is empty"], {}, "empty"),
          ("unreadable", ["the JSON in the reply is cut off"], {}, "truncated"),
          ("invalid", ["$.step: expected integer, found string"], {}, "wrong_shape"),
          ("out_of_range", ["$.step: no rule has the number 9"], {}, "out_of_range"),
          ("no_match", [], {"none": True}, "none"),
          ("ambiguous", ["two values in the reply name different rules"], {}, "ambiguous"),
          ("error", ["timed out"], {"class": "timeout"}, "error:timeout"),
          ("error", ["it refuses"], {"class": "refused"}, "error:refused")]

TABLES = """
create table logs(log integer, session text, workflow text, outcome text, cause text, unavailable int);
create table judgments(log integer, turn integer, movement text, method text, match_method text,
  rule integer, failure text, provider text, model text, worker text, worker_model text, ts integer,
  ambiguous int, mark text, primary key(log, turn));
create table stages(log integer, turn integer, at integer, stage text, outcome text, reason text,
  calls integer, provider text, model text, primary key(log, turn, at)); -- calls of its own
create table calls(log integer, turn integer, at integer, duration_ms int, input int, output int,
  cost_nano int, unpriced int);
create table vals(log integer, turn integer, movement text, outcome text, attempts int, first_pass int,
  repaired int);
"""


def stamp(ms):
    import time
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms // 1000)) + ".%03dZ" % (ms % 1000)


def dump(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Log:
    """The lines of one session, chained."""

    def __init__(self, ms):
        self.lines, self.hash, self.seq, self.ms = [], ZERO, 0, ms

    def add(self, kind, **members):
        self.seq += 1
        self.ms += 7
        record = {"v": 1, "seq": self.seq, "ts": stamp(self.ms), "type": kind, **members}
        body = dump(record)[:-1].encode()
        self.hash = hashlib.sha256(self.hash.encode() + body).hexdigest()
        self.lines.append(body + b',"hash":"' + self.hash.encode() + b'"}\n')
        return record

    def bytes(self):
        return b"".join(self.lines)


def session_id(n):
    return "%08x-%04x-7%03x-8%03x-%012x" % (0x01A20000 + (n >> 16), n & 0xFFFF, n % 4096, n % 4093, n)


class Maker:
    def __init__(self, seed, db=None, shares=False):
        """shares: phase3_tag may read the reply that structured_output asked for."""
        self.random, self.db, self.shares = random.Random(seed), db, shares
        if db is not None:
            db.executescript(TABLES)

    def insert(self, table, *row):
        if self.db is not None:
            self.db.execute(f"insert into {table} values({','.join('?' * len(row))})", row)

    def call(self, log, n, turn, at, purpose, provider, model, text, **members):
        r, self.number = self.random, self.number + 1
        start = {"turn": turn, "call": self.number, "attempt": 1, "purpose": purpose, "provider": provider}
        if model:
            start["model"] = model
        log.add("call_start", **start, timeout_ms=0, **members,
                prompt=["Do what is asked of you.\n" + "word " * r.randrange(40), {"ref": "3#/prompt/0"}])
        end = {"turn": turn, "call": self.number, "attempt": 1, "text": text}
        usage = None
        if r.random() < 0.9:
            usage = {"input": r.randrange(50, 90_000), "output": r.randrange(5, 3000)}
            if r.random() < 0.8:
                usage["cost_usd"] = round(r.random() / 50, 6)
            end["usage"] = usage
        end["duration_ms"] = int(r.expovariate(1 / 3000))
        log.add("call_end", **end)
        cost = (usage or {}).get("cost_usd")
        self.insert("calls", n, turn, at, end["duration_ms"], (usage or {}).get("input", 0),
                    (usage or {}).get("output", 0), round((cost or 0) * 1e9),
                    int(usage is not None and cost is None))
        return self.number

    def value(self, log, n, turn, movement):
        r = self.random
        attempts = r.choice([1, 1, 1, 2, 2, 3, 4])
        good = attempts < 4 or r.random() < 0.5
        repaired = good and attempts == 1 and r.random() < 0.2
        for i in range(attempts):
            last = i + 1 == attempts and good
            check = {"turn": turn, "number": i + 1, "call": self.number, "outcome": "valid" if last else "schema"}
            if last and repaired:
                check["repaired"] = True
            if not last:
                check["errors"] = [{"path": "$.a", "pointer": "/a", "keyword": "type", "message": "expected integer"}]
            log.add("check", **check)
        first = attempts == 1 and good and not repaired
        log.add("structured", turn=turn, movement=movement, outcome="value" if good else "sentinel",
                attempts=attempts, first_pass=first, failures={}, value={"a": 1})
        self.insert("vals", n, turn, movement, "value" if good else "sentinel", attempts, int(first), int(repaired))

    def stages(self, log, n, turn, judge):
        """The stages of one judgment, and which of them decided."""
        r, out = self.random, []
        if r.random() < 0.2:
            name = r.choice(["when", "auto_select"])
            out.append({"stage": name, "outcome": "matched", "calls": [], "rule": 1, "duration_ms": 0})
            self.insert("stages", n, turn, 0, name, "matched", None, 0, None, None)
            return out
        for at, name in enumerate(STAGES):
            body, calls = {"stage": name}, []
            asks = {"phase1_tag": 0, "phase3_tag": 1}.get(name, r.choice([1, 1, 1, 2, 3]))  # tags are asked for once
            shared = self.shares and name == "phase3_tag" and out[-1]["outcome"] == "unreadable" and r.random() < 0.6
            if shared:
                asks, calls = 0, out[-1]["calls"][-1:]
            for _ in range(asks):
                calls.append(self.call(log, n, turn, at, "judge", *judge, '{"step": 1}', stage=name))
            decides = r.random() < 0.6 or shared
            outcome, errors, more, reason = r.choice(MISSES)
            if name == "phase1_tag":
                outcome, errors, more, reason = "no_match", ["no tag"], {}, "no_tag"
            if decides:
                outcome, errors, more, reason = "matched", [], {"rule": r.choice([1, 2])}, None
            if asks > 1 and outcome != "error":  # what each answer before was
                errors = ["no JSON in the reply"] * (asks - 1) + errors
            body.update(outcome=outcome, calls=calls, **({"errors": errors} if errors else {}), **more)
            provider, model = (judge if calls and r.random() < 0.5 else (None, None))
            if provider:
                body["provider"] = provider
                if model:
                    body["model"] = model
            body["duration_ms"] = 5
            log.add("stage", turn=turn, **body)
            out.append(body)
            self.insert("stages", n, turn, at, name, outcome, reason, asks, *(judge if calls else (None, None)))
            if decides:
                break
        return out

    def turn(self, log, n, turn, movement):
        r = self.random
        worker = r.choice([("claude", "sonnet"), ("codex", None), ("exec \"x\"", "größe")])
        judge = r.choice([("script", "small"), ("script", "large"), ("ollama", None), ("old", "judge-old")])
        log.add("turn_start", turn=turn, movement=movement, iteration=turn, movement_iteration=1)
        self.call(log, n, turn, -1, "execute", *worker, "I did it.\n" + "Said \"so\" and \\ that. " * r.randrange(30))
        if movement == "grade":
            self.value(log, n, turn, movement)
        stages = self.stages(log, n, turn, judge)
        last = stages[-1]
        decided = last["outcome"] == "matched"
        asked = any(s["calls"] for s in stages)
        judgment = {"turn": turn, "movement": movement, "rule": last.get("rule") if decided else None,
                    "condition": "done" if decided else None, "next": "plan" if decided else None,
                    "tag": "[X:1]" if decided else None, "method": last["stage"] if decided else None,
                    "match_method": METHOD[last["stage"]] if decided else None}
        by = judge if last["calls"] or (not decided and asked) else (None, None)
        if by[0]:
            judgment["provider"] = by[0]
            if by[1]:
                judgment["model"] = by[1]
        if not decided:
            judgment.update(failure="rule_no_match", reason="no stage named a rule")
        mark = MARKS[(n * 7 + turn) % len(MARKS)]
        if mark:
            judgment["mark"] = mark
        record = log.add("judgment", **judgment, stages=stages)
        self.insert("judgments", n, turn, movement, judgment["method"], judgment["match_method"],
                    judgment["rule"], judgment.get("failure"), *by, *worker, log.ms,
                    int(any(s["outcome"] == "ambiguous" for s in stages)), mark)
        return decided, record

    def session(self, n, turns):
        r, log = self.random, Log(START_MS + n * 60_000)
        self.number = 0
        workflow = r.choice(["flow", "release", "näht"])
        log.add("session_start", session=session_id(n), versions={"segue": "0.1.0"}, task="do it",
                workflow_sha256=ZERO, workflow={"name": workflow, "movements": []}, config={"cwd": "/"})
        unavailable = 0
        for turn in range(1, turns + 1):
            decided, _ = self.turn(log, n, turn, r.choice(["plan", "implement", "review", "grade"]))
            if not decided:
                if r.random() < 0.5:  # as older logs say it
                    log.add("session_end", outcome="rule_no_match", message="no rule", turns=turn, methods={})
                else:
                    log.add("session_stop", reason="rule_no_match", turn=turn, resumable=True)
                self.insert("logs", n, session_id(n), workflow, "rule_no_match", "rule_no_match", unavailable)
                return log
            if r.random() < 0.01:
                log.add("session_stop", reason="judge_unavailable", **{"class": "quota"}, resumable=True)
                log.add("session_resume", after="session_stop")
                unavailable += 1
        outcome, cause = r.choice([("complete", None), ("complete", None), ("stopped", "interrupted"),
                                   ("needs_input", "provider_error:auth"), ("open", None),
                                   ("failed", "failed:structured_output")])
        if outcome in ("stopped", "needs_input"):
            reason, _, kind = cause.partition(":")
            log.add("session_stop", reason=reason, **({"class": kind} if kind else {}), resumable=True)
        elif outcome != "open":
            error = {"error": {"class": "structured_output"}} if outcome == "failed" else {}
            log.add("session_end", outcome=outcome, **error, turns=turns, methods={})
        self.insert("logs", n, session_id(n), workflow, outcome, cause, unavailable)
        return log


def write(folder, sessions, turns, seed=1, db=None, shares=False):
    """Returns the paths, in the order of their numbers."""
    os.makedirs(folder, exist_ok=True)
    maker, paths = Maker(seed, db, shares), []
    for n in range(sessions):
        path = f"{folder}/{session_id(n)}.ndjson"
        with open(path, "wb") as f:
            f.write(maker.session(n, turns).bytes())
        paths.append(path)
    if db is not None:
        db.commit()
    return paths


if __name__ == "__main__":
    made = write(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    print(sum(os.path.getsize(p) for p in made))
