#!/usr/bin/env python3
"""Steering: what a person says to a session while it works reaches the running turn where its client
has a way, else the next call of work; the judges read it, nothing is lost, and only a person may. The
client is a stand-in that takes messages as Claude Code does: between two tools, or after the turn's
end, which begins another turn. With SEGUE_REAL_CLIENTS=1 and SEGUE_REAL_CLIENTS_DIR the real claude and
codex are told, too."""
import http.server
import json
import os
import queue
import sys
import threading

from daemon import ROOT, DaemonBox
from support import expect, flow, main, of_type, prompt_text, records, skip, verified

# A call goes on when the test has made the file tool-N, result-N: N is its number. "heard" has what its
# model read of the messages that came after the prompt.
CLIENT = r"""#!/usr/bin/env python3
import json, os, queue, sys, threading, time
here, args, said = os.path.dirname(os.path.abspath(__file__)), sys.argv[1:], queue.Queue()
native = "--input-format" in args
call = len(os.listdir(here + "/calls")) + 1
me = args[args.index("--resume") + 1] if "--resume" in args else args[args.index("--session-id") + 1]
def out(event):
    print(json.dumps(dict(event, session_id=me)), flush=True)
def listen():
    for line in iter(sys.stdin.readline, ""):
        value = json.loads(line)
        if value["type"] == "user":
            said.put(value)
    said.put(None)
def until(name):
    open(here + "/at-" + name, "w").close()
    while not os.path.exists(here + "/" + name):
        time.sleep(0.01)
def hear(wait):
    # returns how many messages the model has now
    n = 0
    while wait or not said.empty():
        value = said.get()
        if value is None:
            return n
        wait, n = False, n + 1
        if "--replay-user-messages" in args:
            out(dict(value, isReplay=True))
        with open(here + "/heard", "a") as f:
            f.write("%d %s\n" % (call, value["message"]["content"][0]["text"]))
    return n
open(here + "/calls/%d" % call, "w").write(" ".join(args))
if native:
    threading.Thread(target=listen, daemon=True).start()
    said.get()
else:
    sys.stdin.read()
out({"type": "system", "subtype": "init"})
until("tool-%d" % call)
if os.path.exists(here + "/fail-%d" % call):
    out({"type": "result", "subtype": "success", "is_error": True, "api_error_status": 529, "result": "Overloaded"})
    sys.exit(1)
more = native and hear(False)
until("result-%d" % call)
turn = 1
while True:
    out({"type": "result", "subtype": "success", "is_error": False, "result": "answer %d.%d" % (call, turn),
         "usage": {"input_tokens": 10, "output_tokens": 1}})
    if not native or not hear(True):
        break
    turn += 1
    out({"type": "system", "subtype": "init"})
"""
FLOW = flow("steering_flow")
JUDGE = {"text": json.dumps({"replies": [{"purpose": "judge", "structured": {"reason": "r", "step": 1}, "times": 0}]})}


class SteerBox(DaemonBox):
    def client(self, transport="native"):
        os.mkdir(self.dir + "/calls")
        os.chmod(self.file("claude", CLIENT), 0o755)
        self.config({"sandbox": "off", "wait_for_outage": "off",
                     "providers": {"claude": {"program": self.dir + "/claude", "transport": transport}}})

    def begin(self, transport="native"):
        self.client(transport)
        self.serve()
        return self.submit(self.file("w.yaml", FLOW), JUDGE)

    def at(self, name):
        """Waits until the client stands there."""
        self.until(lambda: os.path.exists(f"{self.dir}/at-{name}"), "the client does not get to", name)

    def pass_on(self, *names):
        for name in names:
            self.file(name, "")

    def say(self, sid, text, *more, status=0, wait=False):
        done = self.segue("steer", sid, text, *(() if wait else ("--no-wait",)), *more)
        expect(done.returncode == status, text, done.returncode, done.stdout, done.stderr)
        return (done.stderr if status else done.stdout).decode().strip()

    def heard(self):
        with open(self.dir + "/heard") as f:
            return f.read().splitlines()

    def over(self, sid, status="complete"):
        self.wait_status(sid, status)
        verified(self, self.log(sid))
        self.check_all()
        log = records(self.log(sid))
        lines = "\n".join(json.dumps({"data": r}) for r in log).encode()
        done = self.segue("check", "--batch", ROOT + "/schemas/session-log.json", "-", stdin=lines)
        wrong = [line for line in done.stdout.splitlines() if b'"valid":true' not in line]
        expect(done.returncode == 0 and len(done.stdout.splitlines()) == len(log) and not wrong, wrong, done.stderr)
        return log


