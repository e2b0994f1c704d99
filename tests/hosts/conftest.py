from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.config.inventory import Embedded
from tests.hosts.hosts import Hosts, needs_root, running


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mine = {"hosts", "own_hosts", "bare_hosts"}
    needs_root(config, items, mine, ci=os.environ.get("CI") == "true", root=os.geteuid() == 0)


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """Three nodes, shared by all tests: each leaves them as it found them."""
    with running(Embedded(nodes=3, hosts="namespaces"), tmp_path_factory.mktemp("hosts") / "cluster") as hosts:
        yield hosts


@pytest.fixture
def own_hosts(tmp_path: Path) -> Iterator[Hosts]:
    """Two nodes that a test may break."""
    with running(Embedded(nodes=2, hosts="namespaces"), tmp_path / "cluster") as hosts:
        yield hosts


@pytest.fixture
def bare_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosts]:
    """One node, started by a user whose PATH leaves out the folders of system tools."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with running(Embedded(nodes=1, hosts="namespaces"), tmp_path / "cluster") as hosts:
        yield hosts
