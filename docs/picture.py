#!/usr/bin/env python3
"""Takes the picture of the window that README shows: ./dev recording writes docs/window.webp.

The page is that of a real run of the demo, served by `segue web` and drawn by Chromium."""
import base64
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT + "/tests/system")
import browser  # noqa: E402

TASK = "The queue loses items when it is full. It must refuse what it cannot hold."
READY = "return document.readyState == 'complete' && !!document.querySelector('#main h2')"


def run_the_demo(segue, home):
    shutil.copytree(ROOT + "/workflows", home + "/workflows")
    env = {**os.environ, "HOME": home, "XDG_STATE_HOME": home, "XDG_CONFIG_HOME": home}
    subprocess.run([segue, "run", "workflows/demo.yaml", "--scenario", "workflows/demo/scenario.yaml", "--logs", "logs",
                    "--cwd", "workflows/demo/project", "--task", TASK], cwd=home, env=env, check=True, stdout=subprocess.DEVNULL)


def shoot(b, target):
    """The page down to its totals, which say nothing of a run without tokens."""
    high = b.run("return [...document.querySelectorAll('#main h2')].find(h => h.textContent == 'Totals').getBoundingClientRect().top - 12")
    shot = b.cdp("Page.captureScreenshot", format="webp", quality=80, captureBeyondViewport=True,
                 clip={"x": 0, "y": 0, "width": 1045, "height": high, "scale": 1})
    with open(target, "wb") as f:
        f.write(base64.b64decode(shot["data"]))


def take(segue, home, target):
    with subprocess.Popen([segue, "web", "--logs", "logs", "--no-open"], cwd=home, stdout=subprocess.PIPE, text=True) as web:
        try:
            with browser.Browser() as b:
                b.open(web.stdout.readline().strip())
                b.wait("const h = document.querySelector('#main h1'); return h && h.textContent == 'Sessions'")
                name = os.path.basename(next(f for f in os.listdir(home + "/logs") if f.endswith(".ndjson")))
                root = b.run("return location.href").split("?")[0]
                b.emulate(width=1060)
                b.open(f"{root}s/{name.removesuffix('.ndjson')}/")
                b.wait(READY)
                shoot(b, target)
        finally:
            web.terminate()


if __name__ == "__main__":
    if not browser.CAN:
        sys.exit("docs/picture.py: no chromium and chromedriver")
    with tempfile.TemporaryDirectory(prefix="demo-") as place:
        run_the_demo(os.path.abspath(sys.argv[1]), place)
        take(os.path.abspath(sys.argv[1]), place, os.path.abspath(sys.argv[2]))
    print(f"{sys.argv[2]}: written")
