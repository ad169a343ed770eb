#!/usr/bin/env python3
"""The window's pages in a real browser: they say what the logs say, live, by keys, and whatever the logs
hold they stay pages."""
import json
import os
import signal
import sys

import browser
from audit_logs import write
from daemon import simple
from report_cli_test import HOSTILE, long_session, session
from support import Box, expect, main, of_type, records
from web_gate_test import WebBox

READY = "return document.readyState == 'complete' && !!document.querySelector('#main h1')"
H1 = "const h = document.querySelector('#main h1'); return h && h.textContent"
AXE = os.environ.get("SEGUE_AXE", "")  # the path of axe.min.js 4.14.1


def enter(b, url):
    b.open(url)
    b.wait("const h = document.querySelector('#main h1'); return h && h.textContent == 'Sessions'")
    return b.run("return location.href")


def text(b):
    return b.run("return document.getElementById('main').innerText")


def alone(box):
    """The window without a daemon; its address with the code."""
    process = box.start("web", "--logs", box.logs, "--no-open")
    url = process.stdout.readline().decode().strip()
    return process, url


def clean(b):
    expect(b.console() == [], b.console())


def folder():
    """Without a daemon: sessions, one, each judgment, audit and integrity, as the commands tell them."""
    with Box() as box:
        for name in ("ant", "bee", "cow"):
            path = session(box, task="look at the " + name)
        sid = records(path)[0]["session"]
        process, url = alone(box)
        with browser.Browser() as b:
            root = enter(b, url)
            expect(text(b).count("complete") == 3 and "the cow" in text(b), text(b))
            b.open(root + "?q=the%20bee")
            b.wait(READY)
            expect(text(b).count("complete") == 1 and "the bee" in text(b), text(b))
            b.open(root + "?q=status:nonsense")
            expect("there is no status" in text(b), text(b))
            b.open(root + "s/" + sid + "/")
            view = json.loads(box.segue("show", path, "--as", "view").stdout)
            rows = b.run("return [...document.querySelectorAll('[aria-label=Turns] tbody tr')]"
                         ".map(r => [...r.cells].map(c => c.innerText))")
            expect([(r[0], r[7]) for r in rows]
                   == [(str(t["turn"]), t["leads_to"]) for t in view["turns"]], rows)
            expect(f'sound up to record {view["chain"]["records"]}' in text(b))
            expect(b.run("return document.querySelectorAll('button[data-act]').length") == 0)
            b.open(root + "s/" + sid + "/2")
            told = json.loads(box.segue("show", path, "check", "--as", "view").stdout)["told"]
            heads = b.run("return [...document.querySelectorAll('#main h2')].map(h => h.textContent)")
            expect(heads == [t["title"] for t in told[1:]], heads)
            b.open(root + "s/" + sid + "/integrity")
            expect(f'verified: {len(records(path))} records, complete, sealed' in text(b), text(b))
            b.open(root + "audit")
            totals = json.loads(box.segue("audit", box.logs, "--json").stdout)["totals"]
            expect("%d judgments: %d by" % (totals["judgments"], totals["decided"]) in text(b))
            for wrong in ("s/" + sid[:-1] + "0/", "s/" + sid + "/99", "s/" + sid + "/x"):
                b.open(root + wrong)
                expect(b.run(H1) == "Not found", wrong)
            requests = [r for r in b.requests() if not r.startswith(("chrome", "data:"))]
            expect(all(r.startswith(root.split("/w/")[0]) for r in requests), requests)
            expect(not any("violat" in m.lower() or "refused" in m.lower() for m in b.console()))
        process.send_signal(signal.SIGINT)
        expect(process.wait(20) == 0, process.stderr.read())


