#!/usr/bin/env python3
"""Other hands: on the log of a session, in the folder of the control socket. As root and, where a
test is run as root, as another user beside it."""
import fcntl
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from daemon import DaemonBox, simple
from support import SANITIZED, WAIT_S, Box, at_once, expect, main, of_type, others_can_run, records, verified

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

STOPS = """
name: stops
provider: script
movements:
  - name: one
    instruction: do it
    rules: [{condition: always, next: two}]
  - name: two
    instruction: do it
    rules: [{condition: always, next: COMPLETE}]
"""
FIRST = "replies: [{movement: one, text: done}]\n"
BOTH = "replies: [{movement: one, text: done}, {movement: two, text: done}]\n"


def stopped(box):
    """The log of a session that stopped after its first movement."""
    box.segue("run", box.file("w.yaml", STOPS), "-s", box.file("s.yaml", FIRST), "-t", "x",
              "-l", box.logs, status=1)
    return box.log_paths()[0]


def read(path):
    return Path(path).read_bytes()


def write(path, data):
    Path(path).write_bytes(data)


def changed(line):
    """The same line with one digit of its time another: whole, and not what was written."""
    at = line.index(b'"ts":"') + 9
    return line[:at] + (b"1" if line[at:at + 1] != b"1" else b"2") + line[at + 1:]


def a_changed_last_record(box):
    """Every record of a log in turn the last one, changed in one digit: nobody goes on with it."""
    path = stopped(box)
    lines = read(path).splitlines(keepends=True)
    both = box.file("both.yaml", BOTH)
    for n in range(2, len(lines) + 1):
        bad = b"".join(lines[:n - 1]) + changed(lines[n - 1])
        write(path, bad)
        box.segue("verify", path, status=1, out=b"bad")
        box.segue("resume", path, "-s", both, status=1, err=(b"damaged", b"--cut"))
        expect(read(path) == bad, "the log was touched")
        expect(not os.path.exists(path + ".torn"), "something was set aside")
    return f"{len(lines) - 1} records"


def an_end_that_is_gone(box):
    """A log that was cut short is sound, but the ledger knows better: nobody judges again unsaid."""
    path = stopped(box)
    whole, both = read(path), box.file("both.yaml", BOTH)
    lines = whole.splitlines(keepends=True)
    for keep in range(2, len(lines)):
        write(path, b"".join(lines[:keep]))
        box.segue("resume", path, "-s", both, status=1, err=b"its end is missing")
        expect(read(path) == b"".join(lines[:keep]), "the log was touched")
    box.segue("resume", path, "-s", both, "--cut", "--quiet", status=0)
    return f"{len(lines) - 2} places"


def cut_by_a_person(box):
    """--cut goes on before the damage, keeps what it took off, and says so in the log."""
    path = stopped(box)
    lines = read(path).splitlines(keepends=True)
    both = box.file("both.yaml", BOTH)
    for first in (len(lines), len(lines) - 2):  # the last record; one in the middle
        shutil.copy(path, path + ".kept")
        tail = changed(lines[first - 1]) + b"".join(lines[first:])
        write(path, b"".join(lines[:first - 1]) + tail)
        done = box.segue("resume", path, "-s", both, "--cut", "--quiet", status=0)
        expect(b"damaged tail of %d bytes was cut off" % len(tail) in done.stderr, done.stderr)
        expect(read(path + ".torn") == tail, "not what was cut off")
        os.unlink(path + ".torn")
        told = of_type(records(path), "session_resume")[-1]["cut"]
        expect(told["sha256"] == hashlib.sha256(tail).hexdigest(), told)
        expect(told["records"] == len(lines) - first + 1 and told["bytes"] == len(tail), told)
        expect(told["by"], told)
        verified(box, path)
        os.rename(path + ".kept", path)
    box.segue("resume", path, "--cut", "--daemon", status=2)
    done = box.segue("resume", path, "-s", both, "--cut", "--json")  # nothing is damaged
    expect(done.returncode == 0 and b'"cut"' not in done.stdout, done.stdout)


