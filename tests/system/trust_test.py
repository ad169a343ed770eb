#!/usr/bin/env python3
"""Which workflows may have more than a sandbox gives: who is asked, when, and what is remembered. And that no call
changes what is below .segue, which the next run would run."""
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

from daemon import ROOT, DaemonBox
from support import SEGUE, Box, expect, main, of_type, records, skip, verified

FLOW = """
name: w
params: {check: {description: the check}}
movements:
  - {name: work, command: [sh, -c, "{input:check}"], rules: [{condition: when(true), next: COMPLETE}]}
"""
HELD = """
name: held
movements:
  - {name: work, command: ["true"], sandbox: guard, rules: [{condition: when(true), next: COMPLETE}]}
"""
AGENT = """
name: agent
provider: stranger
movements:
  - name: work
    edit: true
    instruction: Do it
    judge: {stages: [phase1_tag]}
    rules: [{condition: done, next: COMPLETE}]
"""
ASKS = "  work: runs 'sh' '-c' '{input:check}' without a sandbox\n"


class Own(Box):
    """A person's box: nothing is taken as given, and logs are where they are by default."""

    def __init__(self):
        super().__init__()
        self.trusts = []
        self.logs = self.env["XDG_STATE_HOME"] + "/segue/logs"
        self.git("init", "-q", ".")

    def git(self, *words, cwd=None):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.example", *words], check=True, cwd=cwd or self.cwd, env=self.env)

    def project(self, text, name="w"):
        os.makedirs(self.cwd + "/.segue/workflows", exist_ok=True)
        return self.file(f"work/.segue/workflows/{name}.yaml", text)

    def run(self, word="w", *more, status=0, **kw):
        return self.segue("run", word, "-t", "x", "-i", "check=true", *more, status=status, **kw)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-qm", "x")


def start_of(log):
    return records(log)[0]["config"].get("trust")


def entries(box):
    folder = box.env["XDG_STATE_HOME"] + "/segue/trust"
    return [f"{folder}/{n}" for n in os.listdir(folder)] if os.path.isdir(folder) else []


def a_name_is_asked_for_once(box: Own):
    box.project(FLOW)
    box.commit()
    refused = box.run(status=2, err=[ASKS, "w is not trusted: look at it, then segue trust w\n"])
    expect(refused.stdout == b"" and box.log_paths() == [] and entries(box) == [], refused)
    for words in (["lint", "w"], ["plan", "w", "-t", "x", "-i", "check=true"], ["graph", "w"], ["prompt", "w", "work"]):
        expect(b"trust" not in box.segue(*words).stderr, words)
    box.segue("trust", "w", status=0, out=["trusted: " + os.path.realpath(box.cwd), ASKS])
    expect(box.run().stderr == b"", "trusted")
    expect(box.segue("run", "w", "-t", "x", "-i", "check=exit 0", status=0).stderr == b"", "another input is the person's own word")
    expect([stat.S_IMODE(os.stat(e).st_mode) for e in entries(box)] == [0o600], entries(box))
    box.git("worktree", "add", "-q", "../tree")
    expect(box.run("w", "-C", box.dir + "/tree").stderr == b"", "worktrees share it")
    clone = box.dir + "/clone"
    box.git("clone", "-q", ".", clone)
    box.run("w", "-C", clone, status=2)
    expect(all(start_of(p) is None for p in box.log_paths()), "nothing was taken as given")


def worktrees_of_a_bare_repository_share_it(box: Own):
    box.project(FLOW)
    box.commit()
    box.git("clone", "-q", "--bare", ".", "../bare.git")
    for name in ("one", "two"):
        box.git("worktree", "add", "-q", "-b", name, f"../{name}", cwd=box.dir + "/bare.git")
    box.segue("trust", "w", "-C", box.dir + "/one", status=0)
    box.run("w", "-C", box.dir + "/two")
    box.run(status=2)