def live():
    """A session of the daemon from submit to end, without reload; what was opened stays open."""
    with WebBox() as box:
        box.serve()
        with browser.Browser() as b:
            root = enter(b, box.code())
            b.run("window.marked = true")
            workflow, scenario = simple(box, 1500)
            sid = box.submit(workflow, scenario, task="to be seen")
            b.wait("return document.getElementById('main').innerText.includes('to be seen')")
            b.run("[...document.querySelectorAll('#main tbody a')].at(-1).focus()")
            b.wait("return document.getElementById('main').innerText.includes('complete')")
            expect(b.run("return window.marked") is True, "the page was loaded again")
            expect(b.run("return document.activeElement.tagName") == "A", "the focus was lost")
            again = box.submit(workflow, scenario, task="again")
            b.open(root + "s/" + again + "/")
            b.wait(READY)
            b.run("window.marked = true; document.querySelector('#task summary').click()")
            b.wait("return document.getElementById('main').innerText.includes('complete')")
            rows = b.run("return document.querySelectorAll('[aria-label=Turns] tbody tr').length")
            expect(rows == len(of_type(records(box.log(again)), "turn_start")), rows)
            expect(b.run("return window.marked") is True)
            expect(b.run("return document.getElementById('task').open"), "what was opened was closed")
            clean(b)
        box.end()


def compared():
    """Two sessions side by side, each side leading to its own judgments."""
    with Box() as box:
        ids = [records(session(box, task=t))[0]["session"] for t in ("ant", "bee")]
        process, url = alone(box)
        with browser.Browser() as b:
            root = enter(b, url)
            b.open(f"{root}compare/{ids[0]}_{ids[1]}")
            b.wait(READY)
            told = json.loads(box.segue("compare", "--logs", box.logs, *ids, "--json").stdout)
            rows = b.run("return document.querySelectorAll('[aria-label=\"All turns\"] tbody tr').length")
            expect(rows == len(told["turns"]) and "The same way" in text(b), text(b))
            links = b.run("return [...document.querySelectorAll('td a')].map(a => a.href)")
            expect(links[:2] == [f"{root}s/{i}/1" for i in ids], links)
            for wrong in ("compare/x", f"compare/{ids[0]}_", f"compare/{ids[0]}_{'0' * 36}"):
                b.open(root + wrong)
                expect(b.run(H1) == "Not found", wrong)
        process.terminate()
        process.wait()


def act():
    """Cancel by its two steps; the record is there; what is refused is said."""
    with WebBox() as box:
        box.serve()
        workflow, scenario = simple(box, 60000)
        sid = box.submit(workflow, scenario)
        with browser.Browser() as b:
            root = enter(b, box.code())
            b.open(root + "s/" + sid + "/")
            b.wait(READY)
            b.run("document.querySelector('#acts summary').click()")
            b.run("document.querySelector('button[data-act=cancel]').click()")
            b.wait("return document.getElementById('main').innerText.includes('cancelled')")
            expect(of_type(records(box.log(sid)), "session_end")[0]["outcome"] == "cancelled")
            b.wait("return !document.querySelector('button[data-act]')")
            clean(b)
        box.end()


def inbox():
    """A session that no rule fits waits in the inbox; a person's verdict takes it to its end."""
    with WebBox() as box:
        box.serve("--max-sessions", "1")
        workflow = box.file("ask.yaml", """
name: ask
provider: script
movements:
  - name: one
    instruction: do it
    rules: [{condition: good <b>, next: COMPLETE}, {condition: bad, next: ABORT}]
""")
        scenario = box.file("ask.json", json.dumps({"replies": [{"text": "no idea", "times": 0}]}))
        sid = box.submit(workflow, scenario, task="nobody knows")
        box.wait_status(sid, "rule_no_match")
        slow, slow_scenario = simple(box, 60000)
        first, second = box.submit(slow, slow_scenario), box.submit(slow, slow_scenario)
        box.wait_status(first, "running")
        with browser.Browser() as b:
            root = enter(b, box.code())
            expect("running" in text(b) and "queued" in text(b), text(b))
            b.open(root + "inbox")
            b.wait(READY)
            expect(b.run(H1) == "Inbox (1)" and b.run("return document.title").startswith("Inbox (1)"))
            expect("nobody knows" in text(b), text(b))
            for one in (second, first):
                box.ask("POST", f"/v1/sessions/{one}/cancel")
            b.run("document.querySelector('#main article a').click()")
            b.wait("return !!document.querySelector('select[name=rule]')")
            options = b.run("return [...document.querySelectorAll('select[name=rule] option')].map(o => o.text)")
            expect(options == ["judge it anew", "1: good <b> > COMPLETE", "2: bad > ABORT"], options)
            b.run("document.querySelector('select[name=rule]').value = '1';"
                  "document.querySelector('input[name=why]').value = 'I looked';"
                  "document.querySelector('#acts form button').click()")
            b.wait("return document.getElementById('main').innerText.includes('complete')")
            judged = of_type(records(box.log(sid)), "judgment")[-1]
            expect(judged["method"] == "human" and judged["rule"] == 1, judged)
            b.open(root + "inbox")
            b.wait(READY)
            expect(b.run(H1) == "Inbox (0)", text(b))
            clean(b)
        box.end()


