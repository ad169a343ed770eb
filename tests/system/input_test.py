#!/usr/bin/env python3
"""Bad files, bad words, hostile output: a clear message, the right exit status, nothing raw."""
import hashlib
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

from support import SEGUE, WAIT_S, Box, every_way, expect, main, of_type, records, verified

# What must never come out raw: controls other than newline, C1, bidi controls, ill-formed UTF-8.
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

HOSTILE = (b"plain \x1b[31mred\x1b[0m \x1b]52;c;ZXZpbA==\x07 \x1b]8;;http://evil/\x1b\\link\r"
           b"over\x08\x08 nul:\x00 c1:\xc2\x9b31m bidi:\xe2\x80\xae\xe2\x81\xa6 "
           b"bad:\xff\xfe\xc0\xaf\xed\xa0\x80 end \x9b1m\n")


def harmless(what, text):
    try:
        found = STEERING.search(text.decode())
    except UnicodeDecodeError as error:
        expect(False, what, "is not UTF-8:", error)
    expect(found is None, what, "holds", repr(found and found.group()), "near",
           text.decode()[max(0, found.start() - 60):found.end() + 20] if found else "")


def refused(done, status, *texts):
    """The status, the texts in the message, nothing on stdout."""
    expect(done.returncode == status, "status", done.returncode, "instead of", status, done.stderr)
    for text in texts:
        expect(text.encode() in done.stderr, repr(text), "is not in", done.stderr.decode("latin-1"))
    expect(done.stdout == b"", "it printed", done.stdout[:200])
    harmless("stderr", done.stderr)


def command_workflow(box, argv, rules=None, name="one"):
    """One command movement; the words after `segue run`."""
    rules = rules or [{"condition": "when(exit == 0)", "next": "COMPLETE"},
                      {"condition": "when(exit != 0)", "next": "ABORT"}]
    document = {"name": name, "initial_movement": "go",
                "movements": [{"name": "go", "command": argv, "instruction": "Do this: {?task}{task}{/task}",
                               "rules": rules}]}
    return [box.file(f"{name}.yaml", json.dumps(document)), "--cwd", box.cwd, "--logs", box.logs]


def script_workflow(box, replies, movement=None, max_movements=5):
    document = {"name": "scripted", "initial_movement": "go", "provider": "script",
                "max_movements": max_movements,
                "movements": [{"name": "go", "instruction": "do what is asked",
                               "rules": [{"condition": "good", "next": "COMPLETE"},
                                         {"condition": "bad", "next": "ABORT"},
                                         {"condition": "again", "next": "go"}],
                               **(movement or {})}]}
    return [box.file("scripted.yaml", json.dumps(document)), "--scenario",
            box.file("scripted.json", json.dumps({"replies": replies})),
            "--cwd", box.cwd, "--logs", box.logs]


def no_log(box):
    expect(box.log_paths() == [], "a log was begun:", box.log_paths())


# ---- workflow files ----------------------------------------------------------------------------------

def workflow_files(box):
    os.mkfifo(box.dir + "/fifo.yaml")
    os.mkdir(box.dir + "/folder.yaml")
    files = {
        box.dir + "/missing.yaml": ["missing.yaml", "there is no file"],
        box.file("empty.yaml", ""): ["empty.yaml"],
        box.file("blank.yaml", " \n# nothing\n"): ["blank.yaml"],
        box.file("binary.yaml", os.urandom(4096) + b"\0\xff"): ["binary.yaml"],
        box.file("nul.yaml", b"name: x\0y\n"): ["nul.yaml"],
        box.file("huge.yaml", b"# " + b"x" * (2 * 1024 * 1024) + b"\nname: big\n"):
            ["huge.yaml", "limit"],
        box.dir + "/folder.yaml": ["folder.yaml"],
        box.dir + "/fifo.yaml": ["fifo.yaml"],
        "/dev/zero": ["/dev/zero"],
        box.file("list.yaml", "- a\n- b\n"): ["list.yaml:1:1"],
        box.file("broken.yaml", "name: [\n"): ["broken.yaml:"],
        box.file("keys.yaml", "name: x\nnaem: y\nmovements: []\n"): ["keys.yaml:2:1", "name"],
        box.file("nowhere.yaml", """name: x
initial_movement: a
movements:
  - name: a
    command: [echo, hi]
    rules:
      - condition: when(exit == 0)
        next: nowhere
"""): ["nowhere.yaml:8:", "nowhere"],
    }
    for path, texts in files.items():
        for command in ("run", "lint"):
            try:
                done = box.segue(command, path, *(["--logs", box.logs] if command == "run"
                                                  else []), timeout=WAIT_S, status=2)
                for text in texts:
                    expect(text.encode() in done.stderr + done.stdout, repr(text), "not in",
                           done.stderr)
                harmless("output", done.stderr + done.stdout)
            except Exception as error:
                raise type(error)(f"{command} {path}: {error}") from error
    no_log(box)


