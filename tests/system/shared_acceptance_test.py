#!/usr/bin/env python3
"""What a store of several machines promises, from the shell: workers that die, hang and come back, a
server that crashes, sessions that go to another database, and no password anywhere. The whole is
done at the server itself or behind a pooler, as the commit says; both with ./dev test --all."""
import filecmp
import json
import os
import signal
import subprocess
import sys
import threading

from shared_daemon_test import MOVEMENTS, STOPS, Fleet
import shared_daemon_test
from support import expect, main, need_build, sample, skip
import postgres

SERVER = None
SESSIONS = 50
PASSWORD = "Xq7-correct-horse-9"


class Watch:
    """Looks at ps and ls all the while."""

    def __init__(self, fleet):
        self.fleet, self.ends, self.ps, self.orphans = fleet, threading.Event(), b"", []
        self.thread = threading.Thread(target=self.look)
        self.thread.start()

    def look(self):
        while not self.ends.wait(0.5):
            self.ps += subprocess.run(["ps", "-ewwo", "args"], capture_output=True, check=False).stdout
            done = self.fleet.segue("ls", "--json", "-n", "500")
            for line in done.stdout.splitlines():
                row = json.loads(line)
                if row["status"] == "running" and "worker" not in row:
                    self.orphans.append(row)

    def end(self):
        self.ends.set()
        self.thread.join()


def rows(fleet):
    return [json.loads(r) for r in fleet.segue("ls", "--json", "-n", "500").stdout.splitlines()]


def resume_poisoned(fleet):
    """On a machine so busy that leases of a second end again and again, three ends of one without a turn between stop a
    session, as promised, until somebody resumes it. Each is told once."""
    told = fleet.sql("SELECT s.id FROM segue.session s JOIN segue.line l ON l.session = s.id AND l.seq = s.seq WHERE s.state = 'idle' "
                     "AND s.asked IS NULL AND convert_from(l.line, 'UTF8') LIKE '%\"reason\":\"poison\"%'").split()
    for sid in told:
        fleet.segue("resume", sid, "--daemon")
    return len(told)


def all_end(fleet, count):
    resumed = 0

    def ended():
        nonlocal resumed
        resumed += resume_poisoned(fleet)
        return fleet.count("state = 'ended'") == count

    fleet.until(ended, "they end", told=fleet.standing)
    if resumed:
        print(f"{resumed} sessions lost three leases without a turn between, and were resumed", file=sys.stderr)


