#!/usr/bin/env python3
"""A small `opencode serve`: it listens on a port of loopback that it finds itself, wants the password of
its environment, and behaves as $FAKE says. $FAKE_STATE is a folder for what it was asked (asked.jsonl)
and for its conversations, which outlive it.

  plain structured bad prose      an answer; `structured` is the value that it claims
  forgets                         an answer, and the conversation is gone
  error:STATUS                    an answer with an error of the API behind it
  length                          an answer that was cut
  nomodel                         500, and why in an event
  retry retry-once                it tries again by itself: without end, or once
  waits                           it says that it waits, again and again
  tool permission question        it uses a tool; asks first; asks a person
  leak                            its answer holds its environment's password
  hang                            nothing comes until it is aborted
  deaf                            the same, and it does not hear an abort either
  quiet                           it closes its output and answers in four seconds
  stays                           it answers, then ignores TERM, and so does a process it started
  cut cut-events die garbage badjson   in the middle of the work
  nostart fail refuse silent      it never says where it listens; ends; wants another password; does not
                                  reply
"""
import base64
import http.server
import json
import re
import os
import signal
import subprocess
import sys
import threading
import time

FAKE = os.environ.get("FAKE", "plain")
STATE = os.environ["FAKE_STATE"]
PASSWORD = os.environ.get("OPENCODE_SERVER_PASSWORD", "")
TEXT = "All of it is done.\n\n[WORK:1]"
MARK = ""  # the word that the prompt asks for behind the tag


def signed():
    return f"{TEXT} {MARK}".strip()
TOKENS = {"input": 11, "output": 7, "reasoning": 0, "cache": {"read": 0, "write": 0}}
streams, lock = [], threading.Lock()
aborted, replied = threading.Event(), threading.Event()
reply = {}


def note(**what):
    with lock, open(STATE + "/asked.jsonl", "a") as f:
        f.write(json.dumps(what) + "\n")


