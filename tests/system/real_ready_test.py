#!/usr/bin/env python3
"""The ready workflows default and review with the real claude and codex, end to end, in a repository
with a real fault: against a model on loopback whose first change is wrong, whose second is right, and
which says each time that all is well. Only with SEGUE_REAL_CLIENTS=1, as real_permissions_test.py.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import real_clients_test as clients  # noqa: E402
import real_permissions_test as permissions  # noqa: E402
from ready_test import WRONG, check_says, git, repository, turns
from support import Box, expect, needs, of_type, skip

COLUMNS = ("claude", "codex", "claude native", "codex native")
DOING = r"""
const LINES = { implement: 'echo $1', mend: '[ $1 -gt $2 ] && echo $1 || echo $2' };
function doing(n, ua, where, cwd) {
  const tool = re => n.tools.find(t => re.test(t.name));
  const place = t => Object.keys((t.schema && t.schema.properties) || {}).find(k => /path/i.test(k)) || 'path';
  const read = tool(/^(Read|read|read_file|view)$/), write = tool(/^(Write|write|write_file)$/);
  const line = LINES[where], path = cwd + '/max.sh';
  if (!line) return null;
  if (!read || !write)
    return n.after ? null : toolCall(n, ua, 'bash', '', '', "printf '%s\\n' '" + line + "' > max.sh", cwd);
  if (n.after === 0) return { name: read.name, args: { [place(read)]: path } };
  return n.after === 1 ? { name: write.name, args: { [place(write)]: path, content: line + '\n' } } : null;
}
"""
PATCHES = permissions.PATCHES[1:3] + [
    ("function decide(n, ua, eff, cwd, body) {", DOING + "function decide(n, ua, eff, cwd, body) {"),
    (" : 'mock'; return o;", " : p[k].enum ? p[k].enum[p[k].enum.length - 1] : p[k].type === 'array' ? [] "
     ": 'mock'; return o;"),
    ("const structured = q.J && q.sch", "const structured = (q.J || q.mv === 'report') && q.sch"),
    ("  else if (main && q.where === 'implement' && nn.after === 0 &&",
     "  else if (main && !q.J && nn.tools.length > 0 && doing(nn, ua, q.where, cwd)) blocks = [say('I do it. '), "
     "{ k: 'tool', ...doing(nn, ua, q.where, cwd) }];\n"
     "  else if (main && q.where === 'implement' && nn.after === 0 &&"),
]


def run(box, column, env, name, *words, status=0):
    done = box.segue("run", name, "-p", column.split()[0], "--cwd", box.cwd, "-l", box.logs, "--json",
                     *words, env=env, timeout=600)
    log = [json.loads(line) for line in done.stdout.splitlines()]
    expect(done.returncode == status, column, name, done.returncode, done.stderr.decode()[-1500:],
           turns(log), json.dumps(log[-3:])[-2500:])
    expect(box.segue("verify", "--logs", box.logs, "last").returncode == 0, "verify")
    return log


def one(column, folder, scratch):
    with Box() as box, permissions.Model(scratch) as model:
        repository(box, WRONG)
        env = clients.setup_client(column, box, model, "flow~" + box.cwd.encode().hex(), folder)
        log = run(box, column, env, "default", "-i", "check=sh check.sh",
                  "-t", "max.sh must print the larger number")
        movements = turns(log)
        checks = [r["exit"] for r in of_type(log, "call_end") if "exit" in r]
        expect([m for m in movements if not m.startswith("review.")] ==
               ["plan", "implement", "check", "mend", "check", "review", "supervise"], movements)
        expect(checks == [1, 0], "the check decides:", checks)
        expect(check_says(box) == 0, "the fault is mended")
        changed = subprocess.run(["git", "-C", box.cwd, "status", "--porcelain"], env=box.env,
                                 capture_output=True, check=True).stdout.decode()
        expect(changed == " M max.sh\n", "nothing else was changed:", changed)
        log = run(box, column, env, "review")
        expect(log[-1]["outputs"]["verdict"] == "change", log[-1])
        git(box, "checkout", "-q", "--", ".")
        left = clients.processes_of(box)
        expect(left == [], "processes are left:", left)


def main():
    if os.environ.get("SEGUE_REAL_CLIENTS") != "1":
        skip("SEGUE_REAL_CLIENTS is not 1")
    if not os.path.exists(clients.SHARED + "/tools/mockflow.js"):
        skip("there is no model")
    needs("npm", "node")
    scratch, failures = tempfile.mkdtemp(prefix="segue-clients-"), 0
    folder = os.environ.get("SEGUE_REAL_CLIENTS_DIR", scratch)
    clients.install(folder)
    permissions.PATCHES = PATCHES
    try:
        for column in [w for w in sys.argv[2:] if w in COLUMNS] or COLUMNS:
            try:
                one(column, folder, scratch)
                print("ok   ", column)
            except Exception as err:  # the next client tells its own
                failures += 1
                print("FAIL ", column, err)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
