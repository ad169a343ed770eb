#!/usr/bin/env python3
"""What agents may touch: a hostile program tries it all at each level, as root and as an ordinary
user, and what it could do is held against the table below, which docs/sandbox.md shows.

usage: sandbox_test.py BUILD_DIR [CASE...]

Skipped where the kernel has no Landlock: then what stands in the place of a level is tested."""
import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from daemon import DaemonBox
from support import SEGUE, WAIT_S, Box, expect, main, need_build, needs, of_type, others_can_run, records, skip, verified

DEEDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sandbox_deeds.py")
LIBC = ctypes.CDLL(None, use_errno=True)
LANDLOCK = LIBC.syscall(444, None, 0, 1)
NOBODY = 65534
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable  # in no home

# The levels at which each can be done; with a mark what else it takes. Whatever does not stand here
# is done at no level but off.
DONE = {
    "list the home folder": "off guard",
    "call a named socket": "off guard",
    "read segue's configuration": "off",
    "plant a hook": "off guard strict",
    "change git's settings": "off guard strict",
    "give git settings of a worktree": "off guard strict", "give git another folder": "off guard strict",
    "write to a cache": "off guard",
    "share memory with a neighbour": "off guard strict",
    "change a key's mode": "off guard strict", "change times beside the workspace": "off guard strict",
    "watch a folder": "off guard strict", "limit itself": "all",
    "open IPv4": "network", "open IPv6": "network", "send UDP": "network", "send UDP by IPv6": "network",
    "ask DNS": "network", "listen": "network", "make a socket to the host": "network",
    "write in the workspace": "all", "write to its own folder": "all", "keep its own state": "all",
    "read the system": "all", "run a program": "all", "trace its own child": "all",
    "stay behind": "all",  # and is ended: see below
    "read an inherited descriptor": "never", "have a descriptor of segue's": "never", "type into the terminal": "never",
}
# Where bubblewrap holds it: a network of its own is empty, what is written in a home that is not
# there goes nowhere (with UDP what is sent, too), and abstract sockets belong to the network.
BWRAP = {
    "plant a hook": "off", "change git's settings": "off",
    "give git settings of a worktree": "off", "give git another folder": "off",
    "share memory with a neighbour": "off",
    "change a key's mode": "off", "change times beside the workspace": "off", "watch a folder": "off guard",
    "call an abstract socket": "network", "send UDP": "all", "send UDP by IPv6": "all",
    "listen": "all",
    "list the home folder": "off guard strict", "write in the home folder": "off strict",
    "write to a FIFO": "off guard",  # a read-only mount does not stop that
}
WORKFLOW = """name: deeds
movements:
  - name: work
    instruction: Do it.
    permission: %s
    %s
    rules: [{condition: done, next: COMPLETE}, {condition: again, next: work}]
    judge: {stages: [phase1_tag]}
max_movements: 100
"""
EARLIER = 90  # calls at most until a shim stands by: rules made just after a change, or a mount, are not kept


def serve_socket(s):
    """Accepts for ever and answers a byte, where anybody asks."""
    def answer():
        with contextlib.suppress(OSError):
            while True:
                c, _ = s.accept()
                with contextlib.suppress(OSError):
                    c.recv(100)
                    c.sendall(b"x")
                c.close()
    threading.Thread(target=answer, daemon=True).start()


def answer_each(udp):
    def answer():
        with contextlib.suppress(OSError):
            while True:
                said, who = udp.recvfrom(600)
                udp.sendto(said, who)
    threading.Thread(target=answer, daemon=True).start()


