#!/usr/bin/env python3
"""segue export --otlp: the spans say what the log says and are the same each time, a collector gets them as the protocol
has it, and the protocol's own decoder (from npm, where that is here) reads each of their fields."""
import http.server
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

from audit_logs import write
from support import Box, expect, main, needs, records, skip

FLOW = """
name: make
initial_movement: work
movements:
  - {name: work, edit: true, instruction: do it, rules: [{condition: done, next: verify}]}
  - name: verify
    command: [grep, -q, more, a]
    rules: [{condition: when(exit == 0), next: review}, {condition: when(true), next: work}]
  - {name: review, instruction: is it done, rules: [{condition: approved, next: COMPLETE}, {condition: rejected, next: ABORT}]}
"""
USE = {"input": 30, "output": 7, "cached": 5, "reasoning": 2}
REPLIES = {"replies": [{"movement": "work", "purpose": "execute", "text": "I did.", "usage": USE, "cost": 0.25},
                       {"movement": "work", "purpose": "execute", "error": {"class": "network", "message": "gone"}},
                       {"movement": "work", "purpose": "execute", "text": "again", "write": {"a": "more\n"}},
                       {"movement": "review", "purpose": "execute", "text": "fine"},
                       {"movement": "review", "text": "what?"},
                       {"movement": "review", "text": '{"step": 1, "reason": "it is there"}'},
                       {"movement": "review", "text": '{"step": 1, "reason": "it is there"}'}]}
DECODE = r"""
const root = require("@opentelemetry/otlp-proto-exporter-base/build/src/generated/root");
const Request = root.opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;
const ids = ["traceId", "spanId", "parentSpanId"];
const mapped = (v, form) => Array.isArray(v) ? v.map(i => mapped(i, form)) : v && typeof v == "object" ?
  Object.fromEntries(Object.entries(v).sort().map(([k, i]) => [k, ids.includes(k) ? form(i) : mapped(i, form)])) : v;
for (const line of require("fs").readFileSync(0, "utf8").trim().split("\n")) {
  const given = JSON.parse(line);
  const asBytes = mapped(given, hex => Buffer.from(hex, "hex").toString("base64"));
  const wire = Request.encode(Request.fromObject(asBytes)).finish();
  const read = Request.toObject(Request.decode(wire), {longs: String, enums: Number, bytes: String});
  const back = mapped(read, base64 => Buffer.from(base64, "base64").toString("hex"));
  if (JSON.stringify(mapped(given, i => i)) != JSON.stringify(back)) {
    console.log(JSON.stringify(mapped(given, i => i)) + "\n" + JSON.stringify(back));
    process.exit(1);
  }
}
"""


def played(box):
    box.segue("run", box.file("flow.yaml", FLOW), "-s", box.file("r.json", json.dumps(REPLIES)), "-t", "x", "-p", "script",
              "-l", box.logs)
    return box.log_paths()[-1]


def exported(box, *words, status=0):
    return box.segue("export", *words, "--otlp", "-", status=status).stdout


def spans_of(text):
    return [s for line in text.splitlines() for r in json.loads(line)["resourceSpans"] for scope in r["scopeSpans"]
            for s in scope["spans"]]


def said(span):
    return {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}


def check(text, log):
    """All that can be told from the log without looking at how it was made."""
    spans, rows = spans_of(text), records(log)
    kinds = Counter(said(s)["gen_ai.operation.name"] for s in spans)
    of = Counter(r["type"] for r in rows)
    calls = [r for r in rows if r["type"] == "call_start"]
    commands = sum(r["provider"] == "command" for r in calls)
    tools = sum(r["type"] == "call_event" and r["event"] == "tool" for r in rows)
    expect(kinds["invoke_workflow"] == 1 and kinds["turn"] == of["turn_start"], kinds, of)
    expect(kinds["evaluate"] == of["judgment"] and kinds["execute_tool"] == commands + tools, kinds, of)
    expect(kinds["chat"] + kinds["invoke_agent"] == len(calls) - commands, kinds, len(calls))
    ids = {s["spanId"]: s for s in spans}
    session = rows[0]["session"]
    expect(len(ids) == len(spans), "a span's id twice")
    for s in spans:
        expect(s["traceId"] == session.replace("-", "") and len(s["spanId"]) == 16 and int(s["spanId"], 16), s)
        expect(int(s["startTimeUnixNano"]) <= int(s["endTimeUnixNano"]), s)
        expect(said(s)["gen_ai.conversation.id"] == session, s)
        above = ids.get(s.get("parentSpanId"))
        expect((above is None) == (said(s)["gen_ai.operation.name"] == "invoke_workflow"), s)
        if above is not None:
            expect(int(above["startTimeUnixNano"]) <= int(s["startTimeUnixNano"]) <= int(s["endTimeUnixNano"]) <=
                   int(above["endTimeUnixNano"]), s, above)
    for ours, theirs in (("input", "gen_ai.usage.input_tokens"), ("output", "gen_ai.usage.output_tokens")):
        wanted = sum(r.get("usage", {}).get(ours, 0) for r in rows if r["type"] == "call_end")
        expect(sum(int(said(s).get(theirs, 0)) for s in spans) == wanted, theirs, wanted)
    return spans, ids


