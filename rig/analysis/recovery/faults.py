"""What the journal says of each fault, gathered from its `FaultChanged` records."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from rig.faults.plan.registry import names_where
from rig.journal.records import FaultChanged, FaultKind, FaultState

CRASHES: Final[frozenset[str]] = names_where(lambda kind: kind.ends_process)
"""Kinds after which the main process of a node is a new one."""
HEAL_IS_STRIKE: Final[frozenset[str]] = names_where(lambda kind: kind.heals_at_strike)
_LAST: Final = frozenset({"healed", "skipped", "ineffective", "unhealed", "invalid"})
"""States after which nothing more is expected of a fault (an invalid fault may still be healed later)."""


@dataclass(slots=True)
class Window:
    """[from_t, to_t]; `to_t` is infinite while no end is known."""

    from_t: float
    to_t: float = math.inf

    def meets(self, from_t: float, to_t: float) -> bool:
        return self.from_t <= to_t and from_t <= self.to_t


@dataclass(slots=True)
class Fault:
    """One fault, as far as the journal shows. Times are on the run's clock, `None` while unknown."""

    number: int
    kind: FaultKind
    aim: str
    opened_t: float  # of its first record: it cannot have struck before
    state: FaultState
    nodes: list[str] = field(default_factory=list[str])
    processes_hit: list[str] = field(default_factory=list[str])
    clients_cut: list[str] = field(default_factory=list[str])
    model: str | None = None
    hold_s: float = 0.0
    struck_t: float | None = None
    struck_error_s: float = 0.0
    healed_t: float | None = None
    healed_error_s: float = 0.0
    closed_t: float | None = None
    skipped: bool = False
    ineffective: bool = False
    invalid: bool = False
    unhealed: bool = False
    stopped: bool = False  # skipped because the run had come to its end
    reason: str = ""
    evidence: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])  # per state

    @property
    def effective(self) -> bool:
        """Struck, with evidence that was never taken back. Only such a fault counts in a table."""
        return self.struck_t is not None and not (self.ineffective or self.invalid)

    @property
    def heal_t(self) -> float | None:
        """When the target could be whole again. Nobody gives back a killed worker: its heal is its strike."""
        return self.struck_t if self.kind in HEAL_IS_STRIKE else self.healed_t

    @property
    def open(self) -> bool:
        return self.closed_t is None

    def apply(self, record: FaultChanged) -> None:
        """Take in a further state. Fields that are empty in the record keep their values."""
        self.state = record.state
        self.nodes = record.nodes or self.nodes
        self.processes_hit = record.processes_hit or self.processes_hit
        self.clients_cut = record.clients_cut or self.clients_cut
        self.model = record.model or self.model
        self.hold_s = record.hold_s or self.hold_s
        self.reason = record.reason or self.reason
        if record.evidence:
            self.evidence[record.state] = record.evidence
        match record.state:
            case "struck":
                self.struck_t, self.struck_error_s = record.at_t, record.at_error_s
            case "healed":
                self.healed_t, self.healed_error_s = record.at_t, record.at_error_s
            case "skipped":
                self.skipped, self.stopped = True, record.stopped
            case "ineffective":
                self.ineffective = True
            case "invalid":
                self.invalid = True
            case "unhealed":
                self.unhealed = True
            case "planned" | "leased" | "holding":
                pass
        if record.state in _LAST and self.closed_t is None:
            self.closed_t = record.t
        if record.state == "healed":
            self.unhealed = False