class Stage(DaemonBox):
    """A box with everything in it that a hostile program would like."""

    def __init__(self, user):
        super().__init__()
        self.user, self.sockets = user, []
        self.home = self.dir + "/home"
        for name in (".ssh/keys", "mine", "config/segue/providers", "bin", ".cache/ccache", "state-of-it"):
            os.makedirs(f"{self.home}/{name}")
        for name in (".ssh/id", ".ssh/id2", ".ssh/keys/id", "mine/token", "config/segue/SECRET.yaml", "notes"):
            self.file("home/" + name, "SECRET\n")
        self.file("home/bin/tool", "#!/bin/sh\n")
        os.makedirs(self.dir + "/out")
        self.file("out/target", "kept\n")
        os.mkfifo(self.dir + "/out/fifo")
        subprocess.run(["git", "init", "-q", self.cwd], check=True, env={"HOME": self.home, "PATH": self.env["PATH"]})
        for name, family in (("port", socket.AF_INET), ("port6", socket.AF_INET6)):
            s = socket.socket(family)
            s.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 0))
            s.listen(5)
            serve_socket(s)
            setattr(self, name, s.getsockname()[1])
            self.sockets.append(s)
        for name, family in (("udp", socket.AF_INET), ("udp6", socket.AF_INET6)):
            udp = socket.socket(family, socket.SOCK_DGRAM)
            udp.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 0))
            answer_each(udp)
            setattr(self, name, udp.getsockname()[1])
            self.sockets.append(udp)
        self.abstract = "segue-test-" + os.path.basename(self.dir)
        for address in (self.dir + "/bus", "\0" + self.abstract):
            s = socket.socket(socket.AF_UNIX)
            s.bind(address)
            s.listen(5)
            serve_socket(s)
            self.sockets.append(s)
        os.chmod(self.dir + "/bus", 0o777)
        self.shared = LIBC.shmget(0, 4096, 0o1666)  # IPC_PRIVATE
        LIBC.shmat.restype = ctypes.c_void_p
        at = LIBC.shmat(self.shared, None, 0)
        ctypes.memmove(at, b"SECRET", 6)
        LIBC.shmdt(ctypes.c_void_p(at))
        self.provider()

    def provider(self):
        program = self.file("home/bin/hostile", f"#!/bin/sh\nmark=$(grep -o '\\[WORK:N\\] [a-z0-9]*' | sed 's/.* //')\ncd {self.cwd}\n"
                            "stands=$(grep -c next- /proc/$PPID/cmdline)\n"
                            "if [ -s earlier ] && [ $stands = 0 ]; then sed -i 1d earlier; echo \"[WORK:2] $mark\"; exit; fi\n"
                            "echo $stands\n"
                            f"{PYTHON} {self.home}/bin/deeds.py {self.cwd}/orders.json\necho Done.\necho \"[WORK:1] $mark\"\n")
        os.chmod(program, 0o755)
        shutil.copyfile(DEEDS, self.home + "/bin/deeds.py")
        self.file("home/config/segue/providers/hostile.yaml",
                  f"summary: hostile\nprogram: {program}\nargv: []\noutput: text\ntext: all\n"
                  "state: [~/state-of-it/]\n")

    def configure(self, **sandbox):
        self.config({"provider": "hostile", "sandbox": {"secret": ["~/mine"], **sandbox}})

    def own(self):
        if self.user:
            for top, folders, files in os.walk(self.dir):
                for name in [top, *(os.path.join(top, n) for n in folders + files)]:
                    os.chown(name, self.user, self.user, follow_symlinks=False)

    def as_user(self):
        return ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups"] if self.user else []

    def __exit__(self, *exc):
        for s in self.sockets:
            s.close()
        LIBC.shmctl(self.shared, 0, None)  # IPC_RMID
        super().__exit__(*exc)


