"""Needs root: accounts, namespaces, sudo. Left out loudly elsewhere, and an error in CI."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.network import Network
from tests.rights.machine import Machine

RIG_DIR = "/var/tmp/rig"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    needing = [item for item in items if item.path.parent == here]
    if os.geteuid() == 0 or not needing:
        return
    if os.environ.get("CI") == "true":
        raise pytest.UsageError(f"{len(needing)} tests of rights need root: CI must run them so")
    config.issue_config_time_warning(UserWarning(f"{len(needing)} tests of rights are left out: they need root"), 2)
    config.hook.pytest_deselected(items=needing)
    items[:] = [item for item in items if item not in needing]


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    network = Network(f"{os.getpid() % 10000}r")
    try:
        network.up()
        yield network
    finally:
        network.down()


@pytest.fixture(scope="module")
def bare(network: Network) -> Iterator[Machine]:
    """A machine on which nobody has bootstrapped anything."""
    with Machine(network.enter_node) as machine:
        yield machine


@pytest.fixture(scope="module")
def machine(network: Network) -> Iterator[Machine]:
    """One that is bootstrapped for partitions, shaped networks and links, not for restarts."""
    with Machine(network.enter_node) as machine:
        done = machine.bootstrap("install", RIG_DIR)
        assert done.status == 0, done.said
        machine.must("sh", "-c", "echo the-secret >/root/secret && chmod 600 /root/secret")
        yield machine
