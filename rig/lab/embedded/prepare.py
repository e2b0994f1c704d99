"""Lays out the folder of a cluster before anything runs: keys, a settings file a node, the inventory for the rig's
commands.

FOLDER/inventory.yaml  cluster.json  keys/  ledger/  NODE/{machine.json bin/ exo/ rig/}
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import asyncssh
import msgspec
import yaml

from rig.config.inventory import Embedded, Emulated, ExoProcess, Inventory, Node, Ssh
from rig.errors import ClusterError
from rig.lab.embedded.layout import ClusterLayout, read_layout
from rig.lab.embedded.settings import API_PORT, SSH_PORT, NodeSettings, Peer, write_settings
from rig.lab.hosts import addresses
from rig.lab.hosts.node import host_entry
from rig.lab.hosts.require import free_subnet, require_namespaces

__all__ = ["INERT_COMMANDS", "ClusterLayout", "main_pattern", "prepare", "read_layout"]

INERT_COMMANDS = frozenset({"kill", "nft", "pfctl"})


def prepare(spec: Embedded, folder: Path, *, inert: frozenset[str] = frozenset()) -> ClusterLayout:
    """Write everything. `folder` may exist but must hold no cluster yet. Raises ClusterError."""
    unknown = inert - INERT_COMMANDS
    if unknown:
        raise ClusterError(f"cannot be made inert: {', '.join(sorted(unknown))}")
    apart = spec.hosts == "namespaces"
    if apart:
        require_namespaces()
    folder = folder.absolute()
    if (folder / "cluster.json").exists():
        raise ClusterError(f"{folder} already holds a cluster", remedy="use an empty folder")
    try:
        for name in ("keys", "ledger"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "keys").chmod(0o700)
        sockets = tempfile.mkdtemp(prefix="rig-")
    except OSError as error:
        raise ClusterError(f"cannot lay out the cluster in {folder}: {error}") from error
    layout = ClusterLayout(
        cluster=secrets.token_hex(8),
        folder=str(folder),
        sockets=sockets,
        nodes=[f"node-{index}" for index in range(1, spec.nodes + 1)],
        python=sys.executable,
        behaviour=spec.behaviour,
        defects=spec.defects,
        pace=spec.pace,
        hosts=spec.hosts,
        system=spec.system if apart or sys.platform != "darwin" else "darwin",
        subnet=free_subnet() if apart else 0,
    )
    client_public = _write_key(folder / "keys" / "client")
    ports = [SSH_PORT, API_PORT] * spec.nodes if apart else _free_ports(2 * spec.nodes)
    all_settings = [
        _node_settings(spec, layout, index, (ports[2 * index], ports[2 * index + 1]), client_public, sorted(inert))
        for index in range(spec.nodes)
    ]
    host_keys = {settings.name: _write_key(Path(settings.host_key)) for settings in all_settings}
    for settings in all_settings:
        for sub in ("bin", "exo", "rig", "tmp"):
            (Path(settings.folder) / sub).mkdir(parents=True, exist_ok=True)
        Path(settings.sockets).mkdir(mode=0o700)
        write_settings(settings)
    inventory = _inventory(layout, all_settings, host_keys)
    (folder / "inventory.yaml").write_text(_inventory_yaml(inventory))
    (folder / "cluster.json").write_bytes(msgspec.json.encode(layout))
    return layout


def _write_key(path: Path) -> str:
    """A new key pair; returns the public key, OpenSSH format, without a comment."""
    key = asyncssh.generate_private_key("ssh-ed25519")  # pyright: ignore[reportUnknownMemberType] (untyped keywords)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(key.export_private_key())
    return " ".join(key.export_public_key().decode().split()[:2])


def _free_ports(count: int) -> list[int]:
    """Ports nobody has now; each machine takes hold of its own at once and keeps them."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def _peer(layout: ClusterLayout, index: int) -> Peer:
    number = index + 1
    return Peer(
        name=layout.nodes[index],
        ipv4=addresses.ipv4(layout.subnet, number),
        ipv6=addresses.ipv6(number) if layout.hosts == "namespaces" else f"fe80::77:{number:x}",
        net_socket=f"{layout.sockets}/{number}/net",
    )


def _node_settings(
    spec: Embedded,
    layout: ClusterLayout,
    index: int,
    ports: tuple[int, int],
    client_public: str,
    inert: list[str],
) -> NodeSettings:
    this = _peer(layout, index)
    return NodeSettings(
        cluster=layout.cluster,
        name=this.name,
        index=index + 1,
        ipv4=this.ipv4,
        ipv6=this.ipv6,
        interface=addresses.INTERFACES[layout.system].ethernet if layout.hosts == "namespaces" else "eth0",
        system=layout.system,
        folder=str(layout.node_folder(this.name)),
        sockets=f"{layout.sockets}/{index + 1}",
        ledger=f"{layout.folder}/ledger",
        python=layout.python,
        ssh_port=ports[0],
        api_port=ports[1],
        host_key=f"{layout.folder}/keys/{this.name}",
        client_key=client_public,
        behaviour=spec.behaviour,
        pace=spec.pace,
        load_time_s=spec.load_time,
        seed=spec.seed,
        habits=spec.habits,
        defects=list(spec.defects),
        inert=inert,
        peers=[_peer(layout, other) for other in range(spec.nodes) if other != index],
        hosts=layout.hosts,
        guard=spec.guard,
        subnet=layout.subnet,
    )


def main_pattern(node_folder: str) -> str:
    """An extended regular expression that the command line of this node's exo main process matches, and no other's."""
    return rf"-m rig\.lab\.embedded\.process {node_folder.replace('.', '[.]').replace('+', '[+]')}( |$)"


def _inventory(layout: ClusterLayout, all_settings: list[NodeSettings], host_keys: dict[str, str]) -> Inventory:
    if layout.hosts == "namespaces":
        hosts = {
            each.name: host_entry(each, f"{layout.folder}/keys/client", host_keys[each.name], main_pattern(each.folder))
            for each in all_settings
        }
        return Inventory(name="embedded", nodes=hosts, emulated=_emulated(layout))
    nodes = {
        settings.name: Node(
            ssh=Ssh(
                host="127.0.0.1",
                port=settings.ssh_port,
                user="rig",
                key=f"{layout.folder}/keys/client",
                host_key=host_keys[settings.name],
            ),
            api=f"http://127.0.0.1:{settings.api_port}",
            addresses=[settings.ipv4, f"{settings.ipv6}%{settings.interface}"],
            exo=ExoProcess(
                home=settings.exo_home,
                match=main_pattern(settings.folder),
                start=f"{settings.bin}/exo-start",
                stop=f"{settings.bin}/exo-stop",
            ),
            rig_dir=settings.rig_dir,
            path=f"{settings.bin}:/usr/bin:/bin:/usr/sbin:/sbin",
            sudo=False,
            restart_rehearsed=True,
        )
        for settings in all_settings
    }
    return Inventory(name="embedded", nodes=nodes, emulated=_emulated(layout))


def _emulated(layout: ClusterLayout) -> Emulated:
    return Emulated(
        behaviour=layout.behaviour,
        defects=layout.defects,
        pace=layout.pace,
        folder=layout.folder,
        hosts=layout.hosts,
    )


def _inventory_yaml(inventory: Inventory) -> str:
    head = (
        "# Written by the embedded cluster: its nodes as they run now. Use it with any rig command: --inventory FILE\n"
    )
    content = inventory.model_dump(exclude_defaults=True)
    text: str = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)  # pyright: ignore[reportUnknownMemberType]
    return head + text
