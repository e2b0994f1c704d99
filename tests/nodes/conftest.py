from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nodes.servers import SSHD, SshServer


def _kinds() -> list[str]:
    """OpenSSH takes part where it is installed and may be run; in CI it must."""
    if SSHD.exists() and os.geteuid() == 0:
        return ["asyncssh", "openssh"]
    assert os.environ.get("CI") != "true", "CI must install openssh-server and run as root"
    return ["asyncssh"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SshServer]:
    """A running SSH server."""
    server = SshServer(tmp_path / "server")
    server.start()
    yield server
    server.kill()


@pytest.fixture(params=_kinds())
def each_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SshServer]:
    """A running SSH server, once of each kind."""
    server = SshServer(tmp_path / "server", openssh=request.param == "openssh")
    server.start()
    yield server
    server.kill()
