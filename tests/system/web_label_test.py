#!/usr/bin/env python3
"""The window's page for labels, in a real browser: judgments one after the other, by the documented keys alone,
blind, with a way back; and what its door refuses."""
import json
import os
import sys
import time

import browser
from label_queue_test import labels, second, wrong
from support import expect, main, needs, records
from web_gate_test import WebBox
from web_pages_test import READY, clean, enter

FLOW = """
name: many
max_movements: 1000
provider: script
judge: {stages: [structured_output]}
movements:
  - name: review
    instruction: look at it
    rules:
      - {condition: approved, next: COMPLETE}
      - {condition: needs fix, next: review}
      - {condition: cannot be judged, next: review}
"""
AT = "const a = document.getElementById('judged'); return a && a.dataset.at"
SHOWN = AT + " == arguments[0] && a.querySelector('pre') && a.innerText"
SAID = "return document.getElementById('queue').textContent"
ANSWER = {"rule": 1, "turn": 1, "as": "ann", "stratum": "s", "population": 4}


def made(box, sessions, turns):
    """Sessions of several judged turns: each is needs fix but the last one, which is approved."""
    flow = box.file("many.yaml", FLOW)
    replies = []
    for n in range(turns):
        rule = 1 if n == turns - 1 else 2
        replies += [{"purpose": "execute", "text": f"work {n} of it\n" + "a line of the report\n" * 40 + f"{n} tests failed"},
                    {"stage": "structured_output", "text": json.dumps({"reason": "r", "step": rule})}]
    script = box.file("many.json", json.dumps({"replies": replies}))
    for n in range(sessions):
        box.segue("run", flow, "--scenario", script, "--logs", box.logs, "--cwd", box.cwd, "--task", f"repair part {n}", status=0)


def start(box, b, *query):
    root = enter(b, box.code())
    b.open(root + "label?" + "&".join(query))
    b.wait(READY)
    return root


def hundred_by_keyboard(box: WebBox):
    """100 judgments, answered by the keys that the page names, well within ten minutes."""
    made(box, 10, 12)
    second(box, [os.path.basename(p)[:-7] for p in box.log_paths()], ())
    box.serve()
    with browser.Browser() as b:
        start(box, b, "as=ann", "count=100")
        told = b.run("return document.getElementById('main').innerText")
        expect("1-9 the rule" in told and "s skip" in told and "u back" in told, told)
        begin = time.monotonic()
        for n in range(100):
            text = b.wait(SHOWN, str(n))
            expect("verdict" not in text.lower() and "tests failed" in text and "task: repair part" in text, text)
            rule = 1 if text.split(" tests failed")[0].rsplit("\n", 1)[1] == "11" else 2
            if n == 3 and os.environ.get("SEGUE_SHOTS"):
                b.shot(os.environ["SEGUE_SHOTS"] + "/label.png")
            b.press(str(rule))
        b.wait("return document.getElementById('queue').textContent.startsWith('100 of 100 labelled')")
        took = time.monotonic() - begin
        expect(took < 600, took)
        print(f"100 judgments in {took:.1f} s")
        if os.environ.get("SEGUE_SHOTS"):
            b.shot(os.environ["SEGUE_SHOTS"] + "/label-end.png")
        clean(b)
    got = labels(box)
    expect(len({(r["session"], r["turn"]) for r in got}) == len(got) == 100 and all(r["blind"] and r["by"] == "ann" for r in got))
    rates = {r["group"]["rule"]: r for r in wrong(box)}
    expect(rates["1"]["labels"] + rates["2"]["labels"] == 100 and rates["1"]["wrong"][0] == rates["2"]["wrong"][0] == 0, rates)
    expect(rates["2"]["second"] == "b" and rates["2"]["wrong"][2] < 0.1, rates)


