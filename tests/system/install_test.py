#!/usr/bin/env python3
"""What `./dev install` puts into a folder works from there, and `./dev uninstall` leaves nothing; the
manual pages are sound; the completions answer in the shells that are here."""
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from support import BUILD, WAIT_S, expect, main, needs

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORKFLOW = """name: tiny
movements:
  - name: gather
    description: looks around
    provider: script
    instruction: look around
    rules: [{condition: done, next: give}, {condition: not done, next: ABORT}]
  - name: give
    provider: script
    instruction: give it
    rules: [{condition: done, next: COMPLETE}, {condition: not done, next: ABORT}]
"""


def install(box):
    prefix = box.dir + "/usr"
    done = subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], capture_output=True, check=False)
    expect(done.returncode == 0, done.stderr.decode())
    return prefix


def below(folder):
    return sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)


def it_works_from_where_it_was_put_and_goes_without_a_trace(box):
    os.makedirs(box.dir + "/usr/share/man")
    prefix = install(box)
    own = box.file("usr/share/segue/mine.txt", "kept\n")
    env = {k: v for k, v in box.env.items() if k != "SEGUE_SHIM"}
    done = subprocess.run([prefix + "/bin/segue", "lint", "demo"], env=env, cwd=box.cwd, capture_output=True,
                          check=False)
    expect(done.returncode == 0, "the shipped workflow is not found:", done.stderr.decode())
    flow = box.file("c.yaml", "name: c\nmovements:\n  - name: go\n    command: [echo, '[GO:1]']\n"
                    "    rules: [{condition: when(exit == 0), next: COMPLETE}]\n")
    done = subprocess.run([prefix + "/bin/segue", "run", flow], env=env, cwd=box.cwd, capture_output=True,
                          check=False)
    expect(done.returncode == 0, "the shim is not found:", done.stderr.decode())
    unit = Path(prefix + "/lib/systemd/user/segue.service").read_text(encoding="utf-8")
    expect(f"ExecStart={prefix}/bin/segue serve\n" in unit, unit)
    done = subprocess.run([ROOT + "/dev", "uninstall", prefix], capture_output=True, check=False)
    expect(done.returncode == 0, done.stderr.decode())
    expect(below(prefix) == [own], "it left:", below(prefix))
    left = sorted(os.path.relpath(at, prefix) for at, _, _ in os.walk(prefix))
    expect(left == [".", "share", "share/man", "share/segue"], "folders that were there stay, and no others:", left)
    done = subprocess.run([ROOT + "/dev", "uninstall", prefix], capture_output=True, check=False)
    expect(done.returncode == 1 and b"nothing was installed" in done.stderr, done.stderr)


def nothing_at_all_is_left_of_a_folder_that_it_made(box):
    prefix = install(box)
    install(box)  # once more: what the first one made is still known
    done = subprocess.run([ROOT + "/dev", "uninstall", prefix], capture_output=True, check=False)
    expect(done.returncode == 0 and not os.path.exists(prefix), done.stderr.decode(), list(os.walk(prefix)))


def each_command_has_a_page_without_a_warning(box):
    pages = box.segue("manual", "--list").stdout.decode().split()
    for name in ("segue.1", "segue-run.1", "segue-workflow.5", "segue-log.5"):
        expect(name in pages, name, "is missing:", pages)
    told = box.segue("manual", "segue-workflow.5").stdout.decode()
    expect("max_movements" in told and "structured_output" in told, told)
    expect(box.segue("manual", "nothing").returncode == 2, "a page that is not there")
    needs("man", "groff")  # whose warnings would count
    box.segue("manual", "--all", box.dir + "/pages", status=0)
    for path in below(box.dir + "/pages"):
        done = subprocess.run(["man", "--warnings", "-l", "-Tutf8", path], capture_output=True, check=False,
                              env={**os.environ, "LC_ALL": "C.UTF-8"})
        expect(done.returncode == 0 and done.stderr == b"", path, done.stderr.decode())


def asked(box, *words):
    return [line.split("\t")[0] for line in box.segue("completion", "--for", "--", *words).stdout.decode().splitlines()]


