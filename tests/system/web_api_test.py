#!/usr/bin/env python3
"""What programs read of sessions over the socket: the same as the commands tell, in pages, and in bounds."""
import json
import sys
import urllib.parse
from pathlib import Path

from daemon import Connection, DaemonBox, simple
from report_cli_test import long_session, session
from support import expect, main, of_type, records
from web_gate_test import WebBox


def quote(text):
    return urllib.parse.quote(text, safe="")


def pages(box, path, key, limit):
    """All items of a list that comes in pages, and how many pages those were."""
    items, after, count = [], 0, 0
    while after is not None:
        value = box.get(f"{path}?after={after}&limit={limit}")
        expect(len(value[key]) <= limit, path, len(value[key]))
        items += value[key]
        after = value["next"]
        count += 1
    return items, count


def listed(box: DaemonBox):
    """Sessions are listed by words of their tasks and sorted as the page does; those that wait too."""
    ids = {t: records(session(box, task=t))[0]["session"] for t in ("Ant hill", "bee hive", "ant bee")}
    many = records(long_session(box, 30))[0]["session"]
    box.serve("--max-sessions", "1")
    names = lambda query: [s["id"] for s in box.get("/v1/sessions?" + query)["sessions"]]  # noqa: E731
    expect(names("text=ANT") == [ids["ant bee"], ids["Ant hill"]], names("text=ANT"))
    expect(names("text=bee%20ant") == [ids["ant bee"]])
    expect(names("text=nowhere") == [])
    odd = records(session(box, task="  Lin\u00e9 \"quoted\"\\ \t end\nsecond"))[0]["session"]
    expect(names("text=" + quote('\u00e9 "QUOTED"\\ end')) == [odd])
    expect(names("text=second") == [] and names("sort=turns&text=quoted") == [odd])
    plain = {s["id"]: s for s in box.get("/v1/sessions")["sessions"]}
    expect(all(plain[s["id"]] == s for s in box.get("/v1/sessions?sort=turns")["sessions"]))
    expect(names("sort=turns")[0] == many and names("sort=-turns")[-1] == many)
    expect(len(names("sort=turns&limit=2")) == 2)
    for column in ("started", "took", "tokens", "cost"):
        expect(sorted(names("sort=" + column)) == sorted(plain), column)
    page = box.get("/v1/sessions?text=e&limit=1")
    expect(page["next"] is not None, page)
    expect(page["next"] not in names("text=e&before=" + page["next"]))
    slow, scenario = simple(box, 60000)
    first, second = (box.submit(slow, scenario, task="zebra %d" % n) for n in (1, 2))
    box.wait_status(first, "running")
    queued = box.get("/v1/sessions?text=zebra&status=queued")["sessions"]
    expect([(s["id"], s["position"]) for s in queued] == [(second, 1)], queued)
    for wrong in ("sort=name", "sort=", "sort=turns&before=" + many, "text=" + "x" * 512,
                  "text=1+2+3+4+5+6+7+8".replace("+", "%20")):
        expect(box.ask("GET", "/v1/sessions?" + wrong)[0] == 400, wrong)
    for sid in (second, first):
        box.ask("POST", f"/v1/sessions/{sid}/cancel")
    box.check_all()
    box.end()


