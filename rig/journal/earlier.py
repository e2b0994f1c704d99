"""Records as earlier versions of the journal have them, made into what this rig would have written.

In version 1 some facts stood in words alone. Those words are read here and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Union, get_args

import msgspec

from rig.journal.records import (
    AnyRecord,
    Cause,
    FaultChanged,
    Look,
    NodeMemory,
    NodeProcesses,
    Record,
    RequestEnded,
    Unwedged,
)


class _Memory1(Record, frozen=True, kw_only=True, tag="memory"):
    node: str
    when: str
    available_bytes: int | None
    wired_bytes: int | None


class _Processes1(Record, frozen=True, kw_only=True, tag="processes"):
    node: str
    when: str
    main: str | None
    orphans: int
    cpu_s: float | None
    node_t: float
    worker_cpu_s: dict[str, float] = msgspec.field(name="runner_cpu_s", default_factory=dict[str, float])


_WHEN: Final = re.compile(r"(?P<word>before unwedging after|before|after) fault (?P<fault>-?\d+)")
_LOOKS: Final[dict[str, Look]] = {
    "before unwedging after": "before-unwedging",
    "before the scenario": "start",
    "after the scenario": "end",
    "idle": "idle",
}
_CAUSES: Final[dict[str, Cause]] = {
    "HTTP status ": "status",
    "the server said: ": "message",
    "instead of an answer the server said: ": "remark",
    "cannot be parsed: ": "unparsable",
    "not HTTP: ": "unparsable",
    "no connection: ": "unconnected",
    "the connection broke: ": "broken",
    "defect of the rig: ": "defect",
}
_DIRECTION: Final = re.compile(r"\((in|out) only\)$")


def _look(when: str) -> tuple[Look, int | None]:
    match = _WHEN.fullmatch(when)
    word, fault = (when, None) if match is None else (match["word"], int(match["fault"]))
    return _LOOKS.get(word, "after" if word.startswith("after") else "before"), fault


def _inspected(record: _Memory1 | _Processes1) -> AnyRecord:
    fields = msgspec.structs.asdict(record)
    look, fault = _look(fields.pop("when"))
    known = NodeMemory if isinstance(record, _Memory1) else NodeProcesses
    return known(**fields, look=look, fault=fault)


def _ended(record: RequestEnded) -> RequestEnded:
    return msgspec.structs.replace(record, cause=_cause(record)) if record.outcome == "error" else record


def _cause(record: RequestEnded) -> Cause | None:
    if record.connected_t is None and "timeout" in record.evidence.lower():
        return "connect-deadline"
    return next((cause for words, cause in _CAUSES.items() if record.evidence.startswith(words)), None)


def _fault(record: FaultChanged) -> FaultChanged:
    changes: dict[str, Any] = {}
    if record.fault_kind == "double":
        halves = [half.partition(" of ") for half in record.aim.split(" + ")]
        changes["halves"] = {node: kind for kind, _, node in halves}
    if way := _DIRECTION.search(record.aim):
        changes["direction"] = way[1]
    if record.state == "skipped" and record.reason == "the run was stopped before the strike":
        changes["stopped"] = True
    return msgspec.structs.replace(record, **changes) if changes else record


def _unwedged(record: Unwedged) -> Unwedged:
    act = "start" if record.detail == "exo was gone; started" else "restart"
    return msgspec.structs.replace(
        record, act=act, cut_short=record.detail.startswith("cut short by the end of the run")
    )


_RENEW: Final[dict[type, Callable[[Any], AnyRecord]]] = {
    _Memory1: _inspected,
    _Processes1: _inspected,
    RequestEnded: _ended,
    FaultChanged: _fault,
    Unwedged: _unwedged,
}
_KINDS: Final = [kind for kind in get_args(AnyRecord) if kind not in (NodeMemory, NodeProcesses)]
DECODER: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder(Union[_Memory1, _Processes1, *_KINDS])


def renewed(records: list[Any]) -> list[AnyRecord]:
    """What `DECODER` decoded, in the records of this version; in place."""
    for at, record in enumerate(records):
        if (renew := _RENEW.get(type(record))) is not None:  # pyright: ignore[reportUnknownArgumentType]  # any record
            records[at] = renew(record)
    return records
