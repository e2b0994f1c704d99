"""`rig show`: the timeline around one fault or one request."""

from __future__ import annotations

import sys

from rig.errors import UsageError
from rig.journal.read import read_run
from rig.report.find import find_run
from rig.report.timeline import fault_timeline, overview, request_timeline
from rig.report.words import stamp_of


def show(*, run: str, fault: int | None = None, request: str | None = None) -> int:
    """Print it; without a fault or a request, the phases and faults of the run. Raises RigError."""
    if fault is not None and request is not None:
        raise UsageError("give --fault or --request, not both")
    found = read_run(find_run(run))
    pace = max(found.info.pace, 1.0)
    if fault is not None:
        lines = fault_timeline(found.records, fault, pace=pace)
    elif request is not None:
        lines = request_timeline(found.records, request, pace=pace)
    else:
        lines = overview(found.records)
    stamped = stamp_of(found.info)
    sys.stdout.write("\n".join([*([stamped] if stamped else []), *lines]) + "\n")
    return 0
