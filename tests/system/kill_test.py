#!/usr/bin/env python3
"""SIGKILL at 200 random moments, then `segue resume`, which may be killed again.

usage: kill_test.py BUILD_DIR [CASE...]
SEGUE_SEED=N repeats a sequence, SEGUE_KILLS=N changes the number of runs. The moments are spread
over the duration of an undisturbed run. After each kill no command that segue started is alive;
in the end: the verdicts of an undisturbed run, nothing judged twice, `segue verify` says ok.
"""
import os
import random
import subprocess
import sys
import time

sys.dont_write_bytecode = True

from concurrent.futures import ThreadPoolExecutor  # noqa: E402

from support import (Box, Failed, WANTED, all_gone, every_way, expect, main, need_build,  # noqa: E402
                     processes_of, records, sound, verified)

SEED = int(os.environ.get("SEGUE_SEED") or random.SystemRandom().randrange(1 << 32))
KILLS = int(os.environ.get("SEGUE_KILLS") or 200)
AT_ONCE = 6
DELAY_MS = 15
MOST_KILLS = 4  # of one session


def seconds_undisturbed(_):
    with Box() as box:
        words = every_way(box, DELAY_MS)
        begin = time.monotonic()
        done = box.segue("run", *words)
        expect(done.returncode == 0, done.stdout, done.stderr)
        return time.monotonic() - begin


def killed(process, after_s):
    """Kills it at that moment; False when it had ended by itself before."""
    try:
        out, err = process.communicate(timeout=after_s)
        expect(process.returncode == 0, "status", process.returncode,
               (out + err).decode(errors="replace"))
        return False
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return process.returncode != 0


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
                    done = box.segue(*command)
                    expect(done.returncode == 0, *command, "gave", done.returncode,
                           (done.stdout + done.stderr).decode(errors="replace"))
                    break
                if not killed(box.start(*command), rng.random() * duration_s):
                    break
                kills += 1
                all_gone(box)
            path = box.begun()[0]
            sound(records(path), WANTED, repeats=kills)
            verified(box, path)
            all_gone(box)
            expect(not processes_of(box.dir), "alive:", processes_of(box.dir))
            return kills
    except Exception as error:
        raise Failed(f"SEGUE_SEED={SEED}, run {number}, {kills} kills: {error}") from error


def kills():
    print(f"      SEGUE_SEED={SEED}", flush=True)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        duration_s = sorted(pool.map(seconds_undisturbed, range(AT_ONCE)))[AT_ONCE // 2]
        found = list(pool.map(lambda n: one(n, duration_s), range(KILLS)))
    expect(sum(found) >= KILLS // 2, "most runs ended before their kill:", found)
    return f"{sum(found)} kills in {KILLS} sessions of {duration_s:.2f} s"


if __name__ == "__main__":
    need_build()
    sys.exit(main([kills]))
