#!/usr/bin/env python3
"""Sessions between folders and stores on PostgreSQL: export, import, the same bytes."""
import filecmp
import hashlib
import json
import os
import signal
import sys

from daemon import LONG
from support import SANITIZED, Box, end_of, every_way, expect, main, need_build, read_until, records, sample
import postgres

SERVER = None
ID = "01990000-0000-7000-8000-0000000000%02x"


class CopyBox(Box):
    def __init__(self):
        super().__init__()
        self.one, self.two = SERVER.database(), SERVER.database()
        for url in (self.one, self.two):
            self.ok("store", "init", "--store", url)

    def ok(self, *words):
        done = self.segue(*words)
        expect(done.returncode == 0, words, done)
        return done

    def count(self, done):
        return json.loads(done.stdout)


def chained(*bodies):
    """Lines of a log, as store/record_line.h has them."""
    last, out = "0" * 64, []
    for body in bodies:
        text = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()[:-1]
        last = hashlib.sha256(last.encode() + text).hexdigest()
        out.append(text + f',"hash":"{last}"}}\n'.encode())
    return b"".join(out)


def made_up(sid, middle, ended=True):
    head = {"v": 1, "type": "session_start", "session": sid, "workflow": {"name": "made-up"}}
    end = [{"v": 1, "type": "session_end", "outcome": "complete"}] if ended else []
    bodies = [{"v": 1, "seq": i + 1, "ts": "2026-01-01T00:00:00.000Z", **{k: v for k, v in b.items()
                                                                         if k != "v"}}
              for i, b in enumerate([head, *middle, *end])]
    return chained(*bodies)


def same(a, b):
    names = sorted(n for n in os.listdir(a) if n.endswith(".ndjson"))
    expect(names and names == sorted(n for n in os.listdir(b) if n.endswith(".ndjson")), a, b)
    match, other, error = filecmp.cmpfiles(a, b, names, shallow=False)
    expect(not other and not error, "differ:", other, error)
    if os.path.isdir(a + "/blobs"):
        blobs = sorted(os.listdir(a + "/blobs"))
        expect(blobs == sorted(os.listdir(b + "/blobs")), "blobs")
        expect(not filecmp.cmpfiles(a + "/blobs", b + "/blobs", blobs, shallow=False)[1], "blobs")
    return len(match)


def there_and_back(box: CopyBox):
    words = every_way(box)
    for _ in range(3):
        box.ok("run", *words, "-q")
    out, back = box.dir + "/out", box.dir + "/back"
    first = box.ok("store", "import", box.logs, "--store", box.one, "--json")
    expect(box.count(first)["copied"] == 3, first)
    again = box.ok("store", "import", box.logs, "--store", box.one, "--json")
    expect(box.count(again) == {"copied": 0, "there": 3, "left": 0, "failed": 0}, again)
    box.ok("store", "export", out, "--store", box.one)
    expect(same(box.logs, out) == 3, "logs")
    box.ok("store", "import", out, "--store", box.two)
    box.ok("store", "export", back, "--store", box.two)
    expect(same(out, back) == 3, "logs")
    for name in os.listdir(back):
        if name.endswith(".ndjson"):
            box.ok("verify", f"{back}/{name}")
            box.ok("verify", name[:-7], "--store", box.two)


# A log's line has at most 64 MiB. Beside other tests on a slow disk one takes longer than a request
# may: SEGUE_LONG=1 tries it alone.
LONGEST = (64 << 20) - 1024 if LONG and not SANITIZED else 24 << 20


def odd_logs(box: CopyBox):
    """NULs as escapes, a line nearly as long as one may be, many records: the bytes stay."""
    logs, out = box.dir + "/made", box.dir + "/out"
    os.mkdir(logs)
    note = {"v": 1, "type": "note"}
    for n, middle in enumerate((
            [{**note, "text": "a\u0000b\ud83d\ude00".encode("utf-16", "surrogatepass")
                      .decode("utf-16") + "\\u0000 \t\r\n\u2028"}],
            [{**note, "text": "x" * LONGEST}, {**note, "text": "behind it"}],
            [{**note, "text": f"record {i}"} for i in range(100000 if sample.ALL else 20000)])):
        sid = ID % n
        with open(f"{logs}/{sid}.ndjson", "wb") as f:
            f.write(made_up(sid, middle))
    box.ok("store", "import", logs, "--store", box.one)
    found = box.ok("store", "check", "--store", box.one)
    expect(b"3 sessions, 0 with a problem" in found.stdout, found)
    box.ok("store", "export", out, "--store", box.one)
    expect(same(logs, out) == 3, "logs")


def several_at_once(box: CopyBox):
    """Copies of the same sessions get in each other's way, but leave nothing behind."""
    os.mkdir(box.dir + "/made")
    for n in range(30):
        sid = ID % (n + 100)
        box.file(f"made/{sid}.ndjson", made_up(sid, [{"v": 1, "type": "note", "text": "x" * 3000}]))
    box.ok("store", "import", box.dir + "/made", "--store", box.one)
    for n in range(3):
        out = f"{box.dir}/out{n}"
        for going in [box.start("store", "export", out, "--store", box.one) for _ in range(4)]:
            status, _, err = end_of(going)
            expect(status in (0, 1) and b"has more records" not in err, status, err)
        done = box.ok("store", "export", out, "--store", box.one, "--json")
        expect(box.count(done)["copied"] + box.count(done)["there"] == 30, done)
        left = [name for name in os.listdir(out) if not name.endswith(".ndjson")]
        expect(left == [] and box.ok("ls", "--logs", out).stderr == b"", "left over", left)
        same(box.dir + "/made", out)


