"""What the system tests share: a private place to run in, logs as records, a workflow that uses
every way to judge, and the checks that hold after any crash. Standard library only.

A test is run as NAME_test.py BUILD_DIR [CASE...]. It prints one line a case; a case that fails
prints what was wrong and the command that repeats it.
"""
import datetime
import inspect
import itertools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + "/support")
import on_store  # noqa: E402
import sample  # noqa: E402

BUILD = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
SEGUE = BUILD + "/segue"
WAIT_S = 300  # for what never comes; whatever comes ends a wait, however busy the machine is


def sanitizers():
    """With which segue was built: none is ""."""
    try:
        with open(BUILD + "/CMakeCache.txt", encoding="utf-8") as f:
            return next((line.strip().split("=")[1] for line in f if line.startswith("SEGUE_SANITIZE:")), "")
    except OSError:
        return ""


THREAD_SANITIZED = sanitizers() == "thread"
SANITIZED = sanitizers() != ""  # it keeps what was freed for a while: no statement about memory holds then


def preload(library, beside=None):
    """What is set to load a library into segue. The runtime of AddressSanitizer must come before it,
    and would look for leaks in each program that segue starts as well."""
    linked = subprocess.run(["ldd", SEGUE], capture_output=True, text=True).stdout
    runtime = re.search(r"libasan\S* => (\S+)", linked)
    if runtime:
        return {"LD_PRELOAD": f"{runtime[1]} {library}", "ASAN_OPTIONS": "detect_leaks=0", **(beside or {})}
    return {"LD_PRELOAD": library, **(beside or {})}


commands = itertools.count(sample.seed())


def leak_check(options):
    """What one command in four is started with: it looks for leaks at its end, which is a third of a short program
    under AddressSanitizer. The others do not; which ones, the commit says."""
    if not SANITIZED or THREAD_SANITIZED or sample.ALL or next(commands) % 4 == 0:
        return {}
    return {"ASAN_OPTIONS": options + ":detect_leaks=0"}


class Failed(Exception):
    pass


# The first check of a test is made wrong, so that a test of the tests sees whether it can fail. What the
# test starts is right.
made_wrong = os.environ.pop("SEGUE_TEST_FAIL", None) is not None


class Skipped(SystemExit):
    """A case that cannot be played here; outside of a case the whole test."""


def skip(why):
    """tests/skipped.py gathers these lines from the log of a run."""
    print("skipped:", why)
    raise Skipped(77)


PACKAGES = {"bwrap": "bubblewrap", "chromedriver": "chromium-driver", "readelf": "binutils", "ssh-keygen": "openssh-client",
            "systemd-analyze": "systemd", "man": "man-db", "postgres": "PostgreSQL"}


def needs(*programs, path=None):
    """Programs that are only there where somebody installed them."""
    for name in programs:
        if shutil.which(name, path=path) is None:
            skip(f"{PACKAGES.get(name, name)} is not installed")


def chance():
    """The seed of a test's random numbers: the commit's, or SEGUE_SEED, which repeats a sequence."""
    return int(os.environ.get("SEGUE_SEED") or sample.seed())


def expect(truth, *what):
    global made_wrong
    if made_wrong:
        made_wrong, what = False, ("made wrong by SEGUE_TEST_FAIL:", *what)
        raise Failed(" ".join(str(w) for w in what))
    if not truth:
        raise Failed(" ".join(str(w) for w in what))


def slack():
    """How many times as long something may take here as on a machine that does nothing else."""
    minute, _, _, now, _ = Path("/proc/loadavg").read_text(encoding="ascii").split()
    return max(1.0, max(float(minute), int(now.split("/")[0])) / (os.cpu_count() or 1))


def at_once(begin, seconds, *what):
    """It took less than so many seconds: what it must not wait for lasts longer."""
    took, most = time.monotonic() - begin, seconds * slack()
    expect(took < most, *what, f"(it took {took:.1f} s, may take {most:.1f})")


