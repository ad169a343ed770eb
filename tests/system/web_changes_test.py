#!/usr/bin/env python3
"""The lines that a session changed: by the API and in the window, with a daemon and without."""
import html
import json
import os
import re
import subprocess
import sys

from support import WAIT_S, Box, expect, main, needs, records
from web_gate_test import WebBox
from web_odd_test import chained
from web_pages_test import alone, browser, enter, text

WORKFLOW = """name: changes
movements:
  - name: work
    command: [sh, -c, "printf '<b>new</b>\\\\n' >> one; seq 30000 > two; echo > unknown"]
    rules: [{condition: when(true), next: ship}]
  - name: ship
    command: [touch, shipped]
    approve: true
    rules: [{condition: when(true), next: COMPLETE}]
"""


def repository(box):
    for name in ("one", "two", "same"):
        with open(f"{box.cwd}/{name}", "w", encoding="utf-8") as f:
            f.write("old\n")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=box.cwd, env=box.env, check=True)
    # Programs of the repository's, which must not run.
    for key in ("diff.external", "core.fsmonitor", "core.pager"):
        subprocess.run(["git", "config", key, "touch ran; false"], cwd=box.cwd, env=box.env, check=True)


def by_the_api(box: WebBox):
    repository(box)
    box.serve()
    sid = box.submit(box.file("changes.yaml", WORKFLOW))
    box.wait_status(sid, "needs_input")
    for _ in range(20):  # asked often, it leaves nothing open
        told = box.get(f"/v1/sessions/{sid}/changes")
    expect("\n+<b>new</b>\n" in told["diff"] and told["cut"] and "unknown" not in told["diff"], told)
    expect("same" not in told["diff"] and len(told["diff"]) <= 65536 and told["diff"].endswith("\n"), len(told["diff"]))
    expect(not os.path.exists(box.cwd + "/ran"), "a program of the repository's ran")
    status, value = box.ask("GET", f"/v1/sessions/{'0' * 36}/changes")
    expect(status == 404 and value["detail"], value)
    window = box.window()
    inbox = window.ask("GET", "inbox")[2]
    expect(f"/s/{sid}/changes".encode() in inbox, inbox)
    expect(b"would run: touch shipped" in re.sub(b"<[^>]*>", b"", inbox), inbox)
    status, _, page = window.ask("GET", f"s/{sid}/changes")
    expect(status == 200 and b"<ins>+&#60;b&#62;new&#60;/b&#62;</ins>" in page and b"Shown: 64.0 KiB of " in page, page[:3000])
    expect(b'<a href="?all=1">Show all (' in page, page[-3000:])
    whole = window.ask("GET", f"s/{sid}/changes?all=1")[2]
    expect(len(whole) > len(page) and b"+30000</ins>" in whole and b"Shown: " not in whole, whole[-3000:])
    for wrong in ("0" * 36, "..", sid[:-1]):
        expect(window.ask("GET", f"s/{wrong}/changes")[0] == 404, wrong)
    os.rename(box.cwd, box.cwd + "-gone")
    told = box.get(f"/v1/sessions/{sid}/changes")
    expect(told["diff"] == "" and told["error"], told)
    status, _, page = window.ask("GET", f"s/{sid}/changes")
    expect(status == 200 and told["error"].encode() in page.replace(b"&#39;", b"'"), told, page)
    os.rename(box.cwd + "-gone", box.cwd)
    box.check_all()
    box.end()


def in_pieces(box: WebBox):
    """Of changes of more than 1 MiB each line stands on one of the pages, which lead to each other."""
    repository(box)
    box.serve()
    sid = box.submit(box.file("changes.yaml", WORKFLOW.replace("30000", "400000")))
    box.wait_status(sid, "needs_input")
    window, query, lines, pages = box.window(), "?all=1", [], 0
    while query:
        status, _, page = window.ask("GET", f"s/{sid}/changes{query}")
        expect(status == 200, query, status)
        lines += re.findall(r"<ins>\+(\d+)</ins>", page.decode())
        on = re.search(r'<a href="(\?all=1&amp;from=\d+)">The next ones</a>', page.decode())
        query, pages = html.unescape(on[1]) if on else "", pages + 1
    expect(lines == [str(n) for n in range(1, 400001)] and pages > 2, len(lines), pages)
    expect(b'<a href="?all=1">The first ones</a>' in page, page[-2000:])
    for odd in ("99999999", "-1", "x", "5"):
        expect(window.ask("GET", f"s/{sid}/changes?all=1&from={odd}")[0] == 200, odd)
    box.end()


