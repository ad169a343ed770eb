#!/usr/bin/env python3
"""A store whose server has a standby: what can be read there, and a fail-over in the middle of work."""
import json
import sys

import shared_daemon_test
from shared_daemon_test import MOVEMENTS, STOPS, Fleet
from support import end_of, expect, main, need_build
import postgres


def with_standby(test):
    """Its commits wait for the standby, as users set it who must not lose one."""
    def run():
        with postgres.Server() as primary, postgres.Server(of=primary) as standby:
            primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
            primary.sql("SELECT pg_reload_conf()")
            primary.sql("ALTER SYSTEM SET synchronous_commit = 'remote_apply'")
            primary.sql("SELECT pg_reload_conf()")
            shared_daemon_test.SERVER = primary
            test(primary, standby)
    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@with_standby
def a_standby_can_be_read(primary, standby):
    """What only looks is answered as by its server; what writes waits, and says why."""
    with Fleet("30s") as fleet:
        done = fleet.segue("run", fleet.file("stops.yaml", STOPS), "--task", "x", "--cwd", fleet.cwd, "-q")
        expect(done.returncode == 5, done)
        there = standby.url(fleet.store.rsplit("/", 1)[1])
        for words in (("ls", "--json"), ("show", "last"), ("verify", "last"), ("audit",), ("store", "check")):
            here, copy = fleet.segue(*words), fleet.segue(*words, "--store", there)
            same = copy.stdout.replace(there.encode(), fleet.store.encode()) == here.stdout
            expect(copy.returncode == here.returncode and same, words, here, copy)
        going = fleet.start("resume", "last", "--max-movements", "3", "-q", "--store", there)
        said = going.stderr.readline()
        expect(b"read-only" in said or b"recovery" in said, said)
        primary.stop("immediate")
        standby.promote()
        status, _, err = end_of(going)
        expect(status == 0, "it goes on once it may write", status, err)


@with_standby
def a_fail_over(primary, standby):
    """Both servers stand in the address. The first one dies while sessions run, and the workers go on
    at the other: nothing that was confirmed is lost, and only calls in flight begin again."""
    name = primary.database().rsplit("/", 1)[1]
    with Fleet("2s", store=primary.url(name, others=(standby,))) as fleet:
        for _ in range(2):
            fleet.serve("-n", "3")
        ids = fleet.submit(fleet.workflow(0.3), 8)
        fleet.until(lambda: fleet.count("state = 'ended'") >= 2, "some have ended, some run, some wait")
        ended = fleet.sql("SELECT id, seq, encode(hash, 'hex') FROM segue.session WHERE state = 'ended' ORDER BY id")
        primary.stop("immediate")
        standby.promote()
        shared_daemon_test.SERVER = standby
        still = fleet.sql("SELECT id, seq, encode(hash, 'hex') FROM segue.session WHERE state = 'ended' ORDER BY id")
        expect(set(ended.splitlines()) <= set(still.splitlines()), "what had ended is lost", ended, still)
        fleet.all_complete(ids)
        starts = fleet.starts()
        expect(len(set(starts)) == 8 * MOVEMENTS, len(set(starts)))
        expect(len(starts) <= 8 * MOVEMENTS + 6, "more than the six calls in flight began again", len(starts))
        rows = [json.loads(r) for r in fleet.segue("store", "check", "--json").stdout.splitlines()]
        expect(not any(r.get("finding") for r in rows), rows)
        late = fleet.submit(fleet.workflow(0.01))
        fleet.all_complete(ids + late)


def caught_up(primary, standby):
    at = primary.sql("SELECT pg_current_wal_lsn()")
    return standby.sql(f"SELECT pg_last_wal_replay_lsn() >= '{at}'") == "t"


def a_fail_over_that_loses():
    """The standby was behind: the session goes on from what it holds there, which stays as it is."""
    with postgres.Server() as primary, postgres.Server(of=primary) as standby:
        shared_daemon_test.SERVER = primary
        name = primary.database().rsplit("/", 1)[1]
        with Fleet("2s", store=primary.url(name, others=(standby,))) as fleet:
            def seq():
                return int(fleet.sql("SELECT seq FROM segue.session"))

            fleet.serve()
            ids = fleet.submit(fleet.workflow(1))
            fleet.until(lambda: seq() >= 3, "it has begun")
            fleet.until(lambda: caught_up(primary, standby), "the standby has it")
            standby.stop()
            before = seq()
            kept = fleet.sql("SELECT encode(sha256(string_agg(line, ''::bytea ORDER BY seq)), 'hex') FROM segue.line "
                             f"WHERE seq <= {before}")
            fleet.until(lambda: seq() > before + 3, "it gets further")
            primary.stop("immediate")
            standby.start()
            standby.promote()
            shared_daemon_test.SERVER = standby
            fleet.all_complete(ids)
            still = fleet.sql("SELECT encode(sha256(string_agg(line, ''::bytea ORDER BY seq)), 'hex') FROM segue.line "
                              f"WHERE seq <= {before}")
            expect(still == kept, "what both had confirmed was changed")
            expect(len(set(fleet.starts())) == MOVEMENTS, fleet.starts())


CASES = [a_standby_can_be_read, a_fail_over, a_fail_over_that_loses]

if __name__ == "__main__":
    need_build()
    postgres.need()
    sys.exit(main(CASES))
