#!/usr/bin/env python3
"""network: api: a program without a network of its own reaches the hosts of its backend by name, and
nothing else; what was refused is in the log.

usage: way_out_test.py BUILD_DIR [CASE...]

Where nothing makes a network of its own, that it is refused before the start is tested alone."""
import json
import os
import shutil
import socket
import subprocess
import sys
import threading

from support import Box, expect, main, needs, of_type, records, skip, verified

DEEDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "way_out_deeds.py")
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable  # in no home
FLOW = """name: out
movements:
  - name: a
    command: [%s, %s, %s]
    sandbox: %s
    network: api
    rules: [{condition: when(exit == 0), next: COMPLETE}, {condition: when(true), next: ABORT}]
"""


def bwrap_works():
    return shutil.which("bwrap") and subprocess.run(["bwrap", "--unshare-user", "--unshare-net", "--ro-bind", "/", "/", "true"],
                                                    capture_output=True).returncode == 0


def needs_bwrap():
    needs("bwrap")
    if not bwrap_works():
        skip("bubblewrap may make no namespaces here")


def answer(c, how):
    with c:
        try:
            if how == "http":
                head = b""
                while b"\r\n\r\n" not in head:
                    head += c.recv(4096)
                head, _, body = head.partition(b"\r\n\r\n")
                while len(body) < 8:
                    body += c.recv(4096)
                line = head.split(b"\r\n")[0] + b" " + body
                c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(line), line))
            while how == "echo" and (more := c.recv(65536)):
                c.sendall(more)
        except OSError:
            pass


def serve(box, how, family=socket.AF_INET):
    s = socket.socket(family)
    s.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 0))
    s.listen(64)

    def accept():
        while True:
            try:
                c, _ = s.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(c, how), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    box.servers.append(s)
    return s.getsockname()[1]


def stage(box, **sandbox):
    box.servers = []
    at = {"echo": serve(box, "echo"), "http": serve(box, "http"), "other": serve(box, "echo"), "other6": serve(box, "echo", socket.AF_INET6)}
    os.makedirs(box.dir + "/home/config/segue", exist_ok=True)
    hosts = [f"localhost:{at['echo']}", f"LOCALHOST:{at['http']}", "gone.invalid"]
    box.file("home/config/segue/config.yaml", json.dumps({"sandbox": {"hosts": hosts, **sandbox}}))
    orders = box.file("work/orders.json", json.dumps(at))
    shutil.copyfile(DEEDS, box.cwd + "/deeds.py")
    return at, orders


def reaches_its_hosts_and_no_others():
    needs_bwrap()
    for level in ("guard", "strict"):
        with Box() as box:
            at, orders = stage(box)
            box.segue("run", box.file("w.yaml", FLOW % (PYTHON, box.cwd + "/deeds.py", orders, level)), "--task", "t", "--logs", box.logs,
                      env={"HTTP_PROXY": "http://127.0.0.1:1"})
            log = records(box.log_paths()[-1])
            verified(box, box.log_paths()[-1])
            end = of_type(log, "call_end")[0]
            expect(end["exit"] == 0, end)
            did = {d["deed"]: d["result"] for d in map(json.loads, end["text"].splitlines())}
            for deed, wanted in (("allowed", 5), ("much", True), ("many", True), ("plain", [200, "POST /x?y HTTP/1.1 the body"]), ("plain refused", 403),
                                 ("other port", 403), ("other host", 403), ("same host twice", 403), ("by address", 403),
                                 ("metadata", 403), ("no name", 502), ("nonsense", 400), ("too long", 431), ("own server", "reached")):
                expect(did[deed] == wanted, level, deed, did[deed])
            for deed in ("IPv4", "IPv6", "UDP", "DNS"):
                expect(str(did[deed]).startswith("error"), level, deed, did[deed])
            start = of_type(log, "call_start")[0]["sandbox"]
            expect(start == {"level": level, "mechanism": "bwrap", "network": "api"}, start)
            denied = [r["data"]["denied"] for r in of_type(log, "call_event") if "denied" in r.get("data", {})]
            expect(denied == [f"localhost:{at['echo'] + 1}", f"localhost:{at['other']}", "evil.example:443", f"127.0.0.1:{at['echo']}",
                              "169.254.169.254:80"], denied)
            told = box.segue("show", "last", "a", "--logs", box.logs).stdout.decode()
            expect("evil.example:443: sandbox: {hosts: [evil.example:443]} in config.yaml allows it" in told, told)
            for s in box.servers:
                s.close()


