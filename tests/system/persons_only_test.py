#!/usr/bin/env python3
"""Only a person answers: programs that a session runs try it for another session, with and without a
sandbox, by each command and over the control socket, and with what might hide where they come from."""
import json
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

from daemon import ROOT, DaemonBox
from support import SEGUE, Box, expect, main, of_type, records, verified

ASKS = """
name: asks
provider: script
movements:
  - {name: gate, command: ["true"], approve: true, rules: [{condition: when(true), next: COMPLETE}]}
"""
UNDECIDED = """
name: undecided
provider: script
movements:
  - name: look
    instruction: "Look at it"
    judge: {stages: [phase1_tag]}
    rules: [{condition: good, next: COMPLETE}, {condition: bad, next: ABORT}]
"""
PROTECTS = """
name: protects
protect: [kept]
movements:
  - {name: work, command: [sh, -c, "echo x > kept"], rules: [{condition: when(true), next: COMPLETE}]}
"""
MAKES = """
name: makes
movements:
  - {name: make, command: [make, -s], %srules: [{condition: when(true), next: COMPLETE}]}
"""
AGENT = """
name: agent
provider: stranger
movements:
  - name: work
    sandbox: %s
    edit: true
    instruction: "Do it"
    judge: {stages: [phase1_tag]}
    rules: [{condition: done, next: COMPLETE}]
"""
# Each is run by the shell with $S for segue and $A for the other session.
WAYS = {
    "plain": '"$S" %s',
    "emptied": 'env -i PATH="$PATH" HOME="$HOME" XDG_STATE_HOME="$XDG_STATE_HOME" SEGUE_LOGS="$SEGUE_LOGS" "$S" %s',
    "forked away": 'setsid sh -c \'("$S" %s; echo $? > forked) & exit 0\'; while [ ! -s forked ]; do sleep .01; done; '
                   'n=$(cat forked); rm forked; (exit $n)',
    "marked anew": 'prlimit --rttime=200000:200000 "$S" %s',
    "all three": 'setsid sh -c \'(exec env -i PATH="$PATH" HOME="$HOME" XDG_STATE_HOME="$XDG_STATE_HOME" '
                 'SEGUE_LOGS="$SEGUE_LOGS" prlimit --rttime=200000:200000 sh -c "\\"$S\\" %s; echo \\$? > forked") & exit 0\'; '
                 'while [ ! -s forked ]; do sleep .01; done; n=$(cat forked); rm forked; (exit $n)',
    "other processes": 'unshare -Urpf --mount-proc "$S" %s',
}


class Own(Box):
    def __init__(self):
        super().__init__()
        self.env["SEGUE_LOGS"] = self.logs
        self.program = SEGUE


def waiting(box, flow, *words):
    """A session that waits for a person; its log."""
    before = box.log_paths()
    done = box.segue("run", box.file("a.yaml", flow), "-t", "x", "-q", *words)
    expect(done.returncode in (4, 7), done)
    return [p for p in box.log_paths() if p not in before][0]


def id_of(log):
    return os.path.basename(log)[:-len(".ndjson")]


def can(way):
    tool = {"marked anew": "prlimit", "all three": "prlimit", "other processes": "unshare"}.get(way)
    if tool is None:
        return True
    if shutil.which(tool) is None:
        return False
    return tool != "unshare" or subprocess.run(["unshare", "-Urpf", "--mount-proc", "true"],
                                               capture_output=True).returncode == 0


def made(box, lines, flow=MAKES % ""):
    """Runs the lines in a Makefile, as a session; its log, and what each line ended with."""
    own = {"S": box.program, "SEGUE_SHIM": box.env["SEGUE_SHIM"], "SEGUE_LOGS": box.logs,
           "XDG_STATE_HOME": box.env["XDG_STATE_HOME"], "XDG_CONFIG_HOME": box.env["XDG_CONFIG_HOME"],
           "XDG_RUNTIME_DIR": box.env.get("XDG_RUNTIME_DIR", "")}
    script = "".join(f"export {k}='{v}'\n" for k, v in own.items()) + ": > ended\n"
    script += "".join(f"{line}\necho $? >> ended\n" for line in lines)
    box.file("work/do.sh", script)
    box.file("work/Makefile", "all:\n\t@sh ./do.sh\n")
    before = box.log_paths()
    done = box.segue("run", box.file("b.yaml", flow), "-t", "x")
    new = [p for p in box.log_paths() if p not in before]
    expect(done.returncode == 0 and len(new) >= 1, done)
    return new[0], Path(box.cwd + "/ended").read_text(encoding="ascii").split(), done


