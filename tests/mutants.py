#!/usr/bin/env python3
"""Puts faults into the code, one at a time, and sees that a test fails.

usage: tests/mutants.py [WORD ...]      only the faults whose name or room begins with a WORD
       tests/mutants.py --find          only looks whether each place is still there

The faults stand in tests/data/mutants/<room>.txt:

    name: what it breaks              one line, unique
    file: src/store/files.c           or a folder
    - code that is there once         white space does not matter
    + what stands there instead       may be missing: nothing
    tests: unit/store_files_test system/disk_test:a_case

Several - or + lines are one text. A copy of the tree is built in build/mutants, a place for each
worker; several runs at once use places of their own. A fault survives when all of its tests pass.
Prints survivors and places that are gone; exits 1 if there are any.
"""
import concurrent.futures
import fcntl
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = ROOT + "/tests/data/mutants"
TEST_S = 150  # a test that takes longer has found the fault


class Fault:
    def __init__(self, room, name):
        self.room, self.name = room, name
        self.where, self.old, self.new, self.tests = "", [], [], []

    def pattern(self):
        return re.compile(r"\s+".join(re.escape(w) for w in " ".join(self.old).split()))

    def place(self):
        """The file that holds the code, or None when it is not there exactly once."""
        paths = [self.where]
        if os.path.isdir(f"{ROOT}/{self.where}"):
            paths = [os.path.relpath(os.path.join(at, n), ROOT)
                     for at, _, names in os.walk(f"{ROOT}/{self.where}") for n in names]
        found = []
        for path in paths:
            if path.endswith((".c", ".h")) and os.path.exists(f"{ROOT}/{path}"):
                found += [path] * len(self.pattern().findall(Path(f"{ROOT}/{path}").read_text(encoding="utf-8")))
        return found[0] if len(found) == 1 else None


def read_faults(words):
    faults = []
    for file in sorted(os.listdir(DATA)):
        if not file.endswith(".txt"):
            continue
        with open(f"{DATA}/{file}", encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                key, _, rest = line.rstrip("\n").partition(" ")
                if key == "name:":
                    faults.append(Fault(file[:-4], rest))
                elif key == "file:":
                    faults[-1].where = rest.strip()
                elif key == "-":
                    faults[-1].old.append(rest)
                elif key == "+":
                    faults[-1].new.append(rest)
                elif key == "tests:":
                    faults[-1].tests += rest.split()
                elif line.strip() and not line.startswith("#"):
                    sys.exit(f"{DATA}/{file}:{number}: not understood: {line}")
    names = [f.name for f in faults]
    for name in names:
        if names.count(name) > 1:
            sys.exit(f"two faults are called {name}")
    return [f for f in faults if not words or any(f.name.startswith(w) or f.room == w for w in words)]


class Place:
    """A copy of the tree with its build, held by one worker."""

    def __init__(self):
        number = 0
        while True:  # the first that no other run holds
            self.dir = f"{ROOT}/build/mutants/{number}"
            os.makedirs(self.dir + "/tree", exist_ok=True)
            self.lock = open(self.dir + "/lock", "w")
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                self.lock.close()
                number += 1
        self.build = self.dir + "/build"

    def refresh(self):
        files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                               capture_output=True, text=True).stdout.splitlines()
        wanted = {f for f in files if os.path.isfile(f"{ROOT}/{f}")}
        for at, _, names in os.walk(self.dir + "/tree"):
            for name in names:
                path = os.path.join(at, name)
                if os.path.relpath(path, self.dir + "/tree") not in wanted:
                    os.unlink(path)
        for f in wanted:
            to = f"{self.dir}/tree/{f}"
            content = Path(f"{ROOT}/{f}").read_bytes()
            if os.path.exists(to):
                with open(to, "rb") as b:
                    if b.read() == content:
                        continue
            os.makedirs(os.path.dirname(to), exist_ok=True)
            Path(to).write_bytes(content)
            shutil.copymode(f"{ROOT}/{f}", to)
        if not os.path.exists(self.build + "/build.ninja"):
            run(["cmake", "-S", self.dir + "/tree", "-B", self.build, "-G", "Ninja",
                 "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS=-O1 -g0", "-DSEGUE_FAULTS=ON"])

    def make(self, tests):
        targets = {"segue-shim"}
        for test in tests:
            kind, _, name = test.partition("/")
            if kind == "system":
                targets |= {"segue", "sync_order", "process_driver", "api_driver", "fake_agent"}
            else:
                targets.add(name + "_replay" if kind == "fuzz" else name)
        return run(["ninja", "-C", self.build, "-j", "1", *sorted(targets)])

    def test(self, test):
        """Whether it passes."""
        kind, _, name = test.partition("/")
        name, _, cases = name.partition(":")
        if kind == "system":
            script = next(f"{self.dir}/tree/tests/system/{name}{end}" for end in (".py", ".sh")
                          if os.path.exists(f"{self.dir}/tree/tests/system/{name}{end}"))
            words = [script, self.build, *filter(None, cases.split(","))]
        elif kind == "fuzz":
            words = [f"{self.build}/tests/{name}_replay", f"{self.dir}/tree/tests/data/fuzz/{name}"]
        else:
            words = [f"{self.build}/tests/{name}"]
        return run(words, TEST_S)

    def try_fault(self, fault, path):
        """The test that finds it, None when none does, or what is wrong with the fault."""
        full = f"{self.dir}/tree/{path}"
        text = Path(full).read_text(encoding="utf-8")
        Path(full).write_text(fault.pattern().sub(lambda _: "\n".join(fault.new), text), encoding="utf-8")
        try:
            if not self.make(fault.tests):
                return "(it does not compile)"
            return next((t for t in fault.tests if not self.test(t)), None)
        finally:
            Path(full).write_text(text, encoding="utf-8")


