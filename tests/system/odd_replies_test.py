#!/usr/bin/env python3
"""Odd behaviour of servers and clients, a row each: what was measured with real ones, the class that it
must have, and what must be left of the answer. The servers are asked in every dialect; the words of
clients go through the profiles that read them.
"""
import email.utils
import json
import os
import socket
import struct
import sys
import time

from api_calls import SCHEMA, drive
from fake_api import TEXT, FakeApi, error_frame, sse, stream
from support import Box, expect, hour_to_come, main, of_type, records

DIALECTS = ["anthropic", "openai", "openai-chat", "gemini", "ollama", "llamacpp"]
LINES = "a\u2028b\u2029c\u0085d\x0be\x00f\n[WORK:1]"
LONG = "0123456789 " * 95000 + "\n[WORK:1]"


def first_frames(dialect, n=3):
    return stream(dialect, TEXT)[:n]


class Odd(FakeApi):
    """A server that does what the row's name says."""

    def play_error_after_text(self, connection, dialect, request):
        return self.chunked(connection, first_frames(dialect) + [error_frame(dialect)])

    def play_error_first(self, connection, dialect, request):
        return self.chunked(connection, [error_frame(dialect)])

    def play_megabyte(self, connection, dialect, request):
        return self.chunked(connection, stream(dialect, LONG, size=4001))

    def play_only_thinking(self, connection, dialect, request):
        return self.chunked(connection, stream(dialect, "", thinking="let me see"))

    def play_nothing_said(self, connection, dialect, request):
        return self.chunked(connection, stream(dialect, ""))

    def play_lines(self, connection, dialect, request):
        return self.chunked(connection, stream(dialect, LINES, size=3))

    def play_page(self, connection, dialect, request):
        return self.send(connection, 200, {"content-type": "text/html"}, b"<!doctype html>\n<html><body>login</body></html>")

    def play_page_as_json(self, connection, dialect, request):
        return self.send(connection, 200, {"content-type": "application/json"}, b"<html>login</html>")

    def play_trickle(self, connection, dialect, request):
        def slowly():
            for byte in b"".join(stream(dialect, "slow", size=4)):
                yield bytes([byte])
        return self.chunked(connection, slowly())

    def play_wrong_type(self, connection, dialect, request):
        return self.chunked(connection, stream(dialect, TEXT), {"content-type": "image/png"})

    def play_two_ends(self, connection, dialect, request):
        return self.chunked(connection, stream(dialect, TEXT) + stream(dialect, "another"))

    def play_date(self, connection, dialect, request):
        when = email.utils.formatdate(time.time() + 60, usegmt=True)
        return self.send(connection, 429, {"content-type": "application/json", "retry-after": when}, b'{"error":{"message":"slow"}}')

    def play_reset(self, connection, dialect, request):
        self.chunked(connection, first_frames(dialect) + [stream(dialect, TEXT)[3][:11]], end=False)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False

    def play_absurd(self, connection, dialect, request):
        frames = b"".join(stream(dialect, TEXT))
        return self.chunked(connection, [frames.replace(b": 11", b": 9007199254740993").replace(b": 7", b": -5")])

    def play_crlf(self, connection, dialect, request):
        return self.chunked(connection, [f.replace(b"\n", b"\r\n") for f in stream(dialect, TEXT)])

    def play_empty(self, connection, dialect, request):
        return self.send(connection, 200, {"content-type": "text/event-stream"}, b"")

    def play_pings(self, connection, dialect, request):
        ping = b"\n" if dialect in ("ollama", "generate") else b": ping\n\n"

        def for_ever():
            while not self.release.wait(0.1):
                yield ping
        return self.chunked(connection, for_ever())

    def play_out_of_money(self, connection, dialect, request):
        error = {"type": "rate_limit_error", "message": "spent", "details": {"error_code": "enforced_spend_limit_reached"}}
        return self.send(connection, 429, {"content-type": "application/json"}, json.dumps({"type": "error", "error": error}).encode())

    def play_slow_down(self, connection, dialect, request):
        return self.send(connection, 503, {"content-type": "application/json"}, b'{"error":{"code":"slow_down","message":"later"}}')

    def play_too_long(self, connection, dialect, request):
        error = {"message": "prompt is too long: 210000 tokens > 200000 maximum", "type": "invalid_request_error", "code": "context_length_exceeded"}
        return self.send(connection, 400, {"content-type": "application/json"}, json.dumps({"error": error}).encode())

    def play_no_stream(self, connection, dialect, request):
        error = {"message": "Your organization must be verified to stream this model.", "type": "invalid_request_error", "param": "stream"}
        return self.send(connection, 403, {"content-type": "application/json"}, json.dumps({"error": error}).encode())


