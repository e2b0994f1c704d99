"""The layers of tests (tests/README.md): by folder, where a file does not say its own with `pytestmark`."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

TESTS: Final = Path(__file__).parent
LAYERS: Final = ("pure", "processes", "root")
PURE: Final = ("analysis", "compare", "config", "journal", "report", "lab/exo", "targets")
ROOT: Final = ("hosts", "mac", "rights", "sweep")
"""Everything else starts processes or opens sockets, as any user may."""

PROCESSES: Final = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system"}
NETWORK: Final = {"socket.connect", "socket.bind"}
FORBIDDEN: Final = frozenset(PROCESSES | NETWORK)


def layer_of(path: Path) -> str:
    """The layer of a test file."""
    folder = path.relative_to(TESTS).as_posix()
    for layer, folders in (("pure", PURE), ("root", ROOT)):
        if folder.startswith(tuple(f"{name}/" for name in folders)):
            return layer
    return "processes"


class Pure:
    """While a pure test runs, starting a process or reaching for the network is an error in it."""

    running: ClassVar[str] = ""  # the test
    _hooked: ClassVar[bool] = False

    @classmethod
    @contextmanager
    def guard(cls, test: str, *, on: bool) -> Generator[None]:
        if on and not cls._hooked:
            sys.addaudithook(cls._audit)
            cls._hooked = True
        cls.running = test if on else ""
        try:
            yield
        finally:
            cls.running = ""

    @classmethod
    def _audit(cls, event: str, arguments: tuple[Any, ...]) -> None:
        if cls.running and event in FORBIDDEN:
            raise AssertionError(f"{cls.running} is of the layer `pure`, and yet: {event} {arguments!r:.200}")
