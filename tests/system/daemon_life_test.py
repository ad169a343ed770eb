#!/usr/bin/env python3
"""The daemon's life: the queue, recovery, signals, the service manager, crashes, full disks.

usage: daemon_life_test.py BUILD_DIR [CASE...]
SEGUE_LONG=1: 100 rounds of SIGKILL with 50 sessions in flight instead of 5. SEGUE_SEED=N repeats.
"""
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time

from support import (SEGUE, WAIT_S, Failed, at_once, chance, expect, interrupt, main, needs, of_type,
                     processes_of, records, sound, verified)
from daemon import LONG, ROOT, DaemonBox, Events, simple

SEED = chance()
DONE = [(1, "plan", 1, "auto_select"), (2, "do", 1, "structured_output")]


def starts_of(box, sids):
    """The ids in the order in which their first turns began."""
    return sorted(sids, key=lambda s: of_type(records(box.log(s)), "turn_start")[0]["ts"] + s)


def the_queue_is_kept_in_order(box: DaemonBox):
    box.serve("-n", "1")
    workflow, scenario = simple(box, 20)
    blocker, answers = simple(box, 60000, name="blocker")
    first = box.submit(blocker, answers)
    sids = [box.submit(workflow, scenario) for _ in range(8)]
    expect([box.session(s)["position"] for s in sids] == list(range(1, 9)), "positions")
    expect(sids == sorted(sids), "ids do not grow:", sids)
    for sid in sids:  # nothing is held for those that wait
        expect(len(records(box.log(sid))) == 1, "it began")
    os.unlink(scenario)  # kept when it was submitted
    box.end(signal.SIGKILL)
    box.serve("-n", "1")
    expect(box.session(sids[0])["status"] == "queued", box.session(sids[0]))
    expect(box.session(first)["status"] == "running", box.session(first))
    expect(box.segue("cancel", first).returncode == 0, "cancel")
    for sid in sids:
        box.wait_status(sid, "complete")
    expect(starts_of(box, sids) == sids, "another order")
    for sid in sids:
        log = records(box.log(sid))
        sound(log, DONE, repeats=0)
        expect(not of_type(log, "session_resume"), "a queued one was resumed")
    verified(box, *[box.log(s) for s in sids])
    box.end()


def others_are_left_alone(box: DaemonBox):
    """Sessions of `segue run`, those that a user stopped, and those that have ended."""
    workflow, scenario = simple(box, 60000)
    words = [workflow, "-s", scenario, "-l", box.logs, "-C", box.cwd]
    process = box.start("run", *words)
    box.until(lambda: len(box.begun()) == 1, "it does not run")
    process.kill()
    process.communicate()
    crashed = box.begun()[0]
    box.serve()
    quick, answers = simple(box, 0, name="quick")
    dry = box.submit(quick, {"text": '{"replies": [{"text": "x", "purpose": "judge"}]}'})
    box.wait_status(dry, "stopped")
    mine = box.submit(workflow, scenario)
    box.end(times=2)
    last = records(box.log(mine))[-1]
    expect(last["type"] == "session_stop" and last["reason"] == "shutdown", last)
    taken_over_and_stopped(box, mine)
    before = {p: open(p, "rb").read() for p in (crashed, box.log(mine))}
    box.serve()
    box.until(lambda: of_type(records(box.log(dry)), "session_resume") and
              box.session(dry)["status"] == "stopped", "the failed one was not tried again")
    expect(of_type(records(box.log(dry)), "session_resume")[0]["reason"] == "restart", "reason")
    for path, content in before.items():
        expect(open(path, "rb").read() == content, path, "was touched")
    expect(box.session(mine)["status"] == "stopped", box.session(mine))
    expect(box.session(os.path.basename(crashed)[:36])["status"] == "open", "crashed")
    box.end()
    expect(all(open(p, "rb").read() == c for p, c in before.items()), "touched")


def taken_over_and_stopped(box, sid):
    """A user goes on with a session in a terminal and presses Ctrl-C: no daemon goes on with it."""
    for _ in range(9):
        before = len(records(box.log(sid)))
        process = box.start("resume", box.log(sid))
        box.until(lambda: len(records(box.log(sid))) > before, "it is not resumed")
        interrupt(process)
        if records(box.log(sid))[-1]["type"] == "session_stop":  # else it came too early
            break
    expect(records(box.log(sid))[-1]["reason"] == "interrupted", records(box.log(sid))[-1])