def send(kind, **properties):
    line = f"data: {json.dumps({'id': 'evt_1', 'type': kind, 'properties': properties})}\n\n"
    with lock:
        for stream in list(streams):
            try:
                stream.write(line.encode())
                stream.flush()
            except OSError:
                streams.remove(stream)


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body, raw=None):
        data = raw if raw is not None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def admitted(self):
        wanted = "another" if FAKE == "refuse" else PASSWORD
        basic = "Basic " + base64.b64encode(f"opencode:{wanted}".encode()).decode()
        if PASSWORD and self.headers.get("Authorization") == basic:
            return True
        self.answer(401, {})
        return False

    def do_GET(self):
        note(method="GET", path=self.path)
        if not self.admitted():
            return
        if FAKE == "silent":
            time.sleep(1000)
        if self.path == "/event":
            self.events()
        elif os.path.exists(STATE + "/" + self.path.rsplit("/", 1)[1]):
            self.answer(200, {"id": self.path.rsplit("/", 1)[1]})
        else:
            self.answer(404, {"name": "NotFoundError", "data": {"message": "Session not found"}})

    def events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        with lock:
            streams.append(self.wfile)
        send("server.connected")
        cut = threading.Event()
        self.server.cuts.append(cut)
        cut.wait()
        with lock:
            streams.remove(self.wfile)
        self.close_connection = True

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        note(method="POST", path=self.path, body=body)
        if not self.admitted():
            return
        if self.path == "/session":
            session = "ses_" + os.urandom(6).hex()
            with open(f"{STATE}/{session}", "w"):
                pass
            self.answer(200, {"id": session, "title": body.get("title")})
        elif self.path.endswith("/message"):
            self.work(self.path.split("/")[2], body)
        elif self.path.endswith("/abort"):
            if FAKE == "deaf":
                time.sleep(1000)
            aborted.set()
            self.answer(200, True)
        else:
            reply.update(body or {"rejected": True})
            replied.set()
            self.answer(200, True)

    def part(self, session, text, part="prt_1", **more):
        send("message.part.updated", sessionID=session,
             part={"id": part, "messageID": "msg_2", "type": "text", "text": text, **more})

    def end_turn(self, session, text, **info):
        send("message.part.delta", sessionID=session, messageID="msg_2", partID="prt_1",
             field="text", delta=text)
        info = {"id": "msg_2", "role": "assistant", "cost": 0, "tokens": TOKENS, "finish": "stop",
                "sessionID": session, **info}
        parts = [{"type": "step-start"}, {"type": "text", "text": text}]
        self.answer(200, {"info": info, "parts": parts})
        send("session.status", sessionID=session, status={"type": "idle"})
        send("session.idle", sessionID=session)

    def work(self, session, body):
        global MARK  # pylint: disable=global-statement
        asked = re.search(r"the word (\w{4}) behind it", json.dumps(body))
        MARK = asked[1] if asked else ""
        send("session.status", sessionID=session, status={"type": "busy"})
        send("message.updated", sessionID=session, info={"id": "msg_1", "role": "user"})
        send("message.part.updated", sessionID=session,
             part={"id": "prt_0", "messageID": "msg_1", "type": "text", "text": "the prompt"})
        send("message.updated", sessionID=session, info={"id": "msg_2", "role": "assistant"})
        kind, _, more = FAKE.partition(":")
        structured = {}
        if kind == "structured" or (kind == "bad" and "format" in body):
            structured = {"structured": {"step": 1, "reason": "so"} if kind == "structured"
                          else {"wrong": True}}
        if kind == "forgets":
            os.unlink(STATE + "/" + session)
        if kind in ("plain", "structured", "bad", "forgets"):
            self.end_turn(session, signed(), **structured)
        elif kind == "prose":
            self.end_turn(session, signed(), error={"name": "StructuredOutputError",
                                              "data": {"message": "no structured output"}})
        elif kind == "error":
            self.end_turn(session, "", finish=None, error={
                "name": "APIError", "data": {"message": "It says no", "statusCode": int(more)}})
        elif kind == "length":
            self.end_turn(session, "half", finish="length")
        elif kind == "nomodel":
            self.answer(500, {"name": "UnknownError", "data": {"message": "Unexpected"}})
            send("session.error", sessionID=session, error={
                "name": "UnknownError", "data": {"message": "Model not found: a/b."}})
            send("session.idle", sessionID=session)
        elif kind in ("retry", "retry-once", "waits"):
            self.retry(session, kind)
        elif kind in ("tool", "permission", "question"):
            self.tool(session, kind)
        elif kind == "leak":
            self.end_turn(session, f"{PASSWORD} {signed()}")
            print(PASSWORD, file=sys.stderr, flush=True)
        elif kind in ("hang", "deaf"):
            self.part(session, "half")
            aborted.wait()
            self.end_turn(session, "half", finish=None)
        elif kind == "quiet":
            time.sleep(4)
            self.end_turn(session, signed())
        elif kind == "stays":
            subprocess.Popen([sys.executable, "-c", "import signal, time; "
                              "signal.signal(15, signal.SIG_IGN); time.sleep(1000)"],
                             start_new_session=True, stdin=subprocess.DEVNULL)
            self.end_turn(session, signed())
        else:
            self.misbehave(session, kind)

    def retry(self, session, kind):
        for attempt in range(1, 1000):
            send("session.status", sessionID=session, status={
                "type": "retry", "attempt": 1 if kind == "waits" else attempt,
                "message": "Rate limit reached. Please try again in 1.2s.",
                "next": int(time.time() * 1000) + 50})
            send("server.heartbeat")
            if aborted.wait(0.05):
                self.end_turn(session, "", finish=None)
                return
            send("session.status", sessionID=session, status={"type": "busy"})
            if kind == "retry-once":
                self.end_turn(session, signed())
                return

    def tool(self, session, kind):
        def state(status):
            send("message.part.updated", sessionID=session,
                 part={"id": "prt_2", "messageID": "msg_2", "type": "tool", "tool": "bash",
                       "callID": "call_1", "state": {"status": status}})
        state("running")
        if kind == "permission":
            send("permission.asked", id="per_1", sessionID=session, permission="bash",
                 patterns=["ls"], metadata={"command": "ls"}, always=["ls"])
            replied.wait()
        elif kind == "question":
            send("question.asked", id="que_1", sessionID=session,
                 questions=[{"question": "Red or blue?"}])
            replied.wait()
        state("error" if reply.get("reply") == "reject" else "completed")
        self.end_turn(session, json.dumps(reply) + signed())

    def misbehave(self, session, kind):
        self.part(session, "half")
        if kind == "cut":
            self.connection.shutdown(2)
            self.close_connection = True
        elif kind == "cut-events":
            for cut in self.server.cuts:
                cut.set()
            time.sleep(1000)
        elif kind == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif kind == "garbage":
            self.wfile.write(b"\x00\x01 this is no HTTP\r\n\r\n")
            self.close_connection = True
        elif kind == "badjson":
            send("x")
            with lock:
                for stream in streams:
                    stream.write(b"data: {no JSON\n\ndata: [1]\n\n\xff\xfe\n\n")
            self.answer(200, None, raw=b"<html>busy</html>")


def main():
    expected = sys.argv[1:] == ["serve", "--hostname", "127.0.0.1", "--port", "0"]
    note(argv=sys.argv[1:], cwd=os.getcwd(), secret=len(PASSWORD),
         permission=os.environ.get("OPENCODE_PERMISSION", ""))
    if FAKE == "fail" or not expected or PASSWORD in " ".join(sys.argv[1:]):
        print("Error: the database is locked", file=sys.stderr)
        sys.exit(1)
    if FAKE == "stays":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if FAKE == "nostart":
        time.sleep(1000)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.daemon_threads = True
    server.cuts = []
    print(f"opencode server listening on http://127.0.0.1:{server.server_port}", flush=True)
    if FAKE == "quiet":
        os.close(1)
    server.serve_forever()


if __name__ == "__main__":
    main()
