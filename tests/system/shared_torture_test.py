#!/usr/bin/env python3
"""Three workers, many sessions, and whatever can happen to them, at random; then the whole history is checked.

usage: shared_torture_test.py BUILD_DIR        SEGUE_TORTURE_S: for so many seconds (8; 60 with ./dev test --all); SEGUE_SEED repeats a run

Workers are killed, stopped and gone on with, their shims killed, connections ended, the server crashed. Each program
leaves a tick each 50 ms, so that two trees of one session at once would be seen."""
import collections
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

from support import chance, expect, main, need_build, sample
import shared_daemon_test
import postgres

SECONDS = float(os.environ.get("SEGUE_TORTURE_S") or (60 if sample.ALL else 8))
SEED = chance()
SESSIONS, TICKS, LEASE_S = 200 if SECONDS >= 60 else 60, 12, 2
WORKFLOW = """
name: ticks
max_movements: 5
movements:
  - name: a
    command: [sh, -c, '%(program)s']
    rules: [{condition: when(exit == 0), next: b}]
  - name: b
    command: [sh, -c, '%(program)s']
    rules: [{condition: when(exit == 0), next: COMPLETE}]
"""
PROGRAM = ('i=0; while [ $i -lt %d ]; do echo "$SEGUE_SESSION $SEGUE_CALL $$ $(date +%%s%%N)" >> %s; '
           'i=$((i+1)); sleep 0.05; done')


