"""Stock scenarios with exo's own keeper: what it breaks is reported, only there, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from rig.analysis.analyse import analyse_run
from rig.analysis.verdict import verdict_of
from rig.config.inventory import Embedded
from rig.config.workload import Workload
from rig.journal.read import read_run
from rig.lab.exo.defects import Changes
from rig.lab.simulated.verify import simulated_scenario
from rig.targets.exo.fields import ExoModel
from rig.verify.read import load_scenario

WORKLOAD = Workload(name="two", models=[ExoModel(model="lab/tiny-a"), ExoModel(model="lab/tiny-b")])
MENDED = Changes({"keeper_forgets_retry": True})


def raised(folder: Path, name: str, pace: float, changes: Changes) -> set[str]:
    """Checks that fail, or that the scenario proves and that do not know."""
    spec = Embedded(behaviour="upstream", pace=pace, seed=3)
    simulated_scenario(spec, WORKLOAD, load_scenario(name), folder=folder, changes=changes)
    return {
        check.name for check in verdict_of(analyse_run(read_run(folder))).checks if check.status in ("fail", "unknown")
    }


@pytest.mark.parametrize("pace", [1.0, 5.0])
@pytest.mark.parametrize("name", ["instance-deleted", "backoff-reset", "delete-on-its-way", "cannot-place"])
def test_nothing_is_raised_where_it_keeps_its_promises(tmp_path: Path, name: str, pace: float) -> None:
    assert raised(tmp_path, name, pace, Changes()) == set()


@pytest.mark.parametrize(("changes", "broken"), [(Changes(), ["replaced-at-once"]), (MENDED, [])])
def test_a_retry_that_outlives_its_placement_is_found_and_is_what_it_is(
    tmp_path: Path, changes: Changes, broken: list[str]
) -> None:
    assert sorted(raised(tmp_path, "refused-then-lost", 5.0, changes) - {"as-expected"}) == broken
