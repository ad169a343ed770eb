#!/usr/bin/env python3
"""Pictures of all screens of the window: light, dark, narrow, printed, Japanese, hostile, empty, large.

usage: screens.py FOLDER      writes the pictures and an index.html that shows them all
"""
import html
import json
import os
import sys

import browser
from audit_logs import write
from daemon import simple
from report_cli_test import HOSTILE, long_session, session
from support import Box, flow, records
from web_gate_test import UNSURE, WebBox

READY = "return document.readyState == 'complete' && !!document.querySelector('#main h1')"
JAPANESE = "\u30ad\u30e5\u30fc\u304c\u6e80\u676f\u306b\u306a\u308b\u3068\u8981\u7d20\u3092\u5931\u3046\u3002\u62d2\u5426\u3059\u308b\u3053\u3068\u3002"
ASKS = """
name: which
movements:
  - name: which
    ask:
      question: "Which database is it to be?"
      choices: [postgres, sqlite]
    rules:
      - {condition: postgres, next: ABORT}
      - {condition: sqlite, next: COMPLETE}
"""
FORM = flow("screens_form")


class Screens:
    """A daemon with a session of each kind; pages: {name: address below the root}."""

    def __init__(self, box):
        self.box = box
        self.done = records(session(box))[0]["session"]
        self.japanese = records(session(box, task=JAPANESE, said=(JAPANESE + " [WORK:1]",
                                                                  JAPANESE + "\n[CHECK:1]")))[0]["session"]
        self.hostile = records(session(box, task=HOSTILE[1] + HOSTILE[7] + HOSTILE[9], said=(
            "".join(HOSTILE[:12]) + " [WORK:1]", "\n".join(HOSTILE) + "\n[CHECK:1]")))[0]["session"]
        self.other = records(session(box, said=("I looked at the queue.\nIt loses nothing any more.\n[WORK:1]",
                                                "It is what was asked.\nAll tests pass.\n[CHECK:1]")))[0]["session"]
        self.long = records(long_session(box, 60))[0]["session"]
        box.serve()
        scenario = box.file("unsure.json", json.dumps({"replies": [{"text": "no idea", "times": 0}]}))
        self.unsure = box.submit(box.file("unsure.yaml", UNSURE), scenario, task="nobody knows")
        box.wait_status(self.unsure, "rule_no_match")
        self.asks = box.submit(box.file("which.yaml", ASKS))
        box.wait_status(self.asks, "needs_input")
        self.form = box.submit(box.file("form.yaml", FORM))
        box.until(lambda: sum(one["kind"] != "stop" for one in box.get("/v1/inbox")["inbox"]) == 2, "nothing more is asked")
        slow, slow_scenario = simple(box, 600000)
        self.running = box.submit(slow, slow_scenario, task="a long work")
        box.wait_status(self.running, "running")

    def pages(self):
        of = f"s/{self.done}/"
        return {"sessions": "", "filtered": "?q=status:cancelled", "inbox": "inbox", "session": of,
                "running": f"s/{self.running}/", "unsure": f"s/{self.unsure}/",
                "asks": f"s/{self.asks}/", "form": f"s/{self.form}/", "judgment": of + "2", "judgment-unsure": f"s/{self.unsure}/1",
                "integrity": of + "integrity", "changes": of + "changes", "audit": "audit", "providers": "providers",
                "judgments": "judgments?of=all&what=unsure",
                "records": of + "records", "text": of + "text?ref=1%23/task", "failed": of + "?failed=1",
                "find": of + "find?q=work", "workflow": of + "workflow",
                "compare": f"compare/{self.done}_{self.other}",
                "compare-hostile": f"compare/{self.done}_{self.hostile}",
                "japanese": f"s/{self.japanese}/1", "hostile": f"s/{self.hostile}/",
                "hostile-judgment": f"s/{self.hostile}/2", "long": f"s/{self.long}/",
                "missing": "s/" + "0" * 36 + "/"}


def enter(b, url):
    b.open(url)
    b.wait("const h = document.querySelector('#main h1'); return h && h.textContent == 'Sessions'")
    return b.run("return location.href")


def shoot(b, root, pages, folder, kind):
    made = []
    for name, page in pages.items():
        b.open(root + page)
        b.wait(READY)
        path = f"{folder}/{name}-{kind}.png"
        b.shot_whole(path)
        made.append((name, kind, os.path.basename(path)))
    return made


def screenshots(folder):
    os.makedirs(folder, exist_ok=True)
    made = []
    with WebBox() as box:
        screens = Screens(box)
        with browser.Browser() as b:
            root = enter(b, box.code())
            for kind, how in (("light", {}), ("dark", {"dark": True}), ("phone", {"width": 360}),
                              ("print", {"media": "print"})):
                b.emulate(**how)
                made += shoot(b, root, screens.pages(), folder, kind)
        box.end()
    with Box() as box:
        for kind, count in (("empty", 0), ("large", 450)):
            os.makedirs(box.logs, exist_ok=True)
            if count:
                write(box.logs, count, 2, seed=9)
            process = box.start("web", "--logs", box.logs, "--no-open")
            with browser.Browser() as b:
                root = enter(b, process.stdout.readline().decode().strip())
                made += shoot(b, root, {"sessions": "", "inbox": "inbox", "audit": "audit"}, folder, kind)
            process.terminate()
            process.wait()
    with open(folder + "/index.html", "w", encoding="utf-8") as f:
        f.write("<!DOCTYPE html><meta charset=utf-8><title>Screens</title>")
        for name, kind, path in made:
            f.write(f"<h2>{html.escape(name)}, {kind}</h2><img src={path} style='max-width:100%'>\n")
    print(folder + "/index.html")


if __name__ == "__main__":
    if not browser.CAN:
        print("no chromium and chromedriver: no pictures")
        sys.exit(77)
    screenshots(os.path.abspath(sys.argv.pop()))
