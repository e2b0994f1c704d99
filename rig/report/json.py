"""A report for programs. The keys are documented in `docs/figures.md`; `schema` grows when one changes its meaning."""

from __future__ import annotations

import math
from typing import Any, Final, cast

import msgspec

from rig.analysis.analyse import Analysis
from rig.analysis.recovery.faults import Fault
from rig.analysis.requests.counts import PERCENTILES, Counts, Latencies
from rig.analysis.requests.during import Times
from rig.analysis.requests.tally import FaultCounts
from rig.analysis.symptoms.looking import NodeLooked
from rig.analysis.verdict import Verdict
from rig.journal.records import HeldBack
from rig.report.words import stamp

SCHEMA: Final = 1


def report_json(analysis: Analysis, verdict: Verdict) -> dict[str, Any]:
    """Plain values only. Durations in seconds, moments in seconds since the start; infinite and unknown are null."""
    result = analysis.requests
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "stamp": stamp(analysis),
        "verdict": verdict.word,
        "exit_code": verdict.exit_code,
        "run": _run(analysis),
        "requests": _counts(result.total),
        "lost_how": dict(result.total.how()),
        "requests_calm": _counts(result.calm),
        "requests_baseline": _counts(result.baseline),
        "requests_by_model": {name: _counts(counts) for name, counts in result.by_model.items()},
        "requests_by_entry": {name: _counts(counts) for name, counts in result.by_entry.items()},
        "requests_by_streamed": {name: _counts(counts) for name, counts in result.by_streamed.items()},
        "latency": {"all": _latency(result.all_latencies())}
        | {name: _latency(values) for name, values in result.latencies.items()},
        "latency_by_entry": {name: _latency(values) for name, values in result.latencies_by_entry.items()},
        "latency_by_streamed": {name: _latency(values) for name, values in result.latencies_by_streamed.items()},
        "latency_by_weather": {name: _latency(values) for name, values in result.latencies_by_weather.items()},
        "latency_by_fault": {kind: _during(times) for kind, times in analysis.during.items()},
        "latency_from_start": _latency(result.from_start) if analysis.settings.open_loop else None,
        "sent_late": _sent_late(analysis),
        "held_back": _held_back(analysis.held_back),
        "goodput": _goodput(analysis),
        "lost": [msgspec.to_builtins(lost) for lost in result.listed],
        "lost_own_node": [msgspec.to_builtins(lost) for lost in result.listed_own],
        "damaged": {"count": result.damaged, "ids": result.damaged_ids},
        "unclean_end": result.unclean,
        "probes": _counts(analysis.probes.total),
        "faults": [_fault(fault, result.by_fault.get(fault.number)) for fault in analysis.faults],
        "recoveries": [
            {"class" if key == "recovery_class" else key: value for key, value in _plain(recovery).items()}
            for recovery in analysis.recoveries
        ],
        "kinds": [_plain(row) for row in analysis.kinds],
        "unwedging": [_plain(row) for row in analysis.unwedgings],
        "controller": _controller(analysis),
        "looking": {name: _looking(node) for name, node in analysis.watch.looking.nodes.items()},
        "findings": [msgspec.to_builtins(finding) for finding in analysis.findings],
        "redeployed": [msgspec.to_builtins(redeployed) for redeployed in analysis.redeployed],
        "unwedged": [msgspec.to_builtins(unwedged) for unwedged in analysis.unwedged],
        "journal": _plain(analysis.notes),
        "checks": [_plain(check) for check in verdict.checks],
    }
    return cast("dict[str, Any]", _rounded(content))


def report_bytes(analysis: Analysis, verdict: Verdict) -> bytes:
    return msgspec.json.format(msgspec.json.encode(report_json(analysis, verdict)), indent=2) + b"\n"


