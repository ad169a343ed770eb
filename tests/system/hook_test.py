#!/usr/bin/env python3
"""segue hook: an agent stops when its gate and a judgment say so, is told why it must go on, and is not
held up by a judge that cannot be read. With SEGUE_REAL_CLIENTS=1 the real Claude Code runs the hook."""
import json
import os
import shutil
import subprocess
import sys
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import mcp_test
from support import WAIT_S, Box, expect, main, of_type, records, skip, verified

RULES = ("--rule", "done", "--rule", "not done")


def judge(box, script):
    """A judge that says what a program prints, as an agent program would be one."""
    path = box.file("judge.sh", "#!/bin/sh\ncat >/dev/null\n" + script)
    os.chmod(path, 0o755)
    os.makedirs(box.dir + "/home/config/segue/providers", exist_ok=True)
    with open(box.dir + "/home/config/segue/providers/fake.yaml", "w", encoding="utf-8") as f:
        f.write(f"summary: a judge for tests\nprogram: {path}\nargv: []\noutput: text\n")


def stop(box, text="All is done.", session="s1", *words, **more):
    event = {"session_id": session, "cwd": box.cwd, "hook_event_name": "Stop", "last_assistant_message": text, **more}
    done = box.segue("hook", "claude-stop", *RULES, "--logs", box.logs, "--judge-provider", "fake", *words,
                     stdin=json.dumps(event).encode())
    return done, (json.loads(done.stdout) if done.stdout else None)


def the_verdict_decides(box):
    judge(box, """echo '{"reason": "the tests are missing", "step": 2}'\n""")
    done, told = stop(box)
    expect(told["decision"] == "block" and "the tests are missing" in told["reason"] and '"not done"' in told["reason"], done)
    judge(box, """echo '{"reason": "it is there", "step": 1}'\n""")
    done, told = stop(box)
    expect(told == {} and done.returncode == 0, done)
    verified(box, *box.log_paths())
    log = records(box.log_paths()[0])
    expect(of_type(log, "judgment")[0]["method"] == "structured_output", "the judgment is in a log")
    expect(not [n for n in os.listdir(box.dir + "/tmp") if "segue-hook" in n], "nothing stays in the temporary folder")


def a_gate_comes_first_and_is_evidence(box):
    judge(box, """touch judged; echo '{"reason": "it is there", "step": 1}'\n""")
    done, told = stop(box, "All is done.", "s1", "--gate", "echo two tests failed; exit 3")
    expect(told["decision"] == "block" and "two tests failed" in told["reason"] and "exit 3" in told["reason"], done)
    expect(not os.path.exists(box.cwd + "/judged"), "it was judged although the gate failed")
    done, told = stop(box, "All is done.", "s1", "--gate", "true")
    expect(told == {}, done)
    prompt = box.segue("show", "--logs", box.logs, "last", "answer", "--full").stdout.decode()
    expect("Measured by the program" in prompt and "gate" in prompt, prompt)


def noes_are_bounded_and_a_silent_judge_holds_up_nobody(box):
    judge(box, """echo '{"reason": "no", "step": 2}'\n""")
    for i in range(2):
        expect(stop(box, "x", "s1", "--most", "2")[1].get("decision") == "block", i)
    done, told = stop(box, "x", "s1", "--most", "2")
    expect("decision" not in told and "lets it stop after 2" in told["systemMessage"], done)
    expect(stop(box, "x", "s2", "--most", "2")[1].get("decision") == "block", "another conversation counts for itself")
    judge(box, "echo hm\n")
    done, told = stop(box, "x", "s3")
    expect("decision" not in told and "could not judge" in told["systemMessage"], done)


