"""What each process of the embedded cluster is told at its start: one JSON file a node, read by its machine, its exo
and its runners.

Durations are seconds that are already divided by the pace. Paths are absolute. `sockets` is a folder with a short
path (a unix socket's path is limited to about 100 bytes); everything else of a node lies in its `folder`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from rig.config.defects import BehaviourName

CONTROLLER_ADDRESS = "10.77.0.250"  # the address the nodes see SSH come from
EXO_PORT = 52414  # exo's links between nodes
API_PORT = 52415
SSH_PORT = 22
MARKER = "RIG_EMBEDDED_NODE"  # in the environment of every process of a node; how they are found again at the end


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    ipv4: str
    ipv6: str  # link-local, without the zone
    net_socket: str  # of its machine


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    cluster: str  # unique a cluster
    name: str
    index: int  # from 1
    ipv4: str
    ipv6: str
    interface: str
    system: Literal["linux", "darwin"]  # whose packet filter command the node has
    folder: str
    sockets: str
    ledger: str
    python: str
    ssh_port: int
    api_port: int
    host_key: str
    client_key: str  # public key, OpenSSH format: the only one accepted
    behaviour: BehaviourName
    pace: float
    load_time_s: float  # a model's, at pace 1: the logic divides it with its other timers
    token_time_s: float = 0.03  # not divided: the speed of a runner is not a timer
    seed: int
    habits: bool = True  # what exo 0.3.70 does now and then
    inert: list[str]  # commands that do nothing: a negative control
    peers: list[Peer]
    hosts: Literal["processes", "namespaces"] = "processes"
    defects: list[str] = []  # names, on top of the behaviour; their parameters follow from the seed
    guard: bool = False  # whether the node runs the node guard
    subnet: int = 0  # with namespaces: N in the cluster's 10.77.N.0/24

    @property
    def api_bind(self) -> str:
        """Where exo's API listens: everywhere, as exo does, when the node has a network of its own."""
        return "0.0.0.0" if self.hosts == "namespaces" else "127.0.0.1"

    @property
    def home(self) -> str:
        return self.folder

    @property
    def exo_home(self) -> str:
        return f"{self.folder}/exo"

    @property
    def rig_dir(self) -> str:
        return f"{self.folder}/rig"

    @property
    def bin(self) -> str:
        return f"{self.folder}/bin"

    @property
    def net_socket(self) -> str:
        return f"{self.sockets}/net"

    @property
    def control_socket(self) -> str:
        return f"{self.sockets}/control"

    @property
    def marker(self) -> str:
        return f"{self.cluster}/{self.name}/"

    def listener(self, port: int) -> str:
        """The unix socket that stands for a listening virtual TCP port of this node."""
        return f"{self.sockets}/{port}"


def settings_path(folder: Path | str) -> Path:
    return Path(folder) / "machine.json"


def write_settings(settings: NodeSettings) -> None:
    settings_path(settings.folder).write_bytes(msgspec.json.format(msgspec.json.encode(settings), indent=1))


def read_settings(folder: Path | str) -> NodeSettings:
    return msgspec.json.decode(settings_path(folder).read_bytes(), type=NodeSettings)