def the_daemon_refuses_too(box: DaemonBox):
    box.serve()
    workflow, scenario = simple(box, 30000)
    sid = box.submit(workflow, scenario)
    box.until(lambda: len(records(box.log(sid))) > 2, "no call")
    box.end(signal.SIGKILL)
    lines = read(box.log(sid)).splitlines(keepends=True)
    bad = b"".join(lines[:-1]) + changed(lines[-1])
    write(box.log(sid), bad)
    box.serve()
    box.wait_said("is damaged")
    expect(read(box.log(sid)) == bad, "the log was touched")
    expect("damaged" in box.session(sid)["message"], box.session(sid))
    box.end()


def an_empty_log(box):
    """Made, and killed before its first record: nothing that any command calls bad."""
    done = box.segue("run", box.file("w.yaml", STOPS), "-s", box.file("s.yaml", BOTH), "-t",
                     "x", "-l", box.logs, env={"SEGUE_FAULT": "exit:append_before:1"})
    if done.returncode != 99:
        return "skipped: built without faults"
    paths = box.log_paths()
    write(box.logs + "/01990000-0000-7000-8000-000000000000.ndjson", b"")
    for path in {*paths, *box.log_paths()}:
        done = box.segue("verify", path)
        expect(done.returncode == 0 and done.stdout.startswith(b"empty  "), done.stdout)
        done = box.segue("verify", "--json", path)
        expect(json.loads(done.stdout)["state"] == "empty", done.stdout)
        box.segue("resume", path, status=1, err=b"had not started")
    def rows():
        return box.segue("ls", "-l", box.logs).stdout.splitlines()[1:]
    deadline = time.monotonic() + WAIT_S
    while len(rows()) < 2:  # for a moment it may be about to begin
        expect(time.monotonic() < deadline, rows())
    expect(all(b" empty " in row for row in rows()), rows())
    expect(b"no session" in box.segue("show", "last", "-l", box.logs).stderr, "last is it")


LISTENER = """
import os, socket, sys
os.umask(0)
if sys.argv[2] != "-":
    os.mkdir(sys.argv[2], 0o777)
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen(5)
print("there", flush=True)
s.settimeout(60)
while True:
    c, _ = s.accept()
    c.settimeout(60)
    got = c.recv(100000)
    print(len(got), flush=True)
    c.close()
"""


def listener(box, path, folder):
    process = subprocess.Popen([*NOBODY, "python3", "-c", LISTENER, path, folder],
                               stdout=subprocess.PIPE, text=True)
    box.started.append(process)
    return process if process.stdout.readline() == "there\n" else None


def another_users_socket():
    """A listener of another user, in his folder or in one of ours that he can write to, gets no
    byte; commands say why."""
    if os.geteuid() != 0:
        return "skipped: needs root"
    with Box() as box:
        os.chmod(box.dir, 0o777)
        workflow = box.file("w.yaml", STOPS)
        ours = box.dir + "/ours"
        os.mkdir(ours)
        os.chmod(ours, 0o777)
        for folder, made, said in ((box.dir + "/his", box.dir + "/his", b"is not your own folder"),
                                   (ours, "-", b"other users can enter"),
                                   (ours, "-", b"nothing was sent")):
            path = folder + "/segue.sock"
            if os.path.exists(path):
                os.unlink(path)
            process = listener(box, path, made)
            if process is None:
                return "skipped: another user cannot run python3"
            if said == b"nothing was sent":
                os.chmod(ours, 0o700)
            for words in (("submit", workflow, "-t", "a secret task"), ("cancel", "last"), ("ls",)):
                done = box.segue(*words, "--socket", path)
                expect(done.returncode in (1, 2) and said in done.stderr, words, done.stderr)
            process.kill()
            told = process.communicate()[0].split()
            expect(all(n == "0" for n in told), "he was sent bytes:", told)


FACETS = """
name: facets
provider: script
movements:
  - name: one
    persona: coder
    policy: [house, "Be kind to others."]
    instruction: do it
    rules: [{condition: always, next: COMPLETE}]
"""


def put(path, text, owner=None):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write(path, text.encode())
    if owner is not None:
        top = path[:path.index("/.segue") + len("/.segue")]
        for at in (top, *(os.path.join(d, n) for d, ds, fs in os.walk(top) for n in ds + fs)):
            os.chown(at, owner, owner)


