#!/usr/bin/env python3
"""The window before what is wrong: hostile addresses and bodies, and logs that are damaged, odd, removed or replaced."""
import hashlib
import json
import os
import re
import sys
from pathlib import Path

from audit_logs import Log, session_id
from daemon import simple
from ls_cli_test import killed_starts
from report_cli_test import session
from support import expect, main, records
from web_gate_test import NAVIGATE, WebBox, is_closed

OF_SESSION = ("", "1", "2", "99", "integrity", "changes", "records", "workflow", "find?q=e")
BANNER = b"This log is not what was written"
SID = "01a20651-0000-7000-8000-%012x"


def page(window, path):
    status, headers, body = window.ask("GET", path, NAVIGATE if path == "" else None)
    expect(status != 200 or headers["Content-Type"].startswith("text/html"), path, headers)
    return status, body


def chained(log, out, change=None, sid=None):
    """Writes the records as a log whose chain is right; change(record) may change each before."""
    chain = "0" * 64
    with open(out, "wb") as f:
        for record in log:
            record = {k: v for k, v in record.items() if k != "hash"}
            if sid and record["type"] == "session_start":
                record["session"] = sid
            if change:
                change(record)
            body = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()[:-1]
            chain = hashlib.sha256(chain.encode() + body).hexdigest()
            f.write(body + b',"hash":"' + chain.encode() + b'"}\n')


def addresses(box: WebBox):
    """Ids, turns and cursors that are none: a page says so, or nothing is there; the next page is as before."""
    sid = records(session(box))[0]["session"]
    box.serve()
    window = box.window()
    before = page(window, f"s/{sid}/2")
    for wrong in ("-" * 36, "0" * 36, sid[:-1], sid + "0", sid.upper(), "last", "..", "%2e%2e", "..%2f..%2fetc%2fpasswd",
                  "%00", sid + "%00", sid[:-2] + "%ff", "a" * 300, "a" * 8000, "%F0%9F%90%A8", "s", "*", "{id}",
                  sid + "%2f..", sid[:-1] + "%27"):
        for of in OF_SESSION + ("events",):
            status, body = page(window, f"s/{wrong}/{of}")
            expect(status == 404, wrong, of, status)
            expect(b"root:" not in body, wrong)
    for turn in ("0", "-1", "3", "1e3", "1.0", "+1", " 1", "99999999999999999999", "9223372036854775808", "x" * 100,
                 "%3Cscript%3E", "1;2", "NaN"):
        expect(page(window, f"s/{sid}/{turn.replace(' ', '%20')}")[0] == 404, turn)
    for cursor in ("-1", "x", "1e9", "99999999999999999999", "9223372036854775807", "%00", "%ff", "1%00", "a" * 4000):
        expect(page(window, f"s/{sid}/?from={cursor}")[0] == 200, cursor)
        expect(page(window, f"s/{sid}/records?from={cursor}")[0] in (200, 404), cursor)
        expect(page(window, f"?before={cursor}")[0] == 200, cursor)
        expect(page(window, f"?sort={cursor}")[0] == 200, cursor)
    for q in ("%3Cscript%3E", "status:", "status:%ff", "since:", "since:-1d", "since:99999999999999d", "method:x", "%00", "%ff" * 300,
              "a" * 600, "a%20" * 2000, "status:" + "a," * 300, "%22%27%3E", "workflow:%2e%2e", ":" * 500, "%20" * 511,
              "%E3%81%82" * 300):
        for of in ("", "audit", f"s/{sid}/find"):
            status, body = page(window, f"{of}?q={q}")
            expect(status == 200 and b"<script>" not in body, of, q, status)
    for odd in ("?nothing=1", "?q=a&Q=b", "audit?from=1", f"s/{sid}/?q=a"):
        expect(window.ask("GET", odd)[0] == 400, odd)
    expect(page(window, "?q=bee&q=ant")[0] == 200)
    for pair in ("", "_", f"{sid}_", f"_{sid}", f"{sid}_{sid}_{sid}", sid, "x_y", f"{sid}_{'0' * 36}", "%00_%00", "a" * 9000):
        expect(page(window, "compare/" + pair)[0] in (200, 404), pair)
    for huge in ("x" * 30_000, "q=" + "%41" * 9_000):
        try:
            status = window.ask("GET", "?" + huge)[0]
        except (OSError, AssertionError):  # the library's own page, or hung up on
            status = 431
        expect(status in (200, 400, 404, 413, 414, 431), status)
    expect(page(window, f"s/{sid}/2") == before)
    box.end()


