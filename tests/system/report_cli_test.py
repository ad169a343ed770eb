#!/usr/bin/env python3
"""Reports: their figures are those of the logs, nothing in them does anything, they need nobody."""
import html.parser
import json
import os
import re
import stat
import sys
import threading
from pathlib import Path

import browser
from audit_logs import Log, START_MS, ZERO, session_id, write
from copied_logs import copied
from support import WAIT_S, Box, expect, main, needs, of_type, records, sample

WORKFLOW = """
name: two <i>steps</i>
initial_movement: work
movements:
  - name: work
    instruction: do it
    rules: [{condition: "done & <b>dusted</b>", next: check}, {condition: stuck, next: ABORT}]
  - name: check
    instruction: look at it
    rules: [{condition: good, next: COMPLETE}, {condition: bad, next: work}]
"""
HOSTILE = ["<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "</pre></details>",
           "javascript:alert(1)", "<svg/onload=alert(1)>", "<math><mtext></mtext></math>",
           "&lt;b&gt; &#x3c; {{7*7}} ${x}", "\x1b]8;;http://evil.example/\x1b\\x\x1b]8;;\x1b\\",
           "\x1b[2J\x1b]52;c;aGk=\x07", "\u202egnp.exe", "a\u200bb\ufeff", "\u2028", "]]>",
           "<style>*{display:none}</style>", "<a href=//evil.example>x</a>", "--><!--",
           "<base href=//evil.example>", "<meta http-equiv=refresh content=0>", "w" * 20000,
           "\u8a66\u9a13", "\u05d0\u05d1\u05d2"]
ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
WORDS = {"structured_output": "judge's value", "tag_fallback": "tag in the reply", "ai_judge": "asked again", "when": "an expression",
         "auto_select": "only one rule", "human": "a person"}
TAGS = {"html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "h3", "h4", "p", "dl",
        "dt", "dd", "bdi", "span", "details", "summary", "pre", "code", "section", "div", "table",
        "caption", "thead", "tbody", "tr", "td", "th", "a", "svg", "g", "path", "pattern", "rect", "circle",
        "text", "br", "strong", "mark", "small"}
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "class", "id", "href", "title",
              "scope", "aria-label", "aria-hidden", "role", "tabindex", "colspan", "rowspan",
              "viewbox", "preserveaspectratio", "x", "y", "width", "height", "d", "cx", "cy", "r",
              "fill", "stroke", "stroke-width", "patternunits"}


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.text, self.rows, self.links, self.ids, self.cell = [], [], [], [], None
        self.open = []
        self.feed(text)
        self.close()
        expect(self.open == [], "not closed:", self.open)

    def handle_starttag(self, tag, attrs):
        expect(tag in TAGS, "an element that the writer does not make:", tag)
        expect({n for n, _ in attrs} <= ATTRIBUTES, tag, attrs)
        self.links += [v for n, v in attrs if n == "href"]
        self.ids += [v for n, v in attrs if n == "id"]
        if tag not in ("meta", "br"):
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")
            self.cell = self.rows[-1]

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        expect(self.open and self.open[-1] == tag, tag, "ends in", self.open[-3:])
        self.open.pop()
        if tag in ("td", "th"):
            self.cell = None

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            return
        self.text.append(data)
        if self.cell is not None:
            self.cell[-1] += data

    def all(self):
        return "".join(self.text)


def session(box, task="do it", said=("done [WORK:1]", "[CHECK:1]"), ends=True):
    flow = box.file("flow.yaml", WORKFLOW)
    replies = []
    for name, text in zip(("work", "check"), said):
        replies.append({"movement": name, "purpose": "execute", "text": text, "times": 0})
        verdict = '{"step": 1, "reason": %s}' % json.dumps("because " + text[:200])
        replies.append({"movement": name, "purpose": "judge", "text": verdict if ends else "none", "times": 0})
    scenario = box.file("scenario.json", json.dumps({"replies": replies}))
    known = set(box.log_paths())
    done = box.segue("run", flow, "--provider", "script", "--scenario", scenario, "--logs", box.logs,
                     "--task", task)
    expect((done.returncode == 0) == ends, done.stderr)
    return (set(box.log_paths()) - known).pop()


def report(box, *words, status=0):
    path = f"{box.dir}/out.html"
    box.segue("report", *words, "-o", path, status=status)
    return Path(path).read_text(encoding="utf-8")