def the_place_in_a_line():
    """The line of an error is shown around its column, the caret under the place."""
    def shown(name, content, word):
        _, line, caret = box.segue("lint", box.file(name, content), status=2).stderr.decode().split("\n")[:3]
        expect(len(line) < 135 and "\\x" not in line, line)
        expect(line[caret.index("^"):].startswith(word), line, caret)

    with Box() as box:
        movement = {"name": "a", "instruction": "do it now",
                    "rules": [{"condition": "x", "next": "gone"}]}
        for before in (0, 60, 100, 400, 5000):
            for after in (0, 200):
                document = {"description": "d" * before, "name": "w", "movements": [movement],
                            "model": "m" * after}
                shown("one-line.json", json.dumps(document), '"gone"')
        shown("windows.yaml", "name: w\r\nlanguage: \tfr\r\nmovements: []\r\n", "fr")


def many_words(box):
    """As many files as a shell's * gives."""
    paths = [box.file(f"{i}.yaml", "") for i in range(150)]
    done = box.segue("verify", *paths)
    expect(done.returncode == 0 and done.stdout.count(b"\n") == len(paths), done)
    done = box.segue("lint", "--quiet", *paths, "--", "-x", status=2, err=b"-x")
    expect(b"149.yaml:1:1" in done.stderr, done)


def scenarios(box):
    words = script_workflow(box, [{"text": "x"}])
    refused(box.segue("run", words[0], "--logs", box.logs), 2, "--scenario")
    bad = {
        box.dir + "/missing.json": "No such file",
        box.dir: "is a folder",
        box.file("empty.json", ""): "empty.json",
        box.file("key.json", '{"replys": []}'): "replys",
        box.file("reply.json", '{"replies": [{"txt": "x"}]}'): "did you mean",
        box.file("nothing.json", '{"replies": [{"movement": "go"}]}'): "the reply is empty",
        box.file("class.json", '{"replies": [{"error": {"class": "bad luck"}}]}'): "error.class",
        box.file("binary.json", os.urandom(1000)): "binary.json",
    }
    for path, text in bad.items():
        refused(box.segue("run", words[0], "--scenario", path, "--logs", box.logs), 2, text)
    no_log(box)


def a_scenario_that_runs_dry():
    """A resumable stop that names the call; with another scenario it goes on."""
    with Box() as box:
        words = script_workflow(box, [{"purpose": "execute", "text": "done"},
                                      {"stage": "structured_output", "text": "hm"}])
        box.segue("run", *words, status=1)
        log = records(box.begun()[0])
        expect(log[-1]["type"] == "session_stop" and log[-1]["resumable"], log[-1])
        whole = box.file("whole.json", json.dumps({"replies": [
            {"purpose": "execute", "text": "done"}, {"stage": "structured_output", "text": "hm"},
            {"stage": "phase3_tag", "text": "[GO:1]", "times": 0}, {"text": "[GO:1]", "times": 0}]}))
        box.segue("resume", box.begun()[0], "--scenario", whole, status=0)
        verified(box, box.begun()[0])
    with Box() as box:
        done = box.segue("run", *script_workflow(box, [{"movement": "other", "text": "x"}]), status=1)
        for text in (b"go", b"execute", b"no reply left", b"segue resume"):
            expect(text in done.stdout + done.stderr, text, "not in", done.stdout)
    with Box() as box:
        done = box.segue("run", *script_workflow(
            box, [{"purpose": "execute", "text": "done"}],
            {"judge": {"stages": ["structured_output", "ai_judge"]}}), status=1)
        for text in (b"go", b"judge", b"structured_output"):
            expect(text in done.stdout + done.stderr, text, "not in", done.stdout)


# ---- words -------------------------------------------------------------------------------------------

