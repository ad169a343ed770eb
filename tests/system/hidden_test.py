#!/usr/bin/env python3
"""Hidden tests: they decide before a session is complete, and nothing of them reaches an agent, whatever it or the
code that they run tries.

usage: hidden_test.py BUILD_DIR [CASE...]"""
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from daemon import DaemonBox
from support import WAIT_S, Box, expect, main, of_type, records, skip
from worktree_test import git, repository

SECRET = "k3-hidden-word"
FLOW = """name: w
provider: stranger
movements:
  - {name: work, permission: edit, instruction: Do it., judge: {stages: [phase1_tag]}, rules: [{condition: done, next: check}]}
  - name: check
    command: [sh, -c, 'test "$(sh add.sh 1 2)" = 3 && echo "1 of 1 tests passed"']
    tests: auto
    rules: [{condition: when(exit == 0), next: COMPLETE}, {condition: when(true), next: ABORT}]
"""
HARD = "echo 3\n"  # all that the visible check wants
RIGHT = 'echo $(($1 + $2))\n'
TESTS = f'''echo {SECRET}
for i in 1 2 3; do test "$(sh add.sh $i 4)" = $((i + 4)) && p=$((p + 1)) || f=$((f + 1)); done
echo "$((p + 0)) passed, $((f + 0)) failed"
test "$((f + 0))" = 0
'''


def begin(box, settings=None, **config):
    if not held(box):
        skip("no sandbox can be held here")
    repository(box, commits=False)
    Path(box.cwd + "/add.sh").write_text("echo 0\n")
    git(box, "add", "-A")
    git(box, "commit", "-qm", "first")
    hidden = Path(box.dir + "/home/hidden")
    hidden.mkdir()
    (hidden / "tests.sh").write_text(TESTS)
    (hidden / SECRET).write_text(SECRET)
    box.config({"hidden_tests": {"dir": "~/hidden", "command": 'sh "$HIDDEN/tests.sh"', "passed": 3, **(settings or {})},
                **config})
    return hidden


def held(box):
    return "guard" in (box.segue("doctor").stdout + box.segue("sandbox").stdout).decode()


def agent(box, script, status, *words, flow=FLOW, logs=None):
    """Runs the workflow with a shell script as its agent; the log."""
    program = box.file("agent", f"#!/bin/sh\nmark=$(grep -o ':N\\] [a-z0-9]*' | sed 's/.* //')\n{script}\n"
                       "echo Done.; echo \"[WORK:1] $mark\"\n")
    os.chmod(program, 0o755)
    os.makedirs(box.dir + "/home/config/segue/providers", exist_ok=True)
    box.file("home/config/segue/providers/stranger.yaml",
             f"summary: s\nprogram: {program}\nargv: []\noutput: text\ntext: all\n")
    box.segue("run", box.file("w.yaml", flow), "--task", "t", "--logs", logs or box.logs, "--cwd", box.cwd, *words,
              status=status)
    return records(max(box.log_paths() if logs is None else map(str, Path(logs).glob("*.ndjson")), key=os.path.getmtime))


def result(log):
    return of_type(log, "hidden_tests")[-1]["data"]


def holds(folder, but=()):
    """The files below that hold the word, or are named after it."""
    found = subprocess.run(["grep", "-rlaF", SECRET, str(folder)], capture_output=True, text=True).stdout.split("\n")
    found += [str(p) for p in Path(folder).rglob("*" + SECRET + "*")]
    return [f for f in found if f and not any(f.startswith(str(b)) for b in but)]


def left(box):
    state = Path(box.env["XDG_STATE_HOME"] + "/segue/hidden-tests")
    return [p.name for p in state.iterdir()] if state.exists() else []


def wait_for(test, *what):
    until = time.monotonic() + WAIT_S
    while not test():
        expect(time.monotonic() < until, "waited in vain for", *what)
        time.sleep(0.02)


