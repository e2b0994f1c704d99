"""The networks between the nodes: two bridges in a network namespace of the cluster, and the controller's cable.

The namespace has no name: it lives while the process that holds it does, and the cables with it. What the kernel does
not take back by itself is a route in the namespace of the controller that makes the cluster's addresses unreachable
when its cable is gone, so that not a packet meant for a node can ever leave this machine. It carries the pid of its
owner as its metric; the owner removes it, and the next cluster removes those of owners that died.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import psutil

from rig.errors import ClusterError
from rig.lab.embedded.lifeline import Lifeline
from rig.lab.hosts.addresses import controller_ipv4, controller_link, subnet_cidr

ETHERNET, THUNDERBOLT = "ethernet", "thunderbolt"
METRIC = 1_000_000  # plus the owner's pid: behind every route of a cable
PROTOCOL = "77"  # marks the routes as ours
COMMAND_TIMEOUT_S = 10.0
POLL_S = 0.01
ROUTE = re.compile(r"unreachable (10\.77\.\d+\.0/24).* metric (\d+)")


def run_ip(*words: str, inside: int | None = None) -> str:
    """`ip WORDS`, in the network namespace of the process `inside` if given. Raises ClusterError."""
    return run_command("ip", *words, inside=inside)


def run_command(*words: str, inside: int | None = None) -> str:
    command = [*words] if inside is None else ["nsenter", f"--net=/proc/{inside}/ns/net", *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClusterError(f"{' '.join(command)}: {error}") from error
    if done.returncode != 0:
        raise ClusterError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


@asynccontextmanager
async def switch(subnet: int) -> AsyncGenerator[int]:
    """Yields the pid of the process that holds the namespace; everything is gone on leaving."""
    lifeline = Lifeline()
    holder = await asyncio.create_subprocess_exec(
        *("unshare", "--net", "cat"), stdin=lifeline.read_fd, stdout=asyncio.subprocess.DEVNULL
    )
    lifeline.release()
    try:
        await asyncio.to_thread(_lay, holder.pid, subnet)
        yield holder.pid
    finally:
        lifeline.cut()
        await holder.wait()


def _lay(holder: int, subnet: int) -> None:
    _wait_for_namespace(holder)
    run_ip("link", "set", "lo", "up", inside=holder)
    # The bridges have nothing to say themselves.
    run_command("sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6", inside=holder)
    for bridge in (ETHERNET, THUNDERBOLT):
        run_ip("link", "add", bridge, "type", "bridge", "forward_delay", "0", "mcast_snooping", "0", inside=holder)
        run_ip("link", "set", bridge, "up", inside=holder)
    cable = controller_link(subnet)
    run_ip("link", "add", cable, "type", "veth", "peer", "name", "controller", "netns", str(holder))
    run_ip("link", "set", cable, "addrgenmode", "none")
    run_ip("link", "set", "controller", "master", ETHERNET, "up", inside=holder)
    run_ip("addr", "add", f"{controller_ipv4(subnet)}/24", "dev", cable)
    run_ip("link", "set", cable, "up")


def _wait_for_namespace(holder: int) -> None:
    """Until `unshare` has become `cat` in its namespace; a second is plenty."""
    process = psutil.Process(holder)
    try:
        for _ in range(1000):
            if process.name() == "cat":
                return
            time.sleep(POLL_S)
    except psutil.Error as error:
        raise ClusterError(f"no network namespace: {error}") from error
    raise ClusterError("no network namespace within 10 s")


def shield(subnet: int, owner: int) -> None:
    """Make the subnet unreachable but for the cable, until `unshield`."""
    sweep()
    run_ip("route", "replace", "unreachable", subnet_cidr(subnet), "metric", str(METRIC + owner), "proto", PROTOCOL)


def sweep() -> None:
    """Remove what dead owners left."""
    for found in ROUTE.finditer(run_ip("route", "show", "proto", PROTOCOL)):
        if not psutil.pid_exists(int(found[2]) - METRIC):
            _drop_route(found[1], int(found[2]))


def unshield(subnet: int, owner: int) -> None:
    _drop_route(subnet_cidr(subnet), METRIC + owner)


def _drop_route(cidr: str, metric: int) -> None:
    """One that is gone already is no error: two clusters may sweep at once."""
    words = ["ip", "route", "del", "unreachable", cidr, "metric", str(metric), "proto", PROTOCOL]
    subprocess.run(words, capture_output=True, timeout=COMMAND_TIMEOUT_S, check=False)
