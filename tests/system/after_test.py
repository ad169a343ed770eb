#!/usr/bin/env python3
"""Sessions that begin after others: in a folder of logs and over a shared store."""
import json
import os
import sys

from daemon import DaemonBox
from support import SANITIZED, expect, main, of_type, records, slack, verified
from timers_test import submit
from web_gate_test import WebBox

# Each waits for a file of its task's name, whose content it exits with: 0 completes, 1 aborts, 2 names no rule.
WORKFLOW = """
name: gated
movements:
  - name: work
    command: [sh, -c, 'echo {task} >> order; while ! read code < go-{task}; do sleep 0.02; done 2>/dev/null; exit $code']
    rules:
      - {condition: when(exit == 0), next: COMPLETE}
      - {condition: when(exit == 1), next: ABORT}
"""


def give(box, task, *words, **more):
    return submit(box, "--no-lock", *words, workflow=box.file("g.yaml", WORKFLOW.replace("{task}", task)), **more)


def let(box, task, code=0):
    box.file(f"work/go-{task}", f"{code}\n")


def order(box):
    try:
        with open(box.cwd + "/order", encoding="ascii") as f:
            return f.read().split()
    except FileNotFoundError:
        return []


def waits_for(box, sid, *ids):
    """In all views."""
    for value in (box.session(sid), json.loads(box.segue("ls", "--json", "-s", "waiting", "-n", "1").stdout),
                  box.get("/v1/sessions?status=waiting")["sessions"][0]):
        expect(value["id"] == sid and value["status"] == "waiting", value)
        expect(value["waiting"]["for"] == "after" and value["waiting"]["sessions"] == list(ids), value)
        expect(all(i in value["message"] for i in ids), value)
    said = box.segue("show", sid).stdout.decode()
    expect("waiting: waits " in said and all(i in said for i in ids), said)


def stopped_for(box, sid, *says):
    """It waits for a person."""
    box.until(lambda: len(records(box.log(sid))) == 2, "it does not stop")
    stop = records(box.log(sid))[-1]
    expect(stop["type"] == "session_stop" and stop["reason"] == "after", stop)
    expect(all(s in stop["message"] for s in says), stop)
    box.until(lambda: box.session(sid)["status"] in ("needs_input", "stopped"), "its status", box.session(sid))


def a_chain(box: DaemonBox):
    box.serve()
    a, _ = give(box, "a")
    b, _ = give(box, "b", "--after", a[:13])
    c, _ = give(box, "c", "--after", b, "--after", f"{a}")  # fan-in
    waits_for(box, c, b, a)
    other, _ = give(box, "other")
    box.until(lambda: order(box) == ["a", "other"], "those that wait for nobody begin", order(box))
    status, value = box.ask("POST", f"/v1/sessions/{b}/resume")
    expect(status == 409 and "--now" in value["detail"], value)
    let(box, "a")
    box.until(lambda: order(box) == ["a", "other", "b"], "b begins", order(box))
    box.process.kill()
    box.process.wait()
    let(box, "b")
    box.serve()
    let(box, "c")
    let(box, "other")
    for sid in (a, b, c, other):
        box.wait_status(sid, "complete")
    done, _ = give(box, "c", "--after", f"{a},{c}")  # they are complete already
    box.wait_status(done, "complete")
    expect(records(box.log(b))[0]["config"]["after"] == [a], "the log says it")
    box.end()
    box.check_all()
    verified(box, *box.log_paths())


def last_is_resolved_where_one_stands(box: DaemonBox):
    box.serve()
    a, _ = give(box, "a")
    b, _ = give(box, "b", "--after", "last")
    waits_for(box, b, a)


