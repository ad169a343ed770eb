#!/usr/bin/env python3
"""Sessions that begin after others, over a shared store: other workers run those, or nobody does."""
import json
import sys

import shared_daemon_test
from after_test import WORKFLOW, let, order
from shared_daemon_test import Fleet
from support import expect, main, need_build
import postgres


def give(fleet, task, *words, status=0):
    workflow = fleet.file("g.yaml", WORKFLOW.replace("{task}", task))
    done = fleet.segue("submit", workflow, "--cwd", fleet.cwd, "--task", "x", "--no-lock", *words)
    expect(done.returncode == status, words, done)
    return done.stdout.decode().strip()


def state(fleet, sid):
    return fleet.sql(f"SELECT state FROM segue.session WHERE id = '{sid}'")


def row(fleet, sid):
    return next(r for r in map(json.loads, fleet.segue("ls", "--json", "-n", "500").stdout.splitlines()) if r["id"] == sid)


def comes(fleet, sid, status):
    fleet.until(lambda: row(fleet, sid)["status"] in (status, "needs_input" if status == "stopped" else status), f"{sid} is {status}",
                told=lambda: (row(fleet, sid), fleet.standing()))


def other_workers_and_kills():
    with Fleet("2s") as fleet:
        a = give(fleet, "a", "--on", "gpu")
        b = give(fleet, "b", "--after", a)
        c = give(fleet, "c", "--after", f"{a},{b}")
        said = row(fleet, b)
        expect(said["status"] == "waiting" and said["waiting"]["sessions"] == [a] and a in said["message"], said)
        expect(a.encode() in fleet.segue("show", b).stdout, "show")
        first = fleet.serve()
        fleet.serve("--label", "gpu")
        fleet.until(lambda: state(fleet, a) == "held", "it is taken")
        expect([state(fleet, s) for s in (b, c)] == ["waits", "waits"], "they wait")
        first.kill()
        let(fleet, "a")
        fleet.until(lambda: state(fleet, b) == "held", "b begins", told=fleet.standing)
        expect(state(fleet, c) == "waits", "c waits")
        fleet.daemons[1].kill()
        fleet.serve()
        let(fleet, "b")
        let(fleet, "c")
        fleet.until(lambda: state(fleet, c) == "ended", "c ends", told=fleet.standing)
        done = give(fleet, "c", "--after", f"{a},{c}")
        fleet.until(lambda: state(fleet, done) == "ended", "they were complete", told=fleet.standing)
        fleet.all_complete([a, b, c, done])
        expect(fleet.segue("store", "check").returncode == 0, "check")


def one_that_never_completes():
    with Fleet("30s") as fleet:
        give(fleet, "b", "--after", "01900000-0000-7000-8000-000000000000", status=2)
        give(fleet, "b", "--after", "", status=2)
        expect(fleet.count("true") == 0, "nothing is queued")
        aborts, cancelled, removed, stops = (give(fleet, t, "--on", "gpu") for t in ("aborts", "b", "b", "stops"))
        after = [give(fleet, "never", "--after", s) for s in (aborts, cancelled, removed)]
        let(fleet, "any")
        any_end = [give(fleet, "any", "--after-any-end", "--after", s) for s in (aborts, cancelled, stops)]
        still = give(fleet, "never", "--after", stops)
        expect(fleet.segue("cancel", cancelled).returncode == 0, "cancel")
        expect(fleet.segue("cancel", removed).returncode == 0 and fleet.segue("rm", removed).returncode == 0, "rm")
        let(fleet, "aborts", 1)
        let(fleet, "stops", 2)
        fleet.serve("--label", "gpu")
        for sid, pre, says in zip(after, (aborts, cancelled, removed), ("abort", "cancelled", "cancelled")):
            comes(fleet, sid, "stopped")
            expect(pre in row(fleet, sid)["message"], row(fleet, sid), says)
        for sid in any_end:
            comes(fleet, sid, "complete")
        expect(row(fleet, still)["status"] == "waiting", row(fleet, still))
        let(fleet, "never")
        for words in (("--daemon",), ()):
            refused = fleet.segue("resume", after[0], *words)
            expect(refused.returncode != 0 and b"--now" in refused.stderr, refused)
        for sid in (after[0], still):
            done = fleet.segue("resume", sid, "--daemon", "--now")
            expect(done.returncode == 0, done)
            comes(fleet, sid, "complete")
        expect(fleet.segue("resume", after[1], "--now", "-q").returncode == 0, "here")
        expect(fleet.segue("store", "check").returncode == 0, "check")


def all_at_once():
    """Ends that come together release each of those that wait exactly once; over the daemons' sockets, too."""
    with Fleet("30s") as fleet:
        for _ in range(2):
            fleet.serve("-n", "12")
        let(fleet, "b")
        a = [give(fleet, "a") for _ in range(12)]
        b = [give(fleet, "b", "--after", f"{x},{y}") for x, y in zip(a, a[1:] + a[:1])]
        workflow = fleet.file("g.yaml", WORKFLOW.replace("{task}", "b"))
        b += fleet.submit_to(0, workflow, 2, ("--no-lock", "--after", ",".join(a)))
        fleet.until(lambda: len(order(fleet)) == len(a), "the first begin", told=fleet.standing)
        expect(fleet.count("state = 'waits'") == len(b), "the others wait")
        let(fleet, "a")
        fleet.all_complete(a + b)
        expect(order(fleet) == ["a"] * len(a) + ["b"] * len(b), order(fleet))


if __name__ == "__main__":
    need_build()
    postgres.need()
    with postgres.Server() as SERVER:
        shared_daemon_test.SERVER = SERVER
        status = main([other_workers_and_kills, one_that_never_completes, all_at_once])
    sys.exit(status)
