#!/usr/bin/env python3
"""The window without a pointer: each key on the screens where it does something, and what stays over many merges."""
import json
import sys

import browser
from audit_logs import write
from report_cli_test import session
from support import expect, main, needs, records, sample
from web_gate_test import WebBox
from web_pages_test import READY, alone, clean, enter

AT = "return document.title.startsWith(arguments[0]) && document.readyState == 'complete' && !!document.querySelector('#main h1')"
FOCUS = "const a = document.activeElement; return a.closest('tr')?.id || a.name || a.tagName"
SEEN = "return getComputedStyle(document.activeElement).outlineStyle"


def every_key(box):
    """j k x Enter u / n p e f g s|i|a|p ? Esc, and the switch that turns them off."""
    for task in ("a heron", "a bee", "a cow"):
        session(box, task=task)
    write(box.logs, 12, 3, seed=4)
    process, url = alone(box)
    with browser.Browser() as b:
        root = enter(b, url)
        ids = b.run("return [...document.querySelectorAll('#main tbody tr')].map(r => r.id)")
        b.press("j")
        expect(b.run(FOCUS) == ids[0] and b.run(SEEN) != "none", b.run(FOCUS), b.run(SEEN))
        b.press("j", "j", "k")
        expect(b.run(FOCUS) == ids[1], b.run(FOCUS))
        b.press("x", "j", "x")
        expect(b.run("return document.getElementById('chosen').textContent") == "2 selected. Compare them")
        pair = "_".join(sorted(i[2:] for i in ids[1:3]))
        expect(b.run("return document.querySelector('#chosen a').href") == root + "compare/" + pair)
        b.press("x")
        expect(b.run("return document.getElementById('chosen').textContent") == "1 selected. ")
        b.press("/")
        expect(b.run(FOCUS) == "q", b.run(FOCUS))
        b.press("j", "g", "s", "?")  # a field takes them
        expect(b.run("return document.querySelector('[name=q]').value") == "jgs?")
        b.press("Esc")
        expect(b.run(FOCUS) == "BODY", b.run(FOCUS))
        b.press("/", *("\ue003" * 4), *"heron", "Enter")
        b.wait("return location.search == '?q=heron' && document.readyState == 'complete'")
        b.wait(READY)
        b.press("j", "Enter")
        b.wait(AT, "a ")
        b.press("j", "Enter")
        b.wait(AT, "Turn 1")
        b.press("n")
        b.wait(AT, "Turn 2")
        b.press("p")
        b.wait(AT, "Turn 1")
        folded = "return [...document.querySelectorAll('#main details')].map(d => d.open)"
        expect(True not in b.run(folded), "open", b.run(folded))
        b.press("e")
        expect(b.run(folded) and False not in b.run(folded), "folded", b.run("return document.body.innerText"))
        b.press("f")
        b.press("u")
        b.wait(AT, "Turn 2")
        for key, title in (("i", "Inbox"), ("a", "Audit"), ("s", "Sessions")):
            b.press("g", key)
            b.wait(AT, title)
        b.press("g", "p")
        b.wait(AT, "Not found")  # no daemon runs here
        expect("segue providers" in b.run("return document.getElementById('main').innerText"))
        b.press("?")
        expect(b.run("return document.getElementById('keys').open"))
        b.press("Tab", " ")
        expect(b.run("return document.getElementById('keys-off').checked"))
        b.press("Esc")
        expect(not b.run("return document.getElementById('keys').open"), "Esc leaves the list of keys open")
        b.press("g", "s")
        b.open(root)
        b.wait(READY)
        b.press("j")
        expect(b.run(FOCUS) == "BODY" and b.run("return document.getElementById('keys-off').checked"), b.run(FOCUS))
        odd = [m for m in b.console() if "404" not in m]
        expect(odd == [], odd)
    process.terminate()
    process.wait()


