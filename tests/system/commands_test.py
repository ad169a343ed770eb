#!/usr/bin/env python3
"""What a workflow runs by itself (commands, gates, invariants, setup, the checks of integrate and merge) on files
that an agent may have written: it has the agent's sandbox, unless the user's own file says otherwise, and what that
denies is no failure of the work.

usage: commands_test.py BUILD_DIR [CASE...]

Skipped where the kernel has no Landlock."""
import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from daemon import DaemonBox
from support import expect, main, need_build, needs, of_type, others_can_run, records, skip, verified

LANDLOCK = ctypes.CDLL(None, use_errno=True).syscall(444, None, 0, 1)
KEY = "KEY-OF-SSH"
END = "rules: [{condition: when(exit == 0), next: COMPLETE}, {condition: when(true), next: mend}]"
WORK = "  - {name: work, edit: true, instruction: do it, %s rules: [{condition: done, next: %s}, {condition: no, next: ABORT}]}\n"
MEND = "  - {name: mend, edit: true, instruction: mend it, rules: [{condition: done, next: ABORT}, {condition: no, next: ABORT}]}\n"


class Place(DaemonBox):
    """A home folder with a key, a repository, and an agent that does what do.sh says, held by guard."""

    def __init__(self, do="true", **sandbox):
        super().__init__()
        self.key = self.file("home/key", "") and self.dir + "/home/.ssh/id"
        os.makedirs(os.path.dirname(self.key))
        Path(self.key).write_text(KEY + "\n")
        os.makedirs(self.dir + "/home/config/segue/providers")
        program = self.file("stranger", "#!/bin/sh\nmark=$(grep -o ':N\\] [a-z0-9]*' | sed 's/.* //')\nsh ./do.sh 2>&1\nprintf \"Done.\\n\\n[%s:1] $mark\\n\" "
                            "$(cat $TMPDIR/../../word 2>/dev/null || echo WORK)\n")
        os.chmod(program, 0o755)
        self.file("home/config/segue/providers/stranger.yaml",
                  f"summary: a stranger\nprogram: {program}\nargv: []\noutput: text\ntext: all\n")
        self.sandbox(**sandbox)
        self.git("init", "-q", "-b", "main", ".")
        self.file("work/do.sh", do + "\n")
        self.file("work/Makefile", f"all:\n\tcat {self.key}\n")
        self.git("add", "-A")
        self.git("commit", "-qm", "first")

    def sandbox(self, level="guard", **words):
        self.config({"sandbox": {"level": level, "mechanism": "landlock", **words}})

    def git(self, *words, at=None):
        done = subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e@example.org", *words],
                              cwd=at or self.cwd, env=self.env, capture_output=True)
        expect(done.returncode == 0, words, done.stderr)
        return done.stdout.decode().strip()

    def run(self, movements, *words, status=0, head="", **kw):
        flow = self.file("w.yaml", f"name: w\nprovider: stranger\n{head}judge: {{stages: [phase1_tag]}}\nmovements:\n{movements}")
        done = self.segue("run", flow, "--task", "t", "--logs", self.logs, "--cwd", self.cwd, *words, **kw)
        path = max(self.begun(), key=os.path.getmtime)
        verified(self, path)
        log = records(path)
        expect(status in (None, done.returncode), done, [r for r in log if r["type"] in ("call_start", "call_end", "session_stop")])
        return done, log, path

    def kept(self, *texts):
        """The key got nowhere: into no log, no file of the workspace and no output."""
        for path in [*self.begun(), *(os.path.join(top, n) for top, _, names in os.walk(self.cwd) for n in names)]:
            expect(KEY.encode() not in Path(path).read_bytes(), "the key is in", path)
        for text in texts:
            expect(KEY.encode() not in text, "the key was told", text)


def command(words, *, name="test", more="", end=END):
    return f"  - {{name: {name}, command: {json.dumps(words)}, {more}{end}}}\n"


def sandbox_of(log, which=-1):
    return [r for r in of_type(log, "call_start") if r["provider"] == "command"][which].get("sandbox")


def stopped(log, reason, cls="denied"):
    last = log[-1]
    expect(last["type"] == "session_stop" and last["reason"] == reason and last["class"] == cls, last)
    return last["message"]


