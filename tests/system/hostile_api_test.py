#!/usr/bin/env python3
"""Servers that mean no good, or are broken in ways that nobody foresaw: whatever they send, a call ends with a
class, a short message that a terminal can show, one request, no more memory than its bounds, and no key.
"""
import gzip
import json
import sys

from api_calls import drive
from fake_api import TEXT, FakeApi, stream
from support import expect, main

DIALECTS = ["anthropic", "openai", "openai-chat", "gemini", "ollama", "llamacpp"]
KEY = "sk-segue-hostile-0123456789"
JSON = "content-type: application/json\r\n"
DEEP = "[" * 200000


def whole(body, status="200 OK", head=JSON):
    body = body if isinstance(body, bytes) else body.encode()
    return f"HTTP/1.1 {status}\r\n{head}content-length: {len(body)}\r\n\r\n".encode() + body


def frames(dialect, text=TEXT):
    return b"".join(stream(dialect, text))


def chunks(body):
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n" + body


def chunk(body):
    return f"{len(body):x}\r\n".encode() + body + b"\r\n"


def line(dialect, doc):
    text = doc if isinstance(doc, str) else json.dumps(doc)
    return (text + "\n").encode() if dialect == "ollama" else ("data: " + text + "\n\n").encode()


# What is sent (bytes, or pieces that come until the call ends); class; a word of the message.
ROWS = {
    "null": (lambda d: whole("null"), "protocol", ""),
    "a-text": (lambda d: whole('"hello"'), "protocol", ""),
    "an-array": (lambda d: whole("[]"), "protocol", ""),
    "empty-object": (lambda d: whole("{}"), "network", "ended before"),
    "deep": (lambda d: whole(DEEP), "protocol", ""),
    "deep-object": (lambda d: whole('{"a":' + DEEP), "protocol", ""),
    "half-json": (lambda d: whole('{"choices": [{"mess'), "protocol", "JSON"),
    "error-is-number": (lambda d: whole('{"error": 5}'), "overloaded", ""),
    "error-is-empty": (lambda d: whole('{"error": {}}'), "overloaded", ""),
    "error-is-long": (lambda d: whole('{"error": {"message": "' + "x" * 300000 + '"}}', "400 Bad"), "bad_request", "xxx"),
    "error-has-escapes": (lambda d: whole('{"error": {"message": "\\u001b[2J\\u0007red"}}', "400 Bad"), "bad_request", "red"),
    "error-has-the-key": (lambda d: whole('{"error": {"message": "bad key ' + KEY + '"}}', "401 No"), "auth", "secret:"),
    "error-not-utf8": (lambda d: whole(b'{"error": {"message": "\xff\xfe"}}', "400 Bad"), "bad_request", ""),
    "error-page": (lambda d: whole("<html>" + "x" * 5000, "502 Bad Gateway", "content-type: text/html\r\n"), "overloaded", "502"),
    "error-login-page": (lambda d: whole("<html>", "401 No", "content-type: text/html\r\n"), "auth", "401"),
    "error-empty": (lambda d: whole("", "500 No"), "overloaded", "500"),
    "no-content": (lambda d: b"HTTP/1.1 204 No Content\r\n\r\n", "network", "empty"),
    "not-modified": (lambda d: b"HTTP/1.1 304 Not Modified\r\n\r\n", "bad_request", "304"),
    "teapot": (lambda d: whole("{}", "418 Teapot"), "bad_request", "418"),
    "status-999": (lambda d: whole("{}", "999 What"), "overloaded", "999"),
    "redirect-elsewhere": (lambda d: whole("", "302 Found", "location: http://169.254.169.254/latest\r\n"), "bad_request", "redirect"),
    "redirect-without-place": (lambda d: whole("", "301 Moved"), "bad_request", "redirect"),
    "retry-after-absurd": (lambda d: whole('{"error": {"message": "later"}}', "429 Slow", JSON + "retry-after: 1e300\r\n"), "rate_limit", ""),
    "retry-after-negative": (lambda d: whole('{"error": {"message": "later"}}', "429 Slow", JSON + "retry-after: -5\r\n"), "rate_limit", ""),
    "length-too-long": (lambda d: b"HTTP/1.1 200 OK\r\n" + JSON.encode() + b"content-length: 100000\r\n\r\n{", "network", ""),
    "length-not-a-number": (lambda d: b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n{}", "protocol", ""),
    "lengths-that-differ": (lambda d: b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 9\r\n\r\n{}", "network", "whole"),
    "chunk-not-a-number": (lambda d: chunks(b"zz\r\nabc\r\n"), "network", "hexadecimal"),
    "chunk-too-large": (lambda d: chunks(b"ffffffffffffffffff\r\nabc\r\n"), "network", "hexadecimal"),
    "gzip-cut": (lambda d: whole(gzip.compress(frames(d))[:-20], head="content-encoding: gzip\r\n"), None, ""),
    "gzip-that-is-none": (lambda d: whole(frames(d), head="content-encoding: gzip\r\n"), "protocol", ""),
    "encoding-unknown": (lambda d: whole(frames(d), head="content-encoding: x-own\r\n"), "protocol", '"x-own"'),
    "event-of-no-end": (lambda d: chunks(chunk(line(d, '{"a": "').rstrip(b"\n") + b"x" * 20000000)), "protocol", "larger"),
    "event-not-json": (lambda d: chunks(chunk(line(d, "{not json}")) + b"0\r\n\r\n"), "protocol", "JSON"),
    "events-of-wrong-types": (lambda d: chunks(b"".join(chunk(line(d, doc)) for doc in WRONG) + b"0\r\n\r\n"), "network", "ended before"),
    "only-comments": (lambda d: chunks(chunk(b": hello\n\n" * 1000) + b"0\r\n\r\n"), None, ""),
    "nul-bytes": (lambda d: whole(b"\x00" * 5000), "protocol", "neither"),
    "many-early-hints": (lambda d: b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" * 20000, None, ""),
    "a-long-status-line": (lambda d: b"HTTP/1.1 200 " + b"x" * 2000000 + b"\r\n\r\n", None, ""),
    "headers-that-trickle": ("trickle", "timeout", "headers were not complete within 500 ms"),
    "white-space-without-end": ("spaces", "timeout", "no content"),
    "an-old-greeting": (lambda d: b"220 mail.example.org ESMTP\r\n", "protocol", ""),
    "nothing-at-all": (lambda d: b"", "network", ""),
}
WRONG = [{"choices": {}}, {"choices": "x"}, {"choices": [5]}, {"choices": [{"delta": 5, "finish_reason": 5}]}, {"choices": [{"delta": {"content": {"a": 1}}}]},
         {"choices": [{"delta": {"tool_calls": [None, 5, {"function": 7}]}}]}, {"candidates": [None]}, {"candidates": [{"content": [], "finishReason": {}}]},
         {"candidates": [{"content": {"parts": "x"}}]}, {"message": 5}, {"message": {"content": []}, "done": "yes"}, {"type": 5}, {"type": "message_delta", "delta": 7, "usage": []},
         {"type": "content_block_delta", "delta": {"text": 5, "thinking": {}}}, {"type": "message_start", "message": "x"}, {"type": "response.completed"},
         {"usage": "x"}, {"usageMetadata": 5}, {"stop": "x", "content": 5}, 5, None, []]


# Ollama's form is lines: one that is cut off, or says nothing, is a reply that is not whole.
LINES = {name: "network" for name in ("an-array", "deep", "deep-object", "half-json", "error-is-number")}


class Hostile(FakeApi):
    def reply(self, connection, scenario, request):
        dialect, _, name = scenario.partition(".")
        send = ROWS[name][0]
        if send == "trickle":
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while not self.release.wait(0.05):
                connection.sendall(b"x-a: b\r\n")
        elif send == "spaces":
            connection.sendall(b"HTTP/1.1 200 OK\r\n" + JSON.encode() + b"content-length: 1000000\r\n\r\n")
            while not self.release.wait(0.05):
                connection.sendall(b" ")
        else:
            connection.sendall(send(dialect))
        return False


def case_hostile():
    server = Hostile()
    wrong, names = [], list(ROWS)
    try:
        for i in range(0, len(names), 7):
            settings, calls = {}, []
            for name in names[i:i + 7]:
                for dialect in DIALECTS:
                    key = f"{dialect}.{name}"
                    settings[key] = {"type": dialect, "base_url": server.url(key) + ("/v1" if dialect.startswith("openai") else ""),
                                     "key_env": "SEGUE_TEST_KEY", "idle_ms": 400 if name.startswith("white") else 90000, "stall_ms": 500 if "trickle" in name else 90000}
                    calls.append({"id": key, "provider": key, "timeout_ms": 100000})
            got = drive(settings, calls, {"SEGUE_TEST_KEY": KEY})
            for name in names[i:i + 7]:
                _, wanted, word = ROWS[name]
                for dialect in DIALECTS:
                    r = got[f"{dialect}.{name}"]
                    message = r["message"]
                    classes = LINES.get(name, wanted) if dialect == "ollama" else wanted
                    fine = r["class"] == classes if classes else r["class"] != "ok" or r["text"] in (TEXT, "")
                    fine = fine and (r["class"] == "ok" or dialect == "ollama" or word in message)
                    fine = fine and (r["class"] == "ok") == (message == "") and len(message) < 512 and (message.isprintable() or not message) and KEY not in json.dumps(r)
                    fine = fine and r["duration_ms"] < 60000 and 0 <= r["retry_after_ms"] < 10 ** 12
                    if not fine:
                        wrong.append((dialect, name, wanted, {k: r[k] for k in ("class", "message", "retry_after_ms", "duration_ms", "bytes")}))
                if sum(r["scenario"].partition(".")[2] == name for r in server.requests) != len(DIALECTS):
                    wrong.append((name, "was asked more than once"))
    finally:
        server.close()
    expect(not wrong, *[f"\n{w}" for w in wrong])
    return f"{len(ROWS)} kinds in {len(DIALECTS)} dialects"


sys.exit(main([case for name, case in list(globals().items()) if name.startswith("case_")]))
