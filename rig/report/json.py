"""A report for programs: `summary.json`. `docs/schema.md` documents its keys, `rig.report.figures` has them all."""

from __future__ import annotations

from typing import Any

import msgspec

from rig.analysis.analyse import Analysis
from rig.analysis.verdict import Verdict
from rig.report.figures import REPORT, Reported


def report_json(analysis: Analysis, verdict: Verdict) -> dict[str, Any]:
    """Plain values only. Durations in seconds, moments in seconds since the start; infinite and unknown are null."""
    return REPORT.plain(Reported(analysis, verdict))


def report_bytes(analysis: Analysis, verdict: Verdict) -> bytes:
    return msgspec.json.format(msgspec.json.encode(report_json(analysis, verdict)), indent=2) + b"\n"
