"""A private PostgreSQL server for tests: its own folder, a Unix socket of mode 0700, no port.

  with Server() as server:          # None and .missing say why where there is no server to be had
      url = server.database("name") # a fresh one

As root it runs as another user, since PostgreSQL refuses uid 0. It lies in memory where there is a tmpfs with room: a
store whose server does not sync is refused, and there a sync costs nothing. What initdb makes is made once for a
build folder, and copied.
"""
import contextlib
import ctypes
import glob
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse


def programs():
    """The folder of initdb and its like, of the newest version; or None."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    return os.path.dirname(found[-1]) if found else None


def library():
    return glob.glob("/usr/lib/*/libpq.so.5") + glob.glob("/usr/lib/libpq.so.5")


def missing():
    """Why a server cannot be had here, or None."""
    if programs() is None:
        return "PostgreSQL is not installed"
    if not library():
        return "libpq5 is not installed"
    if os.getuid() == 0 and unprivileged() is None:
        return "as root, PostgreSQL needs a user postgres or nobody"
    return None


def need():
    """Ends a test that cannot have a server, as skipped."""
    why = missing()
    if why:
        print("skipped:", why)
        sys.exit(77)


def unprivileged():
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return None


def place():
    """Where servers lie. A socket's path is short."""
    for folder in ("/dev/shm", "/tmp"):
        at = os.statvfs(folder) if os.path.isdir(folder) and os.access(folder, os.W_OK) else None
        if at and at.f_bavail * at.f_frsize >= 2 << 30:
            return folder
    return "/tmp"


libpq = None
asking = threading.local()  # .kept: connections by server, database and user


@contextlib.contextmanager
def one_connection():
    """Within it a thread's questions to a database share a connection: for who asks again and again."""
    before, asking.kept = getattr(asking, "kept", None), {}
    try:
        yield
    finally:
        for connection in asking.kept.values():
            libpq.PQfinish(connection)
        asking.kept = before


def load():
    global libpq
    loaded = ctypes.CDLL(library()[0])
    loaded.quiet = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)(lambda _, notice: None)
    for name, result in (("PQconnectdb", ctypes.c_void_p), ("PQgetResult", ctypes.c_void_p), ("PQgetvalue", ctypes.c_char_p),
                         ("PQerrorMessage", ctypes.c_char_p), ("PQsetNoticeProcessor", ctypes.c_void_p)):
        getattr(loaded, name).restype = result
    libpq = loaded


def answer(connection, text):
    """The rows; None where it failed."""
    if libpq.PQstatus(connection) != 0 or not libpq.PQsendQuery(connection, text.encode()):
        return None
    rows, failed = [], False
    while result := libpq.PQgetResult(connection):
        result = ctypes.c_void_p(result)
        failed = failed or libpq.PQresultStatus(result) > 2  # neither done, nor rows
        for row in range(libpq.PQntuples(result)):
            rows.append(b"|".join(libpq.PQgetvalue(result, row, column) for column in range(libpq.PQnfields(result))))
        libpq.PQclear(result)
    return None if failed else rows


def query(host, text, database="postgres", user="postgres"):
    """Rows of text, a line each, columns apart by a bar, as psql prints them, but without a process for each question."""
    if libpq is None:
        load()
    key, kept = (host, database, user), getattr(asking, "kept", None)
    connection = kept.pop(key, None) if kept else None
    rows = answer(connection, text) if connection else None
    if rows is None:  # a new one, also where the server has ended what was kept
        if connection:
            libpq.PQfinish(connection)
        connection = ctypes.c_void_p(libpq.PQconnectdb(f"host='{host}' dbname='{database}' user='{user}'".encode()))
        libpq.PQsetNoticeProcessor(connection, libpq.quiet, None)
        rows = answer(connection, text)
    if rows is None:
        error = libpq.PQerrorMessage(connection).decode(errors="replace")
        libpq.PQfinish(connection)
        raise RuntimeError(f"{text}: {error}")
    if kept is None:
        libpq.PQfinish(connection)
    else:
        kept[key] = connection
    return b"\n".join(rows).decode().strip()


