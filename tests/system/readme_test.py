#!/usr/bin/env python3
"""README's blocks run as they are printed, in a fresh repository, with an agent that stands for claude;
its workflow loads; and no page links to what is not there."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from support import BUILD, Box, expect, main, needs

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
AGENT = r"""#!/usr/bin/env python3
import json, sys
if "--version" in sys.argv:
    sys.exit(print("2.1.329 (Claude Code)"))
prompt = sys.stdin.read()
answer = {"type": "result", "subtype": "success", "is_error": False, "session_id": "s-1", "total_cost_usd": 0.01,
          "usage": {"input_tokens": 100, "output_tokens": 10}}
if "--json-schema" in sys.argv:
    answer.update(result="", structured_output={"reason": "The report says what was changed.", "step": 1})
else:
    try:
        with open("greet.sh", "w") as f:
            f.write('echo "Hello ${1:-world}"\n')
    except PermissionError:  # whoever reviews only reads
        pass
    answer.update(result="greet.sh has a default for an empty name now.")
print(json.dumps(answer))
"""


def blocks(path, language):
    return re.findall(r"^```" + language + r"\n(.*?)^```$", Path(path).read_text(encoding="utf-8"), re.M | re.S)


def pages():
    found = [ROOT + "/" + name for name in os.listdir(ROOT) if name.endswith(".md")]
    for folder in ("docs", "docs/backends"):
        found += [f"{ROOT}/{folder}/{name}" for name in os.listdir(f"{ROOT}/{folder}") if name.endswith(".md")]
    return found


def repository(box):
    Path(box.cwd + "/greet.sh").write_text('echo "Hello ${1:?no name}"\n', encoding="utf-8")
    Path(box.cwd + "/Makefile").write_text('test:\n\t@test "$$(sh greet.sh "")" = "Hello world"\n', encoding="utf-8")
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=box.cwd, env=box.env, check=True, capture_output=True)


def claude(box):
    os.makedirs(box.dir + "/bin")
    for name, text in (("claude", AGENT),):
        Path(f"{box.dir}/bin/{name}").write_text(text, encoding="utf-8")
        os.chmod(f"{box.dir}/bin/{name}", 0o755)
    os.symlink(BUILD + "/segue", box.dir + "/bin/segue")
    box.config("sandbox: off\n" if os.environ.get("SEGUE_README_SANDBOX") else "")
    box.env.update(PATH=box.dir + "/bin:" + box.env["PATH"], ANTHROPIC_API_KEY="sk-test-0123456789abcdef")


def its_five_commands_work():
    needs("make")
    the_commands_of("README.md")
    the_commands_of("README.ja.md")


def the_commands_of(page):
    with Box() as box:
        repository(box)
        claude(box)
        shown = blocks(f"{ROOT}/{page}", "sh")
        expect(len(shown) == 1 and "segue run" in shown[0], shown)
        for line in shown[0].splitlines():
            done = subprocess.run(["bash", "-c", line], cwd=box.cwd, env=box.env, capture_output=True, check=False, stdin=subprocess.DEVNULL)
            # The doctor's status says whether everything is here, which depends on the machine.
            expect(done.returncode == 0 or line.startswith("segue doctor"), line, done.stdout.decode(), done.stderr.decode())
        expect("COMPLETE" in done.stdout.decode(), "the last one shows the session:", done.stdout.decode())
        expect("world" in Path(box.cwd + "/greet.sh").read_text(encoding="utf-8"), "the agent worked")


def its_other_commands_can_be_pasted():
    """Nothing stands behind a command that its shell would not take for a comment."""
    told = subprocess.run([ROOT + "/dev", "help"], capture_output=True, check=True, text=True).stdout
    for page in ("README.md", "README.ja.md"):
        lines = re.findall(r"^    (\./dev .*)$", Path(f"{ROOT}/{page}").read_text(encoding="utf-8"), re.M)
        expect(len(lines) == 3, page, lines)
        for line in lines:
            words = line.split(" #")[0].split()
            expect(f"./dev {words[1]} " in told and len(words) <= 3 and words[2:] in ([], ["~/.local"]), page, line)


def its_workflow_loads(box):
    for text in blocks(ROOT + "/README.md", "yaml"):
        done = box.segue("lint", box.file("w.yaml", text))
        expect(done.returncode == 0 and b"warning" not in done.stderr, done.stderr.decode())


def settings_of_the_pages_load():
    """Settings as config.yaml, a backend's file as one, movements as a workflow."""
    seen = 0
    for path in pages():
        for text in blocks(path, "yaml"):
            first = next(line for line in text.splitlines() if not line.startswith("#"))
            where = re.match(r"# ~/\.config/segue/(providers/([\w-]+)\.yaml)", text)
            if first.startswith("movements:") and "rules:" not in text:  # a piece of one
                text += "    instruction: Do it.\n    rules: [{condition: it is done, next: COMPLETE}]\n"
            with Box() as box:
                folder = box.dir + "/home/config/segue"
                os.makedirs(folder + "/providers")
                if first.startswith(("name:", "movements:")):
                    words = ["lint", box.file("w.yaml", ("" if first.startswith("name:") else "name: shown\n") + text)]
                else:
                    Path(f"{folder}/{where[1] if where else 'config.yaml'}").write_text(text, encoding="utf-8")
                    words = ["providers", "show", where[2]] if where else ["providers", "--json"]
                os.mkdir(box.dir + "/bin")  # where the pages speak of it, it is there
                os.symlink("/bin/true", box.dir + "/bin/gemini")
                box.segue(*words, env={"PATH": box.dir + "/bin:" + box.env["PATH"]}, status=0)
                seen += 1
    expect(seen > 15, "few blocks were found:", seen)


