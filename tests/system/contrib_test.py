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


def release(box):
    """A release of the program that is tested, signed by a key of today: its folder and who may sign."""
    folder, stage, version = box.dir + "/release", box.dir + "/stage", "0.1.0"
    name = f"segue-{version}-linux-{os.uname().machine}"
    os.mkdir(folder)
    done = subprocess.run(["cmake", "--install", BUILD, "--prefix", "/"], env={**os.environ, "DESTDIR": f"{stage}/{name}"},
                          capture_output=True, check=False)
    expect(done.returncode == 0, done.stderr)
    good(box, f"tar -C {stage} -czf {folder}/{name}.tar.gz {name} && cd {folder} && sha256sum -- * > SHA256SUMS && "
              f"ssh-keygen -q -t ed25519 -N '' -f {box.dir}/key && ssh-keygen -q -Y sign -n segue-release -f {box.dir}/key SHA256SUMS && "
              f"echo segue $(cut -d' ' -f1,2 {box.dir}/key.pub) > {box.dir}/signers")
    return folder


def installed(box, more="", script=ROOT + "/contrib/release/install.sh"):
    return run(box, f"{script} --prefix {box.dir}/home/usr --from {box.dir}/release --version 0.1.0 "
                    f"--signers {box.dir}/signers {more}")


def a_release_is_installed_if_it_is_signed():
    needs("ssh-keygen")
    with Box() as box:
        folder, prefix = release(box), box.dir + "/home/usr"
        sums, archive = Path(folder + "/SHA256SUMS"), next(Path(folder).glob("*.tar.gz"))
        right, whole = sums.read_bytes(), archive.read_bytes()
        for spoilt, broken, why in ((sums, right.replace(b"segue-", b"Segue-"), "not signed"), (archive, whole + b"x", "is not what")):
            before = spoilt.read_bytes()
            spoilt.write_bytes(broken)
            done = installed(box)
            expect(done.returncode == 1 and why in done.stdout and "nothing was installed" in done.stdout, done.stdout)
            expect(not os.path.exists(prefix + "/bin"), "something was")
            spoilt.write_bytes(before)
        # Signed, by somebody else; by the right one, for something else; not at all.
        good(box, f"ssh-keygen -q -t ed25519 -N '' -f {box.dir}/other")
        for key, space in (("other", "segue-release"), ("key", "file")):
            good(box, f"rm -f {folder}/SHA256SUMS.sig && ssh-keygen -q -Y sign -n {space} -f {box.dir}/{key} {folder}/SHA256SUMS")
            expect("not signed" in installed(box).stdout and not os.path.exists(prefix + "/bin"), key, space)
        os.remove(folder + "/SHA256SUMS.sig")
        expect(installed(box).returncode == 1 and not os.path.exists(prefix + "/bin"), "no signature")
        good(box, f"ssh-keygen -q -Y sign -n segue-release -f {box.dir}/key {folder}/SHA256SUMS")
        os.makedirs(prefix + "/share")
        Path(prefix + "/share/mine").touch()
        said = installed(box)
        expect(said.returncode == 0 and f"is installed below {prefix}" in said.stdout and "not in your PATH" in said.stdout, said.stdout)
        ran = run(box, f"cp -R {prefix}/share/segue/workflows/demo/project . && {prefix}/bin/segue run demo -C project --scenario {prefix}/share/segue/workflows/demo/scenario.yaml -t x -q",
                  **{"PATH": os.environ["PATH"]})
        expect(f"{prefix}/bin/segue" in Path(prefix + "/lib/systemd/user/segue.service").read_text(encoding="utf-8"), "the unit")
        expect(ran.returncode == 0, ran.stdout)
        Path(prefix + "/share/segue/former").touch()  # of a version before
        listed = Path(prefix + "/share/segue/installed")
        listed.write_text(listed.read_text(encoding="utf-8") + "share/segue/former\n../../kept\n", encoding="utf-8")
        Path(box.dir + "/kept").touch()
        expect(installed(box).returncode == 0 and not os.path.exists(prefix + "/share/segue/former"), "the former version's file")
        good(box, f"{ROOT}/contrib/release/install.sh --uninstall --prefix {prefix}")
        expect(os.listdir(prefix) == ["share"] and os.listdir(prefix + "/share") == ["mine"], os.listdir(prefix))
        expect(os.path.exists(box.dir + "/kept"), "what lies outside the prefix")
        for bad in ("--prefix", "--form x", f"--from {box.dir}/nothing"):
            done = run(box, f"{ROOT}/contrib/release/install.sh --version 0.1.0 --unsigned --prefix {box.dir}/no {bad}")
            expect(done.returncode in (1, 2) and done.stdout.startswith(("install.sh: ", "cp: ")), done.stdout)


