"""The rehearsal on a cluster that forgets its deployments with its master: each kind finds what it is to hit."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rig.cli.serving import until_serving
from rig.nodes.open import open_nodes
from rig.targets.now import instances_by_any
from rig.targets.target import open_target

A, B = "lab/tiny-a", "lab/tiny-b"
PLAN = "name: two\nkinds:\n  master-crash: {hold: 2s}\n  runner-kill: {}\n"


@pytest.mark.asyncio
async def test_a_runner_is_killed_before_the_deployments_go_with_the_master(start: Any, tmp_path: Path) -> None:
    cluster = await start(nodes=3, behaviour="exo-0.3.70")
    await cluster.deploy(A)
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    words = ["doctor", "--rehearse", "-i", str(cluster.folder / "inventory.yaml"), "-f", str(plan), "--yes", "--json"]
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-m", "rig", *words], capture_output=True, text=True, timeout=300, check=False
    )
    rehearsed = {one["kind"]: (one["state"], one["as_wanted"]) for one in json.loads(done.stdout)["rehearsed"]}
    assert rehearsed == {
        "runner-kill": ("healed", True),
        "master-crash": ("healed", True),
        "control": ("ineffective", True),
    }
    assert done.returncode == 0


@pytest.mark.asyncio
async def test_what_serves_is_waited_for_and_what_does_not_is_named(cluster: Any) -> None:
    said: list[str] = []
    target = open_target("exo")
    async with open_nodes(cluster.inventory) as nodes:
        entries = {name: conn.node.api for name, conn in nodes.items()}

        async def serve(*models: str, limit_s: float) -> list[str]:
            stop = asyncio.Event()
            now = lambda: instances_by_any(target, nodes)  # noqa: E731 (as the rehearsal hands it over)
            return await until_serving(models, entries, now, stop, said.append, limit_s=limit_s)

        try:
            posted = await cluster.request("POST", "node-1", "/deployments", {"model_id": A, "min_nodes": 1})
            assert posted[0] == 200
            assert await serve(A, limit_s=60.0) == []
            assert (await cluster.chat("node-1", A, max_tokens=1))[0] == 200
            assert await serve(A, "lab/too-big", limit_s=6.0) == ["lab/too-big"]
        finally:
            await target.close()
    assert said == ["waiting until lab/too-big serve (5 of at most 6 s)"]
