"""Which reducers take in which kinds of records: most kinds matter to few, and most records are of few kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from rig.journal.records import AnyRecord

Feed: TypeAlias = Callable[[AnyRecord], None]
Routes: TypeAlias = Mapping[type, Sequence[Feed]]


def joined(routes: Iterable[Routes]) -> dict[type, list[Feed]]:
    """All of them, each kind in the order in which they are given."""
    found: dict[type, list[Feed]] = {}
    for one in routes:
        for kind, feeds in one.items():
            found.setdefault(kind, []).extend(feeds)
    return found