def questions():
    """What a session asks is answered from the inbox, a choice and a text; the records say so."""
    with WebBox() as box:
        box.serve()
        which = box.file("which.yaml", """
name: which
movements:
  - name: which
    ask:
      question: "Which <b>one</b>?"
      choices: [postgres, sqlite]
    rules:
      - {condition: postgres, next: ABORT}
      - {condition: sqlite, next: free}
  - name: free
    ask: {question: What is it called?}
    rules: [{condition: when(true), next: COMPLETE}]
""")
        status, made = box.ask("POST", "/v1/sessions", {"workflow": which, "cwd": box.cwd})
        expect(status == 201, made)
        sid = made["id"]
        box.until(lambda: box.get("/v1/inbox")["inbox"], "nothing is asked")
        with browser.Browser() as b:
            root = enter(b, box.code("--read-only"))
            b.open(root + "inbox")
            b.wait(READY)
            expect("Which <b>one</b>?" in text(b) and b.run(H1) == "Inbox (1)", text(b))
            expect(b.run("return document.querySelectorAll('form[data-act]').length") == 0)
        with browser.Browser() as b:
            root = enter(b, box.code())
            b.open(root + "inbox")
            b.wait("return !!document.querySelector('select[name=choice]')")
            b.run("document.querySelector('select[name=choice]').value = '2';"
                  "document.querySelector('article form button').click()")
            b.wait("return !!document.querySelector('textarea[name=text]')")
            b.run("document.querySelector('textarea[name=text]').value = 'the name';"
                  "document.querySelector('article form button').click()")
            box.wait_status(sid, "complete")
            b.wait("return document.querySelector('#main h1').textContent == 'Inbox (0)'")
            log = records(box.log(sid))
            expect("sqlite" in json.dumps(log) and "the name" in json.dumps(log))
            clean(b)
        box.end()


def hostile():
    """Whatever stands in a log: no dialog, no request elsewhere, no violation, no element of its own."""
    with Box() as box:
        for said in HOSTILE:
            session(box, task=said, said=(said + " [WORK:1]", said + "\n[CHECK:1]"))
        process, url = alone(box)
        with browser.Browser() as b:
            root = enter(b, url)
            pages = b.run("return [...document.querySelectorAll('#main tbody a')].map(a => a.href)")
            expect(len(pages) == len(HOSTILE), len(pages))
            for page in [root] + pages + [p + "1" for p in pages] + [root + "audit"]:
                b.open(page)
                b.wait(READY)
                odd = b.run("""return [...document.querySelectorAll('body *')].filter((e) =>
                  /^(script|img|iframe|math|base|object|embed|link|meta|style)$/i.test(e.tagName)
                  || [...e.attributes].some((a) => /^on|^style$|^src/.test(a.name))
                  || (e.href && e.href.baseVal === undefined && !e.href.startsWith(arguments[0]))
                ).map((e) => e.outerHTML.slice(0, 100))""", root)
                expect(odd == [], page, odd)
                shown = b.run("return document.body.innerText")
                expect("\x1b" not in shown and "\u202e" not in shown, page)
            requests = [r for r in b.requests() if not r.startswith(("chrome", "data:"))]
            expect(all(r.startswith(root.split("/w/")[0]) for r in requests), requests)
            clean(b)
        process.terminate()
        process.wait()


