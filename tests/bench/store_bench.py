#!/usr/bin/env python3
"""A store on PostgreSQL beside pgbench, which calls the same function on the same server: appends of
many sessions, turns through a daemon, one session alone, submit to first call, take-over.

usage: store_bench.py BUILD_DIR [SESSIONS]
The server is a private one on this machine, with fsync.
"""
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TESTS + "/system", TESTS + "/support"]

import postgres  # noqa: E402
import shared_daemon_test  # noqa: E402
from support import BUILD, expect  # noqa: E402
from submit_bench import REPLIES, TURNS, WORKFLOW, cpu_ms, row  # noqa: E402

PROBE = BUILD + "/helpers/append_probe"
SESSIONS = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
SECONDS, ROUNDS = 6, 3
APPEND = """\\set next :seq + 3
SELECT segue.append(('00000000-0000-4000-8000-' || lpad(:client_id::text, 12, '0'))::uuid, 1, :seq, \
:next, :next * 500, repeat('ab', 32), 'idle', false, ARRAY[:seq * 500, :seq * 500 + 500, :seq * 500 + \
1000], ARRAY[convert_to(repeat('x', 500), 'UTF8'), convert_to(repeat('y', 500), 'UTF8'), \
convert_to(repeat('z', 500), 'UTF8')]);
\\set seq :next
"""


class Server(postgres.Server):
    def fresh(self):
        """A database with the tables: its name and URL."""
        url = self.database()
        done = subprocess.run([BUILD + "/segue", "store", "init", "--store", url], capture_output=True,
                              check=False)
        expect(done.returncode == 0, done)
        return url.rsplit("/", 1)[1], url

    def pgbench(self, clients):
        """Transactions a second, and the milliseconds of one."""
        database, _ = self.fresh()
        worker = "00000000-0000-4000-9000-000000000000"
        self.sql(f"SELECT segue.enter('{worker}', 'bench', '{{}}', 'bench', 3600000)", database)
        self.sql(f"SELECT segue.make('{worker}', ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, "
                 f"'{{}}') FROM generate_series(0, {clients - 1}) n", database)
        script = self.dir + "/append.sql"
        with open(script, "w", encoding="utf-8") as f:
            f.write(APPEND)
        os.chmod(script, 0o644)
        said = self.run("pgbench", "-h", self.dir, "-U", "postgres", "-n", "-M", "extended", "-c",
                        str(clients), "-j", "2", "-T", str(SECONDS), "-D", "seq=0", "-f", script,
                        database).decode()
        expect(int(self.sql("SELECT count(*) FROM segue.line", database)) > 0, said)
        return (float(re.search(r"tps = ([0-9.]+)", said)[1]),
                float(re.search(r"latency average = ([0-9.]+)", said)[1]))

    def appends(self, logs, batches):
        _, url = self.fresh()
        done = subprocess.run([PROBE, url, str(logs), str(batches)], capture_output=True, check=True)
        return list(map(float, done.stdout.split()))


class Fleet(shared_daemon_test.Fleet):
    """Of the script provider."""
    def post(self, n=1):
        flow, said = self.file("w.yaml", WORKFLOW), self.file("s.json", json.dumps(REPLIES))
        for _ in range(n):
            done = self.segue("submit", flow, "--scenario", said, "--cwd", self.cwd, "-t", "the work")
            expect(done.returncode == 0, done)


def through_the_daemon():
    """Turns a second, from the first call to the last end as the records say it, and the daemon's
    processor time of a record. It is looked at once a second: each look is a program."""
    with Fleet("30s") as fleet:
        fleet.post(SESSIONS)
        daemon = fleet.serve("-n", "16")
        while fleet.count("state = 'ended'") < SESSIONS:
            time.sleep(1)  # the clock is the records'
        took = float(fleet.sql(
            "SELECT extract(epoch FROM max(t) - min(t)) FROM (SELECT substring(convert_from(line, 'UTF8') "
            "FROM '\"ts\":\"([^\"]+)\"')::timestamptz AS t FROM segue.line WHERE seq > 1) l"))
        records = int(fleet.sql("SELECT sum(seq) FROM segue.session"))
        return SESSIONS * TURNS / took, cpu_ms(daemon.pid) / records


def take_over(number):
    """Seconds from the death (or stop) of a worker to the next record of its session."""
    with Fleet("1s") as fleet:
        first = fleet.serve("-n", "1")
        flow = fleet.workflow(0.5)
        fleet.submit(flow)
        fleet.until(lambda: os.path.exists(fleet.dir + "/starts"), "it runs")
        fleet.serve("-n", "1")
        seq = int(fleet.sql("SELECT seq FROM segue.session"))
        begin = time.monotonic()
        first.send_signal(number)
        fleet.until(lambda: int(fleet.sql("SELECT fence FROM segue.session")) > 2 and
                    int(fleet.sql("SELECT seq FROM segue.session")) > seq, "it is taken over")
        return time.monotonic() - begin


def first_call():
    """Milliseconds from a submit to the first record of another worker."""
    found = []
    with Fleet("30s") as fleet:
        fleet.serve("-n", "4")
        flow, said = fleet.file("w.yaml", WORKFLOW), fleet.file("s.json", json.dumps(REPLIES))
        for _ in range(15):
            done = fleet.segue("submit", flow, "--scenario", said, "--cwd", fleet.cwd, "-t", "x")
            expect(done.returncode == 0, done)
            sid = done.stdout.decode().strip()
            fleet.until(lambda i=sid: fleet.count(f"state = 'ended' AND id = '{i}'") == 1, "it ends")
            at = {}
            for line in fleet.segue("show", sid, "--json").stdout.splitlines():
                record = json.loads(line)
                at.setdefault(record["type"], record["ts"])
            found.append(seconds(at["call_start"]) - seconds(at["session_start"]))
    return statistics.median(found) * 1000


def seconds(ts):
    whole, _, part = ts.rstrip("Z").partition(".")
    return time.mktime(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float("0." + part)


def main():
    why = postgres.missing()
    if why:
        print("skipped:", why)
        return
    with Server() as server:
        shared_daemon_test.SERVER = server
        rounds = [(server.pgbench(8)[0], server.appends(64, 20000)[0]) for _ in range(ROUNDS)]
        tps = statistics.median(r[0] for r in rounds)
        row("pgbench, the same function, 8 clients", tps, "a second")
        row("appends of 64 sessions", statistics.median(r[1] for r in rounds), "a second")
        row("of pgbench's", statistics.median(r[1] / r[0] for r in rounds), "", ">= 1.50")
        rounds = [(server.pgbench(1)[1], server.appends(1, 1000)[1]) for _ in range(ROUNDS)]
        row("one session alone: an append", statistics.median(r[1] for r in rounds), "ms")
        row("of pgbench's with one client", statistics.median(r[1] / r[0] for r in rounds), "", "<= 1.50")
        turns, cpu = through_the_daemon()
        row("turns through a daemon, 16 at once", turns, "a second", ">= 1020")
        row("of pgbench's", turns / tps, "", ">= 0.35")
        row("processor time of the daemon, a record", cpu, "ms")
        row("submit to the first call elsewhere, median", first_call(), "ms", "<= 20")
        for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
            took = [take_over(number) for _ in range(ROUNDS)]
            row(f"take-over after {number.name}, lease 1 s: the longest", max(took), "s",
                "<= 0.5" if number == signal.SIGTERM else "<= 1.4")


if __name__ == "__main__":
    main()
