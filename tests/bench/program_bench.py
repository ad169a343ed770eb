"""The program as a whole: how long it takes to start, what the daemon holds and how fast it answers.
The floor is an empty program that is linked against the same libraries."""
import json
import os
import resource
import socket
import subprocess
import time
from statistics import median

from bench import EMPTY, JUDGED, flow, in_turns, movement, row
from daemon import DaemonBox, Events
from support import SEGUE, Box, expect, memory_kib


def once_ms(*words):
    begin = time.perf_counter()
    pid = os.posix_spawn(words[0], words, os.environ,
                         file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    expect(os.waitpid(pid, 0)[1] == 0, words, "failed")
    return (time.perf_counter() - begin) * 1e3


def starts(runs=101):
    with Box() as box:
        names = [f"step{i}" for i in range(10)]
        path = box.file("ten.json", flow(*(
            movement(name, "Do a part of {task}, then report.", ("done", follows), ("not done", name))
            for name, follows in zip(names, names[1:] + ["COMPLETE"]))))
        floor, version, lint = map(median, in_turns(
            runs, lambda: once_ms(EMPTY), lambda: once_ms(SEGUE, "version"), lambda: once_ms(SEGUE, "lint", path)))
    row("an empty program", floor, "ms")
    row("segue version, against that", version / floor, "times", "<= 1.5")
    row("segue lint of 10 movements", lint / floor, "times", "<= 1.5")


def own_kib(pid):
    """Memory of its own: pages of libraries that other programs use too are not counted."""
    return memory_kib(pid, "Private_", "smaps_rollup")


def submit(box, count=1):
    """The id of the last of sessions that wait in their second turn."""
    answer = ("words " * 334)[:2000]
    workflow = box.file("w.json", JUDGED)
    scenario = box.file("s.json", json.dumps({"replies": [
        {"purpose": "execute", "text": answer},
        {"purpose": "execute", "text": answer, "times": 0, "delay_ms": 3_600_000},
        {"purpose": "judge", "structured": {"reason": "there is more", "step": 1}, "times": 0}]}))
    return [box.submit(workflow, scenario, task="the queue") for _ in range(count)][-1]


def settle(box, count):
    """The memory of a daemon that runs so many sessions, when it has come to rest."""
    box.until(lambda: box.get("/v1/health")["sessions"]["running"] == count, "they do not run")
    last = -1
    while last != (last := own_kib(box.process.pid)):
        time.sleep(0.3)
    return last


def memory(count):
    """Of an idle daemon, of its sessions, and of those that it finds again after a crash."""
    with DaemonBox() as box:
        row("start to READY, no session", box.serve() * 1e3, "ms", "<= 30")
        empty = subprocess.Popen([EMPTY, "wait"], stdin=subprocess.PIPE)
        idle = settle(box, 0)
        row("idle, more than an empty program", (idle - own_kib(empty.pid)) / 1024, "MiB", "<= 4")
        empty.communicate()
        box.end()
        box.serve("-n", str(count))
        submit(box, count)
        row(f"memory of each of {count} live sessions", (settle(box, count) - idle) / count, "KiB", "<= 32")
        box.end(9)
        row(f"start to READY, {count} unfinished sessions", box.serve("-n", str(count)) * 1e3, "ms", "<= 1000")
        row("memory of each, recovered", (settle(box, count) - idle) / count, "KiB", "<= 32")
        box.end(9)


def requests(watched, count=40000, at_once=100):
    with DaemonBox() as box:
        box.serve()
        sid = submit(box)
        before = settle(box, 1)
        request = f"GET /v1/sessions/{sid} HTTP/1.1\r\nHost: segue\r\n\r\n".encode()
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(box.socket)
            line.sendall(request)
            length = len(line.recv(1 << 16))
            begin = time.monotonic()
            for _ in range(count // at_once):
                line.sendall(request * at_once)
                line.recv(length * at_once, socket.MSG_WAITALL)
            row("GET /v1/sessions/ID", count / (time.monotonic() - begin), "a second", ">= 5000")
        watchers = [Events(box, sid, last=1000) for _ in range(watched)]
        row(f"{watched} idle watchers", (settle(box, 1) - before) / 1024, "MiB", "<= 10")
        for watcher in watchers:
            watcher.close()
        box.end(9)


HOSTILE = {"braces": "{", "members": '{"a":', "tags": "[REVIEW:1] ", "tags with the mark": "[REVIEW:1] k7wd\n",
           "wide brackets": "\uff3b", "signs": "\u2705", "values": '{"reason":"x","step":1}\n'}


def hostile(bytes_=2 << 20):
    """Processor time for an agent's or a judge's text of nothing but such pieces, more than for a short one."""
    with Box() as box:
        def cpu_s(text, *words):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            box.segue("judge", "--name", "review", "--rule", "approved", "--rule", "needs fix", *words, stdin=text)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        def judged(reply):
            path = box.file("s.json", json.dumps({"replies": [{"text": reply, "times": 0}]}), sign=False)
            return min(cpu_s(b"Fine.", "--stages", "structured_output", "--max-reasks", "0", "-p", "script", "-s", path)
                       for _ in range(3))

        def own(text):
            return min(cpu_s(text.encode(), "--stages", "phase1_tag", "--mark", "k7wd") for _ in range(3))

        floor = own("x"), judged("x")
        for name, piece in HOSTILE.items():
            text = piece * (bytes_ // len(piece.encode()))
            row(f"2 MB of {name}, an agent's", own(text) - floor[0], "s", "<= 0.1")
            row(f"2 MB of {name}, a judge's", judged(text) - floor[1], "s", "<= 0.1")


def program(sessions=1000):
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    starts()
    memory(sessions)
    requests(sessions)