class FaultLog:
    """All faults by number, and those that struck, in the order of their strikes."""

    def __init__(self) -> None:
        self.by_number: dict[int, Fault] = {}
        self.struck: list[Fault] = []
        self.strikes: list[float] = []
        self._open: dict[int, Fault] = {}
        self._endless: set[int] = set()
        self._placed: set[int] = set()
        self._longest_s = 0.0
        self._widest_error_s = 0.0

    def feed(self, record: FaultChanged) -> Fault:
        fault = self.by_number.get(record.fault)
        if fault is None:
            fault = self.by_number[record.fault] = Fault(
                number=record.fault, kind=record.fault_kind, aim=record.aim, opened_t=record.t, state=record.state
            )
        fault.apply(record)
        if fault.open:
            self._open[fault.number] = fault
        else:
            self._open.pop(fault.number, None)
        if record.state == "struck" and fault.number not in self._placed:
            self._placed.add(fault.number)
            insort(self.struck, fault, key=strike_of)
            insort(self.strikes, strike_of(fault))
        self._measure(fault)
        return fault

    def _measure(self, fault: Fault) -> None:
        """Keep the bounds by which `around` need not look at every fault of a long run."""
        if fault.struck_t is None:
            return
        self._widest_error_s = max(self._widest_error_s, fault.struck_error_s)
        end_t = in_force(fault).to_t
        if math.isinf(end_t):
            self._endless.add(fault.number)
            return
        self._endless.discard(fault.number)
        self._longest_s = max(self._longest_s, end_t - fault.struck_t + fault.struck_error_s)

    def forget(self, before_t: float) -> list[int]:
        """Drop the faults that were over by then. Returns their numbers."""
        over = [number for number, fault in self.by_number.items() if _over_t(fault) < before_t]
        for number in over:
            fault = self.by_number.pop(number)
            if number in self._placed:
                self._placed.discard(number)
                at = self.struck.index(fault)
                del self.struck[at], self.strikes[at]
        return over

    def all(self) -> list[Fault]:
        return [self.by_number[number] for number in sorted(self.by_number)]

    def oldest_open_t(self) -> float | None:
        """When the oldest fault began that is not over; nothing after that is settled."""
        return min((fault.opened_t for fault in self._open.values()), default=None)

    def around(self, from_t: float, to_t: float) -> Iterator[Fault]:
        """Faults in force at some time in [from_t, to_t], latest first, as widely as the clocks allow."""
        oldest_t = from_t - self._longest_s
        for index in range(bisect_right(self.strikes, to_t + self._widest_error_s) - 1, -1, -1):
            if self.strikes[index] < oldest_t:
                break
            fault = self.struck[index]
            if not fault.ineffective and in_force(fault).meets(from_t, to_t):
                yield fault
        for number in sorted(self._endless, reverse=True):
            fault = self.by_number[number]
            if strike_of(fault) < oldest_t and not fault.ineffective and in_force(fault).meets(from_t, to_t):
                yield fault

    def struck_in(self, from_t: float, to_t: float) -> list[Fault]:
        """Those that struck in [from_t, to_t], effective or not."""
        return self.struck[bisect_left(self.strikes, from_t) : bisect_right(self.strikes, to_t)]

    def following(self, fault: Fault) -> Fault | None:
        """The next fault that struck and is not known to have done nothing. From its strike on, the one cannot be told
        from the other."""
        later = self.struck[bisect_right(self.strikes, strike_of(fault)) :]
        return next((other for other in later if not other.ineffective), None)

    def next_strike_t(self, fault: Fault) -> float | None:
        other = self.following(fault)
        return None if other is None else other.struck_t


def strike_of(fault: Fault) -> float:
    """The strike of a fault that did strike."""
    if fault.struck_t is None:
        raise ValueError(f"fault {fault.number} did not strike")
    return fault.struck_t


def _over_t(fault: Fault) -> float:
    """When it was no longer in force and nothing more was expected of it."""
    return math.inf if fault.closed_t is None else max(fault.closed_t, in_force(fault).to_t)


def in_force(fault: Fault) -> Window:
    """From the earliest possible strike to the latest possible heal.

    A fault without a heal is in force until its last state, and without end if it could not be healed.
    """
    struck_t = math.inf if fault.struck_t is None else fault.struck_t - fault.struck_error_s
    if fault.healed_t is not None:
        return Window(struck_t, fault.healed_t + fault.healed_error_s)
    return Window(struck_t, math.inf if fault.closed_t is None or fault.unhealed else fault.closed_t)
