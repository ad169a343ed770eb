#!/usr/bin/env python3
"""What the window costs: bytes of pages, time and processor time of a session of 50 MB, memory of pages.

usage: window_bench.py BUILD_DIR
"""
import os
import time
from statistics import median

import bench
import audit_logs
from support import expect
from web_gate_test import FETCH, WebBox

TURNS, TEXT_BYTES = 1100, 46000
WORKFLOW = {"name": "big", "provider": "script", "max_movements": 1000000, "movements": [
    {"name": "work", "instruction": "do it", "rules": [{"condition": "done", "next": "COMPLETE"},
                                                       {"condition": "go on", "next": "work"}]}]}


def big_log(path, sid):
    """A log of 50 MB: 1,100 turns of one movement, 46 KB of answer each."""
    log = audit_logs.Log(1_760_000_000_000)
    log.add("session_start", session=sid, versions={"segue": "0.1.0"}, task="a long work", workflow_sha256="0" * 64,
            workflow=WORKFLOW, config={"cwd": "/", "provider": "script"})
    text = ("one word after another " * 2200)[:TEXT_BYTES]
    for n in range(1, TURNS + 1):
        log.add("turn_start", turn=n, movement="work", iteration=n, movement_iteration=n)
        log.add("call_start", turn=n, call=n, attempt=1, purpose="execute", provider="script", token="1", prompt=["do it"],
                prompt_sha256="0" * 64)
        log.add("call_end", turn=n, call=n, attempt=1, text=text + " %d\n[WORK:2]" % n, duration_ms=5)
        log.add("stage", turn=n, stage="phase1_tag", outcome="matched", calls=[], rule=2, tag="[WORK:2]")
        log.add("judgment", turn=n, movement="work", rule=2, condition="go on", next="work", method="phase1_tag",
                match_method="phase1_tag", stages=[{"stage": "phase1_tag", "outcome": "matched", "calls": [], "rule": 2,
                                                    "tag": "[WORK:2]"}])
        log.add("turn_end", turn=n, outcome="judged", next="work")
    with open(path, "wb") as f:
        f.write(log.bytes())
    return os.path.getsize(path)


def cpu_of(box, what, times):
    """Processor time of the daemon for one, in ms."""
    begin = bench.cpu_ms(box.process.pid)
    for _ in range(times):
        what()
    return (bench.cpu_ms(box.process.pid) - begin) / times


def main():
    with WebBox() as box:
        os.makedirs(box.logs, exist_ok=True)
        sid = audit_logs.session_id(70000)
        size = big_log(f"{box.logs}/{sid}.ndjson", sid)
        print(f"a log of {size / 1e6:.1f} MB")
        box.segue("show", f"{box.logs}/{sid}.ndjson")  # its bytes are in memory for both
        begin = bench.children_cpu_s()
        box.segue("show", f"{box.logs}/{sid}.ndjson")
        show = bench.children_cpu_s() - begin
        box.serve()
        window = box.window()
        ask = lambda path: window.ask("GET", path, {**FETCH})  # noqa: E731
        expect(ask("")[0] == 200)
        before = box.rss_kib()
        first = cpu_of(box, lambda: ask(f"s/{sid}/"), 1)
        print(f"its first page {first:.0f} ms of processor time: {first / 1000 / show:.2f} times segue show "
              f"({1000 * show:.0f} ms)")
        print(f"memory of the daemon after it +{box.rss_kib() - before} KiB")
        for name, path in (("session, its end", f"s/{sid}/"), ("its begin", f"s/{sid}/?from=1"),
                           ("its middle", f"s/{sid}/?from=500"), ("a judgment", f"s/{sid}/550"),
                           ("the last judgment", f"s/{sid}/{TURNS}"), ("records, middle", f"s/{sid}/records?from=3000")):
            status, _, body = ask(path)
            ms = cpu_of(box, lambda path=path: ask(path), 20)
            print(f"{name:20} {status} {ms:6.1f} ms of processor time, {len(body) / 1024:6.1f} KiB")
        ms = cpu_of(box, lambda: ask(f"s/{sid}/find?q=nowhere"), 2)
        print(f"{'find, whole':20} {ms:10.1f} ms of processor time")
        loads = [len(ask(name)[2]) for name in ("style.css", "page.mjs", "idiomorph.js")]
        print(f"loaded beside a page: {sum(loads) / 1024:.1f} KiB ({', '.join(str(n) for n in loads)})")
        box.end()
    with WebBox() as box:
        os.makedirs(box.logs, exist_ok=True)
        audit_logs.write(box.logs, 10000, 1, seed=3)
        box.serve()
        window = box.window()
        ask = lambda path: window.ask("GET", path, {**FETCH})  # noqa: E731
        box.until(lambda: ask("?q=since:1d")[0] == 200, "no page")
        time.sleep(3)
        for name, path in (("10,000 sessions", ""), ("filtered", "?q=status:complete"), ("method", "?q=method:ai_judge"),
                           ("sorted", "?sort=tokens")):
            status, _, body = ask(path)
            took = median(bench.elapsed_s(lambda path=path: ask(path)) for _ in range(5))
            ms = cpu_of(box, lambda path=path: ask(path), 10)
            print(f"{name:20} {status} {ms:6.1f} ms of processor time, {1000 * took:6.1f} ms, "
                  f"{len(body) / 1024:6.1f} KiB")
        box.end()


if __name__ == "__main__":
    main()
