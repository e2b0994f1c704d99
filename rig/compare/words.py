"""A comparison as tables, for the console and for Markdown, and as plain values for programs."""

from __future__ import annotations

import math
from typing import Any, Final

from rig.compare.compare import ALPHA, LEAST_CHANGE, Against, Comparison, Figure, Side, Unit
from rig.compare.resample import Interval
from rig.compare.samples import Samples
from rig.report.tables import Table
from rig.report.words import NOTHING, length, milliseconds, percent, seconds, stamp_of

SCHEMA: Final = 1


def tables(comparison: Comparison) -> list[Table]:
    found = [_runs(comparison), _counts(comparison)]
    found += [_figures(comparison.base, against) for against in comparison.against]
    return [*found, *(_checks(comparison.base, one) for one in comparison.against if one.checks)]


def conclusions(comparison: Comparison) -> list[str]:
    """What a reader must know first, a line each."""
    lines: list[str] = []
    stamps = dict.fromkeys(stamp_of(run.analysis.info) for run in _all(comparison))
    lines += [stamp for stamp in stamps if stamp]
    for one in comparison.against:
        pair = f"{one.head.name} against {comparison.base.name}"
        lines += [f"{pair}: NOT COMPARABLE ({line}), forced all the same" for line in one.objections]
        lines.append(f"{pair}: worse: {'; '.join(one.worse) or 'nothing beyond noise'}")
        if one.better:
            lines.append(f"{pair}: better: {'; '.join(one.better)}")
        lines += [f"{pair}: {line}" for line in one.remarks]
    return lines


def _all(comparison: Comparison) -> list[Samples]:
    return [comparison.base, *(one.head for one in comparison.against)]


def _runs(comparison: Comparison) -> Table:
    rows = tuple(
        (
            run.name,
            run.verdict.word,
            run.analysis.info.wall_start_iso,
            length(run.analysis.end_t),
            f"{run.analysis.info.seed}",
        )
        for run in _all(comparison)
    )
    return Table("Runs, the base first", ("run", "verdict", "started", "duration", "seed"), rows)


def _counts(comparison: Comparison) -> Table:
    columns = ("run", "requests", "faults", "exposed", "errors", "lost", "lost, own node", "not recovered", "excluded")
    rows: list[tuple[str, ...]] = []
    for run in _all(comparison):
        total = run.analysis.requests.total
        never = sum(recovery.recovery_class == "not recovered" for recovery in run.analysis.recoveries)
        faults = sum(fault.effective for fault in run.analysis.faults)
        numbers = (total.started, faults, total.exposed, total.error, total.lost_not_own_node, total.lost_own_node)
        rows.append((run.name, *map(str, numbers), f"{never}", percent(total.excluded_share)))
    return Table("Counts", columns, tuple(rows))


def _figures(base: Samples, against: Against) -> Table:
    columns = ("figure", "base", "n", "head", "n", "head / base", "p", "p, all counted", "")
    note = (
        "Median [95 %], of counts the mean; n of which ∞ never ended. p: rank test for `worse`, then after Holm for "
        f"all figures together. Worse or better: at {ALPHA:g}, and by at least {LEAST_CHANGE:.0%}."
    )
    rows = tuple(_row(figure) for figure in against.figures)
    return Table(f"{against.head.name} against {base.name}", columns, rows, note)


def _row(figure: Figure) -> tuple[str, ...]:
    test = figure.test
    return (
        figure.name if figure.unit == "s" else f"{figure.name} ({figure.unit})",
        _typical(figure.base, figure.unit),
        _count(figure.base),
        _typical(figure.head, figure.unit),
        _count(figure.head),
        _change(figure),
        NOTHING if test is None else _chance(test.p_worse),
        NOTHING if figure.p_adjusted is None else _chance(figure.p_adjusted),
        figure.word.upper() if figure.word == "worse" else figure.word,
    )


def _typical(side: Side, unit: Unit) -> str:
    found = side.typical
    if found is None:
        return NOTHING
    if unit != "s":
        return percent(found.value) if unit == "share" else f"{found.value:.2g}"
    write = milliseconds if found.value < 1 else seconds
    return f"{write(found.value)} [{write(found.low)} … {write(found.high)}]"


def _count(side: Side) -> str:
    return f"{side.count} ({side.endless} ∞)" if side.endless else f"{side.count}"


def _change(figure: Figure) -> str:
    change = figure.change
    if change is None:
        return NOTHING
    if figure.unit != "s":
        return _times(change.value)
    return f"{_times(change.value)} [{_times(change.low)} … {_times(change.high)}]"


def _times(ratio: float) -> str:
    return "∞" if math.isinf(ratio) else f"× {ratio:.2f}"  # noqa: RUF001 (a multiplication sign)


def _chance(p: float) -> str:
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.1 else f"{p:.2f}"


def _checks(base: Samples, against: Against) -> Table:
    return Table(f"Checks that changed, {against.head.name}", ("check", base.name, against.head.name), against.checks)


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Plain values; infinite is null, and `endless` says how many were."""
    return {
        "schema": SCHEMA,
        "regressed": comparison.regressed,
        "alpha": ALPHA,
        "least_change": LEAST_CHANGE,
        "base": _run_json(comparison.base),
        "against": [
            {
                "head": _run_json(one.head),
                "objections": list(one.objections),
                "remarks": list(one.remarks),
                "worse": one.worse,
                "better": one.better,
                "checks": [{"check": name, "base": was, "head": now} for name, was, now in one.checks],
                "figures": [_figure_json(figure) for figure in one.figures],
            }
            for one in comparison.against
        ],
    }


def _run_json(run: Samples) -> dict[str, Any]:
    info, total = run.analysis.info, run.analysis.requests.total
    return {
        "run": info.run,
        "stamp": stamp_of(info),
        "verdict": run.verdict.word,
        "started": info.wall_start_iso,
        "duration_s": round(run.analysis.end_t, 3),
        "seed": info.seed,
        "faults": sum(fault.effective for fault in run.analysis.faults),
        "requests": {
            "started": total.started,
            "exposed": total.exposed,
            "error": total.error,
            "lost": total.lost,
            "lost_not_own_node": total.lost_not_own_node,
        },
    }


def _figure_json(figure: Figure) -> dict[str, Any]:
    test = figure.test
    return {
        "figure": figure.name,
        "unit": figure.unit,
        "word": figure.word,
        "base": _side_json(figure.base),
        "head": _side_json(figure.head),
        "change": _interval_json(figure.change),
        "longer": None if test is None else round(test.longer, 6),
        "p_worse": None if test is None else test.p_worse,
        "p_better": None if test is None else test.p_better,
        "p_adjusted": figure.p_adjusted,
        "exact": None if test is None else test.exact,
    }


def _side_json(side: Side) -> dict[str, Any]:
    return {"count": side.count, "endless": side.endless, "typical": _interval_json(side.typical)}


def _interval_json(interval: Interval | None) -> dict[str, float | None] | None:
    if interval is None:
        return None
    found = {"value": interval.value, "low": interval.low, "high": interval.high}
    return {name: round(value, 6) if math.isfinite(value) else None for name, value in found.items()}