def facets_as(user, others, prefix):
    """One user's own facets against those of another above the working directory."""
    with Box() as box:
        shared, home = box.dir + "/shared", box.dir + "/home"
        work, repo = shared + "/mine/work", shared + "/mine"
        os.makedirs(work)
        put(home + "/.segue/facets/personas/coder.md", "MY OWN CODER", user)
        put(home + "/.segue/facets/policies/house.md", "MY HOUSE", user)
        put(shared + "/.segue/facets/personas/coder.md", "ANOTHER'S CODER", others)
        workflow = box.file("w.yaml", FACETS)
        scenario = box.file("s.yaml", FIRST)
        for folder, _, files in os.walk(box.dir):
            os.chmod(folder, 0o755)
            for name in files:
                os.chmod(os.path.join(folder, name), 0o644)
        for path in (box.dir, home, repo, work):
            os.chown(path, user, user)
        env = {"HOME": home, "XDG_CONFIG_HOME": box.dir + "/none", "PYTHONDONTWRITEBYTECODE": "1"}

        box.cwd = work

        def segue(*words, **how):
            return box.segue(*words, env=env, prefix=prefix, **how)

        def prompt(*flags):
            return segue("prompt", workflow, "one", "-t", "x", *flags, status=0)

        # outside of a repository and of $HOME nothing above counts, whosever it is
        expect(b"MY OWN CODER" in prompt().stdout, "another user's persona was taken")
        # within a repository that reaches up to the folder of the other one: passed over, said
        os.mkdir(shared + "/.git")
        expect(b"MY OWN CODER" in prompt().stdout, "another user's persona was taken")
        done = segue("lint", workflow)
        expect(done.returncode == 0 and b"shared/.segue is ignored" in done.stderr, done)
        # one's own project may, and it is said that it stands in for one's own
        put(repo + "/.segue/facets/personas/coder.md", "THE PROJECT'S CODER", user)
        done = prompt()
        expect(b"THE PROJECT'S CODER" in done.stdout, done.stdout)
        project = os.path.realpath(repo + "/.segue/facets/personas/coder.md").encode()
        mine = os.path.realpath(home + "/.segue/facets/personas/coder.md").encode()
        expect(b"persona  " + project + b"  (the project's)" in done.stderr, done.stderr)
        told = json.loads(prompt("--json").stdout)["facets"]
        expect(told[0] == {"kind": "persona", "from": "project", "file": project.decode(),
                           "movements": ["one"], "shadows": mine.decode()}, told)
        expect(told[1]["from"] == "home" and "shadows" not in told[1], told)
        done = segue("lint", workflow)
        expect(project in done.stdout and b"(yours)" in done.stdout, done)
        expect(b"replaces your own, " + mine in done.stderr, done.stderr)
        expect(b"replaces" not in segue("lint", "-q", workflow).stderr, "quiet")
        done = segue("lint", "--json", workflow)
        value = json.loads(done.stdout)
        expect(value["facets"] == told and len(value["warnings"]) == 1, value)
        done = segue("plan", "--json", "--quick", workflow, "-s", scenario)
        expect(json.loads(done.stdout)["facets"] == told, done)
        done = segue("plan", "--quick", workflow, "-s", scenario)
        expect(project + b" (the project's)" in done.stdout, done)
        # the log says it too
        done = segue("run", workflow, "-s", scenario, "-t", "x", "-l", work + "/logs")
        expect(done.returncode == 0 and b"replaces your own" in done.stderr, done.stderr)
        log = [n for n in os.listdir(work + "/logs") if n.endswith(".ndjson")]
        expect(records(f"{work}/logs/{log[0]}")[0]["facets"] == told, "the log")
        # a file system's border
        if user == 0:
            if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", work], check=False,
                              capture_output=True).returncode != 0:
                return "the border of a file system was not tried: nothing can be mounted here"
            try:
                expect(b"MY OWN CODER" in prompt().stdout, "a look beyond a file system's border")
            finally:
                subprocess.run(["umount", work], check=True)
        return ""


def facets_of_others():
    """A .segue that another user planted above the working directory (CVE-2022-24765's class)."""
    if os.geteuid() != 0:
        return "skipped: needs root"
    said = facets_as(0, 65534, ())
    if not others_can_run():
        return "as root. " + said
    facets_as(65534, 0, tuple(NOBODY))
    return "as root and as another user. " + said


