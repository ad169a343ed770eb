#!/usr/bin/env python3
"""Money without a word of configuration: what calls of model APIs cost by the shipped list, with tokens read
from caches, written to them and spent on thinking; a budget that stops by it; the user's own prices before a
list that was taken, before the shipped one; and the log, which says which list it was."""
import http.server
import json
import sys
import threading
from pathlib import Path

from support import expect, main, of_type, records

CACHED, WRITTEN, FRESH, OUT, THOUGHT = 1000, 200, 11, 7, 3
# provider, settings, model, and dollars of a million: fresh, cached, written, output
MODELS = [
    ("anthropic", {}, "claude-opus-5-5", (4, 0.2, 5, 20)),
    ("openai", {}, "gpt-6.2-sol", (2, 0.1, 2.5, 10)),
    ("openai-chat", {}, "gpt-5.5", (5, 0.5, 5, 30)),
    ("gemini", {}, "gemini-4-argon", (2, 0.1, None, 10)),
    ("deepseek", {}, "deepseek-v4-pro", (1.32, 0.044, 1.32, 3.96)),
    ("mistral", {}, "mistral-large-latest", (0.7, 0.07, 0.7, 2.1)),
    ("xai", {"type": "openai-chat"}, "grok-4.7", (2, 0.5, 2, 6)),
]
FLOW = """name: w
provider: %s
model: %s
%smovements:
  - name: one
    instruction: Do it.
    rules: [{condition: when(true), next: two}]
  - name: two
    instruction: Do it.
    rules: [{condition: when(true), next: COMPLETE}]
"""


def answer(path):
    """A whole answer of each API, with all tokens that it can tell."""
    if path.endswith("/v1/messages"):
        return {"type": "message", "content": [{"type": "text", "text": "done"}], "stop_reason": "end_turn", "usage": {
            "input_tokens": FRESH, "cache_read_input_tokens": CACHED, "cache_creation_input_tokens": WRITTEN,
            "output_tokens": OUT, "output_tokens_details": {"thinking_tokens": THOUGHT}}}
    read = {"cached_tokens": CACHED, "cache_write_tokens": WRITTEN}
    if path.endswith("/responses"):
        return {"status": "completed", "error": None, "output": [{"type": "message", "content": [
            {"type": "output_text", "text": "done"}]}], "usage": {
            "input_tokens": FRESH + CACHED + WRITTEN, "input_tokens_details": read, "output_tokens": OUT,
            "output_tokens_details": {"reasoning_tokens": THOUGHT}}}
    if path.endswith("/chat/completions"):
        return {"choices": [{"message": {"content": "done"}, "finish_reason": "stop"}], "usage": {
            "prompt_tokens": FRESH + CACHED + WRITTEN, "prompt_tokens_details": read, "completion_tokens": OUT,
            "completion_tokens_details": {"reasoning_tokens": THOUGHT}}}
    return {"candidates": [{"content": {"parts": [{"text": "done"}]}, "finishReason": "STOP"}], "usageMetadata": {
        "promptTokenCount": FRESH + CACHED, "cachedContentTokenCount": CACHED, "candidatesTokenCount": OUT - THOUGHT,
        "thoughtsTokenCount": THOUGHT}}


