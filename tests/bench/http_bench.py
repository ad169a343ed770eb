"""What a call of a model API costs (build, send, stream, parse, turn back, check), beside bare libcurl on
libuv that fetches the same bytes from the same server on loopback: processor time of the client only,
each measurement in a process of its own."""
import json
import os
import resource

from bench import TESTS, Constant, in_turns, ran, row
from api_calls import SCHEMA, driven
from fake_api import stream
from support import BUILD, expect

VALUE = '{"reason": "The tests pass and the queue is bounded.", "step": 2}'
PROMPT = 'Which condition does the report fulfil? "Judge" only by evidence.\n' * 16
HTTP_RATE = BUILD + "/helpers/http_rate"
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


def bare_us(url, in_flight, total):
    return float(ran(HTTP_RATE, url, str(total), str(in_flight))[2].decode().partition("cpu_us/req=")[2].split()[0])


def http(requests=20000, rounds=3):
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    at = Constant.serve(answers())
    plain, events, one_mb, ten_mb = (at + path for path in ("/plain", "/events", "/1mb", "/10mb"))
    source = os.environ.get("SEGUE_SHARED", TESTS + "/../../shared") + "/tools/limits/http_rate.c"
    if os.path.exists(source):
        libraries = ran("pkg-config", "--cflags", "--libs", "libuv", "libcurl")[2].decode().split()
        ran("cc", "-std=gnu17", "-O2", source, "-o", HTTP_RATE, *libraries)
    else:
        print("no comparison with bare libcurl: its probe is not there:", source)
    for flight in (1, 64, 1000):
        total = requests // flight * flight
        ours, ours_events, *bare = map(min, in_turns(  # the quietest: others work here too
            rounds, lambda: call_us(plain, flight, total, SCHEMA), lambda: call_us(events, flight, total, SCHEMA),
            *[lambda: bare_us(plain, flight, total)] * os.path.exists(source)))
        row(f"{flight} in flight: a call", ours, "us")
        for floor in bare:
            row("  against bare libcurl", ours / floor, "times", "<= 2")
        row("  a call with a stream of 8 events", ours_events, "us", "<= 80")
    one, ten = call_us(one_mb, 1, 50, None), call_us(ten_mb, 1, 5, None)
    row("10 MB of events", 1e7 / ten, "MB/s of CPU", ">= 25")
    row("  against 1 MB", ten / one, "times", "<= 11")