# A child in a session of its own, that ignores TERM and has a child without our environment.
AGENT = """
import os, signal, sys, time
pids = sys.argv[1]
first = not os.path.exists(pids)
if first:
    for depth in range(3):
        if os.fork() > 0:
            break
        os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with open(pids, "a") as f:
        f.write(f"{os.getpid()}\\n")
    if depth == 2:
        os.execve("/bin/sleep", ["sleep", "300"], {})
    time.sleep(300)
"""


def shims_of(pid):
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def begin_tree(box):
    return box.file("tree.yaml", json.dumps({"name": "tree", "movements": [
        {"name": "one", "command": ["python3", "-c", AGENT, box.pids],
         "rules": [{"condition": "when(exit == 0)", "next": "COMPLETE"}]}]}))


def pids_of(box):
    if not os.path.exists(box.pids):
        return []
    with open(box.pids, encoding="ascii") as f:
        return [int(line) for line in f]


def kill_both(box, process):
    """SIGKILL to segue and its shims together; the pids that live on."""
    box.until(lambda: len(pids_of(box)) == 4, "the agents did not start")
    victims = shims_of(process.pid)
    expect(victims, "no shim")
    os.kill(process.pid, signal.SIGSTOP)  # it shall not see its shims die
    for pid in (*victims, process.pid):
        os.kill(pid, signal.SIGKILL)
    process.wait()
    return pids_of(box)


def children_of_a_killed_pair(box: DaemonBox):
    """kill -9 of segue and shim at once: what lived on is ended before the call is repeated."""
    workflow = begin_tree(box)
    process = box.start("run", workflow, "-t", "x", "-l", box.logs)
    left = kill_both(box, process)
    alive = [pid for pid in left if is_alive(pid)]
    expect(alive, "nothing lived on: the test proves nothing")
    box.segue("resume", box.log_paths()[0], "--quiet", status=0, err=b"of its last run")
    expect(not any(is_alive(pid) for pid in left), "agents live on:", left)
    return f"{len(alive)} of 4 lived on"


def children_of_a_killed_daemon():
    """The same of a daemon: its next start, and cancel."""
    for cancel in (False, True):
        with DaemonBox() as box:
            box.serve("-n", "1")
            sid = box.submit(begin_tree(box))
            left = kill_both(box, box.process)
            expect(any(is_alive(pid) for pid in left), "nothing lived on")
            if cancel:
                os.mkdir(box.dir + "/off")
                os.rename(box.cwd, box.dir + "/off/work")  # so that it does not go on by itself
                os.mkdir(box.dir + "/other")
                box.cwd = box.dir + "/other"
            box.serve("-n", "1")
            if cancel:
                box.until(lambda: box.session(sid)["status"] == "open", box.session(sid))
                expect(not any(is_alive(pid) for pid in left), "they wait for its turn:", left)
                box.segue("cancel", sid, status=0)
            else:
                box.wait_status(sid, "complete")
            expect(not any(is_alive(pid) for pid in left), "agents live on:", left)
            box.end()


# A child that nothing leads to: a session and an environment of its own, its parents gone.
HIDDEN = """
import os, sys, time
pids = sys.argv[1]
if not os.path.exists(pids):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            with open(pids + ".new", "w") as f:
                f.write(f"{os.getpid()}\\n" * 4)
            os.rename(pids + ".new", pids)
            os.execve("/bin/sleep", ["sleep", "300"], {})
        os._exit(0)
    time.sleep(300)
"""


def groups_here(box):
    """Has segue a control group of its own for a call?"""
    workflow = box.file("group.yaml", json.dumps({"name": "group", "movements": [
        {"name": "one", "command": ["cat", "/proc/self/cgroup"],
         "rules": [{"condition": "when(exit == 0)", "next": "COMPLETE"}]}]}))
    shutil.rmtree(box.dir + "/probe", ignore_errors=True)
    box.segue("run", workflow, "-t", "x", "-l", box.dir + "/probe", status=0)
    log = next(n for n in os.listdir(box.dir + "/probe") if n.endswith(".ndjson"))
    text = next(r["text"] for r in records(f"{box.dir}/probe/{log}") if r["type"] == "call_end")
    return next((x for x in text.splitlines() if x.startswith("0::") and "/segue-" in x), "")[3:]