# What the server does; class; what else must hold of the result.
ROWS = [
    ("error-after-text", "overloaded", lambda r: r["text"] != ""),
    ("error-first", "overloaded", lambda r: r["text"] == ""),
    ("megabyte", "ok", lambda r: r["bytes"] == len(LONG) and r["dropped"] == 0),
    ("only-thinking", "ok", lambda r: r["text"] == "" and r["thinking"] == "let me see"),  # a session calls it protocol, below
    ("nothing-said", "ok", lambda r: r["text"] == ""),
    ("lines", "ok", lambda r: r["text"] == LINES),
    ("page", "protocol", lambda r: "base_url" in r["message"] and "text/html" in r["message"]),
    ("page-as-json", "protocol", lambda r: "base_url" in r["message"]),
    ("trickle", "ok", lambda r: r["text"] == "slow"),
    ("wrong-type", "ok", lambda r: r["text"] == TEXT),
    ("two-ends", "ok", lambda r: r["text"] == (TEXT + "another" if r["id"].startswith("gemini") else TEXT)),
    ("date", "rate_limit", lambda r: 50000 < r["retry_after_ms"] <= 62000),
    ("reset", "network", lambda r: True),  # the kernel may drop what came before it
    ("absurd", "ok", lambda r: r["text"] == TEXT and r["usage"] == {"told": "none"}),
    ("crlf", "ok", lambda r: r["text"] == TEXT),
    ("empty", "network", lambda r: "empty" in r["message"]),
    ("pings", "timeout", lambda r: "no content for 500 ms" in r["message"] and r["duration_ms"] < 60000),
    ("out-of-money", "quota", lambda r: r["retry_after_ms"] == 0),
    ("slow-down", "overloaded", lambda r: True),
    ("too-long", "bad_request", lambda r: "too long" in r["message"]),
    ("no-stream", "auth", lambda r: "stream: false in providers." in r["message"]),
    ("401", "auth", lambda r: True),
    ("429", "rate_limit", lambda r: True),
    ("529", "overloaded", lambda r: True),
    ("cut", "network", lambda r: r["text"] != ""),
    ("stall", "timeout", lambda r: "no byte for" in r["message"]),
]


def case_servers():
    """Each row in each dialect, with the class, and in one request."""
    server = Odd()
    wrong = []
    try:
        for i in range(0, len(ROWS), 6):
            part = ROWS[i:i + 6]
            settings, calls = {}, []
            for name, _, _ in part:
                for dialect in DIALECTS:
                    base = server.url(name) + ("/v1" if dialect.startswith("openai") else "")
                    settings[f"{dialect}.{name}"] = {"type": dialect, "base_url": base, "idle_ms": 500 if name == "pings" else 90000,
                                                      "stall_ms": 300 if name == "stall" else 90000}
                    calls.append({"id": f"{dialect}.{name}", "provider": f"{dialect}.{name}", "purpose": "execute", **({"schema": SCHEMA} if name == "too-long" else {})})
            got = drive(settings, calls)
            for name, wanted, holds in part:
                for dialect in DIALECTS:
                    result = got[f"{dialect}.{name}"]
                    if result["class"] != wanted or not holds(result):
                        wrong.append((dialect, name, wanted, {**result, "text": result.get("text", "")[:80], "told": ""}))
                asked = sum(r["scenario"] == name for r in server.requests)
                if asked != len(DIALECTS):
                    wrong.append((name, "asked", asked))
    finally:
        server.close()
    expect(not wrong, *[f"\n{w}" for w in wrong])
    return f"{len(ROWS)} rows in {len(DIALECTS)} dialects"


