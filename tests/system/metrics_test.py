#!/usr/bin/env python3
"""What the daemon counts is what its logs hold: GET /metrics and GET /v1/audit."""
import collections
import http.client
import json
import re
import sys

from daemon import Connection, DaemonBox, simple
from support import expect, main, records

LINE = re.compile(r'^([a-z_]+)(?:\{([^{}]*)\})? (\S+)$')


def scrape(box):
    connection = Connection(box.socket)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    text = answer.read().decode()
    expect(answer.status == 200 and answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"))
    typed, values = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            typed[line.split()[2]] = line.split()[3]
        if line.startswith("#"):
            continue
        found = LINE.match(line)
        expect(found, "no sample:", line)
        name, labels, value = found.groups()
        base = re.sub("_(bucket|sum|count)$", "", name)
        expect(name in typed or typed.get(base) == "histogram", "no type:", line)
        expect((name, labels) not in values, "twice:", line)
        values[name, labels] = float(value)
    return values


def of(values, name):
    return {labels: v for (n, labels), v in values.items() if n == name}


def counted(box: DaemonBox):
    """Every counter against the records of the logs."""
    box.serve()
    workflow, scenario = simple(box, 20)
    ids = [box.submit(workflow, scenario, task=f"t{i}") for i in range(5)]
    for sid in ids:
        box.wait_status(sid, "complete")
    got = scrape(box)
    methods, stages = collections.Counter(), collections.Counter()
    calls, ends, tokens = collections.Counter(), collections.Counter(), collections.Counter()
    batches = 0
    for sid in ids:
        provider = {}
        for r in records(box.log(sid)):
            batches += 1
            if r["type"] == "judgment":
                methods[f'match_method="{r["match_method"]}"'] += 1
                for s in r["stages"]:
                    stages[f'stage="{s["stage"]}",outcome="{s["outcome"]}"'] += 1
            if r["type"] == "call_start":
                provider[r["call"]] = r["provider"]
            if r["type"] == "call_end":
                kind = r.get("error", {}).get("class", "none")
                calls[f'provider="{provider[r["call"]]}",class="{kind}"'] += 1
                for side in ("input", "output"):
                    if "usage" in r:
                        tokens[f'provider="{provider[r["call"]]}",direction="{side}"'] += \
                            r["usage"].get(side, 0)
            if r["type"] == "session_end":
                ends[f'outcome="{r["outcome"]}"'] += 1
    expect(of(got, "segue_judgments_total") == dict(methods), got, methods)
    expect(of(got, "segue_stages_total") == dict(stages), stages)
    expect(of(got, "segue_calls_total") == dict(calls), calls)
    expect(of(got, "segue_tokens_total") == dict(tokens), tokens)
    expect(of(got, "segue_session_ends_total") == dict(ends), ends)
    appends = got["segue_append_seconds_count", None]
    expect(0 < appends <= batches, appends)
    buckets = [v for v in of(got, "segue_append_seconds_bucket").values()]
    expect(buckets == sorted(buckets) and buckets[-1] == appends, buckets)
    expect(got["segue_sessions", 'state="running"'] == 0)
    box.end()


def large_and_small(box: DaemonBox):
    """A counter shows each call, however much was counted before it."""
    box.serve()
    workflow, _ = simple(box)
    total = 0
    for n in 11 * [1_000_000_000] + [1, 7]:
        usage = {"input": n, "output": 0}
        scenario = box.file(f"s{n}.json", json.dumps({"replies": [
            {"movement": "plan", "purpose": "execute", "text": "a plan", "usage": usage},
            {"movement": "do", "purpose": "execute", "text": "done"},
            {"stage": "structured_output", "structured": {"reason": "ok", "step": 1}, "times": 0}]}))
        box.wait_status(box.submit(workflow, scenario), "complete")
        total += n
        got = of(scrape(box), "segue_tokens_total")
        expect(got['provider="script",direction="input"'] == total, got, total)
    box.end()


def states(box: DaemonBox):
    """How sessions stand now; a daemon with one place lets the others wait, and says for how long."""
    box.serve("--max-sessions", "1")
    workflow, scenario = simple(box, 20000)
    ids = [box.submit(workflow, scenario) for _ in range(3)]
    box.wait_status(ids[0], "running")
    got = scrape(box)
    expect(got["segue_sessions", 'state="running"'] == 1
           and got["segue_sessions", 'state="queued"'] == 2, of(got, "segue_sessions"))
    expect(got["segue_sessions_max", None] == 1 and got["segue_queue_age_seconds", None] > 0)
    for sid in reversed(ids):
        box.ask("POST", f"/v1/sessions/{sid}/cancel")
    expect(of(scrape(box), "segue_session_ends_total") == {'outcome="cancelled"': 3})
    box.end()


def audited(box: DaemonBox):
    """The same numbers as the command's; wrong filters are refused."""
    box.serve()
    workflow, scenario = simple(box, 5)
    for i in range(4):
        box.wait_status(box.submit(workflow, scenario, task=f"t{i}"), "complete")
    for query, words in (("", []), ("?by=movement,method", ["--by", "movement,method"]),
                         ("?method=when", ["--method", "when"]),
                         ("?min_stages=2&ambiguous=false", ["--min-stages", "2"]),
                         ("?since=1h&workflow=simple&by=stage", ["--since", "1h", "--workflow",
                                                                 "simple", "--by", "stage"])):
        told = json.loads(box.segue("audit", "--json", *words).stdout)
        expect(box.get("/v1/audit" + query) == told, query)
    for query in ("?by=nothing", "?min_stages=x", "?ambiguous=perhaps", "?since=never", "?b=1"):
        status, value = box.ask("GET", "/v1/audit" + query)
        expect(status == 400 and value["detail"], query, status, value)
    expect(box.check_all() >= 5)
    box.end()


def looked_at(box: DaemonBox):
    """One session, one judgment and its integrity, as the commands tell them."""
    box.serve()
    workflow, scenario = simple(box, 5)
    sid = box.submit(workflow, scenario)
    box.wait_status(sid, "complete")
    view = json.loads(box.segue("show", sid, "--as", "view").stdout)
    expect(box.get(f"/v1/sessions/{sid}/view") == view, view)
    turn = json.loads(box.segue("show", sid, "do", "--as", "view", "--full").stdout)
    expect(box.get(f"/v1/sessions/{sid}/turns/2") == turn, turn)
    got = box.get(f"/v1/sessions/{sid}/integrity")
    expect(got["ok"] and got["sealed"] and got["records"] == len(records(box.log(sid))), got)
    for path in (f"{sid}/turns/9", f"{sid}/turns/x", "0" * 36 + "/view", sid[:-1] + "10"[sid[-1] == "1"] + "/integrity"):
        status, value = box.ask("GET", "/v1/sessions/" + path)
        expect(status == 404 and value["detail"], path, status, value)
    expect(box.check_all() >= 4)
    box.end()


def many_at_once(box: DaemonBox):
    """Readings that wait are refused beyond a bound, and hold up nobody; clients that leave are
    forgotten."""
    box.serve()
    workflow, scenario = simple(box, 5)
    box.wait_status(box.submit(workflow, scenario), "complete")
    asked = []
    for _ in range(100):
        connection = Connection(box.socket)
        connection.request("GET", "/v1/audit")
        asked.append(connection)
    for connection in asked[::2]:
        connection.close()
    seen = collections.Counter()
    for connection in asked[1::2]:
        try:
            seen[connection.getresponse().status] += 1
        except http.client.HTTPException:
            seen["hung up"] += 1
    expect(seen[200] > 0 and set(seen) <= {200, 503}, seen)
    expect(box.get("/v1/audit")["totals"]["judgments"] > 0)
    box.end()


if __name__ == "__main__":
    sys.exit(main([counted, large_and_small, states, audited, looked_at, many_at_once]))