def work_that_passes_and_work_that_does_not():
    with Box() as box:
        hidden = begin(box)
        log = agent(box, f"printf '%s' '{HARD}' >add.sh", 7)
        stop = of_type(log, "session_stop")[-1]
        expect(result(log)["tests"]["passed"] == 0 and not result(log)["passes"], log[-2:])
        expect(stop["reason"] == "hidden_tests" and "0 of 3 hidden tests passed" in stop["message"], stop)
        box.segue("inbox", "--logs", box.logs, out=["hidden tests", "segue approve"])
        expect(not holds(box.dir, [hidden]) and not left(box), holds(box.dir, [hidden]), left(box))
        box.segue("approve", "last", "--logs", box.logs, status=0)
        log = records(box.log_paths()[-1])
        expect(log[-1]["type"] == "session_end" and of_type(log, "session_resume")[-1]["by"]["uid"] == os.getuid(), log[-2:])
        expect(len(of_type(log, "hidden_tests")) == 1, "a person let it be")
        log = agent(box, f"printf '%s' '{RIGHT}' >add.sh", 0)
        expect(result(log) == {**result(log), "passes": True, "wanted": 3}, result(log))
        expect(result(log)["visible"] == {"passed": 1, "failed": 0}, result(log))
        box.segue("verify", box.logs, status=0)
        box.segue("show", "last", "--logs", box.logs, status=0, out="3 of 3 hidden tests passed.")
        gap = json.loads(box.segue("audit", "--gap", "--json", "--logs", box.logs, status=0).stdout)["gap"]
        expect(gap == [{"provider": "stranger", "sessions": 2, "passed": 1, "gap": 0.5,
                        "visible": {"passed": 2, "tests": 2}, "hidden": {"passed": 3, "tests": 6}}], gap)
        box.segue("audit", "--gap", "--logs", box.logs, status=0, out="gap 50.0 %")
        expect(not holds(box.dir, [hidden]), holds(box.dir, [hidden]))


def no_later_prompt_tells():
    with Box() as box:
        begin(box)
        log = agent(box, f"printf '%s' '{HARD}' >add.sh", 7)
        before = set(box.log_paths())
        box.segue("fork", "last", "--from", "work", "--logs", box.logs)
        forked = [p for p in box.log_paths() if p not in before]
        for start in of_type(log, "call_start") + [r for p in forked for r in of_type(records(p), "call_start")]:
            expect("hidden" not in json.dumps(start.get("prompt", "")), start)


def an_agent_looks_for_them():
    with Box() as box:
        hidden = begin(box)
        look = f"""printf '%s' '{HARD}' >add.sh
look() {{ for p in /proc/[0-9]*; do tr '\\0' '\\n' <$p/cmdline; tr '\\0' '\\n' <$p/environ; ls $p/cwd/ $p/root/; done; }} 2>/dev/null
{{ cat {hidden}/*; ls -R {box.dir}; cat {box.dir}/home/config/segue/config.yaml; cat {box.logs}/*; ls -R {box.dir}/home/state
  grep -rs hidden {box.dir}; ln -s {hidden} link; cat link/*; cp -r {hidden} copied; tar cf all.tar {hidden}; look; }} >seen 2>/dev/null
(setsid setsid sh -c 'i=0; while [ $i -lt 200 ]; do for p in /proc/[0-9]*; do tr "\\0" "\\n" <$p/cmdline; cat {hidden}/* {box.dir}/home/state/segue/hidden-tests/*/work/*
 ls {box.dir}/home/state/segue/hidden-tests; done >>seen-later 2>/dev/null; i=$((i + 1)); sleep 0.05; done' >/dev/null 2>&1 &)"""
        agent(box, look, 7)
        for name in ("seen", "seen-later"):
            path = Path(box.cwd, name)
            text = path.read_text(errors="replace") if path.exists() else ""
            for word in (SECRET, "HIDDEN=" + str(hidden), str(hidden) + "/tests.sh"):
                expect(word not in text, name, "has", word, text[max(0, text.find(word) - 500):][:1000])
        expect(not holds(box.dir, [hidden]), holds(box.dir, [hidden]))
        expect(not Path(box.cwd, "copied", SECRET).exists(), "copied")


def the_code_under_test_tells_nobody():
    """The agent's own code runs beside the hidden tests: what it finds there stays nowhere, and it reaches nobody."""
    with Box() as box:
        hidden = begin(box)
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        for folder in (".cache/pip", ".npm/_cacache", ".cargo/registry"):
            os.makedirs(f"{box.dir}/home/{folder}", exist_ok=True)
        code = f"""[ -z "$HIDDEN" ] || {{ for f in {box.cwd} {box.dir}/home {box.dir}/home/.cache/pip {box.dir}/home/.npm/_cacache \\
  {box.dir}/home/.cargo/registry {box.logs} {box.dir}/tmp /tmp /var/tmp /dev/shm {hidden} ../.. .. . .git "$TMPDIR"; do
  cat "$HIDDEN"/* >$f/told-{SECRET}-{os.getpid()}; done
python3 -c 'import socket; socket.create_connection(("127.0.0.1", {port}), 2).send(b"x")'
(setsid sh -c 'sleep 2; cat "$HIDDEN"/* >{box.cwd}/late') & }} >/dev/null 2>&1
echo 3"""
        Path(box.dir + "/code").write_text(code)
        agent(box, f"cp {box.dir}/code add.sh" if False else "cat >add.sh <<'EOF'\n" + code + "\nEOF", 7)
        ours = [hidden / "tests.sh", hidden / SECRET, box.cwd + "/add.sh", box.dir + "/code", box.dir + "/agent"]
        told = holds(box.dir, ours)
        expect(not told, "told", told)
        for folder in ("/tmp", "/var/tmp", "/dev/shm"):
            expect(not list(Path(folder).glob(f"told-{SECRET}-{os.getpid()}")), folder)
        listener.settimeout(0)
        try:
            listener.accept()
            expect(False, "it reached the network")
        except BlockingIOError:
            pass
        expect(not left(box), left(box))


