#!/usr/bin/env python3
"""What segue sends to model APIs is what their official SDKs send for the same job: path, key, version and each
member of the body. Skipped where npm is not reachable; the packages (tests/system/clients.txt) stay in the build
folder."""
import json
import os
import subprocess
import sys
from contextlib import closing

import real_clients_test as clients  # noqa: E402
from api_calls import SCHEMA, drive
from fake_api import FakeApi, dialect_of, stream
from support import BUILD, expect, main, needs, skip

# Each takes its base URL and the job: model, prompt, schema.
SDKS = {
    "anthropic": """import SDK from '@anthropic-ai/sdk';
      const s = await new SDK({ baseURL: url, apiKey: null, authToken: key, maxRetries: 0 }).messages.create({ model, max_tokens: 32000, stream: true,
        messages: [{ role: 'user', content: prompt }], output_config: { effort: 'low', format: { type: 'json_schema', schema } } });
      for await (const x of s) ;""",
    "openai": """import SDK from 'openai';
      const s = await new SDK({ baseURL: url + '/v1', apiKey: key, maxRetries: 0 }).responses.create({ model, stream: true,
        input: [{ role: 'user', content: prompt }], reasoning: { effort: 'low' },
        text: { format: { type: 'json_schema', name: 'answer', strict: true, schema } } });
      for await (const x of s) ;""",
    "openai-chat": """import SDK from 'openai';
      const s = await new SDK({ baseURL: url + '/v1', apiKey: key, maxRetries: 0 }).chat.completions.create({ model, stream: true,
        messages: [{ role: 'user', content: prompt }], reasoning_effort: 'low', stream_options: { include_usage: true },
        response_format: { type: 'json_schema', json_schema: { name: 'answer', strict: true, schema } } });
      for await (const x of s) ;""",
    "gemini": """import { GoogleGenAI } from '@google/genai';
      const s = await new GoogleGenAI({ apiKey: key, apiVersion: 'v1beta', httpOptions: { baseUrl: url } }).models.generateContentStream({ model,
        contents: prompt, config: { responseMimeType: 'application/json', responseJsonSchema: schema, thinkingConfig: { thinkingLevel: 'LOW' } } });
      for await (const x of s) ;""",
    "ollama": """import { Ollama } from 'ollama';
      const s = await new Ollama({ host: url }).chat({ model, messages: [{ role: 'user', content: prompt }], format: schema, think: 'low',
        stream: true });
      for await (const x of s) ;""",
}
PACKAGE = {"anthropic": "sdk-anthropic", "openai": "sdk-openai", "openai-chat": "sdk-openai", "gemini": "sdk-genai", "ollama": "sdk-ollama"}
HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "anthropic-version", "content-type")
KEY = "sk-invented-0001"
# Where segue says more or says it otherwise, and why.
MORE = {
    ("openai", "prompt_cache_key"): "which calls belong together",
    ("openai-chat", "prompt_cache_key"): "which calls belong together",
    ("openai", "store"): "nothing is kept there",
    ("gemini", "generationConfig.responseJsonSchema.propertyOrdering"): "a model writes the reason first",
    ("ollama", "options"): "the room of the window",
}


def folder_of(package):
    folder = os.environ.get("SEGUE_REAL_CLIENTS_DIR", BUILD + "/sdks")
    prefix = f"{folder}/{package}"
    os.makedirs(folder, exist_ok=True)
    if not os.path.isdir(prefix + "/node_modules"):
        name = clients.VERSIONS[package]
        done = subprocess.run(["npm", "i", "--prefix", prefix, "--no-audit", "--no-fund", "--fetch-retries=0", name], capture_output=True)
        if done.returncode != 0 or not os.path.isdir(prefix + "/node_modules"):
            skip(f"{name} cannot be installed from npm")
    return prefix


def flat(value, at=""):
    """Each member by its path. Texts of one part are texts, as the SDKs' own types say."""
    if isinstance(value, dict) and value:
        return {k: v for name, one in value.items() for k, v in flat(one, f"{at}.{name}" if at else name).items()}
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) and value[0].get("type") in ("text", "input_text"):
        return {at: value[0]["text"]}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return {k: v for i, one in enumerate(value) for k, v in flat(one, f"{at}[{i}]").items()}
    return {at: value.lower() if at.endswith("thinkingLevel") else value}


def asked(server, scenario):
    found = [r for r in server.requests if r["scenario"] == scenario and r["method"] == "POST"]
    expect(found, "no request of", scenario)
    return found[0]


def same(dialect):
    with closing(FakeApi(lambda scenario, request: stream(dialect_of(request["path"]), '{"reason": "r", "step": 2}'))) as server:
        script = folder_of(PACKAGE[dialect]) + "/job.mjs"
        with open(script, "w") as f:
            f.write(f"const url = {json.dumps(server.url('sdk'))}, key = {json.dumps(KEY)}, model = 'm', prompt = 'Judge.', "
                    f"schema = {json.dumps(SCHEMA)};\n" + SDKS[dialect])
        done = subprocess.run(["node", script], capture_output=True, timeout=60)
        theirs = asked(server, "sdk")
        base = server.url("segue") + ("/v1" if dialect.startswith("openai") else "")
        settings = {"type": dialect, "base_url": base}
        if dialect != "ollama":
            settings["key_env"] = "A_KEY"
        call = {"id": "x", "provider": "p", "schema": SCHEMA, "options": {"effort": "low"}}
        got = drive({"p": settings}, [call], env={"A_KEY": KEY})["x"]
        ours = asked(server, "segue")
        expect(got["class"] == "ok", got)
        expect(theirs["path"].replace("/s/sdk", "").replace("/sdk", "") == ours["path"].replace("/segue", ""), theirs["path"], ours["path"],
               done.stderr[-500:])
        for name in HEADERS:
            mine, own = ours["headers"].get(name), theirs["headers"].get(name)
            expect(mine == own or name == "content-type", dialect, name, "segue", mine, "SDK", own)
        mine, own = flat(ours["body"]), flat(theirs["body"])
        for name in sorted({*mine, *own}):
            known = any(d == dialect and (name == n or name.startswith(n + ".")) for d, n in MORE)
            expect(mine.get(name) == own.get(name) or known and name not in own, dialect, name, "segue", mine.get(name), "SDK", own.get(name))


def case_of(dialect):
    def case():
        same(dialect)
    case.__name__ = dialect.replace("-", "_") + "_sends_the_same"
    return case


needs("npm", "node")
sys.exit(main([case_of(dialect) for dialect in SDKS]))