def calls(log, purpose):
    return [r for r in of_type(log, "call_start") if r["purpose"] == purpose]


def the_running_turn_reads_it(box: SteerBox):
    sid = box.begin()
    box.at("tool-1")
    told = box.say(sid, "Use PostgreSQL.")
    expect("call 1 was told" in told, told)
    box.say(sid, "And no ORM.", "--name", "Ada")
    box.pass_on("tool-1")
    box.at("result-1")
    expect(box.heard() == ["1 Use PostgreSQL.", "1 And no ORM."], box.heard())
    process = box.start("steer", sid, "third")
    box.until(lambda: len(of_type(records(box.log(sid)), "steer")) == 3, "it is not said")
    box.pass_on("result-1")  # too late for that turn: the client begins another with it
    expect(process.communicate()[0] == b"reached call 1\n", "it did not say that it was read")
    box.pass_on("tool-2", "result-2")
    log = box.over(sid)
    ends = [r for r in of_type(log, "call_end") if r["call"] == 1]
    expect(ends[0]["text"] == "answer 1.2" and ends[0]["usage"]["input"] == 20, ends)
    said = of_type(log, "steer")
    expect([(r["text"], r["turn"], r["call"]) for r in said] ==
           [("Use PostgreSQL.", 1, 1), ("And no ORM.", 1, 1), ("third", 1, 1)], said)
    expect(said[1]["by"]["name"] == "Ada" and "user" in said[1]["by"], said[1])
    read = [(r["call"], r["data"]["said"]) for r in of_type(log, "call_event") if r["event"] == "steer"]
    expect(read == [(1, r["seq"]) for r in said], read)
    expect(not any("said" in r for r in of_type(log, "call_start")), "what was read stands in a prompt")
    for judge in calls(log, "judge"):  # of the later turn as well
        expect('["Use PostgreSQL.","And no ORM.","third"]' in prompt_text(log, judge), prompt_text(log, judge))
    box.pass_on("tool-3", "result-3")
    scenario = box.file("s.json", JUDGE["text"])
    fork = box.segue("fork", sid, "--from", "work", "-s", scenario, "--json")  # its judges are told, too
    expect(fork.returncode == 0, fork)
    child = [json.loads(line) for line in fork.stdout.splitlines()]
    expect('["Use PostgreSQL.","And no ORM.","third"]' in prompt_text(child, calls(child, "judge")[0]) and
           not any("said" in r for r in of_type(child, "call_start")), "the fork")
    shown = box.segue("show", sid).stdout.decode()
    expect("Ada said: And no ORM. (reached call 1)" in shown, shown)
    expect("it has ended already" in box.say(sid, "too late", status=1), "it is told after its end")
    box.end()


def without_a_channel_the_next_call_has_it(box: SteerBox):
    sid = box.begin("exec")
    box.at("tool-1")
    for text in ("first\nof two lines", "second"):
        expect(box.say(sid, text, wait=True) == "the next call of work will have it", text)
    box.pass_on("tool-1", "result-1", "tool-2", "result-2")
    log = box.over(sid)
    work = calls(log, "execute")
    said = [r["seq"] for r in of_type(log, "steer")]
    expect("said" not in work[0] and work[1]["said"] == said, work)
    prompt = prompt_text(log, work[1])
    expect(prompt.startswith("A person said this while the work went on:\n\nfirst\nof two lines\n\n"), prompt)
    expect(prompt.index("two lines") < prompt.index("second") < prompt.index("Do it."), prompt)
    expect(all('["first\\nof two lines","second"]' in prompt_text(log, r) for r in calls(log, "judge")), "judges")
    box.end()