def tried(log):
    """What the session's log says that its programs tried."""
    return [e["data"]["tried"] for e in of_type(records(log), "call_event") if "tried" in e.get("data", {})]


def a_makefile_approves_another_session(box: Own):
    log = waiting(box, ASKS)
    before = open(log, "rb").read()
    ways = [w for w in WAYS if can(w)]
    for w in WAYS.keys() - set(ways):
        print(f"      skipped: {w}: prlimit, or unshare of a user, is not to be had")
    own, ended, done = made(box, [WAYS[w] % f"approve {id_of(log)} --name boss" for w in ways])
    expect(open(log, "rb").read() == before, "nothing was answered", records(log)[-1])
    expect(ended == ["1"] * len(ways), dict(zip(ways, ended)), done)
    told = tried(own)
    expect(len(told) == 1 and told[0].split(", ")[0] == f"segue approve {id_of(log)}", told)
    line = f"tried to answer for a person: segue approve {id_of(log)}"
    expect(line in done.stdout.decode(), "a line of the run", done)
    for words in (["show", own], ["show", own, "make"], ["report", own]):
        expect(line in box.segue(*words).stdout.decode(), words, box.segue(*words))
    shown = json.loads(box.segue("show", own, "--as", "view").stdout)
    expect(told[0] in json.dumps(shown), shown)
    verified(box, own, log)
    box.segue("approve", log, "--name", "boss", "--resume", status=0)  # a person's own shell
    for record in records(own) + records(log):
        box.segue("check", ROOT + "/schemas/session-log.json", box.file("line.json", json.dumps(record)), status=0)


def a_program_decides_nothing(box: Own):
    replies = box.file("s.json", '{"replies": [{"text": "I do not know"}]}')
    asks, undecided = waiting(box, ASKS), waiting(box, UNDECIDED, "-s", replies)
    subprocess.run(["git", "init", "-q", box.cwd], check=True, env=box.env)
    box.file("work/kept", "k")
    protects = waiting(box, PROTECTS)
    all_of = {"answer": [asks, "yes"], "approve": [asks], "reject": [asks, "--reason", "no"], "steer": [asks, "go"],
              "resume": [undecided, "--rule", "1"], "label": [undecided, "look", "1", "--as", "boss"], "attest": [undecided]}
    lines = {k: f'"$S" {k} ' + " ".join(v) for k, v in all_of.items()}
    lines["budget"] = f'"$S" resume {undecided} --add-budget tokens=1000'
    lines["turns"] = f'"$S" resume {undecided} --max-movements 9'
    lines["another"] = f'"$S" resume {undecided} --provider claude'
    lines["cut"] = f'"$S" resume {asks} --cut'
    lines["release"] = f'"$S" resume {protects} --release'
    lines["protected"] = f'"$S" resume {protects}'
    lines["approved"] = f'"$S" approve {protects}'
    box.file("work/.segue/workflows/more.yaml", ASKS) if os.makedirs(box.cwd + "/.segue/workflows") is None else None
    lines["trust"] = '"$S" trust more'
    lines["in CI"] = 'CI=1 "$S" run more -t x'
    lines["trusted"] = '"$S" run more -t x --trust'
    lines["there"] = f'"$S" resume {undecided} --daemon --rule 1'
    before = [open(p, "rb").read() for p in (asks, undecided, protects)]
    own, ended, done = made(box, lines.values())
    expect([open(p, "rb").read() for p in (asks, undecided, protects)] == before, "nothing was decided")
    expect(ended == ["1"] * len(lines), dict(zip(lines, ended)), done)
    expect(not os.path.exists(box.logs + "/labels"), "no label")
    for word in ("answer", "approve", "reject", "steer", "resume", "label", "attest"):
        expect(f"segue {word} /" in tried(own)[0], word, tried(own))
    # What decides nothing is everybody's: to look, and to go on with what a crash left.
    own, ended, done = made(box, [f'"$S" show {asks}', '"$S" ls', '"$S" inbox'])
    expect(ended == ["0"] * 3 and tried(own) == [], ended, done)
    # A person may.
    expect(box.segue("label", undecided, "look", "1", "--as", "boss").returncode in (0, 1, 2), "asked")
    box.segue("resume", undecided, "--rule", "1", status=0)
    expect(box.segue("approve", protects).returncode == 0, "its change is accepted")


def where_a_sandbox_reaches(box):
    """A copy of the program: the build may lie in the home folder, where guard runs nothing."""
    box.program = shutil.copy(SEGUE, box.dir + "/itself")


