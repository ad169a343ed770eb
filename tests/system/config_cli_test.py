#!/usr/bin/env python3
"""segue config show: each setting with its value and where that comes from."""
import json
import sys

from support import expect, main


def rows(box, **env):
    told = json.loads(box.segue("config", "show", "--json", env=env, status=0).stdout)
    return told, {s["key"]: s for s in told["settings"]}


def values_have_an_origin(box):
    told, found = rows(box)
    expect("file" not in told and found["provider"]["value"] is None and "origin" not in found["provider"], told)
    path = box.config("provider: claude\nproviders:\n  azure:\n    type: openai\n    base_url: https://example.com/v1\n"
                      "    headers: {api-key: $SECRET, x: plain}\n")
    told, found = rows(box, SEGUE_LOGS="/somewhere", NO_COLOR="1", SECRET="s3cr3t-value")
    expect(told["file"] == path and found["provider"]["value"] == "claude" and found["provider"]["origin"] == path, told)
    expect(found["logs"] == {**found["logs"], "value": "/somewhere", "origin": "SEGUE_LOGS"}, found["logs"])
    expect(found["colours"]["origin"] == "NO_COLOR", found["colours"])
    headers = found["providers"]["value"]["azure"]["headers"]
    expect(set(headers.values()) == {"(hidden)"}, "a header may be a key:", headers)
    box.config("store: postgres://db.example/segue\n")
    _, found = rows(box)
    expect(found["store"]["value"] == "postgres://db.example/segue" and found["store"]["variable"] == "SEGUE_STORE",
           found["store"])
    _, found = rows(box, SEGUE_STORE="postgres://other/x")
    expect(found["store"]["value"] == "postgres://other/x" and found["store"]["origin"] == "SEGUE_STORE", found["store"])
    box.config("store: /somewhere\n")
    box.segue("ls", status=2, err=b"is not a store's address")
    box.config("provider: claude\nproviders: {azure: {type: openai, headers: {api-key: $SECRET, x: plain}}}\n")
    text = box.segue("config").stdout.decode()
    expect("claude" in text and path in text and "plain" not in text, text)


def a_bad_file_is_named(box):
    box.config("providr: claude\n")
    box.segue("config", "show", status=2, err=b'did you mean "provider"')
    expect(box.segue("config", "set").returncode == 2, "another word")


if __name__ == "__main__":
    sys.exit(main([values_have_an_origin, a_bad_file_is_named]))
