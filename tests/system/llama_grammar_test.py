#!/usr/bin/env python3
"""The real llama.cpp reads every grammar that the converter makes, and what it samples validates.

Runs if SEGUE_REAL_LLAMA names a folder with node-llama-cpp in its node_modules, or if SEGUE_LONG=1:
then npm fetches it (700 MB) into a folder that is gone afterwards. Needs node, python3 and the maker of
the tiny model, make_tiny_gguf.py, in $SEGUE_SHARED/tools or ../shared/tools.

usage: llama_grammar_test.py BUILD_DIR
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from support import needs, skip

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VERSION = "3.22.1"
SAMPLE_S = 300
TOKEN_MS_MAX = 2000  # the slowest token; a stack explosion takes far more


def llama_folder(scratch):
    folder = os.environ.get("SEGUE_REAL_LLAMA")
    if folder:
        return folder
    if os.environ.get("SEGUE_LONG") != "1":
        skip("SEGUE_REAL_LLAMA or SEGUE_LONG=1 is not set")
    needs("npm")
    Path(os.path.join(scratch, "package.json")).write_text('{"private": true}\n')
    done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts",
                           "node-llama-cpp@" + VERSION], cwd=scratch, capture_output=True)
    if done.returncode:
        skip("npm could not fetch node-llama-cpp")
    return scratch


def read_lines(path):
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


def check(build, samples):
    """The validator's verdict on each (grammar, text); None where it has none."""
    lines = ""
    for grammar, text in samples:
        schema = grammar["schema"]
        if "draft" in grammar and isinstance(schema, dict):
            schema = dict(schema, **{"$schema": grammar["draft"]})
        lines += '{"schema":%s,"data":%s}\n' % (json.dumps(schema), text.replace("\n", " "))
    done = subprocess.run([build + "/segue", "check", "--formats", "--batch", "-"],
                          input=lines.encode("utf-8", "replace"), capture_output=True)
    return [json.loads(line)["valid"] for line in done.stdout.decode().splitlines()]


def main():
    build = os.path.abspath(sys.argv[1])
    shared = os.environ.get("SEGUE_SHARED", ROOT + "/../shared")
    maker = shared + "/tools/make_tiny_gguf.py"
    scratch = tempfile.mkdtemp(prefix="segue-llama-")
    try:
        needs("node")
        folder = llama_folder(scratch)
        if not os.path.exists(maker):
            skip("there is no " + maker)
        model, grammars = scratch + "/tiny.gguf", scratch + "/grammars.ndjson"
        subprocess.run([sys.executable, maker, model], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([build + "/tests/gbnf_cases_test", "--dump", grammars], check=True,
                       stdout=subprocess.DEVNULL)
        script = ROOT + "/tests/system/helpers/llama_grammars.mjs"
        every = "1" if os.environ.get("SEGUE_LONG") == "1" else "5"
        done = subprocess.run(["node", script, model, grammars, every, str(SAMPLE_S)], cwd=folder,
                              capture_output=True)
        results = [json.loads(line) for line in done.stdout.decode().splitlines()]
        lines = read_lines(grammars)
    finally:
        shutil.rmtree(scratch)
    unread = [r["name"] + ": " + r.get("error", "") for r in results if not r["parses"]]
    sampled = [(g, r) for g, r in zip(lines, results) if "text" in r]
    whole = [(g, r["text"]) for g, r in sampled if r["stop"] == "eogToken"]
    verdicts = check(build, whole)
    wrong = [(g["name"], text) for (g, text), valid in zip(whole, verdicts)
             if valid is False and not g["listed"]]
    listed = sum(1 for (g, _), valid in zip(whole, verdicts) if valid is False and g["listed"])
    errors = [r["name"] + ": " + r["error"] for r in results if r["parses"] and "error" in r]
    slow = max(sampled, key=lambda s: s[1]["slowest"]) if sampled else None
    print("grammars %d, read %d; sampled %d, ended %d; valid %d, not valid %d (%d more through listed "
          "keywords), without a verdict %d" %
          (len(lines), sum(r["parses"] for r in results), len(sampled), len(whole),
           sum(v is True for v in verdicts), len(wrong), listed,
           len(whole) - sum(v is not None for v in verdicts)))
    if slow:
        print("slowest token: %d ms (%s)" % (slow[1]["slowest"], slow[0]["name"]))
    for what in unread + errors + ["%s: %s" % pair for pair in wrong]:
        print("  " + what[:300])
    ok = (len(results) == len(lines) and not unread and not wrong and not errors and
          len(verdicts) == len(whole) and slow and slow[1]["slowest"] < TOKEN_MS_MAX)
    if not ok and len(results) != len(lines):
        print(done.stderr.decode()[-1000:])
    print("ok" if ok else "FAILED")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
