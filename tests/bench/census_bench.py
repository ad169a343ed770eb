"""Folders of many logs: what a start and a list cost beside a bare look at the folder (many), what an
audit costs beside reading, hashing and scanning the same bytes (audit, million), and a check of logs
beside OpenSSL (verify)."""
import json
import multiprocessing
import os
import tempfile
import time
from pathlib import Path

from bench import LOOP, PROBE, in_turns, loop_replies, peak_mib, ran, row, run_words
import audit_logs
import copied_logs
from daemon import DaemonBox
from index_test import FILTERS, rows
from support import SEGUE, Box, expect, memory_kib


def make_index(box, count):
    """Runs a daemon until its index has all logs, and has them as they stay."""
    box.serve(wait=False)
    had = [(0, 0)]
    while had[-1][0] < count or len(had) < 2 or had[-1] != had[-2]:
        expect(len(had) < 600, "the index is not made:", had[-1])
        time.sleep(5)
        had.append(rows(box))
    box.end()


def ready(box):
    """Seconds until a daemon is ready, and the MiB that it held at most until then."""
    took = box.serve()
    held = memory_kib(box.process.pid, "VmHWM") / 1024
    box.end()
    return took, held


def many(*counts):
    """How long a daemon takes to get ready and segue to list, and what they hold. The logs are copies
    of a few real ones; it is skipped where they would take more than half of the free space."""
    for count in counts or (50000, 100000):
        with DaemonBox() as box:
            if not copied_logs.fill(box, count):
                print(f"{count} logs: skipped, there is no room for them")
                continue
            make_index(box, count)
            bare, (best, held), *lists = map(min, in_turns(
                7, lambda: ran(PROBE, "list", box.logs)[0], lambda: ready(box),
                *(lambda words=words: ran(SEGUE, "ls", "--json", "-l", box.logs, *words)[0] for words in FILTERS)))
            row(f"{count} logs: ready in {best * 1e3:.1f} ms", best / bare, "times bare", "<= 1.5")
            row("  memory until then", held, "MiB", "<= 32")
            for words, took in zip(FILTERS, lists):
                row(f"  ls {' '.join(words)}", took / bare, "times bare", "<= 1.5")
            row("  ls, memory", peak_mib(SEGUE, "ls", "--json", "-l", box.logs, "--workflow", "none"), "MiB", "<= 32")


def make_logs(folder, numbers, turns):
    """Logs that have all ended."""
    maker = audit_logs.Maker(numbers[0] + 1)
    for n in numbers:
        log = maker.session(n, turns)
        if b'"type":"session_end"' not in log.lines[-1]:
            log.add("session_end", outcome="cancelled", turns=turns, methods={})
        Path(f"{folder}/{audit_logs.session_id(n)}.ndjson").write_bytes(log.bytes())


def forget():
    """Empties the caches of files, if this is root."""
    os.sync()
    if os.access("/proc/sys/vm/drop_caches", os.W_OK):
        Path("/proc/sys/vm/drop_caches").write_text("1")


def audit(sessions=3000, turns=3):
    """Processor time of an audit in 64 MiB of data, at first with cold caches if this is root, and the
    clock's time of the answer from kept counts."""
    with tempfile.TemporaryDirectory() as folder:
        with multiprocessing.Pool(2) as pool:
            pool.starmap(make_logs, [(folder, range(n, sessions, 2), turns) for n in (0, 1)])
        for caches in ("cold", "warm", "warm"):
            clear = forget if caches == "cold" else os.sync
            clear()
            floor = ran(PROBE, "read", folder)[1]
            clear()
            _, used, said = ran(SEGUE, "audit", folder, "--json", bound=True)
            row(f"{sessions} logs, caches {caches}: read, hash, scan", floor, "s")
            row("  segue audit, against that", used / floor, "times", "<= 2")
        row("  judgments", json.loads(said)["totals"]["judgments"])
        for what, goal in (("at first", ""), ("again", "<= 200")):
            row("segue audit --kept " + what, ran(SEGUE, "audit", folder, "--kept", bound=True)[0] * 1e3, "ms", goal)
        for words in ("movement,method", "stage,reason", "workflow,day --worker codex", "day,model --since 2026-11-20"):
            row("  --by " + words, ran(SEGUE, "audit", folder, "--kept", "--by", *words.split())[0] * 1e3, "ms", "<= 150")
        index, logs = os.path.getsize(folder + "/index.sqlite"), sum(e.stat().st_size for e in os.scandir(folder))
        row("  size of the index", 100 * index / (logs - index), "% of logs", "<= 15")


def million(sessions=340_000):
    """The same of a million judgments. Making the logs (3.7 GB in TMPDIR) takes minutes."""
    audit(sessions)


def verify():
    """segue verify beside openssl dgst -sha256 of the same bytes, by the clock, with long and short answers."""
    for sessions, turns, lines in ((1, 1400, 1100), (1, 3000, 180), (1, 4000, 36), (1, 5000, 1), (50, 60, 180), (6000, 3, 36)):
        text = 'The quick brown fox does "things" in line\nafter line.\n' * lines
        with Box() as box:
            for _ in range(min(sessions, 50)):
                box.segue(*run_words(box, LOOP, loop_replies(turns, text)), timeout=600)
            copied_logs.add(box.log_paths()[-1], range(50, sessions))
            logs = box.log_paths()
            theirs, ours = map(min, in_turns(9, lambda: ran("openssl", "dgst", "-sha256", *logs)[0],
                                             lambda: ran(SEGUE, "verify", *(logs if sessions == 1 else [box.logs]))[0]))
            size = sum(map(os.path.getsize, logs))
            row(f"verify {sessions} log(s), {size / 1e6:.0f} MB, answers of {len(text)} bytes", 100 * theirs / ours,
                "% of openssl")
