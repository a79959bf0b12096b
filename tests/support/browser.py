"""Chromium without a window, driven over its DevTools protocol."""

from __future__ import annotations

import importlib.util
import itertools
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(
    (
        path
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (path := shutil.which(name))
    ),
    None,
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
#: A test of a page in a browser.
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
#: Seconds to wait for whatever a browser does.
_PATIENCE = 60.0
#: Returns the middle of the next thing to click; null when there is none. Things that differ in
#: their numbers alone are one: a page may make new ones for every plan that is shown.
_NEXT_TO_CLICK = """(() => {
  const kinds = "a, button, summary, input, select, [role=button], [tabindex], .legendtoggle";
  const done = window.clickedByTest = window.clickedByTest || new Set();
  for (const one of document.querySelectorAll(kinds)) {
    const about = [one.tagName, one.id, one.type, one.getAttribute("aria-label"), one.title];
    const key = about.concat(one.id ? "" : one.textContent.slice(0, 80)).join("|")
      .replace(/[\\d.,]+/g, "0");
    if (done.has(key) || one.closest("[hidden]")) { continue; }
    one.scrollIntoView({block: "center", behavior: "instant"});
    const box = one.getBoundingClientRect();
    if (!box.width || !box.height) { continue; }
    done.add(key);
    return [box.x + box.width / 2, box.y + box.height / 2];
  }
  return null;
})()"""


class Page:
    """One page that is open in the browser.

    Attributes
    ----------
    errors : list of str
        Exceptions of scripts, and errors on the console.
    requests : list of str
        Addresses that the page asked a network for, and those of new windows.
    """

    def __init__(self, address: str):
        import websocket

        self._socket = websocket.create_connection(
            address, timeout=_PATIENCE, suppress_origin=True, max_size=None
        )
        self._numbers = itertools.count(1)
        self.errors: list[str] = []
        self.requests: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> Any:
        """Send a command and return its result; events that come before it are noted."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == number:
                assert "error" not in message, message["error"]
                return message["result"]
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        kind, facts = message.get("method"), message.get("params", {})
        if kind == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(facts["exceptionDetails"])[:500])
        elif kind == "Runtime.consoleAPICalled" and facts["type"] in ("error", "assert"):
            self.errors.append(json.dumps(facts["args"])[:500])
        elif kind == "Log.entryAdded" and facts["entry"]["level"] == "error":
            self.errors.append(facts["entry"]["text"])
        elif kind == "Network.requestWillBeSent":
            address = facts["request"]["url"]
            if not address.startswith(("file:", "data:", "blob:")):
                self.requests.append(address)
        elif kind == "Page.windowOpen":
            self.requests.append(facts["url"])

    def open(self, file: Path, width: int = 1200, height: int = 900) -> None:
        """Open a file in a window of this size, in pixels."""
        self.visit(file.as_uri(), width, height)
        self.wait("location.protocol === 'file:'")

    def visit(self, address: str, width: int = 1200, height: int = 900) -> None:
        """Open an address in a window of this size, in pixels."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.send("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.protocol !== 'about:'")

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, script: str) -> None:
        """Return when an expression is true; a list or an object is none."""
        end = time.monotonic() + _PATIENCE
        while self.run(script) is not True:
            assert time.monotonic() < end, f"never true: {script}; errors: {self.errors}"
            time.sleep(0.05)

    def click(self, x: float, y: float) -> None:
        """Click at a place of the window, in pixels."""
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.press(x, y)
        self.release(x, y)

    def key(self, name: str) -> None:
        """Press a key by its name, such as ``ArrowLeft``."""
        code = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}.get(name, 0)
        code = code or {"End": 35, "Home": 36, "Escape": 27, "Enter": 13, "Tab": 9}[name]
        for kind in ("rawKeyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=name, windowsVirtualKeyCode=code)

    def click_everything(self, most: int = 300) -> int:
        """Click all that can be clicked, what earlier clicks brought as well; return how many."""
        for clicked in range(most):
            place = self.run(_NEXT_TO_CLICK)
            if place is None:
                return clicked
            self.click(*place)
        raise AssertionError(f"more than {most} things to click")

    def press(self, x: float, y: float) -> None:
        """Press the button of the mouse."""
        self._mouse("mousePressed", x, y)

    def move(self, x: float, y: float) -> None:
        """Move the mouse with its button pressed."""
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, button="left", buttons=1)

    def release(self, x: float, y: float) -> None:
        """Let the button of the mouse go."""
        self._mouse("mouseReleased", x, y)

    def _mouse(self, kind: str, x: float, y: float) -> None:
        self.send(
            "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1
        )

    def picture(self, file: Path) -> None:
        """Keep a picture of the whole page."""
        import base64

        shot = self.send("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        """Leave the page."""
        self._socket.close()


@contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """Start Chromium with a profile in `folder`, and end it; skip where it does not start."""
    if CHROMIUM is None or importlib.util.find_spec("websocket") is None:
        pytest.skip("chromium or the package websocket-client is not installed")
    profile = folder / "profile"
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "--remote-debugging-port=0"]
    command += ["--enable-unsafe-swiftshader", "about:blank"]
    with open(folder / "chromium.log", "w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        page = Page(_address(profile / "DevToolsActivePort", process))
        try:
            yield page
        finally:
            page.close()
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _address(file: Path, process: subprocess.Popen[bytes]) -> str:
    """Return the address of the one page, once the browser has written where it listens."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end and process.poll() is None:
        if file.exists() and (lines := file.read_text().splitlines()):
            with urllib.request.urlopen(f"http://127.0.0.1:{lines[0]}/json/list") as answer:
                pages = [entry for entry in json.load(answer) if entry["type"] == "page"]
            if pages:
                return str(pages[0]["webSocketDebuggerUrl"])
        time.sleep(0.05)
    pytest.skip(f"chromium did not start within {_PATIENCE:.0f} s here")