def a_change_is_said_and_more_is_asked_for(box: Own):
    flow = box.project(FLOW)
    box.segue("trust", "w", status=0)
    told = FLOW.replace("name: w\n", "name: w\ndescription: |\n  one\n  two\n")
    box.project(told)
    box.run(err="w.yaml changed since your last run (+3 -0)\n")
    expect(box.run().stderr == b"", "said once")
    box.project(told.replace("params", "# a comment\nparams"))
    expect(box.run().stderr == b"", "a comment changes nothing")
    os.makedirs(box.cwd + "/.segue/facets/personas")
    box.file("work/.segue/facets/personas/p.md", "one")
    box.project(told + "  - {name: never, persona: p, instruction: Do it., rules: [{condition: when(true), next: COMPLETE}]}\n")
    box.run(err=b"w.yaml changed since your last run (+1 -1)\n")
    box.file("work/.segue/facets/personas/p.md", "two")
    box.run(err=b"what w.yaml refers to changed since your last run\n")
    box.project(FLOW.replace("sh, -c", "bash, -c"))
    for word in ("w", flow, "./.segue/workflows/w.yaml"):
        box.run(word, status=2, err="work: runs 'bash' '-c'")
    box.run("w", "--trust")
    expect(start_of(box.log_paths()[-1]) == "--trust", "the log says so")
    expect(box.run().stderr == b"" and start_of(box.log_paths()[-1]) is None, "it is remembered")
    box.segue("trust", "--list", status=0, out=flow.replace(box.cwd, os.path.realpath(box.cwd)))
    box.segue("trust", "--remove", "w", status=0)
    expect(box.segue("trust", "--list").stdout == b"", "removed")
    box.run(status=2)
    box.segue("check", ROOT + "/schemas/session-log.json", box.file("line.json", open(box.log_paths()[-2], encoding="utf-8").readline()), status=0)


def what_facets_and_called_files_ask_for_counts(box: Own):
    box.project("name: w\nmovements:\n  - {name: sub, call: ./inner.yaml, rules: [{condition: COMPLETE, next: COMPLETE}]}\n")
    inner = HELD.replace("guard", "%s")
    box.project(inner % "guard", "inner")
    box.segue("run", "w", "-t", "x", status=0)
    box.project(inner % "off", "inner")
    box.segue("run", "w", "-t", "x", status=2, err="sub/work: runs 'true' without a sandbox")


def a_typed_path_is_consent_once(box: Own):
    flow = box.file("work/f.yaml", FLOW)
    expect(box.run("f.yaml").stderr == b"" and start_of(box.log_paths()[-1]) is None, "consent")
    box.file("work/f.yaml", FLOW.replace("sh, -c", "bash, -c"))
    box.run(flow, status=2, err="is not trusted")
    box.file("work/g.yaml", HELD)  # it asks for nothing, and then for more than when it last ran
    box.segue("run", "./g.yaml", "-t", "x", status=0)
    box.file("work/g.yaml", HELD.replace("guard", "off"))
    box.segue("run", "./g.yaml", "-t", "x", status=2, err="work: runs 'true' without a sandbox")


def inputs_hide_nothing(box: Own):
    """A file that is right only with its inputs is looked at with them."""
    box.project(FLOW.replace("command:", 'timeout: "{input:check}", command:').replace('"{input:check}"],', "echo no],"))
    box.segue("run", "w", "-t", "x", "-i", "check=5m", status=2, err="work: runs 'sh' '-c' 'echo no' without a sandbox")


def what_a_program_ran_is_not_remembered(box: Own):
    box.file("work/inner.yaml", HELD.replace("sandbox: guard, ", ""))
    outer = HELD.replace('["true"], sandbox: guard', f'["{SEGUE}", run, ./inner.yaml, -t, x, -l, {box.dir}/inner]')
    box.segue("run", box.file("work/outer.yaml", outer), "-t", "x", status=0)
    expect([json.loads(Path(e).read_text())["file"] for e in entries(box)] == ["outer.yaml"] and os.listdir(box.dir + "/inner"), entries(box))


def a_command_with_the_agents_sandbox_asks_for_nothing(box: Own):
    agent(box, "true")
    flow = AGENT.replace("COMPLETE", "check") + '  - {name: check, command: ["true"], rules: [{condition: when(true), next: COMPLETE}]}\n'
    box.project(flow, "agent")
    box.segue("run", "agent", "-t", "x", status=0)
    box.project(flow.replace("edit: true", "edit: true\n    sandbox: off"), "agent")
    box.segue("run", "agent", "-t", "x", status=2, err=["  work: stranger without a sandbox\n", "  check: runs 'true' without a sandbox\n"])


