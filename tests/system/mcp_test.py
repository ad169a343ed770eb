#!/usr/bin/env python3
"""segue as a server of the Model Context Protocol: both eras, each tool, logs as resources, and what a
client or a model may get wrong. With SEGUE_REAL_CLIENTS=1 the real Claude Code drives a workflow by it."""
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading

from daemon import DaemonBox
from support import SEGUE, WAIT_S, expect, main, records, skip

WORKFLOW = """name: tiny
movements:
  - name: work
    command: [echo, "all is done"]
    rules:
      - {condition: when(exit == 0), next: COMPLETE}
"""
MODERN = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"}}}


class Server:
    def __init__(self, box, env=None):
        self.process = subprocess.Popen([SEGUE, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=env or box.env, cwd=box.cwd)
        box.started.append(self.process)
        self.number = 0
        self.early = {}

    def send(self, method, params=None, number=True):
        message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        if number:
            self.number += 1
            message["id"] = self.number
        self.raw(json.dumps(message).encode())
        return message.get("id")

    def raw(self, line):
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self):
        line = self.process.stdout.readline()
        expect(line, "the server ended:", self.process.stderr.read() if self.process.poll() is not None else "")
        return json.loads(line)

    def answer(self, number):
        while number not in self.early:
            got = self.read()
            self.early[got["id"]] = got
        return self.early.pop(number)

    def ask(self, method, params=None):
        return self.answer(self.send(method, params))

    def call(self, tool, **arguments):
        got = self.ask("tools/call", {"name": tool, "arguments": arguments})
        result = got["result"]
        return result["isError"], result["content"][0]["text"], result

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        expect(self.process.returncode == 0, self.process.returncode, self.process.stderr.read())


def both_eras_are_spoken(box):
    server = Server(box)
    for asked, told in (("2025-06-18", "2025-06-18"), ("2025-11-25", "2025-11-25"), ("1999-01-01", "2025-11-25")):
        got = server.ask("initialize", {"protocolVersion": asked, "capabilities": {}, "clientInfo": {}})
        expect(got["result"]["protocolVersion"] == told, got)
    server.send("notifications/initialized", number=False)
    expect(server.ask("ping")["result"] == {}, "ping")
    tools = {t["name"]: t for t in server.ask("tools/list")["result"]["tools"]}
    expect({"submit", "list", "show", "watch", "answer", "cancel", "judge", "extract", "verify"} == set(tools), tools)
    expect(tools["judge"]["inputSchema"]["required"] == ["text", "rules"], tools["judge"])
    expect("resultType" not in server.ask("ping")["result"], "the old era has no such key")
    got = server.ask("server/discover", MODERN)["result"]
    expect(got["supportedVersions"][0] == "2026-07-28" and got["resultType"] == "complete", got)
    expect(server.ask("tools/list", MODERN)["result"]["resultType"] == "complete", "tools/list")
    for method in ("server/discover", "tools/list", "tools/call"):
        asked = {"_meta": {**MODERN["_meta"], "io.modelcontextprotocol/protocolVersion": "2031-01-01"}}
        error = server.ask(method, asked)["error"]
        expect(error["code"] == -32022 and error["data"] == {"supported": ["2026-07-28", "2025-11-25"],
                                                             "requested": "2031-01-01"}, method, error)
    server.end()


def a_session_is_driven_by_it(box: DaemonBox):
    box.serve()
    flow = box.file("tiny.yaml", WORKFLOW)
    server = Server(box)
    failed, text, _ = server.call("submit", workflow=flow, task="x", cwd=box.cwd)
    expect(failed and "without a sandbox" in text and f"segue trust {flow}" in text, "a model's path is no consent", text)
    box.segue("trust", flow, status=0, out="work: runs 'echo' 'all is done' without a sandbox")
    failed, text, result = server.call("submit", workflow=flow, task="--help\nis a task", cwd=box.cwd)
    expect(not failed, text)
    sid = result["structuredContent"]["id"]
    failed, text, _ = server.call("watch", id=sid, seconds=60)
    expect(not failed and "COMPLETE" in text, text)
    failed, text, _ = server.call("show", id=sid, movement="work")
    expect(not failed and "all is done" in text and "method when" in text, text)
    failed, text, _ = server.call("list", number=1)
    expect(not failed and sid in text, text)
    listed = server.ask("resources/list")["result"]["resources"]
    expect([r["name"] for r in listed] == [sid], listed)
    log = server.ask("resources/read", {"uri": listed[0]["uri"]})["result"]["contents"][0]["text"]
    first = json.loads(log.splitlines()[0])
    expect(first["type"] == "session_start" and first["task"] == "--help\nis a task", first)
    failed, text, _ = server.call("verify", id=sid)
    expect(not failed, text)
    failed, text, _ = server.call("cancel", id=sid)
    expect(failed, "it was over:", text)
    server.end()


