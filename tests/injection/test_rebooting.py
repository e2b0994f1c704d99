"""A restart of a node, followed over it: the node is this machine, and `shutdown` only says that it was asked.

`shutdown` is always replaced, also where nothing may call it: a test that fails must not restart anybody's machine.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.config.inventory import Inventory
from rig.injection.lease import heal_on
from rig.injection.rebooting import on_one_clock
from rig.nodes.doctor import examine
from rig.nodes.open import open_nodes
from rig.nodes.scripts import ScriptEvent
from rig.nodes.upload import upload
from tests.injection.rigs import Rig
from tests.nodes.fakeexo import FakeExo
from tests.nodes.servers import SshServer, until

ASKED = '#!/bin/sh\necho asked >>"{folder}/asked"\n{then}\n'


class Machine:
    """The node: its SSH, its exo, and what a restart does to them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._monkeypatch = monkeypatch
        self.server = SshServer(folder / "server")
        self.exo = FakeExo(folder / "exo", runners=1)
        self.rig = Rig(self.server, self.exo)
        (folder / "bin").mkdir()

    def up(self, boot: str) -> None:
        self._monkeypatch.setenv("RIG_EMULATED_BOOT", boot)
        self.server.start()

    def shutdown(self, then: str = "exit 0") -> None:
        """What `shutdown` does after it has said that it was asked."""
        command = self.folder / "bin" / "shutdown"
        command.write_text(ASKED.format(folder=self.folder, then=then))
        command.chmod(0o755)

    def power_off(self) -> None:
        self.server.kill()
        [lease] = (self.rig.rig_dir / "leases").iterdir()
        pid = next(line for line in lease.read_text().splitlines() if line.startswith("script_pid="))
        os.kill(int(pid.removeprefix("script_pid=")), signal.SIGKILL)
        self.exo.kill()

    def inventory(self) -> Inventory:
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        return self.server.inventory(n1=self.rig.node(path=path))

    @property
    def asked(self) -> bool:
        return (self.folder / "asked").exists()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    machine = Machine(tmp_path, monkeypatch)
    machine.shutdown()
    machine.exo.start()
    yield machine
    machine.exo.kill()
    machine.server.kill()


async def test_what_the_rig_itself_runs_on_is_never_restarted(machine: Machine) -> None:
    machine.shutdown(then="exit 1")
    machine.server.start()  # of the same boot as this process
    inventory = machine.inventory()
    async with open_nodes(inventory) as nodes:
        await upload(nodes["n1"])
        fault = machine.rig.fault(nodes, "reboot", 0.0)
        assert await fault.run(asyncio.Event()) == "skipped"
        assert "the rig runs on this machine" in fault.reason
        found = await examine(inventory, nodes, kinds=["reboot"])
        assert [one.level for one in found if one.check == "reboot"] == ["warn"]
        assert [one for one in await examine(inventory, nodes, kinds=["freeze"]) if one.check == "reboot"] == []
    assert not machine.asked


async def test_a_restart_is_followed_to_the_next_boot(machine: Machine) -> None:
    """Also when the run is stopped, and somebody heals by hand, while the machine is on its way down."""
    machine.up("boot-1")
    before = machine.exo.wait().pid
    async with open_nodes(machine.inventory()) as nodes:
        await upload(nodes["n1"])
        fault, stop = machine.rig.fault(nodes, "reboot", 0.0), asyncio.Event()
        running = asyncio.create_task(fault.run(stop))
        await until(lambda: machine.asked)
        stop.set()
        by_hand = await heal_on(nodes["n1"], "all")
        assert (by_hand.ok, by_hand.events[-1].fields["reason"]) == (
            False,
            "the restart that it asked for may still come",
        )
        machine.power_off()
        machine.up("boot-2")
        assert await running == "healed"
    assert machine.exo.wait().pid != before
    assert list((machine.rig.rig_dir / "leases").iterdir()) == []
    assert machine.rig.journal.states() == ["planned", "leased", "struck", "healed"]


async def test_a_restart_that_failed_out_of_sight_is_learned_from_the_log(machine: Machine) -> None:
    machine.shutdown(then='until [ -e "${0%/*}/go" ]; do sleep 0.05; done; echo not today; exit 1')
    machine.up("boot-1")
    async with open_nodes(machine.inventory()) as nodes:
        await upload(nodes["n1"])
        fault = machine.rig.fault(nodes, "reboot", 0.0)
        running = asyncio.create_task(fault.run(asyncio.Event()))
        await until(lambda: machine.asked)
        machine.server.kill()
        (machine.folder / "bin" / "go").touch()
        machine.server.start()
        async with asyncio.timeout(60):
            assert await running == "ineffective"
    assert "shutdown: not today" in fault.reason
    assert list((machine.rig.rig_dir / "leases").iterdir()) == []


LOG = [
    ScriptEvent("leased", 5000.0),
    ScriptEvent("striking", 5000.1),
    ScriptEvent("healing", 8.0),
    ScriptEvent("healed", 9.0, {"rebooted": "1"}),
]


def test_the_next_boot_is_told_on_the_clock_of_the_one_before() -> None:
    """The node's clock is 12 s at 160 s of the controller's, which heard of the lease at 100 s."""
    heard = [ScriptEvent("leased", 5000.0, heard_s=100.0)]
    told = on_one_clock(LOG, heard, clock=12.0, seen_s=160.0)
    assert [(event.event, event.node_t) for event in told] == [
        ("leased", 5000.0),
        ("struck", 5000.1),
        ("healing", 5056.0),
        ("healed", 5057.0),
    ]


def test_what_cannot_be_put_on_that_clock_is_left_out() -> None:
    told = on_one_clock(LOG, [], clock=12.0, seen_s=160.0)
    assert [event.event for event in told] == ["leased", "struck"]
