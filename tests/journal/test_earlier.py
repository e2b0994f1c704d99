"""What stood in words in version 1 of the journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rig.journal.read import read_run
from rig.journal.records import AnyRecord, FaultChanged, NodeMemory, NodeProcesses, RequestEnded, Unwedged
from rig.journal.run import RUN_FILE, RunInfo
from rig.journal.write import journal_name

MEMORY = {"kind": "memory", "t": 1.0, "node": "n", "available_bytes": 5, "wired_bytes": None}
PROCESSES = {
    "kind": "processes", "t": 1.0, "node": "n", "main": "7:1", "runners": 1, "orphans": 0, "cpu_s": 2.0, "node_t": 3.0,
    "runner_cpu_s": {"8:1": 0.5},
}  # fmt: skip
ENDED = {"kind": "request_end", "t": 2.0, "id": "r1", "started_t": 1.0, "ended_t": 2.0}
FAULT = {"kind": "fault", "t": 1.0, "fault": 3, "at_t": 1.0}
UNWEDGED = {"kind": "unwedge", "t": 2.0, "fault": 3, "node": "n", "started_t": 1.0, "ended_t": 2.0, "ok": True}


def read(folder: Path, info: RunInfo, *lines: dict[str, Any]) -> list[AnyRecord]:
    described = msgspec.to_builtins(info)
    del described["schema"]
    (folder / RUN_FILE).write_text(json.dumps(described))
    (folder / journal_name(0)).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    run = read_run(folder)
    records = list(run.records())
    assert (run.notes.broken_count, run.notes.unknown) == (0, {})
    return records


@pytest.mark.parametrize(
    ("when", "look", "fault"),
    [
        ("before fault 3", "before", 3),
        ("after fault 12", "after", 12),
        ("before fault -1", "before", -1),
        ("before unwedging after fault 0", "before-unwedging", 0),
        ("idle", "idle", None),
        ("before the scenario", "start", None),
        ("after the scenario", "end", None),
        ("before the crash of node-1", "before", None),
    ],
)
def test_when_a_node_was_inspected(tmp_path: Path, info: RunInfo, when: str, look: str, fault: int | None) -> None:
    memory, processes = read(tmp_path, info, MEMORY | {"when": when}, PROCESSES | {"when": when})
    assert isinstance(memory, NodeMemory)
    assert isinstance(processes, NodeProcesses)
    assert (memory.look, memory.fault, memory.available_bytes) == (look, fault, 5)
    assert (processes.look, processes.fault, processes.worker_cpu_s) == (look, fault, {"8:1": 0.5})
    assert memory.when == processes.when == ("before a fault" if when.endswith("node-1") else when)


@pytest.mark.parametrize(
    ("cause", "evidence", "connected_t"),
    [
        ("connect-deadline", "no connection: ConnectTimeout: not connected within 5.0 s", None),
        ("unconnected", "no connection: ConnectError: refused", None),
        ("broken", "the connection broke: ReadTimeout", 1.5),
        ("message", "the server said: timeout | data: {}", 1.5),
        ("remark", "instead of an answer the server said: wait", 1.5),
        ("status", "HTTP status 404: the server said: no", 1.5),
        ("unparsable", "cannot be parsed: {", 1.5),
        ("unparsable", "not HTTP: \\x00", 1.5),
        ("defect", "defect of the rig: KeyError", 1.5),
        (None, "something else", 1.5),
    ],
)
def test_what_an_error_was(
    tmp_path: Path, info: RunInfo, cause: str | None, evidence: str, connected_t: float | None
) -> None:
    line = ENDED | {"outcome": "error", "evidence": evidence, "connected_t": connected_t}
    error, lost = read(tmp_path, info, line, line | {"outcome": "lost", "how": "hung"})
    assert isinstance(error, RequestEnded)
    assert isinstance(lost, RequestEnded)
    assert (error.cause, error.evidence, lost.cause) == (cause, evidence, None)


def test_what_a_fault_was_to_do_and_why_it_did_not(tmp_path: Path, info: RunInfo) -> None:
    double = {"fault_kind": "double", "state": "struck", "aim": "cpu-hog of node-2 + freeze of node-1"}
    one_way = {"fault_kind": "one-way-partition", "state": "struck", "aim": "node-1 | node-2 (out only)"}
    stopped = {
        "fault_kind": "freeze",
        "state": "skipped",
        "aim": "n",
        "reason": "the run was stopped before the strike",
    }
    skipped = stopped | {"reason": "no runner of it"}
    found = read(tmp_path, info, *(FAULT | more for more in (double, one_way, stopped, skipped)))
    faults = [record for record in found if isinstance(record, FaultChanged)]
    assert [fault.halves for fault in faults] == [{"node-2": "cpu-hog", "node-1": "freeze"}, {}, {}, {}]
    assert [fault.direction for fault in faults] == ["both", "out", "both", "both"]
    assert [fault.stopped for fault in faults] == [False, False, True, False]


def test_what_the_rig_did_to_a_node(tmp_path: Path, info: RunInfo) -> None:
    cut = "cut short by the end of the run: the node's own script goes on, and starts exo again"
    details = ["healed", "exo was gone; started", cut]
    found = read(tmp_path, info, *(UNWEDGED | {"detail": detail} for detail in details))
    unwedged = [record for record in found if isinstance(record, Unwedged)]
    assert [(one.act, one.cut_short) for one in unwedged] == [("restart", False), ("start", False), ("restart", True)]
