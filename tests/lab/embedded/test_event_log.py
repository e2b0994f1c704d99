"""The event log's file of a real cluster, read over SSH, tells what the API tells, and goes on from where it was."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from rig.clock import RunClock
from rig.journal.records import AnyRecord, EventLogRead, EventSeen, Finding
from rig.journal.write import Journal
from rig.nodes.open import ShellNodes, open_nodes
from rig.nodes.operations import ShellNode
from rig.nodes.upload import upload
from rig.observe.events import EventLogs
from rig.targets.exo.api import Exo
from rig.targets.exo.event_file import read_piece

pytestmark = pytest.mark.asyncio
A = "lab/tiny-a"


class Reader:
    """One journal, and what reading a node's log wrote into it."""

    def __init__(self, folder: Path, connections: ShellNodes, **limits: Any) -> None:
        self.exo = Exo()
        self.records: list[AnyRecord] = []
        folder.mkdir()
        journal = Journal(folder, RunClock())
        journal.subscribe(self.records.append)
        self.logs = EventLogs(self.exo, journal, connections=connections, **limits)

    @property
    def seen(self) -> list[tuple[str, int, str, Any]]:
        return [(r.session, r.index, r.name, r.data) for r in self.records if isinstance(r, EventSeen)]

    @property
    def ends(self) -> list[EventLogRead]:
        return [record for record in self.records if isinstance(record, EventLogRead)]

    @property
    def findings(self) -> list[Finding]:
        return [record for record in self.records if isinstance(record, Finding)]


async def scripts_on(connections: ShellNodes) -> ShellNode:
    conn = connections["node-1"]
    await upload(conn)
    return conn


async def test_the_file_tells_what_the_api_tells(start: Any, tmp_path: Path) -> None:
    cluster = await start(nodes=2)
    await cluster.deploy(A)
    url = cluster.api("node-1")
    async with open_nodes(cluster.inventory) as connections:
        await scripts_on(connections)
        by_file, by_api = Reader(tmp_path / "file", connections), Reader(tmp_path / "api", {})
        await by_file.logs.read("node-1", url)
        await by_api.logs.read("node-1", url)
        [first] = by_file.ends
        assert (first.source, by_api.ends[0].source) == ("file", "api")
        assert any(name == "InstanceCreated" for _, _, name, _ in by_file.seen)
        assert by_file.seen == [entry for entry in by_api.seen if entry[1] < first.count]
        assert first.session == by_api.ends[0].session
        # on from there: by the file, by the API when SSH is not to be had, and by the file again
        await cluster.chat("node-1", A)
        deployment = await cluster.deploy(A)
        assert (await cluster.request("DELETE", "node-1", f"/deployments/{deployment}"))[0] == 200
        before = len(by_file.seen)
        async with asyncio.timeout(30.0):  # the answer may come before the event is applied on this node
            while "DeploymentDeleted" not in [name for _, _, name, _ in by_file.seen[before:]]:
                await by_file.logs.read("node-1", url)
                await asyncio.sleep(0.05)
        await by_file.logs._read_api("node-1", url, 0.0)  # pyright: ignore[reportPrivateUsage]  # as without SSH
        await by_file.logs.read("node-1", url)
        await by_api.logs.read("node-1", url)
        sources = [end.source for end in by_file.ends]
        assert (set(sources[:-2]), sources[-2:]) == ({"file"}, ["api", "file"])
        assert [index for _, index, _, _ in by_file.seen] == sorted({index for _, index, _, _ in by_file.seen})
        assert by_file.seen == [entry for entry in by_api.seen if entry[1] < by_file.ends[-1].count]
        assert by_file.findings == by_api.findings == []
        await by_file.exo.close()
        await by_api.exo.close()


async def test_a_new_process_begins_a_new_file(start: Any, tmp_path: Path, until: Any) -> None:
    cluster = await start(nodes=1)
    url = cluster.api("node-1")
    async with open_nodes(cluster.inventory) as connections:
        conn = await scripts_on(connections)
        reader = Reader(tmp_path / "run", connections)
        await cluster.deploy(A)
        await reader.logs.read("node-1", url)
        old = await read_piece(conn, 0)
        start_command = cluster.inventory.nodes["node-1"].process.start
        await cluster.ssh("node-1", f"kill -9 {cluster.main_pid('node-1')}")
        # what the dead one wrote is still there, and nothing answers
        await reader.logs.read("node-1", url)
        assert [finding.code for finding in reader.findings] == ["event-log-unread"]
        await cluster.ssh("node-1", start_command)
        await cluster.deploy(A)
        await reader.logs.read("node-1", url)
        new = await read_piece(conn, 0)
        assert old is not None
        assert new is not None
        assert new.head != old.head
        assert len({end.session for end in reader.ends}) == 2
        assert {session for session, *_ in reader.seen} == {end.session for end in reader.ends}
        await reader.exo.close()
