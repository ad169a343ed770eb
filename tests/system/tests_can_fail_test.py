#!/usr/bin/env python3
"""Every test can fail: with its first check made wrong (SEGUE_TEST_FAIL, see support/wrong.h and support.py)
it prints FAIL and exits with a status that is neither 0 nor 77 ("skipped").

A check whose failure is swallowed, a result that never becomes the exit status, a test without a check: each
of them shows here. Not asked: what is skipped on this machine, for it has no check to make wrong. A run asks one
test in ten; ./dev test --all asks all."""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

from support import BUILD, WAIT_S, Failed, main, sample


def tests():
    with tempfile.TemporaryDirectory() as folder:  # ctest keeps the log of a run where it lists tests
        with open(folder + "/CTestTestfile.cmake", "w", encoding="utf-8") as f:
            f.write(f'subdirs("{BUILD}/tests")\n')
        listed = subprocess.run(["ctest", "--test-dir", folder, "--show-only=json-v1"], capture_output=True,
                                check=True).stdout
    return [(test["name"], test["command"]) for test in json.loads(listed)["tests"]
            if "command" in test and os.path.basename(__file__) not in test["command"][0]]


def why_it_cannot_fail(command):
    """None: it can. "": it was skipped."""
    done = subprocess.run(command, env={**os.environ, "SEGUE_TEST_FAIL": "1", "SEGUE_SIM_SEEDS": "1"}, timeout=WAIT_S,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
    told = done.stdout + done.stderr
    if done.returncode == 77 or (done.returncode == 0 and "skipped" in told and "ok  " not in told):
        return ""
    if done.returncode == 0:
        return "ended with 0: " + told[-300:]
    if done.returncode < 0 or "FAIL" in told or "Test setup failed" in told:
        return None
    return f"ended with {done.returncode} and did not print FAIL: {told[-300:]}"


def a_wrong_check_is_told_by_each():
    known = tests()
    asked = sample.draw("tests that must fail", known, 10)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        told = list(pool.map(lambda test: why_it_cannot_fail(test[1]), asked))
    bad = [f"{name} {why}" for (name, _), why in zip(asked, told) if why]
    skipped = sum(why == "" for why in told)
    if bad or skipped == len(told):
        raise Failed(f"{len(bad)} of {len(told)}:\n" + "\n".join(bad))
    return f"{len(told) - skipped} of {len(known)} tests, {skipped} skipped"


if __name__ == "__main__":
    sys.exit(main([a_wrong_check_is_told_by_each]))
