#!/usr/bin/env python3
"""A page beside a session that runs: words and tools as they come, many tabs, a daemon that is killed."""
import http.client
import json
import os
import re
import signal
import sys
import time

import browser
from daemon import simple
from support import WAIT_S, expect, main, needs
from web_gate_test import FETCH, WebBox
from web_pages_test import READY, clean, enter, text

FLOW = """name: live
provider: script
movements:
  - name: investigate
    instruction: Look at it
    judge: {stages: [phase1_tag]}
    rules: [{condition: good, next: COMPLETE}, {condition: bad, next: ABORT}]
"""
SAID = "return document.querySelector('pre.live[id$=text]')?.textContent"


def words():
    """What a running call says and uses stands on the page as it comes, also what came before it."""
    pieces = ["I <b>look", "ed\u202e. \x1b[31mAll\u8a66", "<script>alert(1)</script>", " is fine.\n", "[INVESTIGATE:1]"]
    with WebBox() as box:
        box.serve()
        scenario = box.file("s.json", json.dumps({"replies": [
            {"chunks": pieces, "tools": ["Bash <i>"], "delay_ms": 600000,
             "usage": {"input": 1200, "output": 34}}]}))
        sid = box.submit(box.file("live.yaml", FLOW), scenario, task="to be heard")
        box.wait_status(sid, "running")
        with browser.Browser() as b:
            root = enter(b, box.code())
            b.open(root + f"s/{sid}/")
            b.wait(READY)
            b.run("window.marked = true; window.seen = []; const t = () => {"
                  "const p = document.querySelector('pre.live[id$=text]')?.textContent || '';"
                  "if (window.seen.at(-1) !== p) window.seen.push(p); }; setInterval(t, 5)")
            first = b.wait(SAID)
            expect(first.startswith("I <b>look"), first)
            expect("Thinking" not in text(b), "a fold with nothing in it", text(b))
            expect("Bash <i>" in text(b), text(b))
            b.open(root + f"s/{sid}/")  # opened in its middle
            again = b.wait(SAID)
            expect(again.startswith(first), first, again)
            whole = "I <b>looked\u27e8U+202E\u27e9. All\u8a66<script>alert(1)</script> is fine."
            b.wait("return document.querySelector('pre.live[id$=text]')?.textContent.includes(arguments[0])", "is fine.")
            expect(b.run(SAID).startswith(whole), b.run(SAID))
            expect(b.run("return document.querySelectorAll('pre b, pre i, main script').length") == 0)
            box.ask("POST", f"/v1/sessions/{sid}/cancel", {})
            b.wait("return document.getElementById('main').innerText.includes('cancelled')")
            expect(b.run("return !document.querySelector('pre.live')"), "the call is still there")
            clean(b)
        box.end()


def output():
    """What a running command prints stands there, too."""
    with WebBox() as box:
        box.serve()
        sid = box.submit(box.file("prints.yaml", "name: prints\nmovements:\n  - name: build\n    command: [sh, -c, 'for i in "
                                  "$(seq 9999); do echo part $i; sleep .2; done']\n    rules: [{condition: when(true), "
                                  "next: COMPLETE}]\n"))
        with browser.Browser() as b:
            root = enter(b, box.code())
            b.open(root + f"s/{sid}/")
            b.wait(READY)
            b.wait("return document.querySelector('pre.live[id$=text]')?.textContent.includes('part 7\\n')")
            box.ask("POST", f"/v1/sessions/{sid}/cancel", {})
            b.wait("return document.getElementById('main').innerText.includes('cancelled')")
            clean(b)
        box.end()


def tabs(box: WebBox):
    """Ten pages of one browser: the oldest rest, and each gets the end of the session."""
    box.serve()
    workflow, scenario = simple(box, 8000)
    sid = box.submit(workflow, scenario, task="for many")
    with browser.Browser() as b:
        root = enter(b, box.code())
        for _ in range(9):
            b.run("window.open(arguments[0])", f"{root}s/{sid}/")
        handles = b.ask("GET", "/window/handles")
        expect(len(handles) == 10, handles)
        for handle in handles[1:]:
            b.ask("POST", "/window", {"handle": handle})
            b.wait(READY)
        box.wait_status(sid, "complete")
        for handle in handles[1:]:
            b.ask("POST", "/window", {"handle": handle})
            b.wait("return document.getElementById('main').innerText.includes('complete')")
    box.end()


