#!/usr/bin/env python3
"""What a session has used: tokens and money told by a scenario or by the user's price list, in the
records, in the last line of run, in show and in ls; and what is not known is said to be so.
"""
import json
import os
import sys

from support import expect, flow, main, of_type, records

FLOW = flow("money_flow")
WORK = "  - {purpose: execute, text: done, usage: {input: 1000, output: 50, cached: 400, reasoning: 9}, tools: [Read, Bash]%s}\n"
JUDGE = "  - {purpose: judge, structured: {reason: r, step: 1}, usage: {input: 100, output: 5}%s}\n"


def run(box, replies, config=""):
    box.config(config)
    flow, scenario = box.file("w.yaml", FLOW), box.file("s.yaml", "replies:\n" + replies)
    done = box.segue("run", flow, "--scenario", scenario, "--task", "t", "--logs", box.logs, status=0)
    log = records(max((box.logs + "/" + n for n in os.listdir(box.logs) if n.endswith(".ndjson")), key=os.path.getmtime))
    expect(box.segue("verify", "last", "--logs", box.logs).returncode == 0, "verify")
    return done.stdout.decode().strip().splitlines()[-1], log


def case_told(box):
    """Costs that the backend tells."""
    last, log = run(box, WORK % ", cost: 0.25" + JUDGE % ", cost: 0.5")
    spent = of_type(log, "session_end")[0]["spent"]
    expect(spent["calls"] == 3 and spent["input"] == 1100 and spent["output"] == 55 and spent["cached"] == 400, spent)
    expect(spent["reasoning"] == 9 and spent["cost_usd"] == 0.75 and "unpriced" not in spent, spent)
    expect(spent["purposes"]["work"]["cost_usd"] == 0.25 and spent["purposes"]["judging"]["cost_usd"] == 0.5, spent)
    expect(set(spent["movements"]) == {"work", "check"} and set(spent["providers"]) == {"script", "command"}, spent)
    expect("1155 tokens, $0.7500" in last, last)
    tools = [r["data"]["name"] for r in of_type(log, "call_event") if r["event"] == "tool" and r["data"]["state"] == "end"]
    expect(tools == ["Read", "Bash"], tools)
    show = box.segue("show", "last", "--logs", box.logs).stdout.decode()
    expect("1155 tokens, $0.7500" in show and "judging: 105 tokens, $0.5000" in show, show)
    ls = box.segue("ls", "--logs", box.logs).stdout.decode()
    expect("$0.7500" in ls, ls)
    row = json.loads(box.segue("ls", "--json", "--logs", box.logs).stdout.splitlines()[0])
    expect(row["spent"]["cost_usd"] == 0.75, row)


def case_prices(box):
    """The user's price list, where nobody tells a cost; a cost that is told stays."""
    last, log = run(box, WORK % "" + JUDGE % ", cost: 0.5", "prices: {big: {input: 2, output: 10, cached: 0.5}}\n")
    work = of_type(log, "call_end")[0]["usage"]
    expect(work["cost_from"] == "prices" and abs(work["cost_usd"] - 0.0019) < 1e-9, work)
    expect("$0.5019" in last, last)


def case_unknown(box):
    """Without a price the cost is unknown, and said so; a price list with a mistake is refused."""
    last, log = run(box, WORK % "" + JUDGE % ", cost: 0.5", "prices: {other: {input: 2}}\n")
    spent = of_type(log, "session_end")[0]["spent"]
    expect(spent["unpriced"] == 1 and spent["cost_usd"] == 0.5, spent)
    expect("$0.5000 and that of 1 calls, unknown" in last, last)
    last, log = run(box, WORK % "" + JUDGE % "")
    expect("cost unknown" in last and "cost_usd" not in of_type(log, "session_end")[0]["spent"], last)
    ls = box.segue("ls", "--logs", box.logs).stdout.decode()
    expect(" ? " in ls, ls)
    for wrong, words in (("prices: {big: {in: 1}}", b"must be a map of models"), ("prices: {big: {input: -1}}", b"US dollars")):
        box.config(wrong + "\n")
        box.segue("run", box.file("w.yaml", FLOW), "--task", "t", "--logs", box.logs, status=2, err=words)


def case_scenario_mistakes(box):
    """Wrong usage, cost and tools of a scenario are named with their place."""
    for wrong, words in (("usage: {in: 5}", b'unknown key "in"'), ("usage: {input: -5}", b"usage.input must be a whole number"),
                         ("cost: free", b"cost must be a number"), ("tools: Read", b"tools must be a list")):
        scenario = box.file("s.yaml", "replies:\n  - {text: x, " + wrong + "}\n")
        done = box.segue("run", box.file("w.yaml", FLOW), "--scenario", scenario, "--task", "t", "--logs", box.logs)
        expect(done.returncode == 2 and words in done.stderr and b"s.yaml:2:" in done.stderr, wrong, done.stderr)


sys.exit(main([case for name, case in list(globals().items()) if name.startswith("case_")]))
