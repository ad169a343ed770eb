#!/usr/bin/env python3
"""What guard opens of the home folder: its table (src/provider/home.txt), what PATH leads to, and the client's own
state; and that nothing which runs later outside can be written.

usage: home_test.py BUILD_DIR [CASE...]"""
import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from support import Box, expect, main, need_build, of_type, records, skip

LOGINS = """.ssh/id .aws/credentials .gnupg/secring .config/gcloud/x .kube/config .netrc .git-credentials .gitcookies .config/git/credentials .config/gh/hosts.yml
 .pgpass .my.cnf .pypirc .vault-token .docker/config.json .cargo/credentials.toml .local/share/keyrings/x .config/rclone/x .mozilla/x
 .claude.json .claude/.credentials.json .codex/auth.json .gemini/oauth_creds.json .qwen/oauth_creds.json .copilot/config.json
 .config/github-copilot/x .local/share/opencode/auth.json .pi/agent/auth.json .config/anthropic/x .npmrc .yarnrc.yml .m2/settings.xml
 .gradle/gradle.properties .config/pip/pip.conf .nuget/NuGet/NuGet.Config .composer/auth.json .gem/credentials .bundle/config .hex/hex.config
 .config/glab-cli/config.yml .config/containers/auth.json .s3cfg .boto .fly/config.yml .config/heroku/x .config/doctl/x .oci/config
 .config/hcloud/x .linode-cli .config/sops/age/keys.txt .config/age/x .databrickscfg .snowflake/x .terraformrc .ansible/x .huggingface/token
 .cache/huggingface/token .config/wandb/x .kaggle/kaggle.json .authinfo .msmtprc .mbsyncrc .mutt/x .local/share/evolution/x
 .local/share/kwalletd/x .local/share/atuin/key .config/Bitwarden/x .config/Signal/x .config/Slack/x .config/discord/x
 .config/Code/state.vscdb .librewolf/x .config/google-chrome-beta/x .bitcoin/x .electrum/x .bash_history .zsh_history .zhistory
 .local/share/fish/fish_history .lesshst .viminfo .irb_history .sqlite_history .rediscli_history .segue/facets/x .pulumi/credentials.json
 .config/new-tool/token .new-tool/token Documents/letter projects/other/.env .julia/servers/x/auth.toml .dotnet/corefx/x
 .platformio/appstate.json .sbt/.credentials .pub-cache/credentials.json .cabal/config .bashrc""".split()
STARTS = """.cargo/env .cargo/bin/x .cargo/config.toml go/bin/x .local/bin/x .local/share/systemd/user/x .local/share/dbus-1/services/x
 .local/share/bash-completion/completions/x .local/share/applications/x .local/share/nvim/x .local/share/fish/x .config/autostart/x
 .config/systemd/user/x .config/fish/config.fish .gradle/init.d/x .gradle/init.gradle .opam/x .ghcup/env .bashrc .profile .zshenv .xprofile
 .bun/bin/x .deno/bin/x .dotnet/tools/x .pub-cache/bin/x .mix/escripts/x .cabal/bin/x .local/pipx/x .local/share/pipx/x .yarn/bin/x
 .rustup/toolchains/x .gem/ruby/x .composer/vendor/bin/x .platformio/penv/x .nvm/x .pyenv/x .npm/_npx/x .cache/pre-commit/x
 .cache/node/corepack/x .cache/pypoetry/virtualenvs/x .cache/p10k-instant-prompt.zsh .config/go/env .gitconfig .config/git/config
 .m2/wrapper/x .sbt/boot/x .local/lib/x .vimrc .ssh/authorized_keys""".split()
CACHES = ".npm/_cacache/x .cargo/registry/x .cargo/git/x go/pkg/x .cache/pip/x .cache/go-build/x .ccache/x .gradle/caches/x .m2/repository/x".split()
READ = ".gitconfig .gitignore_global .config/git/ignore .cargo/config.toml .rustup/settings.toml .nvm/versions/x .local/lib/python3/x .pyenv/version".split()
FLOW = """name: w
provider: %s
movements:
  - {name: work, edit: true, instruction: Do it., judge: {stages: [phase1_tag]}, rules: [{condition: done, next: COMPLETE}]}
"""


