"""A node with everything a fault can hit: SSH, exo, a network with a peer, the node guard; and things of somebody else.

The node and its peer are network namespaces; the SSH server, its sessions, the guard and exo run in the node's, and
belong to its `boot`, which can be ended as by a power failure and begun again.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from rig.config.inventory import ExoProcess, Inventory, Node, Ssh
from tests.faults.network import Network
from tests.nodes.fakeexo import FakeExo
from tests.nodes.servers import SshServer
from tests.sweep.gate import Gate

FAULTS = Path(__file__).parents[2] / "faults"
SSH_SERVER = Path(__file__).parents[1] / "nodes" / "sshserver.py"
INNER_PORT = 2222
FOREIGN_TABLE = "theirs"
EXO_AGE_S = 40.0


def wait_for(condition: Callable[[], bool], what: str, *, timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s:g} s: {what}")
        time.sleep(0.002)


@dataclass
class World:
    """Made once, used for many cases. `folder` holds all of it."""

    folder: Path
    name: str
    guarded: bool = True
    boots: int = 0
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list[subprocess.Popen[bytes]])

    def __post_init__(self) -> None:
        self.network = Network(self.name)
        self.exo = FakeExo(self.folder / "exo", runners=1)
        self.keys = {name: SshServer(self.folder / name) for name in ("n1", "n2")}
        self.rig_dirs = {name: self.folder / name / "rig" for name in ("n1", "n2")}
        self.gates: dict[str, Gate] = {}
        self.marker = secrets.token_hex(6)
        self.foreign: subprocess.Popen[bytes] | None = None

    # ---- up and down

    def up(self) -> None:
        self.network.up()
        self.network.nft(
            f"add table inet {FOREIGN_TABLE}; add chain inet {FOREIGN_TABLE} c; add rule inet {FOREIGN_TABLE} c accept"
        )
        self.foreign = subprocess.Popen(["sleep", "3600"], start_new_session=True)
        self.foreign.send_signal(signal.SIGSTOP)
        self.boot()
        for name, namespace in (("n1", self.network.node_ns), ("n2", self.network.peer_ns)):
            self.gates[name] = Gate(namespace, INNER_PORT)
        self.exo.start()

    def boot(self) -> None:
        """What runs when the machines are on: SSH on both, the guard on the node."""
        self.boots += 1
        for name, namespace in (("n1", self.network.node_ns), ("n2", self.network.peer_ns)):
            self._serve(name, namespace)
        self.start_guard()

    def _serve(self, name: str, namespace: str) -> None:
        server = subprocess.Popen(
            [
                "ip",
                "netns",
                "exec",
                namespace,
                sys.executable,
                str(SSH_SERVER),
                str(self.keys[name].folder),
                str(INNER_PORT),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self.keys[name].folder,
            env=self.environment,
        )
        assert server.stdout is not None
        assert server.stdout.readline().startswith(b"ready"), "the SSH server did not start"
        self.processes.append(server)
        if name == "n1":
            self.sshd = server

    def restart_sshd(self) -> None:
        self.sshd.kill()
        self.sshd.wait()
        self.processes.remove(self.sshd)
        self._serve("n1", self.network.node_ns)

    def start_guard(self) -> None:
        if not self.guarded:
            return
        command = ["sh", str(FAULTS / "guard.sh"), f"rig_dir={self.rig_dirs['n1']}"]
        self.processes.append(
            subprocess.Popen([*self.network.enter_node, *command], env=self.environment, start_new_session=True)
        )

    def power_off(self) -> None:
        """Every process of the node at once, and what the kernel held for it; files stay."""
        for process in self.mine():
            with contextlib.suppress(psutil.Error):
                process.kill()
        for process in self.processes:
            process.kill()
            process.wait()
        self.processes.clear()
        for line in self.network.nft("list", "tables").splitlines():
            if line.split()[2].startswith("rig_"):
                self.network.nft("delete", *line.split())

    def down(self) -> None:
        self.power_off()
        for gate in self.gates.values():
            gate.close()
        if self.foreign is not None:
            self.foreign.kill()
            self.foreign.wait()
        self.exo.kill()
        self.network.down()

    @property
    def environment(self) -> dict[str, str]:
        """`MARKER` is how the processes of this node are found; every boot has an id of its own."""
        return {
            "PATH": os.environ["PATH"],
            "RIG_SWEEP": self.marker,
            "RIG_EMULATED_BOOT": f"{self.marker}-{self.boots}",
        }

    def mine(self) -> list[psutil.Process]:
        """Every process of this node."""
        found: list[psutil.Process] = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("RIG_SWEEP") == self.marker:
                    found.append(process)
        return found

    # ---- as the rig knows it

    def inventory(self, **exo: object) -> Inventory:
        def ssh(name: str) -> Ssh:
            keys = self.keys[name]
            return Ssh(
                host="127.0.0.1", port=self.gates[name].port, key=f"{keys.folder}/client_key", host_key=keys.host_key
            )

        return Inventory(
            name="sweep",
            nodes={
                "n1": Node(
                    ssh=ssh("n1"),
                    api="http://127.0.0.1:1",
                    addresses=["10.99.0.1"],
                    exo=self.exo_process(**exo),
                    rig_dir=str(self.rig_dirs["n1"]),
                    sudo=False,
                    restart_rehearsed=True,
                ),
                "n2": Node(
                    ssh=ssh("n2"),
                    api="http://127.0.0.1:2",
                    addresses=self.network.peers.split(),
                    exo=ExoProcess(home=f"{self.folder}/n2/exo"),
                    rig_dir=str(self.rig_dirs["n2"]),
                    sudo=False,
                    faults=False,
                ),
            },
        )

    def exo_process(self, **changes: object) -> ExoProcess:
        return self.exo.process(
            stop=f"kill -TERM $(cat '{self.exo.home}/exo.pid') $(pgrep -P $(cat '{self.exo.home}/exo.pid'))", **changes
        )

    # ---- between cases

    def fresh_exo(self) -> None:
        """exo's stand-in ends by itself after two minutes, and makes no new runner; a case gets one young and whole."""
        with contextlib.suppress(OSError, ValueError, psutil.Error):
            main = psutil.Process(int((self.exo.home / "exo.pid").read_text()))
            young = time.time() - main.create_time() < EXO_AGE_S
            whole = psutil.STATUS_ZOMBIE not in [one.status() for one in [main, *main.children()]]
            if young and main.is_running() and whole:
                self.exo.wait()
                return
        self.exo.kill()
        self.exo.start()

    def exo_tree(self) -> list[psutil.Process]:
        """Main, and its children that live."""
        main = psutil.Process(int((self.exo.home / "exo.pid").read_text()))
        everybody = [main, *main.children(recursive=True)]
        return [one for one in everybody if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]

    def plant(self) -> str:
        """A live lease of somebody else: whoever undid it would wake the foreign process. Returns its text."""
        assert self.foreign is not None
        start = Path(f"/proc/{self.foreign.pid}/stat").read_text().rpartition(") ")[2].split()[19]
        boot = self.environment["RIG_EMULATED_BOOT"]
        text = (
            f"version=1\nid=foreign\nrun=theirs\nowner=they@there:1\nkind=freeze\nboot_id={boot}\nstarted=1.000\n"
            f"deadline=99999999.000\nscript_pid={self.foreign.pid}\nscript_start={start}\nscript=sleep\nphase=struck\n"
            f"pids={self.foreign.pid}:{start}\nend=1\n"
        )
        (self.leases / "foreign").write_text(text)
        return text

    @property
    def leases(self) -> Path:
        return self.rig_dirs["n1"] / "leases"

    def logs(self) -> set[str]:
        """The faults that ever were here."""
        folder = self.rig_dirs["n1"] / "log"
        return {name.removesuffix(".log") for name in os.listdir(folder)} if folder.exists() else set()

    def ours(self) -> list[str]:
        """The leases of faults that the sweep struck."""
        if not self.leases.exists():
            return []
        return [name for name in os.listdir(self.leases) if not name.startswith(".") and name != "foreign"]