def the_transcript_is_read_where_the_event_has_no_answer(box):
    judge(box, """echo '{"reason": "ok it is so", "step": 1}'\n""")
    lines = [{"type": "user", "message": {"content": "go"}},
             {"type": "assistant", "message": {"content": [{"type": "text", "text": "First words."}]}},
             {"type": "assistant", "message": {"content": [{"type": "text", "text": "The last words."}]}},
             {"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "x", "input": {}}]}}]
    path = box.file("t.jsonl", "".join(json.dumps(line) + "\n" for line in lines) + "{cut")
    done, told = stop(box, None, "s1", transcript_path=path)
    expect(told == {}, done)
    ends = of_type(records(box.log_paths()[0]), "call_end")
    expect(ends[0]["text"] == "The last words.", ends)
    for event in (b"", b"[]", b"{}", b"no", json.dumps({"transcript_path": "/nowhere"}).encode()):
        done = box.segue("hook", "claude-stop", *RULES, stdin=event)
        expect(done.returncode == 1 and done.stdout == b"" and done.stderr, "2 would keep the agent from ending", event, done)
    expect(box.segue("hook", "claude-stop", "--rule", "one", stdin=b"{}").returncode == 1, "one rule")
    expect(box.segue("hook", "claude-stop", "--gaet", "x", *RULES, stdin=b"{}").returncode == 1, "a misspelt option")
    expect(box.segue("hook", "other", *RULES, stdin=b"{}").returncode == 2, "another word")


def a_transcript_is_a_file(box):
    """Nothing else is opened: a pipe would wait for good, a device would never end."""
    judge(box, """echo '{"reason": "ok it is so", "step": 1}'\n""")
    os.mkfifo(box.dir + "/pipe")
    for path in (box.dir + "/pipe", "/dev/zero", box.dir):
        done, _ = stop(box, None, "s1", transcript_path=path)
        expect(done.returncode == 1 and b"is not a file" in done.stderr, path, done)
    line = json.dumps({"type": "assistant", "message": {"content": "The last words."}}) + "\n"
    with open(box.dir + "/long", "wb") as f:  # its end counts
        f.truncate(300 << 20)
        f.seek(0, os.SEEK_END)
        f.write(b"\n" + line.encode())
    done, told = stop(box, None, "s1", transcript_path=box.dir + "/long")
    expect(told == {}, done)


def install_shows_and_asks(box):
    path = box.dir + "/home/.claude/settings.json"
    words = ("hook", "install", *RULES, "--gate", "echo it's")
    done = box.segue(*words)
    expect(b"claude-stop" in done.stdout and b"nothing was written" in done.stderr and not os.path.exists(path), done)
    done = box.segue(*words, "--yes")
    settings = json.loads(Path(path).read_text(encoding="utf-8"))
    line = settings["hooks"]["Stop"][0]["hooks"][0]["command"]
    expect(done.returncode == 0 and "--gate 'echo it'\\''s'" in line and "--yes" not in line, line)
    settings["model"] = "kept"
    with open(path, "w", encoding="utf-8") as f:
        json.dump(settings, f)
    expect(box.segue(*words, "--yes").returncode == 0, "again")
    settings = json.loads(Path(path).read_text(encoding="utf-8"))
    expect(settings["model"] == "kept" and len(settings["hooks"]["Stop"]) == 1, "the gate would run twice:", settings)
    settings["hooks"]["Stop"].insert(0, {"hooks": [{"type": "command", "command": "somebody's"}]})
    with open(path, "w", encoding="utf-8") as f:
        json.dump(settings, f)
    expect(box.segue("hook", "install", *RULES, "--gate", "make test", "--yes").returncode == 0, "another gate")
    with open(path, encoding="utf-8") as f:
        lines = [h["command"] for group in json.load(f)["hooks"]["Stop"] for h in group["hooks"]]
    expect(len(lines) == 2 and lines[0] == "somebody's" and "--gate 'make test'" in lines[1], lines)
    Path(path).write_text("[1]", encoding="utf-8")
    done = box.segue(*words, "--yes")
    expect(done.returncode != 0 and b"settings.json" in done.stderr, done)
    expect(Path(path).read_text(encoding="utf-8") == "[1]", "a file that is not understood stays")


def claude_runs_it():
    claude = os.environ.get("SEGUE_REAL_CLIENTS_DIR", "") + "/claude/node_modules/.bin/claude"
    if os.environ.get("SEGUE_REAL_CLIENTS") != "1" or not os.path.exists(claude):
        skip("SEGUE_REAL_CLIENTS is not 1, or SEGUE_REAL_CLIENTS_DIR has no claude")
    with Box() as box:
        judge(box, """echo '{"reason": "it is there", "step": 1}'\n""")
        gate = f"test -e {box.dir}/asked || {{ touch {box.dir}/asked; echo the gate says no; exit 1; }}"
        box.segue("hook", "install", *RULES, "--gate", gate, "--judge-provider", "fake", "--logs", box.logs, "--yes")
        api = ThreadingHTTPServer(("127.0.0.1", 0), mcp_test.Api)
        threading.Thread(target=api.serve_forever, daemon=True).start()
        env = {**box.env, "PATH": os.path.dirname(shutil.which("node")) + ":" + box.env["PATH"],
               "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{api.server_port}", "ANTHROPIC_API_KEY": "x",
               "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        done = subprocess.run([claude, "-p", "do it"], capture_output=True, env=env, cwd=box.cwd, timeout=WAIT_S,
                              stdin=subprocess.DEVNULL, check=False)
        api.shutdown()
        logs = [records(path) for path in box.log_paths()]
        expect([log[-1].get("outcome", log[-1]["type"]) for log in logs] and len(logs) == 2, done, len(logs))
        expect(of_type(logs[1], "judgment")[-1]["rule"] == 1, logs[1][-1])


if __name__ == "__main__":
    sys.exit(main([the_verdict_decides, a_gate_comes_first_and_is_evidence, noes_are_bounded_and_a_silent_judge_holds_up_nobody,
                   the_transcript_is_read_where_the_event_has_no_answer, a_transcript_is_a_file, install_shows_and_asks, claude_runs_it]))
