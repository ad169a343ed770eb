"""What the window costs: bytes, time and processor time of its pages, beside a session of 50 MB and a
list of 10,000 (window); what a page costs while it is open, in a browser where there is one
(window_live)."""
import contextlib
import http.client
import json
import os
import time

from bench import LOOP, Constant, compare, loop_replies, ran, row, run_words
import audit_logs
import browser
from support import SEGUE, at, cpu_ms, expect, memory_kib, of_type, records
from web_gate_test import FETCH, WebBox
from web_pages_test import READY, enter

LOADED = {"style.css": "text/css", "page.mjs": "text/javascript", "idiomorph.js": "text/javascript"}
# Notes when each turn's row was first seen.
WATCH = """window.seen = {};
const look = () => { for (const r of document.querySelectorAll('tr[id^=r]')) seen[r.id.slice(1)] ??= Date.now(); };
look();
new MutationObserver(look).observe(document.body, {subtree: true, childList: true, attributes: true});
return Object.keys(seen);"""


def page_ms(box, ask, path, times=10):
    """Processor time of the daemon for a page, and the page's bytes."""
    begin = cpu_ms(box.process.pid)
    for _ in range(times):
        status, _, body = ask("GET", path)
        expect(status == 200, path, status)
    return (cpu_ms(box.process.pid) - begin) / times, len(body)


def pages(box, ask, below, goal, *paths):
    for path in paths:
        took, size = page_ms(box, ask, below + path)
        row(f"{path or 'the page'}, {size / 1024:.1f} KiB: processor time", took, "ms", goal)


def one_session(turns):
    """A session of turns with 46 KB of answer each: 50 MB with 1,100 turns."""
    with WebBox() as box:
        text = ("one word after another " * 2000) + "\n"
        expect(box.segue(*run_words(box, LOOP, loop_replies(turns, text)), timeout=600).returncode == 0)
        path = box.log_paths()[0]
        show_ms = 1000 * min(ran(SEGUE, "show", path, env=box.env)[1] for _ in range(2))
        box.serve()
        ask, below = box.window().ask, f"s/{os.path.basename(path)[:-7]}/"
        expect(ask("GET", "")[0] == 200)
        before = memory_kib(box.process.pid, "RssAnon")  # the program's own pages are not the index
        first, _ = page_ms(box, ask, below, times=1)
        row(f"segue show of a log of {os.path.getsize(path) / 1e6:.1f} MB", show_ms, "ms")
        row("its first page, against segue show", first / show_ms, "times", "<= 1.2")
        row("memory of the daemon after it", memory_kib(box.process.pid, "RssAnon") - before, "KiB more", "<= 1024")
        pages(box, ask, below, "<= 20", "", "?from=1", f"?from={turns // 2}", str(turns), f"records?from={turns * 3}")
        row("loaded beside a page", sum(page_ms(box, ask, name, 1)[1] for name in LOADED) / 1024, "KiB", "<= 45")
        box.end()


def window(turns=1100, sessions=10000):
    one_session(turns)
    with WebBox() as box:
        audit_logs.write(box.logs, sessions, 1, seed=3)
        box.serve()
        ask = box.window().ask
        box.until(lambda: ask("GET", "?q=since:1d")[0] == 200, "no page")
        time.sleep(3)  # until the daemon has looked at all logs
        row(f"a page of {sessions} sessions", len(ask("GET", "")[2]) / 1024, "KiB", "<= 120")
        pages(box, ask, "", "<= 30", "", "?q=status:complete", "?q=method:ai_judge", "?sort=tokens", "inbox")
        for path in ("inbox", "sessions?sort=tokens"):
            took, _ = page_ms(box, lambda _, path: (200, {}, json.dumps(box.get(path)).encode()), "/v1/" + path)
            row(f"the API's {path}: processor time", took, "ms", "<= 30")
        box.end()


# ---- an open page ------------------------------------------------------------------------------------

def first_row(sessions):
    """The list in a browser, beside the same bytes from a server that only has them."""
    with WebBox() as box, browser.Browser() as b:
        audit_logs.write(box.logs, sessions, 1, seed=3)
        box.serve()
        root = enter(b, box.code())
        b.wait(READY)
        path = "/" + root.split("/", 3)[3]
        constant = Constant.serve({path + name: (kind, b.run(
            "const x = new XMLHttpRequest(); x.open('GET', arguments[0], false); x.send(); return x.responseText",
            root + name).encode()) for name, kind in {"": "text/html", **LOADED}.items()}) + path

        def paint(url):
            b.open(url)
            return b.wait("return performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
        compare(9, "<= 1.3", "first row of a constant page", "ms", lambda: paint(constant),
                f"of the same bytes as a list of {sessions} sessions", lambda: paint(root))
        box.end()


def loop(box, turns, delay_ms):
    said = box.file("loop-said.json", json.dumps({"replies": loop_replies(turns, delay_ms=delay_ms)}))
    return box.submit(box.file("loop.json", LOOP), said)


def changes(turns):
    """From the durable record of a turn's start to its row on the page, at 20 turns a second."""
    with WebBox() as box, browser.Browser() as b:
        box.serve()
        root = enter(b, box.code())
        sid = loop(box, turns, 45)
        b.open(f"{root}s/{sid}/")
        b.wait(READY)
        there = b.run(WATCH)
        box.wait_status(sid, "complete")
        time.sleep(1)
        seen = {turn: ms for turn, ms in b.run("return window.seen").items() if turn not in there}
        took = sorted(seen[str(r["turn"])] - 1000 * at(r) for r in of_type(records(box.log(sid)), "turn_start")
                      if str(r["turn"]) in seen)[:-1]
        expect(len(took) >= turns // 3, "changes were missed:", len(took), "of", turns)
        row("from the record to the changed page, p50", took[len(took) // 2], "ms", "<= 25")
        row("  p99", took[int(len(took) * .99)], "ms", "<= 100")
        box.end()


@contextlib.contextmanager
def listening(windows):
    """A page of each window that listens to events."""
    with contextlib.ExitStack() as held:
        for window in windows:
            connection = held.enter_context(contextlib.closing(http.client.HTTPConnection(window.host, timeout=20)))
            connection.request("GET", window.path + "events", headers={"Cookie": window.cookie, **FETCH})
            expect(held.enter_context(connection.getresponse()).status == 200, "no events")
        yield


def open_pages(turns):
    with WebBox() as box:
        box.serve()
        windows = [box.window() for _ in range(10)]

        def rate(pages):
            with listening(windows[:pages]):
                sid = loop(box, turns, 0)
                box.wait_status(sid, "complete")
            log = records(box.log(sid))
            return turns / (at(log[-1]) - at(log[0]))
        rate(0)
        with listening(windows[:1]):
            before = box.rss_kib()
            with listening(windows * 3):
                row("an open page, in the daemon", (box.rss_kib() - before) / 30, "KiB", "<= 16")
        compare(5, ">= 0.97", "turns of a session", "a second", lambda: rate(0), "with ten pages", lambda: rate(10))
        box.end()


def window_live(turns=1500, sessions=10000):
    open_pages(turns)
    if browser.CAN:
        changes(turns // 10)
        first_row(sessions)
