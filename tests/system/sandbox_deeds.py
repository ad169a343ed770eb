#!/usr/bin/env python3
"""A hostile program for sandbox_test.py: it tries everything that its orders (a JSON file, the first
argument) name, and prints a line each: {"deed": NAME, "done": true or false, "why": TEXT}."""
import contextlib
import ctypes
import fcntl
import json
import os
import resource
import socket
import struct
import subprocess
import sys
from pathlib import Path

AT = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
HOME, OUT = AT["home"], AT["out"]  # the home folder; a folder beside the workspace
LIBC = ctypes.CDLL(None, use_errno=True)


def read(path):
    return b"SECRET" in Path(path).read_bytes()


def write(path, flags=os.O_CREAT):
    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | flags, 0o755)
    os.write(fd, b"planted\n")
    os.close(fd)
    return True


def link_away():
    os.symlink(HOME + "/.ssh/id", "away")
    return read("away")


def write_through_a_link():
    os.symlink(OUT + "/target", "target")
    return write("target", 0)


def hard_link():
    os.link(HOME + "/.ssh/id", "hard")
    return read("hard")


def hard_link_out():
    os.link("own", OUT + "/linked")
    return True


def rename_out():
    os.rename("own", OUT + "/moved")
    return True


def rename_in():
    os.rename(HOME + "/.ssh/id2", "moved")
    return read("moved")


def empty_a_file():
    os.truncate(OUT + "/target", 0)
    return True


def into_a_fifo():
    """Opened for reading, too, so that no other reader is needed."""
    fd = os.open(OUT + "/fifo", os.O_RDWR | os.O_NONBLOCK)
    done = os.write(fd, b"planted\n") > 0
    os.close(fd)
    return done


def has_more():
    """More than its standard three; that of this listing itself is closed by then."""
    def is_open(fd):
        try:
            return os.fstat(int(fd)) is not None
        except OSError:
            return False
    return any(int(fd) > 2 and is_open(fd) for fd in os.listdir("/proc/self/fd"))


def by_vsock():
    """The way to the host of a virtual machine, which belongs to no network."""
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()
    return True


def inherited():
    for fd in range(3, 64):
        try:
            if b"SECRET" in os.pread(fd, 100, 0):
                return True
        except OSError:
            pass
    return False


def through_self_fd():
    """A handle on the folder that may be passed through only, opened anew for reading."""
    fd = os.open(HOME + "/.ssh", os.O_PATH)
    return read(f"/proc/self/fd/{fd}/id")


def call(path):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(5)
    s.connect(path)
    s.sendall(b"GET /v1/health HTTP/1.1\r\nHost: segue\r\n\r\n")
    return len(s.recv(100)) > 0


def ptrace(pid):
    if LIBC.ptrace(16, pid, 0, 0) != 0:  # PTRACE_ATTACH
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    LIBC.ptrace(17, pid, 0, 0)
    return True


def reach(family, where, kind=socket.SOCK_STREAM):
    s = socket.socket(family, kind)
    s.settimeout(5)
    if kind == socket.SOCK_DGRAM:
        s.sendto(b"out", where)
        return True
    s.connect(where)
    return True


def ask_dns():
    """A question to a resolver, and its answer."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(1)
    s.sendto(b"\x12\x34\x01\x00\x00\x01" + bytes(6) + b"\x07example\x03com\x00\x00\x01\x00\x01", ("127.0.0.1", AT["udp"]))
    return len(s.recv(512)) > 0


def limit(pid):
    """A limit of its processor time would end it."""
    resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
    return True


def own_limits():
    resource.prlimit(0, resource.RLIMIT_CORE, (0, 0))
    return resource.prlimit(os.getppid(), resource.RLIMIT_CORE) is not None


def share_memory():
    LIBC.shmat.restype = ctypes.c_void_p
    at = LIBC.shmat(AT["shared"], None, 0o10000)  # SHM_RDONLY
    if at == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return b"SECRET" in ctypes.string_at(at, 6)


def watch(path):
    fd = LIBC.inotify_init1(0)
    if LIBC.inotify_add_watch(fd, path.encode(), 0x100) < 0:  # IN_CREATE
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True


def memory(pid):
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps:
        at = int(maps.readline().split("-")[0], 16)
    with open(f"/proc/{pid}/mem", "rb") as mem:
        mem.seek(at)
        return len(mem.read(16)) > 0


def raw():
    return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) is not None


def packets():
    return socket.socket(17, socket.SOCK_RAW, 0) is not None


def listening():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen(1)
    return True


def namespace():
    return subprocess.run(["unshare", "-Ur", "true"], stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def mounted():
    return subprocess.run(["mount", "-t", "tmpfs", "none", "/mnt"], stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def keys():
    number = {"x86_64": 248, "aarch64": 217}[os.uname().machine]
    return LIBC.syscall(number, b"user", b"segue-test", b"x", 1, ctypes.c_int(-2)) > 0  # thread's


def ring():
    return LIBC.syscall(425, 1, ctypes.create_string_buffer(200)) >= 0


def stay_behind():
    """A grandchild of its own session that would write when the call is over."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if os.fork() == 0:
            with contextlib.suppress(OSError):  # the workspace may be read-only
                fcntl.flock(os.open("stays", os.O_WRONLY | os.O_CREAT, 0o644), fcntl.LOCK_EX)
            for i in range(3):
                os.close(i)
            while True:
                LIBC.pause()
        os._exit(0)
    os.waitpid(pid, 0)
    return True


