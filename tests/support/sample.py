#!/usr/bin/env python3
"""Of many cases of one kind, such as points at which a program may be killed, a run plays some: another part
at each commit, and all of them where SEGUE_TEST_ALL is set (./dev test --all). What a promise rests on is not
drawn but always played.

  sample.draw("moves", points, 4)   # every fourth, beginning at one that the seed says
  sample.seed()                     # for generators of random numbers

Run as a program it prints the seed, which `dev` gives to all tests in SEGUE_TEST_SEED; that repeats a run.
"""
import hashlib
import os
import subprocess

ALL = bool(os.environ.get("SEGUE_TEST_ALL"))


def seed():
    """A number of the commit, from 1 to 2^31 - 1."""
    if "SEGUE_TEST_SEED" not in os.environ:
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=os.path.dirname(__file__) or ".", capture_output=True, text=True, check=False)
        os.environ["SEGUE_TEST_SEED"] = str(int(head.stdout[:7] or "1", 16) + 1)
    return int(os.environ["SEGUE_TEST_SEED"])


def draw(name, things, every):
    """One of each `every` things, in their order; which ones differs from name to name as well."""
    things = list(things)
    if ALL or every <= 1:
        return things
    first = int.from_bytes(hashlib.sha256(f"{seed()} {name}".encode()).digest()[:4], "big") % every
    print(f"{name}: one of {every}, SEGUE_TEST_SEED={seed()}", flush=True)
    return things[first::every] or things[:1]


if __name__ == "__main__":
    print(seed())
