#!/usr/bin/env python3
"""What a terminal shows while a session runs: a line for each open turn, the agent's words with -v;
and that nothing of it is left behind, or sent to a pipe."""
import fcntl
import json
import os
import pty
import re
import struct
import sys
import termios
import time

from daemon import DaemonBox
from support import SEGUE, WAIT_S, Box, expect, main

FLOW = """name: live
provider: script
movements:
  - name: investigate-the-cause
    instruction: Look at it
    judge: {stages: [phase3_tag]}
    rules:
      - {condition: good, next: fix}
      - {condition: bad, next: ABORT}
  - name: fix
    command: [sh, -c, "while ! test -e go-on; do sleep 0.05; done; echo 3 passed"]
    rules: [{condition: when(exit == 0), next: COMPLETE}]
"""
REPLIES = {"replies": [
    {"chunks": ["I loo", "ked.\nAll is", " fine."], "tools": [{"name": "Bash", "argument": "make -j2"}],
     "delay_ms": 2600,
     "usage": {"input": 1200, "output": 34}},
    {"text": "[INVESTIGATE-THE-CAUSE:1]", "usage": {"input": 100, "output": 3}}]}


BEFORE = """name: before
movements:
  - name: hold
    command: [sh, -c, "while ! test -e free; do sleep 0.05; done"]
    rules: [{condition: when(exit == 0), next: COMPLETE}]
"""


class Screen:
    """As much of a terminal as is used here: what it shows now, and every line that it ever did."""

    def __init__(self, columns):
        self.columns, self.rows, self.y, self.x, self.seen = columns, [""], 0, 0, set()

    def feed(self, text):
        for part in re.split(r"(\x1b\[[0-9;]*[A-Za-z]|\r|\n)", text):
            if part == "\n":
                self.y, self.x = self.y + 1, 0  # the terminal makes \r\n of it
                if self.y == len(self.rows):
                    self.rows.append("")
            elif part == "\r":
                self.x = 0
            elif part.startswith("\x1b["):
                self.escape(part)
            elif part:
                row = self.rows[self.y]
                self.rows[self.y] = row[:self.x].ljust(self.x) + part + row[self.x + len(part):]
                self.x += len(part)
                live = re.match(r"  +\d+ [|/\\-] |    ", self.rows[self.y])
                expect(not live or self.x <= self.columns, "it wraps:", self.rows[self.y])
                self.seen.add(self.rows[self.y])

    def escape(self, part):
        if part.endswith("A"):
            self.y -= int(part[2:-1] or 1)
        elif part.endswith("J"):
            self.rows[self.y:] = [self.rows[self.y][:self.x]]
        elif part.endswith("K"):
            self.rows[self.y] = self.rows[self.y][:self.x]
        expect(part[-1] in "AJKm", "an escape that is not known", part)


class Terminal:
    def __init__(self, box, words, columns=100, env=None):
        self.screen, self.raw = Screen(columns), ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            os.chdir(box.cwd)
            os.execve(SEGUE, [SEGUE, *words], {**box.env, "TERM": "xterm", **(env or {})})

    def read(self):
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        text = data.decode(errors="replace")
        self.raw += text
        self.screen.feed(text)
        return bool(data)

    def until(self, truth, *what):
        end = time.monotonic() + WAIT_S
        while not truth():
            expect(self.read() and time.monotonic() < end, *what, self.screen.rows)

    def status(self):
        while self.read():
            pass
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def shows(self, pattern):
        return any(re.search(pattern, row) for row in self.screen.rows)


def go_on(box):
    with open(box.cwd + "/go-on", "w"):
        pass


def words(box, *more):
    return ["run", box.file("w.yaml", FLOW), "-s", box.file("s.json", json.dumps(REPLIES)),
            "--logs", box.logs, *more]


def only_finished_lines_are_left(screen):
    rows = [r for r in screen.rows if r.strip()]
    expect(re.fullmatch(r"  1 investigate-the-cause +script +> fix .* [23]\.\d s  1337 tokens", rows[0]),
           rows)
    expect(rows[1].strip() == "[INVESTIGATE-THE-CAUSE:1]", rows)
    expect(re.match(r"  2 fix +command +exit 0, 3 passed.*> COMPLETE .* s$", rows[2]), rows)
    expect(rows[3].startswith("COMPLETE  2 turns") and " s  1337 tokens" in rows[3], rows)