def back_skip_and_two_people(box: WebBox):
    made(box, 2, 3)
    box.serve()
    with browser.Browser() as b:
        root = start(box, b, "as=ann")
        b.wait(SHOWN, "0")
        b.press("9", "x", "u")  # no such rule, no such key, nothing to go back to
        b.press("2")
        b.wait(SHOWN, "1")
        b.press("s")
        b.wait(SHOWN, "2")
        b.press("0")
        b.wait(SHOWN, "3")
        expect(b.run(SAID) == "2 of 6 labelled", b.run(SAID))
        b.press("u")
        b.wait(SHOWN, "2")
        expect(b.run("return document.getElementById('line').textContent") == "You said 0: another answer will count instead.")
        b.press("u")
        b.wait(SHOWN, "1")
        b.press("u")
        b.wait(SHOWN, "0")
        b.press("3")
        b.wait(SHOWN, "1")  # it was skipped, and has no answer yet
        expect([r["rule"] for r in labels(box)] == [2, 0, 3], labels(box))
        b.run("document.querySelector('[data-rule=\"1\"]').click()")
        b.wait(SHOWN, "3")  # the one between has an answer
        b.run("document.dispatchEvent(new Event('visibilitychange'))")  # the page is fetched again
        b.press("2")
        b.wait(SHOWN, "4")
        b.press("/", "2")  # a field takes it
        expect(b.run(AT) == "4" and b.run("return document.querySelector('[name=q]').value") == "2")
        b.open(root + "label?as=ann")
        b.wait(SHOWN, "0")
        expect(b.run(SAID) == "4 of 6 labelled", b.run(SAID))
        b.open(root + "label?as=bob&q=rule:1")
        b.wait(SHOWN, "0")
        expect(b.run(SAID) == "0 of 2 labelled", b.run(SAID))
        b.press("1")
        b.wait(SHOWN, "1")
        b.press("2")
        b.wait("return document.getElementById('queue').textContent.startsWith('2 of 2 labelled: ')")
        kept = [(r["by"], r["rule"]) for r in labels(box)]
        expect(kept == [("ann", 2), ("ann", 0), ("ann", 3), ("ann", 1), ("ann", 2), ("bob", 1), ("bob", 2)], kept)
        for page, said in (("label?q=nonsense:1", "is not a filter"), ("label?count=0", "from 1 to 1000"), ("label?q=movement:nix", "No judgment matches")):
            b.open(root + page)
            b.wait(READY)
            expect(said in b.run("return document.getElementById('main').innerText"), page)
        clean(b)


def refused(box: WebBox):
    """A label of what is not there, or of no rule; a browser that only reads; and a page without a daemon."""
    made(box, 1, 2)
    sid = records(box.log_paths()[0])[0]["session"]
    box.serve()
    window = box.window()
    for body, said in (({"rule": 4}, "0 to 3"), ({"rule": -1}, "0 to 3"), ({"turn": 9}, "judged"), ({"as": ""}, "a label has"),
                       ({"as": "x" * 64}, "a label has"), ({"stratum": "x" * 160}, "a label has"), ({"population": -1}, "a label has"), ({"more": 1}, "a label has")):
        status, _, text = window.ask("POST", f"s/{sid}/label", body={**ANSWER, **body})
        expect(status == 422 and said in json.loads(text)["detail"], body, status, text)
    expect(window.ask("POST", f"s/{sid[:-1]}0/label", body=ANSWER)[0] == 404 and labels(box) == [])
    expect(window.ask("GET", f"label/{sid}/9")[0] == 404 and window.ask("GET", f"label/{sid}/x")[0] == 404)
    reader = box.window("--read-only")
    expect(reader.ask("POST", f"s/{sid}/label", body=ANSWER)[0] == 404 and labels(box) == [])
    expect(b"can only be read here" in reader.ask("GET", "label?as=ann")[2])
    expect(window.ask("POST", f"s/{sid}/label", body=ANSWER)[0] == 200 and len(labels(box)) == 1)


if __name__ == "__main__":
    needs(*browser.PROGRAMS)
    sys.exit(main([hundred_by_keyboard, back_skip_and_two_people, refused]))