def run_deeds(user, keys="", permission="edit", before=(), earlier=0, tries=9, **sandbox):
    """What the hostile program could do, by name, and its log. `before`: words before segue's; `earlier`: so many
    calls it does nothing, while no shim stands by."""
    with Stage(user) as box:
        box.file("work/earlier", "\n" * earlier)
        box.configure(**sandbox)
        other = "/root/segue-test-other" if os.geteuid() == 0 and user == 0 else box.dir + "/nothing"
        neighbour = subprocess.Popen([*box.as_user(), "sleep", "1000"], env={"SECRET": "SECRET", "PATH": box.env["PATH"]})
        box.started.append(neighbour)
        at = {"home": box.home, "out": box.dir + "/out", "logs": box.logs, "other": other,
              "bound": box.dir + "/bound", "part": box.dir + "/part", "neighbour": neighbour.pid, "daemon": box.socket,
              "bus": box.dir + "/bus", "abstract": box.abstract, "port": box.port, "port6": box.port6,
              "udp": box.udp, "udp6": box.udp6, "shared": box.shared}
        os.mkdir(box.dir + "/bound")
        os.mkdir(box.dir + "/part")
        box.own()
        box.serve(prefix=box.as_user())
        at["segue"] = box.process.pid
        box.file("work/orders.json", json.dumps(at))
        secret = os.open(box.home + "/notes", os.O_RDONLY)
        mount = []
        if os.geteuid() == 0:  # a folder that is to be seen at another place, too, for this one run
            mount = ["unshare", "-m", "sh", "-c", f"mount --bind {box.home} {box.dir}/bound && "
                     f"mount --bind {box.home}/.ssh/keys {box.dir}/part && exec \"$@\"", "sh"]
        above = os.stat(tempfile.gettempdir()).st_mtime_ns
        done = subprocess.run([*before, *mount, *box.as_user(), SEGUE, "run", "--trust", box.file("w.yaml", WORKFLOW % (permission, keys)),
                               "--task", "t", "--logs", box.logs, "--cwd", box.cwd], cwd=box.cwd, env=box.env,
                              capture_output=True, timeout=WAIT_S, stdin=subprocess.DEVNULL, pass_fds=[secret])
        os.close(secret)
        box.process.send_signal(signal.SIGCONT)  # one that was traced stands still
        expect(done.returncode == 0, done.stdout, done.stderr)
        log = records(box.log_paths()[-1])
        verified(box, box.log_paths()[-1])
        text = of_type(log, "call_end")[-1]["text"]
        deeds = {d["deed"]: d for d in map(json.loads, (line for line in text.splitlines() if line.startswith("{")))}
        if earlier and not text.startswith("1\n"):  # rules are not kept while others write in the folder above
            expect(os.stat(tempfile.gettempdir()).st_mtime_ns != above and tries > 1, "no shim stood by", text)
            return run_deeds(user, keys, permission, before, earlier, tries - 1, **sandbox)
        expect(len(deeds) > 40, text, of_type(log, "call_end")[-1].get("stderr"))
        with open(box.cwd + "/stays", "ab") as f:  # the one that stays behind would hold it
            import fcntl
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return deeds, log


def wanted(deed, level, network, mechanism):
    at = DONE.get(deed, "off")
    if mechanism == "bwrap":
        at = BWRAP.get(deed, at)
    if at in ("all", "never"):
        return at == "all"
    if at == "network":
        return network == "open"
    return level in at.split()


def check_level(level, network, user, mechanism="landlock", earlier=0):
    keys = f"sandbox: {level}" + ("" if network == "open" else f"\n    network: {network}")
    deeds, log = run_deeds(user, keys, earlier=earlier, mechanism=mechanism)
    wrong = {}
    for deed, d in deeds.items():
        if level == "off" and deed not in CONTROLS:  # what a machine holds by itself is another matter
            continue
        if d["done"] != wanted(deed, level, network, mechanism):
            wrong[deed] = d
    expect(not wrong, level, network, user, json.dumps(wrong, indent=1))
    told = {r.get("sandbox", {}).get("level") for r in of_type(log, "call_start")}
    expect(told == {level}, told)
    expect(level == "off" or of_type(log, "call_start")[0]["sandbox"]["mechanism"] == mechanism, told)


# These can be done where nothing holds the program: so the deeds themselves are right.
CONTROLS = {"read a key", "read a listed secret", "write beside the workspace", "read through a link", "write through a link",
            "write in the home folder", "write over a program", "read through a hard link", "link out",
            "empty a file", "read by its own descriptors", "call a named socket", "call an abstract socket",
            "plant a hook", "limit a neighbour", "limit segue", "share memory with a neighbour", "change a key's mode",
            "signal a neighbour", "signal segue", "ask DNS", "send UDP by IPv6", "open IPv4", "open IPv6", "send UDP",
            "read another's environment", "read by another's root", "read a log", "call segue's daemon",
            "write in the workspace", "keep its own state", "write to a FIFO"}


def users():
    return (0, NOBODY) if os.geteuid() == 0 and others_can_run() else (0,)


def nothing_is_held_with_off():
    for user in users():
        check_level("off", "open", user)


def guard_holds_what_it_says():
    for user in users():
        check_level("guard", "open", user)


