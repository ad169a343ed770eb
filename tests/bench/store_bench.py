"""A store on PostgreSQL beside pgbench, which calls the same function on the same server: appends of
many sessions, turns through a daemon and its processor time beside one with files, one session alone,
submit to first call, take-over, an idle worker, many held sessions, a queue that fits nobody, a long
log. The server is a private one on this machine, with fsync. Times of sessions are those of their
records."""
import contextlib
import json
import os
import re
import signal
import time
from statistics import median

from bench import (AT_ONCE, LOOP, PROBE, THREE, THREE_REPLIES, at, in_turns, load, loop_replies, memory_kib, peak_mib,
                   ran, row, times_as)
import audit_logs
import postgres
import shared_daemon_test
from daemon import DaemonBox
from program_bench import HOUR_MS, settle
from support import SEGUE, expect, of_type

ROUNDS, WORKERS = 3, 8
WORKER = "00000000-0000-4000-9000-000000000000"
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
        ran(SEGUE, "store", "init", "--store", url)
        return url.rsplit("/", 1)[1], url

    def pgbench(self, script, prepare, *words):
        """Transactions a second, and the milliseconds of one, in a fresh database with a worker."""
        database, _ = self.fresh()
        self.sql(f"SELECT segue.enter('{WORKER}', 'bench', '{{}}', 'bench', 3600000); " + prepare, database)
        path = self.dir + "/script.sql"
        with open(path, "w", encoding="utf-8") as f:
            f.write(script)
        os.chmod(path, 0o644)
        said = self.run("pgbench", "-h", self.dir, "-U", "postgres", "-n", "-M", "extended", *words, "-f", path,
                        database).decode()
        return [float(re.search(what + r" = ([0-9.]+)", said)[1]) for what in ("tps", "latency average")]

    def pgbench_appends(self, clients):
        return self.pgbench(APPEND, f"SELECT segue.make('{WORKER}', ('00000000-0000-4000-8000-' || lpad(n::text, 12, "
                            f"'0'))::uuid, '{{}}') FROM generate_series(0, {clients - 1}) n",
                            "-c", str(clients), "-j", "2", "-T", "6", "-D", "seq=0")

    def appends(self, logs, batches):
        """Appends a second."""
        return float(ran(PROBE, "append", self.fresh()[1], str(logs), str(batches))[2])

    def asked(self):
        """What workers asked of a database that logs it: pairs of seconds since 1970 and SQL."""
        with open(self.dir + "/log", encoding="utf-8", errors="replace") as f:
            found = re.findall(r"^(\S+) segue [0-9a-f-]{36} LOG:  execute [^:]*: (.*)$", f.read(), re.M)
        return [(float(when), sql) for when, sql in found]


class Fleet(shared_daemon_test.Fleet):
    """Of the script provider."""
    def post(self, workflow=THREE, replies=THREE_REPLIES):
        """The id of a session that was submitted, whose turns then end."""
        path, said = self.file("w.json", workflow), self.file("s.json", json.dumps({"replies": replies}))
        done = self.segue("submit", path, "--scenario", said, "--cwd", self.cwd, "-t", "the work")
        expect(done.returncode == 0, done)
        return done.stdout.decode().strip().rsplit("#", 1)[-1]

    def records(self, sid):
        self.until(lambda: self.count("state = 'ready'") == 0, "it is taken")
        return [json.loads(line) for line in self.segue("show", sid, "--json").stdout.splitlines()]

    def ended(self, sid):
        self.until(lambda: self.count(f"state = 'ended' AND id = '{sid}'") == 1, "it ends")
        return self.records(sid)

    def connections(self):
        return int(self.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'segue %' AND "
                            "datname = current_database()"))


@contextlib.contextmanager
def daemon(url=None, *words):
    """One that is asked over its socket, with a store or with files."""
    with DaemonBox() as box:
        if url is not None:
            box.env["SEGUE_STORE"] = url
            del box.env["SEGUE_LOGS"]
        box.serve(*words, *(["--logs", box.logs] if url else []))
        yield box


