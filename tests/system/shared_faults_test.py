#!/usr/bin/env python3
"""Daemons and real programs on a shared store whose line or server fails: cut, deaf, half open, broken
in the middle of a pipeline, full; workers with other clocks; tables that become newer."""
import contextlib
import os
import re
import signal
import subprocess
import sys
import time

import shared_daemon_test
from shared_daemon_test import MOVEMENTS
from support import BUILD, THREAD_SANITIZED, WAIT_S, at_once, cpu_ms, expect, main, need_build, preload
import cutting
import postgres

SERVER = None
WIDE = """
name: wide
provider: script
initial_movement: a
movements:
  - name: a
    command: [sh, -c, 'echo x >> %(starts)s; until [ -e %(flag)s ]; do sleep 0.05; done; head -c 1000000 /dev/urandom | base64 -w0']
    rules: [{condition: when(exit == 0), next: COMPLETE}]
"""


LONG = """
name: long
provider: script
initial_movement: a
movements:
  - name: a
    command: [sh, -c, 'echo x >> %(starts)s; until [ -e %(flag)s ]; do sleep 0.05; done']
    rules: [{condition: when(exit == 0), next: COMPLETE}]
"""


class Fleet(shared_daemon_test.Fleet):
    """Its first daemon speaks through `line`, the others and the commands with the server itself."""
    def __init__(self, lease, line=None, store=None):
        super().__init__(lease, store)
        self.line = line

    def serve_behind(self, *words):
        direct = self.env["SEGUE_STORE"]
        self.env["SEGUE_STORE"] = self.line.url(self.store.rsplit("/", 1)[1])
        try:
            return self.serve(*words)
        finally:
            self.env["SEGUE_STORE"] = direct

    def works_on(self, n=1):
        self.works(lambda: self.count("state = 'held' AND seq > 1") >= n)

    def no_repeat(self, ids):
        starts = self.starts()
        expect(len(starts) == len(set(starts)) == MOVEMENTS * len(ids), "starts", sorted(starts))

    def few_repeats(self, ids, deaths):
        starts = self.starts()
        expect(MOVEMENTS * len(ids) <= len(starts) <= MOVEMENTS * len(ids) + deaths, "starts", len(starts))


def cut_for_a_moment():
    """Shorter than the lease is trusted: nobody takes over, and no call is repeated."""
    with cutting.Cutting(SERVER) as line, Fleet("1m", line) as fleet:
        ids = fleet.submit(fleet.workflow(0.3, held=True), 4)
        fleet.serve_behind()
        fleet.works_on(2)
        for _ in range(2):
            line.cut()
            fleet.until(lambda: not line.lines, "it is cut")
            line.mend()
        fleet.all_complete(ids)
        fleet.no_repeat(ids)
        expect(fleet.count("fence <> 2 OR deaths > 0") == 0, "somebody else took one")


def cut_off(way):
    """Longer than the lease: another one takes over, and the first comes back as a new worker."""
    with cutting.Cutting(SERVER) as line, Fleet("2s", line) as fleet:
        ids = fleet.submit(fleet.workflow(0.7, held=True), 4)
        fleet.serve_behind("-n", "4")
        fleet.works_on(4)
        if way == "both":
            line.cut()
        else:
            line.deaf(way)
        fleet.serve("-n", "4")
        fleet.until(lambda: fleet.count("fence > 2") > 0, "it is taken over")
        line.mend()
        fleet.all_complete(ids)
        fleet.few_repeats(ids, len(ids))
        more = fleet.submit(fleet.workflow(0.1), 1)
        fleet.daemons[1].send_signal(signal.SIGTERM)
        fleet.daemons[1].wait(WAIT_S)
        fleet.all_complete(ids + more)


def cut_off_both_ways():
    cut_off("both")


def nothing_reaches_the_server():
    cut_off("up")


def nothing_comes_back():
    cut_off("down")


def one_long_turn(fleet):
    """A session whose only call lasts until somebody makes the file `flag`."""
    flow = fleet.file("long.yaml", LONG % {"starts": fleet.dir + "/starts", "flag": fleet.dir + "/flag"})
    return fleet.submit(flow)[0]


