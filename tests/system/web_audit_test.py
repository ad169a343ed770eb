#!/usr/bin/env python3
"""The audit page against the commands: its tables, their data, intervals, agreement once somebody labelled."""
import csv
import html
import io
import json
import math
import os
import re
import sys

from audit_logs import write
from support import expect, main, records
from web_gate_test import WebBox

Z = 1.959963984540054
RULES = """name: two
provider: script
judge: {stages: [structured_output]}
movements:
  - name: look
    instruction: look at it
    rules:
      - {condition: good, next: COMPLETE}
      - {condition: bad, next: ABORT}
"""


def rows(page, heading):
    """The cells of the table below a heading, as texts; None: there is no such heading."""
    at = page.find(">" + heading + "<")
    if at < 0:
        return None
    table = page[at:page.index("</table>", at)]
    body = table[table.index("<tbody>"):]
    return [[html.unescape(re.sub(r"<[^>]*>", "", cell)).translate({0x2068: None, 0x2069: None}).strip()
             for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S)]
            for row in re.findall(r"<tr>(.*?)</tr>", body, re.S)]


def page(window, path="audit"):
    status, headers, body = window.ask("GET", path)
    expect(status == 200, path, status, body[:300])
    return headers, body.decode()


def groups(box, by, *words):
    return json.loads(box.segue("audit", box.logs, "--json", "--by", by, *words).stdout)


def wilson(share, n):
    middle, half = share + Z * Z / n / 2, Z * math.sqrt(share * (1 - share) / n + Z * Z / n / n / 4)
    return max(0, (middle - half) / (1 + Z * Z / n)), min(1, (middle + half) / (1 + Z * Z / n))


def tables_and_data(box: WebBox):
    write(box.logs, 120, 12, seed=3, shares=True)
    box.serve()
    window = box.window()
    for words, query in (((), ""), (("--method", "ai_judge"), "?q=method:ai_judge"),
                         (("--movement", "plan", "--workflow", "flow"), "?q=movement:plan%20workflow:flow")):
        headers, body = page(window, "audit.json" + query)
        expect(headers["Content-Type"] == "application/json" and json.loads(body) == groups(box, "match_method", *words), query)
        headers, body = page(window, "audit.csv" + query)
        expect(headers["Content-Type"].startswith("text/csv"), headers)
        expect(body.encode() == box.segue("audit", box.logs, "--csv", *words).stdout, query)
        expect(len(list(csv.DictReader(io.StringIO(body, newline="")))) == len(groups(box, "match_method", *words)["groups"]))
        text = page(window, "audit" + query)[1]
        expect("audit.csv?q=" in text and "audit.json?q=" in text, "its data are not linked")
        days = {g["day"]: g for g in groups(box, "day", *words)["groups"]}
        shown = rows(text, "Unsure judgments by day")
        expect({r[0] for r in shown} == set(days), shown, sorted(days))
        for day, count, unsure, share, _ in shown:
            g = days[day]
            expect((int(count), int(unsure)) == (g["judgments"], g["unsure"]), day, count, unsure, g)
            expect(share == f"{100 * g['unsure'] / g['judgments']:.1f} %", day, share, g)
        judges = rows(text, "Judges: unreadable answers")
        for *_, times, _, share, interval in judges or []:
            n, p = int(times), float(share.split()[0]) / 100
            low, high = wilson(p, n)
            if n < 10:
                expect(interval == "too few", n, interval)
            else:
                got = [float(x) / 100 for x in re.findall(r"[\d.]+", interval)]
                expect(abs(got[0] - low) < 0.002 and abs(got[1] - high) < 0.002, n, p, got, low, high)
        expect(rows(text, "Agreement") is None, "nobody labelled")
    for path in ("audit.csv?q=nonsense:1", "audit.json?q=nonsense:1"):
        status, headers, body = window.ask("GET", path)
        expect(status == 404 and b"is not a filter" in body and headers["Content-Type"].startswith("text/html"), status, body)
    expect(window.ask("GET", "audit.csv?x=1")[0] in (400, 404))
    box.end()


def listed(window, path):
    """The pages behind a number: what they say in all, and their rows."""
    found, total = [], None
    while path:
        text = page(window, path)[1]
        said = int(re.search(r"<p role=status>(\d+) ", text)[1])
        expect(total in (None, said), path, total, said)
        total, body = said, text[text.find("<tbody>"):] if "<tbody>" in text else ""
        these = re.findall(r"<tr>(.*?)</tr>", body, re.S)
        expect(len(these) <= 200, len(these))
        found += these
        more = re.search(r'<a href="([^"]*)">Further ones', text)
        path = html.unescape(more[1]).split("/", 3)[3] if more else None
    return total, found, text