def told_alike(box: DaemonBox):
    """A session stands in the list as it is told alone: over, open, running, queued; so does what it asks."""
    over = records(session(box))[0]["session"]
    left = records(session(box, task="left"))[0]["session"]
    lines = Path(box.log(left)).read_bytes().splitlines(keepends=True)
    Path(box.log(left)).write_bytes(b"".join(lines[:5]))
    box.serve("--max-sessions", "1")
    slow, scenario = simple(box, 60000)
    first, second = (box.submit(slow, scenario, task="zebra %d" % n) for n in (1, 2))
    box.wait_status(first, "running")
    wanted = {over: "complete", left: "open", first: "running", second: "queued"}
    for query in ("", "?sort=turns", "?limit=1000"):
        got = {s["id"]: s for s in box.get("/v1/sessions" + query)["sessions"]}
        expect({i: s["status"] for i, s in got.items()} == wanted, query, got)
        expect(got[second]["position"] == 1 and all(s == box.get("/v1/sessions/" + i) for i, s in got.items()), query)
    for status in ("complete", "open", "running", "queued"):
        names = [s["id"] for s in box.get("/v1/sessions?status=" + status)["sessions"]]
        expect([wanted[n] for n in names] == [status], status, names)
    for sid in (second, first):
        box.ask("POST", f"/v1/sessions/{sid}/cancel")
    ask = box.file("ask.yaml", "name: q\nmovements:\n- name: q\n  ask: {question: Which?, choices: [a, b]}\n"
                   "  rules: [{condition: a, next: COMPLETE}, {condition: b, next: ABORT}]\n")
    sid = box.ask("POST", "/v1/sessions", {"workflow": ask, "cwd": box.cwd})[1]["id"]
    box.until(lambda: box.get("/v1/inbox")["inbox"], "nothing is asked")
    item = box.get("/v1/inbox")["inbox"][0]
    expect(item["id"] == sid and item["question"], item)
    box.ask("POST", f"/v1/sessions/{sid}/cancel")
    box.end()


def pieces(box: DaemonBox):
    """Turns, records, calls and texts of a session are those of its log and of the commands."""
    big = "\u8a66 needle \U0001f600 " + "x" * 200_000 + "."
    path = session(box, task="the Task", said=(big + "\n[WORK:1]", "fine.\n[CHECK:1]"))
    log = records(path)
    sid = log[0]["session"]
    many = records(long_session(box, 30))[0]["session"]
    box.serve()
    of = f"/v1/sessions/{sid}"
    expect(pages(box, of + "/records", "records", 4)[0] == log)
    view = json.loads(box.segue("show", box.log(many), "--as", "view").stdout)
    turns, count = pages(box, f"/v1/sessions/{many}/turns", "turns", 7)
    expect(turns == view["turns"] and count == 5, count)
    for far in (len(log), 2 ** 31, 2 ** 32, 10 ** 18 - 1):  # beyond all that is there
        for key in ("records", "turns"):
            got = box.get(f"{of}/{key}?after={far}&limit=1")
            expect(got[key] == [] and got["next"] is None, key, far, got)
    got = box.get(f"{of}/text?ref=1%23/task&offset={10 ** 18 - 1}")
    expect(got["text"] == "" and got["offset"] == len("the Task") and got["next"] is None, got)
    for key in ("records?after", "turns?after", "text?ref=1%23/task&offset"):
        for far in (10 ** 18, 2 ** 63 - 1, 2 ** 63, 2 ** 64, -1, -2 ** 63):
            status, told = box.ask("GET", f"{of}/{key}={far}")
            expect(status == 400 and told["detail"].endswith(" must be a number from 0 to 999999999999999999"), told)
    call = of_type(log, "call_start")[0]["call"]
    got = box.get(f"{of}/calls/{call}")
    expect(got["records"] == [r for r in log if r.get("call") == call], got)
    end = of_type(log, "call_end")[0]
    expect("text_blob" in end, "the answer is not in a blob")
    text, offset = "", 0
    while offset is not None:
        piece = box.get(f"{of}/text?ref={quote('%d#/text' % end['seq'])}&offset={offset}&limit=50001")
        expect(piece["offset"] == len(text.encode()), piece["offset"])
        text, offset = text + piece["text"], piece["next"]
    expect(text == big + "\n[WORK:1] " + of_type(log, "call_start")[0]["mark"])
    for wrong in ("/calls/99", "/calls/x", "/turns/0", "/text?ref=99%23/text", "/text?ref=1%23/nothing"):
        expect(box.ask("GET", of + wrong)[0] == 404, wrong)
    for wrong in ("/text", "/find", "/find?text=", "/records?after=x", "/records?limit=0",
                  "/turns?limit=1001", "/records?before=1", "/find?text=" + "x" * 401):
        expect(box.ask("GET", of + wrong)[0] == 400, wrong)
    expect(box.ask("GET", "/v1/sessions/" + "0" * 36 + "/records")[0] == 404)
    box.check_all()
    box.end()


