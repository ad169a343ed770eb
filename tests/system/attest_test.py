#!/usr/bin/env python3
"""segue attest and segue verify --attestation: the statement says what the log says, whoever changes a bit of it is
found, and only the caller's word counts for who may sign."""
import base64
import copy
import json
import os
import subprocess
import sys
from pathlib import Path

from support import Box, expect, main, needs, of_type, records
from worktree_test import git, repository

FLOW = """
name: mend
initial_movement: work
movements:
  - {name: work, edit: true, instruction: do it, rules: [{condition: done, next: verify}]}
  - name: verify
    command: [grep, -q, more, a]
    rules: [{condition: when(exit == 0), next: review}, {condition: when(true), next: ABORT}]
  - {name: review, instruction: is it done, rules: [{condition: approved, next: COMPLETE}, {condition: rejected, next: ABORT}]}
"""
PAIR = """
name: both
workspace: worktree
initial_movement: pair
movements:
  - name: pair
    parallel: [{name: left, workspace: worktree, command: [sh, -c, "echo l > l"], rules: [{condition: when(exit == 0)}]}]
    rules: [{condition: 'all("when(exit == 0)")', next: last}, {condition: when(true), next: ABORT}]
  - name: last
    command: [sh, -c, "echo last > last"]
    rules: [{condition: when(exit == 0), next: COMPLETE}, {condition: when(true), next: ABORT}]
"""
REPLIES = {"replies": [{"movement": "work", "purpose": "execute", "text": "I did.", "write": {"a": "one\nmore\n"}},
                       {"movement": "work", "text": '{"step": 1}'},
                       {"movement": "review", "purpose": "execute", "text": "fine"},
                       {"movement": "review", "text": '{"step": 1, "reason": "it is there"}'}]}
WORKTREE = ["-W", "worktree", "--commit", "end"]


def key(box, name):
    path = f"{box.dir}/home/.ssh/{name}"
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", path], check=True)
    return path, Path(path + ".pub").read_text(encoding="ascii")


def play(box, *words, replies=None, status=0):
    """Plays the flow; the log, and the commit of its branch if it has one."""
    needs("ssh-keygen", "git")
    if not os.path.exists(box.cwd + "/.git"):
        repository(box)
    box.segue("run", box.file("flow.yaml", FLOW), "-s", box.file("r.json", json.dumps(replies or REPLIES)), "-t",
              "mend it", "-p", "script", "-l", box.logs, *words, status=status)
    log = box.log_paths()[-1]
    made = [r["data"]["commit"] for r in of_type(records(log), "workspace") if r["event"] == "committed"]
    return log, made[-1] if made else None


def attested(box, log, *words, status=0):
    done = box.segue("attest", log, *words, status=status)
    return done.stdout.decode() if status == 0 else done.stderr.decode()


def checked(box, text, commit, *words, state="ok", signers=None, prefix=()):
    path = box.file("a.intoto.json", text)
    done = box.segue("verify", "--attestation", path, "--allowed-signers", signers or box.dir + "/signers", "--commit",
                     commit, "--json", *words, prefix=prefix)
    told = json.loads(done.stdout.splitlines()[0])
    expect(told.get("state") == state and done.returncode == (0 if state == "ok" else 1), state, done)
    return told


def payload(text):
    return json.loads(base64.b64decode(json.loads(text)["payload"]))


def made(box):
    box.own, public = key(box, "id_ed25519")
    box.file("signers", "me@example.org " + public)
    log, commit = play(box, *WORKTREE)
    return log, commit, attested(box, log)


