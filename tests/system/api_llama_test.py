#!/usr/bin/env python3
"""A real llama.cpp model, tiny and untrained, behind HTTP: judgments under our grammar, under its own
schema mode, and by Ollama's format; a length stop; a value that the grammar allows and the schema does
not, mended by a reask or passed over by the chain.

Runs if SEGUE_REAL_LLAMA names a folder with node-llama-cpp in its node_modules, or if SEGUE_LONG=1: then
npm fetches it (700 MB) into a folder that is gone afterwards. Needs node and ../shared/tools."""
import json
import os
import shutil
import socket
import subprocess
import sys

from api_calls import SCHEMA, drive
from support import WAIT_S, Box, expect, main, need_build, needs, skip

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOLS = os.environ.get("SEGUE_SHARED", ROOT + "/../shared") + "/tools"
VERSION = "3.22.1"


def llama_folder(box):
    folder = os.environ.get("SEGUE_REAL_LLAMA")
    if folder:
        return folder
    if os.environ.get("SEGUE_LONG") != "1":
        skip("SEGUE_REAL_LLAMA or SEGUE_LONG=1 is not set")
    needs("npm")
    box.file("package.json", '{"private": true}\n')
    done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "node-llama-cpp@" + VERSION],
                          cwd=box.dir, capture_output=True)
    if done.returncode:
        skip("npm could not fetch node-llama-cpp")
    return box.dir


class Model:
    def __enter__(self):
        self.box = Box()
        folder = llama_folder(self.box)
        gguf = self.box.dir + "/tiny.gguf"
        subprocess.run([sys.executable, TOOLS + "/make_tiny_gguf.py", gguf], check=True, stdout=subprocess.DEVNULL)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen(["node", TOOLS + "/tinylm.mjs", "--model", gguf, "--port", str(self.port)],
                                        cwd=folder, stdout=subprocess.PIPE)
        expect(b"pid" in self.process.stdout.readline(), "the model's server did not start")
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.wait()
        self.box.__exit__(*exc)


def judge(model, box, settings, *words, stages="structured_output"):
    """segue judge on the model; exit status, records of its log."""
    box.config({"providers": {"tiny": settings}})
    shutil.rmtree(box.logs, ignore_errors=True)
    done = box.segue("judge", "--rule", "the work is done", "--rule", "something is missing", "--stages", stages,
                     "--provider", "tiny", "--model", "tiny", "--logs", box.logs, *words, "--name", "work", stdin=b"I did all of it.\n\n[WORK:1]\n", timeout=WAIT_S)
    with open(f"{box.logs}/{next(n for n in os.listdir(box.logs) if n.endswith('.ndjson'))}") as f:
        return done.returncode, [json.loads(line) for line in f]


def case_enforced(model: Model):
    """Whatever way the backend is held to the schema, what comes back fits it or is said not to."""
    settings = {
        "gbnf": {"type": "llamacpp", "base_url": model.url, "schema_mode": "grammar"},
        "json_schema": {"type": "llamacpp", "base_url": model.url, "schema_mode": "native"},
        "completion": {"type": "llamacpp", "base_url": model.url, "schema_mode": "grammar", "endpoint": "completion"},
        "raw_schema": {"type": "llamacpp", "base_url": model.url, "schema_mode": "native", "endpoint": "completion"},
        "format": {"type": "ollama", "base_url": model.url, "schema_mode": "native"},
        "chat": {"type": "openai-chat", "base_url": model.url + "/v1", "schema_mode": "native"},
    }
    calls = [{"id": f"{n}.{seed}", "provider": n, "model": "tiny", "schema": SCHEMA, "timeout_ms": 240000,
              "options": {"seed": seed, "max_tokens": 200, "temperature": 0.8}} for n in settings for seed in (1, 2, 3)]
    kept = {}
    for name, got in drive(settings, calls).items():
        kind = name.split(".")[0]
        expect(got["class"] in ("ok", "length"), name, got)
        if got["class"] == "ok":
            value = got["structured"]
            expect(set(value) == {"reason", "step"} and isinstance(value["reason"], str), name, got)
            kept[kind] = kept.get(kind, 0) + (value["step"] in (0, 1, 2))
    expect(set(kept) == set(settings), "every way gave at least one answer:", kept)
    for kind in ("gbnf", "completion"):
        expect(kept[kind] >= 1, "our own grammar keeps the enum", kept)
    return json.dumps(kept)


