#!/usr/bin/env python3
"""Records a run of the demo as an SVG: ./dev recording writes docs/demo.svg.

The lines are those that segue printed, at the times at which it printed them; nothing is written by
hand. The picture moves where motion is wanted, and shows all lines where it is not."""
import html
import os
import re
import subprocess
import sys
import time

COLUMNS, LINE, WIDTH, PAD = 118, 19, 7.25, 16
COLOURS = [(re.compile(r"^(COMPLETE)"), "good"), (re.compile(r"(exit [1-9]\d*, .*? fail)"), "bad"), (re.compile(r"(exit 0, .*? pass)"), "good"),
           (re.compile(r"> (\w+)"), "to"), (re.compile(r"(structured_output|tag_fallback|ai_judge|when)\b"), "how")]


def record(command):
    begun, lines = time.monotonic(), []
    env = {**os.environ, "COLUMNS": str(COLUMNS), "NO_COLOR": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, text=True) as process:
        for line in process.stdout:
            lines.append((time.monotonic() - begun, line.rstrip("\n")))
    if process.returncode != 0:
        sys.exit(f"the demo failed with exit status {process.returncode}")
    return lines


def painted(line):
    marks = {}
    for pattern, name in COLOURS:
        for found in pattern.finditer(line):
            marks[found.start(1)] = (found.end(1), name)
            break
    out, at = "", 0
    for start in sorted(marks):
        if start >= at:
            end, name = marks[start]
            out += html.escape(line[at:start]) + f'<tspan class="{name}">{html.escape(line[start:end])}</tspan>'
            at = end
    return out + html.escape(line[at:])


def svg(prompt, lines):
    rows = [(0.0, prompt)] + [(0.4 + at, line) for at, line in lines]
    height = LINE * len(rows) + 2 * PAD
    width = int(max(len(line) for _, line in rows) * WIDTH) + 2 * PAD
    total = rows[-1][0] + 6
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">',
           "<title>A run of the demo workflow</title><style>",
           "rect{fill:#16181d}text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#d5d8de;white-space:pre}",
           ".good{fill:#7bc47f}.bad{fill:#e5786d}.to{fill:#8ab4f8}.how{fill:#d7ba7d}",
           "@media (prefers-reduced-motion: no-preference){text{animation:show .2s both}@keyframes show{from{opacity:0}}}",
           f"</style><!-- {total:.1f} s --><rect width='100%' height='100%' rx='8'/>"]
    for i, (at, line) in enumerate(rows):
        out.append(f'<text x="{PAD}" y="{PAD + LINE * (i + 1) - 5}" xml:space="preserve" style="animation-delay:{at:.2f}s">{painted(line)}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


if __name__ == "__main__":
    shown, target = sys.argv[1], sys.argv[2]
    result = svg("$ " + shown, [(at, re.sub(r"\S*/([0-9a-f]{8})[0-9a-f-]+\.ndjson", r"logs/\1....ndjson", line)) for at, line in record(sys.argv[3:])])
    with open(target, "w", encoding="utf-8") as f:
        f.write(result)
    print(f"{target}: written")
