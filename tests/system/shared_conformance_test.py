#!/usr/bin/env python3
"""The conformance suite of the store on PostgreSQL too: the same cases as on files."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + "/support")
import postgres  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])


def main():
    why = postgres.missing()
    if why:
        print("skipped:", why)
        return 77
    with postgres.Server() as server:
        url = server.database(name="segue_template")
        subprocess.run([BUILD + "/segue", "store", "init", "--store", url], check=True,
                       stdout=subprocess.DEVNULL)
        env = {**os.environ, "SEGUE_TEST_SERVER": server.dir, "SEGUE_TEST_PROGRAMS": server.bin,
               "XDG_STATE_HOME": server.dir + "/state", "HOME": server.dir}
        return subprocess.run([BUILD + "/tests/store_test"], env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
