"""Model APIs that misbehave as asked: an HTTP server on loopback, for tests.

    server = FakeApi(); server.url("ok") -> http://127.0.0.1:PORT/s/ok
    server.requests   what came: dicts with scenario, method, path, headers, body
    server.close()

The first part of the path chooses the scenario, the rest tells the dialect. Scenarios are below, in
SCENARIOS and in Reply. One thread a connection; nothing but the standard library.
"""
import gzip
import json
import socket
import threading
import zlib

TEXT = "Grüße: the answer is 42 😀"
ERRORS = {
    400: ("invalid_request_error", "INVALID_ARGUMENT"), 401: ("authentication_error", "UNAUTHENTICATED"),
    403: ("permission_error", "PERMISSION_DENIED"), 404: ("not_found_error", "NOT_FOUND"),
    413: ("request_too_large", "INVALID_ARGUMENT"), 429: ("rate_limit_error", "RESOURCE_EXHAUSTED"),
    500: ("api_error", "INTERNAL"), 503: ("api_error", "UNAVAILABLE"), 529: ("overloaded_error", "UNAVAILABLE"),
}


def dialect_of(path):
    path = path.split("?")[0]
    for end, name in (("/v1/messages", "anthropic"), ("/responses", "openai"), ("/chat/completions", "openai-chat"),
                      (":streamGenerateContent", "gemini"), (":generateContent", "gemini"), ("/api/chat", "ollama"),
                      ("/api/generate", "generate"), ("/completion", "llamacpp")):
        if path.endswith(end):
            return name
    return None


def error_body(dialect, status):
    kind, google = ERRORS[status]
    if dialect == "anthropic":
        return {"type": "error", "error": {"type": kind, "message": f"no {status}"}}
    if dialect == "gemini":
        return {"error": {"code": status, "message": f"no {status}", "status": google}}
    if dialect in ("ollama", "generate"):
        return {"error": f"no {status}"}
    return {"error": {"message": f"no {status}", "type": kind, "code": None}}


def sse(doc, event=None):
    head = f"event: {event}\n" if event else ""
    return (head + "data: " + json.dumps(doc) + "\n\n").encode()


def pieces(text, size):
    return [text[i:i + size] for i in range(0, len(text), size)]


