#!/usr/bin/env python3
"""A full disk, a log folder that cannot be written, and a log that has another owner.

usage: disk_test.py BUILD_DIR [CASE...]
The full disk is a small tmpfs, so those cases need root and mount; else they are skipped.
"""
import errno
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support import (WAIT_S, Box, WANTED, at_once, end_of, every_way, expect, main, needs_others, of_type, read_until,
                     records, skip, sound, verified)

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
TURNS = 12


class SmallDisk(Box):
    """Its logs are on a tmpfs of 512 KiB."""

    def __enter__(self):
        os.mkdir(self.logs)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", self.logs], check=False,
                              capture_output=True)
        if done.returncode != 0:
            super().__exit__()
            skip(f"cannot mount a tmpfs: {done.stderr.decode(errors='replace').strip()}")
        return self

    def __exit__(self, *exc):
        subprocess.run(["umount", "-l", self.logs], check=False)
        super().__exit__(*exc)

    def fill(self, leave_bytes):
        with open(self.logs + "/filler", "wb", buffering=0) as f:
            try:
                while True:
                    f.write(b"x" * 4096)
            except OSError as error:
                expect(error.errno == errno.ENOSPC, error)
            f.truncate(os.fstat(f.fileno()).st_size - leave_bytes)

    def make_space(self):
        os.unlink(self.logs + "/filler")


def turns_of(box, text):
    """A workflow of some turns without a judge's call; each writes the text into the log."""
    workflow = box.file("turns.yaml", f"""
name: turns
initial_movement: work
max_movements: 50
provider: script
movements:
  - name: work
    instruction: do the work
    pass_previous_response: false
    rules:
      - {{condition: when(iteration < {TURNS}), next: work}}
      - {{condition: when(iteration >= {TURNS}), next: COMPLETE}}
""")
    scenario = box.file("turns.json", json.dumps({"replies": [{"text": text, "times": 0,
                                                               "delay_ms": 5}]}))
    return [workflow, "--scenario", scenario, "--cwd", box.cwd, "--logs", box.logs]


ASKS = """name: asks
provider: script
movements:
  - name: which
    ask: {question: Which one?}
    rules: [{condition: when(true), next: make}]
  - name: make
    command: [touch, made]
    approve: true
    rules: [{condition: when(true), next: COMPLETE}]
"""


def an_answer_is_taken_only_where_it_is_kept():
    """Full, nobody is told that it was answered, and nothing goes on; with space it is answered as ever."""
    for daemon in (True, False):
        with SmallDisk() as box:
            box.env["XDG_RUNTIME_DIR"] = box.dir
            served = None
            if daemon:
                served = box.start("serve", "--logs", box.logs)
                expect(wait_line(served.stderr, b"ready", []), "it does not serve")
                box.segue("submit", box.file("asks.yaml", ASKS), "--task", "x", "--cwd", box.cwd, status=0)
            else:
                box.segue("run", box.file("asks.yaml", ASKS), "--task", "x", "--cwd", box.cwd, "--logs", box.logs)

            def status():
                listed = json.loads(box.segue("ls", "--json", "--logs", box.logs).stdout.splitlines()[0])
                return listed["status"], listed.get("movement")

            def until(wanted):
                deadline = time.monotonic() + WAIT_S
                while status() != wanted and time.monotonic() < deadline:
                    time.sleep(0.02)
                expect(status() == wanted, status(), wanted)

            until(("needs_input", "which"))
            sid = os.path.basename(box.log_paths()[0]).split(".")[0]
            long = "this " * 819  # with its record more than a page: it cannot fit behind what is there
            for refused, taken, then in ((["answer", sid, long], ["answer", sid, "this"], ("needs_input", "make")),
                                         (["approve", sid, "--reason", long], ["approve", sid], ("complete", "make"))):
                box.fill(0)
                box.segue(*refused, "--logs", box.logs, status=1, err=b"No space left")
                expect(not os.path.exists(box.cwd + "/made"), "it went on")
                box.make_space()
                deadline = time.monotonic() + WAIT_S
                done = box.segue(*taken, "--logs", box.logs)
                while b"try again" in done.stderr and time.monotonic() < deadline:  # its log is opened again soon
                    done = box.segue(*taken, "--logs", box.logs)
                expect(done.returncode == 0, done)
                if not daemon:
                    box.segue("resume", sid, "--logs", box.logs)
                until(then)
            verified(box, box.log_paths()[0])
            if served:
                served.terminate()
                served.wait()
    return None