def an_accepted_resume_survives(box: DaemonBox):
    """Killed between the answer and the session's turn: the next daemon goes on with it."""
    workflow, scenario = simple(box, 20)
    slow, answers = simple(box, 60000, name="slow")
    box.serve("-n", "1")
    sid = box.submit(slow, answers)
    box.until(lambda: box.session(sid)["seq"] >= 3, "no call")
    box.end(times=2)
    taken_over_and_stopped(box, sid)
    stopped = len(records(box.log(sid)))
    box.serve("-n", "1")
    expect(box.session(sid)["status"] == "stopped", box.session(sid))
    blocker = box.submit(slow, answers)
    box.wait_status(blocker, "running")
    status, value = box.ask("POST", f"/v1/sessions/{sid}/resume")
    expect(status == 202 and value["status"] == "queued" and value["position"] == 1, status, value)
    log = records(box.log(sid))
    expect([r["type"] for r in log[stopped:]] == ["session_resume"], log[stopped:])
    expect(log[-1]["reason"] == "user", log[-1])
    status, value = box.ask("POST", f"/v1/sessions/{sid}/resume")
    expect(status == 409 and "queued" in value["detail"], status, value)
    box.end(signal.SIGKILL)
    box.serve("-n", "1")  # the older one is first now
    box.wait_status(sid, "running")
    box.until(lambda: len(records(box.log(sid))) > stopped + 1, "it does not go on")
    log = records(box.log(sid))
    expect([r["type"] for r in log[stopped:]] == ["session_resume", "call_start"], log[stopped:])
    expect(box.segue("cancel", sid).returncode == 0, "cancel")
    expect(box.segue("cancel", blocker).returncode == 0, "cancel")
    # one that can be ended before its turn
    late = box.submit(slow, answers)
    box.until(lambda: box.session(late)["seq"] >= 3, "no call")
    box.end(times=2)
    taken_over_and_stopped(box, late)
    box.serve("-n", "1")
    box.submit(slow, answers)
    status, value = box.ask("POST", f"/v1/sessions/{late}/resume")
    expect(status == 202, status, value)
    status, value = box.ask("POST", f"/v1/sessions/{late}/cancel")
    expect(status == 200 and value["status"] == "cancelled", status, value)
    expect([r["type"] for r in records(box.log(late))[-2:]] == ["session_resume", "session_end"],
           records(box.log(late))[-2:])
    verified(box, box.log(sid), box.log(late), box.log(blocker))
    box.check_all()
    box.end(times=2)


def a_resume_that_cannot_be_written():
    """It is refused, and the session stays as it was."""
    for fault, wanted in (("fail:write:1", 500), ("fail:write:1:ENOSPC", 507)):
        with DaemonBox() as box:
            workflow, scenario = simple(box, 60000)
            box.serve()
            sid = box.submit(workflow, scenario)
            box.until(lambda: box.session(sid)["seq"] >= 3, "no call")
            box.end(times=2)
            taken_over_and_stopped(box, sid)
            before = records(box.log(sid))
            box.serve(env={"SEGUE_FAULT": fault})
            status, value = box.ask("POST", f"/v1/sessions/{sid}/resume")
            if status == 202:
                box.end(times=2)
                return "skipped: no fault points in this build"
            expect(status == wanted and "not resumed" in value["detail"], status, value)
            box.wait_status(sid, "stopped")
            expect(records(box.log(sid)) == before, records(box.log(sid)))
            status, value = box.ask("POST", f"/v1/sessions/{sid}/resume")
            expect(status == 202, status, value)
            box.wait_status(sid, "running")
            verified(box, box.log(sid))
            box.check_all()
            box.end(times=2)


def a_log_in_other_hands_is_let_go(box: DaemonBox):
    """It waits here while a user runs it: never two owners."""
    box.serve("-n", "1")
    workflow, scenario = simple(box, 300)
    first = box.submit(workflow, scenario)
    second = box.submit(workflow, scenario)
    expect(box.session(second)["status"] == "queued", box.session(second))
    process = box.start("resume", box.log(second))
    box.until(lambda: len(records(box.log(second))) > 1, "it is not taken over")
    shown = box.session(second)  # it waits here, but it runs there
    if process.poll() is None:
        expect(shown["status"] == "running" and shown["movement"] == "plan" and
               "position" not in shown, shown)
    told = [e[2] for e in Events(box, second) if e[0] == "record"]
    expect(told == records(box.log(second)) and told[-1]["type"] == "session_end",
           "the stream tells", told)
    box.wait_status(first, "complete")
    expect(process.wait(WAIT_S) == 0, process.stderr.read())
    box.wait_status(second, "complete")
    sound(records(box.log(second)), DONE, repeats=0)
    process = box.start("serve", "--socket", box.dir + "/run/other")
    status = process.wait(WAIT_S)
    said = process.stderr.read()
    expect(status == 1 and b"another daemon uses the log folder" in said, status, said)
    box.end()