def one_session(box):
    """Each turn, verdict and sum of the records stands in the page, and in the view's JSON."""
    path = session(box)
    log = records(path)
    text = report(box, path)
    page = Page(text)
    view = json.loads(box.segue("show", path, "--as", "view").stdout)
    expect(len(of_type(log, "turn_start")) == len(view["turns"]) == 2, view)
    for turn, judged in zip(view["turns"], of_type(log, "judgment")):
        for key, other in (("turn", "turn"), ("movement", "movement"), ("rule", "rule"),
                           ("condition", "condition"), ("method", "match_method"),
                           ("leads_to", "next")):
            expect(turn[key] == judged[other], key, turn)
        expect([s["outcome"] for s in turn["stages"]]
               == [s["outcome"] for s in judged["stages"]])
        expect(f's1t{turn["turn"]}' in page.ids and f'#s1t{turn["turn"]}' in page.links)
    rows = [r for r in page.rows if len(r) == 7 and r[0].isdigit()]
    expect([(r[0], r[2].split(",")[0]) for r in rows] == [("1", "check"), ("2", "COMPLETE")], rows)
    expect(len(set(page.ids)) == len(page.ids), "an id stands twice")
    calls = len(of_type(log, "call_end"))
    expect(["all", "all calls", str(calls)] == next(r for r in page.rows if r[:1] == ["all"])[:3])
    movements = {m["name"]: m for m in view["movements"]}
    expect(movements["work"]["rules"][0]["taken"] == 1 and movements["work"]["runs"] == 1)
    expect("verified: %d records, complete, sealed" % len(log) in page.all(), page.all()[:800])
    said = json.loads(box.segue("show", path, "work", "--as", "view").stdout)
    expect(said["judgment"] == of_type(log, "judgment")[0])
    shown = box.segue("show", path, "work", "--full").stdout.decode()
    for section in said["told"]:
        expect(section["title"] in shown, section["title"])


def hostile(box):
    """Whatever is said stays text: no element, no attribute and no link comes of it."""
    for text in HOSTILE:
        path = session(box, task=text, said=(text + " [WORK:1]", text + "\n[CHECK:1]"))
        page = Page(report(box, path))
        expect(all(link.startswith("#") for link in page.links), page.links)
        got = page.all()
        expect("\x1b" not in got and "\u202e" not in got and "\u200b" not in got, repr(text))
        if text.isascii() and "\x1b" not in text:
            expect(text[:900] in got, "it does not read back:", text[:80])
    Page(report(box, box.logs))
    md = box.segue("report", path, "--format", "md").stdout.decode()
    expect("## Session" in md and "\x1b" not in md)


def folder(box):
    """The figures of a folder are those of segue audit; 200 sessions fit into 2 MB."""
    os.mkdir(box.logs)
    write(box.logs, 200, 8, seed=3)
    for n, start in enumerate((b"", b'{"v":1,"seq"')):  # starts that were killed are no sessions
        with open(f"{box.logs}/0199000{n}-0000-7000-8000-000000000000.ndjson", "xb") as f:
            f.write(start)
    text = report(box, box.logs)
    expect(len(text) < 2_000_000, len(text))
    page = Page(text)
    told = json.loads(box.segue("audit", box.logs, "--json").stdout)
    totals = told["totals"]
    for group in told["groups"]:
        row = next(r for r in page.rows if r[:1] == [WORDS.get(group["match_method"], "-")])
        expect(row[1] == str(group["judgments"]), row, group)
    expect("%d judgments: %d found a rule" % (totals["judgments"], totals["decided"]) in page.all())
    listed = [ID.search(r[1])[0] for r in page.rows if len(r) == 9 and ID.search(r[1])]
    expect(len(listed) == 200, len(listed))
    few = Page(report(box, box.logs, "--status", "complete"))
    done = [r for r in page.rows if len(r) == 9 and r[0].endswith("complete")]
    expect(len([r for r in few.rows if len(r) == 9 and ID.search(r[1])]) == len(done))


