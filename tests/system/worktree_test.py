#!/usr/bin/env python3
"""Sessions in git worktrees: the main tree stays as it is, each has its branch, what is asked of git
is on record before, and whatever step a kill comes at, a resume ends with one worktree, one branch
and one commit. Repositories of all kinds, names of all kinds."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from support import Box, end_of, expect, flow, main, of_type, read_until, records, sample, verified

FLOW = flow("worktree_flow")
REPLIES = {"replies": [{"movement": "fix", "text": "[FIX:1]"}]}


def git(box, *words, at=None, ok=True):
    done = subprocess.run(["git", *words], cwd=at or box.cwd, env=box.env, capture_output=True)
    expect(done.returncode == 0 or not ok, "git", *words, done.stderr)
    return done.stdout.decode().strip()


def repository(box, at=None, commits=True):
    git(box, "init", "-q", "-b", "main", ".", at=at)
    for key, value in (("user.name", "Some One"), ("user.email", "one@example.org")):
        git(box, "config", key, value, at=at)
    if commits:
        Path((at or box.cwd) + "/a").write_text("one\n")
        git(box, "add", "-A", at=at)
        git(box, "commit", "-qm", "first", at=at)


def words(box, command="echo more >> a", flow=FLOW, **more):
    text = flow.replace('"COMMAND"', json.dumps(command))
    return [box.file(more.get("name", "flow.yaml"), text), "--scenario",
            box.file("replies.json", json.dumps(REPLIES)), "--cwd", more.get("cwd", box.cwd),
            "--task", "mend it", "--logs", box.logs, *more.get("flags", ())]


def run(box, *more, ok=True, **how):
    done = box.segue("run", *words(box, *more, **how))
    expect(done.returncode == 0 or not ok, done.stdout.decode(), done.stderr.decode())
    return done



def worktrees(box, at=None):
    """path -> branch, without the main one."""
    found, path = {}, None
    for line in git(box, "worktree", "list", "--porcelain", at=at).splitlines()[1:]:
        if line.startswith("worktree "):
            path = line[9:]
        elif line.startswith("branch refs/heads/") and path:
            found[path] = line[18:]
    return {p: b for p, b in found.items() if not p == box.cwd}


def workspace_events(log):
    return [r["event"] for r in of_type(log, "workspace")]


def the_main_tree_stays_as_it_is(box):
    repository(box)
    os.mkdir(box.cwd + "/sub")
    Path(box.cwd + "/mine").write_text("not committed\n")
    done = run(box, "pwd > where; echo more >> ../a", cwd=box.cwd + "/sub")
    log = records(box.begun()[0])
    expect(workspace_events(log) == ["make", "made", "commit", "committed"], log)
    session = log[0]["session"]
    made, committed = of_type(log, "workspace")[1]["data"], of_type(log, "workspace")[3]["data"]
    expect(worktrees(box) == {made["path"]: "segue/" + session}, worktrees(box), made)
    expect(made["path"].startswith(box.env["XDG_STATE_HOME"]), made)
    expect(git(box, "status", "--porcelain", "--untracked-files=all") == "?? mine", "main tree")
    expect(git(box, "rev-parse", "segue/" + session) == committed["commit"], committed)
    shown = git(box, "show", "--name-only", "--format=%an %ae%n%B", committed["commit"])
    expect(shown.split() == f"Some One one@example.org mend it Segue-Session: {session} "
           "Segue-Turn: 2 a sub/where".split(), shown)
    expect(Path(made["path"] + "/sub/where").read_text().strip() == made["folder"] == made["path"] + "/sub", made)
    expect(git(box, "status", "--porcelain", at=made["path"]) == "", "all is committed")
    expect(made["path"] in done.stdout.decode().replace("~", box.env["HOME"]), done.stdout)
    verified(box, *box.begun())


def two_at_once(box):
    repository(box)
    going = [box.start("run", *words(box, f"while [ ! -e {box.dir}/go ]; do sleep 0.05; done; "
                                     "echo $SEGUE_SESSION >> a"), "--json") for _ in range(2)]
    for process in going:
        seen = []
        expect(read_until(process, lambda r: r.get("movement") == "test", seen), "no test", seen[-1:])
    expect(git(box, "status", "--porcelain") == "", "the main tree was edited")
    box.file("go", "")
    for process in going:
        status, out, err = end_of(process)
        expect(status == 0, out, err)
    expect(git(box, "status", "--porcelain") == "", "the main tree was edited")
    expect(len(set(worktrees(box).values())) == 2, worktrees(box))
    for path, branch in worktrees(box).items():
        expect(git(box, "show", branch + ":a") == "one\n" + branch.split("/")[1], path)


def commits_after_each_movement(box):
    repository(box)
    run(box, flags=["--commit", "movement"], flow=FLOW.replace(
        "next: COMPLETE", "next: again").replace("  - name: fix", """  - name: again
    command: [sh, -c, "echo again >> a"]
    rules: [{condition: when(exit == 0), next: COMPLETE}, {condition: no, next: ABORT}]
  - name: fix""").replace("judge:", "initial_movement: fix\njudge:"))
    log = records(box.begun()[0])
    made = [r["data"]["commit"] is not None for r in of_type(log, "workspace")
            if r["event"] == "committed"]
    expect(made == [False, True, True], made)
    subjects = git(box, "log", "--format=%s", "segue/" + log[0]["session"]).splitlines()
    expect(subjects == ["again: mend it", "test: mend it", "first"], subjects)


def in_the_folder_itself(box):
    repository(box)
    run(box, flags=["-W", "here"])
    expect(git(box, "status", "--porcelain") == "M a", "off is the default here")
    run(box, flags=["--workspace", "here", "--commit", "end"])
    expect(git(box, "status", "--porcelain") == "" and worktrees(box) == {}, "end")
    expect(git(box, "log", "-1", "--format=%s") == "mend it", "its commit")


def settings_of_the_user(box):
    repository(box)
    for name in (".env", ".gitignore", "deps"):
        Path(f"{box.cwd}/{name}").write_text("secret\n" if name != ".gitignore" else "nothing\n")
    git(box, "add", ".gitignore")
    git(box, "commit", "-qm", "second")
    box.config(f"""
