#!/usr/bin/env python3
"""Model APIs over HTTP: every dialect against servers that answer, refuse, break and hang; the ladder
of schema enforcement; Ollama's thinking; keys; limits. The calls of a case run at once, on one loop.
"""
import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from api_calls import SCHEMA, drive
from fake_api import TEXT, FakeApi, dialect_of, schema_of, stream, tool_stream
from support import BUILD, Box, expect, main, needs

DIALECTS = ["anthropic", "openai", "openai-chat", "gemini", "ollama", "llamacpp"]
KEY = "sk-segue-test-0123456789"


def base(server, scenario, dialect):
    return server.url(scenario) + ("/v1" if dialect in ("openai", "openai-chat") else "")


def provider(server, scenario, dialect, **more):
    return {"type": dialect, "base_url": base(server, scenario, dialect), **more}


def calls_of(server, scenarios, **more):
    settings, calls = {}, []
    for scenario in scenarios:
        for dialect in DIALECTS:
            name = f"{dialect}.{scenario}"
            settings[name] = provider(server, scenario, dialect, **more)
            calls.append({"id": name, "provider": name})
    return settings, calls


def run_scenarios(expected, **more):
    with closing(FakeApi()) as server:
        results = {}
        for i in range(0, len(expected), 8):  # a registry has room for 64 providers
            results.update(drive(*calls_of(server, list(expected)[i:i + 8], **more)))
        return results


def check(results, expected):
    for scenario, wanted in expected.items():
        for dialect in DIALECTS:
            got = results[f"{dialect}.{scenario}"]
            for key, value in wanted.items():
                same = value in got[key] if key == "message" else got.get(key) == value
                expect(same, dialect, scenario, key, "expected", value, "got", got)


def case_answers():
    expected = {
        "ok": {"class": "ok", "text": TEXT, "told": TEXT},
        "length": {"class": "length", "text": '{"step": 2, "rea'},
        "bytes": {"class": "ok", "text": TEXT},
        "wrong-type": {"class": "ok", "text": TEXT},
        "not-utf8": {"class": "ok", "text": "a\ufffd\ufffdb", "note": "its reply had bytes that are not UTF-8: they are U+FFFD here"},
        "gzip": {"class": "ok", "text": TEXT},
        "old-http": {"class": "ok", "text": TEXT},
        "held": {"class": "ok", "text": TEXT},
    }
    results = run_scenarios(expected)
    check(results, expected)
    for dialect in DIALECTS:
        expect(results[dialect + ".ok"]["usage"] == {"input": 11, "output": 7}, dialect, "usage")
        expect(results[dialect + ".ok"]["pieces"] > 3, dialect, "is told in pieces")
        expect(results[dialect + ".ok"]["thinking"] == "hm", dialect, "thinking is kept apart")
        expect(results[dialect + ".held"]["duration_ms"] < 60000, "an answer that is whole is not waited for")


def case_unwatched():
    """A socket that the loop cannot watch: libcurl then takes no request until those it has are over."""
    with closing(FakeApi()) as server:
        settings, calls = calls_of(server, ["ok"])
        for fault in ("fail:watch:1", "fail:watch:2", "fail:watch:1+"):
            results = drive(settings, calls, env={"SEGUE_FAULT": fault})
            classes = [results[c["id"]]["class"] for c in calls]
            expect(set(classes) <= {"ok", "network"} and "network" in classes, fault, classes)


def case_refusals():
    expected = {"refused": {"class": "refused"}}
    results = run_scenarios(expected)
    for dialect in ("anthropic", "openai", "openai-chat", "gemini"):
        expect(results[dialect + ".refused"]["class"] == "refused", dialect, results[dialect + ".refused"])


def case_errors():
    expected = {
        "400": {"class": "bad_request"}, "401": {"class": "auth"}, "403": {"class": "auth"}, "404": {"class": "not_found"},
        "413": {"class": "bad_request"}, "429": {"class": "rate_limit", "retry_after_ms": 0},
        "429-after": {"class": "rate_limit", "retry_after_ms": 3000}, "500": {"class": "overloaded"}, "503": {"class": "overloaded"},
        "529": {"class": "overloaded"},
    }
    check(run_scenarios(expected), {k: {"message": f"no {k.split('-')[0]}", **v} for k, v in expected.items()})


def case_breaks():
    expected = {
        "stream-error": {"class": "overloaded"}, "cut": {"class": "network"}, "cut-first": {"class": "network"},
        "page": {"class": "protocol", "message": "base_url"}, "zstd": {"class": "protocol"}, "garbage": {"class": "protocol"},
        "redirect": {"class": "bad_request", "message": "redirect"}, "headers": {"class": "protocol", "message": "headers"},
        "bomb": {"class": "protocol", "message": "larger"},
    }
    results = run_scenarios(expected)
    for dialect in ("ollama",):  # a comment of events is no line of JSON
        results[dialect + ".bomb"] = {**results["openai.bomb"]}
    check(results, expected)
    for dialect in DIALECTS:
        expect(results[dialect + ".cut"]["text"] != "", dialect, "keeps what came before the cut")


def case_stalls():
    expected = {"stall": {"class": "timeout", "message": "no byte for 300 ms"}, "stall-first": {"class": "timeout"}}
    check(run_scenarios(expected, stall_ms=300), expected)
    with closing(FakeApi()) as server:
        got = drive({"s": provider(server, "stall", "anthropic")}, [{"id": "s", "provider": "s", "timeout_ms": 400}])["s"]
        expect(got["class"] == "timeout" and "time limit" in got["message"], got)


def case_pings():
    """Signs of life without any content end at a limit of their own; a slow answer goes on."""
    def answer(scenario, request):
        dialect = dialect_of(request["path"])
        frames = stream(dialect, "a slow answer", size=2)

        def slowly():
            for i in range(60):
                server.release.wait(0.05)
                if scenario == "slow" and i < len(frames):
                    yield frames[i]
                elif scenario == "pings":
                    yield b': ping\n\n'
                elif i >= len(frames):
                    return
        return slowly()
    with closing(FakeApi(answer)) as server:
        names = ["anthropic", "openai-chat", "openai"]
        settings = {f"{d}.{s}": provider(server, s, d, idle_ms=300) for d in names for s in ("pings", "slow")}
        got = drive(settings, [{"id": n, "provider": n} for n in settings])
        for name, result in got.items():
            wanted = "timeout" if name.endswith("pings") else "ok"
            expect(result["class"] == wanted, name, result)
            expect(wanted == "ok" or "no content for 300 ms" in result["message"], name, result)


def case_large():
    """10 MB come through whole, and 1,000 events deep."""
    results = run_scenarios({"large": {}})
    for dialect in DIALECTS:
        got = results[dialect + ".large"]
        expect(got["class"] == "ok" and got["bytes"] == 10485760, dialect, got["class"], got["message"], got["bytes"])