def what_cannot_be_held_is_said_before(box):
    stage(box, mechanism="landlock")
    flow = box.file("w.yaml", FLOW % ("touch", "began", "x", "guard"))
    done = box.segue("run", flow, "--task", "t", "--logs", box.logs)
    expect(done.returncode != 0 and not box.log_paths(), done.stdout)
    expect(b"network: api cannot be enforced here" in done.stderr or b"sandbox: guard cannot be enforced here" in done.stderr, done.stderr)
    stage(box)
    done = box.segue("run", box.file("w.yaml", FLOW.replace("%s\n    network", "off\n    network") % ("touch", "began", "x")), "--task", "t",
                     "--logs", box.logs)
    expect(done.returncode != 0 and b"network: api needs a sandbox that enforces it" in done.stderr, done.stderr)
    expect(not os.path.exists(box.cwd + "/began"), "it was started")
    for s in box.servers:
        s.close()


def a_backend_has_its_own_hosts():
    needs_bwrap()
    with Box() as box:
        at, _ = stage(box, hosts=[])
        os.makedirs(box.dir + "/home/bin")
        program = box.file("home/bin/client", f"#!{PYTHON}\nimport os, socket\n"
                           "p = os.environ['HTTPS_PROXY'].rpartition(':')[2]\n"
                           "def ask(port):\n"
                           "    s = socket.create_connection(('127.0.0.1', int(p)), 20)\n"
                           "    s.sendall(b'CONNECT localhost:%d HTTP/1.1\\r\\n\\r\\n' % port)\n"
                           "    return s.recv(1000).split()[1].decode()\n"
                           f"print(ask({at['echo']}), ask({at['http']}), ask({at['other']}), '[A:1]')\n")
        os.chmod(program, 0o755)
        os.makedirs(box.dir + "/home/config/segue/providers")
        box.file("home/config/segue/providers/client.yaml",
                 f"summary: client\nprogram: {program}\nargv: []\noutput: text\ntext: all\nenv: {{pass: [CLIENT_URL]}}\n"
                 f"hosts: ['localhost:{at['http']}', $CLIENT_URL, $CLIENT_MISSING]\n")
        flow = box.file("w.yaml", "name: w\nprovider: client\nmovements:\n  - {name: a, instruction: Do it., network: api,\n"
                        "     judge: {stages: [phase1_tag]}, rules: [{condition: done, next: COMPLETE}]}\n")
        done = box.segue("run", flow, "--task", "t", "--logs", box.logs, env={"CLIENT_URL": f"http://me@localhost:{at['echo']}/v1"})
        expect(box.log_paths(), done.stdout, done.stderr)
        log = records(box.log_paths()[-1])
        expect("200 200 403" in of_type(log, "call_end")[0]["text"], of_type(log, "call_end"))
        for s in box.servers:
            s.close()


def goes_through_the_proxy_behind_it():
    needs_bwrap()
    with Box() as box:
        stage(box, hosts=["api.example"])
        asked, behind = [], socket.create_server(("127.0.0.1", 0))

        def accept():
            while True:
                try:
                    c, _ = behind.accept()
                except OSError:
                    return
                with c:
                    asked.append(c.recv(4096).decode())
                    c.sendall(b"HTTP/1.1 200 OK\r\n\r\nfrom behind")
        threading.Thread(target=accept, daemon=True).start()
        box.file("work/ask.py", "import os, socket\n"
                 "for host in ('api.example', 'evil.example'):\n"
                 "    s = socket.create_connection(('127.0.0.1', int(os.environ['HTTPS_PROXY'].rpartition(':')[2])), 20)\n"
                 "    s.sendall(f'CONNECT {host}:443 HTTP/1.1\\r\\n\\r\\n'.encode())\n"
                 "    said = b''\n"
                 "    while more := s.recv(1000): said += more\n"
                 "    print(said.split()[1].decode(), b'from behind' in said)\n")
        box.segue("run", box.file("w.yaml", FLOW % (PYTHON, box.cwd + "/ask.py", "x", "guard")), "--task", "t", "--logs", box.logs,
                  env={"HTTPS_PROXY": f"http://me:w%40rd@127.0.0.1:{behind.getsockname()[1]}"})
        text = of_type(records(box.log_paths()[-1]), "call_end")[0]["text"]
        expect(text.split() == ["200", "True", "403", "False"], text)
        expect(len(asked) == 1 and asked[0].startswith("CONNECT api.example:443 HTTP/1.1\r\n") and
               "Proxy-Authorization: Basic bWU6d0ByZA==\r\n" in asked[0], asked)
        for s in [behind, *box.servers]:
            s.close()