def a_line_while_it_runs(box):
    t = Terminal(box, words(box), columns=150)
    t.until(lambda: t.shows(r"^  1 [|/\\-] investigate-the-cause script +Bash make -j2 +0\.\d s$"),
            "tool and time")
    t.until(lambda: t.shows(r"silent for 2\.\d s$"), "how long ago it was heard")
    t.until(lambda: t.shows(r"^  2 [|/\\-] fix +command +\d\.\d s$"), "the next one")
    expect(not any("I looked." in row for row in t.screen.seen), "words without -v")
    go_on(box)
    expect(t.status() == 0, t.screen.rows)
    only_finished_lines_are_left(t.screen)


def the_words_of_an_agent(box):
    t = Terminal(box, words(box, "-v"), columns=150)
    t.until(lambda: t.shows(r"^    I looked\.$") and t.shows(r"^    All is fine\.$"), "words")
    expect("\x1b[2m" in t.raw[:t.raw.index("I looked.")][-8:], "they are dimmed")
    go_on(box)
    expect(t.status() == 0, t.screen.rows)
    rows = [r.strip() for r in t.screen.rows if r.strip()]
    expect(rows[:2] == ["I looked.", "All is fine."], rows)
    expect(rows[2].startswith("1 investigate") and "COMPLETE" in rows[5], rows)


PRINTS = """name: prints
movements:
  - name: build
    command: [sh, build.sh]
    secrets: [BUILD_KEY]
    rules: [{condition: when(exit == 0), next: COMPLETE}]
"""
BUILD = r"""printf 'one\ntwo: hidden-key\n' >&2
while ! test -e more; do sleep 0.05; done
printf '50%%\r75%%\r\377\033[31mred\n'
while ! test -e go-on; do sleep 0.05; done
"""


def the_output_of_a_command(box):
    """Its last line stands in the live line, all of it with -v; no secret, and nothing that steers the terminal."""
    os.makedirs(box.dir + "/home/config/segue", exist_ok=True)
    box.file("home/config/segue/config.yaml", "secrets: [BUILD_KEY]\n")
    box.env["BUILD_KEY"] = "hidden-key"
    box.file("work/build.sh", BUILD)
    for more in ([], ["-v"]):
        t = Terminal(box, ["run", "--trust", box.file("p.yaml", PRINTS), "--logs", box.logs, *more], columns=150)
        t.until(lambda: t.shows(r"^  1 [|/\\-] build +command +two: "), "the last line")
        with open(box.cwd + "/more", "w"):
            pass
        t.until(lambda: t.shows(r"^  1 [|/\\-] build +command +.*red"), "the next one")
        go_on(box)
        expect(t.status() == 0 and "hidden-key" not in t.raw and "\x1b[31mred" not in t.raw, t.screen.rows)
        expect(("    one" in t.screen.seen) == (more == ["-v"]), t.screen.seen)
        for name in ("more", "go-on"):
            os.remove(f"{box.cwd}/{name}")


def narrow_ones_wrap_nothing(box):
    for columns in (44, 60, 80):
        t = Terminal(box, words(box, "-v"), columns=columns, env={"NO_COLOR": "1"})
        t.until(lambda: t.shows(r"^  2 "), "the second turn")
        go_on(box)
        while t.read():
            pass
        os.remove(box.cwd + "/go-on")
        t.status()


def a_pipe_gets_finished_lines(box):
    go_on(box)
    done = box.segue(*words(box, "-v"))
    out = done.stdout.decode()
    expect(done.returncode == 0 and "\x1b" not in out and "I looked" not in out, out)
    expect(len(out.splitlines()) == 3 and "1337 tokens" in out.splitlines()[0], out)


