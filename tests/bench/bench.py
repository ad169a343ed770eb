"""What the benches share: the way to the tests' own modules, arguments, rows, clocks, processor time,
memory, sides that take turns, clients of one daemon.

A bench is run as NAME_bench.py BUILD_DIR [ARGUMENT...]. It prints a row a figure, beside its goal
where there is one. What is compared takes turns, so that a busy moment hits all sides alike.
"""
import datetime
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

from support import expect  # noqa: E402


def argument(n, otherwise):
    """The n-th number behind BUILD_DIR."""
    return int(sys.argv[n + 1]) if len(sys.argv) > n + 1 else otherwise


def row(what, value, unit, goal=""):
    print(f"{what:52} {value:8.2f} {unit:10}{f' goal {goal}' if goal else ''}", flush=True)


def in_turns(rounds, sides):
    """What each side (name: function) gives in every round; the order turns round each time."""
    found = {name: [] for name in sides}
    for n in range(rounds):
        for name in list(sides)[::-1 if n % 2 else 1]:
            found[name].append(sides[name]())
    return found


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


def bounded():
    """Gives a program that is about to start 64 MiB for its data."""
    resource.setrlimit(resource.RLIMIT_DATA, (64 << 20, 64 << 20))


def seconds(ts):
    """Seconds since 1970 of a time in UTC."""
    return datetime.datetime.fromisoformat(ts.removesuffix("Z") + "+00:00").timestamp()


def at(record):
    """When a record was made, in seconds since 1970."""
    return seconds(record["ts"])


def git(folder, *words, env=None):
    done = subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, env=env,
                          capture_output=True, check=False)
    expect(done.returncode == 0, words, done.stderr)


def submit_many(path, body, count, ready=None):
    """Submits a session so many times, and does no more than a client must: it writes the bytes of a
    request and reads the answer up to its end."""
    line = socket.socket(socket.AF_UNIX)
    line.connect(path)
    if ready is not None:
        ready.wait(60)
    request = b"POST /v1/sessions HTTP/1.1\r\nHost: segue\r\nContent-Type: application/json\r\n" \
              b"Content-Length: %d\r\n\r\n" % len(body) + body
    for _ in range(count):
        line.sendall(request)
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
