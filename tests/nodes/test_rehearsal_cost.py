"""A rehearsed restart may cost what was deployed: exo 0.3.70 forgets it. The doctor says so; it is not simply ready."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aiohttp import web

from rig.cli.doctor import restart_each, verdict_line
from rig.cli.reach import Reach
from rig.errors import LeaseError
from rig.nodes.lock import hold_locks
from rig.nodes.open import open_nodes
from rig.nodes.upload import upload
from tests.nodes.fakeexo import FakeExo
from tests.nodes.servers import SshServer
from tests.observe.api import Api

MODELS = ["lab/a", "lab/b"]


@pytest.mark.parametrize("remembered", [True, False])
async def test_what_the_restarts_cost(
    server: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, remembered: bool
) -> None:
    monkeypatch.setattr("rig.cli.doctor.KNOWN_AGAIN_S", 0.0)
    exo = FakeExo(tmp_path / "exo")
    try:
        first = exo.start().pid

        async def deployments(request: web.Request) -> web.Response:
            del request
            listed = MODELS if remembered or (exo.home / "exo.pid").read_text() == str(first) else []
            return web.Response(
                body=json.dumps([{"deploymentId": model, "modelId": model} for model in listed]).encode()
            )

        api = Api(answers={"/deployments": deployments})
        await api.start()
        try:
            inventory = server.inventory(n1=server.node(process=exo.process(), api=api.url))
            cost = await restart_each(Reach("nodes.yaml", inventory), yes=True)
        finally:
            await api.stop()
        assert exo.wait(unlike=first).is_running()
    finally:
        exo.kill()
    [finding] = cost
    assert (finding.check, finding.level) == ("deployments", "ok" if remembered else "warn")
    line = verdict_line(cost)
    assert line == ("ready" if remembered else "ready; but the rehearsed restarts lost what was deployed: lab/a, lab/b")


async def test_no_restart_under_the_lock_of_another(server: SshServer, tmp_path: Path) -> None:
    exo = FakeExo(tmp_path / "exo")
    try:
        main = exo.start()
        inventory = server.inventory(n1=server.node(process=exo.process()))
        async with open_nodes(inventory) as nodes:
            await upload(nodes["n1"])
            async with hold_locks(nodes, "a run", owner="ann@desk:1"):
                with pytest.raises(LeaseError, match="locked by ann@desk:1 for run a run"):
                    await restart_each(Reach("nodes.yaml", inventory), yes=True)
        assert exo.wait().pid == main.pid
    finally:
        exo.kill()
