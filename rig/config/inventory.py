"""The inventory: which machines, how they are reached, how the target is started, stopped and recognised on them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rig.config.fields import Duration, Strict

Behaviour = Literal["sound", "exo-0.3.70"]


class Ssh(Strict):
    """How one node is reached. `host_key` pins a key (`ssh-ed25519 AAAA…`); otherwise `known_hosts` decides."""

    host: str
    port: int = Field(22, ge=1, le=65535)
    user: str | None = None
    key: str | None = None  # path; None: the agent and the default keys
    known_hosts: str = "~/.ssh/known_hosts"
    host_key: str | None = None


class ExoProcess(Strict):
    """How exo is started, stopped and recognised on a node. Commands are run by `sh -c` on the node.

    `match` is an extended regular expression that the command line of the main process must contain: a pid in `pidfile`
    whose command does not match is never signalled. `hold`/`release` keep a supervisor from restarting exo at once.
    """

    home: str  # $EXO_HOME, absolute
    pidfile: str | None = None  # default: HOME/exo.pid
    log: str | None = None  # default: HOME/exo_log/exo.log
    match: str = r"(python[0-9.]*|Python) .*-m exo|/bin/exo( |$)"
    start: str | None = None  # None: how to restart exo is not known; crash faults are refused
    stop: str | None = None
    hold: str | None = None
    release: str | None = None

    @property
    def pid_path(self) -> str:
        return self.pidfile or f"{self.home}/exo.pid"

    @property
    def log_path(self) -> str:
        return self.log or f"{self.home}/exo_log/exo.log"


class Node(Strict):
    ssh: Ssh
    api: str  # http://host:port, from the controller
    addresses: list[str] = Field(
        default_factory=list
    )  # every address peers may use, IPv4 and IPv6 (fe80::…%en5 for link-local)
    exo: ExoProcess
    rig_dir: str = "/var/tmp/rig"  # leases, node scripts
    path: str | None = None  # PATH for node scripts; None: the usual system folders
    sudo: bool = True  # packet-filter commands go through `sudo -n`
    faults: bool = True  # whether faults may be injected here
    restart_rehearsed: bool = False  # set by hand, or by `rig doctor --rehearse-restart`, after one restart has worked


class Embedded(Strict):
    """An emulated exo cluster on this machine instead of real nodes."""

    nodes: int = Field(3, ge=1, le=16)
    behaviour: Behaviour = "sound"
    pace: float = Field(10.0, ge=1.0, le=100.0)
    load_time: Duration = 4.0  # a model's load time at pace 1
    seed: int = 0


class Emulated(Strict):
    """Written by the embedded cluster into the inventory of its running nodes, so that every report can say so."""

    behaviour: Behaviour
    pace: float = Field(ge=1.0, le=100.0)
    folder: str  # of the cluster: its ledger and the samples of its processes


class Inventory(Strict):
    """Either `nodes` (real machines) or `embedded`. Keys under `nodes` are the names used everywhere."""

    name: str
    target: Literal["exo"] = "exo"
    nodes: dict[str, Node] = Field(default_factory=dict)
    embedded: Embedded | None = None
    emulated: Emulated | None = None  # with `nodes`: these are processes of a running embedded cluster
    groups: dict[str, list[str]] = Field(default_factory=dict)
