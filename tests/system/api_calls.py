"""Calls of model APIs through helpers/api_driver, for the tests that speak with servers."""
import json
import os
import subprocess

from support import BUILD, WAIT_S, expect

SCHEMA = {"type": "object", "properties": {"reason": {"type": "string"}, "step": {"type": "integer", "enum": [0, 1, 2]}},
          "required": ["reason", "step"], "additionalProperties": False}


def driven(settings, calls, env=None):
    """Runs the calls; their results, and the processor time of all of them in microseconds."""
    lines = [json.dumps(settings)] + [json.dumps({"prompt": "Judge.", "model": "m", **c}) for c in calls]
    done = subprocess.run([BUILD + "/helpers/api_driver"], input="\n".join(lines).encode() + b"\n", capture_output=True,
                          env={**os.environ, "SEGUE_SHIM": BUILD + "/segue-shim", **(env or {})}, timeout=WAIT_S)
    expect(done.returncode == 0, "api_driver", done.returncode, done.stderr.decode(errors="replace")[-3000:], done.stdout[-500:])
    out = [json.loads(line) for line in done.stdout.splitlines()]
    expect(len(out) == len(calls) + 1, "every call ends once")
    expect(out[-1]["open"] == out[-1]["descriptors"] == 0, "left open:", out[-1])
    return out[:-1], out[-1]["cpu_us"]


def drive(settings, calls, env=None):
    """Runs the calls; the results by id."""
    return {o["id"]: o for o in driven(settings, calls, env)[0]}
