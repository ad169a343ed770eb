"""A private PostgreSQL server for tests: its own folder, a Unix socket of mode 0700, no port.

  with Server() as server:          # None and .missing say why where there is no server to be had
      url = server.database("name") # a fresh one

As root it runs as another user, since PostgreSQL refuses uid 0.
"""
import glob
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
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
        return "there is no PostgreSQL server (Debian: postgresql-15)"
    if not library():
        return "there is no libpq (Debian: libpq5)"
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


class Server:
    def __init__(self, fsync=True, options=(), of=None):
        """of: the server that this one is a standby of, from a copy of it as it is now."""
        for number in (signal.SIGTERM, signal.SIGHUP):  # a test that is ended ends its server
            signal.signal(number, lambda n, _: sys.exit(128 + n))
        self.bin = programs()
        self.dir = tempfile.mkdtemp(prefix="pgt.", dir="/tmp")  # a socket's path is short
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
            self.run("initdb", "-D", self.data, "-A", "trust", "-U", "postgres", "-E", "UTF8",
                     "--locale=C.UTF-8", "--no-sync", "--no-instructions")
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
        """Rows of text, a line each, columns apart by a bar."""
        return self.run("psql", "-h", self.dir, "-U", user, "-d", database, "-AtqX", "-v",
                        "ON_ERROR_STOP=1", "-c", text).decode().strip()

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