def what_hides_is_found(box: DaemonBox):
    """Without control groups what has neither its environment nor its parents any more has its mark."""
    workflow = box.file("hidden.yaml", json.dumps({"name": "hidden", "movements": [
        {"name": "one", "command": ["python3", "-c", HIDDEN, box.pids],
         "rules": [{"condition": "when(exit == 0)", "next": "COMPLETE"}]}]}))
    process = box.start("run", workflow, "-t", "x", "-l", box.logs)
    left = kill_both(box, process)
    expect(is_alive(left[0]), "nothing lived on: the test proves nothing")
    expect(b"SEGUE" not in Path(f"/proc/{left[0]}/environ").read_bytes(), "it hides nothing")
    other = subprocess.Popen(["sleep", "300"], stdin=subprocess.DEVNULL)
    done = box.segue("resume", box.log_paths()[0], "--quiet")
    spared = other.poll() is None
    other.kill()
    other.wait()
    expect(done.returncode == 0, done.stderr)
    expect(b"of its last run" in done.stderr, done.stderr)
    expect(not is_alive(left[0]), "it lives on")
    expect(spared, "a process of nobody's session was ended")


def nothing_is_left_at_all(box: DaemonBox):
    """With control groups also what hides from its environment and its parents is ended."""
    group = groups_here(box)
    if not group:
        return "skipped: no control group is handed over to this user"
    workflow = box.file("hidden.yaml", json.dumps({"name": "hidden", "movements": [
        {"name": "one", "command": ["python3", "-c", HIDDEN, box.pids],
         "rules": [{"condition": "when(exit == 0)", "next": "COMPLETE"}]}]}))
    process = box.start("run", workflow, "-t", "x", "-l", box.logs)
    left = kill_both(box, process)
    expect(is_alive(left[0]), "nothing lived on: the test proves nothing")
    box.segue("resume", box.log_paths()[0], "--quiet", status=0, err=b"of its last run")
    expect(not is_alive(left[0]), "it lives on")
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        mount = next(line.split()[4] for line in f if " - cgroup2 " in line)
    below = os.path.dirname(mount + group)
    sid = os.path.basename(box.log_paths()[0])[:36]
    expect(not [n for n in os.listdir(below) if sid in n], "a group is left in", below)
    # one whose owner is dead, of a session that nobody goes on with; one of somebody alive
    dead, alive = (f"{below}/segue-{sid[:-4]}0000-{pid}-1" for pid in (process.pid, os.getpid()))
    os.mkdir(dead)

    def spared():
        os.makedirs(alive, exist_ok=True)
        groups_here(box)
        expect(not os.path.exists(dead), "an old group stays")
        return os.path.exists(alive)
    # To a segue in another namespace of processes, with the same groups, its owner is not alive.
    expect(any(spared() for _ in range(5)), "another's group was removed")
    os.rmdir(alive)


STOPPER = """
import os, signal, sys, time
with open(sys.argv[1], "a") as f:
    f.write(f"{os.getpid()}\\n")
for _ in range(int(sys.argv[2])):
    os.kill(os.getppid(), signal.SIGSTOP)
    time.sleep(0.3)
if int(sys.argv[2]) > 1:
    time.sleep(300)
"""


def a_stopped_shim(box):
    """A program that stops its shim once, by mistake, and one that does it again: the call ends."""
    for times, status in ((1, 0), (1000, 1)):
        workflow = box.file("stop.yaml", json.dumps({"name": "stop", "movements": [
            {"name": "one", "command": ["python3", "-c", STOPPER, box.pids, str(times)],
             "rules": [{"condition": "when(exit == 0)", "next": "COMPLETE"}]}]}))
        done = box.segue("run", workflow, "-t", "x", "-l", box.logs, timeout=50)
        expect(done.returncode != 0 if status else done.returncode == 0, times, done)
        expect(not any(is_alive(pid) for pid in pids_of(box)), "it lives on")


TRACER = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
shim, holder = os.getppid(), os.getpid()
if os.fork() == 0:  # also by a grandchild
    os.setsid()
    holder = os.getpid()
