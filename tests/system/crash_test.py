#!/usr/bin/env python3
"""Ends the process at every fault point, fails every write, sync and spawn, and resumes.

usage: crash_test.py BUILD_DIR [CASE...]
SEGUE_FAULT=exit:N for N = 1, 2, 3 ... until a run passes untouched, and the same for calls that
fail. After each: resume to the end; the verdicts of an undisturbed run, nothing judged twice, at
most one repeated attempt a call, `segue verify` says ok. Needs a build with SEGUE_FAULTS=ON.
"""
import sys
from concurrent.futures import ThreadPoolExecutor

from support import Box, Failed, WANTED, every_way, expect, main, records, sample, sound, verified

AT_ONCE = 4
MOST = 1000  # points; more would mean that the count never ends


def go_on(box, words, status):
    """Resumes what a fault left, or runs it again when it had not begun."""
    begun = box.begun()
    expect(len(begun) <= 1, "more than one log:", begun)
    again = box.segue("resume", begun[0]) if begun else box.segue("run", *words)
    expect(again.returncode == 0, "after status", status, "going on gave", again.returncode,
           (again.stdout + again.stderr).decode(errors="replace"))


def finish(box, fault):
    paths = box.begun()
    expect(len(paths) == 1, "logs:", paths)
    sound(records(paths[0]), WANTED, repeats=1)
    verified(box, paths[0])
    return fault


def disturbed(spec, allowed, words_of=every_way):
    """One run with a fault. Returns whether it met it."""
    try:
        with Box() as box:
            words = words_of(box)
            done = box.segue("run", *words, env={"SEGUE_FAULT": spec})
            expect(done.returncode in (0, *allowed), "status", done.returncode,
                   done.stderr.decode(errors="replace"))
            if done.returncode != 0:
                go_on(box, words, done.returncode)
            finish(box, spec)
            return done.returncode != 0
    except Exception as error:
        raise type(error)(f"SEGUE_FAULT={spec}: {error}") from error


def sweep(what, run, every=3):
    """run(n) for each n, or one of so many, some at once, until one says that it met no fault: which."""
    points = sample.draw(what, range(1, MOST), every)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for first in range(0, len(points), AT_ONCE):
            met = list(pool.map(run, points[first:first + AT_ONCE]))
            if not all(met):
                untouched = met.index(False)
                expect(not any(met[untouched:]), "a fault is met behind the last:", points[first], met)
                return points[first + untouched]
    raise Failed("no run passes untouched")


def undisturbed(box):
    box.segue("run", *every_way(box), status=0)
    finish(box, "none")


def exits():
    met = sweep("points of a run", lambda n: disturbed(f"exit:{n}", (99,)))
    expect(met > 60, "only", met, "fault points: is SEGUE_FAULTS compiled in?")
    return f"fewer than {met}"


def failed_writes():
    return f"fewer than {sweep('writes', lambda n: disturbed(f'fail:write:{n}', (1,)))}"


def failed_syncs():
    """The log is written again and goes on, so most runs do not show it; a blob's sync stops."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda n: disturbed(f"fail:sync:{n}", (1,)), sample.draw("syncs", range(1, 60, 2), 3)))


def failed_spawns():
    """The provider is asked again after a wait: the session does not even stop."""
    for n in range(1, 4):
        disturbed(f"fail:spawn:{n}", (1,))


def crashed_resume(n):
    spec = f"exit:{n}"
    with Box() as box:
        words = every_way(box)
        box.segue("run", *words, env={"SEGUE_FAULT": "exit:spawn_after:1"}, status=99)
        path = box.begun()[0]
        again = box.segue("resume", path, env={"SEGUE_FAULT": spec})
        expect(again.returncode in (0, 99), "resume with", spec, again.returncode, again.stderr)
        if again.returncode == 99:
            go_on(box, words, 99)
        sound(records(path), WANTED, repeats=2)
        verified(box, path)
        return again.returncode == 99


def exits_of_a_resume():
    """A resume that ends at each of its own points, then another."""
    return f"fewer than {sweep('points of a resume', crashed_resume, 5)}"


if __name__ == "__main__":
    sys.exit(main([undisturbed, exits, failed_writes, failed_syncs, failed_spawns,
                   exits_of_a_resume]))