def a_retry_has_it(box: SteerBox):
    sid = box.begin()
    box.at("tool-1")
    box.say(sid, "Use PostgreSQL.")
    box.pass_on("fail-1", "tool-1")  # it ends without reading it
    box.at("tool-2")
    log = records(box.log(sid))
    again = of_type(log, "call_start")[1]
    expect((again["call"], again["attempt"], again["said"]) == (1, 2, [of_type(log, "steer")[0]["seq"]]), again)
    expect("may have read it already:\n\nUse PostgreSQL.\n\n" in prompt_text(log, again), prompt_text(log, again))
    box.pass_on("fail-2", "tool-2")
    box.at("tool-3")
    third = of_type(records(box.log(sid)), "call_start")[2]
    expect("prompt_of" in third and "said" not in third, "it is said again to the same call", third)
    box.pass_on("tool-3", "result-3", "tool-4", "result-4")
    log = box.over(sid)
    expect("said" not in calls(log, "execute")[-1], "a later turn is told again")
    box.end()


def a_kill_loses_nothing(box: SteerBox):
    sid = box.begin()
    box.at("tool-1")
    box.say(sid, "read")
    box.pass_on("tool-1")
    box.at("result-1")
    box.until(lambda: any(r["event"] == "steer" for r in of_type(records(box.log(sid)), "call_event")), "not read")
    box.say(sid, "unread")
    box.end(9)
    box.serve()
    box.at("tool-2")
    log = records(box.log(sid))
    again, said = of_type(log, "call_start")[1], of_type(log, "steer")
    expect(again["repeats"] == 1 and again["said"] == [r["seq"] for r in said], again)
    prompt = prompt_text(log, again)
    expect(prompt.count("may have read it already") == 2 and prompt.index("read\n") < prompt.index("unread\n"), prompt)
    box.pass_on("tool-2", "result-2", "tool-3", "result-3")
    log = box.over(sid)
    expect("said" not in calls(log, "execute")[-1], "a later turn is told again")
    box.end()


def a_stopped_one_keeps_it(box: SteerBox):
    box.client("exec")
    flow = box.file("w.yaml", FLOW)
    scenario = box.file("s.json", JUDGE["text"])
    run = box.start("run", flow, "--scenario", scenario, "--logs", box.logs)
    box.at("tool-1")
    sid = os.path.basename(box.log_paths()[0]).removesuffix(".ndjson")
    expect("in another program (segue run)" in box.say(sid, "x", status=1), "a session of segue run is told")
    run.terminate()
    run.communicate()
    for text in ("kept", "also kept"):
        expect(box.say(sid, text, wait=True) == "call 1 will have it", text)
    for word, text in ((sid, " "), (sid, "x" * 16385), ("0000", "x")):
        box.say(word, text, status=2)
    expect(records(box.log(sid))[-1]["type"] == "steer", "it does not stay stopped")
    shown = box.segue("show", sid).stdout.decode()
    expect("said: also kept (no call has read it yet)" in shown, shown)
    box.pass_on("tool-2", "result-2", "tool-3", "result-3")
    done = box.segue("resume", sid)
    expect(done.returncode == 0, done.stderr)
    log = records(box.log(sid))
    again = of_type(log, "call_start")[1]
    expect("kept\n\n" in prompt_text(log, again) and len(again["said"]) == 2, again)
    verified(box, box.log(sid))
    box.say(sid, "too late", status=1)
    # one of a daemon, which waits for its turn and then stops
    box.serve("--max-sessions", "1")
    first, second = (box.submit(flow, JUDGE) for _ in range(2))
    box.at("tool-4")
    expect(box.say(second, "early") == "call 1 will have it", "the one in the queue")
    box.pass_on("tool-4", "result-4", "tool-5", "result-5", "tool-6", "result-6", "tool-7", "result-7")
    box.wait_status(first, "complete")
    log = box.over(second)
    expect(calls(log, "execute")[0]["said"] == [2] and not of_type(log, "session_resume"), log[:4])
    box.end()


def requests_are_checked(box: SteerBox):
    sid = box.begin("exec")
    box.at("tool-1")
    path = f"/v1/sessions/{sid}/steer"
    for body in ({}, {"text": 1}, {"text": ""}, {"text": "x", "movement": "plan"}, {"text": "x" * 16385},
                 {"text": "x", "name": "a\nb"}):
        got, value = box.ask("POST", path, body)
        expect(got == 422, body, got, value)
    got, value = box.ask("POST", path, {"text": "x"})
    expect(got == 202 and value["session"] == sid and "call" not in value, got, value)
    expect(box.ask("POST", "/v1/sessions/0000/steer", {"text": "x"})[0] == 404, "an unknown one")
    done = box.segue("steer", sid, "--json", stdin=b"from a pipe\n")
    expect(json.loads(done.stdout)["said"] and done.returncode == 0, done.stdout, done.stderr)
    expect(of_type(records(box.log(sid)), "steer")[-1]["text"] == "from a pipe", "stdin")
    box.pass_on("tool-1", "result-1", "tool-2", "result-2")
    box.over(sid)
    expect(box.ask("POST", path, {"text": "x"})[0] == 409, "one that has ended")
    box.end()


