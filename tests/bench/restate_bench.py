#!/usr/bin/env python3
"""The same work through segue's daemon and through Restate, in turns: 1,000 workflows of three steps,
16 at once, by 8 clients. Both write every step down before the next begins.

usage: restate_bench.py BUILD_DIR [SESSIONS] [ROUNDS]
Restate's server and SDK come from npm, into a folder that is removed; says so when they can't be had.
"""
import contextlib
import http.client
import json
import multiprocessing
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import submit_bench as submit

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


def client(port, count):
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
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
    begin = time.monotonic()
    # A call lasts as long as its workflow: as many clients as workflows run at once.
    clients = [multiprocessing.Process(target=client, args=(port, submit.SESSIONS // submit.AT_ONCE))
               for _ in range(submit.AT_ONCE)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
        if one.exitcode != 0:
            raise SystemExit("restate: a client failed")
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
        pairs = [(submit.through_the_daemon(boxes)[0], rate(port)) for _ in range(submit.ROUNDS)]
    ours, theirs = (statistics.median(column) for column in zip(*pairs))
    submit.row("turns through the daemon", ours, "a second")
    submit.row("steps through Restate", theirs, "a second")
    submit.row("times as many", statistics.median(a / b for a, b in pairs), "", ">= 5")


main()