def a_command_has_the_agents_sandbox(box: Place):
    flow = WORK % ("", "test") + command(["make", "-s"]) + MEND
    done, log, path = box.run(flow, status=7)
    box.kept(done.stdout, done.stderr)
    expect(sandbox_of(log) == {"level": "guard", "mechanism": "landlock", "from": "work"}, sandbox_of(log))
    expect(log[0]["config"]["sandbox"]["inherited"] == {"from": "work", "level": "guard"}, log[0])
    message = stopped(log, "denied")
    expect(f"sandbox: {{commands: {{read: [{box.key}]}}}} in config.yaml would allow" in message, message)
    expect("mend" not in {r["movement"] for r in of_type(log, "turn_start")}, "an agent was asked to mend it")
    box.segue("inbox", "--logs", box.logs, out="sandbox")
    box.sandbox(commands={"read": [box.key]})  # the one setting
    box.segue("resume", path, "--logs", box.logs, status=0)
    expect(of_type(records(path), "session_end")[-1]["outcome"] == "complete", records(path)[-1])


def at_the_start_it_ends_before_anybody_is_paid(box: Place):
    done, log, _ = box.run(command(["make", "-s"], end="rules: [{condition: when(true), next: work}]") +
                           WORK % ("", "COMPLETE"), status=1)
    expect({r["provider"] for r in of_type(log, "call_start")} == {"command"}, "an agent was asked")
    stopped(log, "provider_error")
    expect(b"in config.yaml would allow" in done.stdout + done.stderr, done)
    box.kept(done.stdout, done.stderr)


def gates_invariants_and_groups(box: Place):
    gate = WORK % ("gates: [{command: [make, -s]}],", "COMPLETE")
    value = ('structured_output: {schema: {type: object}, on_failure: error, invariants: [{command: [make, -s]}]},')
    group = ("  - name: parts\n    parallel:\n      - {name: c, command: [make, -s], rules: [{condition: when(exit == 0)}]}\n"
             "    rules: [{condition: 'all(\"when(exit == 0)\")', next: COMPLETE}, {condition: when(true), next: mend}]\n")
    for flow in (gate, WORK % ("", "parts") + group + MEND):
        done, log, _ = box.run(flow, status=7)
        stopped(log, "denied")
        box.kept(done.stdout, done.stderr)
    box.file("work/do.sh", "echo '{}'\n")
    box.file("stranger", "#!/bin/sh\ncat >/dev/null\necho '{}'\n")
    done, log, _ = box.run(WORK % (value, "COMPLETE"), status=7)
    check = [r for r in of_type(log, "call_start") if r["purpose"] == "check"][0]
    expect(check["sandbox"]["from"] == "work", check)
    stopped(log, "denied")
    box.kept(done.stdout, done.stderr)


def setup_has_it_and_says_so(box: Place):
    done, log, _ = box.run(WORK % ("", "COMPLETE"), "--workspace", "worktree", status=1, head="setup: [make -s]\n")
    box.kept(done.stdout, done.stderr)
    expect("in config.yaml would allow" in json.dumps(log), log[-1])
    expect(not of_type(log, "call_start"), "an agent was asked")
    box.sandbox(commands="off")
    _, log, _ = box.run(WORK % ("", "COMPLETE"), "--workspace", "worktree", head="setup: [test -r ~/.ssh/id]\n")
    expect("sandbox" not in [r for r in of_type(log, "workspace") if r["event"] == "made"][0]["data"]["setup"], log)
    box.sandbox()
    _, log, _ = box.run(WORK % ("", "COMPLETE"), "--workspace", "worktree", head="setup: ['true']\n")
    made = [r for r in of_type(log, "workspace") if r["event"] == "made"][0]["data"]["setup"]
    expect(made["sandbox"]["from"] == "work", made)


