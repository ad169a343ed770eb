#!/usr/bin/env python3
"""PATH entries that are empty or relative: a program that lies in the working directory, where an
agent or a repository can put one, is neither found nor run."""
import json
import os
import sys

from support import Box, expect, main, of_type, records

PATHS = (":/usr/bin:/bin", "/usr/bin:/bin:", "/usr/bin::/bin", ".:/usr/bin:/bin", "tools:/usr/bin:/bin")


def trap(box, name):
    """A program in the working directory and in tools/ below it, which leaves a note when it runs."""
    os.makedirs(box.cwd + "/tools", exist_ok=True)
    for path in (f"{box.cwd}/{name}", f"{box.cwd}/tools/{name}"):
        with open(path, "w") as f:
            f.write(f"#!/bin/sh\ntouch {box.dir}/trapped\necho 1.0.0\n")
        os.chmod(path, 0o755)


def a_command_of_the_workflow():
    for path in PATHS:
        with Box() as box:
            trap(box, "mend-it")
            w = box.file("w.yaml", "name: x\nmovements:\n  - name: a\n    command: [mend-it]\n    rules:\n"
                         "      - {condition: when(exit == 0), next: COMPLETE}\n")
            done = box.segue("run", w, "--logs", box.logs, "--cwd", box.cwd, env={"PATH": path})
            said = (done.stdout + done.stderr).decode()
            expect(not os.path.exists(box.dir + "/trapped"), path, "ran the program", said)
            expect("the program mend-it is not in PATH" in said, path, said)


def an_agent_and_providers():
    """What `providers` finds is what `run` would start."""
    for path in PATHS:
        with Box() as box:
            trap(box, "claude")
            listed = box.segue("providers", "--json", env={"PATH": path})
            rows = json.loads(listed.stdout)
            text = listed.stdout.decode()
            expect(box.cwd not in text and "tools/claude" not in text and '"./claude' not in text,
                   path, "providers found", text)
            expect(rows, listed.stderr)
            w = box.file("w.yaml", "name: x\nmovements:\n  - name: a\n    provider: claude\n"
                         "    instruction: go\n    rules:\n      - {condition: done, next: COMPLETE}\n")
            done = box.segue("run", w, "--task", "t", "--logs", box.logs, "--cwd", box.cwd,
                             env={"PATH": path})
            said = (done.stdout + done.stderr).decode()
            expect(not os.path.exists(box.dir + "/trapped"), path, "ran the program", said)
            expect(done.returncode != 0, path, said)


def what_a_program_gets():
    """Nor does a program that is run get such entries: it would look there for its own."""
    for path in PATHS:
        with Box() as box:
            w = box.file("w.yaml", "name: x\nmovements:\n  - name: a\n    command: [sh, -c, 'echo \"$PATH\"']\n"
                         "    rules:\n      - {condition: when(exit == 0), next: COMPLETE}\n")
            box.segue("run", w, "--logs", box.logs, "--cwd", box.cwd, env={"PATH": path}, status=0)
            end = of_type(records(box.log_paths()[-1]), "call_end")[0]
            expect(end["text"].strip() == "/usr/bin:/bin", path, end["text"])


if __name__ == "__main__":
    sys.exit(main([a_command_of_the_workflow, an_agent_and_providers, what_a_program_gets]))
