#!/usr/bin/env python3
"""Several daemons on one store: one queue, and what happens when one of them dies, hangs or goes."""
import contextlib
import json
import os
import signal
import subprocess
import sys
import time

from support import SEGUE, WAIT_S, Box, at_once, expect, let_go, main, need_build, skip, slack
import postgres

SERVER = None
MOVEMENTS = 3
WORKFLOW = """
name: three
initial_movement: a
max_movements: 5
provider: script
movements:
  - name: a
    command: [sh, -c, 'echo "$SEGUE_SESSION $SEGUE_CALL" >> %(starts)s; sleep %(delay)s']
    rules: [{condition: when(exit == 0), next: b}]
  - name: b
    command: [sh, -c, 'echo "$SEGUE_SESSION $SEGUE_CALL" >> %(starts)s; sleep %(delay)s; while [ -e %(gate)s ]; do sleep 0.05; done']
    rules: [{condition: when(exit == 0), next: c}]
  - name: c
    command: [sh, -c, 'echo "$SEGUE_SESSION $SEGUE_CALL" >> %(starts)s; sleep %(delay)s']
    rules: [{condition: when(exit == 0), next: COMPLETE}]
"""


STOPS = """
name: stops
initial_movement: a
max_movements: 1
provider: script
movements:
  - name: a
    command: ["true"]
    rules: [{condition: when(exit == 0), next: b}]
  - name: b
    command: ["true"]
    rules: [{condition: when(exit == 0), next: COMPLETE}]
"""


FAILS = """
name: fails
provider: script
movements:
  - {name: a, instruction: do it, rules: [{condition: always, next: COMPLETE}]}
"""


