"""Runs beside a base: what got worse beyond noise.

Each figure is judged by a rank test; all figures of all runs together by Holm's procedure, so that when nothing changed
the chance that anything is called worse is at most `ALPHA`. And a difference must be large enough to matter. Half of
`ALPHA` is kept for the headline, the time to serve over all kinds of faults.

A verdict that is fail now and was not before is no matter of chance: a promise was broken. That is worse by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Final, Literal, TypeAlias

from rig.compare.comparable import aborted, objections, remarks
from rig.compare.holm import adjusted, rejected
from rig.compare.ranks import RankTest, Stratum, rank_test
from rig.compare.resample import Interval, median_of, ratio_of_means, ratio_of_medians, typical_ratio
from rig.compare.samples import GROUPS, Samples, read_samples
from rig.errors import UsageError
from rig.written import duration

ALPHA: Final = 0.02
HEADLINE_WEIGHT: Final = 1.0  # as much as all other figures of a run together
LEAST_CHANGE: Final = 0.1  # 10 % longer
LEAST_ENDLESS: Final = 0.05  # or 5 % more of those that never ended
LEAST_COUNT: Final = 3

Unit: TypeAlias = Literal["s", "per fault", "share"]
Word: TypeAlias = Literal["worse", "better", "alike", "unclear", "too few"]
"""`alike`: the interval shows that no difference is large enough to matter; `unclear`: it does not show that."""


@dataclass(frozen=True, slots=True)
class Side:
    """Of one run: how many values, how many of them never ended, the median (of counts: the mean, no interval)."""

    count: int
    endless: int
    typical: Interval | None


@dataclass(frozen=True, slots=True)
class Figure:
    """`change` is head over base. `p` is that of the rank test, `p_adjusted` after Holm; both for `worse`."""

    name: str
    unit: Unit
    base: Side
    head: Side
    change: Interval | None
    test: RankTest | None
    p_adjusted: float | None = None
    word: Word = "too few"


@dataclass(frozen=True, slots=True)
class Against:
    """One run against the base. `objections` are not empty only where comparing was forced."""

    head: Samples
    objections: tuple[str, ...]
    remarks: tuple[str, ...]
    figures: tuple[Figure, ...]
    checks: tuple[tuple[str, str, str], ...]  # name, in the base, in the head: where they differ
    verdict_broke: str | None  # what the verdict was in the base, where it is fail here and was not

    @property
    def worse(self) -> list[str]:
        """What got worse, by name. A run that had to be aborted is the worst of all."""
        named = [figure.name for figure in self.figures if figure.word == "worse"]
        if self.verdict_broke is not None:
            failed = ", ".join(check.name for check in self.head.verdict.checks if check.status == "fail")
            named.insert(0, f"verdict: {self.verdict_broke}, now fail ({failed})")
        if aborted(self.head) and (ended := self.head.analysis.ended) is not None:
            named.insert(0, f"aborted after {duration(ended.t)}: {ended.detail or 'no reason given'}")
        return named

    @property
    def better(self) -> list[str]:
        return [figure.name for figure in self.figures if figure.word == "better"]


@dataclass(frozen=True, slots=True)
class Comparison:
    base: Samples
    against: tuple[Against, ...]

    @property
    def regressed(self) -> bool:
        return any(one.worse for one in self.against)


def compare_folders(folders: Sequence[Path], *, force: bool = False) -> Comparison:
    """The first is the base. Raises UsageError when runs cannot be compared and that is not forced, JournalError."""
    if len(folders) < 2:
        raise UsageError("comparing takes at least two runs", remedy="rig compare BASE HEAD")
    return compare(read_samples(folders[0]), [read_samples(folder) for folder in folders[1:]], force=force)


def compare(base: Samples, heads: Sequence[Samples], *, force: bool = False) -> Comparison:
    """Raises UsageError when runs cannot be compared and that is not forced."""
    refused = [tuple(objections(base, head)) for head in heads]
    if any(refused) and not force:
        why = "".join(
            f"\n  {base.name} and {head.name}: {line}"
            for head, lines in zip(heads, refused, strict=True)
            for line in lines
        )
        raise UsageError(f"these runs cannot be compared:{why}", remedy="choose runs of one kind, or give --force")
    drafts = [_figures(base, head) for head in heads]
    judged = _judge([draft for drafts_of_one in drafts for draft in drafts_of_one])
    found: list[Against] = []
    for head, lines, mine in zip(heads, refused, drafts, strict=True):
        figures, judged = judged[: len(mine)], judged[len(mine) :]
        found.append(
            Against(
                head,
                lines,
                tuple(remarks(base.analysis, head.analysis)),
                tuple(figures),
                _changed_checks(base, head),
                verdict_broke=_broken(base, head),
            )
        )
    return Comparison(base, tuple(found))


def _broken(base: Samples, head: Samples) -> str | None:
    before, now = base.verdict.word, head.verdict.word
    return before if now == "fail" and before != "fail" else None


@dataclass
class _Draft:
    name: str
    unit: Unit
    strata: list[Stratum] = field(default_factory=list[Stratum])
    weight: float = 0.0  # 0: one share of what the headline leaves


def _figures(base: Samples, head: Samples) -> list[_Draft]:
    kinds = list(dict.fromkeys([*base.outage, *head.outage]))
    drafts = [_Draft("time to serve", "s", _strata(kinds, base.serve, head.serve), weight=HEADLINE_WEIGHT)]
    for kind in kinds:
        drafts.append(_Draft(f"time to serve, {kind}", "s", _strata([kind], base.serve, head.serve)))
        drafts += [
            _Draft(
                f"time to serve, {kind}, {group}",
                "s",
                [Stratum(base.serve_by_group.get((kind, group), []), head.serve_by_group.get((kind, group), []))],
            )
            for group in GROUPS
        ]
    drafts.append(_Draft("outage", "s", _strata(kinds, base.outage, head.outage)))
    drafts.append(_Draft("errors and lost", "per fault", _strata(kinds, base.failed, head.failed)))
    drafts.append(_Draft("lost", "per fault", _strata(kinds, base.lost, head.lost)))
    drafts.append(_Draft("failing in calm weather", "share", [Stratum(base.failing, head.failing)]))
    for model in dict.fromkeys([*base.models, *head.models]):
        drafts.append(_Draft(f"TTFT, {model}", "s", _strata([model], base.ttft, head.ttft)))
        drafts.append(_Draft(f"ITL, {model}", "s", _strata([model], base.itl, head.itl)))
    return [draft for draft in drafts if any(stratum.base or stratum.head for stratum in draft.strata)]


def _strata(
    kinds: Sequence[str], base: Mapping[str, Sequence[float]], head: Mapping[str, Sequence[float]]
) -> list[Stratum]:
    return [Stratum(base.get(kind, []), head.get(kind, [])) for kind in kinds]


def _judge(drafts: Sequence[_Draft]) -> list[Figure]:
    """All together: what stands out must stand out among all that was looked at."""
    figures = [_figure(draft) for draft in drafts]
    enough = [index for index, figure in enumerate(figures) if _enough(figure)]
    others = sum(not drafts[index].weight for index in enough) or 1
    weights = [drafts[index].weight or 1 / others for index in enough]
    tests = [test for index in enough if (test := figures[index].test) is not None]
    worse = rejected([test.p_worse for test in tests], weights, ALPHA)
    better = rejected([test.p_better for test in tests], weights, ALPHA)
    shown = adjusted([test.p_worse for test in tests], weights)
    for position, index in enumerate(enough):
        figure = figures[index]
        word: Word = "alike" if _alike(figure) else "unclear"
        if worse[position] and _matters(figure, up=True):
            word = "worse"
        elif better[position] and _matters(figure, up=False):
            word = "better"
        figures[index] = Figure(
            figure.name, figure.unit, figure.base, figure.head, figure.change, figure.test, shown[position], word
        )
    return figures


def _enough(figure: Figure) -> bool:
    return figure.test is not None and min(figure.base.count, figure.head.count) >= LEAST_COUNT


def _matters(figure: Figure, *, up: bool) -> bool:
    """Large enough to be worth a word: a tenth more, or a twentieth more that never ended."""
    more = _share(figure.head) - _share(figure.base)
    if figure.change is None:
        return True
    ratio, least = figure.change.value, 1 + LEAST_CHANGE
    return (ratio >= least or more >= LEAST_ENDLESS) if up else (ratio <= 1 / least or more <= -LEAST_ENDLESS)


def _alike(figure: Figure) -> bool:
    """By the whole interval; what never ended must be as frequent, too."""
    change, least = figure.change, 1 + LEAST_CHANGE
    if change is None or abs(_share(figure.head) - _share(figure.base)) >= LEAST_ENDLESS:
        return False
    return 1 / least < change.low and change.high < least


def _share(side: Side) -> float:
    return side.endless / side.count if side.count else 0.0


def _figure(draft: _Draft) -> Figure:
    base = [value for stratum in draft.strata for value in stratum.base]
    head = [value for stratum in draft.strata for value in stratum.head]
    change: Interval | None = None
    if draft.unit != "s":
        change = ratio_of_means(base, head)
    elif len(draft.strata) > 1:
        change = typical_ratio(draft.strata)
    else:
        change = ratio_of_medians(base, head)
    return Figure(
        draft.name, draft.unit, _side(base, draft.unit), _side(head, draft.unit), change, rank_test(draft.strata)
    )


def _side(values: Sequence[float], unit: Unit) -> Side:
    endless = sum(math.isinf(value) for value in values)
    if unit == "s":
        return Side(len(values), endless, median_of(values))
    mean = fmean(values) if values else None
    return Side(len(values), endless, None if mean is None else Interval(mean, mean, mean))


def _changed_checks(base: Samples, head: Samples) -> tuple[tuple[str, str, str], ...]:
    before = {check.name: check.status for check in base.verdict.checks}
    return tuple(
        (check.name, before.get(check.name, "none"), check.status)
        for check in head.verdict.checks
        if check.status != before.get(check.name)
    )
