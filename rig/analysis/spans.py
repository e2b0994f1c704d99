"""Outages by model, for asking which were going on at a moment. One entry a recovery."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator

from rig.analysis.decision import Recovery
from rig.analysis.faults import Window


class Spans:
    def __init__(self) -> None:
        self._taken = 0
        self._by_model: dict[str, list[Recovery]] = {}
        self._strikes: dict[str, list[float]] = {}
        self._longest_s = 0.0

    def take(self, recoveries: list[Recovery]) -> None:
        for recovery in recoveries[self._taken :]:
            if recovery.affected:
                insort(self._by_model.setdefault(recovery.model, []), recovery, key=lambda span: span.strike_t)
                insort(self._strikes.setdefault(recovery.model, []), recovery.strike_t)
                self._longest_s = max(self._longest_s, outage_end_t(recovery) - recovery.strike_t)
        self._taken = len(recoveries)

    def outages(self, from_t: float, to_t: float) -> Iterator[tuple[str, int, Window]]:
        """Model, fault, and when, of the outages that began by `to_t` and may not have ended at `from_t`."""
        for model, strikes in self._strikes.items():
            first, last = bisect_left(strikes, from_t - self._longest_s), bisect_right(strikes, to_t)
            for span in self._by_model[model][first:last]:
                yield model, span.fault, Window(span.strike_t, outage_end_t(span))


def outage_end_t(recovery: Recovery) -> float:
    return recovery.strike_t + recovery.outage_s