def keys():
    """By keys alone: to a session, to a judgment, to the next, back; off where they are not wanted."""
    press = """document.activeElement.dispatchEvent(new KeyboardEvent('keydown',
               {key: arguments[0], bubbles: true, cancelable: true}))"""
    with Box() as box:
        session(box)
        process, url = alone(box)
        with browser.Browser() as b:
            enter(b, url)
            b.run(press, "j")
            expect(b.run("return document.activeElement.closest('tbody') !== null"))
            b.run("document.activeElement.click()")
            b.wait("return document.title.startsWith('Session ')")
            b.wait(READY)
            b.run(press, "j")
            b.run("document.activeElement.click()")
            b.wait("return document.title.startsWith('Turn 1')")
            b.run(press, "n")
            b.wait("return document.title.startsWith('Turn 2')")
            b.run(press, "p")
            b.wait("return document.title.startsWith('Turn 1')")
            b.run(press, "g")
            b.run(press, "s")
            b.wait("return document.title.startsWith('Sessions')")
            b.run("document.getElementById('keys-off').click()")
            b.run(press, "j")
            expect(b.run("return document.activeElement.closest('tbody') === null"))
            clean(b)
        process.terminate()
        process.wait()


def large():
    """Many sessions are pages of 200; a long session is, too."""
    with Box() as box:
        os.mkdir(box.logs)
        write(box.logs, 450, 2, seed=9)
        sid = records(long_session(box, 300))[0]["session"]
        process, url = alone(box)
        with browser.Browser() as b:
            root = enter(b, url)
            seen = set()
            for _ in range(5):
                seen |= set(b.run("return [...document.querySelectorAll('#main tbody a')].map(a => a.href)"))
                expect(b.run("return document.documentElement.outerHTML.length") < 240_000)
                if not b.run("const a = [...document.querySelectorAll('#main p a')].at(-1);"
                             "if (!a) return false; a.click(); return true"):
                    break
                b.wait("return !location.href.endsWith(arguments[0]) && document.readyState == 'complete'"
                       " && !!document.querySelector('#main h1')", "none")
            expect(len(seen) == 451, len(seen))
            b.open(root + "s/" + sid + "/")
            b.wait(READY)
            expect("Turns 101 to 300 of 300" in text(b), text(b)[:900])
            b.open(root + "s/" + sid + "/?from=50")
            expect("Turns 50 to 249 of 300" in text(b), text(b)[:900])
            expect(b.run("return document.querySelectorAll('*').length") < 10_000)
        process.terminate()
        process.wait()


def access():
    """axe finds nothing, light and dark, wide and narrow (with SEGUE_AXE=axe.min.js)."""
    if not AXE:
        print("  SEGUE_AXE does not name axe.min.js: skipped")
        return
    with open(AXE, encoding="utf-8") as f:
        axe = f.read()
    with Box() as box:
        path = session(box)
        sid = records(path)[0]["session"]
        process, url = alone(box)
        first = True
        for width, dark in ((1280, False), (1280, True), (500, False)):
            with browser.Browser(width=width, dark=dark) as b:
                if first:
                    root = enter(b, url)
                    cookie = b.ask("GET", "/cookie")
                else:
                    b.open(root)
                    b.ask("POST", "/cookie", {"cookie": {k: cookie[0][k] for k in
                                                         ("name", "value", "path", "httpOnly")}})
                first = False
                for page in ("", "inbox", f"s/{sid}/", f"s/{sid}/2", f"s/{sid}/integrity", "audit"):
                    b.open(root + page)
                    b.wait(READY)
                    b.run(axe)
                    found = b.ask("POST", "/execute/async", {"args": [], "script":
                        "const done = arguments[0]; axe.run().then((r) => done(r.violations.map("
                        "(v) => [v.id, v.impact, v.nodes[0].html.slice(0, 150)])))"})
                    expect(found == [], width, dark, page, found)
        process.terminate()
        process.wait()


if __name__ == "__main__":
    if not browser.CAN:
        print("no chromium and chromedriver: skipped")
        sys.exit(77)
    sys.exit(main([folder, live, compared, act, inbox, questions, hostile, keys, large, access]))
