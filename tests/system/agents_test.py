#!/usr/bin/env python3
"""Agents at the command line, played by small programs that print what the real clients print: one
word swaps them, the log is the same, and what a project ships cannot change how they are run."""
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

from support import Box, expect, hour_to_come, main, needs, of_type, records, verified

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ANSWER = "All of it is done.\n\n[WORK:1]"
WORKFLOW = """name: one
movements:
  - name: work
    instruction: Do it.
    rules:
      - {condition: when(true), next: COMPLETE}
"""
CLAUDE_LIKE = [
    {"type": "system", "subtype": "init", "session_id": "s-1"},
    {"type": "assistant", "session_id": "s-1", "parent_tool_use_id": None,
     "message": {"id": "m", "content": [{"type": "text", "text": ANSWER}]}},
    {"result": ANSWER, "usage": {"input_tokens": 11, "output_tokens": 7}, "is_error": False,
     "type": "result", "session_id": "s-1"},
]
# What each client prints for the same answer.
DIALECTS = {
    "claude": CLAUDE_LIKE,
    "qwen": CLAUDE_LIKE,
    "codex": [
        {"type": "thread.started", "thread_id": "s-1"},
        {"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": ANSWER}},
        {"type": "turn.completed", "usage": {"input_tokens": 11, "output_tokens": 7}},
    ],
    "opencode": [
        {"type": "text", "sessionID": "s-1", "part": {"messageID": "m", "text": ANSWER[:7]}},
        {"type": "text", "sessionID": "s-1", "part": {"messageID": "m", "text": ANSWER[7:]}},
        {"type": "step_finish", "sessionID": "s-1", "part": {"reason": "stop", "tokens": {
            "input": 11, "output": 7, "reasoning": 0, "cache": {"read": 0, "write": 0}}}},
    ],
    "gemini": [
        {"type": "init", "session_id": "s-1"},
        {"type": "message", "role": "user", "content": "Do it."},
        {"type": "message", "role": "assistant", "content": ANSWER[:9], "delta": True},
        {"type": "message", "role": "assistant", "content": ANSWER[9:], "delta": True},
        {"type": "result", "status": "success", "stats": {"input_tokens": 11, "output_tokens": 7}},
    ],
    "copilot": [
        {"type": "assistant.message_delta", "data": {"messageId": "m", "deltaContent": ANSWER}},
        {"type": "assistant.message", "data": {"messageId": "m", "content": ANSWER}},
        {"type": "result", "sessionId": "s-1", "exitCode": 0},
    ],
    "pi": [
        {"type": "session", "id": "s-1"},
        {"type": "message_end", "message": {"role": "assistant",
                                            "content": [{"type": "text", "text": ANSWER}]}},
        {"type": "turn_end", "message": {"role": "assistant", "stopReason": "stop"}},
        {"type": "agent_end", "messages": [{"role": "assistant",
                                            "usage": {"input": 11, "output": 7}}]},
    ],
    "jsonl": [
        {"event": "session", "id": "s-1"},
        {"event": "text", "text": ANSWER},
        {"event": "usage", "input": 11, "output": 7},
        {"event": "end", "class": "ok"},
    ],
    "text": ANSWER,
}


def program(box, name, body):
    path = box.file(name, "#!/bin/sh\n" + body)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    return path


def player(box, name, lines):
    """A program that prints this, whatever it is asked."""
    text = lines if isinstance(lines, str) else "".join(json.dumps(x) + "\n" for x in lines)
    path = box.file(name + ".out", text)
    return program(box, name, f"cat >/dev/null\ncat '{path}'\n")


def config(box, **keys):
    folder = box.dir + "/home/config/segue"
    os.makedirs(folder + "/providers", exist_ok=True)
    box.config({"sandbox": {"write": [box.dir]}, **keys})  # where the players leave their notes
    return folder


def run_with(box, name, *more, env=None, workflow=WORKFLOW):
    done = box.segue("run", box.file("one.yaml", workflow), "--provider", name, "--task", "x",
                     "--logs", box.logs, "--cwd", box.cwd, *more, env=env)
    return done, records(box.log_paths()[-1]) if box.log_paths() else []


def one_word_swaps_them(box):
    config(box, providers={n: {"program": player(box, n, lines)}
                           for n, lines in DIALECTS.items()})
    for name in DIALECTS:
        done, log = run_with(box, name)
        expect(done.returncode == 0, name, done.returncode, done.stdout, done.stderr)
        end = of_type(log, "call_end")[0]
        expect(end["text"] == ANSWER, name, end)
        expect(of_type(log, "judgment")[0]["rule"] == 1, name)
        if name != "text":
            expect(end["provider_session"] == "s-1", name, end)
            events = [r["event"] for r in of_type(log, "call_event")]
            expect("session" in events, name, events)
        if name not in ("text", "copilot"):
            expect(end["usage"]["input"] == 11 and end["usage"]["output"] == 7, name, end)
        for path in box.log_paths():
            os.unlink(path)


def a_command_that_ran_on_is_told():
    """codex ends its turn, and itself, while a command still runs: that is no finished work."""
    def item(kind, number):
        return {"type": "item." + kind, "item": {"id": f"i{number}", "type": "command_execution", "command": f"make {number}"}}

    said = DIALECTS["codex"]
    lines = [said[0], item("started", 1), item("started", 2), item("completed", 1), *said[1:]]
    with Box() as box:
        config(box, providers={"codex": {"program": player(box, "codex", lines)}})
        done, log = run_with(box, "codex")
        end = of_type(log, "call_end")[0]
        expect(end["unfinished"] == ["make 2"] and "make 2" in end["note"] and "error" not in end, end)


