"""A store on PostgreSQL beside pgbench, which calls the same function on the same server. The server is
a private one on this machine, with fsync. Times of sessions are those of their records."""
import contextlib
import json
import os
import re
import signal
import time
from statistics import median

from bench import AT_ONCE, LOOP, PROBE, THREE, THREE_REPLIES, compare, load, loop_replies, peak_mib, ran, row
import audit_logs
import postgres
import shared_daemon_test
from daemon import DaemonBox
from program_bench import settle, submit
from support import SEGUE, at, of_type

ROUNDS, WORKERS = 3, 8
WORKER = "00000000-0000-4000-9000-000000000000"
APPEND = """\\set next :seq + 3
SELECT segue.append('%s', ('00000000-0000-4000-8000-' || lpad(:client_id::text, 12, '0'))::uuid, 1, :seq, \
'idle', false, ARRAY[convert_to(rpad('x', 432, 'x') || repeat('ab', 34), 'UTF8'), convert_to(rpad('y', 432, 'y') || \
repeat('ab', 34), 'UTF8'), convert_to(rpad('z', 432, 'z') || repeat('ab', 34), 'UTF8')]);
\\set seq :next
""" % WORKER
MAKE = "SELECT segue.make('%s', ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, '{}', NULL, false) " \
       "FROM generate_series(0, 7) n" % WORKER
CLAIM = f"SELECT * FROM segue.claim('{WORKER}', 8, '{{}}', 65536);\n"
NOBODY = "INSERT INTO segue.session (id, state, rest, needs, seq) SELECT gen_random_uuid(), 'ready', 'ready', " \
         "'{nobody}', 1 FROM generate_series(1, 10000); ANALYZE segue.session"


class Server(postgres.Server):
    def fresh(self):
        """The URL of a database with the tables."""
        url = self.database()
        ran(SEGUE, "store", "init", "--store", url)
        return url

    def pgbench(self, script, prepare, *words):
        """Transactions a second in a fresh database with a worker."""
        database = name(self.fresh())
        self.sql(f"SELECT segue.enter('{WORKER}', 'bench', '{{}}', 'bench', 3600000); " + prepare, database)
        said = self.run("pgbench", "-h", self.dir, "-U", "postgres", "-n", "-M", "extended", *words, "-f", "-",
                        database, input=script.encode())
        return float(re.search(rb"tps = ([0-9.]+)", said)[1])

    def tps(self, clients=8):
        return self.pgbench(APPEND, MAKE, "-c", str(clients), "-j", "2", "-T", "6", "-D", "seq=0")


def name(url):
    return url.rsplit("/", 1)[1]


class Fleet(shared_daemon_test.Fleet):
    def records(self, sid):
        return [json.loads(line) for line in self.segue("show", sid, "--json").stdout.splitlines()]


@contextlib.contextmanager
def daemon(url, *words):
    """One that is asked over its socket, with a store or (None) with files."""
    with DaemonBox() as box:
        if url is not None:
            box.env["SEGUE_STORE"] = url
            del box.env["SEGUE_LOGS"]
        box.serve(*words, *(["--logs", box.logs] if url else []))
        yield box


def through_the_daemon(sessions, url, clients=1):
    """Turns a second, and the daemon's processor time of a session in ms."""
    with daemon(url, "-n", str(AT_ONCE)) as box:
        took, spent = load(box, THREE, THREE_REPLIES, sessions, clients)
        return sessions * 3 / took, spent / sessions


def alone(url, turns=300):
    """Milliseconds of an append of the only session that a daemon has."""
    with daemon(url, "-n", "1") as box:
        return load(box, LOOP, loop_replies(turns), 1, 1)[0] * 1000 / turns


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


def first_call_ms(url):
    """From a submit to the first call, of another worker."""
    with Fleet("30s", store=url) as fleet:
        fleet.serve("-n", "4")
        workflow = fleet.workflow(0)
        logs = []
        for _ in range(9):
            ids = fleet.submit(workflow)
            fleet.until(lambda: fleet.count("state <> 'ended'") == 0, "it ends")
            logs.append(fleet.records(ids[0]))
        return median((at(of_type(log, "call_start")[0]) - at(log[0])) * 1000 for log in logs)