def a_failing_predecessor(box: DaemonBox):
    box.serve("--max-sessions", "3")
    aborts, cancelled, lost, busy = (give(box, t)[0] for t in ("aborts", "cancelled", "lost", "busy"))
    box.until(lambda: len(order(box)) == 3, "they begin")
    after = {sid: give(box, "never", "--after", f"{sid},{busy}")[0] for sid in (aborts, cancelled, lost)}
    any_end = [give(box, "any", "--after-any-end", "--after", sid)[0] for sid in (aborts, cancelled, lost)]
    deep, _ = give(box, "never", "--after", after[aborts])
    let(box, "lost", 2)  # no rule: it can still complete
    box.wait_status(lost, "rule_no_match")
    let(box, "aborts", 1)
    stopped_for(box, after[aborts], aborts, "abort", "--now")
    expect(box.segue("cancel", cancelled).returncode == 0, "cancel")
    stopped_for(box, after[cancelled], cancelled, "cancelled")
    box.until(lambda: order(box).count("busy") == 1, "a place is free")
    let(box, "any")
    for sid in any_end:
        box.wait_status(sid, "complete")
    waits_for(box, deep, after[aborts])  # it can be resumed
    expect(box.session(after[lost])["status"] == "waiting", "a person may take it further")
    late, _ = give(box, "never", "--after", cancelled)
    stopped_for(box, late, cancelled)
    box.process.kill()
    box.process.wait()
    box.serve()
    expect(box.session(deep)["status"] == "waiting" and len(records(box.log(late))) == 2, "as before")
    expect("never" not in order(box), order(box))
    box.check_all()
    verified(box, *box.log_paths())


def a_person_lets_it_go(box: DaemonBox):
    box.serve()
    a, _ = give(box, "a")
    b, _ = give(box, "b", "--after", a)
    c, _ = give(box, "c", "--after", a)
    e, _ = give(box, "e", "--after", a)
    for task in "bce":
        let(box, task)
    status, _ = box.ask("POST", f"/v1/sessions/{b}/resume", {"now": True})
    expect(status == 202, status)
    box.wait_status(b, "complete")
    resumed = of_type(records(box.log(b)), "session_resume")
    expect(len(resumed) == 1 and resumed[0]["changed"] == {"after": []} and resumed[0]["by"]["name"], resumed)
    box.segue("cancel", a)
    stopped_for(box, c, a)
    said = box.segue("show", c).stdout.decode()
    expect("--now" in said, said)
    for words in (("--daemon",), ()):
        done = box.segue("resume", c, *words)
        expect(done.returncode != 0 and b"--now" in done.stderr, done)
    expect(box.segue("resume", c, "--daemon", "--now").returncode == 0, "resume")
    box.wait_status(c, "complete")
    stopped_for(box, e, a)
    expect(box.segue("resume", e, "--now", "-q").returncode == 0, "here")
    box.wait_status(e, "complete")
    done = box.segue("resume", give(box, "x")[0], "--now", "--daemon")
    expect(done.returncode != 0, done)
    box.check_all()
    verified(box, *box.log_paths())


def in_the_window(box: WebBox):
    """It says what the session waits for, and lets it go."""
    box.serve()
    window = box.window()
    a, _ = give(box, "a")
    b, _ = give(box, "b", "--after", a)
    c, _ = give(box, "c", "--after", a)
    rows = window.ask("GET", "")[2].decode()
    expect(f"waits until {a} is complete" in rows, rows)
    box.segue("cancel", a)
    stopped_for(box, c, a)
    (waits,) = [i for i in box.get("/v1/inbox")["inbox"] if i["id"] == c]
    expect(waits["command"].endswith(" --now"), waits)
    expect("data-body='{\"now\":true}'" in window.ask("GET", "inbox")[2].decode(), "the inbox offers it")
    d, _ = give(box, "d", "--after", c)
    for sid, says in ((d, f"waits until {c} is complete"), (c, f"{a}, which ended: cancelled")):
        page = window.ask("GET", f"s/{sid}/")[2].decode()
        expect(says in page and "data-body='{\"now\":true}'" in page, sid, page)
        let(box, "c" if sid == c else "d")
        expect(window.ask("POST", f"s/{sid}/resume", body={"now": True})[0] == 202, "resume")
        box.wait_status(sid, "complete")
    stopped_for(box, b, a)
    box.check_all()


