"""Why a run ended as it did, in a few lines: failed checks with their first evidence, then the headline figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rig.analysis.analyse import Analysis
from rig.analysis.checks.check import Status
from rig.analysis.kinds import times
from rig.analysis.recovery.decision import Recovery
from rig.analysis.verdict import Verdict
from rig.report.figures import COUNTS, KIND, RUN
from rig.report.table import Table, cells, column
from rig.report.tables import struck
from rig.report.words import figure
from rig.written import duration

HEADLINE: Final = "neither result nor error"


@dataclass(frozen=True)
class Reason:
    """A check to which the verdict is due. `evidence` is its first line, empty without any; `more` follow it."""

    check: str
    status: Status
    summary: str
    evidence: str = ""
    more: bool = False

    @property
    def found(self) -> str:
        """The result and the evidence on one line."""
        if not self.evidence:
            return self.summary
        return f"{self.summary} ({self.evidence}{'; …' if self.more else ''})"

    def __str__(self) -> str:
        return f"{self.check}: {self.found}"


def reasons(analysis: Analysis, verdict: Verdict) -> list[Reason]:
    """The failed checks; without any, those that make the verdict unknown. Empty for a pass."""
    if verdict.word == "pass":
        return []
    required = set(analysis.settings.requires)
    missing = sorted(required - {check.name for check in verdict.checks})
    status: Status = "fail" if verdict.word == "fail" else "unknown"
    listed = [
        Reason(check.name, check.status, check.summary, next(iter(check.evidence), ""), len(check.evidence) > 1)
        for check in verdict.checks
        if check.status == status
    ]
    if status == "fail":
        return listed
    listed += [
        Reason(check.name, "unknown", f"the plan requires it, but {check.summary}")
        for check in verdict.checks
        if check.name in required and check.status == "not-exercised"
    ]
    return [*listed, *(Reason(name, "unknown", "the plan requires it, but there is no such check") for name in missing)]


def counted(verdict: Verdict) -> str:
    """`3 checks failed, 2 unknown, 28 passed, 11 not exercised`."""
    words: tuple[tuple[Status, str], ...] = (
        ("fail", "failed"), ("unknown", "unknown"), ("pass", "passed"), ("not-exercised", "not exercised"),
    )  # fmt: skip
    statuses = [check.status for check in verdict.checks]
    parts = [f"{statuses.count(status)} {word}" for status, word in words if status in statuses]
    return f"Checks: {', '.join(parts)}."


def summary(analysis: Analysis) -> Table:
    """The run in one row: duration, requests, faults, and requests with neither a result nor an error."""
    headline = COUNTS["lost_not_own_node"]
    columns = (
        *map(column, (RUN["name"], RUN["duration_s"], COUNTS["started"])),
        column(KIND["effective"], "faults"),
        column(headline, HEADLINE),
    )
    total = analysis.requests.total
    row = (
        *cells((RUN["name"], RUN["duration_s"]), analysis),
        COUNTS["started"].write(total),
        f"{len(struck(analysis))}",
        headline.write(total),
    )
    return Table("Summary", columns, (row,))


def headlines(analysis: Analysis) -> list[str]:
    """How models came back, and what the errors were, a line each."""
    recoveries = analysis.recoveries
    lines = [_line("instance survived", "survived", recoveries), _line("instance replaced", "replaced", recoveries)]
    lines.append(_not_recovered(recoveries))
    rest = [recovery for recovery in recoveries if recovery.recovery_class in ("censored", "unknown")]
    if rest:
        cut = sum(recovery.recovery_class == "censored" for recovery in rest)
        lines.append(f"not known: {cut} cut short by another fault or the end, {len(rest) - cut} by which instance")
    return [*(lines if recoveries else []), errors(analysis)]


def _line(title: str, name: Literal["survived", "replaced"], recoveries: Sequence[Recovery]) -> str:
    some = [recovery for recovery in recoveries if recovery.recovery_class == name]
    serve = times(some).time_to_serve
    if not some:
        return f"{title}: never"
    worst = f", worst {figure(serve.worst)}" if len(some) > 1 else ""
    word = "median " if len(some) > 1 else ""
    return f"{title}: {_often(len(some))}, time to serve {word}{figure(serve.median)}{worst}"


def _not_recovered(recoveries: Sequence[Recovery]) -> str:
    some = [recovery for recovery in recoveries if recovery.recovery_class == "not recovered"]
    if not some:
        return "not recovered: never"
    after = sorted({f"{recovery.fault} ({recovery.fault_kind})" for recovery in some})
    stepped = sum(recovery.unwedged for recovery in some)
    return (
        f"not recovered: {_often(len(some))}, watched for up to {duration(max(r.at_least_s for r in some))} after "
        f"the heal, after faults {', '.join(after[:5])}{' …' if len(after) > 5 else ''}"
        + (f"; the rig unwedged {stepped}" if stepped else "")
    )


def _often(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def errors(analysis: Analysis) -> str:
    """An error is an answer: the client was told. When, in parts that add up."""
    total, calm = analysis.requests.total, analysis.requests.calm
    if not total.error:
        return "no errors"
    own = total.error_own_node
    parts = (
        (own, "while its node was down"),
        (total.error - own - calm.error, "around other faults"),
        (calm.error, "in calm weather"),
    )
    return f"{total.error} errors, each told to its client: " + ", ".join(f"{n} {when}" for n, when in parts if n)
