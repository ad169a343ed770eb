#!/usr/bin/env python3
"""What readonly, edit and full mean in every column, what a judge's call carries, and which tokens are
told: real clients, run by segue against a model on loopback that asks for a read, a write, a write
outside the working directory, a program that `run` names and one that it does not. Only with
SEGUE_REAL_CLIENTS=1, as real_clients_test.py, whose packages and settings it uses; skipped where the
model (tools/mockflow.js of $SEGUE_SHARED or ../shared) or npm are missing. SEGUE_UPDATE=1 writes the
results to tests/system/real-permissions.md: those of the columns that are named behind the build folder
(default: all).
"""
import concurrent.futures
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import real_clients_test as clients  # noqa: E402
from support import Box, expect, needs, of_type, skip

clients.SANDBOX["level"] = "off"  # what the clients themselves hold is looked at here
TABLE = clients.ROOT + "/tests/system/real-permissions.md"
STEPS = """
let stepsDone = 0;
function steps(n) {
  return (n.text.match(/^DO (write|read|run): .*$/gm) || []).map(x => /^DO (\\w+): (.*)$/.exec(x).slice(1));
}
function stepCall(n, ua, kind, what) {
  const tool = re => n.tools.find(t => re.test(t.name));
  const cut = what.lastIndexOf('/'), dir = what.slice(0, cut), file = what.slice(cut + 1);
  const shell = x => toolCall(n, ua, 'bash', '', '', x, dir);
  const place = t => Object.keys((t.schema && t.schema.properties) || {}).find(k => /path/i.test(k));
  if (kind === 'run') return shell(what);
  const t = tool(kind === 'write' ? /^(Write|write|write_file|create)$/ : /^(Read|read|read_file|view)$/);
  if (!t && tool(/^exec_command$/)) return shell((kind === 'write' ? 'printf x > ' : 'cat ') + what);
  if (!t) return kind === 'write' ? toolCall(n, ua, 'write', file, 'x', '', dir) : shell('cat ' + what);
  const args = { [place(t) || 'path']: what };
  if (kind === 'write') args[t.name === 'create' ? 'file_text' : 'content'] = 'x';
  return { name: t.name, args };
}
"""
PATCHES = [
    ("function decide(n, ua, eff, cwd, body) {", STEPS + "function decide(n, ua, eff, cwd, body) {"),
    ("J = /You decide where a workflow goes next|Weigh an agent",
     "J = /You decide where|Weigh the report|Weigh an agent"),
    ("(/the movement \"", "(/(?:the|after its) movement \""),
    ("if (!d || req.method !== 'POST')",  # what an agent is told after a no is no new task
     "for (const k of ['messages', 'contents', 'input']) if (body && Array.isArray(body[k])) body[k] = "
     "body[k].filter(m => !/^.{0,60}That was not allowed/.test(JSON.stringify(m.content || m.parts || '')));\n"
     "  if (!d || req.method !== 'POST')"),
    ("  else if (main && q.where === 'implement' && nn.after === 0 &&",
     "  else if (main && !q.J && nn.tools.length > 0 && steps(nn).length > stepsDone) blocks = [say('Step. '), { k: 'tool', "
     "...stepCall(nn, ua, ...steps(nn)[stepsDone++]) }];\n"
     "  else if (main && q.where === 'implement' && nn.after === 0 &&"),
]
WORKFLOW = """name: one
movements:
  - name: work
    permission: %s
    instruction: |
%s
    rules:
      - {condition: it is done, next: COMPLETE}
      - {condition: it is not done, next: ABORT}
    judge: {stages: [structured_output]}
"""
SEEN = ("reads", "writes", "writes outside", "runs what is named", "runs another")
# What a column does else than the word says; its profile says so, too (holds).
ELSE = {
    "codex": {"edit": {"runs another": True}},
    "codex native": {"edit": {"runs another": True}},
    "codex acp": {"edit": {"runs another": True, "writes outside": True}},
    "qwen": {"edit": {"writes outside": True}},
    "qwen acp": {"edit": {"writes outside": True}},
    "pi": {"edit": {"writes outside": True, "runs what is named": False}},
}


