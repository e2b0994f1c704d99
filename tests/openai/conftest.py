"""Real servers: `mlx_lm.server` with a tiny model, in an environment of its own (`.ci/venv mlx`)."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parent.parent.parent
BIN = ROOT / ".venv-mlx" / "bin"


@dataclass(frozen=True)
class Server:
    """One replica, as a node of an inventory."""

    name: str
    port: int
    home: Path
    model: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def start(self) -> str:
        command = f"{BIN}/python {BIN}/mlx_lm.server --model {self.model} --host 127.0.0.1 --port {self.port}"
        return f"HF_HUB_OFFLINE=1 {command} >>{self.home}/server.log 2>&1 & echo $! >{self.home}/server.pid"

    def node(self) -> dict[str, object]:
        return {
            "local": True,
            "api": self.url,
            "rig_dir": f"{self.home}/rig",
            "sudo": False,
            "restart_rehearsed": True,
            "server": {
                "home": str(self.home),
                "match": f"mlx_lm[.]server .*--port {self.port}( |$)",
                "start": self.start,
            },
        }

    def begin(self) -> None:
        subprocess.run(["sh", "-c", self.start], check=True)

    def await_answer(self) -> None:
        for _ in range(600):
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{self.url}/health", timeout=1.0, trust_env=False).is_success:
                    return
            assert (self.home / "server.pid").exists()
        raise AssertionError((self.home / "server.log").read_text()[-2000:])

    def end(self) -> None:
        """By its own pid, as long as that is still its own."""
        pid = int((self.home / "server.pid").read_text())
        with contextlib.suppress(OSError):
            if str(self.port) in Path(f"/proc/{pid}/cmdline").read_text():
                os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    subprocess.run(["sh", str(ROOT / ".ci" / "venv"), "mlx"], check=True, timeout=1500)
    folder = tmp_path_factory.mktemp("tiny")
    subprocess.run([BIN / "python", Path(__file__).with_name("tiny_model.py"), folder], check=True, timeout=300)
    return folder


@pytest.fixture(scope="session")
def servers(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    made: list[Server] = []
    for name in ("server-1", "server-2"):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        made.append(Server(name, port, tmp_path_factory.mktemp(name), model))
    for server in made:
        server.begin()
    for server in made:
        server.await_answer()
    yield made
    for server in made:
        server.end()
