#!/usr/bin/env python3
"""SIGINT and SIGTERM while a script waits, a command runs and a judge is asked.

usage: signals_test.py BUILD_DIR [CASE...]
A first signal stops cleanly: exit 130, session_stop with its reason in the log, and `segue resume`
ends with the verdicts of an undisturbed run. A second one ends at once; that log resumes too.
"""
import json
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support import (WAIT_S, Box, Failed, WANTED, all_gone, at_once, end_of, every_way, expect, main, of_type,
                     read_until, records, sound, verified)

REASONS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}

# Where a signal comes: the record that is waited for. A slow call is then open for seconds.
MOMENTS = {
    "while a command runs": lambda r: r["type"] == "call_start" and r["provider"] == "command",
    "while the last command runs": lambda r: r["type"] == "call_start" and r["turn"] == 10,
    "during a script's delay": lambda r: r["type"] == "call_start" and r["purpose"] == "execute"
                                         and r["turn"] == 3,
    "while the judge is asked": lambda r: r["type"] == "call_start" and r["purpose"] == "judge"
                                          and r["turn"] == 4,
    "while a reask is answered": lambda r: r["type"] == "call_start" and r["purpose"] == "reask",
    "during the wait after an error": lambda r: r["type"] == "call_end" and "retry_in_ms" in r,
    "at the first record": lambda r: r["type"] == "session_start",
    "after a judgment": lambda r: r["type"] == "judgment" and r["turn"] == 4,
}


def slow(box):
    return every_way(box, 250)


def stopped(box, number, moment):
    process = box.start("run", *slow(box), "--json")
    expect(read_until(process, MOMENTS[moment]) is not None, "the moment never came")
    begin = time.monotonic()
    process.send_signal(number)
    status, out, err = end_of(process)
    at_once(begin, 5, "stopping")
    expect(status == 130, "status", status, err)
    path = box.begun()[0]
    stop = records(path)[-1]
    expect(stop["type"] == "session_stop", "the last record is", stop)
    expect(stop["reason"] == REASONS[number] and stop["resumable"] is True, stop)
    expect(json.loads(out.splitlines()[-1]) == stop, "--json did not print the stop")
    all_gone(box)
    verified(box, path)
    return path


def completes(box, path, repeats=1):
    box.segue("resume", path, status=0)
    sound(records(path), WANTED, repeats)
    verified(box, path)
    all_gone(box)


def at_moment(numbered):
    number, moment = numbered
    with Box() as box:
        try:
            completes(box, stopped(box, (signal.SIGINT, signal.SIGTERM)[number % 2], moment))
        except Exception as error:
            raise Failed(f"{moment}: {error}") from error


def each_moment():
    with ThreadPoolExecutor(len(MOMENTS)) as pool:  # they wait more than they work
        list(pool.map(at_moment, enumerate(MOMENTS)))
    return f"{len(MOMENTS)} moments"


def twice_stopped(box):
    path = stopped(box, signal.SIGINT, "during a script's delay")
    process = box.start("resume", path, "--json")
    expect(read_until(process, MOMENTS["while the judge is asked"]) is not None, "no judge")
    process.send_signal(signal.SIGTERM)
    status, _, err = end_of(process)
    expect(status == 130, status, err)
    log = records(path)
    expect([r["reason"] for r in of_type(log, "session_stop")] == ["interrupted", "terminated"],
           log)
    completes(box, path, repeats=2)


def a_second_signal_ends_at_once(box):
    """The command ignores TERM for as long as it is let: the first signal waits for it."""
    ready = box.dir + "/ready"
    workflow = box.file("stubborn.yaml", f"""
name: stubborn
initial_movement: wait
movements:
  - name: wait
    command: [sh, -c, 'trap "" TERM; echo $$ >> "$0"; : > "$1"; while :; do sleep 0.1; done',
              {json.dumps(box.pids)}, {json.dumps(ready)}]
    rules: [{{condition: when(exit == 0), next: COMPLETE}}, {{condition: when(exit != 0), next: ABORT}}]
""")
    process = box.start("run", workflow, "--cwd", box.cwd, "--logs", box.logs, "--json")
    expect(read_until(process, lambda r: r["type"] == "call_start") is not None, "no call")
    until = time.monotonic() + WAIT_S
    while not os.path.exists(ready):
        expect(time.monotonic() < until, "the command did not start")
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    expect(read_until(process, lambda r: r["type"] == "session_stop") is not None, "no stop")
    expect(process.poll() is None, "it did not wait for its command")
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    status, _, err = end_of(process)
    expect(status == 130, status, err)
    at_once(begin, 1.5, "the second signal took")
    all_gone(box)
    verified(box, box.begun()[0])


def a_finished_session_is_left_alone(box):
    expect(box.segue("run", *every_way(box)).returncode == 0, "run")
    path = box.begun()[0]
    before = Path(path).read_bytes()
    box.segue("resume", path, status=0, out=b"COMPLETE")
    expect(Path(path).read_bytes() == before, "resume wrote into a finished log")


