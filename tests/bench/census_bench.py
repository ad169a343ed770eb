"""Folders of many logs: what a start and a list cost beside a bare look at the folder (many), and what
an audit costs beside reading, hashing and scanning the same bytes (audit, million)."""
import json
import multiprocessing
import os
import struct
import tempfile
import time

from bench import FLOOR, elapsed_s, in_turns, memory_kib, peak_mib, ran, row
import audit_logs
from copied_logs import fill
from daemon import DaemonBox
from flow_bench import flow, movement, run_words
from support import SEGUE, Box, expect

HEAD, ROW = struct.Struct("<8sIIIIQ16Q"), struct.Struct("<QQQqqqqdQQIIIIHBBI")  # store/index.h
FLAGS, OVER, SEALED = 15, 1, 4


# ---- a start, and lists ------------------------------------------------------------------------------

def unsettled(box, count):
    """Logs of which the index says nothing, or not that they are sealed."""
    try:
        with open(box.logs + "/sessions.index", "rb") as f:
            data = f.read()
    except OSError:
        return count
    head = HEAD.unpack_from(data)
    begin, size = head[6:8]
    expect(head[3] == ROW.size, "a row has", head[3], "bytes")
    rows = [found[FLAGS] for found in ROW.iter_unpack(data[begin:begin + size])]
    return count - sum(not flags & OVER or bool(flags & SEALED) for flags in rows)


def make_index(box, count):
    """Starts a daemon until all logs stand in its index."""
    begin = time.monotonic()
    box.serve(wait=False)
    while not any("ready on" in line for line in box.said):
        expect(time.monotonic() - begin < 1800, "it does not get ready")
        time.sleep(0.01)
    row(f"{count} logs: ready without an index", time.monotonic() - begin, "s")
    while unsettled(box, count) > 0:
        expect(time.monotonic() - begin < 3600, unsettled(box, count), "logs are not in the index")
        time.sleep(10)
        if 0 < unsettled(box, count) < count:
            box.end()
            box.serve()  # looks soon after it began
    time.sleep(3)
    box.end()


def ready_s(box):
    """Seconds until a daemon is ready, and the MiB that it held at most until then."""
    took = box.serve()
    held = memory_kib(box.process.pid, "VmHWM") / 1024
    box.end()
    return took, held


def beside_bare(box, *words):
    """A list beside the bare probe, each at its best."""
    bare, ours = (min(rounds, key=lambda one: one[0]) for rounds in in_turns(7, {
        "bare": lambda: ran(FLOOR, "list", box.logs), "ours": lambda: ran(SEGUE, "ls", "--json", *words)}))
    where = "the daemon" if words[0] == "-S" else "the folder"
    row(f"  ls {' '.join(words[2:])} of {where}: {len(ours[2].splitlines())} rows", ours[0] / bare[0], "times",
        "<= 1.5")


def many(*counts):
    """How long a daemon takes to get ready and segue to list, and what they hold. The logs are copies
    of a few real ones; it is skipped where they would take more than half of the free space."""
    for count in counts or (50000, 100000):
        with DaemonBox() as box:
            if not fill(box, count):
                print(f"{count} logs: skipped, there is no room for them")
                continue
            make_index(box, count)
            bare, ready = in_turns(7, {"bare": lambda: ran(FLOOR, "list", box.logs)[0], "ready": lambda: ready_s(box)})
            row(f"{count} logs: bare readdir and stat", min(bare) * 1e3, "ms")
            row("  ready", min(ready)[0] * 1e3, "ms")
            row("  ready, times bare", min(ready)[0] / min(bare), "", "<= 1.5")
            row("  memory until then", ready[-1][1], "MiB", "<= 32")
            for words in ((), ("-s", "stopped"), ("-s", "cancelled"), ("--since", "1h"), ("--workflow", "none"),
                          ("--workflow", "flow2"), ("--method", "when"), ("--method", "ai_judge"),
                          ("--provider", "nobody"), ("-s", "complete", "--provider", "command", "--since", "12h")):
                beside_bare(box, "-l", box.logs, *words)
            row("  ls, memory", peak_mib(SEGUE, "ls", "--json", "-l", box.logs, "--workflow", "none"), "MiB", "<= 32")
            box.serve()
            time.sleep(3)  # it looks once itself
            for words in (("-s", "stopped"), ("--workflow", "none"), ("--method", "ai_judge")):
                beside_bare(box, "-S", box.socket, *words)
            row("  the daemon's memory after that", memory_kib(box.process.pid, "VmHWM") / 1024, "MiB", "<= 32")
            box.end()