def _run(analysis: Analysis) -> dict[str, Any]:
    info, ended = analysis.info, analysis.ended
    return {
        "name": info.run,
        "started": info.wall_start_iso,
        "duration_s": analysis.end_t,
        "planned_s": info.duration_s,
        "finished": analysis.finished,
        "reason": None if ended is None else ended.reason,
        "detail": "" if ended is None else ended.detail,
        "seed": info.seed,
        "pace": info.pace,
        "embedded": info.embedded,
        "behaviour": info.behaviour,
        "rig_version": info.rig_version,
        "rig_revision": info.rig_revision,
        "inventory": info.inventory.get("name"),
        "workload": info.workload.get("name"),
        "plan": info.plan.get("name"),
        "target_revisions": info.target_revisions,
        "expected_faults": info.expected_faults,
    }


def _counts(counts: Counts) -> dict[str, Any]:
    return {
        **cast("dict[str, int]", msgspec.to_builtins(counts)),
        "lost_not_own_node": counts.lost_not_own_node,
        "lost_without_deadlines": counts.lost_without_deadlines,
        "excluded_share": counts.excluded_share,
    }


def _latency(values: Latencies) -> dict[str, Any]:
    found: dict[str, Any] = {
        "completed": values.good,
        "failed": values.failed,
        "met": values.met,
        "tokens": values.tokens,
    }
    names = [f"p{share * 100:g}_s" for share in PERCENTILES]
    for name, quantiles in values.quantiles().items():
        found[name] = {
            "count": quantiles.count,
            "good": dict(zip(names, quantiles.good, strict=True)),
            "failures_infinite": dict(zip(names, quantiles.with_failures, strict=True)),
        }
    found["chunk_gap"] = dict(zip(names, values.chunk_gap.quantiles(PERCENTILES), strict=True))
    found["chunk_gap"]["max_s"] = values.gap_max_s
    return found


def _during(times: Times) -> dict[str, Any]:
    return {"windows": times.windows, "length_s": times.length_s, **_latency(times.latencies)}


def _sent_late(analysis: Analysis) -> dict[str, Any] | None:
    """Of an open loop: how long after it was due each request was sent."""
    if not analysis.settings.open_loop:
        return None
    late = analysis.requests.late_quantiles(PERCENTILES)
    return {f"p{share * 100:g}_s": value for share, value in zip(PERCENTILES, late, strict=True)} | {
        "max_s": analysis.requests.late_max_s
    }


def _held_back(held: HeldBack | None) -> dict[str, Any] | None:
    """None where nothing was: in a closed loop, and where the bound in flight was never met."""
    if held is None:
        return None
    return {"bound": held.bound, "held": held.held, "longest_s": held.longest_s, "unsent": held.unsent}


def _goodput(analysis: Analysis) -> dict[str, Any] | None:
    """None without objectives."""
    found = analysis.requests.goodput(analysis.settings.objectives)
    if found is None:
        return None
    return {"objectives": _plain(analysis.settings.objectives), **_plain(found)}


def _fault(fault: Fault, counts: FaultCounts | None) -> dict[str, Any]:
    found = _plain(fault)
    found["fault"] = found.pop("number")
    found["effective"] = fault.effective
    return found | _plain(counts or FaultCounts())


def _controller(analysis: Analysis) -> dict[str, Any]:
    stalls = analysis.stalls
    return {
        "records": stalls.records,
        "lag_max_s": stalls.lag_max_s,
        "stalls": stalls.count,
        "stalled_s": stalls.total_s,
        "cpu_max_percent": stalls.cpu_max_percent,
        "rss_max_bytes": stalls.rss_max_bytes,
        "open_files_max": stalls.open_files_max,
        "died": [msgspec.to_builtins(died) for died in analysis.died],
        "orphan_ends": analysis.orphans,
        "repeated_starts": analysis.repeated,
    }


def _looking(node: NodeLooked) -> dict[str, Any]:
    return {**_plain(node), "per_s": node.per_s, "share": node.share}


def _plain(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", msgspec.to_builtins(value))


def _rounded(value: Any) -> Any:
    """Microseconds are enough, and infinite is no JSON."""
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in cast("list[Any]", value)]
    return value
