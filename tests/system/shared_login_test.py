#!/usr/bin/env python3
"""A refused login over a shared store: a resume, by another daemon or by none, has the worker that waits for it try
it now, and its next look at the provider is minutes away."""
import json
import os
import sys

from outage_test import FLOW, Server
from shared_daemon_test import Fleet
from support import expect, main, need_build, of_type
import outage_test
import postgres
import shared_daemon_test


def by_another_daemon_and_by_none():
    for how in ("another", "none"):
        with Server(status=401) as server, Fleet() as fleet:
            outage_test.config(fleet, server.url)
            fleet.serve()
            flow = fleet.file("flow.yaml", FLOW)

            def status(sid):
                return json.loads(fleet.segue("show", sid, "--as", "view").stdout)["status"]

            def log(sid):
                return [json.loads(line) for line in fleet.segue("show", sid, "--json").stdout.splitlines()]
            first = fleet.submit_to(0, flow)[0]
            fleet.until(lambda: of_type(log(first), "session_stop"), "it does not stop")
            waits = fleet.submit_to(0, flow)[0]
            fleet.until(lambda: status(waits) == "waiting", "it does not wait")
            server.back()
            env, words = {}, ["--daemon", "--store", fleet.store]
            if how == "another":
                fleet.serve()
                env, words = {"SEGUE_STORE": ""}, ["--daemon", "--socket", fleet.dir + "/run1/s.sock"]
            done = fleet.segue("resume", waits, *words, env=env)
            expect(done.returncode == 0 and waits.encode() in done.stdout, how, done)
            fleet.until(lambda: status(waits) == "complete", "the login is not tried")
            expect(not of_type(log(waits), "session_stop"), how, log(waits))


if __name__ == "__main__":
    need_build()
    postgres.need()
    with postgres.Server() as shared_daemon_test.SERVER:
        sys.exit(main([by_another_daemon_and_by_none]))