def it_says_what_the_log_says(box: Box):
    log = played(box)
    text = exported(box, log)
    spans, ids = check(text, log)
    expect(text == exported(box, log) == exported(box, "last", "-l", box.logs), "other bytes")
    by = {s["name"]: s for s in spans}
    root = by["invoke_workflow make"]
    expect(said(root)["segue.session.status"] == "complete" and root["status"] == {"code": 1}, root)
    judged = said(by["evaluate review"])
    expect(judged["gen_ai.evaluation.score.label"] == "COMPLETE" and judged["segue.rule"] == "1", judged)
    results = by["evaluate review"]["events"]
    expect({e["name"] for e in results} == {"gen_ai.evaluation.result"}, results)
    last = {a["key"]: a["value"] for a in results[-1]["attributes"]}
    expect(last["gen_ai.evaluation.score.label"] == {"stringValue": "rule 1"}, last)
    judges = [s for s in spans if said(s).get("segue.stage")]
    expect(judges and all(ids[s["parentSpanId"]]["name"] == "evaluate review" for s in judges), judges)
    failed = [s for s in spans if s.get("status") == {"code": 2}]
    expect([said(s)["error.type"] for s in failed] == ["network"], failed)
    used = [said(s) for s in spans if said(s).get("segue.cost_usd")]
    expect(used[0]["segue.cost_usd"] == 0.25 and used[0]["gen_ai.usage.cache_read.input_tokens"] == "5", used)
    expect(b"it is there" not in text and b"I did" not in text, "a text")
    expect(b"it is there" in exported(box, log, "--reasons"), "no reasons")
    # a log that goes on: what is open ends with it
    lines = Path(log).read_bytes().splitlines(keepends=True)
    for n in range(1, len(lines)):
        Path(log).write_bytes(b"".join(lines[:n]))
        check(exported(box, log), log)


def many(box: Box):
    paths = write(box.dir + "/many", 12, 200, seed=3)
    text = exported(box, box.dir + "/many")
    lines = text.splitlines()
    expect(len(lines) > 12 and max(len(spans_of(line)) for line in lines) <= 500, len(lines))
    traces = {s["traceId"] for s in spans_of(text)}
    expect(len(traces) == 12, traces)
    for path in paths[:3]:
        check(exported(box, path), path)
    out = box.dir + "/out.jsonl"
    box.segue("export", box.dir + "/many", "--otlp", out, status=0)
    expect(Path(out).read_bytes() == text and os.stat(out).st_mode & 0o077 == 0, "the file")
    expect(exported(box, box.dir + "/many", "--since", "2999-01-01") == b"", "since")
    with open(paths[5], "r+b") as f:
        data = f.read().replace(b'"turn":9', b'"turn":8', 1)
        f.seek(0)
        f.write(data)
    done = box.segue("export", box.dir + "/many", "--otlp", "-", status=1)
    expect(b"is not what was written" in done.stderr and len({s["traceId"] for s in spans_of(done.stdout)}) == 12, done.stderr)
    for words in ([], ["--otlp", box.dir + "/none/x"], ["nothing", "--otlp", "-"]):
        expect(box.segue("export", *words).returncode in (1, 2), words)


class Collector(http.server.BaseHTTPRequestHandler):
    answer = 200, b"{}"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, dict(self.headers), body))
        status, text = self.server.answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *words):
        pass


def a_collector(box: Box):
    log = played(box)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    server.got, server.answer = [], (200, b"{}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    at = f"http://127.0.0.1:{server.server_port}"
    try:
        for url, path in ((at, "/v1/traces"), (at + "/", "/v1/traces"), (at + "/other/v1/traces", "/other/v1/traces")):
            box.segue("export", log, "--otlp", url, status=0, env={"OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b,x-two=2"})
            got, headers, body = server.got.pop()
            expect(got == path and headers["Content-Type"] == "application/json", got, headers)
            expect(headers["x-key"] == "a b" and headers["x-two"] == "2", headers)
            expect(body == exported(box, log).rstrip(b"\n"), body)
        for answer in ((503, b"later"), (400, b"{}"), (200, b'{"partialSuccess":{"rejectedSpans":"2","errorMessage":"full"}}')):
            server.answer = answer
            done = box.segue("export", log, "--otlp", at, status=1)
            expect(b"status" in done.stderr or b"full" in done.stderr, done.stderr)
        server.answer = 200, b'{"partialSuccess":{"rejectedSpans":"0"}}'
        box.segue("export", log, "--otlp", at, status=0)
        for odd in ("x", "=1", "a=b%0d%0ac: d"):
            done = box.segue("export", log, "--otlp", at, env={"OTEL_EXPORTER_OTLP_HEADERS": odd})
            expect(done.returncode == 2, odd, done)
    finally:
        server.shutdown()
        server.server_close()
    box.segue("export", log, "--otlp", at, status=1)


def the_published_schema(box: Box):
    """What the decoder made of OpenTelemetry's .proto files reads, and writes again, is what was given: a name that it
    does not know, or a value of another type, would be lost."""
    needs("node", "npm")
    log = played(box)
    write(box.dir + "/many", 6, 20, seed=4)
    done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent",
                           "@opentelemetry/otlp-proto-exporter-base@0.51.1"], cwd=box.dir + "/tmp", capture_output=True,
                          check=False, timeout=300)
    if done.returncode != 0:
        skip("npm could not fetch the decoder")
    for words in ([log, "--reasons"], [box.dir + "/many"]):
        text = exported(box, *words)
        read = subprocess.run(["node", "-e", DECODE], input=text, cwd=box.dir + "/tmp", capture_output=True, check=False)
        expect(read.returncode == 0, read.stdout[-2000:], read.stderr)
        wrong = text.replace(b'"spanId"', b'"span_identity"', 1)
        read = subprocess.run(["node", "-e", DECODE], input=wrong, cwd=box.dir + "/tmp", capture_output=True, check=False)
        expect(read.returncode != 0, "the decoder takes anything")


CASES = [it_says_what_the_log_says, many, a_collector, the_published_schema]

if __name__ == "__main__":
    sys.exit(main(CASES))