class Torture(shared_daemon_test.Fleet):
    def __init__(self):
        super().__init__(lease=f"{LEASE_S}s")
        self.random = random.Random(SEED)
        self.stopped, self.fences, self.fell, self.late, self.over = {}, {}, [], 0, threading.Event()
        self.done = collections.Counter()
        self.flow = self.file("ticks.yaml", WORKFLOW % {"program": PROGRAM % (TICKS, self.dir + "/ticks")})

    def alive(self):
        return [d for d in self.daemons if d.poll() is None and d.pid not in self.stopped]

    def shims(self, daemon):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
                    name, _, rest = f.read().partition("(")[2].rpartition(")")
            except OSError:
                continue
            if name == "segue-shim" and int(rest.split()[1]) == daemon.pid:
                found.append(int(pid))
        return found

    def fill(self):
        while len([d for d in self.daemons if d.poll() is None]) < 3:
            try:
                self.serve("-n", "4", "--drain", "0")
            except Exception:  # noqa: BLE001: the server is away, or the daemon ended at once
                self.done["not started"] += 1
                return

    def fault(self):
        """One thing that happens; at least one worker is left at work."""
        what = self.random.choice(["kill", "kill", "stop", "stop", "shim", "both", "cut", "cut", "crash"])
        alive = self.alive()
        if what in ("kill", "both", "stop") and len(alive) < 2:
            return
        if what in ("kill", "both"):
            daemon = self.random.choice(alive)
            for pid in self.shims(daemon) if what == "both" else []:
                self.kill(pid)
            daemon.kill()
            daemon.wait()
        elif what == "stop":
            daemon = self.random.choice(alive)
            self.stopped[daemon.pid] = time.monotonic() + self.random.uniform(0.3, 3 * LEASE_S)
            daemon.send_signal(signal.SIGSTOP)
        elif what == "shim" and alive:
            for pid in self.shims(self.random.choice(alive)):
                self.kill(pid)
        elif what == "cut":
            self.try_sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'segue %' "
                         f"AND pid <> pg_backend_pid() ORDER BY random() LIMIT {self.random.randrange(1, 4)}")
        elif what == "crash":
            shared_daemon_test.SERVER.stop("immediate")
            if self.random.random() < 0.1:  # for longer than any lease lasts
                self.done["outage"] += 1
                self.over.wait(6 * LEASE_S)
            shared_daemon_test.SERVER.start()
        self.done[what] += 1

    @staticmethod
    def kill(pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def wake(self, everybody=False):
        for daemon in self.daemons:
            if daemon.pid in self.stopped and (everybody or time.monotonic() > self.stopped[daemon.pid]):
                daemon.send_signal(signal.SIGCONT)
                del self.stopped[daemon.pid]

    def try_sql(self, text):
        try:
            return self.sql(text)
        except (RuntimeError, subprocess.SubprocessError, OSError):
            return None  # the server is away

    def look(self):
        """Fences only grow; what a dead worker held is not held for long (nobody sweeps while the server is away)."""
        while not self.over.wait(0.5):
            rows = self.try_sql("SELECT id || ' ' || fence FROM segue.session")
            for row in (rows or "").splitlines():
                sid, fence = row.split()
                if int(fence) < self.fences.get(sid, 0):
                    self.fell.append((sid, self.fences[sid], fence))
                self.fences[sid] = int(fence)
            held = self.try_sql("SELECT count(*) FROM segue.session s LEFT JOIN segue.worker w ON w.id = s.owner WHERE s.state = "
                                "'held' AND greatest(w.lease_until, pg_postmaster_start_time()) < "
                                f"clock_timestamp() - interval '{5 * LEASE_S} s'")
            self.late = max(self.late, int(held or 0))

    def send(self, count):
        sent = []
        while len(sent) < count:
            done = self.segue("submit", self.flow, "--cwd", self.cwd)
            if done.returncode == 0:
                sent.append(done.stdout.decode().strip())
            else:
                expect(b"store" in done.stderr, done)  # it is away: nothing was submitted, or it is there without a word
        return sent


def resumed(box, sid):
    """A session that took three workers with it waits for a person."""
    row = json.loads(box.segue("show", sid, "--json").stdout.splitlines()[-1])
    expect(row["type"] == "session_stop" and row["reason"] == "poison", sid, row)
    done = box.segue("resume", sid)
    expect(done.returncode == 0, sid, done)


def check_history(box, ids):
    runs, starts, repeats = collections.defaultdict(list), collections.defaultdict(set), 0
    with open(box.dir + "/ticks", encoding="utf-8") as f:
        ticks = [line.split() for line in f]
    expect(all(len(t) == 4 for t in ticks), "a tick was cut")
    for sid, call, pid, at in sorted(ticks, key=lambda t: int(t[3])):
        if not runs[sid] or runs[sid][-1] != (call, pid):
            runs[sid].append((call, pid))
        starts[sid, call].add(pid)
    for sid, seen in runs.items():
        expect(len(seen) == len(set(seen)), "two trees at once of", sid, seen)
    expect(set(ids) <= set(runs), "some never ran")
    for sid in ids:
        log = [json.loads(line) for line in box.segue("show", sid, "--json").stdout.splitlines()]
        expect([r["seq"] for r in log] == list(range(1, len(log) + 1)), sid)
        expect(log[-1]["type"] == "session_end" and log[-1]["outcome"] == "complete", sid, log[-1])
        judged = [r["turn"] for r in log if r["type"] == "judgment"]
        expect(judged == [1, 2], "judged twice", sid, judged)
        again = sum(r["type"] == "session_resume" for r in log)
        for (of, call), pids in starts.items():
            if of == sid:
                begun = sum(r["type"] == "call_start" and f"{r['turn']}.{r['call']}" == call for r in log)
                expect(len(pids) <= begun + again, sid, call, "ran", len(pids), "times for", begun, "starts and", again, "deaths")
                repeats += len(pids) - 1
    return repeats


def whatever_happens(box: Torture):
    box.fill()
    looker = threading.Thread(target=box.look, daemon=True)
    looker.start()
    ids, ends = box.send(SESSIONS), time.monotonic() + SECONDS
    try:
        while time.monotonic() < ends:
            box.fault()
            box.wake()
            box.fill()
            box.over.wait(box.random.uniform(0.1, 1.5))  # the pace of the faults
            if box.try_sql("SELECT count(*) FROM segue.session WHERE state = 'ready'") == "0":
                ids += box.send(20)
        box.wake(everybody=True)
        box.fill()
        box.until(lambda: box.try_sql("SELECT count(*) FROM segue.session WHERE state IN ('ready', 'held')") == "0", "all end", 240)
    finally:
        box.over.set()
        box.wake(everybody=True)
    looker.join()
    for sid in box.sql("SELECT id FROM segue.session WHERE state = 'idle'").split():
        resumed(box, sid)
        box.done["poison"] += 1
    ids = sorted(set(ids) | set(box.sql("SELECT id FROM segue.session").split()))
    expect(len(box.fences) >= len(ids) and not box.fell, "fences fell", box.fell)
    expect(box.late == 0, box.late, "were held without a lease for long")
    done = box.segue("verify", box.store, "--json")
    expect(done.returncode == 0, done.stdout[-2000:], done.stderr)
    expect(json.loads(done.stdout.splitlines()[-1])["states"]["complete"] == len(ids), done.stdout[-300:])
    repeats = check_history(box, ids)
    return f"{len(ids)} sessions, seed {SEED}, {repeats} calls repeated, {dict(box.done)}"


if __name__ == "__main__":
    need_build()
    postgres.need()
    with postgres.Server() as server:
        shared_daemon_test.SERVER = server
        status = main([whatever_happens])
    sys.exit(status)