def case_cancel():
    """At every moment: before it is sent, at once, while it answers, while it hangs, in the queue."""
    with closing(FakeApi()) as server:
        settings, calls = {}, []
        for scenario in ("ok", "stall", "stall-first", "large"):
            settings[scenario] = provider(server, scenario, "openai-chat", concurrency=3)
            for ms in (0, 1, 2, 3, 5, 8, 13, 40):
                calls.append({"id": f"{scenario}.{ms}", "provider": scenario, "cancel_ms": ms})
        results = drive(settings, calls)
        for name, got in results.items():
            expect(got["class"] in ("ok", "cancelled"), name, got)
            if "stall" in name:
                expect(got["class"] == "cancelled", name, got)
        expect(results["ok.0"]["class"] == "cancelled", "cancelled before it began", results["ok.0"])


def case_concurrency():
    """A provider's limit holds: the rest waits, and a slow one does not hold up another provider."""
    with closing(FakeApi()) as server:
        settings = {"two": provider(server, "stall", "ollama", concurrency=2, stall_ms=200), "other": provider(server, "ok", "ollama")}
        calls = [{"id": i, "provider": "two", "timeout_ms": 20000} for i in range(6)] + [{"id": "o", "provider": "other"}]
        results = drive(settings, calls)
        expect(results["o"]["class"] == "ok" and results["o"]["duration_ms"] < 2000, results["o"])
        times = sorted(results[i]["duration_ms"] for i in range(6))
        expect(times[0] >= 190 and times[2] >= 2 * 190 and times[4] >= 3 * 190, "two at a time:", times)


def case_keepalive():
    """A thousand calls after each other take one connection; cancelled ones leave nothing."""
    server = FakeApi()
    seen = []
    serve = server.serve

    def counted(connection):
        seen.append(1)
        serve(connection)
    server.serve = counted
    try:
        drive({"k": provider(server, "ok", "anthropic")}, [{"id": i, "provider": "k", "after": True} for i in range(200)])
        expect(len(seen) == 1, "200 calls took", len(seen), "connections")
    finally:
        server.close()


def case_ladder():
    """Each rung that a backend has enforces the schema when it is named."""
    rungs = {"anthropic": ["native", "tool", "prompt"], "openai": ["native", "tool", "json", "prompt"],
             "openai-chat": ["native", "tool", "json", "prompt"], "gemini": ["native", "tool", "json", "prompt"],
             "ollama": ["native", "json", "prompt"], "llamacpp": ["native", "grammar", "json", "prompt"]}
    with closing(FakeApi()) as server:
        settings, calls = {}, []
        for dialect, names in rungs.items():
            for rung in names:
                settings[f"{dialect}.{rung}"] = provider(server, "structured", dialect, schema_mode=rung)
                calls.append({"id": f"{dialect}.{rung}", "provider": f"{dialect}.{rung}", "schema": SCHEMA, "prompt": f"{dialect}.{rung}"})
        results = drive(settings, calls)
        for name, got in results.items():
            rung = name.split(".")[1]
            expect(got["class"] == "ok" and got["structured"] == {"step": 2, "reason": "because"}, name, got)
            expect(got["enforced"] == rung and got["notes"] == [], name, got)
        for request in server.requests:
            dialect, rung = next((n.split(".") for n in results if n in json.dumps(request["body"])))
            schema, where = schema_of(request["body"])
            expect((where or "prompt") == rung, dialect, rung, "went as", where)
            shown = "Write JSON only" in json.dumps(request["body"])
            expect(shown == (rung in ("json", "prompt")), dialect, rung, "schema in the prompt:", shown)
            expect(schema is None or "step" in json.dumps(schema), schema)


def case_schema_refused():
    """400 to a schema: the next rung, once, told, and remembered for that provider and model."""
    def answer(scenario, request):
        dialect = dialect_of(request["path"])
        _, where = schema_of(request["body"])
        if where == "native" and "-strict" not in request["body"].get("model", ""):
            return 400, {"error": {"message": "this schema is too deep", "type": "invalid_request_error"}}
        text = '{"reason": "r", "step": 1}'
        return tool_stream(dialect, text) if where == "tool" else stream(dialect, text)
    with closing(FakeApi(answer)) as server:
        names = {"openai-chat": "tool", "anthropic": "tool", "gemini": "tool", "llamacpp": "grammar", "ollama": "json"}
        settings = {d + "-x": provider(server, d, d) for d in names}
        calls = [{"id": f"{d}.{i}", "provider": d + "-x", "schema": SCHEMA, "after": True} for d in names for i in range(2)]
        calls.append({"id": "other", "provider": "openai-chat-x", "model": "other-strict", "schema": SCHEMA, "after": True})
        results = drive(settings, calls)
        for dialect, rung in names.items():
            first, second = results[dialect + ".0"], results[dialect + ".1"]
            expect(first["class"] == "ok" and first["enforced"] == rung, first)
            expect(len(first["notes"]) == 1 and "too deep" in first["notes"][0] and rung in first["notes"][0], first["notes"])
            expect(second["enforced"] == rung and second["notes"] == [], "remembered:", second)
            expect(sum(r["scenario"] == dialect for r in server.requests) == 3 + (dialect == "openai-chat"), dialect)
        expect(results["other"]["enforced"] == "native", "another model has its own memory", results["other"])


REFUSALS = {  # the vendors' words
    "openai": {"error": {"message": "Unsupported parameter: 'temperature' is not supported with this model.",
                         "type": "invalid_request_error", "param": "temperature", "code": None}},
    "openai-chat": {"error": {"message": "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) "
                              "value is supported.", "type": "invalid_request_error", "param": "temperature", "code": "unsupported_value"}},
    "anthropic": {"type": "error", "error": {"type": "invalid_request_error", "message": "`temperature` is deprecated for this model."}},
    "gemini": {"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "Invalid value at 'generation_config.temperature'",
                         "details": [{"fieldViolations": [{"field": "generation_config.temperature"}]}]}},
}


def temperature_of(body):
    return body.get("temperature", body.get("generationConfig", {}).get("temperature"))


def case_parameter_refused():
    """400 to a parameter: it is left out, once, told, and remembered; the schema stays as it is."""
    def answer(scenario, request):
        dialect = dialect_of(request["path"])
        if temperature_of(request["body"]) is not None:
            return 400, REFUSALS[dialect]
        return stream(dialect, '{"reason": "r", "step": 1}')
    with closing(FakeApi(answer)) as server:
        settings = {d + "-x": provider(server, d, d) for d in REFUSALS}
        calls = [{"id": f"{d}.{i}", "provider": d + "-x", "schema": SCHEMA, "after": True, "options": {"temperature": 0.5}}
                 for d in REFUSALS for i in range(2)]
        results = drive(settings, calls)
        for dialect in REFUSALS:
            first, second = results[dialect + ".0"], results[dialect + ".1"]
            expect(first["class"] == "ok" and first["enforced"] == "native", first)
            expect(len(first["notes"]) == 1 and "temperature is left out" in first["notes"][0], first["notes"])
            expect(second["class"] == "ok" and second["notes"] == [], second)
            expect(sum(r["scenario"] == dialect for r in server.requests) == 3, dialect, "one request in vain")