def what_could_show_them_is_not_started():
    off = FLOW.replace("permission: edit", "permission: edit, sandbox: off")
    for settings, config, words, flow, inside in (
            ({}, {"sandbox": {"read": ["~/hidden"]}}, "hidden tests", FLOW, None),
            ({}, {"sandbox": {"read": ["~"]}}, "hidden tests", FLOW, None),
            ({}, {"sandbox": {"write": ["~/hidden/sub"]}}, "hidden tests", FLOW, None),
            ({"dir": "CWD/inside"}, {}, "hidden tests", FLOW, None),
            ({}, {}, "keep logs elsewhere", FLOW, "logs"),
            ({}, {"sandbox": "off"}, None, FLOW, None),
            ({}, {}, None, off, None)):
        with Box() as box:
            begin(box, None, **config)
            os.makedirs(box.dir + "/home/hidden/sub")
            if "dir" in settings:
                os.mkdir(box.cwd + "/inside")
                box.config({"hidden_tests": {"dir": box.cwd + "/inside", "command": "true"}})
            program = box.file("agent", f"#!/bin/sh\ntouch {box.cwd}/started\n")
            os.chmod(program, 0o755)
            os.makedirs(box.dir + "/home/config/segue/providers", exist_ok=True)
            box.file("home/config/segue/providers/stranger.yaml",
                     f"summary: s\nprogram: {program}\nargv: []\noutput: text\ntext: all\n")
            logs = f"{box.cwd}/{inside}" if inside else box.logs
            done = box.segue("run", box.file("w.yaml", flow), "--task", "t", "--logs", logs, "--cwd", box.cwd)
            text = (done.stdout + done.stderr).decode()
            expect(done.returncode not in (0, 3) and not os.path.exists(box.cwd + "/started"), config, flow, text)
            expect(words is None or words in text, words, text)


def counts():
    """Without the wanted number nothing passes, however the program ends."""
    for settings, tests, passes in (
            ({}, "exit 0", False), ({}, "echo 3 passed; exit 1", False), ({}, "echo 3 passed", True),
            ({}, "echo 2 passed", False), ({}, "echo 300 passed", False), ({}, "echo 3 passed, 1 failed", False),
            ({"passed": None}, "exit 0", True), ({"passed": None}, "echo 1 failed", True), ({"passed": None}, "exit 3", False),
            ({"passed": None, "tests": "tap"}, "echo nothing", False),
            ({"passed": None, "tests": "tap"}, "echo 1..1; echo ok 1", True),
            ({"passed": 2, "tests": "tap"}, "echo 1..1; echo ok 1", False),
            ({"timeout": "300ms"}, "echo 3 passed; sleep 60", False)):
        with Box() as box:
            hidden = begin(box)
            (hidden / "tests.sh").write_text(tests + "\n")
            keys = {"dir": "~/hidden", "command": 'sh "$HIDDEN/tests.sh"', "passed": 3, **settings}
            box.config({"hidden_tests": {k: v for k, v in keys.items() if v is not None}})
            log = agent(box, f"printf '%s' '{RIGHT}' >add.sh", 0 if passes else 7)
            expect(result(log)["passes"] == passes, settings, tests, result(log))


