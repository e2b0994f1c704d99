"""A list that keeps the first so many, for what a run may have any number of."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


class Firsts(list[T]):
    """What is appended when it holds `most` is not kept."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def append(self, item: T, /) -> None:
        if len(self) < self._most:
            super().append(item)