def unknown_ids_queue_nothing(box: DaemonBox):
    box.serve()
    a, _ = give(box, "a")
    for word in ("01900000", a + ",", "", "../x", "01900000-0000-7000-8000-000000000000"):
        _, said = give(box, "b", "--after", word, status=2)
        expect("after" in said, said)
    give(box, "b", "--after-any-end", status=2)
    for body in ({"after": a}, {"after": [1]}, {"after": [a, "zz"]}, {"after_any_end": True}, {"after": ["x"] * 257}):
        status, value = box.ask("POST", "/v1/sessions", {"workflow": box.dir + "/g.yaml", "cwd": box.cwd, **body})
        expect(status == 422 and "after" in value["detail"], body, value)
    expect(len(box.log_paths()) == 1, box.log_paths())


def one_that_another_program_runs(box: DaemonBox):
    """It is not the daemon's; or its log is removed."""
    box.serve()
    run = box.start("run", box.file("a.yaml", WORKFLOW.replace("{task}", "a")), "--task", "x", "-q", "--no-lock")
    box.until(lambda: order(box) == ["a"], "it runs")
    a = os.path.basename(box.log_paths()[0])[:36]
    b, _ = give(box, "b", "--after", a)
    waits_for(box, b, a)
    let(box, "a", 2)
    expect(run.wait() == 4, "no rule")
    c, _ = give(box, "c", "--after", a)
    let(box, "b")
    expect(box.segue("resume", a, "--rule", "1", "-q").returncode == 0, "a verdict")
    box.wait_status(b, "complete")
    let(box, "c")
    box.wait_status(c, "complete")
    gone = box.segue("run", box.dir + "/a.yaml", "--task", "x", "-q", "--no-lock")
    expect(gone.returncode == 4, gone)
    gone = max(os.path.basename(p)[:36] for p in box.log_paths())
    never, _ = give(box, "never", "--after", gone)
    expect(box.session(never)["status"] == "waiting", "it waits")
    done = box.segue("rm", gone, "-f")
    expect(done.returncode == 0, done)
    stopped_for(box, never, gone, "removed")


def worked(box):
    with open(f"/proc/{box.process.pid}/stat", encoding="ascii") as f:
        times = f.read().rsplit(")", 1)[1].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def many_wait():
    """Their memory, and that they cost nothing while others work."""
    count = 10000 if os.environ.get("SEGUE_LONG") == "1" else 300
    with DaemonBox() as box:
        box.serve()
        a, _ = give(box, "a")
        before = box.rss_kib()
        body = {"workflow": {"text": WORKFLOW.replace("{task}", "many")}, "cwd": box.cwd, "lock": False, "after": [a]}
        ids = [box.ask("POST", "/v1/sessions", body)[1]["id"] for _ in range(count - 1)]
        expect(SANITIZED or (box.rss_kib() - before) / count < 8, "KiB for each", (box.rss_kib() - before) / count)
        begin = worked(box)
        other, _ = give(box, "other")
        let(box, "other")
        box.wait_status(other, "complete")
        expect(worked(box) - begin < 0.5 * slack(), "seconds of work", worked(box) - begin)
        expect(box.segue("cancel", a).returncode == 0, "cancel")
        stopped_for(box, ids[-1], a)
        box.until(lambda: all(len(records(box.log(i))) == 2 for i in ids[::97]), "all of them stop")


if __name__ == "__main__":
    sys.exit(main([a_chain, last_is_resolved_where_one_stands, a_failing_predecessor, a_person_lets_it_go, in_the_window,
                   unknown_ids_queue_nothing, one_that_another_program_runs, many_wait]))