def action(box, given, event=None):
    """Plays action.yml as a runner does: its steps' environment, what they write, and whether they fail."""
    told = subprocess.run([BUILD + "/src/yaml_to_json", ROOT + "/action.yml", box.dir + "/action.json"], check=False)
    expect(told.returncode == 0, "action.yml is no YAML")
    with open(box.dir + "/action.json", encoding="utf-8") as f:
        plan = json.load(f)
    files = {name: f"{box.dir}/{name}" for name in ("GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")}
    for path in files.values():
        Path(path).write_text("", encoding="utf-8")
    inputs = {name: given.get(name, text.get("default", "")) for name, text in plan["inputs"].items()}
    inputs = {name: (event or {}).get(text, "") if text.startswith("${{") else text for name, text in inputs.items()}
    failed, said = 0, ""
    for step in plan["runs"]["steps"]:
        if "run" not in step or (inputs["mode"] == "install" and "if" in step) or failed:
            continue
        env = {key: inputs[re.fullmatch(r"\$\{\{ inputs\.(\w+) \}\}", text)[1]] for key, text in step["env"].items()}
        expect("${{" not in step["run"], "an input would be a part of the script:", step["run"])
        done = run(box, step["run"], **files, **env, GITHUB_ACTION_PATH=ROOT, RUNNER_TEMP=box.dir + "/runner")
        failed, said = done.returncode, said + done.stdout
    lines = Path(files["GITHUB_OUTPUT"]).read_text(encoding="utf-8").splitlines()
    return failed, said, dict(line.split("=", 1) for line in lines), Path(files["GITHUB_STEP_SUMMARY"]).read_text(encoding="utf-8")


def the_action_tells_the_evidence():
    needs("ssh-keygen")
    with Box() as box:
        release(box)
        given = {"release": box.dir + "/release", "signers": box.dir + "/signers", "check": "sh tests/all.sh"}
        base = "${{ github.event.pull_request.base.sha }}"
        good(box, "git init -q && git config user.name a && git config user.email a@b && mkdir tests src && "
                  "echo 'sh src/work.sh' > tests/all.sh && git add -A && git commit -qm first && git checkout -qb work && "
                  "echo true > src/work.sh && git add -A && git commit -qm honest")
        event = {base: good(box, "git rev-parse HEAD~1").strip()}
        failed, said, out, summary = action(box, given, event)
        expect(not failed and out["result"] == "shown" and "| the check on the work | exit 0" in summary, said, out, summary)
        kept = os.listdir(out["folder"])
        expect({"evidence.md", "evidence.xml"} <= set(kept), kept)
        good(box, "git rm -q src/work.sh && echo 'true # $(touch stolen)' > tests/all.sh && git add -A && git commit -qm cheat")
        failed, said, out, summary = action(box, given, event)
        expect(failed == 1 and out["result"] == "old_check_fails" and "::error::" in said, failed, said, out)
        expect("old_check_fails" in summary and not os.path.exists(box.cwd + "/stolen"), summary)
        failed, said, out, _ = action(box, {**given, "check": ""}, event)
        expect(failed == 2 and "::error::segue: the input check is missing" in said, said)
        failed, said, out, _ = action(box, given, {base: "0" * 40})
        expect(failed == 2 and "fetch-depth: 0" in said, said)
        failed, said, out, _ = action(box, {**given, "signers": box.dir + "/key.pub"}, event)
        expect(failed == 1 and "not signed" in said and not out, said)


def the_action_runs_a_workflow():
    needs("ssh-keygen")
    with Box() as box:
        release(box)
        repository(box)
        good(box, "git add -A && git commit -qm first")
        Path(box.dir + "/bin/claude").write_text(AGENT, encoding="utf-8")
        os.chmod(box.dir + "/bin/claude", 0o755)
        box.env["ANTHROPIC_API_KEY"] = "sk-test-0123456789abcdef"
        given = {"release": box.dir + "/release", "mode": "run", "provider": "claude", "inputs": "check=test -f done.txt",
                 "task": "Write done.txt; $(touch stolen) `touch stolen`."}
        failed, said, out, summary = action(box, given)
        expect(not failed and out["result"] == "complete" and float(out["cost"]) > 0, failed, said, out)
        expect("| turn | movement |" in summary and f"Cost: {out['cost']}" in summary and "Turn 1" not in summary, summary)
        expect(not os.path.exists(box.cwd + "/stolen"), "a task is no command")
        kept = {name: Path(f"{out['folder']}/{name}").read_text(encoding="utf-8") for name in ("report.html", "work.patch")}
        expect("done.txt" in kept["report.html"] and "+done" in kept["work.patch"], kept["work.patch"])
        # A session that does not end well fails its step, and there is a report all the same.
        shutil.rmtree(box.dir + "/runner/segue")
        failed, said, out, summary = action(box, {**given, "inputs": "check=false"})
        expect(failed == 3 and "report.html" in os.listdir(out["folder"]), failed, said)
        shutil.rmtree(box.dir + "/runner/segue")
        Path(box.cwd + "/.segue/workflows/bad.yaml").write_text("name: bad\n", encoding="utf-8")
        failed, said, out, _ = action(box, given)
        expect(failed != 0 and "::error file=.segue/workflows/bad.yaml,line=" in said, said)
        failed, said, out, _ = action(box, {**given, "mode": "rnu"})
        expect(failed == 2 and "not 'rnu'" in said, said)


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
    sys.exit(main([a_commit_that_breaks_a_workflow_is_refused, a_release_is_installed_if_it_is_signed,
                   the_action_tells_the_evidence, the_action_runs_a_workflow, systemd_takes_the_units,
                   the_dev_container_is_described]))