class Api(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.tell(json.dumps(answer(self.path.split("?")[0])).encode())

    def do_GET(self):
        self.tell(Path(self.server.list).read_bytes())

    def tell(self, body):
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


class Served:
    def __enter__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
        self.server.list = "/dev/null"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        return self

    def __exit__(self, *exc):
        self.server.shutdown()
        self.server.server_close()


def configure(box, api, **more):
    # every provider's own settings: the same server, whole answers
    settings = {name: {"base_url": api.url + ("/v1" if name not in ("anthropic", "gemini") else ""), "stream": False,
                       **own} for name, own, _, _ in MODELS}
    box.config({"providers": settings, **more})
    for key in ("ANTHROPIC", "OPENAI", "GEMINI", "DEEPSEEK", "MISTRAL"):
        box.env[key + "_API_KEY"] = "sk-dummy-invented-0001"


def run(box, provider, model, budget="", **want):
    before = set(box.log_paths())
    flow = box.file("w.yaml", FLOW % (provider, model, budget))
    done = box.segue("run", flow, "--task", "t", "--logs", box.logs, **want)
    (path,) = set(box.log_paths()) - before
    return done, records(path), path


def price_of(prices):
    fresh, cached, written, output = prices
    if written is None:
        return FRESH * fresh + CACHED * cached + OUT * output
    return FRESH * fresh + CACHED * cached + WRITTEN * written + OUT * output


def case_todays_models(box):
    """Each token at its own price, by the shipped list, which the log names."""
    with Served() as api:
        configure(box, api)
        for provider, _, model, prices in MODELS:
            done, log, path = run(box, provider, model, status=0)
            for end in of_type(log, "call_end"):
                usage = end["usage"]
                expect(abs(usage["cost_usd"] - price_of(prices) / 1e6) < 1e-9, model, usage)
                expect(usage["cost_from"] == "list" and usage["cost_list"].startswith("shipped 20"), usage)
                expect(usage["reasoning"] == THOUGHT and usage["cached"] == CACHED, usage)
                expect(usage.get("cache_write") == (WRITTEN if prices[2] is not None else None), usage)
            spent = log[-1]["spent"]
            expect(abs(spent["cost_usd"] - 2 * price_of(prices) / 1e6) < 1e-9 and "unpriced" not in spent, spent)
            box.segue("verify", path, status=0)
            expect(box.segue("show", path).stdout.decode().count("unknown") == 0, "unknown in show")


def case_budget(box):
    """A budget of money stops out of the box."""
    with Served() as api:
        configure(box, api)
        for provider, _, model, prices in MODELS:
            budget = "budget: {cost: %.9f}\n" % (price_of(prices) * 0.9 / 1e6)
            done, log, _ = run(box, provider, model, budget)
            expect(log[-1]["type"] == "session_stop" and log[-1]["reason"] == "budget", model, log[-1])
            expect(len(of_type(log, "call_end")) == 1, model, "calls after the budget was used")
            expect("not known" not in done.stderr.decode(), done.stderr)
        plan = json.loads(box.segue("plan", box.dir + "/w.yaml", "--task", "t", "--json").stdout)
        expect(plan["budget"]["unseen"] == [], plan["budget"])


def case_order(box):
    """The user's own prices, then the list that was taken, then the shipped one; each figure says which."""
    with Served() as api:
        api.server.list = box.file("models.json", json.dumps({"data": [
            {"id": "anthropic/claude-opus-5.5", "pricing": {"prompt": "0.000001", "completion": "0.000001"}}]}))
        configure(box, api)
        done = box.segue("prices", "update", api.url + "/api/v1/models", status=0)
        expect(b"1 models of openrouter 20" in done.stdout, done)
        used = run(box, "anthropic", "claude-opus-5-5", status=0)[1]
        usage = of_type(used, "call_end")[0]["usage"]
        expect(usage["cost_list"].startswith("openrouter 20"), usage)
        expect(abs(usage["cost_usd"] - (FRESH + CACHED + WRITTEN + OUT) / 1e6) < 1e-9, usage)
        usage = of_type(run(box, "openai", "gpt-6.2-sol", status=0)[1], "call_end")[0]["usage"]
        expect(usage["cost_list"].startswith("shipped"), usage)
        configure(box, api, prices={"claude-opus-5-5": {"input": 1, "output": 1, "cached": 0, "cache_write": 2, "reasoning": 3}})
        usage = of_type(run(box, "anthropic", "claude-opus-5-5", status=0)[1], "call_end")[0]["usage"]
        expect(usage["cost_from"] == "prices" and "cost_list" not in usage, usage)
        expect(abs(usage["cost_usd"] - (FRESH + 2 * WRITTEN + (OUT - THOUGHT) + 3 * THOUGHT) / 1e6) < 1e-9, usage)
        shown = box.segue("prices", "claude-opus-5", status=0).stdout.decode()
        order = [shown.find(x) for x in ("# config.yaml", "list openrouter", "list shipped")]
        expect(-1 not in order and order == sorted(order), shown)
        lines = [json.loads(x) for x in box.segue("prices", "gpt-6.2-sol", "--json", status=0).stdout.splitlines()]
        expect(lines[0]["above"][0]["tokens"] == 272000 and lines[0]["prices"]["input"] == 2, lines)


def case_no_list(box):
    """What is no list, or cannot be had, leaves the one that is there."""
    with Served() as api:
        configure(box, api)
        kept = box.env["XDG_CONFIG_HOME"] + "/segue/prices.txt"
        good = box.file("good.txt", "list mine 2026-11-01\nanthropic claude-opus-5-5 input 3 output 3\n")
        box.segue("prices", "update", good, status=0)
        text = Path(kept).read_text()
        api.server.list = box.file("bad.html", "<html>")
        for source in (api.url + "/x", box.dir + "/missing", box.file("bad.json", "[1]"), "http://127.0.0.1:1/x"):
            done = box.segue("prices", "update", source)
            expect(done.returncode == 1 or done.returncode == 2, source, done)
            expect(Path(kept).read_text() == text, source)
        box.segue("prices", "update", status=2, err=[b"update FILE|URL"])
        expect(of_type(run(box, "anthropic", "claude-opus-5-5", status=0)[1], "call_end")[0]["usage"]["cost_list"] == "mine 2026-11-01")


if __name__ == "__main__":
    sys.exit(main([case for name, case in list(globals().items()) if name.startswith("case_")]))
