"""A real browser for the system tests: Chromium, driven through chromedriver. Standard library only.

with Browser() as b: b.open(url); b.run("return document.title"); b.console()

One without words of its own is kept for the next case of a program: what starts costs more than most cases.
"""
import atexit
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from support import WAIT_S

AXE = os.environ.get("SEGUE_AXE", "")  # the path of axe.min.js; without it npm is asked for it
AXE_SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"  # 4.14.1
PROGRAMS = ("chromium", "chromedriver")
CAN = all(map(shutil.which, PROGRAMS))


def axe_script(folder):
    """The text of axe.min.js 4.14.1, or None."""
    path = AXE or folder + "/package/axe.min.js"
    if not AXE and shutil.which("npm"):
        subprocess.run("npm pack --silent axe-core@4.14.1 && tar xzf axe-core-4.14.1.tgz", shell=True, cwd=folder,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=60)
    if not os.path.exists(path):
        return None
    script = Path(path).read_bytes()
    if hashlib.sha256(script).hexdigest() != AXE_SHA256:
        raise AssertionError("this is another axe than 4.14.1: " + path)
    return script.decode()


kept = []  # a browser that nobody uses


@contextlib.contextmanager
def Browser(**words):
    b = kept.pop() if kept and not words else Chromium(**words)
    try:
        yield b
        if not words and not kept:
            b.fresh()
            kept.append(b)
    finally:
        if b not in kept:
            b.close()


@atexit.register
def close():
    while kept:
        kept.pop().close()


class Chromium:
    def __init__(self, width=1280, height=900, dark=False, scripts=True, cookies=True, more=()):
        self.home = tempfile.mkdtemp(prefix="segue-browser-")
        self.base = f"http://127.0.0.1:{self.start_driver()}"
        arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update",
                     f"--window-size={width},{height}", f"--user-data-dir={self.home}/profile", *more]
        if dark:
            arguments.append("--force-dark-mode")
        options = {"args": arguments, "perfLoggingPrefs": {"enableNetwork": True}, "prefs": {
            f"profile.managed_default_content_settings.{name}": 2 for name, on in (("javascript", scripts), ("cookies", cookies)) if not on}}
        made = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": {
            "timeouts": {"script": WAIT_S * 1000, "pageLoad": WAIT_S * 1000},
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}}})
        self.base += "/session/" + made["sessionId"]

    def start_driver(self):
        """Its port. It ends at once if the port that it chose is another's meanwhile; then it tries again."""
        for _ in range(5):
            self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE,
                                           stderr=subprocess.DEVNULL, text=True,
                                           env={**os.environ, "HOME": self.home})
            for line in self.driver.stdout:
                if "successfully on port" in line:
                    return int(line.split("port")[-1].strip(" .\n"))
            self.driver.wait()
            self.driver.stdout.close()
        raise AssertionError("chromedriver did not start: " + str(self.driver.returncode))

    def fresh(self):
        """Another tab instead of all there are, without cookies, and as nobody told it to be otherwise."""
        old = self.ask("GET", "/window/handles")
        new = self.ask("POST", "/window/new", {"type": "tab"})["handle"]
        for handle in old:
            self.ask("POST", "/window", {"handle": handle})
            self.ask("DELETE", "/window")
        self.ask("POST", "/window", {"handle": new})
        self.cdp("Network.clearBrowserCookies")
        self.console()
        self.requests()

    def close(self):
        try:
            self.ask("DELETE", "")
        except OSError:
            pass
        self.driver.terminate()
        self.driver.wait()
        self.driver.stdout.close()
        shutil.rmtree(self.home, ignore_errors=True)

    def violations(self, axe, *rules):
        """What axe finds on the page, or what these rules alone find: (rule, impact, element) each."""
        if not self.run("return !!window.axe"):
            self.run(axe)
        options = {"runOnly": {"type": "rule", "values": list(rules)}} if rules else {}
        return self.ask("POST", "/execute/async", {"args": [options], "script":
            "const [options, done] = arguments; axe.run(document, options).then((r) => done(r.violations.map("
            "(v) => [v.id, v.impact, v.nodes[0].html.slice(0, 150)])))"})

    def ask(self, method, path, body=None):
        request = urllib.request.Request(
            self.base + path, method=method,
            data=json.dumps(body).encode() if method == "POST" else None,
            headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as e:
            raise OSError(json.load(e)["value"]["message"][:500]) from e

    def open(self, url):
        self.ask("POST", "/url", {"url": url})

    def run(self, script, *args):
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(args)})

    def wait(self, script, *args):
        """Until the script gives something true, which is returned."""
        end = time.monotonic() + WAIT_S
        while True:
            got = self.run(script, *args)
            if got:
                return got
            if time.monotonic() > end:
                raise OSError("never true: " + script)
            time.sleep(0.02)

    def press(self, *keys):
        """Keys as a person presses them, one after another."""
        named = {"Enter": "\ue007", "Esc": "\ue00c", "Tab": "\ue004"}
        self.ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": [
            {"type": kind, "value": named.get(key, key)} for key in keys for kind in ("keyDown", "keyUp")]}]})

    def console(self):
        return [e["message"] for e in self.ask("POST", "/se/log", {"type": "browser"})]

    def requests(self):
        """URLs of all requests since the last question."""
        found = []
        for entry in self.ask("POST", "/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return found

    def cdp(self, command, **params):
        return self.ask("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def emulate(self, width=1280, dark=False, media="", still=False):
        """How wide the page is, and what it is told of the person's wishes."""
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1,
                 mobile=width < 500)
        self.cdp("Emulation.setEmulatedMedia", media=media, features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"}])

    def shot_whole(self, path):
        """The page in its whole length, up to 6,000 pixels."""
        import base64
        high = self.run("return Math.min(document.documentElement.scrollHeight, 6000)")
        wide = self.run("return document.documentElement.clientWidth")
        taken = self.cdp("Page.captureScreenshot", captureBeyondViewport=True,
                         clip={"x": 0, "y": 0, "width": wide, "height": high, "scale": 1})
        Path(path).write_bytes(base64.b64decode(taken["data"]))

    def shot(self, path):
        import base64
        Path(path).write_bytes(base64.b64decode(self.ask("GET", "/screenshot")))