open(sys.argv[1], "a").write("%d\\n" % holder)
SEIZE, INTERRUPT, TRACEME_EXITKILL = 0x4206, 0x4207, 0x100000
held = libc.ptrace(SEIZE, ctypes.c_long(shim), None, ctypes.c_long(TRACEME_EXITKILL if sys.argv[2] == "kill" else 0))
if held == 0:
    libc.ptrace(INTERRUPT, ctypes.c_long(shim), None, None)
    open(sys.argv[1] + ".held", "w").write("yes")
while True:
    time.sleep(1)
"""


def a_traced_shim(box):
    """A program without a sandbox that holds its shim by ptrace: the call ends in its time-out, and leaves nothing."""
    for how in ("", "kill"):
        workflow = box.file("trace.yaml", json.dumps({"name": "trace", "movements": [
            {"name": "one", "command": ["python3", "-c", TRACER, box.pids, how], "timeout": "2s", "sandbox": "off",
             "rules": [{"condition": "when(exit == 0)", "next": "COMPLETE"}]}]}))
        begin = time.monotonic()
        done = box.segue("run", workflow, "-t", "x", "-l", box.logs, timeout=50)
        took = time.monotonic() - begin
        expect(done.returncode != 0, done)
        expect(not any(is_alive(pid) for pid in pids_of(box)), how, "it lives on")
        if not os.path.exists(box.pids + ".held"):
            return "skipped: the machine allows no ptrace"
        expect(SANITIZED or took < 12, how, took)  # 28 s, before
    return None


def leftovers_of_the_killed(box):
    """What killed programs left in TMPDIR goes with the next start, unless somebody uses the folder."""
    box.env["TMPDIR"] = box.dir + "/tmp"
    folder = f"{box.dir}/tmp/segue-{os.geteuid()}.tmp"
    workflow = box.file("w.yaml", json.dumps({"name": "w", "movements": [
        {"name": "one", "command": ["true"], "rules": [{"condition": "when(exit == 0)", "next": "COMPLETE"}]}]}))
    for in_use in (True, False):
        os.makedirs(folder + "/segue-01990000-7-tree/deep", exist_ok=True)
        os.chmod(folder, 0o700)
        Path(folder + "/segue-01990000-7-tree/deep/index").write_text("names", encoding="ascii")
        Path(folder + "/mine").write_text("not segue's", encoding="ascii")
        user = os.open(folder, os.O_RDONLY)
        if in_use:
            fcntl.flock(user, fcntl.LOCK_SH)
        box.segue("run", workflow, "-t", "x", "-l", box.logs, status=0)
        os.close(user)
        expect(os.path.exists(folder + "/segue-01990000-7-tree") == in_use, in_use, os.listdir(folder))
        expect(os.path.exists(folder + "/mine"), "only what segue makes")


HALF_OPEN = """
import socket, sys, time
held = []
for _ in range(int(sys.argv[2])):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.send(b"GET /v1/health HTTP/1.1\\r\\n")
    held.append(s)
print("there", flush=True)
sys.stdin.read()
"""


def half_open_requests(box: DaemonBox):
    """One process that opens all connections and asks nothing does not keep others out."""
    box.serve()
    process = subprocess.Popen(["prlimit", "--nofile=8192:8192", "python3", "-c", HALF_OPEN,
                                box.socket, "4200"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    box.started.append(process)
    expect(process.stdout.readline() == "there\n", "it did not connect")
    begin = time.monotonic()
    health = box.get("/v1/health")
    took = time.monotonic() - begin
    at_once(begin, 5, "another process waited")
    until = time.monotonic() + WAIT_S  # those that made room are closed one after the other
    while health["connections"] > 1100 and time.monotonic() < until:
        health = box.get("/v1/health")
    expect(health["connections"] <= 1100, health)
    process.kill()
    box.end()
    return f"{health['connections']} connections, answered in {took * 1000:.0f} ms"


def sockets_of(pid):
    folder = f"/proc/{pid}/fd"
    try:
        return [f for f in os.listdir(folder) if os.readlink(f"{folder}/{f}").startswith("socket:")]
    except OSError:
        return []  # it has ended, or opens and closes just now


def a_full_queue(box: DaemonBox):
    """A client that finds the daemon's queue of connections full waits for its place."""
    os.mkdir(os.path.dirname(box.socket), 0o700)
    with socket.socket(socket.AF_UNIX) as queue, socket.socket(socket.AF_UNIX) as blocker:
        queue.bind(box.socket)
        queue.listen(0)
        queue.settimeout(30)
        blocker.connect(box.socket)
        client = box.start("cancel", "01a2042c-fe27-70c6-8bfc-ef0acfb05086")
        while client.poll() is None and len(sockets_of(client.pid)) < 3:
            pass  # its own pair of sockets, and the one that found the queue full
        queue.accept()[0].close()
        request = b""
        while not request:  # a connection that only waited for a place is closed at once
            asked = queue.accept()[0]
            asked.settimeout(30)
            request = asked.recv(65536)
        text = b'{"detail": "there is no such session"}'
        asked.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n"
                      b"Content-Length: %d\r\nConnection: close\r\n\r\n%s"
                      % (len(text), text))
        words = client.communicate(timeout=WAIT_S)[1]
        asked.close()
        expect(b"there is no" in words, words)