def a_waiting_session_taken_further_elsewhere(box: DaemonBox):
    """Its turn does not come, but a user runs it in a terminal: what is shown is how it stands there."""
    box.serve("-n", "1")
    quick, replies = simple(box, 0)
    slow, answers = simple(box, 60000, name="slow")
    blocker = box.submit(slow, answers)
    done, stopped, waits = (box.submit(w, s) for w, s in ((quick, replies), (slow, answers),
                                                          (quick, replies)))
    expect(box.segue("resume", box.log(done), "-q").returncode == 0, "resume")
    shown = box.session(done)
    expect(shown["status"] == "complete" and shown["turns"] == 2 and "position" not in shown, shown)
    status, value = box.ask("POST", f"/v1/sessions/{done}/cancel")
    expect(status == 409 and "ended already: complete" in value["detail"], status, value)
    status, value = box.ask("POST", f"/v1/sessions/{done}/resume")
    expect(status == 409 and "ended already: complete" in value["detail"], status, value)
    taken_over_and_stopped(box, stopped)
    expect(box.session(stopped)["status"] == "stopped", box.session(stopped))
    expect(box.session(waits)["status"] == "queued", box.session(waits))
    rows = {s["id"]: s["status"] for s in box.get("/v1/sessions")["sessions"]}
    expect(rows == {blocker: "running", done: "complete", stopped: "stopped", waits: "queued"}, rows)
    status, value = box.ask("POST", f"/v1/sessions/{stopped}/resume")
    expect(status == 202 and value["status"] == "queued", status, value)
    expect(box.segue("cancel", blocker).returncode == 0, "cancel")
    box.wait_status(stopped, "running")
    expect(box.segue("cancel", stopped).returncode == 0, "cancel")
    box.wait_status(waits, "complete")
    sound(records(box.log(done)), DONE, repeats=0)
    verified(box, *map(box.log, (blocker, done, stopped, waits)))
    box.check_all()
    box.end()


def a_socket_is_not_taken(box: DaemonBox):
    box.serve()
    done = box.segue("serve", "-l", box.dir + "/logs2")
    expect(done.returncode == 1 and b"a daemon is already running" in done.stderr, done)
    mode = os.stat(box.socket).st_mode & 0o777, os.stat(box.dir + "/run/segue").st_mode & 0o777
    expect(mode == (0o600, 0o700), mode)
    box.end(signal.SIGKILL)
    expect(os.path.exists(box.socket), "a killed daemon leaves its socket")
    expect(box.segue("ls").returncode == 0, "ls on a dead socket")
    box.serve()  # replaces it
    box.get("/v1/health")
    box.end()
    expect(not os.path.exists(box.socket), "the socket is left")
    # a daemon that does not answer under another lock is not pushed aside
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(box.socket)
    listener.listen(1)
    done = box.segue("serve")
    expect(done.returncode == 1 and b"answers" in done.stderr, done)
    listener.close()
    os.unlink(box.socket)
    box.file("run/segue/segue.sock", "not a socket")
    done = box.segue("serve")
    expect(done.returncode == 2 and b"not a socket" in done.stderr, done)
    os.unlink(box.socket)
    for mode in (0o755, 0o750, 0o701):
        os.chmod(box.dir + "/run/segue", mode)
        done = box.segue("serve")
        expect(done.returncode == 2 and b"other users can enter" in done.stderr, done)
    os.chmod(box.dir + "/run/segue", 0o700)
    os.rename(box.dir + "/run/segue", box.dir + "/run/own")
    os.symlink("own", box.dir + "/run/segue")
    done = box.segue("serve")
    expect(done.returncode == 2 and b"not your own folder" in done.stderr, done)
    os.unlink(box.dir + "/run/segue")
    done = box.segue("serve", "--socket", "/" + "x" * 200)
    expect(done.returncode == 2 and b"longer than" in done.stderr, done)


def a_session_that_cannot_be_written(box: DaemonBox):
    """Who submits it is told so, and nothing of it is left."""
    workflow, scenario = simple(box)
    box.serve(env={"SEGUE_FAULT": "fail:write:2"})  # the first one is the scenario's blob
    body = {"workflow": workflow, "scenario": scenario, "cwd": box.cwd}
    status, value = box.ask("POST", "/v1/sessions", body)
    if status == 201:
        return "skipped: no fault points in this build"
    expect(status == 500 and "Input/output" in value["detail"], status, value)
    box.until(lambda: not box.log_paths(), "its log is left")
    box.wait_status(box.submit(workflow, scenario), "complete")
    box.check_all()
    box.end()