def the_words_from_anywhere():
    """Of a session of the daemon as they come; of one that segue run runs, when each answer is whole."""
    def listeners(box):
        return box.get("/v1/health")["connections"]

    with DaemonBox() as box:
        box.serve("-n", "1")
        box.segue("submit", box.file("before.yaml", BEFORE), "--socket", box.socket, status=0)
        alone = listeners(box)
        t = Terminal(box, ["submit", box.file("w.yaml", FLOW), "-s",
                           box.file("s.json", json.dumps(REPLIES)), "--socket", box.socket,
                           "--follow", "-v"], columns=150)
        t.until(lambda: t.shows("^workflow  live"), "it is not submitted")
        box.until(lambda: listeners(box) > alone, "submit does not listen")
        sid = box.get("/v1/sessions")["sessions"][0]["id"]
        other = Terminal(box, ["show", sid, "--follow", "-v", "--socket", box.socket], columns=150)
        box.until(lambda: listeners(box) > alone + 1, "show does not listen")
        with open(box.cwd + "/free", "w"):
            pass
        t.until(lambda: t.shows(r"^    I looked\.$"), "submit -v: a line that is whole")
        expect(not any("> fix" in row for row in t.screen.seen), "its answer is not over yet")
        t.until(lambda: t.shows(r"^    All is fine\.$"), "submit -v")
        other.until(lambda: other.shows(r"^    All is fine\.$"), "show -v")
        go_on(box)
        expect(t.status() == 0 and other.status() == 0, t.screen.rows, other.screen.rows)
        for screen in (t.screen, other.screen):
            rows = [r.strip() for r in screen.rows if r.strip()]
            rows = rows[rows.index("I looked."):]
            expect(rows[1] == "All is fine." and rows[2].startswith("1 invest"), rows)
            expect([r for r in rows if "passed" in r][0] == "3 passed", "a command's output", rows)
        expect("\x1b[2m" in t.raw[:t.raw.index("I looked.")][-8:], "they are dimmed")
        piped = box.segue("submit", box.file("w.yaml", FLOW), "-s", box.file("s.json", json.dumps(REPLIES)),
                          "--socket", box.socket, "--follow", "-v")
        expect(piped.returncode == 0 and b"I looked" not in piped.stdout, piped.stdout, piped.stderr)
        box.end()
    with Box() as box:
        t = Terminal(box, words(box), columns=150)
        t.until(lambda: t.shows(r"^  1 [|/\\-] "), "it runs")
        other = Terminal(box, ["show", box.log_paths()[0], "--follow", "-v"], columns=150)
        other.until(lambda: other.shows(r"^    All is fine\.$"), "show -v of segue run")
        go_on(box)
        expect(t.status() == 0 and other.status() == 0, t.screen.rows, other.screen.rows)
        rows = [r.strip() for r in other.screen.rows if r.strip()]
        expect(sum(r == "I looked." for r in rows) == 1 and not any("I looked." in r for r in t.screen.seen),
               rows)


def from_anywhere(box: DaemonBox):
    """The same in another terminal, of a session of the daemon."""
    box.serve()
    t = Terminal(box, ["submit", box.file("w.yaml", FLOW), "-s",
                       box.file("s.json", json.dumps(REPLIES)), "--socket", box.socket,
                       "--follow"], columns=150)
    t.until(lambda: t.shows(r"^  1 [|/\\-] investigate-the-cause script +Bash make -j2 +"), "submit")
    t.until(lambda: t.shows(r"^  2 [|/\\-] fix +command +"), "submit")
    sid = [p for p in box.log_paths()][0]
    other = Terminal(box, ["show", sid, "--follow"], columns=150)
    other.until(lambda: other.shows(r"^  2 [|/\\-] fix +command +\d\.\d s"), "show")
    go_on(box)
    expect(t.status() == 0 and other.status() == 0, t.screen.rows, other.screen.rows)
    for screen in (t.screen, other.screen):
        expect(not any(re.match(r"  \d [|/\\-] ", row) for row in screen.rows), screen.rows)
    box.end()


if __name__ == "__main__":
    sys.exit(main([a_line_while_it_runs, the_words_of_an_agent, the_output_of_a_command, narrow_ones_wrap_nothing,
                   a_pipe_gets_finished_lines, the_words_from_anywhere,
                   from_anywhere]))