def what_it_can_ask_for(box: Own):
    box.config({"sandbox": {"level": "strict", "network": "none"}, "secrets": ["DEPLOY"]})
    agent = "name: a\nprovider: claude\nmovements:\n  - {name: work, instruction: Do it., %s rules: [{condition: done, next: COMPLETE}]}\n"
    for words, asked in (("", b""), ("sandbox: off,", b"work: claude without a sandbox"), ("sandbox: guard,", b"work: claude with sandbox guard, network none"),
                         ("network: open,", b"work: claude with sandbox strict, network open"), ("secrets: [DEPLOY],", b"work: DEPLOY is shown to it")):
        box.project(agent % words, "a")
        done = box.segue("trust", "a", status=0)
        expect(asked in done.stdout and done.stdout.count(b"\n") == 1 + (asked != b""), words, done)
    box.project(agent % "structured_output: {on_failure: error, schema: {type: object}, invariants: [{command: [look]}]},", "a")
    box.segue("trust", "a", status=0, out="work: runs 'look' without a sandbox")


def in_ci_it_is_taken_as_given(box: Own):
    box.project(FLOW)
    box.run(env={"CI": "true"})
    expect(start_of(box.log_paths()[-1]) == "CI" and entries(box) == [], "noted in the log alone")
    verified(box, box.log_paths()[-1])
    box.run(status=2)


