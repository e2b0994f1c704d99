"""A list that keeps its first items only, for things of which a run may have any number."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


class Firsts(list[T]):
    """Drops what is appended once it holds `most` items."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def append(self, item: T, /) -> None:
        if len(self) < self._most:
            super().append(item)