def back_to_row(box):
    """Back at a list, the keys go on from the row that was opened."""
    for task in ("a heron", "a bee", "a cow"):
        session(box, task=task)
    process, url = alone(box)
    with browser.Browser() as b:
        enter(b, url)
        ids = b.run("return [...document.querySelectorAll('#main tbody tr')].map(r => r.id)")
        for keys, title, back in ((("j", "j", "Enter"), "a ", ids[1]), (("j", "Enter"), "a ", ids[2])):
            b.press(*keys)
            b.wait(AT, title)
            b.press("u")
            b.wait(AT, "Sessions")
            b.wait(FOCUS.replace("return", "return (") + f") == '{back}'")
        b.press("Enter")
        b.wait(AT, "a ")
        b.press("j", "j", "Enter")
        b.wait(AT, "Turn 2")
        b.press("u")
        b.wait(AT, "a ")
        b.wait(FOCUS.replace("return", "return (") + ") == 'r2'")
    process.terminate()
    process.wait()


def inbox_by_keys(box):
    """j k move between what waits, too, and Enter opens it."""
    ids = [records(session(box, task=task, said=("no idea", "none"), ends=False))[0]["session"] for task in ("a", "b")]
    process, url = alone(box)
    with browser.Browser() as b:
        root = enter(b, url)
        b.open(root + "inbox")
        b.wait(READY)
        shown = b.run("return [...document.querySelectorAll('#main article')].map((a) => a.querySelector('a').href)")
        expect(sorted(shown) == [f"{root}s/{sid}/" for sid in sorted(ids)], shown)
        for keys, wanted in ((("j",), 0), (("j",), 1), (("j",), 1), (("k",), 0)):
            b.press(*keys)
            expect(b.run("return document.activeElement.href") == shown[wanted], keys, wanted)
            expect(b.run(SEEN) != "none")
        b.press("Enter")
        b.wait("return location.href == arguments[0]", shown[0])
        clean(b)
    process.terminate()
    process.wait()


def records_by_keys(box):
    """j k move between records, also those of no turn, and Enter opens one; the list of keys names the screens."""
    path = session(box)
    log = records(path)
    process, url = alone(box)
    with browser.Browser() as b:
        root = enter(b, url)
        b.open(f"{root}s/{log[0]['session']}/records")
        b.wait(READY)
        for keys, wanted in ((("j",), 1), (("j", "j"), 3), (("k",), 2), (("k", "k"), 1)):
            b.press(*keys)
            at = b.run("return document.activeElement.closest('article')?.id")
            expect(at == f"rec{wanted}" and b.run(SEEN) != "none", keys, at)
        b.press("j", "Enter")
        b.wait(AT, "Text")
        shown = b.run("return document.querySelector('#main pre').textContent")
        with open(path, encoding="utf-8") as f:
            expect(shown == f.read().split("\n")[1], shown)
        b.press("?")
        told = b.run("return [...document.querySelectorAll('#keys dt')].map((t) => [t.textContent, t.nextSibling.innerText])")
        for screen, keys in {"everywhere": ("?", "Esc", "u", "g s"), "sessions": ("j, k", "Enter", "/", "x"), "inbox": ("j, k", "Enter"),
                             "session": ("j, k", "Enter", "/", "f"), "judgment": ("n, p", "N, P"), "records": ("j, k", "Enter", "n, p"),
                             "find": ("j, k", "Enter", "/"), "audit, judgments": ("j, k", "Enter", "/")}.items():
            expect(all(key + ":" in dict(told)[screen] for key in keys), screen, told)
        clean(b)
    process.terminate()
    process.wait()


def tab_alone(box):
    """From the top of each screen Tab comes to everything that can be used, and every stop is seen."""
    sid = records(session(box))[0]["session"]
    process, url = alone(box)
    with browser.Browser() as b:
        root = enter(b, url)
        for page in ("", "inbox", "audit", f"s/{sid}/", f"s/{sid}/1", f"s/{sid}/records", f"compare/{sid}_{sid}"):
            b.open(root + page)
            b.wait(READY)
            wanted = b.run("return [...document.querySelectorAll('a[href], button, input, summary, [tabindex=\"0\"]')]"
                           ".filter(e => e.checkVisibility()).length")
            b.run("window.stops = new Set(); document.addEventListener('focusin', (e) => window.stops.add(e.target))")
            for _ in range(wanted + 2):
                b.press("Tab")
                if b.run("return document.activeElement !== document.body"):
                    expect(b.run(SEEN) != "none", page, b.run("return document.activeElement.outerHTML.slice(0, 200)"))
            expect(b.run("return window.stops.size") == wanted, page, wanted, b.run("return window.stops.size"))
    process.terminate()
    process.wait()


