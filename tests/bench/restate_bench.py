#!/usr/bin/env python3
"""The same work through segue's daemon and through Restate, in turns: 1,000 workflows of three steps,
16 at once, by 8 clients. Both write every step down before the next begins.

usage: restate_bench.py BUILD_DIR [SESSIONS] [ROUNDS]
Restate's server and SDK come from npm, into a folder that is removed; says so when they can't be had.
"""
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

import submit_bench as submit
from bench import in_turns, row, run_clients, times_as

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "restate")
PACKAGES = ("@restatedev/restate-server@1", "@restatedev/restate-sdk@1")


def request(port, path, body):
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    line.request("POST", path, body, {"Content-Type": "application/json"})
    answer = line.getresponse()
    said = answer.read()
    line.close()
    return answer.status, said


def until(what, end=30.0):
    deadline = time.monotonic() + end
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            found = what()
            if found:
                return found
        time.sleep(0.05)
    raise SystemExit("restate does not answer")


def client(port, count, ready):
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    line.connect()
    ready.wait(60)
    for _ in range(count):
        line.request("POST", "/three/run", b'"the work"', {"Content-Type": "application/json"})
        answer = line.getresponse()
        if answer.status != 200 or b"REVIEW" not in answer.read():
            raise SystemExit("restate: a call failed")
    line.close()


def start(boxes, folder, words, **more):
    process = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True, **more)

    def end():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    boxes.callback(end)


def free_ports(count):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def restate(boxes, folder):
    """Starts server and service; the port that takes calls."""
    service, ingress, admin, node = free_ports(4)
    start(boxes, folder, ["node", "--import", "./old_node.mjs", "service.mjs", str(service)])
    settings = {"RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ingress}",
                "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{admin}",
                "RESTATE_BIND_ADDRESS": f"127.0.0.1:{node}",
                "RESTATE_ADVERTISED_ADDRESS": f"http://127.0.0.1:{node}/"}
    start(boxes, folder, ["node_modules/.bin/restate-server", "--base-dir", "data", "--node-name", "one"],
          env={**os.environ, **settings})
    body = json.dumps({"uri": f"http://127.0.0.1:{service}"})
    until(lambda: request(admin, "/deployments", body)[0] in (200, 201))
    until(lambda: request(ingress, "/three/run", '"the work"')[0] == 200)
    return ingress


def rate(port):
    # A call lasts as long as its workflow: as many clients as workflows run at once.
    join = run_clients(submit.AT_ONCE, client, port, submit.SESSIONS // submit.AT_ONCE)
    begin = time.monotonic()
    join()
    return submit.SESSIONS // submit.AT_ONCE * submit.AT_ONCE * submit.TURNS / (time.monotonic() - begin)


def main():
    with contextlib.ExitStack() as boxes:
        folder = boxes.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        shutil.copytree(HERE, folder, dirs_exist_ok=True)
        if shutil.which("npm") is None or subprocess.run(
                ["npm", "install", "--no-audit", "--no-fund", "--silent", *PACKAGES], cwd=folder,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                check=False).returncode != 0:
            print("skipped: npm does not give Restate")
            return
        port = restate(boxes, folder)
        rate(port)  # warm
        ours, theirs = in_turns(submit.ROUNDS, {"segue": lambda: submit.through_the_daemon(boxes)[0],
                                                "restate": lambda: rate(port)}).values()
    row("turns through the daemon", median(ours), "a second")
    row("steps through Restate", median(theirs), "a second")
    row("times as many", times_as(ours, theirs), "", ">= 5")


main()