def found(box: WebBox):
    """A text is found in every text of the log, in blobs too, with its place; case does not matter."""
    big = "y" * 100_000 + " \u30ad\u30e5\u30fc Needle/\"q\" end."
    path = session(box, task="a NEEDLE/\"q\" here a\u202eb \u2028 \u00e9\u0085", said=(big + "\n[WORK:1]", "fine.\n[CHECK:1]"))
    log = records(path)
    box.serve()
    of = f"/v1/sessions/{log[0]['session']}"
    got = box.get(f"{of}/find?text={quote('needle/' + chr(34) + 'q')}")
    expect(got["more"] is False, got)
    places = {hit["ref"] for hit in got["found"]}
    end = of_type(log, "call_end")[0]["seq"]
    expect({"1#/task", f"{end}#/text"} <= places, places)
    for hit in got["found"]:
        text = box.get(f"{of}/text?ref={quote(hit['ref'])}&offset={hit['offset']}&limit=9")["text"]
        expect(text.lower().startswith("needle/\"q"[:9]), hit, text)
        expect(hit["found"].lower() == "needle/\"q", hit)
    for odd in ("\u30ad\u30e5", "a\u202eb", "\u2028", "\u00e9\u0085"):
        expect(box.get(f"{of}/find?text={quote(odd)}")["found"], odd)
    expect(box.get(f"{of}/find?text=nowhere")["found"] == [])
    expect(box.get(f"{of}/find?text=e")["more"] is True)
    for words, more in (("y", True), ("yy yyy yy y", False), ("needle", False)):
        in_big = [hit for hit in box.get(f"{of}/find?text={quote(words)}")["found"] if hit["ref"] == f"{end}#/text"]
        expect([hit for hit in in_big if "more" in hit] == (in_big[4:] if more else []) and len(in_big) <= 5, words, in_big)
    page = box.window().ask("GET", f"s/{log[0]['session']}/find?q=y")[2]
    expect(b"; more of them in this text" in page)
    box.check_all()
    box.end()


def compared(box: DaemonBox):
    """Two sessions side by side as the command tells them."""
    ids = [records(session(box, task=t))[0]["session"] for t in ("ant", "bee")]
    box.serve()
    told = json.loads(box.segue("compare", "--logs", box.logs, *ids, "--json").stdout)
    expect(box.get(f"/v1/compare?a={ids[0]}&b={ids[1]}") == told)
    expect(box.ask("GET", f"/v1/compare?a={ids[0]}")[0] == 400)
    expect(box.ask("GET", f"/v1/compare?a={ids[0]}&b={'0' * 36}")[0] == 404)
    expect(box.ask("GET", f"/v1/compare?a={ids[0]}&b=..%2Fx")[0] == 404)
    box.check_all()
    box.end()


