#!/usr/bin/env python3
"""Sessions that timers submit: of those with one key one runs at a time, and late ones do not begin."""
import json
import sys
import time

from daemon import DaemonBox
from support import expect, main, of_type, records, slack, verified

WAITS = """
name: waits
movements:
  - name: wait
    command: [sh, -c, 'echo begun >> begun; while ! test -e "$(head -c 2 go 2>/dev/null)"; do sleep 0.02; done']
    rules: [{condition: when(exit == 0), next: COMPLETE}]
"""
ASKS = """
name: asks
movements:
  - name: which
    ask: {question: which?}
    rules: [{condition: when(true), next: COMPLETE}]
"""


def submit(box, *words, status=0, workflow=None):
    done = box.segue("submit", workflow or box.file("w.yaml", WAITS), "--task", "x", *words, status=status)
    return done.stdout.decode().strip(), done.stderr.decode()


def begun(box):
    try:
        with open(box.cwd + "/begun", encoding="ascii") as f:
            return len(f.readlines())
    except FileNotFoundError:
        return 0


def go(box):
    box.file("work/go", "go")


def the_second_is_skipped(box: DaemonBox):
    box.serve()
    first, said = submit(box, "--unique", "nightly")
    expect(said == "", said)
    again, said = submit(box, "--unique", "nightly")
    expect(again == first and "nightly is already running: nothing was submitted" in said, again, said)
    again, _ = submit(box, "--unique", "nightly", "--if-running", "skip", "--json")
    expect(json.loads(again)["id"] == first, again)
    other, said = submit(box, "--unique", "weekly", "--cwd", box.dir + "/tmp")
    expect(other != first and said == "", said)
    status, value = box.ask("POST", "/v1/sessions", {
        "workflow": box.dir + "/w.yaml", "cwd": box.cwd, "unique": "nightly"})
    expect(status == 200 and value["id"] == first, status, value)
    go(box)
    box.wait_status(first, "complete")
    third, said = submit(box, "--unique", "nightly")
    expect(third != first and said == "", said)
    box.wait_status(third, "complete")
    box.ask("POST", f"/v1/sessions/{other}/cancel")
    expect(len(box.log_paths()) == 3, box.log_paths())
    box.check_all()
    verified(box, *box.log_paths())


def the_second_waits_also_over_a_crash(box: DaemonBox):
    box.serve()
    words = ("--unique", "nightly", "--if-running", "queue", "--no-lock")
    ids = [submit(box, *words)[0] for _ in range(3)]
    expect(len(set(ids)) == 3, ids)
    box.until(lambda: begun(box) == 1, "it does not begin")
    free, _ = submit(box, "--no-lock")  # without a key it does not wait behind them
    box.until(lambda: begun(box) == 2, "it waits")
    expect([box.session(i)["status"] for i in ids] == ["running", "queued", "queued"], ids)
    box.process.kill()
    box.process.wait()
    box.serve()
    box.until(lambda: begun(box) == 4, "they do not go on", begun(box))
    expect([box.session(i)["status"] for i in ids] == ["running", "queued", "queued"], ids)
    go(box)
    for sid in ids + [free]:
        box.wait_status(sid, "complete")
    ends = [records(box.log(i)) for i in ids]
    for before, after in zip(ends, ends[1:]):
        expect(before[-1]["ts"] <= of_type(after, "turn_start")[0]["ts"], "two ran at once")
    verified(box, *box.log_paths())


def one_that_asks_does_not_run(box: DaemonBox):
    box.serve()
    workflow = box.file("asks.yaml", ASKS)
    first, _ = submit(box, "--unique", "k", workflow=workflow)
    box.wait_status(first, "needs_input")
    second, said = submit(box, "--unique", "k", workflow=workflow)
    expect(second != first and said == "", said)


def at(ms_from_now):
    when = time.time() + ms_from_now / 1000
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(when)) + ".%03dZ" % (when % 1 * 1000)


def late_ones_do_not_begin(box: DaemonBox):
    box.serve("--max-sessions", "1")
    first, _ = submit(box)
    box.until(lambda: begun(box) == 1, "it does not begin")
    late, _ = submit(box, "--not-after", at(round(300 * slack())))  # submit must still be in time
    early, _ = submit(box, "--not-after", at(3600000))
    limit = records(box.log(late))[0]["config"]["not_after"]
    box.until(lambda: at(0) > limit, "time stands still")
    go(box)
    box.wait_status(first, "complete")
    box.wait_status(early, "complete")
    ended = box.wait_status(late, "cancelled")
    expect(ended["message"] == f"it did not begin before {limit}" and ended["turns"] == 0, ended)
    expect(begun(box) == 2, "it began")
    box.end()
    verified(box, *box.log_paths())


def a_late_timer_submits_nothing(box: DaemonBox):
    box.env["TZ"] = "UTC"
    now = time.time()
    hour_ago, in_an_hour = (time.strftime("%H:%M", time.gmtime(now + s)) for s in (-3600, 3600))
    printed, said = submit(box, "--not-after", hour_ago)  # no daemon is asked
    expect(printed == "" and f"it is past {hour_ago}: nothing was submitted" in said, printed, said)
    box.serve()
    sid, _ = submit(box, "--not-after", in_an_hour)
    limit = records(box.log(sid))[0]["config"]["not_after"]
    expect(limit.endswith(in_an_hour + ":00.000Z") and limit > at(0), limit)
    go(box)
    box.wait_status(sid, "complete")


def mistakes(box: DaemonBox):
    box.serve()
    for words, word in ((("--if-running", "skip"), "needs --unique"),
                        (("--unique", "k", "--if-running", "stop"), "skip or queue"),
                        (("--unique", ""), "1 to 128 bytes"),
                        (("--unique", "k" * 129), "1 to 128 bytes"),
                        (("--not-after", "6"), "time of the day, such as 06:00"),
                        (("--not-after", "24:00"), "time of the day"),
                        (("--not-after", "06:00 PM"), "time of the day")):
        _, said = submit(box, *words, status=2)
        expect(word in said, words, said)
    for member, word in (({"if_running": "skip"}, "needs unique"), ({"unique": 1}, "must be a text"),
                         ({"not_after": "06:00"}, "a time in UTC"), ({"not_after": at(-1000)}, "has passed"),
                         ({"uniqe": "k"}, "did you mean")):
        status, said = box.ask("POST", "/v1/sessions", {
            "workflow": box.file("w.yaml", WAITS), "cwd": box.cwd, **member})
        expect(status == 422 and word in said["detail"], member, status, said)
    expect(box.log_paths() == [], "a session began")
    box.check_all()


if __name__ == "__main__":
    sys.exit(main([the_second_is_skipped, the_second_waits_also_over_a_crash, one_that_asks_does_not_run,
                   late_ones_do_not_begin, a_late_timer_submits_nothing, mistakes]))
