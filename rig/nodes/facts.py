"""What `facts.sh` says of a node, as a mapping; and what only several nodes together can tell."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from urllib.parse import urlsplit

from rig.config.inventory import Inventory, Node
from rig.nodes.operations import ShellNode
from rig.nodes.scripts import on_path, q

FACTS_LIMIT_S = 120.0

Facts = Mapping[str, str]

_CONNECT = "-MErrno=ECONNREFUSED -MSocket=:addrinfo,SOCK_STREAM -e " + q(
    "alarm 2; ($e, $a) = getaddrinfo($ARGV[0], $ARGV[1], {flags => AI_NUMERICHOST, socktype => SOCK_STREAM}); "
    "exit 1 if $e || !socket($s, $a->{family}, SOCK_STREAM, 0); connect($s, $a->{addr}) || $! == ECONNREFUSED or exit 1"
)
"""perl's arguments, before an address and a port: status 0 when that machine takes the connection, or refuses it."""


def parse_facts(text: str) -> dict[str, str]:
    """`key=value` lines → mapping; other lines are dropped. Pure."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {key: value for key, equals, value in pairs if equals and key.isidentifier()}


async def facts_of(conn: ShellNode, *, evaluate: bool) -> dict[str, str]:
    """Raises NodeError. The scripts must have been uploaded."""
    values = {"evaluate": "1" if evaluate else ""}
    return parse_facts(await conn.script("facts.sh", values, timeout_s=FACTS_LIMIT_S))


async def reached_from(conn: ShellNode, inventory: Inventory) -> dict[str, bool]:
    """`NODE at ADDRESS` → whether this node reaches it: by IPv4 at the API's port, by IPv6, where that API may not
    listen, at sshd's. A connection that is refused has reached it: the other machine said so. Empty where the API is
    known by a loopback address: its port says nothing of the network then.
    """
    wanted = {
        f"{name} at {address}": (address, _port(node, address))
        for name, node in inventory.nodes.items()
        if name != conn.name and not _on_loopback(node)
        for address in node.addresses
    }
    if not wanted:
        return {}
    tries = [
        f"{{ perl {_CONNECT} {q(address)} {q(port)} >/dev/null 2>&1 && echo {number}; }} &"
        for number, (address, port) in enumerate(wanted.values())
    ]
    said = await conn.run(on_path(conn.node, f"{' '.join(tries)} wait"), check=False, timeout_s=20.0)
    reached = set(said.stdout.split())
    return {what: str(number) in reached for number, what in enumerate(wanted)}


def _port(node: Node, address: str) -> str:
    return str(node.ssh.port if ":" in address and node.ssh is not None else urlsplit(node.api).port or 80)


def _on_loopback(node: Node) -> bool:
    host = urlsplit(node.api).hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")


async def resolved_on(conn: ShellNode, inventory: Inventory) -> dict[str, bool]:
    """Host names that the inventory uses → whether this node can resolve them."""
    hosts = {urlsplit(node.api).hostname or "" for node in inventory.nodes.values()}
    names = sorted(host for host in hosts if any(letter.isalpha() for letter in host) and ":" not in host)
    if not names:
        return {}
    perl = 'for (@ARGV) { print "$_\\n" if defined gethostbyname($_) }'
    said = await conn.run(f"perl -e {q(perl)} {' '.join(map(q, names))}", check=False, timeout_s=20.0)
    found = said.stdout.split()
    return {name: name in found for name in names}


async def all_facts(
    inventory: Inventory, conn: ShellNode, *, evaluate: bool
) -> tuple[dict[str, str], dict[str, bool], dict[str, bool]]:
    """Everything above of one node at once. Raises NodeError."""
    return await asyncio.gather(
        facts_of(conn, evaluate=evaluate), reached_from(conn, inventory), resolved_on(conn, inventory)
    )
