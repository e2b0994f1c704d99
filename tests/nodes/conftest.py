from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nodes.servers import SSHD, SshServer


def kinds_of_servers() -> list[str]:
    """OpenSSH takes part where it is installed and may be run; in CI it must."""
    if SSHD.exists() and os.geteuid() == 0:
        return ["asyncssh", "openssh"]
    assert os.environ.get("CI") != "true", "CI must install openssh-server and run as root"
    return ["asyncssh"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that install as root are left out loudly elsewhere, and are an error in CI."""
    if os.geteuid() == 0:
        return
    needing = [item for item in items if item.path.name == "test_bootstrap.py" and "root" in fixtures(item)]
    if not needing:
        return
    if os.environ.get("CI") == "true":
        raise pytest.UsageError(f"{len(needing)} tests install as root: CI must run them as root")
    config.issue_config_time_warning(UserWarning(f"{len(needing)} tests are left out: they install as root"), 2)
    config.hook.pytest_deselected(items=needing)
    items[:] = [item for item in items if item not in needing]


def fixtures(item: pytest.Item) -> list[str]:
    return getattr(item, "fixturenames", [])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SshServer]:
    """A running SSH server."""
    server = SshServer(tmp_path / "server")
    server.start()
    yield server
    server.kill()


@pytest.fixture(params=kinds_of_servers())
def each_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SshServer]:
    """A running SSH server, once of each kind."""
    server = SshServer(tmp_path / "server", openssh=request.param == "openssh")
    server.start()
    yield server
    server.kill()
