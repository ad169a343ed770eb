#!/usr/bin/env python3
"""What the binary is made with: position-independent, read-only tables, canaries, checked copies,
marked targets of jumps; and no path of the machine that built it."""
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

from support import BUILD, SEGUE, expect, main, need_build, needs, skip

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def readelf(*words):
    return subprocess.run(["readelf", "-W", *words], check=True, capture_output=True,
                          env={**os.environ, "LC_ALL": "C"}).stdout.decode(errors="replace")


def segue_is_hardened():
    expect("Type:                              DYN" in readelf("-h", SEGUE), "not PIE")
    expect("GNU_RELRO" in readelf("-l", SEGUE), "no RELRO")
    expect(re.search(r"FLAGS.*\bNOW\b|BIND_NOW", readelf("-d", SEGUE)), "no BIND_NOW")
    expect(not re.search(r"GNU_STACK.*RWE", readelf("-l", SEGUE)), "an executable stack")
    symbols = readelf("--dyn-syms", SEGUE)
    expect("__stack_chk_fail" in symbols, "no canaries")
    expect(len(set(re.findall(r"__\w+_chk@", symbols))) > 5, "no checked copies")


def jumps_are_marked():
    if platform.machine() not in ("x86_64", "i686"):
        return "x86 only"
    with open(SEGUE, "rb") as f:  # the loader enforces it where all libraries are marked too
        expect(f.read().count(b"\xf3\x0f\x1e\xfa") > 500, "no endbr64 where functions begin")


def no_path_of_the_builder():
    for path in (SEGUE, BUILD + "/segue-shim"):
        content = Path(path).read_bytes()
        expect(os.fsencode(ROOT) + b"/src" not in content, path, "holds", ROOT)


if __name__ == "__main__":
    need_build()
    needs("readelf")
    bytes_of_it = Path(SEGUE).read_bytes()
    if b"__asan_init" in bytes_of_it or b"__tsan_init" in bytes_of_it or b"__gcov_" in bytes_of_it:
        skip("a build for tests of other things")
    sys.exit(main([segue_is_hardened, jumps_are_marked, no_path_of_the_builder]))
