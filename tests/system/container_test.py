#!/usr/bin/env python3
"""sandbox: container: programs run in an image, where of the machine there is only their workspace;
they end with their call, whoever ends it.

usage: container_test.py BUILD_DIR [CASE...]

The image is made of this machine's own programs. Skipped where the engine (SEGUE_ENGINE: podman, or docker) is not, or
cannot run one; as root the same is done as an ordinary user, too, where that can be: with docker it needs its group."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sandbox_test import run_deeds
from support import SEGUE, WAIT_S, Box, expect, main, needs, of_type, others_can_run, records, skip, verified

NOBODY = 65534
PATH = "/usr/bin:/bin"
ENGINE = os.environ.get("SEGUE_ENGINE", "podman")
SOCKET = "/var/run/docker.sock"
IMAGE = f"localhost/segue-test-{os.getpid()}"
PYTHON = "/usr/bin/python3"
PROGRAMS = ("sh", "cat", "id", "ls", "sleep", "env", "touch", "setsid", "pwd")
FLOW = """name: c
movements:
  - name: a
    command: %s
    sandbox: container
    %s
    rules: [{condition: when(exit == 3), next: COMPLETE}, {condition: when(true), next: ABORT}]
"""
# crun does not take control groups of both versions at once: within a view of its own there is one.
ONE_VERSION = ["unshare", "-m", "sh", "-c",
               "umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup && exec \"$@\"", "sh"]


def before(user):
    hybrid = ENGINE == "podman" and os.path.exists("/sys/fs/cgroup/unified") and os.geteuid() == 0
    groups = f"--groups={os.stat(SOCKET).st_gid}" if ENGINE == "docker" and os.path.exists(SOCKET) else "--clear-groups"
    as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", groups] if user else []
    return (ONE_VERSION if hybrid else []) + as_user


def make_image(user, env):
    """From nothing: a few programs and what they load."""
    root = tempfile.mkdtemp(prefix="segue-image-")
    os.chmod(root, 0o755)
    try:
        for name in ("bin", "etc", "tmp"):
            os.mkdir(f"{root}/{name}")
        for name in PROGRAMS:
            path = os.path.realpath(shutil.which(name, path=PATH))
            shutil.copy(path, f"{root}/bin/{name}")
            for lib in re.findall(r"/\S+", subprocess.run(["ldd", path], capture_output=True, text=True).stdout.replace(path + ":", "")):
                os.makedirs(root + os.path.dirname(lib), exist_ok=True)
                shutil.copy(os.path.realpath(lib), root + lib)
        tar = subprocess.run(["tar", "-C", root, "--owner=0", "--group=0", "-c", "."], capture_output=True, check=True).stdout
    finally:
        shutil.rmtree(root)
    return subprocess.run([*before(user), ENGINE, "import", "-", IMAGE], input=tar, env=env, capture_output=True)


class Ship(Box):
    """A box whose containers are its own, for this user."""

    def __init__(self, user):
        super().__init__()
        self.user = user
        self.env["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
        self.home = self.dir + "/home"
        self.env["XDG_RUNTIME_DIR"] = self.dir + "/run"
        os.makedirs(self.home + "/.ssh", exist_ok=True)
        os.makedirs(self.dir + "/run", exist_ok=True)
        os.makedirs(self.home + "/config/segue/providers")
        self.file("home/.ssh/id", "SECRET\n")
        self.own()
        self.why = self.stock()

    def own(self):
        if self.user:
            for top, folders, files in os.walk(self.dir):
                for name in [top, *(os.path.join(top, n) for n in folders + files)]:
                    os.chown(name, self.user, self.user, follow_symlinks=False)

    def stock(self):
        """Why no container can run here; None: they can."""
        made = make_image(self.user, self.env)
        if made.returncode != 0:
            return made.stderr.decode()
        limit = subprocess.run(["sh", "-c", "ulimit -Hn"], capture_output=True, text=True).stdout.strip()
        groups = ["--cgroups", "disabled"] if ENGINE == "podman" else []
        tried = self.engine("run", "--rm", "--pull", "never", "--network", "none", *groups, "--ulimit",
                            f"nofile={limit}:{limit}", "--ulimit", "nproc=1000:1000", IMAGE, "id")
        return None if tried.returncode == 0 else tried.stderr.decode()

    def engine(self, *words):
        return subprocess.run([*before(self.user), ENGINE, *words], env=self.env, capture_output=True, timeout=WAIT_S)

    def run(self, command, keys=f"image: {IMAGE}", **config):
        self.file("home/config/segue/config.yaml", json.dumps({"sandbox": {"mechanism": ENGINE}, **config}))
        flow = self.file("w.yaml", FLOW % (json.dumps(command), keys))
        self.own()
        done = subprocess.run([*before(self.user), SEGUE, "run", "--trust", flow, "--task", "t", "--logs", self.logs, "--cwd", self.cwd], cwd=self.cwd,
                              env=self.env, capture_output=True, timeout=WAIT_S, stdin=subprocess.DEVNULL)
        return done, records(self.log_paths()[-1]) if self.log_paths() else []

    def left(self):
        return self.engine("ps", "--all", "--quiet", "--filter", "ancestor=" + IMAGE).stdout.decode().split()

    def __exit__(self, *exc):
        own = self.user and ENGINE == "podman"  # docker's images are all users'
        self.engine("system", "reset", "--force") if own else self.engine("rmi", "--force", IMAGE)
        with contextlib.suppress(OSError):  # of a user's own storage: a process that holds its namespace
            os.kill(int(Path(self.dir + "/run/libpod/tmp/pause.pid").read_text(encoding="ascii")), signal.SIGKILL)
        if self.user:
            subprocess.run(["rm", "-rf", self.home + "/.local", self.dir + "/run"], check=False)
        super().__exit__(*exc)


def for_users(case):
    """The case with a box of each user for whom containers run here."""
    needs(ENGINE, path=PATH)
    users, refused = (0, NOBODY) if os.geteuid() == 0 and others_can_run() else (0,), []
    for user in users:
        with Ship(user) as box:
            if box.why is None:
                case(box)
            else:
                refused.append(f"{ENGINE} runs nothing as {'an ordinary user' if user else 'this user'}")
                print(f"skipped: {refused[-1]}: {box.why.strip().splitlines()[-1][:200]}")
    if len(refused) == len(users):
        skip(f"{ENGINE} runs nothing here")


def sees_its_workspace_and_no_more():
    def case(box):
        os.makedirs(box.cwd + "/.git/hooks")
        box.file("work/.git/config", "[core]\n")
        line = (f"cat {box.home}/.ssh/id; ls {box.home}; ls {box.logs}; echo x > made; echo x > .git/hooks/post; echo x > .git/config; echo x > $TMPDIR/t;"
                f" echo x > {box.dir}/beside; ls /; cat /proc/self/status; [ -e /proc/{os.getpid()} ] && echo NEIGHBOUR;"
                " [ -w /sys/kernel ] && echo SYS; exit 3")
        _, log = box.run(["sh", "-c", line])
        verified(box, box.log_paths()[-1])
        end = of_type(log, "call_end")[0]
        expect(end.get("exit") == 3, end)
        text = end["text"]
        for word in ("SECRET", "config", "NEIGHBOUR", "ndjson"):
            expect(word not in text, word, text)
        expect(re.search(r"NoNewPrivs:\s+1", text) and re.search(r"CapEff:\s+0+\n", text) and re.search(r"Seccomp:\s+2", text), text)
        expect(os.stat(box.cwd + "/made").st_uid == (box.user or os.geteuid()), "the file is another's")
        expect(Path(box.cwd + "/.git/config").read_text(encoding="utf-8") == "[core]\n", "git's settings were written")
        expect(os.listdir(box.cwd + "/.git/hooks") == [] and not os.path.exists(box.dir + "/beside"), "it wrote out of it")
        expect(of_type(log, "call_start")[0]["sandbox"] == {"level": "container", "mechanism": ENGINE, "image": IMAGE},
               of_type(log, "call_start"))
        expect(of_type(log, "session_start")[0]["config"]["sandbox"]["mechanisms"]["container"] == ENGINE, log[0])
        expect(box.left() == [], box.left())
    for_users(case)


# In a container these can be done, and nothing else that sandbox_deeds.py tries.
CAN = {"write in the workspace", "write to its own folder", "keep its own state", "read the system", "run a program", "trace its own child",
       "stay behind", "list the home folder", "limit itself", "make a socket to the host"}
GOES_NOWHERE = {"write in the home folder", "write over a program"}  # in the container's own layer
NETWORK = {"open IPv4", "open IPv6", "send UDP", "send UDP by IPv6", "ask DNS", "listen", "call an abstract socket"}
WITHIN = {"send UDP", "send UDP by IPv6", "listen"}  # a network of its own has its own loopback


def a_hostile_program_is_held():
    if os.geteuid() != 0:
        print("skipped: the neighbours are for root to make")
        return
    needs(ENGINE, path=PATH)
    with Ship(0) as ship:
        if ship.why is not None:
            print(f"skipped: {ship.why.strip().splitlines()[-1][:200]}")
            skip(f"{ENGINE} runs nothing here")
        for network in ("open", "none"):
            # python is the machine's: what `read` names is there, too
            deeds, _ = run_deeds(0, f"sandbox: container\n    image: {IMAGE}\n    network: {network}", before=before(0),
                                 read=["/usr", "/etc/alternatives", "~/bin"], mechanism=ENGINE)
            can = CAN | GOES_NOWHERE | (NETWORK if network == "open" else WITHIN)
            # docker denies a ring from version 25 on, and without a network there is no IPv6 at all
            free = GOES_NOWHERE | ({"set up a ring", "send UDP by IPv6"} if ENGINE == "docker" else set())
            wrong = {deed: d for deed, d in deeds.items() if d["done"] != (deed in can) and deed not in free}
            expect(not wrong, network, json.dumps(wrong, indent=1))


def ends_with_its_call():
    """A grandchild that stays behind, one that ignores TERM, and a session that is killed."""
    def case(box):
        line = "(setsid sh -c 'trap \"\" TERM; echo x > held; exec 9>> held; while :; do sleep 1000; done' >/dev/null 2>&1 &) ; %s"
        box.run(["sh", "-c", line % "while ! [ -e held ]; do :; done; exit 3"])
        expect(not holders(box.cwd + "/held"), "it stayed behind")
        os.remove(box.cwd + "/held")
        _, log = box.run(["sh", "-c", "trap '' TERM; " + line % "while :; do sleep 1000; done"], f"image: {IMAGE}\n    timeout: 3s")
        expect(of_type(log, "call_end")[0].get("error", {}).get("class") == "timeout", of_type(log, "call_end"))
        expect(not holders(box.cwd + "/held"), "it outlived its time")
        expect(box.left() == [], box.left())
        os.remove(box.cwd + "/held")
        flow = box.file("w.yaml", FLOW % (json.dumps(["sh", "-c", line % "while :; do sleep 1000; done"]), f"image: {IMAGE}"))
        box.own()
        segue = subprocess.Popen([*before(box.user), SEGUE, "run", "--trust", flow, "--task", "t", "--logs", box.logs, "--cwd", box.cwd], cwd=box.cwd,
                                 env=box.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        wait_until(lambda: os.path.exists(box.cwd + "/held") and holders(box.cwd + "/held"), 30)
        os.kill(segue.pid, signal.SIGKILL)
        segue.wait()
        wait_until(lambda: not holders(box.cwd + "/held"), 30)
        wait_until(lambda: box.left() == [], 30)
    for_users(case)


def wait_until(true, seconds):
    end = time.monotonic() + seconds
    while not true():
        expect(time.monotonic() < end, "it did not come")


def holders(path):
    """The processes that have this file open."""
    found, own = [], os.stat(path)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                st = os.stat(f"/proc/{pid}/fd/{fd}")
                if (st.st_dev, st.st_ino) == (own.st_dev, own.st_ino):
                    found.append(int(pid))
    return found


def networks_are_what_they_say():
    def case(box):
        line = "ls /sys/class/net; echo \"proxy $HTTPS_PROXY\"; exit 3"
        for network, wanted in (("none", "proxy \n"), ("api", "proxy http://127.0.0.1:")):
            _, log = box.run(["sh", "-c", line], f"image: {IMAGE}\n    network: {network}")
            end = of_type(log, "call_end")[0]
            expect(end.get("exit") == 3 and wanted in end["text"] and end["text"].split("proxy")[0].split() == ["lo"], network, end)
    for_users(case)


def limits_hold_it():
    """Also limits with which the engine itself could not start."""
    def case(box):
        for memory in (200, 16):
            _, log = box.run(["sh", "-c", "ulimit -d; exit 3"], f"image: {IMAGE}\n    limits: {{memory: {memory}M}}")
            end, by = of_type(log, "call_end")[0], of_type(log, "call_start")[0]["sandbox"]["limits"]["by"]
            expect(end.get("exit") == 3 and (by in ("cgroup", "docker") or end["text"].strip() == str(memory << 10)), memory, by, end)
        if box.user != 0:
            _, log = box.run(["sh", "-c", "sleep 0; exit 3"], f"image: {IMAGE}\n    limits: {{pids: 10}}")
            expect(of_type(log, "call_end")[0].get("exit") == 3, log)
    for_users(case)


MANY = """name: many
max_movements: 20
movements:
  - name: a
    command: [sh, -c, "echo heard"]
    sandbox: container
    image: %s
    network: none
    rules: [{condition: when(iteration < 20), next: a}, {condition: when(true), next: COMPLETE}]
