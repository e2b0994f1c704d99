from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.faults.network import Network
from tests.faults.node import Node

SHELLS = {"dash": ["dash"], "bash": ["bash", "--posix"]}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests with network namespaces or disks need root: left out loudly elsewhere, and an error in CI."""
    if os.geteuid() == 0:
        return
    here = Path(__file__).parent
    rooted = {"network", "disk", "image"}
    needing = [item for item in items if item.path.parent == here and rooted & set(getattr(item, "fixturenames", ()))]
    if not needing:
        return
    if os.environ.get("CI") == "true":
        raise pytest.UsageError(f"{len(needing)} tests need network namespaces or mounts: CI must run them as root")
    config.issue_config_time_warning(
        UserWarning(f"{len(needing)} tests are left out: they need root (network namespaces, mounts)"), 2
    )
    config.hook.pytest_deselected(items=needing)
    items[:] = [item for item in items if item not in needing]


@pytest.fixture(params=list(SHELLS))
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Node]:
    """A node whose scripts run under each shell."""
    node = Node(tmp_path / "node", SHELLS[request.param])
    yield node
    node.close()


@pytest.fixture
def main(node: Node) -> psutil.Process:
    """The exo-like main process of `node`, with its tracker and three runners."""
    return node.start_exo()


@pytest.fixture
def network(node: Node) -> Iterator[Network]:
    """`node` and a peer, each in a network namespace, connected by IPv4 and link-local IPv6."""
    network = Network(f"{os.getpid() % 10000}")
    try:
        network.up()
        node.prefix = network.enter_node
        yield network
    finally:
        network.down()
