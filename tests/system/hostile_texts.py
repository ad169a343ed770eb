"""Texts that want to be more than text, and logs that are full of them: for the window and the reports."""
import hashlib
import json

TAGS = ["script", "img src=x", "svg", "svg/onload=alert(1)", "math", "iframe srcdoc=x", "object data=x", "embed src=x",
        "base href=//evil.example/", "meta http-equiv=refresh content=0", "link rel=stylesheet href=//evil.example",
        "style", "form action=//evil.example", "input autofocus onfocus=alert(1)", "button formaction=javascript:1",
        "video src=x", "audio src=x onerror=alert(1)", "details open ontoggle=alert(1)", "template", "noscript",
        "xmp", "plaintext", "textarea", "title", "select", "option", "frameset", "marquee onstart=alert(1)",
        "body onload=alert(1)", "html", "head", "table", "td", "a href=//evil.example", "portal src=x", "dialog open",
        "slot", "foreignObject", "animate onbegin=alert(1)", "image href=x", "use href=//evil.example#x", "isindex"]
HANDLERS = ["onerror", "onload", "onclick", "onmouseover", "onfocus", "onanimationstart", "onpointerrawupdate",
            "onbeforetoggle", "oncontentvisibilityautostatechange", "onscrollend"]
SCHEMES = ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "java\tscript:alert(1)", "java\nscript:alert(1)",
           "data:text/html,<script>alert(1)</script>", "vbscript:x", "file:///etc/passwd", "//evil.example",
           "\\\\evil.example\\x", "http://evil.example/x.png", "&#106;avascript:alert(1)", "blob:null/x", "ftp://evil.example"]
ENTITIES = ["&lt;b&gt;", "&#60;b&#62;", "&#x3c;b&#x3e;", "&amp;lt;", "&NewLine;&Tab;&colon;", "&quot;&apos;", "&#0;",
            "&#xD800;", "&#1114112;", "&unknown;", "&lt", "&copy"]
TEMPLATES = ["{{7*7}}", "${7*7}", "#{7*7}", "<%= 7 %>", "{% x %}", "{{constructor.constructor('alert(1)')()}}",
             "[[${x}]]", "__proto__", "%s%n%x", "{task}", "{previous_response}", "`alert(1)`"]
ENDS = ["</pre>", "</details></main>", "</title><script>alert(1)</script>", "--><script>alert(1)</script>",
        "]]><script>alert(1)</script>", "</style><script>alert(1)</script>", "\"'><b>", "' onclick='alert(1)",
        "\" autofocus onfocus=\"alert(1)", "\" style=\"position:fixed", "</script>", "<!--", "<![CDATA[", "<?xml ?>",
        "<!DOCTYPE x>", "\n\ndata: {\"call\":1}\n\n", "event: change\ndata:\n\n"]
MARKDOWN = ["[x](javascript:alert(1))", "![x](http://evil.example/x.png)", "```\n</code>\n```", "# h", "<http://evil.example>",
            "|a|b|\n|-|-|", "[x]: http://evil.example", "**b**", "~~~", "1. x"]
ESCAPES = ["\x1b[31mred", "\x1b[2J", "\x1b]8;;http://evil.example/\x1b\\x\x1b]8;;\x1b\\", "\x1b]52;c;aGk=\x07",
           "\x1bP1;2|x\x1b\\", "\x1b_x\x1b\\", "\x1b^x\x1b\\", "\x1b[?1049h", "\x9b31m", "\x9d8;;x\x9c", "\x1b", "\x07\x08\x0b\x0c",
           "a\rb", "\x7f", "\x00", "a\x00b", "\x85"]
ODD = ["\u202egnp.exe", "\u2066x\u2069", "\u200e\u200f", "\u061c", "a\u200bb\ufeff", "\u2028", "\u2029", "\u00ad", "\u2060",
       "\U000e0041\U000e0042", "\u3164", "\uffa0", "\ufffe", "\ufdd0", "\u0338" * 40, "a\u0301" * 50, "\u8a66\u9a13",
       "\u05d0\u05d1\u05d2 \u0627\u0628", "\U0001f468\u200d\U0001f469", "\u1100" * 30, "\u0e01\u0e49" * 20, "\ufb01",
       "\u212a", "\u0130", "\u00df", "\u2400", "\u27e8U+202E\u27e9"]
TEXTS = ([f"<{t}>" for t in TAGS] + [f"<img src=x {h}=alert(1)>" for h in HANDLERS] + SCHEMES + ENTITIES + TEMPLATES + ENDS
         + MARKDOWN + ESCAPES + ODD + ["w" * 20000])
assert len(TEXTS) >= 150, len(TEXTS)

# Without these a record is none, or of another kind: readers go by them.
FIXED = {"type", "ts", "hash", "session", "v", "workflow_sha256", "prompt_sha256", "text_blob", "ref", "token", "next",
         "initial_movement", "stage", "outcome", "method", "match_method", "purpose", "event", "language", "sha256"}


def fill(value, texts, key=""):
    """The same value with another text behind each text in it."""
    if isinstance(value, dict):
        return {k: v if k in FIXED else fill(v, texts, k) for k, v in value.items()}
    if isinstance(value, list):
        return [fill(v, texts, key) for v in value]
    return value + next(texts) if isinstance(value, str) else value


def rewrite(path, out, texts, sid, whole):
    """A log like that at `path`, of the session `sid`, with texts in its fields, and a chain that is right. Not
    whole: what would make the fold stop at the first record stays as it was."""
    chain = "0" * 64
    with open(path, encoding="utf-8") as f, open(out, "wb") as to:
        for line in f:
            record = json.loads(line)
            record.pop("hash")
            if record["type"] == "session_start":
                record["session"] = sid
            if record["type"] == "session_start" and not whole:
                record["task"] += "".join(next(texts) for _ in range(20))
            elif whole or record["type"] not in ("turn_start",):
                record = fill(record, texts)
            body = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")[:-1]
            chain = hashlib.sha256(chain.encode() + body).hexdigest()
            to.write(body + b',"hash":"' + chain.encode() + b'"}\n')