def bad_words(box):
    one = box.file("one.json", json.dumps({"name": "one", "provider": "script", "movements": [
        {"name": "go", "instruction": "Do it now.", "rules": [
            {"condition": "a", "next": "COMPLETE"}, {"condition": "b", "next": "ABORT"}]}]}))
    words = every_way(box)
    cases = [
        (["frobnicate"], "no command"),
        (["rum"], "did you mean run"),
        (["verfy"], "did you mean verify"),
        (["run"], "missing argument"),
        (["prompt", one, "go", "--stage", "phase1_tag"], "phase1_tag asks nothing"),
        (["prompt", one, "go", "--stage", "phase9"], "write structured_output"),
        (["run", "a", "b"], "too many arguments"),
        (["run", "--bogus", words[0]], "no option --bogus"),
        (["run", "--taks", "x", words[0]], "did you mean --task"),
        (["run", "-Z", words[0]], "no option -Z"),
        (["run", "-qZ", words[0]], "no option -Z"),
        (["run", "-q\u00fc", words[0]], "no option -\u00fc"),
        (["run", "-qt"], "--task needs"),
        (["run", *words, "-qtx"], "given twice"),
        (["run", words[0], "--task"], "--task needs"),
        (["run", words[0], "--json=yes"], "takes no value"),
        (["run", *words, "--task", "x"], "given twice"),
        (["run", *words[:-2], "--task", "x", "--task-file", "y"], "not both"),
        (["run", *words[:-2], "--task-file", box.dir + "/none"], "No such file"),
        (["run", *words[:-2], "--task-file", box.dir], "is a folder"),
        (["run", *words, "--provider", "cluade"], "no provider"),
        (["run", *words, "--provider", "command"], "command"),
        (["run", *words, "--provider", "nomove=script"], "no such movement"),
        (["run", *words, "--provider", "build=script"], "is a command"),
        (["run", *words, "-O", "temperature"], "KEY=VALUE"),
        (["run", *words, "-O", "temprature=1"], "did you mean"),
        (["run", *words, "-O", "temperature=hot"], "temperature"),
        (["run", *words, "-O", "seed=1.5"], "seed"),
        (["run", *words[:3], "--cwd", box.dir + "/none", *words[5:]], "--cwd"),
        (["resume"], "give a session, or --all"),
        (["resume", "nosuch", "--logs", box.cwd], "no session"),
        (["resume", "last", "--logs", box.cwd], "no session"),
        (["resume", box.dir + "/none.ndjson"], "No such file"),
        (["verify", box.dir + "/none.ndjson"], "No such file"),
        (["show", "last", "--logs", box.cwd], "no session"),
        (["judge"], "--rule"),
    ]
    for line, text in cases:
        try:
            refused(box.segue(*line), 2, text)
        except Exception as error:
            raise type(error)(f"segue {' '.join(line)}: {error}") from error
    no_log(box)
    hostile = box.segue("\x1b[31mrun", "x")
    refused(hostile, 2, "no command")


def letters_together(box):
    """-qt TEXT, -qtTEXT: as everywhere else."""
    words = script_workflow(box, [{"text": "[GO:1]", "times": 0}])
    for letters in (["-qt", "-x y"], ["-qt-x y"], ["-q", "-t", "-x y"]):
        done = box.segue("run", *words, *letters)
        expect(done.returncode == 0 and done.stdout == b"", done)
        expect(records(box.begun()[-1])[0]["task"] == "-x y", letters)
    box.segue("run", "-qh", status=0, out=b"--task")


def options_of_a_command(box):
    document = {"name": "w", "initial_movement": "go", "movements": [
        {"name": "go", "command": ["true"], "options": {"temperature": 0},
         "rules": [{"condition": "when(true)", "next": "COMPLETE"}]}]}
    done = box.segue("run", box.file("w.yaml", json.dumps(document)), "--logs", box.logs)
    refused(done, 2, "command", "temperature")
    document["movements"][0] = {"name": "go", "provider": "command", "instruction": "say it so",
                                "rules": [{"condition": "good", "next": "COMPLETE"}]}
    done = box.segue("run", box.file("w.yaml", json.dumps(document)), "--logs", box.logs)
    refused(done, 2, "command")
    document["movements"][0] = {"name": "go", "command": ["true"], "rules": [
        {"condition": "good", "next": "COMPLETE"}, {"condition": "bad", "next": "ABORT"}]}
    done = box.segue("run", box.file("w.yaml", json.dumps(document)), "--logs", box.logs)
    refused(done, 2, "judge")
    no_log(box)


# ---- bytes and lengths of what is given --------------------------------------------------------------