def bwrap_works():
    return shutil.which("bwrap") and subprocess.run(["bwrap", "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "true"],
                                                    capture_output=True).returncode == 0


MECHANISMS = ["landlock", *(["bwrap"] if bwrap_works() else [])]


def plant(box, names, text="SECRET\n"):
    for name in names:
        os.makedirs(os.path.dirname(f"{box.dir}/home/{name}"), exist_ok=True)
        if not os.path.exists(f"{box.dir}/home/{name}"):
            box.file("home/" + name, text)


def configure(box, mechanism="landlock", **sandbox):
    os.makedirs(box.dir + "/home/config/segue/providers", exist_ok=True)
    box.file("home/config/segue/config.yaml", json.dumps({"sandbox": {"level": "guard", "mechanism": mechanism, **sandbox}}))


def agent(box, script, name="stranger", state=(), out=0):
    """Runs a shell script as the program of a provider; what it printed."""
    program = box.file("agent-" + name, f"#!/bin/sh\nmark=$(grep -o ':N\\] [a-z0-9]*' | sed 's/.* //')\n{script}\necho Done.; echo \"[WORK:1] $mark\"\n")
    os.chmod(program, 0o755)
    box.file(f"home/config/segue/providers/{name}.yaml",
             f"summary: s\nprogram: {program}\nargv: []\noutput: text\ntext: all\nstate: {json.dumps(list(state))}\n")
    box.segue("run", box.file("w.yaml", FLOW % name), "--task", "t", "--logs", box.logs, "--cwd", box.cwd, status=out)
    return of_type(records(box.log_paths()[-1]), "call_end")[0]["text"]


def try_all(names, line):
    return "cd; " + "\n".join(line.replace("F", name) for name in names)


def no_login_is_read_and_no_start_written():
    for mechanism in MECHANISMS:
        with Box() as box:
            configure(box, mechanism)
            plant(box, [*LOGINS, *STARTS, *CACHES, *READ])
            text = agent(box, try_all(LOGINS, "cat F >/dev/null 2>&1 && echo READ F"))
            expect("READ" not in text, mechanism, text)
            text = agent(box, try_all(STARTS, "(echo x >>F) 2>/dev/null && echo WROTE F; "
                                              "(echo x >F.new) 2>/dev/null && echo WROTE F.new"))
            expect("WROTE" not in text, mechanism, text)
            text = agent(box, try_all(READ, "cat F >/dev/null || echo CLOSED F"))
            expect("CLOSED" not in text, mechanism, text)
            text = agent(box, try_all(CACHES, "echo x >>F && echo x >F.new && cat F.new >/dev/null || echo CLOSED F"))
            expect("CLOSED" not in text, mechanism, text)


def a_client_has_its_own_login_only():
    for mechanism in MECHANISMS:
        with Box() as box:
            configure(box, mechanism)
            plant(box, [".one/login", ".two/login"])
            for name, other in (("one", "two"), ("two", "one")):
                text = agent(box, f"cat ~/.{name}/login; cat ~/.{other}/login && echo OTHER; echo y >~/.{name}/new && echo WROTE", name, [f"~/.{name}/"])
                expect("SECRET" in text and "OTHER" not in text and "WROTE" in text, mechanism, text)


def what_path_leads_to_is_read():
    for mechanism in MECHANISMS:
        with Box() as box:
            home = box.dir + "/home"
            plant(box, ["opt/tool-1/lib/data", ".nvm/versions/node/v9/lib/data", ".tools/lib/data", ".tools/token", ".local/share/tool/data",
                        ".local/share/tool/venvs/t/lib/data", "plain/.env/lib/data", "plain/secret/bin/x", "plain/secret/data", "work/other/data"])
            os.makedirs(home + "/work/bin")
            for path in ("opt/tool-1/bin/tool", ".nvm/versions/node/v9/bin/node9", ".tools/bin/t1", ".local/share/tool/venvs/t/bin/t2", "plain/.env/bin/p"):
                os.makedirs(os.path.dirname(f"{home}/{path}"), exist_ok=True)
                os.chmod(box.file("home/" + path, "#!/bin/sh\ncat \"$(dirname \"$(readlink -f \"$0\")\")/../lib/data\"\n"), 0o755)
            os.chmod(home + "/plain/secret/bin/x", 0o755)
            os.makedirs(home + "/.local/bin")
            os.makedirs(home + "/bin")
            os.symlink(home + "/opt/tool-1/bin/tool", home + "/bin/tool")
            os.symlink("../share/tool/venvs/t/bin/t2", home + "/.local/bin/t2")
            os.symlink(home + "/plain/secret/bin/x", home + "/plain/.env/bin/planted")  # an agent may have written there
            box.env["PATH"] = ":".join(f"{home}/{p}" for p in ("bin", ".local/bin", ".tools/bin", ".nvm/versions/node/v9/bin", "plain/.env/bin", "work/bin")) + ":/usr/bin:/bin"
            configure(box, mechanism)
            text = agent(box, "for p in tool t2 t1 node9 p; do $p >/dev/null || echo CLOSED $p; done; cd\n"
                         "cat .tools/token && echo READ; cat .local/share/tool/data && echo READ; cat plain/secret/data && echo READ; cat work/other/data && echo READ; echo x >bin/new && echo WROTE")
            expect(not any(w in text for w in ("CLOSED", "READ", "WROTE")), mechanism, text)
            doctor = json.loads(box.segue("doctor", "--quick", "--json").stdout)
            closed = [f["text"] for f in doctor["findings"] if "PATH" in f["what"]]
            expect(closed == [home + "/plain/.env/bin/planted"], closed)


def the_workspace_and_its_repository_are_open():
    for mechanism in MECHANISMS:
        with Box() as box:
            configure(box, mechanism)
            plant(box, ["mono/a/f", "mono/shared.json", "other/f"], "PLAIN\n")
            subprocess.run(["git", "init", "-q", box.dir + "/home/mono"], check=True, env=box.env)
            box.cwd = box.dir + "/home/mono/a"
            text = agent(box, "cat ../shared.json && git log 2>&1 | head -1; echo x >new && cat new; cat ~/other/f && echo OTHER; echo x >../beside && echo WROTE")
            expect("PLAIN" in text and "OTHER" not in text and "WROTE" not in text and os.path.exists(box.cwd + "/new"), mechanism, text)
            box.cwd = box.dir + "/home"
            text = agent(box, "cat other/f && echo x >new && cat new && echo ALL")
            expect("ALL" in text, mechanism, text)


def a_worktree_reads_what_it_links_to():
    for mechanism in MECHANISMS:
        with Box() as box:
            configure(box, mechanism)
            plant(box, ["proj/node_modules/m", "proj/.env"])
            box.cwd = box.dir + "/home/proj"
            for words in (["init", "-q"], ["config", "user.email", "a@example.org"], ["config", "user.name", "n"], ["commit", "-q", "--allow-empty", "-m", "x"]):
                subprocess.run(["git", *words], cwd=box.cwd, check=True, env=box.env)
            box.file("home/config/segue/config.yaml", json.dumps({"sandbox": {"level": "guard", "mechanism": mechanism},
                     "workspace": {"mode": "worktree", "link": ["node_modules"]}}))
            text = agent(box, f"cat node_modules/m && echo LINKED; cat {box.cwd}/.env && echo READ; git log --oneline | wc -l")
            expect("LINKED" in text and "READ" not in text, mechanism, text)


def a_link_to_the_home_folder_is_followed():
    for mechanism in MECHANISMS:
        with Box() as box:
            configure(box, mechanism)
            plant(box, ["dotfiles/gitconfig", ".ssh/id", ".ccache/x"])
            os.symlink("dotfiles/gitconfig", box.dir + "/home/.gitconfig")
            os.rename(box.dir + "/home/.ccache", box.dir + "/home/dotfiles/ccache")
            os.symlink("dotfiles/ccache", box.dir + "/home/.ccache")
            text = agent(box, "cat ~/.gitconfig && cat ~/.ccache/x && echo x >~/.ccache/new && echo ALL; cat ~/dotfiles/other; cat ~/.ssh/id && echo READ")
            expect("ALL" in text and "READ" not in text, mechanism, text)


def home_open_is_the_way_back():
    for mechanism in MECHANISMS:
        with Box() as box:
            configure(box, mechanism, home="open")
            plant(box, [*LOGINS, "notes"])
            text = agent(box, "cat ~/notes; cat ~/.new-tool/token; cat ~/projects/other/.env")
            expect(text.count("SECRET") == 3, mechanism, text)
            text = agent(box, try_all([n for n in LOGINS if "new-tool" not in n and not n.startswith((".bashrc", "Documents", "projects", ".julia", ".hexx", ".platformio", ".pub-cache", ".cabal"))],
                                      "cat F >/dev/null 2>&1 && echo READ F"))
            expect("READ" not in text, mechanism, text)


def it_is_shown_and_explained(box):
    configure(box, secret=["~/.nvm"])
    plant(box, [".gitconfig", ".nvm/x", ".ssh/id", ".ccache/x"])
    home = box.dir + "/home"
    shown = json.loads(box.segue("sandbox", "--for", "claude", "--json").stdout)
    rules = {r["path"]: (r["access"], r["why"]) for r in shown["rules"]}
    expect(rules[home + "/.gitconfig"] == ("read", "git's settings: .gitconfig*, .gitignore*, .gitattributes*") and rules[home + "/.claude"] == ("write", "the client's own state"), rules)
    expect(rules[home] == ("closed", "the home folder") and shown["sandbox"]["level"] == "guard" and "api.anthropic.com" in shown["hosts"], shown)
    for path, says, status in (("/.gitconfig", ": read, by ", 0), ("/.ssh/id", ": closed, by ", 1), ("/.ccache/new", ": write, by ", 0),
                               ("/.nvm/x", "(your settings: secret)", 1), ("/work", ": closed", 1)):
        box.segue("sandbox", "--explain", home + path, status=status, out=says.encode())
    expect(b"for a command" in box.segue("sandbox").stdout, "without a provider")
    box.segue("sandbox", "--for", "clade", status=2, err=b"clade")


def what_is_denied_is_said_on_the_turns_line(box):
    configure(box)
    flow = "name: w\nmovements:\n  - {name: a, command: [sh, -c, '%s'], sandbox: %s, rules: [{condition: when(true), next: COMPLETE}]}\n"
    hint = b"/home/u/.npmrc was denied: if its sandbox did it, sandbox: {read: [/home/u/.npmrc]} in config.yaml opens it"
    for words, level, hinted in (("cat: /home/u/.npmrc: Permission denied", "guard", True), ("cat: /home/u/.npmrc: Permission denied", "off", False),
                                 (f"cat: {box.cwd}/x: Permission denied", "guard", False), ("cat: /home/u/.npmrc: Input/output error", "guard", False)):
        out = box.segue("run", box.file("w.yaml", flow % (f"echo {words}", level)), "--task", "t", "--logs", box.logs).stdout
        expect((hint in out) == hinted and (b"was denied" in out) == hinted, words, level, out)


if __name__ == "__main__":
    need_build()
    if ctypes.CDLL(None, use_errno=True).syscall(444, None, 0, 1) < 3:
        skip("this kernel's Landlock is none or too old")
    sys.exit(main([no_login_is_read_and_no_start_written, a_client_has_its_own_login_only, what_path_leads_to_is_read,
                   the_workspace_and_its_repository_are_open, a_worktree_reads_what_it_links_to, a_link_to_the_home_folder_is_followed, home_open_is_the_way_back,
                   it_is_shown_and_explained, what_is_denied_is_said_on_the_turns_line]))