def abstract():
    s = socket.socket(socket.AF_UNIX)
    s.connect("\0" + AT["abstract"])
    return True


def terminal():
    return fcntl.ioctl(0, 0x5412, struct.pack("c", b"x")) is not None


DEEDS = {
    # what it must be able to do
    "write in the workspace": lambda: write("own"),
    "write to its own folder": lambda: write(os.environ["TMPDIR"] + "/x"),
    "keep its own state": lambda: write(HOME + "/state-of-it/x"),
    "write to a cache": lambda: write(HOME + "/.cache/ccache/x"),
    "read the system": lambda: len(os.listdir("/usr/bin")) > 0,
    "list the home folder": lambda: len(os.listdir(HOME)) > 0,
    "run a program": lambda: subprocess.run(["true"], check=False).returncode == 0,
    "trace its own child": lambda: subprocess.run([sys.executable, "-c", "pass"],
                                                  check=False).returncode == 0,
    # and what not
    "read a key": lambda: read(HOME + "/.ssh/id"),
    "read a listed secret": lambda: read(HOME + "/mine/token"),
    "read segue's configuration": lambda: read(HOME + "/config/segue/SECRET.yaml"),
    "read a log": lambda: len(os.listdir(AT["logs"])) > 0 and any(
        len(open(AT["logs"] + "/" + n, "rb").read()) > 0 for n in os.listdir(AT["logs"])),
    "read another's home": lambda: read(AT["other"]),
    "read the home folder": lambda: read(HOME + "/notes"),
    "write beside the workspace": lambda: write(OUT + "/beside"),
    "write in the home folder": lambda: write(HOME + "/.profile"),
    "write over a program": lambda: write(HOME + "/bin/tool"),
    "read through a link": link_away,
    "write through a link": write_through_a_link,
    "read through a hard link": hard_link,
    "link out": hard_link_out,
    "rename out": rename_out,
    "rename in": rename_in,
    "empty a file": empty_a_file,
    "write to a FIFO": into_a_fifo,
    "have a descriptor of segue's": has_more,
    "read by a bind path": lambda: read(AT["bound"] + "/.ssh/id"),
    "read by a bind path of a part": lambda: read(AT["part"] + "/id"),
    "read by another's root": lambda: read(f"/proc/{AT['neighbour']}/root{HOME}/.ssh/id"),
    "read by its own descriptors": through_self_fd,
    "read an inherited descriptor": inherited,
    "read another's environment": lambda: read(f"/proc/{AT['neighbour']}/environ"),
    "call segue's daemon": lambda: call(AT["daemon"]),
    "call a named socket": lambda: call(AT["bus"]),
    "call an abstract socket": abstract,
    "plant a hook": lambda: write(".git/hooks/pre-commit"),
    "change git's settings": lambda: write(".git/config"),
    "give git settings of a worktree": lambda: write(".git/config.worktree"),
    "give git another folder": lambda: write(".git/commondir"),
    "signal a neighbour": lambda: os.kill(AT["neighbour"], 0) is None,
    "signal segue": lambda: os.kill(AT["segue"], 0) is None,
    "limit a neighbour": lambda: limit(AT["neighbour"]),
    "limit segue": lambda: limit(AT["segue"]),
    "limit itself": own_limits,
    "share memory with a neighbour": share_memory,
    "change a key's mode": lambda: os.chmod(HOME + "/.ssh/id", 0o644) is None,
    "change times beside the workspace": lambda: os.utime(OUT + "/target", (0, 0)) is None,
    "watch a folder": lambda: watch(OUT),
    "trace a neighbour": lambda: ptrace(AT["neighbour"]),
    "trace segue": lambda: ptrace(AT["segue"]),
    "read segue's memory": lambda: memory(AT["segue"]),
    "open IPv4": lambda: reach(socket.AF_INET, ("127.0.0.1", AT["port"])),
    "open IPv6": lambda: reach(socket.AF_INET6, ("::1", AT["port6"])),
    "make a socket to the host": by_vsock,
    "send UDP": lambda: reach(socket.AF_INET, ("127.0.0.1", AT["udp"]), socket.SOCK_DGRAM),
    "send UDP by IPv6": lambda: reach(socket.AF_INET6, ("::1", AT["udp6"]), socket.SOCK_DGRAM),
    "ask DNS": ask_dns,
    "listen": listening,
    "open a raw socket": raw,
    "open a packet socket": packets,
    "make a namespace": namespace,
    "mount": mounted,
    "keep a key in the kernel": keys,
    "set up a ring": ring,
    "type into the terminal": terminal,
    "stay behind": stay_behind,
}

if __name__ == "__main__":
    for deed, do in DEEDS.items():
        try:
            done, why = bool(do()), ""
        except (OSError, KeyError) as e:
            done, why = False, f"{type(e).__name__}: {e}"
        print(json.dumps({"deed": deed, "done": done, "why": why}), flush=True)