def through_the_daemon(sessions, url=None, clients=1):
    """Turns a second, and the daemon's processor time of a session in ms."""
    with daemon(url, "-n", str(AT_ONCE)) as box:
        took, spent = load(box, THREE, THREE_REPLIES, sessions, clients)
        return sessions * 3 / took, spent / sessions


def alone(turns=300):
    """Milliseconds of an append of the only session that a daemon has, from its first turn to its end."""
    with Fleet("30s") as fleet:
        fleet.serve("-n", "1")
        log = fleet.ended(fleet.post(LOOP, loop_replies(turns)))
        return (at(log[-1]) - at(of_type(log, "turn_start")[0])) * 1000 / turns


def take_over(number):
    """Seconds from the death (or stop) of a worker to what others record of each of its sessions."""
    with Fleet("1s") as fleet:
        first = fleet.serve("-n", str(WORKERS), "--drain", "0")
        ids = fleet.submit(fleet.workflow(60), WORKERS)
        fleet.until(lambda: os.path.exists(fleet.dir + "/starts") and len(fleet.starts()) == WORKERS, "they run")
        fleet.serve("-n", str(WORKERS), "--drain", "0")
        begin = time.time()
        first.send_signal(number)
        fleet.until(lambda: len(fleet.starts()) == 2 * WORKERS, "they are taken over")
        return [at(of_type(fleet.records(sid), "session_resume")[0]) - begin for sid in ids]


def first_call_ms(pooled):
    """From a submit to what the first call told another worker. Pooled: where no notification comes through."""
    found = []
    with Fleet("30s") as fleet, contextlib.ExitStack() as pools:
        if pooled:
            fleet.env["SEGUE_STORE"] = pools.enter_context(shared_daemon_test.pooler(fleet.store.rsplit("/", 1)[1]))
        fleet.serve("-n", "4")
        for _ in range(9 if pooled else 15):
            log = fleet.ended(fleet.post())
            found.append((at(of_type(log, "call_end")[0]) - at(log[0])) * 1000)
    return median(found)


def idle(server):
    """Statements a second from one renewal of the lease to the next, which has all that an idle worker
    does; the most connections meanwhile; and what its memory has above one with files, in MiB."""
    with daemon() as box:
        settle(box, 0)
        files = memory_kib(box.process.pid, "VmRSS")
    with Fleet("30s") as fleet:
        fleet.sql(f"ALTER DATABASE {fleet.store.rsplit('/', 1)[1]} SET log_statement = 'all'")
        pid, connections = fleet.serve().pid, []

        def renewals():
            found = [when for when, sql in server.asked() if "segue.renew(" in sql]
            if len(found) == 1:
                connections.append(fleet.connections())
            return found
        fleet.until(lambda: len(renewals()) > 1, "it renews its lease twice")
        begin, end = renewals()[:2]
        count = sum(begin <= when < end for when, _ in server.asked())
        return count / (end - begin), max(connections), (memory_kib(pid, "VmRSS") - files) / 1024


def held(server, sessions=1000):
    """Renewals in a third of the lease, which is 3 s, with so many sessions held."""
    database, url = server.fresh()
    server.sql(f"ALTER DATABASE {database} SET track_functions = 'pl'")
    begin = time.monotonic()
    with daemon(url, "-n", str(sessions), "--lease", "3s") as box:
        path = box.file("s.json", json.dumps({"replies": [{"text": "[PLAN:1]", "delay_ms": HOUR_MS}]}))
        for _ in range(sessions):
            box.submit(box.file("w.json", THREE), path, task="the work")
        settle(box, sessions)
        calls = int(server.sql("SELECT sum(calls) FROM pg_stat_user_functions WHERE funcname = 'renew'", database))
        took = time.monotonic() - begin
        box.end(signal.SIGKILL)
        return calls / took