def tab_offers_what_there_is(box):
    os.makedirs(box.cwd + "/.segue/workflows")
    Path(box.cwd + "/.segue/workflows/tiny.yaml").write_text(WORKFLOW, encoding="utf-8")
    script = box.file("s.json", '{"replies": [{"text": "[GATHER:1]"}, {"text": "[GIVE:1]"}]}')
    flow = box.cwd + "/.segue/workflows/tiny.yaml"
    box.env["SEGUE_LOGS"] = box.logs
    done = box.segue("run", flow, "-t", "x", "-s", script)
    expect(done.returncode in (0, 1), done.stderr)
    session = os.path.basename(box.log_paths()[0])[:-len(".ndjson")]
    expect("tiny" in asked(box, "run", "ti"), asked(box, "run", "ti"))
    expect(":files" in asked(box, "run", ""), "a path may stand there, too")
    expect(asked(box, "ru") == ["run"], asked(box, "ru"))
    expect("--provider" in asked(box, "run", "tiny", "--pr"), "options")
    expect(asked(box, "run", "tiny", "--provider", "clau") == ["claude"], "providers")
    expect(asked(box, "prompt", "tiny", "g") == ["gather", "give"], asked(box, "prompt", "tiny", "g"))
    expect(session in asked(box, "show", session[:6]), asked(box, "show", session[:6]))
    expect("gather" in asked(box, "show", session, ""), asked(box, "show", session, ""))
    expect(asked(box, "completion", "z") == ["zsh"], "words of a list")
    expect(asked(box, "nonsense", "") == [], "an unknown command")
    # A name out of a file is no word that a shell would run.
    evil = WORKFLOW.replace("name: gather", "name: 'g;touch x'")
    Path(flow).write_text(evil, encoding="utf-8")
    expect(asked(box, "prompt", "tiny", "g") == ["give"], asked(box, "prompt", "tiny", "g"))


SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(segue completion bash)"'),
    "zsh": (["zsh", "-f", "-i"], 'autoload -Uz compinit; compinit -u -D; eval "$(segue completion zsh)"'),
    "fish": (["fish", "--no-config", "-i"], "segue completion fish | source"),
}


def typed(box, shell, setup, keys, until):
    """Types keys at a terminal of that shell, once it has its completions. True: it printed `until`."""
    env = {**box.env, "PATH": box.dir + "/bin:" + box.env["PATH"], "TERM": "dumb" if shell[0] == "bash" else "xterm"}
    child, fd = pty.fork()
    if child == 0:
        os.chdir(box.cwd)
        os.execvpe(shell[0], shell, env)
    said = b""
    try:
        # The words as they are typed are echoed: what is looked for must not stand in them.
        for keys, wanted in ((setup + "; printf 'RE%s\\n' ADY\n", b"READY"), (keys, until)):
            os.write(fd, keys.encode())
            said = b""
            while wanted not in said:
                if not select.select([fd], [], [], WAIT_S)[0]:
                    return said
                said += os.read(fd, 65536)
        return True
    except OSError:
        return said
    finally:
        os.close(fd)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def real_shells_complete(box):
    """Tab, then Enter: the command that was completed runs. Words of a list, workflows, movements, ids."""
    os.mkdir(box.dir + "/bin")
    os.symlink(BUILD + "/segue", box.dir + "/bin/segue")
    os.makedirs(box.cwd + "/.segue/workflows")
    Path(box.cwd + "/.segue/workflows/tiny.yaml").write_text(WORKFLOW, encoding="utf-8")
    box.env["SEGUE_LOGS"] = box.logs
    box.segue("run", "tiny", "-t", "x", "-s", box.file("s.json", '{"replies": [{"text": "[GATHER:2]"}]}'))
    session = os.path.basename(box.log_paths()[0])[:-len(".ndjson")]
    for name, (shell, setup) in SHELLS.items():
        if shutil.which(name) is None:
            print(f"skipped: {name} is not installed")
            continue
        for keys, until in (("segue completion z\t\n", b"#compdef segue"), ("segue lint ti\t\n", b"2 movements"),
                            ("segue prompt tiny gi\t\n", b'movement "give"'),
                            (f"segue show {session[:8]}\t\n", session.encode() + b".ndjson")):
            said = typed(box, shell, setup, keys, until)
            expect(said is True, name, keys, said)


if __name__ == "__main__":
    sys.exit(main([it_works_from_where_it_was_put_and_goes_without_a_trace,
                   nothing_at_all_is_left_of_a_folder_that_it_made, each_command_has_a_page_without_a_warning,
                   tab_offers_what_there_is, real_shells_complete]))
