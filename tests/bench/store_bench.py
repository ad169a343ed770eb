#!/usr/bin/env python3
"""A store on PostgreSQL beside pgbench, which calls the same function on the same server: appends of
many sessions, turns through a daemon and its processor time beside one with files, one session alone,
submit to first call, take-over, an idle worker, many held sessions, a queue that fits nobody, a long
log.

usage: store_bench.py BUILD_DIR [SESSIONS] [MEGABYTES]     of the long log
The server is a private one on this machine, with fsync.
"""
import contextlib
import hashlib
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
from daemon import DaemonBox  # noqa: E402
from support import BUILD, SEGUE, expect  # noqa: E402
from submit_bench import REPLIES, TURNS, WORKFLOW, client, cpu_ms, row  # noqa: E402

PROBE = BUILD + "/helpers/append_probe"
SESSIONS = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
MEGABYTES = int(sys.argv[3]) if len(sys.argv) > 3 else 256
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


def posted(sessions, url=None):
    """The processor time of a daemon that gets sessions over its socket, a record of theirs, in ms."""
    with contextlib.ExitStack() as boxes:
        box = boxes.enter_context(DaemonBox())
        if url is not None:
            box.env["SEGUE_STORE"] = url
            del box.env["SEGUE_LOGS"]
        box.serve("-n", "16", *(["--logs", box.logs] if url else []))
        body = json.dumps({"workflow": {"text": WORKFLOW, "name": "three"}, "task": "the work", "cwd": box.cwd,
                           "scenario": {"text": json.dumps(REPLIES)}}).encode()
        before = cpu_ms(box.process.pid)
        client(box.socket, body, sessions)

        def all_over():
            rows = box.segue("ls", "--json", "-n", "1000", "-s", "complete").stdout.splitlines()
            return len(rows) == sessions
        box.until(all_over, "they do not end")
        return (cpu_ms(box.process.pid) - before) / sessions


def polled():
    """Milliseconds from a submit to the first record elsewhere, where no notification comes through."""
    found = []
    with Fleet("30s") as fleet, shared_daemon_test.pooler(fleet.store.rsplit("/", 1)[1]) as url:
        if url is None:
            return None
        fleet.env["SEGUE_STORE"] = url
        fleet.serve("-n", "4")
        flow, said = fleet.file("w.yaml", WORKFLOW), fleet.file("s.json", json.dumps(REPLIES))
        for _ in range(5):
            begin = time.monotonic()
            done = fleet.segue("submit", flow, "--scenario", said, "--cwd", fleet.cwd, "-t", "x")
            expect(done.returncode == 0, done)
            sid = done.stdout.decode().strip().rsplit("#", 1)[-1]
            fleet.until(lambda i=sid: fleet.count(f"seq > 2 AND id = '{i}'") == 1, "it begins")
            found.append(time.monotonic() - begin)
    return max(found) * 1000


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1])


def idle():
    """Statements a second, connections, and what its memory has above one with files, in MiB."""
    with DaemonBox() as box:
        box.serve()
        time.sleep(2)  # it settles
        files = resident_kib(box.process.pid)
        box.end()
    with Fleet("30s") as fleet:
        daemon = fleet.serve()
        database = fleet.store.rsplit("/", 1)[1]
        time.sleep(15)  # connections that were needed once are closed
        begin, before = time.monotonic(), statement_count(fleet)
        time.sleep(20)  # what is measured
        rate = (statement_count(fleet) - before) / (time.monotonic() - begin)
        connections = int(fleet.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'segue %' AND "
                                    f"datname = '{database}'"))
        return rate, connections, (resident_kib(daemon.pid) - files) / 1024


def statement_count(fleet):
    """All transactions but the one that asks."""
    return int(fleet.sql("SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"))


