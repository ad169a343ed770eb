#!/usr/bin/env python3
"""A session's pages in a real browser: the turns that failed, texts that are cut, logs that are damaged."""
import html
import json
import re
import signal
import sys

import browser
from day_budget_test import midday
from support import expect, flow, main, needs, of_type, records
from web_gate_test import WebBox, Window
from web_pages_test import READY, alone, clean, enter, text

LOOP = """
name: loop
provider: script
max_movements: 20
movements:
  - name: work
    instruction: go on
    judge: {stages: [phase1_tag]}
    rules: [{condition: done, next: COMPLETE}, {condition: more, next: work}]
"""
ROWS = ("return [...document.querySelectorAll('[aria-label=Turns] tbody tr')]"
        ".map(r => [r.cells[0].innerText, r.cells[2].innerText])")


def some_failed(box):
    """Turn 2 of five has an attempt that failed, the last one is found no rule."""
    replies = [{"text": "[WORK:2]"}, {"error": {"class": "rate_limit", "message": "no <b>way</b>", "retry_after_ms": 1}}, {"text": "[WORK:2]"},
               {"text": "[WORK:2]"}, {"text": "[WORK:2]"}, {"text": "no idea"}]
    done = box.segue("run", box.file("loop.yaml", LOOP), "--scenario",
                     box.file("loop.json", json.dumps({"replies": replies})), "--logs", box.logs)
    expect(done.returncode != 0, done.stdout)
    log = records(sorted(box.log_paths())[-1])
    expect(len(of_type(log, "judgment")) == 5 and len(of_type(log, "call_end")) == 6, log[-1])
    return log[0]["session"]


def failures(box):
    """Only the turns that failed, without scripts too; from one failure to the next by a link and by a key; the
    neighbours of a judgment are judgments."""
    sid = some_failed(box)
    process, url = alone(box)
    with browser.Browser() as b:
        root = enter(b, url)
        b.open(f"{root}s/{sid}/")
        b.wait(READY)
        rows = b.run(ROWS)
        expect([n for n, _ in rows] == ["1", "2", "3", "4", "5"], rows)
        expect("1 failed call" in rows[1][1] and "failed call" not in rows[0][1], rows)
        b.run("document.querySelector('a[href=\"?failed=1\"]').click()")
        b.wait("return location.search == '?failed=1' && document.readyState == 'complete'")
        b.wait(READY)
        expect([n for n, _ in b.run(ROWS)] == ["2", "5"] and "Only turns that failed (2 of 5)" in text(b), text(b))
        b.press("N")
        b.wait("return document.title.startsWith('Turn 2')")
        b.wait(READY)
        links = b.run("return [...document.querySelectorAll('a[data-key]')].map(a => [a.dataset.key, a.textContent,"
                      " a.pathname.split('/').at(-1)])")
        expect(links == [["p", "Previous judgment", "1"], ["n", "Next judgment", "3"], ["N", "Next failure", "5"]],
               links)
        b.press("N")
        b.wait("return document.title.startsWith('Turn 5')")
        b.wait(READY)
        b.press("P")
        b.wait("return document.title.startsWith('Turn 2')")
        b.wait(READY)
        b.press("n")
        b.wait("return document.title.startsWith('Turn 3')")
        clean(b)
    process.terminate()
    process.wait()


HREF = "return [...document.querySelectorAll('#main a')].filter(a => /^Show /.test(a.textContent)).map(a => [a.textContent, a.href])"
PRE = "return document.querySelector('#main pre').textContent"


