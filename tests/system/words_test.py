#!/usr/bin/env python3
"""What a failure's words mean: who is asked next, and who wrote what stands in an answer."""
import json
import os
import re
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
    (400, said("This credential is only authorized for use with one client."), "auth", True),
    (400, said("Your account is not eligible for this service, which is not available in your location."), "auth", True),
    (404, said("The model m-2 does not exist or your team abc does not have access to it."), "not_found", True),
    (400, said("Your owner has set a monthly usage limit of $50, which you have reached."), "quota", True),
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
                            ("API Error: Connection error.", True, "network"),
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


JUDGED = """
name: one
movements:
  - name: work
    provider: front
    instruction: say something
    rules: [{condition: it is done, next: COMPLETE}, {condition: it is not done, next: ABORT}]
    judge: {stages: [phase3_tag], %s}
"""


def tag(body, number=0, **how):
    """A worker's report, or a judge's line."""
    asked = body["messages"][0]["content"]
    judges = "holds the tag of the condition" in asked
    return stream("openai-chat", re.search(r"\[\w+:1\]", asked).group(0) if judges else "It is done.", **how)


def asked_of(settings, answer, judge="provider: front", flow=JUDGED):
    """The bodies of all requests of a session, and its log."""
    server = FakeApi(lambda scenario, request: answer(request["body"], request["number"]))
    with Box() as box:
        box.env["A_KEY"] = "a-key-for-nobody"
        box.config({"providers": {"front": {"base_url": server.url("front") + "/v1", "key_env": "A_KEY", **settings}}})
        done = box.segue("run", box.file("one.yaml", flow % judge if "%s" in flow else flow), "--task", "x",
                         "--logs", box.logs, "--cwd", box.cwd, status=None)
        server.close()
        return done, [r["body"] for r in server.requests if r["method"] == "POST"], records(box.log_paths()[-1])


def every_judge_is_asked_for_little_effort():
    for kind, of in (("openrouter", lambda b: b.get("reasoning", {}).get("effort")), ("deepseek", lambda b: b.get("reasoning_effort")),
                     ("mistral", lambda b: b.get("reasoning_effort")), ("groq", lambda b: b.get("reasoning_effort"))):
        _, bodies, log = asked_of({"type": kind, "model": "vendor/new-model-9"}, tag)
        expect(len(bodies) >= 2 and of(bodies[0]) is None and of(bodies[-1]) == "low", kind, bodies)

    def refuses(body, number):
        if "reasoning_effort" in body:
            return 400, said("`reasoning_effort` is not supported with this model")
        return tag(body, number)
    twice = JUDGED.replace("next: COMPLETE", "next: again") + JUDGED[JUDGED.index("  - name: work"):].replace("name: work", "name: again") % "provider: front"
    _, bodies, log = asked_of({"type": "groq", "model": "plain"}, refuses, flow=twice)
    expect(sum("reasoning_effort" in b for b in bodies) == 1 and log[-1]["type"] == "session_end", bodies, log[-1])


def thinking_is_left_out_as_each_api_says():
    for kind, key, value in (("groq", "reasoning_effort", "none"), ("mistral", "reasoning_effort", "none"),
                             ("deepseek", "thinking", {"type": "disabled"}), ("openrouter", "reasoning", {"enabled": False})):
        _, bodies, log = asked_of({"type": kind, "model": "m", "think": False}, lambda body, number: tag(body, thinking="" if number else "hm"))
        expect(bodies[0].get(key) == value, kind, bodies[0])
        expect(any("thought all the same" in json.dumps(r) for r in log if r["type"] == "call_event"), kind, log)


def a_cut_answer_gets_twice_the_room():
    def cut(body, number):
        room = body.get("max_tokens") or body.get("max_completion_tokens")
        if room and room > limit:
            return 400, said(f"max_tokens: {room} > {limit}, which is the maximum allowed number of output tokens")
        return tag(body, stop="length" if room and room < 1000 else "stop")
    flow = JUDGED.replace("provider: front\n", "provider: front\n    options: {max_tokens: 600}\n", 1)
    for limit, rooms, ends in ((9999, [600, 1200], True), (1100, [600, 1200, 1100], True), (600, [600, 1200], False)):
        done, bodies, log = asked_of({"type": "mistral", "model": "m"}, cut, flow=flow)
        expect([b["max_tokens"] for b in bodies if "max_tokens" in b][:len(rooms)] == rooms, limit, bodies)
        expect((log[-1]["type"] == "session_end") == ends, limit, log[-1])
        expect(ends or of_type(log, "call_end")[-1]["error"]["class"] == "length", log[-1])


def an_unknown_end_is_no_success():
    for word, kind in (("brand_new", "protocol"), ("CONTINUATION", "length"), ("insufficient_system_resource", "overloaded")):
        frames = [b'data: {"choices": [{"index": 0, "delta": {"content": "half [WORK:1]"}, "finish_reason": null}]}\n\n',
                  b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "%s"}]}\n\n' % word.encode(), b"data: [DONE]\n\n"]
        server = FakeApi(lambda scenario, request: stream("openai-chat", "It is done.\n\n[WORK:1]") if scenario == "back" else frames)
        with Box() as box:
            box.env["A_KEY"] = "a-key-for-nobody"
            box.config({"providers": {"front": {**back(server), "base_url": server.url("front") + "/v1"}, "back": back(server)}})
            _, end, _ = run(box, "front")
            server.close()
            expect(end["error"]["class"] == kind and word in end["error"]["message"], word, end)


def wrong_words_are_told(box):
    for row, says in (({"class": "nothing", "match": "x"}, b"class"), ({"class": "auth", "match": "("}, b"regular expression")):
        box.config({"words": [{"class": "auth", "match": "x"}, row]})
        done = box.segue("config", status=None)
        expect(done.returncode != 0 and says in done.stdout + done.stderr and b"config.yaml" in done.stdout + done.stderr, done)


sys.exit(main([replies_are_read_by_what_they_mean, it_counts_who_wrote_an_answer,
               every_judge_is_asked_for_little_effort, thinking_is_left_out_as_each_api_says,
               a_cut_answer_gets_twice_the_room, an_unknown_end_is_no_success, wrong_words_are_told]))