def fits_nobody(server):
    """Milliseconds of a claim with 10,000 ready sessions before it that need a label of nobody."""
    database, _ = server.fresh()
    worker = "00000000-0000-4000-9000-000000000000"
    server.sql(f"SELECT segue.enter('{worker}', 'bench', '{{}}', 'bench', 3600000)", database)
    server.sql("INSERT INTO segue.session (id, state, rest, needs, seq) SELECT gen_random_uuid(), 'ready', 'ready', "
               "'{nobody}', 1 FROM generate_series(1, 10000)", database)
    server.sql("ANALYZE segue.session", database)
    script = server.dir + "/claim.sql"
    with open(script, "w", encoding="utf-8") as f:
        f.write(f"SELECT * FROM segue.claim('{worker}', 8, '{{}}', 65536);\n")
    os.chmod(script, 0o644)
    said = server.run("pgbench", "-h", server.dir, "-U", "postgres", "-n", "-M", "extended", "-c", "1", "-t",
                      "50", "-f", script, database).decode()
    return float(re.search(r"latency average = ([0-9.]+)", said)[1])


def held(server):
    """Renewals in a third of the lease, with as many sessions held as append_probe takes."""
    database, url = server.fresh()
    server.sql(f"ALTER DATABASE {database} SET track_functions = 'pl'")
    with subprocess.Popen([PROBE, url, "1000", "1000", "9"], stdout=subprocess.PIPE) as probe:
        expect(probe.wait() == 0, "append_probe failed")
        held_s = float(probe.stdout.read().split()[3])
    calls = int(server.sql("SELECT sum(calls) FROM pg_stat_user_functions WHERE funcname = 'renew'", database))
    return calls / (held_s / 1.0)  # its lease is 3 s


def long_log(server):
    """MiB that `verify` of a long log in the store takes."""
    _, url = server.fresh()
    with Fleet("30s", store=url) as fleet:
        sid = "01990000-0000-7000-8000-000000000001"
        folder = fleet.dir + "/long"
        os.mkdir(folder)
        with open(f"{folder}/{sid}.ndjson", "wb") as f:
            last, text = "0" * 64, "x" * 60000
            for seq in range(1, MEGABYTES * 17 + 2):
                kind = {"type": "session_start", "session": sid, "workflow": {"name": "long"}} if seq == 1 else \
                       {"type": "note", "text": text}
                if seq == MEGABYTES * 17 + 1:
                    kind = {"type": "session_end", "outcome": "complete"}
                line = json.dumps({"v": 1, "seq": seq, "ts": "2026-01-01T00:00:00.000Z", **kind},
                                  separators=(",", ":")).encode()[:-1]
                last = hashlib.sha256(last.encode() + line).hexdigest()
                f.write(line + f',"hash":"{last}"}}\n'.encode())
        done = fleet.segue("store", "import", folder, "--store", url, timeout=1800)
        expect(done.returncode == 0, done)
        os.unlink(f"{folder}/{sid}.ndjson")
        pid = subprocess.Popen([SEGUE, "verify", "--store", url, sid], env=fleet.env, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(pid.pid, 0)
        pid.returncode = os.waitstatus_to_exitcode(status)
        expect(pid.returncode in (0, 1), "verify", pid.returncode)
        return used.ru_maxrss / 1024


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
        late = polled()
        if late is not None:
            row("the same behind a pooler, where no notice comes", late, "ms", "<= 2200")
        for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
            took = [take_over(number) for _ in range(ROUNDS)]
            row(f"take-over after {number.name}, lease 1 s: the longest", max(took), "s",
                "<= 0.5" if number == signal.SIGTERM else "<= 1.4")

        rounds = [(posted(200), posted(200, server.fresh()[1])) for _ in range(ROUNDS)]
        row("processor time of a daemon with files", statistics.median(r[0] for r in rounds), "ms/session")
        row("of one with the store", statistics.median(r[1] for r in rounds), "ms/session")
        row("of that with files", statistics.median(r[1] / r[0] for r in rounds), "", "<= 1.50")
        rate, connections, memory = idle()
        row("an idle worker: statements", rate, "a second", "<= 1")
        row("connections", connections, "", "<= 4")
        row("memory above a daemon with files", memory, "MiB", "<= 4")
        row("renewals each third of a lease, 1,000 held", held(server), "", "<= 1")
        row("a claim behind 10,000 that fit nobody", fits_nobody(server), "ms", "<= 20")
        row(f"memory of verify, a log of {MEGABYTES} MB", long_log(server), "MiB", "<= 64")


if __name__ == "__main__":
    main()
