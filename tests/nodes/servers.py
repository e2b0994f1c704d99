"""Real SSH servers for tests: one of asyncssh in a process of its own, and OpenSSH's where it is installed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from rig.config.inventory import Inventory, Node, Ssh
from rig.targets.exo.fields import ExoProcess

SSHD = Path("/usr/sbin/sshd")


@dataclass
class SshServer:
    """An SSH server on loopback with keys of its own; `start` and `kill` may be called in turn, the port stays."""

    folder: Path
    openssh: bool = False
    port: int = 0
    host: str = "127.0.0.1"
    _process: subprocess.Popen[bytes] | None = field(default=None)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, text in _keys().items():
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o600)
        self.host_key = " ".join((self.folder / "host_key.pub").read_text().split()[:2])

    def start(self) -> None:
        if self.openssh:
            self._start_openssh()
            return
        script = Path(__file__).with_name("sshserver.py")
        self._process = subprocess.Popen(
            [sys.executable, str(script), str(self.folder), str(self.port), self.host],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self.folder,
        )
        stdout = self._process.stdout
        assert stdout is not None
        assert select.select([stdout], [], [], 15)[0], "the SSH server did not start"
        self.port = int(stdout.readline().split()[1])

    def _start_openssh(self) -> None:
        self.port = self.port or _free_port()
        Path("/run/sshd").mkdir(exist_ok=True)
        config = self.folder / "sshd_config"
        config.write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.folder}/host_key\n"
            f"AuthorizedKeysFile {self.folder}/client_key.pub\nStrictModes no\nPasswordAuthentication no\n"
            f"UsePAM no\nPermitRootLogin prohibit-password\nPidFile none\n"
        )
        self._process = subprocess.Popen([str(SSHD), "-D", "-e", "-f", str(config)], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError("sshd did not start")

    def kill(self) -> None:
        """SIGKILL: every connection breaks, no goodbye. Commands on the node go on."""
        if self._process is None:
            return
        children = _children(self._process.pid) if self.openssh else []
        self._process.kill()
        self._process.wait()
        for pid in children:
            with contextlib.suppress(ProcessLookupError):  # they end by themselves when they notice
                os.kill(pid, signal.SIGKILL)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process = None

    def stop_for_a_while(self) -> None:
        """SIGSTOP: the server is there but says nothing more."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def ssh(self, **changes: object) -> Ssh:
        settings: dict[str, object] = {
            "host": "127.0.0.1",
            "port": self.port,
            "key": str(self.folder / "client_key"),
            "host_key": self.host_key,
        }
        return Ssh.model_validate({**settings, **changes})

    def node(self, **changes: object) -> Node:
        settings: dict[str, object] = {
            "ssh": self.ssh(),
            "api": "http://127.0.0.1:1",
            "addresses": ["10.77.0.1"],
            "process": ExoProcess(home=str(self.folder / "exo")),
            "rig_dir": str(self.folder / "rig dir's"),
            "sudo": False,
        }
        return Node.model_validate({**settings, **changes})

    def inventory(self, **nodes: Node) -> Inventory:
        return Inventory(name="test", nodes=nodes or {"n1": self.node()})


def ssh_of(node: Node) -> Ssh:
    """How a node that is not this machine is reached."""
    assert node.ssh is not None
    return node.ssh


async def until(condition: Callable[[], bool], *, within_s: float = 20.0) -> None:
    """Polls a condition; fails when it does not come true in time."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "what the test waits for did not come"
        await asyncio.sleep(0.02)


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@cache
def _keys() -> dict[str, str]:
    """Fresh keys for this test process: file name → content."""
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("host_key", "client_key", "other_key"):
            path = Path(folder) / name
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(path)], check=True)
            found |= {name: path.read_text(), f"{name}.pub": path.with_suffix(".pub").read_text()}
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _children(pid: int) -> list[int]:
    """sshd's session processes (which hold the connections), not the commands they run."""
    out = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in out.splitlines()]
    found = [int(row[0]) for row in rows if int(row[1]) == pid]
    return found + [int(row[0]) for row in rows if int(row[1]) in found and row[2].startswith("sshd")]