def strict_holds_what_it_says():
    for user in users():
        check_level("strict", "open", user)


def a_shim_that_stood_by_holds_the_same():  # rules of strict name the call's own folder, so none are kept
    for user in users():
        check_level("guard", "open", user, earlier=EARLIER)
        check_level("guard", "none", user, earlier=EARLIER)


def no_network_is_none():
    for user in users():
        check_level("guard", "none", user)
        check_level("strict", "none", user)


def bwrap_works():
    """Containers often let nobody make namespaces."""
    return shutil.which("bwrap") and subprocess.run(["bwrap", "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "true"],
                                                    capture_output=True).returncode == 0


def needs_bwrap():
    needs("bwrap")
    if not bwrap_works():
        skip("bubblewrap may make no namespaces here")


def bwrap_holds_it_too():
    needs_bwrap()
    for user in users():
        for level in ("guard", "strict"):
            for network in ("open", "none"):
                check_level(level, network, user, "bwrap")


def bwrap_keeps_where_git_looks():
    """In a worktree and in a submodule .git is a file; whoever changes it, or what it leads to,
    chooses the hooks of the next commit there."""
    needs_bwrap()
    with Box() as box:
        os.makedirs(box.dir + "/home/config/segue")
        box.file("home/config/segue/config.yaml", json.dumps({"sandbox": {"mechanism": "bwrap"}}))

        def git(at, *words):
            done = subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", "-c", "protocol.file.allow=always", *words],
                                  cwd=at, env={"PATH": box.env["PATH"], "HOME": box.dir + "/home"}, capture_output=True)
            expect(done.returncode == 0, words, done.stderr)
            return done.stdout.decode().strip()
        repository, other = box.dir + "/repository", box.dir + "/other"
        for at in (repository, other):
            git(box.dir, "init", "-q", at)
            git(at, "commit", "-q", "--allow-empty", "-m", "first")
        git(repository, "worktree", "add", "-q", box.dir + "/tree")
        git(repository, "submodule", "--quiet", "add", other, "sub")
        flow = box.file("w.yaml", "name: c\nmovements:\n  - name: a\n    sandbox: guard\n    command: [sh, ./deeds]\n"
                        "    rules: [{condition: when(exit == 0), next: COMPLETE}, {condition: when(true), next: ABORT}]\n")
        for at in (box.dir + "/tree", repository + "/sub", repository):
            own = git(at, "rev-parse", "--absolute-git-dir")
            Path(at + "/deeds").write_text("for at in .git $OWN/commondir $OWN/gitdir $OWN/config.worktree; do\n"
                    "  [ -e $at ] && (echo evil >>$at) && exit 7; rm $at && exit 8; mv $at moved && exit 9\n"
                    "done 2>/dev/null\ntouch made\nexit 0\n".replace("$OWN", own), encoding="utf-8")
            box.segue("run", flow, "--task", "t", "--logs", box.logs, "--cwd", at, status=0)
            expect(os.path.exists(at + "/made"), "it could not write at all", at)
            git(at, "commit", "--allow-empty", "-m", "second")
            expect(git(at, "rev-parse", "--absolute-git-dir") == own, at)
            expect(not os.path.exists(own + "/config.worktree"), "what stood in for it stays", at)
        expect(not os.path.exists(repository + "/.git/commondir"), "what stood in for it stays")


def bwrap_leaves_nothing_in_the_home_folder():
    needs_bwrap()
    with Box() as box:
        os.makedirs(box.dir + "/home/config/segue")
        box.file("home/config/segue/config.yaml", json.dumps({"sandbox": {"mechanism": "bwrap"}}))
        flow = ("name: c\nmovements:\n  - name: a\n    command: [sh, -c, 'cd; pwd; echo x > planted; (sleep 1000; echo x) & exit 3']\n"
                "    sandbox: strict\n    rules: [{condition: when(exit == 3), next: COMPLETE}, {condition: when(true), next: ABORT}]\n")
        box.segue("run", box.file("w.yaml", flow), "--task", "t", "--logs", box.logs)
        log = records(box.log_paths()[-1])
        expect(of_type(log, "session_end")[-1]["outcome"] == "complete", of_type(log, "call_end"))
        expect(not os.path.exists(box.dir + "/home/planted"), "it was written")


