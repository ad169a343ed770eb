#!/usr/bin/env python3
"""A walk over all screens of the window: each number of a table or a fact equals that of the command's JSON."""
import hashlib
import html.parser
import json
import os
import re
import sys
import time
from pathlib import Path

import audit_logs
import index_test
from daemon import simple
from report_cli_test import session
from screens import ASKS, UNSURE
from support import at, at_once, expect, main, records
from web_gate_test import WebBox


class Screen(html.parser.HTMLParser):
    """Its tables by their label: {label: (column names, rows)}; its facts: {name: text}; its text."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.facts, self.words, self.links, self.ids = {}, {}, [], [], []
        self.label, self.rows, self.cell, self.term, self.title, self.times = "", [], None, None, None, []
        self.feed(text[text.index("<main"):text.index("</main>")])

    def handle_starttag(self, tag, attrs):
        of = dict(attrs)
        self.label = of.get("aria-label", self.label) if tag == "div" else self.label
        if tag == "a":
            self.links.append(of.get("href"))
        if tag == "table":
            self.rows = []
        elif tag == "tr":
            self.rows.append([])
            self.ids += [of["id"][2:]] if of.get("id", "").startswith("r-") else []
        elif tag in ("td", "th") and of.get("class") != "drawing":
            self.cell = []
        elif tag in ("dt", "dd", "h3"):
            self.cell = []
        elif tag == "br" and self.cell is not None:
            self.cell.append("\n")
        elif tag == "time":
            self.times.append(of["title"])

    def handle_endtag(self, tag):
        said = "".join(self.cell).strip() if self.cell is not None else None
        if tag in ("td", "th") and said is not None:
            self.rows[-1].append(said)
        elif tag == "dt":
            self.term = said
        elif tag == "dd":
            self.facts[self.term] = said
        elif tag == "h3" and said is not None:
            self.label = said
        elif tag == "table":
            expect(self.label not in self.tables, "two tables are called", self.label)
            self.tables[self.label] = (self.rows[0], self.rows[1:])
        if tag in ("td", "th", "dt", "dd", "h3"):
            self.cell = None

    def handle_data(self, data):
        self.words.append(data)
        if self.cell is not None:
            self.cell.append(data)

    def text(self):
        return "".join(self.words)

    def table(self, label):
        """Rows as {column: text}; the table is taken, so that one that nobody asked for is seen."""
        head, rows = self.tables.pop(label)
        if label == "Graph":  # beside the drawing; the ends have no numbers
            head, rows = head[1:], [row for row in rows if row[0] not in ("COMPLETE", "ABORT")]
        if label == "sessions":
            head, rows = [*head, "session"], [[*row, sid] for row, sid in zip(rows, self.ids, strict=True)]
        for row in rows:
            expect(len(row) == len(head), label, head, row)
        return [dict(zip((name.rstrip(" \u25b2\u25bc") for name in head), row)) for row in rows]

    def over(self):
        expect(not self.tables, "nobody looked at the tables", list(self.tables))


WORDS = {"structured_output": "judge's value", "tag_fallback": "tag in the reply", "ai_judge": "asked again", "when": "an expression",
         "phase3_tag": "tag in the judge's reply", "phase1_tag": "tag in the agent's reply", "auto_select": "only one rule",
         "aggregate": "from its parts", "human": "a person", "rule_no_match": "no rule matched",
         "judge_unavailable": "no judge answered"}


def took(ms):
    s = ms // 1000
    if ms < 100000:
        return "%.1f s" % (ms / 1000)
    return "%d min %d s" % (s // 60, s % 60) if s < 3600 else "%d h %d min" % (s // 3600, s // 60 % 60)


def ms_between(a, b):
    return round(1000 * (at({"ts": b}) - at({"ts": a})))


def cost(spent):
    usd, unpriced = spent.get("cost_usd"), spent.get("unpriced")
    if usd is None:
        return "?" if unpriced else ""
    return "$%.4f%s" % (usd, "+" if unpriced else "")


def some(n):
    return str(n) if n else ""


def tokens(spent):
    return spent.get("input", 0) + spent.get("output", 0)


def same(got, wanted, *where):
    expect(got == wanted, *where, "the screen says", got, "and the command", wanted)


class Walk:
    def __init__(self, box):
        self.box, self.window, self.seen = box, box.window(), set()

    def screen(self, path):
        status, _, body = self.window.ask("GET", path)
        expect(status == 200, path, status)
        return Screen(body.decode())

    def json(self, *words):
        done = self.box.segue(*words)
        expect(done.returncode in (0, 1), words, done.stderr)
        return json.loads(done.stdout)

    def lines(self, *words):
        return [json.loads(line) for line in self.box.segue(*words).stdout.splitlines()]

    def sessions(self):
        listed = {s["id"]: s for s in self.lines("ls", "--json", "--logs", self.box.logs)}
        for path in ("", "?sort=tokens", "?sort=-cost", "?q=status:complete"):
            screen = self.screen(path)
            rows = screen.table("sessions")
            wanted = {i for i, s in listed.items() if "complete" in (s["status"] if "q=" in path else "complete")}
            same({r["session"] for r in rows}, wanted, path)
            for r in rows:
                s = listed[r["session"]]
                spent = s.get("spent", {})
                same(r["status"].split()[1], s["status"], path, s)
                same(r["turns"], str(s["turns"]), s)
                same(r["took"], took(ms_between(s["started"], s["updated"])), s)
                same(r["tokens"], str(tokens(spent)), s)
                same(r["cost"], cost(spent), s)
            numbers = [int(n) for n in re.findall(r"(\d+) (?:failed|asking|waiting|running|finished|cancelled)", screen.text())]
            same(sum(numbers), len(listed), "counts of all by status")
            screen.over()
        return listed

    def session(self, sid):
        view, screen = self.json("show", sid, "--as", "view", "--logs", self.box.logs), self.screen(f"s/{sid}/")
        same(screen.facts["turns"], str(len(view["turns"])))
        if view["methods"]:
            same(screen.facts["decided by"], ", ".join(f"{WORDS[m]} {n}" for m, n in view["methods"].items()))
        if ms_between(view["started"], view["updated"]) > 0:
            same(screen.facts["took"], took(ms_between(view["started"], view["updated"])))
        expect(f"up to record {view['chain']['records']}" in screen.text(), sid)
        rows = screen.table("Turns") if view["turns"] else []
        for r, t in zip(rows, view["turns"], strict=True):
            same(r["turn"], str(t["turn"]))
            same(r["tokens"], some(t["input"] + t["output"]), t)
            led = "now: " * bool("doing" in t and t["leads_to"]) + t["leads_to"]
            expect(r["led to, and why"].startswith((led + " " + WORDS.get(t["method"], t["method"])).strip()), r, t)
            expect(t.get("reason", "") in r["led to, and why"] or "tried" in r["led to, and why"], r, t)
            expect(t["files"] < 2 or f"{t['files']} files" in r["led to, and why"], r, t)
            if t["over"]:
                same(r["took"], took(t["duration_ms"]), t)
                same(r["cost"], cost(t), t)
        for r, m in zip(screen.table("Graph") if view["movements"] else [], view["movements"]):
            same(r["runs"], str(m["runs"]), m)
            led = {x["next"]: x["taken"] for x in m["rules"] if x["taken"]}
            for name, n in re.findall(r"(\S+?) (\d+)", r["led to"]):
                same(int(n), led.get(name.strip(",")), m)
        totals = {("all", "all calls"): view["spent"]}
        for group, word in (("purposes", "purpose"), ("movements", "movement"), ("providers", "provider")):
            totals |= {(word, name): part for name, part in view["spent"].get(group, {}).items()}
        rows = screen.table("Totals")
        same({(r["by"], r["name"]) for r in rows}, set(totals))
        for r in rows:
            part = totals[r["by"], r["name"]]
            same((r["calls"], r["tokens in"], r["tokens out"]), tuple(some(part.get(k, 0)) for k in ("calls", "input", "output")), r)
            same((r["time"], r["cost"]), (took(part.get("duration_ms", 0)), cost(part)), r)
        screen.over()
        return view

    def judgments(self, sid, view):
        for t in view["turns"]:
            movement = f"{t['movement']}#{t['run']}"
            told = self.json("show", sid, movement, "--as", "view", "--logs", self.box.logs)
            screen = self.screen(f"s/{sid}/{t['turn']}")
            said = re.sub(r"\s+", " ", screen.text())
            for section in told["told"][1:]:
                for piece in section["pieces"]:
                    if "line" in piece:
                        line = re.sub(r"\s+", " ", piece["line"]).strip()
                        expect(line in said, sid, movement, "is not on the screen:", line)
            judged = told.get("judgment")
            if judged and judged.get("rule"):
                expect(f"by rule {judged['rule']}" in said, sid, movement, said[:300])
            screen.over()

    def integrity(self, sid):
        proof = self.lines("verify", sid, "--json", "--logs", self.box.logs)[0]
        wanted = f"record {proof['bad_record']} is not" if proof["state"] == "bad" else f"{proof['records']} record"
        said = self.screen(f"s/{sid}/integrity").text()
        expect(wanted in said, proof, said)

    def inbox(self, listed):
        screen = self.screen("inbox")
        waits = {q["id"] for q in self.lines("inbox", "--json", "--logs", self.box.logs)}
        kept = {i for i, s in listed.items() if s["status"] == "needs_input"}
        expect(kept <= waits and f"Inbox ({len(waits)})" in screen.text(), kept, waits, screen.text()[:300])
        for sid in waits:
            expect(any(f"/s/{sid}/" in (link or "") for link in screen.links), sid, "is not in the inbox")
            task = self.lines("show", sid, "--json", "--logs", self.box.logs)[0]["task"]
            expect(task.split("\n")[0] in screen.text(), sid, "is not told by its task", task)
        screen.over()

    def audit(self):
        screen, logs = self.screen("audit"), self.box.logs
        by = lambda *keys: {tuple(WORDS.get(g[k], str(g[k])) if g[k] is not None else "-" for k in keys): g  # noqa: E731
                            for g in self.json("audit", logs, "--json", "--by", ",".join(keys))["groups"]}
        total = self.json("audit", logs, "--json")["totals"]
        expect(("%d judgments: %d found a rule, %d did not, %d were ambiguous; in %d a stage" % tuple(
            total[k] for k in ("judgments", "decided", "no_rule", "ambiguous", "unsure"))) in screen.text(), total)
        lost = total["unsure_use"]
        expect("at a cost of %d tokens and %s." % (tokens(lost), cost(lost)) in screen.text(), lost)

        def use(r, g, name):
            same([r[p] for p in ("p50", "p90", "p99")], [took(g["duration_ms"][p]) for p in ("p50", "p90", "p99")], g)
            same((r[name], r["cost"]), (str(tokens(g["use"])), cost(g["use"])), g)

        def table(label, groups, *keys):
            rows = screen.table(label)
            same({tuple(r[k] for k in keys) for r in rows}, set(groups), label)
            return [(r, groups[tuple(r[k] for k in keys)]) for r in rows]
        for r, g in table("Judgments by method", by("match_method"), "match_method"):
            same((r["judgments"], r["share"]), (str(g["judgments"]), "%.1f %%" % (100 * g["share"])), g)
            use(r, g, "judge tokens")
        for r, g in table("Stages: how often each was tried, and how often it decided", by("stage"), "stage"):
            same((r["tried"], r["decided"]), (str(g["stages"]), str(g["decided"])), g)
            use(r, g, "tokens")
        falls = {k: g for k, g in by("stage", "to", "reason").items() if g["stages"] > g["decided"]}
        for r, g in table("Stages that did not decide, and why", falls, "stage", "to", "reason"):
            same(r["times"], str(g["stages"] - g["decided"]), g)
        for label, keys in (("Unsure judgments by movement", ("workflow", "movement")),
                            ("Unsure judgments by day", ("day",))):
            for r, g in table(label, by(*keys), *keys):
                same((r["judgments"], r["unsure"], r["share"]), (
                    str(g["judgments"]), str(g["unsure"]), "%.1f %%" % (100 * g["unsure"] / g["judgments"])), g)
        judges = {(j["provider"] or "-", j["model"] or "-"): j for j in total["judges"]}
        for r, j in table("Judges: unreadable answers", judges, "provider", "model"):
            unread = j["outcomes"].get("unreadable", 0)
            same((r["asked"], r["unreadable"], r["share"]), (
                str(j["stages"]), str(unread), "%.1f %%" % (100 * unread / j["stages"])), j)
        workers = {(w["worker"] or "-", w["worker_model"] or "-"): w for w in total["workers"]}
        label = "Agents: what became of the marks of their turns, and what was asked again"
        for r, w in table(label, workers, "worker", "worker_model"):
            again = w.get("asked_again", {})
            same([r[k] for k in ("judgments", "present", "elsewhere", "wrong", "missing", "asked again")],
                 [str(n) for n in (w["judgments"], *(w.get("marks", {}).get(k, 0) for k in ("present", "elsewhere", "wrong", "missing")),
                                   again.get("questions", 0))], w)
        causes = {f["cause"]: (str(f["count"]), f["example"]) for f in total["failures"]}
        same({r["cause"]: (r["sessions"], r["example"]) for r in screen.table("Sessions that did not complete, by cause")}, causes)
        screen.over()

    def compare(self, a, b):
        told, screen = self.json("compare", a, b, "--json", "--logs", self.box.logs), self.screen(f"compare/{a}_{b}")
        for name, side in (("A", told["a"]), ("B", told["b"])):
            expect("%d turns, %s, %d tokens, $%.4f" % (side["turns"], took(side["duration_ms"]), side["tokens"], side["cost_usd"])
                   in screen.facts[name], screen.facts, side)
        for r, t in zip(screen.table("All turns"), told["turns"], strict=True):
            for name, side in (("A", t["a"]), ("B", t["b"])):
                if side is None:
                    same(r[name], "-", t)
                    continue
                expect(r[name].startswith(f"{side['turn']} ") and r[name].endswith("; %s, %d tokens, $%.4f" % (
                    took(side["duration_ms"]), side["tokens"], side["cost_usd"])), r, side)
        screen.tables.pop("First difference", None)
        screen.over()

    def providers(self):
        told, screen = self.box.get("/v1/providers"), self.screen("providers")
        rows = {r["provider"]: r for r in screen.table("Providers")}
        here = {p["name"]: p for p in told["providers"] if p["installed"]}
        away = [p for p in told["providers"] if not p["installed"]]
        same(set(rows), set(here))
        same([screen.facts[p["name"]] for p in away], [p["problem"] for p in away])
        expect(f"{len(away)} not installed" in screen.text())
        for name, p in here.items():
            r = rows[name]
            same((r["version"], r["login"]), (p["version"] or "", p["login"] or ""), p)
            same(r["calls now"], str(p["calls"]) + (f" of {p['places']}" if p["places"] else ""), p)
            same(r["waiting"], str(p["waiting"]), p)
            same(r["errors in the last hour"].split("\n")[0], ", ".join(f"{c} {n}" for c, n in p["errors"].items()), p)
        found = {b["name"]: b for b in self.json("providers", "--json")["providers"]}
        same({n for n, b in found.items() if b["installed"]}, set(rows))
        for p in here.values():
            same(p["version"] or found[p["name"]]["version"], found[p["name"]]["version"], p)
        d = told["daemon"]
        same((screen.facts["process"], screen.facts["running"], screen.facts["queued"], screen.facts["limit"]),
             (str(d["pid"]), *(str(d["sessions"][k]) for k in ("running", "queued", "max"))))
        screen.over()


def numbers(box: WebBox):
    made = {os.path.basename(p)[:36] for p in audit_logs.write(box.logs, 12, 8, seed=21)}
    one = records(session(box, task="look at the ant"))[0]["session"]
    other = records(session(box, said=("two\nbees [WORK:1]", "[CHECK:1]")))[0]["session"]
    box.serve()
    unsure = box.submit(box.file("unsure.yaml", UNSURE),
                        box.file("unsure.json", json.dumps({"replies": [{"text": "no idea", "times": 0}]})))
    box.wait_status(unsure, "rule_no_match")
    asks = box.submit(box.file("which.yaml", ASKS))
    box.until(lambda: box.get("/v1/inbox")["inbox"], "nothing is asked")
    running = box.submit(*simple(box, 600000))
    box.wait_status(running, "running")
    walk = Walk(box)
    listed = walk.sessions()
    expect(len(listed) == len(made) + 5, listed.keys())
    for sid in listed:
        view = walk.session(sid)
        walk.integrity(sid)
        if sid not in made:  # those have rounds of a movement with the same number
            walk.judgments(sid, view)
    walk.inbox(listed)
    walk.audit()
    walk.compare(one, other)
    ours = [s for s in listed if s in made]
    walk.compare(ours[0], ours[1])
    walk.providers()
    box.end()


CLIENT = """bin/sh
echo asked >> %s
echo '%s'
"""


def versions(box: WebBox):
    """The version of a client is asked for once somebody looks, beside the answer, and kept; an old one is not usable."""
    os.mkdir(box.dir + "/bin")
    for name, said in (("claude", "2.1.329 (Claude Code)"), ("codex", "codex-cli 0.1.2")):
        box.file("bin/" + name, CLIENT % (f"{box.dir}/{name}.asked", said))
        os.chmod(f"{box.dir}/bin/{name}", 0o755)
    box.env["PATH"] = box.dir + "/bin:" + box.env["PATH"]
    box.env["ANTHROPIC_API_KEY"] = "an invented one"
    box.serve()
    walk = Walk(box)
    of = lambda: {p["name"]: p for p in box.get("/v1/providers")["providers"]}  # noqa: E731
    expect(of()["claude"]["version"] is None, "somebody waited for a program")
    box.until(lambda: of()["claude"]["version"] and of()["codex"]["version"], "no version")
    for _ in range(5):
        rows = {r["provider"]: r for r in walk.screen("providers").table("Providers")}
    same((rows["claude"]["version"], rows["codex"]["version"]), ("2.1.329", "0.1.2"))
    same(rows["claude"]["login"], "ANTHROPIC_API_KEY is set")
    expect("ready" in rows["claude"]["state"] and "too old" in rows["codex"]["state"], rows["codex"])
    for name in ("claude", "codex"):
        same(Path(f"{box.dir}/{name}.asked").read_text(encoding="utf-8"), "asked\n", name)
    box.end()


def version_of_one_that_hangs(box: WebBox):
    """A client that does not answer holds up no page and no end of the daemon."""
    os.mkdir(box.dir + "/bin")
    box.file("bin/claude", "#!/bin/sh\necho $$ > %s/started\nexec sleep 1000\n" % box.dir)
    os.chmod(f"{box.dir}/bin/claude", 0o755)
    box.env["PATH"] = box.dir + "/bin:" + box.env["PATH"]
    box.serve()
    walk = Walk(box)
    walk.screen("providers")
    box.until(lambda: os.path.exists(box.dir + "/started"), "it was not asked")
    rows = {r["provider"]: r for r in walk.screen("providers").table("Providers")}
    same(rows["claude"]["version"], "")
    begin = time.monotonic()
    box.end()
    at_once(begin, 20, "the daemon waited for it")


def sorted_by_all(box: WebBox):
    """Sorted are all sessions, not the newest ones: with an index of them, with one that is old, and without."""
    took_of = {}
    for path in audit_logs.write(box.logs, 1500, 2, seed=5):
        lines = Path(path).read_bytes().splitlines()
        took_of[os.path.basename(path)[:36]] = ms_between(json.loads(lines[0])["ts"], json.loads(lines[-1])["ts"])
    box.serve()
    walk = Walk(box)
    box.until(lambda: index_test.rows(box)[0] == 1500, "no index")
    for sort, sign in (("took", 1), ("-took", -1)):
        shown = [took_of[r["session"]] for r in walk.screen("?sort=" + sort).table("sessions")]
        same(shown, sorted(took_of.values(), reverse=sign == 1)[:200], sort)
    slow = min(took_of)  # the oldest one: what is appended makes its row old
    path = f"{box.logs}/{slow}.ndjson"
    last = json.loads(Path(path).read_bytes().splitlines()[-1])
    body = json.dumps({"v": 1, "seq": last["seq"] + 1, "ts": "2027-01-01T00:00:00.000Z", "type": "session_resume",
                       "after": last["type"]}, separators=(",", ":"))[:-1]
    with open(path, "ab") as f:
        f.write(body.encode() + b',"hash":"' + hashlib.sha256((last["hash"] + body).encode()).hexdigest().encode() + b'"}\n')
    same(walk.screen("?sort=took").table("sessions")[0]["session"], slow)
    box.end()


if __name__ == "__main__":
    sys.exit(main([numbers, versions, version_of_one_that_hangs, sorted_by_all]))
