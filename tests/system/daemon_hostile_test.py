#!/usr/bin/env python3
"""What a client can do to the daemon: garbage, sizes, slowness, cuts, crowds, another user, few
descriptors; and that nothing is left of it.

usage: daemon_hostile_test.py BUILD_DIR [CASE...]
SEGUE_LONG=1: 100,000 requests instead of 4,000, and the cases that wait for time limits.
"""
import json
import os
import random
import select
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from support import SANITIZED, at_once, chance, expect, main, records, sound, verified
from daemon import LONG, DaemonBox, Events, simple

SEED = chance()
DONE = [(1, "plan", 1, "auto_select"), (2, "do", 1, "structured_output")]
GET = b"GET /v1/health HTTP/1.1\r\nHost: segue\r\n\r\n"


def raw(box, data, timeout=3):
    """What comes back for some bytes, until the daemon says no more or hangs up."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(timeout)
    s.connect(box.socket)
    got = b""
    try:
        s.sendall(data)
    except OSError:  # it has read enough, and may have answered
        pass
    try:
        while len(got) < 1 << 20:
            piece = s.recv(65536)
            if not piece:
                break
            got += piece
    except OSError:
        pass
    s.close()
    return got


def alive(box):
    expect(box.process.poll() is None, "it ended:", box.said)
    begin = time.monotonic()
    box.get("/v1/health")
    at_once(begin, 5, "it is slow")


def garbage():
    rng = random.Random(SEED)
    with DaemonBox() as box:
        box.serve()
        fds = box.fds()
        rows = [b"\0" * 100, b"\r\n\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                b"GET /v1/health HTTP/1.1\r\nHost: segue\r\nContent-Length: -1\r\n\r\n",
                b"POST /v1/sessions HTTP/1.1\r\nHost: segue\r\nContent-Length: 99999999999999999999\r\n\r\n",
                b"POST /v1/sessions HTTP/1.1\r\nHost: segue\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                b"POST /v1/sessions HTTP/1.1\r\nHost: segue\r\nContent-Type: application/json\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
                b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)),
                b"GET /%00%ff%2e%2e HTTP/1.1\r\nHost: segue\r\n\r\n",
                b"GET /v1/sessions?status=%00&limit=%ff HTTP/1.1\r\nHost: segue\r\n\r\n",
                b"GET /v1/sessions/\x1b]0;x\x07 HTTP/1.1\r\nHost: segue\r\n\r\n"]
        rows += [bytes(rng.randrange(256) for _ in range(rng.randrange(1, 400)))
                 for _ in range(200)]
        for _ in range(200):  # a sound request with a few bytes changed
            request = bytearray(GET)
            for _ in range(rng.randrange(1, 5)):
                request[rng.randrange(len(request))] = rng.randrange(256)
            rows.append(bytes(request))
        with ThreadPoolExecutor(32) as pool:  # many wait for an answer that does not come
            answers = list(pool.map(lambda row: raw(box, row, 0.3), rows))
        for row, got in zip(rows, answers):
            expect(not got or got.startswith(b"HTTP/1.1 ") or got.startswith(b"HTTP/1.0 "), row, got)
            expect(b"\x1b" not in got and b"\x07" not in got, "escapes come back:", row)
        alive(box)
        box.until(lambda: box.fds() <= fds + 1, "descriptors are left:", box.fds(), fds)
        box.end()
        return f"seed {SEED}"


def refusals_of_what_is_no_request():
    """Bytes of which no sound request can be made: an answer, and the connection's end. What the library
    can still read gets a problem of ours, the rest a page of its own."""
    post = b"POST /v1/sessions HTTP/1.1\r\nHost: segue\r\nContent-Type: application/json\r\n"
    rows = [(b"hello world\r\n\r\n", 400), (b"GET / HTTP/9.9\r\n\r\n", 505),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
            (b"GET / HTTP/1.1\r\nno colon\r\nHost: segue\r\n\r\n", 400),
            (b"GET /v1/health HTTP/1.1\r\nHost: segue\r\nContent-Length: -1\r\n\r\n", 400),
            (post + b"Content-Length: 99999999999999999999\r\n\r\n", 413),
            (post + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
            (post + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
            (post + b"Transfer-Encoding: gzip\r\n\r\n{}", 501),
            (post + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
            (post + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", 413),
            (b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\n\r\n", 414),
            (b"GET /v1/health HTTP/1.1\r\n" + b"A: b\r\n" * 10000 + b"\r\n", 431),
            (b"BREW /v1/health HTTP/1.1\r\nHost: segue\r\nConnection: close\r\n\r\n", 405)]
    ours = [row for row, wanted in rows
            if b"Length: 3" in row or b"chunked\r\n\r\n0" in row or wanted in (405, 501)]
    with DaemonBox() as box:
        box.serve()
        fds = box.fds()
        for row, wanted in rows:
            begin = time.monotonic()
            got = raw(box, row, 20)
            head, _, body = got.partition(b"\r\n\r\n")
            expect(b"HTTP/1.1 %d " % wanted in got[:300], row[:80], "gave", got[:200])
            at_once(begin, 5, row[:80], "hangs")
            if row not in ours:
                continue
            fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
            expect(fields[b"Content-Type"] == b"application/problem+json", row[:80], head)
            expect(fields[b"Connection"].lower() == b"close", row[:80], head)
            expect(int(fields[b"Content-Length"]) == len(body), row[:80], got)
            value = json.loads(body)
            expect(value["status"] == wanted, value)
            method, path = ("POST", "/v1/sessions") if row.startswith(post) else ("GET", "/v1/health")
            box.answers.append((wanted, "application/problem+json", path, method, value))
        box.check_all()
        alive(box)
        box.until(lambda: box.fds() <= fds + 1, "descriptors are left:", box.fds(), fds)
        box.end()


def oversized(box: DaemonBox):
    box.serve()
    got = raw(box, b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\n\r\n")
    expect(b" 4" in got[:14] or got == b"", got[:100])
    got = raw(box, b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 10000 + b"\r\n")
    expect(b" 4" in got[:14] or got == b"", got[:100])
    said = b"POST /v1/sessions HTTP/1.1\r\nHost: segue\r\nContent-Type: application/json\r\n"
    got = raw(box, said + b"Content-Length: 99999999\r\n\r\n" + b"x" * 1000)
    expect(b" 413 " in got[:20] and b"problem+json" in got, got[:100])
    chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    before = box.rss_kib()
    got = raw(box, said + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 30 + b"0\r\n\r\n", 30)
    expect(b" 413 " in got[:20] or got == b"", got[:100])
    # many bodies at once: together they are bounded too
    body = b"Content-Length: 16000000\r\n\r\n" + b" " * 15000000
    held = []
    for _ in range(8):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(10)
        s.connect(box.socket)
        s.sendall(said + body)
        held.append(s)
    grown = box.rss_kib() - before
    expect(SANITIZED or grown < 120 * 1024, "memory grew by", grown, "KiB")
    alive(box)
    for s in held:
        s.close()
    alive(box)
    # bodies that are mostly small values: what they took in memory goes back
    for body in (b'{"workflow":' + b"[" + b"1," * 5000000 + b"1]}", b'{"a":' + b"[[]," * 3000000,
                 json.dumps({f"k{i}": {} for i in range(600000)}).encode()):
        status, value = box.ask("POST", "/v1/sessions", body)
        expect(status in (400, 413), status, value)
        grown = box.rss_kib() - before
        expect(SANITIZED or grown < 120 * 1024, "memory is kept:", grown, "KiB")
    box.end()


def big_bodies_hold_up_nobody(box: DaemonBox):
    """While one is read, checked and written to a blob, others are answered."""
    box.serve()
    workflow, scenario = simple(box)
    with open(workflow, encoding="utf-8") as f:
        inline = {"text": f.read()}
    values = {"providers": {f"m{i}": "script" for i in range(30000)}}
    many = json.dumps({"replies": [{"text": "x"}] * 300000})
    fine = {"workflow": workflow, "cwd": box.cwd, "scenario": scenario}
    rows = [(b'{"task":"' + b"\\u0041" * 2700000 + b'"}', 422, "cwd must be given", 5),
            ({**fine, "task": "\u65e5" * 2600000}, 201, None, 5),
            ({**fine, "workflow": inline, "scenario": {"text": many}}, 422, "200000 values", 5),
            ({**fine, **values}, 413, "more than 20000 values", 0),
            (b'{"workflow":[' + b"[]," * 5000000 + b"[]]}", 413, "more than 20000 values", 0),
            (b"[" * 16000000, 400, "nested more than 64 levels", 0)]
    fewest = 1 << 30
    for body, wanted, what, meanwhile in rows:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(60)
        s.connect(box.socket)
        s.sendall(b"POST /v1/sessions HTTP/1.1\r\nHost: segue\r\nConnection: close\r\n"
                  b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
        answered = 0
        while not select.select([s], [], [], 0)[0]:
            expect(box.ask("GET", "/v1/health", keep=False)[0] == 200, "health")
            answered += 1
        got = b""
        while piece := s.recv(65536):
            got += piece
        s.close()
        value = json.loads(got.partition(b"\r\n\r\n")[2])
        expect(got.startswith(b"HTTP/1.1 %d " % wanted), data[:60], "gave", got[:300])
        expect(what is None or what in value["detail"], data[:60], "gave", value)
        expect(answered >= meanwhile, "only", answered, "were answered during", data[:60])
        fewest = min(fewest, answered) if meanwhile else fewest
        if wanted == 201:
            box.wait_status(value["id"], "complete")
            start = records(box.log(value["id"]))[0]
            expect(os.path.getsize(f"{box.logs}/blobs/{start['task_blob']}") == 7800000, start)
            verified(box, box.log(value["id"]))
    gone = []  # they leave while theirs is read, or waits for that
    data = rows[0][0]
    for _ in range(4):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(60)
        s.connect(box.socket)
        s.sendall(b"POST /v1/sessions HTTP/1.1\r\nHost: segue\r\nContent-Type: application/json\r\n"
                  b"Content-Length: %d\r\n\r\n" % len(data) + data)
        gone.append(s)
    for s in gone:
        s.close()
    sid = box.submit(workflow, scenario)
    box.wait_status(sid, "complete")
    box.check_all()
    box.end()
    return f"at least {fewest} requests were answered meanwhile"


def slow_and_cut(box: DaemonBox):
    box.serve()
    workflow, scenario = simple(box, 20)
    fds = box.fds()
    body = json.dumps({"workflow": workflow, "scenario": scenario, "cwd": box.cwd}).encode()
    request = (b"POST /v1/sessions HTTP/1.1\r\nHost: segue\r\nContent-Type: application/json\r\n"
               b"Content-Length: %d\r\n\r\n" % len(body)) + body
    held = []
    for n in range(0, len(request), 7):  # cut at every seventh byte; some stay open
        s = socket.socket(socket.AF_UNIX)
        s.connect(box.socket)
        s.sendall(request[:n])
        held.append(s) if n % 3 == 0 else s.close()
    alive(box)
    expect(box.log_paths() == [], "half a request was taken")
    for s in held:
        s.close()
    s = socket.socket(socket.AF_UNIX)  # byte by byte it is a request all the same
    s.settimeout(30)
    s.connect(box.socket)
    for byte in request:
        s.send(bytes([byte]))
    expect(b" 201 " in s.recv(65536)[:20], "byte by byte")
    for _ in range(20):  # the client leaves before the answer: all of the session or nothing
        s = socket.socket(socket.AF_UNIX)
        s.connect(box.socket)
        s.sendall(request)
        s.close()
    box.until(lambda: box.fds() <= fds + 2, "descriptors are left", box.fds(), fds)
    for path in box.begun():
        box.wait_status(os.path.basename(path)[:36], "complete")
        sound(records(path), DONE)
    box.until(lambda: box.fds() <= fds + 2, "descriptors are left", box.fds(), fds)
    if LONG:
        begin = time.monotonic()
        silent = socket.socket(socket.AF_UNIX)
        silent.connect(box.socket)
        trickle = socket.socket(socket.AF_UNIX)
        trickle.connect(box.socket)
        ended = {}
        while len(ended) < 2 and time.monotonic() - begin < 100:
            for name, s in (("silent", silent), ("trickle", trickle)):
                if name in ended:
                    continue
                try:
                    if name == "trickle":
                        s.send(b"G")
                    s.settimeout(0.5)
                    if s.recv(10) == b"":
                        ended[name] = time.monotonic() - begin
                except TimeoutError:
                    pass
                except OSError:
                    ended[name] = time.monotonic() - begin
        expect(ended.get("silent", 99) < 40 and ended.get("trickle", 99) < 75, ended)
    box.end()


def slow_readers(box: DaemonBox):
    """One who does not read costs nothing and holds up nobody; one who comes back misses nothing."""
    box.serve()
    workflow, scenario = simple(box, 0, text="word " * 12000)
    text = open(workflow, encoding="utf-8").read().replace("good, next: COMPLETE", "good, next: plan")
    loop = box.file("loop.yaml", text.replace("max_movements: 20", "max_movements: 400"))
    stuck = []
    sid = box.submit(loop, scenario)
    for _ in range(20):
        s = socket.socket(socket.AF_UNIX)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(box.socket)
        s.sendall(f"GET /v1/sessions/{sid}/events HTTP/1.1\r\nHost: segue\r\n\r\n".encode())
        stuck.append(s)
    before = box.rss_kib()
    seen = [int(e[1]) for e in Events(box, sid) if e[0] == "record"]
    expect(seen == list(range(1, len(seen) + 1)), "the one who reads misses some")
    expect(box.session(sid)["status"] == "max_movements", box.session(sid))
    grown = box.rss_kib() - before
    expect(SANITIZED or grown < 16 * 1024, "memory grew by", grown, "KiB")
    if LONG:
        begin = time.monotonic()
        fds = box.fds()
        box.until(lambda: box.fds() <= fds - 20, "they are not dropped")
        at_once(begin, 60, "dropped late")
    for s in stuck:
        s.close()
    box.end()
    return f"{len(seen)} records"


def a_crowd(box: DaemonBox):
    """Clients at once submit, look, watch and cancel: each sees what is so."""
    box.serve("-n", "6")
    workflow, scenario = simple(box, 10)

    def client(number):
        rng = random.Random(SEED + number)
        mine = {}
        for _ in range(6):
            sid = box.submit(workflow, scenario, task=f"of client {number}")
            mine[sid] = "complete"
            if rng.random() < 0.3:
                status, value = box.ask("POST", f"/v1/sessions/{sid}/cancel")
                expect(status in (200, 409), status, value)
                mine[sid] = "cancelled" if status == 200 else "complete"
            elif rng.random() < 0.5:
                last = [e for e in Events(box, sid) if e[0] == "record"][-1]
                expect(last[2]["type"] == "session_end", last)
            box.get("/v1/sessions?limit=5")
        for sid, status in mine.items():
            box.wait_status(sid, status)
        return mine

    with ThreadPoolExecutor(12) as pool:
        mine = list(pool.map(client, range(12)))
    every = {sid: status for part in mine for sid, status in part.items()}
    expect(len(every) == 72 == len(box.log_paths()), len(every))
    for sid, status in every.items():
        log = records(box.log(sid))
        if status == "complete":
            sound(log, DONE, repeats=0)
        expect(log[-1]["outcome"] == status, log[-1])
    verified(box, *map(box.log, every))
    box.check_all()
    box.end()
    return f"seed {SEED}"


def another_user():
    if os.geteuid() != 0:
        return "skipped: needs root"
    with DaemonBox() as box:
        box.serve()
        as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        code = ("import socket,sys\ns=socket.socket(socket.AF_UNIX)\n"
                "try:\n s.connect(sys.argv[1])\nexcept OSError as e:\n print('refused', e.errno)\n"
                "else:\n s.settimeout(5)\n try:\n  s.sendall(sys.argv[2].encode()); print(s.recv(99))\n"
                " except OSError as e:\n  print('hung up', e.errno)\n")

        def call():
            return subprocess.run([*as_nobody, "python3", "-c", code, box.socket, GET.decode()],
                                  capture_output=True, check=False, text=True)

        done = call()
        if done.returncode != 0:
            return "skipped: another user cannot run python3"
        expect("refused 13" in done.stdout, done.stdout)
        for path in (box.dir, box.dir + "/run", box.dir + "/run/segue", box.socket):
            os.chmod(path, 0o777)  # even if the modes are wrong
        done = call()
        expect("HTTP" not in done.stdout, done.stdout)
        expect("b''" in done.stdout or "hung up" in done.stdout, done.stdout)
        box.wait_said("another user")
        for path in (box.socket, box.dir + "/run/segue"):
            os.chmod(path, 0o700)
        alive(box)
        box.end()


def few_descriptors(box: DaemonBox):
    box.serve("-n", "50", prefix=["prlimit", "--nofile=64:64"])
    expect(any("only" in s and "limit of open files is 64" in s for s in box.said), box.said)
    workflow, scenario = simple(box, 30)
    command = box.file("cmd.yaml", "name: c\nmovements:\n  - name: s\n    command: ['true']\n"
                                   "    rules: [{condition: when(exit == 0), next: COMPLETE}]\n")
    sids = [box.submit(command if i % 3 == 0 else workflow,
                       None if i % 3 == 0 else scenario) for i in range(30)]
    held = []
    for _ in range(100):  # more than can be accepted: they wait, nothing spins
        s = socket.socket(socket.AF_UNIX)
        s.setblocking(False)
        try:
            s.connect(box.socket)
        except BlockingIOError:
            s.close()
            break
        held.append(s)
    with open(f"/proc/{box.process.pid}/stat", encoding="ascii") as f:
        before = sum(map(int, f.read().split()[13:15]))
    time.sleep(1)  # a second of its CPU time is what is measured
    expect(box.fds() <= 64, box.fds())
    for s in held:
        s.close()
    for sid in sids:
        box.wait_status(sid, "complete")
    with open(f"/proc/{box.process.pid}/stat", encoding="ascii") as f:
        used = sum(map(int, f.read().split()[13:15])) - before
    expect(len(held) >= 20, "only", len(held), "waited")
    verified(box, *map(box.log, sids))
    alive(box)
    box.end()
    return f"{len(held)} connections at once, {used / 100:.1f} s of CPU"


def nothing_leaks():
    requests = 100000 if LONG else 4000
    with DaemonBox() as box:
        box.serve()
        workflow, scenario = simple(box)
        sid = box.submit(workflow, scenario)
        box.wait_status(sid, "complete")
        rows = [("GET", "/v1/sessions/" + sid, None), ("GET", "/v1/health", None),
                ("GET", "/v1/sessions?limit=3", None), ("GET", "/v1/none", None),
                ("GET", f"/v1/sessions/{sid}/events", None),
                ("POST", "/v1/sessions", {"workflow": "/none", "cwd": "/"}),
                ("POST", f"/v1/sessions/{sid}/cancel", None), ("POST", "/v1/sessions", b"{")]

        def some(count):
            for i in range(count):
                method, path, body = rows[i % len(rows)]
                if i % 97 == 0:
                    box.connection().close()  # a new connection
                status, _ = box.ask(method, path, body, {"Content-Type": "application/json"},
                                    keep=False)
                expect(status < 500, method, path, status)

        def many(count):
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(some, [count // 4] * 4))

        many(requests // 4)
        box.until(lambda: box.fds() < 40, "descriptors", box.fds())
        before = box.rss_kib()
        many(requests)
        box.until(lambda: box.fds() < 40, "descriptors", box.fds())
        grown = box.rss_kib() - before
        expect(SANITIZED or grown < 1024, "memory grew by", grown, "KiB")
        box.end()
        return f"{requests} requests, {grown} KiB more"


CASES = [garbage, refusals_of_what_is_no_request, oversized,
         big_bodies_hold_up_nobody, slow_and_cut, slow_readers, a_crowd, another_user, few_descriptors,
         nothing_leaks]

if __name__ == "__main__":
    sys.exit(main(CASES))