def case_length(model: Model):
    got = drive({"tiny": {"type": "llamacpp", "base_url": model.url}},
                [{"id": "l", "provider": "tiny", "schema": SCHEMA, "options": {"max_tokens": 3, "seed": 1}}])["l"]
    expect(got["class"] == "length" and "max_tokens" in got["message"], got)
    expect("structured" not in got, "half a value is none", got)


def case_judgment():
    """The whole way: the judge on the model, its choice in the log."""
    with Model() as model, Box() as box:
        seen = set()
        for mode, kind in (("grammar", "llamacpp"), ("native", "llamacpp"), ("native", "ollama")):
            status, log = judge(model, box, {"type": kind, "base_url": model.url, "schema_mode": mode}, "-O", "seed=3", "-O", "max_tokens=300")
            end = [r for r in log if r["type"] == "call_end" and r["call"] == 2][0]
            expect(status in (0, 4), status, log[-1])
            expect(end["enforced"] == mode and end["structured"]["step"] in (0, 1, 2), end)
            stage = [r for r in log if r["type"] == "stage"][0]
            expect(stage["outcome"] in ("matched", "no_match"), stage)
            seen.add((kind, mode))
        expect(len(seen) == 3, seen)


def case_wrong_value():
    """The backend's grammar allows what the schema does not (a number out of its bounds): the value comes back as
    it is, for a reask; the constraint was at work, so no lower rung is tried."""
    schema = {"type": "object", "properties": {"step": {"type": "integer", "multipleOf": 7, "maximum": 21, "minimum": 7}},
              "required": ["step"], "additionalProperties": False}
    with Model() as model:
        got = drive({"tiny": {"type": "ollama", "base_url": model.url}},
                    [{"id": s, "provider": "tiny", "model": "tiny", "schema": schema, "options": {"seed": s, "max_tokens": 60}, "after": True}
                     for s in range(5)])
        wrong = [g for g in got.values() if g["class"] == "ok" and g.get("structured", {}).get("step") not in (7, 14, 21)]
        expect(wrong, "the model kept to all of it", got)
        for one in wrong:
            expect(one["enforced"] == "native" and one["notes"] == [], one)


def case_chain_falls_past():
    """Any JSON is not the judge's JSON: the reasks are made, then the next stage decides."""
    with Model() as model, Box() as box:
        status, log = judge(model, box, {"type": "llamacpp", "base_url": model.url, "schema_mode": "json"}, "--max-reasks", "1",
                            "-O", "max_tokens=60", stages="structured_output,phase1_tag")
        stages = [(r["stage"], r["outcome"]) for r in log if r["type"] == "stage"]
        expect(stages[0][0] == "structured_output" and stages[0][1] != "matched", stages)
        calls = [r for r in log if r["type"] == "call_start" and r["purpose"] in ("judge", "reask")]
        expect(len(calls) >= 2, "a reask was made", [c["purpose"] for c in calls])
        expect(stages[-1] == ("phase1_tag", "matched") and status == 0, status, stages)


need_build()
needs("node")
if not os.path.exists(TOOLS + "/tinylm.mjs"):
    skip("no tinylm.mjs here")
with Box() as probe:
    if os.environ.get("SEGUE_REAL_LLAMA") is None and os.environ.get("SEGUE_LONG") != "1":
        skip("SEGUE_REAL_LLAMA or SEGUE_LONG=1 is not set")
sys.exit(main([case_enforced, case_length, case_judgment, case_wrong_value, case_chain_falls_past]))