def checks_of_merges_have_it():
    with Place(do="echo y > f") as box:
        done, log, path = box.run(WORK % ("", "COMPLETE"), "--workspace", "worktree")
        done = box.segue("merge", path, "--logs", box.logs, "--check", "make -s", status=3)
        box.kept(done.stdout, done.stderr)
        expect(b"in config.yaml would allow" in done.stdout + done.stderr, done)
        box.sandbox(commands={"read": [box.key]})
        box.segue("merge", path, "--logs", box.logs, "--check", "make -s", status=0)
        expect(not os.listdir(box.dir + "/tmp"), "it left", os.listdir(box.dir + "/tmp"))
    with Place(do="echo y > f-$$") as box:
        flow = ("  - name: parts\n    parallel:\n      - {name: work, workspace: worktree, edit: true, instruction: do it, "
                "rules: [{condition: done}, {condition: no}]}\n"
                "    rules: [{condition: 'all(\"done\")', next: join}, {condition: when(true), next: ABORT}]\n"
                "  - {name: join, integrate: {group: parts, check: [make, -s]}, " + END + "}\n" + MEND)
        Path(box.dir + "/word").write_text("PARTS.WORK")
        done, log, path = box.run(flow, "--workspace", "worktree", status=7)
        box.kept(done.stdout, done.stderr)
        expect(sandbox_of(log)["from"] in ("parts.work", "mend"), sandbox_of(log))
        stopped(log, "denied")
        box.sandbox(commands={"read": [box.key]})
        box.segue("resume", path, "--logs", box.logs, status=0)
        box.sandbox(level="off")  # a session that inherits nothing keeps to that
        _, _, path = box.run(flow, "--workspace", "worktree")
        expect(sandbox_of(records(path)) is None, sandbox_of(records(path)))


def a_workflow_narrows_and_never_widens(box: Place):
    look = ["sh", "-c", "cat ~/.ssh/id; echo; cat ~/.gitignore; exit 0"]
    box.file("home/.gitignore", "notes\n")
    for more, level, network, notes in (("sandbox: off, ", "guard", None, True), ("sandbox: strict, ", "strict", None, False),
                                        ("network: none, ", "guard", "none", True)):
        done, log, _ = box.run(WORK % ("", "test") + command(look, more=more) + MEND)
        held = sandbox_of(log)
        expect((held["level"], held.get("network")) == (level, network), more, held)
        expect(("notes" in of_type(log, "call_end")[-1]["text"]) == notes, more)
        expect((b"not widen it" in done.stderr) == ("off" in more), more, done.stderr)
        expect(("from" in held) == ("off" in more), held)
        box.kept(done.stdout, done.stderr)


def the_narrowest_agent_counts(box: Place):
    look = command(["sh", "-c", "exit 0"])
    two = (WORK % ("", "test") + "  - {name: other, edit: true, sandbox: strict, network: none, instruction: do it, rules: "
           "[{condition: done, next: test}, {condition: no, next: ABORT}]}\n")
    _, log, _ = box.run(two + look + MEND)
    expect(log[0]["config"]["sandbox"]["inherited"] == {"from": "other", "level": "strict", "network": "none"}, log[0])
    expect(sandbox_of(log) == {"level": "strict", "mechanism": "landlock", "network": "none", "from": "other"}, sandbox_of(log))
    reads = (WORK % ("", "test")).replace("edit: true", "edit: false")
    _, log, _ = box.run(reads + look.replace("mend", "ABORT"))
    expect("inherited" not in log[0]["config"]["sandbox"] and sandbox_of(log) is None, log[0])
    box.sandbox(level="off")
    _, log, _ = box.run(WORK % ("", "test") + look + MEND)
    expect("inherited" not in log[0]["config"]["sandbox"] and sandbox_of(log) is None, log[0])


