#!/usr/bin/env python3
"""Runs benches.

usage: run.py BUILD_DIR [NAME [NUMBER...]]...    without a name: all but those that run by name only
The numbers behind a name are the bench's parameters, such as its sessions and rounds.
"""
import importlib
import os
import sys

# Each bench, a function of that name, and where it is. By name only run those that take long or need
# more than a build.
BENCHES = {"library": "call_bench", "spawn": "call_bench", "http": "http_bench", "program": "program_bench",
           "hostile": "program_bench",
           "session": "flow_bench", "submit": "flow_bench", "group": "flow_bench", "worktree": "call_bench",
           "held": "call_bench", "tree": "call_bench", "many": "census_bench", "audit": "census_bench",
           "verify": "census_bench", "window": "window_bench"}
BY_NAME = {"million": "census_bench", "window_live": "window_bench", "store": "store_bench"}


def main():
    words = sys.argv[1:]
    if not words or {"-h", "--help"} & set(words):
        print(__doc__, "benches: " + " ".join(BENCHES), "by name only: " + " ".join(BY_NAME), sep="\n")
        return 0 if words else 2
    if not os.access(words[0] + "/helpers/probe", os.X_OK):
        return f"run.py: {words[0]} is no build folder: ./dev build dev makes build/dev, ./dev bench builds by itself"
    asked = []
    for word in words[1:] or BENCHES:
        if word.isdigit() and asked:
            asked[-1][1].append(int(word))
        else:
            asked.append((word.lstrip("-"), []))  # --store: what is asked of a shared store
    modules = BENCHES | BY_NAME
    for name, _ in asked:
        if name not in modules:
            return f"run.py: there is no benchmark {name}; there are: {' '.join(modules)}"
    for name, numbers in asked:
        print(f"== {name}", flush=True)
        getattr(importlib.import_module(modules[name]), name)(*numbers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
