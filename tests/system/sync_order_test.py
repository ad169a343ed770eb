#!/usr/bin/env python3
"""What a power cut leaves: nothing may leave segue before what explains it is on the disk.

usage: sync_order_test.py BUILD_DIR [CASE...]
helpers/sync_order.so tells in which order segue writes, syncs, renames and acts. The trace is
played on a model of a disk which keeps only what was synced: bytes by fdatasync of their file, names
by fsync of their folder. At each effect (a program started, a record printed, an answer sent) the log
must be there with all that was written to it, and at each write of a record the blobs it names.
"""
import json
import os
import sys

from daemon import DaemonBox
from support import BUILD, SEGUE, THREAD_SANITIZED, expect, main, need_build, preload, records

LIBRARY = BUILD + "/helpers/sync_order.so"
LONG_TEXT = "a text that is too long for a line of the log\n" * 1600  # over 64 KiB

WORKFLOW = """
name: ordered
provider: script
max_movements: 9
movements:
  - name: begin
    command: [sh, -c, "%(first)s"]
    rules:
      - {condition: when(true), next: write}
  - name: write
    instruction: write it
    rules:
      - {condition: "when(movement_iteration == 1)", next: write}
      - {condition: "when(movement_iteration > 1)", next: finish}
  - name: finish
    command: [sh, -c, "true"]
    rules:
      - {condition: when(true), next: COMPLETE}
"""


class Inode:
    def __init__(self, end=0, durable=0):
        self.end = end          # bytes in the page cache
        self.durable = durable  # bytes on the disk


class Disk:
    """What is in the page cache and what is on the disk, of everything below a folder."""

    def __init__(self, root):
        self.root = root
        self.names, self.durable_names = {}, {}  # path -> inode number
        self.inodes = {}
        self.syncing = {}  # what a sync that has begun will have made durable

    def there(self, path, durable=True):
        """A file or folder from before."""
        st = os.stat(path)
        self.names[path] = self.durable_names[path] = st.st_ino
        self.inodes[st.st_ino] = Inode(st.st_size, st.st_size if durable else 0)

    def survives(self, path):
        """The inode that is found under the path after a power cut, or None."""
        at = os.path.dirname(path)
        while at != self.root:
            if at not in self.durable_names:
                return None
            at = os.path.dirname(at)
        return self.inodes.get(self.durable_names.get(path))

    def play(self, what, words):
        if what == "open":
            ino, path = int(words[0]), words[1]
            if path.startswith(self.root + "/") and self.names.get(path) != ino:
                self.names[path] = ino
                self.inodes.setdefault(ino, Inode())
        elif what == "mkdir":
            self.names.setdefault(words[0], 0)
        elif what == "write" and int(words[0]) in self.inodes:
            inode = self.inodes[int(words[0])]
            at = inode.end if words[1] == "-1" else int(words[1])
            inode.durable = min(inode.durable, at)
            inode.end = max(inode.end, at + int(words[2]))
        elif what == "cut" and int(words[0]) in self.inodes:
            inode = self.inodes[int(words[0])]
            inode.end = int(words[1])
            inode.durable = min(inode.durable, inode.end)
        elif what == "sync+":
            ino, path = int(words[0]), words[1]
            names = {p: i for p, i in self.names.items() if os.path.dirname(p) == path}
            self.syncing[ino] = (self.inodes[ino].end if ino in self.inodes else 0, names)
        elif what == "sync-":
            end, names = self.syncing.pop(int(words[0]))
            if int(words[0]) in self.inodes:
                self.inodes[int(words[0])].durable = end
            path = words[1]
            for p in [p for p in self.durable_names if os.path.dirname(p) == path]:
                del self.durable_names[p]
            self.durable_names.update(names)
        elif what == "rename" and words[0] in self.names:
            self.names[words[1]] = self.names.pop(words[0])
        elif what == "unlink":
            self.names.pop(words[0], None)


