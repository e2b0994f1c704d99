"""Where durations from the configuration are divided by `pace`, once and for all.

A run at pace 10 on the embedded cluster goes ten times as fast as the real thing: its timers, and here its load and its
faults. Rates are multiplied. Counts, shares and lengths in tokens stay. Everything below gets seconds as they pass.
"""

from __future__ import annotations

from rig.clock import Pace
from rig.config.workload import Arrivals, Deadlines, Objectives, Stage, Workload

_CONNECT_FLOOR_S = 1.0  # a TCP connect does not go faster because the cluster does; below this a busy machine shows


def paced_workload(workload: Workload, pace: Pace) -> Workload:
    """The workload with think time and deadlines divided, rates multiplied."""
    arrivals, deadlines = workload.arrivals, workload.deadlines
    return workload.model_copy(
        update={
            "arrivals": _paced_arrivals(arrivals, pace),
            "deadlines": _paced_deadlines(deadlines, pace),
            "objectives": _paced_objectives(workload.objectives, pace),
        }
    )


def _paced_arrivals(arrivals: Arrivals, pace: Pace) -> Arrivals:
    stages = arrivals.stages
    return arrivals.model_copy(
        update={
            "think": pace.scale(arrivals.think),
            "rate": _faster(arrivals.rate, pace),
            "stages": None if stages is None else [_paced_stage(stage, pace) for stage in stages],
            "speed": arrivals.speed * pace.factor if arrivals.kind == "replay" else arrivals.speed,
        }
    )


def _paced_stage(stage: Stage, pace: Pace) -> Stage:
    return stage.model_copy(
        update={
            "duration": pace.scale(stage.duration),
            "rate": stage.rate * pace.factor,
            "to": _faster(stage.to, pace),
        }
    )


def _faster(rate: float | None, pace: Pace) -> float | None:
    return None if rate is None else rate * pace.factor


def _paced_objectives(objectives: Objectives, pace: Pace) -> Objectives:
    limits = {"ttft": objectives.ttft, "itl": objectives.itl, "e2el": objectives.e2el}
    return objectives.model_copy(
        update={name: None if limit is None else pace.scale(limit) for name, limit in limits.items()}
    )


def _paced_deadlines(deadlines: Deadlines, pace: Pace) -> Deadlines:
    return deadlines.model_copy(
        update={
            "connect": max(pace.scale(deadlines.connect), min(deadlines.connect, _CONNECT_FLOOR_S)),
            "progress": pace.scale(deadlines.progress),
            "total": pace.scale(deadlines.total),
        }
    )