def it_says_what_the_log_says(box: Box):
    log, commit, text = made(box)
    told = checked(box, text, commit)
    expect(told["signer"] == "me@example.org" and told["commit"] == commit, told)
    said, p = payload(text), payload(text)["predicate"]
    expect(told["statement"] == said, told)
    expect(said["_type"] == "https://in-toto.io/Statement/v1" and said["subject"][0]["digest"] == {"gitCommit": commit}, said)
    last = records(log)[-1]
    expect(p["log"] == {"records": last["seq"], "head": last["hash"], "seal": "sealed"}, p["log"], last)
    expect(p["basis"] == last["basis"] == "judged" and p["checks"] == {"verify": {"exit": 0}}, p)
    expect(p["judge"]["movement"] == "review" and p["judge"]["method"] == "structured_output" and p["judge"]["rule"] == 1, p)
    expect(p["workflow"]["sha256"] == records(log)[0]["workflow_sha256"] and p["agents"] == [{"provider": "script"}], p)
    expect(any("no check shows" in line for line in p["not_proved"]), p)
    # a second one is another statement of the same; from elsewhere, without git, it holds as well
    checked(box, attested(box, log), commit, prefix=("env", "-C", box.dir + "/tmp"))
    Path(box.dir + "/tmp/mine").write_text("me@example.org " + Path(box.own + ".pub").read_text(encoding="ascii"))
    checked(box, text, commit, signers="mine", prefix=("env", "-C", box.dir + "/tmp"))
    out = box.dir + "/new.json"
    attested(box, log, "-o", out)
    expect(os.stat(out).st_mode & 0o077 == 0, "others can read it")
    expect("exists" in attested(box, log, "-o", out, status=1), "it was written over")
    # what a policy asks for
    for expr, status in (('basis != "shown"', 1), ('basis != "judged" || age_hours > 1', 0), ("checks.verify.exit != 0", 0),
                         ("age_hours < 1", 1), ("nothing > 1", 2)):
        done = box.segue("verify", "--attestation", out, "--allowed-signers", box.dir + "/signers", "--commit", commit,
                         "--fail-if", expr)
        expect(done.returncode == status, expr, done)
    done = box.segue("verify", "--attestation", out, "--allowed-signers", box.dir + "/signers", "--commit", commit, status=0)
    expect(commit[:12].encode() in done.stdout and b"not proved: " in done.stdout, done.stdout)


def leaves(value, at=()):
    if isinstance(value, (dict, list)):
        for name, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, at + (name,))
    else:
        yield at


def changed(value, at):
    out = copy.deepcopy(value)
    holder = out
    for name in at[:-1]:
        holder = holder[name]
    old = holder[at[-1]]
    holder[at[-1]] = old + 1 if isinstance(old, int) else old[:-1] + ("b" if old.endswith("a") else "a")
    return out


def tampering(box: Box):
    _, commit, text = made(box)
    envelope, said = json.loads(text), payload(text)
    for at in leaves(said):  # each field of the statement
        other = dict(envelope, payload=base64.b64encode(json.dumps(changed(said, at), separators=(",", ":")).encode()).decode())
        told = checked(box, json.dumps(other), commit, state="tampered")
        expect("statement" not in told and "signer" not in told, at, told)
    same = dict(envelope, payload=base64.b64encode(json.dumps(said).encode()).decode())  # other bytes, the same JSON
    checked(box, json.dumps(same), commit, state="tampered")
    sig = envelope["signatures"][0]
    for other, state in (
            (dict(envelope, payloadType="application/json"), "malformed"),
            (dict(envelope, signatures=[dict(sig, keyid=sig["keyid"][:-1] + "x")]), "tampered"),
            (dict(envelope, signatures=[{"sig": sig["sig"]}]), "tampered"),
            (dict(envelope, signatures=[]), "malformed"), (dict(envelope, signatures=[sig, sig]), "malformed"),
            (dict(envelope, signatures=[dict(sig, sig="")]), "malformed"),
            (dict(envelope, signatures=[dict(sig, sig=sig["sig"] + "\n")]), "malformed"),
            (dict(envelope, payload=envelope["payload"] + "="), "malformed"),
            (dict(envelope, payload=envelope["payload"] + " "), "malformed"), (dict(envelope, payload=5), "malformed")):
        checked(box, json.dumps(other), commit, state=state)
    blob = bytearray(base64.b64decode(sig["sig"]))
    for at in (0, 8, 12, 40, 80, len(blob) - 30, len(blob) - 1):  # each part of the signature
        was = blob[at]
        blob[at] ^= 1
        other = dict(envelope, signatures=[dict(sig, sig=base64.b64encode(blob).decode())])
        done = box.segue("verify", "--attestation", box.file("t.json", json.dumps(other)), "--allowed-signers",
                         box.dir + "/signers", "--commit", commit)
        expect(done.returncode == 1 and not done.stdout.startswith(b"ok"), at, done)
        blob[at] = was
    doubled = text.replace('{"payloadType"', '{"payload":"e30=","payloadType"', 1)
    for odd in ("", "{}", "[]", "nonsense", '{"payload":', text[:-20], doubled, "\0" * 100):
        checked(box, odd, commit, state="malformed")
    signed_elsewhere = box.file("m", b"DSSEv1 28 application/vnd.in-toto+json 2 {}")
    subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-n", "segue-attestation", "-f", box.own, signed_elsewhere], check=True)
    armour = Path(signed_elsewhere + ".sig").read_text(encoding="ascii").splitlines()[1:-1]
    empty = dict(envelope, payload="e30=", signatures=[dict(sig, sig="".join(armour))])
    checked(box, json.dumps(empty), commit, state="malformed")  # signed, but no statement