def a_folder_without_locks_is_refused(box: DaemonBox):
    workflow, scenario = simple(box)
    env = {"SEGUE_FAULT": "fail:lock:1"}
    for words in (["run", workflow, "-s", scenario, "-C", box.cwd, "-q"], ["serve"]):
        done = box.segue(*words, env=env)
        if done.returncode == 0:
            return "skipped: no fault points in this build"
        expect(done.returncode == 1 and b"has no locks" in done.stderr, done)
    expect(os.listdir(box.logs) == [], os.listdir(box.logs))


def a_missing_http_server_is_told(box: DaemonBox):
    os.mkdir(box.dir + "/lib")
    box.file("lib/libmicrohttpd.so.12", "no library")
    env = {"LD_LIBRARY_PATH": box.dir + "/lib"}
    done = box.segue("serve", env=env)
    expect(done.returncode == 1 and b"libmicrohttpd.so.12" in done.stderr
           and b"install it" in done.stderr, done)
    expect(not os.path.exists(box.socket) and not os.path.exists(box.logs), "it began")
    done = box.segue("help", "serve", env=env)
    expect(done.returncode == 0 and b"GET  /v1/health" in done.stdout, done)


GOES = """
name: goes
movements:
  - name: one
    command: [sh, -c, "until [ -e go ]; do sleep 0.05; done"]
    rules: [{condition: when(exit == 0), next: two}]
  - name: two
    command: [sh, -c, "until [ -e go ]; do sleep 0.05; done"]
    rules: [{condition: when(exit == 0), next: COMPLETE}]
"""


def stopping(box: DaemonBox):
    workflow = box.file("goes.yaml", GOES)
    box.serve()
    sid = box.submit(workflow)
    box.until(lambda: box.session(sid)["seq"] >= 3, "no call")
    box.process.send_signal(signal.SIGTERM)
    box.until(lambda: box.get("/v1/health")["status"] == "stopping", "it does not stop")
    status, value = box.ask("POST", "/v1/sessions", {"workflow": workflow, "cwd": box.cwd})
    expect(status == 503 and box.headers["Retry-After"], status, value)
    go = box.file("work/go", "")
    expect(box.process.wait(WAIT_S) == 0, "status", box.said)
    os.unlink(go)
    expect(any("1 running call may end within 30 s" in s for s in box.said), box.said)
    log = records(box.log(sid))
    expect([r["type"] for r in log[-2:]] == ["turn_end", "session_stop"], log[-2:])
    expect(len(of_type(log, "call_start")) == len(of_type(log, "call_end")) == 1, "calls")
    # a second signal does not wait for the call
    box.serve()
    box.until(lambda: len(of_type(records(box.log(sid)), "call_start")) == 2, "no call")
    begin = time.monotonic()
    box.end(times=2)
    at_once(begin, 5, "it waited")
    log = records(box.log(sid))
    expect(log[-1]["reason"] == "shutdown" and log[-2]["type"] != "call_end", log[-2:])
    # nor does one deadline that is over
    slow, answers = simple(box, 60000, name="slow")
    box.serve("--drain", "1")
    late = box.submit(slow, answers)
    box.until(lambda: len(records(box.log(late))) >= 3, "no call")
    box.end()
    expect(records(box.log(late))[-1]["reason"] == "shutdown", records(box.log(late))[-1])
    box.file("work/go", "")
    box.serve("--drain", "0")
    box.wait_status(sid, "complete")
    # two stops came in the middle of it
    sound(records(box.log(sid)), [(1, "one", 1, "when"), (2, "two", 1, "when")], repeats=2)
    expect({r["reason"] for r in of_type(records(box.log(sid)), "session_resume")} ==
           {"restart"}, "reasons")
    verified(box, box.log(sid), box.log(late))
    box.end(signal.SIGINT)


def stopping_while_calls_wait_for_a_place(box: DaemonBox):
    """Of two calls one waits for the other: it has not left, so nothing waits for it."""
    box.config("providers: {script: {concurrency: 1}}\n")
    workflow, scenario = simple(box, 700)
    box.serve()
    sids = [box.submit(workflow, scenario) for _ in range(3)]
    box.until(lambda: all(len(records(box.log(s))) >= 3 for s in sids), "they do not wait")
    box.end()
    ends = [len(of_type(records(box.log(s)), "call_end")) for s in sids]
    expect(sorted(ends) == [0, 0, 1], "calls that ended:", ends)
    for sid in sids:
        expect(records(box.log(sid))[-1]["reason"] == "shutdown", records(box.log(sid))[-1])
    box.config("providers: {script: {concurrency: 3}}\n")
    box.serve()
    for sid in sids:
        box.wait_status(sid, "complete")
        sound(records(box.log(sid)), DONE, repeats=1)
    verified(box, *map(box.log, sids))
    box.end()


