"""Whether the instance that serves after a fault is the one that served before it. Pure.

The target's own word comes first: response id → task → instance (`InstanceServed` records). Otherwise the lists of
instances are compared, leaving out those with a worker on a node whose main process was killed: they may be listed for
a while yet, but cannot serve. What cannot be told is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Continuity: TypeAlias = Literal["same", "new", "unknown"]


@dataclass(frozen=True, slots=True)
class Serving:
    continuity: Continuity
    before: str | None
    after: str | None


def compare(
    *,
    listed_before: frozenset[str] | None,
    listed_after: frozenset[str] | None,
    dead: frozenset[str] = frozenset(),
    served_before: str | None = None,
    served_after: str | None = None,
) -> Serving:
    """`listed_*` are the instances of the model in the views (None: no view); `served_*` by response id, if known."""
    alive = None if listed_after is None else listed_after - dead
    before = served_before or _only(listed_before)
    after = served_after or _only(alive)
    if before is not None and after is not None:
        return Serving("same" if before == after else "new", before, after)
    if after is not None and listed_before is not None:
        return Serving("same" if after in listed_before else "new", before, after)
    if listed_before is not None and alive:
        if not alive & listed_before:
            return Serving("new", before, after)
        if alive <= listed_before:
            return Serving("same", before, after)
    return Serving("unknown", before, after)


def _only(names: frozenset[str] | None) -> str | None:
    return next(iter(names)) if names is not None and len(names) == 1 else None
