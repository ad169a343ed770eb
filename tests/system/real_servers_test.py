#!/usr/bin/env python3
"""A judge has no tools and readonly changes nothing, also where the user's own settings name an MCP server: real
clients, without a sandbox, against a model that calls the server's tool wherever it is offered; the tool writes a
file. Only with SEGUE_REAL_CLIENTS=1, as real_clients_test.py, whose packages and settings it uses; the columns may be
named behind the build folder.
"""
import concurrent.futures
import json
import os
import shutil
import sys
import tempfile
import time

import real_clients_test as clients  # noqa: E402
import real_permissions_test as permissions  # noqa: E402
import real_try_test as tries  # noqa: E402
from support import Box, expect, needs, of_type, skip

SERVER = r"""
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    what, answer = m.get("method"), {}
    if what == "initialize":
        answer = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "probe", "version": "1"}}
    elif what == "tools/list":
        answer = {"tools": [{"name": "poke", "description": "Pokes.", "inputSchema": {"type": "object", "properties": {}}}]}
    elif what == "tools/call":
        open(sys.argv[1], "w").close()
        answer = {"content": [{"type": "text", "text": "poked"}]}
    elif what != "ping":
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "error": {"code": -32601, "message": "unknown"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": answer}), flush=True)
"""
PATCHES = permissions.PATCHES[1:4] + [p for p in tries.PATCHES if "system-reminder" in p[1]] + [
    ("function decide(n, ua, eff, cwd, body) {", "const poked = {};\nfunction decide(n, ua, eff, cwd, body) {"),
    ("  if (told) blocks =", "  const poke = nn.tools.find(t => /poke/.test(t.name));\n"
                             "  if (poke && nn.after === 0 && !poked[q.J]) { poked[q.J] = true; blocks = [{ k: 'tool', name: poke.name, args: {} }]; }\n"
                             "  else if (told) blocks ="),
]
# These have no switch, which plan and doctor say: the judge sees the tool, and is denied it.
SEEN = {"kimi"}


def add_server(column, box):
    """Names the server in the client's settings."""
    home, name = box.dir + "/home", column.split()[0]
    argv = [box.file("server.py", SERVER), box.dir + "/poked"]
    one = {"command": sys.executable, "args": argv}

    def merge(path, more):
        old = json.load(open(path)) if os.path.exists(path) else {}
        clients.put(path, {**old, **more})

    if name == "claude":
        merge(home + "/.claude.json", {"mcpServers": {"probe": {"type": "stdio", **one}}})
    elif name in ("codex", "grok"):
        with open(f"{home}/.{name}/config.toml", "a") as f:
            f.write(f"\n[mcp_servers.probe]\ncommand = {json.dumps(one['command'])}\nargs = {json.dumps(argv)}\n")
    elif name == "opencode":
        merge(box.dir + "/opencode.json", {"mcp": {"probe": {"type": "local", "command": [sys.executable, *argv], "enabled": True}}})
    elif name in ("gemini", "qwen"):
        merge(f"{home}/.{name}/settings.json", {"mcpServers": {"probe": one}})
    elif name == "copilot":
        merge(home + "/.copilot/mcp-config.json", {"mcpServers": {"probe": {"type": "local", "tools": ["*"], **one}}})
    elif name == "pi":
        merge(home + "/.pi/agent/mcp.json", {"mcpServers": {"probe": one}})
    elif name == "kimi":
        merge(home + "/.kimi-code/mcp.json", {"mcpServers": {"probe": one}})
    elif name == "droid":
        merge(home + "/.factory/mcp.json", {"mcpServers": {"probe": {"type": "stdio", "disabled": False, **one}}})
    elif name == "cn":
        merge(home + "/.continue/config.yaml", {"mcpServers": [{"name": "probe", **one}]})


def one(column, folder, scratch):
    name = column.split()[0]
    with Box() as box, permissions.Model(scratch) as model:
        if name in tries.NEW:
            env, settings = tries.setup_new(name, box, model, folder)
            env["PATH"] = f"{folder}/node22/node_modules/.bin:/usr/bin:/bin"
            box.config({"providers": {name: settings}, "sandbox": {"level": "off"}})
        else:
            env, settings = clients.setup_client(column, box, model, "flow", folder), {}
        add_server(column, box)
        clients.segue_run(box, env, name, timeout=300, workflow=permissions.WORKFLOW % ("readonly", "      Say something."))
        log = clients.outcome(box)
        requests = model.requests()
        judges = [r for r in requests if "You decide where" in permissions.body_text(r)]
        offered = [any("poke" in t.get("name", t.get("function", {}).get("name", "")) for t in permissions.tool_names(r)) for r in requests]
        told = {"judge": any(o for o, r in zip(offered, requests) if r in judges),
                "work": any(o for o, r in zip(offered, requests) if r not in judges),
                "poked": os.path.exists(box.dir + "/poked")}
        size = max([len(permissions.body_text(r).encode()) for r in judges] or [0])
        ends = [clients.class_of(e) for e in of_type(log, "call_end")]
        print(f"      {column}: offered to the judge {told['judge']}, to readonly work {told['work']}, called {told['poked']}; "
              f"judge {size / 1000:.1f} KB; {ends}", flush=True)
        expect(judges, "no judge was asked", ends, log[-1])
        expect(told["judge"] == (column in SEEN) and not told["poked"], told)
        expect(set(ends) == {"ok"}, [e["error"] for e in of_type(log, "call_end") if "error" in e])
        left = clients.processes_of(box)
        expect(left == [], "processes are left:", left)


def main():
    if os.environ.get("SEGUE_REAL_CLIENTS") != "1":
        skip("SEGUE_REAL_CLIENTS is not 1")
    if not os.path.exists(clients.SHARED + "/tools/mockflow.js"):
        skip("there is no model")
    needs("npm", "node")
    scratch, failures = tempfile.mkdtemp(prefix="segue-clients-"), 0
    folder = os.environ.get("SEGUE_REAL_CLIENTS_DIR", scratch)
    columns = clients.COLUMNS + list(tries.NEW)
    clients.PACKAGES.update(tries.NEW)
    clients.install(folder)
    permissions.PATCHES = PATCHES

    def tried(column):
        begun = time.time()
        try:
            one(column, folder, scratch)
            return f"ok    {column} ({time.time() - begun:.0f} s)"
        except Exception as err:  # noqa: BLE001: the next client tells its own
            return f"FAIL  {column} {str(err)[:1000]}"

    try:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for said in pool.map(tried, [w for w in sys.argv[2:] if w in columns] or columns):
                print(said, flush=True)
                failures += said.startswith("FAIL")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
