#!/usr/bin/env python3
"""Commands as checks: tests that are counted, zero tests that are no pass, what is stale, time limits
and the folder of a movement.
"""
import json
import os
import re
import sys

from support import Box, expect, main, of_type, records


def movement(name, command, rules, more=""):
    lines = "".join(f"      - {{condition: {json.dumps(c)}, next: {n}}}\n" for c, n in rules)
    return f"  - name: {name}\n    command: [sh, -c, {json.dumps(command)}]\n{more}    rules:\n{lines}"


def run(box, movements, code=0, *words):
    path = box.file("w.yaml", "name: w\nprovider: script\nmovements:\n" + "".join(movements))
    done = box.segue("run", path, "--task", "t", "--logs", box.logs, *words, status=code)
    expect(box.segue("verify", "last", "--logs", box.logs).returncode == 0, "verify")
    return records(max(box.log_paths(), key=os.path.getmtime)), done.stdout.decode()


PASS = [("when(exit == 0)", "COMPLETE"), ("when(true)", "ABORT")]


def case_no_test_is_no_pass(box):
    """An exit of 0 with no test run, none counted, or a failed one leads where a failure does."""
    for form, said, code in (("cargo", "test result: ok. 0 passed; 0 failed; 5783 filtered out", 3),
                             ("pytest", "nothing of the kind", 3), ("tap", "not ok 1", 3),
                             ("ctest", "100% tests passed, 0 tests failed out of 3", 0)):
        log, out = run(box, [movement("gate", f"echo '{said}'", PASS, f"    tests: {form}\n")], code)
        end = of_type(log, "call_end")[0]
        expect(end["exit"] == 0 and end["tests"]["format"] == form, end)
        expect(("no pass" in out) == (code == 3), out)


def case_junit(box):
    """A report of this run counts; an older one, or none, does not."""
    report = '<testsuite><testcase name=\\"a\\"/></testsuite>'
    more = "    tests: junit:reports\n"
    write = f'mkdir -p reports; echo "{report}" > reports/a.xml'
    log, _ = run(box, [movement("gate", write, PASS, more)])
    expect(of_type(log, "call_end")[0]["tests"] == {"format": "junit", "passed": 1, "failed": 0, "skipped": 0}, log)
    os.utime(box.cwd + "/reports/a.xml", (1, 1))
    log, _ = run(box, [movement("gate", "true", PASS, more)], 3)
    expect("older" in of_type(log, "call_end")[0]["tests"]["problem"], log)


def case_stale():
    """A check that was made before files changed is stale, for rules and for the judge."""
    judged = """  - name: work
    instruction: Do it.
    judge: {stages: [structured_output]}
    rules:
      - {condition: "done && when(checks.gate.exit == 0 && checks.gate.passed == 2 && checks.gate.stale == %s)", next: COMPLETE}
      - {condition: not done, next: ABORT}
"""
    with Box() as box:
        gate = movement("gate", "echo '2 passed in 0.1s'", [("when(exit == 0)", "work")], "    tests: pytest\n")
        for write, stale in (("", "false"), (", write: {a: x}", "true")):
            scenario = box.file("s.yaml", "replies:\n  - {purpose: execute, text: done%s}\n"
                                "  - {purpose: judge, structured: {reason: r, step: 1}}\n" % write)
            log, _ = run(box, [gate, judged % stale], 0, "--scenario", scenario)
            prompt = "".join(p for r in of_type(log, "call_start") if r["purpose"] == "judge"
                             for p in r["prompt"] if isinstance(p, str))
            expect("gate (1): exit 0, 2 passed, 0 failed" + (", stale" if write else "") + "\n" in prompt, prompt)


def case_limits(box):
    """timeout and stall end a call; the class is timeout."""
    for more, words in (("    timeout: 300ms\n", ""), ("    stall: 300ms\n", "no output for 300 ms")):
        log, out = run(box, [movement("slow", "echo x; exec sleep 300", PASS, more)], 1)
        took = re.search(r"1 turn .*?([0-9.]+) (ms|s)\b", out)
        expect(took and (float(took[1]) >= 300 if took[2] == "ms" else float(took[1]) >= 0.3), out)
        error = of_type(log, "call_end")[0]["error"]
        expect(error["class"] == "timeout" and words in error["message"], error)


def case_several_programs(box):
    """A command that runs two test programs: the failure of the first counts."""
    said = "echo 'Tests: 1 failed, 1 total'; echo 'Tests: 2 passed, 2 total'"
    log, _ = run(box, [movement("gate", said, PASS, "    tests: jest\n")], 3)
    expect(of_type(log, "call_end")[0]["tests"] == {"format": "jest", "passed": 2, "failed": 1, "skipped": 0}, log)


