#!/usr/bin/env python3
"""No room for threads, processes or descriptors: a session goes on without threads, or says what it cannot
start. Never an abort."""
import json
import os
import shutil
import subprocess
import sys

from support import (SEGUE, WAIT_S, Box, every_way, expect, main, needs_others, of_type, records, skip, verdicts,
                     verified)
from support import WANTED


def no_threads_at_all(box):
    """Blobs, folders of commands, slow disks: all of it on the loop."""
    box.segue("run", *every_way(box), env={"SEGUE_FAULT": "fail:thread:1+"}, status=0)
    path = box.log_paths()[-1]
    expect(verdicts(records(path)) == WANTED, verdicts(records(path)))
    verified(box, path)


def a_few_threads(box):
    box.segue("run", *every_way(box), env={"SEGUE_FAULT": "fail:thread:3+"}, status=0)
    verified(box, box.log_paths()[-1])


def a_limit_on_processes():
    """Only another user can be limited, so only root can try it."""
    setpriv, prlimit = shutil.which("setpriv"), shutil.which("prlimit")
    if os.geteuid() != 0 or setpriv is None or prlimit is None:
        skip("needs root, setpriv and prlimit")
    needs_others()
    other = 59999  # nobody else's processes count for it
    with Box() as box:
        workflow = box.file("w.yaml", "name: x\nmovements:\n  - name: a\n    command: [echo, hello]\n"
                            "    rules:\n      - {condition: when(exit == 0), next: COMPLETE}\n"
                            "      - {condition: when(exit != 0), next: ABORT}\n")
        for path, folders, files in os.walk(box.dir):
            for name in [path, *(f"{path}/{f}" for f in folders + files)]:
                os.chown(name, other, other)
        env = {**box.env, "HOME": box.dir + "/home", "SEGUE_SHIM": box.env["SEGUE_SHIM"]}
        words = [setpriv, f"--reuid={other}", f"--regid={other}", "--clear-groups"]
        done = subprocess.run([*words, prlimit, "--nproc=0", SEGUE, "run", "--trust", workflow, "--logs", box.logs,
                               "--cwd", box.cwd], env=env, cwd=box.cwd, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=WAIT_S)
        expect(done.returncode == 1, done.returncode, done.stdout, done.stderr)
        stop = of_type(records(box.log_paths()[-1]), "session_stop")
        expect(len(stop) == 1 and stop[0]["resumable"], json.dumps(stop))


def few_descriptors():
    """However few there are: an exit status and words."""
    env = {"ASAN_OPTIONS": "detect_leaks=0"}  # needs some itself
    with Box() as box:
        words = every_way(box)
        for n in range(4, 24):  # below, the loader does not find its libraries
            for command in (["run", *words], ["doctor"]):
                done = box.segue(*command, prefix=["sh", "-c", f'ulimit -n {n}; exec "$@"', "sh"], env=env)
                expect(0 <= done.returncode < 100, n, command[0], done.returncode, done.stderr)
                expect(done.returncode == 0 or done.stderr or done.stdout, n, command[0], "said nothing")


if __name__ == "__main__":
    sys.exit(main([no_threads_at_all, a_few_threads, a_limit_on_processes, few_descriptors]))