def one_of_them(box: CopyBox):
    words = every_way(box)
    for _ in range(2):
        box.ok("run", *words, "-q")
    box.ok("store", "import", *box.log_paths(), "--store", box.one)
    done = box.ok("store", "export", "last", box.dir + "/out", "--store", box.one, "--json")
    expect(box.count(done)["copied"] == 1, done)
    names = [n for n in os.listdir(box.dir + "/out") if n.endswith(".ndjson")]
    expect(names == [os.path.basename(box.log_paths()[-1])], names)


def what_is_no_sound_log(box: CopyBox):
    box.ok("run", *every_way(box), "-q")
    (path,) = box.log_paths()
    with open(path, "rb") as f:
        whole = f.read()
    lines = whole.splitlines(keepends=True)
    for name, bytes_, says in (
            ("changed", whole.replace(b"first draft", b"other draft", 1), b"is damaged"),
            ("torn", b"".join(lines[:-1]) + lines[-1][:-20], b""),
            ("foreign", b"{\"some\": \"json\"}\n", b""),
            ("empty", b"", b"holds no session"),
            ("noise", os.urandom(3000), b"")):
        bad = box.file(name + ".ndjson", bytes_)
        done = box.segue("store", "import", bad, "--store", box.one)
        expect(done.returncode == 1 and says in done.stderr and done.stderr, name, done)
    done = box.segue("ls", "--store", box.one, "--json")
    expect(done.stdout == b"", "something was imported", done)
    missing = box.segue("store", "import", box.dir + "/nothing", "--store", box.one)
    expect(missing.returncode == 1, missing)


def another_log_with_that_id(box: CopyBox):
    one, two = (box.file(f"{n}.ndjson", made_up(ID % 7, [{"v": 1, "type": "note", "text": n}]))
                for n in ("one", "two"))
    box.ok("store", "import", one, "--store", box.one)
    done = box.segue("store", "import", two, "--store", box.one)
    expect(done.returncode == 1 and b"with other records" in done.stderr, done)


def a_copy_that_was_cut_off_goes_on(box: CopyBox):
    whole = made_up(ID % 8, [{"v": 1, "type": "note", "text": str(i)} for i in range(50)])
    part = b"".join(whole.splitlines(keepends=True)[:20])
    half = box.file("half.ndjson", part)
    box.ok("store", "import", half, "--move", "--store", box.one)
    done = box.ok("store", "import", box.file("whole.ndjson", whole), "--store", box.one)
    expect(b"1 copied" in done.stdout, done)
    out = box.dir + "/out"
    box.ok("store", "export", out, "--store", box.one)
    with open(f"{out}/{ID % 8}.ndjson", "rb") as f:
        expect(f.read() == whole, "other bytes")
    shorter = box.segue("store", "import", box.file("half2.ndjson", part), "--move", "--store",
                        box.one)
    expect(shorter.returncode == 1 and b"has more records" in shorter.stderr, shorter)


def an_unfinished_one_goes_on_in_one_place(box: CopyBox):
    run = box.start("run", *every_way(box, 50), "--json")
    read_until(run, lambda r: r["type"] == "turn_end" and r["turn"] == 2)
    run.send_signal(signal.SIGINT)
    end_of(run)
    (path,) = box.log_paths()
    left = box.ok("store", "import", box.logs, "--store", box.one)
    expect(b"0 copied" in left.stdout and b"--move" in left.stdout, left)
    named = box.segue("store", "import", path, "--store", box.one)
    expect(named.returncode == 1 and b"--move" in named.stderr, named)
    box.ok("store", "import", path, "--move", "--store", box.one)
    expect(box.log_paths() == [] and os.path.exists(path + ".moved"), "the source is there")
    out = box.dir + "/out"
    box.ok("store", "export", "last", out, "--move", "--store", box.one)
    there = box.segue("resume", "last", "-q", "--store", box.one)
    expect(there.returncode != 0 and b"was moved" in there.stderr, there)
    with open(path + ".moved", "rb") as a, open(f"{out}/{os.path.basename(path)}", "rb") as b:
        expect(a.read() == b.read(), "other bytes")
    box.ok("resume", f"{out}/{os.path.basename(path)}", "-q")
    expect(records(f"{out}/{os.path.basename(path)}")[-1]["type"] == "session_end", "its end")


if __name__ == "__main__":
    need_build()
    postgres.need()
    with postgres.Server() as SERVER:
        status = main([there_and_back, odd_logs, several_at_once, one_of_them, what_is_no_sound_log,
                       another_log_with_that_id, a_copy_that_was_cut_off_goes_on,
                       an_unfinished_one_goes_on_in_one_place])
    sys.exit(status)
