"""Makes a node's namespaces and boots its machine in them, again after each reboot of the node.

    python -m rig.lab.hosts.enter NODE_FOLDER --switch PID --lifeline FD

Network, mounts and host name live as long as this process; processes live as long as the machine, which is number 1 of
its own process namespace. When either dies, the kernel ends everything that ran on the node.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from rig.errors import ClusterError
from rig.lab.embedded.settings import NodeSettings, read_settings
from rig.lab.hosts import addresses, root
from rig.lab.hosts.switch import ETHERNET, THUNDERBOLT, run_command, run_ip

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWNET = 0x00020000, 0x04000000, 0x40000000
PR_SET_PDEATHSIG = 1
REBOOT_STATUS = 77  # of a machine that is to be booted again
# Retransmissions and neighbours back off to minutes, which no pace divides: bounded, so that a heal is felt at once.
SYSCTLS = {
    "ipv4/tcp_rto_max_ms": "1000",
    "ipv4/tcp_syn_retries": "6",
    "ipv6/conf/all/accept_ra": "0",
    "ipv6/conf/default/accept_ra": "0",
    "ipv6/conf/default/accept_dad": "0",
}
OPTIONAL_SYSCTLS = frozenset({"ipv4/tcp_rto_max_ms"})  # Linux 6.15 and later


def unshare(flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) != 0:
        number = ctypes.get_errno()
        raise ClusterError(f"unshare: {os.strerror(number)}")


def wire(settings: NodeSettings, switch_pid: int) -> None:
    """Both network cards with their addresses, in this process's network namespace. Raises ClusterError."""
    for name, value in SYSCTLS.items():
        try:
            Path("/proc/sys/net", name).write_text(value)
        except OSError as error:
            if name not in OPTIONAL_SYSCTLS:
                raise ClusterError(f"{name}: {error}") from error
    names = addresses.INTERFACES[settings.system]
    if names.loopback != "lo":
        run_ip("link", "set", "lo", "name", names.loopback)
    run_ip("link", "set", names.loopback, "up")
    number, subnet = settings.index, settings.subnet
    cards = (
        (names.ethernet, ETHERNET, f"{addresses.ipv4(subnet, number)}/24", addresses.ethernet_mac(number)),
        (names.thunderbolt, THUNDERBOLT, f"{addresses.thunderbolt_ipv4(number)}/16", addresses.thunderbolt_mac(number)),
    )
    for card, bridge, four, hardware in cards:
        port = f"{bridge[0]}{number}"
        run_ip("link", "add", card, "address", hardware, "type", "veth", "peer", "name", port, "netns", str(switch_pid))
        run_ip("link", "set", port, "master", bridge, "up", inside=switch_pid)
        run_ip("addr", "add", four, "dev", card)
        run_ip("link", "set", card, "up")


def die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def boot(settings: NodeSettings, lifeline_fd: int) -> int:
    """One life of the machine, from power on to its end. Returns its exit status."""
    root.new_boot_id(settings)
    command = [
        *("unshare", "--pid", "--mount", "--fork", "--kill-child=SIGKILL"),
        *(settings.python, "-m", "rig.lab.hosts.machine", settings.folder, "--lifeline", str(lifeline_fd)),
    ]
    machine = subprocess.Popen(command, pass_fds=(lifeline_fd,), preexec_fn=die_with_parent)  # noqa: PLW1509 (one thread)
    # The machine ends with its lifeline; if this process is killed first, `unshare` and the machine are killed with it.
    return machine.wait()


def run(settings: NodeSettings, switch_pid: int, lifeline_fd: int) -> int:
    unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS)
    wire(settings, switch_pid)
    socket.sethostname(settings.name)
    root.mount_root(settings)
    while True:
        status = boot(settings, lifeline_fd)
        if status != REBOOT_STATUS:
            return status
        run_command("nft", "flush", "ruleset")  # packet filters do not outlive a boot


def main() -> int:
    parser = argparse.ArgumentParser(prog="rig.lab.hosts.enter")
    parser.add_argument("folder")
    parser.add_argument("--switch", type=int, required=True)
    parser.add_argument("--lifeline", type=int, required=True)
    arguments = parser.parse_args()
    try:
        return run(read_settings(arguments.folder), arguments.switch, arguments.lifeline)
    except ClusterError as error:
        print(f"{arguments.folder}: {error.message}", file=sys.stderr, flush=True)
        return 1


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)