def long_log(server, megabytes):
    """MiB that `verify` of a long log in the store takes."""
    with Fleet("30s", store=server.fresh()[1], init=False) as fleet:
        sid, log = audit_logs.session_id(1), audit_logs.Log(audit_logs.START_MS)
        log.add("session_start", session=sid, workflow={"name": "long"})
        for _ in range(megabytes * 17):
            log.add("note", text="x" * 60000)
        log.add("session_end", outcome="complete")
        os.mkdir(fleet.logs)
        path = fleet.file(f"logs/{sid}.ndjson", log.bytes())
        ran(SEGUE, "store", "import", fleet.logs, "--store", fleet.store, env=fleet.env)
        os.unlink(path)
        return peak_mib(SEGUE, "verify", "--store", fleet.store, sid, env=fleet.env)


def store(sessions=1000, megabytes=256):
    """Megabytes: of the long log."""
    why = postgres.missing()
    if why:
        print("skipped:", why)
        return
    with Server(options=["log_line_prefix=%n %a "]) as server:
        shared_daemon_test.SERVER = server
        tps, appends = in_turns(ROUNDS, {"pgbench": lambda: server.pgbench_appends(8)[0],
                                         "segue": lambda: server.appends(64, 20000)})
        row("pgbench, the same function, 8 clients", median(tps), "a second")
        row("  appends of 64 sessions, of that", times_as(appends, tps), "", ">= 1.50")
        trips, session, log = in_turns(ROUNDS, {"pgbench": lambda: server.pgbench_appends(1)[1], "session": alone,
                                                "log": lambda: 1000 / server.appends(1, 1000)})
        row("pgbench with one client: a commit", median(trips), "ms")
        row("  one log alone: an append, in such commits", times_as(log, trips), "", "<= 1.50")
        row("  one session alone, with its turn: the same", times_as(session, trips), "", "<= 1.50")
        turns, _ = through_the_daemon(sessions, server.fresh()[1], 8)
        row("turns through a daemon, 16 at once", turns, "a second", ">= 1020")
        row("  of pgbench's", turns / median(tps), "", ">= 0.35")
        files, shared = in_turns(ROUNDS, {"files": lambda: through_the_daemon(200)[1],
                                          "store": lambda: through_the_daemon(200, server.fresh()[1])[1]})
        row("processor time of a daemon with files", median(files), "ms/session")
        row("  with the store, of that", times_as(shared, files), "", "<= 1.50")
        row("submit to the first call elsewhere, median", first_call_ms(pooled=False), "ms", "<= 20")
        if postgres.Pooler.there():
            row("  behind a pooler, where no notice comes", first_call_ms(pooled=True), "ms", "<= 2200")
        for number, goal, most in ((signal.SIGKILL, 1.4, 2), (signal.SIGSTOP, 1.4, 2), (signal.SIGTERM, 0.5, 0.5)):
            took = [s for _ in range(ROUNDS) for s in take_over(number)]
            row(f"take-over after {number.name}, lease 1 s: median", median(took), "s", f"<= {goal}")
            row("  the longest", max(took), "s", f"<= {most}")
        rate, connections, memory = idle(server)
        row("an idle worker: statements", rate, "a second", "<= 1")
        row("  connections, the most", connections, "", "<= 4")
        row("  memory above a daemon with files", memory, "MiB", "<= 4")
        row("renewals each third of a lease, 1,000 held", held(server), "", "<= 1")
        nobody = ("INSERT INTO segue.session (id, state, rest, needs, seq) SELECT gen_random_uuid(), 'ready', 'ready', "
                  "'{nobody}', 1 FROM generate_series(1, 10000); ANALYZE segue.session")
        row("a claim behind 10,000 that fit nobody", server.pgbench(
            f"SELECT * FROM segue.claim('{WORKER}', 8, '{{}}', 65536);\n", nobody, "-c", "1", "-t", "50")[1],
            "ms", "<= 20")
        row(f"memory of verify, a log of {megabytes} MB", long_log(server, megabytes), "MiB", "<= 64")