# ---- audits ------------------------------------------------------------------------------------------

def run_log(box, turns, lines):
    """The path of a log of so many turns whose answers have so many lines."""
    workflow = flow(movement("a", "Go on with it and say so.", ("go on", "a"), ("over", "COMPLETE"), bare_prompt=True,
                             pass_previous_response=False), max_movements=turns)
    text = 'The quick brown fox does "things" in line\nafter line.\n' * lines + "[A:1]"
    before = set(box.begun())
    box.segue(*run_words(box, workflow, [{"text": text, "times": 0}]), timeout=600)  # to its last turn
    return (set(box.begun()) - before).pop()


def beside_openssl(what, logs, given):
    """segue verify beside openssl dgst -sha256 of the same bytes, by the clock."""
    theirs, ours = map(min, in_turns(9, {
        "openssl": lambda: elapsed_s(lambda: ran("openssl", "dgst", "-sha256", *logs)),
        "segue": lambda: elapsed_s(lambda: ran(SEGUE, "verify", given))}))
    records = sum(open(log, "rb").read().count(b"\n") for log in logs)
    size = sum(os.path.getsize(log) for log in logs)
    row(f"verify {what}, {size / 1e6:.0f} MB, {size // records} bytes a record", 100 * theirs / ours, "% of openssl",
        ">= 60")


def audit(sessions=3000, turns=3):
    with tempfile.TemporaryDirectory() as folder:
        size = sum(map(os.path.getsize, audit_logs.write(folder, sessions, turns)))
        floor, ours = map(min, in_turns(5, {"floor": lambda: ran(FLOOR, "read", folder)[1],
                                            "audit": lambda: ran(SEGUE, "audit", folder, bound=True)[1]}))
        row(f"{sessions} logs, {size / 1e6:.1f} MB: read, hash, scan", floor * 1e3, "ms")
        row("segue audit", ours * 1e3, "ms")
        row("against that", ours / floor, "times", "<= 2")
    for what, turns, lines in (("60 KB answers", 1400, 1100), ("10 KB answers", 3000, 180), ("2 KB answers", 4000, 36),
                               ("answers of a line", 5000, 1)):
        with Box() as box:
            log = run_log(box, turns, lines)
            beside_openssl(what, [log], log)
    with Box() as box:
        beside_openssl("50 logs", [run_log(box, 60, 180) for _ in range(50)], box.logs)


def make_logs(folder, begin, end, turns):
    """Logs that have all ended."""
    maker = audit_logs.Maker(begin + 1)
    for n in range(begin, end):
        log = maker.session(n, turns)
        if b'"type":"session_end"' not in log.lines[-1]:
            log.add("session_end", outcome="cancelled", turns=turns, methods={})
        with open(f"{folder}/{audit_logs.session_id(n)}.ndjson", "wb") as f:
            f.write(log.bytes())


def forget():
    """Empties the caches of files; whether it may."""
    os.sync()
    try:
        with open("/proc/sys/vm/drop_caches", "w") as f:
            f.write("1")
    except OSError:
        return False
    return True


def million(sessions=340_000, turns=3):
    """An audit of a million judgments, at first with cold caches if this is root, and the answer from
    kept counts. Making the logs (3.7 GB in TMPDIR) takes minutes."""
    with tempfile.TemporaryDirectory() as folder:
        with multiprocessing.Pool(2) as pool:
            pool.starmap(make_logs, [(folder, 0, sessions // 2, turns), (folder, sessions // 2, sessions, turns)])
        for wanted in ("cold", "warm", "warm"):
            caches = wanted if wanted == "warm" or forget() else "as they are"
            floor = ran(FLOOR, "read", folder)
            if caches == "cold":
                forget()
            ours = ran(SEGUE, "audit", folder, "--json", bound=True)
            row(f"caches {caches}: read, hash, scan", floor[1], "s")
            row(f"  segue audit, {ours[0]:.2f} s by the clock", ours[1], "s")
            row("  against that", ours[1] / floor[1], "times", "<= 2")
        row(f"{sessions} logs: judgments", json.loads(ours[2])["totals"]["judgments"])
        for what, words, goal in (("at first", [], ""), ("again", [], "<= 200"),
                                  ("by movement", ["--by", "movement", "--json"], "<= 200")):
            row(f"segue audit --kept {what}",
                ran(SEGUE, "audit", folder, "--kept", *words, bound=True)[0] * 1e3, "ms", goal)