def workers_die_and_hang(fleet):
    first, second = fleet.serve("-n", "5"), fleet.serve("-n", "5")
    ids, flow = [], fleet.workflow(0.5, held=True)
    shells = [threading.Thread(target=lambda: ids.extend(fleet.submit(flow, SESSIONS // 5))) for _ in range(5)]
    for shell in shells:
        shell.start()
    fleet.works(lambda: fleet.sql("SELECT count(DISTINCT owner) FROM segue.session WHERE "
                                  "state = 'held' AND seq > 8") == "2", "both work")
    first.kill()
    second.send_signal(signal.SIGSTOP)
    in_flight = fleet.count("state = 'held'")
    first.wait()
    fleet.serve("-n", "8")
    fleet.until(lambda: fleet.count("fence > 2") > 0, "it is taken over")
    second.send_signal(signal.SIGCONT)
    for shell in shells:
        shell.join()
    expect(len(ids) == SESSIONS, "not all were submitted")
    all_end(fleet, SESSIONS)
    fleet.all_complete(ids)
    n = len(fleet.starts())
    # A busy machine can cost a worker its lease of a second, too: one repeat each time that a session went on.
    gone_on = int(fleet.sql("SELECT count(*) FROM segue.line WHERE "
                            "convert_from(line, 'UTF8') LIKE '%\"type\":\"session_resume\",\"reason\":\"crash\"%'"))
    expect(SESSIONS * MOVEMENTS <= n <= SESSIONS * MOVEMENTS + max(in_flight, gone_on), n, in_flight, gone_on)
    return ids


def asked_from_the_shell(fleet):
    long = fleet.submit(fleet.workflow(30))[0]
    fleet.until(lambda: fleet.count("state = 'held'") == 1, "it runs")
    done = fleet.segue("cancel", long)
    expect(done.returncode == 0 and done.stdout.startswith(b"cancelled"), done)
    shown = fleet.segue("show", long, "--follow")
    expect(shown.returncode == 6, shown)
    stopped = fleet.submit(fleet.file("stops.yaml", STOPS), 2)
    fleet.until(lambda: fleet.count("state = 'idle'") == 2, "they stop")
    done = fleet.segue("resume", stopped[0], "--max-movements", "3", "-q")
    expect(done.returncode == 0, done)
    done = fleet.segue("resume", stopped[1], "--max-movements", "3", "--daemon")
    expect(done.returncode == 0 and done.stdout.decode().strip() == stopped[1], done)
    shown = fleet.segue("show", stopped[1], "--follow")
    expect(shown.returncode == 0, shown)
    return [long, *stopped]


def the_server_crashes(fleet):
    before = fleet.count("state = 'ended'")
    ids = fleet.submit(fleet.workflow(2, held=True), 10)
    fleet.works(lambda: fleet.count("state = 'held'") >= 6)
    SERVER.stop("immediate")
    SERVER.start()
    all_end(fleet, before + 10)
    expect({r["status"] for r in rows(fleet) if r["id"] in ids} == {"complete"}, "statuses")
    return ids


def the_same(a, b):
    both = filecmp.dircmp(a, b)
    expect(not both.left_only and not both.right_only and not both.diff_files and not both.funny_files,
           both.left_only, both.right_only, both.diff_files)
    done = subprocess.run(["diff", "-r", a, b], capture_output=True, check=False)
    expect(done.returncode == 0 and done.stdout == b"", done)


def to_another_database(fleet, second):
    one, two = fleet.dir + "/one", fleet.dir + "/two"
    for words in (("init", "--store", second), ("export", one), ("import", one, "--store", second),
                  ("export", two, "--store", second)):
        done = fleet.segue("store", *words)
        expect(done.returncode == 0, words, done)
    the_same(one, two)
    return len(os.listdir(one))


def no_password(fleet, watch):
    found = subprocess.run(["grep", "-rlF", PASSWORD, fleet.dir], capture_output=True, check=False)
    expect(found.returncode == 1, "the password is in", found.stdout)
    expect(PASSWORD.encode() not in watch.ps, "the password is in ps")
    lines = fleet.sql("SELECT count(*) FROM segue.line WHERE position(convert_to('%s', 'UTF8') IN line) > 0"
                      % PASSWORD)
    expect(lines == "0", "the password is in the store")


def accept(url, second):
    with Fleet("1s", store=url, env={"PGPASSWORD": PASSWORD}) as fleet:
        watch = Watch(fleet)
        try:
            ids = workers_die_and_hang(fleet)
            ids += asked_from_the_shell(fleet)
            ids += the_server_crashes(fleet)
        finally:
            watch.end()
        expect(not watch.orphans, "running without a worker:", watch.orphans[:3])
        for sid in ids:
            done = fleet.segue("verify", sid)
            expect(done.returncode == 0, done)
        found = fleet.segue("store", "check")
        expect(found.returncode == 0, found)
        to_another_database(fleet, second)
        no_password(fleet, watch)


def at_the_server():
    accept(SERVER.database(user="secretive"), SERVER.database(user="secretive"))


def behind_a_pooler():
    with postgres.Pooler(SERVER, user="secretive", password=PASSWORD) as pooler:
        accept(pooler.url(SERVER.database()), pooler.url(SERVER.database()))


def everything():
    if not postgres.Pooler.there():
        at_the_server()
        skip("pgbouncer is not installed")
    for way in sample.draw("ways to the server", [at_the_server, behind_a_pooler], 2):
        way()


def wrong_password():
    with Fleet("1s", store=SERVER.database()) as fleet:
        name = fleet.store.rsplit("/", 1)[1]
        for word in ("not-the-one", ""):
            done = fleet.segue("ls", "--store", SERVER.url(name, user="secretive"),
                               env={**fleet.env, "PGPASSWORD": word})
            expect(done.returncode == 2 and b"password" in done.stderr, done)
            expect(word == "" or word.encode() not in done.stderr, "it is told", done)


if __name__ == "__main__":
    need_build()
    postgres.need()
    with postgres.Server() as SERVER:
        shared_daemon_test.SERVER = SERVER
        SERVER.with_password("secretive", PASSWORD)
        status = main([wrong_password, everything])
    sys.exit(status)
