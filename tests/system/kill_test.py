#!/usr/bin/env python3
"""SIGKILL at random moments (25; 100 with ./dev test --all), and before and after each append, sync, spawn and entry of the
ledger; in half of them segue's shims are killed with it. Then `segue resume`, which may be killed
again.

usage: kill_test.py BUILD_DIR [CASE...]
SEGUE_SEED=N repeats a sequence, SEGUE_KILLS=N changes the number of runs (./dev torture: 2000). The
random moments are spread over the duration of an undisturbed run. Where shims live, no command that
segue started is alive after the kill; where they were killed too, none is after the resume. In the
end: the verdicts of an undisturbed run, nothing judged twice, `segue verify` says ok.
"""
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from support import (Box, Failed, WANTED, all_gone, chance, every_way, expect, main, processes_of, records, sample,
                     sound, verified)

SEED = chance()
KILLS = int(os.environ.get("SEGUE_KILLS") or (100 if sample.ALL else 25))
AT_ONCE = 6
DELAY_MS = 15
MOST_KILLS = 4  # of one session
MOST_STEPS = 1000  # more would mean that the count never ends


def seconds_undisturbed(_):
    with Box() as box:
        words = every_way(box, DELAY_MS)
        begin = time.monotonic()
        box.segue("run", *words, status=0)
        return time.monotonic() - begin


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(word) for word in f.read().split()]
    except OSError:
        return []


def kill_with_shims(process):
    """Both at once: neither sees the other die."""
    os.kill(process.pid, signal.SIGSTOP)
    for pid in (*children_of(process.pid), process.pid):
        os.kill(pid, signal.SIGKILL)


def killed(process, after_s, both):
    """Kills it at that moment; False when it had ended by itself before."""
    try:
        out, err = process.communicate(timeout=after_s)
        expect(process.returncode == 0, "status", process.returncode,
               (out + err).decode(errors="replace"))
        return False
    except subprocess.TimeoutExpired:
        if both:
            kill_with_shims(process)
        else:
            process.kill()
        reap(process)
        return process.returncode != 0


def reap(process):
    """Its pipes may be held by a program that lives on."""
    for pipe in (process.stdout, process.stderr):
        pipe.close()
    process.wait()


def finished(box, repeats):
    path = box.begun()[0]
    sound(records(path), WANTED, repeats=repeats)
    verified(box, path)
    all_gone(box)
    expect(not processes_of(box.dir), "alive:", processes_of(box.dir))


def one(number, duration_s):
    """Returns how often the session was killed."""
    rng = random.Random(SEED * 1000003 + number)
    kills = 0
    try:
        with Box() as box:
            words = every_way(box, DELAY_MS)
            while True:
                begun = box.begun()
                expect(len(begun) <= 1, "more than one log:", begun)
                command = ["resume", begun[0]] if begun else ["run", *words]
                again = kills == 0 or (kills < MOST_KILLS and rng.random() < 0.3)
                if not again:
                    box.segue(*command, status=0)
                    break
                both = rng.random() < 0.5
                if not killed(box.start(*command), rng.random() * duration_s, both):
                    break
                kills += 1
                if not both:
                    all_gone(box)
            finished(box, kills)
            return kills
    except Exception as error:
        raise Failed(f"SEGUE_SEED={SEED}, run {number}, {kills} kills: {error}") from error


def at_step(n):
    """Stopped at the n-th step, killed there with its shims, and resumed. Was there such a step?"""
    try:
        with Box() as box:
            words = every_way(box, DELAY_MS)
            process = box.start("run", *words, env={"SEGUE_FAULT": f"stop:{n}"})
            info = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            met = info.si_code == os.CLD_STOPPED
            if met:
                kill_with_shims(process)
                reap(process)
                begun = box.begun()
                box.segue(*(["resume", begun[0]] if begun else ["run", *words]), status=0)
            else:
                out, err = process.communicate()
                expect(process.returncode == 0, "status", process.returncode, out, err)
            finished(box, 1)
            return met
    except Exception as error:
        raise Failed(f"SEGUE_FAULT=stop:{n}: {error}") from error


def each_step():
    met = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while met % AT_ONCE == 0 and met < MOST_STEPS:
            now = list(pool.map(at_step, range(met + 1, met + 1 + AT_ONCE)))
            if not any(now):
                break
            met += sum(now)
    expect(met > 60, "only", met, "steps: is SEGUE_FAULTS compiled in?")
    return f"{met} steps"


def kills():
    print(f"      SEGUE_SEED={SEED}", flush=True)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        duration_s = sorted(pool.map(seconds_undisturbed, range(AT_ONCE)))[AT_ONCE // 2]
        found = list(pool.map(lambda n: one(n, duration_s), range(KILLS)))
    expect(sum(found) >= KILLS // 2, "most runs ended before their kill:", found)
    return f"{sum(found)} kills in {KILLS} sessions of {duration_s:.2f} s"


if __name__ == "__main__":
    sys.exit(main([each_step, kills]))