CLAUDE = {"type": "result", "subtype": "success", "is_error": True, "session_id": "s-1"}
# A client's lines; its profile; class; a word of the message. Measured with the real clients.
CLIENTS = [
    ("claude", [{**CLAUDE, "result": "API Error: malformed response (HTTP 200)"}], "protocol", "malformed"),
    ("claude", [{**CLAUDE, "result": "--json-schema is not valid JSON: JSON Parse error: Unexpected EOF"}], "bad_request", "EOF"),
    ("claude", [{**CLAUDE, "api_error_status": 401, "result": "Invalid API key"}], "auth", "Invalid"),
    ("claude", [{**CLAUDE, "api_error_status": 529, "result": "Overloaded"}], "overloaded", "Overloaded"),
    ("claude", [{"type": "stream_event", "parent_tool_use_id": None, "event": {"delta": {"type": "thinking_delta", "thinking": "hm"}}},
                {**CLAUDE, "is_error": False, "result": ""}], "protocol", "reasoning"),
    ("codex", [{"type": "item.completed", "item": {"id": "i", "type": "reasoning", "text": "hm"}},
               {"type": "turn.completed", "usage": {}}], "protocol", "reasoning"),
    ("codex", [{"type": "turn.completed", "usage": {}}], "refused", "without an answer"),
    ("opencode", [{"type": "reasoning", "sessionID": "s", "part": {"text": "hm"}},
                  {"type": "step_finish", "sessionID": "s", "part": {"reason": "stop"}}], "protocol", "reasoning"),
    ("gemini", [{"type": "result", "status": "error", "error": {"type": "Error", "message": "Model stream ended without a finish reason."}}],
     "network", "stream ended"),
    ("gemini", [{"type": "result", "status": "error", "error": {"type": "Error", "message": "Incomplete JSON segment at the end"}}],
     "protocol", "Incomplete"),
]


def case_clients():
    """Words and endings of the clients, each with its class."""
    with Box() as box:
        for profile, lines, wanted, word in CLIENTS:
            exit_status = 1 if lines[-1].get("is_error", lines[-1].get("status") == "error") else 0
            path = box.file("t.txt", '# {"argv": [], "exit": %d}\n--- stdout ---\n' % exit_status + "".join(json.dumps(x) + "\n" for x in lines)
                            + "--- stderr ---\n")
            done = box.segue("providers", "test", profile, "--transcript", path, "--json")
            end = [json.loads(x) for x in done.stdout.decode().splitlines()][-1]
            expect(end["class"] == wanted and word in (end["message"] or ""), profile, lines, "wanted", wanted, "got", end)
    return f"{len(CLIENTS)} rows"


FLOW = """name: w
provider: %s
movements:
  - name: work
    instruction: Do it.
    rules:
      - {condition: when(true), next: COMPLETE}
"""


def session(box, provider, config):
    box.config({"sandbox": {"write": [box.dir]}, **config})  # players leave notes there
    done = box.segue("run", box.file("w.yaml", FLOW % provider), "--task", "t", "--logs", box.logs, "--cwd", box.cwd)
    return done, records(box.log_paths()[-1])


def program(box, name, body):
    path = box.file(name, "#!/bin/sh\n" + body)
    os.chmod(path, 0o755)
    return path


LIMITS = [  # what the client says of a subscription's limit, and what stands beside it
    (lambda: f"You've hit your session limit \u00b7 resets {hour_to_come()} (UTC)", {"is_error": True}),
    (lambda: f"You've hit your session limit \u00b7 resets {hour_to_come()} (UTC)", {"is_error": False}),
    (lambda: f"You've hit your session limit \u00b7 resets {hour_to_come()} (UTC)", {"is_error": True, "api_error_status": 429}),
    (lambda: f"You've hit your weekly limit \u00b7 resets {hour_to_come()} (UTC)", {"is_error": True}),
    (lambda: f"You're out of extra usage \u00b7 resets {hour_to_come(shift=9, minutes=':30')} (Asia/Tokyo)", {"is_error": False}),
    (lambda: f"5-hour limit reached \u2219 resets {hour_to_come(time.localtime)}", {"is_error": False}),
]


def case_limits():
    """A subscription's limit is no answer: the session stops and can go on, and knows when."""
    for say, beside in LIMITS:
        with Box() as box:
            box.env.update({k: v for k, v in os.environ.items() if k == "TZ"})
            words = say()
            run = program(box, "claude", f"cat >/dev/null\ncat '{box.file('out', json.dumps({**CLAUDE, **beside, 'result': words}))}'\n")
            done, log = session(box, "claude", {"wait_for_reset": False, "providers": {"claude": {"program": run, "transport": "exec"}}})
            ends = of_type(log, "call_end")
            expect(done.returncode == 1 and len(ends) == 1 and log[-1]["type"] == "session_stop" and log[-1]["resumable"], words, done.stdout)
            expect(ends[0]["error"]["class"] == "rate_limit" and 3600000 < ends[0]["error"]["retry_after_ms"] <= 4 * 3600000, words, ends[0])
    return f"{len(LIMITS)} rows"


def case_only_reasoning():
    """A reply of reasoning alone is asked for once more, then it is an error of class protocol."""
    server = Odd()
    with Box() as box:
        try:
            done, log = session(box, "api", {"providers": {"api": {"type": "openai-chat", "base_url": server.url("only-thinking") + "/v1", "model": "m"}}})
            errors = [r["error"]["class"] for r in of_type(log, "call_end")]
            expect(done.returncode == 1 and errors == ["protocol", "protocol"], done.stdout, done.stderr, errors)
        finally:
            server.close()


