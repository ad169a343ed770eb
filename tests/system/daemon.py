"""A daemon of a test: started in a box, asked over its socket, ended and started again.

Answers are HTTP through the standard library; `check_all` holds what was answered against
schemas/api.json with `segue check`.
"""
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time

from support import SEGUE, WAIT_S, Box, expect, let_go, memory_kib, on_store  # which says where its libraries are

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LONG = os.environ.get("SEGUE_LONG") == "1"

with open(ROOT + "/schemas/api.json", encoding="utf-8") as f:
    API = json.load(f)


class Connection(http.client.HTTPConnection):
    def __init__(self, path, timeout=WAIT_S):
        super().__init__("segue", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)  # waits where the queue is full, as one with a timeout does not
        self.sock.settimeout(self.timeout)


class DaemonBox(Box):
    def __init__(self, base=None):
        super().__init__(base)
        self.socket = self.dir + "/run/segue/segue.sock"
        os.mkdir(self.dir + "/run", 0o700)
        self.env["XDG_RUNTIME_DIR"] = self.dir + "/run"
        self.env["SEGUE_LOGS"] = self.logs
        self.process = None
        self.said = []  # lines of its standard error
        self.answers = []  # (status, type, path, method, value) to be checked
        self.local = threading.local()

    def __exit__(self, *exc):
        if self.process is not None and self.process.poll() is None:
            let_go(self.process)
        super().__exit__(*exc)

    # ---- the process ----

    def serve(self, *words, prefix=(), env=None, wait=True):
        """Starts it and returns when it is ready; the seconds that took."""
        begin = time.monotonic()
        self.process = subprocess.Popen([*prefix, SEGUE, "serve", *words], cwd=self.cwd,
                                        env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.said = []
        ready = threading.Event()
        threading.Thread(target=self.listen, args=(self.process, ready), daemon=True).start()
        if wait:
            expect(ready.wait(WAIT_S), "it does not get ready")
            expect(any("ready on" in line for line in self.said), self.said)
        return time.monotonic() - begin

    def listen(self, process, ready):
        for line in process.stderr:
            self.said.append(line.decode(errors="replace"))
            if b"ready on" in line:
                ready.set()
        ready.set()

    def wait_said(self, text):
        self.until(lambda: any(text in line for line in self.said), "it did not say " + text)

    def end(self, number=signal.SIGTERM, times=1, status=0):
        """Signals it and waits for its end."""
        for _ in range(times):
            self.process.send_signal(number)
            time.sleep(0 if times == 1 else 0.05)  # two signals at once are one
        got = self.process.wait(WAIT_S)
        if number == signal.SIGKILL:
            return
        expect(got == status, "status", got, self.said)
        expect(not any("Sanitizer" in s or "runtime error" in s for s in self.said),
               "".join(self.said))

    def rss_kib(self):
        return memory_kib(self.process.pid, "VmRSS")

    def fds(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    # ---- requests ----

    def connection(self):
        """One a thread, kept."""
        if getattr(self.local, "of", None) is not self.process:
            self.local.connection = Connection(self.socket)
            self.local.of = self.process
        return self.local.connection

    def ask(self, method, path, body=None, headers=None, keep=True):
        """The status and the value of an answer."""
        connection = self.connection()
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        headers = dict(headers or ({"Content-Type": "application/json"} if data else {}))
        kept = connection.sock is not None
        try:
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
        except (BrokenPipeError, http.client.RemoteDisconnected):
            if not kept:
                raise
            connection.close()  # idle for longer than the daemon keeps one, as happens on a busy machine
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
        raw = answer.read()
        kind = answer.getheader("Content-Type")
        value = json.loads(raw) if raw and "json" in (kind or "") else None
        if keep:
            self.answers.append((answer.status, kind, path.partition("?")[0], method, value))
        self.headers = answer.headers
        return answer.status, value

    def get(self, path):
        status, value = self.ask("GET", path)
        expect(status == 200, "GET", path, "gave", status, value)
        return value

    def session(self, sid):
        return self.get("/v1/sessions/" + sid)

    def submit(self, workflow, scenario=None, **more):
        body = {"workflow": workflow, "cwd": self.cwd, **({"trust": "--trust"} if self.trusts else {}), **more}
        if scenario is not None:
            body["scenario"] = scenario
        status, value = self.ask("POST", "/v1/sessions", body)
        expect(status == 201, "submit gave", status, value)
        return value["id"]

    def until(self, truth, *what):
        until = time.monotonic() + WAIT_S
        while not truth():
            expect(time.monotonic() < until, *what)
            time.sleep(0.02)  # a look at a time; the deadline is above

    def wait_status(self, sid, *statuses):
        seen = []

        def there():
            seen[:] = [self.session(sid)]
            return seen[0]["status"] in statuses
        self.until(there, sid, "did not get to", statuses, "but is", seen)
        return seen[0]

    def log(self, sid):
        if on_store.SERVER:
            on_store.copy_logs(self)
        return f"{self.logs}/{sid}.ndjson"

    # ---- the description ----

    def check_all(self):
        """Every answer so far: its status is described, its value fits the schema."""
        lines, told = [], []
        for status, kind, path, method, value in self.answers:
            if method == "HEAD":
                continue
            described = describe(path, method)
            if described is None:
                expect(status in (404, 405), method, path, "is not described and gave", status)
                schema = {"$ref": "#/components/schemas/Problem"}
            else:
                expect(str(status) in described["responses"] or status >= 400,
                       method, path, "gave", status, "which is not described")
                answer = described["responses"].get(str(status), described["responses"]["default"])
                if "$ref" in answer:
                    answer = API["components"]["responses"][answer["$ref"].rpartition("/")[2]]
                schema = answer.get("content", {}).get(kind, {}).get("schema")
            if value is None:
                continue
            expect(schema is not None, method, path, "gave", kind, "which is not described")
            expect(status < 400 or kind == "application/problem+json", path, "gave", kind)
            lines.append(json.dumps({"schema": {**schema, "components": API["components"]},
                                     "data": value}))
            told.append((method, path, status, value))
        done = self.segue("check", "--batch", "-", stdin="\n".join(lines).encode() + b"\n")
        verdicts = [json.loads(line) for line in done.stdout.splitlines()]
        expect(len(verdicts) == len(told), done.stderr)
        for verdict, what in zip(verdicts, told):
            expect(verdict["valid"] is True, what, verdict)
        self.answers.clear()
        return len(told)


def describe(path, method):
    """The operation of schemas/api.json for a path, or None."""
    for template, item in API["paths"].items():
        parts, given = template.split("/"), path.split("/")
        if len(parts) == len(given) and all(p == g or p.startswith("{") for p, g in
                                            zip(parts, given)):
            return item.get(method.lower())
    return None


class Events:
    """A stream of server-sent events, read as they come."""

    def __init__(self, box, sid, last=None, timeout=WAIT_S):
        self.connection = Connection(box.socket, timeout)
        headers = {"Last-Event-ID": str(last)} if last is not None else {}
        self.connection.request("GET", f"/v1/sessions/{sid}/events", headers=headers)
        self.answer = self.connection.getresponse()
        self.status = self.answer.status

    def __iter__(self):
        """(event, id, data); a comment is (None, None, text)."""
        fields = {}
        for line in self.answer:
            line = line.decode().rstrip("\n")
            if line.startswith(":"):
                yield None, None, line
            elif line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif fields:
                yield fields.get("event"), fields.get("id"), json.loads(fields["data"])
                fields = {}

    def close(self):
        self.connection.close()


SIMPLE = """
name: simple
provider: script
max_movements: 20
movements:
  - name: plan
    instruction: "plan {?task}{task}{/task}"
    rules:
      - {condition: planned, next: do}
  - name: do
    instruction: do it
    rules:
      - {condition: good, next: COMPLETE}
      - {condition: bad, next: plan}
"""


def simple(box, delay_ms=0, text="done", name="simple"):
    """A workflow of two turns: paths of it and of its scenario."""
    workflow = box.file(name + ".yaml", SIMPLE)
    scenario = box.file(f"{name}-{delay_ms}.json", json.dumps({"replies": [
        {"movement": "plan", "text": "a plan", "times": 0, "delay_ms": delay_ms},
        {"movement": "do", "purpose": "execute", "chunks": [text[:2], text[2:]], "times": 0,
         "delay_ms": delay_ms},
        {"stage": "structured_output", "structured": {"reason": "ok", "step": 1}, "times": 0},
    ]}))
    return workflow, scenario