def the_configuration_is_read_again(box: DaemonBox):
    workflow, scenario = simple(box, 300)
    with open(workflow, "r+", encoding="utf-8") as f:  # it takes the user's default backend
        text = f.read().replace("provider: script\n", "")
        f.seek(0)
        f.truncate()
        f.write(text)
    box.config("provider: script\nmodel: first\n")
    box.serve()
    running = box.submit(workflow, scenario)
    box.config("provider: script\nmodel: second\noptions: {seed: 3}\n")
    box.process.send_signal(signal.SIGHUP)
    box.wait_said("was read again")
    sid = box.submit(workflow, scenario)
    expect(records(box.log(sid))[0]["config"]["default_model"] == "second", "not read")
    box.config("modle: third\n")
    box.process.send_signal(signal.SIGHUP)
    box.wait_said("the old one stays")
    expect(any("config.yaml:1:1" in s and "did you mean" in s for s in box.said), box.said)
    third = box.submit(workflow, scenario)
    expect(records(box.log(third))[0]["config"]["default_model"] == "second", "not kept")
    for s in (running, sid, third):
        box.wait_status(s, "complete")
    models = [r["model"] for r in of_type(records(box.log(running)), "call_start")]
    expect(set(models) == {"first"}, models)
    box.end()
    done = box.segue("serve")
    expect(done.returncode == 2 and b"config.yaml:1:1" in done.stderr, done)


def the_service_manager_is_told():
    for abstract in (False, True):
        with DaemonBox() as box:
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            name = f"\0segue-test-{os.getpid()}" if abstract else box.dir + "/notify"
            listener.bind(name)
            listener.settimeout(WAIT_S)
            secrets = box.file("env.yaml", f"""
name: env
movements:
  - name: look
    command: [sh, -c, 'env > {box.dir}/seen; ls -l /proc/self/fd > {box.dir}/fds']
    rules: [{{condition: when(exit == 0), next: COMPLETE}}, {{condition: when(exit != 0), next: ABORT}}]
""")
            box.serve(env={"NOTIFY_SOCKET": name.replace("\0", "@"), "WATCHDOG_USEC": "400000",
                           "SEGUE_TOKEN": "secret-of-segue", "API_KEY": "secret-of-a-provider"})
            got = listener.recv(4096).decode()
            expect(got.startswith("READY=1\n"), got)
            begin = time.monotonic()
            for _ in range(3):
                got = listener.recv(4096).decode()
                expect(got.startswith("WATCHDOG=1\n"), got)
            expect(time.monotonic() - begin > 0.3, "three of them took", time.monotonic() - begin)
            at_once(begin, 3, "three of them")
            sid = box.submit(secrets)
            box.wait_status(sid, "complete")
            with open(box.dir + "/seen", encoding="utf-8") as f:
                seen = f.read()
            for word in ("NOTIFY_SOCKET", "WATCHDOG", "SEGUE_TOKEN", "SEGUE_SHIM", "secret-of"):
                expect(word not in seen, "a child sees", word, seen)
            expect("SEGUE_SESSION=" + sid in seen, seen)
            with open(box.dir + "/fds", encoding="utf-8") as f:
                expect("socket" not in f.read() and "ndjson" not in f.read(), "descriptors leak")
            box.process.send_signal(signal.SIGHUP)
            while not got.startswith("RELOADING"):
                got = listener.recv(4096).decode()
            expect("MONOTONIC_USEC=" in got, got)
            while not got.startswith("READY"):
                got = listener.recv(4096).decode()
            box.process.send_signal(signal.SIGTERM)
            while not got.startswith("STOPPING=1"):
                got = listener.recv(4096).decode()
            expect(box.process.wait(WAIT_S) == 0, "status")
            listener.close()


def killed(sessions, at_once, rounds):
    """SIGKILL at random moments, until all have ended; how often that was."""
    rng = random.Random(SEED)
    with DaemonBox() as box:
        workflow, scenario = simple(box, 200)
        command = box.file("both.yaml", f"""
name: both
provider: script
movements:
  - name: build
    command: [sh, -c, 'echo $$ >> {box.pids}; sleep 0.2; exit 3']
    rules: [{{condition: when(exit == 3), next: do}}, {{condition: when(exit != 3), next: ABORT}}]
  - name: do
    instruction: do it
    rules: [{{condition: good, next: COMPLETE}}, {{condition: bad, next: build}}]
""")
        wanted = {}
        box.serve("-n", str(at_once))
        for i in range(sessions):
            sid = box.submit(command if i % 2 else workflow, scenario)
            wanted[sid] = ([(1, "build", 1, "when"), DONE[1]] if i % 2 else DONE)
        kills = 0
        while kills < rounds:
            time.sleep(rng.uniform(0, 0.25))  # the moment is what is tested
            running = [s["status"] for s in box.get("/v1/sessions?limit=1000")["sessions"]]
            if not any(s in ("running", "queued") for s in running):
                break
            box.end(signal.SIGKILL)
            kills += 1
            box.serve("-n", str(at_once))
        for sid in wanted:
            box.wait_status(sid, "complete")
        box.end()
        expect(len(box.log_paths()) == sessions, "logs", len(box.log_paths()))
        for sid, verdict in wanted.items():
            log = records(box.log(sid))
            sound(log, verdict, repeats=kills)
            # at most one repeated attempt of a turn in flight, a kill
            for r in of_type(log, "call_start"):
                expect(r["attempt"] - 1 <= kills, r)
            crashes = len(of_type(log, "session_resume"))
            again = sum("repeats" in r for r in of_type(log, "call_start"))
            expect(again <= crashes <= kills, sid, again, "repeats in", crashes, "crashes")
        verified(box, *map(box.log, wanted))
        box.until(lambda: not processes_of(box.dir), "processes are left:", processes_of(box.dir))
        return kills


