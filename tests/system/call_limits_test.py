#!/usr/bin/env python3
"""What a call may take of the machine: memory, processors, processes; and what is said where a
limit cannot be held.

usage: call_limits_test.py BUILD_DIR [CASE...]

Where control groups are handed over they hold it, else the limits that a process is born with."""
import json
import os
import sys

from support import SEGUE, WAIT_S, Box, expect, main, needs_others, of_type, records

NOBODY = 65534
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
FLOW = """name: l
movements:
  - name: a
    command: [%s, -c, %s]
    %s
    rules: [{condition: when(exit == 0), next: COMPLETE}, {condition: when(true), next: ABORT}]
"""
TAKE_MEMORY = "x = bytearray(400 << 20); print(len(x))"
FORK = ("import os, sys, time\nn = 0\ntry:\n  for n in range(200):\n    if os.fork() == 0: time.sleep(100); os._exit(0)\n"
        "except BlockingIOError: sys.exit(3)\n")
COUNT = "import os; print('processors', len(os.sched_getaffinity(0)))"


def run(box, code, keys, prefix=()):
    import subprocess
    path = box.file("w.yaml", FLOW % (json.dumps(PYTHON), json.dumps(code), keys))
    done = subprocess.run([*prefix, SEGUE, "run", "--trust", path, "--task", "t", "--logs", box.logs, "--cwd", box.cwd], cwd=box.cwd,
                          env=box.env, capture_output=True, timeout=WAIT_S, stdin=subprocess.DEVNULL)
    logs = box.log_paths()
    return done, records(logs[-1]) if logs else None


def told(log):
    return of_type(log, "call_start")[0]["sandbox"]


def memory_is_bounded():
    with Box() as box:
        _, log = run(box, TAKE_MEMORY, "limits: {memory: 1G}")
        expect(of_type(log, "session_end")[-1]["outcome"] == "complete", of_type(log, "call_end"))
        expect(told(log)["level"] == "off" and told(log)["limits"]["memory"] == 1 << 30, told(log))
        expect(told(log)["limits"]["by"] in ("cgroup", "rlimits"), told(log))
    with Box() as box:
        _, log = run(box, TAKE_MEMORY, "limits: {memory: 200M}")
        expect(of_type(log, "session_end")[-1]["outcome"] == "abort", of_type(log, "call_end"))


def processors_are_bounded(box):
    _, log = run(box, COUNT, "limits: {cpus: 1}")
    by = told(log)["limits"]["by"]
    text = of_type(log, "call_end")[0]["text"].strip()
    expect(by == "cgroup" or text == "processors 1", by, text)


def processes_are_bounded(box):
    root = os.geteuid() == 0
    if root:
        needs_others()
    for top, folders, files in os.walk(box.dir):
        for name in [top, *(os.path.join(top, n) for n in folders + files)]:
            os.chown(name, NOBODY, NOBODY) if root else None
    prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if root else []
    _, log = run(box, FORK, "limits: {pids: 40}", prefix)
    expect(of_type(log, "call_end")[0]["exit"] == 3, of_type(log, "call_end"))


def what_cannot_be_held_is_an_error_before_the_start(box):
    done, log = run(box, COUNT, "limits: {pids: 40}")
    if log is not None:  # by a control group, or as no root
        expect(told(log)["limits"]["by"] == "cgroup" or os.geteuid() != 0, told(log))
        return
    expect(b"limits: pids cannot be enforced here" in done.stderr and b"leave pids out" in done.stderr, done.stderr)


def wrong_words_are_said(box):
    for keys, says in (("limits: {memory: '4'}", b"must be an amount of 16M to 1024T"), ("limits: {memory: 4}", b"16M to 1024T"), ("limits: {memory: 1M}", b"16M to 1024T"),
                       ("limits: {memory: 4g}", b"such as 4G"), ("limits: {cpus: 0}", b"cpus"), ("limits: {pids: 1.5}", b"pids"),
                       ("limits: {memroy: 4G}", b"memory"), ("limits: 4G", b"limits"), ("limits: {pids: 4}", b"pids")):
        done, log = run(box, COUNT, keys)
        expect(done.returncode != 0 and log is None and says in done.stderr, keys, done.stderr)
    os.makedirs(box.dir + "/home/config/segue")
    for words, says in (({"memory": "1.5G"}, "16M to 1024T"), ({"cpu": 2}, 'did you mean "cpus"?'), ([1], "must be a map"),
                        ({"pids": 0}, "pids"), ({"zzzzzz": 0}, "use memory, cpus or pids")):
        box.file("home/config/segue/config.yaml", json.dumps({"sandbox": {"limits": words}}))
        box.segue("doctor", "--quick", out=says.encode())


def plan_tells_them(box):
    path = box.file("w.yaml", FLOW % (json.dumps(PYTHON), json.dumps(COUNT), "limits: {memory: 1G, cpus: 2}"))
    box.segue("plan", path, "--task", "t", out=b"memory 1024 MiB, cpus 2 by ")


if __name__ == "__main__":
    sys.exit(main([memory_is_bounded, processors_are_bounded, processes_are_bounded,
                   what_cannot_be_held_is_an_error_before_the_start, wrong_words_are_said, plan_tells_them]))