def words_that_are_not_utf8(box):
    """What a record could not hold is refused by the name of its flag, before anything begins."""
    words = every_way(box)
    workflow, rest = words[0], words[1:]
    at = rest.index("--cwd")
    elsewhere = rest[:at] + rest[at + 2:]
    at = rest.index("--scenario")
    scenario, without = rest[at + 1], rest[:at] + rest[at + 2:]
    odd = box.dir.encode() + b"/od\xffd"
    os.mkdir(odd)
    for path in (workflow, scenario):
        shutil.copy(path.encode(), odd)
    odd_scenario = odd + b"/" + os.path.basename(scenario).encode()
    cases = [
        (["run", workflow, *elsewhere, "--cwd", odd], "--cwd"),
        (["run", workflow, *without, "--scenario", odd_scenario], "--scenario"),
        (["run", *words, "--model", b"m\xff"], "--model"),
        (["run", *words, "-O", b"se\xffed=1"], "-O"),
        (["run", *words, "-O", b"effort=\xff"], "-O"),
        (["run", *words, "--provider", b"\xff"], "--provider"),
        (["run", *words, "--provider", b"\xff=script"], "--provider"),
        (["run", odd + b"/" + os.path.basename(workflow).encode(), *rest], "WORKFLOW"),
        (["judge", "--rule", "a", "--rule", "b", "--stages", "phase1_tag", "--model", b"\xff"],
         "--model"),
    ]
    for line, text in cases:
        try:
            refused(box.segue(*line), 2, text, "UTF-8")
        except Exception as error:
            raise type(error)(f"segue {line}: {error}") from error
    # a current folder of that name, with no flag given
    inside = subprocess.run([SEGUE, "run", workflow, *elsewhere], stdin=subprocess.DEVNULL,
                            capture_output=True, env=box.env, cwd=odd, check=False)
    refused(inside, 2, "--cwd", "UTF-8")
    no_log(box)


def deep_folders(box):
    """A path that has no room is refused; a scenario's may be as long as the system lets it be."""
    words = every_way(box)
    workflow, rest = words[0], words[1:]
    at = rest.index("--cwd")
    elsewhere = rest[:at] + rest[at + 2:]
    at = rest.index("--scenario")
    scenario, without = rest[at + 1], rest[:at] + rest[at + 2:]
    for length in (900, 1023, 1024, 1025, 1100, 2000, 3900):
        deep = box.dir
        while len(deep) < length - 1:
            deep += "/" + "d" * min(200, length - len(deep) - 1)
            if not os.path.isdir(deep):
                os.mkdir(deep)
        if len(deep) != length:
            continue
        for path in (workflow, scenario):
            shutil.copy(path, deep)
        deep_workflow = deep + "/" + os.path.basename(workflow)
        deep_scenario = deep + "/" + os.path.basename(scenario)
        runs = [(["run", workflow, *elsewhere, "--cwd", deep], box.cwd, length < 1024, "--cwd"),
                (["run", workflow, *elsewhere], deep, length < 1024, "--cwd"),
                (["run", deep_workflow, *rest], box.cwd, len(deep_workflow) < 1024, "WORKFLOW"),
                (["run", workflow, *without, "--scenario", deep_scenario], box.cwd, True, "")]
        for line, cwd, fits, text in runs:
            before = box.begun()
            done = subprocess.run([SEGUE, *line], stdin=subprocess.DEVNULL, capture_output=True,
                                  env=box.env, cwd=cwd, timeout=WAIT_S, check=False)
            expect(b"Sanitizer" not in done.stderr, done.stderr)
            if not fits:
                refused(done, 2, text, "too long")
                expect(box.begun() == before, "a log was begun")
                continue
            expect(done.returncode == 0, length, line, done.returncode, done.stderr)
            start = records([p for p in box.begun() if p not in before][0])[0]
            expect(start["config"]["cwd"] == (deep if "--cwd" in text else box.cwd), start)
            if text == "WORKFLOW":
                expect(start["workflow_path"] == deep_workflow, start)
            if text == "":
                expect(start["config"]["scenario"]["path"] == deep_scenario, start)


def a_log_from_a_deep_folder(box):
    """A log whose folder's path has no room is refused; it does not go on somewhere else."""
    box.segue("run", *every_way(box), status=0)
    deep = box.cwd + "".join("/" + "d" * 200 for _ in range(6))
    os.makedirs(deep)
    with open(box.begun()[0], "rb") as f:
        line = f.readline()
    line = line[:line.rindex(b',"hash"')].replace(
        b'"cwd":"' + box.cwd.encode() + b'"', b'"cwd":"' + deep.encode() + b'"')
    expect(deep.encode() in line, line)
    digest = hashlib.sha256(b"0" * 64 + line).hexdigest()
    path = box.file("deep.ndjson", line + b',"hash":"' + digest.encode() + b'"}\n')
    verified(box, path)
    done = box.segue("resume", path)
    refused(done, 2, "working directory", "too long")
    expect(Path(path).read_bytes().count(b"\n") == 1, "something was written")


