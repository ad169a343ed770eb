#!/usr/bin/env python3
"""What a failure's words mean: who is asked next, and who wrote what stands in an answer."""
import json
import os
import sys
import time

from fake_api import FakeApi, stream
from support import Box, expect, main, of_type, records

FLOW = """
name: one
movements:
  - name: work
    provider: [%s, back]
    instruction: say something
    rules:
      - {condition: it is done, next: COMPLETE}
      - {condition: it is not done, next: ABORT}
    judge: {stages: [phase1_tag]}
"""


def day(n):
    return time.strftime("%Y-%m-%d", time.gmtime(time.time() + n * 86400))


def said(message, **fields):
    return {"error": {"message": message, **fields}}


# status, body, class, whether the next provider takes over without a second attempt
REPLIES = [
    (400, said("Nobody has ever seen this."), "bad_request", True),
    (400, said("prompt is too long: 9 tokens > 8 maximum"), "bad_request", False),
    (400, said("blocked by our cybersecurity policy", code="cyber_policy_violation"), "refused", False),
    (400, said("You have reached your API usage limits. You will regain access on " + day(2) + " at 00:00 UTC."), "rate_limit", True),
    (400, said("This organization has been disabled."), "auth", True),
    (403, {"code": "no permission", "error": "Your team has used all available credits."}, "quota", True),
    (429, said("limit", details=[{"violations": [{"quotaId": "RequestsPerDayPerModel", "quotaValue": "20"}]},
                                 {"retryDelay": "3s"}]), "rate_limit", True),
    (429, said("exceeded your quota, retry in 2s", details=[{"violations": [{"quotaId": "PerMinute", "quotaValue": "0"}]}]), "quota", True),
    (400, said("The house says no.", code="house_rule"), "refused", False),
]


def run(box, name):
    done = box.segue("run", box.file("one.yaml", FLOW % name), "--task", "x", "--logs", box.logs, "--cwd", box.cwd)
    log = records(box.log_paths()[-1])
    return done, of_type(log, "call_end")[0], [r["provider"] for r in of_type(log, "call_start")]


def back(server):
    return {"type": "openai-chat", "base_url": server.url("back") + "/v1", "model": "m", "key_env": "A_KEY"}


def replies_are_read_by_what_they_mean():
    for status, body, kind, falls in REPLIES:
        server = FakeApi(lambda scenario, request: stream("openai-chat", "It is done.\n\n[WORK:1]") if scenario == "back" else (status, body))
        with Box() as box:
            box.env["A_KEY"] = "a-key-for-nobody"
            box.config({"providers": {"front": {**back(server), "base_url": server.url("front") + "/v1"}, "back": back(server)},
                        "words": [{"class": "refused", "code": ["house_rule"]}]})
            done, end, asked = run(box, "front")
            server.close()
            expect(end["error"]["class"] == kind, body, end)
            expect(asked == (["front", "back"] if falls else ["front"]), body, asked, done.stdout)
            if "regain" in json.dumps(body) or "PerDay" in json.dumps(body):
                expect(3000 < end["error"]["retry_after_ms"], end)
            else:
                expect("retry_after_ms" not in end["error"], end)


def client(text, own):
    message = {"model": "<synthetic>" if own else "a-model", "content": [{"type": "text", "text": text}]}
    return [{"type": "system", "subtype": "init", "session_id": "s"},
            {"type": "assistant", "message": message, "parent_tool_use_id": None, "session_id": "s", **({"is_api_error_message": True} if own else {})},
            {"type": "result", "subtype": "success", "is_error": False, "result": text, "session_id": "s",
             "usage": {"input_tokens": 1, "output_tokens": 1}}]


def it_counts_who_wrote_an_answer():
    limit = "You've hit your session limit \u00b7 resets in 2 hours"
    for text, own, kind in ((limit, True, "rate_limit"), (limit, False, None),
                            ("API Error: 400 {\"error\": {\"message\": \"This organization has been disabled.\"}}", True, "auth"),
                            ("Credit balance is too low", True, "quota"), ("Credit balance is too low", False, None)):
        with Box() as box:
            lines = box.file("lines", "".join(json.dumps(line) + "\n" for line in client(text, own)))
            program = box.file("claude", f"#!/bin/sh\ncat > /dev/null\ncat {lines}\n")
            os.chmod(program, 0o755)
            server = FakeApi(lambda scenario, request: stream("openai-chat", "It is done.\n\n[WORK:1]"))
            box.env["A_KEY"] = "a-key-for-nobody"
            box.config({"sandbox": {"read": [box.dir]},
                        "providers": {"claude": {"program": program, "transport": "exec"}, "back": back(server)}})
            done, end, asked = run(box, "claude")
            server.close()
            expect(end.get("error", {}).get("class") == kind, text, own, end)
            expect(("back" in asked) == (kind is not None), text, asked, done.stdout)


def wrong_words_are_told(box):
    for row, says in (({"class": "nothing", "match": "x"}, b"class"), ({"class": "auth", "match": "("}, b"regular expression")):
        box.config({"words": [{"class": "auth", "match": "x"}, row]})
        done = box.segue("config", status=None)
        expect(done.returncode != 0 and says in done.stdout + done.stderr and b"config.yaml" in done.stdout + done.stderr, done)


sys.exit(main([replies_are_read_by_what_they_mean, it_counts_who_wrote_an_answer, wrong_words_are_told]))
