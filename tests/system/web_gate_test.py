#!/usr/bin/env python3
"""Who may see the window: each rule of its door, one by one, and with a real browser from elsewhere."""
import contextlib
import http.client
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.parse
from pathlib import Path

import browser
from daemon import DaemonBox, simple
from support import WAIT_S, expect, main, needs, of_type, records, skip

FETCH = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
NAVIGATE = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}
POLICY = {"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy",
          "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "Cache-Control"}


ASKS = """
name: which
movements:
  - name: which
    ask: {question: Which database is it to be?, choices: [postgres, sqlite]}
    rules: [{condition: postgres, next: ABORT}, {condition: sqlite, next: COMPLETE}]
"""
UNSURE = """
name: unsure
provider: script
movements:
  - name: one
    instruction: do it
    rules: [{condition: good, next: COMPLETE}, {condition: bad, next: ABORT}]
"""


class Window:
    """What a browser would send, header by header."""

    def __init__(self, url):
        at = urllib.parse.urlsplit(url)
        self.host, self.path, self.code = at.netloc, at.path, at.fragment
        self.cookie = None
        self.address = None  # where it is, if that is not its host

    def ask(self, method, path, headers=None, body=None, drop=(), absolute=False, raw=None):
        all_headers = {"Host": self.host, **FETCH}
        if self.cookie:
            all_headers["Cookie"] = self.cookie
        if method == "POST":
            all_headers |= {"Origin": "http://" + self.host, "X-Segue": "1",
                            "Content-Type": "application/json"}
        all_headers |= headers or {}
        for name in drop:
            all_headers.pop(name, None)
        connection = http.client.HTTPConnection(*(self.address or (self.host,)), timeout=WAIT_S)
        connection.putrequest(method, path if absolute else self.path + path, skip_host=True,
                              skip_accept_encoding=True)
        data = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        if method == "POST":
            all_headers["Content-Length"] = str(len(data))
        for name, value in all_headers.items():
            connection.putheader(name, value)
        connection.endheaders(data or None)
        answer = connection.getresponse()
        got = answer.status, dict(answer.getheaders()), answer.read()
        connection.close()
        expect(POLICY <= set(got[1]), "a header is missing:", got[1])
        return got

    def enter(self):
        status, headers, _ = self.ask("POST", "enter", body={"code": self.code})
        expect(status == 204, "the code is not taken:", status)
        self.cookie = headers["Set-Cookie"].split(";")[0]
        return headers["Set-Cookie"]


class WebBox(DaemonBox):
    def code(self, *words):
        return self.segue("web", "--no-open", *words, status=0).stdout.decode().strip()

    def window(self, *words):
        window = Window(self.code(*words))
        window.enter()
        return window


def is_closed(got):
    status, _, body = got
    return status == 404 and body == b"There is nothing here.\n"


def ports(pid):
    """TCP ports on which a process listens."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found = re.match(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            continue
        if found:
            inodes.add(found.group(1))
    rows = []
    for name in ("tcp", "tcp6"):
        with open(f"/proc/net/{name}", encoding="ascii") as f:
            rows += [line.split() for line in f.readlines()[1:]]
    return [r[1] for r in rows if r[3] == "0A" and r[9] in inodes]


def proxy(box: WebBox):
    """Behind a reverse proxy with TLS: its name and Origin, a Secure cookie, another user's end; alone neither."""
    for words, said in ((("--http-origin", "https://a.example"), b"--http ADDRESS"),
                        (("--http", "127.0.0.1:0", "--http-peer", "any"), b"--http-origin"),
                        (("--http", "127.0.0.1:0", "--http-peer", "all"), b"any"),
                        (("--http", "127.0.0.1:0", "--http-origin", "http://a.example"), b"https://HOST"),
                        (("--http", "127.0.0.1:0", "--http-origin", "https://a.example/x"), b"https://HOST"),
                        (("--http", "127.0.0.1:0", "--http-origin", "https://"), b"https://HOST")):
        box.segue("serve", *words, status=2, err=said)
    box.serve("--http", "127.0.0.1:0", "--http-origin", "https://a.example:8443", "--http-peer", "any")
    url = box.code()
    expect(url.startswith("https://a.example:8443/w/"), url)
    window = Window(url)
    address = ports(box.process.pid)[0].split(":")
    window.address = ("127.0.0.1", int(address[1], 16))
    mine = {"Origin": "https://a.example:8443"}
    expect(is_closed(window.ask("POST", "enter", body={"code": window.code})), "http for https")
    status, headers, _ = window.ask("POST", "enter", mine, body={"code": window.code})
    expect(status == 204 and "; Secure" in headers["Set-Cookie"], status, headers)
    window.cookie = headers["Set-Cookie"].split(";")[0]
    expect(window.ask("GET", "", NAVIGATE)[0] == 200)
    for host in ("127.0.0.1:%d" % window.address[1], "a.example", "b.example:8443"):
        expect(is_closed(window.ask("GET", "", {**FETCH, "Host": host})), host)
    box.end()


def off_by_default():
    """No port is open until one is asked for; addresses of others are refused."""
    with WebBox() as box:
        box.serve()
        expect(ports(box.process.pid) == [], ports(box.process.pid))
        window = box.window()
        listening = ports(box.process.pid)
        expect(len(listening) == 1 and listening[0].startswith("0100007F:"), listening)
        expect(window.ask("GET", "", NAVIGATE)[0] == 200)
        box.end()
    with WebBox() as box:
        for address in ("0.0.0.0:0", "192.168.0.1:80", "localhost:0", "[::]:0", "127.0.0.1", "1:x",
                        "127.0.0.1:70000", "[2001:db8::1]:80"):
            done = box.segue("serve", "--http", address)
            why = b"is not a port" if ":70000" in address else b"127.0.0.1:PORT"
            expect(done.returncode == 2 and why in done.stderr, address, done.stderr)
        for address in ("127.0.0.1:0", "[::1]:0", "127.0.0.2:0"):
            box.serve("--http", address)
            expect(len(ports(box.process.pid)) == 1, address)
            expect(box.window().ask("GET", "", NAVIGATE)[0] == 200, address)
            box.end()
        taken = socket.create_server(("127.0.0.1", 0))
        done = box.segue("serve", "--http", "127.0.0.1:%d" % taken.getsockname()[1])
        expect(done.returncode != 0 and b"another program uses the port" in done.stderr, done.stderr)
        offered = done.stderr.decode().rsplit("such as ", 1)[1].strip()
        box.serve("--http", offered)
        expect(box.window().ask("GET", "", NAVIGATE)[0] == 200, "the one that was offered", offered)
        box.end()
        taken.close()
        for words, why in ((("--http", "127.0.0.1:99999"), b"99999 is not a port"), (("--revoke", "--logs", box.logs), b"--revoke is for a daemon"),
                           (("--logs", box.dir + "/nowhere"), b"there is no log folder"), (("--revoke",), b"daemon")):
            box.segue("web", *words, status=2, err=why)


def codes(box: WebBox):
    """A code is good once; no other one is; the cookie is bound to the random path."""
    box.serve()
    window = Window(box.code())
    expect(re.fullmatch("/w/[0-9a-f]{32}/", window.path) and len(window.code) == 32, window.path)
    for wrong in ("0" * 32, "", window.code[:-1], window.code + "0", window.code.upper(), None, 1):
        if wrong != window.code:
            expect(window.ask("POST", "enter", body={"code": wrong})[0] == 404, wrong)
    cookie = window.enter()
    expect(f"; Path={window.path};" in cookie and "HttpOnly" in cookie
           and "SameSite=Strict" in cookie and "Domain" not in cookie, cookie)
    expect(len(cookie.split(";")[0]) == len("segue=") + 64, cookie)
    expect(window.ask("POST", "enter", body={"code": window.code})[0] == 404, "used twice")
    other = Window(box.code())
    expect(other.path == window.path and other.code != window.code)
    # cookies of other programs come along, up to 16 KiB of them
    many = "; ".join(f"c{i}={'x' * 100}" for i in range(140))
    expect(window.ask("GET", "", NAVIGATE | {"Cookie": f"{many}; {window.cookie}; a=b"})[0] == 200)
    for wrong in ("segue=" + "0" * 64, window.cookie[:-1], "x" + window.cookie, ""):
        expect(is_closed(window.ask("GET", "audit", {"Cookie": wrong})), wrong)
    box.segue("web", "--revoke")
    expect(is_closed(window.ask("GET", "audit")), "it was put out")
    expect(other.ask("POST", "enter", body={"code": other.code})[0] == 404, "so was its code")
    box.end()


def browsers_are_bounded(box: WebBox):
    """Of more browsers than there is room for, the one that was idle longest goes."""
    box.serve()
    all_of_them = [box.window() for _ in range(17)]
    expect(is_closed(all_of_them[0].ask("GET", "audit")), "it should have gone")
    expect(all(w.ask("GET", "audit")[0] == 200 for w in all_of_them[1:]))
    box.end()


def door(box: WebBox):
    """Host, Origin, Sec-Fetch-Site, method, content type, one by one: all that is wrong looks alike."""
    box.serve()
    workflow, scenario = simple(box, 20000)
    sid = box.submit(workflow, scenario)
    window = box.window()
    port = window.host.split(":")[1]
    expect(window.ask("GET", "audit")[0] == 200)
    refused = [
        ({"Host": "localhost:" + port}, ()), ({"Host": "127.0.0.1"}, ()), ({}, ("Host",)),
        ({"Host": "evil.example:" + port}, ()), ({"Host": window.host + "."}, ()),
        ({"Sec-Fetch-Site": "same-site"}, ()), ({"Sec-Fetch-Site": "cross-site"}, ()),
        ({}, ("Sec-Fetch-Site",)), ({"Origin": "http://evil.example"}, ()),
        ({"Origin": "null"}, ()), ({"Origin": "https://" + window.host}, ()),
        ({"Origin": "http://localhost:" + port}, ()), ({}, ("Cookie",))]
    for headers, drop in refused:
        expect(window.ask("GET", "audit", headers, drop=drop)[0] in (400, 404), headers, drop)
        got = window.ask("POST", f"s/{sid}/cancel", headers, {}, drop=drop)
        expect(got[0] in (400, 404), headers, drop, got)
    for headers, drop in (({}, ("Origin",)), ({"Sec-Fetch-Site": "none"}, ()),
                          ({}, ("X-Segue",)), ({"Content-Type": "text/plain"}, ()),
                          ({"Content-Type": "application/x-www-form-urlencoded"}, ())):
        expect(is_closed(window.ask("POST", f"s/{sid}/cancel", headers, {}, drop=drop)), headers)
    for name, other in (("Host", "evil.example"), ("Sec-Fetch-Site", "cross-site"), ("Origin", "http://evil.example")):
        for method, path in (("GET", "audit"), ("POST", f"s/{sid}/cancel")):
            expect(window.ask(method, path, {name.lower(): other}, {})[0] in (400, 404), "twice", method, name)
    for method in ("PUT", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"):
        expect(window.ask(method, "audit")[0] in (404, 405), method)
    for path in ("/", "/w/", "/w/x/", "/v1/health", "/v1/sessions", "/metrics", "/favicon.ico",
                 "/etc/passwd", window.path[:-1], window.path + "../v1/health"):
        expect(is_closed(window.ask("GET", path, absolute=True)), path)
    for path in ("v1/health", "s/../x/", "s/%2e%2e/", "s/" + "a" * 36 + "/x/y", "metrics",
                 f"s/{sid}/cancel", f"s/{sid}/resume", "enter"):
        got = window.ask("GET", path)
        expect(got[0] == 404, path, got)
    # without a cookie: one fixed page, whatever leads to it, and what it loads
    window.cookie, cookie = None, window.cookie
    for site in ("none", "cross-site", "same-site", "same-origin"):
        status, _, body = window.ask("GET", "", NAVIGATE | {"Sec-Fetch-Site": site})
        expect(status == 200 and b"enter.mjs" in body and sid.encode() not in body, site)
    expect(window.ask("GET", "style.css")[0] == window.ask("GET", "enter.mjs")[0] == 200)
    for path in ("page.mjs", "idiomorph.js", "audit", "events", f"s/{sid}/", "enter-page"):
        expect(is_closed(window.ask("GET", path)), path)
    # led here from elsewhere, with the cookie: still the fixed page only
    window.cookie = cookie
    body = window.ask("GET", "", NAVIGATE | {"Sec-Fetch-Site": "cross-site"})[2]
    expect(b"enter.mjs" in body and sid.encode() not in body)
    expect(box.get("/v1/sessions/" + sid)["status"] == "running", "somebody cancelled it")
    box.ask("POST", f"/v1/sessions/{sid}/cancel")
    box.end()


def read_only(box: WebBox):
    """Such a browser sees all and changes nothing."""
    box.serve()
    workflow, scenario = simple(box, 20000)
    sid = box.submit(workflow, scenario)
    looks, acts = box.window("--read-only"), box.window()
    page = looks.ask("GET", f"s/{sid}/")[2]
    expect(b"data-act" not in page and b"data-act" in acts.ask("GET", f"s/{sid}/")[2])
    expect(is_closed(looks.ask("POST", f"s/{sid}/cancel", body={})))
    expect(is_closed(looks.ask("POST", f"s/{sid}/steer", body={"text": "x"})))
    status, _, body = acts.ask("POST", f"s/{sid}/steer", body={"text": "from the window"})
    said = of_type(records(box.log(sid)), "steer")
    expect(status == 202 and [(r["text"], "window" in r["by"]) for r in said] == [("from the window", True)], status, said)
    expect(box.get("/v1/sessions/" + sid)["status"] == "running")
    status, _, body = acts.ask("POST", f"s/{sid}/cancel", body={})
    expect(status == 200 and json.loads(body)["status"] == "cancelled", status, body)
    status, _, body = acts.ask("POST", f"s/{sid}/resume", body={})
    expect(status == 409 and json.loads(body)["detail"], status, body)
    expect(of_type(records(box.log(sid)), "session_end")[0]["outcome"] == "cancelled")
    box.end()


def other_users():
    """A program of another user does not get a word, whatever it knows."""
    if os.geteuid() != 0:
        skip("needs root")
    with WebBox() as box:
        box.serve()
        window = box.window()
        host, port = window.host.split(":")
        script = ("import socket,sys; s=socket.create_connection((%r,%s)); s.sendall(%r);"
                  "sys.exit(0 if s.recv(100)==b'' else 9)"
                  % (host, port, f"GET {window.path} HTTP/1.1\r\nHost: {window.host}\r\n\r\n".encode()))
        done = subprocess.run(["/usr/bin/python3", "-c", script], user=65534, group=65534,
                              capture_output=True, timeout=WAIT_S)
        expect(done.returncode == 0 or b"ConnectionReset" in done.stderr, done.returncode, done.stderr)
        box.wait_said("another user connected to the window's port")
        expect(window.ask("GET", "audit")[0] == 200)
        box.end()


def with_headers(window, bytes_of, cookies):
    """A request with so many bytes of header fields, most of them in so many cookies of other programs."""
    host, port = window.host.split(":")
    fields = (f"Host: {window.host}\r\nSec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\nConnection: close\r\n"
              f"Cookie: {window.cookie}")
    left = bytes_of - len(fields) - 2
    for n in range(cookies, 0, -1):
        name = f"; c{n}="
        fields += name + "x" * (left // n - len(name))
        left -= left // n
    fields += "\r\n"
    expect(len(fields) == bytes_of, len(fields))
    with socket.create_connection((host, port), timeout=WAIT_S) as s:
        s.sendall(f"GET {window.path} HTTP/1.1\r\n{fields}\r\n".encode())
        told = b""
        try:
            while more := s.recv(65536):
                told += more
        except ConnectionResetError:  # hung up on before all of it was read
            pass
    head, _, body = told.partition(b"\r\n\r\n")
    return int(head.split()[1]), head, body


def bounds(box: WebBox):
    """Large headers and bodies, and many connections, cost only themselves. Cookies of 16 KiB pass, to the byte."""
    box.serve()
    window = box.window()
    try:
        status = window.ask("POST", "enter", body={"code": "x" * (1 << 20)})[0]
    except OSError:  # hung up on before all of it was sent
        status = 413
    expect(status in (404, 413), status)
    for bytes_of, wanted in ((16384, 200), (16385, 431), (19000, 431), (40000, 431), (60000, 431)):
        for cookies in (1, 50):
            got, _, told = with_headers(window, bytes_of, cookies)
            expect(got == wanted, bytes_of, cookies, got, told[-200:])
            expect(wanted == 200 or window.cookie.encode() not in told, told)
    idle = []
    for _ in range(64):
        idle.append(socket.create_connection(tuple(window.host.split(":"))))
    expect(box.get("/v1/health")["status"] == "ready")
    for one in idle:
        one.close()
    expect(window.ask("GET", "audit")[0] == 200)
    box.end()


def many_pages(box: WebBox):
    """As many pages as there can be browsers for leave room: each request gets its answer at once."""
    box.serve()
    windows, streams = [box.window() for _ in range(16)], []
    for n in range(100):
        window = windows[n % 16]
        expect(window.ask("GET", "inbox")[0] == 200)
        connection = http.client.HTTPConnection(window.host, timeout=WAIT_S)
        connection.request("GET", window.path + "events", headers={"Cookie": window.cookie, **FETCH})
        expect(connection.getresponse().status == 200)
        streams.append(connection)
    for connection in streams:
        connection.close()
    idle = []
    for _ in range(70):  # that stay open behind their answer
        connection = http.client.HTTPConnection(windows[0].host, timeout=WAIT_S)
        connection.request("GET", windows[0].path + "inbox", headers={"Cookie": windows[0].cookie, **FETCH})
        answer = connection.getresponse()
        expect(answer.status == 200 and answer.read())
        idle.append(connection)
    box.end()


class Evil(http.server.BaseHTTPRequestHandler):
    page = b""

    def do_GET(self):
        self.server.seen.append((self.path, self.headers.get("Cookie")))
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.page if self.path == "/" else b"")

    def log_message(self, *words):
        pass


def other_origin():
    """A page of another port on this machine: it reads nothing, changes nothing, gets no cookie."""
    needs(*browser.PROGRAMS)
    with WebBox() as box, browser.Browser() as b:
        box.serve()
        workflow, scenario = simple(box, 20000)
        sid = box.submit(workflow, scenario)
        b.open(box.code())
        b.wait("return document.querySelector('h1') && document.querySelector('h1').textContent == 'Sessions'")
        url = b.run("return location.href")
        expect("#" not in url, "the code stayed in the address", url)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil)
        server.seen = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        Evil.page = f"""<title>evil</title><form id=f method=post enctype=text/plain target=t
          action="{url}s/{sid}/cancel"><input name='{{"a":"' value='"}}'></form><iframe name=t></iframe>
          <iframe src="{url}"></iframe><img src="{url}"><script src="{url}page.mjs"></script>""".encode()
        b.open(f"http://127.0.0.1:{server.server_port}/")
        b.run("document.getElementById('f').submit()")
        tried = b.ask("POST", "/execute/async", {"script": """
          const done = arguments[arguments.length - 1], url = arguments[0], id = arguments[1], out = [];
          const tries = [
            () => fetch(url), () => fetch(url, {credentials: 'include'}),
            () => fetch(url + 'audit', {credentials: 'include', mode: 'no-cors'}).then((r) => { if (r.type != 'opaque' || r.status) throw 'opaque'; throw r.type; }),
            () => fetch(url + 's/' + id + '/cancel', {method: 'POST', credentials: 'include', headers: {'Content-Type': 'application/json', 'X-Segue': '1'}, body: '{}'}),
            () => fetch(url + 's/' + id + '/cancel', {method: 'POST', mode: 'no-cors', credentials: 'include', body: '{}'}).then(() => { throw 'opaque'; }),
            () => new Promise((ok, no) => { const e = new EventSource(url + 'events', {withCredentials: true}); e.onopen = ok; e.onerror = no; }),
          ];
          (async () => { for (const t of tries) { try { await t(); out.push('yes'); } catch { out.push('no'); } }
            for (const f of document.querySelectorAll('iframe')) { let s; try { s = f.contentDocument ? f.contentDocument.body.innerText : ''; } catch { s = ''; } out.push(s.includes('Sessions') ? 'yes' : 'no'); }
            done(out); })();""", "args": [url, sid]})
        expect(set(tried) == {"no"}, tried)
        expect(all("segue" not in (cookie or "") for _, cookie in server.seen), server.seen)
        expect(box.get("/v1/sessions/" + sid)["status"] == "running", "it was cancelled from elsewhere")
        b.open(url)
        b.wait("return document.querySelector('h1').textContent == 'Sessions'")
        server.shutdown()
        box.ask("POST", f"/v1/sessions/{sid}/cancel")
        box.end()


def rebound():
    """A name from elsewhere that now means this machine: a browser that is let in gets and changes nothing by it."""
    needs(*browser.PROGRAMS)
    with WebBox() as box, browser.Browser(more=["--host-resolver-rules=MAP evil.test 127.0.0.1"]) as b:
        box.serve()
        sid = box.submit(*simple(box, 20000))
        b.open(box.code())
        b.wait("return document.querySelector('h1') && document.querySelector('h1').textContent == 'Sessions'")
        evil = b.run("return location.href").replace("127.0.0.1", "evil.test")
        b.open(evil)
        expect(b.run("return location.host").startswith("evil.test:"))
        expect(b.run("return document.body.innerText").strip() == "There is nothing here.")
        tried = b.ask("POST", "/execute/async", {"script": """
          const done = arguments[arguments.length - 1], out = [];
          (async () => { for (const [method, path] of [['GET', ''], ['GET', 'audit'], ['GET', 'judgments.csv?of=all'],
              ['POST', 's/' + arguments[1] + '/cancel'], ['POST', 'enter']])
            out.push((await fetch(arguments[0] + path, method == 'GET' ? {} : {method, body: '{}',
              headers: {'Content-Type': 'application/json', 'X-Segue': '1'}})).status);
            done(out); })();""", "args": [evil, sid]})
        expect(set(tried) == {404}, tried)
        expect(box.get("/v1/sessions/" + sid)["status"] == "running", "it was cancelled from elsewhere")
        box.ask("POST", f"/v1/sessions/{sid}/cancel")
        box.end()


def the_file(box: WebBox):
    """The browser is given a file of mode 0600: the code is in no argument."""
    box.serve()
    seen = box.dir + "/seen"
    opener = box.file("browser", f'#!/bin/sh\nprintf "%s\\n" "$@" >{seen}.arguments\n'
                      f'stat -c %a "$1" >{seen}.mode\ncp "$1" {seen}\n')
    os.chmod(opener, 0o700)
    process = box.start("web", env={"BROWSER": opener})
    box.until(lambda: os.path.exists(seen) and os.path.getsize(seen) > 0, "no browser")
    path = Path(seen + ".arguments").read_text(encoding="ascii").strip()
    expect(Path(seen + ".mode").read_text(encoding="ascii").strip() == "600")
    code = re.search("#([0-9a-f]{32})", Path(seen).read_text(encoding="ascii")).group(1)
    expect(code not in path, path)
    process.terminate()
    process.wait()
    box.end()


def who_acted(box: WebBox):
    """Each act in the window leaves the number of its browser in the record; one on the socket leaves none."""
    box.serve()
    first, second = box.window(), box.window()
    which = box.file("which.yaml", ASKS)
    unsure = box.file("unsure.yaml", UNSURE)
    nothing = box.file("unsure.json", json.dumps({"replies": [{"text": "no idea", "times": 0}]}))
    asked, resumed, plain = [box.submit(which) for _ in "ab"], box.submit(unsure, nothing), box.submit(which)
    box.until(lambda: len(box.get("/v1/inbox")["inbox"]) == 4, "they do not wait")
    box.wait_status(resumed, "rule_no_match")
    expect(second.ask("POST", f"s/{asked[0]}/answer", body={"choice": 2})[0] in (200, 202))
    expect(first.ask("POST", f"s/{asked[1]}/cancel", body={})[0] in (200, 202))
    expect(second.ask("POST", f"s/{resumed}/resume", body={"rule": 1})[0] in (200, 202))
    expect(box.ask("POST", f"/v1/sessions/{plain}/answer", {"choice": 2})[0] in (200, 202))
    for sid, status in ((asked[0], "complete"), (asked[1], "cancelled"), (resumed, "complete"), (plain, "complete")):
        box.wait_status(sid, status)
    log = {sid: records(box.log(sid)) for sid in (*asked, resumed, plain)}
    by = of_type(log[asked[0]], "answer")[0]["by"]
    expect(by["window"] == 2 and by["uid"] == os.getuid(), by)
    expect(of_type(log[resumed], "session_resume")[0]["by"]["window"] == 2, of_type(log[resumed], "session_resume"))
    expect(of_type(log[asked[1]], "session_end")[0]["message"] == "cancelled by request of browser 1 of the window")
    expect("window" not in of_type(log[plain], "answer")[0]["by"])
    expect(b"in the window, browser 2" in box.segue("show", resumed, "one", "--full").stdout)
    for sid in log:
        box.segue("verify", box.log(sid), status=0)
    box.end()


def dismissed(box: WebBox):
    """What waits is taken out of the inbox, by the API and in the window, with who and why; it comes back when
    something happens. A browser that only looks is not offered it."""
    box.serve()
    looks, window = box.window("--read-only"), box.window()
    nothing = box.file("unsure.json", json.dumps({"replies": [{"text": "no idea", "times": 0}]}))
    asked, stopped = box.submit(box.file("which.yaml", ASKS)), box.submit(box.file("unsure.yaml", UNSURE), nothing)
    box.wait_status(asked, "needs_input")
    box.wait_status(stopped, "rule_no_match")

    def listed():
        return {item["id"] for item in box.get("/v1/inbox")["inbox"]}
    expect(b"/dismiss" not in looks.ask("GET", "inbox")[2] and b"/dismiss" not in window.ask("GET", f"s/{asked}/")[2])
    expect(is_closed(looks.ask("POST", f"s/{asked}/dismiss", body={"why": "x"})) and listed() == {asked, stopped}, listed())
    before = [open(box.log(sid), "rb").read() for sid in (asked, stopped)]
    for body, status in (({"why": 1}, 422), ({"because": "x"}, 422), ([], 422), ({"why": "x" * 20000}, 413)):
        expect(box.ask("POST", f"/v1/sessions/{asked}/dismiss", body)[0] == status, body)
    for sid in (asked, stopped):
        expect(f'data-act="s/{sid}/dismiss"'.encode() in window.ask("GET", "inbox")[2], sid)
    status, _, body = window.ask("POST", f"s/{asked}/dismiss", body={"why": "on\nleave"})
    expect(status == 200 and json.loads(body) == {"session": asked, "status": "dismissed"}, body)
    expect(listed() == {stopped} and asked.encode() not in window.ask("GET", "inbox")[2], listed())
    expect(box.ask("POST", f"/v1/sessions/{stopped[:30]}/dismiss")[0] == 200 and listed() == set(), listed())
    expect([open(box.log(sid), "rb").read() for sid in (asked, stopped)] == before, "the sessions stay as they are")
    kept = Path(box.logs + "/labels/labels.log").read_text(encoding="utf-8").splitlines()
    told = [(line["session"], line["by"].endswith(", window 2"), line["why"]) for line in map(json.loads, kept)]
    expect(told == [(asked, True, "on\nleave"), (stopped, False, "")], kept)
    expect(box.ask("POST", f"/v1/sessions/{stopped}/resume", {})[0] in (200, 202))
    box.until(lambda: listed() == {stopped}, "it does not come back")
    expect(box.ask("POST", f"/v1/sessions/{asked}/answer", {"choice": 2})[0] in (200, 202))
    box.wait_status(asked, "complete")
    status, value = box.ask("POST", f"/v1/sessions/{asked}/dismiss")
    expect(status == 409 and "does not wait for anybody" in value["detail"], value)
    box.end()


def no_browser():
    """A browser that fails is told of, with and without a daemon; Ctrl-C leaves no file behind."""
    def files(box):
        return [n for n in os.listdir(box.dir + "/run") + os.listdir(box.dir + "/tmp") if n.endswith(".html")]
    with WebBox() as box:
        os.makedirs(box.logs)
        os.mkfifo(box.dir + "/held")
        for words in ((), ("--logs", box.logs)):
            if not words:
                box.serve()
            for script, how in (("exit 3", b"ended with status 3"), ("kill -9 $$", b"was ended by signal 9")):
                opener = box.file("browser", f"#!/bin/sh\n{script}\n")
                os.chmod(opener, 0o700)
                done = box.segue("web", *words, env={"BROWSER": opener})
                expect(done.returncode != 0 and how in done.stderr and b"segue web --no-open" in done.stderr, words, done.stderr)
                expect(files(box) == [], words, files(box))
            opener = box.file("browser", f"#!/bin/sh\ntouch {box.dir}/begun\nexec cat {box.dir}/held\n")
            process = box.start("web", *words, env={"BROWSER": opener})
            box.until(lambda: os.path.exists(box.dir + "/begun"), "no browser")
            expect(len(files(box)) == 1, words, files(box))
            process.send_signal(signal.SIGINT)
            status = process.wait(WAIT_S)
            expect(status == (0 if words else -signal.SIGINT), words, status)
            expect(files(box) == [], words, files(box))
            os.unlink(box.dir + "/begun")
            with contextlib.suppress(OSError):  # lets the browser go
                os.close(os.open(box.dir + "/held", os.O_WRONLY | os.O_NONBLOCK))
        box.end()


def ended_while_it_opens(box: WebBox):
    """A signal before anything waits for the browser leaves no file behind: a full stderr holds segue there."""
    os.makedirs(box.logs)
    os.mkfifo(box.dir + "/full")
    os.mkfifo(box.dir + "/held")
    full = os.open(box.dir + "/full", os.O_RDWR | os.O_NONBLOCK)
    opener = box.file("browser", f"#!/bin/sh\ntouch {box.dir}/begun\nexec cat {box.dir}/held\n")
    os.chmod(opener, 0o700)
    box.serve()
    for words in ((), ("--logs", box.logs)):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(full, bytes(4096))
            process = box.start("web", *words, env={"BROWSER": opener},
                                prefix=("sh", "-c", f'exec "$0" "$@" 2>{box.dir}/full'))
            box.until(lambda: os.path.exists(box.dir + "/begun"), "no browser")
            process.send_signal(number)
            with contextlib.suppress(BlockingIOError):
                while os.read(full, 65536):
                    pass
            status = process.wait(WAIT_S)
            expect(status == (0 if words else -number), words, number, status)
            left = [n for n in os.listdir(box.dir + "/run") + os.listdir(box.dir + "/tmp") if n.endswith(".html")]
            expect(left == [], words, number, left)
            os.unlink(box.dir + "/begun")
            with contextlib.suppress(OSError):  # lets the browser go
                os.close(os.open(box.dir + "/held", os.O_WRONLY | os.O_NONBLOCK))
    os.close(full)
    process = box.start("web", "--no-open", "--logs", box.logs, prefix=("nohup",))
    window = Window(process.stdout.readline().decode().strip())
    process.send_signal(signal.SIGHUP)
    window.enter()
    expect(window.ask("GET", "", NAVIGATE)[0] == 200)
    process.send_signal(signal.SIGTERM)
    expect(process.wait(WAIT_S) == 0, "nohup")
    box.end()


if __name__ == "__main__":
    sys.exit(main([off_by_default, proxy, codes, browsers_are_bounded, door, read_only, other_users, bounds,
                   many_pages, other_origin, rebound, the_file, who_acted, dismissed, no_browser,
                   ended_while_it_opens]))