class Fleet(Box):
    def __init__(self, lease="1s", store=None, env=(), init=True):
        super().__init__()
        os.chmod(self.dir, 0o700)
        self.env.update(env)
        self.store = store or SERVER.database()
        self.env["SEGUE_STORE"] = self.store
        self.lease = lease
        self.daemons = []
        if init:
            expect(self.segue("store", "init").returncode == 0, "init")

    def __exit__(self, *exc):
        for d in self.daemons:
            if d.poll() is None:
                d.send_signal(signal.SIGCONT)
        let_go(*self.daemons)
        super().__exit__(*exc)

    def serve(self, *words):
        n = len(self.daemons)
        os.mkdir(f"{self.dir}/run{n}", 0o700)
        with open(f"{self.dir}/said{n}", "wb") as said:
            d = subprocess.Popen([SEGUE, "serve", "--lease", self.lease, "--socket",
                                  f"{self.dir}/run{n}/s.sock", "--logs", f"{self.dir}/logs{n}",
                                  *words], env=self.env, cwd=self.cwd, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=said)
        self.daemons.append(d)
        self.until(lambda: b"ready on" in self.said(n), "a daemon gets ready")
        return d

    def said(self, n):
        with open(f"{self.dir}/said{n}", "rb") as f:
            return f.read()

    def workflow(self, delay=0.1, held=False):
        """Of three calls. Those of a while last longer on a busy machine: they are to be seen side by side.
        Held, the second call of each session lasts until `works` has seen as many as it wants."""
        delay *= min(slack(), 6) if delay >= 0.3 else 1
        gate = self.dir + "/gate"
        if held:
            self.file("gate", "")
        return self.file("three.yaml", WORKFLOW % {"starts": self.dir + "/starts", "delay": delay, "gate": gate})

    def works(self, truth, what="they work"):
        """Waits until it is true of sessions that are held meanwhile."""
        self.until(truth, what, told=self.standing)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.dir + "/gate")

    def submit_on(self, labels, workflow):
        return self.submit(workflow, words=("--on", labels))

    def submit(self, workflow, n=1, env=None, words=()):
        found = []
        for i in range(n):
            done = self.segue("submit", workflow, "--cwd", self.cwd, "--task", f"task {i}", *words, env=env)
            expect(done.returncode == 0, done)
            found.append(done.stdout.decode().strip())
        return found

    def submit_to(self, daemon, workflow, n=1, words=()):
        """Over that daemon's socket: it begins them."""
        env = {name: value for name, value in self.env.items() if name != "SEGUE_STORE"}
        return self.submit(workflow, n, env, ("--socket", f"{self.dir}/run{daemon}/s.sock", *words))

    def sql(self, text):
        return SERVER.sql(text, self.store.rsplit("/", 1)[1].split("?")[0])

    def count(self, where):
        return int(self.sql(f"SELECT count(*) FROM segue.session WHERE {where}"))

    def until(self, truth, what, seconds=WAIT_S, told=None):
        end = time.monotonic() + seconds
        with postgres.one_connection():
            while not truth():
                if time.monotonic() >= end:
                    expect(False, "waited in vain:", what, told() if told else "")
                time.sleep(0.03)  # a look at a time; the deadline is above

    def standing(self):
        """For whoever waited in vain: what has not ended, who has it, what was recorded last, and what the server does."""
        rows = self.sql("SELECT s.id, s.state, s.rest, s.seq, s.fence, s.deaths, s.asked, s.needs, s.ready_at - clock_timestamp() AS ready_in, "
                        "s.why, w.name, w.lease_until - clock_timestamp() AS lease_left FROM segue.session s "
                        "LEFT JOIN segue.worker w ON w.id = s.owner WHERE s.state <> 'ended' ORDER BY s.place LIMIT 20").splitlines()
        told = ["sessions that have not ended (state rest seq fence deaths asked needs ready_in why worker lease_left):", *rows]
        for sid in [row.split("|")[0] for row in rows[:5]]:
            last = self.sql(f"SELECT left(convert_from(line, 'UTF8'), 300) FROM segue.line WHERE session = '{sid}' ORDER BY seq DESC LIMIT 3")
            told += [f"last records of {sid}:", *reversed(last.splitlines())]
        told += ["workers:", self.sql("SELECT name, labels, lease_until - clock_timestamp() FROM segue.worker ORDER BY begun"),
                 "connections:", self.sql("SELECT pid, application_name, state, wait_event, clock_timestamp() - xact_start, pg_blocking_pids(pid), "
                                          "left(query, 120) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")]
        for n, d in enumerate(self.daemons):
            told.append(f"daemon {n}, pid {d.pid}, {'ended: ' + str(d.returncode) if d.poll() is not None else 'alive'}: "
                        + self.said(n).decode(errors="replace")[-1500:])
        return "\n".join(told)

    def all_complete(self, ids):
        self.until(lambda: self.count("state = 'ended'") == len(ids), "all end", told=self.standing)
        rows = [json.loads(r) for r in self.segue("ls", "--json", "-n", "500").stdout.splitlines()]
        expect(sorted(r["id"] for r in rows) == sorted(ids), "other sessions")
        expect({r["status"] for r in rows} == {"complete"}, {r["status"] for r in rows})
        for at in range(0, len(ids), 50):
            done = self.segue("verify", *ids[at:at + 50])
            expect(done.returncode == 0, done)

    def starts(self):
        with open(self.dir + "/starts", encoding="utf-8") as f:
            return f.read().splitlines()


def what_hangs_is_told():
    """The test's own words for a session that does not end say where it stands."""
    with Fleet("30s") as fleet:
        (sid,) = fleet.submit_on("gpu", fleet.workflow())
        fleet.serve()
        told = fleet.standing()
        expect(f"{sid}|ready|ready|1|" in told and "{gpu}" in told and '"type":"session_start"' in told and "alive: segue serve" in told, told)


def one_queue():
    with Fleet("30s") as fleet:
        for _ in range(2):
            fleet.serve("-n", "3")
        ids = fleet.submit(fleet.workflow(), 8)
        fleet.all_complete(ids)
        starts = fleet.starts()
        expect(len(starts) == len(set(starts)) == 8 * MOVEMENTS, "starts", len(starts))
        expect(fleet.count("fence <> 2") == 0, "a session was claimed more than once")


def it_waits_until_somebody_has_a_place():
    with Fleet("30s") as fleet:
        ids = fleet.submit(fleet.workflow())
        rows = [json.loads(r) for r in fleet.segue("ls", "--json").stdout.splitlines()]
        expect(rows[0]["status"] == "queued" and rows[0]["waits"] == "there is no worker", rows)
        fleet.serve()
        fleet.all_complete(ids)