def new_lease(fleet, known):
    """Waits for a worker with a lease that is none of those."""
    ids = "', '".join(known)
    fleet.until(lambda: int(fleet.sql(f"SELECT count(*) FROM segue.worker WHERE lease_until > clock_timestamp() AND id::text NOT IN ('{ids}')")) > 0,
                "it comes back under a new id", told=fleet.standing)


def workers(fleet):
    return fleet.sql("SELECT id FROM segue.worker").split()


def cut_off_again_and_again():
    """A worker that loses its lease, and nothing else, is alive: four such losses in one turn are no deaths."""
    with cutting.Cutting(SERVER) as line, Fleet("1s", line) as fleet:
        session = one_long_turn(fleet)
        fleet.serve_behind()
        for n in range(4):
            fleet.until(lambda n=n: os.path.exists(fleet.dir + "/starts") and len(fleet.starts()) > n, "its call begins", told=fleet.standing)
            known = workers(fleet)
            line.cut()
            fleet.until(lambda: fleet.count("EXISTS (SELECT FROM segue.worker WHERE lease_until > clock_timestamp())") == 0, "its lease ends")
            line.mend()
            new_lease(fleet, known)
        fleet.until(lambda: len(fleet.starts()) > 4, "it goes on", told=fleet.standing)
        expect(fleet.count("deaths > 0") == 0, "deaths", fleet.standing())
        fleet.file("flag", "")
        fleet.all_complete([session])


def a_death_is_taken_back():
    """Another one takes over from a worker that is cut off, and counts a death; then the first comes back."""
    with cutting.Cutting(SERVER) as line, Fleet("2s", line) as fleet:
        session = one_long_turn(fleet)
        fleet.serve_behind()
        fleet.works_on(1)
        known = workers(fleet)
        line.cut()
        fleet.serve()
        fleet.until(lambda: fleet.count("deaths = 1 AND state = 'held'") == 1, "it is taken over", told=fleet.standing)
        known += workers(fleet)
        line.on(b"segue.enter", "swallowed")  # and asks once more
        line.mend()
        new_lease(fleet, known)
        expect(line.fired == 1, "the answer was not swallowed")
        fleet.until(lambda: fleet.count("deaths = 0 AND state = 'held'") == 1, "the death is taken back", told=fleet.standing)
        fleet.file("flag", "")
        fleet.all_complete([session])


def a_hang_is_a_death():
    """It comes back, too, but it did not end what it ran by itself."""
    with Fleet("1s") as fleet:
        session = one_long_turn(fleet)
        first = fleet.serve()
        fleet.works_on(1)
        owner = fleet.sql("SELECT owner FROM segue.session")
        first.send_signal(signal.SIGSTOP)
        fleet.serve()
        fleet.until(lambda: fleet.count(f"deaths >= 1 AND state = 'held' AND owner <> '{owner}'") == 1, "it is taken over", told=fleet.standing)
        # longer than any answer takes that a worker waits for: else it may have been the store
        fleet.until(lambda: fleet.sql(f"SELECT count(*) FROM segue.worker WHERE id = '{owner}' AND lease_until < clock_timestamp() - interval '1 s'") == "1",
                    "it hangs on")
        known = workers(fleet)
        first.send_signal(signal.SIGCONT)
        new_lease(fleet, known)
        expect(fleet.count("deaths >= 1") == 1, "the death is forgotten", fleet.standing())
        fleet.file("flag", "")
        fleet.all_complete([session])


def half_open():
    """The server's ends are gone and nobody was told: each request has its limit."""
    with cutting.Cutting(SERVER) as line, Fleet("30s", line) as fleet:
        ids = fleet.submit(fleet.workflow(0.5, held=True), 2)
        fleet.serve_behind()
        fleet.works_on(2)
        line.half_open()
        fleet.all_complete(ids)
        fleet.no_repeat(ids)
        expect(fleet.count("fence <> 2 OR deaths > 0") == 0, "somebody else took one")


