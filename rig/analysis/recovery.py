"""Recoveries, fault by fault and model by model, while the journal grows and when it has ended."""

from __future__ import annotations

from collections import deque
from typing import Final

from rig.analysis.attempts import Attempt, Pairing
from rig.analysis.context import HORIZON_S, Context
from rig.analysis.decision import Recovery, decide
from rig.analysis.faults import Fault, strike_of
from rig.analysis.outage import serves
from rig.analysis.settings import Settings
from rig.analysis.trials import trials_of
from rig.journal.records import AnyRecord, FaultChanged, RequestEnded, RequestStarted

_EVERY: Final = 2000
_LOOKS: Final = 30  # in the time of `sustained`, at most


class RecoveryTracker:
    """Feed it every record in order. `recovered` decides live; `finish` gives what can be known at the end.

    Memory: the attempts since the oldest fault whose outcome is not settled, that is a few minutes of them; and every
    fault with its recoveries, unless it is `live`: then nothing is kept of what `recovered` can no longer be asked for,
    and `recoveries` stays empty. The report of the run reads them from the journal.
    """

    def __init__(self, settings: Settings, *, live: bool = False) -> None:
        self._live = live
        self.settings = settings
        self.context = Context(settings)
        self.pairing = Pairing()
        self.recoveries: list[Recovery] = []
        self._attempts: dict[str, deque[Attempt]] = {model: deque() for model in settings.models}
        self._entries: set[str] = set(settings.entries)
        self._pending: list[tuple[Fault, str]] = []
        self._since_check = 0
        self._looked = (-2, 0.0)

    @property
    def models(self) -> list[str]:
        return list(self._attempts)

    def feed(self, record: AnyRecord) -> Attempt | None:
        """Take in the next record; gives the attempt that ended with it, if one did."""
        if type(record) is RequestStarted:  # most records by far are of requests
            self.context.pass_to(record.t)
            self.pairing.started(record)
        elif type(record) is RequestEnded:
            self.context.pass_to(record.t)
            return self._ended(record)
        else:
            self.context.feed(record)
            if isinstance(record, FaultChanged):
                self._changed(record)
        return None

    def _ended(self, record: RequestEnded) -> Attempt | None:
        attempt = self.pairing.ended(record)
        if attempt is None:
            return None
        self._entries.add(attempt.entry)
        attempts = self._attempts.get(attempt.model)
        if attempts is None:
            attempts = self._attempts[attempt.model] = deque()
        attempts.append(attempt)
        self._since_check += 1
        if self._since_check >= _EVERY:
            self._settle()
        return attempt

    def _changed(self, record: FaultChanged) -> None:
        if record.state == "struck":
            self._add_pending(record.fault)
        self._settle()

    def recovered(self, fault: int, now: float) -> bool | None:
        """Whether every deployed model serves again: None while that is open, False once `settle` is over.

        True takes positive successes of every model after the heal (or after the strike of a runner kill), and
        `sustained` seconds since without a failure. A fault that never struck has nothing to recover from.
        """
        known = self.context.faults.by_number.get(fault)
        if known is None:
            return None
        if known.struck_t is None:
            return None if known.open else True
        heal_t = known.heal_t if known.heal_t is not None else known.closed_t
        if heal_t is None:
            return False if now >= known.struck_t + known.hold_s + self.settings.settle_s else None
        if self._worth_a_look(fault, heal_t, now) and self._all_serve(known, known.struck_t, heal_t, now):
            return True
        return False if now >= heal_t + self.settings.settle_s else None

    def _worth_a_look(self, fault: int, heal_t: float, now: float) -> bool:
        """Looking goes over every attempt since the strike: not before it can be true, and not all the time."""
        looked_fault, looked_t = self._looked
        if now < heal_t + self.settings.sustained_s:
            return False
        if looked_fault == fault and 0 <= now - looked_t < self.settings.sustained_s / _LOOKS:
            return False
        self._looked = (fault, now)
        return True

    def steady(self, since_t: float, now: float) -> bool:
        """Whether every deployed model has served since then, the last `sustained` seconds without a failure."""
        return self._all_serve(None, since_t, since_t, now)

    def finish(self) -> list[Recovery]:
        """Everything, given that no record follows. Ordered by strike, then by model."""
        self._settle(ended=True)
        order = {model: index for index, model in enumerate(self.models)}
        return sorted(self.recoveries, key=lambda recovery: (recovery.strike_t, order[recovery.model]))

    def settled_t(self) -> float:
        """Everything that ended before this moment can be judged: no fault that matters to it is open."""
        open_t = self.context.faults.oldest_open_t()
        pending_t = min((strike_of(fault) for fault, _ in self._pending), default=None)
        return min(t - HORIZON_S for t in (self.context.now_t, open_t, pending_t) if t is not None)

    def _add_pending(self, number: int) -> None:
        fault = self.context.faults.by_number[number]
        if not any(other is fault for other, _ in self._pending):
            self._pending += [(fault, model) for model in self.models]
            self._pending.sort(key=lambda item: strike_of(item[0]))

    def _all_serve(self, fault: Fault | None, since_t: float, heal_t: float, now: float) -> bool:
        quiet_s = self.settings.sustained_s
        for model, attempts in self._attempts.items():
            trials = trials_of(attempts, self.context, fault, since_t, self._entries)
            if not serves(trials, since_t=since_t, heal_t=heal_t, now=now, quiet_s=quiet_s):
                return False
            if self._stuck(model, heal_t, now - quiet_s):
                return False
        return True

    def _stuck(self, model: str, from_t: float, to_t: float) -> bool:
        """A probe sent in that time still waits, while no loaded request sent later the same way has been served.

        One through a node that had just been restarted is waited for no more than its failure would count.
        """
        rejoins = self.context.windows.rejoins
        for start in self.pairing.in_flight.values():
            if start.source != "probe" or start.model != model or not from_t <= start.t < to_t:
                continue
            passed = any(
                attempt.ok and attempt.source == "load" and attempt.entry == start.entry and attempt.started_t > start.t
                for attempt in reversed(self._attempts[model])
            )
            if not passed and not rejoins.open_at(start.entry, start.t):
                return True
        return False

    def _settle(self, *, ended: bool = False) -> None:
        """Decide what no further record can change (or, at the end, everything), and forget what that needed."""
        self._since_check = 0
        in_flight_t: dict[str, float] = {}
        for start in self.pairing.in_flight.values():
            in_flight_t[start.model] = min(start.t, in_flight_t.get(start.model, start.t))
        kept: list[tuple[Fault, str]] = []
        waiting: set[str] = set()  # a model's faults are decided in order, each taking its failures
        for fault, model in self._pending:
            if fault.closed_t is not None and not fault.effective:
                continue
            following = self.context.faults.following(fault)
            next_t = None if following is None else strike_of(following)
            closed = not fault.open and following is not None and not following.open
            ready = closed and next_t is not None and in_flight_t.get(model, next_t) >= next_t
            if ended or (ready and model not in waiting):
                until_t = self.context.now_t if next_t is None else next_t
                attempts = list(self._attempts[model])
                recovery = decide(fault, model, attempts, self.context, entries=self._entries, until_t=until_t)
                if not self._live:
                    self.recoveries.append(recovery)
            else:
                waiting.add(model)
                kept.append((fault, model))
        self._pending = kept
        self._forget()

    def _forget(self) -> None:
        before_t = self.settled_t() - 2 * self.settings.sustained_s
        for attempts in self._attempts.values():
            while attempts and attempts[0].ended_t < before_t:
                attempts.popleft()
        self.context.sightings.forget(before_t)
        if self._live:
            self.context.forget(min(before_t, self.context.now_t - 2 * self.settings.settle_s))