# ---- tasks -------------------------------------------------------------------------------------------

def tasks(box):
    words = command_workflow(box, ["cat"])
    task = "mend {task} and {previous_response}, 'quoted' \u00e9\u4e16\n\u202e"
    given = [(["--task", task], None), (["--task-file", box.file("task", task)], None),
             (["--task-file", "-"], task.encode())]
    for i, (flags, stdin) in enumerate(given):
        done = box.segue("run", *words, *flags, stdin=stdin, status=0)
        harmless("stdout", done.stdout)
        path = box.begun()[i]
        log = records(path)
        expect(log[0]["task"] == task, "the log has", log[0]["task"])
        answer = of_type(log, "call_end")[0]["text"]  # the prompt, as cat gave it back
        expect(answer.count(task) == 1, "the prompt was", answer)
        verified(box, path)


def a_huge_task():
    with Box() as box:
        words = command_workflow(box, ["cat"])
        lines = ["line %d of a task that is long: {task} \u00e9" % i for i in range(26000)]
        task = "\n".join(lines).encode()
        expect(len(task) > 1024 * 1024, len(task))
        box.segue("run", *words, "--task-file", "-", stdin=task, status=0)
        path = box.begun()[0]
        log = records(path)
        name = hashlib.sha256(task).hexdigest()
        expect(log[0]["task_blob"] == name and log[0]["task_bytes"] == len(task),
               "no blob of the task")
        expect(Path(f"{box.logs}/blobs/{name}").read_bytes() == task, "the blob is not the task")
        end = of_type(log, "call_end")[0]
        with open(f"{box.logs}/blobs/{end['text_blob']}", "rb") as f:
            expect(f.read().count(task) == 1, "the prompt does not hold the task exactly once")
        expect(os.path.getsize(path) < 100 * 1024, "the log holds", os.path.getsize(path), "bytes")
        verified(box, path)
    with Box() as box:  # over the limit
        words = command_workflow(box, ["cat"])
        done = box.segue("run", *words, "--task-file", "-", stdin=b"x" * (8 * 1024 * 1024 + 1))
        refused(done, 2, "limit")
        no_log(box)


# ---- hostile output ----------------------------------------------------------------------------------

def hostile_output(box):
    source = box.file("hostile", HOSTILE)
    words = command_workflow(box, ["sh", "-c", 'cat "$0"; cat "$0" >&2; exit 7', source])
    done = box.segue("run", *words, status=3)
    harmless("run", done.stdout + done.stderr)
    path = box.begun()[0]
    end = of_type(records(path), "call_end")[0]
    for key in ("text", "stderr"):
        expect(end[key + "_blob"] == hashlib.sha256(HOSTILE).hexdigest(), end)
        with open(f"{box.logs}/blobs/{end[key + '_blob']}", "rb") as f:
            expect(f.read() == HOSTILE, "the blob is not what was printed")
    verified(box, path)
    for line in (["show", path], ["show", path, "go"], ["show", path, "go", "--full"],
                 ["verify", path], ["resume", path]):
        done = box.segue(*line)
        harmless(" ".join(line), done.stdout.replace(b"\t", b" ") + done.stderr)


def hostile_text_that_is_utf8():
    """Valid UTF-8 stays in the log as it is; what reaches a terminal is escaped, as JSON too."""
    text = "\x1b[2J\x1b]52;c;eA==\x07 \u009b31m \u202e\u2066 \x7f \r\x08\n[GO:1]"
    with Box() as box:
        words = script_workflow(box, [
            {"purpose": "execute", "text": text},
            {"purpose": "judge", "text": text + "{\"reason\": \"\\u001b[31m\", \"step\": 9}"},
            {"purpose": "judge", "text": text, "times": 0}])
        done = box.segue("run", *words, status=0)
        harmless("run", done.stdout + done.stderr)
        path = box.begun()[0]
        expect(of_type(records(path), "call_end")[0]["text"] == text, "the text is another")
        verified(box, path)
        for line in (["show", path], ["show", path, "go"], ["show", path, "go", "--full"]):
            done = box.segue(*line)
            harmless(" ".join(line), done.stdout.replace(b"\t", b" ") + done.stderr)


def hostile_text_as_json(box):
    """--json is the log's own lines, so they must not steer a terminal either."""
    words = script_workflow(box, [{"text": "\u009b31m \u202e \x7f\n[GO:1]", "times": 0}])
    done = box.segue("run", *words, "--json", status=0)
    harmless("run --json", done.stdout)