def errors_keep_their_class():
    cases = {
        "claude": ([{"type": "result", "subtype": "success", "is_error": True,
                     "api_error_status": 401, "result": "Invalid API key"}], "auth"),
        "codex": ([{"type": "thread.started", "thread_id": "t"},
                   {"type": "turn.completed", "usage": {}}], "refused"),
        "pi": ([{"type": "turn_end", "message": {"role": "assistant", "stopReason": "error",
                                                 "errorMessage": "401 no"}}], "auth"),
        "gemini": ([{"type": "result", "status": "error"}], "crashed"),
    }
    more = {  # words of the real clients
        "gemini": [("Model stream ended without a finish reason.", "network"), ("Incomplete JSON segment at the end", "protocol")],
        "claude": [("malformed response (HTTP 200)", "protocol"),
                   ("Error: --json-schema is not valid JSON: JSON Parse error: Unexpected EOF", "bad_request")],
    }
    for name, rows in more.items():
        for words, wanted in rows:
            line = {"type": "result", "status": "error", "is_error": True, "error": {"type": "Error", "message": words}, "result": words}
            with Box() as box:
                config(box, providers={name: {"program": player(box, name, [line])}})
                done, log = run_with(box, name, env={"SEGUE_TEST": "1"}) if wanted != "network" else (None, None)
                if log is None:  # four attempts: the class is in the first record already
                    profile = box.file("t.txt", "# {\"argv\": [], \"exit\": 1}\n--- stdout ---\n" + json.dumps(line) + "\n--- stderr ---\n")
                    told = box.segue("providers", "test", name, "--transcript", profile, "--json").stdout.decode()
                    expect('"network"' in told, told)
                else:
                    expect(of_type(log, "call_end")[0]["error"]["class"] == wanted, words, log[-1])
    with Box() as box:
        config(box, providers={n: {"program": player(box, n, x)} for n, (x, _) in cases.items()})
        for name, (_, wanted) in cases.items():
            done, log = run_with(box, name)
            error = of_type(log, "call_end")[0]["error"]
            expect(error["class"] == wanted, name, error)
            expect(done.returncode == (7 if wanted == "auth" else 1), name, done.returncode)
            expect(log[-1]["type"] == "session_stop" and log[-1]["resumable"], name, log[-1])
            for path in box.log_paths():
                os.unlink(path)


def an_end_that_is_not_known_is_no_success(box):
    half = {"role": "assistant", "content": [{"type": "text", "text": "half"}], "stopReason": "overflow"}
    lines = [{"type": "session", "id": "s-1"}, {"type": "message_end", "message": half}, {"type": "turn_end", "message": half}]
    config(box, providers={"pi": {"program": player(box, "pi", lines)}})
    done, log = run_with(box, "pi")
    expect("overflow" in of_type(log, "call_end")[0]["error"]["message"], log)
    expect(done.returncode == 1 and not of_type(log, "judgment"), log[-1])


def a_limit_of_a_subscription_is_no_answer():
    """With is_error true or false: rate_limit, with the time of its reset; then whoever takes over."""
    words = f"You've hit your session limit \u00b7 resets {hour_to_come()} (UTC)"
    for wrong in (True, False):
        lines = [{"type": "result", "subtype": "success", "is_error": wrong, "result": words, "session_id": "s-1"}]
        with Box() as box:
            config(box, providers={"claude": {"program": player(box, "claude", lines)},
                                   "codex": {"program": player(box, "codex", DIALECTS["codex"])}}, fallback={"claude": ["codex"]})
            done, log = run_with(box, "claude")
            ends = of_type(log, "call_end")
            expect(done.returncode == 0 and len(ends) == 2, done.stdout, done.stderr)
            expect(ends[0]["error"]["class"] == "rate_limit" and ends[0]["error"]["message"] == words, ends[0])
            expect(0 < ends[0]["error"]["retry_after_ms"] <= 24 * 3600 * 1000 and ends[0]["fallback"] == "codex", ends[0])


LOOP = WORKFLOW.replace("{condition: when(true), next: COMPLETE}", """{condition: when(movement_iteration == 1), next: work}
      - {condition: when(true), next: COMPLETE}""")