def idle(server, seconds=20):
    """What an idle worker does between renewals of its lease, and what its memory has above one with files."""
    with daemon(None) as box:
        files = settle(box, 0)
    url = server.fresh()
    with daemon(url, "--lease", "30s") as box:
        above = settle(box, 0) - files
        of_it = f"FROM pg_stat_database WHERE datname = '{name(url)}'"
        time.sleep(seconds)  # the server counts late what its start has asked
        before, connections = map(int, server.sql("SELECT xact_commit, numbackends " + of_it).split("|"))
        time.sleep(seconds)  # two renewals of the lease
        statements = int(server.sql("SELECT xact_commit " + of_it)) - before
    row("an idle worker: statements", statements / seconds, "a second", "<= 1")
    row("  connections", connections, "", "<= 4")
    row("  memory above a daemon with files", above / 1024, "MiB", "<= 4")


def held(server, sessions=1000):
    """Renewals in a third of the lease, which is 3 s, with so many sessions held."""
    url = server.fresh()
    server.sql(f"ALTER DATABASE {name(url)} SET track_functions = 'pl'")
    begin = time.monotonic()
    with daemon(url, "-n", str(sessions), "--lease", "3s") as box:
        submit(box, sessions)
        settle(box, sessions)
        calls = int(server.sql("SELECT sum(calls) FROM pg_stat_user_functions WHERE funcname = 'renew'", name(url)))
        box.end(signal.SIGKILL)
        return calls / (time.monotonic() - begin)


def long_log(megabytes):
    """MiB that `verify` of a long log in the store takes."""
    with Fleet("30s") as fleet:
        sid, log = audit_logs.session_id(1), audit_logs.Log(audit_logs.START_MS)
        log.add("session_start", session=sid, workflow={"name": "long"})
        for _ in range(megabytes * 17):
            log.add("note", text="x" * 60000)
        log.add("session_end", outcome="complete")
        path = fleet.file(f"{sid}.ndjson", log.bytes())
        ran(SEGUE, "store", "import", path, "--store", fleet.store, env=fleet.env)
        os.unlink(path)
        return peak_mib(SEGUE, "verify", "--store", fleet.store, sid, env=fleet.env)


def store(sessions=1000, megabytes=256):
    """Megabytes: of the long log."""
    postgres.need()
    with Server() as server:
        shared_daemon_test.SERVER = server
        compare(ROUNDS, ">= 1.50", "pgbench, the same function, 8 clients", "a second", server.tps,
                "appends of 64 sessions", lambda: float(ran(PROBE, "append", server.fresh(), "64", "20000")[2]))
        turns, _ = through_the_daemon(sessions, server.fresh(), 8)
        row("turns through a daemon, 16 at once", turns, "a second", ">= 1020")
        row("  of pgbench's", turns / server.tps(), "", ">= 0.35")
        compare(ROUNDS, "<= 1.50", "pgbench with one client: a commit", "ms", lambda: 1000 / server.tps(1),
                "one session alone: an append, with its turn", lambda: alone(server.fresh()))
        compare(ROUNDS, "<= 1.50", "processor time of a daemon with files", "ms/session",
                lambda: through_the_daemon(200, None)[1],
                "with the store", lambda: through_the_daemon(200, server.fresh())[1])
        row("submit to the first call elsewhere, median", first_call_ms(server.fresh()), "ms", "<= 20")
        with shared_daemon_test.pooler(name(server.fresh())) as url:
            if url is not None:
                row("  behind a pooler, where no notice comes", first_call_ms(url), "ms", "<= 2200")
        for number, goal, most in ((signal.SIGKILL, 1.4, 2), (signal.SIGSTOP, 1.4, 2), (signal.SIGTERM, 0.5, 0.5)):
            took = [s for _ in range(ROUNDS) for s in take_over(number)]
            row(f"take-over after {number.name}, lease 1 s: median", median(took), "s", f"<= {goal}")
            row("  the longest", max(took), "s", f"<= {most}")
        idle(server)
        row("renewals each third of a lease, 1,000 held", held(server), "", "<= 1")
        row("a claim behind 10,000 that fit nobody", 1000 / server.pgbench(CLAIM, NOBODY, "-t", "50"), "ms", "<= 20")
        row(f"memory of verify, a log of {megabytes} MB", long_log(megabytes), "MiB", "<= 64")
