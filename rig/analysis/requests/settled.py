"""Requests that ended and whose counting no further record can change."""

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
    """How one request that ended was counted. `exposed`: to an effective fault. `fault`: the fault to which its failure
    is attributed. `unwedging`: the fault after which the rig's own restarts made it fail."""

    outcome: Outcome
    own: Own
    void: bool
    exposed: bool
    fault: int | None
    unwedging: int | None


@dataclass(frozen=True, slots=True)
class Settled:
    """Requests of one source in the order of their ends, and how each was counted, as columns. `own` are places in
    `OWNS`; `met` are masks of the requests that were exposed to each effective fault. `windows`, of the load only, are
    the numbers of faults with the places of the requests in their windows (see `rig.analysis.requests.during`)."""

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
    """Receives every request once: when it is settled, or at the end of the journal (`end_t`) if it never ended."""

    def settled(self, batch: Settled) -> None: ...

    def unfinished(self, start: RequestStarted, end_t: float) -> None: ...
