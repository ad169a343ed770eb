#!/usr/bin/env python3
"""Sessions of other workers, seen and asked through a daemon that does not run them; and a daemon
whose store does not answer."""
import concurrent.futures
import json
import os
import signal
import sys
import threading
import time

from daemon import Connection
import shared_daemon_test
from shared_daemon_test import MOVEMENTS, STOPS, Fleet
from support import WAIT_S, end_of, expect, main, need_build, slack
import cutting
import postgres

SERVER = None


def ask(fleet, n, method, path, timeout=WAIT_S, headers=None, body=None):
    """Status and body of what the n-th daemon says."""
    connection = Connection(f"{fleet.dir}/run{n}/s.sock", timeout)
    headers = {**(headers or {}), **({"Content-Type": "application/json"} if body else {})}
    connection.request(method, path, json.dumps(body) if body else None, headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, json.loads(body) if body[:1] in (b"{", b"[") else body


class Stream(threading.Thread):
    """Watches a session to its end: the records that came, and the bytes of each."""

    def __init__(self, fleet, n, sid, last=None):
        super().__init__()
        self.headers = {"Last-Event-ID": str(last)} if last else {}
        self.place = (f"{fleet.dir}/run{n}/s.sock", f"/v1/sessions/{sid}/events")
        self.numbers, self.lines, self.status = [], [], None
        self.start()

    def run(self):
        connection = Connection(self.place[0], WAIT_S)
        connection.request("GET", self.place[1], headers=self.headers)
        answer = connection.getresponse()
        self.status = answer.status
        for line in answer:
            if line.startswith(b"id: "):
                self.numbers.append(int(line[4:]))
            elif line.startswith(b"data: {\"v\""):
                self.lines.append(line[6:-1])
        connection.close()

    def end(self):
        self.join(WAIT_S)
        expect(not self.is_alive(), "the stream does not end")


def lines_of(fleet, sid):
    return fleet.segue("show", sid, "--json").stdout.splitlines()


def seen_from_another_worker():
    """Two that watch one log, one that comes late; and one that waits in the queue."""
    with Fleet("30s") as fleet:
        fleet.serve("--label", "a")
        fleet.serve()
        flow = fleet.workflow(0.4, held=True)
        (sid,) = fleet.submit_on("a", flow)
        fleet.until(lambda: fleet.count("state = 'held' AND seq > 2") == 1, "it runs")
        first, second = Stream(fleet, 1, sid), Stream(fleet, 1, sid)
        follow = fleet.start("show", sid, "--follow", "--json")
        status, told = ask(fleet, 1, "GET", f"/v1/sessions/{sid}")
        expect(status == 200 and told["status"] == "running", told)
        fleet.works(lambda: len(first.lines) > 4, "records come while it runs")
        late = Stream(fleet, 1, sid, last=4)
        for stream in (first, second, late):
            stream.end()
        lines = lines_of(fleet, sid)
        expect(first.lines == lines and second.lines == lines, "other records", len(first.lines), len(lines))
        expect(late.lines == lines[4:] and late.numbers[0] == 5, late.numbers)
        status, out, err = end_of(follow)
        expect(status == 0 and out.splitlines() == lines, status, err)
        (waiting,) = fleet.submit_on("b", flow)
        stream = Stream(fleet, 1, waiting)
        fleet.until(lambda: len(stream.lines) == 1, "its first record")
        listed = ask(fleet, 1, "GET", "/v1/sessions?status=queued")[1]["sessions"]
        expect([s["id"] for s in listed] == [waiting], listed)
        fleet.serve("--label", "b")
        stream.end()
        expect(stream.lines == lines_of(fleet, waiting), "of one that waited")
        done = ask(fleet, 1, "GET", f"/v1/sessions/{waiting}/events", headers={"Last-Event-ID": str(len(stream.lines))})
        expect(done[0] == 204, "nothing more will come", done)


def submitted_and_followed():
    """From a machine without a daemon."""
    with Fleet("30s") as fleet:
        fleet.serve()
        flow = fleet.workflow(0.2)
        for words in (("--follow",), ("--wait",), ("--follow", "--json")):
            done = fleet.segue("submit", flow, "--cwd", fleet.cwd, "--task", "x", *words)
            expect(done.returncode == 0 and (b"COMPLETE" in done.stdout or words != ("--follow",)), words, done)
            expect(words != ("--wait",) or done.stdout.count(b"\n") == 1, done)


def followed_before_there_is_a_worker():
    """It says what the session waits for, and goes on once a worker has come."""
    with Fleet("30s") as fleet:
        following = fleet.start("submit", fleet.workflow(0.01), "--cwd", fleet.cwd, "--task", "x", "--on", "gpu", "--follow")
        fleet.until(lambda: b"there is no worker" in fleet.segue("show", "last").stdout, "it is queued")
        said = following.stderr.readline()
        expect(b"it waits: there is no worker" in said, said)
        fleet.serve("--label", "gpu")
        status, out, err = end_of(following)
        expect(status == 0 and b"COMPLETE" in out, status, out, err)


def many_who_submit_share_connections():
    """Eight clients of one daemon: it keeps the connections that they need, and makes none for each session."""
    with Fleet("30s") as fleet:
        fleet.serve()
        made = lambda: int(SERVER.sql("SELECT sessions FROM pg_stat_database WHERE datname = '%s'" % fleet.store.rsplit("/", 1)[1].split("?")[0]))  # noqa: E731
        body = {"workflow": {"text": open(fleet.workflow(0), encoding="utf-8").read(), "name": "three"}, "task": "x", "cwd": fleet.cwd}
        before = made()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            told = list(pool.map(lambda _: ask(fleet, 0, "POST", "/v1/sessions", body=body), range(200)))
        expect(all(status == 201 for status, _ in told), told)
        health = lambda: ask(fleet, 0, "GET", "/v1/health")[1]["sessions"]  # noqa: E731
        fleet.until(lambda: health()["running"] == health()["queued"] == 0, "they end")
        expect(made() - before < 60, made() - before, "connections for 200 sessions")


def cancelled_through_another_daemon():
    with Fleet("30s") as fleet:
        fleet.serve("--label", "a")
        fleet.serve()
        (running,) = fleet.submit_on("a", fleet.workflow(30))
        fleet.until(lambda: fleet.count("state = 'held' AND seq > 2") == 1, "it runs")
        status, told = ask(fleet, 1, "POST", f"/v1/sessions/{running}/cancel")
        expect(status == 200 and told["status"] == "cancelled", status, told)
        again = ask(fleet, 1, "POST", f"/v1/sessions/{running}/cancel")
        expect(again[0] == 200, again)
        (waiting,) = fleet.submit_on("nobody", fleet.workflow(0.1))
        status, told = ask(fleet, 1, "POST", f"/v1/sessions/{waiting}/cancel")
        expect(status == 200 and told["status"] == "cancelled", status, told)
        (done,) = fleet.submit(fleet.workflow(0.01))
        fleet.until(lambda: fleet.count("state = 'ended'") == 3, "it ends")
        status, told = ask(fleet, 1, "POST", f"/v1/sessions/{done}/cancel")
        expect(status == 409 and "has ended" in json.dumps(told), status, told)
        for sid in (running, waiting):
            expect(fleet.segue("verify", sid).returncode == 0, sid)


def resumed_by_whoever_has_a_place():
    """The record that it goes on is written from here; a worker takes it from the queue."""
    with Fleet("30s") as fleet:
        fleet.serve()
        flow = fleet.file("stops.yaml", STOPS)
        ids = fleet.submit(flow, 2)
        fleet.until(lambda: fleet.count("state = 'idle'") == 2, "they stop")
        done = fleet.segue("resume", ids[0], "--daemon", "--max-movements", "3", "--json")
        expect(done.returncode == 0 and json.loads(done.stdout)["id"] == ids[0], done)
        fleet.until(lambda: fleet.count("state = 'ended'") == 1, "it goes on")
        told = [json.loads(line) for line in lines_of(fleet, ids[0])]
        resume = next(r for r in told if r["type"] == "session_resume")
        expect(resume["reason"] == "user" and resume["changed"] == {"max_movements": 3}, resume)
        status, told = ask(fleet, 0, "POST", f"/v1/sessions/{ids[1]}/resume")
        expect(status == 422, "it needs more turns", status, told)
        over = fleet.segue("resume", ids[0], "--daemon")
        expect(over.returncode == 1 and b"has ended" in over.stderr, over)
        wrong = fleet.segue("resume", ids[1], "--daemon", "--rule", "9")
        expect(wrong.returncode != 0 and wrong.stderr, wrong)
        (running,) = fleet.submit(fleet.workflow(30))
        fleet.until(lambda: fleet.count("state = 'held' AND seq > 2") == 1, "it runs")
        going = fleet.segue("resume", running, "--daemon")
        expect(going.returncode == 1 and b"nothing to resume" in going.stderr, going)
        mine = json.loads(fleet.segue("run", flow, "--task", "x", "--cwd", fleet.cwd, "--json").stdout.splitlines()[0])
        own = fleet.segue("resume", mine["session"], "--daemon", "--max-movements", "3")
        expect(own.returncode == 1 and b"segue run" in own.stderr, own)
        expect(fleet.segue("cancel", running).returncode == 0, "cancel")


def a_resume_that_was_asked_for_is_not_forgotten():
    """Its worker hangs and dies, and so does who asked: the next worker does it."""
    with Fleet("30s") as fleet:
        (sid,) = fleet.submit(fleet.file("odd.yaml", "name: odd\ninitial_movement: a\nprovider: script\nmovements:\n  - name: a\n"
                                         "    command: [\"false\"]\n    rules: [{condition: when(exit == 0), next: COMPLETE}]\n"))
        first = fleet.serve()
        fleet.until(lambda: fleet.count("state = 'idle'") == 1, "it stops")
        first.terminate()
        first.wait(WAIT_S)
        # As if a worker had it still, that has just stopped it and answers no more.
        fleet.sql("INSERT INTO segue.worker (id, name, lease_until) VALUES ('00000000-0000-4000-8000-000000000001', 'gone:1', "
                  "clock_timestamp() + interval '1 hour'); UPDATE segue.session SET state = 'held', fence = fence + 1, "
                  "owner = '00000000-0000-4000-8000-000000000001'")
        asking = fleet.start("resume", sid, "--daemon")
        fleet.until(lambda: fleet.count("asked = 'resume'") == 1, "it is asked for, durably")
        asking.kill()
        end_of(asking)
        fleet.sql("UPDATE segue.worker SET lease_until = clock_timestamp() - interval '1 second' WHERE name = 'gone:1'")
        fleet.serve()
        fleet.until(lambda: fleet.count("state = 'idle' AND asked IS NULL") == 1, "the next worker does it")
        resumes = [r for r in map(json.loads, lines_of(fleet, sid)) if r["type"] == "session_resume"]
        expect(len(resumes) == 1 and resumes[0]["reason"] == "user", resumes)
        expect(fleet.segue("store", "check").returncode == 0, "check")
        # One that cannot go on so is not taken again and again.
        (more,) = fleet.submit(fleet.file("stops.yaml", STOPS))
        fleet.until(lambda: fleet.count("state = 'idle'") == 2, "it stops")
        fleet.sql(f"SELECT segue.ask('{more}', 'resume', '')")
        fleet.until(lambda: b"--max-movements" in fleet.said(1), "it is tried")
        fleet.until(lambda: fleet.count("state = 'idle' AND asked IS NULL") == 2, "it is left alone")


def resumed_while_its_worker_lets_go_of_it():
    """A client that hears of a stop at once and resumes is not refused because the row is still held."""
    with cutting.Cutting(SERVER) as line, Fleet("30s") as fleet:
        direct = fleet.env["SEGUE_STORE"]
        fleet.env["SEGUE_STORE"] = line.url(fleet.store.rsplit("/", 1)[1])
        fleet.serve()
        fleet.env["SEGUE_STORE"] = direct
        for n, text in enumerate((STOPS, ASKS)):
            line.slow(0.15)
            sid = fleet.submit(fleet.file("stops.yaml", text))[0]
            stream = Stream(fleet, 0, sid)
            fleet.until(lambda: any(b'"type":"session_stop"' in heard for heard in stream.lines), "it stops")
            body = {"max_movements": 3} if n == 0 else {"choice": 1}
            status, told = ask(fleet, 0, "POST", f"/v1/sessions/{sid}/" + ("answer" if n else "resume"), body=body)
            line.slow(0)
            expect(status == 202, status, told)
            stream.end()
            fleet.until(lambda: fleet.count(f"id = '{sid}' AND state = 'ended'") == 1, "it goes on to its end")
        fleet.all_complete([row["id"] for row in map(json.loads, fleet.segue("ls", "--json").stdout.splitlines())])


def its_worker_does_not_answer():
    with Fleet("5m") as fleet:
        first = fleet.serve("--label", "a")
        fleet.serve()
        (sid,) = fleet.submit_on("a", fleet.workflow(30))
        fleet.until(lambda: fleet.count("state = 'held' AND seq > 2") == 1, "it runs")
        first.send_signal(signal.SIGSTOP)
        shell = fleet.start("cancel", sid)
        status, told = ask(fleet, 1, "POST", f"/v1/sessions/{sid}/cancel")
        expect(status == 504 and "has not answered yet" in json.dumps(told), status, told)
        status, _, err = end_of(shell)
        expect(status == 1 and b"asked; its worker has not answered yet" in err, status, err)
        first.send_signal(signal.SIGCONT)
        fleet.until(lambda: fleet.count("state = 'ended'") == 1, "it is cancelled when its worker is back")
        expect(json.loads(fleet.segue("ls", "--json").stdout)["status"] == "cancelled", "ls")


def every_process_of_the_server(number):
    """Signals the main process first: stopped, it starts no other while the list is read."""
    main_pid = SERVER.pid()
    os.kill(main_pid, number)
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8") as f:
                if name.isdigit() and int(f.read().rsplit(")", 1)[1].split()[1]) == main_pid:
                    os.kill(int(name), number)
        except (OSError, IndexError):
            continue  # it ended meanwhile


def a_store_that_hangs_holds_up_nobody():
    """The server's processes are stopped: the daemon answers all the same, and what runs goes on."""
    with Fleet("1m") as fleet:
        fleet.serve("-n", "4")
        ids = fleet.submit(fleet.workflow(1, held=True), 8)  # more than there are places
        fleet.works(lambda: fleet.count("state = 'held' AND seq > 2") == 4)
        every_process_of_the_server(signal.SIGSTOP)
        try:
            end = time.monotonic() + 8
            worst, looks = 0, 0
            while time.monotonic() < end or looks <= 50:
                began = time.monotonic()
                expect(ask(fleet, 0, "GET", "/v1/health")[0] == 200, "health")
                worst, looks = max(worst, time.monotonic() - began), looks + 1
                time.sleep(0.02)  # a look at a time; the deadline is above
        finally:
            every_process_of_the_server(signal.SIGCONT)
        expect(worst < slack(), "the loop was held up for", worst, looks)
        fleet.all_complete(ids)
        expect(len(fleet.starts()) == 8 * MOVEMENTS, "a call was repeated", len(fleet.starts()))


def a_slow_store_holds_up_nobody():
    """Each answer of the server comes late: whatever a client asks, the loop does not wait for it."""
    with cutting.Cutting(SERVER) as line, Fleet("1m") as fleet:
        direct = fleet.env["SEGUE_STORE"]
        fleet.serve()
        flow, stops, asks = fleet.workflow(0.01), fleet.file("stops.yaml", STOPS), fleet.file("asks.yaml", ASKS)
        ended, stopped, cancelled, asked = [fleet.submit(w)[0] for w in (flow, stops, stops, asks)]
        fleet.until(lambda: fleet.count("state = 'idle'") == 3 and fleet.count("state = 'ended'") == 1, "they stop")
        fleet.daemons[0].terminate()
        fleet.daemons[0].wait(WAIT_S)
        fleet.env["SEGUE_STORE"] = line.url(fleet.store.rsplit("/", 1)[1])
        fleet.serve()  # has nothing of them in memory
        fleet.env["SEGUE_STORE"] = direct
        line.slow(0.7)
        told, threads = {}, []

        def does(method, sid, rest, body=None):
            told[method, rest, sid == ended] = ask(fleet, 1, method, f"/v1/sessions/{sid}{rest}", body=body)[0]

        for words in (("GET", ended, ""), ("GET", "last", "/view"), ("GET", ended[:30], "/turns"), ("GET", ended, "/records"),
                      ("GET", ended, "/events"), ("POST", ended, "/cancel"), ("POST", ended, "/fork", {"from": "b#1"}),
                      ("POST", cancelled, "/cancel"), ("POST", stopped[:30], "/resume", {"max_movements": 3}),
                      ("POST", asked, "/answer", {"choice": 1})):
            threads.append(threading.Thread(target=does, args=words))
        big = ("submit", flow, "--cwd", fleet.cwd, "--task", "x" * 64_000)  # no claim brings so long a log
        threads.append(threading.Thread(target=lambda: fleet.segue(*big)))
        for thread in threads:
            thread.start()
        worst, looks = 0, 0
        while any(thread.is_alive() for thread in threads) or fleet.count("state <> 'ended'") > 0:
            began = time.monotonic()
            expect(ask(fleet, 1, "GET", "/v1/health")[0] == 200, "health")
            worst, looks = max(worst, time.monotonic() - began), looks + 1
            expect(looks < 6000, "they do not end", told, fleet.sql("SELECT id, state, rest, asked FROM segue.session"))
            time.sleep(0.02)  # a look at a time; the number of looks is bounded
        for thread in threads:
            thread.join()
        expect(worst < 0.5 * slack() and looks > 20, "the loop was held up for", worst, looks)
        expect(set(told.items()) == {
            (("GET", "", True), 200), (("GET", "/view", False), 200), (("GET", "/turns", False), 200),
            (("GET", "/records", True), 200), (("GET", "/events", True), 200), (("POST", "/cancel", True), 409),
            (("POST", "/cancel", False), 200), (("POST", "/fork", True), 201), (("POST", "/resume", False), 202),
            (("POST", "/answer", False), 202)}, told)
        line.slow(0)


ASKS = """
name: asks
provider: script
movements:
  - name: which
    ask: {question: Which one?, choices: [red, blue]}
    rules: [{condition: when(structured.which.choice == 1), next: COMPLETE}, {condition: when(true), next: ABORT}]
"""


def answered_where_no_daemon_is(fleet: Fleet):
    """A question is seen and answered from a machine without a daemon; whichever worker has a place goes on."""
    fleet.serve()
    sid = fleet.submit(fleet.file("asks.yaml", ASKS))[0]
    fleet.until(lambda: sid in fleet.segue("inbox", "--json").stdout.decode(), "it asks")
    wrong = fleet.segue("answer", sid, "--choice", "7")
    expect(wrong.returncode == 2, wrong)
    done = fleet.segue("answer", sid, "red", "--name", "ann")
    expect(done.returncode == 0 and b"answered" in done.stdout, done)
    fleet.all_complete([sid])
    records = [json.loads(line) for line in fleet.segue("show", "--json", sid).stdout.splitlines()]
    expect([r["by"]["name"] for r in records if r["type"] == "answer"] == ["ann"], records)
    again = fleet.segue("answer", sid, "blue")
    expect(again.returncode == 1, again)


if __name__ == "__main__":
    need_build()
    postgres.need()
    with postgres.Server() as SERVER:
        shared_daemon_test.SERVER = SERVER
        status = main([seen_from_another_worker, submitted_and_followed, followed_before_there_is_a_worker, many_who_submit_share_connections, cancelled_through_another_daemon,
                       resumed_by_whoever_has_a_place, a_resume_that_was_asked_for_is_not_forgotten,
                       resumed_while_its_worker_lets_go_of_it, its_worker_does_not_answer, answered_where_no_daemon_is, a_store_that_hangs_holds_up_nobody,
                       a_slow_store_holds_up_nobody])
    sys.exit(status)