def a_name_leads_neither_here_nor_into_private_networks():
    """The address that a listed name leads to decides, unless the settings name it itself."""
    needs_bwrap()
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        skip("needs a user who may mount, for names of its own")
    with Box() as box:
        inner = socket.socket(socket.AF_INET6)
        inner.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        inner.bind(("::", 0))
        inner.listen(64)
        port = inner.getsockname()[1]

        def accept():
            while True:
                try:
                    c, _ = inner.accept()
                except OSError:
                    return
                c.close()
        threading.Thread(target=accept, daemon=True).start()
        told = subprocess.run(["ip", "-o", "addr", "show", "scope", "global"], capture_output=True, text=True).stdout if shutil.which("ip") else ""
        own = [line.split()[3].split("/")[0] for line in told.splitlines()]
        leads = ["0.0.0.0", "0.1.2.3", "::", "127.0.0.1", "::1", "10.1.2.3", "172.16.9.9", "192.168.250.1", "100.64.0.1", "fc00::9", "169.254.169.254", *own]
        box.file("hosts", "127.0.0.1 localhost\n" + "".join(f"{at} n{i}.lists.example\n" for i, at in enumerate(leads)))
        os.makedirs(box.dir + "/home/config/segue")
        box.file("work/ask.py", "import os, socket, sys\n"
                 f"for i in range({len(leads)}):\n"
                 "    s = socket.create_connection(('127.0.0.1', int(os.environ['HTTPS_PROXY'].rpartition(':')[2])), 60)\n"
                 f"    s.sendall(f'CONNECT n{{i}}.lists.example:{port} HTTP/1.1\\r\\n\\r\\n'.encode())\n"
                 "    print(s.recv(1000).split()[1].decode())\n")
        for named, wanted in (([], ["502"] * len(leads)), (own, ["502"] * (len(leads) - len(own)) + ["200"] * len(own))):
            hosts = [f"*.lists.example:{port}", *(f"[{at}]:{port}" if ":" in at else f"{at}:{port}" for at in named)]
            box.file("home/config/segue/config.yaml", json.dumps({"sandbox": {"hosts": hosts}}))
            box.segue("run", box.file("w.yaml", FLOW % (PYTHON, box.cwd + "/ask.py", "x", "guard")), "--task", "t", "--logs", box.logs, status=0,
                      prefix=["unshare", "-m", "sh", "-c", f"mount --bind {box.dir}/hosts /etc/hosts && exec \"$@\"", "sh"])
            log = records(box.log_paths()[-1])
            expect(of_type(log, "call_end")[0]["text"].split() == wanted, leads, of_type(log, "call_end")[0])
            denied = [r["data"]["denied"] for r in of_type(log, "call_event") if "denied" in r.get("data", {})]
            expect(f"10.1.2.3:{port}" in denied and f"[fc00::9]:{port}" in denied and not any("169.254" in d for d in denied), denied)
        inner.close()


def wrong_hosts_are_said(box):
    os.makedirs(box.dir + "/home/config/segue")
    for words, says in (({"hosts": ["https://a.example"]}, "it must be a host"), ({"hosts": "a"}, "a list of at most 100 hosts"),
                        ({"network": "apis"}, "did you mean api?")):
        box.file("home/config/segue/config.yaml", json.dumps({"sandbox": words}))
        box.segue("doctor", "--quick", out=says.encode())


if __name__ == "__main__":
    sys.exit(main([reaches_its_hosts_and_no_others, what_cannot_be_held_is_said_before, a_backend_has_its_own_hosts, goes_through_the_proxy_behind_it, a_name_leads_neither_here_nor_into_private_networks, wrong_hosts_are_said]))
