#!/usr/bin/env python3
"""README's block on several machines runs as it is printed: a database server that asks for a password behind
TLS, and two machines, each a shell with a home, a runtime folder and logs of its own."""
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import readme_test
from support import WAIT_S, Box, expect, main, need_build, needs
import postgres

PAGES = ("README.md", "README.ja.md")


def commands(page):
    """(machine, command) of each line of the block; comments go."""
    block = next(b for b in readme_test.blocks(f"{readme_test.ROOT}/{page}", "console") if "segue serve" in b)
    return [(line.split("$", 1)[0], line.split("$", 1)[1].split(" #")[0].strip()) for line in block.splitlines() if line]


class Machine:
    """A shell that stays, so that what it exports holds for its later lines."""

    def __init__(self, env, cwd):
        self.shell = subprocess.Popen(["bash"], env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True, bufsize=1)

    def run(self, line):
        """What the line prints, and its exit status."""
        background = line.endswith("&")
        self.shell.stdin.write(f"{line} {'' if background else ';'} echo \"end of line $?\"\n")
        told = []
        for text in self.shell.stdout:
            ended = re.match(r"(.*)end of line (\d+)$", text.rstrip("\n"))
            if ended:
                return "".join(told) + ended[1], int(ended[2])
            told.append(text)
        raise AssertionError(f"the shell ended at: {line}\n{''.join(told)}")

    def close(self):
        self.shell.stdin.write("kill $(jobs -p) 2>/dev/null; wait\n")
        self.shell.stdin.close()
        self.shell.wait(WAIT_S)


def with_tls(server, box):
    """Gives the server a certificate of the name in the README, a port, and a password to ask for."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=dbserver",
                    "-keyout", f"{server.dir}/k", "-out", f"{server.dir}/c"], capture_output=True, check=True, **server.drop)
    shutil.copy(server.dir + "/c", box.dir + "/root.crt")
    with open(server.data + "/pg_hba.conf", "r+", encoding="utf-8") as f:
        rest = f.read()
        f.seek(0)
        f.write("hostssl all agents 127.0.0.1/32 scram-sha-256\n" + rest)
    server.stop()
    server.settings = [s for s in server.settings if not s.startswith("listen_addresses")] + [
        "listen_addresses=127.0.0.1", f"port={port}", "ssl=on", f"ssl_cert_file={server.dir}/c", f"ssl_key_file={server.dir}/k"]
    server.start()
    return str(port)


def the_block_runs_as_printed():
    lines = commands(PAGES[0])
    with postgres.Server() as server, Box() as box:
        readme_test.repository(box)
        readme_test.claude(box)
        port = with_tls(server, box)
        machines = {}
        for name in ("dbserver", "first", "second"):
            env = {**box.env, "XDG_RUNTIME_DIR": f"{box.dir}/{name}", "XDG_STATE_HOME": f"{box.dir}/{name}/state",
                   "HOME": f"{box.dir}/{name}", "PGPORT": port}
            env["PATH"] = f"{server.bin}:{env['PATH']}"
            env.pop("SEGUE_LOGS", None)
            os.mkdir(env["HOME"], 0o700)
            if name == "dbserver":
                env.update(PGHOST=server.dir, PGUSER="postgres")
            else:  # what /etc/hosts, and whoever signed the certificate, do elsewhere
                env.update(PGHOSTADDR="127.0.0.1", PGSSLROOTCERT=box.dir + "/root.crt")
                Path(env["HOME"] + "/.pgpass").write_text("dbserver:*:*:agents:...\n", encoding="utf-8")
                os.chmod(env["HOME"] + "/.pgpass", 0o600)
            machines[name] = Machine(env, box.cwd)
        try:
            told = ""
            for machine, line in lines:
                told, status = machines[machine].run(line)
                expect(status == 0, machine, line, told)
            expect("COMPLETE" in told and "ok" in told.splitlines()[-1], "its end and its verification:", told)
            told, _ = machines["first"].run("segue ls --json")
            expect('"status":"complete"' in told, told)
            expect("world" in Path(box.cwd + "/greet.sh").read_text(encoding="utf-8"), "the agent worked")
        finally:
            for machine in machines.values():
                machine.close()


def every_page_shows_the_same():
    expect(commands(PAGES[0]) == commands(PAGES[1]), "the Japanese README's block differs")


if __name__ == "__main__":
    need_build()
    postgres.need()
    needs("openssl", "make")
    sys.exit(main([the_block_runs_as_printed, every_page_shows_the_same]))
