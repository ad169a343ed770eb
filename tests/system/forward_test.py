#!/usr/bin/env python3
"""segue-shim forward: bytes between a port of 127.0.0.1 and a Unix socket, for as long as a program runs.

usage: forward_test.py BUILD_DIR [CASE...]

Here without a network of its own around it; way_out_test has that."""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading

from support import BUILD, WAIT_S, expect, main

SHIM = os.path.join(BUILD, "segue-shim")
ECHO = """
import os, socket, sys, urllib.parse
where = urllib.parse.urlparse(os.environ["HTTPS_PROXY"])
def go():
    return socket.create_connection((where.hostname, where.port))
"""


class Outside:
    """What the program reaches: a socket in a folder, that echoes."""

    def __init__(self, deep=False):
        self.dir = tempfile.TemporaryDirectory(prefix="segue-test-")
        self.folder = os.path.join(self.dir.name, *(["f" * 60] * 3 if deep else []))
        os.makedirs(self.folder, exist_ok=True)
        self.path = self.folder + "/way"
        self.listener = socket.socket(socket.AF_UNIX)
        here = os.open(self.folder, os.O_PATH)
        self.listener.bind(f"/proc/self/fd/{here}/way")
        os.close(here)
        self.listener.listen(64)
        self.seen = 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                c = self.listener.accept()[0]
            except OSError:
                return
            self.seen += 1
            threading.Thread(target=self.echo, args=(c,), daemon=True).start()

    @staticmethod
    def echo(c):
        with c:
            try:
                first = c.recv(65536)
                if first.startswith(b"break"):
                    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
                    return
                while first:
                    c.sendall(first)
                    first = c.recv(65536)
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        self.dir.cleanup()


def run(outside, code, *words, bypass="", **more):
    return subprocess.run([SHIM, "forward", outside.path if outside else "/x", bypass, sys.executable, "-c", ECHO + code, *words],
                          capture_output=True, timeout=WAIT_S, check=False, **more)


def both_ways():
    for deep in (False, True):
        with Outside(deep) as outside:
            done = run(outside, """
import threading
data = os.urandom(3_000_000)
got = [b""] * 4
def one(i):
    with go() as c:
        t = threading.Thread(target=lambda: (c.sendall(data), c.shutdown(socket.SHUT_WR)))
        t.start()
        while (piece := c.recv(65536)):
            got[i] += piece
        t.join()
threads = [threading.Thread(target=one, args=(i,)) for i in range(4)]
for t in threads: t.start()
for t in threads: t.join()
sys.exit(0 if got == [data] * 4 else 3)
""")
            expect(done.returncode == 0 and outside.seen == 4, deep, done, outside.seen)


def what_breaks_is_closed(outside: Outside):
    done = run(outside, """
with go() as c:
    c.sendall(b"break")
    try:
        said = c.recv(10)
    except ConnectionError:
        said = b""
many = [go() for _ in range(80)]  # more than it carries
os.write(1, said)
closed = 0
for c in many:
    c.settimeout(5)
    try:
        c.sendall(b"x")
        closed += c.recv(10) == b""
    except ConnectionError:
        closed += 1
print(closed)
""")
    expect(done.returncode == 0 and done.stdout == b"16\n", done)
    outside.listener.close()
    os.unlink(outside.path)
    done = run(outside, "c = go(); print(c.recv(10))")
    expect(done.stdout == b"b''\n", done)


def it_ends_as_its_program_did(outside: Outside):
    for code, status in (("", 0), ("sys.exit(7)", 7), ("os.kill(os.getpid(), 9)", 137),
                         ("os.fork() or os._exit(3)", 0),  # an orphan is reaped, not taken for it
                         ("os.setsid(); os.fork() and os._exit(4)", 4)):
        done = run(outside, code)
        expect(done.returncode == status, code, done)
    with subprocess.Popen([SHIM, "forward", outside.path, "", sys.executable, "-c", """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
print("ready", flush=True)
while True:
    signal.pause()
"""], stdout=subprocess.PIPE) as p:
        expect(p.stdout.readline() == b"ready\n")
        p.send_signal(signal.SIGTERM)  # goes on to the program
        expect(p.wait(WAIT_S) == 5, p.returncode)


def variables(outside: Outside):
    env = {**os.environ, "ALL_PROXY": "http://elsewhere", "no_proxy": "old", "http_proxy": "http://old"}
    done = run(outside, "print(sorted((k, v) for k, v in os.environ.items() if 'PROXY' in k.upper()))", bypass="a.example,b", env=env)
    told = dict(eval(done.stdout))  # noqa: S307
    url = told.pop("HTTPS_PROXY")
    expect(url.startswith("http://127.0.0.1:") and told == {
        "HTTP_PROXY": url, "http_proxy": url, "https_proxy": url, "NO_PROXY": "a.example,b", "no_proxy": "a.example,b",
        "NODE_USE_ENV_PROXY": "1"}, told)


def what_cannot_begin_says_so(outside: Outside):
    for words, status in (([], 2), ([outside.path], 2), ([outside.path, ""], 2), (["way", "", "true"], 2),
                          (["/" + "f" * 5000 + "/way", "", "true"], 2),
                          (["/nonexistent/way", "", "true"], 127), ([outside.path, "", "/nonexistent"], 127)):
        done = subprocess.run([SHIM, "forward", *words], capture_output=True, timeout=WAIT_S, check=False)
        expect(done.returncode == status and (status == 2 or b"segue-shim: " in done.stderr), words, done)


if __name__ == "__main__":
    sys.exit(main([both_ways, what_breaks_is_closed, it_ends_as_its_program_did, variables, what_cannot_begin_says_so]))
