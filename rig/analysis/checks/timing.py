"""Whether an open loop was sent when it was due: what the rig itself sends late, it must not call the target's.

What was due and never sent is the worst of late: no percentile has it.
"""

from __future__ import annotations

from rig.analysis.analyse import Analysis
from rig.analysis.checks.check import Answer, Check
from rig.load.arrivals import MOST_LATE_S
from rig.written import duration


def load_on_time(analysis: Analysis) -> Answer:
    if not analysis.settings.open_loop:
        return Answer("not-exercised", "not applicable: the load is a closed loop")
    requests = analysis.requests
    (p99_s,), held = requests.late_quantiles((0.99,)), analysis.held_back
    if p99_s is None and held is not None and held.unsent:
        return Answer("unknown", f"{held.unsent} requests were due, but none was sent")
    if p99_s is None:
        return Answer("not-exercised", "no request was sent")
    said = f"p99 {duration(p99_s)}, worst {duration(requests.late_max_s)} after it was due"
    if held is not None and held.held:
        said += f"; {held.held} waited behind {held.bound} in flight, at most {duration(held.longest_s)}"
    if held is not None and held.unsent:
        return Answer("unknown", f"{held.unsent} requests were due but never sent, and are in no figure: {said}")
    if p99_s > MOST_LATE_S:
        return Answer(
            "unknown", f"the rig sent late: {said}; latencies count from when requests were due and include this"
        )
    return Answer("pass", said)


CHECKS = [
    Check(
        "load-on-time",
        "an open loop is sent when it is due: p99 at most 5 ms late, and nothing left unsent",
        load_on_time,
    )
]