def hostile_logs(folder, count):
    """Sessions all of whose texts are long, and longer yet once they are escaped."""
    os.mkdir(folder)
    for n in range(count):
        log, long = Log(START_MS + n * 60_000), "<\u202e&\"" * 4000
        log.add("session_start", session=session_id(n), versions={"segue": "0.1.0"}, task=long,
                workflow_sha256=ZERO, workflow={"name": f"{n}" + long, "movements": []}, config={"cwd": "/"})
        log.add("turn_start", turn=1, movement=f"{n}" + long, iteration=1, movement_iteration=1)
        log.add("judgment", turn=1, movement=f"{n}" + long, rule=None, condition=None, next=None, tag=None,
                method=None, match_method=None, provider=f"{n}" + long, model=f"{n}" + long,
                failure="rule_no_match", reason=long, stages=[])
        log.add("session_end", outcome="failed", message=long, error={"class": f"{n}" + long}, turns=1, methods={})
        Path(f"{folder}/{session_id(n)}.ndjson").write_bytes(log.bytes())


def hostile_folder(box):
    """However long the texts are, a report of 200 sessions stays below 2 MB, and says what is not in it."""
    hostile_logs(box.logs, 200)
    for words, status in (([box.logs], 0), (box.log_paths(), 1)):
        text = report(box, *words, status=status)
        expect(len(text.encode()) < 2_000_000, len(words), len(text.encode()))
        expect("bytes left out)" in Page(text).all())
        md = box.segue("report", *words, "--format", "md").stdout
        expect(len(md) < 2_000_000 and b"bytes left out" in md, len(words), len(md))
    one = report(box, box.log_paths()[0], status=1)
    expect(len(one.encode()) < 1_000_000, len(one.encode()))


def long_session(box, turns):
    """One that goes round, with judges that are not understood at once."""
    flow = box.file("flow.yaml", WORKFLOW + f"judge: {{max_reasks: 0}}\nmax_movements: {turns}\n")
    said = "Nothing of note happened in this line of a report.\n" * 60
    replies = [{"purpose": "execute", "text": said, "times": 0},
               {"stage": "structured_output", "text": "no idea", "times": 0},
               {"stage": "phase3_tag", "movement": "work", "text": "[WORK:1]", "times": 0},
               {"stage": "phase3_tag", "text": "[CHECK:2]", "times": 0}]
    scenario = box.file("scenario.json", json.dumps({"replies": replies}))
    known = set(box.log_paths())
    box.segue("run", flow, "--provider", "script", "--scenario", scenario, "--logs", box.logs,
              "--task", "go round")
    return (set(box.log_paths()) - known).pop()


def large(box):
    """A session of 200 turns is at most 1 MB."""
    path = long_session(box, 200)
    expect(len(of_type(records(path), "judgment")) == 200)
    text = report(box, path)
    expect(len(text) < 1_000_000, len(text))
    page = Page(text)
    expect("s1t200" in page.ids and "max_movements" in page.all())


def many_named(box):
    """200 sessions that are named one by one stay below 2 MB, and say what there was no room for."""
    for turns in (4, *sample.draw("lengths of sessions", (10, 60), 2)):
        path = long_session(box, turns)
        template = (os.path.basename(path)[:-7].encode(), Path(path).read_bytes().splitlines())
        os.mkdir(f"{box.dir}/{turns}")
        named = [f"{box.dir}/{turns}/{session_id(n)}.ndjson" for n in range(200)]
        for n, name in enumerate(named):
            Path(name).write_bytes(copied(template, session_id(n).encode()))
        text = report(box, *named)
        expect(len(text.encode()) < 2_000_000, turns, len(text.encode()))
        page = Page(text)
        expect(len(set(page.ids)) == len(page.ids), "an id stands twice")
        expect({link[1:] for link in page.links} <= set(page.ids), "a link leads nowhere")
        expect(text.count("<pattern") == 4, "hatching is defined more than once")
        rows = [r for r in page.rows if len(r) == 7 and r[0].isdigit()]
        least, most = {4: (800, 800), 10: (1400, 2000), 60: (1400, 11999)}[turns]  # spans differ with the machine
        expect(least <= len(rows) <= most, turns, len(rows))
        told = sum(int(n) for n in re.findall(r"There is no room for (\d+) more turns", page.all()))
        expect(len(rows) + told == 200 * turns, turns, len(rows), told)
        expect(turns != 4 or "There is no room for" not in page.all(), turns)