def readonly_writes_no_workspace():
    deeds, _ = run_deeds(0, "sandbox: guard", "readonly")
    for deed in ("write in the workspace", "plant a hook", "change git's settings"):
        expect(not deeds[deed]["done"], deed)
    for deed in ("write to its own folder", "keep its own state"):
        expect(deeds[deed]["done"], deed, deeds[deed])


def a_command_writes_unless_it_is_told():
    """A command is the user's own words, so that it may write its workspace; with permission: readonly it may not."""
    for told, writes in (("", True), ("permission: edit", True), ("permission: readonly", False), ("edit: false", False)):
        with Stage(0) as box:
            flow = ("name: c\nmovements:\n  - name: a\n    command: [sh, -c, 'echo x > made']\n    sandbox: guard\n" + (f"    {told}\n" if told else "") +
                    "    rules: [{condition: when(true), next: COMPLETE}]\n")
            done = box.segue("run", box.file("w.yaml", flow), "--task", "t", "--logs", box.logs)
            expect(done.returncode == 0 and os.path.exists(box.cwd + "/made") == writes, told, done)


def guard_is_the_default():
    with Stage(0) as box:
        box.configure()
        box.file("work/orders.json", "{}")
        plan = json.loads(box.segue("plan", box.file("w.yaml", WORKFLOW % ("edit", "")), "--task", "t", "--json").stdout)
        expect(plan["movements"][0]["work"][0]["sandbox"] == {"level": "guard", "mechanism": "landlock"}, plan)
        doctor = box.segue("doctor", "--quick", "--json").stdout.decode()
        found = [f for f in json.loads(doctor)["findings"] if f["what"] == "sandbox"]
        expect(len(found) == 1 and "guard by landlock" in found[0]["text"], found)
        told = {f["what"]: f for f in json.loads(doctor)["findings"]}
        engine = any(os.path.exists(f"{at}/{name}") for at in ("/usr/bin", "/bin", "/usr/local/bin") for name in ("podman", "docker"))
        expect(told["containers"]["text"] in ("podman", "docker") if engine else "neither podman" in told["containers"]["text"], told)
        expect("bubblewrap" in told, told)


def the_user_may_forbid_less():
    with Stage(0) as box:
        box.configure(least="guard")
        done = box.segue("run", box.file("w.yaml", WORKFLOW % ("edit", "sandbox: off")), "--task", "t", "--logs", box.logs)
        expect(done.returncode == 3 or done.returncode == 2 or done.returncode == 1, done.returncode)
        expect(b"/w.yaml:6:14: movement work: sandbox: off is less than your config.yaml allows" in done.stderr, done.stderr)
        expect(not box.log_paths(), "it began")


def wrong_words_are_said():
    with Stage(0) as box:
        for words, says in (({"level": "gard"}, "did you mean guard?"), ({"lesat": "off"}, 'did you mean "least"?'),
                            ({"read": "x"}, "a list of at most"), ({"read": ["x"]}, "an absolute path")):
            box.file("home/config/segue/config.yaml", json.dumps({"sandbox": words}))
            box.segue("doctor", "--quick", out=says.encode())
        box.configure()
        done = box.segue("check", box.file("w.yaml", WORKFLOW % ("edit", "sandbox: tight")))
        done = box.segue("run", box.file("w.yaml", WORKFLOW % ("edit", "sandbox: tight")), "--task", "t")
        expect(b"off, guard, strict or container" in done.stderr, done.stderr)


def commands_are_off_and_on_request_held(box):
    os.mkdir(box.dir + "/home/.ssh")
    box.file("home/.ssh/id", "SECRET\n")
    flow = ("name: c\nmovements:\n  - name: a\n    command: [sh, -c, 'cat ~/.ssh/id']\n    %s\n"
            "    rules: [{condition: when(exit == 0), next: COMPLETE}, {condition: when(true), next: ABORT}]\n")
    for key, level, end in (("description: x", None, "complete"), ("sandbox: guard", "guard", "abort")):
        box.segue("run", box.file("w.yaml", flow % key), "--task", "t", "--logs", box.logs)
        log = records(box.log_paths()[-1])
        expect(of_type(log, "session_end")[-1]["outcome"] == end, level, log[-1])
        expect(of_type(log, "call_start")[0].get("sandbox", {}).get("level") == level, log)


