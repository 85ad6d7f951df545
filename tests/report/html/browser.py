"""A headless Chromium, driven through a pipe by its own protocol: no package, no port, no driver.

https://chromedevtools.github.io/devtools-protocol/: messages are JSON, each ended by a zero byte,
read from descriptor 3 and written to 4 of a browser with ``--remote-debugging-pipe``.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

#: names under which distributions have it
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")

#: seconds for one answer
PATIENCE = 60.0


def find_browser() -> str | None:
    """Return the program, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


#: puts two descriptors where the browser looks for them, and becomes the browser
_AS_3_AND_4 = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3]]
for end, place in zip(ends, (3, 4)):
    os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One browser with one page; what it logs, throws and requests is kept."""

    def __init__(self, program: str, folder: Path, *arguments: str) -> None:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        command = [
            program,
            "--headless=new",
            "--no-sandbox",  # of root, in a container; the page is our own file
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-extensions",
            "--remote-debugging-pipe",
            f"--user-data-dir={folder}",
            *arguments,
            "about:blank",
        ]
        ends = (str(to_browser), str(from_browser))
        self._process = subprocess.Popen(
            [sys.executable, "-c", _AS_3_AND_4, *ends, *command],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        try:
            self._attach()
        except RuntimeError:
            self.close()
            raise

    def _attach(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.bringToFront")

    def close(self) -> None:
        """End it and wait for it."""
        self._session = None
        try:
            self.call("Browser.close")
            self._process.wait(10)
        except (OSError, subprocess.TimeoutExpired, RuntimeError):
            self._process.kill()
            self._process.wait(10)
        os.close(self._write)
        os.close(self._read)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call one method of the protocol and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._message(deadline)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])
            self.events.append(answer)

    def _message(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise RuntimeError("the browser does not answer")
            data = os.read(self._read, 1 << 20)
            if not data:
                raise RuntimeError("the browser ended")
            self._buffer += data
        text, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(text))

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page; what it throws is an error here."""
        answer = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:800])
        return answer["result"].get("value")

    def open(self, page: Path, *, width: int = 1280, height: int = 900) -> None:
        """Load a file and wait until it is there."""
        self.size(width, height)
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri())
        self.until("document.readyState === 'complete'")

    def size(self, width: int, height: int) -> None:
        """Make the window as large as this, in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def until(self, script: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + PATIENCE
        while not self.run(f"Boolean({script})"):
            if time.monotonic() > deadline:
                raise RuntimeError(f"never true: {script}")
            time.sleep(0.03)

    def frames(self) -> None:
        """Wait until what was asked for is drawn."""
        self.run("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Write what is seen, or the whole page, as PNG."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def pdf(self) -> bytes:
        """Print the page."""
        answer = self.call("Page.printToPDF", printBackground=False, preferCSSPageSize=True)
        return base64.b64decode(answer["data"])

    def complaints(self) -> list[str]:
        """Return what the console and the browser's log say, and what was thrown."""
        self.run("0")
        told = {"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"}
        return [json.dumps(each)[:600] for each in self.events if each.get("method") in told]

    def requests(self) -> list[str]:
        """Return every address that was asked for."""
        self.run("0")
        return [
            str(each["params"]["request"]["url"])
            for each in self.events
            if each.get("method") == "Network.requestWillBeSent"
        ]