workspace:
  mode: worktree
  folder: {box.dir}/trees
  branch: "work/{{workflow}}-{{id}}"
  base: main~1
  copy: [.env, none]
  link: [deps]
  author: A Bot <bot@example.org>
  message: "{{workflow}} {{movement}} {{turn}}"
""")
    run(box, "cat .env deps > both", flow=FLOW.replace("workspace: worktree\n", ""))
    log = records(box.begun()[0])
    made = of_type(log, "workspace")[1]["data"]
    expect(made["path"] == f"{box.dir}/trees/{log[0]['session']}", made)
    expect(made["branch"] == "work/edits-" + log[0]["session"], made)
    shown = git(box, "show", "--name-only", "--format=%an <%ae> %s", made["branch"])
    expect(shown.split("\n") == ["A Bot <bot@example.org> edits test 2", "", "both"], shown)
    expect(git(box, "rev-parse", "main~1") == made["base"], made)
    expect(os.path.islink(made["path"] + "/deps"), "a link")
    run(box, flags=["-W", "here"], flow=FLOW.replace("workspace: worktree\n", ""))
    expect(len(worktrees(box)) == 1, "a flag goes before")


LEFT_OUT = {".env": ".gitignore", "node_modules": ".gitignore", "vendor": "vendor/", "plain.txt": None,
            "excluded": "info/exclude", "everywhere": "global", "part/a b/*[x]?.env": "part/.gitignore",
            "part/*.cfg": None, ":(top)odd": None, ":(exclude)x": ".gitignore", "!no": None, "#1": ".gitignore",
            "deps": "deps/*", "build/cache": "build/", "-n": None, "\u00e9": ".gitignore"}
LINKED = ("node_modules", "vendor")


def with_names(box):
    """A repository in which names are copied and linked that git ignores in every way, or does not."""
    repository(box)
    os.makedirs(box.cwd + "/part/a b")
    os.makedirs(box.env["XDG_CONFIG_HOME"] + "/git", exist_ok=True)
    ignores = {".gitignore": box.cwd + "/.gitignore", "part/.gitignore": box.cwd + "/part/.gitignore",
               "info/exclude": box.cwd + "/.git/info/exclude", "global": box.env["XDG_CONFIG_HOME"] + "/git/ignore"}
    texts = {path: "" for path in ignores.values()}
    for name, how in LEFT_OUT.items():
        quoted = "".join("\\" + c if c in "*[]?!#" else c for c in name.removeprefix("part/"))
        if how in ignores:
            texts[ignores[how]] += quoted + "\n"
        elif how:
            texts[ignores[".gitignore"]] += how + "\n"
    for path, text in texts.items():
        Path(path).write_text(text)
    os.mkdir(box.cwd + "/build")
    for path in ("part/a b/kept", "build/kept"):
        Path(f"{box.cwd}/{path}").write_text("x\n")
    git(box, "add", "-A")
    git(box, "add", "-f", "build/kept")
    git(box, "commit", "-qm", "second")
    for name in LEFT_OUT:
        folder = name in LINKED or name == "deps"
        if folder:
            os.mkdir(f"{box.cwd}/{name}")
        Path(f"{box.cwd}/{name}{'/in' if folder else ''}").write_text("secret\n")
    copied = [name for name in LEFT_OUT if name not in LINKED]
    box.config("workspace: {mode: worktree, copy: %s, link: %s}\n" % (
        json.dumps([*copied, "none", "deps/"]), json.dumps(["node_modules/", "vendor", "build/none"])))


def names_that_git_ignores_or_does_not():
    """They are there for the agent, who may change them and stage them, and are never committed."""
    sees = "test -f .env -a -f part/a*/*env -a -L node_modules -a -L vendor -a -f deps/in -a -f build/cache -a -f -n"
    edits = "for f in .e* p*.txt excluded everywhere part/*.cfg deps/in build/cache '#1'; do echo changed >> $f; done"
    for commits in ("end", "movement"):
        with Box() as box:
            with_names(box)
            flow = FLOW.replace("next: COMPLETE", "next: again").replace("  - name: fix", """  - name: again
    command: [sh, -c, "rm vendor; mkdir vendor; echo real > vendor/real; echo again >> a"]
    rules: [{condition: when(exit == 0), next: COMPLETE}, {condition: no, next: ABORT}]
  - name: fix""").replace("judge:", "initial_movement: fix\njudge:")
            command = f"{sees} && {edits}; git add -A; git add -f .env excluded deps; echo more > new"
            process = box.start("run", *words(box, command.replace("echo more", "sleep 60; echo more"), flow=flow,
                                              flags=["--commit", commits]), "--json")
            expect(read_until(process, lambda r: r["type"] == "call_start" and r["turn"] == 2), "no test")
            process.kill()
            process.wait()
            box.segue("resume", box.begun()[0], env={"PATH": fast_sleep(box) + ":" + os.environ["PATH"]}, status=0)
            session = records(box.begun()[0])[0]["session"]
            files = git(box, "diff", "--name-only", "main", "segue/" + session)
            expect(files.split("\n") == ["a", "new"], commits, files)
            path = list(worktrees(box))[0]
            expect("changed" in Path(path + "/.env").read_text(), "the copy is the agent's")
            expect(Path(box.cwd + "/.env").read_text() == "secret\n", "the user's own")
            expect(git(box, "diff", "--cached", "--name-only", at=path) == "", "staged")
            for words_after in (["merge", "last"], ["discard", "last", "--yes"]):
                box.segue(*words_after, "--logs", box.logs, status=0)
            expect(Path(box.cwd + "/node_modules/in").read_text() == "secret\n", "what a link leads to")


def fast_sleep(box):
    os.makedirs(box.dir + "/fast", exist_ok=True)
    if not os.path.exists(box.dir + "/fast/sleep"):
        os.symlink("/bin/true", box.dir + "/fast/sleep")
    return box.dir + "/fast"


def without_an_author(box):
    repository(box)
    git(box, "config", "--unset", "user.email")
    git(box, "config", "--unset", "user.name")
    run(box)
    session = records(box.begun()[0])[0]["session"]
    by = git(box, "log", "-1", "--format=%an %ae %cn", "segue/" + session)
    expect(by == "segue segue@localhost segue", by)


def nothing_of_the_repository_runs(box):
    repository(box)
    ran = box.dir + "/ran"
    hook = f"#!/bin/sh\necho $0 >> {ran}\n"
    os.mkdir(box.dir + "/hooks")
    for folder in (box.cwd + "/.git/hooks", box.dir + "/hooks"):
        for name in ("post-checkout", "pre-commit", "commit-msg", "post-commit",
                     "prepare-commit-msg", "reference-transaction"):
            Path(f"{folder}/{name}").write_text(hook)
            os.chmod(f"{folder}/{name}", 0o755)
    git(box, "config", "core.hooksPath", box.dir + "/hooks")
    Path(box.cwd + "/.gitattributes").write_text("a filter=odd\n")
    git(box, "-c", "core.hooksPath=/dev/null", "add", ".gitattributes")
    git(box, "-c", "core.hooksPath=/dev/null", "commit", "-qm", "odd")
    for key in ("clean", "smudge"):
        git(box, "config", "filter.odd." + key, f"sh -c 'echo {key} >> {ran}; tr a-z A-Z'")
    git(box, "config", "filter.odd.required", "true")
    git(box, "config", "core.fsmonitor", f"{box.dir}/hooks/pre-commit")
    run(box, "echo two >> a")
    expect(not os.path.exists(ran), "it ran:", os.path.exists(ran) and open(ran).read())
    session = records(box.begun()[0])[0]["session"]
    expect(git(box, "show", f"segue/{session}:a") == "one\ntwo", "what was committed")
    git(box, "config", "--unset", "core.fsmonitor")
    box.config("workspace: {hooks: true}\n")
    run(box, "echo three >> a", name="again.yaml")
    said = Path(ran).read_text()
    for name in ("post-checkout", "pre-commit", "smudge", "clean"):
        expect(name in said, name, "did not run:", said)


def repositories_of_all_kinds(box):
    done = run(box, ok=False)
    expect(done.returncode == 2 and b"is in none: git init" in done.stderr, done.stderr)
    repository(box, commits=False)
    done = run(box, ok=False)
    expect(done.returncode == 1 and b"has none yet: commit something first" in done.stdout,
           done.stdout)
    expect(worktrees(box) == {} and git(box, "branch") == "", "left behind")
    repository(box)
    box.segue("resume", box.begun()[0], status=0)
    git(box, "checkout", "-q", "--detach")
    run(box, name="detached.yaml")
    expect(len(worktrees(box)) == 2, "a detached head")
    bare = box.dir + "/bare.git"
    git(box, "clone", "-q", "--bare", box.cwd, bare)
    run(box, name="bare.yaml", cwd=bare)
    expect(len(worktrees(box, at=bare)) == 1, "a bare repository", worktrees(box, at=bare))
    linked = box.dir + "/linked"
    git(box, "worktree", "add", "-q", linked)
    run(box, name="linked.yaml", cwd=linked)
    expect(len(worktrees(box)) == 4, "from a linked worktree", worktrees(box))


def submodules(box):
    inner = box.dir + "/inner"
    os.mkdir(inner)
    repository(box, at=inner)
    repository(box)
    git(box, "config", "--global", "protocol.file.allow", "always")
    git(box, "submodule", "--quiet", "add", inner, "part")
    git(box, "commit", "-qm", "with a part")
    run(box, "echo x >> a", cwd=box.cwd + "/part")
    part = box.cwd + "/part"
    expect(len(worktrees(box, at=part)) == 1, "within a submodule", worktrees(box, at=part))
    expect(git(box, "status", "--porcelain") == "", "the outer tree")
    box.config("workspace: {submodules: true}\n")
    run(box, "cat part/a > copy", name="outer.yaml")
    session = of_type(records(box.begun()[1]), "workspace")[1]["data"]
    expect(git(box, "show", session["branch"] + ":copy") == "one", "the part is there")


def hostile_names():
    for name in ("with space", "-leading", "new\nline", "..dots..", "été ✓", "a:b\\c*?[x]~^", "@{u}"):
        with Box() as box:
            top = f"{box.dir}/{name}"
            os.makedirs(f"{top}/{name}")
            repository(box, at=top)
            flow = FLOW.replace("name: edits", "name: " + json.dumps(name.replace("\n", " "))
                                ).replace("workspace: worktree",
                                          'workspace: worktree\nbranch: "{workflow}/{id}"')
            box.segue("version")
            run(box, "printf x > '-odd'; printf y > '" + name.replace("\n", "") + "'", flow=flow,
                cwd=f"{top}/{name}")
            made = of_type(records(box.begun()[0]), "workspace")[1]["data"]
            expect(git(box, "show", "--name-only", "--format=", "-z", made["branch"], at=top),
                   "nothing committed", name)
            expect(made["folder"] == f"{made['path']}/{name}", made)
            expect(git(box, "status", "--porcelain", at=top) == "", "main tree of", name)
            verified(box, *box.begun())


def mistakes_are_told(box):
    repository(box)
    for flags, said in ((["-W", "there"], b"mode must be here or worktree"),
                        (["--commit", "always"], b"commit must be off, movement or end"),
                        *((["--branch", name], b"must be the name of a branch") for name in
                          ("-x", "@", "HEAD", "refs/heads/main", "a..b", "a@{0}", "a/.b", "a.lock", "a.lock/b", "a\x7f", "a b", "a//b", "a/")),
                        (["--base", "-x"], b"must be a commit")):
        done = run(box, ok=False, flags=flags)
        expect(done.returncode == 2 and said in done.stderr, flags, done.stderr)
    done = run(box, ok=False, flags=["--base", "nowhere"])
    expect(done.returncode == 2 and b"--base nowhere is not a commit" in done.stderr,
           done.stdout)
    done = run(box, ok=False, flags=["--branch", "main"])
    expect(done.returncode == 2 and b"the branch main exists already" in done.stderr,
           done.stderr)
    git(box, "branch", "packed/edits")
    git(box, "pack-refs", "--all")
    done = run(box, ok=False, flags=["--branch", "packed/{workflow}"])
    expect(done.returncode == 2 and b"the branch packed/edits exists already" in done.stderr, done.stderr)
    git(box, "branch", "-D", "packed/edits")
    for text, said in (("workspace: {folder: x}", b"folder must be an absolute path"),
                       ("workspace: {copy: [../x]}", b"copy must be a list of paths"),
                       ("workspace: {comit: end}", b'did you mean "commit"'),
                       ("workspace: somewhere", b"mode must be here or worktree")):
        box.config(text + "\n")
        done = run(box, ok=False)
        expect(done.returncode == 2 and said in done.stderr, text, done.stderr)
    box.config(f"workspace: {{folder: {box.cwd}/trees}}\n")
    done = run(box, ok=False)
    expect(done.returncode == 1 and b"in the repository's own tree" in done.stdout, done.stdout)
    expect(worktrees(box) == {}, worktrees(box))


def without_git(box):
    repository(box)
    os.mkdir(box.dir + "/bin")
    for name in ("sh", "cat"):
        os.symlink("/bin/" + name, f"{box.dir}/bin/{name}")
    box.segue("run", *words(box), env={"PATH": box.dir + "/bin"}, status=2, err=b"needs git, which is not in PATH")
    box.segue("run", *words(box, "true", flags=["-W", "here"]),
              env={"PATH": box.dir + "/bin"}, status=0)


def one_that_is_gone_is_made_again(box):
    repository(box)
    process = box.start("run", *words(box, "[ -e go ] && cat a > seen || sleep 60",
                                      flags=["--commit", "end"]), "--json")
    expect(read_until(process, lambda r: r["type"] == "call_start" and r["turn"] == 2), "no test")
    process.kill()
    process.wait()
    path = of_type(records(box.begun()[0]), "workspace")[1]["data"]["path"]
    Path(path + "/a").write_text("two\n")
    Path(path + "/go").write_text("x\n")
    git(box, "add", "-A", at=path)
    git(box, "commit", "-qm", "an agent's", at=path)
    shutil.rmtree(path)  # git still has it on its list
    box.segue("resume", box.begun()[0], status=0)
    branch = "segue/" + records(box.begun()[0])[0]["session"]
    expect(git(box, "show", branch + ":seen") == "two", "it worked on what was there")
    expect(list(worktrees(box).items()) == [(path, branch)], worktrees(box))
    verified(box, *box.begun())


def killed_at(spec):
    """One run that ends at this point, and its resume. False: it passed untouched."""
    with Box() as box:
        repository(box)
        done = box.segue("run", *words(box, flags=["--commit", "movement"]),
                         env={"SEGUE_FAULT": spec})
        touched = done.returncode != 0
        if not box.begun():
            return touched
        path = box.begun()[0]
        if touched:
            box.segue("resume", path, status=0)
        log = records(path)
        session = log[0]["session"]
        expect(list(worktrees(box).values()) == ["segue/" + session], spec, worktrees(box))
        expect(git(box, "branch", "--format=%(refname:short)").split() == ["main", "segue/" + session],
               spec, "branches")
        expect(git(box, "log", "--format=%s", "segue/" + session) == "test: mend it\nfirst", spec,
               git(box, "log", "--format=%s", "segue/" + session))
        expect(git(box, "status", "--porcelain") == "", spec, "main tree")
        tree = list(worktrees(box))[0]
        expect(git(box, "status", "--porcelain", at=tree) == "", spec, "its own tree")
        verified(box, path)
        return touched


def ends_at_every_point():
    points = sample.draw("points of a worktree", range(1, 1000), 5)
    for n, point in enumerate(points):
        if not killed_at(f"exit:{point}"):
            break
    expect(point > 30, "only", point, "fault points")
    return f"{n} points"


if __name__ == "__main__":
    sys.exit(main([the_main_tree_stays_as_it_is, two_at_once, commits_after_each_movement,
                   in_the_folder_itself, settings_of_the_user,
                   names_that_git_ignores_or_does_not, without_an_author,
                   nothing_of_the_repository_runs, repositories_of_all_kinds, submodules,
                   hostile_names, mistakes_are_told, without_git, one_that_is_gone_is_made_again,
                   ends_at_every_point]))