def done_as_ever(box, path):
    log = records(path)
    sound(log, [(i, "work", 1 if i < TURNS else 2, "when") for i in range(1, TURNS + 1)])
    verified(box, path)


def wait_line(stream, text, lines):
    for line in stream:
        lines.append(line)
        if text in line:
            return True
    return False


def space_returns(text=" ".join(hashlib.sha256(b"%d" % i).hexdigest() for i in range(160))):
    with SmallDisk() as box:
        words = turns_of(box, text)
        box.fill(48 * 1024)
        process = box.start("run", *words)
        lines = []
        expect(wait_line(process.stderr, b"waiting for space", lines), "it did not wait:", lines)
        expect(b"No space left" in lines[-1], lines)
        path = box.begun()[0]
        verified(box, path)  # what is there is whole
        before = len(records(path))
        box.make_space()
        begin = time.monotonic()
        expect(wait_line(process.stderr, b"space again", lines), "it did not go on:", lines)
        took = time.monotonic() - begin
        at_once(begin, 10, "going on")
        status, out, err = end_of(process)
        expect(status == 0 and b"COMPLETE" in out, status, out, err)
        expect(len(records(path)) > before, "nothing was written after")
        done_as_ever(box, path)
        return f"went on after {took:.1f} s"


def space_returns_for_a_blob(box: SmallDisk):
    """The same with answers over 64 KiB, which go to blobs."""
    words = turns_of(box, "a long answer " * 8000)
    box.fill(64 * 1024)
    process = box.start("run", *words)
    lines = []
    expect(wait_line(process.stderr, b"waiting for space", lines), "it did not wait:", lines)
    box.make_space()
    status, out, err = end_of(process)
    expect(status == 0, status, out, lines, err)
    path = box.begun()[0]
    done_as_ever(box, path)
    expect(not any("repeats" in r for r in of_type(records(path), "call_start")),
           "an answer was lost and asked for again")


def space_does_not_return(box: SmallDisk):
    words = turns_of(box, "an answer " * 300)
    box.fill(40 * 1024)
    begin = time.monotonic()
    done = box.segue("run", *words)
    took = time.monotonic() - begin
    expect(done.returncode == 1, "status", done.returncode)
    expect(b"No space left" in done.stderr and b"segue resume" in done.stderr, done.stderr)
    path = box.begun()[0]
    verified(box, path)
    box.make_space()
    box.segue("resume", path, status=0)
    done_as_ever(box, path)
    return f"gave up after {took:.0f} s"


def a_signal_while_it_waits(box: SmallDisk):
    words = turns_of(box, "an answer " * 300)
    box.fill(40 * 1024)
    process = box.start("run", *words)
    lines = []
    expect(wait_line(process.stderr, b"waiting for space", lines), "it did not wait:", lines)
    process.terminate()
    status, out, err = end_of(process)
    expect(status == 130, status, out, err)
    path = box.begun()[0]
    box.make_space()
    box.segue("resume", path, status=0)
    done_as_ever(box, path)


def full_from_the_start(box: SmallDisk):
    words = turns_of(box, "an answer")
    box.fill(0)
    begin = time.monotonic()
    box.segue("run", *words, status=1, err=b"No space left")
    at_once(begin, 10, "it waited although nothing had begun")
    box.make_space()
    expect(box.segue("run", *words).returncode == 0, "with space")


