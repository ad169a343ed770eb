#!/usr/bin/env python3
"""`segue doctor NAME --try` with real clients against a model on loopback, which knows the words, the file and
the verdict that are asked for: kimi, grok, droid and cn, for which this is the test of their profiles, and those of
real_clients_test.py. Only with SEGUE_REAL_CLIENTS=1, as that one, whose packages and settings it uses; the columns
may be named behind the build folder.
"""
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import real_clients_test as clients  # noqa: E402
import real_permissions_test as permissions  # noqa: E402
from support import Box, expect, needs, skip

KNOWS = r"""
function knows(n, ua, d, body) {
  const all = JSON.stringify(body), cwd = (/\/[\w.\/-]*\/segue-[\w.-]+\/segue-\w+/.exec(all) || ['/tmp'])[0];
  const word = /nothing else: (kestrel-\w+)/.exec(n.text);
  if (/Which word did you answer/.test(n.text)) return [{ k: 'text', t: (all.match(/kestrel-\w+/) || ['none'])[0] }];
  if (word) return [{ k: 'text', t: word[1] }];
  const line = /only line is (kestrel-\w+)/.exec(n.text);
  if (!line || n.tools.length < 3) return null;
  if (n.after > 0) return [{ k: 'text', t: 'It is done.' }];
  const t = n.tools.find(t => /^(Write|write|write_file|create|Create)$/.test(t.name));
  if (!t) return [{ k: 'tool', ...toolCall(n, ua, 'write', 'note.txt', line[1], '', cwd) }];
  const names = Object.keys((t.schema && t.schema.properties) || {}), args = {};
  args[names.find(x => /path/i.test(x)) || 'path'] = cwd + '/note.txt';
  args[names.find(x => /content|text/i.test(x)) || 'content'] = line[1] + '\n';
  return [{ k: 'tool', name: t.name, args }];
}
"""
PATCHES = permissions.PATCHES[1:3] + [
    ("function decide(n, ua, eff, cwd, body) {", KNOWS + "function decide(n, ua, eff, cwd, body) {"),
    ("if (J && /verdict-two/.test(raw)) N = 2;", "if (J && /12 of 12 passed/.test(raw)) N = 2;"),
    (" : 'mock'; return o;", " : k === 'rule' ? (new RegExp('^(?:\\\\[[^\\\\]\\\\n]+:)?' + N + '[.\\\\]] (.*)$', 'm').exec(asked) || [])[1] || 'none' : 'mock'; "
                             "return o;"),
    ("{ text = T(m.content); after = 0; } else if (m.role === 'tool')",
     "{ if (T(m.content).replace(/<system-reminder>[^]*?<.system-reminder>/g, '').trim()) { text = T(m.content); after = 0; } } else if (m.role === 'tool')"),
    ("  if (told) blocks =", "  const known = q.J ? (q.sch || !/JSON/.test(nn.text) ? null : [say(JSON.stringify({ reason: 'mock', step: q.N }))]) : knows(nn, ua, d, body);\n  if (known) blocks = known;\n  else if (told) blocks ="),
]
NEW = {name: clients.VERSIONS[name] for name in ("kimi", "grok", "droid", "cn")}


