"""What the window costs: bytes, time and processor time of its pages, beside a session of 50 MB and a
list of 10,000 (window); what a page costs while it is open, in a browser where there is one
(window_live)."""
import functools
import http.client
import http.server
import json
import os
import threading
import time
from statistics import median

from bench import at, children_cpu_s, cpu_ms, elapsed_s, in_turns, row, times_as
import audit_logs
import browser
from flow_bench import flow, movement
from report_cli_test import long_session
from support import expect, of_type, records
from web_gate_test import FETCH, WebBox
from web_pages_test import READY, enter

LOOP = flow(movement("work", "do it", ("done", "COMPLETE"), ("go on", "work")), max_movements=1000000)


def big_log(box, turns, text_bytes=46000):
    """A log of turns of one movement, 46 KB of answer each (50 MB with 1,100 turns); its path."""
    log, sid = audit_logs.Log(1_760_000_000_000), audit_logs.session_id(70000)
    log.add("session_start", session=sid, versions={"segue": "0.1.0"}, task="a long work", workflow_sha256="0" * 64,
            workflow=json.loads(LOOP), config={"cwd": "/", "provider": "script"})
    text = ("one word after another " * 2200)[:text_bytes]
    stage = {"stage": "phase1_tag", "outcome": "matched", "calls": [], "rule": 2, "tag": "[WORK:2]"}
    for n in range(1, turns + 1):
        log.add("turn_start", turn=n, movement="work", iteration=n, movement_iteration=n)
        log.add("call_start", turn=n, call=n, attempt=1, purpose="execute", provider="script", token="1", prompt=["do it"],
                prompt_sha256="0" * 64)
        log.add("call_end", turn=n, call=n, attempt=1, text=f"{text} {n}\n[WORK:2]", duration_ms=5)
        log.add("stage", turn=n, **stage)
        log.add("judgment", turn=n, movement="work", rule=2, condition="go on", next="work", method="phase1_tag",
                match_method="phase1_tag", stages=[stage])
        log.add("turn_end", turn=n, outcome="judged", next="work")
    os.makedirs(box.logs)
    return box.file(f"logs/{sid}.ndjson", log.bytes()), sid


def cpu_of(box, what, times):
    """Processor time of the daemon for one, in ms."""
    begin = cpu_ms(box.process.pid)
    for _ in range(times):
        what()
    return (cpu_ms(box.process.pid) - begin) / times


def page(box, ask, name, path, goal, times=20, clock=False):
    status, _, body = ask(path)
    expect(status == 200, path, status)
    row(f"{name}, {len(body) / 1024:.1f} KiB: processor time", cpu_of(box, lambda: ask(path), times), "ms", goal)
    if clock:
        row("  by the clock", 1000 * median(elapsed_s(lambda: ask(path)) for _ in range(5)), "ms")


def asker(box):
    window = box.window()
    return lambda path: window.ask("GET", path, {**FETCH})


