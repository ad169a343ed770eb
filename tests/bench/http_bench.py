"""What a call of a model API costs (build, send, stream, parse, turn back, check), beside bare libcurl
that fetches the same bytes from the same server on loopback: processor time of the client only, each
measurement in a process of its own."""
import json
import resource

from bench import PROBE, Constant, in_turns, ran, row
from api_calls import SCHEMA, driven
from fake_api import stream
from support import expect

VALUE = '{"reason": "The tests pass and the queue is bounded.", "step": 2}'
PROMPT = 'Which condition does the report fulfil? "Judge" only by evidence.\n' * 16
LINE = "twelve chars twelve chars twelve chars twelve chars"  # of an event of the long answers


def answers():
    """What the server says: a plain reply, 8 events, 1 MB and 10 MB of events."""
    plain = {"id": "m", "type": "message", "role": "assistant", "content": [{"type": "text", "text": VALUE}],
             "stop_reason": "end_turn", "usage": {"input_tokens": 11, "output_tokens": 7}}

    def events(text, size):
        return b"".join(stream("anthropic", text, size=size))
    one = len(events(LINE, len(LINE))) - len(events("", 1))
    expect(events(VALUE, 13).count(b"data:") == 8, events(VALUE, 13))
    # The API's path stands behind each of them, but for the bare client.
    bodies = {"/plain": ("application/json", json.dumps(plain).encode()),
              "/events": ("text/event-stream", events(VALUE, 13)),
              "/1mb": ("text/event-stream", events(LINE * (1_000_000 // one), len(LINE))),
              "/10mb": ("text/event-stream", events(LINE * (10_000_000 // one), len(LINE)))}
    return bodies | {path + "/v1/messages": body for path, body in bodies.items()}


def call_us(url, in_flight, total, schema):
    call = {"provider": "bench", "prompt": PROMPT, "timeout_ms": 600000, "repeat": total // in_flight}
    calls = [{**call, "id": n, **({"schema": schema} if schema else {})} for n in range(in_flight)]
    ends, us = driven({"bench": {"type": "anthropic", "base_url": url, "concurrency": 1000}}, calls)
    for end in ends:
        expect(end["class"] == "ok" and (not schema or end["structured"]["step"] == 2), end)
    return us / total


def http(requests=20000, rounds=3):
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    at = Constant.serve(answers())
    plain, events, one_mb, ten_mb = (at + path for path in ("/plain", "/events", "/1mb", "/10mb"))
    for flight in (1, 64, 1000):
        total = requests // flight * flight
        bare, ours, ours_events = map(min, in_turns(rounds, {  # the quietest: others work here too
            "bare": lambda: float(ran(PROBE, "fetch", plain, str(flight), str(total))[2]),
            "plain": lambda: call_us(plain, flight, total, SCHEMA),
            "events": lambda: call_us(events, flight, total, SCHEMA)}))
        row(f"{flight} in flight: bare libcurl", bare, "us")
        row("  a call", ours, "us")
        row("  against bare libcurl", ours / bare, "times", "<= 2")
        row("  a call with a stream of 8 events", ours_events, "us", "<= 80")
    one, ten = call_us(one_mb, 1, 50, None), call_us(ten_mb, 1, 5, None)
    row("10 MB of events", 1e7 / ten, "MB/s of CPU", ">= 25")
    row("  against 1 MB", ten / one, "times", "<= 11")
