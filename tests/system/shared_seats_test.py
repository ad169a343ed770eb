#!/usr/bin/env python3
"""Places at a provider that all workers of a store share, and pauses that one of them was told of."""
import json
import signal
import sys

import shared_daemon_test
from shared_daemon_test import Fleet
from support import end_of, expect, main, need_build

import postgres  # on the path since shared_daemon_test

BUSY = """
name: busy
initial_movement: a
max_movements: 3
provider: script
movements:
  - name: a
    command: [sh, -c, 'echo begin >> %(notes)s; until [ -e %(go)s ]; do sleep 0.05; done; sleep 0.1; echo end >> %(notes)s']
    rules: [{condition: when(exit == 0), next: COMPLETE}]
"""
SCRIPTED = """
name: scripted
initial_movement: a
max_movements: 3
provider: script
movements:
  - name: a
    instruction: go on
    rules: [{condition: done, next: COMPLETE}]
"""


def busy(fleet):
    """Its call lasts until somebody makes the file `go`."""
    return fleet.file("busy.yaml", BUSY % {"notes": fleet.dir + "/notes", "go": fleet.dir + "/go"})


def most_at_once(fleet):
    with open(fleet.dir + "/notes", "a+", encoding="utf-8") as f:
        f.seek(0)
        most = now = 0
        for line in f:
            now += 1 if line == "begin\n" else -1
            most = max(most, now)
    return most


def limit(fleet, *words):
    done = fleet.segue("store", "limit", *words, "--json")
    expect(done.returncode == 0, done)
    return json.loads(done.stdout)


def provider_row(fleet, name):
    status = json.loads(fleet.segue("store", "status", "--json").stdout)
    return next((p for p in status["providers"] if p["name"] == name), None)


def waiting(fleet):
    return [json.loads(r) for r in fleet.segue("ls", "-s", "waiting", "--json").stdout.splitlines()]


def so_many_at_once():
    with Fleet("30s") as fleet:
        expect(limit(fleet, "command", "2") == {"provider": "command", "limit": 2}, "limit")
        ids = fleet.submit(busy(fleet), 8)
        for _ in range(2):
            fleet.serve("-n", "4")
        fleet.until(lambda: provider_row(fleet, "command")["taken"] == 2, "places are taken")
        fleet.until(lambda: waiting(fleet), "others wait")
        waits = waiting(fleet)
        fleet.file("go", "")
        fleet.all_complete(ids)
        expect(most_at_once(fleet) == 2, "at once:", most_at_once(fleet))
        expect(provider_row(fleet, "command") == {"name": "command", "limit": 2, "taken": 0, "cools_s": 0},
               provider_row(fleet, "command"))
        expect(all(r["waiting"]["for"] == "seats" for r in waits), waits)
        expect(b"1 of" not in fleet.segue("store", "status").stdout and
               b"0 of 2 places taken" in fleet.segue("store", "status").stdout, "status for people")


def a_limit_goes():
    """Who waits for a place goes on at once when there is no limit any more."""
    with Fleet("30s") as fleet:
        limit(fleet, "command", "1")
        ids = fleet.submit(busy(fleet), 3)
        fleet.serve("-n", "4")
        fleet.until(lambda: provider_row(fleet, "command")["taken"] == 1, "a place is taken")
        expect(limit(fleet, "command", "none")["limit"] is None, "no limit")
        fleet.until(lambda: most_at_once(fleet) > 1, "it waits for a place that it does not need", told=fleet.standing)
        fleet.file("go", "")
        fleet.all_complete(ids)
        expect(provider_row(fleet, "command") is None, "it has still a row")


def a_dead_worker_has_no_place():
    with Fleet("1s") as fleet:
        limit(fleet, "command", "1")
        first = fleet.serve("-n", "1")
        ids = fleet.submit(busy(fleet))
        fleet.until(lambda: provider_row(fleet, "command")["taken"] == 1, "the place is taken")
        first.send_signal(signal.SIGKILL)
        first.wait()
        fleet.file("go", "")
        fleet.serve("-n", "1")
        fleet.all_complete(ids)
        expect(provider_row(fleet, "command")["taken"] == 0, "the dead one's place")


def one_that_could_not_be_given_back():
    """The store did not answer: the worker lives on, and gives the place back once it does."""
    with Fleet("5m") as fleet:
        limit(fleet, "command", "1")
        fleet.file("go", "")
        ids = fleet.submit(busy(fleet), 2)
        fleet.env["SEGUE_FAULT"] = "fail:seat:1-2"
        fleet.serve("-n", "2")
        del fleet.env["SEGUE_FAULT"]
        fleet.all_complete(ids)
        fleet.until(lambda: provider_row(fleet, "command")["taken"] == 0, "all are given back")


def two_names_of_one_account():
    with Fleet("30s") as fleet:
        fleet.config("providers: {command: {pool: account}, script: {pool: account}}\n")
        limit(fleet, "account", "1")
        ids = fleet.submit(busy(fleet), 3)
        fleet.serve("-n", "4")
        fleet.until(lambda: provider_row(fleet, "account")["taken"] == 1, "the place is taken")
        fleet.file("go", "")
        fleet.all_complete(ids)
        expect(most_at_once(fleet) == 1, "at once:", most_at_once(fleet))


def told_by_one_to_all():
    """A pause that a backend asked of one worker holds for those that never called it."""
    with Fleet("30s") as fleet:
        flow = fleet.file("scripted.yaml", SCRIPTED)
        late = fleet.file("late.json", json.dumps({"replies": [{"times": 0, "error": {
            "class": "rate_limit", "message": "later", "retry_after_ms": 3600000}}]}))
        first = fleet.start("run", flow, "--scenario", late, "--task", "t")
        fleet.until(lambda: (provider_row(fleet, "script") or {"cools_s": 0})["cools_s"] > 3000,
                    "the store knows")
        fleet.serve()
        sent = fleet.segue("submit", flow, "--scenario", late, "--cwd", fleet.cwd, "--task", "t")
        sid = sent.stdout.decode().strip()
        expect(sent.returncode == 0 and sid, sent)

        fleet.until(lambda: [r for r in waiting(fleet) if r["id"] == sid and
                             r["waiting"]["for"] == "cooldown"], "the other one waits")
        expect(b"left alone for" in fleet.segue("store", "status").stdout, "status for people")
        expect(fleet.segue("cancel", sid).returncode == 0, "cancel")
        first.terminate()
        end_of(first)


def wrong_words(fleet: Fleet):
    for words, says in ((("command",), b"name the provider and the limit"),
                        (("command", "0"), b"1 to"),
                        (("command", "many"), b"1 to"), (("command", "4x"), b"1 to"),
                        (("command", "99999999999"), b"1 to"),
                        (("two words", "4"), b"no spaces"), (("", "4"), b"no spaces"),
                        (("x" * 129, "4"), b"128 bytes"),
                        (("command", "1", "2"), b"name the provider and the limit")):
        done = fleet.segue("store", "limit", *words)
        expect(done.returncode == 2 and says in done.stderr, words, done)
    fleet.config("providers: {command: {pool: 'a b'}}\n")
    fleet.file("go", "")
    done = fleet.segue("run", busy(fleet), "--task", "t")
    expect(done.returncode == 2 and b"providers.command.pool" in done.stderr, done)


if __name__ == "__main__":
    need_build()
    postgres.need()
    with postgres.Server() as shared_daemon_test.SERVER:
        status = main([so_many_at_once, a_limit_goes, a_dead_worker_has_no_place,
                       one_that_could_not_be_given_back,
                       two_names_of_one_account, told_by_one_to_all, wrong_words])
    sys.exit(status)