def a_slow_one_leaves_its_queue_to_others():
    """It keeps those that wait only while its places become free so quickly that nobody else is of use."""
    with Fleet("30s") as fleet:
        fleet.serve("-n", "1")
        quick = fleet.submit_to(0, fleet.workflow(0), 12)
        slow = fleet.submit_to(0, fleet.workflow(3), 5)
        fleet.until(lambda: fleet.count("state = 'ready'") == 4 and fleet.count("state = 'held'") == 1,
                    "it lets go of them", told=fleet.standing)
        fleet.serve("-n", "4")
        fleet.until(lambda: fleet.count("state = 'held'") == 5, "another one takes them", told=fleet.standing)
        expect(fleet.sql("SELECT count(DISTINCT owner) FROM segue.session WHERE state = 'held'") == "2", fleet.standing())
        fleet.all_complete(quick + slow)
        expect(len(fleet.starts()) == 17 * MOVEMENTS, "a call was repeated")


def it_goes_where_its_folder_is():
    with Fleet("30s") as fleet:
        ids = fleet.submit(fleet.workflow(), 2)
        fleet.sql(f"UPDATE segue.session SET needs = '{{gpu}}' WHERE id = '{ids[0]}'")
        fleet.serve()
        fleet.until(lambda: fleet.count("state = 'ended'") == 1, "the other one ends")
        expect(fleet.count("state = 'ready'") == 1, "it was taken without its label")
        (row,) = [json.loads(r) for r in fleet.segue("ls", "--json", "-s", "queued").stdout.splitlines()]
        expect(row["waits"] == "no worker has label gpu" and "worker" not in row, row)
        expect(b"waits: no worker has label gpu" in
               fleet.segue("ls", env={**fleet.env, "COLUMNS": "180"}).stdout, "ls for people")
        fleet.serve("--label", "gpu")
        fleet.all_complete(ids)


def it_goes_where_it_was_sent():
    """--on, and shared_paths of the user's configuration, say which workers have the folder."""
    with Fleet("30s") as fleet:
        flow, cwd = fleet.workflow(), ("--cwd", fleet.cwd)

        def sent(*words):
            done = fleet.segue("submit", flow, *cwd, *words)
            expect(done.returncode == 0, words, done)
            return done.stdout.decode().strip().rsplit("#", 1)[-1]

        ids = [sent("--on", "gpu"), sent("--on", "gpu,big")]
        fleet.config(f"shared_paths:\n  /: everywhere\n  {fleet.dir}/: nfs1\n  {fleet.dir}/wor: no\n")
        ids += [sent(), sent("--on", "gpu")]
        needs = [fleet.sql(f"SELECT needs FROM segue.session WHERE id = '{i}'") for i in ids]
        expect(needs == ["{gpu}", "{gpu,big}", "{nfs1}", "{gpu}"], needs)
        fleet.serve("--label", "gpu")
        fleet.until(lambda: fleet.count("state = 'ended'") == 2, "those for gpu end")
        rows = [json.loads(r) for r in fleet.segue("ls", "--json", "-s", "queued").stdout.splitlines()]
        expect(sorted(r["waits"] for r in rows) == ["no worker has label big", "no worker has label nfs1"], rows)
        fleet.serve("--label", "nfs1", "--label", "big", "--label", "gpu")
        fleet.all_complete(ids)
        for words, says in ((("--on", "a b"), b"no spaces"), (("--on", ""), b"1 to 128 bytes"),
                            (("--on", "a,,b"), b"1 to 128 bytes"), (("--on", ",".join(f"l{i}" for i in range(70))), b"64 labels")):
            done = fleet.segue("submit", flow, *cwd, *words)
            expect(done.returncode == 2 and says in done.stderr, words, done)
        # A daemon that is asked over its socket makes such sessions too.
        there = ("--socket", fleet.dir + "/run0/s.sock")
        sid = sent("--on", "tpu,big", *there)
        fleet.until(lambda: fleet.sql(f"SELECT needs FROM segue.session WHERE id = '{sid}'") == "{tpu,big}", "its needs")
        mine = sent(*there)
        expect(fleet.sql(f"SELECT needs FROM segue.session WHERE id = '{mine}'") == "{nfs1}", "shared_paths")
        first = json.loads(fleet.segue("show", sid, "--json").stdout.splitlines()[0])
        expect(first["config"]["on"] == ["tpu", "big"], first["config"])
        fleet.until(lambda: fleet.count(f"state = 'ready' AND id = '{sid}'") == 1, "it is not this daemon's to run")
        # segue run is a worker that makes one; resume asks for the same labels.
        done = fleet.segue("run", fleet.file("stop.yaml", STOPS), *cwd, "--task", "x", "--on", "far", "--json")
        stopped = json.loads(done.stdout.splitlines()[0])["session"]
        expect(fleet.sql(f"SELECT needs, state FROM segue.session WHERE id = '{stopped}'") == "{far}|idle", done)
        done = fleet.segue("resume", stopped, "--max-movements", "3", "-q")
        expect(done.returncode == 2 and b"far" in done.stderr, done)
        done = fleet.segue("resume", stopped, "--max-movements", "3", "-q", "--label", "far")
        expect(done.returncode == 0, done)
        done = fleet.segue("run", fleet.file("stop.yaml", STOPS), *cwd, "--task", "x", "--logs", fleet.dir + "/l", "--on", "far")
        expect(done.returncode == 2 and b"--store" in done.stderr, done)
        for text, says in (("[a]", b"a map of folders"), ("{work: nfs1}", b"an absolute path"), ("{/work: [a]}", b"a label"),
                           ("{/work: " + "L" * 1024 + "}", b"config.yaml:1:23: a label has 1 to 128 bytes"), ("{/work: a b}", b"a label")):
            fleet.config("shared_paths: " + text)
            done = fleet.segue("submit", flow, *cwd)
            expect(done.returncode == 2 and says in done.stderr, text, done)