def a_watch_holds_up_nobody(box: DaemonBox):
    box.serve()
    gate = box.dir + "/gate"
    flow = box.file("slow.yaml", WORKFLOW.replace('[echo, "all is done"]', f'[sh, -c, "until test -e {gate}; do sleep 0.05; done"]'))
    server = Server(box)
    box.segue("trust", flow, status=0)
    sid = server.call("submit", workflow=flow, cwd=box.cwd)[2]["structuredContent"]["id"]
    watch = server.send("tools/call", {"name": "watch", "arguments": {"id": sid, "seconds": 300}})
    expect(server.ask("ping")["result"] == {}, "ping")
    expect(watch not in server.early, "it is over too early")
    short = server.call("watch", id=sid, seconds=1)
    expect(not short[0] and "it is still running" in short[1], short)
    open(gate, "w", encoding="utf-8").close()
    got = server.answer(watch)["result"]
    expect("COMPLETE" in got["content"][0]["text"], got)
    server.end()


def an_answer_is_told_apart_from_a_persons(box: DaemonBox):
    box.serve()
    os.mkdir(box.dir + "/tmp/" + "long" * 20)
    box.env["TMPDIR"] = box.dir + "/tmp/" + "long" * 20
    flow = box.file("ask.yaml", "name: ask\nmovements:\n  - name: which\n    ask: {question: 'Which one?'}\n"
                    "    rules: [{condition: when(true), next: COMPLETE}]\n")
    server = Server(box)
    sid = server.call("submit", workflow=flow, cwd=box.cwd)[2]["structuredContent"]["id"]
    box.wait_status(sid, "needs_input")
    failed, text, _ = server.call("answer", id=sid, text="--yes, the blue one")
    expect(not failed, text)
    expect("COMPLETE" in server.call("watch", id=sid, seconds=60)[1], "it goes on")
    answers = [r for r in records(box.log(sid)) if r["type"] == "answer"]
    told = json.dumps(answers)
    expect("a client of MCP" in told and "--yes, the blue one" in told, answers)
    expect(os.listdir(box.env["TMPDIR"]) == [], "no file stays")
    server.end()


def texts_are_judged_and_read(box):
    server = Server(box)
    failed, text, result = server.call("extract", text='Sure: {"step": 2,} there', schema={"type": "object", "required": ["step"]})
    expect(not failed and result["structuredContent"]["value"] == {"step": 2}, text)
    failed, text, _ = server.call("judge", text="It is done.\n\n[STEP:2]", rules=["broken", "done"], stages="phase1_tag", provider="script")
    expect(not failed and json.loads(text)["rule"] == 2, text)
    failed, text, _ = server.call("judge", text="x", rules=["--help", "b"], stages="phase1_tag", provider="script")
    expect(failed and "usage" not in text, "a rule is no option:", text)
    server.end()


def mistakes_are_told_and_end_nothing(box):
    server = Server(box)
    # Half of a character, as a client writes that cut a text by UTF-16 units; blank lines; one that is too long.
    server.raw(b'{"jsonrpc": "2.0", "id": "half", "method": "tools/call", "params": {"name": "extract", "arguments": '
               b'{"text": "\\ud83d {\\"step\\": 2}"}}}')
    got = server.read()
    expect(got["id"] == "half" and got["result"]["structuredContent"]["value"] == {"step": 2}, got)
    server.raw(b"\n  \n" + b'{"jsonrpc": "2.0", "id": 0, "method": "' + b"x" * (16 << 20) + b'"}')
    expect("16 MiB" in server.read()["error"]["message"], "a line that is too long")
    for raw, code in ((b"no json", -32700), (b"[]", -32600), (b'{"id": 1}', -32600), (b"\xff\xfe", -32700)):
        server.raw(raw)
        expect(server.read()["error"]["code"] == code, raw)
    expect(server.ask("no/method")["error"]["code"] == -32601, "method")
    expect(server.ask("tools/call", {"name": "rm"})["error"]["code"] == -32602, "tool")
    expect(server.ask("resources/read", {"uri": "file:///etc/passwd"})["error"]["code"] == -32602, "resource")
    expect(server.ask("resources/read", {"uri": "segue://session/../../x"})["error"]["code"] == -32602, "resource")
    for arguments, words in (({}, "needs id"), ({"id": 3}, "type string"), ({"id": "x", "wrong": 1}, "no argument"),
                             ({"id": "a\0b"}, "type string"), ({"id": "--help"}, "")):
        failed, text, _ = server.call("show", **arguments)
        expect(failed and words in text and "usage" not in text, arguments, text)
    server.send("notifications/cancelled", {"requestId": 1}, number=False)
    expect(server.ask("ping")["result"] == {}, "ping")
    server.end()


