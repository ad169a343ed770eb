#!/usr/bin/env python3
"""Guards: the same tool call, the same failing output, the same movement, again and again."""
import json
import os
import sys
from pathlib import Path

from support import expect, main, of_type, records, verified

ONE = """
name: one
provider: %s
guards: {%s}
movements:
  - name: work
    instruction: Do the work.
    rules: [{condition: when(true), next: COMPLETE}]
"""
FIX = """
name: fix
provider: script
guards: {%s}
max_movements: 13
movements:
  - name: fix
    instruction: Mend it.
    rules: [{condition: when(true), next: test}]
  - name: test
    command: [sh, -c, 'echo "1 of 5 fail after $$ ms"; exit 1']
    rules:
      - {condition: when(exit == 0), next: COMPLETE}
      - {condition: when(true), next: fix}
"""
ROW = """
name: row
provider: script
guards: {%s}
max_movements: 6
movements:
  - name: work
    instruction: Do the work.
    rules: [{condition: when(true), next: work}]
"""


def run(box, text, replies, *more, status=1):
    done = box.segue("run", box.file("flow.yaml", text), "--cwd", box.cwd, "--logs", box.logs, "-s",
                     box.file("replies.json", json.dumps({"replies": replies})), *more, status=status)
    return box.log_paths()[-1], done.stdout.decode()


def turns(path):
    return len(of_type(records(path), "turn_start"))


def tool(argument, times=1):
    return [{"name": "Bash", "argument": argument}] * times


def notes(path):
    return [r["data"]["text"] for r in of_type(records(path), "call_event") if r["event"] == "note"]


def the_same_tool_call(box):
    thrice = {"text": "done", "times": 0, "tools": tool("make", 3), "delay_ms": 600000}
    path, _ = run(box, ONE % ("script", "same_tool: 3"), [thrice])
    end = of_type(records(path), "call_end")[0]
    expect(end["error"] == {"class": "looping", "message":
                            "it was ended: the same tool call 3 times in a row: Bash make"}, end)
    stop = records(path)[-1]
    expect(stop["reason"] == "provider_error" and stop["class"] == "looping", stop)
    done = box.segue("resume", path)
    expect(done.returncode == 1 and len(of_type(records(path), "call_start")) == 2, done.stdout)
    verified(box, path)
    between = tool("make", 2) + tool("make test") + tool("make", 2) + ["Bash", "Bash", "Bash"]
    path, _ = run(box, ONE % ("script", "same_tool: 3"), [{"text": "done", "tools": between}], status=0)
    long = [{"name": "Write", "argument": "x" * 5000 + end} for end in "abab"]
    path, _ = run(box, ONE % ("script", "same_tool: 2"), [{"text": "done", "tools": long}], status=0)
    for on, said in (("warn", 1), ("ignore", 0)):
        path, _ = run(box, ONE % ("script", f"same_tool: 2, on_same_tool: {on}"),
                      [thrice | {"delay_ms": 0}], status=0)
        expect(len(notes(path)) == said, on, notes(path))
        verified(box, path)


def an_agent_s_program_is_ended(box):
    """A program of its own: it would never end by itself."""
    agent = box.cwd + "/agent"
    Path(agent).write_text("#!/bin/sh\ncat >/dev/null\nwhile :; do\n"
            "printf '{\"event\":\"tool\",\"name\":\"Bash\",\"state\":\"start\",\"input\":{\"command\":\"ls\"}}\\n'\n"
            "printf '{\"event\":\"tool\",\"name\":\"Bash\",\"state\":\"end\",\"exit\":0,\"output\":\"a\"}\\n'\n"
            "sleep 0.01\ndone\n")
    os.chmod(agent, 0o755)
    os.makedirs(box.env["XDG_CONFIG_HOME"] + "/segue/providers", exist_ok=True)
    Path(box.env["XDG_CONFIG_HOME"] + "/segue/providers/mine.yaml").write_text(f"extends: jsonl\nprogram: {agent}\n")
    path, _ = run(box, ONE % ("mine", "same_tool: 8"), [])
    end = of_type(records(path), "call_end")[0]
    # What came in one piece with the eighth is counted too.
    times = int(end["error"]["message"].split(" times")[0].split()[-1])
    expect(end["error"]["class"] == "looping" and times >= 8, end)
    verified(box, path)


def the_same_failure(box):
    idle = {"text": "mended", "times": 0}
    path, _ = run(box, FIX % "same_failure: 3", [idle])
    stop = records(path)[-1]
    expect(stop["reason"] == "looping" and stop["message"] ==
           '"test" ended 3 times with exit 1 and the same output, and no file was changed meanwhile', stop)
    expect(turns(path) == 6, turns(path))
    done = box.segue("resume", path)  # counts anew
    expect(records(path)[-1]["reason"] == "looping" and turns(path) == 12, done.stdout)
    verified(box, path)
    writes = [{"text": "mended", "write": {"a": f"{i}\n"}} for i in range(7)]
    path, _ = run(box, FIX % "same_failure: 2", writes, status=5)  # something changes each time
    path, said = run(box, FIX % "same_failure: 2, on_same_failure: warn", [idle], status=5)
    told = [r["note"] for r in of_type(records(path), "turn_start") if "note" in r]
    expect(len(told) == 1 and "ended 2 times" in told[0] and "guard: " in said, told)
    verified(box, path)


def other_output_is_another_failure(box):
    text = (FIX % "same_failure: 2").replace('1 of 5 fail after $$ ms', 'at $(printf x >> ../n; cat ../n)')
    path, _ = run(box, text, [{"text": "mended", "times": 0}], status=5)
    expect(turns(path) == 13, turns(path))


def the_same_movement(box):
    idle = {"text": "x", "times": 0}
    path, _ = run(box, ROW % "same_movement: 3", [idle])
    stop = records(path)[-1]
    expect(stop["reason"] == "looping" and stop["message"] == '"work" was entered 3 times in a row', stop)
    expect(turns(path) == 3, turns(path))
    box.segue("resume", path)
    expect(turns(path) == 6 and records(path)[-1]["reason"] == "max_movements", records(path)[-1])
    verified(box, path)
    path, said = run(box, ROW % "same_movement: 3, on_same_movement: warn", [idle], status=5)
    expect(said.count("guard: ") == 1, said)
    text = (ROW % "same_movement: 2").replace("    instruction", "    guards: {on_same_movement: ignore}\n    instruction")
    path, _ = run(box, text, [idle], status=5)


def mistakes_are_told(box):
    for guards, word in (("same_tol: 3", "did you mean same_tool"), ("same_tool: 1", "from 2 to 1000"),
                         ("on_same_tool: halt", "stop, warn or ignore")):
        box.segue("lint", box.file("flow.yaml", ONE % ("script", guards)), status=2, err=word)


sys.exit(main([the_same_tool_call, an_agent_s_program_is_ended, the_same_failure,
               other_output_is_another_failure, the_same_movement, mistakes_are_told]))
