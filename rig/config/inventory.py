"""The inventory: which machines, how they are reached, how the target is started, stopped and recognised on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, model_validator

from rig.config.defects import KEEPER_DEFECTS, BehaviourName, DefectName
from rig.config.fields import AbsolutePath, Address, ApiUrl, Duration, Host, NodeName, Strict, TargetName, Text
from rig.config.process import Process
from rig.targets import registry


class Ssh(Strict):
    """How one node is reached. `host_key` pins a key (`ssh-ed25519 AAAA…`); otherwise `known_hosts` decides."""

    host: Host = Field(description="a host name or an address")
    port: int = Field(default=22, ge=1, le=65535)
    user: Text | None = None
    key: Text | None = None  # path; None: the agent and the default keys
    known_hosts: Text = "~/.ssh/known_hosts"
    host_key: Text | None = None


class Node(Strict):
    """Reached over `ssh`, or `local`: this machine itself. One of them must be given."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    ssh: Ssh | None = Field(default=None, description="how the node is reached, at least `host:`")
    api: ApiUrl = Field(description="http://HOST:PORT of the target's API, as the controller reaches it")
    local: bool = False  # instead of `ssh`: commands are run on the controller itself
    addresses: list[Address] = Field(
        default_factory=list
    )  # every address peers may use, IPv4 and IPv6 (fe80::…%en5 for link-local)
    process: Process  # written as the target's own section (`rig.config.target_fields`)
    rig_dir: AbsolutePath = "/var/tmp/rig"  # leases, node scripts
    path: Text | None = None  # PATH for node scripts; None: the usual system folders
    sudo: bool = True  # packet-filter commands go through `sudo -n`
    faults: bool = True  # whether faults may be injected here
    restart_rehearsed: bool = False  # set by hand, or by `rig doctor --rehearse-restart`, after one restart has worked

    @property
    def peer_port(self) -> int:
        """Where its peers reach the target's API."""
        return self.process.peer_port or urlsplit(self.api).port or 80

    @property
    def reached_as(self) -> str:
        """Where its commands run, for people."""
        if self.ssh is None:
            return "this machine"
        return f"{self.ssh.user}@{self.ssh.host}" if self.ssh.user else self.ssh.host


class Embedded(Strict):
    """An emulated cluster on this machine instead of real nodes."""

    nodes: int = Field(default=3, ge=1, le=16)
    hosts: Literal["processes", "namespaces"] = "processes"  # namespaces: each node its own network (Linux, root)
    system: Literal["linux", "darwin"] = "linux"  # darwin, with namespaces: the commands of macOS on every node
    behaviour: BehaviourName = "sound"
    defects: list[DefectName] = Field(default_factory=list)  # on top of the behaviour; parameters follow from the seed
    pace: float = Field(default=10.0, ge=1.0, le=100.0)
    load_time: Duration = Field(default=4.0, ge=0, le=600)  # a model's load time at pace 1
    guard: bool = False  # whether each node runs the node guard
    seed: int = 0
    habits: bool = Field(
        default=True,
        description="exo-0.3.70 alone: what happens to some instances only, with chances drawn from the seed",
    )

    @model_validator(mode="after")
    def _one_keeper(self) -> Embedded:
        wrong = [name for name in self.defects if name in KEEPER_DEFECTS]
        if self.behaviour == "upstream" and wrong:
            raise ValueError(f"expected no {', '.join(wrong)} with the behaviour upstream: its keeper is exo's own")
        return self


class Emulated(Strict):
    """Written by the embedded cluster into the inventory of its running nodes, so that every report can say so."""

    behaviour: BehaviourName = Field(description="sound, upstream or exo-0.3.70")
    defects: list[DefectName] = Field(default_factory=list)
    pace: float = Field(ge=1.0, le=100.0)
    folder: Text = Field(description="the folder of the cluster: its ledger and the samples of its processes")
    hosts: Literal["processes", "namespaces"] = "processes"  # processes: what is done to a node is done to this machine
    simulated: bool = False  # under virtual time, in one process: times in the journal are virtual


class Inventory(Strict):
    """Either `nodes` (real machines) or `embedded`. Keys under `nodes` are the names used everywhere."""

    name: Text
    target: TargetName = registry.DEFAULT
    nodes: dict[NodeName, Node] = Field(default_factory=dict)
    embedded: Embedded | None = None
    emulated: Emulated | None = None  # with `nodes`: these are processes of a running embedded cluster
    groups: dict[NodeName, list[str]] = Field(default_factory=dict)

    @property
    def on_this_machine(self) -> bool:
        """Whether the nodes are mere processes of the user's own machine, which is not to be set up for them."""
        return self.emulated is not None and self.emulated.hosts == "processes"

    def names(self) -> list[str]:
        """The names of the nodes, in order; those of the embedded cluster are known before it is started."""
        if self.nodes or self.embedded is None:
            return list(self.nodes)
        return embedded_names(self.embedded.nodes)

    def resolve(self, wanted: Sequence[str] | None) -> list[str]:
        """Nodes meant by names of nodes and groups (`None`: all), in order, without repeats; unknown ones drop out."""
        if wanted is None:
            return self.names()
        meant = {name for item in wanted for name in self.groups.get(item, [item])}
        return [name for name in self.names() if name in meant]

    def allows_faults(self, name: str) -> bool:
        node = self.nodes.get(name)
        return node is None or node.faults


def embedded_names(count: int) -> list[str]:
    """What the nodes of an embedded cluster are called."""
    return [f"node-{number}" for number in range(1, count + 1)]
