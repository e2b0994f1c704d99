"""Whether an open loop was sent when it was due: what the rig itself sends late, it must not call the target's."""

from __future__ import annotations

from typing import Final

from rig.analysis.analyse import Analysis
from rig.analysis.checks.check import Answer, Check

MOST_LATE_S: Final = 0.005  # at the 99th percentile; the rig's own, so no pace divides it


def load_on_time(analysis: Analysis) -> Answer:
    if not analysis.settings.open_loop:
        return Answer("not-exercised", "a closed loop sends when the answer before has come")
    requests = analysis.requests
    p99_s = requests.late.quantile(0.99)
    if p99_s is None:
        return Answer("not-exercised", "no request was sent")
    said = f"p99 {p99_s * 1000:.1f} ms, worst {requests.late_max_s * 1000:.1f} ms after it was due"
    if p99_s > MOST_LATE_S:
        return Answer("unknown", f"the rig sent late: {said}; latencies from when due include it")
    return Answer("pass", said)


CHECKS = [Check("load-on-time", "an open loop is sent when it is due: p99 at most 5 ms late", load_on_time)]
