#!/usr/bin/env python3
"""Every scenario of the mock of all wires (../shared/tools/mockd.js), in every dialect. Skips without
node or without the mock."""
import os
import subprocess
import sys

from api_calls import SCHEMA, drive
from support import Box, expect, main, need_build, needs, skip

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MOCK = os.environ.get("SEGUE_SHARED", ROOT + "/../shared") + "/tools/mockd.js"
DIALECTS = ["anthropic", "openai", "openai-chat", "gemini", "ollama", "llamacpp"]
REFUSING = ["anthropic", "openai", "gemini"]  # the mock's other streams say nothing of it

EXPECTED = {  # scenario: class, retry after
    "ok": ("ok", 0), "prose": ("ok", 0), "tool": ("ok", 0), "toolsleep": ("ok", 0), "refuse": ("refused", 0), "maxtok": ("length", 0),
    "401": ("auth", 0), "403": ("auth", 0), "404": ("not_found", 0), "429": ("rate_limit", None), "429s": ("rate_limit", 1000),
    "429x": ("rate_limit", 3600000), "500": ("overloaded", 0), "503": ("overloaded", 0), "529": ("overloaded", 0), "cut": ("network", 0),
    "cut0": ("network", 0), "sseerr": ("overloaded", 0), "hang": ("timeout", 0), "hang0": ("timeout", 0), "slow": ("ok", 0), "long": ("ok", 0),
}


class Mock:
    def __init__(self, box):
        self.process = subprocess.Popen(["node", MOCK, "--port", "0"], stdout=subprocess.PIPE, cwd=box.dir)
        self.process.stdout.readline()
        self.port = None
        for row in open("/proc/net/tcp").read().splitlines()[1:]:  # it does not print the port that it was given
            fields = row.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in self.sockets():
                self.port = int(fields[1].split(":")[1], 16)

    def sockets(self):
        folder = f"/proc/{self.process.pid}/fd"
        return [os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder)]

    def provider(self, scenario, dialect, **more):
        v1 = "/v1" if dialect in ("openai", "openai-chat") else ""
        return {"type": dialect, "base_url": f"http://127.0.0.1:{self.port}/s/{scenario}{v1}", **more}

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.wait()


def case_plain():
    with Box() as box, Mock(box) as mock:
        results = {}
        for scenario in EXPECTED:
            stall = {"stall_ms": 500} if "hang" in scenario else {}
            settings = {f"{d}.{scenario}": mock.provider(scenario, d, **stall) for d in DIALECTS}
            settings["completion"] = mock.provider(scenario, "llamacpp", endpoint="completion", **stall)
            results[scenario] = drive(settings, [{"id": n.split(".")[0], "provider": n} for n in settings])
        for scenario, (word, wait) in EXPECTED.items():
            for dialect, got in results[scenario].items():
                wanted = word
                if scenario == "refuse" and dialect not in REFUSING or scenario == "sseerr" and dialect in ("gemini", "completion"):
                    wanted = "ok"  # the mock has nothing of the kind there
                expect(got["class"] == wanted, scenario, dialect, got)
                expect(wait is None or got["retry_after_ms"] == wait or dialect == "gemini", scenario, dialect, got)
        for dialect, got in results["429"].items():
            expect(got["retry_after_ms"] > 0 or dialect in ("ollama",), "429 says when", dialect, got)
        for got in results["long"].values():
            expect(got["bytes"] > 150000, got["bytes"])


def case_structured():
    with Box() as box, Mock(box) as mock:
        for scenario in ("ok", "bad", "badonce", "prose"):
            settings = {f"{d}.{scenario}": mock.provider(scenario, d) for d in DIALECTS}
            calls = [{"id": d, "provider": f"{d}.{scenario}", "schema": SCHEMA, "after": True} for d in DIALECTS]
            for dialect, got in drive(settings, calls).items():
                expect(got["class"] == "ok", scenario, dialect, got)
                if scenario == "ok":
                    expect(got["structured"] == {"reason": "mock", "step": 0} and got["enforced"] == "native", dialect, got)
                    expect(got["notes"] == [], dialect, got)
                if scenario == "prose":
                    expect("not kept to the schema" in got["notes"][0] and got["enforced"] != "native", dialect, got)
                if scenario == "bad":
                    expect(got["notes"] and got.get("structured") != {"reason": "mock", "step": 0}, dialect, got)


def case_once():
    with Box() as box, Mock(box) as mock:
        for scenario, word in (("once-429", "rate_limit"), ("once-500", "overloaded"), ("once-529", "overloaded")):
            settings = {d + "-x": mock.provider(scenario, d) for d in DIALECTS}
            calls = [{"id": f"{d}.{i}", "provider": d + "-x", "after": True} for d in DIALECTS for i in range(2)]
            for name, got in drive(settings, calls).items():
                expect(got["class"] == (word if name.endswith(".0") else "ok"), scenario, name, got)


HTTP2 = """
const fs = require('fs'), http2 = require('http2');
let sessions = 0;
const server = http2.createSecureServer({key: fs.readFileSync('k.pem'), cert: fs.readFileSync('c.pem')});
server.on('session', () => sessions++);
server.on('stream', (stream) => {
  stream.on('data', () => {});
  stream.on('error', () => {});
  stream.on('end', () => {
    stream.respond({':status': 200, 'content-type': 'text/event-stream'});
    stream.write('data: {"choices":[{"delta":{"content":"over "}}]}\\n\\n');
    setTimeout(() => stream.end('data: {"choices":[{"delta":{"content":"' + sessions + '"},"finish_reason":"stop"}]}\\n\\n'), 50);
  });
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
"""


def case_http2(box):
    """Where a TLS server offers HTTP/2, calls share one connection; cancelling one leaves the others alone."""
    needs("openssl")
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                           "-addext", "subjectAltName=DNS:localhost", "-keyout", box.dir + "/k.pem", "-out", box.dir + "/c.pem"],
                          capture_output=True)
    expect(made.returncode == 0, made.stderr.decode())
    server = subprocess.Popen(["node", "-e", HTTP2], stdout=subprocess.PIPE, cwd=box.dir)
    try:
        url = f"https://localhost:{int(server.stdout.readline())}/v1"
        settings = {"two": {"type": "openai-chat", "base_url": url, "ca_file": box.dir + "/c.pem"}}
        calls = [{"id": i, "provider": "two", "model": "m", **({"cancel_ms": 30} if i % 5 == 4 else {})} for i in range(40)]
        got = drive(settings, calls)
        for i in range(40):
            if i % 5 == 4:
                expect(got[i]["class"] in ("cancelled", "ok"), got[i])
            else:
                expect(got[i]["class"] == "ok" and got[i]["text"] == "over 1", "one connection for all", got[i])
    finally:
        server.kill()
        server.wait()


need_build()
needs("node")
if not os.path.exists(MOCK):
    skip("no mockd.js here")
sys.exit(main([case_plain, case_structured, case_once, case_http2]))