def one_session(turns):
    with WebBox() as box:
        path, sid = big_log(box, turns)
        box.segue("show", path)  # its bytes are in memory for both
        begin = children_cpu_s()
        box.segue("show", path)
        show_ms = 1000 * (children_cpu_s() - begin)
        box.serve()
        ask = asker(box)
        expect(ask("")[0] == 200)
        before = box.rss_kib()
        first = cpu_of(box, lambda: ask(f"s/{sid}/"), 1)
        row(f"segue show of a log of {os.path.getsize(path) / 1e6:.1f} MB", show_ms, "ms")
        row("its first page, processor time", first, "ms")
        row("  against segue show", first / show_ms, "times", "<= 1.2")
        row("memory of the daemon after it", box.rss_kib() - before, "KiB more", "<= 1024")
        for name, rest in (("session, its end", ""), ("its begin", "?from=1"), ("its middle", f"?from={turns // 2}"),
                           ("a judgment", str(turns // 2)), ("the last judgment", str(turns)),
                           ("records, middle", f"records?from={turns * 3}")):
            page(box, ask, name, f"s/{sid}/{rest}", "<= 20")
        page(box, ask, "find, whole", f"s/{sid}/find?q=nowhere", "", times=2)
        loads = [len(ask(name)[2]) for name in ("style.css", "page.mjs", "idiomorph.js")]
        row(f"loaded beside a page ({', '.join(map(str, loads))} bytes)", sum(loads) / 1024, "KiB")
        box.end()


def window(turns=1100, sessions=10000):
    one_session(turns)
    with WebBox() as box:
        audit_logs.write(box.logs, sessions, 1, seed=3)
        box.serve()
        ask = asker(box)
        box.until(lambda: ask("?q=since:1d")[0] == 200, "no page")
        time.sleep(3)
        for name, path, goal in ((f"{sessions} sessions", "", "<= 30"), ("filtered", "?q=status:complete", "<= 30"),
                                 ("method", "?q=method:ai_judge", "<= 30"), ("sorted", "?sort=tokens", "<= 30")):
            page(box, ask, name, path, goal, times=10, clock=True)
        box.end()


# ---- an open page ------------------------------------------------------------------------------------

def loop(box, turns, delay_ms):
    replies = [{"text": "more\n[WORK:2]", "times": turns - 1, "delay_ms": delay_ms}, {"text": "done\n[WORK:1]"}]
    return box.submit(box.file("loop.json", LOOP), box.file(f"loop{turns}.json", json.dumps({"replies": replies})))


def constant(folder):
    """A server that answers with the files of a folder, and nothing else."""
    class Quiet(http.server.SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *words):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def first_row(sessions):
    """The list in a browser, beside the same bytes from a server that only has them."""
    with WebBox() as box, browser.Browser() as b:
        audit_logs.write(box.logs, sessions, 1, seed=3)
        box.serve()
        root = enter(b, box.code())
        b.wait(READY)
        below = root.split("/", 3)[3]
        os.makedirs(f"{box.dir}/constant/{below}")
        for name in ("", "style.css", "page.mjs", "idiomorph.js"):
            got = b.run("const x = new XMLHttpRequest(); x.open('GET', arguments[0], false); x.send();"
                        "return x.responseText", root + name)
            box.file(f"constant/{below}{name or 'index.html'}", got)
        server = constant(box.dir + "/constant")

        def paint(url):
            b.open(url)
            return b.wait("return performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
        ours, theirs = map(median, in_turns(9, {
            "ours": lambda: paint(root), "constant": lambda: paint(f"http://127.0.0.1:{server.server_port}/{below}")}))
        server.shutdown()
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


def listen(window, count):
    """Connections that listen to a page's events, with their answers."""
    found = []
    for _ in range(count):
        connection = http.client.HTTPConnection(window.host, timeout=20)
        connection.request("GET", window.path + "events", headers={"Cookie": window.cookie,
                                                                   "Sec-Fetch-Site": "same-origin"})
        answer = connection.getresponse()
        expect(answer.status == 200, answer.status)
        found.append((connection, answer))
    return found


def close(found):
    for connection, _ in found:
        connection.close()


def open_pages(turns):
    with WebBox() as box:
        box.serve()

        def rate():
            sid = loop(box, turns, 0)
            box.wait_status(sid, "complete")
            log = records(box.log(sid))
            return turns / (at(log[-1]) - at(log[0]))

        def rate_with_pages():
            listening = [one for w in windows for one in listen(w, 1)]
            found = rate()
            close(listening)
            return found
        rate()
        windows = [box.window() for _ in range(10)]
        listening = listen(windows[0], 1)
        before = box.rss_kib()
        listening += [one for w in windows for one in listen(w, 3)]
        row("an open page, in the daemon", (box.rss_kib() - before) / 30, "KiB", "<= 16")
        close(listening)
        bare, pages = in_turns(5, {"bare": rate, "pages": rate_with_pages})
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
