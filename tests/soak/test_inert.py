"""The negative control: on nodes where `kill` and the packet filter do nothing, no fault may count."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rig.lab.embedded.sampler import read_samples
from tests.soak.endings import Ending, label
from tests.soak.lane import Lane, end_lane, start_lane, start_soak, write_workload
from tests.soak.witness import resolution_s, spells

KINDS: tuple[str, ...] = ("node-crash", "master-crash", "freeze", "runner-kill", "partition")
_PLAN = """\
name: all-kinds
gap: 4s
baseline: 4s
settle: 4m
kinds:
  node-crash: {hold: 20s}
  master-crash: {hold: 20s}
  freeze: {hold: 20s}
  runner-kill: {}
  partition: {hold: 20s}
"""


@dataclass(frozen=True)
class Inert:
    commands: str

    def __call__(self, lane: Lane, work: Path) -> Ending:
        """The lane is not used: the cluster is one whose commands do nothing."""
        inert = start_lane(work / "inert", inert=self.commands)
        begun = time.monotonic()
        try:
            plan = work / "plan.yaml"
            plan.write_text(_PLAN)
            options = ("-i", inert.inventory, "-w", str(write_workload(work)), "-f", str(plan), "--minutes", "0.75")
            soak = start_soak(work, *options)
            try:
                code = soak.wait()
            finally:
                soak.end()
            samples = list(read_samples(inert.folder))
            hit = [spell for kind in ("freeze", "node-crash", "partition") for spell in spells(samples, kind)]
            return Ending(
                code=code,
                out=soak.out,
                err=soak.err,
                run=soak.folder,
                acted=begun,
                ended=time.monotonic(),
                spells=[spell for spell in hit if spell.since >= begun],
                resolution_s=resolution_s(samples, begun),
                left=soak.left(),
                held=[*inert.leases(), *inert.locks()],
            )
        finally:
            end_lane(inert)


@pytest.mark.parametrize("act", [Inert("kill,nft,pfctl")], ids=label)
def test_every_fault_is_ineffective_and_the_soak_fails(ending: Ending) -> None:
    assert ending.spells == [], "something was hit after all"
    assert ending.code == 1, ending.err
    told: list[dict[str, Any]] = ending.summary["faults"]
    faults = [fault for fault in told if fault["reason"] != "the run was stopped before the strike"]
    assert {fault["kind"] for fault in faults} == set(KINDS)
    for fault in faults:
        assert (fault["state"], fault["effective"], fault["struck_t"]) == ("ineffective", False, None), fault
        assert fault["reason"]
    checks = {check["name"]: check for check in ending.summary["checks"]}
    assert checks["faults-effective"]["status"] == "fail"
    assert f"{len(faults)} of {len(faults)} faults had no effect" in checks["faults-effective"]["summary"]
    assert checks["every-kind-struck"]["status"] == "fail"
    assert {
        row["kind"]: (row["effective"], row["ineffective"] > 0) for row in ending.summary["kinds"]
    } == dict.fromkeys(KINDS, (0, True))
    assert ending.held == []
