"""Whether a scripted scenario went as it says."""

from __future__ import annotations

from rig.analysis.analyse import Analysis
from rig.analysis.checks.check import Answer, Check, evidence


def as_expected(analysis: Analysis) -> Answer:
    expected = analysis.watch.expected
    if not expected:
        return Answer("not-exercised", "no scenario was played")
    failed = [one for one in expected if one.status == "fail"]
    if failed:
        lines = [f"step {one.step}, {one.text}: {one.evidence}" for one in failed]
        return Answer("fail", f"{len(failed)} of {len(expected)} expectations failed", evidence(lines))
    open_ = [one for one in expected if one.status == "unknown"]
    if open_:
        lines = [f"step {one.step}, {one.text}: {one.evidence}" for one in open_]
        return Answer("unknown", f"{len(open_)} of {len(expected)} expectations could not be judged", evidence(lines))
    return Answer("pass", f"all {len(expected)} expectations of the scenario held")


CHECKS = [Check("as-expected", "a scripted scenario meets its expectations", as_expected)]