def case_parameter_refused_in_odd_words():
    """Errors within errors, in lists, as a text, behind a gateway's own words."""
    told = "`temperature` is deprecated for this model."
    shapes = {"nested": {"error": {"error": {"message": told}}}, "list": {"errors": [{"message": told}]},
              "text": {"error": told}, "flat": {"object": "error", "message": told},
              "raw": {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": told}}},
              "body": {"error": {"message": told, "param": "body", "code": "unsupported_value"}}}
    def answer(scenario, request):
        if temperature_of(request["body"]) is not None:
            return 400, shapes[scenario.split(".")[0]]
        return stream(dialect_of(request["path"]), "fine")
    with closing(FakeApi(answer)) as server:
        names = [s + "." + d for s in shapes for d in REFUSALS]
        got = drive({n: provider(server, n, n.split(".")[1]) for n in names},
                    [{"id": n, "provider": n, "options": {"temperature": 0.5}} for n in names])
        for n in names:
            expect(got[n]["class"] == "ok" and len(got[n]["notes"]) == 1, n, got[n])


def case_several_refused():
    """One parameter after the other; an old name of the limit gives way to the new one; Anthropic's stays."""
    def answer(scenario, request):
        body, named = request["body"], []
        for name in ("temperature", "max_tokens", "seed"):
            if name in body and scenario == "chat":
                return 400, {"error": {"message": f"{name} is not supported", "param": name}}
        if scenario == "needed":
            return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": "max_tokens: this is odd"}}
        return stream(dialect_of(request["path"]), "fine")
    with closing(FakeApi(answer)) as server:
        got = drive({"chat": {"type": "vllm", "base_url": server.url("chat") + "/v1"}, "needed": provider(server, "needed", "anthropic")},
                    [{"id": "chat", "provider": "chat", "options": {"temperature": 1, "seed": 3, "max_tokens": 9}},
                     {"id": "needed", "provider": "needed"}])
        expect(got["chat"]["class"] == "ok" and len(got["chat"]["notes"]) == 3, got["chat"])
        last = [r["body"] for r in server.requests if r["scenario"] == "chat"][-1]
        expect(last["max_completion_tokens"] == 9 and "seed" not in last, last)
        expect(got["needed"]["class"] == "bad_request" and got["needed"]["notes"] == [], got["needed"])
        expect(sum(r["scenario"] == "needed" for r in server.requests) == 1, "nothing else to try")


def case_refused_twice():
    """After native and tool the schema goes in the prompt; what is not about it costs one request."""
    def answer(scenario, request):
        _, where = schema_of(request["body"])
        if where is not None:
            return 400, {"error": {"message": f"response_format and tools are not supported ({where})"}}
        return stream(dialect_of(request["path"]), '{"reason": "r", "step": 1}')
    server = FakeApi(answer)
    plain = FakeApi()
    try:
        got = drive({"x": provider(server, "x", "openai-chat"), "long": provider(plain, "400", "openai-chat"),
                     "forced": provider(server, "forced", "openai-chat", schema_mode="native")},
                    [{"id": i, "provider": i, "schema": SCHEMA} for i in ("x", "long", "forced")])
        expect(got["x"]["class"] == "ok" and got["x"]["enforced"] == "prompt" and len(got["x"]["notes"]) == 2, got["x"])
        expect(got["long"]["class"] == "bad_request" and got["long"]["notes"] == [], got["long"])
        expect(got["forced"]["class"] == "bad_request" and got["forced"]["notes"] == [], got["forced"])
        expect(len(server.requests) == 4 and len(plain.requests) == 1, len(server.requests), len(plain.requests))
    finally:
        server.close()
        plain.close()


def case_unconstrained():
    """An answer that was not kept to the schema goes down; a wrong value in the right form is given back."""
    def answer(scenario, request):
        dialect = dialect_of(request["path"])
        _, where = schema_of(request["body"])
        if scenario == "wrong":
            return stream(dialect, '{"reason": "r", "step": 7}')
        if scenario == "wrapped":
            return stream(dialect, '```json\n{"reason": "r", "step": 1}\n```\n')
        if scenario == "worded":
            return stream(dialect, 'The report ends so:\n```json\n{"reason": "r", "step": 1}\n```\n')
        return stream(dialect, '{"reason": "r", "step": 2}' if where != "native" else "I think that it is fine.")
    with closing(FakeApi(answer)) as server:
        settings = {s: provider(server, s, "ollama") for s in ("prose", "wrong", "wrapped", "worded")}
        got = drive(settings, [{"id": s, "provider": s, "schema": SCHEMA} for s in settings] +
                    [{"id": "again", "provider": "prose", "schema": SCHEMA, "after": True}])
        expect(got["prose"]["structured"] == {"reason": "r", "step": 2} and got["prose"]["enforced"] == "json", got["prose"])
        expect("not kept to the schema" in got["prose"]["notes"][0], got["prose"])
        expect(got["again"]["enforced"] == "json" and got["again"]["notes"] == [], got["again"])
        expect(got["wrong"]["structured"] == {"reason": "r", "step": 7} and got["wrong"]["notes"] == [], got["wrong"])
        expect(got["wrapped"]["structured"] == {"reason": "r", "step": 1}, got["wrapped"])
        expect(got["worded"].get("structured") is None and got["worded"]["notes"] == [], got["worded"])  # for who asked to read


def case_unenforced():
    """A server that ignores the format: the next request is a correction with answer and error, and counts."""
    asked = []

    def answer(scenario, request):
        dialect = dialect_of(request["path"])
        asked.append((schema_of(request["body"])[1], json.dumps(request["body"])))
        if scenario == "refuses":
            return stream(dialect, "I cannot help with that.")
        return stream(dialect, '{}' if len(asked) == 1 else '{"reason": "r", "step": 2}')
    with closing(FakeApi(answer)) as server, Box() as box:
        box.config({"providers": {s: provider(server, s, "ollama") for s in ("ignores", "refuses")}})
        schema = box.file("schema.json", json.dumps(SCHEMA))
        ask = ("ask", "--schema", schema, "--model", "m", "--json", "Judge it.")
        got = json.loads(box.segue(*ask, "-p", "ignores", status=0).stdout)
        expect(got["attempts"] == 2 and got["first_pass"] is False and got["value"]["step"] == 2, got)
        expect(got["failures"] == {"schema": 1, "unenforced": 1}, got)
        expect(got["checks"][0]["unenforced"] is True and "unenforced" not in got["checks"][1], got)
        expect([where for where, _ in asked] == ["native", "json"], asked)
        expect("is missing" in asked[1][1] and "{}" in asked[1][1], asked[1])
        asked.clear()
        got = json.loads(box.segue(*ask, "-p", "refuses", status=1).stdout)
        expect(got["attempts"] == len(asked) == 2 and got["failures"] == {"parse": 2, "unenforced": 1}, got, asked)


def case_thinks_within_a_grammar():
    """llama.cpp and vLLM: the grammar has a place for thoughts where they are wanted, and nowhere else."""
    def answer(scenario, request):
        return stream(dialect_of(request["path"]), '{"reason": "r", "step": 2}')
    with closing(FakeApi(answer)) as server:
        base, asked = {"type": "llamacpp", "schema_mode": "grammar"}, {"think": True}
        settings = {"chat": {**base, **asked}, "raw": {**base, **asked, "endpoint": "completion"},
                    "no": {**base, "think": False}, "as": base, "auto": {"type": "llamacpp", **asked},
                    "auto raw": {"type": "llamacpp", "endpoint": "completion", **asked},
                    "level": {"type": "vllm", "think": "low"}, "silent": {"type": "vllm"},
                    "two": {"type": "llamacpp", "think_mode": "two_requests", **asked}}
        for name, one in settings.items():
            one["base_url"] = server.url(name.replace(" ", "-")) + ("/v1" if one["type"] == "vllm" else "")
        got = drive({k: dict(v) for k, v in settings.items()},
                    [{"id": s, "provider": s, "schema": SCHEMA, "prompt": f"P-{s}-P",
                      **({"model": "m"} if settings[s]["type"] == "vllm" else {})} for s in settings])
        sent = {s: [r["body"] for r in server.requests if r["body"] and f"P-{s}-P" in json.dumps(r["body"])] for s in settings}
        for name, thinks in (("chat", True), ("raw", True), ("no", False), ("as", False), ("auto", True),
                             ("auto raw", True), ("level", True)):
            body = sent[name][0]
            grammar = body.get("grammar") or body["structured_outputs"]["grammar"]
            expect(got[name]["structured"] == {"reason": "r", "step": 2}, got[name])
            expect(("think" in grammar) == thinks, name, grammar[:200])
            expect(got[name]["notes"] == ["thinking was asked for and none came"] * thinks, name, got[name])
            if "raw" not in name and name != "level":
                expect(body["chat_template_kwargs"] == {"enable_thinking": thinks}, name, body)
        expect(sent["level"][0]["chat_template_kwargs"] == {"enable_thinking": True, "reasoning_effort": "low"}, sent["level"])
        expect("json" in sent["silent"][0]["structured_outputs"] and "chat_template_kwargs" not in sent["silent"][0], sent["silent"])
        expect([("response_format" in b, b["chat_template_kwargs"]["enable_thinking"]) for b in sent["two"]] ==
               [(False, True), (True, False)], sent["two"])


def case_thinking():
    """Ollama: two requests where the server would drop one of them, both at once where it would not."""
    def answer(scenario, request):
        body = request["body"]
        dialect = dialect_of(request["path"])
        think, formed = body.get("think"), "format" in body
        if formed and think and scenario == "old":
            return stream(dialect, "no form at all", thinking="hm")
        return stream(dialect, '{"reason": "r", "step": 2}' if formed else "It is two.", thinking="hm" if think else "")
    with closing(FakeApi(answer)) as server:
        new, old = server.url("new"), server.url("old")
        settings = {
            "new": {"type": "ollama", "base_url": new, "think": True},
            "old": {"type": "ollama", "base_url": old, "think": True},
            "generate": {"type": "ollama", "base_url": new, "think": "low", "endpoint": "generate"},
            "twice": {"type": "ollama", "base_url": new, "think": True, "think_mode": "two_requests"},
            "server": {"type": "ollama", "base_url": new, "think": True, "think_mode": "server"},
            "off": {"type": "ollama", "base_url": new, "think": False},
        }
        got = drive(settings, [{"id": s, "provider": s, "schema": SCHEMA, "prompt": f"P-{s}-P"} for s in settings] +
                    [{"id": "plain", "provider": "old", "prompt": "P-plain-P"}])
        for name in settings:
            expect(got[name]["class"] == "ok" and got[name]["structured"] == {"reason": "r", "step": 2}, name, got[name])
            expect(got[name]["enforced"] == "native", name, got[name])
        sent = {s: [r["body"] for r in server.requests if r["body"] and f"P-{s}-P" in json.dumps(r["body"])]
                for s in list(settings) + ["plain"]}
        for name in ("new", "server"):
            expect([(b.get("think"), "format" in b) for b in sent[name]] == [(True, True)], name, sent[name])
        for name, level in (("old", True), ("generate", "low"), ("twice", True)):
            expect([(b.get("think"), "format" in b) for b in sent[name]] == [(level, False), (False, True)], name, sent[name])
            expect("It is two." in json.dumps(sent[name][1]), "the second request has the first one's result")
            expect("hm" in got[name]["thinking"] and got[name]["usage"] == {"input": 22, "output": 14}, got[name])
        expect([(b.get("think"), "format" in b) for b in sent["off"]] == [(False, True)], sent["off"])
        expect([(b.get("think"), "format" in b) for b in sent["plain"]] == [(True, False)], sent["plain"])
        versions = [r for r in server.requests if r["path"] == "/api/version"]
        expect(1 <= len(versions) <= 2, "the version is asked for once a server:", len(versions))


def case_thinking_missing():
    """Thinking that was asked for and did not come stands in the log."""
    def answer(scenario, request):
        return stream(dialect_of(request["path"]), "yes")
    with closing(FakeApi(answer)) as server:
        got = drive({"o": {"type": "ollama", "base_url": server.url("x"), "think": True}}, [{"id": "o", "provider": "o"}])["o"]
        expect(got["notes"] == ["thinking was asked for and none came"], got)


def case_reasoning_field():
    """A field for reasoning comes first in the adapted schema and is not part of the value."""
    def answer(scenario, request):
        return stream(dialect_of(request["path"]), '{"reasoning": "long", "reason": "r", "step": 2}')
    with closing(FakeApi(answer)) as server:
        got = drive({"o": {"type": "ollama", "base_url": server.url("x"), "think": True, "think_mode": "field"}},
                    [{"id": "o", "provider": "o", "schema": SCHEMA}])["o"]
        body = server.requests[0]["body"]
        expect(list(body["format"]["properties"])[0] == "reasoning" and body["think"] is False, body)
        expect(got["structured"] == {"reason": "r", "step": 2}, got)


def case_options():
    """Options by each backend's own names, and what it does not know is refused with words."""
    def answer(scenario, request):
        return stream(dialect_of(request["path"]), "yes")
    with closing(FakeApi(answer)) as server:
        settings = {d + "-x": provider(server, d, d) for d in DIALECTS}
        settings["ollama-x"].update(keep_alive="5m", options={"top_k": 7})
        options = {"temperature": 0.5, "max_tokens": 50}
        drive(settings, [{"id": d, "provider": d + "-x", "options": options} for d in DIALECTS])
        at = {r["scenario"]: r["body"] for r in server.requests}
        expect(at["anthropic"]["max_tokens"] == 50 and at["anthropic"]["temperature"] == 0.5, at["anthropic"])
        expect(at["openai"]["max_output_tokens"] == 50 and at["openai"]["store"] is False, at["openai"])
        expect(at["openai-chat"]["max_tokens"] == 50, at["openai-chat"])
        expect(at["gemini"]["generationConfig"] == {"temperature": 0.5, "maxOutputTokens": 50}, at["gemini"])
        expect(at["ollama"]["options"] == {"temperature": 0.5, "num_predict": 50, "top_k": 7} and at["ollama"]["keep_alive"] == "5m", at["ollama"])
        expect("format" not in at["ollama"] and "think" not in at["ollama"], "what is unset is left out", at["ollama"])
        expect(at["llamacpp"]["max_tokens"] == 50, at["llamacpp"])


def case_models():
    """A model is needed, or named in the settings."""
    with closing(FakeApi()) as server:
        settings = {d + "-x": provider(server, "ok", d) for d in DIALECTS}
        settings["named"] = provider(server, "ok", "ollama", model="small:1b")
        got = drive(settings, [{"id": d, "provider": d + "-x", "model": ""} for d in DIALECTS] + [{"id": "named", "provider": "named", "model": ""}])
        for dialect in DIALECTS:
            if dialect != "llamacpp":  # one server, one model
                expect(got[dialect]["class"] == "bad_request" and "needs a model: write model: NAME" in got[dialect]["message"], got[dialect])
        expect(got["llamacpp"]["class"] == "ok" and got["named"]["class"] == "ok", got)


def case_keys():
    """From the environment or a file of one's own; a missing or open one is refused before anything is sent."""
    server = FakeApi()
    with Box() as box:
        try:
            path = box.file("key", KEY + "\n")
            open_path = box.file("open", KEY)
            os.chmod(path, 0o600)
            os.chmod(open_path, 0o644)
            settings = {"env": provider(server, "ok", "anthropic", key_env="SEGUE_TEST_KEY"),
                        "file": provider(server, "ok", "gemini", key_file=path),
                        "open": provider(server, "ok", "openai", key_file=open_path),
                        "gone": provider(server, "ok", "openai", key_file=path + ".gone"),
                        "unset": provider(server, "ok", "openai", key_env="SEGUE_TEST_UNSET"),
                        "none": provider(server, "ok", "openai-chat"),
                        "line": provider(server, "ok", "openai", key_env="SEGUE_TEST_BAD")}
            env = {"SEGUE_TEST_KEY": KEY, "OPENAI_API_KEY": "sk-of-another-server", "SEGUE_TEST_BAD": "a\r\nX-Evil: 1"}
            got = drive(settings, [{"id": s, "provider": s, "prompt": f"P-{s}-P"} for s in settings], env)
            sent = {s: [r["headers"] for r in server.requests if f"P-{s}-P" in json.dumps(r["body"])] for s in settings}
            expect(got["env"]["class"] == "ok" and sent["env"][0]["authorization"] == "Bearer " + KEY, got["env"])
            expect(got["file"]["class"] == "ok" and sent["file"][0]["x-goog-api-key"] == KEY, got["file"])
            for name, words in (("open", "chmod 600"), ("gone", "key_file"), ("unset", "SEGUE_TEST_UNSET"), ("line", "characters")):
                expect(got[name]["class"] == "auth" and words in got[name]["message"] and not sent[name], got[name])
                expect(KEY not in json.dumps(got[name]), "no message shows a key")
            expect(got["none"]["class"] == "ok" and "authorization" not in sent["none"][0],
                   "a vendor's key is not for a server of one's own", sent["none"])
        finally:
            server.close()


def case_key_command():
    """A program prints the key: once for all calls that wait, again after a 401; what is wrong with it is said."""
    def answer(scenario, request):
        key = request["headers"].get("authorization")
        if scenario == "old" and key != "Bearer " + KEY + "-2":
            return 401, {"error": {"message": f"{key} has expired"}}
        return stream(dialect_of(request["path"]), f"sent {key}")
    server = FakeApi(answer)
    with Box() as box:
        def program(name, body):
            path = box.file(name, "#!/bin/sh\n" + body)
            os.chmod(path, 0o755)
            return [path]
        try:
            counted = program("counted", f"echo x >>'{box.dir}/asked'\nsleep 0.1\necho '{KEY}'\necho 'user: me'\n")
            again = program("again", f"echo x >>'{box.dir}/again.asked'\necho {KEY}-$(wc -l <'{box.dir}/again.asked')\n")
            commands = {"counted": counted, "old": again, "fails": program("fails", "echo 'no such entry' >&2\nexit 3\n"),
                        "gone": ["segue-no-such-program"], "silent": ["true"], "slow": ["sleep", "60"], "hangs": ["sleep", "61"],
                        "where": program("where", "echo key-$PWD-$TEST_OWN\n"),
                        "killed": program("killed", "kill -9 $$\n"), "worded": ["sh", "-c", "exit 4", "a-secret-word"]}
            settings = {n: provider(server, n, "openai-chat", key_command=c, **({"key_ms": 300} if n == "slow" else {})) for n, c in commands.items()}
            calls = [{"id": f"counted.{i}", "provider": "counted"} for i in range(5)]
            calls += [{"id": "counted.left", "provider": "counted", "cancel_ms": 0}, {"id": "counted.probe", "provider": "counted", "probe": True}]
            calls += [{"id": n, "provider": n} for n in ("fails", "gone", "silent", "slow", "where", "killed", "worded")]
            calls += [{"id": "hangs", "provider": "hangs", "cancel_ms": 100}, {"id": "hangs.2", "provider": "hangs", "cancel_ms": 150}]
            calls += [{"id": "old.1", "provider": "old"}, {"id": "old.2", "provider": "old", "after": True}, {"id": "later", "provider": "counted", "after": True}]
            got = drive(settings, calls, {"HOME": box.dir, "TEST_OWN": "mine"})
            for name in [f"counted.{i}" for i in range(5)] + ["later"]:
                expect(got[name]["class"] == "ok" and "secret:counted" in got[name]["text"], name, got[name])
            expect(KEY not in json.dumps(got) and "a-secret-word" not in json.dumps(got), "no result shows a key, or words that may be one")
            expect({r["headers"]["authorization"] for r in server.requests if r["scenario"] == "counted"} == {"Bearer " + KEY}, "the first line")
            expect(Path(box.dir + "/asked").read_text() == "x\n", "one program for all who wait, and for later calls")
            expect(got["counted.left"]["class"] == "cancelled" and got["counted.probe"]["class"] == "ok", got)
            for name, words in (("fails", 'ended with status 3: no such entry'), ("gone", "cannot run it"), ("silent", "printed no key"),
                                ("slow", "no key within 300 ms"), ("killed", "it was ended"), ("worded", '"sh": it ended with status 4')):
                expect(got[name]["class"] == "auth" and words in got[name]["message"], name, got[name])
                expect(f'provider {name} has no key: key_command "' in got[name]["message"], name, got[name])
            sent = [r["headers"]["authorization"] for r in server.requests if r["scenario"] == "where"]
            expect(sent == [f"Bearer key-{box.dir}-mine"], "its folder and environment", sent)
            for name in ("hangs", "hangs.2"):
                expect(got[name]["class"] == "cancelled" and got[name]["duration_ms"] < 5000, got[name])
            expect(got["old.1"]["class"] == "auth", "a new key that is refused is not asked for again", got["old.1"])
            expect(got["old.2"]["class"] == "ok" and "another key" in got["old.2"]["notes"][0], got["old.2"])
        finally:
            server.close()


def case_redaction():
    """A key that comes back, in whatever form and pieces, is not in the result."""
    import base64
    import urllib.parse
    key = "sk+test/0123456789=secret"
    forms = [key, base64.b64encode(key.encode()).decode(), base64.b64encode(b"x:" + key.encode() + b":y").decode(),
             urllib.parse.quote(key, safe="")]

    def answer(scenario, request):
        if scenario == "error":
            return 401, {"error": {"message": f"Incorrect API key provided: {key}"}}
        return stream(dialect_of(request["path"]), " and ".join(forms), thinking=key, size=1 + request["number"])
    with closing(FakeApi(answer)) as server:
        settings = {d + "-x": provider(server, d, d, key_env="SEGUE_TEST_KEY") for d in DIALECTS}
        settings["error"] = provider(server, "error", "openai-chat", key_env="SEGUE_TEST_KEY")
        calls = [{"id": f"{d}.{i}", "provider": d + "-x", "after": i > 0} for d in DIALECTS for i in range(6)]
        got = drive(settings, calls + [{"id": "error", "provider": "error"}], {"SEGUE_TEST_KEY": key})
        for name, one in got.items():
            text = json.dumps(one)
            for form in (key, forms[1], forms[3], forms[2][6:-6]):
                expect(form not in text, name, "shows", form, one)
            expect("secret:SEGUE_TEST_KEY" in text, name, one)


def case_addresses():
    """Plain http is for this machine, metadata addresses are for nobody."""
    with closing(FakeApi()) as server:
        urls = {"meta": "http://169.254.169.254/v1", "mapped": "http://[::ffff:169.254.169.254]/v1", "alibaba": "https://100.100.100.200/v1",
                "decimal": "http://2852039166/v1", "plain": "http://192.0.2.1/v1", "scheme": "https://127.0.0.1:1/v1",
                "nowhere": "https://192.0.2.1/v1"}
        settings = {n: {"type": "openai-chat", "base_url": u, "connect_ms": 1500} for n, u in urls.items()}
        settings["meta-allowed"] = {"type": "openai-chat", "base_url": urls["meta"], "allow_http": True}
        settings["name"] = {"type": "openai-chat", "base_url": f"http://localhost:{server.port}/s/ok/v1"}
        got = drive(settings, [{"id": n, "provider": n} for n in settings])
        for name in ("meta", "mapped", "alibaba", "decimal", "meta-allowed"):
            expect(got[name]["class"] == "bad_request" and "metadata" in got[name]["message"], got[name])
        expect(got["plain"]["class"] == "bad_request" and "allow_http" in got["plain"]["message"], got["plain"])
        for name in ("scheme", "nowhere"):
            expect(got[name]["class"] == "network" and got[name]["duration_ms"] < 5000, got[name])
        expect(got["name"]["class"] == "ok", got["name"])


def case_tls():
    """A certificate is verified against the named authority, and nothing switches that off."""
    import ssl
    with Box() as box:
        needs("openssl")
        made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                               "-addext", "subjectAltName=DNS:localhost", "-keyout", box.dir + "/k.pem", "-out", box.dir + "/c.pem"],
                              capture_output=True)
        expect(made.returncode == 0, made.stderr.decode())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(box.dir + "/c.pem", box.dir + "/k.pem")
        with closing(FakeApi(tls=context)) as server:
            good, wrong = server.url("ok", "localhost") + "/v1", server.url("ok") + "/v1"
            settings = {"named": {"type": "openai-chat", "base_url": good, "ca_file": box.dir + "/c.pem"},
                        "unknown": {"type": "openai-chat", "base_url": good},
                        "host": {"type": "openai-chat", "base_url": wrong, "ca_file": box.dir + "/c.pem"},
                        "file": {"type": "openai-chat", "base_url": good, "ca_file": box.dir + "/gone.pem"}}
            got = drive(settings, [{"id": n, "provider": n} for n in settings], {"http_proxy": "http://127.0.0.1:1", "https_proxy": "http://127.0.0.1:1"})
            expect(got["named"]["class"] == "ok", got["named"])
            for name in ("unknown", "host", "file"):
                expect(got[name]["class"] == "protocol" and "certificate" in got[name]["message"], name, got[name])


