#!/usr/bin/env python3
"""The ledger: what a chain of hashes cannot show. Logs that are removed, cut short or written anew are
found by it; it is found out by heads that were kept elsewhere."""
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys

import copied_logs
from audit_logs import session_id
from daemon import DaemonBox, simple
from support import Box, expect, main, needs, records

ONE = """
name: one
provider: script
movements:
  - name: one
    instruction: do it
    rules: [{condition: always, next: COMPLETE}]
"""
REPLY = "replies: [{movement: one, text: done}]\n"


def run(box, env=None, reply=REPLY):
    """Runs a session; its log."""
    before = set(box.log_paths())
    done = box.segue("run", box.file("w.yaml", ONE), "-s", box.file("s.yaml", reply), "-t", "x",
                     "-l", box.logs, env=env)
    new = set(box.log_paths()) - before
    return done, new.pop() if new else None


def ledger(box):
    path = box.logs + "/ledger/heads.log"
    return records(path) if os.path.exists(path) else []


def verify(box, *words, status=0, of=None):
    """What verify says, by session."""
    done = box.segue("verify", "--json", *(words or (box.logs,)), status=status)
    said = [json.loads(line) for line in done.stdout.splitlines()]
    if not words or os.path.isdir(words[0]):  # the sum comes last
        total = said.pop()
        logs = [s for s in said if s["state"] != "missing" and "of" not in s]
        gone = [s for s in said if s["state"] == "missing"]
        expect(len({s["session"] for s in gone}) == len(gone), "one is told twice", gone)
        expect(total["of"] == "sum" and total["ok"] == (status == 0), total)
        expect(total["logs"] == len(logs) and total["missing"] == len(gone), total, said)
        for state, n in total["states"].items():
            expect(n == sum(s["state"] == state for s in logs), state, total, said)
    return said if of is None else next(s for s in said if s.get("session") == of)


def rehash(path):
    """Writes a log anew, its chain sound, one word of an answer another."""
    before, lines = "0" * 64, []
    for r in records(path):
        r.pop("hash")
        body = json.dumps(r, separators=(",", ":"), ensure_ascii=False).replace('"done"', '"nope"')
        before = hashlib.sha256((before + body[:-1]).encode()).hexdigest()
        lines.append(body[:-1] + ',"hash":"' + before + '"}\n')
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(lines)


def ends_are_sealed(box):
    done, path = run(box)
    expect(done.returncode == 0, done.stderr)
    log = records(path)
    entry = ledger(box)[0]
    expect(entry["type"] == "end" and entry["head"] == log[-1]["hash"], entry)
    expect(entry["seq"] == log[-1]["seq"] and entry["session"] == log[0]["session"], entry)
    expect("late" not in entry and entry["n"] == 1, entry)
    done = box.segue("verify", path)
    expect(done.stdout.endswith(b", complete, sealed\n"), done.stdout)
    done, stopped = run(box, reply="replies: []\n")  # it stops
    expect(done.returncode == 1 and ledger(box)[1]["type"] == "stop", ledger(box))
    expect(verify(box, stopped)[0]["seal"] == "sealed", verify(box, stopped))
    done = box.segue("resume", stopped, "-s", box.file("s.yaml", REPLY), "-q")
    expect(done.returncode == 0 and [e["type"] for e in ledger(box)] == ["end", "stop", "end"],
           ledger(box))
    expect([s["seal"] for s in verify(box)] == ["sealed", "sealed"], verify(box))
    shutil.copy(path, box.dir + "/elsewhere.ndjson")
    expect(verify(box, box.dir + "/elsewhere.ndjson")[0]["seal"] == "unsealed", "a copy")


def killed_between(box):
    """Killed after the end was durable and before its entry: it comes late, and says so."""
    for n, fault in enumerate(("ledger_before", "ledger_after")):
        done, path = run(box, env={"SEGUE_FAULT": f"exit:{fault}:1"})
        if done.returncode != 99:
            return "skipped: built without faults"
        expect(records(path)[-1]["type"] == "session_end", "the end was not first")
        expect(len(ledger(box)) == 2 * n, ledger(box))
        seal = verify(box, path)[0]["seal"]
        expect(seal == ("sealed" if n else "unsealed"), seal)
        box.segue("resume", path, "-q", status=0)
        expect(ledger(box)[n].get("late") is (None if n else True), ledger(box))
        expect(verify(box, path)[0]["seal"] == ("sealed" if n else "sealed late"),
               verify(box, path))
    with open(box.logs + "/ledger/heads.log", "ab") as f:
        f.write(b'{"v":1,"n":3,"ts":"20')  # a crash in the middle of a write
    run(box)
    expect([e["n"] for e in ledger(box)] == [1, 2, 3], ledger(box))
    verify(box)


def failed_entries(box):
    """A ledger that cannot be written holds up nobody."""
    done, path = run(box, env={"SEGUE_FAULT": "fail:ledger:1"})
    if b"unsealed" not in done.stderr:
        return "skipped: built without faults"
    expect(done.returncode == 0 and ledger(box) == [], done.stderr)
    expect(verify(box, path)[0]["seal"] == "unsealed", verify(box, path))