class Play:
    """A trace, its log, and the rules."""

    def __init__(self, box, disk, log):
        self.disk, self.log = disk, log
        with open(log, "rb") as f:
            self.lines = f.read().splitlines(keepends=True)
        self.ends, end = [], 0
        for line in self.lines:
            end += len(line)
            self.ends.append(end)
        self.blobs = []
        if os.path.isdir(box.logs + "/blobs"):
            self.blobs = [(n, f"{box.logs}/blobs/{n}") for n in os.listdir(box.logs + "/blobs")]
        parsed = records(log)
        self.command_calls = [i for i, r in enumerate(parsed)
                              if r["type"] == "call_start" and r.get("provider") == "command"]
        self.counts = {}
        with open(box.dir + "/trace", encoding="ascii") as f:
            self.events = [line.rstrip("\n").split("\t") for line in f]

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1
        return self.counts[what]

    def explained(self, effect, upto, meanwhile=False):
        """Whatever was written is on the disk (unless the log may grow meanwhile), and so is the
        log up to the record at least."""
        inode = self.disk.survives(self.log)
        expect(inode is not None, effect, "while a power cut would take the log's name or folder")
        now = self.disk.inodes.get(self.disk.names.get(self.log), inode)
        expect(meanwhile or now.durable == now.end, effect, "while", now.end - now.durable,
               "bytes of the log were not synced")
        expect(inode.durable >= upto, effect, "while only", inode.durable,
               "bytes of the log were on the disk;", upto, "tell of it")

    def record_written(self, first, after):
        """Blobs are whole before a record names them."""
        begin = 0
        for line, end in zip(self.lines, self.ends):
            if begin < after and end > first:
                for name, path in self.blobs:
                    if name.encode() in line:
                        inode = self.disk.survives(path)
                        expect(inode is not None, "a power cut would take a blob's name")
                        expect(inode.durable == inode.end, "a blob is named before it is synced")
                        self.count("blob")
            begin = end

    def run(self, skip_spawns=0, printed=0, session=None):
        """Plays it all; how often each thing was looked at."""
        spawns = skip_spawns
        for what, *words in self.events:
            if what == "write" and int(words[0]) in self.log_inodes():
                self.record_written(int(words[1]), int(words[1]) + int(words[2]))
                self.count("batch")
            elif what == "rename" and words[1] == self.log:
                inode = self.disk.inodes[self.disk.names[words[0]]]
                expect(inode.durable == inode.end, "a log is replaced by one that is not synced")
                self.count("rewritten")
            elif what == "spawn":
                self.explained("a program was started", self.ends[self.command_calls[spawns]])
                spawns += 1
                self.count(what)
            elif what == "out":
                printed += int(words[0])
                line = next(i for i, n in enumerate(self.ends) if n >= printed)
                self.explained("a record was printed", self.ends[line])
                self.count(what)
            elif what == "send" and session and session.encode().hex() in words[0]:
                self.explained("a session was told", self.ends[0], True)
                self.count(what)
            self.disk.play(what, words)
        expect(spawns == len(self.command_calls), spawns, "programs were started")
        return self.counts

    def log_inodes(self):
        return [self.disk.names[p] for p in (self.log, self.log + ".new") if p in self.disk.names]


def env_of(box):
    return preload(LIBRARY, {"SYNC_ORDER": box.dir + "/trace"})


def words_of(box, first="true", task="do it", text=LONG_TEXT):
    workflow = box.file("ordered.yaml", WORKFLOW % {"first": first})
    scenario = box.file("ordered.json", json.dumps({"replies": [{"text": text, "times": 0}]}))
    box.file("work/task", task)
    return [workflow, "--json", "--scenario", scenario, "--cwd", box.cwd, "--logs", box.logs,
            "--task-file", box.cwd + "/task"]


def disk_of(box):
    """Everything below the box that is there now, as if it had always been."""
    disk = Disk(box.dir)
    for at, folders, files in os.walk(box.dir):
        for name in folders + files:
            disk.there(os.path.join(at, name))
    return disk


def at_least(counts, **wanted):
    for what, n in wanted.items():
        expect(counts.get(what, 0) >= n, "only", counts.get(what, 0), what, "seen,", n, "wanted")
    return ", ".join(f"{n} {what}" for what, n in counts.items())


def a_new_session(box):
    """In folders that are new, with a blob of the task and one that two answers share."""
    box.logs = box.dir + "/new/deep/logs"
    words = words_of(box, task=LONG_TEXT + "task")
    disk = disk_of(box)
    box.segue("run", *words, env=env_of(box), status=0)
    play = Play(box, disk, box.log_paths()[0])
    counts = play.run()
    expect(len(play.blobs) == 2, play.blobs)
    return at_least(counts, batch=5, spawn=2, out=12, blob=3)


