"""Requests that ended and of which nothing that is still written can change how they are counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from rig.analysis.intake.attempts import NOBODY, OUTCOMES, Attempts, Bools, Places, blamed
from rig.analysis.requests.tally import Own
from rig.journal.records import Outcome, RequestStarted

OWNS: Final[tuple[Own, ...]] = (None, "node", "rejoining")
NOT_OWN, OWN_NODE, OWN_REJOINING = range(len(OWNS))


@dataclass(frozen=True, slots=True)
class Judged:
    """How one request that ended was counted: `exposed` to an effective fault, `fault` is the one to which its failure
    is attributed, `unwedging` the one after which the rig's own restarts made it fail."""

    outcome: Outcome
    own: Own
    void: bool
    exposed: bool
    fault: int | None
    unwedging: int | None


@dataclass(frozen=True, slots=True)
class Settled:
    """A batch of one source in the order of the ends, and how each was counted, as columns. `own` are places in
    `OWNS`; `met` are the rows that were exposed to each effective fault. `windows` are those of faults that any of the
    load was in: the fault's number, and which rows (see `rig.analysis.requests.during`)."""

    attempts: Attempts
    own: NDArray[np.int8]
    void: Bools
    exposed: Bools
    met: dict[int, Bools]
    windows: Sequence[tuple[int, Places]] = ()

    def judged(self, at: int) -> Judged:
        attempts = self.attempts
        fault, unwedging = blamed(NOBODY if self.void[at] else int(attempts.fault[at]))
        return Judged(
            outcome=OUTCOMES[int(attempts.rows["outcome"][at])],
            own=OWNS[int(self.own[at])],
            void=bool(self.void[at]),
            exposed=bool(self.exposed[at]),
            fault=fault,
            unwedging=unwedging,
        )


class Listener(Protocol):
    """Told of every request once: when it is settled, or at the end of the journal (`end_t`) if it never ended."""

    def settled(self, batch: Settled) -> None: ...

    def unfinished(self, start: RequestStarted, end_t: float) -> None: ...