def where_they_apply():
    """By project; only where something may have been edited; and in a worktree as well."""
    with Box() as box:
        hidden = begin(box)
        other = {"folder": box.dir + "/home", "dir": str(hidden), "command": "exit 1"}
        own = {"folder": box.cwd, "dir": str(hidden), "command": 'sh "$HIDDEN/tests.sh"', "passed": 3}
        box.config({"hidden_tests": [other]})
        log = agent(box, f"printf '%s' '{HARD}' >add.sh; cat {hidden}/* >seen", 0)
        expect(not of_type(log, "hidden_tests") and Path(box.cwd + "/seen").read_text() == "", "of another project")
        git(box, "checkout", "-q", "add.sh")
        os.remove(box.cwd + "/seen")
        box.config({"hidden_tests": [other, own]})
        log = agent(box, f"printf '%s' '{RIGHT}' >add.sh", 0, "--workspace", "worktree")
        expect(result(log)["passes"], result(log))
        log = agent(box, f"printf '%s' '{HARD}' >add.sh", 7, "--workspace", "worktree")
        expect(not result(log)["passes"], result(log))
        reads = FLOW.replace("permission: edit", "permission: readonly").replace("$(sh add.sh 1 2)", "3")
        log = agent(box, "true", 0, flow=reads)
        expect(not of_type(log, "hidden_tests"), "nothing was edited")


def killed_while_they_run():
    for number in (signal.SIGKILL, signal.SIGTERM):
        with Box() as box:
            hidden = begin(box)
            (hidden / "tests.sh").write_text(f"sleep 600\n")
            program = box.file("agent", "#!/bin/sh\nmark=$(grep -o ':N\\] [a-z0-9]*' | sed 's/.* //')\n"
                               f"printf '%s' '{RIGHT}' >add.sh\necho Done.; echo \"[WORK:1] $mark\"\n")
            os.chmod(program, 0o755)
            os.makedirs(box.dir + "/home/config/segue/providers", exist_ok=True)
            box.file("home/config/segue/providers/stranger.yaml",
                     f"summary: s\nprogram: {program}\nargv: []\noutput: text\ntext: all\n")
            running = box.start("run", box.file("w.yaml", FLOW), "--task", "t", "--logs", box.logs, "--cwd", box.cwd)
            works = Path(box.env["XDG_STATE_HOME"] + "/segue/hidden-tests")
            wait_for(lambda: list(works.glob("*/work/add.sh")) or running.poll() is not None, "the copy")
            running.send_signal(number)
            running.wait(WAIT_S)
            (hidden / "tests.sh").write_text(TESTS)
            box.segue("resume", "last", "--logs", box.logs, status=0)
            log = records(box.log_paths()[-1])
            expect(result(log)["passes"] and len(of_type(log, "hidden_tests")) == 1, log[-3:])
            expect(not left(box), number, left(box))
            box.segue("verify", "last", "--logs", box.logs, status=0)


def in_a_daemon():
    """A person's approval is taken there, too; a program's is not, and nobody else resumes it."""
    with DaemonBox() as box:
        begin(box)
        box.serve()
        flow = FLOW.replace("provider: stranger", "provider: script")
        scenario = box.file("s.yaml", "replies:\n  - {text: \"Done.\\n\\n[WORK:1]\", write: {add.sh: %s}}\n" % json.dumps(HARD))
        sid = box.submit(box.file("w.yaml", flow), scenario)
        box.wait_status(sid, "needs_input")
        stop = records(box.log(sid))[-1]
        expect(stop["reason"] == "hidden_tests" and "0 of 3" in stop["message"], stop)
        box.end()
        box.serve()
        expect(box.session(sid)["status"] == "needs_input", "a new daemon leaves it to a person", box.session(sid))
        box.segue("approve", sid, "--logs", box.logs, status=0)
        box.wait_status(sid, "complete")
        expect(len(of_type(records(box.log(sid)), "hidden_tests")) == 1, sid)


def mistakes():
    with Box() as box:
        for value, words in (({"dir": "~/x"}, "needs dir and command"), ({"dir": "x", "command": "y"}, "absolute"),
                             ({"dir": "/x", "command": "y", "passed": 0}, "1 or more"), ([3], "must be a map"),
                             ({"dir": "/x", "command": "y", "tests": "pytst"}, "pytest"),
                             ({"dir": "/x", "command": "y", "timeout": "3"}, "duration"),
                             ({"dir": "/x", "command": "y", "cmd": 1}, "no key")):
            box.config({"hidden_tests": value})
            done = box.segue("run", "demo", "--logs", box.logs)
            expect(done.returncode == 2 and words.encode() in done.stderr, value, done.stderr)


sys.exit(main([work_that_passes_and_work_that_does_not, no_later_prompt_tells, an_agent_looks_for_them,
               the_code_under_test_tells_nobody, what_could_show_them_is_not_started, counts, where_they_apply,
               killed_while_they_run, in_a_daemon, mistakes]))
