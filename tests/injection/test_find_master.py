"""Aiming at the master by what real nodes say over SSH."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from rig.injection.aim import CannotAim, find_master
from rig.nodes.open import ShellNodes, open_nodes
from rig.nodes.upload import upload
from tests.nodes.fakeexo import FakeExo
from tests.nodes.servers import SshServer


class Three:
    """Three nodes, each with an exo that runs and has the master's files open; the logs are the test's."""

    def __init__(self, folder: Path) -> None:
        self.server = SshServer(folder / "server")
        self.exos = {name: FakeExo(folder / name, runners=0, master=True) for name in ("a", "b", "c")}

    def log(self, node: str, *lines: str, ago_s: float = 0.0) -> None:
        at = (datetime.now().astimezone() - timedelta(seconds=ago_s)).strftime("%Y-%m-%d %H:%M:%S.000")
        text = "".join(f"{at} | INFO | {line}\n" for line in (f"Starting node id-{node}", *lines))
        (self.exos[node].home / "exo_log" / "exo.log").write_text(text)

    async def find(self, nodes: ShellNodes, stop: asyncio.Event | None = None) -> str:
        for conn in nodes.values():  # one after the other: they share a folder
            await upload(conn)
        return (await find_master(nodes, stop or asyncio.Event()))[0]


CLAIM = "Node elected Master - promoting self"


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Three]:
    three = Three(tmp_path)
    with ExitStack() as stack:
        three.server.start()
        stack.callback(three.server.kill)
        for exo in three.exos.values():
            exo.start()
            stack.callback(exo.kill)
        yield three


async def test_a_node_that_has_just_started_is_not_aimed_at(three: Three) -> None:
    """It claims as the master does, with a later line."""
    three.log("a", CLAIM, ago_s=600)
    three.log("b", CLAIM)
    three.log("c", "Node id-a elected master", ago_s=600)
    inventory = three.server.inventory(**{n: three.server.node(process=exo.process()) for n, exo in three.exos.items()})
    async with open_nodes(inventory) as nodes:
        assert await three.find(nodes) == "a"


async def test_while_nobody_knows_it_is_waited_and_a_stop_ends_that(three: Three) -> None:
    """The old master runs again and claims, the others still name the process that was killed: until they elect."""
    three.log("a", CLAIM)
    for other in ("b", "c"):
        three.log(other, "Node id-killed elected master", ago_s=600)
    inventory = three.server.inventory(**{n: three.server.node(process=exo.process()) for n, exo in three.exos.items()})
    async with open_nodes(inventory) as nodes:
        stop = asyncio.Event()
        stop.set()
        with pytest.raises(CannotAim, match=r"unknown after .* most nodes have not elected"):
            await three.find(nodes, stop)
        finding = asyncio.create_task(three.find(nodes))
        await asyncio.wait({finding}, timeout=1.0)
        assert not finding.done()
        three.log("b", "Node id-killed elected master", CLAIM)
        three.log("c", "Node id-b elected master")
        assert await finding == "b"