def cut_texts(box):
    """Whatever is cut says so, and a link shows all of it, however long it is; what is whole has no such link."""
    task = "".join(f"{n:06d} ant\n" for n in range(150_000)) + "the end"  # 1.6 MB
    answer = [side + "".join(f"{n} {side}\n" for n in range(2_000)) + "Done.\n[WORK:1]" for side in ("ant", "bee")]
    flow = box.file("long.yaml", LOOP.replace("go on", "'hm " + "x" * 90_000 + "'"))
    ids = []
    for said in answer:
        box.segue("run", flow, "--scenario", box.file("long.json", json.dumps({"replies": [{"text": said}]})),
                  "--logs", box.logs, "--task-file", box.file("task.txt", task), status=0)
        ids.append(records(sorted(box.log_paths())[-1])[0]["session"])
    short = some_failed(box)
    process, url = alone(box)

    def shown(b, path):
        b.open(root + path)
        b.wait(READY)
        return b.run(HREF)

    with browser.Browser() as b:
        root = enter(b, url)
        sid = ids[0]
        size = f"Show all ({len(task) / 1024 / 1024:.1f} MiB)"
        (name, href), = shown(b, f"s/{sid}/")
        expect(name == size and "Shown: 4.0 KiB of" in b.run("return document.getElementById('task').textContent"), name)
        got = ""
        b.open(href)
        for _ in range(2):
            b.wait(READY)
            got += b.run(PRE)
            b.run("window.gone = false; document.querySelector('a[data-key=n]')?.click()")
            b.wait("return window.gone === undefined || !document.querySelector('a[data-key=n]')")
        expect(got == task, len(got), len(task))
        links = shown(b, f"s/{sid}/1")
        expect(size in [n for n, _ in links] and f"Show all ({len(answer[0]) / 1024:.1f} KiB)" in [n for n, _ in links], links)
        expect("Show the full texts, up to 1 MiB each" in [n for n, _ in links], links)
        whole = shown(b, f"s/{sid}/1?all=1")
        expect({n for n, _ in whole} == {size} and answer[0] in b.run("return document.getElementById('main').textContent"),
               whole)
        links = shown(b, f"s/{sid}/workflow")
        expect(len(links) == 1 and "Shown: 64.0 KiB of" in text(b), links)
        expect(shown(b, f"s/{sid}/workflow?all=1") == [] and "x" * 90_000 in b.run("return document.body.textContent"))
        links = shown(b, f"s/{sid}/records")
        expect(len(links) > 1 and all("/text?ref=" in h for _, h in links), links)
        b.open(links[-1][1])
        b.wait(READY)
        log = [json.loads(line) for line in open(f"{box.logs}/{sid}.ndjson", encoding="utf-8")]
        expect(json.loads(b.run(PRE)) in log, b.run(PRE)[:300])
        links = shown(b, f"compare/{ids[0]}_{ids[1]}")
        expect([n.startswith("Show all (") for n, _ in links] == [True] and "more lines are not shown" in text(b), links)
        b.open(links[0][1])
        b.wait(READY)
        expect("+ 1999 bee" in b.run("return document.querySelector('.diff').textContent") and b.run(HREF) == [])
        for path in (f"s/{short}/", f"s/{short}/1", f"s/{short}/workflow"):
            links = shown(b, path)
            expect(links == [], path, links)
        for wrong in ("text", "text?ref=1%23/nothing", "text?ref=99", "text?ref=0", "text?ref=1%23/task&from=x", "text?ref=%3Cb%3E"):
            b.open(f"{root}s/{sid}/{wrong}")
            b.wait(READY)
            expect(b.run("return document.querySelector('#main h1').textContent") == "Not found", wrong)
    process.terminate()
    process.wait()


