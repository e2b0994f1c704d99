"""The addresses of a cluster in namespaces. Pure.

Two networks join the nodes. Ethernet: 10.77.K.N of node N in the cluster's subnet K, and link-local IPv6; the
controller is on it too. The second stands for a Thunderbolt cable: self-assigned 169.254.77.N and link-local IPv6,
nodes only. Both are bridges in a network namespace of the cluster; no packet ever leaves this machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CONTROLLER_HOST = 250


@dataclass(frozen=True)
class Interfaces:
    """What a system calls them."""

    ethernet: str
    thunderbolt: str
    loopback: str


INTERFACES: dict[Literal["linux", "darwin"], Interfaces] = {
    "linux": Interfaces("eth0", "tb0", "lo"),
    "darwin": Interfaces("en0", "en5", "lo0"),
}


def subnet_cidr(subnet: int) -> str:
    return f"10.77.{subnet}.0/24"


def controller_ipv4(subnet: int) -> str:
    return f"10.77.{subnet}.{CONTROLLER_HOST}"


def controller_link(subnet: int) -> str:
    """The controller's interface, in the namespace that the cluster was started from."""
    return f"rig77-{subnet}"


def ipv4(subnet: int, number: int) -> str:
    return f"10.77.{subnet}.{number}"


def ethernet_mac(number: int) -> str:
    return f"02:77:00:00:00:{number:02x}"


def ipv6(number: int) -> str:
    """What the kernel makes of the card's hardware address, whenever the card comes up."""
    return f"fe80::77:ff:fe00:{number:x}"


def thunderbolt_ipv4(number: int) -> str:
    return f"169.254.77.{number}"


def thunderbolt_mac(number: int) -> str:
    return f"02:7b:00:00:00:{number:02x}"


def thunderbolt_ipv6(number: int) -> str:
    return f"fe80::7b:ff:fe00:{number:x}"


def of_node(subnet: int, number: int, system: Literal["linux", "darwin"]) -> list[str]:
    """Every address of a node, as an inventory lists them."""
    names = INTERFACES[system]
    return [
        ipv4(subnet, number),
        f"{ipv6(number)}%{names.ethernet}",
        thunderbolt_ipv4(number),
        f"{thunderbolt_ipv6(number)}%{names.thunderbolt}",
    ]
