#!/usr/bin/env python3
"""Commands that behave badly: what a person reads of it, what the log says, and that nothing is left."""
import json
import os
import sys

from support import Box, expect, main, of_type, records, verified


def workflow(argv):
    return ("name: x\nmovements:\n  - name: a\n    command: " + json.dumps(argv) + "\n    rules:\n"
            "      - {condition: when(exit == 0), next: COMPLETE}\n"
            "      - {condition: when(exit > 0), next: ABORT}\n")


def run(box, argv, status):
    """The line of the turn (or what was said instead), and the record of the call's end."""
    done = box.segue("run", box.file("w.yaml", workflow(argv)), "--logs", box.logs, "--cwd", box.cwd,
                     env={"COLUMNS": "200"}, status=status)
    path = box.log_paths()[-1]
    verified(box, path)
    return (done.stdout + done.stderr).decode(), of_type(records(path), "call_end")[0]


def how_it_ended():
    """Killed or not, with words or without: one line says it."""
    rows = [
        ("kill -9 $$", 3, "exit 137, killed by SIGKILL ", {"exit": 137, "signal": 9}),
        ("kill -SEGV $$", 3, "exit 139, killed by SIGSEGV ", {"exit": 139, "signal": 11}),
        ("echo 3 of 9; kill -TERM $$", 3, "exit 143, killed by SIGTERM, 3 of 9 ", {"signal": 15}),
        ("exit 137", 3, "exit 137  ", {"exit": 137, "signal": None}),
        ("sh -c 'kill -9 $$'; exit $?", 3, "exit 137, Killed ", {"exit": 137, "signal": None}),
        ("nosuchprogram", 3, "exit 127, sh: 1: nosuchprogram: not found ", {"exit": 127}),
        ("/etc/passwd", 3, "exit 126, sh: 1: /etc/passwd: Permission denied ", {"exit": 126}),
        ("echo to stderr >&2; exit 2", 3, "exit 2, to stderr ", {"exit": 2}),
        ("echo a warning >&2", 0, "exit 0  ", {"exit": 0}),
        ("echo out; echo err >&2; exit 2", 3, "exit 2, out ", {"exit": 2}),
        ("exec >&- 2>&-; exit 3", 3, "exit 3  ", {"exit": 3, "text": ""}),
        ("printf '\\033]0;title\\007a\\000\\377\\n' >&2; exit 1", 3,
         "exit 1, \\e]0;title\\x07a\\x00\\xff ", {"exit": 1}),
    ]
    shell = os.path.basename(os.path.realpath("/bin/sh"))
    for script, status, line, members in rows:
        if "sh: 1:" in line and shell != "dash" or "Killed" in line and shell != "dash":
            continue  # the words are that shell's
        with Box() as box:
            said, end = run(box, ["sh", "-c", script], status)
            expect(line in said, script, "was told as", said)
            expect("\x1b" not in said and "\x00" not in said, script, repr(said))
            for key, value in members.items():
                expect(end.get(key) == value, script, key, end.get(key))
            shown = box.segue("show", box.log_paths()[-1], "a").stdout.decode()
            expect(("killed by SIG" in shown) == ("signal" in end), script, shown)


def why_it_could_not_be_run():
    rows = [
        ("./missing", None, "No such file or directory"),
        ("./script", b"#!/nonexistent/interpreter\n", "the interpreter that it names is not"),
        ("./folder", "folder", "it is a directory"),
        ("./data", b"no program\n", "it is not executable (chmod +x)"),
    ]
    for program, content, words in rows:
        with Box() as box:
            path = f"{box.cwd}/{program}"
            if content == "folder":
                os.mkdir(path)
            elif content is not None:
                with open(path, "wb") as f:
                    f.write(content)
                os.chmod(path, 0o755 if content.startswith(b"#!") else 0o644)
            said, end = run(box, [program], 1)
            expect(f"cannot run {program}: " in said and words in said, program, said)
            expect(end["error"]["class"] == "not_found", end["error"])


def held(path):
    """Has a process of ours this file open?"""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                if os.readlink(f"/proc/{pid}/fd/{fd}") == path:
                    return True
        except OSError:
            pass
    return False


def what_it_leaves_is_gone():
    """Processes that hold its output, or hide; a temporary folder that is hard to remove."""
    deep = ("cd $TMPDIR; i=0; while [ $i -lt 400 ]; do mkdir d; cd d; i=$((i+1)); done; "
            ": > file; chmod 0 .; cd $TMPDIR; mkdir locked; : > locked/x; chmod 0 locked; echo made")
    for script, word in ((deep, "made"), ("rm -rf $TMPDIR; echo removed", "removed"),
                         ("ln -s / $TMPDIR/root; echo linked", "linked"),
                         ("echo hi; setsid sh -c 'exec 9>held; sleep 300' &", "hi")):
        with Box() as box:
            tmp = f"{box.dir}/for-calls"
            os.mkdir(tmp)
            box.env["TMPDIR"] = tmp
            said, end = run(box, ["sh", "-c", script], 0)
            expect((f"exit 0, {word} " in said or f"exit 0, {word}; held" in said) and "cannot" not in said, said)
            expect(os.listdir(tmp) == [], script, os.listdir(tmp))
            if "held" in script:
                expect("held the output open" in end["note"], end)
                expect(not held(f"{box.cwd}/held"), "it is still there")


def a_shim_that_is_killed(box):
    said, end = run(box, ["sh", "-c", "echo before; kill -9 $PPID; sleep 300; echo after"], 1)
    expect(end["error"]["class"] == "crashed" and end["text"] == "before\n", end)
    expect("the shim that held the program is gone: it was killed, or the lease was over" in said, said)


if __name__ == "__main__":
    sys.exit(main([how_it_ended, why_it_could_not_be_run, what_it_leaves_is_gone,
                   a_shim_that_is_killed]))