"""


def what_short_programs_say_is_heard():
    """An engine that passes on a container's output itself can lose that of one which ends at once."""
    def case(box):
        box.file("home/config/segue/config.yaml", json.dumps({"sandbox": {"mechanism": ENGINE}}))
        flow = box.file("many.yaml", MANY % IMAGE)
        box.own()
        runs = [subprocess.Popen([*before(box.user), SEGUE, "run", "--trust", flow, "--task", "t", "-q", "--logs", f"{box.logs}-{n}", "--cwd", box.cwd],
                                 cwd=box.cwd, env=box.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) for n in range(4)]
        expect([p.wait(WAIT_S) for p in runs] == [0] * 4, [p.returncode for p in runs])
        for n in range(4):
            (name,) = [name for name in os.listdir(f"{box.logs}-{n}") if name.endswith(".ndjson")]
            told = [end["text"] for end in of_type(records(f"{box.logs}-{n}/{name}"), "call_end")]
            expect(told == ["heard\n"] * 20, told)
    for_users(case)


def an_agent_keeps_its_state():
    def case(box):
        box.file("home/config/segue/providers/inside.yaml",
                 "summary: inside\nprogram: inside-only\nargv: []\noutput: text\ntext: all\nstate: [~/.inside/]\n")
        box.file("work/inside", "#!/bin/sh\necho x > ~/.inside/kept\necho '[A:1]'\n")
        os.chmod(box.cwd + "/inside", 0o755)
        box.file("home/config/segue/config.yaml", json.dumps(
            {"sandbox": {"level": "container", "image": IMAGE, "mechanism": ENGINE, "least": "container"}, "providers": {"inside": {"program": box.cwd + "/inside"}}}))
        flow = box.file("w.yaml", "name: w\nprovider: inside\nmovements:\n  - {name: a, instruction: Do it.,\n"
                        "     judge: {stages: [phase1_tag]}, rules: [{condition: done, next: COMPLETE}]}\n")
        box.own()
        done = subprocess.run([*before(box.user), SEGUE, "run", "--trust", flow, "--task", "t", "--logs", box.logs, "--cwd", box.cwd], cwd=box.cwd,
                              env=box.env, capture_output=True, timeout=WAIT_S, stdin=subprocess.DEVNULL)
        expect(done.returncode == 0, done.stdout, done.stderr)
        expect(os.path.exists(box.home + "/.inside/kept"), os.listdir(box.home))
    for_users(case)