def ambiguous(box):
    """A stage that was torn between two rules names both, with their conditions, on a terminal and on the page; the
    session's list marks the turn."""
    said = "I am done.\n\n[WORK:1] {mark}\n\nNo <b>more</b>.\n\n[WORK:2]"
    done = box.segue("run", box.file("loop.yaml", LOOP), "--scenario",
                     box.file("two.json", json.dumps({"replies": [{"text": said, "times": 0}]})), "--logs", box.logs)
    expect(done.returncode != 0, done.stdout)
    log = records(box.log_paths()[0])
    stage = of_type(log, "stage")[0]
    expect(stage["outcome"] == "ambiguous" and len(stage["candidates"]) == 2, stage)
    lines = ["candidate 1: rule 1 (done): [WORK:1] on line 3", "candidate 2: rule 2 (more): [WORK:2] on line 7"]
    told = box.segue("show", box.log_paths()[0], "work").stdout.decode()
    expect(all(line in told for line in lines), told)
    process, url = alone(box)
    with browser.Browser() as b:
        root = enter(b, url)
        b.open(f"{root}s/{log[0]['session']}/1")
        b.wait(READY)
        expect("ambiguous tag in the agent's reply: found rule 1 and rule 2, and decided nothing." in text(b), text(b)[:600])
        expect(all(line in text(b) for line in lines), text(b))
        b.open(f"{root}s/{log[0]['session']}/")
        b.wait(READY)
        expect("ambiguous" in b.run(ROWS)[0][1], b.run(ROWS))
    process.terminate()
    process.wait()


LIMITS = flow("web_session_limits")


def what_would_stop_it():
    """The page names the limits that `show --as view` has, and the budgets of the day, which are in no log: with a
    daemon and without one, of the providers that the session uses."""
    budgets = "budget: {day: {tokens: 1000, calls: 50}, providers: {script: {cost: 1}, ollama: {cost: 5}}}\n"
    for daemon in (False, True):
        with WebBox() as box:
            midday(box)
            box.config(budgets)
            tools = [{"name": "Bash", "argument": "make"}] * 3
            said = {"text": "did it", "usage": {"input": 700, "output": 100}, "cost": 0.25}
            replies = [said, {"text": "and on", "tools": tools, "delay_ms": 600000}]
            flow = box.file("limits.yaml", LIMITS)
            scenario = box.file("limits.json", json.dumps({"replies": replies}))
            done = box.segue("run", flow, "-s", scenario, "--cwd", box.cwd, "--logs", box.logs)
            path = box.log_paths()[0]
            sid = records(path)[0]["session"]
            expect(done.returncode == 7 and box.segue("answer", path, "one", "--logs", box.logs).returncode == 0, done)
            process = box.start("resume", path, "--logs", box.logs)
            used = 0
            while used != 3:
                expect(process.poll() is None, "it ended", process.returncode)
                shown = json.loads(box.segue("show", path, "--as", "view").stdout)
                used = sum(b["used"] for b in shown["bounds"] if b["kind"] == "same_tool")
            stalls = [b for b in shown["bounds"] if b["kind"] == "stall"]
            expect(stalls == [{"kind": "stall", "of": "work", "limit": 1200000}], shown["bounds"])
            if daemon:
                box.serve()
                window, web = box.window(), None
            else:
                web = box.start("web", "--logs", box.logs, "--no-open")
                window = Window(web.stdout.readline().decode().strip())
                window.enter()
            body = window.ask("GET", f"s/{sid}/")[2].decode()
            now = re.search(r"<dl id=now>.*?</dl>", body, re.S).group()
            lines = [html.unescape(re.sub(r"<[^>]*>", "", line)) for line in re.findall(r"<div>(.*?)</div>", now)]
            for wanted in ("budget of one call of work: tokens 0 of 1000", "today's budget: calls 2 of 50",
                           "stall limit for the call of work: it ends after 20 min 0 s without output",
                           "guard of work: used the same tool 3 of 5 times in a row with the same argument",
                           "today's budget: tokens 800 of 1000 80 %", "today's budget of script: $0.2500 of $1.0000"):
                expect(wanted in lines, daemon, wanted, lines)
            expect(any(line.startswith("time limit for the call of work: for ") for line in lines), lines)
            expect("ollama" not in now, now)
            expect(any(line.startswith("Turn 3, work: a call of script, since ") for line in lines), lines)
            process.send_signal(signal.SIGINT)
            process.wait()
            if web:
                web.terminate()
                web.wait()
            else:
                box.end()


if __name__ == "__main__":
    needs(*browser.PROGRAMS)
    sys.exit(main([failures, cut_texts, ambiguous, what_would_stop_it]))
