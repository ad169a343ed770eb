#!/usr/bin/env python3
"""The window's pages in a real browser: they say what the logs say, live, by keys, and whatever the logs
hold they stay pages."""
import itertools
import json
import os
import re
import signal
import sys

import browser
import hostile_texts
from audit_logs import write
from daemon import simple
from report_cli_test import HOSTILE, long_session, session
from screens import UNSURE, Screens
from support import WAIT_S, Box, expect, flow, main, needs, of_type, records, sample
from view_cli_test import stops
from web_gate_test import WebBox

READY = "return document.readyState == 'complete' && !!document.querySelector('#main h1')"
H1 = "const h = document.querySelector('#main h1'); return h && h.textContent"


def enter(b, url):
    b.open(url)
    b.wait("const h = document.querySelector('#main h1'); return h && h.textContent == 'Sessions'")
    return b.run("return location.href")


def text(b):
    return b.run("return document.getElementById('main').innerText")


def alone(box):
    """The window without a daemon; its address with the code."""
    process = box.start("web", "--logs", box.logs, "--no-open")
    return process, process.stdout.readline().decode().strip()


def clean(b):
    expect(b.console() == [], b.console())


def folder(box):
    """Without a daemon: sessions, one, each judgment, audit and integrity, as the commands tell them."""
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
        expect([(r[0], r[2].split(" ")[0]) for r in rows]
               == [(str(t["turn"]), t["leads_to"]) for t in view["turns"]], rows)
        expect(f'sound up to record {view["chain"]["records"]}' in text(b))
        expect(b.run("return document.querySelectorAll('button[data-act]').length") == 0)
        b.open(root + "s/" + sid + "/2")
        told = json.loads(box.segue("show", path, "check", "--as", "view").stdout)["told"]
        heads = b.run("return [...document.querySelectorAll('#main h2')].map(h => h.textContent)")
        expect(heads == [t["title"] for t in told[1:]], heads)
        expect("because [CHECK:1]" in b.run("return document.querySelector('.verdict q').textContent"))
        b.open(root + "s/" + sid + "/integrity")
        expect(f'verified: {len(records(path))} records, complete, sealed' in text(b), text(b))
        b.open(root + "audit")
        totals = json.loads(box.segue("audit", box.logs, "--json").stdout)["totals"]
        expect("%d judgments: %d found" % (totals["judgments"], totals["decided"]) in text(b))
        for wrong in ("s/" + sid[:-1] + "10"[sid[-1] == "1"] + "/", "s/" + sid + "/99", "s/" + sid + "/x"):
            b.open(root + wrong)
            expect(b.run(H1) == "Not found", wrong)
        requests = [r for r in b.requests() if not r.startswith(("chrome", "data:"))]
        expect(all(r.startswith(root.split("/w/")[0]) for r in requests), requests)
        expect(not any("violat" in m.lower() or "refused" in m.lower() for m in b.console()))
    process.send_signal(signal.SIGINT)
    expect(process.wait(WAIT_S) == 0, process.stderr.read())


HEAD = ("const d = document.getElementById('now'); return Object.fromEntries([...d.querySelectorAll('dt')]"
        ".map(t => [t.textContent, t.nextSibling.innerText]))")


def answers(box: WebBox):
    """The head of a session: what it does or waits for, since and until when, why, and its limits."""
    path = stops(box)
    box.serve()
    workflow, scenario = simple(box, 600000)
    running = box.submit(workflow, scenario, task="a long work")
    box.wait_status(running, "running")
    with browser.Browser() as b:
        root = enter(b, box.code())
        b.open(root + "s/" + records(path)[0]["session"] + "/")
        b.wait(READY)
        head = b.run(HEAD)
        state = b.run(STATE)
        expect(re.fullmatch(r"\? needs_input .*Which one\?; it continues when its question is answered \$1.2500 [\d.]+ s "
                            r"6 turns last change \d+ s ago", state), state)
        expect(re.fullmatch(r"Turn 6, which: waits for a person, since \d+ s, for (1|2) h more", head["now"]), head)
        expect(head["limits"].split("\n") == [
            "movements 6 of 20", "budget: tokens 2000 of 100000", "budget: $1.2500 of $2.5000", "budget: calls 5 of 50",
            "budget of which: movements 1 of 3", "loop of review, fix: round 2 of 3 before its monitor judges",
            "guard of which: entered 1 of 4 times in a row",
            "deadline for the question of which: for " + head["now"].split("for ")[-1]], head)
        asked = of_type(records(path), "question")[0]["ts"]
        titles = b.run("return [...document.querySelectorAll('#now time')].map(t => t.title)")
        expect(f"{asked[:10]} {asked[11:19]} UTC" in titles, asked, titles)
        b.open(root + "s/" + running + "/")
        b.wait("const d = document.getElementById('now'); return d && d.innerText.includes('script, since')")
        head = b.run(HEAD)
        expect(re.fullmatch(r"Turn 1, plan: a call of script, since \d+ s", head["now"]), head)
        expect("running it has just begun" in b.run(STATE), b.run(STATE))
        expect(re.fullmatch(r"movements 1 of 20\ntime limit for the call of plan: for .* more", head["limits"]), head)
        clean(b)
    box.ask("POST", f"/v1/sessions/{running}/cancel", {})
    box.wait_status(running, "cancelled")
    box.end()


