"""What the benches share: the way to the tests' own modules, rows, clocks, processor time, memory,
sides that take turns, sessions that clients of one daemon submit.

A bench is a function whose parameters are its numbers (tests/bench/run.py lists and calls them). It
prints a row a figure, beside its goal where there is one. What is compared takes turns, so that a
busy moment hits all sides alike.
"""
import datetime
import json
import multiprocessing
import os
import re
import resource
import socket
import subprocess
import sys
import time
from statistics import median

sys.dont_write_bytecode = True
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TESTS + "/system", TESTS + "/support"]

from support import BUILD, Failed, expect  # noqa: E402

FLOOR = BUILD + "/helpers/floor"


def row(what, value, unit="", goal=""):
    """A figure beside its goal, such as "<= 20"."""
    missed = ""
    if goal:
        sign, bound = goal.split()
        missed = "" if (value <= float(bound) if sign == "<=" else value >= float(bound)) else ", missed"
    print(f"{what:56} {value:9.2f} {unit:10}{f' goal {goal}{missed}' if goal else ''}", flush=True)


def in_turns(rounds, sides):
    """What each side (name: function) gives in every round, a list a side; the order turns round each time."""
    found = {name: [] for name in sides}
    for n in range(rounds):
        for name in list(sides)[::-1 if n % 2 else 1]:
            found[name].append(sides[name]())
    return list(found.values())


def times_as(ones, others):
    """The median, over the rounds, of one side's figure divided by the other's."""
    return median(a / b for a, b in zip(ones, others))


def elapsed_s(what):
    begin = time.perf_counter()
    what()
    return time.perf_counter() - begin


def children_cpu_s():
    """Processor time of the programs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ran(*words, bound=False, **more):
    """Seconds by the clock, seconds of the processor, and the output of a program; bound: with 64 MiB
    for its data."""
    before, begin = children_cpu_s(), time.perf_counter()
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          preexec_fn=bounded if bound else None, check=False, **more)
    took = time.perf_counter() - begin
    expect(done.returncode == 0, *words, "failed:", done.stderr)
    return took, children_cpu_s() - before, done.stdout


def bounded():
    resource.setrlimit(resource.RLIMIT_DATA, (64 << 20, 64 << 20))


def cpu_ms(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        words = f.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def memory_kib(pid, field, file="status"):
    """The sum of the lines of a file of /proc/PID that begin with the field."""
    with open(f"/proc/{pid}/{file}", encoding="ascii") as f:
        found = [int(line.split()[1]) for line in f if line.startswith(field)]
    expect(found, field, "of", pid, "is not there")
    return sum(found)


def peak_mib(*words, statuses=(0,), **more):
    """The most that a program held; it is asked until it ends."""
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, **more)
    most = 0
    while process.poll() is None:
        try:
            most = max(most, memory_kib(process.pid, "VmHWM") / 1024)
        except (OSError, Failed):
            break
    expect(process.wait() in statuses, *words, "failed")
    return most


def seconds(ts):
    """Seconds since 1970 of a time in UTC."""
    return datetime.datetime.fromisoformat(ts.removesuffix("Z") + "+00:00").timestamp()


def at(record):
    """When a record was made, in seconds since 1970."""
    return seconds(record["ts"])


def git(folder, *words, env=None):
    ran("git", "-c", "user.name=a", "-c", "user.email=a@b", *words, cwd=folder, env=env)


def fill(folder, files, text, committed=False):
    """Makes f0, and as many files more in 100 folders; in a repository, all of them are committed."""
    for i in range(files):
        below = f"{folder}/d{i % 100}" if i else folder
        os.makedirs(below, exist_ok=True)
        with open(f"{below}/f{i}", "w", encoding="ascii") as f:
            f.write(f"{text} {i}\n" * 20)
    if committed:
        for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-qm", "all")):
            git(folder, *words)


# ---- many sessions of a daemon -----------------------------------------------------------------------

def request(box, workflow, replies):
    """The body that submits a session."""
    return json.dumps({"workflow": {"text": workflow, "name": "bench"}, "task": "the work", "cwd": box.cwd,
                       "scenario": {"text": json.dumps({"replies": replies})}}).encode()


def submit_many(path, body, count, ready=None):
    """Submits a session so many times, and does no more than a client must: it writes the bytes of a
    request and reads the answer up to its end."""
    line = socket.socket(socket.AF_UNIX)
    line.connect(path)
    if ready is not None:
        ready.wait(60)
    asked = b"POST /v1/sessions HTTP/1.1\r\nHost: segue\r\nContent-Type: application/json\r\n" \
            b"Content-Length: %d\r\n\r\n" % len(body) + body
    for _ in range(count):
        line.sendall(asked)
        said = b""
        while b"\r\n\r\n" not in said:
            said += line.recv(65536) or b"\r\n\r\n"
        head, _, rest = said.partition(b"\r\n\r\n")
        expect(head.startswith(b"HTTP/1.1 201 "), said)
        left = int(re.search(rb"(?i)content-length: (\d+)", head)[1]) - len(rest)
        while left > 0:
            left -= len(line.recv(left))
    line.close()


def run_clients(count, client, *words):
    """Runs so many clients as processes of their own; each gets a barrier `ready`, which it passes
    once it is connected. Returns what to call for the rest: it waits until they have all ended."""
    ready = multiprocessing.Barrier(count + 1)
    clients = [multiprocessing.Process(target=client, args=(*words, ready)) for _ in range(count)]
    for one in clients:
        one.start()
    ready.wait(60)  # making processes is no part of what is measured

    def join():
        for one in clients:
            one.join()
            expect(one.exitcode == 0, "a client failed")
    return join


def until_idle(box):
    def idle():
        health = box.get("/v1/health")["sessions"]
        return health["running"] == health["queued"] == 0
    box.until(idle, "its sessions do not end")


def load(box, body, sessions, clients):
    """Seconds, and processor milliseconds of a warm daemon, for sessions that clients submit at once."""
    expect(sessions % clients == 0, sessions, "sessions cannot be shared by", clients, "clients")
    submit_many(box.socket, body, 1)
    until_idle(box)
    join = run_clients(clients, submit_many, box.socket, body, sessions // clients)
    before, begin = cpu_ms(box.process.pid), time.monotonic()
    join()
    until_idle(box)
    return time.monotonic() - begin, cpu_ms(box.process.pid) - before