def case_probe():
    """Whether a backend is there, with its version and models, within a short limit."""
    server = FakeApi()
    closed = FakeApi()
    closed.close()
    try:
        settings = {d + "-x": provider(server, "ok", d) for d in DIALECTS}
        settings.update(lost=provider(server, "404", "gemini"), closed=provider(closed, "ok", "ollama"),
                        keyless=provider(server, "ok", "openai", key_env="SEGUE_TEST_UNSET"))
        got = drive(settings, [{"id": n.replace("-x", ""), "provider": n, "probe": True} for n in settings])
        for dialect in DIALECTS:
            expect(got[dialect]["reachable"] and got[dialect]["class"] == "ok" and got[dialect]["model_count"] >= 1, got[dialect])
        expect(got["ollama"]["version"] == "0.99.0" and got["ollama"]["models"] == ["small:1b"], got["ollama"])
        expect(got["openai"]["models"] == ["m1", "m2"], got["openai"])
        expect(got["lost"]["reachable"] and got["lost"]["class"] == "not_found", got["lost"])
        expect(not got["closed"]["reachable"] and got["closed"]["class"] == "network" and "running?" in got["closed"]["message"], got["closed"])
        expect(got["keyless"]["class"] == "auth" and "SEGUE_TEST_UNSET" in got["keyless"]["message"], got["keyless"])
    finally:
        server.close()