def providers(box: DaemonBox):
    """How the providers stand: places, calls that run and wait, errors of the last hour."""
    box.config("providers: {script: {concurrency: 1}}\n")
    box.serve()
    script = next(p for p in box.get("/v1/providers")["providers"] if p["name"] == "script")
    expect((script["calls"], script["waiting"], script["places"]) == (0, 0, 1), script)
    expect(script["circuit"] == "closed" and script["errors"] == {}, script)
    slow, scenario = simple(box, 60000)
    ids = [box.submit(slow, scenario) for _ in range(2)]
    for sid, status in zip(ids, ("running", "waiting")):
        box.wait_status(sid, status)
    told = box.get("/v1/providers")
    script = next(p for p in told["providers"] if p["name"] == "script")
    expect((script["calls"], script["waiting"]) == (1, 1), script)
    expect(told["daemon"]["sessions"]["running"] == 2, told["daemon"])
    for sid in ids:
        box.ask("POST", f"/v1/sessions/{sid}/cancel")
    bad = box.file("bad.json", json.dumps({"replies": [
        {"error": {"class": "refused", "message": "no <b>"}, "times": 0}]}))
    sid = box.submit(slow, bad)
    box.until(lambda: box.session(sid)["status"] not in ("queued", "running", "waiting"), "it goes on")
    script = next(p for p in box.get("/v1/providers")["providers"] if p["name"] == "script")
    expect(script["errors"].get("refused", 0) >= 1, script)
    expect(script["last_error"]["message"] == "no <b>", script)
    box.check_all()
    box.end()


def changes():
    """The changes of all sessions in one stream, gone on with by Last-Event-ID: none missed, none twice."""
    def open_stream(box, last=None):
        connection = Connection(box.socket)
        connection.request("GET", "/v1/events", headers={"Last-Event-ID": last} if last else {})
        answer = connection.getresponse()
        expect(answer.getheader("Content-Type") == "text/event-stream", answer.headers)
        return connection, answer

    def take(answer):
        event = {}
        while True:
            line = answer.readline().decode().rstrip("\n")
            if line == "" and event:
                return event
            name, _, value = line.partition(": ")
            if name and name != ":":
                event[name] = value

    with DaemonBox() as box:
        box.serve()
        workflow, scenario = simple(box, 10)
        first, stream = open_stream(box)
        expect(stream.readline() == b":\n")
        sid = box.submit(workflow, scenario)
        box.wait_status(sid, "complete")
        seen = []
        while not seen or json.loads(seen[-1]["data"])["status"] != "complete":
            seen.append(take(stream))
        told = [json.loads(e["data"]) for e in seen]
        expect(all(t["id"] == sid for t in told) and told[-1]["seq"] == len(records(box.log(sid))), told)
        numbers = [int(e["id"].split("-")[1]) for e in seen]
        expect(numbers == list(range(1, len(seen) + 1)), numbers)
        first.close()
        other = box.submit(workflow, scenario)
        box.wait_status(other, "complete")
        second, stream = open_stream(box, seen[2]["id"])
        again = [take(stream) for _ in seen[3:]]
        expect(again == seen[3:], again)
        expect(json.loads(take(stream)["data"])["id"] == other)
        second.close()
        for odd in ("0-1", "x", seen[0]["id"].split("-")[0] + "-999999"):
            third, stream = open_stream(box, odd)
            expect(take(stream)["event"] == "reset", odd)
            third.close()
        box.end()


def grows(box: DaemonBox):
    """What is kept of a session that is looked at follows its log, and a log that was changed."""
    path = long_session(box, 40)
    log = records(path)
    lines = Path(path).read_bytes().splitlines(True)
    box.serve()
    of = f"/v1/sessions/{log[0]['session']}"
    for n in (3, 20, 21, 100, len(lines)):
        Path(path).write_bytes(b"".join(lines[:n]))
        got = box.get(of + "/view")
        told = json.loads(box.segue("show", path, "--as", "view").stdout)
        expect(got == told, n, got["turns"][-1], told["turns"][-1])
    Path(path).write_bytes(b"".join(lines)[:-20])
    expect(box.get(of + "/view")["chain"]["state"] == "torn")
    Path(path).write_bytes(b"".join(lines[:9]) + lines[9].replace(b'"seq":10', b'"seq":10 ') + b"".join(lines[10:]))
    expect(box.get(of + "/view")["chain"]["state"] == "bad")
    Path(path).write_bytes(b"".join(lines))
    expect(box.get(of + "/view")["chain"]["state"] == "sound")
    box.end()


if __name__ == "__main__":
    sys.exit(main([listed, told_alike, pieces, found, compared, providers, changes, grows]))