def limits_and_an_open_home_are_the_agents(box: Place):
    """The smallest limits of the agents that edit hold commands; a home is open to them only if it is open to each agent."""
    two = (WORK % ("limits: {memory: 600M}, ", "test") + "  - {name: other, edit: true, provider: second, instruction: do it, rules: "
           "[{condition: done, next: test}, {condition: no, next: ABORT}]}\n")
    box.file("home/notes", "MY-NOTES\n")
    profile = box.dir + "/home/config/segue/providers/%s.yaml"
    Path(profile % "second").write_text(Path(profile % "stranger").read_text())
    look = ["sh", "-c", "cat ~/notes; python3 -c 'bytearray(700 << 20)' 2>&1 | tail -1; exit 0"]

    def told(words, **config):
        box.config({"sandbox": {"level": "guard", "mechanism": "landlock", "limits": {"memory": "2G", "cpus": 1}, **words}, **config})
        _, log, path = box.run(two + command(look) + MEND)
        verified(box, path)
        return of_type(log, "call_end")[-1]["text"], log[0]["config"]["sandbox"]["inherited"], sandbox_of(log)
    text, inherited, held = told({}, providers={"stranger": {"home": "open"}})
    expect("MY-NOTES" not in text and "MemoryError" in text, "one agent's home is closed", text)
    expect(inherited == {"from": "work", "level": "guard", "limits": {"memory": "600M", "cpus": 1.0}}, inherited)
    expect(held["limits"]["memory"] == 600 << 20 and "home" not in held, held)
    text, inherited, held = told({}, providers={"stranger": {"home": "open"}, "second": {"home": "open"}})
    expect("MY-NOTES" in text and held["home"] == "open" == inherited["home"], text, held)
    text, inherited, held = told({"home": "open"}, providers={"second": {"home": "closed"}})
    expect("MY-NOTES" not in text and inherited["home"] == "closed", text, inherited)
    text, _, held = told({"commands": {"limits": {"memory": "4G"}}})
    expect("MemoryError" not in text and held["limits"]["memory"] == 4 << 30, text, held)
    box.config({"providers": {"stranger": {"home": "ajar"}}})
    box.segue("run", box.dir + "/w.yaml", "--logs", box.logs, status=2, err=b"closed or open")


def only_the_users_file_lifts_it(box: Place):
    flow = WORK % ("", "test") + command(["sh", "-c", "cat ~/.ssh/id >/dev/null"]) + MEND
    box.sandbox(commands="off")
    _, log, _ = box.run(flow)
    expect(sandbox_of(log) is None, sandbox_of(log))
    box.sandbox(commands={"read": ["~/.ssh"], "network": "none", "write": ["~/out"]})
    os.mkdir(box.dir + "/home/out")
    _, log, _ = box.run(flow.replace("/dev/null", "/dev/null; echo x > ~/out/x"))
    expect(sandbox_of(log)["network"] == "none" and os.path.exists(box.dir + "/home/out/x"), sandbox_of(log))
    for bad, said in (({"reads": []}, b"did you mean \"read\""), ({"read": ["x"]}, b"absolute path"), ("of", b"did you mean off")):
        box.sandbox(commands=bad)
        box.segue("run", box.dir + "/w.yaml", "--logs", box.logs, status=2, err=said)


def a_session_keeps_what_its_log_says():
    flow = WORK % ("", "ask") + "  - {name: ask, ask: {question: go on?}, rules: [{condition: when(true), next: test}]}\n"
    look = command(["sh", "-c", "cat ~/.ssh/id >/dev/null"]) + MEND
    for before, after, read in (("off", "guard", True), ("guard", "off", False)):
        with Place() as box:
            box.sandbox(level=before)
            _, _, path = box.run(flow + look, status=7)
            box.sandbox(level=after)
            box.segue("answer", path, "yes", "--logs", box.logs)
            box.segue("resume", path, "--logs", box.logs)
            log = records(path)
            expect((sandbox_of(log) is None) == read, before, after, sandbox_of(log))
            expect((log[-1].get("outcome") == "complete") == read, log[-1])


def a_daemon_and_a_fork_do_the_same(box: Place):
    flow = box.file("w.yaml", "name: w\nprovider: stranger\njudge: {stages: [phase1_tag]}\nmovements:\n" + WORK % ("", "test") +
                    command(["make", "-s"]) + MEND)
    box.serve()
    box.segue("submit", flow, "-t", "t", "--wait", "-C", box.cwd, status=7)
    path = box.log_paths()[0]
    stopped(records(path), "denied")
    box.segue("fork", path, "--from", "test", "--logs", box.logs, status=1)  # nobody was paid in it
    forked = max(box.log_paths(), key=os.path.getmtime)
    expect(forked != path and sandbox_of(records(forked))["from"] == "work", records(forked)[-1])
    box.kept()
    box.sandbox(commands="off")
    box.end()
    box.serve()
    box.segue("resume", path, "--logs", box.logs, status=0)