def numbers_lead_to_judgments(box: WebBox):
    write(box.logs, 24, 12, seed=5, shares=True)
    box.serve()
    window = box.window()
    seen, longest = set(), 0
    for query in ("audit", "audit?q=movement:plan", "audit?q=min-stages:2%20ambiguous"):
        text = page(window, query)[1]
        links = re.findall(r'<a href="([^"]*/judgments[?][^"]*)">(\d+)</a>', text)
        expect(links, query, "no number leads anywhere")
        for link, number in links:
            path = html.unescape(link).split("/", 3)[3]
            of, what = re.search(r"of=(\w+)", path)[1], re.search(r"what=(\w+)", path)
            seen.add((of, what[1] if what else ""))
            total, found, shown = listed(window, path)
            longest = max(longest, total)
            expect(total == len(found) == int(number), path, number, total, len(found))
            expect("q=" not in query or "q=" in path, path)
            if query != "audit" and what and what[1] == "all":
                continue
            data = json.loads(page(window, path.replace("judgments?", "judgments.json?"))[1])
            expect(data["total"] == total and len(data["judgments"]) == total, path)
            table = list(csv.DictReader(io.StringIO(page(window, path.replace("judgments?", "judgments.csv?"))[1], newline="")))
            expect(len(table) == total, path, len(table))
            for row, one in list(zip(data["judgments"], table))[:3]:
                expect(row["session"] == one["session"] and str(row["turn"] or "") == one["turn"], row, one)
                expect(re.search(rf'href="[^"]*/s/{row["session"]}/{row["turn"] or ""}"', "".join(found)), row)
    expect({"all", "methods", "stages", "falls", "movements", "judges", "workers", "days", "causes"} == {of for of, _ in seen}, seen)
    expect(longest > 200, longest)
    total, found, _ = listed(window, "judgments")
    one = re.search(r'href="[^"]*/(s/[^"/]*/\d+)"', found[0])[1]
    page(window, one)
    for path in ("judgments?of=nothing", "judgments?what=nothing", "judgments?from=-1", "judgments?from=x", "judgments.csv?of=nothing"):
        status, _, body = window.ask("GET", path)
        expect(status == 404, path, status, body)
    for query in ("movement:none-such", "outcome:complete%20movement:none-such"):
        expect(listed(window, f"judgments?q={query}")[0] == 0)
    text = page(window, "judgments?q=odd:1")[1]
    expect("is not a filter" in text and 'role=alert' in text, text)
    text = page(window, "audit?q=movement:%22plan%22%20min-stages:x")[1]
    expect("write a number from 1" in text, text)
    same = page(window, "audit.json?q=movement:%22plan%22")[1]
    expect(same == page(window, "audit.json?q=movement:plan")[1], "quotation marks hold a name together")
    box.end()


def agreement(box: WebBox):
    flow = box.file("two.yaml", RULES)
    for n in range(6):
        scenario = box.file("s.json", json.dumps({"replies": [
            {"purpose": "execute", "text": "looked"},
            {"purpose": "judge", "text": json.dumps({"reason": "r", "step": 1 + n % 2})}]}))
        box.segue("run", flow, "--scenario", scenario, "--cwd", box.cwd, "--logs", box.logs)
    judged = [(p, j) for p in box.log_paths() for j in records(p) if j["type"] == "judgment" and j["rule"]]
    expect(len(judged) == 6, len(judged))
    box.serve()
    window = box.window()
    expect(rows(page(window)[1], "Agreement") is None, "nobody labelled")
    for i, (path, j) in enumerate(judged):
        box.segue("label", os.path.basename(path)[:36], "look", str(j["rule"] if i else 3 - j["rule"]), "--by", "<b>ann",
                  "--logs", box.logs, status=0)
        expect(box.segue("label", os.path.basename(path)[:36], "look", "1", "--as", "bob", "--logs", box.logs).returncode == 0)
    text = page(window)[1]
    said = [json.loads(line) for line in box.segue("agree", box.logs, "--json").stdout.splitlines()]
    shown = rows(text, "Agreement")
    expect(len(said) == len(shown) >= 1 and "<b>ann" not in text, said, shown)
    expect({p["kappa"] is None for p in said} == {True, False}, said)
    for pair, row in zip(said, shown):
        expect(row[1:4] == [pair["first"], pair["second"], str(pair["turns"])], row, pair)
        expect(row[4].split()[0] == f"{pair['agreement'][0]:.2f}", row, pair)
        expect(row[5] == "undefined: one rater never varied" if pair["kappa"] is None else row[5].split()[0] == f"{pair['kappa'][0]:.2f}", row, pair)
        expect("too few" in row[7], row)
    box.end()


if __name__ == "__main__":
    sys.exit(main([tables_and_data, numbers_lead_to_judgments, agreement]))