TYPES = """
import os, pty, sys
child, fd = pty.fork()
if child == 0:
    os.execv(sys.argv[2], sys.argv[2:])
said = b""
try:
    while True:
        said += os.read(fd, 65536)
        if said.rstrip().endswith(b"trust it? [y/N]"):
            os.write(fd, sys.argv[1].encode() + b"\\n")
            said += b"\\n"
except OSError:
    pass
print(said.decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def a_person_is_asked_at_the_terminal(box: Own):
    box.project(FLOW)
    types = box.file("types.py", TYPES)

    def at_terminal(says):
        return subprocess.run([sys.executable, types, says, SEGUE, "run", "w", "-t", "x", "-i", "check=true"], capture_output=True, text=True,
                              env=box.env, cwd=box.cwd)

    done = at_terminal("n")
    expect(done.returncode == 2 and ASKS.strip() in done.stdout and box.log_paths() == [], done)
    done = at_terminal("y")
    expect(done.returncode == 0 and start_of(box.log_paths()[-1]) == "asked", done)
    box.run()


def what_ships_and_what_init_wrote_is_trusted(box: Own):
    replies = box.file("s.json", json.dumps({"replies": [{"text": "done\n\n[WORK:1]"}, {"text": "fine\n\n[REVIEW:1]"}]}))
    box.segue("init", status=0)
    for word in ("work", "quick"):
        done = box.segue("run", word, "-t", "x", "-i", "check=true", "-s", replies, "--provider", "script")
        expect(done.returncode != 2 and b"trust" not in done.stderr and len(box.log_paths()) > 0, word, done)
    own = box.cwd + "/.segue/workflows/work.yaml"
    Path(own).write_text(Path(own).read_text(encoding="utf-8").replace("name: check\n", "name: check\n    timeout: 5m\n"), encoding="utf-8")
    done = box.segue("run", "work", "-t", "x", "-i", "check=true", "-s", replies, "--provider", "script")
    expect(done.returncode != 2 and b"work.yaml changed since your last run (+" in done.stderr, done)


def a_name_that_hides_a_shipped_one_is_said(box: Own):
    replies = box.file("s.json", '{"replies": []}')
    box.file("work/quick", FLOW)  # a plain file of that name is nothing
    done = box.segue("plan", "quick", "-t", "x", "-i", "check=true", "-s", replies, "--provider", "script")
    expect(b"hides" not in done.stderr and b"runs" not in done.stderr, done)
    flow = box.project(FLOW, "quick")
    for command in ("plan", "run"):
        done = box.segue(command, "quick", "-t", "x", "-i", "check=true")
        lines = [line for line in done.stderr.decode().splitlines() if "which hides segue's own" in line]
        expect(len(lines) == 1 and flow.split("/work/")[1] in lines[0], command, done)
    expect(done.returncode == 2 and box.log_paths() == [], done)


def submit_asks_at_once():
    with DaemonBox() as box:
        box.trusts = []
        box.serve()
        os.makedirs(box.cwd + "/.segue/workflows")
        flow = box.file("work/.segue/workflows/w.yaml", FLOW)
        words = ["submit", "w", "-t", "x", "-i", "check=true"]
        box.segue(*words, status=2, err=[ASKS, "then segue trust w"])
        expect(box.ask("GET", "/v1/sessions")[1]["sessions"] == [], "nothing was submitted")
        sid = box.segue(*words, "--trust", status=0).stdout.decode().strip()
        box.wait_status(sid, "complete")
        expect(start_of(f"{box.logs}/{sid}.ndjson") == "--trust", "its log says so")
        box.wait_status(box.segue(*words, status=0).stdout.decode().strip(), "complete")
        box.end()


def a_daemon_takes_what_is_trusted_or_given():
    with DaemonBox() as box:
        box.trusts = []
        box.serve()
        os.makedirs(box.cwd + "/.segue/workflows")
        flow = box.file("work/.segue/workflows/w.yaml", FLOW)
        body = {"cwd": box.cwd, "task": "x", "inputs": {"check": "true"}}
        posts = lambda workflow, **more: box.ask("POST", "/v1/sessions", {"workflow": workflow, **body, **more})
        for path in (flow, box.file("work/typed.yaml", FLOW)):
            status, value = posts(path)
            expect(status == 422 and "work: runs 'sh' '-c' " in value["detail"], status, value)
        expect(posts(flow, workflow_sha256="0" * 64)[0] == 422 and box.ask("GET", "/v1/sessions")[1]["sessions"] == [], "another one")
        expect(posts(box.file("held.yaml", HELD), inputs={})[0] == 201, "it asks for nothing")
        expect(posts({"text": FLOW})[0] == 201, "a text is its sender's word")
        status, value = posts(flow, trust="--trust")
        box.wait_status(value["id"], "complete")
        first = records(f"{box.logs}/{value['id']}.ndjson")[0]
        expect(status == 201 and first["config"]["trust"] == "--trust", first["config"])
        expect(posts(flow, workflow_sha256=first["workflow_sha256"])[0] == 201, "the one that was looked at")
        box.segue("trust", "w", status=0)
        expect(posts(flow)[0] == 201, "trusted")
        box.file("work/.segue/workflows/w.yaml", FLOW.replace("sh, -c", "bash, -c"))
        expect(posts(flow)[0] == 422 and posts(flow, workflow_sha256=first["workflow_sha256"])[0] == 422, "another one")
        box.check_all()
        box.end()


def swapped(box, flow, text, *words):
    """What `submit` says if the file is another one when the daemon reads it."""
    with socket.socket(socket.AF_UNIX) as gate:
        Path(box.dir + "/run/gate.sock").unlink(missing_ok=True)
        gate.bind(box.dir + "/run/gate.sock")
        os.chmod(box.dir + "/run/gate.sock", 0o600)
        gate.listen()

        def serve():
            near, far = gate.accept()[0], socket.socket(socket.AF_UNIX)
            far.connect(box.socket)
            asked = near.recv(1 << 20)
            Path(flow).write_text(text, encoding="utf-8")
            far.sendall(asked)
            threading.Thread(target=lambda: [near.sendall(got) for got in iter(lambda: far.recv(65536), b"")], daemon=True).start()
            for more in iter(lambda: near.recv(65536), b""):
                far.sendall(more)
        threading.Thread(target=serve, daemon=True).start()
        return box.segue("submit", flow, "-t", "x", "-i", "check=true", "--socket", box.dir + "/run/gate.sock", *words)


def a_file_that_is_swapped_on_the_way_is_refused():
    with DaemonBox() as box:
        box.trusts = []
        box.serve()
        evil = FLOW.replace('"{input:check}"', f'"touch {box.dir}/GOT"')
        for before, words in ((FLOW, ()), (FLOW, ("--trust",)), (HELD + "params: {check: {description: c}}\n", ())):
            flow = box.file("work/s.yaml", before)
            done = swapped(box, flow, evil, *words)
            expect(done.returncode != 0 and b"is not the one that was looked at" in done.stderr, done)
        done = swapped(box, box.file("work/s.yaml", FLOW), FLOW, "--trust")
        expect(done.returncode == 0, done)
        box.wait_status(done.stdout.decode().strip(), "complete")
        expect(not os.path.exists(box.dir + "/GOT") and len(box.ask("GET", "/v1/sessions")[1]["sessions"]) == 1, "only that one ran")
        box.end()


def agent(box, script):
    program = box.file("stranger", f"#!/bin/sh\nmark=$(grep -o ':N\\] [a-z0-9]*' | sed 's/.* //')\n{script}\nprintf \"Done.\\n\\n[WORK:1] $mark\\n\"\n")
    os.chmod(program, 0o755)
    os.makedirs(box.dir + "/home/config/segue/providers", exist_ok=True)
    box.file("home/config/segue/providers/stranger.yaml", f"summary: a stranger\nprogram: {program}\nargv: []\noutput: text\ntext: all\n")


CHANGES = {"a workflow": "echo '# more' >> .segue/workflows/w.yaml", "a new one": "echo x > .segue/workflows/new.yaml",
           "a folder": "mkdir -p .segue/facets/personas", "one less": "rm .segue/workflows/w.yaml",
           "another mode": "chmod 600 .segue/workflows/w.yaml", "another folder": "mv .segue old; cp -r old .segue",
           "deep": "mkdir -p src/.segue/workflows; echo x > src/.segue/workflows/w.yaml"}


def a_change_below_segue_stops_the_session():
    for ignored in (False, True):
        for what, script in CHANGES.items():
            with Own() as box:
                box.config({"sandbox": {"mechanism": "landlock"}})
                box.project(FLOW)
                box.file("work/.gitignore", ".segue\n" if ignored and what != "deep" else "x\n")
                box.commit()
                agent(box, script)
                done = box.segue("run", box.file("a.yaml", AGENT), "-t", "x", status=7)
                log = box.log_paths()[-1]
                stop = of_type(records(log), "session_stop")[-1]
                expect(stop["reason"] == "protected" and ".segue" in stop["message"], what, stop)
                expect(b"changed what is protected" in done.stdout + done.stderr, what, done)
                box.segue("resume", log, status=0)
                verified(box, log)


def what_does_not_change_it_goes_on():
    for script in ("cat .segue/workflows/w.yaml; echo y > f", "true"):
        with Own() as box:
            box.project(FLOW)
            agent(box, script)
            box.segue("run", box.file("a.yaml", AGENT), "-t", "x", status=0)


def outside_a_repository_it_is_seen_too(box: Own):
    shutil.rmtree(box.cwd + "/.git")
    box.project(FLOW)
    agent(box, CHANGES["a workflow"])
    box.segue("run", box.file("a.yaml", AGENT), "-t", "x", status=7, out=".segue/workflows/w.yaml")


def with_bwrap_nothing_is_written(box: Own):
    probe = ["bwrap", "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "true"]
    if not shutil.which("bwrap") or subprocess.run(probe, capture_output=True).returncode != 0:
        skip("bubblewrap is not installed, or may not be used here")
    box.config({"sandbox": {"mechanism": "bwrap"}})
    flow = box.project(FLOW)
    box.commit()
    agent(box, "\n".join(f"({script}) 2>> denied" for what, script in CHANGES.items() if what != "deep"))
    box.segue("run", box.file("a.yaml", AGENT), "-t", "x", status=0)
    expect(Path(flow).read_text(encoding="utf-8") == FLOW and os.listdir(box.cwd + "/.segue") == ["workflows"], os.listdir(box.cwd + "/.segue"))
    expect("Read-only file system" in Path(box.cwd + "/denied").read_text(encoding="utf-8"), "denied")


def no_sandbox_reaches_what_is_trusted():
    for level in ("guard", "strict"):
        with Own() as box:
            box.config({"sandbox": {"level": level}})
            box.project(FLOW)
            box.segue("trust", "w", status=0)
            entry = entries(box)[0]
            before = Path(entry).read_bytes()
            agent(box, f"cat {entry} > got; echo x >> {entry}; rm -f {entry}; echo x > {os.path.dirname(entry)}/ffff")
            box.segue("run", box.file("a.yaml", AGENT), "-t", "x", status=0)
            expect(Path(entry).read_bytes() == before and os.path.getsize(box.cwd + "/got") == 0, level)
            expect(not os.path.exists(os.path.dirname(entry) + "/ffff"), level)


if __name__ == "__main__":
    sys.exit(main([a_name_is_asked_for_once, worktrees_of_a_bare_repository_share_it, a_change_is_said_and_more_is_asked_for,
                   what_facets_and_called_files_ask_for_counts, a_typed_path_is_consent_once, inputs_hide_nothing,
                   what_a_program_ran_is_not_remembered,
                   a_command_with_the_agents_sandbox_asks_for_nothing, what_it_can_ask_for, in_ci_it_is_taken_as_given,
                   a_person_is_asked_at_the_terminal, what_ships_and_what_init_wrote_is_trusted, a_name_that_hides_a_shipped_one_is_said,
                   submit_asks_at_once, a_daemon_takes_what_is_trusted_or_given, a_file_that_is_swapped_on_the_way_is_refused, a_change_below_segue_stops_the_session, what_does_not_change_it_goes_on,
                   outside_a_repository_it_is_seen_too, with_bwrap_nothing_is_written, no_sandbox_reaches_what_is_trusted]))
