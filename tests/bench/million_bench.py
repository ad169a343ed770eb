#!/usr/bin/env python3
"""An audit of a million judgments: memory, processor time, and the answer from kept counts.

usage: million_bench.py BUILD_DIR [SESSIONS]   (default 340000 sessions of 3 turns: 3.7 GB in TMPDIR)

Only by name (./dev bench million): making the logs takes minutes. Compares the processor time of
`segue audit FOLDER` with audit_floor, which reads, hashes and scans the same bytes, the two taking
turns, at first with cold caches if this is root. Then `segue audit --kept`, by the clock, of logs
that have all ended. Each program may have 64 MiB of data. Goals: 2 times, 200 ms, 64 MiB.
"""
import json
import multiprocessing
import os
import subprocess
import tempfile
import time

from bench import argument, bounded, children_cpu_s
from audit_logs import Maker, session_id
from support import BUILD, SEGUE

TURNS = 3


def make(folder, begin, end):
    maker = Maker(begin + 1)
    for n in range(begin, end):
        log = maker.session(n, TURNS)
        if b'"type":"session_end"' not in log.lines[-1]:
            log.add("session_end", outcome="cancelled", turns=TURNS, methods={})
        with open(f"{folder}/{session_id(n)}.ndjson", "wb") as f:
            f.write(log.bytes())


def run(*words):
    """Seconds by the clock, seconds of the processor, and what it printed."""
    before, begin = children_cpu_s(), time.perf_counter()
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=bounded)
    return time.perf_counter() - begin, children_cpu_s() - before, done.stdout


def forget():
    os.sync()
    try:
        with open("/proc/sys/vm/drop_caches", "w") as f:
            f.write("1")
    except OSError:
        return "as they are"
    return "cold"


def main():
    sessions = argument(1, 340_000)
    with tempfile.TemporaryDirectory() as folder:
        with multiprocessing.Pool(2) as pool:
            pool.starmap(make, [(folder, 0, sessions // 2), (folder, sessions // 2, sessions)])
        for caches in ("cold", "warm", "warm"):
            caches = forget() if caches == "cold" else caches
            floor = run(BUILD + "/tests/audit_floor", folder)
            if caches == "cold":
                forget()
            audit = run(SEGUE, "audit", folder, "--json")
            print(f"caches {caches}: read, hash, scan {floor[1]:.2f} s of processor ({floor[0]:.2f} s), "
                  f"segue audit {audit[1]:.2f} s ({audit[0]:.2f} s): {audit[1] / floor[1]:.2f} times (goal 2)", flush=True)
        totals = json.loads(audit[2])["totals"]
        print(f"{sessions} logs, {totals['judgments']} judgments, 64 MiB of data at most")
        first = run(SEGUE, "audit", folder, "--kept")
        again = [run(SEGUE, "audit", folder, "--kept", *by) for by in ([], [], ["--by", "movement", "--json"])]
        print(f"segue audit --kept: {first[0]:.1f} s at first, then "
              + ", ".join(f"{1000 * one[0]:.0f} ms" for one in again) + " (goal 200)")


main()