def in_a_sandbox_it_is_refused_and_told(box: Own):
    where_a_sandbox_reaches(box)
    log = waiting(box, ASKS)
    before = open(log, "rb").read()
    own, ended, done = made(box, [f'"$S" approve {id_of(log)} --name boss'], MAKES % "sandbox: guard, ")
    expect(open(log, "rb").read() == before and ended == ["1"], ended, done)
    expect(tried(own) == [f"segue approve {id_of(log)}"], tried(own), records(own))


TYPES = """
import os, pty, sys
child, fd = pty.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
said = b""
try:
    while True:
        said += os.read(fd, 65536)
        if b"approve?" in said:
            os.write(fd, b"y\\n")
            said = b""
except OSError:
    pass
os.waitpid(child, 0)
"""


def an_agent_is_refused_and_told():
    """An agent program without a sandbox and with one, by its own tools."""
    for level in ("off", "guard"):
        with Own() as box:
            where_a_sandbox_reaches(box)
            log = waiting(box, ASKS)
            before = open(log, "rb").read()
            agent = box.file("agent", f'#!/bin/sh\ncat > /dev/null\nSEGUE_LOGS={box.logs} {box.program} approve {id_of(log)} '
                             '--name boss 2>&1\nprintf "done\\n\\n[WORK:1]\\n"\n')
            os.chmod(agent, 0o755)
            os.makedirs(box.dir + "/home/config/segue/providers")
            box.file("home/config/segue/providers/stranger.yaml",
                     f"summary: a stranger\nprogram: {agent}\nargv: []\noutput: text\ntext: all\n")
            done = box.segue("run", box.file("b.yaml", AGENT % level), "-t", "x")
            own = [p for p in box.log_paths() if p != log][0]
            expect(done.returncode == 0 and open(log, "rb").read() == before, level, done)
            expect(tried(own) == [f"segue approve {id_of(log)}"], level, tried(own), done)


def its_own_session_within_asks_nobody(box: Own):
    """A session that a program runs on a terminal of its own is not answered by that program."""
    box.file("work/in.yaml", ASKS)
    box.file("work/types.py", TYPES)
    own, ended, done = made(box, ['python3 types.py "$S" run in.yaml -t x'])
    within = [p for p in box.log_paths() if p != own]
    expect(len(within) == 1 and of_type(records(within[0]), "answer") == [], records(within[0])[-1], done)


def notes_are_not_trusted(box: Own):
    """What a program writes where notes stand is one short line of plain text, or nothing."""
    for what in ('printf "a\\033[31m\\nb\\n" > "$TMPDIR/.segue-note-0"', 'mkfifo "$TMPDIR/.segue-note-0"',
                 'yes | head -c 100000 > "$TMPDIR/.segue-note-0"', 'ln -s /etc/passwd "$TMPDIR/.segue-note-0"',
                 'mkdir "$TMPDIR/.segue-note-0"; "$S" approve last', 'TMPDIR=/ "$S" approve last'):
        own, _, done = made(box, [what])
        told = tried(own)
        expect(all(len(t) < 2000 and t.isprintable() and t.isascii() for t in told), what, told)
        expect("root:" not in str(told), what, told)
    expect(told == ["segue approve last"], "the shim knows the folder", told)


ASKED = r"""
import http.client, json, os, socket, sys
out = []
def ask(path, body):
    c = http.client.HTTPConnection("segue", timeout=300)
    c.sock = socket.socket(socket.AF_UNIX)
    c.sock.connect(%(socket)r)
    if sys.argv[1:] == ["inherited"]:  # who connected is gone before anything is asked
        connected = os.getpid()
        if os.fork() != 0:
            os._exit(0)
        os.setsid()
        while os.getppid() == connected:
            pass
    c.request("POST", path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
    a = c.getresponse()
    return [a.status, a.read().decode()]
def all_of_it():
    for path, body in %(asks)r:
        try:
            out.append(ask(path, body))
        except OSError:  # a connection whose maker is gone is closed
            out.append([403, "closed"])
    open("asked", "w").write(json.dumps(out))
if len(sys.argv) > 1:  # by a grandchild that left, whose parents are gone
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while os.getppid() != 1 and open("/proc/%%d/comm" %% os.getppid()).read() != "segue-shim\n":
                pass
            all_of_it()
            os._exit(0)
        os._exit(0)
    while not os.path.exists("asked"):
        pass
else:
    all_of_it()
"""


