"""The audit knows every kind of fault, by what it does: not every kind is struck in a short run."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rig.faults.plan.registry import KINDS
from rig.journal.records import FaultChanged, FaultKind
from rig.lab import ledger
from rig.lab.audit.causes import ACTS
from rig.lab.audit.compare import compare
from rig.lab.audit.faults import NO_WITNESS
from rig.lab.audit.findings import Findings
from rig.lab.audit.story import agreeing
from rig.lab.audit.world import World


def test_what_every_kind_does_is_known() -> None:
    assert {kind.effect for kind in KINDS.values()} <= ACTS.keys()


def retold(world: World, number: int, kind: FaultKind, **changes: Any) -> Findings:
    world.journal[:] = [
        msgspec.structs.replace(record, fault_kind=kind, **changes)
        if isinstance(record, FaultChanged) and record.fault == number
        else record
        for record in world.journal
    ]
    return compare(world.rig(), world.cluster())


def about(findings: Findings, number: int) -> list[str]:
    return [each.cluster for each in findings.differences if each.about.startswith(f"fault {number}")]


@pytest.mark.parametrize("kind", ["master-crash", "fast-master-restart"])
def test_crashes_by_other_names(kind: FaultKind) -> None:
    assert retold(agreeing(), 1, kind).differences == []


def test_halves_of_a_double() -> None:
    assert retold(agreeing(), 1, "double", halves={"node-2": "cpu-hog", "node-1": "node-crash"}).differences == []
    assert about(retold(agreeing(), 1, "double", halves={"node-2": "cpu-hog", "node-1": "freeze"}), 1)


def ended_by_itself(world: World, status: int) -> None:
    """The tree of the crash, as an `exo.stop` ends it: nothing is stopped, each ends in its time."""
    world.samples[:] = [each for each in world.samples if getattr(each, "state", "") != "T" or each.t > 1031]
    for entries in world.files.values():
        entries[:] = [
            msgspec.structs.replace(each, status=status)
            if isinstance(each, ledger.ProcessExited) and each.pid in (100, 101, 102)
            else each
            for each in entries
        ]
    world.files["node-1", "exo", 100].append(ledger.Stopping(t=1030.1, node="node-1", process="exo", pid=100))


def test_a_graceful_stop() -> None:
    world = agreeing()
    ended_by_itself(world, 0)
    assert about(retold(world, 1, "graceful-stop"), 1) == []


def test_a_graceful_stop_that_killed() -> None:
    assert "it was killed" in about(retold(agreeing(), 1, "rolling-restart"), 1)


def test_one_way_is_cut_on_that_way_alone() -> None:
    world = agreeing()
    for entries in world.files.values():
        entries[:] = [
            msgspec.structs.replace(each, rules=[rule for rule in each.rules if " in:" not in rule])
            if isinstance(each, ledger.FilterChanged)
            else each
            for each in entries
        ]
    assert about(retold(world, 3, "one-way-partition", direction="out"), 3) == []
    assert "no rule drops 10.77.0.2 in" in about(retold(world, 3, "partition", direction="both"), 3)


def test_what_nobody_else_sees_is_said_to_be_so() -> None:
    findings = retold(agreeing(), 3, "net-loss")
    assert findings.differences == []
    assert {row.title: dict(row.explained) for row in findings.rows if row.title == "faults: net-loss"} == {
        "faults: net-loss": {NO_WITNESS: 1}
    }
