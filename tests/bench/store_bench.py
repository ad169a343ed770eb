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
import subprocess
import time
from statistics import median

from bench import cpu_ms, in_turns, load, memory_kib, peak_mib, ran, request, row, seconds, times_as
import audit_logs
import postgres
import shared_daemon_test
from daemon import DaemonBox
from flow_bench import AT_ONCE, THREE, THREE_REPLIES, flow, movement
from support import BUILD, SEGUE, WAIT_S, expect

PROBE = BUILD + "/helpers/append_probe"
ROUNDS, WORKERS, LOOPS = 3, 8, 150
WORKER = "00000000-0000-4000-9000-000000000000"
APPEND = """\\set next :seq + 3
SELECT segue.append(('00000000-0000-4000-8000-' || lpad(:client_id::text, 12, '0'))::uuid, 1, :seq, \
:next, :next * 500, repeat('ab', 32), 'idle', false, ARRAY[:seq * 500, :seq * 500 + 500, :seq * 500 + \
1000], ARRAY[convert_to(repeat('x', 500), 'UTF8'), convert_to(repeat('y', 500), 'UTF8'), \
convert_to(repeat('z', 500), 'UTF8')]);
\\set seq :next
"""


# One session that goes round LOOPS times: two turns each, and one append a turn.
ROUND = flow(movement("write", "write {task}", ("written", "review")),
             movement("review", "review {previous_response}", ("good", "COMPLETE"), ("bad", "write")),
             max_movements=1000)
ROUND_REPLIES = [{"text": "I did it.\n\n[WRITE:1]", "movement": "write", "times": 0},
                 {"text": "Again.\n\n[REVIEW:2]", "movement": "review", "times": LOOPS - 1},
                 {"text": "Good.\n\n[REVIEW:1]", "movement": "review"}]


class Server(postgres.Server):
    def fresh(self):
        """A database with the tables: its name and URL."""
        url = self.database()
        ran(SEGUE, "store", "init", "--store", url)
        return url.rsplit("/", 1)[1], url

    def entered(self):
        """The name of one with a worker in it."""
        database, _ = self.fresh()
        self.sql(f"SELECT segue.enter('{WORKER}', 'bench', '{{}}', 'bench', 3600000)", database)
        return database

    def run_pgbench(self, database, script, *words):
        """Transactions a second, and the milliseconds of one."""
        path = self.dir + "/script.sql"
        with open(path, "w", encoding="utf-8") as f:
            f.write(script)
        os.chmod(path, 0o644)
        said = self.run("pgbench", "-h", self.dir, "-U", "postgres", "-n", "-M", "extended", *words, "-f", path,
                        database).decode()
        return [float(re.search(what + r" = ([0-9.]+)", said)[1]) for what in ("tps", "latency average")]

    def pgbench(self, clients, seconds_each=6):
        database = self.entered()
        self.sql(f"SELECT segue.make('{WORKER}', ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, "
                 f"'{{}}') FROM generate_series(0, {clients - 1}) n", database)
        found = self.run_pgbench(database, APPEND, "-c", str(clients), "-j", "2", "-T", str(seconds_each), "-D", "seq=0")
        expect(int(self.sql("SELECT count(*) FROM segue.line", database)) > 0, "nothing was appended")
        return found

    def asked(self):
        """What workers asked of a database that logs it: pairs of seconds since 1970 and SQL."""
        with open(self.dir + "/log", encoding="utf-8", errors="replace") as f:
            found = re.findall(r"^(\S+) (\S+) UTC segue [0-9a-f-]{36} LOG:  execute [^:]*: (.*)$", f.read(), re.M)
        return [(seconds(f"{day}T{at}"), sql) for day, at, sql in found]

    def appends(self, logs, batches):
        _, url = self.fresh()
        return list(map(float, ran(PROBE, url, str(logs), str(batches))[2].split()))


class Fleet(shared_daemon_test.Fleet):
    """Of the script provider."""
    def post(self, n=1, workflow=THREE, replies=THREE_REPLIES):
        """The ids of sessions that were submitted."""
        path, said = self.file("w.json", workflow), self.file("s.json", json.dumps({"replies": replies}))
        ids = []
        for _ in range(n):
            done = self.segue("submit", path, "--scenario", said, "--cwd", self.cwd, "-t", "the work")
            expect(done.returncode == 0, done)
            ids.append(done.stdout.decode().strip().rsplit("#", 1)[-1])
        return ids

    def ended(self, n):
        self.until(lambda: self.count("state = 'ended'") == n, "they end")

    def times(self, sid):
        """When the records of a session were made: pairs of type and seconds since 1970."""
        lines = self.segue("show", sid, "--json").stdout.splitlines()
        return [(r["type"], seconds(r["ts"])) for r in map(json.loads, lines)]

    def name(self):
        return self.store.rsplit("/", 1)[1]

    def connections(self):
        return int(self.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'segue %' AND "
                            f"datname = '{self.name()}'"))


