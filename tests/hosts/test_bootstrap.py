"""`rig bootstrap` on a Linux node: the systemd units are what systemd takes, what they start heals; and its inverse."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts import bootstrapped
from tests.hosts.hosts import Hosts, run
from tests.hosts.standing import settled, until_as_before

UNITS = Path("/etc/systemd/system")
NODE = bootstrapped.NODE


@pytest.fixture(scope="module")
def guarded(hosts: Hosts) -> Iterator[Hosts]:
    before = settled(hosts, NODE)
    bootstrapped.bootstrap(hosts, "install")
    yield hosts
    bootstrapped.bootstrap(hosts, "remove")
    until_as_before(hosts, NODE, before)


def test_install_and_remove_leave_the_node_identical(hosts: Hosts) -> None:
    before = settled(hosts, NODE)
    plan = bootstrapped.bootstrap(hosts, "plan")
    until_as_before(hosts, NODE, before)
    bootstrapped.bootstrap(hosts, "install")
    installed = settled(hosts, NODE)
    made = [line for line in installed.differs(before) if line.startswith("files: + /")]
    assert len(made) > 5
    assert all(line.split()[2] in plan or "/etc/rig" in line for line in made), (made, plan)
    bootstrapped.bootstrap(hosts, "remove")
    until_as_before(hosts, NODE, before)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="install systemd, which judges its units")
def test_systemd_takes_the_units(guarded: Hosts, tmp_path: Path) -> None:
    """Word for word, but for the path of the script, which is on the node alone."""
    for name in ("rig-guard.service", "rig-guard.timer"):
        text = guarded.inside(NODE, f"cat {UNITS / name}").out
        assert "libexec/rig/guard.sh" in text or name.endswith("timer")
        (tmp_path / name).write_text(text)
    judged = run(["systemd-analyze", "verify", str(tmp_path / "rig-guard.timer"), str(tmp_path / "rig-guard.service")])
    complaints = [line for line in (judged.out + judged.err).splitlines() if "rig-guard" in line]
    assert complaints == []
    timer = (tmp_path / "rig-guard.timer").read_text()
    assert "OnUnitActiveSec=4" in timer
    assert "OnBootSec=0" in timer


@pytest.mark.parametrize("kind", bootstrapped.STRUCK)
def test_what_the_timer_starts_heals_what_a_killed_script_left(guarded: Hosts, kind: str) -> None:
    """No systemd runs on the node; its unit's command is run as the timer would."""
    lines = guarded.inside(NODE, f"cat {UNITS}/rig-guard.service").out.splitlines()
    [command] = [line.partition("=")[2] for line in lines if line.startswith("ExecStart=")]
    bootstrapped.killed_and_healed(guarded, kind, lambda: guarded.inside(NODE, command))
