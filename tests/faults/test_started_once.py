"""exo is started once, whoever dies while it starts: the next healer knows that a start is on its way, and waits."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import psutil
import pytest

from tests.faults.node import Node, Script, state, until

PATIENCE_S = 8.0  # longer than the 5 s for which a healer waits when it knows of no start


def crashed(node: Node, start: str) -> Path:
    """exo is dead and so is the script; `start` runs behind a line that is written for each start."""
    node.start_exo()
    starts = node.folder / "starts"
    script = node.script(
        "crash.sh", hold="60", start=f"echo $PPID >'{node.folder}/giver'; echo start >>'{starts}'; {start}"
    )
    script.wait_for("holding")
    script.process.kill()
    script.process.wait()
    return starts


def killed_healer(node: Node, starts: Path) -> None:
    """It has given the start command, which lives on; every shell of it is killed."""
    healer = node.script("heal.sh", what="all")
    until(starts.exists, "it has given the start command", timeout_s=30)
    giver = int((node.folder / "giver").read_text())
    for child in psutil.Process(healer.process.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "heal.sh" in str(child.cmdline()) and child.pid != giver:
                child.kill()
    healer.process.kill()
    healer.process.wait()


def patient(healer: Script, starts: Path) -> None:
    """Until another start is given, or would have been."""
    begun = time.monotonic()
    until(
        lambda: starts.read_text() != "start\n" or time.monotonic() - begun > PATIENCE_S,
        "the second healer has waited",
        timeout_s=PATIENCE_S + 10,
    )
    assert healer.process.poll() is None, healer.end()


@pytest.mark.parametrize("boot", ["this boot", "another boot"])
@pytest.mark.parametrize("form", ["foreground", "background"])
def test_a_start_that_takes_long_is_waited_for(node: Node, form: str, boot: str) -> None:
    """The command itself takes long, or it has ended and what it left behind does."""
    gate = node.folder / "gate"
    slow = f"until [ -e '{gate}' ]; do sleep 0.05; done; {node.start_command()}"
    starts = crashed(node, f"{slow} &" if form == "foreground" else f"( {slow} ) </dev/null >/dev/null 2>&1 &")
    lease = node.rig_dir / "leases" / "f1"
    if boot == "another boot":
        lease.write_text(lease.read_text().replace("boot_id=", "boot_id=earlier-"))
    killed_healer(node, starts)
    second = node.script("heal.sh", what="all")
    patient(second, starts)
    gate.touch()
    second.end(timeout_s=60)
    assert starts.read_text() == "start\n"
    assert (second.status, os.listdir(node.rig_dir / "leases")) == (0, [])
    assert state(node.main_pid()) in "RS"


def test_a_start_that_failed_is_given_again(node: Node) -> None:
    good = node.folder / "good"
    starts = crashed(node, f"[ -e '{good}' ] || exit 1; {node.start_command()} &")
    killed_healer(node, starts)
    until(lambda: (node.rig_dir / "leases" / ".f1.start").read_text().endswith("\n1\n"), "it has failed")
    good.touch()
    assert node.heal().status == 0
    assert starts.read_text() == "start\nstart\n"
    assert os.listdir(node.rig_dir / "leases") == []


def test_beside_a_start_that_hangs_none_is_given(node: Node) -> None:
    """Nor is the fault said to be healed."""
    starts = crashed(node, "sleep 300")
    killed_healer(node, starts)
    record = node.rig_dir / "leases" / ".f1.start"
    giver, boot, _ = record.read_text().split()
    record.write_text(f"{giver} {boot} 1000\n")  # long ago
    heal = node.heal()
    assert heal.status == 12
    assert f"the start command of process {giver} has not ended" in heal.said
    assert (starts.read_text(), node.leases[-1]) == ("start\n", "f1")
    hanging = psutil.Process(int(giver.partition(":")[0]))
    for process in (hanging, *hanging.children(recursive=True)):
        process.kill()
