#!/usr/bin/env python3
"""The versions of the clients and SDKs that tests run as real programs, with the day on which they were last run;
where npm is reachable (SEGUE_REAL_CLIENTS=1), also which of them are older than what it has."""
import os
import re
import subprocess
import sys

import real_clients_test as clients  # noqa: E402
from support import expect, main


def each_has_a_version_and_a_day():
    for name, package in clients.VERSIONS.items():
        expect(re.fullmatch(r"(@[a-z-]+/)?[a-z-]+@\d+\.\d+\.\d+", package), name, package)
        expect(re.fullmatch(r"20\d\d-[01]\d-[0-3]\d", clients.DAYS[name]), name, clients.DAYS[name])
        newest = ""
        if os.environ.get("SEGUE_REAL_CLIENTS") == "1":
            done = subprocess.run(["npm", "view", package.rpartition("@")[0], "version"], capture_output=True, text=True)
            newest = done.stdout.strip()
        print(f"      {package}, tested on {clients.DAYS[name]}" +
              (f": npm has {newest}" if newest not in ("", package.rpartition("@")[2]) else ""))
    expect(set(clients.PACKAGES) <= set(clients.VERSIONS), clients.PACKAGES)


def every_agent_that_is_tried_stands_there():
    folder = clients.ROOT + "/src/provider/profiles/"
    tried = {n[:-5] for n in os.listdir(folder) if n.endswith(".yaml") and "install: npm" in open(folder + n).read()}
    expect(tried - {"cline"} <= set(clients.VERSIONS), tried - set(clients.VERSIONS))


sys.exit(main([each_has_a_version_and_a_day, every_agent_that_is_tried_stands_there]))