def it_is_begun_for_others():
    """A daemon makes its row, with labels that the daemon itself does not have."""
    with Fleet("30s") as fleet:
        fleet.serve()
        odd = 'the"b\\ig'
        ids = fleet.submit_to(0, fleet.workflow(), 2, ("--on", odd + ",gpu"))
        fleet.until(lambda: fleet.count("state = 'ready'") == 2, "it lets go of them", told=fleet.standing)
        needs = fleet.sql("SELECT DISTINCT needs FROM segue.session")
        expect(needs == '{"the\\"b\\\\ig",gpu}', needs)
        fleet.serve("--label", odd, "--label", "gpu")
        fleet.all_complete(ids)


def one_without_its_folder():
    """A worker that does not have a session's folder lets another one take it, and asks again later."""
    with Fleet("30s") as fleet:
        folder = fleet.dir + "/project"
        os.mkdir(folder)
        done = fleet.segue("submit", fleet.workflow(), "--cwd", folder, "--on", "w")
        expect(done.returncode == 0, done)
        os.rename(folder, folder + "-elsewhere")
        fleet.serve("--label", "w")
        fleet.until(lambda: b"does not continue" in fleet.said(0), "it is told")
        fleet.until(lambda: fleet.count("state = 'ready'") == 1, "it goes back")
        fence = fleet.sql("SELECT fence FROM segue.session")
        (row,) = [json.loads(r) for r in fleet.segue("ls", "--json").stdout.splitlines()]
        expect(f":{fleet.daemons[0].pid}: " in row["waits"] and folder in row["waits"], row)
        other = fleet.segue("submit", fleet.workflow(), "--cwd", fleet.cwd)
        expect(other.returncode == 0, other)
        fleet.until(lambda: fleet.count("state = 'ended'") == 1, "others are claimed")
        expect(fleet.sql("SELECT min(fence) FROM segue.session WHERE state = 'ready'") == fence, "it was claimed again at once")
        os.rename(folder + "-elsewhere", folder)
        fleet.serve("--label", "w")
        fleet.until(lambda: fleet.count("state = 'ended'") == 2, "another worker takes it")
        expect(fleet.count("deaths > 0") == 0 and fleet.said(0).count(b"does not continue") <= 3, fleet.said(0))


