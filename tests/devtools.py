"""A small client of Chromium's DevTools protocol: NUL-separated JSON on descriptors 3 and 4."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TIMEOUT = 30.0  # seconds for one answer, on a busy machine
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium() -> str | None:
    asked = os.environ.get("DCDC_CHROMIUM")
    return asked or next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One browser process; leave it by `close`."""

    def __init__(self, program: str, profile: Path) -> None:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        # The child finds its two ends at 3 and 4; copies out of the way first, they may be crossed.
        def ends() -> None:
            source, target = os.dup(to_browser), os.dup(from_browser)
            os.dup2(source, 3)
            os.dup2(target, 4)

        command = [
            *(program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"),
            *("--disable-dev-shm-usage", "--disable-extensions", "--hide-scrollbars"),
            *("--disable-background-networking", "--remote-debugging-pipe"),
            f"--user-data-dir={profile}",
        ]
        self._process = subprocess.Popen(
            command,
            pass_fds=(3, 4),
            preexec_fn=ends,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._last = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        left = memoryview(json.dumps(message).encode() + b"\0")
        while left:
            left = left[os.write(self._write, left) :]
        wanted = self._last
        self.pump(lambda: wanted in self._answers)
        answer = self._answers.pop(wanted)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def pump(self, done: Callable[[], object], timeout: float = TIMEOUT) -> None:
        """Reads messages until `done` holds."""
        end = time.monotonic() + timeout
        while not done():
            ready, _, _ = select.select([self._read], [], [], max(0.0, end - time.monotonic()))
            piece = os.read(self._read, 1 << 20) if ready else b""
            if not piece:
                raise TimeoutError("the browser does not answer")
            *messages, self._buffer = (self._buffer + piece).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self._answers[message["id"]] = message
                else:
                    self.events.append(message)

    def close(self) -> None:
        try:
            self.call("Browser.close")
            self._process.wait(TIMEOUT)
        except (RuntimeError, TimeoutError, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)


class Tab:
    """A page in a window of its own."""

    def __init__(
        self, browser: Browser, *, width: int = 1200, height: int = 900, dark: bool = False
    ) -> None:
        self._browser = browser
        self._target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=self._target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def events(self, method: str) -> list[dict[str, Any]]:
        return [
            event["params"]
            for event in self._browser.events
            if event["method"] == method and event.get("sessionId") == self._session
        ]

    def resize(self, width: int, height: int, *, mobile: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=mobile,
        )

    def open(self, file: Path) -> "Tab":
        return self.visit(file.as_uri())

    def visit(self, url: str) -> "Tab":
        self.call("Page.navigate", url=url)
        self._browser.pump(lambda: self.events("Page.loadEventFired"))
        self.wait("[...document.images].every((image) => image.complete)")
        return self

    def run(self, expression: str) -> Any:
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        end = time.monotonic() + TIMEOUT
        while not self.run(condition):
            if time.monotonic() > end:
                raise TimeoutError(condition)
            time.sleep(0.02)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.call("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, **more)

    def click(self, x: float, y: float) -> None:
        self.mouse("Moved", x, y)
        for kind in ("Pressed", "Released"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def click_on(self, selector: str) -> None:
        """With the mouse, where the element lies."""
        x, y = self.run(
            f"""(() => {{
              const node = document.querySelector({json.dumps(selector)});
              node.scrollIntoView({{ block: "center" }});
              const box = node.getBoundingClientRect();
              return [box.x + box.width / 2, box.y + box.height / 2];
            }})()"""
        )
        self.click(x, y)

    def type(self, selector: str, text: str) -> None:
        """As typed or pasted, in place of what was there."""
        self.click_on(selector)
        self.run("document.activeElement.select()")
        self.call("Input.insertText", text=text)

    def press(self, key: str, *, modifiers: int = 0) -> None:
        """`modifiers`: 2 for Ctrl, 8 for Shift."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, modifiers=modifiers)

    def trace(self, act: Callable[[], object]) -> list[dict[str, Any]]:
        """Tasks of this page's main thread while `act` runs: `dur` by the clock, `tdur` by the
        processor, in microseconds."""
        config = {"includedCategories": ["toplevel", "blink.user_timing"]}
        self._browser.call("Tracing.start", traceConfig=config)
        self.run("performance.mark('traced')")  # where: Chromium has pages of its own
        act()
        seen = len(self._browser.events)
        self._browser.call("Tracing.end")
        events = self._browser.events
        self._browser.pump(
            lambda: any(each["method"] == "Tracing.tracingComplete" for each in events[seen:]), 300
        )
        found = [
            each
            for event in events
            if event["method"] == "Tracing.dataCollected"
            for each in event["params"]["value"]
        ]
        events[:] = [each for each in events if not each["method"].startswith("Tracing.")]
        threads = {(each["pid"], each["tid"]) for each in found if each["name"] == "traced"}
        return [
            each
            for each in found
            if "RunTask" in each["name"] and (each["pid"], each["tid"]) in threads
        ]

    def screenshot(self, file: Path, *, whole: bool = False) -> None:
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(shot["data"]))

    @property
    def complaints(self) -> list[Any]:
        """Errors on the console, exceptions, and what the page's policy refused."""
        return [
            *self.events("Runtime.exceptionThrown"),
            *(
                event
                for event in self.events("Log.entryAdded")
                if event["entry"]["level"] == "error"
            ),
            *(
                event
                for event in self.events("Runtime.consoleAPICalled")
                if event["type"] in ("error", "assert")
            ),
        ]

    @property
    def requests(self) -> list[str]:
        """What was asked for by address, and not refused by the page's own policy."""
        refused = {
            event["requestId"]
            for event in self.events("Network.loadingFailed")
            if event.get("blockedReason") == "csp"
        }
        return [
            event["request"]["url"]
            for event in self.events("Network.requestWillBeSent")
            if event["requestId"] not in refused
            and not event["request"]["url"].startswith("data:")  # inside the page
        ]

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium found: install it, or name one by DCDC_CHROMIUM")
    found = Browser(program, tmp_path_factory.mktemp("profile"))
    yield found
    found.close()