def bwrap_has_it_too():
    needs("bwrap")
    if subprocess.run(["bwrap", "--unshare-user", "--ro-bind", "/", "/", "true"], capture_output=True).returncode:
        skip("bubblewrap may make no namespaces here")
    with Place() as box:
        box.sandbox(mechanism="bwrap")
        done, log, _ = box.run(WORK % ("", "test") + command(["make", "-s"]) + MEND, status=7)
        expect(sandbox_of(log)["mechanism"] == "bwrap", sandbox_of(log))
        stopped(log, "denied")
        box.kept(done.stdout, done.stderr)


def words_alone_are_no_denial(box: Place):
    """A test that prints of a file of the workspace, or of one that its user may not read either, failed by itself."""
    said = "cat: ./f: Permission denied; cat: /nowhere/f: Permission denied; open '%s/f': EACCES" % box.cwd
    flow = WORK % ("", "test") + command(["sh", "-c", f'echo "{said}" | tr ";" "\\n" >&2; exit 1'], end=END.replace("mend", "ABORT"))
    _, log, _ = box.run(flow, status=3)
    expect(of_type(log, "session_end")[-1]["outcome"] == "abort", log[-1])


def a_program_that_is_not_seen_is_a_denial(box: Place):
    os.makedirs(box.dir + "/home/bin")
    os.chmod(box.file("home/bin/tool", "#!/bin/sh\n"), 0o755)
    for line, read in (("tool", True), ("no-such-tool", False), ("echo tool is not seen; exit 1", False)):
        flow = WORK % ("sandbox: strict,", "test") + command(["sh", "-c", line], end=END.replace("mend", "ABORT"))
        _, log, _ = box.run(flow, status=7 if read else 3, env={"PATH": "/usr/bin:/bin:" + box.dir + "/home/bin"})
        expect(not read or f"read: [{box.dir}/home/bin/tool]" in stopped(log, "denied"), log[-1])


def plan_and_doctor_say_it(box: Place):
    flow = box.file("w.yaml", "name: w\nprovider: stranger\nmovements:\n" + WORK % ("", "test") + command(["make"]) + MEND)
    plan = json.loads(box.segue("plan", flow, "--json", status=0).stdout)
    test = [m for m in plan["movements"] if m["name"] == "test"][0]
    expect(test["sandbox"] == {"level": "guard", "mechanism": "landlock", "from": "work"}, test)
    expect(plan["commands"] == test["sandbox"], plan["commands"])
    box.segue("plan", flow, out=("make, sandbox guard by landlock as of work", "commands  setup, invariants and checks"))
    box.segue("doctor", "--sandbox", "make -s", status=1, out=("guard: exit 2", "off: exit 0", f"read: [{box.key}]", "they differ"))
    box.segue("doctor", "--sandbox", "exit 3", status=0, out=("guard: exit 3", "off: exit 3", "both end alike"))


# Toolchains: (programs that must be there, files, the line, variables of the user's `env`).
CARGO = '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n'
SETUP_PY = "from setuptools import setup\nsetup(name='p', version='1', py_modules=['p'])\n"
DATABASE = ("import socket, threading\ns = socket.socket(socket.AF_UNIX)\ns.bind('db.sock')\ns.listen(1)\n"
            "threading.Thread(target=lambda: s.accept()[0].sendall(b'x'), daemon=True).start()\n"
            "c = socket.socket(socket.AF_UNIX)\nc.connect('db.sock')\nassert c.recv(1) == b'x'\n")
POSTGRES = ("PATH=$(ls -d /usr/lib/postgresql/*/bin | tail -1):$PATH; d=$PWD/db; initdb -D $d -A trust >/dev/null && "
            "pg_ctl -w -D $d -o \"-k $d -c listen_addresses=''\" -l $d/log start >/dev/null && psql -h $d -d postgres -Atc 'select 42' && "
            "pg_ctl -w -D $d stop >/dev/null")