def changed(box):
    """A log that was changed is shown with a banner; what stands behind the change is marked."""
    path = session(box)
    lines = Path(path).read_bytes().split(b"\n")
    at = next(i for i, line in enumerate(lines) if b'"type":"judgment"' in line)
    lines[at] = lines[at].replace(b'"rule":1', b'"rule":2')
    bad = box.file("bad.ndjson", b"\n".join(lines))
    page = Page(report(box, bad, status=1))
    expect("not what was written" in page.all() and "not proven" in page.all())
    box.segue("report", bad, "-o", box.dir + "/out.html", err=b"segue report: 1 log is not what was written")
    view = json.loads(box.segue("show", bad, "--as", "view").stdout)
    expect(view["chain"]["state"] == "bad" and view["chain"]["records"] == at, view["chain"])
    expect(box.segue("report", box.dir + "/none.ndjson", "-o", box.dir + "/x").returncode == 2)
    expect(not os.path.exists(box.dir + "/x"))


def into_what_is_no_file(box):
    """A pipe (or a device, as /dev/null is) is written to, and not replaced; - is standard output."""
    path = session(box)
    pipe, got = box.dir + "/pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(open(pipe, "rb").read()), daemon=True)
    reader.start()
    done = box.segue("report", path, "-o", pipe)
    expect(done.returncode == 0 and stat.S_ISFIFO(os.stat(pipe).st_mode), "it replaced the pipe", done)
    reader.join(WAIT_S)
    expect(got and got[0].endswith(b"</html>\n"), got and got[0][-100:])
    done = box.segue("report", path, "-o", "-", "--format", "md")
    expect(done.returncode == 0 and done.stdout.startswith(b"# segue: session"), done)
    expect(not os.path.exists(box.dir + "/-") and not os.path.exists(box.cwd + "/-"), "a file named -")
    box.segue("report", path, "-o", box.dir, status=2, err=b"Is a directory")


def in_a_browser():
    """From file://: no request but its own, nothing on the console, nothing that axe finds, in light and dark."""
    needs(*browser.PROGRAMS)
    with Box() as box, browser.Browser() as b:
        axe = browser.axe_script(box.dir)
        for text in HOSTILE[:6]:
            session(box, task=text, said=(text + " [WORK:1]", text + " [CHECK:1]"))
        for word in (box.log_paths()[0], box.logs):
            report(box, word)
            url = f"file://{box.dir}/out.html"
            b.open(url)
            expect([r for r in b.requests() if r.startswith(("http", "file"))] == [url])
            expect(b.console() == [], b.console())
            expect(b.run("return getComputedStyle(document.body).margin") == "0px", "no style")
            for width, dark in ((1280, False), (1280, True), (360, False)):
                b.emulate(width=width, dark=dark)
                wide = b.run("return document.documentElement.scrollWidth - innerWidth")
                expect(wide <= 0, "the page scrolls sideways by", wide, "at", width)
                cut = b.run("return innerWidth > 1000 ? [...document.querySelectorAll('.wide')].filter((e) => "
                            "e.scrollWidth > e.clientWidth).map((e) => e.ariaLabel) : []")
                expect(cut == [], "tables wider than the page:", cut)
                found = b.violations(axe) if axe else []
                expect(found == [], width, dark, word, found)
            for width in (690, 980):  # A4, upright and across
                b.emulate(width=width, media="print")
                cut = b.run("const end = document.querySelector('main').getBoundingClientRect().right; return ["
                            "...document.querySelectorAll('table')].filter((e) => e.getBoundingClientRect().right > end)"
                            ".map((e) => e.parentElement.ariaLabel)")
                expect(cut == [], "the paper cuts", cut, width)
            # without its style no drawing is larger than a line, or a filled block
            tall = b.run("""for (const s of document.querySelectorAll('style')) s.remove();
                return [...document.querySelectorAll('svg:not(.drawing svg), .drawing path:not(.tip)')].filter((e) =>
                    e.tagName == 'svg' ? e.getBoundingClientRect().height > 30 : getComputedStyle(e).fill != 'none')
                  .map((e) => e.outerHTML.slice(0, 90))""")
            expect(tall == [], word, tall)
        return None if axe else "without axe: no axe.min.js (SEGUE_AXE), and npm does not bring it"


if __name__ == "__main__":
    sys.exit(main([one_session, hostile, folder, hostile_folder, large, many_named, changed, into_what_is_no_file, in_a_browser]))