def ten_megabytes(box):
    piece = HOSTILE * 100
    size = 10 * 1024 * 1024
    source = box.file("big", (piece * (size // len(piece) + 1))[:size])
    words = command_workflow(box, ["cat", source])
    done = box.segue("run", *words, status=0)
    harmless("run", done.stdout + done.stderr)
    path = box.begun()[0]
    end = of_type(records(path), "call_end")[0]
    expect(end["text_blob"] == hashlib.sha256(Path(source).read_bytes()).hexdigest(), "another blob")
    expect(end["text_bytes"] == size, end["text_bytes"])
    expect(os.path.getsize(path) < 64 * 1024, "the log holds", os.path.getsize(path), "bytes")
    verified(box, path)
    box.segue("show", path, "go", out=b"answered: 10.0 MiB, kept in blobs/")


def hostile_messages():
    """What a provider's error, a file's name or a judge says reaches the terminal only as text."""
    text = "\x1b[2J\x1b]52;c;eA==\x07 \u009b31m \u202e\u2066 \x7f"
    judge = ["judge", "--rule", "a", "--rule", "b"]
    with Box() as box:
        reply = {"times": 0, "error": {"class": "auth", "message": text}}
        scenario = box.file("down.json", json.dumps({"replies": [reply]}))
        done = box.segue(*judge, "-p", "script", "-s", scenario, stdin=b"x", status=1, err=b"\\e[2J")
        harmless("judge", done.stdout + done.stderr)
        answer = json.dumps({"reason": text, "step": 1}, ensure_ascii=False)
        scenario = box.file("says.json", json.dumps({"replies": [{"text": answer, "times": 0}]}))
        for flags in ([], ["--json"]):
            done = box.segue(*judge, "-p", "script", "-s", scenario, *flags, stdin=b"x", status=0)
            harmless("judge " + " ".join(flags), done.stdout + done.stderr)
        name = "/n\x1b[31m\u202e\u009b"
        for content in ("name: [\n", "name: x\nnaem: y\nmovements: []\n", ""):
            done = box.segue("lint", box.file(name + ".yaml", content), status=2)
            harmless("lint", done.stdout + done.stderr)
        done = box.segue("lint", box.dir + name + "\xff.yaml")
        harmless("lint", done.stdout + done.stderr)
        done = box.segue("run", *script_workflow(box, []), "--scenario", box.dir + name)
        harmless("run", done.stdout + done.stderr)
        document = {"name": "w", "initial_movement": "go", "movements": [
            {"name": "go", "command": ["true"],
             "rules": [{"condition": "when(true)", "next": "COMPLETE"}]}]}
        workflow = box.file(name + ".yaml", json.dumps(document))
        done = box.segue("lint", workflow, status=0)
        harmless("lint", done.stdout + done.stderr)
        done = box.segue("run", workflow, "--logs", box.dir + name, status=0)
        harmless("run", done.stdout + done.stderr)
        done = box.segue("show", "last", "--logs", box.dir + name)
        harmless("show", done.stdout + done.stderr)
        for content in ("{}", "[", '{"type": 7}'):
            done = box.segue("extract", "--schema", box.file(name + ".json", content), stdin=b"{}")
            harmless("extract", done.stdout + done.stderr)


def a_warning_about_a_hostile_name(box):
    """A folder of a call that cannot be removed is named without what steers."""
    os.mkdir(box.dir + "/t\x1b[31m\u202e")
    words = command_workflow(box, ["sh", "-c", 'rmdir "$TMPDIR"; : > "$TMPDIR"'])
    done = box.segue("run", *words, env={"TMPDIR": box.dir + "/t\x1b[31m\u202e"}, status=0, err=b"segue: ")
    harmless("run", done.stdout + done.stderr)


def hostile_names(box):
    """Names and conditions of the user's own file are shown safely too."""
    words = script_workflow(box, [{"text": "[GO:1]", "times": 0}], {
        "description": "\u202e\u009b", "rules": [
            {"condition": "good \u202e\u009b31m", "next": "COMPLETE"},
            {"condition": "bad", "next": "ABORT"}]})
    done = box.segue("run", *words)
    harmless("run", done.stdout + done.stderr)
    if done.returncode == 0:
        done = box.segue("show", box.begun()[0], "go")
        harmless("show", done.stdout.replace(b"\t", b" ") + done.stderr)


# ---- what is printed ---------------------------------------------------------------------------------

def json_is_the_log():
    with Box() as box:
        done = box.segue("run", *every_way(box), "--json", status=0)
        expect(Path(box.begun()[0]).read_bytes() == done.stdout, "--json printed something else than the log")
        expect(done.stderr == b"", done.stderr)
    with Box() as box:  # a resume prints what it adds
        done = box.segue("run", *every_way(box), env={"SEGUE_FAULT": "exit:40"})
        path = box.begun()[0]
        if done.returncode != 99:
            return "skipped the resume: no fault points in this build"
        before = Path(path).read_bytes()
        whole = before[:before.rfind(b"\n") + 1]
        done = box.segue("resume", path, "--json", status=0)
        expect(Path(path).read_bytes() == whole + done.stdout, "resume --json printed something else")
        again = box.segue("resume", path, "--json")  # it is over: its end once more
        expect(again.returncode == 0 and again.stdout == done.stdout.splitlines(True)[-1], again)
        return None


def quiet_prints_nothing():
    with Box() as box:
        done = box.segue("run", *every_way(box), "--quiet")
        expect((done.returncode, done.stdout, done.stderr) == (0, b"", b""), done)
    with Box() as box:  # but a stop says why, on stderr
        done = box.segue("run", *script_workflow(box, [{"movement": "x", "text": ""}]), "-q")
        expect(done.returncode == 1 and done.stdout == b"" and b"no reply left" in done.stderr, done)


def exit_statuses():
    tag = [{"text": "[GO:%d]", "times": 0}]
    with Box() as box:
        def status(*words):
            return box.segue("run", *words, "-q").returncode

        def tagged(number, **more):
            return script_workflow(box, [{"text": tag[0]["text"] % number, "times": 0}], **more)

        expect(status(*tagged(1)) == 0, "COMPLETE is not 0")
        expect(status(*tagged(2)) == 3, "ABORT is not 3")
        expect(status(*tagged(7)) == 4, "no rule matched is not 4")
        expect(status(*tagged(3)) == 5, "max_movements is not 5")
        expect(status(*script_workflow(box, [{"error": {"class": "quota"}, "times": 0}])) == 1,
               "a provider's error is not 1")
        down = script_workflow(box, [{"purpose": "execute", "text": "x"},
                                     {"purpose": "judge", "error": {"class": "auth"}, "times": 0}])
        expect(status(*down) == 7, "a judge that refuses the login is not 7")
        last = records(box.begun()[-1])[-1]
        expect(last["type"] == "session_stop" and last["reason"] == "judge_unavailable", last)
        expect(status("/nowhere.yaml") == 2, "a missing file is not 2")
        for path in box.begun():
            verified(box, path)
        for path, wanted in zip(box.begun(), (0, 3)):  # of a finished session the same again
            expect(box.segue("resume", path, "-q").returncode == wanted, path, wanted)


def on_a_terminal(box, words, env):
    """Runs segue with a terminal as its stdout; what it wrote there."""
    reader, writer = pty.openpty()
    process = subprocess.Popen([SEGUE, *words], stdin=subprocess.DEVNULL, stdout=writer,
                               stderr=subprocess.PIPE, env={**box.env, **env}, cwd=box.cwd)
    os.close(writer)
    out = b""
    while True:
        try:
            piece = os.read(reader, 65536)
        except OSError:
            break
        if not piece:
            break
        out += piece
    os.close(reader)
    expect(process.wait(timeout=WAIT_S) == 0, process.stderr.read())
    process.stderr.close()
    return out


def colours():
    colour = re.compile(rb"\x1b\[[0-9;]*m")
    with Box() as box:
        words = ["run", *every_way(box)]
        out = on_a_terminal(box, words, {"TERM": "xterm"})
        expect(colour.search(out), "no colours on a terminal")
        out = on_a_terminal(box, words, {"TERM": "xterm", "NO_COLOR": "1"})
        expect(not colour.search(out), "colours in spite of NO_COLOR")
        out = on_a_terminal(box, words, {"TERM": "dumb"})
        expect(b"\x1b" not in out, "escapes on a dumb terminal")
        out = on_a_terminal(box, words, {"TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "40"})
        expect(b"COMPLETE" in out, out)


def a_closed_pipe(box):
    for flags in ([], ["--json"]):
        process = box.start("run", *every_way(box, 10), *flags)
        process.stdout.close()
        status = process.wait(timeout=WAIT_S)
        err = process.stderr.read()
        process.stderr.close()
        expect(status in (0, 1), "status", status, err)
        expect(b"Sanitizer" not in err, err)
    for path in box.begun():  # the work was done all the same
        expect(records(path)[-1]["type"] == "session_end", path)
        verified(box, path)
    with open("/dev/full", "wb") as full:
        done = subprocess.run([SEGUE, "run", "--trust", *every_way(box)], stdout=full, env=box.env,
                              cwd=box.cwd, stderr=subprocess.PIPE, check=False)
    expect(done.returncode == 1, "output to a full device gave", done.returncode)


def lose(box, words, stdout, stdin=b"[STEP:1]"):
    """Runs segue with a standard output that takes nothing; None: with none at all."""
    close = {"preexec_fn": lambda: os.close(1)} if stdout is None else {"stdout": stdout}
    return subprocess.run([SEGUE, *words], env=box.env, cwd=box.cwd, input=stdin,
                          stderr=subprocess.PIPE, timeout=WAIT_S, check=False, **close)


def output_that_is_lost(box):
    """What cannot be printed is no success, whatever prints it."""
    words = every_way(box)
    box.segue("run", *words, status=0)
    path = box.begun()[0]
    schema = box.file("any.json", "true")
    judge = ["judge", "--rule", "a", "--rule", "b", "--stages", "phase1_tag"]
    for line in (["version"], ["version", "--json"], ["--version"], ["help"], ["help", "run"], [],
                 ["help", "exit"], ["run", "--help"], ["completion", "bash"],
                 ["completion", "zsh"], ["completion", "fish"], ["lint", words[0]],
                 ["prompt", words[0], "plan"], ["verify", path], ["verify", path, "--json"],
                 ["show", path], ["show", path, "review"], ["show", path, "--json"],
                 ["show", path, "--follow"], ["ls", "--logs", box.logs], ["providers"], ["resume", path], ["run", *words],
                 ["run", *words, "--json"], judge, [*judge, "--json"],
                 ["extract"], ["check", schema], ["schema", schema]):
        stdin = b"[STEP:1]" if line[:1] == ["judge"] else b"{}"
        with open("/dev/full", "wb") as full:
            done = lose(box, line, full, stdin)
        expect(done.returncode == 1, line, "to a full device gave", done.returncode)
        expect(done.stderr.count(b"cannot write to standard output: No space") == 1, line,
               done.stderr)
        done = lose(box, line, None, stdin)
        expect(done.returncode == 1, line, "to nowhere gave", done.returncode)
        expect(done.stderr.count(b"cannot write to standard output: Bad file") == 1, line,
               done.stderr)
        out, into = os.pipe()
        os.close(out)  # the reader is gone before the first byte
        done = lose(box, line, into, stdin)
        os.close(into)
        expect(done.returncode == 1 and b"cannot write" not in done.stderr, line,
               "without a reader gave", done)
    with open("/dev/full", "wb") as full:  # nothing is printed, so nothing is lost
        for stdout in (full, None):
            done = lose(box, [*judge, "--quiet"], stdout)
            expect((done.returncode, done.stderr) == (0, b""), done)


def without_a_home(box):
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        del box.env[name]
    words = every_way(box)
    box.segue("run", *words, status=0)  # --logs says where
    at = words.index("--logs")
    done = box.segue("run", *words[:at], *words[at + 2:])
    expect(done.returncode in (1, 2) and b"HOME" in done.stderr, done)
    box.segue("run", *words[:at], *words[at + 2:], env={"SEGUE_LOGS": box.logs}, status=0)
    expect(len(box.begun()) == 2, box.begun())


def damaged_logs(box):
    """resume and verify of a log in which a byte was changed."""
    done = box.segue("run", *every_way(box), env={"SEGUE_FAULT": "exit:60"})
    path = box.begun()[0]
    whole = Path(path).read_bytes()
    place = whole.index(b'"turn":1') + 7
    Path(path).write_bytes(whole[:place] + b"2" + whole[place + 1:])
    box.segue("verify", path, status=1, out=b"record 2")
    if whole.rstrip().split(b"\n")[-1].find(b"session_end") < 0:
        box.segue("resume", path, status=1, err=b"damaged")
    expect(len(Path(path).read_bytes()) == len(whole), "something was cut off")


CASES = [workflow_files, the_place_in_a_line, many_words, scenarios, a_scenario_that_runs_dry,
         bad_words, letters_together, options_of_a_command,
         words_that_are_not_utf8, deep_folders, a_log_from_a_deep_folder, tasks, a_huge_task,
         hostile_output, hostile_text_that_is_utf8, hostile_text_as_json, ten_megabytes, hostile_messages,
         a_warning_about_a_hostile_name, hostile_names, json_is_the_log, quiet_prints_nothing,
         exit_statuses, colours, a_closed_pipe, output_that_is_lost, without_a_home, damaged_logs]

if __name__ == "__main__":
    sys.exit(main(CASES))
