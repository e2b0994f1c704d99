"""What is garbled in a lease, or lies beside none: said, or taken away; the rest is healed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.faults.node import FAULTS, Node, state
from tests.faults.test_heal import edit, killed_freeze

GARBLED = [":5", "-1:1", "x", "1:", "/../self:1", "1234567890123:1", "7:a|b", ":"]


def own_item() -> str:
    return f"{os.getpid()}:{Path('/proc/self/stat').read_text().rpartition(') ')[2].split()[19]}"


@pytest.mark.parametrize("word", GARBLED)
def test_the_other_processes_are_resumed_and_the_word_is_said(node: Node, main: psutil.Process, word: str) -> None:
    _, tree = killed_freeze(node)
    lease = node.rig_dir / "leases" / "f1"
    pids = next(line for line in lease.read_text().splitlines() if line.startswith("pids="))[5:]
    edit(lease, pids=f"{word} {pids}")
    heal = node.heal()
    assert [state(pid) for pid in tree if state(pid) not in "RS"] == []
    assert (heal.status, node.leases) == (12, ["f1"])
    assert f"undone but for what cannot be understood in the lease: pids={word}" in heal.said
    assert heal.stderr == ""
    assert main.is_running()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("main", ":"), ("hogs", "08:"), ("script_pid", "x"), ("script_start", ""), ("patience", "08")),
        *(("patience", "1+1"), ("deadline", "."), ("deadline", "9" * 30), ("boot_id", "")),
    ],
)
def test_no_value_ends_the_healer(node: Node, main: psutil.Process, key: str, value: str) -> None:
    """It goes on to the next lease, and the garbled one stays."""
    killed_freeze(node)
    leases = node.rig_dir / "leases"
    other = (leases / "f1").read_text().replace("id=f1\n", "id=f2\n")
    edit(leases / "f1", **{key: value})
    (leases / "f2").write_text(other)
    heal = node.heal()
    assert all(state(pid) in "RS" for pid in node.tree())
    assert (heal.status, node.leases, heal.stderr) == (12, ["f1"], "")
    assert main.is_running()


@pytest.mark.parametrize("by", ["heal.sh", "guard.sh", "cpu-hog.sh"])
def test_what_a_dead_healer_left_beside_no_lease_is_taken_away(node: Node, by: str) -> None:
    """A claim and a half-written lease of a process that lives stay."""
    leases = node.rig_dir / "leases"
    leases.mkdir(parents=True)
    node.rig_dir.chmod(0o700)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    texts = {
        ".a.claim.1": f"1234567:5 {boot}\n",
        ".b.claim.2": f"{own_item()} of-another-boot\n",
        ".c.claim.1": "",
        ".d.claiming.1234567": "",
        ".e.1234567": "version=1\n",
        ".g.start": f"{own_item()} {boot} 5\n",
        ".live.claim.1": f"{own_item()} {boot}\n",
        f".live.{os.getpid()}": "version=1\n",
    }
    for name, text in texts.items():
        (leases / name).write_text(text)
    given = {"heal.sh": {"what": "expired"}, "guard.sh": {"once": "1"}, "cpu-hog.sh": {"hold": "0.1", "load": "1"}}
    if by == "guard.sh":
        command = [*node.shell, str(FAULTS / by), f"rig_dir={node.rig_dir}", "once=1"]
        subprocess.run(command, env=node.env, timeout=60, check=True)
    else:
        script = node.script(by, **given[by])
        script.end()
        assert script.status == 0
    assert sorted(os.listdir(leases)) == [f".live.{os.getpid()}", ".live.claim.1"]
