"""What the benches share: the way to the tests' own modules, rows, processor time, memory, sides that
take turns, a server of constant answers, workflows of the script provider, sessions that clients of
one daemon submit.

A bench is a function whose parameters are its numbers (tests/bench/run.py lists and calls them). It
prints a row a figure, beside its goal where there is one. What is compared takes turns, so that a
busy moment hits all sides alike.
"""
import asyncio
import contextlib
import json
import multiprocessing
import os
import re
import resource
import socket
import subprocess
import sys
import threading
import time
from statistics import median
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TESTS + "/system", TESTS + "/support"]

from support import BUILD, Failed, cpu_ms, expect, memory_kib  # noqa: E402

PROBE, EMPTY = BUILD + "/helpers/probe", BUILD + "/helpers/empty_probe"
AT_ONCE = 16  # sessions of a daemon


def row(what, value, unit="", goal=""):
    """A figure beside its goal, such as "<= 20"."""
    missed = ""
    if goal:
        sign, bound = goal.split()
        missed = "" if (value <= float(bound) if sign == "<=" else value >= float(bound)) else ", missed"
    print(f"{what:56} {value:9.2f} {unit:10}{f' goal {goal}{missed}' if goal else ''}", flush=True)


def in_turns(rounds, *sides):
    """What each side, a function, gives in every round, a list a side; the order turns round each time."""
    found = [[] for _ in sides]
    for n in range(rounds):
        for side, took in list(zip(sides, found))[::-1 if n % 2 else 1]:
            took.append(side())
    return found


def compare(rounds, goal, bare, bare_unit, bare_side, ours, our_side):
    """Prints the median of what is bare, and ours as so many times that, round by round."""
    floors, found = in_turns(rounds, bare_side, our_side)
    row(bare, median(floors), bare_unit)
    row("  " + ours, median(a / b for a, b in zip(found, floors)), "times", goal)


def ran(*words, bound=False, **more):
    """Seconds by the clock, seconds of the processor, and the output of a program; bound: with 64 MiB
    for its data."""
    def cpu_s():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime
    before, begin = cpu_s(), time.perf_counter()
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False, **more, preexec_fn=(
        lambda: resource.setrlimit(resource.RLIMIT_DATA, (64 << 20, 64 << 20))) if bound else None)
    took = time.perf_counter() - begin
    expect(done.returncode == 0, *words, "failed:", done.stderr)
    return took, cpu_s() - before, done.stdout


def peak_mib(*words, **more):
    """The most that a program held; it is asked until it ends."""
    process, most = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL, **more), 0
    while process.poll() is None:
        with contextlib.suppress(OSError, Failed):  # it has just ended
            most = memory_kib(process.pid, "VmHWM") / 1024
    expect(process.returncode in (0, 1), *words, "failed")
    return most


class Constant(asyncio.Protocol):
    """A server on loopback that answers each path with the same bytes every time."""
    says, got = {}, b""

    def connection_made(self, transport):
        self.line = transport

    def data_received(self, data):
        self.got += data
        head, end, body = self.got.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\ncontent-length: (\d+)", head)
        if end and len(body) == int(length[1] if length else 0):
            self.got, path = b"", head.split(b" ")[1].decode()
            self.line.write(self.says.get(path, b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"))

    @classmethod
    def serve(cls, bodies):
        """Its address. Bodies: of each path the type and the bytes."""
        for path, (kind, body) in bodies.items():
            cls.says[path] = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (
                kind.encode(), len(body)) + body
        loop = asyncio.new_event_loop()
        server = loop.run_until_complete(loop.create_server(cls, "127.0.0.1", 0, backlog=2000))
        threading.Thread(target=loop.run_forever, daemon=True).start()
        return "http://127.0.0.1:%d" % server.sockets[0].getsockname()[1]


# ---- sessions ----------------------------------------------------------------------------------------

def movement(name, instruction, good, bad=("stuck", "ABORT"), **more):
    return {"name": name, "instruction": instruction, **more,
            "rules": [{"condition": condition, "next": follows} for condition, follows in (good, bad)]}


def flow(*movements, **more):
    return json.dumps({"name": "bench", "provider": "script", "judge": {"stages": ["phase1_tag"]},
                       "max_movements": 1_000_000, "movements": movements, **more})


THREE = flow(movement("plan", "plan {task}", ("planned", "write")),
             movement("write", "write {task} after {previous_response}", ("written", "review")),
             movement("review", "review {previous_response}", ("good", "COMPLETE"), ("bad", "write")))
THREE_REPLIES = [{"text": f"I did it.\n\n[{m.upper()}:1]", "movement": m, "times": 0}
                 for m in ("plan", "write", "review")]
# Turns that a judge decides: two calls each.
JUDGED = flow(movement("work", "Go on with {task}.", ("work is left", "work"), ("all is done", "COMPLETE")),
              judge={"stages": ["structured_output"]})
LOOP = flow(movement("work", "do it", ("done", "COMPLETE"), ("go on", "work"), bare_prompt=True,
                     pass_previous_response=False))


def command(words, follows="COMPLETE", **more):
    return {"name": "one", "command": words, **more, "rules": [{"condition": "when(exit == 0)", "next": follows}]}


def loop_replies(turns, text="more\n", delay_ms=0):
    return [{"text": text + "[WORK:2]", "times": turns - 1, "delay_ms": delay_ms}, {"text": text + "[WORK:1]"}]


def run_words(box, workflow, replies):
    return ("run", box.file("w.json", workflow), "--scenario", box.file("s.json", json.dumps({"replies": replies})),
            "--logs", box.logs, "--quiet", "-t", "the queue")


def submit_many(path, body, count):
    """Submits a session so many times, and does no more than a client must."""
    asked = b"POST /v1/sessions HTTP/1.1\r\nHost: segue\r\nContent-Type: application/json\r\n" \
            b"Content-Length: %d\r\n\r\n" % len(body) + body
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(path)
        for _ in range(count):
            line.sendall(asked)
            said = b""
            while not said.rstrip().endswith(b"}"):
                said += line.recv(65536) or b"}"
            expect(said.startswith(b"HTTP/1.1 201 "), said)


def load(box, workflow, replies, sessions, clients=8):
    """Seconds, and processor milliseconds of a warm daemon, for sessions that clients submit at once:
    processes of their own, whose making is no part of it."""
    def idle():
        health = box.get("/v1/health")["sessions"]
        return health["running"] == health["queued"] == 0
    expect(sessions % clients == 0, sessions, "sessions cannot be shared by", clients, "clients")
    body = json.dumps({"workflow": {"text": workflow, "name": "bench"}, "task": "the work", "cwd": box.cwd,
                       "scenario": {"text": json.dumps({"replies": replies})}}).encode()
    with multiprocessing.Pool(clients) as pool:
        pool.apply(submit_many, (box.socket, body, 1))
        box.until(idle, "the first session does not end")
        before, begin = cpu_ms(box.process.pid), time.monotonic()
        pool.starmap(submit_many, [(box.socket, body, sessions // clients)] * clients, chunksize=1)
        box.until(idle, "its sessions do not end")
        return time.monotonic() - begin, cpu_ms(box.process.pid) - before
