"""What is collected of a fault, over real SSH; that it is bounded, and that only what matters stays."""

from __future__ import annotations

from pathlib import Path

from rig.nodes.open import open_nodes
from rig.soak.forensics import LOG_BYTES, Forensics, drop_unneeded
from tests.injection.rigs import Rig


async def test_logs_processes_leases_and_views(rig: Rig, tmp_path: Path) -> None:
    write_logs(rig)
    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        place = await Forensics(nodes, tmp_path).collect(4, {"n1": {"instances": {"i1": {}}}})
    state, log = read(place / "n1.txt"), read(place / "n1.log")
    assert f"{rig.tree()[0].pid} " in state
    assert "==== ps" in state
    assert log.index("the run before") < log.index("this run")  # exo rotated its log at a restart
    assert '"i1"' in read(place / "views.json")


async def test_it_is_bounded(rig: Rig, tmp_path: Path) -> None:
    logs = rig.exo.home / "exo_log"
    fill(logs / "exo.log", 2 * LOG_BYTES)
    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        forensics = Forensics(nodes, tmp_path, run_bytes=3 * LOG_BYTES // 2)
        place = await forensics.collect(0, {})
        assert size(place / "n1.log") <= LOG_BYTES
        for fault in (1, 2):
            place = await forensics.collect(fault, {})
    assert names(tmp_path) == ["fault-2"]  # the oldest went first
    assert place.name == "fault-2"


async def test_a_node_that_is_gone_is_said_to_be(rig: Rig, tmp_path: Path) -> None:
    async with open_nodes(rig.server.inventory(n1=rig.node())) as nodes:
        rig.server.kill()
        place = await Forensics(nodes, tmp_path).collect(0, {})
    assert read(place / "n1.txt").startswith("not collected:")
    rig.server.start()


def test_only_what_matters_stays(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        (tmp_path / "forensics" / f"fault-{number}").mkdir(parents=True)
    drop_unneeded(tmp_path, {0, 2})
    assert names(tmp_path) == ["fault-1", "fault-2"]
    drop_unneeded(tmp_path, {2})
    assert names(tmp_path) == ["fault-2"]
    drop_unneeded(tmp_path, set())
    assert not (tmp_path / "forensics").exists()


def write_logs(rig: Rig) -> None:
    logs = rig.exo.home / "exo_log"
    (logs / "exo.1.log").write_text("the run before\n")
    (logs / "exo.log").write_text("this run\n")


def fill(path: Path, count: int) -> None:
    path.write_bytes(b"x" * count)


def read(path: Path) -> str:
    return path.read_text()


def size(path: Path) -> int:
    return path.stat().st_size


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "forensics").iterdir())