def sigkill_with_fifty_in_flight():
    kills = total = 0
    target = 100 if LONG else 5
    batches = 0
    while kills < target:
        kills += killed(50, 50, min(target - kills, 10))
        batches += 1
        total += 50
    return f"{kills} kills, {total} sessions, seed {SEED}"


def sigkill_with_a_queue():
    return f"{killed(24, 4, 30 if LONG else 3)} kills, seed {SEED}"


def disk_full():
    if os.geteuid() != 0:
        return "skipped: needs root"
    with DaemonBox() as box:
        os.mkdir(box.logs)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", box.logs],
                                 capture_output=True, check=False)
        if mounted.returncode != 0:
            return f"skipped: cannot mount a tmpfs: {mounted.stderr.decode().strip()}"
        try:
            return fill_and_free(box)
        finally:
            if box.process is not None and box.process.poll() is None:
                box.process.kill()
                box.process.wait()
            subprocess.run(["umount", "-l", box.logs], check=False)


def fill_and_free(box):
    workflow = box.file("turns.yaml", """
name: turns
provider: script
max_movements: 50
movements:
  - name: work
    instruction: do the work
    pass_previous_response: false
    rules:
      - {condition: when(iteration < 12), next: work}
      - {condition: when(iteration >= 12), next: COMPLETE}
""")
    scenario = {"text": json.dumps({"replies": [
        {"text": " ".join(f"{i}" for i in range(600)), "times": 0, "delay_ms": 40}]})}
    box.serve()
    sids = [box.submit(workflow, scenario) for _ in range(4)]
    box.until(lambda: all(box.session(s)["turns"] >= 2 for s in sids), "they do not run")
    with open(box.logs + "/filler", "wb", buffering=0) as f:
        try:
            while True:
                f.write(b"x" * 4096)
        except OSError:
            pass
    for sid in sids:
        paused = box.wait_status(sid, "paused")
        expect("No space left" in paused["message"], paused)
    verified_open = box.segue("verify", *map(box.log, sids))
    expect(verified_open.returncode == 0, verified_open.stdout)
    status, value = box.ask("POST", "/v1/sessions", {"workflow": workflow, "scenario": scenario,
                                                     "cwd": box.cwd})
    expect(status == 507, status, value)
    expect(len(box.get("/v1/sessions")["sessions"]) == 4, "the refused one is there")
    status, value = box.ask("POST", f"/v1/sessions/{sids[3]}/cancel")
    expect(status == 507 and "not been accepted" in value["detail"], status, value)
    os.unlink(box.logs + "/filler")
    begin = time.monotonic()
    box.until(lambda: all(box.session(s)["status"] != "paused" for s in sids), "they stay paused")
    took = time.monotonic() - begin
    at_once(begin, 10, "going on")
    for sid in sids[:3]:
        box.wait_status(sid, "complete")
        sound(records(box.log(sid)), [(i, "work", 1 if i < 12 else 2, "when")
                                      for i in range(1, 13)], repeats=0)
    expect(box.wait_status(sids[3], "cancelled", "complete")["status"] == "cancelled", "it went on")
    verified(box, *map(box.log, sids))
    box.check_all()
    box.end()
    return f"went on after {took:.1f} s"


def the_unit_is_sound():
    needs("systemd-analyze")
    with DaemonBox() as box:
        with open(ROOT + "/contrib/systemd/segue.service.in", encoding="utf-8") as f:
            unit = box.file("segue.service", f.read().replace("@SEGUE@", os.path.abspath(SEGUE)))
        done = subprocess.run(["systemd-analyze", "verify", "--user", "--man=no", unit], env=box.env,
                              capture_output=True, check=False)
        if b"Failed to initialize manager" in done.stderr:
            return "skipped: systemd-analyze does not work here"
        expect(done.returncode == 0 and b"segue.service" not in done.stderr, done)