def tokens_are_those_of_the_call():
    """Two requests a call, and the second call goes on with the conversation: 2022 tokens each time."""
    def lines(name, run):
        text = f"Done.\n\n[WORK:{run}]"
        usage = {"input_tokens": 2022 * run, "output_tokens": 14 * run}
        if name == "codex":
            return [{"type": "thread.started", "thread_id": "s-1"}, {"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": text}},
                    {"type": "turn.completed", "usage": usage}]
        if name == "qwen":
            return [{"type": "system", "subtype": "init", "session_id": "s-1"},
                    {"type": "result", "result": text, "usage": usage, "is_error": False, "session_id": "s-1"}]
        step = {"type": "step_finish", "sessionID": "s-1", "part": {"reason": "stop", "cost": 0.25, "tokens": {
            "input": 1011, "output": 7, "reasoning": 0, "cache": {"read": 0, "write": 0}}}}
        return [step, {"type": "text", "sessionID": "s-1", "part": {"messageID": "m", "text": text}}, step]
    for name in ("codex", "qwen", "opencode"):
        with Box() as box:
            for run in (1, 2):
                box.file(f"{run}.out", "".join(json.dumps(x) + "\n" for x in lines(name, run)))
            run = program(box, name, f"cat >/dev/null\ncd '{box.dir}'\nif [ -e again ]; then cat 2.out; else touch again; cat 1.out; fi\n")
            config(box, providers={name: {"program": run}})
            done, log = run_with(box, name, workflow=LOOP)
            expect(done.returncode == 0, name, done.stdout, done.stderr)
            usage = [r["usage"] for r in of_type(log, "call_end")]
            expect([u["input"] for u in usage] == [2022, 2022], name, usage)
            expect([r["provider_session"]["resumed"] if isinstance(r.get("provider_session"), dict) else r["session"]["resumed"]
                    for r in of_type(log, "call_start") if "session" in r or "provider_session" in r] == [True], name)
            spent = of_type(log, "session_end")[0]["spent"]
            expect(spent["input"] == 4044, name, spent)
            if name == "opencode":
                expect(spent["cost_usd"] == 1.0, spent)


def long_answers_are_blobs(box):
    text = "é" * 100_000 + "\n[WORK:1]"
    config(box, providers={"jsonl": {"program": player(box, "agent", [
        {"event": "text", "text": text}, {"event": "end"}])}})
    done, log = run_with(box, "jsonl")
    expect(done.returncode == 0, done.returncode, done.stderr)
    end = of_type(log, "call_end")[0]
    names = os.listdir(box.logs + "/blobs")
    expect(Path(f"{box.logs}/blobs/{names[0]}").read_text(encoding="utf-8") == text, "the blob is not the answer")
    expect(len(json.dumps(end)) < 20_000, "the whole answer stands in the log")
    verified(box, box.log_paths()[0])