STATE = "return document.getElementById('state').innerText.replace(/\\s+/g, ' ')"
BARS = ("return [...document.querySelectorAll('.bar rect')].map(r => [r.className.baseVal, "
        "getComputedStyle(r).fill.replace(/.*#|[\")].*/g, ''), !!document.querySelector(getComputedStyle(r).fill"
        ".replace(/.*(#[-a-z]+).*|.*/, '$1') || 'body')])")


def waits(box: WebBox):
    """Each kind of waiting is marked while it lasts, and hatched in its own way on the axis."""
    asks = stops(box)
    box.config("providers: {script: {concurrency: 1}}\n")
    box.serve()
    first, second = (box.submit(*simple(box, delay), task=task) for delay, task in ((600000, "one"), (1, "two")))
    box.until(lambda: of_type(records(box.log(second)), "admission"), "it does not wait")
    with browser.Browser() as b:
        root = enter(b, box.code())
        b.open(root + "s/" + second + "/")
        b.wait(READY)
        expect(re.search(r"Turn 1, plan: waits for a place at script \(concurrency\), since \d+ s", text(b)), text(b))
        mark = b.run("return document.querySelector('[aria-label=Turns] td:nth-child(3) .mark').textContent")
        expect(mark == "waits for a place", mark)
        key = b.run("return [...document.querySelectorAll('.key span')].map(s => [s.textContent, "
                    "!!s.querySelector('pattern path')])")
        expect([k[0] for k in key] == ["work", "judging", "waiting for a place", "waiting for the next attempt",
                                       "waiting for a person"] and [k[1] for k in key] == [False] + [True] * 4, key)
        paths = b.run("return [...document.querySelectorAll('pattern path')].map(p => p.getAttribute('d'))")
        expect(len(set(paths)) == 4, paths)
        box.ask("POST", f"/v1/sessions/{first}/cancel", {})
        b.wait("return document.getElementById('main').innerText.includes('complete')")
        bars = b.run(BARS)
        expect(["waiting", "hatch-waiting", True] in bars, bars)
        box.segue("answer", asks, "one")
        b.open(root + "s/" + records(asks)[0]["session"] + "/")
        b.wait(READY)
        bars = b.run(BARS)
        expect(bars[-1] == ["person", "hatch-person", True], bars)
        clean(b)
    box.end()


def live(box: WebBox):
    """A session of the daemon from submit to end, without reload; what was opened stays open."""
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


LIST_ROWS = "return [...document.querySelectorAll('[aria-label=sessions] tbody tr')].map(r => r.id.slice(2))"
MORE_THAN_SKIMD = 262144