def let_go(*daemons):
    """Ends them, and waits for none of their calls: asked twice. Killed, they could not say what they leaked."""
    for seconds in (1, 10):
        for daemon in daemons:
            if daemon.poll() is None:
                daemon.terminate()
        until = time.monotonic() + seconds
        for daemon in daemons:
            try:
                daemon.wait(max(0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
    for daemon in daemons:
        daemon.kill()
        daemon.wait()


def temp_folder():
    """Where boxes are made. Root runs some programs as another user, who must be able to go there."""
    at = os.path.realpath(tempfile.gettempdir())
    while os.geteuid() == 0 and at != "/":
        if not os.stat(at).st_mode & 0o001:
            return "/tmp"
        at = os.path.dirname(at)
    return None


def others_can_run():
    """Whether other users reach what was built; not in root's home. To run it tells less: the first program
    that setpriv starts still has root's rights, and only those that it starts have none."""
    folders, at = [], os.path.realpath(BUILD)
    while at not in folders:
        folders.append(at)
        at = os.path.dirname(at)
    if all(os.stat(f).st_mode & 0o001 for f in folders):
        return True
    print("skipped: another user cannot run the program that was built")
    return False


def needs_others():
    if not others_can_run():
        raise Skipped(77)


def signed(scenario):
    """The scenario with {mark} behind each tag at the end of a text, as an agent is asked to write it, and with a
    full stop at the end of the line above, which must be closed."""
    scenario = re.sub(r"(?<!\\)(\w)((?:\\n|\n *)+)(?=\[[A-Za-z_][^\[\]:\n\"']*:\d+\])", r"\1.\2", scenario)

    def sign(match):
        key = re.findall(r"(text|chunks|contains|reason)\b[\"']?:", scenario[:match.start()])
        return match[0] + " {mark}" if key and key[-1] in ("text", "chunks") else match[0]

    return re.sub(r"\[[A-Za-z_][^\[\]:\n\"']*:\d+\](?=(\\n|\s)*([\"'\n]|$))", sign, scenario)


class Box:
    """A directory with its own home, logs and working directory; nothing outside is touched."""

    def __init__(self, base=None):
        self.dir = tempfile.mkdtemp(prefix="segue-test-", dir=base or temp_folder())
        self.logs = self.dir + "/logs"
        self.cwd = self.dir + "/work"
        self.pids = self.dir + "/pids"
        self.started = []
        self.trusts = ["--trust"]  # one file has many workflows here; trust_test.py does without
        for name in ("home", "tmp", "work"):
            os.mkdir(f"{self.dir}/{name}")
        self.env = {
            "PATH": "/usr/bin:/bin",
            "HOME": self.dir + "/home",
            "XDG_CONFIG_HOME": self.dir + "/home/config",
            "XDG_STATE_HOME": self.dir + "/home/state",
            "TMPDIR": self.dir + "/tmp",
            "SEGUE_SHIM": BUILD + "/segue-shim",
            "LANG": "C.UTF-8",
        }
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS"):
            if name in os.environ:
                self.env[name] = os.environ[name]
        if on_store.SERVER:
            on_store.join(self)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for process in self.started:  # a test that failed leaves nothing running
            if process.poll() is None:
                process.kill()
                process.wait()
        if on_store.SERVER:
            on_store.leave(self)
        shutil.rmtree(self.dir, ignore_errors=True)

    def given(self, words):
        if words and words[0] in ("run", "submit"):
            words = (words[0], *self.trusts, *words[1:])
        return on_store.words(self, words) if on_store.SERVER else words

    def file(self, name, content, sign=True):
        """Writes a file. In a scenario a tag at the end of a text is signed, unless `sign` is false."""
        path = f"{self.dir}/{name}"
        if sign and isinstance(content, str) and re.search(r"\breplies\b", content):
            content = signed(content)
        Path(path).write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def config(self, value):
        """Writes the user's configuration: YAML, or a value as JSON. Its path."""
        os.makedirs(self.env["XDG_CONFIG_HOME"] + "/segue", exist_ok=True)
        path = self.env["XDG_CONFIG_HOME"] + "/segue/config.yaml"
        Path(path).write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
        return path

    def segue(self, *words, stdin=None, env=None, timeout=WAIT_S, prefix=(), status=None,
              out=(), err=()):
        """Runs segue to its end; stdout and stderr as bytes. It must end with that status, unless it is None, and its
        stdout and stderr must hold these texts."""
        words = self.given(words)
        done = subprocess.run([*prefix, SEGUE, *words], input=stdin, capture_output=True,
                              env={**self.env, **leak_check(self.env.get("ASAN_OPTIONS", "")), **(env or {})}, cwd=self.cwd, timeout=timeout,
                              stdin=subprocess.DEVNULL if stdin is None else None)
        expect(b"Sanitizer" not in done.stderr and b"runtime error" not in done.stderr,
               "sanitizer:", done.stderr.decode(errors="replace"))
        expect(done.returncode >= 0, "segue", *words, "died of signal", -done.returncode,
               done.stderr)
        expect(status in (None, done.returncode), "segue", *words, "ended with", done.returncode, done.stdout, done.stderr)
        for wanted, got in ((out, done.stdout), (err, done.stderr)):
            for text in (wanted,) if isinstance(wanted, (str, bytes)) else wanted:
                text = text.encode() if isinstance(text, str) else text
                expect(text in got, "segue", *words, "does not say", text, "but", got)
        return done

    def start(self, *words, env=None, prefix=(), **kw):
        words = self.given(words)
        process = subprocess.Popen([*prefix, SEGUE, *words], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env={**self.env, **(env or {})}, cwd=self.cwd, **kw)
        self.started.append(process)
        return process

    def log_paths(self):
        if on_store.SERVER:
            on_store.copy_logs(self)
        if not os.path.isdir(self.logs):
            return []
        return sorted(f"{self.logs}/{n}" for n in os.listdir(self.logs) if n.endswith(".ndjson"))

    def begun(self):
        """Logs whose first record is whole: sessions that can be resumed."""
        found = []
        for path in self.log_paths():
            with open(path, "rb") as f:
                if f.readline().endswith(b"\n"):
                    found.append(path)
        return found


def interrupt(process):
    """Ctrl-C, and the end of it. ThreadSanitizer puts off a signal to the next call that it knows,
    and loses one in some five hundred: its handler never runs. Without it, none in 13,000."""
    process.send_signal(signal.SIGINT)
    if THREAD_SANITIZED:
        try:
            return process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
    return process.communicate()


def records(path):
    if on_store.SERVER:
        on_store.refresh(path)
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


def of_type(log, kind):
    return [r for r in log if r["type"] == kind]


def flow(name):
    """A workflow of tests/data/flows."""
    return (Path(__file__).parents[1] / f"data/flows/{name}.yaml").read_text(encoding="utf-8")


def fill(folder, files):
    """Makes f0, and as many files more in 100 folders."""
    for i in range(files):
        below = f"{folder}/d{i % 100}" if i else folder
        os.makedirs(below, exist_ok=True)
        Path(f"{below}/f{i}").write_text(f"line {i}\n" * 20, encoding="ascii")


def prompt_text(log, call):
    """The prompt of a call as it was sent, with what it refers to put in."""
    def text(part):
        if isinstance(part, str):
            return part
        if "text" in part:
            return part["text"]
        seq, pointer = part["ref"].split("#/")
        value = log[int(seq) - 1]
        for key in pointer.split("/"):
            value = value[int(key)] if isinstance(value, list) else value[key]
        return text(value)
    return "".join(map(text, call["prompt"]))


def at(record):
    """When a record was made, in seconds since 1970."""
    return datetime.datetime.fromisoformat(record["ts"].removesuffix("Z") + "+00:00").timestamp()


def verdicts(log):
    return [(r["turn"], r["movement"], r["rule"], r["method"]) for r in of_type(log, "judgment")]


def read_until(process, match, seen=None):
    """Reads records from a process that was started with --json until one matches; None at its end."""
    for line in process.stdout:
        record = json.loads(line)
        if seen is not None:
            seen.append(record)
        if match(record):
            return record
    return None


def end_of(process, timeout=WAIT_S):
    """Lets a started process end; its status, the rest of stdout, stderr."""
    out, err = process.communicate(timeout=timeout)
    expect(b"Sanitizer" not in err and b"runtime error" not in err,
           "sanitizer:", err.decode(errors="replace"))
    return process.returncode, out, err


def verified(box, *paths):
    for i in range(0, len(paths), 50):  # a command line takes 64 words
        box.segue("verify", *paths[i:i + 50], status=0)


def sound(log, wanted, repeats=None):
    """What holds after any crash: the verdicts of an undisturbed run, nothing judged twice."""
    expect([r["seq"] for r in log] == list(range(1, len(log) + 1)), "seq has gaps or repetitions")
    expect(log[-1]["type"] == "session_end", "the log ends with", log[-1]["type"])
    expect(len(of_type(log, "session_end")) == 1, "more than one session_end")
    turns = [r["turn"] for r in of_type(log, "judgment")]
    expect(len(turns) == len(set(turns)), "a turn has two judgments:", turns)
    expect(verdicts(log) == wanted, "other verdicts:", verdicts(log), "wanted:", wanted)
    ends, starts, again = {}, {}, {}
    for r in log:
        if r["type"] == "call_start":
            key = (r["turn"], r["call"])
            starts[key] = starts.get(key, 0) + 1
            again[key] = again.get(key, 0) + ("repeats" in r)
            expect(r["attempt"] == starts[key], "call", key, "skips an attempt")
        if r["type"] == "call_end" and "error" not in r:
            key = (r["turn"], r["call"])
            ends[key] = ends.get(key, 0) + 1
    expect(all(n == 1 for n in ends.values()), "a call was answered twice:", ends)
    if repeats is not None:
        expect(all(n <= repeats for n in again.values()), "a call was repeated too often:", again)


# ---- processes -------------------------------------------------------------------------------------

def processes_of(directory):
    """Every process with the directory in its command line: commands of the workflow, segue itself."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            cmdline = Path(f"/proc/{pid}/cmdline").read_bytes()
            state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
        except (OSError, IndexError):
            continue
        if directory.encode() + b"/" in cmdline and state != b"Z":
            found.append((int(pid), cmdline.replace(b"\0", b" ").decode(errors="replace")))
    return found


def cpu_ms(pid):
    """Processor time that a process has used."""
    words = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def memory_kib(pid, field, file="status"):
    """The sum of the lines of a file of /proc/PID that begin with the field."""
    with open(f"/proc/{pid}/{file}", encoding="ascii") as f:
        found = [int(line.split()[1]) for line in f if line.startswith(field)]
    expect(found, field, "of", pid, "is not there")
    return sum(found)


def pid_is_gone(pid, directory):
    try:
        return directory.encode() + b"/" not in Path(f"/proc/{pid}/cmdline").read_bytes()  # another process by now
    except OSError:
        return True


def all_gone(box):
    """No command that wrote its pid is alive; waits for the shim's TERM and KILL."""
    until = time.monotonic() + WAIT_S
    if not os.path.exists(box.pids):
        return
    with open(box.pids) as f:
        pids = [int(line) for line in f if line.strip().isdigit()]
    for pid in pids:
        while not pid_is_gone(pid, box.dir):
            expect(time.monotonic() < until, "process", pid, "of a command outlived segue")
            time.sleep(0.005)  # a look at a time; the deadline is above


# ---- a workflow that uses every way to judge ---------------------------------------------------------

WORKFLOW = """
name: every-way
initial_movement: build
max_movements: 20
provider: script
judge: {max_reasks: 0}
movements:
  - name: build
    command: [sh, -c, 'echo $$ >> "$0"; %(command_delay)s echo built; exit 3', %(pids)s]
    rules:
      - {condition: when(exit == 0), next: ABORT}
      - {condition: when(exit == 3 && movement_iteration == 1), next: plan}
  - name: plan
    instruction: plan it
    rules:
      - {condition: always, next: write}
  - name: write
    edit: true
    instruction: write it
    rules:
      - {condition: written, next: review}
      - {condition: not written, next: ABORT}
  - name: review
    instruction: review it
    rules:
      - {condition: approved, next: check}
      - {condition: needs fix, next: write}
  - name: check
    instruction: check it
    judge: {stages: [phase1_tag]}
    rules:
      - {condition: checked, next: weigh}
      - {condition: not checked, next: ABORT}
  - name: weigh
    instruction: weigh it
    rules:
      - {condition: too heavy, next: ABORT}
      - {condition: "light && when(movement_iteration == 1)", next: mend}
  - name: mend
    instruction: mend the answer
    judge: {max_reasks: 1, stages: [structured_output]}
    rules:
      - {condition: not mended, next: ABORT}
      - {condition: mended, next: grade}
  - name: grade
    instruction: grade it
    structured_output:
      schema: {type: object, properties: {grade: {type: integer, maximum: 6}}, required: [grade]}
      on_failure: escalate
      invariants: ["grade != 3", {command: [sh, -c, 'grep -q grade']}]
    rules:
      - {condition: "when(structured.grade.grade == 2)", next: pack}
      - {condition: otherwise, next: ABORT}
  - name: pack
    command: [sh, -c, 'echo $$ >> "$0"; %(command_delay)s cat > /dev/null; echo packed', %(pids)s]
    rules:
      - {condition: when(exit == 0), next: COMPLETE}
      - {condition: when(exit != 0), next: ABORT}
"""

MATCHES = [
    ("build", 2, "when"), ("plan", 1, "auto_select"), ("write", 1, "structured_output"),
    ("review", 2, "phase3_tag"), ("write", 1, "structured_output"),
    ("review", 1, "structured_output"), ("check", 1, "phase1_tag"), ("weigh", 2, "ai_judge"),
    ("mend", 2, "structured_output"), ("grade", 1, "when"), ("pack", 1, "when"),
]
WANTED = [(i + 1, *m) for i, m in enumerate(MATCHES)]


def replies(delay_ms):
    big = "a long line of an answer that goes to a blob\n" * 1600  # over 64 KiB
    found = [
        {"movement": "plan", "text": "the plan"},
        {"movement": "write", "purpose": "execute", "text": "first draft",
         "write": {"src/a.txt": "one\n"}},
        {"movement": "write", "stage": "structured_output", "times": 2,
         "structured": {"reason": "it is there", "step": 1}},
        {"movement": "review", "purpose": "execute", "text": big, "times": 2},
        {"movement": "review", "stage": "structured_output", "text": "I cannot say."},
        {"movement": "review", "stage": "phase3_tag", "text": "[REVIEW:2]"},
        {"movement": "write", "purpose": "execute", "text": "second draft",
         "write": {"src/a.txt": "one\ntwo\n"}},
        {"movement": "review", "stage": "structured_output",
         "text": "```json\n{\"reason\": \"good\", \"step\": 1}\n```"},
        {"movement": "check", "purpose": "execute", "text": "Looked at it all.\n\n[CHECK:1]"},
        {"movement": "weigh", "purpose": "execute", "text": "feels light"},
        {"movement": "weigh", "stage": "structured_output", "error": {"class": "refused"}},
        {"movement": "weigh", "stage": "phase3_tag", "text": "no tag here"},
        {"movement": "weigh", "stage": "ai_judge",
         "error": {"class": "network", "retry_after_ms": 1 + delay_ms}},
        {"movement": "weigh", "stage": "ai_judge",
         "text": "{\"reason\": \"light\", \"matched_index\": 2}"},
        {"movement": "mend", "purpose": "execute", "text": "mended"},
        {"movement": "mend", "purpose": "judge", "text": "{\"reason\": \"?\", \"step\": 7}"},
        {"movement": "mend", "purpose": "reask", "text": "{\"reason\": \"yes\", \"step\": 2}"},
        {"movement": "grade", "purpose": "execute", "error": {"class": "length"}, "text": "{"},
        {"movement": "grade", "purpose": "execute", "text": "{\"grade\": 9}"},
        {"movement": "grade", "purpose": "reask", "contains": "greater than", "text": "{\"grade\": 3}"},
        {"movement": "grade", "purpose": "reask", "contains": "grade != 3", "text": "{\"grade\": 2}"},
    ]
    for reply in found:
        reply["delay_ms"] = delay_ms
    return found


def every_way(box, delay_ms=0):
    """Writes the workflow and its scenario; the words after `segue run`."""
    delay = f"sleep {delay_ms / 1000};" if delay_ms else ""
    workflow = box.file("every-way.yaml",
                        WORKFLOW % {"pids": json.dumps(box.pids), "command_delay": delay})
    scenario = box.file("every-way.json", json.dumps({"replies": replies(delay_ms)}))
    return [workflow, "--scenario", scenario, "--cwd", box.cwd, "--logs", box.logs,
            "--task", "do it in every way"]


# ---- running the cases -------------------------------------------------------------------------------

def work_s():
    """Processor time of this test and of what it started and has ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def need_build():
    if not os.access(SEGUE, os.X_OK):
        print(f"usage: {sys.argv[0]} BUILD_DIR [CASE...]   (no segue in {BUILD or '.'})")
        sys.exit(2)


def play(case):
    """A case with a parameter that has no default gets a box, of the kind that is written at the parameter."""
    wanted = next(iter(inspect.signature(case).parameters.values()), None)
    if wanted is None or wanted.default is not wanted.empty:
        return case()
    with (Box if wanted.annotation is wanted.empty else wanted.annotation)() as box:
        return case(box)


def main(cases):
    """Runs the named cases, or all; prints a line each."""
    need_build()
    wanted = sys.argv[2:]
    failed, one_is_enough = 0, made_wrong
    played = skipped = 0
    sys.stdout.reconfigure(line_buffering=True)
    for case in cases:
        name = case.__name__
        if wanted and name not in wanted:
            continue
        begin, worked = time.monotonic(), work_s()
        played += 1
        try:
            said = play(case)
            skipped += bool(said and said.startswith("skipped:"))
            print(f"ok    {name}{': ' + said if said else ''}  ({time.monotonic() - begin:.1f} s, {work_s() - worked:.1f} of work)")
        except Skipped:
            skipped += 1
            print(f"skip  {name}  ({time.monotonic() - begin:.1f} s)")
        except (Failed, AssertionError, subprocess.TimeoutExpired, OSError, RuntimeError, ValueError,
                LookupError) as error:
            failed += 1
            print(f"FAIL  {name}: {error}")
            if not isinstance(error, Failed):
                traceback.print_exc(file=sys.stdout)
            print(f"      repeat with: {sys.argv[0]} {sys.argv[1]} {name}")
            if one_is_enough:
                break
    if failed:
        return 1
    return 77 if played and skipped == played else 0


def hour_to_come(of=time.gmtime, shift=0, minutes=""):
    """The hour that begins in two to three hours, as a client writes it: never one that strikes while the test runs."""
    hour = of(time.time() + (3 + shift) * 3600).tm_hour
    return f"{hour % 12 or 12}{minutes}{'am' if hour < 12 else 'pm'}"
