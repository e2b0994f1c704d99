"""Journals written out by hand: each call adds the records of one thing that happened."""

from __future__ import annotations

import itertools
from typing import Any, Literal

from rig.analysis.analyse import Analysis, analyse
from rig.analysis.intake.attempts import Attempts
from rig.analysis.intake.batches import Batcher
from rig.analysis.intake.pairing import Pairing
from rig.analysis.recovery.context import Context
from rig.analysis.recovery.decision import Recovery
from rig.analysis.recovery.tracker import RecoveryTracker
from rig.analysis.requests.settled import Settled
from rig.analysis.settings import Settings, settings_of
from rig.analysis.symptoms.watch import Watch
from rig.journal.records import (
    AnyRecord,
    FaultChanged,
    FaultKind,
    FaultState,
    How,
    InstanceServed,
    Own,
    PhaseStarted,
    Reachability,
    RequestEnded,
    RequestStarted,
    RunEnded,
    Unwedged,
    ViewChanged,
)
from rig.journal.run import RunInfo
from rig.targets.exo.judged import ExoWatch
from rig.targets.exo.keeper.eventlog import MAX_ENTRIES
from rig.targets.exo.keeper.tape import KeeperTape
from tests.analysis.generate import Shape, info_of

A, B = "lab/tiny-a", "lab/tiny-b"


def keeper(*records: AnyRecord, most: int = MAX_ENTRIES) -> KeeperTape:
    """What the keeper's rules are judged by, fed as the analysis does it, in the order of the times.

    `most` entries of event logs are kept.
    """
    watch = Watch(Context(Settings(models=())), embedded=False)
    assert isinstance(watch.own, ExoWatch)
    watch.own.keeper.events.most = most
    for record in sorted(records, key=lambda record: record.t):
        watch.feed(record)
    return watch.own.keeper


class Heard:
    """Batches as they are settled."""

    def __init__(self) -> None:
        self.batches: list[Settled] = []

    def settled(self, batch: Settled) -> None:
        self.batches.append(batch)

    def unfinished(self, start: RequestStarted, end_t: float) -> None:
        """Nothing is asked of them."""


