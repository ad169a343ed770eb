#!/usr/bin/env python3
"""A program for way_out_test.py: what its network lets it reach, a JSON line for each deed of its
orders (a JSON file, the first argument)."""
import http.client
import json
import os
import socket
import sys
import threading

with open(sys.argv[1], encoding="utf-8") as orders:
    AT = json.load(orders)
PROXY = ("127.0.0.1", int(os.environ["HTTPS_PROXY"].rpartition(":")[2]))
BIG = 3_000_000


def tunnel(host, port):
    """The status of a CONNECT and the open connection."""
    s = socket.create_connection(PROXY, 20)
    s.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        more = s.recv(1)
        if not more:
            break
        head += more
    return int(head.split()[1]), s


def echo(size):
    """Sends so many bytes, says that it is all, and gets them back."""
    status, s = tunnel("localhost", AT["echo"])
    if status != 200:
        return status

    def send():
        s.sendall(b"x" * size)
        s.shutdown(socket.SHUT_WR)
    sender = threading.Thread(target=send)
    sender.start()
    n = 0
    while more := s.recv(65536):
        n += len(more)
    sender.join()
    return n


def many():
    held = [tunnel("localhost", AT["echo"]) for _ in range(20)]
    for i, (_, s) in enumerate(held):
        s.sendall(b"%d" % i)
    return [s.recv(10).decode() for _, s in held] == [str(i) for i in range(20)]


def plain(host):
    c = http.client.HTTPConnection(*PROXY, timeout=20)
    c.request("POST", f"http://{host}/x?y", b"the body")
    r = c.getresponse()
    return [r.status, r.read().decode()]


def raw(text):
    s = socket.create_connection(PROXY, 20)
    s.sendall(text)
    return int(s.recv(1000).split()[1])


def direct(family, where, kind=socket.SOCK_STREAM):
    s = socket.socket(family, kind)
    s.settimeout(5)
    s.connect(where)
    if kind == socket.SOCK_DGRAM:
        s.send(b"out")
    return "reached"


def own_server():
    s = socket.create_server(("127.0.0.1", 0))
    c = socket.create_connection(s.getsockname(), 5)
    c.close()
    return "reached"


DEEDS = {
    "allowed": lambda: echo(5),
    "much": lambda: echo(BIG) == BIG,
    "many": many,
    "plain": lambda: plain(f"localhost:{AT['http']}"),
    "plain refused": lambda: plain(f"localhost:{AT['echo'] + 1}")[0],
    "other port": lambda: tunnel("localhost", AT["other"])[0],
    "other host": lambda: tunnel("evil.example", 443)[0],
    "same host twice": lambda: tunnel("evil.example", 443)[0],
    "by address": lambda: tunnel("127.0.0.1", AT["echo"])[0],
    "metadata": lambda: tunnel("169.254.169.254", 80)[0],
    "no name": lambda: tunnel("gone.invalid", 443)[0],
    "nonsense": lambda: raw(b"HELLO\r\n\r\n"),
    "too long": lambda: raw(b"CONNECT " + b"x" * 9000),
    "IPv4": lambda: direct(socket.AF_INET, ("127.0.0.1", AT["echo"])),
    "IPv6": lambda: direct(socket.AF_INET6, ("::1", AT["other6"])),
    "UDP": lambda: direct(socket.AF_INET, ("192.0.2.1", 53), socket.SOCK_DGRAM),
    "DNS": lambda: socket.getaddrinfo("example.com", 443)[0][4],
    "own server": own_server,
}

if __name__ == "__main__":
    for deed, do in DEEDS.items():
        try:
            result = do()
        except OSError as e:
            result = f"error: {type(e).__name__}"
        print(json.dumps({"deed": deed, "result": result}), flush=True)