def anchors(path):
    """The anchors of a page's headings, as its readers' sites make them."""
    text = re.sub(r"^```.*?^```$", "", Path(path).read_text(encoding="utf-8"), flags=re.M | re.S)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")
            for title in re.findall(r"^#+ (.+)$", text, re.M)}


def every_setting_is_told():
    """The table of docs/configuration.md says what segue config show says."""
    with Box() as box, open(ROOT + "/docs/configuration.md", encoding="utf-8") as f:
        page = f.read()
        for row in json.loads(box.segue("config", "show", "--json").stdout)["settings"]:
            own = row["key"] not in ("logs", "config", "colours")
            default = row["value"] if own and row.get("origin") == "default" else None
            cells = [f"`{row['key']}`", f"`{default}`" if default else "", "`config.yaml`" if own else "",
                     f"`{row['flag']}`" if "flag" in row else "",
                     f"`{row['variable']}`" if "variable" in row else "", row["what"]]
            line = "| " + " | ".join(cells) + " |"
            expect(line in page, "docs/configuration.md lacks the row:", line)


def every_backend_has_its_page():
    """The page says how to get the program, from which version on, and how to log in: as its profile does."""
    shared = {"grok": "others", "kimi": "others", "droid": "others", "cn": "others", "cline": "others", "goose": "others", "aider": "others", "text": "programs", "jsonl": "programs",
              "script": "programs", "command": "programs", "openai-chat": "openai", "vllm": "llamacpp",
              "lmstudio": "llamacpp", "deepseek": "more-apis", "mistral": "more-apis", "groq": "more-apis",
              "xai": "more-apis", "together": "more-apis", "azure": "more-apis"}
    with Box() as box:
        for row in json.loads(box.segue("providers", "--json").stdout)["providers"]:
            name = row["name"]
            page = f"{ROOT}/docs/backends/{shared.get(name, name)}.md"
            expect(os.path.exists(page), "no page of", name)
            text = Path(page).read_text(encoding="utf-8")
            expect(f"`{name}`" in text, page, "does not name", name)
            if name in shared:
                continue
            profile = box.segue("providers", "show", name).stdout.decode()
            install = re.search(r"^install: (.+)$", profile, re.M)
            version = re.search(r"^version: \{minimum: ([\d.]+)\}", profile, re.M)
            expect(install is None or install[1] in text, page, "lacks", install and install[1])
            expect(version is None or version[1] + " or newer" in text, page, "lacks", version and version[1])


def the_japanese_one_is_in_step():
    """The same sections, blocks, pictures and rows, and no page that the other one does not lead to."""
    def shape(page):
        text = Path(f"{ROOT}/{page}").read_text(encoding="utf-8")
        return {"sections": len(re.findall(r"^## ", text, re.M)), "pictures": re.findall(r"^!.*\((.*)\)$", text, re.M),
                "rows": len(re.findall(r"^\|", text, re.M)), "points": len(re.findall(r"^- \*\*", text, re.M)),
                "commands": [line.split("#")[0].rstrip() for block in [*re.findall(r"^    \./dev .*", text, re.M), *blocks(f"{ROOT}/{page}", "sh")] for line in block.splitlines()
                             if not line.startswith("echo")],
                "files": blocks(f"{ROOT}/{page}", "yaml")}, set(re.findall(r"\]\(((?!docs/tour)[^)]*)\)", text))
    (english, there), (japanese, here) = shape("README.md"), shape("README.ja.md")
    expect(english == japanese, english, japanese)
    expect(here <= there, here - there)


def links_lead_somewhere():
    for path in pages():
        text = re.sub(r"^```.*?^```$", "", Path(path).read_text(encoding="utf-8"), flags=re.M | re.S)
        text = re.sub(r"^    .*$", "", text, flags=re.M)
        for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", text)):
            target, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            target = os.path.join(os.path.dirname(path), target) if target else path
            expect(os.path.exists(target), path, "links to", link)
            expect(not anchor or anchor in anchors(target), path, "links to the anchor", link)


def readme_stays_short():
    with open(ROOT + "/README.md", encoding="utf-8") as f:
        lines = len(f.readlines())
    expect(150 <= lines <= 200, "README has", lines, "lines; what is longer stands in docs/")


if __name__ == "__main__":
    sys.exit(main([its_five_commands_work, its_other_commands_can_be_pasted, its_workflow_loads, settings_of_the_pages_load,
                   every_setting_is_told, every_backend_has_its_page, the_japanese_one_is_in_step, links_lead_somewhere,
                   readme_stays_short]))