def a_reason_that_the_database_cannot_say():
    """A worker without the folder gives the session back, whatever characters its name has or is cut in."""
    for encoding in ("LATIN1", "EUC_JP", "UTF8"):
        name = "reason_" + encoding.lower()
        SERVER.sql(f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
        with Fleet("30s", store=SERVER.url(name)) as fleet:
            flow = fleet.workflow()
            folders = [fleet.dir + "/日本☃"] + [f"{fleet.dir}/{'x' * n}{'語' * 80}/{'語' * 80}" for n in range(3)]
            for folder in folders:
                os.makedirs(folder)
                done = fleet.segue("submit", flow, "--task", "x", "--cwd", folder, "--on", "w")
                expect(done.returncode == 0, done)
                os.rename(folder, folder + "-away")
            fleet.serve("--label", "w")
            fleet.until(lambda f=fleet: f.said(0).count(b"does not continue") >= 4, "it is told")
            fleet.until(lambda f=fleet: f.count("state = 'ready' AND why IS NOT NULL") == 4, f"they go back: {encoding}")
            told = [json.loads(r)["waits"] for r in fleet.segue("ls", "--json").stdout.splitlines()]
            expect(len(told) == 4 and all(f":{fleet.daemons[0].pid}: the working directory" in t for t in told), told)
            expect(any(folders[0] in t for t in told) == (encoding != "EUC_JP"), encoding, told)


def killed_stopped_and_gone_on_with(fleet: Fleet):
    """One dies, one hangs, a third goes on, the second comes back."""
    first, second = fleet.serve("-n", "4"), fleet.serve("-n", "4")
    ids = fleet.submit(fleet.workflow(0.5, held=True), 16)
    fleet.works(lambda: fleet.sql("SELECT count(DISTINCT owner) FROM segue.session WHERE "
                                  "state = 'held' AND seq > 8") == "2", "both work")
    first.kill()
    first.wait()
    second.send_signal(signal.SIGSTOP)
    fleet.serve("-n", "8")
    fleet.until(lambda: fleet.count("fence > 2") > 0, "it is taken over")
    second.send_signal(signal.SIGCONT)
    fleet.all_complete(ids)
    resumed = [json.loads(line) for i in ids for line in fleet.segue("show", i, "--json").stdout.splitlines()
               if b'"session_resume"' in line]
    told = [r["worker"] for r in resumed if r["reason"] == "crash"]
    pids = {str(d.pid) for d in fleet.daemons}
    expect(told and all(w["name"].split(":")[-1] in pids for w in told), told)
    after = {w["after"].split(":")[-1] for w in told if "after" in w}
    expect(after and after <= {str(first.pid), str(second.pid)}, after, told)
    expect(all(w["deaths"] >= 1 and w["why"] for w in told if "after" in w), told)
    n = len(fleet.starts())
    expect(n <= 16 * MOVEMENTS + 8, "a call was repeated too often:", n)
    expect(fleet.count("deaths > 1") == 0, "deaths")


def the_answer_to_a_claim_is_lost():
    """The worker that has them without knowing lives on, and takes them up."""
    with Fleet("5m") as fleet:
        ids = fleet.submit(fleet.workflow(), 4)
        fleet.env["SEGUE_FAULT"] = "fail:claim:1-2"
        fleet.serve()
        del fleet.env["SEGUE_FAULT"]
        fleet.all_complete(ids)
        expect(len(fleet.starts()) == 4 * MOVEMENTS, "a call was repeated")
        expect(fleet.count("deaths > 0") == 0, "deaths")


def it_takes_three_workers_with_it(fleet: Fleet):
    """The fourth one stops it; it is left alone until a person resumes it."""
    session = fleet.submit(fleet.workflow(30))[0]
    for n in range(3):
        daemon = fleet.serve()
        fleet.until(lambda n=n: os.path.exists(fleet.dir + "/starts") and
                    len(fleet.starts()) == n + 1, "its call begins")
        daemon.kill()
        daemon.wait()
    fleet.serve()
    fleet.until(lambda: fleet.count("state = 'idle'") == 1, "it is stopped")
    row = json.loads(fleet.segue("ls", "--json").stdout)
    expect(row["status"] == "stopped" and "3 workers died" in row["message"], row)
    last = json.loads(fleet.segue("show", session, "--json").stdout.splitlines()[-1])
    expect(last["type"] == "session_stop" and last["reason"] == "poison", last)
    expect(fleet.segue("verify", session).returncode == 0, "verify")
    expect(len(fleet.starts()) == 3, "it was begun a fourth time")
    going = fleet.start("resume", session)
    fleet.until(lambda: len(fleet.starts()) == 4, "a person resumes it")
    expect(fleet.count("deaths = 0") == 1, "deaths are counted anew")
    going.kill()
    going.wait()


STUBBORN = """
name: stubborn
initial_movement: a
provider: script
movements:
  - name: a
    command: [sh, -c, 'trap "" TERM; while :; do echo $$ >> %s; sleep 0.02; done']
    rules: [{condition: when(exit == 0), next: COMPLETE}]
"""


def a_stopped_worker_leaves_nothing_at_work(fleet: Fleet):
    """Its program ignores TERM, and is dead before another worker is even there."""
    first = fleet.serve("--drain", "0")
    ticks = fleet.dir + "/ticks"
    session = fleet.submit(fleet.file("stubborn.yaml", STUBBORN % ticks))[0]

    def pids():
        if not os.path.exists(ticks):
            return []
        with open(ticks, encoding="utf-8") as f:
            return f.read().split()

    fleet.until(lambda: len(pids()) > 100, "it works for longer than a lease")
    program = pids()[0]
    expect(set(pids()) == {program}, "it was begun again")
    first.send_signal(signal.SIGSTOP)
    fleet.until(lambda: not os.path.exists("/proc/" + program), "it is killed")
    fleet.serve("--drain", "0")
    fleet.until(lambda: len(set(pids())) == 2, "another one goes on")
    first.send_signal(signal.SIGCONT)
    done = fleet.segue("cancel", session)
    expect(done.returncode == 0, done)


def it_goes_and_another_goes_on():
    with Fleet("30s") as fleet:
        ids = fleet.submit(fleet.workflow(0.4, held=True), 4)
        first = fleet.serve("--drain", "0")
        fleet.works(lambda: fleet.count("state = 'held'") == 4)
        fleet.serve()
        first.terminate()
        first.wait(WAIT_S)
        fleet.until(lambda: fleet.count("state = 'ready'") == 0, "the other one takes them", 10)
        fleet.all_complete(ids)
        expect(fleet.count("deaths > 0") == 0, "that was no death")


def what_broke_is_not_claimed_again(fleet: Fleet):
    """It would break again at once, each time with a call that costs: a person resumes it."""
    fleet.serve(), fleet.serve()
    flow = fleet.file("one.yaml", FAILS)
    for error, most in (("refused", 1), ("protocol", 1), ("bad_request", 1), ("not_found", 1), ("crashed", 3)):
        replies = fleet.file(error + ".yaml", "replies:\n" + f"  - {{movement: a, error: {{class: {error}}}}}\n" * 9)
        sid = fleet.submit(flow, words=("--scenario", replies))[0]
        fleet.until(lambda: fleet.count(f"id = '{sid}' AND state = 'idle'") == 1, error + " stops", told=fleet.standing)
        other = fleet.submit(fleet.workflow(0))[0]  # the place that it left is used
        fleet.until(lambda: fleet.count(f"id = '{other}' AND state = 'ended'") == 1, "another one ends")

        def stops():
            return int(fleet.sql("SELECT count(*) FROM segue.line WHERE session = '" + sid +
                                 "' AND position('\"type\":\"session_stop\"'::bytea IN line) > 0"))
        expect(stops() == most, error, "was tried again", stops(), "times")
        expect(fleet.segue("resume", sid).returncode == 0 or stops() > 1, "a person's word")
        fleet.until(lambda: stops() == most + 1, "a person tried it again", told=fleet.standing)


def the_server_crashes_under_them():
    with Fleet("5m") as fleet:  # on a loaded machine it is away for long
        ids = fleet.submit(fleet.workflow(0.3, held=True), 10)
        fleet.serve()
        fleet.works(lambda: fleet.count("state = 'held'") >= 5)
        for _ in range(2):
            SERVER.stop("immediate")
            SERVER.start()
        fleet.all_complete(ids)
        starts = fleet.starts()
        expect(len(starts) == len(set(starts)), "a call was repeated")


def connections_are_ended():
    with Fleet("30s") as fleet:
        fleet.serve()
        ids = fleet.submit(fleet.workflow(0.2), 6)
        for _ in range(4):
            before = int(fleet.sql("SELECT sum(seq) FROM segue.session"))
            fleet.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                      "application_name LIKE 'segue %'")
            fleet.until(lambda b=before: fleet.count("state = 'ended'") == 6 or int(
                fleet.sql("SELECT sum(seq) FROM segue.session")) > b + 6, "it comes further")
        fleet.all_complete(ids)
        expect(len(fleet.starts()) == 6 * MOVEMENTS, "a call was repeated")