def run(words, seconds=900):
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        return process.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        return False


def main():
    words = [a for a in sys.argv[1:] if not a.startswith("-")]
    if set(sys.argv[1:]) - set(words) - {"--find"}:
        print(__doc__.strip())
        return 0 if "--help" in sys.argv else 2
    faults = read_faults(words)
    begin = time.monotonic()
    bad = []
    todo = [(f, f.place()) for f in faults]
    for fault, path in todo:
        if path is None:
            bad.append(fault)
            print(f"gone      {fault.room}: {fault.name}: not once in {fault.where}: {' '.join(fault.old)}")
    if "--find" in sys.argv:
        return 1 if bad else 0
    todo = [(f, p) for f, p in todo if p is not None]
    workers = min(os.cpu_count() or 1, len(todo))
    places, said = queue.SimpleQueue(), threading.Lock()
    tests = sorted({t for f, _ in todo for t in f.tests})

    def prepare(_):
        place = Place()
        place.refresh()
        if not place.make(tests):
            sys.exit(f"mutants: the tree does not build: ninja -C {place.build}")
        places.put(place)
        return place

    def attempt(item):
        fault, path = item
        place = places.get()
        try:
            found_by = place.try_fault(fault, path)
        finally:
            places.put(place)
        with said:
            print(f"{'found   ' if found_by else 'SURVIVED'}  {fault.room}: {fault.name}"
                  f"{'  by ' + found_by if found_by else ''}", flush=True)
        return found_by

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        all_places = list(pool.map(prepare, range(workers)))
        failing = [t for t, ok in zip(tests, pool.map(all_places[0].test, tests)) if not ok]
        if failing:
            sys.exit("mutants: these tests fail without a fault: " + " ".join(failing))
        print(f"built and tested as it is in {time.monotonic() - begin:.0f} s", flush=True)
        results = list(pool.map(attempt, todo))
    bad += [f for (f, _), by in zip(todo, results) if by is None or by.startswith("(")]
    print(f"{len(faults)} faults, {len(bad)} not found by a test, {time.monotonic() - begin:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
