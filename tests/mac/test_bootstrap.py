"""`rig bootstrap` on a virtual Mac: launchd runs the guard, which heals what a killed script left; and its inverse."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rig.config.plan import Kind
from tests.hosts import bootstrapped
from tests.hosts.hosts import Hosts, until
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


@pytest.mark.parametrize("kind", bootstrapped.KINDS)
def test_launchd_heals_what_a_killed_script_left(guarded: Hosts, kind: Kind) -> None:
    bootstrapped.killed_and_healed(guarded, kind, lambda: None)


def test_the_guard_is_back_after_a_reboot(guarded: Hosts) -> None:
    guard = bootstrapped.NODE, f"launchctl list {GUARD}"
    before = guarded.inside(bootstrapped.NODE, "sysctl -n kern.bootsessionuuid").out
    assert guarded.inside(bootstrapped.NODE, "shutdown -r now").status in {0, -9}
    until(lambda: guarded.ssh(bootstrapped.NODE, "sysctl -n kern.bootsessionuuid").out not in {"", before}, "boots")
    until(lambda: guarded.inside(*guard).status == 0, "launchd has loaded the guard")
