"""Headless Chromium driven by the DevTools protocol over a pipe: no port, no other package.

A message is one JSON object and a zero byte; Chromium reads them from descriptor 3 and writes to 4
(https://chromedevtools.github.io/devtools-protocol).
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1400,900",
    "--remote-debugging-pipe",
)


def find_chromium():
    """Path of Chromium or Chrome, None where there is none."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for path in map(shutil.which, names) if path), None)


class Page:
    """One page; ``requests`` are the URLs it asked for, ``errors`` what its console says."""

    def __init__(self, program: str, profile: Path, timeout: float = 60) -> None:
        self.requests: list[str] = []
        self.errors: list[str] = []
        self._timeout, self._sent, self._buffer, self._session = timeout, 0, b"", None
        self._loaded = False
        chromium_reads, self._write = os.pipe()
        self._read, chromium_writes = os.pipe()
        # Chromium wants descriptors 3 and 4, which this process may hold already.
        command = f'exec "$0" "$@" 3<&{chromium_reads} 4>&{chromium_writes}'
        self._process = subprocess.Popen(
            ["bash", "-c", command, program, *OPTIONS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(chromium_reads, chromium_writes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(chromium_reads)
        os.close(chromium_writes)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> "Page":
        return self

    def __exit__(self, *exception: object) -> None:
        self._session = None
        self.call("Browser.close")
        self._process.wait(self._timeout)
        os.close(self._read)
        os.close(self._write)

    def call(self, method: str, **params: object) -> dict:
        """Send one command and wait for its result; events on the way are kept."""
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._sent:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def open(self, url: str) -> None:
        """Go to ``url`` and wait until it has loaded."""
        self._loaded = False
        self.call("Page.navigate", url=url)
        while not self._loaded:
            self._receive()

    def evaluate(self, expression: str) -> object:
        """Value of a JavaScript expression in the page, promises awaited."""
        result = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Wait until a JavaScript expression is true."""
        end = time.monotonic() + self._timeout
        while not self.evaluate(f"Boolean({expression})"):
            assert time.monotonic() < end, f"never true: {expression}"
            time.sleep(0.02)

    def screenshot(self, path: Path) -> None:
        """Write what the window shows as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def _receive(self) -> dict:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], self._timeout)
            assert ready, f"Chromium said nothing for {self._timeout} s"
            piece = os.read(self._read, 1 << 20)
            assert piece, f"Chromium ended with status {self._process.poll()}"
            self._buffer += piece
        text, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method: str | None, params: dict) -> None:
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.errors.append(str([a.get("value", a.get("description")) for a in params["args"]]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
