#!/usr/bin/env python3
"""System tests of run, resume, ls, show, verify, serve and its window once more, with a shared store in place of the
folder of logs (on_store.py): one case in five, or all with ./dev test --all. What cannot hold there is named, with
the reason."""
import concurrent.futures
import os
import subprocess
import sys

from support import BUILD, SEGUE, expect, main, need_build, sample

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE) + "/support")
import postgres  # noqa: E402

EDITS = "it edits, removes or links log files"
LEASE = "it resumes at once what was killed: in a store that waits for the lease"
FOLDERS = "it is about folders of logs"
LEFT_OUT = {
    "signals": {},
    "steer": {"a_fork_in_the_daemon": FOLDERS},
    "guards": {},
    "compose": {},
    "budget": {"a_crash_forgets_nothing": LEASE},
    "loops": {"exits_at_every_point": LEASE},
    "ls_cli": {"a_changed_log_is_named": EDITS, "a_log_changed_in_its_middle_is_named": EDITS,
               "where_it_looked_is_said": FOLDERS, "a_killed_start_is_listed_and_removed": EDITS,
               "a_daemon_lists_a_killed_start": EDITS, "an_emptied_log_is_not_a_killed_start": EDITS},
    "folder": {"one_that_was_killed_holds_nothing": LEASE, "a_resume_waits_too": LEASE,
               "a_resume_that_knows_does_not_wait": LEASE},
    "questions": {"what_was_remembered_is_looked_at_again": EDITS},
    "global_rules": {},
    "web_live": {"its_log_is_gone": EDITS},
}


def cases(name):
    with open(f"{HERE}/{name}_test.py", encoding="utf-8") as f:
        text = f.read()
    listed = text[text.rindex("main(["):].split("[", 1)[1].split("]")[0]
    return [word.strip() for word in listed.replace("\n", " ").split(",") if word.strip()]


def run_one(server, name):
    left_out = LEFT_OUT[name]
    known = cases(name)
    gone = [case for case in left_out if case not in known]
    if gone:
        return [f"{name} has no case {case}" for case in gone], 0
    wanted = sample.draw(f"cases of {name} on a shared store", [case for case in known if case not in left_out], 5)
    env = {**os.environ, "SEGUE_TEST_SERVER": server.dir}
    done = subprocess.run([f"{HERE}/{name}_test.py", BUILD, *wanted], env=env, capture_output=True, text=True, check=False)
    if done.returncode == 77:  # it needs what is not here, such as a browser
        return [], 0
    lines = done.stdout.splitlines()
    failed = [f"{name}: {line}" for line in lines if line.startswith("FAIL")]
    passed = sum(line.startswith("ok") for line in lines)
    if not failed and (done.returncode != 0 or passed != len(wanted)):
        failed = [f"{name}: {passed} of {len(wanted)} passed, status {done.returncode}: {done.stdout[-800:]} {done.stderr[-800:]}"]
    return failed, passed


def the_suite_holds_on_a_shared_store():
    with postgres.Server(options=("max_connections=200",)) as server:
        server.sql("CREATE DATABASE ready")
        made = subprocess.run([SEGUE, "store", "init", "--store", server.url("ready")], capture_output=True, check=False)
        expect(made.returncode == 0, made.stderr)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            told = list(pool.map(lambda name: run_one(server, name), LEFT_OUT))
    failed = [line for lines, _ in told for line in lines]
    expect(not failed, "\n".join(failed))
    return f"{sum(n for _, n in told)} cases of {len(told)} tests, {sum(map(len, LEFT_OUT.values()))} left out"


if __name__ == "__main__":
    need_build()
    postgres.need()
    sys.exit(main([the_suite_holds_on_a_shared_store]))