def cancelled_wherever_they_are():
    with Fleet("30s") as fleet:
        waiting = fleet.submit(fleet.workflow(30))[0]
        done = fleet.segue("cancel", waiting)
        expect(done.returncode == 0, done)
        fleet.serve()
        running = fleet.submit(fleet.workflow(30))[0]
        fleet.until(lambda: fleet.count("state = 'held'") == 1 and
                    os.path.exists(fleet.dir + "/starts"), "it runs")
        done = fleet.segue("cancel", running)
        expect(done.returncode == 0, done)
        rows = [json.loads(r) for r in fleet.segue("ls", "--json").stdout.splitlines()]
        expect([r["status"] for r in rows] == ["cancelled", "cancelled"], rows)


def behind_a_pooler():
    if not postgres.Pooler.there():
        skip("pgbouncer is not installed")
    with postgres.Pooler(SERVER, size=5) as pooler, Fleet("2s", store=pooler.url(SERVER.database())) as fleet:
        fleet.serve()
        fleet.serve()
        ids = fleet.submit(fleet.workflow(), 6)
        fleet.all_complete(ids)
        expect(len(fleet.starts()) == 6 * MOVEMENTS, "a call was repeated")


def notifications_that_do_not_come_through():
    """Each worker notifies itself when it begins: behind a pooler of transactions it says once that nothing comes, and polls."""
    said = b"does not deliver notifications"
    with Fleet("3s") as fleet:
        fleet.serve()
        fleet.serve()  # each hears the other's word, too
        fleet.all_complete(fleet.submit(fleet.workflow(0.7)))  # longer than an answer is waited for
        expect(said not in fleet.said(0) + fleet.said(1), fleet.said(0), fleet.said(1))
    if not postgres.Pooler.there():
        skip("pgbouncer is not installed")
    with postgres.Pooler(SERVER, size=5) as pooler, Fleet("3s", store=pooler.url(SERVER.database())) as fleet:
        fleet.serve()
        fleet.until(lambda: said in fleet.said(0), "it says that it hears nothing")
        SERVER.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'segue %'")
        began = time.monotonic()
        fleet.all_complete(fleet.submit(fleet.workflow(0.01), 2))
        at_once(began, 20, "it does not look by itself")
        expect(fleet.said(0).count(said) == 1, fleet.said(0))