def listed(box: WebBox):
    """A row says how its judgments were decided, what is odd about it, and how old it is."""
    mixed = stops(box)
    replies = {"replies": [{"text": "[ONE:2] {mark}\n[ONE:1]", "times": 0}]}
    text = UNSURE.replace("movements:", "judge: {stages: [phase1_tag]}\nmovements:")
    box.segue("run", box.file("odd.yaml", text), "--scenario", box.file("odd.json", json.dumps(replies)),
              "--cwd", box.cwd, "--logs", box.logs, "--task", "unsure")
    odd = next(records(p)[0]["session"] for p in box.log_paths() if p != mixed)
    judgment = of_type(records(box.log(odd)), "judgment")[0]
    large = records(session(box, said=("x" * MORE_THAN_SKIMD + "\n[WORK:1]", "[CHECK:1]")))[0]["session"]
    box.serve()
    late = {"replies": [{"times": 0, "error": {"class": "rate_limit", "message": "later", "retry_after_ms": 600000}}]}
    waits = box.submit(simple(box)[0], box.file("late.json", json.dumps(late)), task="later")
    box.wait_status(waits, "waiting")
    with browser.Browser() as b:
        root = enter(b, box.code())
        b.wait("return document.getElementById('main').innerText.includes('retrying')")
        bars = dict(b.run("return [...document.querySelectorAll('#main tbody tr')].map(r => [r.id.slice(2), "
                          "r.querySelector('svg title')?.textContent])"))
        expect(bars[records(mixed)[0]["session"]] == "only one rule 2, tag in the reply 3", bars)
        ends = of_type(records(box.log(large)), "session_end")[0]["methods"]
        expect(ends == {"structured_output": 2} and bars[large] == "judge's value 2", bars, ends)
        expect(bars[waits] is None, bars)
        parts = b.run("return [...document.getElementById(arguments[0]).querySelectorAll('rect')].map(r => "
                      "r.className.baseVal)", "r-" + records(mixed)[0]["session"])
        expect(parts == ["by-rule", "by-tag"], parts)
        marks = dict(b.run("return [...document.querySelectorAll('#main tbody tr')].map(r => [r.id.slice(2), "
                           "[...r.querySelectorAll('.mark')].map(m => m.textContent)])"))
        expect(marks[records(mixed)[0]["session"]] == ["asks"] and marks[waits] == ["retrying"], marks)
        expect(judgment["stages"][0]["outcome"] == "ambiguous" and marks[odd] == ["ambiguous"], marks, judgment)
        ages = b.run("return [...document.querySelectorAll('#main tbody [title]')].map(t => [t.textContent, t.title])")
        expect(len(ages) >= 5 and all(re.fullmatch(r"[\d-]{10} [\d:]{8} UTC", t) for _, t in ages), ages)
        b.open(root + f"s/{waits}/")
        b.wait(READY)
        ages = b.run("return [...document.querySelectorAll('#about time')].map(t => t.textContent)")
        expect(len(ages) == 2 and all(a.endswith(" ago") for a in ages), ages)
        clean(b)
    box.segue("cancel", waits)
    box.end()


def new_ones(box: WebBox):
    """Sessions that begin while a list is read are told, and its rows stay until they are asked for."""
    session(box, task="first")
    box.serve()
    workflow, scenario = simple(box)
    with browser.Browser() as b:
        enter(b, box.code())
        before = b.run(LIST_ROWS)
        ids = [box.submit(workflow, scenario, task="later") for _ in range(2)]
        b.wait("return document.querySelector('#fresh button')?.textContent == '2 new'")
        for sid in ids:
            box.wait_status(sid, "complete")
        expect(b.run(LIST_ROWS) == before, "rows were moved")
        b.run("document.querySelector('#fresh button').click()")
        b.wait("return document.querySelectorAll('[aria-label=sessions] tbody tr').length == 3")
        expect(b.run(LIST_ROWS) == sorted(ids, reverse=True) + before, b.run(LIST_ROWS))
        expect(b.run("return document.getElementById('fresh').textContent") == "")
        clean(b)
    box.end()


def compared(box):
    """Two sessions side by side, each side leading to its own judgments."""
    ids = [records(session(box, task=t))[0]["session"] for t in ("ant", "bee")]
    _, url = alone(box)
    with browser.Browser() as b:
        root = enter(b, url)
        b.open(f"{root}compare/{ids[0]}_{ids[1]}")
        b.wait(READY)
        told = json.loads(box.segue("compare", "--logs", box.logs, *ids, "--json").stdout)
        rows = b.run("return document.querySelectorAll('[aria-label=\"All turns\"] tbody tr').length")
        expect(rows == len(told["turns"]) and "No difference" in text(b), text(b))
        links = b.run("return [...document.querySelectorAll('td a')].map(a => a.href)")
        expect(links[:2] == [f"{root}s/{i}/1" for i in ids], links)
        expect(b.run("return document.querySelectorAll('.diff').length") == 0, text(b))
        far = [records(session(box, said=("same <b>\n" * 9 + said + " [WORK:1]", "[CHECK:1]")))[0]["session"]
               for said in ("one ant", "two\nbees")]
        b.open(f"{root}compare/{far[0]}_{far[1]}")
        b.wait(READY)
        lines = b.run("return document.querySelector('.diff').textContent").split("\n")
        lines = [re.sub(r"(?<=:1\]) \w{4}$", "", line) for line in lines]  # each turn's own mark
        expect(lines == ["  ... 6 lines in both", *["  same <b>"] * 3, "- one ant [WORK:1]", "+ two",
                         "+ bees [WORK:1]", ""], lines)
        expect("1 line only in A, 2 only in B" in text(b), text(b))
        expect("No difference" not in text(b) and "They took the same way" in text(b), text(b))
        for wrong in ("compare/x", f"compare/{ids[0]}_", f"compare/{ids[0]}_{'0' * 36}"):
            b.open(root + wrong)
            expect(b.run(H1) == "Not found", wrong)


