#!/usr/bin/env python3
"""segue ls --watch on a real terminal: it redraws itself, its keys run the commands, it fits, and it leaves the terminal as it was."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

from audit_logs import write
from daemon import DaemonBox, simple
from screens import ASKS
from support import SEGUE, WAIT_S, Box, expect, main, of_type, records


class Watch:
    """The screen as the last frame left it, and keys."""

    def __init__(self, box, *words, size=(24, 110)):
        self.raw = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
            os.chdir(box.cwd)
            os.execve(SEGUE, [SEGUE, "ls", "--watch", *words], {**box.env, "TERM": "xterm"})
        self.was = termios.tcgetattr(self.fd)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def rows(self):
        """The last whole frame: head, sessions, and the line of keys."""
        frames = self.raw.split("\x1b[H")
        whole = [f for f in frames[1:] if re.search(r"\x1b\[\d+;1H", f)]
        text = re.sub(r"\x1b\[\d+;1H", "\n", whole[-1]) if whole else ""
        return [r.rstrip() for r in re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", text).replace("\r", "").split("\n") if r.strip()]

    def until(self, truth, *what):
        end = time.monotonic() + WAIT_S
        while not truth():
            ready = select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]
            expect(ready, *what, "but", self.rows(), self.raw[-500:])
            self.raw += os.read(self.fd, 65536).decode(errors="replace")

    def shows(self, pattern):
        self.until(lambda: any(re.search(pattern, r) for r in self.rows()), pattern, "is not shown")

    def says(self, text):
        self.until(lambda: text in self.raw, text, "is not said")

    def type(self, text):
        self.raw = ""
        os.write(self.fd, text.encode())

    def end(self):
        end = time.monotonic() + WAIT_S
        try:
            while select.select([self.fd], [], [], max(0, end - time.monotonic()))[0] and (more := os.read(self.fd, 65536)):
                self.raw += more.decode(errors="replace")
        except OSError:
            pass
        if time.monotonic() > end:
            os.kill(self.pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        expect("\x1b[?25h\x1b[?1049l" in self.raw, "the shell's screen is not back", self.raw[-200:])
        os.close(self.fd)
        return status


def keys(box: DaemonBox):
    """A question is answered and a session cancelled from the list; both change on the screen by themselves."""
    box.serve()
    asks = box.submit(box.file("which.yaml", ASKS.replace("ABORT", "COMPLETE")))
    box.wait_status(asks, "needs_input")
    workflow, scenario = simple(box, 600000)
    runs = box.submit(workflow, scenario, task="long")
    box.wait_status(runs, "running")
    w = Watch(box)
    w.shows(rf"^> {runs[:17]}\S* +running +simple")
    w.shows(rf"^  {asks[:17]}\S* +needs_input +which")
    flags = termios.tcgetattr(w.fd)[3]
    expect(not flags & termios.ECHO and not flags & termios.ICANON, "keys are echoed")
    w.type("j")
    w.shows(rf"^> {asks[:17]}\S* +needs_input")
    w.type("a")
    w.says("Answer (nothing: back)")
    expect(termios.tcgetattr(w.fd)[3] & termios.ECHO, "a line that is typed is not seen")
    w.type("sqlite\n")
    w.says("Enter goes back")
    w.type("\n")
    w.shows(rf"^> {asks[:17]}\S* +complete")
    expect(of_type(records(box.log(asks)), "answer"), "no answer in the log")
    w.type("\x1b[A")
    w.shows(rf"^> {runs[:17]}\S* +running")
    w.type("c")
    w.says("Cancel it for good? (yes)")
    w.type("no\n")
    w.says("Enter goes back")
    w.type("\n")
    w.shows(rf"^> {runs[:17]}\S* +running")
    w.type("c")
    w.says("Cancel it for good? (yes)")
    w.type("yes\n")
    w.says("Enter goes back")
    w.type("\n")
    w.shows(rf"^> {runs[:17]}\S* +cancelled")
    w.type("\r")
    w.says("Enter goes back")
    expect("workflow" in w.raw and runs in w.raw, w.raw)
    w.type("\n")
    w.shows("q quit")
    w.type("q")
    was = w.was
    now = termios.tcgetattr(w.fd)
    expect(w.end() == 0)
    expect(was[3] | termios.ECHO == was[3] and len(now) == len(was), "no terminal")
    box.end()


def sizes(box):
    """Many sessions, few rows: it scrolls, goes to both ends, and never writes over the edge, also after a resize."""
    os.mkdir(box.logs)
    write(box.logs, 300, 2, seed=3)
    w = Watch(box, "--logs", box.logs, size=(10, 80))
    w.shows("q quit")
    expect("\x1b[?7l" in w.raw, "a long row goes on in the next line")
    listed = box.segue("ls", "-n", "200", "--logs", box.logs).stdout.decode().split("\n")[1:201]
    expect(len(w.rows()) == 9 and w.rows()[1].startswith("> " + listed[0].split()[0]), w.rows())
    w.type("G")
    w.until(lambda: any(r.startswith("> " + listed[199].split()[0]) for r in w.rows()), "not at the end")
    w.type("g")
    w.until(lambda: any(r.startswith("> " + listed[0].split()[0]) for r in w.rows()), "not at the top")
    for rows, columns in ((4, 50), (60, 200), (1, 1), (12, 60)):
        w.raw = ""
        w.resize(rows, columns)
        shown = max(rows - 3, 1)  # sessions; a head above, and keys below
        w.until(lambda: len(w.rows()) == shown + 2, "not", shown, "sessions")  # noqa: B023
        expect(all(len(r) <= max(columns, 58) for r in w.rows()), columns, w.rows())  # the rest is cut
    os.kill(w.pid, signal.SIGTERM)
    expect(w.end() == 0)


def nothing(box):
    """Nothing ran yet; and without a terminal it says what to write."""
    os.mkdir(box.logs)
    w = Watch(box, "--logs", box.logs)
    w.says("no session: begin one with segue until, run or submit")
    w.type("jakc\x03")
    expect(w.end() == 0)
    done = box.segue("ls", "--watch", "--logs", box.logs)
    expect(done.returncode == 2 and b"needs a terminal" in done.stderr and b"segue ls --json" in done.stderr, done)


def forced(box):
    """CLICOLOR_FORCE colours what goes into a pipe; NO_COLOR is stronger, and 0 forces nothing."""
    os.mkdir(box.logs)
    write(box.logs, 2, 1, seed=1)
    for env, coloured in (({}, False), ({"CLICOLOR_FORCE": "1"}, True), ({"CLICOLOR_FORCE": "0"}, False),
                          ({"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, False)):
        done = box.segue("ls", "--logs", box.logs, env={**box.env, **env})
        expect((b"\x1b[" in done.stdout) == coloured, env, done.stdout)


if __name__ == "__main__":
    sys.exit(main([keys, sizes, nothing, forced]))