class Tape:
    """Records by the time of writing. Durations in seconds at pace 1; sustained 15 s, settle 240 s."""

    def __init__(self, models: tuple[str, ...] = (A,), **changes: Any) -> None:
        self._workload = {"name": "chat", "models": [{"model": model} for model in models]}
        self._changes = changes
        self._numbers = itertools.count()
        self._records: list[AnyRecord] = []

    @property
    def info(self) -> RunInfo:
        return info_of(Shape(), **({"workload": self._workload} | self._changes))

    def records(self) -> list[AnyRecord]:
        return sorted(self._records, key=lambda record: record.t)

    def add(self, *records: AnyRecord) -> None:
        self._records += records

    def attempts(self) -> Attempts:
        """What ended, in the order of the ends."""
        batcher, pairing = Batcher(), Pairing()
        batcher.feed(self.records())
        return pairing.join(batcher.cut())

    def analyse(self) -> Analysis:
        return analyse(self.info, self.records())

    def recoveries(self) -> dict[tuple[int, str], Recovery]:
        return {(recovery.fault, recovery.model): recovery for recovery in self.analyse().recoveries}

    def recovery(self, fault: int = 0, model: str = A) -> Recovery:
        return self.recoveries()[fault, model]

    def tracker(self, until_t: float) -> RecoveryTracker:
        """Fed with what was written by then."""
        tracker = RecoveryTracker(settings_of(self.info))
        for record in self.records():
            if record.t <= until_t:
                tracker.feed(record)
        return tracker

    def end(self, t: float) -> None:
        self.add(RunEnded(t=t, reason="finished"))

    def phase(self, t: float, name: Literal["baseline", "faults", "drain"]) -> None:
        self.add(PhaseStarted(t=t, phase=name))

    def fault(
        self,
        number: int,
        kind: FaultKind,
        struck_t: float,
        healed_t: float | None,
        *,
        hit: tuple[str, ...] = (),
        cut: tuple[str, ...] = (),
        error_s: float = 0.0,
        late_s: float = 0.2,
    ) -> None:
        """Struck and, unless `healed_t` is None, healed; each written `late_s` after it happened."""
        moments: list[tuple[FaultState, float]] = [("leased", struck_t - 0.5), ("struck", struck_t)]
        if healed_t is not None:
            moments.append(("healed", healed_t))
        for state, at_t in moments:
            self.add(self.change(number, kind, state, at_t, hit=hit, cut=cut, error_s=error_s, late_s=late_s))

    def change(  # noqa: PLR0913 (as many as the record has)
        self,
        number: int,
        kind: FaultKind,
        state: FaultState,
        at_t: float,
        *,
        hit: tuple[str, ...] = (),
        cut: tuple[str, ...] = (),
        error_s: float = 0.0,
        late_s: float = 0.0,
        reason: str = "",
        hold_s: float = 0.0,
        stopped: bool = False,
    ) -> FaultChanged:
        return FaultChanged(
            t=at_t + late_s,
            fault=number,
            fault_kind=kind,
            state=state,
            aim="somewhere",
            nodes=list(hit),
            processes_hit=list(hit),
            clients_cut=list(cut),
            at_t=at_t,
            at_error_s=error_s,
            reason=reason,
            stopped=stopped,
            hold_s=hold_s,
        )

    def ok(self, start_t: float, end_t: float, model: str = A, entry: str = "node-1", **more: Any) -> str:
        progress = {"first_token_t": end_t, "last_token_t": end_t, "last_progress_t": end_t, "tokens": 1}
        return self._request(start_t, end_t, model, entry, "completed", None, progress | more)

    def steady(
        self, from_t: float, to_t: float, model: str = A, step_s: float = 1.0, entry: str = "node-1", **more: Any
    ) -> None:
        """One success every `step_s`, each taking 0.2 s."""
        for number in range(int((to_t - from_t) / step_s)):
            start_t = from_t + number * step_s
            self.ok(start_t, start_t + 0.2, model, entry, **more)

    def error(
        self,
        start_t: float,
        end_t: float,
        model: str = A,
        entry: str = "node-1",
        *,
        evidence: str = "HTTP status 404",
        **more: Any,
    ) -> str:
        return self._request(start_t, end_t, model, entry, "error", None, {"evidence": evidence} | more)

    def lost(self, start_t: float, end_t: float, how: How, model: str = A, entry: str = "node-1", **more: Any) -> str:
        return self._request(start_t, end_t, model, entry, "lost", how, more)

    def started(self, start_t: float, model: str = A, entry: str = "node-1", **more: Any) -> str:
        """Without an end."""
        name = f"r{next(self._numbers)}"
        given: dict[str, Any] = {"source": "load", "streamed": True} | more
        self.add(
            RequestStarted(
                t=start_t,
                id=name,
                source=given["source"],
                client="c0",
                model=model,
                entry=entry,
                planned_t=start_t,
                streamed=given["streamed"],
                prompt_tokens=8,
                max_tokens=8,
            )
        )
        return name

    def _request(
        self,
        start_t: float,
        end_t: float,
        model: str,
        entry: str,
        outcome: Literal["completed", "error", "lost"],
        how: How | None,
        more: dict[str, Any],
    ) -> str:
        of_start = {key: more.pop(key) for key in ("source", "streamed") if key in more}
        name = self.started(start_t, model, entry, **of_start)
        ended: dict[str, Any] = {"started_t": start_t, "connected_t": start_t, "ended_t": end_t} | more
        self.add(RequestEnded(t=end_t, id=name, outcome=outcome, how=how, **ended))
        return name

    def instances(self, t: float, listed: dict[str, tuple[str, str]], nodes: tuple[str, ...] = ("node-2",)) -> None:
        """`listed` maps an instance to its model and the id of the node its runner is on."""
        value = {
            name: {"model": model, "runners": {node_id: "runner"}, "port": 1}
            for name, (model, node_id) in listed.items()
        }
        for node in nodes:
            self.add(ViewChanged(t=t, node=node, facet="instances", since_t=t - 0.5, value=value))

    def view(self, t: float, node: str, facet: Literal["node_id", "event_index", "deployments"], value: Any) -> None:
        self.add(ViewChanged(t=t, node=node, facet=facet, since_t=t - 0.5, value=value))

    def reachable(self, t: float, node: str, *, reachable: bool) -> None:
        self.add(Reachability(t=t, node=node, since_t=t - 0.5, reachable=reachable))

    def served(self, t: float, response_id: str, instance: str) -> None:
        self.add(InstanceServed(t=t, node="node-2", instance=instance, response_ids=[response_id]))

    def unwedged(self, fault: int, node: str, started_t: float, ended_t: float) -> None:
        self.add(Unwedged(t=ended_t, fault=fault, node=node, started_t=started_t, ended_t=ended_t, ok=True))

    def own(self, t: float, *, lag_s: float = 0.0, drift_s: float = 0.0) -> None:
        self.add(
            Own(t=t, interval_s=1.0, lag_max_s=lag_s, cpu_percent=1.0, rss_bytes=1, open_files=1, wall_drift_s=drift_s)
        )