def bodies(box: WebBox):
    """What is posted and is none of what the page posts changes nothing, and says why."""
    box.serve()
    workflow, scenario = simple(box, 60000)
    sid = box.submit(workflow, scenario)
    box.wait_status(sid, "running")
    window, other = box.window(), box.window()
    raw = lambda what, data: window.ask("POST", f"s/{sid}/{what}", body=data)  # noqa: E731
    for what in ("answer", "approve", "reject", "resume"):
        for data in ([], "x", 1, None, True, {"question": -1}, {"question": 10**30}, {"question": "1"}, {"choice": 0},
                     {"text": "x" * 500_000}, {"nothing": 1}, {"rule": "1"}, {"max_movements": -1}, {"provider": ["x"]},
                     {"why": {"a": [[]] * 1000}}):
            status, _, body = raw(what, data)
            expect(400 <= status < 500 and json.loads(body)["detail"], what, data, status, body)
    for data in (b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"question":1,"question":2}', b"\0" * 1000, b'{"a":"\\ud800"}', b"nan"):
        got = window.ask("POST", f"s/{sid}/answer", raw=data)
        expect(400 <= got[0] < 500, data[:20], got)
    for cookie in ("segue=", "segue=" + "g" * 64, window.cookie + "0", window.cookie.upper(), "segue=" + "0" * 4000, "segue",
                   "=; segue", window.cookie.replace("segue", "Segue"), "x" * 15_000):
        got = window.ask("POST", f"s/{sid}/cancel", {"Cookie": cookie}, {})
        expect(is_closed(got), cookie[:80], got)
    for wrong in ({"code": window.code}, {"code": other.cookie}, {"code": ["x"]}, {"code": {}}, [], "x", {"code": "0" * 100_000}):
        expect(window.ask("POST", "enter", body=wrong)[0] == 404, str(wrong)[:80])
    for unknown in ("0" * 36, "-" * 36):
        expect(window.ask("POST", f"s/{unknown}/cancel", body={})[0] == 404)
    expect(box.get("/v1/sessions/" + sid)["status"] == "running", "something of this ended it")
    expect(other.ask("POST", f"s/{sid}/cancel", body={})[0] == 200)
    box.check_all()
    box.end()


def long_open():
    """The row of a long log that has not ended says how its last judgments were decided."""
    log, sid = Log(1_760_000_000_000), session_id(70000)
    log.add("session_start", session=sid, versions={"segue": "0.1.0"}, task="a long work", workflow_sha256="0" * 64,
            workflow={"name": "long", "movements": []}, config={"cwd": "/"})
    for n in range(1, 41):
        method = "phase1_tag" if n < 30 else "ai_judge"
        log.add("turn_start", turn=n, movement="work", iteration=n, movement_iteration=n)
        log.add("call_start", turn=n, call=n, attempt=1, purpose="execute", provider="script", token="1", prompt=["do"],
                prompt_sha256="0" * 64)
        log.add("call_end", turn=n, call=n, attempt=1, text="word " * 2000, duration_ms=5)
        log.add("judgment", turn=n, movement="work", rule=2, condition="on", next="work", method=method,
                match_method=method, ambiguous=n == 39, stages=[])
    with WebBox() as box:
        os.makedirs(box.logs)
        Path(f"{box.logs}/{sid}.ndjson").write_bytes(log.bytes())
        box.serve()
        row = page(box.window(), "")[1].decode().split(f'id="r-{sid}')[1].split("</tr>")[0]
        expect(re.search(r"<title>of its last records: asked again [1-9]\d?</title>", row), row)
        expect(">ambiguous<" in row and "fell back" not in row, row)
        box.end()


