"""The folder of the leases is full, read-only or gone when a fault is to be healed; and a power cut during a hold."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.faults.disk import Image, fill, image_disk, memory_disk, read_only
from tests.faults.node import Node, Script, state, until


@pytest.fixture
def disk(node: Node) -> Iterator[Path]:
    """`rig_dir`, on a disk of its own. The shell keeps its files there as well, as an old bash does."""
    node.env |= {"TMPDIR": str(node.rig_dir), "BASH_COMPAT": "3.2"}
    with memory_disk(node.rig_dir) as disk:
        yield disk


def held_crash(node: Node) -> tuple[Script, psutil.Process]:
    main = node.start_exo()
    script = node.script("crash.sh", hold="60", start=f"{node.start_command()} &")
    script.wait_for("holding")
    return script, main


@pytest.mark.parametrize(("harm", "status"), [(fill, 0), (read_only, 12)])
def test_the_script_starts_exo_all_the_same(node: Node, disk: Path, harm: Callable[[Path], None], status: int) -> None:
    """12: the lease cannot be taken away, which is said."""
    script, main = held_crash(node)
    harm(disk)
    script.process.send_signal(signal.SIGTERM)
    events = script.end(timeout_s=60)
    assert node.main_pid() not in (0, main.pid), events
    assert state(node.main_pid()) in "RS"
    assert (script.status, "f1" in node.leases) == (status, status == 12)
    assert [event.name for event in events][-2:] == ["healed", "dropped" if status == 0 else "unhealed"]


def test_the_script_starts_exo_without_any_folder(node: Node) -> None:
    script, main = held_crash(node)
    shutil.rmtree(node.rig_dir)
    script.process.send_signal(signal.SIGTERM)
    events = script.end(timeout_s=60)
    assert node.main_pid() not in (0, main.pid), events
    assert (script.status, state(node.main_pid()) in "RS") == (0, True)


@pytest.mark.parametrize(("harm", "status"), [(fill, 0), (read_only, 12)])
def test_the_healer_starts_exo_all_the_same(node: Node, disk: Path, harm: Callable[[Path], None], status: int) -> None:
    script, main = held_crash(node)
    script.process.kill()
    script.process.wait()
    harm(disk)
    heal = node.heal()
    assert node.main_pid() not in (0, main.pid), heal.said
    assert state(node.main_pid()) in "RS"
    assert (heal.status, "f1" in node.leases) == (status, status == 12)


def test_nothing_is_struck_where_the_lease_cannot_be_written(node: Node, disk: Path) -> None:
    main = node.start_exo()
    fill(disk)
    script = node.script("crash.sh", hold="60", start=f"{node.start_command()} &")
    assert [event.name for event in script.end()] == ["skipped"]
    assert state(main.pid) in "RS"


@pytest.fixture
def image(node: Node, tmp_path: Path) -> Iterator[Image]:
    with image_disk(tmp_path / "image", node.rig_dir) as image:
        yield image


def test_the_lease_is_on_the_disk_before_the_strike(node: Node, image: Image, tmp_path: Path) -> None:
    """The power goes in the hold; the next boot finds the lease and starts exo."""
    node.env["RIG_EMULATED_BOOT"] = "one"
    script, main = held_crash(node)
    left = image.cut(tmp_path / "left")
    script.process.kill()
    script.process.wait()
    left.instead_of(image)
    assert "f1" in node.leases
    text = (node.rig_dir / "leases" / "f1").read_text()
    assert f"start={node.start_command()}" in text
    assert text.endswith("end=1\n")
    node.env["RIG_EMULATED_BOOT"] = "two"
    assert node.heal("expired").status == 0
    until(lambda: node.main_pid() not in (0, main.pid), "exo runs again")
    assert node.leases == []


@pytest.mark.parametrize("text", ["exit 1", "exec sleep 60"], ids=["fails", "hangs"])
def test_a_disk_that_takes_nothing_is_not_waited_for(node: Node, main: psutil.Process, text: str) -> None:
    """What was not written through is not struck."""
    shims = node.folder / "shims"
    shims.mkdir()
    (shims / "sync").write_text(f"#!/bin/sh\n{text}\n")
    (shims / "sync").chmod(0o755)
    node.env["PATH"] = f"{shims}:{node.env['PATH']}"
    script = node.script("freeze.sh", hold="60")
    events = script.end(timeout_s=40)
    assert (script.status, [event.name for event in events]) == (10, ["skipped"])
    assert events[0].fields["reason"].startswith("the lease cannot be written to the disk")
    assert all(state(pid) in "RS" for pid in node.tree())
    assert node.leases == []
    assert main.is_running()