def an_unwritable_folder(box):
    prefix = ()
    words = every_way(box)
    os.makedirs(box.logs)
    if os.geteuid() == 0:
        needs_others()
        prefix = NOBODY
        for name, dirs, files in os.walk(box.dir):
            os.chown(name, 65534, 65534)
            for file in files:
                os.chown(f"{name}/{file}", 65534, 65534)
        os.chown(box.logs, 0, 0)
        os.chmod(box.logs, 0o755)
    else:
        os.chmod(box.logs, 0o500)
    done = box.segue("run", *words, prefix=prefix, status=1, err=(b"cannot write to the log folder", b"denied"))
    expect(done.stdout == b"", done.stdout)
    os.chmod(box.logs, 0o700)


def a_folder_that_is_a_file(box):
    words = every_way(box)
    box.file("logs", "not a folder")
    for logs in (box.logs, box.logs + "/below"):
        box.segue("run", *words[:-3], logs, *words[-2:], status=1, err=box.logs.encode())


def another_owner(box):
    process = box.start("run", *every_way(box, 100), "--json")
    expect(read_until(process, lambda r: r["type"] == "call_start") is not None, "no call")
    path = box.begun()[0]
    for _ in range(3):
        box.segue("resume", path, status=1, err=b"another process owns")
    status, _, err = end_of(process)
    expect(status == 0, status, err)
    sound(records(path), WANTED, repeats=0)
    verified(box, path)


def two_resumes_race(box):
    """One goes on, the others are refused or find it finished; nothing is judged twice."""
    words = every_way(box, 20)
    process = box.start("run", *words, "--json")
    expect(read_until(process, lambda r: r["type"] == "judgment") is not None, "no judgment")
    process.kill()
    process.communicate()
    path = box.begun()[0]
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: box.segue("resume", path), range(4)))
    expect(sorted({d.returncode for d in done}) in ([0], [0, 1]), done)
    for d in done:
        expect(d.returncode == 0 or b"another process owns" in d.stderr, d)
    sound(records(path), WANTED, repeats=1)
    verified(box, path)


def a_limit_on_file_sizes(box):
    """ulimit -f: writing fails with EFBIG and a signal that would end the program."""
    words = turns_of(box, "an answer")
    box.segue("run", *words, prefix=("bash", "-c", 'ulimit -f 8; exec "$@"', "bash"), status=1, err=b"File too large")
    path = box.begun()[0]
    verified(box, path)
    box.segue("resume", path, status=0)
    done_as_ever(box, path)


def removed_while_it_grows(box):
    """An agent that cleans a folder takes the log along: it is written again, or the run says so."""
    words = turns_of(box, "an answer")

    def begin():
        process = box.start("run", *words, "--json")
        expect(read_until(process, lambda r: r["type"] == "call_start") is not None, "no call")
        return process, box.begun()[-1]

    process, path = begin()
    os.unlink(path)
    status, out, err = end_of(process)
    expect(status == 0, status, err)
    expect(box.begun() == [path], box.begun())
    done_as_ever(box, path)

    process, path = begin()
    os.unlink(path)
    Path(path).write_text("mine\n")
    status, out, err = end_of(process)
    expect(status == 1 and b"replaced" in err, status, err)
    expect(Path(path).read_text() == "mine\n", "the other file was written")

    process, path = begin()
    os.rename(box.logs, box.dir + "/moved")  # the folder is gone, then the file
    os.unlink(f"{box.dir}/moved/{os.path.basename(path)}")
    status, out, err = end_of(process)
    expect(status == 1 and path.encode() in err, status, err)


CASES = [space_returns, space_returns_for_a_blob, a_signal_while_it_waits, full_from_the_start,
         an_unwritable_folder, a_folder_that_is_a_file, another_owner, two_resumes_race,
         an_answer_is_taken_only_where_it_is_kept, a_limit_on_file_sizes, removed_while_it_grows]


def with_the_long_one(cases):
    """The long case waits for most of its time: the others run beside it."""
    found = {}
    beside = threading.Thread(target=lambda: found.update(status=main([space_does_not_return])))
    beside.start()
    status = main(cases)
    beside.join()
    return status or found.get("status", 1)


if __name__ == "__main__":
    sys.exit(with_the_long_one(CASES))
