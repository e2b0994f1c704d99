"""A chaos and soak test rig for LLM serving clusters."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rig.report.frames import RunFrames, open_run

__version__ = "0.1.0"
__all__ = ["RunFrames", "__version__", "open_run"]


def __getattr__(name: str) -> object:
    """`rig.open_run` brings pandas, which no command needs: it is imported when it is asked for."""
    if name in ("open_run", "RunFrames"):
        return getattr(import_module("rig.report.frames"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
