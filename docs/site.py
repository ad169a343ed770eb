#!/usr/bin/env python3
"""The documentation as static pages: README first, then the pages of this folder by task, the manual
pages of the program and what stands beside them. Every link within is checked by the generator.

usage: site.py SEGUE OUT
"""
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The order of the menu; what is not named here comes last.
TASKS = ["tour", "workflow-files", "workflows", "judging", "backends", "people-and-budgets", "workspaces",
         "sandbox", "daemon", "window", "evidence", "audit", "sql", "attestations", "otlp", "log", "several-machines", "json-tools", "integrations",
         "configuration", "install", "figures", "guarantees", "from-takt",
         "from-takt.ja", "compatibility"]
# Other files that pages link to, and their name in the site.
BESIDE = {"ARCHITECTURE.md": "architecture.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md",
          "SECURITY.md": "security.md", "LICENSE": "license.md", "CODE_OF_CONDUCT.md": "conduct.md",
          "README.md": "index.md", "README.ja.md": "index-ja.md",
          "tests/system/real-clients.md": "real-clients.md",
          "tests/system/real-permissions.md": "real-permissions.md"}
LINK = re.compile(r"(\]\(|src=\")([^)\"#:\s]+)(#[^)\"]*)?(\)|\")")


def site_name(path):
    """The page's name in the site, of a path from the root; None: it is no page."""
    if path in BESIDE:
        return BESIDE[path]
    folder, name = os.path.split(path)
    if folder == "docs/backends":
        return "backends-" + name
    return name if folder == "docs" else None


def with_links(text, path):
    def moved(match):
        target = os.path.normpath(os.path.join(os.path.dirname(path), match[2]))
        name = site_name(target)
        if name is None:
            sys.exit(f"site.py: {path} links to {match[2]}, which is no page of the site")
        return match[1] + name + (match[3] or "") + match[4]

    code = r"(^```.*?^```$|^    [^\n]*$|`[^`\n]+`)"
    parts = re.split(code, text, flags=re.M | re.S)
    return "".join(p if i % 2 else LINK.sub(moved, p) for i, p in enumerate(parts))


def title_of(text, name):
    found = re.search(r"^# (.+)$", text, re.M)
    return found[1] if found else name


def stage_pages(out):
    pages = {}
    own = [f"{folder}/{n}" for folder in ("docs", "docs/backends") for n in sorted(os.listdir(f"{ROOT}/{folder}"))]
    for path in [*BESIDE, *own]:
        name = site_name(path)
        if path.endswith((".svg", ".png", ".webp")):
            shutil.copy(f"{ROOT}/{path}", f"{out}/{name}")
        elif path.endswith(".md") or path == "LICENSE":
            with open(f"{ROOT}/{path}", encoding="utf-8") as f:
                text = f.read()
            text = "# Licence\n\n```\n" + text + "```\n" if path == "LICENSE" else with_links(text, path)
            with open(f"{out}/{name}", "w", encoding="utf-8") as f:
                f.write(text)
            pages[name] = title_of(text, name)
    return pages


def stage_manual(segue, out):
    pages = {}
    names = subprocess.run([segue, "manual", "--list"], capture_output=True, check=True, text=True).stdout
    for page in names.split():
        source = subprocess.run([segue, "manual", page], capture_output=True, check=True).stdout
        shown = subprocess.run(["groff", "-mandoc", "-Tutf8", "-P-c", "-P-b", "-P-u", "-rLL=96n"], input=source,
                               capture_output=True, check=True).stdout.decode()
        name = f"man-{page}.md"
        command, section = page.rsplit(".", 1)
        with open(f"{out}/{name}", "w", encoding="utf-8") as f:
            f.write(f"# {command}({section})\n\n```\n{shown.strip()}\n```\n")
        pages[name] = f"{command}({section})"
    return pages


def configuration(pages, manual):
    first = [f"{t}.md" for t in TASKS if f"{t}.md" in pages]
    backends = [n for n in pages if n.startswith("backends-")]
    rest = [n for n in pages if n not in first and n not in backends and n != "index.md"]
    lines = ["site_name: segue", "theme: {name: readthedocs, highlightjs: false}", "plugins: [search]",
             "use_directory_urls: false", "docs_dir: pages", "site_dir: site", "nav:", "  - segue: index.md"]
    lines += [f"  - {pages[n]!r}: {n}" for n in first]
    lines += ["  - Backends, a page each:"] + [f"    - {pages[n]!r}: {n}" for n in backends]
    lines += ["  - Manual:"] + [f"    - {manual[n]!r}: {n}" for n in manual]
    lines += ["  - More:"] + [f"    - {pages[n]!r}: {n}" for n in rest]
    return "\n".join(lines) + "\n"


def main(segue, out):
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out + "/pages")
    pages = stage_pages(out + "/pages")
    manual = stage_manual(segue, out + "/pages")
    with open(out + "/mkdocs.yml", "w", encoding="utf-8") as f:
        f.write(configuration(pages, manual))
    return subprocess.run(["mkdocs", "build", "--strict", "--quiet", "-f", out + "/mkdocs.yml"], check=False).returncode


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])))