def a_secret_in_a_cache_is_one(box):
    flow = ("name: c\nmovements:\n  - name: a\n    command: [sh, -c, 'cd ~/.cargo/registry; cat token; echo x > new%s && cat a && cat new%s']\n"
            "    sandbox: guard\n    rules: [{condition: when(exit == 0), next: COMPLETE}, {condition: when(true), next: ABORT}]\n")
    os.makedirs(box.dir + "/home/.cargo/registry")
    os.makedirs(box.dir + "/home/config/segue")
    box.file("home/config/segue/config.yaml", json.dumps({"sandbox": {"secret": ["~/.cargo/registry/token"]}}))
    box.file("home/.cargo/registry/a", "PLAIN\n")
    for secret in (False, True):
        if secret:
            box.file("home/.cargo/registry/token", "SECRET\n")
        box.segue("run", box.file("w.yaml", flow % (secret, secret)), "--task", "t", "--logs", box.logs)
        end = of_type(records(box.log_paths()[-1]), "call_end")[0]
        expect("PLAIN" in end["text"] and "SECRET" not in end["text"], end)
        expect((end["exit"] == 0) == (not secret), end)  # what is new is read where nothing is secret


OWN = """import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
read = (1 << 2) | (1 << 3)
rules = libc.syscall(444, ctypes.byref(ctypes.c_uint64(read)), 8, 0)
class Path(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("fd", ctypes.c_int32)]
one = Path(read, os.open("/usr", os.O_PATH))
ok = rules >= 0 and libc.syscall(445, rules, 1, ctypes.byref(one), 0) == 0 and libc.syscall(446, rules, 0) == 0
held = False
try:
    os.listdir(".")
except PermissionError:
    held = True
sys.exit(3 if ok and held and os.listdir("/usr") else 1)
"""


def a_sandbox_of_its_own_is_within_ours():
    """Landlock within Landlock holds both; a client whose own cannot be set there is told to leave it out."""
    with Stage(0) as box:
        box.configure()
        box.file("work/own.py", OWN)
        flow = (f"name: c\nmovements:\n  - name: a\n    command: [{PYTHON}, own.py]\n    sandbox: %s\n"
                "    rules: [{condition: when(exit == 3), next: COMPLETE}, {condition: when(true), next: ABORT}]\n")
        for level in ("off", "guard", "strict"):
            box.segue("run", box.file("w.yaml", flow % level), "--task", "t", "--logs", box.logs)
            expect(of_type(records(box.log_paths()[-1]), "session_end")[-1]["outcome"] == "complete", level)
        program = box.file("home/bin/codex", "#!/bin/sh\necho \"$*\" >> argv\nexit 1\n")
        os.chmod(program, 0o755)
        box.file("home/config/segue/config.yaml", json.dumps({"providers": {"codex": {"program": program, "transport": "exec"}}}))
        flow = ("name: c\nprovider: codex\nmovements:\n  - {name: a, instruction: Do it., permission: edit, sandbox: %s,\n"
                "     judge: {stages: [phase1_tag]}, rules: [{condition: done, next: COMPLETE}]}\n")
        for level, own in (("off", True), ("guard", False)):
            box.segue("run", box.file("w.yaml", flow % level), "--task", "t", "--logs", box.logs, "--no-lock", env={"OPENAI_API_KEY": "none"})
            argv = Path(box.cwd + "/argv").read_text(encoding="utf-8")
            os.remove(box.cwd + "/argv")
            expect(("workspace-write" in argv) == own, level, argv)