def act(box: WebBox):
    """Cancel by its two steps; the record is there; what is refused is said."""
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


def further(box: WebBox):
    """A session that had too few turns goes on from the inbox with more; what is refused stands on the page."""
    box.serve()
    workflow, scenario = simple(box, 0)
    with open(workflow, encoding="utf-8") as f:
        text_of = f.read()
    few = box.file("few.yaml", re.sub(r"max_movements: \d+", "max_movements: 1", text_of))
    sid = box.submit(few, scenario)
    box.wait_status(sid, "max_movements")
    with browser.Browser() as b:
        root = enter(b, box.code())
        b.open(root + "inbox")
        b.wait("return !!document.querySelector('form[data-act$=resume]')")
        put = ("for (const [n, v] of Object.entries(arguments[0])) document.querySelector(`form[data-act$=resume] "
               "[name='${n}']`).value = v; document.querySelector('form[data-act$=resume]').requestSubmit()")
        b.run(put, {"max_movements": "50", "provider": "nobody"})
        b.wait("return document.getElementById('acted').textContent.includes('nobody')")
        b.run(put, {"max_movements": "50", "provider": ""})
        box.wait_status(sid, "complete")
        b.wait("return document.querySelector('#main h1').textContent == 'Inbox (0)'")
    box.end()


def inbox(box: WebBox):
    """A session that no rule fits waits in the inbox; a person's verdict takes it to its end."""
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
        expect(options == ["judge it again", "1: good <b> > COMPLETE", "2: bad > ABORT"], options)
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


def questions(box: WebBox):
    """What a session asks is answered from the inbox, a choice and a text; the records say so."""
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


FORM = flow("web_pages_form")


def forms(box: WebBox):
    """An answer with a schema is a form with a field for each property, on the inbox and on the session's page;
    who comes second is told who was first."""
    box.serve()
    status, made = box.ask("POST", "/v1/sessions", {"workflow": box.file("form.yaml", FORM), "cwd": box.cwd})
    expect(status == 201, made)
    sid = made["id"]
    box.until(lambda: len(box.get("/v1/inbox")["inbox"]) == 2, "nothing is asked")
    fill = """
            const fields = [...document.querySelectorAll('form[data-act$=answer] [data-form]')];
            for (const [key, value] of Object.entries(arguments[0]))
              fields.find((f) => f.dataset.key && JSON.parse(f.dataset.key) === key).value = value;
            return fields.map((f) => f.tagName + ' ' + (f.type || ''))"""
    odd = 'k\u202e"<'
    given = {"name": 'a "b" \u202e', "count": "7", "share": "0.10", "sure": "false", odd: r'"sqlite \u202E"',
             "tags": '["x"]'}
    with browser.Browser() as b, browser.Browser() as late:
        root, other = enter(b, box.code()), enter(late, box.code())
        b.open(root + f"s/{sid}/")
        late.open(other + "inbox")
        for one in (b, late):
            one.wait("return document.querySelectorAll('form[data-act$=answer]').length == 2")
            expect("How it is <i>called</i>" in text(one), text(one))
            kinds = one.run(fill, given)
            expect(kinds == ["INPUT text", "INPUT number", "INPUT number", "SELECT select-one",
                             "SELECT select-one", "TEXTAREA textarea", "INPUT number"], kinds)
        send = ("const f = [...document.querySelectorAll('form[data-act$=answer]')].find((f) => f.elements.length > 5);"
                "window.sent = f; if (!f.checkValidity()) return [...f.elements].filter((e) => !e.validity.valid)"
                ".map((e) => e.outerHTML); f.requestSubmit(); return []")
        body = late.run("const f = [...document.querySelectorAll('form[data-act$=answer]')].find((f) => "
                        "f.elements.length > 5); window.kept = f.dataset.act;"
                        "return [...f.elements].filter((e) => e.name).map((e) => [e.name, e.value])")
        expect(b.run(send) == [])
        b.wait("return document.getElementById('acted').textContent.startsWith('Done')")
        b.wait("return document.querySelectorAll('form[data-act$=answer]').length == 1")
        value = of_type(records(box.log(sid)), "answer")[0]["value"]
        expect(value == {"name": 'a "b" \u202e', "count": 7, "share": 0.1, "sure": False,
                         odd: "sqlite \u202e", "tags": ["x"]}, value)
        late.ask("POST", "/execute/async", {"args": [dict(body)], "script": """
                const [b, done] = arguments, f = document.createElement('form');
                f.dataset.act = window.kept;
                for (const [name, value] of Object.entries({...b, text: '{"name":"x","count":2}'})) {
                  const i = document.createElement('input');
                  i.name = name; i.value = value; if (name == 'question') i.dataset.number = '';
                  f.append(i);
                }
                f.append(document.createElement('button'));
                document.getElementById('main').append(f); f.requestSubmit(); setTimeout(done, 0)"""})
        told = late.wait("return document.getElementById('acted').textContent")
        expect("answered" in told and "already" in told, told)
        b.run("document.querySelector('form[data-act$=answer] [data-form]').value = '3';"
              "document.querySelector('form[data-act$=answer]').requestSubmit()")
        box.wait_status(sid, "complete")
        expect(of_type(records(box.log(sid)), "answer")[1]["value"] == 3)
        clean(b)
    box.end()