def over_the_socket():
    for far in ("", " far", " inherited"):
        with DaemonBox() as box:
            box.serve()
            asked = box.submit(box.file("a.yaml", ASKS), task="x")
            box.wait_status(asked, "needs_input")
            replies = box.file("s.json", '{"replies": [{"text": "I do not know"}]}')
            undecided = box.submit(box.file("u.yaml", UNDECIDED), replies, task="x")
            box.wait_status(undecided, "rule_no_match", "stopped")
            log = f"{box.logs}/{asked}.ndjson"
            before = open(log, "rb").read()
            asks = [(f"/v1/sessions/{asked}/{what}", body) for what, body in
                    (("approve", {"name": "boss"}), ("approve", None), ("reject", {}), ("answer", {"text": "y"}), ("steer", {"text": "y"}),
                     ("dismiss", {"why": "y"}))]
            asks += [(f"/v1/sessions/{undecided}/resume", {"rule": 1}), ("/v1/web/codes", None)]
            more = {"cwd": box.cwd, "workflow": {"text": MAKES % ""}, "task": "x"}
            asks += [("/v1/sessions", more), ("/v1/sessions", {**more, "workflow": box.dir + "/b.yaml", "trust": "--trust"}),
                     ("/v1/ask", {"prompt": "x", "schema": {"type": "object"}, "scenario": {"text": '{"replies": []}'}, "provider": "script", "invariants": [{"command": ["true"]}]})]
            box.file("work/ask.py", ASKED % {"socket": box.socket, "asks": asks})
            box.file("work/Makefile", f"all:\n\t@python3 ask.py{far}; {SEGUE} approve {asked} --socket {box.socket}; true\n")
            own = box.submit(box.file("b.yaml", MAKES % ""), task="x")
            box.wait_status(own, "complete")
            got = json.loads(Path(box.cwd + "/asked").read_text(encoding="utf-8"))
            expect([s for s, _ in got] == [403] * len(asks), got)
            expect(open(log, "rb").read() == before, "nothing was answered")
            told = tried(f"{box.logs}/{own}.ndjson")
            for what in (f"segue approve {asked}", f"segue reject {asked}", f"segue answer {asked}",
                         f"segue inbox dismiss {asked}", f"segue resume {undecided}"):
                expect(far == " inherited" or (len(told) == 1 and what in told[0]), what, told)
            status, value = box.ask("POST", f"/v1/sessions/{asked}/approve", {"name": "boss"})
            expect(status in (200, 202), status, value)
            box.end()


def the_users_own_program_that_is_notified_may():
    """`notify` is the user's word: it may ask on the desktop, and answer. As a program of a session it may not."""
    with DaemonBox() as box:
        tell = box.file("tell.sh", f'#!/bin/sh\n[ "$SEGUE_NOTICE_EVENT" = question ] && {SEGUE} approve last '
                        f'--socket {box.socket} --name desk >> {box.dir}/told 2>&1\nexit 0\n')
        os.chmod(tell, 0o755)
        os.makedirs(box.dir + "/home/config/segue", exist_ok=True)
        box.file("home/config/segue/config.yaml", f"notify: {{command: [{tell}]}}\n")
        box.serve()
        box.wait_status(box.submit(box.file("a.yaml", ASKS), task="x"), "complete")
        box.end()
    with Own() as box:
        log = waiting(box, ASKS)
        own, ended, done = made(box, [f'SEGUE_NOTICE_EVENT=question "$S" approve {log}'])
        expect(ended == ["1"] and tried(own), ended, done)


def a_typed_name_is_only_said(box: Own):
    log = waiting(box, ASKS)
    me = pwd.getpwuid(os.geteuid()).pw_name
    expect(box.segue("approve", log, "--name", "boss").returncode == 0, "approved")
    box.segue("approve", log, status=1, err=f"by one who says boss (uid {os.geteuid()})")
    by = of_type(records(log), "answer")[0]["by"]
    expect(by == {"uid": os.geteuid(), "name": "boss", "user": me}, by)
    expect(box.segue("resume", log).returncode == 0, "it ends")
    for words in (["show", log], ["report", log]):
        expect("says boss: approve" in box.segue(*words).stdout.decode(), words, box.segue(*words))
    other = waiting(box, ASKS)
    expect(box.segue("approve", other, "--name", me, "--resume").returncode == 0, "approved")
    expect(of_type(records(other), "answer")[0]["by"] == {"uid": os.geteuid(), "name": me}, "the system's name")
    expect("says" not in box.segue("show", other).stdout.decode(), box.segue("show", other))


if __name__ == "__main__":
    sys.exit(main([a_makefile_approves_another_session, a_program_decides_nothing, in_a_sandbox_it_is_refused_and_told,
                   an_agent_is_refused_and_told,
                   its_own_session_within_asks_nobody, notes_are_not_trusted, over_the_socket,
                   the_users_own_program_that_is_notified_may, a_typed_name_is_only_said]))
