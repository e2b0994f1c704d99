from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.injection.rigs import Rig
from tests.nodes.fakeexo import FakeExo
from tests.nodes.servers import SshServer


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """One node, its SSH server and its exo running."""
    server = SshServer(tmp_path / "server")
    server.start()
    exo = FakeExo(tmp_path / "exo", runners=1, master=True)
    exo.start()
    yield Rig(server, exo)
    exo.kill()
    server.kill()
