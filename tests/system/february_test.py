#!/usr/bin/env python3
"""Files in the shape of takt's of February 2026, as they are: with their config blocks, reports,
monitors, groups and questions to persons they load and run to their end."""
import json
import os
import shutil
import sys

from support import Box, expect, main, of_type, records, verified

DATA = os.path.dirname(os.path.abspath(__file__)) + "/../data/workflows/february"
JUDGE = "_loop_judge_reviewers_fix"
BOTH = [("reviewers.arch-review", 2), ("reviewers.security-review", 1)]
GOOD = [("reviewers.arch-review", 1), ("reviewers.security-review", 1)]

# The movements that run, each with the rule that its judge names; None: there is one label alone.
RUNS = {
    "default": [("plan", 1), ("implement", 1), *BOTH, ("fix", 1), *BOTH, ("fix", 1), (JUDGE, 2),
                ("supervise", 1)],
    "minimal": [("implement", 1), *BOTH, ("fix", 1), *BOTH, ("fix", 1), *BOTH, ("fix", 1),
                (JUDGE, 1), *GOOD],
    "review-only": [*GOOD, ("supervise", 1)],
    "passthrough": [("execute", 1)],
    "magi": [("melchior", None), ("balthasar", None), ("casper", None)],
    "research": [("plan", 1), ("dig", 1), ("supervise", 2), ("plan", 1), ("dig", 1),
                 ("supervise", 1)],
    "compound-eye": [("look.one", 1), ("look.two", 2), ("say", None)],
}
REPORTS = {
    "default": ["00-plan.md", "01-scope.md", "02-decisions.md", "03-arch.md", "04-security.md",
                "05-validation.md", "summary.md"],
    "minimal": ["01-scope.md", "02-decisions.md", "03-arch.md", "04-security.md"],
    "review-only": ["03-arch.md", "04-security.md", "05-validation.md", "summary.md"],
    "passthrough": ["summary.md"],
    "compound-eye": ["synthesis.md"],
}


def replies(run):
    for movement, rule in run:
        yield {"movement": movement, "purpose": "execute", "text": f"{movement} did it"}
        if rule is not None:
            yield {"movement": movement, "purpose": "judge",
                   "structured": {"reason": "it says so", "step": rule}}
    for movement in sorted({m for m, _ in run}):
        yield {"movement": movement, "purpose": "report", "text": f"# Report of {movement}", "times": 99}


def all_run_unchanged():
    ran = 0
    for name in sorted(RUNS):
        with Box() as box:
            folder = box.dir + "/takt"
            shutil.copytree(DATA, folder)
            path = f"{folder}/pieces/{name}.yaml"
            expect(box.segue("lint", path).returncode == 0, box.segue("lint", path).stderr)
            scenario = box.file("s.json", json.dumps({"replies": list(replies(RUNS[name]))}))
            box.segue("run", path, "--provider", "script", "--scenario", scenario, "--cwd",
                      box.cwd, "--logs", box.logs, "--task", "the thing", status=0)
            log = box.begun()[0]
            verified(box, log)
            turns = [r["movement"] for r in of_type(records(log), "turn_start")]
            wanted = [m for m, _ in RUNS[name]]
            expect([t for t in turns if t not in ("reviewers", "look")] == wanted, name, turns)
            reports = f"{box.logs}/reports/{os.path.basename(log)[:-len('.ndjson')]}"
            found = sorted(os.listdir(reports)) if os.path.isdir(reports) else []
            expect(found == REPORTS.get(name, []), name, found)
            prompts = json.dumps([r.get("prompt") for r in of_type(records(log), "call_start")])
            expect("{report" not in prompts and "{cycle_count}" not in prompts, name, "left unfilled")
            ran += 1
    expect(ran == len([f for f in os.listdir(DATA + "/pieces")]), ran)
    return f"{ran} files"


if __name__ == "__main__":
    sys.exit(main([all_run_unchanged]))