LOOP = """name: loop
provider: script
max_movements: 100000
movements:
  - name: work
    instruction: go on
    judge: {stages: [phase1_tag]}
    rules: [{condition: done, next: COMPLETE}, {condition: more, next: work}]
"""


def often(box: WebBox):
    """A session that changes all the time: its pages are told now and then, and at last of its end."""
    box.serve()
    window = box.window()
    replies = [{"text": "more.\n[WORK:2]", "times": 2999}, {"text": "done.\n[WORK:1]"}]
    sid = box.submit(box.file("loop.yaml", LOOP), box.file("loop.json", json.dumps({"replies": replies})))
    connection = http.client.HTTPConnection(window.host, timeout=WAIT_S)
    connection.request("GET", f"{window.path}s/{sid}/events", headers={"Cookie": window.cookie, **FETCH})
    answer, told, page, begin = connection.getresponse(), 0, b"", time.monotonic()
    while b"<dd><bdi>complete<" not in page:
        while answer.readline() != b"event: change\n":
            pass
        told += 1
        page = window.ask("GET", f"s/{sid}/")[2]
    took = time.monotonic() - begin  # on a slow machine it changes less often, and is told of more
    expect(told * 15 < 3000 or told < 60 * took, "told", told, "times of 3,000 turns in", took, "s")
    connection.close()
    box.end()


def running(box, b):
    """A page on a session that goes on for long; its id."""
    box.serve()
    workflow, scenario = simple(box, 120000)
    sid = box.submit(workflow, scenario)
    box.wait_status(sid, "running")
    root = enter(b, box.code())
    b.open(root + f"s/{sid}/")
    b.wait(READY)
    return sid


def ages():
    """While nothing is recorded, what a page says of time goes on."""
    with WebBox() as box, browser.Browser() as b:
        sid = running(box, b)
        call = "return document.getElementById('main').innerText.match(/attempt 1, for ([0-9]+)/)?.[1]"
        first = int(b.wait(call))
        b.wait(call + f" > {first}")
        expect(re.search("^since [0-9]+ s$", b.run("return document.querySelector('#r1 td.n + td.n, #r1 time').innerText")), b.run(
            "return document.getElementById('r1').innerText"))
        box.ask("POST", f"/v1/sessions/{sid}/cancel")
        box.end()


def its_log_is_gone():
    """A page says that its log is gone, until it is back."""
    with WebBox() as box, browser.Browser() as b:
        sid = running(box, b)
        path = box.log(sid)
        os.rename(path, path + ".1")
        line = "return document.getElementById('line').textContent"
        b.wait(line + ".startsWith('This page is out of date: there is no session')")
        os.rename(path + ".1", path)
        b.wait(line + " == ''")
        box.ask("POST", f"/v1/sessions/{sid}/cancel")
        box.end()


def killed(box: WebBox):
    """A daemon that is killed and started again: the page says so, and that it is to be opened anew."""
    box.serve()
    workflow, scenario = simple(box, 60000)
    sid = box.submit(workflow, scenario)
    box.wait_status(sid, "running")
    with browser.Browser() as b:
        root = enter(b, box.code())
        b.open(f"{root}s/{sid}/")
        b.wait(READY)
        port = root.split("/w/")[0].rsplit(":", 1)[1]
        box.end(signal.SIGKILL)
        b.wait("return document.getElementById('line').textContent.match(/Not connected.*run segue web again/) !== null")
        box.serve("--http", "127.0.0.1:" + port)
        b.wait("return document.getElementById('line').textContent.includes('window is closed')")
        box.ask("POST", f"/v1/sessions/{sid}/cancel")
    box.end()


if __name__ == "__main__":
    needs(*browser.PROGRAMS)
    sys.exit(main([words, output, tabs, often, ages, its_log_is_gone, killed]))
