"""A comparison as tables, for the console and for Markdown, and as plain values for programs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from rig.compare.compare import ALPHA, LEAST_CHANGE, Against, Comparison, Figure, Side, Unit, Word
from rig.compare.resample import Interval
from rig.compare.samples import Samples
from rig.report.figures import COUNTS, KIND, RUN
from rig.report.markdown import escape, folded, table_markdown
from rig.report.table import Column, Table, cells, column, plain
from rig.report.tables import struck
from rig.report.words import stamp_of
from rig.written import NOTHING, duration, percent

SCHEMA: Final = 2
_SETTLED: Final[tuple[Word, ...]] = ("worse", "better")
_OTHERS: Final[tuple[Word, ...]] = ("unclear", "alike", "too few")
_COUNTED: Final = tuple(
    COUNTS[name]
    for name in ("exposed", "error", "lost_not_own_node", "lost_own_node", "excluded_share")
)  # fmt: skip


def markdown(comparison: Comparison) -> str:
    """For a pull request: the verdict, the counts, what changed. What did not is folded."""
    parts = [f"## {escape(title(comparison))}"]
    parts += [f"> **{escape(line)}**" for line in stamps(comparison)]
    parts.append("\n".join(f"- {_bold(line)}" for line in conclusions(comparison)))
    parts.append(table_markdown(counts(comparison), titled=False))
    for against in comparison.against:
        parts += [table_markdown(table) for table in changes(comparison, against)]
        others = figures(comparison, against, _OTHERS)
        if others is not None:
            words = Counter(figure.word for figure in against.figures)
            said = ", ".join(f"{words[word]} {word}" for word in _OTHERS if words[word])
            parts.append(folded(f"Other figures, {against.head.name}: {said}", table_markdown(others, titled=False)))
    return "\n\n".join(parts) + "\n"


def _bold(line: str) -> str:
    """What got worse stands out."""
    who, word, rest = line.partition("WORSE: ")
    return f"{escape(who)}**WORSE**: {escape(rest)}" if word else escape(line)


def title(comparison: Comparison) -> str:
    heads = ", ".join(against.head.name for against in comparison.against)
    return f"{heads} against {comparison.base.name}: {'WORSE' if comparison.regressed else 'no regression found'}"


def stamps(comparison: Comparison) -> list[str]:
    return [line for line in dict.fromkeys(stamp_of(run.analysis.info) for run in _all(comparison)) if line]


def tables(comparison: Comparison) -> list[Table]:
    """Everything, for a terminal."""
    found = [counts(comparison)]
    for against in comparison.against:
        others = figures(comparison, against, _OTHERS)
        found += [*([others] if others is not None else []), *changes(comparison, against)]
    return found


def changes(comparison: Comparison, against: Against) -> list[Table]:
    """What got worse or better, and the checks that changed."""
    base, head = comparison.base.name, against.head.name
    found = figures(comparison, against, _SETTLED)
    checks = Table(f"Checks that changed, {head}", plain("check", base, head), against.checks)
    return [*([found] if found is not None else []), *([checks] if against.checks else [])]


def conclusions(comparison: Comparison) -> list[str]:
    """What a reader must know first, a line each."""
    lines: list[str] = []
    for against in comparison.against:
        who = f"{against.head.name} " if len(comparison.against) > 1 else ""
        lines += [f"{who}NOT COMPARABLE ({line}), forced all the same" for line in against.objections]
        changes = {figure.name: _change(figure) for figure in against.figures}
        worse = "; ".join(name + changes.get(name, "") for name in against.worse)
        lines.append(f"{who}WORSE: {worse}" if worse else f"{who}worse: nothing beyond noise")
        if against.better:
            lines.append(f"{who}better: {'; '.join(name + changes[name] for name in against.better)}")
        lines += [f"{who}{line}" for line in against.remarks]
    return lines


def _change(figure: Figure) -> str:
    """` 12.6 s → 19.0 s`."""
    return f" {_middle(figure.base, figure.unit)} → {_middle(figure.head, figure.unit)}"


def _middle(side: Side, unit: Unit) -> str:
    if side.typical is None:
        return NOTHING
    value = side.typical.value
    return duration(value) if unit == "s" else percent(value) if unit == "share" else f"{value:.2g}"


def _all(comparison: Comparison) -> list[Samples]:
    return [comparison.base, *(against.head for against in comparison.against)]


def counts(comparison: Comparison) -> Table:
    """A row a run, the base first."""
    columns = (
        column(RUN["name"]), Column("verdict"), column(RUN["started"]), column(RUN["duration_s"]), column(RUN["seed"]),
        column(COUNTS["started"]), column(KIND["effective"], "faults"), *map(column, _COUNTED), Column("not recovered"),
    )  # fmt: skip
    rows = tuple(
        (
            run.name,
            run.verdict.word,
            *cells((RUN["started"], RUN["duration_s"], RUN["seed"]), run.analysis),
            COUNTS["started"].write(run.analysis.requests.total),
            f"{len(struck(run.analysis))}",
            *cells(_COUNTED, run.analysis.requests.total),
            f"{sum(recovery.recovery_class == 'not recovered' for recovery in run.analysis.recoveries)}",
        )
        for run in _all(comparison)
    )
    return Table("Runs, the base first", columns, rows)


def figures(comparison: Comparison, against: Against, words: Iterable[Word]) -> Table | None:
    """Those with one of these words, in their order; None without any."""
    shown = [figure for word in words for figure in against.figures if figure.word == word]
    if not shown:
        return None
    note = (
        "Median [95 %], mean for counts; n is the number of values, ∞ of which never ended. p: rank test for `worse`, "
        f"then after Holm for all figures together. Worse or better: at {ALPHA:g}, and by at least {LEAST_CHANGE:.0%}. "
        f"Alike: the whole interval is within {LEAST_CHANGE:.0%}; unclear: it is not."
    )
    columns = plain("figure", "base", "n", "head", "n", "head / base", "p", "p, all counted", "")
    name = f"{against.head.name} against {comparison.base.name}"
    return Table(name, columns, tuple(_row(figure) for figure in shown), note)


def _row(figure: Figure) -> tuple[str, ...]:
    test = figure.test
    return (
        figure.name if figure.unit == "s" else f"{figure.name} ({figure.unit})",
        _typical(figure.base, figure.unit),
        _count(figure.base),
        _typical(figure.head, figure.unit),
        _count(figure.head),
        NOTHING if figure.change is None else _between(figure.change, _times),
        NOTHING if test is None else _chance(test.p_worse),
        NOTHING if figure.p_adjusted is None else _chance(figure.p_adjusted),
        figure.word.upper() if figure.word == "worse" else figure.word,
    )


def _typical(side: Side, unit: Unit) -> str:
    found = side.typical
    return _middle(side, unit) if found is None or unit != "s" else _between(found, duration)


def _between(interval: Interval, write: Any) -> str:
    return f"{write(interval.value)} [{write(interval.low)} … {write(interval.high)}]"


def _count(side: Side) -> str:
    return f"{side.count} ({side.endless} ∞)" if side.endless else f"{side.count}"


def _times(ratio: float) -> str:
    return "∞" if math.isinf(ratio) else f"× {ratio:.2f}"  # noqa: RUF001 (a multiplication sign)


def _chance(p: float) -> str:
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.1 else f"{p:.2f}"


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
                "head": _run_json(against.head),
                "objections": list(against.objections),
                "remarks": list(against.remarks),
                "worse": against.worse,
                "better": against.better,
                "checks": [{"check": name, "base": was, "head": now} for name, was, now in against.checks],
                "figures": [_figure_json(figure) for figure in against.figures],
            }
            for against in comparison.against
        ],
    }


def _run_json(run: Samples) -> dict[str, Any]:
    info, total = run.analysis.info, COUNTS.plain(run.analysis.requests.total)
    return {
        "run": run.name,
        "stamp": stamp_of(info),
        "verdict": run.verdict.word,
        "started": info.wall_start_iso,
        "duration_s": round(run.analysis.end_t, 3),
        "seed": info.seed,
        "faults": len(struck(run.analysis)),
        "requests": {name: total[name] for name in ("started", "exposed", "error", "lost", "lost_not_own_node")},
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
