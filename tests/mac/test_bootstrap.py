"""`rig bootstrap` on a virtual Mac: launchd runs the guard, which heals what a killed script left; and its inverse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.nodes.scripts import process_values
from tests.hosts import bootstrapped
from tests.hosts.hosts import API_PORT, Hosts, until
from tests.hosts.standing import settled, until_as_before

GUARD = "io.rig.guard"


@pytest.fixture(scope="module")
def guarded(macs: Hosts) -> Iterator[Hosts]:
    before = settled(macs, bootstrapped.NODE)
    said = bootstrapped.bootstrap(macs, "install")
    assert "guard.sh" in said
    yield macs
    bootstrapped.bootstrap(macs, "remove")
    until_as_before(macs, bootstrapped.NODE, before)


def test_install_and_remove_leave_the_mac_identical(macs: Hosts) -> None:
    before = settled(macs, bootstrapped.NODE)
    plan = bootstrapped.bootstrap(macs, "plan")
    until_as_before(macs, bootstrapped.NODE, before)
    bootstrapped.bootstrap(macs, "install")
    installed = settled(macs, bootstrapped.NODE)
    assert GUARD in installed.jobs
    made = [line for line in installed.differs(before) if line.startswith("files: + /")]
    assert len(made) > 5
    assert all(line.split()[2] in plan or "/etc/rig" in line for line in made), (made, plan)
    bootstrapped.bootstrap(macs, "remove")
    until_as_before(macs, bootstrapped.NODE, before)


@pytest.mark.parametrize("kind", bootstrapped.STRUCK)
def test_launchd_heals_what_a_killed_script_left(guarded: Hosts, kind: str) -> None:
    bootstrapped.killed_and_healed(guarded, kind, lambda: None)


def test_after_a_reboot_the_guard_ends_the_fault(guarded: Hosts) -> None:
    """The lease outlives the boot, launchd starts the guard, which finds exo running and drops it."""
    node = guarded.inventory.nodes[bootstrapped.NODE]
    script = guarded.script(
        bootstrapped.NODE, "reboot.sh", folder=bootstrapped.FAULTS, id="reboot", **process_values(node), start="true"
    )
    assert script.wait_for("leased"), script.said
    log = Path(node.rig_dir) / "log" / "reboot.log"
    until(lambda: "\tdropped\t" in log.read_text(), "the guard has dropped the lease", within_s=90)
    healed = next(line for line in log.read_text().splitlines() if "\thealed\t" in line)
    assert "rebooted=1" in healed
    assert "by=heal" in healed
    assert list((Path(node.rig_dir) / "leases").iterdir()) == []
    until(lambda: guarded.reaches("node-2", guarded.address("node-1"), API_PORT), "exo serves again")