def setup_new(name, box, model, folder):
    """Environment, and settings for config.yaml, of a client that real_clients_test.py does not have."""
    home, url = box.dir + "/home", model.url("flow")
    env, settings = {}, {"program": f"{folder}/{name}/node_modules/.bin/{name}", "stall_ms": 60000, "judge_stall_ms": 60000}
    if name == "kimi":
        clients.put(home + "/.kimi-code/config.toml",
                    f'default_model = "mock"\n[providers.mock]\ntype = "openai"\nbase_url = "{url}/v1"\napi_key = "sk-invented"\n'
                    '[models.mock]\nprovider = "mock"\nmodel = "mock"\nmax_context_size = 100000\n')
    elif name == "grok":
        env = {"XAI_API_KEY": "xai-invented-0001"}
        clients.put(home + "/.grok/config.toml",
                    f'[models]\ndefault = "mock"\n[model.mock]\nmodel = "mock"\nbase_url = "{url}/v1"\nname = "mock"\nenv_key = "XAI_API_KEY"\n')
        settings["model"] = "mock"
    elif name == "droid":
        env = {"FACTORY_API_KEY": "fk-invented-0001"}
        clients.put(home + "/.factory/settings.json",
                    {"customModels": [{"model": "mock", "displayName": "mock", "baseUrl": url + "/v1", "apiKey": "sk-invented",
                                       "provider": "generic-chat-completion-api", "maxOutputTokens": 8000}]})
        settings["model"] = "custom:mock"
    else:
        clients.put(home + "/.continue/config.yaml",
                    {"name": "c", "version": "0.0.1", "schema": "v1",
                     "models": [{"name": "mock", "provider": "openai", "model": "mock", "apiBase": url + "/v1", "apiKey": "sk-invented",
                                 "roles": ["chat"], "capabilities": ["tool_use"]}]})
    return env, settings


def one(column, folder, scratch):
    name, _, transport = column.partition(" ")
    with Box() as box, permissions.Model(scratch) as model:
        if name in NEW:
            env, settings = setup_new(name, box, model, folder)
            box.config({"providers": {name: {**settings, **({"transport": transport} if transport else {})}},
                        "sandbox": clients.SANDBOX})
            env["PATH"] = f"{folder}/node22/node_modules/.bin:/usr/bin:/bin"
        else:
            env = clients.setup_client(column, box, model, "flow", folder)
        done = box.segue("doctor", name, "--try", "--json", env=env, timeout=600, status=None)
        told = {f["what"].partition(", ")[2]: f for f in json.loads(done.stdout)["findings"] if f["what"].startswith(name + ", ")}
        for what in ("an answer", "a conversation", "a tool", "a judge"):
            print(f"      {what}: {told.get(what, {}).get('state')}: {told.get(what, {}).get('text')} "
                  f"{told.get(what, {}).get('remedy') or ''}")
        judges = [r for r in model.requests() if "You decide where" in permissions.body_text(r)]
        size = max([len(permissions.body_text(r).encode()) for r in judges] or [0])
        print(f"      judge: {size / 1000:.1f} KB, {max([len(permissions.tool_names(r)) for r in judges] or [0])} tools, "
              f"{len(judges)} of {len(model.requests())} requests")
        if os.environ.get("SEGUE_REAL_SHOW"):
            print(done.stderr.decode()[-2000:])
            Path(os.environ["SEGUE_REAL_SHOW"]).write_text("\n".join(json.dumps(r) for r in model.requests()))
        wrong = [what for what, f in told.items() if f["state"] == "problem"]
        missing = [what for what in ("an answer", "a tool", "a judge") if what not in told]
        left = clients.processes_of(box)
        expect(not wrong and not missing and not left, wrong, missing, left, done.stderr[-500:])


def main():
    if os.environ.get("SEGUE_REAL_CLIENTS") != "1":
        skip("SEGUE_REAL_CLIENTS is not 1")
    if not os.path.exists(clients.SHARED + "/tools/mockflow.js"):
        skip("there is no model")
    needs("npm", "node")
    scratch, failures = tempfile.mkdtemp(prefix="segue-clients-"), 0
    folder = os.environ.get("SEGUE_REAL_CLIENTS_DIR", scratch)
    columns = list(NEW) + [c for c in clients.COLUMNS if not clients.DRIVEN.get(c)]  # adapters have versions of their own
    clients.PACKAGES.update(NEW)
    clients.install(folder)
    permissions.PATCHES = PATCHES
    try:
        for column in [w for w in sys.argv[2:] if w.split()[0] in columns] or columns:
            try:
                one(column, folder, scratch)
                print("ok   ", column, flush=True)
            except Exception as err:  # noqa: BLE001: the next client tells its own
                failures += 1
                print("FAIL ", column, str(err)[:1500], flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