def broken_in_a_commit(plan):
    with cutting.Cutting(SERVER) as line, Fleet("1m", line) as fleet:
        ids = fleet.submit(fleet.workflow(0.3, held=True), 4)
        fleet.serve_behind()
        fleet.works_on(2)
        line.on(b"segue.append", plan)
        begin = time.monotonic()
        fleet.all_complete(ids)
        expect(line.fired == 1, "no append was broken")
        fleet.no_repeat(ids)
        expect(fleet.count("fence <> 2 OR deaths > 0") == 0, "somebody else took one")
        at_once(begin, 25, "it waited for what it had itself left behind")


def half_a_statement():
    broken_in_a_commit("half")


def a_commit_without_its_sync():
    """The server did the work, holds the rows and waits for the rest, which never comes."""
    broken_in_a_commit("unsynced")


def the_answer_is_swallowed():
    broken_in_a_commit("swallowed")


def broken_as_it_begins():
    """The first records of a session, which also make its row: it is made once, whatever became of the answer."""
    for plan in ("half", "unsynced", "swallowed"):
        with cutting.Cutting(SERVER) as line, Fleet("1m", line) as fleet:
            fleet.serve_behind("-n", "3")
            line.on(b"segue.begin_all", plan)
            ids = fleet.submit_to(0, fleet.workflow(0.1), 3)
            fleet.all_complete(ids)
            expect(line.fired == 1, plan, "was not done")
            fleet.no_repeat(ids)
            expect(fleet.count("fence <> 1 OR deaths > 0") == 0, plan, fleet.sql("SELECT * FROM segue.session"))


def a_dead_worker_left_its_rows_locked():
    """As above, and then the worker dies: who sweeps ends its connection."""
    with cutting.Cutting(SERVER) as line, Fleet("1s", line) as fleet:
        ids = fleet.submit(fleet.workflow(0.3, held=True), 2)
        first = fleet.serve_behind()
        fleet.works_on(2)
        line.on(b"segue.append", "unsynced")
        fleet.until(lambda: line.fired == 1, "an append is broken")
        first.kill()
        first.wait()
        fleet.serve()
        fleet.all_complete(ids)
        fleet.few_repeats(ids, len(ids))


def its_disk_is_full():
    """A tablespace on a small file system of its own."""
    if os.getuid() != 0:
        print("skipped: only root can make a small file system")
        return
    where = SERVER.dir + "/small"
    os.mkdir(where)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m,mode=0700", "tmpfs", where], capture_output=True, check=False)
    if made.returncode != 0:
        print("skipped: no file system can be mounted here:", made.stderr.decode().strip())
        os.rmdir(where)
        return
    try:
        if SERVER.drop:
            os.chown(where, SERVER.drop["user"], SERVER.drop["group"])
        SERVER.sql(f"CREATE TABLESPACE small LOCATION '{where}'")
        SERVER.sql("CREATE DATABASE small TABLESPACE small")
        # One connection, made before: a new one wants to write a file of the server's own.
        with postgres.one_connection(), Fleet("1m", store=SERVER.url("small")) as fleet:
            expect(fleet.sql("SELECT 1") == "1")
            flow = fleet.file("wide.yaml", WIDE % {"starts": fleet.dir + "/starts", "flag": fleet.dir + "/flag"})
            ids = fleet.submit(flow, 3)
            fleet.serve()
            fleet.until(lambda: os.path.exists(fleet.dir + "/starts") and len(fleet.starts()) == 3, "they work")
            with open(where + "/filler", "wb") as filler:
                try:
                    while True:
                        filler.write(bytes(1 << 16))
                        filler.flush()
                except OSError:
                    pass  # that is what it is for
            fleet.file("flag", "")
            fleet.until(lambda: b"waiting for space" in fleet.said(0), "it is full")
            expect(fleet.count("state = 'ended'") == 0, "it was written all the same")
            os.unlink(where + "/filler")
            fleet.all_complete(ids)
            expect(len(fleet.starts()) == 3, "a call was repeated", fleet.starts())
            expect(b"there is space again" in fleet.said(0), fleet.said(0))
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(where + "/filler")
        # Before its place goes, or the server cannot write what it still holds, for any database.
        SERVER.sql("DROP DATABASE IF EXISTS small WITH (FORCE)")
        SERVER.sql("DROP TABLESPACE IF EXISTS small")
        subprocess.run(["umount", "-l", where], check=False)


