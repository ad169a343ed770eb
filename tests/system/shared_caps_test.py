#!/usr/bin/env python3
"""What all workers of a store may use in a day, of the store and of folders: counted there, in one transaction."""
import json
import signal
import sys

import shared_daemon_test
from shared_daemon_test import Fleet
from support import expect, main, need_build, of_type

import postgres  # on the path since shared_daemon_test

LOOP = """
name: loop
provider: script
max_movements: 50
movements:
  - name: work
    instruction: Do the work.
    rules:
      - {condition: when(movement_iteration == 5), next: COMPLETE}
      - {condition: when(true), next: work}
"""


def looping(fleet, delay_ms=20):
    reply = {"text": "did it", "times": 0, "usage": {"input": 300, "output": 100}, "cost": 0.25, "delay_ms": delay_ms}
    return fleet.file("loop.yaml", LOOP), ("-s", fleet.file("replies.json", json.dumps({"replies": [reply]})))


def spent(fleet):
    status = json.loads(fleet.segue("store", "status", "--json").stdout)
    return {row["cap"]: row for row in status["spent"]}


def logs(fleet, ids):
    found = []
    for sid in ids:
        done = fleet.segue("show", sid, "--json")
        found.append([json.loads(line) for line in done.stdout.splitlines()])
    return found


def rest(fleet):
    """Nothing works any more."""
    rows = [json.loads(r) for r in fleet.segue("ls", "--json", "-n", "100").stdout.splitlines()]
    return bool(rows) and all(r["status"] in ("needs_input", "complete") for r in rows)


def two_daemons_share_a_folder():
    """Of ten sessions in two daemons exactly twelve calls begin, and the sums are those of the logs."""
    with Fleet("30s") as fleet:
        fleet.config("budget: {folders: {%s: {day: {calls: 12}}}}\n" % fleet.cwd)
        flow, words = looping(fleet)
        ids = fleet.submit(flow, 6, words=words)
        for _ in range(2):
            fleet.serve("-n", "3")
        fleet.until(lambda: rest(fleet), "all stop", told=fleet.standing)
        began = spent(fleet)
        ended = [log for log in logs(fleet, ids)]
        expect(list(began) == [fleet.cwd] and began[fleet.cwd]["calls"] == 12, began)
        told = sum(1 for log in ended for r in of_type(log, "call_end") if r.get("usage"))
        expect(told == 12, "calls that were answered:", told)
        fleet.until(lambda: spent(fleet)[fleet.cwd]["tokens"] == 12 * 400, "all is booked", told=lambda: spent(fleet))
        expect(spent(fleet)[fleet.cwd]["cost"] == 3, spent(fleet))
        stopped = [log[-1] for log in ended if log[-1]["type"] == "session_stop"]
        expect(stopped and all(r["reason"] == "budget" and r["budget"]["of"] == "folder" and
                               r["budget"]["folder"] == fleet.cwd and r["budget"]["limit"] == 12 for r in stopped), stopped)
        expect(all("of the folder " in r["message"] and "config.yaml" in r["message"] for r in stopped), stopped)
        report = json.loads(fleet.segue("report", "--json").stdout)
        expect([b["used"] for b in report["budgets"]] == [12], report["budgets"])


def more_lets_them_go_on():
    with Fleet("30s") as fleet:
        fleet.config("budget: {store: {day: {cost: 0.5}}}\n")
        flow, words = looping(fleet)
        ids = fleet.submit(flow, 1, words=words)
        fleet.serve("-n", "3")
        fleet.until(lambda: rest(fleet), "it stops", told=fleet.standing)
        log = logs(fleet, ids)[0]
        expect(log[-1]["budget"]["of"] == "store" and log[-1]["budget"]["used"] == 0.5, log[-1])
        expect("--add-budget" not in fleet.segue("inbox", "--json").stdout.decode(), "the way to raise it")
        fleet.config("budget: {store: {day: {cost: 5}}}\n")
        fleet.daemons[0].send_signal(signal.SIGHUP)
        fleet.segue("resume", ids[0])
        fleet.all_complete(ids)
        expect(spent(fleet)[""]["calls"] == 5, spent(fleet))


def a_killed_worker_counts_once():
    """The call of a dead worker is repeated by another one: one call, whatever attempts it takes."""
    with Fleet("1s") as fleet:
        fleet.config("budget: {store: {day: {calls: 100}}}\n")
        flow, words = looping(fleet, delay_ms=300)
        ids = fleet.submit(flow, 2, words=words)
        first = fleet.serve("-n", "2")
        fleet.until(lambda: spent(fleet).get("", {}).get("calls", 0) >= 2, "calls are taken")
        first.send_signal(signal.SIGKILL)
        first.wait()
        fleet.serve("-n", "2")
        fleet.all_complete(ids)
        calls = sum(len({r["call"] for r in of_type(log, "call_start")}) for log in logs(fleet, ids))
        expect(calls == 10, calls)
        fleet.until(lambda: spent(fleet)[""]["calls"] == 10, "each once", told=lambda: spent(fleet))


def midnight_and_hostile_words():
    """Yesterday counts for nothing; who has no lease books nothing."""
    with Fleet("30s") as fleet:
        fleet.config("budget: {store: {day: {calls: 5}}}\n")
        fleet.sql("INSERT INTO segue.spent (day, cap, session, call, attempt, begun, tokens) SELECT "
                  "(clock_timestamp() AT TIME ZONE 'UTC')::date - d, '', gen_random_uuid(), 1, 1, true, 9 "
                  "FROM generate_series(1, 60) d")
        flow, words = looping(fleet)
        ids = fleet.submit(flow, 1, words=words)
        fleet.serve("-n", "1")
        fleet.all_complete(ids)
        expect(spent(fleet)[""]["calls"] == 5, spent(fleet))
        expect(int(fleet.sql("SELECT count(*) FROM segue.spent WHERE day < CURRENT_DATE - 45")) == 0, "old days stay")
        for call in ("segue.spent_take(gen_random_uuid(), gen_random_uuid(), 1, 1, '{\"\"}', '{-1,-1,-1,-1}')",
                     "segue.spent_add(gen_random_uuid(), gen_random_uuid(), 1, 1, '{\"\"}', 1, 1, 1)"):
            expect(fleet.sql("SELECT " + call).strip() == "lease", call)
        expect(spent(fleet)[""]["calls"] == 5, spent(fleet))


if __name__ == "__main__":
    need_build()
    postgres.need()
    with postgres.Server() as shared_daemon_test.SERVER:
        status = main([two_daemons_share_a_folder, more_lets_them_go_on, a_killed_worker_counts_once,
                       midnight_and_hostile_words])
    sys.exit(status)
