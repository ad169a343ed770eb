"""What the window costs: bytes, time and processor time of its pages, beside a session of 50 MB and a
list of 10,000 (window); what a page costs while it is open, in a browser where there is one
(window_live)."""
import contextlib
import functools
import http.client
import http.server
import json
import os
import threading
import time
from statistics import median

from bench import LOOP, at, children_cpu_s, cpu_ms, in_turns, loop_replies, row, run_words, times_as
import audit_logs
import browser
from report_cli_test import long_session
from support import expect, of_type, records
from web_gate_test import WebBox
from web_pages_test import READY, enter

LOADED = ("style.css", "page.mjs", "idiomorph.js")


def cpu_of(box, what, times):
    """Processor time of the daemon for one, in ms."""
    begin = cpu_ms(box.process.pid)
    for _ in range(times):
        what()
    return (cpu_ms(box.process.pid) - begin) / times


def pages(box, ask, below, goal, *paths, times=10):
    for path in paths:
        status, _, body = ask("GET", below + path)
        expect(status == 200, path, status)
        row(f"{path or 'the page'}, {len(body) / 1024:.1f} KiB: processor time",
            cpu_of(box, lambda path=path: ask("GET", below + path), times), "ms", goal)


def one_session(turns):
    """A session of turns with 46 KB of answer each: 50 MB with 1,100 turns."""
    with WebBox() as box:
        text = ("one word after another " * 2000) + "\n"
        expect(box.segue(*run_words(box, LOOP, loop_replies(turns, text)), timeout=600).returncode == 0)
        path = box.log_paths()[0]
        box.segue("show", path)  # its bytes are in memory for both
        begin = children_cpu_s()
        box.segue("show", path)
        show_ms = 1000 * (children_cpu_s() - begin)
        box.serve()
        ask, below = box.window().ask, f"s/{os.path.basename(path)[:-7]}/"
        expect(ask("GET", "")[0] == 200)
        before = box.rss_kib()
        first = cpu_of(box, lambda: ask("GET", below), 1)
        row(f"segue show of a log of {os.path.getsize(path) / 1e6:.1f} MB", show_ms, "ms")
        row("its first page, against segue show", first / show_ms, "times", "<= 1.2")
        row("memory of the daemon after it", box.rss_kib() - before, "KiB more", "<= 1024")
        pages(box, ask, below, "<= 20", "", "?from=1", f"?from={turns // 2}", str(turns // 2), str(turns),
              f"records?from={turns * 3}")
        pages(box, ask, below, "", "find?q=nowhere", times=2)
        row("loaded beside a page", sum(len(ask("GET", name)[2]) for name in LOADED) / 1024, "KiB", "<= 45")
        box.end()


def window(turns=1100, sessions=10000):
    one_session(turns)
    with WebBox() as box:
        audit_logs.write(box.logs, sessions, 1, seed=3)
        box.serve()
        ask = box.window().ask
        box.until(lambda: ask("GET", "?q=since:1d")[0] == 200, "no page")
        time.sleep(3)
        row(f"a page of {sessions} sessions", len(ask("GET", "")[2]) / 1024, "KiB", "<= 120")
        pages(box, ask, "", "<= 30", "", "?q=status:complete", "?q=method:ai_judge", "?sort=tokens", "inbox")
        pages(box, lambda way, path: (200, None, json.dumps(box.get("/v1/" + path)).encode()), "", "<= 30", "inbox", "sessions?sort=tokens")
        box.end()


# ---- an open page ------------------------------------------------------------------------------------

def loop(box, turns, delay_ms):
    return box.submit(box.file("loop.json", LOOP), box.file(
        f"loop{turns}.json", json.dumps({"replies": loop_replies(turns, delay_ms=delay_ms)})))


@contextlib.contextmanager
def constant(folder):
    """The port of a server that answers with the files of a folder, and nothing else."""
    class Quiet(http.server.SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *words):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()


def first_row(sessions):
    """The list in a browser, beside the same bytes from a server that only has them."""
    with WebBox() as box, browser.Browser() as b, constant(box.dir + "/constant") as port:
        audit_logs.write(box.logs, sessions, 1, seed=3)
        box.serve()
        root = enter(b, box.code())
        b.wait(READY)
        below = root.split("/", 3)[3]
        os.makedirs(f"{box.dir}/constant/{below}")
        for name in ("", *LOADED):
            got = b.run("const x = new XMLHttpRequest(); x.open('GET', arguments[0], false); x.send();"
                        "return x.responseText", root + name)
            box.file(f"constant/{below}{name or 'index.html'}", got)

        def paint(url):
            b.open(url)
            return b.wait("return performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
        ours, theirs = map(median, in_turns(9, {
            "ours": lambda: paint(root), "constant": lambda: paint(f"http://127.0.0.1:{port}/{below}")}))
        row(f"first row of {sessions} sessions", ours, "ms")
        row("  against the same bytes as a constant", ours / theirs, "times", "<= 1.3")
        box.end()


def changes(turns):
    with WebBox() as box, browser.Browser() as b:
        box.serve()
        root = enter(b, box.code())
        sid = loop(box, turns, 45)
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
        took = sorted(seen[str(r["turn"])] - 1000 * at(r) for r in of_type(records(box.log(sid)), "turn_start")
                      if str(r["turn"]) in seen and str(r["turn"]) not in begin)[:-1]
        row("changes of a page that were seen, at 20 a second", len(took), "", f">= {turns // 3}")
        row("from the record to the changed page, p50", took[len(took) // 2], "ms", "<= 25")
        row("  p99", took[int(len(took) * .99)], "ms", "<= 100")
        box.end()


@contextlib.contextmanager
def listening(windows, each):
    """Pages of windows that listen to events."""
    with contextlib.ExitStack() as held:
        for window in windows * each:
            connection = held.enter_context(contextlib.closing(http.client.HTTPConnection(window.host, timeout=20)))
            connection.request("GET", window.path + "events", headers={"Cookie": window.cookie, "Sec-Fetch-Site": "same-origin"})
            answer = held.enter_context(connection.getresponse())
            expect(answer.status == 200, answer.status)
        yield


def open_pages(turns):
    with WebBox() as box:
        box.serve()

        def rate(pages=0):
            with listening(windows[:pages], 1):
                sid = loop(box, turns, 0)
                box.wait_status(sid, "complete")
            log = records(box.log(sid))
            return turns / (at(log[-1]) - at(log[0]))
        windows = [box.window() for _ in range(10)]
        rate()
        with listening(windows[:1], 1):
            before = box.rss_kib()
            with listening(windows, 3):
                row("an open page, in the daemon", (box.rss_kib() - before) / 30, "KiB", "<= 16")
        bare, pages = in_turns(5, {"bare": rate, "pages": lambda: rate(10)})
        row("turns/s with ten pages, of those without", times_as(pages, bare), "", ">= 0.97")
        done = box.segue("report", long_session(box, 200), "-o", "r.html")
        expect(done.returncode == 0, done.stderr)
        row("a report of 200 turns", os.path.getsize(box.cwd + "/r.html") / 1024, "KiB", "<= 1024")
        box.end()


def window_live(turns=1500, sessions=10000):
    open_pages(turns)
    if browser.CAN:
        changes(turns // 10)
        first_row(sessions)
