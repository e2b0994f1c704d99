"""Two nodes with everything a fault can hit, each other's peers; and things of somebody else, on the first.

The nodes are network namespaces. What a fault strikes is `n1`, and `n2` as well where it takes two.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from rig.config.inventory import Inventory, Node, Ssh
from rig.targets.exo.fields import ExoProcess
from rig.targets.exo.inventory import ExoInventory, ExoNode
from tests.faults.network import Network
from tests.sweep.gate import Gate
from tests.sweep.machine import INNER_PORT, Machine

FOREIGN_TABLE = "theirs"


def wait_for(condition: Callable[[], bool], what: str, *, timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s:g} s: {what}")
        time.sleep(0.002)


class World:
    """Made once, used for many cases. `folder` holds all of it."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.network = Network(name)
        self.n1 = Machine("n1", folder, self.network.node_ns)
        self.n2 = Machine("n2", folder, self.network.peer_ns)
        self.machines = (self.n1, self.n2)
        self.gates: dict[str, Gate] = {}
        self.foreign: subprocess.Popen[bytes] | None = None

    # ---- up and down

    def up(self) -> None:
        self.network.up()
        self.network.serve_names()
        self.network.nft(
            f"add table inet {FOREIGN_TABLE}; add chain inet {FOREIGN_TABLE} c; add rule inet {FOREIGN_TABLE} c accept"
        )
        self.foreign = subprocess.Popen(["sleep", "3600"], start_new_session=True)
        self.foreign.send_signal(signal.SIGSTOP)
        for machine in self.machines:
            machine.boot()
            self.gates[machine.name] = Gate(machine.namespace, INNER_PORT)
        self.n1.exo.start()

    def down(self) -> None:
        for machine in self.machines:
            machine.down()
        for gate in self.gates.values():
            gate.close()
        if self.foreign is not None:
            self.foreign.kill()
            self.foreign.wait()
        self.network.down()

    # ---- as the rig knows it

    def inventory(self, **exo: object) -> Inventory:
        return ExoInventory(
            name="sweep",
            nodes={
                "n1": self._node(self.n1, self.n1.exo_process(**exo), ["10.99.0.1"]),
                "n2": self._node(self.n2, self.n2.exo_process(), self.network.peers.split()),
            },
        )

    def _node(self, machine: Machine, exo: ExoProcess, addresses: list[str]) -> Node:
        keys = machine.keys
        return ExoNode(
            ssh=Ssh(
                host="127.0.0.1",
                port=self.gates[machine.name].port,
                key=f"{keys.folder}/client_key",
                host_key=keys.host_key,
            ),
            api=f"http://127.0.0.1:{machine.name.removeprefix('n')}",
            addresses=addresses,
            process=exo,
            rig_dir=str(machine.rig_dir),
            sudo=False,
            restart_rehearsed=True,
        )

    # ---- what a case needs

    def ours(self) -> list[str]:
        """The leases of faults that the sweep struck, on either node."""
        return [lease for machine in self.machines for lease in machine.ours()]

    def going_down(self) -> bool:
        return any(machine.going_down.is_set() for machine in self.machines)

    def plant(self) -> str:
        """A live lease of somebody else: whoever undid it would wake the foreign process. Returns its text."""
        assert self.foreign is not None
        start = Path(f"/proc/{self.foreign.pid}/stat").read_text().rpartition(") ")[2].split()[19]
        boot = self.n1.environment["RIG_EMULATED_BOOT"]
        text = (
            f"version=1\nid=foreign\nrun=theirs\nowner=they@there:1\nkind=freeze\nboot_id={boot}\nstarted=1.000\n"
            f"deadline=99999999.000\nscript_pid={self.foreign.pid}\nscript_start={start}\nscript=sleep\nphase=struck\n"
            f"pids={self.foreign.pid}:{start}\nend=1\n"
        )
        (self.n1.leases / "foreign").write_text(text)
        return text

    def unplant(self) -> None:
        with contextlib.suppress(OSError):
            (self.n1.leases / "foreign").unlink()