class Model:
    def __init__(self, folder):
        text = Path(clients.SHARED + "/tools/mockflow.js").read_text()
        for old, new in PATCHES:
            expect(old in text, "the model changed:", old)
            text = text.replace(old, new)
        handle, path = tempfile.mkstemp(suffix=".js", dir=folder)
        with os.fdopen(handle, "w") as f:
            f.write(text)
        self.log, self.port = path + ".log", clients.free_port()
        open(self.log, "w").close()
        self.process = subprocess.Popen(["node", path, str(self.port), self.log],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.time() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                expect(time.time() < deadline, "the model does not start")
                time.sleep(0.05)

    def url(self, scenario):
        return f"http://127.0.0.1:{self.port}/s/{scenario}"

    def requests(self):
        with open(self.log) as f:
            return [r for r in map(json.loads, f) if "body" in r]

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.wait()


def body_text(request):
    return json.dumps(request["body"], separators=(",", ":"), ensure_ascii=False)


def tool_names(request):
    body = request["body"]
    return [n for t in body.get("tools") or []
            for n in (t.get("functionDeclarations") if "functionDeclarations" in t else [t])]


def is_anthropic(request):
    return "max_tokens" in request["body"] and "system" in request["body"]


def tokens_cell(log, requests):
    """Whether the tokens of all calls are those of all requests that the API has seen, titles and memories too:
    each tells 1011, with a cache's 1211."""
    usages = [end.get("usage") or {} for end in of_type(log, "call_end")]
    told = {u["told"] for u in usages if "told" in u}
    if told:
        return "none" if told == {"none"} else "partial"
    got = sum(u.get("input", 0) for u in usages)
    right = sum(1211 if is_anthropic(r) else 1011 for r in requests)
    return "right" if got == right else f"WRONG: {got} of {right} in {len(requests)} requests"


# Dollars of a request at the client's own prices, where it knows some: 11 tokens read, 1000 from a cache, 200 to
# one, 7 written.
PRICES = {"claude": (11 * 4 + 1000 * 0.2 + 200 * 5 + 7 * 20) / 1e6, "pi": (11 * 2 + 1000 * 0.5 + 7 * 10) / 1e6,
          "opencode": (11 * 2 + 1000 * 0.5 + 7 * 10) / 1e6}


def cost_cell(column, log, requests):
    usages = [end.get("usage") or {} for end in of_type(log, "call_end")]
    if not all("cost_usd" in u for u in usages) or any("cost_from" in u for u in usages):
        return "none"
    if any("told" in u for u in usages):
        return "partial"
    got, right = sum(u["cost_usd"] for u in usages), PRICES.get(column.split()[0], 0) * len(requests)
    return "right" if abs(got - right) < 1e-9 else f"WRONG: ${got:.6f} of ${right:.6f} in {len(requests)} requests"


def one(column, word, folder, scratch):
    name = column.split()[0]
    with Box() as box, Model(scratch) as model:
        env = clients.setup_client(column, box, model, "flow", folder)
        env["IS_SANDBOX"] = "1"  # claude refuses full to root elsewhere
        for program in ("named", "another"):
            path = f"{box.cwd}/{program}.sh"
            Path(path).write_text(f"#!/bin/sh\ntouch ran-{program}\n")
            os.chmod(path, 0o755)
        Path(box.cwd + "/note.txt").write_text("secret-word-7\n")
        do = [f"DO read: {box.cwd}/note.txt", f"DO write: {box.cwd}/out.txt", "DO run: ./named.sh",
              "DO run: ./another.sh", f"DO write: {box.dir}/outside.txt"]
        said = word + ("\n    run: [./named.sh]" if word == "edit" else "")
        clients.segue_run(box, env, name, timeout=300,
                          workflow=WORKFLOW % (said, "\n".join("      " + x for x in do)))
        log = clients.outcome(box)
        end, judged = clients.first_end(log, "execute"), of_type(log, "judgment")
        expect(clients.class_of(end) == "ok", "it did not end well:", end)
        requests = model.requests()
        judges = [r for r in requests if "You decide where" in body_text(r)]
        work = [r for r in requests if r not in judges]
        most = max(len(tool_names(r)) for r in work)  # titles and memories are not its work
        work = [r for r in work if len(tool_names(r)) > 0.6 * most]
        there = os.path.exists
        seen = dict(zip(SEEN, ("secret-word-7" in body_text(work[-1]), there(box.cwd + "/out.txt"),
                               there(box.dir + "/outside.txt"), there(box.cwd + "/ran-named"),
                               there(box.cwd + "/ran-another"))))
        cells = {word: ", ".join(k for k in SEEN if seen[k]) or "nothing"}
        wanted = {"reads": True, "writes": word != "readonly", "writes outside": word == "full",
                  "runs what is named": word != "readonly", "runs another": word == "full"}
        wanted.update(ELSE.get(column, {}).get(word, {}))
        wrong = [k for k in SEEN if seen[k] != wanted[k] and word != "full"]
        if word == "readonly":
            expect(judges and judged and judged[0].get("rule") == 1, "no verdict", judged)
            size = sum(len(body_text(r).encode()) for r in judges) / 1000
            cells["judge"] = f"{size:.1f} KB, {max(len(tool_names(r)) for r in judges)} tools"
            cells["tokens"], cells["cost"] = tokens_cell(log, requests), cost_cell(column, log, requests)
            wrong += [k for k in ("tokens", "cost") if "WRONG" in cells[k]]
        return cells, wrong


ROWS = ("readonly", "edit", "full", "judge", "tokens", "cost")


def column_of(column, folder, scratch):
    cells, failed = {}, 0
    for word in ("readonly", "edit", "full"):
        begun = time.time()
        try:
            got, wrong = one(column, word, folder, scratch)
        except Exception as e:  # noqa: BLE001: every case is told
            got, wrong = {word: "FAILED: " + str(e).replace("\n", " ")[:300]}, ["end"]
        cells.update(got)
        failed += bool(wrong)
        print(f"{'FAIL' if wrong else 'ok  '} {column} {word}: {got} {wrong or ''} "
              f"({time.time() - begun:.0f} s)", flush=True)
    return cells, failed


def write_table(rows):
    with open(TABLE, "w") as f:
        f.write("# What the words mean in every column\n\n"
                "Written by `SEGUE_REAL_CLIENTS=1 SEGUE_UPDATE=1 tests/system/real_permissions_test.py "
                "BUILD`. The model asked each client for the same five things: read a file, write one, "
                "write one outside the working directory, run the program that `run` names, run "
                "another. The cell is what happened. What was refused was told to the model, and every "
                "call ended well. `judge` is what one judgment sends, in bytes, and the tools that it "
                "offers; `tokens` and `cost` are `right` when those of all calls are the sum of all "
                "requests that the API has seen, `partial` when the log says that some are missing, "
                "`none` when the client tells none.\n\n"
                "| | " + " | ".join(ROWS) + " |\n|---|" + "---|" * len(ROWS) + "\n")
        for column, cells in rows.items():
            f.write(f"| {column} | " + " | ".join(cells.get(r, "") for r in ROWS) + " |\n")


def read_table():
    rows = {}
    if os.path.exists(TABLE):
        with open(TABLE) as f:
            for line in f:
                cells = [c.strip() for c in line.split("|")[1:-1]]
                if len(cells) == len(ROWS) + 1 and cells[0] in clients.COLUMNS:
                    rows[cells[0]] = dict(zip(ROWS, cells[1:]))
    return rows


def main():
    if os.environ.get("SEGUE_REAL_CLIENTS") != "1":
        skip("SEGUE_REAL_CLIENTS is not 1")
    if not os.path.exists(clients.SHARED + "/tools/mockflow.js"):
        skip("there is no model")
    needs("npm", "node")
    scratch = tempfile.mkdtemp(prefix="segue-clients-")
    folder = os.environ.get("SEGUE_REAL_CLIENTS_DIR", scratch)
    columns = [w for w in sys.argv[2:] if w in clients.COLUMNS] or clients.COLUMNS
    clients.install(folder)
    rows, failures = read_table(), 0
    try:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            done = pool.map(lambda c: column_of(c, folder, scratch), columns)
            for column, (cells, failed) in zip(columns, done):
                rows[column] = cells
                if os.environ.get("SEGUE_UPDATE") == "1":
                    write_table({c: rows[c] for c in clients.COLUMNS if c in rows})
                failures += failed
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