def what_cannot_be_is_said():
    def case(box):
        done, log = box.run(["sh", "-c", "exit 3"], "image: localhost/segue-no-such")
        end = of_type(log, "call_end")[0]
        expect(end["error"]["class"] == "not_found" and "could not start a container of localhost/segue-no-such" in end["error"]["message"],
               done.stdout, end)
        done, log = box.run(["no-such-program"], f"image: {IMAGE}")
        end = of_type(log, "call_end")[0]
        expect(end.get("error", {}).get("class") == "not_found", done.stdout, end)
        _, log = box.run(["sh", "-c", "exit 127"], f"image: {IMAGE}")
        end = of_type(log, "call_end")[0]
        expect(end.get("exit") == 127 and "error" not in end, end)
    for_users(case)


def the_engine_says_why():
    """docker is here but its daemon is not: its manual's address is no reason."""
    needs("docker", path=PATH + ":/usr/local/bin")
    with Box() as box:
        os.makedirs(box.dir + "/home/config/segue")
        box.file("home/config/segue/config.yaml", json.dumps({"sandbox": {"mechanism": "docker"}}))
        box.segue("run", box.file("w.yaml", FLOW % ('["true"]', "image: x")), "--task", "t", "--logs", box.logs,
                  env={"DOCKER_HOST": f"unix://{box.dir}/none.sock"})
        end = of_type(records(box.log_paths()[0]), "call_end")[0]
        expect("docker could not start a container of x: " in end["error"]["message"] and "--help" not in end["error"]["message"], end)


