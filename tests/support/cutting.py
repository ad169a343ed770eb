"""A small proxy before a PostgreSQL server's Unix socket that can do what networks do.

  with Cutting(server) as line:
      url = line.url("database")
      line.cut()            # every connection ends at both ends, and no new one comes through
      line.deaf("up")       # what clients say is lost from now on ("down": what the server says)
      line.slow(0.3)        # what the server says comes that much later
      line.half_open()      # the server's ends are gone, and no client hears of it
      line.on(b"append_all", "unsynced")   # once, at the next statement that has these bytes
      line.mend()           # new connections, and those that are left, work again

What a plan of `on` does: "unsynced": the server gets it without its sync, the client's connection ends,
the server's stays as it is. "half": it gets the first half. "swallowed": it does it, and the client's
connection ends before the answer.
"""
import os
import selectors
import socket
import tempfile
import threading
import time
import urllib.parse

SYNC = b"S\x00\x00\x00\x04"


class Line:
    def __init__(self, client, server):
        self.client, self.server = client, server
        self.swallows = False


class Cutting:
    def __init__(self, server):
        self.target = server.dir + "/.s.PGSQL.5432"
        self.dir = tempfile.mkdtemp(prefix="cut.", dir="/tmp")
        self.lock = threading.Lock()
        self.lines, self.kept, self.plans = [], [], []
        self.down, self.lost, self.fired = False, set(), 0
        self.delay, self.late = 0, []  # late: what is still to come to a client, in order
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.dir + "/.s.PGSQL.5432")
        self.listener.listen(64)
        self.ends = False
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ, None)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def url(self, database, user="postgres"):
        return f"postgres://{user}@{urllib.parse.quote(self.dir, safe='')}/{database}"

    # what can be asked of it

    def cut(self):
        with self.lock:
            self.down = True
            for line in list(self.lines):
                self.drop(line)

    def deaf(self, way):
        with self.lock:
            self.lost.add(way)

    def slow(self, seconds):
        with self.lock:
            self.delay = seconds

    def half_open(self):
        with self.lock:
            for line in self.lines:
                self.selector.unregister(line.client)
                self.selector.unregister(line.server)
                line.server.close()
                self.kept.append(line.client)  # open, and silent for good
            self.lines = []

    def on(self, words, plan):
        with self.lock:
            self.plans.append((words, plan))

    def mend(self):
        with self.lock:
            self.down = False
            self.lost, self.delay = set(), 0

    # the thread

    def drop(self, line, keep_server=False):
        self.lines.remove(line)
        self.selector.unregister(line.client)
        self.selector.unregister(line.server)
        line.client.close()
        if keep_server:
            self.kept.append(line.server)
        else:
            line.server.close()

    def accept(self):
        client, _ = self.listener.accept()
        if self.down:
            client.close()
            return
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self.target)
        except OSError:
            client.close()
            server.close()
            return
        line = Line(client, server)
        self.lines.append(line)
        self.selector.register(client, selectors.EVENT_READ, (line, "up"))
        self.selector.register(server, selectors.EVENT_READ, (line, "down"))

    def planned(self, line, data):
        """The plan that these bytes fulfil did all that is to be done with them."""
        for at, (words, plan) in enumerate(self.plans):
            if words not in data or (plan == "unsynced" and not data.endswith(SYNC)):
                continue
            del self.plans[at]
            self.fired += 1
            if plan == "swallowed":
                line.server.sendall(data)
                line.swallows = True
                return True
            line.server.sendall(data[:-len(SYNC)] + b"H\x00\x00\x00\x04" if plan == "unsynced" else data[:len(data) // 2])
            self.drop(line, keep_server=True)
            return True
        return False

    def move(self, line, way):
        source, sink = (line.client, line.server) if way == "up" else (line.server, line.client)
        try:
            data = source.recv(1 << 20)
            if not data or line.swallows:
                self.drop(line)
            elif way in self.lost or (way == "up" and self.planned(line, data)):
                pass
            elif way == "down" and (self.delay or any(late[1] is line for late in self.late)):
                self.late.append((time.monotonic() + self.delay, line, data))
            else:
                sink.sendall(data)
        except OSError:
            if line in self.lines:
                self.drop(line)

    def hand_on(self):
        """Sends what was late, once its time has come."""
        now = time.monotonic()
        due = [late for late in self.late if late[0] <= now]
        self.late = [late for late in self.late if late[0] > now]
        for _, line, data in due:
            try:
                if line in self.lines:
                    line.client.sendall(data)
            except OSError:
                self.drop(line)

    def run(self):
        while not self.ends:
            found = self.selector.select(0.01 if self.late else 0.05)
            with self.lock:
                self.hand_on()
                for key, _ in found:
                    if key.data is None:
                        self.accept()
                    elif key.data[0] in self.lines:  # else an earlier one ended it
                        self.move(*key.data)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.ends = True
        self.thread.join()
        for line in list(self.lines):
            self.drop(line)
        for one in [*self.kept, self.listener]:
            one.close()
        os.unlink(self.dir + "/.s.PGSQL.5432")
        os.rmdir(self.dir)
