#!/usr/bin/env python3
"""The screens of the window as axe-core sees them: one in three, or all with ./dev test --all."""
import sys

import browser
from screens import Screens
from support import expect, main, needs, sample, skip
from web_gate_test import WebBox
from web_pages_test import READY, enter


# How wide a page is, whether it is dark, and axe's rules; none means all. All of them see each width and each
# scheme once. The other two ways to put these together differ only in their colours, and in how far apart things are.
WAYS = ((1280, False, ()), (1280, True, ("color-contrast",)), (360, False, ("target-size",)), (360, True, ()))


def access(box: WebBox):
    """axe finds nothing, light and dark, wide and narrow; at 360 pixels no page scrolls sideways."""
    axe = browser.axe_script(box.dir)
    if axe is None:
        skip("no axe.min.js (SEGUE_AXE), and npm does not bring it")
    screens = Screens(box)
    with browser.Browser() as b:
        root = enter(b, box.code())
        for page in sample.draw("screens that axe sees", (*screens.pages().values(), "?sort=turns"), 3):
            b.open(root + page)
            b.wait(READY)
            for width, dark, rules in WAYS:
                b.emulate(width=width, dark=dark)
                found = b.violations(axe, *rules)
                expect(found == [], width, dark, page, found)
                wide = b.run("return document.documentElement.scrollWidth - arguments[0]", width)
                expect(wide <= 0, "the page itself scrolls sideways:", width, page, wide)
    box.end()


if __name__ == "__main__":
    needs(*browser.PROGRAMS)
    sys.exit(main([access]))
