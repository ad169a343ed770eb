#!/usr/bin/env python3
"""segue audit --kept: what was counted before and what is new add up to what reading all of it gives,
while logs come, go on, end and go; and it is no slower for logs that ended."""
import json
import os
import shutil
import sys

from audit_logs import write
from support import Box, expect, main, need_build

need_build()
KEYS = [None, "method", "match_method", "movement", "workflow", "provider", "model", "worker", "worker_model",
        "outcome", "rule", "day", "stage", "reason", "to"]


def normal(value):
    """Without what hangs on the order of reading: examples, and the order of equals."""
    if isinstance(value, dict):
        return {k: normal(v) for k, v in value.items() if k != "example"}
    if isinstance(value, list):
        return sorted(map(normal, value), key=lambda v: json.dumps(v, sort_keys=True))
    return round(value, 9) if isinstance(value, float) else value


def audit(box, folder, key, *words):
    done = box.segue("audit", folder, "--json", *(["--by", key] if key else []), *words)
    expect(done.returncode == 0, done.stderr)
    return normal(json.loads(done.stdout)), done.stderr.decode()


def same(box, folder, known=None):
    for key in KEYS:
        kept, told = audit(box, folder, key, "--kept")
        expect(known is None or told.startswith(f"{known} logs counted from earlier results"), key, told)
        known = None
        whole, _ = audit(box, folder, key)
        expect(kept == whole, key, [k for k in whole["totals"] if whole["totals"][k] != kept["totals"].get(k)])


def bed(box, n=120):
    """Some logs in a folder, the others beside it."""
    whole, part = box.dir + "/all", box.dir + "/some"
    write(whole, n, 6, seed=9)
    os.mkdir(part)
    names = sorted(name for name in os.listdir(whole) if name.endswith(".ndjson"))
    for name in names[:n // 2]:
        shutil.copy(f"{whole}/{name}", part)
    return whole, part, names


def grows():
    with Box() as box:
        whole, part, names = bed(box)
        before = {name: open(f"{part}/{name}", "rb").read() for name in os.listdir(part)}
        same(box, part, 0)
        _, told = audit(box, part, None, "--kept")
        known = int(told.split()[0])
        ended = [n for n in os.listdir(part) if n.endswith(".ndjson")
                 and b'"type":"session_end"' in open(f"{part}/{n}", "rb").read().splitlines()[-1]]
        expect(known == len(ended) > 20, known, len(ended))
        for name in names[60:90]:
            shutil.copy(f"{whole}/{name}", part)
        same(box, part, known)
        for name in names[90:]:  # as far as they came, then whole
            text = open(f"{whole}/{name}", "rb").read().splitlines(keepends=True)
            with open(f"{part}/{name}", "wb") as f:
                f.write(b"".join(text[:-2]))
        same(box, part)
        for name in names[90:]:
            shutil.copy(f"{whole}/{name}", part)
        same(box, part)
        expect(all(open(f"{part}/{n}", "rb").read() == text for n, text in before.items()), "a log was changed")


def gone_and_damaged():
    with Box() as box:
        _, part, names = bed(box)
        same(box, part, 0)
        for name in names[5:15]:
            os.remove(f"{part}/{name}")
        same(box, part, 0)
        path = part + "/audit/census"
        good = open(path, "rb").read()
        for bad in (good[:len(good) // 2], good[:-9] + b"x" * 9, b"", b"\0" * len(good), good.replace(b"segue census ", b"segue census 9")):
            with open(path, "wb") as f:
                f.write(bad)
            same(box, part, 0)
        os.remove(path)
        os.mkdir(path)  # it cannot be written
        same(box, part, 0)


def bad_logs():
    """What is torn, tampered with or foreign is read each time and told each time."""
    with Box() as box:
        _, part, names = bed(box)
        with open(f"{part}/{names[0]}", "r+b") as f:
            text = f.read()
            f.seek(0)
            f.write(text.replace(b'"turn":1', b'"turn":2', 1))
        with open(f"{part}/{names[1]}", "ab") as f:
            f.write(b'{"v":1,"se')
        with open(f"{part}/{names[2]}", "wb") as f:
            f.write(b"hello\n")
        same(box, part)
        same(box, part)
        _, part2, names = bed_again(box)
        same(box, part2, 0)


def bed_again(box):
    shutil.rmtree(box.dir + "/all")
    shutil.rmtree(box.dir + "/some")
    return bed(box, 20)


def reads_all():
    """What kept counts do not answer is answered by reading all logs, with a word."""
    with Box() as box:
        _, part, names = bed(box, 30)
        audit(box, part, None, "--kept")
        log = f"{part}/{names[0]}"
        for words in (["--method", "when"], ["--since", "2020-01-01"], ["--ambiguous"], ["--by", "method,day"],
                      ["--by", "schema"], ["--errors"], [part], ["--by", "stage,reason,to", "--workflow", "flow"],
                      ["--min-stages", "2", "--by", "movement"]):
            slow = box.segue("audit", part, "--kept", "--json", *words)
            plain = box.segue("audit", part, "--json", *words)
            expect(slow.returncode == plain.returncode == 0 and slow.stdout == plain.stdout, words, slow.stderr)
            expect(b"so all logs are read" in slow.stderr and not plain.stderr, words, slow.stderr, plain.stderr)
        slow, plain = box.segue("audit", log, "--kept", "--json"), box.segue("audit", log, "--json")
        expect(slow.returncode == 0 and slow.stdout == plain.stdout, slow.stderr)


def mistakes():
    with Box() as box:
        _, part, _ = bed(box, 8)
        for words in (["--by", "nix"], ["--by", "nix,day"], ["--method", "nix"], ["--csv"], ["--since", "soon"]):
            done = box.segue("audit", part, "--kept", "--json", *words)
            expect(done.returncode == 2 and done.stderr, words, done.returncode, done.stderr)
            expect(not os.path.exists(part + "/audit"), words)
        none = box.segue("audit", "--kept", "--json")
        expect(none.returncode == 0 and json.loads(none.stdout)["totals"]["judgments"] == 0, none)


if __name__ == "__main__":
    sys.exit(main([grows, gone_and_damaged, bad_logs, reads_all, mistakes]))
