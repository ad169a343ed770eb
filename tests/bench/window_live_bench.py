#!/usr/bin/env python3
"""What a page costs while it is open: time to the first row beside a constant, from a record to the changed
page, memory of the daemon, turns a second with ten pages, a report's size.

usage: window_live_bench.py BUILD_DIR
"""
import http.client
import http.server
import json
import os
import threading
import time
from statistics import median

from bench import at, in_turns
import audit_logs
import browser
from report_cli_test import long_session
from support import expect, of_type, records
from web_gate_test import WebBox
from web_pages_test import READY, enter

LOOP = """name: loop
provider: script
max_movements: 100000
movements:
  - name: work
    instruction: go on
    judge: {stages: [phase1_tag]}
    rules: [{condition: done, next: COMPLETE}, {condition: more, next: work}]
"""
PAINT = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def loop(box, turns, delay_ms):
    replies = [{"text": "more\n[WORK:2]", "times": turns - 1, "delay_ms": delay_ms}, {"text": "done\n[WORK:1]"}]
    return box.file("loop.yaml", LOOP), box.file(f"loop{turns}.json", json.dumps({"replies": replies}))


def constant(files):
    class Answer(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            body, kind = files.get(self.path, (b"", "text/plain"))
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def first_row():
    with WebBox() as box:
        os.makedirs(box.logs, exist_ok=True)
        audit_logs.write(box.logs, 10000, 1, seed=3)
        box.serve()
        with browser.Browser() as b:
            root = enter(b, box.code())
            b.wait(READY)
            files = {}
            for name, kind in (("", "text/html; charset=utf-8"), ("style.css", "text/css"),
                               ("page.mjs", "text/javascript"), ("idiomorph.js", "text/javascript")):
                got = b.run("const x = new XMLHttpRequest(); x.open('GET', arguments[0], false); x.send();"
                            "return x.responseText", root + name)
                files["/" + root.split("/", 3)[3] + name] = (got.encode(), kind)
            server = constant(files)
            fixed = "http://127.0.0.1:%d/" % server.server_port + root.split("/", 3)[3]

            def paint(url):
                b.open(url)
                return b.wait(PAINT)
            times = in_turns(9, {url: lambda url=url: paint(url) for url in (root, fixed)})
            server.shutdown()
        ours, theirs = map(median, times.values())
        print(f"first row of 10,000 sessions {ours:.0f} ms, the same bytes as a constant {theirs:.0f} ms: "
              f"{ours / theirs:.2f} times (goal 1.3)")
        box.end()


def changes():
    with WebBox() as box:
        box.serve()
        workflow, scenario = loop(box, 150, 45)
        with browser.Browser() as b:
            root = enter(b, box.code())
            sid = box.submit(workflow, scenario)
            b.open(f"{root}s/{sid}/")
            b.wait(READY)
            b.run("window.seen = {}; const look = () => { const now = Date.now();"
                  "for (const r of document.querySelectorAll('tr[id^=r]')) window.seen[r.id.slice(1)] ??= now; };"
                  "look(); new MutationObserver(look).observe(document.body, {subtree: true, childList: true,"
                  "attributes: true})")
            begin = set(b.run("return Object.keys(window.seen)"))
            box.wait_status(sid, "complete")
            time.sleep(1)
            seen = b.run("return window.seen")
        took = []
        for r in of_type(records(box.log(sid)), "turn_start"):
            if str(r["turn"]) in seen and str(r["turn"]) not in begin:
                took.append(seen[str(r["turn"])] - 1000 * at(r))
        took = sorted(took)[:-1]
        if len(took) < 50:
            print(f"only {len(took)} changes were seen")
        else:
            print(f"from the record to the changed page, {len(took)} changes at 20 a second: p50 "
                  f"{took[len(took) // 2]:.0f} ms, p99 {took[int(len(took) * .99)]:.0f} ms (goals 25, 100)")
        box.end()


def stream(window, path):
    connection = http.client.HTTPConnection(window.host, timeout=20)
    connection.request("GET", window.path + path, headers={"Cookie": window.cookie,
                                                           "Sec-Fetch-Site": "same-origin"})
    answer = connection.getresponse()
    expect(answer.status == 200, answer.status)
    return connection, answer


def open_pages():
    with WebBox() as box:
        box.serve()
        workflow, scenario = loop(box, 1500, 0)

        def rate():
            sid = box.submit(workflow, scenario)
            box.wait_status(sid, "complete")
            log = records(box.log(sid))
            return 1500 / (at(log[-1]) - at(log[0]))
        rate()
        windows = [box.window() for _ in range(10)]
        streams = [stream(windows[0], "events")]
        before = box.rss_kib()
        streams += [stream(w, "events") for w in windows for _ in range(3)]
        print(f"an open page: {(box.rss_kib() - before) / 30:.1f} KiB in the daemon (goal 16)")
        for connection, _ in streams:
            connection.close()
        ratios = []
        for _ in range(5):
            bare = rate()
            streams = [stream(w, "events") for w in windows]
            ratios.append(rate() / bare)
            for connection, _ in streams:
                connection.close()
        print(f"turns/s with ten pages that listen: {median(ratios):.3f} of those without (goal 0.97), "
              f"{min(ratios):.2f} to {max(ratios):.2f}")
        path = long_session(box, 200)
        done = box.segue("report", path, "-o", "r.html")
        expect(done.returncode == 0, done.stderr)
        print(f"a report of 200 turns: {os.path.getsize(box.cwd + '/r.html') / 1024:.0f} KiB (goal 1,024)")
        box.end()


if __name__ == "__main__":
    open_pages()
    if browser.CAN:
        changes()
        first_row()
