#!/usr/bin/env python3
"""A session is moved or copied between folders and stores, and the program dies or hangs at each point of it."""
import hashlib
import json
import os
import shutil
import signal
import sys

from shared_copy_test import ID, made_up
from support import Box, end_of, every_way, expect, main, need_build, read_until, records, sample
import postgres

SERVER = None
POINTS = sample.draw("points of a move", range(1, 60), 6)  # no move of a short session has more


class MoveBox(Box):
    """Has an unfinished session in its folder of logs. Its task is a blob."""

    template = None

    def __init__(self):
        super().__init__()
        self.fresh()
        task = "long " * 14000
        self.blob = hashlib.sha256(task.encode()).hexdigest()
        run = self.start("run", *every_way(self, 50)[:-1], task, "--json")
        read_until(run, lambda r: r["type"] == "turn_end" and r["turn"] == 2)
        run.send_signal(signal.SIGINT)
        end_of(run)
        (self.path,) = self.log_paths()
        self.sid = os.path.basename(self.path)[:-7]

    def fresh(self):
        """Another store, without the session."""
        self.url = self.database()

    def database(self):
        """A fresh one; a copy of the first, as that was made."""
        if MoveBox.template is None:
            MoveBox.template = SERVER.database(name="template_of_moves")
            self.ok("store", "init", "--store", MoveBox.template)
        return SERVER.database(template="template_of_moves")

    def ok(self, *words):
        done = self.segue(*words)
        expect(done.returncode == 0, words, done)
        return done

    def sql(self, text, url=None):
        return SERVER.sql(text, database=(url or self.url).rsplit("/", 1)[1].split("?")[0])

    def lease_over(self, *others):
        """The dead program's lease ends at once, and a worker's look finds that."""
        for url in (self.url, *others):
            self.sql("UPDATE segue.worker SET lease_until = clock_timestamp() - interval '1 s'", url)
            self.sql("SELECT segue.sweep()", url)

    def can_take(self, url):
        held = self.sql("SELECT segue.enter('00000000-0000-4000-8000-000000000001', 'probe', '{}', '', 60000); "
                        f"SELECT o_result FROM segue.hold('00000000-0000-4000-8000-000000000001', '{self.sid}') "
                        "WHERE o_seq > 0; "
                        "SELECT segue.leave('00000000-0000-4000-8000-000000000001')", url)
        return "ok" in str(held)

    def can_go_on(self, place):
        """The places of which one could take the session: the file or store `place`, and the store."""
        if place.startswith("postgres:"):
            places = ["other"] if self.can_take(place) else []
        else:
            places = ["file"] if os.path.exists(place) and os.path.getsize(place) > 0 else []
        return places + (["store"] if self.can_take(self.url) else [])


def killed(box, words, n):
    """True: it died at the n-th point; false: it has fewer, and is done."""
    done = box.segue(*words, env={"SEGUE_FAULT": f"exit:{n}"})
    expect(done.returncode in (0, 99), n, done)
    return done.returncode == 99


