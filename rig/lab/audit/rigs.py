"""The rig's account of a run: its journal, with each request's two lines and each fault's states together."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from rig.journal.records import (
    AnyRecord,
    ClockOffset,
    FaultChanged,
    Own,
    RequestEnded,
    RequestStarted,
    RunEnded,
    Unwedged,
)
from rig.journal.run import RunInfo

EPSILON_S = 0.005  # two processes reading one clock, mapped through Unix time
PROBE_LIMIT_S = 60.0  # at pace 1; a busy machine is not faster, so never under 10 s
PROBE_LIMIT_FLOOR_S = 10.0


@dataclass
class RigRequest:
    started: RequestStarted
    ended: RequestEnded | None = None


@dataclass
class RigAccount:
    info: RunInfo
    requests: dict[str, RigRequest] = field(default_factory=dict[str, RigRequest])
    faults: dict[int, list[FaultChanged]] = field(default_factory=dict[int, list[FaultChanged]])
    unwedged: list[Unwedged] = field(default_factory=list[Unwedged])
    offsets: dict[str, list[ClockOffset]] = field(default_factory=dict[str, list[ClockOffset]])
    own: list[Own] = field(default_factory=list[Own])
    ended: RunEnded | None = None
    strange: list[str] = field(default_factory=list[str])  # lines that make no sense together

    @property
    def interrupted(self) -> bool:
        return self.ended is None or self.ended.reason != "finished"

    def progress_s(self, request: RequestStarted) -> float:
        """How long without a token is too long, as the run's settings have it."""
        return self._probe_limit_s if request.source == "probe" else self._deadline("progress")

    def total_s(self, request: RequestStarted) -> float:
        return self._probe_limit_s if request.source == "probe" else self._deadline("total")

    def left_early(self, started: RequestStarted, ended: RequestEnded, last_token_t: float | None = None) -> str | None:
        """None when the client's deadline was over at its end, by the node's last token too; else what is wrong."""
        waited_s, total_s = ended.ended_t - ended.started_t, self.total_s(started)
        if not started.streamed or ended.how == "overdue" or waited_s >= total_s - EPSILON_S:
            short = waited_s < total_s - EPSILON_S
            return f"left after {waited_s:.3f} s of {total_s:g} s" if short else None
        marks = [t for t in (ended.last_progress_t, last_token_t) if t is not None and t <= ended.ended_t]
        quiet_s, progress_s = ended.ended_t - max(marks, default=ended.started_t), self.progress_s(started)
        short = quiet_s < progress_s - EPSILON_S
        return f"left after {quiet_s:.3f} s without a token, of {progress_s:g} s" if short else None

    @property
    def _probe_limit_s(self) -> float:
        return max(PROBE_LIMIT_S / self.info.pace, PROBE_LIMIT_FLOOR_S)

    def _deadline(self, name: str) -> float:
        return float(self.info.workload["deadlines"][name])

    def lag_s(self, t: float) -> float:
        """The rig's own worst lag around a moment: it may have looked so much later than something came."""
        at = bisect_right(self.own, t, key=lambda own: own.t)
        return max((own.lag_max_s for own in self.own[max(0, at - 1) : at + 2]), default=0.0)

    def offset(self, node: str, t: float) -> ClockOffset | None:
        """The latest measured before `t` on the run's clock."""
        known = [offset for offset in self.offsets.get(node, []) if offset.t <= t]
        return known[-1] if known else None


def account(info: RunInfo, records: Iterable[AnyRecord]) -> RigAccount:
    found = RigAccount(info)
    for record in records:
        match record:
            case RequestStarted():
                if record.id in found.requests:
                    found.strange.append(f"request {record.id} was started twice")
                found.requests[record.id] = RigRequest(record)
            case RequestEnded():
                _end(found, record)
            case FaultChanged():
                found.faults.setdefault(record.fault, []).append(record)
            case Unwedged():
                found.unwedged.append(record)
            case ClockOffset():
                found.offsets.setdefault(record.node, []).append(record)
            case Own():
                found.own.append(record)
            case RunEnded():
                found.ended = record
            case _:
                pass
    return found


def _end(found: RigAccount, record: RequestEnded) -> None:
    request = found.requests.get(record.id)
    if request is None:
        found.strange.append(f"request {record.id} ended without a start")
    elif request.ended is not None:
        found.strange.append(f"request {record.id} ended twice")
    else:
        request.ended = record
