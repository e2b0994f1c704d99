"""A console on which no text is markup or controls the terminal, whoever wrote it. Styles are the rig's own alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import IO, Any, Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from rig.visible import visible

PIPE_WIDTH: Final = 200


class PlainConsole(Console):
    """Text is made visible where rich cuts it into segments; what rich adds by itself (styles, cursor) comes later."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def console_on(*, stderr: bool = False) -> PlainConsole:
    """Wide where there is no terminal whose width could be asked for, so that tables need not be folded.

    Where the stream makes visible whatever is printed on it, it has a way for those who have done so (`styled`).
    """
    file: IO[str] | None = getattr(sys.stderr if stderr else sys.stdout, "styled", None)
    settings: dict[str, Any] = {"stderr": stderr, "file": file, "markup": False, "emoji": False, "highlight": False}
    found = PlainConsole(**settings)
    if not found.is_terminal and "COLUMNS" not in os.environ:
        found = PlainConsole(**settings, width=PIPE_WIDTH)
    return found