def case_costs():
    """OpenRouter tells what a request has cost; so little as nothing is known, too."""
    for cost in (0.00042, 0):
        def answer(scenario, request):
            return stream("openai-chat", "It is done.\n\n[WORK:1]")[:-2] + [
                sse({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7, "cost": cost, "is_byok": False,
                                              "cost_details": {"upstream_inference_cost": None}}}), b"data: [DONE]\n\n"]
        server = FakeApi(answer)
        with Box() as box:
            try:
                box.env["OPENROUTER_API_KEY"] = "sk-or-segue-test-01234"
                done, log = session(box, "openrouter", {"providers": {"openrouter": {"base_url": server.url("o") + "/v1", "model": "m"}}})
                spent = of_type(log, "session_end")[0]["spent"]
                expect(done.returncode == 0 and spent["cost_usd"] == cost and "unpriced" not in spent, done.stdout, done.stderr, spent)
                expect(b"$0.000" in done.stdout and b"unknown" not in done.stdout, done.stdout)
            finally:
                server.close()


def case_a_retry_goes_on():
    """After an error of the network the next attempt goes on with the conversation, and does no work twice."""
    first = [{"type": "system", "subtype": "init", "session_id": "s-1"},
             {"type": "assistant", "session_id": "s-1", "message": {"content": [{"type": "tool_use", "name": "Write", "id": "t"}]}},
             {**CLAUDE, "result": "Connection error.", "terminal_reason": "connection_failed"}]
    then = [{**CLAUDE, "is_error": False, "result": "Done.\n\n[WORK:1]"}]
    with Box() as box:
        for name, lines in (("1.out", first), ("2.out", then)):
            box.file(name, "".join(json.dumps(x) + "\n" for x in lines))
        run = program(box, "claude", f"cat >/dev/null\ncd '{box.dir}'\nif [ -e args ]; then echo \"$*\" >>args; cat 2.out; "
                      "else echo \"$*\" >args; cat 1.out; exit 1; fi\n")
        done, log = session(box, "claude", {"providers": {"claude": {"program": run, "transport": "exec"}}})
        with open(box.dir + "/args") as f:
            asked = f.read().splitlines()
        expect(done.returncode == 0, done.stdout, done.stderr)
        expect(len(asked) == 2 and "--resume" not in asked[0] and "--resume s-1" in asked[1], asked)
        expect([r["error"]["class"] for r in of_type(log, "call_end") if "error" in r] == ["network"], log)
        expect([r["session"]["resumed"] for r in of_type(log, "call_start") if "session" in r] == [True], log)


def case_a_loop_of_requests():
    """A client that asks its model for ever is ended by the number of its requests, where it tells them."""
    step = json.dumps({"type": "step_finish", "sessionID": "s", "part": {"reason": "tool-calls", "cost": 0, "tokens": {"input": 3, "output": 1}}})
    with Box() as box:
        run = program(box, "opencode", f"cat >/dev/null\nwhile echo '{step}'; do :; done\n")
        started = time.monotonic()
        done, log = session(box, "opencode", {"providers": {"opencode": {"program": run, "transport": "exec"}}})
        error = of_type(log, "call_end")[0]["error"]
        expect(done.returncode == 1 and "max_requests" in error["message"] and time.monotonic() - started < 300, done.stdout, error)


def case_a_client_that_only_lives():
    """Output without text, reasoning or tools ends at idle_ms; output with some goes on for longer than that."""
    alive = json.dumps({"type": "ping"})
    says = json.dumps({"type": "stream_event", "parent_tool_use_id": None, "event": {"delta": {"type": "text_delta", "text": "."}}})
    end = json.dumps({**CLAUDE, "is_error": False, "result": "Done.\n\n[WORK:1]"})
    for line, times, wanted in ((alive, 1200, "timeout"), (says, 60, None)):
        with Box() as box:
            run = program(box, "claude", f"cat >/dev/null\ni=0\nwhile [ $i -lt {times} ]; do echo '{line}'; sleep 0.05; i=$((i+1)); done\n"
                          f"cat '{box.file('end', end)}'\n")
            done, log = session(box, "claude", {"providers": {"claude": {"program": run, "transport": "exec", "idle_ms": 2000}}})
            ends = of_type(log, "call_end")
            expect(ends[0].get("error", {}).get("class") == wanted and (done.returncode == 0) == (wanted is None), line, done.stdout, ends[0])


sys.exit(main([case for name, case in list(globals().items()) if name.startswith("case_")]))