FIND_ODD = """const odd = (d, root) => [...d.querySelectorAll('body *')].filter((e) =>
  /^(script|img|iframe|math|base|object|embed|link|meta|style|video|audio|template|dialog|font|b|i)$/i.test(e.tagName)
  || [...e.attributes].some((a) => /^on|^style$|^src/.test(a.name))
  || (e.href && e.href.baseVal === undefined && !e.href.startsWith(root))
).map((e) => e.outerHTML.slice(0, 100));
"""
ODD = FIND_ODD + "return odd(document, arguments[0])"
READ = FIND_ODD + """const [pages, root, done] = arguments;
const read = (page) => new Promise((is) => {
  const ask = new XMLHttpRequest();
  ask.open('GET', page);
  ask.responseType = 'document';
  ask.onloadend = () => is([page, !!ask.response?.querySelector('#main h1'), ask.response ? odd(ask.response, root) : [],
                            ask.response?.body.textContent]);
  ask.send();
});
Promise.all(pages.map(read)).then(done)"""


def hostile(box: WebBox):
    """Whatever stands in every field of a log, on every screen: no element or attribute that the writer did not make,
    and the text reads back as it was cleaned; on those that are drawn no dialog, no request elsewhere, no violation."""
    good = session(box, task="model")
    sids = [f"01a20651-0000-7000-8000-{n:012x}" for n in range(12)]
    texts = itertools.cycle(hostile_texts.TEXTS)
    for n, sid in enumerate(sids):
        hostile_texts.rewrite(good, f"{box.logs}/{sid}.ndjson", texts, sid, n % 2 == 1)
    for said in HOSTILE:
        session(box, task=said, said=(said + " [WORK:1]", said + "\n[CHECK:1]"))
    box.serve()
    with browser.Browser() as b:
        root = enter(b, box.code())
        pages = b.run("return [...document.querySelectorAll('#main tbody th a')].map(a => a.href)")
        expect(len(pages) == len(HOSTILE) + len(sids) + 1, len(pages))
        mine = [p for p in pages if any(s in p for s in sids)]
        seen = [root, root + "inbox", root + "audit", root + "providers", root + "?sort=tokens&q=%3Cscript%3E",
                root + "audit?q=movement:%3Cimg%3E", root + "judgments", root + f"compare/{sids[0]}_{sids[1]}"]
        seen += [p + "1" for p in pages if p not in mine][:4] + pages
        for of in mine:
            seen += [of + name for name in ("1", "2", "2?all=1", "integrity", "changes", "records", "workflow",
                                            "find?q=e", "find?q=%3Cscript%3E", "records?from=5",
                                            "?failed=1", "text?ref=1%23/task", "text?ref=4")]
        b.open(root + "audit")
        behind = b.run("return [...document.querySelectorAll('#main a[href*=\"judgments?\"]')].map(a => [a.href, a.textContent])")
        for page, number in sample.draw("judgments behind a number", behind, max(1, len(behind) // 12)):
            b.open(page)
            b.wait(READY)
            shown = b.run("return [document.querySelectorAll('#main tbody tr').length, document.querySelector('#main [role=status]').textContent]")
            expect(min(200, int(number)) == shown[0] and shown[1].startswith(number + " "), page, number, shown)
            expect(b.run(ODD, root) == [], page)
        for at in range(0, len(seen), 4):  # as they are sent: to open each takes a minute
            for page, there, odd, shown in b.ask("POST", "/execute/async", {"script": READ, "args": [seen[at:at + 4], root]}):
                expect(there and odd == [], page, odd)
                expect("\x1b" not in shown and "\u202e" not in shown and "\x9b" not in shown, page)
        for page in sample.draw("pages of hostile logs", seen, 8):
            b.open(page)
            b.wait(READY)
            expect(b.run(ODD, root) == [], page, b.run(ODD, root))
        b.open(root + f"s/{sids[0]}/records")
        b.wait(READY)
        first = b.run("return document.querySelector('.record pre').textContent")
        for text_in in ("<svg/onload=alert(1)>", "<iframe srcdoc=x>"):
            expect(text_in in first, text_in, first[:2000])
        requests = [r for r in b.requests() if not r.startswith(("chrome", "data:"))]
        expect(all(r.startswith(root.split("/w/")[0]) for r in requests), requests)
        clean(b)
    box.end()


def sorted_rows(box):
    """Sessions by each of five columns, most first and least first; a filter stays; the audit is filtered."""
    os.mkdir(box.logs)
    write(box.logs, 40, 3, seed=4)
    _, url = alone(box)
    with browser.Browser() as b:
        root = enter(b, url)
        for column in ("turns", "tokens"):
            rows = ("const at = [...document.querySelectorAll('#main thead th')].findIndex("
                    "h => h.innerText.startsWith('%s'));"
                    "return [...document.querySelectorAll('#main tbody tr')].map(r => Number(r.cells[at].innerText))") % column
            b.open(root + "?sort=" + column)
            b.wait(READY)
            got = b.run(rows)
            expect(len(got) == 40 and got == sorted(got, reverse=True), column, got)
            head = b.run("return document.querySelector('th[aria-sort]').getAttribute('aria-sort')")
            expect(head == "descending", head)
            b.run("document.querySelector('th[aria-sort] a').click()")
            b.wait("return document.querySelector('th[aria-sort=ascending]')")
            got = b.run(rows)
            expect(got == sorted(got), column, got)
        b.open(root + "?sort=cost&q=status:complete")
        b.wait(READY)
        links = b.run("return [...document.querySelectorAll('thead a')].map(a => a.search)")
        expect(len(links) == 5 and all(l.endswith("&q=status%3Acomplete") for l in links), links)
        b.open(root + "?sort=nothing")
        expect("cannot sort sessions by nothing" in text(b), text(b))
        b.open(root + "audit?q=nothing")
        expect("is not a filter" in text(b), text(b))
        b.open(root + "audit?q=method:structured_output")
        b.wait(READY)
        told = json.loads(box.segue("audit", box.logs, "--method", "structured_output", "--json").stdout)["totals"]
        expect("%d judgments: %d found" % (told["judgments"], told["decided"]) in text(b), text(b)[:500])


def laid_out(box):
    """A row of the list stays low on a phone too; on paper no field is empty and no age is alone."""
    long_session(box, 3)
    _, url = alone(box)
    with browser.Browser() as b:
        root = enter(b, url)
        height = "return Math.max(...[...document.querySelectorAll('tr[id^=r-]')].map((r) => r.offsetHeight))"
        wide = "const w = document.querySelector('[aria-label=sessions]'); return w.scrollWidth - w.clientWidth"
        b.emulate(width=1280)
        expect(b.run(height) < 90 and b.run(wide) == 0, b.run(height), b.run(wide))
        b.emulate(width=360)
        expect(b.run(height) < 140 and b.run(wide) == 0, b.run(height), b.run(wide))
        b.emulate(media="print")
        expect(b.run("return getComputedStyle(document.querySelector('form')).display") == "none")
        b.open(b.run("return document.querySelector('tr[id^=r-] a').href"))
        b.wait(READY)
        full = b.run("return getComputedStyle(document.querySelector('time[title]'), '::after').content")
        expect("UTC" in full, full)
        b.emulate(width=360)
        gaps = b.run("const [one, two] = document.querySelectorAll('#contents a'); return two.getBoundingClientRect().left - "
                     "one.getBoundingClientRect().right")
        expect(gaps >= 16, "two links look like one", gaps)
        b.emulate(width=700)
        broken = b.run("return [...document.querySelectorAll('[aria-label=Turns] :is(td, th) > bdi:first-child')].filter("
                       "(e) => e.getClientRects().length > 1).map((e) => e.innerText)")
        expect(broken == [], "words are broken", broken)
        b.run("document.querySelector('[aria-label=Turns] tbody a').click()")
        b.wait("return document.title.startsWith('Turn ')")
        b.wait(READY)
        expect("  " in b.run("return [...document.querySelectorAll('#main .l')].map((l) => l.innerText).join()"), text(b))


def pieces(box):
    """Records with their hashes, places of a text, the workflow: what the log says, each led to from the session."""
    path = session(box, task="a Needle in it")
    log = records(path)
    sid = log[0]["session"]
    _, url = alone(box)
    with browser.Browser() as b:
        root = enter(b, url)
        b.open(f"{root}s/{sid}/")
        b.wait(READY)
        b.run("document.querySelector('form[data-go=find] input').value = 'needle';"
              "document.querySelector('form[data-go=find] button').click()")
        b.wait("return document.title.startsWith('Find')")
        b.wait(READY)
        marks = b.run("return [...document.querySelectorAll('mark')].map(m => m.textContent)")
        expect(marks and all(m.lower() == "needle" for m in marks), marks)
        expect("1#/task" in text(b), text(b))
        b.open(f"{root}s/{sid}/records")
        b.wait(READY)
        hashes = b.run("return [...document.querySelectorAll('.record p code')].map(c => c.textContent)")
        expect(hashes == [r["hash"] for r in log], hashes[:2])
        lines = b.run("return [...document.querySelectorAll('.record pre')].map(c => c.textContent)")
        expect([json.loads(l)["seq"] for l in lines if l.endswith("}")], "no record is whole")
        b.open(f"{root}s/{sid}/workflow")
        b.wait(READY)
        shown = b.run("return [...document.querySelectorAll('pre')].map(p => p.textContent)")
        expect(json.loads(shown[1]) == log[0]["workflow"] and json.loads(shown[0]) == log[0]["config"])
        b.open(root + "providers")
        expect(b.run(H1) == "Not found" and "segue providers" in text(b), text(b))


def marked(box):
    """A judgment's raw reply with the piece that was taken and the tags at their bytes; each prompt is one text,
    folded; the verdict stands on top."""
    path = session(box, task="a task of its own", said=("I saw `[WORK:2]` in a file.\n\nkoala \U0001f428 \"x\"\n[WORK:1]",
                                                      "[CHECK:1]"))
    sid = records(path)[0]["session"]
    told = json.loads(box.segue("show", path, "work", "--as", "view").stdout)["told"]
    texts = [p for s in told for p in s["pieces"] if "marks" in p]
    expect(texts, told)
    wanted = []
    for p in texts:
        raw = p["text"].encode()
        wanted += [(m["what"], raw[m["offset"]:m["offset"] + m["length"]].decode()) for m in p["marks"]]
    expect(any(w == "piece" and json.loads(t)["step"] == 1 for w, t in wanted), wanted)
    expect(all(t.startswith("[WORK:") for w, t in wanted if w in ("tag", "mention")), wanted)
    _, url = alone(box)
    with browser.Browser() as b:
        root = enter(b, url)
        b.open(f"{root}s/{sid}/1")
        b.wait(READY)
        got = b.run("return [...document.querySelectorAll('pre mark')].map(m => [m.className, m.textContent])")
        # A tag within the piece parts it in three, all of them the piece's.
        expect(all(any(c == w and t in whole for w, whole in wanted) or c == "piece" for c, t in got), got, wanted)
        piece = next(t for w, t in wanted if w == "piece")
        expect(piece in "".join(t for c, t in got if c == "piece"), got, piece)
        expect("Led to check by rule 1, done" in text(b) and "decided by: judge's value" in text(b), text(b)[:300])
        read = b.run("return [...document.querySelectorAll('details.read')].map(d => [d.open, d.textContent])")
        expect(read and not any(o for o, _ in read) and "match_method structured_output" in read[-1][1], read)
        folded = b.run("return [...document.querySelectorAll('details.prompt')].map(d => [d.open, d.querySelector"
                       "('pre').textContent])")
        expect(len(folded) == 2 and not any(o for o, _ in folded), folded)
        expect(all(t in "".join(f[1] for f in folded) for t in ("a task of its own", "Weigh the report")), folded)
        expect(len(b.run("return [...document.querySelectorAll('details.prompt > pre')]")) == 2)


def keys():
    """By keys alone: to a session, to a judgment, to the next, back; off where they are not wanted."""
    press = """document.activeElement.dispatchEvent(new KeyboardEvent('keydown',
               {key: arguments[0], bubbles: true, cancelable: true}))"""
    with Box() as box:
        session(box)
        _, url = alone(box)
        with browser.Browser() as b:
            enter(b, url)
            b.run(press, "j")
            expect(b.run("return document.activeElement.closest('tbody') !== null"))
            b.run("document.activeElement.click()")
            b.wait("return document.title.startsWith('do it - ')")
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


def many_movements(box, count):
    """The id of a session that went through so many movements."""
    flow = box.file("many.yaml", "name: many\nprovider: script\nmax_movements: 1000\nmovements:\n" + "".join(
        f"  - name: m{i}\n    instruction: do it\n    rules: [{{condition: good, next: "
        + ("COMPLETE" if i == count - 1 else f"m{i + 1}") + f"}}, {{condition: bad, next: m{i // 2}}}]\n" for i in range(count)))
    scenario = box.file("many.json", json.dumps({"replies": [
        {"purpose": "execute", "text": "ok", "times": 0},
        {"stage": "structured_output", "structured": {"reason": "ok", "step": 1}, "times": 0}]}))
    known = set(box.log_paths())
    box.segue("run", flow, "--scenario", scenario, "--logs", box.logs, "--task", "through all", "-q", status=0)
    return records((set(box.log_paths()) - known).pop())[0]["session"]


def large(box):
    """Many sessions are pages of 200; a long session is, too."""
    os.mkdir(box.logs)
    write(box.logs, 450, 2, seed=9)
    sid = records(long_session(box, 300))[0]["session"]
    _, url = alone(box)
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
        sent = b.run("return performance.getEntriesByType('navigation')[0].decodedBodySize")
        expect(sent <= 120 * 1024, sent)
        b.open(root + "s/" + sid + "/?from=50")
        expect("Turns 50 to 249 of 300" in text(b), text(b)[:900])
        expect(b.run("return document.querySelectorAll('*').length") < 10_000)
        b.open(root + "s/" + many_movements(box, 450) + "/")
        b.wait(READY)
        expect(b.run("return document.querySelectorAll('*').length") < 10_000)
        rows = "return [...document.querySelectorAll('.rails tbody th')].map(e => e.firstChild.textContent)"
        expect(b.run(rows) == [f"m{i}" for i in range(350, 450)] + ["COMPLETE", "ABORT"], b.run(rows))
        expect("Movements 351 to 450 of 450" in text(b) and "450 of them: segue report" in b.run(
            "return document.getElementById('totals').textContent"), text(b)[-600:])
        b.open(b.run("return location.href") + "?from=1")
        expect(b.run(rows)[0] == "m149" and b.run(rows)[99] == "m248", b.run(rows))


def every_screen(box: WebBox):
    """No screen scrolls sideways on a phone, and none moves; on paper no table is larger than the rest; without scripts
    each says so, and can be read."""
    screens = Screens(box)
    with browser.Browser() as b:
        root = enter(b, box.code())
        sizes = "return [...document.querySelectorAll('main p, td, th, dd')].map((e) => parseFloat(getComputedStyle(e).fontSize))"
        shown = {}
        pages = screens.pages()
        drawn = [*sample.draw("screens", pages, 3), "providers", "judgments"]
        for name, page in ((n, p) for n, p in pages.items() if n in drawn):
            b.emulate(width=360, still=True)
            b.open(root + page)
            b.wait(READY)
            expect(b.run("return document.documentElement.scrollWidth") <= 360, name)
            expect(b.run("return document.getAnimations().length") == 0, name)
            if name == "providers":
                expect(b.run("const w = document.querySelector('.wide'); return w.scrollWidth - w.clientWidth") == 0, "cut off")
            elif name == "judgments":
                third = b.run("return document.querySelector('.wide td:nth-child(3)').getBoundingClientRect().left")
                expect(third < 300, "ids fill the view", third)
            b.emulate(width=720, media="print")
            expect(max(b.run(sizes), default=0) <= 11.5, name, b.run(sizes))
            if name.partition("-")[0] not in ("hostile", "japanese", "long", "unsure", "asks", "form", "filtered", "failed"):
                shown[page] = text(b)
        b.cdp("Emulation.setScriptExecutionDisabled", value=True)
        b.emulate(width=720, media="print")
        for page, was in sample.draw("screens without scripts", shown.items(), 4):
            b.open(root + page)
            still = lambda s: re.sub(r"[\d.]+( (s|min|h)\b)?", "", s)[:100]  # noqa: E731 - ages go on
            expect(still(text(b)) == still(was), page, text(b)[:300], was[:300])
            expect("Scripts are off" in b.run("return document.querySelector('header').textContent"), page)
    box.end()


def switched_off(box: WebBox):
    """Without cookies, or without scripts, the first page says what is wrong, and does not go round in circles."""
    box.serve()
    for off, words in ({"cookies": False}, "This browser does not keep cookies"), ({"scripts": False}, "Scripts are off"):
        with browser.Browser(**off) as b:
            b.open(box.code())
            b.wait("return document.body.innerText.includes(arguments[0])", words)
            pages = [r for r in b.requests() if "/w/" in r and r.endswith("/")]
            expect(len(pages) <= 1, pages)
    box.end()


if __name__ == "__main__":
    needs(*browser.PROGRAMS)
    sys.exit(main([folder, answers, waits, live, listed, new_ones, compared, act, inbox, further, questions, forms, hostile, sorted_rows, laid_out, pieces, marked, keys, large, every_screen, switched_off]))
