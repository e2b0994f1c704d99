"""All checks, and what follows from them: the verdict of a run and its exit code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from rig.analysis.analyse import Analysis
from rig.analysis.checks import answers, faults, recoveries, requests, rig, timing
from rig.analysis.checks.check import Check, CheckResult, evidence
from rig.analysis.checks.needs import NEEDS
from rig.analysis.checks.of_target import checks_of_target
from rig.errors import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN
from rig.journal.records import Facet
from rig.targets import registry


def checks_of(target: str) -> tuple[Check, ...]:
    """Those of a run on this target, in the order of reports."""
    its = checks_of_target(target)
    return (
        *requests.CHECKS,
        *answers.CHECKS,
        *faults.CHECKS,
        *recoveries.CHECKS,
        *its.own,
        *its.symptoms,
        *rig.CHECKS,
        *timing.CHECKS,
    )


def known_checks() -> tuple[Check, ...]:
    """Those of runs on any target, each name once."""
    return tuple({check.name: check for target in registry.NAMES for check in checks_of(target)}.values())


_OF_REQUESTS: Final = frozenset(check.name for check in requests.CHECKS)
"""These leave out by themselves what failed once a lock was lost: it is void."""

Word: TypeAlias = Literal["pass", "fail", "unknown"]
EXIT_CODES: Final[dict[Word, int]] = {"pass": EXIT_PASS, "fail": EXIT_FAIL, "unknown": EXIT_UNKNOWN}


@dataclass(frozen=True)
class Verdict:
    word: Word
    checks: tuple[CheckResult, ...]

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.word]


def verdict_of(analysis: Analysis, checks: tuple[Check, ...] | None = None) -> Verdict:
    """The worst of fail > unknown > pass. Not exercised is neutral, unless the plan requires the check."""
    results = tuple(
        _unless_unlocked(run_check(check, analysis), analysis)
        for check in checks or checks_of(analysis.settings.target)
    )
    known = {result.name for result in results}
    required = set(analysis.settings.requires)
    unmet = [result for result in results if result.status == "not-exercised" and result.name in required]
    statuses = {result.status for result in results}
    if "fail" in statuses:
        return Verdict("fail", results)
    if "unknown" in statuses or unmet or required - known or "pass" not in statuses:
        return Verdict("unknown", results)
    return Verdict("pass", results)


def _unless_unlocked(result: CheckResult, analysis: Analysis) -> CheckResult:
    """Once another rig may have been at work, nothing but a request that was lost before can fail the target."""
    if analysis.unlocked_t is None or result.status != "fail" or result.name in _OF_REQUESTS:
        return result
    said = f"{result.summary}; but since {analysis.unlocked_t:.1f} s another rig may have been at work on the nodes"
    return replace(result, status="unknown", summary=said)


def run_check(check: Check, analysis: Analysis) -> CheckResult:
    """A check that crashes has found out nothing: unknown. Whatever it raises must not cost the report. So has one that
    needs answers of the target which the rig did not understand.
    """
    try:
        answer = check.judge(analysis)
    except Exception as error:
        return CheckResult(check.name, check.promise, "unknown", f"the check crashed: {error!r}", ())
    if blind := analysis.watch.blind.lines(_needs(check, analysis)):
        summary = f"it needs what was not understood; {answer.status} by the rest: {answer.summary}"
        return CheckResult(check.name, check.promise, "unknown", summary, evidence([*blind, *answer.evidence]))
    return CheckResult(check.name, check.promise, answer.status, answer.summary, answer.evidence)


def _needs(check: Check, analysis: Analysis) -> frozenset[Facet] | None:
    return NEEDS.get(check.name, checks_of_target(analysis.settings.target).needs.get(check.name))