def quit_cancels_for_good(box):
    process = box.start("run", *slow(box), "--json")
    expect(read_until(process, MOMENTS["while a command runs"]) is not None, "it never came")
    process.send_signal(signal.SIGQUIT)
    status, _, err = end_of(process)
    expect(status == 6, "status", status, err)
    path = box.begun()[0]
    end = records(path)[-1]
    expect(end["type"] == "session_end" and end["outcome"] == "cancelled", end)
    all_gone(box)
    verified(box, path)
    box.segue("resume", path, status=6)


def a_hangup():
    """The terminal is gone: a clean stop, unless the program was started to outlive it (nohup)."""
    with Box() as box:
        process = box.start("run", *slow(box), "--json")
        expect(read_until(process, MOMENTS["while a command runs"]) is not None, "it never came")
        process.send_signal(signal.SIGHUP)
        status, _, err = end_of(process)
        expect(status == 130, "status", status, err)
        expect(records(box.begun()[0])[-1]["type"] == "session_stop", "no stop")
    with Box() as box:
        process = box.start("run", *every_way(box), "--json",
                            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        expect(read_until(process, MOMENTS["at the first record"]) is not None, "it never began")
        process.send_signal(signal.SIGHUP)
        status, _, err = end_of(process)
        expect(status == 0, "with nohup: status", status, err)


def as_soon_as_there_is_a_log():
    """From the first record on a signal is a stop; before, nothing was begun."""
    for _ in range(20):
        with Box() as box:
            process = box.start("run", *slow(box))
            path = None
            while path is None or not os.path.getsize(path):
                expect(process.poll() is None, "it ended", process.returncode)
                path = (box.begun() or [None])[0]
            process.send_signal(signal.SIGTERM)
            status, _, err = end_of(process)
            expect(status == 130, "status", status, err)
            expect(records(path)[-1]["type"] == "session_stop", "the last record is", records(path)[-1])


def a_reader_that_does_not_read():
    """Standard output is a full pipe: the signal is acted on all the same."""
    for number in (signal.SIGINT, signal.SIGTERM):
        with Box() as box:
            workflow = box.file("endless.json", json.dumps({
                "name": "endless", "provider": "script", "max_movements": 5000,
                "movements": [{"name": "go", "instruction": "go on and on",
                               "rules": [{"condition": "done", "next": "go"}]}]}))
            scenario = box.file("s.json", json.dumps({"replies": [{"text": "x" * 900, "times": 0,
                                                                       "delay_ms": 5}]}))
            process = box.start("run", workflow, "--scenario", scenario, "--cwd", box.cwd,
                                "--logs", box.logs, "--json")
            size, until = -1, time.monotonic() + WAIT_S
            while size <= 0 or size != os.path.getsize(box.begun()[0]):
                expect(time.monotonic() < until, "its log goes on growing")
                size = os.path.getsize(box.begun()[0]) if box.begun() else 0
                time.sleep(0.2)
            expect(process.poll() is None, "it has ended")
            begin = time.monotonic()
            process.send_signal(number)
            expect(process.wait(WAIT_S) == 130, "status", process.returncode)
            at_once(begin, 10, "its stop")
            expect(records(box.begun()[0])[-1]["type"] == "session_stop", "no stop")
            verified(box, box.begun()[0])


def answers_without_a_pause():
    """Scripted answers that take no time leave a moment for signals all the same."""
    for number in (signal.SIGINT, signal.SIGTERM):
        with Box() as box:
            workflow = box.file("endless.json", json.dumps({
                "name": "endless", "provider": "script", "max_movements": "infinite",
                "movements": [{"name": "go", "instruction": "go on and on",
                               "rules": [{"condition": "more", "next": "go"},
                                         {"condition": "done", "next": "COMPLETE"}]}]}))
            scenario = box.file("s.json", json.dumps({"replies": [{"text": "[GO:1]", "times": 0}]}))
            process = box.start("run", workflow, "--scenario", scenario, "--cwd", box.cwd,
                                "--logs", box.logs, "--quiet")
            while not box.begun() or os.path.getsize(box.begun()[0]) < 100_000:
                expect(process.poll() is None, "it ended", process.returncode)
            process.send_signal(number)
            status, _, err = end_of(process)
            expect(status == 130, "status", status, err)
            expect(records(box.begun()[0])[-1]["type"] == "session_stop", "no stop")
            verified(box, box.begun()[0])


if __name__ == "__main__":
    sys.exit(main([each_moment, twice_stopped, a_second_signal_ends_at_once,
                   a_finished_session_is_left_alone, quit_cancels_for_good, a_hangup, as_soon_as_there_is_a_log,
                   a_reader_that_does_not_read, answers_without_a_pause]))
