#!/usr/bin/env python3
"""A provider that is away: it is waited for by time, visibly, through signals and crashes."""
import json
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from daemon import DaemonBox
from support import WAIT_S, Box, at_once, end_of, expect, main, of_type, records, verified

FLOW = """
name: outage
movements:
  - name: work
    instruction: work on it
    rules:
      - {condition: done, next: COMPLETE}
"""
JUDGED = """
name: judged
provider: script
judge: {provider: away}
movements:
  - name: work
    instruction: work on it
    rules:
      - {condition: done, next: COMPLETE}
      - {condition: not done, next: ABORT}
"""


class Server:
    """An API that is overloaded until somebody says `back`, or for so many requests. `status` says what else it is;
    no request is answered while `answers` is not set."""

    def __init__(self, fails=1 << 30, status=529):
        self.fails, self.asked, self.status, server = fails, 0, status, self
        self.answers = threading.Event()
        self.answers.set()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                server.asked += 1
                number = server.asked
                server.answers.wait(WAIT_S)
                away = number <= server.fails
                reply = {"error": {"message": "Overloaded"}} if away else {
                    "choices": [{"index": 0, "finish_reason": "stop", "message": {
                        "role": "assistant", "content": '{"reason": "so", "step": 1}'}}]}
                data = json.dumps(reply).encode()
                self.send_response(server.status if away else 200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                try:
                    self.wfile.write(data)
                except OSError:
                    pass  # the call was cancelled

            def log_message(self, *words):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def back(self):
        self.fails = 0

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.http.shutdown()
        self.http.server_close()


def config(box, url, more=""):
    box.config("provider: away\nproviders:\n  away: {type: openai-chat, model: big, stream: false, "
               f"key_env: SEGUE_TEST_NO_KEY, base_url: \"{url}\"}}\n{more}")
    box.env["SEGUE_TEST_NO_KEY"] = "a-key-for-nobody"


def run_words(box, flow=FLOW, *more):
    return ["run", box.file("flow.yaml", flow), "--task", "t", "--cwd", box.cwd, "--logs", box.logs, *more]


def outages(log):
    return [r["outage"] for r in of_type(log, "call_end") if "outage" in r]


def seconds(outage):
    def of(text):
        return time.mktime(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")) + float(text[19:23])
    return of(outage["until"]) - of(outage["since"])


def wait_line(process):
    """The first line that the run prints, which it must do soon."""
    limit = threading.Timer(20, process.kill)
    limit.start()
    line = process.stdout.readline().decode()
    limit.cancel()
    expect("waiting: away: overloaded since " in line and ", next try " in line and ", until " in line and
           "Ctrl-C stops, segue resume goes on" in line, "it does not say that it waits:", line)
    return line


def it_goes_on_by_itself():
    """No setting, no terminal: a few failures, then an answer."""
    with Server(fails=2) as server, Box() as box:
        config(box, server.url)
        process = box.start(*run_words(box))
        wait_line(process)
        status, out, err = end_of(process)
        expect(status == 0, status, out, err)
        path = box.log_paths()[0]
        log = records(path)
        verified(box, path)
        met = outages(log)
        expect([o["tries"] for o in met] == [1, 2], met)
        expect(met[0]["since"] == of_type(log, "call_end")[0]["ts"] and met[0]["provider"] == "away", met)
        expect(abs(seconds(met[0]) - 60) < 0.01, "a provider that never answered gets a minute:", met)
        waits = [r["retry_in_ms"] for r in of_type(log, "call_end") if "outage" in r]
        expect(2500 <= waits[0] <= 5000 and 5000 <= waits[1] <= 10000, waits)


def it_stops_when_that_lasts_too_long():
    """The last attempt is made at the end of the time; a resume has that time again."""
    with Server() as server, Box() as box:
        config(box, server.url, "wait_for_outage: 4s\n")
        for more in (run_words(box), ["resume", "last", "--logs", box.logs]):
            begin, before = time.monotonic(), server.asked
            done = box.segue(*more)
            expect(done.returncode == 1 and b"STOPPED" in done.stdout and b"overloaded: " in done.stdout,
                   done.stdout, done.stderr)
            expect(time.monotonic() - begin >= 4, "it gave up early")
            expect(2 <= server.asked - before <= 4, server.asked)
        log = records(box.log_paths()[0])
        ends = [r["ts"] for r in of_type(log, "call_end")]
        expect(any(e >= outages(log)[0]["until"] for e in ends), ends, outages(log))
        expect(of_type(log, "session_stop")[0]["class"] == "overloaded", log[-1])


def lists_show_it():
    with Server() as server, Box() as box:
        config(box, server.url)
        process = box.start(*run_words(box))
        wait_line(process)
        row = json.loads(box.segue("ls", "--json", "--logs", box.logs).stdout)
        log = records(box.log_paths()[0])
        met = outages(log)[-1]
        expect(row["status"] == "waiting", row)
        waits = row["waiting"]
        expect((waits["for"], waits["provider"], waits["since"], waits["gives_up"]) ==
               ("overloaded", "away", met["since"], met["until"]), waits, met)
        expect(waits["since"] < waits["until"] <= waits["gives_up"], waits)
        listed = box.segue("ls", "--logs", box.logs, "--status", "waiting").stdout.decode()
        expect("away: overloaded since " + met["since"] in listed, listed)
        shown = box.segue("show", box.log_paths()[0]).stdout.decode()
        expect("away: overloaded since " in shown and "Ctrl-C" not in shown, shown)
        process.send_signal(signal.SIGINT)
        expect(end_of(process)[0] == 130, "it does not stop")
        stop = records(box.log_paths()[0])[-1]
        expect(stop["type"] == "session_stop" and stop["reason"] == "interrupted" and stop["resumable"], stop)
        server.back()
        done = box.segue("resume", "last", "--logs", box.logs)
        expect(done.returncode == 0, done.stdout, done.stderr)


def a_killed_run_goes_on_where_it_was():
    with Server() as server, Box() as box:
        config(box, server.url)
        process = box.start(*run_words(box))
        wait_line(process)
        process.send_signal(signal.SIGKILL)
        process.wait(WAIT_S)
        process.stdout.close()
        process.stderr.close()
        met = outages(records(box.log_paths()[0]))
        again = box.start("resume", "last", "--logs", box.logs)
        wait_line(again)
        server.back()
        status, out, err = end_of(again)
        expect(status == 0, status, out, err)
        path = box.log_paths()[0]
        verified(box, path)
        later = outages(records(path))
        expect([o["tries"] for o in later] == list(range(1, len(later) + 1)) and len(later) > len(met), later)
        expect(all(abs(seconds(o) - 60) < 0.01 for o in later), later)


def it_is_waited_for_longer_where_it_has_answered():
    """With the same settings, on this machine; others have to answer first."""
    with Server(fails=0) as server, Server() as other, Box() as box:
        for url, back, wanted in ((server.url, True, None), (server.url, False, 6 * 3600), (other.url, False, 60)):
            config(box, url)
            server.fails = 0 if back else 1 << 30
            if back:
                done = box.segue(*run_words(box))
                expect(done.returncode == 0, done.stdout, done.stderr)
                continue
            process = box.start(*run_words(box))
            wait_line(process)
            process.send_signal(signal.SIGINT)
            expect(end_of(process)[0] == 130, "it does not stop")
            met = outages(records(sorted(box.log_paths())[-1]))
            expect(abs(seconds(met[0]) - wanted) < 0.01, url, wanted, met)


def a_judge_is_waited_for():
    """Its stage does not give way to another one, nor to the tag that the agent wrote itself."""
    with Server(fails=1) as server, Box() as box:
        config(box, server.url)
        scenario = box.file("r.json", json.dumps({"replies": [{"text": "All done.\n\n[WORK:1]"}]}))
        done = box.segue(*run_words(box, JUDGED, "--scenario", scenario))
        expect(done.returncode == 0, done.stdout, done.stderr)
        log = records(box.log_paths()[0])
        expect(len(outages(log)) == 1, log)
        expect([(s["stage"], s["outcome"]) for s in of_type(log, "stage")] == [("structured_output", "matched")],
               of_type(log, "stage"))


def whoever_asks_once_is_told_at_once():
    with Server() as server, Box() as box:
        config(box, server.url)
        begin = time.monotonic()
        done = box.segue("judge", "--rules", "good,bad", "--provider", "away", stdin=b"It is fine.")
        expect(done.returncode != 0 and time.monotonic() - begin < 30, done.returncode, done.stderr)
        asked = server.asked
        done = box.segue("hook", "claude-stop", "--rule", "done", "--rule", "more", "--judge-provider", "away", "--logs",
                         box.logs, stdin=b'{"last_assistant_message": "Done.", "session_id": "1"}')
        expect(server.asked > asked and not outages(records(box.log_paths()[-1])), "a hook waits", done.stderr)
        config(box, server.url, "wait_for_outage: off\n")
        before = server.asked
        done = box.segue(*run_words(box))
        expect(done.returncode == 1 and server.asked - before == 4, done.stdout, server.asked)
        expect(not outages(records(box.log_paths()[-1])), "it waited")


def a_setting_is_checked(box):
    for words in ("20", "on", "25h", "87600h", "1h30", "[1h]", "{h: 1}", "-1s", "0s", '""'):
        config(box, "http://127.0.0.1:9/v1", f"wait_for_outage: {words}\n")
        done = box.segue(*run_words(box))
        expect(done.returncode == 2 and b"config.yaml:4:18: " in done.stderr and
               b"wait_for_outage must be off, or a duration of at most 24h" in done.stderr, words, done.stderr)


def a_question_to_the_daemon_is_answered_at_once():
    for path, body in (("/v1/judge", {"text": "It is fine.", "rules": ["good", "bad"], "provider": "away"}),
                       ("/v1/ask", {"prompt": "How many?", "schema": {"type": "integer"}, "provider": "away"})):
        with Server() as server, DaemonBox() as box:  # one each: two would find it down together
            config(box, server.url)
            box.serve()
            begin = time.monotonic()
            status, value = box.ask("POST", path, body)
            at_once(begin, 30, path, status, value)
            expect(value is not None and "overloaded" in json.dumps(value).lower(), path, status, value)
            box.check_all()
            box.end()


def a_daemon_has_one_gate():
    """One failure shuts it, one session at a time tries, nobody's attempts are used up, and views name the next try.
    Who tries may be cancelled: the next one does. When it opens, they go on in order."""
    with Server(fails=0) as server, DaemonBox() as box:
        config(box, server.url)
        box.serve()
        flow = box.file("flow.yaml", FLOW)
        box.wait_status(box.submit(flow, task="t"), "complete")  # so that it is waited for longer than a minute
        server.fails, server.asked = 1 << 30, 0
        ids = [box.submit(flow, task="t")]
        first = box.wait_status(ids[0], "waiting")["waiting"]
        ids += [box.submit(flow, task="t") for _ in range(3)]
        for sid in ids[1:]:
            waits = box.wait_status(sid, "waiting")["waiting"]
            expect((waits["for"], waits["since"]) == ("overloaded", first["since"]) and waits["gives_up"], waits, first)
        box.until(lambda: server.asked >= 2, "nobody tries")
        box.until(lambda: box.session(ids[0]).get("waiting", first)["until"] > first["until"], "no later try")
        expect(server.asked == 2, "more than one tries:", server.asked)
        until = [box.session(sid)["waiting"]["until"] for sid in ids]
        expect(max(until) > first["until"] and len({u[:21] for u in until}) <= 2, "not one next try:", until)
        provider = [p for p in box.get("/v1/providers")["providers"] if p["name"] == "away"][0]
        expect(provider["circuit"] in ("open", "trying") and provider["waiting"] >= 3, provider)
        server.answers.clear()
        box.until(lambda: server.asked == 3, "nobody tries")
        expect(box.session(ids[0])["status"] == "running", "the oldest one tries", box.session(ids[0]))
        begin = time.monotonic()
        expect(box.ask("POST", f"/v1/sessions/{ids[0]}/cancel")[0] in (200, 202), "it cannot be cancelled")
        box.until(lambda: server.asked == 4, "nobody tries in its place")
        server.back()
        server.answers.set()
        for sid in ids[1:]:
            box.wait_status(sid, "complete")
            at_once(begin, 10, "the next one tries, and the others go on then")
            log = records(box.log(sid))
            expect(not of_type(log, "session_stop"), sid, log)
            expect([r["attempt"] for r in of_type(log, "call_end")] == [1], "its attempts were used up:", log)
        starts = [[r["ts"] for r in records(box.log(sid)) if r["type"] in ("call_start", "admission")][-1] for sid in ids[1:]]
        expect(starts == sorted(starts), "not in order:", starts)
        spent = sum(len(of_type(records(box.log(sid)), "call_start")) for sid in ids)
        expect(spent == server.asked, "calls without a record, or records without a call:", spent, server.asked)
        box.check_all()
        box.end()


def a_refused_login_holds_its_provider():
    """Whoever meets it stops; the others wait, and ask nothing. A resume tries it, and all go on once it is accepted."""
    with Server(status=401) as server, DaemonBox() as box:
        config(box, server.url)
        box.serve()
        flow = box.file("flow.yaml", FLOW)
        first = box.submit(flow, task="t")
        box.until(lambda: of_type(records(box.log(first)), "session_stop"), "it does not stop")
        stop = of_type(records(box.log(first)), "session_stop")[0]
        expect((stop["reason"], stop["class"], stop["provider"]) == ("provider_error", "auth", "away"), stop)
        ids = [box.submit(flow, task="t") for _ in range(2)]
        for sid in ids:
            waits = box.wait_status(sid, "waiting")
            expect(waits["waiting"]["for"] == "auth" and "gives_up" not in waits["waiting"] and
                   "segue doctor away" in waits["message"], waits)
        expect(server.asked == 1, "others asked, too:", server.asked)
        listed = box.segue("resume", "--all", "--reason", "auth", "--dry-run").stdout.decode()
        expect(first in listed and "auth: away" in listed and not any(i in listed for i in ids), listed)
        done = box.segue("resume", "--all", "--reason", "auth")  # too soon: it is refused once more
        expect(done.returncode == 0 and first in done.stdout.decode(), done.stdout, done.stderr)
        box.until(lambda: server.asked == 2, "a resume does not try")
        expect(box.session(ids[0])["status"] in ("waiting", "running"), box.session(ids[0]))
        server.back()
        if box.session(first)["status"] != "waiting":
            box.wait_status(first, "stopped", "waiting", "needs_input")
        done = box.segue("resume", "-d", ids[0] if box.session(first)["status"] == "waiting" else first)
        expect(done.returncode == 0, done.stdout, done.stderr)
        for sid in [first, *ids]:
            box.wait_status(sid, "complete")
        expect(box.wait_said("segue doctor away") is None, "no notice")
        box.check_all()
        box.end()


def many_are_resumed():
    """Here, one after the other: those that broke, or stopped for the reason named."""
    with Server(status=401) as server, Box() as box:
        config(box, server.url)
        for _ in range(2):
            done = box.segue(*run_words(box))
            expect(done.returncode == 7 and b"auth: " in done.stdout, done.stdout, done.stderr)
        where = ("--logs", box.logs)
        rows = [json.loads(line) for line in
                box.segue("resume", "--all", "--dry-run", "--json", *where).stdout.splitlines()]
        expect([(r["reason"], r["provider"]) for r in rows] == [("auth", "away")] * 2, rows)
        expect(rows[0]["id"] < rows[1]["id"], "not the oldest first", rows)
        done = box.segue("resume", "--all", "--reason", "outage", *where)
        expect(done.returncode == 0 and not done.stdout and b"no such session" in done.stderr, done.stdout, done.stderr)
        for words, why in ((("--reason", "tired"), b"--reason tired is not known"), (("last",), b"takes no session"),
                           (("--rule", "1"), b"leave out --rule")):
            done = box.segue("resume", "--all", *words, *where)
            expect(done.returncode == 2 and why in done.stderr, words, done.stdout, done.stderr)
        server.back()
        done = box.segue("resume", "--all", *where)
        expect(done.returncode == 0 and done.stdout.count(b"complete") == 2, done.stdout, done.stderr)


def a_daemon_goes_on_after_its_end():
    with Server() as server, DaemonBox() as box:
        config(box, server.url)
        box.serve()
        sid = box.submit(box.file("flow.yaml", FLOW), task="t")
        waits = box.wait_status(sid, "waiting")["waiting"]
        expect(waits["for"] == "overloaded" and waits["gives_up"] > waits["until"], waits)
        other = box.submit(box.file("flow.yaml", FLOW), task="t")
        box.wait_status(other, "waiting")
        box.check_all()
        box.end(signal.SIGKILL)
        asked = server.asked
        box.serve()  # their logs say that it is away: one of them tries
        box.until(lambda: server.asked > asked, "nobody tries")
        for one in (sid, other):
            box.wait_status(one, "waiting")
        expect(server.asked == asked + 1, "both try", server.asked - asked)
        server.back()
        for one in (sid, other):
            box.wait_status(one, "complete")
        expect(outages(records(box.log(sid)))[0]["since"] == waits["since"], waits)
        box.end()


if __name__ == "__main__":
    sys.exit(main([it_goes_on_by_itself, it_stops_when_that_lasts_too_long, lists_show_it, a_killed_run_goes_on_where_it_was,
                   it_is_waited_for_longer_where_it_has_answered, a_judge_is_waited_for,
                   whoever_asks_once_is_told_at_once, a_setting_is_checked, a_question_to_the_daemon_is_answered_at_once, a_daemon_has_one_gate,
                   a_refused_login_holds_its_provider, many_are_resumed,
                   a_daemon_goes_on_after_its_end]))