def stream(dialect, text, stop="stop", thinking="", size=7):
    """The frames of a whole answer."""
    out = []
    parts = pieces(text, size)
    if dialect == "anthropic":
        word = {"stop": "end_turn", "length": "max_tokens", "refused": "refusal"}[stop]
        out.append(sse({"type": "message_start", "message": {"usage": {"input_tokens": 11, "output_tokens": 1}}}, "message_start"))
        if thinking:
            out.append(sse({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": thinking}}))
        out += [sse({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": p}}, "content_block_delta") for p in parts]
        out.append(sse({"type": "message_delta", "delta": {"stop_reason": word}, "usage": {"output_tokens": 7}}, "message_delta"))
        out.append(sse({"type": "message_stop"}, "message_stop"))
    elif dialect == "openai":
        out.append(sse({"type": "response.created", "response": {"status": "in_progress", "error": None}}))
        if thinking:
            out.append(sse({"type": "response.reasoning_text.delta", "delta": thinking}))
        kind = "response.refusal.delta" if stop == "refused" else "response.output_text.delta"
        out += [sse({"type": kind, "delta": p}) for p in parts or (["No."] if stop == "refused" else [])]
        status = "incomplete" if stop == "length" else "completed"
        out.append(sse({"type": "response." + status, "response": {
            "status": status, "error": None, "incomplete_details": {"reason": "max_output_tokens"} if stop == "length" else None,
            "output": [], "usage": {"input_tokens": 11, "output_tokens": 7}}}))
    elif dialect == "openai-chat":
        word = {"stop": "stop", "length": "length", "refused": "content_filter"}[stop]
        if thinking:
            out.append(sse({"choices": [{"delta": {"reasoning_content": thinking}}]}))
        out += [sse({"choices": [{"delta": {"content": p}, "finish_reason": None}]}) for p in parts]
        out.append(sse({"choices": [{"delta": {}, "finish_reason": word}]}))
        out.append(sse({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7}}))
        out.append(b"data: [DONE]\n\n")
    elif dialect == "gemini":
        word = {"stop": "STOP", "length": "MAX_TOKENS", "refused": "SAFETY"}[stop]
        if thinking:
            out.append(sse({"candidates": [{"content": {"parts": [{"text": thinking, "thought": True}]}}]}))
        out += [sse({"candidates": [{"content": {"parts": [{"text": p}]}}]}) for p in parts]
        out.append(sse({"candidates": [{"content": {"parts": []}, "finishReason": word}],
                        "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 7}}))
    elif dialect in ("ollama", "generate"):
        def line(p, done, think=""):
            doc = {"model": "m", "done": done}
            if dialect == "generate":
                doc.update(response=p, **({"thinking": think} if think else {}))
            else:
                doc["message"] = {"role": "assistant", "content": p, **({"thinking": think} if think else {})}
            if done:
                doc.update(done_reason="length" if stop == "length" else "stop", prompt_eval_count=11, eval_count=7)
            return (json.dumps(doc) + "\n").encode()
        if thinking:
            out.append(line("", False, thinking))
        out += [line(p, False) for p in parts] + [line("", True)]
    else:
        out += [sse({"content": p, "stop": False}) for p in parts]
        out.append(sse({"content": "", "stop": True, "stop_type": "limit" if stop == "length" else "eos",
                        "tokens_predicted": 7, "tokens_evaluated": 11}))
    return out


def error_frame(dialect):
    """An error within a stream that began well."""
    if dialect == "anthropic":
        return sse({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "error")
    if dialect == "openai":
        return sse({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_is_overloaded", "message": "Overloaded"}}})
    if dialect in ("ollama", "generate"):
        return b'{"error":"the runner has terminated"}\n'
    return sse({"error": {"message": "Overloaded", "type": "server_error", "code": 503}})


def schema_of(body):
    """The schema that a request carries, and where."""
    tools = body.get("tools") or []
    if tools:
        tool = tools[0]
        if "functionDeclarations" in tool:
            return tool["functionDeclarations"][0]["parametersJsonSchema"], "tool"
        return tool.get("input_schema") or tool.get("parameters") or tool["function"]["parameters"], "tool"
    for path in (("output_config", "format", "schema"), ("text", "format", "schema"),
                 ("response_format", "json_schema", "schema"), ("generationConfig", "responseJsonSchema"),
                 ("structured_outputs", "json"), ("json_schema",), ("format",)):
        at = body
        for key in path:
            at = at.get(key) if isinstance(at, dict) else None
        if isinstance(at, dict):
            return at, "native"
    if body.get("grammar") or (body.get("structured_outputs") or {}).get("grammar"):
        return None, "grammar"
    if body.get("format") == "json" or "json_object" in json.dumps(body.get("response_format") or body.get("text") or ""):
        return None, "json"
    if (body.get("generationConfig") or {}).get("responseMimeType"):
        return None, "json"
    return None, None


def tool_stream(dialect, text):
    if dialect == "anthropic":
        return [sse({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": p}}) for p in pieces(text, 9)] + \
            [sse({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}}), sse({"type": "message_stop"})]
    if dialect == "openai":
        return [sse({"type": "response.function_call_arguments.delta", "delta": p}) for p in pieces(text, 9)] + \
            [sse({"type": "response.completed", "response": {"status": "completed", "output": []}})]
    if dialect == "gemini":
        return [sse({"candidates": [{"content": {"parts": [{"functionCall": {"name": "answer", "args": json.loads(text)}}]}, "finishReason": "STOP"}]})]
    return [sse({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": p}}]}}]}) for p in pieces(text, 9)] + \
        [sse({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}), b"data: [DONE]\n\n"]


class FakeApi:
    def __init__(self, answer=None, tls=None):
        """answer(scenario, request) -> list of frames, or None for the scenarios below."""
        self.answer = answer
        self.tls = tls
        self.requests = []
        self.lock = threading.Lock()
        self.release = threading.Event()  # ends what stalls
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def url(self, scenario, host="127.0.0.1"):
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}/s/{scenario}"

    def close(self):
        self.release.set()
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        self.thread.join()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            with connection, connection.makefile("rb") as reader:
                while self.one(connection, reader):
                    pass
        except (OSError, ValueError):
            pass

    def one(self, connection, reader):
        first = reader.readline().decode("latin1").split()
        if len(first) < 3:
            return False
        headers = {}
        while (line := reader.readline().strip()):
            name, _, value = line.decode("latin1").partition(":")
            headers[name.lower()] = value.strip()
        body = reader.read(int(headers.get("content-length", 0)))
        _, _, scenario, rest = (first[1] + "/").split("/", 3)
        request = {"scenario": scenario, "method": first[0], "path": "/" + rest.rstrip("/"), "headers": headers,
                   "body": json.loads(body) if body else None}
        with self.lock:
            request["number"] = sum(r["scenario"] == scenario for r in self.requests)
            self.requests.append(request)
        return self.reply(connection, scenario, request)

    def send(self, connection, status, headers, body):
        head = f"HTTP/1.1 {status} x\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items())
        connection.sendall(head.encode() + f"content-length: {len(body)}\r\n\r\n".encode() + body)
        return True

    def chunked(self, connection, frames, headers=None, end=True):
        head = {"content-type": "text/event-stream", "transfer-encoding": "chunked", **(headers or {})}
        connection.sendall(("HTTP/1.1 200 OK\r\n" + "".join(f"{k}: {v}\r\n" for k, v in head.items()) + "\r\n").encode())
        for frame in frames:
            connection.sendall(f"{len(frame):x}\r\n".encode() + frame + b"\r\n")
        if end:
            connection.sendall(b"0\r\n\r\n")
        return end

    def reply(self, connection, scenario, request):
        if request["method"] == "GET":
            return self.get(connection, scenario, request)
        dialect = dialect_of(request["path"])
        if dialect is None:
            return self.send(connection, 404, {}, b'{"error":{"message":"no such path"}}')
        if self.answer is not None:
            frames = self.answer(scenario, request)
            if isinstance(frames, tuple):
                return self.send(connection, frames[0], {"content-type": "application/json"}, json.dumps(frames[1]).encode())
            if frames is not None:
                return self.chunked(connection, frames)
        status = scenario.split("-")[0]
        if status.isdigit():
            headers = {"content-type": "application/json"}
            if scenario.endswith("-after"):
                headers["retry-after"] = "3"
            return self.send(connection, int(status), headers, json.dumps(error_body(dialect, int(status))).encode())
        return getattr(self, "play_" + scenario.replace("-", "_"))(connection, dialect, request)

    def get(self, connection, scenario, request):
        if scenario == "404":
            return self.send(connection, 404, {}, b"{}")
        docs = {"/api/version": {"version": "0.99.0" if scenario != "old" else "0.6.5"}, "/health": {"status": "ok"},
                "/api/tags": {"models": [{"name": "small:1b"}]}}
        doc = docs.get(request["path"], {"object": "list", "data": [{"id": "m1"}, {"id": "m2"}]})
        return self.send(connection, 200, {"content-type": "application/json"}, json.dumps(doc).encode())

    # --- scenarios ---

    def play_ok(self, connection, dialect, request):
        return self.chunked(connection, stream(dialect, TEXT, thinking="hm"))

    def play_structured(self, connection, dialect, request):
        text = json.dumps({"step": 2, "reason": "because"})
        _, where = schema_of(request["body"])
        return self.chunked(connection, tool_stream(dialect, text) if where == "tool" else stream(dialect, text))

    def play_refused(self, connection, dialect, request):
        return self.chunked(connection, stream(dialect, "", stop="refused"))

    def play_length(self, connection, dialect, request):
        return self.chunked(connection, stream(dialect, '{"step": 2, "rea', stop="length"))

    def play_stream_error(self, connection, dialect, request):
        return self.chunked(connection, stream(dialect, TEXT)[:3] + [error_frame(dialect)])

    def play_cut(self, connection, dialect, request):
        return self.chunked(connection, stream(dialect, TEXT)[:3] + [stream(dialect, TEXT)[3][:9]], end=False)

    def play_cut_first(self, connection, dialect, request):
        return False

    def play_stall(self, connection, dialect, request):
        self.chunked(connection, stream(dialect, TEXT)[:3], end=False)
        self.release.wait(60)
        return False

    def play_stall_first(self, connection, dialect, request):
        self.release.wait(60)
        return False

    def play_held(self, connection, dialect, request):
        """The answer is whole, and the connection stays open."""
        self.chunked(connection, stream(dialect, TEXT), end=False)
        self.release.wait(60)
        return False

    def play_large(self, connection, dialect, request):
        return self.chunked(connection, [b"".join(stream(dialect, "0123456789" * 1048576, size=4096))])

    def play_bytes(self, connection, dialect, request):
        return self.chunked(connection, [bytes([b]) for b in b"".join(stream(dialect, TEXT, thinking="hm"))])

    def play_wrong_type(self, connection, dialect, request):
        return self.chunked(connection, stream(dialect, TEXT), {"content-type": "application/octet-stream"})

    def play_page(self, connection, dialect, request):
        return self.send(connection, 200, {"content-type": "text/html"}, b"<!doctype html><title>Router</title>")

    def play_not_utf8(self, connection, dialect, request):
        return self.chunked(connection, [f.replace(b"@", b"\xff\xc3") for f in stream(dialect, "a@b")])

    def play_gzip(self, connection, dialect, request):
        return self.chunked(connection, [gzip.compress(b"".join(stream(dialect, TEXT)))], {"content-encoding": "gzip"})

    def play_bomb(self, connection, dialect, request):
        pack = zlib.compressobj(9, zlib.DEFLATED, 31)
        frames = [pack.compress(b": " + b"x" * 1048574 + b"\n\n") for _ in range(100)] + [pack.flush()]
        return self.chunked(connection, [f for f in frames if f], {"content-encoding": "gzip"})

    def play_zstd(self, connection, dialect, request):
        return self.chunked(connection, [b"(\xb5/\xfd"], {"content-encoding": "zstd"})

    def play_redirect(self, connection, dialect, request):
        return self.send(connection, 307, {"location": self.url("ok") + request["path"]}, b"")

    def play_headers(self, connection, dialect, request):
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + b"".join(b"x-%d: %s\r\n" % (i, b"y" * 1000) for i in range(80)) + b"\r\n")
        return False

    def play_old_http(self, connection, dialect, request):
        connection.sendall(b"HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + b"".join(stream(dialect, TEXT)))
        return False

    def play_garbage(self, connection, dialect, request):
        connection.sendall(b"\x00\x01\x02 this is no HTTP\r\n\r\n")
        return False
