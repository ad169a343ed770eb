"""Folders of many logs: what a start and a list cost beside a bare look at the folder (many), and what
an audit costs beside reading, hashing and scanning the same bytes (audit, million)."""
import json
import multiprocessing
import os
import tempfile
import time

from bench import (LOOP, PROBE, elapsed_s, in_turns, loop_replies, memory_kib, peak_mib, ran, row, run_words)
import audit_logs
from copied_logs import fill
from daemon import DaemonBox
from support import SEGUE, Box, expect

# Of lists; the daemon is asked for the first three too.
FILTERS = (("-s", "stopped"), ("--workflow", "none"), ("--method", "ai_judge"), ("-s", "cancelled"), ("--since", "1h"),
           ("--workflow", "flow2"), ("--method", "when"), ("--provider", "nobody"), (),
           ("-s", "complete", "--provider", "command", "--since", "12h"))


# ---- a start, and lists ------------------------------------------------------------------------------

def make_index(box, count):
    """Starts a daemon until its index of the logs stays as it is."""
    begin, seen, now = time.monotonic(), None, ()
    box.serve(wait=False)
    while not any("ready on" in line for line in box.said):
        expect(time.monotonic() - begin < 1800, "it does not get ready")
        time.sleep(0.01)
    row(f"{count} logs: ready without an index", time.monotonic() - begin, "s")
    while now != seen or not now or now.st_size < count * 80:
        expect(time.monotonic() - begin < 3600, "the index is not made:", now)
        time.sleep(31)  # the daemon rests for 30 s
        seen, index = now, box.logs + "/sessions.index"
        now = os.stat(index) if os.path.exists(index) else ()
    box.end()


def ready_s(box):
    """Seconds until a daemon is ready, and the MiB that it held at most until then."""
    took = box.serve()
    held = memory_kib(box.process.pid, "VmHWM") / 1024
    box.end()
    return took, held


def beside_bare(box, filters, *where):
    """Lists beside the bare probe, each at its best."""
    for words in filters:
        bare, ours = (min(rounds, key=lambda one: one[0]) for rounds in in_turns(7, {
            "bare": lambda: ran(PROBE, "list", box.logs),
            "ours": lambda: ran(SEGUE, "ls", "--json", *where, *words)}))
        row(f"  ls {' '.join((where[0], *words))}: {len(ours[2].splitlines())} rows", ours[0] / bare[0], "times",
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
            bare, ready = in_turns(7, {"bare": lambda: ran(PROBE, "list", box.logs)[0], "ready": lambda: ready_s(box)})
            best, held = min(ready)
            row(f"{count} logs: ready in {best * 1e3:.1f} ms", best / min(bare), "times bare", "<= 1.5")
            row("  memory until then", held, "MiB", "<= 32")
            beside_bare(box, FILTERS, "-l", box.logs)
            row("  ls, memory", peak_mib(SEGUE, "ls", "--json", "-l", box.logs, "--workflow", "none"), "MiB", "<= 32")
            box.serve()
            time.sleep(3)  # it looks once itself
            beside_bare(box, FILTERS[:3], "-S", box.socket)
            row("  the daemon's memory after that", memory_kib(box.process.pid, "VmHWM") / 1024, "MiB", "<= 32")
            box.end()


# ---- audits ------------------------------------------------------------------------------------------

def beside_openssl(turns, lines, sessions=1):
    """segue verify beside openssl dgst -sha256 of the same bytes, by the clock; answers of so many lines."""
    text = 'The quick brown fox does "things" in line\nafter line.\n' * lines
    with Box() as box:
        for _ in range(sessions):
            box.segue(*run_words(box, LOOP, loop_replies(turns, text)), timeout=600)
        logs = box.log_paths()
        theirs, ours = map(min, in_turns(9, {
            "openssl": lambda: elapsed_s(lambda: ran("openssl", "dgst", "-sha256", *logs)),
            "segue": lambda: elapsed_s(lambda: ran(SEGUE, "verify", *(logs if sessions == 1 else [box.logs])))}))
        size = sum(os.path.getsize(log) for log in logs)
        each = size // sum(open(log, "rb").read().count(b"\n") for log in logs)
    row(f"verify {sessions} log(s), {size / 1e6:.0f} MB, {each} bytes a record", 100 * theirs / ours, "% of openssl",
        ">= 60")


def beside_reading(folder, *words, before=lambda: None):
    """Seconds of the processor that reading, hashing and scanning takes, and the run of an audit."""
    before()
    floor = ran(PROBE, "read", folder)[1]
    before()
    return floor, ran(SEGUE, "audit", folder, *words, bound=True)


def audit(sessions=3000, turns=3):
    with tempfile.TemporaryDirectory() as folder:
        size = sum(map(os.path.getsize, audit_logs.write(folder, sessions, turns)))
        rounds = [beside_reading(folder) for _ in range(5)]
        floor, ours = min(floor for floor, _ in rounds), min(ours[1] for _, ours in rounds)
        row(f"{sessions} logs, {size / 1e6:.1f} MB: read, hash, scan", floor * 1e3, "ms")
        row("  segue audit against that", ours / floor, "times", "<= 2")
    for turns, lines in ((1400, 1100), (3000, 180), (4000, 36), (5000, 1)):
        beside_openssl(turns, lines)
    beside_openssl(60, 180, sessions=50)


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
    """Empties the caches of files, if this is root."""
    os.sync()
    if os.access("/proc/sys/vm/drop_caches", os.W_OK):
        with open("/proc/sys/vm/drop_caches", "w") as f:
            f.write("1")


def million(sessions=340_000, turns=3):
    """An audit of a million judgments, at first with cold caches if this is root, and the answer from
    kept counts. Making the logs (3.7 GB in TMPDIR) takes minutes."""
    with tempfile.TemporaryDirectory() as folder:
        with multiprocessing.Pool(2) as pool:
            pool.starmap(make_logs, [(folder, 0, sessions // 2, turns), (folder, sessions // 2, sessions, turns)])
        for caches in ("cold", "warm", "warm"):
            floor, ours = beside_reading(folder, "--json", before=forget if caches == "cold" else os.sync)
            row(f"caches {caches}: read, hash, scan", floor, "s")
            row(f"  segue audit, {ours[0]:.2f} s by the clock, against that", ours[1] / floor, "times", "<= 2")
        row(f"{sessions} logs: judgments", json.loads(ours[2])["totals"]["judgments"])
        for what, words, goal in (("at first", [], ""), ("again", [], "<= 200"),
                                  ("by movement", ["--by", "movement", "--json"], "<= 200")):
            row(f"segue audit --kept {what}",
                ran(SEGUE, "audit", folder, "--kept", *words, bound=True)[0] * 1e3, "ms", goal)
