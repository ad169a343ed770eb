#!/usr/bin/env python3
"""A test that lacks a program is skipped and names it, and the end of a run lists it; one that fails fails."""
import os
import subprocess
import sys

from support import BUILD, expect, main

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = """import sys
sys.path.insert(0, %r)
from support import expect, main, needs, skip
def lacks(): needs("sh", "no-such-program"); expect(False, "it went on")
def refuses(): skip("needs a moon")
def holds(): pass
def fails(): expect(False, "no")
sys.exit(main([lacks, refuses, holds, fails]))
"""


def a_program_that_is_missing(box):
    script = box.file("t.py", SCRIPT % (ROOT + "/tests/system"))
    for cases, status, says in ((["lacks"], 77, "skipped: no-such-program is not installed\nskip  lacks"),
                                (["lacks", "refuses"], 77, "skipped: needs a moon\nskip  refuses"),
                                (["lacks", "holds"], 0, "ok    holds"), (["lacks", "fails"], 1, "FAIL  fails: no")):
        done = subprocess.run([sys.executable, script, BUILD, *cases], capture_output=True, text=True, check=False)
        expect(done.returncode == status and says in done.stdout, cases, done.returncode, done.stdout, done.stderr)


def the_end_of_a_run_lists_it(box):
    os.makedirs(box.dir + "/Testing/Temporary")
    box.file("Testing/Temporary/LastTest.log",
             "1/3 Testing: system/a_test\nOutput:\nok    x: skipped: needs root  (0.2 s)\nskipped: pear is not installed\n"
             "skip  y  (0.1 s)\n2/3 Testing: unit/b_test\nskipped: pear is not installed\nskipped: pear is not installed\n"
             "3/3 Testing: unit/c_test\n3 failed, 2 skipped in 0.1 s\n")
    done = subprocess.run([ROOT + "/tests/skipped.py", box.dir], capture_output=True, text=True, check=True)
    expect(done.stdout == "Skipped, in whole or in part:\n  pear is not installed: system/a_test, unit/b_test\n"
           "  needs root: system/a_test\n", done.stdout)
    done = subprocess.run([ROOT + "/tests/skipped.py", box.dir + "/none"], capture_output=True, text=True, check=True)
    expect(done.stdout == "", done.stdout)


if __name__ == "__main__":
    sys.exit(main([a_program_that_is_missing, the_end_of_a_run_lists_it]))
