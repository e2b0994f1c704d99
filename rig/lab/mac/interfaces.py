"""`ifconfig` and `route` of a virtual Mac: shows its interfaces, takes them down and up, says where packets go."""

from __future__ import annotations

import socket
from ipaddress import IPv4Network

import psutil

from rig.errors import ClusterError
from rig.lab.embedded.machine.answering import Answer
from rig.lab.hosts.addresses import INTERFACES
from rig.lab.hosts.switch import run_ip

NAMES = INTERFACES["darwin"]


def ifconfig(arguments: list[str]) -> Answer:
    known = [NAMES.loopback, NAMES.ethernet, NAMES.thunderbolt]
    match arguments:
        case [] | ["-a"]:
            return Answer(0, out="".join(_shown(name) for name in known))
        case ["-l"]:
            return Answer(0, out=" ".join(known) + "\n")
        case [name, *rest] if name in known:
            return _one(name, rest)
        case _:
            return Answer(1, err=f"ifconfig: interface {arguments[0]} does not exist\n")


def _one(name: str, rest: list[str]) -> Answer:
    match rest:
        case [] | ["inet" | "inet6"]:
            return Answer(0, out=_shown(name))
        case ["up" | "down" as wanted] if name != NAMES.loopback:
            try:
                run_ip("link", "set", name, wanted)
            except ClusterError as error:
                return Answer(1, err=f"ifconfig: {error.message}\n")
            return Answer(0)
        case _:
            return Answer(1, err=f"ifconfig: not emulated: ifconfig {name} {' '.join(rest)}\n")


def _shown(name: str) -> str:
    stats = psutil.net_if_stats().get(name)
    up = stats is not None and stats.isup
    kind = "LOOPBACK" if name == NAMES.loopback else "BROADCAST,SMART,SIMPLEX"
    flags = f"8863<UP,{kind},RUNNING,MULTICAST>" if up else f"8822<{kind},MULTICAST>"
    lines = [f"{name}: flags={flags} mtu {stats.mtu if stats is not None else 1500}"]
    for address in psutil.net_if_addrs().get(name, []):
        if address.family == psutil.AF_LINK and name != NAMES.loopback:
            lines.append(f"\tether {address.address}")
        elif address.family == socket.AF_INET and address.netmask:
            bits = IPv4Network(f"0.0.0.0/{address.netmask}").netmask
            lines.append(f"\tinet {address.address} netmask 0x{int(bits):08x}")
        elif address.family == socket.AF_INET6:
            zone = "" if "%" in address.address or not address.address.startswith("fe80") else f"%{name}"
            lines.append(f"\tinet6 {address.address}{zone} prefixlen 64")
    if name != NAMES.loopback:
        lines.append(f"\tstatus: {'active' if up else 'inactive'}")
    return "".join(f"{line}\n" for line in lines)


def route(arguments: list[str]) -> Answer:
    """`route -n get ADDRESS`."""
    match arguments:
        case ["-n", "get", address] | ["get", address]:
            pass
        case _:
            return Answer(64, err=f"route: not emulated: route {' '.join(arguments)}\n")
    try:
        words = run_ip("-o", "route", "get", address.partition("%")[0]).split()
    except ClusterError:
        return Answer(68, err=f"route: writing to routing socket: not in table\nroute: bad address: {address}\n")
    device = words[words.index("dev") + 1]
    return Answer(
        0, out=f"   route to: {address}\ndestination: {address}\n  interface: {device}\n      flags: <UP,DONE>\n"
    )
