"""A real headless Chromium, driven over its DevTools protocol: clicks, drags, media and screenshots as users have."""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import shutil
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, cast

import aiohttp

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
FLAGS: Final = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0",
    "--window-size=1400,1000",
)  # fmt: skip
DEADLINE_S: Final = 60.0


def chromium() -> str:
    """Where it is. Fails the test where there is none: reports are only proved in a browser."""
    found = next((path for name in NAMES if (path := shutil.which(name)) is not None), None)
    assert found is not None, f"none of {', '.join(NAMES)} is installed; apt-get install chromium"
    return found


class Page:
    """One tab. Every call has a deadline."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.problems: list[str] = []  # exceptions and refused or failed loads since the page was opened
        self.requested: list[str] = []  # every address that was asked for

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        async with asyncio.timeout(DEADLINE_S):
            while True:
                message = cast("dict[str, Any]", await self._socket.receive_json())
                self._note(message)
                if message.get("id") == number:
                    assert "error" not in message, f"{method}: {message['error']}"
                    return cast("dict[str, Any]", message["result"])

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                self.problems.append(str(params["exceptionDetails"]))
            case "Log.entryAdded":
                self.problems.append(str(params["entry"]["text"]))
            case "Network.requestWillBeSent":
                self.requested.append(str(params["request"]["url"]))
            case _:
                pass

    async def open(self, address: str) -> None:
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")
        await self.call("Page.navigate", url=address)
        await self.until("document.readyState === 'complete' && !!window.rigReport")

    async def until(self, condition: str) -> None:
        """Wait until an expression holds."""
        async with asyncio.timeout(DEADLINE_S):
            while not await self.value(condition):  # noqa: ASYNC110 (a page)
                await asyncio.sleep(0.05)

    async def value(self, expression: str) -> Any:
        """What an expression of JavaScript gives, as plain values."""
        result = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, f"{expression}: {result['exceptionDetails']}"
        return result["result"].get("value")

    async def mouse(self, kind: str, x: float, y: float, *, clicks: int = 0) -> None:
        """`kind` is mousePressed, mouseReleased or mouseMoved."""
        button = "none" if kind == "mouseMoved" and not clicks else "left"
        await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=clicks, buttons=1)

    async def theme(self, name: str, *, media: str = "") -> None:
        features = [{"name": "prefers-color-scheme", "value": name}]
        await self.call("Emulation.setEmulatedMedia", media=media, features=features)

    async def picture(self, path: Path) -> bytes:
        """Of the whole page, also kept in a file."""
        result = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        content = base64.b64decode(result["data"])
        await asyncio.to_thread(path.write_bytes, content)
        return content


@asynccontextmanager
async def browser(profile: Path) -> AsyncGenerator[Page]:
    """A fresh browser with a profile of its own; ended, with all its processes, whatever happens."""
    process = await asyncio.create_subprocess_exec(
        chromium(),
        *FLAGS,
        f"--user-data-dir={profile}",
        "about:blank",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        port = await _port(profile / "DevToolsActivePort")
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/json/list") as answer:
            tabs = cast("list[dict[str, Any]]", await answer.json(content_type=None))
            address = next(str(tab["webSocketDebuggerUrl"]) for tab in tabs if tab["type"] == "page")
            async with session.ws_connect(address, max_msg_size=0) as socket:
                yield Page(socket)
    finally:
        _end(process.pid)
        await process.wait()


def _end(pid: int) -> None:
    """Its whole session, which is its own."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


async def _port(path: Path) -> int:
    """From the file that the browser writes once it listens."""
    async with asyncio.timeout(DEADLINE_S):
        while (port := await asyncio.to_thread(_written_port, path)) is None:  # noqa: ASYNC110 (another process writes it)
            await asyncio.sleep(0.05)
    return port


def _written_port(path: Path) -> int | None:
    lines = path.read_text().splitlines() if path.is_file() else []
    return int(lines[0]) if len(lines) > 1 else None