class Server:
    def __init__(self, fsync=True, options=(), of=None):
        """of: the server that this one is a standby of, from a copy of it as it is now."""
        for number in (signal.SIGTERM, signal.SIGHUP):  # a test that is ended ends its server
            signal.signal(number, lambda n, _: sys.exit(128 + n))
        self.bin = programs()
        self.dir = tempfile.mkdtemp(prefix="pgt.", dir=place())
        self.data = self.dir + "/d"
        self.process = None
        self.count = 0
        self.drop = {}
        if os.getuid() == 0:
            user = unprivileged()
            os.chown(self.dir, user.pw_uid, user.pw_gid)
            self.drop = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        os.chmod(self.dir, 0o700)
        self.settings = ["listen_addresses=", f"unix_socket_directories={self.dir}",
                         "unix_socket_permissions=0700", "max_connections=60",
                         "shared_buffers=32MB",
                         # else each start after a crash syncs every file of every database
                         "recovery_init_sync_method=syncfs", f"fsync={'on' if fsync else 'off'}", *options]
        if of is None:
            self.init()
        else:
            self.run("pg_basebackup", "-h", of.dir, "-U", "postgres", "-D", self.data,
                     "--write-recovery-conf", "--checkpoint=fast", "--no-sync")
        self.start()

    def run(self, program, *words, **kw):
        done = subprocess.run([f"{self.bin}/{program}", *words], capture_output=True,
                              cwd=self.dir, **self.drop, **kw)
        if done.returncode != 0:
            raise RuntimeError(f"{program}: {done.stderr.decode(errors='replace')}"
                               f"{done.stdout.decode(errors='replace')}")
        return done.stdout

    def init(self):
        """A new cluster: a copy of the first one that was made for this build folder."""
        build = sys.argv[1] if len(sys.argv) > 1 and os.path.isdir(sys.argv[1] + "/tests") else None
        kept = f"{build}/cluster-{self.bin.split('/')[-2]}"
        if build is None or not os.path.isdir(kept):
            self.run("initdb", "-D", self.data, "-A", "trust", "-U", "postgres", "-E", "UTF8",
                     "--locale=C.UTF-8", "--no-sync", "--no-instructions")
            if build is not None:
                mine = tempfile.mkdtemp(prefix="cluster.", dir=build)
                subprocess.run(["cp", "-a", self.data, mine + "/d"], check=True)
                try:
                    os.rename(mine + "/d", kept)
                except OSError:
                    pass  # somebody else was quicker
                shutil.rmtree(mine)
        else:
            subprocess.run(["cp", "-a", kept, self.data], check=True)

    def start(self):
        options = " ".join(f"-c {s.split('=')[0]}='{s.split('=', 1)[1]}'" for s in self.settings)
        self.run("pg_ctl", "-D", self.data, "-l", self.dir + "/log", "-w", "-t", "60", "-o",
                 options, "start")

    def stop(self, mode="fast"):
        self.run("pg_ctl", "-D", self.data, "-m", mode, "-w", "-t", "60", "stop")

    def promote(self):
        self.run("pg_ctl", "-D", self.data, "-w", "-t", "60", "promote")

    def pid(self):
        with open(self.data + "/postmaster.pid", encoding="utf-8") as f:
            return int(f.readline())

    def sql(self, text, database="postgres", user="postgres"):
        return query(self.dir, text, database, user)

    def url(self, database, user="postgres", others=()):
        """others: servers that are tried after this one; the one that may be written is taken."""
        hosts = ",".join(urllib.parse.quote(s.dir, safe="") for s in (self, *others))
        return f"postgres://{user}@{hosts}/{database}" + ("?target_session_attrs=read-write" if others else "")

    def database(self, template=None, name=None, user="postgres"):
        """A fresh one: its URL."""
        self.count += 1
        name = name or f"t{os.getpid()}_{self.count}"
        self.sql(f"CREATE DATABASE {name}" + (f" TEMPLATE {template}" if template else ""))
        return self.url(name, user)

    def with_password(self, user, password):
        """A superuser who is asked for it; all others are let in as they are."""
        self.sql(f"CREATE ROLE {user} SUPERUSER LOGIN PASSWORD '{password}'")
        with open(self.data + "/pg_hba.conf", "r+", encoding="utf-8") as f:
            rest = f.read()
            f.seek(0)
            f.write(f"local all {user} scram-sha-256\n" + rest)
        self.sql("SELECT pg_reload_conf()")

    def close(self):
        try:
            self.stop("immediate")
        except (RuntimeError, OSError):
            pass
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


class Pooler:
    """pgbouncer in front of a server, transaction by transaction, on a Unix socket of its own."""

    program = "/usr/sbin/pgbouncer"
    port = 6432  # the name of the socket's file only

    @classmethod
    def there(cls):
        return os.path.exists(cls.program)

    def __init__(self, server, user="postgres", password=None, size=8):
        self.dir, self.user = tempfile.mkdtemp(prefix="pgb.", dir="/tmp"), user
        if server.drop:
            os.chown(self.dir, server.drop["user"], server.drop["group"])
        users, ini = self.dir + "/users", self.dir + "/pgbouncer.ini"
        self.write(users, f'"{user}" "{password or ""}"\n', server)
        self.write(ini, f"[databases]\n* = host={server.dir} user={user}"
                   + (f" password={password}" if password else "") +
                   f"\n[pgbouncer]\nlisten_addr =\nlisten_port = {self.port}\nunix_socket_dir = {self.dir}\n"
                   f"auth_type = {'scram-sha-256' if password else 'any'}\nauth_file = {users}\n"
                   f"pool_mode = transaction\ndefault_pool_size = {size}\nlogfile = {self.dir}/log\n"
                   "ignore_startup_parameters = extra_float_digits\n", server)
        self.process = subprocess.Popen([self.program, "-q", ini], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, cwd=self.dir, **server.drop)
        end = time.monotonic() + 30
        while not os.path.exists(f"{self.dir}/.s.PGSQL.{self.port}"):
            if time.monotonic() > end or self.process.poll() is not None:
                self.close()
                raise RuntimeError("pgbouncer does not start")
            time.sleep(0.02)  # a look at a time; the deadline is above

    @staticmethod
    def write(path, text, server):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        if server.drop:
            os.chown(path, server.drop["user"], server.drop["group"])
        os.chmod(path, 0o600)

    def url(self, server_url):
        name = server_url.rsplit("/", 1)[1]
        return f"postgres://{self.user}@{urllib.parse.quote(self.dir, safe='')}/{name}?port={self.port}"

    def close(self):
        self.process.terminate()
        self.process.wait(30)
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
