"""The lock of a node is compared by what strikes there, right before: its controller may have slept since it looked."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from tests.faults.conftest import SHELLS
from tests.faults.node import Node, state, uptime

FREEZE = {"hold": "0.3"}
STRIKES = {
    "freeze.sh": FREEZE,
    "crash.sh": {"hold": "0.3", "start": "false"},
    "graceful-stop.sh": {"hold": "0.3", "start": "false"},
    "runner-kill.sh": {},
    "reboot.sh": {"start": "false"},
    "cpu-hog.sh": {"hold": "0.3", "load": "1"},
    "memory-pressure.sh": {"hold": "0.3", "leave": "1048576", "most": "16777216"},
    "disk-fill.sh": {"hold": "0.3", "leave": "1048576", "most": "1048576"},
}
"""What strikes a machine without a network of its own, with the least it takes. None of these may get so far."""


def lock(node: Node, *, token: str = "theirs", left_s: float = 60.0, boot: str | None = None) -> None:
    node.rig_dir.mkdir(exist_ok=True, mode=0o700)
    boot = boot or Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    lines = ("version=1", "owner=eve@desk:3", "run=hers", f"token={token}", f"boot_id={boot}")
    text = "".join(f"{line}\n" for line in (*lines, f"deadline={uptime() + left_s:.3f}", "end=1"))
    new = node.rig_dir / "lock.new"
    new.write_text(text)
    os.rename(new, node.rig_dir / "lock")


def refused(node: Node, script: str, **values: str) -> str:
    """Why it did nothing: it ends as skipped, without a lease before or after, and never struck."""
    running = node.script(script, **values)
    said = running.end()
    assert [event.name for event in said] == ["skipped"], running.stderr
    assert running.status == 10
    assert node.leases == []
    return said[0].fields["reason"]


@pytest.mark.parametrize("script", STRIKES)
def test_nothing_strikes_under_the_lock_of_another(node: Node, script: str) -> None:
    node.start_exo(1)
    tree = node.tree()
    (node.folder / "bin").mkdir()  # should it ever come to that
    (node.folder / "bin" / "shutdown").symlink_to("/bin/false")
    node.env["PATH"] = f"{node.folder}/bin:{node.env['PATH']}"
    lock(node)
    for mine in ({"lock": "mine"}, {}):  # a script that is run by hand has no lock
        reason = refused(node, script, **STRIKES[script], **mine)
        assert reason == "this node is locked by eve@desk:3 for run hers"
    assert len(tree) == 3
    assert not {state(pid) for pid in tree} & {"T", "-", "Z"}


@pytest.mark.parametrize(
    ("held", "reason"),
    [
        ({"left_s": -1.0}, "the lock of this run has run out"),
        ({"boot": "an-earlier-one"}, "the lock of this run has run out"),
        ({"token": "theirs", "left_s": -1.0}, "the lock of this run is gone"),
        (None, "the lock of this run is gone"),
    ],
    ids=["run out", "earlier boot", "another's, run out", "none"],
)
def test_a_lock_that_is_no_longer_held(
    node: Node, main: psutil.Process, held: dict[str, str | float] | None, reason: str
) -> None:
    if held is not None:
        lock(node, **{"token": "mine", **held})  # pyright: ignore[reportArgumentType]
    assert refused(node, "freeze.sh", **FREEZE, lock="mine") == reason
    assert main.is_running()


@pytest.mark.parametrize("token", ["mine", ""])
def test_under_its_own_lock_or_none_it_strikes(node: Node, main: psutil.Process, token: str) -> None:
    if token:
        lock(node, token=token)
    else:
        lock(node, left_s=-1.0)  # of one who is gone: it keeps nobody off
    running = node.script("freeze.sh", **FREEZE, **({"lock": token} if token else {}))
    assert "struck" in [event.name for event in running.end()]
    assert running.status == 0
    assert main.is_running()


def test_a_lock_that_is_taken_between_the_lease_and_the_strike(node: Node, main: psutil.Process) -> None:
    lock(node, token="mine")
    running = node.script("freeze.sh", **FREEZE, lock="mine", at=f"{uptime() + 2.0:.2f}")
    running.wait_for("leased")
    lock(node, token="theirs")
    assert [event.name for event in running.end()] == ["leased", "skipped"]
    assert state(main.pid) != "T"
    assert node.leases == []


def test_healing_needs_no_lock(node: Node, main: psutil.Process) -> None:
    """Not even where another holds the node by now."""
    lock(node, token="mine")
    running = node.script("freeze.sh", hold="60", lock="mine")
    running.wait_for("holding")
    lock(node, token="theirs")
    assert node.heal().status == 0
    running.end()
    assert state(main.pid) != "T"


@pytest.mark.parametrize("shell", SHELLS.values(), ids=list(SHELLS))
def test_commands_of_the_inventory(tmp_path: Path, shell: list[str]) -> None:
    """Started and stopped under the own lock alone; what tells a supervisor to go on is healing."""
    node = Node(tmp_path / "node", shell)
    made = tmp_path / "made"
    lock(node)
    common = {"rig_dir": str(node.rig_dir), "lock": "mine"}
    for key in ("start", "stop", "hold_cmd"):
        script = node.plain("command.sh", **common, **{key: f"touch '{made}'"})
        assert (script.end(), script.status) == ([], 75)
        assert script.stderr == "this node is locked by eve@desk:3 for run hers\n"
        assert not made.exists()
    script = node.plain("command.sh", **common, release_cmd=f"touch '{made}'; exit 7")
    assert (script.end(), script.status, made.exists()) == ([], 7, True)
    lock(node, token="mine")
    script = node.plain("command.sh", **common, start=f"rm '{made}'")
    assert (script.end(), script.status, made.exists()) == ([], 0, False)