def changed_logs_are_found(box):
    paths = [run(box)[1] for _ in range(4)]
    gone, short, anew, sound = sorted(paths)
    ids = {name: os.path.basename(path)[:36] for name, path in
           (("gone", gone), ("short", short), ("anew", anew), ("sound", sound))}
    os.unlink(gone)
    with open(short, "rb") as f:
        lines = f.readlines()
    with open(short, "wb") as f:
        f.writelines(lines[:-1])
    rehash(anew)
    said = {s.get("session"): s for s in verify(box, status=1)}
    expect(said[ids["gone"]]["state"] == "missing", said)
    expect("cut off" in said[ids["short"]]["error"], said)
    expect("rewritten" in said[ids["anew"]]["error"], said)
    expect(said[ids["sound"]]["seal"] == "sealed", said)
    expect(verify(box, anew, status=1)[0]["state"] == "bad", "one log alone")
    box.segue("verify", box.logs, out=b"missing  " + ids["gone"].encode())


def many_logs(box):
    """More logs than are read ahead are told in their order, whatever is wrong with some."""
    folder, count = box.dir + "/many", 700
    bad = {0, 1, 299, 300, 555, count - 1}
    os.mkdir(folder)
    path = shutil.copy(run(box)[1], folder)
    copied_logs.add(path, range(count))
    os.unlink(path)
    for n in bad:
        with open(f"{folder}/{session_id(n)}.ndjson", "r+b") as f:
            text = f.read()
            f.seek(0)
            f.write(text.replace(b"done", b"d0ne", 1))
    said = verify(box, folder, status=1)
    expect([s["session"] for s in said] == [session_id(n) for n in reversed(range(count))], "the order")
    wrong = {count - 1 - i for i, s in enumerate(said) if s["state"] != "complete"}
    expect(wrong == bad, wrong)


def removed_by_a_person(box):
    paths = [run(box)[1] for _ in range(2)]
    _, stopped = run(box, reply="replies: []\n")
    box.segue("rm", stopped, status=2, err=b"--force")
    ids = [os.path.basename(path)[:36] for path in paths]
    kept = box.file("kept", box.segue("heads", "-l", box.logs).stdout)
    done = box.segue("rm", ids[0], "-l", box.logs)
    expect(done.returncode == 0 and not os.path.exists(paths[0]), done.stderr)
    expect(ledger(box)[-1]["type"] == "removed", ledger(box))
    expect({s["session"] for s in verify(box)} == {ids[1], os.path.basename(stopped)[:36]},
           "others are left")
    expect(box.segue("heads", "-l", box.logs).stdout.count(b"session") == 2, "heads")
    verify(box, box.logs, "--heads", kept)
    done = box.segue("rm", "--force", stopped, "01990000")
    expect(done.returncode == 2 and not os.path.exists(stopped), done)


def a_changed_ledger(box):
    """Whoever changes the ledger too is found out by heads that were kept elsewhere."""
    paths = sorted(run(box)[1] for _ in range(3))
    done = box.segue("heads", "-l", box.logs)
    expect(done.returncode == 0 and len(done.stdout.splitlines()) == 4, done.stdout)
    kept = box.file("kept", done.stdout)
    verify(box, box.logs, "--heads", kept)
    heads = box.logs + "/ledger/heads.log"
    with open(heads, "rb") as f:
        lines = f.readlines()
    with open(heads, "wb") as f:  # one entry another
        f.writelines([lines[0], lines[1].replace(b'"type":"end"', b'"type":"cut"'), lines[2]])
    said = verify(box, status=1)
    expect(any(s.get("of") == "ledger" and "entry 2" in s["error"] for s in said), said)
    expect(box.segue("heads", "-l", box.logs).returncode == 1, "heads of a damaged ledger")
    rehash(paths[1])  # the log anew, and with it the ledger
    os.unlink(heads)
    for path in paths:
        box.segue("resume", path, "-q")
    said = {s["session"]: s for s in verify(box)}
    expect(all(s["seal"] == "sealed late" for s in said.values()), said)
    said = verify(box, box.logs, "--heads", kept, status=1)
    wrong = {s.get("session") or s["of"] for s in said if not s["ok"]}
    expect(wrong == {"ledger", os.path.basename(paths[1])[:36]}, said)
    os.unlink(paths[0])
    verify(box, box.logs, "--heads", kept, status=1)
    os.unlink(heads)
    said = verify(box, box.logs, "--heads", kept, status=1, of=os.path.basename(paths[0])[:36])
    expect(said["state"] == "missing", said)
    for nonsense in (b"nonsense\n", b'{"session":"x","seq":1,"hash":"y"}\n', b"\xff\n"):
        done = box.segue("verify", box.logs, "--heads", box.file("bad", nonsense))
        expect(done.returncode == 2 or b"line 1" in done.stderr, done.stderr)