def many_merges():
    """Over many merges of a session that runs: the focus, what is open, what is typed and the rows stay."""
    turns = 150 if sample.ALL else 60
    with WebBox() as box:
        box.serve()
        flow = box.file("loop.yaml", "name: loop\nprovider: script\nmax_movements: 1000\nmovements:\n  - name: work\n"
                        "    instruction: go on\n    judge: {stages: [phase1_tag]}\n"
                        "    rules: [{condition: done, next: COMPLETE}, {condition: more, next: work}]\n")
        scenario = box.file("loop.json", json.dumps({"replies": [{"text": "more.\n[WORK:2]", "times": turns - 1, "delay_ms": 200},
                                                                 {"text": "done.\n[WORK:1]"}]}))
        with browser.Browser() as b:
            root = enter(b, box.code())
            sid = box.submit(flow, scenario)
            b.open(f"{root}s/{sid}/")
            b.wait("return !!document.getElementById('r2')")
            b.run("""document.querySelector('#task summary').click();
                document.querySelector('input[name=q]').value = 'typed';
                window.row = document.getElementById('r1'); window.link = row.querySelector('a'); link.focus();
                window.merges = 0; window.lost = 0;
                new MutationObserver(() => { merges++; lost += document.activeElement !== link; })
                  .observe(document.getElementById('main'), {subtree: true, childList: true, characterData: true})""")
            b.wait(f"return window.merges >= {turns * 2 // 3}")
            expect(b.run("return window.lost") == 0, "the focus was elsewhere", b.run("return window.lost"), "times")
            expect(b.run("return document.getElementById('task').open && document.querySelector('input[name=q]').value == 'typed'"
                         " && document.getElementById('r1') === row"))
            box.wait_status(sid, "complete")
            b.wait("return document.querySelectorAll('[aria-label=Turns] tbody tr').length == arguments[0]"
                   " && document.getElementById('main').innerText.includes('complete')", turns)
            shown = b.run("return document.getElementById('main').outerHTML")
            b.open(f"{root}s/{sid}/")
            b.wait(READY)
            same = "s => s.replace(/ open=\"\"/g, '').replace(/<time.*?<.time>/g, '')"
            now = b.run("return document.getElementById('main').outerHTML")
            expect(b.run(f"const f = {same}; return f(arguments[0]) == f(arguments[1])", shown, now),
                   "what was merged is another page than one that is loaded")
            clean(b)
        box.end()


def copied(box):
    """The button behind an id or a command puts it into the clipboard, as it is shown."""
    log = records(session(box))
    sid = log[0]["session"]
    stopped = records(session(box, said=("no idea", "none"), ends=False))[0]["session"]
    process, url = alone(box)
    with browser.Browser() as b:
        root = enter(b, url)
        b.cdp("Emulation.setFocusEmulationEnabled", enabled=True)  # a tab behind may not copy
        b.cdp("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
        for page, at, wanted in ((f"s/{sid}/", 0, sid), (f"s/{sid}/1", 0, f"segue show {sid} work#1 --full"),
                                 (f"s/{stopped}/", 1, f"segue resume {stopped}"),
                                 (f"s/{sid}/records", 1, log[1]["hash"]), (f"s/{sid}/workflow", 0, log[0]["workflow_sha256"]),
                                 (f"s/{sid}/find?q=do%20it", 0, "1#/task"), (f"compare/{stopped}_{sid}", 1, sid)):
            b.open(root + page)
            b.wait(READY)
            b.run("document.querySelectorAll('button[data-copy]')[arguments[0]].click()", at)
            b.wait("return document.getElementById('line').textContent == 'Copied.'")
            got = b.ask("POST", "/execute/async", {"args": [], "script": "navigator.clipboard.readText().then(arguments[0])"})
            expect(got == wanted, got)
    process.terminate()
    process.wait()


if __name__ == "__main__":
    needs(*browser.PROGRAMS)
    sys.exit(main([every_key, back_to_row, inbox_by_keys, records_by_keys, tab_alone, many_merges, copied]))
