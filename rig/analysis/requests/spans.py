"""Outages by model, found by the moment at which they went on. One for each recovery or unwedging."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from rig.analysis.recovery.decision import Recovery
from rig.analysis.recovery.faults import Window
from rig.analysis.recovery.rescue import Rescue

_T = TypeVar("_T")


class Span(NamedTuple):
    """An outage of a model, and the fault that caused it or after which the rig stepped in."""

    model: str
    fault: int
    window: Window


class Spans(Generic[_T]):
    """`span` gives the outage of an item; None if it had none."""

    def __init__(self, span: Callable[[_T], Span | None]) -> None:
        self._span = span
        self._taken = 0
        self._by_model: dict[str, list[Span]] = {}
        self._begins: dict[str, list[float]] = {}
        self._longest_s = 0.0

    def take(self, items: Sequence[_T]) -> None:
        """All items that were decided so far; the list may only have grown."""
        for item in items[self._taken :]:
            if (span := self._span(item)) is not None:
                insort(self._by_model.setdefault(span.model, []), span, key=_begin)
                insort(self._begins.setdefault(span.model, []), _begin(span))
                self._longest_s = max(self._longest_s, span.window.to_t - span.window.from_t)
        self._taken = len(items)

    def outages(self, from_t: float, to_t: float) -> Iterator[Span]:
        """Outages that began by `to_t` and may not have ended before `from_t`."""
        for model, begins in self._begins.items():
            first, last = bisect_left(begins, from_t - self._longest_s), bisect_right(begins, to_t)
            yield from self._by_model[model][first:last]


def _begin(span: Span) -> float:
    return span.window.from_t


def of_recovery(recovery: Recovery) -> Span | None:
    if not recovery.affected:
        return None
    return Span(recovery.model, recovery.fault, Window(recovery.strike_t, outage_end_t(recovery)))


def of_rescue(found: Rescue) -> Span:
    return Span(found.model, found.fault, Window(found.from_t, found.restored_t))


def outage_end_t(recovery: Recovery) -> float:
    return recovery.strike_t + recovery.outage_s
