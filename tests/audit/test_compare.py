"""Accounts that agree, and what may be missing from one of them for a reason."""

from __future__ import annotations

import pytest

from rig.embedded import ledger
from rig.journal.records import RunEnded
from tests.audit.compare import compare
from tests.audit.falsify import closed, without, without_end
from tests.audit.story import agreeing
from tests.audit.world import WALL, ZERO


def test_three_accounts_that_agree() -> None:
    findings = compare(agreeing().rig(), agreeing().cluster())
    assert findings.differences == []
    compared = {row.title: row.compared for row in findings.rows}
    assert compared["requests completed"] == 2
    assert compared["requests lost: hung"] == 2
    assert compared["requests of the ledger"] == 11
    assert compared["faults: from plan to end"] == 4
    assert compared["cluster: processes in state T"] == 7
    assert compared["cluster: processes that ended"] == 13
    assert compared["cluster: packet-filter rules"] == 4
    assert {row.title: dict(row.explained) for row in findings.rows if row.title == "requests error"} == {
        "requests error": {"the connection broke: the main died": 1, "refused: the main was not there": 1}
    }


def test_the_end_of_a_run_that_was_interrupted_may_be_missing() -> None:
    world = agreeing()
    without_end("r1")(world)
    without(lambda record: isinstance(record, RunEnded))(world)
    assert compare(world.rig(), world.cluster()).differences == []
    rows = {row.title: row for row in compare(world.rig(), world.cluster()).rows}
    assert rows["requests unfinished"].explained == {"the run was interrupted": 1}


def test_an_end_after_the_client_had_left_at_its_deadline() -> None:
    world = agreeing()
    closed("r5", end="finished", finish_reason="stop", t=ZERO + 8.01)(world)
    rows = {row.title: row for row in compare(world.rig(), world.cluster()).rows}
    assert rows["requests lost: hung"].explained == {"the end was sent after the client had left": 1}


def test_a_clock_is_mapped_by_what_was_told_nearest_to_the_start() -> None:
    world = agreeing()
    late = ledger.Opened(t=ZERO + 40.0, node="node-1", process="exo", pid=9, wall_offset_s=WALL - ZERO + 3.0)
    world.files["node-1", "exo", 9] = [late]
    assert world.cluster().zero == pytest.approx(ZERO)