TOOLS = {
    "make and cc": (["make", "cc"], {"Makefile": "all:\n\tcc -o x x.c && ./x\n", "x.c": "int main(void) { return 0; }\n"}, "make"),
    "npm ci from a folder": (["npm", "node"], {"dep/package.json": '{"name": "dep", "version": "1.0.0"}', "package.json":
                             '{"name": "x", "version": "1.0.0", "dependencies": {"dep": "file:dep"}, "scripts": {"test": "node -e \\"require.resolve(\'dep/package.json\')\\""}}'},
                             "npm install --package-lock-only --offline && npm ci --offline && npm test"),
    "pip into a venv": (["python3"], {"p/setup.py": SETUP_PY, "p/p.py": "x = 1\n"},
                        "/usr/bin/python3 -m venv --system-site-packages v && v/bin/pip install --no-index --no-build-isolation ./p && v/bin/python -c 'import p'"),
    "pytest": (["pytest-3"], {"test_x.py": "def test_x(tmp_path):\n    (tmp_path / 'f').write_text('x')\n"}, "pytest-3 -q"),
    "cargo": (["cargo"], {"Cargo.toml": CARGO, "src/main.rs": "fn main() {}\n#[test]\nfn t() {}\n"}, "cargo test --offline"),
    "go": (["go"], {"go.mod": "module x\n", "x_test.go": 'package x\nimport "testing"\nfunc TestX(t *testing.T) {}\n'}, "go test ./..."),
    "a socket in the workspace": (["python3"], {"db.py": DATABASE}, "/usr/bin/python3 db.py"),
    "postgresql over a socket": (["/usr/lib/postgresql"], {}, POSTGRES),
}


def toolchains_work():
    done = []
    path = "/usr/bin:/bin:" + os.environ.get("PATH", "")
    rustup = os.environ.get("RUSTUP_HOME", os.path.expanduser("~/.rustup"))
    for name, (programs, files, line) in TOOLS.items():
        if not all(os.path.exists(p) if "/" in p else shutil.which(p, path=path) for p in programs):
            print("skipped:", name)
            continue
        nobody = name.startswith("postgresql") and os.geteuid() == 0  # who refuses to work as root
        if nobody and not others_can_run():
            continue
        if name.startswith("pip") and subprocess.run(["/usr/bin/python3", "-c", "import ensurepip, setuptools, wheel"], capture_output=True).returncode:
            print("skipped:", name)
            continue
        with Place() as box:
            for at, text in files.items():
                os.makedirs(os.path.dirname(f"{box.cwd}/{at}"), exist_ok=True)
                Path(f"{box.cwd}/{at}").write_text(text)
            where = os.path.dirname(os.path.realpath(shutil.which(programs[0], path=path) or "/usr/bin"))
            reads = [rustup, where, os.path.dirname(shutil.which("cargo", path=path))] if name == "cargo" else []
            box.config({"env": ["RUSTUP_HOME"], "sandbox": {"level": "guard", "mechanism": "landlock", "commands": {"read": reads}}})
            env = {"PATH": path, "RUSTUP_HOME": rustup}
            if nobody:
                os.chmod(box.dir, 0o755)
                subprocess.run(["chown", "-R", "65534:65534", box.dir], check=True)
            _, log, _ = box.run(WORK % ("", "test") + command(["sh", "-c", line], end=END.replace("mend", "ABORT")), env=env, status=None,
                                prefix=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if nobody else ())
            end = of_type(log, "session_end")
            expect(end and end[-1]["outcome"] == "complete", name, [r for r in of_type(log, "call_end")][-1])
            expect(sandbox_of(log)["from"] == "work", name, sandbox_of(log))
            done.append(name)
    expect(len(done) > 2, "too little was tried", done)
    return ", ".join(done)


if __name__ == "__main__":
    need_build()
    if LANDLOCK < 1:
        skip("this kernel has no Landlock")
    sys.exit(main([a_command_has_the_agents_sandbox, at_the_start_it_ends_before_anybody_is_paid, gates_invariants_and_groups,
                   setup_has_it_and_says_so, checks_of_merges_have_it, a_workflow_narrows_and_never_widens, the_narrowest_agent_counts,
                   limits_and_an_open_home_are_the_agents,
                   only_the_users_file_lifts_it, a_session_keeps_what_its_log_says, a_daemon_and_a_fork_do_the_same, bwrap_has_it_too, words_alone_are_no_denial,
                   a_program_that_is_not_seen_is_a_denial,                   plan_and_doctor_say_it, toolchains_work]))
