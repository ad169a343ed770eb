#!/usr/bin/env python3
"""What contrib/ holds does what it says: the pre-commit hook in a real repository, the job for CI step by
step with an agent that stands for claude, the units as systemd reads them, the container's files."""
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from support import BUILD, SEGUE, WAIT_S, Box, expect, main, needs, skip

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
AGENT = r"""#!/usr/bin/env python3
import json, re, sys
if "--version" in sys.argv:
    sys.exit(print("2.1.329 (Claude Code)"))
prompt = sys.stdin.read()
answer = {"type": "result", "subtype": "success", "is_error": False, "session_id": "s-1", "total_cost_usd": 0.01,
          "usage": {"input_tokens": 100, "output_tokens": 10}}
if "--json-schema" in sys.argv:
    answer.update(result="", structured_output={"reason": "It says so.", "step": 1})
else:
    try:
        open("done.txt", "w").write("done\n")
    except OSError:  # whoever only reads
        pass
    answer.update(result="All of it is done, and done.txt says so.")
print(json.dumps(answer))
"""


def run(box, script, **more):
    """What a shell makes of it, as in a step of a job."""
    return subprocess.run(["bash", "-e", "-c", script], cwd=box.cwd, env={**box.env, **more}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=WAIT_S)


def good(box, script, **more):
    done = run(box, script, **more)
    expect(done.returncode == 0, script, done.stdout)
    return done.stdout


def repository(box):
    os.mkdir(box.dir + "/bin")
    os.symlink(SEGUE, box.dir + "/bin/segue")
    box.env["PATH"] = box.dir + "/bin:" + box.env["PATH"]
    good(box, "git init -q && git config user.name a && git config user.email a@b && segue init")


def a_commit_that_breaks_a_workflow_is_refused(box):
    repository(box)
    shutil.copy(ROOT + "/contrib/pre-commit/segue-lint", box.cwd + "/.git/hooks/pre-commit")
    said = good(box, "git add -A && git commit -qm first")
    expect(said == "", "it has nothing to say:", said)
    broken = "sed -i 's/next: check/next: chekc/' .segue/workflows/work.yaml && git add -A"
    done = run(box, broken + " && git commit -qm second")
    expect(done.returncode != 0 and "did you mean check?" in done.stdout and ".segue/workflows/work.yaml:" in done.stdout, done.stdout)
    mended = "sed -i 's/next: chekc/next: check/' .segue/workflows/work.yaml"
    done = run(box, mended + " && git commit -qm 'what is staged is still broken'")
    expect(done.returncode != 0 and "did you mean check?" in done.stdout, "it looked at the folder:", done.stdout)
    good(box, "git add -A && echo a change >> .segue/facets/policies/house-rules.md && git commit -aqm third")
    done = run(box, "git rm -q .segue/facets/personas/reviewer.md && git commit -qm fourth")
    expect(done.returncode != 0 and "reviewer" in done.stdout, "a facet that a workflow names is gone:", done.stdout)
    good(box, "git reset -q --hard && mkdir sub && cd sub && echo x > y && git add -A && git commit -qm 'nothing of it' -- y && cd ..")
    good(box, "git rm -rq .segue && git commit -qm 'all of it'")


def steps(path):
    """The scripts of a job, by their step's name."""
    text = Path(path).read_text(encoding="utf-8")
    found = {}
    for name, more, one in re.findall(r"- name: (.+)\n(?:        if: .*\n)?        run: (?:\|\n((?:          .*\n)+)|(.*)\n)", text):
        found[name] = re.sub("^ {10}", "", more, flags=re.M) if more else one
    return found


def the_job_for_ci_runs():
    found = steps(ROOT + "/contrib/ci/github.yaml")
    expect(list(found) == ["install segue and an agent", "check the project's own workflows", "run", "report"], found)
    with Box() as box:
        repository(box)
        good(box, "git add -A && git commit -qm first")
        Path(box.dir + "/bin/claude").write_text(AGENT, encoding="utf-8")
        os.chmod(box.dir + "/bin/claude", 0o755)
        logs = box.dir + "/segue-logs"
        told = {"SEGUE_LOGS": logs, "ANTHROPIC_API_KEY": "sk-test-0123456789abcdef"}
        good(box, found["check the project's own workflows"], **told)
        said = good(box, found["run"], TASK="Write done.txt.", CHECK="test -f done.txt", **told)
        expect("COMPLETE" in said, said)
        good(box, found["report"], **told)
        with open(box.cwd + "/segue-report.html", encoding="utf-8") as f:
            expect("done.txt" in f.read(), "the report tells of the session")
        patch = Path(box.cwd + "/segue.patch").read_text(encoding="utf-8")
        expect("done.txt" in patch and "segue-report" not in patch, patch)
        # A session that does not end well fails its step, and there is a report all the same.
        done = run(box, found["run"], TASK="Write it.", CHECK="false", **told)
        expect(done.returncode == 3, done.returncode, done.stdout)
        good(box, found["report"], **told)
        Path(box.cwd + "/.segue/workflows/bad.yaml").write_text("name: bad\n", encoding="utf-8")
        done = run(box, found["check the project's own workflows"], **told)
        expect(done.returncode != 0 and "::error file=.segue/workflows/bad.yaml,line=" in done.stdout, done.stdout)


def systemd_takes_the_units():
    needs("systemd-analyze")
    with Box() as box:
        prefix = box.dir + "/usr"
        done = subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], capture_output=True, check=False)
        expect(done.returncode == 0, done.stderr.decode())
        folder = prefix + "/lib/systemd/user"
        expect(sorted(os.listdir(folder)) == ["segue.service", "segue@.service", "segue@.timer"], os.listdir(folder))
        for name in ("segue.service", "segue@x.service", "segue@x.timer"):
            shutil.copy(f"{folder}/{name.replace('@x', '@')}", f"{box.dir}/{name}")
        os.makedirs(box.dir + "/home/.config/segue/timers")
        done = subprocess.run(["systemd-analyze", "--user", "verify", "--man=no", *(
            f"{box.dir}/{n}" for n in ("segue.service", "segue@x.service", "segue@x.timer"))], capture_output=True, check=False,
                              env={**box.env, "XDG_RUNTIME_DIR": box.dir})
        said = done.stderr.decode()
        if "Failed to" in said and "segue" not in said:
            skip("systemd-analyze does not work here")
        expect(done.returncode == 0 and "segue" not in said, said)


def the_dev_container_is_described():
    told = json.loads(Path(ROOT + "/contrib/container/devcontainer.json").read_text(encoding="utf-8"))
    folder = ROOT + "/contrib/container"
    expect(os.path.exists(f"{folder}/{told['build']['dockerfile']}"), told)
    expect(os.path.samefile(f"{folder}/{told['build']['context']}", ROOT), told)


if __name__ == "__main__":
    sys.exit(main([a_commit_that_breaks_a_workflow_is_refused, the_job_for_ci_runs, systemd_takes_the_units,
                   the_dev_container_is_described]))