def a_log_that_fails_is_opened_again():
    """The disk fails for a while: the session is paused, then goes on, and nothing is lost."""
    for fault, breaks, resumes in (("fail:write:3", 1, 0),  # before it had begun
                                   ("fail:write:6-7", 2, 1), ("fail:sync:4-5", 1, 1)):
        with DaemonBox() as box:
            workflow, scenario = simple(box, 20)
            box.serve(env={"SEGUE_FAULT": fault})
            sid = box.submit(workflow, scenario)
            paused = box.wait_status(sid, "paused", "complete")
            if paused["status"] == "complete":
                return "skipped: no fault points in this build"
            expect("Input/output error" in paused["message"] and "opened again" in paused["message"],
                   paused)
            with open(box.log(sid), "ab") as f:  # as if not even cutting it back had worked
                f.write(b'{"v":1,"seq":99,"type":"never_synced"}\n')
            stream = [e[2] for e in Events(box, sid) if e[0] == "record"]
            done = box.wait_status(sid, "complete")
            expect(done["message"] is None, done)
            log = records(box.log(sid))
            expect(stream == log, "the stream tells something else")
            sound(log, DONE, repeats=breaks)
            expect(len(of_type(log, "session_resume")) == resumes, fault, log)
            verified(box, box.log(sid))
            expect(not os.path.exists(box.log(sid) + ".torn"), "what was not sure was read")
            expect(sum("Input/output" in s for s in box.said) == breaks, box.said)
            box.check_all()
            box.end()


def cancelling_when_the_log_fails():
    """It is done when that is on disk; before, it is not accepted, and that is said."""
    for fault, tries in (("fail:write:4", 2), ("fail:write:4-5", 3)):
        with DaemonBox() as box:
            workflow, scenario = simple(box, 60000)
            box.serve(env={"SEGUE_FAULT": fault})
            sid = box.submit(workflow, scenario)  # the scenario, the start and the call are written
            box.until(lambda: box.session(sid)["seq"] == 3, "no call")
            for i in range(1, tries + 1):  # each tries to write
                status, value = box.ask("POST", f"/v1/sessions/{sid}/cancel")
                if i == 1 and status == 200:
                    return "skipped: no fault points in this build"
                if i < tries:
                    expect(status == 503 and "not been accepted" in value["detail"] and
                           "Input/output error" in value["detail"] and box.headers["Retry-After"],
                           status, value)
                    expect(box.session(sid)["status"] == "paused", box.session(sid))
            expect(status == 200 and value["status"] == "cancelled", status, value)
            kinds = [r["type"] for r in records(box.log(sid))]
            expect(kinds[3:] == ["session_end"] or kinds[3:] == ["session_resume", "session_end"], kinds)
            verified(box, box.log(sid))
            box.check_all()
            box.end()
    # nobody asks again: it is done all the same, while the daemon lives
    with DaemonBox() as box:
        workflow, scenario = simple(box, 60000)
        box.serve(env={"SEGUE_FAULT": "fail:write:4"})
        sid = box.submit(workflow, scenario)
        box.until(lambda: box.session(sid)["seq"] == 3, "no call")
        done = box.segue("cancel", sid)
        expect(done.returncode == 1 and b"not been accepted" in done.stderr, done)
        box.wait_status(sid, "cancelled")
        box.end()


def a_log_that_goes_on_failing(box: DaemonBox):
    """It is paused, a cancel is not accepted; the daemon ends at once, and the next goes on."""
    workflow, scenario = simple(box, 20)
    box.serve(env={"SEGUE_FAULT": "fail:write:4+"})
    sid = box.submit(workflow, scenario)
    if box.wait_status(sid, "paused", "complete")["status"] == "complete":
        box.end()
        return "skipped: no fault points in this build"
    status, value = box.ask("POST", f"/v1/sessions/{sid}/cancel")
    expect(status == 503 and "not been accepted" in value["detail"], status, value)
    status, value = box.ask("POST", f"/v1/sessions/{sid}/resume")
    expect(status == 409 and "paused" in value["detail"], status, value)
    shown = box.segue("ls").stdout.decode()
    expect("paused" in shown, shown)
    before = len(records(box.log(sid)))
    begin = time.monotonic()
    box.end()
    at_once(begin, 5, "it waited")
    expect(len(records(box.log(sid))) == before, "something was written")
    box.serve()
    box.wait_status(sid, "complete")
    sound(records(box.log(sid)), DONE, repeats=1)
    verified(box, box.log(sid))
    box.check_all()
    box.end()


