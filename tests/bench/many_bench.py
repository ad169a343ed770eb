#!/usr/bin/env python3
"""A folder with very many finished logs: how long a daemon takes to get ready and segue to list,
beside a bare readdir and stat of the same folder, and what they hold.

usage: many_bench.py BUILD_DIR [LOGS...]    (default 50000 100000)
The logs are copies of a few real ones under other ids, with their chains made anew; they are removed
afterwards. It is skipped where they would take more than half of the free space.
"""
import hashlib
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import time

from bench import in_turns, memory_kib, row
from daemon import DaemonBox
from support import BUILD, SEGUE, Failed, expect

PROBE = BUILD + "/helpers/folder_probe"
RUNS = 7

WORKFLOW = """
name: {name}
provider: script
movements:
  - name: work
    instruction: Do {{task}}.
    rules:
      - {{condition: done, next: COMPLETE}}
      - {{condition: not done, next: ABORT}}
"""
TIDY = """
name: tidy
movements:
  - name: check
    command: [echo, done]
    rules:
      - {condition: when(exit == 0), next: COMPLETE}
"""


def templates(box):
    """Real logs, by how they ended: complete, aborted, stopped, of a command."""
    for tag, status in ((1, 0), (2, 1)):
        reply = json.dumps({"replies": [{"text": f"I did.\n\n[WORK:{tag}]"}]})
        done = box.segue("run", box.file("w.yaml", WORKFLOW.format(name=f"flow{tag}")), "-s",
                         box.file("s.yaml", reply), "-t", "the work", "-l", box.dir + "/made")
        expect((done.returncode != 0) == bool(status), done.stdout, done.stderr)
    done = box.segue("run", box.file("t.yaml", TIDY), "-t", "x", "-l", box.dir + "/made")
    expect(done.returncode == 0, done.stderr)
    none = box.file("none.yaml", "replies: []\n")
    box.segue("run", box.file("w.yaml", WORKFLOW.format(name="stops")), "-s", none, "-t", "x",
              "-l", box.dir + "/made")
    found = []
    for name in sorted(os.listdir(box.dir + "/made")):
        if name.endswith(".ndjson"):
            with open(f"{box.dir}/made/{name}", "rb") as f:
                found.append((name[:-7].encode(), f.read().splitlines()))
    expect(len(found) == 4, found)
    return found


def copied(template, sid):
    """The log under another id; every line's hash is made anew."""
    old, lines = template
    out, last = [], b"0" * 64
    for line in lines:
        body = line[:line.rindex(b',"hash":"')].replace(old, sid)
        last = hashlib.sha256(last + body).hexdigest().encode()
        out.append(body + b',"hash":"' + last + b'"}\n')
    return b"".join(out)


def fill(box, count):
    found = templates(box)
    size = sum(sum(map(len, lines)) for _, lines in found) // len(found) + 4096
    free = shutil.disk_usage(box.dir).free
    if count * size > free / 2:
        return False
    os.mkdir(box.logs)
    chosen = random.Random(7)
    begin = int(time.time() * 1000) - 3 * 3600 * 1000
    for i in range(count):
        at = begin + i
        sid = "%08x-%04x-7%03x-8%03x-%012x" % (at >> 16, at & 0xffff, chosen.randrange(4096),
                                               chosen.randrange(4096), chosen.randrange(1 << 48))
        template = found[chosen.choices(range(4), (80, 10, 8, 2))[0]]
        with open(f"{box.logs}/{sid}.ndjson", "wb") as f:
            f.write(copied(template, sid.encode()))
    return True


def once_ms(words):
    begin = time.perf_counter()
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - begin) * 1e3, done.stdout


def beside(box, words):
    """How many times as long as the bare probe it takes, each at its best of some runs in turn, and
    how many lines it prints."""
    bare, ours = map(min, in_turns(RUNS, {"bare": lambda: once_ms([PROBE, box.logs]),
                                          "ours": lambda: once_ms(words)}).values())
    return ours[0] / bare[0], len(ours[1].splitlines())


def peak_mib(pid):
    """The most that it ever held, files that it has mapped included."""
    return memory_kib(pid, "VmHWM") / 1024


def held_mib(words):
    """The most that a program held; it is asked until it ends."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    most = 0
    while process.poll() is None:
        try:
            most = max(most, peak_mib(process.pid))
        except (OSError, Failed):
            break
    process.wait()
    return most


HEAD, ROW = struct.Struct("<8sIIIIQ16Q"), struct.Struct("<QQQqqqqdQQIIIIHBBI")  # store/index.h
FLAGS, OVER, SEALED = 15, 1, 4


def unsettled(box, count):
    """Logs of which the index says nothing, or not that they are sealed."""
    try:
        with open(box.logs + "/sessions.index", "rb") as f:
            data = f.read()
    except OSError:
        return count
    head = HEAD.unpack_from(data)
    at, size = head[6:8]
    expect(head[3] == ROW.size, "a row has", head[3], "bytes")
    rows = [row[FLAGS] for row in ROW.iter_unpack(data[at:at + size])]
    return count - sum(not flags & OVER or bool(flags & SEALED) for flags in rows)


def measure(count):
    with DaemonBox() as box:
        if not fill(box, count):
            print(f"{count} logs: skipped, there is no room for them")
            return
        begin = time.monotonic()
        box.serve(wait=False)
        while not any("ready on" in line for line in box.said):
            expect(time.monotonic() - begin < 1800, "it does not get ready")
            time.sleep(0.01)
        row(f"{count} logs: ready without an index", time.monotonic() - begin, "s")
        until = time.monotonic() + 1800
        while unsettled(box, count) > 0:
            expect(time.monotonic() < until, unsettled(box, count), "logs are not in the index")
            time.sleep(10)
            if 0 < unsettled(box, count) < count:
                box.end()
                box.serve()  # looks soon after it began
        time.sleep(3)
        box.end()
        ready, bare = [], []
        for _ in range(RUNS):
            bare.append(once_ms([PROBE, box.logs])[0])
            ready.append(box.serve() * 1e3)
            mib = peak_mib(box.process.pid)
            box.end()
        row(f"{count} logs: bare readdir and stat", min(bare), "ms")
        row("  ready", min(ready), "ms")
        row("  ready, times bare", min(ready) / min(bare), "", "1.5")
        row("  memory until then", mib, "MiB", "32")
        for words in ((), ("-s", "stopped"), ("-s", "cancelled"), ("--since", "1h"),
                      ("--workflow", "none"), ("--workflow", "flow2"), ("--method", "when"),
                      ("--method", "ai_judge"), ("--provider", "nobody"),
                      ("-s", "complete", "--provider", "command", "--since", "12h")):
            times, lines = beside(box, [SEGUE, "ls", "--json", "-l", box.logs, *words])
            row(f"  ls {' '.join(words)}: {lines} rows", times, "times", "1.5")
        row("  ls, memory", held_mib([SEGUE, "ls", "--json", "-l", box.logs, "--workflow", "none"]),
            "MiB", "32")
        box.serve()
        time.sleep(3)  # it looks once itself
        for words in (("-s", "stopped"), ("--workflow", "none"), ("--method", "ai_judge")):
            times, lines = beside(box, [SEGUE, "ls", "--json", "-S", box.socket, *words])
            row(f"  ls {' '.join(words)}, of the daemon: {lines} rows", times, "times", "1.5")
        row("  the daemon's memory after that", peak_mib(box.process.pid), "MiB", "32")
        box.end()


def main():
    for count in [int(n) for n in sys.argv[2:]] or [50000, 100000]:
        measure(count)


if __name__ == "__main__":
    main()