def a_day_that_is_bounded(box):
    """What the day's book says of calls is on the disk before it allows the next one."""
    os.makedirs(box.dir + "/home/config/segue", exist_ok=True)
    box.file("home/config/segue/config.yaml", "budget: {day: {tokens: 1000000}}\n")
    box.segue("run", *words_of(box, text="short"), env=env_of(box), status=0)
    with open(box.dir + "/trace", encoding="utf-8") as trace:
        lines = [line.rstrip("\n").split("\t") for line in trace]
    book = {line[1] for line in lines if line[0] == "open" and "/spent/" in line[2]}
    expect(len(book) == 1, "one file", book)
    told = "".join(line[0][0] + line[0][-1] for line in lines if line[1:2] and line[1] in book and line[0] in ("write", "sync-"))
    begun, dirty = 0, False
    for what in (line[0] for line in lines if line[1:2] and line[1] in book):
        dirty = what == "write" or (dirty and what != "sync-")
        begun += what == "sync-"
    expect(begun >= 2, "it is synced before a later call", told)


def a_resumed_session(box):
    """What was read must be on the disk before it is acted on: its writer died before the sync."""
    words = words_of(box)
    box.segue("run", *words, env={"SEGUE_FAULT": "exit:sync_before:4"}, status=99)
    path = box.log_paths()[0]
    done_spawns = sum(1 for r in records(path)[:-1]
                      if r["type"] == "call_start" and r.get("provider") == "command")
    disk = disk_of(box)
    disk.there(path, durable=False)
    disk.durable_names.pop(path)
    begun = os.path.getsize(path)
    box.segue("resume", path, "--json", env=env_of(box), status=0)
    play = Play(box, disk, path)
    names = [what if what != "sync-" or words[1] != path else "synced"
             for what, *words in play.events]
    expect("synced" in names[:names.index("write")], "recovery went on before it had synced")
    return at_least(play.run(skip_spawns=done_spawns, printed=begun), batch=3, out=3)


def a_session_that_had_ended(box):
    """Its end is told again; also that must have been synced."""
    expect(box.segue("run", *words_of(box)).returncode == 0, "run")
    path = box.log_paths()[0]
    disk = disk_of(box)
    disk.there(path, durable=False)
    box.segue("resume", path, "--json", env=env_of(box), status=0)
    play = Play(box, disk, path)
    last = play.ends[-1] - len(play.lines[-1])
    play.command_calls = []
    return at_least(play.run(printed=last), out=1)


def a_blob_that_was_there(box):
    """Its writer died before its name was synced."""
    words = words_of(box, task=LONG_TEXT + "task")
    expect(box.segue("run", *words).returncode == 0, "run")
    os.unlink(box.log_paths()[0])
    disk = disk_of(box)
    for name in ("blobs", *("blobs/" + n for n in os.listdir(box.logs + "/blobs"))):
        disk.durable_names.pop(f"{box.logs}/{name}")
    expect(box.segue("run", *words, env=env_of(box)).returncode == 0, "run")
    return at_least(Play(box, disk, box.log_paths()[0]).run(), blob=2)


def a_sync_that_fails(box):
    """Prefix and batch go to a new file, which replaces the log only when it is whole."""
    words = words_of(box, text="short")
    disk = disk_of(box)
    box.segue("run", *words, env={**env_of(box), "SEGUE_FAULT": "fail:sync:4"}, status=0)
    return at_least(Play(box, disk, box.log_paths()[0]).run(), rewritten=1, batch=5, out=12)


def a_log_that_is_removed(box):
    """It is written again, as a new file, before anything is done about what it tells."""
    words = words_of(box, first="rm " + box.logs + "/*.ndjson", text="short")
    disk = disk_of(box)
    box.segue("run", *words, env=env_of(box), status=0)
    return at_least(Play(box, disk, box.log_paths()[0]).run(), rewritten=1, out=12)


def a_daemon(box: DaemonBox):
    """Syncs in its pool; who submits a session hears of it when it is on the disk."""
    words = words_of(box)
    disk = disk_of(box)
    box.serve(env=env_of(box))
    sid = box.submit(words[0], words[words.index("--scenario") + 1], task=LONG_TEXT)
    box.wait_status(sid, "complete")
    box.end()
    return at_least(Play(box, disk, box.log(sid)).run(session=sid), send=1, batch=5, spawn=2, blob=3)


need_build()
if THREAD_SANITIZED:
    print("skipped: its runtime cannot be loaded before a library")
    sys.exit(77)
if b"SEGUE_FAULT" not in open(SEGUE, "rb").read():
    print("skipped: built without fault points")
    sys.exit(77)
sys.exit(main([a_new_session, a_day_that_is_bounded, a_resumed_session, a_session_that_had_ended, a_blob_that_was_there,
               a_sync_that_fails, a_log_that_is_removed, a_daemon]))