def hung(box, words, n):
    """The same, with one that hangs there until its lease is over and another did what it could."""
    first = box.start(*words, env={"SEGUE_FAULT": f"stop:{n}"})
    _, status = os.waitpid(first.pid, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        expect(os.waitstatus_to_exitcode(status) == 0, n, status)
        return False
    box.lease_over()
    box.segue(*words)
    first.send_signal(signal.SIGCONT)
    first.wait()
    return True


def each_point(box, how, prepare, after, is_run=True):
    """One such end at each point, each of a move that begins anew. Returns how many there are at most."""
    for n in POINTS:
        words, place = prepare()
        others = [place] if place.startswith("postgres:") else []
        if not how(box, words, n):
            return n - 1
        box.lease_over(*others)
        expect(len(box.can_go_on(place)) <= 1, "two places at point", n, box.can_go_on(place))
        for _ in range(2):
            box.ok(*words)
            box.lease_over(*others)
            expect(box.can_go_on(place) == [after], "after another run, point", n, box.can_go_on(place))
        if is_run:
            box.ok("verify", *{"file": [place], "other": [box.sid, "--store", place],
                               "store": [box.sid, "--store", box.url]}[after])
    raise AssertionError("no end")


def exports(how):
    with MoveBox() as box:
        out = box.dir + "/out"
        target = f"{out}/{box.sid}.ndjson"
        box.ok("store", "import", "--move", box.path, "--store", box.url)

        def prepare():
            if os.path.exists(target):
                box.ok("store", "import", "--move", target, "--store", box.url)
                shutil.rmtree(out + "/blobs")
            return ("store", "export", "--move", box.sid, out, "--store", box.url), target
        points = each_point(box, how, prepare, "file")
        expect(points >= 10, "points", points)
        expect(os.listdir(out + "/blobs") == [box.blob], os.listdir(out + "/blobs"))
        with open(box.path + ".moved", "rb") as a, open(target, "rb") as b:
            expect(a.read() == b.read(), "other bytes")
        refused = box.segue("resume", box.sid, "-q", "--store", box.url)
        expect(refused.returncode != 0 and b"was moved" in refused.stderr, refused)
        box.ok("resume", target, "-q")
        expect(records(target)[-1]["type"] == "session_end", "its end")


def imports(how, again=False):
    """again: the store has had the session before."""
    with MoveBox() as box:
        def prepare():
            if not os.path.exists(box.path):
                box.ok("store", "export", "--move", box.sid, box.logs, "--store", box.url)
            if not again:
                box.fresh()
            return ("store", "import", "--move", box.path, "--store", box.url), box.path
        points = each_point(box, how, prepare, "store")
        expect(points >= (5 if again else 9), "points", points)
        refused = box.segue("resume", box.path + ".moved", "-q")
        expect(refused.returncode != 0 and b"was moved" in refused.stderr, refused)
        box.ok("resume", box.sid, "-q", "--store", box.url)
        done = box.ok("show", box.sid, "--json", "--store", box.url)
        expect(b"session_end" in done.stdout.splitlines()[-1], "its end", done)


def from_store_to_store(how):
    with MoveBox() as box:
        box.ok("store", "import", "--move", box.path, "--store", box.url)
        first = box.url

        def prepare():
            place = box.database()
            if not box.can_take(first):
                box.fresh()
                box.ok("store", "export", "--move", box.sid, box.url, "--store", prepare.last)
                return prepare_to(place)
            return prepare_to(place)

        def prepare_to(place):
            prepare.last = place
            return ("store", "export", "--move", box.sid, place, "--store", box.url), place
        points = each_point(box, how, prepare, "other")
        expect(points >= 8, "points", points)
        refused = box.segue("resume", box.sid, "-q", "--store", box.url)
        expect(refused.returncode != 0 and b"was moved" in refused.stderr, refused)
        box.ok("resume", box.sid, "-q", "--store", prepare.last)


def killed_exports():
    exports(killed)


def killed_imports():
    imports(killed)


def killed_imports_of_one_that_was_there():
    imports(killed, again=True)


def hung_exports():
    exports(hung)


def hung_imports():
    imports(hung)


def killed_from_store_to_store():
    from_store_to_store(killed)


BLOB = b"a text for a blob" * 5000


def ended_log(sid):
    """Of several appends, and it names a blob."""
    notes = [{"v": 1, "type": "note", "text": "x" * 60000} for _ in range(12)]
    return made_up(sid, [{"v": 1, "type": "note", "text_blob": hashlib.sha256(BLOB).hexdigest()}, *notes])


class EndedBox(MoveBox):
    """Has a long session that ended, with a blob, in a folder `from` and in its store."""

    def __init__(self):
        super().__init__()
        self.sid, self.blob = ID % 11, hashlib.sha256(BLOB).hexdigest()
        self.whole = ended_log(self.sid)
        os.makedirs(self.dir + "/from/blobs")
        self.file("from/blobs/" + self.blob, BLOB)
        self.source = self.file(f"from/{self.sid}.ndjson", self.whole)
        self.ok("store", "import", self.source, "--store", self.url)

    def check(self, place, is_whole, n):
        """Under its name in that place is the whole log, or, unless is_whole, nothing that is taken for one."""
        if place.startswith("postgres:"):
            there = self.can_take(place)
            have = self.sql(f"SELECT string_agg(encode(line, 'hex'), '0a' ORDER BY seq) || '0a' FROM segue.line WHERE session = '{self.sid}'", place)
            have, blobs = bytes.fromhex(have), self.sql("SELECT encode(sha256, 'hex') FROM segue.blob", place).split()
            expect(not there or "ended" in self.sql("SELECT state FROM segue.session", place), "state at", n)
        else:
            there = os.path.exists(f"{place}/{self.sid}.ndjson")
            listed = self.ok("ls", "--logs", place, "--json").stdout if os.path.isdir(place) else b""
            expect(there or self.sid.encode() not in listed, "listed at point", n, listed)
            with open(f"{place}/{self.sid}.ndjson" if there else os.devnull, "rb") as f:
                have = f.read()
            blobs = [name for name in os.listdir(place + "/blobs") if name[0] != "."] if there else []
        expect(there or not is_whole, "it is not there, point", n)
        expect(not there or have == self.whole, "a part of it at point", n, len(have))
        expect(not there or blobs == [self.blob], "blobs at point", n, blobs)


def copies(how, least, words_for):
    """An ended session is copied; words_for(box) gives the words, and the place that it goes to."""
    with EndedBox() as box:
        for n in POINTS:
            words, place = words_for(box)
            others = [place] if place.startswith("postgres:") else []
            if not how(box, words, n):
                break
            box.lease_over(*others)
            box.check(place, False, n)
            box.ok(*words)
            box.lease_over(*others)
            box.check(place, True, n)
            again = box.ok(*words)
            expect(b"0 copied, 1 already there" in again.stdout, n, again)
            if not others:
                left = [name for name in os.listdir(place) if name.startswith(box.sid)]
                expect(left == [box.sid + ".ndjson"], "left over", n, left)
        expect(n > least, "points", n)


def to_a_folder(box):
    out = f"{box.dir}/out"
    shutil.rmtree(out, ignore_errors=True)
    return ("store", "export", box.sid, out, "--store", box.url), out


def to_a_store(box):
    place = box.database()
    return ("store", "import", box.source, "--store", place), place


def to_another_store(box):
    place = box.database()
    return ("store", "export", box.sid, place, "--store", box.url), place


def killed_copies():
    for words_for in (to_a_folder, to_a_store, to_another_store):
        copies(killed, 8, words_for)


def hung_copies():
    copies(hung, 8, to_a_folder)


def killed_imports_of_a_long_log():
    """Of several appends: what is there already is continued."""
    sid = ID % 9
    whole = made_up(sid, [{"v": 1, "type": "note", "text": "x" * 60000} for _ in range(12)], ended=False)
    with MoveBox() as box:
        box.sid = sid

        def prepare():
            box.fresh()
            return ("store", "import", "--move", box.file(sid + ".ndjson", whole), "--store", box.url), f"{box.dir}/{sid}.ndjson"
        points = each_point(box, killed, prepare, "store", is_run=False)
        expect(points >= 11, "points", points)
        found = box.ok("store", "check", "--store", box.url)
        expect(b"1 session, 0 with a problem" in found.stdout, found)
        box.ok("store", "export", "--move", sid, box.dir + "/out", "--store", box.url)
        with open(f"{box.dir}/out/{sid}.ndjson", "rb") as f:
            expect(f.read() == whole, "other bytes")


def what_is_in_transit_says_so(box: MoveBox):
    """A row whose source is set aside, and a file: what finishes the move; a row is no worker's."""
    words = ("store", "import", "--move", box.logs, "--store", box.url)
    done = box.segue(*words, env={"SEGUE_FAULT": "exit:arrive_before:1"})
    expect(done.returncode == 99, done)
    box.lease_over()
    expect(not os.path.exists(box.path) and box.can_go_on(box.path) == [], "in transit")
    check = box.segue("store", "check", "--store", box.url)
    expect(check.returncode == 1 and b"that segue store import" in check.stdout, check)
    mend = box.segue("store", "check", "--mend", "--store", box.url)
    expect(mend.returncode == 1 and box.can_go_on(box.path) == [], "mended", mend)
    listed = box.ok("ls", "--json", "--store", box.url)
    expect(b"that segue store import" in listed.stdout, listed)
    for done in (box.segue("resume", box.sid, "-q", "--store", box.url),):
        expect(done.returncode != 0 and b"that segue store import" in done.stderr, done)
    box.ok(*words)
    expect(box.can_go_on(box.path) == ["store"], "arrived")
    out = box.dir + "/out"
    words = ("store", "export", "--move", out, "--store", box.url)
    done = box.segue(*words, env={"SEGUE_FAULT": "exit:arrive_before:1"})
    expect(done.returncode == 99, done)
    box.lease_over()
    listed = box.ok("ls", "--logs", out)
    expect(b"that segue store export" in listed.stderr, listed)
    for name, logs in ((box.sid, out), (f"{out}/{box.sid}.ndjson.moving", out)):
        done = box.segue("resume", name, "-q", "--logs", logs)
        expect(done.returncode != 0 and b"that segue store export" in done.stderr, done)
    done = box.segue("resume", box.sid, "-q", "--store", box.url)
    expect(done.returncode != 0 and b"was moved" in done.stderr and out.encode() in done.stderr, done)
    (row,) = (json.loads(line) for line in box.ok("ls", "--json", "--store", box.url).stdout.splitlines())
    expect(row["message"].startswith("moved to ") and row["message"].endswith(out), "why it stopped was told", row)
    other = box.segue("store", "export", "--move", box.sid, box.dir + "/other", "--store", box.url)
    expect(other.returncode == 1 and b"was moved" in other.stderr, other)
    box.ok(*words)
    box.ok("resume", f"{out}/{box.sid}.ndjson", "-q")


def a_move_elsewhere_leaves_no_second_one(box: MoveBox):
    """One that died on its way to one folder is moved to another: the first stays in transit."""
    one, two = box.dir + "/one", box.dir + "/two"
    box.ok("store", "import", "--move", box.path, "--store", box.url)
    first = ("store", "export", "--move", box.sid, one, "--store", box.url)
    done = box.segue(*first, env={"SEGUE_FAULT": "exit:aside_before:1"})
    expect(done.returncode == 99, done)
    box.lease_over()
    box.ok("store", "export", "--move", box.sid, two, "--store", box.url)
    itself = box.segue("store", "import", "--move", f"{two}/{box.sid}.ndjson", "--store", two)
    expect(itself.returncode != 0 and os.path.exists(f"{two}/{box.sid}.ndjson"), itself)
    done = box.segue(*first)
    expect(done.returncode == 1 and b"was moved" in done.stderr and two.encode() in done.stderr, done)
    expect(not os.path.exists(f"{one}/{box.sid}.ndjson") and os.path.exists(f"{two}/{box.sid}.ndjson"), "places")


if __name__ == "__main__":
    need_build()
    postgres.need()
    with postgres.Server() as SERVER:
        status = main([killed_exports, killed_imports, killed_imports_of_one_that_was_there,
                       killed_imports_of_a_long_log, hung_exports, hung_imports, killed_from_store_to_store, killed_copies, hung_copies, what_is_in_transit_says_so,
                       a_move_elsewhere_leaves_no_second_one])
    sys.exit(status)
