"""`rig cluster`: one a folder, known by pid and start time, ended with everything it started."""

from __future__ import annotations

import json
from pathlib import Path

import psutil
import pytest

from rig.cli import cluster
from rig.errors import ClusterError, UsageError
from rig.lab.embedded.prepare import read_layout
from rig.lab.embedded.reap import marked
from rig.lab.embedded.supervise import state_path

INVENTORY = "name: one\nembedded:\n  nodes: 1\n  pace: 20\n"


@pytest.fixture
def inventory(tmp_path: Path) -> str:
    path = tmp_path / "one.yaml"
    path.write_text(INVENTORY)
    return str(path)


def test_up_status_down(inventory: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "c"
    assert cluster.status(folder=folder, as_json=True) == 3
    assert json.loads(capsys.readouterr().out)["running"] is False

    def up() -> int:
        return cluster.up(inventory=inventory, for_="2m", folder=folder, inert=None, foreground=False, as_json=True)

    try:
        assert up() == 0
        started = json.loads(capsys.readouterr().out)
        assert started["inventory"] == str(folder / "inventory.yaml")
        assert cluster.status(folder=folder, as_json=True) == 0
        (node,) = json.loads(capsys.readouterr().out)["nodes"]
        assert node["api"] == started["nodes"]["node-1"]["api"]
        with pytest.raises(ClusterError, match="runs in"):
            up()
    finally:
        assert cluster.down(folder=folder) == 0
    assert list(marked(f"{read_layout(folder).cluster}/")) == []
    assert cluster.down(folder=folder) == 0


def test_a_stale_state_is_not_a_cluster(tmp_path: Path) -> None:
    """The pid lives, but it is somebody else's: it must not be taken for a cluster, let alone be ended."""
    state = {"pid": psutil.Process().pid, "start": 1.0, "limit_wall": 0.0}
    state_path(tmp_path).write_text(json.dumps(state))
    assert cluster.running(tmp_path) is None
    state["start"] = psutil.Process().create_time()
    state_path(tmp_path).write_text(json.dumps(state))
    assert cluster.running(tmp_path) is not None


def test_what_is_refused(inventory: str, tmp_path: Path) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    (folder / "precious").write_text("")
    with pytest.raises(UsageError, match="not empty"):
        cluster.up(inventory=inventory, for_="2m", folder=folder, inert=None, foreground=False, as_json=False)
    with pytest.raises(UsageError, match="--inert"):
        cluster.up(inventory=inventory, for_="2m", folder=tmp_path / "d", inert="rm", foreground=False, as_json=False)
    with pytest.raises(UsageError, match="--for"):
        cluster.up(inventory=inventory, for_="soon", folder=tmp_path / "d", inert=None, foreground=False, as_json=False)
    with pytest.raises(UsageError, match="real nodes"):
        cluster.up(
            inventory="two-mac-studios", for_="2m", folder=tmp_path / "d", inert=None, foreground=False, as_json=False
        )
    assert (folder / "precious").exists()