# ---- the real client -------------------------------------------------------------------------------


class Api(http.server.BaseHTTPRequestHandler):
    """A model that submits a workflow, watches it, and says what it saw."""
    protocol_version = "HTTP/1.1"
    seen = []

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"{}")
        tools = {t["name"] for t in body.get("tools") or []}
        results = [p for m in body.get("messages", []) if isinstance(m["content"], list)
                   for p in m["content"] if p.get("type") == "tool_result"]
        text = json.dumps([p["content"] for p in results])
        if "mcp__segue__submit" not in tools:
            self.say([{"type": "text", "text": "ok"}])
        elif not results:
            self.say([{"type": "tool_use", "id": "t1", "name": "mcp__segue__submit",
                       "input": {"workflow": self.server.flow, "task": "from a client"}}])
        elif len(results) == 1:
            sid = json.loads(results[0]["content"][0]["text"] if isinstance(results[0]["content"], list)
                             else results[0]["content"])["id"]
            self.say([{"type": "tool_use", "id": "t2", "name": "mcp__segue__watch", "input": {"id": sid, "seconds": 60}}])
        else:
            Api.seen.append(text)
            self.say([{"type": "text", "text": "The workflow ended: " + ("COMPLETE" if "COMPLETE" in text else text)}])

    def say(self, content):
        events = [("message_start", {"message": {"id": "m", "type": "message", "role": "assistant", "model": "mock", "content": [],
                                                 "stop_reason": None, "usage": {"input_tokens": 9, "output_tokens": 1}}})]
        for i, part in enumerate(content):
            start = {**part, "input": {}} if part["type"] == "tool_use" else {**part, "text": ""}
            delta = ({"type": "input_json_delta", "partial_json": json.dumps(part["input"])} if part["type"] == "tool_use"
                     else {"type": "text_delta", "text": part["text"]})
            events += [("content_block_start", {"index": i, "content_block": start}),
                       ("content_block_delta", {"index": i, "delta": delta}), ("content_block_stop", {"index": i})]
        reason = "tool_use" if content[-1]["type"] == "tool_use" else "end_turn"
        events += [("message_delta", {"delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}}), ("message_stop", {})]
        data = "".join(f"event: {k}\ndata: {json.dumps({'type': k, **v})}\n\n" for k, v in events).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def what_a_list_must_say_is_said():
    """2026-07-28: how long a result may be kept and by whom, and who gave it; nothing of it before."""
    with DaemonBox() as box:
        server = Server(box)
        for method, scope in (("server/discover", "private"), ("tools/list", "public"), ("resources/list", "private"),
                              ("resources/templates/list", "private")):
            got = server.ask(method, MODERN)["result"]
            expect(got["resultType"] == "complete" and got["cacheScope"] == scope and got["ttlMs"] >= 0, method, got)
            expect(got["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "segue", method, got)
        got = server.ask("tools/list")["result"]
        expect("ttlMs" not in got and "_meta" not in got, got)


def bare(box):
    """The environment that clients hand on."""
    return {"HOME": box.env["HOME"], "PATH": box.env["PATH"]}


def a_daemon_is_found_without_variables():
    with DaemonBox() as box:
        server = Server(box, bare(box))
        got = server.ask("tools/call", {"name": "list", "arguments": {}})["result"]
        expect("no session fits in " + box.env["HOME"] in got["content"][0]["text"], got)
        box.serve()
        note = box.env["HOME"] + "/.local/state/segue/daemon"
        expect(os.stat(note).st_mode & 0o77 == 0, os.stat(note))
        server, flow = Server(box, bare(box)), box.file("tiny.yaml", WORKFLOW)
        subprocess.run([SEGUE, "trust", flow], env=bare(box), cwd=box.cwd, capture_output=True, timeout=WAIT_S, check=True)
        got = server.ask("tools/call", {"name": "submit", "arguments": {"workflow": flow, "cwd": box.cwd}})["result"]
        expect(not got["isError"], got)
        got = server.ask("tools/call", {"name": "list", "arguments": {}})["result"]
        expect(json.loads(got["content"][0]["text"].splitlines()[0])["workflow"] == "tiny", got)
        os.chmod(note, 0o666)  # whoever can write it could lead elsewhere
        got = Server(box, bare(box)).ask("tools/call", {"name": "submit", "arguments": {"workflow": flow, "cwd": box.cwd}})["result"]
        expect(got["isError"] and "no daemon" in got["content"][0]["text"], got)


OFFICIAL = """
import { Client } from "%s";
import { StdioClientTransport } from "%s";
const client = new Client({ name: "t", version: "1" }%s);
await client.connect(new StdioClientTransport({ command: process.argv[2], args: ["mcp"], env: { HOME: process.env.HOME, PATH: process.env.PATH } }));
const { tools } = await client.listTools(), { resources } = await client.listResources();
const list = await client.callTool({ name: "list", arguments: {} });
console.log(JSON.stringify([client.getServerVersion().name, tools.length, resources.length, list.content.length]));
await client.close();
"""


def the_official_clients_are_served():
    """Versions 1 and 2, from SEGUE_REAL_CLIENTS_DIR/mcp: npm i @modelcontextprotocol/sdk@1 @modelcontextprotocol/client@2"""
    folder = os.environ.get("SEGUE_REAL_CLIENTS_DIR", "") + "/mcp"
    if os.environ.get("SEGUE_REAL_CLIENTS") != "1" or not os.path.isdir(folder + "/node_modules"):
        skip("SEGUE_REAL_CLIENTS is not 1, or SEGUE_REAL_CLIENTS_DIR has no mcp")
    for words in (("@modelcontextprotocol/sdk/client/index.js", "@modelcontextprotocol/sdk/client/stdio.js", ""),
                  ("@modelcontextprotocol/client", "@modelcontextprotocol/client/stdio", ', { versionNegotiation: { mode: "auto" } }')):
        with DaemonBox() as box:
            program = box.file("client.mjs", OFFICIAL % words)
            os.symlink(folder + "/node_modules", os.path.dirname(program) + "/node_modules")
            done = subprocess.run([shutil.which("node"), program, SEGUE], capture_output=True, cwd=box.cwd, timeout=WAIT_S,
                                  env=bare(box), check=False)
            expect(done.returncode == 0 and json.loads(done.stdout) == ["segue", 9, 0, 1], words, done.stdout, done.stderr)


def claude_drives_a_workflow():
    folder = os.environ.get("SEGUE_REAL_CLIENTS_DIR", "")
    claude = folder + "/claude/node_modules/.bin/claude"
    if os.environ.get("SEGUE_REAL_CLIENTS") != "1" or not os.path.exists(claude):
        skip("SEGUE_REAL_CLIENTS is not 1, or SEGUE_REAL_CLIENTS_DIR has no claude")
    with DaemonBox() as box:
        box.serve()
        api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
        api.flow = box.file("tiny.yaml", WORKFLOW)
        threading.Thread(target=api.serve_forever, daemon=True).start()
        config = box.file("mcp.json", json.dumps({"mcpServers": {"segue": {
            "command": SEGUE, "args": ["mcp"], "env": {k: v for k, v in box.env.items() if k != "PATH"}}}}))
        env = {**box.env, "PATH": os.path.dirname(shutil.which("node")) + ":" + box.env["PATH"],
               "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{api.server_port}", "ANTHROPIC_API_KEY": "x",
               "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "ENABLE_TOOL_SEARCH": "false"}
        done = subprocess.run([claude, "-p", "drive it", "--mcp-config", config, "--strict-mcp-config", "--allowedTools",
                               "mcp__segue__submit", "mcp__segue__watch"],
                              capture_output=True, env=env, cwd=box.cwd, timeout=WAIT_S, stdin=subprocess.DEVNULL, check=False)
        api.shutdown()
        expect(b"The workflow ended: COMPLETE" in done.stdout, done.stdout, done.stderr, Api.seen)


if __name__ == "__main__":
    sys.exit(main([both_eras_are_spoken, a_session_is_driven_by_it, a_watch_holds_up_nobody, an_answer_is_told_apart_from_a_persons, texts_are_judged_and_read,
                   mistakes_are_told_and_end_nothing, what_a_list_must_say_is_said,
                   a_daemon_is_found_without_variables, the_official_clients_are_served, claude_drives_a_workflow]))