def wrong_words(fleet: Fleet):
    for words, says in ((("--lease", "0s"), b"1s to 1h"), (("--lease", "2h"), b"1s to 1h"),
                        (("--lease", "soon"), b"such as 30s"),
                        (("--label", "x" * 1024), b"1 to 128 bytes"),
                        (("--label", "two words"), b"no spaces"),
                        (("--label", "a\nb"), b"no spaces")):
        done = fleet.segue("serve", "--socket", fleet.dir + "/s.sock", *words)
        expect(done.returncode == 2 and says in done.stderr, words, done)
    none = fleet.segue("serve", "--socket", fleet.dir + "/s.sock", "--store",
                       SERVER.url("there_is_none"))
    expect(none.returncode == 2 and b"does not exist" in none.stderr, none)
    bad = fleet.segue("submit", fleet.file("bad.yaml", "name: x\n"), "--cwd", fleet.cwd)
    expect(bad.returncode == 2 and b"bad.yaml" in bad.stderr, bad)


if __name__ == "__main__":
    need_build()
    postgres.need()
    with postgres.Server() as SERVER:
        status = main([what_hangs_is_told, one_queue, it_waits_until_somebody_has_a_place,
                       a_slow_one_leaves_its_queue_to_others, it_goes_where_its_folder_is, it_goes_where_it_was_sent, it_is_begun_for_others, one_without_its_folder, a_reason_that_the_database_cannot_say,
                       killed_stopped_and_gone_on_with,
                       it_takes_three_workers_with_it,
                       the_answer_to_a_claim_is_lost,
                       what_broke_is_not_claimed_again, a_stopped_worker_leaves_nothing_at_work, it_goes_and_another_goes_on,
                       the_server_crashes_under_them, connections_are_ended,
                       cancelled_wherever_they_are, behind_a_pooler,
                       notifications_that_do_not_come_through, wrong_words])
    sys.exit(status)
