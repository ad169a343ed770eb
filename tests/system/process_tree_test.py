#!/usr/bin/env python3
"""No process survives its call: trees that double-fork, call setsid and ignore TERM.

usage: process_tree_test.py BUILD_DIR     200 trees of 4 processes a case; SEGUE_LONG=1: 1000
Cases: the program exits and leaves its tree; the call is cancelled; the shims are SIGKILLed; the
segue side is SIGKILLed. A tree holds a shared lock on its marker file, so an exclusive lock, for
which we wait without polling, proves that it is gone; /proc is looked through in the end as well.
"""
import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

from support import Failed, at_once, expect

BUILD = os.path.abspath(sys.argv[1])
DRIVER = BUILD + "/helpers/process_driver"
FAKE = BUILD + "/helpers/fake_agent"
COUNT = 1000 if os.environ.get("SEGUE_LONG") == "1" else 200
AT_ONCE = 100  # trees alive at a time: 400 processes and 100 shims
GONE_S = 60  # an upper bound for a loaded machine, not a wait


def named_after(directory):
    """Every process with the directory in its command line: fakes and shims."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                cmdline = f.read()
        except OSError:
            continue
        if directory.encode() + b"/" in cmdline:
            found.append((int(pid), cmdline))
    return found


def start(directory, count, at_once, action):
    env = dict(os.environ, SEGUE_SHIM=BUILD + "/segue-shim")
    return subprocess.Popen([DRIVER, FAKE, directory, str(count), str(at_once), action],
                            stdout=subprocess.PIPE, env=env, text=True)


def end_of(driver):
    """The summary, the last line that a driver prints."""
    last = driver.stdout.read().splitlines()[-1]
    assert driver.wait() == 0, "driver failed"
    return json.loads(last)


def check(summary, count, why):
    want = {"ended": count, why: count, "survivors": 0, "adopted": 0, "unexpected": 0, "loop": 0}
    for key, value in want.items():
        expect(summary[key] == value, f"{key}: {summary[key]}, expected {value}: {summary}")


def leaves_tree(directory):
    check(end_of(start(directory, COUNT, AT_ONCE, "exit")), COUNT, "exited")


def cancelled(directory):
    check(end_of(start(directory, COUNT, AT_ONCE, "cancel")), COUNT, "cancelled")


def shims_killed(directory):
    driver = start(directory, COUNT, AT_ONCE, "wait")
    for _ in range(COUNT):
        word, pid = driver.stdout.readline().split()
        assert word == "shim"
        os.kill(int(pid), signal.SIGKILL)
    check(end_of(driver), COUNT, "shim_lost")


def segue_killed(directory):
    for first in range(0, COUNT, AT_ONCE):
        batch = os.path.join(directory, str(first))
        os.mkdir(batch)
        driver = start(batch, AT_ONCE, AT_ONCE, "wait")
        for _ in range(AT_ONCE):
            assert driver.stdout.readline().startswith("shim ")
        alive = named_after(batch)
        assert len(alive) >= 5 * AT_ONCE, f"only {len(alive)} processes before the kill"
        driver.kill()
        driver.wait()
        driver.stdout.close()
        for i in range(AT_ONCE):
            with open(os.path.join(batch, str(i)), "w") as marker:
                fcntl.flock(marker, fcntl.LOCK_EX)  # SIGALRM ends a wait without end
        until = time.monotonic() + GONE_S
        while named_after(batch) and time.monotonic() < until:
            pass  # the shims have said their last word and are exiting
        assert not named_after(batch), named_after(batch)


def main():
    failed = False
    for case in (leaves_tree, cancelled, shims_killed, segue_killed):
        signal.alarm(COUNT + GONE_S)
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="segue-tree-") as directory:
            try:
                case(directory)
                survivors = named_after(directory)
                expect(not survivors, f"survivors: {survivors}")
                print(f"ok    {case.__name__}: {COUNT} trees, 0 survivors, "
                      f"{time.monotonic() - begin:.1f} s", flush=True)
            except (AssertionError, Failed) as error:
                failed = True
                print(f"FAIL  {case.__name__}: {error}", flush=True)
                for pid, _ in named_after(directory):
                    os.kill(pid, signal.SIGKILL)
    return failed


if __name__ == "__main__":
    sys.exit(main())
