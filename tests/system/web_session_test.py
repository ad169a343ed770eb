#!/usr/bin/env python3
"""A session's pages in a real browser: the turns that failed, texts that are cut, logs that are damaged."""
import json
import sys

import browser
from support import Box, expect, main, of_type, records
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
        ".map(r => [r.cells[0].innerText, r.cells[8].innerText])")


def some_failed(box):
    """Turn 2 of five has an attempt that failed, the last one is found no rule."""
    replies = [{"text": "[WORK:2]"}, {"error": {"class": "rate_limit", "message": "no <b>way</b>", "retry_after_ms": 1}}, {"text": "[WORK:2]"},
               {"text": "[WORK:2]"}, {"text": "[WORK:2]"}, {"text": "no idea"}]
    done = box.segue("run", box.file("loop.yaml", LOOP), "--scenario",
                     box.file("loop.json", json.dumps({"replies": replies})), "--logs", box.logs)
    expect(done.returncode != 0, done.stdout)
    log = records(box.log_paths()[0])
    expect(len(of_type(log, "judgment")) == 5 and len(of_type(log, "call_end")) == 6, log[-1])
    return log[0]["session"]


def failures():
    """Only the turns that failed, without scripts too; from one failure to the next by a link and by a key; the
    neighbours of a judgment are judgments."""
    with Box() as box:
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


if __name__ == "__main__":
    if not browser.CAN:
        print("no chromium and chromedriver: skipped")
        sys.exit(77)
    sys.exit(main([failures]))
