#!/usr/bin/env python3
"""The window's workflows in a real browser: their last runs, a plan first, a start, and a run again from a turn."""
import sys

import browser
from daemon import simple
from support import expect, main, needs, of_type, records
from web_gate_test import WebBox
from web_pages_test import READY, clean, enter, text

PARAMS = """
name: names
provider: command
params: {target: {description: whose name it is}}
movements:
  - name: say
    command: [echo, "{input:target}"]
    rules: [{condition: when(exit == 0), next: COMPLETE}, {condition: when(true), next: ABORT}]
"""


def started(box: WebBox):
    """A workflow that ran is listed with its runs; it is planned without beginning, and started with its inputs."""
    box.serve()
    flow = box.file("params.yaml", PARAMS)
    first = box.submit(flow, task="before <b>all</b>", inputs={"target": "ant"})
    box.wait_status(first, "complete")
    with browser.Browser() as b:
        root = enter(b, box.code("--read-only"))
        b.open(root + "workflows")
        b.wait(READY)
        expect("names" in text(b) and "before <b>all</b>" in text(b) and "complete" in text(b), text(b))
        expect(b.run("return document.querySelectorAll('form').length") == 0, "a reader may start it")
        status = b.ask("POST", "/execute/async", {"args": [root], "script":
            "const [root, done] = arguments; fetch(root + 'start', {method: 'POST', headers: {'Content-Type': 'application/json', "
            "'X-Segue': '1'}, body: '{}'}).then((r) => done(r.status), () => done(0))"})
        expect(status in (0, 404), status)
        expect(len(box.log_paths()) == 1, "a reader has started it")
    with browser.Browser() as b:
        root = enter(b, box.code())
        b.open(root + "workflows")
        b.wait("return !!document.querySelector('form[data-act=start]')")
        expect(b.run("return document.querySelector('form[data-act=start]').elements['inputs.target'].value") == "ant")
        fill = ("document.querySelector('details summary').click(); const f = document.querySelector('form[data-act=start]');"
                "f.elements.task.value = 'later'; f.elements['inputs.target'].value = arguments[0];")
        b.run(fill + "f.querySelector('[data-act=plan]').click()", "bee")
        told = b.wait("return document.getElementById('acted').textContent")
        expect(told == "It can run: say by a command; at most 0 calls.", told)
        expect(len(box.log_paths()) == 1, "a plan has begun something")
        start = "document.querySelector('form[data-act=start] button').click()"
        b.run(start)  # it asks for more than a sandbox gives, and nobody has trusted it
        b.wait("return document.getElementById('acted').textContent.includes('segue trust FILE')")
        box.segue("trust", flow, status=0)
        b.run(start)
        b.wait("return /\\/s\\/[0-9a-f-]{36}\\/$/.test(location.href)")
        sid = b.run("return location.href").rstrip("/").split("/")[-1]
        box.wait_status(sid, "complete")
        log = records(box.log(sid))
        expect(log[0]["task"] == "later" and of_type(log, "call_end")[0]["text"].strip() == "bee", log[0])
        b.open(root + "workflows")
        b.wait(READY)
        expect(b.run("return document.querySelectorAll('.runs li').length") == 2, text(b))
        b.run(fill + "f.elements.cwd.value = '/nowhere/at/all'; f.querySelector('button').click()", "cow")
        b.wait("return document.getElementById('acted').textContent.includes('/nowhere')")
    box.end()


def again(box: WebBox):
    """From a turn's page another session begins where that one was; the first stays as it is."""
    box.serve()
    workflow, scenario = simple(box, 0)
    sid = box.submit(workflow, scenario, task="once")
    box.wait_status(sid, "complete")
    before = len(records(box.log(sid)))
    with browser.Browser() as b:
        root = enter(b, box.code())
        b.open(root + f"s/{sid}/2")
        b.wait("return !!document.querySelector('#again form')")
        b.run("document.querySelector('#again summary').click(); document.querySelector('#again button').click()")
        b.wait("return /\\/s\\/[0-9a-f-]{36}\\/$/.test(location.href) && !location.href.includes(arguments[0])", sid)
        new = b.run("return location.href").rstrip("/").split("/")[-1]
        box.wait_status(new, "complete")
        log = records(box.log(new))
        expect(of_type(log, "carried") and of_type(log, "turn_start")[0]["movement"] == "do", log[1])
        expect(len(records(box.log(sid))) == before)
        b.wait("return document.getElementById('main').innerText.includes('Compare with the session it was forked from')")
    box.end()


if __name__ == "__main__":
    needs(*browser.PROGRAMS)
    sys.exit(main([started, again]))
