"""Headless browser driven through two pipes with Chrome's DevTools protocol, without network access or other
packages.
"""
import fcntl
import json
import os
import re
import select
import shutil
import subprocess
import time
from pathlib import Path

from common import HANGS

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage --no-first-run
           --disable-sync --disable-background-networking --disable-component-update --disable-extensions
           --window-size=1100,900 --remote-debugging-pipe""".split()


def find_browser() -> str:
    return next((p for p in map(shutil.which, NAMES) if p), "")


class Browser:
    """One page in a browser: `with Browser(folder) as b:`. `folder` is an empty folder for the browser's own
    files.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.number = 0
        self.faults = []
        self.asked = []
        self.waiting = b""

    def __enter__(self):
        theirs_in, self.out = os.pipe()
        self.into, theirs_out = os.pipe()
        # move them away from 3 and 4
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs_in, theirs_out)]
        rules = "--host-resolver-rules=MAP * ~NOTFOUND"
        self.process = subprocess.Popen(                        # the browser reads from 3 and writes to 4
            [find_browser(), *FLAGS, rules, f"--user-data-dir={self.folder}", "about:blank"], pass_fds=(3, 4),
            preexec_fn=lambda: [os.dup2(fd, n) for n, fd in enumerate(ends, 3)], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        for fd in (theirs_in, theirs_out, *ends):
            os.close(fd)
        self.session = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self.send(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        os.close(self.out)                                      # the browser exits when its pipe is closed
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
            self.process.wait()
        os.close(self.into)

    # ---- the protocol
    def send(self, method: str, **parameters):
        """Run a command and return its result; raise RuntimeError if the browser refuses."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            got = self.next()
            if got.get("id") == self.number:
                if "error" in got:
                    raise RuntimeError(f"{method}: {got['error']}")
                return got["result"]

    def next(self):
        """Return the next message, and record events that report errors or network requests."""
        end = time.monotonic() + HANGS
        while b"\0" not in self.waiting:
            if not select.select([self.into], [], [], max(0, end - time.monotonic()))[0]:
                raise RuntimeError("the browser does not answer")
            piece = os.read(self.into, 1 << 16)
            if not piece:
                raise RuntimeError("the browser has gone")
            self.waiting += piece
        first, _, self.waiting = self.waiting.partition(b"\0")
        got = json.loads(first)
        if got.get("method") == "Runtime.exceptionThrown":
            self.faults.append(got["params"]["exceptionDetails"])
        elif got.get("method") == "Network.requestWillBeSent":
            self.asked.append(got["params"]["request"]["url"])
        return got

    # ---- a page
    def open(self, page: Path, asking: str = "") -> None:
        self.send("Page.navigate", url=page.as_uri() + asking)
        end = time.monotonic() + HANGS
        while not self.js("document.readyState === 'complete' && location.href !== 'about:blank'"):
            assert time.monotonic() < end, "the page does not load"
            time.sleep(0.02)

    def js(self, expression: str):
        """Return the value of a JavaScript expression."""
        got = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in got, got
        return got["result"].get("value")

    def text(self, selector: str) -> str:
        return self.js(f"document.querySelector({json.dumps(selector)}).textContent")

    def drag(self, selector: str, dx: float, dy: float) -> None:
        """Drag with the mouse from the middle of an element, in three moves."""
        self.js(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")
        x, y = self.js(f"(r => [r.x + r.width / 2, r.y + r.height / 2])"
                       f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())")

        def mouse(kind, part, **more):
            return self.send("Input.dispatchMouseEvent", type=kind, x=x + part * dx,
                             y=y + part * dy, button="left", **more)

        mouse("mousePressed", 0, clickCount=1)
        for part in (0.3, 0.7, 1):
            mouse("mouseMoved", part, buttons=1)
        mouse("mouseReleased", 1, clickCount=1)

    def key(self, name: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=name)

    def choose(self, selector: str, value: str) -> None:
        """Select an option of a menu, as a user would."""
        self.js(f"(m => {{ m.value = {json.dumps(value)};"
                "       m.dispatchEvent(new Event('change', {bubbles: true})); })"
                f"(document.querySelector({json.dumps(selector)}))")


def read_integers(text: str) -> list[int]:
    """Return the integers in a text, which may have commas between thousands."""
    return [int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*", text)]