def signed_heads():
    needs("ssh-keygen")
    with Box() as box:
        run(box)
        kept = box.file("kept", box.segue("heads", "-l", box.logs).stdout)
        for name in ("key", "other"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "me", "-f",
                            f"{box.dir}/{name}"], check=True)
        with open(box.dir + "/key.pub", encoding="ascii") as f:
            signers = box.file("signers", "me@example.org " + f.read())
        words = (box.logs, "--heads", kept, "--signed", signers)
        done = box.segue("verify", *words)
        expect(done.returncode != 0 and b"kept.sig" in done.stderr, done.stderr)
        for key, namespace, status in (("other", "segue-heads", 2), ("key", "file", 2),
                                       ("key", "segue-heads", 0)):
            subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-n", namespace, "-f",
                            f"{box.dir}/{key}", kept], check=True, stderr=subprocess.DEVNULL)
            done = box.segue("verify", *words)
            expect((done.returncode == 0) == (status == 0), key, namespace, done)
            os.unlink(kept + ".sig") if status else None
        with open(kept, "ab") as f:
            f.write(b" ")
        expect(box.segue("verify", *words).returncode != 0, "another file under that signature")
        expect(box.segue("verify", box.logs, "--signed", signers).returncode == 2, "without --heads")


def a_cut_is_no_rewriting(box):
    """resume --cut takes a stop off that the ledger knows; the ledger is told."""
    _, path = run(box, reply="replies: []\n")
    with open(path, "rb") as f:
        lines = f.readlines()
    lines[-1] = lines[-1].replace(b'"session_stop"', b'"session_sto_"')
    with open(path, "wb") as f:
        f.writelines(lines)
    box.segue("resume", path, "--cut", "-q", "-s", box.file("s.yaml", REPLY), status=0)
    expect([e["type"] for e in ledger(box)] == ["stop", "cut", "end"], ledger(box))
    expect(verify(box)[0]["seal"] == "sealed", verify(box))


def lists_by_status(box):
    """The ledger spares reading what has ended; what is listed is the same."""
    ended = [os.path.basename(run(box)[1])[:36] for _ in range(2)]
    stopped = os.path.basename(run(box, reply="replies: []\n")[1])[:36]

    def listed(*words):
        done = box.segue("ls", "--json", "-l", box.logs, *words)
        return {json.loads(line)["id"] for line in done.stdout.splitlines()}
    for _ in range(2):
        expect(listed("-s", "stopped") == {stopped}, listed("-s", "stopped"))
        expect(listed("-s", "complete") == set(ended), listed("-s", "complete"))
        expect(listed("-s", "stopped,complete") == listed() == {stopped, *ended}, listed())
        expect(listed("-s", "open") == set(), listed("-s", "open"))
        shutil.rmtree(box.logs + "/ledger", ignore_errors=True)  # the same without it


def many_at_once(box: DaemonBox):
    """A daemon's ends share syncs; every one has its entry, and what a kill took comes late."""
    box.serve()
    workflow, scenario = simple(box)
    sids = [box.submit(workflow, scenario) for _ in range(40)]
    for sid in sids:
        box.wait_status(sid, "complete")
    box.until(lambda: len(ledger(box)) == 40, "entries are missing")
    box.end(signal.SIGKILL)
    os.unlink(box.logs + "/ledger/heads.log")
    box.serve()
    box.until(lambda: len(ledger(box)) == 40, "entries are missing")
    expect(all(e["late"] for e in ledger(box)), ledger(box))
    box.end()
    done = box.segue("verify", box.logs)
    expect(done.returncode == 0 and done.stdout.count(b"sealed late") == 40, done.stdout)


def gone_from_one_look_to_the_next(box):
    """A log that is listed and cannot be read any more, as a name that leads nowhere: no error where a
    person removed it, or nobody knows of it."""
    _, known = run(box)
    _, removed = run(box)
    run(box)
    box.segue("rm", os.path.basename(removed)[:-7], "-l", box.logs, status=0)
    nobodys = box.logs + "/01990000-0000-7000-8000-000000000001.ndjson"
    for path in (removed, nobodys):
        os.symlink(box.dir + "/none", path)
    expect([s["state"] for s in verify(box)] == ["complete"] * 2, "those that are there")
    expect(box.segue("verify", nobodys).returncode == 2, "it was named")
    os.remove(known)
    os.symlink(box.dir + "/none", known)
    said = verify(box, status=1)
    expect([s["session"] for s in said if s["state"] == "missing"] == [os.path.basename(known)[:-7]], said)


CASES = [gone_from_one_look_to_the_next, ends_are_sealed, killed_between, failed_entries, changed_logs_are_found,
         many_logs, removed_by_a_person,
         a_changed_ledger,
         signed_heads, a_cut_is_no_rewriting, lists_by_status,
         many_at_once]

if __name__ == "__main__":
    sys.exit(main(CASES))