def signers(box: Box):
    _, commit, text = made(box)
    mine = Path(box.own + ".pub").read_text(encoding="ascii")
    other = key(box, "other")
    for lines, state in (("", "unknown_signer"), ("me@example.org " + other[1], "unknown_signer"),
                         ('me@example.org valid-before="20200101" ' + mine, "expired"),
                         ('me@example.org valid-after="20900101" ' + mine, "expired"),
                         ('me@example.org namespaces="git,file" ' + mine, "wrong_namespace"),
                         ('me@example.org namespaces="segue-attestation" ' + mine, "ok"),
                         ("ann@example.org " + other[1] + "*@example.org " + mine, "ok")):
        checked(box, text, commit, state=state, signers=box.file("some", lines))
    checked(box, text, commit, "--revoked", box.own + ".pub", state="revoked")
    checked(box, text, commit, "--revoked", other[0] + ".pub")
    krl = box.dir + "/krl"
    subprocess.run(["ssh-keygen", "-q", "-k", "-f", krl, box.own + ".pub"], check=True)
    checked(box, text, commit, "--revoked", krl, state="revoked")
    checked(box, text, commit, "--revoked", box.dir + "/none", state="revoked")  # what cannot be read says no
    # a signature of the same text for another purpose
    envelope = json.loads(text)
    kind = envelope["payloadType"]
    said = base64.b64decode(envelope["payload"])
    signed = box.file("signed", b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(said), said))
    subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", box.own, signed], check=True)
    lines = Path(signed + ".sig").read_text(encoding="ascii").splitlines()[1:-1]
    envelope["signatures"][0]["sig"] = "".join(lines)
    checked(box, json.dumps(envelope), commit, state="wrong_namespace")
    # signers are the caller's: none by default, none out of the tree
    path = box.file("a.json", text)
    for words in ([], ["--allowed-signers", box.dir + "/nobody"], ["--allowed-signers", box.cwd + "/signers"],
                  ["--allowed-signers", box.dir + "/link"], ["--allowed-signers", box.dir + "/signers", box.logs]):
        Path(box.cwd + "/signers").write_text("me@example.org " + mine, encoding="ascii")
        if not os.path.lexists(box.dir + "/link"):
            os.symlink(box.cwd + "/signers", box.dir + "/link")
        git(box, "config", "gpg.ssh.allowedSignersFile", box.dir + "/signers")
        done = box.segue("verify", "--attestation", path, "--commit", commit, *words)
        expect(done.returncode == 2 and not done.stdout and done.stderr, words, done)