def doctor_asks_the_engine():
    """An engine that is here but cannot run a container is named with its reason, and is a problem where agents need it."""
    for engine, env in (("docker", {"DOCKER_HOST": "unix:///nowhere.sock"}), ("podman", {"CONTAINERS_CONF": "/dev/null/nowhere"})):
        if not any(os.path.exists(f"{at}/{engine}") for at in ("/usr/bin", "/bin", "/usr/local/bin")):
            print(f"skipped: {engine} is not installed")
            continue
        with Box() as box:
            os.makedirs(box.dir + "/home/config/segue")
            for level, state in (("guard", "note"), ("container", "problem")):
                box.file("home/config/segue/config.yaml", json.dumps({"sandbox": {"mechanism": engine, "level": level, "image": "x"}}))
                found = {f["what"]: f for f in json.loads(box.segue("doctor", "--json", env=env).stdout)["findings"]}
                told = found["containers"]
                expect(told["state"] == state and told["text"].startswith(engine + ": ") and "nowhere" in told["text"], level, told)
                quick = {f["what"]: f for f in json.loads(box.segue("doctor", "--json", "--quick", env=env).stdout)["findings"]}
                expect(quick["containers"]["text"] == engine, quick["containers"])


def words_are_checked_before(box):
    os.makedirs(box.dir + "/home/config/segue")
    has = any(os.path.exists(f"{at}/{name}") for at in ("/usr/bin", "/bin", "/usr/local/bin") for name in ("podman", "docker"))
    for config, keys, says in (({}, "description: x", "sandbox: container needs an image" if has else "cannot be enforced here"),
                               ({"sandbox": {"mechanism": "docker"}}, "image: x", None if has else "is not installed")):
        box.file("home/config/segue/config.yaml", json.dumps(config))
        done = box.segue("run", box.file("w.yaml", FLOW % ('["true"]', keys)), "--task", "t", "--logs", box.logs)
        expect(says is None or (says.encode() in done.stderr and not box.log_paths()), says, done.stderr)
    for words, says in (({"image": ""}, "the name of an image"), ({"level": "containr"}, "did you mean container?"),
                        ({"mechanism": "podmann"}, "did you mean podman?")):
        box.file("home/config/segue/config.yaml", json.dumps({"sandbox": words}))
        expect(says.encode() in box.segue("doctor", "--quick").stdout, words)


if __name__ == "__main__":
    sys.exit(main([sees_its_workspace_and_no_more, a_hostile_program_is_held, ends_with_its_call, networks_are_what_they_say, limits_hold_it, what_short_programs_say_is_heard, an_agent_keeps_its_state,
                   what_cannot_be_is_said, the_engine_says_why, doctor_asks_the_engine, words_are_checked_before]))
