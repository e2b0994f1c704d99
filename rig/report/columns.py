"""A run as tables: their columns, of which type each is, and the rows. Column files and DataFrames share them.

Names are those of the journal and of the JSON report. What ends in `_t` is a moment in seconds since the start of the
run, what ends in `_s` a duration in seconds, what ends in `_bytes` a size. Every column may be null.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from rig.analysis.analyse import Analysis
from rig.analysis.requests.tally import FaultCounts
from rig.journal.records import RequestEnded, RequestStarted
from rig.report.joined import Joined

Kind: TypeAlias = Literal["string", "bool", "int64", "float64"]
Columns: TypeAlias = Mapping[str, Kind]
Row: TypeAlias = dict[str, Any]

REQUESTS: Final[Columns] = {
    "id": "string", "source": "string", "client": "string", "model": "string", "entry": "string", "streamed": "bool",
    "prompt_tokens": "int64", "max_tokens": "int64", "planned_t": "float64", "started_t": "float64",
    "connected_t": "float64", "first_byte_t": "float64", "first_token_t": "float64", "last_token_t": "float64",
    "last_progress_t": "float64", "ended_t": "float64", "outcome": "string", "how": "string", "own": "string",
    "exposed": "bool", "fault": "int64", "unwedging": "int64", "windows": "string", "status": "int64",
    "response_id": "string", "tokens": "int64", "usage_tokens": "int64", "finish_reason": "string",
    "gap_count": "int64", "gap_sum_s": "float64", "gap_max_s": "float64", "unclean_end": "string", "damaged": "string",
    "own_failure": "string", "evidence": "string",
}  # fmt: skip
FAULTS: Final[Columns] = {
    "fault": "int64", "kind": "string", "aim": "string", "state": "string", "effective": "bool", "model": "string",
    "nodes": "string", "processes_hit": "string", "clients_cut": "string", "hold_s": "float64", "struck_t": "float64",
    "struck_error_s": "float64", "healed_t": "float64", "healed_error_s": "float64", "reason": "string",
    "exposed": "int64", "error": "int64", "lost": "int64", "lost_own_node": "int64",
}  # fmt: skip
RECOVERIES: Final[Columns] = {
    "fault": "int64", "fault_kind": "string", "model": "string", "class": "string", "group": "string",
    "strike_t": "float64", "heal_t": "float64", "until_t": "float64", "time_to_serve_s": "float64",
    "serve_from_strike_s": "float64", "sustained_s": "float64", "sustained_from_strike_s": "float64",
    "at_least_s": "float64", "outage_s": "float64", "silence_s": "float64", "resolution_s": "float64",
    "error_s": "float64", "failures": "int64", "late_failures": "int64", "instance_before": "string",
    "instance_after": "string", "unwedged": "bool", "unwedge_cost_s": "float64",
}  # fmt: skip


def request_row(joined: Joined) -> Row:
    """`outcome` is as the analysis counted it: also void and unfinished. `windows` are numbers of faults with commas:
    those it was in flight in, from the strike to the sustained recovery of its model; null where there was none."""
    start, end, judged = joined.start, joined.end, joined.judged
    row = _of(start, RequestStarted, REQUESTS)
    if end is not None:
        row |= _of(end, RequestEnded, REQUESTS)
        row |= {"gap_count": end.gaps.count, "gap_sum_s": end.gaps.sum_s, "gap_max_s": end.gaps.max_s}
    else:
        row["started_t"] = start.t
    row["outcome"] = joined.fate
    if judged is not None:
        row |= {name: getattr(judged, name) for name in ("own", "exposed", "fault", "unwedging")}
    if joined.windows:
        row["windows"] = ",".join(map(str, joined.windows))
    return row


def _of(record: object, kind: type[msgspec.Struct], columns: Columns) -> Row:
    return {name: getattr(record, name) for name in kind.__struct_fields__ if name in columns}


def fault_rows(analysis: Analysis) -> list[Row]:
    """Lists of nodes are written with commas."""
    rows: list[Row] = []
    for fault in analysis.faults:
        counts = analysis.requests.by_fault.get(fault.number) or FaultCounts()
        row = {name: getattr(fault, name) for name in FAULTS if hasattr(fault, name)}
        row |= {name: ",".join(getattr(fault, name)) for name in ("nodes", "processes_hit", "clients_cut")}
        row |= {name: getattr(counts, name) for name in ("exposed", "error", "lost", "lost_own_node")}
        rows.append(row | {"fault": fault.number})
    return rows


def recovery_rows(analysis: Analysis) -> list[Row]:
    return [
        {name: getattr(recovery, "recovery_class" if name == "class" else name) for name in RECOVERIES}
        for recovery in analysis.recoveries
    ]