def what_was_denied_is_shown(box):
    os.mkdir(box.dir + "/home/.ssh")
    box.file("home/.ssh/id", "SECRET\n")
    flow = ("name: c\nmovements:\n  - name: a\n    command: [sh, -c, 'cat ~/.ssh/id; touch /usr/planted; rm -f /usr/planted; exit 1']\n    %s\n"
            "    rules: [{condition: when(true), next: COMPLETE}]\n")
    box.segue("run", box.file("w.yaml", flow % "sandbox: guard"), "--task", "t", "--logs", box.logs)
    told = box.segue("show", "last", "a", "--logs", box.logs).stdout.decode()
    expect("perhaps by its sandbox (guard by landlock)" in told, told)
    key = os.path.realpath(box.dir + "/home") + "/.ssh/id"
    expect(f"{key}: sandbox: {{read: [{key}]}} in config.yaml allows it" in told or
           f"{box.dir}/home/.ssh/id: sandbox: {{read: [" in told, told)
    expect("/usr/planted: sandbox: {write: [/usr/planted]} in config.yaml allows it" in told, told)
    if bwrap_works():  # what is hidden is not there
        box.segue("run", box.file("w.yaml", flow % "sandbox: guard\n    network: api"), "--task", "t", "--logs", box.logs)
        told = box.segue("show", "last", "a", "--logs", box.logs).stdout.decode()
        expect(re.search(r"/.ssh/id: hidden or missing: sandbox: \{read: \[\S+/.ssh/id\]\} in config.yaml allows it", told), told)
        expect("/usr/planted: sandbox: {write:" in told, told)
    box.segue("run", box.file("w.yaml", flow % "sandbox: off"), "--task", "t", "--logs", box.logs)
    told = box.segue("show", "last", "a", "--logs", box.logs).stdout.decode()
    expect("perhaps by its sandbox" not in told, told)


def builds_run_under_guard():
    needs("make")
    with Box() as box:
        done, rustup = [], os.environ.get("RUSTUP_HOME", os.path.expanduser("~/.rustup"))
        os.makedirs(box.dir + "/home/config/segue")
        flow = ("name: c\nmovements:\n  - name: a\n    command: [sh, -c, '%s']\n    sandbox: guard\n"
                "    rules: [{condition: when(exit == 0), next: COMPLETE}, {condition: when(true), next: ABORT}]\n")
        box.file("work/Makefile", "all:\n\tcc -o x x.c && ./x\n")
        box.file("work/x.c", "int main(void) { return 0; }\n")
        os.makedirs(box.cwd + "/pack")
        box.file("work/pack/package.json", '{"name": "x", "version": "1.0.0", "scripts": {"build": "node -e 0"}}')
        os.makedirs(box.cwd + "/crate/src")
        box.file("work/crate/Cargo.toml", '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n')
        box.file("work/crate/src/main.rs", "fn main() {}\n")
        path = os.environ.get("PATH", "/usr/bin:/bin")
        for program, line in (("make", "make && rm x"), ("npm", "cd pack && npm install --offline && npm run build"),
                              ("cargo", "cd crate && cargo build --offline")):
            if shutil.which(program, path=path) is None:
                continue
            env = {"PATH": path}
            box.file("home/config/segue/config.yaml", json.dumps({"env": ["RUSTUP_HOME"], "sandbox": {"read": [os.path.dirname(os.path.realpath(
                shutil.which(program, path=path))), *([rustup] if program == "cargo" else [])]}}))
            if program == "cargo":
                env["RUSTUP_HOME"] = rustup
            out = box.segue("run", box.file("w.yaml", flow % line), "--task", "t", "--logs", box.logs, env=env)
            log = records(box.log_paths()[-1])
            expect(of_type(log, "session_end")[-1]["outcome"] == "complete", program, out.stdout, of_type(log, "call_end"))
            done.append(program)
        expect(done, "nothing was built")


if __name__ == "__main__":
    need_build()
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    if LANDLOCK < 1:
        skip("this kernel has no Landlock")
    if LANDLOCK < 6:
        skip(f"its Landlock (version {LANDLOCK}) holds neither signals nor abstract sockets")
    sys.exit(main([nothing_is_held_with_off, guard_holds_what_it_says, strict_holds_what_it_says, a_shim_that_stood_by_holds_the_same, no_network_is_none, bwrap_holds_it_too,
                   bwrap_keeps_where_git_looks, bwrap_leaves_nothing_in_the_home_folder,
                   readonly_writes_no_workspace, a_command_writes_unless_it_is_told, guard_is_the_default, the_user_may_forbid_less, wrong_words_are_said,
                   commands_are_off_and_on_request_held, a_secret_in_a_cache_is_one, what_was_denied_is_shown, a_sandbox_of_its_own_is_within_ours, builds_run_under_guard]))