def case_lint(box):
    """The names are there without any configuration, and what a backend does not take is said before it runs."""
    flow = """name: w
movements:
  - name: work
    instruction: Do it.
    provider: %s
    model: m
    options: {%s}
    judge: {provider: ollama, model: "qwen3:4b"}
    rules: [{condition: done, next: COMPLETE}, {condition: not done, next: ABORT}]
"""
    for name in ("anthropic", "openai", "openai-chat", "gemini", "ollama", "llamacpp", "vllm", "openrouter", "lmstudio",
                 "deepseek", "mistral", "groq"):
        box.segue("lint", box.file("w.yaml", flow % (name, "temperature: 0.5")), status=0)
    done = box.segue("lint", box.file("w.yaml", flow % ("anthropic", "seed: 5")))
    expect(done.returncode != 0 and b"anthropic takes no seed" in done.stdout + done.stderr, done.stdout, done.stderr)
    done = box.segue("lint", box.file("w.yaml", flow % ("ollamma", "seed: 5")))
    expect(done.returncode != 0 and b"ollama" in done.stdout + done.stderr, done.stdout, done.stderr)


def case_settings():
    """A wrong key of the configuration is said in words."""
    wrong = [({"gemini": {"trust_project": True}},
              'unknown key "trust_project": this is Google\'s Gemini API, because the program gemini is not in PATH'),
             ({"x": {"type": "ollama", "bse_url": "http://h"}}, 'unknown key "bse_url": did you mean "base_url"?'),
             ({"x": {"type": "ollama", "base_url": "ftp://h"}}, "base_url must be a URL"),
             ({"x": {"type": "ollama", "base_url": "http://user:pw@h"}}, "base_url must be a URL"),
             ({"x": {"type": "openai-chat", "key_env": "sk-123 456"}}, "key_env must be the name"),
             ({"x": {"type": "openai-chat", "key_command": "pass show x"}}, "key_command must be a list of words"),
             ({"x": {"type": "openai-chat", "key_command": []}}, "key_command must be a list of words"),
             ({"x": {"type": "openai-chat", "key_command": ["./key"]}}, "key_command must be a list of words"),
             ({"x": {"type": "openai-chat", "key_command": ["pass"], "key_env": "X"}}, "cannot be combined: keep one"),
             ({"anthropic": {"schema_mode": "json"}}, "schema_mode names a way"),
             ({"anthropic": {"keep_alive": 5}}, "keep_alive is for ollama only"),
             ({"ollama": {"think_mode": "fast"}}, "think_mode must be"),
             ({"ollama": {"concurrency": 0}}, "concurrency must be a whole number"),
             ({"x": {"type": "opnai", "base_url": "http://h"}}, 'type "opnai" is unknown: use one of anthropic'),
             ({"x": {"base_url": "http://h"}}, "it has a base_url and no type: use one of anthropic"),
             ({"ollama": {"type": "gemini"}}, "give your own another name")]
    for settings, words in wrong:
        done = subprocess.run([BUILD + "/helpers/api_driver"], input=json.dumps(settings).encode() + b"\n", capture_output=True)
        expect(done.returncode == 2 and words in done.stdout.decode(), settings, done.stdout)