def answers_hold_wherever_it_dies(box: DaemonBox):
    """It ends at the n-th point where it writes, syncs or starts a program: what it had answered holds
    in the next daemon."""
    quick, replies = simple(box, 0)
    slow, answers = simple(box, 60000, name="slow")
    box.serve()
    stopped, running = box.submit(slow, answers), box.submit(slow, answers)
    box.until(lambda: all(box.session(s)["seq"] >= 3 for s in (stopped, running)), "no calls")
    box.end(times=2)
    taken_over_and_stopped(box, stopped)
    shutil.copytree(box.logs, box.dir + "/before")
    body = {"workflow": quick, "scenario": replies, "cwd": box.cwd, "task": "x" * 100000}
    requests = [("/v1/sessions", body), (f"/v1/sessions/{stopped}/resume", None),
                (f"/v1/sessions/{running}/cancel", None)]
    for n in range(1, 999):
        shutil.rmtree(box.logs)
        shutil.copytree(box.dir + "/before", box.logs)
        box.serve(env={"SEGUE_FAULT": f"exit:{n}"}, wait=False)
        box.until(lambda: box.process.poll() is not None or
                  any("ready on" in line for line in box.said), "it does not get ready")
        got = []
        for path, value in requests:
            try:
                got.append(box.ask("POST", path, value))
            except (OSError, http.client.HTTPException):
                got.append((0, None))
        if (0, None) in got:
            box.process.wait(WAIT_S)
        elif got[0][0] == 201:
            sids = [got[0][1]["id"]]
            box.until(lambda: box.process.poll() is not None or
                      records(box.log(sids[0]))[-1]["type"] == "session_end", "it does not end")
        lived = box.process.poll() is None
        if lived:
            expect([status for status, _ in got] == [201, 202, 200], n, got)
            box.end(signal.SIGKILL)
        else:
            expect(box.process.poll() == 99, "status", box.process.poll(), box.said)
        box.serve()
        if got[0][0] == 201:
            box.wait_status(got[0][1]["id"], "complete")
        expect(got[1][0] in (0, 202) and got[2][0] in (0, 200), n, got)
        if got[1][0] == 202:
            box.wait_status(stopped, "running")
        if got[2][0] == 200:
            expect(box.session(running)["status"] == "cancelled", n, box.session(running))
        verified(box, *box.begun())
        box.end(signal.SIGKILL)
        if lived:
            return f"{n - 1} points" if n > 1 else "skipped: no fault points in this build"
    raise Failed("it dies at every point")


def what_cannot_go_on_says_why(box: DaemonBox):
    box.serve("-n", "1")
    workflow, scenario = simple(box, 60000)
    folder = box.dir + "/gone"
    os.mkdir(folder)
    box.submit(workflow, scenario)
    sid = box.submit(workflow, scenario)
    status, value = box.ask("POST", "/v1/sessions", {"workflow": workflow,
                                                     "scenario": scenario, "cwd": folder})
    expect(status == 201, value)
    gone = value["id"]
    box.end(signal.SIGKILL)
    os.rmdir(folder)
    with open(box.log(sid), "r+b") as f:  # one bit of a waiting session
        f.seek(30)
        f.write(b"#")
    box.serve("-n", "4")
    value = box.wait_status(gone, "open")
    expect("gone" in value["message"], value)
    done = box.segue("show", gone)
    expect(b"open: the working directory" in done.stdout, done)
    done = box.segue("show", gone, "--follow")  # would wait for ever
    expect(done.returncode == 1 and b"does not continue" in done.stderr and
           b"is gone" in done.stderr, done)
    box.until(lambda: box.get("/v1/health")["sessions"]["queued"] == 0, "it waits")
    os.mkdir(folder)
    box.end(times=2)
    box.serve("-n", "4")
    box.wait_status(gone, "running")
    box.end(times=2)


CASES = [the_queue_is_kept_in_order, others_are_left_alone, an_accepted_resume_survives,
         a_resume_that_cannot_be_written, a_log_in_other_hands_is_let_go,
         a_waiting_session_taken_further_elsewhere,
         a_socket_is_not_taken, a_session_that_cannot_be_written, a_folder_without_locks_is_refused,
         a_missing_http_server_is_told, stopping,
         stopping_while_calls_wait_for_a_place, the_configuration_is_read_again, the_service_manager_is_told,
         the_unit_is_sound, a_log_that_fails_is_opened_again, cancelling_when_the_log_fails, a_log_that_goes_on_failing,
         answers_hold_wherever_it_dies, what_cannot_go_on_says_why,
         sigkill_with_fifty_in_flight, sigkill_with_a_queue, disk_full]

if __name__ == "__main__":
    sys.exit(main(CASES))