def a_log_steers_no_option_of_git(box: WebBox):
    """The commit that a worktree began from stands in the log, which may come from anywhere."""
    repository(box)
    flow = box.file("changes.yaml", WORKFLOW)
    box.segue("run", flow, "--cwd", box.cwd, "--logs", box.logs, "--workspace", "worktree")
    path = box.log_paths()[0]
    sid = os.path.basename(path).split(".")[0]

    def steer(record):
        if record["type"] == "workspace" and "base" in record.get("data", {}):
            record["data"]["base"] = "--output=" + box.dir + "/written"
    chained(records(path), path + ".new", steer)
    os.replace(path + ".new", path)
    expect("--output" in open(path, encoding="utf-8").read(), "nothing was steered")
    box.serve()
    told = box.get(f"/v1/sessions/{sid}/changes")
    expect(told["diff"] == "" and not os.path.exists(box.dir + "/written"), told)
    box.segue("inbox", "--diff", "--logs", box.logs)
    box.segue("diff", path)
    expect(not os.path.exists(box.dir + "/written"), "a log had git write a file")
    box.end()


def bytes_that_are_no_text(box: WebBox):
    repository(box)
    box.serve()
    sid = box.submit(box.file("changes.yaml", WORKFLOW.replace("seq 30000 > two", "printf 'a\\\\377\\\\033[31mb\\\\n' > two")))
    box.wait_status(sid, "needs_input")
    told = box.get(f"/v1/sessions/{sid}/changes")
    expect("+a" in told["diff"] and "<b>new</b>" in told["diff"], told)
    page = box.window().ask("GET", f"s/{sid}/changes")[2]
    expect(b"\x1b" not in page and page.decode() and b"<ins>+a" in page, page[-900:])
    box.end()


def of_one_that_changed_nothing(box: WebBox):
    box.serve()
    sid = box.submit(box.file("nothing.yaml", "name: nothing\nmovements:\n  - name: work\n    command: [touch, one]\n"
                               "    rules: [{condition: when(true), next: COMPLETE}]\n"))
    box.wait_status(sid, "complete")
    expect(box.get(f"/v1/sessions/{sid}/changes") == {"diff": "", "cut": False})
    page = box.window().ask("GET", f"s/{sid}/changes")[2]
    expect(b"git shows no changed lines" in page, page)
    box.end()


def without_a_daemon():
    with Box() as box:
        repository(box)
        box.segue("run", box.file("changes.yaml", WORKFLOW), "--cwd", box.cwd, "--logs", box.logs)
        sid = os.path.basename(box.log_paths()[0]).split(".")[0]
        shown = box.segue("diff", sid, "--logs", box.logs)
        expect(shown.returncode == 0 and b"\n+<b>new</b>\n" in shown.stdout and b"b/unknown" in shown.stdout, shown.stdout[:500])
        told = json.loads(box.segue("diff", sid, "--json", "--logs", box.logs).stdout)
        expect([f["path"] for f in told["files"]] == ["one", "two", "unknown"], told["files"])
        first = subprocess.run(["git", "rev-parse", "HEAD"], cwd=box.cwd, capture_output=True, check=True).stdout.decode()
        expect(told["from"] == first.strip(), told["from"])
        needs(*browser.PROGRAMS)
        process, url = alone(box)
        with browser.Browser() as b:
            root = enter(b, url)
            b.open(root + "s/" + sid + "/changes")
            expect("+<b>new</b>" in text(b) and "Shown: 64.0 KiB of" in text(b), text(b)[-2000:])
            expect(b.run("return document.querySelectorAll('ins').length") > 1)
        process.terminate()
        expect(process.wait(WAIT_S) == 0, process.stderr.read())
    return None


if __name__ == "__main__":
    sys.exit(main([by_the_api, in_pieces, a_log_steers_no_option_of_git, bytes_that_are_no_text, of_one_that_changed_nothing, without_a_daemon]))