def case_segue():
    """A whole run: the judge on an API by name, the log without the key, and `verify` is content."""
    def answer(scenario, request):
        where = schema_of(request["body"])[1]
        return stream(dialect_of(request["path"]), '{"reason": "it is done", "step": 1}' if where else f"I did it. My key is {KEY}.")
    server = FakeApi(answer)
    with Box() as box:
        try:
            box.config(f"""providers:
  claude-api: {{type: anthropic, base_url: "{server.url('a')}", key_env: SEGUE_TEST_KEY, model: big}}
  ollama: {{base_url: "{server.url('o')}"}}
""")
            flow = box.file("w.yaml", """name: w
movements:
  - name: work
    instruction: Do it.
    provider: claude-api
    judge: {provider: ollama, model: "qwen3:4b"}
    rules:
      - {condition: it is done, next: COMPLETE}
      - {condition: it is not done, next: ABORT}
""")
            box.segue("run", flow, "--task", "t", "--logs", box.logs, env={"SEGUE_TEST_KEY": KEY}, status=0)
            log = Path(box.log_paths()[0]).read_text()
            expect(KEY not in log and "secret:SEGUE_TEST_KEY" in log, "the key stays out of the log")
            expect('"enforced":"native"' in log and '"structured":{"reason":"it is done","step":1}' in log, log[-2000:])
            expect(box.segue("verify", "last", "--logs", box.logs).returncode == 0, "verify")
            text = Path(box.env["XDG_CONFIG_HOME"] + "/segue/config.yaml").read_text()
            box.file("home/config/segue/config.yaml", text.replace("key_env: SEGUE_TEST_KEY", f"key_command: [echo, {KEY}]"))
            done = box.segue("run", flow, "--task", "t", "--logs", box.logs)
            expect(done.returncode == 0 and not any(KEY in open(p).read() for p in box.log_paths()), done.stdout, done.stderr)
            box.file("home/config/segue/config.yaml", text)
            none = box.segue("run", flow, "--task", "t", "--logs", box.logs)
            expect(none.returncode != 0 and b"SEGUE_TEST_KEY" in none.stdout + none.stderr, none.stdout, none.stderr)
        finally:
            server.close()