def damaged(box: WebBox):
    """A log that is not what was written: every page of it says so, and shows what stands there."""
    path = session(box, task="look at the ant")
    sid, whole = records(path)[0]["session"], records(session(box, task="look at the bee"))[0]["session"]
    good = Path(path).read_bytes()
    box.serve()
    window = box.window()
    expect(BANNER not in page(window, f"s/{sid}/records")[1])
    lines = good.split(b"\n")
    lines[4] = lines[4].replace(b'"ts":"2', b'"ts":"1')
    Path(path).write_bytes(b"\n".join(lines))
    for of in ("", "1", "records", "records?from=3", "workflow", "find?q=ant", "find?q=nowhere"):
        status, body = page(window, f"s/{sid}/{of}")
        expect(status == 200 and BANNER in body and b"Record 5" in body, of, status, body[:3000])
        expect(b"It is sound up to record 4. Record 5: " in body, of, body[:3000])
    status, body = page(window, f"s/{sid}/integrity")
    expect(status == 200 and b"class=banner" in body and b"5" in body, body[-2000:])
    status, body = page(window, f"compare/{sid}_{whole}")
    expect(status == 200 and b"The log of A is not what was written" in body and b"The log of B" not in body, body)
    expect(b"It is sound up to record 4" in body and b"not proven" in body and b"</a> rule 1 &#62; " in body, body)
    expect(b"The log of B is not what" in page(window, f"compare/{whole}_{sid}")[1])
    status, body = page(window, f"s/{sid}/changes")
    expect(status == 200 and b"This log is not what was written" in body and b"It is sound up to record 4." in body, body)
    done = box.segue("compare", "--logs", box.logs, sid, whole)
    expect(done.returncode != 0 and b"record 5" in done.stderr, done.stdout, done.stderr)
    got = box.get(f"/v1/sessions/{sid}/integrity")
    expect(got["ok"] is False and got["bad_record"] == 5, got)
    # nothing of it is sound, and its first record cannot be read
    Path(path).write_bytes(b"\n".join([b"{" + lines[0]] + lines[1:]))
    for of in (f"compare/{sid}_{whole}", f"s/{sid}/changes"):
        status, body = page(window, of)
        expect(status == 200 and b"is not what was written" in body and b"Record 1: " in body, of, status, body[:3000])
    # mended by its owner, cut within a record, then as it was
    Path(path).write_bytes(good[:-40])
    status, body = page(window, f"s/{sid}/")
    expect(status == 200 and BANNER not in body and b"torn tail" in body)
    Path(path).write_bytes(good)
    expect(BANNER not in page(window, f"s/{sid}/records")[1])
    box.end()


def replaced(box: WebBox):
    """A log that is replaced while it is looked at is read anew: nothing that was read before stands as proven."""
    path = session(box, task="look at the ant")
    sid, other = records(path)[0]["session"], session(box, task="look at the bee and at all the other bees")
    good = Path(path).read_bytes()
    longer = Path(other).read_bytes()
    box.serve()
    window = box.window()
    for data in (longer, os.urandom(len(good) * 2)):
        for of in ("", "1", "records"):
            expect(page(window, f"s/{sid}/")[0] == 200)
            Path(path + ".new").write_bytes(data)
            os.rename(path + ".new", path)
            status, body = page(window, f"s/{sid}/{of}")
            expect(b"the ant" not in body and BANNER not in body, of, status, body[-2000:])
            expect(status == 404 or b"under the name of another session" in body, of, status, body[-2000:])
            Path(path).write_bytes(good)
            status, body = page(window, f"s/{sid}/{of}")
            expect(status == 200 and BANNER not in body, of, status, body[-2000:])
    box.end()


def newer(box: WebBox):
    """A log of a later version is shown as far as it is known, and the page and the report say so."""
    log = records(session(box))
    box.serve()
    window = box.window()
    sid = SID % 1
    for first in (1, 9, len(log), 99):
        def later(record, first=first):
            record["v"] = 1 + (record["seq"] >= first)
        chained(log, f"{box.logs}/{sid}.ndjson", later, sid)
        status, body = page(window, f"s/{sid}/")
        expect(status == 200 and b"COMPLETE" in body and (b"A newer segue" in body) == (first < 99), first, body[:3000])
        done = box.segue("report", f"{box.logs}/{sid}.ndjson", "-o", box.cwd + "/r.html")
        expect((b"A newer segue" in Path(box.cwd + "/r.html").read_bytes()) == (first < 99), first, done.stderr)
    box.end()


def killed(box: WebBox):
    """Starts that were killed are listed as segue ls lists them, and their page says what they are."""
    whole = records(session(box))[0]["session"]
    ids = killed_starts(box)
    box.serve()
    window = box.window()
    for query, wanted in (("", [*ids, whole]), ("?q=status:empty", ids), ("?q=status:bad", []), ("?sort=-started", [*ids, whole]),
                          ("?q=since:1h", [whole]), ("?q=workflow:two", []), ("?q=status:empty+provider:script", []),
                          ("?q=killed", ids)):
        body = window.ask("GET", query, NAVIGATE)[2].decode()
        rows = dict(re.findall(r"<tr id=r-([0-9a-f-]{36})>(.*?)</tr>", body.replace('"', ""), re.S))
        expect(sorted(rows) == sorted(wanted), query, list(rows))
        for sid in set(ids) & set(rows):
            expect("empty" in rows[sid] and "killed before it had begun" in rows[sid], query, rows[sid])
    for sid in ids:
        status, body = page(window, f"s/{sid}/")
        expect(status == 404 and b"killed before it had begun" in body and b"segue rm" in body, status, body[-900:])
    box.end()


if __name__ == "__main__":
    sys.exit(main([addresses, bodies, long_open, damaged, replaced, newer, killed]))
