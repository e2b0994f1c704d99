"""Whom the rig restarts when the target does not recover: wedged ranks that are not master first, the master last."""

from __future__ import annotations

from pathlib import Path

import pytest

from rig.config.inventory import Embedded
from rig.config.workload import Lengths, Workload
from rig.faults.plan.plan import KindPlan, Plan
from rig.journal.read import read_run
from rig.journal.records import Finding, Unwedged
from rig.lab.simulated.soak import simulated_soak
from rig.observe.masters import masters_at
from rig.soak import unwedging
from rig.targets.exo.fields import ExoModel

RING = Workload(
    name="ring", models=[ExoModel(model="lab/tiny-b", min_nodes=3)], clients=3, output_tokens=Lengths(low=3, high=6)
)
FREEZES = Plan(
    name="freezes", gap=(10.0, 20.0), baseline=30.0, settle=90.0, kinds={"freeze": KindPlan(hold=(45.0, 45.0))}
)


@pytest.mark.parametrize(
    ("wedged", "masters", "stages"),
    [
        (["a", "b"], {"a"}, [["b"], ["a"], ["a", "b", "c"]]),
        (["a", "b", "c"], {"b"}, [["a", "c"], ["b"], ["a", "b", "c"]]),
        (["b"], {"a"}, [["b"], ["b", "c"], ["a", "b", "c"]]),
        (["b", "c"], {"a"}, [["b", "c"], ["a", "b", "c"]]),
        (["a"], {"a"}, [["a"], ["a", "b", "c"]]),
        (["a", "b"], set[str](), [["a", "b"], ["a", "b", "c"]]),  # nobody knows who is master
        (["a", "b", "c"], {"a", "b", "c"}, [["a", "b", "c"]]),
    ],
)
def test_the_master_is_last(wedged: list[str], masters: set[str], stages: list[list[str]]) -> None:
    assert unwedging.restart_stages(wedged, ["a", "b", "c"], masters) == stages


def test_a_wedged_ring_over_all_nodes_is_freed_without_its_master(tmp_path: Path) -> None:
    """A soak of what exo 0.3.70 does, under virtual time; the ring spans all three nodes, so the master is in it."""
    folder = tmp_path / "run"
    folder.mkdir()
    spec = Embedded(behaviour="exo-0.3.70", pace=6.0, seed=3)
    simulated_soak(spec, RING, FREEZES, length_s=120.0, folder=folder, seed=3, limit_s=200.0)
    records = list(read_run(folder).records())
    restarts = [record for record in records if isinstance(record, Unwedged)]
    assert restarts, "nothing was wedged: the case shows nothing"
    for fault in {record.fault for record in restarts}:
        of_fault = sorted((record for record in restarts if record.fault == fault), key=lambda one: one.started_t)
        masters = masters_at(records, of_fault[0].started_t)
        first = {one.node for one in of_fault if one.started_t < of_fault[0].started_t + 0.5}
        assert not first & masters
        assert {one.node for one in of_fault if one.master} <= {
            str(finding.data["node"])
            for finding in records
            if isinstance(finding, Finding) and finding.code == "unwedged-master" and finding.data["fault"] == fault
        }