class Model(http.server.BaseHTTPRequestHandler):
    """A model behind either client: the first request of work is answered by a command, then by words.
    Each waits until the test lets it go on."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        body, model = json.loads(asked), self.server
        model.asked.put(asked)
        if body.get("tools"):
            model.go.get()
        runs = body.get("tools") and '"tool_result"' not in asked and 'function_call_output"' not in asked
        answer = (self.of_claude if "/messages" in self.path else self.of_codex)(body, runs).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def stream(self, *events):
        return "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)

    def of_claude(self, body, runs):
        block = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}} if runs else {"type": "text", "text": ""}
        delta = {"type": "input_json_delta", "partial_json": '{"command": "true", "description": "x"}'}
        if not runs:
            delta = {"type": "text_delta", "text": "All is done."}
        return self.stream(
            {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": [],
                                                  "model": body.get("model"), "usage": {"input_tokens": 1, "output_tokens": 1}}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta}, {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use" if runs else "end_turn"}, "usage": {"output_tokens": 1}},
            {"type": "message_stop"})

    def of_codex(self, body, runs):
        item = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "All is done."}]}
        if runs:
            item = {"type": "function_call", "id": "f", "call_id": "c", "name": "exec_command", "arguments": '{"cmd": "true"}'}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        return self.stream({"type": "response.created", "response": {"id": "r"}},
                           {"type": "response.output_item.done", "output_index": 0, "item": item},
                           {"type": "response.completed", "response": {"id": "r", "output": [item], "usage": usage}})


def the_real_clients_read_it():
    folder = os.environ.get("SEGUE_REAL_CLIENTS_DIR", "")
    if os.environ.get("SEGUE_REAL_CLIENTS") != "1" or not folder:
        skip("SEGUE_REAL_CLIENTS is not 1, or SEGUE_REAL_CLIENTS_DIR is not set")
    import real_clients_test as clients
    for name in ("claude", "codex"):
        for late in (False, True):
            with SteerBox() as box:
                model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
                model.asked, model.go = queue.Queue(), queue.Queue()
                threading.Thread(target=model.serve_forever, daemon=True).start()
                clients.SANDBOX["level"] = "off"
                api = type("Api", (), {"url": lambda _, scenario: f"http://127.0.0.1:{model.server_port}"})()
                box.env.update(clients.setup_client(name + " native", box, api, "", folder))
                box.env["PATH"] += ":" + os.environ["PATH"]  # node, for what wraps codex
                box.serve()
                flow = FLOW.replace("provider: claude", "provider: " + name).replace("instruction: P", "edit: true\n    run: ['true']\n    instruction: P")
                sid = box.submit(box.file("w.yaml", flow), JUDGE)
                asked = [model.asked.get()]
                if late:  # the turn's last request is being answered
                    model.go.put(1)
                    asked.append(model.asked.get())
                process = box.start("steer", sid, "USE-POSTGRESQL")
                box.until(lambda: of_type(records(box.log(sid)), "steer"), "it is not said")
                model.go.put(1)
                asked.append(model.asked.get())
                expect([("USE-POSTGRESQL" in a) for a in asked] == [False] * (1 + late) + [True], name, late)
                for _ in range(9):
                    model.go.put(1)
                expect(process.communicate()[0] == b"reached call 1\n", name, late)
                log = box.over(sid)
                expect(not [r for r in of_type(log, "call_start") if "said" in r], name, late)
                expect("USE-POSTGRESQL" in prompt_text(log, calls(log, "judge")[0]), name, late)
                box.end()
                model.shutdown()


if __name__ == "__main__":
    sys.exit(main([the_running_turn_reads_it, without_a_channel_the_next_call_has_it, a_retry_has_it,
                   a_kill_loses_nothing, a_stopped_one_keeps_it, requests_are_checked,
                   the_real_clients_read_it]))