def through_the_daemon(sessions):
    """Turns a second, from the first call to the last end as the records say it, and the daemon's
    processor time of a record. It is looked at once a second: each look is a program."""
    with Fleet("30s") as fleet:
        fleet.post(sessions)
        daemon = fleet.serve("-n", str(AT_ONCE))
        while fleet.count("state = 'ended'") < sessions:
            time.sleep(1)  # the clock is the records'
        took = float(fleet.sql(
            "SELECT extract(epoch FROM max(t) - min(t)) FROM (SELECT substring(convert_from(line, 'UTF8') "
            "FROM '\"ts\":\"([^\"]+)\"')::timestamptz AS t FROM segue.line WHERE seq > 1) l"))
        records = int(fleet.sql("SELECT sum(seq) FROM segue.session"))
        return sessions * 3 / took, cpu_ms(daemon.pid) / records


def alone():
    """Milliseconds of an append of the only session that a daemon has, from its first turn to its end."""
    with Fleet("30s") as fleet:
        fleet.serve("-n", "1")
        sid = fleet.post(1, ROUND, ROUND_REPLIES)[0]
        fleet.ended(1)
        times = fleet.times(sid)
        turns = [at for kind, at in times if kind == "turn_start"]
        expect(len(turns) == 2 * LOOPS, len(turns), "turns")
        return (times[-1][1] - turns[0]) * 1000 / len(turns)


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
        return [next(at for kind, at in fleet.times(sid) if kind == "session_resume") - begin for sid in ids]


def first_call(pooled):
    """Milliseconds from a submit to what the first call told another worker, and of the command. Pooled:
    where no notification comes through."""
    found, took = [], []
    with Fleet("30s") as fleet, contextlib.ExitStack() as pools:
        if pooled:
            fleet.env["SEGUE_STORE"] = pools.enter_context(shared_daemon_test.pooler(fleet.name()))
        fleet.serve("-n", "4")
        for n in range(9 if pooled else 15):
            begin = time.monotonic()
            sid = fleet.post()[0]
            took.append(time.monotonic() - begin)
            fleet.ended(n + 1)
            at = dict(reversed(fleet.times(sid)))  # the first of each type
            found.append(at["call_end"] - at["session_start"])
    return median(found) * 1000, median(took) * 1000


def posted(sessions, url=None):
    """The processor time of a daemon for a session that it gets over its socket, in ms."""
    with DaemonBox() as box:
        if url is not None:
            box.env["SEGUE_STORE"] = url
            del box.env["SEGUE_LOGS"]
        box.serve("-n", str(AT_ONCE), *(["--logs", box.logs] if url else []))
        return load(box, request(box, THREE, THREE_REPLIES), sessions, 1)[1] / sessions


def settled(look):
    """What is looked at, once it stays as it is for half a second."""
    end, seen = time.monotonic() + WAIT_S, [look()]
    while len(seen) < 10 or len(set(seen[-10:])) > 1:
        expect(time.monotonic() < end, "it does not settle:", seen[-10:])
        time.sleep(0.05)  # between two looks
        seen.append(look())
    return seen[-1]


def idle(server):
    """Statements a second from one renewal of the lease to the next, which has all that an idle worker
    does; the most connections meanwhile; and what its memory has above one with files, in MiB."""
    with DaemonBox() as box:
        box.serve()
        files = settled(lambda: memory_kib(box.process.pid, "VmRSS"))
        box.end()
    with Fleet("30s") as fleet:
        fleet.sql(f"ALTER DATABASE {fleet.name()} SET log_statement = 'all'")
        daemon = fleet.serve()
        most = 0

        def renewals():
            nonlocal most
            most = max(most, fleet.connections())
            return [at for at, sql in server.asked() if "segue.renew(" in sql]
        fleet.until(renewals, "it renews its lease")
        most = 0
        fleet.until(lambda: len(renewals()) > 1, "it renews it again")
        begin, end = renewals()[:2]
        count = sum(begin <= at < end for at, _ in server.asked())
        return count / (end - begin), most, (memory_kib(daemon.pid, "VmRSS") - files) / 1024


def fits_nobody(server):
    """Milliseconds of a claim with 10,000 ready sessions before it that need a label of nobody."""
    database = server.entered()
    server.sql("INSERT INTO segue.session (id, state, rest, needs, seq) SELECT gen_random_uuid(), 'ready', 'ready', "
               "'{nobody}', 1 FROM generate_series(1, 10000)", database)
    server.sql("ANALYZE segue.session", database)
    return server.run_pgbench(database, f"SELECT * FROM segue.claim('{WORKER}', 8, '{{}}', 65536);\n", "-c", "1",
                              "-t", "50")[1]


