#!/usr/bin/env python3
"""A session is moved between a folder and a store, and the program dies or hangs at each point of it."""
import os
import signal
import sys

from shared_copy_test import ID, made_up
from support import Box, end_of, every_way, expect, main, need_build, read_until, records

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + "/support")
import postgres  # noqa: E402

SERVER = None
MOST = 60  # points that a move of a short session may have


class MoveBox(Box):
    """Has an unfinished session in its folder of logs."""

    def __init__(self):
        super().__init__()
        self.fresh()
        run = self.start("run", *every_way(self, 50), "--json")
        read_until(run, lambda r: r["type"] == "turn_end" and r["turn"] == 2)
        run.send_signal(signal.SIGINT)
        end_of(run)
        (self.path,) = self.log_paths()
        self.sid = os.path.basename(self.path)[:-7]

    def fresh(self):
        """Another store, without the session."""
        self.url = SERVER.database()
        self.ok("store", "init", "--store", self.url)

    def ok(self, *words):
        done = self.segue(*words)
        expect(done.returncode == 0, words, done)
        return done

    def sql(self, text):
        return SERVER.sql(text, database=self.url.rsplit("/", 1)[1].split("?")[0])

    def lease_over(self):
        """The dead program's lease ends at once, and a worker's look finds that."""
        self.sql("UPDATE segue.worker SET lease_until = clock_timestamp() - interval '1 s'")
        self.sql("SELECT segue.sweep()")

    def can_go_on(self, path):
        """The places of which one could take the session: the file at `path`, and the store."""
        places = ["file"] if os.path.exists(path) and os.path.getsize(path) > 0 else []
        held = self.sql("SELECT segue.enter('00000000-0000-4000-8000-000000000001', 'probe', '{}', '', 60000); "
                        f"SELECT o_result FROM segue.hold('00000000-0000-4000-8000-000000000001', '{self.sid}') "
                        "WHERE o_seq > 0; "
                        "SELECT segue.leave('00000000-0000-4000-8000-000000000001')")
        return places + (["store"] if "ok" in str(held) else [])


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
    """One such end at each point, each of a move that begins anew. Returns how many there were."""
    for n in range(1, MOST):
        words, path = prepare()
        if not how(box, words, n):
            return n - 1
        box.lease_over()
        expect(len(box.can_go_on(path)) <= 1, "two places at point", n, box.can_go_on(path))
        for _ in range(2):
            box.ok(*words)
            box.lease_over()
            expect(box.can_go_on(path) == [after], "after another run, point", n, box.can_go_on(path))
        if is_run:
            box.ok("verify", *([path] if after == "file" else [box.sid, "--store", box.url]))
    raise AssertionError("no end")


def exports(how):
    with MoveBox() as box:
        out = box.dir + "/out"
        target = f"{out}/{box.sid}.ndjson"
        box.ok("store", "import", "--move", box.path, "--store", box.url)

        def prepare():
            if os.path.exists(target):
                box.ok("store", "import", "--move", target, "--store", box.url)
            return ("store", "export", "--move", box.sid, out, "--store", box.url), target
        points = each_point(box, how, prepare, "file")
        expect(points >= 7, "points", points)
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
        expect(points >= (5 if again else 7), "points", points)
        refused = box.segue("resume", box.path + ".moved", "-q")
        expect(refused.returncode != 0 and b"was moved" in refused.stderr, refused)
        box.ok("resume", box.sid, "-q", "--store", box.url)
        done = box.ok("show", box.sid, "--json", "--store", box.url)
        expect(b"session_end" in done.stdout.splitlines()[-1], "its end", done)


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


def what_is_in_transit_says_so():
    """A row whose source is set aside, and a file: what finishes the move; a row is no worker's."""
    with MoveBox() as box:
        words = ("store", "import", "--move", box.logs, "--store", box.url)
        done = box.segue(*words, env={"SEGUE_FAULT": "exit:arrive_before:1"})
        expect(done.returncode == 99, done)
        box.lease_over()
        expect(not os.path.exists(box.path) and box.can_go_on(box.path) == [], "in transit")
        check = box.segue("store", "check", "--store", box.url)
        expect(check.returncode == 1 and b"store import --move" in check.stdout, check)
        mend = box.segue("store", "check", "--mend", "--store", box.url)
        expect(mend.returncode == 1 and box.can_go_on(box.path) == [], "mended", mend)
        listed = box.ok("ls", "--json", "--store", box.url)
        expect(b"store import --move" in listed.stdout, listed)
        for done in (box.segue("resume", box.sid, "-q", "--store", box.url),):
            expect(done.returncode != 0 and b"store import --move" in done.stderr, done)
        box.ok(*words)
        expect(box.can_go_on(box.path) == ["store"], "arrived")
        out = box.dir + "/out"
        words = ("store", "export", "--move", out, "--store", box.url)
        done = box.segue(*words, env={"SEGUE_FAULT": "exit:arrive_before:1"})
        expect(done.returncode == 99, done)
        box.lease_over()
        listed = box.ok("ls", "--logs", out)
        expect(b"store export --move" in listed.stderr, listed)
        for name, logs in ((box.sid, out), (f"{out}/{box.sid}.ndjson.moving", out)):
            done = box.segue("resume", name, "-q", "--logs", logs)
            expect(done.returncode != 0 and b"store export --move" in done.stderr, done)
        done = box.segue("resume", box.sid, "-q", "--store", box.url)
        expect(done.returncode != 0 and b"was moved" in done.stderr and out.encode() in done.stderr, done)
        other = box.segue("store", "export", "--move", box.sid, box.dir + "/other", "--store", box.url)
        expect(other.returncode == 1 and b"was moved" in other.stderr, other)
        box.ok(*words)
        box.ok("resume", f"{out}/{box.sid}.ndjson", "-q")


def a_move_elsewhere_leaves_no_second_one():
    """One that died on its way to one folder is moved to another: the first stays in transit."""
    with MoveBox() as box:
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
                       killed_imports_of_a_long_log, hung_exports, hung_imports, what_is_in_transit_says_so,
                       a_move_elsewhere_leaves_no_second_one])
    sys.exit(status)