def case_window():
    """Ollama's window is made as large as the prompt needs; what the server did not read is noted."""
    def answer(scenario, request):
        return stream(dialect_of(request["path"]), "fine")
    with closing(FakeApi(answer)) as server:
        got = drive({"o": provider(server, "o", "ollama"), "own": provider(server, "own", "ollama", options={"num_ctx": 512})},
                    [{"id": "long", "provider": "o", "prompt": "word " * 12000}, {"id": "short", "provider": "o", "prompt": "short"},
                     {"id": "own", "provider": "own", "prompt": "word " * 12000}])
        windows = {len(r["body"]["messages"][0]["content"]): r["body"].get("options", {}).get("num_ctx") for r in server.requests if r["scenario"] == "o"}
        expect(windows[60000] == 24576 and windows[5] is None, windows)
        expect(any(r["body"]["options"]["num_ctx"] == 512 for r in server.requests if r["scenario"] == "own"), "the user's own stays")
        expect(len(got["long"]["notes"]) == 1 and "read 11 tokens of a prompt of 60000 bytes" in got["long"]["notes"][0], got["long"])
        expect(got["short"]["notes"] == [], got["short"])


def case_own_headers():
    """Headers and a query of the user's own, from variables too, which no log ever shows; versions of Anthropic's API."""
    def answer(scenario, request):
        return stream(dialect_of(request["path"].split("?")[0]), "it is " + request["headers"].get("api-key", "none"))
    with closing(FakeApi(answer)) as server:
        own = {"headers": {"api-key": "$SEGUE_TEST_KEY", "X-Team": "blue"}, "query": {"api-version": "2026 10"}}
        got = drive({"azure": provider(server, "azure", "openai-chat", **own), "new": provider(server, "new", "anthropic", key_env="SEGUE_TEST_KEY"),
                     "old": provider(server, "old", "anthropic", key_env="SEGUE_TEST_KEY", version="2023-06-01"),
                     "gemini": provider(server, "gemini", "gemini", query={"a": "b"})},
                    [{"id": i, "provider": i} for i in ("azure", "new", "old", "gemini")], env={"SEGUE_TEST_KEY": KEY})
        asked = {r["scenario"]: r for r in server.requests}
        expect(asked["azure"]["headers"]["api-key"] == KEY and asked["azure"]["headers"]["x-team"] == "blue", asked["azure"])
        expect(asked["azure"]["path"].endswith("/chat/completions?api-version=2026%2010"), asked["azure"]["path"])
        expect(asked["gemini"]["path"].endswith("?alt=sse&a=b"), asked["gemini"]["path"])
        expect(KEY not in json.dumps(got) and "secret:api-key" in got["azure"]["text"], got["azure"])
        expect(asked["new"]["headers"]["anthropic-version"] == "2026-10-21" and asked["new"]["headers"]["authorization"] == "Bearer " + KEY, asked["new"])
        expect(asked["old"]["headers"]["anthropic-version"] == "2023-06-01" and asked["old"]["headers"]["x-api-key"] == KEY, asked["old"])


def case_shared_prefix():
    """All stages that judge one report begin with the same bytes, after a resume too; a long report is marked for Anthropic's cache."""
    def answer(scenario, request):
        return stream(dialect_of(request["path"]), "no answer that anybody could read")
    server = FakeApi(answer)
    with Box() as box:
        try:
            box.config(f"providers:\n  a: {{type: anthropic, model: m, base_url: '{server.url('a')}'}}\n")
            report = box.file("report.txt", "A line of a long report of what was done.\n" * 730)
            flow = box.file("w.yaml", f"""name: w
judge: {{provider: a, stages: [structured_output, phase3_tag, ai_judge], max_reasks: 0}}
movements:
  - name: work
    command: [cat, {report}]
    rules:
      - {{condition: it is done, next: COMPLETE}}
      - {{condition: it is not done, next: ABORT}}
""")
            box.segue("run", flow, "--task", "t", "--logs", box.logs)
            box.segue("resume", "last", "--logs", box.logs)
            contents = [r["body"]["messages"][0]["content"] for r in server.requests]
            expect(len(contents) >= 3, len(contents))
            expect(all(isinstance(c, list) and c[0]["cache_control"] == {"type": "ephemeral"} and "cache_control" not in c[1] for c in contents), contents[0][-1])
            texts = ["".join(part["text"] for part in c) for c in contents]
            prefix = len(os.path.commonprefix([t.encode() for t in texts]))
            longest = max(len(t.encode()) for t in texts)
            expect(prefix >= 0.95 * longest, prefix, longest)
            expect(all(len(c[0]["text"].encode()) <= prefix for c in contents), "the mark stands within what they share")
            print(f"      {prefix} of {longest} bytes are shared by {len(texts)} judgments ({100 * prefix / longest:.1f} %)")
        finally:
            server.close()