def held(server):
    """Renewals in a third of the lease, with as many sessions held as append_probe takes."""
    database, url = server.fresh()
    server.sql(f"ALTER DATABASE {database} SET track_functions = 'pl'")
    held_s = float(ran(PROBE, url, "1000", "1000", "9")[2].split()[3])
    calls = int(server.sql("SELECT sum(calls) FROM pg_stat_user_functions WHERE funcname = 'renew'", database))
    return calls / (held_s / 1.0)  # its lease is 3 s


def long_log(server, megabytes):
    """MiB that `verify` of a long log in the store takes."""
    with Fleet("30s", store=server.fresh()[1], init=False) as fleet:
        sid, folder = audit_logs.session_id(1), fleet.dir + "/long"
        log = audit_logs.Log(audit_logs.START_MS)
        log.add("session_start", session=sid, workflow={"name": "long"})
        for _ in range(megabytes * 17):
            log.add("note", text="x" * 60000)
        log.add("session_end", outcome="complete")
        os.mkdir(folder)
        fleet.file(f"long/{sid}.ndjson", log.bytes())
        done = fleet.segue("store", "import", folder, "--store", fleet.store, timeout=1800)
        expect(done.returncode == 0, done)
        os.unlink(f"{folder}/{sid}.ndjson")
        return peak_mib(SEGUE, "verify", "--store", fleet.store, sid, env=fleet.env, statuses=(0, 1))


def speed(server):
    """The store alone: transactions a second of pgbench, and milliseconds of one with one client."""
    tps, appends = in_turns(ROUNDS, {"pgbench": lambda: server.pgbench(8)[0],
                                     "segue": lambda: server.appends(64, 20000)[0]})
    row("pgbench, the same function, 8 clients", median(tps), "a second")
    row("appends of 64 sessions", median(appends), "a second")
    row("of pgbench's", times_as(appends, tps), "", ">= 1.50")
    trips, session, log = in_turns(ROUNDS, {"pgbench": lambda: server.pgbench(1)[1], "session": alone,
                                            "log": lambda: server.appends(1, 1000)[1]})
    row("pgbench with one client: a commit", median(trips), "ms")
    row("one log alone: an append, in such commits", times_as(log, trips), "", "<= 1.50")
    row("one session alone, with its turn: an append, in such", times_as(session, trips), "", "<= 1.50")
    return median(tps)


def busy(server, tps, sessions):
    """Daemons that have much to do."""
    turns, cpu = through_the_daemon(sessions)
    row("turns through a daemon, 16 at once", turns, "a second", ">= 1020")
    row("of pgbench's", turns / tps, "", ">= 0.35")
    row("processor time of the daemon, a record", cpu * 1000, "us")
    files, store = in_turns(ROUNDS, {"files": lambda: posted(200),
                                     "store": lambda: posted(200, server.fresh()[1])})
    row("processor time of a daemon with files", median(files), "ms/session")
    row("of one with the store", median(store), "ms/session")
    row("of that with files", times_as(store, files), "", "<= 1.50")


def waits():
    """How long a session waits for a worker."""
    found, took = first_call(pooled=False)
    row("a submit command", took, "ms")
    row("submit to the first call elsewhere, median", found, "ms", "<= 20")
    if postgres.Pooler.there():
        row("the same behind a pooler, where no notice comes", first_call(pooled=True)[0], "ms", "<= 2200")
    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
        took = [s for _ in range(ROUNDS) for s in take_over(number)]
        late = number == signal.SIGTERM
        row(f"take-over after {number.name}, lease 1 s: median", median(took), "s",
               "<= 0.5" if late else "<= 1.4")
        row("the longest", max(took), "s", "<= 0.5" if late else "<= 2")


def rest(server, megabytes):
    """What a worker and a queue cost that wait, and what a long log takes."""
    rate, connections, memory = idle(server)
    row("an idle worker: statements", rate, "a second", "<= 1")
    row("connections, the most", connections, "", "<= 4")
    row("memory above a daemon with files", memory, "MiB", "<= 4")
    row("renewals each third of a lease, 1,000 held", held(server), "", "<= 1")
    row("a claim behind 10,000 that fit nobody", fits_nobody(server), "ms", "<= 20")
    row(f"memory of verify, a log of {megabytes} MB", long_log(server, megabytes), "MiB", "<= 64")


def store(sessions=1000, megabytes=256):
    """Megabytes: of the long log."""
    why = postgres.missing()
    if why:
        print("skipped:", why)
        return
    with Server(options=["log_timezone=UTC", "log_line_prefix=%m %a "]) as server:
        shared_daemon_test.SERVER = server
        tps = speed(server)
        busy(server, tps, sessions)
        waits()
        rest(server, megabytes)