def a_clouds_variables_go_with_their_switch():
    """Bedrock, Vertex and Foundry through claude: what each needs arrives where it is switched on, and only there."""
    names = {"CLAUDE_CODE_USE_BEDROCK": ["AWS_REGION", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK", "AWS_SECRET_ACCESS_KEY", "ANTHROPIC_BEDROCK_BASE_URL"],
             "CLAUDE_CODE_USE_VERTEX": ["CLOUD_ML_REGION", "ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_APPLICATION_CREDENTIALS"],
             "CLAUDE_CODE_USE_FOUNDRY": ["ANTHROPIC_FOUNDRY_API_KEY", "ANTHROPIC_FOUNDRY_RESOURCE"]}
    every = {name for some in names.values() for name in some}
    for switch, value in [(None, None), ("CLAUDE_CODE_USE_BEDROCK", "0")] + [(name, "1") for name in names]:
        with Box() as box:
            run = program(box, "claude", "cat >/dev/null\nprintf '{\"type\":\"result\",\"is_error\":false,\"result\":\"%s %s [WORK:1]\"}\\n' "
                          "\"$(env | cut -d= -f1 | tr '\\n' ' ')\" \"$AWS_SECRET_ACCESS_KEY\"\n")
            config(box, providers={"claude": {"program": run, "transport": "exec"}})
            env = {name: f"value-of-{name}" for name in every} | ({switch: value} if switch else {})
            done, log = run_with(box, "claude", env=env)
            text = of_type(log, "call_end")[0]["text"]
            got = every & set(text.split())
            expect(got == set(names[switch] if value == "1" else ()), switch, value, got, text)
            expect("value-of-AWS_SECRET" not in text and ("secret:AWS_SECRET_ACCESS_KEY" in text) == ("AWS_SECRET_ACCESS_KEY" in got), text)


def profiles_for_more_agents_read_their_lines():
    """cline as it printed against a model server of ours, goose and aider as their documentation has it."""
    usage = {"inputTokens": 11, "outputTokens": 7, "cacheReadTokens": 3, "cacheWriteTokens": 0, "totalCost": 0}
    lines = {
        "cline": [{"type": "hook_event", "hookEventName": "agent_start", "agentId": "a", "taskId": "s-1"},
                  {"type": "agent_event", "event": {"type": "content_start", "contentType": "tool", "toolName": "read_files", "toolCallId": "t"}},
                  {"type": "agent_event", "event": {"type": "content_end", "contentType": "tool", "toolName": "read_files", "toolCallId": "t"}},
                  {"type": "agent_event", "event": {"type": "content_start", "contentType": "text", "text": ANSWER[:5]}},
                  {"type": "agent_event", "event": {"type": "content_start", "contentType": "text", "text": ANSWER[5:]}},
                  {"type": "agent_event", "event": {"type": "content_end", "contentType": "text", "text": ANSWER}},
                  {"type": "run_result", "finishReason": "completed", "usage": usage, "text": ANSWER}],
        "goose": [{"type": "message", "message": {"id": "m", "role": "assistant", "content": [{"type": "text", "text": ANSWER[:9]}]}},
                  {"type": "message", "message": {"id": "m", "role": "assistant", "content": [{"type": "text", "text": ANSWER[9:]}]}},
                  {"type": "complete", "total_tokens": 18, "input_tokens": 11, "output_tokens": 7}],
        "aider": ANSWER,
    }
    wrong = {
        "cline": ([{"type": "run_result", "finishReason": "error", "text": "Cannot connect to API: Unable to connect. (ConnectionRefused)"}], "network"),
        "goose": ([{"type": "error", "error": "No provider configured. Run 'goose configure' first."}], "auth"),
        "aider": ("litellm.AuthenticationError: no such key\n", None),
    }
    with Box() as box:
        for name, told in lines.items():
            run = program(box, name + "-argv", f"cat >'{box.dir}/stdin'\nprintf '%s\\n' \"$@\" >'{box.dir}/argv'\n"
                          f"cat '{box.file(name + '.out', told if isinstance(told, str) else ''.join(json.dumps(x) + chr(10) for x in told))}'\n")
            config(box, providers={name: {"program": run}})
            done, log = run_with(box, name)
            end = of_type(log, "call_end")[0]
            expect(done.returncode == 0 and end["text"] == ANSWER, name, end, done.stderr)
            tools = [(r["data"].get("name"), r["data"]["state"]) for r in of_type(log, "call_event") if r["event"] == "tool"]
            expect(name != "cline" or (tools[0] == ("read_files", "start") and tools[-1][1] == "end"), tools)
            expect(name == "aider" or (end["usage"]["input"], end["usage"]["output"]) == (11, 7), name, end)
            argv = Path(box.dir + "/argv").read_text()
            given = Path(box.dir + "/stdin").read_text()
            expect("Do it." not in argv and ("Do it." in given) == (name != "aider"), name, argv, given)
            expect(name != "cline" or argv.splitlines()[-1] == "Follow the instructions from standard input.", argv)
            told, wanted = wrong[name]
            if wanted:
                path = box.file("t.txt", '# {"argv": [], "exit": 1}\n--- stdout ---\n' + json.dumps(told[0]) + "\n--- stderr ---\n")
                got = json.loads(box.segue("providers", "test", name, "--transcript", path, "--json").stdout.splitlines()[-1])
                expect(got["class"] == wanted, name, got)
            for path in box.log_paths():
                os.unlink(path)
        listed = box.segue("providers", "list").stdout + box.segue("providers", "show", "goose").stdout
        expect(b"untested" in listed, listed)


def a_missing_program_has_its_package_named(box):
    for name, transport, package in (("claude", "acp", "@agentclientprotocol/claude-agent-acp"), ("codex", "acp", "@agentclientprotocol/codex-acp"),
                                     ("claude", "exec", "@anthropic-ai/claude-code"), ("pi", "exec", "@earendil-works/pi-coding-agent")):
        config(box, providers={name: {"transport": transport}})
        done, _ = run_with(box, name)
        expect(done.returncode != 0 and package in (done.stdout + done.stderr).decode(), name, transport, done.stdout, done.stderr)
        told = box.segue("doctor").stdout.decode() + box.segue("providers", "list", "--json").stdout.decode()
        expect(package in told, name, transport, told)
        for path in box.log_paths():
            os.unlink(path)


def a_judge_is_not_told_of_a_tool_that_its_protocol_lacks(box):
    flow = box.file("w.yaml", "name: w\nmovements:\n  - name: work\n    instruction: do it\n    rules:\n"
                    "      - {condition: done, next: COMPLETE}\n      - {condition: not done, next: ABORT}\n"
                    "provider: qwen\n")
    for transport, told in (("exec", True), ("acp", False)):
        config(box, providers={"qwen": {"transport": transport}})
        prompt = box.segue("prompt", flow, "work", "--stage", "structured_output").stdout
        expect((b"the tool for structured output" in prompt) == told, transport, prompt)


def keys_stay_out_of_the_log(box):
    agent = program(box, "agent", "cat >/dev/null\n"
                    "printf '{\"type\":\"result\",\"is_error\":false,\"result\":\"%s\\\\n\\\\n[WORK:1]\"}\\n'"
                    " \"$ANTHROPIC_API_KEY\"\necho \"$ANTHROPIC_API_KEY\" >&2\n")
    config(box, providers={"claude": {"program": agent}})
    done, _ = run_with(box, "claude", env={"ANTHROPIC_API_KEY": "sk-ant-very-secret-1"})
    expect(done.returncode == 0, done.returncode, done.stderr)
    log = Path(box.log_paths()[0]).read_text()
    expect("very-secret" not in log and "very-secret" not in done.stdout.decode(), "a key leaked")
    expect("secret:ANTHROPIC_API_KEY" in log, "it is not said where it stood")


def keys_of_the_configuration_stay_out_too(box):
    agent = program(box, "agent", "cat >/dev/null\necho \"$1 $MINE $MODE $FROM_PROFILE\" >&2\n"
                    "printf '{\"event\":\"text\",\"text\":\"%s %s %s %s\"}\\n' "
                    "\"$1\" \"$MINE\" \"$MODE\" \"$FROM_PROFILE\"\n"
                    "printf '{\"event\":\"note\",\"text\":\"%s\"}\\n' \"$MINE\"\n"
                    "printf '{\"event\":\"end\",\"class\":\"auth\",\"message\":\"%s\"}\\n' \"$MINE\"\n")
    folder = config(box, providers={"mine": {
        "program": agent, "args": ["--api-key=geheim-word-1"],
        "set": {"MINE": "sk-geheim-0123456789", "MODE": "geheimer-modus"}}})
    with open(folder + "/providers/mine.yaml", "w") as f:
        f.write("extends: jsonl\nenv: {set: {FROM_PROFILE: ghp_geheim0123456789}}\n")
    done, log = run_with(box, "mine")
    end = of_type(log, "call_end")[0]
    expect(end["error"]["class"] == "auth", end)
    text = Path(box.log_paths()[0]).read_text() + done.stdout.decode() + done.stderr.decode()
    for secret in ("geheim-word-1", "sk-geheim", "ghp_geheim"):
        expect(secret not in text, secret, "leaked")
    expect("geheimer-modus" in text, "what is no secret is hidden")


def readme_profile():
    text = Path(ROOT + "/docs/backends.md").read_text()
    begin = text.index("# ~/.config/segue/providers/scout.yaml")
    return text[begin:text.index("```", begin)]


def the_profile_of_the_readme_works(box):
    folder = config(box, wait_for_outage="off")
    profile = readme_profile()
    expect(15 <= len(profile.splitlines()) <= 40, "the example is too long or too short")
    Path(folder + "/providers/scout.yaml").write_text(profile)
    bin_ = box.dir + "/bin"
    os.mkdir(bin_)
    lines = [{"kind": "hello", "conversation": "c-9"},
             {"kind": "say", "delta": ANSWER[:5]}, {"kind": "say", "delta": ANSWER[5:]},
             {"kind": "bye", "ok": True, "tokens": {"in": 5, "out": 6}}]
    os.rename(player(box, "scout", lines), bin_ + "/scout")
    path = {"PATH": bin_ + ":/usr/bin:/bin", "SCOUT_API_KEY": "k"}
    done, log = run_with(box, "scout", env=path)
    expect(done.returncode == 0, done.returncode, done.stdout, done.stderr)
    end = of_type(log, "call_end")[0]
    expect(end["text"] == ANSWER and end["usage"]["output"] == 6, end)
    lines = [{"kind": "bye", "ok": False, "status": 429, "why": "slow down, try again in 1s"}]
    os.rename(player(box, "scout", lines), bin_ + "/scout")
    done, log = run_with(box, "scout", env=path, workflow=WORKFLOW.replace("one", "two"))
    end = of_type(log, "call_end")[0]
    expect(end["error"]["class"] == "rate_limit", end)
    listed = json.loads(box.segue("providers", "--json", "--quick", env=path).stdout)
    scout = [p for p in listed["providers"] if p["name"] == "scout"][0]
    expect(scout["usable"] is True and scout["schema"] == "prompt", scout)


def a_mistake_in_one_profile_is_no_others(box):
    folder = config(box, providers={"jsonl": {"program": player(box, "j", DIALECTS["jsonl"])}})
    Path(folder + "/providers/wrong.yaml").write_text("summary: x\nprogram: x\nargv: 7\n")
    place = "wrong.yaml:3:7: "
    listed = box.segue("providers", "--quick", "--json")
    rows = {p["name"]: p for p in json.loads(listed.stdout)["providers"]}
    expect(listed.returncode == 2 and place in listed.stderr.decode(), listed)
    expect(rows["wrong"]["usable"] is False and place in rows["wrong"]["problem"], rows["wrong"])
    expect(rows["jsonl"]["installed"], rows["jsonl"])
    box.segue("doctor", "--quick", status=1, out=place)
    done, _ = run_with(box, "jsonl")
    expect(done.returncode == 0, done.stderr)
    done, _ = run_with(box, "wrong")
    expect(done.returncode == 2 and place in done.stderr.decode(), done.returncode, done.stderr)
    logs = len(box.log_paths())
    for providers, status, word in (("wrong", 2, "provider wrong"), ("[wrong, jsonl]", 0, "warning")):
        text = WORKFLOW.replace("movements:", f"provider: {providers}\nmovements:")
        done = box.segue("run", box.file("two.yaml", text), "--task", "x", "--logs", box.logs,
                         "--cwd", box.cwd)
        said = done.stderr.decode()
        expect(done.returncode == status, providers, done.returncode, said)
        expect(place in said and word in said, providers, said)
    expect(len(box.log_paths()) == logs + 1, "a session began that could not go on")
    error = of_type(records(box.log_paths()[-1]), "call_end")[0]["error"]
    expect(error["class"] == "not_found" and place in error["message"], error)


def what_a_project_ships_changes_nothing(box):
    config(box, providers={"claude": {"program": player(box, "good", DIALECTS["claude"])}})
    evil = program(box, "evil", f"touch '{box.dir}/harmed'\n")
    for folder in (box.cwd, box.cwd + "/.segue", box.cwd + "/.config/segue"):
        os.makedirs(folder + "/providers", exist_ok=True)
        for name in ("config.yaml", "segue.yaml"):
            with open(f"{folder}/{name}", "w") as f:
                json.dump({"providers": {"claude": {"program": evil, "set": {"X": "y"}}}}, f)
        Path(folder + "/providers/claude.yaml").write_text(f"extends: claude\nprogram: {evil}\n")
    Path(box.cwd + "/.env").write_text("ANTHROPIC_BASE_URL=http://127.0.0.1:1/evil\nCODEX_HOME=/evil\n")
    done, log = run_with(box, "claude")
    expect(done.returncode == 0, done.returncode, done.stderr)
    expect(not os.path.exists(box.dir + "/harmed"), "a program of the project was run")
    workflow = WORKFLOW.replace("movements:", "providers: {claude: {program: /x}}\nmovements:")
    done, _ = run_with(box, "claude", workflow=workflow)
    expect(done.returncode == 2, "a workflow may not say which program is run", done.returncode)
    workflow = WORKFLOW.replace("instruction:", "model: --dangerously-skip-permissions\n"
                                "    instruction:").replace("one", "two")
    done, _ = run_with(box, "claude", workflow=workflow)
    expect(done.returncode == 2 and b"begins with a dash" in done.stderr, done)


def a_project_that_would_steer_its_agent_is_refused(box):
    providers = {n: {"program": player(box, n, DIALECTS[n])} for n in ("gemini", "codex", "qwen")}
    config(box, providers=providers)
    settings = box.cwd + "/.gemini/settings.json"
    os.mkdir(box.cwd + "/.gemini")
    with open(settings, "w") as f:
        json.dump({"hooks": {"SessionStart": [{"hooks": [{"command": "touch x"}]}]}}, f)
    done, log = run_with(box, "gemini")  # before anything starts
    said = done.stderr.decode()
    expect(done.returncode == 2 and settings + " sets hooks" in said, done)
    expect("trust_project" in said, "it is not said what to do", said)
    expect(log == [], "a session began", log)
    box.segue("doctor", "--quick", env={"GEMINI_API_KEY": "k"}, out=b"sets hooks")
    # the next provider takes over
    config(box, providers=providers, fallback={"gemini": ["codex"]})
    done, log = run_with(box, "gemini", workflow=WORKFLOW.replace("name: one", "name: two"))
    expect(done.returncode == 0 and of_type(log, "call_start")[-1]["provider"] == "codex", done)
    # only the user's own configuration can trust it
    os.mkdir(box.cwd + "/.segue")
    with open(box.cwd + "/.segue/config.yaml", "w") as f:
        json.dump({"providers": {"gemini": {"trust_project": True}}}, f)
    config(box, providers=providers)
    done, log = run_with(box, "gemini", workflow=WORKFLOW.replace("name: one", "name: three"))
    expect(done.returncode == 2 and b"sets hooks" in done.stderr, done)
    providers["gemini"]["trust_project"] = [box.cwd]
    config(box, providers=providers)
    done, log = run_with(box, "gemini", workflow=WORKFLOW.replace("name: one", "name: four"))
    expect(done.returncode == 0, done.stdout, done.stderr)
    # what is harmless may be there
    del providers["gemini"]["trust_project"]
    config(box, providers=providers)
    for i, text in enumerate(('{"ui": {"theme": "dark"}, // mine\n}', '{"theme": "dark"}')):
        Path(settings).write_text(text)
        done, log = run_with(box, "gemini", workflow=WORKFLOW.replace("one", f"five{i}"))
        expect(done.returncode == 0, text, done.stdout, done.stderr)


def an_agent_that_shares_its_name_can_be_installed(box):
    done = box.segue("doctor", "--json", env={"PATH": "/usr/bin:/bin"})
    remedies = {f["what"]: f.get("remedy") or "" for f in json.loads(done.stdout)["findings"]}
    expect("npm install -g @google/gemini-cli" in remedies["provider gemini"], remedies)


def doctor_lists_what_nobody_asked_for(box):
    bare = {"PATH": "/usr/bin:/bin"}
    said = box.segue("doctor", "--quick", env=bare).stdout.decode()
    expect("agents that are not installed: aider, claude, " in said, said)
    expect("provider claude:" not in said and "npm install" not in said, "no page of remedies", said)
    every = box.segue("doctor", "--quick", "--all", env=bare).stdout.decode()
    expect("provider claude: the program claude is not installed" in every, every)
    one = box.segue("doctor", "--quick", "claude", env=bare)
    said = one.stdout.decode()
    expect(one.returncode == 1 and "problem  provider claude: " in said, one)
    expect("@anthropic-ai/claude-code" in said and "codex" not in said, said)
    box.segue("doctor", "cluade", env=bare, status=2, err=b"did you mean claude?")
    config(box, providers={"codex": {"model": "m"}})
    said = box.segue("doctor", "--quick", env=bare).stdout.decode()
    expect("provider codex: the program codex is not installed" in said, "it was set up", said)
    told = json.loads(box.segue("doctor", "--quick", "--json", env=bare).stdout)
    expect("provider claude" in {f["what"] for f in told["findings"]}, "programs are told all")
    # a key says that it is wanted
    said = box.segue("doctor", "anthropic", env={"ANTHROPIC_API_KEY": "k", "https_proxy": ""})
    expect(said.returncode == 1 and b"provider anthropic: " in said.stdout, said)


def doctor_says_whether_services_linger(box):
    bare = ["bwrap", "--unshare-user", "--uid", "65534", "--gid", "65534", "--bind", "/", "/", "--dev", "/dev",
            "--tmpfs", "/run", "--tmpfs", "/var/lib"]
    needs("bwrap")
    if subprocess.run([*bare, "true"], capture_output=True).returncode != 0:
        return "skipped: bwrap cannot make a namespace of users here"
    systemd = [*bare, "--dir", "/run/systemd/system"]
    lingers = [*systemd, "--dir", "/var/lib/systemd/linger/nobody"]
    for prefix, wanted in ((bare, None), (systemd, "note"), (lingers, "ok")):
        told = json.loads(box.segue("doctor", "--quick", "--json", prefix=prefix).stdout)
        states = [f["state"] for f in told["findings"] if f["what"] == "services"]
        expect(states == ([wanted] if wanted else []), prefix, told)


MINE = r"""
import json, os, re, sys
how, prompt, memory = HOW, sys.stdin.read(), DIR + "/memory"
word, line, say = re.search("nothing else: (\S+)", prompt), re.search("only line is (\S+)\.", prompt), "Hello."
if how == "broken" and "--version" not in sys.argv:
    sys.exit("boom")
if how != "mum":
    print(json.dumps({"kind": "hello", "conversation": "c-1"}))
if word and how != "deaf":
    say = word.group(1)
    open(memory, "w").write(say)
elif "Which word" in prompt and "--continue" in sys.argv and how != "forgets":
    say = open(memory).read()
elif line and "--write" in sys.argv and how != "idle":
    open("note.txt", "w").write(line.group(1) + "\n")
    if how != "hidden":
        print(json.dumps({"kind": "tool", "name": "write", "id": "t"}))
elif "every test passed" in prompt:
    say = "It is well." if how == "prose" else json.dumps({"reason": "r", "step": 1 if how == "wrong" else 2})
print(json.dumps({"kind": "bye", "say": say, "in": 11, "out": 7}))
"""
MINE_PROFILE = """summary: mine
program: %s
argv: [[--continue, "{session}"], "{permission}"]
permission: {edit: [--write]}
events:
  - {when: {/kind: hello}, session: /conversation}
  - {when: {/kind: tool}, tool: {name: /name, id: /id, state: end}}
  - {when: {/kind: bye}, usage: {input: /in, output: /out}, text: /say, end: ok}
"""


def doctor_tries_what_it_is_told(box):
    path = box.file("mine.py", "")
    box.config({"sandbox": {"level": "off"}})
    program_path = program(box, "mine", f'exec {sys.executable} {path} "$@"\n')
    profile = box.dir + "/home/config/segue/providers/mine.yaml"
    os.makedirs(os.path.dirname(profile), exist_ok=True)
    Path(profile).write_text(MINE_PROFILE % program_path)
    everything = ["an answer", "a conversation", "a tool", "a judge"]
    for how, what, text, remedy in (
            ("good", None, "", ""), ("deaf", "an answer", "does not fit the prompt: Hello.", "argv, %s, line 3: the prompt may not have reached it"),
            ("forgets", "a conversation", "does not know what was said before", "line 3: {session}"),
            ("mum", "a conversation", "no event names its conversation", "events, %s, line 5"),
            ("idle", "a tool", "it wrote no file", "permission, %s, line 4"), ("hidden", "a tool", "no event names the tool", "line 5"),
            ("prose", "a judge", "no verdict", "schema, which the profile lacks"), ("wrong", "a judge", "it chose rule 1, and 2 is right", ""),
            ("broken", "an answer", "crashed: ", "line 3")):
        Path(path).write_text(MINE.replace("HOW", repr(how)).replace("DIR", repr(box.dir)))
        done = box.segue("doctor", "mine", "--try", "--json", status=1 if what else 0)
        found = {f["what"]: f for f in json.loads(done.stdout)["findings"]}
        bad = {w: f for w, f in found.items() if f["state"] == "problem"}
        expect(("mine, " + what in bad if what else not bad), how, bad)
        for good in everything if how not in ("broken", "deaf") else []:
            expect(good == what or found["mine, " + good]["state"] == "ok", how, good, found)
        expect(how != "good" or "11+7 tokens" in found["mine, an answer"]["text"], found)
        if what:
            said = bad["mine, " + what]
            expect(text in said["text"] and (remedy.replace("%s", profile)) in (said["remedy"] or ""), how, said)
    expect(not os.path.exists(box.dir + "/home/state/segue/logs") or not [n for n in os.listdir(box.dir + "/home/state/segue/logs") if n.endswith("ndjson")],
           "a log was kept")
    box.segue("doctor", "--try", status=2, err="name the backends")


def an_old_program_is_named(box):
    old = program(box, "codex", "case $1 in --version) echo codex-cli 0.0.9; exit;; esac\n"
                  "echo 'error: unexpected argument --json' >&2\nexit 2\n")
    config(box, providers={"codex": {"program": old}})
    _, log = run_with(box, "codex")
    error = of_type(log, "call_end")[0]["error"]
    expect(error["class"] == "not_found" and "0.0.9" in error["message"] and
           "npm install" in error["message"], error)


def commands_say_what_there_is(box):
    good = program(box, "claude", "echo '2.1.329 (Claude Code)'\n")
    old = program(box, "codex", "echo 'codex-cli 0.0.9'\n")
    broken = program(box, "gemini", "echo 'cannot start' >&2\nexit 3\n")
    config(box, provider="claude", providers={"claude": {"program": good},
                                              "codex": {"program": old},
                                              "gemini": {"program": broken}})
    env = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k"}
    done = box.segue("providers", "--json", env=env, status=0)
    rows = {p["name"]: p for p in json.loads(done.stdout)["providers"]}
    expect(rows["claude"]["version"] == "2.1.329" and rows["claude"]["usable"] is True, rows)
    expect("too old" in rows["codex"]["problem"] and rows["codex"]["usable"] is False, rows)
    expect("cannot start" in rows["gemini"]["problem"], rows["gemini"])
    expect(rows["qwen"]["installed"] is False and "npm install" in rows["qwen"]["remedy"], rows)
    table = box.segue("providers", "--quick", env=env).stdout.decode()
    expect(all(n in table for n in DIALECTS), table)
    names = box.segue("providers", "--names").stdout.decode().split()
    expect(set(DIALECTS) <= set(names), names)
    box.segue("doctor", "--json", env=env, status=1)
    box.segue("doctor", status=1, out=b"ANTHROPIC_API_KEY")
    config(box, provider="claude", providers={"claude": {"program": good}})
    box.segue("doctor", env=env, status=0)
    shown = box.segue("providers", "show", "codex").stdout.decode()
    expect("thread.started" in shown, shown)
    for words in (["show"], ["show", "nobody"], ["show", "script"], ["test", "claude"], ["fly"],
                  ["test", "claude", "--transcript", "/nonexistent"]):
        done = box.segue("providers", *words)
        expect(done.returncode != 0 and done.stderr, words, done)


def mistakes_in_files_have_their_place(box):
    folder = config(box)
    path = folder + "/providers/mine.yaml"
    Path(path).write_text("summary: mine\nprogram: x\nargv: ['{modle}']\nevents: []\n")
    workflow = box.file("one.yaml", WORKFLOW)
    for words, status in ((["providers"], 2), (["lint", workflow], 0),
                          (["run", workflow, "--provider", "mine"], 2)):
        done = box.segue(*words, err=(b"mine.yaml:3:8: ", b"{model}"))
        expect(done.returncode == status, words, done.returncode)
    os.unlink(path)
    config(box, providers={"claude": {"progam": "x"}})
    box.segue("providers", status=2, err=b'did you mean "program"')
    config(box, providers={"cluade": {"program": "x"}})
    for words in (["providers"], ["doctor"]):
        done = box.segue(*words)
        expect(b"providers.cluade" in done.stdout + done.stderr and done.returncode, words, done)


def a_recorded_limit_is_no_answer(box):
    """A recording is read as a call is: a subscription's limit is a class, not an answer."""
    def end_of_words(words):
        told = {"type": "result", "subtype": "success", "is_error": False, "result": words, "session_id": "s"}
        text = '# {"exit": 0}\n--- stdout ---\n' + json.dumps(told) + "\n"
        done = box.segue("providers", "test", "claude", "--transcript", box.file("t.txt", text))
        return json.loads(done.stdout.splitlines()[-1])

    end = end_of_words("You've hit your session limit \u00b7 resets 3pm (UTC)")
    expect(end["class"] == "rate_limit" and 0 < end["retry_after_ms"] <= 24 * 3600 * 1000, end)
    end = end_of_words("The page says: You've hit your session limit \u00b7 resets 3pm (UTC). I mended it.")
    expect(end["class"] == "ok" and end["retry_after_ms"] is None, end)


def recordings_are_read(box):
    text = ('# {"argv": ["x"], "exit": 1, "timed_out": false}\n--- stdout ---\n'
            + json.dumps({"type": "session", "id": "s"}) + "\n"
            + json.dumps({"type": "turn_end", "message": {
                "role": "assistant", "stopReason": "error", "errorMessage": "503 busy"}})
            + "\n\n--- stderr ---\nnothing\n")
    done = box.segue("providers", "test", "pi", "--transcript", box.file("t.txt", text))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    expect(done.returncode == 0 and lines[0] == {"event": "session", "id": "s"}, done)
    expect(lines[-1]["event"] == "end" and lines[-1]["class"] == "overloaded", lines)
    for wrong in ("", "no header\n", "# {\n", '# {"exit": 0}\nnothing marked\n',
                  '# {"argv": []}\n--- stdout ---\n', '# {"exit": 900}\n--- stdout ---\n'):
        box.segue("providers", "test", "pi", "--transcript", box.file("w.txt", wrong), status=2, err=b"w.txt:")


if __name__ == "__main__":
    sys.exit(main([a_clouds_variables_go_with_their_switch, an_end_that_is_not_known_is_no_success, profiles_for_more_agents_read_their_lines, a_missing_program_has_its_package_named,
                   a_judge_is_not_told_of_a_tool_that_its_protocol_lacks,
                   one_word_swaps_them, a_command_that_ran_on_is_told, errors_keep_their_class, long_answers_are_blobs,
                   a_limit_of_a_subscription_is_no_answer, tokens_are_those_of_the_call,
                   keys_stay_out_of_the_log,
                   keys_of_the_configuration_stay_out_too, the_profile_of_the_readme_works,
                   a_mistake_in_one_profile_is_no_others,
                   what_a_project_ships_changes_nothing,
                   a_project_that_would_steer_its_agent_is_refused,
                   an_agent_that_shares_its_name_can_be_installed, doctor_lists_what_nobody_asked_for, doctor_says_whether_services_linger, doctor_tries_what_it_is_told, an_old_program_is_named, commands_say_what_there_is,
                   mistakes_in_files_have_their_place, recordings_are_read,
                   a_recorded_limit_is_no_answer]))