def case_judges_parameters():
    """No parameter that nobody asked for; a model that one provider does not have is asked for elsewhere;
    what was refused is known after a resume too, a prompt that was refused goes nowhere else."""
    def answer(scenario, request):
        body = request["body"]
        if scenario == "none":
            return 400, {"error": {"message": "model is not served here", "param": "model"}}
        if scenario == "long":
            return 400, {"error": {"message": "the prompt is too long", "param": "messages"}}
        if "temperature" in body:
            return 400, REFUSALS["openai-chat"]
        return stream(dialect_of(request["path"]), '{"reason": "it is done", "step": 1}')
    server = FakeApi(answer)
    with Box() as box:
        try:
            box.config("providers:\n" + "".join(
                f"  {name}: {{type: openai-chat, model: m, base_url: {server.url(name)}/v1}}\n" for name in ("none", "long", "good")))
            for first, options, wanted in (("none", "", 0), ("long", "", 5), ("good", ", options: {temperature: 0}", 0),
                                           ("good", ", options: {temperature: null}", 0)):
                server.requests.clear()
                flow = box.file("w.yaml", f"""name: w
judge: {{provider: [{first}, {"none" if first == "good" else "good"}], stages: [structured_output, phase3_tag]{options}}}
movements:
  - name: work
    command: [echo, done]
    rules:
      - {{condition: it is done, next: COMPLETE}}
      - {{condition: it is not done, next: ABORT}}
""")
                done = box.segue("run", flow, "--task", "t", "--logs", box.logs)
                asked = [(r["scenario"], "temperature" in r["body"]) for r in server.requests]
                expect((done.returncode == 0) == (wanted == 0), first, options, done.stdout, done.stderr)
                if first == "long":
                    expect(all(a == ("long", False) for a in asked), asked)
                elif first == "none":
                    expect(asked == [("none", False), ("good", False)], asked)
                else:
                    expect(asked == ([("good", True)] if "null" not in options else []) + [("good", False)], options, asked)
            expect(box.segue("verify", "last", "--logs", box.logs).returncode == 0, "verify")
        finally:
            server.close()


def case_two_requests_are_logged_whole():
    """A judge that thinks in one request and answers in another: the log holds both, the reasoning,
    and what each used."""
    def answer(scenario, request):
        if request["method"] == "GET":
            return None
        formed = "format" in request["body"]
        return stream("ollama", '{"reason": "r", "step": 1}' if formed else "Rule 2 holds.",
                      thinking="" if formed else "Two of five fail.")
    with closing(FakeApi(answer)) as server:
        with Box() as box:
            box.config({"providers": {"twice": {"type": "ollama", "base_url": server.url("x"), "think": True,
                                                "think_mode": "two_requests"}}})
            done = box.segue("judge", "--rule", "all pass", "--rule", "some fail", "--stages", "structured_output",
                             "--provider", "twice", "--model", "m", "--logs", box.logs, stdin=b"Two of five fail.")
            expect(done.returncode == 0, done.returncode, done.stdout, done.stderr)
            log = [json.loads(line) for line in Path(box.log_paths()[0]).read_bytes().splitlines()]
            end = [r for r in log if r["type"] == "call_end"][-1]
            think, answer_ = end["requests"]
            expect(think["asked"] == "think" and think["text"] == "Rule 2 holds." and
                   think["reasoning"] == "Two of five fail." and "appended" not in think, think)
            expect(answer_["asked"] == "answer" and "Rule 2 holds." in answer_["appended"] and
                   answer_["text"] == '{"reason": "r", "step": 1}' and answer_["enforced"] == "native", answer_)
            expect(end["usage"] == {k: think["usage"][k] + answer_["usage"][k] for k in end["usage"]}, end)
            expect(box.segue("verify", box.log_paths()[0]).returncode == 0, "verify")
            shown = box.segue("show", box.log_paths()[0], end.get("movement", "step")).stdout.decode()
            expect("request 1 asked to think" in shown and "Rule 2 holds." in shown, shown)


def case_names_given_twice():
    """Maps go to some APIs as lists of pairs: a name that stands twice is asked for again, never settled unseen."""
    for dialect in ("openai-chat", "anthropic"):
        pairs = [[("Ann", 3), ("Ann", 4)], [("Ann", 3), ("Bo", 4)]]
        said = [json.dumps({"ages": [{"key": k, "value": v} for k, v in p]}) for p in pairs]

        def answer(scenario, request):
            return stream(dialect, said[0] if len(server.requests) < 2 else said[1])
        with closing(FakeApi(answer)) as server:
            with Box() as box:
                schema = box.file("ages.json", json.dumps({
                    "type": "object", "properties": {"ages": {"type": "object", "additionalProperties": {"type": "integer"}}},
                    "required": ["ages"], "additionalProperties": False}))
                box.config({"providers": {"p": {"type": dialect, "base_url": base(server, "x", dialect), "model": "m"}}})
                done = box.segue("ask", "--schema", schema, "-p", "p", "--json", "--logs", box.logs, "How old?",
                                 env={"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"})
                result = json.loads(done.stdout)
                expect(result["value"] == {"ages": {"Ann": 3, "Bo": 4}} and result["attempts"] == 2, dialect, result)
                told = result["checks"][0]["errors"]
                expect([e["message"] for e in told] == ['gives the name "Ann" twice'], dialect, told)
                expect(len(server.requests) == 2 and '"Ann\\" twice' in json.dumps(server.requests[1]["body"]).replace("\\\\", "\\"),
                       dialect, server.requests[1]["body"])
                expect(box.segue("verify", box.log_paths()[0]).returncode == 0, "verify")
                shown = box.segue("show", box.log_paths()[0], "ask").stdout.decode()
                expect('gives the name "Ann" twice' in shown, shown)


def case_a_name_with_nul():
    """A value that the schema allows and no answer may be, for its name has U+0000: refused like any other."""
    with closing(FakeApi(lambda scenario, request: stream("ollama", '{"a\\u0000b": 1}' if len(server.requests) < 2 else '{"ab": 1}'))) as server:
        with Box() as box:
            schema = box.file("s.json", '{"type": "object", "additionalProperties": {"type": "integer"}}')
            box.config({"providers": {"p": {"type": "ollama", "base_url": server.url("x"), "model": "m"}}})
            done = box.segue("ask", "--schema", schema, "-p", "p", "--json", "--logs", box.logs, "Which?")
            result = json.loads(done.stdout)
            expect(done.returncode == 0 and result["value"] == {"ab": 1} and result["attempts"] == 2, result, done.stderr)
            for words in (("verify", box.log_paths()[0]), ("show", box.log_paths()[0]), ("show", box.log_paths()[0], "ask")):
                expect(box.segue(*words).returncode == 0, words)


sys.exit(main([case for name, case in list(globals().items()) if name.startswith("case_")]))