def case_long_names():
    """A name is cut only where the line is too narrow for it."""
    name = "review_the_whole_of_modules"
    with Box() as box:
        path = box.file("w.yaml", "name: w\nmovements:\n" + movement(name, "true", PASS))
        for columns, whole in (("80", False), ("120", False), ("140", True)):
            out = box.segue("run", path, "--task", "t", "--logs", box.logs, env={"COLUMNS": columns}).stdout.decode()
            expect((name in out) == whole, columns, out)


def case_cwd(box):
    """A command works in its movement's folder, which a value of an earlier movement can name."""
    os.makedirs(box.cwd + "/sub/deep")
    first = movement("where", 'echo "{\\"at\\": \\"deep\\"}"', [("when(true)", "there")],
                     "    structured_output: {schema: {type: object, properties: {at: {type: string}}, required: [at]}, on_failure: error}\n")
    there = movement("there", "pwd; echo x > here", [("when(changed == 1)", "COMPLETE")], '    cwd: "sub/{structured:where.at}"\n')
    log, _ = run(box, [first, there])
    start, end = of_type(log, "call_start")[-1], of_type(log, "call_end")[-1]
    expect(start["cwd"] == "sub/deep" and end["text"].strip().endswith("/work/sub/deep"), start, end)
    expect([f["path"] for f in end["files"]] == ["sub/deep/here"], end)
    log, _ = run(box, [movement("there", "pwd", PASS, "    cwd: nowhere\n")], 1)
    expect("nowhere" in of_type(log, "call_end")[0]["error"]["message"], log)
    os.symlink("/", box.cwd + "/out")
    log, _ = run(box, [movement("there", "pwd", PASS, "    cwd: out/tmp\n")], 1)
    expect("text" not in of_type(log, "call_end")[0], log)


def case_mistakes(box):
    """Wrong values are refused with their place and what to write."""
    for more, rules, words in (
            ("    tests: pytst\n", PASS, b'did you mean pytest?'),
            ("    tests: junit\n", PASS, b"write junit:PATH"),
            ("    timeout: 90\n", PASS, b"timeout"),
            ("    timeout: 25h\n", PASS, b"must be a duration of 1ms to 24h"),
            ("    cwd: ../x\n", PASS, b"leaves the session's working directory"),
            ("", [("when(tests.passed > 0)", "COMPLETE")], b"give it tests:"),
            ("", [("when(checks.nobody.exit == 0)", "COMPLETE")], b"no movement nobody runs a command"),
            ("", [("when(checks.gate == 0)", "COMPLETE")], b"write checks.MOVEMENT.exit")):
        path = box.file("w.yaml", "name: w\nmovements:\n" + movement("gate", "true", rules, more))
        done = box.segue("lint", path)
        expect(done.returncode == 2 and words in done.stdout + done.stderr and b"w.yaml:" in done.stdout + done.stderr,
               more, rules, done.returncode, done.stdout, done.stderr)


def case_any_summary():
    """tests: auto takes whichever summary is there; what fell behind the command's run before the work is no pass."""
    three = "===== 3 passed in 0.1s ====="
    for before, after, code, fell in (
            (three, three, 0, None), (three, "==== 4 passed in 0.1s ====", 0, None), (three, "==== 2 passed in 0.1s ====", 3, "fewer"),
            (three, "=== 3 passed, 1 skipped in 0.1s ===", 3, "more_skipped"), (three, "all is fine", 3, "gone"),
            (three, "3 of 3 passed", 3, "gone"), (three, "=== 1 failed, 3 passed in 0.1s ===", 3, None),
            ("all is fine", "still fine", 0, None), ("3 of 3 pass", "2 of 2 pass", 3, "fewer"), ("3 of 3 pass", three, 0, None),
            ("1..2\nok 1\nok 2", "1..2\nok 1\nok 2 # skip it", 3, "fewer"),
            ("# tests 2\n# pass 2\n# fail 0", "# tests 1\n# pass 1\n# fail 0", 3, "fewer"),
            ("test result: ok. 2 passed; 0 failed; 0 ignored", "test result: ok. 2 passed; 0 failed; 3 ignored", 3, "more_skipped"),
            ("Ran 2 tests in 0.1s\n\nOK", "Ran 2 tests in 0.1s\n\nOK (skipped=1)", 3, "fewer")):
        with Box() as box:
            auto = "    tests: auto\n"
            first = movement("before", "cat said", [("when(exit == 0)", "work")], auto)
            last = movement("after", "cat said", PASS, auto)
            work = "  - {name: work, permission: edit, instruction: Do it., rules: [{condition: when(true), next: after}]}\n"
            with open(box.cwd + "/said", "w", encoding="utf-8") as file:
                file.write(before + "\n")
            scenario = box.file("s.yaml", "replies:\n  - {text: done, write: {said: %s}}\n" % json.dumps(after + "\n"))
            log, out = run(box, [first, work, last], code, "--scenario", scenario)
            tests = of_type(log, "call_end")[-1]["tests"]
            expect(tests.get("fell") == fell and ("no pass" in out) == (code == 3), before, after, tests, out)


sys.exit(main([case for name, case in list(globals().items()) if name.startswith("case_")]))