def a_host_that_is_another(box: DaemonBox):
    """A page of a browser that reaches the socket through something that passes requests on."""
    box.serve()
    for host, status in ((b"segue", 200), (b"localhost:8080", 200), (b"127.0.0.1", 200),
                         (b"[::1]:9", 200), (b"LocalHost", 200), (b"evil.example", 421),
                         (b"segue.evil.example", 421), (b"localhost:80@evil", 421),
                         (b"localhost.", 421), (b"segue\r\nHost: evil.example", 400)):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(20)
            s.connect(box.socket)
            s.sendall(b"GET /v1/health HTTP/1.1\r\nConnection: close\r\nHost: " + host +
                      b"\r\n\r\n")
            got = s.recv(4096)
        expect(got.startswith(b"HTTP/1.1 %d " % status), host, got[:100])
    box.end()


def small_things(box: DaemonBox):
    box.serve()
    workflow, _ = simple(box)
    os.mkfifo(box.dir + "/fifo")
    body = {"workflow": workflow, "cwd": box.cwd, "scenario": box.dir + "/fifo"}
    status, value = box.ask("POST", "/v1/sessions", body)
    expect(status == 422, "a FIFO as scenario gave", status, value)
    text = ("name: x\nprovider: script\nmovements:\n  - name: a\n    instruction: do it\n"
            "    structured_output: {schema: ./s.json, on_failure: error}\n"
            "    rules: [{condition: always, next: COMPLETE}]\n")
    body = {"workflow": {"text": text}, "cwd": box.cwd}
    status, value = box.ask("POST", "/v1/sessions", body)
    expect(status == 422 and "null" not in json.dumps(value["errors"]), value)
    box.end()
    for path in (".git/hooks/pre-commit", "sub/.GIT/config"):
        scenario = json.dumps({"replies": [{"movement": "one", "text": "x",
                                            "write": {path: "echo"}}]})
        done = box.segue("run", box.file("w.yaml", STOPS), "-s", box.file("s.yaml", scenario),
                         "-t", "x", "-l", box.dir + "/l")
        expect(done.returncode == 1 and b"git" in done.stdout + done.stderr, done)
        expect(not os.path.exists(f"{box.cwd}/{path}"), "it was written")
    os.mkdir(box.dir + "/big")  # a line of 2 GB
    with open(box.dir + "/big/01990000-0000-7000-8000-000000000000.ndjson", "wb") as f:
        f.truncate(2 << 30)
    done = box.segue("ls", "-l", box.dir + "/big", prefix=("/usr/bin/python3", "-c", PEAK))
    kib = int(done.stderr.splitlines()[-1])
    expect(SANITIZED or kib < 100 * 1024, "ls took", kib, "KiB")
    return f"ls of a line of 2 GB takes {kib // 1024} MiB"


PEAK = ("import resource, subprocess, sys\nsubprocess.run(sys.argv[1:])\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)")

CASES = [a_changed_last_record, an_end_that_is_gone, cut_by_a_person, the_daemon_refuses_too, an_empty_log,
         another_users_socket, facets_of_others, children_of_a_killed_pair,
         children_of_a_killed_daemon, what_hides_is_found, nothing_is_left_at_all, a_stopped_shim, a_traced_shim, leftovers_of_the_killed, half_open_requests, a_full_queue,
         a_host_that_is_another, small_things]

if __name__ == "__main__":
    sys.exit(main(CASES))