def clocks_a_day_apart():
    """No clock of a worker counts: one is a day behind, one a day ahead."""
    if THREAD_SANITIZED:
        return "skipped: its runtime cannot be loaded before a library"
    with Fleet("1s") as fleet:
        ids = fleet.submit(fleet.workflow(0.3, held=True), 8)
        for day in ("-86400", "86400"):
            fleet.env.update(preload(BUILD + "/helpers/shifted_clock.so", {"SHIFTED_CLOCK_S": day}))
            fleet.serve("-n", "2")
        fleet.env.pop("LD_PRELOAD")
        fleet.env.pop("ASAN_OPTIONS", None)
        fleet.env.pop("SHIFTED_CLOCK_S")
        fleet.works(lambda: fleet.sql("SELECT count(DISTINCT owner) FROM segue.session WHERE "
                                      "state = 'held' AND seq > 1") == "2", "both work")
        days = fleet.sql("SELECT string_agg(DISTINCT substring(convert_from(line, 'UTF8') FROM '\"ts\":\"([0-9-]+)'), ' ') "
                         "FROM segue.line WHERE seq > 1").split()
        expect(len(days) == 2, "their clocks are the same", days)
        fleet.daemons[1].kill()
        fleet.until(lambda: fleet.count("deaths > 0 OR state = 'ended'") > 0, "it is taken over")
        fleet.all_complete(ids)
        fleet.few_repeats(ids, 2)


def newer_tables_under_a_worker():
    """It takes no session any more, lets what runs end or come to rest, and goes."""
    with Fleet("1s") as fleet:
        ids = fleet.submit(fleet.workflow(0.4, held=True), 2)
        fleet.serve()
        fleet.works_on(2)
        version = int(fleet.sql("UPDATE segue.meta SET version = version + 1 RETURNING version"))
        fleet.daemons[0].wait(WAIT_S)
        expect(fleet.daemons[0].returncode == 0, fleet.daemons[0].returncode, fleet.said(0))
        said = fleet.said(0).decode()
        expect(re.search(rf"tables .* have version {version}.*", said), said)
        expect(fleet.count("state = 'held'") == 0, "it left something held")
        fleet.sql(f"UPDATE segue.meta SET version = {version - 1}")
        fleet.serve()
        fleet.all_complete(ids)
        fleet.few_repeats(ids, 0)


def an_outage_costs_nothing():
    """While the server is away the worker waits between its tries; it once span from the first sweep it missed."""
    with Fleet("1s") as fleet:
        worker = fleet.serve()
        SERVER.stop("immediate")
        try:
            before = cpu_ms(worker.pid)
            try:
                expect(worker.wait(4) is None, "it ended", fleet.said(0))
            except subprocess.TimeoutExpired:
                spent = (cpu_ms(worker.pid) - before) / 1000
        finally:
            SERVER.start()
        expect(spent < 1.5, "seconds of processor time in an outage of 4 s:", spent)
        fleet.all_complete(fleet.submit(fleet.workflow(0), 1))


if __name__ == "__main__":
    need_build()
    postgres.need()
    with postgres.Server() as SERVER:
        shared_daemon_test.SERVER = SERVER
        status = main([cut_for_a_moment, cut_off_both_ways, nothing_reaches_the_server, nothing_comes_back,
                       cut_off_again_and_again, a_death_is_taken_back, a_hang_is_a_death, half_open, half_a_statement, a_commit_without_its_sync, the_answer_is_swallowed,
                       broken_as_it_begins, a_dead_worker_left_its_rows_locked, its_disk_is_full, clocks_a_day_apart,
                       newer_tables_under_a_worker, an_outage_costs_nothing])
    sys.exit(status)