def commits(box: Box):
    """It is about one commit: under another it is a replay."""
    log, commit, text = made(box)
    git(box, "checkout", "-q", commit)
    path, who = box.file("a.json", text), ("--allowed-signers", box.dir + "/signers")
    box.segue("verify", "--attestation", path, *who, status=0)  # HEAD
    git(box, "commit", "-q", "--allow-empty", "-m", "one more")
    done = box.segue("verify", "--attestation", path, *who, status=1)
    expect(b"wrong_commit" in done.stdout, done)
    box.segue("verify", "--attestation", path, *who, "--commit", "HEAD~1", status=0)
    checked(box, text, "0" * 40, state="wrong_commit")
    for odd in ("nothing", "--all", commit[:-1] + "g"):
        expect(box.segue("verify", "--attestation", path, *who, "--commit=" + odd).returncode == 2, odd)
    box.segue("verify", "--attestation", path, *who, prefix=("env", "-C", box.dir + "/tmp"), status=2)  # no HEAD here
    # a session that made no commit: a person names it, and that is said
    git(box, "checkout", "-q", "main")
    log, none = play(box)
    expect(none is None and "--commit" in attested(box, log, status=2), "no commit")
    git(box, "commit", "-qam", "by hand")
    text = attested(box, log, "--commit", "HEAD")
    told = checked(box, text, git(box, "rev-parse", "HEAD"))
    expect(any("a person named it" in line for line in told["statement"]["predicate"]["not_proved"]), told)
    expect("no commit" in attested(box, log, "--commit", "nix", status=2), "nix")


def children(box: Box):
    """A commit of a child in a worktree of its own is not the session's, and that it is apart is said."""
    box.own, _ = key(box, "id_ed25519")
    repository(box)
    box.segue("run", box.file("pair.yaml", PAIR), "-t", "x", "-l", box.logs, status=0)
    made = [r["data"]["commit"] for r in of_type(records(box.log_paths()[-1]), "workspace") if r["event"] == "committed"]
    expect(len(set(made)) == 2, made)
    said = payload(attested(box, box.log_paths()[-1]))
    own = git(box, "rev-parse", "segue/" + said["predicate"]["session"])
    expect(said["subject"][0]["digest"]["gitCommit"] == own == made[-1], said["subject"], made)
    expect(any("children" in line for line in said["predicate"]["not_proved"]), said)
    expect(said["predicate"]["checks"]["pair.left"] == {"exit": 0, "stale": True}, said["predicate"]["checks"])


def refused(box: Box):
    """Only a whole log of a complete session, and a key that its agents could not read."""
    log, _, _ = made(box)
    inside = box.cwd + "/key"
    os.rename(box.own, inside)
    os.rename(box.own + ".pub", inside + ".pub")
    expect("agents of the session could read" in attested(box, log, "-k", inside, status=2), "in the tree")
    os.symlink(inside, box.own)
    expect("agents of the session could read" in attested(box, log, status=2), "through a link")
    os.unlink(box.own)
    expect("--key" in attested(box, log, status=2), "no key")
    os.rename(inside, box.own)
    expect("cannot sign" in attested(box, log, "-k", box.file("text", "no key"), status=2), "no key at all")
    text = Path(log).read_bytes()
    for other in (text.replace(b'"basis":"judged"', b'"basis":"shownn"'), text[:-40], text.rsplit(b"\n", 2)[0] + b"\n"):
        Path(log).write_bytes(other)
        expect("verify" in attested(box, log, status=1), "a log that is not whole")
    Path(log).write_bytes(text)
    attested(box, log)
    replies = dict(REPLIES, replies=REPLIES["replies"][:3] + [{"movement": "review", "text": '{"step": 2, "reason": "no"}'}])
    log, _ = play(box, *WORKTREE, replies=replies, status=3)
    expect("abort" in attested(box, log, status=2), "an abort")


CASES = [it_says_what_the_log_says, tampering, signers, commits, children, refused]

if __name__ == "__main__":
    sys.exit(main(CASES))
