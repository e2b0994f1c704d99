"""What the page's script draws from: plain columns and small records, times in seconds rounded to milliseconds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rig.analysis.analyse import Analysis
from rig.analysis.recovery.decision import Recovery
from rig.analysis.recovery.faults import Fault, Window
from rig.faults.plan.registry import KINDS
from rig.report.lanes import Lanes, Samples, Span, Track
from rig.report.points import COLUMNS, FATES, Point, Requests
from rig.report.series import Series


def plot_data(analysis: Analysis, series: Series) -> dict[str, Any]:
    """JSON without infinities: null where something never ended or is not known."""
    return {
        "run": analysis.info.run,
        "started": analysis.info.wall_start_iso[:19],
        "end_t": round(analysis.end_t, 3),
        "phases": [{"name": phase.phase, "t": round(phase.t, 3)} for phase in analysis.phases],
        "fates": list(FATES),
        "requests": _points(series.requests.points()),
        "left_out": series.requests.left_out,
        "bins": _bins(series.requests),
        "kinds": list(KINDS),
        "faults": [_fault(fault) for fault in analysis.faults],
        "recoveries": [_recovery(recovery) for recovery in analysis.recoveries],
        "nodes": [
            {
                "name": name,
                "reach": _spans(lane.reach),
                "master": _spans(lane.master),
                "rejoining": _windows(analysis.rejoins.get(name, ()), analysis.end_t),
                "memory": _samples(lane.memory),
                "measured": _samples(lane.measured),
            }
            for name, lane in series.lanes.nodes.items()
        ],
        "instances": _instances(series.lanes),
        "instances_left_out": series.lanes.instances_left_out,
        "controller": {
            "cpu_percent": _samples(series.lanes.controller.cpu_percent),
            "lag_s": _samples(series.lanes.controller.lag_s, digits=4),
        },
    }


def _points(points: Sequence[Point]) -> dict[str, Any]:
    """Names by position in a list of their own; the columns hold the positions."""
    models, entries = _names(point.model for point in points), _names(point.entry for point in points)
    return {
        "models": list(models),
        "entries": list(entries),
        "id": [point.id for point in points],
        "t": [round(point.due_t, 3) for point in points],
        "duration": [round(point.duration_s, 4) for point in points],
        "ttft": [None if point.ttft_s is None else round(point.ttft_s, 4) for point in points],
        "fate": [FATES.index(point.fate) for point in points],
        "model": [models[point.model] for point in points],
        "entry": [entries[point.entry] for point in points],
        "streamed": [int(point.streamed) for point in points],
        "more": {  # of the few that did not complete, by position
            str(index): {"how": point.how, "own": point.own, "fault": point.fault, "unwedging": point.unwedging}
            for index, point in enumerate(points)
            if point.how or point.own or point.fault is not None or point.unwedging is not None
        },
    }


def _names(found: Any) -> dict[str, int]:
    return {name: index for index, name in enumerate(sorted(set(found)))}


def _bins(requests: Requests) -> dict[str, Any]:
    columns = requests.bins.columns
    return {"width": requests.bins.width_s, **{name: [round(value, 2) for value in columns[name]] for name in COLUMNS}}


def _fault(fault: Fault) -> dict[str, Any]:
    """`to` is null where the fault was never healed."""
    return {
        "fault": fault.number,
        "kind": fault.kind,
        "aim": fault.aim,
        "state": fault.state,
        "effective": fault.effective,
        "nodes": fault.nodes,
        "from": _moment(fault.struck_t),
        "to": _moment(fault.heal_t),
        "opened": _moment(fault.opened_t),
        "reason": fault.reason[:300],
    }


def _recovery(recovery: Recovery) -> dict[str, Any]:
    return {
        "fault": recovery.fault,
        "kind": recovery.fault_kind,
        "model": recovery.model,
        "class": recovery.recovery_class,
        "strike": _moment(recovery.strike_t),
        "serve": _moment(recovery.time_to_serve_s),
        "sustained": _moment(recovery.sustained_s),
        "at_least": _moment(recovery.at_least_s),
        "outage": _moment(recovery.outage_s),
        "silence": _moment(recovery.silence_s),
        "resolution": _moment(recovery.resolution_s),
    }


def _instances(lanes: Lanes) -> list[dict[str, Any]]:
    return [{"id": lane.id, "model": lane.model, "spans": _spans(lane.track)} for lane in lanes.instances.values()]


def _spans(track: Track) -> list[list[Any]]:
    return [_span(span) for span in track.spans]


def _span(span: Span) -> list[Any]:
    return [round(span.from_t, 3), _moment(span.to_t), span.state]


def _windows(windows: Sequence[Window], end_t: float) -> list[list[float]]:
    return [[round(window.from_t, 3), round(min(window.to_t, end_t), 3)] for window in windows]


def _samples(samples: Samples, digits: int = 1) -> list[list[float]]:
    return [[round(sample.t, 3), round(sample.value, digits)] for sample in samples.kept]


def _moment(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 3)
