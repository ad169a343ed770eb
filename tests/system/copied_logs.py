"""Folders of very many logs: copies of a few real ones under other ids, with their chains made anew."""
import hashlib
import json
import os
import random
import shutil
import time
from pathlib import Path

from audit_logs import session_id
from support import expect

WORKFLOW = """
name: {name}
judge: {{fallback: own_tag}}
provider: script
movements:
  - name: work
    instruction: Do {{task}}.
    rules:
      - {{condition: done, next: COMPLETE}}
      - {{condition: not done, next: ABORT}}
"""
TIDY = """
name: tidy
movements:
  - name: check
    command: [echo, done]
    rules:
      - {condition: when(exit == 0), next: COMPLETE}
"""


def templates(box):
    """Real logs, by how they ended: complete, aborted, stopped, of a command."""
    for tag, status in ((1, 0), (2, 1)):
        reply = json.dumps({"replies": [{"text": f"I did.\n\n[WORK:{tag}]"}]})
        done = box.segue("run", box.file("w.yaml", WORKFLOW.format(name=f"flow{tag}")), "-s",
                         box.file("s.yaml", reply), "-t", "the work", "-l", box.dir + "/made")
        expect((done.returncode != 0) == bool(status), done.stdout, done.stderr)
    box.segue("run", box.file("t.yaml", TIDY), "-t", "x", "-l", box.dir + "/made", status=0)
    none = box.file("none.yaml", "replies: []\n")
    box.segue("run", box.file("w.yaml", WORKFLOW.format(name="stops")), "-s", none, "-t", "x",
              "-l", box.dir + "/made")
    found = []
    for name in sorted(os.listdir(box.dir + "/made")):
        if name.endswith(".ndjson"):
            found.append((name[:-7].encode(), Path(f"{box.dir}/made/{name}").read_bytes().splitlines()))
    expect(len(found) == 4, found)
    return found


def copied(template, sid):
    """The log under another id; every line's hash is made anew."""
    old, lines = template
    out, last = [], b"0" * 64
    for line in lines:
        body = line[:line.rindex(b',"hash":"')].replace(old, sid)
        last = hashlib.sha256(last + body).hexdigest().encode()
        out.append(body + b',"hash":"' + last + b'"}\n')
    return b"".join(out)


def add(path, numbers):
    """Copies of a log beside it, under the ids of these numbers."""
    folder, name = os.path.split(path)
    template = (name[:-7].encode(), Path(path).read_bytes().splitlines())
    for sid in map(session_id, numbers):
        Path(f"{folder}/{sid}.ndjson").write_bytes(copied(template, sid.encode()))


def fill(box, count):
    found = templates(box)
    size = sum(sum(map(len, lines)) for _, lines in found) // len(found) + 4096
    free = shutil.disk_usage(box.dir).free
    if count * size > free / 2:
        return False
    os.mkdir(box.logs)
    chosen = random.Random(7)
    begin = int(time.time() * 1000) - 3 * 3600 * 1000
    for i in range(count):
        at = begin + i
        sid = "%08x-%04x-7%03x-8%03x-%012x" % (at >> 16, at & 0xffff, chosen.randrange(4096),
                                               chosen.randrange(4096), chosen.randrange(1 << 48))
        template = found[chosen.choices(range(4), (80, 10, 8, 2))[0]]
        Path(f"{box.logs}/{sid}.ndjson").write_bytes(copied(template, sid.encode()))
    return True
