#!/usr/bin/env python3
"""What a person says on one machine reaches a session that another worker of the shared store runs: once,
in its running turn, also after that worker was killed."""
import json
import os
import sys

from shared_daemon_test import Fleet
from support import expect, main, need_build, of_type
import postgres
import shared_daemon_test
import steering_test as steering


class Steered(Fleet):
    def begin(self):
        os.mkdir(self.dir + "/calls")
        os.chmod(self.file("claude", steering.CLIENT), 0o755)
        self.config({"sandbox": "off", "providers": {"claude": {"program": self.dir + "/claude", "transport": "native"}}})
        self.serve()
        flow, scenario = self.file("w.yaml", steering.FLOW), self.file("s.json", steering.JUDGE["text"])
        sid = self.submit_to(0, flow, words=("-s", scenario))[0]
        self.at("tool-1")
        self.serve()
        return sid

    def at(self, name):
        self.until(lambda: os.path.exists(f"{self.dir}/at-{name}"), f"the client does not get to {name}")

    def pass_on(self, *names):
        for name in names:
            self.file(name, "")

    def log(self, sid):
        return [json.loads(line) for line in self.segue("show", sid, "--json").stdout.splitlines()]

    def say(self, sid, text, *words, env=None):
        done = self.segue("steer", sid, text, *words, env=env)
        expect(done.returncode == 0 and b"its worker will tell it" in done.stdout, done)

    def kept(self):
        return self.sql("SELECT sum(cardinality(said)) FROM segue.session").strip()


def by_another_daemon_and_by_none(fleet: Steered):
    sid = fleet.begin()
    fleet.say(sid, "by the other daemon", "--socket", fleet.dir + "/run1/s.sock")
    env = {**fleet.env, "XDG_RUNTIME_DIR": fleet.dir + "/nowhere"}
    fleet.say(sid, "by none", env=env)
    fleet.until(lambda: len(of_type(fleet.log(sid), "steer")) == 2, "it is not recorded")
    fleet.until(lambda: fleet.kept() == "0", "it is kept for ever")
    fleet.pass_on("tool-1", "result-1", "tool-2", "result-2")
    fleet.all_complete([sid])
    log = fleet.log(sid)
    said = of_type(log, "steer")
    expect([r["text"] for r in said] == ["by the other daemon", "by none"] and all(r["call"] == 1 for r in said), said)
    read = [r["data"]["said"] for r in of_type(log, "call_event") if r["event"] == "steer"]
    expect(read == [r["seq"] for r in said], read)
    done = fleet.segue("steer", sid, "too late", "--socket", fleet.dir + "/run1/s.sock")
    expect(done.returncode == 1 and b"ended" in done.stderr, done)


def its_worker_dies(fleet: Steered):
    sid = fleet.begin()
    fleet.daemons[0].send_signal(19)  # it stands still: nothing is recorded
    fleet.say(sid, "to the next one", "--socket", fleet.dir + "/run1/s.sock")
    fleet.daemons[0].kill()
    fleet.daemons[0].wait()
    fleet.pass_on("tool-2")
    fleet.until(lambda: fleet.kept() == "0", "it is kept for ever")
    fleet.pass_on("result-2", "tool-3", "result-3")
    fleet.all_complete([sid])
    said = of_type(fleet.log(sid), "steer")
    expect([r["text"] for r in said] == ["to the next one"], said)


if __name__ == "__main__":
    need_build()
    postgres.need()
    with postgres.Server() as shared_daemon_test.SERVER:
        status = main([by_another_daemon_and_by_none, its_worker_dies])
    sys.exit(status)
