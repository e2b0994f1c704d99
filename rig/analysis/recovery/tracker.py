"""Recoveries, fault by fault and model by model, while the journal grows and when it has ended."""

from __future__ import annotations

from collections import deque
from typing import Final

from rig.analysis.intake.attempts import Attempts, Recent, Rows, Together, unwedged_after
from rig.analysis.intake.steps import Ended, Live
from rig.analysis.recovery.context import HORIZON_S, Context
from rig.analysis.recovery.decision import Recovery, decide
from rig.analysis.recovery.faults import Fault, strike_of
from rig.analysis.recovery.outage import serves
from rig.analysis.recovery.rescue import Rescue, rescue
from rig.analysis.recovery.trials import trials_of
from rig.analysis.settings import Settings
from rig.journal.records import AnyRecord, FaultChanged, InstanceServed, RequestEnded, RequestStarted, Served

_EVERY: Final = 2000
_LOOKS: Final = 30  # in the time of `sustained`, at most


class RecoveryTracker:
    """While a journal grows, `feed` it every record; `recovered` decides live. Of a journal that is read, `take` the
    requests that ended and `note` every other record, in order; `finish` gives what can be known at the end.

    Memory: the attempts since the oldest fault whose outcome is not settled, a few minutes of them; and every fault
    with its recoveries. A tracker that is `live` keeps nothing that `recovered` can no longer be asked for, and its
    `recoveries` stays empty: the report of the run reads them from the journal.
    """

    def __init__(self, settings: Settings, *, live: bool = False) -> None:
        self._live = live
        self.settings = settings
        self.context = Context(settings)
        self.recoveries: list[Recovery] = []
        self.rescues: list[Rescue] = []
        self._requests = Live()
        self._parts: deque[Attempts] = deque()
        self._models: dict[str, None] = dict.fromkeys(settings.models)
        self._entries: set[str] = set(settings.entries)
        self._ways = 0
        self._open_t: dict[str, float] = {}  # by model: when the first request was sent that is in flight
        self._pending: list[tuple[Fault, str]] = []
        self._looked = (-2, 0.0)

    @property
    def models(self) -> list[str]:
        return list(self._models)

    def feed(self, record: AnyRecord) -> None:
        """Take in the next record of a journal that grows."""
        if isinstance(record, RequestStarted | RequestEnded | InstanceServed | Served):
            self._requests.feed(record)
            if self._requests.waiting >= _EVERY:
                self._catch_up()
                self.settle()
            return
        if isinstance(record, FaultChanged):
            self._catch_up()
        self.note(record)

    def note(self, record: AnyRecord) -> None:
        """Take in a record that is not of a request. Before a fault's, all requests that ended must have been taken."""
        self.context.feed(record)
        if isinstance(record, FaultChanged):
            if record.state == "struck":
                self._add_pending(record.fault)
            self.settle()

    def take(self, ended: Ended) -> None:
        attempts = ended.attempts
        self.context.pass_to(ended.now_t)
        self.context.sightings.serve(ended.served)
        self._open_t = ended.open_t
        for way in attempts.ways[self._ways :]:
            self._models.setdefault(way.model)
            self._entries.add(way.entry)
        self._ways = len(attempts.ways)
        if len(attempts):
            self._parts.append(attempts)

    def _catch_up(self) -> None:
        """Take the requests whose records were fed."""
        self.take(self._requests.ended())

    def recovered(self, fault: int, now: float) -> bool | None:
        """Whether every deployed model serves again: None while that is open, False once `settle` is over.

        True takes positive successes of every model after the heal (or after the strike of a kill of a worker), and
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
        """A look goes over every attempt since the strike: it waits until it can succeed, and is rate-limited."""
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
        self._catch_up()
        self.settle(ended=True)
        order = {model: index for index, model in enumerate(self.models)}
        return sorted(self.recoveries, key=lambda recovery: (recovery.strike_t, order[recovery.model]))

    def settled_t(self) -> float:
        """Requests that ended before this moment can be judged: no fault that concerns them is open."""
        open_t = self.context.faults.oldest_open_t()
        pending_t = min((strike_of(fault) for fault, _ in self._pending), default=None)
        return min(t - HORIZON_S for t in (self.context.now_t, open_t, pending_t) if t is not None)

    def _add_pending(self, number: int) -> None:
        fault = self.context.faults.by_number[number]
        if not any(other is fault for other, _ in self._pending):
            self._pending += [(fault, model) for model in self.models]
            self._pending.sort(key=lambda item: strike_of(item[0]))

    def _all_serve(self, fault: Fault | None, since_t: float, heal_t: float, now: float) -> bool:
        self._catch_up()
        quiet_s, together = self.settings.sustained_s, Together(list(self._parts))
        for model in self._models:
            rows = Recent(together, model).rows
            trials = trials_of(rows, self.context, fault, since_t, self._entries)
            if not serves(trials, since_t=since_t, heal_t=heal_t, now=now, quiet_s=quiet_s):
                return False
            if self._stuck(rows, model, heal_t, now - quiet_s):
                return False
        return True

    def _stuck(self, rows: Rows, model: str, from_t: float, to_t: float) -> bool:
        """A probe sent in that time still waits, and no request of the load sent later through its node was served.

        A probe through a node that had just been restarted is ignored, as its failure would be.
        """
        rejoins = self.context.windows.rejoins
        for start in self._requests.in_flight:
            if start.source != "probe" or start.model != model or not from_t <= start.t < to_t:
                continue
            later = rows.ok & rows.loaded & rows.through(start.entry) & (rows.started_t > start.t)
            if not later.any() and not rejoins.open_at(start.entry, start.t):
                return True
        return False

    def settle(self, *, ended: bool = False) -> None:
        """Decide what no further record can change (or, at the end, everything), and forget what that needed.

        A fault without effect is waited for as well: the rig may have unwedged the target after it.
        """
        together: Together | None = None
        kept: list[tuple[Fault, str]] = []
        waiting: set[str] = set()  # a model's faults are decided in order, each taking its failures
        for fault, model in self._pending:
            following = self.context.faults.following(fault)
            next_t = None if following is None else strike_of(following)
            closed = not fault.open and following is not None and not following.open
            ready = closed and next_t is not None and self._open_t.get(model, next_t) >= next_t
            if ended or (ready and model not in waiting):
                until_t = self.context.now_t if next_t is None else next_t
                together = together or Together(list(self._parts))
                self._decide(fault, model, Recent(together, model), until_t)
            else:
                waiting.add(model)
                kept.append((fault, model))
        self._pending = kept
        self._forget()

    def _decide(self, fault: Fault, model: str, attempts: Recent, until_t: float) -> None:
        """What the fault did to the model, if it took effect, and then what the rig's unwedging after it did."""
        recovery, context, entries = None, self.context, self._entries
        if fault.effective:
            recovery, failures = decide(fault, model, attempts, context, entries=entries, until_t=until_t)
            attempts.mark(failures, fault.number)
            self.recoveries += [] if self._live else [recovery]
        if rescued := rescue(fault, model, attempts, context, recovery, entries=entries, until_t=until_t):
            attempts.mark(rescued[1], unwedged_after(fault.number))
            self.rescues += [] if self._live else [rescued[0]]

    def _forget(self) -> None:
        before_t = self.settled_t() - 2 * self.settings.sustained_s
        while self._parts:
            part = self._parts.popleft()
            kept = part.ended_t >= before_t
            if kept.any():
                self._parts.appendleft(part.part(slice(int(kept.argmax()), None)))
                break
        self.context.sightings.forget(before_t)
        if self._live:
            self.context.forget(min(before_t, self.context.now_t - 2 * self.settings.settle_s))
