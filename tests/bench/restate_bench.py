"""The same work through segue's daemon and through Restate, in turns: workflows of three steps, 16 at
once. Both write every step down before the next begins. Restate's server and SDK come from npm, into
a folder that is removed; says so when they can't be had."""
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from statistics import median

from bench import in_turns, row, run_clients, times_as
from flow_bench import AT_ONCE, THREE, THREE_REPLIES, through_the_daemon
from support import Failed, expect

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "restate")
PACKAGES = ("@restatedev/restate-server@1", "@restatedev/restate-sdk@1")
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def ask(line, path, body):
    line.request("POST", path, body, {"Content-Type": "application/json"})
    answer = line.getresponse()
    return answer.status, answer.read()


def until_made(port, path, body, end_s=30):
    """Asks until it is answered well."""
    end = time.monotonic() + end_s
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            line = http.client.HTTPConnection("127.0.0.1", port, timeout=end_s)
            if ask(line, path, body)[0] in (200, 201):
                return
        time.sleep(0.05)
    raise Failed("restate does not answer")


def client(port, count, ready):
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    line.connect()
    ready.wait(60)
    for _ in range(count):
        status, said = ask(line, "/three/run", b'"the work"')
        expect(status == 200 and b"REVIEW" in said, "a call failed:", said)


def start(boxes, folder, *words, **env):
    process = subprocess.Popen(words, cwd=folder, start_new_session=True, env={**os.environ, **env}, **QUIET)

    def end():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    boxes.callback(end)


def restate(sessions=1000, rounds=3):
    with contextlib.ExitStack() as boxes:
        folder = boxes.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        shutil.copytree(HERE, folder, dirs_exist_ok=True)
        if shutil.which("npm") is None or subprocess.run(
                ["npm", "install", "--no-audit", "--no-fund", "--silent", *PACKAGES], cwd=folder, check=False,
                **QUIET).returncode != 0:
            print("skipped: npm does not give Restate")
            return
        with contextlib.ExitStack() as held:
            listeners = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(4)]
            service, ingress, admin, node = (one.getsockname()[1] for one in listeners)
        start(boxes, folder, "node", "--import", "./old_node.mjs", "service.mjs", str(service))
        start(boxes, folder, "node_modules/.bin/restate-server", "--base-dir", "data", "--node-name", "one",
              RESTATE_INGRESS__BIND_ADDRESS=f"127.0.0.1:{ingress}", RESTATE_ADMIN__BIND_ADDRESS=f"127.0.0.1:{admin}",
              RESTATE_BIND_ADDRESS=f"127.0.0.1:{node}", RESTATE_ADVERTISED_ADDRESS=f"http://127.0.0.1:{node}/")
        until_made(admin, "/deployments", json.dumps({"uri": f"http://127.0.0.1:{service}"}))
        until_made(ingress, "/three/run", '"the work"')

        def rate():
            # A call lasts as long as its workflow: as many clients as workflows run at once.
            join = run_clients(AT_ONCE, client, ingress, sessions // AT_ONCE)
            begin = time.monotonic()
            join()
            return sessions // AT_ONCE * AT_ONCE * 3 / (time.monotonic() - begin)
        rate()  # warm
        ours, theirs = in_turns(rounds, {
            "segue": lambda: through_the_daemon(boxes, sessions, 3, THREE, THREE_REPLIES)[0], "restate": rate})
    row("turns through the daemon", median(ours), "a second")
    row("steps through Restate", median(theirs), "a second")
    row("times as many", times_as(ours, theirs), "", ">= 5")
