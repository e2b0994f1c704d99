"""The rehearsal: one of each kind, and a control that must be found to have no effect."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from itertools import islice
from pathlib import Path

from rig.config.inventory import Embedded, Inventory
from rig.faults.plan.read import load_plan
from rig.faults.plan.registry import KINDS
from rig.injection.fault import Identity
from rig.injection.rehearsal import one_of_each, rehearse_control, rehearse_fault
from rig.injection.schedule import draw
from rig.nodes.open import open_nodes
from rig.nodes.upload import upload
from tests.injection.rigs import Rig

THREE = Inventory(name="e", embedded=Embedded(nodes=3))
NOW = Identity(run="rehearsal", owner="me@here")


def test_one_of_each_kind_as_the_schedule_would_strike_it() -> None:
    plan = load_plan("all")
    chosen = one_of_each(plan, THREE, ["m"])
    assert [one.kind.name for one in chosen] == ["runner-kill", *(kind for kind in plan.kinds if kind != "runner-kill")]
    assert {one.kind.name for one in chosen} == set(KINDS)
    assert all(2.0 <= one.hold_s <= 5.0 for one in chosen if one.kind.hold != "none")
    first = {one.kind: one for one in reversed(list(islice(draw(plan, THREE, ["m"], plan.seed), 200)))}
    assert [one.aim for one in chosen] == [first[one.kind].aim for one in chosen]


async def test_a_fault_is_healed_and_the_control_is_ineffective(rig: Rig) -> None:
    inventory = rig.server.inventory(n1=rig.node())
    async with open_nodes(inventory) as nodes:
        await upload(nodes["n1"])
        [planned] = one_of_each(
            load_plan("keeper").model_copy(update={"kinds": {"freeze": load_plan("keeper").kinds["freeze"]}}),
            inventory,
            [],
        )
        context, stop = rig.context(nodes), asyncio.Event()
        struck = await rehearse_fault(planned, context, rig.journal, NOW, stop)
        assert (struck.state, struck.as_wanted) == ("healed", True)
        control = await rehearse_control(inventory, "n1", context, rig.journal, NOW, stop)
    assert (control.state, control.as_wanted) == ("ineffective", True)
    assert "not stopped" in control.reason
    assert not (rig.rig_dir / "inert").exists()


def test_the_command_says_what_it_found(rig: Rig, tmp_path: Path) -> None:
    inventory, plan = tmp_path / "inventory.yaml", tmp_path / "plan.yaml"
    inventory.write_text(json.dumps({"name": "test", "nodes": {"n1": rig.node().model_dump()}}))
    plan.write_text("name: small\nkinds:\n  freeze: {hold: 2s}\n  cpu-hog: {hold: 2s, load: 1}\n  runner-kill: {}\n")
    words = ["doctor", "--rehearse", "-i", str(inventory), "-f", str(plan), "--yes", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "rig", *words], capture_output=True, text=True, timeout=200, check=False
    )
    told = json.loads(done.stdout)
    levels = {one["check"]: one["level"] for one in told["findings"]}
    assert levels["api"] == "fail"  # there is no API here, so nothing is rehearsed
    assert (done.returncode, told["rehearsed"]) == (3, [])
    assert {"sudo", "guard", "home", "wall clock"} <= levels.keys()
