"""A real browser for tests: Chromium, moved by its DevTools protocol over a pipe."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Self

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NEEDED = "needs Chromium (Debian: apt-get install chromium)"
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
_PATIENCE = 60.0
_CODES = {"Tab": 9, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


class Browser:
    """One page in a browser; what it fetches and what it complains about is noted.

    Attributes
    ----------
    fetched : addresses of everything that was loaded
    complaints : errors and messages of the page
    """

    def __init__(self, folder: Path) -> None:
        assert PROGRAM is not None, NEEDED
        self.fetched: list[str] = []
        self.complaints: list[str] = []
        read, self._to = os.pipe()
        self._from, write = os.pipe()
        # The browser reads commands from file 3 and answers on file 4.
        script = f'exec 3<&{read} 4>&{write}; exec "$@"'
        command = [PROGRAM, *OPTIONS, "--remote-debugging-pipe", f"--user-data-dir={folder / 'browser'}"]
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", *command, "about:blank"],
            pass_fds=(read, write),
            stderr=subprocess.DEVNULL,
        )
        for handle in (read, write):
            os.close(handle)
        self._number, self._rest, self._session = 0, b"", ""
        [target] = [t for t in self.send("Target.getTargets")["targetInfos"] if t["type"] == "page"][:1]
        attached = self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.terminate()
        self._process.wait(_PATIENCE)
        os.close(self._to)
        os.close(self._from)

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Give a command and wait for its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _read(self) -> dict[str, Any]:
        end = time.monotonic() + _PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._from], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            part = os.read(self._from, 1 << 16)
            assert part, "the browser has ended"
            self._rest += part
        text, self._rest = self._rest.split(b"\0", 1)
        message = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, event: str | None, about: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.fetched.append(about["request"]["url"])
        elif event in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(json.dumps(about))

    def open(self, page: Path | str, width: int = 1280, height: int = 900, scheme: str = "light") -> None:
        """Load a file, or an address, into a window of that size."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.send("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
        while self.look("document.readyState") != "complete":
            pass

    def look(self, expression: str) -> Any:
        """The value of an expression in the page."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def point_at(self, selector: str, place: int = 0) -> None:
        """Move the pointer onto an element."""
        element = f"document.querySelectorAll({json.dumps(selector)})[{place}]"
        self.look(f"{element}.scrollIntoView({{block: 'center'}})")
        # The page hears of its scrolling with the next frame.
        self.look("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
        box = self.look(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({element}.getBoundingClientRect())")
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])

    def press(self, key: str) -> None:
        """Press a key; those that the browser itself acts upon have codes."""
        code = {"code": key, "windowsVirtualKeyCode": _CODES[key]} if key in _CODES else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **code)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, **code)

    def picture(self, path: Path, whole: bool = True) -> None:
        """Save what is seen, or the whole page."""
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def keep(self, name: str, whole: bool = True) -> None:
        """Save a picture for people to look at in the folder that OPGROW_SCREENSHOTS names, if it does."""
        folder = os.environ.get("OPGROW_SCREENSHOTS")
        if folder is not None:
            self.picture(Path(folder) / name, whole)
